//! A loop over numbers that can run as a kernel, and when that is worth it.
//!
//! A loop begins interpreted. Once it has done enough work it is compiled, and the kernel does the iterations that are left,
//! from the registers as they are. What a kernel leaves undone the interpreter does, from the same registers. Neither how such a
//! loop is found nor how it runs is known here.

use super::code::{Operand, Register};
use crate::backends::ScalarKernel;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// Iterations that a loop runs interpreted before it is examined.
const FIRST_LOOK: i64 = 64;
/// The same for a loop that is compiled: a call of a kernel takes as long as a few steps.
const READY: i64 = 4;
/// Steps from which compiling pays: about as long as it takes.
const WORTH: u64 = 400_000;
/// Elements of lists that are copied in the time of an iteration.
const COPIED: usize = 16;

/// A loop that can run as a kernel.
pub(super) struct CompiledLoop {
    pub(super) kernel: ScalarKernel,
    /// What the loop carries.
    pub(super) carried: Box<[Register]>,
    /// Numbers from around the loop.
    pub(super) outer: Box<[Operand]>,
    /// Lists from around the loop.
    pub(super) lists: Box<[Operand]>,
    /// About how many steps an iteration takes.
    weight: u64,
    /// Whether it is a kernel of the module, which runs whatever there is to do.
    always: bool,
    /// The iteration from which on the kernel is tried.
    enter_at: AtomicI64,
    /// Steps of iterations that were interpreted after the first look.
    work: AtomicU64,
}

impl CompiledLoop {
    pub(super) fn new(
        kernel: ScalarKernel,
        (carried, outer, lists): (Vec<Register>, Vec<Operand>, Vec<Operand>),
        weight: u64,
        always: bool,
    ) -> CompiledLoop {
        let (carried, outer, lists) = (carried.into(), outer.into(), lists.into());
        let enter_at = AtomicI64::new(if always { 0 } else { FIRST_LOOK });
        CompiledLoop { kernel, carried, outer, lists, weight, always, enter_at, work: AtomicU64::new(0) }
    }

    /// The iteration from which on [`CompiledLoop::pays`] is to be asked.
    #[inline(always)]
    pub(super) fn enter_at(&self) -> i64 {
        self.enter_at.load(Ordering::Relaxed)
    }

    /// Whether the kernel is to do what is left: iterations from `iteration` on, of `trips` at most, with `elements` of lists.
    pub(super) fn pays(&self, iteration: i64, trips: i64, elements: usize) -> bool {
        if self.always {
            return true;
        }
        let copies = i64::try_from(elements / COPIED).unwrap_or(i64::MAX);
        let left = trips.saturating_sub(iteration);
        if left < READY.max(copies) || iteration < copies {
            return false;
        }
        if self.kernel.is_ready() {
            return true;
        }
        // The first look counts the iterations before it.
        let count = if iteration == FIRST_LOOK { FIRST_LOOK as u64 } else { 1 };
        let work = self.work.fetch_add(count.saturating_mul(self.weight), Ordering::Relaxed);
        work >= WORTH
    }

    /// Notes that the kernel did the work, or that it left it at an iteration: then it is tried again when a loop goes further.
    pub(super) fn ran(&self, iteration: i64, done: bool) {
        let next = match done {
            _ if self.always && done => 0,
            true => READY,
            false => iteration.saturating_mul(2).saturating_add(1024),
        };
        self.enter_at.store(next, Ordering::Relaxed);
    }
}
