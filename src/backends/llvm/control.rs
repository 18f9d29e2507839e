//! Control flow of kernels: loops that run one iteration at a time, loops while a condition holds, branches, and the steps that
//! loops take of the run's budget. Vector loops are [`super::emit`]'s.

use super::emit::{Emitter, unsupported};
use super::ir::{V, bug};
use super::machine::Kind;
use super::orc;
use super::values::Val;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Carried, For, If, Order, While};
use crate::resources::budget::STEPS_AT_ONCE;
use inkwell::IntPredicate as I;
use inkwell::basic_block::BasicBlock;
use inkwell::values::PhiValue;

impl<'c> Emitter<'c, '_> {
    /// One iteration at a time, with carried values.
    pub(super) fn serial_loop(&mut self, l: &For, begin: V<'c>, end: V<'c>, step: V<'c>) -> Result<()> {
        if !l.carried.is_empty() && l.order != Order::Sequential {
            let error = unsupported("a reduction in lanes here");
            return Err(if self.machine.kind == Kind::Ptx {
                error.hint("on a GPU it must be in a parallel loop, not in another vector loop, and have at most 32 lanes")
            } else {
                error
            });
        }
        self.strided_loop(l, begin, end, step)
    }

    /// The same, where carried values may be those of one lane.
    pub(super) fn strided_loop(&mut self, l: &For, begin: V<'c>, end: V<'c>, step: V<'c>) -> Result<()> {
        let (body, done) = (self.new_block("loop")?, self.new_block("done")?);
        let (inits, before) = (self.inits(&l.carried)?, self.here()?);
        let enters = self.ir.icmp(I::SLT, begin, end)?.into_int_value();
        self.ir.b.build_conditional_branch(enters, body, done).map_err(bug)?;
        self.ir.b.position_at_end(body);
        let iv = self.ir.b.build_phi(self.ir.i64(), "i").map_err(bug)?;
        iv.add_incoming(&[(&begin, before)]);
        self.regs[l.iv.index()] = Some(Val::Uniform(iv.as_basic_value()));
        let carried = self.begin_carried(&l.carried, inits, before)?;
        self.block(&l.body)?;
        self.count_steps(l.steps)?;
        let latch = self.here()?;
        let next = self.ir.add(iv.as_basic_value(), step)?;
        iv.add_incoming(&[(&next, latch)]);
        let finals = self.next_carried(&l.carried, &carried, latch)?;
        let again = self.ir.icmp(I::SLT, next, end)?.into_int_value();
        self.ir.b.build_conditional_branch(again, body, done).map_err(bug)?;
        self.ir.b.position_at_end(done);
        self.end_carried(&l.carried, carried, (before, latch), finals)
    }

    /// A loop whose first iteration there may not be, and whose iterations say whether there is another one.
    pub(super) fn while_loop(&mut self, l: &While) -> Result<()> {
        let (body, done) = (self.new_block("while")?, self.new_block("done")?);
        let (inits, before) = (self.inits(&l.carried)?, self.here()?);
        let enters = self.uniform(l.enters)?.into_int_value();
        self.ir.b.build_conditional_branch(enters, body, done).map_err(bug)?;
        self.ir.b.position_at_end(body);
        let carried = self.begin_carried(&l.carried, inits, before)?;
        self.block(&l.body)?;
        self.count_steps(l.steps)?;
        let again = self.uniform(l.again)?.into_int_value();
        let latch = self.here()?;
        let finals = self.next_carried(&l.carried, &carried, latch)?;
        self.ir.b.build_conditional_branch(again, body, done).map_err(bug)?;
        self.ir.b.position_at_end(done);
        self.end_carried(&l.carried, carried, (before, latch), finals)
    }

    /// What the first iteration gets; emitted before the loop, as one number may have to become one for each lane.
    fn inits(&self, carried: &[Carried]) -> Result<Vec<V<'c>>> {
        carried.iter().map(|c| self.carried(c.init)).collect()
    }

    /// Numbers that a loop carries, at the begin of its body.
    fn begin_carried(
        &mut self,
        carried: &[Carried],
        inits: Vec<V<'c>>,
        before: BasicBlock<'c>,
    ) -> Result<Vec<(V<'c>, PhiValue<'c>)>> {
        let mut out = Vec::with_capacity(carried.len());
        for (c, init) in carried.iter().zip(inits) {
            let phi = self.ir.b.build_phi(init.get_type(), "carried").map_err(bug)?;
            phi.add_incoming(&[(&init, before)]);
            self.regs[c.param.index()] = Some(self.carried_value(phi.as_basic_value()));
            out.push((init, phi));
        }
        Ok(out)
    }

    /// What the next iteration gets.
    fn next_carried(
        &self,
        carried: &[Carried],
        begun: &[(V<'c>, PhiValue<'c>)],
        latch: BasicBlock<'c>,
    ) -> Result<Vec<V<'c>>> {
        let mut finals = Vec::with_capacity(carried.len());
        for (c, (_, phi)) in carried.iter().zip(begun) {
            let value = self.carried(c.next)?;
            phi.add_incoming(&[(&value, latch)]);
            finals.push(value);
        }
        Ok(finals)
    }

    /// The numbers after the loop: those that came in or those of the last iteration.
    fn end_carried(
        &mut self,
        carried: &[Carried],
        begun: Vec<(V<'c>, PhiValue<'c>)>,
        (before, latch): (BasicBlock<'c>, BasicBlock<'c>),
        finals: Vec<V<'c>>,
    ) -> Result<()> {
        for ((c, (init, _)), last) in carried.iter().zip(begun).zip(finals) {
            let phi = self.ir.b.build_phi(init.get_type(), "result").map_err(bug)?;
            phi.add_incoming(&[(&init, before), (&last, latch)]);
            self.regs[c.result.index()] = Some(self.carried_value(phi.as_basic_value()));
        }
        Ok(())
    }

    /// Runs one of two blocks. Loops with a branch run one iteration at a time.
    pub(super) fn branch(&mut self, branch: &If) -> Result<()> {
        let holds = self.uniform(branch.condition)?.into_int_value();
        let (then, otherwise, after) =
            (self.new_block("then")?, self.new_block("else")?, self.new_block("after")?);
        self.ir.b.build_conditional_branch(holds, then, otherwise).map_err(bug)?;
        let mut sides = Vec::new();
        for (block, body, holds) in [(then, &branch.then, true), (otherwise, &branch.otherwise, false)] {
            self.ir.b.position_at_end(block);
            self.block(body)?;
            let given = branch.results.iter().map(|c| self.carried(if holds { c.then } else { c.otherwise }));
            let given: Vec<V<'c>> = given.collect::<Result<_>>()?;
            sides.push((self.here()?, given));
            self.ir.b.build_unconditional_branch(after).map_err(bug)?;
        }
        self.ir.b.position_at_end(after);
        let [(then, first), (otherwise, second)] = &sides[..] else {
            return Err(Diagnostic::internal("a branch has two sides"));
        };
        for ((c, x), y) in branch.results.iter().zip(first).zip(second) {
            let phi = self.ir.b.build_phi(x.get_type(), "chosen").map_err(bug)?;
            phi.add_incoming(&[(x, *then), (y, *otherwise)]);
            self.regs[c.result.index()] = Some(self.carried_value(phi.as_basic_value()));
        }
        Ok(())
    }

    /// Makes the kernel's own buffers, on the stack. They are set, so that no index is computed of what is undefined.
    pub(super) fn begin_locals(&mut self) -> Result<()> {
        if self.machine.kind == Kind::Ptx && !self.kernel.locals.is_empty() {
            return Err(unsupported("a loop::alloc on a GPU"));
        }
        for local in &self.kernel.locals {
            let elem = self.kernel.elem(local.reg);
            let (bytes, i8) = (local.size.saturating_mul(elem.size() as u32), self.ir.ctx.i8_type());
            let buffer = self.ir.b.build_alloca(i8.array_type(bytes), "local").map_err(bug)?;
            if let Some(made) = buffer.as_instruction() {
                made.set_alignment(16).map_err(|_| Diagnostic::internal("stack alignment"))?;
            }
            let count = self.ir.i64().const_int(u64::from(bytes), false);
            self.ir.b.build_memset(buffer, 16, i8.const_zero(), count).map_err(bug)?;
            self.regs[local.reg.index()] = Some(Val::Buffer(buffer));
        }
        Ok(())
    }

    // --- the run's budget ---

    /// Makes room for the count of steps. On a GPU nothing is counted.
    pub(super) fn begin_steps(&mut self) -> Result<()> {
        if self.machine.kind == Kind::Ptx || !self.kernel.takes_steps() {
            return Ok(());
        }
        let room = self.ir.b.build_alloca(self.ir.i64(), "steps").map_err(bug)?;
        self.ir.b.build_store(room, self.ir.i64().const_zero()).map_err(bug)?;
        self.steps = Some(room);
        Ok(())
    }

    /// Counts an iteration; asks the budget now and then, and leaves the kernel where its run must end.
    fn count_steps(&self, steps: u32) -> Result<()> {
        let (Some(room), true) = (self.steps, steps > 0) else { return Ok(()) };
        let i64 = self.ir.i64();
        let counted = self.ir.b.build_load(i64, room, "").map_err(bug)?;
        let counted = self.ir.add(counted, i64.const_int(steps.into(), false).into())?;
        self.ir.b.build_store(room, counted).map_err(bug)?;
        let enough = self.ir.icmp(I::UGE, counted, i64.const_int(STEPS_AT_ONCE, false).into())?;
        let (ask, goes_on) = (self.new_block("ask")?, self.new_block("goes_on")?);
        self.ir.b.build_conditional_branch(enough.into_int_value(), ask, goes_on).map_err(bug)?;
        self.ir.b.position_at_end(ask);
        self.ask(counted, goes_on)
    }

    /// Takes steps of the budget that are counted and not taken yet.
    pub(super) fn end_steps(&self) -> Result<()> {
        let Some(room) = self.steps else { return Ok(()) };
        let counted = self.ir.b.build_load(self.ir.i64(), room, "").map_err(bug)?;
        let done = self.new_block("taken")?;
        self.ask(counted, done)
    }

    /// Takes steps of the budget and goes to a block, or leaves the kernel.
    fn ask(&self, counted: V<'c>, goes_on: BasicBlock<'c>) -> Result<()> {
        let Some(room) = self.steps else { return Ok(()) };
        let i64 = self.ir.i64();
        let take = self.ir.module.get_function(orc::TAKE_STEPS);
        let take = take.unwrap_or_else(|| {
            self.ir.module.add_function(orc::TAKE_STEPS, i64.fn_type(&[i64.into()], false), None)
        });
        let call = self.ir.b.build_call(take, &[counted.into()], "").map_err(bug)?;
        let answer = call.try_as_basic_value().basic();
        let answer = answer.ok_or_else(|| Diagnostic::internal("a function that gives nothing"))?;
        self.ir.b.build_store(room, i64.const_zero()).map_err(bug)?;
        let may = self.ir.icmp(I::EQ, answer, i64.const_zero().into())?;
        let stops = self.new_block("stops")?;
        self.ir.b.build_conditional_branch(may.into_int_value(), goes_on, stops).map_err(bug)?;
        self.ir.b.position_at_end(stops);
        self.returns(orc::STOPPED)?;
        self.ir.b.position_at_end(goes_on);
        Ok(())
    }
}
