//! Sequences of numbers: ranges, evenly spaced points, window functions.

use crate::diag::{Diagnostic, Result};
use crate::resources::Collect;
use crate::tensor::{DType, Element, Scalar, Tensor, check_fill};
use num_complex::Complex64;
use std::f64::consts::PI;

/// A number as an element, converted as a C++ cast on x86-64 does: floats outside of int32 give its minimum.
pub fn wrapped<T: Element>(value: Scalar) -> T {
    match value {
        Scalar::Float(x) if T::DTYPE == DType::I32 => {
            let inside = (-2_147_483_649.0 < x) && (x < 2_147_483_648.0);
            T::from_scalar(if inside { value } else { Scalar::Int(i64::from(i32::MIN)) })
        }
        _ => T::from_scalar(value),
    }
}

/// No range is longer: 2^40 elements, above any memory.
const MAX_LENGTH: f64 = 1_099_511_627_776.0;

fn check_ends(start: Scalar, end: Scalar, step: Scalar) -> Result<()> {
    let (s, e, d) = (start.to_f64(), end.to_f64(), step.to_f64());
    if d == 0.0 || d.is_nan() {
        return Err(Diagnostic::runtime("step must be nonzero"));
    }
    if !s.is_finite() || !e.is_finite() {
        let show = |x: f64| if x.is_nan() { "nan".to_string() } else { x.to_string() };
        return Err(Diagnostic::runtime(format!("unsupported range: {} -> {}", show(s), show(e))));
    }
    if (d > 0.0 && e < s) || (d < 0.0 && e > s) {
        return Err(Diagnostic::runtime("upper bound and lower bound inconsistent with step sign"));
    }
    Ok(())
}

/// From start to before end. Without a dtype: int64 if all are ints, else float32.
pub fn arange(start: Scalar, end: Scalar, step: Scalar, dtype: Option<DType>) -> Result<Tensor> {
    let whole = |s: Scalar| matches!(s, Scalar::Int(_) | Scalar::Bool(_));
    let all_whole = whole(start) && whole(end) && whole(step);
    let dtype = dtype.unwrap_or(if all_whole { DType::I64 } else { DType::F32 });
    real_dtype("arange_cpu", dtype)?;
    check_ends(start, end, step)?;
    let length = if dtype == DType::I64 && all_whole {
        let (s, e, d) = (i128::from(start.to_i64()), i128::from(end.to_i64()), i128::from(step.to_i64()));
        if d == 0 {
            return Err(Diagnostic::runtime("step must be nonzero"));
        }
        ((e - s + d - d.signum()) / d) as f64
    } else {
        ((end.to_f64() - start.to_f64()) / step.to_f64()).ceil()
    };
    steps(start, step, length, dtype)
}

/// From start to end inclusive.
pub fn closed(start: Scalar, end: Scalar, step: Scalar, dtype: DType) -> Result<Tensor> {
    real_dtype("range_cpu", dtype)?;
    check_ends(start, end, step)?;
    if dtype.is_integral() {
        // Integers count from integer to integer.
        let (from, to, by) = (start.to_i64(), end.to_i64(), step.to_i64());
        if by == 0 {
            return Err(Diagnostic::runtime("step must be nonzero"));
        }
        let length = (i128::from(to) - i128::from(from)) / i128::from(by) + 1;
        return steps(start, step, length as f64, dtype);
    }
    steps(start, step, ((end.to_f64() - start.to_f64()) / step.to_f64()).floor() + 1.0, dtype)
}

fn steps(start: Scalar, step: Scalar, length: f64, dtype: DType) -> Result<Tensor> {
    if !(0.0..=MAX_LENGTH).contains(&length) {
        return Err(Diagnostic::runtime(format!("invalid size, possible overflow? {length}")));
    }
    let n = length as i64;
    Tensor::expect(dtype, &[n])?;
    crate::dispatch_dtype!(dtype, T => {
        let elements = if dtype.is_integral() {
            let (start, step) = (start.to_i64(), step.to_i64());
            (0..n).map(|i| T::from_scalar(Scalar::Int(start.wrapping_add(step.wrapping_mul(i))))).scratch()?
        } else {
            let (start, step) = (start.to_f64(), step.to_f64());
            (0..n).map(|i| T::from_scalar(Scalar::Float(start + step * i as f64))).scratch()?
        };
        Tensor::from_vec::<T>(&elements, &[n])
    })
}

fn real_dtype(name: &str, dtype: DType) -> Result<()> {
    if (dtype.is_integral() || dtype.is_floating()) && !dtype.is_rare() {
        return Ok(());
    }
    Err(not_implemented(name, dtype))
}

/// PyTorch's error for a kernel that lacks a dtype.
pub fn not_implemented(name: &str, dtype: DType) -> Diagnostic {
    Diagnostic::raised(
        "NotImplementedError",
        format!("\"{name}\" not implemented for '{}'", dtype.type_name()),
    )
}

/// `steps` points from start to end inclusive; with a base, its powers with these exponents. The second half
/// counts down from the end, so that both ends are exact.
pub fn spaced(start: Scalar, end: Scalar, steps: i64, base: Option<f64>, dtype: DType) -> Result<Tensor> {
    if steps < 0 {
        return Err(Diagnostic::runtime("number of steps must be non-negative"));
    }
    let name = if base.is_some() { "logspace_cpu" } else { "linspace_cpu" };
    if (dtype == DType::Bool || dtype.is_rare()) && steps > 1 {
        return Err(not_implemented(name, dtype));
    }
    if steps > 0 {
        check_fill(start, dtype)?;
        check_fill(end, dtype)?;
    }
    Tensor::expect(dtype, &[steps])?;
    // Integer dtypes take in the ends first, but step by fractions.
    let whole = |s: Scalar| {
        let x = if dtype == DType::U8 { i64::from(s.to_i64() as u8) } else { s.to_i64() };
        Complex64::new(x as f64, 0.0)
    };
    let (from, to) = if dtype.is_integral() && (base.is_none() || steps > 1) {
        (whole(start), whole(end))
    } else {
        (start.to_complex(), end.to_complex())
    };
    let step = (to - from) / (steps - 1).max(1) as f64;
    let point = |i: i64| {
        if steps == 1 || i < steps / 2 { from + step * i as f64 } else { to - step * (steps - 1 - i) as f64 }
    };
    let value = |i: i64| {
        let x = point(i);
        match base {
            None => x,
            Some(base) if dtype.is_complex() => Complex64::new(base, 0.0).powc(x),
            Some(base) => Complex64::new(base.powf(x.re), 0.0),
        }
    };
    crate::dispatch_dtype!(dtype, T => {
        let elements = (0..steps)
            .map(|i| {
                let x = value(i);
                T::from_scalar(if dtype.is_complex() { Scalar::Complex(x) } else { Scalar::Float(x.re) })
            })
            .scratch()?;
        Tensor::from_vec::<T>(&elements, &[steps])
    })
}

/// Window functions of signal processing.
#[derive(Clone, Copy, Debug)]
pub enum Shape {
    /// Raised cosine.
    Hann,
    /// `alpha - beta * cos`.
    Hamming(f64, f64),
    /// Triangle.
    Bartlett,
    /// Three cosine terms.
    Blackman,
    /// Bessel function with a shape parameter.
    Kaiser(f64),
}

/// A window of `length` points; a periodic one is a longer one without its last point. As in PyTorch each step on the way is rounded to
/// the dtype, and each number of a formula, but for Kaiser windows.
pub fn window(length: i64, periodic: bool, shape: Shape, dtype: DType) -> Result<Tensor> {
    if length <= 1 {
        return Tensor::full(dtype, &[length], Scalar::Int(1));
    }
    Tensor::expect(dtype, &[length])?;
    let last = (if periodic { length } else { length - 1 }) as f64;
    let value = |i: i64, r: fn(f64) -> f64| {
        let x = r(i as f64);
        let raised = |alpha: f64, beta: f64| r(r(r(r(x * r(2.0 * PI / last)).cos()) * r(-beta)) + r(alpha));
        match shape {
            Shape::Hann => raised(0.5, 0.5),
            Shape::Hamming(alpha, beta) => raised(alpha, beta),
            Shape::Bartlett => {
                let rise = r(x * r(2.0 / last));
                if i <= last as i64 / 2 { rise } else { r(2.0 - rise) }
            }
            Shape::Blackman => {
                let angle = r(x * r(PI / last));
                let (slow, fast) = (r(r(angle * 2.0).cos()), r(r(angle * 4.0).cos()));
                r(r(r(fast * r(0.08)) - r(slow * 0.5)) + r(0.42))
            }
            Shape::Kaiser(beta) => {
                let y = 2.0 * x / last - 1.0;
                bessel_i0(beta * (1.0 - y * y).max(0.0).sqrt()) / bessel_i0(beta)
            }
        }
    };
    crate::dispatch_dtype!(dtype, T => {
        let rounded = |x: f64| T::from_scalar(Scalar::Float(x)).to_scalar().to_f64();
        let elements = (0..length).map(|i| T::from_scalar(Scalar::Float(value(i, rounded)))).scratch()?;
        Tensor::from_vec::<T>(&elements, &[length])
    })
}

/// Modified Bessel function of order 0 by its power series, which converges for every argument.
fn bessel_i0(x: f64) -> f64 {
    let quarter = x * x / 4.0;
    let (mut term, mut sum, mut k) = (1.0, 1.0, 1.0);
    while term > sum * 1e-17 && k < 10_000.0 {
        term *= quarter / (k * k);
        sum += term;
        k += 1.0;
    }
    sum
}
