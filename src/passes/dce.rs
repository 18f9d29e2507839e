//! Dead code elimination: an op stays if it does something observable.
//!
//! Live are ops that write the world, ops that write to memory that others hold or that a later live op reads,
//! and all that live ops use. Unused results of branches and loop-carried values are removed too. What
//! may raise may go, and so may what draws random numbers, as in PyTorch; a loop stays if an iteration computes whether
//! another follows. The condition that makes it right is the alias analysis: a write is dead only where nothing
//! that is live after it, or in a later iteration of an enclosing loop, may be what it writes.

use super::Context;
use crate::analysis::{AliasDb, FactsTable, Locations};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{BlockId, Graph, OpId, Symbol, ValueId};

/// Every op that writes to memory stays; memory is not examined.
pub(super) fn block(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    Ok(without_aliases(graph, context))
}

/// Dead stores are removed too.
pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = context.analysis::<AliasDb>(graph);
    Ok(eliminate(graph, context, Some(&db), true))
}

/// Only what outputs are computed from stays: writes and all other effects are removed with unused ops, so that
/// answers may change, as in PyTorch.
pub(super) fn with_side_effects(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    Ok(eliminate(graph, context, None, false))
}

/// The same without reading memory: every op that writes stays. Other passes end with it.
pub(super) fn without_aliases(graph: &mut Graph, context: &Context<'_>) -> bool {
    eliminate(graph, context, None, true)
}

/// By value: whether anything observable depends on it. What a loop carries for itself alone does not count, unlike
/// in elimination, where its next value is a use.
pub(super) fn live_values(graph: &Graph, context: &Context<'_>) -> Vec<bool> {
    marked(graph, context, None, Rule { effects_count: true, carried_counts: false }).values
}

fn eliminate(graph: &mut Graph, context: &Context<'_>, db: Option<&AliasDb>, effects_count: bool) -> bool {
    let marks = marked(graph, context, db, Rule { effects_count, carried_counts: true });
    let ops = marks.ops;
    sweep(graph, context, &ops)
}

fn marked<'a>(graph: &Graph, context: &Context<'_>, db: Option<&'a AliasDb>, rule: Rule) -> Marks<'a> {
    let mut marks = Marks {
        db,
        rule,
        ops: vec![false; graph.op_capacity()],
        values: vec![false; graph.value_capacity()],
        memory: Locations::default(),
        changes: 1,
        visited: vec![0; graph.block_capacity()],
        by_itself: vec![false; graph.op_capacity()],
        looping: Symbol::new("prim::Loop"),
    };
    let mut facts = FactsTable::new(context.registry);
    for op in graph.all_ops() {
        marks.by_itself[op.index()] = marks.has_effects(graph, &mut facts, op);
    }
    let root = graph.root();
    graph.outputs().iter().for_each(|value| marks.value(*value));
    marks.block(graph, root);
    marks
}

/// What is live by itself.
#[derive(Clone, Copy)]
struct Rule {
    /// What has effects.
    effects_count: bool,
    /// Loop-carried values that the next iteration uses, for whatever purpose.
    carried_counts: bool,
}

/// What is live.
struct Marks<'a> {
    db: Option<&'a AliasDb>,
    rule: Rule,
    /// By op.
    ops: Vec<bool>,
    /// By value.
    values: Vec<bool>,
    /// What live values may be.
    memory: Locations,
    /// Counts marks, so that nothing is examined twice in vain.
    changes: u64,
    /// By block: the count of marks when it was last examined.
    visited: Vec<u64>,
    /// By op: live whatever the others do.
    by_itself: Vec<bool>,
    /// `prim::Loop`
    looping: Symbol,
}

impl Marks<'_> {
    fn has_effects(&self, graph: &Graph, facts: &mut FactsTable<'_>, op: OpId) -> bool {
        if !graph.nested_blocks(op).is_empty() || !self.rule.effects_count {
            return false;
        }
        let facts = facts.get(graph, op);
        let world = Effects::WRITES_WORLD | Effects::NEVER_RETURNS;
        let untracked = match self.db {
            Some(db) => db.writes_wildcard(op),
            None => facts.writes,
        };
        facts.op.is_none() || facts.effects.intersects(world) || untracked
    }

    fn value(&mut self, value: ValueId) {
        if !std::mem::replace(&mut self.values[value.index()], true) {
            self.changes += 1;
            if let Some(db) = self.db {
                db.add_locations(value, &mut self.memory);
            }
        }
    }

    /// Marks an op, the ops around it, and what it uses.
    fn op(&mut self, graph: &Graph, op: OpId) {
        let mut at = Some(op);
        while let Some(op) = at {
            if std::mem::replace(&mut self.ops[op.index()], true) {
                return;
            }
            self.changes += 1;
            // What a loop begins with is live if what it carries is.
            let all = self.rule.carried_counts || graph.kind(op) != self.looping;
            let count = if all { usize::MAX } else { 2 };
            graph.operands(op).iter().take(count).for_each(|value| self.value(*value));
            at = graph.parent(op).and_then(|block| graph.owner(block));
        }
    }

    /// Marks what is live in a block: effects first, then from the last op to the first, so that users go before
    /// what they use.
    fn block(&mut self, graph: &Graph, block: BlockId) {
        if std::mem::replace(&mut self.visited[block.index()], self.changes) == self.changes {
            return;
        }
        for op in graph.block_ops(block) {
            if self.by_itself[op.index()] {
                self.op(graph, op);
            }
        }
        self.results(graph, block);
        for op in std::iter::successors(graph.last_op(block), |op| graph.prev(*op)) {
            let nested = graph.nested_blocks(op);
            match nested {
                [] => {}
                body if graph.kind(op) == self.looping => self.loop_body(graph, body),
                blocks => blocks.iter().for_each(|inner| self.nested(graph, *inner)),
            }
            let writes = self.db.is_some_and(|db| db.writes_into(op, &self.memory));
            if writes || graph.results(op).iter().any(|value| self.values[value.index()]) {
                self.op(graph, op);
            }
        }
    }

    fn nested(&mut self, graph: &Graph, block: BlockId) {
        stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, block));
    }

    /// An iteration may see writes of the previous one: the body is visited until nothing new is live.
    fn loop_body(&mut self, graph: &Graph, body: &[BlockId]) {
        loop {
            let before = self.changes;
            body.iter().for_each(|block| self.nested(graph, *block));
            if self.changes == before {
                return;
            }
        }
    }

    /// Marks the results of a block that are used outside or by the next iteration.
    fn results(&mut self, graph: &Graph, block: BlockId) {
        let Some(op) = graph.owner(block) else { return };
        let is_loop = graph.kind(op) == self.looping;
        let results = graph.block_results(block).to_vec();
        let carried = if is_loop {
            results.first().iter().for_each(|condition| self.value(**condition));
            results.get(1..).unwrap_or(&[])
        } else {
            &results
        };
        let outer = graph.results(op);
        for (n, inner) in carried.iter().enumerate() {
            let used = outer.get(n).is_none_or(|value| self.values[value.index()]);
            let counts = |param: &ValueId| match self.rule.carried_counts {
                true => graph.has_uses(*param),
                false => self.values[param.index()],
            };
            let carried = is_loop && graph.params(block).get(n + 1).is_some_and(counts);
            if used || carried {
                self.value(*inner);
                graph.operand(op, n + 2).filter(|_| is_loop).into_iter().for_each(|start| self.value(start));
            }
        }
    }
}

/// Erases what is not live.
fn sweep(graph: &mut Graph, context: &Context<'_>, live: &[bool]) -> bool {
    let mut changed = false;
    let mut blocks = vec![(graph.root(), graph.last_op(graph.root()))];
    while let Some((block, at)) = blocks.pop() {
        let Some(op) = at else { continue };
        blocks.push((block, graph.prev(op)));
        let used = graph.results(op).iter().any(|value| graph.has_uses(*value));
        let live = live.get(op.index()).copied().unwrap_or(true);
        if !live && !used && context.step(|| format!("erases {}", graph.op_line(op))) {
            graph.erase(op);
            context.count("ops erased", 1);
            changed = true;
            continue;
        }
        if graph.nested_blocks(op).is_empty() {
            continue;
        }
        changed |= drop_results(graph, context, op);
        blocks.extend(graph.nested_blocks(op).iter().map(|inner| (*inner, graph.last_op(*inner))));
    }
    changed
}

/// Removes unused results of branches and loop-carried values.
fn drop_results(graph: &mut Graph, context: &Context<'_>, op: OpId) -> bool {
    let is_loop = graph.kind(op) == "prim::Loop";
    if !is_loop && graph.kind(op) != "prim::If" {
        return false;
    }
    let blocks: Vec<BlockId> = graph.nested_blocks(op).to_vec();
    let mut changed = false;
    for n in (0..graph.result_count(op)).rev() {
        let unused = graph.result(op, n).is_some_and(|value| !graph.has_uses(value));
        let param = |graph: &Graph| blocks.first().and_then(|body| graph.params(*body).get(n + 1).copied());
        if !unused || (is_loop && param(graph).is_none_or(|value| graph.has_uses(value))) {
            continue;
        }
        if !context.step(|| format!("drops result {n} of {}", graph.op_line(op))) {
            return changed;
        }
        graph.remove_result(op, n);
        if is_loop {
            graph.remove_operand(op, n + 2);
        }
        for block in &blocks {
            if is_loop {
                graph.remove_param(*block, n + 1);
            }
            graph.remove_block_result(*block, n + usize::from(is_loop));
        }
        changed = true;
    }
    changed
}
