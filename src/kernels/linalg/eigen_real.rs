//! QR steps with two shifts on real Hessenberg matrices (Francis), as LAPACK's `lahqr` takes them.

use super::Mat;
use super::eigen::{Schur, largest, split, unit};
use num_complex::Complex64;

impl Schur for f64 {
    fn triangular(
        h: &mut Mat<f64>,
        z: &mut Mat<f64>,
        (low, high): (usize, usize),
        epsilon: f64,
    ) -> Option<Vec<Complex64>> {
        let n = h.rows;
        let mut values: Vec<Complex64> = (0..n).map(|i| Complex64::new(h[(i, i)], 0.0)).collect();
        let tiny = f64::MIN_POSITIVE * (high - low) as f64 / epsilon;
        let mut end = high;
        // Splits off the last one or two eigenvalues of `low..end` until none is left.
        while end > low {
            let last = end - 1;
            let start = split(h, (low, last), 1, [epsilon, tiny], |h, start, step| {
                let shifts = shifts(h, start, last, step);
                sweep(h, z, start, last, shifts, epsilon);
            })?;
            if start == last {
                values[last] = Complex64::new(h[(last, last)], 0.0);
            } else {
                let (first, rotation) = (last - 1, Block::of(h, last - 1));
                [values[first], values[last]] = rotation.values;
                rotation.apply(h, z, first);
            }
            end = start;
        }
        Some(values)
    }

    fn normalize(vector: &mut [Complex64], is_real: bool) {
        unit(vector);
        if is_real {
            return;
        }
        // The pair is turned so that the largest component is real; its sign is that of the rotation.
        let most = vector[largest(vector)];
        let (f, g) = (most.re, most.im);
        let turn = if g == 0.0 {
            Complex64::ONE
        } else if f == 0.0 {
            Complex64::new(0.0, -1f64.copysign(g))
        } else {
            let r = if f.abs() > g.abs() { f.hypot(g).copysign(f) } else { f.hypot(g) };
            Complex64::new(f / r, -g / r)
        };
        let at = largest(vector);
        vector.iter_mut().for_each(|x| *x *= turn);
        vector[at].im = 0.0;
    }
}

/// The two shifts: eigenvalues of the last block, or of an exceptional one after ten steps in vain.
fn shifts(h: &Mat<f64>, start: usize, last: usize, step: usize) -> [Complex64; 2] {
    let exceptional = |s: f64, d: f64| [[0.75 * s + d, -0.4375 * s], [s, 0.75 * s + d]];
    let [[h11, h12], [h21, h22]] = if step.is_multiple_of(20) {
        let s = h[(last, last - 1)].abs() + h[(last - 1, last - 2)].abs();
        exceptional(s, h[(last, last)])
    } else if step.is_multiple_of(10) {
        let s = h[(start + 1, start)].abs() + h[(start + 2, start + 1)].abs();
        exceptional(s, h[(start, start)])
    } else {
        [[h[(last - 1, last - 1)], h[(last - 1, last)]], [h[(last, last - 1)], h[(last, last)]]]
    };
    let s = h11.abs() + h12.abs() + h21.abs() + h22.abs();
    if s == 0.0 {
        return [Complex64::ZERO; 2];
    }
    let (h11, h12, h21, h22) = (h11 / s, h12 / s, h21 / s, h22 / s);
    let middle = (h11 + h22) / 2.0;
    let det = (h11 - middle) * (h22 - middle) - h12 * h21;
    let root = det.abs().sqrt();
    if det >= 0.0 {
        return [Complex64::new(middle * s, root * s), Complex64::new(middle * s, -root * s)];
    }
    let (one, two) = (middle + root, middle - root);
    let near = if (one - h22).abs() <= (two - h22).abs() { one } else { two };
    [Complex64::new(near * s, 0.0); 2]
}

/// One double step over `start..=last`, begun as far down as two small elements allow.
fn sweep(
    h: &mut Mat<f64>,
    z: &mut Mat<f64>,
    start: usize,
    last: usize,
    [one, two]: [Complex64; 2],
    epsilon: f64,
) {
    let mut v = [0.0; 3];
    let mut from = last - 2;
    loop {
        let m = from;
        let s = (h[(m, m)] - two.re).abs() + two.im.abs() + h[(m + 1, m)].abs();
        let below = h[(m + 1, m)] / s;
        v[0] =
            below * h[(m, m + 1)] + (h[(m, m)] - one.re) * ((h[(m, m)] - two.re) / s) - one.im * (two.im / s);
        v[1] = below * (h[(m, m)] + h[(m + 1, m + 1)] - one.re - two.re);
        v[2] = below * h[(m + 2, m + 1)];
        let s = v[0].abs() + v[1].abs() + v[2].abs();
        v.iter_mut().for_each(|x| *x /= s);
        if m == start {
            break;
        }
        let near = h[(m - 1, m - 1)].abs() + h[(m, m)].abs() + h[(m + 1, m + 1)].abs();
        if h[(m, m - 1)].abs() * (v[1].abs() + v[2].abs()) <= epsilon * v[0].abs() * near {
            break;
        }
        from -= 1;
    }
    for k in from..last {
        let count = 3.min(last - k + 1);
        if k > from {
            (0..count).for_each(|i| v[i] = h[(k + i, k - 1)]);
        }
        let tail = v[1..count].iter().fold(0.0f64, |sum, x| sum.hypot(*x));
        let mut tau = 0.0;
        if tail != 0.0 {
            let beta = -v[0].hypot(tail).copysign(v[0]);
            tau = (beta - v[0]) / beta;
            let scale = 1.0 / (v[0] - beta);
            v[1..count].iter_mut().for_each(|x| *x *= scale);
            v[0] = beta;
        }
        if k > from {
            h[(k, k - 1)] = v[0];
            (1..count).for_each(|i| h[(k + i, k - 1)] = 0.0);
        } else if from > start {
            // Not the negative, which would be wrong where the rest of the vector vanishes.
            h[(k, k - 1)] *= 1.0 - tau;
        }
        let mut unit = v;
        unit[0] = 1.0;
        let unit = &unit[..count];
        for j in k..h.cols {
            let sum: f64 = unit.iter().enumerate().map(|(i, x)| x * h[(k + i, j)]).sum();
            unit.iter().enumerate().for_each(|(i, x)| h[(k + i, j)] -= sum * tau * x);
        }
        let columns = |a: &mut Mat<f64>, rows: usize| {
            for i in 0..rows {
                let sum: f64 = unit.iter().enumerate().map(|(j, x)| x * a[(i, k + j)]).sum();
                unit.iter().enumerate().for_each(|(j, x)| a[(i, k + j)] -= sum * tau * x);
            }
        };
        columns(h, (k + 3).min(last) + 1);
        let rows = z.rows;
        columns(z, rows);
    }
}

/// The rotation that brings a block of two to standard form: triangular, or with equal elements on the diagonal.
struct Block {
    entries: [[f64; 2]; 2],
    values: [Complex64; 2],
    cosine: f64,
    sine: f64,
}

impl Block {
    fn of(h: &Mat<f64>, at: usize) -> Block {
        let (a, b, c, d) = (h[(at, at)], h[(at, at + 1)], h[(at + 1, at)], h[(at + 1, at + 1)]);
        let ([a, b, c, d], cosine, sine) = standard(a, b, c, d);
        let imaginary = if c == 0.0 { 0.0 } else { b.abs().sqrt() * c.abs().sqrt() };
        Block {
            entries: [[a, b], [c, d]],
            values: [
                Complex64::new(a, imaginary),
                Complex64::new(d, if c == 0.0 { 0.0 } else { -imaginary }),
            ],
            cosine,
            sine,
        }
    }

    fn apply(&self, h: &mut Mat<f64>, z: &mut Mat<f64>, at: usize) {
        let turn = |x: f64, y: f64| (self.cosine * x + self.sine * y, self.cosine * y - self.sine * x);
        for j in at + 2..h.cols {
            (h[(at, j)], h[(at + 1, j)]) = turn(h[(at, j)], h[(at + 1, j)]);
        }
        for i in 0..at {
            (h[(i, at)], h[(i, at + 1)]) = turn(h[(i, at)], h[(i, at + 1)]);
        }
        for i in 0..z.rows {
            (z[(i, at)], z[(i, at + 1)]) = turn(z[(i, at)], z[(i, at + 1)]);
        }
        for (i, row) in self.entries.iter().enumerate() {
            (h[(at + i, at)], h[(at + i, at + 1)]) = (row[0], row[1]);
        }
    }
}

/// The Schur form of [[a, b], [c, d]] with its rotation (cosine, sine).
fn standard(a: f64, b: f64, c: f64, d: f64) -> ([f64; 4], f64, f64) {
    if c == 0.0 {
        return ([a, b, c, d], 1.0, 0.0);
    }
    if b == 0.0 {
        return ([d, -c, 0.0, a], 0.0, 1.0);
    }
    if a - d == 0.0 && (b < 0.0) != (c < 0.0) {
        return ([a, b, c, d], 1.0, 0.0);
    }
    let gap = a - d;
    let p = 0.5 * gap;
    let most = b.abs().max(c.abs());
    let least = b.abs().min(c.abs()) * 1f64.copysign(b) * 1f64.copysign(c);
    let scale = p.abs().max(most);
    let z = (p / scale) * p + (most / scale) * least;
    if z >= 4.0 * f64::EPSILON {
        // Two real eigenvalues.
        let z = p + (scale.sqrt() * z.sqrt()).copysign(p);
        let tau = c.hypot(z);
        return ([d + z, b - c, 0.0, d - (most / z) * least], z / tau, c / tau);
    }
    // Complex or nearly equal: the diagonal is made equal.
    let sigma = b + c;
    let tau = sigma.hypot(gap);
    let cosine = (0.5 * (1.0 + sigma.abs() / tau)).sqrt();
    let sine = -(p / (tau * cosine)) * 1f64.copysign(sigma);
    let (aa, bb) = (a * cosine + b * sine, b * cosine - a * sine);
    let (cc, dd) = (c * cosine + d * sine, d * cosine - c * sine);
    let (a, b) = (aa * cosine + cc * sine, bb * cosine + dd * sine);
    let (c, d) = (cc * cosine - aa * sine, dd * cosine - bb * sine);
    let middle = 0.5 * (a + d);
    if c == 0.0 {
        return ([middle, b, c, middle], cosine, sine);
    }
    if b == 0.0 {
        return ([middle, -c, 0.0, middle], -sine, cosine);
    }
    if (b < 0.0) != (c < 0.0) {
        return ([middle, b, c, middle], cosine, sine);
    }
    // Real after all.
    let (sab, sac) = (b.abs().sqrt(), c.abs().sqrt());
    let p = (sab * sac).copysign(c);
    let tau = 1.0 / (b + c).abs().sqrt();
    let (c1, s1) = (sab * tau, sac * tau);
    ([middle + p, b - c, 0.0, middle - p], cosine * c1 - sine * s1, cosine * s1 + sine * c1)
}
