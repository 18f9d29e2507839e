//! From files and texts to programs that run.

use super::case::Case;
use super::io::Io;
use super::prepare;
use super::progress::Progress;
use crate::diag::{Diagnostic, Result, Source, files};
use crate::dialects::{Registry, Run, result_type};
use crate::frontend::archive::DebugRanges;
use crate::frontend::{archive, dialect, script};
use crate::ir::{Graph, MAX_TEXT, Module, OpId, ParseOptions, Symbol, parse_module, too_large};
use crate::resources::memory;
use crate::runtime::{Origins, Program, graph_function};
use crate::value::Value;
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The built-in ops and those of dialect files, whose paths start from `directory`.
pub fn registry(files: &[PathBuf], directory: &Path) -> Result<Arc<Registry>> {
    let mut registry = Registry::builtin();
    for file in files {
        let shown = file.display().to_string();
        let text = files::read_text(&directory.join(file))
            .map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?;
        let source = Source::new(shown, text);
        if file.extension().is_some_and(|end| end == "grad") {
            let mut with = Registry::clone(&registry);
            with.add_grads(&source)?;
            registry = Arc::new(with);
        } else {
            registry = dialect::load(&registry, &source)?;
        }
    }
    Ok(registry)
}

/// Compiles TorchScript source; `name` is what errors call it.
pub fn load_source(name: &str, text: &str) -> Result<Program> {
    load_source_with(name, text, &Registry::builtin())
}

/// The same for source that may use other ops than the built-in ones.
pub fn load_source_with(name: &str, text: &str, registry: &Arc<Registry>) -> Result<Program> {
    let module = script::compile_source(registry, &Source::new(name, text))?;
    Ok(Program::with(module, None, Arc::clone(registry)))
}

/// Loads a saved archive. Objects that restore themselves (`__setstate__`) do so here.
pub fn load_archive(bytes: impl Into<Vec<u8>>, run: &Run) -> Result<Program> {
    load_archive_with(bytes, run, &Registry::builtin())
}

/// The same for an archive whose code may use other ops than the built-in ones.
pub fn load_archive_with(bytes: impl Into<Vec<u8>>, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    start_archive(archive::Archive::from_bytes(bytes)?, run, registry).map(|loaded| loaded.program)
}

/// A program with what its file says besides.
pub struct Loaded {
    /// The program.
    pub program: Program,
    /// What a traced model was traced with: sizes, no elements.
    pub traced: Option<archive::Pickle>,
}

impl From<Program> for Loaded {
    fn from(program: Program) -> Loaded {
        Loaded { program, traced: None }
    }
}

fn start_archive(archive: archive::Archive, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    // A damaged record only costs the sizes that it has.
    let traced = archive.traced_inputs().ok().flatten();
    let model = archive::load(registry, archive)?;
    let program = start(model.module, &model.root, registry)?;
    program.set_origins(origins(model.debug_tables));
    restore(&program, model.states, run)?;
    Ok(Loaded { program, traced })
}

/// The program of a loaded model.
pub(super) fn start(module: Module, root: &Value, registry: &Arc<Registry>) -> Result<Program> {
    match root {
        Value::Object(object) => Ok(Program::with(module, Some(object.clone()), Arc::clone(registry))),
        other => Err(Diagnostic::input(format!("the archive holds a {}, not a module", other.kind_name()))),
    }
}

/// Lets objects restore themselves.
pub(super) fn restore(program: &Program, states: Vec<(Value, Value)>, run: &Run) -> Result<()> {
    for (object, state) in states {
        if let Value::Object(object) = object {
            program.call_method(&object, "__setstate__", vec![state], run)?;
        }
    }
    Ok(())
}

/// The program of a case: of its archive, else of its source, else of its graph.
pub(super) fn load_case(case: &Case, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    match (&case.archive, &case.source, &case.graph) {
        (Some(bytes), ..) => load_archive_with(bytes.clone(), run, registry),
        (None, Some(source), _) => load_source_with("<string>", source, registry),
        (None, None, Some(graph)) => load_graph_with("graph", graph, &case.entry, registry),
        (None, None, None) => Err(Diagnostic::input(format!("case {} carries no program", case.name))),
    }
}

/// Makes the tensors of a loaded module require no gradients: inference writes to parameters freely, and records nothing.
pub fn detach_parameters(program: &Program) {
    let mut work: Vec<Value> = program.instance().cloned().map(Value::Object).into_iter().collect();
    let mut seen = BTreeSet::new();
    while let Some(value) = work.pop() {
        match value {
            // A leaf's own flag; clearing it cannot fail.
            Value::Tensor(t) if t.grad_node().is_none() => drop(t.set_requires_grad(false)),
            Value::Object(object) if seen.insert(object.id()) => {
                work.extend(object.fields().into_iter().map(|(_, field)| field));
            }
            Value::List(list) if seen.insert(list.id()) => work.extend(list.to_vec()),
            Value::Dict(dict) if seen.insert(dict.id()) => work.extend(dict.entries().values().cloned()),
            Value::Tuple(tuple) => work.extend(tuple.items().iter().cloned()),
            _ => {}
        }
    }
}

/// Finds the original place of a place in an archive's code. Tables are decoded when an error first asks.
pub(super) fn origins(tables: Vec<(String, Vec<u8>)>) -> Origins {
    let tables: IndexMap<String, (Vec<u8>, OnceLock<DebugRanges>)> =
        tables.into_iter().map(|(file, bytes)| (file, (bytes, OnceLock::new()))).collect();
    Box::new(move |span| {
        let (bytes, ranges) = tables.get(span.source().name())?;
        // A damaged table only costs the original places.
        let ranges = ranges.get_or_init(|| DebugRanges::from_bytes(bytes).unwrap_or_default());
        ranges.origin(span.start())
    })
}

/// A graph text as a program of one function with a name. `origin` is what errors call the text.
pub fn load_graph(origin: &str, text: &str, name: &str) -> Result<Program> {
    load_graph_with(origin, text, name, &Registry::builtin())
}

/// The same for a graph that may use other ops than the built-in ones. A text that breaks a law of the IR is refused with
/// the law and the line.
pub fn load_graph_with(origin: &str, text: &str, name: &str, registry: &Arc<Registry>) -> Result<Program> {
    let source = Source::new(origin, text);
    let types = |graph: &Graph, op: OpId, n: usize| result_type(registry, graph, op, n);
    let options = ParseOptions { result_types: Some(&types), record_places: true, ..ParseOptions::default() };
    let mut parsed = parse_module(&source, &options).map_err(|mut errors| {
        if errors.is_empty() { Diagnostic::internal("the parser gave no error") } else { errors.remove(0) }
    })?;
    prepare::verify(&parsed, registry)?;
    // A graph that stands alone has no name of its own.
    let functions = &mut parsed.module.functions;
    if functions.len() == 1
        && let Some(function) = functions.shift_remove(&Symbol::new(""))
    {
        let function = graph_function(name, function.graph);
        functions.insert(function.name, function);
    }
    Ok(Program::with(parsed.module, None, Arc::clone(registry)))
}

/// Loads a file by what is in it: an archive, TorchScript source, or graph text.
pub fn load_file(path: &Path, run: &Run) -> Result<Program> {
    load_file_with(path, run, &Registry::builtin())
}

/// Loads a file whose code may use other ops than the built-in ones.
pub fn load_file_with(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    load_model(path, run, registry).map(|loaded| loaded.program)
}

/// The same, with what the file says of inputs.
pub fn load_model(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    load_path(path, run, registry, &|path| archive::Archive::open(path))
}

/// The same for a person, who sees how far the reading of gigabytes is.
pub fn load_shown(path: &Path, run: &Run, registry: &Arc<Registry>, io: &Io<'_>) -> Result<Loaded> {
    let shown = io.terminal.process && io.terminal.err;
    load_path(path, run, registry, &|path| match path.metadata() {
        Ok(meta) if shown && meta.len() >= LARGE => read_shown(path, meta.len()),
        _ => archive::Archive::open(path),
    })
}

/// Files from this size on take long enough to read that a person wants to see it.
const LARGE: u64 = 1 << 30;

/// Reads an archive piece by piece.
fn read_shown(path: &Path, length: u64) -> Result<archive::Archive> {
    use std::io::Read;
    let named = |e: String| Diagnostic::input(format!("{}: {e}", path.display()));
    let limits = archive::Limits::default();
    if length > limits.file_bytes {
        // The reader itself says what is wrong with it.
        return archive::Archive::open(path);
    }
    let progress = Progress::bytes("loading", length, true);
    let mut bytes: Vec<u8> = memory::reserved(length as usize)?;
    let mut file = files::open(path).map_err(|e| named(e.to_string()))?.take(length);
    loop {
        let read = Read::by_ref(&mut file).take(16 << 20).read_to_end(&mut bytes);
        match read.map_err(|e| named(e.to_string()))? {
            0 => break,
            n => progress.advance(n as u64),
        }
    }
    progress.end();
    archive::Archive::from_bytes(bytes).map_err(|mut error| {
        let message = format!("{}: {}", path.display(), error.message());
        error.report_mut().message = message;
        error
    })
}

/// The same, and an archive is mapped into memory: its tensors lie in the file until they are written.
///
/// # Safety
/// See [`archive::Archive::map`]: nobody may change the file as long as anything of the program lives.
#[allow(unsafe_code, reason = "hands on what mapping a file asks of its caller")]
pub unsafe fn load_mapped(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    load_path(path, run, registry, &|path| {
        // SAFETY: the caller's promise.
        unsafe { archive::Archive::map(path, archive::Limits::default()) }
    })
}

fn load_path(
    path: &Path,
    run: &Run,
    registry: &Arc<Registry>,
    open: &dyn Fn(&Path) -> Result<archive::Archive>,
) -> Result<Loaded> {
    let shown = path.display().to_string();
    let named = |mut error: Diagnostic| {
        if error.report().span.is_none() && !error.message().starts_with(&shown) {
            let message = format!("{shown}: {}", error.message());
            error.report_mut().message = message;
        }
        error
    };
    if !is_text(path)? {
        return start_archive(open(path)?, run, registry).map_err(named);
    }
    let bytes = files::read(path, MAX_TEXT as u64).map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Diagnostic::input(format!("{shown} is neither an archive nor text"))
            .hint("give a .pt archive of torch.jit.save, a file of TorchScript source or a graph")
    })?;
    load_text_with(&shown, &text, registry).map(Loaded::from)
}

/// Loads graph text or TorchScript source, whichever it is.
pub fn load_text(name: &str, text: &str) -> Result<Program> {
    load_text_with(name, text, &Registry::builtin())
}

fn load_text_with(name: &str, text: &str, registry: &Arc<Registry>) -> Result<Program> {
    if text.trim().is_empty() {
        return Err(Diagnostic::input(format!("{name} is empty")).hint("give TorchScript source or a graph"));
    }
    if is_graph(text) {
        load_graph_with(name, text, "graph", registry)
    } else {
        load_source_with(name, text, registry)
    }
}

/// Whether a text is graph text and not TorchScript source: its first line that is no comment tells.
pub fn is_graph(text: &str) -> bool {
    let comment = |line: &&str| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with("//") || line.starts_with('#')
    };
    let first = text.lines().find(|line| !comment(line)).unwrap_or("").trim_start();
    // A class of Python has no dots in its name.
    let starts = ["graph(", "graph (", "graph @", "schema ", "class __torch__.", "interface __torch__."];
    let starts = starts.iter().chain(&["enum __torch__.", "named_tuple __torch__.", "resource "]);
    starts.into_iter().any(|start| first.starts_with(start))
}

/// Whether a file is text and no archive. Fails for what cannot be a model at all.
pub fn is_text(path: &Path) -> Result<bool> {
    let shown = path.display();
    if path.is_dir() {
        return Err(Diagnostic::input(format!("{shown} is a directory, not a model"))
            .hint("give a .pt archive, a file of TorchScript source or a graph"));
    }
    let meta = path.metadata().map_err(|e| Diagnostic::input(format!("{shown}: {e}")))?;
    if is_archive(path) || (meta.len() > SMALL && !begins_as_text(path)) {
        return Ok(false);
    }
    refuse_stranger(path)?;
    if meta.len() > MAX_TEXT as u64 {
        return Err(Diagnostic::input(format!("{shown}: {}", too_large(meta.len()))));
    }
    Ok(true)
}

/// Fails for a file of a known kind that is no program, by its first bytes. Some binary files happen to be valid text, and some
/// texts are known not to be programs.
fn refuse_stranger(path: &Path) -> Result<()> {
    use std::io::Read;
    let mut start = Vec::new();
    if files::open(path).and_then(|file| file.take(512).read_to_end(&mut start)).is_err() {
        // Whoever reads the file tells the error.
        return Ok(());
    }
    let is_text = std::str::from_utf8(&start).map_or_else(|error| error.error_len().is_none(), |_| true);
    // No text has control characters before the tab.
    let control = start.iter().any(|byte| *byte < 9);
    let odd = !is_text || control || start.starts_with(b"<") || start.starts_with(b"version https");
    if odd && let Some(kind) = archive::recognize::recognize(&start) {
        return Err(Diagnostic::input(format!("{} is {}", path.display(), kind.what)).hint(kind.hint));
    }
    if start.trim_ascii_start().starts_with(b"{") {
        let error = Diagnostic::input(format!("{} is JSON, and no model", path.display()));
        return Err(
            error.hint("case files are for `flambeau check` and `flambeau bench`, arguments for --args")
        );
    }
    Ok(())
}

/// Files up to this size are text unless they are archives; what is in larger ones is looked at before they are read.
const SMALL: u64 = 256 << 20;

/// Whether the first bytes of a file are characters that text has.
fn begins_as_text(path: &Path) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    let read = files::open(path).and_then(|f| f.take(4096).read_to_end(&mut start));
    // The end may be within a character.
    let is_text = match std::str::from_utf8(&start) {
        Ok(_) => true,
        Err(error) => error.error_len().is_none(),
    };
    read.is_ok() && is_text && !start.contains(&0)
}

/// Whether a file is a model and no file of cases, by its name or else by what is in it.
pub fn is_model(file: &Path) -> bool {
    match file.extension().and_then(|e| e.to_str()) {
        _ if file.is_dir() => false,
        Some("json" | "jsonl") => false,
        Some("pt" | "pth" | "ptl" | "zip" | "py" | "ir") => true,
        _ => !files::begins_with(file, b"{"),
    }
}

/// Whether a file begins as zip files do or as mobile models in flatbuffers, or is named like an archive.
fn is_archive(path: &Path) -> bool {
    use std::io::Read;
    let mut start = Vec::new();
    // A file that ends early is a broken archive all the same.
    let begins = files::open(path).and_then(|f| f.take(8).read_to_end(&mut start)).is_ok();
    let named = path.extension().is_some_and(|e| e == "pt" || e == "pth" || e == "zip" || e == "ptl");
    named || (begins && (start.starts_with(b"PK") || start.ends_with(b"PTMF")))
}
