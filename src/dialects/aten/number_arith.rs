//! Arithmetic and comparison of numbers: the builtins behind `a + b` on int, float and complex.
//!
//! One kernel serves all overloads of an op: the kinds of the values decide, as the overloads do. An int meets
//! a float as a float, a bool counts as an int.

use super::number::{Num, complex_pow, is_generic, operands};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Contract, Fact, Given, OpDef, Outputs, host, one};
use crate::value::Value;
use num_complex::Complex64;

/// x + 0 = 0 + x = x
const ZERO: Fact = Fact::TwoSided(&Fact::Identity(0.0));
/// x · 1 = 1 · x = x
const ONE: Fact = Fact::TwoSided(&Fact::Identity(1.0));
/// x · 0 = 0 · x = 0
const ABSORBS_ZERO: Fact = Fact::TwoSided(&Fact::Absorbing(0.0));
/// What holds of any value and itself.
const HOLDS: Fact = Fact::Reflexive(Given::Truth(true));
/// What holds of no value and itself.
const FAILS: Fact = Fact::Reflexive(Given::Truth(false));

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::add.int(int a, int b) -> int", add).facts(&[ZERO]),
    host("aten::add.complex(complex a, complex b) -> complex", add),
    host("aten::add.float(float a, float b) -> float", add),
    host("aten::add.int_complex(int a, complex b) -> complex", add),
    host("aten::add.complex_int(complex a, int b) -> complex", add),
    host("aten::add.float_complex(float a, complex b) -> complex", add),
    host("aten::add.complex_float(complex a, float b) -> complex", add),
    host("aten::add.int_float(int a, float b) -> float", add),
    host("aten::add.float_int(float a, int b) -> float", add),
    host("aten::add(Scalar a, Scalar b) -> Scalar", add),
    host("aten::sub.int(int a, int b) -> int", sub)
        .facts(&[Fact::Identity(0.0), Fact::Reflexive(Given::Number(0.0))]),
    host("aten::sub.complex(complex a, complex b) -> complex", sub),
    host("aten::sub.float(float a, float b) -> float", sub).facts(&[Fact::Identity(0.0)]),
    host("aten::sub.int_complex(int a, complex b) -> complex", sub),
    host("aten::sub.complex_int(complex a, int b) -> complex", sub),
    host("aten::sub.float_complex(float a, complex b) -> complex", sub),
    host("aten::sub.complex_float(complex a, float b) -> complex", sub),
    host("aten::sub.int_float(int a, float b) -> float", sub),
    host("aten::sub.float_int(float a, int b) -> float", sub),
    host("aten::sub(Scalar a, Scalar b) -> Scalar", sub),
    host("aten::mul.int(int a, int b) -> int", mul).facts(&[ONE, ABSORBS_ZERO]),
    host("aten::mul.complex(complex a, complex b) -> complex", mul),
    host("aten::mul.float(float a, float b) -> float", mul).facts(&[ONE]),
    host("aten::mul.int_complex(int a, complex b) -> complex", mul),
    host("aten::mul.complex_int(complex a, int b) -> complex", mul),
    host("aten::mul.float_complex(float a, complex b) -> complex", mul),
    host("aten::mul.complex_float(complex a, float b) -> complex", mul),
    host("aten::mul.int_float(int a, float b) -> float", mul),
    host("aten::mul.float_int(float a, int b) -> float", mul),
    host("aten::mul(Scalar a, Scalar b) -> Scalar", mul),
    host("aten::div.int(int a, int b) -> float", div),
    host("aten::div.complex(complex a, complex b) -> complex", div),
    host("aten::div.float(float a, float b) -> float", div).facts(&[Fact::Identity(1.0)]),
    host("aten::div(Scalar a, Scalar b) -> float", div),
    host("aten::floordiv.int(int a, int b) -> int", floordiv).facts(&[Fact::Identity(1.0)]),
    host("aten::floordiv.float(float a, float b) -> float", floordiv),
    host("aten::floordiv.int_float(int a, float b) -> float", floordiv),
    host("aten::floordiv.float_int(float a, int b) -> float", floordiv),
    host("aten::floordiv(Scalar a, Scalar b) -> Scalar", floordiv),
    host("aten::remainder.int(int a, int b) -> int", remainder),
    host("aten::remainder.float(float a, float b) -> float", remainder),
    host("aten::remainder.int_float(int a, float b) -> float", remainder),
    host("aten::remainder.float_int(float a, int b) -> float", remainder),
    host("aten::remainder(Scalar a, Scalar b) -> Scalar", remainder),
    host("aten::fmod.int(int a, int b) -> float", fmod),
    host("aten::fmod.float(float a, float b) -> float", fmod),
    host("aten::fmod.int_float(int a, float b) -> float", fmod),
    host("aten::fmod.float_int(float a, int b) -> float", fmod),
    host("aten::fmod(Scalar a, Scalar b) -> float", fmod),
    host("aten::mathremainder.int(int a, int b) -> float", ieee_remainder),
    host("aten::mathremainder.float(float a, float b) -> float", ieee_remainder),
    host("aten::mathremainder.int_float(int a, float b) -> float", ieee_remainder),
    host("aten::mathremainder.float_int(float a, int b) -> float", ieee_remainder),
    host("aten::mathremainder(Scalar a, Scalar b) -> float", ieee_remainder),
    host("aten::pow.int(int a, int b) -> float", pow),
    host("aten::pow.complex(complex a, complex b) -> complex", pow),
    host("aten::pow.float(float a, float b) -> float", pow),
    host("aten::pow.int_float(int a, float b) -> float", pow),
    host("aten::pow.float_int(float a, int b) -> float", pow),
    host("aten::pow.float_complex(float a, complex b) -> complex", pow),
    host("aten::pow.complex_float(complex a, float b) -> complex", pow),
    host("aten::pow.Scalar_Scalar(Scalar a, Scalar b) -> float", pow),
    host("aten::pow.int_to_int(int a, int b) -> int", pow_int),
    host("aten::atan2.int(int a, int b) -> float", atan2),
    host("aten::atan2.float(float a, float b) -> float", atan2),
    host("aten::atan2.int_float(int a, float b) -> float", atan2),
    host("aten::atan2.float_int(float a, int b) -> float", atan2),
    host("aten::atan2.Scalar_Scalar(Scalar a, Scalar b) -> float", atan2),
    host("aten::copysign.int(int a, int b) -> float", copysign),
    host("aten::copysign.float(float a, float b) -> float", copysign),
    host("aten::copysign.int_float(int a, float b) -> float", copysign),
    host("aten::copysign.float_int(float a, int b) -> float", copysign),
    host("aten::copysign(Scalar a, Scalar b) -> float", copysign),
    host("aten::polar.int(int a, int b) -> complex", polar),
    host("aten::polar.float(float a, float b) -> complex", polar),
    host("aten::polar.int_float(int a, float b) -> complex", polar),
    host("aten::polar.float_int(float a, int b) -> complex", polar),
    host("aten::polar.Scalar_Scalar(Scalar a, Scalar b) -> Scalar", polar),
    host("aten::divmod.int(int x, int y) -> (int, int)", divmod),
    host("aten::divmod.float(float x, float y) -> (float, float)", divmod),
    host("aten::divmod.int_float(int x, float y) -> (float, float)", divmod),
    host("aten::divmod.float_int(float x, int y) -> (float, float)", divmod),
    host("aten::eq.bool(bool a, bool b) -> bool", eq).facts(&[Fact::Negates("aten::ne"), HOLDS]),
    host("aten::eq.int(int a, int b) -> bool", eq).facts(&[Fact::Negates("aten::ne"), HOLDS]),
    host("aten::eq.complex(complex a, complex b) -> bool", eq),
    host("aten::eq.float(float a, float b) -> bool", eq)
        .facts(&[Fact::Negates("aten::ne"), Fact::Under(Contract::NanRelaxed, &HOLDS)]),
    host("aten::eq.int_float(int a, float b) -> bool", eq),
    host("aten::eq.float_int(float a, int b) -> bool", eq),
    host("aten::eq.float_complex(float a, complex b) -> bool", eq),
    host("aten::eq.complex_float(complex a, float b) -> bool", eq),
    host("aten::eq(Scalar a, Scalar b) -> bool", eq),
    host("aten::ne.bool(bool a, bool b) -> bool", ne).facts(&[Fact::Negates("aten::eq"), FAILS]),
    host("aten::ne.int(int a, int b) -> bool", ne).facts(&[Fact::Negates("aten::eq"), FAILS]),
    host("aten::ne.complex(complex a, complex b) -> bool", ne),
    host("aten::ne.float(float a, float b) -> bool", ne)
        .facts(&[Fact::Negates("aten::eq"), Fact::Under(Contract::NanRelaxed, &FAILS)]),
    host("aten::ne.int_float(int a, float b) -> bool", ne),
    host("aten::ne.float_int(float a, int b) -> bool", ne),
    host("aten::ne.float_complex(float a, complex b) -> bool", ne),
    host("aten::ne.complex_float(complex a, float b) -> bool", ne),
    host("aten::ne(Scalar a, Scalar b) -> bool", ne),
    host("aten::lt.int(int a, int b) -> bool", lt).facts(&[Fact::Negates("aten::ge"), FAILS]),
    host("aten::lt.float(float a, float b) -> bool", lt)
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::ge")), FAILS]),
    host("aten::lt.int_float(int a, float b) -> bool", lt),
    host("aten::lt.float_int(float a, int b) -> bool", lt),
    host("aten::lt(Scalar a, Scalar b) -> bool", lt),
    host("aten::le.int(int a, int b) -> bool", le).facts(&[Fact::Negates("aten::gt"), HOLDS]),
    host("aten::le.float(float a, float b) -> bool", le).facts(&[
        Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::gt")),
        Fact::Under(Contract::NanRelaxed, &HOLDS),
    ]),
    host("aten::le.int_float(int a, float b) -> bool", le),
    host("aten::le.float_int(float a, int b) -> bool", le),
    host("aten::le(Scalar a, Scalar b) -> bool", le),
    host("aten::gt.int(int a, int b) -> bool", gt).facts(&[Fact::Negates("aten::le"), FAILS]),
    host("aten::gt.float(float a, float b) -> bool", gt)
        .facts(&[Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::le")), FAILS]),
    host("aten::gt.int_float(int a, float b) -> bool", gt),
    host("aten::gt.float_int(float a, int b) -> bool", gt),
    host("aten::gt(Scalar a, Scalar b) -> bool", gt),
    host("aten::ge.int(int a, int b) -> bool", ge).facts(&[Fact::Negates("aten::lt"), HOLDS]),
    host("aten::ge.float(float a, float b) -> bool", ge).facts(&[
        Fact::Under(Contract::NanRelaxed, &Fact::Negates("aten::lt")),
        Fact::Under(Contract::NanRelaxed, &HOLDS),
    ]),
    host("aten::ge.int_float(int a, float b) -> bool", ge),
    host("aten::ge.float_int(float a, int b) -> bool", ge),
    host("aten::ge(Scalar a, Scalar b) -> bool", ge),
    host("aten::__and__.bool(bool a, bool b) -> bool", and).facts(&[ONE, ABSORBS_ZERO, Fact::Idempotent]),
    host("aten::__and__.int(int a, int b) -> int", and).facts(&[
        Fact::TwoSided(&Fact::Identity(-1.0)),
        ABSORBS_ZERO,
        Fact::Idempotent,
    ]),
    host("aten::__or__.bool(bool a, bool b) -> bool", or).facts(&[
        ZERO,
        Fact::TwoSided(&Fact::Absorbing(1.0)),
        Fact::Idempotent,
    ]),
    host("aten::__or__.int(int a, int b) -> int", or).facts(&[
        ZERO,
        Fact::TwoSided(&Fact::Absorbing(-1.0)),
        Fact::Idempotent,
    ]),
    host("aten::__xor__.bool(bool a, bool b) -> bool", xor).facts(&[ZERO, FAILS]),
    host("aten::__xor__.int(int a, int b) -> int", xor).facts(&[ZERO, Fact::Reflexive(Given::Number(0.0))]),
    host("aten::__lshift__.int(int a, int b) -> int", shl),
    host("aten::__rshift__.int(int a, int b) -> int", shr),
    host("aten::gcd.int(int a, int b) -> int", gcd),
    host("aten::__round_to_zero_floordiv.int(int a, int b) -> int", truncdiv),
    host("prim::max.int(int a, int b) -> int", max).facts(&[Fact::Idempotent]),
    host("prim::max.float(float a, float b) -> float", max).facts(&[Fact::Idempotent]),
    host("prim::max.int_float(int a, float b) -> float", max),
    host("prim::max.float_int(float a, int b) -> float", max),
    host("prim::max(Scalar a, Scalar b) -> Scalar", max),
    host("prim::min.int(int a, int b) -> int", min).facts(&[Fact::Idempotent]),
    host("prim::min.float(float a, float b) -> float", min).facts(&[Fact::Idempotent]),
    host("prim::min.int_float(int a, float b) -> float", min),
    host("prim::min.float_int(float a, int b) -> float", min),
    host("prim::min(Scalar a, Scalar b) -> Scalar", min),
];

/// Applies the function of the kind to which both operands come.
fn arith(
    args: &Args<'_>,
    int: fn(i64, i64) -> Result<i64>,
    float: fn(f64, f64) -> Result<f64>,
    complex: Option<fn(Complex64, Complex64) -> Complex64>,
) -> Result<Outputs> {
    match operands(args)? {
        (Num::Int(a), Num::Int(b)) => one(int(a, b)?),
        (a, b) if a.is_complex() || b.is_complex() => match complex {
            Some(f) => one(Value::Complex(f(a.to_complex(), b.to_complex()))),
            None => Err(no_complex(args)),
        },
        (a, b) => one(float(a.to_f64(), b.to_f64())?),
    }
}

/// Applies a function of floats, to which ints are converted.
fn floats(args: &Args<'_>, f: fn(f64, f64) -> Result<f64>) -> Result<Outputs> {
    match operands(args)? {
        (a, b) if a.is_complex() || b.is_complex() => Err(no_complex(args)),
        (a, b) => one(f(a.to_f64(), b.to_f64())?),
    }
}

fn no_complex(args: &Args<'_>) -> Diagnostic {
    Diagnostic::runtime(format!("{}() does not take complex numbers", args.op.name()))
}

fn add(args: &Args<'_>) -> Result<Outputs> {
    arith(args, |a, b| Ok(a.wrapping_add(b)), |a, b| Ok(a + b), Some(|a, b| a + b))
}

fn sub(args: &Args<'_>) -> Result<Outputs> {
    arith(args, |a, b| Ok(a.wrapping_sub(b)), |a, b| Ok(a - b), Some(|a, b| a - b))
}

/// A real factor scales both parts.
fn mul(args: &Args<'_>) -> Result<Outputs> {
    match operands(args)? {
        (Num::Complex(_), Num::Complex(_)) => {}
        (Num::Complex(z), x) | (x, Num::Complex(z)) => {
            return one(Value::Complex(Complex64::new(z.re * x.to_f64(), z.im * x.to_f64())));
        }
        _ => {}
    }
    arith(args, |a, b| Ok(a.wrapping_mul(b)), |a, b| Ok(a * b), Some(|a, b| a * b))
}

/// Ints divide to a float; division by zero gives an infinity or NaN.
fn div(args: &Args<'_>) -> Result<Outputs> {
    match operands(args)? {
        (a, b) if (a.is_complex() || b.is_complex()) && is_generic(args) => Err(no_complex(args)),
        (a, b) if a.is_complex() || b.is_complex() => {
            let (a, b) = (a.to_complex(), b.to_complex());
            one(Value::Complex(super::number::complex_div(a, b)))
        }
        (a, b) => one(a.to_f64() / b.to_f64()),
    }
}

fn division_by_zero() -> Diagnostic {
    Diagnostic::runtime("division by 0")
}

/// Floor of the quotient of ints.
pub(super) fn floor_quotient(a: i64, b: i64) -> Result<i64> {
    let quotient = if b == 0 { return Err(division_by_zero()) } else { a.wrapping_div(b) };
    let crosses = a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
    Ok(if crosses { quotient - 1 } else { quotient })
}

fn floordiv(args: &Args<'_>) -> Result<Outputs> {
    arith(args, floor_quotient, |a, b| Ok((a / b).floor()), None)
}

fn truncdiv(args: &Args<'_>) -> Result<Outputs> {
    let (a, b) = (args.int(0)?, args.int(1)?);
    if b == 0 { Err(division_by_zero()) } else { one(a.wrapping_div(b)) }
}

/// The sign of the divisor; PyTorch's process dies of a zero int, here it raises.
fn remainder(args: &Args<'_>) -> Result<Outputs> {
    fn int(a: i64, b: i64) -> Result<i64> {
        if b == 0 {
            return Err(Diagnostic::runtime("ZeroDivisionError: integer division or modulo by zero"));
        }
        Ok(b.wrapping_add(a.wrapping_rem(b)).wrapping_rem(b))
    }
    arith(args, int, |a, b| Ok((b + a % b) % b), None)
}

fn fmod(args: &Args<'_>) -> Result<Outputs> {
    floats(args, |a, b| Ok(a % b))
}

fn ieee_remainder(args: &Args<'_>) -> Result<Outputs> {
    floats(args, |a, b| Ok(libm::remainder(a, b)))
}

fn pow(args: &Args<'_>) -> Result<Outputs> {
    match operands(args)? {
        (a, b) if (a.is_complex() || b.is_complex()) && is_generic(args) => Err(no_complex(args)),
        (Num::Complex(a), Num::Complex(b)) => one(Value::Complex(complex_pow(a, b))),
        (Num::Complex(a), b) => {
            let log = a.ln();
            let (radius, angle) = ((b.to_f64() * log.re).exp(), b.to_f64() * log.im);
            one(Value::Complex(Complex64::from_polar(radius, angle)))
        }
        (a, Num::Complex(b)) if a.to_f64() > 0.0 => {
            let a = a.to_f64();
            one(Value::Complex(Complex64::from_polar(a.powf(b.re), b.im * a.ln())))
        }
        (a, Num::Complex(b)) => one(Value::Complex(complex_pow(a.to_complex(), b))),
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            if a == 0.0 && b < 0.0 && !is_generic(args) {
                return Err(Diagnostic::runtime("0.0 cannot be raised to a negative power"));
            }
            one(a.powf(b))
        }
    }
}

fn pow_int(args: &Args<'_>) -> Result<Outputs> {
    let (a, b) = (args.int(0)?, args.int(1)?);
    one(Value::Int(crate::tensor::Scalar::Float((a as f64).powf(b as f64)).to_i64()))
}

fn atan2(args: &Args<'_>) -> Result<Outputs> {
    floats(args, |a, b| Ok(a.atan2(b)))
}

fn copysign(args: &Args<'_>) -> Result<Outputs> {
    floats(args, |a, b| Ok(a.copysign(b)))
}

fn polar(args: &Args<'_>) -> Result<Outputs> {
    match operands(args)? {
        (a, b) if a.is_complex() || b.is_complex() => Err(no_complex(args)),
        (a, b) => one(Value::Complex(Complex64::from_polar(a.to_f64(), b.to_f64()))),
    }
}

/// Quotient and remainder as a tuple's two values.
fn divmod(args: &Args<'_>) -> Result<Outputs> {
    let zero = |what| Diagnostic::runtime(format!("ZeroDivisionError: {what}"));
    match operands(args)? {
        (Num::Int(_), Num::Int(0)) => Err(zero("integer division or modulo by zero")),
        (Num::Int(a), Num::Int(b)) => {
            let quotient = floor_quotient(a, b)?;
            let rest = a.wrapping_sub(quotient.wrapping_mul(b));
            Ok(smallvec::smallvec![Value::Int(quotient), Value::Int(rest)])
        }
        (Num::Float(_), Num::Int(_)) | (Num::Int(_), Num::Float(_)) => mixed_divmod(operands(args)?),
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            if b == 0.0 {
                return Err(zero("float divmod()"));
            }
            let mut rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) {
                rest += b;
            }
            let quotient = (a - rest) / b;
            Ok(smallvec::smallvec![Value::Float(quotient), Value::Float(rest)])
        }
    }
}

/// An integer and a float: PyTorch takes the integer with 32 bits, the float and the quotient in single precision.
fn mixed_divmod((a, b): (Num, Num)) -> Result<Outputs> {
    let rounded = |x: Num| match x {
        Num::Int(x) => f64::from(x as i32),
        other => f64::from(other.to_f64() as f32),
    };
    let (a, b) = (rounded(a), rounded(b));
    if b == 0.0 {
        return Err(Diagnostic::runtime("ZeroDivisionError: float divmod()"));
    }
    let quotient = f64::from((a as f32 / b as f32).floor());
    if !(-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&quotient) {
        let text = if quotient.is_nan() { "nan".to_string() } else { format!("{quotient:.6}") };
        return Err(Diagnostic::runtime(format!("Cannot convert float {text} to integer")));
    }
    Ok(smallvec::smallvec![Value::Float(quotient), Value::Float(a - quotient * b)])
}

/// Compares by the function of the kind to which both operands come.
fn compare(
    args: &Args<'_>,
    int: fn(&i64, &i64) -> bool,
    float: fn(&f64, &f64) -> bool,
    complex: Option<fn(Complex64, Complex64) -> bool>,
) -> Result<Outputs> {
    match operands(args)? {
        (Num::Int(a), Num::Int(b)) => one(int(&a, &b)),
        (a, b) if a.is_complex() || b.is_complex() => match complex {
            Some(f) => one(f(a.to_complex(), b.to_complex())),
            None => Err(no_complex(args)),
        },
        (a, b) => one(float(&a.to_f64(), &b.to_f64())),
    }
}

/// PyTorch's comparison of an int with a complex number, both of unknown kind, misses its operands.
fn refuse_int_with_complex(args: &Args<'_>) -> Result<()> {
    match operands(args)? {
        (Num::Int(_), Num::Complex(_)) | (Num::Complex(_), Num::Int(_)) if is_generic(args) => {
            Err(Diagnostic::runtime("pop() called on empty stack"))
        }
        _ => Ok(()),
    }
}

fn eq(args: &Args<'_>) -> Result<Outputs> {
    refuse_int_with_complex(args)?;
    compare(args, i64::eq, f64::eq, Some(|a, b| a == b))
}

fn ne(args: &Args<'_>) -> Result<Outputs> {
    refuse_int_with_complex(args)?;
    compare(args, i64::ne, f64::ne, Some(|a, b| a != b))
}

fn lt(args: &Args<'_>) -> Result<Outputs> {
    compare(args, i64::lt, f64::lt, None)
}

fn le(args: &Args<'_>) -> Result<Outputs> {
    compare(args, i64::le, f64::le, None)
}

fn gt(args: &Args<'_>) -> Result<Outputs> {
    compare(args, i64::gt, f64::gt, None)
}

fn ge(args: &Args<'_>) -> Result<Outputs> {
    compare(args, i64::ge, f64::ge, None)
}

/// The later operand wins a tie or stands beside a NaN, as in C++.
fn max(args: &Args<'_>) -> Result<Outputs> {
    arith(args, |a, b| Ok(a.max(b)), |a, b| Ok(if a > b { a } else { b }), None)
}

fn min(args: &Args<'_>) -> Result<Outputs> {
    arith(args, |a, b| Ok(a.min(b)), |a, b| Ok(if a < b { a } else { b }), None)
}

/// Bits of ints, truth of bools.
fn bits(args: &Args<'_>, f: fn(i64, i64) -> i64) -> Result<Outputs> {
    match (args.value(0)?, args.value(1)?) {
        (Value::Bool(a), Value::Bool(b)) => one(f(i64::from(*a), i64::from(*b)) != 0),
        _ => one(f(args.int(0)?, args.int(1)?)),
    }
}

fn and(args: &Args<'_>) -> Result<Outputs> {
    bits(args, |a, b| a & b)
}

fn or(args: &Args<'_>) -> Result<Outputs> {
    bits(args, |a, b| a | b)
}

fn xor(args: &Args<'_>) -> Result<Outputs> {
    bits(args, |a, b| a ^ b)
}

/// The distance counts modulo 64, as the machine's instruction does.
fn shl(args: &Args<'_>) -> Result<Outputs> {
    one(args.int(0)?.wrapping_shl(args.int(1)? as u32))
}

fn shr(args: &Args<'_>) -> Result<Outputs> {
    one(args.int(0)?.wrapping_shr(args.int(1)? as u32))
}

fn gcd(args: &Args<'_>) -> Result<Outputs> {
    let (mut a, mut b) = (args.int(0)?.unsigned_abs(), args.int(1)?.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    one(a as i64)
}
