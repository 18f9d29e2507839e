//! Op variables: `?f: elementwise(aten::t(?x))` stands for every op of a class, the same wherever `?f` stands. Such a rule is
//! read once for each op of the table that is of the class and takes that number of tensors; `?rest...` after them stands for
//! what else that op takes.

use super::syntax::{OpTerm, Rule, RuleTerm, TermKind};
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::{Effects, Family, Op, Registry, Variant};
use crate::ir::TypeKind;
use crate::ir::types::schema::Argument;

/// The classes of ops that a variable may stand for.
pub const CLASSES: &[&str] = &["elementwise"];

/// An op variable of a rule.
struct Variable {
    /// `f`
    name: String,
    /// The tensors that it is applied to.
    tensors: usize,
    /// The variable that stands for its other arguments.
    rest: Option<String>,
    span: Span,
}

/// A rule with an op variable, which reads once for each op of the class.
pub(super) struct Schematic<'r> {
    rule: &'r Rule,
    variable: Variable,
}

/// A rule as one with an op variable; None for one without. Fails where the variable is not used as such a one is.
pub(super) fn schematic(rule: &Rule) -> Result<Option<Schematic<'_>>> {
    Ok(declared(rule)?.map(|variable| Schematic { rule, variable }))
}

impl Schematic<'_> {
    /// The readings of all ops of a table.
    pub(in crate::rewrite) fn all(&self, registry: &Registry) -> Result<Vec<(Rule, Op)>> {
        let mut found = Vec::new();
        for op in registry.iter() {
            found.extend(self.of(op)?.map(|rule| (rule, op.clone())));
        }
        if found.is_empty() {
            let message = format!("no op of the class takes {} tensors", self.variable.tensors);
            return Err(Diagnostic::compile(message).at(&self.variable.span));
        }
        Ok(found)
    }

    /// The rule instantiated for one op, if that is of the class and takes that number of tensors.
    pub(in crate::rewrite) fn of(&self, op: &Op) -> Result<Option<Rule>> {
        if !is_elementwise(op) {
            return Ok(None);
        }
        let variable = &self.variable;
        let arguments = &op.schema()?.arguments;
        let is_tensor = |a: &&Argument| matches!(a.ty.kind(), TypeKind::Tensor(_));
        let mut others = arguments.iter().skip(variable.tensors);
        let fits = arguments.iter().take_while(is_tensor).count() == variable.tensors
            && others.all(|a| is_plain(a) && (variable.rest.is_some() || a.default.is_some()));
        if !fits {
            return Ok(None);
        }
        let mut rule = self.rule.clone();
        for side in [&mut rule.left, &mut rule.right] {
            stand_for(side, variable, op, arguments)?;
        }
        Ok(Some(rule))
    }
}

/// Ops that compute each element of their one result from the elements at its place, and do nothing else.
fn is_elementwise(op: &Op) -> bool {
    let def = op.def();
    op.variant() == Variant::Plain
        && def.family == Family::Elementwise
        && def.scalar.is_some()
        && Effects::MAY_RAISE.contains(def.effects)
        && op.schema().is_ok_and(|schema| {
            schema.returns.len() == 1 && schema.arguments.iter().all(|a| a.alias.is_none())
        })
}

/// Arguments that a variable may distinguish: numbers, texts and optional ones, but no further tensors.
fn is_plain(argument: &Argument) -> bool {
    let inner = match argument.ty.kind() {
        TypeKind::Optional(inner) => inner.kind(),
        kind => kind,
    };
    !matches!(inner, TypeKind::Tensor(_) | TypeKind::List(_) | TypeKind::Var(_))
}

/// The op variable of a rule. Its class is stated where it stands first; a rule has one at most.
fn declared(rule: &Rule) -> Result<Option<Variable>> {
    let mut all: Vec<(&OpTerm, &Span)> = Vec::new();
    for side in [&rule.left, &rule.right] {
        side.walk(&mut |term| {
            if let TermKind::Op(op) = &term.kind
                && op.kind.starts_with('?')
            {
                all.push((op, &term.span));
            }
        });
    }
    let Some(((first, span), others)) = all.split_first() else { return Ok(None) };
    let on_left = || {
        let mut found = false;
        rule.left.walk(&mut |term| {
            found |= matches!(&term.kind, TermKind::Op(op) if op.kind == first.kind);
        });
        found
    };
    let Some(_) = first.class.as_deref().filter(|class| CLASSES.contains(class)).filter(|_| on_left()) else {
        let message =
            format!("{} is not bound to an op yet: its class is stated at its first occurrence", first.kind);
        return Err(Diagnostic::compile(message)
            .at(span)
            .hint(format!("{}: elementwise(...), on the left side", first.kind)));
    };
    let (tensors, rest) = shape(first, span)?;
    for (other, span) in others {
        if other.kind != first.kind {
            return Err(Diagnostic::compile("a rule has one op variable at most").at(span));
        }
        if shape(other, span)? != (tensors, rest.clone()) {
            let message = format!("{} takes other arguments here than at its first occurrence", other.kind);
            return Err(Diagnostic::compile(message).at(span));
        }
    }
    let name = first.kind.trim_start_matches('?').to_string();
    Ok(Some(Variable { name, tensors, rest, span: (*span).clone() }))
}

/// How many tensors an op variable is applied to, and what stands for the rest of its arguments.
fn shape(term: &OpTerm, span: &Span) -> Result<(usize, Option<String>)> {
    let fault = |message: &str| Err(Diagnostic::compile(message).at(span));
    if term.arguments.iter().any(|(name, _)| name.is_some()) {
        return fault("an op variable takes no arguments by name, as ops call them differently");
    }
    if !term.attributes.is_empty() || !term.blocks.is_empty() || term.result.is_some() {
        return fault("an op variable has no attributes, blocks or result numbers");
    }
    let rest = term.arguments.last().and_then(|(_, last)| match &last.kind {
        TermKind::Rest(name, None) => Some(name.clone()),
        _ => None,
    });
    match term.arguments.len() - usize::from(rest.is_some()) {
        0 => fault("an op variable is applied to at least one tensor"),
        tensors => Ok((tensors, rest)),
    }
}

/// Puts an op in the place of the variable, and a variable for each of its further arguments in the place of the rest.
fn stand_for(term: &mut RuleTerm, variable: &Variable, op: &Op, arguments: &[Argument]) -> Result<()> {
    let span = term.span.clone();
    match &mut term.kind {
        TermKind::List(items) => {
            items.iter_mut().try_for_each(|item| stand_for(item, variable, op, arguments))?;
        }
        TermKind::Op(node) => {
            if node.kind.strip_prefix('?') == Some(variable.name.as_str()) {
                let (kind, overload) = (op.name().as_str().to_string(), op.schema()?.overload.to_string());
                node.kind = kind;
                node.overload = (!overload.is_empty()).then_some(overload);
                if let Some(rest) = &variable.rest {
                    node.arguments.truncate(variable.tensors);
                    node.arguments.extend(arguments.iter().skip(variable.tensors).map(|a| {
                        let kind = TermKind::Variable(format!("{rest}.{}", a.name), Some(a.ty.to_string()));
                        (Some(a.name.as_str().to_string()), RuleTerm { kind, span: span.clone() })
                    }));
                }
            }
            let inner = node.arguments.iter_mut().map(|(_, term)| term);
            for term in inner.chain(node.blocks.iter_mut().flatten()) {
                stand_for(term, variable, op, arguments)?;
            }
        }
        TermKind::Variable(..) | TermKind::Rest(..) | TermKind::Literal(_) | TermKind::Compute(_) => {}
    }
    Ok(())
}
