//! Sixteen float32 numbers at a time, on whatever vectors the machine has: what the kernels of this folder are written in.
//! A value of a type that implements [`Lanes`] is the proof that its instructions are there, so that its methods are safe;
//! [`with`] makes that proof. Knows no sizes of tensors.
#![allow(
    unsafe_code,
    reason = "vector instructions, guarded by tokens that only `with` creates after detection"
)]

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::sync::OnceLock;

/// Numbers of a vector.
pub(super) const LANES: usize = 16;

/// Instructions that loops are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Isa {
    /// One register of 512 bits.
    #[cfg(target_arch = "x86_64")]
    Avx512,
    /// Two registers of 256 bits.
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
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                all.push(Isa::Avx512);
            }
            if avx2 {
                all.push(Isa::Avx2);
            }
        }
        all.push(Isa::Portable);
        all
    }

    /// Columns of a tile: as many as fill the registers beside its rows. Packed weights have them side by side, as other columns
    /// between them would take their places in the first cache.
    pub fn columns(self) -> usize {
        match self {
            #[cfg(target_arch = "x86_64")]
            Isa::Avx512 => 2 * LANES,
            _ => LANES,
        }
    }

    /// The best that this machine has.
    pub fn best() -> Isa {
        static BEST: OnceLock<Isa> = OnceLock::new();
        *BEST.get_or_init(|| Isa::supported().first().copied().unwrap_or(Isa::Portable))
    }
}

/// A tile of sums that registers hold: some rows of some vectors of columns. It is compiled for each number of rows.
pub(super) trait InRegisters: Sized {
    /// Its rows.
    fn rows(&self) -> usize;
    /// Columns that are stored.
    fn columns(&self) -> usize;
    /// Whether its columns are two vectors, side by side.
    fn is_wide(&self) -> bool;
    /// The vector of columns that begins at one of its columns.
    ///
    /// # Safety
    /// The tile has the column.
    unsafe fn vector_at(&self, at: usize) -> Self;
    /// Computes `M` rows of `N` vectors of columns.
    ///
    /// # Safety
    /// All that the tile names must be readable, and its results writable.
    unsafe fn compute<L: Lanes, const M: usize, const N: usize>(&self, l: L);
}

/// A tile by its number of rows, all of which are compiled.
macro_rules! by_rows {
    ($l:expr, $tile:expr, $vectors:literal, $($rows:literal)+) => {
        match $tile.rows() {
            // SAFETY: the caller's promise.
            $($rows => unsafe { $tile.compute::<_, $rows, $vectors>($l) },)+
            _ => {}
        }
    };
}

/// A tile, one vector of columns at a time: no closure, which would pass vectors through memory.
macro_rules! vector_by_vector {
    ($tile:expr, $half:ident => $work:expr) => {
        for at in (0..$tile.columns()).step_by(LANES) {
            // SAFETY: the tile has these columns.
            let $half = unsafe { &$tile.vector_at(at) };
            $work
        }
    };
}

/// Arithmetic on sixteen numbers. Where an operation's answer to NaN matters, its name says which operand wins.
pub(super) trait Lanes: Copy + Send + Sync {
    /// The vector.
    type V: Copy;
    /// Whether [`Lanes::pick`] is an instruction.
    const PICKS: bool = false;

    /// The instructions that the value is a proof of.
    fn isa(self) -> Isa;
    /// Most rows of a tile: as many as fill the registers.
    fn rows(self) -> usize;
    /// Computes a tile.
    ///
    /// # Safety
    /// The tile's promise: see [`InRegisters::compute`].
    unsafe fn tile<T: InRegisters>(self, tile: &T);

    fn splat(self, x: f32) -> Self::V;
    /// # Safety
    /// 16 floats must be readable at the address.
    unsafe fn read(self, at: *const f32) -> Self::V;
    /// # Safety
    /// 16 floats must be writable at the address.
    unsafe fn write(self, at: *mut f32, v: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a * b + c, rounded once where the machine can.
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    /// The larger; `x` where either is NaN or both are zero.
    fn at_least(self, low: Self::V, x: Self::V) -> Self::V;
    /// The smaller; `x` where either is NaN or both are zero.
    fn at_most(self, high: Self::V, x: Self::V) -> Self::V;
    /// The larger; NaN where either is NaN.
    #[inline(always)]
    fn largest(self, a: Self::V, b: Self::V) -> Self::V {
        // `at_least` keeps NaN of its second operand alone.
        self.where_nan(a, a, self.at_least(a, b))
    }
    /// `yes` where `x` is NaN.
    fn where_nan(self, x: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    /// `yes` where a < b, `no` elsewhere and where either is NaN.
    fn where_less(self, a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    /// The size of the first with the sign of the second.
    fn with_sign(self, a: Self::V, sign: Self::V) -> Self::V;
    /// To the nearest integer, ties to even; numbers below 2^22.
    fn round(self, a: Self::V) -> Self::V;
    /// 2^n for integers from -127 (which gives 0) to 127.
    fn power_of_two(self, n: Self::V) -> Self::V;
    /// x * 2^n for integers from -252 to 252: infinity, denormals and 0 where the product is none of the normal numbers.
    #[inline(always)]
    fn scaled(self, x: Self::V, n: Self::V) -> Self::V {
        // In two steps, as 2^n itself may not be a normal float.
        let half = self.round(self.mul(n, self.splat(0.5)));
        self.mul(self.mul(x, self.power_of_two(half)), self.power_of_two(self.sub(n, half)))
    }
    /// The same for integers from -126 to 128 and products that are normal numbers or infinity.
    #[inline(always)]
    fn scaled_beyond_one(self, x: Self::V, n: Self::V) -> Self::V {
        // 2^128 is not a finite float: half of the product is doubled.
        let half = self.mul(x, self.power_of_two(self.sub(n, self.splat(1.0))));
        self.add(half, half)
    }
    /// The same for integers from -126 to 127.
    #[inline(always)]
    fn scaled_little(self, x: Self::V, n: Self::V) -> Self::V {
        self.mul(x, self.power_of_two(n))
    }

    /// For each lane the number of a table that the lowest five bits of the lane name.
    #[inline(always)]
    fn pick(self, table: &[[f32; LANES]; 2], names: Self::V) -> Self::V {
        let mut all = [0.0f32; LANES];
        self.store(&mut all, names);
        self.load(&all.map(|name| {
            let n = name.to_bits() as usize % (2 * LANES);
            table[n / LANES][n % LANES]
        }))
    }

    /// Has the line at an address brought near, if the machine can; nothing is read, so any address will do.
    #[inline(always)]
    fn prefetch(self, _at: *const f32) {}

    /// Writes eight rows of eight numbers, `stride` apart, as columns of eight rows that lie `pitch` apart.
    ///
    /// # Safety
    /// All of the first must be readable, all of the second writable, and none be both.
    #[inline(always)]
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, pitch: usize) {
        for n in 0..8 {
            for i in 0..8 {
                // SAFETY: the caller's promise.
                unsafe { *to.add(i * pitch + n) = *from.add(n * stride + i) };
            }
        }
    }

    /// The numbers of an array.
    #[inline(always)]
    fn load(self, from: &[f32; LANES]) -> Self::V {
        // SAFETY: the array has 16.
        unsafe { self.read(from.as_ptr()) }
    }

    /// Writes the numbers to an array.
    #[inline(always)]
    fn store(self, to: &mut [f32; LANES], v: Self::V) {
        // SAFETY: the array has 16.
        unsafe { self.write(to.as_mut_ptr(), v) }
    }

    /// At most sixteen numbers; the rest of the vector is `rest`.
    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> Self::V {
        if let Some(whole) = from.first_chunk() {
            return self.load(whole);
        }
        let mut all = [rest; LANES];
        all[..from.len()].copy_from_slice(from);
        self.load(&all)
    }

    /// As many numbers as the slice takes, at most sixteen.
    #[inline(always)]
    fn store_some(self, to: &mut [f32], v: Self::V) {
        if let Some(whole) = to.first_chunk_mut() {
            return self.store(whole, v);
        }
        let mut all = [0.0; LANES];
        self.store(&mut all, v);
        let count = to.len();
        to.copy_from_slice(&all[..count]);
    }

    /// The largest of all, some number where there is NaN among them.
    #[inline(always)]
    fn max_of(self, v: Self::V) -> f32 {
        let mut all = [0.0; LANES];
        self.store(&mut all, v);
        let mut most = f32::NEG_INFINITY;
        for x in all {
            most = if x > most { x } else { most };
        }
        most
    }

    /// The sum of all, pair by pair.
    #[inline(always)]
    fn sum(self, v: Self::V) -> f32 {
        let mut all = [0.0; LANES];
        self.store(&mut all, v);
        let mut half = LANES / 2;
        while half > 0 {
            for i in 0..half {
                all[i] += all[i + half];
            }
            half /= 2;
        }
        all[0]
    }
}

/// As many numbers as there are channels in a vector; zeros after them.
///
/// # Safety
/// They must be readable.
#[inline(always)]
pub(super) unsafe fn read_some<L: Lanes>(l: L, at: *const f32, count: usize) -> L::V {
    // SAFETY: the caller's promise.
    unsafe {
        if count == LANES { l.read(at) } else { l.load_some(std::slice::from_raw_parts(at, count), 0.0) }
    }
}

/// Writes as many numbers as there are channels in a vector.
///
/// # Safety
/// They must be writable, and no slice may hold them.
#[inline(always)]
pub(super) unsafe fn write_some<L: Lanes>(l: L, at: *mut f32, count: usize, v: L::V) {
    // SAFETY: the caller's promise.
    unsafe {
        if count == LANES {
            l.write(at, v);
        } else {
            l.store_some(std::slice::from_raw_parts_mut(at, count), v);
        }
    }
}

/// Work that is compiled for each kind of vectors. `run` and all that it calls with vectors must be `#[inline(always)]`.
pub(super) trait Work {
    /// What it gives.
    type Out;
    /// Does it.
    fn run<L: Lanes>(self, l: L) -> Self::Out;
}

/// Does work with given instructions, or with plain loops where the machine has not got them.
pub(super) fn with<W: Work>(isa: Isa, work: W) -> W::Out {
    debug_assert!(Isa::supported().contains(&isa), "{isa:?} is not there");
    match isa {
        // SAFETY: values of `Isa` come from `supported`, which has found the instructions.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { with_avx512(work) },
        // SAFETY: as above.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx2 => unsafe { with_avx2(work) },
        Isa::Portable => with_portable(work),
    }
}

/// Does work in a function of its own: what is large, and called from many places that each are compiled.
#[inline(always)]
pub(super) fn apart<L: Lanes, W: Work>(l: L, work: W) -> W::Out {
    with(l.isa(), work)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512dq,avx2,fma")]
#[inline(never)]
fn with_avx512<W: Work>(work: W) -> W::Out {
    work.run(Avx512(()))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
#[inline(never)]
fn with_avx2<W: Work>(work: W) -> W::Out {
    work.run(Avx2(()))
}

#[inline(never)]
fn with_portable<W: Work>(work: W) -> W::Out {
    work.run(Portable)
}

/// AVX-512 is there.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

/// AVX2 and fused products are there.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

/// Always there.
#[derive(Clone, Copy)]
pub(super) struct Portable;

// SAFETY of all blocks below: the token proves the instructions; addresses are the caller's promise.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    type V = __m512;
    const PICKS: bool = true;

    #[inline(always)]
    fn isa(self) -> Isa {
        Isa::Avx512
    }
    #[inline(always)]
    fn rows(self) -> usize {
        // More would not be faster, and rows that lie a multiple of pages apart would meet in the same lines of the cache.
        10
    }
    #[inline(always)]
    unsafe fn tile<T: InRegisters>(self, tile: &T) {
        if tile.is_wide() {
            by_rows!(self, tile, 2, 10 9 8 7 6 5 4 3 2 1);
        } else {
            by_rows!(self, tile, 1, 10 9 8 7 6 5 4 3 2 1);
        }
    }

    #[inline(always)]
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, pitch: usize) {
        // SAFETY: the caller's promise; both kinds of machines have AVX.
        unsafe { transpose8(from, stride, to, pitch) }
    }
    #[inline(always)]
    fn pick(self, [low, high]: &[[f32; LANES]; 2], names: __m512) -> __m512 {
        unsafe { _mm512_permutex2var_ps(self.load(low), _mm512_castps_si512(names), self.load(high)) }
    }
    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        unsafe { _mm512_set1_ps(x) }
    }
    #[inline(always)]
    unsafe fn read(self, at: *const f32) -> __m512 {
        unsafe { _mm512_loadu_ps(at) }
    }
    #[inline(always)]
    unsafe fn write(self, at: *mut f32, v: __m512) {
        unsafe { _mm512_storeu_ps(at, v) }
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_add_ps(a, b) }
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_sub_ps(a, b) }
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_mul_ps(a, b) }
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        unsafe { _mm512_div_ps(a, b) }
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        unsafe { _mm512_fmadd_ps(a, b, c) }
    }
    #[inline(always)]
    fn at_least(self, low: __m512, x: __m512) -> __m512 {
        unsafe { _mm512_max_ps(low, x) }
    }
    #[inline(always)]
    fn at_most(self, high: __m512, x: __m512) -> __m512 {
        unsafe { _mm512_min_ps(high, x) }
    }
    #[inline(always)]
    fn where_nan(self, x: __m512, yes: __m512, no: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x), no, yes) }
    }
    #[inline(always)]
    fn where_less(self, a: __m512, b: __m512, yes: __m512, no: __m512) -> __m512 {
        unsafe { _mm512_mask_blend_ps(_mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b), no, yes) }
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        unsafe { _mm512_abs_ps(a) }
    }
    #[inline(always)]
    fn with_sign(self, a: __m512, sign: __m512) -> __m512 {
        unsafe { _mm512_or_ps(_mm512_abs_ps(a), _mm512_and_ps(sign, _mm512_set1_ps(-0.0))) }
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        unsafe { _mm512_roundscale_ps::<0>(a) }
    }
    #[inline(always)]
    fn power_of_two(self, n: __m512) -> __m512 {
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(n), _mm512_set1_epi32(127));
            _mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased))
        }
    }
    #[inline(always)]
    fn max_of(self, v: __m512) -> f32 {
        unsafe { _mm512_reduce_max_ps(v) }
    }
    #[inline(always)]
    fn sum(self, v: __m512) -> f32 {
        unsafe { _mm512_reduce_add_ps(v) }
    }
    #[inline(always)]
    fn scaled(self, x: __m512, n: __m512) -> __m512 {
        unsafe { _mm512_scalef_ps(x, n) }
    }
    #[inline(always)]
    fn scaled_beyond_one(self, x: __m512, n: __m512) -> __m512 {
        unsafe { _mm512_scalef_ps(x, n) }
    }
    #[inline(always)]
    fn scaled_little(self, x: __m512, n: __m512) -> __m512 {
        unsafe { _mm512_scalef_ps(x, n) }
    }
    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> __m512 {
        let mask = mask(from.len());
        // SAFETY: only as many floats are read as there are.
        unsafe { _mm512_mask_loadu_ps(_mm512_set1_ps(rest), mask, from.as_ptr()) }
    }
    #[inline(always)]
    fn store_some(self, to: &mut [f32], v: __m512) {
        if let Some(whole) = to.first_chunk_mut() {
            return self.store(whole, v);
        }
        // SAFETY: only as many floats are written as there are.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask(to.len()), v) }
    }
}

/// As [`Lanes::transpose8`] says: pairs of rows, then fours, then halves.
///
/// # Safety
/// As there; AVX must be enabled where this is inlined.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
unsafe fn transpose8(from: *const f32, stride: usize, to: *mut f32, pitch: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        let row = |n: usize| _mm256_loadu_ps(from.add(n * stride));
        let pair = |a, b| (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
        let (p0, p1) = pair(row(0), row(1));
        let (p2, p3) = pair(row(2), row(3));
        let (p4, p5) = pair(row(4), row(5));
        let (p6, p7) = pair(row(6), row(7));
        let four = |a, b| (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xEE>(a, b));
        let (f0, f1) = four(p0, p2);
        let (f2, f3) = four(p1, p3);
        let (f4, f5) = four(p4, p6);
        let (f6, f7) = four(p5, p7);
        let low = |a, b| _mm256_permute2f128_ps::<0x20>(a, b);
        let high = |a, b| _mm256_permute2f128_ps::<0x31>(a, b);
        let columns = [
            low(f0, f4),
            low(f1, f5),
            low(f2, f6),
            low(f3, f7),
            high(f0, f4),
            high(f1, f5),
            high(f2, f6),
            high(f3, f7),
        ];
        for (n, column) in columns.into_iter().enumerate() {
            _mm256_storeu_ps(to.add(n * pitch), column);
        }
    }
}

/// The first lanes.
#[inline(always)]
fn mask(lanes: usize) -> u16 {
    if lanes >= LANES { u16::MAX } else { (1u16 << lanes) - 1 }
}

// SAFETY: as above.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    type V = [__m256; 2];

    #[inline(always)]
    fn isa(self) -> Isa {
        Isa::Avx2
    }
    #[inline(always)]
    fn rows(self) -> usize {
        6
    }
    #[inline(always)]
    unsafe fn tile<T: InRegisters>(self, tile: &T) {
        vector_by_vector!(tile, half => by_rows!(self, half, 1, 6 5 4 3 2 1));
    }

    #[inline(always)]
    unsafe fn transpose8(self, from: *const f32, stride: usize, to: *mut f32, pitch: usize) {
        // SAFETY: the caller's promise; both kinds of machines have AVX.
        unsafe { transpose8(from, stride, to, pitch) }
    }
    #[inline(always)]
    fn prefetch(self, at: *const f32) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(at.cast()) }
    }
    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        let v = unsafe { _mm256_set1_ps(x) };
        [v, v]
    }
    #[inline(always)]
    unsafe fn read(self, at: *const f32) -> Self::V {
        unsafe { [_mm256_loadu_ps(at), _mm256_loadu_ps(at.add(8))] }
    }
    #[inline(always)]
    unsafe fn write(self, at: *mut f32, v: Self::V) {
        unsafe {
            _mm256_storeu_ps(at, v[0]);
            _mm256_storeu_ps(at.add(8), v[1]);
        }
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        unsafe { [_mm256_add_ps(a[0], b[0]), _mm256_add_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        unsafe { [_mm256_sub_ps(a[0], b[0]), _mm256_sub_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        unsafe { [_mm256_mul_ps(a[0], b[0]), _mm256_mul_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        unsafe { [_mm256_div_ps(a[0], b[0]), _mm256_div_ps(a[1], b[1])] }
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        unsafe { [_mm256_fmadd_ps(a[0], b[0], c[0]), _mm256_fmadd_ps(a[1], b[1], c[1])] }
    }
    #[inline(always)]
    fn at_least(self, low: Self::V, x: Self::V) -> Self::V {
        unsafe { [_mm256_max_ps(low[0], x[0]), _mm256_max_ps(low[1], x[1])] }
    }
    #[inline(always)]
    fn at_most(self, high: Self::V, x: Self::V) -> Self::V {
        unsafe { [_mm256_min_ps(high[0], x[0]), _mm256_min_ps(high[1], x[1])] }
    }
    #[inline(always)]
    fn where_nan(self, x: Self::V, yes: Self::V, no: Self::V) -> Self::V {
        let half =
            |i: usize| unsafe { _mm256_blendv_ps(no[i], yes[i], _mm256_cmp_ps::<_CMP_UNORD_Q>(x[i], x[i])) };
        [half(0), half(1)]
    }
    #[inline(always)]
    fn where_less(self, a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V {
        let half =
            |i: usize| unsafe { _mm256_blendv_ps(no[i], yes[i], _mm256_cmp_ps::<_CMP_LT_OQ>(a[i], b[i])) };
        [half(0), half(1)]
    }
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        let half = |i: usize| unsafe { _mm256_andnot_ps(_mm256_set1_ps(-0.0), a[i]) };
        [half(0), half(1)]
    }
    #[inline(always)]
    fn with_sign(self, a: Self::V, sign: Self::V) -> Self::V {
        let half = |i: usize| unsafe {
            let bit = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(bit, a[i]), _mm256_and_ps(bit, sign[i]))
        };
        [half(0), half(1)]
    }
    #[inline(always)]
    fn round(self, a: Self::V) -> Self::V {
        unsafe { [_mm256_round_ps::<8>(a[0]), _mm256_round_ps::<8>(a[1])] }
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::V) -> Self::V {
        let half = |i: usize| unsafe {
            let biased = _mm256_add_epi32(_mm256_cvtps_epi32(n[i]), _mm256_set1_epi32(127));
            _mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased))
        };
        [half(0), half(1)]
    }
    // By masks and not by copies, whose calls would have sums of tiles leave their registers. Whole halves without, as masked
    // stores are slow.
    #[inline(always)]
    fn load_some(self, from: &[f32], rest: f32) -> Self::V {
        if let Some(whole) = from.first_chunk() {
            return self.load(whole);
        }
        let (masks, at, rest) = (masks(from.len()), from.as_ptr(), self.splat(rest));
        // SAFETY: only as many floats are read as there are.
        let half = |i: usize| unsafe {
            if from.len() >= 8 * (i + 1) {
                return _mm256_loadu_ps(at.add(8 * i));
            }
            let given = _mm256_maskload_ps(at.wrapping_add(8 * i), masks[i]);
            _mm256_blendv_ps(rest[i], given, _mm256_castsi256_ps(masks[i]))
        };
        [half(0), half(1)]
    }
    #[inline(always)]
    fn store_some(self, to: &mut [f32], v: Self::V) {
        if let Some(whole) = to.first_chunk_mut() {
            return self.store(whole, v);
        }
        let (masks, count, to) = (masks(to.len()), to.len(), to.as_mut_ptr());
        for i in 0..2 {
            // SAFETY: only as many floats are written as there are.
            unsafe {
                match count {
                    _ if count >= 8 * (i + 1) => _mm256_storeu_ps(to.add(8 * i), v[i]),
                    _ if count > 8 * i => _mm256_maskstore_ps(to.wrapping_add(8 * i), masks[i], v[i]),
                    _ => {}
                }
            }
        }
    }
}

/// The first lanes of two registers, as masks of AVX2 say it: all bits of a lane.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn masks(lanes: usize) -> [__m256i; 2] {
    static FIRST: [i32; 2 * LANES] = {
        let mut all = [0; 2 * LANES];
        let mut n = 0;
        while n < LANES {
            all[n] = -1;
            n += 1;
        }
        all
    };
    let from = FIRST[LANES - lanes.min(LANES)..].as_ptr();
    // SAFETY: 16 numbers are left from there on; both kinds of machines have AVX.
    unsafe { [_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(8).cast())] }
}

/// A vector from a function of the lane.
#[inline(always)]
fn lanes(f: impl Fn(usize) -> f32) -> [f32; LANES] {
    std::array::from_fn(f)
}

impl Lanes for Portable {
    type V = [f32; LANES];

    #[inline(always)]
    fn isa(self) -> Isa {
        Isa::Portable
    }
    #[inline(always)]
    fn rows(self) -> usize {
        2
    }
    #[inline(always)]
    unsafe fn tile<T: InRegisters>(self, tile: &T) {
        vector_by_vector!(tile, half => by_rows!(self, half, 1, 2 1));
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::V {
        [x; LANES]
    }
    #[inline(always)]
    unsafe fn read(self, at: *const f32) -> Self::V {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<[f32; LANES]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn write(self, at: *mut f32, v: Self::V) {
        // SAFETY: the caller's promise.
        unsafe { at.cast::<[f32; LANES]>().write_unaligned(v) }
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] + b[i])
    }
    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] - b[i])
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] * b[i])
    }
    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        lanes(|i| a[i] / b[i])
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        lanes(|i| a[i] * b[i] + c[i])
    }
    #[inline(always)]
    fn at_least(self, low: Self::V, x: Self::V) -> Self::V {
        lanes(|i| if low[i] > x[i] { low[i] } else { x[i] })
    }
    #[inline(always)]
    fn at_most(self, high: Self::V, x: Self::V) -> Self::V {
        lanes(|i| if high[i] < x[i] { high[i] } else { x[i] })
    }
    #[inline(always)]
    fn where_nan(self, x: Self::V, yes: Self::V, no: Self::V) -> Self::V {
        lanes(|i| if x[i].is_nan() { yes[i] } else { no[i] })
    }
    #[inline(always)]
    fn where_less(self, a: Self::V, b: Self::V, yes: Self::V, no: Self::V) -> Self::V {
        lanes(|i| if a[i] < b[i] { yes[i] } else { no[i] })
    }
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        lanes(|i| a[i].abs())
    }
    #[inline(always)]
    fn with_sign(self, a: Self::V, sign: Self::V) -> Self::V {
        lanes(|i| a[i].copysign(sign[i]))
    }
    #[inline(always)]
    fn round(self, a: Self::V) -> Self::V {
        // 1.5 * 2^23: its last bit counts ones.
        const MAGIC: f32 = 12_582_912.0;
        lanes(|i| (a[i] + MAGIC) - MAGIC)
    }
    #[inline(always)]
    fn power_of_two(self, n: Self::V) -> Self::V {
        lanes(|i| f32::from_bits(((n[i] as i32 + 127) as u32) << 23))
    }
}
