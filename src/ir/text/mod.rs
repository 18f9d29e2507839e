//! The textual form of the IR, as PyTorch has it: types, schemas, attributes, graphs and modules, each parsed and printed. The
//! parsers share one cursor and read by hand; `grammar.pest` documents the language, and tests hold the two against each other.

pub(super) mod attr;
#[cfg(test)]
mod grammar_check;
pub(super) mod lexer;
pub(super) mod module_parse;
pub(super) mod module_print;
mod names;
pub mod number;
pub(super) mod options;
pub(super) mod parser;
pub(super) mod printer;
pub mod schema;
mod tensor;
#[cfg(test)]
mod torch;
pub(super) mod type_parse;
mod type_print;
