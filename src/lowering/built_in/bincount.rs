//! `aten::bincount` by `loop::accumulate`: one kernel finds how many bins there are, and refuses what cannot be counted; the
//! other counts. On a GPU both run in parallel and combine by atomic instructions; sums of weights are float64, whose order
//! counts, and stay serial.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Graph, ValueId};
use crate::lowering::Target;
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};
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
            return rewriter.launch("bincount.count", count(elem, mark(call)), &[out, tensor, n]);
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

/// How counts may run: combining integers is indivisible, and its order does not count.
fn mark(call: &OpCall) -> Mark {
    if call.target() == Target::Gpu { Mark::Parallel } else { Mark::Serial }
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
    let least = call.operand("minlength")?;
    let (limit, kernel) = match mark(call) {
        Mark::Serial => (rewriter.empty(&[], DType::I64)?, most(elem)),
        _ => (rewriter.zeros(&[], DType::I64)?, most_at_once(elem)),
    };
    match rewriter.launch("bincount.bins", kernel, &[limit, tensor, n, least])?[..] {
        [limit] => {
            let bins = rewriter.value("aten::Int", &[limit])?;
            match mark(call) {
                Mark::Serial => Ok(bins),
                _ => rewriter.value("prim::max", &[bins, least]),
            }
        }
        _ => Err(Diagnostic::internal("the kernel stores one number")),
    }
}

/// `out[0] = max(least, max(x) + 1)`; ends with an error where there is a negative number.
fn most(elem: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::I64, "out"), b.buffer(elem, "x"));
    let (n, least) = (b.scalar(Elem::I64, "n"), b.scalar(Elem::I64, "least"));
    let zero = require_least(&mut b, least);
    let most = b.fold(n, least, "i", |b, i, most| {
        let next = past(b, x, i);
        b.binary(Binary::Max, most, next)
    });
    b.store(out, zero, most);
    b.finish()
}

/// The same in parallel, of an `out[0]` that is 0; `least` is checked and not counted.
fn most_at_once(elem: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::I64, "out"), b.buffer(elem, "x"));
    let (n, least) = (b.scalar(Elem::I64, "n"), b.scalar(Elem::I64, "least"));
    let zero = require_least(&mut b, least);
    b.for_each(n, Mark::Parallel, "i", |b, i| {
        let next = past(b, x, i);
        b.accumulate(Binary::Max, out, zero, next);
    });
    b.finish()
}

/// Ends the kernel where the least number of bins is negative; gives 0.
fn require_least(b: &mut Builder, least: ValueId) -> ValueId {
    let zero = b.index(0);
    let fits = b.compare(Compare::Ge, least, zero);
    b.require(fits, "minlength should be >= 0");
    zero
}

/// `x[i] + 1`; ends the kernel where the element is negative.
fn past(b: &mut Builder, x: ValueId, i: ValueId) -> ValueId {
    let loaded = b.load(x, i);
    let (value, zero, one) = (b.convert(loaded, Elem::I64), b.index(0), b.index(1));
    let counts = b.compare(Compare::Ge, value, zero);
    b.require(counts, "bincount only supports 1-d non-negative integral inputs.");
    b.binary(Binary::Add, value, one)
}

/// `out[x[i]] += 1`
fn count(elem: Elem, mark: Mark) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::I64, "out"), b.buffer(elem, "x"));
    let n = b.scalar(Elem::I64, "n");
    b.for_each(n, mark, "i", |b, i| {
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
