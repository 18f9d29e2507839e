//! How a plan was made: what each pass of its pipeline did to the graph, which rewrite rules fired, how long it took. It knows
//! no pass and no rule by name.

use crate::ir::{Graph, Module, Symbol, TensorType};
use crate::passes::FiredRules;
use crate::passes::manager::{At, Observer, Report};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How a plan was made.
#[derive(Clone, Debug, Default)]
pub struct Making {
    /// Ops of the function before the first pass, and bytes of the tensors that they give, as far as types determine it.
    pub before: (usize, u64),
    /// Passes in order, those that changed nothing among them.
    pub stages: Vec<Stage>,
    /// How many of these, the last ones, another process ran: what they made was on disk.
    pub kept: usize,
    /// How often each rule made two things equal that were not, by name.
    pub rules: Vec<(Arc<str>, usize)>,
}

/// What a pass did.
#[derive(Clone, Debug)]
pub struct Stage {
    /// Its name.
    pub pass: &'static str,
    /// Changes that it counted; of a step of several passes, ops that are gone after it.
    pub changes: u64,
    /// Ops after it.
    pub ops: usize,
    /// Bytes of the tensors that these give in a call, views among them, as far as types determine it.
    pub bytes: u64,
    /// Ops that are gone after it, by kind, most first: where it replaced some by others, those that it replaced.
    pub removed: Vec<(Symbol, usize)>,
    /// How long it took.
    pub time: Duration,
}

/// Observes the making of a plan.
#[derive(Default)]
pub(super) struct Maker {
    stages: Vec<Stage>,
    /// Ops by kind after the last pass that changed something.
    kinds: Kinds,
}

impl Observer for Maker {
    fn before(&mut self, _: &At<'_>, module: &Module, _: &mut dyn Write) {
        if self.stages.is_empty() {
            self.kinds = kinds(graphs(module));
        }
    }

    fn after(&mut self, at: &At<'_>, module: &Module, report: &Report, _: &mut dyn Write) {
        let pass = at.pass.name;
        let known = self.stages.last().filter(|_| !report.changed).map(|stage| (stage.ops, stage.bytes));
        let (ops, bytes) = known.unwrap_or_else(|| size(module));
        let mut removed = Vec::new();
        if report.changed {
            let now = kinds(graphs(module));
            removed = gone(&self.kinds, &now);
            removed.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
            self.kinds = now;
        }
        self.stages.push(Stage { pass, changes: report.steps, ops, bytes, removed, time: report.time });
    }
}

/// A step of the making that is more than one pass, or none: it is one stage.
pub(super) struct Step {
    name: &'static str,
    kinds: Kinds,
    begin: Instant,
}

impl Step {
    /// Begins with graphs.
    pub(super) fn begin(name: &'static str, graphs: &[&Graph]) -> Step {
        Step { name, kinds: kinds(graphs.iter().copied()), begin: Instant::now() }
    }

    /// Ends with these in its place.
    pub(super) fn end(self, graphs: &[&Graph], making: &mut Making) {
        let time = self.begin.elapsed();
        let now = kinds(graphs.iter().copied());
        let mut removed = gone(&self.kinds, &now);
        removed.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        let (ops, bytes) = total(graphs.iter().copied());
        let changes = removed.iter().map(|(_, n)| *n as u64).sum();
        making.stages.push(Stage { pass: self.name, changes, ops, bytes, removed, time });
    }
}

/// Ops by kind.
type Kinds = BTreeMap<&'static str, (Symbol, usize)>;

/// Of which kinds there are fewer ops than before, and how many fewer.
fn gone(before: &Kinds, now: &Kinds) -> Vec<(Symbol, usize)> {
    let left = |name: &str| now.get(name).map_or(0, |(_, left)| *left);
    let fewer = before.iter().map(|(name, (kind, before))| (*kind, before.saturating_sub(left(name))));
    fewer.filter(|(_, n)| *n > 0).collect()
}

fn graphs(module: &Module) -> impl Iterator<Item = &Graph> {
    module.functions.values().map(|function| &function.graph)
}

/// How many ops of each kind there are.
fn kinds<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> Kinds {
    let mut out = BTreeMap::new();
    for graph in graphs {
        for kind in graph.all_ops().into_iter().map(|op| graph.kind(op)) {
            out.entry(kind.as_str()).or_insert((kind, 0)).1 += 1;
        }
    }
    out
}

impl Maker {
    pub(super) fn done(self, before: (usize, u64), fired: &FiredRules) -> Making {
        Making { before, stages: self.stages, kept: 0, rules: fired.all() }
    }
}

/// Ops that are not constants, and bytes that they give.
pub(super) fn size(module: &Module) -> (usize, u64) {
    total(graphs(module))
}

fn total<'a>(graphs: impl IntoIterator<Item = &'a Graph>) -> (usize, u64) {
    let sizes = graphs.into_iter().map(of_graph);
    sizes.fold((0, 0u64), |a, b| (a.0 + b.0, a.1.saturating_add(b.1)))
}

fn of_graph(graph: &Graph) -> (usize, u64) {
    let (mut ops, mut bytes) = (0, 0u64);
    for op in graph.all_ops().into_iter().filter(|op| graph.kind(*op) != "prim::Constant") {
        ops += 1;
        let given =
            graph.results(op).into_iter().filter_map(|v| graph.ty(v).as_tensor().and_then(size_of_type));
        bytes = given.fold(bytes, u64::saturating_add);
    }
    (ops, bytes)
}

fn size_of_type(ty: &TensorType) -> Option<u64> {
    let sizes = ty.sizes.as_deref()?;
    let count = sizes.iter().try_fold(1u64, |n, d| n.checked_mul(u64::try_from(d.known()?).ok()?))?;
    count.checked_mul(ty.dtype?.size() as u64)
}

impl Making {
    /// What else was done to a graph, by passes that another process ran.
    pub(super) fn and(&mut self, kept: Making) {
        self.kept = kept.stages.len();
        self.stages.extend(kept.stages);
        self.rules.extend(kept.rules);
    }

    /// How long all passes took, those on disk not counted.
    pub fn time(&self) -> Duration {
        self.stages.iter().map(|stage| stage.time).sum()
    }

    /// Ops and bytes after the last pass.
    pub fn after(&self) -> (usize, u64) {
        self.stages.last().map_or(self.before, |stage| (stage.ops, stage.bytes))
    }

    /// The rules in one line; None where none fired.
    pub fn rules_text(&self) -> Option<String> {
        let mut out = String::new();
        for (rule, times) in &self.rules {
            let _ = write!(out, "{}{rule} {times}", if out.is_empty() { "" } else { ", " });
        }
        (!out.is_empty()).then_some(out)
    }
}
