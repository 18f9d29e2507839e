//! Which memory of a model's attributes the writes of a graph reach. Alias analysis takes every attribute for memory that any
//! other may share; where the model is at hand, what an attribute holds is known, and a write to one buffer (a counter, a
//! cache) does not reach the weights. What cannot be followed back to attributes reaches all of them.

use super::Context;
use crate::analysis::AliasDb;
use crate::dialects::{Registry, resolve};
use crate::ir::{Graph, OpId, ValueDef, ValueId};
use hashbrown::HashMap;
use std::sync::Arc;

/// The writes of a graph.
pub(super) struct AttributeWrites {
    aliases: Arc<AliasDb>,
    /// By op, the storages that it writes to, where they are known.
    written: HashMap<OpId, Vec<usize>>,
}

impl AttributeWrites {
    /// Follows writes back to attributes, whose values in the graph stand for these storages.
    pub(super) fn of(
        graph: &Graph,
        context: &Context<'_>,
        storages: &HashMap<ValueId, usize>,
    ) -> AttributeWrites {
        let aliases = context.analysis::<AliasDb>(graph);
        let mut written = HashMap::new();
        for op in graph.all_ops().into_iter().filter(|op| aliases.writes(*op)) {
            if let Some(found) = written_by(graph, context.registry, storages, op) {
                written.insert(op, found);
            }
        }
        AttributeWrites { aliases, written }
    }

    /// Whether a write may reach a tensor in a storage, or anything else that can be written to.
    pub(super) fn reach(&self, value: ValueId, storage: Option<usize>) -> bool {
        if !self.aliases.has_deep_writers(value) {
            return false;
        }
        let (Some(storage), Some(writers)) = (storage, self.aliases.writers(value)) else { return true };
        let misses = |op: &OpId| self.written.get(op).is_some_and(|written| !written.contains(&storage));
        !writers.iter().all(misses)
    }
}

/// The storages that an op writes to.
fn written_by(
    graph: &Graph,
    registry: &Registry,
    storages: &HashMap<ValueId, usize>,
    op: OpId,
) -> Option<Vec<usize>> {
    let row = resolve(registry, graph, op).ok()?;
    let schema = row.marked_schema().ok()?;
    let mut found = Vec::new();
    for (n, operand) in graph.operands(op).iter().enumerate() {
        let argument = schema.arguments.get(n)?;
        if argument.alias.as_ref().is_some_and(|mark| mark.is_write) {
            found.push(root(graph, registry, storages, *operand)?);
        }
    }
    Some(found)
}

/// The storage of the attribute that a value is, or is a view of.
fn root(
    graph: &Graph,
    registry: &Registry,
    storages: &HashMap<ValueId, usize>,
    mut value: ValueId,
) -> Option<usize> {
    loop {
        if let Some(storage) = storages.get(&value) {
            return Some(*storage);
        }
        let ValueDef::Result(op, n) = graph.def(value) else { return None };
        let row = resolve(registry, graph, op).ok()?;
        let schema = row.marked_schema().ok()?;
        let shown = schema.returns.get(n)?.alias.as_ref()?;
        let of = |n: &usize| {
            let mark = schema.arguments.get(*n).and_then(|argument| argument.alias.as_ref());
            mark.is_some_and(|mark| mark.after.iter().any(|set| shown.before.contains(set)))
        };
        let mut shared = (0..graph.operands(op).len()).filter(of);
        let (at, another) = (shared.next()?, shared.next());
        let operand = graph.operand(op, at)?;
        if another.is_some() || shown.wildcard_before || !graph.ty(operand).is_tensor() {
            return None;
        }
        value = operand;
    }
}
