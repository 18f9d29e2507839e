//! `aten::mm` and `aten::bmm` as a nest of loops with indices, which loop passes schedule.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::Compare;
use crate::ir::{Graph, ValueId};
use crate::lowering::convert::{Lowering, OpCall, Ops, Rewriter};

/// The product of two matrices.
pub(super) struct MmByNest;
/// Products of matrices in a batch.
pub(super) struct BmmByNest;

impl Lowering for MmByNest {
    fn name(&self) -> &str {
        "mm-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::mm")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, 2)?;
        let arguments = arguments(call, rewriter, elem, 2)?;
        rewriter.launch("mm.nest", nest(elem, false), &arguments)
    }
}

impl Lowering for BmmByNest {
    fn name(&self) -> &str {
        "bmm-by-nest"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::bmm")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = elem(call, 3)?;
        let arguments = arguments(call, rewriter, elem, 3)?;
        rewriter.launch("bmm.nest", nest(elem, true), &arguments)
    }
}

/// The element type of both operands, which are of a rank.
fn elem(call: &OpCall, rank: usize) -> Result<Elem> {
    let elem = call.elem("self")?;
    if call.elem("mat2")? != elem || !matches!(elem, Elem::F32 | Elem::F64) {
        return Err(Diagnostic::unsupported("multiplies matrices of float32, or of float64"));
    }
    if call.rank("self")? != rank || call.rank("mat2")? != rank {
        return Err(Diagnostic::unsupported(format!("multiplies tensors of rank {rank}")));
    }
    Ok(elem)
}

/// Result, operands, and sizes: with rank 3 those of the batches, then rows, columns, and what is summed over, twice.
fn arguments(call: &OpCall, rewriter: &mut Rewriter<'_>, elem: Elem, rank: usize) -> Result<Vec<ValueId>> {
    let (a, b) = (rewriter.contiguous(call.operand("self")?)?, rewriter.contiguous(call.operand("mat2")?)?);
    let mut numbers = Vec::new();
    if rank == 3 {
        numbers.extend([rewriter.size(a, 0)?, rewriter.size(b, 0)?]);
    }
    let (m, n) = (rewriter.size(a, rank - 2)?, rewriter.size(b, rank - 1)?);
    let sizes: Vec<ValueId> = numbers.first().copied().into_iter().chain([m, n]).collect();
    numbers.extend([m, n, rewriter.size(a, rank - 1)?, rewriter.size(b, rank - 2)?]);
    let out = rewriter.empty(&sizes, elem.dtype())?;
    Ok([out, a, b].into_iter().chain(numbers).collect())
}

/// `c[i, j]` is the sum over l of `a[i, l] * b[l, j]`; in batches, for each of them.
fn nest(elem: Elem, batched: bool) -> Graph {
    let mut b = Builder::new();
    let [out, x, y] = ["c", "a", "b"].map(|name| b.buffer(elem, name));
    let batches = batched.then(|| ["batches", "others"].map(|name| b.scalar(Elem::I64, name)));
    let [m, n, k, rows] = ["m", "n", "k", "rows"].map(|name| b.scalar(Elem::I64, name));
    let fits = b.compare(Compare::Eq, k, rows);
    b.require(fits, "mat1 and mat2 shapes cannot be multiplied");
    let sizes = Sizes { elem, m, n, k };
    match batches {
        Some([batches, others]) => {
            let same = b.compare(Compare::Eq, batches, others);
            b.require(same, "batch1 and batch2 must have the same number of batches");
            b.for_each(batches, Mark::Serial, "p", |b, p| {
                let (row, line) = (b.product(p, m), b.product(p, k));
                sizes.matrix(b, [out, x, y], [row, line]);
            });
        }
        None => {
            let zero = b.index(0);
            sizes.matrix(&mut b, [out, x, y], [zero, zero]);
        }
    }
    b.finish()
}

struct Sizes {
    elem: Elem,
    m: ValueId,
    n: ValueId,
    k: ValueId,
}

impl Sizes {
    /// One product; `row` is the first row of `a` and `c`, `line` that of `b`.
    fn matrix(&self, b: &mut Builder, [out, x, y]: [ValueId; 3], [row, line]: [ValueId; 2]) {
        b.for_each(self.m, Mark::Serial, "i", |b, i| {
            let row = b.sum(row, i);
            b.for_each(self.n, Mark::Serial, "j", |b, j| {
                let nought = b.number(0, self.elem);
                let sum = b.fold(self.k, nought, "l", |b, l, sum| {
                    let from = b.at(row, self.k, l);
                    let line = b.sum(line, l);
                    let with = b.at(line, self.n, j);
                    let (x, y) = (b.load(x, from), b.load(y, with));
                    b.fma(x, y, sum)
                });
                let to = b.at(row, self.n, j);
                b.store(out, to, sum);
            });
        });
    }
}
