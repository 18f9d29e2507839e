//! The `fusion` dialect: pure tensor work gathered in one op, ready to be lowered to loops.
//!
//! A group holds its work as a graph in its attribute `Subgraph`. Inputs and outputs of the op and of the
//! subgraph correspond one to one. Inside stand elementwise ops, ops that combine rows (a sum over the last dimension,
//! softmax), constants, [`CHUNK`] on inputs and [`CONCAT`] on outputs; nothing there has effects but [`COPY`], which writes a
//! result to an operand. PyTorch's own name of the same thing is accepted.
//! This dialect does not know how groups are found or compiled.

mod backward;
mod group;
pub mod items;
pub mod layer;
pub mod sums;

use super::constraint::Law;
use super::structure::Structure;
use super::{Effects, OpDef, control};
pub use group::{GROUP, TORCH_GROUP, is_group, subgraph, verify};

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
