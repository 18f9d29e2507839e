//! Functions of one quantized tensor, element by element. Of a byte there are 256, so that each is a table.

use super::ints::{Params, map, not_supported};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::resources::Collect;
use crate::tensor::{DType, Tensor};

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    own("quantized::sigmoid(Tensor qx, float output_scale, int output_zero_point) -> Tensor", |a| one(function(a.tensor(0)?, given(a, 1)?, sigmoid_of)?)),
    own("quantized::hardswish(Tensor input, float output_scale, int output_zero_point) -> Tensor", |a| one(function(a.tensor(0)?, given(a, 1)?, hardswish_of)?)),
    own("quantized::leaky_relu(Tensor qx, Scalar negative_slope, bool inplace, float output_scale, int output_zero_point) -> Tensor", |a| {
        let slope = a.scalar(1)?.to_f64() as f32;
        one(function(a.tensor(0)?, given(a, 3)?, move |x| x * if x > 0.0 { 1.0 } else { slope })?)
    }),
    own("quantized::elu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1, Scalar scale=1, Scalar input_scale=1) -> Tensor", |a| {
        let (alpha, scale, input) = (a.scalar(3)?.to_f64(), a.scalar(4)?.to_f64(), a.scalar(5)?.to_f64());
        one(elu(a.tensor(0)?, given(a, 1)?, alpha as f32, scale as f32, input as f32)?)
    }),
    own("quantized::celu(Tensor self, float output_scale, int output_zero_point, Scalar alpha=1) -> Tensor", |a| {
        let alpha = a.scalar(3)?.to_f64();
        if alpha == 0.0 {
            return Err(Diagnostic::raised("ZeroDivisionError", "ZeroDivisionError: alpha cannot be 0 for CELU"));
        }
        one(elu(a.tensor(0)?, given(a, 1)?, alpha as f32, 1.0, (1.0 / alpha) as f32)?)
    }),
    own("quantized::relu6(Tensor qx, bool inplace=False) -> Tensor", relu6),
    own("quantized::clamp(Tensor qx, Scalar? min=None, Scalar? max=None) -> Tensor qy", clamp),
    own("quantized::threshold(Tensor qx, Scalar threshold, Scalar value) -> Tensor qy", threshold),
    own("quantized::dropout(Tensor self, float output_scale, int output_zero_point, Scalar p=0.5, bool training=False) -> Tensor", |a| {
        if a.bool(4)? {
            return Err(Diagnostic::unsupported("quantized::dropout in training"));
        }
        one(function(a.tensor(0)?, given(a, 1)?, |x| x)?)
    }),
    own("quantized::prelu(Tensor qx, Tensor weight, float output_scale, int output_zero_point) -> Tensor", prelu),
    own("quantized::softmax(Tensor qx, int dim, float output_scale, int output_zero_point) -> Tensor", softmax),
];

/// Scale and zero point among the arguments.
fn given(a: &Args<'_>, at: usize) -> Result<Params> {
    Ok(Params { scale: a.float(at)?, zero_point: a.int(at + 1)? })
}

/// A function of real numbers, rounded to the output's scale.
fn function(tensor: &Tensor, out: Params, rule: impl Fn(f32) -> f32) -> Result<Tensor> {
    let own = Params::of(tensor)?;
    let rounder = out.rounder(tensor.dtype());
    let fused = tensor.numel() >= super::arith::LANES;
    map(tensor, out, move |x| rounder.integer(rule(if fused { own.real_fused(x) } else { own.real(x) })))
}

fn sigmoid_of(x: f32) -> f32 {
    1.0 / (1.0 + f64::from(-x).exp() as f32)
}

fn hardswish_of(x: f32) -> f32 {
    x * (x + 3.0).clamp(0.0, 6.0) / 6.0
}

fn elu(tensor: &Tensor, out: Params, alpha: f32, scale: f32, input: f32) -> Result<Tensor> {
    function(tensor, out, move |x| {
        if x >= 0.0 { x * scale } else { alpha * scale * (f64::from(x * input).exp() as f32 - 1.0) }
    })
}

/// `aten::relu`: nothing below the zero point.
pub fn relu(a: &Args<'_>) -> Result<Outputs> {
    let own = Params::of(a.tensor(0)?)?;
    one(map(a.tensor(0)?, own, |x| i64::from(x).max(own.zero_point))?)
}

/// `aten::relu6`.
pub fn relu6(a: &Args<'_>) -> Result<Outputs> {
    bounded(a.tensor(0)?, Some(0.0), Some(6.0))
}

/// `aten::clamp` and `aten::hardtanh`, whose bounds are optional numbers at 1 and 2.
pub fn clamp(a: &Args<'_>) -> Result<Outputs> {
    let bound = |n: usize| Ok::<_, Diagnostic>(a.opt_scalar(n)?.map(|s| s.to_f64() as f32));
    let (low, high) = (bound(1)?, bound(2)?);
    if low.is_none() && high.is_none() {
        return Err(Diagnostic::runtime("Both min and max not specified"));
    }
    bounded(a.tensor(0)?, low, high)
}

fn bounded(tensor: &Tensor, low: Option<f32>, high: Option<f32>) -> Result<Outputs> {
    let own = Params::of(tensor)?;
    let rounder = own.rounder(tensor.dtype());
    let (low, high) = (low.map(|x| rounder.integer(x)), high.map(|x| rounder.integer(x)));
    one(map(tensor, own, |x| {
        let x = low.map_or(i64::from(x), |low| i64::from(x).max(low));
        high.map_or(x, |high| x.min(high))
    })?)
}

/// `aten::threshold`.
pub fn threshold(a: &Args<'_>) -> Result<Outputs> {
    let own = Params::of(a.tensor(0)?)?;
    let (least, value) = (a.scalar(1)?.to_f64() as f32, a.scalar(2)?.to_f64() as f32);
    one(function(a.tensor(0)?, own, move |x| if x <= least { value } else { x })?)
}

/// `aten::leaky_relu`: in the operand's scale.
pub fn leaky_relu(a: &Args<'_>) -> Result<Outputs> {
    let slope = a.scalar(1)?.to_f64() as f32;
    let own = Params::of(a.tensor(0)?)?;
    one(function(a.tensor(0)?, own, move |x| x * if x > 0.0 { 1.0 } else { slope })?)
}

/// Scale and zero point that the numbers between 0 and 1 have.
fn unit(dtype: DType) -> Result<Params> {
    match dtype {
        DType::QU8 => Ok(Params { scale: 1.0 / 256.0, zero_point: 0 }),
        DType::QI8 => Ok(Params { scale: 1.0 / 256.0, zero_point: -128 }),
        DType::QI32 => Ok(Params { scale: 1.0 / 4_294_967_296.0, zero_point: 0 }),
        other => Err(not_supported(other)),
    }
}

/// `aten::sigmoid`: always in the scale of the numbers between 0 and 1.
pub fn sigmoid(a: &Args<'_>) -> Result<Outputs> {
    one(function(a.tensor(0)?, unit(a.tensor(0)?.dtype())?, sigmoid_of)?)
}

/// `aten::hardsigmoid`: likewise.
pub fn hardsigmoid(a: &Args<'_>) -> Result<Outputs> {
    one(function(a.tensor(0)?, unit(a.tensor(0)?.dtype())?, |x| (x + 3.0).clamp(0.0, 6.0) / 6.0)?)
}

/// `aten::tanh`: always in the scale of the numbers between -1 and 1.
pub fn tanh(a: &Args<'_>) -> Result<Outputs> {
    let out = match a.tensor(0)?.dtype() {
        DType::QU8 => Params { scale: 2.0 / 256.0, zero_point: 128 },
        DType::QI8 => Params { scale: 2.0 / 256.0, zero_point: 0 },
        DType::QI32 => Params { scale: 2.0 / 4_294_967_296.0, zero_point: 0 },
        other => return Err(not_supported(other)),
    };
    one(function(a.tensor(0)?, out, |x| f64::from(x).tanh() as f32)?)
}

/// A slope for each channel, or one for all.
fn prelu(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, out) = (a.tensor(0)?, given(a, 2)?);
    let slopes = a.tensor(1)?;
    if !slopes.is_quantized() {
        let message = "Could not run 'aten::q_zero_point' with arguments from the 'CPU' backend.";
        return Err(Diagnostic::raised("NotImplementedError", message).hint("quantize the slopes"));
    }
    // PyTorch multiplies integers: what is not negative by 1 in the slopes' quantization, which may not reach so far.
    let (own, slope) = (Params::of(tensor)?, Params::of(slopes)?);
    let unit = slope.rounder(slopes.dtype()).integer(1.0) - slope.zero_point;
    let slopes = slopes.integers().elements_as::<i64>()?;
    let sizes = tensor.sizes();
    let inner: usize = sizes.iter().skip(2).map(|n| *n as usize).product();
    let channels = sizes.get(1).map_or(1, |n| *n as usize);
    if slopes.len() != 1 && slopes.len() != channels {
        return Err(Diagnostic::runtime(format!("{} slopes for {channels} channels", slopes.len())));
    }
    let multiplier = own.scale as f32 * slope.scale as f32 * (1.0 / out.scale as f32);
    let product = |(at, x): (usize, &i64)| {
        let channel = if slopes.len() == 1 { 0 } else { at / inner.max(1) % channels };
        let x = x.saturating_sub(own.zero_point);
        let by = if x >= 0 { unit } else { slopes[channel].saturating_sub(slope.zero_point) };
        x.saturating_mul(by) as f32 * multiplier
    };
    let items = tensor.integers().elements_as::<i64>()?;
    let products = items.iter().enumerate().map(product).scratch()?;
    let products = Tensor::from_vec(&products, &sizes)?;
    let layout = crate::tensor::view::dense_like(&tensor.layout());
    let shaped = Tensor::zeros(DType::F32, &sizes)?.with_layout(layout)?;
    shaped.copy_from(&products)?;
    let steps = super::convert::quantize(&shaped, Params { scale: 1.0, ..out }, tensor.dtype())?;
    one(Tensor::quantized(&steps.integers(), tensor.dtype(), out.quantizer())?)
}

/// Through real numbers.
fn softmax(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, out) = (a.tensor(0)?, given(a, 2)?);
    let dim = crate::tensor::wrap_dim(a.int(1)?, tensor.rank())?;
    let reals = super::convert::dequantize(tensor)?;
    let last = reals.rank().saturating_sub(1) as i64;
    let turned = reals.look(|l| crate::tensor::view::transpose(l, dim as i64, last))?;
    let length = turned.sizes().last().map_or(1, |n| (*n).max(1) as usize);
    let mut items = turned.elements::<f32>()?;
    for row in items.chunks_mut(length) {
        let most = row.iter().fold(f32::NEG_INFINITY, |m, x| m.max(*x));
        row.iter_mut().for_each(|x| *x = f64::from(*x - most).exp() as f32);
        let total: f32 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= total);
    }
    let results = Tensor::from_vec(&items, &turned.sizes())?;
    let results = results.look(|l| crate::tensor::view::transpose(l, dim as i64, last))?.contiguous()?;
    one(super::convert::quantize(&results, out, tensor.dtype())?)
}
