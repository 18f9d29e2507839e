//! Which loops can run as kernels: those over numbers alone. Does not know how they run.

use super::{Compiler, Context, Register};
use crate::backends::{self, Backend, ScalarKernel};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::ir::{Attr, BlockId, Graph, OpId, ValueId};
use crate::lowering::scalars::pass::KERNEL;
use crate::lowering::{Target, scalars};
use crate::runtime::loops::CompiledLoop;
use std::sync::Arc;

/// The kernel of a loop over numbers: that of the module which the loop names, or else its own, where there is a compiler.
pub(super) fn compiled(
    compiler: &Compiler<'_>,
    op: OpId,
    carried: &[Register],
) -> Result<Option<Box<CompiledLoop>>> {
    let (context, graph) = (compiler.context, compiler.graph);
    let named = graph.attr(op, KERNEL).and_then(Attr::as_str).map(str::to_string);
    let Some(backend) = backend(&context, named.is_some()) else { return Ok(None) };
    let lowered = match scalars::lower(context.registry, graph, op) {
        Ok(lowered) => lowered,
        Err(error) if named.is_some() => return Err(error),
        // What is not a loop over numbers.
        Err(error) if error.kind() == ErrorKind::Unsupported => return Ok(None),
        Err(error) => return Err(error),
    };
    let holders =
        |values: Vec<ValueId>| values.into_iter().map(|v| compiler.holder(op, v)).collect::<Result<Vec<_>>>();
    let outer = holders(lowered.outer.iter().map(|(value, _)| *value).collect())?;
    let lists = holders(lowered.lists.iter().map(|list| list.value).collect())?;
    let weight = weight(graph, op);
    let name = named.clone().unwrap_or_else(|| format!("a loop of {}", compiler.code.name));
    let mut kernel = ScalarKernel::new(name, lowered, backend, Arc::clone(context.fusion));
    if let Some(name) = &named {
        let function = context.module.function(name).ok_or_else(|| {
            Diagnostic::verify(format!("a loop names the kernel '{name}', which the module does not have"))
        })?;
        kernel = kernel.with_kernel(&function.graph)?;
    }
    let parts = (carried.to_vec(), outer, lists);
    Ok(Some(Box::new(CompiledLoop::new(kernel, parts, weight, named.is_some()))))
}

/// Whether loops over numbers run as kernels, and what runs them: None for what runs kernels on this computer. Without a
/// compiler, only loops that were given kernels do.
fn backend(context: &Context<'_>, given: bool) -> Option<Option<Arc<dyn Backend>>> {
    match context.backend {
        Some(backend) if backend.target() != Target::Gpu => {
            (given || backend.compiles()).then(|| Some(Arc::clone(backend)))
        }
        _ => (given || backends::compiles()).then_some(None),
    }
}

/// About how many steps an iteration of a loop takes: those of loops within count eightfold.
fn weight(graph: &Graph, op: OpId) -> u64 {
    let mut weight = 0u64;
    let mut blocks: Vec<(BlockId, u64)> = graph.nested_blocks(op).iter().map(|block| (*block, 1)).collect();
    while let Some((block, times)) = blocks.pop() {
        for inner in graph.block_ops(block) {
            weight = weight.saturating_add(times);
            let within = if graph.kind(inner) == "prim::Loop" { times.saturating_mul(8) } else { times };
            blocks.extend(graph.nested_blocks(inner).iter().map(|block| (*block, within)));
        }
    }
    weight
}
