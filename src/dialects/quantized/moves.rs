//! What the operators of `aten` that copy, fill, choose and compare do with quantized tensors.

use super::ints::{Params, quantizer};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Outputs, one};
use crate::tensor::{DType, Quantizer, Scalar, Tensor};
use crate::value::Value;
use std::sync::Arc;

/// The row's own kernel on the integers, after the number at an argument has become an integer of the same scale.
fn with_number(a: &Args<'_>, at: usize, number: impl FnOnce(i64) -> Value) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let mut values = a.values.to_vec();
    values[0] = tensor.integers().into();
    let real = a.opt_scalar(at)?.unwrap_or(Scalar::Int(0)).to_f64() as f32;
    values[at] = number(Params::of(tensor)?.rounder(tensor.dtype()).integer(real));
    on_integers(&Args { op: a.op, values: &values, node: a.node, run: a.run }, tensor)
}

/// What the row's kernel makes of integers, with the scale of `tensor`.
fn on_integers(a: &Args<'_>, tensor: &Tensor) -> Result<Outputs> {
    let kernel = a.op.def().eval.ok_or_else(|| Diagnostic::internal("a row without a kernel"))?;
    match kernel(a)?.first() {
        Some(Value::Tensor(t)) => one(Tensor::quantized(t, tensor.dtype(), quantizer(tensor)?)?),
        _ => Err(Diagnostic::internal("a row that gives no tensor")),
    }
}

/// `aten::full_like`: of the same scale.
pub fn full_like(a: &Args<'_>) -> Result<Outputs> {
    same_dtype(a.tensor(0)?, a.opt_dtype(2)?)?;
    let mut values = a.values.to_vec();
    if let Some(dtype) = values.get_mut(2) {
        *dtype = Value::None;
    }
    with_number(&Args { op: a.op, values: &values, node: a.node, run: a.run }, 1, Value::Int)
}

/// `aten::pad`: constants become integers, other modes move elements.
pub fn pad(a: &Args<'_>) -> Result<Outputs> {
    if a.str(2)? == "constant" {
        return with_number(a, 3, |integer| Value::Float(integer as f64));
    }
    let mut values = a.values.to_vec();
    values[0] = a.tensor(0)?.integers().into();
    on_integers(&Args { op: a.op, values: &values, node: a.node, run: a.run }, a.tensor(0)?)
}

/// `aten::index_put`: the values are real numbers, rounded to the tensor's scale.
pub fn put(a: &Args<'_>) -> Result<Outputs> {
    let (tensor, reals) = (a.tensor(0)?, a.tensor(2)?);
    if a.bool(3)? {
        let message = "index_put for quantized tensors is currently only supported for accumulate=False";
        return Err(Diagnostic::runtime(message));
    }
    if reals.is_quantized() {
        let message = "Value argument for quantized input_put should not be quantized";
        return Err(Diagnostic::runtime(message)
            .hint("dequantize the values: they are rounded to the tensor's scale"));
    }
    let mut values = a.values.to_vec();
    values[0] = tensor.integers().into();
    let steps = super::convert::quantize(&reals.to_dtype(DType::F32)?, Params::of(tensor)?, tensor.dtype())?;
    values[2] = steps.integers().into();
    on_integers(&Args { op: a.op, values: &values, node: a.node, run: a.run }, tensor)
}

/// `aten::copy`: what `aten::copy_` makes of a copy. PyTorch has none; passes that remove writes make it of `copy_`.
pub fn copied(a: &Args<'_>) -> Result<Outputs> {
    let target = a.tensor(0)?;
    if target.quantizer().is_none() {
        return Err(Diagnostic::runtime(
            "aten::copy cannot copy a quantized tensor into a real one: dequantize it",
        ));
    }
    let mut values = a.values.to_vec();
    values[0] = Tensor::quantized(&target.integers().copy()?, target.dtype(), quantizer(target)?)?.into();
    copy(&Args { op: a.op, values: &values, node: a.node, run: a.run })
}

/// `aten::copy_`: real numbers are quantized with the target's scale; a quantized tensor brings its scale along.
pub fn copy(a: &Args<'_>) -> Result<Outputs> {
    let (target, source) = (a.tensor(0)?, a.tensor(1)?);
    match (target.quantizer(), source.quantizer()) {
        (Some(_), Some(other)) if target.dtype() == source.dtype() => {
            target.copy_from(source)?;
            target.set_quantizer(other)?;
        }
        (Some(_), None) => {
            let reals = source.to_dtype(DType::F32)?.broadcast_to(&target.sizes())?;
            target.copy_from(&super::convert::quantize(&reals, Params::of(target)?, target.dtype())?)?;
        }
        (Some(_), Some(_)) => {
            return Err(Diagnostic::runtime("Quantized copy only works with same scalar types"));
        }
        (None, _) => {
            return Err(Diagnostic::runtime(
                "Copying from quantized Tensor to non-quantized Tensor is not allowed, please use dequantize to get a float \
                 Tensor from a quantized Tensor",
            ));
        }
    }
    one(target.clone())
}

/// `aten::equal`: the same scheme, scale, sizes and integers.
pub fn equal(a: &Args<'_>) -> Result<Outputs> {
    let (x, y) = (a.tensor(0)?, a.tensor(1)?);
    let alike = x.dtype() == y.dtype() && x.quantizer() == y.quantizer() && x.sizes() == y.sizes();
    one(alike && x.to_bytes()? == y.to_bytes()?)
}

/// `aten::select.int`: of channels, one has one scale.
pub fn select(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let dim = crate::tensor::wrap_dim(a.int(1)?, tensor.rank())?;
    let chosen = tensor.integers().look(|l| crate::tensor::view::select(l, a.int(1)?, a.int(2)?))?;
    let own = quantizer(tensor)?;
    let index = a.int(2)?;
    let at = if index < 0 { index + tensor.sizes()[dim] } else { index } as usize;
    let quantizer = match &*own {
        Quantizer::PerTensor { .. } => own,
        Quantizer::PerChannel { scales, zero_points, axis } if *axis == dim => {
            let (scale, zero_point) = (scales.get(at), zero_points.get(at));
            let scale = scale.copied().unwrap_or(1.0);
            Params { scale, zero_point: zero_point.copied().unwrap_or(0) }.quantizer()
        }
        other => {
            let mut other = other.clone();
            match &mut other {
                Quantizer::PerChannel { axis, .. } | Quantizer::PerChannelFloat { axis, .. } => {
                    if *axis == dim {
                        return Err(Diagnostic::unsupported(
                            "selecting a channel of a tensor with float zero points",
                        ));
                    }
                    *axis -= usize::from(*axis > dim);
                }
                Quantizer::PerTensor { .. } => {}
            }
            Arc::new(other)
        }
    };
    one(Tensor::quantized(&chosen, tensor.dtype(), quantizer)?)
}

/// Views that move strides: of tensors with one scale only.
pub fn uniform(a: &Args<'_>) -> Result<Outputs> {
    if !quantizer(a.tensor(0)?)?.is_uniform() {
        return Err(Diagnostic::runtime("Setting strides is possible only on uniformly quantized tensor"));
    }
    let kernel = a.op.def().eval.ok_or_else(|| Diagnostic::internal("a row without a kernel"))?;
    kernel(a)
}

/// `aten::to` and its like: a quantized tensor takes no dtype but its own.
pub fn same_dtype(tensor: &Tensor, wanted: Option<DType>) -> Result<()> {
    if wanted.is_some_and(|wanted| wanted != tensor.dtype()) {
        return Err(Diagnostic::runtime(
            "Creation of quantized tensor requires quantized dtype like torch.quint8",
        )
        .hint("use dequantize() to get real numbers"));
    }
    Ok(())
}
