//! The pass `lower-scalars`: loops over numbers get their kernels, as functions of the module.
//!
//! The loop stays, as what its kernel leaves to the interpreter needs it; its attribute `kernel` names the function. A loop that
//! stays without says why in its attribute `not_lowered`; loops within a loop that has a kernel are part of that.

use super::lower;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, BlockId, Function, Graph, Module, OpId, Symbol, derived_schema};
use crate::passes::{Context, Pass};

/// The attribute that names a loop's kernel.
pub const KERNEL: &str = "kernel";
const NOT_LOWERED: &str = "not_lowered";

/// The pass, for the table of a toolkit.
pub const PASS: Pass = Pass::module(
    "lower-scalars",
    "Adds kernels of loops over ints, floats, bools and lists of them to the module, as functions",
    run,
);

fn run(module: &mut Module, context: &Context<'_>) -> Result<bool> {
    let mut made: Vec<Function> = Vec::new();
    let mut changed = false;
    for (name, function) in &mut module.functions {
        let graph = &mut function.graph;
        let mut loops = 0;
        let mut blocks: Vec<BlockId> = vec![graph.root()];
        while let Some(block) = blocks.pop() {
            let ops: Vec<OpId> = graph.block_ops(block).collect();
            for op in ops {
                let is_loop = graph.kind(op) == "prim::Loop" && graph.attr(op, KERNEL).is_none();
                if is_loop && !context.step(|| format!("lowers {}", graph.op_line(op).trim())) {
                    return finish(module, made, changed);
                }
                let lowered = is_loop.then(|| lower(context.registry, graph, op));
                match lowered {
                    Some(Ok(lowered)) => {
                        let name = kernel_name(*name, loops);
                        loops += 1;
                        graph.set_attr(op, KERNEL, Attr::Str(name.as_str().into()));
                        graph.remove_attr(op, NOT_LOWERED);
                        made.push(kernel_function(name, lowered.kernel));
                        changed = true;
                        continue;
                    }
                    Some(Err(error)) => {
                        context.count("loops not lowered", 1);
                        graph.set_attr(op, NOT_LOWERED, Attr::Str(error.message().into()));
                        changed = true;
                    }
                    None => {}
                }
                blocks.extend(graph.nested_blocks(op).iter().rev());
            }
        }
    }
    finish(module, made, changed)
}

fn finish(module: &mut Module, made: Vec<Function>, changed: bool) -> Result<bool> {
    for function in made {
        if module.functions.contains_key(&function.name) {
            return Err(Diagnostic::input(format!("there is a function {} already", function.name)));
        }
        module.functions.insert(function.name, function);
    }
    Ok(changed)
}

/// Graphs of text may be without a name.
fn kernel_name(function: Symbol, n: usize) -> Symbol {
    let function = function.as_str();
    Symbol::new(&if function.is_empty() { format!("loop{n}") } else { format!("{function}.loop{n}") })
}

fn kernel_function(name: Symbol, graph: Graph) -> Function {
    Function { name, schema: derived_schema(name, &graph), graph, span: None }
}
