//! Inlining: calls of functions and methods become the graphs that they call. Locations keep the call they were
//! inlined through. The language has no recursion, but graph text can write it: a call of a function from within
//! itself stays a call. A bound on size guards against doubling.

use super::Context;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, Function, Graph, OpId, Symbol, TypeKind, ValueId};
use hashbrown::HashMap;

/// No function grows beyond so many ops.
const MAX_OPS: usize = 2_000_000;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut changed = false;
    let mut origins = Origins::new(context.function);
    let mut work: Vec<(OpId, usize)> = graph.all_ops().into_iter().rev().map(|op| (op, 0)).collect();
    while let Some((op, within)) = work.pop() {
        let Some((callee, arguments)) = target(graph, context, op) else { continue };
        if origins.contains(within, &Some(callee.name)) {
            continue;
        }
        check_size(graph, callee)?;
        if !context.step(|| format!("inlines {} at {}", callee.name, graph.op_line(op))) {
            break;
        }
        context.count("calls inlined", 1);
        let call = origins.enter(within, Some(callee.name));
        work.extend(splice(graph, op, callee, &arguments).into_iter().rev().map(|op| (op, call)));
        changed = true;
    }
    Ok(changed)
}

/// What each inlined op came from: callees, each with the call around it. The one at 0 is the graph itself.
pub(super) struct Origins<T> {
    calls: Vec<(T, usize)>,
}

impl<T: PartialEq> Origins<T> {
    pub(super) fn new(graph: T) -> Origins<T> {
        Origins { calls: vec![(graph, 0)] }
    }

    /// A call of `callee` by an op that came from `within`; gives what the ops of its copy come from.
    pub(super) fn enter(&mut self, within: usize, callee: T) -> usize {
        self.calls.push((callee, within));
        self.calls.len() - 1
    }

    /// Whether an op came out of a call of `callee`, which calls itself then.
    pub(super) fn contains(&self, mut within: usize, callee: &T) -> bool {
        while within != 0 && self.calls[within].0 != *callee {
            within = self.calls[within].1;
        }
        self.calls[within].0 == *callee
    }
}

/// Refuses a call that would make the graph too large.
pub(super) fn check_size(graph: &Graph, callee: &Function) -> Result<()> {
    if graph.op_count() + callee.graph.op_count() <= MAX_OPS {
        return Ok(());
    }
    let message = format!("inlining {} would make more than {MAX_OPS} ops", callee.name);
    Err(Diagnostic::unsupported(message))
}

/// The function that a call means, and what it passes.
fn target<'a>(graph: &Graph, context: &Context<'a>, op: OpId) -> Option<(&'a Function, Vec<ValueId>)> {
    let operands = graph.operands(op);
    match graph.kind(op).as_str() {
        "prim::CallFunction" => {
            let value = *operands.first()?;
            let TypeKind::Function(name) = graph.ty(value).kind() else { return None };
            // In graph text the constant alone says the name.
            let named = || Symbol::existing(graph.attr(graph.def_op(value)?, "name")?.as_str()?);
            let functions = &context.module.functions;
            let callee = functions.get(name).or_else(|| functions.get(&named()?))?;
            Some((callee, operands[1..].to_vec()))
        }
        "prim::CallMethod" => {
            let class = graph.ty(*operands.first()?).class_name()?;
            let method = graph.attr(op, "name").and_then(Attr::as_str)?;
            let name = context.module.class(class)?.methods.get(&Symbol::existing(method)?)?;
            Some((context.module.functions.get(name)?, operands.to_vec()))
        }
        _ => None,
    }
}

/// Puts a copy of the callee's graph in place of the call; gives the ops of the copy, nested ones included.
pub(super) fn splice(graph: &mut Graph, call: OpId, callee: &Function, arguments: &[ValueId]) -> Vec<OpId> {
    let body = &callee.graph;
    let mut map: HashMap<ValueId, ValueId> = HashMap::new();
    map.extend(body.inputs().iter().copied().zip(arguments.iter().copied()));
    let outer = graph.location_id(call);
    let mut copies = Vec::new();
    for op in body.block_ops(body.root()) {
        let copy = graph.clone_op(Some(body), op, &mut map);
        graph.insert_before(copy, call);
        copies.push(copy);
    }
    let mut all = Vec::new();
    let mut work: Vec<OpId> = copies.into_iter().rev().collect();
    while let Some(op) = work.pop() {
        all.push(op);
        if let Some(mut location) = graph.location(op).cloned()
            && location.inlined_from.is_none()
        {
            location.inlined_from = Some((callee.name, outer));
            graph.set_location(op, location);
        }
        for block in graph.nested_blocks(op).to_vec() {
            let inner: Vec<OpId> = graph.block_ops(block).collect();
            work.extend(inner.into_iter().rev());
        }
    }
    let results: Vec<ValueId> = body.outputs().iter().map(|v| map.get(v).copied().unwrap_or(*v)).collect();
    graph.replace_op(call, &results);
    all
}
