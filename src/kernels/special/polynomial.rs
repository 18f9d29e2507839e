//! Orthogonal polynomials by their recurrences, in the precision of the operands, since a recurrence carries its
//! rounding along; products are fused into sums as in PyTorch's vector code. The degree is truncated to an integer; a negative one gives 0.

/// The families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// Chebyshev, first kind
    ChebyshevT,
    /// Chebyshev, second kind
    ChebyshevU,
    /// Chebyshev, third kind
    ChebyshevV,
    /// Chebyshev, fourth kind
    ChebyshevW,
    /// Hermite, physicist's
    HermiteH,
    /// Hermite, probabilist's
    HermiteHe,
    /// Laguerre
    LaguerreL,
    /// Legendre
    LegendreP,
}

/// Degrees above it are refused where every degree is a step of a loop.
pub const MAX_DEGREE: i64 = 10_000_000;

macro_rules! polynomials {
    ($name:ident, $type:ident, $hermite_limit:expr) => {
        /// The polynomials in one precision. `shifted` takes 2x - 1 for x.
        pub mod $name {
            use super::Family;

            /// The value of degree `n` at `x`.
            pub fn value(family: Family, shifted: bool, x: $type, n: i64) -> $type {
                if n < 0 {
                    return 0.0;
                }
                match family {
                    Family::HermiteH => hermite(x + x, 2.0, n),
                    Family::HermiteHe => hermite(x, 1.0, n),
                    Family::LaguerreL => laguerre(x, n),
                    Family::LegendreP => legendre(x, n),
                    _ => chebyshev(family, if shifted { x + x - 1.0 } else { x }, shifted, n),
                }
            }

            fn hermite(x: $type, scale: $type, n: i64) -> $type {
                if n > $hermite_limit {
                    return $type::NAN;
                }
                let (mut p, mut q) = (1.0, x);
                if n == 0 {
                    return p;
                }
                for k in 1..n {
                    (p, q) = (q, x.mul_add(q, -(scale * k as $type * p)));
                }
                q
            }

            fn laguerre(x: $type, n: i64) -> $type {
                if x == 0.0 || n == 0 {
                    return 1.0;
                }
                let (mut p, mut q): ($type, $type) = (1.0, 1.0 - x);
                for k in 1..n {
                    if q.is_nan() {
                        break;
                    }
                    let k = k as $type;
                    (p, q) = (q, (k + k + (1.0 - x)).mul_add(q, -(k * p)) / (k + 1.0));
                }
                q
            }

            fn legendre(x: $type, n: i64) -> $type {
                if x.abs() == 1.0 {
                    return if x > 0.0 || n % 2 == 0 { 1.0 } else { -1.0 };
                }
                if n == 0 {
                    return 1.0;
                }
                let (mut p, mut q) = (1.0, x);
                for k in 1..n {
                    if q.is_nan() {
                        break;
                    }
                    let k = k as $type;
                    (p, q) = (q, ((k + k + 1.0) * x).mul_add(q, -(k * p)) / (k + 1.0));
                }
                q
            }

            /// Closed forms at the ends and, for high degrees, inside; the recurrence elsewhere.
            fn chebyshev(family: Family, x: $type, shifted: bool, n: i64) -> $type {
                let even = n % 2 == 0;
                let degree = n as $type;
                let odd_count = degree + degree + 1.0;
                if x.abs() == 1.0 {
                    let alternate = |v: $type| if even { v } else { -v };
                    return match (family, x > 0.0) {
                        (Family::ChebyshevU, true) => degree + 1.0,
                        (Family::ChebyshevU, false) => alternate(degree + 1.0),
                        (Family::ChebyshevV, false) => alternate(odd_count),
                        (Family::ChebyshevW, true) => odd_count,
                        (_, true) => 1.0,
                        (_, false) => alternate(1.0),
                    };
                }
                let closed_above = match (family, shifted) {
                    (Family::ChebyshevT, _) | (Family::ChebyshevU | Family::ChebyshevV, true) => 6,
                    (Family::ChebyshevW, true) => 4,
                    _ => 8,
                };
                if n > closed_above && x.abs() < 1.0 {
                    let angle = x.acos();
                    return match family {
                        Family::ChebyshevT => (degree * angle).cos(),
                        Family::ChebyshevU => ((degree + 1.0) * angle).sin() / angle.sin(),
                        Family::ChebyshevV => ((degree + 0.5) * angle).cos() / (angle / 2.0).cos(),
                        _ => ((degree + 0.5) * angle).sin() / (angle / 2.0).sin(),
                    };
                }
                let (mut p, mut q) = match family {
                    Family::ChebyshevT => (1.0, x),
                    Family::ChebyshevV => (1.0, x + x - 1.0),
                    Family::ChebyshevW => (1.0, x + x + 1.0),
                    _ => (1.0, x + x),
                };
                if n == 0 {
                    return p;
                }
                for _ in 1..n {
                    if q.is_nan() {
                        break;
                    }
                    (p, q) = (q, (x + x).mul_add(q, -p));
                }
                q
            }
        }
    };
}

polynomials!(single, f32, 128);
polynomials!(double, f64, 512);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn low_degrees() {
        let at = |family, n| double::value(family, false, 0.5, n);
        assert_eq!(at(Family::ChebyshevT, 3), -1.0);
        assert_eq!(at(Family::ChebyshevU, 2), 0.0);
        assert_eq!(at(Family::HermiteH, 2), -1.0);
        assert_eq!(at(Family::HermiteHe, 3), -1.375);
        assert_eq!(at(Family::LegendreP, 2), -0.125);
        assert_eq!(at(Family::LaguerreL, 2), 0.125);
        assert_eq!(at(Family::LegendreP, -1), 0.0);
        assert_eq!(single::value(Family::ChebyshevT, true, 0.75, 3), -1.0);
    }
}
