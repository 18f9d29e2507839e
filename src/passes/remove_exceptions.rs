//! Assumes that programs do not raise: a branch that certainly raises is never taken, so that checks of arguments
//! vanish. What is assumed cannot be known; this is for models whose inputs are known to be good.

use super::{Context, constant_pooling, constant_propagation, constants};
use crate::analysis::facts;
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{BlockId, Graph};
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != "prim::If" {
            continue;
        }
        let &[yes, no] = graph.nested_blocks(op) else { continue };
        let taken = match (raises(graph, context, yes), raises(graph, context, no)) {
            (true, false) => false,
            (false, true) => true,
            _ => continue,
        };
        if context.step(|| format!("takes the branch that does not raise of {}", graph.op_line(op)))
            && let Some(condition) = constants::insert_before(graph, op, &Value::Bool(taken))
        {
            graph.set_operand(op, 0, condition);
            changed = true;
        }
    }
    if changed {
        context.changed();
        constant_propagation::immutable_types(graph, context)?;
        context.changed();
        constant_pooling::run(graph, context)?;
    }
    Ok(changed)
}

/// Whether a block raises whenever it runs.
fn raises(graph: &Graph, context: &Context<'_>, block: BlockId) -> bool {
    graph.block_ops(block).any(|op| {
        graph.nested_blocks(op).is_empty()
            && facts(context.registry, graph, op).effects.contains(Effects::NEVER_RETURNS)
    })
}
