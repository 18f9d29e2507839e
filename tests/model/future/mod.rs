//! Futures under the model checker: a task runs once, waiters are woken, and panics, tasks that wait for themselves and tasks
//! that wait for each other are errors of all who wait.

#[path = "../../../src/value/future.rs"]
#[allow(unused, reason = "the models call a part of the library's file; the library calls the rest")]
#[allow(clippy::module_inception, reason = "the library's file has the name of this folder")]
mod future;
mod sync;

use flambeau::diag::{Diagnostic, Result};
use flambeau::ir::Type;
use flambeau::resources::Charge;
use flambeau::value::Value;
use shuttle::thread;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::SeqCst;
use sync::Mutex;

pub(super) const MODELS: [(&str, fn()); 6] = [
    ("future_wakes_all_who_wait", all_who_wait_are_woken),
    ("future_runs_its_task_once", a_task_runs_once),
    ("future_panics_are_errors", panics_are_errors),
    ("future_given_up_is_an_error", given_up),
    ("future_of_its_own_task_is_an_error", a_task_that_waits_for_itself),
    ("future_circles_are_errors", circles),
];

type Future = future::Future<Value>;

/// Here no value is deep.
impl future::Awaited for Value {
    fn release(self) {
        drop(self);
    }
}

/// Panics as errors. A panic by `panic!` would call the checker's hook.
mod panics {
    use super::{Diagnostic, Result};

    pub(super) fn catch<T>(what: &str, work: impl FnOnce() -> T) -> Result<T> {
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(work));
        caught.map_err(|_| Diagnostic::internal(format!("{what} panicked")))
    }
}

fn number(result: &Result<Value>) -> i64 {
    result.as_ref().expect("a value").to_int().expect("an int")
}

fn message(result: &Result<Value>) -> String {
    result.as_ref().expect_err("an error").message().to_string()
}

/// What `count` threads get that wait for a future.
fn waiters(future: &Future, count: usize) -> Vec<thread::JoinHandle<Result<Value>>> {
    let wait = |_| {
        let future = future.clone();
        thread::spawn(move || future.wait())
    };
    (0..count).map(wait).collect()
}

fn answers(waiters: Vec<thread::JoinHandle<Result<Value>>>) -> Vec<Result<Value>> {
    waiters.into_iter().map(|waiter| waiter.join().expect("ends")).collect()
}

fn runner(future: &Future) -> thread::JoinHandle<()> {
    let future = future.clone();
    thread::spawn(move || future.run())
}

fn all_who_wait_are_woken() {
    let future = Future::pending(Type::int());
    let waiting = waiters(&future, 2);
    let (first, second) = (future.clone(), future.clone());
    let other = thread::spawn(move || second.complete(Ok(Value::Int(2))));
    first.complete(Ok(Value::Int(1)));
    let all: Vec<i64> = answers(waiting).iter().map(number).collect();
    other.join().expect("ends");
    // Only the first completion counts.
    assert!(all == [1, 1] || all == [2, 2], "{all:?}");
    assert_eq!(number(&future.wait()), all[0]);
}

fn a_task_runs_once() {
    let runs = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&runs);
    let work = move || {
        thread::yield_now();
        Ok(Value::Int(count.fetch_add(1, SeqCst) as i64))
    };
    let future = Future::with_task(Type::int(), Box::new(work));
    let (waiting, runner) = (waiters(&future, 2), runner(&future));
    assert!(answers(waiting).iter().all(|answer| number(answer) == 0));
    runner.join().expect("ends");
    assert_eq!(runs.load(SeqCst), 1);
}

fn panics_are_errors() {
    let work = || {
        thread::yield_now();
        resume_unwind(Box::new("on purpose"))
    };
    let future = Future::with_task(Type::int(), Box::new(work));
    let (waiting, runner) = (waiters(&future, 2), runner(&future));
    assert!(answers(waiting).iter().all(|answer| message(answer).contains("a forked task panicked")));
    runner.join().expect("ends");
}

fn given_up() {
    let future = Future::with_task(Type::int(), Box::new(|| Ok(Value::Int(1))));
    let (waiting, runner) = (waiters(&future, 1), runner(&future));
    future.give_up(Diagnostic::internal("given up"));
    let all = answers(waiting);
    runner.join().expect("ends");
    // Either it began before, and its value counts, or it never ran.
    assert!(all[0].is_err() || number(&all[0]) == 1);
    assert_eq!(all[0].is_ok(), future.wait().is_ok());
}

/// A future for a task that gets it itself, as programs can arrange by a list.
fn knot() -> (Arc<Mutex<Option<Future>>>, impl Fn() -> Result<Value> + Send + 'static) {
    let place: Arc<Mutex<Option<Future>>> = Arc::default();
    let seen = Arc::clone(&place);
    let wait = move || {
        let future = seen.lock().clone();
        future.map_or(Ok(Value::None), |future| future.wait())
    };
    (place, wait)
}

fn a_task_that_waits_for_itself() {
    let (place, wait) = knot();
    let future = Future::with_task(Type::int(), Box::new(wait));
    *place.lock() = Some(future.clone());
    let (waiting, runner) = (waiters(&future, 1), runner(&future));
    assert!(answers(waiting).iter().all(|answer| message(answer).contains("a task waits for itself")));
    runner.join().expect("ends");
    // The knot is untied, or nothing would be freed.
    *place.lock() = None;
}

/// Three tasks that wait for each other in a circle, begun by different threads and by those that wait.
fn circles() {
    let (place, wait_for_third) = knot();
    let first = Future::with_task(Type::int(), Box::new(wait_for_third));
    let on_first = first.clone();
    let second = Future::with_task(Type::int(), Box::new(move || on_first.wait()));
    let on_second = second.clone();
    let third = Future::with_task(Type::int(), Box::new(move || on_second.wait()));
    *place.lock() = Some(third.clone());
    let runners = [runner(&first), runner(&second)];
    let waiting = waiters(&third, 1);
    assert!(answers(waiting).iter().all(|answer| message(answer).contains("a task waits for itself")));
    for runner in runners {
        runner.join().expect("ends");
    }
    assert!([first, second].iter().all(|future| message(&future.wait()).contains("waits for itself")));
    *place.lock() = None;
}
