//! Drops `expand` that tracing put where broadcasting happens anyway (`implicit` is True): every user broadcasts.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let implicit = graph.operand(op, 2).and_then(|value| constants::bool_of(graph, value));
        if graph.kind(op) == "aten::expand"
            && implicit == Some(true)
            && context.step(|| format!("drops {}", graph.op_line(op)))
        {
            let input = graph.operands(op)[0];
            graph.replace_op(op, &[input]);
            changed = true;
        }
    }
    Ok(changed)
}
