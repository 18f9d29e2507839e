//! Eigenvalues and eigenvectors of Hermitian matrices: Householder reduction to a tridiagonal matrix, then the implicit
//! QL or QR method (Wilkinson and Reinsch, Linear Algebra, 1971, contribution II/4). The steps and signs are those of
//! LAPACK's `sytrd` (lower triangle) and `steqr`, so that eigenvectors point the same way.

use super::orthogonal::reflector;
use super::{Field, Mat};
use crate::resources::{budget, memory};
use std::cmp::Ordering;

/// Eigenvalues in ascending order and eigenvectors in the columns; the upper or the lower triangle is read.
/// `epsilon` is the precision of the dtype, which decides how many steps are taken and so which way vectors point.
pub fn eigh<F: Field>(matrix: &Mat<F>, upper: bool, epsilon: f64) -> (Vec<f64>, Mat<F>) {
    let n = matrix.rows;
    let turned = |m: &Mat<F>| Mat::from_fn(n, n, |i, j| m[(n - 1 - i, n - 1 - j)]);
    // The upper triangle is reduced from its other end.
    let (mut tri, mut q) = if upper { tridiagonal(&turned(matrix)) } else { tridiagonal(matrix) };
    tri.epsilon = epsilon / 2.0;
    if upper {
        q = turned(&q);
        tri.d.reverse();
        tri.e.reverse();
    }
    tri.diagonalize();
    let vectors = q.times(&Mat {
        rows: tri.n,
        cols: tri.n,
        data: memory::taken(tri.z.iter().map(|x| F::of(*x)).collect()),
    });
    let mut order: Vec<usize> = (0..tri.n).collect();
    // The order of a selection sort, which decides about equal eigenvalues.
    for i in 0..tri.n {
        let mut least = i;
        for j in i + 1..tri.n {
            if tri.d[order[j]] < tri.d[order[least]] {
                least = j;
            }
        }
        order.swap(i, least);
    }
    let values = order.iter().map(|at| tri.d[*at]).collect();
    (values, Mat::from_fn(tri.n, tri.n, |i, j| vectors[(i, order[j])]))
}

/// A real symmetric tridiagonal matrix, and the rotations applied to it so far.
struct Tridiagonal {
    n: usize,
    d: Vec<f64>,
    e: Vec<f64>,
    z: Vec<f64>,
    epsilon: f64,
}

/// Q^H A Q is tridiagonal and real.
fn tridiagonal<F: Field>(matrix: &Mat<F>) -> (Tridiagonal, Mat<F>) {
    let n = matrix.rows;
    let mut a = Mat::from_fn(n, n, |i, j| match i.cmp(&j) {
        Ordering::Greater => matrix[(i, j)],
        Ordering::Equal => F::of(matrix[(i, i)].re()),
        Ordering::Less => matrix[(j, i)].conj(),
    });
    let mut q = Mat::<F>::identity(n, n);
    let mut reflections = Vec::new();
    let mut e = Vec::new();
    for k in (0..n.saturating_sub(1)).take_while(|_| !budget::is_stopped()) {
        let mut column = Mat::from_fn(n, 1, |i, _| a[(i, k)]);
        let tau = reflector(&mut column, k + 1, 0);
        e.push(column[(k + 1, 0)].re());
        let mut v = column.data;
        v[..=k].fill(F::ZERO);
        v[k + 1] = F::ONE;
        if tau != F::ZERO {
            similarity(&mut a, &v, tau, k + 1);
        }
        reflections.push((v, tau));
    }
    e.extend((e.len() + 1..n).map(|_| 0.0));
    for (v, tau) in reflections.iter().rev() {
        if budget::is_stopped() {
            break;
        }
        for c in 0..n {
            let dot = (0..n).fold(F::ZERO, |sum, i| sum + v[i].conj() * q[(i, c)]);
            for i in 0..n {
                q[(i, c)] = q[(i, c)] - *tau * v[i] * dot;
            }
        }
    }
    let d = (0..n).map(|i| a[(i, i)].re()).collect();
    let z = (0..n * n).map(|i| if i / n == i % n { 1.0 } else { 0.0 }).collect();
    (Tridiagonal { n, d, e, z, epsilon: f64::EPSILON / 2.0 }, q)
}

/// H^H A H for H = 1 - tau v v^H on the part from `from` on, as a change of rank two.
fn similarity<F: Field>(a: &mut Mat<F>, v: &[F], tau: F, from: usize) {
    let n = a.rows;
    let mut w: Vec<F> = vec![F::ZERO; n];
    for i in from..n {
        w[i] = tau * (from..n).fold(F::ZERO, |sum, j| sum + a[(i, j)] * v[j]);
    }
    let dot = (from..n).fold(F::ZERO, |sum, i| sum + w[i].conj() * v[i]);
    let shift = F::of(-0.5) * tau * dot;
    for i in from..n {
        w[i] = w[i] + shift * v[i];
    }
    for i in from..n {
        for j in from..n {
            a[(i, j)] = a[(i, j)] - v[i] * w[j].conj() - w[i] * v[j].conj();
        }
    }
}

/// Rotation that turns (f, g) into (r, 0): c, s, r.
fn rotation(f: f64, g: f64) -> (f64, f64, f64) {
    if g == 0.0 {
        (1.0, 0.0, f)
    } else if f == 0.0 {
        (0.0, 1.0, g)
    } else {
        let r = f.hypot(g);
        let r = if f.abs() > g.abs() { r.copysign(f) } else { r };
        (f / r, g / r, r)
    }
}

/// Eigenvalues of [[a, b], [b, c]], the one of larger magnitude first, and its unit vector.
fn two_by_two(a: f64, b: f64, c: f64) -> (f64, f64, f64, f64) {
    let (sum, difference, twice) = (a + c, a - c, b + b);
    let root = difference.hypot(twice);
    let (large, small) = if a.abs() > c.abs() { (a, c) } else { (c, a) };
    let sign: f64 = if sum < 0.0 { -1.0 } else { 1.0 };
    let first = if sum == 0.0 { 0.5 * root } else { 0.5 * (sum + sign * root) };
    let second = if sum == 0.0 { -0.5 * root } else { (large / first) * small - (b / first) * b };
    let sign2: f64 = if difference >= 0.0 { 1.0 } else { -1.0 };
    let cs = difference + sign2 * root;
    let (mut c1, mut s1);
    if cs.abs() > twice.abs() {
        let cotangent = -twice / cs;
        s1 = 1.0 / (1.0 + cotangent * cotangent).sqrt();
        c1 = cotangent * s1;
    } else if twice == 0.0 {
        (c1, s1) = (1.0, 0.0);
    } else {
        let tangent = -cs / twice;
        c1 = 1.0 / (1.0 + tangent * tangent).sqrt();
        s1 = tangent * c1;
    }
    if sign == sign2 {
        (c1, s1) = (-s1, c1);
    }
    (first, second, c1, s1)
}

impl Tridiagonal {
    /// Rotates columns j and j + 1 of the vectors.
    fn rotate(&mut self, j: usize, c: f64, s: f64) {
        for row in self.z.chunks_exact_mut(self.n) {
            let held = row[j + 1];
            row[j + 1] = c * held - s * row[j];
            row[j] = s * held + c * row[j];
        }
    }

    fn negligible(&self, m: usize) -> bool {
        let eps2 = self.epsilon * self.epsilon;
        self.e[m] * self.e[m] <= eps2 * self.d[m].abs() * self.d[m + 1].abs() + f64::MIN_POSITIVE
    }

    /// Splits into blocks and works each from its end of smaller magnitude.
    fn diagonalize(&mut self) {
        let mut left = 30 * self.n;
        let mut start = 0;
        while start < self.n && !budget::is_stopped() {
            let mut end = start;
            while end + 1 < self.n {
                let bound = self.d[end].abs().sqrt() * self.d[end + 1].abs().sqrt() * self.epsilon;
                if self.e[end] == 0.0 || self.e[end].abs() <= bound {
                    self.e[end] = 0.0;
                    break;
                }
                end += 1;
            }
            if self.d[end].abs() < self.d[start].abs() {
                self.upwards(start, end, &mut left);
            } else {
                self.downwards(start, end, &mut left);
            }
            start = end + 1;
        }
    }

    /// QL: eigenvalues come out at the front of the block.
    fn downwards(&mut self, mut l: usize, end: usize, left: &mut usize) {
        while l <= end {
            let m = (l..end).find(|m| self.negligible(*m)).unwrap_or(end);
            if m < end {
                self.e[m] = 0.0;
            }
            if m == l {
                l += 1;
                continue;
            }
            if m == l + 1 {
                let (first, second, c, s) = two_by_two(self.d[l], self.e[l], self.d[l + 1]);
                self.rotate(l, c, s);
                (self.d[l], self.d[l + 1], self.e[l]) = (first, second, 0.0);
                l += 2;
                continue;
            }
            if *left == 0 || budget::is_stopped() {
                return;
            }
            *left -= 1;
            let mut p = self.d[l];
            let mut g = (self.d[l + 1] - p) / (2.0 * self.e[l]);
            g = self.d[m] - p + self.e[l] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c) = (1.0, 1.0);
            p = 0.0;
            let mut turns = Vec::with_capacity(m - l);
            for i in (l..m).rev() {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let r;
                (c, s, r) = rotation(g, f);
                if i + 1 != m {
                    self.e[i + 1] = r;
                }
                g = self.d[i + 1] - p;
                let r = (self.d[i] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i + 1] = g + p;
                g = c * r - b;
                turns.push((i, c, -s));
            }
            turns.into_iter().for_each(|(i, c, s)| self.rotate(i, c, s));
            self.d[l] -= p;
            self.e[l] = g;
        }
    }

    /// QR: eigenvalues come out at the back of the block.
    fn upwards(&mut self, start: usize, end: usize, left: &mut usize) {
        let mut rest = end + 1;
        while rest > start {
            let l = rest - 1;
            let m = (start + 1..=l).rev().find(|m| self.negligible(m - 1)).unwrap_or(start);
            if m > start {
                self.e[m - 1] = 0.0;
            }
            if m == l {
                rest -= 1;
                continue;
            }
            if m + 1 == l {
                let (first, second, c, s) = two_by_two(self.d[m], self.e[m], self.d[l]);
                self.rotate(m, c, s);
                (self.d[m], self.d[l], self.e[m]) = (first, second, 0.0);
                rest -= 2;
                continue;
            }
            if *left == 0 || budget::is_stopped() {
                return;
            }
            *left -= 1;
            let mut p = self.d[l];
            let mut g = (self.d[l - 1] - p) / (2.0 * self.e[l - 1]);
            g = self.d[m] - p + self.e[l - 1] / (g + g.hypot(1.0).copysign(g));
            let (mut s, mut c) = (1.0, 1.0);
            p = 0.0;
            for i in m..l {
                let (f, b) = (s * self.e[i], c * self.e[i]);
                let r;
                (c, s, r) = rotation(g, f);
                if i != m {
                    self.e[i - 1] = r;
                }
                g = self.d[i] - p;
                let r = (self.d[i + 1] - g) * s + 2.0 * c * b;
                p = s * r;
                self.d[i] = g + p;
                g = c * r - b;
                self.rotate(i, c, s);
            }
            self.d[l] -= p;
            self.e[l - 1] = g;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use num_complex::Complex64;

    #[test]
    fn vectors_diagonalize() {
        let b = Mat::from_fn(5, 5, |i, j| Complex64::new((i * 3 + j * j) as f64 % 5.0, i as f64 - j as f64));
        let a = b.times(&b.adjoint());
        let (values, v) = eigh(&a, false, f64::EPSILON);
        let back = v.times(&Mat::from_fn(5, 5, |i, j| {
            if i == j { Complex64::new(values[i], 0.0) } else { Complex64::ZERO }
        }));
        let back = back.times(&v.adjoint());
        assert!(back.data.iter().zip(&a.data).all(|(x, y)| (x - y).norm() < 1e-9));
        assert!(values.windows(2).all(|w| w[0] <= w[1]));
    }
}
