//! Saturation: rules are applied to an e-graph until nothing is new or a counted budget is spent. Nothing here
//! checks a clock.

use super::agenda::{self, Agenda};
use super::enter::{Loaded, restore};
use super::language::Node;
use super::matching::{Bound, Names, Subst, build, holds, match_op, matches};
use super::trace::{self, Trace};
use crate::analysis::AliasDb;
use crate::dialects::{Effects, Fact, Family, Op};
use crate::ir::{Graph, Symbol, ValueId};
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::syntax::Contract;
use crate::rewrite::report::{Budget, Report};
use egg::Id;
use hashbrown::HashSet;
use std::sync::Arc;

/// Of the nodes that rules may add, equations (`~>`) add at most one in this many: the orders of a long chain of an associative
/// op are more than any budget, and other rules are to have theirs.
const EQUATIONS_SHARE: usize = 4;
/// Classes that a repair may read for each firing since the last.
const REPAIRED_PER_FIRING: usize = 64;

/// A rule that made two things equal.
#[derive(Clone, Debug)]
pub struct Firing {
    /// Which of the rules.
    pub rule: usize,
    /// The class of the match, as it was.
    pub root: Id,
    /// What the rule matched there, where [`crate::rewrite::Settings::one_by_one`] asks.
    pub(in crate::rewrite) node: Option<Node>,
}

/// An e-graph under rules.
pub(in crate::rewrite) struct Saturation<'r> {
    pub(in crate::rewrite) loaded: Loaded,
    pub(in crate::rewrite) rules: &'r [CompiledRule],
    pub(in crate::rewrite) firings: Vec<Firing>,
    /// Values that a rule made equal to what is the same object anyway.
    pub(in crate::rewrite) same_object: HashSet<ValueId>,
    /// Nodes that are some rule's right side: they are no worse than others of the same cost.
    pub(in crate::rewrite) produced: HashSet<Node>,
    /// How many nodes equations added.
    equated: usize,
    /// Nodes that an equation made, which says nothing of which side is better.
    pub(in crate::rewrite) undirected: HashSet<Node>,
    /// Nodes that a rule made by swapping operands: it does not swap them back.
    turned: HashSet<Node>,
    /// See [`crate::rewrite::Settings::one_by_one`].
    pub(in crate::rewrite) one_by_one: bool,
    /// See [`crate::rewrite::Settings::contract`].
    pub(in crate::rewrite) contract: Contract,
    /// What was recorded, if requested.
    pub(in crate::rewrite) trace: Option<Trace>,
    budget: Budget,
    /// Nodes that rules added.
    added: usize,
    /// Firings since the e-graph was last repaired.
    pending: usize,
    pub(in crate::rewrite) report: Report,
}

impl<'r> Saturation<'r> {
    pub(in crate::rewrite) fn new(
        loaded: Loaded,
        rules: &'r [CompiledRule],
        budget: Budget,
    ) -> Saturation<'r> {
        let own = loaded.egraph.total_number_of_nodes();
        let budget =
            Budget { nodes: budget.nodes.max(own), rounds: budget.rounds, matches: budget.matches.max(own) };
        let report = Report { nodes: (own, own), ..Report::default() };
        Saturation {
            loaded,
            rules,
            firings: Vec::new(),
            same_object: HashSet::new(),
            produced: HashSet::new(),
            undirected: HashSet::new(),
            equated: 0,
            turned: HashSet::new(),
            one_by_one: false,
            contract: Contract::Exact,
            trace: None,
            budget,
            added: 0,
            pending: 0,
            report,
        }
    }

    pub(in crate::rewrite) fn saturate(&mut self, graph: &Graph) {
        let depths: Vec<u8> = self.rules.iter().map(|rule| agenda::depth(&rule.left)).collect();
        let levels = depths.iter().copied().max().unwrap_or(0);
        let mut agenda = Agenda::of_all(&self.loaded);
        for round in 0..self.budget.rounds {
            self.report.rounds = round + 1;
            if round > 0 {
                let changed = std::mem::take(&mut self.loaded.egraph.analysis.changed);
                let above = self.loaded.egraph.analysis.above.take();
                agenda = Agenda::of_changed(&self.loaded, &changed, &above, levels);
            }
            let before = self.firings.len();
            for (n, depth) in depths.iter().enumerate() {
                if !self.rules[n].applies_under(self.contract) {
                    continue;
                }
                self.apply(graph, n, &agenda, *depth);
                if self.is_full() {
                    self.report.stopped_by = Some("nodes");
                    break;
                }
            }
            self.rebuild();
            let turned = std::mem::take(&mut self.turned);
            self.turned = turned.iter().map(|node| self.loaded.canonical(node)).collect();
            if self.firings.len() == before || self.is_full() {
                break;
            }
            if round + 1 == self.budget.rounds {
                self.report.stopped_by = Some("rounds");
            }
        }
        self.rebuild();
        self.refuse_left_out(graph);
        self.report.nodes.1 = self.loaded.egraph.total_number_of_nodes();
        for firing in &self.firings {
            *self.report.fired.entry(Arc::clone(&self.rules[firing.rule].name)).or_insert(0) += 1;
        }
    }

    /// Notes where the rule in question would have fired under a weaker contract.
    fn refuse_left_out(&mut self, graph: &Graph) {
        let Some(name) = self.trace.as_ref().and_then(|trace| trace.why_not.clone()) else { return };
        let agenda = Agenda::of_all(&self.loaded);
        for n in (0..self.rules.len()).filter(|n| self.rules[*n].name == name) {
            let Some(reason) = self.rules[n].weaker_than(self.contract) else { continue };
            for id in agenda.candidates(&self.loaded, &self.rules[n], 0) {
                for subst in matches(&self.loaded, &self.rules[n].left, id, &Subst::default()) {
                    let root = self.loaded.egraph.find(id);
                    let names = Names { loaded: &self.loaded, graph: Some(graph), subst: &subst, root };
                    if holds(&self.rules[n], &names).is_none() {
                        self.refuse(graph, n, id, &subst, || reason.clone());
                    }
                }
            }
        }
    }

    fn is_full(&self) -> bool {
        self.added >= self.budget.nodes
    }

    fn apply(&mut self, graph: &Graph, n: usize, agenda: &Agenda, depth: u8) {
        let rule = &self.rules[n];
        let mut left = self.budget.matches;
        let before = self.firings.len();
        let added = self.added;
        'all: for id in agenda.candidates(&self.loaded, rule, depth) {
            for subst in matches(&self.loaded, &rule.left, id, &Subst::default()) {
                let Some(rest) = left.checked_sub(1) else {
                    self.report.stopped_by = Some("matches");
                    self.refuse(graph, n, id, &subst, || "the budget of matches is spent".to_string());
                    break;
                };
                left = rest;
                if !rule.prefers_right
                    && self.equated + (self.added - added) >= self.budget.nodes / EQUATIONS_SHARE
                {
                    self.report.stopped_by = Some("nodes");
                    self.refuse(graph, n, id, &subst, || {
                        "the equations' share of nodes is spent".to_string()
                    });
                    break 'all;
                }
                self.fire(graph, n, id, &subst);
                if self.is_full() {
                    break 'all;
                }
            }
        }
        if !rule.prefers_right {
            self.equated += self.added - added;
        }
        if self.firings.len() > before {
            *self.report.grew.entry(Arc::clone(&rule.name)).or_insert(0) += self.added - added;
            self.pending += self.firings.len() - before;
            // Repairing the e-graph reads all of it: in a large one that waits until it is worth it.
            if self.pending * REPAIRED_PER_FIRING >= self.loaded.egraph.number_of_classes() {
                self.rebuild();
            }
        }
    }

    fn rebuild(&mut self) {
        if self.pending > 0 {
            self.pending = 0;
            restore(&mut self.loaded.egraph);
        }
    }

    /// Makes the two sides of a match equal, if the rule's conditions hold and the change is unobservable.
    fn fire(&mut self, graph: &Graph, n: usize, id: Id, subst: &Subst) {
        let rule = &self.rules[n];
        let root = self.loaded.egraph.find(id);
        let names = Names { loaded: &self.loaded, graph: Some(graph), subst, root };
        if let Some(failed) = holds(rule, &names) {
            let reason = || format!("the condition {} does not hold", rule.conditions[failed]);
            return self.refuse(graph, n, id, subst, reason);
        }
        if self.reads_what_is_written(rule, subst) {
            return self
                .refuse(graph, n, id, subst, || "the right side reads what is written to".to_string());
        }
        self.loaded.last_built = None;
        if turns_around(rule) {
            build(&mut self.loaded, &rule.left, subst, root);
            let known = |n: &Node| self.turned.contains(n);
            if self.loaded.last_built.as_ref().is_some_and(|n| known(&self.loaded.canonical(n))) {
                return self.refuse(graph, n, id, subst, || trace::EQUAL.to_string());
            }
        }
        self.loaded.last_built = None;
        let size = self.loaded.egraph.total_size();
        let right = build(&mut self.loaded, &rule.right, subst, root);
        self.added += self.loaded.egraph.total_size() - size;
        let Some(right) = right else {
            return self.refuse(graph, n, id, subst, || "its arithmetic has no result".to_string());
        };
        if let Some(node) = self.loaded.last_built.take() {
            if turns_around(rule) {
                self.turned.insert(self.loaded.canonical(&node));
            }
            let nodes = if rule.prefers_right { &mut self.produced } else { &mut self.undirected };
            nodes.insert(node);
        }
        let (root, right) = (self.loaded.egraph.find(root), self.loaded.egraph.find(right));
        if root == right {
            return self.refuse(graph, n, id, subst, || trace::EQUAL.to_string());
        }
        let (a, b) = (&self.loaded.egraph[root].data, &self.loaded.egraph[right].data);
        let same = is_same_object(rule);
        let mutable = AliasDb::is_mutable_type(&a.ty) || AliasDb::is_mutable_type(&b.ty);
        if mutable && !same && (a.written || b.written) {
            return self.refuse(graph, n, id, subst, || {
                "identity: what is written to would be another object".to_string()
            });
        }
        if let Some(trace) = &mut self.trace {
            let about = (&self.produced, trace.cost);
            let Some(recorded) = trace::record(&mut self.loaded, graph, rule, subst, (root, right), about)
            else {
                return;
            };
            trace.firings.push(recorded);
        }
        let a = &self.loaded.egraph[root].data;
        if same {
            let kind = root_kind(&rule.left);
            let own = |v: &ValueId| graph.def_op(*v).is_some_and(|op| Some(graph.kind(op)) == kind);
            let values: Vec<ValueId> = a.values.iter().copied().filter(own).collect();
            self.same_object.extend(values);
        }
        let node = self.matched(rule, root, subst);
        self.loaded.egraph[root].data.touched = true;
        self.loaded.egraph.union(root, right);
        self.firings.push(Firing { rule: n, root, node });
    }

    /// The node of a class that a rule matched.
    fn matched(&self, rule: &CompiledRule, root: Id, subst: &Subst) -> Option<Node> {
        let Term::Op(pattern) = &rule.left else { return None };
        let is_it = |n: &&Node| {
            match_op(&self.loaded, pattern, n, &Subst::default()).iter().any(|found| found.0 == subst.0)
        };
        self.loaded.egraph[root].nodes.iter().filter(|_| self.one_by_one).find(is_it).cloned()
    }

    /// Notes why a match was not applied, for the rule in question.
    fn refuse(&mut self, graph: &Graph, n: usize, id: Id, subst: &Subst, reason: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace
            && trace.why_not.as_ref() == Some(&self.rules[n].name)
        {
            let (reason, root) = (reason(), self.loaded.egraph.find(id));
            // What the rule itself made equal is not a refusal.
            let own = |f: &Firing| f.rule == n && self.loaded.egraph.find(f.root) == root;
            if reason != trace::EQUAL || !self.firings.iter().any(own) {
                trace.refuse(&self.loaded, graph, &self.rules[n], (id, subst), &reason);
            }
        }
    }

    /// A right side must not read contents that change: it may run at another time than what it replaces.
    fn reads_what_is_written(&self, rule: &CompiledRule, subst: &Subst) -> bool {
        if only_views(&rule.right) {
            return false;
        }
        let egraph = &self.loaded.egraph;
        let written = |id: &Id| egraph[egraph.find(*id)].data.written;
        subst.0.iter().any(|(name, bound)| {
            mentions(&rule.right, name)
                && match bound {
                    Bound::One(id) => written(id),
                    Bound::Many(ids) => ids.iter().any(written),
                }
        })
    }
}

pub(in crate::rewrite) fn mentions(term: &Term, name: &str) -> bool {
    match term {
        Term::Variable(n, _) | Term::Rest(n, ..) => **n == *name,
        Term::Op(node) => node.operands.iter().any(|t| mentions(t, name)),
        Term::List(_, items) => items.iter().any(|t| mentions(t, name)),
        _ => false,
    }
}

/// Whether a rule does nothing but give an op's operands in another order.
fn turns_around(rule: &CompiledRule) -> bool {
    let (Term::Op(left), Term::Op(right)) = (&rule.left, &rule.right) else { return false };
    let plain = |node: &crate::rewrite::load::rule::OpNode| {
        node.operands.iter().all(|t| matches!(t, Term::Variable(..)))
    };
    left.op.same(&right.op) && plain(left) && plain(right)
}

/// The op at the root of a left side.
pub(in crate::rewrite) fn root_kind(term: &Term) -> Option<Symbol> {
    match term {
        Term::Op(node) => Some(node.op.name()),
        _ => None,
    }
}

/// Whether a term only reads memory that is there.
pub(in crate::rewrite) fn only_views(term: &Term) -> bool {
    match term {
        Term::Op(node) => passes_on(&node.op) && node.operands.iter().all(only_views),
        // A list holds objects; it does not read them.
        Term::List(_, items) => items.iter().all(only_views),
        _ => true,
    }
}

/// Whether an op gives an object or memory on, or asks about it, without reading contents.
fn passes_on(op: &Op) -> bool {
    let def = op.def();
    matches!(def.family, Family::View)
        || def.facts.contains(&Fact::Metadata)
        || def.effects.contains(Effects::IDENTITY)
}

/// Whether both sides of a rule are the same object, or views of the same memory, whatever is written.
pub(in crate::rewrite) fn is_same_object(rule: &CompiledRule) -> bool {
    let Some(name) = object_of(&rule.right) else { return false };
    way_to(&rule.left, &name)
}

/// The variable whose memory a term of views shows.
fn object_of(term: &Term) -> Option<Arc<str>> {
    match term {
        Term::Variable(name, _) => Some(Arc::clone(name)),
        Term::Op(node) if is_view(&node.op) => object_of(node.operands.first()?),
        _ => None,
    }
}

/// Whether the result always shows the operand's memory.
pub(in crate::rewrite) fn is_view(op: &Op) -> bool {
    op.def().family == Family::View && !op.def().facts.contains(&Fact::MayCopy)
}

/// Whether every op from the root down to the variable gives objects on.
fn way_to(term: &Term, name: &str) -> bool {
    match term {
        Term::Variable(n, _) => **n == *name,
        Term::List(_, items) => items.iter().any(|t| way_to(t, name)),
        Term::Op(node) => {
            let def = node.op.def();
            let passes = matches!(def.family, Family::View | Family::Container | Family::Control)
                || def.facts.contains(&Fact::Metadata);
            passes
                && !def.facts.contains(&Fact::MayCopy)
                && node.operands.iter().chain(node.blocks.iter().flatten()).any(|t| way_to(t, name))
        }
        _ => false,
    }
}
