//! `flambeau run`: loads a file, calls a function of it, prints the answer.

use super::cache::{self, CacheOptions};
use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::{load_mapped, load_shown};
use super::numerics::Numerics;
use super::observe::Watch;
use super::prepare::{ChangeOptions, DeviceOptions, GuardOptions, PlanOptions};
use super::threads::ThreadOptions;
use super::trace::{self, Names, Record};
use super::weights::WeightOptions;
use super::{debug_state, outputs, prepare};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::lowering::pass as lowering;
use crate::passes::manager::Settings;
use crate::runtime::Program;
use crate::tools::limits::LimitOptions;
use crate::value::Value;
use crate::value::python_text::python_text;
use clap::{Args, ValueEnum};
use parking_lot::Mutex;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

/// Options of `flambeau run`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    /// Call the module as Python's m(x) does: its hooks run before and after forward
    #[arg(long, conflicts_with = "entry")]
    hooks: bool,
    #[command(flatten)]
    inputs: InputOptions,
    /// Write the answer to a file: .npz, .npy, .safetensors or .json; parts are named by their place: 0.boxes
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How the answer is printed [default: python on a terminal, script elsewhere]
    #[arg(long, value_name = "FORM")]
    print: Option<Printed>,
    /// Print every element of every tensor, as Python does with an unlimited print threshold
    #[arg(long)]
    full: bool,
    #[command(flatten)]
    device: DeviceOptions,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Passes to run first
    #[arg(long, value_name = "PIPELINE", default_value = "default")]
    passes: String,
    #[command(flatten)]
    plans: PlanOptions,
    #[command(flatten)]
    guards: GuardOptions,
    #[command(flatten)]
    numerics: Numerics,
    /// Map the archive into memory instead of reading it: its tensors are in the file, which must not be changed during that time
    #[arg(long)]
    mmap: bool,
    #[command(flatten)]
    weights: WeightOptions,
    #[command(flatten)]
    cache: CacheOptions,
    #[command(flatten)]
    threads: ThreadOptions,
    /// Also print how long loading and the call took, statistics of plans, guards and fusion groups, and the seed of the
    /// random generator where it was drawn from
    #[arg(long)]
    time: bool,
    /// Log passes, including those that make plans, and under `fusion` the decisions about fusion groups: 'fuse:>fusion'
    /// [default: FLAMBEAU_LOG]
    #[arg(long, value_name = "SPEC")]
    log: Option<String>,
    #[command(flatten)]
    changes: ChangeOptions,
    /// Write the call as a trace for ui.perfetto.dev: ops and kernels as they run, by a plan or without one, with time and bytes
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Write what the executor holds after the call to a file as JSON: the plans of each function with the kind of arguments, graph, code
    /// and guards of each, and what runs without a plan
    #[arg(long, value_name = "FILE")]
    debug_state: Option<PathBuf>,
    /// Seed of the random generator [default: from the system's entropy] and of the numbers of --input [default: 0]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// Record gradients; without it the program runs as under torch.no_grad()
    #[arg(long)]
    grad: bool,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Calls the entry; or the module with its hooks, of which it is said where they do not run.
fn called_value(
    options: &Options,
    program: &Program,
    entry: &str,
    arguments: Vec<Value>,
    run: &Run,
    io: &mut Io<'_>,
) -> Result<Value> {
    match program.instance() {
        Some(module) if options.hooks => program.call_module(module, arguments, Vec::new(), run),
        None if options.hooks => {
            Err(Diagnostic::usage("--hooks is for modules: the file has functions alone"))
        }
        Some(module) => {
            let class = program.module().class(module.class());
            if entry == "forward" && class.is_some_and(|class| class.has_hooks()) {
                io.message("note: the module has hooks, which do not run with forward; --hooks runs them, as m(x) in Python does\n");
            }
            program.run(entry, arguments, run)
        }
        None => program.run(entry, arguments, run),
    }
}

/// How an answer is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Printed {
    /// As Python's print shows it; of large tensors the edges
    Python,
    /// As TorchScript's print shows it, all elements
    Script,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<()> {
    let device = options.device.open(io)?;
    if let Some(output) = &options.output {
        outputs::check_name(output)?;
    }
    options.threads.set();
    options.cache.set(io);
    let (stdout, printed) = io.program_output();
    let run = Run::new(stdout);
    run.set_grad_enabled(options.grad);
    if let Some(seed) = options.seed {
        run.seed(seed);
    }
    let start = Instant::now();
    let pipeline = options.numerics.checked_pipeline(&options.passes, io)?;
    let toolkit = io.toolkit_with(&options.dialect)?;
    let registry = toolkit.registry();
    let log = prepare::log_spec(options.log.as_deref(), toolkit.passes())?;
    let file = io.path(&options.file);
    let mut loaded = match options.mmap {
        // SAFETY: the user asks for it with --mmap, whose help says that the file must not change.
        #[allow(unsafe_code, reason = "maps a file where the user says that it stays unchanged")]
        true => unsafe { load_mapped(&file, &run, registry)? },
        false => load_shown(&file, &run, registry, io)?,
    };
    options.weights.apply(&loaded.program, io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = options.inputs.resolve(&loaded, &entry, io)?;
    io.message(&given.note().unwrap_or_default());
    let limits = options.changes.limits(toolkit.passes())?;
    let settings =
        Settings { log: log.clone(), limits: limits.clone(), ..prepare::called(&loaded.program, &entry) };
    let name = options.file.display().to_string();
    if pipeline.names().contains(&lowering::PASS.name) {
        // Loops are made for sizes, and those of the inputs are known.
        let arguments = given.values(options.seed.unwrap_or(0), io.directory)?;
        let name = loaded.program.function(&entry).map_or(entry.clone(), |f| f.name.to_string());
        loaded.program = loaded.program.transformed(|module, _| {
            inputs::annotate(module, &name, &arguments);
            Ok(())
        })?;
    }
    let program = prepare::transformed(&loaded.program, &pipeline, settings, &name, io.err)?;
    let program = options.guards.apply(options.plans.apply(program, &options.passes));
    loaded.program = prepare::placed(program.logging(&log).limiting(&limits), device.as_ref());
    let ready = start.elapsed();
    let arguments = given.values(options.seed.unwrap_or(0), io.directory)?;
    let record = options.trace.as_ref().map(|_| watched(&run));
    let start = Instant::now();
    let value = called_value(options, &loaded.program, &entry, arguments, &run, io);
    let called = start.elapsed();
    run.watch(None);
    io.message(&loaded.program.take_log());
    io.print_kept(&printed);
    // Also where the call failed: that is when they are asked for.
    if let (Some(file), Some(record)) = (&options.trace, record) {
        let names = Names::of(&loaded.program);
        let text = trace::chrome(&record.lock(), &names, (&name, &options.passes));
        write(file, &text, io)?;
        io.message(&format!("{}: a trace for ui.perfetto.dev\n", file.display()));
    }
    if let Some(file) = &options.debug_state {
        write(file, &format!("{:#}\n", debug_state::of(&loaded.program)), io)?;
    }
    show(options, &value?, io)?;
    for warning in run.take_warnings() {
        io.message(&format!("warning: {warning}\n"));
    }
    if options.time {
        let (ready, called) = (ready.as_secs_f64() * 1e3, called.as_secs_f64() * 1e3);
        io.message(&format!("loaded in {ready:.1} ms, called in {called:.3} ms\n"));
        io.message(&loaded.program.plan_report().to_text());
        io.message(&loaded.program.fusion_report().to_text());
        io.message(&cache::report());
        if let Some(seed) = run.random_seed() {
            io.message(&format!("random seed {seed}\n"));
        }
    }
    options.guards.check(&loaded.program)
}

/// What happens in the next call of a run.
fn watched(run: &Run) -> Arc<Mutex<Record>> {
    let record: Arc<Mutex<Record>> = Arc::default();
    record.lock().start();
    let sink = Arc::clone(&record);
    run.watch(Some(Watch::of_plans(move |at, event| sink.lock().take_in(at.graph, event))));
    record
}

fn write(file: &Path, text: &str, io: &Io<'_>) -> Result<()> {
    std::fs::write(io.path(file), text).map_err(|e| Diagnostic::input(format!("{}: {e}", file.display())))
}

/// Prints the answer, or writes it to the file that was asked for and says what is in it.
fn show(options: &Options, value: &Value, io: &mut Io<'_>) -> Result<()> {
    if let Some(output) = &options.output {
        let written = outputs::write(&io.path(output), value)?;
        io.message(&format!("{}: {written}\n", output.display()));
        return Ok(());
    }
    let usual = if options.full || io.terminal.out { Printed::Python } else { Printed::Script };
    let mut answer = String::new();
    match options.print.unwrap_or(usual) {
        Printed::Python => answer = python_text(value, options.full)?,
        Printed::Script => value.write_text(&mut answer)?,
    }
    answer.push('\n');
    io.print(&answer);
    Ok(())
}
