//! Tables of embeddings with a scale for each row: rows of bytes, of 4 and of 2 bits, and sums over bags of rows.

use super::packed::{EmbeddingWeights, embedding, payload};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Kernel, OpDef, Outputs, Quantized, one, opaque};
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Layout, Quantizer, Tensor};
use crate::value::Value;
use std::sync::Arc;

const fn own(schema: &'static str, eval: Kernel) -> OpDef {
    opaque(schema, eval).quantized(Quantized::Own)
}

/// The rows.
#[rustfmt::skip] // one line an op
pub static OPS: &[OpDef] = &[
    own("quantized::embedding_bag_prepack(Tensor weight) -> __torch__.torch.classes.quantized.EmbeddingPackedParamsBase W_prepack", |a| {
        one(Value::Object(embedding(a.tensor(0)?.clone(), 1)?))
    }),
    own("quantized::embedding_bag_unpack(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase W_prepack) -> Tensor W_origin", |a| {
        one(payload::<EmbeddingWeights>(a.value(0)?)?.weight.clone())
    }),
    own("quantized::embedding_byte(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight, Tensor indices, bool pruned_weights=False) -> Tensor", rows),
    own("quantized::embedding_4bit(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight, Tensor indices, bool pruned_weights=False) -> Tensor", rows),
    own("quantized::embedding_bag_byte(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", bags),
    own("quantized::embedding_bag_4bit(__torch__.torch.classes.quantized.EmbeddingPackedParamsBase weight, Tensor indices, Tensor? offsets=None, bool scale_grad_by_freq=False, int mode=0, bool pruned_weights=False, Tensor? per_sample_weights=None, Tensor? compressed_indices_mapping=None, bool include_last_offset=False) -> Tensor", bags),
];

/// Elements a byte of a packed dtype.
fn elements_a_byte(dtype: DType) -> usize {
    match dtype {
        DType::QU4x2 => 2,
        DType::QU2x4 => 4,
        _ => 1,
    }
}

/// A float32 matrix as elements of less than a byte, the first in the lowest bits. Sizes and strides count elements, so
/// that the storage is smaller than they say; [`unpacked`] knows.
pub fn quantize_packed(tensor: &Tensor, quantizer: Quantizer, dtype: DType) -> Result<Tensor> {
    let (low, high) = dtype.quantized_range().unwrap_or((0, 0));
    let axis = quantizer.axis().unwrap_or(0);
    let dense = tensor.contiguous()?;
    let channel = super::channels::channel_of_each(&dense, axis)?;
    let rule = super::channels::channel_rounder(&quantizer, dtype, low, high);
    let items = dense.elements::<f32>()?;
    let integers = memory::collected(items.iter().zip(&channel).map(|(x, c)| rule(*x, *c) as u8))?;
    from_integers(&integers, &tensor.sizes(), Arc::new(quantizer.clone()), dtype)
}

fn from_integers(integers: &[u8], sizes: &[i64], quantizer: Arc<Quantizer>, dtype: DType) -> Result<Tensor> {
    let each = elements_a_byte(dtype);
    let bits = 8 / each;
    let mut bytes = memory::filled(integers.len(), 0u8)?;
    for (n, integer) in integers.iter().enumerate() {
        bytes[n / each] |= integer << (bits * (n % each));
    }
    let bytes =
        Tensor::from_vec(&bytes, &[integers.len() as i64])?.with_layout(Layout::contiguous(sizes)?)?;
    Tensor::quantized(&bytes, dtype, quantizer)
}

/// The integers of a dense table, one a byte.
fn unpacked(tensor: &Tensor) -> Result<Scratch<u8>> {
    let bytes = tensor.integers().elements::<u8>()?;
    let each = elements_a_byte(tensor.dtype());
    if each == 1 {
        return Ok(bytes);
    }
    let bits = 8 / each;
    let mask = (1u8 << bits) - 1;
    memory::collected((0..tensor.numel()).map(|n| (bytes[n / each] >> (bits * (n % each))) & mask))
}

/// The real numbers of a table of elements of less than a byte.
pub fn dequantize_packed(tensor: &Tensor) -> Result<Tensor> {
    let quantizer = super::ints::quantizer(tensor)?;
    let tensor = tensor.contiguous()?;
    let channel = super::channels::channel_of_each(&tensor, quantizer.axis().unwrap_or(0))?;
    let integers = unpacked(&tensor)?;
    let each = integers.iter().zip(&channel);
    let reals = each.map(|(x, c)| super::channels::channel_real(&quantizer, i32::from(*x), *c)).scratch()?;
    Tensor::from_vec(&reals, &tensor.sizes())
}

/// A table whose rows are `scale * integer + bias`; scale and bias have been float16 where elements are smaller than a
/// byte.
pub(super) struct Table {
    pub integers: Scratch<u8>,
    pub scales: Vec<f32>,
    pub biases: Vec<f32>,
    pub width: usize,
}

fn table(weights: &EmbeddingWeights) -> Result<Arc<Table>> {
    weights.prepared.get(|| {
        let quantizer = super::ints::quantizer(&weights.weight)?;
        let Quantizer::PerChannelFloat { scales, zero_points, .. } = &*quantizer else {
            return Err(Diagnostic::runtime("a table of embeddings without float scales"));
        };
        let half = weights.weight.dtype() != DType::QU8;
        let round = |x: f32| if half { half::f16::from_f32(x).to_f32() } else { x };
        Ok(Table {
            integers: unpacked(&weights.weight.contiguous()?)?,
            scales: scales.iter().map(|s| round(*s)).collect(),
            biases: scales.iter().zip(zero_points).map(|(s, z)| round(-(z * s))).collect(),
            width: weights.weight.sizes()[1].max(0) as usize,
        })
    })
}

impl Table {
    /// Adds a row, times a weight, to sums.
    fn add(&self, row: i64, weight: Option<f32>, sums: &mut [f32]) -> Result<()> {
        let at = usize::try_from(row).ok().filter(|at| *at < self.scales.len());
        let at = at.ok_or_else(|| outside(row, self.scales.len()))?;
        let (scale, bias) = (self.scales[at], self.biases[at]);
        let (scale, bias) = weight.map_or((scale, bias), |w| (scale * w, bias * w));
        let integers = &self.integers[at * self.width..(at + 1) * self.width];
        sums.iter_mut().zip(integers).for_each(|(sum, x)| *sum = scale.mul_add(f32::from(*x), *sum + bias));
        Ok(())
    }
}

fn rows(a: &Args<'_>) -> Result<Outputs> {
    let table = table(payload(a.value(0)?)?)?;
    let indices = a.tensor(1)?;
    let positions = indices.elements_as::<i64>()?;
    let mut out = memory::filled(positions.len().saturating_mul(table.width), 0f32)?;
    for (row, sums) in positions.iter().zip(out.chunks_mut(table.width.max(1))) {
        table.add(*row, None, sums)?;
    }
    let mut sizes = indices.sizes().to_vec();
    sizes.push(table.width as i64);
    one(Tensor::from_vec(&out, &sizes)?)
}

fn bags(a: &Args<'_>) -> Result<Outputs> {
    sum_bags(a, &*table(payload(a.value(0)?)?)?)
}

/// Sums of a table's rows, bag by bag: arguments as all ops of bags have them, from the indices at 1 on.
pub(super) fn sum_bags(a: &Args<'_>, table: &Table) -> Result<Outputs> {
    let indices = a.tensor(1)?;
    // Rows that were left out of a table have -1 here. One element says that none was.
    let left_out = match a.opt_tensor(7)?.filter(|t| t.numel() > 1) {
        Some(mapping) if a.bool(5)? => Some(mapping.elements_as::<i64>()?),
        _ => None,
    };
    let positions = indices.elements_as::<i64>()?;
    let weights = a.opt_tensor(6)?.map(|t| t.elements_as::<f32>()).transpose()?;
    if weights.as_ref().is_some_and(|w| w.len() != positions.len()) {
        return Err(Diagnostic::runtime("per_sample_weights must have as many elements as indices"));
    }
    // Of a matrix each row is a bag.
    let mut starts = match (a.opt_tensor(2)?, &indices.sizes()[..]) {
        (None, [bags, length]) => memory::collected((0..=*bags).map(|bag| bag * length))?,
        (Some(offsets), _) => offsets.elements_as::<i64>()?,
        _ => {
            return Err(Diagnostic::runtime(
                "embedding_bag operator expects offsets to be set for 1D indices.",
            ));
        }
    };
    let ends_given = a.opt_tensor(2)?.is_none() || a.bool(8)?;
    if !ends_given {
        starts.push(positions.len() as i64)?;
    }
    let mut out = memory::filled(starts.len().saturating_sub(1).saturating_mul(table.width), 0f32)?;
    for (bounds, sums) in starts.windows(2).zip(out.chunks_mut(table.width.max(1))) {
        let range = usize::try_from(bounds[0]).ok().zip(usize::try_from(bounds[1]).ok());
        let Some((from, to)) = range.filter(|(from, to)| from <= to && *to <= positions.len()) else {
            return Err(Diagnostic::runtime("offsets of bags must not decrease or exceed the indices"));
        };
        for at in from..to {
            let row = match &left_out {
                Some(mapping) => moved_row(mapping, positions[at])?,
                None => Some(positions[at]),
            };
            if let Some(row) = row {
                table.add(row, weights.as_ref().map(|w| w[at]), sums)?;
            }
        }
    }
    one(Tensor::from_vec(&out, &[starts.len().saturating_sub(1) as i64, table.width as i64])?)
}

/// Where a row of the whole table stands in one with rows left out, or that it was left out.
fn moved_row(mapping: &[i64], row: i64) -> Result<Option<i64>> {
    let moved = usize::try_from(row).ok().and_then(|row| mapping.get(row).copied());
    let moved = moved.ok_or_else(|| outside(row, mapping.len()))?;
    Ok((moved >= 0).then_some(moved))
}

fn outside(row: i64, rows: usize) -> Diagnostic {
    Diagnostic::raised("IndexError", format!("embedding index {row} is out of range of {rows} rows"))
}
