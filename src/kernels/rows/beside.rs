//! Rows of float32, some of them beside each other: extremes, softmax and the like. What the lanes of a vector hold is folded for
//! all of these rows at once, as folding them row by row takes longer than short rows themselves do. Long rows are left to
//! [`vector`](super::vector). Knows slices only.

use super::vector::{self, exp_of_negative};
use crate::kernels::wide_loops;

/// Rows beside each other.
pub const ROWS: usize = 16;

/// Half the lanes of a row.
const HALF: usize = 8;

/// Elements of the longest rows that are taken so: those of [`ROWS`] rows stay in the second-level cache.
const LONGEST: usize = 1024;

/// Folds each of at most [`ROWS`] rows into one value: `take` adds an element of a row, whose number it is given, to what others
/// left, and `join` adds what lanes left.
#[inline(always)]
fn folded<A: Copy>(
    rows: &[f32],
    length: usize,
    start: A,
    take: impl Fn(usize, A, f32) -> A,
    join: impl Fn(A, A) -> A,
) -> [A; ROWS] {
    let mut parts = [[start; HALF]; ROWS];
    for (n, (part, row)) in parts.iter_mut().zip(rows.chunks_exact(length)).enumerate() {
        let mut lanes = [start; 2 * HALF];
        let chunks = row.chunks_exact(2 * HALF);
        let rest = chunks.remainder();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane = take(n, *lane, *x);
            }
        }
        for (lane, x) in lanes.iter_mut().zip(rest) {
            *lane = take(n, *lane, *x);
        }
        *part = std::array::from_fn(|at| join(lanes[at], lanes[at + HALF]));
    }
    let mut all = [start; ROWS];
    for lane in 0..HALF {
        for (value, part) in all.iter_mut().zip(&parts) {
            *value = join(*value, part[lane]);
        }
    }
    all
}

/// What becomes of each row of `length`, which may be 0, by itself.
fn alone<A>(rows: &[f32], length: usize, out: &mut [A], f: impl Fn(&[f32]) -> A) {
    out.iter_mut().enumerate().for_each(|(n, y)| *y = f(&rows[n * length..(n + 1) * length]));
}

/// The largest elements of rows that are numbers; minus infinity where there is none.
#[inline(always)]
fn largest(rows: &[f32], length: usize) -> [f32; ROWS] {
    let better = |m: f32, x: f32| if x > m { x } else { m };
    folded(rows, length, f32::NEG_INFINITY, |_, m, x| better(m, x), better)
}

/// Writes the exponentials of elements less the largest of their row; gives that element of each row and the sums.
#[inline(always)]
fn exponentials(rows: &[f32], length: usize, out: &mut [f32]) -> ([f32; ROWS], [f64; ROWS]) {
    let most = largest(rows, length);
    for ((out, row), m) in out.chunks_exact_mut(length).zip(rows.chunks_exact(length)).zip(most) {
        for (y, x) in out.iter_mut().zip(row) {
            *y = exp_of_negative(*x - m);
        }
    }
    (most, folded(out, length, 0.0, |_, sum, x| sum + f64::from(x), |a, b| a + b))
}

/// The largest (or smallest) element of each row of `length`; NaN if there is one, and the worst of all of empty rows.
pub fn extremes(rows: &[f32], length: usize, smallest: bool, out: &mut [f32]) {
    if !(1..=LONGEST).contains(&length) {
        return alone(rows, length, out, |row| vector::extreme_of(row, smallest));
    }
    wide_loops(
        #[inline(always)]
        || {
            for (out, rows) in out.chunks_mut(ROWS).zip(rows.chunks(ROWS * length)) {
                let more = |m: f32, x: f32| if (x > m) | x.is_nan() { x } else { m };
                let less = |m: f32, x: f32| if (x < m) | x.is_nan() { x } else { m };
                let all = match smallest {
                    true => folded(rows, length, f32::INFINITY, |_, m, x| less(m, x), less),
                    false => folded(rows, length, f32::NEG_INFINITY, |_, m, x| more(m, x), more),
                };
                out.copy_from_slice(&all[..out.len()]);
            }
        },
    );
}

/// The sum of each row of `length`, in double precision.
pub fn sums(rows: &[f32], length: usize, out: &mut [f64]) {
    if !(1..=LONGEST).contains(&length) {
        return alone(rows, length, out, vector::sum);
    }
    wide_loops(
        #[inline(always)]
        || {
            for (out, rows) in out.chunks_mut(ROWS).zip(rows.chunks(ROWS * length)) {
                let sums = folded(rows, length, 0.0, |_, sum, x| sum + f64::from(x), |a, b| a + b);
                out.copy_from_slice(&sums[..out.len()]);
            }
        },
    );
}

/// The 2-norm of each row of `length`: squares are numbers of float32, as is their sum, which is added up in float64.
pub fn euclidean(rows: &[f32], length: usize, out: &mut [f32]) {
    wide_loops(
        #[inline(always)]
        || {
            for (out, rows) in out.chunks_mut(ROWS).zip(rows.chunks(ROWS * length)) {
                let sums = folded(rows, length, 0.0, |_, sum, x| sum + f64::from(x * x), |a, b| a + b);
                out.iter_mut().zip(sums).for_each(|(y, sum)| *y = (sum as f32).sqrt());
            }
        },
    );
}

/// Exponentials over their sum, of each row of `length`.
pub fn softmax(rows: &[f32], length: usize, out: &mut [f32]) {
    if length > LONGEST {
        let rows = rows.chunks_exact(length).zip(out.chunks_exact_mut(length));
        return rows.for_each(|(row, out)| vector::softmax(row, out));
    }
    wide_loops(
        #[inline(always)]
        || {
            for (rows, out) in rows.chunks(ROWS * length).zip(out.chunks_mut(ROWS * length)) {
                let (_, totals) = exponentials(rows, length, out);
                let factors = totals.map(|total| (1.0 / total) as f32);
                for (out, factor) in out.chunks_exact_mut(length).zip(factors) {
                    out.iter_mut().for_each(|y| *y *= factor);
                }
            }
        },
    );
}

/// The logarithm of softmax; `log` makes the logarithm of a sum.
pub fn log_softmax(rows: &[f32], length: usize, out: &mut [f32], log: impl Fn(f64) -> f32) {
    if length > LONGEST {
        let rows = rows.chunks_exact(length).zip(out.chunks_exact_mut(length));
        return rows.for_each(|(row, out)| vector::log_softmax(row, out, &log));
    }
    wide_loops(
        #[inline(always)]
        || {
            for (rows, out) in rows.chunks(ROWS * length).zip(out.chunks_mut(ROWS * length)) {
                let (most, totals) = exponentials(rows, length, out);
                let pairs = rows.chunks_exact(length).zip(out.chunks_exact_mut(length));
                for ((row, out), (m, total)) in pairs.zip(most.into_iter().zip(totals)) {
                    let log = log(total);
                    // Where the largest is infinite the differences are not numbers, as in PyTorch.
                    for (y, x) in out.iter_mut().zip(row) {
                        *y = (*x - m) - log;
                    }
                }
            }
        },
    );
}

/// The logarithms of sums of exponentials, each counted `times`.
pub fn log_sum_exp(rows: &[f32], length: usize, times: f64, out: &mut [f32]) {
    let of_row = |row: &[f32]| vector::log_sum_exp(row, times, f64::ln);
    if !(1..=LONGEST).contains(&length) {
        return alone(rows, length, out, of_row);
    }
    for (at, out) in out.chunks_mut(ROWS).enumerate() {
        let some = &rows[at * ROWS * length..][..out.len() * length];
        let (most, totals) = wide_loops(
            #[inline(always)]
            || {
                let most = largest(some, length);
                let power = |n: usize, sum: f64, x: f32| sum + f64::from(exp_of_negative(x - most[n]));
                (most, folded(some, length, 0.0, power, |a, b| a + b))
            },
        );
        for (n, (y, (m, total))) in out.iter_mut().zip(most.into_iter().zip(totals)).enumerate() {
            match m.is_infinite() {
                true => *y = of_row(&some[n * length..(n + 1) * length]),
                false => *y = (f64::from(m) + (total * times).ln()) as f32,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows with NaN and infinities among them.
    fn rows(count: usize, length: usize) -> Vec<f32> {
        let mut all: Vec<f32> =
            (0..count * length).map(|n| ((n * 7919) % 1013) as f32 / 50.0 - 9.0).collect();
        let places = [(1, f32::NAN), (2, f32::INFINITY), (3, f32::NEG_INFINITY)];
        for (row, value) in places.into_iter().filter(|(row, _)| *row < count) {
            all[row * length + length / 2] = value;
        }
        if count > 5 {
            all[4 * length..5 * length].fill(f32::NEG_INFINITY);
        }
        all
    }

    fn same(found: &[f32], wanted: &[f32], what: &str) {
        for (n, (x, y)) in found.iter().zip(wanted).enumerate() {
            let near = (x - y).abs() <= 4.0 * f32::EPSILON * y.abs().max(f32::EPSILON);
            assert!(x == y || x.is_nan() && y.is_nan() || near, "{what} at {n}: {x}, not {y}");
        }
        assert_eq!(found.len(), wanted.len(), "{what}");
    }

    #[test]
    fn rows_beside_each_other_give_what_they_give_alone() {
        for (count, length) in [(1, 1), (6, 3), (16, 16), (17, 33), (40, 64), (33, 1024), (3, 1025)] {
            let rows = rows(count, length);
            let alone = |f: &dyn Fn(&[f32], &mut [f32])| {
                let mut out = vec![0f32; rows.len()];
                rows.chunks(length).zip(out.chunks_mut(length)).for_each(|(row, out)| f(row, out));
                out
            };
            let mut out = vec![0f32; rows.len()];
            softmax(&rows, length, &mut out);
            same(&out, &alone(&|row, out| vector::softmax(row, out)), "softmax");
            let log = |total: f64| total.ln() as f32;
            log_softmax(&rows, length, &mut out, log);
            same(&out, &alone(&|row, out| vector::log_softmax(row, out, log)), "log_softmax");
            let mut out = vec![0f32; count];
            for smallest in [false, true] {
                extremes(&rows, length, smallest, &mut out);
                let wanted: Vec<f32> =
                    rows.chunks(length).map(|row| vector::extreme_of(row, smallest)).collect();
                same(&out, &wanted, "extremes");
            }
            euclidean(&rows, length, &mut out);
            let square = |x: &f32| f64::from(*x * *x);
            let norm = |row: &[f32]| (row.iter().map(square).sum::<f64>() as f32).sqrt();
            same(&out, &rows.chunks(length).map(norm).collect::<Vec<f32>>(), "euclidean");
            let mut totals = vec![0f64; count];
            sums(&rows, length, &mut totals);
            let totals: Vec<f32> = totals.into_iter().map(|sum| sum as f32).collect();
            same(
                &totals,
                &rows.chunks(length).map(|row| vector::sum(row) as f32).collect::<Vec<f32>>(),
                "sums",
            );
            log_sum_exp(&rows, length, 2.0, &mut out);
            let wanted: Vec<f32> =
                rows.chunks(length).map(|row| vector::log_sum_exp(row, 2.0, f64::ln)).collect();
            same(&out, &wanted, "log_sum_exp");
        }
    }

    #[test]
    fn empty_rows_have_the_worst_of_all() {
        let mut out = [0f32; 2];
        extremes(&[], 0, false, &mut out);
        assert_eq!(out, [f32::NEG_INFINITY; 2]);
        log_sum_exp(&[], 0, 1.0, &mut out);
        assert_eq!(out, [f32::NEG_INFINITY; 2]);
    }
}
