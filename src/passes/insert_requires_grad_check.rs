//! Puts differentiable groups behind a `prim::RequiresGradCheck`, as TorchScript's profiling executor does: a group was made for
//! inputs of which some require grad and some do not, and others run without it. What was seen of an input is recorded in its
//! profile in the group or before it; where both were seen it has to require grad. A group with an input of which nothing was seen
//! is dissolved.

use super::remove_profiling::profiled_type;
use super::subgraphs::{self, Body};
use super::{Context, type_guard};
use crate::diag::Result;
use crate::dialects::fusion::DIFFERENTIABLE;
use crate::dialects::prim::profiling::REQUIRES_GRAD_CHECK;
use crate::ir::{Attr, Graph, OpId, TensorType, Type, TypeKind, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        if graph.kind(op) != DIFFERENTIABLE || is_guarded(graph, op) {
            continue;
        }
        let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph).cloned() else { continue };
        if !context.step(|| format!("guards {}", graph.op_line(op))) {
            break;
        }
        changed = true;
        let Some(seen) = seen_types(graph, op, &body) else {
            subgraphs::dissolve(graph, op, &Body::of(Graph::clone(&body)), None);
            context.count("groups of unseen inputs dissolved", 1);
            continue;
        };
        // The types hold behind the check only.
        let former: Vec<Type> = seen.iter().map(|(value, _)| graph.ty(*value).clone()).collect();
        for (value, ty) in &seen {
            graph.set_type(*value, ty.clone());
        }
        if type_guard::insert(graph, op, REQUIRES_GRAD_CHECK, Clone::clone) {
            context.count("groups guarded", 1);
        }
        for ((value, _), ty) in seen.iter().zip(former) {
            graph.set_type(*value, ty);
        }
    }
    Ok(changed)
}

fn is_guarded(graph: &Graph, op: OpId) -> bool {
    let checked = |value| graph.def_op(value).is_some_and(|def| graph.kind(def) == REQUIRES_GRAD_CHECK);
    graph.operands(op).iter().any(|value| checked(*value))
}

/// Whether each operand that is a tensor requires grad, as a type that says no more: by its profile, or by its type. None where
/// nothing is known of one.
fn seen_types(graph: &Graph, op: OpId, body: &Graph) -> Option<Vec<(ValueId, Type)>> {
    let plain = Type::tensor();
    let mut all = Vec::new();
    for (input, value) in body.inputs().iter().zip(graph.operands(op)) {
        if !graph.ty(*value).is_tensor() {
            continue;
        }
        let inside = body.uses(*input).next().filter(|first| body.terminated_block(first.op).is_none());
        let inside = inside.and_then(|first| profiled_type(body, first.op));
        let outside = || graph.def_op(*value).and_then(|def| profiled_type(graph, def));
        let seen = inside.or_else(outside).unwrap_or_else(|| graph.ty(*value).clone());
        let known = seen.as_tensor().filter(|_| seen != plain)?;
        // Where both were seen, one without gradients is the exception.
        let requires_grad = Some(known.requires_grad.unwrap_or(true));
        all.push((
            *value,
            Type::new(TypeKind::Tensor(TensorType { requires_grad, ..TensorType::default() })),
        ));
    }
    Some(all)
}
