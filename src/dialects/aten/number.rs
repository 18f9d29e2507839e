//! Numbers as the host builtins see them.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Args;
use crate::value::Value;
use num_complex::Complex64;

/// An int, a float or a complex number; bools count as ints.
#[derive(Clone, Copy, Debug)]
pub(super) enum Num {
    Int(i64),
    Float(f64),
    Complex(Complex64),
}

impl Num {
    /// The number that a value is.
    pub(super) fn of(args: &Args<'_>, n: usize) -> Result<Num> {
        match args.value(n)? {
            Value::Int(x) => Ok(Num::Int(*x)),
            Value::Bool(x) => Ok(Num::Int(i64::from(*x))),
            Value::Float(x) => Ok(Num::Float(*x)),
            Value::Complex(x) => Ok(Num::Complex(*x)),
            other => Err(Diagnostic::runtime(format!(
                "{}() Expected a value of type 'number' but got {}",
                args.op.name(),
                other.kind_name()
            ))),
        }
    }

    pub(super) fn is_complex(self) -> bool {
        matches!(self, Num::Complex(_))
    }

    /// As a float; of a complex number the real part.
    pub(super) fn to_f64(self) -> f64 {
        match self {
            Num::Int(x) => x as f64,
            Num::Float(x) => x,
            Num::Complex(x) => x.re,
        }
    }

    pub(super) fn to_complex(self) -> Complex64 {
        match self {
            Num::Complex(x) => x,
            other => Complex64::new(other.to_f64(), 0.0),
        }
    }
}

/// The first two arguments.
pub(super) fn operands(args: &Args<'_>) -> Result<(Num, Num)> {
    Ok((Num::of(args, 0)?, Num::of(args, 1)?))
}

/// Division that does not overflow on the way (Smith's method).
pub(super) fn complex_div(a: Complex64, b: Complex64) -> Complex64 {
    if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let scale = b.re + b.im * ratio;
        Complex64::new((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
    } else {
        let ratio = b.re / b.im;
        let scale = b.re * ratio + b.im;
        Complex64::new((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale)
    }
}

/// a^b; 0 to a positive power is 0, anything to the power 0 is 1.
pub(super) fn complex_pow(a: Complex64, b: Complex64) -> Complex64 {
    let zero = Complex64::new(0.0, 0.0);
    if b == zero {
        Complex64::new(1.0, 0.0)
    } else if a == zero {
        if b.re > 0.0 { zero } else { Complex64::new(f64::NAN, f64::NAN) }
    } else {
        (b * a.ln()).exp()
    }
}
