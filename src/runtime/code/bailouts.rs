//! Ways out of code: where a guard misses, the function goes on as other code, which is made of the bailout's template when that
//! happens first.

use super::{Action, Code, Compiler, Context, Continuation, NOWHERE, Operand};
use crate::diag::{Diagnostic, Result};
use crate::dialects::prim::profiling;
use crate::ir::{Attr, OpId};
use crate::passes;
use crate::runtime::checks::GuardKind;
use std::sync::{Arc, OnceLock};

impl Continuation {
    /// Its code. Fails where the template has no such place.
    pub(in crate::runtime) fn code(&self, context: Context<'_>, name: &str) -> Result<Arc<Code>> {
        if let Some(code) = self.code.get() {
            return Ok(Arc::clone(code));
        }
        let graph = passes::bailout_rest(&self.template, self.index)?;
        let mut code = Code::compile(context, &graph, name)?;
        // It is gone when the code runs.
        code.graph = None;
        Ok(Arc::clone(self.code.get_or_init(|| Arc::new(code))))
    }
}

impl Compiler<'_> {
    /// A value that is assumed to have a type, with a bailout: where it has the type the code goes on, else the function goes
    /// on as the rest of the template from here.
    pub(super) fn bailout(&mut self, op: OpId) -> Result<()> {
        let location = self.graph.location_id(op);
        let broken = |what: &str| Err(Diagnostic::verify(format!("{} {what}", profiling::BAILOUT)));
        if self.is_part {
            return broken("is in a block that is run by its op, and cannot leave it");
        }
        let template = self.graph.operand(op, 0).and_then(|value| self.graph.def_op(value));
        let template = template.and_then(|def| self.graph.attr(def, "Subgraph")).and_then(Attr::as_graph);
        let index = self.graph.attr(op, "index").and_then(Attr::as_int);
        let (Some(template), Some(index), Some(result)) = (template, index, self.graph.result(op, 0)) else {
            return broken("needs a template, an attribute `index` and a result");
        };
        let all = self.operands(op)?;
        let Some(value) = all.get(1).copied() else { return broken("needs a value") };
        let kept = |operand: &Operand| match operand {
            Operand::Take(register) => Operand::Keep(*register),
            other => *other,
        };
        let test = self.code.steps.len();
        let ty = self.graph.ty(result).clone();
        let fails = self.graph.attr(op, "fails").and_then(Attr::as_int) == Some(1);
        let guarded = self.graph.operand(op, 1).map(|value| self.graph.display_name(value));
        let of = format!("%{}", guarded.unwrap_or_default());
        let check = self.guard(GuardKind::BailOut, (of, ty.to_string()), op, fails);
        let jump = Action::JumpIfOf(ty.clone(), 0, Arc::clone(&check));
        self.push(jump, vec![kept(&value)], Vec::new(), location);
        let rest = Continuation { template: Arc::clone(template), index, code: OnceLock::new() };
        self.push(Action::GoOn(Box::new(rest)), all[1..].iter().map(kept).collect(), Vec::new(), location);
        self.code.steps[test].action = Action::JumpIfOf(ty, self.code.steps.len(), check);
        self.bury(op);
        // What only the rest needs is given back.
        let others = all[2..].iter().filter(|operand| matches!(operand, Operand::Take(_))).copied();
        let operands: Vec<Operand> = [value].into_iter().chain(others).collect();
        let mut results = vec![NOWHERE; operands.len()];
        results[0] = self.define(result)?;
        self.push_move(operands, results);
        Ok(())
    }
}
