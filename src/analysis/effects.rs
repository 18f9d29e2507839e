//! The effects of an op in a graph: its row's, the writes its schema marks, and those of nested blocks.

use crate::dialects::{Effects, Op, Registry, resolve};
use crate::ir::{Attr, Graph, OpId};

/// What is known of an op.
#[derive(Clone, Debug)]
pub struct OpFacts {
    /// Its row, if there is one for its operands.
    pub op: Option<Op>,
    /// Everything it does besides computing, nested blocks and subgraphs included. An unknown op does all.
    pub effects: Effects,
    /// Whether it may write to an operand (or a nested op to anything).
    pub writes: bool,
}

/// Collects the facts of an op.
pub fn facts(registry: &Registry, graph: &Graph, op: OpId) -> OpFacts {
    let mut total = own_facts(registry, graph, op);
    let mut work: Vec<OpId> = nested(graph, op);
    while let Some(inner) = work.pop() {
        let found = own_facts(registry, graph, inner);
        total.effects = total.effects | found.effects;
        total.writes |= found.writes;
        work.extend(nested(graph, inner));
    }
    if let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph) {
        for inner in body.all_ops() {
            let found = own_facts(registry, body, inner);
            total.effects = total.effects | found.effects;
            total.writes |= found.writes;
        }
    }
    total
}

/// What the op does besides computing, not counting what is nested in it.
pub(super) fn own_effects(registry: &Registry, graph: &Graph, op: OpId) -> Effects {
    own_facts(registry, graph, op).effects
}

/// Whether nobody can tell that the op did not run, but by its results or by its raising.
pub fn is_pure(registry: &Registry, graph: &Graph, op: OpId) -> bool {
    let facts = facts(registry, graph, op);
    let harmless = Effects::MAY_RAISE | Effects::CONTROL;
    !facts.writes && harmless.contains(facts.effects)
}

fn nested(graph: &Graph, op: OpId) -> Vec<OpId> {
    graph.nested_blocks(op).iter().flat_map(|block| graph.block_ops(*block)).collect()
}

fn own_facts(registry: &Registry, graph: &Graph, op: OpId) -> OpFacts {
    let Ok(row) = resolve(registry, graph, op) else {
        return OpFacts { op: None, effects: Effects::ALL, writes: true };
    };
    let mut effects = row.def().effects;
    let has_body = !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some();
    if effects.contains(Effects::CONTROL) && !has_body {
        // A call: what the callee does is not looked at here.
        effects = Effects::ALL;
    }
    let writes =
        row.marked_schema().map_or(true, |schema| schema.is_mutable()) && !is_read_only(graph, op, &row);
    OpFacts { op: Some(row), effects, writes }
}

/// Whether the argument that says whether an op writes is the constant False.
pub fn is_read_only(graph: &Graph, op: OpId, row: &Op) -> bool {
    let flag = row.def().hidden.and_then(|hidden| hidden.writes_if);
    let index = flag.and_then(|name| row.schema().ok()?.argument_index(name));
    let constant = index
        .and_then(|n| graph.operand(op, n))
        .and_then(|value| graph.def_op(value))
        .filter(|def| graph.kind(*def) == "prim::Constant");
    constant.and_then(|def| graph.attr(def, "value")).and_then(Attr::as_int) == Some(0)
}
