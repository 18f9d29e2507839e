//! The `torchaudio` dialect: the operators that torchaudio registers for the CPU, which its filters, aligners and losses
//! call. They have no derivative here.

mod align;
mod filter;
mod transducer;

use super::OpDef;
use crate::diag::{Diagnostic, Result};

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[filter::OPS, align::OPS, transducer::OPS];

/// An error with this text unless the condition holds.
fn expect(holds: bool, text: &str) -> Result<()> {
    if holds { Ok(()) } else { Err(Diagnostic::runtime(text)) }
}
