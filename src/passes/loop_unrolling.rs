//! Loop unrolling: a short loop with a known trip count becomes copies of its body; any other counted
//! loop becomes one with eight bodies per iteration and an epilogue loop for the remainder.
//!
//! `constant-loop-unrolling` unrolls larger bodies and more iterations on request (`max-body`, `max-iterations`): derivatives are
//! taken of what has no loops.
//!
//! Counted is a loop whose condition is the constant True at its start and after each iteration, so that nothing but the
//! trip count ends it. Iterations run in the same order on the same values, so that the change is unobservable. Bodies of
//! more than 32 ops and blocks stay, as do loops around loops that have grown so.

use super::{Context, PassOption, constants, copy, dce};
use crate::diag::Result;
use crate::ir::{BlockId, Graph, OpId, Symbol, Type, ValueId};
use hashbrown::HashMap;

/// Bodies larger than this stay.
const MAX_BODY: usize = 32;
/// Loops with known trip counts from this on are not fully unrolled.
const MAX_ITERATIONS: i64 = 64;
/// Bodies in an iteration of an unrolled loop.
const FACTOR: i64 = 8;
/// Ops that a loop may become where larger bodies are asked for.
const MAX_GROWTH: usize = 1 << 14;

pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::int("max-body", MAX_BODY as i64, 1, "largest body that is unrolled, in ops and blocks"),
    PassOption::int(
        "max-iterations",
        MAX_ITERATIONS,
        1,
        "smallest trip count for which a loop is not fully unrolled",
    ),
];

/// What is unrolled.
#[derive(Clone, Copy)]
struct Limits {
    body: usize,
    iterations: i64,
    constant_only: bool,
}

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    unroll_all(graph, context, Limits { body: MAX_BODY, iterations: MAX_ITERATIONS, constant_only: false })
}

/// Only loops with a known trip count.
pub(super) fn constant_only(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let body = usize::try_from(context.int("max-body")?).unwrap_or(MAX_BODY);
    unroll_all(
        graph,
        context,
        Limits { body, iterations: context.int("max-iterations")?, constant_only: true },
    )
}

fn unroll_all(graph: &mut Graph, context: &Context<'_>, limits: Limits) -> Result<bool> {
    let root = graph.root();
    let changed = block(graph, context, root, limits);
    if changed {
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(changed)
}

/// Inner loops first.
fn block(graph: &mut Graph, context: &Context<'_>, at: BlockId, limits: Limits) -> bool {
    let mut changed = false;
    let mut next = graph.first_op(at);
    while let Some(op) = next {
        next = graph.next(op);
        for inner in graph.nested_blocks(op).to_vec() {
            changed |= stacker::maybe_grow(64 << 10, 1 << 20, || block(graph, context, inner, limits));
        }
        let known = graph.operand(op, 0).is_some_and(|trips| constants::constant_op(graph, trips).is_some());
        if is_counted(graph, op) && (known || !limits.constant_only) {
            changed |= unroll(graph, context, op, limits);
        }
    }
    changed
}

/// Whether only the trip count ends the loop.
fn is_counted(graph: &Graph, op: OpId) -> bool {
    let is_true = |value: ValueId| constants::bool_of(graph, value) == Some(true);
    graph.kind(op) == "prim::Loop"
        && graph.operand(op, 1).is_some_and(is_true)
        && graph
            .nested_blocks(op)
            .first()
            .and_then(|body| graph.block_results(*body).first())
            .is_some_and(|v| is_true(*v))
}

fn unroll(graph: &mut Graph, context: &Context<'_>, op: OpId, limits: Limits) -> bool {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return false };
    let count = graph.operand(op, 0).and_then(|trips| constants::int_of(graph, trips));
    let whole = count.filter(|count| *count < limits.iterations);
    let size = size(graph, body, limits.body);
    let grown = size.saturating_mul(usize::try_from(whole.unwrap_or(FACTOR)).unwrap_or(0));
    let is_small = size <= MAX_BODY && whole.is_none_or(|count| count < MAX_ITERATIONS);
    if size > limits.body || !is_small && (whole.is_none() || grown > MAX_GROWTH) {
        return false;
    }
    if !context.step(|| format!("unrolls {}", graph.op_line(op))) {
        return false;
    }
    if graph.has_uses(graph.params(body)[0]) {
        carry_counter(graph, op, body);
    }
    let Some(trips) = graph.operand(op, 0) else { return false };
    if let Some(count) = whole {
        repeat(graph, op, body, count.max(0) as usize);
        inline(graph, op);
        return true;
    }
    let rest = graph.clone_op(None, op, &mut HashMap::new());
    graph.insert_after(rest, op);
    for (n, result) in graph.results(op).into_iter().enumerate() {
        if let Some(last) = graph.result(rest, n) {
            graph.replace_all_uses(result, last);
        }
        graph.set_operand(rest, n + 2, result);
    }
    repeat(graph, op, body, FACTOR as usize);
    split_iterations(graph, op, rest, trips);
    true
}

/// `trips / 8` iterations for the one loop, the remainder for the other.
fn split_iterations(graph: &mut Graph, op: OpId, rest: OpId, trips: ValueId) {
    let emit = |graph: &mut Graph, kind: &str, a: ValueId, b: Option<ValueId>| {
        let b = b.unwrap_or_else(|| constants::insert_int(graph, op, FACTOR));
        let new = graph.create(Symbol::new(kind), &[a, b], &[Type::int()]);
        graph.insert_before(new, op);
        graph.results(new)[0]
    };
    let whole = emit(graph, "aten::__round_to_zero_floordiv", trips, None);
    graph.set_operand(op, 0, whole);
    let done = emit(graph, "aten::mul", whole, None);
    let left = emit(graph, "aten::sub", trips, Some(done));
    graph.set_operand(rest, 0, left);
}

/// A block, the blocks nested in it and their ops, constants left out; counts no further than needed.
pub(super) fn size(graph: &Graph, body: BlockId, most: usize) -> usize {
    let mut count = 0;
    let mut blocks = vec![body];
    while let Some(block) = blocks.pop() {
        count += 1;
        for op in graph.block_ops(block) {
            blocks.extend_from_slice(graph.nested_blocks(op));
            count += usize::from(graph.kind(op) != "prim::Constant");
            if count > most {
                return count;
            }
        }
    }
    count
}

/// The iteration number becomes a value that the loop carries, so that both loops can count on.
fn carry_counter(graph: &mut Graph, op: OpId, body: BlockId) {
    let start = constants::insert_int(graph, op, 0);
    graph.insert_operand(op, 2, start);
    graph.insert_result(op, 0, Type::int());
    let counter = graph.insert_param(body, 1, Type::int());
    let old = graph.params(body)[0];
    graph.replace_all_uses(old, counter);
    let end = graph.terminator(body);
    let one = constants::insert_int(graph, end, 1);
    let add = graph.create(Symbol::new("aten::add"), &[counter, one], &[Type::int()]);
    graph.insert_before(add, end);
    let mut results = graph.block_results(body).to_vec();
    results.insert(1, graph.results(add)[0]);
    graph.set_block_results(body, &results);
}

/// Replaces the body by `times` copies of it, one after the other.
fn repeat(graph: &mut Graph, op: OpId, body: BlockId, times: usize) {
    let all = graph.add_block(op);
    let mut values: Vec<ValueId> = Vec::new();
    for param in graph.params(body).to_vec() {
        let ty = graph.ty(param).clone();
        values.push(graph.add_param(all, ty));
        if let Some(name) = graph.name(param).map(str::to_string) {
            graph.set_unique_name(values[values.len() - 1], &name);
        }
    }
    // Without iterations, the condition for the next one is the initial one.
    if let Some(start) = graph.operand(op, 1) {
        values[0] = start;
    }
    for _ in 0..times {
        values = copy::copy_block(graph, body, &values, all);
    }
    graph.set_block_results(all, &values);
    copy::remove_block(graph, op, 0);
    drop_unused(graph, all);
}

/// Constants of the body that are no longer used.
fn drop_unused(graph: &mut Graph, block: BlockId) {
    let mut at = graph.last_op(block);
    while let Some(op) = at {
        at = graph.prev(op);
        let unused = graph.results(op).iter().all(|value| !graph.has_uses(*value));
        if unused && graph.kind(op) == "prim::Constant" {
            graph.erase(op);
        }
    }
}

/// Puts the ops of a loop's body in the place of the loop.
fn inline(graph: &mut Graph, op: OpId) {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return };
    let entering: Vec<ValueId> = graph.operands(op).iter().skip(1).copied().collect();
    for (param, value) in graph.params(body).to_vec().into_iter().zip(entering) {
        graph.replace_all_uses(param, value);
    }
    graph.splice_before(body, op);
    let results: Vec<ValueId> = graph.block_results(body).iter().skip(1).copied().collect();
    graph.replace_op(op, &results);
}
