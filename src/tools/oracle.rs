//! Decides whether a module under a pipeline shows a certain fault: it fails as before, gives another answer than without
//! passes, or a user's command says so. Bisection and reduction query it repeatedly.

use super::case::{compare, encode};
use crate::diag::{Diagnostic, ErrorKind, Result, files};
use crate::dialects::{Registry, Run, Strictness};
use crate::ir::{Module, PrintOptions, Symbol};
use crate::passes::Pipeline;
use crate::passes::manager::{Runner, Settings, StopAt};
use crate::runtime::{Program, graph_function};
use crate::value::Value;
use serde_json::Value as Json;
use std::process::{Command, Stdio};
use std::sync::Arc;

/// What counts as the fault.
pub enum Fault {
    /// The passes or the verifier fail with this signature; empty: with any error.
    Fails(String),
    /// A function gives another answer after the passes than before them.
    Answer {
        /// The function.
        entry: String,
        /// Its arguments, encoded, so that no call can change them for the next.
        arguments: Vec<Json>,
    },
    /// A command says so by its status. For bisection a failing command means bad, for reduction a command that succeeds.
    Command {
        /// The command; `%s` stands for a file with the IR, which is standard input too.
        text: String,
        /// Whether status 0 means that the fault is there.
        success_is_bad: bool,
    },
}

/// Decides whether a module shows the fault.
pub struct Oracle {
    /// The ops.
    pub registry: Arc<Registry>,
    /// What the verifier demands.
    pub strictness: Strictness,
    /// The fault.
    pub fault: Fault,
    /// Settings of the passes.
    pub settings: Settings,
}

impl Oracle {
    /// A comparison of answers to a call.
    pub fn answer(entry: &str, arguments: &[Value]) -> Result<Fault> {
        let arguments = arguments.iter().map(encode).collect::<Result<_>>()?;
        Ok(Fault::Answer { entry: entry.to_string(), arguments })
    }

    /// Runs the passes over a copy. The module, how many passes ran, and the error.
    pub fn transform(
        &self,
        module: &Module,
        pipeline: &Pipeline,
        stop: Option<StopAt>,
    ) -> (Module, usize, Result<()>) {
        let mut copy = module.clone();
        let mut sink = std::io::sink();
        let settings = Settings { stop, verify: Some(self.strictness), ..self.settings.clone() };
        let mut runner = Runner::new(&self.registry, settings, &mut sink);
        let result = runner.run(pipeline, &mut copy).map(|_| ());
        let executed = runner.executed();
        (copy, executed, result)
    }

    /// Whether the fault shows.
    pub fn is_bad(&self, module: &Module, pipeline: &Pipeline, stop: Option<StopAt>) -> Result<bool> {
        let (after, _, result) = self.transform(module, pipeline, stop);
        match &self.fault {
            Fault::Fails(wanted) => {
                Ok(result.err().is_some_and(|e| wanted.is_empty() || pass_error_signature(&e) == *wanted))
            }
            // Passes that fail give no answer: that is another fault.
            Fault::Answer { entry, arguments } => {
                if result.is_err() {
                    return Ok(false);
                }
                let before = self.call(module, entry, arguments);
                let after = self.call(&after, entry, arguments);
                Ok(differ(&before, &after))
            }
            Fault::Command { text, success_is_bad } => {
                if result.is_err() && !success_is_bad {
                    return Ok(true);
                }
                let shown = if *success_is_bad && pipeline.steps.is_empty() { module } else { &after };
                Ok(run_command(text, shown)? == *success_is_bad)
            }
        }
    }

    fn call(&self, module: &Module, entry: &str, arguments: &[Json]) -> Result<Value> {
        let values = arguments.iter().map(super::case::decode).collect::<Result<Vec<_>>>()?;
        let module = runnable(module);
        let only = module.functions.keys().next().filter(|_| module.functions.len() == 1).copied();
        let program = Program::with(module, None, Arc::clone(&self.registry));
        let run = Run::silent();
        let entry = only.map_or(entry, |name| name.as_str());
        crate::diag::panics::catch("the program", || program.run(entry, values, &run)).and_then(|r| r)
    }
}

/// A graph without a name gets one, with a schema from its types.
pub(super) fn runnable(module: &Module) -> Module {
    let mut module = module.clone();
    if let Some(function) = module.functions.shift_remove(&Symbol::new("")) {
        let function = graph_function("graph", function.graph);
        module.functions.insert(function.name, function);
    }
    module
}

/// Answers differ in value, in class of exception, or in that only one is an exception.
pub(super) fn differ(before: &Result<Value>, after: &Result<Value>) -> bool {
    match (before, after) {
        (Ok(a), Ok(b)) => match encode(a) {
            Ok(expected) => compare(&expected, b, None).is_err(),
            Err(_) => a.to_text() != b.to_text(),
        },
        (Err(a), Err(b)) => a.report().class != b.report().class,
        _ => true,
    }
}

/// What makes two failures the same: the message without numbers and names of values, and the place of a panic.
pub(super) fn pass_error_signature(error: &Diagnostic) -> String {
    let mut text = String::new();
    let place = error.report().notes.iter().find(|n| n.starts_with("the panic was raised at"));
    let first_note = if error.kind() == ErrorKind::Verify { error.report().notes.first() } else { None };
    for part in std::iter::once(&error.report().message).chain(first_note) {
        let mut last = ' ';
        for c in part.chars() {
            // `%x.1` and `17` may differ from one input to a smaller one.
            if c.is_ascii_digit() && (last.is_ascii_digit() || last == '#') {
                continue;
            }
            last = if c.is_ascii_digit() { '#' } else { c };
            text.push(last);
        }
    }
    let words: Vec<&str> =
        text.split_whitespace().map(|w| if w.starts_with('%') { "%" } else { w }).collect();
    format!("{:?} {} {}", error.kind(), words.join(" "), place.map_or("", String::as_str))
}

/// Runs a shell command on IR; whether it succeeds.
fn run_command(text: &str, module: &Module) -> Result<bool> {
    let folder =
        files::Temporary::new("oracle").map_err(|e| Diagnostic::input(format!("a temporary folder: {e}")))?;
    let file = &folder.path().join("input.ir");
    let mut ir = Vec::new();
    // Writing to memory does not fail.
    let _ = module.write_text(&mut ir, &PrintOptions::default());
    let failed = |e: std::io::Error| Diagnostic::input(format!("{}: {e}", file.display()));
    files::create(file, &ir).map_err(failed)?;
    let stdin = files::open(file).map_err(failed)?;
    let command = text.replace("%s", &file.display().to_string());
    let status = Command::new("sh")
        .args(["-c", &command])
        .stdin(stdin)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .map_err(|e| Diagnostic::input(format!("'{text}' cannot be started: {e}")))?;
    Ok(status.success())
}
