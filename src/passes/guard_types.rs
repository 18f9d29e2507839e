//! Puts fusion groups behind a `prim::TypeCheck` of the types that their operands have in the graph, as TorchScript's fuser does: a
//! group runs for tensors of these types; for others its work is done op by op, by a `prim::FallbackGraph`. A group of which
//! an operand has no type is dissolved. Behind checks alone types are known afterwards.

use super::subgraphs::{self, Body};
use super::{Context, type_guard};
use crate::diag::Result;
use crate::dialects::fusion;
use crate::dialects::prim::profiling::TYPE_CHECK;
use crate::ir::unify::without_refinements;
use crate::ir::{Attr, Graph, OpId, Type, TypeKind, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        let kind = graph.kind(op);
        if !(fusion::is_group(kind) || kind == "prim::TensorExprGroup") || is_guarded(graph, op) {
            continue;
        }
        let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph).cloned() else { continue };
        if !context.step(|| format!("guards the types of {}", graph.op_line(op))) {
            break;
        }
        changed = true;
        let plain = Type::tensor();
        if graph.operands(op).iter().any(|value| *graph.ty(*value) == plain) {
            subgraphs::dissolve(graph, op, &Body::of(Graph::clone(&body)), None);
            context.count("groups of unknown types dissolved", 1);
            continue;
        }
        type_operands(graph, op);
        if type_guard::insert(graph, op, TYPE_CHECK, Clone::clone) {
            context.count("groups guarded", 1);
        }
    }
    if changed {
        forget(graph);
    }
    Ok(changed)
}

/// Forgets what types say of tensors that no check covers: what was seen holds behind checks alone.
fn forget(graph: &mut Graph) {
    let mut values: Vec<ValueId> = graph.inputs().to_vec();
    for op in graph.all_ops() {
        let kind = graph.kind(op);
        if kind != TYPE_CHECK && kind != "prim::Constant" && !is_guarded(graph, op) {
            values.extend(graph.results(op));
        }
        for block in graph.nested_blocks(op) {
            values.extend_from_slice(graph.params(*block));
        }
    }
    for value in values {
        let plain = without_refinements(graph.ty(value));
        graph.set_type(value, plain);
    }
}

/// Whether a group takes what a check covers.
fn is_guarded(graph: &Graph, op: OpId) -> bool {
    if graph.attr(op, "Subgraph").is_none() {
        return false;
    }
    let operands = graph.operands(op);
    let mut tensors = operands.iter().filter(|value| graph.ty(**value).is_tensor()).peekable();
    tensors.peek().is_some()
        && tensors.all(|value| {
            graph.def_op(*value).is_some_and(|def| {
                let kind = graph.kind(def);
                kind == TYPE_CHECK || kind == "prim::Constant"
            })
        })
}

/// Sets the types of the parameters of a group from its operands.
fn type_operands(graph: &mut Graph, op: OpId) {
    let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph).cloned() else { return };
    let mut inner = Graph::clone(&body);
    for (input, value) in body.inputs().iter().zip(graph.operands(op)) {
        let ty = graph.ty(*value).clone();
        if matches!(ty.kind(), TypeKind::Tensor(_)) {
            inner.set_type(*input, ty);
        }
    }
    graph.set_attr(op, "Subgraph", Attr::Graph(std::sync::Arc::new(inner)));
}
