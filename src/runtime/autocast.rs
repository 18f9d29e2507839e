//! Contexts of autocasting, `with torch.autocast(...)`, as casts: a function that enters one runs with what it calls inlined
//! and the pass `autocast` over it. Contexts are places in the text, so that other functions run as they are.

use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Function, Graph, Module};
use crate::passes::{Context, has_autocast, parse};

const PIPELINE: &str = "autocast-contexts";

/// A function's graph with its casts; None where it enters no context.
pub(super) fn cast(module: &Module, function: &Function, registry: &Registry) -> Result<Option<Graph>> {
    if !has_autocast(&function.graph) {
        return Ok(None);
    }
    let mut graph = function.graph.clone();
    parse(PIPELINE)?.run_graph(&mut graph, &Context::new(registry, module))?;
    Ok(Some(graph))
}

/// The casts of all functions of a module, as what is called stands without them.
pub(super) fn cast_module(module: &mut Module, registry: &Registry) -> Result<()> {
    let mut cast_graphs = Vec::new();
    for (name, function) in &module.functions {
        if let Some(graph) = cast(module, function, registry)? {
            cast_graphs.push((*name, graph));
        }
    }
    for (name, graph) in cast_graphs {
        if let Some(function) = module.functions.get_mut(&name) {
            function.graph = graph;
        }
    }
    Ok(())
}
