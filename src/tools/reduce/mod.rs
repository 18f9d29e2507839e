//! `flambeau reduce`: makes a failing input small by itself. A candidate is kept if it still shows the fault: the same panic, the
//! same diagnostic, another answer than without passes, or whatever a user's command calls interesting.

mod shrink;

use super::inputs;
use super::io::Io;
use super::numerics::Numerics;
use super::opt::{self, pass_error_signature, reproducer};
use super::oracle::{Fault, Oracle};
use super::progress::Progress;
use crate::diag::{Diagnostic, ErrorKind, Result, Source};
use crate::dialects::{Registry, Strictness};
use crate::ir::{Graph, Module, NoLaws, PrintOptions, verify_module};
use crate::passes::Pipeline;
use crate::passes::manager::Settings;
use crate::tools::limits::LimitOptions;
use crate::tools::threads::ThreadOptions;
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

fn count_ops(module: &Module) -> usize {
    module.functions.values().map(|f| ops_within(&f.graph)).sum()
}

/// The ops of a graph and of the graphs inside of its ops.
fn ops_within(graph: &Graph) -> usize {
    let ops = graph.all_ops();
    let attrs = ops.iter().flat_map(|op| graph.attrs(*op));
    // Graph text nests graphs only as deep as its parser does.
    let inner = attrs.filter_map(|(_, attr)| attr.as_graph()).map(|inner| ops_within(inner));
    ops.len() + inner.sum::<usize>()
}

/// The smallest input so far.
struct Best<'a, 'io> {
    oracle: &'a Oracle,
    module: Module,
    pipeline: Pipeline,
    tests: usize,
    max_tests: usize,
    output: &'a Path,
    what: &'a str,
    /// Names and texts of dialect files.
    dialects: Vec<(String, String)>,
    quiet: bool,
    said: usize,
    progress: Progress,
    io: &'a mut Io<'io>,
}

impl Best<'_, '_> {
    /// Whether no more tests may be made.
    fn is_over(&self) -> bool {
        self.tests >= self.max_tests
    }

    /// Whether calls keep their arguments, so that inputs may not change.
    fn has_arguments(&self) -> bool {
        matches!(self.oracle.fault, Fault::Answer { .. })
    }

    /// Takes a candidate if it still shows the fault.
    fn offer(&mut self, module: Module, pipeline: Pipeline) -> Result<bool> {
        if self.is_over() || !verify_module(&module, &NoLaws, &|_| None).is_empty() {
            return Ok(false);
        }
        self.tests += 1;
        self.progress.step();
        if !self.oracle.is_bad(&module, &pipeline, None)? {
            return Ok(false);
        }
        (self.module, self.pipeline) = (module, pipeline);
        self.keep()?;
        Ok(true)
    }

    fn offer_module(&mut self, module: Module) -> Result<bool> {
        let pipeline = self.pipeline.clone();
        self.offer(module, pipeline)
    }

    /// The best so far as a reproducer.
    fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = self.module.write_text(&mut text, &PrintOptions::default());
        reproducer::write(&reproducer::Case {
            text: String::from_utf8_lossy(&text).into_owned(),
            pipeline: self.pipeline.to_text(),
            error: self.what.to_string(),
            carries: self.oracle.strictness == Strictness::Carry,
            strict: self.oracle.strictness == Strictness::Ops,
            dialects: self.dialects.clone(),
            ..reproducer::Case::default()
        })
    }

    /// Writes the best so far, whole or not at all, so that stopping loses nothing; reports progress.
    fn keep(&mut self) -> Result<()> {
        if self.output != Path::new("-") {
            let path = self.io.path(self.output);
            let mut beside = path.clone().into_os_string();
            beside.push(".new");
            let failed = |e: std::io::Error| Diagnostic::input(format!("{}: {e}", self.output.display()));
            std::fs::write(&beside, self.text()).map_err(failed)?;
            std::fs::rename(&beside, &path).map_err(failed)?;
        }
        let ops = count_ops(&self.module);
        if !self.quiet && ops * 10 <= self.said.saturating_mul(9) {
            self.said = ops;
            let passes = self.pipeline.names().len();
            let said = format!("reduce: {ops} ops, {passes} passes after {} tests\n", self.tests);
            self.progress.hidden(|| self.io.message(&said));
        }
        Ok(())
    }
}
