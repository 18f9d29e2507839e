//! Elementwise ops: sizes broadcast, dtypes promote.

use super::{Known, Operands, Results, layouts, one};
use crate::dialects::{Fact, Promote};
use crate::ir::{Dim, TensorType};
use crate::tensor::{DType, promote_types};

/// The rule of the elementwise family.
pub fn elementwise(operands: &Operands<'_>) -> Results {
    let schema = operands.op.schema().ok()?;
    let mut tensors = Vec::new();
    let mut numbers = Vec::new();
    for (argument, known) in schema.arguments.iter().zip(operands.values).filter(|(a, _)| !a.is_out) {
        // Factors like `alpha` and `value` do not take part in promotion.
        if !argument.ty.is_tensor() && (argument.keyword_only || argument.name == "alpha") {
            continue;
        }
        match known {
            Known::Tensor(t) => tensors.push(t),
            Known::Nothing if argument.ty.is_tensor() => return None,
            Known::Number(dtype) if is_number(&argument.ty) => numbers.push(*dtype),
            Known::Float(_) if is_number(&argument.ty) => numbers.push(DType::F64),
            Known::Int(_) if is_number(&argument.ty) => numbers.push(DType::I64),
            Known::Bool(_) if is_number(&argument.ty) => numbers.push(DType::Bool),
            Known::Nothing if is_number(&argument.ty) => return None,
            _ => {}
        }
    }
    let sizes = broadcast_all(&tensors);
    let mut common = promote(&tensors, &numbers);
    // A constant of rank 0 counts as a number there; whether it is a constant is not known here.
    let ranks_high = |second: &TensorType, first: &TensorType| {
        let kind = |t: &TensorType| t.dtype.map(|d| (d.is_complex(), d.is_floating()));
        let may_be_one = |t: &TensorType| t.sizes.as_deref().is_none_or(|s| s.is_empty());
        // Of the same kind it would count only beside another tensor without dimensions.
        let counts = may_be_one(first) && second.dtype != first.dtype;
        may_be_one(second) && (counts || kind(second) != kind(first))
    };
    if let ([first, second], true) =
        (tensors.as_slice(), operands.op.def().facts.contains(&Fact::ConstantIsNumber))
        && ranks_high(second, first)
    {
        common = None;
    }
    let first = tensors.first().and_then(|t| t.dtype);
    if !computes(operands, common, first) {
        return None;
    }
    let dtype = result_dtype(operands, common, first);
    let like = operands.common();
    let mut result = operands.result(&like, dtype, sizes);
    result.strides = layouts::elementwise(operands, &tensors);
    one(result)
}

fn is_number(ty: &crate::ir::Type) -> bool {
    use crate::ir::TypeKind::{self, Complex, Float, Number};
    let ty = match ty.kind() {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    };
    matches!(ty.kind(), Number | Float | Complex)
}

/// Whether the op's meaning has the dtype that it would be computed in; where it has not, it raises and gives nothing.
fn computes(operands: &Operands<'_>, common: Option<DType>, first: Option<DType>) -> bool {
    let def = operands.op.def();
    let float = |d: DType| if d.is_integral() || d == DType::Bool { DType::F32 } else { d };
    let dtype = match def.promote {
        Promote::First => first,
        Promote::Float | Promote::RealFloat => common.map(float),
        Promote::Double => common.map(|d| if d.is_complex() { DType::C128 } else { DType::F64 }),
        Promote::Number => common.map(|d| if d == DType::Bool { DType::I64 } else { d }),
        Promote::Rounding => match operands.get("rounding_mode") {
            Some(Known::Str(_)) => common,
            _ => common.map(float),
        },
        Promote::Common | Promote::Bool | Promote::Real => common,
    };
    let taken = |d: DType| def.accepts.contains(d) || d.is_rare() && def.takes_rare(d);
    dtype.is_none_or(taken)
}

fn result_dtype(operands: &Operands<'_>, common: Option<DType>, first: Option<DType>) -> Option<DType> {
    let float = |d: DType| if d.is_floating() || d.is_complex() { d } else { DType::F32 };
    match operands.op.def().promote {
        Promote::Bool => Some(DType::Bool),
        Promote::First => first,
        Promote::Common => common,
        Promote::Float => common.map(float),
        Promote::Real => common.map(DType::to_real),
        Promote::RealFloat => common.map(|d| float(d).to_real()),
        Promote::Double => common.map(|d| if d.is_complex() { DType::C128 } else { DType::F64 }),
        Promote::Number => common.map(|d| if d == DType::Bool { DType::I64 } else { d }),
        Promote::Rounding => match operands.get("rounding_mode")? {
            Known::None => common.map(float),
            Known::Str(_) => common,
            _ => None,
        },
    }
}

/// The dtype of an operation over tensors and numbers, where it follows.
pub fn promote(tensors: &[&TensorType], numbers: &[DType]) -> Option<DType> {
    let (mut dims, mut zero): (Option<DType>, Option<DType>) = (None, None);
    for t in tensors {
        let dtype = t.dtype?;
        let one_dtype = tensors.iter().all(|other| other.dtype == Some(dtype));
        let slot = match &t.sizes {
            Some(sizes) if sizes.is_empty() => &mut zero,
            Some(_) => &mut dims,
            // Whether it has dimensions matters only where dtypes differ.
            None if one_dtype => &mut dims,
            None => return None,
        };
        *slot = Some(slot.map_or(dtype, |seen| promote_types(seen, dtype)));
    }
    let number = numbers.iter().map(|d| match d {
        DType::F64 => DType::F32,
        DType::C128 => DType::C64,
        other => *other,
    });
    let number = number.reduce(promote_types);
    combine(combine(dims, zero), number)
}

fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    let category = |d: DType| match d {
        DType::Bool => 0,
        d if d.is_integral() => 1,
        d if d.is_floating() => 2,
        _ => 3,
    };
    match (higher, lower) {
        (Some(h), Some(l)) if h.is_floating() && l.is_complex() => Some(h.to_complex()),
        (Some(h), Some(l)) if category(l) > category(h) => Some(promote_types(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}

/// The common sizes of tensors that broadcast; None where a rank is unknown.
pub fn broadcast_all(tensors: &[&TensorType]) -> Option<Vec<Dim>> {
    let mut out: Vec<Dim> = Vec::new();
    for t in tensors {
        out = broadcast(&out, t.sizes.as_deref()?);
    }
    Some(out)
}

/// The common sizes of two lists of sizes.
pub fn broadcast(a: &[Dim], b: &[Dim]) -> Vec<Dim> {
    let rank = a.len().max(b.len());
    let at =
        |sizes: &[Dim], n: usize| (n + sizes.len()).checked_sub(rank).map_or(Dim::Known(1), |i| sizes[i]);
    let both = |n| match (at(a, n), at(b, n)) {
        (Dim::Known(1), other) | (other, Dim::Known(1)) => other,
        (known @ Dim::Known(_), _) | (_, known @ Dim::Known(_)) => known,
        (a, b) if a == b => a,
        // Each may be 1 and the other not.
        _ => Dim::Unknown,
    };
    (0..rank).map(both).collect()
}

/// The result looks like the first argument and may have another dtype.
pub fn like_first(operands: &Operands<'_>) -> Results {
    let first = operands.first()?;
    let dtype = match operands.dtype("dtype") {
        Ok(asked) => asked.or(first.dtype),
        Err(_) => None,
    };
    let sizes = first.sizes.as_ref().map(|s| s.to_vec());
    one(TensorType { strides: operands.preserved(), ..operands.result(first, dtype, sizes) })
}

/// The first argument with its layout.
pub fn same(operands: &Operands<'_>) -> Results {
    one(operands.first()?.clone())
}
