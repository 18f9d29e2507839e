//! Assignments: to names, tuples of them, attributes, items.

use super::iterate::is_slice;
use super::{Emitter, Sugared, error, magic};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{BinaryOp, Expr, ExprKind};
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    pub(super) fn assign(
        &mut self,
        targets: &[Expr],
        annotation: Option<&Expr>,
        value: Option<&Expr>,
        span: &Span,
    ) -> Result<()> {
        let annotation = annotation.map(|expr| self.type_of(expr)).transpose()?;
        let Some(value) = value else {
            return error(span, "For an assignment, expected an expression on the right-hand side");
        };
        let hint = match (&annotation, targets) {
            (Some(ty), _) => Some(ty.clone()),
            (None, [Expr { kind: ExprKind::Attribute { .. }, .. }]) => self.attribute_type(&targets[0]),
            _ => None,
        };
        let mut sugared = self.sugared(value, hint.as_ref())?;
        if targets.len() > 1 {
            // One value for all: it is made once.
            let made = self.as_value(sugared, &value.span)?;
            sugared = Sugared::Value(made);
        }
        for target in targets {
            self.assign_to(target, sugared.clone(), annotation.clone(), &value.span, span)?;
        }
        Ok(())
    }

    /// Assigns to one target.
    pub(super) fn assign_to(
        &mut self,
        target: &Expr,
        value: Sugared,
        annotation: Option<Type>,
        value_span: &Span,
        whole: &Span,
    ) -> Result<()> {
        let span = &target.span;
        match &target.kind {
            ExprKind::Name(name) => {
                let value = match (value, &annotation) {
                    (Sugared::Value(v), Some(ty)) => Sugared::Value(self.convert(v, ty, true, value_span)?),
                    (Sugared::Tuple(items), _) => {
                        let tuple = self.as_value(Sugared::Tuple(items), value_span)?;
                        Sugared::Value(tuple)
                    }
                    (Sugared::Constant(ty, attr), _) => {
                        Sugared::Value(self.as_value(Sugared::Constant(ty, attr), value_span)?)
                    }
                    (other, _) => other,
                };
                self.set_variable(name, value, annotation, span)
            }
            ExprKind::Tuple(items) | ExprKind::List(items) => {
                self.assign_unpacked(items, value, value_span, span)
            }
            ExprKind::Attribute { value: object, name } => {
                let value = self.as_value(value, value_span)?;
                let object = self.expr(object, None)?;
                self.set_attribute(object, &name.name, value, whole)
            }
            ExprKind::Subscript { value: object, indices, .. } => {
                let value = self.as_value(value, value_span)?;
                self.set_item(object, indices, value, whole, span)
            }
            ExprKind::Starred(_) => error(span, "starred assignment target must be in a list or tuple"),
            _ => error(span, "unexpected expression on left-hand side of assignment"),
        }
    }

    /// `a, *b, c = value`
    /// Unpacks a value that stands at `span` into targets that stand at `place`.
    pub(super) fn assign_unpacked(
        &mut self,
        targets: &[Expr],
        value: Sugared,
        span: &Span,
        place: &Span,
    ) -> Result<()> {
        let starred = targets.iter().position(|t| matches!(t.kind, ExprKind::Starred(_)));
        if targets.iter().filter(|t| matches!(t.kind, ExprKind::Starred(_))).count() > 1 {
            return error(place, "Only one starred expression is allowed on the lhs");
        }
        let items = self.unpack_sugared(value, targets.len(), starred.is_some(), span)?;
        let fixed = targets.len() - usize::from(starred.is_some());
        if items.len() < fixed {
            return error(
                place,
                format!(
                    "need {}{fixed} values to unpack but found only {}",
                    if starred.is_some() { "at least " } else { "" },
                    items.len()
                ),
            );
        }
        if starred.is_none() && items.len() > fixed {
            return error(
                place,
                format!("too many values to unpack: need {fixed} but found {}", items.len()),
            );
        }
        let extra = items.len() - fixed;
        let mut items = items.into_iter();
        for target in targets {
            if let ExprKind::Starred(inner) = &target.kind {
                let taken: Vec<Sugared> = items.by_ref().take(extra).collect();
                self.assign_to(inner, Sugared::Tuple(taken), None, span, &inner.span)?;
            } else if let Some(item) = items.next() {
                self.assign_to(target, item, None, span, &target.span)?;
            }
        }
        Ok(())
    }

    fn unpack_sugared(
        &mut self,
        value: Sugared,
        count: usize,
        has_star: bool,
        span: &Span,
    ) -> Result<Vec<Sugared>> {
        let value = match value {
            Sugared::Tuple(items) => return Ok(items),
            other => self.as_value(other, span)?,
        };
        let ty = self.ty(value).clone();
        match ty.kind() {
            TypeKind::Tuple(..) => Ok(self.unpack(value, span)?.into_iter().map(Sugared::Value).collect()),
            TypeKind::List(element) => {
                if has_star {
                    return error(span, "starred unpacking of lists is not supported");
                }
                let types = vec![element.clone(); count];
                let op = self.emit(Symbol::new("prim::ListUnpack"), &[value], &types, span);
                Ok(self.graph.results(op).into_iter().map(Sugared::Value).collect())
            }
            _ => error(span, format!("{} cannot be used as a tuple", ty.repr())),
        }
    }

    fn attribute_type(&mut self, target: &Expr) -> Option<Type> {
        let ExprKind::Attribute { value, name } = &target.kind else { return None };
        let ExprKind::Name(object) = &value.kind else { return None };
        let class = self.variable_type(object)?.class_name()?;
        self.unit.module.class(class)?.attribute(&name.name).map(|a| a.ty.clone())
    }

    pub(super) fn set_attribute(
        &mut self,
        object: ValueId,
        name: &str,
        value: ValueId,
        span: &Span,
    ) -> Result<()> {
        let ty = self.ty(object).clone();
        let Some(class) = ty.class_name() else {
            return error(span, format!("Tried to set an attribute: {name} on a non-class: {}", ty.repr()));
        };
        let Some(declared) =
            self.unit.module.class(class).and_then(|c| c.attribute(name)).map(|a| a.ty.clone())
        else {
            if let Some(setter) = self.unit.property_setter(class, name) {
                return self.call_method(object, setter, &[value], span).map(|_| ());
            }
            return self.declare_attribute(object, class, name, value, span);
        };
        let value = self.convert(value, &declared, true, span)?;
        if !self.is_subtype(self.ty(value), &declared) {
            return error(
                span,
                format!(
                    "Wrong type for attribute assignment. Expected {} but got {}",
                    declared.repr(),
                    self.ty(value).repr()
                ),
            );
        }
        self.emit_set_attr(object, name, value, span);
        Ok(())
    }

    pub(super) fn emit_set_attr(&mut self, object: ValueId, name: &str, value: ValueId, span: &Span) {
        let op = self.emit(Symbol::new("prim::SetAttr"), &[object, value], &[], span);
        self.graph.set_attr(op, "name", Attr::Str(name.into()));
    }

    /// In `__init__` the first assignment declares the attribute.
    fn declare_attribute(
        &mut self,
        object: ValueId,
        class: Symbol,
        name: &str,
        value: ValueId,
        span: &Span,
    ) -> Result<()> {
        if !self.unit.is_initializing(class, &self.name) {
            return error(
                span,
                format!(
                    "Tried to set nonexistent attribute: {name}. Did you forget to initialize it in __init__()?"
                ),
            );
        }
        let ty = self.ty(value).unshaped();
        self.unit.add_attribute(class, name, ty);
        self.emit_set_attr(object, name, value, span);
        Ok(())
    }

    fn set_item(
        &mut self,
        object: &Expr,
        indices: &[Expr],
        value: ValueId,
        span: &Span,
        target: &Span,
    ) -> Result<()> {
        let object_end = object.span.end();
        let object = self.expr(object, None)?;
        let ty = self.ty(object).clone();
        match ty.kind() {
            TypeKind::Tensor(_) => self.set_tensor_item(object, indices, value, span),
            TypeKind::Class(_) => {
                let [index] = indices else { return error(span, "only a single index is supported here") };
                let index = self.expr(index, None)?;
                self.call_magic(object, "__setitem__", &[index, value], span).map(|_| ())
            }
            TypeKind::List(_) | TypeKind::Dict(..) => {
                let [index] = indices else { return error(span, "only a single index is supported here") };
                if is_slice(index) {
                    let brackets = Span::new(index.span.source(), object_end, index.span.end());
                    return error(
                        &brackets,
                        "Sliced expression not yet supported for subscripted assignment. File a bug if you want this",
                    );
                }
                let index = self.expr(index, None)?;
                self.builtin_op(Symbol::new("aten::_set_item"), &[object, index, value], span).map(|_| ())
            }
            TypeKind::Str | TypeKind::Int | TypeKind::Float => {
                let [index] = indices else { return error(span, "only a single index is supported here") };
                let index = self.expr(index, None)?;
                self.builtin_op(Symbol::new("aten::_set_item"), &[object, index, value], span).map(|_| ())
            }
            _ => error(target, format!("{} does not support subscripted assignment", ty.annotation())),
        }
    }

    fn set_tensor_item(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        value: ValueId,
        span: &Span,
    ) -> Result<()> {
        let (view, gathered) = self.tensor_views(object, indices, span)?;
        let is_tensor = self.ty(value).is_tensor();
        if gathered.iter().all(Option::is_none) {
            let kind = Symbol::new(if is_tensor { "aten::copy_" } else { "aten::fill_" });
            let op = self.builtin_op(kind, &[view, value], span);
            return op
                .map(|_| ())
                .or_else(|_| self.builtin_op(Symbol::new("aten::copy_"), &[view, value], span).map(|_| ()));
        }
        let value = if is_tensor { value } else { self.tensor_like(view, value, span)? };
        let list = self.index_list(&gathered, span)?;
        self.builtin_op(Symbol::new("aten::index_put_"), &[view, list, value], span).map(|_| ())
    }

    /// A number as a 0-d tensor of the dtype and device of another.
    fn tensor_like(&mut self, like: ValueId, value: ValueId, span: &Span) -> Result<ValueId> {
        let dtype = self.builtin(Symbol::new("prim::dtype"), &[like], span)?;
        let device = self.builtin(Symbol::new("prim::device"), &[like], span)?;
        let flag = self.bool(false, span);
        let ty = Type::tensor();
        Ok(self.emit_value(Symbol::new("aten::tensor"), &[value, dtype, device, flag], ty, span))
    }

    pub(super) fn augmented_assign(
        &mut self,
        target: &Expr,
        op: BinaryOp,
        value: &Expr,
        span: &Span,
    ) -> Result<()> {
        match &target.kind {
            ExprKind::Name(name) => {
                let left = self.expr(target, None)?;
                let right = self.expr(value, None)?;
                let result = self.augmented(op, left, right, span)?;
                self.set_variable(name, Sugared::Value(result), None, &target.span)
            }
            ExprKind::Attribute { value: object, name } => {
                let object = self.expr(object, None)?;
                let left = self.attribute(Sugared::Value(object), &name.name, &target.span)?;
                let left = self.as_value(left, &target.span)?;
                let right = self.expr(value, None)?;
                let result = self.augmented(op, left, right, span)?;
                self.set_attribute(object, &name.name, result, span)
            }
            ExprKind::Subscript { value: object, indices, .. } => {
                let object = self.expr(object, None)?;
                self.augmented_item(object, indices, op, value, span)
            }
            _ => error(&target.span, "unexpected expression on left-hand side of augmented assignment"),
        }
    }

    fn augmented_item(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        op: BinaryOp,
        value: &Expr,
        span: &Span,
    ) -> Result<()> {
        if self.ty(object).is_tensor() {
            let (view, gathered) = self.tensor_views(object, indices, span)?;
            let right = self.expr(value, None)?;
            if gathered.iter().all(Option::is_none) {
                return self.augmented(op, view, right, span).map(|_| ());
            }
            let list = self.index_list(&gathered, span)?;
            let left = self.builtin(Symbol::new("aten::index"), &[view, list], span)?;
            let result = self.augmented(op, left, right, span)?;
            return self.builtin_op(Symbol::new("aten::index_put_"), &[view, list, result], span).map(|_| ());
        }
        let [index] = indices else { return error(span, "only a single index is supported here") };
        if !matches!(self.ty(object).kind(), TypeKind::List(_) | TypeKind::Dict(..)) {
            return error(
                span,
                format!(
                    "'{}' object does not support augmented assignment of its items",
                    self.ty(object).repr()
                ),
            );
        }
        let index = self.expr(index, None)?;
        let left = self.builtin(Symbol::new("aten::__getitem__"), &[object, index], span)?;
        let right = self.expr(value, None)?;
        let result = self.augmented(op, left, right, span)?;
        self.builtin_op(Symbol::new("aten::_set_item"), &[object, index, result], span).map(|_| ())
    }

    /// `left op= right`: in place for tensors and lists, a new value otherwise.
    fn augmented(&mut self, op: BinaryOp, left: ValueId, right: ValueId, span: &Span) -> Result<ValueId> {
        let ty = self.ty(left).clone();
        match ty.kind() {
            TypeKind::Tensor(_) => {
                let kind = magic::inplace_operator(op);
                self.builtin(Symbol::new(kind), &[left, right], span)
            }
            TypeKind::List(_) if matches!(op, BinaryOp::Add | BinaryOp::Mul) => {
                let kind = if op == BinaryOp::Add { "aten::add_" } else { "aten::mul_" };
                self.builtin(Symbol::new(kind), &[left, right], span)
            }
            TypeKind::Class(class) => {
                let method = magic::inplace_method(op);
                if self.unit.has_method(*class, method) {
                    self.call_magic(left, method, &[right], span)
                } else {
                    self.binary_values(op, left, right, span)
                }
            }
            _ => {
                let kind = magic::augmented_operator(op);
                self.builtin(Symbol::new(kind), &[left, right], span)
            }
        }
    }
}
