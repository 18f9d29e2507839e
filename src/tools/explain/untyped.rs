//! Where types are lost: ops of a plan whose operands have types and whose results have none. What follows such an op is
//! made for tensors of any sizes.

use super::super::table::Table;
use crate::dialects::shapes::{has_rule, trial};
use crate::dialects::{Registry, resolve};
use crate::ir::{Graph, OpId, Type, TypeKind, ValueId};
use serde_json::{Value as Json, json};

/// A result without a type.
pub(super) struct Untyped {
    op: String,
    value: String,
    why: String,
}

/// All of a graph, in order.
pub(super) fn of(graph: &Graph, registry: &Registry) -> Vec<Untyped> {
    let one = |op: OpId| {
        let lost = |value: &&ValueId| !is_typed(graph.ty(**value));
        let results = graph.results(op);
        let value = results.iter().find(lost)?;
        let typed = graph.operands(op).iter().all(|operand| is_typed(graph.ty(*operand)));
        // What runs blocks or calls has the types of these.
        if !typed || graph.operands(op).is_empty() || !graph.nested_blocks(op).is_empty() {
            return None;
        }
        Some(Untyped {
            op: graph.kind(op).as_str().to_string(),
            value: graph.display_name(*value).to_string(),
            why: why(registry, graph, op),
        })
    };
    graph.all_ops().into_iter().filter_map(one).collect()
}

/// Whether a type says dtype and sizes of a tensor; those of all else say enough.
fn is_typed(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Tensor(t) => {
            t.dtype.is_some()
                && t.sizes.as_deref().is_some_and(|sizes| sizes.iter().all(|d| d.known().is_some()))
        }
        _ => true,
    }
}

fn why(registry: &Registry, graph: &Graph, op: OpId) -> String {
    match resolve(registry, graph, op) {
        Ok(row) if has_rule(row.def()) => format!(
            "its rule gives no sizes: they follow from elements, or it runs kernels, on {} elements at most",
            trial::limit(row.def().family)
        ),
        Ok(_) => "its row has no rule of types".to_string(),
        Err(_) => "it has no row".to_string(),
    }
}

/// A table for people; empty where all have types.
pub(super) fn to_text(untyped: &[Untyped]) -> String {
    if untyped.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["op", "result", "why it has no type"]);
    for Untyped { op, value, why } in untyped {
        table.row([op.clone(), format!("%{value}"), why.clone()]);
    }
    format!("types that are lost\n{table}")
}

/// The same for programs.
pub(super) fn to_json(untyped: &[Untyped]) -> Json {
    untyped.iter().map(|Untyped { op, value, why }| json!({"op": op, "result": value, "why": why})).collect()
}
