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

/// The lanes as one, eight beside each other, so that few wait for all before them. Places are known when it is compiled: lanes stay in
/// registers in the loop before it.
#[inline(always)]
fn folded<T: Copy, const N: usize>(lanes: [T; N], fold: impl Fn(T, T) -> T) -> T {
    const { assert!(N.is_multiple_of(8) && N > 0) };
    let mut eight: [T; 8] = std::array::from_fn(|at| lanes[at]);
    for part in 1..N / 8 {
        for (at, x) in eight.iter_mut().enumerate() {
            *x = fold(*x, lanes[part * 8 + at]);
        }
    }
    let [a, b, c, d, e, f, g, h] = eight;
    fold(fold(fold(a, b), fold(c, d)), fold(fold(e, f), fold(g, h)))
}

/// The sum of a row, in double precision.
pub fn sum(row: &[f32]) -> f64 {
    wide_loops(
        #[inline(always)]
        || sum_wide(row, |x| x),
    )
}

/// Products kept at once by [`product`]: the four vectors of eight lanes in which PyTorch multiplies long rows, so that what overflows
/// on the way does so as there.
const PRODUCTS: usize = 32;

/// The product of a row, each step rounded.
pub fn product(row: &[f32]) -> f32 {
    wide_loops(
        #[inline(always)]
        || {
            let mut lanes = [1f32; PRODUCTS];
            let chunks = row.chunks_exact(PRODUCTS);
            let rest = chunks.remainder();
            for chunk in chunks {
                for (lane, x) in lanes.iter_mut().zip(chunk) {
                    *lane *= x;
                }
            }
            let vectors = |at: usize| lanes.iter().skip(at).step_by(8).fold(1.0, |p, x| p * x);
            let product = (0..8).map(vectors).fold(1.0, |p: f32, x| p * x);
            rest.iter().fold(product, |p, x| p * x)
        },
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

/// Folds the largest elements of columns into `most`, as [`add_columns`] does their sums; NaN is larger than all.
pub fn most_of_columns(values: &[f32], columns: usize, first: usize, most: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || extremes_of_columns(values, (columns, first), most, |m, x| x > m),
    );
}

/// The same of the smallest ones; NaN is smaller than all.
pub fn least_of_columns(values: &[f32], columns: usize, first: usize, least: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || extremes_of_columns(values, (columns, first), least, |m, x| x < m),
    );
}

#[inline(always)]
fn extremes_of_columns(
    values: &[f32],
    (columns, first): (usize, usize),
    found: &mut [f32],
    beats: impl Fn(f32, f32) -> bool,
) {
    let width = found.len();
    let mut row = 0;
    while let Some(line) = values.get(row * columns + first..).and_then(|line| line.get(..width)) {
        for (m, x) in found.iter_mut().zip(line) {
            *m = if beats(*m, *x) | x.is_nan() { *x } else { *m };
        }
        row += 1;
    }
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
    folded(lanes, better)
}

/// The largest element that is a number; minus infinity where there is none.
#[inline(always)]
fn largest(row: &[f32]) -> f32 {
    extreme(row, f32::NEG_INFINITY, |x, m| x > m)
}

/// The largest (or smallest) element; NaN if there is one, and the worst of all of an empty row.
pub fn extreme_of(row: &[f32], smallest: bool) -> f32 {
    wide_loops(
        #[inline(always)]
        || match smallest {
            true => extreme(row, f32::INFINITY, |x, m| (x < m) | x.is_nan()),
            false => extreme(row, f32::NEG_INFINITY, |x, m| (x > m) | x.is_nan()),
        },
    )
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
pub(super) fn exp_of_negative(x: f32) -> f32 {
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

/// The logarithm of the sum of exponentials, each counted `times`; `log` makes the logarithm.
pub fn log_sum_exp(row: &[f32], times: f64, log: impl Fn(f64) -> f64) -> f32 {
    let most = wide_loops(
        #[inline(always)]
        || largest(row),
    );
    if most.is_infinite() {
        // Of minus infinity alone, or NaN beside it; infinity is the sum of all that has it.
        return if row.iter().any(|x| x.is_nan()) { f32::NAN } else { most };
    }
    let total = wide_loops(
        #[inline(always)]
        || {
            let mut lanes = [0f64; LANES / 2];
            let chunks = row.chunks_exact(LANES / 2);
            let rest: f64 = chunks.remainder().iter().map(|x| f64::from(exp_of_negative(*x - most))).sum();
            for chunk in chunks {
                for (lane, x) in lanes.iter_mut().zip(chunk) {
                    *lane += f64::from(exp_of_negative(*x - most));
                }
            }
            lanes.iter().sum::<f64>() + rest
        },
    );
    (f64::from(most) + log(total * times)) as f32
}

/// The squares of the distances of some rows from another one of the same length.
pub fn squared_distances<const N: usize>(rows: [&[f32]; N], other: &[f32]) -> [f32; N] {
    pulp::Arch::new().dispatch(SquaredDistances { rows, other })
}

/// Written in vectors: as a loop over arrays its sums would lie in memory.
struct SquaredDistances<'a, const N: usize> {
    rows: [&'a [f32]; N],
    other: &'a [f32],
}

impl<const N: usize> pulp::WithSimd for SquaredDistances<'_, N> {
    type Output = [f32; N];

    #[inline(always)]
    fn with_simd<S: pulp::Simd>(self, simd: S) -> [f32; N] {
        let (others, rest) = S::as_simd_f32s(self.other);
        let rows: [&[S::f32s]; N] = std::array::from_fn(|n| &S::as_simd_f32s(self.rows[n]).0[..others.len()]);
        let mut sums = [simd.splat_f32s(0.0); N];
        for (at, y) in others.iter().enumerate() {
            for n in 0..N {
                let d = simd.sub_f32s(rows[n][at], *y);
                sums[n] = simd.mul_add_f32s(d, d, sums[n]);
            }
        }
        let whole = self.other.len() - rest.len();
        std::array::from_fn(|n| {
            let last = self.rows[n][whole..].iter().zip(rest);
            simd.reduce_sum_f32s(sums[n]) + last.map(|(x, y)| (x - y) * (x - y)).sum::<f32>()
        })
    }
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

/// Columns that [`softmax_columns`] takes at a time, so that what it keeps of each stays in the first-level cache.
const TILE: usize = 128;

/// Softmax of each column of rows of `columns` elements that lie one after the other; its logarithm where `log` makes that of the sum.
pub fn softmax_columns(values: &[f32], columns: usize, out: &mut [f32], log: Option<fn(f64) -> f32>) {
    wide_loops(
        #[inline(always)]
        || {
            for first in (0..columns).step_by(TILE) {
                let width = TILE.min(columns - first);
                let (mut most, mut totals) = ([f32::NEG_INFINITY; TILE], [0f64; TILE]);
                let (most, totals) = (&mut most[..width], &mut totals[..width]);
                for row in values.chunks_exact(columns) {
                    for (m, x) in most.iter_mut().zip(&row[first..first + width]) {
                        *m = if *x > *m { *x } else { *m };
                    }
                }
                for (row, out) in values.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
                    let (row, out) = (&row[first..first + width], &mut out[first..first + width]);
                    for (((x, y), m), total) in row.iter().zip(out).zip(&*most).zip(&mut *totals) {
                        *y = exp_of_negative(*x - *m);
                        *total += f64::from(*y);
                    }
                }
                let mut last = [0f32; TILE];
                let last = &mut last[..width];
                for (last, total) in last.iter_mut().zip(&*totals) {
                    *last = log.map_or((1.0 / total) as f32, |log| log(*total));
                }
                for (row, out) in values.chunks_exact(columns).zip(out.chunks_exact_mut(columns)) {
                    let (row, out) = (&row[first..first + width], &mut out[first..first + width]);
                    match log {
                        None => out.iter_mut().zip(&*last).for_each(|(y, factor)| *y *= factor),
                        Some(_) => {
                            for (((x, y), m), log) in row.iter().zip(out).zip(&*most).zip(&*last) {
                                *y = (*x - *m) - *log;
                            }
                        }
                    }
                }
            }
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
    fn extremes_products_and_distances_of_rows_are_those_of_their_elements() {
        for length in [0usize, 1, 7, 32, 33, 64, 100, 700] {
            let row: Vec<f32> = (0..length).map(|n| 1.0 + ((n * 37 % 101) as f32 - 50.0) * 0.001).collect();
            let other: Vec<f32> = row.iter().rev().map(|x| x * 1.5).collect();
            let wide = |row: &[f32]| row.iter().map(|x| f64::from(*x)).collect::<Vec<f64>>();
            let product: f64 = wide(&row).iter().product();
            assert!((f64::from(super::product(&row)) / product - 1.0).abs() < 1e-4);
            let squares: f64 = wide(&row).iter().zip(wide(&other)).map(|(x, y)| (x - y) * (x - y)).sum();
            assert!((f64::from(squared_distances([&row[..]], &other)[0]) - squares).abs() <= 1e-5 * squares);
            let most = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            assert_eq!(extreme_of(&row, false), most);
            assert_eq!(extreme_of(&row.iter().map(|x| -x).collect::<Vec<f32>>(), true), -most);
            if let Some(last) = length.checked_sub(1) {
                let mut row = row.clone();
                row[last] = f32::NAN;
                assert!(extreme_of(&row, false).is_nan() && extreme_of(&row, true).is_nan());
            }
        }
    }

    #[test]
    fn logarithms_of_sums_know_infinities() {
        let row: Vec<f32> = (0..77).map(|n| n as f32 * 0.25 - 9.0).collect();
        let wanted = row.iter().map(|x| f64::from(*x).exp()).sum::<f64>().ln();
        assert!((f64::from(log_sum_exp(&row, 1.0, f64::ln)) - wanted).abs() < 1e-5);
        assert!((f64::from(log_sum_exp(&row, 3.0, f64::ln)) - wanted - 3f64.ln()).abs() < 1e-5);
        let with = |x: f32| log_sum_exp(&[&row[..], &[x]].concat(), 1.0, f64::ln);
        assert_eq!(with(f32::INFINITY), f32::INFINITY);
        assert!(with(f32::NAN).is_nan());
        assert!((f64::from(with(f32::NEG_INFINITY)) - wanted).abs() < 1e-5);
        assert_eq!(log_sum_exp(&[f32::NEG_INFINITY; 40], 1.0, f64::ln), f32::NEG_INFINITY);
        assert!(log_sum_exp(&[f32::INFINITY, f32::NAN], 1.0, f64::ln).is_nan());
        assert_eq!(log_sum_exp(&[], 1.0, f64::ln), f32::NEG_INFINITY);
    }

    #[test]
    fn softmax_of_columns_is_that_of_rows() {
        for (rows, columns) in [(1, 16), (5, 300), (21, 128), (7, 129)] {
            let values: Vec<f32> = (0..rows * columns).map(|n| (n * 37 % 101) as f32 * 0.25 - 9.0).collect();
            for log in [None, Some((|total: f64| total.ln() as f32) as fn(f64) -> f32)] {
                let mut out = vec![0.0; values.len()];
                softmax_columns(&values, columns, &mut out, log);
                for c in 0..columns {
                    let column: Vec<f32> = values.iter().skip(c).step_by(columns).copied().collect();
                    let mut wanted = vec![0.0; rows];
                    match log {
                        None => softmax(&column, &mut wanted),
                        Some(log) => log_softmax(&column, &mut wanted, log),
                    }
                    let found = out.iter().skip(c).step_by(columns);
                    assert!(found.zip(&wanted).all(|(y, wanted)| (y - wanted).abs() <= 2e-6 * wanted.abs()));
                }
            }
        }
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
