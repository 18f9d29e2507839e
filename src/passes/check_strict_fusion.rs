//! Refuses graphs in which work of a `with torch.jit.strict_fusion()` is in no fusion group, or in several: each op is named, with the
//! reason. With `all` the whole graph is asked, where several groups are right. It changes nothing.

use super::unfused::{why_apart, why_outside};
use super::{Context, PassOption};
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::prim::profiling::{FALLBACK, REQUIRES_GRAD_CHECK, TYPE_CHECK};
use crate::dialects::{Registry, fusion, resolve};
use crate::ir::{BlockId, Graph, Module, OpId, Place};

/// The class whose objects mark regions.
const CLASS: &str = "__torch__.torch.jit.strict_fusion";

/// Options of the pass.
pub(super) const OPTIONS: &[PassOption] = &[PassOption::bool(
    "all",
    false,
    "ask the whole graph, not the regions of torch.jit.strict_fusion alone",
)];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    check(graph, context, context.flag("all")?).map(|()| false)
}

/// Fails where work is not fused in regions that ask for it, with `all` anywhere.
pub fn check_strict_fusion(graph: &Graph, registry: &Registry, all: bool) -> Result<()> {
    check(graph, &Context::new(registry, &Module::default()), all)
}

fn check(graph: &Graph, context: &Context<'_>, all: bool) -> Result<()> {
    if all {
        let mut region = Region::default();
        let mut ops = graph.block_ops(graph.root());
        ops.try_for_each(|op| region.take(graph, context, op))?;
        region.check_ops(graph, context, None)?;
    }
    for enter in graph.all_ops().into_iter().filter(|op| is_marker(graph, *op, "prim::Enter")) {
        let mut region = Region::default();
        let mut at = graph.next(enter);
        while let Some(op) = at.filter(|op| !is_exit_of(graph, *op, enter)) {
            region.take(graph, context, op)?;
            at = graph.next(op);
        }
        let place = span_of(graph, enter);
        region.check_ops(graph, context, place.as_ref())?;
        region.check_groups(graph, context, place.as_ref())?;
    }
    Ok(())
}

fn is_marker(graph: &Graph, op: OpId, kind: &str) -> bool {
    let class = || graph.operand(op, 0).and_then(|object| graph.ty(object).class_name());
    graph.kind(op) == kind && class().is_some_and(|class| class == CLASS)
}

fn is_exit_of(graph: &Graph, op: OpId, enter: OpId) -> bool {
    is_marker(graph, op, "prim::Exit") && graph.operand(op, 0) == graph.operand(enter, 0)
}

/// The place of an op in source that is at hand.
fn span_of(graph: &Graph, op: OpId) -> Option<Span> {
    match &graph.location(op)?.place {
        Place::Span(span) => Some(span.clone()),
        Place::File { .. } | Place::Unknown => None,
    }
}

/// The same as text, with a blank before it.
fn place_of(graph: &Graph, op: OpId) -> String {
    match graph.location(op).map(|location| &location.place) {
        Some(Place::Span(span)) => {
            let (line, column) = span.line_column();
            format!(" at {}:{line}:{column}", span.source().name())
        }
        Some(Place::File { file, line, column }) => format!(" at {file}:{line}:{column}"),
        Some(Place::Unknown) | None => String::new(),
    }
}

/// What is in a region.
#[derive(Default)]
struct Region {
    groups: Vec<OpId>,
    unfused: Vec<(OpId, String)>,
}

impl Region {
    fn take(&mut self, graph: &Graph, context: &Context<'_>, op: OpId) -> Result<()> {
        let kind = graph.kind(op).as_str();
        let is_check = |op: OpId| matches!(graph.kind(op).as_str(), TYPE_CHECK | REQUIRES_GRAD_CHECK);
        if is_check(op)
            || kind == FALLBACK
            || ["prim::Enter", "prim::Exit"].iter().any(|k| is_marker(graph, op, k))
        {
            return Ok(());
        }
        if fusion::is_group(graph.kind(op)) {
            self.groups.push(op);
            return Ok(());
        }
        let blocks = graph.nested_blocks(op);
        let guarded = graph.operand(op, 0).and_then(|answer| graph.def_op(answer)).is_some_and(is_check);
        if kind == "prim::If" && guarded {
            // The other block is the fallback.
            let first = blocks.first().copied();
            return first.into_iter().try_for_each(|block| self.take_block(graph, context, block));
        }
        // What the function gives is put together outside of any group.
        let uses = graph.results(op);
        let gives =
            |value| graph.uses(value).all(|used| graph.terminated_block(used.op) == Some(graph.root()));
        let packs = kind == "prim::TupleConstruct" && uses.into_iter().all(gives);
        if !packs && let Some(reason) = why_outside(graph, context, op) {
            self.unfused.push((op, reason));
        }
        blocks.iter().try_for_each(|block| self.take_block(graph, context, *block))
    }

    fn take_block(&mut self, graph: &Graph, context: &Context<'_>, block: BlockId) -> Result<()> {
        graph.block_ops(block).try_for_each(|op| self.take(graph, context, op))
    }

    fn check_ops(&self, graph: &Graph, context: &Context<'_>, place: Option<&Span>) -> Result<()> {
        if self.unfused.is_empty() {
            return Ok(());
        }
        let mut message = "Found unfused operators: ".to_string();
        for (op, _) in &self.unfused {
            let row = resolve(context.registry, graph, *op).ok();
            let schema = row.map_or_else(|| graph.kind(*op).to_string(), |row| row.schema_text().to_string());
            message.push_str(&format!("\n\t{schema}"));
        }
        let error = Diagnostic::raised("RuntimeError", message).at_opt(place);
        Err(self.unfused.iter().fold(error, |error, (op, reason)| {
            error.note(format!("{}{}: {reason}", graph.kind(*op), place_of(graph, *op)))
        }))
    }

    fn check_groups(&self, graph: &Graph, context: &Context<'_>, place: Option<&Span>) -> Result<()> {
        let [first, second, ..] = self.groups.as_slice() else { return Ok(()) };
        let lines: Vec<String> = self.groups.iter().map(|op| format!("\n{}", graph.op_line(*op))).collect();
        let message = format!("Found multiple fusions: {}", lines.concat());
        let reason = why_apart(graph, context, *first, *second);
        Err(Diagnostic::raised("RuntimeError", message).at_opt(place).note(reason))
    }
}
