//! Who records operations for gradients and computes them: what a layer that has differentiation provides, and what ops may
//! ask of it.

use super::{Node, Op, Outputs, Run};
use crate::diag::{Result, Span};
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::Arc;

/// Computes an op's results from its arguments, without anything being recorded for the op itself.
pub type Compute<'a> = &'a dyn Fn(&[Value]) -> Result<Outputs>;

/// Records operations and computes gradients.
pub trait Autograd: Send + Sync {
    /// Runs an op some operand of which requires gradients, and records it.
    fn call(
        &self,
        op: &Op,
        values: &[Value],
        node: Node<'_>,
        run: &Run,
        compute: Compute<'_>,
    ) -> Result<Outputs>;

    /// Notes which results are views of which operand, for an op that was not recorded.
    fn link_views(&self, op: &Op, values: &[Value], results: &[Value]);

    /// Lets a tensor that an operation made keep its gradient; a leaf does so anyway. Fails where it requires none.
    fn retain(&self, tensor: &Tensor, run: &Run) -> Result<()>;

    /// Whether a tensor that an operation made keeps its gradient.
    fn retains(&self, tensor: &Tensor) -> bool;

    /// Which output of its operation a tensor is; 0 for a leaf.
    fn output_number(&self, tensor: &Tensor, run: &Run) -> Result<usize>;

    /// Records work that ran as one, with nothing recorded, on `values`, and gave `outputs`.
    fn region(&self, region: Arc<dyn Region>, values: &[Value], outputs: &[Tensor], run: &Run) -> Result<()>;

    /// The gradients of the outputs by each input; without inputs they are added to the `grad` of all leaves.
    fn gradients(&self, wanted: &Gradients, run: &Run) -> Result<Vec<Option<Tensor>>>;
}

/// What is asked of [`Autograd::gradients`].
#[derive(Default)]
pub struct Gradients {
    /// What is differentiated.
    pub outputs: Vec<Tensor>,
    /// The gradient of each output; 1 for outputs of one element where None or missing.
    pub cotangents: Vec<Option<Tensor>>,
    /// By what. None: by all leaves.
    pub inputs: Option<Vec<Tensor>>,
    /// Keep what was saved for another time.
    pub keep: bool,
    /// Record the computation of the gradients.
    pub create: bool,
    /// Inputs that the outputs do not depend on have no gradient; otherwise they are an error.
    pub allow_unused: bool,
}

/// Work that is differentiated as one: it has a backward of its own. It does nothing but compute its outputs, and draws no numbers.
pub trait Region: Send + Sync {
    /// What errors call it: an op's full name.
    fn name(&self) -> &str;

    /// Which operands the backward reads.
    fn reads(&self) -> &[bool];

    /// Which outputs depend on an operand that requires grad.
    fn follows(&self) -> &[bool];

    /// Whether recorded op by op it would keep tensors, which are freed after the first backward.
    fn keeps(&self) -> bool;

    /// Does the work op by op, so that it is recorded.
    fn replay(&self, values: Vec<Value>, run: &Run) -> Result<Outputs>;

    /// The gradients of the operands that are wanted, from those of the outputs. Nothing is recorded meanwhile.
    fn backward(
        &self,
        values: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>>;
}

/// A recorded operation.
pub trait Recorded: Send + Sync {
    /// Says where it stands. Only the first call counts.
    fn at(&self, span: &Span);
}
