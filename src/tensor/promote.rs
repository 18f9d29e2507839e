//! Type promotion: the dtype of an operation over tensors and numbers of several dtypes.

use super::{DType, Scalar, Tensor};
use crate::diag::{Diagnostic, Result};

/// The smallest dtype that both promote to (`torch.promote_types`).
pub fn promote_types(a: DType, b: DType) -> DType {
    use DType::*;
    if a == b {
        return a;
    }
    let rank = |d: DType| match d {
        Bool => 0,
        U8 | I8 | I16 | I32 | I64 | U16 | U32 | U64 => 1,
        F16 | BF16 | F32 | F64 => 2,
        C32 | C64 | C128 => 3,
        _ => 4,
    };
    let (low, high) = if rank(a) <= rank(b) { (a, b) } else { (b, a) };
    match (rank(low), rank(high)) {
        (0, _) => high,
        (1, 1) => promote_integers(a, b),
        (1, _) => high,
        (2, 2) => match (a, b) {
            (F16, BF16) | (BF16, F16) => F32,
            _ if a == F64 || b == F64 => F64,
            _ => F32,
        },
        (2, 3) => match (low, high) {
            (F64, _) | (_, C128) => C128,
            (F32 | BF16, _) | (_, C64) => C64,
            _ => C32,
        },
        (3, 3) => {
            if a == C128 || b == C128 {
                C128
            } else {
                C64
            }
        }
        _ => high,
    }
}

fn promote_integers(a: DType, b: DType) -> DType {
    match (a, b) {
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        (DType::U8, other) | (other, DType::U8) => other,
        // Refused, where operands meet, by `check_promotion`.
        _ if a.is_rare() => a,
        _ if b.is_rare() => b,
        // The codes of the signed integers grow with their width.
        _ => a.max(b),
    }
}

/// Fails, in PyTorch's wording, where two dtypes have no common one: few go with floats of 8 bits and wide unsigned integers.
pub fn check_promotion(a: DType, b: DType) -> Result<()> {
    if a == b || !a.is_rare() && !b.is_rare() {
        return Ok(());
    }
    let refuse = |kind: &str| {
        Err(Diagnostic::runtime(format!(
            "Promotion for {kind} is not supported, attempted to promote {} and {}",
            a.type_name(),
            b.type_name()
        )))
    };
    if a.is_float8() || b.is_float8() {
        return refuse("Float8 Types");
    }
    let other = if a.is_wide_unsigned() { b } else { a };
    if other.is_floating() { Ok(()) } else { refuse("uint16, uint32, uint64 types") }
}

/// As [`check_promotion`], for all operands of an operation: tensors with dimensions, of rank 0, and numbers.
pub fn check_promotions(operands: &[(DType, Rank)]) -> Result<()> {
    if !operands.iter().any(|(dtype, _)| dtype.is_rare()) {
        return Ok(());
    }
    let of = |rank: Rank| -> Result<Option<DType>> {
        operands.iter().filter(|(_, r)| *r == rank).map(|(d, _)| *d).try_fold(
            None,
            |seen: Option<DType>, dtype| {
                let Some(seen) = seen else { return Ok(Some(dtype)) };
                check_promotion(seen, dtype)?;
                Ok(Some(promote_types(seen, dtype)))
            },
        )
    };
    let mut common: Option<DType> = None;
    for lower in [of(Rank::Dims)?, of(Rank::Zero)?, of(Rank::Number)?] {
        if let (Some(h), Some(l)) = (common, lower) {
            let is_complex = l.is_complex() && (h.is_floating() || h.is_float8());
            if is_complex && h.is_float8() {
                return Err(Diagnostic::runtime(format!("Unknown Complex ScalarType for {}", h.type_name())));
            }
            if !is_complex && category(l) > category(h) && !(h.is_wide_unsigned() && l.is_complex()) {
                check_promotion(h, l)?;
            }
        }
        common = combine(common, lower);
    }
    Ok(())
}

/// What counts more in promotion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// A tensor with dimensions.
    Dims,
    /// A tensor of rank 0.
    Zero,
    /// A number.
    Number,
}

/// What takes part in promotion: tensors with dimensions count more than rank 0, and those more than numbers.
#[derive(Clone, Debug)]
pub enum Operand {
    /// A tensor.
    Tensor(Tensor),
    /// A Python number.
    Number(Scalar),
}

impl From<Tensor> for Operand {
    fn from(tensor: Tensor) -> Operand {
        Operand::Tensor(tensor)
    }
}

impl From<Scalar> for Operand {
    fn from(scalar: Scalar) -> Operand {
        Operand::Number(scalar)
    }
}

/// The dtype of an elementwise operation over operands, with PyTorch's three priorities. None without operands.
pub fn result_type(operands: &[Operand]) -> Option<DType> {
    common_dtype(operands.iter().map(|operand| match operand {
        Operand::Tensor(t) if t.rank() > 0 => (t.dtype(), Rank::Dims),
        Operand::Tensor(t) => (t.dtype(), Rank::Zero),
        Operand::Number(s) => (number_dtype(*s), Rank::Number),
    }))
}

/// As [`result_type`], for operands of which this is known: numbers have the default dtype of their kind.
pub fn common_dtype(operands: impl IntoIterator<Item = (DType, Rank)>) -> Option<DType> {
    let (mut dims, mut zero, mut numbers) = (None, None, None);
    for (dtype, rank) in operands {
        let slot = match rank {
            Rank::Dims => &mut dims,
            Rank::Zero => &mut zero,
            Rank::Number => &mut numbers,
        };
        *slot = Some(slot.map_or(dtype, |seen| promote_types(seen, dtype)));
    }
    combine(combine(dims, zero), numbers)
}

/// Numbers promote as the default dtype of their kind.
fn number_dtype(number: Scalar) -> DType {
    match number {
        Scalar::Float(_) => DType::F32,
        Scalar::Complex(_) => DType::C64,
        other => other.dtype(),
    }
}

/// bool < integer < float < complex
fn category(d: DType) -> u8 {
    match d {
        DType::Bool => 0,
        d if d.is_integral() => 1,
        d if d.is_complex() => 3,
        _ => 2,
    }
}

/// The higher priority wins unless the lower is of a higher category (bool < integer < float < complex).
fn combine(higher: Option<DType>, lower: Option<DType>) -> Option<DType> {
    match (higher, lower) {
        // A float keeps its width when a number or a tensor of rank 0 makes it complex.
        (Some(h), Some(l)) if h.is_floating() && l.is_complex() => Some(h.to_complex()),
        (Some(h), Some(l)) if h.is_wide_unsigned() && l.is_complex() => Some(l),
        (Some(h), Some(l)) if category(l) > category(h) => Some(promote_types(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs() {
        assert_eq!(promote_types(DType::U8, DType::I8), DType::I16);
        assert_eq!(promote_types(DType::I64, DType::F16), DType::F16);
        assert_eq!(promote_types(DType::F16, DType::BF16), DType::F32);
        assert_eq!(promote_types(DType::F64, DType::C64), DType::C128);
        assert_eq!(promote_types(DType::Bool, DType::U8), DType::U8);
    }

    #[test]
    fn a_number_does_not_widen_a_tensor_of_its_category() {
        let t = Tensor::zeros(DType::F16, &[2]).expect("small");
        assert_eq!(result_type(&[t.clone().into(), Scalar::Float(1.0).into()]), Some(DType::F16));
        let i = Tensor::zeros(DType::I32, &[2]).expect("small");
        assert_eq!(result_type(&[i.into(), Scalar::Float(1.0).into()]), Some(DType::F32));
        let z = Tensor::zeros(DType::F64, &[]).expect("small");
        assert_eq!(result_type(&[t.into(), z.into()]), Some(DType::F16));
    }
}
