//! The rows that a group combines along, and the layouts that values have by them. Knows no launch.

use super::group::Leaf;
use crate::diag::{Diagnostic, Result};
use crate::tensor::{Dims, Layout};

/// The elements over which a group's reductions run.
pub(super) struct RowDomain {
    /// Sizes of all dimensions.
    pub(super) sizes: Dims,
    /// How many of the last ones make a row.
    pub(super) inner: usize,
}

impl RowDomain {
    /// How many of the first ones number the rows.
    pub(super) fn outer(&self) -> usize {
        self.sizes.len() - self.inner
    }

    /// How many rows there are.
    pub(super) fn count(&self) -> i64 {
        self.sizes[..self.outer()].iter().product()
    }

    /// The layout of one number a row; whether the dimensions of the row stay, with size 1.
    pub(super) fn number(&self, keeps: bool) -> Result<Layout> {
        let mut sizes: Dims = self.sizes[..self.outer()].into();
        if keeps {
            sizes.extend(std::iter::repeat_n(1, self.inner));
        }
        Layout::contiguous(&sizes)
    }
}

/// The layouts of what decides the sizes of a value.
pub(super) fn leaf_layouts(
    leaves: &[Leaf],
    loads: &[Layout],
    rows: Option<&RowDomain>,
) -> Result<Vec<Layout>> {
    leaves.iter().map(|leaf| leaf_layout(leaf, loads, rows)).collect()
}

/// The layout of one of these.
pub(super) fn leaf_layout(leaf: &Leaf, loads: &[Layout], rows: Option<&RowDomain>) -> Result<Layout> {
    match (leaf, rows) {
        (Leaf::Load(load), _) => Ok(loads[*load].clone()),
        (Leaf::Reduced(_, keeps), Some(rows)) => rows.number(*keeps),
        (Leaf::Reduced(..), None) => Err(Diagnostic::internal("a group with rows that no op reduces")),
    }
}
