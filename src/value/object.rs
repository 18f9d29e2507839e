//! Tuples, objects and enum members.

use super::model::{Fields, ObjectInner, TupleInner};
use super::{EnumValue, Native, Object, Tuple, Value, nested};
use crate::ir::types::TupleNames;
use crate::ir::{Symbol, Type, TypeKind};
use crate::resources::Charge;
use indexmap::IndexMap;
use parking_lot::RwLock;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

impl Drop for TupleInner {
    fn drop(&mut self) {
        nested::release(std::mem::take(&mut self.items));
    }
}

/// Bytes that a tuple or an object takes besides what it holds.
const HEAD_BYTES: usize = 128;
/// Bytes of an object's field.
const FIELD_BYTES: usize = size_of::<(Symbol, Value)>() + 24;

impl Tuple {
    /// A plain tuple.
    pub fn new(items: Vec<Value>) -> Tuple {
        Tuple::charged(items, None)
    }

    /// A named tuple; as many items as fields.
    pub fn named(names: Arc<TupleNames>, items: Vec<Value>) -> Tuple {
        Tuple::charged(items, Some(names))
    }

    fn charged(items: Vec<Value>, names: Option<Arc<TupleNames>>) -> Tuple {
        let charge = Charge::taken(HEAD_BYTES + items.capacity() * size_of::<Value>());
        Tuple(Arc::new(TupleInner { items, names, ty: OnceLock::new(), _charge: charge }))
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

    /// An address that identifies the tuple while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// The type, from the items.
    pub fn ty(&self) -> Type {
        let ty = self.0.ty.get_or_init(|| {
            let elements: Vec<Type> = self.items().iter().map(Value::ty).collect();
            Type::new(TypeKind::Tuple(elements.into(), self.0.names.clone()))
        });
        ty.clone()
    }
}

impl fmt::Debug for Tuple {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.items().iter()).finish()
    }
}

impl Drop for ObjectInner {
    fn drop(&mut self) {
        let values = std::mem::take(&mut self.fields.get_mut().values);
        nested::release(values.into_values().collect());
    }
}

impl Object {
    /// An instance without any attribute set.
    pub fn new(class: Symbol) -> Object {
        Object::charged(class, None)
    }

    /// An instance of a custom class.
    pub fn with_native(class: Symbol, native: Native) -> Object {
        Object::charged(class, Some(native))
    }

    fn charged(class: Symbol, native: Option<Native>) -> Object {
        let fields = Fields { values: IndexMap::new(), charge: Charge::taken(HEAD_BYTES) };
        Object(Arc::new(ObjectInner {
            class,
            fields: RwLock::new(fields),
            changes: AtomicU64::new(0),
            native,
        }))
    }

    /// What an instance of a custom class holds, if it is a `T`.
    pub fn native<T: 'static>(&self) -> Option<&T> {
        self.0.native.as_deref()?.downcast_ref()
    }

    /// What an instance of a custom class that is known here holds.
    pub fn content(&self) -> Option<&Native> {
        self.0.native.as_ref()
    }

    /// Whether it is an instance of a custom class that is known here.
    pub fn is_native(&self) -> bool {
        self.0.native.is_some()
    }

    /// Qualified name of the class.
    pub fn class(&self) -> Symbol {
        self.0.class
    }

    /// An attribute's value.
    pub fn get(&self, name: Symbol) -> Option<Value> {
        self.0.fields.read().values.get(&name).cloned()
    }

    /// Sets an attribute.
    pub fn set(&self, name: Symbol, value: Value) {
        let mut fields = self.0.fields.write();
        self.0.changes.fetch_add(1, Ordering::Release);
        let former = fields.values.insert(name, value);
        let bytes = HEAD_BYTES + fields.values.capacity() * FIELD_BYTES;
        fields.charge.follow(bytes);
        // What was there may hold this very object, which is then dropped: not under the lock.
        drop(fields);
        drop(former);
    }

    /// How often an attribute was set.
    pub fn changes(&self) -> u64 {
        self.0.changes.load(Ordering::Acquire)
    }

    /// A copy of all attributes in slot order.
    pub fn fields(&self) -> Vec<(Symbol, Value)> {
        self.0.fields.read().values.iter().map(|(n, v)| (*n, v.clone())).collect()
    }

    /// Whether two handles are the same object.
    pub fn same(&self, other: &Object) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that identifies the object while it lives.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.0) as *const u8 as usize
    }

    /// The object, not kept alive.
    pub fn downgrade(&self) -> WeakObject {
        WeakObject(Arc::downgrade(&self.0))
    }
}

/// An object that this does not keep alive.
pub struct WeakObject(Weak<ObjectInner>);

impl WeakObject {
    /// The object, if it still lives.
    pub fn upgrade(&self) -> Option<Object> {
        self.0.upgrade().map(Object)
    }
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Objects may contain themselves; their fields are left out.
        write!(f, "<{}>", self.class())
    }
}

/// Members are equal by class and name.
impl PartialEq for EnumValue {
    fn eq(&self, other: &EnumValue) -> bool {
        self.class == other.class && self.name == other.name
    }
}
