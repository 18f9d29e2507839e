//! Memory, time and steps that one run may use, and a way to stop it from outside.
//!
//! A run *installs* its budget in each thread that works for it ([`Budget::install`]); storages, lists and text that are
//! made meanwhile are charged to it and credit it when they are freed, wherever that happens. Without an installed budget,
//! or with one that has no limit of memory, nothing is counted. Work that loops long asks [`check`] now and then, or
//! [`is_stopped`] where it cannot fail and its result is thrown away afterwards.

use super::Limits;
use crate::diag::{Diagnostic, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::time::Instant;

/// Why work must end.
const CANCELLED: u8 = 1;
const LATE: u8 = 2;
const FULL: u8 = 3;

/// What one run may still use. Shared by all tasks of the run.
#[derive(Debug, Default)]
pub struct Budget {
    limits: Limits,
    steps: AtomicU64,
    deadline: Option<Instant>,
    live: AtomicU64,
    /// 0 while work may go on, else why it must end.
    stop: AtomicU8,
}

/// Whether the process as a whole has grown to its memory limit.
static PRESSED: AtomicBool = AtomicBool::new(false);

/// Says whether the process as a whole has grown to its memory limit, charged or not: work with a limit of memory then ends
/// at its next check. For the program that owns the process and watches it.
pub fn press(pressed: bool) {
    PRESSED.store(pressed, Ordering::Relaxed);
}

thread_local! {
    static CURRENT: RefCell<Option<Arc<Budget>>> = const { RefCell::new(None) };
}

impl Budget {
    /// A budget with these limits; its time begins now.
    pub fn new(limits: Limits) -> Budget {
        // A time beyond what the clock can express is no limit.
        let deadline = limits.time.and_then(|time| Instant::now().checked_add(time));
        Budget { limits, deadline, ..Budget::default() }
    }

    /// What it was made with.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Makes it this thread's budget until the result is dropped.
    pub fn install(self: &Arc<Self>) -> Installed {
        install(Some(Arc::clone(self)))
    }

    /// Ends the work that it pays for: the next check fails.
    pub fn cancel(&self) {
        let _ = self.stop.compare_exchange(0, CANCELLED, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Bytes that are charged now.
    pub fn live_bytes(&self) -> u64 {
        self.live.load(Ordering::Relaxed)
    }

    /// Takes up to `wanted` steps, at least one. Fails where work must end.
    pub fn take_steps(&self, wanted: u32) -> Result<u32> {
        self.check()?;
        let Some(limit) = self.limits.steps else { return Ok(wanted) };
        let before = self.steps.fetch_add(u64::from(wanted), Ordering::Relaxed);
        let given = limit.saturating_sub(before).min(u64::from(wanted)) as u32;
        self.give_back_steps(wanted - given);
        if given == 0 {
            return Err(exceeded(format!("the limit of {limit} steps was reached"), "--max-steps"));
        }
        Ok(given)
    }

    /// Gives back steps that were taken and not used.
    pub fn give_back_steps(&self, unused: u32) {
        if self.limits.steps.is_some() {
            self.steps.fetch_sub(u64::from(unused), Ordering::Relaxed);
        }
    }

    /// Whether work must end; looks at the clock.
    pub fn is_stopped(&self) -> bool {
        if self.stop.load(Ordering::Relaxed) != 0 {
            return true;
        }
        if self.limits.bytes.is_some() && PRESSED.load(Ordering::Relaxed) {
            let _ = self.stop.compare_exchange(0, FULL, Ordering::Relaxed, Ordering::Relaxed);
            return true;
        }
        match self.deadline {
            Some(end) if Instant::now() >= end => {
                let _ = self.stop.compare_exchange(0, LATE, Ordering::Relaxed, Ordering::Relaxed);
                true
            }
            _ => false,
        }
    }

    /// Fails, with the limit's name, where work must end.
    pub fn check(&self) -> Result<()> {
        if self.is_stopped() { Err(self.reason()) } else { Ok(()) }
    }

    fn reason(&self) -> Diagnostic {
        match self.stop.load(Ordering::Relaxed) {
            CANCELLED => Diagnostic::new(ErrorKind::Limit, "the run was cancelled"),
            LATE => {
                let seconds = self.limits.time.map_or(0.0, |time| time.as_secs_f64());
                exceeded(format!("the time limit of {seconds} s was reached"), "--timeout")
            }
            _ => self.too_much(0),
        }
    }

    fn too_much(&self, more: u64) -> Diagnostic {
        let (limit, live) = (self.limits.bytes.unwrap_or(u64::MAX), self.live_bytes());
        let message = match more {
            0 => format!("the memory limit of {} was reached", bytes_text(limit)),
            _ => format!(
                "the memory limit of {} was reached: {} are in use and {} more are asked for",
                bytes_text(limit),
                bytes_text(live),
                bytes_text(more)
            ),
        };
        exceeded(message, "--max-memory")
    }

    /// Takes bytes; false, with nothing taken, where they are too many.
    fn take(&self, bytes: u64) -> bool {
        let Some(max) = self.limits.bytes else { return true };
        let before = self.live.fetch_add(bytes, Ordering::Relaxed);
        if before.saturating_add(bytes) > max {
            self.live.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }
}

/// An error that says which limit was reached; `option` is the command line's name for it.
pub fn exceeded(message: impl Into<String>, option: &str) -> Diagnostic {
    Diagnostic::new(ErrorKind::Limit, message).hint(format!("{option} sets it"))
}

/// A number of bytes in the unit that fits.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["bytes", "KiB", "MiB", "GiB", "TiB"];
    let mut unit = 0;
    let mut scaled = bytes as f64;
    while scaled >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} bytes"),
        _ => format!("{:.1} {}", scaled, UNITS[unit]),
    }
}

/// While it lives, its budget is the thread's; then the former one is again.
#[must_use = "the budget is installed as long as this lives"]
pub struct Installed(Option<Arc<Budget>>);

impl Drop for Installed {
    fn drop(&mut self) {
        let former = self.0.take();
        CURRENT.with(|current| *current.borrow_mut() = former);
    }
}

/// Makes a budget, or none, this thread's: for threads that work for another one.
pub fn install(budget: Option<Arc<Budget>>) -> Installed {
    Installed(CURRENT.with(|current| std::mem::replace(&mut *current.borrow_mut(), budget)))
}

/// This thread's budget.
pub fn current() -> Option<Arc<Budget>> {
    CURRENT.with(|current| current.borrow().clone())
}

/// Steps that compiled loops run between two looks at the budget.
pub const STEPS_AT_ONCE: u64 = 1 << 16;

thread_local! {
    /// Steps that [`take_all_steps`] took on this thread.
    static TAKEN: Cell<u64> = const { Cell::new(0) };
}

/// Runs work that may be undone: with its result comes how many steps it took by [`take_all_steps`].
pub fn steps_of<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = TAKEN.get();
    let result = work();
    (result, TAKEN.get().wrapping_sub(before))
}

/// Gives back steps of this thread's budget whose work was undone.
pub fn give_back_all_steps(steps: u64) {
    if let Some(budget) = current().filter(|budget| budget.limits.steps.is_some()) {
        budget.steps.fetch_sub(steps, Ordering::Relaxed);
    }
}

/// Takes steps that were run from this thread's budget, if it has one. Fails where its work must end.
pub fn take_all_steps(steps: u64) -> Result<()> {
    let Some(budget) = current() else { return Ok(()) };
    TAKEN.set(TAKEN.get().wrapping_add(steps));
    let mut left = steps;
    while left > 0 {
        left -= u64::from(budget.take_steps(left.min(u64::from(u32::MAX)) as u32)?);
    }
    budget.check()
}

/// Fails where this thread's work must end: cancelled, out of time, or out of memory.
pub fn check() -> Result<()> {
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), |budget| budget.check()))
}

/// Whether this thread's work must end. Loops that cannot fail leave early then; whoever called them asks [`check`].
pub fn is_stopped() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(|budget| budget.is_stopped()))
}

/// How many more bytes this thread's budget allows.
pub fn room() -> usize {
    let Some(budget) = counting() else { return usize::MAX };
    let left = budget.limits.bytes.map(|max| max.saturating_sub(budget.live_bytes()));
    left.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX)
}

/// Fails if so many more bytes would exceed the memory limit. For work that is about to allocate much in one step.
pub fn expect_room(bytes: usize) -> Result<()> {
    CURRENT.with(|current| match current.borrow().as_ref() {
        Some(budget) => {
            if budget.limits.bytes.is_some() {
                budget.check()?;
            }
            let live = budget.live.load(Ordering::Relaxed);
            match budget.limits.bytes {
                Some(max) if live.saturating_add(bytes as u64) > max => Err(budget.too_much(bytes as u64)),
                _ => Ok(()),
            }
        }
        None => Ok(()),
    })
}

/// Bytes that are charged to a budget; dropping credits them.
#[derive(Debug, Default)]
pub struct Charge {
    budget: Option<Arc<Budget>>,
    bytes: u64,
}

impl Charge {
    /// Charges bytes to this thread's budget. Fails where the memory limit is exceeded.
    pub fn new(bytes: usize) -> Result<Charge> {
        let mut charge = Charge { budget: counting(), bytes: 0 };
        charge.resize(bytes)?;
        Ok(charge)
    }

    /// The same for memory that is taken already: where the limit is exceeded, the next check fails.
    pub fn taken(bytes: usize) -> Charge {
        let mut charge = Charge { budget: counting(), bytes: 0 };
        charge.follow(bytes);
        charge
    }

    /// Charges another number of bytes from now on. Fails, with nothing changed, where the memory limit is exceeded.
    pub fn resize(&mut self, bytes: usize) -> Result<()> {
        // What was made before the run and grows in it is the run's from then on.
        if self.budget.is_none() {
            self.budget = counting();
        }
        let Some(budget) = &self.budget else { return Ok(()) };
        let bytes = bytes as u64;
        match bytes.checked_sub(self.bytes) {
            Some(more) if !budget.take(more) => return Err(budget.too_much(more)),
            Some(_) => {}
            None => _ = budget.live.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        }
        self.bytes = bytes;
        Ok(())
    }

    /// The same for memory that is taken already: where the limit is exceeded, the next check fails.
    pub fn follow(&mut self, bytes: usize) {
        // What was made before the run and grows in it is the run's from then on.
        if self.budget.is_none() {
            self.budget = counting();
        }
        let Some(budget) = &self.budget else { return };
        let bytes = bytes as u64;
        let before = match bytes.checked_sub(self.bytes) {
            Some(more) => budget.live.fetch_add(more, Ordering::Relaxed).saturating_add(more),
            None => budget.live.fetch_sub(self.bytes - bytes, Ordering::Relaxed),
        };
        self.bytes = bytes;
        if budget.limits.bytes.is_some_and(|max| before > max) {
            let _ = budget.stop.compare_exchange(0, FULL, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

/// This thread's budget, if it counts memory.
fn counting() -> Option<Arc<Budget>> {
    let limited = |current: &RefCell<Option<Arc<Budget>>>| {
        current.borrow().as_ref().filter(|budget| budget.limits.bytes.is_some()).cloned()
    };
    // A thread that is ending has none.
    CURRENT.try_with(limited).ok().flatten()
}

impl Drop for Charge {
    fn drop(&mut self) {
        if let Some(budget) = &self.budget {
            budget.live.fetch_sub(self.bytes, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn bytes(bytes: u64) -> Budget {
        Budget::new(Limits { bytes: Some(bytes), ..Limits::default() })
    }

    #[test]
    fn what_is_freed_is_credited() {
        let budget = Arc::new(bytes(100));
        let _installed = budget.install();
        let mut first = Charge::new(60).expect("there is room");
        let error = Charge::new(60).expect_err("too much");
        assert!(error.message().contains("60 bytes more are asked for"), "{error}");
        first.resize(10).expect("smaller");
        let second = Charge::new(60).expect("there is room again");
        assert_eq!(budget.live_bytes(), 70);
        drop((first, second));
        assert_eq!(budget.live_bytes(), 0);
    }

    #[test]
    fn memory_that_is_taken_already_ends_the_run_at_the_next_check() {
        let budget = Arc::new(bytes(100));
        let _installed = budget.install();
        let charge = Charge::taken(101);
        assert!(check().expect_err("full").message().contains("memory limit of 100 bytes"));
        drop(charge);
        assert_eq!(budget.live_bytes(), 0);
    }

    #[test]
    fn time_and_cancelling_end_it() {
        let late = Budget::new(Limits { time: Some(Duration::ZERO), ..Limits::default() });
        assert!(late.check().expect_err("late").message().contains("time limit of 0 s"));
        let budget = Budget::default();
        budget.check().expect("goes on");
        budget.cancel();
        assert!(budget.check().expect_err("cancelled").message().contains("cancelled"));
    }

    #[test]
    fn budgets_nest() {
        let (outer, inner) = (bytes(10), bytes(20));
        let (outer, inner) = (Arc::new(outer), Arc::new(inner));
        let _outer = outer.install();
        {
            let _inner = inner.install();
            let _charge = Charge::new(15).expect("fits the inner one");
            assert_eq!((outer.live_bytes(), inner.live_bytes()), (0, 15));
        }
        assert!(Charge::new(15).is_err());
        assert!(expect_room(11).is_err() && expect_room(10).is_ok());
    }
}
