//! One result line of a depthwise convolution of bytes: each channel's own sum over the window, with the machine's vector
//! instructions. The rows that a window covers are interleaved four at a time, so that one instruction adds up four of a
//! column's inputs, and each column is interleaved once for all results that it belongs to. Knows pointers into checked slices.
#![allow(unsafe_code, reason = "vector loads and stores; `Slide::check` proves them inside their slices")]

use super::job::{Isa, PANEL, QUAD, pair_limit};
#[cfg(target_arch = "x86_64")]
use super::lanes::wide;
#[cfg(target_arch = "x86_64")]
use super::narrow;
use super::stage::{Finish, Stage};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::CACHE_LINE;
use crate::resources::{Scratch, memory};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Weights of a depthwise convolution: for each quad of window rows and each column of the window the quads of all channels,
/// padded to whole panels.
#[derive(Clone, Debug)]
pub(super) struct Packed {
    weights: Scratch<i8>,
    /// Where in `weights` they begin: at a cache line, unless they were copied.
    begin: usize,
    sums: Scratch<i32>,
    /// Inputs up to it make sums of 16 bits with the weights of two neighbouring rows.
    limit: u8,
    channels: usize,
    /// Rows and columns of the window; a row of a window in depth counts as one.
    rows: usize,
    columns: usize,
}

impl Packed {
    /// Packs weights that stand channel by channel, row by row.
    pub fn new(weights: &[i8], channels: usize, rows: usize, columns: usize) -> Result<Packed> {
        let padded = channels.checked_next_multiple_of(PANEL);
        let room =
            padded.and_then(|n| n.checked_mul(QUAD)?.checked_mul(rows.div_ceil(QUAD))?.checked_mul(columns));
        let room = room.filter(|_| channels.checked_mul(rows * columns) == Some(weights.len()));
        let room =
            room.ok_or_else(|| Diagnostic::runtime("weights of a depthwise convolution do not fit"))?;
        let line = padded.unwrap_or(0) * QUAD;
        let mut packed = memory::filled(room.saturating_add(CACHE_LINE), 0i8)?;
        let begin = packed.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
        let mut sums = memory::filled(channels, 0i32)?;
        for (at, weight) in weights.iter().enumerate() {
            let (channel, tap) = (at / (rows * columns), at % (rows * columns));
            let (row, column) = (tap / columns, tap % columns);
            packed[begin + (row / QUAD * columns + column) * line + channel * QUAD + row % QUAD] = *weight;
            sums[channel] = sums[channel].wrapping_add(i32::from(*weight));
        }
        let limit = pair_limit(&packed[begin..]);
        Ok(Packed { weights: packed, begin, sums, limit, channels, rows, columns })
    }

    /// Sum of each channel's weights.
    pub fn sums(&self) -> &[i32] {
        &self.sums
    }

    /// Whether inputs are so small that pairs of products are sums of 16 bits.
    pub fn is_small(&self, inputs: &[u8], zero: u8) -> bool {
        self.limit == u8::MAX || inputs.iter().copied().fold(zero, u8::max) <= self.limit
    }

    /// Channels up to whole panels: as many as a stage has numbers for.
    pub fn padded(&self) -> usize {
        self.channels.next_multiple_of(PANEL)
    }

    /// Quads of window rows.
    pub fn row_quads(&self) -> usize {
        self.rows.div_ceil(QUAD)
    }
}

/// A line of results.
pub(super) struct Slide<'a> {
    pub packed: &'a Packed,
    /// For each quad of window rows: the columns of the padded input, of each the channels, of each the quad.
    pub quads: &'a [u8],
    /// Bytes from one quad of rows to the next.
    pub line: usize,
    /// Columns from a result to the next, and from a tap to the next.
    pub stride: usize,
    pub dilation: usize,
    /// Whether [`Packed::is_small`] holds for the inputs.
    pub small: bool,
    pub stage: &'a Stage,
}

/// Bytes after the quads that a load of a whole vector reaches.
pub(super) const SLACK: usize = PANEL * QUAD;

impl Slide<'_> {
    fn check(&self, out: &[u8]) -> Result<()> {
        let p = self.packed;
        let fits = || {
            let results = out.len() / p.channels.max(1);
            let last = results.saturating_sub(1).checked_mul(self.stride)?;
            let reach = p.columns.saturating_sub(1).checked_mul(self.dilation)?.checked_add(last)?;
            let place = reach.checked_mul(p.channels)?.checked_add(p.channels)?.checked_mul(QUAD)?;
            let lines = p.row_quads().saturating_sub(1).checked_mul(self.line)?;
            let stage = self.stage;
            let numbers = [stage.a.len(), stage.b.len(), stage.c.len(), stage.correction.len()];
            let weights = p.padded().checked_mul(QUAD * p.columns)?.checked_mul(p.row_quads())?;
            Some(
                lines.checked_add(place)?.checked_add(SLACK)? <= self.quads.len()
                    && out.len().is_multiple_of(p.channels.max(1))
                    && weights.checked_add(p.begin)? <= p.weights.len()
                    && numbers.iter().all(|n| p.padded() <= *n)
                    && (stage.weight_zeros.is_empty() || stage.weight_zeros.len() >= p.padded())
                    && stage.finish != Finish::Float,
            )
        };
        if fits() == Some(true) {
            return Ok(());
        }
        Err(Diagnostic::internal("a depthwise product in slices that are too small"))
    }
}

/// Computes a line of results, channels innermost.
pub(super) fn slide(isa: Isa, job: &Slide<'_>, out: &mut [u8]) -> Result<()> {
    if out.is_empty() {
        return Ok(());
    }
    job.check(out)?;
    match isa {
        // SAFETY: `Isa::supported` found the instructions; `Slide::check` has proved all accesses in bounds. Weights' zero
        // points need sums of each channel's inputs, which only the loop makes.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if !job.stage.needs_row_sums() => unsafe { slide_avx512(job, out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni | Isa::Avx2 if !job.stage.needs_row_sums() => unsafe { slide_avx2(job, out) },
        // SAFETY: as above; the loop itself is safe code.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::AvxVnni | Isa::Avx2 => unsafe { loop_avx2(job, out) },
        Isa::Portable => slide_loop(job, out),
    }
    Ok(())
}

/// Interleaves four lines of bytes: of each place the four bytes side by side. `to` has four times as many.
pub(super) fn interleave(isa: Isa, lines: [&[u8]; QUAD], to: &mut [u8]) {
    let count = lines.iter().map(|line| line.len()).min().unwrap_or(0).min(to.len() / QUAD);
    let done = match isa {
        // SAFETY: `Isa::supported` found the instructions; all lines have `count` bytes, and `to` four times as many.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { interleave_avx512(lines, count, to) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni | Isa::Avx2 => unsafe { interleave_avx2(lines, count, to) },
        Isa::Portable => 0,
    };
    for (at, to) in to.chunks_exact_mut(QUAD).enumerate().take(count).skip(done) {
        to.iter_mut().zip(lines).for_each(|(to, line)| *to = line[at]);
    }
}

/// Whole vectors of the lines. Gives how many bytes of each that are.
///
/// # Safety
/// Each line must have `count` bytes, and `to` four times as many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn interleave_avx512(lines: [&[u8]; QUAD], count: usize, to: &mut [u8]) -> usize {
    // Unpacking works within 128 bits; with every fourth doubleword in one of them its results stand in order.
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let whole = count / 64 * 64;
    for at in (0..whole).step_by(64) {
        // SAFETY: 64 bytes of each line from `at` on, which is at most `count - 64`, and 256 of `to` from `4 * at` on.
        unsafe {
            let mut x = [_mm512_setzero_si512(); QUAD];
            for (x, line) in x.iter_mut().zip(&lines) {
                *x = _mm512_permutexvar_epi32(order, wide::load(line.as_ptr(), at));
            }
            let lows = (_mm512_unpacklo_epi8(x[0], x[1]), _mm512_unpacklo_epi8(x[2], x[3]));
            let highs = (_mm512_unpackhi_epi8(x[0], x[1]), _mm512_unpackhi_epi8(x[2], x[3]));
            let quads = [
                _mm512_unpacklo_epi16(lows.0, lows.1),
                _mm512_unpackhi_epi16(lows.0, lows.1),
                _mm512_unpacklo_epi16(highs.0, highs.1),
                _mm512_unpackhi_epi16(highs.0, highs.1),
            ];
            for (n, quads) in quads.into_iter().enumerate() {
                _mm512_storeu_si512(to.as_mut_ptr().add(at * QUAD + n * 64).cast(), quads);
            }
        }
    }
    whole
}

/// # Safety
/// `Slide::check` must have passed; the weights have no zero points.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn slide_avx512(job: &Slide<'_>, out: &mut [u8]) {
    let mut first = 0;
    while first < job.packed.channels {
        let panels = (job.packed.channels - first).div_ceil(PANEL).min(4);
        // SAFETY: the caller's promise; the panels are padded channels.
        unsafe {
            match (panels, job.stage.bounded) {
                (1, true) => panels_avx512::<1, true>(job, first, out),
                (2, true) => panels_avx512::<2, true>(job, first, out),
                (3, true) => panels_avx512::<3, true>(job, first, out),
                (_, true) => panels_avx512::<4, true>(job, first, out),
                (1, false) => panels_avx512::<1, false>(job, first, out),
                (2, false) => panels_avx512::<2, false>(job, first, out),
                (3, false) => panels_avx512::<3, false>(job, first, out),
                (_, false) => panels_avx512::<4, false>(job, first, out),
            }
        }
        first += panels * PANEL;
    }
}

/// All results of some panels of channels.
///
/// # Safety
/// As `slide_avx512`; `first` is below the channels, and there are `P` panels from it on.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
unsafe fn panels_avx512<const P: usize, const BOUNDED: bool>(job: &Slide<'_>, first: usize, out: &mut [u8]) {
    let p = job.packed;
    let (left, padded) = ((p.channels - first).min(P * PANEL), p.padded() * QUAD);
    let (step, tap) = (job.stride * p.channels * QUAD, job.dilation * p.channels * QUAD);
    let (mut start, mut a, mut b, mut c) = (
        [_mm512_setzero_si512(); P],
        [_mm512_setzero_ps(); P],
        [_mm512_setzero_ps(); P],
        [_mm512_setzero_ps(); P],
    );
    // Loops and no closures: what calls a closure lacks the instructions, and passes vectors through memory.
    for i in 0..P {
        let (stage, at) = (job.stage, first + i * PANEL);
        // SAFETY: the stage has numbers for padded channels by `Slide::check`.
        unsafe {
            start[i] = wide::load(stage.correction.as_ptr(), at);
            a[i] = wide::numbers(&stage.a, at);
            b[i] = wide::numbers(&stage.b, at);
            c[i] = wide::numbers(&stage.c, at);
        }
    }
    let shared = wide::Shared::of(job.stage);
    // SAFETY: quads are read up to `SLACK` past the last place, weights and the stage's numbers for padded channels, all
    // inside by `Slide::check`; `left` bytes are written to each of the results, which are those of `out`.
    unsafe {
        for result in 0..out.len() / p.channels {
            let mut sums = start;
            let mut weights = p.weights.as_ptr().add(p.begin + first * QUAD);
            for rows in 0..p.row_quads() {
                let mut quads = job.quads.as_ptr().add(rows * job.line + result * step + first * QUAD);
                for _ in 0..p.columns {
                    for (i, sum) in sums.iter_mut().enumerate() {
                        let (x, w) = (wide::load(quads, i * SLACK), wide::load(weights, i * SLACK));
                        *sum = _mm512_dpbusd_epi32(*sum, x, w);
                    }
                    // After the last tap nothing is read, and the pointer may leave the slice.
                    (quads, weights) = (quads.wrapping_add(tap), weights.wrapping_add(padded));
                }
            }
            let mut all = [_mm512_setzero_si512(); 4];
            for (i, (sum, all)) in sums.iter().zip(&mut all).enumerate() {
                *all = shared.rounded::<BOUNDED>(_mm512_cvtepi32_ps(*sum), a[i], b[i], c[i]);
            }
            wide::store(out.as_mut_ptr().add(result * p.channels + first), wide::bytes(all), left);
        }
    }
}

/// Whole vectors of the lines, of 32 bytes. Gives how many bytes of each that are.
///
/// # Safety
/// Each line must have `count` bytes, and `to` four times as many.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn interleave_avx2(lines: [&[u8]; QUAD], count: usize, to: &mut [u8]) -> usize {
    let whole = count / 32 * 32;
    for at in (0..whole).step_by(32) {
        // SAFETY: 32 bytes of each line from `at` on, which is at most `count - 32`, and 128 of `to` from `4 * at` on.
        unsafe {
            let mut x = [_mm256_setzero_si256(); QUAD];
            for (x, line) in x.iter_mut().zip(&lines) {
                *x = narrow::load(line.as_ptr().add(at));
            }
            let lows = (_mm256_unpacklo_epi8(x[0], x[1]), _mm256_unpacklo_epi8(x[2], x[3]));
            let highs = (_mm256_unpackhi_epi8(x[0], x[1]), _mm256_unpackhi_epi8(x[2], x[3]));
            let first = (_mm256_unpacklo_epi16(lows.0, lows.1), _mm256_unpackhi_epi16(lows.0, lows.1));
            let second = (_mm256_unpacklo_epi16(highs.0, highs.1), _mm256_unpackhi_epi16(highs.0, highs.1));
            // Unpacking works within 128 bits.
            let quads = [
                _mm256_permute2x128_si256::<0x20>(first.0, first.1),
                _mm256_permute2x128_si256::<0x20>(second.0, second.1),
                _mm256_permute2x128_si256::<0x31>(first.0, first.1),
                _mm256_permute2x128_si256::<0x31>(second.0, second.1),
            ];
            for (n, quads) in quads.into_iter().enumerate() {
                _mm256_storeu_si256(to.as_mut_ptr().add(at * QUAD + n * 32).cast(), quads);
            }
        }
    }
    whole
}

/// Channels of a vector of sums.
#[cfg(target_arch = "x86_64")]
const EIGHT: usize = 8;

/// # Safety
/// `Slide::check` must have passed; the weights have no zero points.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn slide_avx2(job: &Slide<'_>, out: &mut [u8]) {
    for first in (0..job.packed.channels).step_by(EIGHT) {
        // SAFETY: the caller's promise; channels are padded to whole panels.
        unsafe {
            match (job.packed.row_quads(), job.packed.columns, job.small) {
                (1, 3, true) => eight_avx2::<3, true>(job, first, out),
                (1, 3, false) => eight_avx2::<3, false>(job, first, out),
                (.., true) => eight_avx2::<0, true>(job, first, out),
                (.., false) => eight_avx2::<0, false>(job, first, out),
            }
        }
    }
}

/// Weights of eight channels as pairs of 16 bits: even bytes of quads, and odd ones.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline]
fn pairs(quads: __m256i) -> [__m256i; 2] {
    [_mm256_srai_epi16::<8>(_mm256_slli_epi16::<8>(quads)), _mm256_srai_epi16::<8>(quads)]
}

/// All results of eight channels. `TAPS`: columns of a window with one quad of rows, whose weights are widened once; 0 for any
/// window. `SMALL`: [`Slide::small`].
///
/// # Safety
/// As `slide_avx2`; `first` is below the channels.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
unsafe fn eight_avx2<const TAPS: usize, const SMALL: bool>(job: &Slide<'_>, first: usize, out: &mut [u8]) {
    let p = job.packed;
    let (left, padded) = ((p.channels - first).min(EIGHT), p.padded() * QUAD);
    let (step, tap) = (job.stride * p.channels * QUAD, job.dilation * p.channels * QUAD);
    let taps = p.row_quads() * p.columns;
    let shared = narrow::Shared::of(job.stage);
    // SAFETY: quads are read up to `SLACK` past the last place, weights and the stage's numbers for padded channels, all
    // inside by `Slide::check`; `left` bytes are written to each of the results, which are those of `out`.
    unsafe {
        let weights = p.weights.as_ptr().add(p.begin + first * QUAD);
        let mut known = [[_mm256_setzero_si256(); 2]; TAPS];
        for (n, known) in known.iter_mut().enumerate() {
            *known = pairs(narrow::load(weights.add(n * padded)));
        }
        let start = narrow::load(job.stage.correction.as_ptr().add(first));
        for result in 0..out.len() / p.channels {
            let mut sums = start;
            let begin = job.quads.as_ptr().add(result * step + first * QUAD);
            for n in 0..taps {
                let (rows, column) = if TAPS > 0 { (0, n) } else { (n / p.columns, n % p.columns) };
                let x = narrow::load(begin.add(rows * job.line + column * tap));
                if SMALL {
                    sums = narrow::step_pairs(sums, x, narrow::load(weights.add(n * padded)));
                    continue;
                }
                let w = match known.get(n) {
                    Some(w) => *w,
                    None => pairs(narrow::load(weights.add(n * padded))),
                };
                let even = _mm256_madd_epi16(_mm256_and_si256(x, _mm256_set1_epi16(0xff)), w[0]);
                let odd = _mm256_madd_epi16(_mm256_srli_epi16::<8>(x), w[1]);
                sums = _mm256_add_epi32(sums, _mm256_add_epi32(even, odd));
            }
            let rounded = shared.rounded(_mm256_cvtepi32_ps(sums), job.stage, first);
            let bytes = narrow::bytes(rounded, rounded);
            narrow::store(out.as_mut_ptr().add(result * p.channels + first), bytes, left);
        }
    }
}

/// The loop compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn loop_avx2(job: &Slide<'_>, out: &mut [u8]) {
    slide_loop(job, out);
}

#[inline(always)]
fn slide_loop(job: &Slide<'_>, out: &mut [u8]) {
    let p = job.packed;
    for (result, out) in out.chunks_exact_mut(p.channels).enumerate() {
        for (panel, out) in out.chunks_mut(PANEL).enumerate() {
            let first = panel * PANEL;
            let (mut sums, mut inputs) = ([0i32; PANEL], [0i32; PANEL]);
            for rows in 0..p.row_quads() {
                // What fills the last quad is not an input.
                let real = (p.rows - rows * QUAD).min(QUAD);
                for column in 0..p.columns {
                    let place = (result * job.stride + column * job.dilation) * p.channels + first;
                    let quads = &job.quads[rows * job.line + place * QUAD..][..PANEL * QUAD];
                    let weights = (rows * p.columns + column) * p.padded() + first;
                    let weights = &p.weights[p.begin + weights * QUAD..][..PANEL * QUAD];
                    let both = quads.chunks_exact(QUAD).zip(weights.chunks_exact(QUAD));
                    for ((x, w), (sum, inputs)) in both.zip(sums.iter_mut().zip(&mut inputs)) {
                        let term = |i: usize| i32::from(x[i]) * i32::from(w[i]);
                        *sum = sum.wrapping_add(term(0) + term(1) + term(2) + term(3));
                        *inputs = x[..real].iter().fold(*inputs, |sum, x| sum.wrapping_add(i32::from(*x)));
                    }
                }
            }
            for (at, out) in out.chunks_mut(1).enumerate() {
                job.stage.round(&sums[at..at + 1], first + at, inputs[at], out);
            }
        }
    }
}
