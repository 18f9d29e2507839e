//! Gradients of normalizations over a batch and over layers, from the statistics that the forward kept. Gradients that the
//! mask leaves out are None.

use super::convert::channels_last;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{Known, Operands, Results};
use crate::dialects::{Args, OpDef, Outputs, opaque};
use crate::ir::Dim;
use crate::kernels::compute::{Dense, Number, Real, build_whole, dense_opt};
use crate::kernels::images::pool::{each_pair_of_planes, each_plane};
use crate::kernels::wide_loops;
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Tensor, numel};
use crate::value::Value;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::native_batch_norm_backward(Tensor grad_out, Tensor input, Tensor? weight, Tensor? running_mean, Tensor? running_var, Tensor? save_mean, Tensor? save_invstd, bool train, float eps, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        batch,
    )
    .infer(batch_sizes)
    .doc("Gradients of a batch normalization by its input, weight and bias; without training the statistics are numbers."),
    opaque(
        "aten::native_layer_norm_backward(Tensor grad_out, Tensor input, SymInt[] normalized_shape, Tensor mean, Tensor rstd, Tensor? weight, Tensor? bias, bool[3] output_mask) -> (Tensor, Tensor, Tensor)",
        layer,
    )
    .infer(layer_sizes)
    .doc("Gradients of a layer normalization by its input, weight and bias."),
];

/// How many columns are summed at a time.
const COLUMNS: usize = 64;
/// Sums in double precision side by side.
const LANES: usize = 8;

fn batch(a: &Args<'_>) -> Result<Outputs> {
    let (grad, input, weight) = (a.tensor(0)?, a.tensor(1)?, a.opt_tensor(2)?);
    let (train, eps, mask) = (a.bool(7)?, a.float(8)?, mask(a, 9)?);
    let (sizes, dtype) = (input.sizes(), input.dtype());
    if sizes.len() < 2 || grad.sizes() != sizes {
        return Err(Diagnostic::runtime(
            "native_batch_norm_backward: expected an input of at least 2 dimensions, and a gradient of its sizes",
        ));
    }
    let (channels, plane) = (sizes[1] as usize, numel(&sizes[2..]));
    let [mean, second] = if train { [5, 6] } else { [3, 4] }.map(|n| statistic(a.opt_tensor(n)?, channels));
    let (mean, mut invstd) = (mean?, second?);
    if !train {
        invstd.iter_mut().for_each(|var| *var = 1.0 / (*var + eps).sqrt());
    }
    let kept = weight.map_or(dtype, Tensor::dtype);
    crate::dispatch_real!(dtype, "batch_norm_backward", R => {
        let (g, x) = (Dense::<R>::new(grad)?, Dense::<R>::new(input)?);
        let (g, x) = (g.open()?, x.open()?);
        let count = x.len() / channels.max(1);
        // Of each channel: the sum of gradients, and that of gradients times what was normalized.
        let mut sums = memory::filled(channels * 2, 0.0f64)?;
        each_plane(&mut sums, 2, count, |channel, sums| {
            let (mut plain, mut scaled) = (0.0, 0.0);
            for at in (channel * plane..x.len()).step_by((channels * plane).max(1)) {
                let part = at..at + plane;
                let (a, b) = wide_loops(#[inline(always)] || products(&g[part.clone()], &x[part], mean[channel]));
                (plain, scaled) = (plain + a, scaled + b);
            }
            sums.copy_from_slice(&[plain, scaled * invstd[channel]]);
        });
        let w = dense_opt::<R>(weight)?;
        let input_gradient = |out: &mut [R]| {
            each_plane(out, plane, 1, |at, out| {
                let Some(channel) = at.checked_rem(channels) else { return };
                let scale = invstd[channel] * w.as_ref().map_or(1.0, |w| w[channel].wide());
                // Without training the statistics do not depend on the input.
                let share = |sum: f64| if train { sum / count as f64 } else { 0.0 };
                let slope = R::of(-scale * invstd[channel] * share(sums[channel * 2 + 1]));
                let shift = R::of(-scale * share(sums[channel * 2]));
                let (scale, mean) = (R::of(scale), R::of(mean[channel]));
                let part = at * plane..(at + 1) * plane;
                wide_loops(#[inline(always)] || {
                    for ((y, g), x) in out.iter_mut().zip(&g[part.clone()]).zip(&x[part]) {
                        *y = g.mul_add(scale, (*x - mean).mul_add(slope, shift));
                    }
                });
            });
            Ok(())
        };
        let by_input = if mask[0] {
            let y = build_whole::<R>(&sizes, dtype, input_gradient)?;
            let layout = input.layout();
            let last = !layout.is_contiguous() && layout.is_channels_last();
            Value::from(if last { channels_last(&y)? } else { y })
        } else {
            Value::None
        };
        let column = |first: usize, wanted: bool| {
            if !wanted {
                return Ok(Value::None);
            }
            let sums = memory::collected(sums.iter().skip(first).step_by(2).copied())?;
            Ok::<_, Diagnostic>(Tensor::from_vec(&sums, &[channels as i64])?.to_dtype(kept)?.into())
        };
        Ok(smallvec![by_input, column(1, mask[1])?, column(0, mask[2])?])
    })
}

/// Sums of `g` and of `g` times the distance of `x` from `mean`.
#[inline(always)]
fn products<R: Real>(g: &[R], x: &[R], mean: f64) -> (f64, f64) {
    let (mut plain, mut scaled) = ([0f64; LANES], [0f64; LANES]);
    let (gs, xs) = (g.chunks_exact(LANES), x.chunks_exact(LANES));
    let rest = gs.remainder().iter().zip(xs.remainder());
    let rest = rest.fold((0.0, 0.0), |sum, (g, x)| (sum.0 + g.wide(), sum.1 + g.wide() * (x.wide() - mean)));
    for (g, x) in gs.zip(xs) {
        for lane in 0..LANES {
            plain[lane] += g[lane].wide();
            scaled[lane] += g[lane].wide() * (x[lane].wide() - mean);
        }
    }
    (plain.iter().sum::<f64>() + rest.0, scaled.iter().sum::<f64>() + rest.1)
}

fn layer(a: &Args<'_>) -> Result<Outputs> {
    let (grad, input, shape) = (a.tensor(0)?, a.tensor(1)?, a.ints(2)?);
    let (weight, bias, mask) = (a.opt_tensor(5)?, a.opt_tensor(6)?, mask(a, 7)?);
    let (sizes, dtype) = (input.sizes(), input.dtype());
    if grad.sizes() != sizes || !sizes.ends_with(&shape) {
        return Err(Diagnostic::runtime(
            "native_layer_norm_backward: expected an input that ends in normalized_shape, and a gradient of its sizes",
        ));
    }
    let length = numel(&shape);
    let rows = input.numel().checked_div(length).unwrap_or(0);
    let (mean, rstd) = (statistic(Some(a.tensor(3)?), rows)?, statistic(Some(a.tensor(4)?), rows)?);
    crate::dispatch_real!(dtype, "LayerNormBackwardKernelImpl", R => {
        let (g, x) = (Dense::<R>::new(grad)?, Dense::<R>::new(input)?);
        let (g, x) = (g.open()?, x.open()?);
        let w = match weight {
            Some(weight) => weight.elements_as::<R>()?,
            None => memory::filled(length, R::ONE)?,
        };
        let by_input = match mask[0] {
            false => Value::None,
            true => build_whole::<R>(&sizes, dtype, |out| {
                each_plane(out, length, 4, |row, out| {
                    let part = row * length..(row + 1) * length;
                    let (g, x) = (&g[part.clone()], &x[part]);
                    wide_loops(#[inline(always)] || row_gradient(g, x, &w, (mean[row], rstd[row]), out));
                });
                Ok(())
            })?
            .into(),
        };
        let (mut by_weight, mut by_bias) = (Scratch::default(), Scratch::default());
        if (mask[1] && weight.is_some()) || (mask[2] && bias.is_some()) {
            (by_weight, by_bias) = (memory::filled(length, 0.0)?, memory::filled(length, 0.0)?);
            each_pair_of_planes((&mut by_weight, &mut by_bias), COLUMNS, rows, |at, scaled, plain| {
                wide_loops(#[inline(always)] || {
                    for row in 0..rows {
                        let part = row * length + at * COLUMNS..row * length + at * COLUMNS + plain.len();
                        let both = g[part.clone()].iter().zip(&x[part]);
                        for ((scaled, plain), (g, x)) in scaled.iter_mut().zip(plain.iter_mut()).zip(both) {
                            *plain += g.wide();
                            *scaled += g.wide() * ((x.wide() - mean[row]) * rstd[row]);
                        }
                    }
                });
            });
        }
        let parameter = |sums: &[f64], like: Option<&Tensor>| match like {
            None => Ok(Value::None),
            Some(like) => Ok::<_, Diagnostic>(Tensor::from_vec(sums, &shape)?.to_dtype(like.dtype())?.into()),
        };
        let by_weight = parameter(&by_weight, weight.filter(|_| mask[1]))?;
        Ok(smallvec![by_input, by_weight, parameter(&by_bias, bias.filter(|_| mask[2]))?])
    })
}

/// The gradient of one normalized row.
#[inline(always)]
fn row_gradient<R: Real>(g: &[R], x: &[R], w: &[R], (mean, rstd): (f64, f64), out: &mut [R]) {
    let (mut plain, mut scaled) = ([0f64; LANES], [0f64; LANES]);
    for ((g, x), w) in g.chunks(LANES).zip(x.chunks(LANES)).zip(w.chunks(LANES)) {
        for (lane, ((g, x), w)) in g.iter().zip(x).zip(w).enumerate() {
            let gradient = g.wide() * w.wide();
            plain[lane] += gradient;
            scaled[lane] += gradient * (x.wide() - mean);
        }
    }
    let n = out.len() as f64;
    let shift = R::of(-plain.iter().sum::<f64>() / n * rstd);
    let slope = R::of(-scaled.iter().sum::<f64>() / n * rstd * rstd * rstd);
    let (mean, rstd) = (R::of(mean), R::of(rstd));
    for (((y, g), x), w) in out.iter_mut().zip(g).zip(x).zip(w) {
        *y = (*g * *w).mul_add(rstd, (*x - mean).mul_add(slope, shift));
    }
}

/// A statistic of each channel or row.
fn statistic(tensor: Option<&Tensor>, count: usize) -> Result<Scratch<f64>> {
    match tensor {
        Some(tensor) if tensor.numel() == count => tensor.elements_as::<f64>(),
        _ => {
            Err(Diagnostic::runtime(format!("expected {count} means and as many deviations of the forward")))
        }
    }
}

fn mask(a: &Args<'_>, n: usize) -> Result<[bool; 3]> {
    let mut mask = [false; 3];
    let given = a.value(n)?.to_list()?;
    if given.len() != mask.len() {
        return Err(Diagnostic::runtime(format!("output_mask has {} elements, not 3", given.len())));
    }
    for (mask, given) in mask.iter_mut().zip(given.items().iter()) {
        *mask = given.to_bool()?;
    }
    Ok(mask)
}

fn batch_sizes(operands: &Operands<'_>) -> Results {
    let input = operands.tensor("input")?;
    let channels = vec![*input.sizes.as_deref()?.get(1)?];
    sizes(operands, channels)
}

fn layer_sizes(operands: &Operands<'_>) -> Results {
    let Known::Ints(shape) = operands.get("normalized_shape")? else { return None };
    sizes(operands, shape.clone())
}

/// The first gradient is as the input, the others have the sizes of parameters.
fn sizes(operands: &Operands<'_>, parameter: Vec<Dim>) -> Results {
    let input = operands.tensor("input")?;
    let dtype: Option<DType> = match operands.tensor("weight") {
        Some(weight) => weight.dtype,
        None => input.dtype,
    };
    let like = operands.following(&operands.common(), input.dtype, input.sizes.as_ref().map(|s| s.to_vec()));
    let other = || operands.result(&operands.common(), dtype, Some(parameter.clone()));
    Some([like, other(), other()].map(Known::Tensor).to_vec())
}
