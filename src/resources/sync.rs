//! What [`super::team`] is built of. The model checker's tests have a file of this name whose threads, locks and clock the checker
//! controls.

pub(super) use parking_lot::{Condvar, Mutex};
pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::thread::{Builder, Thread, current, park, yield_now};
pub(super) use std::time::Instant;

/// Checks between two readings of the clock.
pub(super) const LOOKS: usize = 32;
