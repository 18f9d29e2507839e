//! Lines of memory that a storage owns, with what they were charged to: they come from those that were kept, and go back to them.

use super::pool::{self, Line};
use crate::resources::Charge;

/// Owned lines and what they were charged to.
pub(super) struct Block {
    pub(super) lines: Vec<Line>,
    /// Credited when it is dropped.
    pub(super) _charge: Charge,
}

impl Block {
    /// A block of at least `count` lines that was kept, with whatever was in it. None where there is none, or none that the run may
    /// have: one of the very size may still fit its limit.
    pub(super) fn kept(count: usize) -> Option<Block> {
        let lines = pool::take(count)?;
        match Charge::new(lines.len() * size_of::<Line>()) {
            Ok(charge) => Some(Block { lines, _charge: charge }),
            Err(_) => {
                pool::give(lines);
                None
            }
        }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        pool::give(std::mem::take(&mut self.lines));
    }
}
