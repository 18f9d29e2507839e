//! Saturation: rules are applied to an e-graph until nothing is new or a counted budget is spent.

use super::compile::{CompiledRule, Term, result_type};
use super::extract;
use super::language::{Facts, Knowledge, Node};
use super::condition::{self, Kind, Seen, Subjects};
use super::region::{self, Region};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::dialects::Family;
use crate::ir::{Graph, TypeKind};
use egg::{EGraph, ENodeOrVar, Id, Pattern, PatternAst, Searcher, Subst, Symbol as EggSymbol, Var};
use indexmap::IndexMap;
use smallvec::SmallVec;
use std::sync::Arc;

/// Counted limits: never time, so that the same input gives the same output.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Nodes of one region's e-graph.
    pub nodes: usize,
    /// Rounds over all rules.
    pub rounds: usize,
    /// Matches of one rule in one round.
    pub matches: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { nodes: 20_000, rounds: 8, matches: 2_000 }
    }
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How often each rule made two things equal that were not, in the order of first firing.
    pub fired: IndexMap<Arc<str>, usize>,
    /// Ops that were replaced.
    pub replaced: usize,
}

/// Simplifies every region of a graph.
pub fn simplify(
    graph: &mut Graph,
    registry: &Registry,
    rules: &[CompiledRule],
    budget: &Budget,
) -> Result<Report> {
    let mut report = Report::default();
    for region in region::regions(graph, registry) {
        run(graph, &region, rules, budget, &mut report);
    }
    Ok(report)
}

fn run(graph: &mut Graph, region: &Region, rules: &[CompiledRule], budget: &Budget, report: &mut Report) {
    let mut egraph: EGraph<Node, Knowledge> = EGraph::new(Knowledge::default());
    let classes = region.load(graph, &mut egraph);
    egraph.rebuild();
    let patterns: Vec<Compiled> = rules.iter().filter_map(|rule| Compiled::new(&mut egraph, rule)).collect();
    let mut changed = false;
    for _ in 0..budget.rounds {
        let mut new = false;
        for compiled in &patterns {
            new |= compiled.apply(graph, region, &classes, &mut egraph, budget, report);
            if egraph.total_number_of_nodes() > budget.nodes {
                break;
            }
        }
        changed |= new;
        if !new || egraph.total_number_of_nodes() > budget.nodes {
            break;
        }
    }
    if changed {
        report.replaced += extract::write_back(graph, region, &classes, &egraph);
    }
}

/// A rule whose left side is a pattern of this e-graph.
struct Compiled<'r> {
    rule: &'r CompiledRule,
    pattern: Pattern<Node>,
}

impl<'r> Compiled<'r> {
    fn new(egraph: &mut EGraph<Node, Knowledge>, rule: &'r CompiledRule) -> Option<Compiled<'r>> {
        let mut ast: PatternAst<Node> = PatternAst::default();
        add_pattern(egraph, &rule.left, &mut ast)?;
        Some(Compiled { rule, pattern: Pattern::new(ast) })
    }

    fn apply(
        &self,
        graph: &Graph,
        region: &Region,
        classes: &region::Classes,
        egraph: &mut EGraph<Node, Knowledge>,
        budget: &Budget,
        report: &mut Report,
    ) -> bool {
        let found = self.pattern.search_with_limit(egraph, budget.matches);
        let mut new = false;
        for matched in found {
            for subst in &matched.substs {
                let root = egraph.find(matched.eclass);
                if !self.holds(graph, region, classes, egraph, root, subst) {
                    continue;
                }
                let Some(right) = build(egraph, &self.rule.right, subst) else { continue };
                if egraph.find(right) != root {
                    egraph.union(root, right);
                    new = true;
                    *report.fired.entry(Arc::clone(&self.rule.name)).or_insert(0) += 1;
                }
            }
            if egraph.total_number_of_nodes() > budget.nodes {
                break;
            }
        }
        egraph.rebuild();
        new
    }

    /// Whether types fit, the rule's conditions hold, and nobody can tell the two sides apart by identity.
    fn holds(
        &self,
        graph: &Graph,
        region: &Region,
        classes: &region::Classes,
        egraph: &EGraph<Node, Knowledge>,
        root: Id,
        subst: &Subst,
    ) -> bool {
        let facts = |name: &str| -> Option<&Facts> {
            if name == "result" {
                return Some(&egraph[root].data);
            }
            subst.get(variable(name)).map(|id| &egraph[*id].data)
        };
        let fits = variables_fit(&self.rule.left, &facts);
        let matched = Matched { graph, classes, egraph, root, subst };
        fits && self.rule.conditions.iter().all(|c| condition::holds(c, &matched) == Some(true))
            && (keeps_identity(self.rule) || region.may_change_identity(graph, egraph, classes, root))
    }
}

/// Whether both sides are fresh values or both are not: else identity can be told.
fn keeps_identity(rule: &CompiledRule) -> bool {
    !result_type(&rule.left).is_tensor() || is_fresh(&rule.left) == is_fresh(&rule.right)
}

/// Whether a term makes a tensor of its own, and does not show another's memory.
fn is_fresh(term: &Term) -> bool {
    matches!(term, Term::Op(node) if node.op.def().family != Family::View)
}

/// What the e-graph knows of a match.
struct Matched<'a> {
    graph: &'a Graph,
    classes: &'a region::Classes,
    egraph: &'a EGraph<Node, Knowledge>,
    root: Id,
    subst: &'a Subst,
}

impl Subjects for Matched<'_> {
    fn seen(&self, name: &str) -> Option<Seen> {
        let id = if name == "result" { self.root } else { *self.subst.get(variable(name))? };
        let facts = &self.egraph[id].data;
        let one_use = self.classes.one_use(self.graph, self.egraph, id);
        let kind = match facts.ty.kind() {
            TypeKind::Tensor(_) => Kind::Tensor,
            TypeKind::Int => Kind::Int,
            TypeKind::Float => Kind::Float,
            TypeKind::Complex => Kind::Complex,
            TypeKind::Bool => Kind::Bool,
            TypeKind::List(_) => Kind::List,
            TypeKind::None => Kind::None,
            _ => Kind::Other,
        };
        let mut seen = Seen { kind, one_use, constant: facts.constant.clone(), ..Seen::default() };
        seen.may_be_none = matches!(facts.ty.kind(), TypeKind::Optional(_) | TypeKind::Any | TypeKind::Union(_));
        if let TypeKind::Tensor(t) = facts.ty.kind() {
            seen.dtype = t.dtype;
            seen.sizes = t.sizes.as_ref().map(|s| s.iter().map(|d| d.known()).collect());
            seen.strides = t.strides.as_ref().and_then(|s| s.iter().copied().collect());
        }
        Some(seen)
    }
}

/// Whether each variable's value has the type that its place in the rule wants.
fn variables_fit<'f>(term: &Term, facts: &impl Fn(&str) -> Option<&'f Facts>) -> bool {
    match term {
        Term::Variable(name, wanted) => facts(name).is_some_and(|f| match (wanted.kind(), f.ty.kind()) {
            (TypeKind::Tensor(_), TypeKind::Tensor(_)) | (TypeKind::Any, _) => true,
            (TypeKind::Number, TypeKind::Int | TypeKind::Float | TypeKind::Complex | TypeKind::Number) => {
                true
            }
            _ => *wanted == f.ty,
        }),
        Term::Op(node) => node.operands.iter().all(|operand| variables_fit(operand, facts)),
        _ => true,
    }
}

pub(super) fn variable(name: &str) -> Var {
    Var::from(EggSymbol::from(format!("?{name}")))
}

fn add_pattern(egraph: &mut EGraph<Node, Knowledge>, term: &Term, ast: &mut PatternAst<Node>) -> Option<Id> {
    Some(match term {
        Term::Variable(name, _) => ast.add(ENodeOrVar::Var(variable(name))),
        Term::Constant(ty, attr) => {
            let head = egraph.analysis.heads.constant(ty, attr.as_ref());
            ast.add(ENodeOrVar::ENode(Node { head, children: SmallVec::new() }))
        }
        Term::Op(node) if node.blocks.is_empty() && node.result.is_none() && node.attributes.is_empty() => {
            let mut children = SmallVec::new();
            for operand in &node.operands {
                children.push(add_pattern(egraph, operand, ast)?);
            }
            let head = egraph.analysis.heads.op(&node.op);
            ast.add(ENodeOrVar::ENode(Node { head, children }))
        }
        _ => return None,
    })
}

/// Adds the right side of a match to the e-graph.
fn build(egraph: &mut EGraph<Node, Knowledge>, term: &Term, subst: &Subst) -> Option<Id> {
    Some(match term {
        Term::Variable(name, _) => *subst.get(variable(name))?,
        Term::Constant(ty, attr) => {
            let head = egraph.analysis.heads.constant(ty, attr.as_ref());
            egraph.add(Node { head, children: SmallVec::new() })
        }
        Term::Op(node) if node.blocks.is_empty() && node.result.is_none() && node.attributes.is_empty() => {
            let mut children = SmallVec::new();
            for operand in &node.operands {
                children.push(build(egraph, operand, subst)?);
            }
            let head = egraph.analysis.heads.op(&node.op);
            egraph.analysis.stated = Some(result_type(term));
            egraph.add(Node { head, children })
        }
        _ => return None,
    })
}
