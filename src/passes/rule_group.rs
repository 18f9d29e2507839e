//! Passes that are a group of rewrite rules and nothing else: [`super::Pass::rules`].

use super::{Context, PassOption, simplify};
use crate::diag::Result;
use crate::ir::Graph;
use crate::rewrite;

/// What such a pass takes: the options of `simplify` but the file of further rules.
pub(super) const OPTIONS: &[PassOption] = simplify::OPTIONS.split_at(1).1;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>, group: &str) -> Result<bool> {
    let rules = rewrite::group(context.registry, group)?;
    let contract = simplify::contract(context).unwrap_or_default();
    let manner = simplify::Manner { one_by_one: false, contract };
    Ok(simplify::apply(graph, context, &rules, &manner)?.replaced > 0)
}
