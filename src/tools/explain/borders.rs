//! Borders of fusion groups: which neighbours of a group are outside of it, and why.

use super::super::observe::kernel_name;
use super::super::table::Table;
use crate::dialects::{Registry, fusion};
use crate::ir::{Graph, Module, OpId};
use crate::passes::{Context, producers, users, why_apart, why_outside};
use serde_json::{Value as Json, json};

/// A neighbour of a group.
pub(super) struct Border {
    group: String,
    /// Whether the group takes what the neighbour gives; else the neighbour takes what the group gives.
    before: bool,
    neighbour: String,
    why: String,
}

/// The borders of all groups of a graph, in order.
pub(super) fn of(graph: &Graph, registry: &Registry) -> Vec<Border> {
    let module = Module::default();
    let context = Context::new(registry, &module);
    let mut out = Vec::new();
    for group in graph.all_ops().into_iter().filter(|op| fusion::is_group(graph.kind(*op))) {
        let mut border = |before: bool, other: OpId| {
            let (first, second) = if before { (other, group) } else { (group, other) };
            // A border of two groups is reported once.
            if !(before && fusion::is_group(graph.kind(other))) {
                let why = why(graph, &context, other, (first, second));
                out.push(Border { group: shown(graph, group), before, neighbour: shown(graph, other), why });
            }
        };
        producers(graph, group).into_iter().for_each(|other| border(true, other));
        users(graph, group).into_iter().for_each(|other| border(false, other));
    }
    out
}

fn why(graph: &Graph, context: &Context<'_>, other: OpId, (first, second): (OpId, OpId)) -> String {
    if fusion::is_group(graph.kind(other)) || graph.parent(first) != graph.parent(second) {
        return why_apart(graph, context, first, second);
    }
    why_outside(graph, context, other).unwrap_or_else(|| {
        let part = if other == first { "after" } else { "before" };
        format!("it is a layer, which has taken what it can of the work {part} it")
    })
}

/// What people call an op.
fn shown(graph: &Graph, op: OpId) -> String {
    match fusion::subgraph(graph, op) {
        Some(body) => kernel_name(body),
        None => graph.kind(op).as_str().to_string(),
    }
}

/// A table for people; empty where no group has a neighbour.
pub(super) fn to_text(borders: &[Border]) -> String {
    if borders.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["group", "side", "neighbour", "why it is outside"]);
    for border in borders {
        let side = if border.before { "takes of" } else { "gives to" };
        table.row([border.group.clone(), side.to_string(), border.neighbour.clone(), border.why.clone()]);
    }
    format!("borders of groups\n{table}")
}

/// The same for programs.
pub(super) fn to_json(borders: &[Border]) -> Json {
    let one = |border: &Border| {
        let side = if border.before { "before" } else { "behind" };
        json!({"group": border.group, "side": side, "neighbour": border.neighbour, "why": border.why})
    };
    borders.iter().map(one).collect()
}
