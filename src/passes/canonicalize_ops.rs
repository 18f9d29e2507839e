//! `canonicalize-ops`: arithmetic with numbers and chunks as fusion takes them, by directed rules; then dead code is erased, as
//! PyTorch's pass does whether it found something or not.

use super::rule_group::Directed;
use super::{Context, dce};
use crate::diag::Result;
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let replaced = Directed::group("canonicalize-ops").run(graph, context)?;
    Ok(dce::run(graph, context)? || replaced)
}
