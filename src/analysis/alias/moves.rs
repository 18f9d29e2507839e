//! Moving ops where this is unobservable.
//!
//! Two ops of a block may change places unless one uses the other's results, one writes what the other reads or
//! writes, or one of them acts on the world: it prints, calls, or raises always. Moving an op past others takes along
//! those that depend on it.

use super::{AliasDb, Known, Written};
use crate::analysis::effects::{facts, own_effects};
use crate::dialects::{Effects, Registry};
use crate::ir::{Graph, OpId, ValueId};
use hashbrown::HashSet;

/// What an op does to its surroundings, nested ops included.
struct Footprint {
    op: OpId,
    /// None of an op without blocks, which uses and reads its operands.
    nested: Option<Nested>,
    written: Option<Written>,
    world: Effects,
    /// It acts on the world itself, not only in a nested block: it keeps its place, and nothing passes it.
    acts: bool,
}

/// What an op with blocks and the ops within have to do with.
struct Nested {
    uses: HashSet<ValueId>,
    /// Values that are read; those that a block only gives are not.
    reads: HashSet<ValueId>,
}

/// Which side of an op another is moved to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Side {
    /// Directly before it.
    Before,
    /// Directly after it.
    After,
}

/// How a move is done.
struct Plan {
    /// The op, and what it takes along, in the order in which they were met.
    moving: Vec<OpId>,
    forward: bool,
    passes: bool,
}

impl AliasDb {
    /// Moves an op to a side of `anchor`, ops that depend on it along with it where they must; false, and nothing
    /// changed, where this is observable. Both are in one block.
    pub fn move_if_valid(
        &self,
        graph: &mut Graph,
        registry: &Registry,
        op: OpId,
        side: Side,
        anchor: OpId,
    ) -> bool {
        let plan = self.plan(graph, registry, op, side, anchor);
        if let Some(plan) = plan.as_ref().filter(|_| op != anchor) {
            plan.place(graph, anchor);
        }
        plan.is_some()
    }

    /// Whether [`AliasDb::move_if_valid`] would move.
    pub fn can_move(&self, graph: &Graph, registry: &Registry, op: OpId, side: Side, anchor: OpId) -> bool {
        self.plan(graph, registry, op, side, anchor).is_some()
    }

    fn plan(&self, graph: &Graph, registry: &Registry, op: OpId, side: Side, anchor: OpId) -> Option<Plan> {
        if op == anchor {
            return Some(Plan { moving: Vec::new(), forward: true, passes: false });
        }
        if graph.parent(op) != graph.parent(anchor) || graph.parent(op).is_none() {
            return None;
        }
        // Where it stands there already nothing moves, however many operands it has.
        let neighbour = if side == Side::Before { graph.next(op) } else { graph.prev(op) };
        if neighbour == Some(anchor) {
            return Some(Plan { moving: Vec::new(), forward: true, passes: false });
        }
        let forward = graph.is_before(op, anchor);
        let step = |at: OpId| if forward { graph.next(at) } else { graph.prev(at) };
        // The op that moves passes the anchor, or stays on this side of it with what it takes along.
        let passes = forward == (side == Side::After);
        let target = self.footprint(graph, registry, anchor);
        let mut moving = vec![self.footprint(graph, registry, op)];
        // Where it stays on this side, only what it takes along has to pass.
        if passes && !self.may_swap(graph, &moving[0], &target) {
            return None;
        }
        let mut at = step(op);
        while let Some(other) = at.filter(|other| *other != anchor) {
            let met = self.footprint(graph, registry, other);
            if !moving.iter().all(|m| self.may_swap(graph, m, &met)) {
                // What comes further on takes a comparison with each of these: most moves fail at the first.
                if !self.may_swap(graph, &met, &target) {
                    return None;
                }
                moving.push(met);
            }
            at = step(other);
        }
        at?;
        Some(Plan { moving: moving.iter().map(|m| m.op).collect(), forward, passes })
    }

    fn footprint(&self, graph: &Graph, registry: &Registry, op: OpId) -> Footprint {
        Footprint {
            op,
            nested: (!graph.nested_blocks(op).is_empty()).then(|| Nested::of(graph, op)),
            written: self.written(op),
            world: world(facts(registry, graph, op).effects),
            acts: world(own_effects(registry, graph, op)).intersects(Effects::WRITES_WORLD),
        }
    }

    fn may_swap(&self, graph: &Graph, a: &Footprint, b: &Footprint) -> bool {
        let depends = a.depends_on(graph, b) || b.depends_on(graph, a);
        if a.acts || b.acts || depends || self.disturbs(graph, a, b) || self.disturbs(graph, b, a) {
            return false;
        }
        let read_and_write = |x: Effects, y: Effects| {
            x.contains(Effects::WRITES_WORLD) && y.intersects(Effects::READS_WORLD | Effects::WRITES_WORLD)
        };
        let random = a.world.intersects(Effects::RANDOM) && b.world.intersects(Effects::RANDOM);
        !random && !read_and_write(a.world, b.world) && !read_and_write(b.world, a.world)
    }

    /// Whether `a` may write what `b` reads or writes. What `b` makes is new, or reached from what it uses, so that
    /// only who uses its results can write to them.
    fn disturbs(&self, graph: &Graph, a: &Footprint, b: &Footprint) -> bool {
        let Some(written) = a.written else { return false };
        let touched = |value: &ValueId| match self.known(*value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(element) => {
                let solution = self.solution.get();
                solution.hits(written, solution.solved.deep(element))
            }
        };
        let both = b.written.is_some_and(|other| {
            self.solution.get().hits(written, other.to)
                || self.solution.get().hits(other, written.to)
                || (written.everything && other.everything)
        });
        both || match &b.nested {
            Some(nested) => nested.reads.iter().any(touched),
            None => graph.operands(b.op).iter().any(touched),
        }
    }
}

impl Footprint {
    /// Whether it uses a result of another op of the block; results of ops within that one are seen only there.
    fn depends_on(&self, graph: &Graph, other: &Footprint) -> bool {
        let operands = graph.operands(self.op);
        graph.results(other.op).iter().any(|result| match &self.nested {
            Some(nested) => nested.uses.contains(result),
            // Whichever list is the shorter: of operands, or of uses.
            None => {
                operands.iter().zip(graph.uses(*result)).any(|(x, used)| x == result || used.op == self.op)
            }
        })
    }
}

impl Nested {
    fn of(graph: &Graph, op: OpId) -> Nested {
        let mut nested = Nested { uses: HashSet::new(), reads: HashSet::new() };
        let mut work = vec![op];
        while let Some(at) = work.pop() {
            nested.uses.extend(graph.operands(at).iter().copied());
            nested.reads.extend(graph.operands(at).iter().copied());
            for block in graph.nested_blocks(at) {
                work.extend(graph.block_ops(*block));
                nested.uses.extend(graph.block_results(*block).iter().copied());
            }
        }
        nested
    }
}

/// Effects that forbid changing places with others of the kind.
fn world(effects: Effects) -> Effects {
    if effects.intersects(Effects::NEVER_RETURNS) { effects | Effects::WRITES_WORLD } else { effects }
}

impl Plan {
    /// Puts the ops that move, which keep their order, next to the anchor. One that stays on this side of the anchor
    /// leaves what it took along on the other.
    fn place(&self, graph: &mut Graph, anchor: OpId) {
        let Some((first, others)) = self.moving.split_first() else { return };
        let passing = if self.passes { &self.moving[..] } else { others };
        match (self.passes, self.forward) {
            (true, _) => {}
            (false, true) => graph.move_before(*first, anchor),
            (false, false) => graph.move_after(*first, anchor),
        }
        let mut last = anchor;
        for op in passing {
            match self.forward {
                true => graph.move_after(*op, last),
                false => graph.move_before(*op, last),
            }
            last = *op;
        }
    }
}
