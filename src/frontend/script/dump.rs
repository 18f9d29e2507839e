//! The tree as text: one s-expression in the format of PyTorch's own tree dump, for tests and debugging.

use super::ast::*;
use std::fmt::{self, Display, Formatter};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (i, item) in self.items.iter().enumerate() {
            if i > 0 {
                f.write_str("\n")?;
            }
            match item {
                Item::Def(def) => def.fmt(f)?,
                Item::Class(class) => class.fmt(f)?,
            }
        }
        Ok(())
    }
}

impl Display for Class {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(class {} {} {})", self.name, Maybe(&self.base), List(&self.body))
    }
}

impl Display for Def {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(def {} {} {})", self.name, self.decl, List(&self.body))
    }
}

impl Display for Decl {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(decl {} {})", List(&self.params), Maybe(&self.returns))
    }
}

impl Display for Param {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let keyword_only = if self.keyword_only { "True" } else { "False" };
        let (annotation, default) = (Maybe(&self.annotation), Maybe(&self.default));
        write!(f, "(param {} {annotation} {default} ({keyword_only}))", self.name)
    }
}

impl Display for Ident {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(ident {})", self.name)
    }
}

impl Display for Keyword {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(attribute {} {})", self.name, self.value)
    }
}

impl Display for WithItem {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "(withitem {} ", self.context)?;
        match &self.target {
            Some(target) => write!(f, "(option (variable {target})))"),
            None => f.write_str("(option))"),
        }
    }
}

/// `(list a b c)`
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("(list")?;
        for element in self.0 {
            write!(f, " {element}")?;
        }
        f.write_str(")")
    }
}

/// `(option a)` or `(option)`
struct Maybe<'a, T>(&'a Option<T>);

impl<T: Display> Display for Maybe<'_, T> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(value) => write!(f, "(option {value})"),
            None => f.write_str("(option)"),
        }
    }
}

impl Display for Stmt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            StmtKind::Expr(expr) => write!(f, "(expression statement {expr})"),
            StmtKind::Assign { targets, annotation, value } => {
                write!(f, "(assign {} {} {})", List(targets), Maybe(value), Maybe(annotation))
            }
            StmtKind::AugAssign { target, op, value } => {
                write!(f, "(aug_assign {target} ({}) {value})", op.name())
            }
            StmtKind::If { cond, then, otherwise } => {
                write!(f, "(if {cond} {} {})", List(then), List(otherwise))
            }
            StmtKind::While { cond, body } => write!(f, "(while {cond} {})", List(body)),
            StmtKind::For { targets, iters, body } => {
                write!(f, "(for {} {} {})", List(targets), List(iters), List(body))
            }
            StmtKind::With { items, body } => write!(f, "(with {} {})", List(items), List(body)),
            StmtKind::Return(value) => write!(f, "(return {value})"),
            StmtKind::Raise(value) => write!(f, "(raise {value})"),
            StmtKind::Assert { cond, message } => write!(f, "(assert {cond} {})", Maybe(message)),
            StmtKind::Delete(targets) => write!(f, "(del {})", List(targets)),
            StmtKind::Global(names) => write!(f, "(global {})", List(names)),
            StmtKind::Break => f.write_str("(break)"),
            StmtKind::Continue => f.write_str("(continue)"),
            StmtKind::Pass => f.write_str("(pass)"),
            StmtKind::Def(def) => def.fmt(f),
        }
    }
}

impl Display for Expr {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match &self.kind {
            ExprKind::Name(name) => write!(f, "(variable (ident {name}))"),
            ExprKind::Number(number) => write!(f, "(const {number})"),
            ExprKind::Str(text) => write!(f, "(string_literal {text})"),
            ExprKind::Bool(true) => f.write_str("(True)"),
            ExprKind::Bool(false) => f.write_str("(False)"),
            ExprKind::None => f.write_str("(None)"),
            ExprKind::NoneType => f.write_str("(NoneType)"),
            ExprKind::Dots => f.write_str("(dots)"),
            ExprKind::Attribute { value, name } => write!(f, "(. {value} {name})"),
            ExprKind::Call { callee, args, keywords, .. } => {
                write!(f, "(apply {callee} {} {})", List(args), List(keywords))
            }
            ExprKind::Subscript { value, indices, .. } => write!(f, "(subscript {value} {})", List(indices)),
            ExprKind::Slice { start, stop, step } => {
                write!(f, "(slice expr {} {} {})", Maybe(start), Maybe(stop), Maybe(step))
            }
            ExprKind::Unary { op, operand } => write!(f, "({} {operand})", op.name()),
            ExprKind::Starred(value) => write!(f, "(starred {value})"),
            ExprKind::Binary { op, left, right } => write!(f, "({} {left} {right})", op.name()),
            ExprKind::Ternary { cond, then, otherwise } => write!(f, "(if {cond} {then} {otherwise})"),
            ExprKind::List(elements) => write!(f, "(list-literal {})", List(elements)),
            ExprKind::Tuple(elements) => write!(f, "(tuple-literal {})", List(elements)),
            ExprKind::Dict { keys, values } => write!(f, "(dict-literal {} {})", List(keys), List(values)),
            ExprKind::ListComp { element, target, iter } => {
                write!(f, "(list comprehension {element} {target} {iter})")
            }
            ExprKind::DictComp { key, value, target, iter } => {
                write!(f, "(dict comprehension {key} {value} {target} {iter})")
            }
        }
    }
}

impl Display for Number {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Number::Int(value) => write!(f, "{value}"),
            Number::Float(value) => write!(f, "{value:?}"),
            Number::Imaginary(value) => write!(f, "{value:?}j"),
            Number::OutOfRange => f.write_str("out of range"),
        }
    }
}

impl UnaryOp {
    /// PyTorch's name of the operator's node.
    pub fn name(self) -> &'static str {
        match self {
            UnaryOp::Neg => "unary minus",
            UnaryOp::Not => "not",
            UnaryOp::BitNot => "~",
        }
    }
}

impl BinaryOp {
    /// PyTorch's name of the operator's node.
    pub fn name(self) -> &'static str {
        match self {
            BinaryOp::Add => "+",
            BinaryOp::Sub => "-",
            BinaryOp::Mul => "*",
            BinaryOp::Div => "/",
            BinaryOp::FloorDiv => "floordiv",
            BinaryOp::Mod => "%",
            BinaryOp::MatMul => "@",
            BinaryOp::Pow => "pow operator",
            BinaryOp::Shl => "<<",
            BinaryOp::Shr => ">>",
            BinaryOp::BitAnd => "&",
            BinaryOp::BitOr => "|",
            BinaryOp::BitXor => "^",
            BinaryOp::And => "and",
            BinaryOp::Or => "or",
            BinaryOp::Eq => "eq",
            BinaryOp::Ne => "ne",
            BinaryOp::Lt => "<",
            BinaryOp::Le => "le",
            BinaryOp::Gt => ">",
            BinaryOp::Ge => "ge",
            BinaryOp::Is => "is",
            BinaryOp::IsNot => "is not",
            BinaryOp::In => "in",
        }
    }
}
