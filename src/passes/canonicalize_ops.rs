//! Brings ops to the form that fusion knows: arithmetic with a constant tensor of rank 0 takes the number, and parts
//! of a tensor that are all named at once are one `prim::ConstantChunk`.
//!
//! A number takes part in type promotion as a tensor of rank 0 does, so that results are equal. The list that `chunk`
//! gave must have no other user. What is dead then is erased, as in PyTorch.

use super::{Context, constants, dce};
use crate::diag::Result;
use crate::dialects::fusion;
use crate::ir::{Attr, Graph, OpId, Symbol, Type};
use crate::value::Value;

/// Arithmetic that takes a number in the place of its second tensor.
const ARITHMETIC: &[&str] = &["aten::add", "aten::sub", "aten::mul", "aten::div"];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let kind = graph.kind(op);
        if ARITHMETIC.contains(&kind.as_str()) {
            changed |= number_operand(graph, context, op);
        } else if kind == "prim::ListUnpack" {
            changed |= chunk(graph, context, op);
        }
    }
    if changed {
        context.changed();
    }
    Ok(dce::run(graph, context)? || changed)
}

fn number_operand(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let Some(value) = graph.operand(op, 1).filter(|value| graph.ty(*value).is_tensor()) else { return false };
    let Some(Value::Tensor(tensor)) = constants::value_of(graph, value) else { return false };
    let number = match tensor.to_scalars() {
        Ok(elements) if tensor.rank() == 0 && elements.len() == 1 => Value::from(elements[0]),
        _ => return false,
    };
    if matches!(number, Value::Bool(_))
        || !context.step(|| format!("gives a number to {}", graph.op_line(op)))
    {
        return false;
    }
    match constants::insert_before(graph, op, &number) {
        Some(number) => {
            graph.set_operand(op, 1, number);
            true
        }
        None => false,
    }
}

fn chunk(graph: &mut Graph, context: &Context<'_>, unpack: OpId) -> bool {
    let Some(list) = graph.operand(unpack, 0).filter(|list| graph.has_one_use(*list)) else { return false };
    let Some(chunk) = graph.def_op(list).filter(|def| graph.kind(*def) == "aten::chunk") else {
        return false;
    };
    let &[input, count, dim] = graph.operands(chunk) else { return false };
    let (Some(count), Some(dim)) = (constants::int_of(graph, count), constants::int_of(graph, dim)) else {
        return false;
    };
    if count != graph.result_count(unpack) as i64
        || !context.step(|| format!("chunks at once {}", graph.op_line(chunk)))
    {
        return false;
    }
    let types: Vec<Type> = graph.results(unpack).iter().map(|value| graph.ty(*value).clone()).collect();
    let new = graph.create(Symbol::new(fusion::CHUNK), &[input], &types);
    graph.set_attr(new, "chunks", Attr::Int(count));
    graph.set_attr(new, "dim", Attr::Int(dim));
    graph.insert_before(new, unpack);
    let results = graph.results(new);
    graph.replace_op(unpack, &results);
    graph.erase(chunk);
    true
}
