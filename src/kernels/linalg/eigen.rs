//! Eigenvalues and eigenvectors of square matrices of any kind: balancing, reduction to Hessenberg form, shifted QR steps
//! to a (quasi-)triangular matrix, back substitution. The steps, and so the order of the eigenvalues and the signs of the
//! vectors, are those of LAPACK's `geev`.

use super::orthogonal::reflector;
use super::{Field, Mat};
use crate::resources::budget;
use num_complex::Complex64;

/// Eigenvalues, and eigenvectors in columns, each of length 1 with a real largest component. None where the steps do not
/// converge, or are stopped by a limit of the run.
#[derive(Debug)]
pub struct Eigen {
    /// Eigenvalues.
    pub values: Vec<Complex64>,
    /// Eigenvectors.
    pub vectors: Mat<Complex64>,
}

/// A field that knows its QR steps.
pub trait Schur: Field {
    /// Brings the Hessenberg matrix `h`, whose rows and columns outside of `low..high` are triangular already, to
    /// triangular form (real matrices: with blocks of two), and applies the same rotations to the columns of `z`.
    /// Gives the eigenvalues; None where the steps do not converge.
    fn triangular(
        h: &mut Mat<Self>,
        z: &mut Mat<Self>,
        bounds: (usize, usize),
        epsilon: f64,
    ) -> Option<Vec<Complex64>>;
    /// Length 1 and a real largest component; `is_real` says that the eigenvalue of a real matrix is.
    fn normalize(vector: &mut [Complex64], is_real: bool);
}

/// The eigenvalues and vectors of a square matrix of finite numbers; `epsilon` is the precision of its dtype.
pub fn eigen<F: Schur>(matrix: &Mat<F>, epsilon: f64) -> Option<Eigen> {
    let n = matrix.rows;
    let largest = matrix.data.iter().fold(0.0f64, |most, x| most.max(x.modulus()));
    // Squares of the elements must neither overflow nor vanish.
    let scale = if largest > 1e140 || (largest > 0.0 && largest < 1e-140) {
        2f64.powi(-(largest.log2().floor() as i32))
    } else {
        1.0
    };
    let mut a = matrix.clone();
    a.data.iter_mut().for_each(|x| *x = *x * F::of(scale));
    let balance = Balance::new(&mut a);
    let mut z = hessenberg(&mut a, balance.low, balance.high);
    let mut values = F::triangular(&mut a, &mut z, (balance.low, balance.high), epsilon)?;
    let mut vectors = Mat::<Complex64>::zeros(n, n);
    let mut column = 0;
    while column < n && !budget::is_stopped() {
        let x = substituted(&a, &values, column, epsilon);
        let mut vector: Vec<Complex64> = (0..n)
            .map(|i| x.iter().enumerate().fold(Complex64::ZERO, |sum, (k, x)| sum + z[(i, k)].complex() * x))
            .collect();
        let most = vector.iter().fold(0.0f64, |most, x| most.max(x.re.abs() + x.im.abs()));
        if most > 0.0 {
            vector.iter_mut().for_each(|x| *x /= most);
        }
        balance.undo(&mut vector);
        F::normalize(&mut vector, values[column].im == 0.0);
        let is_pair = is_block(&a, column);
        for (i, x) in vector.iter().enumerate() {
            vectors[(i, column)] = *x;
            if is_pair {
                vectors[(i, column + 1)] = x.conj();
            }
        }
        column += 1 + usize::from(is_pair);
    }
    values.iter_mut().for_each(|value| *value /= scale);
    Some(Eigen { values, vectors })
}

/// Takes steps over `low..=last` until all that lies between a subdiagonal element that vanishes and `last` are at most
/// `rest` more rows; gives the first of them. None where that takes too long.
pub(super) fn split<F: Field>(
    h: &mut Mat<F>,
    (low, last): (usize, usize),
    rest: usize,
    [epsilon, tiny]: [f64; 2],
    mut step: impl FnMut(&mut Mat<F>, usize, usize),
) -> Option<usize> {
    for taken in 0..=30 * (last + 1).max(10) {
        let start = negligible(h, low, last, epsilon, tiny);
        if start > low {
            h[(start, start - 1)] = F::ZERO;
        }
        if start + rest >= last {
            return Some(start);
        }
        if budget::is_stopped() {
            return None;
        }
        step(h, start, taken + 1);
    }
    None
}

/// The first row of the last part that no vanishing subdiagonal element divides (Ahues and Tisseur's test).
fn negligible<F: Field>(h: &Mat<F>, low: usize, last: usize, epsilon: f64, tiny: f64) -> usize {
    let mut k = last;
    while k > low {
        let below = h[(k, k - 1)].size();
        if below <= tiny {
            break;
        }
        let mut size = h[(k - 1, k - 1)].size() + h[(k, k)].size();
        if size == 0.0 {
            if k >= low + 2 {
                size += h[(k - 1, k - 2)].size();
            }
            if k < last {
                size += h[(k + 1, k)].size();
            }
        }
        if below <= epsilon * size {
            let above = h[(k - 1, k)].size();
            let (ab, ba) = (below.max(above), below.min(above));
            let (diagonal, gap) = (h[(k, k)].size(), (h[(k - 1, k - 1)] - h[(k, k)]).size());
            let (aa, bb) = (diagonal.max(gap), diagonal.min(gap));
            let sum = aa + ab;
            if ba * (ab / sum) <= tiny.max(epsilon * (bb * (aa / sum))) {
                break;
            }
        }
        k -= 1;
    }
    k
}

/// Whether a block of two stands at `at` on the diagonal.
fn is_block<F: Field>(t: &Mat<F>, at: usize) -> bool {
    at + 1 < t.rows && t[(at + 1, at)] != F::ZERO
}

/// The rows and columns exchanged and the powers of two by which they were scaled, so that norms are alike.
struct Balance {
    low: usize,
    /// One after the last.
    high: usize,
    swaps: Vec<(usize, usize)>,
    scales: Vec<f64>,
}

impl Balance {
    fn new<F: Field>(a: &mut Mat<F>) -> Balance {
        let n = a.rows;
        let mut balance = Balance { low: 0, high: n, swaps: Vec::new(), scales: vec![1.0; n] };
        // Rows that hold an eigenvalue alone go to the end, such columns to the front.
        while let Some(row) =
            (0..balance.high).rev().find(|i| (0..balance.high).all(|j| *i == j || a[(*i, j)] == F::ZERO))
        {
            balance.high -= 1;
            balance.exchange(a, row, balance.high);
            if balance.high == 0 {
                return balance;
            }
        }
        while let Some(column) = (balance.low..balance.high)
            .find(|j| (balance.low..balance.high).all(|i| i == *j || a[(i, *j)] == F::ZERO))
        {
            balance.exchange(a, column, balance.low);
            balance.low += 1;
        }
        while balance.scale(a) {}
        balance
    }

    fn exchange<F: Field>(&mut self, a: &mut Mat<F>, one: usize, other: usize) {
        a.swap_rows(one, other);
        for i in 0..a.rows {
            a.data.swap(i * a.cols + one, i * a.cols + other);
        }
        self.swaps.push((one, other));
    }

    /// One round of scaling; whether anything was scaled.
    fn scale<F: Field>(&mut self, a: &mut Mat<F>) -> bool {
        const ROOM: f64 = 1e280;
        let (within, mut changed) = (self.low..self.high, false);
        for i in within.clone() {
            let norm = |part: &mut dyn Iterator<Item = F>| part.fold(0.0f64, |sum, x| sum.hypot(x.modulus()));
            let mut c = norm(&mut within.clone().map(|k| a[(k, i)]));
            let mut r = norm(&mut within.clone().map(|k| a[(i, k)]));
            if c == 0.0 || r == 0.0 {
                continue;
            }
            let (sum, mut f) = (c + r, 1.0f64);
            while c < r / 2.0 && f.max(c) < ROOM && r > 1.0 / ROOM {
                (f, c, r) = (f * 2.0, c * 2.0, r / 2.0);
            }
            while c / 2.0 >= r && r < ROOM && f.min(c) > 1.0 / ROOM {
                (f, c, r) = (f / 2.0, c / 2.0, r * 2.0);
            }
            if c + r >= 0.95 * sum {
                continue;
            }
            self.scales[i] *= f;
            changed = true;
            for k in self.low..a.cols {
                a[(i, k)] = a[(i, k)] * F::of(1.0 / f);
            }
            for k in 0..self.high {
                a[(k, i)] = a[(k, i)] * F::of(f);
            }
        }
        changed
    }

    fn undo(&self, vector: &mut [Complex64]) {
        vector.iter_mut().zip(&self.scales).for_each(|(x, scale)| *x *= scale);
        self.swaps.iter().rev().for_each(|(one, other)| vector.swap(*one, *other));
    }
}

/// Reduces to Hessenberg form by reflections of `low..high`; gives their product.
fn hessenberg<F: Field>(a: &mut Mat<F>, low: usize, high: usize) -> Mat<F> {
    let n = a.rows;
    let mut q = Mat::<F>::identity(n, n);
    let mut reflections = Vec::new();
    for k in (low..high.saturating_sub(2)).take_while(|_| !budget::is_stopped()) {
        let mut column = Mat::from_fn(high, 1, |i, _| a[(i, k)]);
        let tau = reflector(&mut column, k + 1, 0);
        let beta = column[(k + 1, 0)];
        let mut v = column.data;
        v[..=k].fill(F::ZERO);
        v[k + 1] = F::ONE;
        for i in 0..high {
            let dot = (k + 1..high).fold(F::ZERO, |sum, j| sum + a[(i, j)] * v[j]) * tau;
            for j in k + 1..high {
                a[(i, j)] = a[(i, j)] - dot * v[j].conj();
            }
        }
        reflect_rows(a, &v, tau.conj(), k + 1, high, k + 1);
        a[(k + 1, k)] = beta;
        for i in k + 2..high {
            a[(i, k)] = F::ZERO;
        }
        reflections.push((v, tau, k + 1));
    }
    for (v, tau, from) in reflections.iter().rev() {
        reflect_rows(&mut q, v, *tau, *from, high, 0);
    }
    q
}

/// (1 - tau v v^H) from the left, to the columns after `first`.
fn reflect_rows<F: Field>(a: &mut Mat<F>, v: &[F], tau: F, from: usize, high: usize, first: usize) {
    for j in first..a.cols {
        let dot = (from..high).fold(F::ZERO, |sum, i| sum + v[i].conj() * a[(i, j)]) * tau;
        for i in from..high {
            a[(i, j)] = a[(i, j)] - v[i] * dot;
        }
    }
}

/// The eigenvector of the (quasi-)triangular matrix `t` for the eigenvalue at `at` (of a block: its first). Where a
/// divisor vanishes it is assumed to be as large as rounding.
fn substituted<F: Field>(t: &Mat<F>, values: &[Complex64], at: usize, epsilon: f64) -> Vec<Complex64> {
    let n = t.rows;
    let value = values[at];
    let least = (epsilon * (value.re.abs() + value.im.abs())).max(f64::MIN_POSITIVE * n as f64 / epsilon);
    let entry = |i: usize, j: usize| t[(i, j)].complex();
    let mut x = vec![Complex64::ZERO; n];
    let mut next = at;
    if is_block(t, at) {
        // The vector of the block, as LAPACK scales it.
        let (upper, lower) = (entry(at, at + 1).re, entry(at + 1, at).re);
        (x[at], x[at + 1]) = if upper.abs() >= lower.abs() {
            (Complex64::new(1.0, 0.0), Complex64::new(0.0, value.im / upper))
        } else {
            (Complex64::new(-value.im / lower, 0.0), Complex64::new(0.0, 1.0))
        };
        let [first, second] = [x[at], x[at + 1]];
        for (i, x) in x.iter_mut().enumerate().take(at) {
            *x = -(entry(i, at) * first + entry(i, at + 1) * second);
        }
    } else {
        x[at] = Complex64::ONE;
        for (i, x) in x.iter_mut().enumerate().take(at) {
            *x = -entry(i, at);
        }
    }
    while next > 0 {
        let last = next - 1;
        let first = if last > 0 && is_block(t, last - 1) { last - 1 } else { last };
        if first == last {
            let mut divisor = entry(last, last) - value;
            if divisor.re.abs() + divisor.im.abs() < least {
                divisor = Complex64::new(least, 0.0);
            }
            restrain(&mut x, last, divisor.norm());
            x[last] /= divisor;
        } else {
            (x[first], x[last]) = solve_two(
                [
                    [entry(first, first) - value, entry(first, last)],
                    [entry(last, first), entry(last, last) - value],
                ],
                [x[first], x[last]],
                least,
            );
        }
        let (above, found) = x.split_at_mut(first);
        for (i, x) in above.iter_mut().enumerate() {
            let sum = (first..=last).zip(&*found).fold(Complex64::ZERO, |sum, (k, y)| sum + entry(i, k) * y);
            *x -= sum;
        }
        // Vectors of nearly equal eigenvalues grow by a factor with each step.
        if x.iter().any(|x| x.re.abs().max(x.im.abs()) > 1e100) {
            x.iter_mut().for_each(|x| *x *= 1e-100);
        }
        next = first;
    }
    x
}

/// Scales a vector down where a division by `divisor` would make the component at `at` too large.
fn restrain(x: &mut [Complex64], at: usize, divisor: f64) {
    let (size, most) = (x[at].norm(), divisor * 1e100);
    if size > most {
        x.iter_mut().for_each(|x| *x *= most / size);
    }
}

/// Two equations in two unknowns, by elimination with the larger pivot.
fn solve_two(a: [[Complex64; 2]; 2], b: [Complex64; 2], least: f64) -> (Complex64, Complex64) {
    let (p, q) = if a[0][0].norm() >= a[1][0].norm() { (0, 1) } else { (1, 0) };
    let guard = |x: Complex64| if x.re.abs() + x.im.abs() < least { Complex64::new(least, 0.0) } else { x };
    let pivot = guard(a[p][0]);
    let factor = a[q][0] / pivot;
    let second = (b[q] - factor * b[p]) / guard(a[q][1] - factor * a[p][1]);
    ((b[p] - a[p][1] * second) / pivot, second)
}

/// Euclidean length 1.
pub(super) fn unit(vector: &mut [Complex64]) {
    let length = vector.iter().fold(0.0f64, |sum, x| sum.hypot(x.norm()));
    if length > 0.0 {
        vector.iter_mut().for_each(|x| *x /= length);
    }
}

/// The place of the largest component.
pub(super) fn largest(vector: &[Complex64]) -> usize {
    let mut most = 0;
    for (i, x) in vector.iter().enumerate() {
        if x.norm_sqr() > vector[most].norm_sqr() {
            most = i;
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::*;

    fn residual<F: Schur>(a: &Mat<F>) -> f64 {
        let n = a.rows;
        let Eigen { values, vectors } = eigen(a, f64::EPSILON).expect("converges");
        let wide = Mat::from_fn(n, n, |i, j| a[(i, j)].complex());
        let product = wide.times(&vectors);
        let scale = 1.0 + a.data.iter().fold(0.0f64, |most, x| most.max(x.modulus()));
        (0..n * n).fold(0.0f64, |most, k| {
            let (i, j) = (k / n, k % n);
            most.max((product[(i, j)] - values[j] * vectors[(i, j)]).norm() / scale)
        })
    }

    /// Numbers of a small generator in -1..1.
    fn numbers(seed: u64) -> impl FnMut() -> f64 {
        let mut state = seed;
        move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    #[test]
    fn vectors_satisfy_their_equation() {
        for n in [1usize, 2, 3, 4, 5, 8, 13, 20, 40] {
            let mut next = numbers(n as u64);
            let dense = Mat::from_fn(n, n, |_, _| 0.0).data.iter().map(|_| next()).collect::<Vec<f64>>();
            let dense = Mat { rows: n, cols: n, data: dense.into() };
            let kinds: Vec<Mat<f64>> = vec![
                dense.clone(),
                // Structured: triangular, companion, cyclic, rank one, one block, far apart in size.
                Mat::from_fn(n, n, |i, j| if j >= i { dense[(i, j)] } else { 0.0 }),
                Mat::from_fn(n, n, |i, j| if j <= i { dense[(i, j)] } else { 0.0 }),
                Mat::from_fn(n, n, |i, j| if i == 0 { dense[(0, j)] } else { f64::from(i == j + 1) }),
                Mat::from_fn(n, n, |i, j| f64::from((i + 1) % n == j)),
                Mat::from_fn(n, n, |i, j| dense[(i, 0)] * dense[(0, j)]),
                Mat::from_fn(n, n, |i, j| if i == j { 2.0 } else { f64::from(j == i + 1) }),
                Mat::from_fn(n, n, |i, j| dense[(i, j)] * 10f64.powi(i as i32 % 7 - j as i32 % 5)),
                Mat::from_fn(n, n, |i, j| dense[(i, j)] - dense[(j, i)]),
                Mat::from_fn(n, n, |i, j| dense[(i, j)] + dense[(j, i)]),
                Mat::identity(n, n),
                Mat::zeros(n, n),
            ];
            for (kind, a) in kinds.iter().enumerate() {
                assert!(residual(a) < 1e-12, "kind {kind} of size {n}: {:e}", residual(a));
                let turned = Mat::from_fn(n, n, |i, j| Complex64::new(a[(i, j)], a[(j, i)] * 0.5));
                assert!(residual(&turned) < 1e-12, "complex kind {kind} of size {n}");
            }
        }
    }

    /// From PyTorch: the order and signs of a matrix with a pair of complex eigenvalues.
    #[test]
    fn vectors_point_as_lapacks_do() {
        let a = Mat { rows: 2, cols: 2, data: vec![1.0, 2.0, 3.0, 4.0].into() };
        let Eigen { values, vectors } = eigen(&a, f64::EPSILON).expect("converges");
        assert!((values[0].re + 0.3722813232690143).abs() < 1e-12 && values[0].im == 0.0);
        assert!((vectors[(0, 0)].re + 0.8245648401323938).abs() < 1e-12);
        assert!((vectors[(1, 1)].re + 0.9093767091321241).abs() < 1e-12);
        let turn = Mat { rows: 2, cols: 2, data: vec![0.0, -1.0, 1.0, 0.0].into() };
        let Eigen { values, vectors } = eigen(&turn, f64::EPSILON).expect("converges");
        assert_eq!(values[0].im, 1.0);
        assert!((vectors[(1, 0)].im + 0.5f64.sqrt()).abs() < 1e-12 && vectors[(0, 0)].im == 0.0);
    }
}
