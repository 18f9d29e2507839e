//! Reads what nodes have kept, when their backward needs it: what was written since is refused, and a result has its history again.

use super::history;
use super::node::Node;
use super::saved::Saved;
use crate::diag::{Diagnostic, Result};
use crate::tensor::Tensor;
use crate::value::{List, Value};
use std::sync::Arc;

impl Saved {
    /// The value, for a function of the cell. Fails if it has been written since.
    pub(super) fn unpack(&self, node: &Arc<Node>) -> Result<Value> {
        Ok(match self {
            Saved::Value(value) => value.clone(),
            Saved::Tensor(tensor, version) => {
                check(tensor, *version)?;
                Value::Tensor(tensor.clone())
            }
            Saved::List(element, items) => {
                let mut out = Vec::with_capacity(items.len());
                for item in items {
                    out.push(match item {
                        Some((tensor, version)) => {
                            check(tensor, *version)?;
                            Value::Tensor(tensor.clone())
                        }
                        None => Value::None,
                    });
                }
                Value::List(List::new(element.clone(), out))
            }
            Saved::Result(output, tensor, version) => {
                let again = tensor.detach();
                history::set(&again, node, *output, None);
                if tensor.version() != *version {
                    return Err(modified(&again, *version));
                }
                Value::Tensor(again)
            }
        })
    }
}

fn check(tensor: &Tensor, version: u64) -> Result<()> {
    if tensor.version() == version { Ok(()) } else { Err(modified(tensor, version)) }
}

/// PyTorch's error for a saved tensor that was written afterwards.
fn modified(tensor: &Tensor, version: u64) -> Diagnostic {
    let made = history::of(tensor);
    let which = made.as_ref().map_or(String::new(), |history| {
        format!(", which is output {} of {},", history.output, history.node.shown())
    });
    let type_name = tensor.dtype().tensor_class();
    let message = format!(
        "one of the variables needed for gradient computation has been modified by an inplace operation: \
         [{type_name} {:?}]{which} is at version {}; expected version 0 instead. Hint: enable anomaly detection to find \
         the operation that failed to compute its gradient, with torch.autograd.set_detect_anomaly(True).",
        tensor.sizes().as_slice(),
        tensor.version() - version.min(tensor.version()),
    );
    let error = Diagnostic::runtime(message);
    match made.and_then(|history| history.node.place()) {
        Some(span) => error.label(&span, "made here"),
        None => error,
    }
}
