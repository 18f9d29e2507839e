//! Copies of storages in the memory of a device, which is not the host's. A tensor that a device computed stays there until
//! something on the host reads it; one that the host computed is copied once and again only after it was written. What devices
//! there are is not known here.

use crate::diag::{Diagnostic, Result};
use crate::resources::budget;
use std::any::Any;
use std::cell::Cell;
use std::sync::Arc;

thread_local! {
    static IMPATIENT: Cell<bool> = const { Cell::new(false) };
}

/// Runs work that holds something which other threads may wait for with a storage open: where it would have to wait for a
/// storage, it gets an `Unsupported` error instead.
pub fn impatiently<T>(work: impl FnOnce() -> T) -> T {
    struct Before(bool);
    impl Drop for Before {
        fn drop(&mut self) {
            IMPATIENT.set(self.0);
        }
    }
    let _before = Before(IMPATIENT.replace(true));
    work()
}

/// Whether this thread may wait for a storage.
pub(super) fn may_wait() -> Result<()> {
    match IMPATIENT.get() {
        true => Err(Diagnostic::unsupported("another thread has a tensor open")),
        false => budget::check(),
    }
}

/// Memory of a device, such as a GPU's. Work that uses it is done in the order in which it is asked for.
pub trait DeviceMemory: Send + Sync {
    /// New memory of at least one byte, with whatever is in it. Fails with `Device` where there is none left.
    fn allocate(&self, nbytes: usize) -> Result<Arc<dyn DeviceBuffer>>;
    /// New memory with given content.
    fn upload(&self, bytes: &[u8]) -> Result<Arc<dyn DeviceBuffer>>;
    /// Whether a buffer lies in this memory.
    fn owns(&self, buffer: &dyn DeviceBuffer) -> bool;
}

/// A piece of a device's memory, which is given back when it is dropped.
pub trait DeviceBuffer: Any + Send + Sync {
    /// How many bytes of it count.
    fn nbytes(&self) -> usize;
    /// Copies all of it to the host after all work that was asked for before; `bytes` are `nbytes` long. Fails with
    /// `Device` where some of that work failed.
    fn download(&self, bytes: &mut [u8]) -> Result<()>;
}

/// A copy of a storage on a device, and the state of the storage that it is a copy of.
pub(super) struct Mirror {
    pub(super) buffer: Arc<dyn DeviceBuffer>,
    /// The storage's version when the copy was made. No write was under way then.
    pub(super) version: u64,
}
