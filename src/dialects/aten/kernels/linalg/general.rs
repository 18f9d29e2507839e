//! Eigenvalues and eigenvectors of square matrices of any kind: balancing (Parlett and Reinsch, 1969), reduction to
//! Hessenberg form by reflections, QR steps with shifts (Francis, 1961), and back substitution. Steps follow LAPACK's
//! `geev` for small matrices, so that eigenvalues come in the same order. Knows tensors, no schema.

use super::Mat;
use num_complex::Complex64;

const EPSILON: f64 = f64::EPSILON;
/// Elements below are taken for zero.
const TINY: f64 = f64::MIN_POSITIVE / f64::EPSILON;
/// Steps of one eigenvalue at most, for each row.
const STEPS: usize = 30;

type M = Mat<f64>;
type C = Mat<Complex64>;

/// Eigenvalues, and eigenvectors of length 1 in the columns; the longest element of each is real. None if the steps do
/// not converge.
pub fn eig_real(matrix: &M) -> Option<(Vec<Complex64>, C)> {
    let n = matrix.rows;
    if n == 0 {
        return Some((Vec::new(), Mat::zeros(0, 0)));
    }
    let mut a = matrix.clone();
    let balance = balance(&mut a);
    let mut z = hessenberg(&mut a, balance.low, balance.high);
    let values = schur_real(&mut a, &mut z, balance.low, balance.high)?;
    let mut vectors = Mat::zeros(n, n);
    for k in 0..n {
        let lambda = values[k];
        if lambda.im < 0.0 {
            continue;
        }
        let x = back_substitute(&a, &values, k);
        let x: Vec<Complex64> = (0..n).map(|i| (0..n).map(|j| x[j] * z[(i, j)]).sum::<Complex64>()).collect();
        let x = finish(balance.undo(x), lambda.im != 0.0);
        for i in 0..n {
            vectors[(i, k)] = x[i];
            if lambda.im > 0.0 {
                vectors[(i, k + 1)] = x[i].conj();
            }
        }
    }
    Some((values, vectors))
}

/// Length 1; the longest element of a vector that is not real is made real.
fn finish(mut x: Vec<Complex64>, turn: bool) -> Vec<Complex64> {
    let length = x.iter().fold(0.0f64, |sum, v| sum.hypot(v.norm()));
    x.iter_mut().for_each(|v| *v /= length);
    if turn {
        let mut longest = 0;
        for i in 1..x.len() {
            if x[i].norm_sqr() > x[longest].norm_sqr() {
                longest = i;
            }
        }
        let (pivot, size) = (x[longest], x[longest].norm());
        // The sign of the real part stays.
        let phase = Complex64::new(pivot.re / size, -pivot.im / size) * 1f64.copysign(pivot.re);
        x.iter_mut().for_each(|v| *v *= phase);
        x[longest].im = 0.0;
    }
    x
}

/// What balancing did: rows `low..=high` are left to work on, the others were exchanged with `places`.
struct Balance {
    low: usize,
    high: usize,
    places: Vec<usize>,
    scales: Vec<f64>,
}

impl Balance {
    /// The eigenvector of the matrix before balancing.
    fn undo(&self, mut x: Vec<Complex64>) -> Vec<Complex64> {
        for i in self.low..=self.high {
            x[i] *= self.scales[i];
        }
        for i in (0..self.low).rev().chain(self.high + 1..x.len()) {
            x.swap(i, self.places[i]);
        }
        x
    }
}

fn exchange(a: &mut M, i: usize, j: usize) {
    if i != j {
        for r in 0..a.rows {
            a.data.swap(r * a.cols + i, r * a.cols + j);
        }
        a.swap_rows(i, j);
    }
}

/// Moves eigenvalues that stand alone to the ends, and scales rows and columns to like lengths.
fn balance(a: &mut M) -> Balance {
    let n = a.rows;
    let mut done =
        Balance { low: 0, high: n.saturating_sub(1), places: (0..n).collect(), scales: vec![1.0; n] };
    'rows: loop {
        for i in (0..=done.high).rev() {
            if (0..=done.high).all(|j| i == j || a[(i, j)] == 0.0) {
                done.places[done.high] = i;
                exchange(a, i, done.high);
                if done.high == 0 {
                    return done;
                }
                done.high -= 1;
                continue 'rows;
            }
        }
        break;
    }
    'columns: loop {
        for j in done.low..=done.high {
            if (done.low..=done.high).all(|i| i == j || a[(i, j)] == 0.0) {
                done.places[done.low] = j;
                exchange(a, j, done.low);
                done.low += 1;
                continue 'columns;
            }
        }
        break;
    }
    scale(a, &mut done);
    done
}

fn scale(a: &mut M, done: &mut Balance) {
    let (low, high) = (done.low, done.high);
    let mut again = true;
    while again {
        again = false;
        for i in low..=high {
            let mut c = (low..=high).fold(0.0f64, |sum, k| sum.hypot(a[(k, i)]));
            let mut r = (low..=high).fold(0.0f64, |sum, k| sum.hypot(a[(i, k)]));
            if c == 0.0 || r == 0.0 || !c.is_finite() || !r.is_finite() {
                continue;
            }
            let (before, mut f) = (c + r, 1.0f64);
            while c < r / 2.0 && f < 1e290 {
                (f, c, r) = (f * 2.0, c * 2.0, r / 2.0);
            }
            while c / 2.0 >= r && f > 1e-290 {
                (f, c, r) = (f / 2.0, c / 2.0, r * 2.0);
            }
            if c + r >= 0.95 * before || f == 1.0 {
                continue;
            }
            done.scales[i] *= f;
            again = true;
            for k in low..a.cols {
                a[(i, k)] /= f;
            }
            for k in 0..=high {
                a[(k, i)] *= f;
            }
        }
    }
}

/// A vector (its head is 1) and a scale such that `1 - tau v v'` maps `x` to a multiple of the first unit vector, and
/// that multiple.
fn reflection(x: &[f64]) -> (Vec<f64>, f64, f64) {
    let mut v = x.to_vec();
    let tail = x[1..].iter().fold(0.0f64, |sum, t| sum.hypot(*t));
    v[0] = 1.0;
    if tail == 0.0 {
        return (v, 0.0, x[0]);
    }
    let beta = -x[0].hypot(tail).copysign(x[0]);
    v[1..].iter_mut().for_each(|t| *t /= x[0] - beta);
    (v, (beta - x[0]) / beta, beta)
}

/// Applies a reflection of rows `at..` from the left to some columns.
fn from_left(a: &mut M, at: usize, v: &[f64], tau: f64, columns: std::ops::Range<usize>) {
    for j in columns {
        let dot: f64 = v.iter().enumerate().map(|(i, t)| t * a[(at + i, j)]).sum();
        for (i, t) in v.iter().enumerate() {
            a[(at + i, j)] -= tau * dot * t;
        }
    }
}

/// And from the right, of columns `at..`, to some rows.
fn from_right(a: &mut M, at: usize, v: &[f64], tau: f64, rows: std::ops::Range<usize>) {
    for i in rows {
        let dot: f64 = v.iter().enumerate().map(|(j, t)| t * a[(i, at + j)]).sum();
        for (j, t) in v.iter().enumerate() {
            a[(i, at + j)] -= tau * dot * t;
        }
    }
}

/// Zeros below the first subdiagonal; gives the reflections' product.
fn hessenberg(a: &mut M, low: usize, high: usize) -> M {
    let n = a.rows;
    let mut z = Mat::identity(n, n);
    for k in low..high.saturating_sub(1) {
        let x: Vec<f64> = (k + 1..=high).map(|i| a[(i, k)]).collect();
        let (v, tau, beta) = reflection(&x);
        from_left(a, k + 1, &v, tau, k + 1..n);
        a[(k + 1, k)] = beta;
        (k + 2..=high).for_each(|i| a[(i, k)] = 0.0);
        from_right(a, k + 1, &v, tau, 0..high + 1);
        from_right(&mut z, k + 1, &v, tau, 0..n);
    }
    z
}

/// Where the active block that ends at `i` starts.
fn block_start(h: &M, low: usize, high: usize, i: usize) -> usize {
    for k in (low + 1..=i).rev() {
        let below = h[(k, k - 1)].abs();
        if below <= TINY {
            return k;
        }
        let mut around = h[(k - 1, k - 1)].abs() + h[(k, k)].abs();
        if around == 0.0 {
            around += if k >= low + 2 { h[(k - 1, k - 2)].abs() } else { 0.0 };
            around += if k < high { h[(k + 1, k)].abs() } else { 0.0 };
        }
        if below <= EPSILON / 2.0 * around {
            let (ab, ba) = (below.max(h[(k - 1, k)].abs()), below.min(h[(k - 1, k)].abs()));
            let (d, gap) = (h[(k, k)].abs(), (h[(k - 1, k - 1)] - h[(k, k)]).abs());
            let (aa, bb) = (d.max(gap), d.min(gap));
            let s = aa + ab;
            if ba * (ab / s) <= TINY.max(EPSILON / 2.0 * (bb * (aa / s))) {
                return k;
            }
        }
    }
    low
}

/// Two shifts from the last block of two; every tenth step without success others are taken.
fn shifts(h: &M, start: usize, i: usize, step: usize) -> [Complex64; 2] {
    let (h11, h12, h21, h22) = if step % 20 == 10 {
        let s = h[(start + 1, start)].abs() + h[(start + 2, start + 1)].abs();
        let d = 0.75 * s + h[(start, start)];
        (d, -0.4375 * s, s, d)
    } else if step > 0 && step.is_multiple_of(20) {
        let s = h[(i, i - 1)].abs() + h[(i - 1, i - 2)].abs();
        let d = 0.75 * s + h[(i, i)];
        (d, -0.4375 * s, s, d)
    } else {
        (h[(i - 1, i - 1)], h[(i - 1, i)], h[(i, i - 1)], h[(i, i)])
    };
    let s = h11.abs() + h12.abs() + h21.abs() + h22.abs();
    if s == 0.0 {
        return [Complex64::ZERO; 2];
    }
    let (h11, h12, h21, h22) = (h11 / s, h12 / s, h21 / s, h22 / s);
    let half = (h11 + h22) / 2.0;
    let det = (h11 - half) * (h22 - half) - h12 * h21;
    let root = det.abs().sqrt();
    if det >= 0.0 {
        return [Complex64::new(half * s, root * s), Complex64::new(half * s, -root * s)];
    }
    let (one, two) = (half + root, half - root);
    let near = if (one - h22).abs() <= (two - h22).abs() { one } else { two };
    [Complex64::new(near * s, 0.0); 2]
}

/// The first column of the double step at row `m`, scaled.
fn first_column(h: &M, m: usize, [a, b]: [Complex64; 2]) -> [f64; 3] {
    let s = (h[(m, m)] - b.re).abs() + b.im.abs() + h[(m + 1, m)].abs();
    let below = h[(m + 1, m)] / s;
    let v = [
        below * h[(m, m + 1)] + (h[(m, m)] - a.re) * ((h[(m, m)] - b.re) / s) - a.im * (b.im / s),
        below * (h[(m, m)] + h[(m + 1, m + 1)] - a.re - b.re),
        below * h[(m + 2, m + 1)],
    ];
    let s = v[0].abs() + v[1].abs() + v[2].abs();
    v.map(|x| x / s)
}

/// Makes `h` quasi-triangular by turns that are added to `z`, and gives the eigenvalues.
fn schur_real(h: &mut M, z: &mut M, low: usize, high: usize) -> Option<Vec<Complex64>> {
    let n = h.rows;
    let mut values: Vec<Complex64> = (0..n).map(|i| Complex64::new(h[(i, i)], 0.0)).collect();
    let mut end = high as isize;
    while end >= low as isize {
        let i = end as usize;
        let mut step = 0;
        let start = loop {
            let start = block_start(h, low, high, i);
            if start > low {
                h[(start, start - 1)] = 0.0;
            }
            if start + 1 >= i {
                break start;
            }
            if step > STEPS * n.max(10) {
                return None;
            }
            let shifts = shifts(h, start, i, step);
            double_step(h, z, start, i, shifts);
            step += 1;
        };
        if start == i {
            values[i] = Complex64::new(h[(i, i)], 0.0);
        } else {
            let (a, b) = standardize(h, z, i - 1);
            (values[i - 1], values[i]) = (a, b);
        }
        end = start as isize - 1;
    }
    Some(values)
}

fn double_step(h: &mut M, z: &mut M, start: usize, i: usize, shifts: [Complex64; 2]) {
    let n = h.rows;
    let mut m = i - 2;
    let mut first = first_column(h, m, shifts);
    while m > start {
        let around = h[(m - 1, m - 1)].abs() + h[(m, m)].abs() + h[(m + 1, m + 1)].abs();
        if h[(m, m - 1)].abs() * (first[1].abs() + first[2].abs()) <= EPSILON / 2.0 * first[0].abs() * around
        {
            break;
        }
        m -= 1;
        first = first_column(h, m, shifts);
    }
    for k in m..i {
        let count = 3.min(i - k + 1);
        let x: Vec<f64> =
            if k > m { (0..count).map(|r| h[(k + r, k - 1)]).collect() } else { first[..count].to_vec() };
        let (v, tau, beta) = reflection(&x);
        if k > m {
            h[(k, k - 1)] = beta;
            (1..count).for_each(|r| h[(k + r, k - 1)] = 0.0);
        } else if m > start {
            h[(k, k - 1)] *= 1.0 - tau;
        }
        from_left(h, k, &v, tau, k..n);
        from_right(h, k, &v, tau, 0..(k + 3).min(i) + 1);
        from_right(z, k, &v, tau, 0..n);
    }
}

/// Turns the block of rows `at` and `at + 1` so that it is triangular, or has equal diagonal elements; its eigenvalues.
fn standardize(h: &mut M, z: &mut M, at: usize) -> (Complex64, Complex64) {
    let (a, b, c, d) = (h[(at, at)], h[(at, at + 1)], h[(at + 1, at)], h[(at + 1, at + 1)]);
    let (cs, sn) = rotation(a, b, c, d);
    let n = h.rows;
    for j in at..n {
        let (x, y) = (h[(at, j)], h[(at + 1, j)]);
        (h[(at, j)], h[(at + 1, j)]) = (cs * x + sn * y, cs * y - sn * x);
    }
    for i in 0..at + 2 {
        let (x, y) = (h[(i, at)], h[(i, at + 1)]);
        (h[(i, at)], h[(i, at + 1)]) = (cs * x + sn * y, cs * y - sn * x);
    }
    for i in 0..n {
        let (x, y) = (z[(i, at)], z[(i, at + 1)]);
        (z[(i, at)], z[(i, at + 1)]) = (cs * x + sn * y, cs * y - sn * x);
    }
    let (b, c) = (h[(at, at + 1)], h[(at + 1, at)]);
    let scale = h[(at, at)].abs().max(h[(at + 1, at + 1)].abs()).max(b.abs());
    if c.abs() <= 4.0 * EPSILON * scale || b * c >= 0.0 {
        h[(at + 1, at)] = 0.0;
        return (Complex64::new(h[(at, at)], 0.0), Complex64::new(h[(at + 1, at + 1)], 0.0));
    }
    let middle = (h[(at, at)] + h[(at + 1, at + 1)]) / 2.0;
    (h[(at, at)], h[(at + 1, at + 1)]) = (middle, middle);
    let im = b.abs().sqrt() * c.abs().sqrt();
    (Complex64::new(middle, im), Complex64::new(middle, -im))
}

/// Cosine and sine of the turn that [`standardize`] makes.
fn rotation(a: f64, b: f64, c: f64, d: f64) -> (f64, f64) {
    let sign = |x: f64| 1f64.copysign(x);
    if c == 0.0 {
        return (1.0, 0.0);
    }
    if b == 0.0 {
        return (0.0, 1.0);
    }
    if a == d && sign(b) != sign(c) {
        return (1.0, 0.0);
    }
    let gap = a - d;
    let p = gap / 2.0;
    let (most, least) = (b.abs().max(c.abs()), b.abs().min(c.abs()) * sign(b) * sign(c));
    let scale = p.abs().max(most);
    let z = (p / scale) * p + (most / scale) * least;
    if z >= 4.0 * EPSILON {
        let z = p + (scale.sqrt() * z.sqrt()).copysign(p);
        let tau = c.hypot(z);
        return (z / tau, c / tau);
    }
    let sigma = b + c;
    let tau = sigma.hypot(gap);
    let cs = ((1.0 + sigma.abs() / tau) / 2.0).sqrt();
    let sn = -(p / (tau * cs)) * sign(sigma);
    // The turned block; where its off-diagonal elements have one sign its eigenvalues are real after all.
    let (aa, bb, cc, dd) = (a * cs + b * sn, b * cs - a * sn, c * cs + d * sn, d * cs - c * sn);
    let (b, c) = (bb * cs + dd * sn, cc * cs - aa * sn);
    if c == 0.0 || b != 0.0 && sign(b) != sign(c) {
        return (cs, sn);
    }
    if b == 0.0 {
        return (-sn, cs);
    }
    let root = 1.0 / (b + c).abs().sqrt();
    let (cs1, sn1) = (b.abs().sqrt() * root, c.abs().sqrt() * root);
    (cs * cs1 - sn * sn1, cs * sn1 + sn * cs1)
}

/// The eigenvector of a quasi-triangular matrix for its k-th eigenvalue.
fn back_substitute(t: &M, values: &[Complex64], k: usize) -> Vec<Complex64> {
    let n = t.rows;
    let lambda = values[k];
    let mut x = vec![Complex64::ZERO; n];
    if lambda.im == 0.0 {
        x[k] = Complex64::new(1.0, 0.0);
    } else if t[(k, k + 1)].abs() >= t[(k + 1, k)].abs() {
        x[k] = Complex64::new(1.0, 0.0);
        x[k + 1] = Complex64::new(0.0, lambda.im / t[(k, k + 1)]);
    } else {
        x[k] = Complex64::new(-lambda.im / t[(k + 1, k)], 0.0);
        x[k + 1] = Complex64::new(0.0, 1.0);
    }
    let floor = EPSILON * (lambda.re.abs() + lambda.im.abs()).max(TINY);
    let safe = |d: Complex64| if d.norm() < floor { Complex64::new(floor, 0.0) } else { d };
    let last = if lambda.im == 0.0 { k } else { k + 1 };
    let mut j = k;
    while j > 0 {
        j -= 1;
        let rest = |row: usize, x: &[Complex64]| -> Complex64 {
            -(j + 1..=last).map(|c| x[c] * t[(row, c)]).sum::<Complex64>()
        };
        if j > 0 && t[(j, j - 1)] != 0.0 {
            let (r0, r1) = (rest(j - 1, &x), rest(j, &x));
            let (a, d) = (t[(j - 1, j - 1)] - lambda, t[(j, j)] - lambda);
            let (b, c) = (t[(j - 1, j)], t[(j, j - 1)]);
            let det = safe(a * d - b * c);
            x[j - 1] = (r0 * d - r1 * b) / det;
            x[j] = (r1 * a - r0 * c) / det;
            j -= 1;
        } else {
            x[j] = rest(j, &x) / safe(t[(j, j)] - lambda);
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers without pattern, the same in every run.
    fn scattered(n: usize, seed: u64) -> M {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / f64::from(1u32 << 30) - 1.0
        };
        Mat { rows: n, cols: n, data: (0..n * n).map(|_| next()).collect() }
    }

    fn check(a: &M) {
        let n = a.rows;
        let (values, vectors) = eig_real(a).expect("it converges");
        for k in 0..n {
            let length = (0..n).fold(0.0f64, |sum, i| sum.hypot(vectors[(i, k)].norm()));
            assert!((length - 1.0).abs() < 1e-12, "column {k} has length {length}");
            for i in 0..n {
                let product: Complex64 = (0..n).map(|j| vectors[(j, k)] * a[(i, j)]).sum();
                let error = (product - values[k] * vectors[(i, k)]).norm();
                assert!(error < 1e-10, "row {i} of column {k} is off by {error}");
            }
        }
        let trace: f64 = (0..n).map(|i| a[(i, i)]).sum();
        assert!((values.iter().sum::<Complex64>() - trace).norm() < 1e-10);
    }

    #[test]
    fn vectors_are_stretched_by_their_values() {
        for (n, seed) in [(1, 1), (2, 2), (2, 3), (3, 4), (5, 5), (8, 6), (17, 7)] {
            check(&scattered(n, seed));
        }
    }

    #[test]
    fn values_of_matrices_with_structure() {
        let of = |rows: &[[f64; 3]; 3]| Mat { rows: 3, cols: 3, data: rows.concat() };
        check(&of(&[[1.0, 2.0, 3.0], [0.0, 4.0, 5.0], [0.0, 0.0, 6.0]]));
        check(&of(&[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]));
        check(&of(&[[0.0; 3]; 3]));
        check(&of(&[[1.0, 1e9, 0.0], [1e-9, 2.0, 1.0], [0.0, 1.0, 3.0]]));
        assert_eq!(eig_real(&Mat::zeros(0, 0)).map(|(values, _)| values.len()), Some(0));
    }
}
