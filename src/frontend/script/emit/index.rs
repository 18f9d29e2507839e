//! Subscripts: items, slices, and the indexing of tensors.

use super::iterate::is_slice;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind};
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    pub(super) fn subscript(&mut self, value: &Expr, indices: &[Expr], span: &Span) -> Result<Sugared> {
        let object = match self.sugared(value, None)? {
            // A subscript of a type is a type: `List[int]`.
            Sugared::Type(_) | Sugared::Namespace(_) | Sugared::Unusable(_) => {
                return error(span, "only values can be subscripted");
            }
            Sugared::Class(name) => return self.enum_item(name, indices, span),
            other => self.as_value(other, &value.span)?,
        };
        self.item(object, indices, span).map(Sugared::Value)
    }

    fn enum_item(&mut self, name: Symbol, _: &[Expr], span: &Span) -> Result<Sugared> {
        error(span, format!("'{name}' object is not subscriptable"))
    }

    /// `object[indices]`
    pub(super) fn item(&mut self, object: ValueId, indices: &[Expr], span: &Span) -> Result<ValueId> {
        let ty = self.ty(object).clone();
        match ty.kind() {
            TypeKind::Tensor(_) => self.tensor_item(object, indices, span),
            TypeKind::Class(_) => {
                let [index] = indices else {
                    return error(span, "only a single index is supported here");
                };
                if let ExprKind::Slice { start, stop, step } = &index.kind {
                    return self.slice_magic(object, [start, stop, step], span);
                }
                let index = self.expr(index, None)?;
                self.call_magic(object, "__getitem__", &[index], span)
            }
            TypeKind::Tuple(..) => match indices {
                [slice] if is_slice(slice) => self.tuple_slice(object, slice, span),
                [index] => self.tuple_item(object, index, span),
                _ => error(span, "Only a single index is supported for tuples"),
            },
            TypeKind::List(_) | TypeKind::Str => match indices {
                [slice] if is_slice(slice) => self.sequence_slice(object, slice, span),
                [index] => {
                    let index = self.sugared(index, None)?;
                    if let Sugared::Slice(parts) = index {
                        return self.slice_parts(object, &parts, span);
                    }
                    let index = self.as_value(index, span)?;
                    self.builtin(Symbol::new("aten::__getitem__"), &[object, index], span)
                }
                _ => error(span, "Only a single index is supported for lists and strings"),
            },
            TypeKind::Dict(..) => match indices {
                [index] if !is_slice(index) => {
                    let index = self.expr(index, None)?;
                    self.builtin(Symbol::new("aten::__getitem__"), &[object, index], span)
                }
                _ => error(span, "Slicing is not supported for dictionaries"),
            },
            _ => error(span, format!("'{}' object is not subscriptable", ty.repr())),
        }
    }

    fn slice_magic(&mut self, object: ValueId, _: [&Option<Box<Expr>>; 3], span: &Span) -> Result<ValueId> {
        error(span, format!("'{}' object does not support slicing", self.ty(object).repr()))
    }

    fn slice_parts(&mut self, object: ValueId, parts: &[ValueId], span: &Span) -> Result<ValueId> {
        let kind = Symbol::new("aten::slice");
        let mut operands = vec![object];
        operands.extend_from_slice(parts);
        self.builtin(kind, &operands, span)
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

    fn sequence_slice(&mut self, object: ValueId, slice: &Expr, span: &Span) -> Result<ValueId> {
        let [start, stop, step] = self.slice_bounds(slice)?;
        self.builtin(Symbol::new("aten::slice"), &[object, start, stop, step], span)
    }

    /// The int that an expression must be while compiling.
    fn constant_int(&mut self, expr: &Expr, what: &str) -> Result<i64> {
        let value = self.expr(expr, Some(&Type::int()))?;
        match self.constant_of(value) {
            Some(Attr::Int(n)) => Ok(*n),
            _ => error(&expr.span, what.to_string()),
        }
    }

    fn tuple_item(&mut self, object: ValueId, index: &Expr, span: &Span) -> Result<ValueId> {
        let elements = self.ty(object).tuple_elements().map(<[Type]>::to_vec).unwrap_or_default();
        let value = self.expr(index, None)?;
        if *self.ty(value) != Type::int() {
            return error(&index.span, "tuple index must be an integer");
        }
        let constant = match self.constant_of(value) {
            Some(Attr::Int(n)) => Some(*n),
            _ => None,
        };
        let len = elements.len() as i64;
        let ty = match constant {
            Some(n) if n >= -len && n < len => elements[(if n < 0 { n + len } else { n }) as usize].clone(),
            Some(n) => {
                return error(
                    span,
                    format!("Tuple index out of range. Tuple is length {len} and index is {n}"),
                );
            }
            None => {
                let mut types = elements.iter();
                let Some(first) = types.next() else { return error(span, "Tuple index out of range") };
                if types.any(|ty| ty != first) {
                    return error(
                        span,
                        format!(
                            "Cannot index into a {} with a non-integer literal because we cannot resolve the output type",
                            self.ty(object).annotation()
                        ),
                    );
                }
                first.clone()
            }
        };
        Ok(self.emit_value(Symbol::new("prim::TupleIndex"), &[object, value], ty, span))
    }

    fn tuple_slice(&mut self, object: ValueId, slice: &Expr, span: &Span) -> Result<ValueId> {
        let ExprKind::Slice { start, stop, step } = &slice.kind else {
            return error(span, "expected a slice");
        };
        let len = self.ty(object).tuple_elements().map_or(0, <[Type]>::len) as i64;
        let message = "tuple slice bounds must be integer constants";
        let step = match step {
            Some(e) => self.constant_int(e, message)?,
            None => 1,
        };
        if step == 0 {
            return error(span, "slice step cannot be zero");
        }
        let clamp = |n: i64, low: i64, high: i64| (if n < 0 { n + len } else { n }).clamp(low, high);
        let (low, high) = if step > 0 { (0, len) } else { (-1, len - 1) };
        let start = match start {
            Some(e) => clamp(self.constant_int(e, message)?, low, high),
            None => {
                if step > 0 {
                    0
                } else {
                    len - 1
                }
            }
        };
        let stop = match stop {
            Some(e) => clamp(self.constant_int(e, message)?, low, high),
            None => {
                if step > 0 {
                    len
                } else {
                    -1
                }
            }
        };
        let items = self.unpack(object, span)?;
        let mut kept = Vec::new();
        let mut at = start;
        while (step > 0 && at < stop) || (step < 0 && at > stop) {
            if let Some(item) = usize::try_from(at).ok().and_then(|n| items.get(n)) {
                kept.push(*item);
            }
            at += step;
        }
        Ok(self.make_tuple(&kept, span))
    }

    /// Integers and slices are views one after the other; tensors and lists go to `aten::index` together.
    fn tensor_item(&mut self, object: ValueId, indices: &[Expr], span: &Span) -> Result<ValueId> {
        let (value, gathered) = self.tensor_views(object, indices, span)?;
        if gathered.iter().all(Option::is_none) {
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
    pub(super) fn tensor_views(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        span: &Span,
    ) -> Result<(ValueId, Vec<Option<ValueId>>)> {
        let flat: Vec<&Expr> = match indices {
            [Expr { kind: ExprKind::Tuple(items), .. }] => items.iter().collect(),
            _ => indices.iter().collect(),
        };
        let parts = flat.into_iter().map(|index| self.index_part(index, span)).collect::<Result<Vec<_>>>()?;
        if parts.iter().filter(|p| matches!(p, Part::Dots)).count() > 1 {
            return error(span, "An index can only have a single ellipsis ('...')");
        }
        let used = |part: &Part| match part {
            Part::Int(_) | Part::Slice(_) => 1,
            Part::Gather(_, n) => *n,
            Part::NewAxis | Part::Dots => 0,
        };
        let total: i64 = parts.iter().map(used).sum();
        let mut value = object;
        let mut gathered: Vec<Option<ValueId>> = Vec::new();
        let mut dim: i64 = 0;
        let mut after_dots = false;
        let mut rest: i64 = total;
        for part in parts {
            rest -= used(&part);
            match part {
                // After an ellipsis dimensions are counted from the back, and new axes behind it count too.
                Part::Dots => {
                    after_dots = true;
                    dim = -rest;
                    if dim == 0 {
                        // Nothing follows but new axes, which go to the very end.
                        dim = 0;
                    }
                    gathered.clear();
                }
                Part::Int(index) => {
                    let at = self.int(dim, span);
                    value = self.builtin(Symbol::new("aten::select"), &[value, at, index], span)?;
                    if after_dots {
                        dim += 1;
                    }
                }
                Part::Slice([start, stop, step]) => {
                    let at = self.int(dim, span);
                    value =
                        self.builtin(Symbol::new("aten::slice"), &[value, at, start, stop, step], span)?;
                    dim += 1;
                    gathered.push(None);
                }
                Part::NewAxis => {
                    let place = if after_dots { dim - 1 } else { dim };
                    let at = self.int(place, span);
                    value = self.builtin(Symbol::new("aten::unsqueeze"), &[value, at], span)?;
                    if !after_dots {
                        dim += 1;
                    }
                    gathered.push(None);
                }
                Part::Gather(index, dims) => {
                    if after_dots {
                        return self.gather_after_dots(value, index, span);
                    }
                    gathered.push(Some(index));
                    dim += dims;
                }
            }
        }
        while gathered.last().is_some_and(Option::is_none) {
            gathered.pop();
        }
        Ok((value, gathered))
    }

    fn gather_after_dots(
        &mut self,
        _: ValueId,
        _: ValueId,
        span: &Span,
    ) -> Result<(ValueId, Vec<Option<ValueId>>)> {
        Err(crate::diag::Diagnostic::unsupported("indexing with a tensor after an ellipsis is not supported")
            .at(span))
    }

    fn index_part(&mut self, index: &Expr, whole: &Span) -> Result<Part> {
        let span = &index.span;
        match &index.kind {
            ExprKind::Dots => return Ok(Part::Dots),
            ExprKind::Slice { .. } => return self.slice_bounds(index).map(Part::Slice),
            _ => {}
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
            TypeKind::Tensor(_) => Part::Gather(value, 1),
            TypeKind::Optional(inner) if inner.is_tensor() => Part::Gather(value, 1),
            TypeKind::Bool => {
                let tensor = self.builtin(Symbol::new("aten::tensor"), &[value], span)?;
                Part::Gather(tensor, 0)
            }
            TypeKind::List(element)
                if matches!(element.kind(), TypeKind::Int | TypeKind::Bool | TypeKind::Float) =>
            {
                let tensor = self.builtin(Symbol::new("aten::tensor"), &[value], span)?;
                Part::Gather(tensor, 1)
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
    /// `...`
    Dots,
    Int(ValueId),
    Slice([ValueId; 3]),
    /// A tensor, with the number of dimensions it is counted for.
    Gather(ValueId, i64),
}
