//! `flambeau bench`: times the programs of case files: building, the first call, and calls once warm.

use super::bench_rewrite;
use super::case::{self, Case};
use super::check::fusion_json;
use super::io::Io;
use super::numerics::Numerics;
use super::{load, prepare};
use crate::backends::FusionReport;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::passes::manager::Settings;
use crate::passes::{PassSet, Pipeline};
use crate::resources::pool;
use crate::runtime::Program;
use crate::tools::limits::LimitOptions;
use crate::value::Value;
use clap::{Args, Subcommand};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Words of `flambeau bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    what: Option<What>,
    /// Case files, one JSON object a line
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Threads for the work inside of an op
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// How long to call each program once it is warm
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    seconds: f64,
    /// Run cases whose name contains this text only
    #[arg(long, value_name = "TEXT")]
    filter: Option<String>,
    /// Passes to run first
    #[arg(long, value_name = "PIPELINE", default_value = "default")]
    passes: String,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    numerics: Numerics,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
    /// Seed of the random generator at the first call
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Record gradients; without it programs run as under torch.no_grad()
    #[arg(long)]
    grad: bool,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

#[derive(Subcommand, Debug)]
enum What {
    /// Time the simplifier on growing graphs: saturation, the greedy driver and mlir-opt
    Rewrite(bench_rewrite::Options),
}

/// Calls that are timed at least, and at most.
const CALLS: std::ops::RangeInclusive<usize> = 5..=20_000;

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    if let Some(What::Rewrite(options)) = &options.what {
        return bench_rewrite::run(options, io);
    }
    pool::set_threads(options.threads.max(1));
    let pipeline = options.numerics.checked_pipeline(&options.passes, &PassSet::builtin(), io)?;
    let mut all_ran = true;
    if !options.json {
        io.print(&format!(
            "{:<24} {:>12} {:>12} {:>12} {:>12}\n",
            "case", "build ms", "first ms", "min us", "median us"
        ));
    }
    for file in &options.files {
        for case in Case::read_all(&io.path(file))? {
            if options.filter.as_ref().is_some_and(|f| !case.name.contains(f.as_str())) {
                continue;
            }
            match measure(options, &pipeline, &case) {
                Ok(times) => io.print(&times.line(&case.name, options.json)),
                Err(error) => {
                    all_ran = false;
                    let line = json!({"name": case.name, "error": error.to_string()});
                    io.print(&if options.json {
                        format!("{line}\n")
                    } else {
                        format!("{:<24} {error}\n", case.name)
                    });
                }
            }
        }
    }
    Ok(all_ran)
}

struct Times {
    fusion: FusionReport,
    build: Duration,
    first: Duration,
    min: Duration,
    median: Duration,
    calls: usize,
}

impl Times {
    fn line(&self, name: &str, as_json: bool) -> String {
        let us = |d: Duration| d.as_secs_f64() * 1e6;
        if as_json {
            let line = json!({"name": name, "build_us": us(self.build), "first_us": us(self.first),
                "min_us": us(self.min), "median_us": us(self.median), "calls": self.calls,
                "fusion": fusion_json(&self.fusion)});
            return format!("{line}\n");
        }
        let (build, first) = (us(self.build) / 1e3, us(self.first) / 1e3);
        format!("{name:<24} {build:>12.3} {first:>12.3} {:>12.2} {:>12.2}\n", us(self.min), us(self.median))
    }
}

fn measure(options: &Options, pipeline: &Pipeline, case: &Case) -> Result<Times> {
    let _watched = options.limits.watch();
    let run = options.limits.silent();
    let _bounded = run.install();
    run.set_grad_enabled(options.grad);
    run.seed(options.seed);
    let arguments = case.args.iter().map(case::decode).collect::<Result<Vec<Value>>>()?;
    let start = Instant::now();
    let program = build(options, pipeline, case, &run)?;
    let build = start.elapsed();
    let call = || {
        let start = Instant::now();
        let result = program.run(&case.entry, arguments.clone(), &run);
        // The answer is given back outside of the measured time, as peers do.
        (start.elapsed(), result)
    };
    let (first, result) = call();
    result?;
    for _ in 0..3 {
        call().1?;
    }
    let mut times = Vec::new();
    let end = Instant::now() + Duration::from_secs_f64(options.seconds.clamp(0.0, 3600.0));
    while (Instant::now() < end || times.len() < *CALLS.start()) && times.len() < *CALLS.end() {
        times.push(call().0);
    }
    times.sort();
    let (min, median) = (times[0], times[times.len() / 2]);
    Ok(Times { fusion: program.fusion_report(), build, first, min, median, calls: times.len() })
}

fn build(options: &Options, pipeline: &Pipeline, case: &Case, run: &Run) -> Result<Program> {
    let registry = load::registry(&options.dialect, Path::new(""))?;
    let program = match (&case.archive, &case.source, &case.graph) {
        (Some(bytes), ..) => load::load_archive_with(bytes.clone(), run, &registry)?,
        (None, Some(source), _) => load::load_source_with("<string>", source, &registry)?,
        (None, None, Some(graph)) => load::load_graph_with("graph", graph, &case.entry, &registry)?,
        (None, None, None) => {
            return Err(Diagnostic::input(format!("case {} carries no program", case.name)));
        }
    };
    prepare::transformed(&program, pipeline, Settings::default(), &case.name, &mut std::io::stderr())
}
