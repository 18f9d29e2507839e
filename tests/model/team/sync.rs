//! What the team is built of, as the model checker gives it: every use is a point where it may let another thread go on. It
//! takes all atomic operations for sequentially consistent.

pub(super) use crate::model::locks::{Condvar, Mutex};
pub(super) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use shuttle::thread::{Builder, Thread, current, park, yield_now};
use std::time::Duration;

/// Looks between two looks at the clock.
pub(super) const LOOKS: usize = 1;

/// The looks themselves are points where others go on.
pub(super) fn spin_loop() {}

/// A clock on which a thread is courteous at its first look and out of patience at its second.
pub(super) struct Instant(u64);

impl Instant {
    pub(super) fn now() -> Instant {
        Instant(0)
    }

    pub(super) fn elapsed(&mut self) -> Duration {
        self.0 += 1;
        Duration::from_micros(150 * self.0)
    }
}
