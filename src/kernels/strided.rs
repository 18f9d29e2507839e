//! New tensors laid out in memory as PyTorch lays out a result: with given strides, or with the dimensions in a given order.

use crate::diag::Result;
use crate::tensor::view::{dense_in_order, dense_like};
use crate::tensor::{Layout, Storage, Tensor, contiguous_strides};

/// `result` with its dimensions in the same order in memory as those of `like`, which has its sizes: so PyTorch lays out what
/// begins as a copy.
pub fn laid_out_as(result: Tensor, like: &Tensor) -> Result<Tensor> {
    let wanted = dense_like(&like.layout());
    if wanted.sizes != result.sizes() {
        return Ok(result);
    }
    with_strides(result, &wanted.strides)
}

/// A new tensor `result` with the given dense strides: without a copy where only those of dimensions of size 1 differ.
pub fn with_strides(result: Tensor, strides: &[i64]) -> Result<Tensor> {
    let layout = result.layout();
    if layout.strides.as_slice() == strides {
        return Ok(result);
    }
    let wanted = Layout::strided(&layout.sizes, strides, layout.offset)?;
    let same = |d: usize| layout.sizes[d] <= 1 || layout.strides[d] == strides[d];
    if layout.numel() == 0 || (0..strides.len()).all(same) {
        return result.with_layout(wanted);
    }
    let storage = Storage::for_writing(layout.numel().saturating_mul(result.dtype().size()))?;
    let laid_out = Tensor::from_storage(storage, result.dtype(), Layout { offset: 0, ..wanted })?;
    laid_out.copy_from(&result)?;
    Ok(laid_out)
}

/// A new tensor `result` with row-major strides, those of dimensions of size 1 too.
pub fn row_major(result: Tensor) -> Result<Tensor> {
    let strides = contiguous_strides(&result.sizes());
    with_strides(result, &strides)
}

/// A new tensor `result` whose dimensions lie in memory in the given order, the outermost first.
pub fn in_memory_order(result: Tensor, order: &[usize]) -> Result<Tensor> {
    let strides = dense_in_order(&result.sizes(), order).strides;
    with_strides(result, &strides)
}

/// New matrices `result` whose columns lie in memory one after the other, as LAPACK wants them.
pub fn by_columns(result: Tensor) -> Result<Tensor> {
    let rank = result.rank();
    if rank < 2 {
        return Ok(result);
    }
    let order: Vec<usize> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    in_memory_order(result, &order)
}
