//! `aten::scatter_add`, `aten::scatter_reduce` with sums, and `aten::index_add` by `loop::accumulate`: elements are added where
//! an index says.
//!
//! Elements that meet are added in the order of the source. Floats of less than 64 bits are added in float64 and rounded
//! once, as the kernels of the rows do it, so that the bits are the same. On a GPU integers of 32 and 64 bits are added by
//! atomic instructions. Sums of others must not depend on the order of threads: there a thread adds what may meet, which are
//! the elements along the dimension of the index.

use super::walk::{Walk, around, check_alone, checked_index, dimension, extent, fits, index_elem};
use super::walk::{place, size_parameters, sizes_of};
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Dim, Graph, ValueId};
use crate::lowering::Target;
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};

/// Adds elements by an index of the same rank.
pub(super) struct ScatterAdd;
/// The same, with what is there before or without.
pub(super) struct ScatterSum;
/// Adds rows by a vector of indices.
pub(super) struct IndexAdd;

impl Lowering for ScatterAdd {
    fn name(&self) -> &str {
        "scatter-add-by-accumulate"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::scatter_add")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        by_index(call, rewriter, true)
    }
}

impl Lowering for ScatterSum {
    fn name(&self) -> &str {
        "scatter-sum-by-accumulate"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::scatter_reduce.two")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        if call.text("reduce")? != "sum" {
            return Err(Diagnostic::unsupported("'reduce' is \"sum\""));
        }
        by_index(call, rewriter, call.bool("include_self")?)
    }
}

impl Lowering for IndexAdd {
    fn name(&self) -> &str {
        "index-add-by-accumulate"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::index_add")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let sums = Sums::of(call, "source")?;
        let rank = call.rank("self")?;
        if call.rank("source")? != rank || rank == 0 || call.rank("index")? != 1 {
            return Err(Diagnostic::unsupported("adds tensors of one rank at a vector of int32 or int64"));
        }
        if call.number("alpha")? != 1.0 {
            return Err(Diagnostic::unsupported("'alpha' is 1"));
        }
        let dim = dimension(call, rank)?;
        same_but(call, dim)?;
        let out = sums.start(rewriter, call.operand("self")?)?;
        let source = rewriter.contiguous(call.operand("source")?)?;
        let places = rewriter.contiguous(call.operand("index")?)?;
        let (sizes, own) = (around(rewriter, source, dim, rank)?, around(rewriter, out, dim, rank)?);
        let given = rewriter.numel(places)?;
        let adds = Adds { sums, shown: dim, dim: 1, rank: 3, vector: true };
        let buffers = [out, source, places];
        adds.launch(call, rewriter, "index_add.rows", buffers, [&sizes, &own, &[given]])
    }
}

/// Adds elements of 'src' by an index of the same rank, to what is there or to zeros.
fn by_index(call: &OpCall, rewriter: &mut Rewriter<'_>, include_self: bool) -> Result<Vec<ValueId>> {
    let (sums, rank) = (Sums::of(call, "src")?, call.rank("self")?);
    if call.rank("index")? != rank || call.rank("src")? != rank {
        return Err(Diagnostic::unsupported("'self', 'index' and 'src' are of one rank"));
    }
    let dim = dimension(call, rank)?;
    let mut out = sums.start(rewriter, call.operand("self")?)?;
    let source = rewriter.contiguous(call.operand("src")?)?;
    let places = rewriter.contiguous(call.operand("index")?)?;
    let [sizes, own, have] = [places, out, source].map(|tensor| sizes_of(rewriter, tensor, rank));
    let sizes = [&sizes?[..], &own?, &have?];
    let adds = Adds { sums, shown: dim, dim, rank: rank.max(1), vector: false };
    if !include_self {
        match adds.clear(rewriter, [out, places], [sizes[0], sizes[1]])?[..] {
            [cleared] => out = cleared,
            _ => return Err(Diagnostic::internal("the kernel stores to one tensor")),
        }
    }
    adds.launch(call, rewriter, "scatter.add", [out, source, places], sizes)
}

/// According to types, the sizes of both are the same but for one dimension.
fn same_but(call: &OpCall, dim: usize) -> Result<()> {
    let [own, other] =
        ["self", "source"].map(|name| call.tensor(name).map(|t| t.sizes.clone().unwrap_or_default()));
    let (own, other) = (own?, other?);
    let same = own
        .iter()
        .zip(other.iter())
        .enumerate()
        .all(|(at, (a, b))| at == dim || (a == b && *a != Dim::Unknown));
    match same {
        true => Ok(()),
        false => Err(Diagnostic::unsupported(
            "types must imply that 'self' and 'source' have the same sizes but for 'dim'",
        )),
    }
}

/// The element types of sums.
#[derive(Clone, Copy)]
struct Sums {
    elem: Elem,
    index: Elem,
    /// In which they are added.
    wide: Elem,
    how: Binary,
}

impl Sums {
    fn of(call: &OpCall, source: &str) -> Result<Sums> {
        let (elem, index) = (call.elem("self")?, index_elem(call, "index")?);
        if call.elem(source)? != elem {
            return Err(Diagnostic::unsupported(format!("'self' and '{source}' are of one dtype")));
        }
        let wide = if elem.is_float() { Elem::F64 } else { elem };
        let how = if elem == Elem::Bool { Binary::Or } else { Binary::Add };
        Ok(Sums { elem, index, wide, how })
    }

    /// A copy of a tensor that sums are added to.
    fn start(&self, rewriter: &mut Rewriter<'_>, tensor: ValueId) -> Result<ValueId> {
        if self.elem == self.wide {
            return rewriter.copy(tensor);
        }
        let wide = rewriter.convert(tensor, self.wide.dtype())?;
        rewriter.contiguous(wide)
    }

    /// What a sum may be of several threads.
    fn is_atomic(&self) -> bool {
        matches!(self.wide, Elem::I32 | Elem::I64)
    }
}

/// `out[.., index[.., i, ..], ..] += source[.., i, ..]`; with a vector the index is `index[i]`.
struct Adds {
    sums: Sums,
    /// The dimension of the index, as messages say it.
    shown: usize,
    dim: usize,
    rank: usize,
    vector: bool,
}

impl Adds {
    /// Calls the kernel with result, source and index; the sizes that are walked over, those of the result, and those of the source
    /// (with a vector its length).
    fn launch(
        &self,
        call: &OpCall,
        rewriter: &mut Rewriter<'_>,
        name: &str,
        buffers: [ValueId; 3],
        [sizes, own, have]: [&[ValueId]; 3],
    ) -> Result<Vec<ValueId>> {
        let (inner, marks) = match call.target() {
            Target::Cpu => (Some(self.rank - 1), [Mark::Serial; 2]),
            Target::Gpu if self.sums.is_atomic() => (None, [Mark::Parallel; 2]),
            Target::Gpu => (Some(self.dim), [Mark::Parallel, Mark::Serial]),
        };
        let mut arguments = buffers.to_vec();
        arguments.push(extent(rewriter, sizes, inner)?);
        arguments.extend(sizes.iter().chain(own).chain(have));
        let stored = rewriter.launch(name, self.kernel(inner, marks, have.len()), &arguments)?;
        match &stored[..] {
            [sum] if self.sums.elem != self.sums.wide => {
                Ok(vec![rewriter.convert(*sum, self.sums.elem.dtype())?])
            }
            _ => Ok(stored),
        }
    }

    fn kernel(&self, inner: Option<usize>, marks: [Mark; 2], given: usize) -> Graph {
        let mut b = Builder::new();
        let (out, source) = (b.buffer(self.sums.wide, "out"), b.buffer(self.sums.elem, "source"));
        let index = b.buffer(self.sums.index, "index");
        let extent = b.scalar(Elem::I64, "extent");
        let [sizes, own] = ["size", "own"].map(|name| size_parameters(&mut b, name, self.rank));
        let have = size_parameters(&mut b, "have", given);
        self.require_sizes(&mut b, &sizes, &own, &have);
        if self.vector {
            check_alone(&mut b, index, &sizes, own[self.dim], &self.outside());
        }
        let apart = marks[0] == Mark::Parallel && !self.sums.is_atomic();
        Walk { sizes: &sizes, extent, inner, marks }.each(&mut b, |b, at, flat| {
            let to = self.target(b, index, &own, at, flat);
            let from = if self.vector { flat } else { place(b, &have, at) };
            let loaded = b.load(source, from);
            let value = b.convert(loaded, self.sums.wide);
            if apart {
                let old = b.load(out, to);
                let new = b.binary(self.sums.how, old, value);
                b.store(out, to, new);
            } else {
                b.accumulate(self.sums.how, out, to, value);
            }
        });
        b.finish()
    }

    /// Ends the kernel where sizes do not fit.
    fn require_sizes(&self, b: &mut Builder, sizes: &[ValueId], own: &[ValueId], have: &[ValueId]) {
        if self.vector {
            let same = b.compare(Compare::Eq, have[0], sizes[self.dim]);
            b.require(same, "index_add_(): Number of indices should be equal to source.size(dim)");
            return;
        }
        let (within, given) = (fits(b, sizes, own, Some(self.dim)), fits(b, sizes, have, None));
        let fits = b.binary(Binary::And, within, given);
        let text = format!(
            "Expected index to be no larger than self apart from dimension {} and to be no larger size than src",
            self.shown
        );
        b.require(fits, &text);
    }

    /// The place in the result that the index names for an element.
    fn target(
        &self,
        b: &mut Builder,
        index: ValueId,
        own: &[ValueId],
        at: &[ValueId],
        flat: ValueId,
    ) -> ValueId {
        let which = if self.vector { at[self.dim] } else { flat };
        let mut to = at.to_vec();
        to[self.dim] = checked_index(b, index, which, own[self.dim], &self.outside());
        place(b, own, &to)
    }

    fn outside(&self) -> String {
        format!("index is out of bounds for dimension {}", self.shown)
    }

    /// Stores 0 where the index says.
    fn clear(
        &self,
        rewriter: &mut Rewriter<'_>,
        [out, places]: [ValueId; 2],
        [sizes, own]: [&[ValueId]; 2],
    ) -> Result<Vec<ValueId>> {
        let inner = Some(self.rank - 1);
        let mut arguments = vec![out, places, extent(rewriter, sizes, inner)?];
        arguments.extend(sizes.iter().chain(own));
        let mut b = Builder::new();
        let (out, index) = (b.buffer(self.sums.wide, "out"), b.buffer(self.sums.index, "index"));
        let extent = b.scalar(Elem::I64, "extent");
        let [sizes, own] = ["size", "own"].map(|name| size_parameters(&mut b, name, self.rank));
        let fits = fits(&mut b, &sizes, &own, Some(self.dim));
        b.require(fits, "Expected index to be no larger than self");
        Walk { sizes: &sizes, extent, inner, marks: [Mark::Serial; 2] }.each(&mut b, |b, at, flat| {
            let to = self.target(b, index, &own, at, flat);
            let zero = b.number(0, self.sums.wide);
            b.store(out, to, zero);
        });
        rewriter.launch("scatter.clear", b.finish(), &arguments)
    }
}
