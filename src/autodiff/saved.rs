//! What a node keeps for its backward. Knows no node.

use super::cell::{Keep, Parameter};
use crate::diag::Result;
use crate::ir::{Type, TypeKind};
use crate::tensor::{Layout, Tensor};
use crate::value::{List, Value};

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
}

fn holds_tensors(element: &Type) -> bool {
    element.is_tensor() || matches!(element.kind(), TypeKind::Optional(inner) if inner.is_tensor())
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
