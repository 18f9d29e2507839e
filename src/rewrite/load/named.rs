//! What `let` names on right sides: terms that are made before all others and once, however often they stand there. Terms are
//! distinguished by their text; nothing here knows their values.

use super::rule::{Reading, Term};
use super::syntax::{Rule, RuleTerm};
use crate::diag::{Diagnostic, Result};
use crate::rewrite::load::shown::attr_text;
use std::sync::Arc;

/// The forms of what `let` names. Each must be a part of the right side.
pub(in crate::rewrite) fn first(
    rule: &Rule,
    right: &Term,
    read: impl Fn(&RuleTerm) -> Vec<Reading>,
) -> Result<Arc<[String]>> {
    let mut parts = Vec::new();
    right.parts(&mut |part| parts.push(form(part)));
    let one = |named: &RuleTerm| {
        let forms = read(named).into_iter().map(|(term, _)| form(&term));
        forms.into_iter().find(|form| parts.contains(form)).ok_or_else(|| {
            Diagnostic::compile(format!("the right side of rule {} does not take this term", rule.name))
                .at(&named.span)
                .hint("`let ?x = TERM in` names a part of the right side, of the type that its place wants")
        })
    };
    rule.named.iter().map(one).collect()
}

/// A term as text that identifies it within its rule.
pub(in crate::rewrite) fn form(term: &Term) -> String {
    match term {
        Term::Variable(name, _) => format!("?{name}"),
        Term::Rest(name, _, None) => format!("?{name}..."),
        Term::Rest(name, _, Some(part)) => format!("?{name}[{}:{}:{}]...", part[0], part[1], part[2]),
        Term::Constant(_, None) => "None".to_string(),
        Term::Constant(_, Some(attr)) => attr_text(attr),
        Term::Compute(expr, ty) => format!("({expr}): {ty}"),
        Term::List(_, items) => format!("[{}]", items.iter().map(form).collect::<Vec<_>>().join(", ")),
        Term::Op(node) => {
            let all = |terms: &[Term]| terms.iter().map(form).collect::<Vec<_>>();
            let attributes: Vec<String> =
                node.attributes.iter().map(|(name, term)| format!("{name}={}", form(term))).collect();
            format!("{}[{}]{}", node.op.id(), attributes.join(", "), node.text(&all))
        }
    }
}

impl Term {
    /// The term and all terms in it.
    pub(in crate::rewrite) fn parts<'t>(&'t self, visit: &mut dyn FnMut(&'t Term)) {
        visit(self);
        match self {
            Term::Op(node) => {
                node.operands.iter().chain(node.blocks.iter().flatten()).for_each(|t| t.parts(visit));
            }
            Term::List(_, items) => items.iter().for_each(|t| t.parts(visit)),
            Term::Variable(..) | Term::Rest(..) | Term::Constant(..) | Term::Compute(..) => {}
        }
    }
}
