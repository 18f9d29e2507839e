//! Moving ops: where nobody can tell.
//!
//! Two ops of a block may change places unless one uses the other's results, one writes what the other reads or
//! writes, or both have effects on the world. Moving an op past others takes along those that depend on it.

use super::{AliasDb, Known, Written};
use crate::analysis::facts;
use crate::dialects::{Effects, Registry};
use crate::ir::{Graph, OpId, ValueId};
use hashbrown::HashSet;

/// What an op does to its surroundings, nested ops included.
struct Footprint {
    op: OpId,
    makes: HashSet<ValueId>,
    uses: HashSet<ValueId>,
    written: Option<Written>,
    world: Effects,
}

impl AliasDb {
    /// Moves an op directly before `anchor`, ops that it depends on along with it where they must; false, and
    /// nothing changed, where somebody could tell. Both stand in one block.
    pub fn move_before_if_valid(
        &self,
        graph: &mut Graph,
        registry: &Registry,
        op: OpId,
        anchor: OpId,
    ) -> bool {
        self.try_move(graph, registry, op, anchor, Side::Before, false)
    }

    /// Moves an op directly after `anchor`; see [`AliasDb::move_before_if_valid`].
    pub fn move_after_if_valid(
        &self,
        graph: &mut Graph,
        registry: &Registry,
        op: OpId,
        anchor: OpId,
    ) -> bool {
        self.try_move(graph, registry, op, anchor, Side::After, false)
    }

    /// Whether [`AliasDb::move_before_if_valid`] would move.
    pub fn could_move_before(&self, graph: &mut Graph, registry: &Registry, op: OpId, anchor: OpId) -> bool {
        self.try_move(graph, registry, op, anchor, Side::Before, true)
    }

    /// Whether [`AliasDb::move_after_if_valid`] would move.
    pub fn could_move_after(&self, graph: &mut Graph, registry: &Registry, op: OpId, anchor: OpId) -> bool {
        self.try_move(graph, registry, op, anchor, Side::After, true)
    }

    fn try_move(
        &self,
        graph: &mut Graph,
        registry: &Registry,
        op: OpId,
        anchor: OpId,
        side: Side,
        dry: bool,
    ) -> bool {
        if op == anchor || graph.parent(op) != graph.parent(anchor) || graph.parent(op).is_none() {
            return op == anchor;
        }
        let forward = graph.is_before(op, anchor);
        let step = |at: OpId| if forward { graph.next(at) } else { graph.prev(at) };
        // Ops that move, in the order in which they were met.
        let mut moving = vec![self.footprint(graph, registry, op)];
        let mut at = step(op);
        while let Some(other) = at.filter(|other| *other != anchor) {
            let met = self.footprint(graph, registry, other);
            if !moving.iter().all(|m| self.may_swap(m, &met)) {
                moving.push(met);
            }
            at = step(other);
        }
        if at.is_none() {
            return false;
        }
        // The op that moves passes the anchor, or stays on this side of it with what it takes along.
        let passes = forward == (side == Side::After);
        let target = self.footprint(graph, registry, anchor);
        let blocked = |m: &Footprint| !self.may_swap(m, &target);
        if passes && moving.iter().any(blocked) {
            return false;
        }
        // Where it stays on this side, only what it takes along has to pass.
        if !passes && moving.iter().skip(1).any(blocked) {
            return false;
        }
        if !dry {
            place(graph, &moving.iter().map(|m| m.op).collect::<Vec<_>>(), anchor, forward, passes);
        }
        true
    }

    fn footprint(&self, graph: &Graph, registry: &Registry, op: OpId) -> Footprint {
        let mut footprint = Footprint {
            op,
            makes: HashSet::new(),
            uses: HashSet::new(),
            written: self.writes.get(&op).copied(),
            world: world(facts(registry, graph, op).effects),
        };
        let mut work = vec![op];
        while let Some(at) = work.pop() {
            footprint.uses.extend(graph.operands(at).iter().copied());
            footprint.makes.extend(graph.results(at));
            for block in graph.nested_blocks(at) {
                work.extend(graph.block_ops(*block));
                footprint.uses.extend(graph.block_results(*block).iter().copied());
            }
        }
        footprint
    }

    fn may_swap(&self, a: &Footprint, b: &Footprint) -> bool {
        let depends = |x: &Footprint, y: &Footprint| x.uses.iter().any(|value| y.makes.contains(value));
        if depends(a, b) || depends(b, a) || self.disturbs(a, b) || self.disturbs(b, a) {
            return false;
        }
        let read_and_write = |x: Effects, y: Effects| {
            x.contains(Effects::WRITES_WORLD) && y.intersects(Effects::READS_WORLD | Effects::WRITES_WORLD)
        };
        let random = a.world.intersects(Effects::RANDOM) && b.world.intersects(Effects::RANDOM);
        !random && !read_and_write(a.world, b.world) && !read_and_write(b.world, a.world)
    }

    /// Whether `a` may write what `b` reads or writes.
    fn disturbs(&self, a: &Footprint, b: &Footprint) -> bool {
        let Some(written) = a.written else { return false };
        let touched = |value: &ValueId| match self.known(*value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(element) => self.hits(written, self.solved.deep(element)),
        };
        let both = b.written.is_some_and(|other| {
            self.hits(written, other.to)
                || self.hits(other, written.to)
                || (written.everything && other.everything)
        });
        both || b.uses.iter().any(touched) || b.makes.iter().any(touched)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Before,
    After,
}

/// Effects that forbid changing places with others of the kind.
fn world(effects: Effects) -> Effects {
    if effects.intersects(Effects::NEVER_RETURNS) { effects | Effects::WRITES_WORLD } else { effects }
}

/// Puts the ops that move, which keep their order, next to the anchor. One that stays on this side of the anchor
/// leaves what it took along on the other.
fn place(graph: &mut Graph, moving: &[OpId], anchor: OpId, forward: bool, passes: bool) {
    let Some((first, others)) = moving.split_first() else { return };
    let mut last = anchor;
    match (forward, passes) {
        (true, true) => {
            for op in moving {
                graph.move_after(*op, last);
                last = *op;
            }
        }
        (false, true) => {
            for op in moving {
                graph.move_before(*op, last);
                last = *op;
            }
        }
        (true, false) => {
            graph.move_before(*first, anchor);
            for op in others {
                graph.move_after(*op, last);
                last = *op;
            }
        }
        (false, false) => {
            graph.move_after(*first, anchor);
            for op in others {
                graph.move_before(*op, last);
                last = *op;
            }
        }
    }
}
