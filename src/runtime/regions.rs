//! Ops whose rows run their blocks. Each block is code of its own; what it uses of the values around it is handed to it in front
//! of its own arguments. No op is known here by name.

use super::code::{Bound, Code};
use super::interpreter::execute;
use super::program::Inner;
use super::traceback;
use crate::diag::{Diagnostic, Result};
use crate::dialects::region::Blocks;
use crate::dialects::{Args, Outputs, Run};
use crate::ir::{BlockId, Graph, ValueId};
use crate::value::Value;
use indexmap::IndexSet;
use std::sync::Arc;

/// A block that a row runs.
pub(super) struct RegionCode {
    pub(super) code: Arc<Code>,
    /// How many values around it it uses.
    pub(super) captured: usize,
}

/// The values that a block uses, itself or in nested blocks, and that are defined outside of it; in order of their first use.
pub(super) fn captured(graph: &Graph, block: BlockId) -> Vec<ValueId> {
    let (mut used, mut defined) = (IndexSet::new(), IndexSet::new());
    let mut blocks = vec![block];
    while let Some(block) = blocks.pop() {
        defined.extend(graph.params(block).iter().copied());
        for op in graph.block_ops(block).chain([graph.terminator(block)]) {
            used.extend(graph.operands(op).iter().copied());
            defined.extend(graph.results(op));
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
    }
    used.into_iter().filter(|value: &ValueId| !defined.contains(value)).collect()
}

/// The blocks of an op that runs, with the values around them.
struct Ready<'a> {
    program: &'a Arc<Inner>,
    run: &'a Run,
    blocks: Vec<(&'a Arc<Code>, &'a [Value])>,
}

impl Blocks for Ready<'_> {
    fn run(&self, block: usize, arguments: Vec<Value>) -> Result<Vec<Value>> {
        let Some((code, captured)) = self.blocks.get(block) else {
            return Err(Diagnostic::runtime(format!("the op has no block {block}")));
        };
        let wanted = code.parameters.len() - captured.len();
        if arguments.len() != wanted {
            let message = format!("block {block} takes {wanted} values, not {}", arguments.len());
            return Err(Diagnostic::runtime(message));
        }
        let all = captured.iter().cloned().chain(arguments).collect();
        execute(self.program, self.run, Arc::clone(code), all).map_err(traceback::flatten)
    }
}

/// Runs an op by its row. `operands` are its own and then, block by block, those that its blocks use.
pub(super) fn run(
    program: &Arc<Inner>,
    run: &Run,
    bound: &Bound,
    regions: &[RegionCode],
    operands: Vec<Value>,
) -> Result<Outputs> {
    let kernel = bound.op.def().region.ok_or_else(|| Diagnostic::internal("a row without a region"))?;
    let captured: usize = regions.iter().map(|region| region.captured).sum();
    let Some(own) = operands.len().checked_sub(captured) else {
        return Err(Diagnostic::internal("blocks that use more values than there are"));
    };
    let (values, mut around) = operands.split_at(own);
    let mut blocks = Vec::with_capacity(regions.len());
    for region in regions {
        let (its, rest) = around.split_at(region.captured);
        blocks.push((&region.code, its));
        around = rest;
    }
    let results =
        kernel(&Args { op: &bound.op, values, node: bound.node(), run }, &Ready { program, run, blocks })?;
    let wanted = bound.result_types.len();
    if results.len() != wanted {
        let message = format!("{} gave {} results, not {wanted}", bound.op.name(), results.len());
        return Err(Diagnostic::runtime(message));
    }
    Ok(results)
}
