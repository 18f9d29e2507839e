//! Tuples, objects and enum members.

use super::Value;
use crate::ir::types::TupleNames;
use crate::ir::{Symbol, Type, TypeKind};
use indexmap::IndexMap;
use parking_lot::RwLock;
use std::fmt;
use std::sync::Arc;

/// An immutable tuple; a named one knows its name and fields.
#[derive(Clone)]
pub struct Tuple(Arc<TupleInner>);

struct TupleInner {
    items: Vec<Value>,
    names: Option<Arc<TupleNames>>,
}

impl Tuple {
    /// A plain tuple.
    pub fn new(items: Vec<Value>) -> Tuple {
        Tuple(Arc::new(TupleInner { items, names: None }))
    }

    /// A named tuple; as many items as fields.
    pub fn named(names: Arc<TupleNames>, items: Vec<Value>) -> Tuple {
        Tuple(Arc::new(TupleInner { items, names: Some(names) }))
    }

    /// The items.
    pub fn items(&self) -> &[Value] {
        &self.0.items
    }

    /// Name and fields of a named tuple.
    pub fn names(&self) -> Option<&Arc<TupleNames>> {
        self.0.names.as_ref()
    }

    /// Whether two handles are the same tuple.
    pub fn same(&self, other: &Tuple) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The type, from the items.
    pub fn ty(&self) -> Type {
        let elements: Vec<Type> = self.items().iter().map(Value::ty).collect();
        Type::new(TypeKind::Tuple(elements.into(), self.0.names.clone()))
    }
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.items().iter()).finish()
    }
}

/// An instance of a script class or module: attribute values by name, in slot order.
#[derive(Clone)]
pub struct Object(Arc<ObjectInner>);

struct ObjectInner {
    class: Symbol,
    fields: RwLock<IndexMap<Symbol, Value>>,
}

impl Object {
    /// An instance without any attribute set.
    pub fn new(class: Symbol) -> Object {
        Object(Arc::new(ObjectInner { class, fields: RwLock::default() }))
    }

    /// Qualified name of the class.
    pub fn class(&self) -> Symbol {
        self.0.class
    }

    /// An attribute's value.
    pub fn get(&self, name: Symbol) -> Option<Value> {
        self.0.fields.read().get(&name).cloned()
    }

    /// Sets an attribute.
    pub fn set(&self, name: Symbol, value: Value) {
        self.0.fields.write().insert(name, value);
    }

    /// A copy of all attributes in slot order.
    pub fn fields(&self) -> Vec<(Symbol, Value)> {
        self.0.fields.read().iter().map(|(n, v)| (*n, v.clone())).collect()
    }

    /// Whether two handles are the same object.
    pub fn same(&self, other: &Object) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the object while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Objects may contain themselves; their fields are left out.
        write!(f, "<{}>", self.class())
    }
}

/// A member of an enum class.
#[derive(Clone, Debug)]
pub struct EnumValue {
    /// Qualified name of the class.
    pub class: Symbol,
    /// Name of the member.
    pub name: Symbol,
    /// Its value: int, float or str.
    pub value: Value,
}

/// Members are equal by class and name.
impl PartialEq for EnumValue {
    fn eq(&self, other: &EnumValue) -> bool {
        self.class == other.class && self.name == other.name
    }
}
