//! Which operators TorchScript's executors differentiate: those with a formula of their own there, by schema. It decides what
//! `create-autodiff-subgraphs` gathers, as PyTorch's pass does, and nothing else: derivatives here are those of rows.

use super::{Op, Registry, resolve};
use crate::ir::{Graph, OpId, Schema, TypeKind};
use hashbrown::HashSet;
use std::sync::LazyLock;

/// Recorded from PyTorch 2.15 by tests/golden/record_torchscript_gradients.py.
static NAMES: LazyLock<HashSet<&str>> =
    LazyLock::new(|| include_str!("aten/torchscript_gradients.txt").lines().collect());

/// Whether an op of a graph is one that TorchScript's executors differentiate: its schema has a formula, and no operand is a
/// number of unknown type.
/// Dropout that is constantly not in training has none.
pub fn has_torchscript_gradient(registry: &Registry, graph: &Graph, op: OpId) -> bool {
    let numbers =
        |op: OpId| graph.operands(op).iter().any(|value| matches!(graph.ty(*value).kind(), TypeKind::Number));
    match resolve(registry, graph, op) {
        Ok(row) => is_named(&row) && !numbers(op) && !is_off(graph, op, &row),
        Err(_) => false,
    }
}

fn is_named(row: &Op) -> bool {
    let schema = row.schema_text();
    NAMES.contains(schema.split('(').next().unwrap_or(schema))
}

/// Dropout that is constantly not in training.
fn is_off(graph: &Graph, op: OpId, row: &Op) -> bool {
    let place = |schema: &Schema| schema.arguments.iter().position(|argument| argument.name == "train");
    let given = row.schema().ok().and_then(place).and_then(|at| graph.def_op(graph.operand(op, at)?));
    given.is_some_and(|op| {
        graph.kind(op) == "prim::Constant" && graph.attr(op, "value").and_then(|a| a.as_int()) == Some(0)
    })
}
