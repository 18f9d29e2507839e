//! Elementwise functions of one tensor: rounding, exponentials, trigonometry, tests of numbers.

use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Sv};
use crate::dialects::{
    Alias, Contract, Fact, LayerPart, OpDef, Order, OutRule, Promote, Tolerance, elementwise,
};
use crate::kernels::float::Activation;
use crate::tensor::{DType, Scalar};
use crate::value::Value;
use std::f64::consts::PI;

const NEGATION: &str = "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a \
    mask, use the `~` or `logical_not()` operator instead.";

/// The rows.
pub static OPS: &[OpDef] = &[
    elementwise("aten::abs(Tensor self) -> Tensor", Promote::Real)
        .rare("8").scalar(|p, x| p.abs(x[0]))
        .accepts("ifc", "abs_cpu")
        .grad("self: grad * self.sgn()")
        .facts(&[Fact::Even, Fact::Idempotent])
        .out("out").aliases(&[Alias::new("absolute")]),
    elementwise("aten::abs_(Tensor(a!) self) -> Tensor(a!)", Promote::Real)
        .scalar(|p, x| p.abs(x[0]))
        .accepts("ifc", "abs_cpu")
        .check(check_real_abs).aliases(&[Alias::new("absolute_")]),
    elementwise("aten::neg(Tensor self) -> Tensor", Promote::Common)
        .scalar(|p, x| p.neg(x[0]))
        .accepts("ifc", NEGATION)
        .grad("self: -grad")
        .facts(&[Fact::Involution])
        .inplace()
        .out_found("out").aliases(&[Alias::new("negative")]),
    elementwise("aten::reciprocal(Tensor self) -> Tensor", Promote::Float)
        .scalar(reciprocal)
        .grad("self: -grad * (result * result).conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::sqrt(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.sqrt(x[0]))
        .grad("self: grad / (2 * result.conj())")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::rsqrt(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.rsqrt(x[0]))
        .grad("self: -0.5 * grad * (result * result * result).conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::square(Tensor self) -> Tensor", Promote::Number)
        .scalar(|p, x| p.mul(x[0], x[0]))
        .grad("self: grad * (2 * self).conj()")
        .facts(&[Fact::Even])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::exp(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.exp(x[0]))
        .grad("self: grad * result.conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::exp2(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.exp2(x[0]))
        .grad("self: grad * (result * 0.6931471805599453).conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_exp2").functional()]),
    elementwise("aten::expm1(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.expm1(x[0]))
        .grad("self: grad * (result.conj() + 1)")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_expm1").functional()]),
    elementwise("aten::log(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.log(x[0]))
        .grad("self: grad / self.conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::log2(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.log2(x[0]))
        .grad("self: grad / (self.conj() * 0.6931471805599453)")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::log10(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.log10(x[0]))
        .grad("self: grad / (self.conj() * 2.302585092994046)")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::log1p(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.log1p(x[0]))
        .grad("self: grad / (self + 1).conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_log1p").functional()]),
    elementwise("aten::sin(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.sin(x[0]))
        .grad("self: grad * self.cos().conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::cos(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.cos(x[0]))
        .grad("self: grad * -self.sin().conj()")
        .facts(&[Fact::Even])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::tan(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.tan(x[0]))
        .grad("self: grad * (1 + result * result).conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::asin(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.asin(x[0]))
        .grad("self: grad * (1 - self * self).rsqrt().conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arcsin")]),
    elementwise("aten::acos(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.acos(x[0]))
        .grad("self: grad * -(1 - self * self).rsqrt().conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arccos")]),
    elementwise("aten::atan(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.atan(x[0]))
        .grad("self: grad / (self * self + 1).conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arctan")]),
    elementwise("aten::sinh(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.sinh(x[0]))
        .grad("self: grad * self.cosh().conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::cosh(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.cosh(x[0]))
        .grad("self: grad * self.sinh().conj()")
        .facts(&[Fact::Even])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::tanh(Tensor self) -> Tensor", Promote::Float).part(LayerPart::Activation(|_| Some(Activation::Tanh))).quantized_kernel(crate::dialects::quantized::activation::tanh)
        .scalar(|p, x| p.tanh(x[0]))
        .grad("self: grad * (1 - result * result).conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::asinh(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.asinh(x[0]))
        .grad("self: grad * (self * self + 1).rsqrt().conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arcsinh")]),
    elementwise("aten::acosh(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.acosh(x[0]))
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arccosh")]),
    elementwise("aten::atanh(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.atanh(x[0]))
        .grad("self: grad / (1 - self * self).conj()")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("arctanh")]),
    elementwise("aten::sigmoid(Tensor self) -> Tensor", Promote::Float).part(LayerPart::Activation(|_| Some(Activation::Sigmoid))).quantized_kernel(crate::dialects::quantized::activation::sigmoid)
        .scalar(sigmoid)
        .grad("self: grad * ((1 - result) * result).conj()")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_expit").functional()]),
    elementwise("aten::erf(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.erf(x[0]))
        .accepts("f", "erf_vml_cpu")
        .grad("self: 1.1283791670955126 * torch.exp(-self * self) * grad")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_erf").functional()]),
    elementwise("aten::erfc(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.erfc(x[0]))
        .accepts("f", "erfc_vml_cpu")
        .grad("self: -1.1283791670955126 * torch.exp(-self * self) * grad")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_erfc").functional()]),
    elementwise("aten::lgamma(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| p.lgamma(x[0]))
        .accepts("f", "lgamma_vml_cpu")
        .grad("self: grad * torch.digamma(self)")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_gammaln").functional()]),
    elementwise("aten::sinc(Tensor self) -> Tensor", Promote::Float)
        .scalar(sinc)
        .facts(&[Fact::Even])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_sinc").functional()]),
    elementwise("aten::deg2rad(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| scaled(p, x[0], std::f64::consts::PI / 180.0))
        .accepts("f", "deg2rad is not supported for complex tensors.")
        .grad("self: grad * 0.017453292519943295")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::rad2deg(Tensor self) -> Tensor", Promote::Float)
        .scalar(|p, x| scaled(p, x[0], 180.0 / std::f64::consts::PI))
        .accepts("f", "rad2deg is not supported for complex tensors.")
        .grad("self: grad * 57.29577951308232")
        .facts(&[Fact::Odd])
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out"),
    elementwise("aten::floor(Tensor self) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.floor(x[0]))
        .accepts("if", "floor_vml_cpu|floor is not supported for complex inputs")
        .grad("self: torch.zeros_like(grad)")
        .facts(&[Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise("aten::ceil(Tensor self) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.ceil(x[0]))
        .accepts("if", "ceil_vml_cpu|ceil is not supported for complex inputs")
        .grad("self: torch.zeros_like(grad)")
        .facts(&[Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise("aten::round(Tensor self) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.round(x[0]))
        .accepts("if", "round_vml_cpu")
        .grad("self: torch.zeros_like(grad)")
        .facts(&[Fact::Odd, Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise("aten::trunc(Tensor self) -> Tensor", Promote::Common)
        .rare("u").scalar(|p, x| p.trunc(x[0]))
        .accepts("if", "trunc_vml_cpu|trunc is not supported for complex inputs")
        .grad("self: torch.zeros_like(grad)")
        .facts(&[Fact::Odd, Fact::Idempotent])
        .inplace()
        .out_found("out").aliases(&[Alias::new("fix")]),
    elementwise("aten::frac(Tensor self) -> Tensor", Promote::Common)
        .scalar(frac)
        .accepts("f", "frac_cpu")
        .grad("self: grad")
        .facts(&[Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise("aten::sign(Tensor self) -> Tensor", Promote::Common)
        .scalar(sign)
        .accepts("bif", "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.")
        .grad("self: torch.zeros_like(grad)")
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Odd), Fact::Idempotent, Fact::Costly])
        .inplace()
        .out_found("out"),
    elementwise("aten::sgn(Tensor self) -> Tensor", Promote::Common)
        .scalar(sgn)
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Odd), Fact::Idempotent])
        .inplace()
        .out_found("out"),
    elementwise("aten::bitwise_not(Tensor self) -> Tensor", Promote::Common)
        .scalar(|p, x| p.not(x[0]))
        .accepts("bi", "bitwise_not_cpu")
        .facts(&[Fact::Involution])
        .inplace()
        .out_found("out"),
    elementwise("aten::logical_not(Tensor self) -> Tensor", Promote::Bool)
        .scalar(|p, x| p.is_zero(x[0]))
        .facts(&[Fact::Involution])
        .inplace()
        .out("out"),
    elementwise("aten::signbit(Tensor self) -> Tensor", Promote::Bool)
        .rare("u").scalar(signbit)
        .accepts("bif", "signbit is not implemented for complex tensors.")
        .out_as("out", OutRule::Says("signbit does not support non-boolean outputs.")),
    elementwise("aten::isnan(Tensor self) -> Tensor", Promote::Bool)
        .rare("u8").scalar(|p, x| p.ne(x[0], x[0]))
        .out_exact("out"),
    elementwise("aten::isinf(Tensor self) -> Tensor", Promote::Bool)
        .rare("u8").scalar(isinf)
        .facts(&[Fact::Even])
        .out_exact("out"),
    elementwise("aten::isfinite(Tensor self) -> Tensor", Promote::Bool)
        .rare("u8").scalar(isfinite)
        .facts(&[Fact::Even]),
    elementwise("aten::isposinf(Tensor self) -> Tensor", Promote::Bool)
        .scalar(|p, x| equals(p, x[0], f64::INFINITY))
        .accepts("bif", "TypeError: isposinf does not support complex inputs.")
        .out_as("out", OutRule::Says("isposinf does not support non-boolean outputs.")),
    elementwise("aten::isneginf(Tensor self) -> Tensor", Promote::Bool)
        .scalar(|p, x| equals(p, x[0], f64::NEG_INFINITY))
        .accepts("bif", "TypeError: isneginf does not support complex inputs.")
        .out_as("out", OutRule::Says("isneginf does not support non-boolean outputs.")),
    elementwise("aten::isreal(Tensor self) -> Tensor", Promote::Bool)
        .scalar(isreal),
    elementwise("aten::conj_physical(Tensor self) -> Tensor", Promote::Common)
        .scalar(|p, x| p.conj(x[0]))
        .ordered(Order::First)
        .facts(&[Fact::Involution])
        .inplace()
        .out_found("out"),
    elementwise("aten::_conj_physical(Tensor self) -> Tensor", Promote::Common)
        .scalar(|p, x| p.conj(x[0]))
        .ordered(Order::First)
        .facts(&[Fact::Involution])
        .out_exact("out"),
    elementwise("aten::angle(Tensor self) -> Tensor", Promote::RealFloat)
        .scalar(angle)
        .tolerance(Tolerance::Rounding)
        .out("out"),
    elementwise("aten::round.decimals(Tensor self, *, int decimals) -> Tensor", Promote::Common)
        .scalar(round_decimals)
        .accepts("f", "round_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out_found("decimals_out"),
    elementwise("aten::special_round(Tensor self, *, int decimals=0) -> Tensor", Promote::Common)
        .scalar(round_decimals)
        .accepts("f", "round_cpu")
        .tolerance(Tolerance::Rounding)
        .out_found("out").alias_of("round"),
    elementwise("aten::logit(Tensor self, float? eps=None) -> Tensor", Promote::Float)
        .scalar(logit)
        .accepts("f", "logit_cpu")
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_logit").functional()]),
    elementwise(
        "aten::nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None) -> Tensor",
        Promote::First,
    )
    .rare("u").scalar(nan_to_num)
    .facts(&[Fact::Costly])
    .ordered(Order::EveryStride)
    .inplace()
    .out_as("out", OutRule::Says("nan_to_num: dtype of out: {to} should be same as input: {from}")),
    elementwise("aten::mvlgamma(Tensor self, int p) -> Tensor", Promote::Float)
        .scalar(mvlgamma)
        .accepts("f", "lgamma_vml_cpu")
        .check(check_mvlgamma)
        .tolerance(Tolerance::Rounding)
        .inplace()
        .out("out").aliases(&[Alias::new("special_multigammaln").functional()]),
];

fn truth(p: &mut Program, value: bool) -> Sv {
    p.constant(Scalar::Bool(value), DType::Bool)
}

fn is_float(p: &Program, x: Sv) -> bool {
    p.dtype(x).is_floating()
}

fn scaled(p: &mut Program, x: Sv, factor: f64) -> Sv {
    let factor = p.constant_like(x, factor);
    p.mul(x, factor)
}

fn reciprocal(p: &mut Program, x: &[Sv]) -> Sv {
    let one = p.constant_like(x[0], 1.0);
    p.div(one, x[0])
}

pub(super) fn sigmoid(p: &mut Program, x: &[Sv]) -> Sv {
    let one = p.constant_like(x[0], 1.0);
    let negative = p.neg(x[0]);
    let exp = p.exp(negative);
    let sum = p.add(one, exp);
    p.div(one, sum)
}

/// sin(πx) / (πx), 1 at 0
fn sinc(p: &mut Program, x: &[Sv]) -> Sv {
    let angle = scaled(p, x[0], PI);
    let sin = p.sin(angle);
    let ratio = p.div(sin, angle);
    let (zero, one) = (p.constant_like(x[0], 0.0), p.constant_like(x[0], 1.0));
    let at_zero = p.eq(x[0], zero);
    p.select(at_zero, one, ratio)
}

fn frac(p: &mut Program, x: &[Sv]) -> Sv {
    let whole = p.trunc(x[0]);
    p.sub(x[0], whole)
}

/// 0 for NaN, as PyTorch.
fn sign(p: &mut Program, x: &[Sv]) -> Sv {
    let x = x[0];
    if p.dtype(x) == DType::Bool {
        return x;
    }
    let (zero, one) = (p.constant_like(x, 0.0), p.constant_like(x, 1.0));
    let positive = p.gt(x, zero);
    let up = p.select(positive, one, zero);
    if p.dtype(x) == DType::U8 {
        return up;
    }
    let minus = p.constant_like(x, -1.0);
    let negative = p.lt(x, zero);
    p.select(negative, minus, up)
}

/// z / |z| of complex numbers, 0 at 0.
fn sgn(p: &mut Program, x: &[Sv]) -> Sv {
    if !p.dtype(x[0]).is_complex() {
        return sign(p, x);
    }
    let abs = p.abs(x[0]);
    let unit = p.div(x[0], abs);
    let (zero, none) = (p.constant_like(abs, 0.0), p.constant_like(x[0], 0.0));
    let at_zero = p.eq(abs, zero);
    p.select(at_zero, none, unit)
}

fn signbit(p: &mut Program, x: &[Sv]) -> Sv {
    if p.dtype(x[0]) == DType::Bool {
        return truth(p, false);
    }
    let zero = p.constant_like(x[0], 0.0);
    if !is_float(p, x[0]) {
        return p.lt(x[0], zero);
    }
    let one = p.constant_like(x[0], 1.0);
    let signed = p.copysign(one, x[0]);
    p.lt(signed, zero)
}

/// Whether a float equals a number; false for other kinds.
fn equals(p: &mut Program, x: Sv, number: f64) -> Sv {
    if !is_float(p, x) {
        return truth(p, false);
    }
    let number = p.constant_like(x, number);
    p.eq(x, number)
}

fn isinf(p: &mut Program, x: &[Sv]) -> Sv {
    if p.dtype(x[0]).is_complex() {
        let (re, im) = (p.real(x[0]), p.imag(x[0]));
        let (re, im) = (isinf(p, &[re]), isinf(p, &[im]));
        return p.or(re, im);
    }
    let abs = if is_float(p, x[0]) { p.abs(x[0]) } else { x[0] };
    equals(p, abs, f64::INFINITY)
}

pub(super) fn isfinite(p: &mut Program, x: &[Sv]) -> Sv {
    if p.dtype(x[0]).is_complex() {
        let (re, im) = (p.real(x[0]), p.imag(x[0]));
        let (re, im) = (isfinite(p, &[re]), isfinite(p, &[im]));
        return p.and(re, im);
    }
    if !is_float(p, x[0]) {
        return truth(p, true);
    }
    let abs = p.abs(x[0]);
    let infinity = p.constant_like(x[0], f64::INFINITY);
    p.lt(abs, infinity)
}

fn isreal(p: &mut Program, x: &[Sv]) -> Sv {
    if !p.dtype(x[0]).is_complex() {
        return truth(p, true);
    }
    let im = p.imag(x[0]);
    let zero = p.constant_like(im, 0.0);
    p.eq(im, zero)
}

/// The argument of a complex number; π for negative real numbers, NaN for NaN.
fn angle(p: &mut Program, x: &[Sv]) -> Sv {
    if p.dtype(x[0]).is_complex() {
        let (re, im) = (p.real(x[0]), p.imag(x[0]));
        return p.atan2(im, re);
    }
    let (zero, pi) = (p.constant_like(x[0], 0.0), p.constant_like(x[0], PI));
    let negative = p.lt(x[0], zero);
    let value = p.select(negative, pi, zero);
    let nan = p.ne(x[0], x[0]);
    p.select(nan, x[0], value)
}

fn round_decimals(p: &mut Program, x: &[Sv]) -> Sv {
    let decimals = p.int_arg(0).unwrap_or(0);
    if decimals == 0 || !is_float(p, x[0]) {
        return p.round(x[0]);
    }
    let power = 10f64.powf(decimals.unsigned_abs() as f64);
    let power = p.constant_like(x[0], power);
    if decimals < 0 {
        let small = p.div(x[0], power);
        let whole = p.round(small);
        p.mul(whole, power)
    } else {
        let large = p.mul(x[0], power);
        let whole = p.round(large);
        p.div(whole, power)
    }
}

fn logit(p: &mut Program, x: &[Sv]) -> Sv {
    let one = p.constant_like(x[0], 1.0);
    let given = x[0];
    let mut x = given;
    if let Some(eps) = p.float_arg(0) {
        let low = p.constant_like(x, eps);
        let high = p.sub(one, low);
        let (below, above) = (p.lt(x, low), p.gt(x, high));
        x = p.select(above, high, x);
        x = p.select(below, low, x);
    }
    let rest = p.sub(one, x);
    let rest = p.stepped(rest, given);
    let odds = p.div(x, rest);
    let odds = p.stepped(odds, given);
    p.log(odds)
}

fn nan_to_num(p: &mut Program, x: &[Sv]) -> Sv {
    let x = x[0];
    if p.dtype(x).is_complex() {
        let (re, im, part) = (p.real(x), p.imag(x), p.source_dtype(x).to_real());
        let (re, im) = (real_nan_to_num(p, re, part), real_nan_to_num(p, im, part));
        let i = p.constant(Scalar::Complex(num_complex::Complex64::I), p.dtype(x));
        let (re, im) = (p.convert(re, p.dtype(x)), p.mul(im, i));
        return p.add(re, im);
    }
    if is_float(p, x) { real_nan_to_num(p, x, p.source_dtype(x)) } else { x }
}

/// The same of real numbers of a dtype.
fn real_nan_to_num(p: &mut Program, x: Sv, dtype: DType) -> Sv {
    let largest = match dtype {
        DType::F16 => half::f16::MAX.to_f64(),
        DType::BF16 => half::bf16::MAX.to_f64(),
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    };
    let cases = [
        (f64::INFINITY, p.float_arg(1).unwrap_or(largest)),
        (f64::NEG_INFINITY, p.float_arg(2).unwrap_or(-largest)),
    ];
    let nan = p.float_arg(0).unwrap_or(0.0);
    let nan = p.constant_like(x, nan);
    let is_nan = p.ne(x, x);
    let mut result = p.select(is_nan, nan, x);
    for (from, to) in cases {
        let (from, to) = (p.constant_like(x, from), p.constant_like(x, to));
        let found = p.eq(x, from);
        result = p.select(found, to, result);
    }
    result
}

/// The largest order that is computed: the program grows with it.
const MVLGAMMA_LIMIT: i64 = 1000;

/// Sizes of complex numbers are real: there is no place for them.
fn check_real_abs(values: &[Value]) -> Result<()> {
    match values.first() {
        Some(Value::Tensor(t)) if t.dtype().is_complex() => {
            Err(Diagnostic::runtime("In-place abs is not supported for complex tensors."))
        }
        _ => Ok(()),
    }
}

fn check_mvlgamma(values: &[Value]) -> Result<()> {
    if matches!(values.first(), Some(Value::Tensor(t)) if t.dtype() == DType::Bool) {
        return Err(Diagnostic::runtime("The input tensor may not be a boolean tensor."));
    }
    let order = values.get(1).map_or(Ok(1), Value::to_int)?;
    if order < 1 {
        return Err(Diagnostic::runtime("p has to be greater than or equal to 1"));
    }
    if order > MVLGAMMA_LIMIT {
        return Err(Diagnostic::unsupported(format!("aten::mvlgamma of an order above {MVLGAMMA_LIMIT}")));
    }
    Ok(())
}

/// Sum of ln Γ(x - j/2) over j < p, and p (p - 1) / 4 ln π.
fn mvlgamma(p: &mut Program, x: &[Sv]) -> Sv {
    let order = p.int_arg(0).unwrap_or(1).clamp(1, MVLGAMMA_LIMIT);
    let constant = (order * (order - 1)) as f64 / 4.0 * PI.ln();
    let constant = p.constant_like(x[0], constant);
    let mut sum = p.constant_like(x[0], 0.0);
    for j in 0..order {
        let shift = p.constant_like(x[0], j as f64 * 0.5);
        let shifted = p.sub(x[0], shift);
        let shifted = p.stepped(shifted, x[0]);
        let term = p.lgamma(shifted);
        let term = p.stepped(term, x[0]);
        sum = p.add(sum, term);
    }
    let sum = p.stepped(sum, x[0]);
    p.add(sum, constant)
}
