//! The grammar of `grammar.pest`: its parser, and the names of its rules. It knows nothing of trees.

/// What pest derives from grammar.pest.
#[derive(pest_derive::Parser)]
#[grammar = "../../src/frontend/script/grammar.pest"]
pub(super) struct Grammar;
