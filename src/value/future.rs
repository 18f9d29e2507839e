//! Futures: a value that another task is computing, or that its waiter computes.
//!
//! A task that panics completes its future with an error, so that no waiter blocks forever. Each task knows what it waits for;
//! a task that would wait for itself, through others or not, gets an error instead.
//!
//! What the value is, is not known here.
//!
//! The file is also compiled against a model checker (`tests/model`), which is why all that it uses comes from its parent and from
//! `super::sync`.

use super::sync::{self, Condvar, Mutex};
use super::{Charge, Diagnostic, Result, Type, panics};
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

/// What a future may come to.
pub trait Awaited: Clone {
    /// Frees it, with what it holds, however deep.
    fn release(self);
}

/// What computes a future's value.
pub type Task<V> = Box<dyn FnOnce() -> Result<V> + Send>;

/// A value to come. Clones wait for the same one.
pub struct Future<V: Awaited>(Arc<FutureInner<V>>);

struct FutureInner<V: Awaited> {
    element: Type,
    /// Work that was not started yet.
    task: Mutex<Option<Task<V>>>,
    state: Mutex<Option<Result<V>>>,
    done: Condvar,
    waits: Arc<Waits>,
    _charge: Charge,
}

/// The task of a future as others see it that may wait for it.
#[derive(Default)]
struct Waits {
    /// What it waits for. Written under [`sync::alone`].
    on: Mutex<Option<Arc<Waits>>>,
}

impl<V: Awaited> Clone for Future<V> {
    fn clone(&self) -> Future<V> {
        Future(Arc::clone(&self.0))
    }
}

impl<V: Awaited> Drop for FutureInner<V> {
    fn drop(&mut self) {
        if let Some(Ok(value)) = self.state.get_mut().take() {
            value.release();
        }
    }
}

/// Bytes that a future and a task's arguments take, about.
const FUTURE_BYTES: usize = 512;

sync::thread_local! {
    /// The tasks that this thread runs, the innermost last: it runs one on top of another that waits for it.
    static RUNNING: RefCell<Vec<Arc<Waits>>> = const { RefCell::new(Vec::new()) };
}

/// How long a waiting thread sleeps before it asks whether its own work must end.
const NAP: Duration = Duration::from_millis(20);

impl<V: Awaited> Future<V> {
    /// A future that is not completed yet.
    pub fn pending(element: Type) -> Future<V> {
        Self::new(element, None, None)
    }

    /// A future whose value is there already.
    pub fn ready(element: Type, value: V) -> Future<V> {
        Self::new(element, None, Some(Ok(value)))
    }

    /// A future with the work that computes it. The first to arrive runs it: a thread for tasks through
    /// [`Future::run`], or the one who waits. So waiting never depends on a free thread.
    pub fn with_task(element: Type, task: Task<V>) -> Future<V> {
        Self::new(element, Some(task), None)
    }

    fn new(element: Type, task: Option<Task<V>>, state: Option<Result<V>>) -> Future<V> {
        Future(Arc::new(FutureInner {
            element,
            task: Mutex::new(task),
            state: Mutex::new(state),
            done: Condvar::new(),
            waits: Arc::default(),
            _charge: Charge::taken(FUTURE_BYTES),
        }))
    }

    /// Type of the value to come.
    pub fn element_type(&self) -> &Type {
        &self.0.element
    }

    /// Runs the work here if it was not started. A panic becomes the future's error.
    pub fn run(&self) {
        let task = self.0.task.lock().take();
        let Some(task) = task else { return };
        RUNNING.with(|running| running.borrow_mut().push(Arc::clone(&self.0.waits)));
        let caught = panics::catch("a forked task", || sync::with_room(task));
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
    pub fn complete(&self, result: Result<V>) {
        let mut state = self.0.state.lock();
        if state.is_none() {
            *state = Some(result);
            self.0.done.notify_all();
        }
    }

    /// The result, if it is there.
    pub fn poll(&self) -> Option<Result<V>> {
        self.0.state.lock().clone()
    }

    /// Whether the result is there.
    pub fn is_done(&self) -> bool {
        self.0.state.lock().is_some()
    }

    /// The result: runs the work here if it was not started, else blocks until it is there. Fails where the caller's run
    /// must end, and where the caller's task is one that this one waits for.
    pub fn wait(&self) -> Result<V> {
        if let Some(result) = self.poll() {
            return result;
        }
        let task = RUNNING.with(|running| running.borrow().last().cloned());
        let Some(task) = task else { return self.await_result() };
        task.begin(&self.0.waits)?;
        let result = self.await_result();
        *task.on.lock() = None;
        result
    }

    fn await_result(&self) -> Result<V> {
        self.run();
        loop {
            {
                let mut state = self.0.state.lock();
                if state.is_none() {
                    self.0.done.wait_for(&mut state, NAP);
                }
                if let Some(result) = state.as_ref() {
                    return result.clone();
                }
            }
            // Nothing is held: the host may read this very future meanwhile.
            sync::pause()?;
        }
    }

    /// Whether two handles are the same future.
    pub fn same(&self, other: &Future<V>) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Waits {
    /// Notes that this task waits for `other`. Fails where `other` waits for this one.
    fn begin(self: &Arc<Waits>, other: &Arc<Waits>) -> Result<()> {
        let _alone = sync::alone();
        let mut next = Some(Arc::clone(other));
        while let Some(task) = next {
            if Arc::ptr_eq(&task, self) {
                return Err(Diagnostic::runtime("a task waits for itself")
                    .hint("the future was given to its own task, or tasks wait for each other in a circle"));
            }
            next = task.on.lock().clone();
        }
        *self.on.lock() = Some(Arc::clone(other));
        Ok(())
    }
}

impl<V: Awaited> fmt::Debug for Future<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Future({})", if self.is_done() { "done" } else { "pending" })
    }
}
