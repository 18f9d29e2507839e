//! Ops that write one value to some elements in place, on tensors of which several elements are one in memory (expanded ones): what
//! any of these elements gets, all have. PyTorch takes them with a warning; other ops refuse such tensors.

use crate::diag::Result;
use crate::dialects::{Compute, Fact, Op, Outputs, Run, Variant, one};
use crate::resources::memory;
use crate::tensor::{DType, Layout, Scalar, Tensor};
use crate::value::Value;

/// The result where the op writes one value to an expanded tensor, or a value that is an element of the tensor; None where the op
/// is another one, or can be called as it is. `compute` runs the op on other arguments.
pub(super) fn call(op: &Op, values: &[Value], run: &Run, compute: Compute<'_>) -> Result<Option<Outputs>> {
    let Some(Fact::Fills(place, like)) = op.def().facts.iter().find(|fact| matches!(fact, Fact::Fills(..)))
    else {
        return Ok(None);
    };
    let (Variant::InPlace, Some(Value::Tensor(target))) = (op.variant(), values.first()) else {
        return Ok(None);
    };
    let value = match values.get(*place) {
        Some(Value::Tensor(value)) if value.numel() != 1 => return Ok(None),
        Some(Value::Tensor(value)) if value.rank() == 0 && value.storage().same(&target.storage()) => {
            Some(Value::from(value.copy()?))
        }
        _ => None,
    };
    let is_expanded = target.layout().has_internal_overlap() && !values.iter().skip(place + 1).any(is_true);
    if !is_expanded && value.is_none() {
        return Ok(None);
    }
    let with = |target: &Tensor, value: Option<Value>| -> Result<()> {
        let mut values = values.to_vec();
        values[0] = target.clone().into();
        if let (Some(place), Some(value)) = (values.get_mut(*place), value) {
            *place = value;
        }
        compute(&values).map(drop)
    };
    if is_expanded {
        let name = op.name().as_str().rsplit("::").next().unwrap_or_default();
        run.warn(format!(
            "Use of {name} on expanded tensors is deprecated. Please clone() the tensor before performing this operation. This \
             also applies to advanced indexing e.g. {like}"
        ))?;
        // What is written, and where: the same op marks zeros.
        let (filled, marks) = (target.copy()?, Tensor::zeros(DType::U8, &target.sizes())?);
        with(&filled, value)?;
        let one = match values.get(*place) {
            Some(Value::Tensor(value)) => Tensor::full(DType::U8, &value.sizes(), Scalar::Int(1))?.into(),
            _ => Value::Int(1),
        };
        with(&marks, Some(one))?;
        write_marked(target, &filled, &marks)?;
    } else {
        with(target, value)?;
    }
    one(target.clone()).map(Some)
}

/// Whether a flag behind the value asks for sums: at places that are one they add up, and are refused as by other ops.
fn is_true(value: &Value) -> bool {
    matches!(value, Value::Bool(true))
}

/// Writes the marked elements of `from` through an expanded tensor of the same sizes, one after the other.
fn write_marked(target: &Tensor, from: &Tensor, marks: &Tensor) -> Result<()> {
    let layout = target.layout();
    let marks = marks.elements_as::<u8>()?;
    let marked =
        memory::collected(marks.iter().enumerate().filter(|(_, mark)| **mark != 0).map(|(at, _)| at))?;
    let once = target.look(|layout| {
        let mut once: Layout = layout.clone();
        for d in 0..once.rank() {
            if once.strides[d] == 0 && once.sizes[d] > 1 {
                once.sizes[d] = 1;
            }
        }
        Ok(once)
    })?;
    let sizes = once.sizes();
    let place = |at: &usize| {
        let (mut rest, mut place, mut step) = (*at, 0, 1);
        for d in (0..layout.rank()).rev() {
            let size = (layout.sizes[d] as usize).max(1);
            if sizes[d] != 1 {
                place += rest % size * step;
            }
            (rest, step) = (rest / size, step * sizes[d] as usize);
        }
        place
    };
    let places = memory::collected(marked.iter().map(place))?;
    let written = once.copy()?;
    written.put_positions(&places, &from.take_positions(&marked, &[marked.len() as i64])?)?;
    once.copy_from(&written)
}
