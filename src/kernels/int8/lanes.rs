//! Products of unsigned and signed bytes, summed in 32 bits, with the machine's vector instructions: the inner loops below
//! `qgemm` and `qconv`, and a plain loop where the machine has none of these. Every sum is exact modulo 2^32, whatever the
//! instructions: the one that saturates 16-bit sums is used only where they fit ([`super::job::pair_limit`]). Knows pointers into checked slices, no sizes of tensors.
#![allow(unsafe_code, reason = "vector loads and stores; `Job::check` proves them inside their slices")]

use super::job::{Isa, Job, Out, PANEL, QUAD};
#[cfg(target_arch = "x86_64")]
use super::narrow;
use crate::diag::Result;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Computes a job.
pub(super) fn product(isa: Isa, job: &Job<'_>, mut out: Out<'_>) -> Result<()> {
    job.check(&out)?;
    if job.lines.all() == Some(0) || job.columns == 0 {
        return Ok(());
    }
    match isa {
        // SAFETY: `Isa::supported` found the instructions; `Job::check` has proved all accesses in bounds.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { wide::product(job, &mut out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::AvxVnni => unsafe { narrow::product_vnni(job, &mut out) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { narrow::product_avx2(job, &mut out) }?,
        Isa::Portable => portable(job, &mut out),
    }
    Ok(())
}

/// Sums of one row and one panel in, results out: the stage for loops that keep no vectors.
#[inline(always)]
fn finish(job: &Job<'_>, row: usize, panel: usize, sums: &[i32; PANEL], out: &mut Out<'_>) {
    let at = job.first + panel * PANEL;
    let n = PANEL.min(job.columns - panel * PANEL);
    let start = job.out_start + row * job.out_stride + panel * PANEL;
    let sum = job.row_sums.get(row).copied().unwrap_or(0);
    match out {
        Out::Bytes(out) => job.stage.round(&sums[..n], at, sum, &mut out[start..start + n]),
        Out::Floats(out) => job.stage.real(&sums[..n], at, sum, &mut out[start..start + n]),
    }
}

fn portable(job: &Job<'_>, out: &mut Out<'_>) {
    let depth = job.quads * QUAD;
    let places = (0..job.lines.count).flat_map(|line| (0..job.lines.rows).map(move |row| (line, row)));
    for (row, (line, at)) in places.enumerate() {
        let inputs = &job.inputs[job.lines.at(line, at)..];
        for panel in 0..job.columns.div_ceil(PANEL) {
            let weights = &job.weights[(job.first + panel * PANEL) * depth..][..PANEL * depth];
            let mut sums = [0i32; PANEL];
            let quads = job.offsets.iter().map(|at| &inputs[*at..*at + QUAD]);
            for (x, w) in quads.zip(weights.chunks_exact(PANEL * QUAD)) {
                for (sum, w) in sums.iter_mut().zip(w.chunks_exact(QUAD)) {
                    let term = |i: usize| i32::from(x[i]) * i32::from(w[i]);
                    *sum = sum.wrapping_add(term(0) + term(1) + term(2) + term(3));
                }
            }
            finish(job, row, panel, &sums, out);
        }
    }
}

/// 512-bit vectors: a panel is one register.
#[cfg(target_arch = "x86_64")]
pub(super) mod wide {
    use super::super::stage::Stage;
    use super::*;

    /// A vector loaded from anywhere.
    ///
    /// # Safety
    /// 64 bytes must be readable at `at + offset` elements.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn load<T>(at: *const T, offset: usize) -> __m512i {
        // SAFETY: the caller's promise; the instruction takes any alignment.
        unsafe { _mm512_loadu_si512(at.add(offset).cast()) }
    }

    /// As `load`, of floats.
    ///
    /// # Safety
    /// 16 floats must lie in `from` at `at`.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn numbers(from: &[f32], at: usize) -> __m512 {
        debug_assert!(at + 16 <= from.len());
        // SAFETY: the caller's promise.
        unsafe { _mm512_loadu_ps(from.as_ptr().add(at)) }
    }

    /// The four bytes at an address in every lane.
    ///
    /// # Safety
    /// They must be readable.
    #[target_feature(enable = "avx512f")]
    unsafe fn quad(at: *const u8) -> __m512i {
        // SAFETY: the caller's promise.
        _mm512_set1_epi32(unsafe { at.cast::<i32>().read_unaligned() })
    }

    /// A stage's numbers that all columns share, in vectors: kept in registers, where reading them from the stage again after
    /// each store would take longer than the arithmetic.
    pub struct Shared {
        one_dnn: bool,
        input: __m512,
        inverse: __m512,
        /// Added before rounding (OneDnn), and after it (Fbgemm).
        zero: __m512,
        zero_after: __m512i,
        /// Numbers below become this (OneDnn: before they are scaled). The lowest number where there is no such bound: what is
        /// below 0 becomes 0 when it is packed.
        floor: __m512,
        high: __m512,
    }

    /// Sums of 16 columns from `at` on as floats, without what the zero points of weights contribute to a row whose inputs' sum
    /// is `row`. The sums began with the columns' corrections.
    ///
    /// # Safety
    /// The stage must have 16 columns from `at` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    pub unsafe fn exact(stage: &Stage, sums: __m512i, at: usize, row: i32) -> __m512 {
        let mut sums = sums;
        if !stage.weight_zeros.is_empty() {
            // SAFETY: the caller's promise; where there are zeros, all columns have one.
            let zeros = unsafe { load(stage.weight_zeros.as_ptr(), at) };
            sums = _mm512_sub_epi32(sums, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(row)));
        }
        _mm512_cvtepi32_ps(sums)
    }

    impl Shared {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
        #[inline]
        pub fn of(stage: &Stage) -> Shared {
            let (one_dnn, [input, inverse], floor) = stage.shared();
            Shared {
                one_dnn,
                input: _mm512_set1_ps(input),
                inverse: _mm512_set1_ps(inverse),
                zero: _mm512_set1_ps(stage.zero_point as f32),
                zero_after: _mm512_set1_epi32(stage.zero_point),
                floor: _mm512_set1_ps(floor),
                high: _mm512_set1_ps(stage.bounds.1),
            }
        }

        /// 16 sums as rounded numbers with their zero point, at most 255; `a`, `b`, `c` are the columns' numbers.
        /// What is not `BOUNDED` needs no bounds but those of bytes, to which it is packed.
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
        #[inline]
        pub fn rounded<const BOUNDED: bool>(&self, sums: __m512, a: __m512, b: __m512, c: __m512) -> __m512i {
            // Of a NaN and another number the second operand is taken; a NaN that is left becomes the lowest integer.
            if self.one_dnn {
                let mut real = _mm512_add_ps(_mm512_mul_ps(_mm512_mul_ps(sums, self.input), a), b);
                if BOUNDED {
                    real = _mm512_max_ps(real, self.floor);
                }
                let mut moved = _mm512_add_ps(_mm512_mul_ps(real, self.inverse), self.zero);
                if BOUNDED {
                    moved = _mm512_min_ps(self.high, moved);
                }
                return _mm512_cvtps_epi32(moved);
            }
            let mut scaled = _mm512_mul_ps(_mm512_fmadd_ps(a, b, sums), c);
            if BOUNDED {
                scaled = _mm512_min_ps(self.high, _mm512_max_ps(scaled, self.floor));
            }
            _mm512_add_epi32(_mm512_cvtps_epi32(scaled), self.zero_after)
        }
    }

    /// Rounded numbers of four vectors as bytes, in the order of the vectors. What is outside of 0..=255 becomes its end.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    pub fn bytes(v: [__m512i; 4]) -> __m512i {
        // Packing works within 128 bits: its doublewords are those of the four vectors, interleaved.
        let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
        let (low, high) = (_mm512_packs_epi32(v[0], v[1]), _mm512_packs_epi32(v[2], v[3]));
        _mm512_permutexvar_epi32(order, _mm512_packus_epi16(low, high))
    }

    /// Stores the first `count` bytes of a vector: whole registers where that is all, as masks take several times as long.
    ///
    /// # Safety
    /// They must be writable.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    pub unsafe fn store(to: *mut u8, bytes: __m512i, count: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match count {
                64 => _mm512_storeu_si512(to.cast(), bytes),
                48 => {
                    _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes));
                    _mm_storeu_si128(to.add(32).cast(), _mm512_extracti32x4_epi32::<2>(bytes));
                }
                32 => _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(bytes)),
                24 => {
                    _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(bytes));
                    _mm_storel_epi64(to.add(16).cast(), _mm512_extracti32x4_epi32::<1>(bytes));
                }
                16 => _mm_storeu_si128(to.cast(), _mm512_castsi512_si128(bytes)),
                8 => _mm_storel_epi64(to.cast(), _mm512_castsi512_si128(bytes)),
                _ => _mm512_mask_storeu_epi8(to.cast(), (1u64 << count) - 1, bytes),
            }
        }
    }

    /// Rows `row..row + R` of a line, panels `panel..panel + P`: sums stay in registers until they are stored as results.
    ///
    /// # Safety
    /// `Job::check` must have passed, and the rows and panels be the job's.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tile<const R: usize, const P: usize>(
        job: &Job<'_>,
        (line, row): (usize, usize),
        panel: usize,
        out: &mut Out<'_>,
    ) {
        let (depth, stride) = (job.quads * QUAD, job.lines.stride);
        let first = job.first + panel * PANEL;
        // SAFETY: rows have a quad at each offset from their begins, panels `PANEL * depth` bytes, the stage `PANEL` numbers a
        // panel, all inside their slices by `Job::check`.
        unsafe {
            // Loops and no closures: what calls a closure lacks the instructions, and passes vectors through memory.
            let mut corrections = [_mm512_setzero_si512(); P];
            for (p, correction) in corrections.iter_mut().enumerate() {
                *correction = load(job.stage.correction.as_ptr(), first + p * PANEL);
            }
            let mut sums = [corrections; R];
            let inputs = job.inputs.as_ptr().add(job.lines.at(line, row));
            let weights = job.weights.as_ptr().add(first * depth);
            for (n, offset) in job.offsets.iter().enumerate() {
                let mut w = [_mm512_setzero_si512(); P];
                for (p, w) in w.iter_mut().enumerate() {
                    *w = load(weights, p * PANEL * depth + n * PANEL * QUAD);
                }
                let inputs = inputs.add(*offset);
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = quad(inputs.add(r * stride));
                    for (sum, w) in sums.iter_mut().zip(&w) {
                        *sum = _mm512_dpbusd_epi32(*sum, x, *w);
                    }
                }
            }
            let done = sums;
            let row = line * job.lines.rows + row;
            if job.stage.bounded {
                finish_tile::<P, true>(job, &done, row, panel, out);
            } else {
                finish_tile::<P, false>(job, &done, row, panel, out);
            }
        }
    }

    /// What follows the sums of a tile. A function of its own, which takes a copy: in a loop over rows the sums would have to
    /// lie in memory, and be stored there after each product.
    ///
    /// # Safety
    /// As `tile`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline(never)]
    unsafe fn finish_tile<const P: usize, const BOUNDED: bool>(
        job: &Job<'_>,
        sums: &[[__m512i; P]],
        row: usize,
        panel: usize,
        out: &mut Out<'_>,
    ) {
        let (stage, first, column) = (job.stage, job.first + panel * PANEL, panel * PANEL);
        let left = (job.columns - column).min(P * PANEL);
        let (mut a, mut b, mut c) =
            ([_mm512_setzero_ps(); P], [_mm512_setzero_ps(); P], [_mm512_setzero_ps(); P]);
        for p in 0..P {
            let at = first + p * PANEL;
            // SAFETY: the caller's promise: the stage has `PANEL` numbers a panel.
            unsafe {
                (a[p], b[p], c[p]) = (numbers(&stage.a, at), numbers(&stage.b, at), numbers(&stage.c, at))
            };
        }
        let shared = Shared::of(stage);
        for (r, sums) in sums.iter().enumerate() {
            let sum = job.row_sums.get(row + r).copied().unwrap_or(0);
            let at = job.out_start + (row + r) * job.out_stride + column;
            // SAFETY: as above, and `out` has the columns that are left.
            unsafe {
                match out {
                    Out::Bytes(out) => {
                        let mut all = [_mm512_setzero_si512(); 4];
                        for (p, (sums, all)) in sums.iter().zip(&mut all).enumerate() {
                            let sums = exact(stage, *sums, first + p * PANEL, sum);
                            *all = shared.rounded::<BOUNDED>(sums, a[p], b[p], c[p]);
                        }
                        store(out.as_mut_ptr().add(at), bytes(all), left);
                    }
                    Out::Floats(out) => {
                        for (p, sums) in sums.iter().enumerate() {
                            let mask = ((1u32 << left.saturating_sub(p * PANEL).min(PANEL)) - 1) as u16;
                            let sums = exact(stage, *sums, first + p * PANEL, sum);
                            let mut floats = _mm512_fmadd_ps(sums, a[p], b[p]);
                            if stage.relu {
                                floats = _mm512_max_ps(floats, _mm512_setzero_ps());
                            }
                            _mm512_mask_storeu_ps(out.as_mut_ptr().add(at + p * PANEL), mask, floats);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// `Job::check` must have passed.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub unsafe fn product(job: &Job<'_>, out: &mut Out<'_>) {
        let panels = job.columns.div_ceil(PANEL);
        let mut panel = 0;
        while panel < panels {
            // As many sums as registers hold beside the operands.
            let (width, most) = match panels - panel {
                1 => (1, 12),
                2 => (2, 12),
                3 => (3, 8),
                5 => (3, 8),
                _ => (4, 6),
            };
            for line in 0..job.lines.count {
                let mut row = 0;
                while row < job.lines.rows {
                    // SAFETY: rows and panels are the job's.
                    row += unsafe { some(job, (line, row), panel, (width, most), out) };
                }
            }
            panel += width;
        }
    }

    /// Rows of a line from one on, as many as a tile has. Gives how many.
    ///
    /// # Safety
    /// As `tile`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn some(
        job: &Job<'_>,
        at: (usize, usize),
        panel: usize,
        (width, most): (usize, usize),
        out: &mut Out<'_>,
    ) -> usize {
        let rows = (job.lines.rows - at.1).min(most);
        macro_rules! tiles {
            ($rows:literal) => {{
                // SAFETY: the caller's promise.
                unsafe {
                    match width {
                        1 => tile::<$rows, 1>(job, at, panel, out),
                        2 => tile::<$rows, 2>(job, at, panel, out),
                        3 => tile::<{ if $rows > 8 { 8 } else { $rows } }, 3>(job, at, panel, out),
                        _ => tile::<{ if $rows > 6 { 6 } else { $rows } }, 4>(job, at, panel, out),
                    }
                }
                $rows
            }};
        }
        match rows {
            12.. => tiles!(12),
            8.. => tiles!(8),
            6.. => tiles!(6),
            4.. => tiles!(4),
            2.. => tiles!(2),
            _ => tiles!(1),
        }
    }
}
