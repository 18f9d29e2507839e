//! What the tasks of a run have in common: output, warnings, the random generator and what they may use. One task, and ops, are not
//! known here.

use super::watch::GroupObserver;
use crate::resources::budget::Budget;
use crate::value::generator::Generator;
use crate::value::{Future, StateKeeper};
use parking_lot::Mutex;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize};

/// What all tasks of a run have in common.
pub(super) struct Shared {
    pub(super) stdout: Mutex<Box<dyn Write + Send>>,
    pub(super) warnings: Mutex<Warnings>,
    pub(super) observer: Mutex<Option<GroupObserver>>,
    pub(super) generator: Mutex<Option<Generator>>,
    /// The owner of the generator's state, where it is external.
    pub(super) keeper: Mutex<Option<Arc<dyn StateKeeper>>>,
    pub(super) audits: AtomicBool,
    pub(super) plan_limit: AtomicUsize,
    pub(super) static_plans: AtomicUsize,
    pub(super) profiled_runs: AtomicUsize,
    pub(super) plans_in_background: AtomicBool,
}

/// What the tasks of a run may use together.
pub(super) struct Account {
    pub(super) budget: Arc<Budget>,
    /// Forked tasks that may not have ended.
    pub(super) tasks: Mutex<Vec<Future>>,
}

impl Account {
    pub(super) fn new(budget: Arc<Budget>) -> Arc<Account> {
        Arc::new(Account { budget, tasks: Mutex::default() })
    }
}

#[derive(Default)]
pub(super) struct Warnings {
    pub(super) kept: Vec<String>,
    pub(super) left_out: usize,
}
