//! Simplification of a graph: into the e-graph, rules until nothing is new, the cheapest form out again.

use super::egraph::enter::load;
use super::egraph::saturate::Saturation;
use super::egraph::trace::Trace;
use super::extract;
use super::load::rule::CompiledRule;
use super::report::{Questions, Report, Settings};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Graph, Module};

/// Simplifies a graph.
pub fn simplify(
    graph: &mut Graph,
    registry: &Registry,
    module: Option<&Module>,
    rules: &[CompiledRule],
    settings: &Settings,
) -> Result<Report> {
    simplify_explained(graph, registry, module, rules, settings, &Questions::default())
}

/// Simplifies a graph in the same way, and answers questions about it in the report.
pub fn simplify_explained(
    graph: &mut Graph,
    registry: &Registry,
    module: Option<&Module>,
    rules: &[CompiledRule],
    settings: &Settings,
    questions: &Questions,
) -> Result<Report> {
    let aliases = AliasDb::new(registry, module, graph);
    let loaded = load(graph, registry, &aliases);
    let mut run = Saturation::new(loaded, rules, settings.budget);
    run.contract = settings.contract;
    if questions.any() {
        run.trace = Some(Trace::new(&run.loaded, questions.why_not.clone(), settings.cost));
    }
    run.one_by_one = settings.one_by_one;
    run.saturate(graph);
    let mut report = std::mem::take(&mut run.report);
    if !run.firings.is_empty() || questions.any() {
        extract::write_back(graph, registry, &aliases, &run, settings, &mut report);
    }
    Ok(report)
}
