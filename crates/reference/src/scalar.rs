//! What is done to one number, or to two: arithmetic, order, bits and functions, in 64 bits. No knowledge of dtypes, arrays or ops.

use crate::array::{complex, float};
use crate::{Answer, Outside, refused};
use flambeau_base::tensor::Scalar;
use num_complex::Complex64;
use std::cmp::Ordering;

/// A complex number; where a part is not finite it depends on the order of steps which part is what.
fn finite(z: Complex64) -> Answer<Scalar> {
    if z.re.is_finite() && z.im.is_finite() {
        Ok(Scalar::Complex(z))
    } else {
        Err(Outside::Open("a complex number that is not finite"))
    }
}

pub(crate) fn negative(x: Scalar) -> Answer<Scalar> {
    match x {
        Scalar::Bool(_) => refused("truth values have no negative"),
        Scalar::Int(x) => Ok(Scalar::Int(x.wrapping_neg())),
        Scalar::Float(x) => Ok(Scalar::Float(-x)),
        Scalar::Complex(z) => Ok(Scalar::Complex(-z)),
    }
}

/// a + b, or a - b where one is to be subtracted; of truth values whether one holds.
pub(crate) fn sum(subtracts: bool, a: Scalar, b: Scalar) -> Answer<Scalar> {
    match (a, b) {
        (Scalar::Bool(_), Scalar::Bool(_)) if subtracts => refused("truth values have no difference"),
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(a || b)),
        (Scalar::Int(a), Scalar::Int(b)) if subtracts => Ok(Scalar::Int(a.wrapping_sub(b))),
        (Scalar::Int(a), Scalar::Int(b)) => Ok(Scalar::Int(a.wrapping_add(b))),
        (Scalar::Complex(a), b) | (b, Scalar::Complex(a)) if !subtracts => finite(a + complex(b)),
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => finite(complex(a) - complex(b)),
        _ if subtracts => Ok(Scalar::Float(float(a) - float(b))),
        _ => Ok(Scalar::Float(float(a) + float(b))),
    }
}

pub(crate) fn product(a: Scalar, b: Scalar) -> Answer<Scalar> {
    match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Scalar::Bool(a && b)),
        (Scalar::Int(a), Scalar::Int(b)) => Ok(Scalar::Int(a.wrapping_mul(b))),
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => finite(complex(a) * complex(b)),
        _ => Ok(Scalar::Float(float(a) * float(b))),
    }
}

pub(crate) fn quotient(a: Scalar, b: Scalar) -> Answer<Scalar> {
    match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => finite(complex(a) / complex(b)),
        _ => Ok(Scalar::Float(float(a) / float(b))),
    }
}

/// A whole quotient: that towards zero, or that towards minus infinity.
pub(crate) fn divided(name: &str, a: Scalar, b: Scalar) -> Answer<Scalar> {
    match (a, b) {
        (Scalar::Int(_), Scalar::Int(0)) => refused("division by zero"),
        (Scalar::Int(a), Scalar::Int(b)) => {
            let is_below = name == "div_floor" && a.wrapping_rem(b) != 0 && (a < 0) != (b < 0);
            Ok(Scalar::Int(a.wrapping_div(b).wrapping_sub(i64::from(is_below))))
        }
        // Of floats it depends on how the quotient was rounded before.
        _ => Err(Outside::Open("a whole quotient of floats")),
    }
}

/// What is left of a division towards minus infinity: it has the divisor's sign.
pub(crate) fn remainder(a: Scalar, b: Scalar) -> Answer<Scalar> {
    match (a, b) {
        (Scalar::Int(_), Scalar::Int(0)) => refused("division by zero"),
        // TorchScript adds the divisor before it divides a second time.
        (Scalar::Int(a), Scalar::Int(b)) if a.wrapping_rem(b).checked_add(b).is_none() => {
            Err(Outside::Open("a remainder of a divisor that is too large"))
        }
        (Scalar::Int(a), Scalar::Int(b)) => {
            let rest = a.wrapping_rem(b);
            Ok(Scalar::Int(if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest }))
        }
        (Scalar::Float(a), Scalar::Float(b)) => {
            let rest = a % b;
            Ok(Scalar::Float(if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }))
        }
        _ => Err(Outside::Unknown),
    }
}

/// Integers to negative powers are 0, but for 1 and -1.
pub(crate) fn power(base: Scalar, exponent: Scalar) -> Answer<Scalar> {
    match (base, exponent) {
        (Scalar::Bool(_), _) => Err(Outside::Unknown),
        (Scalar::Int(base), Scalar::Int(exponent)) => Ok(Scalar::Int(match (base, exponent) {
            (1, _) => 1,
            (-1, n) => 1 - 2 * (n & 1),
            (_, n) if n < 0 => 0,
            // The period of powers modulo 2^64 divides 2^62, and even numbers are 0 from the 64th power on.
            (base, n) if base % 2 == 0 && n > 64 => 0,
            (base, n) => wrapping_power(base, n as u64),
        })),
        (Scalar::Complex(z), exponent) if complex(exponent) == Complex64::new(2.0, 0.0) => finite(z * z),
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => {
            Err(Outside::Open("which of many complex powers, and how exactly"))
        }
        (base, exponent)
            if float(exponent) == 0.5
                && (float(base) == f64::NEG_INFINITY
                    || float(base) == 0.0 && float(base).is_sign_negative()) =>
        {
            Err(Outside::Open("whether a power of one half is a root"))
        }
        (base, exponent) => Ok(Scalar::Float(float(base).powf(float(exponent)))),
    }
}

fn wrapping_power(mut base: i64, mut exponent: u64) -> i64 {
    let mut result: i64 = 1;
    while exponent > 0 {
        if exponent % 2 == 1 {
            result = result.wrapping_mul(base);
        }
        base = base.wrapping_mul(base);
        exponent /= 2;
    }
    result
}

/// The larger or the smaller of two; NaN where one is NaN.
pub(crate) fn bounded(a: Scalar, b: Scalar, wanted: Ordering) -> Answer<Scalar> {
    Ok(match order(a, b)? {
        None if float(a).is_nan() => a,
        None => b,
        Some(found) if found == wanted => a,
        Some(_) => b,
    })
}

/// The same, but for NaN: where one is NaN, the other.
pub(crate) fn bounded_but_for_nan(a: Scalar, b: Scalar, wanted: Ordering) -> Answer<Scalar> {
    match (float(a).is_nan(), float(b).is_nan()) {
        (true, _) => Ok(b),
        (_, true) => Ok(a),
        _ => bounded(a, b, wanted),
    }
}

/// A number between two others, of which the last counts if they are the wrong way round.
pub(crate) fn between(x: &[Scalar]) -> Answer<Scalar> {
    bounded(bounded(x[0], x[1], Ordering::Greater)?, x[2], Ordering::Less)
}

/// How two numbers lie; None where one is NaN.
pub(crate) fn order(a: Scalar, b: Scalar) -> Answer<Option<Ordering>> {
    match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => refused("complex numbers have no order"),
        (Scalar::Int(a), Scalar::Int(b)) => Ok(Some(a.cmp(&b))),
        (Scalar::Bool(a), Scalar::Bool(b)) => Ok(Some(a.cmp(&b))),
        _ => Ok(float(a).partial_cmp(&float(b))),
    }
}

pub(crate) fn compared(name: &str, a: Scalar, b: Scalar) -> Answer<bool> {
    let is_equal = match (a, b) {
        (Scalar::Complex(_), _) | (_, Scalar::Complex(_)) => complex(a) == complex(b),
        _ => order(a, b)? == Some(Ordering::Equal),
    };
    Ok(match name {
        "eq" => is_equal,
        "ne" => !is_equal,
        "lt" => order(a, b)?.is_some_and(Ordering::is_lt),
        "le" => order(a, b)?.is_some_and(Ordering::is_le),
        "gt" => order(a, b)?.is_some_and(Ordering::is_gt),
        _ => order(a, b)?.is_some_and(Ordering::is_ge),
    })
}

pub(crate) fn bits(name: &str, a: Scalar, b: Scalar) -> Answer<Scalar> {
    let (a, b, is_bool) = match (a, b) {
        (Scalar::Bool(a), Scalar::Bool(b)) => (i64::from(a), i64::from(b), true),
        (Scalar::Int(a), Scalar::Int(b)) => (a, b, false),
        _ => return refused("floats have no bits"),
    };
    let bits = match name.trim_matches('_').trim_start_matches("bitwise_") {
        "and" => a & b,
        "or" => a | b,
        _ => a ^ b,
    };
    Ok(if is_bool { Scalar::Bool(bits != 0) } else { Scalar::Int(bits) })
}

/// The nearest whole number in a direction; of two that are as near, the even one.
pub(crate) fn whole(name: &str, x: Scalar) -> Answer<Scalar> {
    match x {
        Scalar::Int(x) => Ok(Scalar::Int(x)),
        Scalar::Float(x) => Ok(Scalar::Float(match name {
            "floor" => x.floor(),
            "ceil" => x.ceil(),
            "trunc" => x.trunc(),
            _ => x.round_ties_even(),
        })),
        _ => refused("only integers and floats are rounded"),
    }
}

/// -1, 0 or 1.
pub(crate) fn signum(x: Scalar) -> Answer<Scalar> {
    match x {
        Scalar::Bool(x) => Ok(Scalar::Bool(x)),
        Scalar::Int(x) => Ok(Scalar::Int(x.signum())),
        Scalar::Float(x) if x.is_nan() => Err(Outside::Open("the sign of NaN")),
        Scalar::Float(x) => Ok(Scalar::Float(if x == 0.0 { 0.0 } else { x.signum() })),
        Scalar::Complex(_) => Err(Outside::Unknown),
    }
}

pub(crate) fn kind_of(name: &str, x: Scalar) -> Answer<Scalar> {
    let z = complex(x);
    let any = |is: fn(f64) -> bool| is(z.re) || is(z.im);
    Ok(Scalar::Bool(match name {
        "isnan" => any(f64::is_nan),
        "isinf" => any(f64::is_infinite),
        _ => z.re.is_finite() && z.im.is_finite(),
    }))
}

/// A function of two floats.
pub(crate) fn of_pair(name: &str, a: Scalar, b: Scalar) -> Answer<Scalar> {
    let (Scalar::Float(a), Scalar::Float(b)) = (a, b) else { return Err(Outside::Unknown) };
    let far = (a - b).abs();
    Ok(Scalar::Float(match name {
        "hypot" => a.hypot(b),
        // Of two infinities of one sign the difference is NaN.
        _ if a.is_infinite() && a == b => a,
        _ if a.is_nan() || b.is_nan() => f64::NAN,
        "logaddexp" => a.max(b) + (-far).exp().ln_1p(),
        _ => a.max(b) + (-far).exp2().ln_1p() / std::f64::consts::LN_2,
    }))
}

pub(crate) fn divisor(name: &str, a: Scalar, b: Scalar) -> Answer<Scalar> {
    let (Scalar::Int(a), Scalar::Int(b)) = (a, b) else { return Err(Outside::Unknown) };
    // The least integer of a dtype has no positive counterpart.
    if [a, b].iter().any(|x| [7, 15, 31, 63].iter().any(|bits| *x == i64::MIN >> (63 - bits))) {
        return Err(Outside::Open("a divisor of the least integer"));
    }
    let (mut large, mut small) = (a.unsigned_abs(), b.unsigned_abs());
    while small != 0 {
        (large, small) = (small, large % small);
    }
    let divisor = large as i64;
    match name {
        "gcd" => Ok(Scalar::Int(divisor)),
        _ if divisor == 0 => Ok(Scalar::Int(0)),
        _ => match (a / divisor).checked_mul(b) {
            Some(multiple) if multiple.unsigned_abs() < 1 << 7 => Ok(Scalar::Int(multiple.abs())),
            _ => Err(Outside::Open("a multiple that the dtype may not hold")),
        },
    }
}

/// 2 / sqrt(pi) times the integral of exp(-t * t) from 0 to x: its power series, where that converges soon.
fn erf(x: f64) -> f64 {
    if x.is_nan() || x.abs() > 6.0 {
        return if x.is_nan() { x } else { x.signum() };
    }
    // The sum of 2^n x^(2n + 1) / (1 * 3 * ... * (2n + 1)), all of one sign, times exp(-x * x).
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > sum.abs() * 1e-18 {
        term *= 2.0 * x * x / (2.0 * n + 1.0);
        sum += term;
        n += 1.0;
    }
    std::f64::consts::FRAC_2_SQRT_PI * (-x * x).exp() * sum
}

/// A function of one number.
pub(crate) fn function(name: &str, x: Scalar) -> Answer<Scalar> {
    if let Scalar::Complex(z) = x {
        return complex_function(name, z);
    }
    let x = float(x);
    Ok(Scalar::Float(match name {
        "exp" => x.exp(),
        "expm1" => x.exp_m1(),
        "log" => x.ln(),
        "log1p" => x.ln_1p(),
        "sqrt" => x.sqrt(),
        "rsqrt" => 1.0 / x.sqrt(),
        "sigmoid" => 1.0 / (1.0 + (-x).exp()),
        "reciprocal" => 1.0 / x,
        "sin" => x.sin(),
        "cos" => x.cos(),
        "tan" => x.tan(),
        "asin" => x.asin(),
        "acos" => x.acos(),
        "atan" => x.atan(),
        "sinh" => x.sinh(),
        "cosh" => x.cosh(),
        "tanh" => x.tanh(),
        "asinh" => x.asinh(),
        // By logarithms of what lies beside 1, which lose nothing near it.
        "acosh" => ((x - 1.0) + (x - 1.0).sqrt() * (x + 1.0).sqrt()).ln_1p(),
        "atanh" => 0.5 * (x.ln_1p() - (-x).ln_1p()),
        "erf" => erf(x),
        "exp2" => x.exp2(),
        "log2" => x.log2(),
        "log10" => x.log10(),
        "sinc" if x == 0.0 => 1.0,
        "sinc" if x.abs() > 1e37 => return Err(Outside::Open("the sine of what may be infinite")),
        "sinc" => (std::f64::consts::PI * x).sin() / (std::f64::consts::PI * x),
        "deg2rad" => x.to_radians(),
        "rad2deg" => x.to_degrees(),
        // ln(1 / (1 + exp(-x))), so that no exponential is too large.
        "log_sigmoid" => x.min(0.0) - (-x.abs()).exp().ln_1p() + if x.is_nan() { x } else { 0.0 },
        _ => return Err(Outside::Unknown),
    }))
}

fn complex_function(name: &str, z: Complex64) -> Answer<Scalar> {
    let one = Complex64::new(1.0, 0.0);
    if !(z.re.is_finite() && z.im.is_finite()) {
        return Err(Outside::Open("a complex number that is not finite"));
    }
    finite(match name {
        "exp" => z.exp(),
        "log" => z.ln(),
        "sqrt" => z.sqrt(),
        "rsqrt" => one / z.sqrt(),
        "sigmoid" => one / (one + (-z).exp()),
        "reciprocal" => one / z,
        "tanh" => z.tanh(),
        _ => return Err(Outside::Unknown),
    })
}
