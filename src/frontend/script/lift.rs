//! Lifts the blocks of `fork` and `awaitable` into subgraphs: what they use of the graph around them becomes
//! their inputs and the op's operands. Knows nothing of the AST.

use super::kinds;
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use hashbrown::HashMap;
use indexmap::IndexSet;
use std::sync::Arc;

/// Lifts every closure, the innermost first.
pub(super) fn closures(graph: &mut Graph) {
    for op in graph.all_ops().into_iter().rev() {
        if kinds::is_closure(graph.kind(op))
            && let Some(&block) = graph.nested_blocks(op).first()
        {
            lift(graph, op, block);
        }
    }
}

fn lift(graph: &mut Graph, op: OpId, block: BlockId) {
    let captured = captures(graph, block);
    let mut lifted = Graph::new();
    let mut map = HashMap::new();
    for value in &captured {
        let input = lifted.add_input(graph.ty(*value).clone());
        if let Some(name) = graph.name(*value) {
            lifted.set_name(input, name);
        }
        map.insert(*value, input);
    }
    let root = lifted.root();
    for inner in graph.block_ops(block) {
        let copy = lifted.copy_op(graph, inner, &mut map);
        lifted.append(root, copy);
    }
    for result in graph.block_results(block) {
        if let Some(value) = map.get(result) {
            lifted.add_output(*value);
        }
    }
    graph.set_block_results(block, &[]);
    while let Some(last) = graph.last_op(block) {
        graph.erase(last);
    }
    graph.remove_block(op, 0);
    let operands: Vec<ValueId> = captured.into_iter().collect();
    graph.set_operands(op, &operands);
    graph.set_attr(op, "Subgraph", Attr::Graph(Arc::new(lifted)));
}

/// Values used in a block that are defined outside of it, in the order of first use.
fn captures(graph: &Graph, block: BlockId) -> IndexSet<ValueId> {
    let mut found = IndexSet::new();
    let mut blocks = vec![block];
    while let Some(at) = blocks.pop() {
        let mut note = |value: ValueId| {
            let inside = graph.def_block(value).is_some_and(|b| graph.is_within(b, block));
            if !inside {
                found.insert(value);
            }
        };
        for op in graph.block_ops(at) {
            graph.operands(op).iter().for_each(|v| note(*v));
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
        graph.block_results(at).iter().for_each(|v| note(*v));
    }
    found
}
