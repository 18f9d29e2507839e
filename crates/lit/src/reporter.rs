//! The results of tests in their order, each as soon as all before are there, and the bar below them.

use super::config::Config;
use super::discover::Test;
use super::outcome::Outcome;
use super::report::{self, Detail};
use std::io::Write;
use std::time::Duration;

/// Reports results in order of the tests, as soon as all before are there.
pub(super) struct Reporter<'a> {
    pub(super) config: &'a Config,
    pub(super) detail: Detail,
    pub(super) tests: &'a [Test],
    pub(super) outcomes: Vec<Option<Outcome>>,
    /// When each test ended, from the start of the run.
    pub(super) ends: Vec<Duration>,
    pub(super) reported: usize,
    pub(super) failures: usize,
    pub(super) out: &'a mut (dyn Write + Send),
    pub(super) result: std::io::Result<()>,
}

impl Reporter<'_> {
    pub(super) fn take(&mut self, index: usize, outcome: Outcome, end: Duration) {
        self.failures += usize::from(outcome.status.is_failure());
        if let Some(slot) = self.outcomes.get_mut(index) {
            *slot = Some(outcome);
        }
        if let Some(slot) = self.ends.get_mut(index) {
            *slot = end;
        }
        if self.result.is_ok() {
            self.result = self.report();
        }
    }

    fn report(&mut self) -> std::io::Result<()> {
        let total = self.tests.len();
        while let (Some(test), Some(Some(outcome))) =
            (self.tests.get(self.reported), self.outcomes.get(self.reported))
        {
            self.reported += 1;
            let position = (self.reported, total);
            let text = report::result(test, outcome, position, self.detail);
            if self.config.progress && !text.is_empty() {
                write!(self.out, "\r\x1b[K")?;
            }
            self.out.write_all(text.as_bytes())?;
        }
        if self.config.progress {
            const WIDTH: usize = 40;
            let done = self.outcomes.iter().flatten().count();
            let filled = done * WIDTH / total.max(1);
            let bar = format!("{}{}", "#".repeat(filled), "-".repeat(WIDTH - filled));
            let left = time_left(self.ends.iter().max().copied().unwrap_or_default(), done, total);
            write!(self.out, "\r\x1b[K[{bar}] {done}/{total}, {} failed{left}", self.failures)?;
            self.out.flush()?;
        }
        Ok(())
    }

    pub(super) fn finish(&mut self) -> std::io::Result<()> {
        std::mem::replace(&mut self.result, Ok(()))?;
        // Where tests were left out, report those after them too.
        let tests = self.tests;
        for (index, test) in tests.iter().enumerate().skip(self.reported) {
            if let Some(Some(outcome)) = self.outcomes.get(index) {
                let position = (index + 1, tests.len());
                let text = report::result(test, outcome, position, self.detail);
                self.out.write_all(text.as_bytes())?;
            }
        }
        if self.config.progress {
            write!(self.out, "\r\x1b[K")?;
        }
        Ok(())
    }
}

/// How long the rest will take, if it takes as long a test as what is done; nothing at the beginning and at the end.
fn time_left(elapsed: Duration, done: usize, total: usize) -> String {
    if done == 0 || done >= total || elapsed < Duration::from_millis(500) {
        return String::new();
    }
    let left = elapsed.mul_f64((total - done) as f64 / done as f64);
    format!(", {} left", indicatif::HumanDuration(left))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_time_taken() {
        let seconds = Duration::from_secs;
        assert_eq!(time_left(seconds(30), 10, 30), ", 60 seconds left");
        assert_eq!(time_left(seconds(10), 10, 15), ", 5 seconds left");
        assert_eq!(
            (time_left(seconds(9), 15, 15), time_left(seconds(0), 1, 15)),
            (String::new(), String::new())
        );
    }
}
