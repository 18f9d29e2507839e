//! `flambeau opt`: parses a module, runs passes over it, prints it.

use super::io::Io;
use super::load;
use crate::diag::{Diagnostic, Result, Source, render};
use crate::dialects::{Env, Registry, Strictness, result_type};
use crate::ir::{
    Graph, Module, Naming, NoLaws, OpId, ParseOptions, PrintOptions, parse_module, verify_module,
};
use crate::passes::{self, PassSet};
use crate::passes::manager::{Runner, Settings};
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
        io.print(&PassSet::builtin().help());
        return Ok(true);
    }
    let pipeline = passes::parse(&options.passes)?;
    let mut module = read_module(&options.file, io)?;
    if !verify(&module, io) {
        return Ok(false);
    }
    let registry = Registry::builtin();
    let verify = (!options.no_verify_each).then_some(Strictness::Carry);
    let settings = Settings { verify, ..Settings::default() };
    let mut runner = Runner::new(&registry, settings, io.err);
    if let Err(error) = runner.run(&pipeline, &mut module) {
        let violations = runner.violations().to_vec();
        for violation in &violations {
            io.message(&render::human(violation));
        }
        io.message(&render::human(&error));
        return Ok(false);
    }
    print_module(&module, options.no_locations, io);
    Ok(true)
}

/// Checks every graph and reports what is wrong.
fn verify(module: &Module, io: &mut Io<'_>) -> bool {
    let violations = verify_module(module, &NoLaws, &|_| None);
    for violation in &violations {
        io.message(&render::human(violation));
    }
    violations.is_empty()
}

/// A module from a file of any form.
pub fn read_module(file: &Path, io: &mut Io<'_>) -> Result<Module> {
    let path = io.path(file);
    if file != Path::new("-") && !load::is_text(&path)? {
        return Ok(load::load_file(&path, &Env::default())?.module().clone());
    }
    let text = io.read_text(file)?;
    let name = if file == Path::new("-") { "<stdin>".to_string() } else { file.display().to_string() };
    if load::is_graph(&text) {
        return read_graphs(&name, text);
    }
    Ok(load::load_text(&name, &text)?.module().clone())
}

/// A module from graph text. Results without a stated type get that of their op's schema; a hand-written graph
/// is numbered as PyTorch would number it, one that PyTorch printed keeps its names.
fn read_graphs(name: &str, text: String) -> Result<Module> {
    let registry = Registry::builtin();
    let result_type = |graph: &Graph, op: OpId, n: usize| result_type(&registry, graph, op, n);
    let options =
        ParseOptions { result_types: Some(&result_type), naming: Naming::Auto, ..ParseOptions::default() };
    let parsed = parse_module(&Source::new(name, text), &options);
    parsed.map(|parsed| parsed.module).map_err(|mut errors| {
        let rest = errors.split_off(errors.len().min(1));
        let first = errors.pop().unwrap_or_else(|| Diagnostic::internal("the parser gave no error"));
        rest.iter().fold(first, |first, other| first.note(other.to_string()))
    })
}

/// Writes a module as graph text.
pub fn print_module(module: &Module, no_locations: bool, io: &mut Io<'_>) {
    let options = if no_locations { PrintOptions::bare() } else { PrintOptions::default() };
    // A closed pipe is no failure of the command.
    let _ = module.write_text(io.out, &options);
}
