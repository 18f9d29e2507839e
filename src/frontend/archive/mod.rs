//! Saved models (`.pt` archives of `torch.jit.save`), read as data: nothing in them is executed, and every
//! size is checked before it is believed. See [`Limits`] for the caps.
//!
//! An [`Archive`] offers the parts: source code, the pickled data and constants as a plain [`Pickle`]
//! tree, the bytes of storages, extra files, and the original source places. What the parts mean (classes,
//! types, operators) is for the callers; this module knows no IR.

mod content;
mod debug;
mod declared;
mod emit;
mod exported;
mod flat;
mod format;
mod legacy;
mod load;
mod map;
mod mobile;
mod model;
mod objects;
mod opened;
pub mod limits;
pub mod pickle;
pub mod recognize;
pub mod save;
mod state;
mod upgraders;
pub mod write;
mod zip;

#[cfg(test)]
mod tests;

pub use debug::DebugRanges;
pub use exported::{Outline, OutlinedTensor, is_exported, models, outline};
pub use format::VERSIONS;
pub use limits::Limits;
pub use load::{load, load_with};
pub use model::{Code, Compiled, Model};
pub use opened::Archive;
pub use pickle::{Node, NodeId, Pickle, StorageRecord, TensorRecord};
pub use state::{load_values, save_values};
pub use write::Writer;
pub use zip::{Entry, Method, read_entries, read_entry};
