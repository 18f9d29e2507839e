//! What a type is: its kinds, what is known of tensors, and the handle by which types hold types. Only definitions; how types are
//! kept stands in `table`, what is asked of them in the module above.

use crate::ir::Symbol;
use crate::tensor::{DType, Device};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A type.
#[derive(Clone)]
pub struct Type(pub(super) Arc<Interned>);

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

/// A type and what is asked of it often.
pub(in crate::ir) struct Interned {
    pub(in crate::ir) kind: TypeKind,
    pub(in crate::ir) facts: Facts,
}

/// What holds of a type with everything inside it, each found from the facts of its direct parts.
#[derive(Clone, Copy)]
pub(in crate::ir) struct Facts {
    /// Of the structure; equal for equal types within one process.
    pub(in crate::ir) hash: u64,
    /// At least as many bytes as graph text needs, unfolded.
    pub(in crate::ir) graph_text: u64,
    /// At least as many bytes as annotations and `str` need: named tuples are names there.
    pub(in crate::ir) name_text: u64,
    /// How deep types stand in it; 1 without parts.
    pub(in crate::ir) depth: u32,
    /// Whether a type variable stands in it.
    pub(super) variables: bool,
    /// Whether a tensor of which something is known stands in it.
    pub(super) refined: bool,
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
