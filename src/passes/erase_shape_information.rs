//! Forgets what types say of tensors: dtypes, sizes, layouts, devices. What comes next cannot lean on sizes that hold
//! for one input only.

use super::Context;
use crate::diag::Result;
use crate::ir::unify::without_refinements;
use crate::ir::{Attr, Graph, ValueId};
use std::sync::Arc;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    Ok(erase(&mut graph.clone())
        && context.step(|| "forgets what types say of tensors".to_string())
        && erase(graph))
}

fn erase(graph: &mut Graph) -> bool {
    let mut values: Vec<ValueId> = graph.inputs().to_vec();
    let mut changed = false;
    for op in graph.all_ops() {
        values.extend(graph.results(op));
        for block in graph.nested_blocks(op) {
            values.extend(graph.params(*block));
        }
        if let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph) {
            let mut body = (**body).clone();
            if stacker::maybe_grow(64 << 10, 1 << 20, || erase(&mut body)) {
                graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(body)));
                changed = true;
            }
        }
    }
    for value in values {
        let plain = without_refinements(graph.ty(value));
        if plain != *graph.ty(value) {
            graph.set_type(value, plain);
            changed = true;
        }
    }
    changed
}
