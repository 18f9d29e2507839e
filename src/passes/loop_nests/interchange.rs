//! `loop-interchange`: a loop and the one loop within it change places.
//!
//! What else stands in the outer loop computes numbers only; it goes within both. The order of iterations changes, which asks that
//! those of the outer loop do not meet in memory: then all that meets lies in one of them, where the order stays.

use super::chosen::{chosen, refuse};
use super::independence::independent;
use crate::analysis::is_pure;
use crate::diag::Result;
use crate::dialects::loops::Mark;
use crate::dialects::loops::nest::{Loop, index_before};
use crate::ir::{Graph, OpId};
use crate::passes::Context;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (loops, named) = chosen(graph, context)?;
    let mut changed = false;
    // Outer loops first, and each loop once: what has moved inwards stays.
    let mut moved: Vec<OpId> = Vec::new();
    for outer in loops {
        if moved.contains(&outer.op) {
            continue;
        }
        let inner = match inner_of(graph, context, outer) {
            Ok(inner) => inner,
            Err(why) => {
                refuse(graph, context, outer, named, &why)?;
                continue;
            }
        };
        let names = [outer, inner].map(|l| graph.display_name(l.iv).to_string());
        if !context.step(|| format!("puts the loop over %{} within the one over %{}", names[0], names[1])) {
            return Ok(changed);
        }
        swap(graph, outer, inner, &names);
        moved.push(inner.op);
        changed = true;
    }
    Ok(changed)
}

/// The loop to change places with, or why there is none.
fn inner_of(graph: &Graph, context: &Context<'_>, outer: Loop) -> Result<Loop, String> {
    let mut inner = None;
    for op in graph.block_ops(outer.block) {
        match Loop::of(graph, op) {
            Some(_) if inner.is_some() => return Err("has several loops within".into()),
            Some(found) => inner = Some(found),
            None if is_pure(context.registry, graph, op) => {}
            None => return Err(format!("has a {} beside the loop within", graph.kind(op))),
        }
    }
    let inner = inner.ok_or("has no loop within")?;
    if !inner.inits(graph).is_empty() {
        return Err("has a loop within that carries values".into());
    }
    if ![inner.begin, inner.end, inner.step].iter().all(|bound| graph.is_visible(*bound, outer.op)) {
        return Err("has a loop within whose bounds differ between iterations".into());
    }
    if [outer, inner].iter().any(|l| !matches!(l.mark(graph), Mark::Serial | Mark::Vector)) {
        return Err("or the loop within is marked parallel".into());
    }
    independent(graph, outer)?;
    Ok(inner)
}

/// Exchanges what the two ops are: bounds, attributes and the uses of their indices.
fn swap(graph: &mut Graph, outer: Loop, inner: Loop, names: &[String; 2]) {
    let first = graph.first_op(inner.block);
    for op in graph.block_ops(outer.block).collect::<Vec<_>>() {
        if op == inner.op {
            continue;
        }
        match first {
            Some(first) => graph.move_before(op, first),
            None => graph.move_to_end(op, inner.block),
        }
    }
    let (bounds, others) = (graph.operands(outer.op).to_vec(), graph.operands(inner.op).to_vec());
    graph.set_operands(outer.op, &others);
    graph.set_operands(inner.op, &bounds);
    let marks = [outer, inner].map(|l| l.mark(graph));
    outer.set_mark(graph, marks[1]);
    inner.set_mark(graph, marks[0]);
    let between = index_before(graph, outer.op, 0);
    graph.replace_all_uses(outer.iv, between);
    graph.replace_all_uses(inner.iv, outer.iv);
    graph.replace_all_uses(between, inner.iv);
    if let Some(op) = graph.def_op(between) {
        graph.erase(op);
    }
    graph.set_name(outer.iv, &names[1]);
    graph.set_name(inner.iv, &names[0]);
}
