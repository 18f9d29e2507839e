//! Operands of ops and results of blocks: which values they are, and the list of uses that each value has of them.

use crate::ir::Graph;
use crate::ir::storage::UseLink;
use crate::ir::{BlockId, OpId, ValueId};
use smallvec::SmallVec;

impl Graph {
    /// Replaces all operands of an op.
    pub fn set_operands(&mut self, op: OpId, operands: &[ValueId]) {
        self.release_operands(op);
        if operands.is_empty() {
            return;
        }
        let start = self.allocate_operands(operands.len());
        let data = &mut self.ops[op.index()];
        (data.operand_start, data.operand_len) = (start, operands.len() as u32);
        for (i, value) in operands.iter().enumerate() {
            self.operands.values[start as usize + i] = *value;
            self.link_use(start + i as u32, op, *value);
        }
    }

    /// Replaces one operand.
    pub fn set_operand(&mut self, op: OpId, n: usize, value: ValueId) {
        let slot = self.ops[op.index()].operand_start + n as u32;
        self.unlink_use(slot);
        self.operands.values[slot as usize] = value;
        self.link_use(slot, op, value);
    }

    /// Adds an operand at the end.
    pub fn add_operand(&mut self, op: OpId, value: ValueId) {
        self.insert_operand(op, usize::MAX, value);
    }

    /// Inserts an operand at a place among the others.
    pub fn insert_operand(&mut self, op: OpId, at: usize, value: ValueId) {
        let data = &mut self.ops[op.index()];
        let (start, len) = (data.operand_start, data.operand_len as usize);
        if at >= len && room_for(len) > len {
            data.operand_len += 1;
            let slot = start + len as u32;
            self.operands.values[slot as usize] = value;
            self.link_use(slot, op, value);
            return;
        }
        let mut all: SmallVec<[ValueId; 8]> = SmallVec::from_slice(self.operands(op));
        all.insert(at.min(all.len()), value);
        self.set_operands(op, &all);
    }

    /// Removes one operand.
    pub fn remove_operand(&mut self, op: OpId, n: usize) {
        let mut all: SmallVec<[ValueId; 8]> = SmallVec::from_slice(self.operands(op));
        all.remove(n);
        self.set_operands(op, &all);
    }

    /// Sets the results of a block.
    pub fn set_block_results(&mut self, block: BlockId, results: &[ValueId]) {
        self.set_operands(self.blocks[block.index()].terminator, results);
    }

    /// Adds a result to a block.
    pub fn add_block_result(&mut self, block: BlockId, value: ValueId) {
        self.add_operand(self.blocks[block.index()].terminator, value);
    }

    /// Removes a result from a block.
    pub fn remove_block_result(&mut self, block: BlockId, n: usize) {
        self.remove_operand(self.blocks[block.index()].terminator, n);
    }

    /// Adds an output to the graph.
    pub fn add_output(&mut self, value: ValueId) {
        self.add_block_result(self.root, value);
    }

    /// Makes every use of `old` a use of `new`.
    pub fn replace_all_uses(&mut self, old: ValueId, new: ValueId) {
        if old == new {
            return;
        }
        let uses: Vec<_> = self.uses(old).collect();
        for u in uses {
            self.set_operand(u.op, u.index, new);
        }
    }

    /// Slots for a number of operands, and those that [`room_for`] adds.
    pub(super) fn allocate_operands(&mut self, len: usize) -> u32 {
        let len = room_for(len);
        if let Some(start) = self.operands.free.get_mut(len).and_then(Vec::pop) {
            return start;
        }
        let start = self.operands.values.len();
        self.operands.values.resize(start + len, ValueId::NONE);
        self.operands
            .links
            .resize(start + len, UseLink { owner: OpId::NONE, next: u32::MAX, prev: u32::MAX });
        start as u32
    }

    pub(super) fn release_operands(&mut self, op: OpId) {
        let data = &mut self.ops[op.index()];
        let (start, len) = (data.operand_start, data.operand_len);
        data.operand_len = 0;
        if len == 0 {
            return;
        }
        for slot in start..start + len {
            self.unlink_use(slot);
        }
        let len = room_for(len as usize);
        if self.operands.free.len() <= len {
            self.operands.free.resize(len + 1, Vec::new());
        }
        self.operands.free[len].push(start);
    }

    pub(super) fn link_use(&mut self, slot: u32, owner: OpId, value: ValueId) {
        let first = self.values[value.index()].first_use;
        let links = &mut self.operands.links;
        if first == u32::MAX {
            links[slot as usize] = UseLink { owner, next: slot, prev: slot };
            self.values[value.index()].first_use = slot;
        } else {
            let last = links[first as usize].prev;
            links[slot as usize] = UseLink { owner, next: first, prev: last };
            links[last as usize].next = slot;
            links[first as usize].prev = slot;
        }
    }

    pub(super) fn unlink_use(&mut self, slot: u32) {
        let value = self.operands.values[slot as usize];
        let UseLink { next, prev, .. } = self.operands.links[slot as usize];
        let first = &mut self.values[value.index()].first_use;
        if next == slot {
            *first = u32::MAX;
            return;
        }
        if *first == slot {
            *first = next;
        }
        self.operands.links[prev as usize].next = next;
        self.operands.links[next as usize].prev = prev;
    }
}

/// How many slots a range of a number of operands has. Long ranges, which may grow operand by operand, have some to spare, so
/// that they are seldom moved; the number follows from the length alone.
fn room_for(len: usize) -> usize {
    if len < 16 { len } else { len.next_power_of_two() }
}
