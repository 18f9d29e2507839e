//! Elementwise functions of two tensors besides arithmetic: extremes, angles, logarithms, bits, logic.

use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Binary, Compare, Program, Sv};
use crate::dialects::{Alias, Contract, Fact, Given, OpDef, Promote, Tolerance, elementwise};
use crate::tensor::{DType, Scalar};
use crate::value::Value;
use std::f64::consts::LN_2;

/// Of 0 and -0 extremes give the first.
const RELAXED_COMMUTATIVE: Fact = Fact::Under(Contract::NanRelaxed, &Fact::Commutative);
const RELAXED_ASSOCIATIVE: Fact = Fact::Under(Contract::NanRelaxed, &Fact::Associative);

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::atan2(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(|p, x| p.atan2(x[0], x[1]))
        .accepts("f", "atan2_cpu")
        .grad("self: grad * other * inverse_square(self, other)\nother: grad * -self * inverse_square(self, other)")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arctan2")]),
    elementwise("aten::hypot(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.hypot(x[0], x[1]))
        .accepts("f", "hypot_cpu")
        .grad("self: grad * (self / result)\nother: grad * (other / result)")
        .facts(&[Fact::Commutative])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::nextafter(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(nextafter)
        .accepts("f", "nextafter_cpu")
        .facts(&[Fact::Costly])
        .inplace()
        .out("out"),
    elementwise("aten::maximum(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.max(x[0], x[1]))
        .accepts("bif", "TypeError: maximum not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent])
        .out("out"),
    elementwise("aten::minimum(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.min(x[0], x[1]))
        .accepts("bif", "TypeError: minimum not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent])
        .out("out"),
    elementwise("aten::fmax(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| number_or(p, x, Compare::Ge))
        .accepts("bif", "TypeError: fmax not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent])
        .out("out"),
    elementwise("aten::fmin(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| number_or(p, x, Compare::Le))
        .accepts("bif", "TypeError: fmin not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent])
        .out("out"),
    elementwise("aten::max.other(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.max(x[0], x[1]))
        .accepts("bif", "TypeError: maximum not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent]),
    elementwise("aten::max.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.max(x[0], x[1]))
        .accepts("bif", "TypeError: maximum not implemented for complex tensors."),
    elementwise("aten::min.other(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.min(x[0], x[1]))
        .accepts("bif", "TypeError: minimum not implemented for complex tensors.")
        .facts(&[RELAXED_COMMUTATIVE, RELAXED_ASSOCIATIVE, Fact::Idempotent]),
    elementwise("aten::min.out(Tensor self, Tensor other, *, Tensor(a!) out) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.min(x[0], x[1]))
        .accepts("bif", "TypeError: minimum not implemented for complex tensors."),
    elementwise("aten::copysign.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(|p, x| p.copysign(x[0], x[1]))
        .accepts("f", "copysign_cpu")
        .inplace()
        .out("out")
        .overloads(&["Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::logaddexp(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(logaddexp)
        .accepts("fc", "logaddexp_cpu")
        .grad("self: grad / (1 + torch.exp(other - self)).conj()\nother: grad / (1 + torch.exp(self - other)).conj()")
        .facts(&[Fact::Commutative])
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::logaddexp2(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(logaddexp2)
        .accepts("f", "logaddexp2_cpu")
        .grad("self: grad / (1 + torch.exp2(other - self))\nother: grad / (1 + torch.exp2(self - other))")
        .facts(&[Fact::Commutative])
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::xlogy.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(xlogy)
        .accepts("f", "xlogy_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("OutTensor"),
    elementwise("aten::xlogy.Scalar_Other(Tensor self, Scalar other) -> Tensor", Promote::Float)
        .scalar(xlogy)
        .accepts("f", "xlogy_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("OutScalar_Other"),
    elementwise("aten::xlogy.Scalar_Self(Scalar self, Tensor other) -> Tensor", Promote::Float)
        .scalar(xlogy)
        .accepts("f", "xlogy_cpu")
        .tolerance(Tolerance::Rounding)
        .out("OutScalar_Self"),
    elementwise("aten::special_xlogy(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(xlogy)
        .accepts("f", "xlogy_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out").alias_of("xlogy")
        .overloads(&["other_scalar(Tensor self, Scalar other) -> Tensor", "self_scalar(Scalar self, Tensor other) -> Tensor"]),
    elementwise("aten::special_xlog1py(Tensor self, Tensor other) -> Tensor", Promote::Float)
        .scalar(xlog1py)
        .accepts("f", "xlog1py_cpu")
        .tolerance(Tolerance::Rounding)
        .out("out")
        .overloads(&["other_scalar(Tensor self, Scalar other) -> Tensor", "self_scalar(Scalar self, Tensor other) -> Tensor"]),
    elementwise("aten::heaviside(Tensor self, Tensor values) -> Tensor", Promote::Common)
        .scalar(heaviside)
        .accepts("bif", "heaviside is not yet implemented for complex tensors.")
        .check(check_heaviside)
        .inplace()
        .out("out"),
    elementwise("aten::bitwise_and.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.and(x[0], x[1]))
        .accepts("bi", "bitwise_and_cpu")
        .facts(&[Fact::Commutative, Fact::Associative, Fact::Idempotent])
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::bitwise_and.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.and(x[0], x[1]))
        .accepts("bi", "bitwise_and_cpu")
        .facts(&[Fact::Identity(-1.0), Fact::Absorbing(0.0)])
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::bitwise_and.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.and(x[0], x[1]))
        .accepts("bi", "bitwise_and_cpu")
        .out_exact("Scalar_Tensor_out"),
    elementwise("aten::__and__.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.and(x[0], x[1]))
        .accepts("bi", "bitwise_and_cpu")
        .overloads(&["Tensor(Tensor self, Tensor other) -> Tensor"]),
    elementwise("aten::__iand__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.and(x[0], x[1]))
        .accepts("bi", "bitwise_and_cpu")
        .overloads(&["Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"]),
    elementwise("aten::bitwise_or.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.or(x[0], x[1]))
        .accepts("bi", "bitwise_or_cpu")
        .facts(&[Fact::Commutative, Fact::Associative, Fact::Idempotent])
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::bitwise_or.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.or(x[0], x[1]))
        .accepts("bi", "bitwise_or_cpu")
        .facts(&[Fact::Identity(0.0)])
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::bitwise_or.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.or(x[0], x[1]))
        .accepts("bi", "bitwise_or_cpu")
        .out_exact("Scalar_Tensor_out"),
    elementwise("aten::__or__.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.or(x[0], x[1]))
        .accepts("bi", "bitwise_or_cpu")
        .overloads(&["Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::__ior__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.or(x[0], x[1]))
        .accepts("bi", "bitwise_or_cpu")
        .overloads(&["Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"]),
    elementwise("aten::bitwise_xor.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.xor(x[0], x[1]))
        .accepts("bi", "bitwise_xor_cpu")
        .facts(&[Fact::Commutative, Fact::Associative, Fact::Reflexive(Given::Number(0.0))])
        .inplace()
        .out("Tensor_out"),
    elementwise("aten::bitwise_xor.Scalar(Tensor self, Scalar other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.xor(x[0], x[1]))
        .accepts("bi", "bitwise_xor_cpu")
        .facts(&[Fact::Identity(0.0)])
        .inplace()
        .out("Scalar_out"),
    elementwise("aten::bitwise_xor.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.xor(x[0], x[1]))
        .accepts("bi", "bitwise_xor_cpu")
        .out("Scalar_Tensor_out"),
    elementwise("aten::__xor__.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.xor(x[0], x[1]))
        .accepts("bi", "bitwise_xor_cpu")
        .overloads(&["Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::__ixor__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.xor(x[0], x[1]))
        .accepts("bi", "bitwise_xor_cpu")
        .overloads(&["Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"]),
    elementwise("aten::bitwise_left_shift.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.shl(x[0], x[1]))
        .accepts("i", "lshift_cpu")
        .inplace()
        .out("Tensor_out")
        .overloads(&["Tensor_Scalar(Tensor self, Scalar other) -> Tensor", "Scalar_Tensor(Scalar self, Tensor other) -> Tensor"]),
    elementwise("aten::__lshift__.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.shl(x[0], x[1]))
        .accepts("i", "lshift_cpu")
        .out("Tensor_out")
        .overloads(&["Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::__ilshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.shl(x[0], x[1]))
        .accepts("i", "lshift_cpu")
        .overloads(&["Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"]),
    elementwise("aten::bitwise_right_shift.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.shr(x[0], x[1]))
        .accepts("i", "rshift_cpu")
        .inplace()
        .out("Tensor_out")
        .overloads(&["Tensor_Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::bitwise_right_shift.Scalar_Tensor(Scalar self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.shr(x[0], x[1]))
        .accepts("i", "rshift_cpu")
        .out_exact("Scalar_Tensor_out"),
    elementwise("aten::__rshift__.Tensor(Tensor self, Tensor other) -> Tensor", Promote::Common)
        .scalar(|p, x| p.shr(x[0], x[1]))
        .accepts("i", "rshift_cpu")
        .out("Tensor_out")
        .overloads(&["Scalar(Tensor self, Scalar other) -> Tensor"]),
    elementwise("aten::__irshift__.Tensor(Tensor(a!) self, Tensor other) -> Tensor(a!)", Promote::Common)
        .scalar(|p, x| p.shr(x[0], x[1]))
        .accepts("i", "rshift_cpu")
        .overloads(&["Scalar(Tensor(a!) self, Scalar other) -> Tensor(a!)"]),
    elementwise("aten::logical_and(Tensor self, Tensor other) -> Tensor", Promote::Bool)
        .scalar(|p, x| logical(p, x, Binary::And))
        .facts(&[Fact::Commutative, Fact::Idempotent])
        .inplace()
        .out("out"),
    elementwise("aten::logical_or(Tensor self, Tensor other) -> Tensor", Promote::Bool)
        .scalar(|p, x| logical(p, x, Binary::Or))
        .facts(&[Fact::Commutative, Fact::Idempotent])
        .inplace()
        .out("out"),
    elementwise("aten::logical_xor(Tensor self, Tensor other) -> Tensor", Promote::Bool)
        .scalar(|p, x| logical(p, x, Binary::Xor))
        .facts(&[Fact::Commutative, Fact::Reflexive(Given::Truth(false))])
        .inplace()
        .out("out"),
];

/// x where it compares so or y is NaN, otherwise y: the extreme that prefers numbers to NaN.
fn number_or(p: &mut Program, x: &[Sv], op: Compare) -> Sv {
    let first = p.compare(op, x[0], x[1]);
    if !p.dtype(x[0]).is_floating() {
        return p.select(first, x[0], x[1]);
    }
    let nan = p.ne(x[1], x[1]);
    let first = p.or(first, nan);
    p.select(first, x[0], x[1])
}

/// The next number of the operands' dtype. Of 16 bits: as many steps of float32 as lie between two neighbours, which are
/// the same all over bfloat16; float16 is evenly spaced below its smallest normal number.
fn nextafter(p: &mut Program, x: &[Sv]) -> Sv {
    let next = p.nextafter(x[0], x[1]);
    let (steps, least, largest) = match p.source_dtype(x[0]) {
        DType::BF16 => (65_536.0, 0.0, f64::from(half::bf16::MAX)),
        DType::F16 => (8_192.0, f64::from(half::f16::MIN_POSITIVE_SUBNORMAL), f64::from(half::f16::MAX)),
        _ => return next,
    };
    let steps = p.constant_like(next, steps);
    let step = p.sub(next, x[0]);
    let step = p.mul(step, steps);
    let (size, least) = (p.abs(step), p.constant_like(step, least));
    let size = p.max(size, least);
    let step = p.copysign(size, step);
    let moved = p.add(x[0], step);
    let (abs, infinity) = (p.abs(x[0]), p.constant_like(next, f64::INFINITY));
    let infinite = p.eq(abs, infinity);
    let largest = p.constant_like(next, largest);
    let largest = p.copysign(largest, x[0]);
    let moved = p.select(infinite, largest, moved);
    // Towards 0 it arrives with the sign that it came from.
    let zero = p.is_zero(moved);
    let arrived = p.copysign(moved, x[0]);
    let moved = p.select(zero, arrived, moved);
    let invalid = p.ne(next, next);
    let moved = p.select(invalid, next, moved);
    let same = p.eq(x[0], x[1]);
    p.select(same, x[1], moved)
}

fn logaddexp(p: &mut Program, x: &[Sv]) -> Sv {
    if p.dtype(x[0]).is_complex() {
        return complex_logaddexp(p, x);
    }
    let (larger, distance) = spread(p, x);
    let tail = p.exp(distance);
    let tail = p.log1p(tail);
    shared_infinity(p, x, larger, tail)
}

fn logaddexp2(p: &mut Program, x: &[Sv]) -> Sv {
    let (larger, distance) = spread(p, x);
    let tail = p.exp2(distance);
    let tail = p.log1p(tail);
    let scale = p.constant_like(tail, 1.0 / LN_2);
    let tail = p.mul(tail, scale);
    shared_infinity(p, x, larger, tail)
}

/// The larger number and minus the distance of both.
fn spread(p: &mut Program, x: &[Sv]) -> (Sv, Sv) {
    let larger = p.max(x[0], x[1]);
    let difference = p.sub(x[0], x[1]);
    let distance = p.abs(difference);
    (larger, p.neg(distance))
}

/// larger + tail; equal infinities stay what they are.
fn shared_infinity(p: &mut Program, x: &[Sv], larger: Sv, tail: Sv) -> Sv {
    let sum = p.add(larger, tail);
    let same = p.eq(x[0], x[1]);
    let abs = p.abs(x[0]);
    let infinity = p.constant_like(x[0], f64::INFINITY);
    let infinite = p.eq(abs, infinity);
    let keep = p.and(same, infinite);
    p.select(keep, x[0], sum)
}

fn complex_logaddexp(p: &mut Program, x: &[Sv]) -> Sv {
    let (a, b) = (p.real(x[0]), p.real(x[1]));
    let first = p.ge(a, b);
    let larger = p.select(first, x[0], x[1]);
    let smaller = p.select(first, x[1], x[0]);
    let difference = p.sub(smaller, larger);
    let tail = p.exp(difference);
    let tail = p.log1p(tail);
    let sum = p.add(larger, tail);
    let (no_first, no_second) = (p.ne(x[0], x[0]), p.ne(x[1], x[1]));
    let neither = p.or(no_first, no_second);
    let nan = num_complex::Complex64::new(f64::NAN, f64::NAN);
    let nan = p.constant(Scalar::Complex(nan), p.dtype(sum));
    // Numbers of size zero: the angle is undefined.
    let nothing = p.constant_like(a, f64::NEG_INFINITY);
    let (no_a, no_b) = (p.eq(a, nothing), p.eq(b, nothing));
    let both = p.and(no_a, no_b);
    let sum = p.select(both, smaller, sum);
    p.select(neither, nan, sum)
}

fn xlogy(p: &mut Program, x: &[Sv]) -> Sv {
    let log = p.log(x[1]);
    let log = p.stepped(log, x[1]);
    times_unless_zero(p, x, log)
}

fn xlog1py(p: &mut Program, x: &[Sv]) -> Sv {
    let log = p.log1p(x[1]);
    times_unless_zero(p, x, log)
}

/// x * log; 0 where x is 0, unless y is NaN.
fn times_unless_zero(p: &mut Program, x: &[Sv], log: Sv) -> Sv {
    let product = p.mul(x[0], log);
    let zero = p.constant_like(x[0], 0.0);
    let vanishes = p.eq(x[0], zero);
    let value = p.select(vanishes, zero, product);
    let nan = p.ne(x[1], x[1]);
    p.select(nan, x[1], value)
}

fn heaviside(p: &mut Program, x: &[Sv]) -> Sv {
    let zero = p.constant_like(x[0], 0.0);
    let at_zero = p.eq(x[0], zero);
    let positive = p.gt(x[0], zero);
    let step = p.convert(positive, p.dtype(x[0]));
    p.select(at_zero, x[1], step)
}

fn check_heaviside(values: &[Value]) -> Result<()> {
    let dtypes: Vec<DType> =
        values.iter().take(2).map(|v| Ok(v.to_tensor()?.dtype())).collect::<Result<_>>()?;
    if dtypes.windows(2).any(|pair| pair[0] != pair[1]) && !dtypes.iter().any(|d| d.is_complex()) {
        return Err(Diagnostic::runtime(
            "heaviside is not yet implemented for tensors with different dtypes.",
        ));
    }
    Ok(())
}

fn logical(p: &mut Program, x: &[Sv], op: Binary) -> Sv {
    let (a, b) = (p.convert(x[0], DType::Bool), p.convert(x[1], DType::Bool));
    p.binary(op, a, b)
}
