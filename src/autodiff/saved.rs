//! What a node keeps for its backward.

use super::cell::{Keep, Parameter};
use super::history;
use super::node::Node;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Type, TypeKind};
use crate::tensor::{Layout, Tensor};
use crate::value::{List, Value};
use std::sync::Arc;

/// A value that a node keeps.
pub(super) enum Saved {
    /// No tensor, or one whose elements are not read.
    Value(Value),
    /// A tensor, at a version.
    Tensor(Tensor, u64),
    /// A list of tensors, some of which may be missing.
    List(Type, Vec<Option<(Tensor, u64)>>),
    /// A result of the node, kept without its history so that the node does not keep itself.
    Result(usize, Tensor, u64),
}

impl Saved {
    /// Keeps an argument.
    pub(super) fn argument(value: &Value, keep: Keep) -> Result<Saved> {
        Ok(match value {
            Value::Tensor(t) if keep != Keep::All => Saved::Value(Value::Tensor(stand_in(t, keep)?)),
            Value::Tensor(t) => Saved::Tensor(t.clone(), t.version()),
            Value::List(list) if holds_tensors(list.element_type()) => {
                let item = |value: Value| match value {
                    Value::Tensor(t) => {
                        let version = t.version();
                        Some((t, version))
                    }
                    _ => None,
                };
                Saved::List(list.element_type().clone(), list.to_vec().into_iter().map(item).collect())
            }
            // The program may change its list afterwards.
            Value::List(list) => Saved::Value(Value::list(list.element_type().clone(), list.to_vec())),
            other => Saved::Value(other.clone()),
        })
    }

    /// Keeps the sizes of a list of tensors.
    pub(super) fn sizes(value: &Value) -> Result<Saved> {
        let mut all = Vec::new();
        for item in value.to_list()?.items().iter() {
            all.push(match item {
                Value::Tensor(t) => Value::ints(t.sizes().iter().copied()),
                _ => Value::ints([]),
            });
        }
        Ok(Saved::Value(Value::list(Type::list(Type::int()), all)))
    }

    /// Keeps a result; `output` counts the tensors of all results.
    pub(super) fn result(value: &Value, output: usize, keep: Keep) -> Result<Saved> {
        Ok(match value {
            Value::Tensor(t) if keep != Keep::All => Saved::Value(Value::Tensor(stand_in(t, keep)?)),
            Value::Tensor(t) => Saved::Result(output, t.detach(), t.version()),
            other => Saved::argument(other, keep)?,
        })
    }

    /// The same after the op has run: what the op itself wrote, running statistics for instance, is not a later write.
    pub(super) fn as_of_now(self) -> Saved {
        match self {
            Saved::Tensor(tensor, _) => {
                let version = tensor.version();
                Saved::Tensor(tensor, version)
            }
            other => other,
        }
    }

    /// The same, ignoring writes.
    pub(super) fn as_written(self) -> Saved {
        match self {
            Saved::Tensor(tensor, _) => Saved::Value(Value::Tensor(tensor)),
            other => other,
        }
    }

    /// Whether it holds elements, which are freed after the first backward.
    pub(super) fn holds_elements(&self) -> bool {
        !matches!(self, Saved::Value(_))
    }

    /// The value of an argument regardless of later writes: for one whose elements are not read.
    pub(super) fn as_it_is(&self) -> Value {
        match self {
            Saved::Value(value) => value.clone(),
            Saved::Tensor(tensor, _) | Saved::Result(_, tensor, _) => Value::Tensor(tensor.clone()),
            Saved::List(element, items) => {
                let item = |item: &Option<(Tensor, u64)>| {
                    item.as_ref().map_or(Value::None, |(t, _)| Value::Tensor(t.clone()))
                };
                Value::List(List::new(element.clone(), items.iter().map(item).collect()))
            }
        }
    }

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

fn holds_tensors(element: &Type) -> bool {
    element.is_tensor() || matches!(element.kind(), TypeKind::Optional(inner) if inner.is_tensor())
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

/// A tensor of the same type and sizes that keeps no elements; with the layout, one that is never read.
fn stand_in(tensor: &Tensor, keep: Keep) -> Result<Tensor> {
    let snapshot = tensor.snapshot();
    if keep == Keep::Layout || snapshot.dtype.is_quantized() {
        return Ok(tensor.detach());
    }
    let one = Tensor::zeros(snapshot.dtype, &[1])?;
    let strides = snapshot.layout.sizes.iter().map(|_| 0).collect();
    one.with_layout(Layout { sizes: snapshot.layout.sizes, strides, offset: 0 })
}

/// Keeps what a parameter stands for, before the op runs; None for what is known only afterwards.
pub(super) fn before(parameter: Parameter, values: &[Value], attributes: &[Value]) -> Result<Option<Saved>> {
    let at = |values: &[Value], index: usize| values.get(index).cloned().unwrap_or_default();
    Ok(match parameter {
        Parameter::Argument { index, keep } => Some(Saved::argument(&at(values, index), keep)?),
        Parameter::Sizes(index) => Some(Saved::sizes(&at(values, index))?),
        Parameter::Attribute(index) => Some(Saved::Value(at(attributes, index))),
        Parameter::Result { .. }
        | Parameter::Grad(_)
        | Parameter::Grads
        | Parameter::Former
        | Parameter::Needs => None,
    })
}
