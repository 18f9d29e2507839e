//! Assignments: to names, tuples of them, attributes, items.

use super::index::is_slice;
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
        let Some(value) = value else {
            return error(span, "For an assignment, expected an expression on the right-hand side");
        };
        let [target] = targets else {
            // One value for all: it is made once.
            let made = self.sugared(value, None)?;
            for target in targets {
                self.assign_to(target, made.clone(), &value.span, span)?;
            }
            return Ok(());
        };
        match &target.kind {
            ExprKind::Name(name) => {
                let annotation = annotation.map(|expr| self.type_of(expr)).transpose()?;
                let value = self.sugared(value, annotation.as_ref())?;
                self.set_variable(name, value, annotation, &target.span)
            }
            ExprKind::Tuple(items) => {
                check_targets(items, &target.span)?;
                self.unpacking = if matches!(value.kind, ExprKind::Call { .. }) { items.len() } else { 0 };
                let made = self.sugared(value, None);
                self.unpacking = 0;
                self.assign_unpacked(items, made?, &target.span, &value.span)
            }
            ExprKind::Attribute { value: object, name } => {
                let hint = annotation.map(|expr| self.type_of(expr)).transpose()?;
                let object = self.sugared(object, None)?;
                let made = self.expr(value, hint.as_ref())?;
                self.set_attribute_of(object, &name.name, made, span)
            }
            ExprKind::Subscript { value: object, indices, indices_span } => {
                let made = self.expr(value, None)?;
                self.set_item(object, (indices, indices_span), made, &target.span, span)
            }
            _ => error(&target.span, "unexpected expression on left-hand side of assignment"),
        }
    }

    /// Assigns to one of several targets, or to a part of one. Errors about items name the value's place.
    pub(super) fn assign_to(
        &mut self,
        target: &Expr,
        value: Sugared,
        value_span: &Span,
        whole: &Span,
    ) -> Result<()> {
        let span = &target.span;
        match &target.kind {
            ExprKind::Name(name) => self.set_variable(name, value, None, span),
            ExprKind::Tuple(items) => {
                check_targets(items, span)?;
                self.assign_unpacked(items, value, span, value_span)
            }
            ExprKind::Attribute { value: object, name } => {
                let value = self.as_value(value, value_span)?;
                let object = self.sugared(object, None)?;
                self.set_attribute_of(object, &name.name, value, whole)
            }
            ExprKind::Subscript { value: object, indices, indices_span } => {
                let value = self.as_value(value, value_span)?;
                self.set_item(object, (indices, indices_span), value, span, whole)
            }
            _ => error(span, "unexpected expression on left-hand side of assignment"),
        }
    }

    /// `a, *b, c = value`
    pub(super) fn assign_unpacked(
        &mut self,
        targets: &[Expr],
        value: Sugared,
        span: &Span,
        value_span: &Span,
    ) -> Result<()> {
        let has_star = targets.iter().any(|t| matches!(t.kind, ExprKind::Starred(_)));
        let fixed = targets.len() - usize::from(has_star);
        let items = self.unpack_sugared(value, (!has_star).then_some(fixed), value_span)?;
        check_count(fixed, items.len(), has_star, span)?;
        let extra = items.len() - fixed;
        let mut items = items.into_iter();
        for target in targets {
            if let ExprKind::Starred(inner) = &target.kind {
                let ExprKind::Name(name) = &inner.kind else {
                    return error(&inner.span, "Cannot pack a tuple into a non-variable");
                };
                let taken: Vec<Sugared> = items.by_ref().take(extra).collect();
                self.set_variable(name, Sugared::Tuple(taken), None, &inner.span)?;
            } else if let Some(item) = items.next() {
                self.assign_to(target, item, value_span, value_span)?;
            }
        }
        Ok(())
    }

    /// The parts of a value; of a list or tensor as many as are wanted.
    pub(super) fn unpack_sugared(
        &mut self,
        value: Sugared,
        count: Option<usize>,
        span: &Span,
    ) -> Result<Vec<Sugared>> {
        let value = match value {
            Sugared::Tuple(items) => return Ok(items),
            Sugared::Value(value) => value,
            Sugared::Iterable(_) => self.as_value(value, span)?,
            other => return error(span, format!("{} cannot be used as a tuple", other.kind_name())),
        };
        let ty = self.ty(value).clone();
        match ty.kind() {
            TypeKind::Tuple(..) => Ok(self.unpack(value, span)?.into_iter().map(Sugared::Value).collect()),
            TypeKind::List(element) => {
                let Some(count) = count else { return error(span, UNKNOWN_LIST_SIZE) };
                let types = vec![element.clone(); count];
                let op = self.emit(Symbol::new("prim::ListUnpack"), &[value], &types, span);
                Ok(self.graph.results(op).into_iter().map(Sugared::Value).collect())
            }
            TypeKind::AnyTuple => error(
                span,
                "Provided tuple is not fully defined/refined including its element types, please provide a value of type like Tuple[int, int]",
            ),
            _ => error(span, format!("{} cannot be used as a tuple", ty.repr())),
        }
    }

    fn set_attribute_of(&mut self, object: Sugared, name: &str, value: ValueId, span: &Span) -> Result<()> {
        match object {
            Sugared::Value(object) => self.set_attribute(object, name, value, span),
            other => error(span, format!("attribute assignment is not defined on {}", other.kind_name())),
        }
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
            // A property that nothing has read yet is declared when the host is asked for it.
            if !self.unit.is_initializing(class, &self.name) {
                // What else the host says of the name is not a property, and cannot be set.
                let _ = self.unit.hosted_member(class, name, span)?;
                if let Some(setter) = self.unit.property_setter(class, name) {
                    return self.call_method(object, setter, &[value], span).map(|_| ());
                }
            }
            return self.declare_attribute(object, class, name, value, span);
        };
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
        if self.block != self.graph.root() {
            return error(
                span,
                "First assignment cannot be in a control-flow block. Initialize the field at the top level first",
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
        (indices, indices_span): (&[Expr], &Span),
        value: ValueId,
        target: &Span,
        span: &Span,
    ) -> Result<()> {
        let object = self.expr(object, None)?;
        let ty = self.ty(object).clone();
        match ty.kind() {
            TypeKind::Tensor(_) => self.set_tensor_item(object, indices, value, target, span),
            TypeKind::Class(_) => {
                let index = self.only_index(indices, indices_span)?;
                let index = self.expr(index, None)?;
                self.call_magic(object, "__setitem__", &[index, value], span).map(|_| ())
            }
            TypeKind::Tuple(..) if matches!(indices, [index] if !is_slice(index)) => {
                error(target, format!("{} does not support subscripted assignment", ty.repr()))
            }
            _ => {
                let index = self.only_index(indices, indices_span)?;
                let index = self.expr(index, None)?;
                self.builtin_op(Symbol::new("aten::_set_item"), &[object, index, value], span).map(|_| ())
            }
        }
    }

    fn only_index<'e>(&self, indices: &'e [Expr], span: &Span) -> Result<&'e Expr> {
        match indices {
            [index] if !is_slice(index) => Ok(index),
            _ => error(span, SLICED_STORE),
        }
    }

    fn set_tensor_item(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        value: ValueId,
        target: &Span,
        span: &Span,
    ) -> Result<()> {
        let (view, gathered) = self.tensor_views(object, indices, target)?;
        let is_number = matches!(
            self.ty(value).kind(),
            TypeKind::Int | TypeKind::Float | TypeKind::Bool | TypeKind::Complex | TypeKind::Number
        );
        let value = if is_number { self.tensor_like(view, value, span)? } else { value };
        if gathered.is_empty() {
            return self.builtin_op(Symbol::new("aten::copy_"), &[view, value], span).map(|_| ());
        }
        let list = self.index_list(&gathered, span)?;
        self.builtin_op(Symbol::new("aten::index_put_"), &[view, list, value], span).map(|_| ())
    }

    /// A number as a 0-d tensor of the dtype and device of another.
    fn tensor_like(&mut self, like: ValueId, value: ValueId, span: &Span) -> Result<ValueId> {
        let dtype = self.builtin(Symbol::new("prim::dtype"), &[like], span)?;
        let device = self.builtin(Symbol::new("prim::device"), &[like], span)?;
        self.builtin_named(
            Symbol::new("aten::tensor"),
            &[value],
            &[("dtype", dtype), ("device", device)],
            span,
        )
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
                let result = self.augmented(op, left, value, span)?;
                self.set_variable(name, Sugared::Value(result), None, &target.span)
            }
            ExprKind::Attribute { value: object, name } => {
                let object = self.sugared(object, None)?;
                let left = self.attribute(object.clone(), &name.name, &target.span)?;
                let left = self.as_value(left, &target.span)?;
                let result = self.augmented(op, left, value, span)?;
                self.set_attribute_of(object, &name.name, result, span)
            }
            ExprKind::Subscript { value: object, indices, indices_span } => {
                let object = self.expr(object, None)?;
                if self.ty(object).is_tensor() {
                    self.augmented_tensor_item(object, indices, op, value, target, span)
                } else {
                    self.augmented_item(object, (indices, indices_span), op, value, target, span)
                }
            }
            _ => error(&target.span, "unexpected expression on left-hand side of augmented assignment"),
        }
    }

    fn augmented_tensor_item(
        &mut self,
        object: ValueId,
        indices: &[Expr],
        op: BinaryOp,
        value: &Expr,
        target: &Expr,
        span: &Span,
    ) -> Result<()> {
        let kind = Symbol::new(magic::inplace_operator(op));
        let (view, gathered) = self.tensor_views(object, indices, &target.span)?;
        let right = self.expr(value, None)?;
        if gathered.is_empty() {
            return self.builtin_op(kind, &[view, right], span).map(|_| ());
        }
        let list = self.index_list(&gathered, span)?;
        let left = self.builtin(Symbol::new("aten::index"), &[view, list], span)?;
        let result = self.builtin(kind, &[left, right], span)?;
        self.builtin_op(Symbol::new("aten::index_put_"), &[view, list, result], span).map(|_| ())
    }

    fn augmented_item(
        &mut self,
        object: ValueId,
        (indices, indices_span): (&[Expr], &Span),
        op: BinaryOp,
        value: &Expr,
        target: &Expr,
        span: &Span,
    ) -> Result<()> {
        let ty = self.ty(object).clone();
        let [index] = indices else {
            let described = ty.repr();
            return error(
                indices_span,
                format!(
                    "Sliced expression not yet supported for {described} augmented assignment. File a bug if you want this"
                ),
            );
        };
        // PyTorch chooses the operator by the key of a dictionary and the element of a list.
        let by = match ty.kind() {
            TypeKind::List(element) => element.clone(),
            TypeKind::Dict(key, _) => key.clone(),
            _ => {
                return error(&target.span, format!("{} does not support augmented assignment.", ty.repr()));
            }
        };
        let index = self.expr(index, None)?;
        let right = self.expr(value, None)?;
        let left = self.builtin(Symbol::new("aten::__getitem__"), &[object, index], span)?;
        let result = self.builtin(Symbol::new(operator_for(op, &by)), &[left, right], span)?;
        self.builtin_op(Symbol::new("aten::_set_item"), &[object, index, result], span).map(|_| ())
    }

    /// `left op= value`: in place for tensors and lists, by a method for objects, otherwise a new value.
    fn augmented(&mut self, op: BinaryOp, left: ValueId, value: &Expr, span: &Span) -> Result<ValueId> {
        let ty = self.ty(left).clone();
        let TypeKind::Class(class) = ty.kind() else {
            let right = self.expr(value, None)?;
            return self.builtin(Symbol::new(operator_for(op, &ty)), &[left, right], span);
        };
        let (method, fallback) = (magic::inplace_method(op), magic::operator(op).1);
        let right = self.expr(value, None)?;
        match [method, fallback].into_iter().find(|m| self.unit.has_method(*class, m)) {
            Some(method) => self.call_magic(left, method, &[right], span),
            None => error(
                span,
                format!(
                    "Cannot emit inplace op on {} since it does not define an {method} or {fallback} method",
                    ty.repr()
                ),
            ),
        }
    }
}

/// The op of `left op= right` for the type of the left side.
fn operator_for(op: BinaryOp, left: &Type) -> &'static str {
    if left.is_tensor() || matches!(left.kind(), TypeKind::List(_)) {
        magic::inplace_operator(op)
    } else {
        magic::augmented_operator(op)
    }
}

/// Whether there are as many values as targets, or at least as many where one target takes the rest.
pub(super) fn check_count(wanted: usize, given: usize, has_star: bool, span: &Span) -> Result<()> {
    if given < wanted {
        let least = if has_star { "at least " } else { "" };
        return error(span, format!("need {least}{wanted} values to unpack but found only {given}"));
    }
    if !has_star && given > wanted {
        return error(span, format!("too many values to unpack: need {wanted} but found {given}"));
    }
    Ok(())
}

/// What may stand on the left of an unpacking assignment.
pub(super) fn check_targets(targets: &[Expr], span: &Span) -> Result<()> {
    let (mut plain, mut starred) = (0, 0);
    for target in targets {
        match target.kind {
            ExprKind::Starred(_) => starred += 1,
            ExprKind::Name(_)
            | ExprKind::Subscript { .. }
            | ExprKind::Tuple(_)
            | ExprKind::Attribute { .. } => plain += 1,
            _ => {
                return error(
                    &target.span,
                    "lhs of assignment must be a variable, subscript, or starred expression",
                );
            }
        }
    }
    if starred > 1 {
        return error(span, "Only one starred expression is allowed on the lhs");
    }
    if starred > 0 && plain == 0 {
        return error(
            span,
            "A Starred expression may only appear on the lhs within the presence of another non-starred expression",
        );
    }
    Ok(())
}

const SLICED_STORE: &str =
    "Sliced expression not yet supported for subscripted assignment. File a bug if you want this";
const UNKNOWN_LIST_SIZE: &str = "cannot statically infer the expected size of a list in this context";
