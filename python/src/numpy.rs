//! Arrays of NumPy by its C interface. NumPy's buffers and `asarray` take several times as long; they serve the remaining cases
//! here: elements of other kinds, foreign byte order.

#![allow(unsafe_code, reason = "NumPy's interface is one of C; each block says why it is sound")]

use flambeau::tensor::guest::Described;
use flambeau::tensor::{DType, Pin, Tensor};
use numpy::npyffi::{NPY_ARRAY_WRITEABLE, NPY_TYPES, NpyTypes, PY_ARRAY_API, get_type_object};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use std::ffi::c_int;

/// Elements that NumPy and tensors both have, by NumPy's number.
const ELEMENTS: &[(NPY_TYPES, DType)] = &[
    (NPY_TYPES::NPY_BOOL, DType::Bool),
    (NPY_TYPES::NPY_BYTE, DType::I8),
    (NPY_TYPES::NPY_UBYTE, DType::U8),
    (NPY_TYPES::NPY_SHORT, DType::I16),
    (NPY_TYPES::NPY_INT, DType::I32),
    (NPY_TYPES::NPY_LONG, DType::I64),
    (NPY_TYPES::NPY_HALF, DType::F16),
    (NPY_TYPES::NPY_FLOAT, DType::F32),
    (NPY_TYPES::NPY_DOUBLE, DType::F64),
    (NPY_TYPES::NPY_CFLOAT, DType::C64),
    (NPY_TYPES::NPY_CDOUBLE, DType::C128),
];

/// An array that keeps its memory as long as this lives.
pub(crate) struct Held(Option<Py<PyAny>>);

impl Drop for Held {
    fn drop(&mut self) {
        // Threads of the engine drop tensors, too.
        Python::attach(|_| drop(self.0.take()));
    }
}

/// What an object whose class is called `ndarray` has in memory; None where the buffer protocol must say.
pub(crate) fn describe(object: &Bound<'_, PyAny>) -> Option<(Described, Held)> {
    if !is_array(object) {
        return None;
    }
    // SAFETY: the class is NumPy's own.
    let array = unsafe { object.cast_unchecked::<PyUntypedArray>() };
    let kind = array.dtype();
    let (_, dtype) = ELEMENTS.iter().find(|(number, _)| *number as c_int == kind.num())?;
    if !matches!(kind.byteorder(), b'=' | b'|' | b'<') || cfg!(target_endian = "big") {
        return None;
    }
    // SAFETY: the array is alive, and Python's lock is held.
    let (address, flags) = unsafe {
        let inner = array.as_array_ptr();
        ((*inner).fields.data as usize, (*inner).fields.flags)
    };
    let itemsize = dtype.size() as isize;
    let whole = array.strides().iter().all(|stride| stride % itemsize == 0);
    if !whole || !address.is_multiple_of(dtype.size().clamp(1, 8)) {
        return None;
    }
    let described = Described {
        address,
        dtype: *dtype,
        sizes: array.shape().iter().map(|n| *n as i64).collect(),
        strides: array.strides().iter().map(|n| (n / itemsize) as i64).collect(),
        readonly: flags & NPY_ARRAY_WRITEABLE == 0,
    };
    Some((described, Held(Some(object.clone().unbind()))))
}

static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Whether an object is of NumPy's class of arrays itself. Other libraries call classes so, too, and may be here without NumPy.
fn is_array(object: &Bound<'_, PyAny>) -> bool {
    let class = crate::errors::imported(object.py(), &CLASS, "numpy", "ndarray");
    class.is_ok_and(|class| object.get_type().is(&class))
}

/// The same without a look for the class: false where none was met yet.
pub(crate) fn is_known_array(object: &Bound<'_, PyAny>) -> bool {
    CLASS.get(object.py()).is_some_and(|class| object.get_type().is(class))
}

/// The owner of the memory of an array over a tensor.
#[pyclass(name = "Memory", module = "flambeau", frozen)]
struct Memory {
    _pin: Pin,
}

/// An array over a tensor's memory; None for elements that are left to the buffer protocol.
pub(crate) fn array_over<'py>(py: Python<'py>, tensor: &Tensor) -> PyResult<Option<Bound<'py, PyAny>>> {
    let meta = tensor.snapshot();
    let Some((number, _)) = ELEMENTS.iter().find(|(_, dtype)| *dtype == meta.dtype) else {
        return Ok(None);
    };
    let itemsize = meta.dtype.size();
    let pin = meta.storage.pin().map_err(crate::errors::plain)?;
    let address = pin.address().wrapping_add(meta.layout.offset * itemsize);
    let mut sizes: Vec<isize> = meta.layout.sizes.iter().map(|n| *n as isize).collect();
    let mut strides: Vec<isize> =
        meta.layout.strides.iter().map(|n| *n as isize * itemsize as isize).collect();
    let base = Py::new(py, Memory { _pin: pin })?;
    // SAFETY: sizes and strides have one entry a dimension and stay within the pinned memory, as the tensor's layout does; the
    // array's base keeps the pin as long as the array lives. NumPy takes over the references to the kind of element and the
    // base, and gives a new one to the array, or none with an error set.
    unsafe {
        let class = get_type_object(py, NpyTypes::PyArray_Type);
        let kind = PY_ARRAY_API.PyArray_DescrFromType(py, *number as c_int);
        let array = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            class,
            kind,
            sizes.len() as c_int,
            sizes.as_mut_ptr(),
            strides.as_mut_ptr(),
            address.cast(),
            NPY_ARRAY_WRITEABLE,
            std::ptr::null_mut(),
        );
        let array = Bound::from_owned_ptr_or_err(py, array)?;
        if PY_ARRAY_API.PyArray_SetBaseObject(py, array.as_ptr().cast(), base.into_ptr()) != 0 {
            return Err(PyErr::fetch(py));
        }
        Ok(Some(array))
    }
}
