//! Quantization simulated in floats: `fake_quantize_*` with their masks and derivatives, the moving averages of observers, and
//! the choice of scales and zero points. Quantized tensors themselves are not known here.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::int8::fake_quantize::{Window, ZeroPoint, best_range};
use crate::kernels::int8::quantize::choose_qparams;
use crate::kernels::wide::store;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::pointwise::Walk;
use crate::tensor::{Bool, DType, Scalar, Tensor};
use crate::value::Value;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::fake_quantize_per_tensor_affine(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> Tensor",
        |a| first(whole(a, 3)?),
    )
    .infer(trial::stand_ins)
    .grad("self: grad * torch.ops.aten.fake_quantize_per_tensor_affine_cachemask(self, scale, zero_point, quant_min, quant_max)[1]"),
    opaque(
        "aten::fake_quantize_per_tensor_affine.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max) -> Tensor",
        |a| first(whole_of_tensors(a, None, 3)?),
    ),
    opaque(
        "aten::fake_quantize_per_tensor_affine_cachemask(Tensor self, float scale, int zero_point, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        |a| whole(a, 3),
    )
    .infer(trial::stand_ins)
    .grad("self: grad * mask"),
    opaque(
        "aten::_fake_quantize_per_tensor_affine_cachemask_tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, Tensor fake_quant_enabled, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        |a| whole_of_tensors(a, Some(3), 4),
    )
    .grad("self: grad * mask"),
    opaque(
        "aten::fake_quantize_per_tensor_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
        masked,
    ),
    opaque(
        "aten::fake_quantize_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> Tensor",
        |a| first(channels(a)?),
    )
    .grad("self: grad * torch.ops.aten.fake_quantize_per_channel_affine_cachemask(self, scale, zero_point, axis, quant_min, quant_max)[1]"),
    opaque(
        "aten::fake_quantize_per_channel_affine_cachemask(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max) -> (Tensor output, Tensor mask)",
        channels,
    )
    .grad("self: grad * mask"),
    opaque(
        "aten::fake_quantize_per_channel_affine_cachemask_backward(Tensor grad, Tensor mask) -> Tensor",
        masked,
    ),
    opaque(
        "aten::_fake_quantize_learnable_per_tensor_affine(Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
        learned,
    )
    .grad(
        "self: torch.ops.aten._fake_quantize_learnable_per_tensor_affine_backward(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)[0]\n\
         scale: torch.ops.aten._fake_quantize_learnable_per_tensor_affine_backward(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)[1]\n\
         zero_point: torch.ops.aten._fake_quantize_learnable_per_tensor_affine_backward(grad, self, scale, zero_point, quant_min, quant_max, grad_factor)[2]",
    ),
    opaque(
        "aten::_fake_quantize_learnable_per_tensor_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
        learned_backward,
    ),
    opaque(
        "aten::_fake_quantize_learnable_per_channel_affine(Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> Tensor",
        learned_channels,
    )
    .grad(
        "self: torch.ops.aten._fake_quantize_learnable_per_channel_affine_backward(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)[0]\n\
         scale: torch.ops.aten._fake_quantize_learnable_per_channel_affine_backward(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)[1]\n\
         zero_point: torch.ops.aten._fake_quantize_learnable_per_channel_affine_backward(grad, self, scale, zero_point, axis, quant_min, quant_max, grad_factor)[2]",
    ),
    opaque(
        "aten::_fake_quantize_learnable_per_channel_affine_backward(Tensor grad, Tensor self, Tensor scale, Tensor zero_point, int axis, int quant_min, int quant_max, float grad_factor=1.) -> (Tensor, Tensor, Tensor)",
        learned_channels_backward,
    ),
    opaque(
        "aten::fused_moving_avg_obs_fake_quant(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> Tensor",
        |a| first(observe(a)?),
    ),
    opaque(
        "aten::_fused_moving_avg_obs_fq_helper(Tensor self, Tensor observer_on, Tensor fake_quant_on, Tensor(a!) running_min, Tensor(b!) running_max, Tensor(c!) scale, Tensor(d!) zero_point, float averaging_const, int quant_min, int quant_max, int ch_axis, bool per_row_fake_quant=False, bool symmetric_quant=False) -> (Tensor output, Tensor mask)",
        observe,
    )
    .grad("self: grad * mask"),
    opaque("aten::_choose_qparams_per_tensor(Tensor self, bool reduce_range=False) -> (float, int)", |a| {
        let x = a.tensor(0)?;
        if x.numel() == 0 {
            return Err(Diagnostic::runtime(
                "min(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with \
                 the 'dim' argument.",
            ));
        }
        let (low, high) = ends(&x.elements_as::<f32>()?);
        let chosen = choose_qparams(low, high, (0, 255), false, a.bool(1)?)?;
        Ok(smallvec![Value::Float(chosen.scale), Value::Int(i64::from(chosen.zero_point))])
    }),
    opaque(
        "aten::choose_qparams_optimized(Tensor input, int numel, int n_bins, float ratio, int bit_width) -> (Tensor, Tensor)",
        |a| {
            let x = a.tensor(0)?.elements::<f32>()?;
            let row = usize::try_from(a.int(1)?).ok().and_then(|n| x.get(..n)).filter(|row| !row.is_empty());
            let row = row.ok_or_else(|| Diagnostic::runtime("numel is out of the bound of input tensor"))?;
            let bits = u32::try_from(a.int(4)?).ok().filter(|bits| (1..=16).contains(bits));
            let bits = bits.ok_or_else(|| Diagnostic::runtime("choose_qparams_optimized: bit_width must be 1 to 16"))?;
            let (low, high) = best_range(row, a.int(2)?, a.float(3)? as f32, bits);
            let one = |x: f32| Ok(Value::Tensor(Tensor::from_vec(&[x], &[1])?));
            Ok(smallvec![one(high)?, one(low)?])
        },
    ),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

fn first(outputs: Outputs) -> Result<Outputs> {
    Ok(outputs.into_iter().take(1).collect())
}

fn pair(output: Tensor, mask: Tensor) -> Result<Outputs> {
    Ok(smallvec![Value::Tensor(output), Value::Tensor(mask)])
}

/// Bounds at two positions, checked.
fn bounds(a: &Args<'_>, at: usize) -> Result<(i64, i64)> {
    let (low, high) = (a.int(at)?, a.int(at + 1)?);
    if low > high {
        // The blanks are PyTorch's.
        return fail("`quant_min` should be less than or         equal to `quant_max`.");
    }
    Ok((low, high))
}

fn floating(x: &Tensor, kernel: &str) -> Result<()> {
    if x.dtype().is_floating() {
        return Ok(());
    }
    Err(Diagnostic::raised(
        "NotImplementedError",
        format!("\"{kernel}\" not implemented for '{}'", x.dtype().type_name()),
    ))
}

/// A result of the dtype and memory order of `x` and a mask of the same order, element by element in logical order.
fn rounded(x: &Tensor, mut rule: impl FnMut(usize, f64, bool) -> (f64, bool)) -> Result<Outputs> {
    let wide = x.dtype() == DType::F64;
    let items = x.elements_as::<f64>()?;
    let (mut reals, mut inside) = (Vec::new(), Vec::new());
    let room = reals.try_reserve_exact(items.len()).is_ok() && inside.try_reserve_exact(items.len()).is_ok();
    if !room {
        return fail(format!("out of memory: no room for {} elements", items.len()));
    }
    for (i, item) in items.iter().enumerate() {
        let (real, within) = rule(i, *item, wide);
        reals.push(real);
        inside.push(Bool::new(within));
    }
    pair(
        like(x, &store::<f64>(&reals, &x.sizes(), x.dtype())?)?,
        like(x, &Tensor::from_vec(&inside, &x.sizes())?)?,
    )
}

/// `values` in the memory order of `x`, as `empty_like` keeps it.
fn like(x: &Tensor, values: &Tensor) -> Result<Tensor> {
    if x.is_contiguous() {
        return Ok(values.clone());
    }
    let walk = Walk::new(&[x.layout()])?;
    let result = walk.allocate(values.dtype())?;
    result.copy_from(values)?;
    Ok(result)
}

fn with_one(x: &Tensor, window: Window, zero_point: i64) -> Result<Outputs> {
    floating(x, "fake_quantize_tensor_cachemask_kernel_type_handling")?;
    rounded(x, |_, x, wide| {
        let (real, inside) = window.whole(x, zero_point, wide);
        (f64::from(real), inside)
    })
}

fn whole(a: &Args<'_>, at: usize) -> Result<Outputs> {
    let (low, high) = bounds(a, at)?;
    let zero_point = a.int(2)?;
    if !(low..=high).contains(&zero_point) {
        return fail("`zero_point` must be between `quant_min` and `quant_max`.");
    }
    with_one(a.tensor(0)?, Window { scale: a.float(1)? as f32, low, high }, zero_point)
}

fn whole_of_tensors(a: &Args<'_>, enabled: Option<usize>, at: usize) -> Result<Outputs> {
    let (low, high) = bounds(a, at)?;
    let (x, scale, zero_point) = (a.tensor(0)?, a.tensor(1)?.item()?, a.tensor(2)?.item()?);
    if let Some(n) = enabled
        && a.tensor(n)?.item()?.to_i64() == 0
    {
        return unrounded(x);
    }
    with_one(x, Window { scale: scale.to_f64() as f32, low, high }, zero_point.to_i64())
}

/// A copy, and a mask that is true everywhere.
fn unrounded(x: &Tensor) -> Result<Outputs> {
    let mask = Tensor::full(DType::Bool, &x.sizes(), Scalar::Bool(true))?;
    pair(like(x, &x.copy()?)?, like(x, &mask)?)
}

fn masked(a: &Args<'_>) -> Result<Outputs> {
    let (grad, mask) = (a.tensor(0)?, a.tensor(1)?);
    if mask.dtype() != DType::Bool {
        return fail("Expected mask.scalar_type() == ScalarType::Bool to be true, but got false.");
    }
    if mask.numel() != grad.numel() {
        return fail(format!(
            "`mask` and `dY` are not the same size: `mask` is size {} and `dY` is size {}",
            mask.numel(),
            grad.numel()
        ));
    }
    let kept = mask.elements::<Bool>()?;
    let values = grad.elements_as::<f64>()?;
    let product =
        values.iter().zip(&kept).map(|(x, keep)| x * if keep.get() { 1.0 } else { 0.0 }).scratch()?;
    one(like(grad, &store::<f64>(&product, &grad.sizes(), grad.dtype())?)?)
}

/// The channels of a tensor: of each its scale and zero point, and how far apart elements of different channels lie.
struct Channels {
    scales: Scratch<f32>,
    zeros: Scratch<ZeroPoint>,
    inner: usize,
}

impl Channels {
    fn new(
        x: &Tensor,
        scale: &Tensor,
        zeros: Scratch<ZeroPoint>,
        axis: i64,
        (low, high): (i64, i64),
    ) -> Result<Channels> {
        let sizes = x.sizes();
        if scale.rank() != 1 {
            return fail("scale should be a 1-D tensor");
        }
        let scales = scale.elements_as::<f32>()?;
        if scales.len() != zeros.len() {
            return fail("scale and zero-point need to have the same dimensions");
        }
        let dim = crate::tensor::wrap_dim(axis, sizes.len())?;
        if scales.len() as i64 != sizes.get(dim).copied().unwrap_or(1) {
            return fail("dimensions of scale and zero-point are not consistent with input tensor");
        }
        if axis < 0 {
            return fail("`axis` must be between 0 and number of dimensions of input");
        }
        let outside = |z: &ZeroPoint| matches!(z, ZeroPoint::Int(z) if !(low..=high).contains(z));
        if zeros.iter().any(outside) {
            return fail("`zero_point` must be between `quant_min` and `quant_max`.");
        }
        let inner = sizes.iter().skip(dim + 1).map(|s| (*s).max(1) as usize).product();
        Ok(Channels { scales, zeros, inner })
    }

    fn of(&self, element: usize) -> usize {
        element / self.inner.max(1) % self.scales.len().max(1)
    }

    fn round(&self, x: &Tensor, (low, high): (i64, i64)) -> Result<Outputs> {
        floating(x, "fake_quantize_channel_cachemask_cpu_type_handling")?;
        rounded(x, |i, x, wide| {
            let channel = self.of(i);
            let window = Window { scale: self.scales[channel], low, high };
            let (real, inside) = window.channel(x, self.zeros[channel], wide);
            (if wide { real } else { f64::from(real as f32) }, inside)
        })
    }
}

fn channels(a: &Args<'_>) -> Result<Outputs> {
    let (x, scale, zero_point) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?);
    if !matches!(scale.dtype(), DType::F32 | DType::BF16) {
        return fail(format!("Scale must be Float or BFloat16, found {}", scale.dtype().type_name()));
    }
    let zeros = match zero_point.dtype() {
        DType::I32 => zero_point.elements_as::<i64>()?.into_iter().map(ZeroPoint::Int).scratch()?,
        DType::F32 | DType::F16 | DType::BF16 => {
            zero_point.elements_as::<f32>()?.into_iter().map(ZeroPoint::Float).scratch()?
        }
        other => {
            return fail(format!("Zero-point must be Int32, Float or Half, found {}", other.type_name()));
        }
    };
    let bounds = bounds(a, 4)?;
    Channels::new(x, scale, zeros, a.int(3)?, bounds)?.round(x, bounds)
}

/// A learned zero point as an integer within bounds: rounded half to even, or upwards (of which backward formulas make use).
fn learned_zero(zero_point: f32, (low, high): (i64, i64), even: bool) -> i64 {
    let moved = if even { zero_point.round_ties_even() } else { zero_point + 0.5 };
    moved.max(low as f32).min(high as f32) as i64
}

fn learned(a: &Args<'_>) -> Result<Outputs> {
    let (low, high) = bounds(a, 3)?;
    let zero = a.tensor(2)?.item()?.to_f64() as f32;
    let scale = a.tensor(1)?.item()?.to_f64() as f32;
    first(with_one(a.tensor(0)?, Window { scale, low, high }, learned_zero(zero, (low, high), true))?)
}

fn learned_channels(a: &Args<'_>) -> Result<Outputs> {
    let bounds = bounds(a, 4)?;
    let (x, scale) = (a.tensor(0)?, a.tensor(1)?);
    let zeros = a.tensor(2)?.elements_as::<f32>()?;
    let zeros = zeros.into_iter().map(|z| ZeroPoint::Int(learned_zero(z, bounds, true))).scratch()?;
    first(Channels::new(x, scale, zeros, a.int(3)?, bounds)?.round(x, bounds)?)
}

fn float32(tensors: &[&Tensor]) -> Result<()> {
    if tensors.iter().all(|t| t.dtype() == DType::F32) {
        return Ok(());
    }
    fail("learned fake quantization: all tensors of the derivative must be float32")
}

fn around_zero((low, high): (i64, i64)) -> Result<()> {
    if low <= 0 && high >= 0 {
        return Ok(());
    }
    fail(
        "`quant_min` should be less than or         equal to `quant_max`, and the quantization range should include 0.",
    )
}

fn learned_backward(a: &Args<'_>) -> Result<Outputs> {
    let (grad, x, scale, zero_point) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?);
    let (bounds, factor) = (bounds(a, 4)?, a.float(6)? as f32);
    float32(&[grad, x, scale, zero_point])?;
    around_zero(bounds)?;
    if grad.numel() != x.numel() {
        return fail("`X` and `dY` are not the same size");
    }
    let zero = learned_zero(zero_point.item()?.to_f64() as f32, bounds, false);
    let window = Window { scale: scale.item()?.to_f64() as f32, low: bounds.0, high: bounds.1 };
    let (mut by_x, mut sums) = (memory::reserved(x.numel())?, [0f64; 2]);
    for (dy, x) in grad.elements::<f32>()?.iter().zip(x.elements::<f32>()?) {
        let slopes = window.slopes(x, zero);
        by_x.push(dy * slopes[0])?;
        sums[0] += f64::from(dy * slopes[1] * factor);
        sums[1] += f64::from(dy * slopes[2] * factor);
    }
    let single = |x: f64| Ok(Value::Tensor(Tensor::from_vec(&[x as f32], &[1])?));
    let by_x = like(x, &Tensor::from_vec(&by_x, &x.sizes())?)?;
    Ok(smallvec![Value::Tensor(by_x), single(sums[0])?, single(sums[1])?])
}

fn learned_channels_backward(a: &Args<'_>) -> Result<Outputs> {
    let (grad, x, scale, zero_point) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?);
    let (bounds, factor) = (bounds(a, 5)?, a.float(7)? as f32);
    float32(&[grad, x, scale, zero_point])?;
    around_zero(bounds)?;
    if grad.sizes() != x.sizes() {
        return fail("`X` and `dY` are not the same size");
    }
    let zeros =
        zero_point.elements::<f32>()?.into_iter().map(|z| ZeroPoint::Int(learned_zero(z, bounds, true)));
    let channels = Channels::new(x, scale, zeros.scratch()?, a.int(4)?, bounds)?;
    let count = channels.scales.len();
    let (mut by_x, mut sums) = (memory::reserved(x.numel())?, memory::filled(count, [0f64; 2])?);
    for (i, (dy, x)) in grad.elements::<f32>()?.iter().zip(x.elements::<f32>()?).enumerate() {
        let channel = channels.of(i);
        let window = Window { scale: channels.scales[channel], low: bounds.0, high: bounds.1 };
        let ZeroPoint::Int(zero) = channels.zeros[channel] else { continue };
        let slopes = window.slopes(x, zero);
        by_x.push(dy * slopes[0])?;
        sums[channel][0] += f64::from(dy * slopes[1] * factor);
        sums[channel][1] += f64::from(dy * slopes[2] * factor);
    }
    let vector = |which: usize| {
        let values = sums.iter().map(|s| s[which] as f32).scratch()?;
        Ok(Value::Tensor(Tensor::from_vec(&values, &[count as i64])?))
    };
    let by_x = like(x, &Tensor::from_vec(&by_x, &x.sizes())?)?;
    Ok(smallvec![Value::Tensor(by_x), vector(0)?, vector(1)?])
}

/// The smallest and the largest number; NaN where there is one.
fn ends(x: &[f32]) -> (f32, f32) {
    if x.iter().any(|x| x.is_nan()) {
        return (f32::NAN, f32::NAN);
    }
    x.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// An average that moves towards `now`; one that has seen nothing yet is infinite.
fn moved(average: f32, now: f32, weight: f32) -> f32 {
    if average.is_infinite() { now } else { average + weight * (now - average) }
}

/// Moves the running extremes (if `observer_on`), chooses scales from them and rounds with these (if `fake_quant_on`).
fn observe(a: &Args<'_>) -> Result<Outputs> {
    let x = a.tensor(0)?;
    let [low, high, scale, zero_point] = [a.tensor(3)?, a.tensor(4)?, a.tensor(5)?, a.tensor(6)?];
    let (bounds, axis, per_row) = (bounds(a, 8)?, a.int(10)?, a.bool(11)?);
    let on = |n: usize| Ok::<_, Diagnostic>(a.tensor(n)?.item()?.to_i64() != 0);
    if x.dtype() != DType::F32 {
        return fail(format!("expected scalar type Float but found {}", x.dtype().type_name()));
    }
    if per_row && axis != 0 {
        return fail(
            "Per-channel FakeQuant in fused_moving_avg_obs_fake_quant is only supported on axis == 0",
        );
    }
    let rows = if per_row { x.sizes().first().copied().unwrap_or(1) } else { 1 };
    if per_row && low.numel() == 0 {
        for (tensor, start) in
            [(low, f64::INFINITY), (high, f64::NEG_INFINITY), (scale, 1.0), (zero_point, 0.0)]
        {
            tensor.give_sizes(&[rows])?;
            tensor.fill(Scalar::Float(start))?;
        }
    }
    let (mut lows, mut highs) = (low.elements::<f32>()?, high.elements::<f32>()?);
    if lows.len() as i64 != rows || highs.len() as i64 != rows {
        return fail(
            "fused_moving_avg_obs_fake_quant: running extremes must be as many as rows of the input",
        );
    }
    if on(1)? {
        if x.numel() == 0 {
            return fail(
                "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.",
            );
        }
        let (items, weight) = (x.elements::<f32>()?, a.float(7)? as f32);
        for ((low, high), row) in
            lows.iter_mut().zip(&mut highs).zip(items.chunks(items.len() / rows.max(1) as usize))
        {
            let now = ends(row);
            (*low, *high) = (moved(*low, now.0, weight), moved(*high, now.1, weight));
        }
        low.write_dense(&lows)?;
        high.write_dense(&highs)?;
    }
    if !on(2)? {
        return unrounded(x);
    }
    let range = i32::try_from(bounds.0).ok().zip(i32::try_from(bounds.1).ok());
    let Some(range) = range else {
        return fail("fused_moving_avg_obs_fake_quant: bounds do not fit into 32 bits");
    };
    let chosen: Vec<_> = lows
        .iter()
        .zip(&highs)
        .map(|(low, high)| choose_qparams(*low, *high, range, a.bool(12)?, false))
        .collect::<Result<_>>()?;
    let scales = chosen.iter().map(|q| q.scale).scratch()?;
    let zeros = chosen.iter().map(|q| f64::from(q.zero_point)).scratch()?;
    scale.copy_from(&Tensor::from_vec(&scales, &[rows])?)?;
    zero_point.copy_from(&Tensor::from_vec(&zeros, &[rows])?)?;
    if per_row {
        let zeros = chosen.iter().map(|q| ZeroPoint::Int(i64::from(q.zero_point))).scratch()?;
        return Channels::new(x, scale, zeros, axis, bounds)?.round(x, bounds);
    }
    let window = Window { scale: chosen[0].scale as f32, low: bounds.0, high: bounds.1 };
    with_one(x, window, i64::from(chosen[0].zero_point))
}
