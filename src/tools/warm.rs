//! `flambeau warm`: compiles what a model needs for certain arguments and keeps it on disk with its code and plans, so that the next process
//! compiles nothing. It calls the model once, as `run` would, and throws the answer away.

use super::cache::{self, CacheOptions};
use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::load_shown;
use super::numerics::Numerics;
use super::prepare::{self, PlanOptions};
use super::threads::ThreadOptions;
use crate::backends::cache::{CacheReport, Kind};
use crate::diag::Result;
use crate::dialects::Run;
use clap::Args;
use std::path::PathBuf;
use std::time::Instant;

/// Options of `flambeau warm`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    #[command(flatten)]
    inputs: InputOptions,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Passes to run first
    #[arg(long, value_name = "PIPELINE", default_value = "default")]
    passes: String,
    #[command(flatten)]
    plans: PlanOptions,
    #[command(flatten)]
    numerics: Numerics,
    #[command(flatten)]
    threads: ThreadOptions,
    /// Seed of the random generator, and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Record gradients; without it the program runs as under torch.no_grad()
    #[arg(long)]
    grad: bool,
}

/// Runs the command. Gives whether all that was compiled is kept.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    CacheOptions::default().set(io);
    let caches = cache::required()?;
    options.threads.set();
    let reports = || caches.each_ref().map(|cache| cache.report());
    let before = reports();
    let run = Run::silent();
    run.set_grad_enabled(options.grad);
    run.seed(options.seed);
    let pipeline = options.numerics.checked_pipeline(&options.passes, io)?;
    let toolkit = io.toolkit_with(&options.dialect)?;
    let loaded = load_shown(&io.path(&options.file), &run, toolkit.registry(), io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = options.inputs.resolve(&loaded, &entry, io)?;
    io.message(&given.note().unwrap_or_default());
    let name = options.file.display().to_string();
    let program = prepare::transformed(
        &loaded.program,
        &pipeline,
        prepare::called(&loaded.program, &entry),
        &name,
        io.err,
    )?;
    let program = options.plans.apply(program, &options.passes);
    let arguments = given.values(options.seed, io.directory)?;
    let begin = Instant::now();
    let answer = program.run(&entry, arguments, &run);
    let (after, time) = (reports(), begin.elapsed());
    answer?;
    let [kernels, plans, modules] = [0, 1, 2].map(|n| Became::between(&before[n], &after[n]));
    io.print(&format!(
        "{name}: {} compiled, {} were there; {} kept, {} were there; {} kept, {} were there; the call took {:.1} ms\n",
        cache::counted(kernels.made, Kind::Kernels),
        kernels.there,
        cache::counted(plans.made, Kind::Plans),
        plans.there,
        cache::counted(modules.made, Kind::Modules),
        modules.there,
        time.as_secs_f64() * 1e3
    ));
    for (reason, n) in &program.plan_report().unkept {
        io.message(&format!("{} not kept: {reason}\n", cache::counted(*n, Kind::Plans)));
    }
    caches.iter().zip(&after).for_each(|(cache, report)| io.message(&report.to_text(cache)));
    Ok([kernels, plans, modules].iter().all(|became| became.is_kept))
}

/// What became of a cache during the call.
struct Became {
    made: u64,
    there: u64,
    /// Whether all that was made is kept.
    is_kept: bool,
}

impl Became {
    fn between(before: &CacheReport, after: &CacheReport) -> Became {
        Became {
            made: after.written + after.unwritten - before.written - before.unwritten,
            there: after.loaded - before.loaded,
            is_kept: after.unwritten == before.unwritten,
        }
    }
}
