//! What rows compute, against the reference interpreter: each overload of the ops that it knows, on drawn arguments, within the
//! row's tolerance.

use super::compare::unit;
use super::random::Numbers;
use super::reference_tests::{defined, environment, named_ops, rules};
use super::shown;
use super::steps::{Call, Copies, Trace, called, coarsest, magnitude, steps};
use super::{Random, example};
use crate::diag::Source;
use crate::dialects::{Family, Node, Op, Registry, Run, Tolerance, Variant};
use crate::eval;
use crate::ir::types::schema::Argument;
use crate::ir::{Type, TypeKind};
use crate::rewrite::load::rule::{CompiledRule, Term};
use crate::rewrite::{compile, parse};
use crate::tensor::{DType, Layout, Scalar, Tensor};
use crate::value::Value;
use flambeau_reference::{self as reference, Outside};
use num_complex::Complex64;

/// Overloads that built-in rules have and that are compared for no arguments. The list may only shrink. The first is TorchScript
/// text that the runtime compiles, which is not here; the second is what rules know by themselves; digits of `round` are not
/// written down in the reference; the last stands on right sides alone, where no instance has it.
const NOT_COMPARED: &[&str] =
    &["aten::_grad_sum_to_size", "prim::If", "aten::round.decimals", "prim::ConstantChunk"];

/// Ops whose arguments would hardly ever fit each other if they were drawn one by one, by the number of dimensions.
const DRAWN_APART: [&str; 3] = ["aten::conv1d", "aten::conv2d", "aten::conv3d"];

/// Arguments of an overload, for each manner of drawing numbers.
const CALLS: usize = 24;
/// Calls, at most, in search of them.
const EVALUATIONS: u64 = 4_000;

/// Calls of an op with arguments of every kind: a rule whose left side is the op on variables.
fn pattern(registry: &Registry, op: &Op, contract: &str) -> Option<CompiledRule> {
    let schema = op.schema().ok()?;
    let term = |with_types: bool| {
        let argument = |argument: &Argument| {
            let own = match (argument.ty.kind(), with_types) {
                // Other modes have ops of their own.
                (TypeKind::Str, _) if op.name() == "aten::pad" => "\"constant\"".to_string(),
                (_, true) => format!("?{}: {}", argument.name, argument.ty),
                (_, false) => format!("?{}", argument.name),
            };
            if argument.keyword_only { format!("{}={own}", argument.name) } else { own }
        };
        let arguments: Vec<String> = schema.arguments.iter().map(argument).collect();
        format!("{}({})", op.full_name(), arguments.join(", "))
    };
    let text = format!("rule drawn {contract} {} => {}\n", term(true), term(false));
    let rule = parse(&Source::new("drawn.rules", text)).ok()?;
    let compiled = compile(registry, rule.first()?).ok()?;
    compiled.into_iter().find(|rule| matches!(&rule.left, Term::Op(node) if node.op.same(op)))
}

/// How far a result may lie from its definition, by the row's tolerance and the arguments: floats of 16 bits and complex numbers
/// are computed in several ways, sums are as exact as their largest terms, products of numbers are as large as both.
fn bound(call: &Call<'_>, dtype: DType, wanted: Complex64) -> f64 {
    let largest = call.operands.iter().map(magnitude).fold(0.0, f64::max);
    let coarsest =
        call.operands.iter().filter_map(coarsest).chain([dtype.to_real()]).map(unit).fold(0.0, f64::max);
    let is_plain =
        matches!(dtype, DType::F32 | DType::F64) && !reference::leaves_rounding_open(call.op.name().as_str());
    match call.op.def().tolerance {
        Tolerance::Exact if is_plain => 0.0,
        Tolerance::Rounding if is_plain => 8.0 * unit(dtype) * wanted.norm() + 1e-36,
        Tolerance::Exact | Tolerance::Rounding => 8.0 * coarsest * wanted.norm().max(largest),
        Tolerance::Accumulation => {
            let terms = match call.op.def().family {
                Family::Contraction => largest * largest,
                _ => largest,
            };
            16.0 * coarsest * wanted.norm().max(terms).max(1.0)
        }
    }
}

/// Whether a result is what its definition says.
fn agrees(call: &Call<'_>, own: &Value, wanted: &Value) -> bool {
    match (own, wanted) {
        (Value::Tensor(own), Value::Tensor(wanted)) => tensors_agree(call, own, wanted),
        (Value::List(own), Value::List(wanted)) => {
            let (own, wanted) = (own.to_vec(), wanted.to_vec());
            own.len() == wanted.len() && own.iter().zip(&wanted).all(|(a, b)| agrees(call, a, b))
        }
        (Value::Float(own), Value::Float(wanted)) => {
            numbers_agree(call, DType::F64, Scalar::Float(*own), Scalar::Float(*wanted))
        }
        (Value::Complex(own), Value::Complex(wanted)) => {
            numbers_agree(call, DType::C128, Scalar::Complex(*own), Scalar::Complex(*wanted))
        }
        _ => super::compare::agree(super::Contract::Exact, own, wanted, super::Scale::EXACT),
    }
}

fn tensors_agree(call: &Call<'_>, own: &Tensor, wanted: &Tensor) -> bool {
    let (Ok(items), Ok(others)) = (own.to_scalars(), wanted.to_scalars()) else { return false };
    own.dtype() == wanted.dtype()
        && own.sizes() == wanted.sizes()
        && items.iter().zip(&others).all(|(a, b)| numbers_agree(call, own.dtype(), *a, *b))
}

fn numbers_agree(call: &Call<'_>, dtype: DType, own: Scalar, wanted: Scalar) -> bool {
    let open_sign = call.op.def().tolerance != Tolerance::Exact
        || dtype.is_complex()
        || reference::leaves_rounding_open(call.op.name().as_str())
        || reference::leaves_sign_of_zero_open(call.op.name().as_str());
    let part = |a: f64, b: f64| a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan() || open_sign && a == b;
    match (own, wanted) {
        (Scalar::Int(_) | Scalar::Bool(_), _) | (_, Scalar::Int(_) | Scalar::Bool(_)) => own == wanted,
        _ => {
            let (a, b) = (own.to_complex(), wanted.to_complex());
            let is_equal = part(a.re, b.re) && part(a.im, b.im);
            // Of a complex number that overflows no part is exact.
            let overflows = dtype.is_complex() && !a.is_finite() && !b.is_finite();
            is_equal || overflows || a != b && (a - b).norm() <= bound(call, dtype, b)
        }
    }
}

/// Calls an op and its definition. None where that leaves open what comes of it.
fn compared(call: &Call<'_>, run: &Run) -> Option<Result<(), String>> {
    let node = Node { attrs: &call.attributes, result_types: &call.types };
    let own = eval::call(call.op, &call.operands, node, run).ok()?;
    let given = || call.operands.iter().map(shown).collect::<Vec<_>>().join(", ");
    match defined(call) {
        Ok(wanted) => {
            let agree = own.len() == wanted.len() && own.iter().zip(&wanted).all(|(a, b)| agrees(call, a, b));
            let all = |values: &[Value]| values.iter().map(shown).collect::<Vec<_>>().join(", ");
            Some(match agree {
                true => Ok(()),
                false => Err(format!(
                    "{}({}) is {} and not {}",
                    call.op.full_name(),
                    given(),
                    all(&own),
                    all(&wanted)
                )),
            })
        }
        Err(Outside::Refused(why)) => {
            Some(Err(format!("{}({}) should be refused: {why}", call.op.full_name(), given())))
        }
        Err(_) => None,
    }
}

/// The same call with NaN and infinities at some places of its floats.
fn unbounded(call: &Call<'_>, random: &mut Random) -> Option<Vec<Value>> {
    let mut copies = Copies::default();
    let copied: Vec<Value> =
        call.operands.iter().map(|value| copies.copy(value).ok()).collect::<Option<_>>()?;
    let mut done = false;
    for value in &copied {
        let Value::Tensor(t) = value else { continue };
        let layout = t.layout();
        if t.numel() == 0 || !t.dtype().is_floating() || !random.percent(60) {
            continue;
        }
        let place =
            layout.sizes.iter().zip(&layout.strides).map(|(n, stride)| random.range(0, n - 1) * stride);
        let offset = layout.offset + place.sum::<i64>() as usize;
        let x = *random.pick(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
        let one = t.with_layout(Layout::strided(&[], &[], offset).ok()?).ok()?;
        one.fill(Scalar::Float(x)).ok()?;
        done = true;
    }
    done.then_some(copied)
}

/// Compares an overload by drawn calls: how many were compared, and the first that is wrong.
pub(super) fn look(registry: &Registry, op: &Op, run: &Run) -> (usize, Vec<String>) {
    let (mut count, mut wrong) = (0, Vec::new());
    for contract in ["exact", "fast-math"] {
        let Some(rule) = pattern(registry, op, contract) else { return (0, Vec::new()) };
        let mut random = Random::new(99);
        for instance in example::instances(&rule, 7, CALLS, EVALUATIONS, run) {
            let Some(step) = steps(&rule.left).pop() else { continue };
            let Ok(call) = called(step.node, &instance.variables, &Trace::default()) else { continue };
            // Sums of numbers that overflow on the way depend on the order of their terms.
            let is_sum = op.def().tolerance == Tolerance::Accumulation;
            let mut calls = Vec::new();
            if is_sum
                && contract == "fast-math"
                && let Some(operands) = unbounded(&call, &mut random)
            {
                calls.push(Call {
                    operands,
                    attributes: call.attributes.clone(),
                    types: call.types.clone(),
                    op: call.op,
                });
            }
            if !is_sum || contract == "fast-math" {
                calls.push(call);
            }
            for call in calls {
                match compared(&call, run) {
                    Some(Ok(())) => count += 1,
                    Some(Err(why)) => wrong.push(why),
                    None => {}
                }
            }
        }
    }
    (count, wrong)
}

/// Compares an op with no pattern of its own where rules have it: arguments of any type, any number of them.
fn look_in_rules(rules: &[CompiledRule], op: &Op, run: &Run) -> (usize, Vec<String>) {
    let (mut count, mut wrong) = (0, Vec::new());
    let mut ops = Vec::new();
    for rule in rules {
        ops.clear();
        ops_of(&rule.left, &mut ops);
        if rule.writes || count > CALLS || !ops.iter().any(|known| known.same(op)) {
            continue;
        }
        for instance in example::instances(rule, 7, 4, EVALUATIONS, run) {
            for step in steps(&rule.left).iter().filter(|step| step.node.op.same(op)) {
                let Ok(call) = called(step.node, &instance.variables, &instance.trace) else { continue };
                match compared(&call, run) {
                    Some(Ok(())) => count += 1,
                    Some(Err(why)) => wrong.push(why),
                    None => {}
                }
            }
        }
    }
    (count, wrong)
}

/// The ops of built-in rules, one after the other.
fn ops_of(term: &Term, found: &mut Vec<Op>) {
    match term {
        Term::Op(node) => {
            if !found.iter().any(|op| op.same(&node.op)) {
                found.push(node.op.clone());
            }
            node.operands.iter().chain(node.blocks.iter().flatten()).for_each(|term| ops_of(term, found));
        }
        Term::List(_, items) => items.iter().for_each(|term| ops_of(term, found)),
        Term::Variable(..) | Term::Rest(..) | Term::Constant(..) | Term::Compute(..) => {}
    }
}

#[test]
fn rows_compute_what_their_ops_are_defined_to() {
    let registry = Registry::builtin();
    let run = environment();
    let (mut ops, mut wrong, mut left_out, mut total) = (Vec::new(), Vec::new(), Vec::new(), 0);
    let rules = rules(&registry);
    for rule in &rules {
        ops_of(&rule.left, &mut ops);
        ops_of(&rule.right, &mut ops);
    }
    let named = named_ops();
    let is_drawn = |op: &&Op| op.variant() == Variant::Plain && !DRAWN_APART.contains(&op.full_name());
    for op in ops.iter().filter(is_drawn) {
        let (mut count, mut faults) = look(&registry, op, &run);
        if count == 0 && named.contains(op.name().as_str()) {
            (count, faults) = look_in_rules(&rules, op, &run);
        }
        total += count;
        // Ops that rules do not name stand in them for a whole class: not all of it need be known.
        if count == 0 && named.contains(op.name().as_str()) {
            left_out.push(op.full_name().to_string());
        }
        wrong.extend(faults.into_iter().take(2));
    }
    assert!(
        wrong.is_empty(),
        "{} of {total} calls are not what is defined:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    assert_eq!(left_out, NOT_COMPARED, "overloads of which nothing is compared");
    assert!(total > 5000, "{total} calls were compared");
}

/// Arguments of a convolution that fit each other.
fn convolution(random: &mut Random, dims: usize) -> Option<Vec<Value>> {
    let dtype = *random.pick(&[DType::F32, DType::F32, DType::F64]);
    let (groups, inner, outer) = (random.range(1, 3), random.range(1, 3), random.range(1, 3));
    let numbers =
        |random: &mut Random, low, high| -> Vec<i64> { (0..dims).map(|_| random.range(low, high)).collect() };
    let kernel = numbers(random, 1, 3);
    let image: Vec<i64> = kernel.iter().map(|n| n + random.range(0, 5)).collect();
    let batch = random.range(0, 3);
    let mut sizes = vec![batch, groups * inner];
    sizes.extend(&image);
    if random.percent(15) {
        sizes.remove(0);
    }
    let weight = [&[groups * outer, inner], kernel.as_slice()].concat();
    let tensor = |random: &mut Random, sizes: &[i64]| {
        random.tensor(dtype, sizes, Numbers::Moderate).ok().map(Value::Tensor)
    };
    let (x, w) = (tensor(random, &sizes)?, tensor(random, &weight)?);
    let bias = if random.percent(30) { Value::None } else { tensor(random, &[groups * outer])? };
    let stride = Value::ints(numbers(random, 1, 3));
    let padding = Value::ints(numbers(random, 0, 2));
    let dilation = Value::ints(numbers(random, 1, 2));
    Some(vec![x, w, bias, stride, padding, dilation, Value::Int(groups)])
}

#[test]
fn convolutions_compute_what_they_are_defined_to() {
    let registry = Registry::builtin();
    let run = environment();
    for dims in 1..=3 {
        let op = registry.find(DRAWN_APART[dims - 1], "").expect("a row");
        let mut random = Random::new(dims as u64);
        let (mut count, mut wrong) = (0, Vec::new());
        for _ in 0..150 {
            let Some(operands) = convolution(&mut random, dims) else { continue };
            let types = vec![Type::tensor()];
            match compared(&Call { op, operands, attributes: Vec::new(), types }, &run) {
                Some(Ok(())) => count += 1,
                Some(Err(why)) => wrong.push(why),
                None => {}
            }
        }
        assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(count > 60, "{count} calls of {} were compared", op.full_name());
    }
}
