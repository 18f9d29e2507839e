//! `flambeau reduce`: makes a failing input small by itself. A candidate is kept if it still shows the fault: the same panic, the
//! same diagnostic, another answer than without passes, or whatever a user's command calls interesting.

mod best;
mod shrink;

use super::inputs;
use super::io::Io;
use super::numerics::Numerics;
use super::opt::{self, reproducer};
use super::oracle::{Fault, Oracle, pass_error_signature};
use super::progress::Progress;
use crate::diag::{Diagnostic, ErrorKind, Result, Source};
use crate::dialects::{Registry, Strictness};
use crate::ir::Module;
use crate::passes::Pipeline;
use crate::passes::manager::Settings;
use crate::tools::limits::LimitOptions;
use crate::tools::threads::ThreadOptions;
use best::{Best, count_ops};
use clap::Args;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `flambeau reduce`.
#[derive(Args, Debug)]
pub struct Options {
    /// Graph text, TorchScript source, a .pt archive, or a reproducer that `opt` wrote
    file: PathBuf,
    /// The passes that show the fault
    #[arg(long, value_name = "PIPELINE", default_value = "")]
    passes: String,
    #[command(flatten)]
    numerics: Numerics,
    /// A command that succeeds for IR that shows the fault; %s stands for a file with it, else it is standard input
    #[arg(long, value_name = "COMMAND")]
    test: Option<String>,
    /// Arguments of a call whose answer the passes change: .json, .npy, .npz or .safetensors
    #[arg(long, value_name = "FILE", num_args = 1..)]
    args: Vec<PathBuf>,
    /// The function to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Reject ops that do not exist or do not accept their operands
    #[arg(long)]
    strict: bool,
    /// Where the smallest failing input so far is written [default: FILE.reduced.ir]; `-` writes it once to standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Maximum number of tests
    #[arg(long, value_name = "N", default_value_t = 20_000)]
    max_tests: usize,
    /// Print only the result
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Runs the command with the given passes.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    options.threads.set();
    let Start { module, passes, registry, dialects } = read(options, io)?;
    let pipeline = options.numerics.checked_pipeline(&passes, io)?;
    let strictness = if options.strict { Strictness::Ops } else { Strictness::Carry };
    let mut oracle =
        Oracle { registry, strictness, fault: Fault::Fails(String::new()), settings: Settings::default() };
    let what = find_fault(&mut oracle, options, &module, &pipeline, io)?;
    let output = options.output.clone().unwrap_or_else(|| {
        let mut name = options.file.as_os_str().to_os_string();
        name.push(".reduced.ir");
        PathBuf::from(name)
    });
    let pipeline = if options.test.is_some() { Pipeline::default() } else { pipeline };
    let (start_ops, start_passes) = (count_ops(&module), pipeline.names().len());
    let mut best = Best {
        oracle: &oracle,
        module,
        pipeline,
        tests: 0,
        max_tests: options.max_tests,
        output: &output,
        what: &what,
        dialects,
        quiet: options.quiet,
        said: usize::MAX,
        progress: Progress::new("reduce: tests", options.max_tests, io),
        io,
    };
    best.keep()?;
    shrink::all(&mut best)?;
    best.progress.end();
    let (ops, passes, tests) = (count_ops(&best.module), best.pipeline.names().len(), best.tests);
    let text = best.text();
    if output == Path::new("-") {
        io.print(&text);
    } else {
        io.message(&format!("the smallest is in {}\n", output.display()));
    }
    io.message(&format!(
        "reduced {start_ops} ops to {ops}, {start_passes} passes to {passes}, in {tests} tests: {what}\n"
    ));
    Ok(true)
}

/// What is reduced.
struct Start {
    module: Module,
    passes: String,
    registry: Arc<Registry>,
    dialects: Vec<(String, String)>,
}

/// The module, the passes and the dialects; a reproducer brings its own.
fn read(options: &Options, io: &mut Io<'_>) -> Result<Start> {
    let mut dialects = Vec::new();
    for file in &options.dialect {
        dialects.push((file.display().to_string(), io.read_text(file)?));
    }
    let mut case = None;
    if super::load::is_text(&io.path(&options.file))?
        && let Ok(found) = reproducer::read(&io.read_text(&options.file)?)
    {
        dialects.extend(found.dialects.iter().cloned());
        case = Some(found);
    }
    let mut toolkit = io.toolkit.clone();
    for (name, text) in &dialects {
        toolkit = toolkit.dialect_text(&Source::new(name.as_str(), text.as_str()));
    }
    toolkit.check()?;
    let registry = Arc::clone(toolkit.registry());
    let (module, own) = match case {
        Some(case) => (opt::read_source(&Source::new(case.name, case.text), &registry)?, case.pipeline),
        None => (opt::read_module_with(&options.file, &registry, io)?, String::new()),
    };
    let passes = if options.passes.is_empty() { own } else { options.passes.clone() };
    Ok(Start { module, passes, registry, dialects })
}

/// Decides what the fault is and makes sure that the input shows it.
fn find_fault(
    oracle: &mut Oracle,
    options: &Options,
    module: &Module,
    pipeline: &Pipeline,
    io: &Io<'_>,
) -> Result<String> {
    if let Some(command) = &options.test {
        oracle.fault = Fault::Command { text: command.clone(), success_is_bad: true };
        if !oracle.is_bad(module, &Pipeline::default(), None)? {
            return Err(nothing(format!("'{command}' fails for the input itself")));
        }
        return Ok(format!("'{command}' succeeds"));
    }
    let (_, _, result) = oracle.transform(module, pipeline, None);
    if let Err(error) = result {
        let mut said = error.message().to_string();
        if let Some(note) = error.report().notes.first() {
            said.push_str(&format!(" ({note})"));
        }
        oracle.fault = Fault::Fails(pass_error_signature(&error));
        return Ok(said);
    }
    if options.args.is_empty() {
        let error = nothing("the passes do not fail".to_string());
        return Err(error.hint("give --args FILE to compare answers, or --test COMMAND"));
    }
    let mut arguments = Vec::new();
    for file in &options.args {
        arguments.extend(inputs::read_arguments(&io.path(file))?);
    }
    oracle.fault = Oracle::answer(&options.entry, &arguments)?;
    if !oracle.is_bad(module, pipeline, None)? {
        return Err(nothing("the answer is the same with and without the passes".to_string()));
    }
    Ok("the answer differs from the one without passes".to_string())
}

fn nothing(why: String) -> Diagnostic {
    Diagnostic::new(ErrorKind::Input, format!("there is nothing to reduce: {why}"))
}
