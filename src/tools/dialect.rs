//! `flambeau dialect check`: loads dialect files and compares each derivative with differences of the op's meaning.
//!
//! A derivative by an argument is a function of the arguments and of the gradient of the result. With a random
//! gradient w, it must be the gradient of the sum of w f(x): each element is compared with (L(x + h) - L(x - h)) / 2h in
//! float64. Where the difference from the left is another than that from the right, f has an edge and nothing is
//! compared.

use super::io::Io;
use super::progress::Progress;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::constraint::{Law, Parameter, ParameterKind};
use crate::dialects::text::{GradText, OpText, parse_dialect};
use crate::dialects::{Limits, Registry, Run};
use crate::frontend::dialect;
use crate::ir::{Attr, Function, Module, Type, TypeKind};
use crate::runtime::{Program, ScriptComposites};
use crate::tensor::Tensor;
use crate::toolkit;
use crate::tools::limits::LimitOptions;
use crate::tools::threads::ThreadOptions;
use crate::value::Value;
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::sync::Arc;

/// Tried points for each derivative.
const POINTS: usize = 6;
/// Width of differences.
const WIDTH: f64 = 1e-5;
/// How far a derivative may be from the difference, relative to their size.
const TOLERANCE: f64 = 1e-4;

/// Instructions that all points of one derivative may take, unless the command line says otherwise: a meaning that does not end
/// must not keep the command from ending.
const STEPS: u64 = 20_000_000;

/// Options of `flambeau dialect`.
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    action: Action,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Load dialect files (which checks their facts) and compare derivatives with finite differences; reject wrong ones
    Check {
        /// The files; a later one may use the ops of earlier ones
        #[arg(required = true)]
        files: Vec<PathBuf>,
    },
}

/// Runs the command; gives whether nothing was refused.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    options.threads.set();
    let Action::Check { files } = &options.action;
    let given = options.limits.limits();
    let limits = Limits { steps: given.steps.or(Some(STEPS)), ..given };
    let mut registry = Arc::clone(io.toolkit.registry());
    let mut refused = 0;
    for file in files {
        let source = Source::new(file.display().to_string(), io.read_text(file)?);
        registry = toolkit::of_text(&registry, &source)?;
        let text = parse_dialect(&source)?;
        let (ops, types) = (text.ops.len(), text.types.len() + text.attributes.len());
        io.print(&format!(
            "{}: dialect {}: {ops} ops, {types} types and attributes\n",
            file.display(),
            text.name
        ));
        let progress = Progress::new("dialect", text.ops.iter().map(|op| op.grad.len()).sum(), io);
        for op in &text.ops {
            progress.about(op.name());
            for grad in &op.grad {
                let verdict = compare(&registry, op, grad, limits);
                refused += usize::from(matches!(verdict, Verdict::Refused(_)));
                progress.hidden(|| io.print(&format!("{}\n", verdict.line(op, grad))));
                progress.step();
            }
        }
        progress.end();
    }
    Ok(refused == 0)
}

/// What is found of a derivative.
enum Verdict {
    /// It agreed at this number of elements.
    Agrees(usize),
    /// It cannot be compared, for this reason.
    Open(String),
    /// It is another function; with a point that shows it.
    Refused(String),
}

impl Verdict {
    fn line(&self, op: &OpText, grad: &GradText) -> String {
        let what = format!("{} by {}", op.name(), grad.argument);
        let line = grad.span.line_column().0;
        match self {
            Verdict::Agrees(count) => format!("agrees  {what}: with differences at {count} elements"),
            Verdict::Open(why) => format!("open    {what}: {why}"),
            Verdict::Refused(why) => format!(
                "REFUSED {what} (line {line}): {why}\n        a derivative that is not the meaning's own is written `surrogate`"
            ),
        }
    }
}

/// Compares one derivative with differences.
fn compare(registry: &Arc<Registry>, op: &OpText, grad: &GradText, limits: Limits) -> Verdict {
    if grad.surrogate {
        return Verdict::Open("a surrogate is not the derivative of the meaning".into());
    }
    let Some((text, span)) = &op.meaning else {
        return Verdict::Open("the op has no meaning to compare with".into());
    };
    let compiled = dialect::meaning(registry, &Source::new(span.source().name(), text.as_str()))
        .and_then(|meaning| Ok((meaning, dialect::derivative(registry, op, grad)?)));
    match compiled {
        Ok((meaning, derivative)) => Case::new(registry, op, grad, (meaning, derivative), limits).compare(),
        Err(error) => Verdict::Open(error.message().to_string()),
    }
}

/// A derivative with what it is compared with.
struct Case<'a> {
    op: &'a OpText,
    grad: &'a GradText,
    /// Types of the meaning's parameters: arguments, then attributes.
    types: Vec<(String, Type)>,
    meaning: (Program, String),
    derivative: (Program, String),
    run: Run,
}

impl<'a> Case<'a> {
    fn new(
        registry: &Arc<Registry>,
        op: &'a OpText,
        grad: &'a GradText,
        (meaning, derivative): (Function, Function),
        limits: Limits,
    ) -> Case<'a> {
        let types = meaning.schema.arguments.iter().map(|a| (a.name.to_string(), a.ty.clone())).collect();
        let program = |function: Function| {
            let name = function.name.to_string();
            let mut module = Module::default();
            module.functions.insert(function.name, function);
            (Program::with(module, None, Arc::clone(registry)), name)
        };
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        let run = run.with_composites(ScriptComposites::of(registry));
        run.set_grad_enabled(false);
        Case { op, grad, types, meaning: program(meaning), derivative: program(derivative), run }
    }

    fn compare(&self) -> Verdict {
        let mut agreed = 0;
        let mut trouble = None;
        for point in 0..POINTS {
            match self.at(point) {
                Ok(count) => agreed += count,
                Err(Verdict::Open(why)) => trouble = Some(why),
                Err(verdict) => return verdict,
            }
        }
        match trouble {
            _ if agreed > 0 => Verdict::Agrees(agreed),
            Some(why) => Verdict::Open(why),
            None => Verdict::Open("every point that was tried is an edge of the meaning".into()),
        }
    }

    /// Compares at one point; gives how many elements agreed.
    fn at(&self, point: usize) -> Result<usize, Verdict> {
        let open = |error: Diagnostic| Verdict::Open(error.message().to_string());
        let mut random = Random(0x5eed + point as u64);
        let arguments = self.arguments(point, &mut random).map_err(Verdict::Open)?;
        let place = self.types.iter().position(|(name, _)| *name == self.grad.argument);
        let Some(place) = place else { return Err(Verdict::Open("the meaning does not take it".into())) };
        let result = self.meaning.0.run(&self.meaning.1, fresh(&arguments), &self.run).map_err(open)?;
        let outputs = tensors(&result);
        if outputs.is_empty() || outputs.iter().any(|t| !t.dtype().is_floating()) {
            return Err(Verdict::Open("the meaning gives no floating point tensor".into()));
        }
        let weights: Vec<Vec<f64>> =
            outputs.iter().map(|t| (0..t.numel()).map(|_| random.between(-1.0, 1.0)).collect()).collect();
        let mut all = fresh(&arguments);
        all.extend(self.gradient_arguments(&result, &outputs, &weights).map_err(open)?);
        let found = self.derivative.0.run(&self.derivative.1, all, &self.run).map_err(open)?;
        let found = tensors(&found);
        let inputs = tensors(&arguments[place]);
        if found.len() != inputs.len() {
            let why = format!("it gives {} tensors for {}", found.len(), inputs.len());
            return Err(Verdict::Refused(why));
        }
        let mut agreed = 0;
        for (which, (input, found)) in inputs.iter().zip(&found).enumerate() {
            if found.sizes() != input.sizes() {
                let why =
                    format!("it has sizes {:?} where the argument has {:?}", found.sizes(), input.sizes());
                return Err(Verdict::Refused(why));
            }
            let found = numbers(found).map_err(open)?;
            for (element, found) in found.iter().enumerate() {
                let loss = |by: f64| self.loss(&arguments, (place, which, element, by), &weights);
                let (low, middle, high) = (loss(-WIDTH)?, loss(0.0)?, loss(WIDTH)?);
                let (left, right) = ((middle - low) / WIDTH, (high - middle) / WIDTH);
                let scale = 1.0 + left.abs().max(right.abs());
                if !left.is_finite() || !right.is_finite() || (left - right).abs() > 1e-2 * scale {
                    continue;
                }
                let wanted = (high - low) / (2.0 * WIDTH);
                if (found - wanted).abs() > TOLERANCE * scale || found.is_nan() {
                    return Err(Verdict::Refused(format!(
                        "{found:.6} is not {wanted:.6}, the difference at element {element} of {}",
                        self.shown(&arguments)
                    )));
                }
                agreed += 1;
            }
        }
        Ok(agreed)
    }

    /// `grad` and `result`, or `grads` and all results.
    fn gradient_arguments(
        &self,
        result: &Value,
        outputs: &[Tensor],
        weights: &[Vec<f64>],
    ) -> Result<Vec<Value>> {
        let grads = outputs.iter().zip(weights);
        let grads = grads.map(|(t, w)| Ok(Value::Tensor(Tensor::from_vec(w, &t.sizes())?)));
        let mut grads = grads.collect::<Result<Vec<Value>>>()?;
        Ok(match result {
            Value::Tuple(tuple) => {
                let mut all = vec![Value::list(Type::tensor(), grads)];
                all.extend(tuple.items().iter().cloned());
                all
            }
            one => vec![grads.pop().unwrap_or_default(), one.clone()],
        })
    }

    /// The weighted sum of the results, with one element of an argument moved.
    fn loss(
        &self,
        arguments: &[Value],
        (place, which, element, by): (usize, usize, usize, f64),
        weights: &[Vec<f64>],
    ) -> Result<f64, Verdict> {
        let open = |error: Diagnostic| Verdict::Open(error.message().to_string());
        let mut moved = fresh(arguments);
        if let Some(value) = moved.get_mut(place) {
            *value = shifted(value, which, element, by).map_err(open)?;
        }
        let result = self.meaning.0.run(&self.meaning.1, moved, &self.run).map_err(open)?;
        let mut sum = 0.0;
        for (tensor, weights) in tensors(&result).iter().zip(weights) {
            sum += numbers(tensor).map_err(open)?.iter().zip(weights).map(|(a, w)| a * w).sum::<f64>();
        }
        Ok(sum)
    }

    /// Values for the meaning's parameters.
    fn arguments(&self, point: usize, random: &mut Random) -> Result<Vec<Value>, String> {
        // All tensors of one point have the same sizes: most ops take that.
        let sizes: &[i64] = [&[3][..], &[2, 3], &[2, 2], &[3, 3], &[], &[2, 2, 2]][point % 6];
        let schema = crate::ir::parse_schema(&self.op.schema).map_err(|e| e.message().to_string())?;
        let all = self.types.iter().map(|(name, ty)| {
            let attribute = self.op.laws.iter().find_map(|law| match law {
                Law::Attribute(parameter) if parameter.name == name.as_str() => Some(parameter),
                _ => None,
            });
            if let Some(parameter) = attribute {
                return attribute_value(parameter)
                    .ok_or_else(|| format!("no value for the attribute '{name}' is known"));
            }
            let default =
                schema.arguments.iter().find(|a| a.name == name.as_str()).and_then(|a| a.default.as_ref());
            match default.and_then(plain) {
                Some(value) => Ok(value),
                None => value_of(ty, sizes, random)
                    .ok_or_else(|| format!("no value for '{name}' of type {ty} is known")),
            }
        });
        all.collect()
    }

    fn shown(&self, arguments: &[Value]) -> String {
        let named = self.types.iter().zip(arguments).map(|((name, _), value)| match value {
            Value::Tensor(t) => format!("{name}={:.4?}", numbers(t).unwrap_or_default()),
            other => format!("{name}={}", other.to_text()),
        });
        named.collect::<Vec<_>>().join(", ")
    }
}

/// Tensors of their own, so that what one run writes no other one sees.
fn fresh(values: &[Value]) -> Vec<Value> {
    let copy = |value: &Value| shifted(value, usize::MAX, 0, 0.0).unwrap_or_else(|_| value.clone());
    values.iter().map(copy).collect()
}

/// A copy of a tensor, or of a list of tensors, with one element moved.
fn shifted(value: &Value, which: usize, element: usize, by: f64) -> Result<Value> {
    let copy = |tensor: &Tensor, here: bool| -> Result<Value> {
        let mut elements = numbers(tensor)?;
        if let Some(at) = elements.get_mut(element).filter(|_| here) {
            *at += by;
        }
        Ok(Value::Tensor(Tensor::from_vec(&elements, &tensor.sizes())?))
    };
    match value {
        Value::Tensor(tensor) if tensor.dtype().is_floating() => copy(tensor, which == 0),
        Value::List(list) if list.element_type().is_tensor() => {
            let items = list.items();
            let copies = items.iter().enumerate().map(|(n, item)| match item {
                Value::Tensor(tensor) => copy(tensor, n == which),
                other => Ok(other.clone()),
            });
            Ok(Value::list(Type::tensor(), copies.collect::<Result<_>>()?))
        }
        other => Ok(other.clone()),
    }
}

fn tensors(value: &Value) -> Vec<Tensor> {
    match value {
        Value::Tensor(tensor) => vec![tensor.clone()],
        Value::List(list) => list.items().iter().flat_map(tensors).collect(),
        Value::Tuple(tuple) => tuple.items().iter().flat_map(tensors).collect(),
        _ => Vec::new(),
    }
}

fn numbers(tensor: &Tensor) -> Result<Vec<f64>> {
    Ok(tensor.to_scalars()?.into_iter().map(|scalar| scalar.to_f64()).collect())
}

/// A random value of a type; none where nothing is known to fit.
fn value_of(ty: &Type, sizes: &[i64], random: &mut Random) -> Option<Value> {
    let mut tensor = || {
        let count = sizes.iter().product::<i64>().unsigned_abs() as usize;
        let elements: Vec<f64> = (0..count).map(|_| random.between(0.3, 1.7)).collect();
        Tensor::from_vec(&elements, sizes).ok().map(Value::Tensor)
    };
    match ty.kind() {
        TypeKind::Tensor(_) => tensor(),
        TypeKind::Optional(inner) => value_of(inner, sizes, random),
        TypeKind::List(inner) if inner.is_tensor() => {
            Some(Value::list(Type::tensor(), vec![tensor()?, tensor()?]))
        }
        TypeKind::Float | TypeKind::Number => Some(Value::Float(random.between(0.5, 1.5))),
        TypeKind::Int => Some(Value::Int(0)),
        TypeKind::Bool => Some(Value::Bool(true)),
        _ => None,
    }
}

/// A default of a schema that is a plain value.
fn plain(attr: &Attr) -> Option<Value> {
    Some(match attr {
        Attr::Int(x) => Value::Int(*x),
        Attr::Float(x) => Value::Float(*x),
        Attr::Bool(x) => Value::Bool(*x),
        Attr::Str(x) => Value::Str(x.as_ref().into()),
        Attr::None => Value::None,
        _ => return None,
    })
}

/// A value that an attribute may have: its default, or the first of a few that its conditions take.
fn attribute_value(parameter: &Parameter) -> Option<Value> {
    if let Some(default) = &parameter.default {
        return plain(default);
    }
    let listed = parameter.conditions.iter().find_map(|condition| match condition {
        crate::dialects::constraint::Condition::In(values) => Some(values.clone()),
        crate::dialects::constraint::Condition::Compare(..) => None,
    });
    let tried: Vec<Attr> = listed.unwrap_or_else(|| match parameter.kind {
        ParameterKind::Int => (0..=64).chain(-64..0).map(Attr::Int).collect(),
        ParameterKind::Float => [0.5, 1.0, 2.0, 0.1, 10.0, -0.5, -1.0, 0.0, 100.0].map(Attr::Float).to_vec(),
        ParameterKind::Bool => vec![Attr::Bool(true), Attr::Bool(false)],
        ParameterKind::Str => vec![Attr::Str("".into())],
        _ => Vec::new(),
    });
    tried.iter().find(|attr| parameter.check(attr).is_ok()).and_then(plain)
}

/// Numbers by splitmix64, the same in every run.
struct Random(u64);

impl Random {
    fn between(&mut self, low: f64, high: f64) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        let unit = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
        low + (high - low) * unit
    }
}
