//! Walking over the ops of a block while they change. Shared by passes; no pass itself.

use crate::ir::{BlockId, Graph, OpId};

/// Gives each op of a block to a visitor, which may replace and erase it. What it puts before the next op is not
/// visited. Visitors that come back here for nested blocks may nest as deep as the graph does.
pub(super) fn block(graph: &mut Graph, block: BlockId, mut visit: impl FnMut(&mut Graph, OpId)) {
    let mut at = graph.first_op(block);
    while let Some(op) = at {
        at = graph.next(op);
        stacker::maybe_grow(64 << 10, 1 << 20, || visit(graph, op));
    }
}
