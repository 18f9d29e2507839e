//! Passes: graph to graph. One file a pass; its name is the file's, the flag's and the test folder's.
//!
//! A pass is a plain function; [`TABLE`] has one row for each, the [`manager`] runs them by name. Passes know rows
//! and analyses; they do not know how graphs are run or lowered. `docs/add-a-pass.md` adds one from nothing.

mod context;
pub mod manager;
mod pass;

mod cse;
mod dce;
mod fuse;
mod inline;
mod lower_all_tuples;
mod peephole;
mod simplify;

use crate::diag::Result;

pub use context::Context;
pub use fuse::fuse;
pub use manager::{PassSet, Pipeline};
pub use pass::{GraphRun, ModuleRun, OptionKind, OptionValue, Options, Pass, PassOption, Run};

/// All passes, one row each, in the order of `--help-passes`.
pub static TABLE: &[Pass] = &[
    Pass::graph("cse", "Replaces pure ops by an equal op that is in scope", cse::run).counts_steps(),
    Pass::graph("dce", "Removes ops whose results nobody uses and that do nothing else", dce::run)
        .counts_steps(),
    Pass::graph("fuse", "Gathers elementwise tensor work in fusion groups", fuse::run),
    Pass::graph("inline", "Replaces calls of functions and methods by their graphs", inline::run)
        .reads_functions()
        .counts_steps(),
    Pass::graph("lower-all-tuples", "Removes pairs of making and taking apart a tuple", lower_all_tuples::run)
        .counts_steps(),
    Pass::graph("peephole", "Applies PyTorch's peephole rules, saturated in an e-graph", peephole::run),
    Pass::graph("simplify", "Applies the built-in rewrite rules, saturated in an e-graph", simplify::run),
];

/// Pipelines with a name: the stages before fusion, and everything.
pub static NAMED: &[(&str, &str)] = &[
    ("cleanup", "cse,dce"),
    ("optimize", "inline,lower-all-tuples,cse,simplify,dce"),
    ("default", "inline,lower-all-tuples,cse,simplify,dce,fuse"),
];

/// Reads a pipeline of built-in passes: `'inline,cse,dce'`.
pub fn parse(text: &str) -> Result<Pipeline> {
    Pipeline::parse(text, &PassSet::builtin())
}
