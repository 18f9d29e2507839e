//! TorchScript source, and the code of archives, to IR.
//!
//! `layout` finds lines and blocks, `grammar.pest` the structure, `ast` is what comes out: what PyTorch's own
//! text parser accepts and refuses, with its messages. `emit` makes graphs with loads and stores of variables,
//! `ssa` threads them through control flow, `exits` removes early exits, `lift` turns closures into subgraphs,
//! `cleanup` removes dead code.

pub mod ast;
#[cfg(test)]
mod conformance;
mod dump;
mod cleanup;
mod compile;
mod emit;
mod exits;
mod expr;
mod grammar;
mod host;
mod kinds;
mod layout;
mod library;
mod lift;
mod literal;
mod outline;
mod parse;
mod ssa;
mod stmt;
#[cfg(test)]
mod tests;
mod token;

pub use compile::{
    ArchiveCode, Library, compile_archive, compile_further, compile_hosted, compile_source, parse_annotation,
};
pub use host::{ClassText, FunctionText, HOST_NAME, Host, Items, Meaning, Member};
pub use outline::{ClassOutline, FunctionOutline, Outline, outline};
pub use parse::{parse_expr, parse_library, parse_module, parse_python, parse_type};
