//! Order that memory asks for: which ops of a run must stay behind which, though they use no result of theirs.
//!
//! An op that reads a location stays after the last op that wrote to it; an op that writes to a location stays
//! after those that read it since, and after the last that wrote. All else follows from these. The work is one
//! walk over the run. What ops do to the world (printing, random numbers) is not examined here.

use super::{AliasDb, Known, SetId, Solution};
use crate::ir::{Graph, OpId, ValueId};
use hashbrown::{HashMap, HashSet};

/// What was done to a location so far, by places in the run.
#[derive(Default)]
struct Past {
    writer: Option<usize>,
    readers: Vec<usize>,
}

impl AliasDb {
    /// For each of `ops`, which stand in this order in one block, the places in `ops` of those that it must stay
    /// after on account of memory; ascending. What follows from others need not be among them.
    pub fn memory_order(&self, graph: &Graph, ops: &[OpId]) -> Vec<Vec<usize>> {
        let mut past: HashMap<u32, Past> = HashMap::new();
        // The last op of which nothing is known, or that may write to everything: all others keep their side of it.
        let mut barrier: Option<usize> = None;
        let mut order = Vec::with_capacity(ops.len());
        for (n, op) in ops.iter().enumerate() {
            let looked = self.looked_at(graph, *op);
            let written = self.written(*op);
            if looked.is_none() || written.is_some_and(|w| w.everything) {
                order.push((barrier.unwrap_or(0)..n).collect());
                barrier = Some(n);
                past.clear();
                continue;
            }
            let mut behind: Vec<usize> = barrier.into_iter().collect();
            for location in looked.into_iter().flatten() {
                let past = past.entry(location).or_default();
                behind.extend(past.writer);
                past.readers.push(n);
            }
            for location in written.iter().flat_map(|w| self.solution.get().solved.locations(w.to)) {
                let past = past.entry(*location).or_default();
                behind.extend(past.writer.replace(n));
                behind.append(&mut past.readers);
            }
            behind.retain(|other| *other != n);
            behind.sort_unstable();
            behind.dedup();
            order.push(behind);
        }
        order
    }

    /// Locations that an op, nested ones included, reads and that something writes to; None where nothing is known
    /// of one of them.
    fn looked_at(&self, graph: &Graph, op: OpId) -> Option<Vec<u32>> {
        let mut sets: HashSet<SetId> = HashSet::new();
        let mut work = vec![op];
        while let Some(at) = work.pop() {
            for value in graph.operands(at) {
                sets.insert(self.shown(graph, at, *value)?);
            }
            work.extend(graph.nested_blocks(at).iter().flat_map(|block| graph.block_ops(*block)));
        }
        if self.writing.is_empty() {
            return Some(Vec::new());
        }
        let Solution { solved, writers, .. } = self.solution.get();
        let written = |location: &u32| !writers[*location as usize].is_empty();
        let mut found: Vec<u32> =
            sets.iter().flat_map(|set| solved.locations(*set)).copied().filter(written).collect();
        found.sort_unstable();
        found.dedup();
        Some(found)
    }

    /// What an op may read of an operand. One that only takes an element out of an object does not look into it.
    fn shown(&self, graph: &Graph, op: OpId, operand: ValueId) -> Option<SetId> {
        let takes = matches!(
            graph.kind(op).as_str(),
            "prim::GetAttr"
                | "prim::TupleIndex"
                | "prim::TupleUnpack"
                | "prim::TupleSlice"
                | "prim::ListUnpack"
        );
        match self.known(operand) {
            Known::Nothing => None,
            Known::Immutable => Some(SetId::EMPTY),
            Known::Element(_) if self.writing.is_empty() => Some(SetId::EMPTY),
            Known::Element(element) if takes => Some(self.solution.get().solved.own(element)),
            Known::Element(element) => Some(self.solution.get().solved.deep(element)),
        }
    }
}
