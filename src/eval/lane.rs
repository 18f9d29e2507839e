//! The primitives on single numbers: what each means for floats, integers, bools and complex numbers.
//!
//! Complex numbers of both widths are computed in float64 and rounded, so that one definition serves both.

use crate::dialects::scalar::Unary;
use crate::kernels::complex;
use num_complex::Complex64;

/// float32 and float64.
#[allow(missing_docs, reason = "each is the primitive of its name")]
pub trait Real: Copy + PartialOrd + 'static {
    fn unary(self, op: Unary) -> Option<Self>;
    fn rem(self, y: Self) -> Self;
    fn pow(self, y: Self) -> Self;
    fn atan2(self, y: Self) -> Self;
    fn min_nan(self, y: Self) -> Self;
    fn max_nan(self, y: Self) -> Self;
    fn copysign(self, y: Self) -> Self;
    fn hypot(self, y: Self) -> Self;
    fn nextafter(self, y: Self) -> Self;
}

macro_rules! real {
    ($type:ident, $erf:ident, $erfc:ident, $lgamma:ident, $asinh:ident, $acosh:ident, $atanh:ident, $next:ident) => {
        impl Real for $type {
            #[inline(always)]
            fn unary(self, op: Unary) -> Option<$type> {
                let x = self;
                Some(match op {
                    Unary::Neg => -x,
                    Unary::Abs => x.abs(),
                    Unary::Exp => x.exp(),
                    Unary::Exp2 => x.exp2(),
                    Unary::Expm1 => x.exp_m1(),
                    Unary::Log => x.ln(),
                    Unary::Log2 => x.log2(),
                    Unary::Log10 => x.log10(),
                    Unary::Log1p => x.ln_1p(),
                    Unary::Sin => x.sin(),
                    Unary::Cos => x.cos(),
                    Unary::Tan => x.tan(),
                    Unary::Asin => x.asin(),
                    Unary::Acos => x.acos(),
                    Unary::Atan => x.atan(),
                    Unary::Sinh => x.sinh(),
                    Unary::Cosh => x.cosh(),
                    Unary::Tanh => x.tanh(),
                    Unary::Asinh => libm::$asinh(x),
                    // libm gives -inf for large negative numbers.
                    Unary::Acosh => {
                        if x < 1.0 {
                            Self::NAN
                        } else {
                            libm::$acosh(x)
                        }
                    }
                    Unary::Atanh => libm::$atanh(x),
                    Unary::Sqrt => x.sqrt(),
                    Unary::Rsqrt => 1.0 / x.sqrt(),
                    Unary::Erf => libm::$erf(x),
                    Unary::Erfc => libm::$erfc(x),
                    Unary::Lgamma => libm::$lgamma(x),
                    Unary::Floor => x.floor(),
                    Unary::Ceil => x.ceil(),
                    Unary::Round => x.round_ties_even(),
                    Unary::Trunc => x.trunc(),
                    Unary::Real | Unary::Conj => x,
                    Unary::Imag => 0.0,
                    Unary::Not => return None,
                })
            }
            #[inline(always)]
            fn rem(self, y: $type) -> $type {
                self % y
            }
            #[inline(always)]
            fn pow(self, y: $type) -> $type {
                self.powf(y)
            }
            #[inline(always)]
            fn atan2(self, y: $type) -> $type {
                <$type>::atan2(self, y)
            }
            #[inline(always)]
            fn min_nan(self, y: $type) -> $type {
                if self.is_nan() || self <= y { self } else { y }
            }
            #[inline(always)]
            fn max_nan(self, y: $type) -> $type {
                if self.is_nan() || self >= y { self } else { y }
            }
            #[inline(always)]
            fn copysign(self, y: $type) -> $type {
                <$type>::copysign(self, y)
            }
            #[inline(always)]
            fn hypot(self, y: $type) -> $type {
                <$type>::hypot(self, y)
            }
            #[inline(always)]
            fn nextafter(self, y: $type) -> $type {
                libm::$next(self, y)
            }
        }
    };
}

real!(f32, erff, erfcf, lgammaf, asinhf, acoshf, atanhf, nextafterf);
real!(f64, erf, erfc, lgamma, asinh, acosh, atanh, nextafter);

/// The integers. All wrap.
#[allow(missing_docs, reason = "each is the primitive of its name")]
pub trait Int: Copy + Ord + 'static {
    fn div(self, y: Self) -> Self;
    fn rem(self, y: Self) -> Self;
    fn pow(self, y: Self) -> Self;
    fn shl(self, y: Self) -> Self;
    fn shr(self, y: Self) -> Self;
    fn abs(self) -> Self;
}

macro_rules! int {
    ($type:ident, $abs:expr, $negative:expr) => {
        impl Int for $type {
            #[inline(always)]
            fn div(self, y: $type) -> $type {
                if y == 0 { 0 } else { self.wrapping_div(y) }
            }
            #[inline(always)]
            fn rem(self, y: $type) -> $type {
                if y == 0 { 0 } else { self.wrapping_rem(y) }
            }
            fn pow(self, y: $type) -> $type {
                let negative: fn($type) -> bool = $negative;
                if negative(y) {
                    let minus_one = (0 as $type).wrapping_sub(1);
                    return match self {
                        1 => 1,
                        x if x == minus_one => {
                            if y % 2 == 0 {
                                1
                            } else {
                                minus_one
                            }
                        }
                        _ => 0,
                    };
                }
                let (mut base, mut exponent, mut result) = (self, y, 1 as $type);
                while exponent != 0 {
                    if exponent & 1 == 1 {
                        result = result.wrapping_mul(base);
                    }
                    base = base.wrapping_mul(base);
                    exponent >>= 1;
                }
                result
            }
            #[inline(always)]
            fn shl(self, y: $type) -> $type {
                match u32::try_from(y) {
                    Ok(n) if n < $type::BITS => self << n,
                    _ => 0,
                }
            }
            #[inline(always)]
            fn shr(self, y: $type) -> $type {
                match u32::try_from(y) {
                    Ok(n) if n < $type::BITS => self >> n,
                    _ if $type::MIN == 0 => 0,
                    _ => self >> ($type::BITS - 1),
                }
            }
            #[inline(always)]
            fn abs(self) -> $type {
                let abs: fn($type) -> $type = $abs;
                abs(self)
            }
        }
    };
}

int!(u8, |x| x, |_| false);
int!(u16, |x| x, |_| false);
int!(u32, |x| x, |_| false);
int!(u64, |x| x, |_| false);
int!(i8, i8::wrapping_abs, |x| x < 0);
int!(i16, i16::wrapping_abs, |x| x < 0);
int!(i32, i32::wrapping_abs, |x| x < 0);
int!(i64, i64::wrapping_abs, |x| x < 0);

/// A unary primitive on a complex number; None where it has none. `round` rounds to the precision of the parts. `Abs`, `Real` and `Imag`, which give a real
/// number, give it as the real part.
pub fn complex_unary(op: Unary, z: Complex64, round: fn(f64) -> f64) -> Option<Complex64> {
    let real = |x: f64| Complex64::new(x, 0.0);
    Some(match op {
        Unary::Neg => -z,
        Unary::Abs => real(z.re.hypot(z.im)),
        Unary::Exp => exp(z),
        Unary::Exp2 => exp(z * std::f64::consts::LN_2),
        Unary::Expm1 => {
            let half = (z.im / 2.0).sin();
            Complex64::new(z.re.exp_m1() * z.im.cos() - 2.0 * half * half, round(z.re.exp()) * z.im.sin())
        }
        Unary::Log => z.ln(),
        Unary::Log2 => logarithm(z, std::f64::consts::LN_2, round),
        Unary::Log10 => logarithm(z, std::f64::consts::LN_10, round),
        Unary::Log1p => {
            let angle = z.im.atan2(1.0 + z.re);
            if z.re.hypot(z.im) < 0.5 {
                let squared = z.re * (2.0 + z.re) + z.im * z.im;
                return Some(Complex64::new(0.5 * squared.ln_1p(), angle));
            }
            Complex64::new((1.0 + z.re).hypot(z.im).ln(), angle)
        }
        Unary::Sin => complex::sin(z),
        Unary::Cos => complex::cos(z),
        Unary::Tan => complex::tan(z),
        Unary::Asin => complex::asin(z),
        Unary::Acos => complex::acos(z),
        Unary::Atan => complex::atan(z),
        Unary::Sinh => complex::sinh(z),
        Unary::Cosh => complex::cosh(z),
        Unary::Tanh => complex::tanh(z),
        Unary::Asinh => complex::asinh(z),
        Unary::Acosh => complex::acosh(z),
        Unary::Atanh => complex::atanh(z),
        Unary::Sqrt => complex::sqrt(z),
        Unary::Rsqrt => complex_div(real(1.0), complex::sqrt(z)),
        Unary::Real => real(z.re),
        Unary::Imag => real(z.im),
        Unary::Conj => z.conj(),
        Unary::Not
        | Unary::Erf
        | Unary::Erfc
        | Unary::Lgamma
        | Unary::Floor
        | Unary::Ceil
        | Unary::Round
        | Unary::Trunc => return None,
    })
}

/// The logarithm to another base, whose own logarithm is given; every step rounded, as PyTorch's.
fn logarithm(z: Complex64, base: f64, round: fn(f64) -> f64) -> Complex64 {
    let (log, base) = (z.ln(), round(base));
    Complex64::new(round(log.re) / base, round(log.im) / base)
}

/// e^z without 0 * inf on the real axis.
fn exp(z: Complex64) -> Complex64 {
    if z.im == 0.0 { Complex64::new(z.re.exp(), z.im) } else { z.exp() }
}

/// Division that does not overflow on the way (Smith's method).
pub fn complex_div(a: Complex64, b: Complex64) -> Complex64 {
    if b.re == 0.0 && b.im == 0.0 {
        let infinity = f64::INFINITY.copysign(b.re);
        Complex64::new(infinity * a.re, infinity * a.im)
    } else if b.re.abs() >= b.im.abs() {
        let ratio = b.im / b.re;
        let scale = 1.0 / (b.re + b.im * ratio);
        Complex64::new((a.re + a.im * ratio) * scale, (a.im - a.re * ratio) * scale)
    } else {
        let ratio = b.re / b.im;
        let scale = 1.0 / (b.re * ratio + b.im);
        Complex64::new((a.re * ratio + a.im) * scale, (a.im * ratio - a.re) * scale)
    }
}

/// e^(b ln a), every step rounded: what large results lose by the steps is larger than what comparisons allow. As in
/// PyTorch 0^0 is not a number.
pub fn complex_pow(a: Complex64, b: Complex64, round: fn(f64) -> f64) -> Complex64 {
    let log = round(round(a.re.hypot(a.im)).ln());
    let angle = round(a.im.atan2(a.re));
    let re = round(round(b.re * log) - round(b.im * angle));
    let im = round(round(b.re * angle) + round(b.im * log));
    let size = re.exp();
    match (re, im) {
        _ if re == f64::NEG_INFINITY => Complex64::new(0.0, 0.0),
        (_, 0.0) => Complex64::new(size, im),
        _ if re == f64::INFINITY && !im.is_finite() => Complex64::new(re, f64::NAN),
        _ => {
            // In single precision the factor may overflow where the parts do not.
            let size = if round(size).is_finite() { round(size) } else { size };
            Complex64::new(size * round(im.cos()), size * round(im.sin()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_corner_cases_are_total() {
        assert_eq!(Int::div(i64::MIN, -1), i64::MIN);
        assert_eq!(Int::rem(5i8, 0), 0);
        assert_eq!(Int::pow(-1i64, -3), -1);
        assert_eq!(Int::pow(3i64, 50), 6048575297968530377);
        assert_eq!((Int::shl(5i8, -1), Int::shr(-5i8, 9), Int::shr(127i8, 3)), (0, -1, 15));
        assert_eq!(Int::abs(i8::MIN), i8::MIN);
    }
}
