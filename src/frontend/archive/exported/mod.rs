//! Programs of `torch.export` (`.pt2`): graphs of ATen operators as JSON, tensors as raw bytes, and no pickle that is needed.
//!
//! The program becomes a module with one method, `forward`, whose graph says what it says in TorchScript: parameters are
//! attributes, what was constant is asserted, higher-order operators are conditions and loops. Nothing of the file runs.

mod arguments;
mod codes;
mod control;
mod guards;
mod nodes;
mod objects;
mod operators;
mod schema;
mod signature;
mod tree;
mod weights;

use super::emit::Emitter;
use super::format::model_name;
use super::model::Model;
use super::opened::Archive;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{Argument as Formal, Function, Graph, Module, Schema, Symbol, Type};
use guards::Guards;
use indexmap::IndexMap;
use nodes::Nodes;
use objects::{Objects, ROOT, Reads, attribute};
use schema::{InputSpec, OutputSpec, Program};
use signature::{Unpacker, arguments, inputs, leaves, pack, write_back};
use std::sync::Arc;
use tree::Tree;
pub use weights::OutlinedTensor;
use weights::Weights;

/// The model that is meant where a file has several.
const MAIN: &str = "model";

/// Whether an archive holds exported programs.
pub fn is_exported(archive: &Archive) -> bool {
    models(archive).next().is_some()
}

/// Names of the models in an archive.
pub fn models(archive: &Archive) -> impl Iterator<Item = &str> {
    archive.names().filter_map(model_name)
}

/// Builds the model of an archive.
pub(super) fn load(registry: &Arc<Registry>, archive: Archive) -> Result<Model> {
    if archive.big_endian() {
        return Err(Diagnostic::unsupported("an exported program of a big-endian machine"));
    }
    let archive = Arc::new(archive);
    let name = chosen(&archive)?;
    let entry = format!("models/{name}.json");
    let program = schema::parse_program(&entry, &archive.read(&entry)?)?;
    let mut weights = Weights::open(&archive, &name)?;
    let mut module = Module::default();
    let objects = Objects::build(&mut module, &program.graph_module.signature.input_specs, &mut weights)?;
    let forward = forward(registry, &module, &program).map_err(|mut error| {
        let report = error.report_mut();
        report.message = format!("{entry}: {}", report.message);
        error
    })?;
    if let Some(class) = module.classes.get_mut(&Symbol::new(ROOT)) {
        class.methods.insert(Symbol::new("forward"), forward.name);
    }
    module.functions.insert(forward.name, forward);
    let version = archive.version();
    let root = objects.root();
    Ok(Model { module, root, states: Vec::new(), constants: Vec::new(), version, debug_tables: Vec::new() })
}

/// The name of the model that is meant.
fn chosen(archive: &Archive) -> Result<String> {
    let names: Vec<&str> = models(archive).collect();
    if let Some(wanted) = archive.chosen() {
        return match names.iter().find(|name| **name == wanted) {
            Some(name) => Ok((*name).to_string()),
            None => Err(Diagnostic::input(format!("the archive has no exported program '{wanted}'"))
                .hint(format!("it has {}", names.join(", ")))),
        };
    }
    match names.as_slice() {
        [one] => Ok((*one).to_string()),
        several if several.contains(&MAIN) => Ok(MAIN.to_string()),
        several => Err(Diagnostic::unsupported(format!(
            "an archive of {} exported programs: {}",
            several.len(),
            several.join(", ")
        ))
        .hint("say which one is meant (`entry` in Python), or save each to a file of its own")),
    }
}

/// The method of a program.
fn forward(registry: &Registry, module: &Module, program: &Program) -> Result<Function> {
    let exported = &program.graph_module;
    let (given, returned) = trees(program)?;
    let graph = Graph::new();
    let block = graph.root();
    let mut nodes = Nodes::new(Emitter { registry, module, graph, block });
    let receiver = nodes.emitter.graph.add_input(Type::class(Symbol::new(ROOT)));
    let mut formals = vec![Formal::new("self", Type::class(Symbol::new(ROOT)))];

    let names = root_call(program)?.forward_arg_names.as_deref();
    let mut ahead = 0;
    let mut unpacker = Unpacker {
        nodes: &mut nodes,
        guards: Guards::new(&exported.graph, &program.range_constraints),
        leaves: leaves(&exported.signature.input_specs).into_iter(),
    };
    let mut values = Vec::new();
    for (name, tree) in arguments(&given, names)? {
        let formal = unpacker.formal(&name, tree, &mut ahead)?;
        let value = unpacker.nodes.emitter.graph.add_input(formal.ty.clone());
        unpacker.nodes.emitter.graph.set_name(value, &name);
        formals.push(formal);
        values.push((name, tree, value));
    }
    for (name, tree, value) in &values {
        unpacker.unpack(tree, *value, name)?;
    }
    if unpacker.leaves.next().is_some() {
        return Err(Diagnostic::input("the graph has more inputs than the tree of arguments has leaves"));
    }
    let mut reads = Reads::of(receiver);
    for (name, spec) in inputs(&exported.graph, &exported.signature.input_specs)? {
        if let (Some(name), Some(path)) = (name, attribute(spec)) {
            let value = reads.read(&mut nodes.emitter, path)?;
            nodes.bind(name, value);
        }
        if let InputSpec::CustomObj { custom_obj_name } = spec {
            return Err(Diagnostic::unsupported(format!(
                "the custom object `{custom_obj_name}` of the program"
            )));
        }
    }
    nodes.emit(&exported.graph)?;
    let result = outputs(&mut nodes, program, &returned, &mut reads)?;
    nodes.emitter.graph.add_output(result);

    // A default may not stand before an argument without one.
    if let Some(last) = formals.iter().rposition(|formal| formal.default.is_none()) {
        formals[..last].iter_mut().for_each(|formal| formal.default = None);
    }
    let ty = nodes.emitter.graph.ty(result).clone();
    let name = Symbol::new(&format!("{ROOT}.forward"));
    let schema = Schema::new(name, formals, vec![Formal::new("", ty)]);
    Ok(Function { name, schema, graph: nodes.emitter.graph, span: None })
}

/// How the module itself was called.
fn root_call(program: &Program) -> Result<&schema::CallSignature> {
    let calls = &program.graph_module.module_call_graph;
    let root = calls.iter().find(|call| call.fqn.is_empty()).and_then(|call| call.signature.as_ref());
    root.ok_or_else(|| Diagnostic::input("the program does not say how it is called"))
}

/// The trees of arguments and results.
fn trees(program: &Program) -> Result<(Tree, Tree)> {
    let call = root_call(program)?;
    let named_tuples = &program.graph_module.treespec_namedtuple_fields;
    Ok((tree::parse(&call.in_spec, named_tuples)?, tree::parse(&call.out_spec, named_tuples)?))
}

/// Writes back what the program changes, and puts its results together.
fn outputs(
    nodes: &mut Nodes<'_>,
    program: &Program,
    tree: &Tree,
    reads: &mut Reads,
) -> Result<crate::ir::ValueId> {
    let mut results = Vec::new();
    for spec in &program.graph_module.signature.output_specs {
        match spec {
            OutputSpec::UserOutput { arg } => results.push(arg),
            OutputSpec::BufferMutation { arg, buffer_name: name }
            | OutputSpec::ParameterMutation { arg, parameter_name: name } => {
                let target = reads.read(&mut nodes.emitter, name)?;
                write_back(nodes, target, &arg.name)?;
            }
            OutputSpec::UserInputMutation { arg, user_input_name } => {
                let target = nodes.named(user_input_name)?;
                write_back(nodes, target, &arg.name)?;
            }
            OutputSpec::LossOutput { arg } => {
                return Err(Diagnostic::unsupported(format!(
                    "a program whose loss `{}` is an output",
                    arg.name
                ))
                .hint("export the module's forward, not its training step"));
            }
            OutputSpec::GradientToParameter {}
            | OutputSpec::GradientToUserInput {}
            | OutputSpec::Token {} => {
                return Err(Diagnostic::unsupported("a program whose outputs are gradients or tokens"));
            }
        }
    }
    let mut leaves = results.into_iter();
    let result = pack(nodes, tree, &mut leaves)?;
    match leaves.next() {
        Some(_) => Err(Diagnostic::input("the graph has more outputs than the tree of results has leaves")),
        None => Ok(result),
    }
}

/// What an archive says of its programs without building them.
pub fn outline(archive: &Archive) -> Result<Vec<Outline>> {
    models(archive)
        .map(|name| {
            let entry = format!("models/{name}.json");
            let program = schema::parse_program(&entry, &archive.read(&entry)?)?;
            let mut operators: IndexMap<String, usize> = IndexMap::new();
            for node in &program.graph_module.graph.nodes {
                *operators.entry(node.target.clone()).or_default() += 1;
            }
            let arguments = root_call(&program)?.forward_arg_names.clone().unwrap_or_default();
            let tensors = weights::outline(archive, name)?;
            Ok(Outline { name: name.to_string(), arguments, tensors, operators })
        })
        .collect()
}

/// What is in an exported program.
#[derive(Debug)]
pub struct Outline {
    /// Its name in the archive.
    pub name: String,
    /// Names of what `forward` takes.
    pub arguments: Vec<String>,
    /// Its tensors.
    pub tensors: Vec<OutlinedTensor>,
    /// Targets of the graph's nodes, each with its number of calls, in order of first use.
    pub operators: IndexMap<String, usize>,
}
