//! Which values may be the same object, and who writes to it.
//!
//! [`AliasDb`] is made once for a graph. Alias marks of schemas and the structure of blocks become a points-to
//! graph (`build.rs`), which is solved to sets of memory locations (`memory.rs`); queries then compare small sorted
//! sets. Everything answers on the safe side: "no" is a proof, "yes" a possibility.
//!
//! - Inputs of the graph, attributes of objects, elements taken out of containers and results of code that is not
//!   seen are *wildcards*: two of them may be the same if their types may be.
//! - What is put into a container becomes a wildcard too, unless the container is only read, by one op, or only
//!   returned. Views that one op makes of a tensor and puts into a list are that tensor, if the list is only unpacked.
//! - Around a loop, values may be what entered or what the previous iteration left.
//! - An op without a row may do everything.
//!
//! The database describes the graph as it was. Ops may be erased and moved freely; a new value is registered with
//! [`AliasDb::copy_value`], else it counts as anything.

mod build;
mod memory;
mod moves;
mod order;
mod solution;
#[cfg(test)]
mod tests;
mod types;

use crate::analysis::cache::Analysis;
use crate::dialects::Registry;
use crate::ir::{Graph, Module, OpId, Type, ValueId};
use build::{Builder, MutableTypes};
use hashbrown::HashSet;
use memory::{Element, SetId, Solved};
pub use moves::Side;
use solution::{LazySolution, Solution, Unsolved, Written};
use types::{Classes, is_mutable};

/// What may alias what in a graph, and what is written.
pub struct AliasDb {
    solution: LazySolution,
    /// By value; [`Known::Immutable`] for values that are not objects.
    values: Vec<Known>,
    /// Ops that write, ops with nested blocks included.
    writing: HashSet<OpId>,
    /// Results that their ops made anew.
    fresh: HashSet<ValueId>,
    /// Values that ops compare with others as objects.
    compared: HashSet<ValueId>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Known {
    /// Made after the database: nothing is known.
    Nothing,
    Immutable,
    Element(Element),
}

/// What a database knows of a value.
#[derive(Clone, Copy, Debug)]
pub struct Aliasing(Known);

/// A set of memory locations that grows.
#[derive(Clone, Debug, Default)]
pub struct Locations {
    members: Vec<bool>,
    /// A value of which nothing is known is among them.
    unknown: bool,
    /// A wildcard is among them.
    wild: bool,
}

impl Analysis for AliasDb {
    const NAME: &'static str = "alias";

    fn compute(graph: &Graph, registry: &Registry, module: &Module) -> AliasDb {
        AliasDb::new(registry, Some(module), graph)
    }
}

impl AliasDb {
    /// Analyses a graph. With the module, contents of its classes are told apart by type.
    pub fn new(registry: &Registry, module: Option<&Module>, graph: &Graph) -> AliasDb {
        let mut builder = Builder::new(registry, Classes(module), graph);
        builder.run();
        let Builder { memory, elements, wildcards, writes, fresh, compared, wild, .. } = builder;
        let writing = solution::writing(graph, &writes);
        let mut db = AliasDb {
            values: elements.iter().map(|e| e.map_or(Known::Nothing, Known::Element)).collect(),
            writing: writing.keys().copied().collect(),
            solution: LazySolution::of(Unsolved {
                memory,
                wild,
                wildcards: wildcards.into_values().collect(),
                own: writes,
                writing,
            }),
            fresh,
            compared,
        };
        db.mark_immutable(graph);
        db
    }

    fn mark_immutable(&mut self, graph: &Graph) {
        let types = MutableTypes::new(graph);
        let mut mark = |value: &ValueId| {
            if self.values[value.index()] == Known::Nothing && !types.is_mutable(graph, *value) {
                self.values[value.index()] = Known::Immutable;
            }
        };
        graph.inputs().iter().for_each(&mut mark);
        for op in graph.all_ops() {
            graph.results(op).iter().for_each(&mut mark);
            for block in graph.nested_blocks(op) {
                graph.params(*block).iter().for_each(&mut mark);
            }
        }
    }

    /// What an op writes, if it does.
    fn written(&self, op: OpId) -> Option<Written> {
        if self.writing.contains(&op) { self.solution.get().writes.get(&op).copied() } else { None }
    }

    fn known(&self, value: ValueId) -> Known {
        self.values.get(value.index()).copied().unwrap_or(Known::Nothing)
    }

    /// Whether two values may be the same object, or views of the same memory.
    pub fn may_alias(&self, a: ValueId, b: ValueId) -> bool {
        match (self.known(a), self.known(b)) {
            (Known::Immutable, _) | (_, Known::Immutable) => false,
            (Known::Element(a), Known::Element(b)) => {
                let solved = &self.solution.get().solved;
                solved.intersect(solved.own(a), solved.own(b))
            }
            _ => true,
        }
    }

    /// Whether an object may be reached from both values: they alias, or one contains what the other is or contains.
    pub fn may_contain_alias(&self, a: ValueId, b: ValueId) -> bool {
        match (self.known(a), self.known(b)) {
            (Known::Immutable, _) | (_, Known::Immutable) => false,
            (Known::Element(a), Known::Element(b)) => {
                let solved = &self.solution.get().solved;
                solved.intersect(solved.deep(a), solved.deep(b))
            }
            _ => true,
        }
    }

    /// Whether [`AliasDb::may_contain_alias`] holds for some value of the one and some of the other list.
    pub fn any_may_contain_alias(&self, a: &[ValueId], b: &[ValueId]) -> bool {
        a.iter().any(|a| b.iter().any(|b| self.may_contain_alias(*a, *b)))
    }

    /// Whether anything in the graph may write to what the value is. What it contains does not count.
    pub fn has_writers(&self, value: ValueId) -> bool {
        match self.known(value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(element) => self.any_written(|solved| solved.own(element)),
        }
    }

    /// Whether anything in the graph may write to what the value is or contains, however deep.
    pub fn has_deep_writers(&self, value: ValueId) -> bool {
        match self.known(value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(element) => self.any_written(|solved| solved.deep(element)),
        }
    }

    /// Whether an operand or result of the op has writers.
    pub fn op_has_writers(&self, graph: &Graph, op: OpId) -> bool {
        graph.operands(op).iter().chain(&graph.results(op)).any(|value| self.has_writers(*value))
    }

    fn any_written(&self, set: impl Fn(&Solved) -> SetId) -> bool {
        if self.writing.is_empty() {
            return false;
        }
        let solution = self.solution.get();
        solution.any_written(set(&solution.solved))
    }

    /// The ops that may write to what the value is, in program order, not counting ops around them. None where
    /// nothing is known of the value.
    pub fn writers(&self, value: ValueId) -> Option<Vec<OpId>> {
        let Known::Element(element) = self.known(value) else {
            return (self.known(value) == Known::Immutable).then(Vec::new);
        };
        if self.writing.is_empty() {
            return Some(Vec::new());
        }
        let Solution { solved, wild, writers, writes_everything, .. } = self.solution.get();
        let locations = solved.locations(solved.own(element));
        let mut found: Vec<OpId> =
            locations.iter().flat_map(|location| writers[*location as usize].iter().copied()).collect();
        if locations.iter().any(|location| wild[*location as usize]) {
            found.extend(writes_everything);
        }
        found.sort();
        found.dedup();
        Some(found)
    }

    /// Whether the op, or one nested in it, may write to what the value is.
    pub fn writes_to(&self, op: OpId, value: ValueId) -> bool {
        match (self.written(op), self.known(value)) {
            (None, _) | (_, Known::Immutable) => false,
            (Some(_), Known::Nothing) => true,
            (Some(written), Known::Element(element)) => {
                let solution = self.solution.get();
                solution.hits(written, solution.solved.own(element))
            }
        }
    }

    /// Whether an op of the graph may write to anything.
    pub fn has_writes(&self) -> bool {
        !self.writing.is_empty()
    }

    /// Whether the op, or one nested in it, may write to anything.
    pub fn writes(&self, op: OpId) -> bool {
        self.writing.contains(&op)
    }

    /// Whether the op, or one nested in it, may write to something that others hold: inputs, attributes, elements.
    pub fn writes_wildcard(&self, op: OpId) -> bool {
        self.written(op).is_some_and(|written| written.everything || self.solution.get().any_wild(written.to))
    }

    /// Adds what a value may be, or hold, to a set.
    pub fn add_locations(&self, value: ValueId, to: &mut Locations) {
        match self.known(value) {
            Known::Immutable => {}
            Known::Nothing => to.unknown = true,
            // Nothing will be asked of the set.
            Known::Element(_) if self.writing.is_empty() => {}
            Known::Element(element) => {
                let Solution { solved, wild, .. } = self.solution.get();
                to.members.resize(solved.location_count(), false);
                for location in solved.locations(solved.deep(element)) {
                    to.members[*location as usize] = true;
                    to.wild |= wild[*location as usize];
                }
            }
        }
    }

    /// Whether the op, or one nested in it, may write to one of the locations.
    pub fn writes_into(&self, op: OpId, locations: &Locations) -> bool {
        self.written(op).is_some_and(|written| {
            let member = |location: &u32| locations.members.get(*location as usize) == Some(&true);
            locations.unknown
                || (written.everything && locations.wild)
                || self.solution.get().solved.locations(written.to).iter().any(member)
        })
    }

    /// Whether an op asks if the value and another one are the same object.
    pub fn is_compared(&self, value: ValueId) -> bool {
        self.compared.contains(&value)
    }

    /// Whether the value may be something that others hold: an input, an attribute, an element of a container.
    pub fn is_wildcard(&self, value: ValueId) -> bool {
        match self.known(value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(element) => {
                let solution = self.solution.get();
                solution.any_wild(solution.solved.own(element))
            }
        }
    }

    /// Whether values of a type are, or hold, objects that can be written.
    pub fn is_mutable_type(ty: &Type) -> bool {
        is_mutable(ty)
    }

    /// Whether two values may become one object, or one object two: nothing writes to either, and not both are
    /// known outside of the graph, where this is observable.
    pub fn safe_to_change_aliasing(&self, graph: &Graph, a: ValueId, b: ValueId) -> bool {
        let written = self.has_writers(a) || self.has_writers(b);
        let both_escape = self.escapes(graph, a) && self.escapes(graph, b);
        !written && !both_escape
    }

    /// Whether two equal results, the one made before the other, may become one object: nothing writes to either,
    /// not both leave the graph, and neither was made by its op and then given away (into a container, say).
    pub fn may_merge(&self, graph: &Graph, a: ValueId, b: ValueId) -> bool {
        let leaves =
            |value: ValueId| graph.outputs().iter().any(|output| self.may_contain_alias(*output, value));
        let given_away = |value: ValueId| self.is_wildcard(value) && self.fresh.contains(&value);
        let written = self.has_writers(a) || self.has_writers(b);
        let both_leave = leaves(a) && leaves(b);
        let both_given_away = given_away(a) && given_away(b);
        !written && !both_leave && !both_given_away
    }

    /// Whether something outside of the graph may hold the value: it is, or is reached from, an input, an output,
    /// an attribute or an element of a container.
    pub fn escapes(&self, graph: &Graph, value: ValueId) -> bool {
        match self.known(value) {
            Known::Immutable => false,
            Known::Nothing => true,
            Known::Element(_) => {
                self.is_wildcard(value)
                    || graph.outputs().iter().chain(graph.inputs()).any(|v| self.may_contain_alias(*v, value))
            }
        }
    }

    /// Says that a new value is what a known one is.
    pub fn copy_value(&mut self, from: ValueId, to: ValueId) {
        let known = self.known(from);
        self.set_known(to, known);
    }

    /// What is known of a value, to be said of another one later.
    pub fn aliasing(&self, value: ValueId) -> Aliasing {
        Aliasing(self.known(value))
    }

    /// Says of a new value what was known of another one.
    pub fn set_aliasing(&mut self, value: ValueId, known: Aliasing) {
        self.set_known(value, known.0);
    }

    /// Says that a value of which nothing is known has the type that the graph gives it: a number is not an object.
    pub fn learn_type(&mut self, graph: &Graph, value: ValueId) {
        if self.known(value) == Known::Nothing && !is_mutable(graph.ty(value)) {
            self.set_known(value, Known::Immutable);
        }
    }

    /// Says that an op that wrote to what `old` is now gives `new` instead, and `old` is an object of its own that
    /// nothing writes to.
    pub fn replace_with_new_value(&mut self, old: ValueId, new: ValueId) {
        self.copy_value(old, new);
        let Some(solution) = self.solution.get_mut() else { return };
        let element = solution.solved.add_location();
        solution.wild.push(false);
        solution.writers.push(Vec::new());
        self.set_known(old, Known::Element(element));
    }

    /// Says that an op no longer writes. Ops around it still count as writing what it wrote.
    pub fn forget_writes(&mut self, op: OpId) {
        if !self.writing.remove(&op) {
            return;
        }
        let Some(Solution { solved, writes, writers, writes_everything, .. }) = self.solution.get_mut()
        else {
            return;
        };
        if let Some(written) = writes.remove(&op) {
            for location in solved.locations(written.to) {
                let writers = &mut writers[*location as usize];
                // Walks in program order drop the first.
                if let Some(at) = writers.iter().position(|writer| *writer == op) {
                    writers.remove(at);
                }
            }
            writes_everything.retain(|writer| *writer != op);
        }
    }

    /// Says that a value is new: nothing is known of it.
    pub fn forget(&mut self, value: ValueId) {
        self.set_known(value, Known::Nothing);
    }

    fn set_known(&mut self, value: ValueId, known: Known) {
        if self.values.len() <= value.index() {
            self.values.resize(value.index() + 1, Known::Nothing);
        }
        self.values[value.index()] = known;
    }
}
