//! `flambeau save`: writes a program as an archive that `torch.jit.load` reads.

use super::io::Io;
use super::outputs::write_file;
use super::weights::{self, WeightOptions, is_weights};
use super::{load, opt};
use crate::diag::{Diagnostic, Result, files};
use crate::dialects::{Registry, Run};
use crate::frontend::archive::{self, Archive, Limits, save as writer};
use crate::ir::{
    Argument, Attr, ClassAttribute, ClassDef, ClassKind, Function, Graph, Module, Symbol, Type, TypeKind,
};
use crate::runtime::Program;
use crate::tools::limits::LimitOptions;
use crate::value::{Object, Value};
use clap::Args;
use hashbrown::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Options of `flambeau save`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The archive to write; or, ending in .safetensors or .npz, a file of the parameters and buffers alone, by PyTorch's names
    output: PathBuf,
    #[command(flatten)]
    weights: WeightOptions,
    /// The function to save, where a source has several
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
    /// Adds a file to the archive: NAME=FILE
    #[arg(long, value_name = "NAME=FILE")]
    extra: Vec<String>,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Runs the command. The output is replaced only when it has been written whole.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let path = io.path(&options.file);
    let extra = options.extra.iter().map(|word| read_extra(word, io)).collect::<Result<Vec<_>>>()?;
    let toolkit = io.toolkit_with(&options.dialect)?;
    let registry = toolkit.registry();
    if is_weights(&options.output) {
        let loaded = load::load_model(&path, &options.limits.silent(), registry)?;
        options.weights.apply(&loaded.program, io)?;
        let written = weights::save(&loaded.program, &io.path(&options.output))?;
        io.message(&format!("{}: {written}\n", options.output.display()));
        return Ok(true);
    }
    let bytes = if load::is_text(&path)? {
        let program = opt::read_program(&options.file, registry, io)?;
        save_program(registry, program.module(), options.entry.as_deref(), &extra)?
    } else {
        let opened = Opened::open(registry, &path)?;
        if options.weights.weights.is_some() {
            options.weights.apply(&opened.program(registry, &options.limits.silent())?, io)?;
        }
        opened.write(registry, extra)?
    };
    write_file(&io.path(&options.output), &bytes)?;
    Ok(true)
}

fn read_extra(word: &str, io: &Io<'_>) -> Result<(String, Vec<u8>)> {
    let Some((name, file)) = word.split_once('=') else {
        return Err(Diagnostic::usage(format!("--extra takes NAME=FILE, not '{word}'")));
    };
    let bytes = files::read(&io.path(Path::new(file)), Limits::default().file_bytes);
    Ok((name.to_string(), bytes.map_err(|e| Diagnostic::input(format!("{file}: {e}")))?))
}

/// An archive that is to be written again, perhaps with other numbers in its tensors.
pub(super) struct Opened {
    model: archive::Model,
    root: String,
    extra: Vec<(String, Vec<u8>)>,
    traced_inputs: Option<Vec<u8>>,
}

impl Opened {
    /// Reads an archive whole.
    pub(super) fn open(registry: &Arc<Registry>, path: &Path) -> Result<Opened> {
        let archive = Archive::open(path)?;
        let root = archive.root_prefix().to_string();
        let extra = archive.extra_files();
        let extra =
            extra.map(|name| Ok((name.to_string(), archive.read(&format!("extra/{name}"))?.into_owned())));
        let extra = extra.collect::<Result<Vec<_>>>()?;
        let inputs = "traced_inputs.pkl";
        let traced_inputs =
            archive.entry(inputs).map(|_| archive.read(inputs)).transpose()?.map(|b| b.into_owned());
        Ok(Opened { model: archive::load(registry, archive)?, root, extra, traced_inputs })
    }

    /// Its program, over the tensors that [`Opened::write`] writes.
    pub(super) fn program(&self, registry: &Arc<Registry>, run: &Run) -> Result<Program> {
        let program = load::start(self.model.module.clone(), &self.model.root, registry)?;
        program.set_origins(load::origins(self.model.debug_tables.clone()));
        load::restore(&program, self.model.states.clone(), run)?;
        Ok(program)
    }

    /// Whether a trace wrote it.
    pub(super) fn is_traced(&self) -> bool {
        self.traced_inputs.is_some()
    }

    /// The archive as it is now, with more extra files; one of a name that is there replaces it.
    pub(super) fn write(&self, registry: &Registry, more: Vec<(String, Vec<u8>)>) -> Result<Vec<u8>> {
        let kept = self.extra.iter().filter(|(name, _)| !more.iter().any(|(n, _)| n == name));
        let extra: Vec<(String, Vec<u8>)> = kept.cloned().chain(more.iter().cloned()).collect();
        let origins = load::origins(self.model.debug_tables.clone());
        let contents = writer::Contents {
            module: &self.model.module,
            root: &self.model.root,
            constants: self.model.constants.clone(),
            states: &self.model.states,
            extra: &extra,
            traced_inputs: self.traced_inputs.clone(),
            origin: &|span| origins(span),
        };
        writer::save(registry, contents, &self.root, Vec::new())
    }
}

/// The archive of a function, which is saved as PyTorch does: as the `forward` of a module that only holds it.
pub fn save_function(
    registry: &Registry,
    module: &Module,
    name: &str,
    extra: &[(String, Vec<u8>)],
) -> Result<Vec<u8>> {
    save_program(registry, module, Some(name), extra)
}

/// Saves a function of a program as PyTorch does: as the `forward` of a module that only holds it.
fn save_program(
    registry: &Registry,
    module: &Module,
    entry: Option<&str>,
    extra: &[(String, Vec<u8>)],
) -> Result<Vec<u8>> {
    let mut functions = module.functions.values();
    let function = match (entry, functions.next(), functions.next()) {
        (Some(name), ..) => module.function(name),
        (None, Some(only), None) => Some(only),
        (None, ..) => {
            return Err(Diagnostic::usage(
                "the program has several functions; say which one with --entry NAME",
            ));
        }
    };
    let function = function
        .ok_or_else(|| Diagnostic::input(format!("there is no function '{}'", entry.unwrap_or_default())))?;
    let (module, root) = placeholder(module, function);
    let contents = writer::Contents {
        module: &module,
        root: &root,
        constants: Vec::new(),
        states: &[],
        extra,
        traced_inputs: None,
        origin: &|_| None,
    };
    writer::save(registry, contents, "archive", Vec::new())
}

const PLACEHOLDER: &str = "__torch__.PlaceholderModule";

/// The program with its functions under `__torch__`, and an instance of the class that holds the function.
fn placeholder(module: &Module, function: &Function) -> (Module, Value) {
    let renamed: HashMap<Symbol, Symbol> = module
        .functions
        .keys()
        .filter(|name| !name.as_str().contains('.'))
        .map(|name| (*name, Symbol::new(&format!("__torch__.{name}"))))
        .collect();
    let mut out = module.clone();
    out.functions.clear();
    for old in module.functions.values() {
        let mut new = old.clone();
        new.name = renamed.get(&old.name).copied().unwrap_or(old.name);
        rename_calls(&mut new.graph, &renamed);
        out.functions.insert(new.name, new);
    }
    let class = Symbol::new(PLACEHOLDER);
    let name = Symbol::new(&format!("{PLACEHOLDER}.forward"));
    let mut forward = function.clone();
    forward.name = name;
    forward.schema.arguments.insert(0, Argument::new("self", Type::class(class)));
    let root = forward.graph.root();
    let receiver = forward.graph.insert_param(root, 0, Type::class(class));
    forward.graph.set_unique_name(receiver, "self");
    rename_calls(&mut forward.graph, &renamed);
    out.functions.insert(name, forward);
    let mut def = ClassDef::new(class, ClassKind::Module);
    let training = Symbol::new("training");
    let plain = ClassAttribute { name: training, ty: Type::bool(), is_parameter: false, is_buffer: false };
    def.attributes.push(plain);
    def.methods.insert(Symbol::new("forward"), name);
    out.classes.insert(class, def);
    let object = Object::new(class);
    object.set(training, Value::Bool(true));
    (out, Value::Object(object))
}

/// Lets constants that are functions name them anew.
fn rename_calls(graph: &mut Graph, renamed: &HashMap<Symbol, Symbol>) {
    for op in graph.all_ops() {
        if let Some(Attr::Graph(inner)) = graph.attr(op, "Subgraph") {
            let mut inner = Graph::clone(inner);
            rename_calls(&mut inner, renamed);
            graph.set_attr(op, "Subgraph", Attr::Graph(inner.into()));
        }
        for value in graph.results(op) {
            let TypeKind::Function(old) = graph.ty(value).kind() else { continue };
            let Some(new) = renamed.get(old).copied() else { continue };
            graph.set_type(value, Type::new(TypeKind::Function(new)));
            graph.set_attr(op, "name", Attr::Str(new.as_str().into()));
        }
    }
}
