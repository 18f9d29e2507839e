//! Options of `flambeau bench`. They know nothing of what is done with them.

use super::rewrite;
use crate::tools::cache::CacheOptions;
use crate::tools::inputs::InputOptions;
use crate::tools::limits::LimitOptions;
use crate::tools::numerics::Numerics;
use crate::tools::prepare::{DeviceOptions, KeptOptions, PlanOptions};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Options of `flambeau bench`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    pub(super) what: Option<What>,
    /// Models (a .pt archive, TorchScript source, graph text), case files (one JSON object a line) and case folders
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) inputs: InputOptions,
    /// Inputs of further calls, in turn with the others, as for --input: 'x=float32[1,3,160,160]'; repeat it for more. Sizes that
    /// change from call to call
    #[arg(long, value_name = "WORDS", conflicts_with = "batch")]
    pub(super) also: Vec<String>,
    /// The function or method of a model to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    pub(super) entry: String,
    /// Threads that share the work of loops; several numbers are timed one after the other: 1,2,4
    /// [default: FLAMBEAU_NUM_THREADS, else all cores]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(super) threads: Vec<usize>,
    /// First sizes of the inputs that are given by their sizes, one after the other: 1,8
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    pub(super) batch: Vec<i64>,
    /// Time another model, or other passes for the same model, alternating with each, and print the ratio: a file, or a pipeline
    /// ('none' for no passes)
    #[arg(long, value_name = "FILE|PIPELINE")]
    pub(super) baseline: Option<String>,
    /// How long to call each program once it is warm
    #[arg(long, value_name = "S", default_value_t = 1.0)]
    pub(super) seconds: f64,
    /// Calls before those that are timed, besides the first
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub(super) warmup: usize,
    /// Run cases whose name contains this text only
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Passes to run first
    #[arg(long, value_name = "PIPELINE", default_value = "default")]
    pub(super) passes: String,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    pub(super) dialect: Vec<PathBuf>,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    #[command(flatten)]
    pub(super) plans: PlanOptions,
    /// Let other threads make plans: the first call runs without, and those that are timed come once the plans are there
    #[arg(long, conflicts_with = "no_plans")]
    pub(super) plans_in_background: bool,
    #[command(flatten)]
    pub(super) kept: KeptOptions,
    #[command(flatten)]
    pub(super) cache: CacheOptions,
    #[command(flatten)]
    pub(super) numerics: Numerics,
    /// Print one JSON object a line
    #[arg(long)]
    pub(super) json: bool,
    /// Write a chart of the times
    #[arg(long, value_name = "FILE")]
    pub(super) svg: Option<PathBuf>,
    /// Show where the time of a call goes, by op and by kernel; with a FILE, do so without plans and write a trace for
    /// ui.perfetto.dev, which `translate --to html --profile FILE` draws as heat
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    pub(super) profile: Option<Option<PathBuf>>,
    /// Write a call as it is timed, with its plans, as a trace for ui.perfetto.dev: ops and kernels with time and bytes
    #[arg(long, value_name = "FILE")]
    pub(super) trace: Option<PathBuf>,
    /// Seed of the random generator at the first call, and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Record gradients; without it programs run as under torch.no_grad()
    #[arg(long)]
    pub(super) grad: bool,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

#[derive(Subcommand, Debug)]
pub(super) enum What {
    /// Time the simplifier on growing graphs: saturation, the greedy driver and mlir-opt
    Rewrite(rewrite::Options),
}
