//! How many plans of an executor are being made by other threads. Makes none.

use parking_lot::{Condvar, Mutex};
use std::sync::Arc;

/// Why calls run without a plan while it is made.
pub(super) const IN_BACKGROUND: &str = "its plan is being made in the background";

/// How many plans of an executor are being made by other threads.
#[derive(Default)]
pub(super) struct Pending {
    /// With the process that they are made in: one that was forked off has none of its threads.
    count: Mutex<(u32, usize)>,
    none: Condvar,
}

/// One of them, as long as it lives.
pub(super) struct Making(Arc<Pending>);

impl Pending {
    pub(super) fn begin(self: &Arc<Pending>) -> Making {
        let (process, mut count) = (std::process::id(), self.count.lock());
        *count = (process, if count.0 == process { count.1 + 1 } else { 1 });
        drop(count);
        Making(Arc::clone(self))
    }

    /// Waits until there is none.
    pub(super) fn wait(&self) {
        let mut count = self.count.lock();
        while count.0 == std::process::id() && count.1 > 0 {
            self.none.wait(&mut count);
        }
    }
}

impl Drop for Making {
    fn drop(&mut self) {
        let mut count = self.0.count.lock();
        count.1 -= 1;
        if count.1 == 0 {
            self.0.none.notify_all();
        }
    }
}
