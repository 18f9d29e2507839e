//! Names of Python's `math` and `cmath`: constants, the functions that are ops, and those that TorchScript has not. It knows
//! nothing of other modules.

use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::ir::{Attr, Symbol, Type};

impl Emitter<'_> {
    /// `math.name` or `cmath.name`
    pub(super) fn math_attribute(&mut self, module: &str, name: &str, span: &Span) -> Result<Sugared> {
        if let Some(constant) = math_constant(name) {
            return Ok(Sugared::Constant(Type::float(), Attr::Float(constant)));
        }
        let kind = Symbol::new(&format!("aten::{}", math_op(name)));
        let (known, refused) = if module == "math" {
            (PYTHON_MATH, UNSUPPORTED_MATH)
        } else {
            (PYTHON_CMATH, &["polar", "isclose"][..])
        };
        if !known.contains(&name) {
            return error(span, format!("object has no attribute {name}"));
        }
        if refused.contains(&name) || self.unit.registry.overloads(kind).is_empty() {
            return error(
                span,
                format!(
                    "Python builtin <built-in function {name}> is currently not supported in Torchscript"
                ),
            );
        }
        Ok(Sugared::Builtin(kind, None))
    }
}

/// Constants of `math` and `cmath`.
fn math_constant(name: &str) -> Option<f64> {
    match name {
        "pi" => Some(std::f64::consts::PI),
        "e" => Some(std::f64::consts::E),
        "tau" => Some(std::f64::consts::TAU),
        "inf" => Some(f64::INFINITY),
        "nan" => Some(f64::NAN),
        _ => None,
    }
}

/// Of Python's `math` what TorchScript has not; ops of the same names are others.
const UNSUPPORTED_MATH: &[&str] = &[
    "cbrt",
    "comb",
    "dist",
    "exp2",
    "fsum",
    "hypot",
    "isclose",
    "isqrt",
    "lcm",
    "log2",
    "nextafter",
    "perm",
    "prod",
    "trunc",
    "ulp",
];

/// Functions of Python's `math`.
const PYTHON_MATH: &[&str] = &[
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "comb",
    "copysign",
    "cos",
    "cosh",
    "degrees",
    "dist",
    "erf",
    "erfc",
    "exp",
    "exp2",
    "expm1",
    "fabs",
    "factorial",
    "floor",
    "fmod",
    "frexp",
    "fsum",
    "gamma",
    "gcd",
    "hypot",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isqrt",
    "lcm",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "modf",
    "nextafter",
    "perm",
    "pow",
    "prod",
    "radians",
    "remainder",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "ulp",
];

/// Functions of Python's `cmath`.
const PYTHON_CMATH: &[&str] = &[
    "acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "isclose", "isfinite", "isinf",
    "isnan", "log", "log10", "phase", "polar", "rect", "sin", "sinh", "sqrt", "tan", "tanh",
];

/// Functions of `math` that are ops under another name.
fn math_op(name: &str) -> &str {
    match name {
        "remainder" => "mathremainder",
        "rect" => "polar",
        "phase" => "angle",
        other => other,
    }
}
