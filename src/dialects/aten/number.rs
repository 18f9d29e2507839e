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
    if b.re == 0.0 && b.im == 0.0 {
        // By zero: the numerator's parts times a signed infinity, as C has it.
        let infinity = f64::INFINITY.copysign(b.re);
        Complex64::new(infinity * a.re, infinity * a.im)
    } else if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let scale = b.re + b.im * ratio;
        Complex64::new((a.re + a.im * ratio) / scale, (a.im - a.re * ratio) / scale)
    } else {
        let ratio = b.re / b.im;
        let scale = b.re * ratio + b.im;
        Complex64::new((a.re * ratio + a.im) / scale, (a.im * ratio - a.re) / scale)
    }
}

/// a^b by e^(b ln a), as C computes it: 0^0 is NaN.
pub(super) fn complex_pow(a: Complex64, b: Complex64) -> Complex64 {
    (b * a.ln()).exp()
}

/// Whether the op was declared for numbers of unknown kind (`Scalar`).
pub(super) fn is_generic(args: &Args<'_>) -> bool {
    args.op.schema_text().contains("(Scalar ")
}
