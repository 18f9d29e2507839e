//! Gives every guard a way out: a `prim::BailOut` that knows what is alive at its place. The graph as it is now, before anything
//! leans on the types, is kept in a `prim::BailoutTemplate` at the beginning; where a guard misses, the function goes on as what the
//! template does from there. Guards in blocks that can not be left are dropped.

use super::bailout_graph::{can_be_left, live_at};
use super::{Context, PassOption, constants};
use crate::diag::Result;
use crate::dialects::prim::profiling::{BAILOUT, BAILOUT_TEMPLATE, GUARD};
use crate::ir::{Attr, Graph, OpId, Symbol, Type};
use std::sync::Arc;

/// Options of the pass.
pub(super) const OPTIONS: &[PassOption] =
    &[PassOption::int("fail", -1, -1, "number of a guard that always fails, to test its bailout")];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let fails = context.int("fail")?;
    let guards: Vec<OpId> = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == GUARD).collect();
    // A second template would hold the first: what has bailouts is left unchanged.
    if guards.is_empty() || graph.all_ops().iter().any(|op| graph.kind(*op) == BAILOUT) {
        return Ok(false);
    }
    let mut pairs = Vec::new();
    for guard in guards {
        let (Some(value), true) = (graph.operand(guard, 0), can_be_left(graph, guard)) else {
            if !context
                .step(|| format!("drops {}, which is where no bailout is possible", graph.op_line(guard)))
            {
                break;
            }
            let operands = graph.operands(guard).to_vec();
            graph.replace_op(guard, &operands);
            context.count("guards dropped", 1);
            continue;
        };
        if !context.step(|| format!("gives a way out to {}", graph.op_line(guard))) {
            break;
        }
        let mut operands = vec![value];
        let live = live_at(graph, guard)?;
        operands
            .extend(live.into_iter().filter(|v| *v != value && constants::constant_op(graph, *v).is_none()));
        let types: Vec<Type> = graph.results(guard).iter().map(|v| graph.ty(*v).clone()).collect();
        let bailout = graph.create(Symbol::new(BAILOUT), &operands, &types);
        let index = pairs.len() as i64;
        graph.set_attr(bailout, "index", Attr::Int(index));
        if index == fails {
            graph.set_attr(bailout, "fails", Attr::Int(1));
        }
        graph.set_location_id(bailout, graph.location_id(guard));
        pairs.push((guard, bailout));
    }
    for (guard, bailout) in &pairs {
        graph.insert_after(*bailout, *guard);
    }
    // Only now: live values are recorded as values of the graph with guards.
    for (guard, bailout) in &pairs {
        let results = graph.results(*bailout);
        graph.replace_op(*guard, &results);
        context.count("bailouts", 1);
    }
    if !pairs.is_empty() {
        add_template(graph, &pairs);
    }
    context.changed();
    Ok(true)
}

fn add_template(graph: &mut Graph, pairs: &[(OpId, OpId)]) {
    let copy = graph.clone();
    let template = graph.create(Symbol::new(BAILOUT_TEMPLATE), &[], &[Type::int()]);
    graph.set_attr(template, "Subgraph", Attr::Graph(Arc::new(copy)));
    let root = graph.root();
    graph.prepend(root, template);
    for (_, bailout) in pairs {
        for result in graph.results(template) {
            graph.insert_operand(*bailout, 0, result);
        }
    }
}
