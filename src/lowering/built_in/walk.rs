//! Loops over all elements of a tensor of known rank, and places in others of the same rank.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::ValueId;
use crate::lowering::by_op::{OpCall, Rewriter};

/// An outer loop over all dimensions but `inner`, and a loop over that one within.
pub(super) struct Walk<'a> {
    /// The size of each dimension.
    pub(super) sizes: &'a [ValueId],
    /// Iterations of the outer loop: the product of the sizes of its dimensions.
    pub(super) extent: ValueId,
    /// The dimension of the inner loop; without it the outer one runs over all elements.
    pub(super) inner: Option<usize>,
    /// How the outer and the inner loop may run.
    pub(super) marks: [Mark; 2],
}

impl Walk<'_> {
    /// Writes the loops; `body` gets the coordinates of an element and its number in order of rows.
    pub(super) fn each(&self, b: &mut Builder, body: impl FnOnce(&mut Builder, &[ValueId], ValueId)) {
        let outer: Vec<usize> = (0..self.sizes.len()).filter(|dim| Some(*dim) != self.inner).collect();
        let name = if self.inner.is_some() { "p" } else { "e" };
        b.for_each(self.extent, self.marks[0], name, |b, p| {
            let mut at = vec![p; self.sizes.len()];
            self.split(b, p, &outer, &mut at);
            let Some(inner) = self.inner else { return body(b, &at, p) };
            b.for_each(self.sizes[inner], self.marks[1], "k", |b, k| {
                at[inner] = k;
                let is_last = inner + 1 == self.sizes.len();
                let flat = if is_last { b.at(p, self.sizes[inner], k) } else { place(b, self.sizes, &at) };
                body(b, &at, flat);
            });
        });
    }

    /// Splits a number of the outer loop into coordinates, the last dimension running fastest.
    fn split(&self, b: &mut Builder, p: ValueId, outer: &[usize], at: &mut [ValueId]) {
        let mut rest = p;
        for (n, dim) in outer.iter().enumerate().rev() {
            at[*dim] = rest;
            if n > 0 {
                at[*dim] = b.binary(Binary::Rem, rest, self.sizes[*dim]);
                rest = b.binary(Binary::Div, rest, self.sizes[*dim]);
            }
        }
    }
}

/// The number of an element in order of rows.
pub(super) fn place(b: &mut Builder, sizes: &[ValueId], at: &[ValueId]) -> ValueId {
    let first = at.first().copied().unwrap_or_else(|| b.index(0));
    at.iter().zip(sizes).skip(1).fold(first, |so_far, (i, size)| b.at(so_far, *size, *i))
}

/// Parameters of a kernel that are the sizes of a tensor.
pub(super) fn size_parameters(b: &mut Builder, name: &str, rank: usize) -> Vec<ValueId> {
    (0..rank).map(|dim| b.scalar(Elem::I64, &format!("{name}{dim}"))).collect()
}

/// Reads an index at a place and ends the kernel where it is not from 0 to a bound.
pub(super) fn checked_index(
    b: &mut Builder,
    index: ValueId,
    at: ValueId,
    bound: ValueId,
    message: &str,
) -> ValueId {
    let loaded = b.load(index, at);
    let (row, zero) = (b.convert(loaded, Elem::I64), b.index(0));
    let (low, high) = (b.compare(Compare::Ge, row, zero), b.compare(Compare::Lt, row, bound));
    let inside = b.binary(Binary::And, low, high);
    b.require(inside, message);
    row
}

/// Checks a vector of indices where there is nothing else to do for it: with rows of no elements, or none.
pub(super) fn check_alone(b: &mut Builder, index: ValueId, sizes: &[ValueId], bound: ValueId, message: &str) {
    let &[outer, count, inner] = sizes else { return };
    let (all, zero) = (b.product(outer, inner), b.index(0));
    let none = b.compare(Compare::Eq, all, zero);
    let left = b.select(none, count, zero);
    b.for_each(left, Mark::Serial, "c", |b, i| {
        checked_index(b, index, i, bound, message);
    });
}

/// Whether sizes are no larger than others, but for a dimension; holds of what is empty, too.
pub(super) fn fits(b: &mut Builder, own: &[ValueId], other: &[ValueId], but: Option<usize>) -> ValueId {
    let (mut empty, mut all, zero) = (b.truth(false), b.truth(true), b.index(0));
    for (dim, (own, other)) in own.iter().zip(other).enumerate() {
        let none = b.compare(Compare::Eq, *own, zero);
        empty = b.binary(Binary::Or, empty, none);
        if Some(dim) != but {
            let fits = b.compare(Compare::Le, *own, *other);
            all = b.binary(Binary::And, all, fits);
        }
    }
    b.binary(Binary::Or, empty, all)
}

/// The element type of an index.
pub(super) fn index_elem(call: &OpCall, name: &str) -> Result<Elem> {
    let elem = call.elem(name)?;
    match matches!(elem, Elem::I32 | Elem::I64) {
        true => Ok(elem),
        false => Err(Diagnostic::unsupported(format!("'{name}' is of int32 or int64"))),
    }
}

/// The constant 'dim' as a dimension of a tensor; one without dimensions counts as one of rank 1.
pub(super) fn dimension(call: &OpCall, rank: usize) -> Result<usize> {
    let (dim, rank) = (call.int("dim")?, rank.max(1));
    let dim = if dim < 0 { dim.saturating_add(rank as i64) } else { dim };
    usize::try_from(dim)
        .ok()
        .filter(|dim| *dim < rank)
        .ok_or_else(|| Diagnostic::unsupported("'dim' is a dimension of 'self'"))
}

/// The sizes of a tensor; one without dimensions has one of size 1.
pub(super) fn sizes_of(rewriter: &mut Rewriter<'_>, tensor: ValueId, rank: usize) -> Result<Vec<ValueId>> {
    match rank {
        0 => Ok(vec![rewriter.int(1)]),
        rank => rewriter.sizes(tensor, 0..rank),
    }
}

/// What lies before a dimension, in it, and behind it: the sizes of a tensor as one of rank 3.
pub(super) fn around(
    rewriter: &mut Rewriter<'_>,
    tensor: ValueId,
    dim: usize,
    rank: usize,
) -> Result<[ValueId; 3]> {
    let (before, behind) = (rewriter.sizes(tensor, 0..dim)?, rewriter.sizes(tensor, dim + 1..rank)?);
    Ok([rewriter.product(&before)?, rewriter.size(tensor, dim)?, rewriter.product(&behind)?])
}

/// Iterations of the outer loop of a walk.
pub(super) fn extent(
    rewriter: &mut Rewriter<'_>,
    sizes: &[ValueId],
    inner: Option<usize>,
) -> Result<ValueId> {
    let outer: Vec<ValueId> =
        sizes.iter().enumerate().filter(|(dim, _)| Some(*dim) != inner).map(|(_, size)| *size).collect();
    rewriter.product(&outer)
}
