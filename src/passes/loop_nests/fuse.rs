//! `loop-fuse`: a loop and the one after it, over the same indices, become one.
//!
//! An iteration of the second then runs before later ones of the first. That is allowed where both touch a buffer that one of
//! them writes at one and the same index, which differs from iteration to iteration.

use super::chosen::{chosen, refuse};
use super::independence::{differs, index_form};
use crate::analysis::is_pure;
use crate::diag::Result;
use crate::dialects::loops::nest::{Loop, Touch, constant_index, loop_before, touch};
use crate::ir::{Graph, OpId, ValueId};
use crate::passes::Context;

pub(in crate::passes) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (mut loops, named) = chosen(graph, context)?;
    let mut changed = false;
    let mut at = 0;
    while let Some(first) = loops.get(at).copied() {
        let second = match partner(graph, context, first) {
            Ok(second) => second,
            Err(why) => {
                refuse(graph, context, first, named && !changed, &why)?;
                at += 1;
                continue;
            }
        };
        let name = graph.display_name(first.iv).to_string();
        if !context.step(|| format!("fuses the loop over %{name} with the next")) {
            return Ok(changed);
        }
        let Some(fused) = fuse(graph, first, second, &name) else { return Ok(changed) };
        changed = true;
        if named {
            return Ok(true);
        }
        // It may continue with the following loop.
        loops[at] = fused;
        loops.retain(|l| l.op != second.op);
    }
    Ok(changed)
}

/// The loop after, or why it cannot become one with this.
fn partner(graph: &Graph, context: &Context<'_>, first: Loop) -> Result<Loop, String> {
    let mut next = graph.next(first.op);
    let second = loop {
        let op = next.ok_or("has no loop after it")?;
        match Loop::of(graph, op) {
            Some(second) => break second,
            None if is_pure(context.registry, graph, op) => next = graph.next(op),
            None => return Err(format!("has a {} between it and the next loop", graph.kind(op))),
        }
    };
    let same = |x: ValueId, y: ValueId| {
        x == y || constant_index(graph, x).is_some_and(|n| constant_index(graph, y) == Some(n))
    };
    if !same(first.begin, second.begin) || !same(first.end, second.end) || !same(first.step, second.step) {
        return Err("has other indices than the next loop".into());
    }
    let attrs = |l: Loop| (l.mark(graph), graph.attr(l.op, "lanes").cloned());
    if attrs(first) != attrs(second) {
        return Err("is marked otherwise than the next loop".into());
    }
    let end = graph.parent(second.op).map(|block| graph.terminator(block));
    let used_early = |result: &ValueId| {
        graph.uses(*result).filter(|used| Some(used.op) != end).any(|used| {
            let at = ancestor(graph, used.op, second.op);
            at.is_none_or(|at| at == second.op || graph.is_before(at, second.op))
        })
    };
    if graph.results(first.op).iter().any(used_early) {
        return Err("gives a value that is used before or in the next loop".into());
    }
    meets(graph, first, second).map_or(Ok(second), Err)
}

/// The op beside `beside` that is `op` or contains it; None where there is none.
fn ancestor(graph: &Graph, op: OpId, beside: OpId) -> Option<OpId> {
    let block = graph.parent(beside)?;
    let mut at = op;
    while graph.parent(at) != Some(block) {
        at = graph.owner(graph.terminated_block(at).or_else(|| graph.parent(at))?)?;
    }
    Some(at)
}

/// What a loop touches: the buffer, the index, and whether it is written.
fn touched(graph: &Graph, l: Loop) -> Result<Vec<(ValueId, ValueId, bool)>, String> {
    let (mut all, mut work) = (Vec::new(), graph.block_ops(l.block).collect::<Vec<OpId>>());
    while let Some(op) = work.pop() {
        if let Some(inner) = Loop::of(graph, op) {
            work.extend(graph.block_ops(inner.block));
            continue;
        }
        match touch(graph, op) {
            Touch::Reads(buffer, index) => all.push((buffer, index, false)),
            Touch::Writes(buffer, index) | Touch::Combines(buffer, index) => all.push((buffer, index, true)),
            Touch::Other => {
                return Err(format!("or the next loop has a {}, whose order counts", graph.kind(op)));
            }
            Touch::Nothing => {}
        }
    }
    Ok(all)
}

/// Why iterations of two loops might meet in another order than they do now.
fn meets(graph: &Graph, first: Loop, second: Loop) -> Option<String> {
    let (mine, theirs) = match (touched(graph, first), touched(graph, second)) {
        (Ok(mine), Ok(theirs)) => (mine, theirs),
        (Err(why), _) | (_, Err(why)) => return Some(why),
    };
    for (buffer, index, writes) in &mine {
        for (other, at, written) in &theirs {
            if buffer != other || !(*writes || *written) {
                continue;
            }
            let forms = (index_form(graph, first, *index), index_form(graph, second, *at));
            let alike = matches!(&forms, (Some(mine), Some(theirs)) if mine == theirs);
            if !alike || !differs(graph, first, *index) {
                let name = graph.display_name(*buffer);
                return Some(format!("meets the next loop in %{name} in different iterations"));
            }
        }
    }
    None
}

/// One loop where the second one is, which carries what both carry.
fn fuse(graph: &mut Graph, first: Loop, second: Loop, name: &str) -> Option<Loop> {
    let inits = [first.inits(graph), second.inits(graph)].concat();
    let fused = loop_before(graph, second.op, first, [first.begin, first.end, first.step], &inits)?;
    let mut carried = graph.params(fused.block).to_vec().into_iter().skip(1);
    let mut results = graph.results(fused.op).into_iter();
    let mut ends = Vec::new();
    for l in [first, second] {
        graph.replace_all_uses(l.iv, fused.iv);
        for old in graph.params(l.block).to_vec().into_iter().skip(1) {
            graph.replace_all_uses(old, carried.next()?);
        }
        ends.extend(graph.block_results(l.block).to_vec());
        graph.set_block_results(l.block, &l.inits(graph));
        for op in graph.block_ops(l.block).collect::<Vec<_>>() {
            graph.move_to_end(op, fused.block);
        }
        for old in graph.results(l.op) {
            graph.replace_all_uses(old, results.next()?);
        }
    }
    graph.set_block_results(fused.block, &ends);
    graph.erase(first.op);
    graph.erase(second.op);
    graph.set_name(fused.iv, name);
    Some(fused)
}
