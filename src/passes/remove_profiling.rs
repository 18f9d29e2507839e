//! Takes out what `profile` put in: as it is, with what was seen written into types, or with all that types say of tensors
//! forgotten. Three passes, after PyTorch's names.

use super::{Context, erase_shape_information};
use crate::diag::Result;
use crate::dialects::prim::profiling::{PROFILE, PROFILE_OPTIONAL};
use crate::ir::subtype::merge_tensors;
use crate::ir::{Attr, Graph, OpId, Type, TypeKind};

/// `remove-profiling-nodes`
pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    Ok(remove(graph, context, &mut |_, _| {}))
}

/// `clear-profiling-information`
pub(super) fn clear(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let removed = remove(graph, context, &mut |_, _| {});
    Ok(erase_shape_information::run(graph, context)? || removed)
}

/// `remove-profile-nodes-and-specialize-types`: a value has the type that was seen at all its uses; uses that were not reached say
/// nothing.
pub(super) fn specialize(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    Ok(remove(graph, context, &mut |graph, op| {
        let (Some(value), Some(seen)) = (graph.operand(op, 0), profiled_type(graph, op)) else { return };
        let (TypeKind::Tensor(known), TypeKind::Tensor(found)) = (graph.ty(value).kind(), seen.kind()) else {
            return;
        };
        let plain = Type::tensor();
        let ty = match (*graph.ty(value) == plain, seen == plain) {
            (_, true) => return,
            (true, false) => seen,
            (false, false) => Type::new(TypeKind::Tensor(merge_tensors(known, found))),
        };
        graph.set_type(value, ty);
    }))
}

/// The type that a profile saw; None for what is no profile of a tensor.
pub(super) fn profiled_type(graph: &Graph, op: OpId) -> Option<Type> {
    if graph.kind(op) != PROFILE {
        return None;
    }
    graph.attr(op, "profiled_type").and_then(Attr::as_type).cloned()
}

fn remove(graph: &mut Graph, context: &Context<'_>, before: &mut dyn FnMut(&mut Graph, OpId)) -> bool {
    let mut changed = false;
    for op in graph.all_ops() {
        let kind = graph.kind(op);
        if kind != PROFILE && kind != PROFILE_OPTIONAL {
            continue;
        }
        if !context.step(|| format!("drops {}", graph.op_line(op))) {
            break;
        }
        before(graph, op);
        match graph.operand(op, 0) {
            Some(value) => graph.replace_op(op, &[value]),
            None => graph.erase(op),
        }
        changed = true;
    }
    changed
}
