//! The data of a saved model as a plain tree, and the strict machine that reads it from a pickle.
//!
//! The machine executes nothing: it knows the 35 opcodes and the few globals that TorchScript writes and
//! refuses every other. The result is an arena of [`Node`]s in which **children stand before their
//! parents** and the root is last, so that a consumer builds its own values in one loop without recursion.
//! Shared values are shared nodes: keeping one value for each [`NodeId`] keeps all aliasing.
//! This module knows nothing of archives; storages are named by their key.

mod construct;
mod finish;
mod globals;
mod machine;
mod storage;
mod tensors;
mod tree;
mod write;

pub use machine::parse;
pub use storage::{StorageType, storage_type};
pub(in crate::frontend::archive) use tensors::check_extent;
pub use tree::{Dict, Enum, List, Node, NodeId, Object, Pickle, Scales, StorageRecord, TensorRecord};
pub(in crate::frontend::archive) use tree::{INT_LIST, TENSOR_ID};
pub use write::write;
