//! Limits over what a thread of C does, from one call until another.

#![allow(unsafe_code, reason = "C gives pointers; their requirements are stated in flambeau.h")]

use crate::guarded;
use engine::diag::{Diagnostic, Result};
use engine::resources::limits::{self, Limits};
use engine::resources::scope::Scope;
use std::ptr::null_mut;

/// `flambeau_limits`: 0 means no limit, or the default one.
#[repr(C)]
pub struct Given {
    /// Bytes that live at one time.
    pub memory: u64,
    /// Instructions of the interpreter.
    pub steps: u64,
    /// From now on.
    pub seconds: f64,
    /// Calls nested in each other.
    pub depth: u64,
    /// Bytes printed.
    pub output: u64,
    /// Warnings given.
    pub warnings: u64,
    /// Forked tasks that have not ended.
    pub forks: u64,
}

impl Given {
    fn limits(&self) -> Result<Limits> {
        let default = Limits::default();
        let some = |number: u64| (number != 0).then_some(number);
        // More than any size of this machine means no limit.
        let count = |number: u64| some(number).map(|number| usize::try_from(number).unwrap_or(usize::MAX));
        Ok(Limits {
            steps: some(self.steps),
            bytes: some(self.memory),
            time: if self.seconds == 0.0 { None } else { Some(limits::seconds_of(self.seconds)?) },
            depth: count(self.depth).unwrap_or(default.depth),
            output: some(self.output),
            warnings: count(self.warnings),
            forks: count(self.forks).unwrap_or(default.forks),
        })
    }
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_limits_begin(limits: *const Given) -> *mut Scope {
    guarded(null_mut(), || {
        // SAFETY: the caller's promise.
        let given = unsafe { limits.as_ref() }.ok_or_else(|| Diagnostic::input("the limits are NULL"))?;
        Ok(Box::into_raw(Box::new(Scope::begin(given.limits()?))))
    })
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_scope_cancel(scope: *const Scope) {
    // SAFETY: the caller's promise.
    if let Some(scope) = unsafe { scope.as_ref() } {
        scope.cancel();
    }
}

/// See flambeau.h.
///
/// # Safety
/// See flambeau.h.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn flambeau_scope_free(scope: *mut Scope) {
    if !scope.is_null() {
        // SAFETY: the scope was made by `flambeau_limits_begin`, and C gives it back once.
        drop(unsafe { Box::from_raw(scope) });
    }
}
