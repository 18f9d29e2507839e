//! Flambeau for C and C++: the functions of `include/flambeau.h`, whose comments say what each does.
//!
//! A function here turns pointers into values of the engine, calls it, and turns the answer into a pointer; what is a number
//! or a tensor is the engine's. Panics become errors, and errors become a message of the thread.

mod handles;
mod limits;
mod module;
mod operators;
mod read;
mod runs;
mod write;

use engine::diag::{Diagnostic, ErrorKind, Result, panics, torch};
use engine::runtime::traceback;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::ptr::null;

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
    /// The limit that the call reached.
    static LIMIT: RefCell<Option<CString>> = const { RefCell::new(None) };
}

/// The message of the last call of this thread that failed.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "C calls it by its name")]
pub extern "C" fn flambeau_last_error() -> *const c_char {
    LAST.with_borrow(|text| text.as_ptr())
}

/// The limit that the last call of this thread that failed had reached.
#[unsafe(no_mangle)]
#[allow(unsafe_code, reason = "C calls it by its name")]
pub extern "C" fn flambeau_last_limit() -> *const c_char {
    LIMIT.with_borrow(|name| name.as_ref().map_or(null(), |name| name.as_ptr()))
}

/// Does `work`; `failed` and a message where it fails or panics.
fn guarded<T>(failed: T, work: impl FnOnce() -> Result<T>) -> T {
    match panics::catch("the library", work).and_then(|result| result) {
        Ok(answer) => answer,
        Err(error) => {
            LAST.set(message(&error));
            LIMIT.set(error.report().limit.and_then(|name| CString::new(name).ok()));
            failed
        }
    }
}

/// What PyTorch's exception would say, and hints.
fn message(error: &Diagnostic) -> CString {
    let mut text = match error.kind() {
        ErrorKind::Syntax | ErrorKind::Compile => torch::render(error),
        _ => traceback::python(error).1,
    };
    // Hints on limits name options of the command line.
    let hints = &error.report().hints;
    for hint in hints.iter().filter(|_| error.report().limit.is_none()) {
        text.push_str("\nhint: ");
        text.push_str(hint);
    }
    text.retain(|c| c != '\0');
    CString::new(text).unwrap_or_default()
}
