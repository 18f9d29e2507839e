//! Nested tensors, whose entries have lengths of their own: what encoders need that leave out padding. Such a tensor keeps
//! its entries padded to a common length; only ops that say so take it.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Fact, OpDef, Outputs, one, opaque};
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Scalar, Tensor, view};
use std::sync::Arc;

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::_nested_tensor_from_mask(Tensor t, Tensor mask, bool mask_check=True) -> Tensor",
        from_mask,
    )
    .doc("the entries [N, L, D] without the trailing ones that the mask [N, L] excludes"),
    opaque("aten::_nested_tensor_from_mask_left_aligned(Tensor t, Tensor mask) -> bool", |a| {
        let kept = Kept::of(a)?;
        one(kept.is_aligned)
    })
    .doc("whether a mask keeps nothing after a gap"),
    opaque("aten::_nested_tensor_size(Tensor self) -> Tensor", sizes)
        .facts(&[Fact::Nested])
        .doc("the sizes of each entry, one a row"),
    opaque(
        "aten::to_padded_tensor(Tensor self, float padding, SymInt[]? output_size=None) -> Tensor",
        padded,
    )
    .facts(&[Fact::Nested])
    .doc("the entries padded to one length"),
];

/// What a mask keeps of each entry.
struct Kept {
    lengths: Scratch<i64>,
    /// Nothing is kept after a gap.
    is_aligned: bool,
}

impl Kept {
    /// Reads the mask, which is the second argument, and checks it against the entries, which are the first.
    fn of(a: &Args<'_>) -> Result<Kept> {
        let (entries, mask) = (a.tensor(0)?, a.tensor(1)?);
        if mask.dtype() != DType::Bool {
            return fail(format!(
                "Expected mask to be of ScalarType Bool, but got {} instead.",
                mask.dtype().type_name()
            ));
        }
        if mask.rank() != 2 {
            return fail("Padding mask should be 2D");
        }
        if entries.rank() != 3 {
            return fail("Input should be a 3D tensor, N * L * D");
        }
        if entries.sizes()[..2] != mask.sizes()[..] {
            return fail("Mask size should match input size");
        }
        let steps = usize::try_from(mask.sizes()[1]).unwrap_or(0);
        let kept = mask.elements_as::<u8>()?;
        let mut lengths = memory::filled(usize::try_from(mask.sizes()[0]).unwrap_or(0), 0)?;
        let mut is_aligned = true;
        for (length, row) in lengths.iter_mut().zip(kept.chunks(steps.max(1))) {
            let count = row.iter().filter(|keep| **keep != 0).count();
            is_aligned &= row.iter().take(count).all(|keep| *keep != 0);
            *length = count as i64;
        }
        Ok(Kept { lengths, is_aligned })
    }
}

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

fn from_mask(a: &Args<'_>) -> Result<Outputs> {
    let kept = Kept::of(a)?;
    if a.bool(2)? && !kept.is_aligned {
        return fail("Mask must be left-aligned without gaps");
    }
    let longest = kept.lengths.iter().copied().max().unwrap_or(0);
    let entries = a.tensor(0)?.look(|l| view::slice(l, 1, Some(0), Some(longest), 1))?.copy()?;
    one(Tensor::nested(&entries, kept.lengths.iter().copied().collect())?)
}

/// A nested tensor's padded entries and their lengths.
fn nested(a: &Args<'_>) -> Result<(Tensor, Arc<[i64]>)> {
    let tensor = a.tensor(0)?;
    match tensor.lengths() {
        Some(lengths) => Ok((tensor.padded(), lengths)),
        None => {
            let message = format!("Could not run '{}' with arguments from the 'CPU' backend.", a.op.name());
            Err(Diagnostic::raised("NotImplementedError", message))
        }
    }
}

fn sizes(a: &Args<'_>) -> Result<Outputs> {
    let (entries, lengths) = nested(a)?;
    let inner = &entries.sizes()[2..];
    let rows: Vec<i64> =
        lengths.iter().flat_map(|n| std::iter::once(*n).chain(inner.iter().copied())).collect();
    one(Tensor::from_vec(&rows, &[lengths.len() as i64, 1 + inner.len() as i64])?)
}

fn padded(a: &Args<'_>) -> Result<Outputs> {
    let (entries, lengths) = nested(a)?;
    let own = entries.sizes();
    if lengths.iter().all(|n| *n == 0) || own[2..].contains(&0) {
        return fail("to_padded_tensor: at least one constituent tensor should have non-zero numel");
    }
    let wanted = if a.value(2)?.is_none() { own.to_vec() } else { a.ints(2)? };
    if wanted.len() != own.len() {
        return fail("output_size dimension must match nested tensor's");
    }
    if wanted.iter().zip(&own).any(|(wanted, own)| wanted < own) {
        return fail(
            "Value in output_size is less than NestedTensor padded size. Truncation is not supported.",
        );
    }
    let result = Tensor::full(entries.dtype(), &wanted, Scalar::Float(a.float(1)?))?;
    for (at, length) in lengths.iter().enumerate() {
        let mut target = result.look(|l| view::select(l, 0, at as i64))?;
        let mut source = entries.look(|l| view::select(l, 0, at as i64))?;
        target = target.look(|l| view::slice(l, 0, Some(0), Some(*length), 1))?;
        source = source.look(|l| view::slice(l, 0, Some(0), Some(*length), 1))?;
        for (dim, size) in own.iter().enumerate().skip(2) {
            target = target.look(|l| view::slice(l, dim as i64 - 1, Some(0), Some(*size), 1))?;
        }
        target.copy_from(&source)?;
    }
    one(result)
}
