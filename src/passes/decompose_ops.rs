//! Decomposition: `addmm(c, a, b)` with both factors 1 becomes `add(c, mm(a, b))`, so that the sum can fuse with what
//! follows. By definition of addmm the two are equal. Types and constants are propagated where an op of the outermost
//! block changed.

use super::{Context, constant_propagation, constants, dce, input_shapes};
use crate::diag::Result;
use crate::ir::{Graph, OpId, Symbol, Type, ValueId};
use crate::value::Value;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (mut changed, mut outermost) = (false, false);
    for op in graph.all_ops() {
        if graph.kind(op) == "aten::addmm"
            && factors_are_one(graph, op)
            && context.step(|| format!("takes apart {}", graph.op_line(op)))
        {
            outermost |= graph.parent(op) == Some(graph.root());
            decompose(graph, op);
            changed = true;
        }
    }
    if outermost {
        input_shapes::propagate(graph);
        context.changed();
        constant_propagation::run(graph, context)?;
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(changed)
}

fn factors_are_one(graph: &Graph, op: OpId) -> bool {
    let is_one = |value: &ValueId| match constants::value_of(graph, *value) {
        Some(Value::Int(n)) => n == 1,
        Some(Value::Float(x)) => x == 1.0,
        _ => false,
    };
    matches!(graph.operands(op), [_, _, _, beta, alpha] if is_one(beta) && is_one(alpha))
}

fn decompose(graph: &mut Graph, op: OpId) {
    let &[bias, a, b, ..] = graph.operands(op) else { return };
    let (location, types) =
        (graph.location_id(op), graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect::<Vec<_>>());
    let one = constants::insert_int(graph, op, 1);
    let product = graph.create(Symbol::new("aten::mm"), &[a, b], &[Type::tensor()]);
    graph.set_location_id(product, location);
    graph.insert_before(product, op);
    let sum = graph.create(Symbol::new("aten::add"), &[bias, graph.results(product)[0], one], &types);
    graph.set_location_id(sum, location);
    graph.insert_before(sum, op);
    let results = graph.results(sum);
    graph.replace_op(op, &results);
}
