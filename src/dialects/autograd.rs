//! What is asked of who computes gradients, and of what was recorded. Ops and runs are not known here.

use crate::diag::Span;
use crate::tensor::Tensor;

/// What is asked of [`super::Autograd::gradients`].
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

/// A recorded operation.
pub trait Recorded: Send + Sync {
    /// Says where it stands. Only the first call counts.
    fn at(&self, span: &Span);
}
