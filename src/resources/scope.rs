//! Limits over whatever a thread does from a moment on until another one: for hosts whose calls come one by one and are not
//! closures (Python's `with`, C).
//!
//! Scopes nest, and both hold. Which run a call belongs to is the host's matter: it works under [`budget::current`].

use super::budget::{self, Budget};
use super::limits::Limits;
use parking_lot::Mutex;
use std::sync::{Arc, Weak};

/// Limits that hold for what a thread does, until they are ended.
#[derive(Debug)]
pub struct Scope(Arc<Budget>);

impl Scope {
    /// Bounds what this thread does from now on, besides what bounds it already.
    pub fn begin(limits: Limits) -> Scope {
        let budget = Arc::new(Budget::within(limits, budget::current()));
        budget::begin(Arc::clone(&budget));
        Scope(budget)
    }

    /// Ends the work that it bounds, from any thread: its next check fails.
    pub fn cancel(&self) {
        self.0.cancel();
    }
}

impl Drop for Scope {
    /// Work that goes on, and values that live on, stay charged to it.
    fn drop(&mut self) {
        budget::end(&self.0);
    }
}

/// Limits with a switch: whatever runs under them, now or later, can be ended from any thread.
#[derive(Debug, Default)]
pub struct Switch(Mutex<Running>);

#[derive(Debug, Default)]
struct Running {
    cancelled: bool,
    scopes: Vec<Weak<Budget>>,
}

impl Switch {
    /// Begins a scope that the switch ends; at once, where it was used already.
    pub fn begin(&self, limits: Limits) -> Scope {
        let scope = Scope::begin(limits);
        let mut running = self.0.lock();
        if running.cancelled {
            scope.cancel();
        }
        running.scopes.retain(|budget| budget.strong_count() > 0);
        running.scopes.push(Arc::downgrade(&scope.0));
        scope
    }

    /// Ends what runs under it, and whatever will.
    pub fn cancel(&self) {
        let mut running = self.0.lock();
        running.cancelled = true;
        running.scopes.iter().filter_map(Weak::upgrade).for_each(|budget| budget.cancel());
    }

    /// Whether it was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.lock().cancelled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn steps(steps: u64) -> Limits {
        Limits { steps: Some(steps), ..Limits::default() }
    }

    fn limit() -> Option<u64> {
        budget::current()?.limits().steps
    }

    #[test]
    fn scopes_nest_and_end_in_any_order() {
        assert_eq!(limit(), None);
        let outer = Scope::begin(steps(10));
        let inner = Scope::begin(steps(20));
        assert_eq!(limit(), Some(10));
        drop(outer);
        assert_eq!(limit(), Some(10), "the inner one was begun within it");
        drop(inner);
        assert_eq!(limit(), None);
    }

    #[test]
    fn another_thread_may_end_one() {
        let scope = Scope::begin(steps(10));
        std::thread::spawn(move || drop(scope)).join().expect("ends");
        assert_eq!(limit(), None);
    }

    #[test]
    fn a_switch_ends_what_runs_and_what_will() {
        let switch = Switch::default();
        let scope = switch.begin(Limits::default());
        budget::check().expect("goes on");
        switch.cancel();
        assert_eq!(budget::check().expect_err("cancelled").report().limit, Some("cancel"));
        drop(scope);
        budget::check().expect("nothing bounds it");
        let _again = switch.begin(Limits::default());
        assert!(budget::check().is_err());
    }
}
