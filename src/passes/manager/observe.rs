//! Who wants to know what the pass manager does: printers, clocks, counters.

use crate::diag::Diagnostic;
use crate::ir::{Module, Symbol};
use crate::passes::{Options, Pass};
use indexmap::IndexMap;
use std::io::Write;
use std::time::Duration;

/// Where in a pipeline the manager is.
#[derive(Clone, Copy, Debug)]
pub struct At<'a> {
    /// The pass that runs.
    pub pass: &'a Pass,
    /// Its options.
    pub options: &'a Options,
    /// How many passes ran before this one, repetitions counted.
    pub index: usize,
}

/// What a run of a pass over a module came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Whether the pass says that it changed something.
    pub changed: bool,
    /// The functions whose graphs it changed, in order; empty for a pass over modules.
    pub functions: Vec<Symbol>,
    /// Changes that the pass counted.
    pub steps: u64,
    /// It changed a graph without asking for a step, which counts as one.
    pub unasked: bool,
    /// The last counted change as text, where steps are recorded.
    pub last_step: Option<String>,
    /// Counts by name.
    pub statistics: IndexMap<&'static str, u64>,
    /// Wall time.
    pub time: Duration,
    /// Time of each function, on whatever thread.
    pub function_times: Vec<(Symbol, Duration)>,
    /// Time of the verifier after the pass.
    pub verify_time: Duration,
}

/// Observes passes. `out` is where messages go.
pub trait Observer {
    /// Before a pass.
    fn before(&mut self, _at: &At<'_>, _module: &Module, _out: &mut dyn Write) {}
    /// After a pass that went well.
    fn after(&mut self, _at: &At<'_>, _module: &Module, _report: &Report, _out: &mut dyn Write) {}
    /// After a pass that failed, or left a module that is not valid.
    fn failed(&mut self, _at: &At<'_>, _module: &Module, _errors: &[Diagnostic], _out: &mut dyn Write) {}
    /// A nest (`repeat(...)`) begins.
    fn enter(&mut self, _nest: &str) {}
    /// The innermost nest ends.
    fn leave(&mut self) {}
}
