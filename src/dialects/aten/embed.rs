//! Tables of vectors looked up by index: embeddings, bags of them, their renormalization and derivative.

use super::index::vector_indices;
use super::stats::vector_norm;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{layers, products};
use crate::dialects::{Args, OpDef, Outputs, gather, one, opaque};
use crate::kernels::index::indexing::{Combine, combine};
use crate::kernels::index::place::pick;
use crate::kernels::wide::Wide;
use crate::resources::{Collect, Scratch, memory};
use crate::tensor::{DType, Tensor, view};
use crate::value::Value;

/// The rows.
pub static OPS: &[OpDef] = &[
    gather(
        "aten::embedding(Tensor weight, Tensor indices, SymInt padding_idx=-1, bool scale_grad_by_freq=False, bool sparse=False) -> Tensor",
        embedding,
    ).rare("u8").infer(products::embedding)
    .out_exact("out"),
    gather(
        "aten::embedding_dense_backward(Tensor grad_output, Tensor indices, SymInt num_weights, SymInt padding_idx, bool scale_grad_by_freq) -> Tensor",
        embedding_backward,
    )
    .out_exact("out"),
    opaque("aten::embedding_renorm_(Tensor(a!) self, Tensor indices, float max_norm, float norm_type) -> Tensor(a!)", embedding_renorm),
    opaque(
        "aten::embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| bags(a, None),
    ).infer(layers::bags),
    opaque(
        "aten::embedding_bag.padding_idx(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq, int mode, bool sparse, Tensor? per_sample_weights, bool include_last_offset, int? padding_idx) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| bags(a, a.opt_int(8)?),
    ).infer(layers::bags),
    opaque(
        "aten::_embedding_bag(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| bags(a, Some(a.int(8)?).filter(|i| *i >= 0)),
    ).infer(layers::bags),
    opaque(
        "aten::_embedding_bag_forward_only(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, bool sparse=False, Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1) -> (Tensor, Tensor, Tensor, Tensor)",
        |a| bags(a, Some(a.int(8)?).filter(|i| *i >= 0)),
    ).infer(layers::bags),
];

fn out_of_range(_: i64) -> Diagnostic {
    Diagnostic::raised("IndexError", "index out of range in self")
}

fn expect_indices(indices: &Tensor, name: &str) -> Result<()> {
    if matches!(indices.dtype(), DType::I64 | DType::I32) {
        return Ok(());
    }
    Err(Diagnostic::runtime(format!(
        "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got \
         {} instead (while checking arguments for {name})",
        indices.dtype().tensor_class()
    )))
}

fn embedding(a: &Args<'_>) -> Result<Outputs> {
    let (weight, indices) = (a.tensor(0)?, a.tensor(1)?);
    let [rows, width] = weight.sizes()[..] else {
        return Err(Diagnostic::runtime("'weight' must be 2-D"));
    };
    expect_indices(indices, "embedding")?;
    let places = vector_indices(indices, rows, out_of_range)?;
    let mut sizes = indices.sizes();
    sizes.push(width);
    one(pick(weight, 0, &places)?.reshaped(&sizes)?)
}

/// Adds each gradient row to the row of its index; the padding row gets nothing.
fn embedding_backward(a: &Args<'_>) -> Result<Outputs> {
    let (grad, indices, count, padding) = (a.tensor(0)?, a.tensor(1)?, a.int(2)?, a.int(3)?);
    expect_indices(indices, "embedding_backward")?;
    let width = grad.sizes().last().copied().unwrap_or(1);
    let places = vector_indices(indices, count, out_of_range)?;
    let mut uses = memory::filled(count.max(0) as usize, 0usize)?;
    places.iter().for_each(|p| uses[*p] += 1);
    let scale = a.bool(4)?;
    let zeros = Tensor::zeros(grad.dtype(), &[count, width])?;
    let kept = (0..places.len()).filter(|i| places[*i] as i64 != padding).scratch()?;
    let rows = grad.reshaped(&[places.len() as i64, width])?;
    let mut elements = pick(&rows, 0, &kept)?.elements_as::<f64>()?;
    if scale {
        for (row, i) in elements.chunks_mut(width.max(1) as usize).zip(&kept) {
            row.iter_mut().for_each(|x| *x /= uses[places[*i]] as f64);
        }
    }
    let source = crate::kernels::wide::store::<f64>(&elements, &[kept.len() as i64, width], grad.dtype())?;
    let width = width as usize;
    let to = memory::built(kept.len().saturating_mul(width), |to| {
        to.extend(kept.iter().flat_map(|i| (0..width).map(|c| places[*i] * width + c)));
    })?;
    one(combine(&zeros, &to, &source, Combine::Sum, true)?)
}

/// Scales the rows that are used and whose norm is too large.
fn embedding_renorm(a: &Args<'_>) -> Result<Outputs> {
    let (weight, bound, p) = (a.tensor(0)?, a.float(2)?, a.float(3)?);
    let [rows, _] = weight.sizes()[..] else {
        return Err(Diagnostic::runtime("'self' must be 2-D"));
    };
    let mut used = vector_indices(a.tensor(1)?, rows, out_of_range)?;
    used.sort_unstable();
    for row in used.chunk_by(|a, b| a == b).map(|same| same[0]) {
        let row = weight.look(|l| view::select(l, 0, row as i64))?;
        let norm = vector_norm(&row, p, Vec::new(), false, None)?.item()?.to_f64();
        if norm > bound {
            let scale = bound / (norm + 1e-7);
            let scaled = row.elements_as::<f64>()?.into_iter().map(|x| x * scale).scratch()?;
            row.copy_from(&Tensor::from_vec(&scaled, &row.sizes())?)?;
        }
    }
    one(weight.clone())
}

/// Sums (mode 0), means (1) or maxima (2) of the rows of each bag. The other results say what the derivative needs.
fn bags(a: &Args<'_>, padding: Option<i64>) -> Result<Outputs> {
    let (weight, indices, offsets, mode) = (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.int(4)?);
    let (weights, last_given) = (a.opt_tensor(6)?, a.bool(7)?);
    let [rows, width] = weight.sizes()[..] else {
        return Err(Diagnostic::runtime("'weight' must be 2-D"));
    };
    expect_indices(indices, "embedding_bag")?;
    if weights.is_some() && mode != 0 {
        return Err(Diagnostic::runtime("embedding_bag: per_sample_weights only supported with mode='sum'"));
    }
    if offsets.rank() != 1 {
        let rank = offsets.rank();
        return Err(Diagnostic::runtime(format!(
            "offsets has to be a 1D Tensor, but got Tensor of dimension {rank}"
        )));
    }
    if let Some(weights) = weights.filter(|w| w.dtype() != weight.dtype()) {
        return Err(Diagnostic::runtime(format!(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 'per_sample_weights'; but \
             type {} does not equal {} (while checking arguments for embedding_bag)",
            weight.dtype().tensor_class(),
            weights.dtype().tensor_class()
        )));
    }
    let total = indices.numel();
    // PyTorch takes the first size, which is that of all indices where there is one dimension.
    let length = indices.sizes().first().copied().unwrap_or(0);
    let mut starts = offsets.elements_as::<i64>()?;
    if let Some(first) = starts.first().filter(|s| **s != 0) {
        return Err(Diagnostic::runtime(format!(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, got \
             {first}"
        )));
    }
    if let Some(last) = starts.last().filter(|s| **s > length) {
        return Err(Diagnostic::runtime(format!(
            "offsets[-1] can not be greater than input's length {length} but got offsets[-1] of {last}"
        )));
    }
    let count = if last_given { starts.len().saturating_sub(1) } else { starts.len() };
    // PyTorch's quick kernels add the rows up to a last offset that is given; all others those of the last bag to the end, which also
    // count where a mean is taken.
    let is_quick = mode != 2 && padding.is_none() && weight.dtype() != DType::F64;
    let last_end = starts.last().copied().filter(|_| is_quick && last_given);
    match starts.last_mut() {
        Some(last) if last_given => *last = total as i64,
        _ => starts.push(total as i64)?,
    }
    if starts.windows(2).any(|w| w[0] > w[1]) {
        return Err(Diagnostic::runtime("embedding_bag: offsets must not decrease"));
    }
    let places = vector_indices(indices, rows, |_| {
        Diagnostic::runtime(
            "Expected i < index_size to be true, but got false.  (Could this error message be improved?  If so, please \
             report an enhancement request to PyTorch.)",
        )
    })?;
    let padding = padding.map(|p| if p < 0 { p + rows } else { p });
    let factors = weights.map(Tensor::elements_as::<f64>).transpose()?;
    // Only the rows that are named: tables are large.
    let table = Table { elements: pick(weight, 0, &places)?.elements_as::<f64>()?, width: width as usize };
    let mut out = Bags::default();
    for bag in 0..count {
        let (begin, end) = (starts[bag] as usize, starts[bag + 1] as usize);
        let members = memory::collected((begin..end).filter(|i| padding != Some(places[*i] as i64)))?;
        let added = members.partition_point(|i| last_end.is_none_or(|end| (*i as i64) < end));
        out.add(&table, mode, (&members[..added], members.len()), &places, factors.as_deref())?;
    }
    let output = crate::kernels::wide::store::<f64>(&out.values, &[count as i64, width], weight.dtype())?;
    let simple = mode == 0 && padding.is_none() && weight.dtype() != DType::F64;
    let bag_of = memory::collected(
        (0..count).flat_map(|bag| std::iter::repeat_n(bag as i64, (starts[bag + 1] - starts[bag]) as usize)),
    )?;
    let longs = |elements: &[i64]| Tensor::from_vec(elements, &[elements.len() as i64]);
    let sizes_len = offsets.numel();
    let bag_sizes = if mode == 0 { memory::filled(sizes_len, 0)? } else { memory::copied(&out.sizes)? };
    let offset2bag = if simple { longs(&[])? } else { longs(&bag_of)? };
    let sizes = longs(&bag_sizes)?;
    let last =
        if mode == 2 { Tensor::from_vec(&out.largest, &[count as i64, width])? } else { sizes.copy()? };
    Ok([output, offset2bag, sizes, last].into_iter().map(Value::Tensor).collect())
}

/// A row for each index of the list.
struct Table {
    elements: Scratch<f64>,
    width: usize,
}

/// What is known of the bags so far.
#[derive(Default)]
struct Bags {
    values: Scratch<f64>,
    sizes: Scratch<i64>,
    largest: Scratch<i64>,
}

impl Bags {
    /// Adds a bag of the given members of the index list, of which there are as many as a mean divides by.
    fn add(
        &mut self,
        table: &Table,
        mode: i64,
        (members, count): (&[usize], usize),
        places: &[usize],
        factors: Option<&[f64]>,
    ) -> Result<()> {
        let start = self.values.len();
        self.values.resize(start + table.width, 0.0)?;
        self.largest.resize(start + table.width, 0)?;
        for (n, member) in members.iter().enumerate() {
            let row = member * table.width;
            let factor = factors.map_or(1.0, |f| f[*member]);
            for c in 0..table.width {
                let x = table.elements[row + c] * factor;
                let slot = &mut self.values[start + c];
                if mode != 2 {
                    *slot += x;
                } else if n == 0 || x.order(*slot) == std::cmp::Ordering::Greater {
                    *slot = x;
                    self.largest[start + c] = places[*member] as i64;
                }
            }
        }
        if mode == 1 && count > 0 {
            self.values[start..].iter_mut().for_each(|x| *x /= count as f64);
        }
        self.sizes.push(count as i64)
    }
}
