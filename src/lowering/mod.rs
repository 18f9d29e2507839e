//! Lowering: from a fusion group to loops.
//!
//! [`GroupProgram::new`] reads a group's graph, op row by op row, into one scalar program with loads and
//! stores at its borders. [`Plan::new`] reads actual sizes and strides: it broadcasts, merges dimensions
//! and names the contiguity pattern, which together with dtypes is the specialization key ([`Key`]).
//! [`nest::lower`] writes the loop nest of a key as IR of the `loop` dialect. Groups that combine rows have their own
//! plan and nest (`row_plan`, `row_nest`). [`pass::PASS`] does all of it for the groups of a module with sufficiently known
//! types. [`scalars`] makes kernels of loops over numbers.
//!
//! Ops outside of groups are lowered by what is registered for them ([`convert`]).
//!
//! This layer knows rows, tensors' layouts and loops; it does not know how loops become machine code.

mod built_in;
mod by_op;
pub mod convert;
mod group;
pub mod nest;
pub mod pass;
mod part;
mod plan;
mod pointwise_nest;
pub mod record;
mod row_domain;
mod row_nest;
mod row_plan;
pub mod scalars;

pub use by_op::{Lowering, OpCall, Ops, Rewriter};
pub use convert::{ConversionTarget, Lowerings};
pub use group::{BlockSums, Form, GroupProgram, InputSig, Leaf, Leaves, Load, Piece, RowReduction, Slot};
pub use nest::{Nest, NestRows, RowStore, Stride, Target, lower};
pub use part::{Access, Key, Part, RowPart};
pub use pass::kernels;
pub use plan::Plan;
pub use record::Lowered;
