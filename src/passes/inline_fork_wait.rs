//! Fork and wait: work that was begun beside the rest is done where it begins, so that other passes see it.
//!
//! The condition that makes it right: nothing but `aten::wait` takes the future, so that it is unobservable that there was
//! one. The order that results is one that the scheduler might have chosen; a body that raises does so where it begins.

use super::Context;
use crate::diag::Result;
use crate::ir::{Attr, Graph, OpId, ValueId};
use hashbrown::HashMap;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    let mut work = graph.all_ops();
    while let Some(op) = work.pop() {
        if !graph.is_live(op) || graph.kind(op) != "prim::fork" {
            continue;
        }
        let Some(waits) = waits(graph, op) else { continue };
        if !context.step(|| format!("inlines {}", graph.op_line(op))) {
            break;
        }
        context.count("forks inlined", 1);
        work.extend(inline(graph, op, &waits));
        changed = true;
    }
    Ok(changed)
}

/// The waits for a fork, if nothing else takes its future.
fn waits(graph: &Graph, fork: OpId) -> Option<Vec<OpId>> {
    let future = graph.result(fork, 0)?;
    let users: Vec<OpId> = graph.uses(future).map(|u| u.op).collect();
    users.iter().all(|user| graph.kind(*user) == "aten::wait").then_some(users)
}

/// Puts the body in the place of the fork, and its result in the place of what was waited for. Gives the ops of the
/// body, nested ones too.
fn inline(graph: &mut Graph, fork: OpId, waits: &[OpId]) -> Vec<OpId> {
    let Some(body) = graph.attr(fork, "Subgraph").and_then(Attr::as_graph).cloned() else {
        return Vec::new();
    };
    let mut map: HashMap<ValueId, ValueId> =
        body.inputs().iter().copied().zip(graph.operands(fork).iter().copied()).collect();
    let mut copies = Vec::new();
    for op in body.block_ops(body.root()) {
        let copy = graph.clone_op(Some(&body), op, &mut map);
        graph.insert_before(copy, fork);
        copies.push(copy);
    }
    let results: Vec<ValueId> = body.outputs().iter().map(|v| map.get(v).copied().unwrap_or(*v)).collect();
    for wait in waits {
        graph.replace_op(*wait, &results);
    }
    graph.erase(fork);
    let mut at = 0;
    while let Some(op) = copies.get(at).copied() {
        let nested = graph.nested_blocks(op).to_vec();
        copies.extend(nested.into_iter().flat_map(|block| graph.block_ops(block).collect::<Vec<_>>()));
        at += 1;
    }
    copies
}
