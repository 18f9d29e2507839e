//! Variables: frames of names, one a block, and the rules of assignment.

use super::frame::Frame;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span, torch};
use crate::frontend::script::ast::{Expr, ExprKind};
use crate::frontend::script::kinds;
use crate::ir::{Attr, BlockId, Type, TypeKind, ValueId};

/// What a name stands for, before it is loaded.
pub(super) enum Variable {
    Typed(Type),
    Sugared(Sugared),
}

impl Emitter<'_> {
    fn find_in(frames: &[Frame], name: &str) -> Option<Variable> {
        for frame in frames.iter().rev() {
            if let Some(sugared) = frame.sugared.get(name) {
                return Some(Variable::Sugared(sugared.clone()));
            }
            if let Some(ty) = frame.types.get(name) {
                return Some(Variable::Typed(ty.clone()));
            }
        }
        None
    }

    pub(super) fn find_variable(&self, name: &str) -> Option<Variable> {
        Self::find_in(&self.frames, name)
    }

    fn find_in_parent(&self, name: &str) -> Option<Variable> {
        let last = self.frames.len().saturating_sub(1);
        Self::find_in(&self.frames[..last], name)
    }

    /// The type of a variable, if it is a value.
    pub(super) fn variable_type(&self, name: &str) -> Option<Type> {
        match self.find_variable(name) {
            Some(Variable::Typed(ty)) => Some(ty),
            Some(Variable::Sugared(Sugared::Value(v))) => Some(self.ty(v).clone()),
            _ => None,
        }
    }

    /// Loads a variable, or resolves a name outside of the function.
    pub(super) fn name(&mut self, name: &str, span: &Span) -> Result<Sugared> {
        match self.find_variable(name) {
            Some(Variable::Sugared(sugared)) => return Ok(sugared),
            Some(Variable::Typed(ty)) => return Ok(Sugared::Value(self.load(name, ty, span))),
            None => {}
        }
        if let Some(failure) = self.failure(name) {
            return error(span, failure);
        }
        match self.resolve(name, span)? {
            Some(sugared) => Ok(sugared),
            None => error(span, format!("undefined value {name}")),
        }
    }

    /// Why a name that is not a variable here was not made one, if so.
    fn failure(&self, name: &str) -> Option<String> {
        let failure = self.frames.first()?.failures.get(name)?;
        Some(format!("{failure}and was used here"))
    }

    pub(super) fn load(&mut self, name: &str, ty: Type, span: &Span) -> ValueId {
        let op = self.emit(kinds::load(), &[], &[ty], span);
        self.graph.set_attr(op, "name", Attr::Str(name.into()));
        self.only_result(op)
    }

    /// Assigns a value, checking it against an earlier assignment in an enclosing block and an annotation.
    pub(super) fn set_variable(
        &mut self,
        name: &str,
        value: Sugared,
        annotated: Option<Type>,
        span: &Span,
    ) -> Result<()> {
        let parent = self.find_in_parent(name);
        let value = match value {
            Sugared::Constant(..) | Sugared::Tuple(_) => Sugared::Value(self.as_value(value, span)?),
            other => other,
        };
        let Sugared::Value(mut simple) = value else {
            return self.set_sugared(name, value, parent, span);
        };
        self.suggest_name(simple, name);
        if let Some(parent) = parent {
            if annotated.is_some() {
                return error(
                    span,
                    format!(
                        "Attempting to declare and annotate the type of variable '{name}' but it is already defined in an outer block"
                    ),
                );
            }
            let parent = match parent {
                Variable::Sugared(Sugared::Value(value)) => Ok(self.ty(value).clone()),
                Variable::Typed(ty) => Ok(ty),
                Variable::Sugared(_) => Err(self.kind_of(&Sugared::Value(simple))),
            };
            let parent = match parent {
                Ok(ty) => ty,
                Err(kind) => {
                    return error(
                        span,
                        format!(
                            "Cannot re-assign '{name}' because it has type {} and {name} is not a first-class value.  Only reassignments to first-class values are allowed",
                            kind
                        ),
                    );
                }
            };
            let plain = parent.unshaped();
            simple = self.convert(simple, &plain, true, span)?;
            if let Err(why) = self.why_not(self.ty(simple), &plain) {
                return self.mismatch_with_earlier(name, &parent, simple, &why, span);
            }
        }
        let mut ty = self.ty(simple).clone();
        if let Some(annotated) = annotated {
            if !self.is_subtype(&ty, &annotated) {
                return error(
                    span,
                    format!(
                        "Variable '{name}' is annotated with type {} but is being assigned to a value of type {}",
                        annotated.repr(),
                        ty.repr()
                    ),
                );
            }
            ty = annotated;
        }
        self.store(name, simple, ty, span);
        Ok(())
    }

    /// Gives a name in the innermost scope to a value that nothing assigns again, like the variable of a
    /// comprehension: a variable of that name further out keeps its value.
    pub(super) fn bind_local(&mut self, target: &Expr, item: Sugared, span: &Span) -> Result<()> {
        let name = match &target.kind {
            ExprKind::Name(name) => name,
            ExprKind::Tuple(targets) => {
                let items = self.unpack_sugared(item, Some(targets.len()), span)?;
                super::assign::check_count(targets.len(), items.len(), false, span)?;
                return targets.iter().zip(items).try_for_each(|(t, item)| self.bind_local(t, item, span));
            }
            _ => return error(&target.span, "the variable of a comprehension must be a name"),
        };
        let mut value = self.as_value(item, span)?;
        self.suggest_name(value, name);
        if let Some(Variable::Typed(outer)) = self.find_in_parent(name) {
            let plain = outer.unshaped();
            value = self.convert(value, &plain, true, &target.span)?;
            if let Err(why) = self.why_not(self.ty(value), &plain) {
                return self.mismatch_with_earlier(name, &outer, value, &why, &target.span);
            }
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.sugared.insert(name.clone(), Sugared::Value(value));
        }
        Ok(())
    }

    /// Runs `body` with names of its own in the current block.
    pub(super) fn in_scope<T>(&mut self, body: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.frames.push(Frame::new(self.block));
        let result = body(self);
        self.frames.pop();
        result
    }

    fn set_sugared(
        &mut self,
        name: &str,
        value: Sugared,
        parent: Option<Variable>,
        span: &Span,
    ) -> Result<()> {
        if parent.is_some() {
            return error(
                span,
                format!(
                    "Cannot re-assign '{name}' to a value of type {} because {name} is not a first-class value.  Only reassignments to first-class values are allowed",
                    self.kind_of(&value)
                ),
            );
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.types.shift_remove(name);
            frame.sugared.insert(name.to_string(), value);
        }
        Ok(())
    }

    fn mismatch_with_earlier(
        &self,
        name: &str,
        parent: &Type,
        value: ValueId,
        why: &str,
        span: &Span,
    ) -> Result<()> {
        let ty = self.ty(value);
        let mut message = format!(
            "Variable '{name}' previously had type {} but is now being assigned to a value of type {}",
            parent.repr(),
            ty.repr()
        );
        if matches!((parent.kind(), ty.kind()), (TypeKind::List(_), TypeKind::List(_))) {
            message.push_str(EMPTY_LIST_HINT);
        }
        message.push('\n');
        message.push_str(why);
        error(span, message)
    }

    /// Writes a variable without any check.
    pub(super) fn store(&mut self, name: &str, value: ValueId, ty: Type, span: &Span) {
        let op = self.emit(kinds::store(), &[value], &[], span);
        self.graph.set_attr(op, "name", Attr::Str(name.into()));
        if *self.graph.ty(value) != ty {
            // Control flow carries the variable under its declared type.
            self.graph.set_attr(op, "type", Attr::Type(ty.clone()));
        }
        if let Some(frame) = self.frames.last_mut() {
            frame.sugared.shift_remove(name);
            frame.types.insert(name.to_string(), ty);
        }
    }

    /// Lets a value print under the first variable it is assigned to.
    fn suggest_name(&mut self, value: ValueId, name: &str) {
        let is_meaningful = !name.starts_with(|c: char| c.is_ascii_digit()) && !name.starts_with("__");
        if is_meaningful
            && self.graph.name(value).is_none()
            && self.graph.def_block(value) == Some(self.block)
        {
            let is_load = self.graph.def_op(value).is_some_and(|op| self.graph.kind(op) == kinds::load());
            if !is_load {
                self.graph.set_unique_name(value, name);
            }
        }
    }

    /// Forgets a variable (`del name`).
    pub(super) fn delete_variable(&mut self, name: &str, span: &Span) -> Result<()> {
        if self.find_variable(name).is_none() {
            let failure = self.failure(name);
            return error(span, failure.unwrap_or_else(|| format!("undefined value {name}")));
        }
        // It is gone for good, also after the condition or loop that deletes it.
        for frame in &mut self.frames {
            frame.types.shift_remove(name);
            frame.sugared.shift_remove(name);
        }
        Ok(())
    }

    /// Declares the type that a variable has after control flow.
    fn declare(&mut self, name: &str, ty: Type) {
        if let Some(frame) = self.frames.last_mut() {
            frame.sugared.shift_remove(name);
            frame.types.insert(name.to_string(), ty);
        }
    }

    fn forbid(&mut self, name: &str, message: String, span: &Span) {
        let text = torch::render(&crate::diag::Diagnostic::compile(message).at(span));
        // PyTorch keeps them with the function: uses after a loop, in which a branch did not set it, mention the branch.
        if let Some(frame) = self.frames.first_mut() {
            frame.failures.insert(name.to_string(), text);
        }
    }

    /// Joins the variables of the two arms of a condition; `exits` says which arm leaves before its end.
    pub(super) fn join_arms(
        &mut self,
        yes: &Frame,
        no: &Frame,
        exits: (bool, bool),
        span: &Span,
    ) -> Result<()> {
        let mut names: Vec<&String> = yes.types.keys().chain(no.types.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let outer = self.variable_type(name);
            let in_yes = yes.types.get(name).cloned().or_else(|| outer.clone());
            let in_no = no.types.get(name).cloned().or_else(|| outer.clone());
            let (a, b) = match (in_yes, in_no, exits) {
                (_, _, (true, true)) => continue,
                // An arm that leaves early never gives the variable a value.
                (_, Some(b), (true, false)) => {
                    self.leave_unset(yes.block, name, &b);
                    (b.clone(), b)
                }
                (Some(a), _, (false, true)) => {
                    self.leave_unset(no.block, name, &a);
                    (a.clone(), a)
                }
                (Some(a), Some(b), _) => (a, b),
                (Some(_), None, _) => {
                    self.forbid(name, format!("{name} is not defined in the false branch"), span);
                    continue;
                }
                (None, Some(_), _) => {
                    self.forbid(name, format!("{name} is not defined in the true branch"), span);
                    continue;
                }
                (None, None, _) => continue,
            };
            let widens = outer.as_ref().is_some_and(|ty| {
                matches!(ty.kind(), TypeKind::Union(_) | TypeKind::Optional(_) | TypeKind::Number)
            });
            match self.unify(&a, &b, widens) {
                Some(ty) => self.declare(name, ty),
                None => {
                    let message = format!(
                        "Type mismatch: {name} is set to type {} in the true branch and type {} in the false branch",
                        a.repr(),
                        b.repr()
                    );
                    if outer.is_some() {
                        return error(span, message);
                    }
                    self.forbid(name, message, span);
                }
            }
        }
        Ok(())
    }

    /// Stores a placeholder at the end of a block that leaves before it.
    fn leave_unset(&mut self, block: BlockId, name: &str, ty: &Type) {
        let unset = self.graph.emit(block, kinds::uninitialized(), &[], std::slice::from_ref(ty));
        let value = self.only_result(unset);
        let store = self.graph.emit(block, kinds::store(), &[value], &[]);
        self.graph.set_attr(store, "name", Attr::Str(name.into()));
    }

    /// Sets the name of a value that has none, for parameters.
    pub(super) fn bind_parameter(&mut self, name: &str, value: ValueId, span: &Span) {
        self.graph.set_unique_name(value, name);
        let ty = self.ty(value).clone();
        self.store(name, value, ty, span);
    }
}

/// What PyTorch adds where two list types meet.
pub(super) const EMPTY_LIST_HINT: &str = "\nEmpty lists default to List[Tensor]. Add a variable annotation to the assignment to create an empty list of another type (torch.jit.annotate(List[T, []]) where T is the type of elements in the list for Python 2)";
