//! One pass over the functions of a module, several at a time. Graphs are taken out of the module, changed, and put
//! back in their order; messages come out in that order too.

use super::reach::reachable;
use super::{Report, Settings};
use crate::analysis::AnalysisCache;
use crate::diag::{Result, panics};
use crate::dialects::Registry;
use crate::ir::{Attr, Graph, Module, OpId, Symbol};
use crate::passes::context::Parts;
use crate::passes::pass::{Pass, Run};
use crate::passes::{Context, Options};
use crate::resources::pool;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Which graphs a pass is shown.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    /// Functions of these names; `*` stands for anything.
    pub(super) function: Option<String>,
    /// The graphs inside of ops instead of the functions' own.
    pub(super) subgraphs: bool,
}

/// A pass with everything that it is run with.
pub(super) struct Job<'a> {
    pub(super) registry: &'a Registry,
    pub(super) settings: &'a Settings,
    pub(super) pass: &'a Pass,
    pub(super) run: Run,
    pub(super) options: &'a Options,
    pub(super) scope: &'a Scope,
    /// How many changes it may make.
    pub(super) fuel: Option<u64>,
    /// What the pass finds of the module for all functions.
    pub(super) of_module: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

/// What came of it.
pub(super) struct Outcome {
    pub(super) report: Report,
    pub(super) log: String,
    pub(super) result: Result<bool>,
}

struct Work {
    name: Symbol,
    graph: Graph,
    analyses: AnalysisCache,
}

struct Done {
    work: Work,
    result: Result<bool>,
    parts: Parts,
    /// It changed the graph without asking.
    unasked: bool,
    time: Duration,
}

/// Runs a pass over the functions of a module.
pub(super) fn run(
    job: &Job<'_>,
    module: &mut Module,
    caches: &mut HashMap<Symbol, AnalysisCache>,
) -> Outcome {
    let mut outcome = Outcome { report: Report::default(), log: String::new(), result: Ok(false) };
    let roots = &job.settings.roots;
    // A limit counts over all functions, in their order.
    if roots.is_empty() || job.fuel.is_some() {
        round(job, module, caches, &|_| true, &mut outcome);
    } else if job.pass.reads_functions {
        from_roots(job, module, caches, &mut outcome);
    } else {
        let reached = reachable(module, roots);
        round(job, module, caches, &|name| reached.contains(&name), &mut outcome);
    }
    outcome
}

/// A pass that reads other functions may leave none of them to be called (inlining): the roots first, then what is still reached.
fn from_roots(
    job: &Job<'_>,
    module: &mut Module,
    caches: &mut HashMap<Symbol, AnalysisCache>,
    outcome: &mut Outcome,
) {
    let mut seen: HashSet<Symbol> = HashSet::new();
    let mut next: HashSet<Symbol> = job.settings.roots.iter().copied().collect();
    while !next.is_empty() && outcome.result.is_ok() {
        round(job, module, caches, &|name| next.contains(&name), outcome);
        seen.extend(next.drain());
        next = reachable(module, &job.settings.roots);
        next.retain(|name| !seen.contains(name));
    }
}

/// The pass over the functions that are wanted.
fn round(
    job: &Job<'_>,
    module: &mut Module,
    caches: &mut HashMap<Symbol, AnalysisCache>,
    wanted: &dyn Fn(Symbol) -> bool,
    outcome: &mut Outcome,
) {
    let work = take(job, module, caches, wanted);
    let shared: &Module = module;
    let done: Vec<Done> = match job.fuel {
        Some(fuel) => limited(job, shared, work, fuel),
        None if job.settings.threads == 1 || work.len() < 2 => {
            work.into_iter().map(|w| one(job, shared, w, None)).collect()
        }
        None => side_by_side(job, shared, work),
    };
    collect(module, caches, done, outcome);
}

fn take(
    job: &Job<'_>,
    module: &mut Module,
    caches: &mut HashMap<Symbol, AnalysisCache>,
    wanted: &dyn Fn(Symbol) -> bool,
) -> Vec<Work> {
    let named = |name: Symbol| job.scope.function.as_ref().is_none_or(|glob| matches(glob, name.as_str()));
    let wanted = |name: Symbol| named(name) && wanted(name);
    let mut work = Vec::new();
    for (name, function) in module.functions.iter_mut().filter(|(name, _)| wanted(**name)) {
        let graph = if job.pass.reads_functions {
            function.graph.clone()
        } else {
            std::mem::take(&mut function.graph)
        };
        work.push(Work { name: *name, graph, analyses: caches.remove(name).unwrap_or_default() });
    }
    work
}

fn limited(job: &Job<'_>, module: &Module, work: Vec<Work>, fuel: u64) -> Vec<Done> {
    let mut left = fuel;
    let step = |w: Work| {
        let done = one(job, module, w, Some(left));
        left = left.saturating_sub(done.parts.steps);
        done
    };
    work.into_iter().map(step).collect()
}

/// Ops that one thread passes over by itself.
const FEW_OPS: usize = 2_000;
/// Room on the stack of a thread that runs passes.
const STACK_BYTES: usize = 16 << 20;

fn side_by_side(job: &Job<'_>, module: &Module, work: Vec<Work>) -> Vec<Done> {
    let ops: usize = work.iter().map(|w| w.graph.op_count()).sum();
    let threads = match job.settings.threads {
        // Starting threads costs more than a pass over few ops.
        0 if ops < FEW_OPS => 1,
        0 => pool::threads(),
        threads => threads,
    };
    if threads < 2 {
        return work.into_iter().map(|work| one(job, module, work, None)).collect();
    }
    let work: Vec<Mutex<Option<Work>>> = work.into_iter().map(|w| Mutex::new(Some(w))).collect();
    let done = pool::jobs(threads, STACK_BYTES, work.len(), |n| {
        let taken = work[n].lock().take();
        taken.map(|work| one(job, module, work, None))
    });
    done.into_iter().flatten().collect()
}

fn one(job: &Job<'_>, module: &Module, mut work: Work, fuel: Option<u64>) -> Done {
    let pass = job.pass;
    let start = Instant::now();
    let context = Context::new(job.registry, module)
        .for_pass(pass.name, job.options, &job.settings.log, (fuel, job.settings.record_steps))
        .with_analyses(std::mem::take(&mut work.analyses))
        .with_module_facts(&job.of_module)
        .in_function(work.name)
        .with_extras(&job.settings.extras);
    let result = if fuel == Some(0) {
        Ok(false)
    } else {
        let what = format!("pass '{}'", pass.name);
        panics::catch(&what, || {
            if job.scope.subgraphs {
                subgraphs(&mut work.graph, &context, job.run)
            } else {
                job.run.on_graph(&mut work.graph, &context)
            }
        })
        .and_then(|result| result)
    };
    let mut parts = context.into_parts();
    work.analyses = std::mem::take(&mut parts.analyses);
    match &result {
        Ok(false) => {}
        Ok(true) => work.analyses.keep_only(pass.preserves),
        Err(_) => work.analyses.clear(),
    }
    // A pass that does not ask counts as one change.
    let unasked = matches!(result, Ok(true)) && parts.steps == 0;
    parts.steps += u64::from(unasked);
    Done { work, result, parts, unasked, time: start.elapsed() }
}

/// Runs a pass over the graphs inside of a graph's ops, the innermost first.
fn subgraphs(graph: &mut Graph, context: &Context<'_>, run: Run) -> Result<bool> {
    let mut changed = false;
    for op in graph.all_ops() {
        for (name, inner) in graphs_of(graph, op) {
            let mut inner: Graph = Arc::unwrap_or_clone(inner);
            let mut inner_changed = subgraphs(&mut inner, context, run)?;
            context.changed();
            inner_changed |= run.on_graph(&mut inner, context)?;
            context.changed();
            if inner_changed {
                graph.set_attr(op, name, Attr::Graph(Arc::new(inner)));
                changed = true;
            }
        }
    }
    Ok(changed)
}

fn graphs_of(graph: &Graph, op: OpId) -> Vec<(Symbol, Arc<Graph>)> {
    let attrs = graph.attrs(op).iter();
    attrs.filter_map(|(name, attr)| attr.as_graph().map(|g| (*name, Arc::clone(g)))).collect()
}

/// Puts graphs back and adds up what came of them.
fn collect(
    module: &mut Module,
    caches: &mut HashMap<Symbol, AnalysisCache>,
    done: Vec<Done>,
    outcome: &mut Outcome,
) {
    let Outcome { report, log, result } = outcome;
    for Done { work, result: one, parts, unasked, time } in done {
        let Work { name, graph, analyses } = work;
        if let Some(function) = module.functions.get_mut(&name) {
            function.graph = graph;
        }
        caches.insert(name, analyses);
        log.push_str(&parts.log);
        report.steps += parts.steps;
        report.unasked |= unasked;
        report.last_step = parts.last_step.or(report.last_step.take());
        report.function_times.push((name, time));
        for (what, n) in parts.statistics {
            *report.statistics.entry(what).or_default() += n;
        }
        match one {
            Ok(true) => {
                report.functions.push(name);
                report.changed = true;
            }
            Ok(false) => {}
            // The first function in order is reported, whichever thread was first.
            Err(error) if result.is_ok() => {
                let error = if module.functions.len() > 1 {
                    error.note(format!("in function `{name}`"))
                } else {
                    error
                };
                *result = Err(error);
            }
            Err(_) => {}
        }
    }
    if report.last_step.is_none() && report.changed {
        report.last_step = Some(format!("the pass as a whole ({} functions)", report.functions.len()));
    }
    if let Ok(changed) = result {
        *changed = report.changed;
    }
}

/// Whether a name matches a pattern in which `*` stands for anything.
pub(super) fn matches(glob: &str, name: &str) -> bool {
    let mut parts = glob.split('*');
    let Some(rest) = parts.next().and_then(|first| name.strip_prefix(first)) else { return false };
    let mut rest = rest;
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.len() >= last.len() && rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn globs() {
        assert!(
            matches("*", "f") && matches("f*", "forward") && matches("a.*.c", "a.b.c") && matches("f", "f")
        );
        assert!(!matches("f", "ff") && !matches("a*b", "ac") && !matches("ab*ba", "aba"));
    }
}
