//! What saturation records when explanations are requested: for each firing the nodes that the left side
//! matched, both sides as text, and their costs; for one rule also why its matches came to nothing. A run without
//! questions records nothing.

use super::enter::{Loaded, op_of};
use super::language::{Head, Node};
use super::matching::{Bound, Names, Subst, build, match_op, sequence};
use crate::ir::{Graph, Type, ValueId};
use crate::rewrite::cost::CostModel;
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::Subjects;
use crate::rewrite::load::rule::{CompiledRule, Term};
use egg::Id;
use hashbrown::HashSet;
use std::sync::Arc;

/// Why a match does nothing that another rule came before.
pub(super) const EQUAL: &str = "both sides are equal already, by other rules";
/// Classes without a value are shown so deep.
const SHOWN_DEPTH: usize = 4;

/// What is recorded.
#[derive(Clone, Debug, Default)]
pub(in crate::rewrite) struct Trace {
    /// Of each firing, in their order.
    pub(in crate::rewrite) firings: Vec<Recorded>,
    /// Nodes that were one class before any rule was applied.
    pub(in crate::rewrite) given: Vec<(Node, Node)>,
    /// The rule in question.
    pub(in crate::rewrite) why_not: Option<Arc<str>>,
    /// Its matches that came to nothing: the match, the values that it stands for, and why.
    pub(in crate::rewrite) refused: Vec<Refused>,
    /// By which measure.
    pub(in crate::rewrite) cost: CostModel,
    seen: HashSet<(Id, String)>,
}

/// A firing.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct Recorded {
    /// What the left side matched.
    pub(in crate::rewrite) left: Witness,
    /// A node of the right side's class.
    pub(in crate::rewrite) right: Node,
    /// Where the left side has the variable that is the right side.
    pub(in crate::rewrite) kept: Option<Vec<usize>>,
    /// Values that were in the class of the match.
    pub(in crate::rewrite) values: Vec<ValueId>,
    /// Both sides.
    pub(in crate::rewrite) before: String,
    pub(in crate::rewrite) after: String,
    /// Cost of both sides.
    pub(in crate::rewrite) cost: (u64, u64),
}

/// A match that came to nothing.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct Refused {
    pub(in crate::rewrite) values: Vec<ValueId>,
    pub(in crate::rewrite) matched: String,
    pub(in crate::rewrite) reason: String,
}

/// The nodes that a term matched.
#[derive(Clone, Debug)]
pub(in crate::rewrite) struct Witness {
    pub(in crate::rewrite) node: Node,
    /// Of operands that are not variables, by their position.
    pub(in crate::rewrite) parts: Vec<(usize, Witness)>,
    /// Positions of variables.
    pub(in crate::rewrite) variables: Vec<(Arc<str>, usize)>,
}

impl Trace {
    pub(in crate::rewrite) fn new(loaded: &Loaded, why_not: Option<Arc<str>>, cost: CostModel) -> Trace {
        let mut given = Vec::new();
        let mut classes: Vec<_> = loaded.egraph.classes().collect();
        classes.sort_unstable_by_key(|class| class.id);
        for class in classes {
            let Some((first, others)) = class.nodes.split_first() else { continue };
            given.extend(others.iter().map(|node| (first.clone(), node.clone())));
        }
        Trace { given, why_not, cost, ..Trace::default() }
    }

    /// Notes why a match of the rule in question came to nothing; the same reason at the same class once.
    pub(in crate::rewrite) fn refuse(
        &mut self,
        loaded: &Loaded,
        graph: &Graph,
        rule: &CompiledRule,
        at: (Id, &Subst),
        reason: &str,
    ) {
        let (id, subst) = at;
        let id = loaded.egraph.find(id);
        let matched = shown(loaded, graph, &rule.left, subst, id);
        if self.seen.insert((id, format!("{matched} {reason}"))) {
            let values = loaded.egraph[id].data.values.to_vec();
            self.refused.push(Refused { values, matched, reason: reason.to_string() });
        }
    }
}

/// Describes a match before its sides are made equal.
pub(in crate::rewrite) fn record(
    loaded: &mut Loaded,
    graph: &Graph,
    rule: &CompiledRule,
    subst: &Subst,
    (root, right): (Id, Id),
    (produced, model): (&HashSet<Node>, CostModel),
) -> Option<Recorded> {
    // A left side that is a variable matches any node.
    let any = Witness {
        node: loaded.egraph[root].nodes.first()?.clone(),
        parts: Vec::new(),
        variables: Vec::new(),
    };
    let left = witness(loaded, produced, &rule.left, root, subst).unwrap_or(any);
    let kept = match &rule.right {
        Term::Variable(name, _) => way(&left, name),
        _ => None,
    };
    let nodes = &loaded.egraph[right].nodes;
    let is_constant = |node: &&Node| matches!(loaded.head(node), Head::Constant(..));
    let node = match &rule.right {
        Term::Op(op) => nodes.iter().find(|n| op_of(loaded, n).is_some_and(|h| h.op.same(&op.op))),
        _ => nodes.iter().find(is_constant),
    };
    let node = node.or(nodes.first())?.clone();
    Some(Recorded {
        kept,
        right: node,
        values: loaded.egraph[root].data.values.to_vec(),
        before: shown(loaded, graph, &rule.left, subst, root),
        after: shown(loaded, graph, &rule.right, subst, root),
        cost: (left.cost(loaded, model, root), term_cost(loaded, &rule.right, subst, root, model)),
        left,
    })
}

/// The nodes that a term matched, those of the program before those that rules made.
fn witness(loaded: &Loaded, produced: &HashSet<Node>, term: &Term, id: Id, subst: &Subst) -> Option<Witness> {
    let id = loaded.egraph.find(id);
    let mut nodes: Vec<&Node> = loaded.egraph[id].nodes.iter().collect();
    nodes.sort_by_key(|node| produced.contains(*node));
    let leaf = |node: &Node| Witness { node: node.clone(), parts: Vec::new(), variables: Vec::new() };
    for node in nodes {
        let terms: Vec<&Term> = match (term, loaded.head(node)) {
            (Term::Op(pattern), Head::Result(n)) if pattern.result == Some(*n) => {
                let mut whole = pattern.clone();
                whole.result = None;
                let part = witness(loaded, produced, &Term::Op(whole), node.children[0], subst);
                let Some(part) = part else { continue };
                return Some(Witness { parts: vec![(0, part)], ..leaf(node) });
            }
            (Term::Op(pattern), Head::Op(_)) if pattern.result.is_none() => {
                if match_op(loaded, pattern, node, subst).is_empty() {
                    continue;
                }
                pattern.operands.iter().chain(pattern.blocks.iter().flatten()).collect()
            }
            (Term::List(_, items), Head::Op(head)) => {
                let is_list = loaded.list_row().is_some_and(|row| head.op.same(row));
                if !is_list || sequence(loaded, items, &node.children, subst).is_empty() {
                    continue;
                }
                items.iter().collect()
            }
            (Term::Constant(..) | Term::Compute(..), Head::Constant(..)) => return Some(leaf(node)),
            _ => continue,
        };
        let mut found = leaf(node);
        let mut at = 0;
        for term in terms {
            match term {
                Term::Rest(name, ..) => match subst.get(name) {
                    Some(Bound::Many(ids)) => at += ids.len(),
                    _ => return None,
                },
                Term::Variable(name, _) => {
                    found.variables.push((Arc::clone(name), at));
                    at += 1;
                }
                _ => {
                    let part = witness(loaded, produced, term, *node.children.get(at)?, subst)?;
                    found.parts.push((at, part));
                    at += 1;
                }
            }
        }
        return Some(found);
    }
    None
}

/// The way from the root to the first place of a variable.
fn way(witness: &Witness, name: &str) -> Option<Vec<usize>> {
    if let Some((_, at)) = witness.variables.iter().find(|(n, _)| **n == *name) {
        return Some(vec![*at]);
    }
    witness.parts.iter().find_map(|(at, part)| {
        let rest = way(part, name)?;
        Some(std::iter::once(*at).chain(rest).collect())
    })
}

impl Witness {
    fn cost(&self, loaded: &Loaded, model: CostModel, id: Id) -> u64 {
        let egraph = &loaded.egraph;
        let ty = |id: Id| &egraph[egraph.find(id)].data.ty;
        let own = op_of(loaded, &self.node).map_or(0, |head| {
            let operands: Vec<&Type> = self.node.children.iter().map(|c| ty(*c)).collect();
            model.cost(&head.op, &operands, ty(id))
        });
        let parts = self.parts.iter().map(|(at, part)| part.cost(loaded, model, self.node.children[*at]));
        own + parts.sum::<u64>()
    }
}

/// The cost of the ops of a right side that has been built.
fn term_cost(loaded: &mut Loaded, term: &Term, subst: &Subst, root: Id, model: CostModel) -> u64 {
    let (row, operands) = match term {
        Term::Op(node) => (Some(node.op.clone()), &node.operands),
        Term::List(_, items) => (loaded.list_row().cloned(), items),
        _ => return 0,
    };
    let inner: u64 = operands.iter().map(|t| term_cost(loaded, t, subst, root, model)).sum();
    let mut ids = Vec::new();
    for operand in operands {
        match operand {
            Term::Rest(name, _, bounds) => {
                let Some(Bound::Many(many)) = subst.get(name) else { continue };
                let names = Names { loaded, graph: None, subst, root };
                ids.extend(condition::part(many, bounds.as_deref(), &names).unwrap_or_default());
            }
            // What is built already is only found again.
            _ => ids.extend(build(loaded, operand, subst, root)),
        }
    }
    let result = build(loaded, term, subst, root).unwrap_or(root);
    let ty = |id: Id| &loaded.egraph[loaded.egraph.find(id)].data.ty;
    let types: Vec<&Type> = ids.iter().map(|id| ty(*id)).collect();
    inner + row.map_or(0, |row| model.cost(&row, &types, ty(result)))
}

/// A term as text, with values for its variables.
pub(in crate::rewrite) fn shown(
    loaded: &Loaded,
    graph: &Graph,
    term: &Term,
    subst: &Subst,
    root: Id,
) -> String {
    let all = |terms: &[Term]| -> Vec<String> {
        terms.iter().map(|t| shown(loaded, graph, t, subst, root)).filter(|t| !t.is_empty()).collect()
    };
    match term {
        Term::Variable(name, _) => match subst.get(name) {
            Some(Bound::One(id)) => class(loaded, graph, *id, 0),
            _ => format!("?{name}"),
        },
        Term::Rest(name, _, bounds) => match subst.get(name) {
            Some(Bound::Many(ids)) => {
                let names = Names { loaded, graph: Some(graph), subst, root };
                let ids = condition::part(ids, bounds.as_deref(), &names).unwrap_or_default();
                ids.iter().map(|id| class(loaded, graph, *id, 0)).collect::<Vec<_>>().join(", ")
            }
            _ => format!("?{name}..."),
        },
        Term::Constant(_, attr) => {
            attr.as_ref().map_or("None".to_string(), crate::rewrite::load::shown::attr_text)
        }
        Term::Compute(expr, _) => {
            let names = Names { loaded, graph: Some(graph), subst, root };
            condition::evaluate(expr, &names as &dyn Subjects)
                .map_or("?".to_string(), |a| crate::rewrite::load::shown::attr_text(&a))
        }
        Term::List(_, items) => format!("[{}]", all(items).join(", ")),
        Term::Op(node) => node.text(&all),
    }
}

/// A class as text: its constant, its first value, or what computes it.
pub(in crate::rewrite) fn class(loaded: &Loaded, graph: &Graph, id: Id, depth: usize) -> String {
    let class_of = &loaded.egraph[loaded.egraph.find(id)];
    if let Some((_, attr)) = &class_of.data.constant {
        return crate::rewrite::load::shown::attr_text(attr);
    }
    if let Some(value) = class_of.data.values.first() {
        return format!("%{}", graph.display_name(*value));
    }
    let Some(node) = class_of.nodes.first().filter(|_| depth < SHOWN_DEPTH) else { return "...".to_string() };
    let children: Vec<String> = node.children.iter().map(|c| class(loaded, graph, *c, depth + 1)).collect();
    match loaded.head(node) {
        Head::Op(head) => format!("{}({})", head.op.name(), children.join(", ")),
        Head::Result(n) => format!("{}.{n}", children.join(", ")),
        Head::Constant(..) | Head::Leaf(_) => "...".to_string(),
    }
}
