//! Modules from text of either form.

use super::text::module_parse::{ParsedModule, parse_text};
use super::{ParseOptions, mlir};
use crate::diag::{Diagnostic, Source};
use std::sync::Arc;

/// Reads a file, in PyTorch's form or in MLIR's generic one. The errors come in the order of their places.
pub fn parse_module(source: &Arc<Source>, options: &ParseOptions) -> Result<ParsedModule, Vec<Diagnostic>> {
    match mlir::is_mlir(source.text()) {
        true => mlir::parse_mlir(source, options),
        false => parse_text(source, options),
    }
}
