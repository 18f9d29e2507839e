//! Common subexpression elimination: an op equal to an earlier one in scope is replaced by that.
//!
//! Equal are ops of one kind with the same operands, attributes and result types. The condition that makes it
//! right: the op does nothing but compute; nothing in the graph writes to what it reads or gives; and two objects
//! become one only where nobody outside of the graph holds both. Members of enums and functions that look equal in
//! text may be different and stay.

use super::Context;
use crate::analysis::{AliasDb, facts};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use hashbrown::HashMap;
use smallvec::SmallVec;
use std::sync::Arc;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let before = graph.op_count();
    let db = context.analysis::<AliasDb>(graph);
    let mut pass = Cse { context, db, scopes: Vec::new() };
    let root = graph.root();
    pass.block(graph, root);
    Ok(graph.op_count() != before)
}

/// What makes two ops equal, attributes aside.
type Key = (Symbol, SmallVec<[ValueId; 4]>, SmallVec<[Type; 1]>);

struct Cse<'a> {
    context: &'a Context<'a>,
    db: Arc<AliasDb>,
    scopes: Vec<HashMap<Key, Vec<OpId>>>,
}

impl Cse<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        self.scopes.push(HashMap::new());
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            at = graph.next(op);
            let nested = graph.nested_blocks(op).to_vec();
            if nested.is_empty() {
                self.op(graph, op);
            } else if self.computes(graph, op) {
                for inner in nested {
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner));
                }
            }
        }
        self.scopes.pop();
    }

    fn op(&mut self, graph: &mut Graph, op: OpId) {
        if !self.computes(graph, op) || self.db.op_has_writers(graph, op) {
            return;
        }
        let key = key(graph, op);
        let find = |scope: &HashMap<Key, Vec<OpId>>| {
            let equal = |e: &&OpId| same_attrs(graph.attrs(**e), graph.attrs(op));
            scope.get(&key).and_then(|known| known.iter().find(equal).copied())
        };
        let Some((depth, earlier)) =
            self.scopes.iter().rev().enumerate().find_map(|(n, s)| Some((n, find(s)?)))
        else {
            if let Some(scope) = self.scopes.last_mut() {
                scope.entry(key).or_default().push(op);
            }
            return;
        };
        let (old, new) = (graph.results(op), graph.results(earlier));
        let same = || format!("{} is {}", graph.op_line(op), graph.op_line(earlier));
        let safe = |(a, b): (&ValueId, &ValueId)| match depth {
            0 => self.db.may_merge(graph, *a, *b),
            _ => self.db.safe_to_change_aliasing(graph, *a, *b),
        };
        if old.iter().zip(&new).all(safe) && self.context.step(same) {
            self.context.count("ops merged", 1);
            graph.replace_op(op, &new);
        }
    }

    /// Whether running the op once is as good as twice.
    fn computes(&self, graph: &Graph, op: OpId) -> bool {
        if !graph.nested_blocks(op).is_empty() {
            return true;
        }
        let facts = facts(self.context.registry, graph, op);
        let harmless = Effects::MAY_RAISE | Effects::CONTROL | Effects::READS_WORLD | Effects::IDENTITY;
        // What is read of an object changes only with a write to it; the rest of the world changes unseen.
        let reads_world = facts.effects.contains(Effects::READS_WORLD) && graph.operands(op).is_empty();
        let named = graph.result(op, 0).is_some_and(|value| is_named(graph.ty(value)));
        facts.op.is_some() && harmless.contains(facts.effects) && !reads_world && !named
    }
}

/// Whether constants of the type are names, which look equal where what they name is not.
pub(super) fn is_named(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::Enum(..) | TypeKind::Function(_))
}

fn key(graph: &Graph, op: OpId) -> Key {
    let types = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
    (graph.kind(op), SmallVec::from_slice(graph.operands(op)), types)
}

/// Whether two ops have equal attributes. Tensors are equal if they have the same elements.
pub(super) fn same_attrs(a: &[(Symbol, Attr)], b: &[(Symbol, Attr)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && (x.1 == y.1 || same_tensor(&x.1, &y.1)))
}

fn same_tensor(a: &Attr, b: &Attr) -> bool {
    let (Attr::Tensor(a), Attr::Tensor(b)) = (a, b) else { return false };
    a.dtype() == b.dtype()
        && a.sizes() == b.sizes()
        && a.device() == b.device()
        && matches!((a.to_scalars(), b.to_scalars()), (Ok(a), Ok(b)) if a == b)
}
