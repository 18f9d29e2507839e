//! Solving with factors.

use super::factor::Lu;
use super::{Field, Mat};
use crate::resources::budget;

/// Which triangle, and whether its diagonal counts as ones.
#[derive(Clone, Copy, Debug)]
pub struct Triangle {
    /// Upper, or lower.
    pub upper: bool,
    /// Ones on the diagonal, whatever stands there.
    pub unit: bool,
}

/// X of T X = B, in place of B.
pub fn triangular<F: Field>(t: &Mat<F>, b: &mut Mat<F>, shape: Triangle) {
    let n = t.rows;
    for step in (0..n).take_while(|_| !budget::is_stopped()) {
        let i = if shape.upper { n - 1 - step } else { step };
        let known = if shape.upper { i + 1..n } else { 0..i };
        for c in 0..b.cols {
            let mut x = b[(i, c)];
            for k in known.clone() {
                x = x - t[(i, k)] * b[(k, c)];
            }
            b[(i, c)] = if shape.unit { x } else { x / t[(i, i)] };
        }
    }
}

/// X of A X = B for a factored square matrix A.
pub fn with_lu<F: Field>(lu: &Lu<F>, b: &Mat<F>) -> Mat<F> {
    let mut x = b.clone();
    for (i, p) in lu.pivots.iter().enumerate() {
        x.swap_rows(i, ((*p - 1).max(0) as usize).min(b.rows.saturating_sub(1)));
    }
    triangular(&lu.packed, &mut x, Triangle { upper: false, unit: true });
    triangular(&lu.packed, &mut x, Triangle { upper: true, unit: false });
    x
}

/// X of A^H X = B for a factored square matrix A.
pub fn with_lu_adjoint<F: Field>(lu: &Lu<F>, b: &Mat<F>) -> Mat<F> {
    let adjoint = lu.packed.adjoint();
    let mut x = b.clone();
    triangular(&adjoint, &mut x, Triangle { upper: false, unit: false });
    triangular(&adjoint, &mut x, Triangle { upper: true, unit: true });
    for (i, p) in lu.pivots.iter().enumerate().rev() {
        x.swap_rows(i, ((*p - 1).max(0) as usize).min(b.rows.saturating_sub(1)));
    }
    x
}
