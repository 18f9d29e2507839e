//! L D L^T and L D L^H of matrices that need not be definite: Bunch and Kaufman's pivoting (Some stable methods for
//! calculating inertia and solving symmetric linear systems, 1977), packed as LAPACK packs it, lower triangle.

use super::{Field, Mat};
use crate::resources::budget;

/// The packed factors; pivots (a negative pair marks a block of two); the first zero block from 1, or 0.
pub struct Ldl<F> {
    /// D on the diagonal and below it for blocks of two, L below.
    pub packed: Mat<F>,
    /// Exchanges, from 1.
    pub pivots: Vec<i64>,
    /// 0, or the first zero block.
    pub info: i64,
}

fn flip<F: Field>(x: F, hermitian: bool) -> F {
    if hermitian { x.conj() } else { x }
}

/// Factors the lower triangle. `single` rounds every step to float32, since nearly dependent columns make small
/// pivots that show the rounding errors before them.
pub fn ldl<F: Field>(matrix: &Mat<F>, hermitian: bool, single: bool) -> Ldl<F> {
    let round: fn(F) -> F = if single { F::single } else { |x| x };
    let n = matrix.rows;
    let mut a = Mat::from_fn(n, n, |i, j| if j <= i { matrix[(i, j)] } else { F::ZERO });
    let (mut pivots, mut info) = (vec![0; n], 0);
    let mut k = 0;
    while k < n && !budget::is_stopped() {
        let (pivot, width) = choose(&a, k, hermitian);
        let Some(pivot) = pivot else {
            info = if info == 0 { k as i64 + 1 } else { info };
            pivots[k] = k as i64 + 1;
            k += 1;
            continue;
        };
        exchange(&mut a, k, k + width - 1, pivot, hermitian);
        if width == 1 {
            eliminate_one(&mut a, k, hermitian, round);
            pivots[k] = pivot as i64 + 1;
        } else {
            eliminate_two(&mut a, k, hermitian, round);
            pivots[k] = -(pivot as i64 + 1);
            pivots[k + 1] = pivots[k];
        }
        k += width;
    }
    Ldl { packed: a, pivots, info }
}

/// The row to bring to the front and the width of the block; None where the column is zero.
fn choose<F: Field>(a: &Mat<F>, k: usize, hermitian: bool) -> (Option<usize>, usize) {
    let n = a.rows;
    let alpha = (1.0 + 17f64.sqrt()) / 8.0;
    let diagonal = |i: usize| if hermitian { a[(i, i)].re().abs() } else { a[(i, i)].size() };
    let head = diagonal(k);
    let (mut at, mut column) = (k, 0.0);
    for i in k + 1..n {
        if a[(i, k)].size() > column {
            (at, column) = (i, a[(i, k)].size());
        }
    }
    if head.max(column) == 0.0 || head.is_nan() {
        return (None, 1);
    }
    if head >= alpha * column {
        return (Some(k), 1);
    }
    let in_row = (k..at).map(|j| a[(at, j)].size());
    let row = in_row.chain((at + 1..n).map(|i| a[(i, at)].size())).fold(0.0, f64::max);
    if head >= alpha * column * (column / row) {
        (Some(k), 1)
    } else if diagonal(at) >= alpha * row {
        (Some(at), 1)
    } else {
        (Some(at), 2)
    }
}

/// Exchanges rows and columns `kk` and `kp` of the part from `k` on.
fn exchange<F: Field>(a: &mut Mat<F>, k: usize, kk: usize, kp: usize, hermitian: bool) {
    let n = a.rows;
    let mut swap = |x: (usize, usize), y: (usize, usize)| {
        let held = a[x];
        a[x] = a[y];
        a[y] = held;
    };
    if kp != kk {
        for i in kp + 1..n {
            swap((i, kk), (i, kp));
        }
        for j in kk + 1..kp {
            swap((j, kk), (kp, j));
        }
        swap((kk, kk), (kp, kp));
        if kk > k {
            swap((kk, k), (kp, k));
        }
        if hermitian {
            for j in kk + 1..kp {
                a[(j, kk)] = a[(j, kk)].conj();
                a[(kp, j)] = a[(kp, j)].conj();
            }
            a[(kp, kk)] = a[(kp, kk)].conj();
        }
    }
    if hermitian {
        for i in [k, kk, kp] {
            a[(i, i)] = F::of(a[(i, i)].re());
        }
    }
}

fn eliminate_one<F: Field>(a: &mut Mat<F>, k: usize, hermitian: bool, round: fn(F) -> F) {
    let n = a.rows;
    let scale = round(F::ONE / a[(k, k)]);
    for j in k + 1..n {
        let factor = round(scale * flip(a[(j, k)], hermitian));
        for i in j..n {
            a[(i, j)] = round(a[(i, j)] - a[(i, k)] * factor);
        }
    }
    for i in k + 1..n {
        a[(i, k)] = round(a[(i, k)] * scale);
    }
}

/// As [`eliminate_one`] for a block of two; divided by the element off its diagonal first, which is the largest.
fn eliminate_two<F: Field>(a: &mut Mat<F>, k: usize, hermitian: bool, round: fn(F) -> F) {
    let n = a.rows;
    let corner = a[(k + 1, k)];
    let other = flip(corner, hermitian);
    let (d11, d22) = (round(a[(k + 1, k + 1)] / corner), round(a[(k, k)] / other));
    let t = round(F::ONE / round(d11 * d22 - F::ONE));
    let (first_scale, second_scale) = (round(t / other), round(t / corner));
    for j in k + 2..n {
        let (x, y) = (a[(j, k)], a[(j, k + 1)]);
        let first = round(first_scale * round(d11 * x - y));
        let second = round(second_scale * round(d22 * y - x));
        for i in j..n {
            let once = round(a[(i, j)] - a[(i, k)] * flip(first, hermitian));
            a[(i, j)] = round(once - a[(i, k + 1)] * flip(second, hermitian));
        }
        a[(j, k)] = first;
        a[(j, k + 1)] = second;
    }
}

/// X of A X = B from the packed factors of A.
pub fn solve<F: Field>(a: &Mat<F>, pivots: &[i64], b: &Mat<F>, hermitian: bool) -> Mat<F> {
    let n = a.rows;
    let place = |p: i64| (p.unsigned_abs() as usize).clamp(1, n.max(1)) - 1;
    let mut x = b.clone();
    let mut k = 0;
    while k < n {
        let width = if pivots[k] > 0 || k + 1 == n { 1 } else { 2 };
        x.swap_rows(k + width - 1, place(pivots[k]));
        for c in 0..x.cols {
            for i in k + width..n {
                for d in 0..width {
                    x[(i, c)] = x[(i, c)] - a[(i, k + d)] * x[(k + d, c)];
                }
            }
            if width == 1 {
                x[(k, c)] = x[(k, c)] / a[(k, k)];
            } else {
                let (d11, d21, d22) = (a[(k, k)], a[(k + 1, k)], a[(k + 1, k + 1)]);
                let (d12, p, q) = (flip(d21, hermitian), x[(k, c)], x[(k + 1, c)]);
                let determinant = d11 * d22 - d21 * d12;
                x[(k, c)] = (d22 * p - d12 * q) / determinant;
                x[(k + 1, c)] = (d11 * q - d21 * p) / determinant;
            }
        }
        k += width;
    }
    let mut end = n;
    while end > 0 {
        let width = if pivots[end - 1] > 0 || end == 1 { 1 } else { 2 };
        let k = end - width;
        for c in 0..x.cols {
            for d in 0..width {
                for i in end..n {
                    x[(k + d, c)] = x[(k + d, c)] - flip(a[(i, k + d)], hermitian) * x[(i, c)];
                }
            }
        }
        x.swap_rows(end - 1, place(pivots[k]));
        end = k;
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_of_two_solve() {
        let a = Mat { rows: 3, cols: 3, data: vec![0.0, 1.0, 2.0, 1.0, 0.0, 3.0, 2.0, 3.0, 0.0].into() };
        let f = ldl(&a, false, false);
        assert!(f.pivots.iter().any(|p| *p < 0) && f.info == 0);
        let b = Mat { rows: 3, cols: 1, data: vec![1.0, 2.0, 3.0].into() };
        let back = a.times(&solve(&f.packed, &f.pivots, &b, false));
        assert!(back.data.iter().zip(&b.data).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
