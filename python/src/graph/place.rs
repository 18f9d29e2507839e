//! Where parts of a graph stand, one beside the other: order across blocks, what lies within what.

use flambeau::ir::{BlockId, Graph, OpId};

/// The nodes of a kind in a block, in order, those of nested blocks at their places.
pub(super) fn of_kind(graph: &Graph, block: BlockId, kind: &str, recurse: bool) -> Vec<OpId> {
    let all = if recurse { within(graph, block) } else { graph.block_ops(block).collect() };
    all.into_iter().filter(|op| graph.kind(*op) == kind).collect()
}

/// All ops of a block and of the blocks inside, each before what it contains.
pub(super) fn within(graph: &Graph, block: BlockId) -> Vec<OpId> {
    let mut found = Vec::new();
    let mut work = vec![graph.first_op(block)];
    while let Some(top) = work.pop() {
        let Some(op) = top else { continue };
        found.push(op);
        work.push(graph.next(op));
        work.extend(graph.nested_blocks(op).iter().rev().map(|inner| graph.first_op(*inner)));
    }
    found
}

/// The block that an op stands in or ends.
pub(super) fn block_of(graph: &Graph, op: OpId) -> Option<BlockId> {
    graph.terminated_block(op).or_else(|| graph.parent(op))
}

/// Whether `inner` stands within a block of `outer`, however deep, or is `outer` itself.
pub(super) fn contains(graph: &Graph, outer: OpId, inner: OpId) -> bool {
    let mut at = Some(inner);
    while let Some(op) = at {
        if op == outer {
            return true;
        }
        at = block_of(graph, op).and_then(|block| graph.owner(block));
    }
    false
}

/// Whether `a` comes before `b` in the program. None where they have no block in common.
pub(super) fn is_before(graph: &Graph, a: OpId, b: OpId) -> Option<bool> {
    let mut block = block_of(graph, a);
    while let Some(common) = block {
        if let (Some(a), Some(b)) = (graph.ancestor_in(a, common), graph.ancestor_in(b, common)) {
            return Some(match (graph.terminated_block(a), graph.terminated_block(b)) {
                (Some(_), _) => false,
                (None, Some(_)) => true,
                (None, None) => graph.is_before(a, b),
            });
        }
        block = graph.owner(common).and_then(|op| block_of(graph, op));
    }
    None
}
