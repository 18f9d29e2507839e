//! Ops whose rows run their blocks. Each block is code of its own; what it uses of the values around it is handed to it in front
//! of its own arguments. No op is known here by name.

use super::code::{Bound, Code, RegionCode};
use super::inner::Inner;
use super::interpreter::{Machine, execute};
use super::traceback;
use crate::diag::{Diagnostic, Result};
use crate::dialects::region::Blocks;
use crate::dialects::{Args, Outputs, Run};
use crate::value::Value;
use std::sync::Arc;

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

impl Machine<'_> {
    /// Runs an op by its row. `operands` are its own and then, block by block, those that its blocks use.
    pub(super) fn call_with_regions(
        &self,
        bound: &Bound,
        regions: &[RegionCode],
        operands: Vec<Value>,
    ) -> Result<Outputs> {
        let (program, run) = (self.program, self.run);
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
        let results = kernel(
            &Args { op: &bound.op, values, node: bound.node(), run },
            &Ready { program, run, blocks },
        )?;
        let wanted = bound.result_types.len();
        if results.len() != wanted {
            let message = format!("{} gave {} results, not {wanted}", bound.op.name(), results.len());
            return Err(Diagnostic::runtime(message));
        }
        Ok(results)
    }
}
