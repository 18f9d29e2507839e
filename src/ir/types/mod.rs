//! TorchScript's types. A [`Type`] is an immutable shared handle; equal types are the same allocation wherever they
//! were made (`type_table.rs`), so that comparing them takes one step. Classes, interfaces and enums are nominal: the type holds the qualified name, the definition
//! stands in the module.

pub mod schema;
pub mod subtype;
mod table;
pub mod unify;

use super::Symbol;
use crate::tensor::{DType, Device};
use hashbrown::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};
use table::{Facts, Interned, intern};

/// A type.
#[derive(Clone)]
pub struct Type(Arc<Interned>);

/// What a type is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeKind {
    /// Top of the lattice.
    Any,
    /// Any list, tuple, enum or class: in schemas of builtins only.
    AnyList,
    /// See [`TypeKind::AnyList`].
    AnyTuple,
    /// See [`TypeKind::AnyList`].
    AnyEnum,
    /// See [`TypeKind::AnyList`].
    AnyClass,
    /// A tensor and what is known of it.
    Tensor(TensorType),
    /// int, float or complex: the `Scalar` of schemas.
    Number,
    /// 64-bit integer.
    Int,
    /// 64-bit float.
    Float,
    /// Two 64-bit floats.
    Complex,
    /// Truth value.
    Bool,
    /// Text.
    Str,
    /// The type of `None`.
    None,
    /// A device.
    Device,
    /// A dtype in a schema; programs see an int.
    ScalarType,
    /// A layout in a schema; programs see an int.
    Layout,
    /// A memory format in a schema; programs see an int.
    MemoryFormat,
    /// A quantization scheme.
    QScheme,
    /// A stream of a device.
    Stream,
    /// A random generator.
    Generator,
    /// Raw storage.
    Storage,
    /// An opaque object of C++.
    Capsule,
    /// An opaque object of Python.
    PyObject,
    /// A symbolic int, float, bool in a schema.
    SymInt,
    /// See [`TypeKind::SymInt`].
    SymFloat,
    /// See [`TypeKind::SymInt`].
    SymBool,
    /// `List[T]`
    List(Type),
    /// `Dict[K, V]`
    Dict(Type, Type),
    /// `Tuple[A, B]`; a named tuple has a name and its fields' names.
    Tuple(Arc<[Type]>, Option<Arc<TupleNames>>),
    /// `Optional[T]`
    Optional(Type),
    /// `Union[A, B]`, flat and without duplicates.
    Union(Arc<[Type]>),
    /// `Future[T]`
    Future(Type),
    /// `Await[T]`
    Await(Type),
    /// `RRef[T]`
    RRef(Type),
    /// A type variable of a schema: `t`.
    Var(Symbol),
    /// A function as a value.
    Function(Symbol),
    /// A script class or module class by qualified name.
    Class(Symbol),
    /// An interface by qualified name.
    Interface(Symbol),
    /// An enum class by qualified name, with the type of its values.
    Enum(Symbol, Type),
    /// A type of another dialect: `dialect.name<parameters>`.
    Dialect(Symbol, Symbol, Arc<[TypeParameter]>),
}

/// Name and field names of a named tuple.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TupleNames {
    /// Qualified name.
    pub name: Symbol,
    /// One a field.
    pub fields: Vec<Symbol>,
    /// Defaults of the last fields, as type text shows them; their values stand in the module.
    pub defaults: Vec<Symbol>,
}

impl TupleNames {
    /// The default of the n-th field as type text shows it.
    pub fn default_text(&self, n: usize) -> Option<&'static str> {
        let first = self.fields.len().saturating_sub(self.defaults.len());
        n.checked_sub(first).and_then(|i| self.defaults.get(i)).map(|text| text.as_str())
    }
}

/// A parameter of a dialect's type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TypeParameter {
    /// A type.
    Type(Type),
    /// An integer.
    Int(i64),
    /// A name or text.
    Str(Arc<str>),
}

/// What is known of a tensor. The default knows nothing and prints as `Tensor`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct TensorType {
    /// Element type.
    pub dtype: Option<DType>,
    /// Device.
    pub device: Option<Device>,
    /// Sizes; None where the rank is unknown.
    pub sizes: Option<Arc<[Dim]>>,
    /// Strides; None where nothing is known of them.
    pub strides: Option<Arc<[Stride]>>,
    /// Whether gradients are recorded.
    pub requires_grad: Option<bool>,
    /// `Some(true)` for the undefined tensor of autodiff.
    pub undefined: Option<bool>,
    /// A parameter without annotation: the compiler says "(inferred)" in its errors.
    pub inferred: bool,
}

/// One size of a tensor type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dim {
    /// A number.
    Known(i64),
    /// A symbol, `SS(-1)`: equal symbols are equal sizes.
    Symbol(i64),
    /// A size that is left open, `s0`: equal numbers are equal sizes, and each is 2 or more, which is for the maker of the type to check.
    Open(u32),
    /// Not known: `*`.
    Unknown,
}

impl Dim {
    /// The number, where known.
    pub fn known(self) -> Option<i64> {
        match self {
            Dim::Known(n) => Some(n),
            _ => None,
        }
    }
}

/// One stride of a tensor type.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Stride {
    /// A number.
    Known(i64),
    /// A positive number times open sizes, which are in order of their numbers and at least one: `768*s0`.
    Open(i64, Arc<[u32]>),
    /// Not known: `*`.
    Unknown,
}

impl Stride {
    /// The number, where known.
    pub fn known(&self) -> Option<i64> {
        match self {
            Stride::Known(n) => Some(*n),
            _ => None,
        }
    }

    /// Whether nothing is known.
    pub fn is_unknown(&self) -> bool {
        *self == Stride::Unknown
    }
}

impl From<i64> for Stride {
    fn from(n: i64) -> Stride {
        Stride::Known(n)
    }
}

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

    /// The type with every tensor inside it as plain `Tensor`.
    pub fn unshaped(&self) -> Type {
        unify::without_refinements(self)
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

    /// The type without the alternative `None`.
    pub fn without_none(&self) -> Type {
        let parts: Vec<Type> = self.alternatives().into_iter().filter(|t| *t != Type::none()).collect();
        if parts.is_empty() { self.clone() } else { subtype::union(&parts) }
    }

    /// Whether a type variable stands anywhere in it.
    pub fn has_free_vars(&self) -> bool {
        self.0.facts.variables
    }
}

impl PartialEq for Type {
    fn eq(&self, other: &Type) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Type {}

impl Hash for Type {
    fn hash<H: Hasher>(&self, state: &mut H) {
        state.write_u64(self.0.facts.hash);
    }
}

impl fmt::Debug for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
