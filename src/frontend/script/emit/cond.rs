//! Conditions: what they imply about types, and the two arms that follow.

use super::sugared::Special;
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{BinaryOp, Expr, ExprKind, Stmt, UnaryOp};
use crate::frontend::script::kinds;
use crate::ir::subtype;
use crate::ir::{Attr, Symbol, Type, TypeKind, ValueId};

/// Types that variables are known to have where a condition holds or fails.
#[derive(Clone, Default)]
pub(super) struct Refinements(Vec<(String, Type)>);

impl Refinements {
    fn one(name: &str, ty: Type) -> Refinements {
        Refinements(vec![(name.to_string(), ty)])
    }

    /// What holds where both hold. A name of which they say different things is left out.
    fn and(mut self, other: Refinements) -> Refinements {
        for (name, ty) in other.0 {
            match self.0.iter().position(|(n, _)| *n == name) {
                None => self.0.push((name, ty)),
                Some(at) if self.0[at].1 != ty => {
                    self.0.remove(at);
                }
                Some(_) => {}
            }
        }
        self
    }

    /// What holds where either holds: what both say.
    fn or(self, other: &Refinements) -> Refinements {
        Refinements(self.0.into_iter().filter(|fact| other.0.contains(fact)).collect())
    }
}

/// A condition: its value, what it implies, and whether the compiler knows it.
#[derive(Clone)]
pub(super) struct Cond {
    pub(super) value: ValueId,
    holds: Refinements,
    fails: Refinements,
    /// Known while compiling: the other arm is not compiled at all.
    known: Option<bool>,
}

impl Emitter<'_> {
    pub(super) fn condition(&mut self, expr: &Expr) -> Result<Cond> {
        let span = &expr.span;
        match &expr.kind {
            ExprKind::Unary { op: UnaryOp::Not, operand } => {
                let inner = self.condition(operand)?;
                let value = self.emit_value(Symbol::new("aten::__not__"), &[inner.value], Type::bool(), span);
                Ok(Cond { value, holds: inner.fails, fails: inner.holds, known: inner.known.map(|k| !k) })
            }
            ExprKind::Binary { op: op @ (BinaryOp::And | BinaryOp::Or), left, right } => {
                self.short_circuit(*op == BinaryOp::Or, left, right, span)
            }
            ExprKind::Binary { op: op @ (BinaryOp::Is | BinaryOp::IsNot), left, right } => {
                self.identity(*op == BinaryOp::IsNot, left, right, expr)
            }
            ExprKind::Call { callee, args, keywords, .. } if keywords.is_empty() => {
                if let Some(cond) = self.type_test(callee, args, span)? {
                    return Ok(cond);
                }
                self.plain_condition(expr)
            }
            _ => self.plain_condition(expr),
        }
    }

    fn plain_condition(&mut self, expr: &Expr) -> Result<Cond> {
        let value = self.expr(expr, None)?;
        let value = self.to_bool(value, &expr.span)?;
        // A constant decides while compiling: the other arm is not compiled at all.
        let known = self.constant_of(value).and_then(Attr::as_int).map(|x| x != 0);
        Ok(Cond { value, holds: Refinements::default(), fails: Refinements::default(), known })
    }

    /// Python's truth of a value.
    pub(super) fn to_bool(&mut self, value: ValueId, span: &Span) -> Result<ValueId> {
        if *self.ty(value).kind() == TypeKind::Bool {
            return Ok(value);
        }
        let described = self.ty(value).repr();
        let truth = match self.ty(value).kind() {
            TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Str => {
                let len = self.builtin(Symbol::new("aten::len"), &[value], span);
                len.and_then(|len| self.builtin(Symbol::new("aten::Bool"), &[len], span))
            }
            TypeKind::Class(class) if self.unit.has_method(*class, "__bool__") => {
                self.call_magic(value, "__bool__", &[], span)
            }
            TypeKind::Class(class) if self.unit.has_method(*class, "__len__") => {
                let len = self.call_magic(value, "__len__", &[], span);
                len.and_then(|len| self.builtin(Symbol::new("aten::Bool"), &[len], span))
            }
            _ => self.builtin(Symbol::new("aten::Bool"), &[value], span),
        };
        match truth {
            Ok(truth) if *self.ty(truth).kind() == TypeKind::Bool => Ok(truth),
            _ => error(span, format!("Could not cast value of type {described} to bool")),
        }
    }

    fn short_circuit(&mut self, is_or: bool, left: &Expr, right: &Expr, span: &Span) -> Result<Cond> {
        let first = self.condition(left)?;
        let mut second = None;
        let holder = &mut second;
        let op = self.emit(kinds::if_(), &[first.value], &[], span);
        let (yes, no) = (self.graph.add_block(op), self.graph.add_block(op));
        let (short, long) = if is_or { (yes, no) } else { (no, yes) };
        let outer = std::mem::replace(&mut self.block, short);
        let decided = self.bool(is_or, span);
        self.block = outer;
        self.graph.add_block_result(short, decided);
        let facts = if is_or { first.fails.clone() } else { first.holds.clone() };
        self.in_block(long, |e| {
            e.refine(facts, span)?;
            let cond = e.condition(right)?;
            e.graph.add_block_result(long, cond.value);
            *holder = Some(cond);
            Ok(())
        })?;
        let value = self.graph.add_result(op, Type::bool());
        let Some(second) = second else { return error(span, "a condition has no value") };
        let known = match (first.known, second.known) {
            (Some(k), _) | (_, Some(k)) if k == is_or => Some(is_or),
            (Some(_), Some(_)) => Some(!is_or),
            _ => None,
        };
        let (holds, fails) = if is_or {
            (first.holds.or(&second.holds), first.fails.and(second.fails))
        } else {
            (first.holds.and(second.holds), first.fails.or(&second.fails))
        };
        Ok(Cond { value, holds, fails, known })
    }

    fn certain(&mut self, known: bool, span: &Span) -> Cond {
        let value = self.bool(known, span);
        Cond { value, holds: Refinements::default(), fails: Refinements::default(), known: Some(known) }
    }

    /// `a is None`, `a is not None` and `is` between other things.
    fn identity(&mut self, negated: bool, left: &Expr, right: &Expr, expr: &Expr) -> Result<Cond> {
        let span = &expr.span;
        let a = self.expr(left, None)?;
        let b = self.expr(right, None)?;
        let kind = Symbol::new(if negated { "aten::__isnot__" } else { "aten::__is__" });
        let none = Type::none();
        let (always, never) =
            ((self.must_be_none(a), self.must_be_none(b)), (!self.can_be_none(a), !self.can_be_none(b)));
        match (always, never) {
            ((true, true), _) => return Ok(self.certain(!negated, span)),
            ((true, _), (_, true)) | ((_, true), (true, _)) => return Ok(self.certain(negated, span)),
            _ => {}
        }
        let value = self.builtin(kind, &[a, b], span)?;
        let (tested, test) = match (&left.kind, &right.kind) {
            (ExprKind::Name(_), ExprKind::None) => (a, left),
            (ExprKind::None, ExprKind::Name(_)) => (b, right),
            _ => return Ok(self.uncertain(value)),
        };
        let ty = self.ty(tested).clone();
        let present = match (&test.kind, ty.kind()) {
            (ExprKind::Name(name), TypeKind::Optional(_) | TypeKind::Union(_)) if ty != none => {
                Refinements::one(name, ty.without_none())
            }
            _ => Refinements::default(),
        };
        // Where it is None nothing is refined: it keeps the type that it may be given again.
        let (holds, fails) =
            if negated { (present, Refinements::default()) } else { (Refinements::default(), present) };
        Ok(Cond { value, holds, fails, known: None })
    }

    fn uncertain(&self, value: ValueId) -> Cond {
        Cond { value, holds: Refinements::default(), fails: Refinements::default(), known: None }
    }

    fn must_be_none(&self, value: ValueId) -> bool {
        let ty = self.ty(value);
        let is_bare = |op| self.graph.kind(op) == kinds::constant() && self.graph.attrs(op).is_empty();
        *ty == Type::none()
            || (matches!(ty.kind(), TypeKind::Optional(_)) && self.graph.def_op(value).is_some_and(is_bare))
    }

    fn can_be_none(&self, value: ValueId) -> bool {
        let ty = self.ty(value);
        match ty.kind() {
            TypeKind::None | TypeKind::Optional(_) => true,
            TypeKind::Union(members) => members.contains(&Type::none()),
            _ => false,
        }
    }

    /// `isinstance(x, T)` and `hasattr(x, "name")`.
    fn type_test(&mut self, callee: &Expr, args: &[Expr], span: &Span) -> Result<Option<Cond>> {
        let special = match &callee.kind {
            ExprKind::Name(name) if self.find_variable(name).is_some() => return Ok(None),
            ExprKind::Name(name) if matches!(name.as_str(), "isinstance" | "hasattr") => name.as_str(),
            // The function has several names, and others that programs give it.
            ExprKind::Name(_) if args.len() == 2 && self.is_isinstance(callee) => "isinstance",
            ExprKind::Attribute { name, .. } if name.name == "isinstance" && self.is_isinstance(callee) => {
                "isinstance"
            }
            _ => return Ok(None),
        };
        match (special, args) {
            ("isinstance", [object, classes]) => self.isinstance(object, classes, span).map(Some),
            ("hasattr", [object, name]) => self.hasattr(object, name, span).map(Some),
            _ => Ok(None),
        }
    }

    fn is_isinstance(&mut self, callee: &Expr) -> bool {
        matches!(self.sugared(callee, None), Ok(Sugared::Special(Special::IsInstance)))
    }

    pub(super) fn isinstance(&mut self, object: &Expr, classes: &Expr, span: &Span) -> Result<Cond> {
        let value = self.expr(object, None)?;
        let ty = self.ty(value).clone();
        let classes: Vec<Type> =
            self.isinstance_classes(classes)?.iter().flat_map(|ty| ty.alternatives()).collect();
        let (mut held, mut rest) = (Vec::new(), Vec::new());
        let mut covered = true;
        for part in ty.alternatives() {
            if *part.kind() == TypeKind::Any {
                covered = matches!(classes.as_slice(), [only] if *only == part);
                held.extend(classes.iter().cloned());
                rest.push(part);
                break;
            }
            // The narrower of the two where one covers the other.
            let narrowest = classes.iter().find_map(|class| {
                if self.is_subtype(&part, class) {
                    Some(part.clone())
                } else {
                    self.is_subtype(class, &part).then(|| class.clone())
                }
            });
            match narrowest {
                Some(found) => {
                    covered &= found == part;
                    held.push(found);
                }
                None => {
                    covered = false;
                    rest.push(part);
                }
            }
        }
        let of = |types: Vec<Type>| match &object.kind {
            ExprKind::Name(name) if !types.is_empty() => Refinements::one(name, subtype::union(&types)),
            _ => Refinements::default(),
        };
        let known = match (held.is_empty(), covered) {
            (true, _) => Some(false),
            (_, true) => Some(true),
            _ => None,
        };
        let (holds, fails) = (of(held), of(rest));
        if let Some(known) = known {
            let value = self.bool(known, &object.span);
            return Ok(Cond { value, holds, fails, known: Some(known) });
        }
        let op = self.emit(Symbol::new("prim::isinstance"), &[value], &[Type::bool()], span);
        self.graph.set_attr(op, "types", Attr::Types(classes.into()));
        let value = self.only_result(op);
        Ok(Cond { value, holds, fails, known: None })
    }

    fn isinstance_classes(&mut self, expr: &Expr) -> Result<Vec<Type>> {
        if let ExprKind::Tuple(items) = &expr.kind {
            let mut out = Vec::new();
            for item in items {
                out.extend(self.isinstance_classes(item)?);
            }
            return Ok(out);
        }
        Ok(vec![match &expr.kind {
            ExprKind::Name(name) if name == "list" => Type::any_list(),
            ExprKind::Name(name) if name == "tuple" => Type::any_tuple(),
            _ => self.type_of(expr)?,
        }])
    }

    pub(super) fn hasattr(&mut self, object: &Expr, name: &Expr, span: &Span) -> Result<Cond> {
        let ExprKind::Str(name) = &name.kind else {
            return error(&name.span, "hasattr's second argument must be a string literal");
        };
        let place = &object.span;
        let object = self.sugared(object, None)?;
        self.check_has_attributes(&object, place)?;
        let known = self.has_attribute(&object, name);
        let value = self.bool(known, span);
        Ok(Cond { value, holds: Refinements::default(), fails: Refinements::default(), known: Some(known) })
    }

    /// `hasattr` is for objects and named tuples alone.
    pub(super) fn check_has_attributes(&self, object: &Sugared, span: &Span) -> Result<()> {
        let value = match object {
            Sugared::Value(value) => *value,
            Sugared::Namespace(_) => {
                return error(span, "attribute lookup is not defined on python value of type 'module'");
            }
            _ => return Ok(()),
        };
        let ty = self.ty(value);
        let (lead, shown) = match ty.kind() {
            TypeKind::Class(_) | TypeKind::Interface(_) | TypeKind::Tuple(_, Some(_)) => return Ok(()),
            TypeKind::Tuple(_, None) => ("but got a normal Tuple ", ty.repr()),
            TypeKind::Tensor(t) if t.inferred => ("got ", "Tensor (inferred)".to_string()),
            _ => ("got ", ty.repr()),
        };
        error(
            span,
            format!("hasattr's first argument must be an object or NamedTuple, {lead}{shown} instead"),
        )
    }

    /// Stores the refined variables anew, cast to what is known of them.
    pub(super) fn refine(&mut self, refinements: Refinements, span: &Span) -> Result<()> {
        for (name, ty) in refinements.0 {
            let Some(current) = self.variable_type(&name) else { continue };
            if current.unshaped() == ty.unshaped() {
                continue;
            }
            let Sugared::Value(value) = self.name(&name, span)? else { continue };
            let cast = self.unchecked_cast(value, ty, span);
            self.set_variable(&name, Sugared::Value(cast), None, span)?;
        }
        Ok(())
    }

    /// Emits both arms of a condition, or the one that is known to be taken.
    pub(super) fn branches(
        &mut self,
        cond: Cond,
        span: &Span,
        yes: impl FnOnce(&mut Self) -> Result<()>,
        no: impl FnOnce(&mut Self) -> Result<()>,
    ) -> Result<()> {
        match cond.known {
            Some(true) => {
                self.refine(cond.holds, span)?;
                return yes(self);
            }
            Some(false) => {
                self.refine(cond.fails, span)?;
                return no(self);
            }
            None => {}
        }
        let op = self.emit(kinds::if_(), &[cond.value], &[], span);
        let (yes_block, no_block) = (self.graph.add_block(op), self.graph.add_block(op));
        let yes_frame = self.in_block(yes_block, |e| {
            e.refine(cond.holds, span)?;
            yes(e)
        })?;
        let no_frame = self.in_block(no_block, |e| {
            e.refine(cond.fails, span)?;
            no(e)
        })?;
        let exits = (self.exiting.contains(&yes_block), self.exiting.contains(&no_block));
        self.join_arms(&yes_frame, &no_frame, exits, span)?;
        if exits == (true, true) {
            self.exiting.insert(self.block);
        }
        Ok(())
    }

    pub(super) fn if_statement(
        &mut self,
        cond: &Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
        span: &Span,
    ) -> Result<()> {
        let cond = self.condition(cond)?;
        self.branches(cond, span, |e| e.statements(then), |e| e.statements(otherwise))
    }

    /// `a if c else b`
    pub(super) fn ternary(
        &mut self,
        cond: &Expr,
        then: &Expr,
        otherwise: &Expr,
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<ValueId> {
        let cond = self.condition(cond)?;
        match cond.known {
            Some(true) => return self.expr(then, hint),
            Some(false) => return self.expr(otherwise, hint),
            None => {}
        }
        let op = self.emit(kinds::if_(), &[cond.value], &[], span);
        let arms = [(then, cond.holds), (otherwise, cond.fails)];
        let mut types = Vec::new();
        for (expr, facts) in arms {
            let block = self.graph.add_block(op);
            let holder = &mut types;
            self.in_block(block, |e| {
                e.refine(facts, span)?;
                let value = e.expr(expr, hint)?;
                holder.push(e.ty(value).clone());
                e.graph.add_block_result(block, value);
                Ok(())
            })?;
        }
        let [a, b] = types.as_slice() else { return error(span, "a ternary without two values") };
        let Some(ty) = self.unify(a, b, false) else {
            return error(
                span,
                format!(
                    "if-expression's true branch has type {} but false branch has type {}",
                    a.repr(),
                    b.repr()
                ),
            );
        };
        Ok(self.graph.add_result(op, ty))
    }
}

/// Whether a sugared value is a plain one, for `hasattr`.
impl Emitter<'_> {
    pub(super) fn has_attribute(&mut self, object: &Sugared, name: &str) -> bool {
        match object {
            Sugared::Value(value) => match self.ty(*value).clone().kind() {
                TypeKind::Class(class) => self.unit.has_attribute(*class, name),
                TypeKind::Tuple(_, Some(names)) => names.fields.iter().any(|f| *f == name),
                _ => false,
            },
            _ => false,
        }
    }
}
