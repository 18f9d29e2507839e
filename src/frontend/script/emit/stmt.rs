//! Statements.

use super::emitter::Loops;
use super::sugared::Context;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Def, Expr, ExprKind, Stmt, StmtKind, WithItem};
use crate::frontend::script::kinds;
use crate::ir::{Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    /// Emits statements in order; what follows an exit is not compiled.
    pub(super) fn statements(&mut self, body: &[Stmt]) -> Result<()> {
        for stmt in body {
            self.statement(stmt)?;
            if self.exiting.contains(&self.block) {
                return Ok(());
            }
        }
        Ok(())
    }

    fn statement(&mut self, stmt: &Stmt) -> Result<()> {
        let span = &stmt.span;
        match &stmt.kind {
            StmtKind::Expr(expr) => self.sugared(expr, None).map(|_| ()),
            StmtKind::Assign { targets, annotation, value } => {
                self.assign(targets, annotation.as_ref(), value.as_ref(), span)
            }
            StmtKind::AugAssign { target, op, value } => self.augmented_assign(target, *op, value, span),
            StmtKind::If { cond, then, otherwise } => self.if_statement(cond, then, otherwise, span),
            StmtKind::While { cond, body } => self.while_statement(cond, body, span),
            StmtKind::For { targets, iters, body } => self.for_statement(targets, iters, body, span),
            StmtKind::With { items, body } => self.with_statement(items, body, span),
            StmtKind::Return(value) => self.return_statement(value, span),
            StmtKind::Raise(exception) => self.raise_statement(exception, span),
            StmtKind::Assert { cond, message } => self.assert_statement(cond, message.as_ref(), span),
            StmtKind::Delete(targets) => targets.iter().try_for_each(|t| self.delete_statement(t)),
            StmtKind::Global(_) => error(span, "Unrecognized statement kind global"),
            StmtKind::Break => self.loop_exit(kinds::break_(), "break", span),
            StmtKind::Continue => self.loop_exit(kinds::continue_(), "continue", span),
            StmtKind::Pass => Ok(()),
            StmtKind::Def(def) => {
                self.check_closure(def)?;
                let closure = Sugared::Closure(std::rc::Rc::new((**def).clone()));
                self.set_variable(&def.name.name, closure, None, span)
            }
        }
    }

    /// Compiles a function inside of a function for its errors: what it means, each use of it says anew.
    fn check_closure(&mut self, def: &Def) -> Result<()> {
        if !self.unit.is_source() {
            return Ok(());
        }
        let op = self.emit(kinds::fork(), &[], &[], &def.span);
        let block = self.graph.add_block(op);
        let outer = (self.declared_return.take(), self.merged_return.take(), std::mem::take(&mut self.loops));
        let checked = self.in_block(block, |e| {
            for param in &def.decl.params {
                let ty = match &param.annotation {
                    Some(annotation) => e.type_of(annotation)?,
                    None => Type::tensor(),
                };
                let value = e.graph.add_param(block, ty.clone());
                e.store(&param.name.name, value, ty, &param.name.span);
            }
            e.statements(&def.body)
        });
        (self.declared_return, self.merged_return, self.loops) = outer;
        self.graph.erase(op);
        checked.map(|_| ())
    }

    fn loop_exit(&mut self, kind: Symbol, word: &str, span: &Span) -> Result<()> {
        match self.loops {
            Loops::Outside => return error(span, format!("SyntaxError: '{word}' outside loop")),
            Loops::Unrolled => {
                return error(
                    span,
                    "Because we emit iteration over modulelists or tuples as unrolled loops, we do not support break or continue inside the body of these loops",
                );
            }
            Loops::Counted => {}
        }
        // What follows is compiled all the same, and the arm of a condition that ends so joins like any other.
        self.emit(kind, &[], &[], span);
        Ok(())
    }

    fn return_statement(&mut self, value: &Expr, span: &Span) -> Result<()> {
        let hint = self.declared_return.clone();
        let mut actual = self.expr(value, hint.as_ref())?;
        match hint {
            Some(declared) => {
                // A missing value never turns into a tensor.
                if !(declared.is_tensor() && *self.ty(actual) == Type::none()) {
                    actual = self.convert(actual, &declared, true, span)?;
                }
                if !self.is_subtype(self.ty(actual), &declared) {
                    return error(
                        span,
                        format!(
                            "Return value was annotated as having type {} but is actually of type {}",
                            declared.repr(),
                            self.ty(actual).repr()
                        ),
                    );
                }
                if *declared.kind() == TypeKind::Any && *self.ty(actual).kind() != TypeKind::Any {
                    actual = self.unchecked_cast(actual, declared, span);
                }
            }
            None => {
                let ty = self.ty(actual).clone();
                let earlier = self.merged_return.clone().unwrap_or_else(|| ty.clone());
                let Some(merged) = self.unify(&earlier, &ty, false) else {
                    return error(
                        span,
                        format!(
                            "Previous return statement returned a value of type {} but this return statement returns a value of type {}",
                            earlier.repr(),
                            ty.repr()
                        ),
                    );
                };
                self.merged_return = Some(merged);
            }
        }
        self.emit(kinds::return_(), &[actual], &[], span);
        self.exiting.insert(self.block);
        Ok(())
    }

    pub(super) fn unchecked_cast(&mut self, value: ValueId, ty: Type, span: &Span) -> ValueId {
        self.emit_value(Symbol::new("prim::unchecked_cast"), &[value], ty, span)
    }

    fn raise_statement(&mut self, exception: &Expr, span: &Span) -> Result<()> {
        let (message, class) = match self.sugared(exception, None)? {
            Sugared::Raised(message, class) => (message, class),
            Sugared::Exception(_) => (self.str("", span), None),
            _ => return error(span, "exceptions must derive from BaseException"),
        };
        self.emit_raise(message, class, span)
    }

    fn emit_raise(&mut self, message: ValueId, class: Option<ValueId>, span: &Span) -> Result<()> {
        let message = if *self.ty(message) == Type::str() {
            message
        } else {
            self.builtin(Symbol::new("aten::str"), &[message], span)?
        };
        let class = match class {
            Some(class) => class,
            None => self.none(span),
        };
        self.emit(kinds::raise(), &[message, class], &[], span);
        self.exiting.insert(self.block);
        Ok(())
    }

    /// `assert c, m` is `if c: pass else: raise AssertionError(m)`, and refines like that.
    pub(super) fn assert_statement(
        &mut self,
        cond: &Expr,
        message: Option<&Expr>,
        span: &Span,
    ) -> Result<()> {
        let cond_value = self.condition(cond)?;
        let fail = |e: &mut Self| -> Result<()> {
            let text = match message {
                Some(message) => e.expr(message, None)?,
                None => e.str("", span),
            };
            let raised = e.call(
                Sugared::Exception("AssertionError".to_string()),
                &[super::matching::Given::from(text)],
                &[],
                span,
            )?;
            match raised {
                Sugared::Raised(message, class) => e.emit_raise(message, class, span),
                _ => Ok(()),
            }
        };
        self.branches(cond_value, span, |_| Ok(()), fail)
    }

    fn delete_statement(&mut self, target: &Expr) -> Result<()> {
        let span = &target.span;
        match &target.kind {
            ExprKind::Name(name) => self.delete_variable(name, span),
            ExprKind::Subscript { value, indices, .. } => {
                let index = match indices.as_slice() {
                    [index] if !matches!(index.kind, ExprKind::Slice { .. }) => index,
                    _ => {
                        return error(
                            span,
                            "del statements only support deletion at a single index, slicing is not supported (see https://github.com/pytorch/pytorch/issues/31430)",
                        );
                    }
                };
                let object = self.expr(value, None)?;
                let index = self.expr(index, None)?;
                if self.ty(object).class_name().is_some() {
                    return self.call_magic(object, "__delitem__", &[index], span).map(|_| ());
                }
                self.builtin_op(Symbol::new("aten::Delete"), &[object, index], span)
            }
            _ => error(
                span,
                "del statements are only supported for deleting list and dict items and variables",
            ),
        }
    }

    fn with_statement(&mut self, items: &[WithItem], body: &[Stmt], span: &Span) -> Result<()> {
        let Some((item, rest)) = items.split_first() else {
            return self.statements(body);
        };
        let place = &item.context.span;
        let manager = self.sugared(&item.context, None)?;
        let leave = match manager {
            Sugared::Context(context) => self.enter_context(context, span)?,
            other => {
                let object = self.as_value(other, place)?;
                self.enter_object(object, item, span)?;
                Leave::Object(object)
            }
        };
        let with = self.emit(kinds::with(), &[], &[], span);
        let (inner, after) = (self.graph.add_block(with), self.graph.add_block(with));
        let outer = std::mem::replace(&mut self.block, inner);
        let result = self.with_statement(rest, body, span);
        self.block = after;
        match leave {
            Leave::Nothing => {}
            Leave::GradMode(former) => {
                self.emit(Symbol::new("aten::set_grad_enabled"), &[former], &[], span);
            }
            Leave::Object(object) => {
                self.emit_value(kinds::exit(), &[object], Type::tensor(), span);
            }
        }
        self.block = outer;
        result?;
        // The body shares the scope around it; only its end is its own.
        if self.exiting.contains(&inner) {
            self.exiting.insert(self.block);
        }
        Ok(())
    }

    fn enter_object(&mut self, object: ValueId, item: &WithItem, span: &Span) -> Result<()> {
        let place = &item.context.span;
        let Some(class) = self.ty(object).class_name() else {
            return error(place, "With item expression must return an object");
        };
        for method in ["__enter__", "__exit__"] {
            if !self.unit.has_method(class, method) {
                return error(
                    place,
                    "Object returned by with item expression does not define __enter__ and __exit__ methods",
                );
            }
        }
        let enter = self.unit.method_schema(class, "__enter__", &self.name, place)?;
        if enter.arguments.len() != 1 {
            return error(place, "__enter__ must have only one argument and one return value");
        }
        let result = enter.returns.first().map_or_else(Type::none, |r| r.ty.clone());
        let exit = self.unit.method_schema(class, "__exit__", &self.name, place)?;
        if exit.arguments.len() != 4 {
            return error(place, "__exit__ must have four arguments");
        }
        for (n, argument) in exit.arguments.iter().enumerate().skip(1) {
            if *argument.ty.kind() != TypeKind::Any {
                return error(
                    place,
                    format!(
                        "argument {n} of __exit__ must have Any type; TorchScript does not support passing exception type, value, or traceback to the __exit__ function."
                    ),
                );
            }
        }
        let entered = self.emit_value(kinds::enter(), &[object], result, span);
        match &item.target {
            Some(target) => self.set_variable(&target.name, Sugared::Value(entered), None, &target.span),
            None => Ok(()),
        }
    }

    fn enter_context(&mut self, context: Context, span: &Span) -> Result<Leave> {
        if context == Context::RecordFunction {
            return Ok(Leave::Nothing);
        }
        let former = self.emit_value(Symbol::new("aten::is_grad_enabled"), &[], Type::bool(), span);
        let flag = self.bool(false, span);
        self.emit(Symbol::new("aten::set_grad_enabled"), &[flag], &[], span);
        Ok(Leave::GradMode(former))
    }
}

/// What undoes a context manager.
enum Leave {
    Nothing,
    /// Sets the former grad mode.
    GradMode(ValueId),
    /// Calls `__exit__`.
    Object(ValueId),
}
