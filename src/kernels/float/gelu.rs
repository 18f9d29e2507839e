//! GELU by parts: on machines that pick numbers from tables in registers, a polynomial of few terms for each part of the normal
//! distribution's function takes fewer instructions than an exponential. Knows no memory.

use super::vector::{LANES, Lanes};

/// Parts for each unit of x.
const PARTS: f32 = 8.0 / 3.0;

/// Added to a number below 2^22, it leaves the nearest integer in the sum's lowest bits.
const ROUNDING: f32 = 12_582_912.0;

/// x times the share of a normal distribution that lies below it, which is within 7e-8: x / 2 * (1 + erf(x / √2)).
#[inline(always)]
pub(super) fn gelu<L: Lanes>(l: L, x: L::V) -> L::V {
    let parts = l.at_least(l.splat(-16.0), l.at_most(l.splat(15.0), l.mul(x, l.splat(PARTS))));
    let sum = l.add(parts, l.splat(ROUNDING));
    let rest = l.sub(parts, l.sub(sum, l.splat(ROUNDING)));
    let [first @ .., last] = &SHARES;
    let mut share = l.pick(last, sum);
    for term in first.iter().rev() {
        share = l.fma(share, rest, l.pick(term, sum));
    }
    l.mul(share, x)
}

/// Of each part, named by the lowest five bits of its number, the terms of a polynomial in the distance from its middle, in
/// parts: through the distribution's function at Chebyshev's nodes. Below the first part, at -5.8, all is 0, which is what PyTorch's
/// sum gives from -5.6 on.
#[rustfmt::skip]
const SHARES: [[[f32; LANES]; 2]; 6] = [
    [
        [
            0.5, 0.6461698, 0.77337265, 0.8697055, 0.9331928, 0.96960366, 0.9877755, 0.9956676,
            0.9986501, 0.9996309, 0.9999116, 0.99998146, 0.9999966, 0.99999946, 0.99999994, 1.0,
        ],
        [
            0.0, 9.275805e-09, 7.605168e-08, 5.4405103e-07, 3.3977035e-06, 1.8536823e-05, 8.8417466e-05, 0.0003690787,
            0.0013498982, 0.004332448, 0.012224471, 0.030396359, 0.0668072, 0.13029452, 0.22662735, 0.35383025,
        ],
    ],
    [
        [
            0.14960335, 0.13944566, 0.112926535, 0.079453744, 0.048569098, 0.025794853, 0.01190237, 0.004771568,
            0.0016619432, 0.0005029196, 0.0001322234, 3.0202678e-05, 5.993908e-06, 1.0334802e-06, 1.5481811e-07, 2.0149722e-08,
        ],
        [
            0.0, 2.0149722e-08, 1.5481811e-07, 1.0334802e-06, 5.993908e-06, 3.0202678e-05, 0.0001322234, 0.0005029196,
            0.0016619432, 0.004771568, 0.01190237, 0.025794853, 0.048569098, 0.079453744, 0.112926535, 0.13944566,
        ],
    ],
    [
        [
            0.0, -0.009804517, -0.015879998, -0.016759647, -0.013660123, -0.009068639, -0.0050214087, -0.0023485355,
            -0.0009348324, -0.00031823493, -9.2956616e-05, -2.3353792e-05, -5.0551666e-06, -9.4403316e-07, -1.5224967e-07, -2.1222318e-08,
        ],
        [
            0.0, 2.1222318e-08, 1.5224967e-07, 9.4403316e-07, 5.0551666e-06, 2.3353792e-05, 9.2956616e-05, 0.00031823493,
            0.0009348324, 0.0023485355, 0.0050214087, 0.009068639, 0.013660123, 0.016759647, 0.015879998, 0.009804517,
        ],
    ],
    [
        [
            -0.0035062854, -0.0028086347, -0.0011579506, 0.0004946155, 0.0014229025, 0.0015208629, 0.0011332919, 0.00065877824,
            0.00031161745, 0.00012247587, 4.0479394e-05, 1.1336279e-05, 2.7039248e-06, 5.513113e-07, 9.635043e-08, 1.4463094e-08,
        ],
        [
            0.0, 1.4463094e-08, 9.635043e-08, 5.513113e-07, 2.7039248e-06, 1.1336279e-05, 4.0479394e-05, 0.00012247587,
            0.00031161745, 0.00065877824, 0.0011332919, 0.0015208629, 0.0014229025, 0.0004946155, -0.0011579506, -0.0028086347,
        ],
    ],
    [
        [
            0.0, 0.0003258046, 0.0004504537, 0.00033927624, 0.00012073781, -5.3346128e-05, -0.00012033209, -0.00010676346,
            -6.58449e-05, -3.1494605e-05, -1.2190584e-05, -3.901597e-06, -1.0456488e-06, -2.3659375e-07, -4.545073e-08, -7.4433384e-09,
        ],
        [
            0.0, 7.4433384e-09, 4.545073e-08, 2.3659375e-07, 1.0456488e-06, 3.901597e-06, 1.2190584e-05, 3.1494605e-05,
            6.58449e-05, 0.00010676346, 0.00012033209, 5.3346128e-05, -0.00012073781, -0.00033927624, -0.0004504537, -0.0003258046,
        ],
    ],
    [
        [
            7.3499075e-05, 4.974703e-05, -9.57081e-07, -3.88485e-05, -4.330371e-05, -2.4367797e-05, -3.5274836e-06, 7.0960014e-06,
            8.183285e-06, 5.3405292e-06, 2.547651e-06, 9.561927e-07, 2.9178577e-07, 7.370885e-08, 1.5586851e-08, 2.7799285e-09,
        ],
        [
            0.0, 2.7799285e-09, 1.5586851e-08, 7.370885e-08, 2.9178577e-07, 9.561927e-07, 2.547651e-06, 5.3405292e-06,
            8.183285e-06, 7.0960014e-06, -3.5274836e-06, -2.4367797e-05, -4.330371e-05, -3.88485e-05, -9.57081e-07, 4.974703e-05,
        ],
    ],
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::float::vector::{Isa, Work, with};

    struct Gelu([f32; LANES]);

    impl Work for Gelu {
        type Out = [f32; LANES];

        fn run<L: Lanes>(self, l: L) -> Self::Out {
            let mut out = [0.0; LANES];
            l.store(&mut out, gelu(l, l.load(&self.0)));
            out
        }
    }

    #[test]
    fn parts_meet_the_definition_everywhere() {
        let inf = f32::INFINITY;
        for isa in Isa::supported() {
            for n in -2000..2000i16 {
                let numbers = std::array::from_fn(|i| f32::from(n) / 200.0 + i as f32 / 3200.0);
                for (x, y) in numbers.into_iter().zip(with(isa, Gelu(numbers))) {
                    let x = f64::from(x);
                    let wanted = x / 2.0 * libm::erfc(-x / std::f64::consts::SQRT_2);
                    let error = (f64::from(y) - wanted).abs();
                    assert!(
                        error <= 7e-8 * x.abs() + 6e-8 * wanted.abs(),
                        "{isa:?}: {y} for {wanted} at {x}"
                    );
                }
            }
            let [ends @ .., nan] = [inf, 1e30, -1e30, -0.0, 0.0, -inf, f32::NAN];
            let mut numbers = [nan; LANES];
            numbers[..ends.len()].copy_from_slice(&ends);
            let out = with(isa, Gelu(numbers));
            assert_eq!(
                out[..5].iter().map(|x| x.to_bits()).collect::<Vec<_>>(),
                [inf, 1e30, -0.0, -0.0, 0.0].map(f32::to_bits)
            );
            // As PyTorch gives minus infinity times 0.
            assert!(out[5..].iter().all(|x| x.is_nan()));
        }
    }
}
