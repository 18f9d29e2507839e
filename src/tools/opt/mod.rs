//! `flambeau opt`: parses a module, runs passes over it, prints it. `options.rs` has the options, `work.rs` the work
//! with one module; docs/tools.md explains both.

mod bisect;
mod expected;
mod page;
pub mod reproducer;
mod validate;
mod options;
mod read;
mod work;

use super::io::Io;
use super::numerics;
use crate::diag::{Result, Source, render};
use crate::ir::{Module, PrintOptions};
use read::{Input, input};

pub use options::{DiagnosticForm, Options, join_timing};
pub(super) use read::read_source;
pub use read::{read_loaded, read_module_with, read_program};

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    if options.help_passes {
        io.print(&io.toolkit.passes().help());
        return Ok(true);
    }
    let replayed;
    let (options, text) = match &options.run_reproducer {
        Some(file) => {
            let case = reproducer::read(&io.read_text(file)?)?;
            replayed = options.replaying(&case);
            (&replayed, Some(case))
        }
        None => (options, None),
    };
    options.threads.set();
    let mut toolkit = io.toolkit_with(&options.dialect)?;
    if let Some(case) = &text {
        for (name, text) in &case.dialects {
            toolkit = toolkit.dialect_text(&Source::new(name.as_str(), text.as_str()));
        }
        toolkit.check()?;
    }
    let registry = toolkit.registry();
    let mut pipeline = options.numerics.pipeline(&options.passes, &toolkit)?;
    if let Some(file) = &options.rules {
        let file = io.path(file);
        let mut dialects = Vec::new();
        for dialect in &options.dialect {
            dialects.push(io.read_text(dialect)?);
        }
        dialects.extend(text.iter().flat_map(|case| &case.dialects).map(|(_, text)| text.clone()));
        for odd in super::rules::check_file(&file, registry, &dialects)? {
            io.message(&render::human(&odd));
        }
        if !pipeline.set_default("rules", &file.display().to_string()) {
            io.message("warning: the pipeline has no `simplify`, which is what takes rules\n");
        }
    }
    numerics::warn_left_out(&pipeline, io)?;
    options.check_names(&pipeline, &toolkit)?;
    if options.dump_pipeline {
        io.message(&format!("{}\n", pipeline.to_text()));
    }
    let input = match text {
        Some(case) => Input::text(case.name, case.text),
        None => input(&options.file, io)?,
    };
    let work = work::Work { options, registry, pipeline: &pipeline };
    if options.bisect.is_some() {
        return bisect::run(&work, &input, io);
    }
    work.all(&input, io)
}

/// Writes a module as graph text.
pub fn print_module(module: &Module, no_locations: bool, io: &mut Io<'_>) {
    let options = if no_locations { PrintOptions::bare() } else { PrintOptions::default() };
    // A closed pipe is not a failure of the command.
    let _ = module.write_text(io.out, &options);
}
