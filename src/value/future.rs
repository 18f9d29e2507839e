//! Futures: a value that another task is computing, or that whoever waits for it computes.

use super::Value;
use crate::diag::Result;
use crate::ir::Type;
use parking_lot::{Condvar, Mutex};
use std::fmt;
use std::sync::Arc;

/// What computes a future's value.
pub type Task = Box<dyn FnOnce() -> Result<Value> + Send>;

/// A value to come. Clones wait for the same one.
#[derive(Clone)]
pub struct Future(Arc<FutureInner>);

struct FutureInner {
    element: Type,
    /// Work that nobody has begun yet.
    task: Mutex<Option<Task>>,
    state: Mutex<Option<Result<Value>>>,
    done: Condvar,
}

impl Future {
    /// A future nobody has completed yet.
    pub fn pending(element: Type) -> Future {
        Self::new(element, None, None)
    }

    /// A future whose value is there already.
    pub fn ready(element: Type, value: Value) -> Future {
        Self::new(element, None, Some(Ok(value)))
    }

    /// A future with the work that computes it. Whoever comes first runs it: a pool thread through
    /// [`Future::run`], or the one who waits. So waiting never depends on a free thread.
    pub fn with_task(element: Type, task: Task) -> Future {
        Self::new(element, Some(task), None)
    }

    fn new(element: Type, task: Option<Task>, state: Option<Result<Value>>) -> Future {
        Future(Arc::new(FutureInner {
            element,
            task: Mutex::new(task),
            state: Mutex::new(state),
            done: Condvar::new(),
        }))
    }

    /// Type of the value to come.
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// Runs the work here if nobody has begun it.
    pub fn run(&self) {
        let task = self.0.task.lock().take();
        if let Some(task) = task {
            self.complete(task());
        }
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

    /// The result: runs the work here if nobody has begun it, else blocks until it is there.
    pub fn wait(&self) -> Result<Value> {
        self.run();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_waiter_runs_what_nobody_has_begun() {
        let future = Future::with_task(Type::int(), Box::new(|| Ok(Value::Int(7))));
        assert!(future.poll().is_none());
        assert_eq!(future.wait().and_then(|v| v.to_int()).ok(), Some(7));
    }
}
