//! What happens to each function's graph before it runs, with passes or without, as it is observable by programs.
//! Contexts of autocasting, `with torch.autocast(...)`, become casts: a function that enters one runs with what it calls
//! inlined and the pass `autocast` over it; contexts are places in the text, so that other functions run as they are. And two
//! things that PyTorch's executor does to every graph: neutral elements are left out, which keeps tensors of bools what they
//! are, and so are dead stores, which cannot fail then, in functions without loops.

use crate::analysis::FactsTable;
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Function, Graph, Module};
use crate::passes::{Context, has_autocast, has_neutral, parse};

/// A function's graph as it runs; None where that is as it stands.
pub(super) fn prepared(module: &Module, function: &Function, registry: &Registry) -> Result<Option<Graph>> {
    let given = &function.graph;
    let passes = [
        (has_autocast(given), "autocast-contexts"),
        (has_neutral(given), "drop-neutral"),
        (has_dead_writes(given, registry), "dce-graph"),
    ];
    if passes.iter().all(|(wanted, _)| !wanted) {
        return Ok(None);
    }
    let mut graph = given.clone();
    let context = Context::new(registry, module);
    for (_, pipeline) in passes.iter().filter(|(wanted, _)| *wanted) {
        parse(pipeline)?.run_graph(&mut graph, &context)?;
    }
    Ok(Some(graph))
}

/// Prepares all functions of a module, as what is called stands before any is.
pub(super) fn prepare_module(module: &mut Module, registry: &Registry) -> Result<()> {
    let mut graphs = Vec::new();
    for (name, function) in &module.functions {
        if let Some(graph) = prepared(module, function, registry)? {
            graphs.push((*name, graph));
        }
    }
    for (name, graph) in graphs {
        if let Some(function) = module.functions.get_mut(&name) {
            function.graph = graph;
        }
    }
    Ok(())
}

/// Whether an op writes to observable memory and has unused results: it may be dead. Not where there are
/// loops: one that does nothing else would go on without end, and never come to the limit of what it filled.
fn has_dead_writes(graph: &Graph, registry: &Registry) -> bool {
    let ops = graph.all_ops();
    if ops.iter().any(|op| graph.kind(*op) == "prim::Loop") {
        return false;
    }
    let mut facts = FactsTable::new(registry);
    ops.into_iter().any(|op| {
        let unused = graph.results(op).iter().all(|result| !graph.has_uses(*result));
        unused && facts.get(graph, op).writes
    })
}
