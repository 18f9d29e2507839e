//! Pooling of images whose channels are innermost: some vectors of channels at a time. Knows layers, no ops.
#![allow(clippy::needless_range_loop, reason = "arrays of vectors stay in registers only where loops count")]

use super::epilogue::spans;
use super::shape::{Images, Plane};
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};
use crate::resources::pool;
use std::ops::Range;

/// What becomes of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PoolKind {
    /// The largest input, or NaN where there is one.
    Max,
    /// The sum over the number of inputs: of those in the image, or of the padding too (PyTorch's `count_include_pad`).
    Average {
        /// Whether the padding counts.
        padding: bool,
        /// What to divide by instead.
        divisor: Option<usize>,
    },
}

/// A pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// Windows of one size.
    Windows {
        /// What becomes of each.
        kind: PoolKind,
        /// Sizes of the window.
        kernel: Plane,
        /// Steps of the window.
        stride: Plane,
        /// Places around the image on both sides, at most half of the window.
        padding: Plane,
        /// Distance of the window's elements.
        dilation: Plane,
        /// Whether a last window that leaves the image counts (PyTorch's `ceil_mode`).
        ceil: bool,
    },
    /// Averages of as many windows as there are results: PyTorch's `adaptive_avg_pool2d`.
    Adaptive(Plane),
}

/// A window along one side: its elements in the image, and how many there are with the padding.
#[derive(Clone, Copy, Debug)]
struct Window {
    start: usize,
    count: usize,
    step: usize,
    padded: usize,
}

impl Pooling {
    /// Sizes of the result. None: an image smaller than the window, or a shape of zeros.
    pub fn result(&self, sizes: Plane) -> Option<Plane> {
        let Pooling::Windows { kernel, stride, padding, dilation, ceil, .. } = *self else {
            let Pooling::Adaptive(result) = *self else { return None };
            return Some(result);
        };
        let mut result = [0; 2];
        for i in 0..2 {
            if dilation[i] == 0 {
                return None;
            }
            let window = kernel[i].checked_sub(1)?.checked_mul(dilation[i])?.checked_add(1)?;
            let room = padding[i].checked_mul(2)?.checked_add(sizes[i])?.checked_sub(window)?;
            result[i] = room.checked_div(stride[i])?.checked_add(1)?;
            // A further window must begin inside of the image or its padding before it.
            let begins = result[i].checked_mul(stride[i])? < sizes[i].checked_add(padding[i])?;
            if ceil && !room.is_multiple_of(stride[i]) && begins {
                result[i] += 1;
            }
        }
        Some(result)
    }

    /// The windows along a side.
    fn windows(&self, side: usize, size: usize, results: usize) -> Vec<Window> {
        let window = |at: usize| match *self {
            Pooling::Adaptive(_) => {
                let (start, end) = (at * size / results, ((at + 1) * size).div_ceil(results));
                Window { start, count: end - start, step: 1, padded: end - start }
            }
            Pooling::Windows { kernel, stride, padding, dilation, .. } => {
                let (first, step, pad) = (at * stride[side], dilation[side], padding[side]);
                let skipped = pad.saturating_sub(first).div_ceil(step).min(kernel[side]);
                let end = (size + pad).saturating_sub(first).div_ceil(step).min(kernel[side]);
                // With the padding, but not with what `ceil` adds after it.
                let padded = (size + 2 * pad).saturating_sub(first).min(kernel[side]);
                let start = (first + skipped * step).saturating_sub(pad);
                Window { start, count: end.saturating_sub(skipped), step, padded }
            }
        };
        (0..results).map(window).collect()
    }

    /// Pools images of `channels` channels into pixels of `out` that lie `pitch` floats apart. Fails where sizes do not fit.
    pub fn run(&self, images: Images<'_>, channels: usize, out: &mut [f32], pitch: usize) -> Result<()> {
        self.run_with(Isa::best(), images, channels, out, pitch)
    }

    pub(super) fn run_with(
        &self,
        isa: Isa,
        images: Images<'_>,
        channels: usize,
        out: &mut [f32],
        pitch: usize,
    ) -> Result<()> {
        let refused = |what: &str| Diagnostic::runtime(format!("pooling: {what}"));
        let result =
            self.result(images.sizes).ok_or_else(|| refused("the image is smaller than the window"))?;
        let count = |sizes: Plane| images.batch.checked_mul(sizes[0])?.checked_mul(sizes[1]);
        let (Some(given), Some(pixels)) = (count(images.sizes), count(result)) else {
            return Err(refused("the images are too large"));
        };
        if !spans(images.values.len(), given, images.pitch, channels)
            || !spans(out.len(), pixels, pitch, channels)
        {
            return Err(refused("the images or the result have other sizes"));
        }
        if pixels == 0 || channels == 0 {
            return Ok(());
        }
        let down = self.windows(0, images.sizes[0], result[0]);
        let across = self.windows(1, images.sizes[1], result[1]);
        let line = result[1] * pitch;
        let end = line * images.batch * result[0] - pitch + channels;
        // One pixel alone is shared among threads by its channels.
        let size =
            if end == channels { channels.div_ceil(pool::threads()).next_multiple_of(WIDE) } else { line };
        pool::chunks(&mut out[..end], size, |n, out| {
            let row = n * size / line;
            let (image, rows) = (row / result[0], down[row % result[0]]);
            let channels = if end == channels { n * size..n * size + out.len() } else { 0..channels };
            with(isa, Line { pooling: self, images, image, rows, across: &across, channels, pitch, out });
        });
        Ok(())
    }
}

/// Channels that are pooled at a time: each addition waits for the one before.
const WIDE: usize = 4 * LANES;

/// A line of results, or some channels of one result.
struct Line<'a> {
    pooling: &'a Pooling,
    images: Images<'a>,
    image: usize,
    rows: Window,
    across: &'a [Window],
    channels: Range<usize>,
    pitch: usize,
    out: &'a mut [f32],
}

impl Work for Line<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let width = self.channels.len();
        for n in 0..self.across.len() {
            let column = self.across[n];
            let (max, divisor) = match self.pooling {
                Pooling::Windows { kind: PoolKind::Max, .. } => (true, 1),
                Pooling::Windows { kind: PoolKind::Average { divisor: Some(n), .. }, .. } => (false, *n),
                Pooling::Windows { kind: PoolKind::Average { padding: true, .. }, .. } => {
                    (false, self.rows.padded * column.padded)
                }
                _ => (false, self.rows.count * column.count),
            };
            let mut at = 0;
            while at < width {
                at += match width - at {
                    WIDE.. => self.vectors::<L, 4>(l, column, (max, divisor), (n, at)),
                    LANES.. => self.vectors::<L, 1>(l, column, (max, divisor), (n, at)),
                    count => self.some(l, column, (max, divisor), (n, at), count),
                };
            }
        }
    }
}

impl Line<'_> {
    /// Where the first of a window's elements of a row lies, and floats from one to the next.
    #[inline(always)]
    fn place(&self, row: usize, column: Window) -> (usize, usize) {
        let [height, width] = self.images.sizes;
        let line = (self.image * height + self.rows.start + row * self.rows.step) * width;
        ((line + column.start) * self.images.pitch + self.channels.start, column.step * self.images.pitch)
    }

    /// Pools `N` vectors of channels from the `at`-th on to the n-th pixel; gives how many channels they are. Rows are added by
    /// themselves first, so that rounding errors of large windows stay small.
    #[inline(always)]
    fn vectors<L: Lanes, const N: usize>(
        &mut self,
        l: L,
        column: Window,
        (max, divisor): (bool, usize),
        (n, at): (usize, usize),
    ) -> usize {
        let begin = l.splat(if max { f32::NEG_INFINITY } else { 0.0 });
        let mut all = [begin; N];
        for row in 0..self.rows.count {
            let (mut place, step) = self.place(row, column);
            place += at;
            let mut line = [begin; N];
            for _ in 0..column.count {
                let (x, _) = self.images.values[place..place + N * LANES].as_chunks::<LANES>();
                for j in 0..N {
                    let x = l.load(&x[j]);
                    line[j] = if max { l.largest(line[j], x) } else { l.add(line[j], x) };
                }
                place += step;
            }
            for j in 0..N {
                all[j] = if max { l.largest(all[j], line[j]) } else { l.add(all[j], line[j]) };
            }
        }
        let (out, _) = self.out[n * self.pitch + at..][..N * LANES].as_chunks_mut::<LANES>();
        let divisor = l.splat(divisor as f32);
        for j in 0..N {
            l.store(&mut out[j], if max { all[j] } else { l.div(all[j], divisor) });
        }
        N * LANES
    }

    /// The same for channels that fill no vector.
    #[inline(always)]
    fn some<L: Lanes>(
        &mut self,
        l: L,
        column: Window,
        (max, divisor): (bool, usize),
        (n, at): (usize, usize),
        count: usize,
    ) -> usize {
        let rest = if max { f32::NEG_INFINITY } else { 0.0 };
        let mut all = l.splat(rest);
        for row in 0..self.rows.count {
            let (mut place, step) = self.place(row, column);
            place += at;
            let mut line = l.splat(rest);
            for _ in 0..column.count {
                let x = l.load_some(&self.images.values[place..place + count], rest);
                line = if max { l.largest(line, x) } else { l.add(line, x) };
                place += step;
            }
            all = if max { l.largest(all, line) } else { l.add(all, line) };
        }
        let y = if max { all } else { l.div(all, l.splat(divisor as f32)) };
        l.store_some(&mut self.out[n * self.pitch + at..][..count], y);
        count
    }
}
