//! TorchScript's types. A [`Type`] is an immutable shared handle; equal types are the same allocation wherever they
//! were made (`table.rs`), so that comparing them takes one step. Classes, interfaces and enums are nominal: the type holds the qualified name, the definition
//! stands in the module.

mod kind;
pub mod schema;
pub mod subtype;
mod table;
pub mod unify;

use super::Symbol;
use hashbrown::HashSet;
use kind::Facts;
use std::sync::{Arc, LazyLock};
use table::intern;

pub use kind::{Dim, Stride, TensorType, TupleNames, Type, TypeKind, TypeParameter};

macro_rules! simple_types {
    ($($function:ident $kind:ident $doc:literal),* $(,)?) => {
        struct Simple { $($function: Type),* }
        static SIMPLE: LazyLock<Simple> = LazyLock::new(|| Simple { $($function: Type::new(TypeKind::$kind)),* });
        impl Type {
            $(#[doc = $doc] pub fn $function() -> Type { SIMPLE.$function.clone() })*
        }
    };
}

simple_types! {
    any Any "`Any`",
    any_list AnyList "any list",
    any_tuple AnyTuple "any tuple",
    any_enum AnyEnum "any enum",
    any_class AnyClass "any class",
    number Number "`number`",
    int Int "`int`",
    float Float "`float`",
    complex Complex "`complex`",
    bool Bool "`bool`",
    str Str "`str`",
    none None "`NoneType`",
    device Device "`Device`",
    scalar_type ScalarType "`ScalarType`",
    layout Layout "`Layout`",
    memory_format MemoryFormat "`MemoryFormat`",
    qscheme QScheme "`QScheme`",
    stream Stream "`Stream`",
    generator Generator "`Generator`",
    storage Storage "`Storage`",
    capsule Capsule "`Capsule`",
    py_object PyObject "`PyObject`",
    sym_int SymInt "`SymInt`",
    sym_float SymFloat "`SymFloat`",
    sym_bool SymBool "`SymBool`",
}

static TENSOR: LazyLock<Type> = LazyLock::new(|| Type::new(TypeKind::Tensor(TensorType::default())));

impl Type {
    /// A type of any kind.
    pub fn new(kind: TypeKind) -> Type {
        Type(intern(kind))
    }

    /// What it is.
    pub fn kind(&self) -> &TypeKind {
        &self.0.kind
    }

    pub(super) fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// How deep types stand inside one another in it; 1 for a type without parts.
    pub fn depth(&self) -> usize {
        self.0.facts.depth as usize
    }

    /// Whether its text is so long that parts of it may well be shared: then answers about parts are worth keeping.
    pub(super) fn is_large(&self) -> bool {
        self.0.facts.graph_text > 1024
    }

    /// A tensor of which nothing is known.
    pub fn tensor() -> Type {
        TENSOR.clone()
    }

    /// `List[T]`
    pub fn list(element: Type) -> Type {
        Type::new(TypeKind::List(element))
    }

    /// `Dict[K, V]`
    pub fn dict(key: Type, value: Type) -> Type {
        Type::new(TypeKind::Dict(key, value))
    }

    /// `Tuple[...]`
    pub fn tuple(elements: impl Into<Arc<[Type]>>) -> Type {
        Type::new(TypeKind::Tuple(elements.into(), None))
    }

    /// A named tuple; fields and elements have the same length.
    pub fn named_tuple(name: Symbol, fields: Vec<Symbol>, elements: impl Into<Arc<[Type]>>) -> Type {
        Self::named_tuple_with_defaults(name, fields, elements, Vec::new())
    }

    /// A named tuple whose last fields have defaults, given as type text shows them.
    pub fn named_tuple_with_defaults(
        name: Symbol,
        fields: Vec<Symbol>,
        elements: impl Into<Arc<[Type]>>,
        defaults: Vec<Symbol>,
    ) -> Type {
        Type::new(TypeKind::Tuple(elements.into(), Some(Arc::new(TupleNames { name, fields, defaults }))))
    }

    /// `Optional[T]`; of an optional or None it is the type itself.
    pub fn optional(element: Type) -> Type {
        match element.kind() {
            TypeKind::Optional(_) | TypeKind::None => element,
            TypeKind::Union(members) if members.contains(&Type::none()) => element,
            TypeKind::Union(members)
                if members.len() == 3
                    && [Type::int(), Type::float(), Type::complex()].iter().all(|n| members.contains(n)) =>
            {
                Type::new(TypeKind::Optional(Type::number()))
            }
            _ => Type::new(TypeKind::Optional(element)),
        }
    }

    /// `Future[T]`
    pub fn future(element: Type) -> Type {
        Type::new(TypeKind::Future(element))
    }

    /// A class by qualified name.
    pub fn class(name: impl Into<Symbol>) -> Type {
        Type::new(TypeKind::Class(name.into()))
    }

    /// An interface by qualified name.
    pub fn interface(name: impl Into<Symbol>) -> Type {
        Type::new(TypeKind::Interface(name.into()))
    }

    /// A type variable.
    pub fn var(name: impl Into<Symbol>) -> Type {
        Type::new(TypeKind::Var(name.into()))
    }

    /// Whether it is a tensor, however refined.
    pub fn is_tensor(&self) -> bool {
        matches!(self.kind(), TypeKind::Tensor(_))
    }

    /// What is known of the tensor, if it is one.
    pub fn as_tensor(&self) -> Option<&TensorType> {
        match self.kind() {
            TypeKind::Tensor(t) => Some(t),
            _ => None,
        }
    }

    /// The element type of a list, optional, future or await.
    pub fn element(&self) -> Option<&Type> {
        match self.kind() {
            TypeKind::List(t)
            | TypeKind::Optional(t)
            | TypeKind::Future(t)
            | TypeKind::Await(t)
            | TypeKind::RRef(t) => Some(t),
            _ => None,
        }
    }

    /// The elements of a tuple.
    pub fn tuple_elements(&self) -> Option<&[Type]> {
        match self.kind() {
            TypeKind::Tuple(elements, _) => Some(elements),
            _ => None,
        }
    }

    /// The qualified name of a class.
    pub fn class_name(&self) -> Option<Symbol> {
        match self.kind() {
            TypeKind::Class(name) => Some(*name),
            _ => None,
        }
    }

    /// Types directly inside this one.
    pub fn contained(&self) -> Vec<&Type> {
        match self.kind() {
            TypeKind::List(t)
            | TypeKind::Optional(t)
            | TypeKind::Future(t)
            | TypeKind::Await(t)
            | TypeKind::RRef(t) => vec![t],
            TypeKind::Dict(k, v) => vec![k, v],
            TypeKind::Tuple(elements, _) | TypeKind::Union(elements) => elements.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls `enter` for this type and the types inside it, shared ones once; it says whether to go inside.
    pub fn visit(&self, enter: &mut dyn FnMut(&Type) -> bool) {
        let mut seen: HashSet<Type> = HashSet::new();
        let mut open = vec![self.clone()];
        while let Some(ty) = open.pop() {
            let parts = ty.contained();
            if !parts.is_empty() && !seen.insert(ty.clone()) {
                continue;
            }
            if enter(&ty) {
                open.extend(parts.into_iter().rev().cloned());
            }
        }
    }

    /// How many types stand directly inside this one in its text.
    pub(super) fn part_count(&self) -> usize {
        match self.kind() {
            TypeKind::Dialect(_, _, parameters) => {
                parameters.iter().filter(|p| matches!(p, TypeParameter::Type(_))).count()
            }
            TypeKind::Tuple(elements, _) | TypeKind::Union(elements) => elements.len(),
            TypeKind::Dict(..) => 2,
            _ => usize::from(self.element().is_some()),
        }
    }

    /// The alternatives of an optional or union; the type itself otherwise.
    pub fn alternatives(&self) -> Vec<Type> {
        match self.kind() {
            TypeKind::Optional(inner) => {
                let mut parts = inner.alternatives();
                parts.push(Type::none());
                parts
            }
            TypeKind::Union(members) => members.to_vec(),
            _ => vec![self.clone()],
        }
    }

    /// Whether a type variable stands anywhere in it.
    pub fn has_free_vars(&self) -> bool {
        self.0.facts.variables
    }
}
