//! New tensors of one value.

use crate::diag::{Diagnostic, Result};
use crate::tensor::{DType, Layout, Scalar, Storage, Tensor, check_fill};

/// A tensor of zeros with given strides, no larger than they reach.
pub fn strided(sizes: &[i64], strides: &[i64], dtype: DType) -> Result<Tensor> {
    if sizes.len() != strides.len() {
        return Err(Diagnostic::runtime(format!(
            "dimensionality of sizes ({}) must match dimensionality of strides ({})",
            sizes.len(),
            strides.len()
        )));
    }
    if strides.iter().any(|s| *s < 0) {
        return Err(Diagnostic::runtime("as_strided: Negative strides are not supported at the moment"));
    }
    let layout = Layout::strided(sizes, strides, 0)?;
    let reach = if layout.numel() == 0 {
        Some(0)
    } else {
        sizes
            .iter()
            .zip(strides)
            .try_fold(1i64, |n, (size, stride)| n.checked_add((size - 1).checked_mul(*stride)?))
    };
    let bytes = reach
        .and_then(|n| usize::try_from(n).ok())
        .and_then(|n| n.checked_mul(dtype.size()))
        .ok_or_else(|| Diagnostic::runtime("Storage size calculation overflowed"))?;
    Tensor::from_storage(Storage::zeroed(bytes)?, dtype, layout)
}

/// A dense tensor of one value, which must fit.
pub fn full_checked(sizes: &[i64], value: Scalar, dtype: DType) -> Result<Tensor> {
    check_fill(value, dtype)?;
    Tensor::full(dtype, sizes, value)
}
