//! Reading files that a person names, with this crate's errors; the reading itself is a crate of the workspace that lit and
//! FileCheck share. Knows nothing of what is in a file.

use super::{Diagnostic, Result};
pub use flambeau_files::*;
use std::path::Path;

/// [`read_text`] with an error that names the file.
pub fn text(path: &Path) -> Result<String> {
    read_text(path).map_err(|e| Diagnostic::input(format!("{}: {e}", path.display())))
}
