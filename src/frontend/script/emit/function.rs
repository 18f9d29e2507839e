//! Functions and methods: parameters, body, result.

use super::{Compiler, Emitter, Sugared, error};
use crate::diag::{Result, Span};
use crate::dialects::prim::constant;
use crate::dialects::{Node, Registry, Run, resolve};
use crate::eval;
use crate::frontend::script::ast::{Def, Expr, ExprKind, Number, UnaryOp};
use crate::frontend::script::{cleanup, exits, kinds, lift, ssa};
use crate::ir::schema::{Argument, Schema};
use crate::ir::{Attr, BlockId, ClassKind, Function, Graph, Symbol, TensorType, Type, TypeKind, ValueId};
use crate::value::Value;
use hashbrown::HashMap;

impl Compiler {
    /// Compiles a function. `self_type` is the type of a method's first parameter.
    pub(super) fn compile_function(
        &mut self,
        name: Symbol,
        def: &Def,
        self_type: Option<Type>,
    ) -> Result<Function> {
        let mut emitter = Emitter::new(self, def.name.name.clone());
        let arguments = emitter.parameters(def, self_type)?;
        emitter.declared_return = match &def.decl.returns {
            Some(expr) => Some(emitter.type_of(expr)?),
            None => None,
        };
        emitter.statements(&def.body)?;
        let returns = emitter.finish(&def.span)?;
        let Emitter { mut graph, unit, .. } = emitter;
        ssa::convert(&mut graph, &unit.module)?;
        exits::transform(&mut graph, &unit.module)?;
        cleanup::tidy(&mut graph, &unit.registry);
        lift::closures(&mut graph);
        let schema = Schema::new(name, arguments, vec![Argument::new("", returns)]);
        Ok(Function { name, schema, graph, span: Some(def.name.span.clone()) })
    }
}

impl Emitter<'_> {
    fn parameters(&mut self, def: &Def, self_type: Option<Type>) -> Result<Vec<Argument>> {
        let state = match &self_type {
            Some(ty) if def.name.name == "__setstate__" => self.kept_state(def, ty)?,
            _ => None,
        };
        let mut types = Vec::with_capacity(def.decl.params.len());
        for (n, param) in def.decl.params.iter().enumerate() {
            types.push(match (&param.annotation, &self_type) {
                (_, Some(ty)) if n == 0 => ty.clone(),
                (Some(annotation), _) => self.type_of(annotation)?,
                (None, _) if param.default.is_some() && self.unit.is_source() => {
                    let span = param
                        .default
                        .as_ref()
                        .map_or(param.name.span.clone(), |d| param.name.span.to(&d.span));
                    return error(
                        &span,
                        "Keyword arguments with defaults need to be type-hinted (TorchScript C++ frontend)",
                    );
                }
                (None, _) => state.clone().filter(|_| n == 1).unwrap_or_else(inferred_tensor),
            });
        }
        let defaults = self.defaults(def, &types)?;
        let mut arguments = Vec::with_capacity(def.decl.params.len());
        for ((param, ty), default) in def.decl.params.iter().zip(types).zip(defaults) {
            let mut argument = Argument::new(param.name.name.as_str(), ty.clone());
            argument.fixed_length = param.annotation.as_ref().and_then(broadcast_length);
            argument.keyword_only = param.keyword_only;
            argument.default = default;
            let value = self.graph.add_input(ty);
            self.bind_parameter(&param.name.name, value, &param.name.span);
            arguments.push(argument);
        }
        Ok(arguments)
    }

    /// What `__setstate__` of a module takes where it does not say: what `__getstate__` gives.
    fn kept_state(&mut self, def: &Def, owner: &Type) -> Result<Option<Type>> {
        let class = owner.class_name().and_then(|name| self.unit.module.class(name));
        let Some(class) = class.filter(|class| class.kind == ClassKind::Module) else { return Ok(None) };
        let (name, knows) = (class.name, class.methods.contains_key(&Symbol::new("__getstate__")));
        let params = &def.decl.params;
        if params.get(1).is_some_and(|state| state.annotation.is_some()) {
            return Ok(None);
        }
        if params.len() != 2 {
            let message = format!("Expected 2 arguments for `__setstate__`, got: {}", params.len());
            return error(&def.span, message);
        }
        if !knows {
            return error(
                &def.span,
                "`__setstate__` defined but not `__getstate__`. You must have both defined on a ScriptModule to customize \
                 serialization.\nDid you forget to use `@torch.jit.export`?",
            );
        }
        let schema = self.unit.method_schema(name, "__getstate__", &self.name.clone(), &def.name.span)?;
        Ok(schema.returns.first().map(|state| state.ty.clone()))
    }

    /// Default values, which PyTorch compiles as a function of their own.
    fn defaults(&mut self, def: &Def, types: &[Type]) -> Result<Vec<Option<Attr>>> {
        let mut values = Vec::with_capacity(def.decl.params.len());
        let (mut wanted, mut found, mut fit) = (Vec::new(), Vec::new(), true);
        for (param, ty) in def.decl.params.iter().zip(types) {
            let value = match &param.default {
                Some(expr) => Some(self.constant_expr(expr)?),
                None => None,
            };
            if let Some(value) = &value {
                fit &= fits(value, ty);
                wanted.push(ty.clone());
                found.push(type_of_constant(value));
            }
            values.push(value);
        }
        if fit {
            return Ok(values);
        }
        let failure: Result<()> = error(
            &def.decl.span,
            format!(
                "Return value was annotated as having type {} but is actually of type {}",
                Type::tuple(wanted).repr(),
                Type::tuple(found).repr()
            ),
        );
        failure.map_err(|d| d.frame("defaults", None).frame(self.name.clone(), Some(def.span.clone())))?;
        Ok(values)
    }

    /// The value of an expression of literals.
    pub(super) fn constant_expr(&mut self, expr: &Expr) -> Result<Attr> {
        let span = &expr.span;
        Ok(match &expr.kind {
            ExprKind::Number(Number::Int(x)) => Attr::Int(*x),
            ExprKind::Number(Number::Float(x)) => Attr::Float(*x),
            ExprKind::Number(Number::Imaginary(x)) => Attr::Complex(num_complex::Complex64::new(0.0, *x)),
            ExprKind::Bool(x) => Attr::Bool(*x),
            ExprKind::Str(text) => Attr::Str(text.as_str().into()),
            ExprKind::None => Attr::None,
            ExprKind::Unary { op: UnaryOp::Neg, operand } => match self.constant_expr(operand)? {
                Attr::Int(x) => Attr::Int(x.wrapping_neg()),
                Attr::Float(x) => Attr::Float(-x),
                other => return error(span, format!("cannot negate {other:?}")),
            },
            ExprKind::List(items) => Attr::List(self.constant_exprs(items)?.into()),
            ExprKind::Tuple(items) => Attr::Tuple(self.constant_exprs(items)?.into()),
            ExprKind::Dict { keys, values } => {
                let keys = self.constant_exprs(keys)?;
                let values = self.constant_exprs(values)?;
                Attr::Dict(keys.into_iter().zip(values).collect())
            }
            ExprKind::Call { callee, args, .. } => {
                // `annotate(T, x)` and `torch.device("cpu")` stand in defaults of archives.
                match (super::types::dotted(callee).as_deref(), args.as_slice()) {
                    (Some("annotate" | "torch.jit.annotate"), [_, value]) => self.constant_expr(value)?,
                    (Some("torch.device"), [Expr { kind: ExprKind::Str(text), .. }]) => match text.parse() {
                        Ok(device) => Attr::Device(device),
                        Err(reason) => return error(span, reason),
                    },
                    (Some("complex"), [re, im]) => match (self.constant_expr(re)?, self.constant_expr(im)?) {
                        (Attr::Float(re), Attr::Float(im)) => {
                            Attr::Complex(num_complex::Complex64::new(re, im))
                        }
                        _ => return error(span, "complex needs two floats here"),
                    },
                    _ => return self.computed(expr),
                }
            }
            _ => return self.computed(expr),
        })
    }

    /// The value of an expression that is computed while compiling, by ops that only compute.
    fn computed(&mut self, expr: &Expr) -> Result<Attr> {
        let scratch = self.emit(kinds::fork(), &[], &[], &expr.span);
        let block = self.graph.add_block(scratch);
        let mut found = None;
        let holder = &mut found;
        let emitted = self.in_block(block, |e| {
            *holder = match e.sugared(expr, None)? {
                Sugared::Constant(_, attr) => Some(attr),
                other => {
                    let value = e.as_value(other, &expr.span)?;
                    evaluate(&e.graph, &e.unit.registry, block, value)
                }
            };
            Ok(())
        });
        self.graph.erase(scratch);
        emitted?;
        match found {
            Some(attr) => Ok(attr),
            None => error(&expr.span, "a default value must be a constant"),
        }
    }

    fn constant_exprs(&mut self, items: &[Expr]) -> Result<Vec<Attr>> {
        items.iter().map(|item| self.constant_expr(item)).collect()
    }

    /// Adds the return that is left out at the end, and gives the result type.
    fn finish(&mut self, span: &Span) -> Result<Type> {
        if !self.exiting.contains(&self.graph.root()) {
            if self.declared_return.as_ref().is_some_and(|ty| *ty != Type::none()) {
                return error(
                    span,
                    "Function was not annotated as having type None, but does not return along all paths",
                );
            }
            let none = self.none(span);
            if let Some(earlier) = &self.merged_return {
                match self.unify(earlier, &Type::none(), false) {
                    Some(merged) => self.merged_return = Some(merged),
                    None => {
                        return error(
                            span,
                            format!(
                                "Previous return statement returned a value of type {} but this return statement returns a value of type NoneType",
                                earlier.repr()
                            ),
                        );
                    }
                }
            } else {
                self.merged_return = Some(Type::none());
            }
            self.emit(kinds::return_(), &[none], &[], span);
        }
        let ty =
            self.declared_return.clone().or_else(|| self.merged_return.clone()).unwrap_or_else(Type::none);
        // A function that always raises still has a result.
        let placeholder = self.graph.create(kinds::uninitialized(), &[], std::slice::from_ref(&ty));
        let root = self.graph.root();
        self.graph.prepend(root, placeholder);
        if let Some(value) = self.graph.result(placeholder, 0) {
            self.graph.set_block_results(root, &[value]);
        }
        Ok(ty)
    }
}

/// Runs the ops of a block without control flow and gives one value as a constant; None if that cannot be done
/// while compiling.
fn evaluate(graph: &Graph, registry: &Registry, block: BlockId, wanted: ValueId) -> Option<Attr> {
    let run = Run::default();
    let mut values: HashMap<ValueId, Value> = HashMap::new();
    for op in graph.block_ops(block) {
        if !graph.nested_blocks(op).is_empty() {
            return None;
        }
        let operands =
            graph.operands(op).iter().map(|v| values.get(v).cloned()).collect::<Option<Vec<_>>>()?;
        let results = graph.results(op);
        let types: Vec<Type> = results.iter().map(|v| graph.ty(*v).clone()).collect();
        let made: Vec<Value> = if graph.kind(op) == kinds::constant() {
            vec![constant::value(graph.attrs(op), types.first()).ok()?]
        } else {
            let row = resolve(registry, graph, op).ok()?;
            let node = Node { attrs: graph.attrs(op), result_types: &types };
            eval::call(&row, &operands, node, &run).ok()?.into_iter().collect()
        };
        values.extend(results.iter().copied().zip(made));
    }
    constant::attr(values.get(&wanted)?)
}

/// The type of a parameter without annotation.
fn inferred_tensor() -> Type {
    Type::new(TypeKind::Tensor(TensorType { inferred: true, ..TensorType::default() }))
}

/// The type that a constant has by itself.
fn type_of_constant(value: &Attr) -> Type {
    let first = |items: &[Attr]| items.first().map_or_else(Type::tensor, type_of_constant);
    match value {
        Attr::Int(_) => Type::int(),
        Attr::Float(_) => Type::float(),
        Attr::Complex(_) => Type::complex(),
        Attr::Bool(_) => Type::bool(),
        Attr::Str(_) => Type::str(),
        Attr::None => Type::none(),
        Attr::Device(_) => Type::device(),
        Attr::List(items) => Type::list(first(items)),
        Attr::Tuple(items) => Type::tuple(items.iter().map(type_of_constant).collect::<Vec<_>>()),
        Attr::Dict(entries) => match entries.first() {
            Some((key, value)) => Type::dict(type_of_constant(key), type_of_constant(value)),
            None => Type::dict(Type::str(), Type::tensor()),
        },
        _ => Type::tensor(),
    }
}

/// Whether a literal may be the default of a parameter of a type.
fn fits(value: &Attr, ty: &Type) -> bool {
    match (value, ty.kind()) {
        (_, TypeKind::Any) => true,
        (Attr::None, TypeKind::Optional(_) | TypeKind::None) => true,
        (value, TypeKind::Optional(inner)) => fits(value, inner),
        (value, TypeKind::Union(members)) => members.iter().any(|m| fits(value, m)),
        (Attr::Int(_), TypeKind::Int | TypeKind::Number) => true,
        (Attr::Float(_), TypeKind::Float | TypeKind::Number) => true,
        (Attr::Complex(_), TypeKind::Complex | TypeKind::Number) => true,
        (Attr::Bool(_), TypeKind::Bool) => true,
        (Attr::Str(_), TypeKind::Str | TypeKind::Device) => true,
        (Attr::Device(_), TypeKind::Device) => true,
        (Attr::List(items), TypeKind::List(element)) => items.iter().all(|item| fits(item, element)),
        (Attr::Tuple(items), TypeKind::Tuple(types, _)) => {
            items.len() == types.len() && items.iter().zip(types.iter()).all(|(item, ty)| fits(item, ty))
        }
        (Attr::Tuple(items), TypeKind::List(element)) => items.iter().all(|item| fits(item, element)),
        (Attr::Dict(entries), TypeKind::Dict(key, value)) => {
            entries.iter().all(|(k, v)| fits(k, key) && fits(v, value))
        }
        (Attr::Enum(_), TypeKind::Enum(..)) => true,
        (Attr::Tensor(_), TypeKind::Tensor(_)) => true,
        _ => false,
    }
}

/// The n of `BroadcastingListn[int]`, also inside an `Optional`: one number stands for `n` of it.
fn broadcast_length(annotation: &Expr) -> Option<usize> {
    let ExprKind::Subscript { value, indices, .. } = &annotation.kind else { return None };
    let ExprKind::Name(name) = &value.kind else { return None };
    match (name.strip_prefix("BroadcastingList"), indices.as_slice()) {
        (Some(n), _) => n.parse().ok(),
        (None, [inner]) if name == "Optional" => broadcast_length(inner),
        _ => None,
    }
}
