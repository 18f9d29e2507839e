//! What a lowering knows of the op at hand: its row, its operands, and what is known of them from types and constants.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::dialects::loops::Elem;
use crate::dialects::shapes::{Known, dense};
use crate::ir::{Attr, Dim, Symbol, TensorType, ValueId};
use crate::lowering::Target;

/// An op in a graph, as a lowering sees it. Operands are asked for by their names in the schema.
pub struct OpCall {
    pub(in crate::lowering) row: Op,
    pub(in crate::lowering) operands: Vec<ValueId>,
    pub(in crate::lowering) known: Vec<Known>,
    pub(in crate::lowering) results: Vec<Known>,
    pub(in crate::lowering) attributes: Vec<(Symbol, Attr)>,
    pub(in crate::lowering) target: Target,
}

impl OpCall {
    /// Its row.
    pub fn op(&self) -> &Op {
        &self.row
    }

    /// The kind of machine that loops are arranged for.
    pub fn target(&self) -> Target {
        self.target
    }

    /// An attribute of the op in the graph.
    pub fn attribute(&self, name: &str) -> Option<&Attr> {
        self.attributes.iter().find(|(other, _)| *other == name).map(|(_, attr)| attr)
    }

    fn position(&self, name: &str) -> Result<usize> {
        let schema = self.row.schema()?;
        schema
            .argument_index(name)
            .filter(|n| *n < self.operands.len())
            .ok_or_else(|| Diagnostic::internal(format!("{} has no operand '{name}'", self.row.full_name())))
    }

    /// An operand.
    pub fn operand(&self, name: &str) -> Result<ValueId> {
        self.position(name).map(|n| self.operands[n])
    }

    /// What is known of an operand.
    pub fn known(&self, name: &str) -> Result<&Known> {
        self.position(name).map(|n| &self.known[n])
    }

    /// What is known of a result.
    pub fn result(&self, n: usize) -> &Known {
        self.results.get(n).unwrap_or(&Known::Nothing)
    }

    /// The type of an operand that is a tensor.
    pub fn tensor(&self, name: &str) -> Result<&TensorType> {
        match self.known(name)? {
            Known::Tensor(tensor) => Ok(tensor),
            _ => Err(unknown(&format!("'{name}' is a tensor"))),
        }
    }

    /// The element type of an operand that is a tensor. Kernels do not compute with complex numbers.
    pub fn elem(&self, name: &str) -> Result<Elem> {
        let Some(dtype) = self.tensor(name)?.dtype else {
            return Err(Diagnostic::unsupported(format!("types do not determine the dtype of '{name}'")));
        };
        Elem::of(dtype).ok_or_else(|| {
            Diagnostic::unsupported(format!("kernels do not compute with '{name}' of dtype {}", dtype.name()))
        })
    }

    /// The number of dimensions of an operand that is a tensor.
    pub fn rank(&self, name: &str) -> Result<usize> {
        let sizes = self.tensor(name)?.sizes.as_ref();
        sizes
            .map(|sizes| sizes.len())
            .ok_or_else(|| Diagnostic::unsupported(format!("types do not determine the rank of '{name}'")))
    }

    /// Whether an optional operand is `None`.
    pub fn is_none(&self, name: &str) -> Result<bool> {
        match self.known(name)? {
            Known::None => Ok(true),
            Known::Nothing => Err(unknown(&format!("'{name}' is None"))),
            _ => Ok(false),
        }
    }

    /// An int that is a constant.
    pub fn int(&self, name: &str) -> Result<i64> {
        match self.known(name)? {
            Known::Int(Dim::Known(x)) => Ok(*x),
            _ => Err(not_constant(name)),
        }
    }

    /// A bool that is a constant.
    pub fn bool(&self, name: &str) -> Result<bool> {
        match self.known(name)? {
            Known::Bool(x) => Ok(*x),
            Known::Int(Dim::Known(x)) => Ok(*x != 0),
            _ => Err(not_constant(name)),
        }
    }

    /// A list of ints that are constants.
    pub fn ints(&self, name: &str) -> Result<Vec<i64>> {
        let ints = match self.known(name)? {
            Known::Ints(dims) => dims.iter().map(|dim| dim.known()).collect(),
            _ => None,
        };
        ints.ok_or_else(|| not_constant(name))
    }

    /// A text that is a constant.
    pub fn text(&self, name: &str) -> Result<&str> {
        match self.known(name)? {
            Known::Str(text) => Ok(text),
            _ => Err(not_constant(name)),
        }
    }

    /// A number that is a constant.
    pub fn number(&self, name: &str) -> Result<f64> {
        match self.known(name)? {
            Known::Int(Dim::Known(x)) => Ok(*x as f64),
            Known::Float(x) => Ok(*x),
            Known::Bool(x) => Ok(f64::from(u8::from(*x))),
            _ => Err(not_constant(name)),
        }
    }

    /// Whether types imply that elements of an operand are in row-major order, as kernels store them.
    pub fn is_row_major(&self, name: &str) -> Result<bool> {
        self.tensor(name).map(is_row_major)
    }

    /// The element type of a result that is a tensor.
    pub fn result_elem(&self, n: usize) -> Result<Elem> {
        let dtype = match self.result(n) {
            Known::Tensor(tensor) => tensor.dtype,
            _ => None,
        };
        dtype.and_then(Elem::of).ok_or_else(|| {
            Diagnostic::unsupported(format!("the dtype of result {n} does not follow from types"))
        })
    }

    /// Whether a gradient may flow through the op: then it stays, as kernels record nothing.
    pub(in crate::lowering) fn may_need_gradient(&self) -> bool {
        let floats = |known: &Known| match known {
            Known::Tensor(t) => t.dtype.is_none_or(|d| d.is_floating() || d.is_complex()),
            _ => false,
        };
        let asks = |known: &Known| match known {
            Known::Tensor(t) => floats(known) && t.requires_grad != Some(false),
            Known::Items(items) => {
                items.iter().any(|item| matches!(item, Known::Tensor(t) if t.requires_grad != Some(false)))
            }
            Known::Each(part) => matches!(&**part, Known::Tensor(t) if t.requires_grad != Some(false)),
            _ => false,
        };
        let gives = self.results.is_empty()
            || self.results.iter().any(|known| floats(known) || *known == Known::Nothing);
        gives && self.known.iter().any(asks)
    }
}

/// Whether a type implies that elements are in row-major order.
pub(in crate::lowering) fn is_row_major(ty: &TensorType) -> bool {
    let Some(sizes) = ty.sizes.as_deref() else { return false };
    sizes.is_empty() || (ty.strides.is_some() && ty.strides == dense(sizes))
}

fn unknown(what: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("types do not determine whether {what}"))
}

fn not_constant(name: &str) -> Diagnostic {
    Diagnostic::unsupported(format!("'{name}' is not a constant"))
}
