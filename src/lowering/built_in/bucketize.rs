//! `aten::bucketize` of a tensor by `loop::while`: a binary search for each element.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Graph, ValueId};
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};

pub(super) struct Bucketize;

impl Lowering for Bucketize {
    fn name(&self) -> &str {
        "bucketize-by-while"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::bucketize.Tensor")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, bound) = (call.elem("self")?, call.elem("boundaries")?);
        if elem != bound || !matches!(elem, Elem::F32 | Elem::F64 | Elem::I32 | Elem::I64) {
            return Err(Diagnostic::unsupported(
                "elements and boundaries are of one dtype, of 32 or 64 bits",
            ));
        }
        if call.rank("boundaries")? != 1 {
            return Err(Diagnostic::unsupported("boundaries are a vector"));
        }
        let result = if call.bool("out_int32")? { Elem::I32 } else { Elem::I64 };
        let sizes = (0..call.rank("self")?).map(|dim| rewriter.size(call.operand("self")?, dim));
        let sizes = sizes.collect::<Result<Vec<_>>>()?;
        let tensor = rewriter.contiguous(call.operand("self")?)?;
        let boundaries = rewriter.contiguous(call.operand("boundaries")?)?;
        let (n, length) = (rewriter.numel(tensor)?, rewriter.numel(boundaries)?);
        let out = rewriter.empty(&sizes, result.dtype())?;
        let kernel = search(elem, result, call.bool("right")?);
        rewriter.launch("bucketize.search", kernel, &[out, tensor, boundaries, n, length])
    }
}

/// For each element the first place whose boundary is not before it: not less, or with `right` greater. NaN is after all.
fn search(elem: Elem, result: Elem, right: bool) -> Graph {
    let mut b = Builder::new();
    let (out, x, bounds) = (b.buffer(result, "out"), b.buffer(elem, "x"), b.buffer(elem, "boundaries"));
    let (n, length) = (b.scalar(Elem::I64, "n"), b.scalar(Elem::I64, "length"));
    let (zero, one) = (b.index(0), b.index(1));
    b.for_each(n, Mark::Parallel, "i", |b, i| {
        let value = b.load(x, i);
        let enters = b.compare(Compare::Lt, zero, length);
        let carried = b.begin_while(enters, &[zero, length], 1);
        let (low, high) = (carried[0], carried[1]);
        let (width, two) = (b.binary(Binary::Sub, high, low), b.index(2));
        let half = b.binary(Binary::Div, width, two);
        let middle = b.binary(Binary::Add, low, half);
        let bound = b.load(bounds, middle);
        let reached = b.compare(if right { Compare::Gt } else { Compare::Ge }, bound, value);
        let behind = b.binary(Binary::Add, middle, one);
        let (low, high) = (b.select(reached, low, behind), b.select(reached, middle, high));
        let again = b.compare(Compare::Lt, low, high);
        let found = b.end_while(again, &[low, high]);
        let place = b.convert(found[0], result);
        b.store(out, i, place);
    });
    b.finish()
}
