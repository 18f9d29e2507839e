//! Images at other sizes: interpolation by neighbours, lines, cubics and with antialiasing.

use super::convert::in_format_of;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::products;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Real, build, build_whole};
use crate::kernels::create::range::not_implemented;
use crate::kernels::images::linear::{Grid, linear_pixels, linear_planes, nearest};
use crate::kernels::images::resample::{Mode, Taps, along, axis, corners, step};
use crate::kernels::images::resize;
use crate::kernels::images::resize::Filter;
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Element, Tensor, view};

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::upsample_nearest1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor", |a| {
        sized(a, 1, Mode::Nearest, None, 2)
    }).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out_exact("out"),
    opaque("aten::upsample_nearest1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 1, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::upsample_nearest2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Nearest, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out("out"),
    opaque("aten::upsample_nearest2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 2, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::upsample_nearest3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::Nearest, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out("out"),
    opaque("aten::upsample_nearest3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor", |a| {
        scaled(a, 3, Mode::Nearest, None)
    }).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::_upsample_nearest_exact1d(Tensor self, SymInt[1] output_size, float? scales=None) -> Tensor",
        |a| sized(a, 1, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact1d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 1, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::_upsample_nearest_exact2d(Tensor self, SymInt[2] output_size, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact2d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::_upsample_nearest_exact3d(Tensor self, SymInt[3] output_size, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::NearestExact, None, 2),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_nearest_exact3d.vec(Tensor input, SymInt[]? output_size, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 3, Mode::NearestExact, None),
    ).quantized(crate::dialects::Quantized::Integers).infer(products::resized),
    opaque(
        "aten::upsample_linear1d(Tensor self, SymInt[1] output_size, bool align_corners, float? scales=None) -> Tensor",
        |a| sized(a, 1, Mode::Linear, Some(2), 3),
    ).infer(products::resized)
    .out("out"),
    opaque(
        "aten::upsample_linear1d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 1, Mode::Linear, Some(2)),
    ).infer(products::resized),
    opaque(
        "aten::upsample_bilinear2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Linear, Some(2), 3),
    ).quantized_kernel(crate::dialects::quantized::pool::bilinear).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::upsample_bilinear2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::Linear, Some(2)),
    ).quantized_kernel(crate::dialects::quantized::pool::bilinear).infer(products::resized),
    opaque(
        "aten::upsample_trilinear3d(Tensor self, SymInt[3] output_size, bool align_corners, float? scales_d=None, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 3, Mode::Linear, Some(2), 3),
    ).infer(products::resized)
    .out("out"),
    opaque(
        "aten::upsample_trilinear3d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 3, Mode::Linear, Some(2)),
    ).infer(products::resized),
    opaque(
        "aten::upsample_bicubic2d(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::Cubic, Some(2), 3),
    ).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::upsample_bicubic2d.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::Cubic, Some(2)),
    ).infer(products::resized),
    opaque(
        "aten::_upsample_bilinear2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::SmoothLinear, Some(2), 3),
    ).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_bilinear2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::SmoothLinear, Some(2)),
    ).infer(products::resized),
    opaque(
        "aten::_upsample_bicubic2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::SmoothCubic, Some(2), 3),
    ).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_bicubic2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::SmoothCubic, Some(2)),
    ).infer(products::resized),
    opaque(
        "aten::_upsample_lanczos2d_aa(Tensor self, SymInt[2] output_size, bool align_corners, float? scales_h=None, float? scales_w=None) -> Tensor",
        |a| sized(a, 2, Mode::SmoothLanczos, Some(2), 3),
    ).infer(products::resized)
    .out_exact("out"),
    opaque(
        "aten::_upsample_lanczos2d_aa.vec(Tensor input, SymInt[]? output_size, bool align_corners, float[]? scale_factors) -> Tensor",
        |a| scaled(a, 2, Mode::SmoothLanczos, Some(2)),
    ).infer(products::resized),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
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
    let given = output.as_ref().map(|sizes| ("output_size", sizes.len()));
    let given = given.or(factors.as_ref().map(|factors| ("scale_factors", factors.len())));
    if let Some((name, count)) = given
        && count + 2 != input.rank()
    {
        return fail(format!(
            "Expected static_cast<int64_t>({name}->size()) == spatial_dimensions to be true, but got false.  (Could this \
             error message be improved?  If so, please report an enhancement request to PyTorch.)"
        ));
    }
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
        (mode, _) if mode.is_smooth() => "compute_index_ranges_weights",
        (Mode::Linear, 2) => "upsample_bilinear2d_channels_last",
        (Mode::Linear, _) => "compute_indices_weights_linear",
        (_, 1) => "compute_indices_weights_nearest",
        (_, 2) => "upsample_nearest2d_channels_last",
        _ => "upsample_nearest3d_channels_last",
    };
    if name == "compute_index_ranges_weights" && matches!(dtype, DType::F16 | DType::BF16) {
        return Err(not_implemented(name, dtype));
    }
    // PyTorch's kernel for small results copies where a size stays, and doubles where it doubles, whatever the scale.
    let is_small = match dims {
        1 => false,
        2 => output.iter().fold(0, |sum: i64, n| sum.saturating_add(*n)) <= 128,
        _ => output.iter().fold(0, |sum: i64, n| sum.saturating_add(*n)) <= 256,
    };
    let at_once = at_once(input, output, mode);
    let scale = |d: usize| {
        let plain = match mode {
            Mode::Nearest => output[d] == spatial[d] || output[d] == 2 * spatial[d],
            Mode::Linear => return scales[d].filter(|_| !(at_once && output[d] == spatial[d])),
            // With antialiasing dimensions that stay are left alone.
            mode if mode.is_smooth() => return scales[d].filter(|_| output[d] != spatial[d]),
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
        let taps: Vec<Vec<Taps<R>>> = (0..dims)
            .map(|d| {
                // Where lines are summed by PyTorch's kernel for corners, the places along a line are rounded twice.
                let fused = mode == Mode::Cubic || (at_once && !(dims == 3 && d == 2));
                let mut taps = axis::<R>(mode, spatial[d] as usize, output[d] as usize, scale(d), align, fused);
                if mode == Mode::Cubic || (mode == Mode::Linear && !at_once) {
                    taps.iter_mut().for_each(|taps| taps.keep_as(dtype));
                }
                taps
            })
            .collect();
        // PyTorch's kernel with antialiasing adds each product to the sum, the others begin with the second product.
        let in_turn = mode.is_smooth();
        if dims == 2 && (at_once || mode.is_nearest()) {
            return planar::<R>(input, &result, &taps, mode);
        }
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        if at_once {
            let lanes = 64 / dtype.size();
            let (channels, vectors) = (sizes[1] as usize, sizes[1] as usize / lanes * lanes);
            return build::<R>(&result, dtype, |out| {
                corners(&x, spatial, &taps, |plane| plane % channels < vectors, out);
                Ok(())
            });
        }
        // Dimension by dimension from the last: fewer elements are visited than by all at once.
        let mut values: Scratch<R> = Scratch::default();
        let mut inner = 1;
        for d in (1..dims).rev() {
            let source = if d == dims - 1 { &x[..] } else { &values };
            let (from, to) = (spatial[d] as usize, output[d] as usize);
            let outer = source.len() / (from * inner);
            // Proves that the intermediate sizes can be allocated.
            Tensor::expect(R::DTYPE, &[outer as i64, to as i64, inner as i64])?;
            let mut next = memory::filled(outer.saturating_mul(to).saturating_mul(inner), R::ZERO)?;
            along(source, from, inner, &taps[d], in_turn, &mut next);
            (values, inner) = (next, inner * to);
        }
        let source = if dims == 1 { &x[..] } else { &values };
        build::<R>(&result, dtype, |out| {
            along(source, spatial[0] as usize, inner, &taps[0], in_turn, out);
            Ok(())
        })
    })
}

/// Two dimensions, whose results lie between two places of each or are one place's; read as they lie, whether channels have
/// planes or lie innermost.
fn planar<R: Real>(input: &Tensor, result: &[i64], taps: &[Vec<Taps<R>>], mode: Mode) -> Result<Tensor> {
    let (sizes, dtype) = (input.sizes(), input.dtype());
    let between = |taps: &[Taps<R>]| {
        let all = memory::collected(taps.iter().filter_map(Taps::between))?;
        let is_whole = all.len() == taps.len();
        is_whole.then_some(all).ok_or_else(|| Diagnostic::internal("a place between more than two others"))
    };
    let [rows, columns] = taps else { return Err(Diagnostic::internal("an image without two dimensions")) };
    let (rows, columns) = (between(rows)?, between(columns)?);
    let grid = Grid { rows: &rows, columns: &columns, from: (sizes[2] as usize, sizes[3] as usize) };
    let channels = sizes[1] as usize;
    // PyTorch sums this many channels in vectors, from the last corner on.
    let lanes = 64 / dtype.size();
    let vectors = channels / lanes * lanes;
    // The result lies as PyTorch would have it, which reads strides of size 1 too.
    let layout = input.layout();
    if layout.is_contiguous() || !layout.suggests_channels_last() {
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        return build_whole::<R>(result, dtype, |out| {
            match mode.is_nearest() {
                true => nearest(&x, &grid, 1, out),
                false => linear_planes(&x, &grid, |plane| plane % channels < vectors, out),
            }
            Ok(())
        });
    }
    let x = Dense::<R>::new(&input.look(|l| view::movedim(l, &[1], &[3]))?)?;
    let x = x.open()?;
    let pixels = build_whole::<R>(&[result[0], result[2], result[3], result[1]], dtype, |out| {
        match mode.is_nearest() {
            true => nearest(&x, &grid, channels, out),
            false => linear_pixels(&x, &grid, channels, vectors, out),
        }
        Ok(())
    })?;
    pixels.look(|l| view::movedim(l, &[3], &[1]))
}

/// Whether PyTorch's kernel sums all corners at once, channel by channel: of planes always on one thread, whose numbers these
/// are, of volumes where channels lie last.
fn at_once(input: &Tensor, output: &[i64], mode: Mode) -> bool {
    let lies_so = || input.layout().is_channels_last() && input.sizes()[1] > 3;
    mode == Mode::Linear && (output.len() == 2 || output.len() == 3 && lies_so())
}

/// Images of bytes, by weights of 16 bits: first along lines, then along columns.
fn resampled_bytes(
    input: &Tensor,
    result: &[i64],
    scales: &[Option<f64>],
    mode: Mode,
    align: bool,
) -> Result<Tensor> {
    let antialias = mode.is_smooth();
    let filter = match mode {
        Mode::Linear | Mode::SmoothLinear => Filter::Linear,
        Mode::SmoothLanczos => Filter::Lanczos,
        _ => Filter::Cubic,
    };
    let sizes = input.sizes();
    let mut bytes = input.elements::<u8>()?;
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
            bytes = next.elements::<u8>()?;
        }
        inner *= to;
    }
    Tensor::from_vec(&bytes, result)
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
