//! What a tensor knows of how it was made.

use super::node::{Node, Work, output_of};
use crate::tensor::Tensor;
use std::sync::Arc;

/// The operation that made a tensor.
pub(super) struct History {
    pub(super) node: Arc<Node>,
    /// Which of its outputs the tensor is.
    pub(super) output: usize,
    /// The version of the storage when this was noted: a view's history is worked out anew after writes.
    pub(super) version: u64,
    /// Of one of several views that one operation gave: the operation's name. It must not be written in place.
    pub(super) one_of: Option<String>,
}

/// The history of a tensor, if it has one.
pub(super) fn of(tensor: &Tensor) -> Option<Arc<History>> {
    tensor.grad_node()?.downcast::<History>().ok()
}

/// Says that a tensor is an output of a node.
pub(super) fn set(tensor: &Tensor, node: &Arc<Node>, output: usize, one_of: Option<String>) {
    let history = History { node: Arc::clone(node), output, version: tensor.version(), one_of };
    // Only floating point and complex tensors come here.
    let retained = of(tensor).is_some_and(|former| former.node.release(tensor));
    if retained {
        node.retain(output, tensor);
    }
    if tensor.set_requires_grad(true).is_ok() {
        tensor.set_grad_node(Some(Arc::new(history)));
    }
}

impl Node {
    /// Gives a zero gradient of an operand the history that the node has: zero in every order, but not undefined.
    pub(super) fn gives_zero(&self, zero: &Tensor) {
        let again = Node::new(self.name.clone(), Work::Nothing, self.operands.clone(), vec![output_of(zero)]);
        set(zero, &again, 0, None);
    }
}
