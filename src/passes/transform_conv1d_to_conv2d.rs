//! `conv1d` becomes `conv2d` with a height of 1, for backends that have no other.
//!
//! By definition: a dimension of size 1 is put before the last of input and weight, is not padded, and is taken away
//! from the result.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::{Graph, OpId, Symbol, Type, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let is_plain = graph.operand(op, 4).is_some_and(|padding| graph.ty(padding).element().is_some());
        if graph.kind(op) == "aten::conv1d"
            && is_plain
            && context.step(|| format!("gives a height to {}", graph.op_line(op)))
        {
            transform(graph, op);
            changed = true;
        }
    }
    Ok(changed)
}

fn transform(graph: &mut Graph, op: OpId) {
    let &[input, weight, bias, stride, padding, dilation, groups] = graph.operands(op) else { return };
    let (zero, one) = (constants::insert_int(graph, op, 0), constants::insert_int(graph, op, 1));
    let stride = two(graph, op, one, stride);
    let padding = two(graph, op, zero, padding);
    let dilation = two(graph, op, one, dilation);
    let place = constants::insert_int(graph, op, 2);
    let tensor = [Type::tensor()];
    let input = emit(graph, op, "aten::unsqueeze", &[input, place], &tensor);
    let weight = emit(graph, op, "aten::unsqueeze", &[weight, place], &tensor);
    let operands = [input, weight, bias, stride, padding, dilation, groups];
    let wide = emit(graph, op, "aten::conv2d", &operands, &tensor);
    let types: Vec<Type> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    let result = emit(graph, op, "aten::squeeze", &[wide, place], &types);
    graph.replace_op(op, &[result]);
}

/// A list of two: what the height has, and the one item of a list.
fn two(graph: &mut Graph, op: OpId, first: ValueId, list: ValueId) -> ValueId {
    let item = emit(graph, op, "prim::ListUnpack", &[list], &[Type::int()]);
    emit(graph, op, "prim::ListConstruct", &[first, item], &[Type::list(Type::int())])
}

fn emit(graph: &mut Graph, op: OpId, kind: &str, operands: &[ValueId], types: &[Type]) -> ValueId {
    let new = graph.create(Symbol::new(kind), operands, types);
    graph.set_location_id(new, graph.location_id(op));
    graph.insert_before(new, op);
    // An op made with one result type has one result.
    graph.results(new)[0]
}
