//! What [`super::future`] is built of. The model checker's tests have a file of this name whose threads and locks the checker
//! controls.

pub(super) use crate::resources::budget::pause;
pub(super) use parking_lot::{Condvar, Mutex, MutexGuard};
pub(super) use std::thread_local;

/// Room on the stack that a task begins with; more is made where there is less.
const STACK_BYTES: usize = 4 << 20;
/// Less room than this is too little to begin a task.
const RED_ZONE: usize = 512 << 10;

/// Runs a task on a stack that has room for it.
pub(super) fn with_room<T>(task: impl FnOnce() -> T) -> T {
    stacker::maybe_grow(RED_ZONE, STACK_BYTES, task)
}

/// Held while a wait begins, so that two that begin at once see each other.
pub(super) fn alone() -> MutexGuard<'static, ()> {
    static WAITING: Mutex<()> = Mutex::new(());
    WAITING.lock()
}
