//! DLPack: arrays of other libraries without copies, by `__dlpack__` capsules and by the C exchange API of those that have it.

#![allow(unsafe_code, reason = "DLPack is a C interface; each block says why it is sound")]

use crate::buffer::Described;
use flambeau::tensor::{DType, Pin, Tensor};
use parking_lot::Mutex;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{ffi, intern};
use std::ffi::{CStr, c_void};

/// The version that is spoken: 1.x with the layout of 1.0.
const MAJOR: u32 = 1;
const MINOR: u32 = 1;
/// kDLCPU; pinned host memory of CUDA is host memory as well.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;

#[repr(C)]
struct Version {
    major: u32,
    minor: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLDevice {
    kind: i32,
    id: i32,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct DLType {
    code: u8,
    bits: u8,
    lanes: u16,
}

#[repr(C)]
struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

#[repr(C)]
struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DLTensor,
}

#[repr(C)]
struct Unversioned {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// `DLPackExchangeAPI` of a library's tensor type.
#[repr(C)]
struct Exchange {
    version: Version,
    previous: *mut c_void,
    allocator: *mut c_void,
    export: Option<unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> i32>,
    import: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> i32>,
}

/// What keeps an imported array: its producer's deleter is called when this is dropped.
enum Owner {
    Versioned(*mut Versioned),
    Unversioned(*mut Unversioned),
}

// SAFETY: DLPack asks producers for deleters that any thread may call; that of Python objects takes Python's lock.
unsafe impl Send for Owner {}
// SAFETY: as above; shared references do nothing.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned by this alone, and DLPack lets its consumer call the deleter once.
        Python::attach(|_| unsafe {
            match self {
                Owner::Versioned(managed) => {
                    if let Some(deleter) = (**managed).deleter {
                        deleter(*managed);
                    }
                }
                Owner::Unversioned(managed) => {
                    if let Some(deleter) = (**managed).deleter {
                        deleter(*managed);
                    }
                }
            }
        });
    }
}

/// An array that another library gave away, with what keeps it.
pub(crate) struct Imported {
    pub described: Described,
    _owner: Owner,
}

impl Imported {
    /// The description apart from what keeps the array.
    pub(crate) fn described_copy(&self) -> Described {
        let Described { address, dtype, ref sizes, ref strides, readonly } = self.described;
        Described { address, dtype, sizes: sizes.clone(), strides: strides.clone(), readonly }
    }
}

/// The exchange APIs of types met so far, by the address of the type; 0 where a type has none. Types of libraries live
/// as long as the process.
static KNOWN: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
/// So many types are remembered.
const MAX_KNOWN: usize = 64;

/// The exchange API of an object's type.
fn exchange_of(kind: &Bound<'_, PyType>) -> Option<*const Exchange> {
    let address = kind.as_ptr() as usize;
    if let Some((_, api)) = KNOWN.lock().iter().find(|(known, _)| *known == address) {
        return (*api != 0).then_some(*api as *const Exchange);
    }
    let api = find_exchange(kind).unwrap_or(0);
    let mut known = KNOWN.lock();
    if known.len() < MAX_KNOWN {
        // The entry is good as long as the type lives.
        std::mem::forget(kind.clone());
        known.push((address, api));
    }
    (api != 0).then_some(api as *const Exchange)
}

fn find_exchange(kind: &Bound<'_, PyType>) -> Option<usize> {
    let capsule = kind.getattr(intern!(kind.py(), "__dlpack_c_exchange_api__")).ok()?;
    // SAFETY: the name says what the capsule holds; on any other object the call fails with an exception.
    let api = unsafe { ffi::PyCapsule_GetPointer(capsule.as_ptr(), c"dlpack_exchange_api".as_ptr()) };
    if api.is_null() {
        drop(PyErr::take(kind.py()));
        return None;
    }
    // SAFETY: the header of every version begins with the version.
    let major = unsafe { (*api.cast::<Version>()).major };
    (major == MAJOR).then_some(api as usize)
}

/// Takes an array from an object by DLPack; None where the object has no such thing.
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Imported>> {
    let py = object.py();
    if let Some(api) = exchange_of(&object.get_type()) {
        // SAFETY: `find_exchange` checked the version, and the table lives as long as the process.
        let Some(export) = (unsafe { (*api).export }) else { return Ok(None) };
        let mut managed = std::ptr::null_mut();
        // SAFETY: the object is of the type whose table this is.
        let failed = unsafe { export(object.as_ptr().cast(), &mut managed) } != 0;
        if failed || managed.is_null() {
            return Err(PyErr::fetch(py));
        }
        // SAFETY: the producer gave it to us.
        return unsafe { imported_versioned(managed) }.map(Some);
    }
    let Ok(method) = object.getattr(intern!(py, "__dlpack__")) else { return Ok(None) };
    let keywords = PyDict::new(py);
    keywords.set_item("max_version", (MAJOR, MINOR))?;
    let capsule = match method.call((), Some(&keywords)) {
        Ok(capsule) => capsule,
        Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0()?,
        Err(error) => return Err(error),
    };
    // SAFETY: a capsule is asked for its content by name, then renamed so that its destructor leaves the content to us.
    unsafe {
        let (name, used) = (c"dltensor_versioned".as_ptr(), c"used_dltensor_versioned".as_ptr());
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name).cast::<Versioned>();
            ffi::PyCapsule_SetName(capsule.as_ptr(), used);
            return imported_versioned(managed).map(Some);
        }
        let (name, used) = (c"dltensor".as_ptr(), c"used_dltensor".as_ptr());
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name).cast::<Unversioned>();
            ffi::PyCapsule_SetName(capsule.as_ptr(), used);
            let owner = Owner::Unversioned(managed);
            return described(&(*managed).tensor, false)
                .map(|described| Some(Imported { described, _owner: owner }));
        }
    }
    Err(PyBufferError::new_err("__dlpack__ gave no DLPack capsule"))
}

/// # Safety
/// The array must be the caller's.
unsafe fn imported_versioned(managed: *mut Versioned) -> PyResult<Imported> {
    let owner = Owner::Versioned(managed);
    // SAFETY: the caller's promise.
    let (major, flags) = unsafe { ((*managed).version.major, (*managed).flags) };
    if major != MAJOR {
        return Err(PyBufferError::new_err(format!("DLPack version {major} is not supported")));
    }
    // SAFETY: as above; the version is one whose layout this is.
    let described = unsafe { described(&(*managed).tensor, flags & READ_ONLY != 0) }?;
    Ok(Imported { described, _owner: owner })
}

/// # Safety
/// Shape and strides must have one entry a dimension.
unsafe fn described(tensor: &DLTensor, readonly: bool) -> PyResult<Described> {
    if tensor.device.kind != CPU && tensor.device.kind != CUDA_HOST {
        return Err(PyBufferError::new_err(format!(
            "arrays of device type {} are not supported; move it to the cpu",
            tensor.device.kind
        )));
    }
    let Some(dtype) = dtype_of(tensor.dtype) else {
        let DLType { code, bits, lanes } = tensor.dtype;
        return Err(PyBufferError::new_err(format!(
            "DLPack dtype (code {code}, {bits} bits, {lanes} lanes) is not supported"
        )));
    };
    let rank = usize::try_from(tensor.ndim).unwrap_or(0);
    let read = |from: *mut i64| {
        if rank == 0 || from.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { std::slice::from_raw_parts(from, rank) }.to_vec())
    };
    let sizes = read(tensor.shape).unwrap_or_default();
    let strides =
        read(tensor.strides).unwrap_or_else(|| flambeau::tensor::contiguous_strides(&sizes).to_vec());
    let address = (tensor.data as usize).wrapping_add(tensor.byte_offset as usize);
    Ok(Described { address, dtype, sizes, strides, readonly })
}

fn dtype_of(given: DLType) -> Option<DType> {
    if given.lanes != 1 {
        return None;
    }
    Some(match (given.code, given.bits) {
        (0, 8) => DType::I8,
        (0, 16) => DType::I16,
        (0, 32) => DType::I32,
        (0, 64) => DType::I64,
        (1, 8) => DType::U8,
        (1, 16) => DType::from_name("uint16")?,
        (1, 32) => DType::from_name("uint32")?,
        (1, 64) => DType::from_name("uint64")?,
        (2, 16) => DType::F16,
        (2, 32) => DType::F32,
        (2, 64) => DType::F64,
        (4, 16) => DType::BF16,
        (5, 64) => DType::C64,
        (5, 128) => DType::C128,
        (6, 8) => DType::Bool,
        _ => return None,
    })
}

fn type_of(dtype: DType) -> Option<DLType> {
    let (code, bits) = match dtype {
        DType::I8 => (0, 8),
        DType::I16 => (0, 16),
        DType::I32 => (0, 32),
        DType::I64 => (0, 64),
        DType::U8 => (1, 8),
        DType::F16 => (2, 16),
        DType::F32 => (2, 32),
        DType::F64 => (2, 64),
        DType::BF16 => (4, 16),
        DType::C64 => (5, 64),
        DType::C128 => (5, 128),
        DType::Bool => (6, 8),
        other => match other.name() {
            "uint16" => (1, 16),
            "uint32" => (1, 32),
            "uint64" => (1, 64),
            _ => return None,
        },
    };
    Some(DLType { code, bits, lanes: 1 })
}

/// What an array that was given away needs.
struct Given {
    managed: Versioned,
    old: Unversioned,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _pin: Pin,
    _tensor: Tensor,
}

unsafe extern "C" fn delete(managed: *mut Versioned) {
    // SAFETY: `context` is the box that `given` leaked, and a deleter is called once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Given>())) }
}

unsafe extern "C" fn delete_old(managed: *mut Unversioned) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Given>())) }
}

/// The tensor as an array for another library; its memory stays at its place until the deleter is called.
fn given(tensor: &Tensor) -> PyResult<*mut Given> {
    let meta = tensor.snapshot();
    let Some(dtype) = type_of(meta.dtype).filter(|_| tensor.is_plain()) else {
        return Err(PyBufferError::new_err(format!("DLPack has no dtype for {}", meta.dtype.name())));
    };
    let pin = meta.storage.pin().map_err(crate::errors::plain)?;
    let data = pin.address().wrapping_add(meta.layout.offset * meta.dtype.size());
    let tensor_of = || DLTensor {
        data: data.cast(),
        device: DLDevice { kind: CPU, id: 0 },
        ndim: meta.layout.rank() as i32,
        dtype,
        shape: std::ptr::null_mut(),
        strides: std::ptr::null_mut(),
        byte_offset: 0,
    };
    let managed = Versioned {
        version: Version { major: MAJOR, minor: MINOR },
        context: std::ptr::null_mut(),
        deleter: Some(delete),
        flags: 0,
        tensor: tensor_of(),
    };
    let old = Unversioned { tensor: tensor_of(), context: std::ptr::null_mut(), deleter: Some(delete_old) };
    let (sizes, strides) = (meta.layout.sizes.to_vec(), meta.layout.strides.to_vec());
    let out =
        Box::into_raw(Box::new(Given { managed, old, sizes, strides, _pin: pin, _tensor: tensor.clone() }));
    // SAFETY: the box was made here; its vectors do not move with it.
    unsafe {
        for dl in [&mut (*out).managed.tensor, &mut (*out).old.tensor] {
            dl.shape = (*out).sizes.as_mut_ptr();
            dl.strides = (*out).strides.as_mut_ptr();
        }
        (*out).managed.context = out.cast();
        (*out).old.context = out.cast();
    }
    Ok(out)
}

/// The tensor as an object of the library whose type this is, by its exchange API; None where it has none.
pub(crate) fn hand_over<'py>(
    tensor: &Tensor,
    kind: &Bound<'py, PyType>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let Some(api) = exchange_of(kind) else { return Ok(None) };
    // SAFETY: as in `import`.
    let Some(take) = (unsafe { (*api).import }) else { return Ok(None) };
    let given = given(tensor)?;
    let mut object = std::ptr::null_mut();
    // SAFETY: the callee takes the array over, and gives a new reference.
    let failed = unsafe { take(&mut (*given).managed, &mut object) } != 0;
    if failed || object.is_null() {
        return Err(PyErr::fetch(kind.py()));
    }
    // SAFETY: as above.
    Ok(Some(unsafe { Bound::from_owned_ptr(kind.py(), object.cast()) }))
}

/// Frees what a capsule holds that nobody took.
unsafe extern "C" fn forget_capsule(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls this once; a capsule that was used has another name, and its content another owner.
    unsafe {
        for (name, is_old) in [(c"dltensor_versioned", false), (c"dltensor", true)] {
            let name: &CStr = name;
            if ffi::PyCapsule_IsValid(capsule, name.as_ptr()) != 0 {
                let content = ffi::PyCapsule_GetPointer(capsule, name.as_ptr());
                if is_old {
                    delete_old(content.cast());
                } else {
                    delete(content.cast());
                }
            }
        }
    }
}

/// `__dlpack__`: the tensor in a capsule, of the version that the consumer knows.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    is_versioned: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given = given(tensor)?;
    // SAFETY: the capsule owns what `given` made until a consumer renames it; the names are static.
    unsafe {
        let capsule = if is_versioned {
            let content: *mut Versioned = &mut (*given).managed;
            ffi::PyCapsule_New(content.cast(), c"dltensor_versioned".as_ptr(), Some(forget_capsule))
        } else {
            let content: *mut Unversioned = &mut (*given).old;
            ffi::PyCapsule_New(content.cast(), c"dltensor".as_ptr(), Some(forget_capsule))
        };
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}
