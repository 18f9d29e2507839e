//! Passes: graph to graph. One file a pass; its name is the file's, the flag's and the test folder's.
//!
//! A pass is a plain function; [`TABLE`] lists all of them, [`pipeline`] runs them by name. Passes know rows and
//! analyses; they do not know how graphs are run or lowered.

pub mod pipeline;

mod batch_mm;
mod constant_pooling;
mod constant_propagation;
mod cse;
mod dce;
mod decompose_ops;
mod fuse;
mod fuse_linear;
mod inline;
mod loop_unrolling;
mod lower_all_tuples;
mod lower_simple_tuples;
mod remove_mutation;
mod simplify;

mod constants;
mod copy;
mod tuples;

use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Graph, Module};

pub use fuse::fuse;
pub use pipeline::{Pipeline, parse};

/// What a pass may read besides the graph it changes.
pub struct Context<'a> {
    /// The ops.
    pub registry: &'a Registry,
    /// The rest of the program: the functions that the graph calls.
    pub module: &'a Module,
}

/// A pass over one graph. It says whether it changed anything.
pub type Run = fn(&mut Graph, &Context<'_>) -> Result<bool>;

/// A pass and its line in `--help-passes`.
pub struct Pass {
    /// `dce`; `_` and `-` are the same in names.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What it does.
    pub run: Run,
}

/// All passes by name.
#[rustfmt::skip]
pub static TABLE: &[Pass] = &[
    pass("batch-mm", "Joins sums of matrix products, and products with a common side", batch_mm::run),
    pass("constant-loop-unrolling", "Unrolls loops over a known number of turns", loop_unrolling::constant_only),
    pass("constant-pooling", "Keeps one of equal constants, at the top of the graph", constant_pooling::run),
    pass("constant-propagation", "Computes now what can be computed now", constant_propagation::run),
    pass("constant-propagation-immutable-types", "The same for numbers and text only", constant_propagation::immutable_types),
    pass("cse", "Replaces an op by an equal one that is in scope, where nobody can tell", cse::run),
    pass("dce", "Removes ops whose results nobody uses and that do nothing else", dce::run),
    pass("decompose-ops", "Takes addmm apart", decompose_ops::run),
    pass("fuse", "Gathers elementwise tensor work in fusion groups", fuse::run),
    pass("fuse-linear", "Finds linear in products with a transposed weight", fuse_linear::run),
    pass("inline", "Replaces calls of functions and methods by their graphs", inline::run),
    pass("loop-unrolling", "Unrolls counted loops, short ones to the end", loop_unrolling::run),
    pass("lower-all-tuples", "Removes tuples, at the borders of the graph too", lower_all_tuples::run),
    pass("lower-simple-tuples", "Removes pairs of making and taking apart a tuple", lower_simple_tuples::run),
    pass("remove-list-mutation", "Makes lists full that are filled right after they were made", remove_mutation::lists),
    pass("remove-mutation", "Replaces writes to new objects by ops that give new ones", remove_mutation::run),
    pass("remove-tensor-mutation", "The same for tensors", remove_mutation::tensors),
    pass("simplify", "Applies the built-in rewrite rules, saturated in an e-graph", simplify::run),
];

const fn pass(name: &'static str, summary: &'static str, run: Run) -> Pass {
    Pass { name, summary, run }
}
