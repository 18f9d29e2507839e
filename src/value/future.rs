//! Futures: a value that another task is computing, or that whoever waits for it computes.
//!
//! A task that panics completes its future with an error, so nobody waits for it in vain. Each task knows what it waits for;
//! a task that would wait for itself, through others or not, gets an error instead.

use super::{Value, nested};
use crate::diag::{Diagnostic, Result, panics};
use crate::ir::Type;
use crate::resources::{Charge, budget};
use parking_lot::{Condvar, Mutex};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

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
    /// What the task of this future waits for. Written under [`WAITING`].
    waits_for: Mutex<Option<Future>>,
    _charge: Charge,
}

impl Drop for FutureInner {
    fn drop(&mut self) {
        if let Some(Ok(value)) = self.state.get_mut().take() {
            nested::release(vec![value]);
        }
    }
}

/// Bytes that a future and a task's arguments take, about.
const FUTURE_BYTES: usize = 512;

/// Held while somebody begins to wait, so that two who begin at once see each other.
static WAITING: Mutex<()> = Mutex::new(());

thread_local! {
    /// The tasks that this thread runs, the innermost last: it runs one on top of another that waits for it.
    static RUNNING: RefCell<Vec<Future>> = const { RefCell::new(Vec::new()) };
}

/// How long a waiting thread sleeps before it asks whether its own work must end.
const NAP: Duration = Duration::from_millis(20);
/// Room on the stack that a task begins with; more is made where there is less.
const STACK_BYTES: usize = 4 << 20;
/// Less room than this is too little to begin a task.
const RED_ZONE: usize = 512 << 10;

impl Future {
    /// A future nobody has completed yet.
    pub fn pending(element: Type) -> Future {
        Self::new(element, None, None)
    }

    /// A future whose value is there already.
    pub fn ready(element: Type, value: Value) -> Future {
        Self::new(element, None, Some(Ok(value)))
    }

    /// A future with the work that computes it. Whoever comes first runs it: a thread for tasks through
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
            waits_for: Mutex::default(),
            _charge: Charge::taken(FUTURE_BYTES),
        }))
    }

    /// Type of the value to come.
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// Runs the work here if nobody has begun it. A panic becomes the future's error.
    pub fn run(&self) {
        let task = self.0.task.lock().take();
        let Some(task) = task else { return };
        RUNNING.with(|running| running.borrow_mut().push(self.clone()));
        let caught = panics::catch("a forked task", || stacker::maybe_grow(RED_ZONE, STACK_BYTES, task));
        RUNNING.with(|running| running.borrow_mut().pop());
        self.complete(caught.and_then(|result| result));
    }

    /// Completes it with an error if its work has not begun; the work is dropped.
    pub fn give_up(&self, error: Diagnostic) {
        let task = self.0.task.lock().take();
        if task.is_some() {
            self.complete(Err(error));
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

    /// Whether the result is there.
    pub fn is_done(&self) -> bool {
        self.0.state.lock().is_some()
    }

    /// The result: runs the work here if nobody has begun it, else blocks until it is there. Fails where the caller's run
    /// must end, and where the caller's task is one that this one waits for.
    pub fn wait(&self) -> Result<Value> {
        if let Some(result) = self.poll() {
            return result;
        }
        let task = RUNNING.with(|running| running.borrow().last().cloned());
        let Some(task) = task else { return self.await_result() };
        task.begin_waiting(self)?;
        let result = self.await_result();
        *task.0.waits_for.lock() = None;
        result
    }

    fn await_result(&self) -> Result<Value> {
        self.run();
        let mut state = self.0.state.lock();
        loop {
            if let Some(result) = state.as_ref() {
                return result.clone();
            }
            let late = self.0.done.wait_for(&mut state, NAP).timed_out();
            if late && state.is_none() {
                budget::check()?;
            }
        }
    }

    /// Notes that this one's task waits for `other`. Fails where `other` waits for this one.
    fn begin_waiting(&self, other: &Future) -> Result<()> {
        let _alone = WAITING.lock();
        let mut next = Some(other.clone());
        while let Some(future) = next {
            if future.same(self) {
                return Err(Diagnostic::runtime("a task waits for itself")
                    .hint("the future was given to its own task, or tasks wait for each other in a circle"));
            }
            next = future.0.waits_for.lock().clone();
        }
        *self.0.waits_for.lock() = Some(other.clone());
        Ok(())
    }

    /// Whether two handles are the same future.
    pub fn same(&self, other: &Future) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Future {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Future({})", if self.is_done() { "done" } else { "pending" })
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

    #[test]
    fn a_panic_is_the_error_of_everybody_who_waits() {
        let future = Future::with_task(Type::int(), Box::new(|| panic!("on purpose")));
        for _ in 0..2 {
            let error = future.wait().expect_err("it panics");
            assert!(error.message().contains("a forked task panicked: on purpose"), "{error}");
        }
    }

    /// Two tasks that wait for each other, begun by a third thread and by the one that waits.
    #[test]
    fn a_circle_of_tasks_is_an_error() {
        let first: Arc<Mutex<Option<Future>>> = Arc::default();
        let seen = Arc::clone(&first);
        let wait_for_first = move || match seen.lock().clone() {
            Some(future) => future.wait(),
            None => Ok(Value::None),
        };
        let second = Future::with_task(Type::int(), Box::new(wait_for_first));
        let other = second.clone();
        let future = Future::with_task(Type::int(), Box::new(move || other.wait()));
        *first.lock() = Some(future.clone());
        let ran = second.clone();
        let thread = std::thread::spawn(move || ran.run());
        let error = future.wait().expect_err("a circle");
        assert!(error.message().contains("a task waits for itself"), "{error}");
        thread.join().expect("ends");
        assert!(second.wait().is_err());
    }

    #[test]
    fn a_chain_of_tasks_needs_no_deep_stack() {
        let mut future = Future::ready(Type::int(), Value::Int(1));
        for _ in 0..900 {
            let inner = future.clone();
            future = Future::with_task(Type::int(), Box::new(move || inner.wait()));
        }
        assert_eq!(future.wait().and_then(|v| v.to_int()).ok(), Some(1));
    }
}
