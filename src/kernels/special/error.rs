//! Functions related to the error function: scaled complement, inverses, the normal distribution.

use super::Rounding;
use std::f64::consts::{FRAC_1_SQRT_2, LN_2, PI, SQRT_2};

/// e^(x²) erfc(x). Below 0 the square is rounded first: the power makes much of its last bit.
pub fn erfcx(x: f64, round: Rounding) -> f64 {
    if x < 0.0 {
        let power = 2.0 * round(x * x).exp();
        return if x < -6.1 { power } else { power - scaled_complement(-x) };
    }
    scaled_complement(x)
}

fn scaled_complement(x: f64) -> f64 {
    if x < 25.0 {
        // The factor overflows only where the result does.
        return (x * x).exp() * libm::erfc(x);
    }
    // 1 / (x √π) (1 - 1/(2x²) + 3/(4x⁴) - …)
    let step = 0.5 / (x * x);
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..8 {
        term *= -step * f64::from(2 * k - 1);
        sum += term;
    }
    sum / (x * PI.sqrt())
}

/// The normal distribution's logarithm.
pub fn log_ndtr(x: f64) -> f64 {
    let t = x * FRAC_1_SQRT_2;
    if x < -1.0 { (scaled_complement(-t) / 2.0).ln() - t * t } else { (-libm::erfc(t) / 2.0).ln_1p() }
}

/// The normal distribution's inverse: NaN outside of [0, 1].
pub fn ndtri(p: f64) -> f64 {
    if !(0.0..=1.0).contains(&p) {
        return f64::NAN;
    }
    if p == 0.0 || p == 1.0 {
        return if p == 0.0 { f64::NEG_INFINITY } else { f64::INFINITY };
    }
    if p > 0.5 { -lower_quantile((1.0 - p).ln()) } else { lower_quantile(p.ln()) }
}

/// x <= 0 with log_ndtr(x) = `log_p`, for log_p <= ln 1/2. The function is concave and the start lies below the
/// root, so that Newton's steps climb to it.
fn lower_quantile(log_p: f64) -> f64 {
    let mut x = -(-2.0 * (log_p + LN_2)).max(0.0).sqrt();
    for _ in 0..100 {
        // The ratio density / distribution, without underflow: √(2/π) / erfcx(-x/√2).
        let slope = (2.0 / PI).sqrt() / scaled_complement(-x * FRAC_1_SQRT_2);
        let step = (log_ndtr(x) - log_p) / slope;
        x -= step;
        if step.abs() <= 1e-15 * x.abs() {
            break;
        }
    }
    x
}

/// The inverse of erf: NaN outside of [-1, 1].
pub fn erfinv(y: f64) -> f64 {
    let size = y.abs();
    if size.is_nan() || size > 1.0 {
        return f64::NAN;
    }
    if size == 1.0 {
        return f64::INFINITY.copysign(y);
    }
    if size >= 0.5 {
        // erfc(x) = 1 - |y| = 2 ndtr(-√2 x)
        let x = -lower_quantile(((1.0 - size) / 2.0).ln()) / SQRT_2;
        return x.copysign(y);
    }
    let half_root = PI.sqrt() / 2.0;
    let mut x = y * half_root;
    for _ in 0..20 {
        let step = (libm::erf(x) - y) * half_root * (x * x).exp();
        x -= step;
        if step.abs() <= 1e-16 * x.abs() {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inverses_undo() {
        for x in [-6.0, -2.5, -0.3, 0.0, 1e-9, 0.4, 1.7, 4.0] {
            let p = 0.5 * libm::erfc(-x * FRAC_1_SQRT_2);
            assert!((ndtri(p) - x).abs() < 1e-9 * (1.0 + x.abs()), "ndtri {x} {}", ndtri(p));
            let y = libm::erf(x);
            assert!(x.abs() > 3.0 || (erfinv(y) - x).abs() < 1e-12 * (1.0 + x.abs()), "erfinv {x}");
        }
        assert!(ndtri(1e-300) < -37.0 && ndtri(-0.1).is_nan());
    }
}
