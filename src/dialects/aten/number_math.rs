//! Functions of numbers: what `math.sqrt` and similar functions compile to.

use super::number::{Num, complex_div, is_generic, operands};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Fact, OpDef, Outputs, host, one};
use crate::kernels::complex;
use crate::tensor::Scalar;
use crate::value::Value;
use num_complex::Complex64;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::exp.int(int a) -> float", exp),
    host("aten::exp.float(float a) -> float", exp),
    host("aten::exp.complex(complex a) -> complex", exp),
    host("aten::exp.Scalar(Scalar a) -> Scalar", exp),
    host("aten::expm1.int(int a) -> float", expm1),
    host("aten::expm1.float(float a) -> float", expm1),
    host("aten::expm1.Scalar(Scalar a) -> Scalar", expm1),
    host("aten::log10.int(int a) -> float", log10),
    host("aten::log10.float(float a) -> float", log10),
    host("aten::log10.complex(complex a) -> complex", log10),
    host("aten::log10.Scalar(Scalar a) -> Scalar", log10),
    host("aten::log1p.int(int a) -> float", log1p),
    host("aten::log1p.float(float a) -> float", log1p),
    host("aten::log1p.Scalar(Scalar a) -> Scalar", log1p),
    host("aten::sqrt.int(int a) -> float", sqrt),
    host("aten::sqrt.float(float a) -> float", sqrt),
    host("aten::sqrt.complex(complex a) -> complex", sqrt),
    host("aten::sqrt.Scalar(Scalar a) -> Scalar", sqrt),
    host("aten::sin.int(int a) -> float", sin),
    host("aten::sin.float(float a) -> float", sin),
    host("aten::sin.complex(complex a) -> complex", sin),
    host("aten::sin.Scalar(Scalar a) -> Scalar", sin),
    host("aten::cos.int(int a) -> float", cos),
    host("aten::cos.float(float a) -> float", cos),
    host("aten::cos.complex(complex a) -> complex", cos),
    host("aten::cos.Scalar(Scalar a) -> Scalar", cos),
    host("aten::tan.int(int a) -> float", tan),
    host("aten::tan.float(float a) -> float", tan),
    host("aten::tan.complex(complex a) -> complex", tan),
    host("aten::tan.Scalar(Scalar a) -> Scalar", tan),
    host("aten::asin.int(int a) -> float", asin),
    host("aten::asin.float(float a) -> float", asin),
    host("aten::asin.complex(complex a) -> complex", asin),
    host("aten::asin.Scalar(Scalar a) -> Scalar", asin),
    host("aten::acos.int(int a) -> float", acos),
    host("aten::acos.float(float a) -> float", acos),
    host("aten::acos.complex(complex a) -> complex", acos),
    host("aten::acos.Scalar(Scalar a) -> Scalar", acos),
    host("aten::atan.int(int a) -> float", atan),
    host("aten::atan.float(float a) -> float", atan),
    host("aten::atan.complex(complex a) -> complex", atan),
    host("aten::atan.Scalar(Scalar a) -> Scalar", atan),
    host("aten::sinh.int(int a) -> float", sinh),
    host("aten::sinh.float(float a) -> float", sinh),
    host("aten::sinh.complex(complex a) -> complex", sinh),
    host("aten::sinh.Scalar(Scalar a) -> Scalar", sinh),
    host("aten::cosh.int(int a) -> float", cosh),
    host("aten::cosh.float(float a) -> float", cosh),
    host("aten::cosh.complex(complex a) -> complex", cosh),
    host("aten::cosh.Scalar(Scalar a) -> Scalar", cosh),
    host("aten::tanh.int(int a) -> float", tanh),
    host("aten::tanh.float(float a) -> float", tanh),
    host("aten::tanh.complex(complex a) -> complex", tanh),
    host("aten::tanh.Scalar(Scalar a) -> Scalar", tanh),
    host("aten::asinh.int(int a) -> float", asinh),
    host("aten::asinh.float(float a) -> float", asinh),
    host("aten::asinh.complex(complex a) -> complex", asinh),
    host("aten::asinh.Scalar(Scalar a) -> Scalar", asinh),
    host("aten::acosh.int(int a) -> float", acosh),
    host("aten::acosh.float(float a) -> float", acosh),
    host("aten::acosh.complex(complex a) -> complex", acosh),
    host("aten::acosh.Scalar(Scalar a) -> Scalar", acosh),
    host("aten::atanh.int(int a) -> float", atanh),
    host("aten::atanh.float(float a) -> float", atanh),
    host("aten::atanh.complex(complex a) -> complex", atanh),
    host("aten::atanh.Scalar(Scalar a) -> Scalar", atanh),
    host("aten::erf.int(int a) -> float", erf),
    host("aten::erf.float(float a) -> float", erf),
    host("aten::erf.Scalar(Scalar a) -> Scalar", erf),
    host("aten::erfc.int(int a) -> float", erfc),
    host("aten::erfc.float(float a) -> float", erfc),
    host("aten::erfc.Scalar(Scalar a) -> Scalar", erfc),
    host("aten::gamma.int(int a) -> float", gamma),
    host("aten::gamma.float(float a) -> float", gamma),
    host("aten::gamma.Scalar(Scalar a) -> Scalar", gamma),
    host("aten::lgamma.int(int a) -> float", lgamma),
    host("aten::lgamma.float(float a) -> float", lgamma),
    host("aten::lgamma.Scalar(Scalar a) -> Scalar", lgamma),
    host("aten::fabs.int(int a) -> float", fabs),
    host("aten::fabs.float(float a) -> float", fabs),
    host("aten::fabs.Scalar(Scalar a) -> Scalar", fabs),
    host("aten::degrees.int(int a) -> float", degrees),
    host("aten::degrees.float(float a) -> float", degrees),
    host("aten::degrees.Scalar(Scalar a) -> Scalar", degrees),
    host("aten::radians.int(int a) -> float", radians),
    host("aten::radians.float(float a) -> float", radians),
    host("aten::radians.Scalar(Scalar a) -> Scalar", radians),
    host("aten::round.int(int a) -> float", round),
    host("aten::round.float(float a) -> float", round),
    host("aten::round.Scalar(Scalar a) -> Scalar", round),
    host("aten::log.int(int a) -> float", log),
    host("aten::log.float(float a) -> float", log),
    host("aten::log.complex(complex a) -> complex", log),
    host("aten::log.Scalar(Scalar a) -> Scalar", log),
    host("aten::log.int_int(int a, int b) -> float", log),
    host("aten::log.float_float(float a, float b) -> float", log),
    host("aten::log.complex_complex(complex a, complex b) -> complex", log),
    host("aten::log.int_float(int a, float b) -> float", log),
    host("aten::log.float_int(float a, int b) -> float", log),
    host("aten::log.int_complex(int a, complex b) -> complex", log),
    host("aten::log.complex_int(complex a, int b) -> complex", log),
    host("aten::log.float_complex(float a, complex b) -> complex", log),
    host("aten::log.complex_float(complex a, float b) -> complex", log),
    host("aten::log.Scalar_Scalar(Scalar a, Scalar b) -> float", log),
    host("aten::angle.int(int a) -> float", angle),
    host("aten::angle.float(float a) -> float", angle),
    host("aten::angle.complex(complex a) -> float", angle),
    host("aten::angle.Scalar(Scalar a) -> Scalar", angle),
    host("aten::neg.int(int a) -> int", neg).facts(&[Fact::Involution]),
    host("aten::neg.float(float a) -> float", neg).facts(&[Fact::Involution]),
    host("aten::neg.complex(complex a) -> complex", neg).facts(&[Fact::Involution]),
    host("aten::neg.Scalar(Scalar a) -> Scalar", neg),
    host("aten::ceil.int(int a) -> int", ceil),
    host("aten::ceil.float(float a) -> int", ceil),
    host("aten::ceil.Scalar(Scalar a) -> Scalar", ceil),
    host("aten::floor.int(int a) -> int", floor),
    host("aten::floor.float(float a) -> int", floor),
    host("aten::floor.Scalar(Scalar a) -> Scalar", floor),
    host("aten::isnan.float(float a) -> bool", isnan),
    host("aten::isnan.complex(complex a) -> bool", isnan),
    host("aten::isinf.float(float a) -> bool", isinf),
    host("aten::isinf.complex(complex a) -> bool", isinf),
    host("aten::isfinite.float(float a) -> bool", isfinite),
    host("aten::isfinite.complex(complex a) -> bool", isfinite),
    host("aten::factorial.int(int a) -> int", factorial),
    host("aten::frexp(float a) -> (float, int)", frexp),
    host("aten::ldexp(float x, int i) -> float", ldexp),
    host("aten::modf(float a) -> (float, float)", modf),
    host("prim::abs.int(int a) -> int", abs),
    host("prim::abs.float(float a) -> float", abs),
    host("prim::abs.complex(complex a) -> float", abs),
    host("prim::abs.Scalar(Scalar a) -> Scalar", abs),
];

/// PyTorch computes an int of unknown kind with 32 bits.
fn of_unknown_kind(args: &Args<'_>, x: i64) -> i64 {
    if is_generic(args) { i64::from(x as i32) } else { x }
}

/// PyTorch gives results for numbers of unknown kind float32 precision.
fn float(args: &Args<'_>, x: f64) -> Result<Outputs> {
    one(if is_generic(args) { f64::from(x as f32) } else { x })
}

/// Applies a function of floats, to which ints are converted, or of complex numbers.
fn function(
    args: &Args<'_>,
    real: fn(f64) -> f64,
    complex: Option<fn(Complex64) -> Complex64>,
) -> Result<Outputs> {
    match (Num::of(args, 0)?, complex) {
        (Num::Complex(z), Some(f)) => one(Value::Complex(f(z))),
        (Num::Complex(_), None) => Err(no_complex(args)),
        (x, _) => float(args, real(x.to_f64())),
    }
}

fn no_complex(args: &Args<'_>) -> Diagnostic {
    Diagnostic::runtime(format!("{}() does not take complex numbers", args.op.name()))
}

fn exp(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::exp, Some(|z| z.exp()))
}

fn expm1(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::exp_m1, None)
}

fn log10(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::log10, Some(|z| z.ln() / std::f64::consts::LN_10))
}

fn log1p(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::ln_1p, None)
}

fn sqrt(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::sqrt, Some(complex::sqrt))
}

fn sin(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::sin, Some(complex::sin))
}

fn cos(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::cos, Some(complex::cos))
}

fn tan(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::tan, Some(complex::tan))
}

fn asin(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::asin, Some(complex::asin))
}

fn acos(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::acos, Some(complex::acos))
}

fn atan(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::atan, Some(complex::atan))
}

fn sinh(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::sinh, Some(complex::sinh))
}

fn cosh(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::cosh, Some(complex::cosh))
}

fn tanh(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::tanh, Some(complex::tanh))
}

fn asinh(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::asinh, Some(complex::asinh))
}

fn acosh(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::acosh, Some(complex::acosh))
}

fn atanh(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::atanh, Some(complex::atanh))
}

fn erf(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::erf, None)
}

fn erfc(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::erfc, None)
}

fn gamma(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::tgamma, None)
}

fn lgamma(args: &Args<'_>) -> Result<Outputs> {
    function(args, libm::lgamma, None)
}

fn fabs(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::abs, None)
}

fn degrees(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::to_degrees, None)
}

fn radians(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::to_radians, None)
}

fn round(args: &Args<'_>) -> Result<Outputs> {
    function(args, f64::round_ties_even, None)
}

/// The natural logarithm, or that to a base.
fn log(args: &Args<'_>) -> Result<Outputs> {
    if args.values.len() < 2 {
        return function(args, f64::ln, Some(|z| z.ln()));
    }
    match operands(args)? {
        (a, b) if (a.is_complex() || b.is_complex()) && is_generic(args) => Err(no_complex(args)),
        // The logarithm of a real operand is the real one: NaN below zero.
        (Num::Complex(a), Num::Complex(b)) => one(Value::Complex(complex_div(a.ln(), b.ln()))),
        (Num::Complex(a), b) => one(Value::Complex(a.ln() / b.to_f64().ln())),
        (a, Num::Complex(b)) => {
            one(Value::Complex(complex_div(Complex64::new(a.to_f64().ln(), 0.0), b.ln())))
        }
        (a, b) => one(a.to_f64().ln() / b.to_f64().ln()),
    }
}

fn angle(args: &Args<'_>) -> Result<Outputs> {
    match Num::of(args, 0)? {
        Num::Complex(z) => float(args, z.im.atan2(z.re)),
        x => {
            let x = x.to_f64();
            float(args, if x.is_nan() { 0.0 } else { 0f64.atan2(x) })
        }
    }
}

fn neg(args: &Args<'_>) -> Result<Outputs> {
    match Num::of(args, 0)? {
        Num::Int(x) => one(of_unknown_kind(args, x).wrapping_neg()),
        Num::Float(x) => float(args, -x),
        Num::Complex(z) => one(Value::Complex(-z)),
    }
}

fn abs(args: &Args<'_>) -> Result<Outputs> {
    match Num::of(args, 0)? {
        Num::Int(x) => one(of_unknown_kind(args, x).wrapping_abs()),
        Num::Float(x) => float(args, x.abs()),
        Num::Complex(z) => float(args, z.re.hypot(z.im)),
    }
}

fn ceil(args: &Args<'_>) -> Result<Outputs> {
    whole(args, f64::ceil)
}

fn floor(args: &Args<'_>) -> Result<Outputs> {
    whole(args, f64::floor)
}

/// Rounds to an int, where it fits one. The floor of an int takes the way through floats.
fn whole(args: &Args<'_>, round: fn(f64) -> f64) -> Result<Outputs> {
    match Num::of(args, 0)? {
        Num::Int(x) if args.op.schema_text().starts_with("aten::floor.int") => {
            one(Scalar::Float(x as f64).to_i64())
        }
        // So does an int of unknown kind, which keeps 32 bits.
        Num::Int(x) if is_generic(args) => one(of_unknown_kind(args, x as f64 as i64)),
        Num::Int(x) => one(x),
        Num::Float(x) => {
            let rounded = round(x);
            if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&rounded) {
                let text = if x.is_nan() { "nan".to_string() } else { format!("{rounded:.6}") };
                return Err(Diagnostic::runtime(format!("Cannot convert float {text} to integer")));
            }
            one(of_unknown_kind(args, rounded as i64))
        }
        Num::Complex(_) => Err(no_complex(args)),
    }
}

fn parts(args: &Args<'_>, test: fn(f64) -> bool, all: bool) -> Result<Outputs> {
    one(match Num::of(args, 0)? {
        Num::Complex(z) if all => test(z.re) && test(z.im),
        Num::Complex(z) => test(z.re) || test(z.im),
        x => test(x.to_f64()),
    })
}

fn isnan(args: &Args<'_>) -> Result<Outputs> {
    parts(args, f64::is_nan, false)
}

fn isinf(args: &Args<'_>) -> Result<Outputs> {
    parts(args, f64::is_infinite, false)
}

fn isfinite(args: &Args<'_>) -> Result<Outputs> {
    parts(args, f64::is_finite, true)
}

/// Of the low 32 bits; wraps beyond 20!.
fn factorial(args: &Args<'_>) -> Result<Outputs> {
    let n = i64::from(args.int(0)? as i32);
    if n < 0 {
        return Err(Diagnostic::runtime("factorial() not defined for negative values"));
    }
    // From 66! on all 64 low bits are zero.
    one(if n > 66 { 0 } else { (1..=n).fold(1i64, i64::wrapping_mul) })
}

fn frexp(args: &Args<'_>) -> Result<Outputs> {
    let (mantissa, exponent) = libm::frexp(args.float(0)?);
    let exponent = if mantissa.is_finite() { exponent } else { 0 };
    Ok(smallvec::smallvec![Value::Float(mantissa), Value::Int(exponent.into())])
}

fn ldexp(args: &Args<'_>) -> Result<Outputs> {
    // The exponent is a C int: higher bits are lost.
    let exponent = (args.int(1)? as i32).clamp(-5000, 5000);
    one(libm::ldexp(args.float(0)?, exponent))
}

fn modf(args: &Args<'_>) -> Result<Outputs> {
    let x = args.float(0)?;
    let whole = x.trunc();
    let fraction = if x.is_infinite() { 0f64 } else { x - whole };
    Ok(smallvec::smallvec![Value::Float(fraction.copysign(x)), Value::Float(whole)])
}
