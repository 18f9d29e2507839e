//! From files and texts to programs that run, over a table of ops. Nothing here shows progress or knows a command.

use crate::diag::{Diagnostic, Result, Source, files};
use crate::dialects::{Laws, Registry, Run, Strictness, result_type};
use crate::frontend::archive::DebugRanges;
use crate::frontend::archive::{self, Compiled};
use crate::frontend::script;
use crate::ir::{
    Graph, MAX_TEXT, Module, OpId, ParseOptions, ParsedModule, Symbol, mlir, parse_module, too_large,
    verify_module,
};
use crate::runtime::{Keeper, Origins, Program, graph_function};
use crate::value::{Object, Value};
use indexmap::IndexMap;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, OnceLock};

/// Compiles TorchScript source over a table of ops; `name` is what errors call it.
pub fn load_source_with(name: &str, text: &str, registry: &Arc<Registry>) -> Result<Program> {
    let source = Source::new(name, text);
    let keeper = Keeper::installed(registry);
    let compile = || script::compile_source(registry, &source);
    let module = match &keeper {
        Some(keeper) => keeper.module(&archive::Code::of_source(&source), Box::new(compile))?,
        None => compile()?,
    };
    Ok(kept(Program::with(module, None, Arc::clone(registry)), keeper))
}

/// The program, which knows what it was compiled from where that is kept.
fn kept(program: Program, keeper: Option<Keeper>) -> Program {
    match keeper.and_then(Keeper::into_origin) {
        Some(origin) => program.with_origin(origin),
        None => program,
    }
}

/// Loads a saved archive over a table of ops. Objects that restore themselves (`__setstate__`) do so here.
pub fn load_archive_with(bytes: impl Into<Vec<u8>>, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    start_archive(archive::Archive::from_bytes(bytes)?, run, registry).map(|loaded| loaded.program)
}

/// Checks what was read from graph text against the laws of its structure and of its dialects. Ops of unknown dialects are
/// carried: they fail when they are reached. The error is the first violation, with further ones as notes.
pub fn verify(parsed: &ParsedModule, registry: &Registry) -> Result<()> {
    let laws = Laws::new(registry, Strictness::Carry);
    let found = verify_module(&parsed.module, &laws, &|name| parsed.places.get(&name).cloned());
    let mut found = found.into_iter();
    let Some(first) = found.next() else { return Ok(()) };
    Err(found.take(3).fold(first, |error, other| error.note(other.to_string())))
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

/// The program of an opened archive.
pub fn start_archive(archive: archive::Archive, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    // A damaged record only costs the sizes that it has.
    let traced = archive.traced_inputs().ok().flatten();
    let keeper = Keeper::installed(registry);
    let compiled = keeper.as_ref().map(|keeper| keeper as &dyn Compiled);
    let model = archive::load_with(registry, archive, compiled)?;
    let program = kept(start(model.module, &model.root, registry)?, keeper);
    program.set_origins(origins(model.debug_tables));
    restore(&program, model.states, run)?;
    Ok(Loaded { program, traced })
}

/// The program of a loaded model.
pub fn start(module: Module, root: &Value, registry: &Arc<Registry>) -> Result<Program> {
    match root {
        Value::Object(object) => Ok(Program::with(module, Some(object.clone()), Arc::clone(registry))),
        other => Err(Diagnostic::input(format!("the archive holds a {}, not a module", other.kind_name()))),
    }
}

/// Lets objects restore themselves.
pub fn restore(program: &Program, states: Vec<(Value, Value)>, run: &Run) -> Result<()> {
    for (object, state) in states {
        if let Value::Object(object) = object {
            program.call_method(&object, "__setstate__", vec![state], run)?;
        }
    }
    Ok(())
}

/// What objects are saved as that say so themselves: each object below `root` whose class has `__getstate__` and
/// `__setstate__`, with what the first gives, outer ones first. The counterpart of [`restore`].
pub fn saved_states(program: &Program, root: &Object, run: &Run) -> Result<Vec<(Value, Value)>> {
    let [get, set] = ["__getstate__", "__setstate__"].map(Symbol::new);
    let (mut states, mut seen) = (Vec::new(), BTreeSet::new());
    let mut work = vec![Value::Object(root.clone())];
    while let Some(value) = work.pop() {
        match &value {
            Value::Object(object) if seen.insert(object.id()) => {
                let class = program.module().class(object.class());
                if class.is_some_and(|c| c.methods.contains_key(&get) && c.methods.contains_key(&set)) {
                    let state = program.call_method(object, get.as_str(), Vec::new(), run)?;
                    work.push(state.clone());
                    states.push((value, state));
                } else {
                    work.extend(object.fields().into_iter().rev().map(|(_, field)| field));
                }
            }
            Value::Tuple(tuple) => work.extend(tuple.items().iter().rev().cloned()),
            Value::List(list) => work.extend(list.to_vec().into_iter().rev()),
            _ => {}
        }
    }
    Ok(states)
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
pub fn origins(tables: Vec<(String, Vec<u8>)>) -> Origins {
    let tables: IndexMap<String, (Vec<u8>, OnceLock<DebugRanges>)> =
        tables.into_iter().map(|(file, bytes)| (file, (bytes, OnceLock::new()))).collect();
    Box::new(move |span| {
        let (bytes, ranges) = tables.get(span.source().name())?;
        // A damaged table only costs the original places.
        let ranges = ranges.get_or_init(|| DebugRanges::from_bytes(bytes).unwrap_or_default());
        ranges.origin(span.start())
    })
}

/// A graph text as a program over a table of ops. A graph that stands alone becomes the function `name`; `origin` is what errors
/// call the text. A text that breaks a law of the IR is refused with
/// the law and the line.
pub fn load_graph_with(origin: &str, text: &str, name: &str, registry: &Arc<Registry>) -> Result<Program> {
    let source = Source::new(origin, text);
    let types = |graph: &Graph, op: OpId, n: usize| result_type(registry, graph, op, n);
    let options = ParseOptions { result_types: Some(&types), record_places: true, ..ParseOptions::default() };
    let mut parsed = parse_module(&source, &options).map_err(|mut errors| {
        if errors.is_empty() { Diagnostic::internal("the parser gave no error") } else { errors.remove(0) }
    })?;
    verify(&parsed, registry)?;
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

/// Loads a file by what is in it, over a table of ops: an archive, TorchScript source, or graph text.
pub fn load_file_with(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Program> {
    load_model(path, run, registry).map(|loaded| loaded.program)
}

/// The same, with what the file says of inputs.
pub fn load_model(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    load_opened(path, run, registry, &|path| archive::Archive::open(path))
}

/// The same, and an archive is mapped into memory: its tensors lie in the file until they are written.
///
/// # Safety
/// See [`archive::Archive::map`]: the file must not change as long as anything of the program lives.
#[allow(unsafe_code, reason = "hands on what mapping a file asks of its caller")]
pub unsafe fn load_mapped(path: &Path, run: &Run, registry: &Arc<Registry>) -> Result<Loaded> {
    load_opened(path, run, registry, &|path| {
        // SAFETY: the caller's promise.
        unsafe { archive::Archive::map(path, archive::Limits::default()) }
    })
}

/// Loads a file by what is in it; `open` opens it if it is an archive.
pub fn load_opened(
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

/// Loads graph text or TorchScript source, whichever it is. A text without functions and classes is neither.
pub fn load_text_with(name: &str, text: &str, registry: &Arc<Registry>) -> Result<Program> {
    if text.trim().is_empty() {
        return Err(Diagnostic::input(format!("{name} is empty")).hint("give TorchScript source or a graph"));
    }
    if is_graph(text) {
        return load_graph_with(name, text, "graph", registry);
    }
    if !text.contains("def ") && !text.contains("class ") {
        let message = format!("{name} is neither an archive nor TorchScript source nor graph text");
        return Err(Diagnostic::input(message)
            .hint("give a .pt archive of torch.jit.save, or a .pt2 of torch.export"));
    }
    load_source_with(name, text, registry)
}

/// Whether a text is graph text, in PyTorch's or MLIR's form, and not TorchScript source, by its first line that is not a
/// comment.
pub fn is_graph(text: &str) -> bool {
    if mlir::is_mlir(text) {
        return true;
    }
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

/// Fails for a file of a known kind that is not a program, by its first bytes. Some binary files happen to be valid text, and
/// some texts are known not to be programs.
fn refuse_stranger(path: &Path) -> Result<()> {
    use std::io::Read;
    let mut start = Vec::new();
    if files::open(path).and_then(|file| file.take(512).read_to_end(&mut start)).is_err() {
        // Reading the file reports the error.
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

/// Files up to this size are text unless they are archives; what is in larger ones is examined before they are read.
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
