//! From rule files to rules that can be matched: read, resolved against the op rows, and kept with the table of ops.

pub mod compile;
pub mod condition;
pub mod facts;
pub(super) mod groups;
pub(super) mod kept;
pub(super) mod named;
mod op_variables;
pub(super) mod parse;
pub(super) mod reachable;
pub mod rule;
pub(super) mod shelf;
pub(super) mod shown;
pub mod syntax;
#[cfg(test)]
mod tests;
mod wanted;
