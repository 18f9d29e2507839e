//! Differentiable groups, as TorchScript's executors make them: ops that they have formulas for become `prim::DifferentiableGraph`
//! ops, as large as the order of effects allows.
//!
//! Each block is cut at ops that act on the world. Within a stretch ops are examined from the last to the first: a consumer takes
//! in the producers of its operands that can be moved before it, until nothing changes. Plain views are not among
//! them, since they would be outputs that share memory with others; outputs that alias inputs or each other leave their group again; groups of fewer
//! ops than the threshold are dissolved. The order of all of it, and so the text, is PyTorch's.
//!
//! The executor here does not need the groups: the pass shows what TorchScript's would do.

use super::subgraphs::{self, Body};
use super::{Context, cse, dce};
use crate::analysis::{AliasDb, Side, facts};
use crate::diag::Result;
use crate::dialects::prim::profiling::PROFILE;
use crate::dialects::{Effects, fusion, has_torchscript_gradient};
use crate::ir::{Attr, BlockId, Graph, Module, OpId, ValueId};
use hashbrown::HashMap;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let threshold = usize::try_from(context.int("threshold")?).unwrap_or(usize::MAX);
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    let mut slicer = Slicer { context, threshold, db, bodies: HashMap::new(), changed: false };
    let root = graph.root();
    slicer.build(graph, root);
    slicer.release_aliased(graph, root);
    slicer.clean(graph, root)?;
    for (group, body) in slicer.bodies.drain() {
        subgraphs::close(graph, group, body);
    }
    let changed = slicer.changed;
    if changed {
        context.changed();
    }
    // Dissolved groups leave what occurs twice; as in PyTorch the whole graph is examined in any case.
    Ok(cse::run(graph, context)? || changed)
}

struct Slicer<'a> {
    context: &'a Context<'a>,
    /// Ops that a group must have.
    threshold: usize,
    db: AliasDb,
    bodies: HashMap<OpId, Body>,
    changed: bool,
}

impl Slicer<'_> {
    /// Makes groups in a block and in those nested in it, outer ones first.
    fn build(&mut self, graph: &mut Graph, block: BlockId) {
        let mut blocks = vec![block];
        while let Some(block) = blocks.pop() {
            for (begin, end) in self.stretches(graph, block) {
                while self.sweep(graph, block, begin, end) {}
            }
            let nested = graph.block_ops(block).flat_map(|op| graph.nested_blocks(op).to_vec());
            blocks.extend(nested.collect::<Vec<_>>().into_iter().rev());
        }
    }

    /// Parts of a block between ops that nothing moves past, the last first, where there are enough ops to differentiate:
    /// the ops before and after them.
    fn stretches(&self, graph: &Graph, block: BlockId) -> Vec<(Option<OpId>, Option<OpId>)> {
        let (mut out, mut count, mut end) = (Vec::new(), 0, None);
        for op in subgraphs::backwards(graph, block) {
            count += usize::from(self.is_wanted(graph, op));
            let stops = Effects::WRITES_WORLD | Effects::NEVER_RETURNS;
            if facts(self.context.registry, graph, op).effects.intersects(stops) {
                if count >= self.threshold {
                    out.push((Some(op), end));
                }
                (count, end) = (0, Some(op));
            }
        }
        if count >= self.threshold {
            out.push((None, end));
        }
        out
    }

    /// One pass over a stretch, from its end. Whether a group grew: what was moved past the place at hand is seen by the next.
    fn sweep(&mut self, graph: &mut Graph, block: BlockId, begin: Option<OpId>, end: Option<OpId>) -> bool {
        let mut changed = false;
        let mut at = end.map_or_else(|| graph.last_op(block), |end| graph.prev(end));
        while let Some(op) = at.filter(|op| Some(*op) != begin) {
            at = match self.scan(graph, op) {
                Scan::Grown(group) => {
                    changed = true;
                    Some(group)
                }
                Scan::Done(op) => graph.prev(op),
            };
        }
        changed
    }

    fn scan(&mut self, graph: &mut Graph, op: OpId) -> Scan {
        if !self.is_wanted(graph, op) {
            return Scan::Done(op);
        }
        let mut group = op;
        if !self.bodies.contains_key(&op) {
            if !self.context.step(|| format!("{} may be in a differentiable group", graph.op_line(op))) {
                return Scan::Done(op);
            }
            self.changed = true;
            group = subgraphs::group_before(graph, fusion::DIFFERENTIABLE, op);
            let mut body = Body::default();
            subgraphs::skip_numbers(graph, op);
            subgraphs::merge(graph, group, &mut body, op, &mut self.db);
            self.bodies.insert(group, body);
        }
        for producer in producers(graph, group) {
            if self.join(graph, group, producer) {
                return Scan::Grown(group);
            }
        }
        Scan::Done(group)
    }

    /// Takes a producer into a group, if it can be moved there.
    fn join(&mut self, graph: &mut Graph, group: OpId, producer: OpId) -> bool {
        let registry = self.context.registry;
        if !self.is_wanted(graph, producer)
            || (!self.bodies.contains_key(&producer)
                && !self.context.step(|| format!("{} joins a differentiable group", graph.op_line(producer))))
            || !self.db.move_if_valid(graph, registry, producer, Side::Before, group)
        {
            return false;
        }
        let Some(mut body) = self.bodies.remove(&group) else { return false };
        subgraphs::skip_numbers(graph, producer);
        let ops = match self.bodies.remove(&producer) {
            Some(other) => subgraphs::dissolve(graph, producer, &other, Some(&mut self.db)),
            None => vec![producer],
        };
        for op in ops.into_iter().rev() {
            subgraphs::merge(graph, group, &mut body, op, &mut self.db);
        }
        self.bodies.insert(group, body);
        self.changed = true;
        true
    }

    fn is_wanted(&self, graph: &Graph, op: OpId) -> bool {
        self.bodies.contains_key(&op)
            || graph.kind(op) == *fusion::CHUNK
            || is_profile(graph, op)
            || has_torchscript_gradient(self.context.registry, graph, op)
    }

    /// Lets ops leave their groups whose outputs share memory with an input or with another output.
    fn release_aliased(&mut self, graph: &mut Graph, block: BlockId) {
        let mut blocks = vec![block];
        while let Some(block) = blocks.pop() {
            let mut again = true;
            while std::mem::take(&mut again) {
                for group in subgraphs::backwards(graph, block) {
                    let Some(body) = self.bodies.get_mut(&group) else { continue };
                    for kind in 0..2 {
                        let leaving = subgraphs::aliased(self.context.registry, &body.graph);
                        for op in leaving[kind].iter().rev() {
                            subgraphs::release(graph, group, &mut body.graph, *op);
                            again = true;
                        }
                    }
                }
            }
            blocks.extend(graph.block_ops(block).flat_map(|op| graph.nested_blocks(op).to_vec()));
        }
    }

    /// Removes what occurs twice in groups, and dissolves small ones.
    fn clean(&mut self, graph: &mut Graph, block: BlockId) -> Result<()> {
        let module = Module::default();
        let mut blocks = vec![block];
        while let Some(block) = blocks.pop() {
            for group in subgraphs::backwards(graph, block) {
                let Some(mut body) = self.bodies.remove(&group) else { continue };
                cse::run(&mut body.graph, &Context::new(self.context.registry, &module))?;
                let inner = &body.graph;
                let counts = |op: &OpId| inner.kind(*op) != "prim::Constant" && !is_profile(inner, *op);
                let count = inner.block_ops(inner.root()).filter(counts);
                if count.take(self.threshold).count() < self.threshold {
                    subgraphs::dissolve(graph, group, &body, None);
                } else {
                    self.bodies.insert(group, body);
                }
            }
            blocks.extend(graph.block_ops(block).flat_map(|op| graph.nested_blocks(op).to_vec()));
        }
        Ok(())
    }
}

/// Whether an op profiles a tensor: it goes with what it stands between, and counts for nothing.
fn is_profile(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == *PROFILE && graph.result_count(op) == 1
}

/// What became of an op.
enum Scan {
    /// A group that took in a producer, and may take in more.
    Grown(OpId),
    /// There is no more to do at it.
    Done(OpId),
}

/// The ops of a group's own block that give its operands, the last first.
fn producers(graph: &Graph, group: OpId) -> Vec<OpId> {
    let own = |value: &ValueId| graph.def_op(*value).filter(|def| graph.parent(*def) == graph.parent(group));
    let mut ops: Vec<OpId> = graph.operands(group).iter().filter_map(own).collect();
    ops.sort_by(|a, b| match (graph.is_before(*b, *a), graph.is_before(*a, *b)) {
        (true, _) => std::cmp::Ordering::Less,
        (_, true) => std::cmp::Ordering::Greater,
        _ => std::cmp::Ordering::Equal,
    });
    ops.dedup();
    ops
}

/// Puts the ops of differentiable groups in their place again: those of fewer ops than `threshold`.
pub(super) fn inline(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let threshold = usize::try_from(context.int("threshold")?).unwrap_or(usize::MAX);
    let mut changed = false;
    for op in graph.all_ops().into_iter().rev().filter(|op| graph.is_live(*op)).collect::<Vec<_>>() {
        if graph.kind(op) != *fusion::DIFFERENTIABLE {
            continue;
        }
        let Some(inner) = graph.attr(op, "Subgraph").and_then(Attr::as_graph).cloned() else { continue };
        // All of them, as PyTorch counts here: constants too.
        let small = inner.block_ops(inner.root()).take(threshold).count() < threshold;
        if small && context.step(|| format!("dissolves {}", graph.op_line(op))) {
            subgraphs::dissolve(graph, op, &Body::of((*inner).clone()), None);
            changed = true;
        }
    }
    if changed {
        context.changed();
        dce::run(graph, context)?;
    }
    Ok(changed)
}
