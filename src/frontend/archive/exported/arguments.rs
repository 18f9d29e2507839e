//! The arguments of a node as its operator's schema has them: which overload takes them, and what numbers become where it
//! wants tensors. Knows no operators but those that have another for a number in front.

use super::nodes::Nodes;
use super::schema::{Argument, NamedArgument};
use crate::diag::{Diagnostic, Result};
use crate::dialects::Op;
use crate::ir::{Argument as Formal, Attr, Schema, Symbol, Type, TypeKind, ValueId};
use crate::resources::memory;
use crate::tensor::{DType, Rank, common_dtype};

/// A row and a value for each of its arguments that are given.
type Call = (Op, Vec<Option<ValueId>>);

/// Operators of two tensors, and those that give the same of the second one and a number for the first.
const REVERSED: &[(&str, &str)] =
    &[("aten::add", "aten::add"), ("aten::mul", "aten::mul"), ("aten::sub", "aten::rsub")];

impl Nodes<'_> {
    /// The row of an operator and a value for each of its arguments that are given. A number where the overload wants a
    /// tensor is taken by the overload that wants a number, as its dtype does not count as a tensor's does.
    pub(super) fn choose(&mut self, name: Symbol, overload: &str, inputs: &[NamedArgument]) -> Result<Call> {
        let Some(exact) = self.emitter.row(name, overload) else {
            return Err(self.emitter.registry.unknown(name));
        };
        let schema = exact.schema()?;
        let is_number = |input: &NamedArgument| {
            let formal = schema.arguments.iter().find(|formal| formal.name == *input.name);
            formal.is_some_and(|formal| formal.ty.is_tensor()) && number(&input.arg)
        };
        if !inputs.iter().any(is_number) {
            let given = self.given(schema, inputs, None)?;
            return Ok((exact.clone(), given));
        }
        if let Some(other) = self.for_numbers(name, inputs) {
            let given = self.given(other.schema()?, inputs, None)?;
            return Ok((other, given));
        }
        if let Some(call) = self.reversed(name, inputs)? {
            return Ok(call);
        }
        let given = self.given(schema, inputs, self.common(inputs))?;
        Ok((exact.clone(), given))
    }

    /// The overload that takes numbers where numbers are given, and tensors where tensors are.
    fn for_numbers(&self, name: Symbol, inputs: &[NamedArgument]) -> Option<Op> {
        let fits = |row: &&Op| {
            let Ok(schema) = row.schema() else { return false };
            inputs.iter().all(|input| {
                let formal = schema.arguments.iter().find(|formal| formal.name == *input.name);
                let concerned = number(&input.arg) || matches!(input.arg, Argument::Tensor(_));
                formal.is_some_and(|formal| !concerned || formal.ty.is_tensor() != number(&input.arg))
            })
        };
        self.emitter.registry.overloads(name).iter().find(fits).cloned()
    }

    /// A number and a tensor, in this order, as an operator that takes them in the other one.
    fn reversed(&mut self, name: Symbol, inputs: &[NamedArgument]) -> Result<Option<Call>> {
        let named = |name: &str| inputs.iter().find(|input| input.name == name);
        let (Some(first), Some(second)) = (named("self"), named("other")) else { return Ok(None) };
        let of_name = REVERSED.iter().find(|(of, _)| name == Symbol::new(of));
        // `alpha` scales the second operand, which a sum has first now.
        let scaled = inputs.len() > 2 && name != Symbol::new("aten::sub");
        let Some((_, reversed)) = of_name.filter(|_| number(&first.arg) && !scaled) else { return Ok(None) };
        let row = self.emitter.row(Symbol::new(reversed), "Scalar");
        let row = row.ok_or_else(|| Diagnostic::internal(format!("{reversed} has no row for numbers")))?;
        let schema = row.schema()?;
        let mut given = memory::vec_reserved(schema.arguments.len())?;
        for formal in &schema.arguments {
            let input = match formal.name.as_str() {
                "self" => Some(second),
                "other" => Some(first),
                other => named(other),
            };
            given.push(input.map(|input| self.operand(formal, &input.arg, None)).transpose()?);
        }
        Ok(Some((row, given)))
    }

    /// The dtype that numbers have beside the tensors of a call, where it is known: that of all of them together, so that it
    /// does not count for more as a tensor.
    fn common(&self, inputs: &[NamedArgument]) -> Option<DType> {
        let mut operands = memory::vec_reserved(inputs.len()).ok()?;
        for input in inputs {
            operands.push(match &input.arg {
                Argument::Tensor(tensor) => *self.tensors.get(&tensor.name)?,
                Argument::Int(_) | Argument::SymInt(_) => (DType::I64, Rank::Number),
                Argument::Float(_) | Argument::SymFloat(_) => (DType::F32, Rank::Number),
                Argument::Bool(_) | Argument::SymBool(_) => (DType::Bool, Rank::Number),
                Argument::Complex(_) => (DType::C64, Rank::Number),
                _ => continue,
            });
        }
        common_dtype(operands)
    }

    /// A value for each argument of a schema that is given. Numbers become tensors of a dtype where tensors are wanted.
    fn given(
        &mut self,
        schema: &Schema,
        inputs: &[NamedArgument],
        numbers: Option<DType>,
    ) -> Result<Vec<Option<ValueId>>> {
        let unknown =
            inputs.iter().find(|input| schema.arguments.iter().all(|formal| formal.name != *input.name));
        if let Some(input) = unknown {
            return Err(Diagnostic::input(format!("{} has no argument `{}`", schema.name, input.name)));
        }
        let mut given = memory::vec_reserved(schema.arguments.len())?;
        for formal in &schema.arguments {
            let input = inputs.iter().find(|input| formal.name == *input.name);
            given.push(input.map(|input| self.operand(formal, &input.arg, numbers)).transpose()?);
        }
        Ok(given)
    }

    /// An argument as a value of the type that the schema wants.
    fn operand(&mut self, formal: &Formal, arg: &Argument, numbers: Option<DType>) -> Result<ValueId> {
        let wanted = formal.ty.without_none();
        match (wanted.kind(), arg) {
            (TypeKind::Float, Argument::Int(n)) => {
                self.emitter.constant(Type::float(), Attr::Float(*n as f64))
            }
            (TypeKind::List(element), Argument::Ints(ns)) if *element == Type::float() => {
                let numbers = ns.iter().map(|n| *n as f64).collect();
                self.emitter.constant(wanted.clone(), Attr::Floats(numbers))
            }
            (TypeKind::List(_), Argument::Ints(ns)) if ns.is_empty() => {
                self.emitter.value("prim::ListConstruct", &[], wanted.clone())
            }
            (_, arg) if wanted.is_tensor() && number(arg) => {
                let value = self.free(arg)?;
                let tensor = self.by_types("prim::NumToTensor", &[value], None)?;
                let Some(dtype) = numbers else { return Ok(tensor) };
                let code = self.emitter.constant(Type::int(), Attr::Int(dtype.code()))?;
                let no = self.emitter.constant(Type::bool(), Attr::Bool(false))?;
                let row = self.emitter.row(Symbol::new("aten::to"), "dtype");
                let row = row.ok_or_else(|| Diagnostic::internal("aten::to has no row for dtypes"))?;
                let results = self.emitter.call(row.schema()?, vec![tensor, code, no, no])?;
                results.first().copied().ok_or_else(|| Diagnostic::internal("a cast without a result"))
            }
            _ => self.free(arg),
        }
    }
}

/// Whether an argument is a number.
fn number(arg: &Argument) -> bool {
    use Argument as A;
    matches!(
        arg,
        A::Int(_) | A::Float(_) | A::Bool(_) | A::Complex(_) | A::SymInt(_) | A::SymFloat(_) | A::SymBool(_)
    )
}
