//! Saturation: rules are applied to an e-graph until nothing is new or a counted budget is spent.

use super::compile::{CompiledRule, Term, result_type};
use super::extract;
use super::language::{Facts, Knowledge, Node};
use super::parse::Condition;
use super::region::{self, Region};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Attr, Graph, TensorType, TypeKind};
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
        let tensor = |name: &str| facts(name).and_then(|f| f.ty.as_tensor());
        let fits = variables_fit(&self.rule.left, &facts);
        fits && self.rule.conditions.iter().all(|condition| match condition {
            Condition::SameType(a, b) => {
                same(tensor(a), tensor(b), |x, y| same_dtype(x, y) && same_sizes(x, y))
            }
            Condition::SameShape(a, b) => same(tensor(a), tensor(b), same_sizes),
            Condition::SameDtype(a, b) => same(tensor(a), tensor(b), same_dtype),
            Condition::IsFloat(a) => facts(a).is_some_and(|f| match f.ty.kind() {
                TypeKind::Float => true,
                TypeKind::Tensor(t) => t.dtype.is_some_and(|d| d.is_floating()),
                _ => false,
            }),
            Condition::IsIntegral(a) => facts(a).is_some_and(|f| match f.ty.kind() {
                TypeKind::Int => true,
                TypeKind::Tensor(t) => t.dtype.is_some_and(|d| d.is_integral()),
                _ => false,
            }),
            Condition::DtypeIn(a, dtypes) => {
                tensor(a).and_then(|t| t.dtype).is_some_and(|d| dtypes.contains(&d))
            }
            Condition::Rank(a, sign, n) => {
                tensor(a).and_then(|t| t.sizes.as_ref()).is_some_and(|s| sign.holds(s.len() as i64, *n))
            }
            Condition::IsConst(a) => facts(a).is_some_and(|f| f.constant.is_some()),
            Condition::OneUse(a) => {
                let id = if a == "result" { Some(root) } else { subst.get(variable(a)).copied() };
                id.is_some_and(|id| classes.one_use(graph, egraph, id))
            }
            Condition::Compare(a, sign, n) => facts(a)
                .and_then(|f| f.constant.as_ref())
                .and_then(Attr::as_int)
                .is_some_and(|x| sign.holds(x, *n)),
        }) && (self.rule.keeps_identity || region.may_change_identity(graph, egraph, classes, root))
    }
}

fn same(
    a: Option<&TensorType>,
    b: Option<&TensorType>,
    test: impl Fn(&TensorType, &TensorType) -> bool,
) -> bool {
    matches!((a, b), (Some(a), Some(b)) if test(a, b))
}

fn same_dtype(a: &TensorType, b: &TensorType) -> bool {
    a.dtype.is_some() && a.dtype == b.dtype
}

fn same_sizes(a: &TensorType, b: &TensorType) -> bool {
    let known = |t: &TensorType| t.sizes.as_ref().is_some_and(|s| s.iter().all(|d| d.known().is_some()));
    known(a) && a.sizes == b.sizes
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
        Term::Constant(..) => true,
        Term::Op(_, operands) => operands.iter().all(|operand| variables_fit(operand, facts)),
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
        Term::Op(op, operands) => {
            let mut children = SmallVec::new();
            for operand in operands {
                children.push(add_pattern(egraph, operand, ast)?);
            }
            let head = egraph.analysis.heads.op(op);
            ast.add(ENodeOrVar::ENode(Node { head, children }))
        }
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
        Term::Op(op, operands) => {
            let mut children = SmallVec::new();
            for operand in operands {
                children.push(build(egraph, operand, subst)?);
            }
            let head = egraph.analysis.heads.op(op);
            egraph.analysis.stated = Some(result_type(term));
            egraph.add(Node { head, children })
        }
    })
}
