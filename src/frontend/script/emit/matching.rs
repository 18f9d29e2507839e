//! Choosing the schema that a call fits, with PyTorch's conversions and complaints.
//!
//! A candidate is first matched on paper ([`Plan`]) and only then emitted, so that candidates that do not fit
//! leave nothing behind.

use super::{Emitter, error};
use crate::diag::{Diagnostic, Result, Span};
use crate::ir::schema::{Argument, Schema};
use crate::ir::unify::{TypeEnv, match_type_variables, substitute};
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

/// An argument as the call gives it.
#[derive(Clone, Debug)]
pub(super) struct Given {
    pub(super) name: Option<String>,
    pub(super) value: ValueId,
    /// Whether it is what a method is called on: it stands for `self` alone, never for an element of a list.
    pub(super) is_receiver: bool,
}

impl Given {
    /// What a method is called on.
    pub(super) fn receiver(value: ValueId) -> Given {
        Given { name: None, value, is_receiver: true }
    }

    /// An argument by its name.
    pub(super) fn named(name: String, value: ValueId) -> Given {
        Given { name: Some(name), value, is_receiver: false }
    }
}

impl From<ValueId> for Given {
    fn from(value: ValueId) -> Given {
        Given { name: None, value, is_receiver: false }
    }
}

/// How one operand is made from what was given.
#[derive(Clone, Debug)]
enum Operand {
    Value(ValueId),
    Constant(Type, Option<Attr>),
    List(Type, Vec<Operand>),
    /// The elements of a tuple value as a list.
    TupleAsList(Type, ValueId, Vec<Type>),
    Convert(&'static str, Type, Box<Operand>),
    /// A tuple value whose elements are converted.
    Tuple(ValueId, Parts),
}

/// How the elements of a tuple are converted, each None where it stays.
#[derive(Clone, Debug)]
struct Parts {
    given: Vec<Type>,
    made: Type,
    parts: Vec<Option<Part>>,
}

#[derive(Clone, Debug)]
enum Part {
    Convert(&'static str, Type),
    Tuple(Parts),
}

/// A call that fits a schema.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    operands: Vec<Operand>,
    pub(super) results: Vec<Type>,
}

impl Emitter<'_> {
    /// Fits a call to one schema. The error is the reason in PyTorch's wording, ending in a newline.
    pub(super) fn fit(
        &self,
        schema: &Schema,
        args: &[Given],
        keywords: &[Given],
        converts: bool,
    ) -> std::result::Result<Plan, String> {
        let (mut receiver, args) = match args.split_first() {
            Some((first, rest)) if first.is_receiver => (Some(first), rest),
            _ => (None, args),
        };
        let mut variables = TypeEnv::new();
        let mut operands = Vec::new();
        let mut used = 0;
        let mut used_keywords = vec![false; keywords.len()];
        for (n, formal) in schema.arguments.iter().enumerate() {
            // `x.where(c, y)`: what a method is called on stands for `self`, wherever that is.
            if formal.name == "self"
                && let Some(given) = receiver.take()
            {
                operands.push(self.fit_argument(formal, given.value, &mut variables, converts)?);
                continue;
            }
            if !formal.keyword_only && used < args.len() {
                if converts
                    && takes_rest_as_list(schema, n)
                    && let Some(list) = self.rest_as_list(formal, &args[used..], &mut variables)?
                {
                    operands.push(list);
                    used = args.len();
                    continue;
                }
                operands.push(self.fit_argument(formal, args[used].value, &mut variables, converts)?);
                used += 1;
                continue;
            }
            let named = |k: &Given| k.name.as_deref().is_some_and(|name| names(schema, formal, name));
            if let Some(k) = keywords.iter().position(named) {
                used_keywords[k] = true;
                operands.push(self.fit_argument(formal, keywords[k].value, &mut variables, converts)?);
                continue;
            }
            match &formal.default {
                Some(default) => operands.push(default_operand(formal, default)),
                None => return Err(format!("Argument {} not provided.\n", formal.name)),
            }
        }
        if receiver.is_some() {
            return Err("Provided self argument not used in schema.\n".to_string());
        }
        if used < args.len() {
            if !schema.is_vararg {
                return Err(format!(
                    "Expected at most {used} arguments but found {} positional arguments.\n",
                    args.len()
                ));
            }
            operands.extend(args[used..].iter().map(|g| Operand::Value(g.value)));
        }
        for (k, given) in keywords.iter().enumerate() {
            let name = given.name.as_deref().unwrap_or_default();
            if !schema.arguments.iter().any(|formal| names(schema, formal, name)) {
                return Err(format!("Keyword argument {name} unknown.\n"));
            }
            if !used_keywords[k] {
                return Err(format!("Keyword argument {name} specified twice.\n"));
            }
        }
        let results = schema
            .returns
            .iter()
            .map(|r| substitute(&r.ty, &variables).unwrap_or_else(|| r.ty.clone()))
            .collect();
        Ok(Plan { operands, results })
    }

    /// Whether everything that is left makes the list that the last argument wants: `zeros(1, 2)`.
    fn rest_as_list(
        &self,
        formal: &Argument,
        rest: &[Given],
        variables: &mut TypeEnv,
    ) -> std::result::Result<Option<Operand>, String> {
        let Some(first) = rest.first() else { return Ok(None) };
        let wanted = strip_optional(&formal.ty);
        let given = self.ty(first.value);
        let is_list = matches!(given.kind(), TypeKind::List(_));
        let can_be_list = given.tuple_elements().is_some() && tuple_fits_list(given, wanted, self);
        if is_list || can_be_list || (*given == Type::none() && wanted != &formal.ty) {
            return Ok(None);
        }
        let Some(element) = wanted.element().cloned() else { return Ok(None) };
        let item =
            Argument { name: Symbol::new("<varargs>"), ty: element, fixed_length: None, ..formal.clone() };
        let mut items = Vec::new();
        for given in rest {
            items.push(self.fit_argument(&item, given.value, variables, true)?);
        }
        Ok(Some(Operand::List(wanted.clone(), items)))
    }

    fn fit_argument(
        &self,
        formal: &Argument,
        value: ValueId,
        variables: &mut TypeEnv,
        converts: bool,
    ) -> std::result::Result<Operand, String> {
        let given = self.ty(value).clone();
        // One number stands for a list of fixed length.
        if let (Some(n), Some(element)) = (formal.fixed_length, strip_optional(&formal.ty).element())
            && matches!(given.kind(), TypeKind::Int | TypeKind::Float)
            && *element == given
        {
            let list = Type::list(given);
            return Ok(Operand::List(list, vec![Operand::Value(value); n]));
        }
        let concrete = if formal.ty.has_free_vars() {
            let matched = match_type_variables(&formal.ty, &given, variables, &self.unit.module);
            match matched.map(|()| substitute(&formal.ty, variables)) {
                Ok(Some(concrete)) => concrete,
                Ok(None) => {
                    return Err(format!(
                        "Type variables in type {} could not be inferred from actual type {}",
                        formal.ty.repr(),
                        given.repr()
                    ));
                }
                Err(reason) => {
                    return Err(format!(
                        "Could not match type {} to {} in argument '{}': {}.\n",
                        given.repr(),
                        formal.ty.repr(),
                        formal.name,
                        reason.trim_end_matches('.')
                    ));
                }
            }
        } else {
            formal.ty.clone()
        };
        let (operand, ty) = self.plan_conversion(value, &concrete, converts);
        let Err(why) = self.why_not(&ty, &concrete) else { return Ok(operand) };
        let mut message = String::new();
        if concrete.as_tensor().is_some_and(|t| t.inferred) {
            message = format!(
                "Inferred '{}' to be of type 'Tensor' because it was not annotated with an explicit type.\n",
                formal.name
            );
        }
        let hint = if given.element().is_some_and(Type::is_tensor)
            && matches!(given.kind(), TypeKind::List(_))
        {
            "Empty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)\n"
        } else {
            ""
        };
        Err(format!(
            "Expected a value of type '{}' for argument '{}' but instead found type '{}'.\n{message}{hint}{why}",
            formal.ty.repr(),
            formal.name,
            ty.repr()
        ))
    }

    /// What a value can be converted to without being asked, and the type that this has.
    fn plan_conversion(&self, value: ValueId, wanted: &Type, converts: bool) -> (Operand, Type) {
        let given = self.ty(value).clone();
        let target = match (wanted.kind(), given.kind()) {
            (TypeKind::Optional(inner), kind) if !matches!(kind, TypeKind::Optional(_) | TypeKind::None) => {
                inner
            }
            _ => wanted,
        };
        if let TypeKind::List(element) = target.kind()
            && let Some(items) = given.tuple_elements()
            && tuple_fits_list(&given, target, self)
        {
            let ty = if element.has_free_vars() {
                items.first().map_or_else(|| target.clone(), |t| Type::list(t.clone()))
            } else {
                target.clone()
            };
            return (Operand::TupleAsList(ty.clone(), value, items.to_vec()), ty);
        }
        if let TypeKind::List(_) = target.kind()
            && self.untyped_lists.contains(&value)
            && !target.has_free_vars()
        {
            return (Operand::List(target.clone(), Vec::new()), target.clone());
        }
        if converts && let Some((kind, ty)) = implicit_conversion(&given, target) {
            return (Operand::Convert(kind, ty.clone(), Box::new(Operand::Value(value))), ty);
        }
        if converts && let Some(parts) = self.plan_parts(&given, target) {
            let ty = parts.made.clone();
            return (Operand::Tuple(value, parts), ty);
        }
        (Operand::Value(value), given)
    }

    /// How a tuple becomes one of another type by conversions of its elements; None where it stays unchanged.
    fn plan_parts(&self, given: &Type, wanted: &Type) -> Option<Parts> {
        let (items, targets) = (given.tuple_elements()?, wanted.tuple_elements()?);
        if items.len() != targets.len() || wanted.has_free_vars() || self.is_subtype(given, wanted) {
            return None;
        }
        let part = |(item, target): (&Type, &Type)| {
            let target = strip_optional(target);
            match implicit_conversion(item, target) {
                Some((kind, ty)) => Some(Part::Convert(kind, ty)),
                None => {
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.plan_parts(item, target)).map(Part::Tuple)
                }
            }
        };
        let parts: Vec<Option<Part>> = items.iter().zip(targets).map(part).collect();
        let made = items.iter().zip(&parts).map(|(item, part)| match part {
            None => item.clone(),
            Some(Part::Convert(_, ty)) => ty.clone(),
            Some(Part::Tuple(parts)) => parts.made.clone(),
        });
        let made = Type::tuple(made.collect::<Vec<_>>());
        parts.iter().any(Option::is_some).then(|| Parts { given: items.to_vec(), made, parts })
    }

    /// Converts a value to a type where that happens without being asked; otherwise gives it back.
    pub(super) fn convert(
        &mut self,
        value: ValueId,
        wanted: &Type,
        converts: bool,
        span: &Span,
    ) -> Result<ValueId> {
        self.ready_for(wanted, &[value]);
        let (operand, _) = self.plan_conversion(value, wanted, converts);
        Ok(self.emit_operand(&operand, span))
    }

    fn emit_operand(&mut self, operand: &Operand, span: &Span) -> ValueId {
        match operand {
            Operand::Value(value) => *value,
            Operand::Constant(ty, attr) => self.constant(ty.clone(), attr.clone(), span),
            Operand::List(ty, items) => {
                let items: Vec<ValueId> = items.iter().map(|item| self.emit_operand(item, span)).collect();
                self.emit_value(Symbol::new("prim::ListConstruct"), &items, ty.clone(), span)
            }
            Operand::TupleAsList(ty, tuple, types) => {
                let op = self.emit(Symbol::new("prim::TupleUnpack"), &[*tuple], types, span);
                let items = self.graph.results(op);
                self.emit_value(Symbol::new("prim::ListConstruct"), &items, ty.clone(), span)
            }
            Operand::Convert(kind, ty, inner) => {
                let inner = self.emit_operand(inner, span);
                self.emit_value(Symbol::new(kind), &[inner], ty.clone(), span)
            }
            Operand::Tuple(tuple, parts) => self.emit_parts(*tuple, parts, span),
        }
    }

    fn emit_parts(&mut self, tuple: ValueId, parts: &Parts, span: &Span) -> ValueId {
        let op = self.emit(Symbol::new("prim::TupleUnpack"), &[tuple], &parts.given, span);
        let mut items = self.graph.results(op).to_vec();
        for (item, part) in items.iter_mut().zip(&parts.parts) {
            *item = match part {
                None => continue,
                Some(Part::Convert(kind, ty)) => {
                    self.emit_value(Symbol::new(kind), &[*item], ty.clone(), span)
                }
                Some(Part::Tuple(parts)) => {
                    stacker::maybe_grow(64 << 10, 1 << 20, || self.emit_parts(*item, parts, span))
                }
            };
        }
        self.emit_value(Symbol::new("prim::TupleConstruct"), &items, parts.made.clone(), span)
    }

    /// The operands of a plan, emitted.
    pub(super) fn emit_plan(&mut self, plan: &Plan, span: &Span) -> Vec<ValueId> {
        plan.operands.iter().map(|operand| self.emit_operand(operand, span)).collect()
    }

    /// Fits a call to the first of several schemas that takes it: as it is, else with conversions.
    pub(super) fn fit_any(
        &mut self,
        schemas: &[&Schema],
        args: &[Given],
        keywords: &[Given],
        span: &Span,
    ) -> Result<(usize, Plan)> {
        let values: Vec<ValueId> = args.iter().chain(keywords).map(|given| given.value).collect();
        // A type variable takes the interface of a list, and then an object must fit it.
        for value in &values {
            let ty = self.ty(*value).clone();
            self.ready_for(&ty, &values);
        }
        if let [only] = schemas {
            only.arguments.iter().for_each(|formal| self.ready_for(&formal.ty, &values));
            return match self.fit(only, args, keywords, true) {
                Ok(plan) => Ok((0, plan)),
                Err(reason) => error(span, format!("\n{only}:\n{reason}")),
            };
        }
        let candidates = || schemas.iter().enumerate().filter(|(_, schema)| !is_out_of_reach(schema));
        for converts in [false, true] {
            for (n, schema) in candidates() {
                if let Ok(plan) = self.fit(schema, args, keywords, converts) {
                    return Ok((n, plan));
                }
            }
        }
        let reasons: String = candidates()
            .map(|(_, schema)| {
                let reason = self.fit(schema, args, keywords, true).err().unwrap_or_default();
                format!("\n{schema}:\n{reason}")
            })
            .collect();
        let indented: Vec<String> = reasons.split('\n').map(|line| format!("  {line}")).collect();
        error(
            span,
            format!(
                "Arguments for call are not valid.\nThe following variants are available:\n{}\n\nThe original call is",
                indented.join("\n").trim_end()
            ),
        )
    }

    /// Whether a method of builtin types takes a value of a type: an op of that name has an argument `self` for it.
    pub(super) fn takes_self(&self, kind: Symbol, ty: &Type) -> bool {
        self.unit.registry.overloads(kind).iter().filter_map(|op| op.schema().ok()).any(|schema| {
            let Some(formal) = schema.arguments.iter().find(|a| a.name == "self") else { return false };
            let mut variables = TypeEnv::new();
            if match_type_variables(&formal.ty, ty, &mut variables, &self.unit.module).is_err() {
                return false;
            }
            match substitute(&formal.ty, &variables) {
                Some(concrete) => self.is_subtype(ty, &concrete),
                None => false,
            }
        })
    }

    /// The error for an op that does not exist, with those of nearly its name.
    pub(super) fn unknown_builtin(&self, kind: Symbol, span: &Span) -> Diagnostic {
        if !self.unit.is_source() {
            // PyTorch wrote the archive, so that the op exists there.
            return self.unit.registry.unknown(kind).at(span);
        }
        let mut message = format!("Unknown builtin op: {kind}.");
        let near: Vec<&str> = self
            .unit
            .registry
            .names()
            .map(Symbol::as_str)
            .filter(|name| crate::diag::edit_distance(name, kind.as_str()) <= 2)
            .collect();
        if near.is_empty() {
            message.push_str("\nCould not find any similar ops to ");
            message.push_str(kind.as_str());
            message.push_str(". This op may not exist or may not be currently supported in TorchScript.\n");
        } else {
            message.push_str("\nHere are some suggestions: \n");
            for name in near {
                message.push_str(&format!("\t{name}\n"));
            }
            message.push_str("\nThe original call is");
        }
        Diagnostic::compile(message).at(span)
    }
}

/// Overloads that no call of a program means: dtypes are ints to programs, so that `x.view(1)` would fit `view.dtype`.
fn is_out_of_reach(schema: &Schema) -> bool {
    matches!((schema.name.base(), schema.overload.as_str()), ("view", "dtype") | ("max" | "min", "others"))
        && schema.name.as_str().starts_with("aten::")
}

/// Whether a keyword means an argument. What ops call `self` the functions of `torch` call `input`.
fn names(schema: &Schema, formal: &Argument, keyword: &str) -> bool {
    formal.name == keyword
        || (keyword == "input" && formal.name == "self" && schema.name.as_str().starts_with("aten::"))
}

fn default_operand(formal: &Argument, default: &Attr) -> Operand {
    let ty = match default {
        Attr::None => return Operand::Constant(Type::none(), None),
        Attr::Int(_) => Type::int(),
        Attr::Float(_) => Type::float(),
        Attr::Complex(_) => Type::complex(),
        Attr::Bool(_) => Type::bool(),
        Attr::Str(_) => Type::str(),
        Attr::Device(_) => Type::device(),
        _ => strip_optional(&formal.ty).clone(),
    };
    match default {
        Attr::Ints(items) => {
            let items = items.iter().map(|x| Operand::Constant(Type::int(), Some(Attr::Int(*x)))).collect();
            Operand::List(Type::list(Type::int()), items)
        }
        Attr::Floats(items) => {
            let items =
                items.iter().map(|x| Operand::Constant(Type::float(), Some(Attr::Float(*x)))).collect();
            Operand::List(Type::list(Type::float()), items)
        }
        Attr::Bool(x) => Operand::Constant(ty, Some(Attr::Int(i64::from(*x)))),
        // A number for a list of fixed length.
        Attr::Int(_) if formal.fixed_length.is_some() && formal.ty.element().is_some() => Operand::List(
            strip_optional(&formal.ty).clone(),
            vec![Operand::Constant(Type::int(), Some(default.clone())); formal.fixed_length.unwrap_or(1)],
        ),
        other => Operand::Constant(ty, Some(other.clone())),
    }
}

fn strip_optional(ty: &Type) -> &Type {
    match ty.kind() {
        TypeKind::Optional(inner) => inner,
        _ => ty,
    }
}

/// Whether the argument is the last positional one and a list of any length.
fn takes_rest_as_list(schema: &Schema, n: usize) -> bool {
    let is_last = schema.arguments.get(n + 1).is_none_or(|next| next.keyword_only);
    let formal = &schema.arguments[n];
    let is_list = matches!(formal.ty.kind(), TypeKind::List(e) if !matches!(e.kind(), TypeKind::Var(_)));
    is_last && is_list && formal.fixed_length.is_none()
}

fn tuple_fits_list(tuple: &Type, list: &Type, emitter: &Emitter<'_>) -> bool {
    let (Some(items), Some(element)) = (tuple.tuple_elements(), list.element()) else { return false };
    match element.kind() {
        TypeKind::Var(_) => items.windows(2).all(|pair| pair[0] == pair[1]) && !items.is_empty(),
        _ => items.iter().all(|item| emitter.is_subtype(item, element)),
    }
}

/// The op that converts between two types without being asked.
fn implicit_conversion(given: &Type, wanted: &Type) -> Option<(&'static str, Type)> {
    let row = match (given.kind(), wanted.kind()) {
        (TypeKind::Tensor(_), TypeKind::Float) => ("aten::FloatImplicit", Type::float()),
        (TypeKind::Tensor(_), TypeKind::Complex) => ("aten::ComplexImplicit", Type::complex()),
        (TypeKind::Tensor(_), TypeKind::Int) => ("aten::IntImplicit", Type::int()),
        (TypeKind::Tensor(_), TypeKind::Number) => ("aten::ScalarImplicit", Type::number()),
        (TypeKind::Number, TypeKind::Float) => ("aten::Float", Type::float()),
        (TypeKind::Number, TypeKind::Complex) => ("aten::Complex", Type::complex()),
        (TypeKind::Number, TypeKind::Int) => ("aten::Int", Type::int()),
        (TypeKind::Bool, TypeKind::Float) => ("aten::Float", Type::float()),
        (TypeKind::Bool, TypeKind::Int | TypeKind::Number) => ("aten::Int", Type::int()),
        (TypeKind::Str, TypeKind::Device) => ("aten::device", Type::device()),
        _ => return None,
    };
    Some(row)
}
