//! How far a long work is: a bar with count, share and time left, on a terminal alone. In a pipe nothing of it is written.

use super::io::Io;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Work that is shorter shows nothing.
const PATIENCE: Duration = Duration::from_millis(500);
const COUNTED: &str = "{prefix} [{bar:30}] {pos}/{len} {percent}% {eta} left {wide_msg}";
const BYTES: &str = "{prefix} [{bar:30}] {bytes}/{total_bytes} {percent}% {eta} left {wide_msg}";

/// A bar, or nothing.
pub struct Progress(Option<Shown>);

struct Shown {
    bar: ProgressBar,
    done: AtomicU64,
}

impl Progress {
    /// For a number of steps of a command.
    pub fn new(name: &str, steps: usize, io: &Io<'_>) -> Progress {
        Progress::styled(name, steps as u64, COUNTED, io.terminal.process && io.terminal.err)
    }

    /// For a number of bytes; `shown` says whether a person reads the messages.
    pub fn bytes(name: &str, bytes: u64, shown: bool) -> Progress {
        Progress::styled(name, bytes, BYTES, shown)
    }

    fn styled(name: &str, length: u64, style: &str, shown: bool) -> Progress {
        if !shown || length < 2 {
            return Progress(None);
        }
        let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        if let Ok(style) = ProgressStyle::with_template(style) {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_prefix(name.to_string());
        Progress(Some(Shown { bar, done: AtomicU64::new(0) }))
    }

    /// Another step is done. Short work has no bar: it is drawn from half a second on.
    pub fn step(&self) {
        self.advance(1);
    }

    /// So much more is done.
    pub fn advance(&self, by: u64) {
        if let Some(shown) = &self.0 {
            let done = shown.done.fetch_add(by, Ordering::Relaxed) + by;
            if shown.bar.elapsed() >= PATIENCE {
                shown.bar.set_position(done);
            }
        }
    }

    /// What the work is at.
    pub fn about(&self, text: &str) {
        if let Some(shown) = self.0.as_ref().filter(|shown| shown.bar.elapsed() >= PATIENCE) {
            shown.bar.set_message(text.to_string());
        }
    }

    /// Does something that prints, with the bar out of the way.
    pub fn hidden<R>(&self, work: impl FnOnce() -> R) -> R {
        match &self.0 {
            Some(shown) => shown.bar.suspend(work),
            None => work(),
        }
    }

    /// Clears the bar.
    pub fn end(&self) {
        if let Some(shown) = &self.0 {
            shown.bar.finish_and_clear();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.end();
    }
}
