//! Inputs of a fusion group: what plans are made for, whether a call has such inputs, and what its launches need of them. Each
//! input is examined once.

use crate::diag::{Diagnostic, Result};
use crate::lowering::InputSig;
use crate::tensor::{Layout, Scalar, Snapshot, Storage};
use crate::value::Value;
use smallvec::SmallVec;

/// Kinds and dtypes of inputs.
pub(super) type Signature = SmallVec<[InputSig; 12]>;

/// The inputs that a plan was made for.
pub(super) struct Takes {
    signature: Signature,
    /// Of tensors.
    layouts: Vec<Option<Layout>>,
}

/// What launches need of the inputs of a call that a plan takes.
pub(super) struct Given(SmallVec<[Piece; 8]>);

enum Piece {
    Memory(Storage),
    Number(Scalar),
}

/// The inputs of a call, each as it was at one moment.
pub(super) struct Inputs(Vec<Input>);

enum Input {
    Tensor(Snapshot),
    Number(Scalar),
}

impl Takes {
    pub(super) fn signature(&self) -> &[InputSig] {
        &self.signature
    }

    pub(super) fn layouts(&self) -> &[Option<Layout>] {
        &self.layouts
    }

    /// What launches need of values; None where the plan was made for others.
    pub(super) fn given(&self, values: &[Value]) -> Option<Given> {
        if values.len() != self.signature.len() {
            return None;
        }
        let expected = self.signature.iter().zip(&self.layouts);
        let pieces = values.iter().zip(expected).map(|(value, (sig, layout))| match value {
            Value::Tensor(tensor) => tensor.with_meta(|meta| {
                let fits = meta.lengths.is_none()
                    && signature_of(meta) == *sig
                    && layout.as_ref() == Some(&meta.layout);
                fits.then(|| Piece::Memory(meta.storage.clone()))
            }),
            other => {
                let number = number(other)?;
                (signature_of_number(number) == *sig).then_some(Piece::Number(number))
            }
        });
        pieces.collect::<Option<_>>().map(Given)
    }
}

impl Given {
    pub(super) fn memory(&self, n: usize) -> Result<&Storage> {
        match self.0.get(n) {
            Some(Piece::Memory(storage)) => Ok(storage),
            _ => Err(Diagnostic::internal("a number where a kernel reads a tensor")),
        }
    }

    /// Whether an input can be written to while the others are read: it shares memory with none of them, and is memory of the host
    /// that is ours.
    pub(super) fn is_apart(&self, n: usize) -> bool {
        let Ok(own) = self.memory(n) else { return false };
        let shares = |(m, piece): (usize, &Piece)| match piece {
            Piece::Memory(other) => m != n && other.same(own),
            Piece::Number(_) => false,
        };
        !own.is_foreign() && !self.0.iter().enumerate().any(shares)
    }

    pub(super) fn number(&self, n: usize) -> Result<Scalar> {
        match self.0.get(n) {
            Some(Piece::Number(number)) => Ok(*number),
            _ => Err(Diagnostic::internal("a tensor where a kernel takes a number")),
        }
    }
}

impl Inputs {
    /// Fails with `Unsupported` for what a kernel cannot take.
    pub(super) fn of(values: &[Value]) -> Result<Inputs> {
        let input = |value: &Value| match value {
            Value::Tensor(t) if t.lengths().is_none() => Ok(Input::Tensor(t.snapshot())),
            Value::Tensor(_) => Err(Diagnostic::unsupported("fused kernels take no nested tensors")),
            other => number(other).map(Input::Number).ok_or_else(|| {
                Diagnostic::unsupported(format!("fused kernels take no inputs of type {}", other.kind_name()))
            }),
        };
        values.iter().map(input).collect::<Result<_>>().map(Inputs)
    }

    /// Kinds and dtypes.
    pub(super) fn signature(&self) -> Signature {
        let one = |input: &Input| match input {
            Input::Tensor(t) => signature_of(t),
            Input::Number(number) => signature_of_number(*number),
        };
        self.0.iter().map(one).collect()
    }

    /// The sizes and strides of tensors; None for numbers.
    pub(super) fn layouts(&self) -> Vec<Option<Layout>> {
        self.0.iter().map(|input| input.layout().cloned()).collect()
    }

    /// What a plan for such inputs takes.
    pub(super) fn takes(&self) -> Takes {
        Takes { signature: self.signature(), layouts: self.layouts() }
    }

    /// Whether a plan for inputs of the same dtypes was made for such layouts.
    pub(super) fn have_layouts(&self, takes: &Takes) -> bool {
        let layouts = &takes.layouts;
        self.0.len() == layouts.len() && self.0.iter().zip(layouts).all(|(i, l)| i.layout() == l.as_ref())
    }

    /// What launches of a plan for these inputs need of them.
    pub(super) fn given(&self) -> Given {
        let piece = |input: &Input| match input {
            Input::Tensor(snapshot) => Piece::Memory(snapshot.storage.clone()),
            Input::Number(number) => Piece::Number(*number),
        };
        Given(self.0.iter().map(piece).collect())
    }
}

impl Input {
    fn layout(&self) -> Option<&Layout> {
        match self {
            Input::Tensor(snapshot) => Some(&snapshot.layout),
            Input::Number(_) => None,
        }
    }
}

fn number(value: &Value) -> Option<Scalar> {
    match value {
        Value::Int(x) => Some(Scalar::Int(*x)),
        Value::Float(x) => Some(Scalar::Float(*x)),
        Value::Bool(x) => Some(Scalar::Bool(*x)),
        _ => None,
    }
}

fn signature_of(tensor: &Snapshot) -> InputSig {
    InputSig::Tensor(tensor.dtype, tensor.layout.rank() > 0)
}

fn signature_of_number(number: Scalar) -> InputSig {
    match number {
        Scalar::Int(_) => InputSig::Int,
        Scalar::Bool(_) => InputSig::Bool,
        _ => InputSig::Float,
    }
}
