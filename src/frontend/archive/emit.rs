//! Ops of graphs that are built from files without source code: what an operator takes and gives is found in its schema.
//! A value of which too little is known is cast to what the operator wants.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Op, Registry};
use crate::ir::unify::{TypeEnv, match_type_variables, substitute};
use crate::ir::{
    Argument, Attr, BlockId, Graph, Module, OpId, Schema, Symbol, Type, TypeKind, ValueId, is_subtype_of,
};

/// A graph in the making.
pub(super) struct Emitter<'a> {
    pub(super) registry: &'a Registry,
    pub(super) module: &'a Module,
    pub(super) graph: Graph,
    pub(super) block: BlockId,
}

impl Emitter<'_> {
    pub(super) fn emit(&mut self, kind: &str, operands: &[ValueId], results: &[Type]) -> OpId {
        self.graph.emit(self.block, Symbol::new(kind), operands, results)
    }

    /// An op with one result.
    pub(super) fn value(&mut self, kind: &str, operands: &[ValueId], ty: Type) -> Result<ValueId> {
        let op = self.emit(kind, operands, &[ty]);
        self.graph.result(op, 0).ok_or_else(|| Diagnostic::internal("an op without its result"))
    }

    pub(super) fn constant(&mut self, ty: Type, value: Attr) -> Result<ValueId> {
        let is_none = matches!(value, Attr::None);
        let ty = if is_none { Type::none() } else { ty };
        let result = self.value("prim::Constant", &[], ty)?;
        if let (false, Some(op)) = (is_none, self.graph.def_op(result)) {
            self.graph.set_attr(op, "value", value);
        }
        Ok(result)
    }

    /// A value as one of a type: itself if it is one, else a cast of it.
    pub(super) fn cast(&mut self, value: ValueId, ty: &Type) -> Result<ValueId> {
        let own = self.graph.ty(value);
        if own == ty || is_subtype_of(own, ty, self.module) {
            return Ok(value);
        }
        self.value("prim::unchecked_cast", &[value], ty.clone())
    }

    /// The row of an operator, if there is one.
    pub(super) fn row(&self, name: Symbol, overload: &str) -> Option<Op> {
        let overloads = self.registry.overloads(name);
        let named = |op: &&Op| op.schema().is_ok_and(|s| s.overload == *overload);
        overloads.iter().find(named).cloned()
    }

    /// A call of an operator by its schema, with what the instructions give; the rest are defaults, but for arguments
    /// that results are written to, which are always given, as the last.
    pub(super) fn call(&mut self, schema: &Schema, given: Vec<ValueId>) -> Result<Vec<ValueId>> {
        let outs = schema.arguments.iter().filter(|a| a.is_out).count();
        let plain = given.len().saturating_sub(outs);
        let place = |n: usize| match n < plain {
            true => Some(n),
            false => n.checked_sub(schema.arguments.len() - outs).map(|k| plain + k),
        };
        let chosen: Vec<Option<ValueId>> =
            (0..schema.arguments.len()).map(|n| place(n).and_then(|at| given.get(at)).copied()).collect();
        let rest = match given.get(schema.arguments.len()..) {
            Some(rest) if schema.is_vararg => rest,
            Some([_, ..]) => {
                return Err(Diagnostic::input(format!(
                    "{} gets {} arguments, and takes {}",
                    schema.name,
                    given.len(),
                    schema.arguments.len()
                )));
            }
            _ => &[],
        };
        self.call_with(schema, &chosen, rest)
    }

    /// A call of an operator by its schema, with a value for each of its arguments that are given, and those after them.
    pub(super) fn call_with(
        &mut self,
        schema: &Schema,
        given: &[Option<ValueId>],
        rest: &[ValueId],
    ) -> Result<Vec<ValueId>> {
        let mut operands = Vec::with_capacity(schema.arguments.len());
        let mut variables = TypeEnv::new();
        for (n, formal) in schema.arguments.iter().enumerate() {
            let value = match (given.get(n).copied().flatten(), &formal.default) {
                (Some(value), _) => value,
                (None, Some(default)) => self.default(formal, default)?,
                (None, None) => {
                    return Err(Diagnostic::input(format!(
                        "{} lacks its argument `{}`",
                        schema.name, formal.name
                    )));
                }
            };
            operands.push(self.fit(formal, value, &mut variables)?);
        }
        operands.extend(rest);
        let result = |r: &Argument| substitute(&r.ty, &variables).unwrap_or_else(Type::any);
        let types: Vec<Type> = schema.returns.iter().map(result).collect();
        let op = self.graph.emit(self.block, schema.name, &operands, &types);
        Ok(self.graph.results(op).to_vec())
    }

    /// An operand of the type that an argument has.
    fn fit(&mut self, formal: &Argument, value: ValueId, variables: &mut TypeEnv) -> Result<ValueId> {
        let own = self.graph.ty(value).clone();
        if match_type_variables(&formal.ty, &own, variables, self.module).is_err() {
            // Nothing is known of the parts.
            any_variables(&formal.ty, variables);
        }
        match substitute(&formal.ty, variables) {
            Some(wanted) => self.cast(value, &wanted),
            None => Ok(value),
        }
    }

    fn default(&mut self, formal: &Argument, default: &Attr) -> Result<ValueId> {
        let inner = match formal.ty.kind() {
            TypeKind::Optional(inner) => inner.clone(),
            _ => formal.ty.clone(),
        };
        let ty = match default {
            Attr::Int(_) => Type::int(),
            Attr::Float(_) => Type::float(),
            Attr::Complex(_) => Type::complex(),
            Attr::Bool(_) => Type::bool(),
            Attr::Str(_) => Type::str(),
            Attr::Device(_) => Type::device(),
            _ => inner,
        };
        let value = match (default, ty.kind(), formal.fixed_length) {
            // One int stands for all of a list.
            (Attr::Int(one), _, Some(count)) if matches!(formal.ty.kind(), TypeKind::List(_)) => {
                return self.constant(formal.ty.clone(), Attr::Ints(vec![*one; count].into()));
            }
            _ => default.clone(),
        };
        self.constant(ty, value)
    }
}

/// Binds what is still free in a type to anything.
fn any_variables(ty: &Type, variables: &mut TypeEnv) {
    if let TypeKind::Var(name) = ty.kind() {
        variables.entry(*name).or_insert_with(Type::any);
    }
    ty.contained().into_iter().for_each(|inner| any_variables(inner, variables));
}
