//! Blocks of `prim::If` and `prim::Loop` as steps and jumps: what runs knows nothing of the tree.

use super::{Action, Compiler, Holder, Operand, Register, number_loops};
use crate::diag::{Diagnostic, Result};
use crate::ir::{BlockId, OpId, ValueId};
use crate::value::Value;

/// Blocks nested deeper are refused. They become jumps, which take no stack; passes walk them in stack that grows.
const MAX_LEVEL: usize = 10_000;

impl Compiler<'_> {
    pub(super) fn condition(&mut self, op: OpId, depth: usize) -> Result<()> {
        let location = self.graph.location_id(op);
        let &[on_true, on_false] = self.graph.nested_blocks(op) else {
            return Err(Diagnostic::verify("prim::If needs two blocks"));
        };
        let operands = self.operands(op)?;
        self.bury_direct(op);
        let test = self.code.steps.len();
        self.push(Action::JumpUnless(0), operands, Vec::new(), location);
        let mut results = Vec::new();
        for result in self.graph.results(op) {
            results.push(self.define(result)?);
        }
        self.branch(on_true, &results, depth)?;
        let leave = self.code.steps.len();
        self.push(Action::Jump(0), Vec::new(), Vec::new(), location);
        self.code.steps[test].action = Action::JumpUnless(self.code.steps.len());
        self.branch(on_false, &results, depth)?;
        self.code.steps[leave].action = Action::Jump(self.code.steps.len());
        self.drop_nested(op);
        Ok(())
    }

    fn branch(&mut self, block: BlockId, results: &[Register], depth: usize) -> Result<()> {
        self.inner_block(block, depth)?;
        let operands = self.block_results(block)?;
        if operands.len() != results.len() {
            return Err(Diagnostic::verify("the blocks of prim::If must have as many results as the op"));
        }
        self.push_move(operands, results.to_vec());
        Ok(())
    }

    /// A loop. What it carries stays in the registers of the block's parameters, which are the op's results too.
    pub(super) fn loop_op(&mut self, op: OpId, depth: usize) -> Result<()> {
        let location = self.graph.location_id(op);
        let &[body] = self.graph.nested_blocks(op) else {
            return Err(Diagnostic::verify("prim::Loop needs one block"));
        };
        let results = self.graph.results(op);
        let params: Vec<ValueId> = self.graph.params(body).to_vec();
        let carried = results.len();
        if self.graph.operands(op).len() != carried + 2
            || params.len() != carried + 1
            || self.graph.block_results(body).len() != carried + 1
        {
            return Err(Diagnostic::verify("the values that prim::Loop carries do not match in number"));
        }
        let operands = self.operands(op)?;
        self.bury_direct(op);
        let mut state = Vec::with_capacity(carried + 2);
        for _ in 0..carried + 2 {
            let register = self.allocate();
            self.reserved.insert(register);
            state.push(register);
        }
        let counter = self.allocate();
        self.push_move(operands, state.clone());
        let zero = self.code.constants.len() as u32;
        self.code.constants.push(Value::Int(0));
        self.push_move(vec![Operand::Constant(zero)], vec![counter]);
        let test = self.code.steps.len();
        let iteration = self.define(params[0])?;
        self.push(
            Action::Iteration { counter, exit: 0, compiled: None },
            vec![Operand::Keep(state[0]), Operand::Keep(state[1])],
            vec![iteration],
            location,
        );
        let compiled = number_loops::compiled(self, op, &state[2..])?;
        for (param, register) in params[1..].iter().zip(&state[2..]) {
            self.places[param.index()] = Holder::Register(*register);
        }
        self.inner_block(body, depth)?;
        let operands = self.block_results(body)?;
        self.push_move(operands, state[1..].to_vec());
        self.push(Action::Jump(test), Vec::new(), Vec::new(), location);
        self.code.steps[test].action = Action::Iteration { counter, exit: self.code.steps.len(), compiled };
        for register in &state {
            self.reserved.remove(register);
        }
        self.free.extend([state[0], state[1], counter]);
        for (result, register) in results.iter().zip(&state[2..]) {
            if self.graph.has_uses(*result) {
                self.places[result.index()] = Holder::Register(*register);
            } else {
                self.free.push(*register);
            }
        }
        self.drop_nested(op);
        Ok(())
    }

    /// A block of an op.
    fn inner_block(&mut self, block: BlockId, depth: usize) -> Result<()> {
        if self.level >= MAX_LEVEL {
            return Err(Diagnostic::unsupported(format!("blocks nested more than {MAX_LEVEL} deep")));
        }
        self.level += 1;
        stacker::maybe_grow(64 << 10, 1 << 20, || self.block(block, depth))?;
        self.level -= 1;
        Ok(())
    }
}
