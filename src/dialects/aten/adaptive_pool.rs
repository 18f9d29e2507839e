//! Adaptive pooling: the largest element or the mean of as many parts of an image as are asked for.

use super::pool::{Planes, both_in_format_of, fail, pairs, pooled, three};
use super::pool_checks::{argument_rank, as_images, refuse_empty};
use super::pool_images::pooled_in_vectors;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{layers, products};
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Real, build, rounding};
use crate::kernels::float::Pooling;
use crate::kernels::images::pool::{
    adaptive_mean, adaptive_mean_stepped, each_pair_of_planes, each_plane, largest, largest_of_pixels, share,
    shares,
};
use crate::kernels::wide_loops;
use crate::tensor::{Tensor, view};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::adaptive_avg_pool1d(Tensor self, int[1] output_size) -> Tensor", |a| adaptive_avg(a, 1))
        .quantized_kernel(|a| crate::dialects::quantized::pool::adaptive_avg(a, 1))
        .infer(products::adaptive)
        .out("out"),
    opaque("aten::adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", |a| adaptive_avg(a, 2))
        .quantized_kernel(|a| crate::dialects::quantized::pool::adaptive_avg(a, 2))
        .infer(products::adaptive)
        .out("out"),
    opaque("aten::adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", |a| adaptive_avg(a, 3))
        .quantized_kernel(|a| crate::dialects::quantized::pool::adaptive_avg(a, 3))
        .infer(products::adaptive)
        .out("out"),
    opaque("aten::_adaptive_avg_pool2d(Tensor self, SymInt[2] output_size) -> Tensor", |a| {
        adaptive_avg(a, 2)
    })
    .infer(products::adaptive)
    .out_exact("out"),
    opaque("aten::_adaptive_avg_pool3d(Tensor self, SymInt[3] output_size) -> Tensor", |a| {
        adaptive_avg(a, 3)
    })
    .infer(products::adaptive)
    .out_exact("out"),
    opaque("aten::adaptive_max_pool1d(Tensor self, int[1] output_size) -> (Tensor, Tensor)", |a| {
        adaptive_max(a, 1)
    })
    .infer(layers::adaptive_with_places),
    opaque("aten::adaptive_max_pool2d(Tensor self, int[2] output_size) -> (Tensor, Tensor)", |a| {
        adaptive_max(a, 2)
    })
    .infer(layers::adaptive_with_places),
    opaque("aten::adaptive_max_pool3d(Tensor self, int[3] output_size) -> (Tensor, Tensor)", |a| {
        adaptive_max(a, 3)
    })
    .infer(layers::adaptive_with_places),
];

/// The asked number of parts, and the planes.
fn adaptive_prepare(a: &Args<'_>, dims: usize, kind: &str) -> Result<(Vec<i64>, Planes)> {
    let (t, output) = (a.tensor(0)?, a.ints(1)?);
    let (sizes, name) = (t.sizes(), format!("adaptive_{kind}_pool{dims}d"));
    if dims == 1 {
        argument_rank(t, &name)?;
    }
    if output.len() != dims {
        return fail(match (dims, kind) {
            (1, _) => {
                format!("{name}() argument 'output_size' should contain one int (got {})", output.len())
            }
            (_, "max") => format!("{name}(): internal error: output_size.size() must be {dims}"),
            _ => format!("{name}: output_size must be {dims}"),
        });
    }
    if let Some(negative) = output.iter().find(|n| **n < 0) {
        // One dimension is done as two, of which the first has one part.
        let asked: Vec<i64> = (dims == 1).then_some(1).into_iter().chain(output.iter().copied()).collect();
        if kind == "max" {
            let lead = sizes[..sizes.len().saturating_sub(dims)].iter().copied();
            let all: Vec<i64> = lead.chain(asked.iter().copied()).collect();
            return fail(format!("Trying to create tensor with negative dimension {negative}: {all:?}"));
        }
        let shown = match asked[..] {
            [t, h, w] => format!("{t}, {h},{w}"),
            _ => asked.iter().map(i64::to_string).collect::<Vec<_>>().join(", "),
        };
        return fail(format!(
            "adaptive_avg_pool{}d: elements of output_size must be greater than or equal to 0 but received {{{shown}}}",
            asked.len()
        ));
    }
    if sizes.len() != dims + 1 && sizes.len() != dims + 2 {
        let colon = if kind == "max" { ":" } else { "" };
        return fail(format!(
            "{name}(): Expected {}D or {}D tensor, but got{colon} {:?}",
            dims + 1,
            dims + 2,
            sizes.as_slice()
        ));
    }
    // Averages in one and two dimensions may have no channels; those in one are done as in two.
    let (first, name) = match (kind, dims) {
        ("avg", 1) => (2, "adaptive_avg_pool2d"),
        ("avg", 2) => (sizes.len() - 2, &*name),
        _ => (1, &*name),
    };
    let shown = if kind == "avg" { as_images(&sizes, dims) } else { sizes.to_vec() };
    refuse_empty(name, &shown, first)?;
    Ok((output, Planes::new(t, dims)))
}

fn adaptive_avg(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (output, planes) = adaptive_prepare(a, dims, "avg")?;
    let t = a.tensor(0)?;
    let (sizes, input, parts) = (planes.sizes(&output), three(&planes.input), three(&output));
    if dims == 2
        && let Some(result) = pooled_in_vectors(t, &Pooling::Adaptive([parts[1], parts[2]]))?
    {
        return one(result);
    }
    let name = ["adaptive_avg_pool2d", "adaptive_avg_pool2d", "adaptive_avg_pool3d_cpu"][dims - 1];
    crate::dispatch_real!(t.dtype(), name, R => {
        let x = Dense::<R>::new(t)?;
        let x = x.open()?;
        let size: usize = input.iter().product();
        // More than there is memory for is refused by `build`.
        let count = parts.iter().fold(1, |all: usize, part| all.saturating_mul(*part));
        let result = build::<R>(&sizes, t.dtype(), |out| {
            each_plane(out, count, size / count.max(1), |at, out| {
                let plane = &x[at * size..(at + 1) * size];
                if dims == 3 && matches!(t.dtype(), DType::F16 | DType::BF16) {
                    adaptive_mean_stepped(plane, &input, &parts, rounding(t.dtype()), out);
                } else {
                    adaptive_mean(plane, &input, &parts, out);
                }
            });
            Ok(())
        })?;
        // Volumes stay row-major, but for their means, which keep the order of the volume.
        one(if dims < 3 || (count == 1 && t.rank() == 5) { pooled(result, t)? } else { result })
    })
}

fn adaptive_max(a: &Args<'_>, dims: usize) -> Result<Outputs> {
    let (output, planes) = adaptive_prepare(a, dims, "max")?;
    let t = a.tensor(0)?;
    let (sizes, input, parts) = (planes.sizes(&output), three(&planes.input), three(&output));
    let name = ["adaptive_max_pool2d", "adaptive_max_pool2d", "adaptive_max_pool3d_cpu"][dims - 1];
    let layout = t.layout();
    if dims == 2 && t.rank() == 4 && layout.suggests_channels_last() && !layout.is_contiguous() {
        return crate::dispatch_real!(t.dtype(), name, R => adaptive_max_of_pixels::<R>(t, &output));
    }
    crate::dispatch_real!(t.dtype(), name, R => {
        let x = t.elements_as::<R>()?;
        let size: usize = input.iter().product();
        pairs::<R>(t.dtype(), &sizes, |values, places| {
            each_pair_of_planes((values, places), parts.iter().product(), 1, |at, values, places| {
                let plane = &x[at * size..(at + 1) * size];
                shares(&input, &parts, |at, part| (values[at], places[at]) = largest(plane, &input, part));
            });
        })
    })
    .and_then(|pair| if dims < 3 { both_in_format_of(pair, t) } else { Ok(pair) })
}

/// Of images whose channels lie innermost, as do those of the results.
fn adaptive_max_of_pixels<R: Real>(t: &Tensor, output: &[i64]) -> Result<Outputs> {
    let &[batch, channels, height, width] = t.sizes().as_slice() else {
        return Err(Diagnostic::internal("images without four dimensions"));
    };
    let (rows, columns) = (output[0] as usize, output[1] as usize);
    let x = Dense::<R>::new(&t.look(|l| view::movedim(l, &[1], &[3]))?)?;
    let x = x.open()?;
    let size = (height * width * channels) as usize;
    let cost = (height * width) as usize / (rows * columns).max(1);
    let pixels = pairs::<R>(t.dtype(), &[batch, output[0], output[1], channels], |values, places| {
        each_pair_of_planes((values, places), channels as usize, cost, |at, values, places| {
            let (image, at) = (at / (rows * columns), at % (rows * columns));
            let part =
                [share(at / columns, height as usize, rows), share(at % columns, width as usize, columns)];
            let image = &x[image * size..(image + 1) * size];
            wide_loops(
                #[inline(always)]
                || largest_of_pixels(image, width as usize, part, values, places),
            );
        });
    })?;
    let back = |v: Value| v.to_tensor()?.look(|l| view::movedim(l, &[3], &[1])).map(Value::Tensor);
    pixels.into_iter().map(back).collect()
}
