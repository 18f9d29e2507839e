//! Products of unsigned and signed bytes, summed in 32 bits, with the machine's vector instructions: the inner loops below
//! `qgemm` and `qconv`, and a plain loop where the machine has none of these. Every sum is exact modulo 2^32, whatever the
//! instructions: none that saturates 16-bit sums is used. Knows pointers into checked slices, no sizes of tensors.
#![allow(
    unsafe_code,
    reason = "vector loads and stores; `Job::check` and `Taps::check` prove them inside their slices"
)]

use super::stage::{Finish, Stage};
use crate::diag::{Diagnostic, Result};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// Columns of a panel of packed weights.
pub(super) const PANEL: usize = 16;
/// Terms of a sum that one instruction adds up.
pub(super) const QUAD: usize = 4;
/// Channels of a block of packed depthwise weights.
pub(super) const BLOCK: usize = 64;

/// Instructions that products are made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// AVX-512 with byte products.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// AVX2 with byte products.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// AVX2: products of 16 bits.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// What rustc makes of a loop.
    Portable,
}

impl Isa {
    /// All that this machine has, best first.
    pub fn supported() -> Vec<Isa> {
        let mut all = Vec::new();
        #[cfg(target_arch = "x86_64")]
        {
            let wide = is_x86_feature_detected!("avx512f")
                && is_x86_feature_detected!("avx512bw")
                && is_x86_feature_detected!("avx512vl");
            if wide && is_x86_feature_detected!("avx512vnni") {
                all.push(Isa::Avx512);
            }
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avxvnni") {
                all.push(Isa::AvxVnni);
            }
            if avx2 {
                all.push(Isa::Avx2);
            }
        }
        all.push(Isa::Portable);
        all
    }

    /// The best that this machine has.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::supported().first().copied().unwrap_or(Isa::Portable))
    }
}

/// Where results go; rows lie `Job::out_stride` apart.
pub(super) enum Out<'a> {
    /// Rounded to bytes.
    Bytes(&'a mut [u8]),
    /// float32.
    Floats(&'a mut [f32]),
}

impl Out<'_> {
    fn len(&self) -> usize {
        match self {
            Out::Bytes(out) => out.len(),
            Out::Floats(out) => out.len(),
        }
    }
}

/// A product of some rows and some panels.
pub(super) struct Job<'a> {
    /// Inputs: row i begins at `i * stride` and has at least `quads * QUAD` bytes.
    pub inputs: &'a [u8],
    pub stride: usize,
    pub rows: usize,
    /// Packed weights: panel after panel, in it for each quad 16 columns of 4 bytes.
    pub weights: &'a [i8],
    pub quads: usize,
    /// First column, a multiple of `PANEL`, and number of columns.
    pub first: usize,
    pub columns: usize,
    /// Sum of each row's inputs; empty where the stage needs none.
    pub row_sums: &'a [i32],
    pub stage: &'a Stage,
    /// Element of the first result, and from row to row.
    pub out_start: usize,
    pub out_stride: usize,
}

impl Job<'_> {
    /// Whether all that the loops touch lies inside the slices.
    fn check(&self, out: &Out<'_>) -> Result<()> {
        let depth = self.quads.checked_mul(QUAD);
        let reach =
            |stride: usize, last: usize| self.rows.saturating_sub(1).checked_mul(stride)?.checked_add(last);
        let end = self.first.checked_add(self.columns).and_then(|n| n.checked_next_multiple_of(PANEL));
        let fits = || {
            let (depth, end) = (depth?, end?);
            let inputs = reach(self.stride, depth)?;
            let results = reach(self.out_stride, self.columns)?.checked_add(self.out_start)?;
            let sums = if self.stage.needs_row_sums() { self.rows } else { 0 };
            let padded =
                [self.stage.a.len(), self.stage.b.len(), self.stage.c.len(), self.stage.correction.len()];
            let zeros = self.stage.weight_zeros.len();
            let kind = matches!(out, Out::Floats(_)) == (self.stage.finish == Finish::Float);
            Some(
                inputs <= self.inputs.len()
                    && end.checked_mul(depth)? <= self.weights.len()
                    && results <= out.len()
                    && sums <= self.row_sums.len()
                    && padded.iter().all(|n| end <= *n)
                    && (zeros == 0 || end <= zeros)
                    && self.first.is_multiple_of(PANEL)
                    && kind,
            )
        };
        if self.rows == 0 || self.columns == 0 || fits() == Some(true) {
            return Ok(());
        }
        Err(Diagnostic::internal(format!(
            "an integer product of {} rows, {} columns and {} quads in slices that are too small",
            self.rows, self.columns, self.quads
        )))
    }
}

/// Computes a job.
pub(super) fn product(isa: Isa, job: &Job<'_>, mut out: Out<'_>) -> Result<()> {
    job.check(&out)?;
    if job.rows == 0 || job.columns == 0 {
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
        Isa::Avx2 => unsafe { narrow::product_avx2(job, &mut out) },
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
    for row in 0..job.rows {
        let inputs = &job.inputs[row * job.stride..][..depth];
        for panel in 0..job.columns.div_ceil(PANEL) {
            let weights = &job.weights[(job.first + panel * PANEL) * depth..][..PANEL * depth];
            let mut sums = [0i32; PANEL];
            for (x, w) in inputs.chunks_exact(QUAD).zip(weights.chunks_exact(PANEL * QUAD)) {
                for (sum, w) in sums.iter_mut().zip(w.chunks_exact(QUAD)) {
                    let term = |i: usize| i32::from(x[i]) * i32::from(w[i]);
                    *sum = sum.wrapping_add(term(0) + term(1) + term(2) + term(3));
                }
            }
            finish(job, row, panel, &sums, out);
        }
    }
}

/// A depthwise convolution at some places: each channel's own sum over taps.
pub(super) struct Taps<'a> {
    /// The input, and a line of zero points that stands for what lies outside.
    pub inputs: &'a [u8],
    pub outside: &'a [u8],
    /// Where the tap of each result lies in `inputs` (`usize::MAX`: outside), `taps` a result.
    pub places: &'a [usize],
    pub taps: usize,
    pub channels: usize,
    /// Packed weights: for each block of 64 channels and each quad of taps 4 vectors of 16 channels by 4 taps.
    pub weights: &'a [i8],
    /// Its columns stand in the order of the packed weights.
    pub stage: &'a Stage,
}

/// The channel whose weights and numbers stand at `at` of a packed block: unpacking bytes leaves them in this order.
pub(super) fn block_order(at: usize) -> usize {
    let (vector, lane, within) = (at / 16, at % 16 / 4, at % 4);
    lane * 16 + vector * 4 + within
}

impl Taps<'_> {
    fn check(&self, out: &[u8]) -> Result<()> {
        let fits = || {
            let blocks = self.channels.div_ceil(BLOCK);
            let results = self.places.len() / self.taps.max(1);
            let padded = blocks.checked_mul(BLOCK)?;
            let inside = |place: &usize| {
                *place == usize::MAX
                    || place.checked_add(self.channels).is_some_and(|end| end <= self.inputs.len())
            };
            let stage = self.stage;
            let numbers = [stage.a.len(), stage.b.len(), stage.c.len(), stage.correction.len()];
            Some(
                self.taps > 0
                    && self.places.iter().all(inside)
                    && self.outside.len() >= self.channels
                    && self.weights.len() >= padded.checked_mul(self.taps.checked_next_multiple_of(QUAD)?)?
                    && numbers.iter().all(|n| padded <= *n)
                    && (stage.weight_zeros.is_empty() || stage.weight_zeros.len() >= padded)
                    && stage.finish != Finish::Float
                    && results.checked_mul(self.channels)? <= out.len(),
            )
        };
        if fits() == Some(true) {
            return Ok(());
        }
        Err(Diagnostic::internal("a depthwise product in slices that are too small"))
    }

    fn at(&self, place: usize) -> &[u8] {
        if place == usize::MAX { self.outside } else { &self.inputs[place..place + self.channels] }
    }
}

/// Computes a depthwise convolution at its places.
pub(super) fn depthwise(isa: Isa, job: &Taps<'_>, out: &mut [u8]) -> Result<()> {
    if job.channels == 0 || job.places.is_empty() {
        return Ok(());
    }
    job.check(out)?;
    match isa {
        // SAFETY: `Isa::supported` found the instructions; `Taps::check` has proved all accesses in bounds. Weights'
        // zero points need sums of each channel's inputs, which only the loop makes.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 if !job.stage.needs_row_sums() => unsafe { wide::depthwise(job, out) },
        // SAFETY: as above; the loop itself is safe code.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 | Isa::AvxVnni | Isa::Avx2 => unsafe { depthwise_avx2(job, out) },
        Isa::Portable => depthwise_loop(job, out),
    }
    Ok(())
}

/// The loop compiled for AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn depthwise_avx2(job: &Taps<'_>, out: &mut [u8]) {
    depthwise_loop(job, out);
}

#[inline(always)]
fn depthwise_loop(job: &Taps<'_>, out: &mut [u8]) {
    let quads = job.taps.div_ceil(QUAD);
    for (places, out) in job.places.chunks_exact(job.taps).zip(out.chunks_exact_mut(job.channels)) {
        for block in 0..job.channels.div_ceil(BLOCK) {
            let (mut sums, mut rows) = ([0i32; BLOCK], [0i32; BLOCK]);
            for (tap, place) in places.iter().enumerate() {
                let inputs = job.at(*place);
                let weights = &job.weights[(block * quads + tap / QUAD) * BLOCK * QUAD..][..BLOCK * QUAD];
                for at in 0..BLOCK {
                    let channel = block * BLOCK + block_order(at);
                    let x = inputs.get(channel).map_or(0, |x| i32::from(*x));
                    sums[at] = sums[at].wrapping_add(x * i32::from(weights[at * QUAD + tap % QUAD]));
                    rows[at] = rows[at].wrapping_add(x);
                }
            }
            for at in 0..BLOCK {
                let channel = block * BLOCK + block_order(at);
                if let Some(out) = out.get_mut(channel..channel + 1) {
                    job.stage.round(&sums[at..at + 1], block * BLOCK + at, rows[at], out);
                }
            }
        }
    }
}

/// 512-bit vectors: a panel is one register.
#[cfg(target_arch = "x86_64")]
mod wide {
    use super::*;

    /// A vector loaded from anywhere.
    ///
    /// # Safety
    /// 64 bytes must be readable at `at + offset` elements.
    #[target_feature(enable = "avx512f")]
    unsafe fn load<T>(at: *const T, offset: usize) -> __m512i {
        // SAFETY: the caller's promise; the instruction takes any alignment.
        unsafe { _mm512_loadu_si512(at.add(offset).cast()) }
    }

    /// As `load`, of floats.
    ///
    /// # Safety
    /// 16 floats must lie in `from` at `at`.
    #[target_feature(enable = "avx512f")]
    unsafe fn numbers(from: &[f32], at: usize) -> __m512 {
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

    /// The output stage of 16 sums; columns from `at` on. Rounded numbers have their zero point and are within 0..=255.
    ///
    /// # Safety
    /// The stage must have 16 columns from `at` on.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    unsafe fn exact(stage: &Stage, sums: __m512i, at: usize, row: i32) -> __m512 {
        // SAFETY: the caller's promise, for each array of the stage's columns.
        unsafe {
            let mut sums = _mm512_add_epi32(sums, load(stage.correction.as_ptr(), at));
            if !stage.weight_zeros.is_empty() {
                let zeros = load(stage.weight_zeros.as_ptr(), at);
                sums = _mm512_sub_epi32(sums, _mm512_mullo_epi32(zeros, _mm512_set1_epi32(row)));
            }
            _mm512_cvtepi32_ps(sums)
        }
    }

    /// # Safety
    /// As `exact`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    unsafe fn rounded(stage: &Stage, sums: __m512i, at: usize, row: i32) -> __m512i {
        // SAFETY: the caller's promise.
        let (sums, a, b) =
            unsafe { (exact(stage, sums, at, row), numbers(&stage.a, at), numbers(&stage.b, at)) };
        let (low, high) = (_mm512_set1_ps(stage.bounds.0), _mm512_set1_ps(stage.bounds.1));
        match stage.finish {
            Finish::OneDnn { input, inverse } => {
                let scaled = _mm512_mul_ps(_mm512_mul_ps(sums, _mm512_set1_ps(input)), a);
                let mut real = _mm512_add_ps(scaled, b);
                if stage.relu {
                    real = _mm512_max_ps(real, _mm512_setzero_ps());
                }
                let moved = _mm512_mul_ps(real, _mm512_set1_ps(inverse));
                let moved = _mm512_add_ps(moved, _mm512_set1_ps(stage.zero_point as f32));
                // The second operand is taken where the first is NaN.
                _mm512_cvtps_epi32(_mm512_min_ps(_mm512_max_ps(moved, low), high))
            }
            Finish::Fbgemm | Finish::Float => {
                // SAFETY: the caller's promise.
                let c = unsafe { numbers(&stage.c, at) };
                let scaled = _mm512_mul_ps(_mm512_fmadd_ps(a, b, sums), c);
                let bounded = _mm512_min_ps(_mm512_max_ps(scaled, low), high);
                _mm512_add_epi32(_mm512_cvtps_epi32(bounded), _mm512_set1_epi32(stage.zero_point))
            }
        }
    }

    /// # Safety
    /// As `exact`.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    #[inline]
    unsafe fn real(stage: &Stage, sums: __m512i, at: usize, row: i32) -> __m512 {
        // SAFETY: the caller's promise.
        let real = unsafe {
            _mm512_fmadd_ps(exact(stage, sums, at, row), numbers(&stage.a, at), numbers(&stage.b, at))
        };
        if stage.relu { _mm512_max_ps(real, _mm512_setzero_ps()) } else { real }
    }

    /// Rows `row..row + R`, panels `panel..panel + P`: sums stay in registers until they are stored as results.
    ///
    /// # Safety
    /// `Job::check` must have passed, and the rows and panels be the job's.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    unsafe fn tile<const R: usize, const P: usize>(
        job: &Job<'_>,
        row: usize,
        panel: usize,
        out: &mut Out<'_>,
    ) {
        let depth = job.quads * QUAD;
        let mut sums = [[_mm512_setzero_si512(); P]; R];
        // SAFETY: reading: rows have `depth` bytes from their starts, panels `PANEL * depth` bytes, both inside their slices
        // by `Job::check`. Writing: masks leave out what lies behind the last column; rows and columns are inside `out`.
        unsafe {
            let inputs = job.inputs.as_ptr().add(row * job.stride);
            let weights = job.weights.as_ptr().add((job.first + panel * PANEL) * depth);
            for quad_at in 0..job.quads {
                let mut w = [_mm512_setzero_si512(); P];
                for (p, w) in w.iter_mut().enumerate() {
                    *w = load(weights, p * PANEL * depth + quad_at * PANEL * QUAD);
                }
                for (r, sums) in sums.iter_mut().enumerate() {
                    let x = quad(inputs.add(r * job.stride + quad_at * QUAD));
                    for (sum, w) in sums.iter_mut().zip(&w) {
                        *sum = _mm512_dpbusd_epi32(*sum, x, *w);
                    }
                }
            }
            for (r, sums) in sums.iter().enumerate() {
                let sum = job.row_sums.get(row + r).copied().unwrap_or(0);
                for (p, sums) in sums.iter().enumerate() {
                    let column = (panel + p) * PANEL;
                    let left = job.columns.saturating_sub(column).min(PANEL);
                    let mask = ((1u32 << left) - 1) as u16;
                    let at = job.out_start + (row + r) * job.out_stride + column;
                    match out {
                        Out::Bytes(out) => {
                            let bytes = rounded(job.stage, *sums, job.first + column, sum);
                            let to = out.as_mut_ptr().add(at);
                            // Narrowing while storing, and masks, take several times as long.
                            if left == PANEL {
                                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(bytes));
                            } else {
                                _mm512_mask_cvtepi32_storeu_epi8(to.cast(), mask, bytes);
                            }
                        }
                        Out::Floats(out) => {
                            let floats = real(job.stage, *sums, job.first + column, sum);
                            _mm512_mask_storeu_ps(out.as_mut_ptr().add(at), mask, floats);
                        }
                    }
                }
            }
        }
    }

    /// # Safety
    /// `Job::check` must have passed.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) unsafe fn product(job: &Job<'_>, out: &mut Out<'_>) {
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
            let mut row = 0;
            while row < job.rows {
                let rows = (job.rows - row).min(most);
                // SAFETY: rows and panels are the job's.
                unsafe {
                    match (width, rows) {
                        (1, 12) => tile::<12, 1>(job, row, panel, out),
                        (1, 6..) => tile::<6, 1>(job, row, panel, out),
                        (1, 4..) => tile::<4, 1>(job, row, panel, out),
                        (1, 2..) => tile::<2, 1>(job, row, panel, out),
                        (1, _) => tile::<1, 1>(job, row, panel, out),
                        (2, 12) => tile::<12, 2>(job, row, panel, out),
                        (2, 6..) => tile::<6, 2>(job, row, panel, out),
                        (2, 4..) => tile::<4, 2>(job, row, panel, out),
                        (2, 2..) => tile::<2, 2>(job, row, panel, out),
                        (2, _) => tile::<1, 2>(job, row, panel, out),
                        (3, 8) => tile::<8, 3>(job, row, panel, out),
                        (3, 4..) => tile::<4, 3>(job, row, panel, out),
                        (3, 2..) => tile::<2, 3>(job, row, panel, out),
                        (3, _) => tile::<1, 3>(job, row, panel, out),
                        (_, 6) => tile::<6, 4>(job, row, panel, out),
                        (_, 4..) => tile::<4, 4>(job, row, panel, out),
                        (_, 2..) => tile::<2, 4>(job, row, panel, out),
                        (_, _) => tile::<1, 4>(job, row, panel, out),
                    }
                }
                row += match (width, rows) {
                    (1 | 2, 12) | (3, 8) => rows,
                    (_, 6..) if width != 3 => 6,
                    (_, 4..) => 4,
                    (_, 2..) => 2,
                    _ => 1,
                };
            }
            panel += width;
        }
    }

    /// # Safety
    /// `Taps::check` must have passed; the weights have no zero points.
    #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vnni")]
    pub(super) unsafe fn depthwise(job: &Taps<'_>, out: &mut [u8]) {
        let quads = job.taps.div_ceil(QUAD);
        for (result, places) in job.places.chunks_exact(job.taps).enumerate() {
            for block in 0..job.channels.div_ceil(BLOCK) {
                let first = block * BLOCK;
                let left = (job.channels - first).min(BLOCK);
                let mask = u64::MAX >> (BLOCK - left);
                let mut sums = [_mm512_setzero_si512(); 4];
                // SAFETY: each place has `channels` bytes, of which the mask leaves those behind the last unread; weights and
                // the stage's numbers are padded to whole blocks and quads; results are masked likewise.
                unsafe {
                    let line = |tap: usize| {
                        let at = match places.get(tap) {
                            Some(&usize::MAX) | None => job.outside.as_ptr(),
                            Some(&place) => job.inputs.as_ptr().add(place),
                        };
                        _mm512_maskz_loadu_epi8(mask, at.add(first).cast())
                    };
                    let mut weights = job.weights.as_ptr().add(first * quads * QUAD);
                    for q in 0..quads {
                        let x = [line(q * QUAD), line(q * QUAD + 1), line(q * QUAD + 2), line(q * QUAD + 3)];
                        let lows = (_mm512_unpacklo_epi8(x[0], x[1]), _mm512_unpacklo_epi8(x[2], x[3]));
                        let highs = (_mm512_unpackhi_epi8(x[0], x[1]), _mm512_unpackhi_epi8(x[2], x[3]));
                        let quadruples = [
                            _mm512_unpacklo_epi16(lows.0, lows.1),
                            _mm512_unpackhi_epi16(lows.0, lows.1),
                            _mm512_unpacklo_epi16(highs.0, highs.1),
                            _mm512_unpackhi_epi16(highs.0, highs.1),
                        ];
                        for (i, (sum, x)) in sums.iter_mut().zip(quadruples).enumerate() {
                            *sum = _mm512_dpbusd_epi32(*sum, x, load(weights, i * BLOCK));
                        }
                        weights = weights.add(BLOCK * QUAD);
                    }
                    let done = |i: usize| rounded(job.stage, sums[i], first + i * PANEL, 0);
                    // Packing stays within 128 bits, and so undoes the order that unpacking made.
                    let low = _mm512_packs_epi32(done(0), done(1));
                    let high = _mm512_packs_epi32(done(2), done(3));
                    let at = out.as_mut_ptr().add(result * job.channels + first);
                    _mm512_mask_storeu_epi8(at.cast(), mask, _mm512_packus_epi16(low, high));
                }
            }
        }
    }
}

/// 256-bit vectors: a panel is two registers.
#[cfg(target_arch = "x86_64")]
mod narrow {
    use super::*;

    macro_rules! products {
        ($name:ident, $tile:ident, $features:literal, $($step:tt)*) => {
            /// # Safety
            /// `Job::check` must have passed.
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(job: &Job<'_>, out: &mut Out<'_>) {
                const ROWS: usize = 4;
                for panel in 0..job.columns.div_ceil(PANEL) {
                    let whole = job.rows / ROWS * ROWS;
                    // SAFETY: rows and panels are the job's.
                    unsafe {
                        for row in (0..whole).step_by(ROWS) {
                            $tile::<ROWS>(job, row, panel, out);
                        }
                        for row in whole..job.rows {
                            $tile::<1>(job, row, panel, out);
                        }
                    }
                }
            }

            /// # Safety
            /// As the product, for rows and panels of the job.
            #[target_feature(enable = $features)]
            unsafe fn $tile<const R: usize>(job: &Job<'_>, row: usize, panel: usize, out: &mut Out<'_>) {
                let depth = job.quads * QUAD;
                let mut sums = [[_mm256_setzero_si256(); 2]; R];
                // SAFETY: rows and panels lie inside their slices by `Job::check`; unaligned loads and stores.
                unsafe {
                    let inputs = job.inputs.as_ptr().add(row * job.stride);
                    let weights = job.weights.as_ptr().add((job.first + panel * PANEL) * depth);
                    for quad in 0..job.quads {
                        let w = [0, 32].map(|at| {
                            _mm256_loadu_si256(weights.add(quad * PANEL * QUAD + at).cast())
                        });
                        for (r, sums) in sums.iter_mut().enumerate() {
                            let x = inputs.add(r * job.stride + quad * QUAD).cast::<i32>().read_unaligned();
                            let x = _mm256_set1_epi32(x);
                            sums[0] = $($step)*(sums[0], x, w[0]);
                            sums[1] = $($step)*(sums[1], x, w[1]);
                        }
                    }
                    for (r, sums) in sums.iter().enumerate() {
                        let mut plain = [0i32; PANEL];
                        _mm256_storeu_si256(plain.as_mut_ptr().cast(), sums[0]);
                        _mm256_storeu_si256(plain.as_mut_ptr().add(8).cast(), sums[1]);
                        finish(job, row + r, panel, &plain, out);
                    }
                }
            }
        };
    }

    products!(product_vnni, tile_vnni, "avx2,fma,avxvnni", _mm256_dpbusd_avx_epi32);
    products!(product_avx2, tile_avx2, "avx2,fma", step_avx2);

    /// Bytes widened to 16 bits, as the instruction for pairs of bytes saturates.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn step_avx2(sum: __m256i, x: __m256i, w: __m256i) -> __m256i {
        let even =
            (_mm256_and_si256(x, _mm256_set1_epi16(0xff)), _mm256_srai_epi16(_mm256_slli_epi16(w, 8), 8));
        let odd = (_mm256_srli_epi16(x, 8), _mm256_srai_epi16(w, 8));
        let terms = _mm256_add_epi32(_mm256_madd_epi16(even.0, even.1), _mm256_madd_epi16(odd.0, odd.1));
        _mm256_add_epi32(sum, terms)
    }
}
