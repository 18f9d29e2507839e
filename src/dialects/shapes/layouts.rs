//! How results lie in memory, from how operands lie. What a rule says here is what kernels do: those that follow rules of
//! PyTorch (its iterator, `suggest_memory_format`) ask the same functions. Knows no elements.

use super::open::OpenSizes;
use super::{Operands, Strides};
use crate::diag::Result;
use crate::dialects::Order;
use crate::ir::{Argument, Dim, Stride, TensorType, TypeKind};
use crate::tensor::pointwise::Walk;
use crate::tensor::view::{self, dense_like};
use crate::tensor::{Dims, Layout, channels_last_strides, contiguous_strides};

pub use super::known::strides;

/// The layout in a type, if it is complete.
pub fn of_type(ty: &TensorType) -> Option<Layout> {
    let sizes: Vec<i64> = ty.sizes.as_deref()?.iter().map(|d| d.known()).collect::<Option<_>>()?;
    let strides = known_strides(ty)?;
    Layout::strided(&sizes, &strides, 0).ok()
}

/// The strides of a tensor, where all are numbers.
pub fn known_strides(ty: &TensorType) -> Option<Vec<i64>> {
    ty.strides.as_deref()?.iter().map(Stride::known).collect()
}

/// Sizes, where all are numbers.
pub fn numbers(sizes: &[Dim]) -> Option<Vec<i64>> {
    sizes.iter().map(|d| d.known()).collect()
}

/// The walk over operands that gives a result of the given order; `number` says that a number stands in the place of a
/// tensor.
pub fn ordered_walk(operands: &[Layout], number: bool, order: Order) -> Result<Walk> {
    match order {
        Order::Operands => Walk::beside_number(operands, number),
        Order::EveryStride => Walk::beside_number(operands, true),
        Order::RowMajor => Walk::with_result(operands, Layout::contiguous),
        Order::First => Walk::with_result(operands, |sizes| match operands.first() {
            Some(first) if first.sizes.as_slice() == sizes => Ok(dense_like(first)),
            _ => Layout::contiguous(sizes),
        }),
    }
}

/// Whether an argument is a number where other forms of the op take a tensor (`other`, or `self` beside an `other`):
/// PyTorch wraps it as a tensor of rank 0, which the strides of the result show.
pub fn replaces_tensor(arguments: &[Argument], argument: &Argument) -> bool {
    let is_number = match argument.ty.kind() {
        TypeKind::Optional(inner) => matches!(inner.kind(), TypeKind::Number),
        kind => matches!(kind, TypeKind::Number),
    };
    is_number
        && (argument.name == "other"
            || argument.name == "self" && arguments.iter().any(|a| a.name == "other"))
}

/// How the result of an elementwise op lies whose tensors are these.
pub(super) fn elementwise(operands: &Operands<'_>, tensors: &[&TensorType]) -> Option<Strides> {
    let layouts = tensors.iter().map(|t| of_type(t)).collect::<Option<Vec<Layout>>>()?;
    let arguments = &operands.op.schema().ok()?.arguments;
    let number = arguments.iter().any(|a| replaces_tensor(arguments, a));
    let walk = ordered_walk(&layouts, number, operands.op.def().order).ok()?;
    Some(strides(&walk.result.strides))
}

/// How a copy of a tensor lies: in a memory format that is asked for, else as the tensor does.
pub(super) fn like(ty: &TensorType, format: i64) -> Option<Strides> {
    view::in_format(&of_type(ty)?, format).ok().map(|layout| strides(&layout.strides))
}

/// Strides of the result of a convolution with such sizes, by the layouts of its images and its weight: channels are last
/// where those of one of them are. Lines are convolved as images of one row, of which only what is not row-major yet is
/// copied before; batches of one volume stay row-major.
pub fn convolution(input: &Layout, weight: &Layout, sizes: &[i64]) -> Result<Dims> {
    let batched = input.rank() == weight.rank();
    let last = match weight.rank() {
        3 if batched => {
            let is_row = |l: &Layout| view::unsqueeze(l, 2).map(|l| l.suggests_channels_last());
            let line = match input.is_contiguous() {
                true => input.clone(),
                false => Layout::contiguous(&input.sizes)?,
            };
            if sizes.len() == 3 && (is_row(&line)? || is_row(weight)?) {
                let mut strides = channels_last_strides(&[sizes[0], sizes[1], 1, sizes[2]]);
                strides.remove(2);
                return Ok(strides);
            }
            false
        }
        5 if input.sizes.first().is_none_or(|n| *n <= 1) => false,
        4 | 5 if batched && weight.suggests_channels_last() => true,
        _ => input.rank() == sizes.len() && input.suggests_channels_last(),
    };
    Ok(if last { channels_last_strides(sizes) } else { contiguous_strides(sizes) })
}

/// How what is made of images lies: with channels last where those of all of them are, else row-major.
pub(super) fn images(images: &[&TensorType], sizes: Option<&[Dim]>) -> Option<Strides> {
    let layouts = images.iter().map(|t| of_type(t)).collect::<Option<Vec<Layout>>>()?;
    let sizes = numbers(sizes?)?;
    let is_last = |l: &Layout| l.rank() == sizes.len() && l.suggests_channels_last();
    let last = !layouts.is_empty() && layouts.iter().all(is_last);
    Some(strides(&if last { channels_last_strides(&sizes) } else { contiguous_strides(&sizes) }))
}

/// Strides of a dense tensor, where all sizes are numbers.
pub fn dense(sizes: &[Dim]) -> Option<Strides> {
    let are_numbers = sizes.iter().all(|size| size.known().is_some());
    if are_numbers { OpenSizes::none().row_major(sizes) } else { None }
}

/// Whether a tensor is known to be dense, in order of rows.
pub(super) fn is_dense(tensor: &TensorType) -> bool {
    tensor.strides.is_some() && tensor.sizes.as_deref().and_then(dense) == tensor.strides
}

/// Whether strides leave no gaps and no element lies at two places, whatever the order of dimensions.
pub(super) fn is_packed(sizes: &[Dim], strides: &[Stride]) -> bool {
    let known = sizes.iter().zip(strides).map(|(size, stride)| Some((stride.known()?, size.known()?)));
    let Some(mut known) = known.collect::<Option<Vec<(i64, i64)>>>() else { return false };
    if known.iter().any(|(_, size)| *size == 0) {
        return false;
    }
    known.retain(|(_, size)| *size != 1);
    known.sort_unstable();
    let mut step = 1i64;
    known.iter().all(|(stride, size)| {
        let fits = *stride == step;
        step = step.saturating_mul(*size);
        fits
    })
}
