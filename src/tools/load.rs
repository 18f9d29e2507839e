//! From files and texts to programs that run.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Env, Registry};
use crate::frontend::{archive, script};
use crate::ir::{Module, ParseOptions, parse_graph_source};
use crate::runtime::{Program, graph_function};
use crate::value::Value;
use std::path::Path;

/// Compiles TorchScript source; `name` is what errors call it.
pub fn load_source(name: &str, text: &str) -> Result<Program> {
    let registry = Registry::builtin();
    let module = script::compile_source(&registry, &Source::new(name, text))?;
    Ok(Program::with(module, None, registry))
}

/// Loads a saved archive. Objects that restore themselves (`__setstate__`) do so here.
pub fn load_archive(bytes: impl Into<Vec<u8>>, env: &Env) -> Result<Program> {
    start_archive(archive::Archive::from_bytes(bytes)?, env)
}

fn start_archive(archive: archive::Archive, env: &Env) -> Result<Program> {
    let registry = Registry::builtin();
    let model = archive::load(&registry, archive)?;
    let instance = match &model.root {
        Value::Object(object) => object.clone(),
        other => {
            return Err(Diagnostic::input(format!("the archive holds a {}, not a module", other.kind_name())));
        }
    };
    let program = Program::with(model.module, Some(instance), registry);
    for (object, state) in model.states {
        if let Value::Object(object) = object {
            program.call_method(&object, "__setstate__", vec![state], env)?;
        }
    }
    Ok(program)
}

/// A graph text as a program of one function with a name. `origin` is what errors call the text.
pub fn load_graph(origin: &str, text: &str, name: &str) -> Result<Program> {
    let source = Source::new(origin, text);
    let graph = parse_graph_source(&source, &ParseOptions::default()).map_err(|mut errors| {
        if errors.is_empty() { Diagnostic::internal("the parser gave no error") } else { errors.remove(0) }
    })?;
    let function = graph_function(name, graph);
    let mut module = Module::default();
    module.functions.insert(function.name, function);
    Ok(Program::new(module))
}

/// Loads a file by what is in it: an archive, TorchScript source, or graph text.
pub fn load_file(path: &Path, env: &Env) -> Result<Program> {
    let shown = path.display().to_string();
    let named = |mut error: Diagnostic| {
        if error.report().span.is_none() && !error.message().starts_with(&shown) {
            let message = format!("{shown}: {}", error.message());
            error.report_mut().message = message;
        }
        error
    };
    if path.is_dir() {
        return Err(Diagnostic::input(format!("{shown} is a directory, not a model"))
            .hint("give a .pt archive, a file of TorchScript source or a graph"));
    }
    if path.metadata().is_ok_and(|m| m.len() > MAX_TEXT) || is_archive(path) {
        return start_archive(archive::Archive::open(path)?, env).map_err(named);
    }
    let bytes = std::fs::read(path).map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?;
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(Diagnostic::input(format!("{shown} is empty")));
    }
    let text = String::from_utf8(bytes).map_err(|_| {
        Diagnostic::input(format!("{shown} is neither an archive nor text"))
            .hint("give a .pt archive of torch.jit.save, a file of TorchScript source or a graph")
    })?;
    if text.trim_start().starts_with("graph(") || text.trim_start().starts_with("graph @") {
        load_graph(&shown, &text, "graph")
    } else {
        load_source(&shown, &text)
    }
}

/// Text files larger than this are taken for archives, which are read with care.
const MAX_TEXT: u64 = 256 << 20;

/// Whether a file begins as zip files do, or is named like an archive.
fn is_archive(path: &Path) -> bool {
    use std::io::Read;
    let mut start = [0u8; 4];
    let begins = std::fs::File::open(path).and_then(|mut f| f.read_exact(&mut start)).is_ok();
    let named = path.extension().is_some_and(|e| e == "pt" || e == "pth" || e == "zip" || e == "ptl");
    named || (begins && start.starts_with(b"PK"))
}
