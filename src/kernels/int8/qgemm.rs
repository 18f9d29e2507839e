//! Products of unsigned bytes with packed signed weights: linear layers that answer in bytes or in float32. Weights are
//! packed once; sums are exact in 32 bits, and rounding is PyTorch's to the bit.

use super::job::{Isa, Job, Out, PANEL, QUAD, pair_limit};
use super::lanes::product;
use super::quantization::Affine;
use super::quantize::{choose_qparams, extremes, quantize};
use super::stage::{Engine, Plan, Stage};
use crate::diag::{Diagnostic, Result};
use crate::kernels::lines::{CACHE_LINE, Lines};
use crate::resources::{Scratch, memory, pool};

pub use super::quantization::Quantization;

/// Signed weights of `outputs` rows by `depth`, in the order in which products read them.
#[derive(Clone, Debug)]
pub struct PackedWeights {
    panels: Scratch<i8>,
    /// Where in `panels` the first one begins: at a cache line, unless they were copied.
    begin: usize,
    outputs: usize,
    depth: usize,
    sums: Scratch<i32>,
    /// [`pair_limit`] of the panels.
    limit: u8,
    quantization: Quantization,
    /// Where the quads of a row lie that is one run of bytes.
    offsets: Scratch<usize>,
}

fn mismatch(what: &str) -> Diagnostic {
    Diagnostic::internal(format!("{what} do not fit the packed weights"))
}

impl PackedWeights {
    /// Packs `outputs` rows of `depth` weights. Fails if the number differs, or if scales do not fit.
    pub fn new(
        weights: &[i8],
        outputs: usize,
        depth: usize,
        quantization: Quantization,
    ) -> Result<PackedWeights> {
        if outputs.checked_mul(depth) != Some(weights.len()) || !quantization.fits(outputs) {
            return Err(Diagnostic::runtime(format!(
                "{} weights are not {outputs} rows of {depth}, or their scales are not as many as rows",
                weights.len()
            )));
        }
        let quads = depth.div_ceil(QUAD);
        let room =
            outputs.checked_next_multiple_of(PANEL).and_then(|n| n.checked_mul(quads)?.checked_mul(QUAD));
        let room = room.ok_or_else(|| Diagnostic::runtime("weights are too large"))?;
        let mut panels = memory::filled(room.saturating_add(CACHE_LINE), 0i8)?;
        let begin = panels.as_ptr().align_offset(CACHE_LINE).min(CACHE_LINE);
        let mut sums = memory::filled(outputs, 0i32)?;
        for (output, (row, sum)) in weights.chunks_exact(depth.max(1)).zip(&mut sums).enumerate() {
            let start = begin + output / PANEL * PANEL * quads * QUAD + output % PANEL * QUAD;
            for (quad, terms) in row.chunks(QUAD).enumerate() {
                panels[start + quad * PANEL * QUAD..][..terms.len()].copy_from_slice(terms);
            }
            *sum = row.iter().fold(0i32, |sum, w| sum.wrapping_add(i32::from(*w)));
        }
        let limit = pair_limit(&panels[begin..]);
        let mut offsets = memory::filled(quads, 0usize)?;
        offsets.iter_mut().enumerate().for_each(|(n, at)| *at = n * QUAD);
        Ok(PackedWeights { panels, begin, outputs, depth, sums, limit, quantization, offsets })
    }

    /// Rows: features of the result.
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Columns: features of the input.
    pub fn depth(&self) -> usize {
        self.depth
    }

    /// Scales and zero points.
    pub fn quantization(&self) -> &Quantization {
        &self.quantization
    }

    /// The output stage's parts for an input.
    pub(super) fn plan<'a>(
        &'a self,
        input: Affine,
        bias: Option<&'a [f32]>,
        relu: bool,
    ) -> Result<Plan<'a, impl Fn(usize) -> usize>> {
        if bias.is_some_and(|b| b.len() != self.outputs) {
            return Err(mismatch("bias values"));
        }
        Ok(Plan {
            input,
            weights: &self.quantization,
            sums: &self.sums,
            depth: self.depth,
            bias,
            order: |at| at,
            columns: self.outputs.next_multiple_of(PANEL),
            relu,
        })
    }

    /// Bytes from a row of inputs to the next once rows are padded to whole quads.
    pub(super) fn padded_depth(&self) -> usize {
        self.depth.next_multiple_of(QUAD)
    }

    /// Where the quads of a row lie that is one run of bytes: side by side.
    pub(super) fn offsets(&self) -> &[usize] {
        &self.offsets
    }

    /// The product of rows of inputs, whose quads lie at `offsets` from their begins, for columns `first..first + columns`;
    /// results of a row begin at `out_start`, rows `out_stride` apart.
    #[allow(clippy::too_many_arguments, reason = "two matrices and a window of the second")]
    pub(super) fn multiply(
        &self,
        isa: Isa,
        (inputs, lines, offsets): (&[u8], Lines, &[usize]),
        (first, columns): (usize, usize),
        stage: &Stage,
        out: Out<'_>,
        (out_start, out_stride): (usize, usize),
    ) -> Result<()> {
        let row_sums =
            if stage.needs_row_sums() { row_sums(inputs, lines, offsets)? } else { Scratch::default() };
        let job = Job {
            inputs,
            lines,
            offsets,
            weights: &self.panels[self.begin..],
            limit: self.limit,
            quads: self.padded_depth() / QUAD,
            first,
            columns,
            row_sums: &row_sums,
            stage,
            out_start,
            out_stride,
        };
        product(isa, &job, out)
    }
}

/// The sum of each row's inputs. What fills a row's last quad must be 0.
fn row_sums(inputs: &[u8], lines: Lines, offsets: &[usize]) -> Result<Scratch<i32>> {
    let mut sums = memory::filled(lines.all().unwrap_or(usize::MAX), 0i32)?;
    for (n, sum) in sums.iter_mut().enumerate() {
        let row = lines.at(n / lines.rows.max(1), n % lines.rows.max(1));
        let quads = offsets.iter().filter_map(|at| inputs.get(row + at..row + at + QUAD));
        *sum = quads.flatten().fold(0i32, |sum, x| sum.wrapping_add(i32::from(*x)));
    }
    Ok(sums)
}

/// Products of fewer multiplications stay on one thread.
const PARALLEL_WORK: usize = 1 << 20;
/// Bytes of rows that are multiplied with all columns before the next rows: they and a panel fit into a cache.
const BLOCK_BYTES: usize = 192 << 10;
/// Rows of a block are a multiple of it where there are enough: whole tiles of every width.
const BLOCK_ROWS: usize = 24;

/// Rows of a block that one thread works on.
pub(super) fn block_rows(rows: usize, depth: usize, work: usize) -> usize {
    let threads = if work < PARALLEL_WORK { 1 } else { pool::threads().max(1) };
    let fair = rows.div_ceil(threads).max(1);
    let cached = (BLOCK_BYTES / depth.max(1)).max(BLOCK_ROWS);
    let most = fair.min(cached);
    if most >= BLOCK_ROWS { most.next_multiple_of(BLOCK_ROWS) } else { most }
}

/// `y = round(x w^T + bias)`: `rows` rows of `depth` bytes in, of `outputs` bytes out. `relu`: negative results become 0.
/// Sums are exact, results PyTorch's `quantized::linear` to the bit. Fails if sizes do not fit or memory is out.
#[allow(clippy::too_many_arguments, reason = "a layer's operands and both sides' scales")]
pub fn linear(
    x: &[u8],
    rows: usize,
    input: Affine,
    weights: &PackedWeights,
    bias: Option<&[f32]>,
    output: Affine,
    relu: bool,
    out: &mut [u8],
) -> Result<()> {
    let stage = Stage::rounding(weights.plan(input, bias, relu)?, output, Engine::Fbgemm)?;
    rows_times(Isa::best(), x, rows, weights, &stage, out, |out| Out::Bytes(out))
}

/// `y = x w^T + bias` in float32, of rows of bytes that are quantized already.
pub fn linear_float(
    x: &[u8],
    rows: usize,
    input: Affine,
    weights: &PackedWeights,
    bias: Option<&[f32]>,
    relu: bool,
    out: &mut [f32],
) -> Result<()> {
    let stage = Stage::float(weights.plan(input, bias, relu)?)?;
    rows_times(Isa::best(), x, rows, weights, &stage, out, |out| Out::Floats(out))
}

/// `y = x w^T + bias` in float32: `x` is quantized to bytes by its own extremes (to 7 bits if `reduce_range`), multiplied as
/// integers and scaled back. PyTorch's `quantized::linear_dynamic` to the bit.
pub fn linear_dynamic(
    x: &[f32],
    rows: usize,
    weights: &PackedWeights,
    bias: Option<&[f32]>,
    relu: bool,
    reduce_range: bool,
    out: &mut [f32],
) -> Result<()> {
    let (low, high) = extremes(x);
    let input = choose_qparams(low, high, (0, 255), false, reduce_range)?;
    let mut bytes = memory::filled(x.len(), 0u8)?;
    quantize(x, input, &mut bytes);
    linear_float(&bytes, rows, input, weights, bias, relu, out)
}

/// Shares a product among threads: blocks of rows, or parts of the columns where there is one row.
fn rows_times<T: Send>(
    isa: Isa,
    x: &[u8],
    rows: usize,
    weights: &PackedWeights,
    stage: &Stage,
    out: &mut [T],
    wrap: impl Fn(&mut [T]) -> Out<'_> + Sync,
) -> Result<()> {
    let (depth, outputs) = (weights.depth, weights.outputs);
    if rows.checked_mul(depth) != Some(x.len()) || rows.checked_mul(outputs) != Some(out.len()) {
        return Err(mismatch("rows of inputs or results"));
    }
    if out.is_empty() {
        return Ok(());
    }
    let work = rows.saturating_mul(depth).saturating_mul(outputs);
    let padded = weights.padded_depth();
    // Rows that do not end with a quad are copied block by block.
    let block = |first: usize, count: usize, columns: (usize, usize), out: &mut [T]| {
        let inputs = &x[first * depth..(first + count) * depth];
        let (stride, lines) = ((0, columns.1), Lines::one(count, padded));
        if depth == padded {
            let inputs = (inputs, lines, weights.offsets());
            return weights.multiply(isa, inputs, columns, stage, wrap(out), stride);
        }
        let mut copy = memory::filled(count * padded, 0u8)?;
        for (to, from) in copy.chunks_exact_mut(padded).zip(inputs.chunks_exact(depth.max(1))) {
            to[..depth].copy_from_slice(from);
        }
        weights.multiply(isa, (&copy, lines, weights.offsets()), columns, stage, wrap(out), stride)
    };
    if rows == 1 {
        let threads = if work < PARALLEL_WORK { 1 } else { pool::threads().max(1) };
        let width = outputs.div_ceil(threads).next_multiple_of(4 * PANEL);
        if width >= outputs {
            return block(0, 1, (0, outputs), out);
        }
        return pool::try_chunks(out, width, |i, out| block(0, 1, (i * width, out.len()), out));
    }
    let size = block_rows(rows, padded, work);
    if work < PARALLEL_WORK {
        let parts = out.chunks_mut(size * outputs).enumerate();
        return { parts }.try_for_each(|(i, out)| block(i * size, out.len() / outputs, (0, outputs), out));
    }
    pool::try_chunks(out, size * outputs, |i, out| block(i * size, out.len() / outputs, (0, outputs), out))
}
