//! Forked work on the thread pool. A future carries its work; a pool thread takes it if one is idle, else
//! whoever waits does. A thread that runs a program already never begins another one on top of it (a pool
//! thread steals work while it waits inside a kernel), so that no task can wait for one beneath itself.

use crate::diag::{Diagnostic, Result};
use crate::value::Future;
use parking_lot::Mutex;
use std::cell::Cell;

/// So many unbegun tasks may stand; further ones run at once. It bounds how deep waiting can nest.
const MAX_UNBEGUN: usize = 24;

/// So many programs may run on top of each other on one thread: each waits for the next.
const MAX_NESTED: usize = 48;

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

/// Tasks that were started and may not have ended.
#[derive(Default)]
pub(super) struct Tasks {
    open: Mutex<Vec<Future>>,
}

impl Tasks {
    /// Offers a future's work to the pool.
    pub(super) fn start(&self, future: &Future) {
        let crowded = {
            let mut open = self.open.lock();
            open.retain(|f| f.poll().is_none());
            open.push(future.clone());
            open.len() > MAX_UNBEGUN
        };
        if crowded {
            future.run();
            return;
        }
        let future = future.clone();
        rayon::spawn(move || {
            if RUNNING.with(Cell::get) == 0 {
                future.run();
            }
        });
    }

    /// Runs or awaits what was started and nobody waited for, so that its effects have happened.
    pub(super) fn finish(&self) {
        loop {
            let Some(future) = self.open.lock().pop() else { return };
            let _ = future.wait();
        }
    }
}
