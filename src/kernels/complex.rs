//! Functions of complex numbers and their inverses, exact to a few units in the last place everywhere: near the branch points, for
//! numbers whose squares overflow, with infinities, and with the sign of zero on the cuts (Kahan, Branch cuts for
//! complex elementary functions, 1987; special values as in annex G of the C standard). Knows no op.

use num_complex::Complex64;
use std::f64::consts::{FRAC_PI_2, FRAC_PI_4, LN_2, PI};

/// From here on `1 + z` is `z`, and sums of squares may overflow.
const LARGE: f64 = f64::MAX / 4.0;
/// Above its square root no `1` matters beside `z * z`.
const LARGE_ROOT: f64 = 6.703_903_964_971_298e153;

/// sqrt z, without overflow and with the sign of zero.
pub fn sqrt(z: Complex64) -> Complex64 {
    let (x, y) = (z.re.abs(), z.im.abs());
    if y.is_infinite() {
        return Complex64::new(y, z.im);
    }
    if x.is_nan() || y.is_nan() && x.is_finite() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    if x.is_infinite() {
        let rest = if y.is_nan() { y } else { 0.0 };
        return match z.re > 0.0 {
            true => Complex64::new(x, rest.copysign(z.im)),
            false => Complex64::new(rest, x.copysign(z.im)),
        };
    }
    if x == 0.0 && y == 0.0 {
        return Complex64::new(0.0, z.im);
    }
    // Halving (or lifting tiny numbers) keeps the sum below from overflowing (or from vanishing).
    let scale: f64 = if x < 1e-290 && y < 1e-290 { 2f64.powi(-106) } else { 4.0 };
    let (x, y) = (x / scale, y / scale);
    let long = ((x + x.hypot(y)) / 2.0).sqrt() * scale.sqrt();
    let short = y * scale / (2.0 * long);
    if z.re >= 0.0 {
        Complex64::new(long, short.copysign(z.im))
    } else {
        Complex64::new(short, long.copysign(z.im))
    }
}

/// `ln |z|` plus `ln 2` for numbers from `LARGE` on.
fn log_twice(z: Complex64) -> f64 {
    (z.re / 2.0).hypot(z.im / 2.0).ln() + 2.0 * LN_2
}

/// asinh z.
pub fn asinh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if !x.is_finite() || !y.is_finite() {
        let (re, im) = match (x.is_nan(), y.is_nan()) {
            (false, false) if x.is_finite() => (f64::INFINITY, FRAC_PI_2),
            (false, false) => (f64::INFINITY, if y.is_finite() { 0.0 } else { FRAC_PI_4 }),
            (false, true) if x.is_infinite() => (f64::INFINITY, f64::NAN),
            (true, false) if y.is_infinite() => (f64::INFINITY, f64::NAN),
            (true, false) if y == 0.0 => (f64::NAN, 0.0),
            _ => (f64::NAN, f64::NAN),
        };
        return Complex64::new(re.copysign(x), im.copysign(y));
    }
    if x.abs() > LARGE || y.abs() > LARGE {
        return Complex64::new(log_twice(z).copysign(x), y.atan2(x.abs()));
    }
    let (a, b) = (sqrt(Complex64::new(1.0 + y, -x)), sqrt(Complex64::new(1.0 - y, x)));
    Complex64::new(libm::asinh(a.re * b.im - b.re * a.im), y.atan2(a.re * b.re - a.im * b.im))
}

/// asin z = -i asinh(i z).
pub fn asin(z: Complex64) -> Complex64 {
    let w = asinh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// The angle of acos and acosh of a number that is not finite.
fn angle_at_infinity(x: f64, y: f64) -> f64 {
    match (x.is_infinite(), y.is_infinite()) {
        (true, true) if x > 0.0 => FRAC_PI_4,
        (true, true) => 3.0 * FRAC_PI_4,
        (true, false) if y.is_nan() => f64::NAN,
        (true, false) if x > 0.0 => 0.0,
        (true, false) => PI,
        (false, true) if !x.is_nan() => FRAC_PI_2,
        _ => f64::NAN,
    }
}

/// acos z.
pub fn acos(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() {
        return Complex64::new(angle_at_infinity(x, y), f64::INFINITY.copysign(-y));
    }
    if x.is_nan() || y.is_nan() {
        return Complex64::new(if x == 0.0 { FRAC_PI_2 } else { f64::NAN }, f64::NAN);
    }
    if x.abs() > LARGE || y.abs() > LARGE {
        return Complex64::new(y.abs().atan2(x), log_twice(z).copysign(-y));
    }
    let (a, b) = (sqrt(Complex64::new(1.0 - x, -y)), sqrt(Complex64::new(1.0 + x, y)));
    Complex64::new(2.0 * a.re.atan2(b.re), libm::asinh(b.re * a.im - b.im * a.re))
}

/// acosh z.
pub fn acosh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_infinite() || y.is_infinite() {
        return Complex64::new(f64::INFINITY, angle_at_infinity(x, y).copysign(y));
    }
    if x.is_nan() || y.is_nan() {
        return Complex64::new(f64::NAN, f64::NAN);
    }
    if x.abs() > LARGE || y.abs() > LARGE {
        return Complex64::new(log_twice(z), y.atan2(x));
    }
    let (a, b) = (sqrt(Complex64::new(x - 1.0, y)), sqrt(Complex64::new(x + 1.0, y)));
    Complex64::new(libm::asinh(a.re * b.re + a.im * b.im), 2.0 * a.im.atan2(b.re))
}

/// atanh z.
pub fn atanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if x.is_sign_negative() && !x.is_nan() {
        return -atanh(-z);
    }
    if !x.is_finite() || !y.is_finite() {
        let re = if x.is_nan() && !y.is_infinite() || x.is_finite() && y.is_nan() && x != 0.0 {
            f64::NAN
        } else {
            0f64.copysign(x)
        };
        let im = if y.is_nan() || x.is_nan() && !y.is_infinite() { f64::NAN } else { FRAC_PI_2 };
        return Complex64::new(re, im.copysign(y));
    }
    if x > LARGE_ROOT || y.abs() > LARGE_ROOT {
        let half = (x / 2.0).hypot(y / 2.0);
        return Complex64::new(x / 4.0 / half / half, FRAC_PI_2.copysign(y));
    }
    if x == 1.0 && y.abs() < 1e-160 {
        let im = if y == 0.0 { y } else { 2f64.atan2(-y.abs()).copysign(y) / 2.0 };
        let re = if y == 0.0 { f64::INFINITY } else { -(y.abs() / 4.0).ln() / 2.0 };
        return Complex64::new(re, im);
    }
    let re = (4.0 * x / ((1.0 - x) * (1.0 - x) + y * y)).ln_1p() / 4.0;
    Complex64::new(re, -(-2.0 * y).atan2((1.0 - x) * (1.0 + x) - y * y) / 2.0)
}

/// atan z = -i atanh(i z).
pub fn atan(z: Complex64) -> Complex64 {
    let w = atanh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// sinh z.
pub fn sinh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return Complex64::new(x.sinh(), y);
    }
    if !y.is_finite() && (x == 0.0 || x.is_infinite()) {
        return Complex64::new(x, f64::NAN);
    }
    Complex64::new(x.sinh() * y.cos(), x.cosh() * y.sin())
}

/// cosh z.
pub fn cosh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        // On the real axis the imaginary part is a zero, for NaN and infinities, too.
        return Complex64::new(x.cosh(), if x.is_sign_negative() { -y } else { y });
    }
    if !y.is_finite() && x == 0.0 {
        return Complex64::new(f64::NAN, 0.0);
    }
    if !y.is_finite() && x.is_infinite() {
        return Complex64::new(f64::INFINITY, f64::NAN);
    }
    Complex64::new(x.cosh() * y.cos(), x.sinh() * y.sin())
}

/// tanh z.
pub fn tanh(z: Complex64) -> Complex64 {
    let (x, y) = (z.re, z.im);
    if y == 0.0 {
        return Complex64::new(x.tanh(), y);
    }
    if x.abs() > 22.0 && y.is_finite() {
        let im = 4.0 * y.sin() * y.cos() * (-2.0 * x.abs()).exp();
        return Complex64::new(1f64.copysign(x), im);
    }
    if x.is_infinite() {
        return Complex64::new(1f64.copysign(x), 0f64.copysign(y));
    }
    if x == 0.0 && !y.is_finite() {
        return Complex64::new(x, f64::NAN);
    }
    let (tangent, hyperbolic) = (y.tan(), x.tanh());
    let (cosh, both) = (1.0 / x.cosh(), tangent * hyperbolic);
    let scale = 1.0 + both * both;
    Complex64::new(hyperbolic * (1.0 + tangent * tangent) / scale, tangent * cosh * cosh / scale)
}

/// Sine, cosine and tangent are the hyperbolic functions of `i z`.
pub fn sin(z: Complex64) -> Complex64 {
    let w = sinh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

/// cos z.
pub fn cos(z: Complex64) -> Complex64 {
    cosh(Complex64::new(-z.im, z.re))
}

/// tan z.
pub fn tan(z: Complex64) -> Complex64 {
    let w = tanh(Complex64::new(-z.im, z.re));
    Complex64::new(w.im, -w.re)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions and their inverses meet, over scales from the least to the largest numbers.
    #[test]
    fn inverses_give_the_argument_back() {
        let parts = [1e-300, 1e-8, 0.3, 1.0, 2.5, -0.7, -1e-5];
        for (x, y) in parts.iter().flat_map(|x| parts.iter().map(move |y| (*x, *y))) {
            let z = Complex64::new(x, y);
            let close = |w: Complex64| assert!((w - z).norm() <= 1e-12 * z.norm().max(1.0), "{z} became {w}");
            close(asin(z).sin());
            close(asinh(z).sinh());
            close(acos(z).cos());
            close(acosh(z).cosh());
            close(atan(z).tan());
            close(atanh(z).tanh());
        }
    }

    #[test]
    fn squares_do_not_overflow() {
        let z = asinh(Complex64::new(1e200, 1e200));
        assert!((z.re - 461.556_739_369_649_05).abs() < 1e-9 && (z.im - FRAC_PI_4).abs() < 1e-12);
        let z = acos(Complex64::new(f64::MAX, -f64::MAX));
        assert!((z.re - FRAC_PI_4).abs() < 1e-12 && z.im.is_finite() && z.im > 0.0);
    }

    #[test]
    fn the_sign_of_zero_says_on_which_side_of_a_cut_a_number_lies() {
        assert_eq!(acosh(Complex64::new(0.0, -0.0)).im, -FRAC_PI_2);
        assert!(asin(Complex64::new(2.0, -0.0)).im < 0.0 && asin(Complex64::new(2.0, 0.0)).im > 0.0);
        assert_eq!(acos(Complex64::new(f64::NEG_INFINITY, 2.0)), Complex64::new(PI, f64::NEG_INFINITY));
    }

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
