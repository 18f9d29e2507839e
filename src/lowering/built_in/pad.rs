//! `aten::constant_pad_nd` by `loop::if`: an element inside is loaded, one outside is not.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Graph, ValueId};
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};

pub(super) struct ConstantPad;

impl Lowering for ConstantPad {
    fn name(&self) -> &str {
        "pad-by-if"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::constant_pad_nd")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let (elem, rank, pad) = (call.elem("self")?, call.rank("self")?, call.ints("pad")?);
        if !elem.is_int() && !matches!(elem, Elem::F32 | Elem::F64) {
            return Err(Diagnostic::unsupported("pads integers, float32 and float64"));
        }
        if rank == 0 || pad.len() > 2 * rank || !pad.len().is_multiple_of(2) || pad.iter().any(|n| *n < 0) {
            return Err(Diagnostic::unsupported("'pad' adds elements at dimensions of 'self'"));
        }
        // An image whose channels lie innermost stays one.
        if rank > 3 && !call.is_row_major("self")? {
            return Err(Diagnostic::unsupported("types must imply that elements are in row-major order"));
        }
        let tensor = rewriter.contiguous(call.operand("self")?)?;
        let (mut sizes, mut arguments) = (Vec::new(), Vec::new());
        for dim in 0..rank {
            let [before, after] = around(&pad, rank, dim);
            let (size, more) = (rewriter.size(tensor, dim)?, rewriter.int(before.saturating_add(after)));
            sizes.push(rewriter.value("aten::add", &[size, more])?);
            arguments.push(size);
        }
        let out = rewriter.empty(&sizes, elem.dtype())?;
        let mut all = vec![out, tensor, call.operand("value")?];
        all.extend(sizes.iter().chain(&arguments));
        rewriter.launch("pad.constant", kernel(elem, rank, &pad), &all)
    }
}

/// What is added before and after a dimension; the list begins with the last one.
fn around(pad: &[i64], rank: usize, dim: usize) -> [i64; 2] {
    let at = 2 * (rank - 1 - dim);
    [pad.get(at).copied().unwrap_or(0), pad.get(at + 1).copied().unwrap_or(0)]
}

/// Parameters: both buffers, the number, the sizes of the result, the sizes of the operand.
fn kernel(elem: Elem, rank: usize, pad: &[i64]) -> Graph {
    let mut b = Builder::new();
    let (out, x, value) = (b.buffer(elem, "out"), b.buffer(elem, "x"), b.scalar(elem, "value"));
    let [large, own] = ["large", "own"]
        .map(|name| (0..rank).map(|d| b.scalar(Elem::I64, &format!("{name}{d}"))).collect::<Vec<_>>());
    let before: Vec<i64> = (0..rank).map(|dim| around(pad, rank, dim)[0]).collect();
    let shape = Shape { out, x, value, large, own, before };
    let start = b.index(0);
    let inside = b.constant(crate::tensor::Scalar::Bool(true), Elem::Bool);
    level(&mut b, &shape, 0, [start, start, inside]);
    b.finish()
}

struct Shape {
    out: ValueId,
    x: ValueId,
    value: ValueId,
    large: Vec<ValueId>,
    own: Vec<ValueId>,
    before: Vec<i64>,
}

/// The loop over a dimension and those within; with the index into both so far, and whether it is inside.
fn level(b: &mut Builder, shape: &Shape, dim: usize, [to, from, inside]: [ValueId; 3]) {
    let Some((large, own)) = shape.large.get(dim).zip(shape.own.get(dim)) else {
        b.begin_if(inside);
        let loaded = b.load(shape.x, from);
        b.begin_else(&[loaded]);
        let chosen = b.end_if(&[shape.value]);
        b.store(shape.out, to, chosen.first().copied().unwrap_or(shape.value));
        return;
    };
    b.for_each(*large, if dim == 0 { Mark::Parallel } else { Mark::Serial }, &format!("i{dim}"), |b, i| {
        let (shift, zero) = (b.index(shape.before[dim]), b.index(0));
        let at = b.binary(Binary::Sub, i, shift);
        let (low, high) = (b.compare(Compare::Ge, at, zero), b.compare(Compare::Lt, at, *own));
        let both = b.binary(Binary::And, low, high);
        let inside = b.binary(Binary::And, inside, both);
        let (to, from) = (b.at(to, *large, i), b.at(from, *own, at));
        level(b, shape, dim + 1, [to, from, inside]);
    });
}
