//! Expressions.

use super::{Emitter, Sugared, error, magic};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{BinaryOp, Expr, ExprKind, UnaryOp};
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    /// An expression as a value. The hint is the type that the place wants, for literals and `None`.
    pub(super) fn expr(&mut self, expr: &Expr, hint: Option<&Type>) -> Result<ValueId> {
        let sugared = self.sugared(expr, hint)?;
        self.as_value(sugared, &expr.span)
    }

    /// An expression as whatever it stands for.
    pub(super) fn sugared(&mut self, expr: &Expr, hint: Option<&Type>) -> Result<Sugared> {
        let span = &expr.span;
        let value = match &expr.kind {
            ExprKind::Name(name) => return self.name(name, span),
            ExprKind::Attribute { value, name } => {
                let object = self.sugared(value, None)?;
                return self.attribute(object, &name.name, span);
            }
            ExprKind::Call { callee, args, keywords, args_span } => {
                return self.call_expr(callee, args, keywords, (span, args_span), hint);
            }
            ExprKind::Subscript { value, indices, .. } => return self.subscript(value, indices, span, hint),
            ExprKind::Number(number) => self.number(*number, span)?,
            ExprKind::Str(text) => self.str(text, span),
            ExprKind::Bool(value) => self.bool(*value, span),
            ExprKind::None => self.none(span),
            ExprKind::NoneType => return Ok(Sugared::Type(Type::none())),
            ExprKind::Dots => return error(span, "Cannot emit expr for: (dots)\n"),
            ExprKind::Slice { .. } => return error(span, "slices are only allowed in subscripts"),
            ExprKind::Starred(_) => return error(span, "Unexpected starred expansion. File a bug report"),
            ExprKind::Unary { op, operand } => self.unary(*op, operand, expr)?,
            ExprKind::Binary {
                op: BinaryOp::And | BinaryOp::Or | BinaryOp::Is | BinaryOp::IsNot, ..
            } => self.condition(expr)?.value,
            ExprKind::Binary { op, left, right } => self.binary(*op, left, right, span)?,
            ExprKind::Ternary { cond, then, otherwise } => self.ternary(cond, then, otherwise, span, hint)?,
            ExprKind::List(items) => self.list_literal(items, span, hint)?,
            ExprKind::Tuple(items) => self.tuple_literal(items, span)?,
            ExprKind::Dict { keys, values } => self.dict_literal(keys, values, span, hint)?,
            ExprKind::ListComp { element, target, iter } => {
                self.list_comprehension(element, target, iter, span, hint)?
            }
            ExprKind::DictComp { key, value, target, iter } => {
                self.dict_comprehension(key, value, target, iter, span, hint)?
            }
        };
        Ok(Sugared::Value(value))
    }

    /// A sugared value as a value of the graph.
    pub(super) fn as_value(&mut self, sugared: Sugared, span: &Span) -> Result<ValueId> {
        match sugared {
            Sugared::Value(value) => Ok(value),
            Sugared::Tuple(items) => {
                let values = items.into_iter().map(|s| self.as_value(s, span)).collect::<Result<Vec<_>>>()?;
                Ok(self.make_tuple(&values, span))
            }
            Sugared::Constant(ty, attr) => {
                let attr = if ty == Type::none() { None } else { Some(attr) };
                Ok(self.constant(ty, attr, span))
            }
            other @ (Sugared::Namespace(_) | Sugared::Type(_) | Sugared::Python(_) | Sugared::Hosted(..)) => {
                error(span, other.kind_name())
            }
            other => error(span, format!("{} cannot be used as a value", other.kind_name())),
        }
    }

    /// The value of a function, for passing on and calling.
    pub(super) fn function_constant(&mut self, name: Symbol, span: &Span) -> ValueId {
        let ty = Type::new(TypeKind::Function(name));
        let value = self.constant(ty, None, span);
        if let Some(op) = self.graph.def_op(value) {
            self.graph.set_attr(op, "name", crate::ir::Attr::Str(name.as_str().into()));
        }
        value
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, expr: &Expr) -> Result<ValueId> {
        let span = &expr.span;
        if op == UnaryOp::Not {
            return Ok(self.condition(expr)?.value);
        }
        let value = self.expr(operand, None)?;
        if op == UnaryOp::Neg
            && let Some(&Attr::Float(x)) = self.constant_of(value)
        {
            return Ok(self.constant(Type::float(), Some(Attr::Float(-x)), span));
        }
        let (kind, method) = match op {
            UnaryOp::Neg => ("aten::neg", "__neg__"),
            UnaryOp::BitNot => ("aten::bitwise_not", "__invert__"),
            UnaryOp::Not => ("aten::__not__", "__not__"),
        };
        if self.ty(value).class_name().is_some() {
            return self.call_magic(value, method, &[], span);
        }
        self.builtin(Symbol::new(kind), &[value], span)
    }

    fn binary(&mut self, op: BinaryOp, left: &Expr, right: &Expr, span: &Span) -> Result<ValueId> {
        let a = self.expr(left, None)?;
        let b = self.expr(right, None)?;
        if op == BinaryOp::Mod && *self.ty(a) == Type::str() {
            let kind = Symbol::new("aten::percentFormat");
            return Ok(self.emit_value(kind, &[a, b], Type::str(), span));
        }
        // A complex number is written as a sum.
        if let (Some(&Attr::Float(re)), Some(&Attr::Complex(im))) = (self.constant_of(a), self.constant_of(b))
            && matches!(op, BinaryOp::Add | BinaryOp::Sub)
        {
            let im = if op == BinaryOp::Sub { -im.im } else { im.im };
            let value = Attr::Complex(num_complex::Complex64::new(re, im));
            return Ok(self.constant(Type::complex(), Some(value), span));
        }
        // `a in b` asks b.
        let (a, b) = if op == BinaryOp::In { (b, a) } else { (a, b) };
        if op == BinaryOp::In
            && let Some(answer) = self.container_has(a, b, span)?
        {
            return Ok(answer);
        }
        self.binary_values(op, a, b, span)
    }

    /// An operator on values: a method of a class, or the builtin.
    pub(super) fn binary_values(
        &mut self,
        op: BinaryOp,
        a: ValueId,
        b: ValueId,
        span: &Span,
    ) -> Result<ValueId> {
        let (kind, method) = magic::operator(op);
        if let TypeKind::Class(_) | TypeKind::Interface(_) = self.ty(a).kind() {
            return self.call_magic(a, method, &[b], span);
        }
        if op == BinaryOp::Add
            && let (Some(x), Some(y)) = (self.ty(a).tuple_elements(), self.ty(b).tuple_elements())
        {
            let _ = (x, y);
            let mut items = self.unpack(a, span)?;
            items.extend(self.unpack(b, span)?);
            return Ok(self.make_tuple(&items, span));
        }
        self.builtin(Symbol::new(kind), &[a, b], span)
    }

    /// The elements of a tuple value.
    pub(super) fn unpack(&mut self, value: ValueId, span: &Span) -> Result<Vec<ValueId>> {
        let Some(types) = self.ty(value).tuple_elements().map(<[Type]>::to_vec) else {
            return error(span, format!("cannot be used as a tuple: {}", self.ty(value).repr()));
        };
        let op = self.emit(Symbol::new("prim::TupleUnpack"), &[value], &types, span);
        Ok(self.graph.results(op).to_vec())
    }

    /// A tuple of values.
    pub(super) fn make_tuple(&mut self, items: &[ValueId], span: &Span) -> ValueId {
        let types: Vec<Type> = items.iter().map(|v| self.ty(*v).clone()).collect();
        self.emit_value(Symbol::new("prim::TupleConstruct"), items, Type::tuple(types), span)
    }
}
