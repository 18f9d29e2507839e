//! How to inspect a graph. Changing it stands in `edit.rs`.

use super::location::LocationId;
use super::storage::DEF_IS_BLOCK;
use super::{Attr, BlockId, Graph, Location, OpId, Symbol, Type, ValueId};
use smallvec::SmallVec;

/// What defines a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueDef {
    /// The n-th result of an op.
    Result(OpId, usize),
    /// The n-th parameter of a block.
    Param(BlockId, usize),
}

/// One use of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Use {
    /// The op that uses it. For a block's results this is the block's terminator: see [`Graph::terminated_block`].
    pub op: OpId,
    /// Which operand.
    pub index: usize,
}

impl Graph {
    /// The outermost block; its parameters are the graph's inputs, its results the graph's outputs.
    pub fn root(&self) -> BlockId {
        self.root
    }

    /// Inputs of the graph.
    pub fn inputs(&self) -> &[ValueId] {
        self.params(self.root)
    }

    /// Outputs of the graph.
    pub fn outputs(&self) -> &[ValueId] {
        self.block_results(self.root)
    }

    /// Number of ops that exist, terminators left out.
    pub fn op_count(&self) -> usize {
        self.live_ops
    }

    /// One more than the largest op index, for side tables.
    pub fn op_capacity(&self) -> usize {
        self.ops.len()
    }

    /// One more than the largest value index, for side tables.
    pub fn value_capacity(&self) -> usize {
        self.values.len()
    }

    /// One more than the largest block index, for side tables.
    pub fn block_capacity(&self) -> usize {
        self.blocks.len()
    }

    // --- ops ---

    /// The op's kind, `dialect::name`.
    pub fn kind(&self, op: OpId) -> Symbol {
        self.ops[op.index()].kind
    }

    /// The op's operands.
    pub fn operands(&self, op: OpId) -> &[ValueId] {
        let data = &self.ops[op.index()];
        let start = data.operand_start as usize;
        &self.operands.values[start..start + data.operand_len as usize]
    }

    /// The n-th operand, if there is one.
    pub fn operand(&self, op: OpId, n: usize) -> Option<ValueId> {
        self.operands(op).get(n).copied()
    }

    /// The op's results.
    pub fn results(&self, op: OpId) -> SmallVec<[ValueId; 2]> {
        let data = &self.ops[op.index()];
        match data.result_len {
            0 => SmallVec::new(),
            1 => SmallVec::from_slice(&[ValueId(data.result_start)]),
            n => SmallVec::from_slice(&self.results[data.result_start as usize..][..n as usize]),
        }
    }

    /// How many results the op has.
    pub fn result_count(&self, op: OpId) -> usize {
        self.ops[op.index()].result_len as usize
    }

    /// The n-th result, if there is one.
    pub fn result(&self, op: OpId, n: usize) -> Option<ValueId> {
        let data = &self.ops[op.index()];
        match data.result_len {
            1 if n == 0 => Some(ValueId(data.result_start)),
            len if len > 1 && n < len as usize => Some(self.results[data.result_start as usize + n]),
            _ => None,
        }
    }

    /// Blocks nested in the op.
    pub fn nested_blocks(&self, op: OpId) -> &[BlockId] {
        let data = &self.ops[op.index()];
        match data.nested {
            _ if data.attrs == TERMINATOR => &[],
            u32::MAX => &[],
            at => &self.nested[at as usize],
        }
    }

    /// Attributes in the order in which they print.
    pub fn attrs(&self, op: OpId) -> &[(Symbol, Attr)] {
        match self.ops[op.index()].attrs {
            u32::MAX | TERMINATOR => &[],
            at => &self.attrs[at as usize],
        }
    }

    /// An attribute by name.
    pub fn attr(&self, op: OpId, name: &str) -> Option<&Attr> {
        self.attrs(op).iter().find(|(n, _)| *n == name).map(|(_, a)| a)
    }

    /// The block that contains the op; None while it is detached or a terminator.
    pub fn parent(&self, op: OpId) -> Option<BlockId> {
        self.ops[op.index()].parent.some()
    }

    /// The next op of the block.
    pub fn next(&self, op: OpId) -> Option<OpId> {
        self.ops[op.index()].next.some()
    }

    /// The previous op of the block.
    pub fn prev(&self, op: OpId) -> Option<OpId> {
        self.ops[op.index()].prev.some()
    }

    /// The handle of the op's location.
    pub fn location_id(&self, op: OpId) -> LocationId {
        self.ops[op.index()].location
    }

    /// The op's location, where known.
    pub fn location(&self, op: OpId) -> Option<&Location> {
        self.location_of(self.ops[op.index()].location)
    }

    /// What a location handle means.
    pub fn location_of(&self, id: LocationId) -> Option<&Location> {
        self.locations.get(id.0 as usize)
    }

    /// Whether the handle names an op that exists.
    pub fn is_live(&self, op: OpId) -> bool {
        self.ops.get(op.index()).is_some_and(|data| data.order != DEAD)
    }

    /// For a terminator, the block whose results its operands are.
    pub fn terminated_block(&self, op: OpId) -> Option<BlockId> {
        let data = &self.ops[op.index()];
        (data.attrs == TERMINATOR).then_some(BlockId(data.nested))
    }

    // --- values ---

    /// The value's type.
    pub fn ty(&self, value: ValueId) -> &Type {
        &self.types[self.values[value.index()].ty as usize]
    }

    /// The value's type as a dense number, for side tables: equal types of one graph have equal numbers.
    pub fn type_index(&self, value: ValueId) -> usize {
        self.values[value.index()].ty as usize
    }

    /// The type that a number means.
    pub fn type_at(&self, index: usize) -> Option<&Type> {
        self.types.get_index(index)
    }

    /// What defines the value.
    pub fn def(&self, value: ValueId) -> ValueDef {
        let data = &self.values[value.index()];
        let n = (data.index & !DEF_IS_BLOCK) as usize;
        if data.index & DEF_IS_BLOCK != 0 {
            ValueDef::Param(BlockId(data.def), n)
        } else {
            ValueDef::Result(OpId(data.def), n)
        }
    }

    /// The op whose result the value is.
    pub fn def_op(&self, value: ValueId) -> Option<OpId> {
        match self.def(value) {
            ValueDef::Result(op, _) => Some(op),
            ValueDef::Param(..) => None,
        }
    }

    /// The block in which the value becomes visible; None while its op is detached.
    pub fn def_block(&self, value: ValueId) -> Option<BlockId> {
        match self.def(value) {
            ValueDef::Result(op, _) => self.parent(op),
            ValueDef::Param(block, _) => Some(block),
        }
    }

    /// The value's name without `%`, if it has one; others print as a number.
    pub fn name(&self, value: ValueId) -> Option<&str> {
        let data = &self.values[value.index()];
        let start = data.name_start as usize;
        (data.name_len > 0).then(|| &self.names[start..start + data.name_len as usize])
    }

    /// The number that an unnamed value prints as.
    pub fn number(&self, value: ValueId) -> Option<u32> {
        let data = &self.values[value.index()];
        (data.name_len == 0).then_some(data.name_start)
    }

    /// How the value prints, without `%`.
    pub fn display_name(&self, value: ValueId) -> String {
        match self.name(value) {
            Some(name) => name.to_string(),
            None => self.values[value.index()].name_start.to_string(),
        }
    }

    /// The uses of the value, in the order in which they were made.
    pub fn uses(&self, value: ValueId) -> Uses<'_> {
        let first = self.values[value.index()].first_use;
        Uses { graph: self, first, at: first }
    }

    /// Whether the value has a use.
    pub fn has_uses(&self, value: ValueId) -> bool {
        self.values[value.index()].first_use != u32::MAX
    }

    /// Whether the value has exactly one use.
    pub fn has_one_use(&self, value: ValueId) -> bool {
        let first = self.values[value.index()].first_use;
        first != u32::MAX && self.operands.links[first as usize].prev == first
    }

    // --- blocks ---

    /// The block's parameters.
    pub fn params(&self, block: BlockId) -> &[ValueId] {
        &self.blocks[block.index()].params
    }

    /// The block's results.
    pub fn block_results(&self, block: BlockId) -> &[ValueId] {
        self.operands(self.blocks[block.index()].terminator)
    }

    /// The pseudo op whose operands are the block's results; it is in no list of ops.
    pub fn terminator(&self, block: BlockId) -> OpId {
        self.blocks[block.index()].terminator
    }

    /// The op that contains the block; None for the root.
    pub fn owner(&self, block: BlockId) -> Option<OpId> {
        self.blocks[block.index()].owner.some()
    }

    /// First op of the block.
    pub fn first_op(&self, block: BlockId) -> Option<OpId> {
        self.blocks[block.index()].first.some()
    }

    /// Last op of the block.
    pub fn last_op(&self, block: BlockId) -> Option<OpId> {
        self.blocks[block.index()].last.some()
    }

    /// The block's ops in order. To change the graph meanwhile, collect first or walk with [`Graph::next`].
    pub fn block_ops(&self, block: BlockId) -> impl Iterator<Item = OpId> + '_ {
        std::iter::successors(self.first_op(block), |op| self.next(*op))
    }

    /// All ops, each before those of its nested blocks, in program order.
    pub fn all_ops(&self) -> Vec<OpId> {
        self.ops_from(vec![self.first_op(self.root)])
    }

    /// The ops in the blocks of an op and deeper, each before those of its nested blocks, in program order.
    pub fn nested_ops(&self, op: OpId) -> Vec<OpId> {
        self.ops_from(self.nested_blocks(op).iter().rev().map(|block| self.first_op(*block)).collect())
    }

    /// The ops that follow these, each before those of its nested blocks.
    fn ops_from(&self, mut stack: Vec<Option<OpId>>) -> Vec<OpId> {
        let mut out = Vec::with_capacity(stack.len());
        while let Some(top) = stack.pop() {
            let Some(op) = top else { continue };
            out.push(op);
            stack.push(self.next(op));
            for block in self.nested_blocks(op).iter().rev() {
                stack.push(self.first_op(*block));
            }
        }
        out
    }

    /// Whether `block` is `ancestor` or nested in it, however deep.
    pub fn is_within(&self, block: BlockId, ancestor: BlockId) -> bool {
        let mut at = Some(block);
        while let Some(b) = at {
            if b == ancestor {
                return true;
            }
            at = self.owner(b).and_then(|op| self.parent(op));
        }
        false
    }

    /// Whether op `a` stands before op `b` in the block that contains both. Constant time.
    pub fn is_before(&self, a: OpId, b: OpId) -> bool {
        self.ops[a.index()].order < self.ops[b.index()].order
    }
}

/// Order number of an erased op.
pub(super) const DEAD: u32 = u32::MAX;
/// `attrs` of a terminator, whose `nested` is its block.
pub(super) const TERMINATOR: u32 = u32::MAX - 1;

/// Iterator over the uses of a value.
pub struct Uses<'a> {
    graph: &'a Graph,
    first: u32,
    at: u32,
}

impl Iterator for Uses<'_> {
    type Item = Use;

    fn next(&mut self) -> Option<Use> {
        if self.at == u32::MAX {
            return None;
        }
        let slot = self.at;
        let link = self.graph.operands.links[slot as usize];
        self.at = if link.next == self.first { u32::MAX } else { link.next };
        let start = self.graph.ops[link.owner.index()].operand_start;
        Some(Use { op: link.owner, index: (slot - start) as usize })
    }
}
