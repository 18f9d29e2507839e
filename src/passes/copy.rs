//! Copying ops within a graph and between graphs, every value with a name of its own. Shared by passes.

use crate::ir::{BlockId, Graph, OpId, Type, ValueId};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Copies an op with its nested blocks to a detached op of `to`. `from` is the graph that has it, None if that is
/// `to` itself. Operands are looked up in `map`, which gains the copies; others stand for themselves.
pub(super) fn copy_op(
    to: &mut Graph,
    from: Option<&Graph>,
    op: OpId,
    map: &mut HashMap<ValueId, ValueId>,
) -> OpId {
    let root = shallow(to, from, op, map);
    let mut work = vec![(op, root)];
    let mut blocks = Vec::new();
    while let Some((old, new)) = work.pop() {
        for old_block in from.unwrap_or(to).nested_blocks(old).to_vec() {
            let new_block = to.add_block(new);
            blocks.push((old_block, new_block));
            for param in from.unwrap_or(to).params(old_block).to_vec() {
                let ty = from.unwrap_or(to).ty(param).clone();
                let copy = to.add_param(new_block, ty);
                name(to, from, param, copy);
                map.insert(param, copy);
            }
            for inner in from.unwrap_or(to).block_ops(old_block).collect::<Vec<_>>() {
                let copy = shallow(to, from, inner, map);
                to.append(new_block, copy);
                work.push((inner, copy));
            }
        }
    }
    // Operands of ops deeper down may name results of ops that were copied after them.
    for (old, new) in blocks {
        let results: Vec<ValueId> = mapped(from.unwrap_or(to).block_results(old), map);
        to.set_block_results(new, &results);
    }
    root
}

fn mapped(values: &[ValueId], map: &HashMap<ValueId, ValueId>) -> Vec<ValueId> {
    values.iter().map(|value| map.get(value).copied().unwrap_or(*value)).collect()
}

fn shallow(to: &mut Graph, from: Option<&Graph>, op: OpId, map: &mut HashMap<ValueId, ValueId>) -> OpId {
    let source = from.unwrap_or(to);
    let operands = mapped(source.operands(op), map);
    let olds = source.results(op);
    let types: SmallVec<[Type; 2]> = olds.iter().map(|value| source.ty(*value).clone()).collect();
    let (kind, attrs) = (source.kind(op), source.attrs(op).to_vec());
    let location = source.location_id(op);
    let new = to.create(kind, &operands, &types);
    for (attr, value) in attrs {
        to.set_attr(new, attr, value);
    }
    match from {
        Some(from) => {
            if let Some(location) = to.import_location(from, location) {
                to.set_location_id(new, location);
            }
        }
        None => to.set_location_id(new, location),
    }
    for (old, copy) in olds.into_iter().zip(to.results(new)) {
        name(to, from, old, copy);
        map.insert(old, copy);
    }
    new
}

fn name(to: &mut Graph, from: Option<&Graph>, old: ValueId, new: ValueId) {
    if let Some(name) = from.unwrap_or(to).name(old).map(str::to_string) {
        to.set_unique_name(new, &name);
    }
}

/// Appends a copy of a block's ops to another block, its parameters being `values`; gives what stands for its
/// results.
pub(super) fn copy_block(graph: &mut Graph, block: BlockId, values: &[ValueId], to: BlockId) -> Vec<ValueId> {
    let mut map: HashMap<ValueId, ValueId> =
        graph.params(block).iter().copied().zip(values.iter().copied()).collect();
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        let copy = copy_op(graph, None, op, &mut map);
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
