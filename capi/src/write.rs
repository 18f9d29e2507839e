//! Values from C.

#![allow(unsafe_code, reason = "C gives pointers; their requirements are stated in flambeau.h")]

use crate::guarded;
use crate::handles::{self, Handle, handle};
use engine::diag::{Diagnostic, Result};
use engine::ir::Type;
use engine::tensor::dlpack::{Imported, Versioned};
use engine::tensor::guest::Described;
use engine::tensor::{DType, contiguous_strides};
use engine::value::{Dict, Value};
use std::ffi::{c_char, c_int, c_void};
use std::ptr::null_mut;

/// `flambeau_array`
#[repr(C)]
pub struct Array {
    /// The element with all indices 0.
    pub data: *mut c_void,
    /// Its `flambeau_dtype`.
    pub dtype: c_int,
    /// Dimensions.
    pub rank: c_int,
    /// Elements of each.
    pub sizes: *const i64,
    /// In elements; null for row-major order.
    pub strides: *const i64,
}

/// See flambeau.h.
#[unsafe(no_mangle)]
pub extern "C" fn flambeau_bool(truth: c_int) -> *mut Handle {
    handle(Value::Bool(truth != 0))
}

/// See flambeau.h.
#[unsafe(no_mangle)]
pub extern "C" fn flambeau_int(number: i64) -> *mut Handle {
    handle(Value::Int(number))
}

/// See flambeau.h.
#[unsafe(no_mangle)]
pub extern "C" fn flambeau_double(number: f64) -> *mut Handle {
    handle(Value::Float(number))
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_string(text: *const c_char, size: usize) -> *mut Handle {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let bytes = unsafe { handles::bytes(text.cast(), size, "the text") }?;
        let text = std::str::from_utf8(bytes).map_err(|_| Diagnostic::input("the text is not UTF-8"))?;
        Ok(handle(Value::str(text)))
    })
}

/// Called when memory of C is no longer needed.
struct Owner {
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
}

// SAFETY: flambeau.h says that any thread may call `release`.
unsafe impl Send for Owner {}
// SAFETY: as above; shared references do nothing.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the caller of `flambeau_tensor` gave both for this, and this is dropped once.
            unsafe { release(self.context) };
        }
    }
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_tensor(
    array: *const Array,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
    context: *mut c_void,
) -> *mut Handle {
    let owner = Owner { release, context };
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let array = unsafe { array.as_ref() }.ok_or_else(|| Diagnostic::input("the array is NULL"))?;
        // SAFETY: as above: sizes and strides have `rank` entries.
        let described = unsafe { described(array) }?;
        // SAFETY: as above, for as long as `release` was not called.
        let tensor = unsafe { described.over(owner) };
        let tensor = tensor.ok_or_else(|| {
            Diagnostic::input("tensors cannot share the array in place").hint(
                "sizes and strides are not negative, and the address is a multiple of an element's size",
            )
        })?;
        Ok(handle(Value::Tensor(tensor)))
    })
}

/// # Safety
/// Sizes and strides must have `rank` entries.
unsafe fn described(array: &Array) -> Result<Described> {
    let dtype = u8::try_from(array.dtype).ok().and_then(|code| DType::from_code(i64::from(code)));
    let dtype = dtype
        .filter(|dtype| DType::from_name(dtype.name()) == Some(*dtype))
        .ok_or_else(|| Diagnostic::input(format!("{} is not a dtype", array.dtype)))?;
    let rank = usize::try_from(array.rank).ok().filter(|rank| *rank <= 64);
    let rank =
        rank.ok_or_else(|| Diagnostic::input(format!("tensors do not have {} dimensions", array.rank)))?;
    // SAFETY: the caller's promise.
    let read = |from: *const i64| unsafe { std::slice::from_raw_parts(from, rank) }.to_vec();
    if rank > 0 && array.sizes.is_null() {
        return Err(Diagnostic::input("the array's sizes are NULL"));
    }
    let sizes = if rank == 0 { Vec::new() } else { read(array.sizes) };
    let strides = match rank == 0 || array.strides.is_null() {
        true => contiguous_strides(&sizes).to_vec(),
        false => read(array.strides),
    };
    if array.data.is_null() && !sizes.contains(&0) {
        return Err(Diagnostic::input("the array's data are NULL"));
    }
    Ok(Described { address: array.data as usize, dtype, sizes, strides, readonly: false })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_from_dlpack(array: *mut Versioned) -> *mut Handle {
    guarded(null_mut(), || {
        if array.is_null() {
            return Err(Diagnostic::input("the array is NULL"));
        }
        // SAFETY: the caller's promise.
        let imported = unsafe { Imported::versioned(array) }?;
        let described = imported.described.clone();
        // SAFETY: what was imported keeps the memory.
        let tensor = unsafe { described.over(imported) };
        let tensor = tensor.ok_or_else(|| {
            Diagnostic::input("the array has strides or an address that tensors do not have; copy it first")
        })?;
        Ok(handle(Value::Tensor(tensor)))
    })
}

const NONE: c_int = 0;
const LIST: c_int = 6;
const TUPLE: c_int = 7;
const DICT: c_int = 8;

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_collect(
    kind: c_int,
    items: *const *const Handle,
    count: usize,
) -> *mut Handle {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let items = unsafe { handles::values(items, count) }?;
        Ok(handle(match kind {
            NONE if items.is_empty() => Value::None,
            LIST => {
                let element = common(items.iter(), "items of the list")?.unwrap_or_else(Type::tensor);
                Value::list(element, items)
            }
            TUPLE => Value::tuple(items),
            DICT => dict(&items)?,
            _ => {
                let error = Diagnostic::input(format!("{count} values make nothing of kind {kind}"));
                return Err(error.hint("lists, tuples, dicts are collected, and None of nothing"));
            }
        }))
    })
}

fn dict(items: &[Value]) -> Result<Value> {
    if !items.len().is_multiple_of(2) {
        return Err(Diagnostic::input(
            "a dict is made of alternating keys and values; the last key has no value",
        ));
    }
    let key = common(items.iter().step_by(2), "keys of the dict")?.unwrap_or_else(Type::str);
    let value = common(items.iter().skip(1).step_by(2), "values of the dict")?.unwrap_or_else(Type::tensor);
    let dict = Dict::new(key, value);
    for pair in items.chunks_exact(2) {
        dict.insert(&pair[0], pair[1].clone())?;
    }
    Ok(Value::Dict(dict))
}

/// The one type of all; with None among them, the optional one.
fn common<'a>(items: impl Iterator<Item = &'a Value>, what: &str) -> Result<Option<Type>> {
    let mut found: Option<Type> = None;
    let mut has_none = false;
    for item in items {
        if item.is_none() {
            has_none = true;
            continue;
        }
        let ty = item.ty();
        match &found {
            Some(first) if *first != ty => {
                return Err(Diagnostic::input(format!("{what} have the types {first} and {ty}")));
            }
            Some(_) => {}
            None => found = Some(ty),
        }
    }
    Ok(match (found, has_none) {
        (Some(ty), true) => Some(Type::optional(ty)),
        (found, _) => found,
    })
}
