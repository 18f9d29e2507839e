//! The transform: of a graph, a graph that computes the gradients of its inputs.
//!
//! The backward graph takes the inputs of the forward graph and a gradient for each output that has one; it computes again what
//! cells ask for and is not an input, so that nothing else need be kept. Cells stand in it as the graphs of their text, one after
//! the other as the tape would run them, with the same sums, casts and sums to size between them; the pipeline `backward` then
//! folds what types determine, and `fuse` makes kernels of it. Which inputs want a gradient and which outputs have one is said
//! when the graph is made: undefined gradients are not values here.
//!
//! It knows rows and cells, no op by name but those of control flow and what they need, and not how graphs are run.

mod broadcasts;
mod graphs;
mod lists;
mod marks;
mod open;
mod regions;
mod reverse;
mod split;
mod texts;
mod types;

pub use graphs::{Backward, Split, Wanted};
pub use split::bytes_of;

use reverse::Built;

use crate::diag::{Diagnostic, Result};
use crate::dialects::Registry;
use crate::ir::{Graph, Module};
use crate::passes::{Context, Extras, Pipeline};
use std::sync::{Arc, LazyLock};

static FINISH: LazyLock<Result<Pipeline>> = LazyLock::new(|| crate::passes::parse("backward"));
static CLEAN: LazyLock<Result<Pipeline>> =
    LazyLock::new(|| crate::passes::parse("propagate-shapes,cse,constant-pooling,dce-graph,drop-carried"));

/// Differentiates a graph whose types say what is known of its inputs. Fails with `Unsupported` for what only the tape can
/// do: writes, random numbers, ops without a derivative.
pub fn backward(graph: &Graph, wanted: Wanted<'_>, registry: &Arc<Registry>) -> Result<Backward> {
    let outputs = Some(wanted.outputs);
    let extras = Extras::default();
    let Built { graph, follows, keeps, .. } =
        finished(graph, (wanted.inputs, outputs), (registry, &extras), false)?;
    let reads = reads(&graph, wanted.inputs.len());
    Ok(Backward { graph, reads, follows, keeps })
}

/// Differentiates as [`backward`] does, and splits the work so that what is worth it is kept between the parts: at most `max_kept`
/// bytes, where that is said and the inputs can give the rest again. A gradient is taken of each output that depends on a wanted
/// input; `extras` are for the passes that find types.
pub fn split(
    graph: &Graph,
    inputs: &[bool],
    max_kept: Option<u64>,
    (registry, extras): (&Arc<Registry>, &Extras),
) -> Result<Split> {
    let Built { graph: joint, follows, open, keeps } =
        finished(graph, (inputs, None), (registry, extras), true)?;
    let outputs = follows.len() + open.len();
    let split = split::split(&joint, (inputs.len(), outputs), max_kept, registry)?;
    let Split { mut forward, mut backward, kept, kept_bytes, .. } = split;
    let module = Module::default();
    let context = Context::new(registry, &module).with_extras(extras);
    let clean = CLEAN.as_ref().map_err(Clone::clone)?;
    clean.run_graph(&mut forward, &context)?;
    clean.run_graph(&mut backward, &context)?;
    if split::drop_finished(&mut backward, registry) {
        clean.run_graph(&mut backward, &context)?;
    }
    // The forward takes no gradients.
    while let Some(gradient) = forward.inputs().get(inputs.len()).copied() {
        if forward.has_uses(gradient) {
            return Err(Diagnostic::unsupported("an op that takes a gradient would run in the forward"));
        }
        let root = forward.root();
        forward.remove_param(root, inputs.len());
    }
    let reads = reads(&backward, inputs.len());
    Ok(Split { forward, backward, kept, kept_bytes, reads, follows, open, keeps })
}

/// A graph whose random ops (dropout, attention and recurrent layers with it) are what their derivatives compute them from, so that
/// draws stand in it by themselves: dtypes and sizes must be known. Fails as [`backward`] does.
pub fn unfolded_draws(graph: &Graph, (registry, extras): (&Arc<Registry>, &Extras)) -> Result<Graph> {
    reverse::unfolded_draws(graph, (registry, extras))
}

fn finished(
    graph: &Graph,
    wanted: (&[bool], Option<&[bool]>),
    (registry, extras): (&Arc<Registry>, &Extras),
    joint: bool,
) -> Result<Built> {
    let module = Module::default();
    let context = Context::new(registry, &module).with_extras(extras);
    let mut built = reverse::build(graph, wanted, (registry, extras), joint)?;
    let graph = &mut built.graph;
    FINISH.as_ref().map_err(Clone::clone)?.run_graph(graph, &context)?;
    broadcasts::run(graph, registry, &texts::Texts::of(registry))?;
    CLEAN.as_ref().map_err(Clone::clone)?.run_graph(graph, &context)?;
    Ok(built)
}

fn reads(graph: &Graph, inputs: usize) -> Vec<bool> {
    graph.inputs().iter().take(inputs).map(|input| graph.has_uses(*input)).collect()
}
