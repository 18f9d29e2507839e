//! Plans on disk: what a plan's pipeline makes of a graph, by all that it is made of. In a second process the passes that come after
//! attributes were frozen are not run again (docs/cache.md).
//!
//! A key is over this build, the machine, the passes, the graph with its types, and of each constant tensor its layout and, of small
//! ones, its elements. Of larger ones a plan says itself what it is made of: passes that read their elements are noticed
//! ([`Moment`]), and a digest of these stands with the plan. So another model of the same architecture may take the graph, and none
//! takes a number that was computed from the weights of another. What it knows of ops and passes is nothing.

use super::making::{Making, Stage};
use super::subject::Subject;
use crate::backends::cache::{DiskCache, Key, Kind};
use crate::ir::bytecode::{self, Outside};
use crate::ir::{Attr, Graph, Symbol, Type, TypeKind, ValueId};
use crate::passes::Pipeline;
use crate::passes::manager::Step;
use crate::runtime::kept::{Constants, Place, asked_machine};
use crate::tensor::Moment;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The passes after which nothing of a plan depends on objects any more: attributes are constants, and what read objects is gone.
const FREEZES: [&str; 2] = ["freeze-attributes", "dce-graph"];

/// The steps up to those that freeze attributes, and those after them; None where there are no such steps.
pub(super) fn split(pipeline: &Pipeline) -> Option<(Pipeline, Pipeline)> {
    let has = |step: &Step, name| {
        Pipeline { steps: vec![step.clone()] }.passes().iter().any(|(pass, _)| pass.name == name)
    };
    let mut after = 0;
    for name in FREEZES {
        after += 1 + pipeline.steps[after..].iter().position(|step| has(step, name))?;
    }
    let (first, rest) = pipeline.steps.split_at(after);
    Some((Pipeline { steps: first.to_vec() }, Pipeline { steps: rest.to_vec() }))
}

/// What stands with graphs: what passes did, and what else is known.
#[derive(Serialize, Deserialize)]
struct Made<K> {
    /// Bytes of each graph.
    graphs: Vec<usize>,
    known: K,
    stages: Vec<StageText>,
    /// What is known of open sizes in the end.
    open: Vec<i64>,
    rules: Vec<(String, usize)>,
}

/// A [`Stage`]; how long it took, it took another process.
#[derive(Serialize, Deserialize)]
struct StageText {
    pass: String,
    changes: u64,
    ops: usize,
    bytes: u64,
    removed: Vec<(String, usize)>,
}

/// Where that is which is made of a graph without attributes, in a way that a text says. None where there is no cache; an error
/// says why a plan of this kind is not kept.
pub(super) fn place(
    subject: &Subject<'_>,
    way: impl FnOnce() -> String,
    graph: &Graph,
) -> Option<Result<Place, &'static str>> {
    Some(place_in(subject.disk.clone()?, subject, &way(), graph))
}

fn place_in(
    cache: Arc<DiskCache>,
    subject: &Subject<'_>,
    way: &str,
    graph: &Graph,
) -> Result<Place, &'static str> {
    let code = &subject.context;
    if !code.registry.is_builtin() {
        return Err("ops, rules or lowerings were added to the built-in ones");
    }
    if !code.limits.names().is_empty() || !code.fusion.log_spec().is_empty() {
        return Err("passes are limited or logged");
    }
    if uses_objects(graph) {
        return Err("its graph uses objects");
    }
    let mut outside = Outside::default();
    let bytes = bytecode::write(graph, &mut outside).ok_or("its graph holds an object of a custom class")?;
    outside.lists = bytecode::lists_in(graph);
    let constants = Constants::of(outside)?;
    let made_of = constants.digest()?;
    let (machine, open) = (asked_machine(), format!("{:?}", open(subject)));
    let parts = [way.as_bytes(), machine.as_bytes(), open.as_bytes(), &bytes, &made_of];
    let key = Key::of_parts(Kind::Plans, &parts);
    Ok(Place { cache, key, name: subject.function.name.to_string(), constants })
}

/// What is known of open sizes; empty where there are none.
fn open(subject: &Subject<'_>) -> Vec<i64> {
    subject.open.map(|open| open.sizes.state()).unwrap_or_default()
}

/// What `make` makes of the graphs and of what is known of them, and what passes did, if they are there and made of these weights.
/// What passes found out about open sizes is known from then on.
pub(super) fn read<K: DeserializeOwned, T>(
    place: &Place,
    subject: &Subject<'_>,
    make: impl FnOnce(Vec<Graph>, K) -> Option<T>,
) -> Option<(T, Making)> {
    place.read(|made: Made<K>, mut bytes, outside| {
        let mut graphs = Vec::new();
        for length in &made.graphs {
            let (graph, rest) = bytes.split_at_checked(*length)?;
            graphs.push(bytecode::read(graph, outside)?);
            bytes = rest;
        }
        let found = make(graphs, made.known).filter(|_| bytes.is_empty())?;
        match subject.open {
            Some(open) => open.sizes.restore(&made.open)?,
            None if made.open.is_empty() => {}
            None => return None,
        }
        let stages = made.stages.iter().map(StageText::stage).collect();
        let rules = made.rules.iter().map(|(name, times)| (Arc::from(name.as_str()), *times)).collect();
        Some((found, Making { kept: made.stages.len(), stages, rules, ..Making::default() }))
    })
}

/// Keeps graphs that passes made since a moment, and what is known of them, with what each pass did and the rules that fired. The
/// error says why they are not kept.
pub(super) fn write(
    (place, subject): (&Place, &Subject<'_>),
    (graphs, known): (&[&Graph], &impl Serialize),
    (stages, rules): (&[Stage], &[(Arc<str>, usize)]),
    since: Moment,
) -> Result<(), &'static str> {
    let mut outside = place.constants.outside().clone();
    let (mut all, mut lengths) = (Vec::new(), Vec::new());
    for graph in graphs {
        let bytes =
            bytecode::write(graph, &mut outside).ok_or("its plan holds an object of a custom class")?;
        lengths.push(bytes.len());
        all.extend(bytes);
    }
    let stages = stages.iter().map(StageText::of).collect();
    let rules = rules.iter().map(|(name, times)| (name.to_string(), *times)).collect();
    place.write(Made { graphs: lengths, known, stages, open: open(subject), rules }, &all, (&outside, since))
}

/// Whether something in a graph is an object, or a type of one that a pass might look up in the module.
fn uses_objects(graph: &Graph) -> bool {
    let used = |value: &ValueId| graph.has_uses(*value) && has_class(graph.ty(*value));
    let root = graph.root();
    graph.params(root).iter().any(used)
        || graph.all_ops().into_iter().any(|op| {
            let in_attrs = graph.attrs(op).iter().any(|(_, attr)| match attr {
                Attr::Type(ty) => has_class(ty),
                Attr::Types(types) => types.iter().any(has_class),
                Attr::Graph(inner) => uses_objects(inner),
                Attr::Graphs(all) => all.iter().any(|inner| uses_objects(inner)),
                _ => false,
            });
            let in_params =
                || graph.nested_blocks(op).iter().flat_map(|block| graph.params(*block)).any(used);
            let in_results = || graph.results(op).iter().any(|result| has_class(graph.ty(*result)));
            in_attrs || in_results() || in_params()
        })
}

/// Whether a type names a class, an interface or an enum.
fn has_class(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::Enum(..) | TypeKind::Function(_) => true,
        TypeKind::AnyClass | TypeKind::AnyEnum | TypeKind::Capsule | TypeKind::PyObject => true,
        TypeKind::List(inner)
        | TypeKind::Optional(inner)
        | TypeKind::Future(inner)
        | TypeKind::Await(inner)
        | TypeKind::RRef(inner) => has_class(inner),
        TypeKind::Dict(key, value) => has_class(key) || has_class(value),
        TypeKind::Tuple(types, _) | TypeKind::Union(types) => types.iter().any(has_class),
        _ => false,
    }
}

impl StageText {
    fn of(stage: &Stage) -> StageText {
        let Stage { pass, changes, ops, bytes, removed, .. } = stage;
        let removed = removed.iter().map(|(kind, n)| (kind.to_string(), *n)).collect();
        StageText { pass: pass.to_string(), changes: *changes, ops: *ops, bytes: *bytes, removed }
    }

    fn stage(&self) -> Stage {
        let StageText { pass, changes, ops, bytes, removed } = self;
        let removed = removed.iter().map(|(kind, n)| (Symbol::new(kind), *n)).collect();
        let (pass, time) = (Symbol::new(pass).as_str(), Duration::ZERO);
        Stage { pass, changes: *changes, ops: *ops, bytes: *bytes, removed, time }
    }
}
