//! Ops that a device computes by a library where it keeps the tensors: products, convolutions, pooling, attention, copies. Each
//! op of the table is made one or a few calls of a [`Machine`], for strides as they are where the library takes them. A machine
//! knows no op, and nothing here knows what machine there is.

mod calls;
mod copies;
mod layers;
mod machine;
mod operand;
mod product;

pub use calls::{Convolution, Copy, Matrix, Piece, Pool, Product};
pub use copies::Copies;
pub use machine::Machine;

use super::LibraryOp;
use crate::diag::{ErrorKind, Result};
use crate::dialects::{Args, Op, Outputs, Variant};
use calls::unsupported;
use std::sync::Arc;

/// An op by its calls of a machine.
type Run = fn(&dyn Machine, &Args<'_>) -> Result<Option<Outputs>>;

/// The ops that there is a library for, by the beginning of their schemas. Sorted.
const OPS: &[(&str, Run)] = &[
    ("aten::_convolution(", layers::convolution_general),
    ("aten::_convolution.deprecated(", layers::convolution_general),
    ("aten::adaptive_avg_pool2d(", layers::adaptive_avg_pool2d),
    ("aten::addmm(", product::addmm),
    ("aten::avg_pool2d(", layers::avg_pool2d),
    ("aten::bmm(", product::matmul),
    ("aten::cat(", operand::cat),
    ("aten::clone(", operand::clone),
    ("aten::contiguous(", operand::contiguous),
    ("aten::conv1d(", layers::convolution),
    ("aten::conv2d(", layers::convolution),
    ("aten::conv2d.padding(", layers::convolution_padding),
    ("aten::conv3d(", layers::convolution),
    ("aten::convolution(", layers::convolution_general),
    ("aten::flatten.using_ints(", operand::flatten),
    ("aten::linear(", product::linear),
    ("aten::matmul(", product::matmul),
    ("aten::max_pool2d(", layers::max_pool2d),
    ("aten::mm(", product::matmul),
    ("aten::pad(", operand::pad),
    ("aten::reshape(", operand::reshape),
    ("aten::roll(", operand::roll),
    ("aten::scaled_dot_product_attention(", product::attention),
    ("aten::to.dtype(", operand::to_dtype),
];

/// What computes an op on a machine, where there is a library for it.
pub fn for_op(machine: &Arc<dyn Machine>, op: &Op) -> Option<Arc<dyn LibraryOp>> {
    let schema = op.schema_text();
    let (_, run) =
        OPS.iter().find(|(start, _)| op.variant() == Variant::Plain && schema.starts_with(start))?;
    Some(Arc::new(OnMachine { machine: Arc::clone(machine), run: *run }))
}

struct OnMachine {
    machine: Arc<dyn Machine>,
    run: Run,
}

impl LibraryOp for OnMachine {
    fn run(&self, args: &Args<'_>) -> Result<Option<Outputs>> {
        match (self.run)(&*self.machine, args) {
            // The row reports what is wrong with a call in PyTorch's wording.
            Err(error) if error.kind() == ErrorKind::Raised => Err(unsupported("such a call")),
            done => done,
        }
    }
}
