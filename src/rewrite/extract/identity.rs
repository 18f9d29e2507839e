//! Whether it is observable that one object replaces another: by a write, by holding both, or by the order in
//! which the elements of a tensor lie. Rules speak of values only; what is decided here holds for every rule, the
//! built-in ones and those of users.

use crate::analysis::AliasDb;
use crate::dialects::{Fact, Family, Op, Registry, resolve};
use crate::ir::{Graph, OpId, Stride, Type, TypeKind, ValueId};
use crate::rewrite::egraph::saturate::is_view;
use crate::tensor::{Dims, Layout};
use hashbrown::{HashMap, HashSet};

/// Values that a change of layout is followed through, at most; farther on it counts as seen.
const MAX_FOLLOWED: usize = 64;
/// Ops that a layout is followed back through.
const MAX_DEPTH: usize = 32;

/// What is known of objects while a graph is rewritten.
#[derive(Clone, Copy)]
pub(in crate::rewrite) struct Identity<'a> {
    pub(in crate::rewrite) graph: &'a Graph,
    pub(in crate::rewrite) registry: &'a Registry,
    pub(in crate::rewrite) aliases: &'a AliasDb,
    /// Values that leave the function in the place of others, and those whose memory they show.
    pub(in crate::rewrite) leaving: &'a HashSet<ValueId>,
    /// Values from this number on are new to the alias analysis.
    pub(in crate::rewrite) first_new: usize,
    /// Whether values that ops compare as objects stay; PyTorch's peephole pass replaces them.
    pub(in crate::rewrite) keeps_compared: bool,
    /// The values that those replaced which are not views: what was known of them holds for the new ones.
    pub(in crate::rewrite) stands_for: Option<&'a HashMap<ValueId, ValueId>>,
}

impl Identity<'_> {
    /// The value that the alias analysis knows a new one by.
    fn known_as(&self, value: ValueId) -> ValueId {
        let old = |value: ValueId| self.stands_for.and_then(|all| all.get(&value)).copied();
        std::iter::successors(Some(value), |v| old(*v)).take(MAX_DEPTH).last().unwrap_or(value)
    }

    /// Whether the alias analysis knows what a value shows.
    fn is_known(&self, value: ValueId) -> bool {
        self.known_as(value).index() < self.first_new
    }

    /// Whether a caller gets the value, or something that holds it.
    pub(in crate::rewrite) fn leaves(&self, value: ValueId) -> bool {
        if self.leaving.contains(&value) {
            return true;
        }
        let value = self.known_as(value);
        let holds = |leaver: &ValueId| *leaver == value || self.aliases.may_contain_alias(*leaver, value);
        let known = |leaver: &&ValueId| leaver.index() < self.first_new;
        self.leaving.contains(&value)
            || self.leaving.iter().filter(known).any(holds)
            || self.graph.outputs().iter().filter(known).any(holds)
    }

    /// Whether it is unobservable that two objects are one.
    pub(super) fn may_be_one(&self, a: ValueId, b: ValueId) -> bool {
        let written = |v| self.aliases.has_deep_writers(self.known_as(v));
        if written(a) || written(b) {
            return false;
        }
        // What leaves the graph and what may be known outside meet there.
        let (a_leaves, b_leaves) = (self.leaves(a), self.leaves(b));
        let a_is_known = a_leaves || self.aliases.is_wildcard(self.known_as(a));
        let b_is_known = b_leaves || self.aliases.is_wildcard(self.known_as(b));
        let meet = (a_leaves && b_is_known) || (b_leaves && a_is_known);
        !meet
    }

    /// Whether `value` may be `other` from now on. `same`: a rule says that they are the same object, or views of
    /// the same memory, whatever is written.
    pub(in crate::rewrite) fn may_be_value(&self, value: ValueId, other: ValueId, same: bool) -> bool {
        if !AliasDb::is_mutable_type(self.graph.ty(value)) || !AliasDb::is_mutable_type(self.graph.ty(other))
        {
            return true;
        }
        let is_compared = |v| self.keeps_compared && self.aliases.is_compared(self.known_as(v));
        if is_compared(value) || is_compared(other) {
            return false;
        }
        let shared =
            || self.is_known(other) && self.aliases.may_alias(self.known_as(value), self.known_as(other));
        if same && shared() && !self.copies_between(value, other) {
            return true;
        }
        self.may_be_one(value, other) && !self.layout_is_seen(value, other)
    }

    /// Whether, on the way from a view back to another value, an op may have copied: then a rule about views holds
    /// for the values only, as other rules made the copy equal to what it copies.
    fn copies_between(&self, value: ValueId, other: ValueId) -> bool {
        let mut at = value;
        for _ in 0..MAX_DEPTH {
            if at == other {
                return false;
            }
            let Some(op) = self.graph.def_op(at) else { return false };
            let Ok(row) = resolve(self.registry, self.graph, op) else { return false };
            let has = |fact| row.def().facts.contains(&fact);
            if has(Fact::MayCopy) || has(Fact::MayConvert) && !self.keeps_dtype(op) {
                return true;
            }
            if self.is_open_branch(op) {
                let results =
                    self.graph.nested_blocks(op).iter().map(|block| self.graph.block_results(*block));
                let n = self.graph.results(op).iter().position(|result| *result == at).unwrap_or(0);
                return results
                    .filter_map(|values| values.get(n))
                    .any(|v| *v != other && !self.shows(*v, other));
            }
            match self.graph.operand(op, 0) {
                Some(operand) if is_view(&row) => at = operand,
                _ => return false,
            }
        }
        true
    }

    /// Whether types determine that an op's result has the dtype of its first operand.
    fn keeps_dtype(&self, op: OpId) -> bool {
        let dtype = |value: Option<ValueId>| value.and_then(|v| self.graph.ty(v).as_tensor()?.dtype);
        let (operand, result) = (dtype(self.graph.operand(op, 0)), dtype(self.graph.result(op, 0)));
        operand.is_some() && operand == result
    }

    /// Whether an op is a branch whose direction is not known yet.
    fn is_open_branch(&self, op: OpId) -> bool {
        let condition = self.graph.operand(op, 0).and_then(|v| self.graph.def_op(v));
        self.graph.nested_blocks(op).len() == 2
            && condition.is_none_or(|c| self.graph.kind(c) != "prim::Constant")
    }

    /// Whether a value is made of another by ops that do nothing but to show it.
    fn shows(&self, value: ValueId, other: ValueId) -> bool {
        let made_by_view = self
            .graph
            .def_op(value)
            .is_some_and(|op| resolve(self.registry, self.graph, op).is_ok_and(|row| is_view(&row)));
        made_by_view && !self.copies_between(value, other)
    }

    /// Whether `value` may be made by an op anew. `is_view`: the op shows the memory of an operand; `operands` are
    /// those that are at hand.
    pub(in crate::rewrite) fn may_be_made(
        &self,
        value: ValueId,
        is_view: bool,
        operands: &[ValueId],
        same: bool,
    ) -> bool {
        let fine = |v: &ValueId| !AliasDb::is_mutable_type(self.graph.ty(*v)) || self.may_be_one(value, *v);
        if is_view {
            let shared =
                |v| self.is_known(v) && self.aliases.may_alias(self.known_as(value), self.known_as(v));
            let is_shown = |v: &ValueId| same && shared(*v) && !self.copies_between(value, *v);
            return operands.iter().all(|v| is_shown(v) || fine(v));
        }
        // What showed the memory of another and is made anew is an object of its own from now on.
        match self.graph.def_op(value) {
            Some(op) if resolve(self.registry, self.graph, op).is_ok_and(|row| shows_operand(&row)) => {
                operands.iter().all(fine) && self.graph.operands(op).iter().all(fine)
            }
            _ => true,
        }
    }

    // --- layouts ---

    /// Whether it is observable through strides that `other` replaces `value`.
    fn layout_is_seen(&self, value: ValueId, other: ValueId) -> bool {
        if !self.graph.ty(value).is_tensor() || !self.graph.ty(other).is_tensor() {
            return false;
        }
        let (old, new) = (self.order_of(value), self.order_of(other));
        old != new && self.is_followed_out(value, old, new)
    }

    /// Whether it is observable through strides that an op of another row makes `value`, so that its layout is that of `new`
    /// says. Two views count as lying alike, as what a rule says of views it says of strides too; so do two ops that
    /// may give their operand on.
    pub(in crate::rewrite) fn made_layout_is_seen(&self, value: ValueId, new: Order) -> bool {
        if !self.graph.ty(value).is_tensor() {
            return false;
        }
        let row = self.graph.def_op(value).and_then(|op| resolve(self.registry, self.graph, op).ok());
        let old = self.order_of(value);
        let alike = match &new {
            Order::Of(v) if *v == value => row.is_some_and(|row| is_view(&row)),
            Order::Follows(v) if *v == value => row.is_some_and(|row| shows_operand(&row)),
            _ => old.is_like(&new),
        };
        // What is not alike must not be called by one name.
        let new = if new == old { Order::Follows(value) } else { new };
        !alike && self.is_followed_out(value, old, new)
    }

    /// How a known value lies.
    pub(in crate::rewrite) fn order_of(&self, value: ValueId) -> Order {
        self.order(value, 0, &mut HashMap::new())
    }

    /// How the result of an op would lie whose tensors lie so, if it made `value`.
    pub(in crate::rewrite) fn order_of_made(
        &self,
        row: &Op,
        mut operands: Vec<Order>,
        value: ValueId,
    ) -> Order {
        operands.dedup_by(|a, b| a.is_like(b));
        match operands.as_slice() {
            _ if is_view(row) => Order::Of(value),
            _ if shows_operand(row) => Order::Follows(value),
            [one, ..] if row.def().facts.contains(&Fact::KeepsLayout) => self.dense(one.clone(), Some(value)),
            _ if row.def().family != Family::Elementwise => Order::Made(value),
            [one] => self.dense(one.clone(), Some(value)),
            // The first operand decides, where it is not broadcast.
            [first, ..] if first.is_made() => first.clone(),
            [first, ..] => Order::Mixed(Box::new(first.clone())),
            [] => Order::Made(value),
        }
    }

    /// Whether a change of a value's layout reaches an observer.
    fn is_followed_out(&self, value: ValueId, old: Order, new: Order) -> bool {
        let mut changed: Vec<(ValueId, Order, Order)> = vec![(value, old, new)];
        let mut done = 0;
        while done < changed.len() {
            if done > MAX_FOLLOWED {
                return true;
            }
            let (value, old, new) = changed[done].clone();
            done += 1;
            for used in self.graph.uses(value) {
                let Some(next) = self.passes_layout_on(used.op, &old, &new) else { return true };
                for (result, old, new) in next {
                    if !changed.iter().any(|(known, ..)| *known == result) {
                        changed.push((result, old, new));
                    }
                }
            }
        }
        false
    }

    /// The results of an op whose layouts follow that of an operand; None where the op itself, or a user outside,
    /// reads it.
    fn passes_layout_on(&self, op: OpId, old: &Order, new: &Order) -> Option<Vec<(ValueId, Order, Order)>> {
        // The terminator of a block passes the value to the enclosing op.
        self.graph.parent(op)?;
        let row = resolve(self.registry, self.graph, op).ok()?;
        if row.def().facts.contains(&Fact::SeesLayout) {
            return None;
        }
        let mut next = Vec::new();
        for result in self.graph.results(op) {
            match self.graph.ty(result).kind() {
                TypeKind::Tensor(t) if t.sizes.as_ref().is_some_and(|s| s.is_empty()) => {}
                TypeKind::Tensor(_) if row.def().family == Family::Elementwise => {
                    let (old, new) = (self.dense(old.clone(), None), self.dense(new.clone(), None));
                    if old != new {
                        next.push((result, old, new));
                    }
                }
                TypeKind::Tensor(_) => next.push((result, Order::Made(result), Order::Follows(result))),
                _ if may_hold_tensors(self.graph.ty(result)) => return None,
                _ => {}
            }
        }
        Some(next)
    }

    /// How the elements of a tensor lie. `known` has what was found, from how far away: where many ways lead back to a value, as in
    /// chains of residual blocks, it is asked once for each distance and not once for each way.
    fn order(&self, value: ValueId, depth: usize, known: &mut HashMap<ValueId, (usize, Order)>) -> Order {
        if let Some((from, order)) = known.get(&value)
            && *from <= depth
        {
            return order.clone();
        }
        let order = self.order_by_op(value, depth, known);
        known.insert(value, (depth, order.clone()));
        order
    }

    fn order_by_op(
        &self,
        value: ValueId,
        depth: usize,
        known: &mut HashMap<ValueId, (usize, Order)>,
    ) -> Order {
        let ty = self.graph.ty(value);
        if let TypeKind::Tensor(t) = ty.kind() {
            let strides =
                t.strides.as_ref().and_then(|s| s.iter().map(Stride::known).collect::<Option<Dims>>());
            match (t.sizes.as_ref(), strides) {
                (Some(sizes), _) if sizes.is_empty() => return Order::Strides(Dims::new(), true),
                (Some(sizes), Some(strides)) => {
                    let sizes: Option<Vec<i64>> = sizes.iter().map(|d| d.known()).collect();
                    let dense = sizes.is_some_and(|sizes| is_dense(&sizes, &strides));
                    return Order::Strides(strides, dense);
                }
                _ => {}
            }
        }
        let Some(op) = self.graph.def_op(value).filter(|_| depth < MAX_DEPTH) else {
            return Order::Of(value);
        };
        let Ok(row) = resolve(self.registry, self.graph, op) else { return Order::Of(value) };
        if shows_operand(&row)
            || matches!(row.def().family, Family::Container | Family::Control | Family::Host)
        {
            return Order::Of(value);
        }
        let tensors = self.graph.operands(op).iter().filter(|v| self.graph.ty(**v).is_tensor());
        let orders = tensors.map(|v| self.order(*v, depth + 1, known)).collect();
        self.order_of_made(&row, orders, value)
    }

    /// How the result of an elementwise op lies whose tensors all lie so: the same, if they leave no gaps.
    fn dense(&self, order: Order, result: Option<ValueId>) -> Order {
        match (order, result) {
            (Order::Of(v), _) => Order::DenseOf(v),
            (Order::Strides(strides, false), Some(result)) if !strides.is_empty() => Order::Made(result),
            (order, _) => order,
        }
    }
}

/// How the elements of a tensor lie, as far as two of them can be compared.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::rewrite) enum Order {
    /// By these strides; whether they leave no gaps and show nothing twice.
    Strides(Dims, bool),
    /// As those of a value of which nothing is known.
    Of(ValueId),
    /// As an elementwise op makes of those of such a value.
    DenseOf(ValueId),
    /// As the op of this value makes them: without gaps.
    Made(ValueId),
    /// As an elementwise op makes them of operands that lie differently, the first of them so.
    Mixed(Box<Order>),
    /// As the op of this value makes of another operand.
    Follows(ValueId),
}

impl Order {
    /// Whether two tensors lie alike: what is made otherwise than elementwise counts as contiguous, and of operands
    /// that lie differently the first decides.
    fn is_like(&self, other: &Order) -> bool {
        match (self, other) {
            (Order::Mixed(first), Order::Mixed(second)) => first.is_like(second),
            _ => self == other || (self.is_made() && other.is_made()),
        }
    }

    /// Whether the elements lie in the order of their indices, without gaps.
    fn is_made(&self) -> bool {
        match self {
            Order::Made(_) => true,
            Order::Strides(strides, true) => strides.windows(2).all(|pair| pair[0] >= pair[1]),
            _ => false,
        }
    }
}

/// Whether a value of the type may hold a tensor.
fn may_hold_tensors(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::List(inner) | TypeKind::Optional(inner) => may_hold_tensors(inner),
        _ => AliasDb::is_mutable_type(ty) || matches!(ty.kind(), TypeKind::Any | TypeKind::Tuple(..)),
    }
}

/// Whether strides are those of a contiguous tensor but for the order of dimensions.
fn is_dense(sizes: &[i64], strides: &[i64]) -> bool {
    let mut dims: Vec<(i64, i64)> = strides.iter().copied().zip(sizes.iter().copied()).collect();
    dims.retain(|(_, size)| *size != 1);
    dims.sort_unstable();
    let (strides, sizes): (Vec<i64>, Vec<i64>) = dims.into_iter().rev().unzip();
    Layout::strided(&sizes, &strides, 0).is_ok_and(|layout| layout.is_contiguous())
}

/// Whether an op's result may show the memory of an operand.
pub(in crate::rewrite) fn shows_operand(row: &Op) -> bool {
    let marked = row.marked_schema().is_ok_and(|s| s.returns.iter().any(|r| r.alias.is_some()));
    marked || matches!(row.def().family, Family::View)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_graph;
    use std::fmt::Write as _;

    /// Each step doubles the ways that lead back: asked once for each way, this takes minutes.
    #[test]
    fn residual_chains_are_walked_once() {
        let mut text = String::from("graph(%x0 : Tensor):\n  %one : int = prim::Constant[value=1]()\n");
        for n in 0..40 {
            let m = n + 1;
            let _ = writeln!(text, "  %m{n} : Tensor = aten::mul(%x{n}, %x{n})");
            let _ = writeln!(text, "  %x{m} : Tensor = aten::add(%x{n}, %m{n}, %one)");
        }
        text.push_str("  return (%x40)\n");
        let (graph, registry) = (parse_graph(&text).expect("a graph"), Registry::builtin());
        let (aliases, leaving) = (AliasDb::new(&registry, None, &graph), HashSet::new());
        let identity = Identity {
            graph: &graph,
            registry: &registry,
            aliases: &aliases,
            leaving: &leaving,
            first_new: usize::MAX,
            keeps_compared: false,
            stands_for: None,
        };
        let last = graph.outputs()[0];
        assert!(matches!(identity.order_of(last), Order::Mixed(_) | Order::DenseOf(_)));
        assert_eq!(identity.order_of(last), identity.order_of(last));
    }
}
