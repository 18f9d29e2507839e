//! DLPack: arrays that libraries hand to each other without copies. It knows no library; who calls a deleter under which
//! lock is the caller's.
//!
//! The structures are those of DLPack 1.1's header (`dlpack.h`), whose layout each version 1.x keeps.

#![allow(unsafe_code, reason = "DLPack is a C interface; each block says why it is sound")]

use super::guest::Described;
use super::{DType, Pin, Tensor, contiguous_strides};
use crate::diag::{Diagnostic, Result};
use std::ffi::c_void;

/// The version that is spoken: 1.x with the layout of 1.0.
pub const MAJOR: u32 = 1;
/// The minor version that exported arrays carry.
pub const MINOR: u32 = 1;
/// kDLCPU; pinned host memory of CUDA is host memory as well.
const CPU: i32 = 1;
const CUDA_HOST: i32 = 3;
const READ_ONLY: u64 = 1;
/// Dimensions that an imported array may have; NumPy's and PyTorch's own limit is 64.
const MAX_RANK: usize = 64;

/// `DLPackVersion`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct Version {
    /// Changes with the layout.
    pub major: u32,
    /// Changes with additions.
    pub minor: u32,
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

/// `DLTensor`
#[repr(C)]
pub struct DLTensor {
    data: *mut c_void,
    device: DLDevice,
    ndim: i32,
    dtype: DLType,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
pub struct Versioned {
    version: Version,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Versioned)>,
    flags: u64,
    tensor: DLTensor,
}

/// `DLManagedTensor`
#[repr(C)]
pub struct Unversioned {
    tensor: DLTensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Unversioned)>,
}

/// What keeps an imported array: its producer's deleter is called when this is dropped.
enum Owner {
    Versioned(*mut Versioned),
    Unversioned(*mut Unversioned),
}

// SAFETY: DLPack asks producers for deleters that any thread may call.
unsafe impl Send for Owner {}
// SAFETY: as above; shared references do nothing.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // SAFETY: the pointer is owned by this alone, and DLPack lets its consumer call the deleter once.
        unsafe {
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
        }
    }
}

/// An array that another library gave away, with what keeps it.
pub struct Imported {
    /// Where its elements are, for as long as this lives.
    pub described: Described,
    _owner: Owner,
}

impl Imported {
    /// Takes an array over. Whatever the answer, the array is the callee's from here on.
    ///
    /// # Safety
    /// `managed` must be an array that DLPack's rules let the caller consume.
    pub unsafe fn versioned(managed: *mut Versioned) -> Result<Imported> {
        let owner = Owner::Versioned(managed);
        // SAFETY: the caller's promise; every version begins with the version, the deleter and the flags.
        let (major, flags) = unsafe { ((*managed).version.major, (*managed).flags) };
        if major != MAJOR {
            return Err(Diagnostic::input(format!("DLPack version {major} is not supported")));
        }
        // SAFETY: as above; the version is one whose layout this is.
        let described = unsafe { described(&(*managed).tensor, flags & READ_ONLY != 0) }?;
        Ok(Imported { described, _owner: owner })
    }

    /// The same of an array of the time before versions.
    ///
    /// # Safety
    /// As [`Imported::versioned`] says.
    pub unsafe fn unversioned(managed: *mut Unversioned) -> Result<Imported> {
        let owner = Owner::Unversioned(managed);
        // SAFETY: the caller's promise.
        let described = unsafe { described(&(*managed).tensor, false) }?;
        Ok(Imported { described, _owner: owner })
    }
}

/// # Safety
/// Shape and strides must have one entry a dimension.
unsafe fn described(tensor: &DLTensor, readonly: bool) -> Result<Described> {
    if tensor.device.kind != CPU && tensor.device.kind != CUDA_HOST {
        return Err(Diagnostic::input(format!(
            "arrays of device type {} are not supported; move it to the cpu",
            tensor.device.kind
        )));
    }
    let Some(dtype) = dtype_of(tensor.dtype) else {
        let DLType { code, bits, lanes } = tensor.dtype;
        return Err(Diagnostic::input(format!(
            "DLPack dtype (code {code}, {bits} bits, {lanes} lanes) is not supported"
        )));
    };
    let rank = usize::try_from(tensor.ndim).unwrap_or(usize::MAX);
    if rank > MAX_RANK {
        return Err(Diagnostic::input(format!(
            "DLPack arrays of {} dimensions are not supported",
            tensor.ndim
        )));
    }
    let read = |from: *mut i64| {
        if rank == 0 || from.is_null() {
            return None;
        }
        // SAFETY: the caller's promise.
        Some(unsafe { std::slice::from_raw_parts(from, rank) }.to_vec())
    };
    let sizes = read(tensor.shape).unwrap_or_default();
    let strides = read(tensor.strides).unwrap_or_else(|| contiguous_strides(&sizes).to_vec());
    if tensor.data.is_null() && !sizes.contains(&0) {
        return Err(Diagnostic::input(
            "the array has no data; fake and meta tensors cannot be given to a program",
        ));
    }
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

/// A tensor that is given away. Its memory stays at its place until a deleter is called.
pub struct Exported {
    managed: Versioned,
    old: Unversioned,
    sizes: Vec<i64>,
    strides: Vec<i64>,
    _pin: Pin,
    _tensor: Tensor,
}

impl Exported {
    /// The tensor as an array for another library, in a box that a deleter frees: hand [`Exported::versioned`] or
    /// [`Exported::unversioned`] to a consumer, once. Quantized tensors and dtypes that DLPack lacks are refused.
    pub fn new(tensor: &Tensor) -> Result<*mut Exported> {
        let meta = tensor.snapshot();
        let Some(dtype) = type_of(meta.dtype).filter(|_| tensor.is_plain()) else {
            return Err(Diagnostic::input(format!("DLPack has no dtype for {}", meta.dtype.name())));
        };
        let pin = meta.storage.pin()?;
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
        let old =
            Unversioned { tensor: tensor_of(), context: std::ptr::null_mut(), deleter: Some(delete_old) };
        let (sizes, strides) = (meta.layout.sizes.to_vec(), meta.layout.strides.to_vec());
        let out = Box::new(Exported { managed, old, sizes, strides, _pin: pin, _tensor: tensor.clone() });
        let out = Box::into_raw(out);
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

    /// What consumers of versioned arrays take.
    ///
    /// # Safety
    /// The box must be one of [`Exported::new`] that no deleter has freed.
    pub unsafe fn versioned(exported: *mut Exported) -> *mut Versioned {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*exported).managed }
    }

    /// What consumers of the time before versions take.
    ///
    /// # Safety
    /// As [`Exported::versioned`] says.
    pub unsafe fn unversioned(exported: *mut Exported) -> *mut Unversioned {
        // SAFETY: the caller's promise.
        unsafe { &raw mut (*exported).old }
    }
}

/// The deleter of exported arrays.
///
/// # Safety
/// `managed` must come from [`Exported::versioned`], and this is called once.
pub unsafe extern "C" fn delete(managed: *mut Versioned) {
    // SAFETY: `context` is the box that `Exported::new` leaked, and a deleter is called once.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Exported>())) }
}

/// The deleter of exported arrays of the time before versions.
///
/// # Safety
/// `managed` must come from [`Exported::unversioned`], and this is called once.
pub unsafe extern "C" fn delete_old(managed: *mut Unversioned) {
    // SAFETY: as above.
    unsafe { drop(Box::from_raw((*managed).context.cast::<Exported>())) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tensor_travels_out_and_in_without_a_copy() {
        let tensor = Tensor::from_vec(&[1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0], &[2, 3]).expect("small");
        let exported = Exported::new(&tensor).expect("plain");
        // SAFETY: the array was exported just now and is consumed once.
        let imported = unsafe { Imported::versioned(Exported::versioned(exported)) }.expect("our own");
        let described = imported.described.clone();
        assert_eq!((&described.sizes[..], &described.strides[..]), (&[2, 3][..], &[3, 1][..]));
        // SAFETY: the owner keeps the memory.
        let back = unsafe { described.over(imported) }.expect("plain");
        assert_eq!(back.to_vec::<f32>().expect("floats"), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
        let error = tensor.snapshot().storage.grow(400).expect_err("it is lent");
        assert!(error.message().contains("not resizable"), "{error}");
        drop(back);
        tensor.snapshot().storage.grow(400).expect("no reference is left");
    }

    #[test]
    fn what_is_not_understood_is_refused_and_freed() {
        let tensor = Tensor::from_vec(&[1i64; 4], &[4]).expect("small");
        for (spoil, reason) in [
            ((|m| m.version.major = 2) as fn(&mut Versioned), "version 2"),
            (|m| m.tensor.device.kind = 2, "device type 2"),
            (|m| m.tensor.dtype.lanes = 4, "4 lanes"),
            (|m| m.tensor.ndim = -1, "-1 dimensions"),
            (|m| m.tensor.ndim = 1000, "1000 dimensions"),
            (|m| m.tensor.data = std::ptr::null_mut(), "no data"),
        ] {
            let exported = Exported::new(&tensor).expect("plain");
            // SAFETY: the box is ours until it is consumed, which the refusal does as well.
            let error = unsafe {
                spoil(&mut (*exported).managed);
                Imported::versioned(Exported::versioned(exported)).err().expect("it is refused")
            };
            assert!(error.message().contains(reason), "{error}");
        }
        tensor.snapshot().storage.grow(400).expect("every array was freed");
    }
}
