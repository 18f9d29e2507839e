//! Convolutions and pooling, with the sizes of their results by PyTorch's rules.

use super::calls::{Convolution, Pool, unsupported};
use super::machine::Machine;
use super::operand::{dense, empty, floating, piece, results, with_strides};
use crate::diag::Result;
use crate::dialects::shapes::layouts;
use crate::dialects::{Args, Outputs};
use crate::tensor::{Tensor, channels_last_strides};

/// What a convolution is given besides its tensors.
struct Steps {
    stride: Vec<i64>,
    padding: Vec<i64>,
    dilation: Vec<i64>,
    groups: i64,
}

/// `aten::conv1d`, `aten::conv2d`, `aten::conv3d`
pub(super) fn convolution(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let steps = Steps { stride: a.ints(3)?, padding: a.ints(4)?, dilation: a.ints(5)?, groups: a.int(6)? };
    convolved(machine, a, steps)
}

/// `aten::conv2d` with its padding as text (`same`, `valid`).
pub(super) fn convolution_padding(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let dilation = a.ints(5)?;
    let window: Vec<i64> = a.tensor(1)?.sizes().iter().skip(2).copied().collect();
    let padding = match a.str(4)? {
        "valid" => vec![0; window.len()],
        _ => {
            let rates = dilation.iter().cycle();
            let whole: Vec<i64> = window.iter().zip(rates).map(|(size, rate)| (size - 1) * rate).collect();
            if whole.iter().any(|n| n % 2 != 0) || a.ints(3)?.iter().any(|stride| *stride != 1) {
                return Err(unsupported("padding of two widths"));
            }
            whole.iter().map(|n| n / 2).collect()
        }
    };
    convolved(machine, a, Steps { stride: a.ints(3)?, padding, dilation, groups: a.int(6)? })
}

/// `aten::convolution`, `aten::_convolution`
pub(super) fn convolution_general(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    if a.bool(6)? {
        return Err(unsupported("transposed convolutions"));
    }
    let steps = Steps { stride: a.ints(3)?, padding: a.ints(4)?, dilation: a.ints(5)?, groups: a.int(8)? };
    convolved(machine, a, steps)
}

/// A number for each dimension of a window; one number counts for all.
fn spread(numbers: &[i64], dims: usize, least: i64) -> Result<Vec<usize>> {
    let fits = (numbers.len() == dims || numbers.len() == 1) && numbers.iter().all(|n| *n >= least);
    if !fits {
        return Err(unsupported("such steps"));
    }
    Ok((0..dims).map(|dim| numbers[dim.min(numbers.len() - 1)] as usize).collect())
}

/// Positions of a window along a dimension; None where it does not fit.
fn positions(size: usize, window: usize, stride: usize, padding: usize, dilation: usize) -> Option<usize> {
    let reach = (window - 1) * dilation + 1;
    Some((size + 2 * padding).checked_sub(reach)? / stride + 1)
}

fn convolved(machine: &dyn Machine, a: &Args<'_>, steps: Steps) -> Result<Option<Outputs>> {
    let (input, weight) = (floating(a.tensor(0)?)?, floating(a.tensor(1)?)?);
    let alike = input.rank() == weight.rank() && input.dtype() == weight.dtype();
    if !alike || !(3..=5).contains(&input.rank()) || steps.groups < 1 {
        return Err(unsupported("such operands of a convolution"));
    }
    let dims = input.rank() - 2;
    let groups = steps.groups as usize;
    let unsigned = |tensor: &Tensor| tensor.sizes().iter().map(|n| *n as usize).collect::<Vec<usize>>();
    let mut layer = Convolution {
        dtype: input.dtype(),
        input: unsigned(input),
        weight: unsigned(weight),
        output: Vec::new(),
        stride: spread(&steps.stride, dims, 1)?,
        padding: spread(&steps.padding, dims, 0)?,
        dilation: spread(&steps.dilation, dims, 1)?,
        groups,
    };
    if layer.weight[1] * groups != layer.input[1] || !layer.weight[0].is_multiple_of(groups) {
        return Err(unsupported("such channels of a convolution"));
    }
    layer.output = vec![layer.input[0], layer.weight[0]];
    for dim in 0..dims {
        let found = positions(
            layer.input[2 + dim],
            layer.weight[2 + dim],
            layer.stride[dim],
            layer.padding[dim],
            layer.dilation[dim],
        );
        layer.output.push(found.filter(|n| *n > 0).ok_or_else(|| unsupported("such a window"))?);
    }
    let bias = match a.opt_tensor(2)? {
        Some(bias) if bias.dtype() == layer.dtype && bias.numel() == layer.output[1] => {
            Some(piece(machine, &dense(machine, floating(bias)?)?)?)
        }
        Some(_) => return Err(unsupported("bias of such sizes")),
        None => None,
    };
    let sizes: Vec<i64> = layer.output.iter().map(|n| *n as i64).collect();
    let out = empty(machine, layer.dtype, &sizes)?;
    if dims == 1 {
        // A line is a plane of height 1.
        for sizes in [&mut layer.input, &mut layer.weight, &mut layer.output] {
            sizes.insert(2, 1);
        }
        layer.stride.insert(0, 1);
        layer.padding.insert(0, 0);
        layer.dilation.insert(0, 1);
    }
    let strides = layouts::convolution(&input.layout(), &weight.layout(), &sizes)?;
    let (input, weight) = (dense(machine, input)?, dense(machine, weight)?);
    let operands = [&piece(machine, &input)?, &piece(machine, &weight)?];
    machine.convolution(&layer, operands, bias.as_ref(), &piece(machine, &out)?)?;
    results(with_strides(machine, out, &strides)?)
}

/// `aten::max_pool2d`
pub(super) fn max_pool2d(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    if a.ints(4)?.iter().any(|rate| *rate != 1) || a.bool(5)? {
        return Err(unsupported("dilated pooling"));
    }
    windows(machine, a, true, true)
}

/// `aten::avg_pool2d`
pub(super) fn avg_pool2d(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    if a.bool(4)? || a.opt_int(6)?.is_some() {
        return Err(unsupported("such a divisor of a mean"));
    }
    windows(machine, a, false, a.bool(5)?)
}

fn windows(machine: &dyn Machine, a: &Args<'_>, max: bool, counts_padding: bool) -> Result<Option<Outputs>> {
    let input = floating(a.tensor(0)?)?;
    let window = pair(&a.ints(1)?, 1)?;
    let stride = a.ints(2)?;
    let stride = if stride.is_empty() { window } else { pair(&stride, 1)? };
    let padding = pair(&a.ints(3)?, 0)?;
    let sizes = sizes_of(input)?;
    let position = |dim: usize| {
        let inside = padding[dim] * 2 <= window[dim];
        let found = positions(sizes[2 + dim], window[dim], stride[dim], padding[dim], 1);
        found.filter(|n| inside && *n > 0).ok_or_else(|| unsupported("such a window"))
    };
    let output = [position(0)?, position(1)?];
    let layer =
        Pool { dtype: input.dtype(), max, counts_padding, input: sizes, output, window, stride, padding };
    pooled(machine, &layer, input)
}

/// `aten::adaptive_avg_pool2d` to sizes that divide those of the input.
pub(super) fn adaptive_avg_pool2d(machine: &dyn Machine, a: &Args<'_>) -> Result<Option<Outputs>> {
    let input = floating(a.tensor(0)?)?;
    let (sizes, output) = (sizes_of(input)?, pair(&a.ints(1)?, 1)?);
    if (0..2).any(|dim| sizes[2 + dim] % output[dim] != 0) {
        return Err(unsupported("windows of several sizes"));
    }
    let window = [sizes[2] / output[0], sizes[3] / output[1]];
    let layer = Pool {
        dtype: input.dtype(),
        max: false,
        counts_padding: true,
        input: sizes,
        output,
        window,
        stride: window,
        padding: [0, 0],
    };
    pooled(machine, &layer, input)
}

fn pooled(machine: &dyn Machine, layer: &Pool, input: &Tensor) -> Result<Option<Outputs>> {
    let [samples, channels, ..] = layer.input.map(|n| n as i64);
    let [height, width] = layer.output.map(|n| n as i64);
    let sizes = [samples, channels, height, width];
    let out = empty(machine, layer.dtype, &sizes)?;
    let channels_last = input.layout().suggests_channels_last();
    let input = dense(machine, input)?;
    machine.pool(layer, &piece(machine, &input)?, &piece(machine, &out)?)?;
    results(if channels_last { with_strides(machine, out, &channels_last_strides(&sizes))? } else { out })
}

fn pair(numbers: &[i64], least: i64) -> Result<[usize; 2]> {
    let pair = spread(numbers, 2, least)?;
    Ok([pair[0], pair[1]])
}

fn sizes_of(tensor: &Tensor) -> Result<[usize; 4]> {
    match tensor.sizes().as_slice() {
        [n, c, h, w] => Ok([*n as usize, *c as usize, *h as usize, *w as usize]),
        _ => Err(unsupported("pooling without samples")),
    }
}
