//! From rules as written to rules over op rows: overloads chosen, defaults filled in. A rule whose overload
//! depends on a variable's type becomes one compiled rule an overload.

use super::condition;
use super::rule::{CompiledRule, OpNode, Reading, Term, Types};
use super::syntax::{Arrow, Expr, Literal, OpTerm, Rule, RuleTerm, TermKind};
use super::{named, op_variables};
use crate::diag::{Diagnostic, Result, Span, nearest};
use crate::dialects::{Op, Registry, Variant, prim};
use crate::ir::types::schema::Argument;
use crate::ir::{Attr, Symbol, Type, TypeKind, parse_type};
use crate::value::Value;
use hashbrown::HashMap;
use indexmap::IndexMap;
use std::cell::RefCell;
use std::sync::Arc;

/// Alternatives of one term are bounded.
const MAX_ALTERNATIVES: usize = 64;

/// Resolves a rule: one compiled rule for each way to read its left side.
pub fn compile(registry: &Registry, rule: &Rule) -> Result<Vec<CompiledRule>> {
    let Some(schematic) = op_variables::schematic(rule)? else { return one_rule(registry, rule) };
    let all = schematic.all(registry)?;
    let mut compiled = Vec::new();
    for (rule, op) in &all {
        compiled.extend(one_op(registry, rule, op));
    }
    match (compiled.is_empty(), all.first()) {
        // The first op's error stands for all.
        (true, Some((rule, _))) => one_rule(registry, rule),
        _ => Ok(compiled),
    }
}

/// A rule that an op variable became for one op. Not every op of a class takes what the rule gives to it.
pub(super) fn one_op(registry: &Registry, rule: &Rule, op: &Op) -> Vec<CompiledRule> {
    let readings = one_rule(registry, rule).unwrap_or_default();
    readings.into_iter().filter(|rule| rule.is_about(op)).collect()
}

fn one_rule(registry: &Registry, rule: &Rule) -> Result<Vec<CompiledRule>> {
    check_names(rule)?;
    let mut compiled = direction(registry, rule, &rule.left, &rule.right, &rule.name)?;
    if rule.arrow == Arrow::BothWays {
        compiled.extend(direction(registry, rule, &rule.right, &rule.left, &format!("{}/back", rule.name))?);
    }
    Ok(compiled)
}

fn direction(
    registry: &Registry,
    rule: &Rule,
    left: &RuleTerm,
    right: &RuleTerm,
    name: &str,
) -> Result<Vec<CompiledRule>> {
    for side in [left, right] {
        known_ops(registry, side)?;
    }
    let reader = Reader::new(registry, false);
    let lenient = Reader::new(registry, true);
    let read = |term: &RuleTerm, types: &Types| {
        let readings = reader.read(term, None, types);
        if readings.is_empty() { lenient.read(term, None, types) } else { readings }
    };
    let mut stated = Types::new();
    reader.stated_types(left, &mut stated)?;
    reader.stated_types(right, &mut stated)?;
    let (mut compiled, mut fault) = (Vec::new(), None);
    for (term, types) in read(left, &stated) {
        let wanted = result_type(&term).unshaped();
        let readings = read(right, &types);
        let same = readings.iter().find(|(right, _)| result_type(right).unshaped() == wanted);
        // A rule that changes the type is wrong; the check shows it on an instance.
        let Some((right, right_types)) = same.or(readings.first()) else { continue };
        if right_types.len() > types.len() {
            continue;
        }
        let first = match named::first(rule, right, |named| read(named, &types)) {
            Ok(first) => first,
            Err(error) => {
                fault = Some(error);
                continue;
            }
        };
        compiled.push(CompiledRule {
            name: name.into(),
            group: rule.group.as_deref().map(Arc::from),
            contract: rule.contract,
            writes: writes(&term) || writes(right),
            prefers_right: rule.arrow != Arrow::Equals,
            directed: rule.directed,
            first,
            left: term,
            right: right.clone(),
            conditions: rule.conditions.clone().into(),
            span: rule.span.clone(),
        });
    }
    if compiled.is_empty() {
        if let Some(error) = fault {
            return Err(error);
        }
        for side in [left, right] {
            misfit(registry, side)?;
        }
        return Err(Diagnostic::compile(format!("no overloads fit both sides of rule {name}"))
            .at(&rule.span)
            .hint("state the types of the variables, or name the overload: aten::add.Scalar(...)"));
    }
    Ok(compiled)
}

/// Every name must be bound on the left side; conditions must exist.
fn check_names(rule: &Rule) -> Result<()> {
    let left: Vec<&str> = rule.left.names().iter().map(|(name, _)| *name).collect();
    let right: Vec<&str> = rule.right.names().iter().map(|(name, _)| *name).collect();
    let unbound = |name: &str, span: &Span| {
        if !span.text().starts_with('?') {
            return Diagnostic::compile(format!("{name} is neither a dtype nor a name of the left side"))
                .at(span);
        }
        let error = Diagnostic::compile(format!("?{name} does not occur on the left side")).at(span);
        match nearest(name, left.iter().copied()) {
            Some(near) => error.hint(format!("did you mean ?{near}?")),
            None => error,
        }
    };
    for (name, span) in rule.right.names() {
        if !left.contains(&name) {
            return Err(unbound(name, span));
        }
    }
    if rule.arrow == Arrow::BothWays {
        for (name, span) in rule.left.names() {
            if !right.contains(&name) {
                return Err(Diagnostic::compile(format!(
                    "?{name} does not occur on the right side of a rule that holds both ways"
                ))
                .at(span));
            }
        }
    }
    let mut computed = Ok(());
    for side in [&rule.left, &rule.right] {
        side.walk(&mut |term| {
            if let (TermKind::Compute(expr), Ok(())) = (&term.kind, &computed) {
                computed = condition::check_expr(expr);
            }
        });
    }
    computed?;
    for condition in &rule.conditions {
        condition::check(condition)?;
        let mut wrong = None;
        condition.exprs(&mut |expr| {
            expr.names(&mut |name, span| {
                if name != "result" && !left.contains(&name) {
                    wrong.get_or_insert((name.to_string(), span.clone()));
                }
            });
        });
        if let Some((name, span)) = wrong {
            return Err(unbound(&name, &span));
        }
    }
    Ok(())
}

/// Fails at an op that the table lacks.
fn known_ops(registry: &Registry, term: &RuleTerm) -> Result<()> {
    let mut unknown = None;
    term.walk(&mut |term| {
        if let TermKind::Op(op) = &term.kind {
            let name = Symbol::new(&op.kind);
            let overloads = registry.overloads(name);
            if overloads.is_empty() {
                unknown.get_or_insert_with(|| registry.unknown(name).at(&term.span));
            } else if let Some(overload) = &op.overload
                && !overloads.iter().any(|o| o.schema().is_ok_and(|s| s.overload == overload.as_str()))
            {
                unknown.get_or_insert_with(|| {
                    Diagnostic::unsupported(format!("{} has no overload {overload}", op.kind)).at(&term.span)
                });
            }
        }
    });
    unknown.map_or(Ok(()), Err)
}

/// Fails at a term with arguments that no overload of its op has.
fn misfit(registry: &Registry, term: &RuleTerm) -> Result<()> {
    let mut found = Ok(());
    term.walk(&mut |term| {
        if let (TermKind::Op(op), Ok(())) = (&term.kind, &found) {
            found = arguments_exist(registry, op, &term.span);
        }
    });
    found
}

fn arguments_exist(registry: &Registry, term: &OpTerm, span: &Span) -> Result<()> {
    let overloads = registry.overloads(Symbol::new(&term.kind));
    let schemas: Vec<_> = overloads.iter().filter_map(|op| op.schema().ok()).collect();
    if schemas.iter().any(|s| s.is_vararg) {
        return Ok(());
    }
    let names = || schemas.iter().flat_map(|s| s.arguments.iter().map(|a| a.name.as_str()));
    for name in term.arguments.iter().filter_map(|(name, _)| name.as_deref()) {
        if !names().any(|known| known == name) {
            let error = Diagnostic::compile(format!("{} has no argument {name}", term.kind)).at(span);
            return Err(match nearest(name, names()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error,
            });
        }
    }
    let most = schemas.iter().map(|s| s.arguments.len()).max().unwrap_or(0);
    let given = term.arguments.len();
    if given > most {
        let error = format!("{} takes {most} arguments at most, and {given} are given", term.kind);
        return Err(Diagnostic::compile(error).at(span));
    }
    Ok(())
}

struct Reader<'a> {
    registry: &'a Registry,
    /// An int stands for a float where only a float may stand: tried where nothing else fits.
    lenient: bool,
    /// Readings of ops inside of the rule's terms, by place: an op inside of another is read for each overload of that.
    known: RefCell<HashMap<usize, Vec<Known>>>,
}

/// How an op was read for a type (and length) that is wanted of it, with what was known of the variables.
struct Known {
    wanted: Option<(Type, Option<usize>)>,
    types: Types,
    readings: Vec<Reading>,
}

impl Reader<'_> {
    fn new(registry: &Registry, lenient: bool) -> Reader<'_> {
        Reader { registry, lenient, known: RefCell::default() }
    }

    /// [`Reader::op`], once for the same question.
    fn op_once(&self, term: &OpTerm, formal: Option<&Argument>, types: &Types) -> Vec<Reading> {
        // The rule's terms stay where they are while they are read.
        let place = std::ptr::from_ref(term).addr();
        let wanted = formal.map(|f| (f.ty.clone(), f.fixed_length));
        let is_it = |known: &&Known| known.wanted == wanted && known.types == *types;
        if let Some(known) = self.known.borrow().get(&place).and_then(|all| all.iter().find(is_it)) {
            return known.readings.clone();
        }
        let readings = self.op(term, formal, types);
        let known = Known { wanted, types: types.clone(), readings: readings.clone() };
        self.known.borrow_mut().entry(place).or_default().push(known);
        readings
    }

    /// Types that the text states.
    fn stated_types(&self, term: &RuleTerm, types: &mut Types) -> Result<()> {
        let mut error = None;
        term.walk(&mut |term| {
            if let TermKind::Variable(name, Some(text)) = &term.kind {
                match read_type(text) {
                    Some(ty) => {
                        types.entry(name.clone()).or_insert(ty);
                    }
                    None => {
                        error.get_or_insert_with(|| {
                            Diagnostic::compile(format!("unknown type '{text}'")).at(&term.span)
                        });
                    }
                }
            }
        });
        error.map_or(Ok(()), Err)
    }

    /// All ways to read a term in a place that wants an argument, in the order of overloads.
    fn read(&self, term: &RuleTerm, formal: Option<&Argument>, types: &Types) -> Vec<Reading> {
        let same = |term: Term| vec![(term, types.clone())];
        match &term.kind {
            TermKind::Variable(name, _) => {
                let known = types.get(name).cloned();
                match (known, formal) {
                    (Some(ty), Some(formal)) if !fits(&formal.ty, &ty, formal.fixed_length) => Vec::new(),
                    (Some(ty), _) => same(Term::Variable(name.as_str().into(), ty)),
                    (None, formal) => {
                        let ty = formal.map_or_else(Type::tensor, |f| instance_of(&f.ty));
                        let mut types = types.clone();
                        types.insert(name.clone(), ty.clone());
                        vec![(Term::Variable(name.as_str().into(), ty), types)]
                    }
                }
            }
            TermKind::Rest(name, part) => {
                let ty = formal.map_or_else(Type::tensor, |f| instance_of(&f.ty));
                let mut types = types.clone();
                types.entry(name.clone()).or_insert_with(|| ty.clone());
                let part = part.as_ref().map(|p| Arc::new((**p).clone()));
                vec![(Term::Rest(name.as_str().into(), ty, part), types)]
            }
            TermKind::Literal(literal) => {
                literal_term(literal, formal, self.lenient).map(|t| (t, types.clone())).into_iter().collect()
            }
            TermKind::Compute(expr) => {
                let ty = match formal.map(|f| f.ty.kind()) {
                    Some(TypeKind::Float) => Type::float(),
                    _ => computed_type(expr, types),
                };
                match formal {
                    Some(formal) if !fits(&formal.ty, &ty, formal.fixed_length) => Vec::new(),
                    _ => same(Term::Compute(expr.clone(), ty)),
                }
            }
            TermKind::List(items) => self.list(items, formal, types),
            TermKind::Op(op) => self.op_once(op, formal, types),
        }
    }

    fn list(&self, items: &[RuleTerm], formal: Option<&Argument>, types: &Types) -> Vec<Reading> {
        let wanted = formal.map(|f| without_optional(&f.ty).clone());
        let element = match wanted.as_ref().map(Type::kind) {
            Some(TypeKind::List(element)) => Some(without_optional(element).clone()),
            Some(TypeKind::Any | TypeKind::Var(_)) | None => None,
            _ => return Vec::new(),
        };
        let element_formal = element.clone().map(|ty| Argument::new("", ty));
        let mut partial: Vec<(Vec<Term>, Types)> = vec![(Vec::new(), types.clone())];
        for item in items {
            partial = partial
                .into_iter()
                .flat_map(|(prefix, types)| {
                    self.read(item, element_formal.as_ref(), &types).into_iter().map(move |(term, types)| {
                        let mut terms = prefix.clone();
                        terms.push(term);
                        (terms, types)
                    })
                })
                .take(MAX_ALTERNATIVES)
                .collect();
        }
        partial
            .into_iter()
            .map(|(terms, types)| {
                let ty = match &element {
                    Some(ty) if !ty.has_free_vars() => ty.clone(),
                    _ => terms.first().map_or_else(Type::tensor, |t| result_type(t).unshaped()),
                };
                (Term::List(ty, terms), types)
            })
            .collect()
    }

    fn op(&self, term: &OpTerm, formal: Option<&Argument>, types: &Types) -> Vec<Reading> {
        let mut found = Vec::new();
        for op in self.registry.overloads(Symbol::new(&term.kind)) {
            let Ok(schema) = op.schema() else { continue };
            let wanted = term.overload.as_deref().is_none_or(|o| schema.overload == o);
            if wanted && op.variant() != Variant::Out {
                let readings = self.overload(op, term, types);
                // Where all types are known, the first overload that takes them is what a graph means.
                let is_it = readings.iter().any(|(_, more)| more.len() == types.len());
                found.extend(readings.into_iter().filter(|(term, _)| {
                    formal.is_none_or(|f| fits(&f.ty, &result_type(term), f.fixed_length))
                }));
                if is_it {
                    break;
                }
            }
            if found.len() >= MAX_ALTERNATIVES {
                break;
            }
        }
        found.truncate(MAX_ALTERNATIVES);
        found
    }

    fn overload(&self, op: &Op, term: &OpTerm, types: &Types) -> Vec<Reading> {
        let Ok(schema) = op.schema() else { return Vec::new() };
        let formals = &schema.arguments;
        let arguments = &term.arguments;
        let named = |name: &str| schema.argument_index(name).is_some();
        let positional: Vec<&RuleTerm> =
            arguments.iter().filter(|(name, _)| name.is_none()).map(|(_, term)| term).collect();
        let too_many = positional.len() > formals.len() && !schema.is_vararg;
        if too_many || !arguments.iter().all(|(name, _)| name.as_deref().is_none_or(named)) {
            return Vec::new();
        }
        let mut partial: Vec<(Vec<Term>, Types)> = vec![(Vec::new(), types.clone())];
        for n in 0..formals.len().max(positional.len()) {
            let formal = formals.get(n);
            let by_name = formal.and_then(|f| {
                arguments.iter().find(|(name, _)| name.as_deref() == Some(f.name.as_str())).map(|(_, t)| t)
            });
            let given = by_name.or(positional.get(n).copied());
            partial = partial
                .into_iter()
                .flat_map(|(prefix, types)| {
                    let choices = match given {
                        Some(term) => self.read(term, formal, &types),
                        None => {
                            formal.and_then(default_term).map(|t| (t, types.clone())).into_iter().collect()
                        }
                    };
                    choices.into_iter().map(move |(term, types)| {
                        let mut terms = prefix.clone();
                        terms.push(term);
                        (terms, types)
                    })
                })
                .take(MAX_ALTERNATIVES)
                .collect();
        }
        partial.into_iter().filter_map(|(operands, types)| self.finish(op, term, operands, types)).collect()
    }

    /// Attributes and blocks have one reading each.
    fn finish(&self, op: &Op, term: &OpTerm, operands: Vec<Term>, mut types: Types) -> Option<Reading> {
        let mut attributes = Vec::new();
        for (name, value) in &term.attributes {
            let (value, more) = self.read(value, None, &types).into_iter().next()?;
            types = more;
            attributes.push((Symbol::new(name), value));
        }
        let mut blocks = Vec::new();
        for block in &term.blocks {
            let mut results = Vec::new();
            for result in block {
                let any = Argument::new("", Type::any());
                let (result, more) = self.read(result, Some(&any), &types).into_iter().next()?;
                types = more;
                results.push(result);
            }
            blocks.push(results);
        }
        let ty = op_type(op, &operands, &blocks, term.result)?;
        let bound = term.bound.as_deref().map(Arc::from);
        let node = OpNode { op: op.clone(), attributes, operands, blocks, result: term.result, bound, ty };
        Some((Term::Op(Box::new(node)), types))
    }
}

/// A type as rules write it; besides TorchScript's own names those of schemas and of Python.
fn read_type(text: &str) -> Option<Type> {
    let inside = |prefix: &str| text.strip_prefix(prefix).and_then(|t| t.strip_suffix(']'));
    if let Some(inner) = inside("Optional[") {
        return read_type(inner).map(Type::optional);
    }
    if let Some(inner) = inside("List[") {
        return read_type(inner).map(Type::list);
    }
    match text {
        "dtype" | "ScalarType" => Some(Type::scalar_type()),
        "number" | "Scalar" => Some(Type::number()),
        "device" | "Device" => Some(Type::device()),
        _ => parse_type(text).ok(),
    }
}

fn without_optional(ty: &Type) -> &Type {
    match ty.kind() {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    }
}

/// The type that an unstated variable has in a place: variables of types become int.
fn instance_of(formal: &Type) -> Type {
    match formal.kind() {
        TypeKind::Var(_) => Type::int(),
        TypeKind::List(element) if element.has_free_vars() => Type::list(instance_of(element)),
        TypeKind::Optional(inner) if inner.has_free_vars() => Type::optional(instance_of(inner)),
        TypeKind::Any => Type::tensor(),
        _ => formal.clone(),
    }
}

/// Whether a value of a type may stand where a schema wants another.
fn fits(formal: &Type, actual: &Type, fixed_length: Option<usize>) -> bool {
    use TypeKind as K;
    let is_int =
        |ty: &Type| matches!(ty.kind(), K::Int | K::ScalarType | K::Layout | K::MemoryFormat | K::SymInt);
    match (formal.kind(), actual.kind()) {
        (K::Var(_) | K::Any, _) | (K::Optional(_), K::None) => true,
        (K::Tensor(_), K::Tensor(_)) => true,
        (K::Number, K::Int | K::Float | K::Complex | K::Number | K::ScalarType) => true,
        (K::Optional(f), K::Optional(a)) => fits(f, a, fixed_length),
        (K::Optional(f), _) => fits(f, actual, fixed_length),
        (K::List(f), K::List(a)) => match (f.kind(), a.kind()) {
            (K::Optional(f), K::Optional(a)) => fits(f, a, None),
            (K::Optional(f), _) => f.is_tensor() && a.is_tensor(),
            (K::Number | K::Any, _) => f == a,
            _ => fits(f, a, None),
        },
        (K::Dict(fk, fv), K::Dict(ak, av)) => fits(fk, ak, None) && fits(fv, av, None),
        (K::List(f), _) if fixed_length.is_some() => is_int(f) && is_int(actual),
        _ => formal == actual || is_int(formal) && is_int(actual),
    }
}

/// A literal where an argument is wanted.
fn literal_term(literal: &Literal, formal: Option<&Argument>, lenient: bool) -> Option<Term> {
    let wanted = formal.map(|f| without_optional(&f.ty));
    let (ty, attr) = match (literal, wanted.map(Type::kind)) {
        (Literal::None, Some(TypeKind::Optional(_) | TypeKind::None | TypeKind::Any)) => (Type::none(), None),
        (Literal::None, _) => match formal.map(|f| f.ty.kind()) {
            None | Some(TypeKind::Optional(_) | TypeKind::Any | TypeKind::Var(_)) => (Type::none(), None),
            _ => return None,
        },
        (Literal::Int(x), Some(TypeKind::Float)) if lenient => (Type::float(), Some(Attr::Float(*x as f64))),
        (Literal::Int(x), _) => (Type::int(), Some(Attr::Int(*x))),
        (Literal::Float(x), _) => (Type::float(), Some(Attr::Float(*x))),
        (Literal::Bool(x), _) => (Type::bool(), Some(Attr::Bool(*x))),
        (Literal::Str(x), Some(TypeKind::Device)) => (Type::device(), Some(Attr::Device(x.parse().ok()?))),
        (Literal::Str(x), _) => (Type::str(), Some(Attr::Str(x.as_str().into()))),
    };
    let fit = formal.is_none_or(|f| fits(&f.ty, &ty, f.fixed_length));
    fit.then_some(Term::Constant(ty, attr))
}

/// The argument's default as a term.
fn default_term(formal: &Argument) -> Option<Term> {
    let attr = formal.default.as_ref()?;
    let wanted = without_optional(&formal.ty).clone();
    Some(match (attr, wanted.kind()) {
        (Attr::None, _) => Term::Constant(Type::none(), None),
        (Attr::Bool(_), _) => Term::Constant(Type::bool(), Some(attr.clone())),
        (Attr::Int(x), TypeKind::Float) => Term::Constant(Type::float(), Some(Attr::Float(*x as f64))),
        (Attr::Int(x), TypeKind::List(_)) => {
            let items = vec![*x; formal.fixed_length.unwrap_or(1)];
            let items = items.into_iter().map(|x| Term::Constant(Type::int(), Some(Attr::Int(x))));
            Term::List(Type::int(), items.collect())
        }
        (Attr::Int(_), _) => Term::Constant(Type::int(), Some(attr.clone())),
        (Attr::Float(_), _) => Term::Constant(Type::float(), Some(attr.clone())),
        (Attr::Str(_), _) => Term::Constant(Type::str(), Some(attr.clone())),
        (Attr::Ints(items), _) => {
            let items = items.iter().map(|x| Term::Constant(Type::int(), Some(Attr::Int(*x))));
            Term::List(Type::int(), items.collect())
        }
        (Attr::List(items), _) if items.is_empty() => match wanted.kind() {
            TypeKind::List(element) => Term::List(element.clone(), Vec::new()),
            _ => return None,
        },
        _ => Term::Constant(wanted, Some(attr.clone())),
    })
}

fn computed_type(expr: &Expr, types: &Types) -> Type {
    match expr {
        Expr::Literal(Literal::Float(_)) | Expr::Binary(super::syntax::Arithmetic::Div, ..) => Type::float(),
        Expr::Literal(_) => Type::int(),
        Expr::Name(name, _) => types.get(name).cloned().unwrap_or_else(Type::int),
        Expr::Call(name, ..) if name == "device" => Type::device(),
        Expr::Call(name, ..) if matches!(name.as_str(), "sizes" | "range" | "compose") => {
            Type::list(Type::int())
        }
        Expr::List(_) => Type::list(Type::int()),
        Expr::Call(name, ..) if name == "item" => Type::number(),
        Expr::Call(name, ..) if !matches!(name.as_str(), "min" | "max" | "abs") => Type::int(),
        Expr::Call(_, arguments, _) => {
            arguments.iter().map(|a| computed_type(a, types)).fold(Type::int(), wider)
        }
        Expr::Binary(_, a, b) => wider(computed_type(a, types), computed_type(b, types)),
        Expr::Negate(a) => computed_type(a, types),
    }
}

fn wider(a: Type, b: Type) -> Type {
    match (a.kind(), b.kind()) {
        (TypeKind::Float, _) | (_, TypeKind::Float) => Type::float(),
        (TypeKind::Number, _) | (_, TypeKind::Number) => Type::number(),
        _ => Type::int(),
    }
}

/// The type of an op's result, variables of types replaced by what the operands say.
fn op_type(op: &Op, operands: &[Term], blocks: &[Vec<Term>], result: Option<usize>) -> Option<Type> {
    let schema = op.schema().ok()?;
    if let (true, Some(first)) = (schema.is_varret, blocks.first()) {
        return first.get(result.unwrap_or(0)).map(result_type);
    }
    if let ("prim::DictConstruct", [key, value, ..]) = (op.name().as_str(), operands) {
        return Some(Type::dict(result_type(key), result_type(value)));
    }
    if schema.is_varret {
        // What takes a list or a tuple apart.
        let whole = operands.first().map(result_type);
        return Some(match (whole.as_ref().map(Type::kind), result) {
            (Some(TypeKind::List(element)), Some(_)) => element.clone(),
            (Some(TypeKind::Tuple(items, _)), Some(n)) => items.get(n).cloned().unwrap_or_else(Type::any),
            _ => Type::any(),
        });
    }
    if op.name() == "prim::ListConstruct" {
        return Some(Type::list(operands.first().map_or_else(Type::tensor, |t| result_type(t).unshaped())));
    }
    let ty = match (schema.returns.as_slice(), result) {
        (returns, Some(n)) => returns.get(n)?.ty.clone(),
        ([one], None) => one.ty.clone(),
        (several, None) if !several.is_empty() => {
            Type::tuple(several.iter().map(|r| r.ty.clone()).collect::<Vec<_>>())
        }
        _ => return None,
    };
    let mut bound = IndexMap::new();
    for (formal, operand) in schema.arguments.iter().zip(operands) {
        bind_vars(&formal.ty, &result_type(operand), &mut bound);
    }
    Some(substitute(&ty, &bound))
}

fn bind_vars(formal: &Type, actual: &Type, bound: &mut IndexMap<Symbol, Type>) {
    match (formal.kind(), actual.kind()) {
        (TypeKind::Var(name), _) => {
            bound.entry(*name).or_insert_with(|| actual.clone());
        }
        (TypeKind::Optional(f), TypeKind::Optional(a)) | (TypeKind::List(f), TypeKind::List(a)) => {
            bind_vars(f, a, bound);
        }
        (TypeKind::Dict(fk, fv), TypeKind::Dict(ak, av)) => {
            bind_vars(fk, ak, bound);
            bind_vars(fv, av, bound);
        }
        (TypeKind::Optional(f), _) => bind_vars(f, actual, bound),
        _ => {}
    }
}

fn substitute(ty: &Type, bound: &IndexMap<Symbol, Type>) -> Type {
    match ty.kind() {
        TypeKind::Var(name) => bound.get(name).cloned().unwrap_or_else(|| ty.clone()),
        TypeKind::List(element) => Type::list(substitute(element, bound)),
        TypeKind::Optional(inner) => Type::optional(substitute(inner, bound)),
        _ => ty.clone(),
    }
}

/// The type that a term has.
pub fn result_type(term: &Term) -> Type {
    match term {
        Term::Variable(_, ty) | Term::Rest(_, ty, _) | Term::Constant(ty, _) | Term::Compute(_, ty) => {
            ty.clone()
        }
        Term::List(element, _) => Type::list(element.clone()),
        Term::Op(node) => node.ty.clone(),
    }
}

fn writes(term: &Term) -> bool {
    match term {
        Term::Op(node) => {
            node.op.schema().is_ok_and(|s| s.is_mutable())
                || node.operands.iter().chain(node.blocks.iter().flatten()).any(writes)
        }
        Term::List(_, items) => items.iter().any(writes),
        _ => false,
    }
}

/// The value of a constant term.
pub fn constant_value(ty: &Type, attr: Option<&Attr>) -> Result<Value> {
    match attr {
        None => Ok(Value::None),
        Some(attr) => prim::constant::value(&[(Symbol::new("value"), attr.clone())], Some(ty)),
    }
}
