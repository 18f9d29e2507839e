//! Attention: products of queries and keys, their softmax, products with values, a block of queries at a time, so that
//! scores stay in a cache. Tensors are read where they lie. Knows slices and strides, no ops.

use super::rows::Softmax;
use super::scratch::Scratch;
use super::tile::{Block, Panels, Product, Run, areas_of};
use super::vector::{Isa, LANES, Lanes, Work, with};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lanes::Lines;
use smallvec::SmallVec;

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
}

/// Queries whose scores are made at once.
const QUERIES: usize = 56;

impl Heads<'_> {
    /// Whether it has so many rows of `width`.
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
/// heads side by side: `batch * queries` rows of `heads * values`. Fails where sizes do not fit, or without memory.
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
    let pitch = s.heads.checked_mul(s.values);
    let size = pitch.and_then(|n| n.checked_mul(s.batch)?.checked_mul(s.queries));
    let fits = query.fits(s.batch, s.heads, s.queries, s.width)
        && key.fits(s.batch, s.heads, s.keys, s.width)
        && value.fits(s.batch, s.heads, s.keys, s.values)
        && scores.biases.iter().all(|b| b.fits(s.batch, s.heads, s.queries, s.keys));
    let Some(pitch) = pitch.filter(|_| fits && size == Some(out.len())) else {
        return Err(Diagnostic::runtime(format!("attention: the tensors do not fit {shape:?}")));
    };
    let areas = (0..s.batch * s.heads).map(|n| {
        let (batch, head) = (n / s.heads, n % s.heads);
        (batch * s.queries..(batch + 1) * s.queries, head * s.values..(head + 1) * s.values)
    });
    if out.is_empty() {
        return Ok(());
    }
    let call = Call { isa, shape, query, key, value, scores };
    areas_of(isa, out, pitch, areas.collect(), |block| call.head(block))
}

struct Call<'a> {
    isa: Isa,
    shape: AttentionShape,
    query: Heads<'a>,
    key: Heads<'a>,
    value: Heads<'a>,
    scores: Scores<'a>,
}

impl Call<'_> {
    /// One head of one sequence.
    fn head(&self, out: &mut Block<'_>) -> Result<()> {
        let s = self.shape;
        let (batch, head) = (out.pixels.start / s.queries, out.columns.start / s.values);
        let keys = &self.key.values[self.key.start(batch, head).min(self.key.values.len())..];
        let values = &self.value.values[self.value.start(batch, head).min(self.value.values.len())..];
        let keys = Panels::of_rows(s.keys, s.width, keys, self.key.strides[2])?;
        let values = Panels::of_columns(s.values, s.keys, values, self.value.strides[2])?;
        let pitch = s.keys.next_multiple_of(LANES) + LANES;
        let rows = QUERIES.min(s.queries);
        let mut scores = Scratch::new(rows * pitch)?;
        let mut results = Scratch::new(rows * s.values)?;
        for first in (0..s.queries).step_by(rows) {
            let count = rows.min(s.queries - first);
            let start = self.query.start(batch, head) + first * self.query.strides[2];
            let lines = Lines { start, ..Lines::one(count, self.query.strides[2]) };
            let columns = Block::of(self.isa, &mut scores, pitch, count, s.keys);
            product(columns, self.query.values, lines, s.width, &keys)?;
            let biases: SmallVec<[(&[f32], usize); 2]> = self
                .scores
                .biases
                .iter()
                .map(|b| (&b.values[b.start(batch, head) + first * b.strides[2]..], b.strides[2]))
                .collect();
            let (rows, Scores { scale, masks, .. }) =
                (&mut scores[..(count - 1) * pitch + s.keys], self.scores);
            with(self.isa, Softmax { rows, pitch, width: s.keys, scale, biases: &biases, masks });
            let columns = Block::of(self.isa, &mut results, s.values, count, s.values);
            product(columns, &scores, Lines::one(count, pitch), s.keys, &values)?;
            with(self.isa, Store { results: &results, first, count, values: s.values, out });
        }
        Ok(())
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

/// Copies a block of results to its place.
struct Store<'a, 'b> {
    results: &'a [f32],
    first: usize,
    count: usize,
    values: usize,
    out: &'a mut Block<'b>,
}

impl Work for Store<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        for (row, results) in self.results.chunks(self.values).take(self.count).enumerate() {
            let pixel = self.out.pixels.start + self.first + row;
            for (n, part) in results.chunks(LANES).enumerate() {
                let column = self.out.columns.start + n * LANES;
                self.out.store(l, pixel, column, part.len(), l.load_some(part, 0.0));
            }
        }
    }
}
