//! Attention: products of queries and keys, their softmax, products with values, a block of queries at a time, so that
//! scores stay in a cache. Tensors are read where they lie. Knows slices and strides, no ops.
#![allow(clippy::needless_range_loop, reason = "arrays of vectors stay in registers only where loops count")]

use super::math;
use super::rows::{FEW, Softmax};
use super::scratch::Scratch;
use super::tile::{Area, Block, Panels, Product, Run, areas_of};
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::Lines;
use crate::resources::pool;
use smallvec::SmallVec;
use std::ops::Range;

/// A tensor of batch, head, row and feature; features lie side by side.
#[derive(Clone, Copy, Debug)]
pub struct Heads<'a> {
    /// Its values from the first feature on.
    pub values: &'a [f32],
    /// Floats from one of a batch to the next, from head to head and from row to row; 0 repeats.
    pub strides: [usize; 3],
}

/// Sizes of an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttentionShape {
    /// Independent sequences.
    pub batch: usize,
    /// Heads of each.
    pub heads: usize,
    /// Rows of queries, and of keys and values.
    pub queries: usize,
    /// Rows of keys and values.
    pub keys: usize,
    /// Features of a query and of a key.
    pub width: usize,
    /// Features of a value.
    pub values: usize,
    /// Whether the result has a matrix for each head, as queries and values mostly do; else a row for each query, in which the
    /// heads stand side by side.
    pub apart: bool,
}

/// Queries whose scores are made at once.
const QUERIES: usize = 56;

impl Heads<'_> {
    /// Whether it has the given number of rows of `width`.
    fn fits(&self, batch: usize, heads: usize, rows: usize, width: usize) -> bool {
        let last = |n: usize, stride: usize| n.saturating_sub(1).checked_mul(stride);
        let end = || {
            let [b, h, r] = self.strides;
            last(batch, b)?.checked_add(last(heads, h)?)?.checked_add(last(rows, r)?)?.checked_add(width)
        };
        batch == 0 || heads == 0 || rows == 0 || end().is_some_and(|end| end <= self.values.len())
    }

    fn start(&self, batch: usize, head: usize) -> usize {
        batch * self.strides[0] + head * self.strides[1]
    }
}

/// What is done to products of queries and keys before their softmax.
#[derive(Clone, Copy, Debug)]
pub struct Scores<'a> {
    /// A factor.
    pub scale: f32,
    /// What is added then; each has a row of keys for each query.
    pub biases: &'a [Heads<'a>],
    /// Whether the result is 0 where all scores of a row are minus infinity, else NaN.
    pub masks: bool,
}

/// `softmax(scale * query · key + biases) · value` for each head. `out` has for each sequence and query the features of all
/// heads side by side: `batch * queries` rows of `heads * values`; or for each sequence and head, where these are apart, a row
/// of `values` for each query. Fails where sizes do not fit, or without memory.
pub fn attention(
    shape: AttentionShape,
    [query, key, value]: [Heads<'_>; 3],
    scores: Scores<'_>,
    out: &mut [f32],
) -> Result<()> {
    attention_with(Isa::best(), shape, [query, key, value], scores, out)
}

pub(super) fn attention_with(
    isa: Isa,
    shape: AttentionShape,
    [query, key, value]: [Heads<'_>; 3],
    scores: Scores<'_>,
    out: &mut [f32],
) -> Result<()> {
    let s = shape;
    let row = s.heads.checked_mul(s.values);
    let size = row.and_then(|n| n.checked_mul(s.batch)?.checked_mul(s.queries));
    let fits = query.fits(s.batch, s.heads, s.queries, s.width)
        && key.fits(s.batch, s.heads, s.keys, s.width)
        && value.fits(s.batch, s.heads, s.keys, s.values)
        && scores.biases.iter().all(|b| b.fits(s.batch, s.heads, s.queries, s.keys));
    let Some(row) = row.filter(|_| fits && size == Some(out.len())) else {
        return Err(Diagnostic::runtime(format!("attention: the tensors do not fit {shape:?}")));
    };
    if out.is_empty() {
        return Ok(());
    }
    let call = Call { isa, shape, query, key, value, scores };
    let pitch = if s.apart { s.values } else { row };
    let parts = s.parts(pool::threads() * 4);
    areas_of(isa, out, pitch, parts.iter().map(|part| s.area(part)).collect(), |block| {
        let area = (block.pixels.clone(), block.columns.clone());
        parts.iter().filter(|part| s.area(part) == area).try_for_each(|part| call.heads(part, block))
    })
}

/// Heads of sequences: some of one sequence, or all of several.
struct Part {
    batches: Range<usize>,
    heads: Range<usize>,
}

impl AttentionShape {
    /// Cuts the heads of all sequences into about the given number of parts.
    fn parts(&self, count: usize) -> Vec<Part> {
        let each = (self.batch * self.heads).div_ceil(count).max(1);
        let (sequences, heads) = ((each / self.heads).max(1), each.min(self.heads));
        let ranges = |all: usize, some: usize| (0..all).step_by(some).map(move |n| n..all.min(n + some));
        ranges(self.batch, sequences)
            .flat_map(|batches| {
                ranges(self.heads, heads).map(move |heads| Part { batches: batches.clone(), heads })
            })
            .collect()
    }

    /// Rows and columns of the result that belong to a part.
    fn area(&self, part: &Part) -> Area {
        let Part { batches, heads } = part;
        if self.apart {
            let at = |batch: usize, head: usize| (batch * self.heads + head) * self.queries;
            return (at(batches.start, heads.start)..at(batches.end - 1, heads.end), 0..self.values);
        }
        let rows = batches.start * self.queries..batches.end * self.queries;
        (rows, heads.start * self.values..heads.end * self.values)
    }

    /// Where the result of the first query of a head lies.
    fn place(&self, batch: usize, head: usize) -> (usize, usize) {
        match self.apart {
            true => ((batch * self.heads + head) * self.queries, 0),
            false => (batch * self.queries, head * self.values),
        }
    }
}

struct Call<'a> {
    isa: Isa,
    shape: AttentionShape,
    query: Heads<'a>,
    key: Heads<'a>,
    value: Heads<'a>,
    scores: Scores<'a>,
}

/// Room for the work on one head after the other.
struct Room {
    keys: Panels,
    values: Panels,
    /// Rows of scores, and floats from row to row.
    scores: Scratch,
    pitch: usize,
    /// What the results of each row are multiplied with.
    factors: Scratch,
    results: Scratch,
}

impl Call<'_> {
    fn heads(&self, part: &Part, out: &mut Block<'_>) -> Result<()> {
        let s = self.shape;
        let pitch = s.keys.next_multiple_of(LANES) + LANES;
        let rows = QUERIES.min(s.queries);
        let mut room = Room {
            keys: Panels::empty(s.keys, s.width)?,
            values: Panels::empty(s.values, s.keys)?,
            scores: Scratch::new(rows * pitch)?,
            pitch,
            factors: Scratch::new(rows)?,
            results: Scratch::new(rows * s.values)?,
        };
        for batch in part.batches.clone() {
            part.heads.clone().try_for_each(|head| self.head(batch, head, &mut room, out))?;
        }
        Ok(())
    }

    /// One head of one sequence.
    fn head(&self, batch: usize, head: usize, room: &mut Room, out: &mut Block<'_>) -> Result<()> {
        let s = self.shape;
        let keys = &self.key.values[self.key.start(batch, head).min(self.key.values.len())..];
        let values = &self.value.values[self.value.start(batch, head).min(self.value.values.len())..];
        room.keys.fill_with_rows(keys, self.key.strides[2])?;
        room.values.fill_with_columns(values, self.value.strides[2])?;
        let (row, column) = s.place(batch, head);
        let rows = QUERIES.min(s.queries);
        for first in (0..s.queries).step_by(rows) {
            let count = rows.min(s.queries - first);
            let start = self.query.start(batch, head) + first * self.query.strides[2];
            let lines = Lines { start, ..Lines::one(count, self.query.strides[2]) };
            let columns = Block::of(self.isa, &mut room.scores, room.pitch, count, s.keys);
            product(columns, self.query.values, lines, s.width, &room.keys)?;
            let biases: SmallVec<[(&[f32], usize); 2]> = self
                .scores
                .biases
                .iter()
                .map(|b| (&b.values[b.start(batch, head) + first * b.strides[2]..], b.strides[2]))
                .collect();
            self.weights(&biases, count, room);
            if !self.store(count, room, (row + first, column), out)? {
                // Sums of weights that are yet to be divided may be infinite where a mean is not.
                let pitch = room.pitch;
                for (row, factor) in room.scores.chunks_mut(pitch).zip(&mut room.factors[..count]) {
                    row[..s.keys].iter_mut().for_each(|x| *x *= *factor);
                    *factor = 1.0;
                }
                self.store(count, room, (row + first, column), out)?;
            }
        }
        Ok(())
    }

    /// Makes weights of scores.
    fn weights(&self, biases: &[(&[f32], usize)], count: usize, room: &mut Room) {
        let (width, pitch, Scores { scale, masks, .. }) = (self.shape.keys, room.pitch, self.scores);
        let (rows, factors) = (&mut room.scores[..(count - 1) * pitch + width], &mut room.factors[..count]);
        if width <= FEW * LANES {
            factors.fill(1.0);
            with(self.isa, Softmax { rows, pitch, width, scale, biases, masks, denormals: false });
        } else {
            with(self.isa, Weights { rows, pitch, width, scale, biases, masks, factors });
        }
    }

    /// Multiplies weights and values, and writes the results; says whether all are finite.
    fn store(
        &self,
        count: usize,
        room: &mut Room,
        (row, column): (usize, usize),
        out: &mut Block<'_>,
    ) -> Result<bool> {
        let s = self.shape;
        let columns = Block::of(self.isa, &mut room.results, s.values, count, s.values);
        product(columns, &room.scores, Lines::one(count, room.pitch), s.keys, &room.values)?;
        let (results, factors) = (&room.results[..count * s.values], &room.factors[..count]);
        let finite = with(self.isa, Store { results, factors, values: s.values, row, column, out });
        finite.ok_or_else(|| Diagnostic::internal("results of an attention outside of its block"))
    }
}

/// A product of rows of `depth` inputs.
fn product(mut to: Block<'_>, inputs: &[f32], lines: Lines, depth: usize, panels: &Panels) -> Result<()> {
    let runs = [Run { offset: 0, len: depth }];
    to.product(&Product {
        inputs,
        lines,
        runs: &runs,
        panels,
        first: 0,
        pixel: 0,
        base: 0,
        onto: false,
        epilogue: None,
        next: &[],
    })
}

/// Turns rows of scores into weights that are yet to be divided by their sum, in place: `e^(scale * x + biases - greatest)`. Gives
/// for each row the factor that does it, 1 over the sum.
struct Weights<'a> {
    rows: &'a mut [f32],
    pitch: usize,
    width: usize,
    scale: f32,
    /// Values, and floats from row to row.
    biases: &'a [(&'a [f32], usize)],
    /// Whether rows all of whose elements are minus infinity become zeros, else NaN.
    masks: bool,
    factors: &'a mut [f32],
}

impl Work for Weights<'_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for (n, factor) in self.factors.iter_mut().enumerate() {
            let row = &mut self.rows[n * self.pitch..][..self.width];
            let mut scale = self.scale;
            let mut most = if self.biases.is_empty() { greatest(l, row) * scale } else { f32::NAN };
            // The scale is left to the exponents, which are then rounded once, where all of it stays in order.
            if !(most.is_finite() && scale > 0.0) {
                let width = self.width;
                let biases = self.biases.iter().map(|(bias, pitch)| &bias[n * pitch..][..width]);
                scaled(l, row, scale, biases);
                scale = 1.0;
                most = greatest(l, row);
            }
            if self.masks && most == f32::NEG_INFINITY && !row.iter().any(|x| x.is_nan()) {
                // Attention gives zeros.
                row.fill(0.0);
                *factor = 1.0;
                continue;
            }
            let (scale, most) = (l.splat(scale), l.splat(-most));
            let mut sums = [l.splat(0.0); 4];
            let (blocks, rest) = row.as_chunks_mut::<{ 4 * LANES }>();
            for block in blocks {
                let (parts, _) = block.as_chunks_mut::<LANES>();
                for i in 0..4 {
                    let e = math::exp_or_zero(l, l.fma(l.load(&parts[i]), scale, most));
                    l.store(&mut parts[i], e);
                    sums[i] = l.add(sums[i], e);
                }
            }
            for part in rest.chunks_mut(LANES) {
                // What fills the vector up gives 0.
                let e = math::exp_or_zero(l, l.fma(l.load_some(part, f32::NEG_INFINITY), scale, most));
                l.store_some(part, e);
                sums[0] = l.add(sums[0], e);
            }
            let total = l.sum(l.add(l.add(sums[0], sums[1]), l.add(sums[2], sums[3])));
            *factor = 1.0 / total;
        }
    }
}

/// The greatest of some numbers; whatever there is beside NaN.
#[inline(always)]
fn greatest<L: Lanes>(l: L, row: &[f32]) -> f32 {
    let least = l.splat(f32::NEG_INFINITY);
    let mut most = [least; 4];
    let (blocks, rest) = row.as_chunks::<{ 4 * LANES }>();
    for block in blocks {
        let (parts, _) = block.as_chunks::<LANES>();
        for i in 0..4 {
            most[i] = l.at_least(most[i], l.load(&parts[i]));
        }
    }
    for part in rest.chunks(LANES) {
        most[0] = l.at_least(most[0], l.load_some(part, f32::NEG_INFINITY));
    }
    l.max_of(l.at_least(l.at_least(most[0], most[1]), l.at_least(most[2], most[3])))
}

/// Multiplies a row with a factor, and adds others to it.
#[inline(always)]
fn scaled<'a, L: Lanes>(l: L, row: &mut [f32], scale: f32, biases: impl Iterator<Item = &'a [f32]> + Clone) {
    for (n, part) in row.chunks_mut(LANES).enumerate() {
        let mut v = l.mul(l.load_some(part, 0.0), l.splat(scale));
        for bias in biases.clone() {
            v = l.add(v, l.load_some(&bias[n * LANES..][..part.len()], 0.0));
        }
        l.store_some(part, v);
    }
}

/// Multiplies rows of results with their factors and copies them to their place; says whether all are finite. None outside of the block.
struct Store<'a, 'b> {
    results: &'a [f32],
    factors: &'a [f32],
    values: usize,
    row: usize,
    column: usize,
    out: &'a mut Block<'b>,
}

impl Work for Store<'_, '_> {
    type Out = Option<bool>;

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) -> Option<bool> {
        // Differences of what is not finite are NaN.
        let mut odd = l.splat(0.0);
        for n in 0..self.factors.len() {
            let results = &self.results[n * self.values..][..self.values];
            let out = self.out.row(self.row + n, self.column, self.values)?;
            let factor = l.splat(self.factors[n]);
            let mut at = 0;
            while at < self.values {
                let end = self.values.min(at + LANES);
                let y = l.mul(l.load_some(&results[at..end], 0.0), factor);
                odd = l.add(odd, l.sub(y, y));
                l.store_some(&mut out[at..end], y);
                at = end;
            }
        }
        Some(l.sum(odd) == 0.0)
    }
}
