//! Work off the thread that talks to the client: a few jobs at a time, each with a time limit.
//!
//! A thread cannot be stopped from outside. A job that is late is answered for and abandoned: its thread goes on alone,
//! and while too many of them do, further jobs are answered at once. This module knows nothing of the protocol.

use crate::diag::panics;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a job may take.
pub(super) const MOST_TIME: Duration = Duration::from_secs(20);
/// Jobs that run side by side.
const MOST_RUNNING: usize = 2;
/// Late jobs whose threads may still run.
const MOST_ABANDONED: usize = 2;
/// Jobs that wait.
const MOST_WAITING: usize = 1000;
/// Stack of a job's thread; parsers bound their own depth and need no more.
const STACK: usize = 16 << 20;

/// Why a job was not done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// It took too long.
    Late,
    /// Others that took too long are still running, or too many wait.
    Busy,
    /// It panicked.
    Panicked,
}

impl Failure {
    pub(super) fn text(self) -> String {
        match self {
            Failure::Late => format!("this took more than {} seconds and was given up", MOST_TIME.as_secs()),
            Failure::Busy => "the server is still busy with work that took too long".to_string(),
            Failure::Panicked => "this is a bug in Flambeau; please report it".to_string(),
        }
    }
}

type Run = Box<dyn FnOnce() -> Answer + Send>;
type Fail = Box<dyn FnOnce(Failure) + Send>;
/// Delivers what a job found.
pub(super) type Answer = Box<dyn FnOnce() + Send>;

struct Job {
    /// A newer job of the same key takes the place of one that waits.
    key: Option<String>,
    run: Run,
    fail: Fail,
}

/// The jobs of a server.
#[derive(Clone)]
pub(super) struct Work(Arc<Mutex<State>>);

struct State {
    limit: Duration,
    waiting: VecDeque<Job>,
    running: Vec<Running>,
    abandoned: usize,
    next: u64,
}

struct Running {
    id: u64,
    since: Instant,
    fail: Fail,
}

impl Work {
    /// No jobs; each may take `limit`.
    pub(super) fn new(limit: Duration) -> Work {
        let (waiting, running) = (VecDeque::new(), Vec::new());
        Work(Arc::new(Mutex::new(State { limit, waiting, running, abandoned: 0, next: 0 })))
    }

    /// Has a job done: `run` computes, the answer that it gives is delivered unless the job is late; else `fail` is
    /// called, once.
    pub(super) fn add(
        &self,
        key: Option<String>,
        run: impl FnOnce() -> Answer + Send + 'static,
        fail: impl FnOnce(Failure) + Send + 'static,
    ) {
        let job = Job { key, run: Box::new(run), fail: Box::new(fail) };
        let crowded = {
            let mut state = self.0.lock();
            if job.key.is_some() {
                state.waiting.retain(|other| other.key != job.key);
            }
            state.waiting.push_back(job);
            if state.waiting.len() > MOST_WAITING { state.waiting.pop_front() } else { None }
        };
        if let Some(job) = crowded {
            (job.fail)(Failure::Busy);
        }
        self.start();
    }

    /// Gives up jobs that are late and begins what waits; to be called now and then.
    pub(super) fn tick(&self) {
        let late: Vec<Running> = {
            let mut state = self.0.lock();
            let limit = state.limit;
            let late: Vec<Running> =
                state.running.extract_if(.., |job| job.since.elapsed() > limit).collect();
            state.abandoned += late.len();
            late
        };
        for job in late {
            (job.fail)(Failure::Late);
        }
        self.start();
    }

    /// Whether nothing runs and nothing waits.
    #[cfg(test)]
    fn is_idle(&self) -> bool {
        let state = self.0.lock();
        state.waiting.is_empty() && state.running.is_empty() && state.abandoned == 0
    }

    fn start(&self) {
        loop {
            let mut state = self.0.lock();
            if state.running.len() >= MOST_RUNNING {
                return;
            }
            let Some(job) = state.waiting.pop_front() else { return };
            if state.abandoned >= MOST_ABANDONED {
                drop(state);
                (job.fail)(Failure::Busy);
                continue;
            }
            let id = state.next;
            state.next += 1;
            state.running.push(Running { id, since: Instant::now(), fail: job.fail });
            drop(state);
            let work = self.clone();
            let run = job.run;
            let thread = std::thread::Builder::new().stack_size(STACK);
            let started = thread.spawn(move || {
                let answer = panics::catch("answering the editor", run).ok();
                work.ended(id, answer);
            });
            if started.is_err() {
                self.ended(id, None);
            }
        }
    }

    /// Delivers the answer of a job that was not given up, and begins the next.
    fn ended(&self, id: u64, answer: Option<Answer>) {
        let running = {
            let mut state = self.0.lock();
            let at = state.running.iter().position(|job| job.id == id);
            if at.is_none() {
                state.abandoned = state.abandoned.saturating_sub(1);
            }
            at.map(|at| state.running.remove(at))
        };
        match (running, answer) {
            (Some(_), Some(answer)) => answer(),
            (Some(job), None) => (job.fail)(Failure::Panicked),
            (None, _) => {}
        }
        self.start();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    fn job(
        work: &Work,
        key: Option<&str>,
        name: &'static str,
        to: &Sender<String>,
        run: impl FnOnce() + Send + 'static,
    ) {
        let (good, bad) = (to.clone(), to.clone());
        let run = move || -> Answer {
            run();
            Box::new(move || good.send(name.to_string()).expect("a receiver"))
        };
        let fail = move |failure| bad.send(format!("{name}: {failure:?}")).expect("a receiver");
        work.add(key.map(String::from), run, fail);
    }

    #[test]
    fn jobs_are_done_and_newer_ones_take_the_place_of_waiting_ones() {
        let work = Work::new(MOST_TIME);
        let (to, from) = channel();
        let (open, gate) = channel::<()>();
        let gate = Arc::new(Mutex::new(gate));
        for name in ["a", "b"] {
            let gate = Arc::clone(&gate);
            job(&work, None, name, &to, move || gate.lock().recv().expect("opened"));
        }
        job(&work, Some("k"), "old", &to, || ());
        job(&work, Some("k"), "new", &to, || ());
        open.send(()).expect("waits");
        open.send(()).expect("waits");
        let mut got: Vec<String> = (0..3).map(|_| from.recv().expect("an answer")).collect();
        got.sort();
        assert_eq!(got, ["a", "b", "new"]);
    }

    #[test]
    fn late_and_panicking_jobs_are_answered_once() {
        let work = Work::new(Duration::ZERO);
        let (to, from) = channel();
        let mut gates = Vec::new();
        for name in ["a", "b"] {
            let (open, gate) = channel::<()>();
            gates.push(open);
            job(&work, None, name, &to, move || gate.recv().unwrap_or(()));
        }
        std::thread::sleep(Duration::from_millis(2));
        work.tick();
        let mut got = [from.recv().expect("late"), from.recv().expect("late")];
        got.sort();
        assert_eq!(got, ["a: Late", "b: Late"]);
        job(&work, None, "c", &to, || ());
        assert_eq!(from.recv().expect("busy"), "c: Busy");
        drop(gates);
        while !work.is_idle() {
            std::thread::yield_now();
        }
        job(&work, None, "d", &to, || panic!("on purpose"));
        assert_eq!(from.recv().expect("an answer"), "d: Panicked");
    }
}
