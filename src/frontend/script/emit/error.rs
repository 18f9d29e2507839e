//! Errors of the compiler at a place.

use crate::diag::{Diagnostic, Result, Span};

/// An error of the compiler at a place.
pub(super) fn error<T>(span: &Span, message: impl Into<String>) -> Result<T> {
    Err(Diagnostic::compile(message).at(span))
}
