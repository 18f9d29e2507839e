//! Removes dropout in evaluation mode: where `train` is the constant False its result is its input.
//!
//! That result is the very tensor that went in, not a copy, so that nobody can tell the difference.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let is_dropout =
            matches!(graph.kind(op).base(), "dropout" | "dropout_" | "feature_dropout" | "feature_dropout_");
        let train = graph.operand(op, 2).and_then(|value| constants::bool_of(graph, value));
        let Some(input) = graph.operand(op, 0) else { continue };
        if is_dropout && train == Some(false) && context.step(|| format!("drops {}", graph.op_line(op))) {
            graph.replace_op(op, &[input]);
            changed = true;
        }
    }
    Ok(changed)
}
