//! Iterations of loops as they run: the next one is begun, or a kernel does those that are left.

use super::code::{Register, Step};
use super::interpreter::{Machine, Values};
use super::loops::CompiledLoop;
use crate::backends::RemainingLoop;
use crate::diag::Result;
use crate::value::{List, Value};
use smallvec::SmallVec;

impl Machine<'_> {
    /// Begins the next iteration of a loop, or leaves it.
    pub(super) fn iterate(
        &mut self,
        step: &Step,
        counter: Register,
        exit: usize,
        compiled: Option<&CompiledLoop>,
    ) -> Result<()> {
        let most = self.operand(step, 0)?.to_int()?;
        let goes_on = self.operand(step, 1)?.to_bool()?;
        let iteration = self.read(counter)?.to_int()?;
        if !goes_on || iteration >= most {
            self.jump(exit);
            return Ok(());
        }
        if let Some(compiled) = compiled.filter(|_| !self.is_watched())
            && iteration >= compiled.enter_at()
            && self.run_compiled(compiled, iteration, most)?
        {
            self.jump(exit);
            return Ok(());
        }
        self.write(counter, Value::Int(iteration + 1))?;
        self.store_all(step, [Value::Int(iteration)])
    }

    /// Lets a kernel do the iterations that are left; false where it does not.
    fn run_compiled(&mut self, compiled: &CompiledLoop, iteration: i64, trips: i64) -> Result<bool> {
        let mut lists: SmallVec<[List; 2]> = SmallVec::new();
        for operand in &compiled.lists {
            match self.look(operand)? {
                Value::List(list) => lists.push(list),
                // Nothing is known to be there yet.
                _ => return Ok(false),
            }
        }
        if !compiled.pays(iteration, trips, lists.iter().map(List::len).sum()) {
            return Ok(false);
        }
        let carried: Values = compiled.carried.iter().map(|r| self.read(*r)).collect::<Result<_>>()?;
        let outer: Values = compiled.outer.iter().map(|o| self.look(o)).collect::<Result<_>>()?;
        let rest = RemainingLoop {
            trips,
            trip: iteration,
            goes_on: true,
            carried: &carried,
            outer: &outer,
            lists: &lists,
        };
        let done = compiled.kernel.run(&rest)?;
        compiled.ran(iteration, done.is_some());
        let Some(values) = done else { return Ok(false) };
        for (register, value) in compiled.carried.iter().zip(values) {
            self.write(*register, value)?;
        }
        Ok(true)
    }
}
