//! `flambeau profile`: runs a program and writes the types of the observed tensors into its graph, as TorchScript's profiling
//! executor does before it optimizes. What is printed is graph text for `insert-guards` and the passes after it.
//!
//! The passes determine where types are observed (`profile` puts the ops there); this file only runs and writes.

use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::load_shown;
use super::numerics::Numerics;
use super::observe::{Event, Watch};
use super::prepare;
use crate::diag::Result;
use crate::dialects::prim::profiling::{PROFILE, PROFILE_OPTIONAL, shown};
use crate::dialects::{GraphId, Run};
use crate::ir::subtype::merge_tensors;
use crate::ir::{Attr, Graph, OpId, TensorType, Type, TypeKind};
use crate::passes::none_counts;
use crate::runtime::Program;
use crate::value::Value;
use clap::Args;
use hashbrown::HashMap;
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;

/// What PyTorch does to a graph before it is profiled, and the profiles.
const PASSES: &str = "insensitive-optimization,profile";

/// Options of `flambeau profile`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    #[command(flatten)]
    inputs: InputOptions,
    /// Inputs of one more call, in one argument: 'x=float32[4,3], n=5'; repeat it for several. Types are those that all calls have
    #[arg(long, value_name = "INPUTS")]
    again: Vec<String>,
    /// Passes to run first; `profile` among them determines what is observed
    #[arg(long, value_name = "PIPELINE", default_value = PASSES)]
    passes: String,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    /// Seed of the random generator, and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Record gradients; without it the program runs as under torch.no_grad()
    #[arg(long)]
    grad: bool,
    #[command(flatten)]
    numerics: Numerics,
}

/// What was observed at one place.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// What all tensors have in common; None before the first.
    ty: Option<Type>,
    none: i64,
    present: i64,
}

/// What was observed, by graph and op.
#[derive(Debug, Default)]
pub struct Profiles(HashMap<(GraphId, u32), Seen>);

impl Profiles {
    fn take_in(&mut self, graph: GraphId, op: u32, value: &Value, records: bool) {
        let seen = self.0.entry((graph, op)).or_default();
        match value {
            Value::None => seen.none += 1,
            _ => seen.present += 1,
        }
        let found = match value {
            Value::Tensor(_) => shown(value, records),
            Value::None => {
                Type::new(TypeKind::Tensor(TensorType { undefined: Some(true), ..TensorType::default() }))
            }
            _ => return,
        };
        seen.ty = Some(match &seen.ty {
            Some(known) => joined(known, &found),
            None => found,
        });
    }

    /// Writes what was observed into the profiles of a copy of a graph that ran.
    pub fn write(&self, copy: &mut Graph, ran: &Graph) {
        let (graph, identity) = (copy, GraphId::of(ran));
        for op in graph.all_ops() {
            let Some(seen) = self.0.get(&(identity, op.index() as u32)) else { continue };
            let kind = graph.kind(op);
            if kind == PROFILE_OPTIONAL {
                graph.set_attr(op, "none_counts", none_counts(seen.none, seen.present));
            } else if let Some(ty) = seen.ty.clone().filter(|_| kind == PROFILE) {
                graph.set_attr(op, "profiled_type", Attr::Type(ty));
            }
        }
    }
}

/// What two types of tensors have in common. Strides are known all or not at all.
fn joined(a: &Type, b: &Type) -> Type {
    let (TypeKind::Tensor(a), TypeKind::Tensor(b)) = (a.kind(), b.kind()) else { return Type::tensor() };
    let mut both = merge_tensors(a, b);
    both.strides = both.strides.filter(|strides| strides.iter().all(|stride| stride.known().is_some()));
    Type::new(TypeKind::Tensor(both))
}

/// Whether an op of a graph profiles its results.
fn is_profile(graph: &Graph, op: OpId) -> bool {
    (graph.kind(op) == PROFILE || graph.kind(op) == PROFILE_OPTIONAL) && graph.result_count(op) == 1
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<()> {
    let (stdout, printed) = io.program_output();
    let run = Run::new(stdout);
    run.set_grad_enabled(options.grad);
    run.seed(options.seed);
    let toolkit = io.toolkit_with(&options.dialect)?;
    let pipeline = options.numerics.checked_pipeline(&options.passes, io)?;
    let loaded = load_shown(&io.path(&options.file), &run, toolkit.registry(), io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let mut calls = vec![options.inputs.resolve(&loaded, &entry, io)?];
    for text in &options.again {
        let words = InputOptions { input: vec![text.clone()], args: Vec::new() };
        calls.push(words.resolve(&loaded, &entry, io)?);
    }
    let name = options.file.display().to_string();
    let program = prepare::transformed(
        &loaded.program,
        &pipeline,
        prepare::called(&loaded.program, &entry),
        &name,
        io.err,
    )?;
    let calls =
        calls.iter().map(|call| call.values(options.seed, io.directory)).collect::<Result<Vec<_>>>()?;
    let profiles = profiles(&program, &entry, calls, &run);
    io.print_kept(&printed);
    let profiles = profiles?;
    if let Some(function) = program.function(&entry) {
        let mut graph = function.graph.clone();
        profiles.write(&mut graph, &function.graph);
        io.print(&graph.to_string());
    }
    Ok(())
}

/// Runs a function on some lists of arguments; gives what its profiles saw. Fails where a call does.
pub fn profiles(program: &Program, entry: &str, calls: Vec<Vec<Value>>, run: &Run) -> Result<Profiles> {
    let graphs = program.module().functions.values().map(|function| &function.graph);
    let places: Vec<(GraphId, u32)> = graphs
        .flat_map(|graph| {
            let ops = graph.all_ops().into_iter().filter(|op| is_profile(graph, *op));
            ops.map(|op| (GraphId::of(graph), op.index() as u32)).collect::<Vec<_>>()
        })
        .collect();
    let wanted: hashbrown::HashSet<(GraphId, u32)> = places.into_iter().collect();
    let profiles: Arc<Mutex<Profiles>> = Arc::default();
    let (sink, records) = (Arc::clone(&profiles), run.grad_enabled());
    run.watch(Some(Watch::new(move |at, event| {
        if let (Some(graph), Event::Ran { op, results: [value], .. }) = (at.graph, event)
            && wanted.contains(&(graph, op))
        {
            sink.lock().take_in(graph, op, value, records);
        }
    })));
    let done = calls.into_iter().try_for_each(|arguments| program.run(entry, arguments, run).map(drop));
    run.watch(None);
    done?;
    Ok(std::mem::take(&mut *profiles.lock()))
}
