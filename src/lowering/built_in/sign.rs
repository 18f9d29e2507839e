//! `aten::signbit` and `aten::copysign` by `loop::bitcast`: the sign of a float is its highest bit, that of NaN and 0 included.

use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Builder, Elem, Mark};
use crate::dialects::scalar::{Binary, Compare};
use crate::ir::{Dim, Graph, ValueId};
use crate::lowering::by_op::{Lowering, OpCall, Ops, Rewriter};
use crate::tensor::Scalar;

/// Whether the sign is set.
pub(super) struct SignBit;
/// One number with the sign of another.
pub(super) struct CopySign;

impl Lowering for SignBit {
    fn name(&self) -> &str {
        "signbit-by-bitcast"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::signbit")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = call.elem("self")?;
        let bits = bits(elem).ok_or_else(|| Diagnostic::unsupported("takes floats"))?;
        in_rows(call, "self")?;
        let (x, sizes) = operand(call, rewriter, "self")?;
        let (out, n) = (rewriter.empty(&sizes, Elem::Bool.dtype())?, rewriter.numel(x)?);
        rewriter.launch("signbit.bits", is_set(elem, bits), &[out, x, n])
    }
}

impl Lowering for CopySign {
    fn name(&self) -> &str {
        "copysign-by-bitcast"
    }

    fn ops(&self) -> Ops {
        Ops::named("aten::copysign.Tensor")
    }

    fn lower(&self, call: &OpCall, rewriter: &mut Rewriter<'_>) -> Result<Vec<ValueId>> {
        let elem = call.elem("self")?;
        let bits = bits(elem).filter(|_| call.elem("other").is_ok_and(|other| other == elem));
        let bits = bits.ok_or_else(|| Diagnostic::unsupported("takes floats of one dtype"))?;
        ["self", "other"].into_iter().try_for_each(|name| in_rows(call, name))?;
        let [own, other] = ["self", "other"].map(|name| call.tensor(name).map(|t| t.sizes.clone()));
        let (own, other) = (own?.unwrap_or_default(), other?.unwrap_or_default());
        if own != other || own.contains(&Dim::Unknown) {
            return Err(Diagnostic::unsupported("types must imply that both operands have the same sizes"));
        }
        let ((x, sizes), (y, _)) = (operand(call, rewriter, "self")?, operand(call, rewriter, "other")?);
        let (out, n) = (rewriter.empty(&sizes, elem.dtype())?, rewriter.numel(x)?);
        rewriter.launch("copysign.bits", copied(elem, bits), &[out, x, y, n])
    }
}

/// The integer that has the bits of a float.
fn bits(elem: Elem) -> Option<Elem> {
    match elem {
        Elem::F16 | Elem::BF16 => Some(Elem::I16),
        Elem::F32 => Some(Elem::I32),
        Elem::F64 => Some(Elem::I64),
        _ => None,
    }
}

/// An elementwise result lies as its operand does, and kernels store row by row.
fn in_rows(call: &OpCall, name: &str) -> Result<()> {
    match call.rank(name)? < 2 || call.is_row_major(name)? {
        true => Ok(()),
        false => Err(Diagnostic::unsupported(format!(
            "types must imply that elements of '{name}' are in row-major order"
        ))),
    }
}

/// An operand in order of rows, and its sizes.
fn operand(call: &OpCall, rewriter: &mut Rewriter<'_>, name: &str) -> Result<(ValueId, Vec<ValueId>)> {
    let tensor = rewriter.contiguous(call.operand(name)?)?;
    let sizes = rewriter.sizes(tensor, 0..call.rank(name)?)?;
    Ok((tensor, sizes))
}

/// `out[i] = bits(x[i]) < 0`
fn is_set(elem: Elem, bits: Elem) -> Graph {
    let mut b = Builder::new();
    let (out, x) = (b.buffer(Elem::Bool, "out"), b.buffer(elem, "x"));
    let n = b.scalar(Elem::I64, "n");
    b.for_each(n, Mark::ParallelVector, "i", |b, i| {
        let value = b.load(x, i);
        let (value, zero) = (b.bitcast(value, bits), b.number(0, bits));
        let set = b.compare(Compare::Lt, value, zero);
        b.store(out, i, set);
    });
    b.finish()
}

/// `out[i]` has the highest bit of `y[i]` and the others of `x[i]`.
fn copied(elem: Elem, bits: Elem) -> Graph {
    let mut b = Builder::new();
    let [out, x, y] = ["out", "x", "y"].map(|name| b.buffer(elem, name));
    let n = b.scalar(Elem::I64, "n");
    let [least, most] = bits.int_range().unwrap_or_default();
    b.for_each(n, Mark::ParallelVector, "i", |b, i| {
        let [value, sign] = [(x, most), (y, least)].map(|(buffer, mask)| {
            let loaded = b.load(buffer, i);
            let (raw, mask) = (b.bitcast(loaded, bits), b.constant(Scalar::Int(mask), bits));
            b.binary(Binary::And, raw, mask)
        });
        let both = b.binary(Binary::Or, value, sign);
        let result = b.bitcast(both, elem);
        b.store(out, i, result);
    });
    b.finish()
}
