//! Drops values that a loop carries for themselves alone: in each iteration they are computed from each other, and neither what
//! follows the loop, nor its condition, nor an effect of its body depends on them. Dead code elimination keeps them, as PyTorch's
//! does: each is used by the next. Unrequested gradients and the lists that loops keep for a backward are such values.

use super::{Context, dce};
use crate::diag::Result;
use crate::ir::{Graph, OpId, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let live = dce::live_values(graph, context);
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) == "prim::Loop" {
            changed |= narrow(graph, context, op, &live);
        }
    }
    if changed {
        dce::run(graph, context)?;
    }
    Ok(changed)
}

fn narrow(graph: &mut Graph, context: &Context<'_>, op: OpId, live: &[bool]) -> bool {
    let &[body] = graph.nested_blocks(op) else { return false };
    let is_live = |value: Option<ValueId>| value.is_none_or(|value| live[value.index()]);
    let mut changed = false;
    for n in (0..graph.result_count(op)).rev() {
        let param = graph.params(body).get(n + 1).copied();
        let is_used = graph.result(op, n).is_none_or(|result| graph.has_uses(result));
        if is_used || is_live(graph.result(op, n)) || is_live(param) {
            continue;
        }
        let Some((init, param)) = graph.operand(op, n + 2).zip(param) else {
            continue;
        };
        if !context.step(|| format!("drops value {n} that is carried by {}", graph.op_line(op))) {
            break;
        }
        graph.remove_block_result(body, n + 1);
        graph.replace_all_uses(param, init);
        graph.remove_param(body, n + 1);
        graph.remove_operand(op, n + 2);
        graph.remove_result(op, n);
        changed = true;
    }
    changed
}
