//! What a name or expression can stand for besides a value.

use crate::frontend::script::ast::Def;
use crate::frontend::script::library::Dispatch;
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
    /// Functions of Python's library, the first of which that takes the arguments is called.
    Overloaded(Vec<Symbol>),
    /// Functions of Python's library, one of which literal flags choose; with the module that they lie in.
    Dispatch(&'static str, &'static Dispatch),
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
    /// An exception class, by its name: without `builtins`, or with the module that it is of.
    Exception(String),
    /// An exception with its message and, where Python shows it, the qualified name of its class.
    Raised(ValueId, Option<ValueId>),
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
    /// A class of Python that TorchScript cannot use (`map`, `set`, `type`), by its name.
    Python(&'static str),
    /// Nothing at all: what `print` gives.
    Nothing,
    /// `CONSTANTS` of an archive.
    Constants,
    /// `Class.__new__`: makes an object without running `__init__`.
    New(Symbol),
    /// A method of a container of modules that gives these.
    Items(Vec<Sugared>),
    /// A value of the program around the text, by its number and the name of its class.
    Hosted(u64, String),
    /// A function inside of a function, to be given to `fork`.
    Closure(Rc<Def>),
}

/// Something to iterate over.
#[derive(Clone, Debug)]
pub(super) enum Iterable {
    /// A list, tensor or string, element by element.
    Indexed(ValueId),
    /// `range(end)` or `range(start, end, step)`.
    Range { start: Option<ValueId>, end: ValueId, step: Option<ValueId> },
    /// Several side by side; the shortest ends it.
    Zip(Vec<Iterable>),
    /// A tuple, which is unrolled.
    Unrolled(Vec<Sugared>),
    /// `enumerate(x, start)`.
    Enumerate(ValueId, Box<Iterable>),
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
    ToList(ValueId),
    /// `tensor.__getitem__`
    TensorItem(ValueId),
    IsScripting,
    IsTracing,
    ToTensor,
    UnwrapOptional,
    RangeList,
    /// `torch._check(cond, message)`
    Check,
    /// `torch.LongTensor` and similar functions.
    LegacyTensor(DType),
}

/// Context managers that the compiler knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Context {
    /// `torch.no_grad()`
    NoGrad,
    /// `torch.autograd.profiler.record_function(name)`
    RecordFunction,
}

impl Sugared {
    /// How PyTorch's messages call it.
    pub(super) fn kind_name(&self) -> String {
        match self {
            Sugared::Value(_) => "value",
            Sugared::Tuple(_) => "Tuple",
            Sugared::Function(_) | Sugared::Overloaded(_) | Sugared::Dispatch(..) => "function",
            Sugared::Method(..) => "method",
            Sugared::Class(_) => "type",
            Sugared::NamedTuple(_) => "namedtuple_constructor",
            Sugared::EnumClass(_) => "type",
            Sugared::Builtin(kind, None) => match kind.as_str() {
                "aten::hex" => "__hex__",
                "aten::oct" => "__oct__",
                "aten::round" => "__round__",
                _ => "builtin",
            },
            Sugared::Builtin(..) => "builtin",
            Sugared::Namespace(_) => return python_kind("module"),
            Sugared::Special(special) => special.name(),
            Sugared::Cast(name) => return format!("__{name}__"),
            Sugared::TensorCast(..) => "Cast",
            Sugared::Exception(_) => "Python exception",
            Sugared::Raised(..) => "exception message",
            Sugared::Constant(..) => "constant",
            Sugared::Iterable(iterable) => match **iterable {
                Iterable::Range { .. } => "range",
                _ => "iterabletree",
            },
            Sugared::Slice(_) => "Python slice value",
            Sugared::Type(_) | Sugared::Python(_) => return python_kind("type"),
            Sugared::Context(_) => "context manager",
            Sugared::Nothing => "None",
            Sugared::Constants => "constants",
            Sugared::New(_) => "constructor",
            Sugared::Closure(_) => "closure",
            Sugared::Items(_) => "method",
            Sugared::Hosted(_, class) => return python_kind(class),
        }
        .to_string()
    }
}

impl Iterable {
    /// The trip count, where the loop must be unrolled.
    pub(super) fn unrolled_len(&self) -> Option<usize> {
        match self {
            Iterable::Unrolled(items) => Some(items.len()),
            Iterable::Zip(parts) => parts.iter().filter_map(Iterable::unrolled_len).min(),
            Iterable::Enumerate(_, inner) => inner.unrolled_len(),
            Iterable::Indexed(_) | Iterable::Range { .. } => None,
        }
    }
}

fn python_kind(of: &str) -> String {
    format!(
        "python value of type '{of}' cannot be used as a value. Perhaps it is a closed over global variable? If so, please consider passing it in as an argument or use a local variable instead."
    )
}

impl Special {
    fn name(self) -> &'static str {
        match self {
            Special::Print => "print",
            Special::Len => "__len__",
            Special::Range => "range",
            Special::Enumerate => "enumerate",
            Special::Zip => "zip",
            Special::IsInstance => "isinstance",
            Special::HasAttr => "HasAttr",
            Special::GetAttr => "GetAttr",
            Special::Annotate => "annotate",
            Special::Uninitialized => "Uninitialized",
            Special::UncheckedCast => "unchecked_cast",
            Special::Fork => "fork",
            Special::Awaitable => "awaitable",
            Special::Tuple => "TupleConstruct",
            Special::List => "list",
            Special::Dict => "dict",
            Special::Slice => "slice",
            Special::Sorted | Special::UnwrapOptional | Special::RangeList => "builtin",
            Special::IsScripting | Special::IsTracing => "builtin",
            Special::ToTensor => "cast",
            Special::Check => "torch_check",
            Special::LegacyTensor(_) => "tensor constructor",
            Special::ToList(_) => "tolist",
            Special::TensorItem(_) => "__getitem__",
        }
    }
}
