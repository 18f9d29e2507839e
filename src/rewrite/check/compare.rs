//! Whether two values are equal as a contract means it.

use crate::rewrite::load::syntax::Contract;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::Value;
use num_complex::Complex64;

/// What rounding errors are measured by.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The largest magnitude that went into the results: errors of sums are of its size.
    pub magnitude: f64,
    /// The least exact dtype that went into them.
    pub dtype: Option<DType>,
}

impl Scale {
    /// For comparisons that allow no error.
    pub const EXACT: Scale = Scale { magnitude: 0.0, dtype: None };
}

/// Whether the right side's value is as good as the left side's.
pub fn agree(contract: Contract, left: &Value, right: &Value, scale: Scale) -> bool {
    match (left, right) {
        (Value::None, Value::None) => true,
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Str(a), Value::Str(b)) => a == b,
        (Value::Device(a), Value::Device(b)) => a == b,
        (Value::Float(a), Value::Float(b)) => {
            number(contract, DType::F64, Complex64::new(*a, 0.0), Complex64::new(*b, 0.0), scale)
        }
        (Value::Complex(a), Value::Complex(b)) => number(contract, DType::C128, *a, *b, scale),
        (Value::Tensor(a), Value::Tensor(b)) => tensors(contract, a, b, scale),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len()
                && a.to_vec().iter().zip(b.to_vec().iter()).all(|(a, b)| agree(contract, a, b, scale))
        }
        (Value::Tuple(a), Value::Tuple(b)) => {
            a.items().len() == b.items().len()
                && a.items().iter().zip(b.items()).all(|(a, b)| agree(contract, a, b, scale))
        }
        (Value::Dict(a), Value::Dict(b)) => {
            let (a, b) = (a.entries(), b.entries());
            a.len() == b.len()
                && a.iter().zip(b.iter()).all(|((k, v), (l, w))| {
                    agree(contract, &k.to_value(), &l.to_value(), Scale::EXACT)
                        && agree(contract, v, w, scale)
                })
        }
        _ => left.is_same(right),
    }
}

/// Whether all that two values differ in is a few units in the last place of floats.
pub fn differ_by_rounding(left: &Value, right: &Value) -> bool {
    let close = |a: Scalar, b: Scalar, dtype: DType| {
        let (a, b) = (a.to_complex(), b.to_complex());
        let part = |a: f64, b: f64| {
            let unit = unit(dtype) * a.abs().max(b.abs());
            a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || a != b && (a - b).abs() <= 4.0 * unit
        };
        part(a.re, b.re) && part(a.im, b.im)
    };
    match (left, right) {
        (Value::Float(a), Value::Float(b)) => close(Scalar::Float(*a), Scalar::Float(*b), DType::F64),
        (Value::Complex(a), Value::Complex(b)) => {
            close(Scalar::Complex(*a), Scalar::Complex(*b), DType::C128)
        }
        (Value::Tensor(a), Value::Tensor(b)) => {
            let dtype = a.dtype();
            let floats = dtype.is_floating() || dtype.is_complex();
            floats
                && dtype == b.dtype()
                && a.sizes() == b.sizes()
                && match (a.to_scalars(), b.to_scalars()) {
                    (Ok(a), Ok(b)) => a.iter().zip(&b).all(|(a, b)| close(*a, *b, dtype)),
                    _ => false,
                }
        }
        _ => false,
    }
}

/// The distance of floats near 1.
pub fn unit(dtype: DType) -> f64 {
    match dtype.to_real() {
        DType::F16 => 1e-3,
        DType::BF16 => 8e-3,
        DType::F32 => 1.2e-7,
        _ => f64::EPSILON,
    }
}

fn tensors(contract: Contract, left: &Tensor, right: &Tensor, scale: Scale) -> bool {
    let dtype = left.dtype();
    if dtype != right.dtype() || left.sizes() != right.sizes() {
        return false;
    }
    let (Ok(left), Ok(right)) = (left.to_scalars(), right.to_scalars()) else { return false };
    left.iter().zip(&right).all(|(a, b)| match (a, b) {
        (Scalar::Int(a), Scalar::Int(b)) => a == b,
        (Scalar::Bool(a), Scalar::Bool(b)) => a == b,
        _ => number(contract, dtype, a.to_complex(), b.to_complex(), scale),
    })
}

fn number(contract: Contract, dtype: DType, a: Complex64, b: Complex64, scale: Scale) -> bool {
    let part = |a: f64, b: f64| match contract {
        _ if a.is_nan() && b.is_nan() => true,
        Contract::Exact => a.to_bits() == b.to_bits(),
        // Infinities of one sign are equal.
        Contract::NanRelaxed | Contract::FastMath | Contract::Trusted => a == b,
    };
    if part(a.re, b.re) && part(a.im, b.im) {
        return true;
    }
    // Where a division by zero is inside of an op, what comes of it depends on the order of its steps.
    let finite = |z: Complex64| z.re.is_finite() && z.im.is_finite();
    if contract == Contract::FastMath && !finite(a) && !finite(b) {
        return true;
    }
    contract == Contract::FastMath && {
        let (relative, absolute) = tolerance(dtype);
        let (coarse, coarse_absolute) = scale.dtype.map_or((0.0, 0.0), tolerance);
        (a - b).norm()
            <= absolute.max(coarse_absolute)
                + relative.max(coarse) * a.norm().max(b.norm()).max(scale.magnitude)
    }
}

/// How far two results may lie apart: relative to the largest number involved, and absolutely. A few roundings of
/// the dtype.
fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (8e-3, 1e-3),
        DType::BF16 => (6e-2, 1e-2),
        DType::F32 | DType::C64 => (1e-5, 1e-5),
        _ => (1e-9, 1e-7),
    }
}
