//! The effects of an op in a graph: its row's, the writes its schema marks, and those of nested blocks.

use crate::dialects::{Effects, Op, Registry, resolve};
use crate::ir::{Attr, Graph, OpId, Symbol, TypeKind};
use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use smallvec::SmallVec;
use std::hash::BuildHasher;

/// What is known of an op.
#[derive(Clone, Debug)]
pub struct OpFacts {
    /// Its row, if there is one for its operands.
    pub op: Option<Op>,
    /// Everything it does besides computing, nested blocks and subgraphs included. An unknown op does all.
    pub effects: Effects,
    /// Whether it may write to an operand (or a nested op to anything).
    pub writes: bool,
}

/// Collects the facts of an op.
pub fn facts(registry: &Registry, graph: &Graph, op: OpId) -> OpFacts {
    let mut total = own_facts(registry, graph, op);
    let mut work: Vec<OpId> = nested(graph, op);
    while let Some(inner) = work.pop() {
        let found = own_facts(registry, graph, inner);
        total.effects = total.effects | found.effects;
        total.writes |= found.writes;
        work.extend(nested(graph, inner));
    }
    if let Some(body) = graph.attr(op, "Subgraph").and_then(Attr::as_graph) {
        for inner in body.all_ops() {
            let found = own_facts(registry, body, inner);
            total.effects = total.effects | found.effects;
            total.writes |= found.writes;
        }
    }
    total
}

/// What the op does besides computing, not counting what is nested in it.
pub(super) fn own_effects(registry: &Registry, graph: &Graph, op: OpId) -> Effects {
    own_facts(registry, graph, op).effects
}

/// The facts of the ops of one graph, found once for each kind and types of operands: for passes that ask for many.
/// The graph may change meanwhile.
pub struct FactsTable<'a> {
    registry: &'a Registry,
    hasher: DefaultHashBuilder,
    /// Numbers of rows of `known`.
    table: HashTable<usize>,
    known: Vec<Known>,
    /// The row asked for last, by kind.
    recent: [usize; RECENT],
    /// Facts of an op that is like no other.
    single: OpFacts,
}

struct Known {
    kind: Symbol,
    /// Types of operands, as the graph numbers them.
    types: Types,
    facts: OpFacts,
    /// The facts hold for every op of the kind with operands of these types.
    is_shared: bool,
}

type Types = SmallVec<[u32; 8]>;

const RECENT: usize = 64;

impl<'a> FactsTable<'a> {
    /// A table that knows nothing yet. It may be asked about one graph only.
    pub fn new(registry: &'a Registry) -> FactsTable<'a> {
        FactsTable {
            registry,
            hasher: DefaultHashBuilder::default(),
            table: HashTable::new(),
            known: Vec::new(),
            recent: [usize::MAX; RECENT],
            single: UNKNOWN,
        }
    }

    /// As [`facts`].
    pub fn get(&mut self, graph: &Graph, op: OpId) -> &OpFacts {
        if !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some() {
            self.single = facts(self.registry, graph, op);
            return &self.single;
        }
        let kind = graph.kind(op);
        let operands = graph.operands(op);
        let is_it = |known: &Known| {
            let types = operands.iter().map(|value| graph.type_index(*value) as u32);
            known.kind == kind && known.types.len() == operands.len() && types.eq(known.types.iter().copied())
        };
        let slot = kind.index() as usize % RECENT;
        let recent = self.recent[slot];
        let at = if self.known.get(recent).is_some_and(is_it) { recent } else { self.find(graph, op) };
        self.recent[slot] = at;
        if !self.known[at].is_shared {
            self.single = facts(self.registry, graph, op);
            return &self.single;
        }
        &self.known[at].facts
    }

    fn find(&mut self, graph: &Graph, op: OpId) -> usize {
        let kind = graph.kind(op);
        let types: Types = graph.operands(op).iter().map(|value| graph.type_index(*value) as u32).collect();
        let hash = self.hasher.hash_one((kind, types.as_slice()));
        let same = |n: &usize| self.known[*n].kind == kind && self.known[*n].types == types;
        match self.table.find(hash, same) {
            Some(at) => *at,
            None => self.learn(graph, op, kind, types, hash),
        }
    }

    fn learn(&mut self, graph: &Graph, op: OpId, kind: Symbol, types: Types, hash: u64) -> usize {
        let facts = own_facts(self.registry, graph, op);
        let depends = |row: &Op| row.def().hidden.is_some_and(|hidden| hidden.writes_if.is_some());
        let is_shared = !facts.op.as_ref().is_some_and(depends);
        self.known.push(Known { kind, types, facts, is_shared });
        let (known, hasher) = (&self.known, &self.hasher);
        let hash_of = |n: &usize| hasher.hash_one((known[*n].kind, known[*n].types.as_slice()));
        self.table.insert_unique(hash, known.len() - 1, hash_of);
        known.len() - 1
    }
}

/// The facts of ops of one graph, those of ops with blocks found once however deep they nest: for walks over all blocks of a
/// graph that stays unchanged.
pub struct NestedFacts<'a> {
    registry: &'a Registry,
    known: HashMap<OpId, OpFacts>,
}

impl<'a> NestedFacts<'a> {
    /// A table that knows nothing yet.
    pub fn new(registry: &'a Registry) -> NestedFacts<'a> {
        NestedFacts { registry, known: HashMap::new() }
    }

    /// As [`facts`].
    pub fn get(&mut self, graph: &Graph, op: OpId) -> OpFacts {
        // Inner ops first.
        let mut work = vec![op];
        while let Some(at) = work.last().copied() {
            if let Some(known) = self.known.get(&at) {
                work.pop();
                if work.is_empty() {
                    return known.clone();
                }
                continue;
            }
            let inner = nested(graph, at);
            let is_new = |op: &&OpId| !graph.nested_blocks(**op).is_empty() && !self.known.contains_key(*op);
            let new = work.len();
            work.extend(inner.iter().filter(is_new));
            if work.len() > new {
                continue;
            }
            let mut total = if inner.is_empty() {
                facts(self.registry, graph, at)
            } else {
                own_facts(self.registry, graph, at)
            };
            for op in inner {
                let known = self.known.get(&op).cloned();
                let found = known.unwrap_or_else(|| facts(self.registry, graph, op));
                total.effects = total.effects | found.effects;
                total.writes |= found.writes;
            }
            self.known.insert(at, total);
        }
        UNKNOWN
    }
}

/// What is known of an unknown op.
const UNKNOWN: OpFacts = OpFacts { op: None, effects: Effects::ALL, writes: true };

/// Whether skipping the op is unobservable except through its results or a raise.
pub fn is_pure(registry: &Registry, graph: &Graph, op: OpId) -> bool {
    let facts = facts(registry, graph, op);
    let harmless = Effects::MAY_RAISE | Effects::CONTROL;
    !facts.writes && harmless.contains(facts.effects)
}

fn nested(graph: &Graph, op: OpId) -> Vec<OpId> {
    graph.nested_blocks(op).iter().flat_map(|block| graph.block_ops(*block)).collect()
}

fn own_facts(registry: &Registry, graph: &Graph, op: OpId) -> OpFacts {
    let Ok(row) = resolve(registry, graph, op) else {
        return UNKNOWN;
    };
    let mut effects = row.def().effects;
    let has_body = !graph.nested_blocks(op).is_empty() || graph.attr(op, "Subgraph").is_some();
    if effects.contains(Effects::CONTROL) && !has_body {
        // A call: what the callee does is not examined here.
        effects = Effects::ALL;
    }
    let writes =
        row.marked_schema().map_or(true, |schema| schema.is_mutable()) && !is_read_only(graph, op, &row);
    OpFacts { op: Some(row), effects, writes }
}

/// Whether the argument that says whether an op writes is the constant False, or all that it would write to is None.
pub fn is_read_only(graph: &Graph, op: OpId, row: &Op) -> bool {
    if row.def().hidden.is_some() && writes_to_none(graph, op, row) {
        return true;
    }
    let flag = row.def().hidden.and_then(|hidden| hidden.writes_if);
    let index = flag.and_then(|name| row.schema().ok()?.argument_index(name));
    let constant = index
        .and_then(|n| graph.operand(op, n))
        .and_then(|value| graph.def_op(value))
        .filter(|def| graph.kind(*def) == "prim::Constant");
    constant.and_then(|def| graph.attr(def, "value")).and_then(Attr::as_int) == Some(0)
}

fn writes_to_none(graph: &Graph, op: OpId, row: &Op) -> bool {
    let Ok(schema) = row.marked_schema() else { return false };
    let mut both = schema.arguments.iter().zip(graph.operands(op));
    both.all(|(argument, operand)| {
        let is_written = argument.alias.as_ref().is_some_and(|marks| marks.is_write);
        !is_written || matches!(graph.ty(*operand).kind(), TypeKind::None)
    })
}
