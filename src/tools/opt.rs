//! `flambeau opt`: parses a module, runs passes over it, prints it.

use super::io::Io;
use super::load;
use crate::diag::{Diagnostic, Result, render};
use crate::dialects::{Env, Registry};
use crate::ir::{Function, Graph, Module, NoLaws, PrintOptions, verify_graph};
use crate::passes::{self, pipeline};
use clap::Args;
use std::path::{Path, PathBuf};

/// Words of `flambeau opt`.
#[derive(Args, Debug)]
pub struct Options {
    /// Graph text, TorchScript source or a .pt archive; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// Passes and named pipelines in order: 'inline,cse,dce'
    #[arg(long, value_name = "PIPELINE", default_value = "")]
    passes: String,
    /// List the passes and named pipelines
    #[arg(long)]
    help_passes: bool,
    /// Leave out source locations
    #[arg(long)]
    no_locations: bool,
    /// Do not verify between passes
    #[arg(long)]
    no_verify_each: bool,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    if options.help_passes {
        io.print(&pipeline::help());
        return Ok(true);
    }
    let pipeline = passes::parse(&options.passes)?;
    let mut module = read_module(&options.file, io)?;
    if !verify(&module, io) {
        return Ok(false);
    }
    let registry = Registry::builtin();
    for step in pipeline.steps() {
        step.run(&mut module, &registry)?;
        if !options.no_verify_each && !verify(&module, io) {
            io.message(&format!("error: the module is not valid after pass '{}'\n", step.names().join(",")));
            return Ok(false);
        }
    }
    io.print(&print_module(&module, options.no_locations));
    Ok(true)
}

/// Checks every graph and reports what is wrong.
fn verify(module: &Module, io: &mut Io<'_>) -> bool {
    let mut valid = true;
    for function in module.functions.values() {
        for violation in verify_graph(&function.graph, &NoLaws, None) {
            io.message(&render::human(&violation));
            valid = false;
        }
    }
    valid
}

/// A module from a file of any form.
pub fn read_module(file: &Path, io: &mut Io<'_>) -> Result<Module> {
    let path = io.path(file);
    if file != Path::new("-") && !load::is_text(&path)? {
        return Ok(load::load_file(&path, &Env::default())?.module().clone());
    }
    let text = io.read_text(file)?;
    let name = if file == Path::new("-") { "<stdin>".to_string() } else { file.display().to_string() };
    Ok(load::load_text(&name, &text)?.module().clone())
}

/// The text of a module: its one anonymous graph as PyTorch prints it, several by name.
pub fn print_module(module: &Module, no_locations: bool) -> String {
    let options = if no_locations { PrintOptions::bare() } else { PrintOptions::default() };
    let functions: Vec<&Function> = module.functions.values().collect();
    match functions.as_slice() {
        [only] => only.graph.to_text(&options),
        many => {
            let named = |f: &&Function| named_graph(f.name.as_str(), &f.graph, &options);
            many.iter().map(named).collect::<Vec<_>>().join("\n")
        }
    }
}

/// `graph @name(...)`.
fn named_graph(name: &str, graph: &Graph, options: &PrintOptions) -> String {
    graph.to_text(options).replacen("graph(", &format!("graph @{name}("), 1)
}

/// Fails where a path cannot be used at all, in words for a person.
pub fn unusable(path: &Path, reason: impl std::fmt::Display) -> Diagnostic {
    Diagnostic::input(format!("{}: {reason}", path.display()))
}
