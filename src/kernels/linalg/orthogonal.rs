//! Householder reflections: QR factors, packed as LAPACK packs them, and products with them.

use super::{Field, Mat};
use crate::resources::budget;
use std::ops::Range;

/// Reflection that maps the column `a[from.., column]` to a multiple of the first unit vector; the vector (its head is
/// an implied 1) replaces the tail, the multiple the head. Gives the scale `tau`: H = 1 - tau v v^H, and H^H is applied.
pub fn reflector<F: Field>(a: &mut Mat<F>, from: usize, column: usize) -> F {
    let alpha = a[(from, column)];
    let tail = (from + 1..a.rows).fold(0.0f64, |sum, i| sum.hypot(a[(i, column)].modulus()));
    if tail == 0.0 && alpha == F::of(alpha.re()) {
        return F::ZERO;
    }
    let beta = F::of(-alpha.modulus().hypot(tail).copysign(alpha.re()));
    let tau = (beta - alpha) / beta;
    let scale = F::ONE / (alpha - beta);
    for i in from + 1..a.rows {
        a[(i, column)] = a[(i, column)] * scale;
    }
    a[(from, column)] = beta;
    tau
}

/// Applies 1 - tau v v^H from the left to columns `columns` of `a`, where `v` begins at row `from`. Row after row, as
/// matrices lie.
fn reflect<F: Field>(a: &mut Mat<F>, v: &[F], from: usize, tau: F, columns: Range<usize>) {
    if tau == F::ZERO || columns.is_empty() {
        return;
    }
    let cols = a.cols;
    let row = |i: usize| (from + i) * cols + columns.start..(from + i) * cols + columns.end;
    let mut dots = vec![F::ZERO; columns.len()];
    for (i, v) in v.iter().enumerate() {
        dots.iter_mut().zip(&a.data[row(i)]).for_each(|(dot, x)| *dot = *dot + v.conj() * *x);
    }
    dots.iter_mut().for_each(|dot| *dot = tau * *dot);
    for (i, v) in v.iter().enumerate() {
        a.data[row(i)].iter_mut().zip(&dots).for_each(|(x, dot)| *x = *x - *v * *dot);
    }
}

/// The vector of a reflection: 1, and what stands below the diagonal in a column of packed factors.
fn vector<F: Field>(packed: &Mat<F>, column: usize) -> Vec<F> {
    let tail = (column + 1..packed.rows).map(|i| packed[(i, column)]);
    std::iter::once(F::ONE).chain(tail).collect()
}

/// R above, the reflections' vectors below the diagonal, and their scales.
pub fn qr<F: Field>(matrix: &Mat<F>) -> (Mat<F>, Vec<F>) {
    let mut a = matrix.clone();
    let steps = a.rows.min(a.cols);
    let mut taus = vec![F::ZERO; steps];
    for (k, scale) in taus.iter_mut().enumerate().take_while(|_| !budget::is_stopped()) {
        let tau = reflector(&mut a, k, k);
        *scale = tau;
        let (v, columns) = (vector(&a, k), k + 1..a.cols);
        reflect(&mut a, &v, k, tau.conj(), columns);
    }
    (a, taus)
}

/// The first `columns` columns of the product of the reflections.
pub fn product<F: Field>(packed: &Mat<F>, taus: &[F], columns: usize) -> Mat<F> {
    let mut q = Mat::identity(packed.rows, columns);
    for (k, tau) in taus.iter().enumerate().rev().take_while(|_| !budget::is_stopped()) {
        // The columns of the identity before `k` have nothing below it.
        reflect(&mut q, &vector(packed, k), k, *tau, k.min(columns)..columns);
    }
    q
}

/// Q C, or Q^H C, for the product Q of the reflections.
pub fn apply<F: Field>(packed: &Mat<F>, taus: &[F], c: &Mat<F>, adjoint: bool) -> Mat<F> {
    let mut out = c.clone();
    let columns = c.cols;
    for step in (0..taus.len()).take_while(|_| !budget::is_stopped()) {
        let k = if adjoint { step } else { taus.len() - 1 - step };
        let tau = if adjoint { taus[k].conj() } else { taus[k] };
        reflect(&mut out, &vector(packed, k), k, tau, 0..columns);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex64;

    #[test]
    fn factors_multiply_back() {
        let a = Mat::from_fn(3, 2, |i, j| Complex64::new((i * 2 + j) as f64, j as f64 - 1.0));
        let (packed, taus) = qr(&a);
        let q = product(&packed, &taus, 2);
        let r = Mat::from_fn(2, 2, |i, j| if i <= j { packed[(i, j)] } else { Complex64::ZERO });
        let back = q.times(&r);
        assert!(back.data.iter().zip(&a.data).all(|(x, y)| (x - y).norm() < 1e-12));
        let same = apply(&packed, &taus, &apply(&packed, &taus, &a, true), false);
        assert!(same.data.iter().zip(&a.data).all(|(x, y)| (x - y).norm() < 1e-12));
    }
}
