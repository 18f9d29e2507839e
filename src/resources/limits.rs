//! What one run may use: the limits that a host gives for programs it does not trust.

use crate::diag::{Diagnostic, ErrorKind, Result};
use std::time::Duration;

/// Limits of one run, its forks included. `None` means no limit. Below its limits a program answers as it does without;
/// at a limit the run ends with an error of kind [`crate::diag::ErrorKind::Limit`] that names the limit and the line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Instructions that the interpreter runs.
    pub steps: Option<u64>,
    /// Bytes of memory that live at one time: tensors, lists, dictionaries and text that the run made.
    pub bytes: Option<u64>,
    /// Time from the moment the run was made.
    pub time: Option<Duration>,
    /// Calls nested in each other.
    pub depth: usize,
    /// Bytes that the program prints.
    pub output: Option<u64>,
    /// Warnings that the program gives. Without a limit the first [`KEPT_WARNINGS`] are kept and the others counted.
    pub warnings: Option<usize>,
    /// Forked tasks that have not ended, at one time.
    pub forks: usize,
}

/// Warnings that a run keeps.
pub const KEPT_WARNINGS: usize = 1_000;

impl Default for Limits {
    /// No limit of steps, memory, time and output; 4,000 nested calls and 100,000 open forks.
    fn default() -> Limits {
        Limits {
            steps: None,
            bytes: None,
            time: None,
            depth: 4_000,
            output: None,
            warnings: None,
            forks: 100_000,
        }
    }
}

impl Limits {
    /// Both limits at once: of each kind the lower one. Time is left out, as it began at different moments.
    pub(super) fn both(self, other: &Limits) -> Limits {
        fn lower<T: Ord>(a: Option<T>, b: Option<T>) -> Option<T> {
            match (a, b) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            }
        }
        Limits {
            steps: lower(self.steps, other.steps),
            bytes: lower(self.bytes, other.bytes),
            time: self.time,
            depth: self.depth.min(other.depth),
            output: lower(self.output, other.output),
            warnings: lower(self.warnings, other.warnings),
            forks: self.forks.min(other.forks),
        }
    }
}

/// A number of bytes as people write it, with K, M, G or T for powers of 1024: `512M`, `1.5G`.
pub fn bytes_of(text: &str) -> Result<u64> {
    let odd = || Diagnostic::input(format!("'{text}' is not a size: sizes are written as 512M or 1G"));
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" | "B" => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ => return Err(odd()),
    };
    let number: f64 = digits.parse().map_err(|_| odd())?;
    if !(number >= 0.0 && number.is_finite()) {
        return Err(odd());
    }
    Ok((number * factor as f64) as u64)
}

/// A time in seconds. Fails for what is not a time.
pub fn seconds_of(number: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(number)
        .map_err(|error| Diagnostic::input(format!("{number} s is not a time limit: {error}")))
}

/// An error that says which limit was reached; `option` is the command line's name for it.
pub fn exceeded(message: impl Into<String>, option: &'static str) -> Diagnostic {
    let name = if option == "--timeout" { "seconds" } else { option.trim_start_matches("--max-") };
    Diagnostic::new(ErrorKind::Limit, message).limit(name).hint(format!("{option} sets it"))
}

/// The program printed more than `limit` bytes.
pub fn too_much_output(limit: u64) -> Diagnostic {
    exceeded(format!("the program printed more than its limit of {limit} bytes"), "--max-output")
}

/// The program gave more than `limit` warnings.
pub fn too_many_warnings(limit: usize) -> Diagnostic {
    exceeded(format!("the program gave more than its limit of {limit} warnings"), "--max-warnings")
}

/// More than `limit` forked tasks have not ended.
pub fn too_many_forks(limit: usize) -> Diagnostic {
    exceeded(format!("more than {limit} forked tasks are open"), "--max-forks")
        .hint("wait for tasks with torch.jit.wait before more are forked")
}

/// Calls are nested deeper than the limit, in `function`. It is Python's error, as a program can reach the default limit.
pub fn too_deep(limit: usize, function: &str) -> Diagnostic {
    let message = format!("maximum recursion depth exceeded: {limit} calls are running in '{function}'");
    Diagnostic::raised("RecursionError", message).limit("depth").hint("--max-depth sets the limit")
}
