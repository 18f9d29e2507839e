//! Common subexpression elimination: an op equal to an earlier one in scope is replaced by that.
//!
//! Equal are ops of one kind with the same operands, attributes and result types. The condition that makes it
//! right: the op does nothing but compute; nothing in the graph writes to what it reads or gives; and two objects
//! become one only if they do not both escape the graph. Members of enums and functions that look equal in
//! text may be different and stay.

use super::Context;
use crate::analysis::{AliasDb, FactsTable};
use crate::diag::Result;
use crate::dialects::Effects;
use crate::dialects::prim::profiling::{PROFILE, PROFILE_OPTIONAL};
use crate::ir::{Attr, BlockId, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::tensor::{Scalar, Tensor};
use hashbrown::{DefaultHashBuilder, HashTable};
use smallvec::SmallVec;
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
        known: HashTable::new(),
        open: Vec::new(),
    };
    let root = graph.root();
    pass.block(graph, root);
    Ok(graph.op_count() != before)
}

/// Equal ops are looked for among the users of a value with at most this many uses, and in a table otherwise.
const FEW: usize = 4;

struct Cse<'a> {
    context: &'a Context<'a>,
    db: Arc<AliasDb>,
    facts: FactsTable<'a>,
    hasher: DefaultHashBuilder,
    /// Ops of the open blocks none of whose operands has few uses.
    known: HashTable<OpId>,
    /// The block at hand, and those around it, outermost first.
    open: Vec<Open>,
}

struct Open {
    block: BlockId,
    /// What the table has of it.
    noted: Vec<(u64, OpId)>,
}

impl Cse<'_> {
    fn block(&mut self, graph: &mut Graph, block: BlockId) {
        self.open.push(Open { block, noted: Vec::new() });
        let mut at = graph.first_op(block);
        while let Some(op) = at {
            at = graph.next(op);
            let nested = graph.nested_blocks(op).to_vec();
            if nested.is_empty() {
                self.op(graph, op);
            }
            for inner in nested {
                stacker::maybe_grow(64 << 10, 1 << 20, || self.block(graph, inner));
            }
        }
        for (hash, op) in self.open.pop().into_iter().flat_map(|open| open.noted) {
            if let Ok(entry) = self.known.find_entry(hash, |known| *known == op) {
                entry.remove();
            }
        }
    }

    fn op(&mut self, graph: &mut Graph, op: OpId) {
        if !self.may_merge(graph, op) {
            return;
        }
        // Whatever is equal to the op uses the same values.
        let rare = graph.operands(op).iter().copied().find(|value| has_few_uses(graph, *value));
        let found = match rare {
            Some(value) => self.among_users(graph, value, op),
            None => self.in_table(graph, op),
        };
        if let Some(earlier) = found {
            self.merge(graph, op, earlier);
        }
    }

    /// The first op before `op` that is equal to it, where all such ops use `value`.
    fn among_users(&self, graph: &Graph, value: ValueId, op: OpId) -> Option<OpId> {
        let equal = graph.uses(value).map(|u| u.op).filter(|user| {
            *user != op && graph.nested_blocks(*user).is_empty() && is_equal(graph, *user, op)
        });
        let before = equal.filter(|user| !self.db.op_has_writers(graph, *user));
        let places = before.filter_map(|user| Some((self.place_before(graph, user, op)?, user)));
        let first =
            places.reduce(|a, b| if a.0 < b.0 || (a.0 == b.0 && graph.is_before(a.1, b.1)) { a } else { b });
        first.map(|(_, user)| user)
    }

    /// How many blocks stand around a user that runs before `op` wherever that runs.
    fn place_before(&self, graph: &Graph, user: OpId, op: OpId) -> Option<usize> {
        let block = graph.parent(user)?;
        let depth = self.open.iter().rposition(|open| open.block == block)?;
        let at = self.open.get(depth + 1).map_or(Some(op), |inner| graph.owner(inner.block))?;
        graph.is_before(user, at).then_some(depth)
    }

    /// An equal op of the table; the op is noted there if there is none.
    fn in_table(&mut self, graph: &Graph, op: OpId) -> Option<OpId> {
        let hash = hash(&self.hasher, graph, op);
        let found = self.known.find(hash, |known| is_equal(graph, *known, op)).copied();
        if found.is_none() {
            let depth = self.open.len() - 1;
            self.note(graph, op, hash, depth);
        }
        found
    }

    fn note(&mut self, graph: &Graph, op: OpId, hash: u64, depth: usize) {
        let hasher = &self.hasher;
        self.known.insert_unique(hash, op, |known| self::hash(hasher, graph, *known));
        // What the outermost block has is never forgotten.
        if depth > 0
            && let Some(open) = self.open.get_mut(depth)
        {
            open.noted.push((hash, op));
        }
    }

    fn merge(&mut self, graph: &mut Graph, op: OpId, earlier: OpId) {
        let (old, new) = (graph.results(op), graph.results(earlier));
        let same = || format!("{} is {}", graph.op_line(op), graph.op_line(earlier));
        let is_safe = |(a, b): (&ValueId, &ValueId)| {
            if graph.parent(op) == graph.parent(earlier) {
                self.db.may_merge(graph, *a, *b)
            } else {
                self.db.safe_to_change_aliasing(graph, *a, *b)
            }
        };
        if !old.iter().zip(&new).all(is_safe) || !self.context.step(same) {
            return;
        }
        self.context.count("ops merged", 1);
        for (old, new) in old.iter().zip(&new) {
            let uses = graph.uses(*old).chain(graph.uses(*new));
            if has_few_uses(graph, *new) && uses.take(FEW + 1).count() > FEW {
                self.note_users(graph, *new, op);
            }
        }
        graph.replace_op(op, &new);
    }

    /// The uses of a value become many: notes those that stand before `op`.
    fn note_users(&mut self, graph: &Graph, value: ValueId, op: OpId) {
        let users: SmallVec<[OpId; FEW]> = graph.uses(value).map(|u| u.op).collect();
        for user in users {
            let is_plain = graph.nested_blocks(user).is_empty();
            if let Some(depth) = self.place_before(graph, user, op).filter(|_| is_plain)
                && self.may_merge(graph, user)
            {
                let hash = hash(&self.hasher, graph, user);
                if self.known.find(hash, |known| is_equal(graph, *known, user)).is_none() {
                    self.note(graph, user, hash, depth);
                }
            }
        }
    }

    /// Whether an op computes something that nothing changes later.
    fn may_merge(&mut self, graph: &Graph, op: OpId) -> bool {
        self.computes(graph, op) && !self.db.op_has_writers(graph, op)
    }

    /// Whether running the op once is as good as twice.
    fn computes(&mut self, graph: &Graph, op: OpId) -> bool {
        let facts = self.facts.get(graph, op);
        let harmless = Effects::MAY_RAISE | Effects::CONTROL | Effects::READS_WORLD | Effects::IDENTITY;
        // What is read of an object changes only with a write to it; the rest of the world changes unseen.
        let reads_world = facts.effects.contains(Effects::READS_WORLD) && graph.operands(op).is_empty();
        let named = || graph.result(op, 0).is_some_and(|value| is_named(graph.ty(value)));
        let kind = graph.kind(op);
        // Each profile is of one use, and records its values.
        let looks = kind == *PROFILE || kind == *PROFILE_OPTIONAL;
        facts.op.is_some() && harmless.contains(facts.effects) && !reads_world && !looks && !named()
    }
}

fn has_few_uses(graph: &Graph, value: ValueId) -> bool {
    graph.uses(value).nth(FEW).is_none()
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

/// Larger tensors are the same only where they lie at the same place: to read weights would take longer than all passes.
const MAX_COMPARED: usize = 1 << 10;

/// Whether two ops have equal attributes. Tensors are equal if they have the same elements; large ones if they share them.
pub(super) fn same_attrs(a: &[(Symbol, Attr)], b: &[(Symbol, Attr)]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| x.0 == y.0 && (x.1 == y.1 || same_tensor(&x.1, &y.1)))
}

fn same_tensor(a: &Attr, b: &Attr) -> bool {
    let (Attr::Tensor(a), Attr::Tensor(b)) = (a, b) else { return false };
    let (x, y) = (a.snapshot(), b.snapshot());
    let alike = x.dtype == y.dtype && x.layout.sizes == y.layout.sizes;
    let plain = a.is_plain() && b.is_plain();
    let shared = || plain && x.storage.same(&y.storage) && x.layout == y.layout;
    let equal = || matches!((a.to_scalars(), b.to_scalars()), (Ok(a), Ok(b)) if a == b);
    alike && if x.layout.numel() > MAX_COMPARED { shared() } else { equal() }
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
        Attr::Object(held) => held.class.as_str().hash(state),
    }
}

/// Large tensors are distinguished by their sizes alone: few of them are of the same.
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;
    use crate::ir::{Module, parse_graph};

    fn after(text: &str) -> Graph {
        let mut graph = parse_graph(text).expect("the text is well formed");
        let (registry, module) = (Registry::builtin(), Module::default());
        run(&mut graph, &Context::new(&registry, &module)).expect("it does not fail");
        assert!(crate::ir::verify_graph(&graph, &crate::ir::NoLaws, None).is_empty());
        graph
    }

    /// The users of a value that others are merged into are found when they have become many.
    #[test]
    fn chains_of_equal_ops_merge_whatever_the_number_of_users() {
        for copies in [1, 2, FEW, FEW + 1, 3 * FEW] {
            let mut text = String::from("graph(%x : int, %y : int):\n");
            let mut out = Vec::new();
            for n in 0..copies {
                text += &format!("  %a{n} : int = aten::add(%x, %y)\n");
                text += &format!("  %b{n} : int = aten::neg(%a{n})\n");
                text += &format!("  %c{n} : int = prim::Constant[value={n}]()\n");
                text += &format!("  %d{n} : int = aten::mul(%a{n}, %c{n})\n");
                text += &format!("  %e{n} : int = aten::mul(%b{n}, %b{n})\n");
                out.extend([format!("%d{n}"), format!("%e{n}")]);
            }
            text += &format!("  return ({})\n", out.join(", "));
            let graph = after(&text);
            // One each of `add`, `neg` and the square; every constant is another, and so is its product.
            assert_eq!(graph.op_count(), 3 + 2 * copies, "{copies} copies:\n{graph}");
        }
    }

    #[test]
    fn what_a_branch_computes_is_not_known_behind_it() {
        let graph = after(
            "graph(%x : int, %c : bool):
  %1 : int = prim::If(%c)
    block0():
      %2 : int = aten::neg(%x)
      %3 : int = aten::neg(%x)
      %4 : int = aten::add(%2, %3)
      -> (%4)
    block1():
      %5 : int = aten::neg(%x)
      -> (%5)
  %6 : int = aten::neg(%x)
  %7 : int = prim::If(%c)
    block0():
      %8 : int = aten::neg(%x)
      -> (%8)
    block1():
      -> (%x)
  %9 : int = aten::add(%1, %6)
  %10 : int = aten::add(%9, %7)
  return (%10)
",
        );
        let text = graph.to_string();
        assert_eq!(text.matches("aten::neg").count(), 3, "{text}");
    }
}
