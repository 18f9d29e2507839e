//! Memory of Python objects by the buffer protocol, in both directions.

#![allow(unsafe_code, reason = "Python's buffer protocol is a C interface; each block says why it is sound")]

use crate::tensor::PyTensor;
use flambeau::tensor::guest::Described;
use flambeau::tensor::{DType, HostBytes, Pin, Tensor};
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use std::ffi::{CStr, CString, c_int};

/// A buffer that was asked for; it is given back when this is dropped.
pub(crate) struct Held(Box<ffi::Py_buffer>);

// SAFETY: the buffer's memory belongs to no thread; it is released under Python's lock.
unsafe impl Send for Held {}
// SAFETY: as above; shared references only read the description.
unsafe impl Sync for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        // SAFETY: the view was filled by PyObject_GetBuffer and is released once, with Python's lock held.
        Python::attach(|_| unsafe { ffi::PyBuffer_Release(&mut *self.0) });
    }
}

impl HostBytes for Held {
    fn bytes(&self) -> &[u8] {
        if self.0.buf.is_null() || self.0.len <= 0 {
            return &[];
        }
        // SAFETY: a contiguous buffer has `len` bytes at `buf` as long as it is held.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast::<u8>(), self.0.len as usize) }
    }
}

/// What an object has in memory; None where it has no buffer, or one that tensors cannot share: of other elements, with
/// strides that are not a multiple of an element, or not aligned.
pub(crate) fn describe(object: &Bound<'_, PyAny>) -> PyResult<Option<(Described, Held)>> {
    let mut view = Box::<ffi::Py_buffer>::new(ffi::Py_buffer::new());
    // SAFETY: the object is alive and `view` is a place for the answer; Python's lock is held.
    let failed = unsafe { ffi::PyObject_GetBuffer(object.as_ptr(), &mut *view, ffi::PyBUF_RECORDS_RO) } != 0;
    if failed {
        let error = PyErr::fetch(object.py());
        let no_buffer = error.is_instance_of::<PyTypeError>(object.py())
            || error.is_instance_of::<PyBufferError>(object.py())
            || error.is_instance_of::<pyo3::exceptions::PyValueError>(object.py());
        return if no_buffer { Ok(None) } else { Err(error) };
    }
    let held = Held(view);
    let view = &held.0;
    let format = if view.format.is_null() {
        "B".to_string()
    } else {
        // SAFETY: a format is a C string that lives as long as the view.
        unsafe { CStr::from_ptr(view.format) }.to_string_lossy().into_owned()
    };
    let Some(dtype) = dtype_of(&format, view.itemsize as usize) else { return Ok(None) };
    let rank = view.ndim as usize;
    // SAFETY: shape and strides have one entry a dimension, which PyBUF_RECORDS_RO asked for.
    let read = |from: *mut ffi::Py_ssize_t| unsafe { std::slice::from_raw_parts(from, rank) }.to_vec();
    let (shape, strides) = if rank == 0 { (vec![], vec![]) } else { (read(view.shape), read(view.strides)) };
    let itemsize = dtype.size() as isize;
    let whole = strides.iter().all(|stride| stride % itemsize == 0);
    let aligned = (view.buf as usize).is_multiple_of(dtype.size().clamp(1, 8));
    if !view.suboffsets.is_null() || !whole || !aligned {
        return Ok(None);
    }
    let described = Described {
        address: view.buf as usize,
        dtype,
        sizes: shape.iter().map(|n| *n as i64).collect(),
        strides: strides.iter().map(|n| (n / itemsize) as i64).collect(),
        readonly: view.readonly != 0,
    };
    Ok(Some((described, held)))
}

fn dtype_of(format: &str, itemsize: usize) -> Option<DType> {
    let code = format.trim_start_matches(['@', '=', if cfg!(target_endian = "little") { '<' } else { '>' }]);
    Some(match (code, itemsize) {
        ("?", 1) => DType::Bool,
        ("b", 1) => DType::I8,
        ("B" | "c", 1) => DType::U8,
        ("h" | "i" | "l" | "q" | "n", 2) => DType::I16,
        ("i" | "l" | "q" | "n", 4) => DType::I32,
        ("i" | "l" | "q" | "n", 8) => DType::I64,
        ("H" | "I" | "L" | "Q" | "N", 2) => DType::from_name("uint16")?,
        ("I" | "L" | "Q" | "N", 4) => DType::from_name("uint32")?,
        ("I" | "L" | "Q" | "N", 8) => DType::from_name("uint64")?,
        ("e", 2) => DType::F16,
        ("f", 4) => DType::F32,
        ("d", 8) => DType::F64,
        ("Zf", 8) => DType::C64,
        ("Zd", 16) => DType::C128,
        _ => return None,
    })
}

/// The format of a dtype's elements; None for those that the protocol has no letter for.
fn format_of(dtype: DType) -> Option<&'static CStr> {
    Some(match dtype {
        DType::Bool => c"?",
        DType::I8 => c"b",
        DType::U8 => c"B",
        DType::I16 => c"h",
        DType::I32 => c"i",
        DType::I64 => c"q",
        DType::F16 => c"e",
        DType::F32 => c"f",
        DType::F64 => c"d",
        DType::C64 => c"Zf",
        DType::C128 => c"Zd",
        other => match other.name() {
            "uint16" => c"H",
            "uint32" => c"I",
            "uint64" => c"Q",
            _ => return None,
        },
    })
}

/// What an exported view needs as long as it lives.
struct Export {
    sizes: Vec<ffi::Py_ssize_t>,
    strides: Vec<ffi::Py_ssize_t>,
    _format: CString,
    _pin: Pin,
    _tensor: Tensor,
}

/// Fills a view of a tensor's memory.
pub(crate) fn export(slf: &Bound<'_, PyTensor>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("there is no place for the view"));
    }
    let tensor = slf.get().tensor().clone();
    let meta = tensor.snapshot();
    let Some(format) = format_of(meta.dtype).filter(|_| tensor.is_plain()) else {
        let name = meta.dtype.type_name();
        return Err(PyTypeError::new_err(format!("Got unsupported ScalarType {name}")));
    };
    let wants_strides = flags & ffi::PyBUF_STRIDES == ffi::PyBUF_STRIDES;
    if !wants_strides && !meta.layout.is_contiguous() {
        return Err(PyBufferError::new_err("the tensor is not contiguous"));
    }
    let pin = meta.storage.pin().map_err(crate::errors::plain)?;
    let itemsize = meta.dtype.size();
    let sizes = meta.layout.sizes.iter().map(|n| *n as ffi::Py_ssize_t).collect();
    let strides = meta.layout.strides.iter().map(|n| (*n * itemsize as i64) as ffi::Py_ssize_t).collect();
    let address = pin.address().wrapping_add(meta.layout.offset * itemsize);
    let nbytes = meta.layout.numel() * itemsize;
    let rank = meta.layout.rank();
    let mut export =
        Box::new(Export { sizes, strides, _format: format.to_owned(), _pin: pin, _tensor: tensor });
    // SAFETY: Python gave a view to fill; what it points to lives in `export`, which `release` frees, and in the tensor.
    unsafe {
        (*view).buf = address.cast();
        (*view).len = nbytes as ffi::Py_ssize_t;
        (*view).itemsize = itemsize as ffi::Py_ssize_t;
        (*view).readonly = 0;
        (*view).ndim = rank as c_int;
        (*view).format = if flags & ffi::PyBUF_FORMAT != 0 {
            export._format.as_ptr().cast_mut()
        } else {
            std::ptr::null_mut()
        };
        (*view).shape =
            if flags & ffi::PyBUF_ND != 0 { export.sizes.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).strides = if wants_strides { export.strides.as_mut_ptr() } else { std::ptr::null_mut() };
        (*view).suboffsets = std::ptr::null_mut();
        (*view).internal = Box::into_raw(export).cast();
        (*view).obj = slf.clone().into_any().into_ptr();
    }
    Ok(())
}

/// Frees what an exported view needed.
pub(crate) fn release(view: *mut ffi::Py_buffer) {
    if view.is_null() {
        return;
    }
    // SAFETY: `export` put the pointer there, and Python releases a view once.
    unsafe {
        let export = (*view).internal.cast::<Export>();
        if !export.is_null() {
            (*view).internal = std::ptr::null_mut();
            drop(Box::from_raw(export));
        }
    }
}
