//! What a name or expression can stand for besides a value.

use super::iterate::Iterable;
use crate::frontend::script::ast::Def;
use crate::ir::{Attr, Symbol, Type, ValueId};
use crate::tensor::DType;
use std::rc::Rc;

/// A value, or something that the compiler alone knows how to use.
#[derive(Clone, Debug)]
pub(super) enum Sugared {
    /// A value of the graph.
    Value(ValueId),
    /// Several of them, not yet made a tuple.
    Tuple(Vec<Sugared>),
    /// A function of the program.
    Function(Symbol),
    /// A method with its object.
    Method(ValueId, Symbol),
    /// A class to construct, and whose static methods can be called.
    Class(Symbol),
    /// A named tuple to construct.
    NamedTuple(Type),
    /// An enum class, whose members are attributes.
    EnumClass(Symbol),
    /// An operator, with its first argument if it is a method of that.
    Builtin(Symbol, Option<ValueId>),
    /// A module of Python that only holds names: `torch`, `torch.nn.functional`, `math`, `ops.prim`.
    Namespace(String),
    /// A builtin function with rules of its own.
    Special(Special),
    /// `int`, `float`, `bool`, `complex`, `str`: conversion, and a type for `isinstance`.
    Cast(Symbol),
    /// An exception class.
    Exception(String),
    /// A method that converts a tensor to a dtype.
    TensorCast(ValueId, DType),
    /// A constant that is materialized where it is used.
    Constant(Type, Attr),
    /// Something to iterate over: `range(n)`, `zip(a, b)`, `enumerate(a)`.
    Iterable(Box<Iterable>),
    /// `slice(a, b, c)`.
    Slice(Vec<ValueId>),
    /// A type as an expression (`Tensor`, `List[int]`), for `annotate`, `isinstance`.
    Type(Type),
    /// A context manager that leaves no trace in the graph or one of the grad mode.
    Context(Context),
    /// `super()` and the like: named in messages only.
    Unusable(String),
    /// `CONSTANTS` of an archive.
    Constants,
    /// `Class.__new__`: makes an object without running `__init__`.
    New(Symbol),
    /// A function inside of a function, to be given to `fork`.
    Closure(Rc<Def>),
}

/// Builtin functions with rules of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Special {
    Print,
    Len,
    Range,
    Enumerate,
    Zip,
    IsInstance,
    HasAttr,
    GetAttr,
    Annotate,
    Uninitialized,
    UncheckedCast,
    Fork,
    Awaitable,
    Tuple,
    List,
    Dict,
    Slice,
    Sorted,
    MinMax(&'static str),
    Abs,
    IsScripting,
    IsTracing,
    Super,
    ToTensor,
    UnwrapOptional,
    RangeList,
    Type,
    Interpolate,
    GetItemConst,
}

impl Special {
    /// Whether it is a function to PyTorch, and not a form of the language: its call then stands where its name does.
    pub(super) fn is_builtin(self) -> bool {
        matches!(
            self,
            Special::Print
                | Special::Len
                | Special::Sorted
                | Special::MinMax(_)
                | Special::Abs
                | Special::ToTensor
                | Special::UnwrapOptional
        )
    }
}

/// Context managers that the compiler knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// `torch.no_grad()`
    NoGrad,
    /// `torch.enable_grad()`
    EnableGrad,
    /// `torch.autograd.profiler.record_function(name)`
    RecordFunction,
    /// `torch.jit.strict_fusion()`
    StrictFusion,
}

impl Sugared {
    /// How messages call it.
    pub(super) fn kind_name(&self) -> &'static str {
        match self {
            Sugared::Value(_) => "value",
            Sugared::Tuple(_) => "Tuple",
            Sugared::Function(_) => "function",
            Sugared::Method(..) => "method",
            Sugared::Class(_) | Sugared::NamedTuple(_) | Sugared::EnumClass(_) => "class",
            Sugared::Builtin(..) => "builtin",
            Sugared::Namespace(_) => "module",
            Sugared::Special(_) | Sugared::Cast(_) => "builtin",
            Sugared::Exception(_) => "exception",
            Sugared::Constant(..) => "constant",
            Sugared::Iterable(_) => "iterable",
            Sugared::Slice(_) => "slice",
            Sugared::Type(_) => "type",
            Sugared::Context(_) => "context manager",
            Sugared::Unusable(_) => "python value",
            Sugared::Constants => "constants",
            Sugared::New(_) => "constructor",
            Sugared::TensorCast(..) => "method",
            Sugared::Closure(_) => "function",
        }
    }
}
