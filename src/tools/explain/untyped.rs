//! Where types are lost: ops of a plan whose operands have types and whose results have none. What stands behind such an op is
//! made for tensors of any sizes.

use super::super::table::Table;
use crate::dialects::Registry;
use crate::ir::{Graph, OpId, Symbol, Type, TypeKind, ValueId};
use serde_json::{Value as Json, json};

/// A result without a type.
pub(super) struct Untyped {
    op: String,
    value: String,
    why: &'static str,
}

/// All of a graph, in order.
pub(super) fn of(graph: &Graph, registry: &Registry) -> Vec<Untyped> {
    let one = |op: OpId| {
        let lost = |value: &&ValueId| !is_typed(graph.ty(**value));
        let results = graph.results(op);
        let value = results.iter().find(lost)?;
        let typed = graph.operands(op).iter().all(|operand| is_typed(graph.ty(*operand)));
        let kind = graph.kind(op).as_str();
        // What runs blocks or calls has the types of these.
        if !typed || graph.operands(op).is_empty() || !graph.nested_blocks(op).is_empty() {
            return None;
        }
        Some(Untyped {
            op: kind.to_string(),
            value: graph.display_name(*value).to_string(),
            why: why(registry, kind),
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

fn why(registry: &Registry, kind: &str) -> &'static str {
    match registry.overloads(Symbol::new(kind)).iter().any(|op| op.def().infer.is_some()) {
        true => {
            "its rule gives no sizes: they follow from elements, or it runs kernels, on 65536 elements at most"
        }
        false => "its row has no rule of types",
    }
}

/// A table for people; empty where all have types.
pub(super) fn to_text(untyped: &[Untyped]) -> String {
    if untyped.is_empty() {
        return String::new();
    }
    let mut table = Table::new(["op", "result", "why it has no type"]);
    for Untyped { op, value, why } in untyped {
        table.row([op.clone(), format!("%{value}"), why.to_string()]);
    }
    format!("types that are lost\n{table}")
}

/// The same for programs.
pub(super) fn to_json(untyped: &[Untyped]) -> Json {
    untyped.iter().map(|Untyped { op, value, why }| json!({"op": op, "result": value, "why": why})).collect()
}
