//! Threads for forked tasks, which may wait for storages and for each other. They are started when tasks come, as many as
//! share loops, and end when nothing comes for a while. A task that no thread can take is run by its waiter, so
//! nothing here ever has to succeed.

use super::pool;
use parking_lot::{Condvar, Mutex};
use std::collections::VecDeque;
use std::time::Duration;

/// What a thread runs.
pub type Job = Box<dyn FnOnce() + Send>;

/// The threads of a process and what waits for them.
struct Crew {
    process: u32,
    waiting: VecDeque<Job>,
    threads: usize,
    idle: usize,
}

static CREW: Mutex<Crew> = Mutex::new(Crew { process: 0, waiting: VecDeque::new(), threads: 0, idle: 0 });
static WORK: Condvar = Condvar::new();

/// A thread without work ends after this time.
const IDLE: Duration = Duration::from_secs(5);
/// Room on a thread's stack; the system gives pages as they are used.
const STACK_BYTES: usize = 16 << 20;
/// Jobs that wait for a thread; waiters for further ones run them.
const MAX_WAITING: usize = 1 << 16;

/// Offers a job to the threads. False, with the job dropped, where none can take it.
pub fn offer(job: Job) -> bool {
    let process = std::process::id();
    // In a process that was forked off, a thread that is not there may hold the lock for ever.
    let Some(mut crew) = CREW.try_lock_for(Duration::from_millis(100)) else { return false };
    if crew.process != process {
        // The threads, and what they were to do, belong to the process that this one was forked from.
        std::mem::forget(std::mem::take(&mut crew.waiting));
        (crew.process, crew.threads, crew.idle) = (process, 0, 0);
    }
    if crew.waiting.len() >= MAX_WAITING {
        return false;
    }
    if crew.idle <= crew.waiting.len() && crew.threads < pool::threads() {
        let thread = std::thread::Builder::new().name("flambeau-task".into()).stack_size(STACK_BYTES);
        crew.threads += usize::from(thread.spawn(work).is_ok());
    }
    if crew.threads == 0 {
        return false;
    }
    crew.waiting.push_back(job);
    drop(crew);
    WORK.notify_one();
    true
}

/// Runs jobs until none comes.
fn work() {
    let mut crew = CREW.lock();
    loop {
        if let Some(job) = crew.waiting.pop_front() {
            drop(crew);
            // A panic is a bug, which the task's future has reported to waiters; the thread goes on.
            let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(job));
            crew = CREW.lock();
            continue;
        }
        crew.idle += 1;
        let late = WORK.wait_for(&mut crew, IDLE).timed_out();
        crew.idle -= 1;
        if late && crew.waiting.is_empty() {
            crew.threads -= 1;
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn jobs_run_and_a_panic_ends_no_thread() {
        let (sender, receiver) = mpsc::channel();
        for n in 0..20 {
            let sender = sender.clone();
            let job = move || {
                sender.send(n).expect("the receiver is there");
                assert!(n != 3, "a job that panics on purpose");
            };
            assert!(offer(Box::new(job)));
        }
        drop(sender);
        let mut done: Vec<i32> = receiver.iter().collect();
        done.sort_unstable();
        assert_eq!(done, (0..20).collect::<Vec<_>>());
    }
}
