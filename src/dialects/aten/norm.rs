//! Normalization: batch, layer, group, instance and root mean square.

use super::group_norm::{group_norm, native_group_norm};
use super::norm_rows::{check_mixed, each_row, fail, moments, row_moments};
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{joins, layers, pointwise, trial};
use crate::dialects::{Args, Fact, LayerPart, OpDef, Outputs, composite, one, opaque};
use crate::kernels::compute::{Dense, Number, Real, build, build_whole, compute_dtype, dense_opt, rounding};
use crate::kernels::float::rows;
use crate::kernels::images::channels::{scale_planes, scale_rows};
use crate::kernels::images::groups;
use crate::kernels::images::pool::each_plane;
use crate::kernels::rows::vector::sum_wide;
use crate::kernels::strided::{row_major, with_strides};
use crate::kernels::wide::store;
use crate::kernels::wide_loops;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::pointwise::Walk;
use crate::tensor::{DType, Tensor, numel, view};
use num_complex::Complex64;
use smallvec::smallvec;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        |a| one(Batch::new(a, 3, a.bool(5)?, 6)?.run()?.0),
    ).part(LayerPart::Norm).infer(joins::normed)
    .hidden_writes("training", "aten::batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> Tensor")
    .functional("aten::_native_batch_norm_legit_functional")
    .doc("Subtracts the mean and divides by the deviation of each channel; in training the running ones follow."),
    opaque(
        "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |a| native_batch(Batch::new(a, 3, a.bool(5)?, 6)?),
    ).infer(layers::batch_norm)
    .hidden_writes("training", "aten::native_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)")
    .functional("aten::_native_batch_norm_legit_functional"),
    opaque(
        "aten::_native_batch_norm_legit(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |a| native_batch(Batch::new(a, 3, a.bool(5)?, 6)?),
    ).functional("aten::_native_batch_norm_legit_functional"),
    opaque(
        "aten::_native_batch_norm_legit.no_stats(Tensor input, Tensor? weight, Tensor? bias, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |a| {
            let mut batch = Batch::without_running(a, a.bool(3)?, a.float(5)?)?;
            batch.momentum = a.float(4)?;
            batch.check()?;
            native_batch(batch)
        },
    ).infer(layers::batch_norm),
    opaque(
        "aten::_native_batch_norm_legit_no_training(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor)",
        |a| native_batch(Batch::new(a, 3, false, 5)?),
    ).infer(layers::batch_norm),
    opaque(
        "aten::_native_batch_norm_legit_functional(Tensor input, Tensor? weight, Tensor? bias, Tensor running_mean, Tensor running_var, bool training, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor running_mean_out, Tensor running_var_out)",
        |a| {
            let mut batch = Batch::new(a, 3, a.bool(5)?, 6)?;
            let (mean, var) = (a.tensor(3)?.copy()?, a.tensor(4)?.copy()?);
            batch.running = [Some(mean.clone()), Some(var.clone())];
            let mut results = native_batch(batch)?;
            results.extend([mean.into(), var.into()]);
            Ok(results)
        },
    ).infer(layers::batch_norm),
    opaque(
        "aten::_batch_norm_with_update(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!) running_mean, Tensor(b!) running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| with_reserve(Batch::new(a, 3, true, 5)?),
    ),
    opaque(
        "aten::_batch_norm_no_update(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, float momentum, float eps) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| with_reserve(Batch::new(a, 3, false, 5)?),
    ),
    opaque(
        "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)",
        |a| {
            let mut results = with_reserve(Batch::new(a, 3, a.bool(5)?, 6)?)?;
            results.push(0i64.into());
            Ok(results)
        },
    )
    .hidden_writes("training", "aten::_batch_norm_impl_index(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool training, float momentum, float eps, bool cudnn_enabled) -> (Tensor, Tensor, Tensor, Tensor, int)"),
    opaque(
        "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor? running_mean, Tensor? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor",
        instance_norm,
    ).infer(joins::same_sizes)
    .hidden_writes("use_input_stats", "aten::instance_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor(a!)? running_mean, Tensor(b!)? running_var, bool use_input_stats, float momentum, float eps, bool cudnn_enabled) -> Tensor"),
    opaque(
        "aten::layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enable=True) -> Tensor",
        |a| {
            let (input, shape, weight, bias) = (a.tensor(0)?, a.ints(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?);
            match layer_in_vectors(input, &shape, weight, bias, a.float(4)?)? {
                Some(result) => one(result),
                None => one(layer(input, &shape, weight, bias, a.float(4)?)?.0),
            }
        },
    ).facts(&[Fact::RowMajor]).infer(joins::row_major),
    opaque(
        "aten::native_layer_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight, Tensor? bias, float eps) -> (Tensor, Tensor, Tensor)",
        |a| {
            let (y, mean, rstd) =
                layer(a.tensor(0)?, &a.ints(1)?, a.opt_tensor(2)?, a.opt_tensor(3)?, a.float(4)?)?;
            Ok(smallvec![y.into(), mean.into(), rstd.into()])
        },
    ).facts(&[Fact::RowMajor]).infer(layers::layer_norm),
    opaque(
        "aten::group_norm(Tensor input, int num_groups, Tensor? weight=None, Tensor? bias=None, float eps=1.0000000000000001e-05, bool cudnn_enabled=True) -> Tensor",
        group_norm,
    ).infer(joins::same_images),
    opaque(
        "aten::native_group_norm(Tensor input, Tensor? weight, Tensor? bias, SymInt N, SymInt C, SymInt HxW, int group, float eps) -> (Tensor, Tensor, Tensor)",
        native_group_norm,
    ).infer(layers::group_norm),
    opaque(
        "aten::rms_norm(Tensor input, SymInt[] normalized_shape, Tensor? weight=None, float? eps=None) -> Tensor",
        |a| one(root_mean_square(a)?.0),
    ).infer(trial::kernel),
    opaque(
        "aten::_fused_rms_norm(Tensor input, int[] normalized_shape, Tensor? weight, float? eps) -> (Tensor, Tensor)",
        |a| {
            let (y, rstd) = root_mean_square(a)?;
            Ok(smallvec![y.into(), rstd.into()])
        },
    ),
    composite(
        "aten::norm_except_dim(Tensor v, int pow=2, int dim=0) -> Tensor",
        include_str!("composites/norm_except_dim.py"),
    )
    .out("out"),
    composite(
        "aten::_weight_norm(Tensor v, Tensor g, int dim=0) -> Tensor",
        "def _weight_norm(v: Tensor, g: Tensor, dim: int=0) -> Tensor:\n    \
         return v * (g / torch.norm_except_dim(v, 2, dim))\n",
    )
    .infer(pointwise::like_first),
    composite(
        "aten::_weight_norm_interface(Tensor v, Tensor g, int dim=0) -> (Tensor, Tensor)",
        "def _weight_norm_interface(v: Tensor, g: Tensor, dim: int=0) -> Tuple[Tensor, Tensor]:\n    \
         norm = torch.norm_except_dim(v, 2, dim)\n    return v * (g / norm), norm\n",
    ),
];

/// A batch normalization.
struct Batch {
    input: Tensor,
    weight: Option<Tensor>,
    bias: Option<Tensor>,
    running: [Option<Tensor>; 2],
    training: bool,
    momentum: f64,
    eps: f64,
    channels: usize,
}

impl Batch {
    fn new(a: &Args<'_>, running: usize, training: bool, momentum: usize) -> Result<Batch> {
        let mut batch = Batch::without_running(a, training, a.float(momentum + 1)?)?;
        batch.running = [a.opt_tensor(running)?.cloned(), a.opt_tensor(running + 1)?.cloned()];
        batch.momentum = a.float(momentum)?;
        batch.check()?;
        Ok(batch)
    }

    /// Without running statistics; its arguments are yet to be checked.
    fn without_running(a: &Args<'_>, training: bool, eps: f64) -> Result<Batch> {
        let input = a.tensor(0)?.clone();
        let channels = input.sizes().get(1).copied().unwrap_or(0) as usize;
        Ok(Batch {
            weight: a.opt_tensor(1)?.cloned(),
            bias: a.opt_tensor(2)?.cloned(),
            running: [None, None],
            momentum: 0.1,
            input,
            training,
            eps,
            channels,
        })
    }

    fn check(&self) -> Result<()> {
        let [mean, variance] = &self.running;
        let named = [
            ("running_mean", mean),
            ("running_var", variance),
            ("weight", &self.weight),
            ("bias", &self.bias),
        ];
        for (name, tensor) in named {
            match tensor {
                None if name.starts_with("running") && !self.training => {
                    return fail(format!("{name} must be defined in evaluation mode"));
                }
                Some(t) if t.numel() != self.channels => {
                    return fail(format!(
                        "{name} should contain {} elements not {}",
                        self.channels,
                        t.numel()
                    ));
                }
                Some(t) if t.rank() != 1 => {
                    let message = format!("TensorAccessor expected 1 dims but tensor has {}", t.rank());
                    return fail(message);
                }
                _ => {}
            }
        }
        check_mixed(&self.input, &[&self.weight, &self.bias, mean, variance].map(Option::as_ref))
    }

    /// The result, and mean and reciprocal deviation of the channels in training (else empty).
    fn run(&self) -> Result<(Tensor, Tensor, Tensor)> {
        let (sizes, dtype) = (self.input.sizes(), self.input.dtype());
        crate::dispatch_real!(dtype, "batch_norm", R => {
            let plane = if self.channels == 0 || sizes.len() < 2 { 1 } else { numel(&sizes[2..]) };
            // Images that lie densely with their channels last stay so, whatever strides dimensions of size 1 have.
            let layout = self.input.layout();
            let last = !layout.is_contiguous() && layout.is_channels_last();
            let innermost = last || plane == 1;
            let source = if last { self.input.look(|l| view::movedim(l, &[1], &[-1]))? } else { self.input.clone() };
            let x = Dense::<R>::new(&source)?;
            let x = x.open()?;
            let images = x.len() / (plane * self.channels).max(1);
            let (mut mean, var) = self.statistics::<R>(&x, (images, plane), innermost)?;
            let eps = self.eps;
            let kept = self.weight.as_ref().map_or(dtype, Tensor::dtype);
            // Of bfloat16 the sum of squares is kept in the dtype, and so is the variance.
            let (round, count) = (rounding(kept), (images * plane) as f64);
            let var = match self.training && kept == DType::BF16 {
                true => memory::collected(var.iter().map(|v| round(round(v * count) / count)))?,
                false => var,
            };
            let mut invstd = memory::collected(var.iter().map(|v| 1.0 / (v + eps).sqrt()))?;
            // Statistics of 16-bit inputs are kept in the dtype of the parameters, and used as they are kept.
            if self.training {
                for values in [&mut mean, &mut invstd] {
                    *values = Tensor::from_vec(values, &[values.len() as i64])?.to_dtype(kept)?.elements_as::<f64>()?;
                }
            }
            let (w, b) = (dense_opt::<R>(self.weight.as_ref())?, dense_opt::<R>(self.bias.as_ref())?);
            let scale = memory::collected(
                (0..self.channels).map(|c| R::of(invstd[c]) * w.as_ref().map_or(R::ONE, |w| w[c])),
            )?;
            let shift = memory::collected(
                (0..self.channels)
                    .map(|c| (-R::of(mean[c])).mul_add(scale[c], b.as_ref().map_or(R::ZERO, |b| b[c]))),
            )?;
            let y = build_whole::<R>(&source.sizes(), dtype, |out| {
                match innermost {
                    true => scale_rows(&x, &scale, &shift, out),
                    false => scale_planes(&x, plane, &scale, &shift, out),
                }
                Ok(())
            })?;
            let save = |values: &[f64]| {
                let values = if self.training { values } else { &[] };
                Tensor::from_vec(values, &[values.len() as i64])?.to_dtype(kept)
            };
            let y = if last { y.look(|l| view::movedim(l, &[-1], &[1]))? } else { y };
            Ok((y, save(&mean)?, save(&invstd)?))
        })
    }

    /// Mean and variance of each channel of images of planes.
    fn plane_moments<R: Real>(
        &self,
        x: &[R],
        (images, plane): (usize, usize),
    ) -> Result<(Scratch<f64>, Scratch<f64>)> {
        let count = images * plane;
        let mut both = memory::filled(self.channels, (0.0, 0.0))?;
        each_plane(&mut both, 1, count, |c, both| {
            let parts = (0..images).map(|n| &x[(n * self.channels + c) * plane..][..plane]);
            both[0] = wide_loops(
                #[inline(always)]
                || moments(parts, count),
            );
        });
        let mean = memory::collected(both.iter().map(|both| both.0))?;
        Ok((mean, memory::collected(both.iter().map(|both| both.1))?))
    }

    /// Mean and variance of each channel: of the input in training (the running ones follow), else the running ones.
    fn statistics<R: Real>(
        &self,
        x: &[R],
        (images, plane): (usize, usize),
        innermost: bool,
    ) -> Result<(Scratch<f64>, Scratch<f64>)> {
        let [running_mean, running_var] = &self.running;
        if !self.training {
            let wide =
                |t: &Option<Tensor>| t.as_ref().map_or(Ok(Scratch::default()), Tensor::elements_as::<f64>);
            return Ok((wide(running_mean)?, wide(running_var)?));
        }
        let count = images * plane;
        let (mean, var) = match innermost {
            true => column_moments(x, self.channels)?,
            false => self.plane_moments(x, (images, plane))?,
        };
        let unbiased = memory::collected(var.iter().map(|v| v * count as f64 / (count as f64 - 1.0)))?;
        for (running, new) in [(running_mean, &mean), (running_var, &unbiased)] {
            let Some(running) = running else { continue };
            let old = running.elements_as::<f64>()?;
            let m = self.momentum;
            let followed = memory::collected(old.iter().zip(new).map(|(o, n)| (1.0 - m) * o + m * n))?;
            running.copy_from(&Tensor::from_vec(&followed, &[followed.len() as i64])?)?;
        }
        Ok((mean, var))
    }
}

/// Mean and variance (divided by the count) of each column of rows that lie one after the other, in double precision.
fn column_moments<R: Real>(x: &[R], columns: usize) -> Result<(Scratch<f64>, Scratch<f64>)> {
    if x.is_empty() || columns == 0 {
        return Ok((memory::filled(columns, f64::NAN)?, memory::filled(columns, f64::NAN)?));
    }
    let both = groups::moments(x, columns, 1)?;
    Ok((
        memory::collected(both.iter().map(|both| both.0))?,
        memory::collected(both.iter().map(|both| both.1))?,
    ))
}

fn native_batch(batch: Batch) -> Result<Outputs> {
    let (y, mean, invstd) = batch.run()?;
    Ok(smallvec![y.into(), mean.into(), invstd.into()])
}

fn with_reserve(batch: Batch) -> Result<Outputs> {
    if batch.training && batch.input.numel() == 0 {
        return fail(format!(
            "input tensor must have at least one element, but got input_sizes = {:?}",
            batch.input.sizes().as_slice()
        ));
    }
    let (y, mean, invstd) = batch.run()?;
    Ok(smallvec![y.into(), mean.into(), invstd.into(), Tensor::zeros(DType::U8, &[0])?.into()])
}

/// Each channel of each image is a channel of one image; the running ones follow their mean over images.
fn instance_norm(a: &Args<'_>) -> Result<Outputs> {
    let input = a.tensor(0)?;
    let (weight, bias) = (a.opt_tensor(1)?, a.opt_tensor(2)?);
    let (mean, var, own) = (a.opt_tensor(3)?, a.opt_tensor(4)?, a.bool(5)?);
    if !own && (mean.is_none() || var.is_none()) {
        return fail("Expected running_mean and running_var to be defined when use_input_stats is false");
    }
    if mean.is_some() != var.is_some() {
        return Err(Diagnostic::raised(
            "ValueError",
            "running_mean and running_var must either both be None or neither be None",
        ));
    }
    let sizes = input.sizes();
    let [n, c, ..] = sizes[..] else {
        // Sizes 0 and 1 are asked for.
        return fail(match sizes.len() {
            0 => "Dimension specified as 0 but tensor has no dimensions",
            _ => "Dimension out of range (expected to be in range of [-1, 0], but got 1)",
        });
    };
    let joined = n.saturating_mul(c);
    let mut flat = vec![1, joined];
    flat.extend(&sizes[2..]);
    let repeat = |t: Option<&Tensor>| -> Result<Option<Tensor>> {
        let Some(t) = t else { return Ok(None) };
        if t.rank() > 1 {
            return fail(
                "Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor",
            );
        }
        let count = t.numel() as i64;
        t.reshaped(&[1, count])?.broadcast_to(&[n, count])?.copy()?.reshaped(&[n * count]).map(Some)
    };
    let batch = Batch {
        input: input.reshaped(&flat)?,
        weight: repeat(weight)?,
        bias: repeat(bias)?,
        running: [repeat(mean)?, repeat(var)?],
        training: own,
        momentum: a.float(6)?,
        eps: a.float(7)?,
        channels: joined as usize,
    };
    batch.check()?;
    let result = row_major(batch.run()?.0.reshaped(&sizes)?)?;
    for (target, repeated) in [mean, var].into_iter().zip(&batch.running) {
        let (Some(target), Some(repeated), true) = (target, repeated, own) else { continue };
        let values = repeated.elements_as::<f64>()?;
        let means = (0..c as usize)
            .map(|at| values.iter().skip(at).step_by(c as usize).sum::<f64>() / n as f64)
            .scratch()?;
        target.copy_from(&Tensor::from_vec(&means, &[c])?)?;
    }
    one(result)
}

/// Fails unless the input ends in `shape` and the parameters have it; gives how many rows there are.
fn check_shape(
    input: &Tensor,
    shape: &[i64],
    parameters: &[(&str, Option<&Tensor>)],
    star: &str,
) -> Result<usize> {
    if shape.is_empty() {
        return fail(
            "Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got \
             normalized_shape = []",
        );
    }
    for (name, parameter) in parameters {
        if let Some(p) = parameter.filter(|p| p.sizes().as_slice() != shape) {
            return fail(format!(
                "Expected {name} to be of same shape as normalized_shape, but got {name} of shape {:?} and normalized_shape = \
                 {shape:?}",
                p.sizes().as_slice()
            ));
        }
    }
    let sizes = input.sizes();
    if !sizes.ends_with(shape) {
        let wanted = shape.iter().map(i64::to_string).collect::<Vec<_>>().join(", ");
        return fail(format!(
            "Given normalized_shape={shape:?}, expected input with shape [*{star}{wanted}], but got input of size{:?}",
            sizes.as_slice()
        ));
    }
    Ok(numel(&sizes[..sizes.len() - shape.len()]))
}

/// Sizes of the statistics of rows: ones in place of the normalized dimensions.
fn row_sizes(input: &Tensor, normalized: usize) -> Vec<i64> {
    let sizes = input.sizes();
    let lead = sizes.len() - normalized;
    sizes[..lead].iter().copied().chain(std::iter::repeat_n(1, normalized)).collect()
}

/// Normalizes each row; gives the result, means and reciprocal deviations.
pub fn layer(
    input: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<(Tensor, Tensor, Tensor)> {
    check_mixed(input, &[weight, bias])?;
    let rows = check_shape(input, shape, &[("weight", weight), ("bias", bias)], ", ")?;
    let (sizes, dtype) = (input.sizes(), input.dtype());
    let narrow = matches!(dtype, DType::F16 | DType::BF16);
    crate::dispatch_real!(dtype, "LayerNormKernelImpl", R => {
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        let length = x.len() / rows.max(1);
        let (w, b) = (dense_opt::<R>(weight)?, dense_opt::<R>(bias)?);
        let mut stats = memory::filled(rows, (f64::NAN, f64::NAN))?;
        let y = build_whole::<R>(&sizes, dtype, |out| {
            each_row(out, length, &mut stats, |at, out, stats| {
                let row = &x[at * length..(at + 1) * length];
                wide_loops(#[inline(always)] || {
                    let (mean, var) = row_moments(row);
                    *stats = (mean, 1.0 / (var + eps).sqrt());
                    let mean = R::of(stats.0);
                    let rstd = if narrow { R::ONE / (R::of(var) + R::of(eps)).sqrt() } else { R::of(stats.1) };
                    let shift = -(rstd * mean);
                    // Of 16 bits mean and deviation are one fused step, which leaves the rounding of the shift.
                    let normal = |x: R| if narrow { x.mul_add(rstd, shift) } else { (x - mean) * rstd };
                    match (&w, &b) {
                        (Some(w), Some(b)) => {
                            for (((y, x), w), b) in out.iter_mut().zip(row).zip(w).zip(b) {
                                *y = normal(*x) * *w + *b;
                            }
                        }
                        _ => {
                            for (i, (y, x)) in out.iter_mut().zip(row).enumerate() {
                                let w = w.as_ref().map_or(R::ONE, |w| w[i]);
                                let b = b.as_ref().map_or(R::ZERO, |b| b[i]);
                                *y = normal(*x) * w + b;
                            }
                        }
                    }
                });
            });
            Ok(())
        })?;
        let kept = weight.map_or(dtype, Tensor::dtype);
        let kept_sizes = row_sizes(input, shape.len());
        let save = |pick: fn(&(f64, f64)) -> f64| {
            Tensor::from_vec(&stats.iter().map(pick).scratch()?, &kept_sizes)?.to_dtype(kept)
        };
        Ok((y, save(|s| s.0)?, save(|s| s.1)?))
    })
}

/// The result alone, of rows of float32. None for what only `layer` knows.
fn layer_in_vectors(
    input: &Tensor,
    shape: &[i64],
    weight: Option<&Tensor>,
    bias: Option<&Tensor>,
    eps: f64,
) -> Result<Option<Tensor>> {
    check_shape(input, shape, &[("weight", weight), ("bias", bias)], ", ")?;
    let all = || [Some(input), weight, bias].into_iter().flatten();
    if input.numel() == 0 || all().any(|t| t.dtype() != DType::F32) {
        return Ok(None);
    }
    let [x, weight, bias] = [Some(input), weight, bias].map(|t| t.map(Dense::<f32>::new).transpose());
    let (x, weight, bias) = (x?, weight?, bias?);
    let open = |dense: &Option<Dense<f32>>| dense.as_ref().map(Dense::open).transpose();
    let (x, weight, bias) = (open(&x)?, open(&weight)?, open(&bias)?);
    let width = input.numel() / row_sizes(input, shape.len()).iter().product::<i64>().max(1) as usize;
    let sizes = input.sizes();
    let result = build_whole::<f32>(&sizes, DType::F32, |out| {
        rows::layer_norm(
            x.as_deref().unwrap_or_default(),
            width,
            weight.as_deref(),
            bias.as_deref(),
            eps as f32,
            out,
        )
    })?;
    Ok(Some(result))
}

/// Divides each row by its root mean square.
fn root_mean_square(a: &Args<'_>) -> Result<(Tensor, Tensor)> {
    let (input, shape, weight) = (a.tensor(0)?, a.ints(1)?, a.opt_tensor(2)?);
    let dtype = input.dtype();
    let rows = check_shape(input, &shape, &[("weight", weight)], "")?;
    let smallest = match dtype {
        DType::F64 | DType::C128 => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    };
    let eps = a.opt_float(3)?.unwrap_or(smallest);
    let sizes = input.sizes();
    if dtype.is_complex() {
        return complex_root_mean_square(input, weight, &row_sizes(input, shape.len()), eps);
    }
    crate::dispatch_real!(dtype, "rms_norm", R => {
        let x = Dense::<R>::new(input)?;
        let x = x.open()?;
        let length = x.len() / rows.max(1);
        let w = dense_opt::<R>(weight)?;
        let rstd = (0..rows)
            .map(|r| {
                let row = &x[r * length..(r + 1) * length];
                let squares = wide_loops(#[inline(always)] || sum_wide(row, |x| x * x));
                // Squares that overflow the type of the numbers are infinite.
                1.0 / (R::of(squares).wide() / length as f64 + eps).sqrt()
            })
            .scratch()?;
        let y = build::<R>(&sizes, dtype, |out| {
            each_plane(out, length, 1, |at, out| {
                let factor = R::of(rstd[at]);
                for (i, (y, x)) in out.iter_mut().zip(&x[at * length..]).enumerate() {
                    *y = *x * factor * w.as_ref().map_or(R::ONE, |w| w[i]);
                }
            });
            Ok(())
        })?;
        // With channels last PyTorch computes op by op: the input times a number for each row, a tensor of other sizes.
        let layout = input.layout();
        let y = match layout.suggests_channels_last() {
            true => with_strides(y, &Walk::beside_number(&[layout], true)?.result.strides)?,
            false if layout.is_contiguous() => with_strides(y, &layout.strides)?,
            false => y,
        };
        let saved = Tensor::from_vec(&rstd, &row_sizes(input, shape.len()))?;
        Ok((y, saved.to_dtype(compute_dtype(dtype))?))
    })
}

/// The same of complex numbers, whose squares PyTorch does not make real.
fn complex_root_mean_square(
    input: &Tensor,
    weight: Option<&Tensor>,
    row_sizes: &[i64],
    eps: f64,
) -> Result<(Tensor, Tensor)> {
    let rows = numel(row_sizes);
    let x = input.elements_as::<Complex64>()?;
    let length = x.len() / rows.max(1);
    let w = weight.map(Tensor::elements_as::<Complex64>).transpose()?;
    let mut out = memory::reserved(x.len())?;
    let mut roots = memory::reserved(rows)?;
    for row in (0..rows).map(|at| &x[at * length..(at + 1) * length]) {
        let mean = row.iter().map(|x| x * x).sum::<Complex64>() / length as f64;
        let root = (mean + eps).sqrt().inv();
        roots.push(root)?;
        out.extend(
            row.iter().enumerate().map(|(i, x)| x * root * w.as_ref().map_or(Complex64::ONE, |w| w[i])),
        )?;
    }
    Ok((
        store::<Complex64>(&out, &input.sizes(), input.dtype())?,
        store::<Complex64>(&roots, row_sizes, input.dtype())?,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_trained_with_as_they_lie() {
        let values: Vec<f32> = (0..3 * 20 * 7 * 5).map(|n| (n * 37 % 101) as f32 * 0.125 - 6.0).collect();
        let images = Tensor::from_vec(&values, &[3, 20, 7, 5]).expect("small");
        let last = super::super::convert::channels_last(&images).expect("small");
        let parameter = |seed: f32| Tensor::from_vec(&[seed; 20], &[20]).expect("small");
        let train = |input: &Tensor| {
            let (mean, var) = (parameter(0.0), parameter(1.0));
            let batch = Batch {
                input: input.clone(),
                weight: Some(parameter(1.5)),
                bias: Some(parameter(-0.5)),
                running: [Some(mean.clone()), Some(var.clone())],
                training: true,
                momentum: 0.25,
                eps: 1e-5,
                channels: 20,
            };
            let (y, kept_mean, invstd) = batch.run().expect("valid");
            (y, [kept_mean, invstd, mean, var])
        };
        let ((plain, of_plain), (turned, of_turned)) = (train(&images), train(&last));
        assert!(plain.is_contiguous() && turned.layout().is_channels_last());
        for (a, b) in [(&plain, &turned)].into_iter().chain(of_plain.iter().zip(&of_turned)) {
            let (a, b) = (a.to_vec::<f32>().expect("f32"), b.to_vec::<f32>().expect("f32"));
            assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() <= 1e-5 * a.abs().max(1.0)));
        }
    }

    /// Numbers from PyTorch.
    #[test]
    fn rows_are_normalized() {
        let x = Tensor::from_vec(&[1f32, 2.0, 4.0, -1.0, 0.0, 1.0], &[2, 3]).expect("valid");
        let (y, mean, rstd) = layer(&x, &[3], None, None, 1e-5).expect("valid");
        let close = |t: &Tensor, expected: &[f32]| {
            let values = t.to_vec::<f32>().expect("f32");
            values.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-5)
        };
        assert!(close(&y, &[-1.069_042, -0.267_260, 1.336_303, -1.224_736, 0.0, 1.224_736]), "{y:?}");
        assert!(close(&mean, &[2.333_333, 0.0]) && close(&rstd, &[0.801_782, 1.224_736]));
        assert!(layer(&x, &[2], None, None, 1e-5).is_err());
    }
}
