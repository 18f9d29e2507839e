//! The two kinds of handles, and how pointers become references.

#![allow(
    unsafe_code,
    reason = "C gives pointers; their requirements are stated in flambeau.h and checked for null here"
)]

use engine::diag::{Diagnostic, Result};
use engine::tensor::Pin;
use engine::value::Value;
use std::ffi::{CStr, c_char};
use std::sync::OnceLock;

/// A value, with what C looks at as long as it lives.
pub(crate) struct Handle {
    pub value: Value,
    /// Ends in a zero byte.
    pub text: OnceLock<Vec<u8>>,
    pub array: OnceLock<Lent>,
}

/// Memory of a tensor that C may look at: it stays at its place.
pub(crate) struct Lent {
    pub pin: Pin,
    /// Of the element with all indices 0, in bytes from the start of the storage.
    pub offset: usize,
    pub dtype: i32,
    pub sizes: Vec<i64>,
    pub strides: Vec<i64>,
}

/// A value as a handle that C owns.
pub(crate) fn handle(value: Value) -> *mut Handle {
    Box::into_raw(Box::new(Handle { value, text: OnceLock::new(), array: OnceLock::new() }))
}

pub(crate) fn null(what: &str) -> Diagnostic {
    Diagnostic::input(format!("{what} is NULL"))
}

/// # Safety
/// The pointer must be null or a living handle of `handle`.
pub(crate) unsafe fn value<'a>(handle: *const Handle) -> Result<&'a Handle> {
    // SAFETY: the caller's promise.
    unsafe { handle.as_ref() }.ok_or_else(|| null("the value"))
}

/// # Safety
/// `items` must have `count` entries, each null or a living handle.
pub(crate) unsafe fn values(items: *const *const Handle, count: usize) -> Result<Vec<Value>> {
    if count == 0 {
        return Ok(Vec::new());
    }
    if items.is_null() {
        return Err(null("the array of values"));
    }
    // SAFETY: the caller's promise, for the array and for each entry.
    let handles = unsafe { std::slice::from_raw_parts(items, count) };
    handles.iter().map(|h| Ok(unsafe { value(*h) }?.value.clone())).collect()
}

/// # Safety
/// The pointer must be null or a text that ends in a zero byte.
pub(crate) unsafe fn text<'a>(from: *const c_char, what: &str) -> Result<&'a str> {
    if from.is_null() {
        return Err(null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(from) };
    text.to_str().map_err(|_| Diagnostic::input(format!("{what} is not UTF-8")))
}

/// # Safety
/// `from` must have `size` bytes; it may be null where there are none.
pub(crate) unsafe fn bytes<'a>(from: *const u8, size: usize, what: &str) -> Result<&'a [u8]> {
    if size == 0 {
        return Ok(&[]);
    }
    if from.is_null() {
        return Err(null(what));
    }
    if isize::try_from(size).is_err() {
        return Err(Diagnostic::input(format!("{what} has {size} bytes: more than there can be")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(from, size) })
}
