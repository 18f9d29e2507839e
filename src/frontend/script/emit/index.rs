//! Subscripts: items, slices, and the indexing of tensors.

use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind};
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};
use crate::tensor::DType;

impl Emitter<'_> {
    pub(super) fn subscript(
        &mut self,
        value: &Expr,
        indices: &[Expr],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<Sugared> {
        let object = self.expr(value, None)?;
        if let ([index], Some(hint)) = (indices, hint)
            && self.is_container_of(object, hint)
        {
            let index = self.expr(index, None)?;
            let kind = Symbol::new("prim::ModuleContainerIndex");
            return Ok(Sugared::Value(self.emit_value(kind, &[object, index], hint.clone(), span)));
        }
        if let [index] = indices
            && let TypeKind::Class(_) = self.ty(object).kind()
            && let Ok(index) = self.constant_expr(index)
            && let Some(found) = self.container_item(object, &index, span)?
        {
            return Ok(found);
        }
        if let [index] = indices
            && is_slice(index)
            && let Some(modules) = self.container_list(object, span)?
        {
            // A part of a list of modules is a tuple of them.
            let whole = self.as_value(Sugared::Tuple(modules), span)?;
            let bounds = self.slice_bounds(index)?;
            return self.tuple_slice(whole, bounds, span).map(Sugared::Value);
        }
        self.item(object, indices, span).map(Sugared::Value)
    }

    /// Whether a value is a module whose submodules are chosen while the program runs: they are of an interface.
    fn is_container_of(&self, object: ValueId, wanted: &Type) -> bool {
        matches!(wanted.kind(), TypeKind::Interface(_))
            && self.ty(object).class_name().is_some_and(|class| {
                let is_module = |c: &crate::ir::ClassDef| c.kind == crate::ir::ClassKind::Module;
                self.unit.module.class(class).is_some_and(is_module)
                    && !self.unit.has_method(class, "__getitem__")
            })
    }

    /// `object[indices]`
    pub(super) fn item(&mut self, object: ValueId, indices: &[Expr], span: &Span) -> Result<ValueId> {
        let ty = self.ty(object).clone();
        let is_tensor = ty.is_tensor();
        let [index] = indices else {
            if !is_tensor {
                return error(
                    span,
                    "Unsupported operation: attempted to use multidimensional indexing on a non-tensor type",
                );
            }
            return self.tensor_item(object, indices, span);
        };
        if is_tensor {
            return self.tensor_item(object, indices, span);
        }
        let is_tuple = matches!(ty.kind(), TypeKind::Tuple(..));
        if is_slice(index) {
            let bounds = self.slice_bounds(index)?;
            return if is_tuple {
                self.tuple_slice(object, bounds, span)
            } else {
                self.sequence_slice(object, bounds, span)
            };
        }
        let index = match self.sugared(index, None)? {
            Sugared::Slice(parts) => {
                let [start, stop, step] = parts.as_slice() else {
                    return error(span, "a slice has three parts");
                };
                let bounds = [*start, *stop, *step];
                return if is_tuple {
                    self.tuple_slice(object, bounds, span)
                } else {
                    self.sequence_slice(object, bounds, span)
                };
            }
            other => self.as_value(other, &index.span)?,
        };
        match ty.kind() {
            TypeKind::Tuple(..) => self.tuple_item(object, index, span),
            TypeKind::Class(class)
                if self.is_container(object) && !self.unit.has_method(*class, "__getitem__") =>
            {
                error(
                    span,
                    "Expected integer literal for index but got a variable or non-integer. ModuleList/Sequential indexing is only \
                 supported with integer literals. For example, 'i = 4; self.layers[i](x)' will fail because i is not a literal. \
                 Enumeration is supported, e.g. 'for index, v in enumerate(self): out = v(inp)'",
                )
            }
            TypeKind::Class(_) => self.call_magic(object, "__getitem__", &[index], span),
            TypeKind::List(_) | TypeKind::Str | TypeKind::Dict(..) => {
                self.builtin(Symbol::new("aten::__getitem__"), &[object, index], span)
            }
            _ => error(span, format!("'{}' object is not subscriptable", ty.repr())),
        }
    }

    /// The bounds of a slice, None where left out; the step is 1 then.
    fn slice_bounds(&mut self, slice: &Expr) -> Result<[ValueId; 3]> {
        let span = &slice.span;
        let ExprKind::Slice { start, stop, step } = &slice.kind else {
            return error(span, "expected a slice");
        };
        let hint = Type::int();
        let mut bound = |part: &Option<Box<Expr>>| match part {
            Some(expr) => self.expr(expr, Some(&hint)),
            None => Ok(self.none(span)),
        };
        let (start, stop) = (bound(start)?, bound(stop)?);
        let step = match step {
            Some(expr) => self.expr(expr, Some(&hint))?,
            None => self.int(1, span),
        };
        Ok([start, stop, step])
    }

    fn sequence_slice(
        &mut self,
        object: ValueId,
        [start, stop, step]: [ValueId; 3],
        span: &Span,
    ) -> Result<ValueId> {
        self.builtin(Symbol::new("aten::slice"), &[object, start, stop, step], span)
    }

    fn tuple_item(&mut self, object: ValueId, index: ValueId, span: &Span) -> Result<ValueId> {
        let elements = self.ty(object).tuple_elements().map(<[Type]>::to_vec).unwrap_or_default();
        if *self.ty(index) != Type::int() {
            return error(span, "tuple index must be an integer");
        }
        let len = elements.len() as i64;
        let ty = match self.constant_of(index).and_then(Attr::as_int) {
            Some(n) if n >= -len && n < len => elements[(if n < 0 { n + len } else { n }) as usize].clone(),
            Some(n) => {
                return error(
                    span,
                    format!("Tuple index out of range. Tuple is length {len} and index is {n}"),
                );
            }
            None => match elements.split_first() {
                Some((first, rest)) if rest.iter().all(|ty| ty == first) => first.clone(),
                _ => {
                    return error(
                        span,
                        format!(
                            "Cannot index into a {} with a non-integer literal because we cannot resolve the output type",
                            self.ty(object).repr()
                        ),
                    );
                }
            },
        };
        Ok(self.emit_value(Symbol::new("prim::TupleIndex"), &[object, index], ty, span))
    }

    fn tuple_slice(&mut self, object: ValueId, bounds: [ValueId; 3], span: &Span) -> Result<ValueId> {
        let len = self.ty(object).tuple_elements().map_or(0, <[Type]>::len) as i64;
        let mut known = [None; 3];
        for (slot, bound) in known.iter_mut().zip(bounds) {
            if *self.ty(bound) == Type::none() {
                continue;
            }
            *slot = self.constant_of(bound).and_then(Attr::as_int);
            if slot.is_none() {
                return error(span, "tuple slice indices must be integer constants");
            }
        }
        let [start, stop, step] = known;
        let step = step.unwrap_or(1);
        if step == 0 {
            return error(span, "slice step cannot be zero");
        }
        let clamp =
            |n: i64, low: i64, high: i64| (if n < 0 { n.saturating_add(len) } else { n }).clamp(low, high);
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let mut at = start.map_or(if step > 0 { 0 } else { len - 1 }, |n| clamp(n, low, high));
        let stop = stop.map_or(if step > 0 { len } else { -1 }, |n| clamp(n, low, high));
        let items = self.unpack(object, span)?;
        let mut kept = Vec::new();
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            if let Some(item) = usize::try_from(at).ok().and_then(|n| items.get(n)) {
                kept.push(*item);
            }
            at = at.saturating_add(step);
        }
        Ok(self.make_tuple(&kept, span))
    }

    /// Integers and slices are views one after the other; tensors and lists go to `aten::index` together.
    fn tensor_item(&mut self, object: ValueId, indices: &[Expr], span: &Span) -> Result<ValueId> {
        // Alone it is an expression like any other, which an ellipsis cannot be; a store takes it.
        if let [dots] = indices
            && matches!(dots.kind, ExprKind::Dots)
        {
            return self.expr(dots, None);
        }
        let (value, gathered) = self.tensor_views(object, indices, span)?;
        if gathered.is_empty() {
            return Ok(value);
        }
        let list = self.index_list(&gathered, span)?;
        self.builtin(Symbol::new("aten::index"), &[value, list], span)
    }

    pub(super) fn index_list(&mut self, gathered: &[Option<ValueId>], span: &Span) -> Result<ValueId> {
        let items: Vec<ValueId> = gathered
            .iter()
            .map(|index| match index {
                Some(value) => *value,
                None => self.none(span),
            })
            .collect();
        let ty = Type::list(Type::optional(Type::tensor()));
        Ok(self.emit_value(Symbol::new("prim::ListConstruct"), &items, ty, span))
    }

    /// Applies the parts of an index that are views; gives what is left to gather, by dimension of the view.
    ///
    /// Dimensions before an ellipsis are counted from the front, those after it from the back, and all are
    /// settled before anything is applied.
    pub(super) fn tensor_views(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        span: &Span,
    ) -> Result<(ValueId, Vec<Option<ValueId>>)> {
        let indices: Vec<&Expr> = match indices {
            [Expr { kind: ExprKind::Tuple(items), .. }] => items.iter().collect(),
            _ => indices.iter().collect(),
        };
        let dots = indices.iter().position(|e| matches!(e.kind, ExprKind::Dots));
        let (front, back) = indices.split_at(dots.unwrap_or(indices.len()));
        let mut parts: Vec<(i64, Part)> = Vec::with_capacity(indices.len());
        let mut dim = 0;
        for index in front {
            let part = self.index_part(index, span)?;
            let next = dim + i64::from(!matches!(part, Part::Int(_)));
            parts.push((dim, part));
            dim = next;
        }
        let mut behind: Vec<(i64, Part)> = Vec::new();
        let mut dim = -1;
        for index in back.iter().skip(1).rev() {
            if matches!(index.kind, ExprKind::Dots) {
                return error(span, "An index can only have a single ellipsis ('...')");
            }
            let part = self.index_part(index, span)?;
            if matches!(part, Part::Gather(_)) {
                return error(span, "Ellipses followed by tensor indexing is currently not supported");
            }
            let next = dim - i64::from(!matches!(part, Part::NewAxis));
            behind.push((dim, part));
            dim = next;
        }
        parts.extend(behind.into_iter().rev());
        self.apply_parts(object, parts, span)
    }

    fn apply_parts(
        &mut self,
        object: ValueId,
        parts: Vec<(i64, Part)>,
        span: &Span,
    ) -> Result<(ValueId, Vec<Option<ValueId>>)> {
        let mut value = object;
        let mut gathered: Vec<Option<ValueId>> = Vec::new();
        for (dim, part) in parts {
            value = match part {
                Part::Gather(index) => {
                    let place = usize::try_from(dim).unwrap_or(0);
                    gathered.resize(place + 1, None);
                    gathered[place] = Some(index);
                    continue;
                }
                Part::NewAxis => {
                    let at = self.int(dim, span);
                    self.builtin(Symbol::new("aten::unsqueeze"), &[value, at], span)?
                }
                Part::Int(index) => {
                    let at = self.int(dim, span);
                    self.builtin(Symbol::new("aten::select"), &[value, at, index], span)?
                }
                Part::Slice([start, stop, step]) => {
                    let at = self.int(dim, span);
                    self.builtin(Symbol::new("aten::slice"), &[value, at, start, stop, step], span)?
                }
            };
        }
        Ok((value, gathered))
    }

    fn index_part(&mut self, index: &Expr, whole: &Span) -> Result<Part> {
        let span = &index.span;
        if let ExprKind::Slice { .. } = index.kind {
            return self.slice_bounds(index).map(Part::Slice);
        }
        let value = match self.sugared(index, None)? {
            Sugared::Slice(parts) => {
                if let [start, stop, step] = parts.as_slice() {
                    return Ok(Part::Slice([*start, *stop, *step]));
                }
                return error(span, "a slice has three parts");
            }
            other => self.as_value(other, span)?,
        };
        let ty = self.ty(value).clone();
        Ok(match ty.kind() {
            TypeKind::None => Part::NewAxis,
            TypeKind::Int => Part::Int(value),
            TypeKind::Tensor(_) => Part::Gather(value),
            TypeKind::Optional(inner) if inner.is_tensor() => Part::Gather(value),
            // A list is a tensor of indices, whatever it holds.
            TypeKind::List(_) => {
                let long = self.int(DType::I64.code(), whole);
                let named = [("dtype", long)];
                Part::Gather(self.builtin_named(Symbol::new("aten::tensor"), &[value], &named, whole)?)
            }
            _ => {
                return error(
                    whole,
                    format!(
                        "Unsupported operation: indexing tensor with unsupported index type '{}'. Only ints, slices, lists and tensors are supported",
                        ty.repr()
                    ),
                );
            }
        })
    }
}

/// One part of a tensor index.
enum Part {
    /// `None`
    NewAxis,
    Int(ValueId),
    Slice([ValueId; 3]),
    /// A tensor of indices or a mask.
    Gather(ValueId),
}

/// Whether an expression is a slice with bounds.
pub(super) fn is_slice(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Slice { .. })
}
