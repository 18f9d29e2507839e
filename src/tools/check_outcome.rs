//! What `flambeau check` says of a form of a case.

use super::case::Raises;
use super::gradients::Learned;
use crate::backends::FusionReport;
use crate::runtime::PlanReport;
use serde_json::Value as Json;

/// A form in which a case carries its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Form {
    /// A saved archive.
    Pt,
    /// TorchScript source.
    Source,
    /// Graph text.
    Graph,
}

/// How a case or a form of it came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Nothing of it can run alone.
    Skipped,
    /// The recorded answer.
    Passed,
    /// Something that it needs is missing, and is named.
    Unsupported,
    /// It failed.
    Error,
    /// Another answer.
    Wrong,
}

/// What one form of a case gave.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Which form.
    pub form: Form,
    /// How it came out.
    pub status: Status,
    /// Why it failed or was skipped.
    pub message: String,
    /// The program's own answer, encoded.
    pub returns: Option<Json>,
    /// Or what it raised.
    pub raises: Option<Raises>,
    /// Its arguments after the call.
    pub args_after: Vec<Json>,
    /// What it printed.
    pub stdout: String,
    /// What became of its fusion groups.
    pub fusion: FusionReport,
    /// What became of its calls, where it has plans.
    pub plans: PlanReport,
    /// Gradients and training, where the case asks for them.
    pub learned: Learned,
}
