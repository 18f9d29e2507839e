//! Dead code elimination. An op stays if it does something besides computing, or if somebody uses a result.
//! What may raise may go, as in PyTorch; what writes the world or a tensor stays.

use super::Context;
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{BlockId, Graph, OpId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let before = graph.op_count();
    // Blocks are visited from the outside in, ops from the last to the first, so that users go before makers.
    let mut blocks = vec![graph.root()];
    while let Some(block) = blocks.pop() {
        sweep(graph, context, block);
        for op in graph.block_ops(block) {
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
    }
    // Removing an inner op can free an outer one.
    let changed = graph.op_count() != before;
    if changed {
        run(graph, context)?;
    }
    Ok(changed)
}

fn sweep(graph: &mut Graph, context: &Context<'_>, block: BlockId) {
    let mut at = graph.last_op(block);
    while let Some(op) = at {
        at = graph.prev(op);
        if is_dead(graph, context, op) && context.step(|| format!("erases {}", graph.op_line(op))) {
            graph.erase(op);
            context.count("ops erased", 1);
        }
    }
}

fn is_dead(graph: &Graph, context: &Context<'_>, op: OpId) -> bool {
    if graph.results(op).iter().any(|value| graph.has_uses(*value)) {
        return false;
    }
    let facts = facts(context.registry, graph, op);
    let keeps = Effects::WRITES_WORLD | Effects::RANDOM | Effects::NEVER_RETURNS;
    !facts.writes && !facts.effects.intersects(keeps)
}
