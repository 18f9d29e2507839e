//! Vector loops of a GPU: the threads of a warp share the iterations.
//!
//! In a kernel that [`warps::threads`] gives several threads an iteration, a warp runs each iteration of the parallel loop. All its
//! threads compute what stands outside of vector loops, alike; one of them stores it. In a vector loop thread `n` takes each
//! iteration whose number is `n` modulo the number of lanes, so that neighbouring threads meet neighbouring elements, and
//! partial results are combined in the order that [`Order::Lanes`] fixes, by shuffles. What is stored before such a loop is
//! seen within it and after it: the warp waits for all its threads at both ends.

use super::emit::Emitter;
use super::ir::{Opcode, V, bug};
use super::scalar::Scalars;
use super::values::{Val, Warp};
use crate::backends::warps;
use crate::diag::{Diagnostic, Result};
use crate::dialects::loops::{Carried, Elem, For, Prim};
use inkwell::IntPredicate as I;

impl<'c> Emitter<'c, '_> {
    /// First iteration of this thread and the distance to its next one, of all threads that the launch has.
    pub(super) fn share_of_thread(&mut self) -> Result<(V<'c>, V<'c>)> {
        let thread = self.special("tid")?;
        let (group, size, count) = (self.special("ctaid")?, self.special("ntid")?, self.special("nctaid")?);
        let first = self.ir.add(self.ir.mul(group, size)?, thread)?;
        let step = self.ir.mul(size, count)?;
        let threads = warps::threads(self.kernel);
        if threads == 1 {
            return Ok((first, step));
        }
        let index = |n: u32| self.ir.i64().const_int(n.into(), false).into();
        let lane = self.ir.op(Opcode::And, thread, index(threads - 1))?;
        self.warp = Some(Warp { lane, within_loop: false });
        let share = index(threads.trailing_zeros());
        Ok((self.ir.op(Opcode::LShr, first, share)?, self.ir.op(Opcode::LShr, step, share)?))
    }

    /// The threads of this warp that share a loop's iterations; None where each thread runs all of them.
    pub(super) fn sharing(&self, l: &For) -> Option<(Warp<'c>, u32)> {
        let warp = self.warp.filter(|warp| !warp.within_loop)?;
        Some((warp, warps::lanes(l)?))
    }

    /// A loop whose iterations `lanes` threads of the warp share.
    pub(super) fn shared_loop(
        &mut self,
        l: &For,
        [begin, end, step]: [V<'c>; 3],
        (warp, lanes): (Warp<'c>, u32),
    ) -> Result<()> {
        self.wait_for_warp()?;
        let count: V<'c> = self.ir.i64().const_int(lanes.into(), false).into();
        let own = self.ir.add(begin, self.ir.mul(warp.lane, step)?)?;
        let takes_part = self.ir.icmp(I::ULT, warp.lane, count)?;
        let first = self.ir.select(takes_part, own, end)?;
        let distance = self.ir.mul(step, count)?;
        self.warp = Some(Warp { within_loop: true, ..warp });
        self.strided_loop(l, first, end, distance)?;
        self.warp = Some(warp);
        for c in &l.carried {
            let total = self.combine_threads(c, lanes)?;
            self.regs[c.result.index()] = Some(Val::Uniform(total));
        }
        self.wait_for_warp()
    }

    /// Writes code that one thread of the warp runs, or each thread where they differ.
    pub(super) fn once(&mut self, write: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        let Some(warp) = self.warp.filter(|warp| !warp.within_loop) else { return write(self) };
        self.wait_for_warp()?;
        let (one, all) = (self.new_block("one")?, self.new_block("all")?);
        let first = self.ir.icmp(I::EQ, warp.lane, self.ir.i64().const_zero().into())?;
        self.ir.b.build_conditional_branch(first.into_int_value(), one, all).map_err(bug)?;
        self.ir.b.position_at_end(one);
        write(self)?;
        self.ir.b.build_unconditional_branch(all).map_err(bug)?;
        self.ir.b.position_at_end(all);
        self.wait_for_warp()
    }

    /// Waits for all threads of the warp, and orders their loads and stores.
    fn wait_for_warp(&self) -> Result<()> {
        self.ir.intrinsic("llvm.nvvm.bar.warp.sync", &[], &[self.whole_warp()]).map(|_| ())
    }

    fn whole_warp(&self) -> V<'c> {
        self.ir.ctx.i32_type().const_all_ones().into()
    }

    /// Combines the partial results of threads, the second half with the first until one is left, which all of them get.
    fn combine_threads(&self, c: &Carried, lanes: u32) -> Result<V<'c>> {
        let op = c.combine.ok_or_else(|| Diagnostic::internal("partial results that nothing combines"))?;
        let elem = self.kernel.elem(c.result);
        let scalars = Scalars { ir: &self.ir, machine: self.machine };
        let prim = Prim::Binary(op, c.param, c.next);
        let (mut left, mut n) = (self.uniform(c.result)?, lanes);
        while n > 1 {
            n /= 2;
            let right = self.shuffle("down", left, n, elem)?;
            left = scalars.primitive(&prim, &[left, right], elem, elem, left.get_type())?;
        }
        self.shuffle("idx", left, 0, elem)
    }

    /// A number of another thread of the warp: `n` threads on (`down`) or of thread `n` (`idx`). They hand over 32 bits at a time.
    fn shuffle(&self, mode: &str, x: V<'c>, n: u32, elem: Elem) -> Result<V<'c>> {
        let (i32, bits) = (self.ir.ctx.i32_type(), 8 * elem.size() as u32);
        let own = match bits {
            _ if !elem.is_float() => x.get_type(),
            16 => self.memory_type(Elem::I16),
            32 => self.memory_type(Elem::I32),
            _ => self.memory_type(Elem::I64),
        };
        let word = |n: u32| -> V<'c> { i32.const_int(n.into(), false).into() };
        let hand_over = |x: V<'c>| {
            let name = format!("llvm.nvvm.shfl.sync.{mode}.i32");
            self.ir.intrinsic(&name, &[], &[self.whole_warp(), x, word(n), word(warps::WARP - 1)])
        };
        let raw = if elem.is_float() { self.ir.cast(Opcode::BitCast, x, own)? } else { x };
        let raw = match bits {
            64 => {
                let (wide, half) = (self.memory_type(Elem::I64), self.ir.iconst(raw, own, 32));
                let low = hand_over(self.ir.cast(Opcode::Trunc, raw, i32.into())?)?;
                let high = self.ir.cast(Opcode::Trunc, self.ir.op(Opcode::LShr, raw, half)?, i32.into())?;
                let high = self.ir.cast(Opcode::ZExt, hand_over(high)?, wide)?;
                let high = self.ir.op(Opcode::Shl, high, half)?;
                self.ir.op(Opcode::Or, high, self.ir.cast(Opcode::ZExt, low, wide)?)?
            }
            32 => hand_over(raw)?,
            _ => {
                let given = hand_over(self.ir.cast(Opcode::ZExt, raw, i32.into())?)?;
                self.ir.cast(Opcode::Trunc, given, own)?
            }
        };
        if elem.is_float() { self.ir.cast(Opcode::BitCast, raw, x.get_type()) } else { Ok(raw) }
    }
}
