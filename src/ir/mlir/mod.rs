//! Modules in MLIR's generic form, both ways: `%2 = "aten.add"(%0, %1) : (f64, f64) -> f64`, so that `mlir-opt` and
//! `xdsl-opt` with `--allow-unregistered-dialect` read and print them.
//!
//! # The form
//! * `aten::add` is `"aten.add"`; the first dot stands for the two colons.
//! * A function is `"torch.graph"`, whose region ends with `"torch.return"`; nested blocks end with `"torch.yield"`. Its
//!   `sym_name`, `schema` and `arg_names` hold what MLIR's printer does not keep. The subgraph of a group is a region after
//!   the op's blocks, and `torch.subgraphs` names the attributes that such regions stand for.
//! * `int`, `float`, `bool` are `i64`, `f64`, `i1`; a tensor of which dtype and sizes are known and nothing else is
//!   `tensor<2x?xf32>`; every other type is `!torch.type<"...">` with its text in PyTorch's form.
//! * Numbers, truth values, text, types and flat lists of them are MLIR's attributes; every other attribute is
//!   `#torch.attr<"...">` with its exact text, tensors with their content; `#torch.raw<"...">` is text that stands in the
//!   brackets of an op of another dialect.
//! * Classes, interfaces, enums and named tuples are the text of one `"torch.declarations"`.
//!
//! Knows no op by name but those five of its own. The source of the syntax is MLIR's language reference, section "Generic
//! operation".

mod attributes;
mod build;
mod parse;
mod print;
#[cfg(test)]
mod tests;
mod strings;
mod types;

pub use build::parse_mlir;

/// The op that stands for a function.
const GRAPH: &str = "torch.graph";
/// The op that holds declarations.
const DECLARATIONS: &str = "torch.declarations";
/// The end of a graph's region.
const RETURN: &str = "torch.return";
/// The end of a block's region.
const YIELD: &str = "torch.yield";
/// The attribute that says for which attributes the last regions stand.
const SUBGRAPHS: &str = "torch.subgraphs";

/// Whether a text is in MLIR's form, by its first line that is not a comment.
pub fn is_mlir(text: &str) -> bool {
    let first = text.lines().map(str::trim_start).find(|line| !line.is_empty() && !line.starts_with("//"));
    let Some(first) = first else { return false };
    let word = first.split(|c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '_')).next();
    let is_op = || {
        let quoted = first.strip_prefix('"').and_then(|rest| rest.split_once('"'));
        quoted.is_some_and(|(_, rest)| rest.trim_start().starts_with(['(', '<']))
    };
    let opens = || first.contains('{');
    matches!(word, Some("module" | "builtin.module")) && opens() || is_op() || first.starts_with("#loc")
}
