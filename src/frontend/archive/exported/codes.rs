//! Numbers that `torch.export` has for dtypes, layouts and memory formats, as the codes that operators take.

use super::schema::{STRIDED, SymInt};
use crate::diag::{Diagnostic, Result};
use crate::tensor::DType;

/// The dtype of a number.
pub(super) fn dtype(number: i64) -> Result<DType> {
    let name = match number {
        1 => "uint8",
        2 => "int8",
        3 => "int16",
        4 => "int32",
        5 => "int64",
        6 => "float16",
        7 => "float32",
        8 => "float64",
        9 => "complex32",
        10 => "complex64",
        11 => "complex128",
        12 => "bool",
        13 => "bfloat16",
        28 => "uint16",
        29 => "float8_e4m3fn",
        30 => "float8_e5m2",
        31 => "float8_e4m3fnuz",
        32 => "float8_e5m2fnuz",
        33 => "float8_e8m0fnu",
        34 => "uint32",
        35 => "uint64",
        _ => "",
    };
    DType::from_name(name).ok_or_else(|| {
        Diagnostic::unsupported(format!("the dtype with number {number} in an exported program"))
    })
}

/// The code of a memory format.
pub(super) fn memory_format(number: i64) -> Result<i64> {
    match number {
        1 => Ok(0),
        2 => Ok(2),
        3 => Ok(3),
        4 => Ok(1),
        _ => Err(Diagnostic::input(format!("there is no memory format with number {number}"))),
    }
}

/// The code of a layout: all tensors have strides here.
pub(super) fn layout(number: i64) -> Result<i64> {
    match number {
        STRIDED => Ok(0),
        _ => Err(Diagnostic::unsupported(format!(
            "the layout with number {number} in an exported program: only strided tensors can be had"
        ))),
    }
}

/// A size that must be known.
pub(super) fn known(size: &SymInt) -> Result<i64> {
    match size {
        SymInt::Int(size) => Ok(*size),
        SymInt::Expr(symbolic) => Err(Diagnostic::input(format!(
            "a stored tensor has the size `{}`, which is not a number",
            symbolic.expr_str
        ))),
    }
}
