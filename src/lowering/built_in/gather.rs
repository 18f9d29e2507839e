//! `aten::gather`, `aten::index_select` and `aten::embedding`: elements are loaded where an index says.

use super::walk::{Walk, around, check_alone, checked_index, dimension, extent, fits, index_elem};
use super::walk::{place, size_parameters, sizes_of};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::ir::{Graph, ValueId};
use crate::lowering::Target;
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};

/// Elements by an index of the same rank.
pub(super) struct Gather;
/// Rows by a vector of indices.
pub(super) struct IndexSelect;
/// Rows of a table.
pub(super) struct Embedding;

const OUTSIDE: &str = "index out of range in self";

impl Lowering for Gather {
    fn name(&self) -> &str {
        "gather-by-load"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::gather")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, index, rank) = (call.elem("self")?, index_elem(call, "index")?, call.rank("self")?);
        if call.rank("index")? != rank {
            return Err(Diagnostic::unsupported("'self' and 'index' are of one rank"));
        }
        let dim = dimension(call, rank)?;
        let tensor = rewriter.contiguous(call.operand("self")?)?;
        let places = rewriter.contiguous(call.operand("index")?)?;
        let (sizes, own) = (sizes_of(rewriter, places, rank)?, sizes_of(rewriter, tensor, rank)?);
        let out = rewriter.empty(if rank == 0 { &[] } else { &sizes }, elem.dtype())?;
        let message = format!("index is out of bounds for dimension {dim}");
        let pick = Pick { elem, index, rank: rank.max(1), dim, vector: false, message: &message };
        pick.launch(call, rewriter, "gather.elements", [out, tensor, places], [&sizes, &own])
    }
}

impl Lowering for IndexSelect {
    fn name(&self) -> &str {
        "index-select-by-load"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::index_select")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, index, rank) = (call.elem("self")?, index_elem(call, "index")?, call.rank("self")?);
        if rank == 0 || call.rank("index")? > 1 {
            return Err(Diagnostic::unsupported("selects by a vector, of a tensor with dimensions"));
        }
        let dim = dimension(call, rank)?;
        let tensor = rewriter.contiguous(call.operand("self")?)?;
        let places = rewriter.contiguous(call.operand("index")?)?;
        let mut result = rewriter.sizes(tensor, 0..rank)?;
        result[dim] = rewriter.numel(places)?;
        let out = rewriter.empty(&result, elem.dtype())?;
        let own = around(rewriter, tensor, dim, rank)?;
        let sizes = [own[0], result[dim], own[2]];
        let pick = Pick { elem, index, rank: 3, dim: 1, vector: true, message: OUTSIDE };
        pick.launch(call, rewriter, "index_select.rows", [out, tensor, places], [&sizes, &own])
    }
}

impl Lowering for Embedding {
    fn name(&self) -> &str {
        "embedding-by-load"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::embedding")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, index) = (call.elem("weight")?, index_elem(call, "indices")?);
        if call.rank("weight")? != 2 {
            return Err(Diagnostic::unsupported("'weight' is a matrix"));
        }
        let rank = call.rank("indices")?;
        let table = rewriter.contiguous(call.operand("weight")?)?;
        let places = rewriter.contiguous(call.operand("indices")?)?;
        let mut result = rewriter.sizes(places, 0..rank)?;
        let (one, rows, width) = (rewriter.int(1), rewriter.size(table, 0)?, rewriter.size(table, 1)?);
        result.push(width);
        let out = rewriter.empty(&result, elem.dtype())?;
        let sizes = [one, rewriter.numel(places)?, width];
        let pick = Pick { elem, index, rank: 3, dim: 1, vector: true, message: OUTSIDE };
        pick.launch(call, rewriter, "embedding.rows", [out, table, places], [&sizes, &[one, rows, width]])
    }
}

/// `out[.., i, ..] = x[.., index[.., i, ..], ..]`; with a vector the index is `index[i]`.
struct Pick<'a> {
    elem: Elem,
    index: Elem,
    rank: usize,
    dim: usize,
    vector: bool,
    message: &'a str,
}

impl Pick<'_> {
    /// Calls the kernel with result, operand and index, and the sizes of result and operand.
    fn launch(
        &self,
        call: &OpCall,
        rewriter: &mut Rewriter<'_>,
        name: &str,
        buffers: [ValueId; 3],
        [sizes, own]: [&[ValueId]; 2],
    ) -> Result<Vec<ValueId>> {
        let inner = (call.target() == Target::Cpu).then_some(self.rank - 1);
        let mut arguments = buffers.to_vec();
        arguments.push(extent(rewriter, sizes, inner)?);
        arguments.extend(sizes.iter().chain(own));
        rewriter.launch(name, self.kernel(inner), &arguments)
    }

    fn kernel(&self, inner: Option<usize>) -> Graph {
        let mut b = Builder::new();
        let (out, x) = (b.buffer(self.elem, "out"), b.buffer(self.elem, "x"));
        let index = b.buffer(self.index, "index");
        let extent = b.scalar(Elem::I64, "extent");
        let [sizes, own] = ["size", "own"].map(|name| size_parameters(&mut b, name, self.rank));
        if self.vector {
            check_alone(&mut b, index, &sizes, own[self.dim], self.message);
        } else {
            let fits = fits(&mut b, &sizes, &own, Some(self.dim));
            let message = format!(
                "Size does not match: expected index to be no larger than self apart from dimension {}",
                self.dim
            );
            b.require(fits, &message);
        }
        let walk = Walk { sizes: &sizes, extent, inner, marks: [Mark::Parallel, Mark::Vector] };
        walk.each(&mut b, |b, at, flat| {
            let which = if self.vector { at[self.dim] } else { flat };
            let mut from = at.to_vec();
            from[self.dim] = checked_index(b, index, which, own[self.dim], self.message);
            let from = place(b, &own, &from);
            let value = b.load(x, from);
            b.store(out, flat, value);
        });
        b.finish()
    }
}
