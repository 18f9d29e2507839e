//! Whether what is written and what is read share elements that lie differently, as PyTorch judges it: by the stretches of
//! memory that dense tensors take. Tensors that are not dense are taken not to.

use super::Snapshot;
use super::pointwise::is_dense;
use crate::diag::{Diagnostic, Result};

/// Fails, with PyTorch's error, if `written` and `read` are dense over overlapping memory and not the same elements in the
/// same order.
pub fn refuse_partial_overlap(written: &Snapshot, read: &Snapshot) -> Result<()> {
    refuse(written, read, true)
}

/// As [`refuse_partial_overlap`], for what may not even be the same elements.
pub fn refuse_any_overlap(written: &Snapshot, read: &Snapshot) -> Result<()> {
    refuse(written, read, false)
}

fn refuse(written: &Snapshot, read: &Snapshot, same_is_allowed: bool) -> Result<()> {
    let (to, from) = (&written.layout, &read.layout);
    let apart = !written.storage.same(&read.storage) || to.numel() == 0 || from.numel() == 0;
    if apart || !is_dense(to) || !is_dense(from) {
        return Ok(());
    }
    let bytes = |t: &Snapshot| {
        let size = t.dtype.size();
        (t.layout.offset * size, (t.layout.offset + t.layout.numel()) * size)
    };
    let (a, b) = (bytes(written), bytes(read));
    let is_same = a == b && to.strides == from.strides;
    if a.0 < b.1 && b.0 < a.1 && !(is_same && same_is_allowed) {
        return Err(Diagnostic::runtime(
            "unsupported operation: some elements of the input tensor and the written-to tensor refer to a single memory \
             location. Please clone() the tensor before performing the operation.",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::{Layout, Tensor};

    #[test]
    fn dense_stretches_that_meet_are_refused() {
        let x = Tensor::from_vec(&[0f32; 9], &[9]).expect("small");
        let view = |sizes: &[i64], strides: &[i64], offset| {
            x.with_layout(Layout::strided(sizes, strides, offset).expect("valid")).expect("inside")
        };
        let refused = |a: &Tensor, b: &Tensor| refuse_partial_overlap(&a.snapshot(), &b.snapshot()).is_err();
        assert!(refused(&view(&[8], &[1], 1), &view(&[8], &[1], 0)));
        assert!(refused(&view(&[3, 3], &[3, 1], 0), &view(&[3, 3], &[1, 3], 0)));
        assert!(!refused(&view(&[3, 3], &[3, 1], 0), &view(&[3, 3], &[3, 1], 0)));
        assert!(!refused(&view(&[4], &[1], 0), &view(&[4], &[1], 4)));
        assert!(!refused(&view(&[4], &[2], 0), &view(&[4], &[2], 1)));
    }
}
