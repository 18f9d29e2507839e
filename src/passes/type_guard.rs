//! Puts a group of ops behind a check: where the check holds the group runs, where it does not its work is done as it was before,
//! by a `prim::FallbackGraph`. Shared by the passes that guard groups; no pass itself.

use super::subgraphs;
use crate::dialects::prim::profiling::FALLBACK;
use crate::ir::unify::without_refinements;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, TensorType, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use std::sync::Arc;

/// Guards a group by a check of a kind: each operand that is a tensor must have the type that `wanted` makes of what is known of it.
/// Constants are not checked. Whether there was anything to check.
pub(super) fn insert(
    graph: &mut Graph,
    group: OpId,
    kind: &str,
    wanted: impl Fn(&TensorType) -> TensorType,
) -> bool {
    let checked: Vec<ValueId> = graph
        .operands(group)
        .iter()
        .copied()
        .filter(|value| graph.ty(*value).is_tensor())
        .filter(|value| graph.def_op(*value).is_none_or(|def| graph.kind(def) != "prim::Constant"))
        .collect();
    if checked.is_empty() {
        return false;
    }
    let ty_of = |value: &ValueId| graph.ty(*value).clone();
    let types: Vec<Type> = checked
        .iter()
        .filter_map(|value| graph.ty(*value).as_tensor().map(&wanted))
        .map(|known| Type::new(TypeKind::Tensor(known)))
        .collect();
    let mut results: Vec<Type> = checked.iter().map(ty_of).collect();
    results.push(Type::bool());
    let check = graph.create(Symbol::new(kind), &checked, &results);
    graph.set_attr(check, "types", Attr::Types(Arc::from(types)));
    graph.insert_before(check, group);
    let given = graph.results(check);
    let (Some((answer, typed)), Some(body)) = (given.split_last(), body_of(graph, group)) else {
        return false;
    };
    let outer: Vec<Type> = graph.results(group).iter().map(|value| graph.ty(*value).clone()).collect();
    let choice = graph.create(Symbol::new("prim::If"), &[*answer], &outer);
    graph.insert_after(choice, check);
    for (old, new) in graph.results(group).into_iter().zip(graph.results(choice)) {
        subgraphs::move_name(graph, old, new);
        graph.replace_all_uses(old, new);
    }
    let (yes, no) = (graph.add_block(choice), graph.add_block(choice));
    let operands = graph.operands(group).to_vec();
    let plain = copied(graph, &body, &operands, no);
    fall_back(graph, no, &plain, &operands);
    graph.move_to_end(group, yes);
    let typed: HashMap<ValueId, ValueId> = checked.iter().copied().zip(typed.iter().copied()).collect();
    let operands: Vec<ValueId> = operands.iter().map(|v| typed.get(v).copied().unwrap_or(*v)).collect();
    graph.set_operands(group, &operands);
    let results = graph.results(group);
    graph.set_block_results(yes, &results);
    true
}

fn body_of(graph: &Graph, group: OpId) -> Option<Arc<Graph>> {
    graph.attr(group, "Subgraph").and_then(Attr::as_graph).cloned()
}

/// Copies the work of a group into a block; gives its results.
fn copied(graph: &mut Graph, body: &Graph, operands: &[ValueId], to: BlockId) -> Vec<ValueId> {
    let mut map: HashMap<ValueId, ValueId> =
        body.inputs().iter().copied().zip(operands.iter().copied()).collect();
    for op in body.block_ops(body.root()) {
        let copy = graph.clone_op(Some(body), op, &mut map);
        graph.append(to, copy);
    }
    crate::ir::mapped(body.outputs(), &map)
}

/// Replaces what a block does by one `prim::FallbackGraph` over some values of the graph, which is all that the block uses. Nothing
/// is known of types in it: it runs for values that a check refused.
pub(super) fn fall_back(graph: &mut Graph, block: BlockId, results: &[ValueId], operands: &[ValueId]) {
    let mut inner = Graph::new();
    let mut map = HashMap::new();
    for value in operands {
        let input = inner.add_input(graph.ty(*value).clone());
        if let Some(name) = graph.name(*value) {
            inner.set_unique_name(input, name);
        }
        map.insert(*value, input);
    }
    for op in graph.block_ops(block).collect::<Vec<_>>() {
        let copy = inner.clone_op(Some(graph), op, &mut map);
        let root = inner.root();
        inner.append(root, copy);
    }
    let outputs = crate::ir::mapped(results, &map);
    let root = inner.root();
    inner.set_block_results(root, &outputs);
    inner.map_types(&mut |ty: &Type| without_refinements(ty));
    let types: Vec<Type> = results.iter().map(|value| without_refinements(graph.ty(*value))).collect();
    graph.set_block_results(block, &[]);
    while let Some(last) = graph.last_op(block) {
        graph.erase(last);
    }
    let fallback = graph.emit(block, Symbol::new(FALLBACK), operands, &types);
    graph.set_attr(fallback, "Subgraph", Attr::Graph(Arc::new(inner)));
    let given = graph.results(fallback);
    graph.set_block_results(block, &given);
}
