//! The end of a process while other threads compile: LLVM's own state is destroyed then, under their hands. So the process waits for
//! those that are at it, and nothing begins any more.

use super::orc;
use crate::diag::{Diagnostic, Result};
use parking_lot::{Condvar, Mutex};
use std::sync::Once;
use std::time::{Duration, Instant};

/// How long the end of the process waits: a kernel takes a fraction of a second.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is under way in a process.
struct Work {
    /// A process that was forked off has none of the threads.
    process: u32,
    threads: usize,
    ends: bool,
}

static WORK: Mutex<Work> = Mutex::new(Work { process: 0, threads: 0, ends: false });
static CHANGED: Condvar = Condvar::new();
static REGISTERED: Once = Once::new();
static REGISTERED_AGAIN: Once = Once::new();

/// A thread that compiles, as long as it lives.
pub(super) struct Compiling;

impl Compiling {
    /// Fails where the process is at its end.
    pub(super) fn begin() -> Result<Compiling> {
        REGISTERED.call_once(|| orc::at_exit(wait));
        let mut work = WORK.lock();
        if work.process != std::process::id() {
            *work = Work { process: std::process::id(), threads: 0, ends: false };
        }
        if work.ends {
            return Err(Diagnostic::internal("the process ends, and compiles nothing any more"));
        }
        work.threads += 1;
        Ok(Compiling)
    }
}

impl Drop for Compiling {
    fn drop(&mut self) {
        // What LLVM made when it first compiled is destroyed before what was there earlier.
        REGISTERED_AGAIN.call_once(|| orc::at_exit(wait));
        let mut work = WORK.lock();
        work.threads = work.threads.saturating_sub(1);
        CHANGED.notify_all();
    }
}

extern "C" fn wait() {
    let until = Instant::now() + PATIENCE;
    // In a process that was forked off, a thread that is not there may hold the lock for ever.
    let Some(mut work) = WORK.try_lock_for(PATIENCE) else { return };
    work.ends = true;
    while work.process == std::process::id() && work.threads > 0 {
        if CHANGED.wait_until(&mut work, until).timed_out() {
            return;
        }
    }
}
