//! Calls: of builtins, functions, methods, classes, and of the builtin functions with rules of their own.

use super::matching::Given;
use super::sugared::{Context, Special};
use super::{Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::frontend::script::ast::{Expr, ExprKind, Keyword};
use crate::frontend::script::kinds;
use crate::ir::schema::Schema;
use crate::ir::{Attr, BlockId, OpId, Symbol, Type, TypeKind, ValueId};

impl Emitter<'_> {
    pub(super) fn call_expr(
        &mut self,
        callee: &Expr,
        args: &[Expr],
        keywords: &[Keyword],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<Sugared> {
        let target = self.sugared(callee, None)?;
        if let Sugared::Special(special) = target {
            let at = if special.is_builtin() { &callee.span } else { span };
            return self.call_special(special, args, keywords, at, hint);
        }
        if let Sugared::Builtin(kind, Some(tensor)) = target
            && kind == "prim::tolist"
        {
            return self.call_tolist(tensor, hint, span).map(Sugared::Value);
        }
        if let Sugared::Exception(name) = target {
            let message = match args {
                [] => self.str("", span),
                [message] => self.exception_message(message)?,
                _ => return error(span, "exceptions take at most one argument"),
            };
            return Ok(Sugared::Tuple(vec![Sugared::Exception(name), Sugared::Value(message)]));
        }
        if let Sugared::New(class) = target {
            let object = self.emit_value(Symbol::new("prim::CreateObject"), &[], Type::class(class), span);
            return Ok(Sugared::Value(object));
        }
        if let Sugared::Context(context) = target {
            return self.make_context(context, args, span);
        }
        let given = self.values(args, None)?.into_iter().map(Given::from).collect::<Vec<_>>();
        let mut named = Vec::new();
        for keyword in keywords {
            let value = self.expr(&keyword.value, None)?;
            named.push(Given { name: Some(keyword.name.name.clone()), value });
        }
        // A call stands where what is called stands; its arguments have places of their own.
        self.call(target, &given, &named, &callee.span, &callee.span)
    }

    /// `t.tolist()`, whose result the annotation around it must tell.
    fn call_tolist(&mut self, tensor: ValueId, hint: Option<&Type>, span: &Span) -> Result<ValueId> {
        let Some(ty) = hint else {
            return error(span, "Expected type hint for result of tolist()");
        };
        let (mut element, mut depth) = (ty, 0);
        while let TypeKind::List(inner) = element.kind() {
            (element, depth) = (inner, depth + 1);
        }
        let kind = match element.kind() {
            TypeKind::Int => 0,
            TypeKind::Float => 1,
            TypeKind::Bool => 2,
            TypeKind::Complex => 3,
            _ => {
                let found = element.repr();
                return error(
                    span,
                    format!(
                        "{found} is not one of the supported element types for tolist: int, float, complex, bool"
                    ),
                );
            }
        };
        let (depth, kind) = (self.int(depth, span), self.int(kind, span));
        Ok(self.emit_value(Symbol::new("prim::tolist"), &[tensor, depth, kind], ty.clone(), span))
    }

    /// The message of an exception: anything, as text.
    fn exception_message(&mut self, message: &Expr) -> Result<ValueId> {
        let value = self.expr(message, None)?;
        if *self.ty(value) == Type::str() {
            return Ok(value);
        }
        self.builtin(Symbol::new("aten::str"), &[value], &message.span)
    }

    fn make_context(&mut self, context: Context, args: &[Expr], span: &Span) -> Result<Sugared> {
        for arg in args {
            self.expr(arg, None)?;
        }
        if !args.is_empty() && context != Context::RecordFunction {
            return error(span, "this context manager takes no arguments");
        }
        Ok(Sugared::Context(context))
    }

    /// Calls a sugared value.
    pub(super) fn call(
        &mut self,
        target: Sugared,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        match target {
            Sugared::Builtin(kind, None) => self.call_builtin(kind, args, named, span, callee),
            Sugared::Builtin(kind, Some(object)) => {
                let mut all = vec![Given::from(object)];
                all.extend_from_slice(args);
                self.call_builtin(kind, &all, named, span, callee)
            }
            Sugared::Function(name) => self.call_function(name, args, named, span, callee),
            Sugared::Method(object, method) => {
                self.call_method_with(object, method, args, named, span, callee)
            }
            Sugared::Class(class) => self.construct(class, args, named, span, callee),
            Sugared::NamedTuple(ty) => self.construct_tuple(&ty, args, named, span, callee),
            Sugared::EnumClass(class) => error(callee, format!("Enum class '{class}' is not callable")),
            Sugared::Cast(kind) => self.call_cast(kind, args, named, span, callee),
            Sugared::Type(ty) => match (ty.kind(), args) {
                (TypeKind::Device, [given]) => self.call_builtin(
                    Symbol::new("aten::device"),
                    std::slice::from_ref(given),
                    named,
                    span,
                    callee,
                ),
                _ => error(callee, format!("type {} cannot be called", ty.repr())),
            },
            Sugared::Value(value) => self.call_value(value, args, named, span, callee),
            Sugared::TensorCast(tensor, dtype) => {
                if !args.is_empty() || !named.is_empty() {
                    return error(callee, "a conversion to a dtype takes no arguments");
                }
                let dtype = self.int(dtype.code(), span);
                let (no, none) = (self.bool(false, span), self.none(span));
                let operands = [tensor, dtype, no, no, none];
                Ok(Sugared::Value(self.emit_value(Symbol::new("aten::to"), &operands, Type::tensor(), span)))
            }
            other => error(callee, format!("cannot call a {}", other.kind_name())),
        }
    }

    fn call_value(
        &mut self,
        value: ValueId,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let ty = self.ty(value).clone();
        match ty.kind() {
            TypeKind::Class(class) if self.unit.has_method(*class, "__call__") => {
                self.call_method_with(value, Symbol::new("__call__"), args, named, span, callee)
            }
            TypeKind::Class(class) if self.unit.has_method(*class, "forward") => {
                self.call_method_with(value, Symbol::new("forward"), args, named, span, callee)
            }
            TypeKind::Interface(_) => {
                self.call_method_with(value, Symbol::new("forward"), args, named, span, callee)
            }
            TypeKind::Function(name) => self.call_function(*name, args, named, span, callee),
            _ => error(callee, format!("cannot call a value of type '{}'", ty.annotation())),
        }
    }

    /// Calls an op of the registry and gives its results as one value.
    fn call_builtin(
        &mut self,
        kind: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let op = self.match_builtin(kind, args, named, span, callee)?;
        Ok(Sugared::Value(self.pack_results(op, span)))
    }

    /// The only result, or the results as a (named) tuple, or None.
    fn pack_results(&mut self, op: OpId, span: &Span) -> ValueId {
        let results = self.graph.results(op);
        match results.as_slice() {
            [only] => *only,
            [] => self.none(span),
            many => {
                let names = self.result_names(op);
                let types: Vec<Type> = many.iter().map(|v| self.ty(*v).clone()).collect();
                let ty = match names {
                    Some((name, fields)) => Type::named_tuple(name, fields, types),
                    None => Type::tuple(types),
                };
                self.emit_value(Symbol::new("prim::TupleConstruct"), many, ty, span)
            }
        }
    }

    /// Name and fields of the tuple that an op with several named results gives (`values`, `indices`).
    fn result_names(&self, op: OpId) -> Option<(Symbol, Vec<Symbol>)> {
        let schema = self.schema_of(op)?;
        let fields: Vec<Symbol> = schema.returns.iter().map(|r| r.name).collect();
        if fields.iter().any(|f| f.as_str().is_empty()) {
            return None;
        }
        Some((Symbol::new(schema.name.base()), fields))
    }

    fn schema_of(&self, op: OpId) -> Option<Schema> {
        let count = self.graph.result_count(op);
        let overloads = self.unit.registry.overloads(self.graph.kind(op));
        let fits =
            |s: &&Schema| s.returns.len() == count && s.arguments.len() == self.graph.operands(op).len();
        overloads.iter().filter_map(|o| o.schema().ok()).find(fits).cloned()
    }

    /// Finds the overload that takes the arguments and emits it.
    fn match_builtin(
        &mut self,
        kind: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<OpId> {
        let ops = self.unit.registry.overloads(kind).to_vec();
        let mut schemas = Vec::with_capacity(ops.len());
        for op in &ops {
            schemas.push(op.schema()?);
        }
        if schemas.is_empty() {
            return Err(self.unknown_builtin(kind, callee));
        }
        let (_, plan) = self.fit_any(&schemas, args, named, callee)?;
        let operands = self.emit_plan(&plan, span);
        Ok(self.emit(kind, &operands, &plan.results, span))
    }

    /// Calls an op on values.
    pub(super) fn builtin(&mut self, kind: Symbol, args: &[ValueId], span: &Span) -> Result<ValueId> {
        let op = self.builtin_op(kind, args, span)?;
        Ok(self.pack_results(op, span))
    }

    /// Calls an op that need not have a result.
    pub(super) fn builtin_op(&mut self, kind: Symbol, args: &[ValueId], span: &Span) -> Result<OpId> {
        let args: Vec<Given> = args.iter().copied().map(Given::from).collect();
        self.match_builtin(kind, &args, &[], span, span)
    }

    fn call_function(
        &mut self,
        name: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let schema = self.unit.function_schema(name, &self.name, callee)?;
        let (_, plan) = self.fit_any(&[&schema], args, named, callee)?;
        let function = self.function_constant(name, span);
        let mut operands = vec![function];
        operands.extend(self.emit_plan(&plan, span));
        let ty = plan.results.first().cloned().unwrap_or_else(Type::none);
        Ok(Sugared::Value(self.emit_value(Symbol::new("prim::CallFunction"), &operands, ty, span)))
    }

    /// Calls a method on values.
    pub(super) fn call_method(
        &mut self,
        object: ValueId,
        method: Symbol,
        args: &[ValueId],
        span: &Span,
    ) -> Result<ValueId> {
        let args: Vec<Given> = args.iter().copied().map(Given::from).collect();
        let result = self.call_method_with(object, method, &args, &[], span, span)?;
        self.as_value(result, span)
    }

    fn call_method_with(
        &mut self,
        object: ValueId,
        method: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let schema = match self.ty(object).clone().kind() {
            TypeKind::Class(class) => self.unit.method_schema(*class, method.as_str(), &self.name, callee)?,
            TypeKind::Interface(name) => self.unit.interface_schema(*name, method.as_str(), callee)?,
            _ => {
                return error(
                    callee,
                    format!("'{}' object has no method '{method}'", self.ty(object).repr()),
                );
            }
        };
        let mut all = vec![Given::from(object)];
        all.extend_from_slice(args);
        let (_, plan) = self.fit_any(&[&schema], &all, named, callee)?;
        let operands = self.emit_plan(&plan, span);
        let ty = plan.results.first().cloned().unwrap_or_else(Type::none);
        let op = self.emit(Symbol::new("prim::CallMethod"), &operands, &[ty], span);
        self.graph.set_attr(op, "name", Attr::Str(method.as_str().into()));
        Ok(Sugared::Value(self.only_result(op)))
    }

    fn construct(
        &mut self,
        class: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let object = self.emit_value(Symbol::new("prim::CreateObject"), &[], Type::class(class), span);
        if self.unit.has_method(class, "__init__") {
            self.call_method_with(object, Symbol::new("__init__"), args, named, span, callee)?;
        } else if !args.is_empty() {
            return error(callee, format!("{class} takes no arguments"));
        }
        Ok(Sugared::Value(object))
    }

    fn construct_tuple(
        &mut self,
        ty: &Type,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let schema = self.unit.named_tuple_schema(ty);
        let (_, plan) = self.fit_any(&[&schema], args, named, callee)?;
        let operands = self.emit_plan(&plan, span);
        Ok(Sugared::Value(self.emit_value(Symbol::new("prim::TupleConstruct"), &operands, ty.clone(), span)))
    }

    /// `int(x)`, `float(x)`, `str(x)`, ...
    fn call_cast(
        &mut self,
        kind: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
        callee: &Span,
    ) -> Result<Sugared> {
        let (op, method, ty) = match kind.as_str() {
            "int" => ("aten::Int", "__int__", Type::int()),
            "float" => ("aten::Float", "__float__", Type::float()),
            "bool" => ("aten::Bool", "__bool__", Type::bool()),
            "complex" => ("aten::Complex", "__complex__", Type::complex()),
            _ => ("aten::str", "__str__", Type::str()),
        };
        if let [given] = args {
            let value = given.value;
            if let Some(class) = self.ty(value).class_name()
                && self.unit.has_method(class, method)
            {
                return self.call_magic(value, method, &[], span).map(Sugared::Value);
            }
            if *self.ty(value) == ty && named.is_empty() {
                return Ok(Sugared::Value(value));
            }
            if method == "__bool__" {
                return self.to_bool(value, span).map(Sugared::Value);
            }
        }
        self.call_builtin(Symbol::new(op), args, named, span, callee)
    }

    /// Arguments of a builtin function as values.
    fn plain_args(&mut self, args: &[Expr], keywords: &[Keyword], span: &Span) -> Result<Vec<ValueId>> {
        if !keywords.is_empty() {
            return error(span, "this builtin takes no keyword arguments");
        }
        self.values(args, None)
    }

    fn call_special(
        &mut self,
        special: Special,
        args: &[Expr],
        keywords: &[Keyword],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<Sugared> {
        match special {
            Special::Print => {
                let values = self.plain_args(args, keywords, span)?;
                self.emit(Symbol::new("prim::Print"), &values, &[], span);
                Ok(Sugared::Value(self.none(span)))
            }
            Special::Len => self.call_len(args, keywords, span),
            Special::Range => {
                let values = self.plain_args(args, keywords, span)?;
                self.range(&values, span)
            }
            Special::Enumerate => self.call_enumerate(args, keywords, span),
            Special::Zip => {
                let mut parts = Vec::new();
                for arg in args {
                    let value = self.sugared(arg, None)?;
                    parts.push(self.iterable(value, &arg.span)?);
                }
                if parts.is_empty() {
                    return error(span, "zip expected at least 1 arguments, got 0");
                }
                Ok(Sugared::Iterable(Box::new(super::iterate::Iterable::Zip(parts))))
            }
            Special::IsInstance => match args {
                [object, classes] => Ok(Sugared::Value(self.isinstance(object, classes, span)?.value)),
                _ => error(span, "isinstance takes two arguments"),
            },
            Special::Annotate => self.call_annotate(args, span),
            Special::GetAttr => self.call_getattr(args, span),
            Special::HasAttr | Special::Super | Special::Type => {
                error(span, "this builtin is not supported here")
            }
            Special::Uninitialized => {
                let [ty] = args else { return error(span, "uninitialized takes one type") };
                let ty = self.type_of(ty)?;
                Ok(Sugared::Value(self.emit_value(kinds::uninitialized(), &[], ty, span)))
            }
            Special::UncheckedCast => {
                let [ty, value] = args else { return error(span, "unchecked_cast takes a type and a value") };
                let ty = self.type_of(ty)?;
                let value = self.expr(value, Some(&ty))?;
                Ok(Sugared::Value(self.unchecked_cast(value, ty, span)))
            }
            Special::Fork | Special::Awaitable => {
                self.call_fork(special == Special::Awaitable, args, keywords, span)
            }
            Special::Tuple => self.call_tuple(args, span),
            Special::List | Special::RangeList => self.call_list(args, span, hint),
            Special::Dict => self.call_dict(args, keywords, span, hint),
            Special::Slice => {
                let values = self.plain_args(args, keywords, span)?;
                let (none, one) = (self.none(span), self.int(1, span));
                match values.as_slice() {
                    [stop] => Ok(Sugared::Slice(vec![none, *stop, one])),
                    [start, stop] => Ok(Sugared::Slice(vec![*start, *stop, one])),
                    [start, stop, step] => Ok(Sugared::Slice(vec![*start, *stop, *step])),
                    _ => error(span, "slice takes one to three arguments"),
                }
            }
            Special::Sorted => {
                let given: Vec<Given> = self.values(args, None)?.into_iter().map(Given::from).collect();
                let mut named = Vec::new();
                for keyword in keywords {
                    let value = self.expr(&keyword.value, None)?;
                    named.push(Given { name: Some(keyword.name.name.clone()), value });
                }
                self.call_builtin(Symbol::new("aten::sorted"), &given, &named, span, span)
            }
            Special::MinMax(kind) => {
                let values = self.plain_args(args, keywords, span)?;
                self.builtin(Symbol::new(kind), &values, span).map(Sugared::Value)
            }
            Special::Abs => {
                let values = self.plain_args(args, keywords, span)?;
                self.builtin(Symbol::new("prim::abs"), &values, span).map(Sugared::Value)
            }
            Special::IsScripting => Ok(Sugared::Value(self.metacompile_bool(true, span))),
            Special::IsTracing => Ok(Sugared::Value(self.metacompile_bool(false, span))),
            Special::UnwrapOptional => {
                let values = self.plain_args(args, keywords, span)?;
                self.builtin(Symbol::new("aten::_unwrap_optional"), &values, span).map(Sugared::Value)
            }
            Special::ToTensor => {
                let values = self.plain_args(args, keywords, span)?;
                self.builtin(Symbol::new("aten::_to_tensor"), &values, span).map(Sugared::Value)
            }
            Special::Interpolate | Special::GetItemConst => error(span, "this builtin is not supported"),
        }
    }

    /// A bool that decides while compiling which arm of a condition is compiled.
    fn metacompile_bool(&mut self, value: bool, span: &Span) -> ValueId {
        let made = self.bool(value, span);
        if let Some(op) = self.graph.def_op(made) {
            self.graph.set_attr(op, "metacompile", Attr::Int(1));
        }
        made
    }

    fn call_len(&mut self, args: &[Expr], keywords: &[Keyword], span: &Span) -> Result<Sugared> {
        if let [arg] = args
            && let Sugared::Iterable(iterable) = self.sugared(arg, None)?
        {
            return self.iterable_len(&iterable, span).map(Sugared::Value);
        }
        let values = self.plain_args(args, keywords, span)?;
        let [value] = values.as_slice() else {
            return error(span, format!("len() takes exactly one argument ({} given)", values.len()));
        };
        let ty = self.ty(*value).clone();
        match ty.kind() {
            TypeKind::Class(class) if self.unit.has_method(*class, "__len__") => {
                self.call_magic(*value, "__len__", &[], span).map(Sugared::Value)
            }
            TypeKind::Tuple(items, _) => Ok(Sugared::Value(self.int(items.len() as i64, span))),
            _ => self.builtin(Symbol::new("aten::len"), &[*value], span).map(Sugared::Value),
        }
    }

    fn call_enumerate(&mut self, args: &[Expr], keywords: &[Keyword], span: &Span) -> Result<Sugared> {
        let (iter, start) = match (args, keywords) {
            ([iter], []) => (iter, None),
            ([iter, start], []) => (iter, Some(start)),
            ([iter], [k]) if k.name.name == "start" => (iter, Some(&k.value)),
            _ => return error(span, "enumerate expected one or two arguments"),
        };
        let value = self.sugared(iter, None)?;
        let inner = self.iterable(value, &iter.span)?;
        let start = match start {
            Some(expr) => self.expr(expr, Some(&Type::int()))?,
            None => self.int(0, span),
        };
        Ok(Sugared::Iterable(Box::new(super::iterate::Iterable::Enumerate(start, Box::new(inner)))))
    }

    fn call_annotate(&mut self, args: &[Expr], span: &Span) -> Result<Sugared> {
        let [ty, value] = args else {
            return error(span, format!("annotate expected exactly 2 arguments, got {}", args.len()));
        };
        let ty = self.type_of(ty)?;
        let value = self.expr(value, Some(&ty))?;
        let value = self.convert(value, &ty, true, span)?;
        if !self.is_subtype(self.ty(value), &ty) {
            return error(
                span,
                format!("expected an expression of type {} but found {}", ty.repr(), self.ty(value).repr()),
            );
        }
        if *self.ty(value) == Type::none() && ty != Type::none() {
            // `annotate(Optional[T], None)` is a None that is known to be optional.
            return Ok(Sugared::Value(self.unchecked_cast(value, ty, span)));
        }
        if *self.ty(value) != ty
            && self.graph.def_op(value).is_some_and(|op| {
                self.graph.kind(op).as_str() == "prim::ListConstruct"
                    || self.graph.kind(op).as_str() == "prim::DictConstruct"
            })
        {
            self.graph.set_type(value, ty);
            return Ok(Sugared::Value(value));
        }
        if *self.ty(value) != ty {
            return Ok(Sugared::Value(self.unchecked_cast(value, ty, span)));
        }
        Ok(Sugared::Value(value))
    }

    fn call_getattr(&mut self, args: &[Expr], span: &Span) -> Result<Sugared> {
        let (object, name, default) = match args {
            [object, name] => (object, name, None),
            [object, name, default] => (object, name, Some(default)),
            _ => return error(span, "getattr expected 2 or 3 arguments"),
        };
        let ExprKind::Str(name) = &name.kind else {
            return error(span, "getattr's second argument must be a string literal");
        };
        let target = self.sugared(object, None)?;
        match (self.attribute(target, name, span), default) {
            (Err(_), Some(default)) => self.sugared(default, None),
            (result, _) => result,
        }
    }

    /// `fork(f, args...)`: a block that calls `f`, run beside the program.
    fn call_fork(
        &mut self,
        is_await: bool,
        args: &[Expr],
        keywords: &[Keyword],
        span: &Span,
    ) -> Result<Sugared> {
        let Some((callee, rest)) = args.split_first() else {
            return error(span, "Expected at least one argument to fork()");
        };
        let target = self.sugared(callee, None)?;
        let given: Vec<Given> = self.values(rest, None)?.into_iter().map(Given::from).collect();
        let mut named = Vec::new();
        for keyword in keywords {
            let value = self.expr(&keyword.value, None)?;
            named.push(Given { name: Some(keyword.name.name.clone()), value });
        }
        let op = self.emit(if is_await { kinds::awaitable() } else { kinds::fork() }, &[], &[], span);
        let block = self.graph.add_block(op);
        let outer = (self.declared_return.take(), self.merged_return.take());
        let mut result = None;
        let holder = &mut result;
        self.in_block(block, |e| {
            if let Sugared::Closure(def) = target {
                e.statements(&def.body)?;
                *holder = e.merged_return.take();
                return e.end_closure(block, holder.clone(), span);
            }
            let value = e.call(target, &given, &named, span, span)?;
            let value = e.as_value(value, span)?;
            e.graph.add_block_result(block, value);
            *holder = Some(e.ty(value).clone());
            Ok(())
        })?;
        (self.declared_return, self.merged_return) = outer;
        let inner = result.unwrap_or_else(Type::none);
        let ty = if is_await { Type::new(TypeKind::Await(inner)) } else { Type::future(inner) };
        Ok(Sugared::Value(self.graph.add_result(op, ty)))
    }

    /// The exit transform puts the returned value in place of the block's result.
    fn end_closure(&mut self, block: BlockId, ty: Option<Type>, span: &Span) -> Result<()> {
        let result = match ty {
            Some(ty) => self.emit_value(kinds::uninitialized(), &[], ty, span),
            None => self.none(span),
        };
        // The placeholder must stand before the return, where it is visible.
        if let Some(op) = self.graph.def_op(result) {
            self.graph.detach(op);
            self.graph.prepend(block, op);
        }
        self.graph.set_block_results(block, &[result]);
        Ok(())
    }

    fn call_tuple(&mut self, args: &[Expr], span: &Span) -> Result<Sugared> {
        let [arg] = args else { return error(span, "tuple expected one argument") };
        let value = self.sugared(arg, None)?;
        if let Sugared::Value(v) = &value
            && let TypeKind::List(_) = self.ty(*v).kind()
        {
            return error(
                span,
                format!(
                    "cannot be used as a tuple: the number of elements of a {} is not known",
                    self.ty(*v).repr()
                ),
            );
        }
        let iterable = self.iterable(value, &arg.span)?;
        match iterable {
            super::iterate::Iterable::Unrolled(items) => {
                let value = self.as_value(Sugared::Tuple(items), span)?;
                Ok(Sugared::Value(value))
            }
            _ => error(span, "tuple needs something of known length"),
        }
    }

    fn call_list(&mut self, args: &[Expr], span: &Span, hint: Option<&Type>) -> Result<Sugared> {
        let [arg] = args else {
            if args.is_empty() {
                return self.list_literal(&[], span, hint).map(Sugared::Value);
            }
            return error(span, "list expected at most one argument");
        };
        let value = self.sugared(arg, None)?;
        if let Sugared::Value(v) = &value
            && matches!(self.ty(*v).kind(), TypeKind::List(_) | TypeKind::Str)
        {
            return self.builtin(Symbol::new("aten::list"), &[*v], span).map(Sugared::Value);
        }
        let iterable = self.iterable(value, &arg.span)?;
        self.collect_list(&iterable, span).map(Sugared::Value)
    }

    fn call_dict(
        &mut self,
        args: &[Expr],
        keywords: &[Keyword],
        span: &Span,
        hint: Option<&Type>,
    ) -> Result<Sugared> {
        let dict = match args {
            [] => self
                .dict_literal(&[], &[], span, hint.or(Some(&keyword_dict(keywords))))
                .or_else(|_| self.dict_literal(&[], &[], span, None))?,
            [arg] => match &arg.kind {
                ExprKind::List(items) => {
                    let mut keys = Vec::new();
                    let mut values = Vec::new();
                    for item in items {
                        let ExprKind::Tuple(pair) = &item.kind else {
                            return error(&item.span, "dict needs pairs of key and value");
                        };
                        let [key, value] = pair.as_slice() else {
                            return error(&item.span, "dict needs pairs of key and value");
                        };
                        keys.push(key.clone());
                        values.push(value.clone());
                    }
                    self.dict_literal(&keys, &values, span, hint)?
                }
                _ => {
                    let value = self.expr(arg, hint)?;
                    self.builtin(Symbol::new("aten::dict"), &[value], span)?
                }
            },
            _ => return error(span, "dict expected at most one positional argument"),
        };
        for keyword in keywords {
            let key = self.str(&keyword.name.name, &keyword.name.span);
            let value = self.expr(&keyword.value, None)?;
            let ty = Type::dict(Type::str(), self.ty(value).clone());
            if args.is_empty() && hint.is_none() {
                self.graph.set_type(dict, ty);
            }
            self.builtin_op(Symbol::new("aten::_set_item"), &[dict, key, value], span)?;
        }
        Ok(Sugared::Value(dict))
    }
}

/// The type of a dictionary that keywords fill, before their values are known.
fn keyword_dict(_: &[Keyword]) -> Type {
    Type::dict(Type::str(), Type::tensor())
}
