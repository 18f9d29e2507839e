//! Moving ops between a graph and the subgraph of one of its ops, as PyTorch's passes for differentiable groups do: the order of
//! inputs and outputs, and copies of constants, are theirs. No pass itself, and no op that computes is known by name.

use crate::analysis::{AliasDb, Aliasing};
use crate::dialects::Registry;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;
use std::sync::Arc;

/// A group that is being built: its subgraph, apart from the op so that it can change.
#[derive(Clone, Default)]
pub(super) struct Body {
    pub graph: Graph,
    /// What the values of the subgraph alias, as the database of the outer graph knew it.
    known: HashMap<ValueId, Aliasing>,
}

impl Body {
    /// The subgraph of a group that is there.
    pub fn of(graph: Graph) -> Body {
        Body { graph, known: HashMap::new() }
    }
}

/// An op with an empty subgraph before `at`.
pub(super) fn group_before(graph: &mut Graph, kind: &str, at: OpId) -> OpId {
    let group = graph.create(Symbol::new(kind), &[], &[]);
    graph.insert_before(group, at);
    group
}

/// Uses up a number of the graph for each result of an op that goes into a group: PyTorch makes values there that it throws away,
/// and numbers of values without names should be its own.
pub(super) fn skip_numbers(graph: &mut Graph, op: OpId) {
    let types: Vec<Type> = graph.results(op).iter().map(|result| graph.ty(*result).clone()).collect();
    let unused = graph.create(Symbol::new("prim::Uninitialized"), &[], &types);
    graph.erase(unused);
}

/// Moves an op without blocks into a group of its block: to the beginning where it stands before the group, else to the end.
/// Constants that it uses are copied. The database learns what the group's results are.
pub(super) fn merge(graph: &mut Graph, group: OpId, body: &mut Body, op: OpId, db: &mut AliasDb) {
    let inner = &mut body.graph;
    let first = graph.is_before(op, group).then(|| inner.first_op(inner.root())).flatten();
    let place = |inner: &mut Graph, op: OpId| match first {
        Some(first) => inner.insert_before(op, first),
        None => inner.append(inner.root(), op),
    };
    let mut map: HashMap<ValueId, ValueId> =
        graph.operands(group).iter().copied().zip(inner.inputs().iter().copied()).collect();
    map.extend(graph.results(group).iter().copied().zip(inner.outputs().iter().copied()));
    for operand in graph.operands(op).to_vec() {
        if map.contains_key(&operand) {
            continue;
        }
        match graph.def_op(operand).filter(|def| graph.kind(*def) == "prim::Constant") {
            Some(constant) => {
                let copy = inner.clone_op(Some(graph), constant, &mut map);
                place(inner, copy);
            }
            None => {
                graph.add_operand(group, operand);
                let input = inner.add_input(graph.ty(operand).clone());
                name_as(inner, input, graph, operand);
                map.insert(operand, input);
            }
        }
    }
    let copy = inner.clone_op(Some(graph), op, &mut map);
    place(inner, copy);
    let copies = inner.results(copy);
    for (result, copy) in graph.results(op).into_iter().zip(copies) {
        body.known.insert(copy, db.aliasing(result));
        if let Some(at) = graph.operands(group).iter().position(|operand| *operand == result) {
            let input = inner.inputs()[at];
            inner.replace_all_uses(input, copy);
            graph.remove_operand(group, at);
            inner.remove_param(inner.root(), at);
        }
        inner.add_output(copy);
        let outer = graph.add_result(group, graph.ty(result).clone());
        move_name(graph, result, outer);
        db.set_aliasing(outer, db.aliasing(result));
        graph.replace_all_uses(result, outer);
    }
    graph.erase(op);
    drop_unused_results(graph, group, inner);
}

/// Removes results that nothing uses.
pub(super) fn drop_unused_results(graph: &mut Graph, group: OpId, inner: &mut Graph) {
    for at in (0..graph.result_count(group)).rev() {
        if graph.result(group, at).is_some_and(|result| !graph.has_uses(result)) {
            graph.remove_result(group, at);
            inner.remove_block_result(inner.root(), at);
        }
    }
}

/// Puts the ops of a group in its place. Gives them; the database, where there is one, learns what their results are.
pub(super) fn dissolve(graph: &mut Graph, group: OpId, body: &Body, db: Option<&mut AliasDb>) -> Vec<OpId> {
    let inner = &body.graph;
    let mut map: HashMap<ValueId, ValueId> =
        inner.inputs().iter().copied().zip(graph.operands(group).iter().copied()).collect();
    let mut ops = Vec::new();
    for op in inner.block_ops(inner.root()) {
        let copy = graph.clone_op(Some(inner), op, &mut map);
        graph.insert_before(copy, group);
        ops.push(copy);
    }
    let results: Vec<ValueId> = inner.outputs().iter().filter_map(|v| map.get(v).copied()).collect();
    for (old, new) in graph.results(group).into_iter().zip(&results) {
        move_name(graph, old, *new);
    }
    graph.replace_op(group, &results);
    if let Some(db) = db {
        for (value, copy) in &map {
            match body.known.get(value) {
                Some(known) => db.set_aliasing(*copy, *known),
                None => db.learn_type(graph, *copy),
            }
        }
    }
    ops
}

/// Moves an op out of a group, after it. Nothing in the group may use it.
pub(super) fn release(graph: &mut Graph, group: OpId, inner: &mut Graph, op: OpId) {
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    let mut last = group;
    for operand in inner.operands(op).to_vec() {
        if map.contains_key(&operand) {
            continue;
        }
        if let Some(at) = inner.outputs().iter().position(|output| *output == operand) {
            map.extend(graph.result(group, at).map(|result| (operand, result)));
        } else if let Some(at) = inner.inputs().iter().position(|input| *input == operand) {
            map.insert(operand, graph.operands(group)[at]);
        } else if let Some(def) = inner.def_op(operand).filter(|def| inner.kind(*def) == "prim::Constant") {
            let copy = graph.clone_op(Some(inner), def, &mut map);
            graph.insert_after(copy, last);
            last = copy;
        } else {
            inner.add_output(operand);
            let result = graph.add_result(group, inner.ty(operand).clone());
            map.insert(operand, result);
        }
    }
    let copy = graph.clone_op(Some(inner), op, &mut map);
    graph.insert_after(copy, last);
    let released = inner.results(op);
    for at in (0..inner.outputs().len()).rev() {
        let Some(n) = released.iter().position(|result| *result == inner.outputs()[at]) else { continue };
        if let (Some(old), Some(new)) = (graph.result(group, at), graph.result(copy, n)) {
            move_name(graph, old, new);
            graph.replace_all_uses(old, new);
        }
        graph.remove_result(group, at);
        inner.remove_block_result(inner.root(), at);
    }
    inner.erase(op);
}

/// Gives the group its subgraph.
pub(super) fn close(graph: &mut Graph, group: OpId, body: Body) {
    graph.set_attr(group, "Subgraph", Attr::Graph(Arc::new(body.graph)));
}

/// Ops of a group that must leave it: those whose outputs may be the same as an input of the group, or as an earlier output,
/// and all that use them. In program order.
pub(super) fn aliased(registry: &Registry, inner: &Graph) -> [Vec<OpId>; 2] {
    let db = AliasDb::new(registry, None, inner);
    let outputs = inner.outputs();
    let place = |value: &ValueId| inner.def_op(*value);
    let mut sets: Vec<Vec<ValueId>> = Vec::new();
    for output in outputs {
        let mut grouped = false;
        for set in &mut sets {
            if set.first().is_some_and(|first| db.may_contain_alias(*first, *output)) {
                set.push(*output);
                grouped = true;
            }
        }
        if !grouped {
            sets.push(vec![*output]);
        }
    }
    let mut others = Vec::new();
    for set in &mut sets {
        // The earliest keeps its place.
        let earlier = |a: &ValueId, b: &ValueId| match (place(a), place(b)) {
            (Some(x), Some(y)) => inner.is_before(x, y),
            (None, Some(_)) => true,
            _ => false,
        };
        let first = set.iter().copied().reduce(|a, b| if earlier(&b, &a) { b } else { a });
        others.extend(set.iter().copied().filter(|value| Some(*value) != first));
    }
    let of_inputs = outputs
        .iter()
        .copied()
        .filter(|output| inner.inputs().iter().any(|input| db.may_contain_alias(*output, *input)));
    [
        with_users(inner, others.iter().filter_map(place)),
        with_users(inner, of_inputs.filter_map(|v| place(&v))),
    ]
}

/// Ops and all that use them, in program order.
fn with_users(graph: &Graph, ops: impl Iterator<Item = OpId>) -> Vec<OpId> {
    let mut found: Vec<OpId> = Vec::new();
    let mut work: Vec<OpId> = ops.collect();
    while let Some(op) = work.pop() {
        if found.contains(&op) || graph.terminated_block(op).is_some() {
            continue;
        }
        found.push(op);
        work.extend(graph.results(op).iter().flat_map(|result| graph.uses(*result).map(|u| u.op)));
    }
    found.sort_by(|a, b| {
        if graph.is_before(*a, *b) { std::cmp::Ordering::Less } else { std::cmp::Ordering::Greater }
    });
    found
}

/// Ops of a block, last first: the order in which groups are examined.
pub(super) fn backwards(graph: &Graph, block: BlockId) -> Vec<OpId> {
    let mut ops: Vec<OpId> = graph.block_ops(block).collect();
    ops.reverse();
    ops
}

fn name_as(to: &mut Graph, value: ValueId, from: &Graph, like: ValueId) {
    if let Some(name) = from.name(like) {
        to.set_name(value, name);
    }
}

pub(super) fn move_name(graph: &mut Graph, from: ValueId, to: ValueId) {
    if let Some(name) = graph.name(from).map(str::to_string) {
        graph.clear_name(from);
        graph.set_name(to, &name);
    }
}
