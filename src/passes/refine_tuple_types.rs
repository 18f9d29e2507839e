//! Gives the tuples that a graph makes the types of what they are made of, refinements of tensors included. Names of
//! fields stay.

use super::{Context, constants};
use crate::diag::Result;
use crate::ir::{Graph, Type, TypeKind, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let Some(result) = graph.result(op, 0) else { continue };
        let refined = match graph.kind(op).as_str() {
            "prim::TupleConstruct" => refined(graph, result, graph.operands(op)),
            "prim::Constant" => match constants::value_of(graph, result) {
                Some(crate::value::Value::Tuple(tuple)) => Some(tuple.ty()),
                _ => None,
            },
            _ => None,
        };
        if let Some(ty) = refined.filter(|ty| ty != graph.ty(result) && ty.is_subtype_of(graph.ty(result)))
            && context.step(|| format!("gives {ty} to {}", graph.op_line(op)))
        {
            graph.set_type(result, ty);
            changed = true;
        }
    }
    Ok(changed)
}

fn refined(graph: &Graph, tuple: ValueId, parts: &[ValueId]) -> Option<Type> {
    let elements: Vec<Type> = parts.iter().map(|part| graph.ty(*part).clone()).collect();
    match graph.ty(tuple).kind() {
        TypeKind::Tuple(_, names) => Some(Type::new(TypeKind::Tuple(elements.into(), names.clone()))),
        _ => None,
    }
}
