//! Functions related to the gamma function: digamma, the Hurwitz zeta function, incomplete gamma functions.

use std::f64::consts::PI;

/// Bernoulli numbers B2, B4, …, B20.
const BERNOULLI: [f64; 10] = [
    1.0 / 6.0,
    -1.0 / 30.0,
    1.0 / 42.0,
    -1.0 / 30.0,
    5.0 / 66.0,
    -691.0 / 2730.0,
    7.0 / 6.0,
    -3617.0 / 510.0,
    43867.0 / 798.0,
    -174611.0 / 330.0,
];

/// The logarithmic derivative of gamma; NaN at negative integers, an infinity of opposite sign at zeros.
pub fn digamma(x: f64) -> f64 {
    if x == 0.0 {
        return f64::INFINITY.copysign(-x);
    }
    if x < 0.0 {
        if x == x.trunc() {
            return f64::NAN;
        }
        // ψ(1 - x) - π / tan(πx), the angle reduced first
        return digamma(1.0 - x) - PI / (PI * (x % 1.0)).tan();
    }
    let (mut x, mut sum) = (x, 0.0);
    while x < 10.0 {
        sum -= 1.0 / x;
        x += 1.0;
    }
    let inverse_square = 1.0 / (x * x);
    let mut power = inverse_square;
    let mut tail = 0.0;
    for (k, b) in BERNOULLI.iter().enumerate().take(7) {
        tail += b / (2.0 * (k as f64 + 1.0)) * power;
        power *= inverse_square;
    }
    sum + x.ln() - 0.5 / x - tail
}

/// The most terms that are summed one by one; a farther negative `q` starts that much before zero.
const DIRECT_TERMS: f64 = 1e6;

/// Hurwitz's zeta function Σ (q + k)^-x, by Euler and Maclaurin.
pub fn zeta(x: f64, q: f64) -> f64 {
    if x == 1.0 {
        return f64::INFINITY;
    }
    if x < 1.0 || q.is_nan() {
        return f64::NAN;
    }
    if q <= 0.0 {
        if q == q.floor() {
            return f64::INFINITY;
        }
        if x != x.floor() {
            return f64::NAN;
        }
    }
    if x.is_nan() {
        return f64::NAN;
    }
    // Terms far below zero are below the rounding of those near it.
    let mut a = if q < -DIRECT_TERMS { q - q.floor() - DIRECT_TERMS } else { q };
    let mut sum = a.powf(-x);
    let mut count = 0;
    while count < 9 || a <= 9.0 {
        count += 1;
        a += 1.0;
        let term = a.powf(-x);
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 4.0 && a > 9.0 {
            return sum;
        }
    }
    let last = a.powf(-x);
    sum += last * a / (x - 1.0) - 0.5 * last;
    let (mut factor, mut power) = (x, last / a);
    for (k, b) in BERNOULLI.iter().enumerate() {
        let order = 2.0 * k as f64;
        let term = b * factor * power / factorial(2 * k as u32 + 2);
        sum += term;
        if (term / sum).abs() < f64::EPSILON / 4.0 {
            break;
        }
        factor *= (x + order + 1.0) * (x + order + 2.0);
        power /= a * a;
    }
    sum
}

fn factorial(n: u32) -> f64 {
    (1..=n).map(f64::from).product()
}

macro_rules! trigamma {
    ($name:ident, $type:ident, $pi:expr) => {
        /// The derivative of digamma by reflection and recurrence, in the operand's own precision: near poles
        /// float32 is as far off as PyTorch's.
        pub fn $name(x: $type) -> $type {
            let (mut x, mut sign, mut sum) = (x, 1.0, 0.0);
            if x < 0.5 {
                sign = -1.0;
                let sine = ($pi * x).sin();
                sum -= ($pi * $pi) / (sine * sine);
                x = 1.0 - x;
            }
            for _ in 0..6 {
                sum += 1.0 / (x * x);
                x += 1.0;
            }
            let s = 1.0 / (x * x);
            let tail = 1.0 + 1.0 / (2.0 * x) + s * (1.0 / 6.0 - s * (1.0 / 30.0 - s * (1.0 / 42.0)));
            sign * (sum + tail / x)
        }
    };
}

trigamma!(trigamma_single, f32, std::f32::consts::PI);
trigamma!(trigamma_double, f64, PI);

/// The n-th derivative of digamma, n >= 0.
pub fn polygamma(n: i64, x: f64) -> f64 {
    if n == 0 {
        return digamma(x);
    }
    if n == 1 {
        return trigamma_double(x);
    }
    let order = n as f64;
    let sign = if n % 2 == 0 { -1.0 } else { 1.0 };
    sign * libm::lgamma(order + 1.0).exp() * zeta(order + 1.0, x)
}

/// Most steps of a series or continued fraction.
const STEPS: u32 = 200_000;

/// The lower regularized incomplete gamma function P(a, x).
pub fn igamma(a: f64, x: f64) -> f64 {
    match corner(a, x) {
        Some(p) => p,
        None if x > 1.0 && x > a => 1.0 - upper_fraction(a, x),
        None => lower_series(a, x),
    }
}

/// The upper regularized incomplete gamma function Q(a, x).
pub fn igammac(a: f64, x: f64) -> f64 {
    match corner(a, x) {
        Some(p) => 1.0 - p,
        None if x > 1.0 && x > a => upper_fraction(a, x),
        None => 1.0 - lower_series(a, x),
    }
}

/// P where it needs no sum.
fn corner(a: f64, x: f64) -> Option<f64> {
    if a < 0.0 || x < 0.0 {
        return Some(f64::NAN);
    }
    if a == 0.0 {
        return Some(if x > 0.0 { 1.0 } else { f64::NAN });
    }
    if x == 0.0 {
        return Some(0.0);
    }
    if a.is_infinite() {
        return Some(if x.is_infinite() { f64::NAN } else { 0.0 });
    }
    if x.is_infinite() {
        return Some(1.0);
    }
    (a.is_nan() || x.is_nan()).then_some(f64::NAN)
}

/// x^a e^-x / Γ(a)
fn prefactor(a: f64, x: f64) -> f64 {
    (a * x.ln() - x - libm::lgamma(a)).exp()
}

fn lower_series(a: f64, x: f64) -> f64 {
    let (mut term, mut sum, mut next) = (1.0 / a, 1.0 / a, a);
    for _ in 0..STEPS {
        next += 1.0;
        term *= x / next;
        sum += term;
        if term <= sum * f64::EPSILON / 4.0 {
            break;
        }
    }
    sum * prefactor(a, x)
}

/// Lentz's evaluation of the continued fraction of Q.
fn upper_fraction(a: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    let guard = |v: f64| if v.abs() < TINY { TINY } else { v };
    let mut b = x + 1.0 - a;
    let mut c = 1.0 / TINY;
    let mut d = 1.0 / guard(b);
    let mut fraction = d;
    for i in 1..STEPS {
        let i = f64::from(i);
        let numerator = -i * (i - a);
        b += 2.0;
        d = 1.0 / guard(numerator * d + b);
        c = guard(b + numerator / c);
        let ratio = d * c;
        fraction *= ratio;
        if (ratio - 1.0).abs() < f64::EPSILON {
            break;
        }
    }
    fraction * prefactor(a, x)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-12 * (1.0 + b.abs()), "{a} {b}");
        near(digamma(1.0), -0.577_215_664_901_532_9);
        near(digamma(-1.5), 0.703_156_640_645_243_2);
        near(zeta(2.0, 1.0), PI * PI / 6.0);
        near(polygamma(2, 1.0), -2.404_113_806_319_188_6);
        near(igamma(0.5, 1.0), libm::erf(1.0));
        near(igammac(3.0, 10.0), 61.0 * (-10f64).exp());
        assert!(digamma(-3.0).is_nan() && digamma(0.0) == f64::NEG_INFINITY);
    }
}
