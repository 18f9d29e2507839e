//! Elementwise choice and mixture: `where`, `masked_fill`, `clamp`, `lerp`, `addcmul`.

use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::{Alias, Fact, LayerPart, NumberAs, OpDef, Order, Promote, elementwise};
use crate::ir::text::number::general;
use crate::kernels::float::Activation;
use crate::tensor::{DType, Scalar, broadcast_sizes, check_fill};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::where.self(Tensor condition, Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u8")
        .scalar(|p, x| p.select(x[0], x[1], x[2]))
        .check(check_condition)
        .grad("self: torch.where(condition, grad, 0)\nother: torch.where(condition, 0, grad)")
        .out("self_out"),
    elementwise(
        "aten::where.ScalarOther(Tensor condition, Tensor self, Scalar other) -> Tensor",
        Promote::Common,
    )
    .rare("u8")
    .scalar(|p, x| p.select(x[0], x[1], x[2]))
    .check(|values| {
        check_condition(values)?;
        check_beside(values, 1, 2)
    })
    .numbers(&[("other", NumberAs::Float32)]),
    elementwise(
        "aten::where.ScalarSelf(Tensor condition, Scalar self, Tensor other) -> Tensor",
        Promote::Common,
    )
    .rare("u8")
    .scalar(|p, x| p.select(x[0], x[1], x[2]))
    .check(|values| {
        check_condition(values)?;
        check_beside(values, 2, 1)
    })
    .numbers(&[("self", NumberAs::Float32)]),
    elementwise("aten::where.Scalar(Tensor condition, Scalar self, Scalar other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.select(x[0], x[1], x[2]))
        .check(check_condition)
        .numbers(&[("self", NumberAs::Float32), ("other", NumberAs::Float32)]),
    elementwise("aten::masked_fill.Scalar(Tensor self, Tensor mask, Scalar value) -> Tensor", Promote::First)
        .quantized(crate::dialects::Quantized::IntegersAndNumber(2))
        .scalar(|p, x| p.select(x[1], x[2], x[0]))
        .facts(&[Fact::Fills(2, "tensor[mask] = scalar")])
        .check(check_mask)
        .ordered(Order::RowMajor)
        .grad("self: grad.masked_fill(mask, 0)")
        .inplace()
        .out_exact("Scalar_out"),
    elementwise("aten::masked_fill.Tensor(Tensor self, Tensor mask, Tensor value) -> Tensor", Promote::First)
        .quantized(crate::dialects::Quantized::IntegersAndNumber(2))
        .scalar(|p, x| p.select(x[1], x[2], x[0]))
        .facts(&[Fact::Fills(2, "tensor[mask] = scalar")])
        .check(check_mask)
        .ordered(Order::RowMajor)
        .inplace()
        .out_exact("Tensor_out"),
    elementwise("aten::clamp(Tensor self, Scalar? min=None, Scalar? max=None) -> Tensor", Promote::Common)
        .part(LayerPart::Activation(bounds))
        .rare("u")
        .quantized_kernel(crate::dialects::quantized::activation::clamp)
        .scalar(clamp)
        .accepts("if", "clamp is not supported for complex types")
        .check(check_clamp)
        .numbers(&[("min", NumberAs::Float), ("max", NumberAs::Float)])
        .facts(&[Fact::Idempotent])
        .inplace_same()
        .out_found("out")
        .aliases(&[Alias::new("clip")]),
    elementwise(
        "aten::clamp.Tensor(Tensor self, Tensor? min=None, Tensor? max=None) -> Tensor",
        Promote::Common,
    )
    .rare("u")
    .scalar(clamp)
    .accepts("bif", "clamp is not supported for complex types")
    .check(check_clamp)
    .inplace()
    .out("Tensor_out")
    .aliases(&[Alias::new("clip")]),
    elementwise("aten::clamp_min(Tensor self, Scalar min) -> Tensor", Promote::Common)
        .rare("u")
        .scalar(clamp_min)
        .check(|values| check_bound(values, 1, false))
        .numbers(&[("min", NumberAs::Float)])
        .accepts("if", "clamp_min_scalar_cpu|clamp is not supported for complex types")
        .facts(&[Fact::Idempotent])
        .inplace_same()
        .out_found("out"),
    elementwise("aten::clamp_min.Tensor(Tensor self, Tensor min) -> Tensor", Promote::Common)
        .rare("u")
        .scalar(|p, x| p.max(x[0], x[1]))
        .accepts("bif", "maximum_cpu")
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::clamp_max(Tensor self, Scalar max) -> Tensor", Promote::Common)
        .rare("u")
        .scalar(clamp_max)
        .check(|values| check_bound(values, 1, true))
        .numbers(&[("max", NumberAs::Float)])
        .accepts("if", "clamp_max_scalar_cpu|clamp is not supported for complex types")
        .facts(&[Fact::Idempotent])
        .inplace_same()
        .out_found("out"),
    elementwise("aten::clamp_max.Tensor(Tensor self, Tensor max) -> Tensor", Promote::Common)
        .rare("u")
        .scalar(|p, x| p.min(x[0], x[1]))
        .accepts("bif", "minimum_cpu")
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::lerp.Scalar(Tensor self, Tensor end, Scalar weight) -> Tensor", Promote::First)
        .scalar(lerp)
        .accepts("fc", "lerp_kernel_scalar")
        .facts(&[Fact::Costly])
        .numbers(&[("weight", NumberAs::Compute)])
        .check(check_lerp)
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::lerp.Tensor(Tensor self, Tensor end, Tensor weight) -> Tensor", Promote::First)
        .scalar(lerp)
        .accepts("fc", "lerp_kernel_tensor")
        .facts(&[Fact::Costly])
        .check(check_lerp)
        .inplace()
        .out_found("Tensor_out"),
    elementwise(
        "aten::addcmul(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        Promote::Common,
    )
    .scalar(addcmul)
    .accepts("ifc", "addcmul_cpu_out")
    .numbers(&[("value", NumberAs::Compute)])
    .inplace()
    .out("out"),
    elementwise(
        "aten::addcdiv(Tensor self, Tensor tensor1, Tensor tensor2, *, Scalar value=1) -> Tensor",
        Promote::Common,
    )
    .scalar(addcdiv)
    .accepts("fc", "addcdiv_cpu_out")
    .numbers(&[("value", NumberAs::Compute)])
    .check(check_addcdiv)
    .inplace()
    .out("out"),
];

fn clamp_min(p: &mut Program, x: &[Sv]) -> Sv {
    clamp(p, &[x[0], x[1], Sv::ABSENT])
}

fn clamp_max(p: &mut Program, x: &[Sv]) -> Sv {
    clamp(p, &[x[0], Sv::ABSENT, x[1]])
}

/// A bound given as int64, brought into the range of a narrow integer.
pub(super) fn saturated(p: &mut Program, bound: Sv) -> Sv {
    let (low, high) = match p.dtype(bound) {
        DType::U8 => (0, 255),
        DType::I8 => (-128, 127),
        DType::I16 => (-32768, 32767),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => return bound,
    };
    let from = |dtype| p.converted_from(bound, dtype).map(|wide| (wide, dtype));
    let Some((wide, dtype)) = from(DType::I64).or(from(DType::F64)) else { return bound };
    let low = p.constant(Scalar::Int(low), dtype);
    let high = p.constant(Scalar::Int(high), dtype);
    let raised = p.max(wide, low);
    let inside = p.min(raised, high);
    p.convert(inside, p.dtype(bound))
}

/// min(max(x, low), high); a NaN anywhere gives NaN.
fn clamp(p: &mut Program, x: &[Sv]) -> Sv {
    let mut value = x[0];
    if x[1].is_present() {
        let low = saturated(p, x[1]);
        value = p.max(value, low);
    }
    if x[2].is_present() {
        let high = saturated(p, x[2]);
        value = p.min(value, high);
    }
    value
}

/// From whichever end is nearer, so that a weight of 1 gives the end exactly.
fn lerp(p: &mut Program, x: &[Sv]) -> Sv {
    let (start, end, weight) = (x[0], x[1], x[2]);
    let span = p.sub(end, start);
    let forward = p.fma(weight, span, start);
    let one = p.constant_like(weight, 1.0);
    let rest = p.sub(one, weight);
    let less = p.neg(rest);
    let backward = p.fma(span, less, end);
    let size = p.abs(weight);
    let half = p.constant_like(size, 0.5);
    let near = p.lt(size, half);
    p.select(near, forward, backward)
}

fn addcmul(p: &mut Program, x: &[Sv]) -> Sv {
    let first = if x[3].is_present() { p.mul(x[3], x[1]) } else { x[1] };
    p.fma(first, x[2], x[0])
}

fn addcdiv(p: &mut Program, x: &[Sv]) -> Sv {
    let first = if x[3].is_present() { p.mul(x[3], x[1]) } else { x[1] };
    let quotient = p.div(first, x[2]);
    p.add(x[0], quotient)
}

fn check_condition(values: &[Value]) -> Result<()> {
    let Some(condition) = values.first() else { return Ok(()) };
    let dtype = condition.to_tensor()?.dtype();
    if !matches!(dtype, DType::Bool | DType::U8) {
        return Err(Diagnostic::runtime(format!(
            "where expected condition to be a boolean tensor, but got a tensor with dtype {}",
            dtype.type_name()
        )));
    }
    Ok(())
}

fn check_mask(values: &[Value]) -> Result<()> {
    let [target, mask, value, ..] = values else { return Ok(()) };
    broadcast_sizes(&mask.to_tensor()?.sizes(), &target.to_tensor()?.sizes())?;
    let dtype = mask.to_tensor()?.dtype();
    if dtype != DType::Bool {
        return Err(Diagnostic::runtime(format!(
            "masked_fill_ only supports boolean masks, but got mask with dtype {}",
            dtype.cpp_name()
        )));
    }
    match value {
        Value::Tensor(t) if t.rank() != 0 => Err(Diagnostic::runtime(format!(
            "masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {} dimension(s).",
            t.rank()
        ))),
        Value::Tensor(t) => check_fill(t.item()?, target.to_tensor()?.dtype()),
        number => check_fill(number.to_scalar()?, target.to_tensor()?.dtype()),
    }
}

/// The two numbers after the first argument as bounds of a layer's results; one that is None bounds nothing.
pub(super) fn bounds(rest: &[Value]) -> Option<Activation> {
    let [low, high] = rest else { return None };
    let bound = |value: &Value, none: f32| match value {
        Value::None => Some(none),
        Value::Int(_) | Value::Float(_) => value.to_float().ok().map(|x| x as f32),
        _ => None,
    };
    let (low, high) = (bound(low, f32::NEG_INFINITY)?, bound(high, f32::INFINITY)?);
    (low <= high).then_some(Activation::Clamp(low, high))
}

/// Refuses bounds that no element can keep.
pub(super) fn check_clamp(values: &[Value]) -> Result<()> {
    if values.iter().skip(1).take(2).all(Value::is_none) {
        return Err(Diagnostic::runtime("torch.clamp: At least one of 'min' or 'max' must not be None"));
    }
    check_bound(values, 1, false)?;
    check_bound(values, 2, true)
}

/// Refuses an int that integers beside it cannot hold.
fn check_beside(values: &[Value], tensor: usize, number: usize) -> Result<()> {
    match [tensor, number].map(|n| values.get(n)) {
        [Some(Value::Tensor(tensor)), Some(Value::Int(number))] if tensor.dtype().is_integral() => {
            check_fill(Scalar::Int(*number), tensor.dtype())
        }
        _ => Ok(()),
    }
}

/// Refuses a bound beyond all integers of a dtype, on the side where no element keeps it.
fn check_bound(values: &[Value], at: usize, is_upper: bool) -> Result<()> {
    let (Some(Value::Tensor(tensor)), Some(&Value::Int(bound))) = (values.first(), values.get(at)) else {
        return Ok(());
    };
    let dtype = tensor.dtype();
    let (low, high) = match dtype {
        DType::U8 => (0, i64::from(u8::MAX)),
        DType::I8 => (i64::from(i8::MIN), i64::from(i8::MAX)),
        DType::I16 => (i64::from(i16::MIN), i64::from(i16::MAX)),
        DType::I32 => (i64::from(i32::MIN), i64::from(i32::MAX)),
        _ => return Ok(()),
    };
    let beyond = if is_upper { bound < low } else { bound > high };
    // A bound of the other kind makes floats of all.
    if beyond && !values.iter().skip(1).take(2).any(|v| matches!(v, Value::Float(_))) {
        let (name, bound) = (if is_upper { "max" } else { "min" }, general(bound as f64));
        let dtype = dtype.type_name();
        return Err(Diagnostic::runtime(format!(
            "Clamp {name} value {bound} is outside the representable range of {dtype}"
        )));
    }
    Ok(())
}

fn check_lerp(values: &[Value]) -> Result<()> {
    let [start, end, weight, ..] = values else { return Ok(()) };
    let expected = start.to_tensor()?.dtype();
    for (name, value) in [("end", end), ("weight", weight)] {
        if let Value::Tensor(t) = value
            && t.dtype() != expected
        {
            return Err(Diagnostic::runtime(format!(
                "expected dtype {} for `{name}` but got dtype {}",
                expected.cpp_name(),
                t.dtype().cpp_name()
            )));
        }
    }
    Ok(())
}

fn check_addcdiv(values: &[Value]) -> Result<()> {
    let [_, x, y, ..] = values else { return Ok(()) };
    let integral = |v: &Value| {
        let dtype = v.to_tensor()?.dtype();
        Ok(dtype.is_integral() || dtype == DType::Bool)
    };
    let both: Result<Vec<bool>> = [x, y].into_iter().map(integral).collect();
    if both?.into_iter().all(|b| b) {
        return Err(Diagnostic::runtime(
            "Integer division with addcdiv is no longer supported, and in a future  release addcdiv will perform a \
             true division of tensor1 and tensor2. The historic addcdiv behavior can be implemented as (input + value \
             * torch.trunc(tensor1 / tensor2)).to(input.dtype) for integer inputs and as (input + value * tensor1 / \
             tensor2) for float inputs. The future addcdiv behavior is just the latter implementation: (input + value \
             * tensor1 / tensor2), for all dtypes.",
        ));
    }
    Ok(())
}
