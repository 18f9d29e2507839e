//! Sets of locations, and who writes to them: the points-to graph, solved when something first asks. A graph without writes is
//! asked for little else than whether there are any, and most graphs of plans are of that kind.

use super::build::Write;
use super::memory::{Element, Memory, SetId, Solved};
use crate::ir::{Graph, OpId};
use hashbrown::HashMap;
use indexmap::IndexMap;
use parking_lot::Mutex;
use std::sync::OnceLock;

/// What an op writes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Written {
    pub(super) to: SetId,
    pub(super) everything: bool,
}

/// The points-to graph, not solved yet.
pub(super) struct Unsolved {
    pub(super) memory: Memory,
    /// Elements of values that others may hold, each with the wildcard of its type.
    pub(super) wild: Vec<(Element, Element)>,
    pub(super) wildcards: Vec<Element>,
    /// What ops write themselves, in program order.
    pub(super) own: Vec<(OpId, Write)>,
    /// Ops that write, those around them included, with the op around each.
    pub(super) writing: HashMap<OpId, Option<OpId>>,
}

/// The solution of a points-to graph.
pub(super) struct Solution {
    pub(super) solved: Solved,
    /// By op that writes, ops with nested blocks included.
    pub(super) writes: HashMap<OpId, Written>,
    /// By location: whether it is, or holds, a wildcard.
    pub(super) wild: Vec<bool>,
    /// By location: the ops that write to it, not counting those around them; in program order.
    pub(super) writers: Vec<Vec<OpId>>,
    /// Ops that may write to every wildcard.
    pub(super) writes_everything: Vec<OpId>,
}

/// A solution that is found when first asked for.
pub(super) struct LazySolution {
    unsolved: Mutex<Option<Unsolved>>,
    found: OnceLock<Solution>,
}

impl LazySolution {
    pub(super) fn of(unsolved: Unsolved) -> LazySolution {
        LazySolution { unsolved: Mutex::new(Some(unsolved)), found: OnceLock::new() }
    }

    pub(super) fn get(&self) -> &Solution {
        // Only here the graph is taken, once.
        self.found.get_or_init(|| self.unsolved.lock().take().map_or_else(Solution::empty, Solution::of))
    }

    pub(super) fn get_mut(&mut self) -> Option<&mut Solution> {
        self.get();
        self.found.get_mut()
    }
}

/// Ops that write, with the op around each: ops have the writes of the blocks nested in them.
pub(super) fn writing(graph: &Graph, own: &[(OpId, Write)]) -> HashMap<OpId, Option<OpId>> {
    let mut all = HashMap::new();
    for (op, _) in own {
        let mut at = Some(*op);
        while let Some(op) = at.filter(|op| !all.contains_key(op)) {
            at = graph.parent(op).and_then(|block| graph.owner(block));
            all.insert(op, at);
        }
    }
    all
}

impl Solution {
    fn of(unsolved: Unsolved) -> Solution {
        let Unsolved { memory, wild, wildcards, own, writing } = unsolved;
        let mut solution = Solution { solved: memory.solve(&wild), ..Solution::empty() };
        let own: Vec<(OpId, Written)> =
            own.iter().map(|(op, write)| (*op, solution.written_by(*write))).collect();
        solution.gather(&own, &writing);
        solution.solved.finish();
        solution.index(&own, &wildcards);
        solution
    }

    fn empty() -> Solution {
        Solution {
            solved: Memory::default().solve(&[]),
            writes: HashMap::new(),
            wild: Vec::new(),
            writers: Vec::new(),
            writes_everything: Vec::new(),
        }
    }

    fn written_by(&self, write: Write) -> Written {
        match write {
            Write::To(element) => Written { to: self.solved.own(element), everything: false },
            Write::Deep(element) => Written { to: self.solved.deep(element), everything: false },
            Write::Everything => Written { to: SetId::EMPTY, everything: true },
        }
    }

    /// Ops have the writes of the blocks nested in them.
    fn gather(&mut self, own: &[(OpId, Written)], around: &HashMap<OpId, Option<OpId>>) {
        let mut parts: IndexMap<OpId, (Vec<SetId>, bool)> = IndexMap::new();
        for (op, written) in own {
            let mut at = Some(*op);
            while let Some(op) = at {
                let entry = parts.entry(op).or_default();
                if entry.0.last() != Some(&written.to) {
                    entry.0.push(written.to);
                }
                entry.1 |= written.everything;
                at = around.get(&op).copied().flatten();
            }
        }
        for (op, (mut sets, everything)) in parts {
            let to = self.solved.union(&mut sets);
            self.writes.insert(op, Written { to, everything });
        }
    }

    fn index(&mut self, own: &[(OpId, Written)], wildcards: &[Element]) {
        let count = self.solved.location_count();
        (self.wild, self.writers) = (vec![false; count], vec![Vec::new(); count]);
        for wildcard in wildcards {
            for location in self.solved.locations(self.solved.own(*wildcard)) {
                self.wild[*location as usize] = true;
            }
        }
        for (op, written) in own {
            for location in self.solved.locations(written.to) {
                let writers = &mut self.writers[*location as usize];
                if writers.last() != Some(op) {
                    writers.push(*op);
                }
            }
            if written.everything && self.writes_everything.last() != Some(op) {
                self.writes_everything.push(*op);
            }
        }
    }

    pub(super) fn any_written(&self, set: SetId) -> bool {
        let everything = !self.writes_everything.is_empty();
        self.solved.locations(set).iter().any(|location| {
            !self.writers[*location as usize].is_empty() || (everything && self.wild[*location as usize])
        })
    }

    pub(super) fn any_wild(&self, set: SetId) -> bool {
        self.solved.locations(set).iter().any(|location| self.wild[*location as usize])
    }

    /// Whether something that is written is in a set.
    pub(super) fn hits(&self, written: Written, set: SetId) -> bool {
        self.solved.intersect(written.to, set) || (written.everything && self.any_wild(set))
    }
}
