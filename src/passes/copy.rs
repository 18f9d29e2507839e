//! Copying and removing blocks of a graph. Shared by passes; no pass itself.

use crate::ir::{BlockId, Graph, OpId, ValueId, mapped};
use hashbrown::HashMap;

/// Appends a copy of a block's ops to another block, its parameters being `values`; gives what stands for its
/// results.
pub(super) fn copy_block(graph: &mut Graph, block: BlockId, values: &[ValueId], to: BlockId) -> Vec<ValueId> {
    let mut map: HashMap<ValueId, ValueId> =
        graph.params(block).iter().copied().zip(values.iter().copied()).collect();
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        let copy = graph.clone_op(None, op, &mut map);
        graph.append(to, copy);
    }
    mapped(graph.block_results(block), &map)
}

/// Takes away the n-th block of an op with all that is in it.
pub(super) fn remove_block(graph: &mut Graph, op: OpId, n: usize) {
    let Some(block) = graph.nested_blocks(op).get(n).copied() else { return };
    graph.set_block_results(block, &[]);
    while let Some(last) = graph.last_op(block) {
        graph.erase(last);
    }
    graph.remove_block(op, n);
}
