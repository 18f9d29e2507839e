//! Depthwise convolutions of images whose channels are innermost: a tile of pixels of a vector of channels at a time, an
//! input read once for all results that it belongs to. Windows that are rare are computed one by one where they leave the
//! image at a side. Knows layers, no ops.
#![allow(unsafe_code, reason = "vector loads and stores; `Line::fits` proves them inside their slices")]
#![allow(clippy::needless_range_loop, reason = "arrays of vectors stay in registers only where loops count")]

use super::epilogue::{Column, Epilogue, Finish, spans};
use super::shape::{ConvShape, Images, Plane};
use super::vector::{Isa, LANES, Lanes, Work, apart, read_some, with, write_some};
use crate::diag::{Diagnostic, Result};
use crate::resources::{Scratch, memory, pool};
use std::ops::Range;

/// Weights: for each tap those of all channels, padded to whole vectors.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    weights: Scratch<f32>,
    padded: usize,
}

impl Packed {
    /// Packs weights that stand channel by channel.
    pub fn new(weights: &[f32], channels: usize) -> Result<Packed> {
        let padded = channels.next_multiple_of(LANES);
        let taps = weights.len() / channels.max(1);
        let mut packed = memory::filled(taps.saturating_mul(padded), 0f32)?;
        for (at, weight) in weights.iter().enumerate() {
            packed[at % taps * padded + at / taps] = *weight;
        }
        Ok(Packed { weights: packed, padded })
    }
}

/// A call of a depthwise convolution.
pub(super) struct Job<'a> {
    pub packed: &'a Packed,
    pub shape: &'a ConvShape,
    pub images: Images<'a>,
    pub result: Plane,
    pub epilogue: &'a Epilogue<'a>,
    pub pitch: usize,
}

impl Job<'_> {
    /// Computes all lines of results, on several threads.
    pub fn run(&self, isa: Isa, out: &mut [f32]) -> Result<()> {
        let (rows, line) = (self.images.batch * self.result[0], self.result[1] * self.pitch);
        let end = line * rows - self.pitch + self.shape.out_channels;
        let out =
            out.get_mut(..end).ok_or_else(|| Diagnostic::internal("a depthwise result is too small"))?;
        // Some pieces for each thread, so that they end at about the same time.
        let each = rows.div_ceil(pool::threads() * 4).max(1);
        pool::try_chunks(out, each * line, |n, out| {
            for (row, out) in out.chunks_mut(line).enumerate() {
                let row = n * each + row;
                let line = self.line(row, out);
                if line.fits() != Some(true) {
                    return Err(Diagnostic::internal("a line of a depthwise convolution is too short"));
                }
                with(isa, line);
            }
            Ok(())
        })
    }

    fn line<'a>(&'a self, row: usize, out: &'a mut [f32]) -> Line<'a> {
        let (s, sizes) = (self.shape, self.images.sizes);
        let (image, h) = (row / self.result[0], row % self.result[0]);
        let first = h * s.stride[0];
        let taps = inside(first, s.kernel[0], s.dilation[0], s.padding[0][0], sizes[0]);
        // The first line that the window meets; some number where it meets none.
        let top = (first + taps.start * s.dilation[0]).saturating_sub(s.padding[0][0]);
        Line {
            job: self,
            start: (image * sizes[0] + top) * sizes[1] * self.images.pitch,
            taps,
            pixel: row * self.result[1],
            out,
        }
    }
}

/// Taps of a window that begins at `first`, counted from the padding's begin, that lie inside of the image.
fn inside(first: usize, taps: usize, distance: usize, padding: usize, size: usize) -> Range<usize> {
    let from = padding.saturating_sub(first).div_ceil(distance);
    let to = (size + padding).saturating_sub(first).div_ceil(distance).min(taps);
    from.min(to)..to
}

/// A line of results.
struct Line<'a> {
    job: &'a Job<'a>,
    /// Where the first line that the window meets begins.
    start: usize,
    /// Rows of the window that lie inside.
    taps: Range<usize>,
    /// The first result's number.
    pixel: usize,
    out: &'a mut [f32],
}

impl Line<'_> {
    /// Whether all that is touched lies in the slices.
    fn fits(&self) -> Option<bool> {
        let (j, s) = (self.job, self.job.shape);
        let rows = self.taps.len().saturating_sub(1).checked_mul(s.dilation[0])?;
        let last = rows.checked_mul(j.images.sizes[1])?.checked_add(j.images.sizes[1])?;
        let values = j.images.values.len().saturating_sub(self.start);
        let residual = j.epilogue.residual;
        Some(
            (self.taps.is_empty() || spans(values, last, j.images.pitch, s.in_channels))
                && spans(self.out.len(), j.result[1], j.pitch, s.out_channels)
                && j.packed.weights.len()
                    == s.kernel[0].checked_mul(s.kernel[1])?.checked_mul(j.packed.padded)?
                && j.packed.padded >= s.out_channels
                && residual
                    .is_none_or(|r| spans(r.values.len(), self.pixel + j.result[1], r.pitch, s.out_channels)),
        )
    }
}

impl Work for Line<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(mut self, l: L) {
        let wide_registers = l.rows() > 8;
        let s = self.job.shape;
        // SAFETY: `fits` has proved lines, results and weights.
        unsafe {
            match (s.kernel[1], s.stride[1], s.dilation[1]) {
                (3, 1, 1) if wide_registers => self.tiles::<L, WIDE, 3, 1>(l),
                (5, 1, 1) if wide_registers => self.tiles::<L, WIDE, 5, 1>(l),
                (7, 1, 1) if wide_registers => self.tiles::<L, WIDE, 7, 1>(l),
                // Tiles of plain loops are not kept in registers, and are as long to compile as all others together.
                _ if l.isa() == Isa::Portable => self.any_window(l),
                (3, 1, 1) => self.tiles::<L, NARROW, 3, 1>(l),
                (3, 2, 1) => self.tiles::<L, NARROW, 3, 2>(l),
                (5, 1, 1) => self.tiles::<L, NARROW, 5, 1>(l),
                (5, 2, 1) => self.tiles::<L, NARROW, 5, 2>(l),
                (7, 1, 1) => self.tiles::<L, NARROW, 7, 1>(l),
                _ => self.any_window(l),
            }
        }
    }
}

/// Whether lines are computed in tiles, their sides too, where there are vectors.
pub(super) fn has_tiles(s: &ConvShape) -> bool {
    let windows = [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1)];
    s.dilation[1] == 1 && windows.contains(&(s.kernel[1], s.stride[1]))
}

/// Results of a tile: the images of most models are multiples of seven wide.
const WIDE: usize = 7;
/// The same where there are few registers, or steps of two, whose larger tiles are not kept in registers.
const NARROW: usize = 4;

/// Columns of inputs that a tile may have.
const COLUMNS: usize = 13;

/// Does something for each of some numbers, written once for each: what depends on the number alone is decided when it is compiled, and
/// sums stay in registers. Of a loop with as many steps and branches the compiler makes a loop, and keeps sums in memory.
macro_rules! each_column {
    ($i:ident in $($n:literal)*; $body:block) => {
        $({
            let $i: usize = $n;
            $body
        })*
    };
}

impl Line<'_> {
    /// Computes all results, whatever the window.
    ///
    /// # Safety
    /// The line must fit.
    #[inline(always)]
    unsafe fn any_window<L: Lanes>(&mut self, l: L) {
        let (s, width) = (self.job.shape, self.job.images.sizes[1]);
        let columns = self.job.result[1];
        let (left, reach) = (s.padding[1][0], (s.kernel[1] - 1) * s.dilation[1]);
        // Results all of whose taps are inside.
        let end = (width + left).checked_sub(reach + 1).map_or(0, |last| last / s.stride[1] + 1).min(columns);
        let begin = left.div_ceil(s.stride[1]).min(end);
        let mut at = 0;
        while at < columns {
            let count = if (begin..end).contains(&at) { end - at } else { 1 };
            let taps = inside(at * s.stride[1], s.kernel[1], s.dilation[1], left, width);
            // SAFETY: the caller's promise; `inside` keeps columns in their lines.
            at = unsafe { self.some(l, at, count, taps) };
        }
    }

    /// Computes all results in tiles of `P`; see `tile`. The last ones of a line are computed again with those before them
    /// where that fills a tile.
    ///
    /// # Safety
    /// The line must fit.
    #[inline(always)]
    unsafe fn tiles<L: Lanes, const P: usize, const K: usize, const S: usize>(&mut self, l: L) {
        let (j, s) = (self.job, self.job.shape);
        let (columns, channels) = (j.result[1], s.out_channels);
        let whole = channels - channels % LANES;
        let mut at = 0;
        while at < columns {
            let begin = at.min(columns.saturating_sub(P));
            // Where the tile's first column of inputs lies, counted from the padding's begin, and which are inside.
            let first = begin * S;
            let from = s.padding[1][0].saturating_sub(first);
            let to = (j.images.sizes[1] + s.padding[1][0]).saturating_sub(first);
            // SAFETY: the caller's promise.
            unsafe {
                if from == 0 && to >= (P - 1) * S + K && begin + P <= columns {
                    for channel in (0..whole).step_by(LANES) {
                        self.tile::<L, P, K, S, false>(l, begin, channel, LANES, (0, 0));
                    }
                } else {
                    for channel in (0..whole).step_by(LANES) {
                        self.tile::<L, P, K, S, true>(l, begin, channel, LANES, (from, to));
                    }
                }
                if whole < channels {
                    self.tile::<L, P, K, S, true>(l, begin, whole, channels - whole, (from, to));
                }
                self.finish(l, begin, P);
            }
            at = begin + P;
        }
    }

    /// Computes at most `count` results that have the same taps; gives the one after them.
    ///
    /// # Safety
    /// The line must fit, and the results' taps must be inside.
    #[inline(always)]
    unsafe fn some<L: Lanes>(&mut self, l: L, at: usize, count: usize, taps: Range<usize>) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match count {
                4.. => self.pixels::<L, 4>(l, at, taps),
                2.. => self.pixels::<L, 2>(l, at, taps),
                _ => self.pixels::<L, 1>(l, at, taps),
            }
        }
    }

    /// Where the inputs of a result's tap lie in the first line that the window meets.
    #[inline(always)]
    fn column(&self, at: usize, tap: usize) -> usize {
        let s = self.job.shape;
        (at * s.stride[1] + tap * s.dilation[1]).saturating_sub(s.padding[1][0])
    }

    /// Stores `P` results' sums, or those of them that the line has, with what of the epilogue needs no function.
    ///
    /// # Safety
    /// As `some`.
    #[inline(always)]
    unsafe fn store<L: Lanes, const P: usize>(
        &mut self,
        l: L,
        at: usize,
        (channel, count): (usize, usize),
        sums: &[L::V; P],
    ) {
        let j = self.job;
        let column = Column::of(l, j.epilogue, channel, count);
        let out = self.out.as_mut_ptr().wrapping_add(at * j.pitch + channel);
        // A tile may be wider than the line.
        let results = P.min(j.result[1] - at);
        for p in 0..P {
            if p >= results {
                break;
            }
            // SAFETY: the caller's promise.
            unsafe { write_some(l, out.add(p * j.pitch), count, column.begin(l, sums[p])) };
        }
    }

    /// Applies the rest of the epilogue to all channels of at most `count` results that are stored.
    ///
    /// # Safety
    /// As `some`.
    #[inline(always)]
    unsafe fn finish<L: Lanes>(&mut self, l: L, at: usize, count: usize) {
        let j = self.job;
        if j.epilogue.is_simple() {
            return;
        }
        let out = self.out.as_mut_ptr().wrapping_add(at * j.pitch);
        let size = [count.min(j.result[1] - at), j.shape.out_channels];
        // SAFETY: the caller's promise.
        apart(l, unsafe { Finish::of_area(j.epilogue, (self.pixel + at, 0), out, size, j.pitch) });
    }

    /// Computes some channels of `P` results, or of those that the line has, whose windows have `K` columns, `S` columns from
    /// each to the next: an input is read once for all results that it belongs to. At an `EDGE`, columns from the first to the
    /// second of `inside` are in the image, the others are not.
    ///
    /// # Safety
    /// The line must fit.
    #[inline(always)]
    unsafe fn tile<L: Lanes, const P: usize, const K: usize, const S: usize, const EDGE: bool>(
        &mut self,
        l: L,
        at: usize,
        channel: usize,
        count: usize,
        inside: (usize, usize),
    ) {
        const { assert!((P - 1) * S + K <= COLUMNS) };
        let (j, s) = (self.job, self.job.shape);
        let pitch = j.images.pitch;
        let line_step = s.dilation[0] * j.images.sizes[1] * pitch;
        let mut sums = [l.splat(0.0); P];
        // SAFETY: the caller's promise; what lies beside the image and addresses past the last line are not read.
        unsafe {
            let mut line = j.images.values.as_ptr().wrapping_add(self.start + at * S * pitch + channel);
            line = line.wrapping_sub(s.padding[1][0] * pitch);
            for row in self.taps.clone() {
                let weights = j.packed.weights.as_ptr().add(row * K * j.packed.padded + channel);
                let mut w = [l.splat(0.0); K];
                for k in 0..K {
                    w[k] = l.read(weights.add(k * j.packed.padded));
                }
                each_column!(i in 0 1 2 3 4 5 6 7 8 9 10 11 12; {
                    if i < (P - 1) * S + K && (!EDGE || inside.0 <= i && i < inside.1) {
                        let x = read_some(l, line.wrapping_add(i * pitch), count);
                        for k in 0..K {
                            if i >= k && (i - k).is_multiple_of(S) && (i - k) / S < P {
                                sums[(i - k) / S] = l.fma(x, w[k], sums[(i - k) / S]);
                            }
                        }
                    }
                });
                line = line.wrapping_add(line_step);
            }
            self.store(l, at, (channel, count), &sums);
        }
    }

    /// Computes `P` results that have the same taps.
    ///
    /// # Safety
    /// The line must fit, and the results' taps must be inside.
    #[inline(always)]
    unsafe fn pixels<L: Lanes, const P: usize>(&mut self, l: L, at: usize, taps: Range<usize>) -> usize {
        let (j, s) = (self.job, self.job.shape);
        let pitch = j.images.pitch;
        let column = self.column(at, taps.start);
        let (step, tap_step) = (s.stride[1] * pitch, s.dilation[1] * pitch);
        let line_step = s.dilation[0] * j.images.sizes[1] * pitch;
        for channel in (0..s.out_channels).step_by(LANES) {
            let count = LANES.min(s.out_channels - channel);
            let mut sums = [l.splat(0.0); P];
            // SAFETY: the caller's promise; addresses past the last line and the last tap are not read.
            unsafe {
                let mut line = j.images.values.as_ptr().wrapping_add(self.start + column * pitch + channel);
                for row in self.taps.clone() {
                    let mut tap = line;
                    let mut w = j.packed.weights.as_ptr();
                    w = w.add((row * s.kernel[1] + taps.start) * j.packed.padded + channel);
                    for _ in taps.clone() {
                        let weight = l.read(w);
                        for p in 0..P {
                            sums[p] = l.fma(read_some(l, tap.wrapping_add(p * step), count), weight, sums[p]);
                        }
                        tap = tap.wrapping_add(tap_step);
                        w = w.wrapping_add(j.packed.padded);
                    }
                    line = line.wrapping_add(line_step);
                }
                self.store(l, at, (channel, count), &sums);
            }
        }
        // SAFETY: as above.
        unsafe { self.finish(l, at, P) };
        at + P
    }
}
