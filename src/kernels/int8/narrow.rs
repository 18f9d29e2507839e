//! Products of bytes with 256-bit vectors: a panel is two registers. A machine that adds up quads of byte products does so. On
//! others there is an instruction that adds up pairs of them in 16 bits, which saturates: it is taken where all inputs of a job
//! are small enough for the weights, as those of 7 bits always are. Elsewhere inputs and weights are widened to 16 bits, of which
//! pairs are added up exactly: inputs once for many panels, weights for all rows of a tile. The even bytes of quads make pairs
//! with each other, and the odd ones.
#![allow(unsafe_code, reason = "vector loads and stores; `Job::check` proves them inside their slices")]

use super::job::{Job, Out, PANEL, QUAD};
use super::stage::Stage;
use crate::diag::Result;
use crate::resources::{Scratch, memory};
use std::arch::x86_64::*;
use std::ops::Range;

/// Rows of a tile: as many as registers hold the sums of beside the operands.
const ROWS: usize = 4;
/// Quads of a row that are widened at a time: those of a tile, and the weights of a panel, fit into the nearest cache.
const QUADS: usize = 256;
/// Bytes of weights that meet a widened tile before the next one does: they stay in the second cache.
const WEIGHTS: usize = 128 << 10;
/// The same of tiles that are read as they lie: weights stay in the nearest cache.
const NEAR_WEIGHTS: usize = 16 << 10;

/// Sums of a tile and a panel.
type Sums = [[i32; PANEL]; ROWS];

/// Quads of a row that lie side by side: the first one's number and offset, and how many.
struct Run {
    first: usize,
    offset: usize,
    count: usize,
}

/// The runs of a row; none goes across a multiple of `QUADS`.
fn runs(offsets: &[usize]) -> Result<Scratch<Run>> {
    let mut runs: Scratch<Run> = Scratch::default();
    for (n, offset) in offsets.iter().enumerate() {
        match runs.last_mut() {
            Some(run) if !n.is_multiple_of(QUADS) && run.offset + run.count * QUAD == *offset => {
                run.count += 1
            }
            _ => runs.push(Run { first: n, offset: *offset, count: 1 })?,
        }
    }
    Ok(runs)
}

/// # Safety
/// The machine must have AVX2 and FMA, and `Job::check` have passed.
#[target_feature(enable = "avx2,fma")]
pub(super) unsafe fn product_avx2(job: &Job<'_>, out: &mut Out<'_>) -> Result<()> {
    let (runs, panels) = (runs(job.offsets)?, job.columns.div_ceil(PANEL));
    if job.limit == u8::MAX || highest(job, &runs) <= job.limit {
        // SAFETY: the caller's promise, and inputs are within the limit.
        unsafe { product_pairs(job, out) };
        return Ok(());
    }
    let together = (WEIGHTS / (PANEL * QUAD * job.quads).max(1)).clamp(1, panels);
    let mut widened = memory::filled(ROWS * 2 * QUADS, 0i32)?;
    let mut sums = memory::filled(together, [[0; PANEL]; ROWS])?;
    for first in (0..panels).step_by(together) {
        let some = first..panels.min(first + together);
        for line in 0..job.lines.count {
            for row in (0..job.lines.rows).step_by(ROWS) {
                // SAFETY: rows and panels are the job's.
                unsafe { some_rows(job, &runs, (line, row), some.clone(), (&mut widened, &mut sums), out) };
            }
        }
    }
    Ok(())
}

/// A tile of rows from one on, times some panels.
///
/// # Safety
/// As the product; rows and panels must be the job's, with sums for each panel.
#[target_feature(enable = "avx2,fma")]
unsafe fn some_rows(
    job: &Job<'_>,
    runs: &[Run],
    (line, row): (usize, usize),
    panels: Range<usize>,
    (widened, sums): (&mut [i32], &mut [Sums]),
    out: &mut Out<'_>,
) {
    let (count, depth) = ((job.lines.rows - row).min(ROWS), job.quads * QUAD);
    let blocks = job.quads.div_ceil(QUADS).max(1);
    let mut runs = runs;
    for block in 0..blocks {
        let from = block * QUADS;
        let quads = (job.quads - from).min(QUADS);
        let (own, rest) = runs.split_at(runs.partition_point(|run| run.first < from + QUADS));
        runs = rest;
        for r in 0..count {
            // SAFETY: the row has a quad at each offset by `Job::check`, and `widened` has room for `QUADS` of each row.
            unsafe {
                let inputs = job.inputs.as_ptr().add(job.lines.at(line, row + r));
                widen(inputs, own, from, widened.as_mut_ptr().add(r * 2 * QUADS));
            }
        }
        for (panel, sums) in panels.clone().zip(sums.iter_mut()) {
            if block == 0 {
                let correction = &job.stage.correction[job.first + panel * PANEL..][..PANEL];
                sums.iter_mut().take(count).for_each(|sums| sums.copy_from_slice(correction));
            }
            // SAFETY: the panel has `PANEL * QUAD` bytes for each quad, all inside by `Job::check`; rows were widened.
            unsafe {
                let weights = job.weights.as_ptr().add((job.first + panel * PANEL) * depth);
                let weights = weights.add(from * PANEL * QUAD);
                match count {
                    4 => tile::<4>(widened, weights, quads, sums),
                    3 => tile::<3>(widened, weights, quads, sums),
                    2 => tile::<2>(widened, weights, quads, sums),
                    _ => tile::<1>(widened, weights, quads, sums),
                }
                if block + 1 == blocks {
                    finish(job, line * job.lines.rows + row, panel, &sums[..count], out);
                }
            }
        }
    }
}

/// Widens the quads of a row from number `from` on: pairs of even bytes, `QUADS` places on those of odd ones.
///
/// # Safety
/// Runs must be readable from `inputs` on, with at most `QUADS` quads from `from` on; `to` must have room for twice `QUADS`.
#[target_feature(enable = "avx2,fma")]
unsafe fn widen(inputs: *const u8, runs: &[Run], from: usize, to: *mut i32) {
    for run in runs {
        let (mut at, mut left) = (run.first - from, run.count);
        // SAFETY: the caller's promise; whole vectors are taken while as many quads are left.
        unsafe {
            let mut inputs = inputs.add(run.offset);
            while left >= 8 {
                let x = _mm256_loadu_si256(inputs.cast());
                let even = _mm256_and_si256(x, _mm256_set1_epi16(0xff));
                _mm256_storeu_si256(to.add(at).cast(), even);
                _mm256_storeu_si256(to.add(QUADS + at).cast(), _mm256_srli_epi16(x, 8));
                (inputs, at, left) = (inputs.add(8 * QUAD), at + 8, left - 8);
            }
            if left >= 4 {
                let x = _mm_loadu_si128(inputs.cast());
                _mm_storeu_si128(to.add(at).cast(), _mm_and_si128(x, _mm_set1_epi16(0xff)));
                _mm_storeu_si128(to.add(QUADS + at).cast(), _mm_srli_epi16(x, 8));
                (inputs, at, left) = (inputs.add(4 * QUAD), at + 4, left - 4);
            }
            for n in 0..left {
                let x = inputs.add(n * QUAD).cast::<u32>().read_unaligned();
                to.add(at + n).write((x & 0x00ff_00ff) as i32);
                to.add(QUADS + at + n).write((x >> 8 & 0x00ff_00ff) as i32);
            }
        }
    }
}

/// Adds the products of `R` widened rows and a panel to their sums.
///
/// # Safety
/// `R` rows of `quads` must have been widened, and `weights` have `PANEL` columns of each quad.
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
unsafe fn tile<const R: usize>(widened: &[i32], weights: *const i8, quads: usize, sums: &mut Sums) {
    let mut all = [[_mm256_setzero_si256(); 2]; R];
    // SAFETY: the caller's promise; a row of sums is two vectors.
    unsafe {
        for (all, sums) in all.iter_mut().zip(sums.iter()) {
            *all = [load(sums.as_ptr()), load(sums.as_ptr().add(8))];
        }
        // All even bytes before the odd ones: of both in one step rustc would add up the terms first, which then lie in memory.
        for odd in 0..2 {
            let x = widened.as_ptr().add(odd * QUADS);
            for n in 0..quads {
                let at = weights.add(n * PANEL * QUAD);
                let mut w = [load(at), load(at.add(32))];
                for w in &mut w {
                    let high = if odd == 0 { _mm256_slli_epi16(*w, 8) } else { *w };
                    *w = _mm256_srai_epi16(high, 8);
                }
                for (r, all) in all.iter_mut().enumerate() {
                    let x = _mm256_set1_epi32(*x.add(r * 2 * QUADS + n));
                    all[0] = _mm256_add_epi32(all[0], _mm256_madd_epi16(x, w[0]));
                    all[1] = _mm256_add_epi32(all[1], _mm256_madd_epi16(x, w[1]));
                }
            }
        }
        for (all, sums) in all.iter().zip(sums.iter_mut()) {
            _mm256_storeu_si256(sums.as_mut_ptr().cast(), all[0]);
            _mm256_storeu_si256(sums.as_mut_ptr().add(8).cast(), all[1]);
        }
    }
}

/// A byte that none of a job's inputs exceeds: the highest of all rows, or of what lies between the first and the last of them
/// where that is less.
#[target_feature(enable = "avx2,fma")]
fn highest(job: &Job<'_>, runs: &[Run]) -> u8 {
    let lines = &job.lines;
    let (Some(last), Some(reach)) = (lines.last(), job.offsets.iter().max()) else { return u8::MAX };
    let between = &job.inputs[lines.start..last + reach + QUAD];
    if between.len() <= lines.count * lines.rows * job.quads * QUAD {
        return highest_of(between);
    }
    let rows = (0..lines.count).flat_map(|line| (0..lines.rows).map(move |row| lines.at(line, row)));
    let of_run = |at: usize, run: &Run| highest_of(&job.inputs[at + run.offset..][..run.count * QUAD]);
    rows.map(|at| runs.iter().map(|run| of_run(at, run)).fold(0, u8::max)).fold(0, u8::max)
}

fn highest_of(bytes: &[u8]) -> u8 {
    bytes.iter().copied().fold(0, u8::max)
}

/// Products whose quads are multiplied as they lie, by a step that adds the products of quads to sums.
macro_rules! products_of_bytes {
    ($name:ident, $tile:ident, $features:literal, $step:ident) => {
        /// # Safety
        /// The machine must have the instructions, and `Job::check` have passed.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(job: &Job<'_>, out: &mut Out<'_>) {
            let (rows, panels) = (job.lines.rows, job.columns.div_ceil(PANEL));
            let together = (NEAR_WEIGHTS / (PANEL * QUAD * job.quads).max(1)).clamp(1, panels);
            for first in (0..panels).step_by(together) {
                for line in 0..job.lines.count {
                    for row in (0..rows).step_by(ROWS) {
                        for panel in first..panels.min(first + together) {
                            let narrow = job.columns - panel * PANEL <= 8;
                            // SAFETY: rows and panels are the job's.
                            unsafe {
                                match ((rows - row).min(ROWS), narrow) {
                                    (4, false) => $tile::<4, 2>(job, (line, row), panel, out),
                                    (3, false) => $tile::<3, 2>(job, (line, row), panel, out),
                                    (2, false) => $tile::<2, 2>(job, (line, row), panel, out),
                                    (_, false) => $tile::<1, 2>(job, (line, row), panel, out),
                                    (4, true) => $tile::<4, 1>(job, (line, row), panel, out),
                                    (3, true) => $tile::<3, 1>(job, (line, row), panel, out),
                                    (2, true) => $tile::<2, 1>(job, (line, row), panel, out),
                                    (_, true) => $tile::<1, 1>(job, (line, row), panel, out),
                                }
                            }
                        }
                    }
                }
            }
        }

        /// `R` rows from one on, and the first `H` halves of a panel.
        ///
        /// # Safety
        /// As the product; rows and panel must be the job's.
        #[target_feature(enable = $features)]
        #[inline(never)]
        unsafe fn $tile<const R: usize, const H: usize>(
            job: &Job<'_>,
            (line, row): (usize, usize),
            panel: usize,
            out: &mut Out<'_>,
        ) {
            let (depth, first) = (job.quads * QUAD, job.first + panel * PANEL);
            let mut start = [_mm256_setzero_si256(); H];
            // SAFETY: rows and panels lie inside their slices by `Job::check`; unaligned loads and stores.
            unsafe {
                for (half, start) in start.iter_mut().enumerate() {
                    *start = load(job.stage.correction.as_ptr().add(first + half * 8));
                }
                let mut all = [start; R];
                let inputs = job.inputs.as_ptr().add(job.lines.at(line, row));
                let weights = job.weights.as_ptr().add(first * depth);
                for (n, offset) in job.offsets.iter().enumerate() {
                    let at = weights.add(n * PANEL * QUAD);
                    let mut w = [_mm256_setzero_si256(); H];
                    for (half, w) in w.iter_mut().enumerate() {
                        *w = load(at.add(half * 32));
                    }
                    for (r, all) in all.iter_mut().enumerate() {
                        let x = inputs.add(r * job.lines.stride + offset);
                        let x = _mm256_set1_epi32(x.cast::<i32>().read_unaligned());
                        for (all, w) in all.iter_mut().zip(w) {
                            *all = $step(*all, x, w);
                        }
                    }
                }
                let mut sums = [[0; PANEL]; R];
                for (all, sums) in all.iter().zip(&mut sums) {
                    for (half, all) in all.iter().enumerate() {
                        _mm256_storeu_si256(sums.as_mut_ptr().add(half * 8).cast(), *all);
                    }
                }
                finish(job, line * job.lines.rows + row, panel, &sums, out);
            }
        }
    };
}

products_of_bytes!(product_vnni, tile_vnni, "avx2,fma,avxvnni", _mm256_dpbusd_avx_epi32);
products_of_bytes!(product_pairs, tile_pairs, "avx2,fma", step_pairs);

/// Inputs must be at most the limit of the weights.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn step_pairs(sums: __m256i, x: __m256i, w: __m256i) -> __m256i {
    let pairs = _mm256_maddubs_epi16(x, w);
    _mm256_add_epi32(sums, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)))
}

/// What follows the sums of rows from one on and a panel.
///
/// # Safety
/// The machine must have AVX2 and FMA; `Job::check` must have passed, and rows and panel be the job's.
#[target_feature(enable = "avx2,fma")]
unsafe fn finish(job: &Job<'_>, row: usize, panel: usize, sums: &[[i32; PANEL]], out: &mut Out<'_>) {
    let (stage, first, column) = (job.stage, job.first + panel * PANEL, panel * PANEL);
    let left = (job.columns - column).min(PANEL);
    let shared = Shared::of(stage);
    for (r, sums) in sums.iter().enumerate() {
        let row_sum = job.row_sums.get(row + r).copied().unwrap_or(0);
        let at = job.out_start + (row + r) * job.out_stride + column;
        // SAFETY: the stage has `PANEL` numbers a panel, and `out` the columns that are left, by `Job::check`.
        unsafe {
            let sums = [load(sums.as_ptr()), load(sums.as_ptr().add(8))];
            match out {
                Out::Bytes(out) => {
                    let low = shared.rounded(exact(stage, sums[0], first, row_sum), stage, first);
                    let high = match left {
                        ..=8 => low,
                        _ => shared.rounded(exact(stage, sums[1], first + 8, row_sum), stage, first + 8),
                    };
                    store(out.as_mut_ptr().add(at), bytes(low, high), left);
                }
                Out::Floats(out) => {
                    let mut some = [0f32; PANEL];
                    for (half, sums) in sums.into_iter().enumerate() {
                        let at = first + half * 8;
                        let sums = exact(stage, sums, at, row_sum);
                        let mut real = _mm256_fmadd_ps(sums, numbers(&stage.a, at), numbers(&stage.b, at));
                        if stage.relu {
                            real = _mm256_max_ps(real, _mm256_setzero_ps());
                        }
                        _mm256_storeu_ps(some.as_mut_ptr().add(half * 8), real);
                    }
                    out.as_mut_ptr().add(at).copy_from_nonoverlapping(some.as_ptr(), left);
                }
            }
        }
    }
}

/// A vector loaded from anywhere.
///
/// # Safety
/// 32 bytes must be readable.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn load<T>(at: *const T) -> __m256i {
    // SAFETY: the caller's promise; the instruction takes any alignment.
    unsafe { _mm256_loadu_si256(at.cast()) }
}

/// # Safety
/// 8 floats must lie in `from` at `at`.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn numbers(from: &[f32], at: usize) -> __m256 {
    debug_assert!(at + 8 <= from.len());
    // SAFETY: the caller's promise.
    unsafe { _mm256_loadu_ps(from.as_ptr().add(at)) }
}

/// Sums of 8 columns from `at` on as floats, without what the zero points of weights contribute to a row whose inputs' sum is
/// `row`. The sums began with the columns' corrections.
///
/// # Safety
/// The stage must have 8 columns from `at` on.
#[target_feature(enable = "avx2,fma")]
#[inline]
unsafe fn exact(stage: &Stage, sums: __m256i, at: usize, row: i32) -> __m256 {
    let mut sums = sums;
    if !stage.weight_zeros.is_empty() {
        // SAFETY: the caller's promise; where there are zeros, all columns have one.
        let zeros = unsafe { load(stage.weight_zeros.as_ptr().add(at)) };
        sums = _mm256_sub_epi32(sums, _mm256_mullo_epi32(zeros, _mm256_set1_epi32(row)));
    }
    _mm256_cvtepi32_ps(sums)
}

/// A stage's numbers that all columns share, in vectors.
pub(super) struct Shared {
    one_dnn: bool,
    input: __m256,
    inverse: __m256,
    /// Added before rounding (OneDnn), and after it (Fbgemm).
    zero: __m256,
    zero_after: __m256i,
    /// Numbers below become this (OneDnn: before they are scaled).
    floor: __m256,
    high: __m256,
}

impl Shared {
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub fn of(stage: &Stage) -> Shared {
        let (one_dnn, [input, inverse], floor) = stage.shared();
        Shared {
            one_dnn,
            input: _mm256_set1_ps(input),
            inverse: _mm256_set1_ps(inverse),
            zero: _mm256_set1_ps(stage.zero_point as f32),
            zero_after: _mm256_set1_epi32(stage.zero_point),
            floor: _mm256_set1_ps(floor),
            high: _mm256_set1_ps(stage.bounds.1),
        }
    }

    /// 8 sums of the columns from `at` on as rounded numbers with their zero point, at most 255. What is below 0 becomes 0 when
    /// it is packed.
    ///
    /// # Safety
    /// The stage must have 8 columns from `at` on.
    #[target_feature(enable = "avx2,fma")]
    #[inline]
    pub unsafe fn rounded(&self, sums: __m256, stage: &Stage, at: usize) -> __m256i {
        // SAFETY: the caller's promise.
        let (a, b) = unsafe { (numbers(&stage.a, at), numbers(&stage.b, at)) };
        // Of a NaN and another number the second operand is taken; a NaN that is left becomes the lowest integer.
        if self.one_dnn {
            let real = _mm256_add_ps(_mm256_mul_ps(_mm256_mul_ps(sums, self.input), a), b);
            let moved = _mm256_mul_ps(_mm256_max_ps(real, self.floor), self.inverse);
            let moved = _mm256_add_ps(moved, self.zero);
            return _mm256_cvtps_epi32(_mm256_min_ps(self.high, moved));
        }
        // SAFETY: as above.
        let c = unsafe { numbers(&stage.c, at) };
        let scaled = _mm256_mul_ps(_mm256_fmadd_ps(a, b, sums), c);
        let scaled = _mm256_min_ps(self.high, _mm256_max_ps(scaled, self.floor));
        _mm256_add_epi32(_mm256_cvtps_epi32(scaled), self.zero_after)
    }
}

/// Stores the first `count` bytes of a vector.
///
/// # Safety
/// They must be writable.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) unsafe fn store(to: *mut u8, bytes: __m128i, count: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match count {
            16 => _mm_storeu_si128(to.cast(), bytes),
            8 => _mm_storel_epi64(to.cast(), bytes),
            _ => {
                let mut some = [0u8; 16];
                _mm_storeu_si128(some.as_mut_ptr().cast(), bytes);
                to.copy_from_nonoverlapping(some.as_ptr(), count);
            }
        }
    }
}

/// Rounded numbers of two vectors as bytes, in order. What is outside of 0..=255 becomes its end.
#[target_feature(enable = "avx2,fma")]
#[inline]
pub(super) fn bytes(low: __m256i, high: __m256i) -> __m128i {
    // Packing works within 128 bits.
    let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi32(low, high));
    _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words))
}
