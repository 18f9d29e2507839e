//! Options that bound what a command may use, the same for all commands that load or run.

use super::watch::{self, Watch};
use crate::dialects::{Limits, Run};
use crate::resources::budget::Installed;
use crate::resources::limits;
use clap::Args;
use std::io::Write;
use std::time::Duration;

/// Limits of a command, at any place among its options.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Limits, for programs that are not trusted")]
pub struct LimitOptions {
    /// Maximum memory for live tensors, lists, dictionaries and text: 512M, 1G
    #[arg(long, global = true, value_name = "BYTES", value_parser = bytes)]
    pub max_memory: Option<u64>,
    /// Maximum number of interpreter instructions
    #[arg(long, global = true, value_name = "N")]
    pub max_steps: Option<u64>,
    /// Time limit in seconds for the command; for check and bench, for each case
    #[arg(long, global = true, value_name = "SECONDS", value_parser = seconds)]
    pub timeout: Option<Duration>,
    /// Maximum depth of nested calls
    #[arg(long, global = true, value_name = "N")]
    pub max_depth: Option<usize>,
    /// Maximum number of bytes that the program prints
    #[arg(long, global = true, value_name = "BYTES", value_parser = bytes)]
    pub max_output: Option<u64>,
    /// Maximum number of warnings that the program emits
    #[arg(long, global = true, value_name = "N")]
    pub max_warnings: Option<usize>,
    /// Maximum number of forked tasks that are open at one time
    #[arg(long, global = true, value_name = "N")]
    pub max_forks: Option<usize>,
    /// The command is the process's own, which may be ended with it.
    #[arg(skip)]
    pub(in crate::tools) owns_process: bool,
}

pub(super) fn bytes(text: &str) -> std::result::Result<u64, String> {
    limits::bytes_of(text).map_err(|error| error.message().to_string())
}

fn seconds(text: &str) -> std::result::Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "give a number of seconds".to_string())?;
    limits::seconds_of(number).map_err(|error| error.message().to_string())
}

impl LimitOptions {
    /// The limits of a run.
    pub fn limits(&self) -> Limits {
        let default = Limits::default();
        Limits {
            steps: self.max_steps,
            bytes: self.max_memory,
            time: self.timeout,
            depth: self.max_depth.unwrap_or(default.depth),
            output: self.max_output,
            warnings: self.max_warnings,
            forks: self.max_forks.unwrap_or(default.forks),
        }
    }

    /// A run with these limits.
    pub fn run(&self, stdout: Box<dyn Write + Send>) -> Run {
        Run::with_limits(stdout, self.limits())
    }

    /// A run with these limits that prints nothing.
    pub fn silent(&self) -> Run {
        self.run(Box::new(std::io::sink()))
    }

    /// Bounds all that this thread does as long as the result lives: loading, compiling and the runs within it.
    pub fn install(&self) -> Installed {
        self.silent().install()
    }

    /// Ends the process where the command goes on beyond its limits, until the result is dropped: work that cannot be
    /// interrupted (a compiler's, a single kernel's) must not outlive them by much. Does nothing for a command within a
    /// library, which does not own its process.
    pub fn watch(&self) -> Watch {
        self.watched(self.timeout, self.max_memory, watch::GRACE)
    }

    /// The same for one of several cases that have this time each; others go on beside it, so it gets more time to notice.
    pub fn watch_case(&self) -> Watch {
        self.watched(self.timeout, None, watch::CASE_GRACE)
    }

    /// The same for the memory of a number of cases in parallel.
    pub fn watch_memory_of(&self, cases: usize) -> Watch {
        let bytes = self.max_memory.map(|bytes| bytes.saturating_mul(cases.max(1) as u64));
        self.watched(None, bytes, watch::GRACE)
    }

    fn watched(&self, time: Option<Duration>, bytes: Option<u64>, grace: Duration) -> Watch {
        if self.owns_process { Watch::start(time, bytes, grace) } else { Watch::none() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_times_are_read() {
        assert_eq!(bytes("1G"), Ok(1 << 30));
        assert_eq!(bytes("1.5k"), Ok(1536));
        assert_eq!(bytes("12"), Ok(12));
        assert_eq!(bytes("3MiB"), Ok(3 << 20));
        assert!(bytes("x").is_err() && bytes("1X").is_err() && bytes("-1").is_err() && bytes("é").is_err());
        assert_eq!(seconds("0.25"), Ok(Duration::from_millis(250)));
        assert!(seconds("-1").is_err() && seconds("nan").is_err() && seconds("soon").is_err());
    }
}
