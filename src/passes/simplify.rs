//! Algebraic simplification: all built-in rules, saturated in an e-graph. See `src/rewrite`.

use super::Context;
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::Graph;
use crate::rewrite::{self, CompiledRule, Settings};
use std::sync::LazyLock;

/// The built-in rules over the built-in ops. They are data of the program, so that a test finds any fault in them.
static RULES: LazyLock<Result<Vec<CompiledRule>>> = LazyLock::new(|| rewrite::builtin(&Registry::builtin()));

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let rules = RULES.as_ref().map_err(Clone::clone)?;
    let report =
        rewrite::simplify(graph, context.registry, Some(context.module), rules, &Settings::default())?;
    context.count("ops replaced", report.replaced as u64);
    Ok(report.replaced > 0)
}
