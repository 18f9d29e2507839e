//! `loop-hoist`: what is the same in all iterations is computed before the loop.
//!
//! Only what computes a number and cannot fail moves: a loop without iterations would not have come to it. Inner loops come
//! first, so that a value leaves as many loops as it can.

use crate::analysis::is_pure;
use crate::diag::Result;
use crate::dialects::loops::is_kernel;
use crate::dialects::loops::nest::{Loop, may_trap};
use crate::ir::{Graph, OpId};
use crate::passes::Context;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    if !is_kernel(graph) {
        return Ok(false);
    }
    let mut changed = false;
    for l in Loop::all(graph).into_iter().rev() {
        for op in graph.block_ops(l.block).collect::<Vec<_>>() {
            if !is_invariant(graph, context, l, op) {
                continue;
            }
            if !context.step(|| format!("hoists {}", graph.op_line(op).trim())) {
                return Ok(changed);
            }
            graph.move_before(op, l.op);
            changed = true;
        }
    }
    Ok(changed)
}

fn is_invariant(graph: &Graph, context: &Context<'_>, l: Loop, op: OpId) -> bool {
    graph.nested_blocks(op).is_empty()
        && graph.result_count(op) > 0
        && is_pure(context.registry, graph, op)
        && !may_trap(graph, op)
        && graph.operands(op).iter().all(|operand| graph.is_visible(*operand, l.op))
}
