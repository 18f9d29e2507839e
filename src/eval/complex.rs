//! Trigonometric and hyperbolic functions of complex numbers and their inverses, with C99's values at infinities and on branch cuts,
//! where the sign of a zero decides. Formulas: Kahan, "Branch cuts for complex elementary functions".

use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, PI};

/// Hyperbolic sine.
pub fn sinh(z: Complex64) -> Complex64 {
    match (z.re, z.im) {
        (x, 0.0) => Complex64::new(x.sinh(), z.im),
        (x, y) if x.is_infinite() && !y.is_finite() => Complex64::new(x, f64::NAN),
        (0.0, y) if !y.is_finite() => Complex64::new(z.re, f64::NAN),
        (x, y) => Complex64::new(x.sinh() * y.cos(), x.cosh() * y.sin()),
    }
}

/// Hyperbolic cosine.
pub fn cosh(z: Complex64) -> Complex64 {
    match (z.re, z.im) {
        (x, 0.0) => Complex64::new(x.cosh(), if x.is_sign_negative() { -z.im } else { z.im }),
        (x, y) if x.is_infinite() && !y.is_finite() => Complex64::new(f64::INFINITY, f64::NAN),
        (0.0, y) if !y.is_finite() => Complex64::new(f64::NAN, 0.0),
        (x, y) => Complex64::new(x.cosh() * y.cos(), x.sinh() * y.sin()),
    }
}

/// Sine.
pub fn sin(z: Complex64) -> Complex64 {
    let w = sinh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// Cosine.
pub fn cos(z: Complex64) -> Complex64 {
    cosh(Complex64::new(-z.im, z.re))
}

/// Arc sine.
pub fn asin(z: Complex64) -> Complex64 {
    let w = asinh_of_positive(z.im.abs(), z.re.abs());
    Complex64::new(w.im.copysign(z.re), w.re.copysign(z.im))
}

/// Inverse hyperbolic sine.
pub fn asinh(z: Complex64) -> Complex64 {
    let w = asinh_of_positive(z.re.abs(), z.im.abs());
    Complex64::new(w.re.copysign(z.re), w.im.copysign(z.im))
}

/// Arc cosine.
pub fn acos(z: Complex64) -> Complex64 {
    let (re, im) = acos_above(z.re, z.im.abs());
    // The imaginary part has the sign that the argument's has not.
    Complex64::new(re, if z.im.is_sign_negative() { im } else { -im })
}

/// Inverse hyperbolic cosine.
pub fn acosh(z: Complex64) -> Complex64 {
    let (angle, length) = acos_above(z.re, z.im.abs());
    Complex64::new(length, angle.copysign(z.im))
}

/// Arc tangent.
pub fn atan(z: Complex64) -> Complex64 {
    let w = atanh_of_positive(z.im.abs(), z.re.abs());
    Complex64::new(w.im.copysign(z.re), w.re.copysign(z.im))
}

/// Inverse hyperbolic tangent.
pub fn atanh(z: Complex64) -> Complex64 {
    let w = atanh_of_positive(z.re.abs(), z.im.abs());
    Complex64::new(w.re.copysign(z.re), w.im.copysign(z.im))
}

/// Square roots of 1 - z and 1 + z for z = a + bi, b not negative. A zero below keeps its sign.
fn roots(a: f64, b: f64) -> (Complex64, Complex64) {
    (Complex64::new(1.0 - a, -b).sqrt(), Complex64::new(1.0 + a, b).sqrt())
}

/// asinh(x + yi) for parts that are not negative.
fn asinh_of_positive(x: f64, y: f64) -> Complex64 {
    let (re, im) = match (x.is_infinite(), y.is_infinite()) {
        (true, true) => (f64::INFINITY, FRAC_PI_4),
        (false, true) => (f64::INFINITY, if x.is_nan() { f64::NAN } else { FRAC_PI_2 }),
        (true, false) => (f64::INFINITY, if y.is_nan() { f64::NAN } else { 0.0 }),
        _ if x.is_nan() && y == 0.0 => (f64::NAN, 0.0),
        _ if x.is_nan() || y.is_nan() => (f64::NAN, f64::NAN),
        _ => {
            let (minus, plus) = roots(y, x);
            ((minus.conj() * plus).im.abs().asinh(), y.atan2((minus * plus).re))
        }
    };
    Complex64::new(re, im)
}

/// Real part and size of the imaginary part of acos(x + yi), y not negative.
fn acos_above(x: f64, y: f64) -> (f64, f64) {
    match (x.is_infinite(), y.is_infinite()) {
        (true, true) => (if x > 0.0 { FRAC_PI_4 } else { 3.0 * FRAC_PI_4 }, f64::INFINITY),
        (false, true) => (if x.is_nan() { f64::NAN } else { FRAC_PI_2 }, f64::INFINITY),
        (true, false) if y.is_nan() => (f64::NAN, f64::INFINITY),
        (true, false) => (if x > 0.0 { 0.0 } else { PI }, f64::INFINITY),
        _ if x == 0.0 && y.is_nan() => (FRAC_PI_2, f64::NAN),
        _ if x.is_nan() || y.is_nan() => (f64::NAN, f64::NAN),
        _ => {
            let (minus, plus) = roots(x, y);
            (2.0 * minus.re.atan2(plus.re), asinh_of_positive(y, x.abs()).re)
        }
    }
}

/// atanh(x + yi) for parts that are not negative.
fn atanh_of_positive(x: f64, y: f64) -> Complex64 {
    let (re, im) = match (x, y) {
        _ if y.is_infinite() => (0.0, FRAC_PI_2),
        _ if x.is_infinite() => (0.0, if y.is_nan() { f64::NAN } else { FRAC_PI_2 }),
        (0.0, y) if y.is_nan() => (0.0, f64::NAN),
        _ if x.is_nan() || y.is_nan() => (f64::NAN, f64::NAN),
        _ => {
            let re = 0.25 * (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p();
            (re, 0.5 * (2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y))
        }
    };
    Complex64::new(re, im)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Values of C99's annex G and of PyTorch.
    #[test]
    fn cuts_and_infinities() {
        let c = Complex64::new;
        let inf = f64::INFINITY;
        assert_eq!(acos(c(-inf, 0.0)), c(PI, -inf));
        assert_eq!(acos(c(0.0, -inf)), c(FRAC_PI_2, inf));
        assert_eq!(asinh(c(inf, inf)), c(inf, FRAC_PI_4));
        assert_eq!(atanh(c(0.0, inf)), c(0.0, FRAC_PI_2));
        assert_eq!(atan(c(-inf, 0.0)), c(-FRAC_PI_2, 0.0));
        assert_eq!(acosh(c(inf, -inf)).im, -FRAC_PI_4);
        assert_eq!((cosh(c(inf, inf)).re, sinh(c(-inf, inf)).re, sin(c(inf, inf)).im), (inf, -inf, inf));
        assert_eq!((cosh(c(0.0, inf)).im, sinh(c(inf, 0.0))), (0.0, c(inf, 0.0)));
        for sign in [1.0, -1.0] {
            // Above and below the cut beyond 1.
            let w = asin(c(2.0, 0.0 * sign));
            assert!((w - c(FRAC_PI_2, 1.3169578969248166 * sign)).norm() < 1e-15, "{w}");
            let w = atanh(c(2.0, 0.0 * sign));
            assert!((w - c(0.5493061443340548, FRAC_PI_2 * sign)).norm() < 1e-15, "{w}");
        }
        let z = c(0.3, -0.7);
        assert!((asin(z).sin() - z).norm() < 1e-15);
        assert!((acos(z).cos() - z).norm() < 1e-15);
        assert!((acosh(z).cosh() - z).norm() < 1e-15);
        assert!((atan(z).tan() - z).norm() < 1e-15);
        assert!(asin(c(1e-10, 1e-12)).re == 1e-10);
    }
}
