//! Futures: a value that another task is computing.

use super::Value;
use crate::diag::Result;
use crate::ir::Type;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;

/// A value to come. Clones wait for the same one.
#[derive(Clone)]
pub struct Future(Arc<FutureInner>);

struct FutureInner {
    element: Type,
    state: Mutex<Option<Result<Value>>>,
    done: Condvar,
}

impl Future {
    /// A future nobody has completed yet.
    pub fn pending(element: Type) -> Future {
        Future(Arc::new(FutureInner { element, state: Mutex::new(None), done: Condvar::new() }))
    }

    /// Type of the value to come.
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// Completes it; only the first completion counts.
    pub fn complete(&self, result: Result<Value>) {
        let mut state = self.0.state.lock();
        if state.is_none() {
            *state = Some(result);
            self.0.done.notify_all();
        }
    }

    /// The result, if it is there.
    pub fn poll(&self) -> Option<Result<Value>> {
        self.0.state.lock().clone()
    }

    /// Blocks until the result is there. A worker of the thread pool must rather work meanwhile: see the runtime.
    pub fn block(&self) -> Result<Value> {
        let mut state = self.0.state.lock();
        loop {
            if let Some(result) = state.as_ref() {
                return result.clone();
            }
            self.0.done.wait(&mut state);
        }
    }

    /// Whether two handles are the same future.
    pub fn same(&self, other: &Future) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Future {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Future({})", if self.poll().is_some() { "done" } else { "pending" })
    }
}
