//! Drops dropout that does nothing: where `train` is the constant False its result is its input.
//!
//! The result may become the input's alias only where nobody writes to either and not both are known outside.

use super::{Context, constants};
use crate::analysis::AliasDb;
use crate::diag::Result;
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    let mut changed = false;
    for op in graph.all_ops() {
        let is_dropout =
            matches!(graph.kind(op).base(), "dropout" | "dropout_" | "feature_dropout" | "feature_dropout_");
        let train = graph.operand(op, 2).and_then(|value| constants::bool_of(graph, value));
        let (Some(input), Some(result)) = (graph.operand(op, 0), graph.result(op, 0)) else { continue };
        let in_place = graph.kind(op).base().ends_with('_');
        if is_dropout
            && train == Some(false)
            && (in_place || db.safe_to_change_aliasing(graph, input, result))
        {
            graph.replace_op(op, &[input]);
            changed = true;
        }
    }
    Ok(changed)
}
