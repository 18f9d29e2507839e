//! Checks that programs of `torch.export` carry: they compute nothing, and raise where something does not hold. Messages are
//! PyTorch's.

use super::number_convert;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, Effects, OpDef, Outputs, host, one};
use crate::tensor::DType;
use smallvec::SmallVec;

/// The smallest maximum that a size may be given.
const LEAST_MAXIMUM: i64 = 2;

/// The rows.
pub static OPS: &[OpDef] = &[
    assert("aten::_assert_scalar(Scalar self, str assert_msg) -> ()", |a| {
        scalar(a)?;
        Ok(SmallVec::new())
    })
    .doc("raises where a number is zero"),
    assert("aten::_functional_assert_scalar(Scalar self, str assert_msg, Tensor dep_token) -> Tensor", |a| {
        scalar(a)?;
        one(a.value(2)?.clone())
    })
    .doc("raises where a number is zero; gives its last argument"),
    assert("aten::_assert_async(Tensor self) -> ()", |a| {
        truth(a, "Expected Tensor with single nonzero value, but got zero")?;
        Ok(SmallVec::new())
    })
    .doc("raises where a tensor of one element is zero"),
    assert("aten::_assert_async.msg(Tensor self, str assert_msg) -> ()", |a| {
        truth(a, a.str(1)?)?;
        Ok(SmallVec::new())
    })
    .doc("raises where a tensor of one element is zero"),
    assert("aten::_functional_assert_async.msg(Tensor self, str assert_msg, Tensor dep_token) -> Tensor", |a| {
        truth(a, a.str(1)?)?;
        one(a.value(2)?.clone())
    })
    .doc("raises where a tensor of one element is zero; gives its last argument"),
    assert(
        "aten::_assert_tensor_metadata(Tensor a, SymInt[]? size=None, SymInt[]? stride=None, \
         ScalarType? dtype=None, *, Device? device=None, Layout? layout=None) -> ()",
        metadata,
    )
    .doc("raises where sizes, strides, dtype, device or layout are others"),
    assert("aten::sym_constrain_range(Scalar size, *, int? min=None, int? max=None) -> ()", |a| {
        within(a, i64::MIN)?;
        Ok(SmallVec::new())
    })
    .doc("raises where a number is not between two others"),
    assert("aten::sym_constrain_range_for_size(Scalar size, *, int? min=None, int? max=None) -> ()", |a| {
        size_within(a)?;
        Ok(SmallVec::new())
    })
    .doc("raises where a size is not between two others"),
    assert(
        "aten::_functional_sym_constrain_range(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor",
        |a| {
            within(a, i64::MIN)?;
            one(a.value(3)?.clone())
        },
    )
    .doc("raises where a number is not between two others; gives its last argument"),
    assert(
        "aten::_functional_sym_constrain_range_for_size(Scalar size, int? min, int? max, Tensor dep_token) -> Tensor",
        |a| {
            size_within(a)?;
            one(a.value(3)?.clone())
        },
    )
    .doc("raises where a size is not between two others; gives its last argument"),
];

/// A check: nothing that comes before or after it may pass it, and it stays where its result has no use.
const fn assert(schema: &'static str, eval: crate::dialects::Kernel) -> OpDef {
    host(schema, eval).effects(Effects::WRITES_WORLD)
}

fn scalar(a: &Args<'_>) -> Result<()> {
    let message = a.str(1)?;
    match a.scalar(0)?.to_f64() == 0.0 {
        true if message.is_empty() => Err(Diagnostic::runtime("Assertion is failed")),
        true => Err(Diagnostic::runtime(message)),
        false => Ok(()),
    }
}

fn truth(a: &Args<'_>, message: &str) -> Result<()> {
    if number_convert::truth(a.tensor(0)?)? { Ok(()) } else { Err(Diagnostic::runtime(message)) }
}

fn metadata(a: &Args<'_>) -> Result<Outputs> {
    let tensor = a.tensor(0)?;
    let layout = tensor.layout();
    for (n, what, actual) in [(1, "sizes", &layout.sizes), (2, "strides", &layout.strides)] {
        if let Some(expected) = a.opt_ints(n)?.filter(|expected| **expected != **actual) {
            let message =
                format!("Tensor {what} mismatch! Expected: {expected:?}, Got: {:?}", actual.as_slice());
            return Err(Diagnostic::runtime(message));
        }
    }
    if let Some(expected) = a.opt_dtype(3)?.filter(|expected| *expected != tensor.dtype()) {
        let message = format!(
            "Tensor dtype mismatch! Expected: {}, Got: {}",
            scalar_type(expected),
            tensor.dtype().cpp_name()
        );
        return Err(Diagnostic::runtime(message));
    }
    if let Some(expected) = a.opt_device(4)?.filter(|expected| *expected != tensor.device()) {
        let message = format!("Tensor device mismatch! Expected: {expected}, Got: {}", tensor.device());
        return Err(Diagnostic::runtime(message));
    }
    if a.opt_int(5)?.is_some_and(|expected| expected != 0) {
        return Err(Diagnostic::runtime("Tensor layout mismatch! Expected: Sparse, Got: Strided"));
    }
    Ok(SmallVec::new())
}

/// The name of a dtype in C++.
fn scalar_type(dtype: DType) -> &'static str {
    match dtype {
        DType::U8 => "Byte",
        DType::I8 => "Char",
        DType::C64 => "ComplexFloat",
        DType::C128 => "ComplexDouble",
        other => other.type_name(),
    }
}

fn within(a: &Args<'_>, least: i64) -> Result<()> {
    let (min, max) = (a.opt_int(1)?.unwrap_or(least), a.opt_int(2)?.unwrap_or(i64::MAX));
    if max < min {
        let message = format!("Max must be greater than or equal to min. Got min={min} max={max}");
        return Err(Diagnostic::runtime(message));
    }
    let value = a.scalar(0)?.to_i64();
    match (min..=max).contains(&value) {
        true => Ok(()),
        false => Err(Diagnostic::runtime(format!("Invalid value range for {value} between [{min}, {max}]."))),
    }
}

fn size_within(a: &Args<'_>) -> Result<()> {
    if let Some(max) = a.opt_int(2)?.filter(|max| *max <= LEAST_MAXIMUM) {
        return Err(Diagnostic::runtime(format!(
            "Max value to constrain_range_for_size must be greater than 2. got: {max}"
        )));
    }
    within(a, 0)
}
