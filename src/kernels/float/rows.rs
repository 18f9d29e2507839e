//! Rows of float32: layer norm, softmax. Knows slices only.
#![allow(clippy::needless_range_loop, reason = "arrays of vectors stay in registers only where loops count")]

use super::math;
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};
use crate::resources::pool;

/// Floats from which rows are shared among threads.
const SHARED: usize = 1 << 14;

/// Rows of a piece of work.
fn rows_of_piece(len: usize, width: usize) -> usize {
    let rows = len / width.max(1);
    if len < SHARED { rows.max(1) } else { rows.div_ceil(pool::threads() * 4).max(1) }
}

/// Normalizes rows of `width` elements to mean 0 and variance 1 (of all elements, plus `eps`), then multiplies with `weight`
/// and adds `bias`: PyTorch's `layer_norm` over the last dimension. Fails where sizes do not fit.
pub fn layer_norm(
    x: &[f32],
    width: usize,
    weight: Option<&[f32]>,
    bias: Option<&[f32]>,
    eps: f32,
    out: &mut [f32],
) -> Result<()> {
    layer_norm_with(Isa::best(), x, width, (weight, bias), eps, out)
}

pub(super) fn layer_norm_with(
    isa: Isa,
    x: &[f32],
    width: usize,
    (weight, bias): (Option<&[f32]>, Option<&[f32]>),
    eps: f32,
    out: &mut [f32],
) -> Result<()> {
    let fits = |numbers: Option<&[f32]>| numbers.is_none_or(|n| n.len() == width);
    if x.len() != out.len() || (width > 0 && !x.len().is_multiple_of(width)) || !fits(weight) || !fits(bias) {
        return Err(Diagnostic::runtime(format!("layer_norm: sizes do not fit rows of {width} elements")));
    }
    if width == 0 {
        return Ok(());
    }
    let each = rows_of_piece(x.len(), width) * width;
    pool::chunks(out, each, |n, out| {
        let x = &x[n * each..n * each + out.len()];
        with(isa, LayerNorm { x, width, weight, bias, eps, out });
    });
    Ok(())
}

/// Mean and variance of a row that have been found otherwise; where squares of its numbers may overflow they are found anew,
/// as PyTorch's kernel finds them: then it shows in what order numbers are added.
pub fn moments_of<T: Copy>(row: &[T], float: impl Fn(T) -> f32, (mean, variance): (f32, f32)) -> (f32, f32) {
    /// Far below the square root of the largest float32, which is 1.8e19.
    const LARGE: f32 = 1e18;
    let spread = variance * row.len() as f32;
    if mean.abs() < LARGE && spread < LARGE * LARGE { (mean, variance) } else { running_moments(row, float) }
}

/// Mean and variance by running means: one for each of eight lanes, and one of the rest, which the lanes join one by one. A
/// square that overflows is not a number where what it joins is empty, and infinite otherwise.
#[cold]
fn running_moments<T: Copy>(row: &[T], float: impl Fn(T) -> f32) -> (f32, f32) {
    let (vectors, rest) = row.as_chunks::<8>();
    let mut lanes = [(0f32, 0f32); 8];
    for (n, vector) in vectors.iter().enumerate() {
        let part = 1.0 / (n + 1) as f32;
        for ((mean, squares), x) in lanes.iter_mut().zip(vector) {
            let x = float(*x);
            let delta = x - *mean;
            *mean += delta * part;
            *squares += delta * (x - *mean);
        }
    }
    let (mut count, mut mean, mut squares) = (0f32, 0f32, 0f32);
    for x in rest {
        count += 1.0;
        let x = float(*x);
        let delta = x - mean;
        mean += delta / count;
        squares += delta * (x - mean);
    }
    for (other, others) in lanes {
        let total = count + vectors.len() as f32;
        let part = if total == 0.0 { 0.0 } else { vectors.len() as f32 / total };
        let delta = other - mean;
        mean += part * delta;
        squares += others + delta * delta * part * count;
        count = total;
    }
    (mean, squares / row.len() as f32)
}

struct LayerNorm<'a> {
    x: &'a [f32],
    width: usize,
    weight: Option<&'a [f32]>,
    bias: Option<&'a [f32]>,
    eps: f32,
    out: &'a mut [f32],
}

/// The sum of `f` of all elements, in several vectors: each addition waits for the one before. `$rest` is what fills the
/// last vector up.
macro_rules! sum_of {
    ($l:expr, $row:expr, $rest:expr, |$x:ident| $f:expr) => {{
        let (l, row): (_, &[f32]) = ($l, $row);
        let mut sums = [l.splat(0.0); 4];
        let (blocks, rest) = row.as_chunks::<{ 4 * LANES }>();
        for block in blocks {
            let (parts, _) = block.as_chunks::<LANES>();
            for (sum, part) in sums.iter_mut().zip(parts) {
                let $x = l.load(part);
                *sum = l.add(*sum, $f);
            }
        }
        let (parts, rest) = rest.as_chunks::<LANES>();
        for (sum, part) in sums.iter_mut().zip(parts) {
            let $x = l.load(part);
            *sum = l.add(*sum, $f);
        }
        if !rest.is_empty() {
            let $x = l.load_some(rest, $rest);
            sums[3] = l.add(sums[3], $f);
        }
        l.sum(l.add(l.add(sums[0], sums[1]), l.add(sums[2], sums[3])))
    }};
}

impl Work for LayerNorm<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let width = self.width as f32;
        let (weights, weights_rest) = self.weight.unwrap_or_default().as_chunks::<LANES>();
        let (biases, biases_rest) = self.bias.unwrap_or_default().as_chunks::<LANES>();
        for (x, out) in self.x.chunks_exact(self.width).zip(self.out.chunks_exact_mut(self.width)) {
            let mean = sum_of!(l, x, 0.0, |v| v) / width;
            let middle = l.splat(mean);
            let variance = sum_of!(l, x, mean, |v| l.mul(l.sub(v, middle), l.sub(v, middle))) / width;
            let (mean, variance) = moments_of(x, |x| x, (mean, variance));
            let middle = l.splat(mean);
            let scale = l.splat(1.0 / (variance + self.eps).sqrt());
            let (x, x_rest) = x.as_chunks::<LANES>();
            let (out, out_rest) = out.as_chunks_mut::<LANES>();
            for (n, (x, out)) in x.iter().zip(out).enumerate() {
                let mut y = l.mul(l.sub(l.load(x), middle), scale);
                if let Some(weight) = weights.get(n) {
                    y = l.mul(y, l.load(weight));
                }
                if let Some(bias) = biases.get(n) {
                    y = l.add(y, l.load(bias));
                }
                l.store(out, y);
            }
            if !x_rest.is_empty() {
                let mut y = l.mul(l.sub(l.load_some(x_rest, 0.0), middle), scale);
                if self.weight.is_some() {
                    y = l.mul(y, l.load_some(weights_rest, 0.0));
                }
                if self.bias.is_some() {
                    y = l.add(y, l.load_some(biases_rest, 0.0));
                }
                l.store_some(out_rest, y);
            }
        }
    }
}

/// Softmax of rows of `width` elements, in place. Fails where sizes do not fit.
pub fn softmax(x: &mut [f32], width: usize) -> Result<()> {
    softmax_with(Isa::best(), x, width)
}

pub(super) fn softmax_with(isa: Isa, x: &mut [f32], width: usize) -> Result<()> {
    if width == 0 || !x.len().is_multiple_of(width) {
        let fits = x.is_empty();
        return if fits { Ok(()) } else { Err(Diagnostic::runtime("softmax: sizes do not fit")) };
    }
    let each = rows_of_piece(x.len(), width) * width;
    pool::chunks(x, each, |_, rows| {
        with(
            isa,
            Softmax { rows, pitch: width, width, scale: 1.0, biases: &[], masks: false, denormals: true },
        );
    });
    Ok(())
}

/// Softmax of `scale * x + biases` in place, for rows that lie `pitch` floats apart.
pub(super) struct Softmax<'a> {
    pub rows: &'a mut [f32],
    pub pitch: usize,
    pub width: usize,
    pub scale: f32,
    /// Values, and floats from row to row.
    pub biases: &'a [(&'a [f32], usize)],
    /// Whether rows all of whose elements are minus infinity become zeros, else NaN.
    pub masks: bool,
    /// Whether exponentials that are denormals are kept, else 0.
    pub denormals: bool,
}

/// Vectors of a row that is kept in registers.
pub(super) const FEW: usize = 4;

impl Work for Softmax<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let rows = self.rows.len().div_ceil(self.pitch.max(1));
        for n in 0..rows {
            if self.width <= FEW * LANES {
                self.short(l, n);
            } else {
                self.long(l, n);
            }
        }
    }
}

/// e^x; where denormals are not kept, 0 instead of them.
#[inline(always)]
fn exp<L: Lanes>(l: L, x: L::V, denormals: bool) -> L::V {
    if denormals { math::exp(l, x) } else { math::exp_or_zero(l, x) }
}

impl Softmax<'_> {
    /// A vector of a row's elements, scaled and with its biases; minus infinity where there are none.
    #[inline(always)]
    fn part<L: Lanes>(&self, l: L, n: usize, at: usize) -> L::V {
        let count = LANES.min(self.width - at);
        let mut v = l.mul(l.load_some(&self.rows[n * self.pitch + at..][..count], 0.0), l.splat(self.scale));
        for (bias, pitch) in self.biases {
            v = l.add(v, l.load_some(&bias[n * pitch + at..][..count], 0.0));
        }
        if count < LANES {
            l.where_less(l.load(&INDEX), l.splat(count as f32), v, l.splat(f32::NEG_INFINITY))
        } else {
            v
        }
    }

    /// A row that fits in registers.
    #[inline(always)]
    fn short<L: Lanes>(&mut self, l: L, n: usize) {
        let least = l.splat(f32::NEG_INFINITY);
        let mut row = [least; FEW];
        let mut most = least;
        for i in 0..FEW {
            if i * LANES < self.width {
                row[i] = self.part(l, n, i * LANES);
                most = l.at_least(most, row[i]);
            }
        }
        let most = l.max_of(most);
        let mut total = l.splat(0.0);
        let masked = self.masks
            && most == f32::NEG_INFINITY
            && !l.sum(l.add(l.add(row[0], row[1]), l.add(row[2], row[3]))).is_nan();
        if masked {
            // Attention gives zeros.
            row = [l.splat(0.0); FEW];
        } else {
            for i in 0..FEW {
                if i * LANES < self.width {
                    row[i] = exp(l, l.sub(row[i], l.splat(most)), self.denormals);
                    total = l.add(total, row[i]);
                }
            }
            total = l.splat(1.0 / l.sum(total));
        }
        for i in 0..FEW {
            if i * LANES < self.width {
                let count = LANES.min(self.width - i * LANES);
                let to = &mut self.rows[n * self.pitch + i * LANES..][..count];
                l.store_some(to, l.mul(row[i], total));
            }
        }
    }

    #[inline(always)]
    fn long<L: Lanes>(&mut self, l: L, n: usize) {
        let mut most = l.splat(f32::NEG_INFINITY);
        for at in (0..self.width).step_by(LANES) {
            let v = self.part(l, n, at);
            let count = LANES.min(self.width - at);
            l.store_some(&mut self.rows[n * self.pitch + at..][..count], v);
            most = l.at_least(most, v);
        }
        let (most, denormals) = (l.max_of(most), self.denormals);
        let row = &mut self.rows[n * self.pitch..][..self.width];
        if self.masks && most == f32::NEG_INFINITY && !row.iter().any(|x| x.is_nan()) {
            // Attention gives zeros.
            row.fill(0.0);
            return;
        }
        let most = l.splat(most);
        let mut sums = [l.splat(0.0); 2];
        for (i, part) in row.chunks_mut(LANES).enumerate() {
            // What fills the vector up gives 0.
            let e = exp(l, l.sub(l.load_some(part, f32::NEG_INFINITY), most), denormals);
            l.store_some(part, e);
            sums[i % 2] = l.add(sums[i % 2], e);
        }
        let factor = l.splat(1.0 / l.sum(l.add(sums[0], sums[1])));
        for part in row.chunks_mut(LANES) {
            let y = l.mul(l.load_some(part, 0.0), factor);
            l.store_some(part, y);
        }
    }
}

/// The number of each lane.
const INDEX: [f32; LANES] =
    [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0, 14.0, 15.0];
