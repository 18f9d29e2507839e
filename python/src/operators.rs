//! The operators of tensors in Python: each is the same operator in a script.

use crate::eager;
use crate::tensor::PyTensor;
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyComplex, PyFloat, PyInt};

type Any<'py> = Bound<'py, PyAny>;

/// An operator on a tensor and whatever is beside it; Python tries the other side's where that is nothing for us.
pub(crate) fn operator<'py>(sign: &str, left: &Any<'py>, right: &Any<'py>) -> PyResult<Any<'py>> {
    let takes = |x: &Any<'py>| {
        x.is_instance_of::<PyTensor>()
            || x.is_instance_of::<PyInt>()
            || x.is_instance_of::<PyFloat>()
            || x.is_instance_of::<PyComplex>()
            || x.hasattr("__dlpack__").unwrap_or(false)
            || x.hasattr("__array_interface__").unwrap_or(false)
    };
    if !takes(left) || !takes(right) {
        return Ok(left.py().NotImplemented().into_bound(left.py()));
    }
    eager::operator(left.py(), sign, left, right)
}

fn in_place<'py>(target: &Any<'py>, op: &str, other: &Any<'py>) -> PyResult<()> {
    eager::method(target, op, std::slice::from_ref(other), None).map(|_| ())
}

#[pymethods]
impl PyTensor {
    fn __pow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Any<'py>,
        modulo: Option<&Any<'py>>,
    ) -> PyResult<Any<'py>> {
        if modulo.is_some_and(|m| !m.is_none()) {
            return Err(PyTypeError::new_err("pow() of tensors takes no modulo"));
        }
        operator("**", slf.as_any(), other)
    }

    fn __rpow__<'py>(
        slf: &Bound<'py, Self>,
        other: &Any<'py>,
        modulo: Option<&Any<'py>>,
    ) -> PyResult<Any<'py>> {
        if modulo.is_some_and(|m| !m.is_none()) {
            return Err(PyTypeError::new_err("pow() of tensors takes no modulo"));
        }
        operator("**", other, slf.as_any())
    }

    fn __add__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("+", slf.as_any(), other)
    }

    fn __radd__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("+", other, slf.as_any())
    }

    fn __sub__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("-", slf.as_any(), other)
    }

    fn __rsub__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("-", other, slf.as_any())
    }

    fn __mul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("*", slf.as_any(), other)
    }

    fn __rmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("*", other, slf.as_any())
    }

    fn __truediv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("/", slf.as_any(), other)
    }

    fn __rtruediv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("/", other, slf.as_any())
    }

    fn __floordiv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("//", slf.as_any(), other)
    }

    fn __rfloordiv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("//", other, slf.as_any())
    }

    fn __mod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("%", slf.as_any(), other)
    }

    fn __rmod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("%", other, slf.as_any())
    }

    fn __matmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("@", slf.as_any(), other)
    }

    fn __rmatmul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("@", other, slf.as_any())
    }

    fn __and__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("&", slf.as_any(), other)
    }

    fn __rand__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("&", other, slf.as_any())
    }

    fn __or__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("|", slf.as_any(), other)
    }

    fn __ror__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("|", other, slf.as_any())
    }

    fn __xor__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("^", slf.as_any(), other)
    }

    fn __rxor__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("^", other, slf.as_any())
    }

    fn __lshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("<<", slf.as_any(), other)
    }

    fn __rlshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator("<<", other, slf.as_any())
    }

    fn __rshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator(">>", slf.as_any(), other)
    }

    fn __rrshift__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<Any<'py>> {
        operator(">>", other, slf.as_any())
    }

    fn __iadd__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "add_", other)
    }

    fn __isub__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "sub_", other)
    }

    fn __imul__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "mul_", other)
    }

    fn __itruediv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "div_", other)
    }

    fn __ifloordiv__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "floor_divide_", other)
    }

    fn __imod__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "remainder_", other)
    }

    fn __iand__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "bitwise_and_", other)
    }

    fn __ior__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "bitwise_or_", other)
    }

    fn __ixor__<'py>(slf: &Bound<'py, Self>, other: &Any<'py>) -> PyResult<()> {
        in_place(slf.as_any(), "bitwise_xor_", other)
    }
}
