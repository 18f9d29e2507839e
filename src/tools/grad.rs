//! `flambeau grad check`: compiles the derivatives of all operators.

use super::io::Io;
use crate::autodiff::Cells;
use crate::diag::{Result, Source};
use crate::frontend::script::compile_source;
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Words of `flambeau grad`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Compile all derivatives and name those that do not compile
    Check {
        /// Load a dialect definition file, or a file of derivatives (.grad)
        #[arg(long, value_name = "FILE")]
        dialect: Vec<PathBuf>,
    },
}

/// Runs the command; gives whether everything compiles.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let Action::Check { dialect } = &options.action;
    let toolkit = io.toolkit_with(dialect)?;
    let registry = toolkit.registry();
    let (mut ops, mut functions, mut refused) = (0, 0, 0);
    for (op, texts) in Cells::of(registry).texts() {
        ops += 1;
        let texts = match texts {
            Ok(texts) => texts,
            Err(error) => {
                refused += 1;
                io.print(&format!("REFUSED {}: {}\n", op.full_name(), error.message()));
                continue;
            }
        };
        for text in texts {
            functions += 1;
            if let Err(error) = compile_source(registry, &Source::new("derivative", text.as_str())) {
                refused += 1;
                let line = error.report().span.as_ref().map_or(0, |span| span.line_column().0);
                let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
                io.print(&format!("REFUSED {}: {}: `{line}`\n", op.full_name(), error.message()));
            }
        }
    }
    io.print(&format!("{ops} operators, {functions} functions, {refused} refused\n"));
    Ok(refused == 0)
}
