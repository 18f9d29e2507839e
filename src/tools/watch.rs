//! A thread that ends the process where its command goes on beyond its limits of time and memory, whatever it does.
//!
//! Budgets end work that checks them; this is for work that does not, such as a compiler's, a single kernel's or a reader's. Where
//! the system reports the memory of a process (Linux), it asks budgets to end the work first.

use super::lit;

use crate::diag::{Diagnostic, files, render};
use crate::resources::budget::{self, bytes_text, exceeded};
use std::io::Write;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// How long work may take to notice that its time is over.
pub const GRACE: Duration = Duration::from_millis(500);
/// The same where several cases share the machine.
pub const CASE_GRACE: Duration = Duration::from_secs(2);
/// How often memory is examined: it grows by some 2 GB a second at most for each thread.
const POLL: Duration = Duration::from_millis(10);
/// A process that took less is not ended for its memory: code, stacks and compiled ops are not the program's.
const LEAST_BYTES: u64 = 256 << 20;
/// How long the last message may take to be written.
const LAST_WORDS: Duration = Duration::from_millis(300);
/// How long the process may take to end.
const LAST_BREATH: Duration = Duration::from_secs(5);

/// Watches as long as it lives: the watcher ends when its channel is closed.
#[must_use = "the process is watched as long as this lives"]
#[derive(Debug)]
pub struct Watch {
    _alive: Option<Sender<()>>,
}

impl Watch {
    /// Watches nothing.
    pub fn none() -> Watch {
        Watch { _alive: None }
    }

    /// Ends the process some `grace` after `time`, and before it takes `bytes`.
    pub fn start(time: Option<Duration>, bytes: Option<u64>, grace: Duration) -> Watch {
        let own = bytes.and_then(|_| resident());
        let bytes = bytes.filter(|_| own.is_some());
        if time.is_none() && bytes.is_none() {
            return Watch { _alive: None };
        }
        let deadline = time.and_then(|time| Instant::now().checked_add(time.saturating_add(grace)));
        // The program's own code, and files that are mapped, are pages of files: the system takes those back by itself.
        let code = own.map_or(0, |(_, files)| files);
        let limits = Watched { time, deadline, bytes, code };
        let (sender, receiver) = mpsc::channel();
        let watcher = std::thread::Builder::new().name("limits".into());
        let started = watcher.spawn(move || {
            while let Err(RecvTimeoutError::Timeout) = receiver.recv_timeout(limits.pause()) {
                if let Some(why) = limits.exceeded() {
                    end_process(&why);
                }
            }
            if limits.bytes.is_some() {
                budget::press(false);
            }
        });
        if started.is_err() {
            // Nothing more can be done about an error stream that is closed.
            let _ =
                writeln!(std::io::stderr(), "warning: no thread could be started that watches the limits");
        }
        Watch { _alive: Some(sender) }
    }
}

/// What is watched.
struct Watched {
    time: Option<Duration>,
    deadline: Option<Instant>,
    bytes: Option<u64>,
    /// Bytes of the process that were pages of files at the beginning.
    code: u64,
}

impl Watched {
    /// Until the next look.
    fn pause(&self) -> Duration {
        let left = self.deadline.map(|end| end.saturating_duration_since(Instant::now()));
        match (left, self.bytes) {
            (left, Some(_)) => left.map_or(POLL, |left| left.min(POLL)),
            (Some(left), None) => left,
            (None, None) => Duration::from_secs(3600),
        }
    }

    /// Why the process must end now.
    fn exceeded(&self) -> Option<Diagnostic> {
        const WHY: &str = "the work that was going on cannot be interrupted, so the process was ended";
        if self.deadline.is_some_and(|end| Instant::now() >= end) {
            let seconds = self.time.map_or(0.0, |time| time.as_secs_f64());
            let text = format!("the time limit of {seconds} s was reached");
            return Some(exceeded(text, "--timeout").note(WHY));
        }
        let limit = self.bytes?;
        let sixteenth = limit.max(LEAST_BYTES) / 16;
        let taken = resident()?.0.saturating_add(self.code);
        // Work that checks its budget ends first, with an error that names the line.
        budget::press(taken >= 13 * sixteenth);
        (taken >= 14 * sixteenth).then(|| {
            let text = format!(
                "the memory limit of {} was reached: the process has {}",
                bytes_text(limit),
                bytes_text(taken)
            );
            exceeded(text, "--max-memory").note(WHY)
        })
    }
}

/// Bytes of memory of its own that the process has, and those that are pages of files, where the system reports them.
fn resident() -> Option<(u64, u64)> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bytes = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
        Some(kib.saturating_mul(1024))
    };
    Some((bytes("RssAnon:")?.saturating_add(bytes("RssShmem:")?), bytes("RssFile:")?))
}

/// Says why and ends the process with status 1, within a few seconds whatever other threads hold.
fn end_process(why: &Diagnostic) -> ! {
    let text = render::human(why);
    let (sender, done) = mpsc::channel();
    // Who holds the error stream may never let it go.
    let says = std::thread::Builder::new().spawn(move || {
        let _ = writeln!(std::io::stderr(), "{}", text.trim_end());
        let _ = sender.send(());
    });
    if says.is_ok() {
        let _ = done.recv_timeout(LAST_WORDS);
    }
    // Tests and interestingness scripts that run would go on without a parent that waits for them.
    lit::end_programs();
    files::remove_temporary();
    // What libraries do at the end may wait for the work that is going on.
    let _ = std::thread::Builder::new().spawn(|| {
        std::thread::sleep(LAST_BREATH);
        std::process::abort();
    });
    std::process::exit(1)
}
