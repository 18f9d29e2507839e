//! QR steps with one shift on complex Hessenberg matrices, as LAPACK's `lahqr` takes them. Subdiagonal elements are kept
//! real.

use super::eigen::{Schur, largest, split, unit};
use super::{Field, Mat};
use num_complex::Complex64;

impl Schur for Complex64 {
    fn triangular(
        h: &mut Mat<Complex64>,
        z: &mut Mat<Complex64>,
        (low, high): (usize, usize),
        epsilon: f64,
    ) -> Option<Vec<Complex64>> {
        for i in low + 1..high {
            let below = h[(i, i - 1)];
            if below.im != 0.0 {
                let unit = below / below.size();
                let unit = unit.conj() / unit.norm();
                h[(i, i - 1)] = Complex64::new(below.norm(), 0.0);
                turn(h, z, i, unit, i, (i + 2).min(high));
            }
        }
        let tiny = f64::MIN_POSITIVE * (high - low) as f64 / epsilon;
        let mut end = high;
        while end > low {
            let last = end - 1;
            end = split(h, (low, last), 0, [epsilon, tiny], |h, start, step| {
                let shift = shift(h, start, last, step);
                sweep(h, z, start, last, shift, epsilon);
            })?;
        }
        Some((0..h.rows).map(|i| h[(i, i)]).collect())
    }

    fn normalize(vector: &mut [Complex64], _is_real: bool) {
        unit(vector);
        let at = largest(vector);
        let Some(most) = vector.get(at).copied().filter(|x| *x != Complex64::ZERO) else { return };
        let turn = most.conj() / most.norm();
        vector.iter_mut().for_each(|x| *x *= turn);
        vector[at].im = 0.0;
    }
}

/// Multiplies row `at` from column `first` on by a number of modulus 1 and column `at` above `rows` by its conjugate.
fn turn(
    h: &mut Mat<Complex64>,
    z: &mut Mat<Complex64>,
    at: usize,
    unit: Complex64,
    first: usize,
    rows: usize,
) {
    (first..h.cols).for_each(|j| h[(at, j)] *= unit);
    (0..rows).for_each(|i| h[(i, at)] *= unit.conj());
    (0..z.rows).for_each(|i| z[(i, at)] *= unit.conj());
}

/// Wilkinson's shift, or an exceptional one after ten steps in vain.
fn shift(h: &Mat<Complex64>, start: usize, last: usize, step: usize) -> Complex64 {
    if step.is_multiple_of(20) {
        return h[(last, last)] + 0.75 * h[(last, last - 1)].re.abs();
    }
    if step.is_multiple_of(10) {
        return h[(start, start)] + 0.75 * h[(start + 1, start)].re.abs();
    }
    let t = h[(last, last)];
    let u = h[(last - 1, last)].sqrt() * h[(last, last - 1)].sqrt();
    let s = u.size();
    if s == 0.0 {
        return t;
    }
    let x = 0.5 * (h[(last - 1, last - 1)] - t);
    let size = x.size();
    let s = s.max(size);
    let mut y = ((x / s) * (x / s) + (u / s) * (u / s)).sqrt() * s;
    if size > 0.0 && (x / size).re * y.re + (x / size).im * y.im < 0.0 {
        y = -y;
    }
    t - u * (u / (x + y))
}

/// One step over `start..=last`, begun as far down as two small elements allow.
fn sweep(
    h: &mut Mat<Complex64>,
    z: &mut Mat<Complex64>,
    start: usize,
    last: usize,
    shift: Complex64,
    epsilon: f64,
) {
    let mut from = last - 1;
    let (mut v, mut w);
    loop {
        let m = from;
        let (above, below) = (h[(m, m)] - shift, h[(m + 1, m)].re);
        let s = above.size() + below.abs();
        (v, w) = (above / s, Complex64::new(below / s, 0.0));
        if m == start {
            break;
        }
        let near = h[(m, m)].size() + h[(m + 1, m + 1)].size();
        if h[(m, m - 1)].re.abs() * w.re.abs() <= epsilon * v.size() * near {
            break;
        }
        from -= 1;
    }
    for k in from..last {
        if k > from {
            (v, w) = (h[(k, k - 1)], h[(k + 1, k - 1)]);
        }
        let mut tau = Complex64::ZERO;
        if w.norm() != 0.0 || v.im != 0.0 {
            let beta = -v.norm().hypot(w.norm()).copysign(v.re);
            tau = (beta - v) / beta;
            w /= v - beta;
            v = Complex64::new(beta, 0.0);
        }
        if k > from {
            h[(k, k - 1)] = v;
            h[(k + 1, k - 1)] = Complex64::ZERO;
        }
        for j in k..h.cols {
            let sum = tau.conj() * (h[(k, j)] + w.conj() * h[(k + 1, j)]);
            h[(k, j)] -= sum;
            h[(k + 1, j)] -= sum * w;
        }
        let columns = |a: &mut Mat<Complex64>, rows: usize| {
            for i in 0..rows {
                let sum = tau * (a[(i, k)] + w * a[(i, k + 1)]);
                a[(i, k)] -= sum;
                a[(i, k + 1)] -= sum * w.conj();
            }
        };
        columns(h, (k + 2).min(last) + 1);
        let rows = z.rows;
        columns(z, rows);
        if k == from && from > start {
            keep_real(h, z, from, last, Complex64::ONE - tau);
        }
    }
    let below = h[(last, last - 1)];
    if below.im != 0.0 {
        let size = below.norm();
        h[(last, last - 1)] = Complex64::new(size, 0.0);
        let unit = below / size;
        (last + 1..h.cols).for_each(|j| h[(last, j)] *= unit.conj());
        (0..last).for_each(|i| h[(i, last)] *= unit);
        (0..z.rows).for_each(|i| z[(i, last)] *= unit);
    }
}

/// The step began below the first row: what stands left of it was turned, and is turned back to a real number.
fn keep_real(h: &mut Mat<Complex64>, z: &mut Mat<Complex64>, from: usize, last: usize, factor: Complex64) {
    let unit = factor / factor.norm();
    h[(from + 1, from)] *= unit.conj();
    if from + 2 <= last {
        h[(from + 2, from + 1)] *= unit;
    }
    for j in from..=last {
        if j == from + 1 {
            continue;
        }
        (j + 1..h.cols).for_each(|k| h[(j, k)] *= unit);
        (0..j).for_each(|i| h[(i, j)] *= unit.conj());
        (0..z.rows).for_each(|i| z[(i, j)] *= unit.conj());
    }
}
