//! Tables of embeddings as plain tensors of bytes: each row its integers, then its own scale and bias. Of rows of bytes
//! both are float32, of rows of 4 and 2 bits float16. The formulas are FBGEMM's, compared with PyTorch 2.15.

use super::embed::{Table, sum_bags};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::kernels::int8::fake_quantize::best_range;
use crate::resources::{Collect, memory};
use crate::tensor::{DType, Tensor, numel};
use half::f16;

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    own("quantized::embedding_bag_byte_prepack(Tensor weight) -> Tensor", |a| pack(a, Packing::BYTE, None)),
    own("quantized::embedding_bag_byte_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max) -> Tensor", |a| pack(a, Packing::BYTE, Some(a.tensor(1)?))),
    own("quantized::embedding_bag_byte_unpack(Tensor weight) -> Tensor", |a| unpack(a, Packing::BYTE)),
    own("quantized::embedding_bag_byte_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", |a| sum(a, Packing::BYTE)),
    own("quantized::embedding_bag_4bit_prepack(Tensor weight, bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor", |a| pack(a, Packing::searched(4, a, 1)?, None)),
    own("quantized::embedding_bag_4bit_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor", |a| pack(a, Packing::searched(4, a, 2)?, Some(a.tensor(1)?))),
    own("quantized::embedding_bag_4bit_unpack(Tensor weight) -> Tensor", |a| unpack(a, Packing::of(4))),
    own("quantized::embedding_bag_4bit_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", |a| sum(a, Packing::of(4))),
    own("quantized::embedding_bag_2bit_prepack(Tensor weight, bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor", |a| pack(a, Packing::searched(2, a, 1)?, None)),
    own("quantized::embedding_bag_2bit_prepack_with_rowwise_min_max(Tensor weight, Tensor rowwise_min_max, bool optimized_qparams=False, int nbins=200, float ratio=0.16) -> Tensor", |a| pack(a, Packing::searched(2, a, 2)?, Some(a.tensor(1)?))),
    own("quantized::embedding_bag_2bit_unpack(Tensor weight) -> Tensor", |a| unpack(a, Packing::of(2))),
    own("quantized::embedding_bag_2bit_rowwise_offsets(Tensor weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", |a| sum(a, Packing::of(2))),
];

/// How a row is written.
#[derive(Clone, Copy)]
struct Packing {
    bits: usize,
    /// Bins and share of a search for the range that loses least; None for the whole range.
    search: Option<(i64, f32)>,
}

impl Packing {
    const BYTE: Packing = Packing::of(8);

    const fn of(bits: usize) -> Packing {
        Packing { bits, search: None }
    }

    /// With the arguments of a search at `at`.
    fn searched(bits: usize, a: &Args<'_>, at: usize) -> Result<Packing> {
        let search = if a.bool(at)? { Some((a.int(at + 1)?, a.float(at + 2)? as f32)) } else { None };
        Ok(Packing { search, ..Packing::of(bits) })
    }

    fn greatest(self) -> f32 {
        ((1u32 << self.bits) - 1) as f32
    }

    /// Elements a byte.
    fn each(self) -> usize {
        8 / self.bits
    }

    /// Bytes of scale and bias after each row.
    fn tail(self) -> usize {
        if self.bits == 8 { 8 } else { 4 }
    }

    /// The name of PyTorch's op in its messages.
    fn name(self) -> &'static str {
        match self.bits {
            8 => "byte",
            4 => "4bit",
            _ => "2bit",
        }
    }

    /// Scale, bias and the rule for integers of a row between two bounds.
    fn rule(self, low: f32, high: f32) -> (f32, f32, impl Fn(f32) -> u8) {
        let (scale, bias, inverse) = if self.bits == 8 {
            let range = high - low;
            (range / 255.0, low, 255.0 / (range + 1e-8))
        } else {
            let bias = f16::from_f32(low).to_f32();
            let range = high - bias;
            let scale = if range == 0.0 { 1.0 } else { range / self.greatest() };
            let scale = f16::from_f32(scale).to_f32();
            // Ranges that float16 does not hold: PyTorch takes steps of 1.
            let scale = if scale == 0.0 || (1.0 / scale).is_infinite() { 1.0 } else { scale };
            (scale, bias, 1.0 / scale)
        };
        let greatest = self.greatest();
        (scale, bias, move |x: f32| {
            let steps = ((x - bias) * inverse).round_ties_even();
            // What does not fit into the integers of a conversion becomes 0, in 32 bits of which the lowest 8 are kept, or
            // in 64.
            if greatest == 255.0 {
                return if steps.abs() < 2_147_483_648.0 { steps as i32 as u8 } else { 0 };
            }
            if steps.abs() < 9_223_372_036_854_775_808.0 { steps.clamp(0.0, greatest) as u8 } else { 0 }
        })
    }

    /// Writes scale and bias at the end of a row.
    fn write(self, tail: &mut [u8], scale: f32, bias: f32) {
        for (at, x) in [scale, bias].into_iter().enumerate() {
            if self.bits == 8 {
                tail[4 * at..][..4].copy_from_slice(&x.to_le_bytes());
            } else {
                tail[2 * at..][..2].copy_from_slice(&f16::from_f32(x).to_le_bytes());
            }
        }
    }

    /// Reads scale (0) or bias (1) at the end of a row.
    fn read(self, tail: &[u8], at: usize) -> f32 {
        if self.bits == 8 {
            f32::from_le_bytes([tail[4 * at], tail[4 * at + 1], tail[4 * at + 2], tail[4 * at + 3]])
        } else {
            f16::from_le_bytes([tail[2 * at], tail[2 * at + 1]]).to_f32()
        }
    }
}

/// Packs the rows of the first argument; `bounds` are the least and the greatest number of each, where they are given.
fn pack(a: &Args<'_>, packing: Packing, bounds: Option<&Tensor>) -> Result<Outputs> {
    let weight = a.tensor(0)?;
    let (name, each, sizes) = (packing.name(), packing.each(), weight.sizes());
    let Some((&width, outer)) = sizes.split_last() else {
        return Err(Diagnostic::runtime(format!("embedding_bag_{name}_prepack expects a matrix")));
    };
    if !matches!(weight.dtype(), DType::F32 | DType::F16) {
        let message = format!("'embedding_bag_{name}_prepack' only support float32 or float16.");
        return Err(Diagnostic::runtime(message));
    }
    let width = width.max(0) as usize;
    if !width.is_multiple_of(each) {
        let message =
            format!("qembeddingbag_{name}_prepack only works for the number of columns a multiple of {each}");
        return Err(Diagnostic::runtime(message));
    }
    let items = weight.elements_as::<f32>()?;
    let bounds = bounds.map(|t| t.elements_as::<f32>()).transpose()?;
    let rows = numel(outer);
    if bounds.as_ref().is_some_and(|bounds| bounds.len() != 2 * rows) {
        return Err(Diagnostic::runtime(format!("rowwise_min_max must have the sizes [{rows}, 2]")));
    }
    let length = width / each + packing.tail();
    let mut bytes = memory::filled(rows.saturating_mul(length), 0u8)?;
    for (at, line) in bytes.chunks_mut(length).enumerate() {
        let row = &items[at * width..(at + 1) * width];
        let (low, high) = match (&bounds, packing.search) {
            (_, Some((bins, ratio))) if width > 0 => best_range(row, bins, ratio, packing.bits as u32),
            (Some(bounds), _) => (bounds[2 * at], bounds[2 * at + 1]),
            (None, _) => ends(row),
        };
        let (scale, bias, integer) = packing.rule(low, high);
        for (n, x) in row.iter().enumerate() {
            line[n / each] |= integer(*x) << (packing.bits * (n % each));
        }
        packing.write(&mut line[width / each..], scale, bias);
    }
    let mut sizes = outer.to_vec();
    sizes.push(length as i64);
    one(Tensor::from_vec(&bytes, &sizes)?)
}

fn ends(row: &[f32]) -> (f32, f32) {
    let first = row.first().copied().unwrap_or(0.0);
    row.iter().fold((first, first), |(low, high), x| (low.min(*x), high.max(*x)))
}

/// The table in a tensor of bytes.
fn table(packed: &Tensor, packing: Packing) -> Result<Table> {
    let (each, sizes) = (packing.each(), packed.sizes());
    let length = sizes.last().map_or(0, |n| (*n).max(0) as usize);
    if packed.dtype() != DType::U8 || length < packing.tail() {
        let tail = packing.tail();
        return Err(Diagnostic::runtime(format!(
            "rows of packed embeddings must be uint8 and end in {tail} bytes of scale and bias; this is {} with rows of \
             {length}",
            packed.dtype().name()
        )));
    }
    let bytes = packed.elements::<u8>()?;
    let payload = length - packing.tail();
    let mask = packing.greatest() as u8;
    let integers = bytes.chunks(length).flat_map(|line| {
        (0..payload * each).map(move |n| (line[n / each] >> (packing.bits * (n % each))) & mask)
    });
    let integers = integers.scratch()?;
    let ends = |at: usize| bytes.chunks(length).map(move |line| packing.read(&line[payload..], at));
    Ok(Table { scales: ends(0).collect(), biases: ends(1).collect(), integers, width: payload * each })
}

fn unpack(a: &Args<'_>, packing: Packing) -> Result<Outputs> {
    let table = table(a.tensor(0)?, packing)?;
    let rows = table.integers.chunks(table.width.max(1)).zip(table.scales.iter().zip(&table.biases));
    let reals =
        rows.flat_map(|(row, (scale, bias))| row.iter().map(move |x| scale.mul_add(f32::from(*x), *bias)));
    let reals = reals.scratch()?;
    let mut sizes = a.tensor(0)?.sizes().to_vec();
    if let Some(last) = sizes.last_mut() {
        *last = table.width as i64;
    }
    one(Tensor::from_vec(&reals, &sizes)?)
}

fn sum(a: &Args<'_>, packing: Packing) -> Result<Outputs> {
    if a.tensor(0)?.rank() != 2 {
        return Err(Diagnostic::runtime("packed tables of embeddings have two dimensions"));
    }
    sum_bags(a, &table(a.tensor(0)?, packing)?)
}
