//! The modified Bessel functions of orders 0 and 1, the spherical one, and Airy's function.

use super::Rounding;
use std::f64::consts::{FRAC_PI_4, PI};

/// Spherical Bessel function of order 0: sin(x) / x.
pub fn spherical_j0(x: f64) -> f64 {
    if x.is_infinite() {
        return 0.0;
    }
    if x == 0.0 { 1.0 } else { x.sin() / x }
}

/// e^-|x| I0(x)
pub fn i0e(x: f64) -> f64 {
    let x = x.abs();
    if x <= 30.0 { series(x, 0) * (-x).exp() } else { large(x, 0.0) }
}

/// e^-|x| I1(x)
pub fn i1e(x: f64) -> f64 {
    let size = x.abs();
    let value = if size <= 30.0 { series(size, 1) * (-size).exp() } else { large(size, 4.0) };
    if x < 0.0 { -value } else { value }
}

/// Modified Bessel function of the first kind, order 0; infinite where e^x is.
pub fn i0(x: f64, round: Rounding) -> f64 {
    let x = x.abs();
    if x.is_infinite() {
        // PyTorch multiplies e^x by what goes to 0.
        return f64::NAN;
    }
    if round(x.exp()).is_infinite() {
        return f64::INFINITY;
    }
    if x <= 30.0 { series(x, 0) } else { (x / 2.0).exp() * large(x, 0.0) * (x / 2.0).exp() }
}

/// Modified Bessel function of the first kind, order 1; infinite where e^x is.
pub fn i1(x: f64, round: Rounding) -> f64 {
    let size = x.abs();
    if size.is_infinite() {
        return f64::NAN;
    }
    if round(size.exp()).is_infinite() {
        return f64::INFINITY.copysign(x);
    }
    let half = (size / 2.0).exp();
    let value = if size <= 30.0 { series(size, 1) } else { half * large(size, 4.0) * half };
    if x < 0.0 { -value } else { value }
}

/// Σ (x/2)^(2k + order) / (k! (k + order)!), all terms positive.
fn series(x: f64, order: u32) -> f64 {
    let quarter = x * x / 4.0;
    let mut term = if order == 0 { 1.0 } else { x / 2.0 };
    let mut sum = term;
    for k in 1..200 {
        term *= quarter / (f64::from(k) * f64::from(k + order));
        sum += term;
        if term < sum * 1e-18 {
            break;
        }
    }
    sum
}

/// The asymptotic series of the scaled function; `mu` is four times the order squared.
fn large(x: f64, mu: f64) -> f64 {
    let (mut term, mut sum) = (1.0, 1.0);
    for k in 1..30 {
        let odd = f64::from(2 * k - 1);
        let next: f64 = -term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
        if next.abs() > f64::abs(term) || next == 0.0 {
            break;
        }
        term = next;
        sum += term;
    }
    sum / (2.0 * PI * x).sqrt()
}

/// e^x K(x) of order 0 or 1 for x > 0: the trapezoidal rule on ∫ e^(-x (cosh t - 1)) cosh(order t) dt, which
/// converges faster than any power.
fn scaled_k(x: f64, order: u32) -> f64 {
    const STEP: f64 = 0.125;
    if x > 30.0 {
        // Σ (mu - 1²)(mu - 3²)… / (k! (8x)^k), where the integrand is too narrow for the step
        let mu = if order == 0 { 0.0 } else { 4.0 };
        let (mut term, mut sum) = (1.0, 1.0);
        for k in 1..30 {
            let odd = f64::from(2 * k - 1);
            let next: f64 = term * (mu - odd * odd) / (f64::from(k) * 8.0 * x);
            if next.abs() > f64::abs(term) {
                break;
            }
            term = next;
            sum += term;
        }
        return sum * (PI / (2.0 * x)).sqrt();
    }
    let mut sum = 0.5;
    for n in 1..8000 {
        let t = f64::from(n) * STEP;
        // cosh t - 1 without cancellation
        let half = (t / 2.0).sinh();
        let exponent = -2.0 * x * half * half;
        let term = if order == 0 { exponent.exp() } else { exponent.exp() * t.cosh() };
        if term.is_nan() || term < sum * 1e-18 {
            break;
        }
        sum += term;
    }
    sum * STEP
}

/// What K functions are without a sum: infinite at 0, NaN below.
fn k_corner(x: f64) -> Option<f64> {
    if x == 0.0 {
        Some(f64::INFINITY)
    } else if x < 0.0 || x.is_nan() {
        Some(f64::NAN)
    } else {
        None
    }
}

/// Modified Bessel function of the second kind, order 0.
pub fn k0(x: f64) -> f64 {
    k_corner(x).unwrap_or_else(|| scaled_k(x, 0) * (-x).exp())
}

/// Modified Bessel function of the second kind, order 1.
pub fn k1(x: f64) -> f64 {
    k_corner(x).unwrap_or_else(|| scaled_k(x, 1) * (-x).exp())
}

/// e^x K0(x)
pub fn k0_scaled(x: f64) -> f64 {
    k_corner(x).unwrap_or_else(|| scaled_k(x, 0))
}

/// e^x K1(x)
pub fn k1_scaled(x: f64) -> f64 {
    k_corner(x).unwrap_or_else(|| scaled_k(x, 1))
}

/// Where the power series of Airy's function gives way to the asymptotic ones.
const AIRY_LIMIT: f64 = 7.0;

/// Airy's function Ai. Far below 0 the phase is rounded as in PyTorch, as for [`waves`].
pub fn airy_ai(x: f64, round: Rounding) -> f64 {
    if x.is_infinite() {
        return f64::NAN;
    }
    if x.abs() <= AIRY_LIMIT || x.is_nan() {
        return airy_series(x);
    }
    let zeta = 2.0 / 3.0 * x.abs().powf(1.5);
    let root = PI.sqrt() * x.abs().powf(0.25);
    let terms = airy_terms(zeta);
    if x > 0.0 {
        let sum: f64 = terms.iter().enumerate().map(|(k, t)| if k % 2 == 0 { *t } else { -*t }).sum();
        return (-zeta).exp() / (2.0 * root) * sum;
    }
    // Even terms go with the sine, odd ones with the cosine, in alternating signs.
    let signed = |parity: usize| -> f64 {
        let part = terms.iter().skip(parity).step_by(2);
        part.enumerate().map(|(k, t)| if k % 2 == 0 { *t } else { -*t }).sum()
    };
    let length = round(round(round(-2.0 * x) * round((-x).sqrt())) / 3.0);
    let angle = round(length + round(FRAC_PI_4));
    (angle.sin() * signed(0) - angle.cos() * signed(1)) / root
}

/// Terms u_k / ζ^k of the asymptotic series, as long as they fall.
fn airy_terms(zeta: f64) -> Vec<f64> {
    let mut terms = vec![1.0];
    let mut last: f64 = 1.0;
    for k in 1..40 {
        let k = f64::from(k);
        let next =
            last * (6.0 * k - 5.0) * (6.0 * k - 3.0) * (6.0 * k - 1.0) / (216.0 * k * (2.0 * k - 1.0) * zeta);
        if next >= last || next < 1e-18 {
            break;
        }
        terms.push(next);
        last = next;
    }
    terms
}

/// Ai(0) f(x) + Ai'(0) g(x) by the power series of f and g.
fn airy_series(x: f64) -> f64 {
    let at_zero = 3f64.powf(-2.0 / 3.0) / libm::tgamma(2.0 / 3.0);
    let slope = -(3f64.powf(-1.0 / 3.0)) / libm::tgamma(1.0 / 3.0);
    let cube = x * x * x;
    let (mut f, mut g) = (1.0, x);
    let mut sum = at_zero * f + slope * g;
    for k in 1..100 {
        let n = f64::from(3 * k);
        f *= cube / ((n - 1.0) * n);
        g *= cube / (n * (n + 1.0));
        let term = at_zero * f + slope * g;
        sum += term;
        if at_zero * f.abs() + slope.abs() * g.abs() < 1e-18 {
            break;
        }
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(x: f64) -> f64 {
        x
    }

    #[test]
    fn known_values() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-11 * (1.0 + b.abs()), "{a} {b}");
        near(i0(1.0, exact), 1.266_065_877_752_008_4);
        near(i1(-2.0, exact), -1.590_636_854_637_329);
        near(i0e(50.0), 0.056_561_626_647_454_184);
        near(k0(1.0), 0.421_024_438_240_708_34);
        near(k1(0.1), 9.853_844_780_870_606);
        near(k0_scaled(100.0), 0.125_175_621_659_126_6);
        near(airy_ai(0.0, exact), 0.355_028_053_887_817_2);
        near(airy_ai(-10.0, exact), 0.040_241_238_486_441_92);
        near(airy_ai(2.0, exact), 0.034_924_130_423_274_39);
    }

    #[test]
    fn airys_series_agree_where_they_meet() {
        for x in [AIRY_LIMIT, -AIRY_LIMIT] {
            let inside = airy_series(x);
            let outside = airy_ai(x * (1.0 + 1e-15), exact);
            assert!((inside - outside).abs() < 1e-9, "{inside} {outside}");
        }
    }
}
