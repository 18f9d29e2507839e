//! What TorchScript's profiling executor puts into graphs: ops that profile values, checks of types, points where a graph is left,
//! and gradients that may be undefined (None here). Passes make them; this file says what they mean when they run. It does not
//! know how graphs are profiled or left.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Fact;
use crate::dialects::constraint::Law;
use crate::dialects::region::{Blocks, Region, Slot};
use crate::dialects::shapes::of_tensor;
use crate::dialects::structure::Structure;
use crate::dialects::{Args, Effects, OpDef, Outputs, control, host, one, regional};
use crate::ir::{Attr, Dim, TensorType, Type, TypeKind};
use crate::tensor::Tensor;
use crate::value::Value;

/// Looks at a value on its way to a use: attribute `profiled_type`, and `seen_none`.
pub const PROFILE: &str = "prim::profile";
/// Counts how often an optional value is there: attribute `none_counts`.
pub const PROFILE_OPTIONAL: &str = "prim::profile_ivalue";
/// A value assumed to have the result's type.
pub const GUARD: &str = "prim::Guard";
/// The same with a way out: the rest of the function without what leans on the type.
pub const BAILOUT: &str = "prim::BailOut";
/// Holds the graph, in its attribute `Subgraph`, that the rests are made of.
pub const BAILOUT_TEMPLATE: &str = "prim::BailoutTemplate";
/// Whether tensors have the types of the attribute `types`; gives them and the answer.
pub const TYPE_CHECK: &str = "prim::TypeCheck";
/// The same for whether they require grad.
pub const REQUIRES_GRAD_CHECK: &str = "prim::RequiresGradCheck";
/// Work in its plain form, in the attribute `Subgraph`, for values that a check refused.
pub const FALLBACK: &str = "prim::FallbackGraph";
/// The undefined gradient.
pub const AUTOGRAD_ZERO: &str = "prim::AutogradZero";
/// The sum of two gradients.
pub const AUTOGRAD_ADD: &str = "prim::AutogradAdd";
/// Whether one of several gradients is defined.
pub const AUTOGRAD_ANY: &str = "prim::AutogradAnyNonZero";
/// Whether all of them are.
pub const AUTOGRAD_ALL: &str = "prim::AutogradAllNonZero";
/// Whether none of them is.
pub const AUTOGRAD_NONE: &str = "prim::AutogradAllZero";
/// The derivative of one op: a block that gives undefined gradients where it is given nothing else.
pub const GRAD_OF: &str = "prim::GradOf";

/// The rows.
pub static OPS: &[OpDef] = &[
    host("prim::profile(t(a) value) -> t(a)", |a| one(a.value(0)?.clone()))
        .facts(&[Fact::Nested])
        .doc("the same value, whose type `flambeau profile` writes into the attribute `profiled_type`"),
    host("prim::profile.count() -> ()", |_| Ok(Outputs::new()))
        .effects(Effects::WRITES_WORLD)
        .doc("where a profiled graph ends"),
    host("prim::profile_ivalue(t(a) value) -> t(a)", |a| one(a.value(0)?.clone()))
        .facts(&[Fact::Nested])
        .doc("the same value, of which `none_counts` says how often it was None"),
    host("prim::Guard(t(a) value) -> t(a)", guard)
        .effects(Effects::MAY_RAISE.union(Effects::READS_WORLD))
        .doc("the same value, which must have the type of the result; insert-bailouts adds what happens otherwise"),
    control("prim::BailOut(...) -> ...")
        .effects(Effects::ALL)
        .laws(&[Law::Blocks(0)])
        .doc("the second operand, if it has the type of the result; if not, the function goes on as the graph of the template, from here, and gives what that gives"),
    control("prim::BailoutTemplate() -> int")
        .effects(Effects::WRITES_WORLD)
        .laws(&[Law::Blocks(0)])
        .doc("holds the graph that functions go on as; gives 1"),
    host("prim::TypeCheck(...) -> ...", type_check)
        .effects(Effects::READS_WORLD)
        .doc("its operands, and whether each of them has its type of the attribute `types`"),
    host("prim::RequiresGradCheck(...) -> ...", requires_grad_check)
        .effects(Effects::READS_WORLD)
        .doc("its operands, and whether each of them requires grad or does not, as its type of `types` says"),
    control("prim::FallbackGraph(...) -> ...")
        .effects(Effects::NONE)
        .doc("the work before it was specialized to types; created by guard-types and specialize-autogradzero"),
    control("prim::TensorExprGroup(...) -> ...")
        .effects(Effects::NONE)
        .doc("what TorchScript compiles as one kernel; runs op by op here"),
    host("prim::AutogradZero() -> Any", |_| one(Value::None)).doc("a gradient that is not defined: None"),
    host("prim::AutogradAdd(Any(a) a, Any(b) b) -> Any(a|b)", add)
        .doc("the sum of two gradients, either of which may be None"),
    host("prim::AutogradAnyNonZero(...) -> bool", |a| one(a.values.iter().any(is_defined)))
        .doc("whether a gradient among them is defined"),
    host("prim::AutogradAllNonZero(...) -> bool", |a| one(a.values.iter().all(is_defined)))
        .doc("whether all gradients are defined"),
    host("prim::AutogradAllZero(...) -> bool", |a| one(!a.values.iter().any(is_defined)))
        .doc("whether no gradient is defined"),
    regional("prim::GradOf(...) -> ...", &[Law::Structure(Structure::Regions(GRAD_OF_BLOCKS))], grad_of)
        .doc("the gradients of the op that `name` says: what its block gives, or None where all operands are"),
];

const GRAD_OF_BLOCKS: &[Region] = &[Region { takes: &[], gives: &[Slot::Results] }];

/// Whether all is true of a value that a type says. Of what is not a tensor, types say nothing that has to be checked here; None
/// is the undefined tensor.
pub fn holds(ty: &Type, value: &Value, records: bool) -> bool {
    match (ty.kind(), value) {
        (TypeKind::Tensor(known), Value::Tensor(tensor)) => {
            known.undefined != Some(true) && of_this_type(known, tensor, records)
        }
        (TypeKind::Tensor(known), Value::None) => {
            known.undefined == Some(true) || *known == TensorType::default()
        }
        (TypeKind::Tensor(_), _) => false,
        _ => true,
    }
}

fn of_this_type(known: &TensorType, tensor: &Tensor, records: bool) -> bool {
    let found = of_tensor(tensor);
    let says = |known: Option<bool>, is: bool| known.is_none_or(|known| known == is);
    let (sizes, strides) = (tensor.sizes(), tensor.strides());
    known.dtype.is_none_or(|dtype| Some(dtype) == found.dtype)
        && (known.device.is_none() || known.device == found.device)
        && says(known.requires_grad, records && tensor.requires_grad())
        && known.sizes.as_deref().is_none_or(|own| {
            own.len() == sizes.len()
                && own.iter().zip(sizes.iter()).all(|(own, n)| match own {
                    Dim::Known(own) => own == n,
                    Dim::Open(_) => *n > 1,
                    Dim::Symbol(_) | Dim::Unknown => true,
                })
                && same_symbols(own, &sizes)
        })
        && known.strides.as_deref().is_none_or(|own| {
            own.len() == strides.len()
                && own.iter().zip(strides.iter()).all(|(own, n)| own.known().is_none_or(|own| own == *n))
        })
}

/// Whether equal symbols stand for equal sizes.
fn same_symbols(dims: &[Dim], sizes: &[i64]) -> bool {
    let symbol = |dim: &Dim| matches!(dim, Dim::Symbol(_) | Dim::Open(_));
    let first = |dim: &Dim| dims.iter().position(|other| other == dim);
    dims.iter()
        .enumerate()
        .all(|(n, dim)| !symbol(dim) || first(dim).is_none_or(|at| sizes.get(at) == sizes.get(n)))
}

fn guard(args: &Args<'_>) -> Result<Outputs> {
    let value = args.value(0)?;
    match args.result_type(0) {
        Some(ty) if !holds(ty, value, args.run.grad_enabled()) => {
            let message =
                format!("a value of type {} came to a guard of {ty}", shown(value, args.run.grad_enabled()));
            Err(Diagnostic::runtime(message).hint("insert-bailouts gives guards something to do then"))
        }
        _ => one(value.clone()),
    }
}

/// The type of a value as a profile recorded it.
pub fn shown(value: &Value, records: bool) -> Type {
    match value {
        Value::Tensor(tensor) => {
            let found = of_tensor(tensor);
            let requires_grad = Some(records && tensor.requires_grad());
            Type::new(TypeKind::Tensor(TensorType { requires_grad, ..found }))
        }
        other => other.ty(),
    }
}

/// The types of some values, for people.
pub fn shown_all(values: &[Value], records: bool) -> String {
    values.iter().map(|value| shown(value, records).to_string()).collect::<Vec<String>>().join(", ")
}

/// The types of a check, one for each operand.
fn checked_types<'a>(args: &Args<'a>) -> Result<&'a [Type]> {
    match args.attr("types") {
        Some(Attr::Types(types)) if types.len() == args.values.len() => Ok(types),
        Some(Attr::List(none)) if none.is_empty() && args.values.is_empty() => Ok(&[]),
        _ => Err(Diagnostic::verify(format!("{} needs a type in `types` for each operand", args.op.name()))),
    }
}

fn with_answer(args: &Args<'_>, answer: bool) -> Result<Outputs> {
    Ok(args.values.iter().cloned().chain([Value::Bool(answer)]).collect())
}

fn type_check(args: &Args<'_>) -> Result<Outputs> {
    let (types, records) = (checked_types(args)?, args.run.grad_enabled());
    // As in PyTorch an undefined tensor is of no type here.
    let fits = |(ty, value): (&Type, &Value)| is_defined(value) && holds(ty, value, records);
    with_answer(args, types.iter().zip(args.values).all(fits))
}

fn requires_grad_check(args: &Args<'_>) -> Result<Outputs> {
    let types = checked_types(args)?;
    let wanted = |ty: &Type| {
        ty.as_tensor().and_then(|known| known.requires_grad).ok_or_else(|| {
            Diagnostic::verify(format!(
                "{} asks whether tensors require grad, which {ty} does not say",
                args.op.name()
            ))
        })
    };
    let mut answer = true;
    for (ty, value) in types.iter().zip(args.values) {
        // As in PyTorch, whether or not gradients are recorded here.
        answer &= wanted(ty)? == matches!(value, Value::Tensor(t) if t.requires_grad());
    }
    with_answer(args, answer)
}

/// Whether a gradient is defined. A list is if one of its elements is.
fn is_defined(value: &Value) -> bool {
    match value {
        Value::None => false,
        Value::List(list) => list.items().iter().any(|element| !matches!(element, Value::None)),
        _ => true,
    }
}

/// The sum where both sides are defined.
const ADD: &str = "def AutogradAdd(a: Tensor, b: Tensor) -> Tensor:\n    return a + b\n";

fn add(args: &Args<'_>) -> Result<Outputs> {
    match (args.value(0)?, args.value(1)?) {
        (Value::None, other) | (other, Value::None) => one(other.clone()),
        (a, b) => one(args.run.function("AutogradAdd", ADD, vec![a.clone(), b.clone()])?),
    }
}

fn grad_of(args: &Args<'_>, blocks: &dyn Blocks) -> Result<Outputs> {
    if args.values.iter().any(is_defined) {
        return Ok(blocks.run(0, Vec::new())?.into());
    }
    Ok(args.node.result_types.iter().map(|_| Value::None).collect())
}
