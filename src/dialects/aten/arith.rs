//! Elementwise arithmetic of tensors: sums, products, quotients, remainders, powers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::{
    Alias, Contract, Fact, Given, LayerPart, NumberAs, OpDef, OutRule, Promote, Tolerance, elementwise,
};
use crate::tensor::{DType, Operand, Scalar, Tensor, result_type};
use crate::value::Value;

/// Powers in float64 are written to it alone.
const FLOAT_POWER: OutRule = OutRule::Says(
    "the output given to float_power has dtype {to} but the operation's result requires dtype {from}",
);

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Promote::Common)
        .part(LayerPart::Sum)
        .scalar(add_scaled)
        .check(check_alpha)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: grad\nother: grad * alpha")
        .facts(&[Fact::ConstantIsNumber, Fact::Commutative])
        .inplace()
        .out("out"),
    elementwise("aten::add.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Promote::Common)
        .scalar(add_scaled)
        .check(check_alpha)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: grad")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Identity(0.0))])
        .inplace()
        .out_exact("Scalar_out"),
    elementwise("aten::sub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Promote::Common)
        .scalar(sub_scaled)
        .check(check_sub)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: grad\nother: -grad * alpha")
        .facts(&[
            Fact::ConstantIsNumber,
            Fact::Under(Contract::NanRelaxed, &Fact::Reflexive(Given::Number(0.0))),
        ])
        .inplace()
        .out("out"),
    elementwise("aten::sub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Promote::Common)
        .scalar(sub_scaled)
        .check(check_sub)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: grad")
        .facts(&[Fact::Identity(0.0)])
        .inplace()
        .out_exact("Scalar_out")
        .aliases(&[Alias::new("subtract").without_out()]),
    elementwise(
        "aten::subtract.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        Promote::Common,
    )
    .scalar(sub_scaled)
    .check(check_sub)
    .grad("self: grad\nother: -grad * alpha")
    .inplace()
    .out("out")
    .alias_of("sub"),
    elementwise(
        "aten::_add_relu.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor",
        Promote::Common,
    )
    .scalar(add_relu)
    .check(check_alpha)
    .inplace()
    .out("out"),
    elementwise(
        "aten::_add_relu.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor",
        Promote::Common,
    )
    .scalar(add_relu)
    .check(check_alpha)
    .inplace()
    .out_exact("Scalar_out"),
    elementwise("aten::rsub.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", Promote::Common)
        .scalar(rsub)
        .check(check_sub)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: -grad * alpha\nother: grad")
        .out_exact("Tensor_out"),
    elementwise("aten::rsub.Scalar(Tensor self, Scalar other, Scalar alpha=1) -> Tensor", Promote::Common)
        .scalar(rsub)
        .check(check_sub)
        .numbers(&[("alpha", NumberAs::Element)])
        .grad("self: -grad * alpha")
        .out("Scalar_out"),
    elementwise("aten::mul.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .part(LayerPart::Product)
        .rare("u8")
        .scalar(mul)
        .grad("self: grad * other.conj()\nother: grad * self.conj()")
        .facts(&[Fact::ConstantIsNumber, Fact::Commutative])
        .inplace()
        .out("out"),
    elementwise("aten::mul.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .part(LayerPart::Product)
        .rare("u")
        .scalar(mul)
        .grad("self: scaled(grad, other)")
        .facts(&[Fact::Identity(1.0), Fact::Under(Contract::NanRelaxed, &Fact::Absorbing(0.0))])
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::multiply.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(mul)
        .grad("self: grad * other.conj()\nother: grad * self.conj()")
        .facts(&[Fact::Commutative])
        .inplace()
        .out("out")
        .alias_of("mul"),
    elementwise("aten::multiply.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .scalar(mul)
        .grad("self: scaled(grad, other)")
        .facts(&[Fact::Identity(1.0)])
        .inplace()
        .alias_of("mul"),
    elementwise("aten::div.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .part(LayerPart::Quotient)
        .scalar(div)
        .grad("self: grad / other.conj()\nother: -grad * (result / other).conj()")
        .facts(&[Fact::ConstantIsNumber])
        .inplace()
        .out("out"),
    elementwise("aten::div.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Float)
        .part(LayerPart::Quotient)
        .scalar(div)
        .grad("self: (grad.conj() / other).conj() if grad.is_complex() else grad / other")
        .facts(&[Fact::Identity(1.0)])
        .inplace()
        .out_exact("Scalar_out"),
    elementwise(
        "aten::div.Tensor_mode(Tensor self, Tensor other, *, str? rounding_mode) -> Tensor",
        Promote::Rounding,
    )
    .scalar(div_mode)
    .check(check_div_mode)
    .inplace()
    .out("out_mode")
    .aliases(&[Alias::new("divide")]),
    elementwise(
        "aten::div.Scalar_mode(Tensor self, Scalar other, *, str? rounding_mode) -> Tensor",
        Promote::Rounding,
    )
    .scalar(div_mode)
    .check(check_div_mode)
    .inplace()
    .out_exact("Scalar_mode_out")
    .aliases(&[Alias::new("divide").without_out()]),
    elementwise("aten::divide.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(div)
        .grad("self: grad / other.conj()\nother: -grad * (result / other).conj()")
        .inplace()
        .out("out")
        .alias_of("div"),
    elementwise("aten::divide.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Float)
        .scalar(div)
        .grad("self: (grad.conj() / other).conj() if grad.is_complex() else grad / other")
        .facts(&[Fact::Identity(1.0)])
        .inplace()
        .alias_of("div"),
    elementwise("aten::true_divide.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(div)
        .grad("self: grad / other.conj()\nother: -grad * (result / other).conj()")
        .inplace()
        .out("out")
        .alias_of("div"),
    elementwise("aten::true_divide.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Float)
        .scalar(div)
        .grad("self: (grad.conj() / other).conj() if grad.is_complex() else grad / other")
        .facts(&[Fact::Identity(1.0)])
        .inplace()
        .alias_of("div"),
    elementwise("aten::floor_divide(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(floor_divide)
        .accepts("if", "div_floor_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .out("out"),
    elementwise("aten::floor_divide_.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(floor_divide)
        .accepts("if", "div_floor_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly]),
    elementwise("aten::floor_divide.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .scalar(floor_divide)
        .accepts("if", "div_floor_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .inplace()
        .out_exact("Scalar_out"),
    elementwise("aten::remainder.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(remainder)
        .accepts("if", "remainder_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .grad("self: grad\nother: -grad * self.div(other, rounding_mode='floor')")
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::remainder.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .scalar(remainder)
        .accepts("if", "remainder_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .grad("self: grad")
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::remainder.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Promote::Common)
        .scalar(remainder)
        .accepts("if", "remainder_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .out("Scalar_Tensor_out"),
    elementwise("aten::fmod.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.rem(x[0], x[1]))
        .accepts("if", "fmod_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .grad("self: grad\nother: -grad * self.div(other, rounding_mode='trunc')")
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::fmod.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.rem(x[0], x[1]))
        .accepts("if", "fmod_cpu")
        .check(check_zero_divisor)
        .facts(&[Fact::Costly])
        .grad("self: grad")
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::pow.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", Promote::Common)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .accepts("ifc", "pow")
        .tolerance(Tolerance::Rounding)
        .out("Tensor_Tensor_out"),
    elementwise("aten::pow.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", Promote::Common)
        .scalar(pow_number)
        .accepts("bifc", "pow")
        .check(check_power)
        .numbers(&[("exponent", NumberAs::HalfOrInteger)])
        .facts(&[Fact::Identity(1.0)])
        .tolerance(Tolerance::Rounding)
        .out("Tensor_Scalar_out"),
    elementwise("aten::pow.Scalar(Scalar self, Tensor exponent) -> Tensor", Promote::Common)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .accepts("ifc", "pow")
        .tolerance(Tolerance::Rounding)
        .out("Scalar_out"),
    elementwise("aten::pow_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", Promote::Common)
        .scalar(pow_number)
        .accepts("bifc", "pow")
        .check(check_power)
        .numbers(&[("exponent", NumberAs::HalfOrInteger)])
        .tolerance(Tolerance::Rounding),
    elementwise("aten::pow_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .accepts("ifc", "pow")
        .tolerance(Tolerance::Rounding),
    elementwise("aten::float_power.Tensor_Tensor(Tensor self, Tensor exponent) -> Tensor", Promote::Double)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .tolerance(Tolerance::Rounding)
        .out_as("Tensor_Tensor_out", FLOAT_POWER),
    elementwise("aten::float_power.Tensor_Scalar(Tensor self, Scalar exponent) -> Tensor", Promote::Double)
        .scalar(pow_number)
        .tolerance(Tolerance::Rounding)
        .out_as("Tensor_Scalar_out", FLOAT_POWER),
    elementwise("aten::float_power.Scalar(Scalar self, Tensor exponent) -> Tensor", Promote::Double)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .tolerance(Tolerance::Rounding)
        .out_as("Scalar_out", FLOAT_POWER),
    elementwise("aten::float_power_.Scalar(Tensor(a!) self, Scalar exponent) -> Tensor(a!)", Promote::Double)
        .check(check_double_base)
        .scalar(pow_number)
        .tolerance(Tolerance::Rounding),
    elementwise("aten::float_power_.Tensor(Tensor(a!) self, Tensor exponent) -> Tensor(a!)", Promote::Double)
        .check(check_double_base)
        .scalar(|p, x| p.pow(x[0], x[1]))
        .tolerance(Tolerance::Rounding),
];

/// `y * alpha`; `y` where alpha is left out, being 1. As in PyTorch a complex number is multiplied by 1 too, which turns
/// infinite ones into NaN.
fn factor(p: &mut Program, y: Sv, alpha: Sv) -> Sv {
    if alpha.is_present() {
        let scaled = p.mul(y, alpha);
        p.stepped(scaled, y)
    } else if p.dtype(y).is_complex() {
        let one = p.constant_like(y, 1.0);
        p.mul(y, one)
    } else {
        y
    }
}

/// Whether PyTorch's kernels round a product that is added once: what cancels, or would overflow on the way, shows it.
fn is_real(p: &Program, x: Sv) -> bool {
    matches!(p.source_dtype(x), DType::F32 | DType::F64)
}

fn add_scaled(p: &mut Program, x: &[Sv]) -> Sv {
    if x[2].is_present() && is_real(p, x[1]) {
        return p.fma(x[1], x[2], x[0]);
    }
    let scaled = factor(p, x[1], x[2]);
    p.add(x[0], scaled)
}

/// The product. A number on the right is not rounded to the tensor's dtype.
fn mul(p: &mut Program, x: &[Sv]) -> Sv {
    let factor = p.whole(x[1]);
    p.mul(x[0], factor)
}

/// The quotient. A number on the right is not rounded to the tensor's dtype.
fn div(p: &mut Program, x: &[Sv]) -> Sv {
    let divisor = p.whole(x[1]);
    p.div(x[0], divisor)
}

fn sub_scaled(p: &mut Program, x: &[Sv]) -> Sv {
    if x[2].is_present() && is_real(p, x[1]) {
        let less = p.neg(x[2]);
        return p.fma(x[1], less, x[0]);
    }
    let scaled = factor(p, x[1], x[2]);
    p.sub(x[0], scaled)
}

fn rsub(p: &mut Program, x: &[Sv]) -> Sv {
    sub_scaled(p, &[x[1], x[0], x[2]])
}

fn add_relu(p: &mut Program, x: &[Sv]) -> Sv {
    let sum = add_scaled(p, x);
    let zero = p.constant_like(sum, 0.0);
    p.max(sum, zero)
}

/// A number as exponent. As in PyTorch, small whole powers are products, whose last bit differs from the power's,
/// and 0.5 and -0.5 are roots, which differ from it at -inf.
fn pow_number(p: &mut Program, x: &[Sv]) -> Sv {
    let power = p.pow(x[0], x[1]);
    let is_complex = p.dtype(power).is_complex();
    if !is_complex && !p.dtype(power).is_floating() {
        return power;
    }
    let power = if p.source_dtype(x[0]) == DType::F16 { power } else { roots(p, x, power) };
    let square = p.mul(x[0], x[0]);
    let cube = p.mul(square, x[0]);
    let one = p.constant_like(x[0], 1.0);
    let inverse = p.div(one, x[0]);
    let inverse_square = p.div(one, square);
    let products =
        [(2.0, square), (3.0, cube), (-1.0, inverse), (-2.0, inverse_square), (0.0, one), (1.0, x[0])];
    // A real number to the power of 0 is 1 in any case.
    let count = if is_complex { products.len() } else { 4 };
    products.into_iter().take(count).fold(power, |power, (exponent, product)| {
        let exponent = p.constant_like(x[1], exponent);
        let is_it = p.eq(x[1], exponent);
        p.select(is_it, product, power)
    })
}

/// The roots among powers. PyTorch's kernel has none for half: -0 and -inf to the power of 0.5 are 0 and inf there.
fn roots(p: &mut Program, x: &[Sv], power: Sv) -> Sv {
    let half = p.constant_like(x[1], 0.5);
    let is_half = p.eq(x[1], half);
    let root = p.sqrt(x[0]);
    let power = p.select(is_half, root, power);
    let minus_half = p.constant_like(x[1], -0.5);
    let is_minus_half = p.eq(x[1], minus_half);
    let inverse_root = p.rsqrt(x[0]);
    p.select(is_minus_half, inverse_root, power)
}

/// The value as the operands' dtype of 16 bits would hold it, where both were of one: two different ones are computed,
/// and answered, in float32.
fn stepped_as_both(p: &mut Program, value: Sv, a: Sv, b: Sv) -> Sv {
    if p.source_dtype(a) == p.source_dtype(b) { p.stepped(value, b) } else { value }
}

fn div_mode(p: &mut Program, x: &[Sv]) -> Sv {
    match p.str_arg(0) {
        "floor" => floor_divide(p, x),
        "trunc" => {
            let divisor = p.whole(x[1]);
            let quotient = p.div(x[0], divisor);
            // Of two tensors the quotient is rounded to their dtype first.
            let quotient = if divisor == x[1] { stepped_as_both(p, quotient, x[0], x[1]) } else { quotient };
            if p.dtype(quotient).is_floating() { p.trunc(quotient) } else { quotient }
        }
        _ => div(p, x),
    }
}

/// Whether a remainder has another sign than the divisor, so that floor and truncation differ.
fn crosses(p: &mut Program, remainder: Sv, divisor: Sv) -> Sv {
    let zero = p.constant_like(divisor, 0.0);
    let rest = p.ne(remainder, zero);
    let (a, b) = (p.lt(remainder, zero), p.lt(divisor, zero));
    let differ = p.xor(a, b);
    p.and(rest, differ)
}

/// Remainder with the sign of the divisor.
fn remainder(p: &mut Program, x: &[Sv]) -> Sv {
    let remainder = p.rem(x[0], x[1]);
    let crosses = crosses(p, remainder, x[1]);
    let moved = p.add(remainder, x[1]);
    p.select(crosses, moved, remainder)
}

/// Floor of the quotient. Floats go by the exact remainder, since the quotient may round up to a whole number.
fn floor_divide(p: &mut Program, x: &[Sv]) -> Sv {
    let (a, b) = (x[0], p.whole(x[1]));
    let is_number = b != x[1];
    let step = |p: &mut Program, y: Sv| if is_number { y } else { stepped_as_both(p, y, x[0], x[1]) };
    let remainder = p.rem(a, b);
    let crosses = crosses(p, remainder, b);
    let one = p.constant_like(a, 1.0);
    if !p.dtype(a).is_floating() {
        let quotient = p.div(a, b);
        let below = p.sub(quotient, one);
        return p.select(crosses, below, quotient);
    }
    let (zero, half) = (p.constant_like(a, 0.0), p.constant_like(a, 0.5));
    let plain = p.div(a, b);
    let whole = p.sub(a, remainder);
    let whole = step(p, whole);
    let quotient = p.div(whole, b);
    let mut quotient = step(p, quotient);
    let below = p.sub(quotient, one);
    quotient = p.select(crosses, below, quotient);
    let mut floor = p.floor(quotient);
    let excess = p.sub(quotient, floor);
    let too_low = p.gt(excess, half);
    let above = p.add(floor, one);
    floor = p.select(too_low, above, floor);
    let signed_zero = p.copysign(zero, plain);
    let vanishes = p.eq(quotient, zero);
    floor = p.select(vanishes, signed_zero, floor);
    let by_zero = p.eq(b, zero);
    p.select(by_zero, plain, floor)
}

/// The operands of promotion among the first two arguments.
fn operands(values: &[Value]) -> Vec<Operand> {
    let operand = |v: &Value| match v {
        Value::Tensor(t) => Some(Operand::Tensor(t.clone())),
        other => other.to_scalar().ok().map(Operand::Number),
    };
    values.iter().take(2).filter_map(operand).collect()
}

/// `float_power_` computes in double precision and does not round to less.
fn check_double_base(values: &[Value]) -> Result<()> {
    let Some(Value::Tensor(base)) = values.first() else { return Ok(()) };
    let complex = result_type(&operands(values)).is_some_and(DType::is_complex);
    let wanted = if complex { DType::C128 } else { DType::F64 };
    if base.dtype() == wanted {
        return Ok(());
    }
    Err(Diagnostic::runtime(format!(
        "the base given to float_power_ has dtype {} but the operation's result requires dtype {}",
        base.dtype().type_name(),
        wanted.type_name()
    )))
}

/// A factor must not be of a higher kind than the result.
fn check_alpha(values: &[Value]) -> Result<()> {
    let alpha = match values.get(2) {
        None | Some(Value::Int(_)) => return Ok(()),
        Some(alpha) => alpha.to_scalar()?,
    };
    let Some(dtype) = result_type(&operands(values)) else { return Ok(()) };
    let message = match alpha {
        Scalar::Bool(_) if dtype != DType::Bool => "Boolean alpha only supported for Boolean results.",
        Scalar::Float(_) | Scalar::Complex(_) if !dtype.is_floating() && !dtype.is_complex() => {
            "For integral input tensors, argument alpha must not be a floating point number."
        }
        Scalar::Complex(_) if !dtype.is_complex() => {
            "For non-complex input tensors, argument alpha must not be a complex number."
        }
        _ => return Ok(()),
    };
    Err(Diagnostic::runtime(message))
}

fn check_sub(values: &[Value]) -> Result<()> {
    let is_bool = |v: &Value| match v {
        Value::Tensor(t) => t.dtype() == DType::Bool,
        other => matches!(other, Value::Bool(_)),
    };
    let bools = values.iter().take(2).filter(|v| is_bool(v)).count();
    let message = match bools {
        0 => return check_alpha(values),
        1 => {
            "Subtraction, the `-` operator, with a bool tensor is not supported. If you are trying to invert a mask, \
             use the `~` or `logical_not()` operator instead."
        }
        _ => {
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` \
             operator instead."
        }
    };
    Err(Diagnostic::raised("NotImplementedError", message))
}

fn check_div_mode(values: &[Value]) -> Result<()> {
    match values.get(2) {
        Some(Value::Str(mode)) if &**mode == "floor" || &**mode == "trunc" => {
            let dtype = result_type(&operands(values));
            match dtype.filter(|d| d.is_complex() || *d == DType::Bool) {
                Some(d) => Err(Diagnostic::raised(
                    "NotImplementedError",
                    format!("\"div_{mode}_cpu\" not implemented for '{}'", d.type_name()),
                )),
                None => check_zero_divisor(values),
            }
        }
        Some(Value::Str(mode)) => Err(Diagnostic::runtime(format!(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{mode}'"
        ))),
        _ => Ok(()),
    }
}

/// Integers cannot be divided by zero.
fn check_zero_divisor(values: &[Value]) -> Result<()> {
    let dtype = result_type(&operands(values)).filter(|dtype| dtype.is_integral());
    let (Some(dtype), Some(divisor)) = (dtype, values.get(1)) else { return Ok(()) };
    // Not the tensor that is written, if there is one.
    if values.iter().take(2).any(|value| matches!(value, Value::Tensor(t) if t.numel() == 0)) {
        return Ok(());
    }
    let zero = match divisor {
        Value::Tensor(t) => has_zero(t)?,
        // A number that wraps to zero is zero.
        number => !Tensor::full(dtype, &[], number.to_scalar()?)?.item()?.to_bool(),
    };
    if zero { Err(Diagnostic::runtime("ZeroDivisionError")) } else { Ok(()) }
}

fn has_zero(tensor: &Tensor) -> Result<bool> {
    Ok(tensor.elements_as::<i64>()?.contains(&0))
}

fn check_power(values: &[Value]) -> Result<()> {
    let (Some(Value::Tensor(base)), Some(Value::Int(exponent))) = (values.first(), values.get(1)) else {
        return Ok(());
    };
    let integral = base.dtype().is_integral() || base.dtype() == DType::Bool;
    if integral && *exponent < 0 {
        return Err(Diagnostic::runtime("Integers to negative integer powers are not allowed."));
    }
    Ok(())
}
