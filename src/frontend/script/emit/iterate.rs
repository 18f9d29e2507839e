//! Loops, comprehensions, and what can be iterated over.

use super::emitter::Loops;
use super::sugared::Iterable;
use super::{Emitter, Sugared, error, literal};
use crate::diag::{Diagnostic, Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Stmt};
use crate::frontend::script::kinds;
use crate::ir::{Symbol, Type, TypeKind, ValueId};

/// Maximum number of unrolled iterations of loops over tuples and modules in a function, nested ones counted each time.
pub(super) const MAX_UNROLLED: usize = 20_000;

pub(super) fn too_much_unrolled(span: &Span) -> Diagnostic {
    let message =
        format!("loops over tuples and modules are unrolled, here to more than {MAX_UNROLLED} iterations");
    Diagnostic::compile(message).at(span).hint("loop over a list or a range: such loops stay loops")
}

impl Emitter<'_> {
    /// `zip(...)`: loops over tuples are unrolled, so that nothing of unknown length may stand beside them.
    pub(super) fn zipped(&self, parts: Vec<Iterable>, span: &Span) -> Result<Sugared> {
        let known = parts.iter().filter(|p| p.unrolled_len().is_some()).count();
        if known > 0 && known < parts.len() {
            return error(
                span,
                "Can not iterate over a module list or tuple with a value that does not have a statically determinable length\n",
            );
        }
        Ok(Sugared::Iterable(Box::new(Iterable::Zip(parts))))
    }

    /// What iterating over a sugared value means.
    pub(super) fn iterable(&mut self, value: Sugared, span: &Span) -> Result<Iterable> {
        match value {
            Sugared::Iterable(iterable) => Ok(*iterable),
            Sugared::Tuple(items) => Ok(Iterable::Unrolled(items)),
            Sugared::Value(value) => {
                if let Some(items) = self.container_items(value, span)? {
                    return Ok(Iterable::Unrolled(items));
                }
                let ty = self.ty(value).clone();
                match ty.kind() {
                    TypeKind::List(_) | TypeKind::Tensor(_) | TypeKind::Str => Ok(Iterable::Indexed(value)),
                    TypeKind::Dict(..) => {
                        let keys = self.builtin(Symbol::new("aten::keys"), &[value], span)?;
                        Ok(Iterable::Indexed(keys))
                    }
                    TypeKind::Tuple(..) => {
                        let items = self.unpack(value, span)?;
                        Ok(Iterable::Unrolled(items.into_iter().map(Sugared::Value).collect()))
                    }
                    TypeKind::Class(class)
                        if ["__len__", "__getitem__"].iter().all(|m| self.unit.has_method(*class, m)) =>
                    {
                        Ok(Iterable::Indexed(value))
                    }
                    _ => error(span, format!("'{}' object is not iterable", ty.repr())),
                }
            }
            Sugared::Constant(..) => {
                let value = self.as_value(value, span)?;
                self.iterable(Sugared::Value(value), span)
            }
            Sugared::EnumClass(class) => {
                let ty = self.unit.enum_type(class);
                let names =
                    self.unit.module.enums.get(&class).map(|def| def.members.clone()).unwrap_or_default();
                let mut members = Vec::with_capacity(names.len());
                for (name, _) in &names {
                    let member = self.enum_member(class, name.as_str(), span)?;
                    members.push(self.as_value(member, span)?);
                }
                let list = Type::list(ty);
                let kind = Symbol::new("prim::ListConstruct");
                Ok(Iterable::Indexed(self.emit_value(kind, &members, list, span)))
            }
            other => {
                let kind = self.kind_of(&other);
                let kind = kind.split(" cannot be used").next().unwrap_or_default();
                error(span, format!("{kind} cannot be used as an iterable"))
            }
        }
    }

    fn len_of(&mut self, iterable: &Iterable, span: &Span) -> Result<ValueId> {
        match iterable {
            Iterable::Indexed(value) if self.ty(*value).class_name().is_some() => {
                self.call_magic(*value, "__len__", &[], span)
            }
            Iterable::Indexed(value) => self.builtin(Symbol::new("aten::len"), &[*value], span),
            Iterable::Range { start: None, end, .. } => Ok(*end),
            Iterable::Range { start: Some(start), end, step } => {
                let step = match step {
                    Some(step) => *step,
                    None => self.int(1, span),
                };
                self.builtin(Symbol::new("aten::__range_length"), &[*start, *end, step], span)
            }
            Iterable::Zip(parts) => {
                let lens = parts.iter().map(|p| self.len_of(p, span)).collect::<Result<Vec<_>>>()?;
                if let [only] = lens.as_slice() {
                    return Ok(*only);
                }
                let list =
                    self.emit_value(Symbol::new("prim::ListConstruct"), &lens, Type::list(Type::int()), span);
                self.builtin(Symbol::new("prim::min"), &[list], span)
            }
            Iterable::Enumerate(_, inner) => self.len_of(inner, span),
            Iterable::Unrolled(items) => Ok(self.int(items.len() as i64, span)),
        }
    }

    fn item_of(
        &mut self,
        iterable: &Iterable,
        index: ValueId,
        trip: Option<usize>,
        span: &Span,
    ) -> Result<Sugared> {
        let value = match iterable {
            Iterable::Indexed(value) if self.ty(*value).is_tensor() => {
                let zero = self.int(0, span);
                self.builtin(Symbol::new("aten::select"), &[*value, zero, index], span)?
            }
            Iterable::Indexed(value) if self.ty(*value).class_name().is_some() => {
                self.call_magic(*value, "__getitem__", &[index], span)?
            }
            Iterable::Indexed(value) => {
                self.builtin(Symbol::new("aten::__getitem__"), &[*value, index], span)?
            }
            Iterable::Range { start: None, .. } => index,
            Iterable::Range { start: Some(start), step, .. } => {
                let step = match step {
                    Some(step) => *step,
                    None => self.int(1, span),
                };
                self.builtin(Symbol::new("aten::__derive_index"), &[index, *start, step], span)?
            }
            Iterable::Zip(parts) => {
                let items =
                    parts.iter().map(|p| self.item_of(p, index, trip, span)).collect::<Result<Vec<_>>>()?;
                return Ok(Sugared::Tuple(items));
            }
            Iterable::Enumerate(start, inner) => {
                let item = self.item_of(inner, index, trip, span)?;
                let is_zero = self.constant_of(*start).and_then(|a| a.as_int()) == Some(0);
                let number = if is_zero {
                    index
                } else {
                    self.builtin(Symbol::new("aten::add"), &[index, *start], span)?
                };
                return Ok(Sugared::Tuple(vec![Sugared::Value(number), item]));
            }
            Iterable::Unrolled(items) => {
                return match trip.and_then(|n| items.get(n)) {
                    Some(item) => Ok(item.clone()),
                    None => error(span, "a tuple is iterated over beside something of unknown length"),
                };
            }
        };
        Ok(Sugared::Value(value))
    }

    pub(super) fn for_statement(
        &mut self,
        targets: &[Expr],
        iters: &[Expr],
        body: &[Stmt],
        span: &Span,
    ) -> Result<()> {
        let [iter] = iters else {
            return error(span, "List of iterables is not supported currently");
        };
        let value = self.sugared(iter, None)?;
        let iterable = self.iterable(value, span)?;
        let targets = Targets::Variables(targets);
        match iterable.unrolled_len() {
            Some(trips) => self.unrolled_loop(&iterable, trips, targets, span, |e| e.statements(body)),
            None => self.counted_loop(Some((&iterable, targets)), None, span, |e| e.statements(body)),
        }
    }

    pub(super) fn while_statement(&mut self, cond: &Expr, body: &[Stmt], span: &Span) -> Result<()> {
        self.counted_loop(None, Some(cond), span, |e| e.statements(body))
    }

    /// Emits the body once for each iteration, in the scope around the loop.
    fn unrolled_loop(
        &mut self,
        iterable: &Iterable,
        trips: usize,
        targets: Targets<'_>,
        span: &Span,
        mut body: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let outer = std::mem::replace(&mut self.loops, Loops::Unrolled);
        let result = (0..trips).try_for_each(|trip| {
            if self.exiting.contains(&self.block) {
                return Ok(());
            }
            self.unrolled += 1;
            if self.unrolled > MAX_UNROLLED {
                return Err(too_much_unrolled(span));
            }
            let index = self.int(trip as i64, span);
            let item = self.item_of(iterable, index, Some(trip), span)?;
            self.bind(targets, item, span)?;
            body(self)
        });
        self.loops = outer;
        result
    }

    /// Emits `prim::Loop` with a body and a condition block.
    fn counted_loop(
        &mut self,
        iteration: Option<(&Iterable, Targets<'_>)>,
        cond: Option<&Expr>,
        span: &Span,
        body: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        let count = match iteration {
            Some((iterable, _)) => self.len_of(iterable, span)?,
            None => self.int(i64::MAX, span),
        };
        let always = if cond.is_none() { Some(self.bool(true, span)) } else { None };
        let op = self.emit(kinds::loop_(), &[count], &[], span);
        let (body_block, cond_block) = (self.graph.add_block(op), self.graph.add_block(op));
        self.in_block(cond_block, |e| {
            let value = match (cond, always) {
                (Some(cond), _) => {
                    let value = e.expr(cond, None)?;
                    e.to_bool(value, &cond.span)?
                }
                (None, Some(always)) => always,
                (None, None) => e.bool(true, span),
            };
            e.graph.add_block_result(cond_block, value);
            Ok(())
        })?;
        let index = self.graph.add_param(body_block, Type::int());
        let outer = std::mem::replace(&mut self.loops, Loops::Counted);
        let result = self.in_block(body_block, |e| {
            if let Some((iterable, targets)) = iteration {
                let item = e.item_of(iterable, index, None, span)?;
                let item = e.as_value(item, span)?;
                e.bind(targets, Sugared::Value(item), span)?;
            }
            body(e)
        });
        self.loops = outer;
        result.map(|_| ())
    }

    fn bind(&mut self, targets: Targets<'_>, item: Sugared, span: &Span) -> Result<()> {
        match targets {
            Targets::Local(target) => self.bind_local(target, item, span),
            Targets::Variables(targets) => {
                super::assign::check_targets(targets, span)?;
                match targets {
                    [] => Ok(()),
                    [only] => self.assign_to(only, item, span, span),
                    many => self.assign_unpacked(many, item, span, span),
                }
            }
        }
    }

    /// `[element for target in iter]`
    pub(super) fn list_comprehension(
        &mut self,
        element: &Expr,
        target: &Expr,
        iter: &Expr,
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let wanted = literal::wanted_container(hint, "List", literal::is_list, span)?;
        let value = self.sugared(iter, None)?;
        let iterable = self.iterable(value, span)?;
        self.comprehended(&iterable, Targets::Local(target), span, wanted, |e| e.expr(element, None))
    }

    /// Appends to a new list in a loop. Its type is known only after the first element was emitted.
    fn comprehended(
        &mut self,
        iterable: &Iterable,
        targets: Targets<'_>,
        span: &Span,
        wanted: literal::Wanted,
        mut element: impl FnMut(&mut Self) -> Result<ValueId>,
    ) -> Result<ValueId> {
        let (mut ty, stated) = match wanted {
            literal::Wanted::One(ty) => (Some(ty), true),
            _ => (None, false),
        };
        let unknown = Type::list(Type::tensor());
        let list =
            self.emit_value(Symbol::new("prim::ListConstruct"), &[], ty.clone().unwrap_or(unknown), span);
        let slot = &mut ty;
        self.repeat(iterable, targets, span, |e| {
            let item = element(e)?;
            let item_ty = e.ty(item).unshaped();
            let element = match slot.as_ref().and_then(|ty| ty.element()) {
                None => item_ty,
                Some(element) if e.is_subtype(&item_ty, element) => element.clone(),
                Some(element) => {
                    let unified = if stated { None } else { e.unify(element, &item_ty, true) };
                    return error(
                        span,
                        format!(
                            "List type annotation `{}` did not match the types of the given list elements, which were unified to {}",
                            Type::list(element.clone()).repr(),
                            unified.unwrap_or(item_ty).repr()
                        ),
                    );
                }
            };
            let ty = Type::list(element);
            e.graph.set_type(list, ty.clone());
            *slot = Some(ty);
            e.builtin_op(Symbol::new("aten::append"), &[list, item], span)
        })?;
        Ok(list)
    }

    /// A loop over anything, unrolled where it must be.
    fn repeat(
        &mut self,
        iterable: &Iterable,
        targets: Targets<'_>,
        span: &Span,
        body: impl FnMut(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match iterable.unrolled_len() {
            Some(trips) => self.in_scope(|e| e.unrolled_loop(iterable, trips, targets, span, body)),
            None => self.counted_loop(Some((iterable, targets)), None, span, body),
        }
    }

    /// `{key: value for target in iter}`
    pub(super) fn dict_comprehension(
        &mut self,
        key: &Expr,
        value: &Expr,
        target: &Expr,
        iter: &Expr,
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let wanted = literal::wanted_container(hint, "Dict", literal::is_dict, span)?;
        let over = self.sugared(iter, None)?;
        let iterable = self.iterable(over, span)?;
        let pair = |e: &mut Self| Ok((e.expr(key, None)?, e.expr(value, None)?));
        self.collected(&iterable, target, span, wanted, pair)
    }

    /// A dictionary of the pairs that are iterated over: `dict(x)`.
    pub(super) fn collect_dict(
        &mut self,
        iterable: &Iterable,
        span: &Span,
        wanted: literal::Wanted,
    ) -> Result<ValueId> {
        let name = |text: &str| Expr::new(ExprKind::Name(text.to_string()), span.clone());
        let (key, value) = (name("$key")?, name("$value")?);
        let target = Expr::new(ExprKind::Tuple(vec![key.clone(), value.clone()]), span.clone())?;
        let pair = |e: &mut Self| Ok((e.expr(&key, None)?, e.expr(&value, None)?));
        self.collected(iterable, &target, span, wanted, pair)
    }

    /// Stores pairs in a new dictionary in a loop. Its type is known only after the first pair was emitted.
    fn collected(
        &mut self,
        iterable: &Iterable,
        target: &Expr,
        span: &Span,
        wanted: literal::Wanted,
        mut pair: impl FnMut(&mut Self) -> Result<(ValueId, ValueId)>,
    ) -> Result<ValueId> {
        let (mut ty, stated) = match wanted {
            literal::Wanted::One(ty) => (Some(ty), true),
            _ => (None, false),
        };
        let unknown = Type::dict(Type::str(), Type::tensor());
        let first = ty.clone().unwrap_or(unknown);
        let dict = self.emit_value(Symbol::new("prim::DictConstruct"), &[], first, span);
        let slot = &mut ty;
        self.repeat(iterable, Targets::Local(target), span, |e| {
            let (k, v) = pair(e)?;
            let (kt, vt) = (e.ty(k).unshaped(), e.ty(v).unshaped());
            if let TypeKind::Union(_) = kt.kind() {
                return error(
                    span,
                    format!(
                        "Dicts may only contain homogeneous keys, but the type of the first generated key was {}",
                        kt.repr()
                    ),
                );
            }
            match slot.as_ref().and_then(literal::dict_parts) {
                Some((key, value)) => e.check_pair((key, &kt), (value, &vt), stated, span)?,
                None => {
                    e.check_key_type(&kt)?;
                    let ty = Type::dict(kt, vt);
                    e.graph.set_type(dict, ty.clone());
                    *slot = Some(ty);
                }
            }
            e.builtin_op(Symbol::new("aten::_set_item"), &[dict, k, v], span)
        })?;
        Ok(dict)
    }

    /// Whether a pair fits into a dictionary: what it should be stands before what it is.
    fn check_pair(
        &self,
        (key, given_key): (&Type, &Type),
        (value, given_value): (&Type, &Type),
        stated: bool,
        span: &Span,
    ) -> Result<()> {
        if !stated && !self.is_subtype(given_key, key) {
            return error(
                span,
                format!(
                    "Dicts may only contain homogeneous keys. Expected dict comprehension to generate type {}, but got {}",
                    key.repr(),
                    given_key.repr()
                ),
            );
        }
        let annotation = Type::dict(key.clone(), value.clone()).repr().to_string();
        let mut wrong = String::new();
        for (what, given, wanted) in [("key", given_key, key), ("value", given_value, value)] {
            if !self.is_subtype(given, wanted) {
                wrong.push_str(&format!(
                    "Dict type annotation `{annotation}` did not match the type of an actual {what} type `{}`\n",
                    given.repr()
                ));
            }
        }
        if wrong.is_empty() { Ok(()) } else { error(span, wrong) }
    }

    /// `range(...)`, `enumerate(...)`, `zip(...)` as sugared values.
    pub(super) fn range(&mut self, args: &[ValueId], span: &Span) -> Result<Sugared> {
        for (n, arg) in args.iter().enumerate() {
            if *self.ty(*arg) != Type::int() {
                return error(
                    span,
                    format!(
                        "all inputs of range must be ints, found {} in argument {n}",
                        self.ty(*arg).repr()
                    ),
                );
            }
        }
        let range = match args {
            [end] => Iterable::Range { start: None, end: *end, step: None },
            [start, end] => Iterable::Range { start: Some(*start), end: *end, step: None },
            [start, end, step] => Iterable::Range { start: Some(*start), end: *end, step: Some(*step) },
            [] => return error(span, "range expected at least 1 arguments, got 0"),
            more => return error(span, format!("range expected at most 3 arguments, got {}", more.len())),
        };
        Ok(Sugared::Iterable(Box::new(range)))
    }

    /// A list of everything that is iterated over: `list(x)`.
    pub(super) fn collect_list(
        &mut self,
        iterable: &Iterable,
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let wanted = literal::wanted_container(hint, "List", literal::is_list, span)?;
        // The item is taken in the loop's block, just before the body runs.
        let name = Expr::new(ExprKind::Name("$elem".to_string()), span.clone())?;
        self.comprehended(iterable, Targets::Local(&name), span, wanted, |e| e.expr(&name, None))
    }
}

/// What the items of a loop are given to.
#[derive(Clone, Copy)]
pub(super) enum Targets<'a> {
    /// The variables of a `for` statement.
    Variables(&'a [Expr]),
    /// The variable of a comprehension, which nothing outside sees.
    Local(&'a Expr),
}
