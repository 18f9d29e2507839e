//! Layers with several results or with rules of their own: norms and their statistics, pooling with places, recurrent
//! layers, samples at grids, bags of rows, padding, windows, Fourier transforms.

use super::{Known, Operands, Results, joins, one, products, trial, wrap};
use crate::ir::{Dim, Stride, TensorType};
use crate::tensor::DType;

/// A result whose layout is left open.
fn open(operands: &Operands<'_>, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> TensorType {
    TensorType { strides: None, ..operands.result(&operands.common(), dtype, sizes) }
}

/// A result in order of rows.
fn rows(operands: &Operands<'_>, dtype: Option<DType>, sizes: Option<Vec<Dim>>) -> Known {
    Known::Tensor(operands.result(&operands.common(), dtype, sizes))
}

/// What trying says where operands are small enough to try; else what sizes say alone.
fn tried_or(operands: &Operands<'_>, rule: impl FnOnce() -> Option<TensorType>) -> Results {
    trial::kernel(operands).or_else(|| one(rule()?))
}

/// The dtype in which a norm keeps its statistics: its weight's, else the input's.
fn kept(operands: &Operands<'_>) -> Option<DType> {
    match operands.get("weight")? {
        Known::Tensor(weight) => weight.dtype,
        Known::None => operands.first()?.dtype,
        _ => None,
    }
}

/// `native_layer_norm`: the result, then mean and deviation of each row.
pub fn layer_norm(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let inner = operands.dims("normalized_shape")?.len();
    let stats = first.sizes.as_deref().and_then(|sizes| {
        let outer = sizes.len().checked_sub(inner)?;
        Some(
            sizes.iter().enumerate().map(|(n, size)| if n < outer { *size } else { Dim::Known(1) }).collect(),
        )
    });
    let stats = rows(operands, kept(operands), stats);
    let mut results = joins::row_major(operands)?;
    results.extend([stats.clone(), stats]);
    Some(results)
}

/// `native_group_norm`: the result, then mean and deviation of each group of each image.
pub fn group_norm(operands: &Operands<'_>) -> Results {
    let stats = rows(operands, kept(operands), Some(vec![operands.dim("N"), operands.dim("group")]));
    let mut results = joins::same_images(operands)?;
    results.extend([stats.clone(), stats]);
    Some(results)
}

/// `native_batch_norm` and similar functions: the result, then mean and deviation of each channel, which are empty where the
/// running ones are used. The functional form gives the running ones, too.
pub fn batch_norm(operands: &Operands<'_>) -> Results {
    let schema = operands.op.schema().ok()?;
    let trains = match schema.argument_index("training") {
        Some(_) => operands.bool("training"),
        None => Some(false),
    };
    let channels = operands.first()?.sizes.as_deref().and_then(|sizes| sizes.get(1)).copied();
    let count = trains.and_then(|trains| if trains { channels } else { Some(Dim::Known(0)) });
    let stats = rows(operands, kept(operands), count.map(|count| vec![count]));
    let mut results = joins::normed(operands)?;
    results.extend([stats.clone(), stats]);
    // What is left are the running statistics, which lie as those that are given.
    for name in ["running_mean", "running_var"].into_iter().take(schema.returns.len() - 3) {
        let like = operands.tensor(name)?;
        results.push(Known::Tensor(TensorType { strides: None, ..like.clone() }));
    }
    Some(results)
}

/// Adds to the results of a rule of pooling the places of what was taken.
fn with_places(results: Results) -> Results {
    let Known::Tensor(values) = results?.pop()? else { return None };
    let places = TensorType { dtype: Some(DType::I64), requires_grad: Some(false), ..values.clone() };
    Some(vec![Known::Tensor(values), Known::Tensor(places)])
}

/// The greatest of windows over one dimension, and their places.
pub fn pool1d_with_places(operands: &Operands<'_>) -> Results {
    with_places(products::pool1d(operands))
}

/// The same over two dimensions.
pub fn pool2d_with_places(operands: &Operands<'_>) -> Results {
    with_places(products::pool2d(operands))
}

/// The same over three dimensions.
pub fn pool3d_with_places(operands: &Operands<'_>) -> Results {
    with_places(products::pool3d(operands))
}

/// The greatest of as many shares as are asked for, and their places.
pub fn adaptive_with_places(operands: &Operands<'_>) -> Results {
    with_places(products::adaptive(operands))
}

/// The states after a recurrent layer: as those before, in order of rows.
fn states<'a>(operands: &Operands<'a>) -> Option<Vec<&'a TensorType>> {
    match operands.get("hx")? {
        Known::Tensor(state) => Some(vec![state]),
        Known::Items(_) => operands.tensors("hx"),
        _ => None,
    }
}

fn recurrent(operands: &Operands<'_>, output: impl Fn(Dim) -> Option<TensorType>) -> Results {
    let states = states(operands)?;
    let width = states.first()?.sizes.as_deref().and_then(|sizes| sizes.last())?.known();
    let directions = if operands.bool("bidirectional")? { 2 } else { 1 };
    let width = width.and_then(|n| n.checked_mul(directions)).map_or_else(|| operands.fresh(), Dim::Known);
    let mut results = vec![Known::Tensor(output(width)?)];
    let dtype = operands.first()?.dtype;
    results
        .extend(states.iter().map(|state| rows(operands, dtype, state.sizes.as_ref().map(|s| s.to_vec()))));
    Some(results)
}

/// Recurrent layers over sequences of one length: features of each step, then the states. Steps lie outermost in memory, also
/// where sequences come first.
pub fn sequences(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let batch_first = operands.bool("batch_first")?;
    let [a, b, _] = first.sizes.as_deref()? else { return None };
    recurrent(operands, |width| {
        let result = operands.result(&operands.common(), first.dtype, Some(vec![*a, *b, width]));
        if !batch_first {
            return Some(result);
        }
        // Without steps the kernel raises.
        let strides = width.known().zip(a.known()).map(|(width, sequences)| {
            let row = width.max(1);
            let step = row.checked_mul(sequences.max(1)).map_or(Stride::Unknown, Stride::Known);
            [Stride::Known(row), step, Stride::Known(1)].into()
        });
        Some(TensorType { strides, ..result })
    })
}

/// Recurrent layers over packed sequences.
pub fn packed(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let [rows, _] = first.sizes.as_deref()? else { return None };
    recurrent(operands, |width| {
        Some(operands.result(&operands.common(), first.dtype, Some(vec![*rows, width])))
    })
}

/// Samples of images at the places of a grid.
pub fn samples(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let (images, grid) = (operands.first()?, operands.tensor("grid")?);
        let (sizes, places) = (images.sizes.as_deref()?, grid.sizes.as_deref()?);
        if sizes.len() != places.len() || sizes.len() < 3 {
            return None;
        }
        let sizes = [&sizes[..2], &places[1..places.len() - 1]].concat();
        Some(open(operands, images.dtype, Some(sizes)))
    })
}

/// The grid of an affine map: a place for each pixel.
pub fn affine_grid(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let size = operands.dims("size")?;
        let spatial = size.len().checked_sub(2)?;
        let sizes = [&size[..1], &size[2..], &[Dim::Known(spatial as i64)]].concat();
        Some(open(operands, operands.first()?.dtype, Some(sizes)))
    })
}

/// Bags of rows of a table: a row for each bag. What the other results hold depends on the mode.
pub fn bags(operands: &Operands<'_>) -> Results {
    let (weight, offsets) = (operands.first()?, operands.tensor("offsets")?);
    let count = match (offsets.sizes.as_deref()?, operands.bool("include_last_offset")?) {
        ([count], false) => *count,
        ([count], true) => count.known().map_or_else(|| operands.fresh(), |n| Dim::Known((n - 1).max(0))),
        _ => return None,
    };
    let [_, width] = weight.sizes.as_deref()? else { return None };
    let others = Known::Tensor(open(operands, Some(DType::I64), None));
    let values = rows(operands, weight.dtype, Some(vec![count, *width]));
    Some(vec![values, others.clone(), others.clone(), others])
}

/// Padding: pairs of numbers, of the last dimension first.
pub fn padded(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let first = operands.first()?;
        let mut sizes = first.sizes.as_deref()?.to_vec();
        for (size, pair) in sizes.iter_mut().rev().zip(operands.dims("pad")?.chunks(2)) {
            let [before, after] = pair else { return None };
            let known = size.known().zip(before.known()).zip(after.known());
            let sum = known.and_then(|((size, before), after)| size.checked_add(before)?.checked_add(after));
            *size = sum.map_or_else(|| operands.fresh(), Dim::Known);
        }
        Some(open(operands, first.dtype, Some(sizes)))
    })
}

/// Space made of channels: `pixel_shuffle`.
pub fn shuffled(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let factor = operands.int("upscale_factor").filter(|n| *n > 0)?;
        pixels(
            operands,
            |channels| channels.checked_div(factor.checked_mul(factor)?),
            |n| n.checked_mul(factor),
        )
    })
}

/// Channels made of space: `pixel_unshuffle`.
pub fn unshuffled(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let factor = operands.int("downscale_factor").filter(|n| *n > 0)?;
        pixels(
            operands,
            |channels| factor.checked_mul(factor)?.checked_mul(channels),
            |n| n.checked_div(factor),
        )
    })
}

fn pixels(
    operands: &Operands<'_>,
    of_channels: impl Fn(i64) -> Option<i64>,
    of_side: impl Fn(i64) -> Option<i64>,
) -> Option<TensorType> {
    let first = operands.first()?;
    let [outer @ .., channels, height, width] = first.sizes.as_deref()? else { return None };
    let inner = [of_channels(channels.known()?)?, of_side(height.known()?)?, of_side(width.known()?)?];
    let sizes = [outer, &inner.map(Dim::Known)].concat();
    Some(open(operands, first.dtype, Some(sizes)))
}

/// The sizes and dtype of the first argument, which lies somehow.
pub fn moved(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let first = operands.first()?;
        Some(open(operands, first.dtype, first.sizes.as_ref().map(|s| s.to_vec())))
    })
}

/// Each element several times in a row: `repeat_interleave` by a number.
pub fn interleaved(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let (first, times) = (operands.first()?, operands.int("repeats")?);
        let sizes = first.sizes.as_deref()?;
        let (mut sizes, dim) = match operands.is_none("dim")? {
            true => (vec![Dim::Known(super::product(sizes)?)], 0),
            false => (sizes.to_vec(), wrap(operands.int("dim")?, sizes.len())?),
        };
        let size = sizes.get_mut(dim)?;
        *size = Dim::Known(size.known()?.checked_mul(times)?);
        Some(open(operands, first.dtype, Some(sizes)))
    })
}

/// Windows as columns: `im2col`.
pub fn columns(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let first = operands.first()?;
        let [outer @ .., channels, height, width] = first.sizes.as_deref()? else { return None };
        let of = |name| operands.per_dim(name, 2);
        let (kernel, dilation, padding, stride) =
            (of("kernel_size")?, of("dilation")?, of("padding")?, of("stride")?);
        let count = |n: usize, size: &Dim| {
            products::window(size.known()?, kernel[n], stride[n], padding[n], dilation[n], false)?.known()
        };
        let places = count(0, height)?.checked_mul(count(1, width)?)?;
        let rows = channels.known()?.checked_mul(kernel[0])?.checked_mul(kernel[1])?;
        Some(open(operands, first.dtype, Some([outer, &[Dim::Known(rows), Dim::Known(places)]].concat())))
    })
}

/// Columns added up as an image: `col2im`.
pub fn images(operands: &Operands<'_>) -> Results {
    tried_or(operands, || {
        let first = operands.first()?;
        let [outer @ .., rows, _] = first.sizes.as_deref()? else { return None };
        let kernel = operands.per_dim("kernel_size", 2)?;
        let area = kernel[0].checked_mul(kernel[1]).filter(|n| *n > 0)?;
        let sides = operands.dims("output_size").filter(|sides| sides.len() == 2)?;
        let channels = Dim::Known(rows.known()? / area);
        Some(open(operands, first.dtype, Some([outer, &[channels], &sides[..]].concat())))
    })
}

/// What a Fourier transform takes and gives.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Transform {
    /// Numbers to complex numbers.
    Complex,
    /// Real numbers to half of the complex ones.
    Half,
    /// Half of the complex numbers to real ones.
    Real,
}

/// `fft_fft` and its inverse, of one dimension or several.
pub fn complex_transform(operands: &Operands<'_>) -> Results {
    transformed(operands, Transform::Complex)
}

/// `fft_rfft`, `fft_ihfft`.
pub fn half_transform(operands: &Operands<'_>) -> Results {
    transformed(operands, Transform::Half)
}

/// `fft_irfft`, `fft_hfft`.
pub fn real_transform(operands: &Operands<'_>) -> Results {
    transformed(operands, Transform::Real)
}

fn transformed(operands: &Operands<'_>, kind: Transform) -> Results {
    tried_or(operands, || {
        let first = operands.first()?;
        let sizes = first.sizes.as_deref()?;
        let is_double = matches!(first.dtype?, DType::F64 | DType::C128);
        let dtype = match (kind == Transform::Real, is_double) {
            (true, true) => DType::F64,
            (true, false) => DType::F32,
            (false, true) => DType::C128,
            (false, false) => DType::C64,
        };
        let lengths = lengths(operands)?;
        let dims: Vec<usize> = match (operands.is_none("dim")?, &lengths) {
            (false, _) => {
                operands.ints("dim")?.into_iter().map(|d| wrap(d, sizes.len())).collect::<Option<_>>()?
            }
            (true, Some(lengths)) => (sizes.len().checked_sub(lengths.len())?..sizes.len()).collect(),
            (true, None) => (0..sizes.len()).collect(),
        };
        let mut found = sizes.to_vec();
        for (n, dim) in dims.iter().enumerate() {
            let asked = lengths.as_ref().and_then(|lengths| lengths.get(n)).filter(|n| **n != -1);
            let is_last = n + 1 == dims.len();
            let size = found.get_mut(*dim)?;
            let own = size.known()?;
            let length = match (asked, kind == Transform::Real && is_last) {
                (Some(asked), _) => *asked,
                (None, true) => own.checked_sub(1)?.checked_mul(2)?,
                (None, false) => own,
            };
            *size = Dim::Known(if kind == Transform::Half && is_last { length / 2 + 1 } else { length });
        }
        Some(open(operands, Some(dtype), Some(found)))
    })
}

/// The lengths that a transform is asked for; `Some(None)` where it takes the operand's sizes.
fn lengths(operands: &Operands<'_>) -> Option<Option<Vec<i64>>> {
    let name = if operands.get("n").is_some() { "n" } else { "s" };
    if operands.is_none(name)? { Some(None) } else { operands.ints(name).map(Some) }
}
