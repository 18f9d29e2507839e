//! Attention of float32 heads, read where they lie: what rows share that compute it. Knows tensors, no ops.

use crate::diag::{Diagnostic, Result};
use crate::kernels::float::{self, AttentionShape, Heads, Scores};
use crate::tensor::{DType, ReadBytes, Snapshot, Tensor, view};

/// `softmax(scale * query · key + biases) · value` of tensors of batch, heads, rows and features; biases have the sizes of
/// scores, maybe repeated. Where `masks` says so a row of minus infinities gives zeros. Each head of the
/// result lies by itself where heads are to be `apart`; else the rows of all heads lie side by side.
pub(super) fn attend(
    [query, key, value]: [&Tensor; 3],
    biases: &[Tensor],
    scale: f32,
    (masks, apart): (bool, bool),
) -> Result<Tensor> {
    let (q, k, v) = (query.sizes(), key.sizes(), value.sizes());
    let (&[batch, heads, queries, width], &[_, _, keys, _], &[_, _, _, values]) =
        (q.as_slice(), k.as_slice(), v.as_slice())
    else {
        return Err(Diagnostic::runtime("attention takes batches of heads"));
    };
    let fits = *k == [batch, heads, keys, width] && *v == [batch, heads, keys, values];
    let all = [query, key, value].into_iter().chain(biases);
    let floats = all.clone().all(|t| t.dtype() == DType::F32 && t.is_plain());
    if !fits || !floats || biases.iter().any(|b| *b.sizes() != [batch, heads, queries, keys]) {
        return Err(Diagnostic::runtime("the operands of an attention do not fit each other"));
    }
    let shape = AttentionShape {
        batch: batch as usize,
        heads: heads as usize,
        queries: queries as usize,
        keys: keys as usize,
        width: width as usize,
        values: values as usize,
        apart,
    };
    let operands = all.map(rows_of).collect::<Result<Vec<Snapshot>>>()?;
    let open = operands.iter().map(|t| t.storage.read()).collect::<Result<Vec<ReadBytes>>>()?;
    let given: Vec<Heads<'_>> = operands.iter().zip(&open).map(|(t, bytes)| heads_of(t, bytes)).collect();
    let [query, key, value, biases @ ..] = given.as_slice() else {
        return Err(Diagnostic::internal("an attention without operands"));
    };
    let scores = Scores { scale, biases, masks };
    let sizes = if apart { [batch, heads, queries, values] } else { [batch, queries, heads, values] };
    let result = Tensor::for_writing(DType::F32, &sizes)?;
    result.write::<f32, _>(|out, _| float::attention(shape, [*query, *key, *value], scores, out))??;
    if apart { Ok(result) } else { result.look(|layout| view::transpose(layout, 1, 2)) }
}

/// A tensor whose rows lie side by side.
fn rows_of(t: &Tensor) -> Result<Snapshot> {
    let layout = t.layout();
    let dense = layout.sizes.last() == Some(&1) || layout.strides.last() == Some(&1);
    Ok(if dense && layout.strides.iter().all(|s| *s >= 0) { t.snapshot() } else { t.copy()?.snapshot() })
}

/// Its heads, as kernels read them.
fn heads_of<'a>(t: &Snapshot, bytes: &'a ReadBytes) -> Heads<'a> {
    let whole = bytes.len() / size_of::<f32>() * size_of::<f32>();
    // Storage that tensors of float32 lie in is aligned for them.
    let all: &[f32] = bytemuck::try_cast_slice(&bytes[..whole]).unwrap_or_default();
    let stride = |d: usize| t.layout.strides.get(d).map_or(0, |n| *n as usize);
    Heads {
        values: all.get(t.layout.offset..).unwrap_or_default(),
        strides: [stride(0), stride(1), stride(2)],
    }
}
