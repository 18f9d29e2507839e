//! What is asked of attributes, and when two are equal.

use super::{Attr, Graph, Held, Type};
use num_complex::Complex64;
use std::sync::Arc;

impl std::fmt::Debug for Held {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "<{}>", self.class)
    }
}

impl Attr {
    /// Which object it is, of what programs see as mutable: the address of the data, which it keeps alive. None for the others.
    pub fn identity(&self) -> Option<usize> {
        Some(match self {
            Attr::Ints(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::Floats(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::Complexes(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::Strs(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::Tensors(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::List(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            Attr::Dict(x) => Arc::as_ptr(x).cast::<u8>() as usize,
            _ => return None,
        })
    }

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
