//! Where left sides match in a graph, op by op: what the greedy and the directed driver have in common. Which ops rules may
//! read is the driver's to decide, and what a match is worth too.

use crate::dialects::Op;
use crate::ir::{Attr, Graph, OpId, Symbol, Type, TypeKind, ValueId};
use crate::rewrite::egraph::matching;
use crate::rewrite::egraph::matching::{same_kind, seen_of, type_fits};
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::{Kind, Seen, Subjects};
use crate::rewrite::load::rule::{OpNode, Term};
use smallvec::SmallVec;
use std::sync::Arc;

/// Alternatives of one match are bounded.
const MAX_MATCHES: usize = 16;

pub(in crate::rewrite) type Bound = matching::Bound<ValueId>;
pub(in crate::rewrite) type Subst = matching::Subst<ValueId>;

/// A search for matches in a graph.
pub(super) struct Matcher<'a> {
    pub(in crate::rewrite) graph: &'a Graph,
    /// The row that makes lists.
    pub(in crate::rewrite) lists: Option<&'a Op>,
    /// The row of an op that rules may read.
    pub(in crate::rewrite) row: &'a dyn Fn(OpId) -> Option<Op>,
    /// The name under which results of ops inside of a match are noted, if they are.
    pub(in crate::rewrite) inside: Option<Arc<str>>,
}

impl Matcher<'_> {
    /// The ways in which one result of an op is the op of a pattern.
    pub(in crate::rewrite) fn result(
        &self,
        pattern: &OpNode,
        op: OpId,
        which: usize,
        subst: &Subst,
    ) -> Vec<Subst> {
        let one = self.graph.result_count(op) == 1;
        let fits = match pattern.result {
            Some(wanted) => wanted == which && !self.raises(op),
            None => one || !pattern.blocks.is_empty() && which == 0,
        };
        if !fits {
            return Vec::new();
        }
        let value = self.graph.result(op, which);
        let found = self.match_op(pattern, op, which, subst);
        match (&pattern.bound, value) {
            (Some(name), Some(value)) => found.into_iter().map(|s| s.with(name, Bound::One(value))).collect(),
            _ => found,
        }
    }

    /// The ways in which an op with all its results is the op of a pattern.
    pub(in crate::rewrite) fn whole(&self, pattern: &OpNode, op: OpId) -> Vec<Subst> {
        let fits = pattern.result.is_none() && pattern.blocks.is_empty();
        if fits { self.match_op(pattern, op, 0, &Subst::default()) } else { Vec::new() }
    }

    /// Whether an op takes a list apart into more or fewer values than it has.
    fn raises(&self, op: OpId) -> bool {
        let list = self.graph.operand(op, 0).and_then(|v| self.graph.def_op(v));
        self.graph.kind(op) == "prim::ListUnpack"
            && list.is_some_and(|list| self.graph.operands(list).len() != self.graph.result_count(op))
    }

    fn match_op(&self, pattern: &OpNode, op: OpId, which: usize, subst: &Subst) -> Vec<Subst> {
        if self.graph.kind(op) != pattern.op.name() {
            return Vec::new();
        }
        if !pattern.blocks.is_empty() {
            let blocks = self.graph.nested_blocks(op);
            let results = blocks.iter().map(|b| self.graph.block_results(*b).get(which).copied());
            let inner: Option<Vec<ValueId>> = results.collect();
            let (Some(condition), Some(inner)) = (self.graph.operand(op, 0), inner) else {
                return Vec::new();
            };
            let children: Vec<ValueId> = std::iter::once(condition).chain(inner).collect();
            let terms: Vec<Term> =
                pattern.operands.iter().chain(pattern.blocks.iter().flatten()).cloned().collect();
            return self.sequence(&terms, &children, subst);
        }
        if !(self.row)(op).is_some_and(|row| row.same(&pattern.op)) {
            return Vec::new();
        }
        let fits = |(name, term): &(Symbol, Term)| {
            let own = self.graph.attr(op, name.as_str());
            matches!(term, Term::Constant(_, attr) if own == attr.as_ref())
        };
        if !pattern.attributes.iter().all(fits) {
            return Vec::new();
        }
        let children = self.graph.operands(op).to_vec();
        self.sequence(&pattern.operands, &children, subst)
    }

    fn sequence(&self, terms: &[Term], children: &[ValueId], subst: &Subst) -> Vec<Subst> {
        let Some((first, rest)) = terms.split_first() else {
            return if children.is_empty() { vec![subst.clone()] } else { Vec::new() };
        };
        let mut found = Vec::new();
        if let Term::Rest(name, ..) = first {
            let fixed = rest.iter().filter(|t| !matches!(t, Term::Rest(..))).count();
            let Some(most) = children.len().checked_sub(fixed) else { return found };
            let several = rest.iter().any(|t| matches!(t, Term::Rest(..)));
            for n in if several { 0..=most } else { most..=most } {
                let taken = Bound::Many(SmallVec::from_slice(&children[..n]));
                let next = match subst.get(name) {
                    Some(known) if *known == taken => subst.clone(),
                    Some(_) => continue,
                    None => subst.with(name, taken),
                };
                found.extend(self.sequence(rest, &children[n..], &next));
            }
            return found;
        }
        let Some((child, others)) = children.split_first() else { return found };
        for next in self.matches(first, *child, subst) {
            found.extend(self.sequence(rest, others, &next));
            if found.len() > MAX_MATCHES {
                break;
            }
        }
        found
    }

    fn matches(&self, term: &Term, value: ValueId, subst: &Subst) -> Vec<Subst> {
        let same = |yes: bool| if yes { vec![subst.clone()] } else { Vec::new() };
        match term {
            Term::Variable(name, ty) => match subst.get(name) {
                Some(Bound::One(known)) => same(self.is_same(*known, value)),
                Some(_) => Vec::new(),
                None if type_fits(ty, self.graph.ty(value)) => vec![subst.with(name, Bound::One(value))],
                None => Vec::new(),
            },
            Term::Constant(ty, attr) => {
                let wanted = attr.clone().unwrap_or(Attr::None);
                let known = constant_of(self.graph, value);
                same(known.is_some_and(|(t, a)| a == wanted && (attr.is_none() || same_kind(&t, ty))))
            }
            Term::Compute(expr, _) => {
                let known = constant_of(self.graph, value).map(|(_, attr)| attr);
                let names = Names { graph: self.graph, subst, root: value, lists: self.lists, count: None };
                let wanted = condition::evaluate(expr, &names);
                same(wanted.is_some() && wanted == known)
            }
            Term::List(_, items) => self.match_list(items, value, subst),
            Term::Rest(..) => Vec::new(),
            Term::Op(pattern) => {
                let Some(op) = self.graph.def_op(value) else { return Vec::new() };
                let which = self.graph.results(op).iter().position(|v| *v == value).unwrap_or(0);
                let found = self.result(pattern, op, which, subst);
                match &self.inside {
                    Some(name) => found.into_iter().map(|s| s.with(name, Bound::One(value))).collect(),
                    None => found,
                }
            }
        }
    }

    fn match_list(&self, items: &[Term], value: ValueId, subst: &Subst) -> Vec<Subst> {
        if let Some((_, Attr::Ints(known))) = constant_of(self.graph, value) {
            // Of a constant list only constants can be asked for.
            let fits = |(item, x): (&Term, &i64)| matches!(item, Term::Constant(_, Some(Attr::Int(wanted))) if wanted == x);
            let all = items.len() == known.len() && items.iter().zip(known.iter()).all(fits);
            return if all { vec![subst.clone()] } else { Vec::new() };
        }
        let Some(op) = self.graph.def_op(value) else { return Vec::new() };
        let is_list = match ((self.row)(op), self.lists) {
            (Some(row), Some(lists)) => row.same(lists),
            _ => false,
        };
        if !is_list {
            return Vec::new();
        }
        let children = self.graph.operands(op).to_vec();
        self.sequence(items, &children, subst)
    }

    fn is_same(&self, a: ValueId, b: ValueId) -> bool {
        a == b || constant_of(self.graph, a).is_some_and(|known| constant_of(self.graph, b) == Some(known))
    }
}

/// The constant that a value is, with its type.
pub(super) fn constant_of(graph: &Graph, value: ValueId) -> Option<(Type, Attr)> {
    let op = graph.def_op(value).filter(|op| graph.kind(*op) == "prim::Constant")?;
    let ty = graph.ty(value);
    match (graph.attr(op, "value"), ty.kind()) {
        (None, TypeKind::None) => Some((ty.clone(), Attr::None)),
        (None, _) => None,
        (Some(Attr::Int(x)), TypeKind::Bool) => Some((ty.clone(), Attr::Bool(*x != 0))),
        (Some(attr), _) => Some((ty.clone(), attr.clone())),
    }
}

/// What names stand for, as conditions ask.
pub(in crate::rewrite) struct Names<'a> {
    pub(in crate::rewrite) graph: &'a Graph,
    pub(in crate::rewrite) subst: &'a Subst,
    pub(in crate::rewrite) root: ValueId,
    pub(in crate::rewrite) lists: Option<&'a Op>,
    /// How many results the root has, where all of them are meant.
    pub(in crate::rewrite) count: Option<usize>,
}

impl Subjects for Names<'_> {
    fn seen(&self, name: &str) -> Option<Seen> {
        let several = |n| Seen { kind: Kind::List, len: Some(n), ..Seen::default() };
        let value = match (name, self.subst.get(name)) {
            ("result", _) if self.count.is_some() => return self.count.map(several),
            ("result", _) => self.root,
            (_, Some(Bound::One(value))) => *value,
            (_, Some(Bound::Many(all))) => return Some(several(all.len())),
            _ => return None,
        };
        let mut seen = seen_of(self.graph.ty(value), constant_of(self.graph, value).as_ref());
        seen.one_use = self.graph.has_one_use(value);
        // Only ops without writes are considered.
        seen.maker = self.graph.def_op(value).map(|op| self.graph.kind(op));
        seen.is_input = seen.maker.is_none();
        if let (Some(op), Some(lists)) = (self.graph.def_op(value), self.lists)
            && self.graph.kind(op) == lists.name()
        {
            let operands = self.graph.operands(op);
            let number = |v: &ValueId| constant_of(self.graph, *v).and_then(|(_, attr)| attr.as_int());
            let numbers: Option<Vec<i64>> = operands.iter().map(number).collect();
            seen.len = Some(operands.len());
            let numbers = numbers.filter(|all| !all.is_empty());
            seen.constant = seen.constant.or(numbers.map(|all| Attr::Ints(all.into())));
        }
        Some(seen)
    }
}
