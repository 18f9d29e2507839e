//! Convolution of images whose channels stand alone. A channel is laid out once, with its padding, so that every window
//! element is one stretch of memory; sums stay in registers while all window elements are added to them.

use super::geometry::Geometry;
use crate::kernels::matrix::gemm::Gemm;
use crate::kernels::wide_loops;

/// Sums that are kept in registers at once: several vectors, as each addition waits for the one before.
const LANES: usize = 64;

/// A layout of one channel: for each remainder of rows and of columns by the stride a plane of its own.
pub(super) struct Grid {
    /// Elements of a line of a plane.
    line: usize,
    /// Lines of a plane.
    lines: usize,
    /// Where each window element begins.
    taps: Vec<usize>,
    /// Elements of all planes, with what a block may read beyond.
    size: usize,
}

impl Grid {
    /// The layout for a convolution of two dimensions; None for others.
    pub(super) fn new(g: &Geometry) -> Option<Grid> {
        if g.kernel[0] != 1 || g.input[0] != 1 || g.output[0] != 1 || g.before[0] != 0 {
            return None;
        }
        if g.kernel.contains(&0) || g.input.contains(&0) {
            return None;
        }
        let extra = |d: usize| (g.kernel[d] - 1) * g.dilation[d] / g.stride[d];
        let (lines, line) = (g.output[1] + extra(1), g.output[2] + extra(2));
        let plane = lines.checked_mul(line)?;
        let size = plane.checked_mul(g.stride[1])?.checked_mul(g.stride[2])?.checked_add(LANES)?;
        let place = |ky: usize, kx: usize| {
            let (y, x) = (ky * g.dilation[1], kx * g.dilation[2]);
            let phase = y % g.stride[1] * g.stride[2] + x % g.stride[2];
            phase * plane + y / g.stride[1] * line + x / g.stride[2]
        };
        let taps = (0..g.kernel[1]).flat_map(|ky| (0..g.kernel[2]).map(move |kx| (ky, kx)));
        let taps = taps.map(|(ky, kx)| place(ky, kx)).collect();
        // A stride far larger than the window would make planes that are never read.
        let image = g.input[1].checked_mul(g.input[2])?;
        (size <= 8 * image.max(1 << 12)).then_some(Grid { line, lines, taps, size })
    }

    /// Adds the windows of one channel to `out`, which holds the bias.
    pub(super) fn run<T: Gemm>(&self, image: &[T], kernel: &[T], bias: T, g: &Geometry, out: &mut [T]) {
        let mut planes = vec![T::default(); self.size];
        wide_loops(
            #[inline(always)]
            || {
                self.spread(image, g, &mut planes);
                self.sum(&planes, kernel, bias, g, out);
            },
        );
    }

    /// Copies the image into the planes; what is padding stays zero.
    #[inline(always)]
    fn spread<T: Gemm>(&self, image: &[T], g: &Geometry, planes: &mut [T]) {
        let (rows, step) = (g.stride[1], g.stride[2]);
        for (y, source) in image.chunks_exact(g.input[2]).enumerate() {
            let at = y + g.before[1];
            if at / rows >= self.lines {
                continue;
            }
            for phase in 0..step {
                // Columns x with (x + before) % step == phase, from the first on.
                let first = (phase + step - g.before[2] % step) % step;
                if first >= source.len() {
                    continue;
                }
                let column = (first + g.before[2]) / step;
                let plane = (at % rows * step + phase) * self.lines * self.line;
                let line = &mut planes[plane + at / rows * self.line..][..self.line];
                let Some(line) = line.get_mut(column..) else { continue };
                if step == 1 {
                    let count = line.len().min(source.len());
                    line[..count].copy_from_slice(&source[..count]);
                } else {
                    line.iter_mut().zip(source[first..].iter().step_by(step)).for_each(|(t, s)| *t = *s);
                }
            }
        }
    }

    /// Sums over window elements, a block of places at a time; places run through whole lines of a plane, and those at the
    /// ends of lines, which are not outputs, are left out when a block is stored.
    #[inline(always)]
    fn sum<T: Gemm>(&self, planes: &[T], kernel: &[T], bias: T, g: &Geometry, out: &mut [T]) {
        let width = g.output[2];
        let places = (g.output[1] - 1) * self.line + width;
        let mut from = 0;
        while from < places {
            let count = LANES.min(places - from);
            let sums = if count > LANES / 2 {
                self.block::<T, LANES>(planes, kernel, bias, from)
            } else {
                let half = self.block::<T, { LANES / 2 }>(planes, kernel, bias, from);
                std::array::from_fn(|i| if i < LANES / 2 { half[i] } else { bias })
            };
            let mut at = 0;
            while at < count {
                let (y, x) = ((from + at) / self.line, (from + at) % self.line);
                let run = (self.line - x).min(count - at);
                if x < width {
                    let kept = run.min(width - x);
                    out[y * width + x..][..kept].copy_from_slice(&sums[at..at + kept]);
                }
                at += run;
            }
            from += count;
        }
    }

    #[inline(always)]
    fn block<T: Gemm, const N: usize>(&self, planes: &[T], kernel: &[T], bias: T, from: usize) -> [T; N] {
        let mut sums = [bias; N];
        for (weight, tap) in kernel.iter().zip(&self.taps) {
            // The planes are followed by as many elements as a block has, so that there always is one.
            let Some(values) = planes[tap + from..].first_chunk::<N>() else { continue };
            for (sum, value) in sums.iter_mut().zip(values) {
                *sum = weight.fused(*value, *sum);
            }
        }
        sums
    }
}
