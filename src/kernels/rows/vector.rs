//! Rows of float32 several elements at a time: extremes, sums, exponentials, softmax. Loops are plain and branch-free, so
//! that they become vector code where they are inlined into [`wide_loops`]. Knows slices only.

use crate::kernels::compute::Real;
use crate::kernels::wide_loops;

/// Partial results kept at once: several vectors, as each step waits for the one before.
const LANES: usize = 64;

/// A sum in double precision in lanes of `f` of each element.
#[inline(always)]
pub fn sum_wide<R: Real>(values: &[R], f: impl Fn(f64) -> f64) -> f64 {
    let mut lanes = [0f64; LANES / 2];
    let chunks = values.chunks_exact(LANES / 2);
    let rest: f64 = chunks.remainder().iter().map(|x| f(x.wide())).sum();
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane += f(x.wide());
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// The sum of a row, in double precision.
pub fn sum(row: &[f32]) -> f64 {
    wide_loops(
        #[inline(always)]
        || sum_wide(row, |x| x),
    )
}

/// Adds to each of `sums` the column of `values` that begins at `first` and lies `columns` apart, row after row.
pub fn add_columns(values: &[f32], columns: usize, first: usize, sums: &mut [f64]) {
    wide_loops(
        #[inline(always)]
        || {
            let width = sums.len();
            let line = |row: usize| values.get(row * columns + first..).and_then(|line| line.get(..width));
            let mut row = 0;
            // Four rows each time that sums are read and written.
            while let (Some(a), Some(b), Some(c), Some(d)) =
                (line(row), line(row + 1), line(row + 2), line(row + 3))
            {
                for at in 0..width {
                    let pair = (f64::from(a[at]) + f64::from(b[at])) + (f64::from(c[at]) + f64::from(d[at]));
                    sums[at] += pair;
                }
                row += 4;
            }
            while let Some(a) = line(row) {
                for (sum, x) in sums.iter_mut().zip(a) {
                    *sum += f64::from(*x);
                }
                row += 1;
            }
        },
    );
}

/// The first in the order that `beats` gives of the elements that are numbers; `worst` where there is none.
#[inline(always)]
fn extreme(row: &[f32], worst: f32, beats: impl Fn(f32, f32) -> bool) -> f32 {
    let mut lanes = [worst; LANES];
    let better = |m: f32, x: f32| if beats(x, m) { x } else { m };
    let chunks = row.chunks_exact(LANES);
    for (lane, x) in lanes.iter_mut().zip(chunks.remainder()) {
        *lane = better(*lane, *x);
    }
    for chunk in chunks {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *lane = better(*lane, *x);
        }
    }
    lanes.into_iter().fold(worst, better)
}

/// The largest element that is a number; minus infinity where there is none.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    extreme(row, f32::NEG_INFINITY, |x, m| x > m)
}

/// The place of the first largest (or smallest) element; of the first NaN if there is one. 0 of an empty row.
pub fn place_of_extreme(row: &[f32], smallest: bool) -> usize {
    let (value, has_nan) = wide_loops(
        #[inline(always)]
        || {
            let value = if smallest { extreme(row, f32::INFINITY, |x, m| x < m) } else { largest(row) };
            (value, row.iter().fold(false, |found, x| found | x.is_nan()))
        },
    );
    let wanted = |x: &f32| if has_nan { x.is_nan() } else { *x == value };
    row.iter().position(wanted).unwrap_or(0)
}

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
/// 1.5 * 2^23: adding it rounds a small float to an integer, which then stands in the low bits.
const MAGIC: f32 = 12_582_912.0;

/// The logarithm of half the smallest float: what is below it rounds to 0.
const LEAST: f32 = -103.972_08;

/// e^x for x ≤ 0 (or NaN), within 2 units in the last place, those of denormals among them: PyTorch keeps them, and the
/// logarithm of a softmax shows it.
#[inline(always)]
fn exp_of_negative(x: f32) -> f32 {
    // The comparison keeps NaN.
    let vanishes = x < LEAST;
    let x = if vanishes { LEAST } else { x };
    let shifted = x.mul_add(std::f32::consts::LOG2_E, MAGIC);
    let n = shifted - MAGIC;
    let r = n.mul_add(-LN2[1], n.mul_add(-LN2[0], x));
    let mut p = EXP[4];
    for c in [EXP[3], EXP[2], EXP[1], EXP[0]] {
        p = p.mul_add(r, c);
    }
    let e = (p * r).mul_add(r, r) + 1.0;
    let n = (shifted.to_bits() as i32).wrapping_sub(MAGIC.to_bits() as i32);
    // In two steps, as 2^n itself may not be a normal float.
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    if vanishes { 0.0 } else { e * power(half) * power(n.wrapping_sub(half)) }
}

/// Writes the exponentials of `row` less its largest element; gives that element and their sum.
#[inline(always)]
fn exponentials(row: &[f32], out: &mut [f32]) -> (f32, f64) {
    let most = largest(row);
    for (y, x) in out.iter_mut().zip(row) {
        *y = exp_of_negative(*x - most);
    }
    (most, sum_wide(out, |x| x))
}

/// Exponentials over their sum.
pub fn softmax(row: &[f32], out: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || {
            let (_, total) = exponentials(row, out);
            let factor = (1.0 / total) as f32;
            out.iter_mut().for_each(|y| *y *= factor);
        },
    );
}

/// Softmax in place of `scale * row + bias`; zeros where all of that is minus infinity.
pub fn softmax_scaled(row: &mut [f32], scale: f32, bias: Option<&[f32]>) {
    wide_loops(
        #[inline(always)]
        || {
            match bias {
                Some(bias) => row.iter_mut().zip(bias).for_each(|(x, b)| *x = *x * scale + *b),
                None => row.iter_mut().for_each(|x| *x *= scale),
            }
            let most = largest(row);
            if most == f32::NEG_INFINITY && row.iter().all(|x| !x.is_nan()) {
                row.fill(0.0);
                return;
            }
            row.iter_mut().for_each(|x| *x = exp_of_negative(*x - most));
            let factor = (1.0 / sum_wide(row, |x| x)) as f32;
            row.iter_mut().for_each(|x| *x *= factor);
        },
    );
}

/// The logarithm of softmax; `log` makes the logarithm of the sum.
pub fn log_softmax(row: &[f32], out: &mut [f32], log: impl Fn(f64) -> f32) {
    wide_loops(
        #[inline(always)]
        || {
            let (most, total) = exponentials(row, out);
            let log = log(total);
            // Where the largest is infinite the differences are not numbers, as in PyTorch.
            for (y, x) in out.iter_mut().zip(row) {
                *y = (*x - most) - log;
            }
        },
    );
}

/// (tanh(√u)/√u - 1)/u on u ≤ 0.8², fitted by Remez exchange.
const TANH: [f32; 6] = [
    -0.3333329959278762,
    0.13332270203457855,
    -0.053855852969964466,
    0.021314007543626275,
    -0.007425213544604117,
    0.0015930375000195287,
];

/// The hyperbolic tangent, within 4 units in the last place.
#[inline(always)]
fn tanh(x: f32) -> f32 {
    let u = x * x;
    let mut p = TANH[5];
    for c in [TANH[4], TANH[3], TANH[2], TANH[1], TANH[0]] {
        p = p.mul_add(u, c);
    }
    let small = (x * u).mul_add(p, x);
    let e = exp_of_negative(-2.0 * x.abs());
    let large = ((1.0 - e) / (1.0 + e)).copysign(x);
    if x.abs() < 0.8 { small } else { large }
}

/// 1 / (1 + e^-x), within 4 units in the last place.
#[inline(always)]
fn sigmoid(x: f32) -> f32 {
    let e = exp_of_negative(-x.abs());
    let d = 1.0 / (1.0 + e);
    if x >= 0.0 { d } else { e * d }
}

#[inline(always)]
fn apply(values: &mut [f32], f: impl Fn(f32) -> f32) {
    values.iter_mut().for_each(|x| *x = f(*x));
}

/// One row of an LSTM's step: `gates` holds the sums of input, forget, cell and output gates one after the other and is
/// used up; `c` follows, `out` are the new outputs.
pub fn lstm_row(gates: &mut [f32], c: &mut [f32], out: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || {
            let n = out.len();
            let (ingate, rest) = gates.split_at_mut(n);
            let (forget, rest) = rest.split_at_mut(n);
            let (cell, outgate) = rest.split_at_mut(n);
            apply(ingate, sigmoid);
            apply(forget, sigmoid);
            apply(cell, tanh);
            apply(outgate, sigmoid);
            for (((c, i), f), g) in c.iter_mut().zip(ingate).zip(forget).zip(cell) {
                *c = *f * *c + *i * *g;
            }
            for ((out, c), o) in out.iter_mut().zip(c).zip(outgate) {
                *out = *o * tanh(*c);
            }
        },
    );
}

/// One row of a GRU's step: `given` and `remembered` are what input and state add to reset, update and new gates;
/// `remembered` is used up. `h` is the state before, `out` the one after.
pub fn gru_row(given: &[f32], remembered: &mut [f32], h: &[f32], out: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || {
            let n = out.len();
            let (gates, new) = remembered.split_at_mut(2 * n);
            gates.iter_mut().zip(given).for_each(|(g, x)| *g = sigmoid(*g + *x));
            let (reset, update) = gates.split_at(n);
            for ((new, r), x) in new.iter_mut().zip(reset).zip(&given[2 * n..]) {
                *new = tanh(*x + *r * *new);
            }
            for (((out, h), z), new) in out.iter_mut().zip(h).zip(update).zip(new) {
                *out = (*h - *new) * *z + *new;
            }
        },
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponentials_are_within_two_units() {
        let mut worst = 0.0f64;
        for i in 0..200_000 {
            let x = -(i as f32) * 0.000_4;
            let (y, wanted) = (f64::from(exp_of_negative(x)), f64::from(x).exp());
            let unit = f64::from(f32::EPSILON) * wanted;
            worst = worst.max((y - wanted).abs() / unit);
        }
        assert!(worst <= 2.0, "{worst} units");
        for i in 0..80_000 {
            let x = -80.0 - (i as f32) * 0.000_4;
            let (y, wanted) = (f64::from(exp_of_negative(x)), f64::from(x).exp());
            let unit = (f64::from(f32::EPSILON) * wanted).max(f64::from(f32::from_bits(1)));
            assert!((y - wanted).abs() <= 2.0 * unit, "e^{x} is {wanted:e}, not {y:e}");
        }
        assert_eq!(exp_of_negative(-104.0), 0.0);
        assert_eq!(exp_of_negative(0.0), 1.0);
        assert_eq!(exp_of_negative(f32::NEG_INFINITY), 0.0);
        assert!(exp_of_negative(f32::NAN).is_nan());
    }

    #[test]
    fn gates_are_within_four_units() {
        let mut worst = [0.0f64; 2];
        for i in -100_000..100_000 {
            let x = i as f32 * 0.000_2;
            let wide = f64::from(x);
            let pairs = [(tanh(x), wide.tanh()), (sigmoid(x), 1.0 / (1.0 + (-wide).exp()))];
            for (worst, (y, wanted)) in worst.iter_mut().zip(pairs) {
                let unit = f64::from(f32::EPSILON) * wanted.abs().max(1e-30);
                *worst = worst.max((f64::from(y) - wanted).abs() / unit);
            }
        }
        assert!(worst.iter().all(|w| *w <= 4.0), "{worst:?} units");
        assert_eq!([tanh(f32::INFINITY), tanh(f32::NEG_INFINITY)], [1.0, -1.0]);
        assert_eq!([sigmoid(f32::INFINITY), sigmoid(f32::NEG_INFINITY)], [1.0, 0.0]);
        assert!(tanh(f32::NAN).is_nan() && sigmoid(f32::NAN).is_nan());
    }

    #[test]
    fn rows_of_any_length_sum_to_one() {
        for length in [1usize, 2, 63, 64, 65, 200] {
            let row: Vec<f32> = (0..length).map(|i| ((i * 37) % 11) as f32 - 5.0).collect();
            let mut out = vec![0.0; length];
            softmax(&row, &mut out);
            let total: f64 = row.iter().map(|x| f64::from(*x).exp()).sum();
            for (x, y) in row.iter().zip(&out) {
                let wanted = f64::from(*x).exp() / total;
                assert!((f64::from(*y) - wanted).abs() <= 1e-6 * wanted, "{y} {wanted}");
            }
            let mut logs = vec![0.0; length];
            log_softmax(&row, &mut logs, |total| total.ln() as f32);
            assert!(logs.iter().zip(&out).all(|(l, y)| (l.exp() - y).abs() < 1e-6));
        }
    }

    #[test]
    fn extremes_are_the_first_of_equals_and_nan_beats_all() {
        let mut row: Vec<f32> = (0..130).map(|i| ((i * 37) % 101) as f32).collect();
        assert_eq!(place_of_extreme(&row, false), 30);
        assert_eq!(place_of_extreme(&row, true), 0);
        row[70] = f32::NAN;
        assert_eq!([place_of_extreme(&row, false), place_of_extreme(&row, true)], [70, 70]);
        assert_eq!(place_of_extreme(&[f32::NEG_INFINITY; 3], false), 0);
    }

    #[test]
    fn infinities_and_nan_come_out_as_in_pytorch() {
        let mut out = [0.0f32; 2];
        softmax(&[f32::NEG_INFINITY; 2], &mut out);
        assert!(out.iter().all(|y| y.is_nan()));
        softmax(&[f32::NAN, 1.0], &mut out);
        assert!(out.iter().all(|y| y.is_nan()));
        softmax(&[f32::NEG_INFINITY, 1.0], &mut out);
        assert_eq!(out, [0.0, 1.0]);
        let mut row = [1.0f32, 2.0];
        softmax_scaled(&mut row, 1.0, Some(&[f32::NEG_INFINITY; 2]));
        assert_eq!(row, [0.0, 0.0]);
        assert_eq!(sum(&[0.5; 70]), 35.0);
    }
}
