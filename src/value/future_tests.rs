//! Futures on real threads. `tests/model` explores the protocol itself.

use super::{Future, Value};
use crate::ir::Type;
use parking_lot::Mutex;
use std::sync::Arc;

#[test]
fn the_waiter_runs_what_was_not_started() {
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
