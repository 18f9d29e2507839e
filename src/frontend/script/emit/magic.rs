//! Operators: the op each stands for and the method that a class may define instead.

use super::{Emitter, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::BinaryOp;
use crate::ir::{Symbol, ValueId};

/// The builtin op and the method of an operator.
pub(super) fn operator(op: BinaryOp) -> (&'static str, &'static str) {
    match op {
        BinaryOp::Add => ("aten::add", "__add__"),
        BinaryOp::Sub => ("aten::sub", "__sub__"),
        BinaryOp::Mul => ("aten::mul", "__mul__"),
        BinaryOp::Div => ("aten::div", "__truediv__"),
        BinaryOp::FloorDiv => ("aten::floordiv", "__floordiv__"),
        BinaryOp::Mod => ("aten::remainder", "__mod__"),
        BinaryOp::MatMul => ("aten::matmul", "__matmul__"),
        BinaryOp::Pow => ("aten::pow", "__pow__"),
        BinaryOp::Shl => ("aten::__lshift__", "__lshift__"),
        BinaryOp::Shr => ("aten::__rshift__", "__rshift__"),
        BinaryOp::BitAnd => ("aten::__and__", "__and__"),
        BinaryOp::BitOr => ("aten::__or__", "__or__"),
        BinaryOp::BitXor => ("aten::__xor__", "__xor__"),
        BinaryOp::Eq => ("aten::eq", "__eq__"),
        BinaryOp::Ne => ("aten::ne", "__ne__"),
        BinaryOp::Lt => ("aten::lt", "__lt__"),
        BinaryOp::Le => ("aten::le", "__le__"),
        BinaryOp::Gt => ("aten::gt", "__gt__"),
        BinaryOp::Ge => ("aten::ge", "__ge__"),
        BinaryOp::In => ("aten::__contains__", "__contains__"),
        BinaryOp::Is => ("aten::__is__", "__is__"),
        BinaryOp::IsNot => ("aten::__isnot__", "__isnot__"),
        BinaryOp::And => ("aten::__and__", "__and__"),
        BinaryOp::Or => ("aten::__or__", "__or__"),
    }
}

/// The op of `a op= b` on tensors, which writes to `a`.
pub(super) fn inplace_operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "aten::add_",
        BinaryOp::Sub => "aten::sub_",
        BinaryOp::Mul => "aten::mul_",
        BinaryOp::Div => "aten::div_",
        BinaryOp::Mod => "aten::fmod_",
        BinaryOp::FloorDiv => "aten::floor_divide_",
        BinaryOp::Pow => "aten::pow",
        BinaryOp::BitAnd => "aten::bitwise_and",
        BinaryOp::BitOr => "aten::bitwise_or",
        BinaryOp::BitXor => "aten::bitwise_xor",
        BinaryOp::Shl => "aten::__ilshift__",
        BinaryOp::Shr => "aten::__irshift__",
        other => operator(other).0,
    }
}

/// The op of `a op= b` on numbers and text; `%=` has C's sign there, unlike `%`.
pub(super) fn augmented_operator(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Mod => "aten::fmod",
        other => operator(other).0,
    }
}

/// The method of `a op= b` on a class.
pub(super) fn inplace_method(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "__iadd__",
        BinaryOp::Sub => "__isub__",
        BinaryOp::Mul => "__imul__",
        BinaryOp::Div => "__itruediv__",
        BinaryOp::Mod => "__imod__",
        BinaryOp::BitAnd => "__iand__",
        BinaryOp::BitOr => "__ior__",
        BinaryOp::BitXor => "__ixor__",
        BinaryOp::Shl => "__ilshift__",
        BinaryOp::Shr => "__irshift__",
        BinaryOp::Pow => "__ipow__",
        other => operator(other).1,
    }
}

impl Emitter<'_> {
    /// Calls a method that an operator stands for.
    pub(super) fn call_magic(
        &mut self,
        object: ValueId,
        method: &str,
        args: &[ValueId],
        span: &Span,
    ) -> Result<ValueId> {
        let ty = self.ty(object).clone();
        let defined = ty.class_name().is_some_and(|class| self.unit.has_method(class, method));
        if !defined {
            return error(span, format!("'{}' object has no attribute or method '{method}'", ty.repr()));
        }
        self.call_method(object, Symbol::new(method), args, span)
    }
}
