//! The parser of TorchScript text: `layout` finds lines and blocks, `grammar.pest` the structure, and
//! `ast` is what comes out. Accepts and refuses what PyTorch's own text parser does, with its messages.
//! Knows nothing of types, names or IR.

pub mod ast;
mod dump;
mod expr;
mod layout;
mod literal;
mod parse;
mod stmt;
mod token;

pub use parse::{parse_expr, parse_library, parse_module, parse_type};
