//! Type promotion as PyTorch documents it: a table of pairs of dtypes, and the order in which tensors with dimensions, tensors
//! without and numbers count. It does not know what is computed.

use crate::array::Array;
use crate::{Answer, Outside};
use flambeau_base::tensor::DType::{self, BF16, Bool, C64, C128, F16, F32, F64, I8, I16, I32, I64, U8};
use flambeau_base::tensor::Scalar;

const DTYPES: [DType; 12] = [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128];

/// What each dtype and each other promote to, both in the order of [`DTYPES`].
const TABLE: [[DType; 12]; 12] = [
    [Bool, U8, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [U8, U8, I16, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I8, I16, I8, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I16, I16, I16, I16, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I32, I32, I32, I32, I32, I64, F16, BF16, F32, F64, C64, C128],
    [I64, I64, I64, I64, I64, I64, F16, BF16, F32, F64, C64, C128],
    [F16, F16, F16, F16, F16, F16, F16, F32, F32, F64, C64, C128],
    [BF16, BF16, BF16, BF16, BF16, BF16, F32, BF16, F32, F64, C64, C128],
    [F32, F32, F32, F32, F32, F32, F32, F32, F32, F64, C64, C128],
    [F64, F64, F64, F64, F64, F64, F64, F64, F64, F64, C128, C128],
    [C64, C64, C64, C64, C64, C64, C64, C64, C64, C128, C64, C128],
    [C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128, C128],
];

/// What takes part in an operation.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Tensor(Array),
    Number(Scalar),
}

/// The dtype that two promote to.
pub(crate) fn pair(a: DType, b: DType) -> Answer<DType> {
    let place = |d: DType| DTYPES.iter().position(|other| *other == d).ok_or(Outside::Unknown);
    Ok(TABLE[place(a)?][place(b)?])
}

/// The dtype of an operation. Tensors without dimensions count only where they are of a higher category (bool, integers, floats,
/// complex numbers) than all that have some, numbers only where they are of a higher one than all tensors.
pub(crate) fn common<'a>(operands: impl IntoIterator<Item = &'a Operand>) -> Answer<DType> {
    let mut ranks: [Option<DType>; 3] = [None; 3];
    for operand in operands {
        let (rank, dtype) = match operand {
            Operand::Tensor(a) => (usize::from(a.rank() == 0), a.dtype),
            Operand::Number(Scalar::Bool(_)) => (2, Bool),
            Operand::Number(Scalar::Int(_)) => (2, I64),
            Operand::Number(Scalar::Float(_)) => (2, F32),
            Operand::Number(Scalar::Complex(_)) => (2, C64),
        };
        ranks[rank] = Some(match ranks[rank] {
            Some(known) => pair(known, dtype)?,
            None => dtype,
        });
    }
    let mut found: Option<DType> = None;
    for lower in ranks.into_iter().flatten() {
        found = Some(match found {
            None => lower,
            Some(higher) if category(lower) <= category(higher) => higher,
            Some(higher) if category(higher) == 2 => made_complex(higher)?,
            Some(higher) => pair(higher, lower)?,
        });
    }
    found.ok_or(Outside::Unknown)
}

/// Bool, integer, float, complex.
pub(crate) fn category(dtype: DType) -> u8 {
    match dtype {
        Bool => 0,
        U8 | I8 | I16 | I32 | I64 => 1,
        C64 | C128 => 3,
        _ => 2,
    }
}

/// A float keeps its width where something makes it complex.
fn made_complex(dtype: DType) -> Answer<DType> {
    match dtype {
        F64 => Ok(C128),
        F32 | BF16 => Ok(C64),
        _ => Err(Outside::Unknown),
    }
}

/// A dtype, or float32 for one of no floats.
pub(crate) fn floating(dtype: DType) -> DType {
    if category(dtype) < 2 { F32 } else { dtype }
}
