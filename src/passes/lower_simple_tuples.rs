//! Folds TupleConstruct followed by TupleUnpack: `TupleUnpack(TupleConstruct(a, b))` is `a, b`. Other tuples stay.
//! A tuple cannot be changed, so that its parts are always what it was made of.

use super::{Context, dce, tuples};
use crate::diag::Result;
use crate::ir::Graph;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        changed |= tuples::take_apart(graph, op, &|graph| {
            context.step(|| format!("takes apart for {}", graph.op_line(op)))
        });
    }
    Ok(dce::without_aliases(graph, context) || changed)
}
