//! Exponentials and the like on vectors, each within a few units in the last place, with NaN, infinities and signs of zero
//! as PyTorch gives them. Knows no memory.

use super::vector::Lanes;

/// (e^r - 1 - r) / r² on |r| ≤ ln2/2, fitted by Remez exchange.
const EXP: [f32; 5] = [
    4.999_999_344_760_416_9e-1,
    1.666_652_063_131_173_8e-1,
    4.166_838_807_864_925_4e-2,
    8.368_716_916_278_863_6e-3,
    1.381_459_723_748_655_7e-3,
];
/// ln 2 in two parts, the first exact in 15 bits so that its products with small integers are exact.
const LN2: [f32; 2] = [0.693_145_75, 1.428_606_8e-6];
/// Below it e^x is less than half of the smallest float.
const LEAST: f32 = -104.0;
/// From it on e^x is a normal float, with a little to spare.
const NORMAL: f32 = -87.0;
/// Above it e^x is not a finite float.
const MOST: f32 = 89.5;

/// (tanh(√u)/√u - 1)/u on u ≤ 0.8².
const TANH: [f32; 6] = [
    -0.3333329959278762,
    0.13332270203457855,
    -0.053855852969964466,
    0.021314007543626275,
    -0.007425213544604117,
    0.0015930375000195287,
];

/// erf(√u)/√u - 1 on u ≤ 0.9².
const ERF: [f32; 7] = [
    0.12837916680250433,
    -0.37612635311297193,
    0.11283719732076836,
    -0.02686075312392207,
    0.005204436472577092,
    -0.0008181929583122457,
    8.538839889336253e-05,
];

/// ln erfc(x) on 0.9 ≤ x ≤ 4.
const LOG_ERFC: [f32; 8] = [
    0.0001705507942300526,
    -1.1294951527060704,
    -0.6333866602834497,
    -0.10823660320291797,
    0.025091485649986475,
    -0.004160522489539955,
    0.0004323020167004201,
    -2.0909464883590664e-05,
];

#[inline(always)]
fn poly<L: Lanes>(l: L, x: L::V, coefficients: &[f32]) -> L::V {
    let (last, rest) = coefficients.split_last().unwrap_or((&0.0, &[]));
    let mut sum = l.splat(*last);
    for c in rest.iter().rev() {
        sum = l.fma(sum, x, l.splat(*c));
    }
    sum
}

/// e^x within 2 units in the last place, denormals included.
#[inline(always)]
pub(super) fn exp<L: Lanes>(l: L, x: L::V) -> L::V {
    // Nothing underflows where the result is 0, which is what masks give: some machines take a hundred cycles for it.
    let (least, zero) = (l.splat(LEAST), l.splat(0.0));
    let (e, n) = mantissa(l, l.where_less(x, least, zero, l.at_most(l.splat(MOST), x)));
    l.where_less(x, least, zero, l.scaled(e, n))
}

/// e^x as a number near 1 and a power of two.
#[inline(always)]
fn mantissa<L: Lanes>(l: L, x: L::V) -> (L::V, L::V) {
    let n = l.round(l.mul(x, l.splat(std::f32::consts::LOG2_E)));
    let r = l.fma(n, l.splat(-LN2[1]), l.fma(n, l.splat(-LN2[0]), x));
    (l.add(l.fma(l.mul(poly(l, r, &EXP), r), r, r), l.splat(1.0)), n)
}

/// e^x for x ≤ 0 where denormal results may be flushed to 0: what gates need, whose other term is 1.
#[inline(always)]
fn exp_of_gate<L: Lanes>(l: L, x: L::V) -> L::V {
    let (e, n) = mantissa(l, l.at_least(l.splat(NORMAL), x));
    l.scaled_little(e, n)
}

/// e^x, and 0 where x is below [`NORMAL`]: work on denormals takes some machines a hundred cycles.
#[inline(always)]
pub(super) fn exp_or_zero<L: Lanes>(l: L, x: L::V) -> L::V {
    let least = l.splat(NORMAL);
    let (e, n) = mantissa(l, l.at_least(least, l.at_most(l.splat(MOST), x)));
    l.where_less(x, least, l.splat(0.0), l.scaled_beyond_one(e, n))
}

/// 1 + e^-x: infinity where PyTorch's is.
#[inline(always)]
fn one_and_exp_of_minus<L: Lanes>(l: L, x: L::V) -> L::V {
    // Below e^-87 nothing is left of it beside 1.
    let minus = l.at_least(l.splat(NORMAL), l.at_most(l.splat(MOST), l.sub(l.splat(-0.0), x)));
    let (e, n) = mantissa(l, minus);
    l.add(l.splat(1.0), l.scaled_beyond_one(e, n))
}

/// 1 / (1 + e^-x).
#[inline(always)]
pub(super) fn sigmoid<L: Lanes>(l: L, x: L::V) -> L::V {
    l.div(l.splat(1.0), one_and_exp_of_minus(l, x))
}

/// x / (1 + e^-x).
#[inline(always)]
pub(super) fn silu<L: Lanes>(l: L, x: L::V) -> L::V {
    l.div(x, one_and_exp_of_minus(l, x))
}

/// The hyperbolic tangent.
#[inline(always)]
pub(super) fn tanh<L: Lanes>(l: L, x: L::V) -> L::V {
    let (one, size, u) = (l.splat(1.0), l.abs(x), l.mul(x, x));
    let small = l.fma(l.mul(size, u), poly(l, u, &TANH), size);
    let e = exp_of_gate(l, l.mul(l.splat(-2.0), size));
    let large = l.div(l.sub(one, e), l.add(one, e));
    l.with_sign(l.where_less(size, l.splat(0.8), small, large), x)
}

/// The error function: an odd polynomial below 0.9, 1 - e^(polynomial) above.
#[inline(always)]
fn erf<L: Lanes>(l: L, x: L::V) -> L::V {
    let (size, u) = (l.abs(x), l.mul(x, x));
    let small = l.fma(size, poly(l, u, &ERF), size);
    let z = poly(l, l.at_most(l.splat(4.0), size), &LOG_ERFC);
    let large = l.sub(l.splat(1.0), exp_of_gate(l, z));
    l.with_sign(l.where_less(size, l.splat(0.9), small, large), x)
}

/// x / 2 * (1 + erf(x / √2)).
#[inline(always)]
pub(super) fn gelu<L: Lanes>(l: L, x: L::V) -> L::V {
    if L::PICKS {
        return super::gelu::gelu(l, x);
    }
    let erf = erf(l, l.mul(x, l.splat(std::f32::consts::FRAC_1_SQRT_2)));
    l.mul(l.mul(x, l.splat(0.5)), l.add(l.splat(1.0), erf))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::float::vector::{Isa, LANES, Work, with};

    struct Functions([f32; LANES]);

    impl Work for Functions {
        type Out = [[f32; LANES]; 4];

        fn run<L: Lanes>(self, l: L) -> Self::Out {
            let x = l.load(&self.0);
            [exp(l, x), exp_or_zero(l, x), silu(l, x), sigmoid(l, x)].map(|y| {
                let mut out = [0.0; LANES];
                l.store(&mut out, y);
                out
            })
        }
    }

    #[test]
    fn exponentials_are_right_to_their_ends() {
        let inf = f32::INFINITY;
        let numbers = [
            -inf,
            -1e30,
            -200.0,
            -104.1,
            -103.9,
            -100.0,
            -87.4,
            -87.1,
            -86.9,
            -1.0,
            -0.0,
            1.0,
            88.5,
            89.0,
            inf,
            f32::NAN,
        ];
        for isa in Isa::supported() {
            let [all, normal, ..] = with(isa, Functions(numbers));
            for ((x, all), normal) in numbers.into_iter().zip(all).zip(normal) {
                let wanted = f64::from(x).exp() as f32;
                let near = |y: f32, wanted: f32| {
                    let ulps = y.to_bits().abs_diff(wanted.to_bits());
                    ulps <= 2 || y.is_nan() && wanted.is_nan()
                };
                assert!(near(all, wanted), "{isa:?}: {all} for {wanted} at {x}");
                let wanted = if x < NORMAL { 0.0 } else { wanted };
                assert!(near(normal, wanted), "{isa:?}: {normal} for {wanted} at {x}");
            }
        }
    }

    #[test]
    fn gates_are_right_to_their_ends() {
        let inf = f32::INFINITY;
        let numbers = [
            -inf,
            -200.0,
            -89.2,
            -88.8,
            -88.7,
            -88.4,
            -87.5,
            -20.0,
            -0.0,
            0.0,
            1.0,
            30.0,
            88.5,
            200.0,
            inf,
            f32::NAN,
        ];
        for isa in Isa::supported() {
            let [.., silus, sigmoids] = with(isa, Functions(numbers));
            for ((x, silu), sigmoid) in numbers.into_iter().zip(silus).zip(sigmoids) {
                // As PyTorch computes them: the sum is infinite where it is not a finite float, which makes the quotient zero, or NaN.
                let sum = f64::from((1.0 + (-f64::from(x)).exp()) as f32);
                for (y, wanted) in [(silu, f64::from(x) / sum), (sigmoid, 1.0 / sum)] {
                    let near = (f64::from(y) - wanted).abs() <= 1e-6 * wanted.abs() || f64::from(y) == wanted;
                    assert!(near || y.is_nan() && wanted.is_nan(), "{isa:?}: {y} for {wanted} at {x}");
                    assert_eq!(
                        y.is_nan() || y.is_sign_negative(),
                        wanted.is_nan() || wanted.is_sign_negative()
                    );
                }
            }
        }
    }
}
