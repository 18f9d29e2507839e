//! Regions: stretches of a block's ops among which pure work may float. What writes, or does anything besides
//! computing, ends one; nested blocks are regions of their own.

use super::language::{Head, Knowledge, Node};
use crate::analysis::facts;
use crate::dialects::{Effects, Family, Op, Registry};
use crate::ir::{BlockId, Graph, OpId, ValueId};
use egg::{EGraph, Id};
use hashbrown::HashMap;
use smallvec::SmallVec;

/// Ops of one region, at most.
const MAX_OPS: usize = 2_000;

/// A stretch of ops.
pub(super) struct Region {
    /// Ops of the language, in order: pure, one result, no attributes, with their rows.
    pub(super) ops: Vec<(OpId, Op)>,
    /// Constants that those use.
    constants: Vec<OpId>,
    /// Whether anything in the whole graph writes to memory.
    graph_writes: bool,
}

/// The classes of a region's values.
#[derive(Default)]
pub(super) struct Classes {
    /// By value.
    pub(super) of: HashMap<ValueId, Id>,
    /// Values in the order in which they were added.
    pub(super) order: Vec<ValueId>,
}

impl Classes {
    /// Whether the one value of a class is used once.
    pub(super) fn one_use(&self, graph: &Graph, egraph: &EGraph<Node, Knowledge>, id: Id) -> bool {
        let root = egraph.find(id);
        let mut members = self.order.iter().filter(|v| egraph.find(self.of[*v]) == root);
        matches!((members.next(), members.next()), (Some(v), None) if graph.has_one_use(*v))
    }
}

/// All regions of a graph, outer blocks first.
pub(super) fn regions(graph: &Graph, registry: &Registry) -> Vec<Region> {
    let graph_writes = graph.all_ops().iter().any(|op| facts(registry, graph, *op).writes);
    let mut found = Vec::new();
    let mut blocks = vec![graph.root()];
    while let Some(block) = blocks.pop() {
        found.extend(block_regions(graph, registry, block, graph_writes));
        for op in graph.block_ops(block) {
            blocks.extend_from_slice(graph.nested_blocks(op));
        }
    }
    found
}

fn block_regions(graph: &Graph, registry: &Registry, block: BlockId, graph_writes: bool) -> Vec<Region> {
    let empty = || Region { ops: Vec::new(), constants: Vec::new(), graph_writes };
    let mut regions = vec![empty()];
    for op in graph.block_ops(block) {
        let known = facts(registry, graph, op);
        let ends = known.writes || !(Effects::MAY_RAISE | Effects::CONTROL).contains(known.effects);
        let Some(region) = regions.last_mut() else { continue };
        if graph.kind(op) == "prim::Constant" {
            region.constants.push(op);
        } else if let Some(row) = known.op.filter(|row| !ends && is_plain(graph, op, row)) {
            region.ops.push((op, row));
        }
        if ends || region.ops.len() >= MAX_OPS {
            regions.push(empty());
        }
    }
    regions.retain(|region| !region.ops.is_empty());
    regions
}

/// Whether an op is in the language: a function of its operands alone.
fn is_plain(graph: &Graph, op: OpId, row: &Op) -> bool {
    let makes_container = row.def().family == Family::Container || row.def().family == Family::Control;
    graph.result_count(op) == 1
        && graph.attrs(op).is_empty()
        && graph.nested_blocks(op).is_empty()
        && !makes_container
        && !graph.operands(op).is_empty()
}

impl Region {
    /// Puts the region's ops into an e-graph.
    pub(super) fn load(&self, graph: &Graph, egraph: &mut EGraph<Node, Knowledge>) -> Classes {
        let mut classes = Classes::default();
        for op in &self.constants {
            if let Some(value) = graph.result(*op, 0) {
                let head = egraph.analysis.heads.constant(graph.ty(value), graph.attr(*op, "value"));
                let id = egraph.add(Node { head, children: SmallVec::new() });
                classes.note(value, id);
            }
        }
        for (op, row) in &self.ops {
            let mut children = SmallVec::new();
            for value in graph.operands(*op) {
                children.push(classes.operand(graph, egraph, *value));
            }
            let Some(value) = graph.result(*op, 0) else { continue };
            let head = egraph.analysis.heads.op(row);
            egraph.analysis.stated = Some(graph.ty(value).clone());
            let id = egraph.add(Node { head, children });
            egraph.analysis.stated = None;
            classes.note(value, id);
        }
        classes
    }

    /// Whether a fresh value may become another's alias, or the reverse: nothing writes anywhere, and the value
    /// goes only into ops that make fresh values of their own.
    pub(super) fn may_change_identity(
        &self,
        graph: &Graph,
        egraph: &EGraph<Node, Knowledge>,
        classes: &Classes,
        root: Id,
    ) -> bool {
        let root = egraph.find(root);
        let fresh_users = |value: &ValueId| {
            graph.uses(*value).all(|u| {
                self.ops.iter().any(|(op, row)| {
                    *op == u.op
                        && matches!(
                            row.def().family,
                            Family::Elementwise | Family::Reduce | Family::Contraction
                        )
                })
            })
        };
        !self.graph_writes
            && classes.order.iter().filter(|v| egraph.find(classes.of[*v]) == root).all(fresh_users)
    }
}

impl Classes {
    fn note(&mut self, value: ValueId, id: Id) {
        self.of.insert(value, id);
        self.order.push(value);
    }

    /// The class of an operand; a value from outside becomes a leaf, a constant from outside stays a constant.
    fn operand(&mut self, graph: &Graph, egraph: &mut EGraph<Node, Knowledge>, value: ValueId) -> Id {
        if let Some(id) = self.of.get(&value) {
            return *id;
        }
        let constant = graph
            .def_op(value)
            .filter(|op| graph.kind(*op) == "prim::Constant" && !graph.ty(value).is_tensor());
        let head = match constant {
            Some(op) => egraph.analysis.heads.constant(graph.ty(value), graph.attr(op, "value")),
            None => egraph.analysis.heads.leaf(graph, value),
        };
        let id = egraph.add(Node { head, children: SmallVec::new() });
        self.note(value, id);
        id
    }
}

/// The value that a leaf stands for.
pub(super) fn leaf_value(egraph: &EGraph<Node, Knowledge>, node: &Node) -> Option<ValueId> {
    match egraph.analysis.heads.get(node.head) {
        Head::Leaf(value, _) => Some(*value),
        _ => None,
    }
}
