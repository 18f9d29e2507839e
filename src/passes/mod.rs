//! Passes: graph to graph. One file a pass; its name is the file's, the flag's and the test folder's.
//!
//! A pass is a plain function; [`TABLE`] lists all of them, [`pipeline`] runs them by name. Passes know rows and
//! analyses; they do not know how graphs are run or lowered.

pub mod pipeline;

mod cse;
mod dce;
mod fuse;
mod inline;
mod lower_all_tuples;
mod propagate_shapes;
mod simplify;

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
pub static TABLE: &[Pass] = &[
    Pass { name: "cse", summary: "Replaces pure ops by an equal op that is in scope", run: cse::run },
    Pass {
        name: "dce",
        summary: "Removes ops whose results nobody uses and that do nothing else",
        run: dce::run,
    },
    Pass { name: "fuse", summary: "Gathers elementwise tensor work in fusion groups", run: fuse::run },
    Pass {
        name: "inline",
        summary: "Replaces calls of functions and methods by their graphs",
        run: inline::run,
    },
    Pass {
        name: "lower-all-tuples",
        summary: "Removes pairs of making and taking apart a tuple",
        run: lower_all_tuples::run,
    },
    Pass {
        name: "propagate-shapes",
        summary: "Writes dtypes, sizes and layouts that follow from the inputs into the types",
        run: propagate_shapes::run,
    },
    Pass {
        name: "simplify",
        summary: "Applies the built-in rewrite rules, saturated in an e-graph",
        run: simplify::run,
    },
];
