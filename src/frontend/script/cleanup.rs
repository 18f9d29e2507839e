//! What a compiled graph is freed of, as PyTorch's compiler frees it: tuples that are taken apart at once, values that a
//! loop or condition carries without use, ops without effect or use. What is left stands in one order, whatever the
//! order of the variables' names. Knows nothing of the AST.

use super::kinds;
use crate::analysis::facts;
use crate::dialects::{Effects, Registry};
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};

/// More rounds are not needed by any program seen; a graph that is not finished then is only less tidy.
const MAX_ROUNDS: usize = 20;

/// Removes dead code from a graph.
pub(super) fn tidy(graph: &mut Graph, registry: &Registry) {
    for _ in 0..MAX_ROUNDS {
        let mut changed = false;
        for op in graph.all_ops() {
            if graph.is_live(op) {
                changed |= take_apart(graph, op) || drop_carried(graph, op);
            }
        }
        changed |= drop_dead(graph, registry);
        if !changed {
            break;
        }
    }
    order_results(graph);
}

/// Replaces an item of a tuple that was just made.
fn take_apart(graph: &mut Graph, op: OpId) -> bool {
    let kind = graph.kind(op);
    let is_unpack = kind == "prim::TupleUnpack";
    if !is_unpack && kind != "prim::TupleIndex" {
        return false;
    }
    let Some(made) = graph.operand(op, 0).and_then(|v| graph.def_op(v)) else { return false };
    if graph.kind(made) != "prim::TupleConstruct" {
        return false;
    }
    let items = graph.operands(made).to_vec();
    let taken = if is_unpack { items } else { item(graph, op, &items).into_iter().collect() };
    if taken.len() != graph.result_count(op) {
        return false;
    }
    graph.replace_op(op, &taken);
    true
}

/// The item that a `prim::TupleIndex` with a constant index takes.
fn item(graph: &Graph, op: OpId, items: &[ValueId]) -> Option<ValueId> {
    let index = graph.def_op(graph.operand(op, 1)?).filter(|def| graph.kind(*def) == kinds::constant())?;
    let n = graph.attr(index, "value").and_then(Attr::as_int)?;
    let n = if n < 0 { n + items.len() as i64 } else { n };
    items.get(usize::try_from(n).ok()?).copied()
}

/// Removes results of control flow that are unused, or that are outer values.
fn drop_carried(graph: &mut Graph, op: OpId) -> bool {
    let kind = graph.kind(op);
    let mut changed = false;
    for n in (0..graph.result_count(op)).rev() {
        let Some(result) = graph.result(op, n) else { continue };
        if kind == kinds::loop_() {
            changed |= drop_from_loop(graph, op, n, result);
        } else if kind == kinds::if_() {
            changed |= drop_from_branch(graph, op, n, result);
        }
    }
    changed
}

fn drop_from_loop(graph: &mut Graph, op: OpId, n: usize, result: ValueId) -> bool {
    let (Some(before), Some(&body)) = (graph.operand(op, n + 2), graph.nested_blocks(op).first()) else {
        return false;
    };
    let (Some(&param), Some(&gives)) = (graph.params(body).get(n + 1), graph.block_results(body).get(n + 1))
    else {
        return false;
    };
    if (gives == param || gives == before) && graph.ty(before) == graph.ty(param) {
        graph.replace_all_uses(result, before);
        graph.replace_all_uses(param, before);
    }
    let end = graph.terminator(body);
    let only_itself = graph.uses(param).all(|u| u.op == end && u.index == n + 1);
    if graph.has_uses(result) || !only_itself {
        return false;
    }
    graph.remove_block_result(body, n + 1);
    graph.remove_operand(op, n + 2);
    graph.remove_param(body, n + 1);
    graph.remove_result(op, n);
    true
}

fn drop_from_branch(graph: &mut Graph, op: OpId, n: usize, result: ValueId) -> bool {
    let &[yes, no] = graph.nested_blocks(op) else { return false };
    let (Some(&a), Some(&b)) = (graph.block_results(yes).get(n), graph.block_results(no).get(n)) else {
        return false;
    };
    if a == b && graph.ty(a) == graph.ty(result) {
        graph.replace_all_uses(result, a);
    }
    if graph.has_uses(result) {
        return false;
    }
    graph.remove_block_result(yes, n);
    graph.remove_block_result(no, n);
    graph.remove_result(op, n);
    true
}

/// Eliminates dead ops without side effects. What may raise may go, as in PyTorch.
fn drop_dead(graph: &mut Graph, registry: &Registry) -> bool {
    let before = graph.op_count();
    for op in graph.all_ops().into_iter().rev() {
        if graph.is_live(op) && graph.results(op).iter().all(|v| !graph.has_uses(*v)) {
            let found = facts(registry, graph, op);
            let keeps = Effects::WRITES_WORLD | Effects::RANDOM | Effects::NEVER_RETURNS;
            if !found.writes && !found.effects.intersects(keeps) {
                graph.erase(op);
            }
        }
    }
    graph.op_count() != before
}

/// Puts the results of control flow into the order of their first uses.
fn order_results(graph: &mut Graph) {
    let places = places(graph);
    // What an op gives is ordered by what comes after it, so later ops come first, and outer ones before inner.
    let mut work = vec![(graph.root(), graph.last_op(graph.root()))];
    while let Some((block, at)) = work.pop() {
        let Some(op) = at else { continue };
        work.push((block, graph.prev(op)));
        order(graph, op, &places);
        work.extend(graph.nested_blocks(op).iter().map(|b| (*b, graph.last_op(*b))));
    }
}

/// The place of each op in the text, by op; what a block gives follows its ops.
fn places(graph: &Graph) -> Vec<u32> {
    let mut places = vec![u32::MAX; graph.op_capacity()];
    let mut next = 0;
    let mut work: Vec<(BlockId, Option<OpId>)> = vec![(graph.root(), graph.first_op(graph.root()))];
    while let Some((block, at)) = work.pop() {
        let op = at.unwrap_or_else(|| graph.terminator(block));
        places[op.index()] = next;
        next += 1;
        if at.is_some() {
            work.push((block, graph.next(op)));
            work.extend(graph.nested_blocks(op).iter().rev().map(|b| (*b, graph.first_op(*b))));
        }
    }
    places
}

fn order(graph: &mut Graph, op: OpId, places: &[u32]) {
    let is_loop = graph.kind(op) == kinds::loop_();
    if !is_loop && graph.kind(op) != kinds::if_() {
        return;
    }
    let results = graph.results(op);
    let first_use = |v: &ValueId| {
        graph.uses(*v).map(|u| (places.get(u.op.index()).copied().unwrap_or(u32::MAX), u.index)).min()
    };
    let first: Vec<(u32, usize)> =
        results.iter().map(|v| first_use(v).unwrap_or((u32::MAX, usize::MAX))).collect();
    let mut wanted: Vec<usize> = (0..results.len()).collect();
    wanted.sort_by_key(|n| first[*n]);
    if wanted.is_sorted() {
        return;
    }
    for block in graph.nested_blocks(op).to_vec() {
        let gives = graph.block_results(block).to_vec();
        let skip = usize::from(is_loop);
        let moved = wanted.iter().filter_map(|n| gives.get(n + skip).copied());
        let moved: Vec<ValueId> = gives[..skip.min(gives.len())].iter().copied().chain(moved).collect();
        graph.set_block_results(block, &moved);
        if is_loop {
            let params = graph.params(block).to_vec();
            for n in &wanted {
                let old = params[n + 1];
                let new = graph.add_param(block, graph.ty(old).clone());
                take_over(graph, old, new);
            }
            (0..wanted.len()).for_each(|_| graph.remove_param(block, 1));
        }
    }
    if is_loop {
        let operands = graph.operands(op).to_vec();
        let carried = wanted.iter().filter_map(|n| operands.get(n + 2).copied());
        let moved: Vec<ValueId> = operands[..2].iter().copied().chain(carried).collect();
        graph.set_operands(op, &moved);
    }
    for n in &wanted {
        let new = graph.add_result(op, graph.ty(results[*n]).clone());
        take_over(graph, results[*n], new);
    }
    (0..wanted.len()).for_each(|_| graph.remove_result(op, 0));
}

/// Puts a value in the place of another, under its name.
fn take_over(graph: &mut Graph, old: ValueId, new: ValueId) {
    graph.replace_all_uses(old, new);
    if let Some(name) = graph.name(old).map(str::to_string) {
        graph.clear_name(old);
        graph.set_name(new, &name);
    }
}
