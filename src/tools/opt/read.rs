//! Modules from files of any form and from text. It knows nothing of passes and of what is done with a module.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Registry, Run, result_type};
use crate::ir::{Graph, Module, Naming, OpId, ParseOptions, ParsedModule, parse_module};
use crate::runtime::Program;
use crate::tools::io::Io;
use crate::tools::load::{self, Loaded};
use crate::tools::prepare;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// What is worked on: text, or a file that is not text.
pub(super) struct Input {
    pub(super) name: String,
    pub(super) source: Option<Arc<Source>>,
    pub(super) file: Option<PathBuf>,
}

impl Input {
    pub(super) fn text(name: String, text: String) -> Input {
        Input { source: Some(Source::new(name.as_str(), text)), name, file: None }
    }
}

pub(super) fn input(file: &Path, io: &mut Io<'_>) -> Result<Input> {
    if file != Path::new("-") && !load::is_text(&io.path(file))? {
        return Ok(Input { name: file.display().to_string(), source: None, file: Some(io.path(file)) });
    }
    let name = if file == Path::new("-") { "<stdin>".to_string() } else { file.display().to_string() };
    Ok(Input::text(name, io.read_text(file)?))
}

/// A module from a file of any form, and the model where the file is an archive; graph text is verified.
pub fn read_program(file: &Path, registry: &Arc<Registry>, io: &mut Io<'_>) -> Result<Program> {
    read_loaded(file, registry, io).map(|loaded| loaded.program)
}

/// The same, with what the file says of inputs.
pub fn read_loaded(file: &Path, registry: &Arc<Registry>, io: &mut Io<'_>) -> Result<Loaded> {
    let input = input(file, io)?;
    let Some(source) = &input.source else { return archive(&input, registry) };
    let parsed = read_text(source, registry, false, false).map_err(fold)?;
    prepare::verify(&parsed, registry)?;
    Ok(Program::with(parsed.module, None, Arc::clone(registry)).into())
}

/// A module from a file of any form, as it is: nothing is verified.
pub fn read_module_with(file: &Path, registry: &Arc<Registry>, io: &mut Io<'_>) -> Result<Module> {
    let input = input(file, io)?;
    let Some(source) = &input.source else { return Ok(archive(&input, registry)?.program.module().clone()) };
    let parsed = read_text(source, registry, false, false);
    parsed.map(|p| p.module).map_err(fold)
}

/// A module from a text.
pub(in crate::tools) fn read_source(source: &Arc<Source>, registry: &Arc<Registry>) -> Result<Module> {
    read_text(source, registry, false, false).map(|p| p.module).map_err(fold)
}

pub(super) fn archive(input: &Input, registry: &Arc<Registry>) -> Result<Loaded> {
    match &input.file {
        Some(file) => load::load_model(file, &Run::default(), registry),
        None => Err(Diagnostic::internal("an input without a file")),
    }
}

/// Several errors as one, the others as its notes.
pub(super) fn fold(mut errors: Vec<Diagnostic>) -> Diagnostic {
    let rest = errors.split_off(errors.len().min(1));
    let first = errors.pop().unwrap_or_else(|| Diagnostic::internal("the parser gave no error"));
    rest.iter().fold(first, |first, other| first.note(other.to_string()))
}

/// A module from graph text or TorchScript source. Results without a stated type get that of their op's schema; a hand-written
/// graph is numbered as PyTorch would number it, a dump keeps its names.
pub(super) fn read_text(
    source: &Arc<Source>,
    registry: &Arc<Registry>,
    drop_locations: bool,
    show_symbols: bool,
) -> std::result::Result<ParsedModule, Vec<Diagnostic>> {
    if !load::is_graph(source.text()) {
        let text = source.text();
        if text.trim().is_empty() {
            let error = Diagnostic::input(format!("{} is empty", source.name()));
            return Err(vec![error.hint("give TorchScript source or a graph")]);
        }
        let module = crate::frontend::script::compile_source(registry, source).map_err(|e| vec![e])?;
        return Ok(ParsedModule { module, ..ParsedModule::default() });
    }
    let result_type = |graph: &Graph, op: OpId, n: usize| result_type(registry, graph, op, n);
    let options = ParseOptions {
        result_types: Some(&result_type),
        naming: Naming::Auto,
        drop_locations,
        show_symbols,
        record_places: true,
    };
    parse_module(source, &options)
}
