//! The command line: words in, exit status out. 0 done, 1 bad input or failed work, 2 wrong usage.

use super::{check, run};
use crate::diag::{Diagnostic, render};
use clap::{Parser, Subcommand};
use std::ffi::OsString;

/// Runs saved TorchScript models without libtorch, and takes them apart.
#[derive(Parser, Debug)]
#[command(name = "flambeau", version, about, long_about = None, arg_required_else_help = true)]
struct Words {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a model: load a file, call a function of it, print the answer
    Run(run::Options),
    /// Replay recorded cases and compare the answers
    Check(check::Options),
}

/// Runs a command and gives the exit status.
pub fn main(words: impl IntoIterator<Item = OsString>) -> i32 {
    let words = match Words::try_parse_from(words) {
        Ok(words) => words,
        Err(error) => {
            let status = if error.use_stderr() { 2 } else { 0 };
            let _ = error.print();
            return status;
        }
    };
    let result = match &words.command {
        Command::Run(options) => run::run(options).map(|()| true),
        Command::Check(options) => check::run(options),
    };
    match result {
        Ok(true) => 0,
        Ok(false) => 1,
        Err(error) => {
            show(&error);
            1
        }
    }
}

/// Writes an error to standard error.
fn show(error: &Diagnostic) {
    eprint!("{}", render::human(error));
}
