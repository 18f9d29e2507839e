//! The `fusion` dialect: pure tensor work gathered in one op, ready to be lowered to loops.
//!
//! A group holds its work as a graph in its attribute `Subgraph`. Inputs and outputs of the op and of the
//! subgraph correspond one to one. Inside stand elementwise ops, ops that combine rows (a sum over the last dimension,
//! softmax), constants, [`CHUNK`] on inputs and [`CONCAT`] on outputs; nothing there has effects but [`COPY`], which writes a
//! result to an operand. PyTorch's own name of the same thing is accepted.
//! This dialect does not know how groups are found or compiled.

mod backward;
pub mod items;
pub mod layer;
pub mod sums;

use super::constraint::Law;
use super::structure::Structure;
use super::{Effects, OpDef, control};
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Graph, OpId, Symbol};
use std::sync::Arc;

/// A group: `fusion::Group[Subgraph=<Graph>](inputs...) -> (outputs...)`.
pub const GROUP: &str = "fusion::Group";
/// PyTorch's name of a group in its graph text.
pub const TORCH_GROUP: &str = "prim::FusionGroup";
/// PyTorch's name of work that its executors differentiate as one.
pub const DIFFERENTIABLE: &str = "prim::DifferentiableGraph";
/// `prim::ConstantChunk[chunks=4, dim=1](%x) -> (Tensor, ...)`: equal parts of an input along a dimension.
pub const CHUNK: &str = "prim::ConstantChunk";
/// `prim::FusedConcat[dim=1](%a, %b, ...) -> Tensor`: outputs joined along a dimension.
pub const CONCAT: &str = "prim::FusedConcat";
/// `aten::copy_(%operand, %result, %no)`, last in a group: the result is stored where the operand lies.
pub const COPY: &str = "aten::copy_";

/// The rows.
pub static OPS: &[OpDef] = &[
    control("fusion::Group(...) -> ...")
        .effects(Effects::NONE)
        .laws(&[Law::Structure(Structure::Group)])
        .doc("Pure tensor work that runs as one kernel."),
    control("prim::FusionGroup(...) -> ...")
        .effects(Effects::NONE)
        .laws(&[Law::Structure(Structure::Group)])
        .doc("PyTorch's spelling of fusion::Group."),
    control("prim::DifferentiableGraph(...) -> ...")
        .effects(Effects::NONE)
        .laws(&[Law::Structure(Structure::Group)])
        .doc("Work that TorchScript's executors differentiate as one; made by create-autodiff-subgraphs."),
];

/// All rows, file by file.
pub static TABLES: &[&[OpDef]] = &[OPS, layer::OPS, backward::OPS, sums::OPS, items::OPS];

/// Whether an op is a group, under either name.
pub fn is_group(kind: Symbol) -> bool {
    kind == *GROUP || kind == *TORCH_GROUP
}

/// The work of a group.
pub fn subgraph(graph: &Graph, op: OpId) -> Option<&Arc<Graph>> {
    if !is_group(graph.kind(op)) {
        return None;
    }
    graph.attr(op, "Subgraph").and_then(Attr::as_graph)
}

/// The laws of a group; returns the first that is broken.
pub fn verify(graph: &Graph, op: OpId) -> Result<()> {
    let kind = graph.kind(op);
    let broken = |law: &str| Err(Diagnostic::verify(format!("{kind} {law}")));
    let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph) else {
        return broken("must have a graph as its attribute `Subgraph`");
    };
    if body.inputs().len() != graph.operands(op).len() {
        return broken("must have as many operands as its subgraph has inputs");
    }
    if body.outputs().len() != graph.result_count(op) {
        return broken("must have as many results as its subgraph has outputs");
    }
    if !graph.nested_blocks(op).is_empty() {
        return broken("must not have blocks");
    }
    for inner in body.block_ops(body.root()) {
        if !body.nested_blocks(inner).is_empty() {
            return broken("must not contain control flow");
        }
        if body.result_count(inner) == 0 {
            return broken(&format!("must not contain an op without results ({})", body.kind(inner)));
        }
    }
    Ok(())
}
