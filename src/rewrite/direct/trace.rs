//! What the greedy driver records on request: each rewrite with its one rule, both sides and their cost,
//! and for one rule also why its matches came to nothing. The forms are those of explained saturation.

use super::graph_match::{Bound, Names, Subst, constant_of};
use super::greedy::{Driver, Reason};
use crate::ir::{OpId, ValueId};
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::Subjects;
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::shown::attr_text;
use crate::rewrite::report::{Link, WhyNot};
use crate::rewrite::report::{Replacement, place};
use std::sync::Arc;

/// What a rewrite replaces.
pub(in crate::rewrite) struct Before {
    name: String,
    location: Option<String>,
    op: String,
    left: String,
    right: String,
    cost: (u64, u64),
}

impl Driver<'_> {
    /// What stands there before a rewrite.
    pub(in crate::rewrite) fn before(
        &self,
        rule: &CompiledRule,
        op: OpId,
        value: ValueId,
        subst: &Subst,
    ) -> Before {
        let own = |term| self.cost_of_term(term, subst, value);
        Before {
            name: self.graph.display_name(value),
            location: place(self.graph, op),
            op: self.op_text(op),
            left: self.term_text(&rule.left, subst, value),
            right: self.term_text(&rule.right, subst, value),
            cost: (own(&rule.left), own(&rule.right)),
        }
    }

    /// Notes a rewrite.
    pub(in crate::rewrite) fn record(
        &mut self,
        rule: &CompiledRule,
        (value, new): (ValueId, ValueId),
        before: Before,
        cost: (u64, u64),
    ) {
        let after = match self.graph.def_op(new).filter(|_| !matches!(rule.right, Term::Variable(..))) {
            Some(op) => self.op_text(op),
            None => format!("%{}", self.graph.display_name(new)),
        };
        if self.questions.why_not.as_ref() == Some(&rule.name) {
            let reason = format!("taken: {after}");
            let (matched, value) = (before.left.clone(), Some(before.name.clone()));
            let location = before.location.clone();
            self.report.why_not.push(WhyNot { value, location, matched, reason, taken: true });
        }
        let link = Link {
            rule: Arc::clone(&rule.name),
            place: format!("{}:{}", rule.span.source().name(), rule.span.line_column().0),
            before: before.left,
            after: before.right,
            cost: before.cost,
        };
        let rules = vec![Arc::clone(&rule.name)];
        let (name, location, before) = (before.name, before.location, before.op);
        let chain = vec![link];
        self.report.steps.push(Replacement { name, location, before, after, rules, cost, chain });
        // A place where it was not taken at first.
        self.refused.retain(|(known, _)| *known != value);
    }

    /// Notes why a match of the rule in question came to nothing; the same reason at the same place once.
    pub(in crate::rewrite) fn refuse(
        &mut self,
        rule: &CompiledRule,
        value: ValueId,
        subst: &Subst,
        reason: &Reason,
    ) {
        if self.questions.why_not.as_ref() != Some(&rule.name) {
            return;
        }
        let reason = match reason {
            Reason::Condition(n) => format!("the condition {} does not hold", rule.conditions[*n]),
            Reason::Contract(reason) => reason.clone(),
            Reason::Written => "the right side reads what is written to".to_string(),
            Reason::OutOfSight => "an operand of the right side is not there yet".to_string(),
            Reason::Identity => "identity: a fresh object would become an alias, or the reverse".to_string(),
            Reason::NoGain(saved, cost) => format!("not cheaper: it would save {saved} and cost {cost}"),
            Reason::NoResult => "its arithmetic has no result".to_string(),
        };
        let matched = self.term_text(&rule.left, subst, value);
        if self.refused.insert((value, format!("{matched} {reason}"))) {
            let location = self.graph.def_op(value).and_then(|op| place(self.graph, op));
            let value = Some(self.graph.display_name(value));
            self.report.why_not.push(WhyNot { value, location, matched, reason, taken: false });
        }
    }

    fn op_text(&self, op: OpId) -> String {
        let operands: Vec<String> =
            self.graph.operands(op).iter().map(|v| format!("%{}", self.graph.display_name(*v))).collect();
        let attrs = match self.graph.attr(op, "value") {
            Some(attr) => format!("[value={}]", attr_text(attr)),
            None => String::new(),
        };
        format!("{}{attrs}({})", self.graph.kind(op), operands.join(", "))
    }

    fn value_text(&self, value: ValueId) -> String {
        match constant_of(self.graph, value) {
            Some((_, attr)) => attr_text(&attr),
            None => format!("%{}", self.graph.display_name(value)),
        }
    }

    /// A term as text, with values for its variables.
    fn term_text(&self, term: &Term, subst: &Subst, root: ValueId) -> String {
        let all = |terms: &[Term]| -> Vec<String> {
            terms.iter().map(|t| self.term_text(t, subst, root)).filter(|t| !t.is_empty()).collect()
        };
        match term {
            Term::Variable(name, _) => match subst.get(name) {
                Some(Bound::One(value)) => self.value_text(*value),
                _ => format!("?{name}"),
            },
            Term::Rest(name, _, bounds) => match subst.get(name) {
                Some(Bound::Many(all)) => {
                    let names =
                        Names { graph: self.graph, subst, root, lists: self.lists.as_ref(), count: None };
                    let part = condition::part(all, bounds.as_deref(), &names).unwrap_or_default();
                    part.iter().map(|v| self.value_text(*v)).collect::<Vec<_>>().join(", ")
                }
                _ => format!("?{name}..."),
            },
            Term::Constant(_, attr) => attr.as_ref().map_or("None".to_string(), attr_text),
            Term::Compute(expr, _) => {
                let names = Names { graph: self.graph, subst, root, lists: self.lists.as_ref(), count: None };
                condition::evaluate(expr, &names as &dyn Subjects).map_or("?".to_string(), |a| attr_text(&a))
            }
            Term::List(_, items) => format!("[{}]", all(items).join(", ")),
            Term::Op(node) => node.text(&all),
        }
    }
}
