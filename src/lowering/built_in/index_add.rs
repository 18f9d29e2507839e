//! `aten::index_add` by `loop::accumulate`: rows of the source are added to the rows that an index names.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Graph, ValueId};
use crate::lowering::convert::{Lowering, OpCall, Ops, Rewriter};

pub(super) struct IndexAdd;

impl Lowering for IndexAdd {
    fn name(&self) -> &str {
        "index-add-by-accumulate"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::index_add")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, index) = (call.elem("self")?, call.elem("index")?);
        // Sums of narrower floats are rounded once, of a wider sum.
        if call.elem("source")? != elem || !(elem.is_int() || elem == Elem::F64) {
            return Err(Diagnostic::unsupported("adds integers and float64, of one dtype"));
        }
        let (rank, length) = (call.rank("self")?, call.rank("index")?);
        if call.rank("source")? != rank || rank == 0 || length != 1 || !matches!(index, Elem::I32 | Elem::I64)
        {
            return Err(Diagnostic::unsupported("adds tensors of one rank at a vector of int32 or int64"));
        }
        if call.int("alpha")? != 1 {
            return Err(Diagnostic::unsupported("'alpha' is 1"));
        }
        let dim = call.int("dim")?;
        let dim = if dim < 0 { dim + rank as i64 } else { dim };
        let Some(dim) = usize::try_from(dim).ok().filter(|dim| *dim < rank) else {
            return Err(Diagnostic::unsupported("'dim' is a dimension of 'self'"));
        };
        same_but(call, dim)?;
        let out = rewriter.copy(call.operand("self")?)?;
        let source = rewriter.contiguous(call.operand("source")?)?;
        let index_of = rewriter.contiguous(call.operand("index")?)?;
        let [outer, inner] = [0..dim, dim + 1..rank].map(|dims| product(rewriter, source, dims));
        let (rows, n, given) =
            (rewriter.size(out, dim)?, rewriter.numel(index_of)?, rewriter.size(source, dim)?);
        let arguments = [out, source, index_of, outer?, rows, n, given, inner?];
        rewriter.launch("index_add.rows", add_rows(elem, index, dim), &arguments)
    }
}

/// According to types, the sizes of both are the same but for one dimension.
fn same_but(call: &OpCall, dim: usize) -> Result<()> {
    let [own, other] =
        ["self", "source"].map(|name| call.tensor(name).map(|t| t.sizes.clone().unwrap_or_default()));
    let (own, other) = (own?, other?);
    let unknown = crate::ir::Dim::Unknown;
    let same =
        own.iter().zip(other.iter()).enumerate().all(|(at, (a, b))| at == dim || (a == b && *a != unknown));
    match same {
        true => Ok(()),
        false => Err(Diagnostic::unsupported(
            "types must imply that 'self' and 'source' have the same sizes but for 'dim'",
        )),
    }
}

/// The number of elements of some dimensions.
fn product(rewriter: &mut Rewriter<'_>, tensor: ValueId, dims: std::ops::Range<usize>) -> Result<ValueId> {
    let mut all = rewriter.int(1);
    for dim in dims {
        let size = rewriter.size(tensor, dim)?;
        all = rewriter.value("aten::mul", &[all, size])?;
    }
    Ok(all)
}

/// `out[o, index[i], k] += source[o, i, k]`
fn add_rows(elem: Elem, index: Elem, dim: usize) -> Graph {
    let mut b = Builder::new();
    let (out, source, at) = (b.buffer(elem, "out"), b.buffer(elem, "source"), b.buffer(index, "index"));
    let [outer, rows, n, given, inner] =
        ["outer", "rows", "n", "given", "inner"].map(|name| b.scalar(Elem::I64, name));
    let zero = b.index(0);
    let same = b.compare(Compare::Eq, n, given);
    b.require(same, "index_add_(): Number of indices should be equal to source.size(dim)");
    b.for_each(outer, Mark::Serial, "o", |b, o| {
        b.for_each(n, Mark::Serial, "i", |b, i| {
            let loaded = b.load(at, i);
            let row = b.convert(loaded, Elem::I64);
            let (low, high) = (b.compare(Compare::Ge, row, zero), b.compare(Compare::Lt, row, rows));
            let inside = b.binary(Binary::And, low, high);
            b.require(inside, &format!("index is out of bounds for dimension {dim}"));
            let (to, from) = (b.at(o, rows, row), b.at(o, n, i));
            b.for_each(inner, Mark::Serial, "k", |b, k| {
                let (to, from) = (b.at(to, inner, k), b.at(from, inner, k));
                let value = b.load(source, from);
                b.accumulate(Binary::Add, out, to, value);
            });
        });
    });
    b.finish()
}
