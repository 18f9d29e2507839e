//! From rules as written to rules over op rows: overloads chosen, defaults filled in. A rule whose overload
//! depends on a variable's type becomes one compiled rule an overload.

use super::parse::{Condition, Rule, RuleTerm};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Family, Op, Registry, Variant};
use crate::ir::schema::Argument;
use crate::ir::{Attr, Symbol, Type, TypeKind, parse_type};
use indexmap::IndexMap;
use std::sync::Arc;

/// A rule over op rows.
#[derive(Clone, Debug)]
pub struct CompiledRule {
    /// The rule's name.
    pub name: Arc<str>,
    /// What it looks for; its root is an op.
    pub left: Term,
    /// What that equals.
    pub right: Term,
    /// When.
    pub conditions: Vec<Condition>,
    /// Names of matched terms within the left side, with the way to them.
    pub bound: Vec<(String, Vec<usize>)>,
    /// Whether both sides are fresh values or both are not: else identity can be told.
    pub keeps_identity: bool,
}

/// A term over op rows.
#[derive(Clone, Debug)]
pub enum Term {
    /// A variable with the types it may have.
    Variable(String, Type),
    /// An op with all its arguments.
    Op(Op, Vec<Term>),
    /// A constant.
    Constant(Type, Option<Attr>),
}

/// Alternatives of one term are bounded.
const MAX_ALTERNATIVES: usize = 64;

/// Resolves a rule. An op that the table lacks gives no rule; a rule that no overload fits is an error.
pub fn compile(registry: &Registry, rule: &Rule) -> Result<Vec<CompiledRule>> {
    if !known(registry, &rule.left) || !known(registry, &rule.right) {
        return Ok(Vec::new());
    }
    let lefts = alternatives(registry, &rule.left, &IndexMap::new());
    let mut compiled = Vec::new();
    for left in lefts {
        if !matches!(left, Term::Op(..)) {
            continue;
        }
        let mut types = IndexMap::new();
        if !bind(&left, &mut types) {
            continue;
        }
        let wanted = result_type(&left);
        let right = alternatives(registry, &rule.right, &types).into_iter().find(|right| {
            result_type(right).unshaped() == wanted.unshaped() || matches!(right, Term::Variable(..))
        });
        let Some(right) = right else { continue };
        let keeps_identity = !wanted.is_tensor() || is_fresh(&left) == is_fresh(&right);
        compiled.push(CompiledRule {
            name: rule.name.as_str().into(),
            bound: bound_terms(&rule.left),
            left,
            right,
            conditions: rule.conditions.clone(),
            keeps_identity,
        });
    }
    if compiled.is_empty() {
        return Err(
            Diagnostic::compile(format!("no overloads fit both sides of rule {}", rule.name)).at(&rule.span)
        );
    }
    Ok(compiled)
}

fn known(registry: &Registry, term: &RuleTerm) -> bool {
    match term {
        RuleTerm::Op { kind, arguments, .. } => {
            !registry.overloads(Symbol::new(kind)).is_empty()
                && arguments.iter().all(|(_, t)| known(registry, t))
        }
        RuleTerm::List(items) => items.iter().all(|t| known(registry, t)),
        _ => true,
    }
}

/// All ways to read a term, in the order of overloads.
fn alternatives(registry: &Registry, term: &RuleTerm, types: &IndexMap<String, Type>) -> Vec<Term> {
    match term {
        RuleTerm::Variable(name, stated) => {
            let stated = stated.as_deref().and_then(|text| parse_type(text).ok());
            let ty = types.get(name).cloned().or(stated).unwrap_or_else(Type::any);
            vec![Term::Variable(name.clone(), ty)]
        }
        RuleTerm::Int(x) => vec![Term::Constant(Type::int(), Some(Attr::Int(*x)))],
        RuleTerm::Float(x) => vec![Term::Constant(Type::float(), Some(Attr::Float(*x)))],
        RuleTerm::Bool(x) => vec![Term::Constant(Type::bool(), Some(Attr::Int(i64::from(*x))))],
        RuleTerm::None => vec![Term::Constant(Type::none(), None)],
        RuleTerm::Str(x) => vec![Term::Constant(Type::str(), Some(Attr::Str(x.as_str().into())))],
        // Lists have an identity of their own and are not in the language yet.
        RuleTerm::List(_) => Vec::new(),
        RuleTerm::Op { kind, overload, arguments, .. } => {
            let mut found = Vec::new();
            for op in registry.overloads(Symbol::new(kind)) {
                let Ok(schema) = op.schema() else { continue };
                let wanted = overload.as_deref().is_none_or(|o| schema.overload == o);
                if wanted
                    && op.variant() == Variant::Plain
                    && !schema.is_mutable()
                    && schema.returns.len() == 1
                {
                    found.extend(overload_alternatives(registry, op, arguments, types));
                }
                if found.len() > MAX_ALTERNATIVES {
                    break;
                }
            }
            found
        }
    }
}

fn overload_alternatives(
    registry: &Registry,
    op: &Op,
    arguments: &[(Option<String>, RuleTerm)],
    types: &IndexMap<String, Type>,
) -> Vec<Term> {
    let Ok(schema) = op.schema() else { return Vec::new() };
    let named =
        |a: &(Option<String>, RuleTerm)| a.0.as_deref().is_none_or(|n| schema.argument_index(n).is_some());
    let positional = arguments.iter().filter(|(name, _)| name.is_none()).count();
    if positional > schema.arguments.len() || !arguments.iter().all(named) {
        return Vec::new();
    }
    let mut partial: Vec<Vec<Term>> = vec![Vec::new()];
    for (n, formal) in schema.arguments.iter().enumerate() {
        let given = match arguments.iter().find(|(name, _)| name.as_deref() == Some(formal.name.as_str())) {
            Some((_, term)) => Some(term),
            None => arguments.iter().filter(|(name, _)| name.is_none()).nth(n).map(|(_, term)| term),
        };
        let choices: Vec<Term> = match given {
            Some(term) => {
                let read = alternatives(registry, term, types).into_iter();
                read.filter_map(|t| accept(formal, t)).collect()
            }
            None => default_term(formal).into_iter().collect(),
        };
        partial = partial
            .into_iter()
            .flat_map(|prefix| {
                choices.iter().map(move |choice| prefix.iter().cloned().chain([choice.clone()]).collect())
            })
            .take(MAX_ALTERNATIVES)
            .collect();
    }
    partial.into_iter().map(|operands| Term::Op(op.clone(), operands)).collect()
}

/// The argument's default as a term.
fn default_term(formal: &Argument) -> Option<Term> {
    let ty = match formal.default.as_ref()? {
        Attr::Int(_) => Type::int(),
        Attr::Float(_) => Type::float(),
        Attr::Bool(_) => Type::bool(),
        Attr::Str(_) => Type::str(),
        Attr::None => return Some(Term::Constant(Type::none(), None)),
        _ => return None,
    };
    let attr = match formal.default.as_ref()? {
        Attr::Bool(x) => Attr::Int(i64::from(*x)),
        other => other.clone(),
    };
    Some(Term::Constant(ty, Some(attr)))
}

/// A term as an operand, if its type fits; a variable gets the argument's type.
fn accept(formal: &Argument, term: Term) -> Option<Term> {
    let wanted = &formal.ty;
    match term {
        Term::Variable(name, ty) if *ty.kind() == TypeKind::Any => Some(Term::Variable(name, wanted.clone())),
        other => {
            let ty = result_type(&other);
            let fits = match (wanted.kind(), ty.kind()) {
                (TypeKind::Tensor(_), TypeKind::Tensor(_)) => true,
                (
                    TypeKind::Number,
                    TypeKind::Int | TypeKind::Float | TypeKind::Complex | TypeKind::Number,
                ) => true,
                (TypeKind::Optional(_), TypeKind::None) => true,
                (TypeKind::Optional(inner), _) => *inner == ty,
                _ => *wanted == ty,
            };
            fits.then_some(other)
        }
    }
}

/// The type that a term has.
pub(super) fn result_type(term: &Term) -> Type {
    match term {
        Term::Variable(_, ty) => ty.clone(),
        Term::Constant(ty, _) => ty.clone(),
        Term::Op(op, _) => {
            let declared = op.schema().ok().and_then(|s| s.returns.first()).map(|r| r.ty.clone());
            declared.unwrap_or_else(Type::tensor)
        }
    }
}

/// Collects the variables' types; false if one is used with two.
fn bind(term: &Term, types: &mut IndexMap<String, Type>) -> bool {
    match term {
        Term::Variable(name, ty) => types.entry(name.clone()).or_insert_with(|| ty.clone()) == ty,
        Term::Constant(..) => true,
        Term::Op(_, operands) => operands.iter().all(|operand| bind(operand, types)),
    }
}

/// Whether a term makes a tensor of its own, and does not show another's memory.
fn is_fresh(term: &Term) -> bool {
    match term {
        Term::Op(op, _) => op.def().family != Family::View,
        Term::Variable(..) | Term::Constant(..) => false,
    }
}

/// Names of matched terms with the way to them.
fn bound_terms(term: &RuleTerm) -> Vec<(String, Vec<usize>)> {
    let mut found = Vec::new();
    let mut work = vec![(term, Vec::new())];
    while let Some((term, path)) = work.pop() {
        if let RuleTerm::Op { arguments, bound, .. } = term {
            if let Some(name) = bound {
                found.push((name.clone(), path.clone()));
            }
            for (n, (_, argument)) in arguments.iter().enumerate() {
                let mut way = path.clone();
                way.push(n);
                work.push((argument, way));
            }
        }
    }
    found
}
