//! What an optimizer keeps from step to step. Takes no step.

use crate::ir::Type;
use crate::tensor::Tensor;
use crate::value::{Dict, List};

/// What is kept of a parameter.
pub(super) struct State {
    pub(super) tensors: Dict,
    pub(super) steps: i64,
    /// Whether a step found all that it keeps.
    pub(super) complete: bool,
}

impl Default for State {
    fn default() -> State {
        State { tensors: Dict::new(Type::str(), Type::tensor()), steps: 0, complete: false }
    }
}

/// What L-BFGS keeps of all parameters.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) evaluations: i64,
    pub(super) iterations: i64,
    pub(super) direction: Option<Tensor>,
    pub(super) length: f64,
    pub(super) pairs: Option<List>,
    pub(super) steps: Option<List>,
    pub(super) inverse: Option<List>,
    pub(super) scale: Option<Tensor>,
    pub(super) gradient: Option<Tensor>,
    pub(super) loss: f64,
}
