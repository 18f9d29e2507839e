//! Extraction: the cheapest form of each class, and writing it back.
//!
//! The cost of a class is the number of ops of its cheapest tree; constants and values at hand cost nothing. An op
//! is replaced only if its class has a form that costs less than the op itself, so that the result never costs
//! more than the input and what no rule changed stays as it stood.

use super::language::{Head, Knowledge, Node};
use super::region::{Classes, Region, leaf_value};
use crate::ir::{Graph, OpId, Type, ValueId};
use egg::{EGraph, Id, Language};
use hashbrown::HashMap;

type Costs = HashMap<Id, (u64, Node)>;

/// Replaces ops by cheaper forms; gives how many were replaced.
pub(super) fn write_back(
    graph: &mut Graph,
    region: &Region,
    classes: &Classes,
    egraph: &EGraph<Node, Knowledge>,
) -> usize {
    let costs = cheapest(egraph);
    let mut replaced = 0;
    for (op, row) in &region.ops {
        let Some(value) = graph.result(*op, 0) else { continue };
        let Some(id) = classes.of.get(&value).map(|id| egraph.find(*id)) else { continue };
        let Some((cost, best)) = costs.get(&id) else { continue };
        let own = own_cost(graph, *op, classes, egraph, &costs);
        if *cost >= own || is_own(egraph, best, row) && *cost == own {
            continue;
        }
        let mut made = HashMap::new();
        let writer = Writer { egraph, classes, costs: &costs, anchor: *op };
        if let Some(new) = writer.value(graph, id, &mut made)
            && new != value
        {
            graph.replace_all_uses(value, new);
            replaced += 1;
        }
    }
    // From the last to the first, so that what only replaced ops used goes too.
    for (op, _) in region.ops.iter().rev() {
        if graph.results(*op).iter().all(|v| !graph.has_uses(*v)) {
            graph.erase(*op);
        }
    }
    replaced
}

fn is_own(egraph: &EGraph<Node, Knowledge>, node: &Node, row: &crate::dialects::Op) -> bool {
    matches!(egraph.analysis.heads.get(node.head), Head::Op(op) if op.same(row))
}

/// What the op costs as it stands: itself and the cheapest forms of its operands.
fn own_cost(
    graph: &Graph,
    op: OpId,
    classes: &Classes,
    egraph: &EGraph<Node, Knowledge>,
    costs: &Costs,
) -> u64 {
    let operand = |v: &ValueId| {
        let id = classes.of.get(v).map(|id| egraph.find(*id));
        id.and_then(|id| costs.get(&id)).map_or(0, |(cost, _)| *cost)
    };
    graph.operands(op).iter().map(operand).fold(1, u64::saturating_add)
}

/// The cheapest node of each class, by a worklist: a class is looked at again only when a child became cheaper.
fn cheapest(egraph: &EGraph<Node, Knowledge>) -> Costs {
    let mut costs: Costs = HashMap::new();
    let mut parents: HashMap<Id, Vec<Id>> = HashMap::new();
    let mut ids: Vec<Id> = egraph.classes().map(|class| class.id).collect();
    ids.sort();
    for id in &ids {
        for node in &egraph[*id].nodes {
            for child in node.children() {
                parents.entry(egraph.find(*child)).or_default().push(*id);
            }
        }
    }
    let mut work: std::collections::VecDeque<Id> = ids.into();
    while let Some(id) = work.pop_front() {
        let mut best: Option<(u64, &Node)> = None;
        for node in &egraph[id].nodes {
            let Some(cost) = node_cost(egraph, node, &costs) else { continue };
            if best.is_none_or(|(least, other)| (cost, node) < (least, other)) {
                best = Some((cost, node));
            }
        }
        let Some((cost, node)) = best else { continue };
        if costs.get(&id).is_none_or(|(known, _)| cost < *known) {
            costs.insert(id, (cost, node.clone()));
            work.extend(parents.get(&id).into_iter().flatten().copied());
        }
    }
    costs
}

fn node_cost(egraph: &EGraph<Node, Knowledge>, node: &Node, costs: &Costs) -> Option<u64> {
    let own = match egraph.analysis.heads.get(node.head) {
        Head::Op(_) => 1,
        Head::Constant(..) | Head::Leaf(..) => 0,
    };
    node.children().iter().try_fold(own, |sum: u64, child| {
        costs.get(&egraph.find(*child)).map(|(cost, _)| sum.saturating_add(*cost))
    })
}

/// Writes forms before an op.
struct Writer<'a> {
    egraph: &'a EGraph<Node, Knowledge>,
    classes: &'a Classes,
    costs: &'a Costs,
    anchor: OpId,
}

impl Writer<'_> {
    /// The value of a class at the anchor: one at hand, or its cheapest form. Trees are as deep as their cost,
    /// which strictly falls towards the leaves; a bound keeps recursion short.
    fn value(&self, graph: &mut Graph, id: Id, made: &mut HashMap<Id, ValueId>) -> Option<ValueId> {
        let id = self.egraph.find(id);
        if let Some(value) = made.get(&id) {
            return Some(*value);
        }
        let (cost, node) = self.costs.get(&id)?;
        if *cost > 200 {
            return self.at_hand(graph, id);
        }
        let value = match self.egraph.analysis.heads.get(node.head) {
            Head::Leaf(..) => leaf_value(self.egraph, node)?,
            Head::Constant(ty, attr) => match self.at_hand(graph, id) {
                Some(value) => value,
                None => {
                    let op =
                        graph.create(crate::ir::Symbol::new("prim::Constant"), &[], std::slice::from_ref(ty));
                    if let Some(attr) = attr {
                        graph.set_attr(op, "value", attr.clone());
                    }
                    graph.insert_before(op, self.anchor);
                    graph.result(op, 0)?
                }
            },
            Head::Op(row) => match self.at_hand(graph, id) {
                Some(value) => value,
                None => {
                    let mut operands = Vec::with_capacity(node.children().len());
                    for child in node.children() {
                        operands.push(self.value(graph, *child, made)?);
                    }
                    let ty: Type = self.egraph[id].data.ty.clone();
                    let op = graph.create(row.name(), &operands, &[ty]);
                    let location = graph.location_id(self.anchor);
                    graph.set_location_id(op, location);
                    graph.insert_before(op, self.anchor);
                    graph.result(op, 0)?
                }
            },
        };
        made.insert(id, value);
        Some(value)
    }

    /// A value of the class that is visible at the anchor and is not the anchor's own.
    fn at_hand(&self, graph: &Graph, id: Id) -> Option<ValueId> {
        let own = graph.result(self.anchor, 0);
        self.classes.order.iter().copied().find(|v| {
            Some(*v) != own && self.egraph.find(self.classes.of[v]) == id && graph.is_visible(*v, self.anchor)
        })
    }
}
