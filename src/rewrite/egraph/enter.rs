//! A function in an e-graph. Every value has a class. An op is in the language if it computes its results from its
//! operands alone and nothing that it reads is ever written to; all other ops stay where they are, and their
//! results are leaves. That is how effects cut a program: no value floats past a write that it could see.

use super::language::{Graphs, Head, Knowledge, Node, OpHead};
use crate::analysis::{AliasDb, facts};
use crate::dialects::prim::constant::COMPUTED;
use crate::dialects::{Effects, Fact, Family, Op, Registry, resolve};
use crate::ir::{Attr, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use egg::{EGraph, Id};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// What an op may do and still be in the language.
const HARMLESS: Effects = Effects::MAY_RAISE.union(Effects::IDENTITY);

/// A function's values in an e-graph.
pub(in crate::rewrite) struct Loaded {
    /// The e-graph.
    pub(in crate::rewrite) egraph: Graphs,
    /// The class of each value, as it was when it was added.
    pub(in crate::rewrite) class_of: HashMap<ValueId, Id>,
    /// Ops of the language, in program order, with the node that each is.
    pub(in crate::rewrite) ops: Vec<(OpId, Node)>,
    /// The place of an op in the program.
    pub(in crate::rewrite) order: HashMap<OpId, usize>,
    /// The op node that was built last, for the scheduler.
    pub(super) last_built: Option<Node>,
    /// The row that makes lists.
    lists: Option<Op>,
}

/// The head of a node as an op.
pub(in crate::rewrite) fn op_of<'a>(loaded: &'a Loaded, node: &Node) -> Option<&'a OpHead> {
    match loaded.head(node) {
        Head::Op(head) => Some(head),
        _ => None,
    }
}

/// Restores an e-graph's invariants after classes were joined. It notes how long that takes, which nothing here reads; to find
/// out how fast the machine's clock runs would take longer than most graphs do, so that it gets a clock that stands.
pub(super) fn restore(egraph: &mut Graphs) {
    let (stopped, _) = quanta::Clock::mock();
    quanta::with_clock(&stopped, || egraph.rebuild());
}

/// Puts a function into an e-graph.
pub(in crate::rewrite) fn load(graph: &Graph, registry: &Registry, aliases: &AliasDb) -> Loaded {
    let mut loaded = Loaded {
        egraph: EGraph::new(Knowledge::default()),
        class_of: HashMap::new(),
        ops: Vec::new(),
        order: HashMap::new(),
        last_built: None,
        lists: registry.overloads(Symbol::new("prim::ListConstruct")).first().cloned(),
    };
    let all = graph.all_ops();
    let mut branches = Vec::new();
    for (n, op) in all.iter().enumerate() {
        loaded.order.insert(*op, n);
        if graph.kind(*op) == "prim::Constant" {
            loaded.constant(graph, *op);
        } else if graph.kind(*op) == "prim::If" {
            branches.extend(resolve(registry, graph, *op).ok().map(|row| (*op, row)));
        } else if let Some(row) = in_language(graph, registry, aliases, *op) {
            loaded.op(graph, aliases, *op, &row);
        }
        // Results of other ops become leaves where they are used.
    }
    for (op, row) in branches {
        loaded.branch(graph, aliases, op, &row);
    }
    // Values without uses in the language have a class all the same: rules speak of any value.
    for op in &all {
        for value in graph.results(*op) {
            loaded.value(graph, aliases, value);
        }
    }
    restore(&mut loaded.egraph);
    loaded.egraph.analysis.changed.clear();
    loaded.egraph.analysis.above.borrow_mut().clear();
    loaded
}

/// The row of an op that computes its results from its operands alone, where nothing writes to what it reads.
pub(in crate::rewrite) fn in_language(
    graph: &Graph,
    registry: &Registry,
    aliases: &AliasDb,
    op: OpId,
) -> Option<Op> {
    if !graph.nested_blocks(op).is_empty() {
        return None;
    }
    let known = facts(registry, graph, op);
    let row = known.op?;
    let pure = !known.writes
        && HARMLESS.contains(known.effects)
        && row.def().family != Family::Create
        && !reads_what_is_written(graph, aliases, op, &row);
    pure.then_some(row)
}

/// Whether the op reads contents that something in the graph writes to. Views and questions about types look
/// at none.
fn reads_what_is_written(graph: &Graph, aliases: &AliasDb, op: OpId, row: &Op) -> bool {
    let def = row.def();
    // What makes a list holds objects and does not read them.
    let holds = def.effects.contains(Effects::IDENTITY);
    if def.family == Family::View || def.facts.contains(&Fact::Metadata) || holds {
        return false;
    }
    let objects = graph.operands(op).iter().filter(|value| AliasDb::is_mutable_type(graph.ty(**value)));
    objects.into_iter().any(|value| match def.family {
        Family::Container => aliases.has_writers(*value),
        _ => aliases.has_deep_writers(*value),
    })
}

impl Loaded {
    /// The class of a value; one that nothing of the language makes is a leaf.
    pub(in crate::rewrite) fn value(&mut self, graph: &Graph, aliases: &AliasDb, value: ValueId) -> Id {
        if let Some(id) = self.class_of.get(&value) {
            return *id;
        }
        let head = self.egraph.analysis.heads.leaf(value, graph.ty(value));
        let id = self.egraph.add(Node { head, children: SmallVec::new() });
        self.note(value, id, aliases.has_writers(value) && AliasDb::is_mutable_type(graph.ty(value)));
        id
    }

    fn note(&mut self, value: ValueId, id: Id, written: bool) {
        self.class_of.insert(value, id);
        let data = &mut self.egraph[id].data;
        data.values.push(value);
        data.written |= written;
    }

    fn constant(&mut self, graph: &Graph, op: OpId) {
        let Some(value) = graph.result(op, 0) else { return };
        let (ty, attr) = (graph.ty(value), graph.attr(op, "value"));
        let marked = graph.attr(op, COMPUTED).is_some();
        if attr.is_none() && *ty.kind() != TypeKind::None || marked || !is_plain_constant(attr) {
            return;
        }
        let head = self.egraph.analysis.heads.constant(ty, attr);
        let id = self.egraph.add(Node { head, children: SmallVec::new() });
        self.note(value, id, false);
        if let (Some(Attr::Ints(items)), Some(row)) = (attr, self.lists.clone()) {
            // Rules see into constant lists.
            let items = items.clone();
            let ty = ty.clone();
            let children: SmallVec<[Id; 4]> = items
                .iter()
                .map(|x| {
                    let head = self.egraph.analysis.heads.constant(&Type::int(), Some(&Attr::Int(*x)));
                    self.egraph.add(Node { head, children: SmallVec::new() })
                })
                .collect();
            let head = OpHead { op: row, attributes: SmallVec::new(), ty, pin: None };
            let head = self.egraph.analysis.heads.op(head);
            let list = self.egraph.add(Node { head, children });
            self.egraph.union(id, list);
        }
    }

    fn op(&mut self, graph: &Graph, aliases: &AliasDb, op: OpId, row: &Op) {
        let children: SmallVec<[Id; 4]> =
            graph.operands(op).iter().map(|value| self.value(graph, aliases, *value)).collect();
        let results = graph.results(op);
        let mutable = |v: &ValueId| AliasDb::is_mutable_type(graph.ty(*v));
        let written = |v: &ValueId| mutable(v) && aliases.has_writers(*v);
        // Lists and mutated values are distinguishable from equal ones.
        let container = row.def().effects.contains(Effects::IDENTITY);
        let makes = results.iter().any(&written) && row.def().family != Family::View;
        let pin = (container || makes).then_some((op, 0));
        let ty = match results.as_slice() {
            [one] => graph.ty(*one).unshaped(),
            _ => Type::tuple(results.iter().map(|v| graph.ty(*v).unshaped()).collect::<Vec<_>>()),
        };
        let attributes = graph.attrs(op).iter().cloned().collect();
        let head = OpHead { op: row.clone(), attributes, ty, pin };
        let head = self.egraph.analysis.heads.op(head);
        if let [one] = results.as_slice() {
            self.egraph.analysis.stated = Some(graph.ty(*one).clone());
        }
        let node = Node { head, children };
        let id = self.egraph.add(node.clone());
        self.egraph.analysis.stated = None;
        match results.as_slice() {
            [one] => self.note(*one, id, written(one)),
            several => {
                for (n, value) in several.iter().enumerate() {
                    let head = self.egraph.analysis.heads.result(n);
                    self.egraph.analysis.stated = Some(graph.ty(*value).clone());
                    let id = self.egraph.add(Node { head, children: SmallVec::from_slice(&[id]) });
                    self.egraph.analysis.stated = None;
                    self.note(*value, id, written(value));
                }
            }
        }
        self.ops.push((op, node));
    }

    /// Each result of an `if` is a choice between two values; the op itself stays what it is.
    fn branch(&mut self, graph: &Graph, aliases: &AliasDb, op: OpId, row: &Op) {
        let [then, other] = graph.nested_blocks(op) else { return };
        let (then, other) = (graph.block_results(*then).to_vec(), graph.block_results(*other).to_vec());
        let Some(condition) = graph.operand(op, 0) else { return };
        for (n, value) in graph.results(op).into_iter().enumerate() {
            let (Some(a), Some(b)) = (then.get(n), other.get(n)) else { continue };
            let leaf = self.value(graph, aliases, value);
            let children = [condition, *a, *b].map(|v| self.value(graph, aliases, v));
            let ty = graph.ty(value).unshaped();
            let head = OpHead { op: row.clone(), attributes: SmallVec::new(), ty, pin: Some((op, n)) };
            let head = self.egraph.analysis.heads.op(head);
            self.egraph.analysis.stated = Some(graph.ty(value).clone());
            let id = self.egraph.add(Node { head, children: SmallVec::from_slice(&children) });
            self.egraph.analysis.stated = None;
            self.egraph.union(leaf, id);
        }
    }

    /// A node with the classes that its operands are in now.
    pub(in crate::rewrite) fn canonical(&self, node: &Node) -> Node {
        let mut node = node.clone();
        node.children.iter_mut().for_each(|c| *c = self.egraph.find(*c));
        node
    }

    /// Values that something outside of the language makes, as nodes.
    pub(in crate::rewrite) fn leaves(&self) -> impl Iterator<Item = (ValueId, Node)> {
        self.egraph
            .analysis
            .heads
            .leaves()
            .map(|(value, head)| (value, Node { head, children: SmallVec::new() }))
    }

    /// What a head means.
    pub(in crate::rewrite) fn head(&self, node: &Node) -> &Head {
        self.egraph.analysis.heads.get(node.head)
    }

    /// The row that makes lists.
    pub(in crate::rewrite) fn list_row(&self) -> Option<&Op> {
        self.lists.as_ref()
    }
}

/// Constants that can be written again; functions and objects cannot.
fn is_plain_constant(attr: Option<&Attr>) -> bool {
    !matches!(attr, Some(Attr::Graph(_) | Attr::Graphs(_) | Attr::Raw(_) | Attr::Type(_) | Attr::Types(_)))
}
