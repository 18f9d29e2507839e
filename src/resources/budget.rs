//! Memory, time and steps that one run may use, and a way to stop it from outside.
//!
//! A run *installs* its budget in each thread that works for it ([`Budget::install`]); storages, lists and text that are
//! made meanwhile are charged to it and credit it when they are freed, wherever that happens. Without an installed budget,
//! or with one that has no limit of memory, nothing is counted. Work that loops long asks [`check`] now and then, or
//! [`is_stopped`] where it cannot fail and its result is thrown away afterwards; where it holds nothing that another thread may
//! wait for it asks [`pause`], which lets the host end it too.
//!
//! Budgets nest ([`Budget::within`]): what is charged to one is charged to the one around it, and the first that is used up
//! ends the work.

use super::host;
use super::limits::{self, Limits};
use crate::diag::{Diagnostic, ErrorKind, Result};
use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

pub use super::limits::exceeded;

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
    printed: AtomicU64,
    warned: AtomicUsize,
    /// 0 while work may go on, else why it must end.
    stop: AtomicU8,
    /// Nothing is charged to it by threads any more; see [`super::scope`].
    ended: AtomicBool,
    /// What is charged besides. Where it has a limit, this one has one that is as low.
    outer: Option<Arc<Budget>>,
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
        // A time beyond what the clock can express means no limit.
        let deadline = limits.time.and_then(|time| Instant::now().checked_add(time));
        Budget { limits, deadline, ..Budget::default() }
    }

    /// A budget with these limits within another one: both hold.
    pub fn within(limits: Limits, outer: Option<Arc<Budget>>) -> Budget {
        let mut budget = Budget::new(limits);
        if let Some(outer) = outer {
            budget.limits = limits.both(&outer.limits);
            // The earlier end counts.
            if outer.deadline.is_some_and(|end| budget.deadline.is_none_or(|own| end < own)) {
                (budget.deadline, budget.limits.time) = (outer.deadline, outer.limits.time);
            }
            budget.outer = Some(outer);
        }
        budget
    }

    /// What it was made with, and what holds around it.
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
        self.draw_steps(wanted)
    }

    fn draw_steps(&self, wanted: u32) -> Result<u32> {
        let Some(limit) = self.limits.steps else { return Ok(wanted) };
        let before = self.steps.fetch_add(u64::from(wanted), Ordering::Relaxed);
        let mut given = limit.saturating_sub(before).min(u64::from(wanted)) as u32;
        let drawn = match &self.outer {
            _ if given == 0 => {
                Err(exceeded(format!("the limit of {limit} steps was reached"), "--max-steps"))
            }
            Some(outer) => outer.draw_steps(given),
            None => Ok(given),
        };
        given = *drawn.as_ref().unwrap_or(&0);
        self.steps.fetch_sub(u64::from(wanted - given), Ordering::Relaxed);
        drawn
    }

    /// Gives back steps that were taken and not used.
    pub fn give_back_steps(&self, unused: u32) {
        self.give_back(u64::from(unused));
    }

    fn give_back(&self, steps: u64) {
        for budget in self.chain().filter(|budget| budget.limits.steps.is_some()) {
            budget.steps.fetch_sub(steps, Ordering::Relaxed);
        }
    }

    /// Counts bytes that the program is about to print. Fails where they are too many.
    pub fn take_output(&self, bytes: u64) -> Result<()> {
        for budget in self.chain() {
            let Some(limit) = budget.limits.output else { break };
            let before = budget.printed.fetch_add(bytes, Ordering::Relaxed);
            if before.saturating_add(bytes) > limit {
                return Err(limits::too_much_output(limit));
            }
        }
        Ok(())
    }

    /// Counts a warning that the program is about to give. Fails where there are too many.
    pub fn take_warning(&self) -> Result<()> {
        for budget in self.chain() {
            let Some(limit) = budget.limits.warnings else { break };
            if budget.warned.fetch_add(1, Ordering::Relaxed) >= limit {
                return Err(limits::too_many_warnings(limit));
            }
        }
        Ok(())
    }

    /// This one and those around it.
    fn chain(&self) -> impl Iterator<Item = &Budget> {
        std::iter::successors(Some(self), |budget| budget.outer.as_deref())
    }

    /// Whether work must end; checks the clock.
    pub fn is_stopped(&self) -> bool {
        self.chain().any(Budget::is_used_up)
    }

    fn is_used_up(&self) -> bool {
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
        match self.chain().find(|budget| budget.is_used_up()) {
            Some(budget) => Err(budget.reason()),
            None => Ok(()),
        }
    }

    /// The same where the thread holds nothing that another one may wait for: its host is asked, too.
    pub fn pause(&self) -> Result<()> {
        self.ask_host()?;
        self.check()
    }

    /// Asks the host alone: for work that was checked just now.
    #[inline]
    pub fn ask_host(&self) -> Result<()> {
        if !host::says_stop() {
            return Ok(());
        }
        self.cancel();
        self.check()
    }

    fn reason(&self) -> Diagnostic {
        match self.stop.load(Ordering::Relaxed) {
            CANCELLED => Diagnostic::new(ErrorKind::Limit, "the run was cancelled").limit("cancel"),
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

    /// Takes bytes. Fails, with nothing taken, where they are too many.
    fn take(&self, bytes: u64) -> Result<()> {
        let Some(max) = self.limits.bytes else { return Ok(()) };
        let before = self.live.fetch_add(bytes, Ordering::Relaxed);
        let taken = match &self.outer {
            _ if before.saturating_add(bytes) > max => Err(None),
            Some(outer) => outer.take(bytes).map_err(Some),
            None => Ok(()),
        };
        taken.map_err(|error| {
            self.live.fetch_sub(bytes, Ordering::Relaxed);
            error.unwrap_or_else(|| self.too_much(bytes))
        })
    }

    /// Takes bytes that are there already: where they are too many, its work must end. What is around it may go on with other work.
    fn follow(&self, bytes: u64) {
        let mut full = false;
        for budget in self.chain() {
            let Some(max) = budget.limits.bytes else { break };
            let before = budget.live.fetch_add(bytes, Ordering::Relaxed);
            full |= before.saturating_add(bytes) > max;
        }
        if full {
            let _ = self.stop.compare_exchange(0, FULL, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    fn credit(&self, bytes: u64) {
        for budget in self.chain().take_while(|budget| budget.limits.bytes.is_some()) {
            budget.live.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Fails if this many more bytes would exceed the limit.
    fn expect(&self, bytes: u64) -> Result<()> {
        for budget in self.chain() {
            let Some(max) = budget.limits.bytes else { break };
            if budget.live_bytes().saturating_add(bytes) > max {
                return Err(budget.too_much(bytes));
            }
        }
        Ok(())
    }
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
    CURRENT.with(|current| {
        let mut current = current.borrow_mut();
        // One that another thread ended, or that was ended before one within it.
        while let Some(budget) = current.as_ref().filter(|budget| budget.ended.load(Ordering::Relaxed)) {
            *current = budget.outer.clone();
        }
        current.clone()
    })
}

/// Makes a budget this thread's until [`end`] ends it.
pub(super) fn begin(budget: Arc<Budget>) {
    CURRENT.with(|current| *current.borrow_mut() = Some(budget));
}

/// Ends a budget: no thread charges to it from its next check on.
pub(super) fn end(budget: &Budget) {
    budget.ended.store(true, Ordering::Relaxed);
    drop(current());
}

/// Steps that compiled loops run between two checks of the budget.
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
    if let Some(budget) = current() {
        budget.give_back(steps);
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
    if host::is_at_rest() { budget.pause() } else { budget.check() }
}

/// Fails where this thread's work must end: cancelled, out of time, or out of memory.
pub fn check() -> Result<()> {
    CURRENT.with(|current| current.borrow().as_ref().map_or(Ok(()), |budget| budget.check()))
}

/// The same where the thread holds nothing that another one may wait for: its host is asked, too.
pub fn pause() -> Result<()> {
    // The host may do anything meanwhile, so nothing is borrowed.
    current().map_or(Ok(()), |budget| budget.pause())
}

/// Whether this thread's work must end. Loops that cannot fail leave early then; their callers call [`check`].
pub fn is_stopped() -> bool {
    CURRENT.with(|current| current.borrow().as_ref().is_some_and(|budget| budget.is_stopped()))
}

/// How many more bytes this thread's budget allows.
pub fn room() -> usize {
    let Some(budget) = counting() else { return usize::MAX };
    let left = |budget: &Budget| budget.limits.bytes.map(|max| max.saturating_sub(budget.live_bytes()));
    let least = budget.chain().map_while(left).min();
    least.and_then(|left| usize::try_from(left).ok()).unwrap_or(usize::MAX)
}

/// Fails if this many more bytes would exceed the memory limit. For work that is about to allocate much in one step.
pub fn expect_room(bytes: usize) -> Result<()> {
    CURRENT.with(|current| match current.borrow().as_ref() {
        Some(budget) if budget.limits.bytes.is_some() => {
            budget.check()?;
            budget.expect(bytes as u64)
        }
        _ => Ok(()),
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
            Some(more) => budget.take(more)?,
            None => budget.credit(self.bytes - bytes),
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
        match bytes.checked_sub(self.bytes) {
            Some(more) => budget.follow(more),
            None => budget.credit(self.bytes - bytes),
        }
        self.bytes = bytes;
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
            budget.credit(self.bytes);
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
    fn a_budget_within_another_charges_both() {
        let some = |steps, bytes| Limits { steps: Some(steps), bytes: Some(bytes), ..Limits::default() };
        let outer = Arc::new(Budget::new(some(10, 100)));
        let inner = Arc::new(Budget::within(some(8, 1000), Some(Arc::clone(&outer))));
        let _installed = inner.install();
        let charge = Charge::new(60).expect("fits both");
        assert_eq!((outer.live_bytes(), inner.live_bytes(), room()), (60, 60, 40));
        let error = Charge::new(60).expect_err("too much for the outer one");
        assert!(error.message().contains("100 bytes was reached: 60 bytes are in use"), "{error}");
        assert_eq!(error.report().limit, Some("memory"));
        drop(charge);
        assert_eq!((outer.live_bytes(), inner.live_bytes()), (0, 0));
        assert_eq!(outer.take_steps(5).ok(), Some(5));
        assert_eq!(inner.take_steps(8).ok(), Some(5));
        inner.give_back_steps(1);
        assert_eq!(inner.take_steps(8).ok(), Some(1));
        assert_eq!(inner.take_steps(1).expect_err("none left").report().limit, Some("steps"));
        outer.cancel();
        assert_eq!(inner.check().expect_err("cancelled around it").report().limit, Some("cancel"));
        let late = Limits { time: Some(Duration::ZERO), ..Limits::default() };
        let late = Budget::within(Limits::default(), Some(Arc::new(Budget::new(late))));
        assert_eq!(late.check().expect_err("late").report().limit, Some("seconds"));
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
