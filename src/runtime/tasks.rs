//! Forked work. A future carries its work; a thread for tasks takes it if one is idle, else the waiter does.

use crate::diag::{Diagnostic, Result};
use crate::resources::tasks;
use crate::value::Future;
use std::cell::Cell;

/// Maximum number of programs that run nested on one thread: each waits for the next. The stack grows with them.
const MAX_NESTED: usize = 1_000;

thread_local! {
    static RUNNING: Cell<usize> = const { Cell::new(0) };
}

/// While it lives, this thread runs a program.
pub(super) struct Running;

impl Running {
    pub(super) fn enter() -> Result<Running> {
        let depth = RUNNING.with(Cell::get);
        if depth >= MAX_NESTED {
            return Err(Diagnostic::raised(
                "RecursionError",
                format!("{MAX_NESTED} programs wait for each other on one thread"),
            ));
        }
        RUNNING.with(|n| n.set(depth + 1));
        Ok(Running)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.with(|n| n.set(n.get().saturating_sub(1)));
    }
}

/// Offers a future's work to the threads for tasks.
pub(super) fn start(future: &Future) {
    let future = future.clone();
    tasks::offer(Box::new(move || future.run()));
}
