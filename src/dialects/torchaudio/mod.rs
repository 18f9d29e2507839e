//! The `torchaudio` dialect: the operators that torchaudio registers for the CPU, which its filters, aligners and losses
//! call. They have no derivative here.

mod align;
mod checks;
mod filter;
mod transducer;

use super::OpDef;

/// All rows, file by file, in the order of registration.
pub static TABLES: &[&[OpDef]] = &[filter::OPS, align::OPS, transducer::OPS];
