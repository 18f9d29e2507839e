//! Triangular factors: LU with partial pivoting and Cholesky.

use super::{Field, Mat};
use crate::resources::budget;

/// LU factors packed into one matrix, the rows exchanged (from 1, one after the other), and the first zero pivot
/// (from 1; 0 if there is none).
pub struct Lu<F> {
    /// Unit lower triangle and upper triangle.
    pub packed: Mat<F>,
    /// Row `i` was exchanged with row `pivots[i] - 1`.
    pub pivots: Vec<i64>,
    /// 0, or the first zero on the diagonal, from 1.
    pub info: i64,
}

/// Factors a matrix of any shape; without pivoting rows stay where they are.
pub fn lu<F: Field>(matrix: &Mat<F>, pivot: bool) -> Lu<F> {
    let mut a = matrix.clone();
    let steps = a.rows.min(a.cols);
    let (mut pivots, mut info) = (Vec::with_capacity(steps), 0);
    for k in (0..steps).take_while(|_| !budget::is_stopped()) {
        let mut best = k;
        if pivot {
            for i in k + 1..a.rows {
                if a[(i, k)].size() > a[(best, k)].size() {
                    best = i;
                }
            }
        }
        pivots.push(best as i64 + 1);
        a.swap_rows(k, best);
        let head = a[(k, k)];
        if head.size() == 0.0 {
            info = if info == 0 { k as i64 + 1 } else { info };
            if pivot {
                continue;
            }
        }
        for i in k + 1..a.rows {
            let factor = a[(i, k)] / head;
            a[(i, k)] = factor;
            for j in k + 1..a.cols {
                a[(i, j)] = a[(i, j)] - factor * a[(k, j)];
            }
        }
    }
    pivots.extend(pivots.len() as i64 + 1..=steps as i64);
    Lu { packed: a, pivots, info }
}

impl<F: Field> Lu<F> {
    /// 1 or -1, by the number of exchanges.
    pub fn sign(&self) -> f64 {
        let swaps = self.pivots.iter().enumerate().filter(|(i, p)| **p != *i as i64 + 1).count();
        if swaps % 2 == 0 { 1.0 } else { -1.0 }
    }
}

/// Where each row of the original matrix stands after the exchanges: `order[i]` is the row that is now row `i`.
pub fn permutation(pivots: &[i64], rows: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..rows).collect();
    for (i, p) in pivots.iter().enumerate() {
        if let Ok(p) = usize::try_from(p - 1)
            && p < rows
            && i < rows
        {
            order.swap(i, p);
        }
    }
    order
}

/// The lower factor of a Hermitian matrix of which the lower triangle is read, and the first leading minor that is
/// not positive (from 1; 0 if all are).
pub fn cholesky<F: Field>(matrix: &Mat<F>) -> (Mat<F>, i64) {
    let n = matrix.rows;
    let mut l = Mat::from_fn(n, n, |i, j| if j <= i { matrix[(i, j)] } else { F::ZERO });
    for j in (0..n).take_while(|_| !budget::is_stopped()) {
        let mut d = l[(j, j)].re();
        for k in 0..j {
            let x = l[(j, k)].modulus();
            d -= x * x;
        }
        if !(d > 0.0) {
            l[(j, j)] = F::of(d);
            return (l, j as i64 + 1);
        }
        let root = d.sqrt();
        l[(j, j)] = F::of(root);
        for i in j + 1..n {
            let mut x = l[(i, j)];
            for k in 0..j {
                x = x - l[(i, k)] * l[(j, k)].conj();
            }
            l[(i, j)] = x / F::of(root);
        }
    }
    (l, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lu_multiplies_back() {
        let a = Mat { rows: 2, cols: 2, data: vec![1.0, 2.0, 4.0, 3.0].into() };
        let f = lu(&a, true);
        assert_eq!((f.pivots.clone(), f.info, f.sign()), (vec![2, 2], 0, -1.0));
        assert_eq!(f.packed.data, [4.0, 3.0, 0.25, 1.25]);
        assert_eq!(lu(&Mat::<f64>::zeros(2, 2), true).info, 1);
    }

    #[test]
    fn cholesky_says_which_minor_fails() {
        let a = Mat { rows: 2, cols: 2, data: vec![4.0, 0.0, 2.0, 5.0].into() };
        assert_eq!(cholesky(&a), (Mat { rows: 2, cols: 2, data: vec![2.0, 0.0, 1.0, 2.0].into() }, 0));
        let bad = Mat { rows: 2, cols: 2, data: vec![1.0, 0.0, 2.0, 1.0].into() };
        assert_eq!(cholesky(&bad).1, 2);
    }
}
