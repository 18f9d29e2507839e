//! How a test ended. It knows nothing of how it ran.

use std::time::Duration;

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not chosen.
    Excluded,
    /// Chosen and not begun: there was no time, or too much failed before.
    Skipped,
    /// Not run: it asks for what is not there.
    Unsupported,
    /// As wanted.
    Pass,
    /// As wanted, though not at once.
    FlakyPass,
    /// It failed, and says it would.
    ExpectedFail,
    /// It is not a good test.
    Unresolved,
    /// It took too long.
    TimedOut,
    /// It failed.
    Fail,
    /// It says it would fail, and did not.
    UnexpectedPass,
}

impl Status {
    /// All, in the order of reports.
    pub const ALL: [Status; 10] = [
        Status::Excluded,
        Status::Skipped,
        Status::Unsupported,
        Status::Pass,
        Status::FlakyPass,
        Status::ExpectedFail,
        Status::Unresolved,
        Status::TimedOut,
        Status::Fail,
        Status::UnexpectedPass,
    ];

    /// The label in front of a test's name.
    pub fn code(self) -> &'static str {
        match self {
            Status::Excluded => "EXCLUDED",
            Status::Skipped => "SKIPPED",
            Status::Unsupported => "UNSUPPORTED",
            Status::Pass => "PASS",
            Status::FlakyPass => "FLAKYPASS",
            Status::ExpectedFail => "XFAIL",
            Status::Unresolved => "UNRESOLVED",
            Status::TimedOut => "TIMEOUT",
            Status::Fail => "FAIL",
            Status::UnexpectedPass => "XPASS",
        }
    }

    /// The label in a summary.
    pub fn label(self) -> &'static str {
        match self {
            Status::Excluded => "Excluded",
            Status::Skipped => "Skipped",
            Status::Unsupported => "Unsupported",
            Status::Pass => "Passed",
            Status::FlakyPass => "Passed With Retry",
            Status::ExpectedFail => "Expectedly Failed",
            Status::Unresolved => "Unresolved",
            Status::TimedOut => "Timed Out",
            Status::Fail => "Failed",
            Status::UnexpectedPass => "Unexpectedly Passed",
        }
    }

    /// Whether it makes the whole run fail.
    pub fn is_failure(self) -> bool {
        matches!(self, Status::Unresolved | Status::TimedOut | Status::Fail | Status::UnexpectedPass)
    }
}

/// How a test ended, and what it wrote.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The commands and what they wrote, or why it was not run.
    pub output: String,
    /// The time it took.
    pub elapsed: Duration,
    /// How often it ran.
    pub attempts: usize,
    /// How often it might run.
    pub most_attempts: usize,
}

impl Outcome {
    /// One that needed no run.
    pub(super) fn of(status: Status, output: impl Into<String>) -> Outcome {
        Outcome { status, output: output.into(), elapsed: Duration::ZERO, attempts: 1, most_attempts: 1 }
    }
}
