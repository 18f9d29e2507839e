//! Values to C.

#![allow(unsafe_code, reason = "C gives pointers; their requirements are stated in flambeau.h")]

use crate::guarded;
use crate::handles::{self, Handle, Lent, handle};
use crate::write::Array;
use engine::diag::{Diagnostic, Result};
use engine::tensor::Scalar;
use engine::tensor::dlpack::{Exported, Versioned};
use engine::value::Value;
use std::ffi::{c_char, c_int};
use std::ptr::{null, null_mut};

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_value_kind(value: *const Handle) -> c_int {
    // SAFETY: the caller's promise.
    let Some(handle) = (unsafe { value.as_ref() }) else { return 0 };
    match &handle.value {
        Value::None => 0,
        Value::Tensor(_) => 1,
        Value::Bool(_) => 2,
        Value::Int(_) => 3,
        Value::Float(_) => 4,
        Value::Str(_) => 5,
        Value::List(_) => 6,
        Value::Tuple(_) => 7,
        Value::Dict(_) => 8,
        _ => 9,
    }
}

fn no_number(value: &Value, what: &str) -> Diagnostic {
    Diagnostic::input(format!("a {} is not {what}", value.kind_name()))
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_as_int(value: *const Handle, out: *mut i64) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let value = &unsafe { handles::value(value) }?.value;
        let number = match value.to_scalar()? {
            Scalar::Int(x) => x,
            Scalar::Bool(x) => i64::from(x),
            _ => return Err(no_number(value, "an int")),
        };
        // SAFETY: as above.
        unsafe { put(out, number) }
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_as_double(value: *const Handle, out: *mut f64) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let value = &unsafe { handles::value(value) }?.value;
        let number = match value.to_scalar()? {
            Scalar::Float(x) => x,
            Scalar::Int(x) => x as f64,
            Scalar::Bool(x) => f64::from(u8::from(x)),
            _ => return Err(no_number(value, "a real number")),
        };
        // SAFETY: as above.
        unsafe { put(out, number) }
    })
}

/// # Safety
/// `out` must be null or a place for the answer.
unsafe fn put<T>(out: *mut T, answer: T) -> Result<c_int> {
    if out.is_null() {
        return Err(Diagnostic::input("the place for the answer is NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(answer) };
    Ok(0)
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_as_string(value: *const Handle, size: *mut usize) -> *const c_char {
    guarded(null(), || {
        // SAFETY: the caller's promise.
        let handle = unsafe { handles::value(value) }?;
        let text = handle.text.get_or_init(|| {
            let mut bytes = match &handle.value {
                Value::Str(text) => text.as_bytes().to_vec(),
                other => other.to_text().into_bytes(),
            };
            bytes.push(0);
            bytes
        });
        if !size.is_null() {
            // SAFETY: as above.
            unsafe { size.write(text.len() - 1) };
        }
        Ok(text.as_ptr().cast())
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_length(value: *const Handle) -> i64 {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let value = &unsafe { handles::value(value) }?.value;
        Ok(match value {
            Value::List(list) => list.len() as i64,
            Value::Tuple(tuple) => tuple.items().len() as i64,
            Value::Dict(dict) => dict.len() as i64,
            Value::Str(text) => text.chars().count() as i64,
            Value::Tensor(tensor) => tensor.snapshot().layout.numel() as i64,
            other => return Err(Diagnostic::input(format!("a {} has no length", other.kind_name()))),
        })
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_item(value: *const Handle, index: usize) -> *mut Handle {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let value = &unsafe { handles::value(value) }?.value;
        let item = match value {
            Value::List(list) => list.items().get(index).cloned(),
            Value::Tuple(tuple) => tuple.items().get(index).cloned(),
            Value::Dict(dict) => {
                let entries = dict.entries();
                entries.get_index(index / 2).map(|(key, value)| match index % 2 {
                    0 => key.to_value(),
                    _ => value.clone(),
                })
            }
            other => return Err(Diagnostic::input(format!("a {} has no items", other.kind_name()))),
        };
        item.map(handle).ok_or_else(|| Diagnostic::input(format!("there is no item {index}")))
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_as_array(value: *const Handle, out: *mut Array) -> c_int {
    guarded(-1, || {
        // SAFETY: the caller's promise.
        let handle = unsafe { handles::value(value) }?;
        let lent = match handle.array.get() {
            Some(lent) => lent,
            None => {
                let made = lend(&handle.value)?;
                handle.array.get_or_init(|| made)
            }
        };
        let array = Array {
            data: lent.pin.address().wrapping_add(lent.offset).cast(),
            dtype: lent.dtype,
            rank: lent.sizes.len() as c_int,
            sizes: lent.sizes.as_ptr(),
            strides: lent.strides.as_ptr(),
        };
        // SAFETY: as above.
        unsafe { put(out, array) }
    })
}

fn lend(value: &Value) -> Result<Lent> {
    let tensor = value.to_tensor()?;
    if !tensor.is_plain() {
        return Err(Diagnostic::input("the elements of this tensor are not laid out as an array")
            .hint("dequantize quantized tensors, make sparse ones dense, and resolve conjugates first"));
    }
    let meta = tensor.snapshot();
    Ok(Lent {
        pin: meta.storage.pin()?,
        offset: meta.layout.offset * meta.dtype.size(),
        dtype: meta.dtype.code() as i32,
        sizes: meta.layout.sizes.to_vec(),
        strides: meta.layout.strides.to_vec(),
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_to_dlpack(value: *const Handle) -> *mut Versioned {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let tensor = unsafe { handles::value(value) }?.value.to_tensor()?;
        let exported = Exported::new(tensor)?;
        // SAFETY: the box was made just now.
        Ok(unsafe { Exported::versioned(exported) })
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_value_free(value: *mut Handle) {
    if !value.is_null() {
        // SAFETY: the value was made by `handle`, and C gives it back once.
        let owned = unsafe { Box::from_raw(value) };
        guarded((), || {
            drop(owned);
            Ok(())
        });
    }
}
