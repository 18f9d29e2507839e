//! A group as it stands in a graph: its names, its work and its laws. It knows graphs alone, no rows and no table.

use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Graph, OpId, Symbol};
use std::sync::Arc;

/// A group: `fusion::Group[Subgraph=<Graph>](inputs...) -> (outputs...)`.
pub const GROUP: &str = "fusion::Group";
/// PyTorch's name of a group in its graph text.
pub const TORCH_GROUP: &str = "prim::FusionGroup";

/// Whether an op is a group, under either name.
pub fn is_group(kind: Symbol) -> bool {
    kind == *GROUP || kind == *TORCH_GROUP
}

/// The work of a group.
pub fn subgraph(graph: &Graph, op: OpId) -> Option<&Arc<Graph>> {
    if !is_group(graph.kind(op)) {
        return None;
    }
    graph.attr(op, "Subgraph").and_then(Attr::as_graph)
}

/// The laws of a group; returns the first that is broken.
pub fn verify(graph: &Graph, op: OpId) -> Result<()> {
    let kind = graph.kind(op);
    let broken = |law: &str| Err(Diagnostic::verify(format!("{kind} {law}")));
    let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph) else {
        return broken("must have a graph as its attribute `Subgraph`");
    };
    if body.inputs().len() != graph.operands(op).len() {
        return broken("must have as many operands as its subgraph has inputs");
    }
    if body.outputs().len() != graph.result_count(op) {
        return broken("must have as many results as its subgraph has outputs");
    }
    if !graph.nested_blocks(op).is_empty() {
        return broken("must not have blocks");
    }
    for inner in body.block_ops(body.root()) {
        if !body.nested_blocks(inner).is_empty() {
            return broken("must not contain control flow");
        }
        if body.result_count(inner) == 0 {
            return broken(&format!("must not contain an op without results ({})", body.kind(inner)));
        }
    }
    Ok(())
}
