//! What is odd about a file of rules without being wrong: names that nothing uses, rules that never get a term to
//! themselves because an earlier one takes all of theirs, conditions that no term meets, and rules that want the
//! same term. Nothing here runs an op; the check of the laws is in `check`.

use crate::diag::Diagnostic;
use crate::dialects::Registry;
use crate::ir::{Attr, Type, TypeKind};
use crate::resources::budget;
use crate::rewrite::egraph::matching::type_fits;
use crate::rewrite::load::compile::{compile, result_type};
use crate::rewrite::load::condition;
use crate::rewrite::load::condition::{Kind, Seen, Subjects};
use crate::rewrite::load::rule::{CompiledRule, OpNode, Term};
use crate::rewrite::load::syntax::{Condition, Expr, Literal, Rule, RuleTerm, TermKind};
use crate::tensor::DType;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

/// What is odd, in the order of the text, as warnings with places.
pub fn lint(registry: &Registry, rules: &[Rule]) -> Vec<Diagnostic> {
    let mut found = Vec::new();
    let compiled: Vec<Vec<CompiledRule>> =
        rules.iter().map(|rule| compile(registry, rule).unwrap_or_default()).collect();
    let mut sieve = Sieve::default();
    for (n, rule) in rules.iter().enumerate() {
        // What is found until then is thrown away: the caller checks the limits next.
        if budget::is_stopped() {
            break;
        }
        found.extend(unused(rule));
        let impossible = compiled[n].iter().all(never_holds) && !compiled[n].is_empty();
        if impossible {
            found.push(
                Diagnostic::compile(format!("rule {} is unreachable: its conditions never hold", rule.name))
                    .at(&rule.span)
                    .warning(),
            );
            continue;
        }
        let mut earlier = sieve.met_by(&compiled[n]);
        // A directed group takes its rules in their order, and no pass takes them with others.
        let beside = |other: &Rule| other.directed || rule.directed;
        earlier.retain(|other| !beside(&rules[*other]) || rules[*other].group == rule.group);
        let taker = earlier.iter().find_map(|earlier| taken(rules, &compiled, *earlier, n));
        if let Some(odd) = taker {
            // What meets this rule meets the one that takes all of it: to repeat it would not help.
            found.push(odd);
            continue;
        }
        let rivals = earlier.iter().filter(|_| !rule.directed);
        found.extend(rivals.filter_map(|earlier| overlapping(rules, &compiled, *earlier, n)));
        sieve.add(n, &compiled[n]);
    }
    found
}

/// Which rules may meet, by the heads of their left sides: of many rules most have nothing to do with each other.
#[derive(Default)]
struct Sieve(Vec<(Heads, usize)>);

/// The head of a term, those of its first three operands, and of each of these those of its first two, as numbers; 0 may be
/// anything.
type Heads = [u64; 10];

impl Sieve {
    fn add(&mut self, rule: usize, readings: &[CompiledRule]) {
        for heads in distinct_heads(readings) {
            self.0.push((heads, rule));
        }
    }

    /// Rules that were added and may meet one, in order.
    fn met_by(&self, readings: &[CompiledRule]) -> Vec<usize> {
        let own = distinct_heads(readings);
        let fits = |a: &Heads, b: &Heads| a.iter().zip(b).all(|(a, b)| a == b || *a == 0 || *b == 0);
        let met = self.0.iter().filter(|(heads, _)| own.iter().any(|own| fits(own, heads)));
        let mut met: Vec<usize> = met.map(|(_, rule)| *rule).collect();
        met.dedup();
        met
    }
}

fn distinct_heads(readings: &[CompiledRule]) -> Vec<Heads> {
    let mut all: Vec<Heads> = Vec::new();
    for reading in readings {
        let heads = heads(&reading.left);
        if !all.contains(&heads) {
            all.push(heads);
        }
    }
    all
}

fn heads(term: &Term) -> Heads {
    let mut heads = [0; 10];
    heads[0] = head(term);
    for (n, operand) in operands(term).iter().take(3).enumerate() {
        heads[1 + n] = head(operand);
        for (place, inner) in heads[4 + 2 * n..6 + 2 * n].iter_mut().zip(operands(operand)) {
            *place = head(inner);
        }
    }
    heads
}

fn operands(term: &Term) -> &[Term] {
    match term {
        Term::Op(node) => &node.operands,
        _ => &[],
    }
}

fn head(term: &Term) -> u64 {
    let number = |what: &dyn Fn(&mut DefaultHasher)| {
        let mut hasher = DefaultHasher::new();
        what(&mut hasher);
        hasher.finish().max(1)
    };
    match term {
        Term::Variable(..) | Term::Rest(..) | Term::Compute(..) => 0,
        Term::Op(node) => number(&|h| (0, node.op.name(), node.operands.len()).hash(h)),
        Term::List(..) => 1,
        // Other constants may be equal although they are written in several ways.
        Term::Constant(_, Some(Attr::Int(x))) => number(&|h| (1, x).hash(h)),
        Term::Constant(_, Some(Attr::Str(x))) => number(&|h| (2, x).hash(h)),
        Term::Constant(..) => 0,
    }
}

/// Names of the left side that nothing else mentions; those that begin with `_` are meant so.
fn unused(rule: &Rule) -> Vec<Diagnostic> {
    let mut names = rule.left.names();
    names.extend(rule.right.names());
    let mut mentioned: Vec<String> = names.iter().map(|(name, _)| (*name).to_string()).collect();
    for condition in &rule.conditions {
        condition.exprs(&mut |expr| expr.names(&mut |name, _| mentioned.push(name.to_string())));
    }
    // What is drawn from a typed argument says which overload is meant.
    let one = |name: &str| mentioned.iter().filter(|other| *other == name).count() == 1;
    let left = rule.left.names();
    let odd = left.iter().filter(|(name, _)| !name.starts_with('_') && one(name));
    odd.map(|(name, span)| {
        let what =
            if is_bound(&rule.left, name) { "names a term that nothing uses" } else { "is never used" };
        Diagnostic::compile(format!("?{name} of rule {} {what}", rule.name))
            .at(span)
            .hint(format!("?_{name} says that this is meant"))
            .warning()
    })
    .collect()
}

fn is_bound(term: &RuleTerm, name: &str) -> bool {
    let mut found = false;
    term.walk(&mut |term| {
        found |= matches!(&term.kind, TermKind::Op(op) if op.bound.as_deref() == Some(name));
    });
    found
}

/// Whether an earlier rule matches wherever this one does.
fn taken(rules: &[Rule], compiled: &[Vec<CompiledRule>], earlier: usize, later: usize) -> Option<Diagnostic> {
    let covers = |b: &CompiledRule| {
        compiled[earlier].iter().any(|a| {
            let mut names = Vec::new();
            covers(&a.left, &b.left, &mut names) && a.conditions.iter().all(|c| implied(c, &names, b))
        })
    };
    let all = !compiled[later].is_empty() && compiled[later].iter().all(covers);
    all.then(|| {
        let (first, rule) = (&rules[earlier], &rules[later]);
        let text =
            format!("rule {} is unreachable: {} takes every term that it takes", rule.name, first.name);
        let label = format!("{} precedes it", first.name);
        Diagnostic::compile(text).at(&rule.span).label(&first.span, label).warning()
    })
}

/// Whether a condition of an earlier rule is one of a later rule's, under other names.
fn implied(condition: &Condition, names: &[(Arc<str>, &Term)], later: &CompiledRule) -> bool {
    let renamed = rename(&condition.to_string(), |name| match names.iter().find(|(n, _)| **n == *name) {
        Some((_, Term::Variable(other, _) | Term::Rest(other, ..))) => other.to_string(),
        Some((_, Term::Op(node))) => node.bound.as_deref().unwrap_or("").to_string(),
        _ => name.to_string(),
    });
    later.conditions.iter().any(|c| c.to_string() == renamed)
}

/// A condition's text with other names for its variables.
fn rename(text: &str, other: impl Fn(&str) -> String) -> String {
    let mut out = String::new();
    for (n, part) in text.split('?').enumerate() {
        if n == 0 {
            out.push_str(part);
            continue;
        }
        let end = part.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(part.len());
        out += &format!("?{}{}", other(&part[..end]), &part[end..]);
    }
    out
}

/// Whether one left side matches wherever another does; `names` gets what its variables stand for.
fn covers<'t>(general: &Term, special: &'t Term, names: &mut Vec<(Arc<str>, &'t Term)>) -> bool {
    match (general, special) {
        (Term::Variable(name, ty), _) => {
            if matches!(special, Term::Rest(..)) || !type_fits(ty, &result_type(special)) {
                return false;
            }
            match names.iter().find(|(n, _)| n == name) {
                Some((_, known)) => is_same(known, special),
                None => {
                    names.push((Arc::clone(name), special));
                    true
                }
            }
        }
        (Term::Rest(name, ..), Term::Rest(..)) => {
            names.push((Arc::clone(name), special));
            true
        }
        (Term::Constant(..), Term::Constant(..)) => is_same(general, special),
        (Term::List(_, a), Term::List(_, b)) => all_cover(a, b, names),
        (Term::Op(a), Term::Op(b)) if same_op(a, b) => {
            if let Some(name) = &a.bound {
                names.push((Arc::clone(name), special));
            }
            all_cover(&a.operands, &b.operands, names)
                && a.blocks.len() == b.blocks.len()
                && a.blocks.iter().zip(&b.blocks).all(|(a, b)| all_cover(a, b, names))
        }
        _ => false,
    }
}

fn all_cover<'t>(a: &[Term], b: &'t [Term], names: &mut Vec<(Arc<str>, &'t Term)>) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| covers(a, b, names))
}

fn same_op(a: &OpNode, b: &OpNode) -> bool {
    let attributes = a.attributes.len() == b.attributes.len()
        && a.attributes.iter().zip(&b.attributes).all(|(a, b)| a.0 == b.0 && is_same(&a.1, &b.1));
    a.op.same(&b.op) && a.result == b.result && attributes
}

/// Whether two terms are the same text.
fn is_same(a: &Term, b: &Term) -> bool {
    match (a, b) {
        (Term::Variable(a, _), Term::Variable(b, _)) | (Term::Rest(a, ..), Term::Rest(b, ..)) => a == b,
        (Term::Constant(t, a), Term::Constant(u, b)) => t == u && a == b,
        (Term::List(_, a), Term::List(_, b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| is_same(a, b))
        }
        (Term::Op(a), Term::Op(b)) => {
            same_op(a, b)
                && a.operands.len() == b.operands.len()
                && a.operands.iter().zip(&b.operands).all(|(a, b)| is_same(a, b))
                && a.blocks.is_empty()
                && b.blocks.is_empty()
        }
        _ => false,
    }
}

/// Two rules that some term both want, where neither takes all that the other takes, and that make of it what only
/// looks alike.
fn overlapping(
    rules: &[Rule],
    compiled: &[Vec<CompiledRule>],
    earlier: usize,
    later: usize,
) -> Option<Diagnostic> {
    let meet = |a: &CompiledRule, b: &CompiledRule| {
        // A special case of a general law is not an overlap; neither are two sides of one condition.
        let nested = covers(&a.left, &b.left, &mut Vec::new()) || covers(&b.left, &a.left, &mut Vec::new());
        let mut pairs = Vec::new();
        !nested && unify(&a.left, &b.left, &mut pairs) && !contradict(a, b, &pairs)
    };
    let found = compiled[earlier].iter().any(|a| compiled[later].iter().any(|b| meet(a, b)));
    found.then(|| {
        let (first, rule) = (&rules[earlier], &rules[later]);
        Diagnostic::compile(format!("rules {} and {} overlap: some terms match both", first.name, rule.name))
            .at(&rule.left.span)
            .label(&first.left.span, format!("{} takes them too", first.name))
            .hint("saturation keeps what is cheapest of both; the greedy driver takes what saves most, then the first")
            .warning()
    })
}

/// Whether some term matches both; `pairs` gets variables that stand at one place.
fn unify(a: &Term, b: &Term, pairs: &mut Vec<(Arc<str>, Arc<str>)>) -> bool {
    let all = |a: &[Term], b: &[Term], pairs: &mut Vec<(Arc<str>, Arc<str>)>| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| unify(a, b, pairs))
    };
    match (a, b) {
        (Term::Variable(x, t), Term::Variable(y, u)) => {
            pairs.push((Arc::clone(x), Arc::clone(y)));
            type_fits(t, u) || type_fits(u, t)
        }
        (Term::Variable(_, t), other) | (other, Term::Variable(_, t)) => type_fits(t, &result_type(other)),
        (Term::Rest(..), _) | (_, Term::Rest(..)) => true,
        (Term::Constant(..), Term::Constant(..)) => is_same(a, b),
        (Term::Compute(..), Term::Constant(..) | Term::Compute(..))
        | (Term::Constant(..), Term::Compute(..)) => true,
        (Term::List(_, x), Term::List(_, y)) => {
            let open = |items: &[Term]| items.iter().any(|t| matches!(t, Term::Rest(..)));
            open(x) || open(y) || all(x, y, pairs)
        }
        (Term::Op(x), Term::Op(y)) => {
            same_op(x, y)
                && all(&x.operands, &y.operands, pairs)
                && x.blocks.len() == y.blocks.len()
                && x.blocks.iter().zip(&y.blocks).all(|(x, y)| all(x, y, pairs))
        }
        _ => false,
    }
}

/// Whether no term meets the conditions of both, where their variables stand at one place.
fn contradict(a: &CompiledRule, b: &CompiledRule, pairs: &[(Arc<str>, Arc<str>)]) -> bool {
    pairs.iter().any(|(x, y)| {
        let own = conditions_of(a, x);
        let other = conditions_of(b, y);
        let ty = type_of(&a.left, x).unwrap_or_else(Type::tensor);
        let fits = |seen: &Seen| {
            let holds = |all: &[&Condition], name: &str| {
                all.iter().all(|c| condition::holds(c, &One(name, seen)) == Some(true))
            };
            holds(&own, x) && holds(&other, y)
        };
        let mut mentioned = mentioned(&own);
        mentioned.extend(self::mentioned(&other));
        !own.is_empty() && !other.is_empty() && !universe(&ty, &mentioned).iter().any(fits)
    })
}

/// Whether the conditions on one variable cannot all hold.
fn never_holds(rule: &CompiledRule) -> bool {
    let mut names: Vec<(Arc<str>, Type)> = Vec::new();
    variables(&rule.left, &mut names);
    names.iter().any(|(name, ty)| {
        let own = conditions_of(rule, name);
        let fits = |seen: &Seen| own.iter().all(|c| condition::holds(c, &One(name, seen)) == Some(true));
        !own.is_empty() && !universe(ty, &mentioned(&own)).iter().any(fits)
    })
}

fn variables(term: &Term, found: &mut Vec<(Arc<str>, Type)>) {
    match term {
        Term::Variable(name, ty) if !found.iter().any(|(n, _)| n == name) => {
            found.push((Arc::clone(name), ty.clone()));
        }
        Term::Op(node) => {
            node.operands.iter().chain(node.blocks.iter().flatten()).for_each(|t| variables(t, found));
        }
        Term::List(_, items) => items.iter().for_each(|t| variables(t, found)),
        _ => {}
    }
}

fn type_of(term: &Term, name: &str) -> Option<Type> {
    let mut found = Vec::new();
    variables(term, &mut found);
    found.into_iter().find(|(n, _)| **n == *name).map(|(_, ty)| ty)
}

/// Conditions that speak of one variable alone, and of nothing that many values are needed to try.
fn conditions_of<'r>(rule: &'r CompiledRule, name: &str) -> Vec<&'r Condition> {
    let speaks = |condition: &&Condition| {
        let mut fine = true;
        let mut mentions = false;
        condition.exprs(&mut |expr| {
            fine &= is_plain(expr);
            expr.names(&mut |n, _| {
                fine &= n == name;
                mentions |= n == name;
            });
        });
        fine && mentions && !is_about_sizes(condition)
    };
    rule.conditions.iter().filter(speaks).collect()
}

/// A name, a literal, or what the universe below tries in full.
fn is_plain(expr: &Expr) -> bool {
    match expr {
        Expr::Name(..) | Expr::Literal(_) => true,
        Expr::Negate(inner) => matches!(&**inner, Expr::Literal(_)),
        Expr::Call(name, arguments, _) => {
            matches!(name.as_str(), "rank" | "dim" | "dtype") && arguments.iter().all(is_plain)
        }
        Expr::Binary(..) | Expr::List(_) => false,
    }
}

fn is_about_sizes(condition: &Condition) -> bool {
    match condition {
        Condition::Test(name, ..) => {
            // What follows from kind, dtype and rank is tried; the rest may hold.
            !matches!(
                name.as_str(),
                "is_float"
                    | "is_complex"
                    | "is_integral"
                    | "is_int"
                    | "is_bool"
                    | "is_signed"
                    | "is_tensor"
                    | "is_scalar"
                    | "is_none"
                    | "not_none"
            )
        }
        Condition::Not(inner) => is_about_sizes(inner),
        Condition::Any(parts) | Condition::All(parts) => parts.iter().any(is_about_sizes),
        Condition::Member(..) | Condition::Compare(..) => false,
    }
}

fn mentioned(conditions: &[&Condition]) -> Vec<Attr> {
    fn literal(expr: &Expr, found: &mut Vec<Attr>) {
        match expr {
            Expr::Literal(Literal::Int(x)) => {
                found.extend((-1..=1).map(|d| Attr::Int(x.saturating_add(d))));
                found.extend((-1..=1).map(|d| Attr::Int(x.saturating_neg().saturating_add(d))));
            }
            Expr::Literal(Literal::Float(x)) => {
                found.extend([*x, -x, x + 1.0, x - 1.0, -x - 1.0].map(Attr::Float));
            }
            Expr::Literal(Literal::Str(x)) => found.push(Attr::Str(x.as_str().into())),
            Expr::Call(_, arguments, _) => arguments.iter().for_each(|a| literal(a, found)),
            Expr::Negate(a) => literal(a, found),
            _ => {}
        }
    }
    let mut found = Vec::new();
    conditions.iter().for_each(|c| c.exprs(&mut |expr| literal(expr, &mut found)));
    found
}

/// Everything that a variable of a type may be, as far as conditions distinguish.
fn universe(ty: &Type, mentioned: &[Attr]) -> Vec<Seen> {
    let ints = || mentioned.iter().cloned().chain([-2, -1, 0, 1, 2, i64::MAX, i64::MIN].map(Attr::Int));
    let constants = |kind: Kind, all: Vec<Attr>| -> Vec<Seen> {
        let one = |constant| Seen { kind, constant: Some(constant), one_use: true, ..Seen::default() };
        all.into_iter().map(one).chain([Seen { kind, ..Seen::default() }]).collect()
    };
    match ty.kind() {
        TypeKind::Tensor(_) => {
            let mut all = Vec::new();
            for dtype in (0..64).filter_map(DType::from_code).filter(|d| d.is_computable()) {
                for rank in 0..9 {
                    let sizes = Some((0..rank).map(|_| Some(2)).collect());
                    all.push(Seen { kind: Kind::Tensor, dtype: Some(dtype), sizes, ..Seen::default() });
                }
            }
            all
        }
        TypeKind::Int => constants(Kind::Int, ints().filter(|a| a.as_int().is_some()).collect()),
        TypeKind::Bool => constants(Kind::Bool, vec![Attr::Bool(false), Attr::Bool(true)]),
        TypeKind::Float => {
            let special = [0.0, -1.0, 1.0, 1e300, -1e300, f64::NAN].map(Attr::Float);
            let whole = ints().filter_map(|a| Some(Attr::Float(a.as_int()? as f64)));
            let own = mentioned.iter().filter(|a| matches!(a, Attr::Float(_))).cloned();
            constants(Kind::Float, own.chain(special).chain(whole).collect())
        }
        // Of other types too much may be true: one thing that meets any condition stands for them.
        _ => {
            let mut all = universe(&Type::int(), mentioned);
            all.extend(universe(&Type::float(), mentioned));
            all.extend(universe(&Type::bool(), mentioned));
            all.extend(universe(&Type::tensor(), mentioned));
            all.extend([Kind::None, Kind::Other, Kind::List, Kind::Complex].map(|kind| Seen {
                kind,
                constant: mentioned.iter().find(|a| matches!(a, Attr::Str(_))).cloned(),
                ..Seen::default()
            }));
            all
        }
    }
}

/// One variable.
struct One<'a>(&'a str, &'a Seen);

impl Subjects for One<'_> {
    fn seen(&self, name: &str) -> Option<Seen> {
        (name == self.0).then(|| self.1.clone())
    }

    fn are_values(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    use crate::rewrite::parse;

    fn odd(text: &str) -> Vec<String> {
        let rules = parse(&Source::new("t.rules", text)).expect("rules");
        lint(&Registry::builtin(), &rules).iter().map(|d| d.message().to_string()).collect()
    }

    #[test]
    fn a_plain_rule_is_not_odd() {
        let text = "rule a exact aten::neg(aten::neg(?x: Tensor)) => ?x if rank(?x) <= 2 and is_float(?x)\n\
                    rule b exact aten::relu(aten::relu(?x: Tensor)) => aten::relu(?x)\n\
                    rule c exact aten::len([?_a: int, ?_b: int]) => 2";
        assert_eq!(odd(text), Vec::<String>::new());
    }

    #[test]
    fn names_without_use_are_named() {
        let text = "rule a exact aten::len([?k: int, ?_l: int]) => 2\n\
                    rule b exact aten::neg(?m@aten::neg(?x: Tensor)) => ?x";
        let found = odd(text);
        assert_eq!(found, ["?k of rule a is never used", "?m of rule b names a term that nothing uses"]);
    }

    #[test]
    fn conditions_that_never_hold_are_named() {
        for condition in [
            "is_float(?x) and is_integral(?x)",
            "rank(?x) == 1 and rank(?x) > 2",
            "dtype(?x) in {float32} and not is_float(?x)",
            "dtype(?x) == bool and is_signed(?x)",
        ] {
            let found = odd(&format!("rule a exact aten::neg(?x: Tensor) => ?x if {condition}"));
            assert_eq!(found, ["rule a is unreachable: its conditions never hold"], "{condition}");
        }
        for condition in ["?n > 3 and ?n < 2", "is_float(?n)", "?n == 1 and ?n != 1"] {
            let found = odd(&format!("rule a exact aten::neg(?n: int) => ?n if {condition}"));
            assert_eq!(found, ["rule a is unreachable: its conditions never hold"], "{condition}");
        }
        let fine = "rule a exact aten::neg(?n: int) => ?n if ?n > 3 and ?n < 5 and is_const(?n)";
        assert!(odd(fine).is_empty());
        let sizes = "rule a exact aten::neg(?x: Tensor) => ?x if size(?x, 0) == 2 and size(?x, 1) == 3";
        assert!(odd(sizes).is_empty());
    }

    #[test]
    fn rules_whose_terms_are_taken_are_named() {
        let found = odd("rule a exact aten::mul(?x: Tensor, ?y: Tensor) => aten::mul(?y, ?x)\n\
                         rule b exact aten::mul(aten::neg(?x: Tensor), ?z: Tensor) => aten::mul(?z, aten::neg(?x))");
        assert_eq!(found, ["rule b is unreachable: a takes every term that it takes"]);
        // A condition of the earlier rule that the later one lacks leaves it terms of its own.
        let found = odd("rule a exact aten::neg(?x: Tensor) => ?x if rank(?x) == 2\n\
                         rule b exact aten::neg(?y: Tensor) => ?y\n\
                         rule c exact aten::neg(?z: Tensor) => ?z if rank(?z) == 2");
        assert_eq!(found, ["rule c is unreachable: a takes every term that it takes"]);
    }

    #[test]
    fn rules_that_want_one_term_are_named() {
        let text = "rule a exact aten::add(?x: int, 0) => ?x\nrule b exact aten::add(0, ?x: int) => ?x";
        assert_eq!(odd(text), ["rules a and b overlap: some terms match both"]);
        let apart = "rule a exact aten::mul(aten::neg(?x: Tensor), ?y: Tensor) => ?x if is_float(?y)\n\
                     rule b exact aten::mul(?x: Tensor, aten::neg(?y: Tensor)) => ?x if is_float(?y)";
        assert_eq!(odd(apart).len(), 1);
        let apart = "rule a exact aten::mul(?x: Tensor, aten::abs(?y: Tensor)) => ?y if is_float(?x)\n\
                     rule b exact aten::mul(?x: Tensor, aten::neg(?y: Tensor)) => ?y if is_integral(?x)";
        assert!(odd(apart).is_empty());
    }
}
