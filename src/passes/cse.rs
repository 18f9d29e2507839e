//! Common subexpression elimination: an op equal to an earlier one in scope is replaced by that.
//!
//! Equal are ops of one kind with the same operands, attributes and result types. The condition that makes it
//! right: the op does nothing but compute; nothing in the graph writes to what it reads or gives; and two objects
//! become one only where nobody outside of the graph holds both. Members of enums and functions that look equal in
//! text may be different and stay.

use super::Context;
use crate::analysis::{AliasDb, FactsTable};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::tensor::{Scalar, Tensor};
use hashbrown::{DefaultHashBuilder, HashTable};
use std::hash::{BuildHasher, Hash, Hasher};
use std::sync::Arc;

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let before = graph.op_count();
    let db = context.analysis::<AliasDb>(graph);
    let mut pass = Cse {
        context,
        db,
        facts: FactsTable::new(context.registry),
        hasher: DefaultHashBuilder::default(),
        // A table that grows hashes everything again.
        known: HashTable::with_capacity(graph.op_count()),
        depth: 0,
    };
    let root = graph.root();
    pass.block(graph, root);
    Ok(graph.op_count() != before)
}

struct Cse<'a> {
    context: &'a Context<'a>,
    db: Arc<AliasDb>,
    facts: FactsTable<'a>,
    hasher: DefaultHashBuilder,
    /// Ops of the block at hand and of those around it, no two of them equal.
    known: HashTable<Known>,
    /// How many blocks stand around the one at hand.
    depth: u32,
}

#[derive(Clone, Copy)]
struct Known {
    op: OpId,
    /// Of the op's block.
    depth: u32,
}

impl Cse<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        let mut noted: Vec<(u64, OpId)> = Vec::new();
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            at = graph.next(op);
            let nested = graph.nested_blocks(op).to_vec();
            if nested.is_empty() {
                // What the outermost block has is never forgotten.
                noted.extend(self.op(graph, op).filter(|_| self.depth > 0).map(|hash| (hash, op)));
            }
            self.depth += 1;
            for inner in nested {
                stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner));
            }
            self.depth -= 1;
        }
        for (hash, op) in noted {
            if let Ok(entry) = self.known.find_entry(hash, |known| known.op == op) {
                entry.remove();
            }
        }
    }

    /// Merges an op with an equal one, or notes it under its hash.
    fn op(&mut self, graph: &mut Graph, op: OpId) -> Option<u64> {
        if !self.computes(graph, op) || self.db.op_has_writers(graph, op) {
            return None;
        }
        let hash = hash(&self.hasher, graph, op);
        let Some(earlier) = self.known.find(hash, |known| is_equal(graph, known.op, op)).copied() else {
            let hasher = &self.hasher;
            let known = Known { op, depth: self.depth };
            self.known.insert_unique(hash, known, |known| self::hash(hasher, graph, known.op));
            return Some(hash);
        };
        let (old, new) = (graph.results(op), graph.results(earlier.op));
        let same = || format!("{} is {}", graph.op_line(op), graph.op_line(earlier.op));
        let is_safe = |(a, b): (&ValueId, &ValueId)| {
            if earlier.depth == self.depth {
                self.db.may_merge(graph, *a, *b)
            } else {
                self.db.safe_to_change_aliasing(graph, *a, *b)
            }
        };
        if old.iter().zip(&new).all(is_safe) && self.context.step(same) {
            self.context.count("ops merged", 1);
            graph.replace_op(op, &new);
        }
        None
    }

    /// Whether running the op once is as good as twice.
    fn computes(&mut self, graph: &Graph, op: OpId) -> bool {
        let facts = self.facts.get(graph, op);
        let harmless = Effects::MAY_RAISE | Effects::CONTROL | Effects::READS_WORLD | Effects::IDENTITY;
        // What is read of an object changes only with a write to it; the rest of the world changes unseen.
        let reads_world = facts.effects.contains(Effects::READS_WORLD) && graph.operands(op).is_empty();
        let named = || graph.result(op, 0).is_some_and(|value| is_named(graph.ty(value)));
        facts.op.is_some() && harmless.contains(facts.effects) && !reads_world && !named()
    }
}

/// Equal ops have equal hashes.
fn hash(hasher: &DefaultHashBuilder, graph: &Graph, op: OpId) -> u64 {
    let mut state = hasher.build_hasher();
    graph.kind(op).hash(&mut state);
    graph.operands(op).iter().for_each(|value| value.hash(&mut state));
    graph.attrs(op).iter().for_each(|(_, attr)| hash_attr(attr, &mut state));
    state.finish()
}

fn is_equal(graph: &Graph, a: OpId, b: OpId) -> bool {
    let types = |op: OpId| graph.results(op).into_iter().map(|value| graph.type_index(value));
    graph.kind(a) == graph.kind(b)
        && graph.operands(a) == graph.operands(b)
        && graph.result_count(a) == graph.result_count(b)
        && types(a).eq(types(b))
        && same_attrs(graph.attrs(a), graph.attrs(b))
}

/// Whether constants of the type are names, which look equal where what they name is not.
pub(super) fn is_named(ty: &Type) -> bool {
    matches!(ty.kind(), TypeKind::Enum(..) | TypeKind::Function(_))
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

/// Feeds a hash with an attribute: the same for attributes that [`same_attrs`] takes for equal.
pub(super) fn hash_attr(attr: &Attr, state: &mut impl Hasher) {
    std::mem::discriminant(attr).hash(state);
    let floats = |list: &[f64], state: &mut _| list.iter().for_each(|x| x.to_bits().hash(state));
    match attr {
        Attr::Int(x) => x.hash(state),
        Attr::Bool(x) => x.hash(state),
        Attr::Float(x) => x.to_bits().hash(state),
        Attr::Complex(x) => floats(&[x.re, x.im], state),
        Attr::Str(x) | Attr::Raw(x) => x.hash(state),
        Attr::Tensor(x) => hash_tensor(x, state),
        Attr::Graph(x) => Arc::as_ptr(x).hash(state),
        Attr::Graphs(list) => list.len().hash(state),
        Attr::Type(x) => x.hash(state),
        Attr::Types(list) => list.hash(state),
        Attr::Ints(list) => list.hash(state),
        Attr::Floats(list) => floats(list, state),
        Attr::Complexes(list) => list.iter().for_each(|x| floats(&[x.re, x.im], state)),
        Attr::Strs(list) => list.hash(state),
        Attr::Tensors(list) => list.iter().for_each(|x| hash_tensor(x, state)),
        Attr::None | Attr::Device(_) => {}
        Attr::List(list) | Attr::Tuple(list) => list.iter().for_each(|x| hash_attr(x, state)),
        Attr::Dict(list) => list.iter().for_each(|(k, v)| {
            hash_attr(k, state);
            hash_attr(v, state);
        }),
        Attr::Enum(member) => (&member.0, &member.1).hash(state),
    }
}

/// Large tensors are told apart by their sizes alone: few of them are of the same.
fn hash_tensor(tensor: &Tensor, state: &mut impl Hasher) {
    const SMALL: usize = 16;
    tensor.sizes().hash(state);
    if tensor.numel() > SMALL {
        return;
    }
    // 0.0 and -0.0 are equal.
    let float = |x: f64| (x + 0.0).to_bits();
    for scalar in tensor.to_scalars().into_iter().flatten() {
        match scalar {
            Scalar::Int(x) => x.hash(state),
            Scalar::Bool(x) => x.hash(state),
            Scalar::Float(x) => float(x).hash(state),
            Scalar::Complex(x) => (float(x.re), float(x.im)).hash(state),
        }
    }
}
