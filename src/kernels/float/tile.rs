//! Products of rows of inputs and packed weights, a tile of results at a time in registers, with the epilogue before
//! they are stored. Rows are where they lie: each is a few runs of neighbouring inputs, so that convolutions need no copy of
//! their windows. Every sum adds its terms in the order of the packed weights, as many at a time, whatever the tile, the block
//! or the thread. Knows no convolutions.
#![allow(unsafe_code, reason = "tiles go through pointers; `Block::product` proves them inside their slices")]
#![allow(clippy::needless_range_loop, reason = "arrays of vectors stay in registers only where loops count")]

use super::epilogue::{Epilogue, Finish, spans};
use super::transpose::Transpose;
use super::vector::{InRegisters, Isa, LANES, Lanes, Work, apart, read_some, with, write_some};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::{CACHE_LINE, Lines};
use crate::resources::{Scratch, memory, pool};
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::Arc;

/// Columns that a result is cut by: a whole number of blocks of packed weights on every machine.
pub(super) const BLOCK: usize = 2 * LANES;

/// Least rows of a tile that fetches the weights of the next block.
const FETCHING: usize = 4;

/// Rows that are reached from one pointer: with the distance of two rows and twice that, machines need no addition.
const GROUP: usize = 3;
/// Such groups of the largest tile.
const GROUPS: usize = 4;

/// Terms that are added up before they join a sum: the rounding of one chain of float32 grows with its length. Of sums of
/// 25,088 products of normal numbers it is 3.7e-7 of their root mean square; one chain had 2.9e-6.
const TERMS: usize = 256;

/// Rows of tiles after which an epilogue's function is applied to them: their sums are in the first cache, and are enough for a
/// long loop.
const FINISHED: usize = 64;

/// Terms whose weights are transposed at a time, where they go elsewhere than side by side: they stay in the first cache.
const TURNED: usize = 64;

/// Weights as products read them: block of columns after block, in it for each term of the sums the block's columns.
#[derive(Clone, Debug)]
pub(super) struct Panels {
    /// Those of other matrices may stand here as well.
    weights: Arc<Scratch<f32>>,
    /// Where in `weights` they begin: at a cache line.
    begin: usize,
    columns: usize,
    depth: usize,
    /// Columns of a block: those of a tile of this machine ([`Isa::columns`]). The last block has one vector where that is enough.
    width: usize,
}

/// Columns of the block that begins at `first`, of `columns` in blocks of `width`.
fn width_of(columns: usize, first: usize, width: usize) -> usize {
    if columns - first <= LANES { LANES } else { width }
}

/// Room for some zeros, and where in it they begin: at a cache line.
fn zeros(count: usize) -> Result<(Scratch<f32>, usize)> {
    let room = memory::filled(count.saturating_add(CACHE_LINE), 0f32)?;
    let begin = room.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
    Ok((room, begin))
}

impl Panels {
    /// Packs weights whose columns are rows of `channels` times `taps` floats, taps innermost; terms go by tap, then by channel.
    /// Several threads pack. Fails without memory, and where the weights are not there.
    pub fn of_taps(columns: usize, [channels, taps]: [usize; 2], rows: &[f32]) -> Result<Panels> {
        let depth = channels.saturating_mul(taps);
        let mut panels = Panels::empty(columns, depth)?;
        let length = columns.next_multiple_of(LANES) * depth;
        let (begin, step) = (panels.begin, panels.width);
        let weights = &mut panels.own()?[begin..begin + length];
        pool::try_chunks(weights, (step * depth).max(1), |n, block| {
            let first = n * step;
            let width = width_of(columns, first, step);
            let rows = &rows[first * depth..];
            let count = width.min(columns - first);
            if taps == 1 {
                Transpose::new(rows, [count, depth], depth, block, width)?.run_with(Isa::best());
                return Ok(());
            }
            // Columns beyond the last stay zero.
            let mut some = [0f32; TURNED * BLOCK];
            for start in (0..depth).step_by(TURNED) {
                let terms = TURNED.min(depth - start);
                Transpose::new(&rows[start..], [count, terms], depth, &mut some, width)?
                    .run_with(Isa::best());
                for (n, term) in some.chunks_exact(width).take(terms).enumerate() {
                    let (channel, tap) = ((start + n) / taps, (start + n) % taps);
                    block[(tap * channels + channel) * width..][..width].copy_from_slice(term);
                }
            }
            Ok(())
        })?;
        Ok(panels)
    }

    /// `N` matrices each of blocks of [`BLOCK`] columns, block after block, in one piece of memory, which `fill` fills for block
    /// after block on several threads: it is given the block and zeroed room for each of its matrices. Fails without memory.
    pub fn of_planes<const N: usize>(
        columns: usize,
        depth: usize,
        fill: impl Fn(usize, [&mut [f32]; N]) -> Result<()> + Sync,
    ) -> Result<Vec<Panels>> {
        let blocks = columns.div_ceil(BLOCK);
        let each =
            depth.checked_mul(BLOCK).filter(|n| n.checked_mul(blocks * N).is_some()).unwrap_or(usize::MAX);
        let (mut weights, begin) = zeros(each.saturating_mul(blocks * N))?;
        let all = weights.len().min(begin + each * blocks * N);
        pool::try_chunks(&mut weights[begin..all], (each * N).max(1), |block, room| {
            let mut planes = room.chunks_exact_mut(each.max(1));
            fill(block, std::array::from_fn(|_| planes.next().unwrap_or_default()))
        })?;
        let weights = Arc::new(weights);
        let panels = (0..blocks * N).map(|n| Panels {
            weights: Arc::clone(&weights),
            begin: begin + n * each,
            columns: BLOCK.min(columns - n / N * BLOCK),
            depth,
            width: Isa::best().columns(),
        });
        Ok(panels.collect())
    }

    /// Zeros.
    pub fn empty(columns: usize, depth: usize) -> Result<Panels> {
        let room = columns.checked_next_multiple_of(LANES).and_then(|n| n.checked_mul(depth));
        let (weights, begin) = zeros(room.unwrap_or(usize::MAX))?;
        Ok(Panels { weights: Arc::new(weights), begin, columns, depth, width: Isa::best().columns() })
    }

    /// Packs in their place weights whose columns are rows of `depth` floats that lie `stride` apart. Fails where they are
    /// not there.
    pub fn fill_with_rows(&mut self, rows: &[f32], stride: usize) -> Result<()> {
        let (columns, depth, step, mut to) = (self.columns, self.depth, self.width, self.begin);
        let weights = self.own()?;
        for first in (0..columns).step_by(step) {
            let width = width_of(columns, first, step);
            let block = &mut weights[to..to + width * depth];
            let size = [width.min(columns - first), depth];
            Transpose::new(&rows[first * stride..], size, stride, block, width)?.run_with(Isa::best());
            to += width * depth;
        }
        Ok(())
    }

    /// Packs weights whose terms are rows of `columns` floats that lie `stride` apart; they must be there.
    pub fn fill_with_columns(&mut self, rows: &[f32], stride: usize) -> Result<()> {
        let (columns, depth, step, mut to) = (self.columns, self.depth, self.width, self.begin);
        let weights = self.own()?;
        for first in (0..columns).step_by(step) {
            let width = width_of(columns, first, step);
            let count = width.min(columns - first);
            for k in 0..depth {
                weights[to..to + count].copy_from_slice(&rows[k * stride + first..][..count]);
                to += width;
            }
        }
        Ok(())
    }

    /// The memory to write to: as long as no other matrix has a share in it.
    fn own(&mut self) -> Result<&mut [f32]> {
        let weights = Arc::get_mut(&mut self.weights);
        weights.map(|weights| &mut **weights).ok_or_else(|| Diagnostic::internal("packed weights are shared"))
    }

    /// Columns of the block that begins at `first`.
    fn width_of(&self, first: usize) -> usize {
        width_of(self.columns, first, self.width)
    }

    /// Where in a matrix of packed weights a column has its first term, and how far apart its terms lie.
    pub fn place(columns: usize, depth: usize, column: usize) -> (usize, usize) {
        let width = Isa::best().columns();
        let first = column / width * width;
        (first * depth + column - first, width_of(columns, first, width))
    }

    /// Columns, without what pads the last block.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// The weights of the first block.
    pub fn first_block(&self) -> &[f32] {
        self.block(0, 0)
    }

    /// Terms of each sum.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// The weights of a block from term `k` on.
    fn block(&self, first: usize, k: usize) -> &[f32] {
        let width = self.width_of(first);
        let start = self.begin + first * self.depth;
        &self.weights[start + k * width..start + self.depth * width]
    }
}

/// Inputs of a row that lie side by side: where, counted from the row's begin, and how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub offset: usize,
    pub len: usize,
}

/// A product of rows of inputs and a matrix of packed weights.
pub(super) struct Product<'a> {
    pub inputs: &'a [f32],
    /// Where rows begin.
    pub lines: Lines,
    /// What of each row is multiplied, in the order of the terms from `first` on.
    pub runs: &'a [Run],
    pub panels: &'a Panels,
    pub first: usize,
    /// The pixel of the block that the first row gives.
    pub pixel: usize,
    /// The matrix's first column in the result: groups of convolutions have a matrix each.
    pub base: usize,
    /// Whether sums go on from what the result holds.
    pub onto: bool,
    /// What is applied to sums that are complete.
    pub epilogue: Option<&'a Epilogue<'a>>,
    /// Weights that are multiplied next, or none: they are fetched meanwhile.
    pub next: &'a [f32],
}

/// A part of a result that one piece of work may write: pixels, and columns of them. Blocks of a result do not overlap.
pub(super) struct Block<'a> {
    pub pixels: Range<usize>,
    /// Of each matrix.
    pub columns: Range<usize>,
    out: *mut f32,
    len: usize,
    pitch: usize,
    isa: Isa,
    held: PhantomData<&'a mut [f32]>,
}

/// A result that blocks are cut from.
struct Shared(*mut f32);
// SAFETY: it is only cut into blocks that do not overlap.
unsafe impl Sync for Shared {}

/// How a result is cut into blocks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    pub pixels: usize,
    pub columns: usize,
    /// Pixels of a block, and columns of a block: a multiple of `BLOCK`, or all.
    pub pixel_block: usize,
    pub column_block: usize,
}

/// Does `work` with each block of a result, on several threads. Fails where the result is too small, and as `work` does.
pub(super) fn blocks(
    isa: Isa,
    out: &mut [f32],
    pitch: usize,
    width: usize,
    cut: Cut,
    work: impl Fn(&mut Block<'_>) -> Result<()> + Sync,
) -> Result<()> {
    let whole = cut.column_block >= cut.columns || cut.column_block.is_multiple_of(BLOCK);
    if !spans(out.len(), cut.pixels, pitch, width) || !whole || cut.pixel_block == 0 || cut.column_block == 0
    {
        return Err(Diagnostic::internal(format!("a result of {} values cut as {cut:?}", out.len())));
    }
    let across = cut.columns.div_ceil(cut.column_block);
    let area = |n: usize| {
        let (pixel, column) = (n / across * cut.pixel_block, n % across * cut.column_block);
        let pixels = pixel..cut.pixels.min(pixel + cut.pixel_block);
        (pixels, column..cut.columns.min(column + cut.column_block))
    };
    let count = cut.pixels.div_ceil(cut.pixel_block) * across;
    areas_of(isa, out, pitch, (0..count).map(area).collect(), work)
}

/// Pixels of a result, and columns of them.
pub(super) type Area = (Range<usize>, Range<usize>);

/// Does `work` with a block for each area, on several threads. Fails where areas overlap, and as `work` does.
pub(super) fn areas_of(
    isa: Isa,
    out: &mut [f32],
    pitch: usize,
    areas: Vec<Area>,
    work: impl Fn(&mut Block<'_>) -> Result<()> + Sync,
) -> Result<()> {
    // In order: each begins after the pixels of the one before, or has its pixels and begins after its columns.
    let apart = |pair: &[Area]| {
        let [a, b] = pair else { return true };
        a.0.end <= b.0.start || (a.0 == b.0 && a.1.end <= b.1.start)
    };
    if !areas.windows(2).all(apart) || areas.iter().any(|(pixels, _)| pixels.start > pixels.end) {
        return Err(Diagnostic::internal("blocks of a result overlap"));
    }
    let (shared, len) = (Shared(out.as_mut_ptr()), out.len());
    let shared = &shared;
    pool::try_each(areas, |(pixels, columns)| {
        work(&mut Block { pixels, columns, out: shared.0, len, pitch, isa, held: PhantomData })
    })
}

impl<'a> Block<'a> {
    /// A matrix of its own, whose rows lie `pitch` apart.
    pub fn of(isa: Isa, out: &'a mut [f32], pitch: usize, pixels: usize, columns: usize) -> Block<'a> {
        let len = out.len();
        let out = out.as_mut_ptr();
        Block { pixels: 0..pixels, columns: 0..columns, out, len, pitch, isa, held: PhantomData }
    }

    /// The instructions that it is computed with.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Some channels of a pixel; None where they do not all lie in the block.
    pub fn row(&mut self, pixel: usize, column: usize, count: usize) -> Option<&mut [f32]> {
        let at = pixel.checked_mul(self.pitch)?.checked_add(column)?;
        let end = column.checked_add(count)?;
        let inside = self.pixels.contains(&pixel) && column >= self.columns.start && end <= self.columns.end;
        if !inside || at.checked_add(count)? > self.len {
            return None;
        }
        // SAFETY: inside the result and the block, which is the only one that writes there while it is borrowed.
        Some(unsafe { std::slice::from_raw_parts_mut(self.out.add(at), count) })
    }

    /// Writes a vector of a pixel's channels. What does not lie in the block is not written.
    #[inline(always)]
    pub fn store<L: Lanes>(&mut self, l: L, pixel: usize, column: usize, count: usize, v: L::V) {
        let at = pixel * self.pitch + column;
        let inside = self.pixels.contains(&pixel) && column >= self.columns.start;
        debug_assert!(inside && column + count <= self.columns.end);
        if inside && column + count <= self.columns.end && at + count <= self.len {
            // SAFETY: inside the result and the block.
            unsafe { write_some(l, self.out.add(at), count, v) }
        }
    }

    /// Computes the block's columns for rows that become its pixels from `product.pixel` on.
    pub fn product(&mut self, product: &Product<'_>) -> Result<()> {
        let p = product;
        if p.lines.count == 0 || p.lines.rows == 0 || self.columns.is_empty() {
            return Ok(());
        }
        if self.fits(p) != Some(true) {
            return Err(Diagnostic::internal(format!(
                "a product of {:?} and {} columns of {} terms in slices that are too small",
                p.lines, p.panels.columns, p.panels.depth
            )));
        }
        // SAFETY: `fits` has proved all accesses in bounds; the block is the only one that writes them.
        with(self.isa, Tiles { block: self, product: p });
        Ok(())
    }

    /// Applies what of an epilogue is left once tiles are stored: a function, and what is added after it.
    ///
    /// # Safety
    /// The area must be in the block, and the product fit it.
    #[inline(always)]
    unsafe fn finish_rest<L: Lanes>(&self, l: L, p: &Product<'_>, (pixels, columns): Area) {
        let Some(epilogue) = p.epilogue.filter(|e| e.activation.bounds().is_none()) else { return };
        // What is added before the function is in the sums.
        let rest = Epilogue { residual: epilogue.residual.filter(|r| r.after), ..*epilogue };
        let column = p.base + columns.start;
        // SAFETY: the caller's promise.
        let finish = unsafe {
            let sums = self.out.add(pixels.start * self.pitch + column);
            Finish::of_area(&rest, (pixels.start, column), sums, [pixels.len(), columns.len()], self.pitch)
        };
        apart(l, finish);
    }

    /// Whether all that tiles touch lies inside the slices and the block.
    fn fits(&self, p: &Product<'_>) -> Option<bool> {
        let rows = p.lines.count.checked_mul(p.lines.rows)?;
        let last = (p.lines.count - 1)
            .checked_mul(p.lines.step)?
            .checked_add((p.lines.rows - 1).checked_mul(p.lines.stride)?)?
            .checked_add(p.lines.start)?;
        let mut terms = 0usize;
        for run in p.runs {
            terms = terms.checked_add(run.len)?;
            if last.checked_add(run.offset)?.checked_add(run.len)? > p.inputs.len() {
                return Some(false);
            }
        }
        let pixels = self.pixels.start.checked_add(p.pixel)?.checked_add(rows)?;
        let end = p.base.checked_add(self.columns.end)?;
        let residual = p.epilogue.and_then(|e| e.residual);
        let wide = |numbers: Option<&[f32]>| numbers.is_none_or(|n| end <= n.len());
        Some(
            pixels <= self.pixels.end
                && spans(self.len, pixels, self.pitch, end)
                && self.columns.end <= p.panels.columns
                && self.columns.start.is_multiple_of(BLOCK)
                && p.first.checked_add(terms)? <= p.panels.depth
                && residual.is_none_or(|r| spans(r.values.len(), pixels, r.pitch, end))
                && p.epilogue
                    .is_none_or(|e| wide(e.bias) && wide(e.norm.map(|n| n.0)) && wide(e.norm.map(|n| n.1))),
        )
    }
}

/// A product, tile by tile.
struct Tiles<'a, 'b> {
    block: &'a Block<'b>,
    product: &'a Product<'a>,
}

impl Work for Tiles<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let (p, block) = (self.product, self.block);
        let most = l.rows();
        let terms: usize = p.runs.iter().map(|run| run.len).sum();
        let bounds = p.epilogue.and_then(|e| e.activation.bounds());
        let frame = &Frame {
            step: p.lines.stride,
            groups: std::array::from_fn(|n| n.wrapping_mul(GROUP).wrapping_mul(p.lines.stride)),
            runs: p.runs,
            pitch: block.pitch,
            onto: p.onto,
            long: terms > TERMS,
            epilogue: p.epilogue,
            bounds: bounds.filter(|bounds| *bounds != (f32::NEG_INFINITY, f32::INFINITY)),
            is_last: bounds.is_some(),
        };
        // Tiles of nearly the same size: a last one of few rows would wait for its sums.
        let tiles = p.lines.rows.div_ceil(most);
        let (each, larger) = (p.lines.rows / tiles, p.lines.rows % tiles);
        // One tile alone would have to fetch half a block on top of its own.
        let several = p.lines.count > 1 || p.lines.rows > most;
        let mut column = block.columns.start;
        while column < block.columns.end {
            let width = p.panels.width_of(column);
            let weights = p.panels.block(column, p.first);
            let columns = width.min(block.columns.end - column);
            // Weights come from far away, and the first tile of a block would wait for them: they are fetched while the
            // tiles of the block before are multiplied, by all of them evenly. Where a few fetched a line with each term, they waited
            // for their own weights behind these.
            let next = column + width;
            let next = if next < block.columns.end { p.panels.block(next, p.first) } else { p.next };
            let fetches = several && !next.is_empty();
            let ahead_step = if fetches { width.div_ceil(p.lines.count * tiles) } else { 0 };
            let mut ahead = if fetches { next.as_ptr() } else { weights.as_ptr() };
            for line in 0..p.lines.count {
                let first = block.pixels.start + p.pixel + line * p.lines.rows;
                // The first row whose sums are not finished.
                let (mut from, mut unfinished) = (0, 0);
                for n in 0..tiles {
                    let to = from + each + usize::from(n < larger);
                    let pixel = first + from;
                    let tile = Tile {
                        frame,
                        inputs: p.inputs[p.lines.at(line, from)..].as_ptr(),
                        rows: to - from,
                        weights: weights.as_ptr(),
                        ahead,
                        ahead_step,
                        width,
                        // SAFETY: inside the result, as `Block::fits` has proved.
                        out: unsafe { block.out.add(pixel * block.pitch + p.base + column) },
                        columns,
                        column: p.base + column,
                        pixel,
                    };
                    // SAFETY: as above.
                    unsafe { l.tile(&tile) };
                    ahead = ahead.wrapping_add(terms * ahead_step);
                    from = to;
                    if to - unfinished >= FINISHED || n + 1 == tiles {
                        let area = (first + unfinished..first + to, column..column + columns);
                        // SAFETY: as above.
                        unsafe { block.finish_rest(l, p, area) };
                        unfinished = to;
                    }
                }
            }
            column += width;
        }
    }
}

/// What the tiles of a product have in common.
struct Frame<'a> {
    /// Floats from row to row.
    step: usize,
    /// Floats from a tile's first row to the first of each group of rows. Read from here: of numbers that it computes itself the compiler
    /// makes a chain of additions, which take the places of products on Intel's machines (a twentieth of the time).
    groups: [usize; GROUPS],
    runs: &'a [Run],
    pitch: usize,
    onto: bool,
    /// Whether the sums have enough terms to be added up in parts.
    long: bool,
    epilogue: Option<&'a Epilogue<'a>>,
    /// The epilogue's bounds, where it has some.
    bounds: Option<(f32, f32)>,
    /// Whether nothing of the epilogue is left after them: no function.
    is_last: bool,
}

/// A few rows of one block of columns.
struct Tile<'a> {
    frame: &'a Frame<'a>,
    inputs: *const f32,
    rows: usize,
    weights: *const f32,
    /// Weights of the next block, of which a line is fetched with each term, and floats from line to line.
    ahead: *const f32,
    ahead_step: usize,
    /// Floats from term to term: 16 or 32.
    width: usize,
    out: *mut f32,
    /// Columns that are stored, and the first one's and the first row's number in the result.
    columns: usize,
    column: usize,
    pixel: usize,
}

impl InRegisters for Tile<'_> {
    #[inline(always)]
    fn rows(&self) -> usize {
        self.rows
    }
    #[inline(always)]
    fn columns(&self) -> usize {
        self.columns
    }
    #[inline(always)]
    fn is_wide(&self) -> bool {
        self.width == BLOCK
    }
    #[inline(always)]
    unsafe fn vector_at(&self, at: usize) -> Self {
        // SAFETY: the tile has these columns.
        let (weights, out) = unsafe { (self.weights.add(at), self.out.add(at)) };
        let columns = LANES.min(self.columns - at);
        Tile { weights, out, columns, column: self.column + at, ..*self }
    }
    #[inline(always)]
    unsafe fn compute<L: Lanes, const M: usize, const N: usize>(&self, l: L) {
        match self.frame.long {
            true => apart(l, Rows::<M, N, true>(self)),
            false => apart(l, Rows::<M, N, false>(self)),
        }
    }
}

/// A tile of `M` rows of `N` vectors of columns, of long sums or not: in a function of its own, where registers are its own.
struct Rows<'t, 'a, const M: usize, const N: usize, const LONG: bool>(&'t Tile<'a>);

impl<const M: usize, const N: usize, const LONG: bool> Work for Rows<'_, '_, M, N, LONG> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        // SAFETY: the promise to [`InRegisters::compute`], which alone makes it.
        unsafe { compute::<L, M, N, LONG>(l, self.0) }
    }
}

impl Tile<'_> {
    /// How many columns a vector has.
    #[inline(always)]
    fn part(&self, vector: usize) -> usize {
        self.columns.saturating_sub(vector * LANES).min(LANES)
    }

    /// A vector's numbers of those of all channels.
    #[inline(always)]
    fn of<'n>(&self, numbers: &'n [f32], vector: usize) -> &'n [f32] {
        &numbers[self.column + vector * LANES..][..self.part(vector)]
    }
}

/// Computes `M` rows of `N` vectors of columns. `LONG` sums are added up in parts, which others need no room for.
///
/// # Safety
/// As [`InRegisters::compute`].
#[inline(always)]
unsafe fn compute<L: Lanes, const M: usize, const N: usize, const LONG: bool>(l: L, t: &Tile<'_>) {
    // SAFETY: the caller's promise.
    unsafe {
        let (mut weights, mut ahead) = (t.weights, t.ahead);
        let frame = t.frame;
        let mut sums = [[l.splat(0.0); N]; M];
        let (mut onto, mut room) = (frame.onto, TERMS);
        let rows = frame.groups.map(|floats| t.inputs.wrapping_add(floats));
        for run in frame.runs {
            let (mut inputs, mut rest) = (rows.map(|row| row.wrapping_add(run.offset)), run.len);
            while rest > 0 {
                let count = if LONG { rest.min(room) } else { rest };
                for _ in 0..count {
                    let mut w = [l.splat(0.0); N];
                    for j in 0..N {
                        w[j] = l.read(weights.add(j * LANES));
                    }
                    for i in 0..M {
                        let x = l.splat(*inputs[i / GROUP].add(i % GROUP * frame.step));
                        for j in 0..N {
                            sums[i][j] = l.fma(x, w[j], sums[i][j]);
                        }
                    }
                    // Tiles of fewer rows stand alone, and wait for each load.
                    if M >= FETCHING {
                        l.prefetch(ahead);
                        ahead = ahead.wrapping_add(t.ahead_step);
                    }
                    inputs = inputs.map(|row| row.wrapping_add(1));
                    weights = weights.add(t.width);
                }
                rest -= count;
                room = room.wrapping_sub(count);
                if LONG && room == 0 {
                    if onto {
                        add_rows(l, t, t.out, frame.pitch, &mut sums);
                    }
                    put(l, t, &sums);
                    sums = [[l.splat(0.0); N]; M];
                    (onto, room) = (true, TERMS);
                }
            }
        }
        if onto {
            add_rows(l, t, t.out, frame.pitch, &mut sums);
        }
        if let Some(epilogue) = frame.epilogue {
            finish(l, t, epilogue, &mut sums);
        }
        put(l, t, &sums);
    }
}

/// Writes sums to the result.
///
/// # Safety
/// As [`InRegisters::compute`].
#[inline(always)]
unsafe fn put<L: Lanes, const M: usize, const N: usize>(l: L, t: &Tile<'_>, sums: &[[L::V; N]; M]) {
    for i in 0..M {
        for j in 0..N {
            // SAFETY: the caller's promise.
            unsafe { write_some(l, t.out.add(i * t.frame.pitch + j * LANES), t.part(j), sums[i][j]) };
        }
    }
}

/// Applies to sums in registers what needs no function but bounds.
///
/// # Safety
/// As [`InRegisters::compute`].
#[inline(always)]
unsafe fn finish<L: Lanes, const M: usize, const N: usize>(
    l: L,
    t: &Tile<'_>,
    epilogue: &Epilogue<'_>,
    sums: &mut [[L::V; N]; M],
) {
    if let Some(bias) = epilogue.bias {
        for j in 0..N {
            let bias = l.load_some(t.of(bias, j), 0.0);
            for i in 0..M {
                sums[i][j] = l.add(sums[i][j], bias);
            }
        }
    }
    if let Some((scale, shift)) = epilogue.norm {
        for j in 0..N {
            let (scale, shift) = (l.load_some(t.of(scale, j), 0.0), l.load_some(t.of(shift, j), 0.0));
            for i in 0..M {
                sums[i][j] = l.fma(sums[i][j], scale, shift);
            }
        }
    }
    let residual = epilogue.residual.filter(|r| t.frame.is_last || !r.after);
    if let Some(r) = residual.filter(|r| !r.after) {
        // SAFETY: `Block::fits` has proved that the residual has these rows and columns.
        unsafe { add_rows(l, t, r.values.as_ptr().add(t.pixel * r.pitch + t.column), r.pitch, sums) };
    }
    if let Some((low, high)) = t.frame.bounds {
        let (low, high) = (l.splat(low), l.splat(high));
        for i in 0..M {
            for j in 0..N {
                sums[i][j] = l.at_most(high, l.at_least(low, sums[i][j]));
            }
        }
    }
    if let Some(r) = residual.filter(|r| r.after) {
        // SAFETY: as above.
        unsafe { add_rows(l, t, r.values.as_ptr().add(t.pixel * r.pitch + t.column), r.pitch, sums) };
    }
}

/// Adds rows of numbers that lie `pitch` apart.
///
/// # Safety
/// They must have the tile's rows and columns.
#[inline(always)]
unsafe fn add_rows<L: Lanes, const M: usize, const N: usize>(
    l: L,
    t: &Tile<'_>,
    from: *const f32,
    pitch: usize,
    sums: &mut [[L::V; N]; M],
) {
    // SAFETY: the caller's promise.
    unsafe {
        for i in 0..M {
            for j in 0..N {
                let x = read_some(l, from.add(i * pitch + j * LANES), t.part(j));
                sums[i][j] = l.add(sums[i][j], x);
            }
        }
    }
}
