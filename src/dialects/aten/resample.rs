//! Images at other sizes: interpolation by neighbours, lines, cubics and with antialiasing.

use super::convert::in_format_of;
use super::kernels::compute::{Dense, Real, build, rounding};
use super::kernels::pool::each_plane;
use super::kernels::wide_loops;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::trial;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::resize::{self, Filter};
use crate::resources::memory;
use crate::tensor::{DType, Element, Tensor};

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", |a| {
        sized(a, 1, Mode::Nearest, None, 2)
    }).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out_exact("out"),
    opaque("aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 1, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Nearest, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out("out"),
    opaque("aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 2, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::Nearest, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out("out"),
    opaque("aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 3, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        |a| sized(a, 1, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 1, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 3, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(trial::kernel),
    opaque(
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        |a| sized(a, 1, Mode::Linear, Some(2), 3),
    ).infer(trial::kernel)
    .out("out"),
    opaque(
        "aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 1, Mode::Linear, Some(2)),
    ).infer(trial::kernel),
    opaque(
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Linear, Some(2), 3),
    ).quantized_kernel(crate::dialects::quantized::pool::resample).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::Linear, Some(2)),
    ).quantized_kernel(crate::dialects::quantized::pool::resample).infer(trial::kernel),
    opaque(
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::Linear, Some(2), 3),
    ).infer(trial::kernel)
    .out("out"),
    opaque(
        "aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 3, Mode::Linear, Some(2)),
    ).infer(trial::kernel),
    opaque(
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Cubic, Some(2), 3),
    ).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::Cubic, Some(2)),
    ).infer(trial::kernel),
    opaque(
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::SmoothLinear, Some(2), 3),
    ).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::SmoothLinear, Some(2)),
    ).infer(trial::kernel),
    opaque(
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::SmoothCubic, Some(2), 3),
    ).infer(trial::kernel)
    .out_exact("out"),
    opaque(
        "aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::SmoothCubic, Some(2)),
    ).infer(trial::kernel),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// How an element between others is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Nearest,
    NearestExact,
    Linear,
    Cubic,
    /// With antialiasing.
    SmoothLinear,
    /// With antialiasing.
    SmoothCubic,
}

impl Mode {
    fn is_nearest(self) -> bool {
        matches!(self, Mode::Nearest | Mode::NearestExact)
    }
}

/// Sizes given; scales stand at `scales..`, one a dimension.
fn sized(a: &Args<'_>, dims: usize, mode: Mode, align: Option<usize>, scales: usize) -> Result<Outputs> {
    let output = a.ints(1)?;
    if output.len() != dims {
        return fail(format!("It is expected output_size equals to {dims}, but got size {}", output.len()));
    }
    let scales = (0..dims).map(|d| a.opt_float(scales + d)).collect::<Result<Vec<_>>>()?;
    let align = align.map(|n| a.bool(n)).transpose()?.unwrap_or(false);
    one(resample(a.tensor(0)?, &output, &scales, mode, align)?)
}

/// Sizes or factors given.
fn scaled(a: &Args<'_>, dims: usize, mode: Mode, align: Option<usize>) -> Result<Outputs> {
    let (input, output) = (a.tensor(0)?, a.opt_ints(1)?);
    let factors = a.value(2 + usize::from(align.is_some()))?;
    let factors = if factors.is_none() {
        None
    } else {
        Some(factors.to_list()?.items().iter().map(|v| v.to_float()).collect::<Result<Vec<f64>>>()?)
    };
    let align = align.map(|n| a.bool(n)).transpose()?.unwrap_or(false);
    let (output, scales) = match (output, factors) {
        (Some(output), None) if output.len() == dims => (output, vec![None; dims]),
        (None, Some(factors)) if factors.len() == dims => {
            let sizes = input.sizes();
            let output = (0..dims)
                .map(|d| (sizes.get(d + 2).copied().unwrap_or(0) as f64 * factors[d]).floor() as i64);
            (output.collect(), factors.iter().map(|f| Some(*f)).collect())
        }
        (Some(_), Some(_)) | (None, None) => {
            return fail("Must specify exactly one of output_size and scale_factors");
        }
        _ => return fail(format!("Expected {dims} sizes or scale factors")),
    };
    one(resample(input, &output, &scales, mode, align)?)
}

fn resample(
    input: &Tensor,
    output: &[i64],
    scales: &[Option<f64>],
    mode: Mode,
    align: bool,
) -> Result<Tensor> {
    in_format_of(resampled(input, output, scales, mode, align)?, &[input])
}

fn resampled(
    input: &Tensor,
    output: &[i64],
    scales: &[Option<f64>],
    mode: Mode,
    align: bool,
) -> Result<Tensor> {
    let (sizes, dims) = (input.sizes(), output.len());
    if sizes.len() != dims + 2 {
        return fail(format!(
            "It is expected input_size equals to {}, but got size {}",
            dims + 2,
            sizes.len()
        ));
    }
    let spatial = &sizes[2..];
    if spatial.iter().chain(output).any(|s| *s <= 0) {
        let names = &["D", "H", "W"][3 - dims..];
        let show = |sizes: &[i64]| {
            let parts: Vec<String> = names.iter().zip(sizes).map(|(n, s)| format!("{n}: {s}")).collect();
            parts.join(", ")
        };
        let and = if dims == 1 { "and " } else { "" };
        return fail(format!(
            "Input and output sizes should be greater than 0, but got input ({}) {and}output ({})",
            show(spatial),
            show(output)
        ));
    }
    if sizes[1] == 0 {
        return fail(format!(
            "Non-empty {}D data tensor expected but got a tensor with sizes {:?}",
            dims + 2,
            sizes.as_slice()
        ));
    }
    let result: Vec<i64> = sizes[..2].iter().chain(output).copied().collect();
    let dtype = input.dtype();
    if dtype == DType::U8 && mode.is_nearest() {
        return resample(&input.to_dtype(DType::F32)?, output, scales, mode, align)?.to_dtype(dtype);
    }
    if dtype == DType::U8 && dims == 2 {
        return resampled_bytes(input, &result, scales, mode, align);
    }
    let name = match (mode, dims) {
        (Mode::Cubic, _) => "compute_indices_weights_cubic",
        (Mode::SmoothLinear | Mode::SmoothCubic, _) => "upsample_separable_Nd_base",
        (Mode::Linear, 1) => "compute_indices_weights_linear",
        (Mode::Linear, 2) => "upsample_bilinear2d_channels_last",
        (Mode::Linear, _) => "upsample_trilinear3d_channels_last",
        (_, 1) => "compute_indices_weights_nearest",
        (_, 2) => "upsample_nearest2d_channels_last",
        _ => "upsample_nearest3d_channels_last",
    };
    // PyTorch's kernel for small results copies where a size stays, and doubles where it doubles, whatever the scale.
    let is_small = match dims {
        1 => false,
        2 => output.iter().fold(0, |sum: i64, n| sum.saturating_add(*n)) <= 128,
        _ => output.iter().fold(0, |sum: i64, n| sum.saturating_add(*n)) <= 256,
    };
    let scale = |d: usize| {
        let plain = match mode {
            Mode::Nearest => output[d] == spatial[d] || output[d] == 2 * spatial[d],
            Mode::Linear => output[d] == spatial[d],
            // With antialiasing dimensions that stay are left alone.
            Mode::SmoothLinear | Mode::SmoothCubic => return scales[d].filter(|_| output[d] != spatial[d]),
            _ => false,
        };
        scales[d].filter(|_| !(is_small && plain))
    };
    // The result, and what is noted for each of its places along a dimension, must fit before anything is computed.
    memory::expect::<f32>(result.iter().fold(1usize, |n, size| n.saturating_mul((*size).max(0) as usize)))?;
    for size in output {
        memory::expect::<[Taps<f64>; 2]>((*size).max(0) as usize)?;
    }
    crate::dispatch_real!(dtype, name, R => {
        let mut taps: Vec<Vec<Taps<R>>> = (0..dims)
            .map(|d| axis::<R>(mode, spatial[d] as usize, output[d] as usize, scale(d), align))
            .collect();
        if mode == Mode::Cubic || (mode == Mode::Linear && !(dims == 2 && is_small)) {
            taps.iter_mut().flatten().for_each(|t| t.keep_as(dtype));
        }
        // Sums of PyTorch's kernel with antialiasing are rounded once a step.
        let fused = matches!(mode, Mode::SmoothLinear | Mode::SmoothCubic);
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        // Dimension by dimension from the last: fewer elements are visited than by all at once.
        let mut values: Vec<R> = Vec::new();
        let mut inner = 1;
        for d in (1..dims).rev() {
            let source = if d == dims - 1 { &x[..] } else { &values };
            let (from, to) = (spatial[d] as usize, output[d] as usize);
            let outer = source.len() / (from * inner);
            // Proves that the intermediate sizes can be allocated.
            Tensor::zeros(R::DTYPE, &[outer as i64, to as i64, inner as i64])?;
            let mut next = memory::filled(outer.saturating_mul(to).saturating_mul(inner), R::ZERO)?;
            along(source, from, inner, &taps[d], fused, &mut next);
            (values, inner) = (next, inner * to);
        }
        let source = if dims == 1 { &x[..] } else { &values };
        build::<R>(&result, dtype, |out| {
            along(source, spatial[0] as usize, inner, &taps[0], fused, out);
            Ok(())
        })
    })
}

/// Images of bytes, by weights of 16 bits: first along lines, then along columns.
fn resampled_bytes(
    input: &Tensor,
    result: &[i64],
    scales: &[Option<f64>],
    mode: Mode,
    align: bool,
) -> Result<Tensor> {
    let antialias = matches!(mode, Mode::SmoothLinear | Mode::SmoothCubic);
    let filter =
        if matches!(mode, Mode::Linear | Mode::SmoothLinear) { Filter::Linear } else { Filter::Cubic };
    let sizes = input.sizes();
    let mut bytes = input.to_vec::<u8>()?;
    let mut inner = 1;
    for d in [3, 2] {
        let (from, to) = (sizes[d] as usize, result[d] as usize);
        // A dimension that stays is left alone, whatever the scale.
        if from != to {
            let axis = resize::Axis {
                from,
                to,
                step: step(from, to, scales[d - 2], align),
                align,
                filter,
                antialias,
            };
            let planes = bytes.len() / (from * inner);
            // Proves that the result can be allocated.
            let next = Tensor::zeros(DType::U8, &[planes as i64, to as i64, inner as i64])?;
            let weights = resize::Weights::new(&axis);
            next.write::<u8, _>(|out, _| resize::along(&bytes, from, inner, &weights, out))?;
            bytes = next.to_vec::<u8>()?;
        }
        inner *= to;
    }
    Tensor::from_vec(&bytes, result)
}

/// The elements that one result element is made of: the first, and a weight for each (clamped ones repeat).
struct Taps<R> {
    places: Vec<usize>,
    weights: Vec<R>,
}

impl<R: Real> Taps<R> {
    /// Most of PyTorch's kernels keep the weights in the dtype of the image; of two the first is what the second leaves.
    fn keep_as(&mut self, dtype: DType) {
        let round = rounding(dtype);
        self.weights.iter_mut().for_each(|weight| *weight = R::of(round(weight.wide())));
        if let [first, second] = &mut self.weights[..] {
            *first = R::of(round(1.0 - second.wide()));
        }
    }
}

/// Applies taps to one dimension: (outer, from, inner) becomes (outer, taps, inner).
fn along<R: Real>(source: &[R], from: usize, inner: usize, taps: &[Taps<R>], fused: bool, out: &mut [R]) {
    each_plane(out, taps.len() * inner, taps.first().map_or(1, |t| t.places.len()), |at, out| {
        let plane = &source[at * from * inner..(at + 1) * from * inner];
        wide_loops(
            #[inline(always)]
            || {
                if inner == 1 {
                    for (y, taps) in out.iter_mut().zip(taps) {
                        let mut sum = R::ZERO;
                        for (n, (place, weight)) in taps.places.iter().zip(&taps.weights).enumerate() {
                            sum = match plane[*place] {
                                x if n > 0 && fused => x.fused(*weight, sum),
                                x => sum + x * *weight,
                            };
                        }
                        *y = sum;
                    }
                    return;
                }
                for (line, taps) in out.chunks_mut(inner).zip(taps) {
                    for (n, (place, weight)) in taps.places.iter().zip(&taps.weights).enumerate() {
                        let source = &plane[place * inner..(place + 1) * inner];
                        if n == 0 {
                            line.iter_mut().zip(source).for_each(|(y, x)| *y = *x * *weight);
                        } else if fused {
                            line.iter_mut().zip(source).for_each(|(y, x)| *y = x.fused(*weight, *y));
                        } else {
                            line.iter_mut().zip(source).for_each(|(y, x)| *y += *x * *weight);
                        }
                    }
                }
            },
        );
    });
}

/// Input steps for one output step.
fn step<R: Real>(from: usize, to: usize, scale: Option<f64>, align: bool) -> R {
    match scale {
        _ if align && to > 1 => R::of((from - 1) as f64) / R::of((to - 1) as f64),
        _ if align => R::ZERO,
        Some(scale) if scale > 0.0 => R::of(1.0 / scale),
        _ => R::of(from as f64) / R::of(to as f64),
    }
}

/// The taps of every output element along a dimension.
fn axis<R: Real>(mode: Mode, from: usize, to: usize, scale: Option<f64>, align: bool) -> Vec<Taps<R>> {
    let step: R = step(from, to, scale, align);
    let half = R::of(0.5);
    let index = |x: R| x.wide().max(0.0) as usize;
    (0..to)
        .map(|at| {
            let position = R::of(at as f64);
            match mode {
                Mode::Nearest | Mode::NearestExact => {
                    let shift = if mode == Mode::Nearest { R::ZERO } else { half };
                    let place = index(((position + shift) * step).floor()).min(from - 1);
                    Taps { places: vec![place], weights: vec![R::ONE] }
                }
                Mode::Linear => {
                    let x = if align { step * position } else { step * (position + half) - half };
                    let x = x.greater(R::ZERO);
                    let first = index(x.floor()).min(from - 1);
                    let second = first + usize::from(first < from - 1);
                    let rest = (x - R::of(first as f64)).greater(R::ZERO);
                    let rest = if rest > R::ONE { R::ONE } else { rest };
                    Taps { places: vec![first, second], weights: vec![R::ONE - rest, rest] }
                }
                Mode::Cubic => {
                    let x = if align { step * position } else { step * (position + half) - half };
                    let floor = x.floor().wide() as i64;
                    let weights = cubic(x - R::of(floor as f64), R::of(-0.75)).to_vec();
                    let places = (-1..3).map(|k| (floor + k).clamp(0, from as i64 - 1) as usize).collect();
                    Taps { places, weights }
                }
                Mode::SmoothLinear | Mode::SmoothCubic => smooth(mode, from, at, step),
            }
        })
        .collect()
}

/// The weights of the four elements around a place between the second and the third.
pub fn cubic<R: Real>(t: R, a: R) -> [R; 4] {
    let near = |x: R| ((a + R::of(2.0)) * x - (a + R::of(3.0))) * x * x + R::ONE;
    let far = |x: R| ((a * x - R::of(5.0) * a) * x + R::of(8.0) * a) * x - R::of(4.0) * a;
    let u = R::ONE - t;
    [far(t + R::ONE), near(t), near(u), far(u + R::ONE)]
}

/// All elements under the filter stretched to the step, by their share.
fn smooth<R: Real>(mode: Mode, from: usize, at: usize, step: R) -> Taps<R> {
    let reach = if mode == Mode::SmoothLinear { 1.0 } else { 2.0 };
    // Sums with halves are computed as float64, what is kept is rounded to the dtype of computation.
    let kept = |x: f64| R::of(x);
    let step = step.wide();
    let stretched = step >= 1.0;
    let support = kept(if stretched { reach * step } else { reach });
    let shrink = kept(if stretched { 1.0 / step } else { 1.0 });
    let center = kept(step * (at as f64 + 0.5));
    let low = (((center - support).wide() + 0.5) as i64).max(0);
    let high = (((center + support).wide() + 0.5) as i64).min(from as i64).max(low);
    let [one, two] = [R::ONE, R::of(2.0)];
    let filter = |x: R| {
        let (x, a) = (x.abs(), R::of(-0.5));
        match mode {
            Mode::SmoothLinear if x < one => one - x,
            Mode::SmoothLinear => R::ZERO,
            _ if x < one => ((a + two).mul_add(x, -(a + R::of(3.0))) * x).mul_add(x, one),
            _ if x < two => {
                let bend = a.mul_add(x, R::of(-5.0) * a);
                bend.mul_add(x, R::of(8.0) * a).mul_add(x, R::of(-4.0) * a)
            }
            _ => R::ZERO,
        }
    };
    let weight = |j: i64| filter(kept(((R::of(j as f64) - center).wide() + 0.5) * shrink.wide()));
    let weights: Vec<R> = (low..high).map(weight).collect();
    let total = weights.iter().fold(R::ZERO, |total, w| total + *w);
    Taps {
        places: (low..high).map(|j| j as usize).collect(),
        weights: weights.iter().map(|w| if total == R::ZERO { *w } else { *w / total }).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers from PyTorch: 1, 2, 4 at five places.
    #[test]
    fn lines_are_resampled() {
        let x = Tensor::from_vec(&[1f64, 2.0, 4.0], &[1, 1, 3]).expect("valid");
        let run = |mode, align| {
            let y = resample(&x, &[5], &[None], mode, align).expect("valid");
            y.to_vec::<f64>().expect("f64")
        };
        assert_eq!(run(Mode::Nearest, false), [1.0, 1.0, 2.0, 2.0, 4.0]);
        assert_eq!(run(Mode::NearestExact, false), [1.0, 1.0, 2.0, 4.0, 4.0]);
        assert_eq!(run(Mode::Linear, true), [1.0, 1.5, 2.0, 3.0, 4.0]);
        let halves = run(Mode::Linear, false);
        let expected = [1.0, 1.4, 2.0, 3.2, 4.0];
        assert!(halves.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-12), "{halves:?}");
    }
}
