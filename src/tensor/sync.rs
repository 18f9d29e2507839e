//! The locks of [`super::shared`]. The model checker's tests have a file of this name with locks that it controls.

use parking_lot::RwLockReadGuard;
pub(super) use parking_lot::{RwLock, RwLockWriteGuard};
use std::cell::Cell;
use std::time::Duration;

thread_local! {
    /// Contents that the thread holds for writing.
    static HELD: Cell<isize> = const { Cell::new(0) };
}

/// Counts contents that this thread holds for writing.
#[inline]
pub(super) fn hold(more: isize) {
    HELD.with(|held| held.set(held.get() + more));
}

/// How many contents this thread holds for writing.
pub(super) fn held() -> isize {
    HELD.with(Cell::get)
}

#[inline]
pub(super) fn try_read<T>(lock: &RwLock<T>) -> Option<RwLockReadGuard<'_, T>> {
    lock.try_read()
}

#[inline]
pub(super) fn try_write<T>(lock: &RwLock<T>) -> Option<RwLockWriteGuard<'_, T>> {
    lock.try_write()
}

pub(super) fn read_for<T>(lock: &RwLock<T>, time: Duration) -> Option<RwLockReadGuard<'_, T>> {
    lock.try_read_for(time)
}

pub(super) fn write_for<T>(lock: &RwLock<T>, time: Duration) -> Option<RwLockWriteGuard<'_, T>> {
    lock.try_write_for(time)
}

/// Lets other threads go on.
pub(super) fn yield_now() {
    std::thread::yield_now();
}

/// Sleeps for a moment.
pub(super) fn nap() {
    std::thread::sleep(Duration::from_micros(50));
}
