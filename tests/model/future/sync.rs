//! What futures are built of, as the model checker gives it: every use is a point where it may let another thread go on.

pub(super) use crate::model::locks::{Condvar, Mutex, MutexGuard};
pub(super) use shuttle::thread_local;

/// Stacks are the checker's.
pub(super) fn with_room<T>(task: impl FnOnce() -> T) -> T {
    task()
}

/// No run must end here.
pub(super) fn pause() -> flambeau::diag::Result<()> {
    Ok(())
}

shuttle::lazy_static! {
    static ref WAITING: Mutex<()> = Mutex::new(());
}

pub(super) fn alone() -> MutexGuard<'static, ()> {
    WAITING.lock()
}
