//! To and from quantized tensors: `quantize_per_tensor` and similar functions, `dequantize`, `int_repr`, and a quantized
//! tensor's own properties.

use super::ints::{Params, Quant, dense, dispatch_quant, from_memory, in_memory, not_supported, quantizer};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Fact, OpDef, Outputs, Quantized, host, one, opaque};
use crate::ir::Type;
use crate::resources::Collect;
use crate::tensor::{DType, Quantizer, Tensor};
use crate::value::Value;
use smallvec::SmallVec;
use std::sync::Arc;

pub use super::channels::{channel_of_each, channel_real, channel_rounder};

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque("aten::quantize_per_tensor(Tensor self, float scale, int zero_point, ScalarType dtype) -> Tensor", |a| {
        let params = Params { scale: a.float(1)?, zero_point: a.int(2)? };
        one(quantize(a.tensor(0)?, params, a.dtype(3)?)?)
    })
    .doc("integers for real numbers, with one scale"),
    opaque(
        "aten::quantize_per_tensor.tensor_qparams(Tensor self, Tensor scale, Tensor zero_point, ScalarType dtype) -> Tensor",
        |a| one(quantize(a.tensor(0)?, params_of(a.tensor(1)?, a.tensor(2)?)?, a.dtype(3)?)?),
    ),
    opaque(
        "aten::quantize_per_tensor.tensors(Tensor[] tensors, Tensor scales, Tensor zero_points, ScalarType dtype) -> Tensor[]",
        quantize_each,
    ),
    opaque("aten::quantize_per_tensor_dynamic(Tensor self, ScalarType dtype, bool reduce_range) -> Tensor", |a| {
        let (tensor, dtype) = (a.tensor(0)?, a.dtype(1)?);
        one(quantize(tensor, chosen(tensor, dtype, a.bool(2)?)?, dtype)?)
    }),
    opaque(
        "aten::quantize_per_channel(Tensor self, Tensor scales, Tensor zero_points, int axis, ScalarType dtype) -> Tensor",
        |a| one(quantize_channels(a)?),
    )
    .doc("integers for real numbers, with a scale for each index of a dimension"),
    opaque("aten::dequantize.self(Tensor self) -> Tensor", |a| one(dequantize(a.tensor(0)?)?))
        .quantized(Quantized::Own)
        .facts(&[Fact::KeepsLayout]),
    opaque("aten::dequantize.tensor(Tensor qtensor) -> Tensor", |a| one(dequantize(a.tensor(0)?)?))
        .quantized(Quantized::Own),
    opaque("aten::dequantize.tensors(Tensor[] tensors) -> Tensor[]", dequantize_each).quantized(Quantized::Own),
    opaque("aten::dequantize.list(Tensor[] qtensors) -> Tensor[]", dequantize_each).quantized(Quantized::Own),
    opaque("aten::dequantize.any(Any tensors) -> Any", |a| one(dequantize_any(a.value(0)?)?)).quantized(Quantized::Own),
    opaque("aten::int_repr(Tensor self) -> Tensor", |a| {
        quantizer(a.tensor(0)?)?;
        one(int_repr(a.tensor(0)?)?)
    })
    .quantized(Quantized::Own)
    .facts(&[Fact::KeepsLayout])
    .doc("the integers of a quantized tensor, as numbers"),
    host("aten::q_scale(Tensor self) -> float", |a| one(Params::of(a.tensor(0)?)?.scale)),
    host("aten::q_zero_point(Tensor self) -> int", |a| one(Params::of(a.tensor(0)?)?.zero_point)),
    opaque("aten::q_per_channel_scales(Tensor self) -> Tensor", |a| one(channel_scales(a.tensor(0)?)?))
        .quantized(Quantized::Own),
    opaque("aten::q_per_channel_zero_points(Tensor self) -> Tensor", |a| one(channel_zero_points(a.tensor(0)?)?))
        .quantized(Quantized::Own),
    host("aten::q_per_channel_axis(Tensor self) -> int", |a| {
        let axis = quantizer(a.tensor(0)?)?.axis();
        one(axis.ok_or_else(|| Diagnostic::runtime("the tensor is not quantized per channel"))? as i64)
    }),
    host("aten::qscheme(Tensor self) -> QScheme", |a| one(quantizer(a.tensor(0)?)?.scheme_code())),
    opaque("aten::_make_per_tensor_quantized_tensor(Tensor self, float scale, int zero_point) -> Tensor", |a| {
        let params = Params { scale: a.float(1)?, zero_point: a.int(2)? };
        one(from_integers(a.tensor(0)?, params.quantizer())?)
    }),
    opaque(
        "aten::_make_per_channel_quantized_tensor(Tensor self, Tensor scale, Tensor zero_point, int axis) -> Tensor",
        |a| {
            let axis = crate::tensor::wrap_dim(a.int(3)?, a.tensor(0)?.rank())?;
            one(from_integers(a.tensor(0)?, Arc::new(channels(a.tensor(1)?, a.tensor(2)?, axis)?))?)
        },
    ),
    opaque(
        "aten::_empty_affine_quantized(SymInt[] size, *, ScalarType? dtype=None, Layout? layout=None, Device? device=None, \
         bool? pin_memory=None, float scale=1., int zero_point=0, MemoryFormat? memory_format=0) -> Tensor",
        |a| {
            let params = Params { scale: a.float(5)?, zero_point: a.int(6)? };
            empty(&a.ints(0)?, a.dtype(1)?, params.quantizer(), a.opt_int(7)?)
        },
    ),
    opaque(
        "aten::_empty_per_channel_affine_quantized(SymInt[] size, *, Tensor scales, Tensor zero_points, int axis, \
         ScalarType? dtype=None, Layout? layout=None, Device? device=None, bool? pin_memory=None, MemoryFormat? \
         memory_format=0) -> Tensor",
        |a| {
            let sizes = a.ints(0)?;
            let axis = crate::tensor::wrap_dim(a.int(3)?, sizes.len())?;
            empty(&sizes, a.dtype(4)?, Arc::new(channels(a.tensor(1)?, a.tensor(2)?, axis)?), a.opt_int(8)?)
        },
    ),
];

/// The integers of a quantized tensor in new memory; the layout is kept.
fn int_repr(tensor: &Tensor) -> Result<Tensor> {
    let integers = dense(tensor)?.integers();
    let mut layout = integers.layout();
    layout.offset = 0;
    let copy = Tensor::zeros(integers.dtype(), &integers.sizes())?.with_layout(layout)?;
    copy.copy_from(&integers)?;
    Ok(copy)
}

fn params_of(scale: &Tensor, zero_point: &Tensor) -> Result<Params> {
    Ok(Params { scale: scale.item()?.to_f64(), zero_point: zero_point.item()?.to_i64() })
}

/// A float32 tensor with one scale; its layout is kept.
pub fn quantize(tensor: &Tensor, params: Params, dtype: DType) -> Result<Tensor> {
    float_only(tensor, "Quantize")?;
    params.check(dtype, "quantize_tensor_per_tensor_affine")?;
    let source = dense(tensor)?;
    let rounder = params.rounder(dtype);
    dispatch_quant!(dtype, T => {
        let integers = in_memory::<f32, _>(&source, |items| {
            items.iter().map(|x| T::narrow(rounder.integer(*x))).scratch()
        })??;
        from_memory(&source, &integers, dtype, params.quantizer())
    })
}

fn float_only(tensor: &Tensor, what: &str) -> Result<()> {
    match tensor.dtype() {
        DType::F32 => Ok(()),
        other => {
            Err(Diagnostic::runtime(format!("{what} only works on Float Tensor, got {}", other.type_name())))
        }
    }
}

fn quantize_each(a: &Args<'_>) -> Result<Outputs> {
    let (tensors, scales, zero_points, dtype) = (a.tensors(0)?, a.tensor(1)?, a.tensor(2)?, a.dtype(3)?);
    let (scales, zero_points) = (scales.elements_as::<f64>()?, zero_points.elements_as::<i64>()?);
    if scales.len() < tensors.len() || zero_points.len() < tensors.len() {
        return Err(Diagnostic::runtime(format!(
            "{} tensors to quantize, with {} scales and {} zero points",
            tensors.len(),
            scales.len(),
            zero_points.len()
        )));
    }
    let each = tensors.iter().zip(scales.iter().zip(&zero_points));
    let results = each.map(|(t, (scale, zero_point))| {
        quantize(t, Params { scale: *scale, zero_point: *zero_point }, dtype)
    });
    one(Value::tensors(results.collect::<Result<Vec<_>>>()?))
}

/// Scale and zero point that fit the extremes of a tensor, 0 included (`quantize_per_tensor_dynamic`, `linear_dynamic`).
pub fn chosen(tensor: &Tensor, dtype: DType, reduce_range: bool) -> Result<Params> {
    let (low, high) = match dtype {
        DType::QI8 => (-128, 127),
        DType::QU8 => (0, 255),
        other => return Err(not_supported(other)),
    };
    let source = dense(tensor)?;
    let (least, most) = in_memory::<f32, _>(&source, |items| {
        items.iter().fold((f32::INFINITY, f32::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
    })?;
    let (least, most) = if tensor.numel() == 0 { (0.0, 0.0) } else { (least, most) };
    Ok(choose(least, most, low, high, reduce_range))
}

/// PyTorch's choice of scale and zero point for numbers between `least` and `most`; half of the range with
/// `reduce_range`.
pub fn choose(least: f32, most: f32, low: i64, high: i64, reduce_range: bool) -> Params {
    let (low, high) = if reduce_range { (low / 2, high / 2) } else { (low, high) };
    let (mut least, mut most) = (least.min(0.0), most.max(0.0));
    // The scale is a float32 whose reciprocal is finite, and large enough to differ from 0.
    let mut scale = (f64::from(most) - f64::from(least)) / (high - low) as f64;
    if scale as f32 == 0.0 || (1.0 / scale as f32).is_infinite() {
        scale = 0.1;
    }
    const SMALL: f32 = 6.1e-5;
    if (scale as f32) < SMALL {
        let old = scale as f32;
        scale = f64::from(SMALL);
        if least == 0.0 {
            most = SMALL * (high - low) as f32;
        } else if most == 0.0 {
            least = -SMALL * (high - low) as f32;
        } else {
            let amplifier = SMALL / old;
            least *= amplifier;
            most *= amplifier;
        }
    }
    // The zero point that loses less at its end of the range.
    let scale32 = scale as f32;
    let from_least = low as f64 - f64::from(least) / f64::from(scale32);
    let from_most = high as f64 - f64::from(most) / f64::from(scale32);
    let error_least = (low as f64).abs() - (f64::from(least) / f64::from(scale32)).abs();
    let error_most = (high as f64).abs() - (f64::from(most) / f64::from(scale32)).abs();
    let exact = if error_least < error_most { from_least } else { from_most };
    let zero_point = if exact < low as f64 {
        low
    } else if exact > high as f64 {
        high
    } else {
        exact.round_ties_even() as i64
    };
    Params { scale, zero_point }
}

fn channels(scales: &Tensor, zero_points: &Tensor, axis: usize) -> Result<Quantizer> {
    if zero_points.dtype().is_floating() {
        let (scales, zero_points) = (scales.to_vec_as::<f32>()?, zero_points.to_vec_as::<f32>()?);
        return Ok(Quantizer::PerChannelFloat { scales, zero_points, axis });
    }
    Ok(Quantizer::PerChannel {
        scales: scales.to_vec_as::<f64>()?,
        zero_points: zero_points.to_vec_as::<i64>()?,
        axis,
    })
}

fn quantize_channels(a: &Args<'_>) -> Result<Tensor> {
    let (tensor, dtype) = (a.tensor(0)?, a.dtype(4)?);
    float_only(tensor, "Quantize")?;
    let axis = a.int(3)?;
    let outside = || Diagnostic::runtime("Channel axis out of range in per channel affine quantization.");
    let axis = usize::try_from(axis).ok().filter(|axis| *axis < tensor.rank()).ok_or_else(outside)?;
    let quantizer = channels(a.tensor(1)?, a.tensor(2)?, axis)?;
    quantizer.check(&tensor.sizes())?;
    if matches!(dtype, DType::QU4x2 | DType::QU2x4) {
        return super::embed::quantize_packed(tensor, quantizer, dtype);
    }
    let source = dense(tensor)?;
    let channel = channel_of_each(&source, axis)?;
    let (low, high) = dtype.quantized_range().ok_or_else(|| not_supported(dtype))?;
    dispatch_quant!(dtype, T => {
        let rule = channel_rounder(&quantizer, dtype, low, high);
        let integers = in_memory::<f32, _>(&source, |items| {
            items.iter().zip(&channel).map(|(x, c)| T::narrow(rule(*x, *c))).scratch()
        })??;
        from_memory(&source, &integers, dtype, Arc::new(quantizer.clone()))
    })
}

/// The real numbers of a quantized tensor; a tensor that is not quantized becomes float32.
pub fn dequantize(tensor: &Tensor) -> Result<Tensor> {
    let Some(quantizer) = tensor.quantizer() else { return tensor.to_dtype(DType::F32) };
    if matches!(tensor.dtype(), DType::QU4x2 | DType::QU2x4) {
        return super::embed::dequantize_packed(tensor);
    }
    let source = dense(tensor)?;
    let reals = dispatch_quant!(source.dtype(), T => {
        in_memory::<T, _>(&source, |items| match &*quantizer {
            Quantizer::PerTensor { scale, zero_point } => {
                let params = Params { scale: *scale, zero_point: *zero_point };
                items.iter().map(|x| params.real(x.wide())).scratch()
            }
            other => {
                let channel = channel_of_each(&source, other.axis().unwrap_or(0))?;
                items.iter().zip(&channel).map(|(x, c)| channel_real(other, x.wide(), *c)).scratch()
            }
        })?
    })?;
    let flat = Tensor::from_vec(&reals, &[reals.len() as i64])?;
    let mut layout = source.layout();
    layout.offset = 0;
    flat.with_layout(layout)
}

fn dequantize_each(a: &Args<'_>) -> Result<Outputs> {
    let reals = a.tensors(0)?.iter().map(dequantize).collect::<Result<Vec<_>>>()?;
    one(Value::tensors(reals))
}

fn channel_scales(tensor: &Tensor) -> Result<Tensor> {
    match &*quantizer(tensor)? {
        Quantizer::PerChannel { scales, .. } => Tensor::from_vec(scales, &[scales.len() as i64]),
        Quantizer::PerChannelFloat { scales, .. } => Tensor::from_vec(scales, &[scales.len() as i64]),
        Quantizer::PerTensor { .. } => Err(Diagnostic::runtime("the tensor is not quantized per channel")),
    }
}

fn channel_zero_points(tensor: &Tensor) -> Result<Tensor> {
    match &*quantizer(tensor)? {
        Quantizer::PerChannel { zero_points, .. } => {
            Tensor::from_vec(zero_points, &[zero_points.len() as i64])
        }
        Quantizer::PerChannelFloat { zero_points, .. } => {
            Tensor::from_vec(zero_points, &[zero_points.len() as i64])
        }
        Quantizer::PerTensor { .. } => Err(Diagnostic::runtime("the tensor is not quantized per channel")),
    }
}

/// Integers, copied, as a quantized tensor.
fn from_integers(integers: &Tensor, quantizer: Arc<Quantizer>) -> Result<Tensor> {
    let dtype = match integers.dtype() {
        DType::I8 => DType::QI8,
        DType::U8 => DType::QU8,
        DType::I32 => DType::QI32,
        other => {
            return Err(Diagnostic::runtime(format!(
                "Creation of a quantized tensor from {} is not supported",
                other.type_name()
            )));
        }
    };
    Tensor::quantized(&integers.copy()?, dtype, quantizer)
}

/// A quantized tensor whose integers are 0.
fn empty(sizes: &[i64], dtype: DType, quantizer: Arc<Quantizer>, format: Option<i64>) -> Result<Outputs> {
    if !dtype.is_quantized() {
        return Err(Diagnostic::runtime(
            "Creation of quantized tensor requires quantized dtype like torch.quint8",
        ));
    }
    let integers = Tensor::zeros(dtype.integer_repr(), sizes)?;
    let layout = match format {
        Some(format @ (2 | 3)) => crate::tensor::view::in_format(&integers.layout(), format)?,
        _ => integers.layout(),
    };
    one(Tensor::quantized(&integers.with_layout(layout)?, dtype, quantizer)?)
}

/// A value of whatever structure of tensors with these dequantized.
fn dequantize_any(value: &Value) -> Result<Value> {
    Ok(match value {
        Value::Tensor(t) => dequantize(t)?.into(),
        Value::List(list) if list.element_type().is_tensor() => {
            let items = list.to_vec().iter().map(dequantize_any).collect::<Result<_>>()?;
            Value::list(Type::tensor(), items)
        }
        Value::Tuple(tuple) => {
            let items: SmallVec<[Value; 4]> =
                tuple.items().iter().map(dequantize_any).collect::<Result<_>>()?;
            Value::tuple(items.into_vec())
        }
        other => other.clone(),
    })
}
