//! Loops, comprehensions, and what can be iterated over.

use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Stmt};
use crate::frontend::script::kinds;
use crate::ir::{Symbol, Type, TypeKind, ValueId};

/// Something to iterate over.
#[derive(Clone, Debug)]
pub(super) enum Iterable {
    /// A list, tensor or string, element by element.
    Indexed(ValueId),
    /// `range(end)` or `range(start, end, step)`.
    Range { start: Option<ValueId>, end: ValueId, step: Option<ValueId> },
    /// Several side by side; the shortest ends it.
    Zip(Vec<Iterable>),
    /// A tuple, which is unrolled.
    Unrolled(Vec<Sugared>),
    /// `enumerate(x, start)`.
    Enumerate(ValueId, Box<Iterable>),
}

impl Iterable {
    /// The number of turns, where the loop must be unrolled.
    fn unrolled_len(&self) -> Option<usize> {
        match self {
            Iterable::Unrolled(items) => Some(items.len()),
            Iterable::Zip(parts) => parts.iter().filter_map(Iterable::unrolled_len).min(),
            Iterable::Enumerate(_, inner) => inner.unrolled_len(),
            Iterable::Indexed(_) | Iterable::Range { .. } => None,
        }
    }
}

impl Emitter<'_> {
    /// What iterating over a sugared value means.
    pub(super) fn iterable(&mut self, value: Sugared, span: &Span) -> Result<Iterable> {
        match value {
            Sugared::Iterable(iterable) => Ok(*iterable),
            Sugared::Tuple(items) => Ok(Iterable::Unrolled(items)),
            Sugared::Value(value) => {
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
                    _ => error(span, format!("'{}' object is not iterable", ty.repr())),
                }
            }
            other => {
                let value = self.as_value(other, span)?;
                self.iterable(Sugared::Value(value), span)
            }
        }
    }

    /// `len(range(n))` and the like.
    pub(super) fn iterable_len(&mut self, iterable: &Iterable, span: &Span) -> Result<ValueId> {
        self.len_of(iterable, span)
    }

    fn len_of(&mut self, iterable: &Iterable, span: &Span) -> Result<ValueId> {
        match iterable {
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
        turn: Option<usize>,
        span: &Span,
    ) -> Result<Sugared> {
        let value = match iterable {
            Iterable::Indexed(value) if self.ty(*value).is_tensor() => {
                let zero = self.int(0, span);
                self.builtin(Symbol::new("aten::select"), &[*value, zero, index], span)?
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
                    parts.iter().map(|p| self.item_of(p, index, turn, span)).collect::<Result<Vec<_>>>()?;
                return Ok(Sugared::Tuple(items));
            }
            Iterable::Enumerate(start, inner) => {
                let item = self.item_of(inner, index, turn, span)?;
                let is_zero = self.constant_of(*start).and_then(|a| a.as_int()) == Some(0);
                let number = if is_zero {
                    index
                } else {
                    self.builtin(Symbol::new("aten::add"), &[index, *start], span)?
                };
                return Ok(Sugared::Tuple(vec![Sugared::Value(number), item]));
            }
            Iterable::Unrolled(items) => {
                return match turn.and_then(|n| items.get(n)) {
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
        match iterable.unrolled_len() {
            Some(turns) => self.unrolled_loop(&iterable, turns, targets, body, span),
            None => self.counted_loop(Some((&iterable, targets)), None, span, |e| e.statements(body)),
        }
    }

    pub(super) fn while_statement(&mut self, cond: &Expr, body: &[Stmt], span: &Span) -> Result<()> {
        self.counted_loop(None, Some(cond), span, |e| e.statements(body))
    }

    fn unrolled_loop(
        &mut self,
        iterable: &Iterable,
        turns: usize,
        targets: &[Expr],
        body: &[Stmt],
        span: &Span,
    ) -> Result<()> {
        let loops = std::mem::replace(&mut self.loops, 0);
        let result = (0..turns).try_for_each(|turn| {
            let index = self.int(turn as i64, span);
            let item = self.item_of(iterable, index, Some(turn), span)?;
            self.assign_targets(targets, item, span)?;
            self.statements(body).map_err(|d| {
                if d.message().ends_with("outside loop") {
                    d.note("loops over tuples are unrolled, where break and continue are not supported")
                } else {
                    d
                }
            })
        });
        self.loops = loops;
        result
    }

    /// Emits `prim::Loop` with a body and a condition block.
    fn counted_loop(
        &mut self,
        iteration: Option<(&Iterable, &[Expr])>,
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
                (Some(cond), _) => e.condition(cond)?.value,
                (None, Some(always)) => always,
                (None, None) => e.bool(true, span),
            };
            e.graph.add_block_result(cond_block, value);
            Ok(())
        })?;
        let index = self.graph.add_param(body_block, Type::int());
        self.loops += 1;
        let result = self.in_block(body_block, |e| {
            if let Some((iterable, targets)) = iteration {
                let item = e.item_of(iterable, index, None, span)?;
                e.assign_targets(targets, item, span)?;
            }
            body(e)
        });
        self.loops -= 1;
        result.map(|_| ())
    }

    fn assign_targets(&mut self, targets: &[Expr], item: Sugared, span: &Span) -> Result<()> {
        match targets {
            [] => Ok(()),
            [only] => self.assign_to(only, item, None, span, &only.span),
            many => self.assign_unpacked(many, item, span, span),
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
        let wanted = hint.and_then(|ty| match ty.kind() {
            TypeKind::List(t) => Some(t.clone()),
            _ => None,
        });
        let value = self.sugared(iter, None)?;
        let iterable = self.iterable(value, &iter.span)?;
        if let Some(turns) = iterable.unrolled_len() {
            return self.unrolled_list(element, target, &iterable, turns, span);
        }
        let list = self.emit_value(Symbol::new("prim::ListConstruct"), &[], Type::list(Type::tensor()), span);
        let hidden = self.hidden_by(target, span)?;
        let mut met = wanted.clone();
        let slot = &mut met;
        // The element's type is known only after the element was emitted, so the list is typed then.
        self.counted_loop(Some((&iterable, std::slice::from_ref(target))), None, span, |e| {
            let item = e.expr(element, wanted.as_ref())?;
            let ty = e.ty(item).unshaped();
            if let Some(wanted) = slot.as_ref() {
                if !e.is_subtype(&ty, wanted) {
                    return error(
                        span,
                        format!(
                            "List type annotation `List[{}]` did not match the types of the given list elements, which were unified to {}",
                            wanted.repr(),
                            ty.repr()
                        ),
                    );
                }
            } else {
                *slot = Some(ty);
            }
            let append = e.graph.create(Symbol::new("aten::append"), &[list, item], &[Type::list(Type::tensor())]);
            e.graph.set_location(append, span.clone().into());
            let block = e.block;
            e.graph.append(block, append);
            if let (Some(result), Some(ty)) = (e.graph.result(append, 0), slot.as_ref()) {
                e.graph.set_type(result, Type::list(ty.clone()));
            }
            Ok(())
        })?;
        self.restore(hidden, span);
        self.graph.set_type(list, Type::list(met.unwrap_or_else(Type::tensor)));
        Ok(list)
    }

    /// Variables that a comprehension's own variables hide, with their values.
    fn hidden_by(&mut self, target: &Expr, span: &Span) -> Result<Vec<(String, ValueId)>> {
        let names: Vec<&str> = match &target.kind {
            ExprKind::Name(name) => vec![name],
            ExprKind::Tuple(items) | ExprKind::List(items) => items
                .iter()
                .filter_map(|item| match &item.kind {
                    ExprKind::Name(name) => Some(name.as_str()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let mut hidden = Vec::new();
        for name in names {
            if self.variable_type(name).is_some()
                && let Sugared::Value(value) = self.name(name, span)?
            {
                hidden.push((name.to_string(), value));
            }
        }
        Ok(hidden)
    }

    /// Gives variables the values back that they had before a comprehension.
    fn restore(&mut self, hidden: Vec<(String, ValueId)>, span: &Span) {
        for (name, value) in hidden {
            let ty = self.ty(value).clone();
            self.store(&name, value, ty, span);
        }
    }

    fn unrolled_list(
        &mut self,
        element: &Expr,
        target: &Expr,
        iterable: &Iterable,
        turns: usize,
        span: &Span,
    ) -> Result<ValueId> {
        let mut items = Vec::new();
        for turn in 0..turns {
            let index = self.int(turn as i64, span);
            let item = self.item_of(iterable, index, Some(turn), span)?;
            self.assign_to(target, item, None, span, &target.span)?;
            items.push(self.expr(element, None)?);
        }
        self.list_of(&items, None, span)
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
        let over = self.sugared(iter, None)?;
        let iterable = self.iterable(over, &iter.span)?;
        let unknown = Type::dict(Type::str(), Type::tensor());
        let dict = self.emit_value(Symbol::new("prim::DictConstruct"), &[], unknown.clone(), span);
        let mut met = hint.filter(|ty| matches!(ty.kind(), TypeKind::Dict(..))).cloned();
        let slot = &mut met;
        self.counted_loop(Some((&iterable, std::slice::from_ref(target))), None, span, |e| {
            let k = e.expr(key, None)?;
            let v = e.expr(value, None)?;
            if slot.is_none() {
                *slot = Some(Type::dict(e.ty(k).unshaped(), e.ty(v).unshaped()));
            }
            e.emit(Symbol::new("aten::_set_item"), &[dict, k, v], &[], span);
            Ok(())
        })?;
        self.graph.set_type(dict, met.unwrap_or(unknown));
        Ok(dict)
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

    /// The list that `range(...)` and the like make when used as a value.
    pub(super) fn materialize(&mut self, iterable: &Iterable, span: &Span) -> Result<ValueId> {
        match iterable {
            Iterable::Indexed(value) => Ok(*value),
            Iterable::Range { start, end, step } => {
                let start = match start {
                    Some(start) => *start,
                    None => self.int(0, span),
                };
                let step = match step {
                    Some(step) => *step,
                    None => self.int(1, span),
                };
                self.builtin(Symbol::new("prim::rangelist"), &[*end], span)
                    .or_else(|_| self.builtin(Symbol::new("aten::arange"), &[start, *end, step], span))
            }
            Iterable::Unrolled(items) => self.as_value(Sugared::Tuple(items.clone()), span),
            Iterable::Zip(_) | Iterable::Enumerate(..) => {
                error(span, "zip and enumerate can only be iterated over, not used as values")
            }
        }
    }

    /// A list of everything that is iterated over: `list(x)`.
    pub(super) fn collect_list(&mut self, iterable: &Iterable, span: &Span) -> Result<ValueId> {
        if let Some(turns) = iterable.unrolled_len() {
            let mut items = Vec::new();
            for turn in 0..turns {
                let index = self.int(turn as i64, span);
                let item = self.item_of(iterable, index, Some(turn), span)?;
                items.push(self.as_value(item, span)?);
            }
            return self.list_of(&items, None, span);
        }
        let list = self.emit_value(Symbol::new("prim::ListConstruct"), &[], Type::list(Type::tensor()), span);
        let mut met = None;
        let slot = &mut met;
        let count = self.len_of(iterable, span)?;
        let always = self.bool(true, span);
        let op = self.emit(kinds::loop_(), &[count], &[], span);
        let (body, cond) = (self.graph.add_block(op), self.graph.add_block(op));
        self.graph.add_block_result(cond, always);
        let index = self.graph.add_param(body, Type::int());
        self.in_block(body, |e| {
            let item = e.item_of(iterable, index, None, span)?;
            let item = e.as_value(item, span)?;
            let ty = Type::list(e.ty(item).unshaped());
            e.emit_value(Symbol::new("aten::append"), &[list, item], ty.clone(), span);
            *slot = Some(ty);
            Ok(())
        })?;
        self.graph.set_type(list, met.unwrap_or_else(|| Type::list(Type::tensor())));
        Ok(list)
    }
}

/// Whether an expression is a slice with bounds.
pub(super) fn is_slice(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Slice { .. })
}
