//! A branch whose way is decided by the branch in front of it becomes part of that one: what it does goes to the end of the way that
//! decides for it. Early exits (`break`, `continue`, `return`) are rows of such branches.
//!
//! The condition: both ask the same bool, or each way of the first gives the bool that the second asks, as a constant, and not the
//! same one; and only constants stand between them. Where the second does nothing but choose, it is enough that one way decides: in
//! the other it chooses as before. Nothing else is copied, and all ops keep their order.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, ValueId};

const IF: &str = "prim::If";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    let mut work: Vec<BlockId> = vec![graph.root()];
    while let Some(block) = work.pop() {
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            while let Some((next, ways)) = decided(graph, op) {
                if !context.step(|| format!("merges it into the one before: {}", graph.op_line(next).trim()))
                {
                    return Ok(changed);
                }
                merge(graph, op, next, ways);
                changed = true;
            }
            work.extend(graph.nested_blocks(op));
            at = graph.next(op);
        }
    }
    Ok(changed)
}

/// The branch after one that decides it, and which way each of the first one's ways takes; None where that one chooses.
fn decided(graph: &Graph, first: OpId) -> Option<(OpId, [Option<usize>; 2])> {
    if graph.kind(first) != IF {
        return None;
    }
    let mut next = graph.next(first)?;
    while matches!(graph.kind(next).as_str(), "prim::Constant" | "prim::Uninitialized") {
        next = graph.next(next)?;
    }
    let asked = graph.operand(next, 0).filter(|_| graph.kind(next) == IF)?;
    let &[yes, no] = graph.nested_blocks(first) else { return None };
    if graph.operand(first, 0) == Some(asked) {
        return Some((next, [Some(0), Some(1)]));
    }
    let n = graph.results(first).iter().position(|result| *result == asked)?;
    let given = |block: BlockId| constants::bool_of(graph, *graph.block_results(block).get(n)?);
    let only_chooses = graph.nested_blocks(next).iter().all(|block| graph.first_op(*block).is_none());
    let way = |answer: bool| Some(usize::from(!answer));
    match (given(yes), given(no)) {
        (Some(a), Some(b)) if a != b => Some((next, [way(a), way(b)])),
        (Some(a), None) if only_chooses => Some((next, [way(a), None])),
        (None, Some(b)) if only_chooses => Some((next, [None, way(b)])),
        _ => None,
    }
}

/// Moves what a branch does to the ends of the ways of the one before it.
fn merge(graph: &mut Graph, first: OpId, next: OpId, ways: [Option<usize>; 2]) {
    while let Some(between) = graph.next(first).filter(|op| *op != next) {
        graph.move_before(between, first);
    }
    let (into, from) = (graph.nested_blocks(first).to_vec(), graph.nested_blocks(next).to_vec());
    // What chooses once more first: what moves is changed.
    let mut ways: Vec<(BlockId, Option<usize>)> = into.into_iter().zip(ways).collect();
    ways.sort_by_key(|(_, way)| way.is_some());
    for (block, way) in ways {
        let given = match way.and_then(|way| from.get(way)) {
            Some(from) => {
                give_within(graph, first, block, *from);
                let given = graph.block_results(*from).to_vec();
                let end = graph.terminator(block);
                graph.splice_before(*from, end);
                given
            }
            None => choose_within(graph, first, block, next),
        };
        for value in given {
            graph.add_block_result(block, value);
        }
    }
    for result in graph.results(next) {
        let ty = graph.ty(result).clone();
        let new = graph.add_result(first, ty);
        if let Some(name) = graph.name(result).map(str::to_string) {
            graph.clear_name(result);
            graph.set_name(new, &name);
        }
        graph.replace_all_uses(result, new);
    }
    graph.erase(next);
    drop_unused(graph, first);
}

/// Makes a branch that only chooses once more at the end of a way of the one before it; gives its results.
fn choose_within(graph: &mut Graph, first: OpId, way: BlockId, next: OpId) -> Vec<ValueId> {
    let given = graph.block_results(way).to_vec();
    let results = graph.results(first);
    let here = |value: ValueId| {
        let n = results.iter().position(|result| *result == value);
        n.and_then(|n| given.get(n).copied()).unwrap_or(value)
    };
    let asked: Vec<ValueId> = graph.operands(next).iter().map(|value| here(*value)).collect();
    let types: Vec<Type> = graph.results(next).iter().map(|result| graph.ty(*result).clone()).collect();
    let choice = graph.create(Symbol::new(IF), &asked, &types);
    graph.set_location_id(choice, graph.location_id(next));
    graph.insert_before(choice, graph.terminator(way));
    for from in graph.nested_blocks(next).to_vec() {
        let chosen: Vec<ValueId> = graph.block_results(from).iter().map(|value| here(*value)).collect();
        let block = graph.add_block(choice);
        graph.set_block_results(block, &chosen);
    }
    graph.results(choice).to_vec()
}

/// Takes away what a branch gives that nothing uses.
fn drop_unused(graph: &mut Graph, branch: OpId) {
    for n in (0..graph.result_count(branch)).rev() {
        if graph.result(branch, n).is_some_and(|result| !graph.has_uses(result)) {
            for block in graph.nested_blocks(branch).to_vec() {
                graph.remove_block_result(block, n);
            }
            graph.remove_result(branch, n);
        }
    }
}

/// Lets what stands in a block use what a way of a branch gives in the place of the branch's results.
fn give_within(graph: &mut Graph, branch: OpId, way: BlockId, block: BlockId) {
    let given = graph.block_results(way).to_vec();
    for (result, given) in graph.results(branch).into_iter().zip(given) {
        let is_within = |op: OpId| {
            let home = graph.terminated_block(op).or_else(|| graph.parent(op));
            home.is_some_and(|home| graph.is_within(home, block))
        };
        let uses = graph.uses(result).filter(|used| is_within(used.op)).map(|used| (used.op, used.index));
        for (op, index) in uses.collect::<Vec<(OpId, usize)>>() {
            graph.set_operand(op, index, given);
        }
    }
}
