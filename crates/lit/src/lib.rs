//! lit: runs test files by the `RUN:` lines in them.
//!
//! LLVM's keywords and substitutions. The tools of a [`Config`] run in this process, `FileCheck` and a handful of
//! shell builtins too; other commands are programs. [`main`] is the command, [`run_file`] one test. Must not know
//! what the tools do.

#![forbid(unsafe_code)]

mod builtin;
mod changed;
mod cli;
mod conditions;
mod config;
mod difference;
mod discover;
mod exec;
mod feature;
mod inside;
pub mod lint;
mod local;
mod mutate;
mod outcome;
mod process;
mod python;
mod python_value;
mod record;
mod report;
mod run;
mod script;
mod shell;
mod substitute;
mod surroundings;
mod syntax;
mod reporter;
mod update;
mod variables;
mod wildcards;
mod args;
mod workers;

/// The programs of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

pub use cli::main;
pub use conditions::skip_reason;
pub use config::{Call, Config, Knobs, Tool, tool};
pub use outcome::{Outcome, Status};
pub use process::end_programs;
pub use record::records_folder;
pub use run::run_file;
pub use variables::with_variables;
