//! PyTorch's peephole optimizations: the rules of group `torchscript-peephole`, saturated like all others, and the
//! removal of what they left without use.

use super::Context;
use super::{dce, simplify};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::Graph;
use crate::rewrite::{self, CompiledRule};
use std::sync::LazyLock;

static RULES: LazyLock<Result<Vec<CompiledRule>>> = LazyLock::new(|| rewrite::peephole(&Registry::builtin()));

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let rules = RULES.as_ref().map_err(Clone::clone)?;
    let replaced = simplify::apply(graph, context, rules)?;
    if replaced > 0 {
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(replaced > 0)
}
