//! Why a rule was not taken: at each match the reason, and where nothing matched how far the nearest match got.

use crate::ir::{Attr, Graph, ValueId};
use crate::rewrite::egraph::agenda::Agenda;
use crate::rewrite::egraph::enter::Loaded;
use crate::rewrite::egraph::language::Head;
use crate::rewrite::egraph::matching::type_fits;
use crate::rewrite::egraph::saturate::{Saturation, root_kind};
use crate::rewrite::egraph::trace::{Trace, class};
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::load::syntax::Contract;
use crate::rewrite::report::WhyNot;
use crate::rewrite::report::place;
use egg::Id;
use indexmap::IndexMap;
use std::sync::Arc;

/// What extraction made of a value.
#[derive(Clone, Debug)]
pub(in crate::rewrite) enum Decision {
    /// It was replaced, by these rules.
    Replaced(String, Vec<Arc<str>>),
    /// It stays, for this reason.
    Stays(String),
}

/// The answers about one rule, over the graph as it was before anything was written back.
pub(in crate::rewrite) fn answer(
    graph: &Graph,
    run: &Saturation<'_>,
    trace: &Trace,
    decisions: &IndexMap<ValueId, Decision>,
) -> Vec<WhyNot> {
    let Some(name) = &trace.why_not else { return Vec::new() };
    let rules: Vec<&CompiledRule> = run.rules.iter().filter(|rule| rule.name == *name).collect();
    let mut answers: Vec<WhyNot> = Vec::new();
    let mut add = |value: Option<ValueId>, matched: &str, reason: String, taken: bool| {
        let location = value.and_then(|v| graph.def_op(v)).and_then(|op| place(graph, op));
        let value = value.map(|v| graph.display_name(v));
        answers.push(WhyNot { value, location, matched: matched.to_string(), reason, taken });
    };
    if rules.is_empty() {
        add(None, "", "the pass has no rule of this name".to_string(), false);
    } else if rules.iter().all(|rule| rule.writes) {
        add(None, "", "the rule writes, and is only ever checked".to_string(), false);
    } else if let Some(reason) = left_out(&rules, run.contract)
        && trace.refused.is_empty()
    {
        add(None, "", reason, false);
    }
    for (recorded, firing) in trace.firings.iter().zip(&run.firings) {
        if run.rules[firing.rule].name != *name {
            continue;
        }
        let own = |v: &&ValueId| is_root(graph, &run.rules[firing.rule], **v);
        let values: Vec<ValueId> = recorded.values.iter().filter(own).copied().collect();
        if values.is_empty() {
            add(
                None,
                &recorded.before,
                "it fired on a form that the program does not have".to_string(),
                false,
            );
        }
        for value in values {
            let (reason, taken) = match decisions.get(&value) {
                Some(Decision::Replaced(after, by)) if by.contains(name) => (format!("taken: {after}"), true),
                Some(Decision::Replaced(after, by)) => {
                    (format!("not needed: {after} by {} is no worse", by.join(", ")), false)
                }
                Some(Decision::Stays(reason)) => (reason.clone(), false),
                None => ("the value is no longer used".to_string(), false),
            };
            add(Some(value), &recorded.before, reason, taken);
        }
    }
    for refused in &trace.refused {
        let own = refused.values.iter().find(|v| rules.iter().any(|rule| is_root(graph, rule, **v)));
        add(own.or(refused.values.first()).copied(), &refused.matched, refused.reason.clone(), false);
    }
    if answers.is_empty() {
        answers.push(nearest(graph, &run.loaded, &rules));
    }
    answers
}

/// The answer about a rule that matched nowhere, or that does not exist.
pub(in crate::rewrite) fn unmatched(
    graph: &Graph,
    loaded: &Loaded,
    rules: &[CompiledRule],
    name: &str,
    contract: Contract,
) -> Vec<WhyNot> {
    let own: Vec<&CompiledRule> = rules.iter().filter(|rule| *rule.name == *name).collect();
    let plain = |reason: &str| {
        let (matched, reason) = (String::new(), reason.to_string());
        vec![WhyNot { value: None, location: None, matched, reason, taken: false }]
    };
    if own.is_empty() {
        plain("the pass has no rule of this name")
    } else if own.iter().all(|rule| rule.writes) {
        plain("the rule writes, and is only ever checked")
    } else if let Some(reason) = left_out(&own, contract) {
        plain(&reason)
    } else {
        vec![nearest(graph, loaded, &own)]
    }
}

/// Why no reading of a rule may be applied, if that is for its contract.
fn left_out(rules: &[&CompiledRule], contract: Contract) -> Option<String> {
    rules.first()?.weaker_than(contract)
}

/// Whether a value is made by the op at the root of a rule.
fn is_root(graph: &Graph, rule: &CompiledRule, value: ValueId) -> bool {
    let kind = root_kind(&rule.left);
    kind.is_none() || graph.def_op(value).map(|op| graph.kind(op)) == kind
}

/// How far the match got that got the farthest.
fn nearest(graph: &Graph, loaded: &Loaded, rules: &[&CompiledRule]) -> WhyNot {
    let mut best: Option<(usize, usize, Id, String)> = None;
    let everywhere = Agenda::of_all(loaded);
    for rule in rules {
        for id in everywhere.candidates(loaded, rule, 0) {
            let (matched, miss) = progress(loaded, graph, &rule.left, id);
            if matched > 0 && best.as_ref().is_none_or(|(most, ..)| matched > *most) {
                let miss = miss.unwrap_or_else(|| "two places of a variable differ".to_string());
                best = Some((matched, size(&rule.left), id, miss));
            }
        }
    }
    let (matched, reason) = match best {
        Some((n, of, id, miss)) => (
            class(loaded, graph, id, 0),
            format!("nothing matched; the nearest match has {n} of {of} terms: {miss}"),
        ),
        None => (String::new(), "nothing matched; no op of the graph is the one at its root".to_string()),
    };
    WhyNot { value: None, location: None, matched, reason, taken: false }
}

/// Terms that are not variables.
fn size(term: &Term) -> usize {
    match term {
        Term::Op(node) => {
            1 + node.operands.iter().chain(node.blocks.iter().flatten()).map(size).sum::<usize>()
        }
        Term::List(_, items) => 1 + items.iter().map(size).sum::<usize>(),
        Term::Constant(..) | Term::Compute(..) => 1,
        Term::Variable(..) | Term::Rest(..) => 0,
    }
}

/// How many terms match at a class, and the first that does not.
fn progress(loaded: &Loaded, graph: &Graph, term: &Term, id: Id) -> (usize, Option<String>) {
    let id = loaded.egraph.find(id);
    let here = class(loaded, graph, id, 0);
    let data = &loaded.egraph[id].data;
    let (wanted, terms, row) = match term {
        Term::Variable(_, ty) if type_fits(ty, &data.ty) => return (0, None),
        Term::Variable(name, ty) => return (0, Some(format!("?{name} is {ty}, and {here} is {}", data.ty))),
        Term::Rest(..) => return (0, None),
        Term::Constant(_, attr) => {
            let wanted = attr.clone().unwrap_or(Attr::None);
            if data.constant.as_ref().is_some_and(|(_, known)| *known == wanted) {
                return (1, None);
            }
            return (
                0,
                Some(format!(
                    "{} is wanted where {here} is",
                    crate::rewrite::load::shown::attr_text(&wanted)
                )),
            );
        }
        Term::Compute(..) => {
            let miss = data.constant.is_none().then(|| format!("a constant is wanted where {here} is"));
            return (usize::from(miss.is_none()), miss);
        }
        Term::List(_, items) => ("a list".to_string(), items.iter().collect::<Vec<_>>(), loaded.list_row()),
        Term::Op(node) => {
            let terms = node.operands.iter().chain(node.blocks.iter().flatten()).collect();
            (node.op.name().to_string(), terms, Some(&node.op))
        }
    };
    let mut best: Option<(usize, Option<String>)> = None;
    for node in &loaded.egraph[id].nodes {
        let node = match loaded.head(node) {
            Head::Result(_) => {
                let inner = &loaded.egraph[loaded.egraph.find(node.children[0])].nodes;
                inner.first().unwrap_or(node)
            }
            _ => node,
        };
        let Head::Op(head) = loaded.head(node) else { continue };
        if !row.is_some_and(|row| row.same(&head.op)) {
            continue;
        }
        let mut found = (1, None);
        for (term, child) in terms.iter().zip(&node.children) {
            if matches!(term, Term::Rest(..)) {
                break;
            }
            let (n, miss) = progress(loaded, graph, term, *child);
            found.0 += n;
            found.1 = found.1.or(miss);
        }
        if best.as_ref().is_none_or(|(most, _)| found.0 > *most) {
            best = Some(found);
        }
    }
    best.unwrap_or_else(|| (0, Some(format!("{wanted} is wanted where {here} is"))))
}
