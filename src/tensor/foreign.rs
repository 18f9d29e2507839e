//! Memory of somebody else that tensors may write to: an array of the host program that keeps it.

#![allow(
    unsafe_code,
    reason = "reads and writes memory by its address; the promise of `Foreign::new` makes it sound"
)]

use std::any::Any;
use std::fmt;

/// Writable memory with what keeps it.
pub struct Foreign {
    address: *mut u8,
    nbytes: usize,
    /// Dropped when no tensor needs the memory any more.
    _owner: Box<dyn Any + Send + Sync>,
}

// SAFETY: the address is used for the memory alone, which belongs to no thread; a storage's lock orders all access.
unsafe impl Send for Foreign {}
// SAFETY: as above; shared references only read.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Memory of `nbytes` bytes at `address`, kept by `owner`.
    ///
    /// # Safety
    /// Until `owner` is dropped the memory must stay at its place, be initialized and writable, and nobody may write to it
    /// while an operation runs on a tensor over it, nor read it while one writes.
    pub unsafe fn new(address: *mut u8, nbytes: usize, owner: Box<dyn Any + Send + Sync>) -> Foreign {
        // Nothing is read from a place that may be null.
        let address =
            if nbytes == 0 { std::ptr::NonNull::<u64>::dangling().as_ptr().cast() } else { address };
        Foreign { address, nbytes, _owner: owner }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `new` was promised initialized memory of this size; `&self` keeps its owner.
        unsafe { std::slice::from_raw_parts(self.address, self.nbytes) }
    }

    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above, and it is writable; `&mut self` says that no other slice of it is in use.
        unsafe { std::slice::from_raw_parts_mut(self.address, self.nbytes) }
    }
}

impl fmt::Debug for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Foreign({} bytes)", self.nbytes)
    }
}
