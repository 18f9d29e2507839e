//! Of which operators TorchScript's profiling executor profiles the tensors that they take and give: those that it compiles,
//! differentiates, or asks for types. It decides where `profile` puts its ops, as in PyTorch, and nothing else.

use super::prim::profiling as prim;
use super::torchscript_gradients::has_torchscript_gradient;
use super::{Registry, resolve};
use crate::ir::{Graph, OpId, TypeKind};
use hashbrown::HashSet;
use std::sync::LazyLock;

/// Recorded from PyTorch 2.15 by tests/golden/record_profiled_ops.py: operators whose operands are profiled, and after a line
/// `# results` those whose results are profiled at every use.
static NAMES: LazyLock<[HashSet<&str>; 2]> = LazyLock::new(|| {
    let text = include_str!("aten/profiled_ops.txt");
    let (operands, results) = text.split_once("# results\n").unwrap_or((text, ""));
    [operands, results].map(|part| part.lines().collect())
});

/// Ops without a schema in PyTorch whose operands are profiled.
const WITHOUT_SCHEMA: [&str; 7] = [
    "prim::ConstantChunk",
    "prim::ListConstruct",
    "prim::TensorExprGroup",
    prim::AUTOGRAD_ADD,
    prim::AUTOGRAD_ANY,
    prim::AUTOGRAD_ALL,
    prim::AUTOGRAD_NONE,
];

/// Whether tensor operands of an op are profiled.
pub fn is_profiled(registry: &Registry, graph: &Graph, op: OpId) -> bool {
    let kind = graph.kind(op);
    WITHOUT_SCHEMA.iter().any(|name| kind == **name) || is_listed(registry, graph, op, 0)
}

/// Whether the results of an op that are tensors are profiled at their uses.
pub fn has_profiled_results(registry: &Registry, graph: &Graph, op: OpId) -> bool {
    let kind = graph.kind(op);
    [prim::AUTOGRAD_ADD, prim::AUTOGRAD_ZERO, "prim::ConstantChunk", "prim::TensorExprGroup"]
        .iter()
        .any(|name| kind == **name)
        || is_listed(registry, graph, op, 1)
}

/// Whether an op is on a list. What it compiles, TorchScript takes for no operand that is a number of unknown type, and for no
/// dtype or device that is not constant; what it differentiates has conditions of its own.
fn is_listed(registry: &Registry, graph: &Graph, op: OpId, list: usize) -> bool {
    let Ok(row) = resolve(registry, graph, op) else { return false };
    let schema = row.schema_text();
    if !NAMES[list].contains(schema.split('(').next().unwrap_or(schema)) {
        return false;
    }
    if has_torchscript_gradient(registry, graph, op) {
        return true;
    }
    let numbers = graph.operands(op).iter().any(|v| matches!(graph.ty(*v).kind(), TypeKind::Number));
    let constant = |name: &str| {
        let at = row.schema().ok().and_then(|schema| schema.argument_index(name));
        at.and_then(|at| graph.operand(op, at))
            .is_none_or(|value| graph.def_op(value).is_some_and(|def| graph.kind(def) == "prim::Constant"))
    };
    !numbers && constant("dtype") && constant("device")
}
