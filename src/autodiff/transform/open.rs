//! Results that require grad where some way is taken: the forward says whether they do, by a bool that goes the ways that the value
//! goes. So `loss = loss + f(x)` in a loop that may not iterate, or after a condition, has a plan, too.

use super::marks::{IF, LOOP};
use super::reverse::{Reverse, refused};
use super::texts;
use crate::diag::{Diagnostic, Result};
use crate::ir::{Attr, BlockId, OpId, Type, ValueDef, ValueId};
use hashbrown::{HashMap, HashSet};

/// Whether a value requires grad.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flag {
    Never,
    Always,
    /// As a bool says.
    Asked(ValueId),
}

/// What was found so far.
struct Flags {
    sure: HashSet<ValueId>,
    known: HashMap<ValueId, Flag>,
}

impl Reverse<'_> {
    /// Which outputs require grad where some way is taken, with bools that say whether they do.
    pub(super) fn open_outputs(&mut self, inputs: &[bool]) -> Result<Vec<(usize, ValueId)>> {
        let mut flags = Flags { sure: self.surely(inputs), known: HashMap::new() };
        let mut open = Vec::new();
        for (n, output) in self.graph.outputs().to_vec().into_iter().enumerate() {
            if !self.follows.contains(&output) || flags.sure.contains(&output) {
                continue;
            }
            let flag = self.flag(output, &mut flags)?;
            let root = self.graph.root();
            let flag = self.at_end(root, |this| this.as_bool(flag))?;
            open.push((n, flag));
        }
        Ok(open)
    }

    fn flag(&mut self, value: ValueId, flags: &mut Flags) -> Result<Flag> {
        if flags.sure.contains(&value) {
            return Ok(Flag::Always);
        }
        if !self.follows.contains(&value) {
            return Ok(Flag::Never);
        }
        if let Some(known) = flags.known.get(&value) {
            return Ok(*known);
        }
        let found = stacker::maybe_grow(64 << 10, 1 << 20, || match self.graph.def(value) {
            ValueDef::Param(block, n) => match self.graph.owner(block) {
                Some(op) if self.graph.kind(op) == LOOP && n > 0 => {
                    self.flag_of_iterations(op, n - 1, flags)?;
                    flags.known.get(&value).copied().ok_or_else(lost)
                }
                _ => Ok(Flag::Always),
            },
            ValueDef::Result(op, n) => match self.graph.kind(op).as_str() {
                IF => self.flag_of_ways(op, n, flags),
                LOOP => self.flag_of_iterations(op, n, flags),
                _ => self.flag_of_operands(op, value, flags),
            },
        })?;
        flags.known.insert(value, found);
        Ok(found)
    }

    /// Of what an op computes: whether an operand requires grad.
    fn flag_of_operands(&mut self, op: OpId, value: ValueId, flags: &mut Flags) -> Result<Flag> {
        let takes_out = self.items_cell(op).is_some() || self.takes_apart(op);
        if takes_out && !super::types::is_tensor_list(self.graph.ty(value)) {
            return Err(refused(
                "an element of a list that requires grad where some way is taken is differentiated by the tape",
            ));
        }
        let mut asked: Vec<ValueId> = Vec::new();
        for operand in self.graph.operands(op).to_vec() {
            match self.flag(operand, flags)? {
                Flag::Always => return Ok(Flag::Always),
                Flag::Asked(flag) if !asked.contains(&flag) => asked.push(flag),
                _ => {}
            }
        }
        let mut asked = asked.into_iter();
        let Some(mut either) = asked.next() else { return Ok(Flag::Never) };
        let home = self.graph.parent(op).ok_or_else(lost)?;
        let behind = self.graph.next(op).unwrap_or(self.graph.terminator(home));
        for other in asked {
            let at = self.graph.location_id(op);
            either = self.in_front_of(behind, |this| this.call(texts::EITHER, &[either, other], at))?;
        }
        Ok(Flag::Asked(either))
    }

    /// Of what a branch gives: that of the way that is taken.
    fn flag_of_ways(&mut self, op: OpId, n: usize, flags: &mut Flags) -> Result<Flag> {
        let blocks = self.graph.nested_blocks(op).to_vec();
        let mut found = Vec::new();
        for block in &blocks {
            let given = self.graph.block_results(*block).get(n).copied().ok_or_else(lost)?;
            found.push(self.flag(given, flags)?);
        }
        if let Some(first) = found.first()
            && !matches!(first, Flag::Asked(_))
            && found.iter().all(|flag| flag == first)
        {
            return Ok(*first);
        }
        for (block, flag) in blocks.into_iter().zip(found) {
            let flag = self.at_end(block, |this| this.as_bool(flag))?;
            self.graph.add_block_result(block, flag);
        }
        Ok(Flag::Asked(self.graph.add_result(op, Type::bool())))
    }

    /// Of what a loop carries: a bool that it carries, too.
    fn flag_of_iterations(&mut self, op: OpId, n: usize, flags: &mut Flags) -> Result<Flag> {
        let &[body] = self.graph.nested_blocks(op) else { return Err(lost()) };
        let start = self.graph.operand(op, n + 2).ok_or_else(lost)?;
        let start = self.flag(start, flags)?;
        let start = self.in_front_of(op, |this| this.as_bool(start))?;
        self.graph.add_operand(op, start);
        let param = self.graph.add_param(body, Type::bool());
        // What an iteration leaves may depend on other values that the loop carries, whose bools come after this one.
        let place = self.graph.block_results(body).len();
        self.graph.add_block_result(body, param);
        let result = self.graph.add_result(op, Type::bool());
        let own = self.graph.params(body).get(n + 1).copied().ok_or_else(lost)?;
        flags.known.insert(own, Flag::Asked(param));
        let given = self.graph.results(op)[n];
        flags.known.insert(given, Flag::Asked(result));
        let left = self.graph.block_results(body).get(n + 1).copied().ok_or_else(lost)?;
        let left = self.flag(left, flags)?;
        let left = self.at_end(body, |this| this.as_bool(left))?;
        let mut all = self.graph.block_results(body).to_vec();
        if let Some(slot) = all.get_mut(place) {
            *slot = left;
        }
        self.graph.set_block_results(body, &all);
        Ok(Flag::Asked(result))
    }

    fn as_bool(&mut self, flag: Flag) -> Result<ValueId> {
        Ok(match flag {
            Flag::Asked(flag) => flag,
            flag => self.constant(Attr::Bool(flag == Flag::Always), Type::bool()),
        })
    }

    /// Writes at the end of a block.
    fn at_end<T>(&mut self, block: BlockId, write: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let end = self.graph.terminator(block);
        self.in_front_of(end, write)
    }
}

fn lost() -> Diagnostic {
    Diagnostic::internal("a value that is followed comes from nowhere")
}
