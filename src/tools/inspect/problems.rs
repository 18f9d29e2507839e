//! What is wrong with a file, gathered while the rest of it is described. It knows nothing of formats.

use crate::diag::{Diagnostic, Result};
use serde_json::{Value as Json, json};

/// What is wrong with an archive, as far as it was met.
pub(super) struct Problems(pub(super) Vec<Diagnostic>);

impl Problems {
    /// What was read, if it could be.
    pub(super) fn keep<T>(&mut self, result: Result<T>) -> Option<T> {
        result.map_err(|error| self.0.push(error)).ok()
    }

    pub(super) fn rows(&self) -> Vec<Json> {
        let row = |error: &Diagnostic| json!({ "message": error.message(), "hints": error.report().hints });
        self.0.iter().map(row).collect()
    }
}
