//! DLPack: arrays of other libraries without copies, by `__dlpack__` capsules and by the C exchange API of those that have it.

#![allow(unsafe_code, reason = "DLPack is a C interface; each block says why it is sound")]

use flambeau::tensor::Tensor;
use flambeau::tensor::dlpack::{
    Exported, Imported, MAJOR, MINOR, Unversioned, Version, Versioned, delete, delete_old,
};
use flambeau::tensor::guest::Described;
use parking_lot::Mutex;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use pyo3::{ffi, intern};
use std::ffi::{CStr, c_void};

/// `DLPackExchangeAPI` of a library's tensor type.
#[repr(C)]
struct Exchange {
    version: Version,
    previous: *mut c_void,
    allocator: *mut c_void,
    export: Option<unsafe extern "C" fn(*mut c_void, *mut *mut Versioned) -> i32>,
    import: Option<unsafe extern "C" fn(*mut Versioned, *mut *mut c_void) -> i32>,
}

/// An array that another library gave away. Its producer is notified under Python's lock, for its deleter may touch objects.
pub(crate) struct Guest(Option<Imported>);

impl Guest {
    /// Where the array is.
    pub(crate) fn described(&self) -> Option<&Described> {
        self.0.as_ref().map(|imported| &imported.described)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        Python::attach(|_| drop(self.0.take()));
    }
}

/// The exchange APIs of types met so far, by the address of the type; 0 where a type has none. Types of libraries live
/// as long as the process.
static KNOWN: Mutex<Vec<(usize, usize)>> = Mutex::new(Vec::new());
/// Maximum number of types that are remembered.
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
pub(crate) fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Guest>> {
    let guest = |taken: flambeau::diag::Result<Imported>| match taken {
        Ok(imported) => Ok(Some(Guest(Some(imported)))),
        Err(error) => Err(PyBufferError::new_err(error.message().to_string())),
    };
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
        return guest(unsafe { Imported::versioned(managed) });
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
            return guest(Imported::versioned(managed));
        }
        let (name, used) = (c"dltensor".as_ptr(), c"used_dltensor".as_ptr());
        if ffi::PyCapsule_IsValid(capsule.as_ptr(), name) != 0 {
            let managed = ffi::PyCapsule_GetPointer(capsule.as_ptr(), name).cast::<Unversioned>();
            ffi::PyCapsule_SetName(capsule.as_ptr(), used);
            return guest(Imported::unversioned(managed));
        }
    }
    Err(PyBufferError::new_err("__dlpack__ gave no DLPack capsule"))
}

/// The tensor as an array for another library; its memory stays at its place until the deleter is called.
fn given(tensor: &Tensor) -> PyResult<*mut Exported> {
    Exported::new(tensor).map_err(|error| PyBufferError::new_err(error.message().to_string()))
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
    let failed = unsafe { take(Exported::versioned(given), &mut object) } != 0;
    if failed || object.is_null() {
        return Err(PyErr::fetch(kind.py()));
    }
    // SAFETY: as above.
    Ok(Some(unsafe { Bound::from_owned_ptr(kind.py(), object.cast()) }))
}

/// Frees what an unconsumed capsule holds.
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
            let content = Exported::versioned(given);
            ffi::PyCapsule_New(content.cast(), c"dltensor_versioned".as_ptr(), Some(forget_capsule))
        } else {
            let content = Exported::unversioned(given);
            ffi::PyCapsule_New(content.cast(), c"dltensor".as_ptr(), Some(forget_capsule))
        };
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}
