//! The state of a test while it runs: where its commands run, and what happened so far. How commands run is not its concern.

use super::config::Config;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Instant;

/// Why a command line could not be run to its end.
#[derive(Debug)]
pub(super) enum Broken {
    /// The time is over.
    TimedOut,
    /// It makes no sense: the test is not a good test.
    Bad(String),
    /// The shell does not do that: the test fails.
    Refused(String),
}

/// Where commands run.
#[derive(Clone, Debug, Default)]
pub(super) struct Environment {
    /// The folder.
    pub(super) directory: PathBuf,
    /// The variables.
    pub(super) variables: BTreeMap<String, String>,
    /// Rights that new files do not have.
    pub(super) umask: Option<u32>,
    /// Options of `ulimit` and their values in the shell's units.
    pub(super) ulimit: BTreeMap<&'static str, String>,
}

impl Environment {
    /// The shell's commands that set permissions and limits.
    pub(super) fn limits(&self) -> String {
        let mut out = String::new();
        if let Some(mask) = self.umask {
            out.push_str(&format!("umask {mask:o}; "));
        }
        for (option, value) in &self.ulimit {
            out.push_str(&format!("ulimit {option} {value}; "));
        }
        out
    }
}

/// The state of a test while it runs.
pub(super) struct Shell<'a> {
    pub(super) config: &'a Config,
    pub(super) environment: Environment,
    /// Directories that `pushd` left.
    pub(super) left: Vec<PathBuf>,
    pub(super) deadline: Option<Instant>,
    /// What happened, for people.
    pub(super) log: String,
    /// The error messages of the system's own shell.
    pub(super) errors: String,
}
