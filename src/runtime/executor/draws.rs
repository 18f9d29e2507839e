//! Random numbers of recorded calls: what a call draws is drawn before its forward begins, in the order of the program, and is
//! an operand from then on. So a backward that runs the forward again reads the same numbers, and both are compiled. It
//! knows no op by name.

use crate::analysis::is_pure;
use crate::autodiff;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{Graph, OpId, ValueId};
use crate::passes::{self, Context, Extras, Pipeline};
use hashbrown::HashSet;
use std::sync::{Arc, LazyLock};

static HOIST: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record-draws"));

/// Takes the draws out of a graph: the graph of these, whose outputs are further inputs of the other from now on. It has the
/// inputs that the graph had where it asks for open sizes, and none otherwise. None where nothing is drawn. Fails where what is
/// drawn depends on the call's data.
pub(super) fn take(
    graph: &mut Graph,
    (registry, extras): (&Arc<Registry>, &Extras),
    context: &Context<'_>,
) -> Result<Option<Graph>> {
    let random =
        |graph: &Graph| graph.all_ops().into_iter().find(|op| passes::is_random(graph, registry, *op));
    if random(graph).is_none() {
        return Ok(None);
    }
    let mut unfolded = autodiff::unfolded_draws(graph, (registry, extras))?;
    HOIST.as_ref().map_err(Clone::clone)?.run_graph(&mut unfolded, context)?;
    if random(&unfolded).is_none() {
        // Layers that may drop something and do not.
        return Ok(None);
    }
    let front = passes::draws(&unfolded, registry);
    let mut draws = unfolded.clone();
    let given = cut(&mut unfolded, &front);
    if let Some(op) = random(&unfolded) {
        return Err(Diagnostic::unsupported(format!(
            "{} draws random numbers that depend on data",
            unfolded.kind(op)
        )));
    }
    keep(&mut draws, (&front, &given), registry);
    *graph = unfolded;
    Ok(Some(draws))
}

/// Makes inputs of what ops give to the rest of a graph, and takes these ops out; gives what they gave.
fn cut(graph: &mut Graph, front: &[OpId]) -> Vec<ValueId> {
    let ops: HashSet<OpId> = front.iter().copied().collect();
    let constant = |graph: &Graph, op: OpId| graph.kind(op) == "prim::Constant";
    let mut given = Vec::new();
    for op in front.iter().copied().filter(|op| !constant(graph, *op)) {
        for result in graph.results(op) {
            // Numbers and lists of them are made again where they are used.
            if graph.ty(result).is_tensor() && graph.uses(result).any(|user| !ops.contains(&user.op)) {
                given.push(result);
            }
        }
    }
    for value in &given {
        let input = graph.add_input(graph.ty(*value).clone());
        graph.replace_all_uses(*value, input);
    }
    for op in front.iter().rev() {
        if graph.results(*op).iter().all(|result| !graph.has_uses(*result)) {
            graph.erase(*op);
        }
    }
    given
}

/// Keeps of a graph some ops that depend on the sizes of inputs at most, and makes outputs of what they give.
fn keep(graph: &mut Graph, (front, given): (&[OpId], &[ValueId]), registry: &Registry) {
    let root = graph.root();
    graph.set_block_results(root, given);
    let rest: Vec<OpId> = graph.block_ops(root).skip(front.len()).collect();
    rest.into_iter().rev().for_each(|op| graph.erase(op));
    for op in front.iter().rev() {
        let is_used = graph.results(*op).iter().any(|result| graph.has_uses(*result));
        if !is_used && is_pure(registry, graph, *op) {
            graph.erase(*op);
        }
    }
    if graph.inputs().iter().any(|input| graph.has_uses(*input)) {
        return;
    }
    for n in (0..graph.inputs().len()).rev() {
        graph.remove_param(root, n);
    }
}
