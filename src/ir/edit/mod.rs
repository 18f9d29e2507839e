//! Changing a graph: making, placing, rewiring and erasing ops, values and blocks. Each is constant time
//! but for the length of the lists involved.

mod copy;
mod uses;

pub use copy::mapped;

use super::graph::{DEAD, TERMINATOR, ValueDef};
use super::location::LocationId;
use super::storage::{AttrList, BlockData, DEF_IS_BLOCK, OpData, ValueData};
use super::{Attr, BlockId, Graph, Location, OpId, Symbol, Type, ValueId};
use indexmap::IndexSet;
use smallvec::SmallVec;

/// Distance between the order numbers of neighbours after a renumbering.
const ORDER_STEP: u32 = 16;

impl Default for Graph {
    fn default() -> Graph {
        Graph::new()
    }
}

impl Graph {
    /// A graph with one empty block.
    pub fn new() -> Graph {
        let mut graph = Graph {
            ops: Vec::new(),
            values: Vec::new(),
            blocks: Vec::new(),
            operands: Default::default(),
            results: Vec::new(),
            types: IndexSet::default(),
            names: String::new(),
            attrs: Vec::new(),
            free_attrs: Vec::new(),
            nested: Vec::new(),
            locations: Vec::new(),
            free_ops: Vec::new(),
            free_values: Vec::new(),
            root: BlockId(0),
            next_number: 0,
            live_ops: 0,
            name_index: None,
            hides_symbols: false,
        };
        graph.root = graph.new_block(OpId::NONE);
        graph
    }

    /// Makes room for some more ops of one result each, where there is so much memory.
    pub(in crate::ir) fn expect_ops(&mut self, ops: usize) {
        // Without, it grows as it is filled.
        let _ = self.ops.try_reserve_exact(ops);
        let _ = self.values.try_reserve_exact(ops);
        let _ = self.operands.values.try_reserve_exact(2 * ops);
        let _ = self.operands.links.try_reserve_exact(2 * ops);
    }

    // --- making ---

    /// Makes a detached op; place it with [`Graph::append`] or [`Graph::insert_before`].
    pub fn create(&mut self, kind: Symbol, operands: &[ValueId], result_types: &[Type]) -> OpId {
        let op = self.new_op(kind);
        self.set_operands(op, operands);
        match result_types {
            [] => {}
            [ty] => {
                let value = self.new_value(ty.clone(), op.0, 0);
                let data = &mut self.ops[op.index()];
                (data.result_start, data.result_len) = (value.0, 1);
            }
            many => {
                for ty in many {
                    self.add_result(op, ty.clone());
                }
            }
        }
        op
    }

    /// Makes an op and appends it to a block.
    pub fn emit(
        &mut self,
        block: BlockId,
        kind: Symbol,
        operands: &[ValueId],
        result_types: &[Type],
    ) -> OpId {
        let op = self.create(kind, operands, result_types);
        self.append(block, op);
        op
    }

    pub(super) fn new_op(&mut self, kind: Symbol) -> OpId {
        let data = OpData {
            kind,
            parent: BlockId::NONE,
            prev: OpId::NONE,
            next: OpId::NONE,
            order: 0,
            operand_start: 0,
            operand_len: 0,
            result_start: 0,
            result_len: 0,
            attrs: u32::MAX,
            nested: u32::MAX,
            location: LocationId::UNKNOWN,
        };
        self.live_ops += 1;
        match self.free_ops.pop() {
            Some(op) => {
                self.ops[op.index()] = data;
                op
            }
            None => {
                self.ops.push(data);
                OpId(self.ops.len() as u32 - 1)
            }
        }
    }

    fn new_value(&mut self, ty: Type, def: u32, index: u32) -> ValueId {
        let ty = self.intern_type(ty);
        self.new_value_of(ty, def, index)
    }

    /// A value whose type is interned already.
    fn new_value_of(&mut self, ty: u32, def: u32, index: u32) -> ValueId {
        let number = self.next_number;
        self.next_number += 1;
        let data = ValueData { ty, def, index, first_use: u32::MAX, name_start: number, name_len: 0 };
        match self.free_values.pop() {
            Some(value) => {
                self.values[value.index()] = data;
                value
            }
            None => {
                self.values.push(data);
                ValueId(self.values.len() as u32 - 1)
            }
        }
    }

    /// Gives a new op its results, whose types are interned already.
    pub(super) fn set_new_results(&mut self, op: OpId, types: &[u32]) -> SmallVec<[ValueId; 4]> {
        let values = types.iter().enumerate().map(|(n, ty)| self.new_value_of(*ty, op.0, n as u32));
        let values: SmallVec<[ValueId; 4]> = values.collect();
        self.store_results(op, &values);
        values
    }

    pub(super) fn intern_type(&mut self, ty: Type) -> u32 {
        match self.types.get_index_of(&ty) {
            Some(at) => at as u32,
            None => self.types.insert_full(ty).0 as u32,
        }
    }

    fn new_block(&mut self, owner: OpId) -> BlockId {
        let block = BlockId(self.blocks.len() as u32);
        let terminator = self.new_op(Symbol::new("prim::Return"));
        self.live_ops -= 1;
        let data = &mut self.ops[terminator.index()];
        (data.attrs, data.nested) = (TERMINATOR, block.0);
        self.blocks.push(BlockData {
            owner,
            params: SmallVec::new(),
            first: OpId::NONE,
            last: OpId::NONE,
            terminator,
        });
        block
    }

    /// Adds an empty block to an op.
    pub fn add_block(&mut self, op: OpId) -> BlockId {
        let block = self.new_block(op);
        let data = &mut self.ops[op.index()];
        if data.nested == u32::MAX {
            data.nested = self.nested.len() as u32;
            self.nested.push(SmallVec::new());
        }
        self.nested[data.nested as usize].push(block);
        block
    }

    /// Removes a nested block, which must be empty of ops.
    pub fn remove_block(&mut self, op: OpId, n: usize) {
        let at = self.ops[op.index()].nested as usize;
        if let Some(list) = self.nested.get_mut(at).filter(|list| n < list.len()) {
            let block = list.remove(n);
            let terminator = self.blocks[block.index()].terminator;
            self.release_operands(terminator);
        }
    }

    /// Adds a parameter to a block.
    pub fn add_param(&mut self, block: BlockId, ty: Type) -> ValueId {
        let ty = self.intern_type(ty);
        self.add_param_of(block, ty)
    }

    /// Adds a parameter whose type is interned already.
    pub(super) fn add_param_of(&mut self, block: BlockId, ty: u32) -> ValueId {
        let n = self.blocks[block.index()].params.len() as u32;
        let value = self.new_value_of(ty, block.0, n | DEF_IS_BLOCK);
        self.blocks[block.index()].params.push(value);
        value
    }

    /// Adds an input to the graph.
    pub fn add_input(&mut self, ty: Type) -> ValueId {
        self.add_param(self.root, ty)
    }

    /// Inserts a parameter at a place among the others.
    pub fn insert_param(&mut self, block: BlockId, at: usize, ty: Type) -> ValueId {
        let value = self.add_param(block, ty);
        let params = &mut self.blocks[block.index()].params;
        params.pop();
        params.insert(at.min(params.len()), value);
        self.renumber_params(block);
        value
    }

    /// Removes a parameter, which must have no uses.
    pub fn remove_param(&mut self, block: BlockId, n: usize) {
        let value = self.blocks[block.index()].params.remove(n);
        debug_assert!(!self.has_uses(value), "a removed parameter is still used");
        self.free_value(value);
        self.renumber_params(block);
    }

    /// Gives a value's place back; its name is free again.
    fn free_value(&mut self, value: ValueId) {
        self.values[value.index()].name_len = 0;
        self.free_values.push(value);
    }

    fn renumber_params(&mut self, block: BlockId) {
        for (n, value) in self.blocks[block.index()].params.iter().enumerate() {
            self.values[value.index()].index = n as u32 | DEF_IS_BLOCK;
        }
    }

    /// Adds a result to an op.
    pub fn add_result(&mut self, op: OpId, ty: Type) -> ValueId {
        let mut all = self.results(op);
        let value = self.new_value(ty, op.0, all.len() as u32);
        all.push(value);
        self.store_results(op, &all);
        value
    }

    /// Inserts a result at a place among the others.
    pub fn insert_result(&mut self, op: OpId, at: usize, ty: Type) -> ValueId {
        let value = self.add_result(op, ty);
        let mut all = self.results(op);
        all.pop();
        all.insert(at.min(all.len()), value);
        self.store_results(op, &all);
        for (n, value) in all.iter().enumerate() {
            self.values[value.index()].index = n as u32;
        }
        value
    }

    /// Removes a result, which must have no uses.
    pub fn remove_result(&mut self, op: OpId, n: usize) {
        let mut all = self.results(op);
        let value = all.remove(n);
        debug_assert!(!self.has_uses(value), "a removed result is still used");
        self.free_value(value);
        self.store_results(op, &all);
        for (n, value) in all.iter().enumerate() {
            self.values[value.index()].index = n as u32;
        }
    }

    fn store_results(&mut self, op: OpId, all: &[ValueId]) {
        let data = &mut self.ops[op.index()];
        data.result_len = all.len() as u32;
        match all {
            [] => {}
            [only] => data.result_start = only.0,
            many => {
                data.result_start = self.results.len() as u32;
                self.results.extend_from_slice(many);
            }
        }
    }

    // --- placing ---

    /// Puts a detached op at the end of a block.
    pub fn append(&mut self, block: BlockId, op: OpId) {
        let last = self.blocks[block.index()].last;
        self.link(block, op, last, OpId::NONE);
    }

    /// Puts a detached op at the start of a block.
    pub fn prepend(&mut self, block: BlockId, op: OpId) {
        let first = self.blocks[block.index()].first;
        self.link(block, op, OpId::NONE, first);
    }

    /// Puts a detached op before another. A terminator as anchor means the end of its block.
    pub fn insert_before(&mut self, op: OpId, anchor: OpId) {
        if let Some(block) = self.terminated_block(anchor) {
            return self.append(block, op);
        }
        let data = &self.ops[anchor.index()];
        let (block, prev) = (data.parent, data.prev);
        self.link(block, op, prev, anchor);
    }

    /// Puts a detached op after another.
    pub fn insert_after(&mut self, op: OpId, anchor: OpId) {
        let data = &self.ops[anchor.index()];
        let (block, next) = (data.parent, data.next);
        self.link(block, op, anchor, next);
    }

    /// Moves an op before another, from any block.
    pub fn move_before(&mut self, op: OpId, anchor: OpId) {
        if op != anchor {
            self.detach(op);
            self.insert_before(op, anchor);
        }
    }

    /// Moves an op after another, from any block.
    pub fn move_after(&mut self, op: OpId, anchor: OpId) {
        if op != anchor {
            self.detach(op);
            self.insert_after(op, anchor);
        }
    }

    /// Moves an op to the end of a block.
    pub fn move_to_end(&mut self, op: OpId, block: BlockId) {
        self.detach(op);
        self.append(block, op);
    }

    fn link(&mut self, block: BlockId, op: OpId, prev: OpId, next: OpId) {
        debug_assert!(self.ops[op.index()].parent.is_none(), "the op is in a block already");
        let order = self.order_between(prev, next);
        let data = &mut self.ops[op.index()];
        (data.parent, data.prev, data.next, data.order) = (block, prev, next, order);
        match prev.some() {
            Some(prev) => self.ops[prev.index()].next = op,
            None => self.blocks[block.index()].first = op,
        }
        match next.some() {
            Some(next) => self.ops[next.index()].prev = op,
            None => self.blocks[block.index()].last = op,
        }
    }

    /// A free order number between two neighbours.
    fn order_between(&mut self, prev: OpId, next: OpId) -> u32 {
        let order =
            |graph: &Graph, op: OpId, end: u32| op.some().map_or(end, |op| graph.ops[op.index()].order);
        let (mut low, mut high) = (order(self, prev, 0), order(self, next, DEAD));
        if next.is_none() && low < DEAD - 1 - ORDER_STEP {
            return low + ORDER_STEP;
        }
        if high - low < 2 {
            self.make_room(prev, next);
            (low, high) = (order(self, prev, 0), order(self, next, DEAD));
        }
        low + (high - low) / 2
    }

    /// Spreads the order numbers around a place where none is free. The range of numbers that are given anew doubles
    /// until it is sparse enough; that keeps insertions at one place cheap on average, however long the block is
    /// (Bender and others, "Two simplified algorithms for maintaining order in a list", 2002).
    fn make_room(&mut self, prev: OpId, next: OpId) {
        /// A range of twice the size may hold this many times the ops; below 2, so that larger ranges are sparser.
        const GROWTH: f64 = 1.8;
        let at = prev.some().map_or(0, |op| u64::from(self.ops[op.index()].order));
        let (mut left, mut right, mut first) = (prev, next, next);
        let (mut count, mut capacity) = (0u64, 1.0f64);
        for bits in 1..=32 {
            let size = 1u64 << bits;
            let start = at & !(size - 1);
            while !left.is_none() && u64::from(self.ops[left.index()].order) >= start {
                first = left;
                left = self.ops[left.index()].prev;
                count += 1;
            }
            while !right.is_none() && u64::from(self.ops[right.index()].order) < start + size {
                right = self.ops[right.index()].next;
                count += 1;
            }
            capacity *= GROWTH;
            if bits < 32 && (count > size / 4 || count as f64 > capacity) {
                continue;
            }
            // Each op comes into the middle of a cell of its own.
            for n in 0..u128::from(count) {
                let order = u128::from(start) + (2 * n + 1) * u128::from(size) / (2 * u128::from(count));
                self.ops[first.index()].order = order as u32;
                first = self.ops[first.index()].next;
            }
            return;
        }
    }

    /// Takes an op out of its block without erasing it.
    pub fn detach(&mut self, op: OpId) {
        let data = &mut self.ops[op.index()];
        let (block, prev, next) = (data.parent, data.prev, data.next);
        (data.parent, data.prev, data.next) = (BlockId::NONE, OpId::NONE, OpId::NONE);
        if block.is_none() {
            return;
        }
        match prev.some() {
            Some(prev) => self.ops[prev.index()].next = next,
            None => self.blocks[block.index()].first = next,
        }
        match next.some() {
            Some(next) => self.ops[next.index()].prev = prev,
            None => self.blocks[block.index()].last = prev,
        }
    }

    // --- attributes, kind, location, types, names ---

    /// Changes the op's kind in place.
    pub fn set_kind(&mut self, op: OpId, kind: Symbol) {
        self.ops[op.index()].kind = kind;
    }

    /// Sets or replaces an attribute.
    pub fn set_attr(&mut self, op: OpId, name: impl Into<Symbol>, attr: Attr) {
        let name = name.into();
        let at = self.attr_slot(op);
        let list = &mut self.attrs[at];
        match list.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = attr,
            None => list.push((name, attr)),
        }
    }

    /// Adds an attribute at the end, a second one of the same name included.
    pub(super) fn push_attr(&mut self, op: OpId, name: Symbol, attr: Attr) {
        let at = self.attr_slot(op);
        self.attrs[at].push((name, attr));
    }

    /// Removes an attribute, if it is there.
    pub fn remove_attr(&mut self, op: OpId, name: &str) {
        let at = self.ops[op.index()].attrs;
        if let Some(list) = self.attrs.get_mut(at as usize) {
            list.retain(|(n, _)| *n != name);
        }
    }

    fn attr_slot(&mut self, op: OpId) -> usize {
        let slot = self.ops[op.index()].attrs;
        if slot < TERMINATOR {
            return slot as usize;
        }
        let slot = match self.free_attrs.pop() {
            Some(slot) => slot,
            None => {
                self.attrs.push(AttrList::new());
                self.attrs.len() as u32 - 1
            }
        };
        self.ops[op.index()].attrs = slot;
        slot as usize
    }

    /// Sets the op's location.
    pub fn set_location(&mut self, op: OpId, location: Location) {
        let id = self.add_location(location);
        self.ops[op.index()].location = id;
    }

    /// Sets the op's location to one the graph has already.
    pub fn set_location_id(&mut self, op: OpId, location: LocationId) {
        self.ops[op.index()].location = location;
    }

    /// Adds a location to the graph; equal neighbours share one entry.
    pub fn add_location(&mut self, location: Location) -> LocationId {
        if self.locations.last() != Some(&location) {
            self.locations.push(location);
        }
        LocationId(self.locations.len() as u32 - 1)
    }

    /// Changes a value's type.
    pub fn set_type(&mut self, value: ValueId, ty: Type) {
        self.values[value.index()].ty = self.intern_type(ty);
    }

    /// Replaces every type of the graph by another; equal types become the same.
    pub fn map_types(&mut self, map: &mut dyn FnMut(&Type) -> Type) {
        let old = std::mem::take(&mut self.types);
        let places: Vec<u32> = old.iter().map(|ty| self.intern_type(map(ty))).collect();
        for value in &mut self.values {
            if let Some(place) = places.get(value.ty as usize) {
                value.ty = *place;
            }
        }
    }

    /// Names a value exactly so, without looking whether the name is taken. A name may not be a number.
    pub fn set_name(&mut self, value: ValueId, name: &str) {
        let is_number = name.bytes().all(|b| b.is_ascii_digit());
        // Names are found by 32-bit places; a value that comes after 4 GiB of them keeps its number.
        if name.is_empty() || is_number || self.names.len() + name.len() > u32::MAX as usize {
            return;
        }
        let data = &mut self.values[value.index()];
        (data.name_start, data.name_len) = (self.names.len() as u32, name.len() as u32);
        self.names.push_str(name);
        if let Some(index) = &mut self.name_index {
            index.insert(name, value);
        }
    }

    /// Takes a value's name away; it prints as a fresh number.
    pub fn clear_name(&mut self, value: ValueId) {
        let number = self.next_number;
        self.next_number += 1;
        self.set_number(value, number);
    }

    /// Makes a value print as a number.
    pub fn set_number(&mut self, value: ValueId, number: u32) {
        let data = &mut self.values[value.index()];
        (data.name_start, data.name_len) = (number, 0);
        self.next_number = self.next_number.max(number.saturating_add(1));
    }

    /// The number that the next value gets that has no name.
    pub fn next_number(&self) -> u32 {
        self.next_number
    }

    /// Sets that; no value may have it or a higher one.
    pub fn set_next_number(&mut self, number: u32) {
        self.next_number = number;
    }

    // --- erasing ---

    /// Erases an op with its nested blocks. Its results must have no uses.
    pub fn erase(&mut self, op: OpId) {
        let mut doomed = vec![op];
        // Nested ops are released from the outside in; uses among them go with their operands.
        while let Some(op) = doomed.pop() {
            self.detach(op);
            self.release_operands(op);
            for block in SmallVec::<[BlockId; 2]>::from_slice(self.nested_blocks(op)) {
                let terminator = self.blocks[block.index()].terminator;
                self.release_operands(terminator);
                doomed.extend(self.block_ops(block).collect::<Vec<_>>());
                for param in std::mem::take(&mut self.blocks[block.index()].params) {
                    self.free_value(param);
                }
            }
            for value in self.results(op) {
                self.free_value(value);
            }
            let data = &mut self.ops[op.index()];
            if data.attrs < TERMINATOR {
                self.attrs[data.attrs as usize].clear();
                self.free_attrs.push(data.attrs);
            }
            (data.attrs, data.nested, data.result_len, data.order) = (u32::MAX, u32::MAX, 0, DEAD);
            self.free_ops.push(op);
            self.live_ops -= 1;
        }
    }

    /// Replaces the uses of an op's results one by one, then erases it.
    pub fn replace_op(&mut self, op: OpId, with: &[ValueId]) {
        for (old, new) in self.results(op).into_iter().zip(with) {
            self.replace_all_uses(old, *new);
        }
        self.erase(op);
    }

    /// Moves the ops of a block before `anchor`, in their order. Parameters and results stay.
    pub fn splice_before(&mut self, block: BlockId, anchor: OpId) {
        while let Some(op) = self.first_op(block) {
            self.detach(op);
            self.insert_before(op, anchor);
        }
    }

    /// What defines a value, by block: the op in `block` (or the block's parameter) that contains or is its
    /// definition. None where the value is not defined within `block`.
    pub fn ancestor_in(&self, op: OpId, block: BlockId) -> Option<OpId> {
        let mut at = op;
        loop {
            let parent = self.parent(at).or_else(|| self.terminated_block(at))?;
            if parent == block {
                return Some(at);
            }
            at = self.owner(parent)?;
        }
    }

    /// Whether `value` may be used by an operand of `op`: defined before it in its block or an enclosing one.
    pub fn is_visible(&self, value: ValueId, op: OpId) -> bool {
        match self.def(value) {
            ValueDef::Param(block, _) => self
                .parent(op)
                .or_else(|| self.terminated_block(op))
                .is_some_and(|b| self.is_within(b, block)),
            ValueDef::Result(def, _) => {
                let Some(block) = self.parent(def) else { return false };
                match self.ancestor_in(op, block) {
                    Some(at) if self.terminated_block(at).is_some() => true,
                    Some(at) => self.is_before(def, at),
                    None => false,
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(n: usize) -> (Graph, Vec<OpId>) {
        let mut g = Graph::new();
        let x = g.add_input(Type::int());
        let kind = Symbol::new("test::op");
        let mut last = x;
        let mut ops = Vec::new();
        for _ in 0..n {
            let op = g.emit(g.root(), kind, &[last, x], &[Type::int()]);
            last = g.result(op, 0).expect("one result");
            ops.push(op);
        }
        g.add_output(last);
        (g, ops)
    }

    #[test]
    fn uses_follow_every_change() {
        let (mut g, ops) = chain(3);
        let x = g.inputs()[0];
        assert_eq!(g.uses(x).count(), 4);
        let first = g.result(ops[0], 0).expect("result");
        g.replace_all_uses(first, x);
        assert!(!g.has_uses(first));
        assert_eq!(g.uses(x).count(), 5);
        g.erase(ops[0]);
        assert_eq!(g.uses(x).count(), 3);
        assert_eq!(g.op_count(), 2);
        assert_eq!(g.block_ops(g.root()).collect::<Vec<_>>(), &ops[1..]);
    }

    #[test]
    fn order_survives_many_insertions_at_one_place() {
        let (mut g, ops) = chain(2);
        let kind = Symbol::new("test::op");
        let mut previous = ops[0];
        for _ in 0..100 {
            let op = g.create(kind, &[], &[]);
            g.insert_before(op, ops[1]);
            assert!(g.is_before(previous, op) && g.is_before(op, ops[1]));
            previous = op;
        }
    }

    /// With a renumbering of the whole block each time this takes minutes.
    #[test]
    fn order_is_cheap_in_long_blocks() {
        let (mut g, ops) = chain(30_000);
        let kind = Symbol::new("test::op");
        for n in 0..30_000 {
            let op = g.create(kind, &[], &[]);
            match n % 3 {
                0 => g.prepend(g.root(), op),
                1 => g.insert_before(op, ops[15_000]),
                _ => g.insert_after(op, ops[20_000]),
            }
        }
        let all: Vec<OpId> = g.block_ops(g.root()).collect();
        assert_eq!(all.len(), 60_000);
        assert!(all.windows(2).all(|pair| g.is_before(pair[0], pair[1])));
    }

    #[test]
    fn operands_are_added_in_place() {
        let (mut g, ops) = chain(3);
        let (x, y) = (g.inputs()[0], g.result(ops[0], 0).expect("result"));
        let list = g.emit(g.root(), Symbol::new("test::list"), &[], &[]);
        for n in 0..10_000 {
            g.add_operand(list, if n % 3 == 0 { y } else { x });
        }
        g.insert_operand(list, 0, y);
        g.remove_operand(list, 1);
        assert_eq!(g.operands(list).len(), 10_000);
        assert!((1..10_000).all(|n| g.operand(list, n) == Some(if n % 3 == 0 { y } else { x })));
        assert_eq!(g.uses(y).filter(|u| u.op == list).count(), 3_334);
        assert!(g.operands.values.len() < 100_000, "{} slots", g.operands.values.len());
    }

    #[test]
    fn erasing_an_op_erases_its_blocks() {
        let (mut g, ops) = chain(1);
        let x = g.inputs()[0];
        let outer = g.emit(g.root(), Symbol::new("test::if"), &[x], &[]);
        let block = g.add_block(outer);
        let inner = g.emit(block, Symbol::new("test::op"), &[x], &[Type::int()]);
        let y = g.result(inner, 0).expect("result");
        g.set_block_results(block, &[y]);
        assert!(g.is_visible(y, g.terminator(block)));
        assert!(!g.is_visible(y, g.terminator(g.root())));
        g.erase(outer);
        assert_eq!(g.op_count(), 1);
        assert_eq!(g.uses(x).count(), 2);
        assert!(!g.is_live(inner) && g.is_live(ops[0]));
    }
}
