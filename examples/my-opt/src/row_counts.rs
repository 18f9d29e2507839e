//! The op `sparse::row_counts` and its lowering: a loop over the rows of a matrix, and one within that counts.

use flambeau::dialects::loops::{Builder, Elem, Mark};
use flambeau::dialects::opaque;
use flambeau::dialects::scalar::Compare;
use flambeau::ir::ValueId;
use flambeau::prelude::*;

/// The row. What it means is a kernel in Rust, of which loops cannot be read off.
pub(crate) fn row() -> OpDef {
    opaque("sparse::row_counts(Tensor self) -> Tensor", count)
        .doc("How many elements of each row of a matrix are not zero")
}

fn count(a: &Args<'_>) -> Result<Outputs> {
    let dense = a.tensor(0)?;
    let &[rows, columns] = dense.sizes().as_slice() else {
        return Err(Diagnostic::runtime("rows are counted of a matrix"));
    };
    let all: Vec<f32> = dense.to_vec()?;
    let width = usize::try_from(columns).unwrap_or(0);
    let mut counts = vec![0i64; usize::try_from(rows).unwrap_or(0)];
    for (count, row) in counts.iter_mut().zip(all.chunks(width.max(1))) {
        *count = row.iter().filter(|x| **x != 0.0).count() as i64;
    }
    one(Tensor::from_vec(&counts, &[rows])?)
}

pub(crate) struct RowCounts;

impl Lowering for RowCounts {
    fn name(&self) -> &str {
        "row-counts-by-loops"
    }

    fn ops(&self) -> Ops {
        Ops::named("sparse::row_counts")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        if call.rank("self")? != 2 || call.elem("self")? != Elem::F32 {
            return Err(Diagnostic::unsupported("counts rows of matrices of float32"));
        }
        let dense = rewriter.contiguous(call.operand("self")?)?;
        let (rows, columns) = (rewriter.size(dense, 0)?, rewriter.size(dense, 1)?);
        let counts = rewriter.empty(&[rows], DType::I64)?;
        rewriter.launch("sparse.row_counts", kernel(), &[counts, dense, rows, columns])
    }
}

/// `counts[i]` is the number of `dense[i, j]` that are not zero.
fn kernel() -> Graph {
    let mut b = Builder::new();
    let (counts, dense) = (b.buffer(Elem::I64, "counts"), b.buffer(Elem::F32, "dense"));
    let (rows, columns) = (b.scalar(Elem::I64, "rows"), b.scalar(Elem::I64, "columns"));
    b.for_each(rows, Mark::Parallel, "i", |b, i| {
        let none = b.index(0);
        let count = b.fold(columns, none, "j", |b, j, count| {
            let at = b.at(i, columns, j);
            let (x, zero) = (b.load(dense, at), b.number(0, Elem::F32));
            let listed = b.compare(Compare::Ne, x, zero);
            let more = b.convert(listed, Elem::I64);
            b.sum(count, more)
        });
        b.store(counts, i, count);
    });
    b.finish()
}
