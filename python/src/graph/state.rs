//! A graph with what its handles need to know: when each part that is gone went. Slots of a graph are used again, so that
//! a number alone does not say which node is meant.

use crate::program::Core;
use flambeau::ir::{BlockId, Graph, OpId, ValueId};
use flambeau::runtime::Program;
use parking_lot::RwLock;
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

/// A graph, shared by the objects that speak of it.
pub(super) struct Shared {
    state: RwLock<State>,
    /// The program whose functions the graph may call.
    pub(super) core: Option<Arc<Core>>,
}

/// Where nodes are inserted.
#[derive(Clone, Copy)]
pub(super) enum Point {
    /// Before a node.
    Before(OpId),
    /// At the end of a block.
    End(BlockId),
}

/// A graph and the history that handles are checked against.
pub(super) struct State {
    pub(super) graph: Graph,
    pub(super) point: Point,
    /// How many parts have gone so far; a handle keeps the count of its making.
    clock: u64,
    /// Everything made before is gone.
    replaced: u64,
    ops: BTreeMap<OpId, u64>,
    values: BTreeMap<ValueId, u64>,
}

impl Shared {
    pub(super) fn new(graph: Graph, core: Option<Arc<Core>>) -> Shared {
        Shared { state: RwLock::new(State::new(graph)), core }
    }

    pub(super) fn read<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.state.read())
    }

    pub(super) fn write<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.state.write())
    }

    /// The program whose functions the graph may call; an empty one of a graph that stands alone.
    pub(super) fn program(&self) -> &Program {
        static EMPTY: LazyLock<Program> = LazyLock::new(|| {
            Program::with(Default::default(), None, flambeau::dialects::Registry::builtin())
        });
        self.core.as_ref().map_or(&EMPTY, |core| &core.plain)
    }
}

pub(super) fn gone() -> PyErr {
    PyRuntimeError::new_err("the graph was changed, and this part of it is gone")
}

impl State {
    fn new(graph: Graph) -> State {
        let point = Point::End(graph.root());
        let (ops, values) = Default::default();
        State { graph, point, clock: 0, replaced: 0, ops, values }
    }

    /// What a handle made now keeps.
    pub(super) fn now(&self) -> u64 {
        self.clock
    }

    /// Another graph takes the place: all handles are gone.
    pub(super) fn replace(&mut self, graph: Graph) {
        self.clock += 1;
        self.replaced = self.clock;
        self.point = Point::End(graph.root());
        self.graph = graph;
        self.ops.clear();
        self.values.clear();
    }

    /// Fails unless an op is the one that a handle made at `born` meant.
    pub(super) fn check_op(&self, op: OpId, born: u64) -> PyResult<()> {
        let died = self.ops.get(&op).copied().unwrap_or(0);
        let same = born >= self.replaced && born >= died && self.graph.is_live(op);
        if same { Ok(()) } else { Err(gone()) }
    }

    /// The same for a value.
    pub(super) fn check_value(&self, value: ValueId, born: u64) -> PyResult<()> {
        let died = self.values.get(&value).copied().unwrap_or(0);
        if born >= self.replaced && born >= died { Ok(()) } else { Err(gone()) }
    }

    /// The same for a block, which lives as long as its node has it.
    pub(super) fn check_block(&self, block: BlockId, born: u64) -> PyResult<()> {
        if born < self.replaced {
            return Err(gone());
        }
        if block == self.graph.root() {
            return Ok(());
        }
        let owner = self.graph.owner(block).ok_or_else(gone)?;
        self.check_op(owner, born)?;
        if self.graph.nested_blocks(owner).contains(&block) { Ok(()) } else { Err(gone()) }
    }

    /// Notes that a value is about to go.
    pub(super) fn value_goes(&mut self, value: ValueId) {
        self.clock += 1;
        self.values.insert(value, self.clock);
    }

    /// Notes that an op is about to go.
    pub(super) fn op_goes(&mut self, op: OpId) {
        self.clock += 1;
        self.ops.insert(op, self.clock);
        if matches!(self.point, Point::Before(anchor) if anchor == op) {
            self.point = Point::End(self.graph.root());
        }
    }
}
