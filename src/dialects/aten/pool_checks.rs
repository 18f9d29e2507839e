//! What pooling refuses of its input before it reads elements. It knows no op.

use crate::diag::{Diagnostic, Result};
use crate::tensor::Tensor;

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// Fails unless the tensor has channels and spatial dimensions, maybe in a batch, none but the batch empty.
pub(super) fn expect_images(t: &Tensor, dims: usize) -> Result<()> {
    let sizes = t.sizes();
    if sizes.len() != dims + 1 && sizes.len() != dims + 2 {
        return fail(format!(
            "non-empty {}D or {}D (batch mode) tensor expected for input",
            dims + 1,
            dims + 2
        ));
    }
    if sizes[sizes.len() - dims - 1..].contains(&0) {
        let shown = as_images(&sizes, dims);
        return fail(format!(
            "Expected {}D or {}D (batch mode) tensor with optional 0 dim batch size for input, but got:{shown:?}",
            dims.max(2) + 1,
            dims.max(2) + 2,
        ));
    }
    Ok(())
}

/// Sizes of lines as those of images of one row, as which they are pooled.
pub(super) fn as_images(sizes: &[i64], dims: usize) -> Vec<i64> {
    let mut sizes = sizes.to_vec();
    if dims == 1 {
        sizes.insert(sizes.len().saturating_sub(1), 1);
    }
    sizes
}

/// Fails where a dimension from `first` on is empty.
pub(super) fn refuse_empty(name: &str, sizes: &[i64], first: usize) -> Result<()> {
    match (first..sizes.len()).find(|d| sizes[*d] == 0) {
        Some(d) => fail(format!(
            "{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {sizes:?} with \
             dimension {d} being empty"
        )),
        None => Ok(()),
    }
}

/// Fails unless the tensor has two or three dimensions.
pub(super) fn argument_rank(t: &Tensor, name: &str) -> Result<()> {
    if t.rank() == 2 || t.rank() == 3 {
        return Ok(());
    }
    fail(format!(
        "Expected 2 to 3 dimensions, but got {}-dimensional tensor for argument #1 'self' (while checking arguments for {name})",
        t.rank()
    ))
}
