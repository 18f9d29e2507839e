//! Statements.

use super::sugared::Context;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Stmt, StmtKind, WithItem};
use crate::frontend::script::kinds;
use crate::ir::{Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    /// Emits statements in order; what follows an exit is not compiled.
    pub(super) fn statements(&mut self, body: &[Stmt]) -> Result<()> {
        for stmt in body {
            self.statement(stmt)?;
            let block = self.frame_block();
            if self.exiting.contains(&block) {
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
            StmtKind::Def(def) if !self.unit.is_source() => {
                let closure = Sugared::Closure(std::rc::Rc::new((**def).clone()));
                self.set_variable(&def.name.name, closure, None, span)
            }
            StmtKind::Def(_) => error(span, "function definitions inside of functions are not supported"),
        }
    }

    fn loop_exit(&mut self, kind: Symbol, word: &str, span: &Span) -> Result<()> {
        if self.loops == 0 {
            return error(span, format!("SyntaxError: '{word}' outside loop"));
        }
        self.emit(kind, &[], &[], span);
        self.exiting.push(self.frame_block());
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
        self.exiting.push(self.frame_block());
        Ok(())
    }

    pub(super) fn unchecked_cast(&mut self, value: ValueId, ty: Type, span: &Span) -> ValueId {
        self.emit_value(Symbol::new("prim::unchecked_cast"), &[value], ty, span)
    }

    fn raise_statement(&mut self, exception: &Expr, span: &Span) -> Result<()> {
        let raised = self.sugared(exception, None)?;
        let (class, message) = match raised {
            // A class without a call: no message, and the class is not kept either.
            Sugared::Exception(_) => (self.none(span), self.str("", span)),
            Sugared::Tuple(parts) => match parts.as_slice() {
                [Sugared::Exception(name), Sugared::Value(message)] if name == "AssertionError" => {
                    let prefix = self.str("AssertionError: ", span);
                    let message = self.builtin(Symbol::new("aten::add"), &[prefix, *message], span)?;
                    (self.none(span), message)
                }
                [Sugared::Exception(name), Sugared::Value(message)] => {
                    (self.str(&format!("builtins.{name}"), span), *message)
                }
                _ => return error(span, "exceptions must derive from BaseException"),
            },
            _ => return error(span, "exceptions must derive from BaseException"),
        };
        self.emit(kinds::raise(), &[message, class], &[], span);
        self.exiting.push(self.frame_block());
        Ok(())
    }

    /// `assert c, m` is `if c: pass else: raise AssertionError(m)`, and refines like that.
    fn assert_statement(&mut self, cond: &Expr, message: Option<&Expr>, span: &Span) -> Result<()> {
        let cond_value = self.condition(cond)?;
        let fail = |e: &mut Self| -> Result<()> {
            let text = match message {
                Some(message) => e.assertion_message(message)?,
                None => e.str("AssertionError: ", span),
            };
            let class = e.none(span);
            e.emit(kinds::raise(), &[text, class], &[], span);
            let block = e.frame_block();
            e.exiting.push(block);
            Ok(())
        };
        self.branches(cond_value, span, |_| Ok(()), fail)
    }

    fn assertion_message(&mut self, message: &Expr) -> Result<ValueId> {
        let span = &message.span;
        let value = self.expr(message, None)?;
        if *self.ty(value) != Type::str() {
            return error(
                span,
                format!("assert message must be a string, but got {}", self.ty(value).repr()),
            );
        }
        match self.constant_of(value).and_then(|a| a.as_str()) {
            Some(text) => {
                let text = format!("AssertionError: {text}");
                Ok(self.str(&text, span))
            }
            None => {
                let prefix = self.str("AssertionError: ", span);
                Ok(self.emit_value(Symbol::new("aten::add"), &[prefix, value], Type::str(), span))
            }
        }
    }

    fn delete_statement(&mut self, target: &Expr) -> Result<()> {
        let span = &target.span;
        match &target.kind {
            ExprKind::Name(name) => self.delete_variable(name, span),
            ExprKind::Subscript { value, indices, .. } => {
                let [index] = indices.as_slice() else {
                    return error(
                        span,
                        "del statements only support deleting at a single index, slicing is not supported",
                    );
                };
                if matches!(index.kind, ExprKind::Slice { .. }) {
                    return error(
                        span,
                        "del statements only support deleting at a single index, slicing is not supported",
                    );
                }
                let object = self.expr(value, None)?;
                let index = self.expr(index, None)?;
                if self.ty(object).class_name().is_some() {
                    return self.call_magic(object, "__delitem__", &[index], span).map(|_| ());
                }
                self.builtin(Symbol::new("aten::Delete"), &[object, index], span).map(|_| ())
            }
            _ => error(span, "del statements are only supported for deletion of items in lists and dicts"),
        }
    }

    fn with_statement(&mut self, items: &[WithItem], body: &[Stmt], span: &Span) -> Result<()> {
        let Some((item, rest)) = items.split_first() else {
            return self.statements(body);
        };
        let manager = self.sugared(&item.context, None)?;
        match manager {
            Sugared::Context(context) => {
                let former = self.enter_context(context, span)?;
                self.with_statement(rest, body, span)?;
                self.leave_context(context, former, span)
            }
            Sugared::Value(object) => self.with_object(object, item, rest, body, span),
            other => error(
                &item.context.span,
                format!(
                    "With item must be an object that has __enter__ and __exit__, but is a {}",
                    other.kind_name()
                ),
            ),
        }
    }

    fn with_object(
        &mut self,
        object: ValueId,
        item: &WithItem,
        rest: &[WithItem],
        body: &[Stmt],
        span: &Span,
    ) -> Result<()> {
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
        let result = enter.returns.first().map_or_else(Type::none, |r| r.ty.clone());
        let exit = self.unit.method_schema(class, "__exit__", &self.name, place)?;
        if exit.arguments.len() != 4 {
            return error(
                place,
                "__exit__ must have four arguments: self, the exception type, value and traceback",
            );
        }
        let entered = self.emit_value(kinds::enter(), &[object], result, span);
        if let Some(target) = &item.target {
            self.set_variable(&target.name, Sugared::Value(entered), None, &target.span)?;
        }
        let with = self.emit(kinds::with(), &[], &[], span);
        let (inner, leave) = (self.graph.add_block(with), self.graph.add_block(with));
        let before = self.exiting.len();
        let frame = self.in_block(inner, |e| e.with_statement(rest, body, span))?;
        // The body shares the scope around it: what it assigned stays visible.
        for (name, ty) in &frame.types {
            if let Some(outer) = self.frames.last_mut() {
                outer.types.insert(name.clone(), ty.clone());
            }
        }
        let exits = self.exiting[before..].contains(&inner);
        let outer = std::mem::replace(&mut self.block, leave);
        self.emit_value(kinds::exit(), &[object], Type::tensor(), span);
        self.block = outer;
        if exits {
            self.exiting.push(self.frame_block());
        }
        Ok(())
    }

    fn enter_context(&mut self, context: Context, span: &Span) -> Result<Option<ValueId>> {
        let enabled = match context {
            Context::NoGrad => false,
            Context::EnableGrad => true,
            Context::RecordFunction | Context::StrictFusion => return Ok(None),
        };
        let former = self.emit_value(Symbol::new("aten::is_grad_enabled"), &[], Type::bool(), span);
        let flag = self.bool(enabled, span);
        self.emit(Symbol::new("aten::set_grad_enabled"), &[flag], &[], span);
        Ok(Some(former))
    }

    fn leave_context(&mut self, _: Context, former: Option<ValueId>, span: &Span) -> Result<()> {
        if let Some(former) = former {
            self.emit(Symbol::new("aten::set_grad_enabled"), &[former], &[], span);
        }
        Ok(())
    }
}
