//! Normalizations of quantized tensors: with given means and variances, and by layer, group or image.

use super::ints::{Params, Quant, dense, dispatch_quant, from_memory, in_format, in_memory};
use super::stage::Epilogue;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::Tensor;

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

macro_rules! batch {
    ($name:literal, $epilogue:expr) => {
        own(
            concat!(
                $name,
                "(Tensor qx, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, int \
                 output_zero_point) -> Tensor"
            ),
            |a| batch_norm(a, $epilogue),
        )
    };
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    batch!("quantized::batch_norm", Epilogue::None),
    batch!("quantized::batch_norm_relu", Epilogue::Relu),
    batch!("quantized::batch_norm1d", Epilogue::None),
    batch!("quantized::batch_norm1d_relu", Epilogue::Relu),
    batch!("quantized::batch_norm2d", Epilogue::None),
    batch!("quantized::batch_norm2d_relu", Epilogue::Relu),
    batch!("quantized::batch_norm3d", Epilogue::None),
    batch!("quantized::batch_norm3d_relu", Epilogue::Relu),
    own("aten::quantized_batch_norm(Tensor input, Tensor? weight, Tensor? bias, Tensor mean, Tensor var, float eps, float output_scale, int output_zero_point) -> Tensor", |a| batch_norm(a, Epilogue::None)),
    own("quantized::layer_norm(Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point) -> Tensor", layer_norm),
    own("quantized::group_norm(Tensor input, int num_groups, Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point) -> Tensor", |a| {
        let groups = a.int(1)?;
        by_groups(a, groups, 2)
    }),
    own("quantized::instance_norm(Tensor input, Tensor? weight, Tensor? bias, float eps, float output_scale, int output_zero_point) -> Tensor", |a| {
        let channels = a.tensor(0)?.sizes().get(1).copied().unwrap_or(1);
        by_groups(a, channels, 1)
    }),
];

fn opt_vec(tensor: Option<&Tensor>) -> Result<Option<Scratch<f32>>> {
    tensor.map(|t| t.elements_as::<f32>()).transpose()
}

fn fits(what: &str, list: Option<&Scratch<f32>>, count: usize) -> Result<()> {
    match list {
        Some(list) if list.len() != count => {
            Err(Diagnostic::runtime(format!("{what} has {} elements, expected {count}", list.len())))
        }
        _ => Ok(()),
    }
}

fn batch_norm(a: &Args<'_>, epilogue: Epilogue) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    if tensor.rank() < 2 {
        return Err(Diagnostic::runtime("Expected at least two input dimensions"));
    }
    let (own, out) = (Params::of(tensor)?, Params { scale: a.float(6)?, zero_point: a.int(7)? });
    let eps = a.float(5)? as f32;
    let channels = tensor.sizes()[1].max(0) as usize;
    let (weight, bias) = (opt_vec(a.opt_tensor(1)?)?, opt_vec(a.opt_tensor(2)?)?);
    let (mean, var) = (a.tensor(3)?.elements_as::<f32>()?, a.tensor(4)?.elements_as::<f32>()?);
    for (what, list) in
        [("weight", weight.as_ref()), ("bias", bias.as_ref()), ("mean", Some(&mean)), ("var", Some(&var))]
    {
        fits(what, list, channels)?;
    }
    let ratio = own.scale as f32 / out.scale as f32;
    let fused: Vec<(f32, f32)> = (0..channels)
        .map(|c| {
            let inverse = 1.0 / (var[c] + eps).sqrt();
            let (weight, bias) = (weight.as_ref().map_or(1.0, |w| w[c]), bias.as_ref().map_or(0.0, |b| b[c]));
            (inverse * weight * ratio, (bias - mean[c] * inverse * weight) / out.scale as f32)
        })
        .collect();
    let source = match tensor.rank() {
        4 => in_format(tensor, 2)?,
        5 => in_format(tensor, 3)?,
        _ => dense(tensor)?,
    };
    let channel = super::channels::channel_of_each(&source, 1)?;
    let (low, high) = source.dtype().quantized_range().unwrap_or((0, 0));
    let low = if epilogue == Epilogue::Relu { out.zero_point } else { low };
    let dtype = source.dtype();
    dispatch_quant!(dtype, T => {
        let results = in_memory::<T, _>(&source, |items| {
            let each = items.iter().zip(&channel);
            each.map(|(x, c)| {
                let (alpha, beta) = fused[*c];
                let real = alpha.mul_add((i64::from(x.wide()) - own.zero_point) as f32, beta);
                T::narrow((real.round_ties_even() as i64).saturating_add(out.zero_point).max(low).min(high))
            }).scratch()
        })??;
        one(from_memory(&source, &results, dtype, out.quantizer())?)
    })
}

/// Runs of elements that are normalized together, each with a scale and shift for every element.
struct Runs {
    length: usize,
    /// Which weight and bias an element has, by its place in the tensor.
    affine: Box<dyn Fn(usize) -> usize>,
}

fn layer_norm(a: &Args<'_>) -> Result<Outputs> {
    let shape = a.ints(1)?;
    let sizes = a.tensor(0)?.sizes();
    if shape.is_empty() || shape.len() > sizes.len() || sizes[sizes.len() - shape.len()..] != shape[..] {
        return Err(Diagnostic::runtime(format!(
            "Given normalized_shape={shape:?}, expected input with shape [*{shape:?}], but got input of size{:?}",
            sizes.as_slice()
        )));
    }
    let length = shape.iter().product::<i64>().max(0) as usize;
    let runs = Runs { length, affine: Box::new(move |at| at % length.max(1)) };
    normalized(a, 2, length, &runs)
}

fn by_groups(a: &Args<'_>, groups: i64, first: usize) -> Result<Outputs> {
    let sizes = a.tensor(0)?.sizes();
    let channels = sizes.get(1).copied().unwrap_or(0);
    if groups < 1 || channels % groups != 0 {
        return Err(Diagnostic::runtime("Expected channels to be divisible by groups"));
    }
    let inner: i64 = sizes.iter().skip(2).product();
    let (plane, count) = (inner.max(1) as usize, channels.max(1) as usize);
    let length = (channels / groups * inner).max(0) as usize;
    let runs = Runs { length, affine: Box::new(move |at| at / plane % count) };
    normalized(a, first, count, &runs)
}

/// Weight at `first`, then bias, eps, output scale and zero point.
fn normalized(a: &Args<'_>, first: usize, count: usize, runs: &Runs) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let (weight, bias) = (opt_vec(a.opt_tensor(first)?)?, opt_vec(a.opt_tensor(first + 1)?)?);
    fits("weight", weight.as_ref(), count)?;
    fits("bias", bias.as_ref(), count)?;
    let eps = a.float(first + 2)? as f32;
    let out = Params { scale: a.float(first + 3)?, zero_point: a.int(first + 4)? };
    let own = Params::of(tensor)?;
    let (scale, rounder) = (own.scale as f32, out.rounder(tensor.dtype()));
    let source = tensor.contiguous()?;
    let dtype = source.dtype();
    dispatch_quant!(dtype, T => {
        let items = source.integers().elements::<T>()?;
        let mut results = memory::reserved::<T>(items.len())?;
        for run in items.chunks(runs.length.max(1)) {
            let count = run.len() as f32;
            let total: i64 = run.iter().map(|x| i64::from(x.wide())).sum();
            let squares: i64 = run.iter().map(|x| i64::from(x.wide()) * i64::from(x.wide())).sum();
            let shifted = total as f32 / count;
            let mean = shifted - own.zero_point as f32;
            let variance = (squares as f32 / count - shifted * shifted).max(0.0);
            let factor = scale / (variance * scale * scale + eps).sqrt();
            for x in run {
                let at = (runs.affine)(results.len());
                let real = ((i64::from(x.wide()) - own.zero_point) as f32 - mean) * factor;
                let real = weight.as_ref().map_or(real, |w| real * w[at]) + bias.as_ref().map_or(0.0, |b| b[at]);
                results.push(T::narrow(rounder.integer(real)))?;
            }
        }
        let flat = Tensor::from_vec(&results, &source.sizes())?;
        one(from_memory(&flat, &results, dtype, out.quantizer())?)
    })
}
