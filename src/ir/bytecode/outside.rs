//! What bytes refer to and do not hold, and how deep they nest. How they are written and read is not known here.

use crate::diag::Source;
use crate::ir::Attr;
use crate::tensor::Tensor;
use std::sync::Arc;

/// Blocks, graphs, types and attributes within each other.
pub(super) const MAX_DEPTH: usize = 100;

/// Attributes in lists that stand where they stood before.
pub(super) const MAX_REPEATED: usize = 1 << 20;

/// What graphs refer to and their bytes do not hold. Writing adds what is not there yet.
#[derive(Clone, Debug, Default)]
pub struct Outside {
    /// Tensors of attributes.
    pub tensors: Vec<Tensor>,
    /// Sources of locations.
    pub sources: Vec<Arc<Source>>,
    /// Lists and dictionaries that are there: a constant that is one of them is that object again where it is read. Writing adds none.
    pub lists: Vec<Attr>,
}
