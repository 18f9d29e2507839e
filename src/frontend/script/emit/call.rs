//! Calls: of builtins, functions, methods, classes, and of the builtin functions with rules of their own.

mod containers;

use super::matching::{Given, Plan};
use super::sugared::{Context, Special};
use super::{Emitter, Sugared, derived, error};
use crate::diag::{Diagnostic, Result, Span};
use crate::dialects::{is_custom_class, unknown_class};
use crate::frontend::script::ast::{Expr, ExprKind, Keyword};
use crate::frontend::script::{kinds, library};
use crate::ir::schema::{Argument, Schema};
use crate::ir::{Attr, BlockId, OpId, Symbol, Type, TypeKind, ValueId};
use std::sync::Arc;

impl Emitter<'_> {
    pub(super) fn call_expr(
        &mut self,
        callee: &Expr,
        args: &[Expr],
        keywords: &[Keyword],
        (span, args_span): (&Span, &Span),
        hint: Option<&Type>,
    ) -> Result<Sugared> {
        let target = self.sugared(callee, None)?;
        if let Sugared::Special(special) = target {
            return self.call_special(special, &Call { callee, args, keywords, span, args_span, hint });
        }
        if let Sugared::New(class) = target {
            let object = self.emit_value(Symbol::new("prim::CreateObject"), &[], Type::class(class), span);
            return Ok(Sugared::Value(object));
        }
        let target = self.dispatched(target, args, keywords, &callee.span)?;
        let given = self.values(args)?.into_iter().map(Given::from).collect::<Vec<_>>();
        let named = self.named_values(keywords)?;
        // The call stands at what is called.
        self.call(target, &given, &named, &callee.span)
    }

    fn named_values(&mut self, keywords: &[Keyword]) -> Result<Vec<Given>> {
        let mut named = Vec::with_capacity(keywords.len());
        for keyword in keywords {
            let value = self.expr(&keyword.value, None)?;
            named.push(Given::named(keyword.name.name.clone(), value));
        }
        Ok(named)
    }

    /// An exception with its message: the builtin `AssertionError` carries its name in the message, classes of
    /// Python theirs beside it.
    fn make_exception(&mut self, class: &str, args: &[Given], span: &Span) -> Result<Sugared> {
        if class == "AssertionError" {
            let mut message = self.str("AssertionError: ", span);
            for given in args {
                let text = if *self.ty(given.value) == Type::str() {
                    given.value
                } else {
                    self.builtin(Symbol::new("aten::str"), &[given.value], span)?
                };
                message = self.builtin(Symbol::new("aten::add"), &[message, text], span)?;
            }
            return Ok(Sugared::Raised(message, None));
        }
        let message = match args {
            [] => self.str("", span),
            [only] => only.value,
            several => {
                let values: Vec<ValueId> = several.iter().map(|g| g.value).collect();
                self.make_tuple(&values, span)
            }
        };
        let qualified = if class.contains('.') { class.to_string() } else { format!("builtins.{class}") };
        let class = self.str(&qualified, span);
        Ok(Sugared::Raised(message, Some(class)))
    }

    /// Calls a sugared value.
    pub(super) fn call(
        &mut self,
        target: Sugared,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        match target {
            Sugared::Builtin(kind, None) => self.call_builtin(kind, args, named, span),
            Sugared::Builtin(kind, Some(object)) => {
                let mut all = vec![Given::receiver(object)];
                all.extend_from_slice(args);
                self.call_builtin(kind, &all, named, span)
            }
            Sugared::Overloaded(names) => self.call_function(&names, args, named, span),
            Sugared::Function(name) => self.call_function(&[name], args, named, span),
            Sugared::Method(object, method) => self.call_method_with(object, method, args, named, span),
            Sugared::Class(class) => self.construct(class, args, named, span),
            Sugared::NamedTuple(ty) => self.construct_tuple(&ty, args, named, span),
            Sugared::EnumClass(class) => error(span, format!("Enum class '{class}' is not callable")),
            Sugared::Cast(kind) => self.call_cast(kind, args, named, span),
            Sugared::Type(ty) if *ty.kind() == TypeKind::Device => {
                // The schema calls the text otherwise than Python does.
                if let ([], [only]) = (args, named)
                    && only.name.as_deref() == Some("type")
                {
                    let given = Given { name: None, ..only.clone() };
                    return self.call_builtin(Symbol::new("aten::device"), &[given], &[], span);
                }
                self.call_builtin(Symbol::new("aten::device"), args, named, span)
            }
            Sugared::Type(ty) => error(span, format!("type {} cannot be called", ty.repr())),
            Sugared::Value(value) => self.call_value(value, args, named, span),
            Sugared::TensorCast(tensor, dtype) => {
                if !args.is_empty() || !named.is_empty() {
                    return error(span, "casts take no arguments");
                }
                let dtype = self.int(dtype.code(), span);
                let (no, none) = (self.bool(false, span), self.none(span));
                let operands = [tensor, dtype, no, no, none];
                Ok(Sugared::Value(self.emit_value(Symbol::new("aten::to"), &operands, Type::tensor(), span)))
            }
            Sugared::Items(items) if args.is_empty() && named.is_empty() => Ok(Sugared::Tuple(items)),
            Sugared::Exception(class) => self.make_exception(&class, args, span),
            Sugared::Context(context) => {
                if !args.is_empty() && context != Context::RecordFunction {
                    return error(span, "this context manager takes no arguments");
                }
                Ok(Sugared::Context(context))
            }
            Sugared::Python(name) => self.call_python(name, args, span),
            other => error(span, format!("cannot call a {}", self.kind_of(&other))),
        }
    }

    /// Python's classes are functions of tensors to PyTorch's compiler, which only Python could run.
    fn call_python(&mut self, name: &str, args: &[Given], span: &Span) -> Result<Sugared> {
        let formals = (0..args.len()).map(|n| Argument::new(n.to_string().as_str(), Type::tensor()));
        let returns = vec![Argument::new("0", Type::tensor())];
        let schema = Schema::new(Symbol::new(name), formals.collect(), returns);
        self.fit_any(&[&schema], args, &[], span)?;
        Err(Diagnostic::unsupported(format!("calls of Python's {name} are not supported")).at(span))
    }

    /// How messages call what a name stands for.
    pub(super) fn kind_of(&self, sugared: &Sugared) -> String {
        match sugared {
            Sugared::Value(value) => format!("value of type '{}'", self.ty(*value).annotation()),
            other => other.kind_name(),
        }
    }

    fn call_value(
        &mut self,
        value: ValueId,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        let ty = self.ty(value).clone();
        match ty.kind() {
            TypeKind::Class(class) if self.unit.has_method(*class, "__call__") => {
                self.call_method_with(value, Symbol::new("__call__"), args, named, span)
            }
            TypeKind::Class(class) if self.unit.has_hooks(*class) => {
                self.call_hooked(value, *class, (args, named), span)
            }
            TypeKind::Class(class)
                if ["forward", "forward__0"].iter().any(|m| self.unit.has_method(*class, m)) =>
            {
                self.call_method_with(value, Symbol::new("forward"), args, named, span)
            }
            TypeKind::Interface(_) => self.call_method_with(value, Symbol::new("forward"), args, named, span),
            TypeKind::Function(name) => self.call_function(&[*name], args, named, span),
            _ => error(span, format!("cannot call a {}", self.kind_of(&Sugared::Value(value)))),
        }
    }

    /// Calls the overload of an op that takes the arguments and gives its results as one value.
    fn call_builtin(
        &mut self,
        kind: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        let registry = Arc::clone(&self.unit.registry);
        let derived = derived::of(kind);
        let mut schemas = Vec::new();
        for op in registry.overloads(kind) {
            schemas.push(op.schema()?);
        }
        schemas.extend(derived.iter().map(|d| &d.schema));
        if schemas.is_empty() && self.unit.is_source() {
            return Err(self.unknown_builtin(kind, span));
        }
        if schemas.is_empty() {
            return Ok(Sugared::Value(self.unknown_op(kind, args, named, span)));
        }
        let (chosen, plan) = self.fit_any(&schemas, args, named, span)?;
        let operands = self.emit_plan(&plan, span);
        if let Some(derived) =
            (chosen + derived.len()).checked_sub(schemas.len()).and_then(|n| derived.get(n))
        {
            return self.expand(derived, &operands, span).map(Sugared::Value);
        }
        let op = self.emit(kind, &operands, &plan.results, span);
        Ok(Sugared::Value(self.pack_results(op, schemas[chosen], span)))
    }

    /// An op of an archive that is not known here: a program that does not come by it runs. Its results are taken for tensors.
    fn unknown_op(&mut self, kind: Symbol, args: &[Given], named: &[Given], span: &Span) -> ValueId {
        let unknown = self.unknown_builtin(kind, span);
        self.unit.note_unknown(unknown);
        let operands: Vec<ValueId> = args.iter().chain(named).map(|given| given.value).collect();
        let ty = self.guessed_result();
        self.emit_value(kind, &operands, ty, span)
    }

    /// The only result, or the results as a (named) tuple, or None.
    fn pack_results(&mut self, op: OpId, schema: &Schema, span: &Span) -> ValueId {
        let results = self.graph.results(op);
        match results.as_slice() {
            [only] => *only,
            // Nothing is the empty tuple.
            [] => self.make_tuple(&[], span),
            many => {
                let fields: Vec<Symbol> = schema.returns.iter().map(|r| r.name).collect();
                let types: Vec<Type> = many.iter().map(|v| self.ty(*v).clone()).collect();
                let ty = if fields.iter().any(|f| f.as_str().is_empty()) {
                    Type::tuple(types)
                } else {
                    Type::named_tuple(Symbol::new(schema.name.base()), fields, types)
                };
                self.emit_value(Symbol::new("prim::TupleConstruct"), many, ty, span)
            }
        }
    }

    /// Calls an op on values.
    pub(super) fn builtin(&mut self, kind: Symbol, args: &[ValueId], span: &Span) -> Result<ValueId> {
        self.builtin_named(kind, args, &[], span)
    }

    /// Calls an op on values, some of them by name.
    pub(super) fn builtin_named(
        &mut self,
        kind: Symbol,
        args: &[ValueId],
        named: &[(&str, ValueId)],
        span: &Span,
    ) -> Result<ValueId> {
        let args: Vec<Given> = args.iter().copied().map(Given::from).collect();
        let named: Vec<Given> =
            named.iter().map(|(name, value)| Given::named((*name).to_string(), *value)).collect();
        let result = self.call_builtin(kind, &args, &named, span)?;
        self.as_value(result, span)
    }

    /// Calls an op for its effect.
    pub(super) fn builtin_op(&mut self, kind: Symbol, args: &[ValueId], span: &Span) -> Result<()> {
        self.builtin(kind, args, span).map(|_| ())
    }

    pub(super) fn call_function(
        &mut self,
        names: &[Symbol],
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        let mut schemas = Vec::with_capacity(names.len());
        for name in names {
            let mut schema = self.unit.function_schema(*name, &self.name, span)?;
            if self.unit.is_source()
                && let Some(shown) = library::shown_name(name.as_str())
            {
                schema.name = Symbol::new(shown);
            }
            schemas.push(schema);
        }
        let (chosen, plan) = self.fit_any(&schemas.iter().collect::<Vec<_>>(), args, named, span)?;
        let function = self.function_constant(names[chosen], span);
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
        let result = self.call_method_with(object, method, &args, &[], span)?;
        self.as_value(result, span)
    }

    pub(super) fn call_method_with(
        &mut self,
        object: ValueId,
        method: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        let mut all = vec![Given::from(object)];
        all.extend_from_slice(args);
        let overloads = self.overloads_of(object, method);
        if !overloads.is_empty() {
            let mut schemas = Vec::with_capacity(overloads.len());
            for (class, overload) in &overloads {
                schemas.push(self.unit.method_schema(*class, overload.as_str(), &self.name, span)?);
            }
            let (chosen, plan) = self.fit_any(&schemas.iter().collect::<Vec<_>>(), &all, named, span)?;
            return Ok(self.emit_method_call(overloads[chosen].1, &plan, span));
        }
        let schema = match self.ty(object).clone().kind() {
            TypeKind::Class(class)
                if is_custom_class(class.as_str()) && !self.unit.has_method(*class, method.as_str()) =>
            {
                return Ok(Sugared::Value(self.unknown_method(object, *class, method, args, named, span)));
            }
            TypeKind::Class(class) => self.unit.method_schema(*class, method.as_str(), &self.name, span)?,
            TypeKind::Interface(name) => self.unit.interface_schema(*name, method.as_str(), span)?,
            _ => {
                return error(span, format!("'{}' object has no method '{method}'", self.ty(object).repr()));
            }
        };
        let (_, plan) = self.fit_any(&[&schema], &all, named, span)?;
        Ok(self.emit_method_call(method, &plan, span))
    }

    fn emit_method_call(&mut self, method: Symbol, plan: &Plan, span: &Span) -> Sugared {
        let operands = self.emit_plan(plan, span);
        let ty = plan.results.first().cloned().unwrap_or_else(Type::none);
        let op = self.emit(Symbol::new("prim::CallMethod"), &operands, &[ty], span);
        self.graph.set_attr(op, "name", Attr::Str(method.as_str().into()));
        Sugared::Value(self.only_result(op))
    }

    /// The overloads of a method that a class has under several signatures: `forward__0`, `forward__1`.
    fn overloads_of(&self, object: ValueId, method: Symbol) -> Vec<(Symbol, Symbol)> {
        let Some(class) = self.ty(object).class_name() else { return Vec::new() };
        if self.unit.has_method(class, method.as_str()) {
            return Vec::new();
        }
        let names = (0..).map(|n| Symbol::new(&format!("{method}__{n}")));
        names
            .take_while(|name| self.unit.has_method(class, name.as_str()))
            .map(|name| (class, name))
            .collect()
    }

    /// A method of a custom class that is not known here, as [`Self::unknown_op`].
    fn unknown_method(
        &mut self,
        object: ValueId,
        class: Symbol,
        method: Symbol,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> ValueId {
        self.unit.note_unknown(unknown_class(class.as_str()).at(span));
        let given = args.iter().chain(named).map(|given| given.value);
        let operands: Vec<ValueId> = std::iter::once(object).chain(given).collect();
        let ty = self.guessed_result();
        let op = self.emit(Symbol::new("prim::CallMethod"), &operands, &[ty], span);
        self.graph.set_attr(op, "name", Attr::Str(method.as_str().into()));
        self.only_result(op)
    }

    /// What a call is taken to give whose schema is not known: a tensor, or as many as the statement takes apart.
    fn guessed_result(&self) -> Type {
        match self.unpacking {
            0 => Type::tensor(),
            n => Type::tuple(vec![Type::tensor(); n]),
        }
    }

    fn construct(&mut self, class: Symbol, args: &[Given], named: &[Given], span: &Span) -> Result<Sugared> {
        let object = self.emit_value(Symbol::new("prim::CreateObject"), &[], Type::class(class), span);
        if self.unit.has_method(class, "__init__") {
            self.call_method_with(object, Symbol::new("__init__"), args, named, span)?;
        } else if !args.is_empty() {
            return error(span, format!("{class} takes no arguments"));
        }
        Ok(Sugared::Value(object))
    }

    fn construct_tuple(
        &mut self,
        ty: &Type,
        args: &[Given],
        named: &[Given],
        span: &Span,
    ) -> Result<Sugared> {
        let schema = self.unit.named_tuple_schema(ty);
        let (_, plan) = self.fit_any(&[&schema], args, named, span)?;
        let operands = self.emit_plan(&plan, span);
        Ok(Sugared::Value(self.emit_value(Symbol::new("prim::TupleConstruct"), &operands, ty.clone(), span)))
    }

    /// `int(x)`, `float(x)`, `str(x)`, ...
    fn call_cast(&mut self, kind: Symbol, args: &[Given], named: &[Given], span: &Span) -> Result<Sugared> {
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
            let is_container = matches!(
                self.ty(value).kind(),
                TypeKind::List(_) | TypeKind::Dict(..) | TypeKind::Str | TypeKind::Class(_)
            );
            if method == "__bool__" && is_container && named.is_empty() {
                return self.to_bool(value, span).map(Sugared::Value);
            }
        }
        self.call_builtin(Symbol::new(op), args, named, span)
    }

    fn call_special(&mut self, special: Special, call: &Call<'_>) -> Result<Sugared> {
        let (args, span, callee) = (call.args, call.span, &call.callee.span);
        match special {
            Special::Print if !call.keywords.is_empty() => {
                error(callee, "print doesn't accept any keyword arguments")
            }
            Special::Print => {
                let values = self.values(args)?;
                self.emit(Symbol::new("prim::Print"), &values, &[], callee);
                Ok(Sugared::Nothing)
            }
            Special::Len => self.call_len(call),
            Special::Range => {
                let values = self.values(args)?;
                self.range(&values, span)
            }
            Special::Enumerate => self.call_enumerate(args, call.keywords, span),
            Special::Zip => {
                let mut parts = Vec::new();
                for arg in args {
                    let value = self.sugared(arg, None)?;
                    parts.push(self.iterable(value, span)?);
                }
                if parts.is_empty() {
                    return error(span, "zip expected at least 1 arguments, got 0");
                }
                self.zipped(parts, span)
            }
            Special::IsInstance => {
                let [object, classes] = call.exactly::<2>()?;
                Ok(Sugared::Value(self.isinstance(object, classes, span)?.value))
            }
            Special::HasAttr => {
                let [object, name] = call.exactly::<2>()?;
                Ok(Sugared::Value(self.hasattr(object, name, span)?.value))
            }
            Special::Annotate => self.call_annotate(call),
            Special::GetAttr => self.call_getattr(args, span),
            Special::Uninitialized => {
                let [ty] = call.exactly::<1>()?;
                let ty = self.type_of(ty)?;
                Ok(Sugared::Value(self.emit_value(kinds::uninitialized(), &[], ty, span)))
            }
            Special::UncheckedCast => {
                let [ty, value] = call.exactly::<2>()?;
                let ty = self.type_of(ty)?;
                let value = self.expr(value, None)?;
                let is_cast = |op| self.graph.kind(op).as_str() == "prim::unchecked_cast";
                if *self.ty(value) == ty && self.graph.def_op(value).is_some_and(is_cast) {
                    return Ok(Sugared::Value(value));
                }
                Ok(Sugared::Value(self.unchecked_cast(value, ty, span)))
            }
            Special::Fork | Special::Awaitable => self.call_fork(special == Special::Awaitable, call),
            Special::Tuple => {
                let [arg] = call.exactly::<1>()?;
                let value = self.sugared(arg, None)?;
                let items = self.unpack_sugared(value, None, span)?;
                Ok(Sugared::Value(self.as_value(Sugared::Tuple(items), span)?))
            }
            Special::List => self.call_list(call),
            Special::Dict => self.call_dict(call),
            Special::Slice if !call.keywords.is_empty() => {
                error(callee, "Slice does not accept any keyword arguments")
            }
            Special::Slice => {
                let values = self.values(args)?;
                let (none, one) = (self.none(span), self.int(1, span));
                match values.as_slice() {
                    [stop] => Ok(Sugared::Slice(vec![none, *stop, one])),
                    [start, stop] => Ok(Sugared::Slice(vec![*start, *stop, one])),
                    [start, stop, step] => Ok(Sugared::Slice(vec![*start, *stop, *step])),
                    _ => error(
                        callee,
                        format!("slice accepts exactly 1, 2 or 3 arguments, got: {}", values.len()),
                    ),
                }
            }
            Special::Sorted => self.plain_builtin("aten::sorted", call),
            Special::RangeList => self.plain_builtin("prim::rangelist", call),
            Special::UnwrapOptional => self.plain_builtin("aten::_unwrap_optional", call),
            Special::ToTensor => self.plain_builtin("prim::NumToTensor", call),
            Special::Check => self.call_check(call),
            Special::LegacyTensor(dtype) => self.call_legacy(dtype, call),
            Special::IsScripting => Ok(Sugared::Value(self.bool(true, callee))),
            Special::IsTracing => Ok(Sugared::Value(self.bool(false, callee))),
            Special::ToList(tensor) => self.call_tolist(tensor, call),
            Special::TensorItem(tensor) => self.call_tensor_item(tensor, call),
        }
    }

    /// A builtin that takes values in schema order.
    fn plain_builtin(&mut self, op: &str, call: &Call<'_>) -> Result<Sugared> {
        let given: Vec<Given> = self.values(call.args)?.into_iter().map(Given::from).collect();
        let named = self.named_values(call.keywords)?;
        self.call_builtin(Symbol::new(op), &given, &named, &call.callee.span)
    }

    fn call_len(&mut self, call: &Call<'_>) -> Result<Sugared> {
        let given: Vec<Given> = self.values(call.args)?.into_iter().map(Given::from).collect();
        let named = self.named_values(call.keywords)?;
        let span = &call.callee.span;
        if let Some(object) = given.first()
            && let Some(items) = self.container_items(object.value, span)?
        {
            return Ok(Sugared::Value(self.int(items.len() as i64, span)));
        }
        if let Some(object) = given.first()
            && self.ty(object.value).class_name().is_some()
        {
            return self.call_magic(object.value, "__len__", &[], span).map(Sugared::Value);
        }
        if let [only] = given.as_slice()
            && let Some(items) = self.ty(only.value).tuple_elements()
        {
            let len = items.len() as i64;
            return Ok(Sugared::Value(self.int(len, span)));
        }
        self.call_builtin(Symbol::new("aten::len"), &given, &named, span)
    }

    fn call_enumerate(&mut self, args: &[Expr], keywords: &[Keyword], span: &Span) -> Result<Sugared> {
        let (iter, start) = match (args, keywords) {
            ([], _) => return error(span, "enumerate expected at least 1 arguments, got 0"),
            ([iter], []) => (iter, None),
            ([iter, start], []) => (iter, Some(start)),
            ([iter], [k]) if k.name.name == "start" => (iter, Some(&k.value)),
            ([_], [k]) => {
                return error(span, format!("enumerate expected kwarg name 'start', got '{}'", k.name.name));
            }
            _ => {
                return error(span, format!("enumerate expected at most 2 arguments, got {}", args.len()));
            }
        };
        let start = match start {
            Some(expr) => self.expr(expr, None)?,
            None => self.int(0, span),
        };
        let value = self.sugared(iter, None)?;
        let inner = self.iterable(value, span)?;
        self.range(&[start], span)?;
        Ok(Sugared::Iterable(Box::new(super::sugared::Iterable::Enumerate(start, Box::new(inner)))))
    }

    fn call_annotate(&mut self, call: &Call<'_>) -> Result<Sugared> {
        let [ty, value] = call.exactly::<2>()?;
        let ty = self.type_of(ty)?;
        let span = call.span;
        let value = self.expr(value, Some(&ty))?;
        let value = self.convert(value, &ty, true, span)?;
        if let Err(why) = self.why_not(self.ty(value), &ty) {
            return error(
                call.args_span(),
                format!(
                    "expected an expression of type {} but found {}\n{why}",
                    ty.repr(),
                    self.ty(value).repr()
                ),
            );
        }
        let is_none = *self.ty(value) == Type::none();
        if is_none && matches!(ty.kind(), TypeKind::Optional(_) | TypeKind::Union(_)) {
            // A None that is known to be optional.
            return Ok(Sugared::Value(self.constant(ty, None, span)));
        }
        Ok(Sugared::Value(value))
    }

    fn call_getattr(&mut self, args: &[Expr], span: &Span) -> Result<Sugared> {
        let (object, name, default) = match args {
            [object, name] => (object, name, None),
            [object, name, default] => (object, name, Some(default)),
            _ => {
                return error(
                    span,
                    format!(
                        "getattr expected to have number of arguments between 2 and 3 but found {}",
                        args.len()
                    ),
                );
            }
        };
        let ExprKind::Str(name) = &name.kind else {
            return error(span, "getattr's second argument must be a string literal");
        };
        let target = self.sugared(object, None)?;
        if default.is_some() {
            self.check_has_attributes(&target, span)?;
        }
        match default {
            Some(default) if !self.has_attribute(&target, name) => self.sugared(default, None),
            _ => self.attribute(target, name, span),
        }
    }

    /// `tensor.tolist()`: the place says what it gives.
    fn call_tolist(&mut self, tensor: ValueId, call: &Call<'_>) -> Result<Sugared> {
        let Some(hint) = call.hint else {
            return error(call.span, "Expected type hint for result of tolist()");
        };
        let mut element = hint;
        let mut dims = 0;
        while let TypeKind::List(inner) = element.kind() {
            element = inner;
            dims += 1;
        }
        let code = match element.kind() {
            TypeKind::Int => 0,
            TypeKind::Float => 1,
            TypeKind::Bool => 2,
            TypeKind::Complex => 3,
            _ => {
                return Err(Diagnostic::compile(format!(
                    "{} is not one of the supported element types for tolist: int, float, complex, bool",
                    element.repr()
                )));
            }
        };
        let (dims, code) = (self.int(dims, call.span), self.int(code, call.span));
        let kind = Symbol::new("prim::tolist");
        Ok(Sugared::Value(self.emit_value(kind, &[tensor, dims, code], hint.clone(), call.span)))
    }

    /// `tensor.__getitem__(index)`
    fn call_tensor_item(&mut self, tensor: ValueId, call: &Call<'_>) -> Result<Sugared> {
        let (values, span) = (self.values(call.args)?, &call.callee.span);
        let [index] = values.as_slice() else {
            let message = format!("__getitem__ expected exactly 1 arguments, got {}", values.len());
            return error(call.span, message);
        };
        let ty = self.ty(*index);
        if !self.is_subtype(ty, &Type::optional(Type::tensor())) {
            // PyTorch does not say where.
            return Err(Diagnostic::compile(format!(
                "Expected a list element that subtypes 'Optional[Tensor]' but got an element of type '{}'",
                ty.repr()
            )));
        }
        let list = self.index_list(&[Some(*index)], span)?;
        self.builtin(Symbol::new("aten::index"), &[tensor, list], span).map(Sugared::Value)
    }

    /// `fork(f, args...)`: a block that calls `f`, run beside the program.
    fn call_fork(&mut self, is_await: bool, call: &Call<'_>) -> Result<Sugared> {
        let span = call.span;
        let Some((callee, rest)) = call.args.split_first() else {
            return error(
                span,
                format!(
                    "Expected at least one argument to {}()",
                    if is_await { "awaitable" } else { "fork" }
                ),
            );
        };
        let target = self.sugared(callee, None)?;
        let given: Vec<Given> = self.values(rest)?.into_iter().map(Given::from).collect();
        let named = self.named_values(call.keywords)?;
        let op = self.emit(if is_await { kinds::awaitable() } else { kinds::fork() }, &[], &[], span);
        let block = self.graph.add_block(op);
        let outer = (self.declared_return.take(), self.merged_return.take());
        let loops = std::mem::take(&mut self.loops);
        let mut result = None;
        let holder = &mut result;
        self.in_block(block, |e| {
            if let Sugared::Closure(def) = target {
                e.statements(&def.body)?;
                *holder = e.merged_return.take();
                return e.end_closure(block, holder.clone(), span);
            }
            let value = e.call(target, &given, &named, span)?;
            let value = e.as_value(value, span)?;
            e.graph.add_block_result(block, value);
            *holder = Some(e.ty(value).clone());
            Ok(())
        })?;
        (self.declared_return, self.merged_return) = outer;
        self.loops = loops;
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
}

/// A call as it stands in the text.
pub(super) struct Call<'a> {
    pub(super) callee: &'a Expr,
    pub(super) args: &'a [Expr],
    pub(super) keywords: &'a [Keyword],
    pub(super) span: &'a Span,
    args_span: &'a Span,
    hint: Option<&'a Type>,
}

impl<'a> Call<'a> {
    /// The arguments, checked for their number.
    fn exactly<const N: usize>(&self) -> Result<&'a [Expr; N]> {
        let name = match &self.callee.kind {
            ExprKind::Name(name) => name.as_str(),
            ExprKind::Attribute { name, .. } => name.name.as_str(),
            _ => "the function",
        };
        match self.args.try_into() {
            Ok(_) if !self.keywords.is_empty() => {
                error(self.span, format!("{name} takes no keyword arguments"))
            }
            Ok(args) => Ok(args),
            Err(_) => error(
                self.span,
                format!("{name} expected exactly {N} arguments but found {}", self.args.len()),
            ),
        }
    }

    fn args_span(&self) -> &Span {
        self.args_span
    }
}
