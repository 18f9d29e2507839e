//! Singular values by one-sided Jacobi rotations (Hestenes 1958), which finds small ones exactly.

use super::{Field, Mat};
use crate::resources::budget;

/// A = U diag(s) V^H with descending s; U has `rows` columns and V `cols` if `full`, otherwise as many as s.
pub struct Svd<F> {
    /// Left vectors in the columns.
    pub u: Mat<F>,
    /// Singular values.
    pub s: Vec<f64>,
    /// Right vectors in the columns.
    pub v: Mat<F>,
}

/// The decomposition of a matrix of any shape.
pub fn svd<F: Field>(matrix: &Mat<F>, full: bool) -> Svd<F> {
    if matrix.rows < matrix.cols {
        let flipped = svd(&matrix.adjoint(), full);
        return Svd { u: flipped.v, s: flipped.s, v: flipped.u };
    }
    let (m, n) = (matrix.rows, matrix.cols);
    // Columns as rows, so that a rotation reads memory in order.
    let mut a = matrix.transpose();
    let mut v = Mat::<F>::identity(n, n);
    for _ in 0..60 {
        if !sweep(&mut a, &mut v) {
            break;
        }
    }
    let norm = |j: usize| (0..m).fold(0.0f64, |sum, i| sum.hypot(a[(j, i)].modulus()));
    let norms: Vec<f64> = (0..n).map(norm).collect();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|x, y| norms[*y].total_cmp(&norms[*x]));
    let s: Vec<f64> = order.iter().map(|j| norms[*j]).collect();
    let floor = s.first().copied().unwrap_or(0.0) * f64::EPSILON * m.max(1) as f64;
    let mut columns: Vec<Option<Vec<F>>> = order
        .iter()
        .map(|j| (norms[*j] > floor).then(|| (0..m).map(|i| over(a[(*j, i)], norms[*j])).collect()))
        .collect();
    columns.resize(if full { m } else { n }, None);
    let u = complete(columns, m);
    let v = Mat::from_fn(n, n, |i, j| v[(order[j], i)]);
    Svd { u, s, v }
}

/// A number divided by a real one: complex division would square that, to zero where it is small.
fn over<F: Field>(x: F, by: f64) -> F {
    const SMALL: f64 = 1e-140;
    const UP: f64 = 1e160;
    if by < SMALL { (x * F::of(UP)) / F::of(by * UP) } else { x / F::of(by) }
}

/// Makes each pair of columns orthogonal once; whether any was not.
fn sweep<F: Field>(a: &mut Mat<F>, v: &mut Mat<F>) -> bool {
    let (n, m) = (a.rows, a.cols);
    let mut changed = false;
    for p in 0..n {
        if budget::is_stopped() {
            return false;
        }
        for q in p + 1..n {
            let (mut alpha, mut beta, mut gamma) = (0.0, 0.0, F::ZERO);
            for i in 0..m {
                let (x, y) = (a[(p, i)], a[(q, i)]);
                alpha += (x.conj() * x).re();
                beta += (y.conj() * y).re();
                gamma = gamma + x.conj() * y;
            }
            let size = gamma.modulus();
            if !(size > f64::EPSILON * (alpha * beta).sqrt()) || size < f64::MIN_POSITIVE {
                continue;
            }
            changed = true;
            let zeta = (beta - alpha) / (2.0 * size);
            let t = 1f64.copysign(zeta) / (zeta.abs() + zeta.hypot(1.0));
            let c = 1.0 / t.hypot(1.0);
            let (phase, c, s) = (over(gamma, size), F::of(c), F::of(c * t));
            for matrix in [&mut *a, &mut *v] {
                for i in 0..matrix.cols {
                    let (x, y) = (matrix[(p, i)], matrix[(q, i)] * phase.conj());
                    matrix[(p, i)] = c * x - s * y;
                    matrix[(q, i)] = s * x + c * y;
                }
            }
        }
    }
    changed
}

/// Fills columns that are missing, so that all are orthonormal: reflections that turn the known ones into the first unit vectors
/// (Householder) turn the other unit vectors into what lies across them. Takes about `2 m² n` multiplications for `n` known columns.
fn complete<F: Field>(columns: Vec<Option<Vec<F>>>, m: usize) -> Mat<F> {
    let known: Vec<&Vec<F>> = columns.iter().flatten().collect();
    let mut reflectors: Vec<(Vec<F>, f64)> = Vec::with_capacity(known.len());
    for (k, column) in known.iter().enumerate() {
        if budget::is_stopped() {
            break;
        }
        let mut x = (*column).clone();
        reflectors.iter().for_each(|(v, scale)| reflect(v, *scale, &mut x));
        x.iter_mut().take(k).for_each(|x| *x = F::ZERO);
        let norm = x.iter().fold(0.0f64, |sum, x| sum.hypot(x.modulus()));
        if let Some(first) = x.get_mut(k) {
            let size = first.modulus();
            let phase = if size > 0.0 { over(*first, size) } else { F::ONE };
            *first = *first + phase * F::of(norm);
        }
        let square: f64 = x.iter().map(|x| (x.conj() * *x).re()).sum();
        let scale = if square > 0.0 { 2.0 / square } else { 0.0 };
        reflectors.push((x, scale));
    }
    let across = |unit: usize| {
        let mut x = vec![F::ZERO; m];
        if let Some(one) = x.get_mut(unit) {
            *one = F::ONE;
        }
        reflectors.iter().rev().for_each(|(v, scale)| reflect(v, *scale, &mut x));
        x
    };
    let mut units = known.len()..;
    let mut out: Vec<Vec<F>> = Vec::with_capacity(columns.len());
    for column in &columns {
        out.push(match column {
            Some(column) => column.clone(),
            None => across(units.next().unwrap_or(m)),
        });
    }
    Mat::from_fn(m, out.len(), |i, j| out[j][i])
}

/// `x - scale v (vᴴ x)`
fn reflect<F: Field>(v: &[F], scale: f64, x: &mut [F]) {
    let dot = v.iter().zip(&*x).fold(F::ZERO, |sum, (v, x)| sum + v.conj() * *x) * F::of(scale);
    x.iter_mut().zip(v).for_each(|(x, v)| *x = *x - *v * dot);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends at once, though there are too many rows to iterate over.
    #[test]
    fn empty_columns_of_any_length_have_no_values() {
        let empty = Mat::from_fn(1 << 40, 0, |_, _| 0.0f64);
        let found = svd(&empty, false);
        assert!(found.s.is_empty() && found.u.rows == 1 << 40);
        assert!(empty.times(&Mat::zeros(0, 0)).data.is_empty());
    }

    #[test]
    fn factors_multiply_back_and_are_orthonormal() {
        let a = Mat::from_fn(4, 3, |i, j| (i * j) as f64 - i as f64);
        let f = svd(&a, true);
        assert!(f.s[2] < 1e-12, "rank two at most");
        let s = Mat::from_fn(4, 3, |i, j| if i == j { f.s[i] } else { 0.0 });
        let back = f.u.times(&s).times(&f.v.adjoint());
        assert!(back.data.iter().zip(&a.data).all(|(x, y)| (x - y).abs() < 1e-12));
        let one = f.u.adjoint().times(&f.u);
        assert!(one.data.iter().zip(&Mat::<f64>::identity(4, 4).data).all(|(x, y)| (x - y).abs() < 1e-12));
    }
}
