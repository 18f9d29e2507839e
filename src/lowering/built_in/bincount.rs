//! `aten::bincount` by `loop::accumulate`: one kernel finds how many bins there are, and refuses what cannot be counted; the
//! other counts.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Graph, ValueId};
use crate::lowering::convert::{Lowering, OpCall, Ops, Rewriter};
use crate::tensor::DType;

pub(super) struct Bincount;

impl Lowering for Bincount {
    fn name(&self) -> &str {
        "bincount-by-accumulate"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::bincount")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = call.elem("self")?;
        if call.rank("self")? != 1 || !elem.is_int() {
            return Err(Diagnostic::unsupported("counts vectors of integers"));
        }
        let weights = weights(call)?;
        let tensor = rewriter.contiguous(call.operand("self")?)?;
        let n = rewriter.numel(tensor)?;
        let bins = bins(call, rewriter, elem, [tensor, n])?;
        let Some(weight) = weights else {
            let out = rewriter.zeros(&[bins], DType::I64)?;
            return rewriter.launch("bincount.count", count(elem), &[out, tensor, n]);
        };
        let given = rewriter.contiguous(call.operand("weights")?)?;
        let length = rewriter.numel(given)?;
        let out = rewriter.zeros(&[bins], DType::F64)?;
        let sums =
            rewriter.launch("bincount.weigh", weigh(elem, weight), &[out, tensor, given, n, length])?;
        match (weight, &sums[..]) {
            (Elem::F32, [sum]) => Ok(vec![rewriter.convert(*sum, DType::F32)?]),
            _ => Ok(sums),
        }
    }
}

/// The element type of the weights, if there are any.
fn weights(call: &OpCall) -> Result<Option<Elem>> {
    if call.is_none("weights")? {
        return Ok(None);
    }
    let sizes = call.tensor("self")?.sizes.as_ref();
    // Of no elements the result is of int64, weights or not.
    if !sizes.is_some_and(|sizes| sizes.iter().all(|dim| dim.known().is_some_and(|n| n > 0))) {
        return Err(Diagnostic::unsupported("with weights, types must imply that 'self' is not empty"));
    }
    if call.rank("weights")? != 1 {
        return Err(Diagnostic::unsupported("weights are a vector"));
    }
    call.elem("weights").map(Some)
}

/// How many bins the result has.
fn bins(
    call: &OpCall,
    rewriter: &mut Rewriter<'_>,
    elem: Elem,
    [tensor, n]: [ValueId; 2],
) -> Result<ValueId> {
    let limit = rewriter.empty(&[], DType::I64)?;
    let least = call.operand("minlength")?;
    match rewriter.launch("bincount.bins", most(elem), &[limit, tensor, n, least])?[..] {
        [limit] => rewriter.value("aten::Int", &[limit]),
        _ => Err(Diagnostic::internal("the kernel stores one number")),
    }
}

/// `out[0] = max(least, max(x) + 1)`; ends with an error where there is a negative number.
fn most(elem: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::I64, "out"), b.buffer(elem, "x"));
    let (n, least) = (b.scalar(Elem::I64, "n"), b.scalar(Elem::I64, "least"));
    let zero = b.index(0);
    let fits = b.compare(Compare::Ge, least, zero);
    b.require(fits, "minlength should be >= 0");
    let most = b.fold(n, least, "i", |b, i, most| {
        let loaded = b.load(x, i);
        let value = b.convert(loaded, Elem::I64);
        let counts = b.compare(Compare::Ge, value, zero);
        b.require(counts, "bincount only supports 1-d non-negative integral inputs.");
        let one = b.index(1);
        let next = b.binary(Binary::Add, value, one);
        b.binary(Binary::Max, most, next)
    });
    b.store(out, zero, most);
    b.finish()
}

/// `out[x[i]] += 1`
fn count(elem: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::I64, "out"), b.buffer(elem, "x"));
    let n = b.scalar(Elem::I64, "n");
    b.for_each(n, Mark::Serial, "i", |b, i| {
        let loaded = b.load(x, i);
        let (bin, one) = (b.convert(loaded, Elem::I64), b.index(1));
        b.accumulate(Binary::Add, out, bin, one);
    });
    b.finish()
}

/// `out[x[i]] += weights[i]`, in float64.
fn weigh(elem: Elem, weight: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x, weights) = (b.buffer(Elem::F64, "out"), b.buffer(elem, "x"), b.buffer(weight, "weights"));
    let (n, length) = (b.scalar(Elem::I64, "n"), b.scalar(Elem::I64, "length"));
    let same = b.compare(Compare::Eq, n, length);
    b.require(same, "weights should be 1-d and have the same length as input");
    b.for_each(n, Mark::Serial, "i", |b, i| {
        let (loaded, weight) = (b.load(x, i), b.load(weights, i));
        let (bin, weight) = (b.convert(loaded, Elem::I64), b.convert(weight, Elem::F64));
        b.accumulate(Binary::Add, out, bin, weight);
    });
    b.finish()
}
