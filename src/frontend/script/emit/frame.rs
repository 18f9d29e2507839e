//! The names that are assigned in one block. It knows nothing of the rules by which they are assigned.

use super::Sugared;
use crate::ir::{BlockId, Type};
use indexmap::IndexMap;

/// The names assigned in one block.
pub(super) struct Frame {
    pub(super) block: BlockId,
    /// Types of the variables that are values, in the order of first assignment.
    pub(super) types: IndexMap<String, Type>,
    pub(super) sugared: IndexMap<String, Sugared>,
    /// Why a name cannot be used, in the outermost frame: it is set in one arm only, or with two types.
    pub(super) failures: IndexMap<String, String>,
}

impl Frame {
    pub(super) fn new(block: BlockId) -> Frame {
        Frame { block, types: IndexMap::new(), sugared: IndexMap::new(), failures: IndexMap::new() }
    }
}
