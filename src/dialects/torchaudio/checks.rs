//! What the operators demand of their arguments, in words of their own. No operator is known here.

use crate::diag::{Diagnostic, Result};

/// An error with this text unless the condition holds.
pub(super) fn expect(holds: bool, text: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Diagnostic::runtime(text)) }
}
