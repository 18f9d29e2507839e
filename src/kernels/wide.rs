//! Arithmetic in the widest type of a kind: integers and bools as i64, floats as f64, complex numbers as two f64.
//! Sums so kept are rounded once, when they are stored.

use crate::diag::Result;
use crate::resources::memory;
use crate::tensor::{DType, Element, Scalar, Tensor};
use num_complex::Complex64;
use std::cmp::Ordering;

/// Runs `$body` with `$W` bound to the wide type of a dtype.
macro_rules! dispatch_wide {
    ($dtype:expr, $W:ident => $body:expr) => {{
        let dtype: crate::tensor::DType = $dtype;
        if dtype.is_complex() {
            type $W = num_complex::Complex64;
            $body
        } else if dtype.is_floating() || dtype.is_float8() {
            type $W = f64;
            $body
        } else {
            type $W = i64;
            $body
        }
    }};
}
pub(crate) use dispatch_wide;

/// A wide number. Integers wrap.
pub trait Wide: Element {
    /// 0
    const ZERO: Self;
    /// 1
    const ONE: Self;
    /// x + y
    fn plus(self, other: Self) -> Self;
    /// x - y
    fn minus(self, other: Self) -> Self;
    /// x * y
    fn times(self, other: Self) -> Self;
    /// x / y; integers towards zero, x where y is 0
    fn over(self, other: Self) -> Self;
    /// Rounded to single precision; integers as they are.
    fn as_single(self) -> Self;
    /// Whether it is not a number.
    fn is_nan(self) -> bool;
    /// NaN after everything, equal to itself; complex numbers by their real parts.
    fn order(self, other: Self) -> Ordering;
    /// From a count.
    fn count(n: usize) -> Self;
    /// The smaller, or NaN if either is.
    fn least(self, other: Self) -> Self {
        if self.is_nan() || (!other.is_nan() && self.order(other) != Ordering::Greater) {
            self
        } else {
            other
        }
    }
    /// The larger, or NaN if either is.
    fn most(self, other: Self) -> Self {
        if self.is_nan() || (!other.is_nan() && self.order(other) != Ordering::Less) { self } else { other }
    }
}

impl Wide for i64 {
    const ZERO: i64 = 0;
    const ONE: i64 = 1;
    fn plus(self, other: i64) -> i64 {
        self.wrapping_add(other)
    }
    fn minus(self, other: i64) -> i64 {
        self.wrapping_sub(other)
    }
    fn times(self, other: i64) -> i64 {
        self.wrapping_mul(other)
    }
    fn over(self, other: i64) -> i64 {
        if other == 0 { self } else { self.wrapping_div(other) }
    }
    fn as_single(self) -> i64 {
        self
    }
    fn is_nan(self) -> bool {
        false
    }
    fn order(self, other: i64) -> Ordering {
        self.cmp(&other)
    }
    fn count(n: usize) -> i64 {
        n as i64
    }
}

impl Wide for f64 {
    const ZERO: f64 = 0.0;
    const ONE: f64 = 1.0;
    fn plus(self, other: f64) -> f64 {
        self + other
    }
    fn minus(self, other: f64) -> f64 {
        self - other
    }
    fn times(self, other: f64) -> f64 {
        self * other
    }
    fn over(self, other: f64) -> f64 {
        self / other
    }
    fn as_single(self) -> f64 {
        f64::from(self as f32)
    }
    fn is_nan(self) -> bool {
        f64::is_nan(self)
    }
    fn order(self, other: f64) -> Ordering {
        self.partial_cmp(&other).unwrap_or_else(|| self.is_nan().cmp(&other.is_nan()))
    }
    fn count(n: usize) -> f64 {
        n as f64
    }
}

impl Wide for Complex64 {
    const ZERO: Complex64 = Complex64::new(0.0, 0.0);
    const ONE: Complex64 = Complex64::new(1.0, 0.0);
    fn plus(self, other: Complex64) -> Complex64 {
        self + other
    }
    fn minus(self, other: Complex64) -> Complex64 {
        self - other
    }
    fn times(self, other: Complex64) -> Complex64 {
        self * other
    }
    fn over(self, other: Complex64) -> Complex64 {
        self / other
    }
    fn as_single(self) -> Complex64 {
        Complex64::new(self.re.as_single(), self.im.as_single())
    }
    fn is_nan(self) -> bool {
        self.re.is_nan() || self.im.is_nan()
    }
    fn order(self, other: Complex64) -> Ordering {
        self.re.order(other.re)
    }
    fn count(n: usize) -> Complex64 {
        Complex64::new(n as f64, 0.0)
    }
}

/// A tensor of a dtype from wide elements, each converted once.
pub fn store<W: Wide>(elements: &[W], sizes: &[i64], dtype: DType) -> Result<Tensor> {
    if dtype == W::DTYPE {
        return Tensor::from_vec(elements, sizes);
    }
    crate::dispatch_dtype!(dtype, T => {
        let converted = memory::collected(elements.iter().map(|x| T::from_scalar(x.to_scalar())))?;
        Tensor::from_vec::<T>(&converted, sizes)
    })
}

/// A number as a wide one.
pub fn wide<W: Wide>(value: Scalar) -> W {
    W::from_scalar(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nan_is_behind_everything_and_wins_extremes() {
        assert_eq!(f64::NAN.order(1.0), Ordering::Greater);
        assert_eq!(f64::NAN.order(f64::NAN), Ordering::Equal);
        assert!(1.0f64.least(f64::NAN).is_nan());
        assert!(f64::NAN.most(1.0).is_nan());
        assert_eq!(i64::MIN.over(-1), i64::MIN);
    }
}
