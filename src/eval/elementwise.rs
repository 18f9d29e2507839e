//! Runs elementwise ops: promotion by the row, broadcasting, the row's scalar program over tiles.
//!
//! The program for a combination of dtypes is built once and kept. In-place and `out` forms, explicit or
//! derived, are known from the alias annotations of the schema.

use super::tile::{Input, run_in_place, run_walk};
use crate::diag::{Diagnostic, Result};
use crate::dialects::scalar::{Program, Static, Sv};
use crate::dialects::shapes::layouts::{ordered_walk, replaces_tensor};
use crate::dialects::{Op, OpDef, Order, Promote};
use crate::ir::{Argument, TypeKind};
use crate::tensor::overlap::refuse_partial_overlap;
use crate::tensor::pointwise::Walk;
use crate::tensor::{DType, Layout, Rank, Scalar, Tensor, check_fill, check_promotions, promote_types};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::RwLock;
use smallvec::SmallVec;
use std::sync::{Arc, LazyLock};

/// Runs an elementwise op with a scalar meaning on its arguments (schema order, defaults filled in) and gives
/// its result; the in-place and `out` forms write it and give the tensor written.
pub fn elementwise(op: &Op, values: &[Value]) -> Result<Tensor> {
    if let Some(check) = op.def().check {
        check(values)?;
    }
    let call = Call::new(op, values)?;
    call.refuse_overlap()?;
    let compiled = compile_cached(op, &call).or_else(|refused| {
        // Kernels name themselves in what they refuse; PyTorch comes to them after sizes are known to fit, and the result what is
        // written.
        if refused.report().message.starts_with('"') {
            call.walk(op)?;
            call.check_written(op)?;
        }
        Err(refused)
    })?;
    let walk = call.walk(op)?;
    if let Target::InPlace(target) = call.target {
        let result = compiled.program.dtype(compiled.output);
        op.def().inplace_rule.check(op.name().as_str(), result, target.dtype())?;
    }
    check_numbers(op, values, compiled.common)?;
    if let Target::InPlace(target) = call.target
        && run_in_place(&compiled.program, compiled.output, &call.inputs, &walk, target)?
    {
        return Ok(target.clone());
    }
    let results = run_walk(&compiled.program, &[compiled.output], &call.inputs, &walk)?;
    let result =
        results.into_iter().next().ok_or_else(|| Diagnostic::internal("a program without result"))?;
    call.target.finish(op, result)
}

/// Writes a result where the form of the op demands: into the first argument (in place), into the `out`
/// argument, or nowhere. Gives the tensor that the call returns. For ops with one tensor result.
pub fn write_back(op: &Op, values: &[Value], result: Tensor) -> Result<Tensor> {
    Target::of(&op.schema()?.arguments, values)?.finish(op, result)
}

/// Where the result of a call goes.
#[derive(Clone, Copy)]
enum Target<'a> {
    New,
    InPlace(&'a Tensor),
    Out(&'a Tensor),
}

impl<'a> Target<'a> {
    fn of(arguments: &[Argument], values: &'a [Value]) -> Result<Target<'a>> {
        let written = |a: &Argument| a.alias.as_ref().is_some_and(|m| m.is_write);
        match (arguments, values) {
            ([.., last], [.., value]) if is_out(last) => Ok(Target::Out(value.to_tensor()?)),
            ([first, ..], [value, ..]) if written(first) => Ok(Target::InPlace(value.to_tensor()?)),
            _ => Ok(Target::New),
        }
    }

    fn finish(self, op: &Op, result: Tensor) -> Result<Tensor> {
        let target = match self {
            Target::New => return Ok(result),
            Target::InPlace(target) | Target::Out(target) => target,
        };
        let rule = if matches!(self, Target::Out(_)) { op.def().out_rule } else { op.def().inplace_rule };
        rule.check(op.name().as_str(), result.dtype(), target.dtype())?;
        if matches!(self, Target::Out(_)) {
            target.give_sizes(&result.sizes())?;
        }
        target.layout().refuse_overlap()?;
        target.copy_from(&result)?;
        Ok(target.clone())
    }
}

fn is_out(argument: &Argument) -> bool {
    argument.keyword_only && argument.alias.as_ref().is_some_and(|m| m.is_write)
}

/// What promotion sees of an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperandKind {
    /// A tensor with dimensions.
    Dims(DType),
    /// A tensor of rank 0.
    Zero(DType),
    /// A number: bool, int64, float64 or complex128.
    Number(DType),
}

impl OperandKind {
    /// The dtype of its elements.
    pub fn dtype(self) -> DType {
        match self {
            OperandKind::Dims(d) | OperandKind::Zero(d) | OperandKind::Number(d) => d,
        }
    }
}

/// The scalar program of an op for certain dtypes. Parameters are the operands that the call gives (tensors and
/// numbers in schema order, without the `out` argument and without factors like `alpha` that are 1), each of its own
/// dtype.
#[derive(Debug)]
pub struct Compiled {
    /// The program.
    pub program: Program,
    /// Its result, of the result's dtype.
    pub output: Sv,
    /// The dtype that operands have in common.
    pub common: DType,
}

/// The arguments of a call, sorted by what they are.
struct Call<'a> {
    /// One for each operand; None where it is left out.
    kinds: SmallVec<[Option<OperandKind>; 4]>,
    /// The operands that are there.
    inputs: SmallVec<[Input; 4]>,
    statics: Vec<Static>,
    /// Whether a number stands in the place of a tensor.
    beside_number: bool,
    target: Target<'a>,
}

impl<'a> Call<'a> {
    fn new(op: &Op, values: &'a [Value]) -> Result<Call<'a>> {
        let arguments = &op.schema()?.arguments;
        if arguments.len() != values.len() {
            return Err(Diagnostic::internal(format!(
                "{} was called with {} arguments",
                op.name(),
                values.len()
            )));
        }
        let target = Target::of(arguments, values)?;
        let mut call = Call {
            kinds: SmallVec::new(),
            inputs: SmallVec::new(),
            statics: Vec::new(),
            beside_number: arguments.iter().any(|a| replaces_tensor(arguments, a)),
            target,
        };
        for (argument, value) in arguments.iter().zip(values) {
            if is_out(argument) {
                continue;
            }
            match role(argument) {
                Role::Static => call.statics.push(static_value(value)?),
                _ if value.is_none() => call.kinds.push(None),
                Role::Tensor => {
                    let tensor = value.to_tensor()?.snapshot();
                    let kind = if tensor.layout.rank() == 0 { OperandKind::Zero } else { OperandKind::Dims };
                    call.kinds.push(Some(kind(tensor.dtype)));
                    call.inputs.push(Input::Tensor(tensor));
                }
                // A factor of 1 is left out, as it must not turn an infinite complex number into NaN.
                Role::Number if !promotes(argument) && matches!(value, Value::Int(1)) => {
                    call.kinds.push(None)
                }
                Role::Number => {
                    let number = value.to_scalar()?;
                    call.kinds.push(Some(OperandKind::Number(number.dtype())));
                    call.inputs.push(Input::Number(number));
                }
            }
        }
        Ok(call)
    }
}

impl Call<'_> {
    /// How the memory of the result is ordered: what is written in place keeps its own order.
    fn order(&self, op: &Op) -> Order {
        if matches!(self.target, Target::New) { op.def().order } else { Order::Operands }
    }

    /// The walk over the operands, whose result is what is written where the op writes in place.
    fn walk(&self, op: &Op) -> Result<Walk> {
        let layouts: SmallVec<[Layout; 4]> = self.inputs.iter().filter_map(Input::layout).cloned().collect();
        let walk = ordered_walk(&layouts, self.beside_number, self.order(op))?;
        match self.target {
            Target::InPlace(target) if target.sizes() != walk.result.sizes => {
                Err(Diagnostic::runtime(format!(
                    "output with shape {:?} doesn't match the broadcast shape {:?}",
                    target.sizes().as_slice(),
                    walk.result.sizes.as_slice()
                )))
            }
            _ => Ok(walk),
        }
    }

    /// Fails if what is written is not of a dtype that the result can have, for an op that does not take its operands.
    fn check_written(&self, op: &Op) -> Result<()> {
        let (rule, target) = match self.target {
            Target::New => return Ok(()),
            Target::InPlace(target) => (op.def().inplace_rule, target),
            Target::Out(target) => (op.def().out_rule, target),
        };
        let promoting = promoting(&op.schema()?.arguments, self.kinds.iter().copied());
        match dtypes(promotion(op.def(), &self.statics), &promoting) {
            Some((_, result)) => rule.check(op.name().as_str(), result, target.dtype()),
            None => Ok(()),
        }
    }

    /// Fails if what is written shares memory with an operand that lies differently in it.
    fn refuse_overlap(&self) -> Result<()> {
        let (Target::InPlace(target) | Target::Out(target)) = self.target else { return Ok(()) };
        let target = target.snapshot();
        self.inputs.iter().try_for_each(|input| match input {
            Input::Tensor(t) => refuse_partial_overlap(&target, t),
            Input::Number(_) => Ok(()),
        })
    }
}

enum Role {
    Tensor,
    Number,
    Static,
}

fn role(argument: &Argument) -> Role {
    let kind = match argument.ty.kind() {
        TypeKind::Optional(inner) => inner.kind(),
        kind => kind,
    };
    match kind {
        TypeKind::Tensor(_) => Role::Tensor,
        TypeKind::Number => Role::Number,
        _ => Role::Static,
    }
}

fn static_value(value: &Value) -> Result<Static> {
    Ok(match value {
        Value::None => Static::None,
        Value::Int(x) => Static::Int(*x),
        Value::Float(x) => Static::Float(*x),
        Value::Bool(x) => Static::Bool(*x),
        Value::Str(x) => Static::Str(x.shared()),
        other => {
            return Err(Diagnostic::unsupported(format!(
                "an argument of type {} of an elementwise op",
                other.kind_name()
            )));
        }
    })
}

type Key = (usize, SmallVec<[Option<OperandKind>; 4]>);
/// The op is kept so that its address stays its own.
type Cache = RwLock<HashMap<Key, (Op, Arc<Compiled>)>>;

static CACHE: LazyLock<Cache> = LazyLock::new(Cache::default);
const CACHE_LIMIT: usize = 4096;

fn compile_cached(op: &Op, call: &Call<'_>) -> Result<Arc<Compiled>> {
    if !call.statics.is_empty() {
        return Ok(Arc::new(compile_elementwise(op, &call.kinds, call.statics.clone())?));
    }
    let key = (op.id(), call.kinds.clone());
    if let Some((_, compiled)) = CACHE.read().get(&key) {
        return Ok(Arc::clone(compiled));
    }
    let compiled = Arc::new(compile_elementwise(op, &call.kinds, Vec::new())?);
    let mut cache = CACHE.write();
    if cache.len() >= CACHE_LIMIT {
        cache.clear();
    }
    cache.insert(key, (op.clone(), Arc::clone(&compiled)));
    Ok(compiled)
}

/// Builds the program of an elementwise op for operands of these kinds (None: left out) and these static
/// arguments, in schema order. Fails with PyTorch's error where the op does not take the dtypes.
pub fn compile_elementwise(
    op: &Op,
    operands: &[Option<OperandKind>],
    statics: Vec<Static>,
) -> Result<Compiled> {
    let mut program = Program::new();
    let mut params = |kind: &OperandKind| (program.param(kind.dtype()), *kind);
    let operands: SmallVec<[Option<(Sv, OperandKind)>; 4]> =
        operands.iter().map(|kind| kind.as_ref().map(&mut params)).collect();
    let value = emit_elementwise(&mut program, op, &operands, statics)?;
    let common = program.source_dtype(value);
    let (program, outputs) = program.pruned(&[value]);
    Ok(Compiled { program, output: outputs[0], common })
}

/// Adds an elementwise op to a program: converts its operands (tensor and number arguments in schema order, None:
/// left out) to the dtype of computation, applies its meaning, converts the result. Fails with PyTorch's error
/// where the op does not take the dtypes. The row's check of argument values is the caller's.
pub fn emit_elementwise(
    program: &mut Program,
    op: &Op,
    operands: &[Option<(Sv, OperandKind)>],
    statics: Vec<Static>,
) -> Result<Sv> {
    let def = op.def();
    let Some(scalar) = def.scalar else {
        return Err(Diagnostic::unsupported(format!("{} has no elementwise meaning", op.name())));
    };
    let arguments = &op.schema()?.arguments;
    let promoting = promoting(arguments, operands.iter().map(|operand| operand.map(|(_, kind)| kind)));
    let promote = promotion(def, &statics);
    let ranked = |kind: &OperandKind| match *kind {
        OperandKind::Dims(d) => (d, Rank::Dims),
        OperandKind::Zero(d) => (d, Rank::Zero),
        OperandKind::Number(DType::F64) => (DType::F32, Rank::Number),
        OperandKind::Number(d) => (d, Rank::Number),
    };
    check_promotions(&promoting.iter().map(ranked).collect::<SmallVec<[_; 4]>>())?;
    let (common, result_dtype) = dtypes(promote, &promoting)
        .ok_or_else(|| Diagnostic::unsupported(format!("{} without operands", op.name())))?;
    if !(def.accepts.contains(common) || common.is_rare() && def.takes_rare(common)) {
        return Err(refusal(op, def, common));
    }
    program.set_statics(statics);
    program.set_common(common);
    let mut converted: SmallVec<[Sv; 4]> = SmallVec::new();
    let mut rounded = SmallVec::new();
    for operand in operands {
        let Some((mut x, kind)) = *operand else {
            converted.push(Sv::ABSENT);
            continue;
        };
        if kind.dtype() == DType::C128 && matches!(kind, OperandKind::Number(_)) && !common.is_complex() {
            return Err(Diagnostic::runtime(format!(
                "value cannot be converted to type {} without overflow",
                c_name(common)
            )));
        }
        if !matches!(def.promote, Promote::First) && promotes_at(arguments, converted.len()) {
            // Operands become elements of the common dtype first, which rounds numbers where that has 16 bits;
            // a meaning that takes them whole asks for it.
            x = program.convert(x, common);
            if matches!(kind, OperandKind::Dims(_)) {
                rounded.push(x);
            }
        }
        converted.push(program.convert(x, compute_dtype(common)));
    }
    program.set_rounded(rounded);
    let value = scalar(program, &converted);
    Ok(program.convert(value, result_dtype))
}

fn refusal(op: &Op, def: &OpDef, dtype: DType) -> Diagnostic {
    let named = match def.accepts.kernel.split_once('|') {
        Some((_, of_complex)) if dtype.is_complex() => of_complex,
        Some((kernel, _)) => kernel,
        None => def.accepts.kernel,
    };
    let kernel = if dtype.is_rare() && named.contains(' ') { "" } else { named };
    if kernel.contains(' ') {
        return match kernel.split_once("Error: ") {
            Some((class, message)) => Diagnostic::raised(format!("{class}Error"), message),
            None => Diagnostic::raised("NotImplementedError", kernel),
        };
    }
    let kernel = if kernel.is_empty() {
        format!("{}_cpu", op.name().as_str().rsplit("::").next().unwrap_or_default().trim_end_matches('_'))
    } else {
        kernel.to_string()
    };
    let message = format!("\"{kernel}\" not implemented for '{}'", dtype.type_name());
    Diagnostic::raised("NotImplementedError", message)
}

/// Refuses numbers that the op could not make what its row says.
fn check_numbers(op: &Op, values: &[Value], common: DType) -> Result<()> {
    for (name, _) in op.def().numbers {
        let at = op.schema()?.argument_index(name);
        let number = at.and_then(|at| values.get(at));
        if let Some(number @ (Value::Int(_) | Value::Float(_) | Value::Complex(_))) = number {
            check_number(op.def(), name, number.to_scalar()?, common)?;
        }
    }
    Ok(())
}

/// Refuses a number that an argument's tensors of a common dtype cannot hold, if the op makes it an element.
pub fn check_number(def: &OpDef, name: &str, number: Scalar, common: DType) -> Result<()> {
    let made = def.numbers.iter().find(|(known, _)| *known == name);
    match made.and_then(|(_, made)| made.dtype(common)) {
        Some(dtype) => check_fill(number, dtype),
        None => Ok(()),
    }
}

/// C++'s name of an element type, for messages.
fn c_name(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "bool",
        DType::U8 => "uint8_t",
        DType::I8 => "int8_t",
        DType::I16 => "int16_t",
        DType::I32 => "int",
        DType::I64 => "int64_t",
        DType::F16 => "at::Half",
        DType::BF16 => "at::BFloat16",
        DType::F64 => "double",
        _ => "float",
    }
}

/// Floats of 16 bits are computed as float32.
fn compute_dtype(dtype: DType) -> DType {
    if matches!(dtype, DType::F16 | DType::BF16) || dtype.is_float8() { DType::F32 } else { dtype }
}

/// The operands that take part in promotion.
fn promoting(
    arguments: &[Argument],
    operands: impl Iterator<Item = Option<OperandKind>>,
) -> SmallVec<[OperandKind; 4]> {
    let roles = arguments.iter().filter(|a| !is_out(a) && !matches!(role(a), Role::Static));
    let has_others = arguments.iter().skip(1).any(|a| matches!(role(a), Role::Tensor));
    roles
        .zip(operands)
        .filter(|(a, _)| promotes(a) && !(has_others && a.name == "condition"))
        .filter_map(|(_, operand)| operand)
        .collect()
}

/// How an op promotes with these static arguments.
fn promotion(def: &OpDef, statics: &[Static]) -> Promote {
    match (def.promote, statics.first()) {
        (Promote::Rounding, Some(Static::None) | None) => Promote::Float,
        (Promote::Rounding, _) => Promote::Common,
        (promote, _) => promote,
    }
}

/// Factors like `alpha` and `value` do not take part in promotion (nor does the condition of `where`).
fn promotes(argument: &Argument) -> bool {
    matches!(role(argument), Role::Tensor) || !argument.keyword_only && argument.name != "alpha"
}

/// Whether the n-th operand takes part in promotion.
fn promotes_at(arguments: &[Argument], n: usize) -> bool {
    arguments.iter().filter(|a| !is_out(a) && !matches!(role(a), Role::Static)).nth(n).is_some_and(promotes)
}

/// The dtype of computation and that of the result. None without operands.
fn dtypes(promote: Promote, operands: &[OperandKind]) -> Option<(DType, DType)> {
    let float = |d: DType| if d.is_integral() || d == DType::Bool { DType::F32 } else { d };
    if promote == Promote::First {
        let first = operands.iter().find(|k| !matches!(k, OperandKind::Number(_)))?.dtype();
        return Some((first, first));
    }
    let common = common_dtype(operands.iter().copied())?;
    Some(match promote {
        Promote::Common | Promote::First | Promote::Rounding => (common, common),
        Promote::Float => (float(common), float(common)),
        Promote::Bool => (common, DType::Bool),
        Promote::Real => (common, common.to_real()),
        Promote::RealFloat => (float(common), float(common).to_real()),
        Promote::Double => {
            let wide = if common.is_complex() { DType::C128 } else { DType::F64 };
            (wide, wide)
        }
        Promote::Number => {
            let number = OperandKind::Number(DType::I64);
            let common = common_dtype(operands.iter().copied().chain([number]))?;
            (common, common)
        }
    })
}

/// PyTorch's three priorities, as in [`crate::tensor::result_type`].
fn common_dtype(operands: impl Iterator<Item = OperandKind>) -> Option<DType> {
    let (mut dims, mut zero, mut numbers): (Option<DType>, Option<DType>, Option<DType>) = (None, None, None);
    for kind in operands {
        let (slot, dtype) = match kind {
            OperandKind::Dims(d) => (&mut dims, d),
            OperandKind::Zero(d) => (&mut zero, d),
            // Numbers promote as the default dtype of their kind.
            OperandKind::Number(DType::F64) => (&mut numbers, DType::F32),
            OperandKind::Number(DType::C128) => (&mut numbers, DType::C64),
            OperandKind::Number(d) => (&mut numbers, d),
        };
        *slot = Some(slot.map_or(dtype, |seen| promote_types(seen, dtype)));
    }
    let category = |d: DType| match d {
        DType::Bool => 0,
        d if d.is_integral() => 1,
        d if d.is_complex() => 3,
        _ => 2,
    };
    let combine = |higher: Option<DType>, lower: Option<DType>| match (higher, lower) {
        (Some(h), Some(l)) if h.is_wide_unsigned() && l.is_complex() => Some(l),
        // A float keeps its width when a number or a tensor of rank 0 makes it complex.
        (Some(h), Some(l)) if h.is_floating() && l.is_complex() => Some(h.to_complex()),
        (Some(h), Some(l)) if category(l) > category(h) => Some(promote_types(h, l)),
        (Some(h), _) => Some(h),
        (None, l) => l,
    };
    combine(combine(dims, zero), numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;

    fn run(name: &str, overload: &str, values: &[Value]) -> Result<Tensor> {
        let registry = Registry::builtin();
        elementwise(registry.find(name, overload).expect("a row"), values)
    }

    fn tensor(values: &[f64], dtype: DType, sizes: &[i64]) -> Value {
        Value::Tensor(Tensor::from_vec(values, sizes).and_then(|t| t.to_dtype(dtype)).expect("valid"))
    }

    /// What rows say of numbers they say of arguments that are numbers.
    #[test]
    fn numbers_of_rows_are_arguments() {
        let registry = Registry::builtin();
        let mut said = 0;
        for op in registry.iter() {
            for (name, _) in op.def().numbers {
                let schema = op.schema().expect("a schema");
                let argument = schema.argument_index(name).and_then(|n| schema.arguments.get(n));
                let kind = argument.map(|argument| match argument.ty.kind() {
                    TypeKind::Optional(inner) => inner.clone(),
                    _ => argument.ty.clone(),
                });
                assert!(
                    kind.is_some_and(|ty| matches!(ty.kind(), TypeKind::Number)),
                    "{name} of {}",
                    op.schema_text()
                );
                said += 1;
            }
        }
        assert!(said > 50, "{said}");
    }

    /// dtypes and numbers as PyTorch gives them.
    #[test]
    fn promotion_follows_pytorch() {
        let one = Value::Int(1);
        let (ints, halves) = (tensor(&[7.0], DType::I32, &[1]), tensor(&[7.0], DType::F16, &[1]));
        let double = tensor(&[2.0], DType::F64, &[]);
        let cases: &[(&str, &str, Vec<Value>, DType, f64)] = &[
            ("aten::add", "Scalar", vec![ints.clone(), Value::Float(0.5), one.clone()], DType::F32, 7.5),
            ("aten::add", "Tensor", vec![halves.clone(), double.clone(), one.clone()], DType::F16, 9.0),
            ("aten::add", "Tensor", vec![ints.clone(), double, Value::Int(3)], DType::F64, 13.0),
            ("aten::div", "Scalar", vec![ints.clone(), Value::Int(2)], DType::F32, 3.5),
            ("aten::floor_divide", "Scalar", vec![ints.clone(), Value::Int(-2)], DType::I32, -4.0),
            ("aten::gt", "Scalar", vec![ints.clone(), Value::Float(6.5)], DType::Bool, 1.0),
            ("aten::exp2", "", vec![ints.clone()], DType::F32, 128.0),
            ("aten::float_power", "Tensor_Scalar", vec![halves, Value::Int(2)], DType::F64, 49.0),
            ("aten::clamp", "", vec![ints, Value::None, Value::Float(6.5)], DType::F32, 6.5),
        ];
        for (name, overload, values, dtype, expected) in cases {
            let result = run(name, overload, values).expect(name);
            assert_eq!(
                (result.dtype(), result.to_vec_as::<f64>().expect("reads")),
                (*dtype, vec![*expected]),
                "{name}"
            );
        }
    }

    #[test]
    fn in_place_forms_write_and_refuse() {
        let ints = tensor(&[1.0, 2.0], DType::I64, &[2]);
        let result = run("aten::mul_", "Scalar", &[ints.clone(), Value::Int(3)]).expect("writes");
        assert!(result.same(ints.to_tensor().expect("tensor")));
        assert_eq!(result.to_vec::<i64>().expect("i64"), [3, 6]);
        let message = |r: Result<Tensor>| r.map_err(|e| e.message().to_string()).err();
        assert_eq!(
            message(run("aten::mul_", "Scalar", &[ints.clone(), Value::Float(0.5)])).as_deref(),
            Some("result type Float can't be cast to the desired output type Long")
        );
        let wide = tensor(&[1.0; 4], DType::I64, &[2, 2]);
        assert_eq!(
            message(run("aten::add_", "Tensor", &[ints.clone(), wide, Value::Int(1)])).as_deref(),
            Some("output with shape [2] doesn't match the broadcast shape [2, 2]")
        );
        assert_eq!(
            message(run("aten::remainder", "Scalar", &[ints, Value::Int(0)])).as_deref(),
            Some("ZeroDivisionError")
        );
    }

    #[test]
    fn every_elementwise_row_compiles_for_some_dtype() {
        let registry = Registry::builtin();
        let kinds = [DType::F32, DType::I64, DType::Bool, DType::C64];
        for op in registry.iter().filter(|op| op.def().scalar.is_some()) {
            let schema = op.schema().expect("a schema that parses");
            let operands =
                schema.arguments.iter().filter(|a| !is_out(a) && !matches!(role(a), Role::Static)).count();
            let compiles = kinds.iter().any(|dtype| {
                let operands = vec![Some(OperandKind::Dims(*dtype)); operands];
                compile_elementwise(op, &operands, Vec::new()).is_ok()
            });
            assert!(compiles, "{}", op.schema_text());
        }
    }
}
