//! Options of `flambeau check`. They know nothing of what is done with them.

use super::cache::PlanCacheOptions;
use super::check_outcome::Form;
use super::check_strides::Order;
use super::inputs::InputOptions;
use super::limits::LimitOptions;
use super::numerics::Numerics;
use super::prepare::{DeviceOptions, GuardOptions, PlanOptions};
use super::threads::ThreadOptions;
use clap::Args;
use std::path::PathBuf;

/// Options of `flambeau check`.
#[derive(Args, Debug)]
pub struct Options {
    /// Case files (one JSON object a line), case folders (with a case.json, as examples/record.py writes them), and models: a
    /// model's answer under the default passes is compared with that of the program as saved
    #[arg(required = true, value_name = "FILE")]
    pub(super) files: Vec<PathBuf>,
    /// Run this form of each case only
    #[arg(long, value_name = "FORM")]
    pub(super) from: Option<Form>,
    /// Run cases whose name contains this text only
    #[arg(long, value_name = "TEXT")]
    pub(super) filter: Option<String>,
    /// Print one JSON object for each case and form, with the program's own answer
    #[arg(long)]
    pub(super) json: bool,
    /// Cases to run in parallel [default: one for each thread]
    #[arg(long, value_name = "N")]
    pub(super) jobs: Option<usize>,
    #[command(flatten)]
    pub(super) threads: ThreadOptions,
    /// Print failures of kind `wrong` only
    #[arg(long)]
    pub(super) wrong_only: bool,
    /// Run each program with these passes on: 'default'
    #[arg(long, value_name = "PIPELINE", default_value = "")]
    pub(super) passes: String,
    #[command(flatten)]
    pub(super) device: DeviceOptions,
    #[command(flatten)]
    pub(super) plans: PlanOptions,
    #[command(flatten)]
    pub(super) guards: GuardOptions,
    #[command(flatten)]
    pub(super) plan_cache: PlanCacheOptions,
    #[command(flatten)]
    pub(super) inputs: InputOptions,
    /// The function of a model to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    pub(super) entry: String,
    /// Compare the value of each op of the graph with those that a folder records, and name the first that differs
    #[arg(long)]
    pub(super) ops: bool,
    #[command(flatten)]
    pub(super) numerics: Numerics,
    /// Verify each program after each pass
    #[arg(long)]
    pub(super) verify_each: bool,
    /// Also run each program after each pass, and name the first pass that breaks it
    #[arg(long)]
    pub(super) check_each: bool,
    /// Compare what aliases and is written with what the alias analysis says
    #[arg(long)]
    pub(super) aliases: bool,
    /// Compare what ops write and alias with the marks of their schemas, and what they give with what their rows infer; a
    /// difference is an error
    #[arg(long)]
    pub(super) audit: bool,
    /// Compare what the ops of plans give with the types that the graphs of plans say; a difference is an error
    #[arg(long)]
    pub(super) types: bool,
    /// How tensor arguments lie in memory: answers are the same
    #[arg(long, value_name = "ORDER", value_enum, default_value_t)]
    pub(super) order: Order,
    /// Seed of the random generator at each call
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(super) seed: u64,
    /// Let parameters of loaded modules require gradients, also where a case asks for none
    #[arg(long)]
    pub(super) grad: bool,
    /// Compile the backward of fusion groups of any size, where otherwise small ones are recorded op by op
    #[arg(long)]
    pub(super) small_gradients: bool,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    pub(super) dialect: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}
