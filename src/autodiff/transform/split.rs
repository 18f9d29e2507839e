//! Splits a graph that computes outputs and gradients into a forward and a backward graph. What the backward needs of the
//! forward is kept or computed again: a minimal cut says which, so that as few bytes as possible are kept. Classes of ops come
//! from rows: what costs no more than reading its operands is computed again, products, reductions and the like never are.
//!
//! Source: Chen et al., "Training Deep Nets with Sublinear Memory Cost", and the min-cut partition of AOTAutograd.

use super::graphs::Split;
use crate::analysis::{NestedFacts, facts};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Effects, Family, Registry, resolve};
use crate::ir::{Dim, Graph, OpId, Type, TypeKind, ValueId};
use crate::tensor::DType;
use hashbrown::{HashMap, HashSet};
use petgraph::Direction;
use petgraph::algo::dinics;
use petgraph::graph::{DiGraph, NodeIndex};
use petgraph::visit::EdgeRef;

/// What must not be cut: more than all memory.
const NEVER: u64 = 1 << 52;
/// The weight of keeping what is alive anyway: more than nothing, so that fewer are kept where bytes are equal.
const ALIVE: u64 = 1;
/// Bytes of a tensor of unknown sizes, and of what is not a tensor.
const UNKNOWN_BYTES: u64 = 1 << 20;
const NUMBER_BYTES: u64 = 16;
/// What an open size counts as.
const OPEN_SIZE: u64 = 64;

/// Splits `joint`, whose inputs are those of the forward and then gradients, and whose outputs are `outputs` of the forward and
/// then gradients. What is kept takes at most `max_kept` bytes, as far as types determine it and the inputs suffice to recompute
/// the rest.
pub(super) fn split(
    joint: &Graph,
    (inputs, outputs): (usize, usize),
    max_kept: Option<u64>,
    registry: &Registry,
) -> Result<Split> {
    // What is written to depends on more than its operands.
    if joint.all_ops().into_iter().any(|op| facts(registry, joint, op).writes) {
        return Err(Diagnostic::unsupported("a derivative writes to a list"));
    }
    let mut parts = Parts::of(joint, inputs, registry)?;
    let mut kept = parts.cut(joint, inputs, outputs)?;
    if let Some(limit) = max_kept.filter(|limit| bytes_of_all(joint, &kept) > *limit) {
        kept = parts.cut_within(joint, (inputs, outputs), limit, registry)?;
    }
    let all = joint.outputs().to_vec();
    let (front, gradients) = all.split_at(outputs.min(all.len()));
    let mut forward = joint.clone();
    let root = forward.root();
    let given: Vec<ValueId> = front.iter().chain(&kept).copied().collect();
    forward.set_block_results(root, &given);
    for op in forward.block_ops(root).collect::<Vec<_>>().into_iter().rev() {
        if used(&forward, op).iter().any(|value| parts.late.contains(value)) {
            forward.erase(op);
        }
    }
    let mut backward = joint.clone();
    backward.set_block_results(root, gradients);
    for (n, value) in kept.iter().enumerate() {
        let ty = backward.ty(*value).clone();
        let input = backward.insert_param(root, inputs + n, ty);
        backward.replace_all_uses(*value, input);
    }
    let kept_bytes = bytes_of_all(joint, &kept);
    Ok(Split { forward, backward, kept: kept.len(), kept_bytes, ..Split::default() })
}

/// Erases loops and branches of which the backward uses nothing: they completed in the forward, so that nothing misses
/// them. Dead code elimination leaves loops whose conditions are computed, as they might have none, and branches that raise. What
/// has other effects is not differentiated. Says whether there were any.
pub(super) fn drop_finished(backward: &mut Graph, registry: &Registry) -> bool {
    let mut changed = false;
    let mut facts = NestedFacts::new(registry);
    for op in backward.all_ops().into_iter().rev() {
        let is_used = backward.results(op).iter().any(|result| backward.has_uses(*result));
        if is_used || backward.nested_blocks(op).is_empty() {
            continue;
        }
        if !facts.get(backward, op).writes {
            backward.erase(op);
            changed = true;
        }
    }
    changed
}

/// Which ops belong to which part.
struct Parts {
    /// Ops of the forward, in order.
    forward: Vec<OpId>,
    /// Values that depend on a gradient.
    late: HashSet<ValueId>,
    /// Ops whose results are computed again rather than kept.
    cheap: HashSet<OpId>,
}

impl Parts {
    fn of(joint: &Graph, inputs: usize, registry: &Registry) -> Result<Parts> {
        let mut late: HashSet<ValueId> = joint.inputs().iter().skip(inputs).copied().collect();
        let (mut forward, mut cheap) = (Vec::new(), HashSet::new());
        for op in joint.block_ops(joint.root()) {
            if used(joint, op).iter().any(|operand| late.contains(operand)) {
                late.extend(joint.results(op));
                continue;
            }
            forward.push(op);
            if is_cheap(joint, op, registry)? {
                cheap.insert(op);
            }
        }
        Ok(Parts { forward, late, cheap })
    }

    /// The values to keep, in the order of the graph.
    fn cut(&self, joint: &Graph, inputs: usize, outputs: usize) -> Result<Vec<ValueId>> {
        let mut net = Net::default();
        for input in joint.inputs().iter().take(inputs) {
            let entry = net.value(joint, *input, ALIVE);
            net.edge(net.source, entry, NEVER);
        }
        for op in &self.forward {
            for result in joint.results(*op) {
                let entry = net.value(joint, result, weight(joint, result));
                // What is made of nothing is made again.
                if !self.cheap.contains(op) {
                    net.edge(net.source, entry, NEVER);
                    continue;
                }
                for operand in used(joint, *op) {
                    if let Some((_, exit)) = net.nodes.get(&operand).copied() {
                        net.edge(exit, entry, NEVER);
                    }
                }
            }
        }
        for value in self.needed(joint, outputs) {
            if let Some((_, exit)) = net.nodes.get(&value).copied() {
                net.edge(exit, net.sink, NEVER);
            }
        }
        let cut = net.cut()?;
        let order = joint.inputs().iter().copied().take(inputs);
        let inner = self.forward.iter().flat_map(|op| joint.results(*op));
        // Inputs are handed to the backward in any case.
        let inputs: HashSet<ValueId> = order.collect();
        Ok(inner.filter(|value| cut.contains(value) && !inputs.contains(value)).collect())
    }

    /// The same with a limit on the saved bytes: of the ops whose results are otherwise saved, those that cost least for each
    /// byte of a result are computed again, as few of them as are enough.
    fn cut_within(
        &mut self,
        joint: &Graph,
        (inputs, outputs): (usize, usize),
        limit: u64,
        registry: &Registry,
    ) -> Result<Vec<ValueId>> {
        let may_run_again = |op: &OpId| {
            let facts = facts(registry, joint, *op);
            !facts.effects.intersects(Effects::RANDOM | Effects::WRITES_WORLD)
        };
        let others =
            self.forward.iter().filter(|op| !self.cheap.contains(*op)).filter(|op| may_run_again(op));
        let mut others: Vec<OpId> = others.copied().collect();
        others.sort_by_cached_key(|op| work_a_byte(joint, *op));
        let own = self.cheap.clone();
        // The more may be computed again, the less is kept: the fewest ops by bisection.
        let (mut enough, mut least) = (others.len(), 0);
        while least < enough {
            let middle = least + (enough - least) / 2;
            self.cheap = own.iter().chain(&others[..middle]).copied().collect();
            match bytes_of_all(joint, &self.cut(joint, inputs, outputs)?) <= limit {
                true => enough = middle,
                false => least = middle + 1,
            }
        }
        self.cheap = own.iter().chain(&others[..enough]).copied().collect();
        self.cut(joint, inputs, outputs)
    }

    /// Values of the forward that the backward uses.
    fn needed(&self, joint: &Graph, outputs: usize) -> Vec<ValueId> {
        let mut found = Vec::new();
        let mut seen = HashSet::new();
        for op in joint.block_ops(joint.root()) {
            let operands = used(joint, op);
            if joint.results(op).iter().chain(&operands).any(|value| self.late.contains(value)) {
                found.extend(operands);
            }
        }
        found.extend(joint.outputs().iter().skip(outputs).copied());
        found.retain(|value| !self.late.contains(value) && seen.insert(*value));
        found
    }
}

/// The operands of an op, and what its blocks use of the values around it.
fn used(graph: &Graph, op: OpId) -> Vec<ValueId> {
    let mut used = graph.operands(op).to_vec();
    let mut blocks = graph.nested_blocks(op).to_vec();
    while let Some(block) = blocks.pop() {
        for op in graph.block_ops(block).chain([graph.terminator(block)]) {
            used.extend(graph.operands(op));
            blocks.extend(graph.nested_blocks(op));
        }
    }
    used
}

/// The network whose cut says what is kept: an edge for each value, as wide as its bytes.
struct Net {
    graph: DiGraph<(), u64>,
    source: NodeIndex,
    sink: NodeIndex,
    nodes: HashMap<ValueId, (NodeIndex, NodeIndex)>,
}

impl Default for Net {
    fn default() -> Net {
        let mut graph = DiGraph::new();
        let (source, sink) = (graph.add_node(()), graph.add_node(()));
        Net { graph, source, sink, nodes: HashMap::new() }
    }
}

impl Net {
    fn value(&mut self, joint: &Graph, value: ValueId, weight: u64) -> NodeIndex {
        let (entry, exit) = (self.graph.add_node(()), self.graph.add_node(()));
        // A list is made again of what it holds, but for one that a loop fills.
        let is_filled = joint.def_op(value).is_some_and(|op| !joint.nested_blocks(op).is_empty());
        let weight = match holds_tensors(joint.ty(value)) {
            true if is_filled => UNKNOWN_BYTES,
            true => NEVER,
            false => weight,
        };
        self.graph.add_edge(entry, exit, weight);
        self.nodes.insert(value, (entry, exit));
        entry
    }

    fn edge(&mut self, from: NodeIndex, to: NodeIndex, width: u64) {
        self.graph.add_edge(from, to, width);
    }

    /// Values on the border. Fails where something that must not be kept would have to be.
    fn cut(&self) -> Result<HashSet<ValueId>> {
        let (flow, flows) = dinics(&self.graph, self.source, self.sink);
        if flow >= NEVER {
            return Err(Diagnostic::unsupported("a list would have to be kept for the backward"));
        }
        // Nodes from which more could flow to the sink. The border nearest to it leaves least to be computed again.
        let mut open = vec![false; self.graph.node_count()];
        let mut work = vec![self.sink];
        while let Some(node) = work.pop() {
            if std::mem::replace(&mut open[node.index()], true) {
                continue;
            }
            let before = self.graph.edges_directed(node, Direction::Incoming);
            work.extend(before.filter(|e| flows[e.id().index()] < *e.weight()).map(|e| e.source()));
            let behind = self.graph.edges_directed(node, Direction::Outgoing);
            work.extend(behind.filter(|e| flows[e.id().index()] > 0).map(|e| e.target()));
        }
        let on_border = |(_, (entry, exit)): &(&ValueId, &(NodeIndex, NodeIndex))| {
            !open[entry.index()] && open[exit.index()]
        };
        Ok(self.nodes.iter().filter(on_border).map(|(value, _)| *value).collect())
    }
}

/// Whether the results of an op are computed again where the backward needs them.
fn is_cheap(graph: &Graph, op: OpId, registry: &Registry) -> Result<bool> {
    if graph.operands(op).is_empty() && graph.kind(op) == "prim::Constant" {
        return Ok(true);
    }
    if !graph.nested_blocks(op).is_empty() {
        return Ok(false);
    }
    let row = resolve(registry, graph, op)?;
    let def = row.def();
    if def.effects.contains(Effects::RANDOM) {
        return Ok(false);
    }
    Ok(def.scalar.is_some()
        || matches!(
            def.family,
            Family::Elementwise | Family::View | Family::Create | Family::Host | Family::Container
        ))
}

/// How much is to be done for each byte of an op's results, as an order: the elements that it reads, for products times the length
/// of what is summed over; a loop counts as a product of all that it reads.
fn work_a_byte(graph: &Graph, op: OpId) -> u64 {
    let numel = |value: &ValueId| bytes_of(graph.ty(*value)) / 4;
    let read: u64 = used(graph, op).iter().map(numel).sum();
    let given: u64 = graph.results(op).iter().map(|value| bytes_of(graph.ty(*value))).sum();
    let sizes = graph.operand(op, 0).and_then(|value| graph.ty(value).as_tensor()?.sizes.as_ref());
    let length =
        sizes.and_then(|sizes| sizes.last()?.known()).and_then(|n| u64::try_from(n).ok()).unwrap_or(1);
    let is_product = graph.operands(op).iter().filter(|v| graph.ty(**v).is_tensor()).count() > 1;
    let work = if is_product { given.saturating_mul(length) } else { read };
    work.saturating_mul(16) / given.max(1)
}

/// The bytes of what is kept; of lists, whose lengths loops decide, a guess.
fn bytes_of_all(graph: &Graph, values: &[ValueId]) -> u64 {
    let bytes = |ty: &Type| if holds_tensors(ty) { UNKNOWN_BYTES } else { bytes_of(ty) };
    values.iter().map(|value| bytes(graph.ty(*value))).sum()
}

/// Whether a type is of lists with tensors in them.
fn holds_tensors(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::List(item) => item.is_tensor() || holds_tensors(item),
        _ => false,
    }
}

fn weight(graph: &Graph, value: ValueId) -> u64 {
    if graph.ty(value).is_tensor() { bytes_of(graph.ty(value)).max(ALIVE) } else { NUMBER_BYTES }
}

/// The bytes of the elements of a tensor of a type, as far as it is known; a guess where sizes are unknown. 0: no tensor.
pub fn bytes_of(ty: &Type) -> u64 {
    let Some(tensor) = ty.as_tensor() else { return 0 };
    let Some(sizes) = &tensor.sizes else { return UNKNOWN_BYTES };
    let known = |dim: &Dim| match dim {
        Dim::Known(n) => u64::try_from(*n).ok(),
        Dim::Open(_) => Some(OPEN_SIZE),
        Dim::Symbol(_) | Dim::Unknown => None,
    };
    let numel = sizes.iter().map(known).try_fold(1u64, |all, n| n.map(|n| all.saturating_mul(n)));
    let size = tensor.dtype.map_or(4, DType::size) as u64;
    numel.map_or(UNKNOWN_BYTES, |n| n.saturating_mul(size)).min(NEVER / 4096)
}
