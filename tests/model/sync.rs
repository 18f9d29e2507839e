//! The locks of the storage protocol as the model checker gives them: every acquisition is a point where it may let another
//! thread go on.

use shuttle::sync::RwLockReadGuard;
pub(super) use shuttle::sync::{RwLock, RwLockWriteGuard};
use std::cell::Cell;
use std::time::Duration;

shuttle::thread_local! {
    static HELD: Cell<isize> = Cell::new(0);
}

pub(super) fn hold(more: isize) {
    HELD.with(|held| held.set(held.get() + more));
}

pub(super) fn held() -> isize {
    HELD.with(Cell::get)
}

pub(super) fn try_read<T>(lock: &RwLock<T>) -> Option<RwLockReadGuard<'_, T>> {
    lock.try_read().ok()
}

pub(super) fn try_write<T>(lock: &RwLock<T>) -> Option<RwLockWriteGuard<'_, T>> {
    lock.try_write().ok()
}

/// Blocks: whoever is never woken is a deadlock that the checker reports.
pub(super) fn read_for<T>(lock: &RwLock<T>, _: Duration) -> Option<RwLockReadGuard<'_, T>> {
    lock.read().ok()
}

pub(super) fn write_for<T>(lock: &RwLock<T>, _: Duration) -> Option<RwLockWriteGuard<'_, T>> {
    lock.write().ok()
}

pub(super) fn yield_now() {
    shuttle::thread::yield_now();
}

pub(super) fn nap() {
    shuttle::thread::yield_now();
}
