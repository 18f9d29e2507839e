//! Attributes: immutable data that stand on an op.

use super::{Graph, Type};
use crate::tensor::{Device, Tensor};
use num_complex::Complex64;
use std::any::Any;
use std::sync::Arc;

/// The value of an attribute. The plural kinds are TorchScript's own flat lists; the last group is what it
/// calls an `ival`: constants of container and other types.
#[derive(Clone, Debug)]
pub enum Attr {
    /// `[n=1]`
    Int(i64),
    /// `[p=0.5]`
    Float(f64),
    /// `[z=1+2j]`
    Complex(Complex64),
    /// `[s="text"]`
    Str(Arc<str>),
    /// `[value=<Tensor>]`, by handle.
    Tensor(Tensor),
    /// `[Subgraph=<Graph>]`
    Graph(Arc<Graph>),
    /// `[T=int]`
    Type(Type),
    /// `[shape=[1, 2]]`
    Ints(Arc<[i64]>),
    /// `[scales=[0.5, 1.]]`
    Floats(Arc<[f64]>),
    /// List of complex numbers.
    Complexes(Arc<[Complex64]>),
    /// `[names=["a", "b"]]`
    Strs(Arc<[Arc<str>]>),
    /// List of tensors.
    Tensors(Arc<[Tensor]>),
    /// List of graphs.
    Graphs(Arc<[Arc<Graph>]>),
    /// List of types.
    Types(Arc<[Type]>),
    /// A truth value (a constant of type `bool`; TorchScript stores 0 or 1).
    Bool(bool),
    /// No value.
    None,
    /// A device constant.
    Device(Device),
    /// A constant list of anything.
    List(Arc<[Attr]>),
    /// A constant tuple.
    Tuple(Arc<[Attr]>),
    /// A constant dictionary, in insertion order.
    Dict(Arc<[(Attr, Attr)]>),
    /// A member of an enum class: class name, member name, value.
    Enum(Arc<(String, String, Attr)>),
    /// An object of a custom class, by handle: packed weights in a frozen model.
    Object(Held),
    /// Anything a foreign dialect wrote between the brackets; kept to the letter.
    Raw(Arc<str>),
}

/// What an object of a custom class holds, which this layer does not look into.
#[derive(Clone)]
pub struct Held {
    /// Qualified name of the class.
    pub class: super::Symbol,
    /// Its content.
    pub content: Arc<dyn Any + Send + Sync>,
}

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", self.class)
    }
}

impl Attr {
    /// The integer, if it is one.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Attr::Int(x) => Some(*x),
            Attr::Bool(x) => Some(i64::from(*x)),
            _ => None,
        }
    }

    /// The text, if it is one.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Attr::Str(x) => Some(x),
            _ => None,
        }
    }

    /// The graph, if it is one.
    pub fn as_graph(&self) -> Option<&Arc<Graph>> {
        match self {
            Attr::Graph(x) => Some(x),
            _ => None,
        }
    }

    /// The type, if it is one.
    pub fn as_type(&self) -> Option<&Type> {
        match self {
            Attr::Type(x) => Some(x),
            _ => None,
        }
    }
}

/// A list of attributes in its flat form, where all elements are of one kind that has one.
pub(super) fn pack(values: Vec<Attr>) -> Attr {
    macro_rules! flat {
        ($kind:ident, $list:ident) => {
            if values.iter().all(|v| matches!(v, Attr::$kind(_))) {
                let flat =
                    values.iter().filter_map(|v| if let Attr::$kind(x) = v { Some(x.clone()) } else { None });
                return Attr::$list(flat.collect());
            }
        };
    }
    if !values.is_empty() {
        flat!(Int, Ints);
        flat!(Float, Floats);
        flat!(Complex, Complexes);
        flat!(Str, Strs);
        flat!(Tensor, Tensors);
        flat!(Type, Types);
    }
    Attr::List(values.into())
}

/// Equal attributes are interchangeable: floats compare by bits, tensors, graphs and objects by identity.
impl PartialEq for Attr {
    fn eq(&self, other: &Attr) -> bool {
        let bits = |x: &f64, y: &f64| x.to_bits() == y.to_bits();
        let complex = |x: &Complex64, y: &Complex64| bits(&x.re, &y.re) && bits(&x.im, &y.im);
        match (self, other) {
            (Attr::Int(a), Attr::Int(b)) => a == b,
            (Attr::Float(a), Attr::Float(b)) => bits(a, b),
            (Attr::Complex(a), Attr::Complex(b)) => complex(a, b),
            (Attr::Str(a), Attr::Str(b)) | (Attr::Raw(a), Attr::Raw(b)) => a == b,
            (Attr::Tensor(a), Attr::Tensor(b)) => a.same(b),
            (Attr::Graph(a), Attr::Graph(b)) => Arc::ptr_eq(a, b),
            (Attr::Type(a), Attr::Type(b)) => a == b,
            (Attr::Ints(a), Attr::Ints(b)) => a == b,
            (Attr::Floats(a), Attr::Floats(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| bits(x, y))
            }
            (Attr::Complexes(a), Attr::Complexes(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| complex(x, y))
            }
            (Attr::Strs(a), Attr::Strs(b)) => a == b,
            (Attr::Tensors(a), Attr::Tensors(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| x.same(y))
            }
            (Attr::Graphs(a), Attr::Graphs(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(x, y)| Arc::ptr_eq(x, y))
            }
            (Attr::Types(a), Attr::Types(b)) => a == b,
            (Attr::Bool(a), Attr::Bool(b)) => a == b,
            (Attr::None, Attr::None) => true,
            (Attr::Device(a), Attr::Device(b)) => a == b,
            (Attr::List(a), Attr::List(b)) | (Attr::Tuple(a), Attr::Tuple(b)) => a == b,
            (Attr::Dict(a), Attr::Dict(b)) => a == b,
            (Attr::Enum(a), Attr::Enum(b)) => a == b,
            (Attr::Object(a), Attr::Object(b)) => Arc::ptr_eq(&a.content, &b.content),
            _ => false,
        }
    }
}
