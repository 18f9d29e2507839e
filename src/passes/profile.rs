//! Puts a `prim::profile` before every use of a tensor whose type TorchScript's profiling executor would like to know: operands of
//! what it compiles, differentiates or asks for types, results of such ops, and results of blocks. Optional sizes that gradients
//! are summed to are counted. The ops pass their values on; `flambeau profile` runs the graph and writes what was observed into their
//! attributes. Places and order, and so the text, are PyTorch's.

use super::Context;
use crate::diag::Result;
use crate::dialects::prim::profiling::{PROFILE, PROFILE_OPTIONAL};
use crate::dialects::{has_profiled_results, is_profiled};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use std::sync::Arc;

/// The op that sums a gradient to the size of what it is the gradient of.
const SUM_TO_SIZE: &str = "aten::_grad_sum_to_size";

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let is_done = |op: &OpId| graph.kind(*op) == PROFILE || graph.kind(*op) == PROFILE_OPTIONAL;
    if graph.all_ops().iter().any(is_done) || !context.step(|| "profiles tensors at their uses".to_string()) {
        return Ok(false);
    }
    let root = graph.root();
    instrument(graph, context, root);
    count_optionals(graph, context);
    let end = graph.create(Symbol::new(PROFILE), &[], &[]);
    graph.append(root, end);
    Ok(true)
}

/// What is to be done next: blocks of an op are examined after its operands, results of a block at its end.
enum Work {
    Op(OpId),
    End(BlockId),
}

fn instrument(graph: &mut Graph, context: &Context<'_>, root: BlockId) {
    let block_work = |graph: &Graph, block: BlockId| {
        let ops = graph.block_ops(block).map(Work::Op);
        let mut all: Vec<Work> = ops.chain([Work::End(block)]).collect();
        all.reverse();
        all
    };
    let mut work = block_work(graph, root);
    while let Some(next) = work.pop() {
        match next {
            Work::Op(op) => {
                let registry = context.registry;
                let all = is_profiled(registry, graph, op);
                for n in 0..graph.operands(op).len() {
                    let value = graph.operands(op)[n];
                    let of_interest =
                        || graph.def_op(value).is_some_and(|def| has_profiled_results(registry, graph, def));
                    if graph.ty(value).is_tensor() && (all || of_interest()) {
                        look_at(graph, context, op, n);
                    }
                }
                for block in graph.nested_blocks(op).to_vec().into_iter().rev() {
                    work.extend(block_work(graph, block));
                }
            }
            Work::End(block) => {
                let end = graph.terminator(block);
                for n in 0..graph.operands(end).len() {
                    if graph.ty(graph.operands(end)[n]).is_tensor() {
                        look_at(graph, context, end, n);
                    }
                }
            }
        }
    }
}

/// Puts a profile before an op, between it and one of its operands.
fn look_at(graph: &mut Graph, context: &Context<'_>, user: OpId, n: usize) {
    let value = graph.operands(user)[n];
    let op = graph.create(Symbol::new(PROFILE), &[value], &[Type::tensor()]);
    graph.set_attr(op, "profiled_type", Attr::Type(Type::tensor()));
    graph.set_attr(op, "seen_none", Attr::Int(0));
    graph.insert_before(op, user);
    if let Some(result) = graph.result(op, 0) {
        graph.set_operand(user, n, result);
    }
    context.count("profiled uses", 1);
}

/// Counts how often optional values are there that gradients are summed to the size of: where they are made.
fn count_optionals(graph: &mut Graph, context: &Context<'_>) {
    for user in graph.all_ops() {
        for value in graph.operands(user).to_vec() {
            let summed = graph
                .uses(value)
                .any(|u| graph.terminated_block(u.op).is_none() && graph.kind(u.op) == SUM_TO_SIZE);
            let counted = graph.def_op(value).is_some_and(|def| graph.kind(def) == PROFILE_OPTIONAL);
            if matches!(graph.ty(value).kind(), TypeKind::Optional(_)) && summed && !counted {
                count(graph, value);
                context.count("optional values that are counted", 1);
            }
        }
    }
}

fn count(graph: &mut Graph, value: ValueId) {
    let ty = graph.ty(value).clone();
    let op = graph.create(Symbol::new(PROFILE_OPTIONAL), &[], &[ty]);
    graph.set_attr(op, "none_counts", none_counts(0, 0));
    match (graph.def_op(value), graph.def_block(value)) {
        (Some(def), _) => graph.insert_after(op, def),
        (None, Some(block)) => graph.prepend(block, op),
        (None, None) => return,
    }
    if let Some(result) = graph.result(op, 0) {
        graph.replace_all_uses(value, result);
        graph.set_operands(op, &[value]);
    }
}

/// The attribute that says how often a value was None, and how often not.
pub fn none_counts(none: i64, present: i64) -> Attr {
    let entry = |name: &str, n: i64| (Attr::Str(Arc::from(name)), Attr::Int(n));
    Attr::Dict(Arc::from([entry("num_none", none), entry("num_present", present)]))
}
