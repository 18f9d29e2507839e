//! Loop peeling: the first iterations of a loop are placed before it, each under a condition.
//!
//! The first iteration of `for` and `while` runs if the trip count is positive and the initial condition holds, which
//! is the condition of an If around a copy of the body. The loop goes on with one iteration less, from its results. What the
//! body learns in its first iteration (a type, a size) is then known before the loop.

use super::{Context, constants, copy, loop_unrolling};
use crate::diag::Result;
use crate::ir::{Graph, OpId, Symbol, Type, ValueId};

/// Bodies that contain more ops and blocks, inner ones counted, are not copied.
const MAX_BODY: usize = 256;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let count = context.option_count("count").unwrap_or(1);
    let loops: Vec<OpId> = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::Loop").collect();
    let mut changed = false;
    // Inner loops first: peeling an outer one copies them.
    for op in loops.into_iter().rev() {
        for _ in 0..count {
            changed |= peel(graph, context, op);
        }
    }
    Ok(changed)
}

fn peel(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return false };
    if loop_unrolling::size(graph, body, MAX_BODY) > MAX_BODY
        || graph.operands(op).len() < 2
        || !context.step(|| format!("peels an iteration of {}", graph.op_line(op)))
    {
        return false;
    }
    let (trips, start) = (graph.operands(op)[0], graph.operands(op)[1]);
    let entering: Vec<ValueId> = graph.operands(op).iter().skip(2).copied().collect();
    let counter_is_used = graph.has_uses(graph.params(body)[0]);
    let zero = constants::insert_int(graph, op, 0);
    let some = emit(graph, op, "aten::gt", &[trips, zero], Type::bool());
    let runs = emit(graph, op, "aten::__and__", &[some, start], Type::bool());
    let mut types = vec![Type::bool()];
    types.extend(entering.iter().zip(graph.results(op)).map(|(_, result)| graph.ty(result).clone()));
    let first = graph.create(Symbol::new("prim::If"), &[runs], &types);
    graph.set_location_id(first, graph.location_id(op));
    graph.insert_before(first, op);
    let (yes, no) = (graph.add_block(first), graph.add_block(first));
    let mut values = vec![zero];
    values.extend(&entering);
    let results = copy::copy_block(graph, body, &values, yes);
    graph.set_block_results(yes, &results);
    let mut skipped = vec![start];
    skipped.extend(&entering);
    graph.set_block_results(no, &skipped);
    continue_after(graph, op, first, trips);
    if counter_is_used {
        count_from_one(graph, op);
    }
    true
}

/// The loop goes on from the results of the first iteration, with one less.
fn continue_after(graph: &mut Graph, op: OpId, first: OpId, trips: ValueId) {
    let one = constants::insert_int(graph, op, 1);
    let rest = emit(graph, op, "aten::sub", &[trips, one], Type::int());
    let mut operands = vec![rest];
    operands.extend(graph.results(first));
    graph.set_operands(op, &operands);
}

/// The loop's own counter starts anew, so that its body adds the peeled iteration.
fn count_from_one(graph: &mut Graph, op: OpId) {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return };
    let counter = graph.params(body)[0];
    let anchor = graph.first_op(body).unwrap_or_else(|| graph.terminator(body));
    let one = constants::insert_int(graph, anchor, 1);
    let add = graph.create(Symbol::new("aten::add"), &[one, one], &[Type::int()]);
    graph.insert_before(add, anchor);
    let next = graph.results(add)[0];
    graph.replace_all_uses(counter, next);
    graph.set_operands(add, &[counter, one]);
}

fn emit(graph: &mut Graph, anchor: OpId, kind: &str, operands: &[ValueId], ty: Type) -> ValueId {
    let op = graph.create(Symbol::new(kind), operands, &[ty]);
    graph.insert_before(op, anchor);
    graph.results(op)[0]
}
