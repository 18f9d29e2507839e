//! Why a value equals the form that it took: the shortest way of firings through its class, with the firings that
//! made the inner terms of a left side match before it. Nodes that are equal but for their operands are one node
//! here, as the e-graph has them.

use crate::ir::{Graph, OpId, ValueId};
use crate::rewrite::egraph::enter::Loaded;
use crate::rewrite::egraph::language::{Head, Node};
use crate::rewrite::egraph::saturate::Saturation;
use crate::rewrite::egraph::trace::{Recorded, Trace, Witness};
use hashbrown::{HashMap, HashSet};
use std::collections::VecDeque;

/// Left sides in left sides are followed so deep.
const MAX_DEPTH: usize = 16;

/// Ways through classes.
pub(in crate::rewrite) struct Proofs<'a> {
    loaded: &'a Loaded,
    trace: &'a Trace,
    /// From a node to its equals, and the firing that says so; none where no rule was needed.
    edges: HashMap<Node, Vec<(Node, Option<usize>)>>,
    own: HashMap<OpId, Node>,
    leaves: HashMap<ValueId, Node>,
}

impl<'a> Proofs<'a> {
    /// Of a run that recorded.
    pub(in crate::rewrite) fn new(
        run: &'a Saturation<'_>,
        trace: &'a Trace,
        own: &HashMap<OpId, Node>,
    ) -> Proofs<'a> {
        let loaded = &run.loaded;
        let mut edges: HashMap<Node, Vec<(Node, Option<usize>)>> = HashMap::new();
        let given = trace.given.iter().map(|(a, b)| (a, b, None));
        let fired = trace.firings.iter().enumerate().map(|(n, f)| (&f.left.node, &f.right, Some(n)));
        for (a, b, firing) in given.chain(fired) {
            let (a, b) = (loaded.canonical(a), loaded.canonical(b));
            edges.entry(a.clone()).or_default().push((b.clone(), firing));
            edges.entry(b).or_default().push((a, firing));
        }
        let leaves = loaded.leaves().collect();
        Proofs { loaded, trace, edges, own: own.clone(), leaves }
    }

    /// The firings that lead from a value to another one, in an order in which they can be repeated.
    pub(in crate::rewrite) fn to_value(&self, graph: &Graph, from: ValueId, to: ValueId) -> Vec<usize> {
        self.node_of(graph, to).map_or_else(Vec::new, |node| self.to_node(graph, from, &node))
    }

    /// The firings that lead from a value to a node.
    pub(in crate::rewrite) fn to_node(&self, graph: &Graph, from: ValueId, to: &Node) -> Vec<usize> {
        let mut chain = Vec::new();
        self.follow(graph, from, &self.loaded.canonical(to), &mut chain, 0);
        chain
    }

    /// The node that a value is in the program.
    fn node_of(&self, graph: &Graph, value: ValueId) -> Option<Node> {
        let class = self.loaded.egraph.find(*self.loaded.class_of.get(&value)?);
        let Some(op) = graph.def_op(value) else { return self.leaves.get(&value).cloned() };
        let which = graph.results(op).iter().position(|v| *v == value)?;
        let nodes = &self.loaded.egraph[class].nodes;
        let is_own = |node: &&Node| match self.loaded.head(node) {
            Head::Op(head) => head.pin == Some((op, which)),
            Head::Result(n) => {
                *n == which
                    && self.own.get(&op).and_then(|o| self.loaded.egraph.lookup(o.clone()))
                        == Some(node.children[0])
            }
            Head::Constant(..) => graph.kind(op) == "prim::Constant",
            Head::Leaf(_) => false,
        };
        let own = self.own.get(&op).filter(|node| nodes.contains(node));
        own.or_else(|| nodes.iter().find(is_own)).or_else(|| self.leaves.get(&value)).cloned()
    }

    fn follow(&self, graph: &Graph, from: ValueId, to: &Node, chain: &mut Vec<usize>, depth: usize) {
        let Some(start) = self.node_of(graph, from).filter(|_| depth < MAX_DEPTH) else { return };
        for (n, at_start) in self.way(graph, from, &start, to) {
            let recorded = &self.trace.firings[n];
            if chain.contains(&n) {
                continue;
            }
            let value = at_start.then_some(from);
            self.inner(graph, value, &recorded.left, chain, depth + 1);
            self.agree(graph, value, recorded, chain, depth + 1);
            if !chain.contains(&n) {
                chain.push(n);
            }
        }
    }

    /// What made the inner terms of a left side match.
    fn inner(
        &self,
        graph: &Graph,
        value: Option<ValueId>,
        left: &Witness,
        chain: &mut Vec<usize>,
        depth: usize,
    ) {
        for (at, part) in &left.parts {
            let child = self.child(graph, value, &left.node, *at);
            if let Some(child) = child {
                self.follow(graph, child, &self.loaded.canonical(&part.node), chain, depth);
            }
            self.inner(graph, child, part, chain, depth);
        }
    }

    /// What made the places of one variable equal.
    fn agree(
        &self,
        graph: &Graph,
        value: Option<ValueId>,
        recorded: &Recorded,
        chain: &mut Vec<usize>,
        depth: usize,
    ) {
        let mut places = Vec::new();
        self.places(graph, value, &recorded.left, &mut places);
        let mut first: HashMap<&str, ValueId> = HashMap::new();
        for (name, place) in places {
            match first.get(name) {
                None => {
                    first.insert(name, place);
                }
                Some(known) => {
                    if let Some(node) = self.node_of(graph, *known).filter(|_| *known != place) {
                        self.follow(graph, place, &node, chain, depth);
                    }
                }
            }
        }
    }

    fn places<'w>(
        &self,
        graph: &Graph,
        value: Option<ValueId>,
        left: &'w Witness,
        found: &mut Vec<(&'w str, ValueId)>,
    ) {
        for (name, at) in &left.variables {
            found.extend(self.child(graph, value, &left.node, *at).map(|v| (&**name, v)));
        }
        for (at, part) in &left.parts {
            self.places(graph, self.child(graph, value, &left.node, *at), part, found);
        }
    }

    /// The value at an operand of a node: that of the op where it is one of the program, else the first of its class.
    fn child(&self, graph: &Graph, value: Option<ValueId>, node: &Node, at: usize) -> Option<ValueId> {
        let class = self.loaded.egraph.find(*node.children.get(at)?);
        let values = &self.loaded.egraph[class].data.values;
        let op = value.and_then(|v| graph.def_op(v));
        let operand = op.and_then(|op| match graph.nested_blocks(op) {
            [] => graph.operand(op, at),
            blocks => match at.checked_sub(1) {
                None => graph.operand(op, 0),
                Some(n) => {
                    let which = graph.results(op).iter().position(|v| Some(*v) == value)?;
                    graph.block_results(*blocks.get(n)?).get(which).copied()
                }
            },
        });
        operand.filter(|v| values.contains(v)).or_else(|| values.first().copied())
    }

    /// The shortest way between two nodes, as firings; each with whether it starts at the value's own node.
    fn way(&self, graph: &Graph, from: ValueId, start: &Node, to: &Node) -> Vec<(usize, bool)> {
        let mut came: HashMap<Node, (Node, Option<usize>)> = HashMap::new();
        let mut seen: HashSet<Node> = HashSet::from([start.clone()]);
        let mut work = VecDeque::from([start.clone()]);
        while let Some(node) = work.pop_front() {
            if node == *to {
                break;
            }
            for (next, firing) in self.edges.get(&node).into_iter().flatten() {
                let kept = firing.filter(|_| node == *start).and_then(|n| self.kept(graph, from, start, n));
                // An operand that rules made is not a value of the program but the one that is asked about.
                let kept = kept.filter(|kept| kept != start);
                let next = kept.unwrap_or_else(|| next.clone());
                if seen.insert(next.clone()) {
                    came.insert(next.clone(), (node.clone(), *firing));
                    work.push_back(next);
                }
            }
        }
        let mut way = Vec::new();
        let mut at = to;
        while let Some((before, firing)) = came.get(at) {
            way.extend(firing.map(|n| (n, before == start)));
            at = before;
        }
        way.reverse();
        way
    }

    /// The node of the operand that a firing gives on.
    fn kept(&self, graph: &Graph, from: ValueId, start: &Node, firing: usize) -> Option<Node> {
        let recorded = &self.trace.firings[firing];
        if self.loaded.canonical(&recorded.left.node) != *start {
            return None;
        }
        let mut witness = &recorded.left;
        let (last, before) = recorded.kept.as_ref()?.split_last()?;
        let mut value = Some(from);
        for at in before {
            value = self.child(graph, value, &witness.node, *at);
            witness = witness.parts.iter().find(|(n, _)| n == at).map(|(_, part)| part)?;
        }
        self.node_of(graph, self.child(graph, value, &witness.node, *last)?)
    }
}
