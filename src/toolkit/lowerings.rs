//! Lowerings that are added are compared with what their ops mean: both run on random arguments, the kernels by the reference
//! interpreter. A false one is refused with the arguments that show it.

use super::facts::brief;
use crate::backends::interp::Interp;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::shapes::of_tensor;
use crate::dialects::text::parse_dialect;
use crate::dialects::{Contract, Effects, Op, Registry, Run, Tolerance, Variant};
use crate::eval;
use crate::ir::{Attr, Function, Graph, Module, Symbol, TensorType, Type, TypeKind, derived_schema};
use crate::lowering::Target;
use crate::lowering::convert::{ConversionTarget, Lowering, Lowerings, Ops, TextLowering, convert};
use crate::passes::Context;
use crate::rewrite::check::{Numbers, Random, Scale, agree};
use crate::runtime::{Program, ScriptComposites};
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use std::sync::Arc;

/// Calls that are compared of one op under one lowering.
const COMPARED: usize = 16;
/// Maximum number of calls drawn to find enough that the op and the lowering accept.
const DRAWN: usize = 320;
/// What a call may take: a kernel that goes on for ever is refused.
const STEPS: u64 = 1 << 20;

/// A table with further lowerings. Fails for the first that is false.
pub(super) fn added(
    registry: &Arc<Registry>,
    new: impl IntoIterator<Item = Arc<dyn Lowering>>,
) -> Result<Arc<Registry>> {
    let new: Vec<Arc<dyn Lowering>> = new.into_iter().collect();
    if new.is_empty() {
        return Ok(Arc::clone(registry));
    }
    for lowering in &new {
        compare(registry, lowering)?;
    }
    Ok(Arc::new(Lowerings::added(registry, new)))
}

/// A table with the loop functions of a dialect file.
pub(super) fn of_text(registry: &Arc<Registry>, source: &Arc<Source>) -> Result<Arc<Registry>> {
    let mut new: Vec<Arc<dyn Lowering>> = Vec::new();
    for op in parse_dialect(source)?.ops {
        let row = registry.overloads(op.name().into()).iter().find(|row| row.schema_text() == op.schema);
        let Some(row) = row else { continue };
        for (n, (text, span)) in op.lowerings.iter().enumerate() {
            let lowering: Arc<dyn Lowering> = Arc::new(TextLowering::new(row, n, text, span)?);
            compare(registry, &lowering).map_err(|error| error.at(span))?;
            new.push(lowering);
        }
    }
    match new.is_empty() {
        true => Ok(Arc::clone(registry)),
        false => Ok(Arc::new(Lowerings::added(registry, new))),
    }
}

/// Compares a lowering with each op that it handles.
fn compare(registry: &Arc<Registry>, lowering: &Arc<dyn Lowering>) -> Result<()> {
    let selected = lowering.ops();
    let with = Arc::new(Lowerings::added(registry, [Arc::clone(lowering)]));
    let ops: Vec<Op> = registry
        .iter()
        .filter(|op| op.variant() == Variant::Plain && selected.contains(op))
        .cloned()
        .collect();
    if ops.is_empty() {
        return Err(Diagnostic::input(format!(
            "the lowering {} is for {selected}, and there is no such op",
            lowering.name()
        )));
    }
    // One op is compared with care, of a family each with less.
    let effort = if matches!(selected, Ops::Named(_)) { COMPARED } else { 4 };
    ops.iter().try_for_each(|op| compare_op(&with, lowering.as_ref(), op, effort))
}

fn compare_op(registry: &Arc<Registry>, lowering: &dyn Lowering, op: &Op, effort: usize) -> Result<()> {
    let (effects, schema) = (op.def().effects, op.schema()?);
    let runs = op.is_built() && !effects.intersects(Effects::RANDOM | Effects::WRITES_WORLD);
    if !runs {
        return Ok(());
    }
    let mut random = Random::new(0);
    let (mut compared, mut refusal) = (0, None);
    for _ in 0..DRAWN * effort / COMPARED {
        let profile = Profile::new(&mut random);
        let values = schema
            .arguments
            .iter()
            .map(|a| profile.value(&mut random, &a.ty))
            .collect::<Option<Vec<Value>>>();
        // There are no random values of types of a dialect, and of text that means something.
        let Some(values) = values else { return Ok(()) };
        let run = silent(registry);
        let Ok(expected) = eval::call(op, &values, Default::default(), &run) else { continue };
        match lowered(registry, op, lowering.name(), &values)? {
            Err(why) => refusal = Some(why),
            Ok(program) => {
                let tensors =
                    values.iter().filter(|value| matches!(value, Value::Tensor(_))).cloned().collect();
                let found = program.run("f", tensors, &silent(registry));
                same(op, lowering, &values, &expected, found, profile.scale(&values))?;
                compared += 1;
            }
        }
        if compared == effort {
            break;
        }
    }
    match (compared, refusal) {
        (0, Some(why)) => {
            let message = format!(
                "the lowering {} of {} cannot be checked: it refuses each call that was drawn",
                lowering.name(),
                op.full_name()
            );
            Err(Diagnostic::input(message).note(why))
        }
        _ => Ok(()),
    }
}

fn silent(registry: &Arc<Registry>) -> Run {
    let limits = crate::dialects::Limits { steps: Some(STEPS), ..Default::default() };
    let run =
        Run::with_limits(Box::new(std::io::sink()), limits).with_composites(ScriptComposites::of(registry));
    run.set_grad_enabled(false);
    run
}

/// What the random arguments of a call have in common.
struct Profile {
    dtypes: [DType; 2],
    dims: [i64; 3],
    numbers: Numbers,
    rank: usize,
}

impl Profile {
    fn new(random: &mut Random) -> Profile {
        let all = [DType::F32, DType::F32, DType::F64, DType::I64, DType::I32, DType::Bool, DType::U8];
        let dtype = *random.pick(&all);
        let other = if random.percent(60) { dtype } else { *random.pick(&all) };
        let dims = [0; 3].map(|_| if random.percent(8) { 0 } else { random.range(1, 5) });
        let numbers = if random.percent(50) { Numbers::Moderate } else { Numbers::Any };
        Profile { dtypes: [dtype, other], dims, numbers, rank: random.below(4) }
    }

    /// A value of a type; None where it cannot be drawn.
    fn value(&self, random: &mut Random, ty: &Type) -> Option<Value> {
        Some(match ty.kind() {
            TypeKind::Tensor(_) => {
                let rank = if random.percent(75) { self.rank } else { random.below(4) };
                let square = random.percent(50);
                let sizes: Vec<i64> =
                    (0..rank).map(|n| if square { self.dims[0] } else { self.dims[n % 3] }).collect();
                let dtype = self.dtypes[usize::from(random.percent(30))];
                let numbers = if dtype.is_floating() { self.numbers } else { Numbers::Moderate };
                Value::Tensor(random.tensor(dtype, &sizes, numbers).ok()?)
            }
            TypeKind::Int | TypeKind::SymInt => Value::Int(random.range(-2, 4)),
            TypeKind::Float => Value::Float(random.float(Numbers::Moderate)),
            TypeKind::Bool => Value::Bool(random.percent(50)),
            TypeKind::Number if random.percent(50) => Value::Int(random.range(-2, 4)),
            TypeKind::Number => Value::Float(random.float(Numbers::Moderate)),
            TypeKind::ScalarType => Value::Int(self.dtypes[1].code()),
            TypeKind::Optional(_) if random.percent(60) => Value::None,
            TypeKind::Optional(inner) => self.value(random, inner)?,
            TypeKind::List(inner) if matches!(inner.kind(), TypeKind::Int | TypeKind::SymInt) => {
                let n = random.below(5);
                Value::ints((0..n).map(|_| random.range(-1, 3)))
            }
            _ => return None,
        })
    }

    /// What rounding is measured by.
    fn scale(&self, values: &[Value]) -> Scale {
        let tensors = values.iter().filter_map(|v| if let Value::Tensor(t) = v { Some(t) } else { None });
        let elements = tensors.flat_map(|t| t.to_scalars().unwrap_or_default());
        let magnitude = elements.map(|x| x.to_f64().abs()).filter(|x| x.is_finite()).fold(0.0, f64::max);
        Scale { magnitude, dtype: None }
    }
}

/// A program of one call, lowered; or why it was not.
fn lowered(
    registry: &Arc<Registry>,
    op: &Op,
    lowering: &str,
    values: &[Value],
) -> Result<Result<Program, String>> {
    let module = lowered_module(registry, op, lowering, values, of_tensor, Target::Cpu)?;
    Ok(module.map(|module| Program::with(module, None, Arc::clone(registry)).on(Arc::new(Interp))))
}

/// The same before it is a program; `known` says what types are known of tensors.
fn lowered_module(
    registry: &Arc<Registry>,
    op: &Op,
    lowering: &str,
    values: &[Value],
    known: impl Fn(&Tensor) -> TensorType,
    machine: Target,
) -> Result<Result<Module, String>> {
    let mut graph = Graph::new();
    let mut operands = Vec::new();
    for value in values {
        operands.push(match value {
            Value::Tensor(tensor) => {
                let ty = TensorType { requires_grad: Some(false), ..known(tensor) };
                graph.add_input(Type::new(TypeKind::Tensor(ty)))
            }
            other => {
                let root = graph.root();
                let constant = graph.emit(root, Symbol::new("prim::Constant"), &[], &[]);
                if let Some(attr) = attribute(other) {
                    graph.set_attr(constant, "value", attr);
                }
                graph.add_result(constant, other.ty())
            }
        });
    }
    let returns: Vec<Type> = op.schema()?.returns.iter().map(|r| r.ty.clone()).collect();
    let root = graph.root();
    let call = graph.emit(root, op.name(), &operands, &returns);
    graph.results(call).into_iter().for_each(|value| graph.add_output(value));
    let name = Symbol::new("f");
    let schema = derived_schema(name, &graph);
    let mut module = Module::default();
    module.functions.insert(name, Function { name, schema, graph, span: None });
    let context = Context::for_module(registry);
    let target = ConversionTarget::new().illegal(Ops::named(op.full_name())).by(lowering);
    match convert(&mut module, &context, &target, machine) {
        Ok(_) => Ok(Ok(module)),
        Err(error) => Ok(Err(error
            .report()
            .notes
            .first()
            .map_or_else(|| error.message().to_string(), |note| note.to_string()))),
    }
}

fn attribute(value: &Value) -> Option<Attr> {
    Some(match value {
        Value::Int(x) => Attr::Int(*x),
        Value::Float(x) => Attr::Float(*x),
        Value::Bool(x) => Attr::Bool(*x),
        Value::Str(x) => Attr::Str(x.to_string().into()),
        Value::List(_) => Attr::Ints(value.to_ints().ok()?.into()),
        _ => return None,
    })
}

/// Compares what the kernels gave with what the op means.
fn same(
    op: &Op,
    lowering: &dyn Lowering,
    values: &[Value],
    expected: &[Value],
    found: Result<Value>,
    scale: Scale,
) -> Result<()> {
    let contract = if op.def().tolerance == Tolerance::Exact { Contract::Exact } else { Contract::FastMath };
    let wanted = match expected {
        [one] => one.clone(),
        many => Value::Tuple(crate::value::Tuple::new(many.to_vec())),
    };
    let shown = match &found {
        Ok(found) if agree(contract, &wanted, found, scale) => return Ok(()),
        Ok(found) => brief(found),
        Err(error) => format!("an error ({})", error.message()),
    };
    let names =
        op.schema()?.arguments.iter().zip(values).map(|(a, value)| format!("{} = {}", a.name, brief(value)));
    let message = format!(
        "the lowering {} of {} is false: {} gives {shown}, and the op gives {}",
        lowering.name(),
        op.full_name(),
        names.collect::<Vec<_>>().join(", "),
        brief(&wanted)
    );
    Err(Diagnostic::input(message))
}

#[cfg(test)]
mod tests;
