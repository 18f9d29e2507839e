//! Pooling and resizing of quantized tensors: the result has the operand's scale.

use super::convert;
use super::ints::{Params, Quant, dispatch_quant, in_format, quantizer};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, composite, one};
use crate::resources::{Scratch, memory};
use crate::tensor::view::wrap_dims;
use crate::tensor::{DType, Layout, Tensor, view};
use crate::value::Value;
use std::ops::Range;
use std::sync::Arc;

/// The rows.
pub static OPS: &[OpDef] = &[
    composite(
        "quantized::max_pool1d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) \
         -> Tensor",
        "def max_pool1d(qx: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], \
         ceil_mode: bool) -> Tensor:\n    return torch.max_pool1d(qx, kernel_size, stride, padding, dilation, ceil_mode)\n",
    ),
    composite(
        "quantized::max_pool2d(Tensor qx, int[] kernel_size, int[] stride, int[] padding, int[] dilation, bool ceil_mode) \
         -> Tensor",
        "def max_pool2d(qx: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: List[int], \
         ceil_mode: bool) -> Tensor:\n    return torch.max_pool2d(qx, kernel_size, stride, padding, dilation, ceil_mode)\n",
    ),
    composite(
        "aten::quantized_max_pool1d(Tensor self, int[1] kernel_size, int[1] stride=[], int[1] padding=[0], int[1] \
         dilation=[1], bool ceil_mode=False) -> Tensor",
        "def quantized_max_pool1d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: \
         List[int], ceil_mode: bool) -> Tensor:\n    return torch.max_pool1d(self, kernel_size, stride, padding, dilation, \
         ceil_mode)\n",
    ),
    composite(
        "aten::quantized_max_pool2d(Tensor self, int[2] kernel_size, int[2] stride=[], int[2] padding=0, int[2] dilation=1, \
         bool ceil_mode=False) -> Tensor",
        "def quantized_max_pool2d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: \
         List[int], ceil_mode: bool) -> Tensor:\n    return torch.max_pool2d(self, kernel_size, stride, padding, dilation, \
         ceil_mode)\n",
    ),
    composite(
        "aten::quantized_max_pool3d(Tensor self, int[3] kernel_size, int[3] stride=[], int[3] padding=0, int[3] dilation=1, \
         bool ceil_mode=False) -> Tensor",
        "def quantized_max_pool3d(self: Tensor, kernel_size: List[int], stride: List[int], padding: List[int], dilation: \
         List[int], ceil_mode: bool) -> Tensor:\n    return torch.max_pool3d(self, kernel_size, stride, padding, dilation, \
         ceil_mode)\n",
    ),
];

/// The windows of one dimension: the range of the input each sees, and how many places it has with padding.
type Windows = Vec<(Range<usize>, i64)>;

/// `aten::adaptive_avg_pool1d` to `3d`.
pub fn adaptive_avg(a: &Args<'_>, spatial: usize) -> Result<Outputs> {
    let (tensor, wanted) = (a.tensor(0)?, a.ints_of(1, spatial)?);
    let sizes = tensor.sizes();
    if (sizes.len() != spatial + 1 && sizes.len() != spatial + 2) || wanted.iter().any(|n| *n < 0) {
        return Err(Diagnostic::runtime(format!(
            "adaptive_avg_pool{spatial}d: expected an input of {} or {} dimensions and output sizes that are not negative",
            spatial + 1,
            spatial + 2
        )));
    }
    // As many windows as the result has places, which must fit memory.
    let mut result = sizes[..sizes.len() - spatial].to_vec();
    result.extend(&wanted);
    Tensor::expect(tensor.dtype().integer_repr(), &result)?;
    let windows = sizes[sizes.len() - spatial..].iter().zip(&wanted).map(|(size, out)| {
        let range = |o: i64| {
            let (start, end) = (o * size / out, ((o + 1) * size + out - 1) / out);
            (start as usize..end as usize, end - start)
        };
        (0..*out).map(range).collect()
    });
    let windows: Vec<Windows> = windows.collect();
    // Where channels are not last, PyTorch has another loop, which rounds the mean of the integers as they are.
    let sum_of = if has_channels_last(tensor) { Sum::Real } else { Sum::Raw };
    one(average(tensor, &windows, false, None, sum_of)?)
}

/// What a mean is rounded of.
#[derive(Clone, Copy, PartialEq)]
enum Sum {
    /// The integers.
    Raw,
    /// The integers less the zero point, scaled.
    Real,
}

/// `aten::avg_pool1d` to `3d`: kernel, stride, padding, `ceil_mode`, `count_include_pad`, `divisor_override`.
pub fn avg(a: &Args<'_>, spatial: usize) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let kernel = a.ints_of(1, spatial)?;
    let stride = if a.ints(2)?.is_empty() { kernel.clone() } else { a.ints_of(2, spatial)? };
    let (padding, ceil, include) = (a.ints_of(3, spatial)?, a.bool(4)?, a.bool(5)?);
    let divisor = if a.values.len() > 6 { a.opt_int(6)? } else { None };
    let sizes = tensor.sizes();
    if sizes.len() != spatial + 1 && sizes.len() != spatial + 2 {
        return Err(Diagnostic::runtime(format!(
            "avg_pool{spatial}d: an input of {} dimensions",
            sizes.len()
        )));
    }
    if divisor == Some(0) {
        return Err(Diagnostic::runtime("divisor must be not zero"));
    }
    let mut windows = Vec::new();
    for d in 0..spatial {
        let size = sizes[sizes.len() - spatial + d];
        let bad = kernel[d] < 1 || stride[d] < 1 || padding[d] < 0 || padding[d] > kernel[d] / 2;
        if bad {
            return Err(Diagnostic::runtime(
                "pad should be at most half of effective kernel size, and kernel and stride greater than zero",
            ));
        }
        let mut room = size.saturating_add(2 * padding[d]).saturating_sub(kernel[d]);
        room = room.saturating_add(if ceil { stride[d] - 1 } else { 0 });
        let mut count = if room < 0 { 0 } else { room / stride[d] + 1 };
        // The last window must begin inside of the input or its left padding.
        if ceil && count > 0 && (count - 1).saturating_mul(stride[d]) >= size.saturating_add(padding[d]) {
            count -= 1;
        }
        if count < 1 {
            return Err(Diagnostic::runtime("the output of a quantized pooling would be empty"));
        }
        let range = |o: i64| {
            let start = o * stride[d] - padding[d];
            let end = (start + kernel[d]).min(size + padding[d]);
            (start.max(0) as usize..end.min(size).max(0) as usize, end - start)
        };
        windows.push((0..count).map(range).collect());
    }
    one(average(tensor, &windows, include, divisor, Sum::Real)?)
}

/// The mean of real numbers over some dimensions.
type OfReals = fn(&Tensor, Option<Vec<i64>>, bool, Option<DType>) -> Result<Tensor>;

/// `aten::mean` and `mean.dim`. Over the last dimensions of a tensor in order PyTorch rounds the mean of the integers as they are, ties to
/// even; elsewhere that of the real numbers, as `of_reals` computes it.
pub fn mean(
    tensor: &Tensor,
    dims: Option<Vec<i64>>,
    keepdim: bool,
    dtype: Option<DType>,
    of_reals: OfReals,
) -> Result<Tensor> {
    let params = Params::of(tensor)?;
    let rank = tensor.rank();
    let dims = dims.filter(|dims| !dims.is_empty());
    let mut reduced = match &dims {
        Some(dims) => wrap_dims(dims, rank)?,
        None => (0..rank).collect(),
    };
    reduced.sort_unstable();
    let is_last = reduced.iter().rev().enumerate().all(|(n, dim)| dim + n + 1 == rank);
    if !tensor.is_contiguous() || !is_last || dtype.is_some() || tensor.numel() == 0 {
        let mean = of_reals(&convert::dequantize(tensor)?, dims, keepdim, dtype)?;
        let is_back = mean.dtype() == DType::F32;
        return if is_back { convert::quantize(&mean, params, tensor.dtype()) } else { Ok(mean) };
    }
    let mut sizes = tensor.sizes().to_vec();
    let count = reduced.iter().map(|dim| sizes[*dim] as usize).product::<usize>().max(1);
    sizes.truncate(rank - reduced.len());
    if keepdim {
        sizes.extend(reduced.iter().map(|_| 1));
    }
    let (low, high) = tensor.dtype().quantized_range().unwrap_or((0, 0));
    let means = dispatch_quant!(tensor.dtype(), T => {
        let items = tensor.integers().elements::<T>()?;
        let mean = |row: &[T]| {
            let sum = row.iter().map(|v| i64::from(v.wide())).sum::<i64>();
            T::narrow(((sum as f32 / count as f32).round_ties_even() as i64).clamp(low, high))
        };
        let means = memory::collected(items.chunks(count).map(mean))?;
        Tensor::from_vec(&means, &sizes)
    })?;
    Tensor::quantized(&means, tensor.dtype(), Arc::clone(&quantizer(tensor)?))
}

/// Means over windows. `include`: padding counts.
fn average(
    tensor: &Tensor,
    windows: &[Windows],
    include: bool,
    divisor: Option<i64>,
    sum_of: Sum,
) -> Result<Tensor> {
    let params = Params::of(tensor)?;
    let sizes = tensor.sizes();
    let lead = sizes.len() - windows.len();
    let mut out_sizes = sizes[..lead].to_vec();
    out_sizes.extend(windows.iter().map(|w| w.len() as i64));
    let (low, high) = tensor.dtype().quantized_range().unwrap_or((0, 0));
    // Three spatial dimensions, those that are not there of one place.
    let whole: Windows = vec![(0..1, 1)];
    let mut three: Vec<&Windows> = vec![&whole; 3 - windows.len()];
    three.extend(windows);
    let extent =
        |d: usize| if d < 3 - windows.len() { 1 } else { sizes[lead + d + windows.len() - 3] as usize };
    let (height, width) = (extent(1), extent(2));
    let plane = extent(0) * height * width;
    let planes = sizes[..lead].iter().product::<i64>().max(0) as usize;
    let result = dispatch_quant!(tensor.dtype(), T => {
        let items = tensor.integers().elements::<T>()?;
        let mut results: Vec<T> = Vec::new();
        for p in 0..planes {
            let items = &items[p * plane..(p + 1) * plane];
            for (z, nz) in three[0] {
                for (y, ny) in three[1] {
                    for (x, nx) in three[2] {
                        let mut sum = 0i64;
                        for z in z.clone() {
                            for y in y.clone() {
                                let row = (z * height + y) * width;
                                sum += items[row + x.start..row + x.end.max(x.start)].iter().map(|v| i64::from(v.wide())).sum::<i64>();
                            }
                        }
                        let count = (z.len() * y.len() * x.len()) as i64;
                        if sum_of == Sum::Raw {
                            // PyTorch multiplies by the reciprocal, which may lift halves.
                            let mean = (sum as f32 * (1.0 / count as f32)).round_ties_even() as i64;
                            results.push(T::narrow(mean.clamp(low, high)));
                            continue;
                        }
                        let by = divisor.unwrap_or(if include { nz * ny * nx } else { count });
                        let sum = (sum - params.zero_point * count) as f32;
                        // The scale is a quotient of quotients, as PyTorch has it.
                        let scale = 1.0 / (1.0 / by as f32);
                        let rounded = (sum * (1.0 / scale)).round_ties_even() as i64;
                        results.push(T::narrow((rounded + params.zero_point).clamp(low, high)));
                    }
                }
            }
        }
        Tensor::from_vec(&results, &out_sizes)
    })?;
    as_like(&result, tensor)
}

/// Integers as a quantized tensor of the scale of `like`; its channels are last in memory where those of `like` are.
fn as_like(integers: &Tensor, like: &Tensor) -> Result<Tensor> {
    let result = Tensor::quantized(integers, like.dtype(), Arc::clone(&quantizer(like)?))?;
    match has_channels_last(like) {
        true if !like.is_contiguous() => in_format(&result, if like.rank() == 4 { 2 } else { 3 }),
        _ => Ok(result),
    }
}

/// Whether the channels of images or volumes are last in memory.
fn has_channels_last(tensor: &Tensor) -> bool {
    let format = match tensor.rank() {
        4 => 2,
        5 => 3,
        _ => return false,
    };
    let own: Layout = tensor.layout();
    view::in_format(&own, format).is_ok_and(|wanted| wanted.strides == own.strides)
}

/// `aten::upsample_bilinear2d`, with sizes and two scales or with sizes or a list of scales: four neighbours are weighed
/// and rounded once.
pub fn bilinear(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let params = Params::of(tensor)?;
    let kernel = a.op.def().eval.ok_or_else(|| Diagnostic::internal("resizing without a kernel"))?;
    // The row's own kernel checks the arguments and finds the sizes.
    let mut values = a.values.to_vec();
    values[0] = tensor.integers().to_dtype(DType::F32)?.into();
    let real = kernel(&Args { op: a.op, values: &values, node: a.node, run: a.run })?;
    let real = real.first().ok_or_else(|| Diagnostic::internal("resizing without a result"))?.to_tensor()?;
    let (from, to) = (tensor.sizes(), real.sizes());
    let ([_, _, h, w], [_, _, height, width]) = (&from[..], &to[..]) else {
        return Err(Diagnostic::runtime("resizing of images needs four dimensions"));
    };
    let align = a.bool(2)?;
    let scale = |n: usize| match a.value(3)? {
        Value::List(list) => list.items().get(n).map(Value::to_float).transpose(),
        _ if a.values.len() > 3 + n => a.opt_float(3 + n),
        _ => Ok(None),
    };
    let rows = neighbours(*h, *height, align, scale(0)?)?;
    let columns = neighbours(*w, *width, align, scale(1)?)?;
    let (plane, width) = ((*h * *w).max(1) as usize, *w as usize);
    let rounder = Params { scale: 1.0, zero_point: params.zero_point }.rounder(tensor.dtype());
    let zero = params.zero_point as f32;
    dispatch_quant!(tensor.dtype(), T => {
        let items = tensor.integers().elements::<T>()?;
        let mut integers = memory::reserved::<T>(real.numel())?;
        for image in items.chunks_exact(plane) {
            for y in &rows {
                for x in &columns {
                    let at = |row: usize, column: usize| image[row * width + column].wide() as f32;
                    let near = x.first_weight * at(y.first, x.first) + x.second_weight * at(y.first, x.second);
                    let far = x.first_weight * at(y.second, x.first) + x.second_weight * at(y.second, x.second);
                    let mixed = y.first_weight * near + y.second_weight * far - zero;
                    integers.push(T::narrow(rounder.integer(mixed)))?;
                }
            }
        }
        one(as_like(&Tensor::from_vec(&integers, &to)?, tensor)?)
    })
}

/// The two places between which a place of the result lies, with their weights.
struct Between {
    first: usize,
    second: usize,
    first_weight: f32,
    second_weight: f32,
}

fn neighbours(from: i64, to: i64, align: bool, scale: Option<f64>) -> Result<Scratch<Between>> {
    let step = match (align, scale) {
        (true, _) if to > 1 => (from - 1) as f32 / (to - 1) as f32,
        (true, _) => 0.0,
        (false, Some(scale)) if scale > 0.0 => (1.0 / scale) as f32,
        (false, _) => from as f32 / to as f32,
    };
    let last = usize::try_from(from - 1).unwrap_or(0);
    let place = |at: i64| {
        let place = if align { step * at as f32 } else { (step * (at as f32 + 0.5) - 0.5).max(0.0) };
        let first = (place as usize).min(last);
        let second_weight = place - first as f32;
        Between { first, second: (first + 1).min(last), first_weight: 1.0 - second_weight, second_weight }
    };
    memory::collected((0..usize::try_from(to).unwrap_or(0)).map(|at| place(at as i64)))
}
