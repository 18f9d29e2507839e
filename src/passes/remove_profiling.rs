//! Takes out what `profile` put in. What types say of tensors stays unchanged, or is what was seen, or is forgotten: PyTorch has
//! a pass for each (RemoveProfilingNodes, RemoveProfileNodesAndSpecializeTypes, ClearProfilingInformation).

use super::{Context, PassOption, erase_shape_information};
use crate::diag::Result;
use crate::dialects::prim::profiling::{PROFILE, PROFILE_OPTIONAL};
use crate::ir::subtype::merge_tensors;
use crate::ir::{Attr, Graph, OpId, Type, TypeKind};

/// Options of the pass.
pub(super) const OPTIONS: &[PassOption] = &[PassOption::choice(
    "types",
    &["keep", "specialize", "forget"],
    "what types say afterwards: what they said, what profiles saw, or nothing of tensors",
)];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    match context.text("types")? {
        "specialize" => Ok(remove(graph, context, specialize)),
        "forget" => {
            let removed = nodes(graph, context);
            Ok(erase_shape_information::run(graph, context)? || removed)
        }
        _ => Ok(nodes(graph, context)),
    }
}

/// Takes profiles out; types stay.
pub(super) fn nodes(graph: &mut Graph, context: &Context<'_>) -> bool {
    remove(graph, context, |_, _| {})
}

/// A value has the type that was seen at all its uses; uses that were not reached say nothing.
fn specialize(graph: &mut Graph, op: OpId) {
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
}

/// The type that a profile saw; None for what is not a profile of a tensor.
pub(super) fn profiled_type(graph: &Graph, op: OpId) -> Option<Type> {
    if graph.kind(op) != PROFILE {
        return None;
    }
    graph.attr(op, "profiled_type").and_then(Attr::as_type).cloned()
}

fn remove(graph: &mut Graph, context: &Context<'_>, before: fn(&mut Graph, OpId)) -> bool {
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
