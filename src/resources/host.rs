//! What the host of the library is asked while its thread works: whether to go on. A host that reads signals (Python, for
//! Ctrl-C) can do so only while it has the thread.
//!
//! The host may run anything when it is asked, and may wait for locks of its own: it is asked only where the thread holds
//! nothing that another one may wait for ([`super::budget::pause`]).

use std::cell::Cell;
use std::time::{Duration, Instant};

/// Time between two questions.
const EVERY: Duration = Duration::from_millis(50);

#[derive(Clone, Copy)]
struct Host {
    must_end: fn() -> bool,
    /// None before the first question: the clock is read when there is one.
    next: Option<Instant>,
}

thread_local! {
    static HOST: Cell<Option<Host>> = const { Cell::new(None) };
    static AT_REST: Cell<bool> = const { Cell::new(false) };
}

/// While it lives, this host is asked; then the previous one.
#[must_use = "the host is asked as long as this lives"]
pub struct Asked(Option<Host>);

impl Drop for Asked {
    fn drop(&mut self) {
        HOST.set(self.0);
    }
}

/// Lets this thread ask, every 50 ms while it works, whether its work must end.
pub fn ask(must_end: fn() -> bool) -> Asked {
    Asked(HOST.replace(Some(Host { must_end, next: None })))
}

/// Whether the host says that work must end.
pub(super) fn says_stop() -> bool {
    let Some(host) = HOST.get() else { return false };
    let now = Instant::now();
    let Some(next) = host.next else {
        HOST.set(Some(Host { next: Some(now + EVERY), ..host }));
        return false;
    };
    if now < next {
        return false;
    }
    // What it runs now asks by itself.
    HOST.set(None);
    let stop = (host.must_end)();
    HOST.set(Some(Host { next: Some(Instant::now() + EVERY), ..host }));
    stop
}

/// While it lives, loops that run compiled ask the host too.
#[must_use = "the thread is at rest as long as this lives"]
pub struct AtRest(bool);

impl Drop for AtRest {
    fn drop(&mut self) {
        AT_REST.set(self.0);
    }
}

/// Says that this thread holds nothing that another one may wait for, until the result is dropped.
pub fn at_rest() -> AtRest {
    AtRest(AT_REST.replace(true))
}

pub(super) fn is_at_rest() -> bool {
    AT_REST.get()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resources::{Budget, Limits, budget};
    use std::sync::Arc;

    #[test]
    fn the_host_ends_work_at_a_pause_and_nowhere_else() {
        let budget = Arc::new(Budget::new(Limits::default()));
        let _installed = budget.install();
        let asked = ask(|| true);
        budget::pause().expect("it is not time to ask");
        std::thread::sleep(EVERY);
        budget::check().expect("no host is asked");
        budget::take_all_steps(1).expect("no host is asked");
        assert_eq!(budget::pause().expect_err("the host says so").report().limit, Some("cancel"));
        drop(asked);
        assert!(!says_stop());
    }

    #[test]
    fn compiled_loops_at_rest_ask() {
        let budget = Arc::new(Budget::new(Limits::default()));
        let _installed = budget.install();
        let _asked = ask(|| true);
        assert!(!says_stop(), "it is not time to ask");
        std::thread::sleep(EVERY);
        let rest = at_rest();
        assert!(budget::take_all_steps(1).is_err());
        drop(rest);
        assert!(!is_at_rest());
    }
}
