//! Replaces `prim::GradOf` blocks by conditions: where a gradient that the block takes is defined its ops run, else it gives
//! undefined gradients.

use super::Context;
use crate::diag::Result;
use crate::dialects::prim::profiling::{AUTOGRAD_ANY, AUTOGRAD_ZERO, GRAD_OF};
use crate::ir::{Graph, OpId, Symbol, Type};
use hashbrown::HashMap;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != GRAD_OF {
            continue;
        }
        if !context.step(|| format!("lowers {}", graph.op_line(op))) {
            break;
        }
        lower(graph, op);
        changed = true;
    }
    Ok(changed)
}

fn lower(graph: &mut Graph, op: OpId) {
    let Some(body) = graph.nested_blocks(op).first().copied() else { return };
    let operands = graph.operands(op).to_vec();
    // An int, as PyTorch declares it.
    let any = graph.create(Symbol::new(AUTOGRAD_ANY), &operands, &[Type::int()]);
    graph.insert_before(any, op);
    let types: Vec<Type> = graph.results(op).iter().map(|value| graph.ty(*value).clone()).collect();
    let condition = graph.results(any);
    let choice = graph.create(Symbol::new("prim::If"), &condition, &types);
    graph.set_location_id(choice, graph.location_id(op));
    graph.insert_before(choice, op);
    let (defined, undefined) = (graph.add_block(choice), graph.add_block(choice));
    let mut map = HashMap::new();
    for inner in graph.block_ops(body).collect::<Vec<_>>() {
        let copy = graph.clone_op(None, inner, &mut map);
        graph.append(defined, copy);
    }
    let results = crate::ir::mapped(graph.block_results(body), &map);
    graph.set_block_results(defined, &results);
    let zero = graph.emit(undefined, Symbol::new(AUTOGRAD_ZERO), &[], &[Type::tensor()]);
    let zeros = vec![graph.results(zero)[0]; types.len()];
    graph.set_block_results(undefined, &zeros);
    for (old, new) in graph.results(op).into_iter().zip(graph.results(choice)) {
        super::subgraphs::move_name(graph, old, new);
    }
    let results = graph.results(choice);
    graph.replace_op(op, &results);
}
