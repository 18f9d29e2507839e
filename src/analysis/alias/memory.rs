//! The points-to graph: elements, what each may be, what each may contain; solved to sets of memory locations.
//!
//! An element stands for a value or a wildcard. An element with no [`Edge::MayBe`] is a memory location of its own;
//! others stand for the locations that they reach. Strongly connected elements (values carried around a loop)
//! stand for the same. Sets are interned, and a set that would grow beyond [`MAX_SET`] becomes one location: its
//! members are no longer told apart, which is safe, and keeps the work linear. This file knows no op and no type.

use hashbrown::HashSet;
use indexmap::{IndexMap, IndexSet};
use petgraph::algo::kosaraju_scc;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeFiltered;

/// A node of the points-to graph.
pub(super) type Element = NodeIndex<u32>;

/// What an edge of the points-to graph means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Edge {
    /// The source may be the target.
    MayBe,
    /// The source may contain the target.
    Contains,
}

/// Larger sets of locations are merged to one location.
const MAX_SET: usize = 256;

/// The graph while it is built.
#[derive(Default)]
pub(super) struct Memory {
    graph: DiGraph<(), Edge, u32>,
}

/// An interned set of memory locations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct SetId(u32);

impl SetId {
    /// The set of no location.
    pub(super) const EMPTY: SetId = SetId(0);
}

/// The graph, solved.
pub(super) struct Solved {
    /// By element: the locations that it may be.
    own: Vec<SetId>,
    /// By element: those, and all that may be reached from it.
    deep: Vec<SetId>,
    sets: Sets,
}

impl Memory {
    /// A new element: a location of its own until an edge says what else it may be.
    pub(super) fn element(&mut self) -> Element {
        self.graph.add_node(())
    }

    /// `from` may be `to`.
    pub(super) fn may_be(&mut self, from: Element, to: Element) {
        if from != to {
            self.graph.add_edge(from, to, Edge::MayBe);
        }
    }

    /// `container` may contain `element`.
    pub(super) fn contains(&mut self, container: Element, element: Element) {
        self.graph.add_edge(container, element, Edge::Contains);
    }

    /// Whatever a wild value may be is wild too: gives every location that is reached from one an edge to the
    /// wildcard, so that who gets hold of the wildcard may have the location.
    fn spread(&mut self, wild: &[(Element, Element)]) {
        let wildcards: HashSet<Element> = wild.iter().map(|(_, wildcard)| *wildcard).collect();
        let mut by_wildcard: IndexMap<Element, Vec<Element>> = IndexMap::new();
        for (value, wildcard) in wild {
            by_wildcard.entry(*wildcard).or_default().push(*value);
        }
        let mut edges = Vec::new();
        for (wildcard, mut work) in by_wildcard {
            let mut seen: HashSet<Element> = work.iter().copied().collect();
            while let Some(at) = work.pop() {
                let mut is_location = !wildcards.contains(&at);
                for edge in self.graph.edges(at).filter(|e| *e.weight() == Edge::MayBe) {
                    let target = petgraph::visit::EdgeRef::target(&edge);
                    is_location = false;
                    if seen.insert(target) {
                        work.push(target);
                    }
                }
                if is_location {
                    edges.push((at, wildcard));
                }
            }
        }
        for (location, wildcard) in edges {
            self.may_be(location, wildcard);
        }
        for (value, wildcard) in wild {
            self.may_be(*value, *wildcard);
        }
    }

    /// Finds the locations of every element. `wild` are the elements of values that others may hold, each with the
    /// wildcard of its type.
    pub(super) fn solve(mut self, wild: &[(Element, Element)]) -> Solved {
        self.spread(wild);
        let mut sets = Sets::default();
        let count = self.graph.node_count();
        let mut own = vec![SetId::EMPTY; count];
        let identities = EdgeFiltered::from_fn(&self.graph, |e| *e.weight() == Edge::MayBe);
        // Components come with what they reach first.
        let mut component_of = vec![u32::MAX; count];
        let mut reached = Vec::new();
        for (n, component) in kosaraju_scc(&identities).into_iter().enumerate() {
            component.iter().for_each(|element| component_of[element.index()] = n as u32);
            reached.clear();
            for element in &component {
                for edge in self.graph.edges(*element) {
                    let target = petgraph::visit::EdgeRef::target(&edge);
                    if *edge.weight() == Edge::MayBe && component_of[target.index()] != n as u32 {
                        reached.push(own[target.index()]);
                    }
                }
            }
            let set = if reached.is_empty() { sets.fresh() } else { sets.union(&mut reached) };
            for element in component {
                own[element.index()] = set;
            }
        }
        let mut deep = vec![SetId::EMPTY; count];
        for component in kosaraju_scc(&self.graph) {
            reached.clear();
            for element in &component {
                reached.push(own[element.index()]);
                reached.extend(self.graph.neighbors(*element).map(|target| deep[target.index()]));
            }
            let set = sets.union(&mut reached);
            for element in component {
                deep[element.index()] = set;
            }
        }
        Solved { own, deep, sets }
    }
}

impl Solved {
    /// The locations that an element may be.
    pub(super) fn own(&self, element: Element) -> SetId {
        self.own[element.index()]
    }

    /// The locations that an element may be or contain, however deep.
    pub(super) fn deep(&self, element: Element) -> SetId {
        self.deep[element.index()]
    }

    /// The union of sets.
    pub(super) fn union(&mut self, of: &mut Vec<SetId>) -> SetId {
        self.sets.union(of)
    }

    /// Whether two sets have a location in common.
    pub(super) fn intersect(&self, a: SetId, b: SetId) -> bool {
        a == b && a != SetId::EMPTY || self.sets.intersect(a, b)
    }

    /// The locations of a set, each below [`Solved::location_count`].
    pub(super) fn locations(&self, set: SetId) -> &[u32] {
        self.sets.get(set)
    }

    /// How many locations there are.
    pub(super) fn location_count(&self) -> usize {
        self.sets.merged.len()
    }

    /// How many members all sets have together.
    #[cfg(test)]
    pub(super) fn member_count(&self) -> usize {
        self.sets.canonical.iter().map(|set| set.len()).sum()
    }

    /// An element that is a location of its own, after the end of merging.
    pub(super) fn add_location(&mut self) -> Element {
        let location = self.sets.merged.len() as u32;
        self.sets.merged.push(location);
        self.sets.canonical.push(Box::from([location]));
        let set = SetId(self.sets.canonical.len() as u32 - 1);
        self.own.push(set);
        self.deep.push(set);
        Element::new(self.own.len() - 1)
    }

    /// Ends the merging of locations: from here on sets name the locations that stand for those merged with others.
    pub(super) fn finish(&mut self) {
        self.sets.canonicalize();
    }
}

/// Interned sets and the locations that were merged.
struct Sets {
    sets: IndexSet<Box<[u32]>>,
    /// By location: another that it was merged with, or itself.
    merged: Vec<u32>,
    /// By set: the set in terms of the locations that stand for others.
    canonical: Vec<Box<[u32]>>,
}

impl Default for Sets {
    fn default() -> Sets {
        let mut sets = IndexSet::new();
        sets.insert(Box::from([]));
        Sets { sets, merged: Vec::new(), canonical: Vec::new() }
    }
}

impl Sets {
    /// The set of one new location.
    fn fresh(&mut self) -> SetId {
        let location = self.merged.len() as u32;
        self.merged.push(location);
        self.intern(vec![location])
    }

    fn intern(&mut self, members: Vec<u32>) -> SetId {
        SetId(self.sets.insert_full(members.into_boxed_slice()).0 as u32)
    }

    fn find(&mut self, mut location: u32) -> u32 {
        while self.merged[location as usize] != location {
            let next = self.merged[location as usize];
            self.merged[location as usize] = self.merged[next as usize];
            location = next;
        }
        location
    }

    fn union(&mut self, of: &mut Vec<SetId>) -> SetId {
        of.sort_by_key(|set| set.0);
        of.dedup();
        of.retain(|set| *set != SetId::EMPTY);
        match of.as_slice() {
            [] => return SetId::EMPTY,
            [one] => return *one,
            _ => {}
        }
        let mut all: Vec<u32> = Vec::new();
        for set in of.iter() {
            let members: Vec<u32> =
                self.sets.get_index(set.0 as usize).map(|s| s.to_vec()).unwrap_or_default();
            all.extend(members.into_iter().map(|location| self.find(location)));
            // Merging as we go bounds the work where many sets meet.
            if all.len() > 4 * MAX_SET {
                all.sort_unstable();
                all.dedup();
                self.shrink(&mut all);
            }
        }
        all.sort_unstable();
        all.dedup();
        self.shrink(&mut all);
        self.intern(all)
    }

    /// Merges the locations of a set that is too large.
    fn shrink(&mut self, all: &mut Vec<u32>) {
        if all.len() > MAX_SET {
            let first = all[0];
            for location in all.drain(1..) {
                self.merged[location as usize] = first;
            }
        }
    }

    fn canonicalize(&mut self) {
        let count = self.sets.len();
        let mut canonical = Vec::with_capacity(count);
        for n in 0..count {
            let members = self.sets.get_index(n).map(|s| s.to_vec()).unwrap_or_default();
            let mut members: Vec<u32> = members.into_iter().map(|location| self.find(location)).collect();
            members.sort_unstable();
            members.dedup();
            canonical.push(members.into_boxed_slice());
        }
        self.canonical = canonical;
    }

    fn get(&self, set: SetId) -> &[u32] {
        self.canonical.get(set.0 as usize).map_or(&[], |members| members)
    }

    fn intersect(&self, a: SetId, b: SetId) -> bool {
        let (mut a, mut b) = (self.get(a), self.get(b));
        while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
            match x.cmp(y) {
                std::cmp::Ordering::Equal => return true,
                std::cmp::Ordering::Less => a = rest_a,
                std::cmp::Ordering::Greater => b = rest_b,
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn solved(memory: Memory) -> Solved {
        let mut solved = memory.solve(&[]);
        solved.finish();
        solved
    }

    #[test]
    fn values_around_a_loop_are_what_enters_it() {
        let mut memory = Memory::default();
        let (a, b, carried, result) =
            (memory.element(), memory.element(), memory.element(), memory.element());
        memory.may_be(carried, a);
        memory.may_be(carried, result);
        memory.may_be(result, carried);
        let s = solved(memory);
        assert!(s.intersect(s.own(result), s.own(a)));
        assert!(!s.intersect(s.own(result), s.own(b)));
    }

    #[test]
    fn what_a_wild_value_may_be_is_wild() {
        let mut memory = Memory::default();
        let (x, view, wildcard, other) =
            (memory.element(), memory.element(), memory.element(), memory.element());
        memory.may_be(view, x);
        let mut s = memory.solve(&[(view, wildcard)]);
        s.finish();
        assert!(s.intersect(s.own(x), s.own(wildcard)) && !s.intersect(s.own(other), s.own(wildcard)));
    }

    #[test]
    fn containers_reach_what_they_contain() {
        let mut memory = Memory::default();
        let (list, inner, x, y) = (memory.element(), memory.element(), memory.element(), memory.element());
        memory.contains(list, inner);
        memory.contains(inner, x);
        let s = solved(memory);
        assert!(s.intersect(s.deep(list), s.own(x)) && !s.intersect(s.own(list), s.own(x)));
        assert!(!s.intersect(s.deep(list), s.own(y)));
    }

    #[test]
    fn large_sets_become_one_location() {
        let mut memory = Memory::default();
        let leaves: Vec<Element> = (0..1000).map(|_| memory.element()).collect();
        let (top, other) = (memory.element(), memory.element());
        leaves.iter().for_each(|leaf| memory.may_be(top, *leaf));
        let s = solved(memory);
        assert!(leaves.iter().all(|leaf| s.intersect(s.own(top), s.own(*leaf))));
        assert!(!s.intersect(s.own(top), s.own(other)));
        assert!(s.locations(s.own(top)).len() <= MAX_SET);
    }
}
