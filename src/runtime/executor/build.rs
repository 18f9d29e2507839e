//! Builds a plan: the function's graph with the types of the arguments, run through the plan's pipeline, made code.
//! What a plan cannot be made for is said by a reason.

use super::optimize::{compile_groups, constants, optimized};
use super::plan::Plan;
use super::recording;
use super::replay::Replay;
use super::subject::Subject;
use super::updates::Updates;
use crate::analysis::facts;
use crate::diag::{ErrorKind, Result};
use crate::dialects::{Effects, Fact, Registry, Run, Variant, fusion};
use crate::ir::{Function, Graph, OpId};
use crate::passes::{self, Context, Pipeline, check_strict_fusion};
use crate::runtime::code::Code;
use std::sync::{Arc, LazyLock};

/// Builds the plan of a call by a pipeline, which may leave writes to arguments for the end of the call. The inner error is the reason why there can be none; the outer one ends the run.
pub(super) fn build(
    subject: &Subject<'_>,
    pipeline: (&Pipeline, bool),
    run: &Run,
) -> Result<Result<Plan, String>> {
    match attempt(subject, pipeline, run) {
        Ok(plan) => {
            if let (Ok(plan), Some(all)) = (&plan, subject.context.strict_fusion) {
                check_strict_fusion(&plan.graph, subject.context.registry, all)?;
            }
            Ok(plan)
        }
        Err(error) if error.kind() == ErrorKind::Limit => Err(error),
        Err(error) => Ok(Err(format!("planning failed: {}", error.message()))),
    }
}

fn attempt(
    subject: &Subject<'_>,
    (pipeline, updates): (&Pipeline, bool),
    run: &Run,
) -> Result<Result<Plan, String>> {
    let registry = subject.context.registry;
    let mut folded = None;
    let graph = &subject.function.graph;
    if asks_for_grad_mode(graph) || refusal(registry, graph).is_some() {
        let function = folded.insert(without_dead_branches(subject, run.grad_enabled())?);
        if let Some(reason) = refusal(registry, &function.graph) {
            return Ok(Err(reason));
        }
    }
    let disk = subject.disk.clone();
    let subject = &Subject { function: folded.as_ref().unwrap_or(subject.function), disk, ..*subject };
    if run.grad_enabled()
        && let Some(recorded) = recording::attempt(subject)?
    {
        return Ok(recorded);
    }
    let (graph, guards, making) = optimized(subject, (pipeline, true), run.known_composites())?;
    if making.kept > 0 {
        subject.counters.from_disk();
    }
    let graph = Arc::new(graph);
    let context = subject.context_behind(&guards);
    let code = Arc::new(Code::compile(context, &graph, subject.function.name.as_str())?);
    compile_groups(&graph, &code, registry);
    let updates = updates.then(|| Updates::of(&graph, constants(&graph)));
    let (making, replay) = (Arc::new(making), Replay::default());
    Ok(Ok(Plan { graph, code, guards, making, recording: None, replay, updates }))
}

/// Whether a graph asks whether gradients are recorded, or enters a block that may say so.
fn asks_for_grad_mode(graph: &Graph) -> bool {
    let asks = ["aten::is_grad_enabled", "prim::Enter"];
    graph.all_ops().into_iter().any(|op| asks.contains(&graph.kind(op).as_str()))
}

/// The function without branches that constants turn off (of an `inplace` that is False, mostly), without stretches that record no
/// gradients where they are recorded, and without questions for that where the answer is the same all through.
fn without_dead_branches(subject: &Subject<'_>, records: bool) -> Result<Function> {
    static PLAIN: LazyLock<Result<Pipeline>> = LazyLock::new(|| {
        passes::parse(
            "lower-grad-mode,constant-propagation-immutable-types,fold-grad-mode,constant-propagation-immutable-types",
        )
    });
    static RECORDED: LazyLock<Result<Pipeline>> = LazyLock::new(|| {
        passes::parse(
            "lower-grad-mode,constant-propagation-immutable-types,detach-no-grad,fold-grad-mode{recording},constant-propagation-immutable-types",
        )
    });
    let mut function = subject.function.clone();
    let context = Context::new(subject.context.registry, subject.module);
    let pipeline = if records { &RECORDED } else { &PLAIN };
    pipeline.as_ref().map_err(Clone::clone)?.run_graph(&mut function.graph, &context)?;
    Ok(function)
}

/// Why no plan can be made of a graph.
fn refusal(registry: &Registry, graph: &Graph) -> Option<String> {
    graph.all_ops().into_iter().find_map(|op| refuses(registry, graph, op))
}

fn refuses(registry: &Registry, graph: &Graph, op: OpId) -> Option<String> {
    let kind = graph.kind(op);
    if graph.attr(op, "Subgraph").is_some() && !fusion::is_group(kind) {
        return Some(format!("{kind} runs other code"));
    }
    if !graph.nested_blocks(op).is_empty() || fusion::is_group(kind) {
        return None;
    }
    let facts = facts(registry, graph, op);
    let Some(row) = &facts.op else { return Some(format!("{kind} is not known")) };
    let has = |fact: Fact| row.def().facts.contains(&fact);
    if facts.effects.contains(Effects::ALL) {
        return Some(format!("{kind} may do anything"));
    }
    if has(Fact::Autograd) {
        return Some(format!("{kind} speaks with autograd"));
    }
    if facts.writes && (has(Fact::Reshapes) || row.variant() == Variant::Out) {
        return Some(format!("{kind} may give a tensor other sizes in place"));
    }
    None
}
