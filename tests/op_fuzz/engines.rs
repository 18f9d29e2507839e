//! One call by each engine: the evaluator, a graph without passes, the same graph under the default pipeline with plans and
//! without, and a graph that makes a kernel of the op, compiled and on the interpreter of kernels. All must give the same:
//! dtype, sizes, strides, memory that is shared, what is left of the arguments, or the same error.

use super::values::Random;
use flambeau::backends;
use flambeau::diag::{Diagnostic, ErrorKind, panics};
use flambeau::dialects::prim::constant;
use flambeau::dialects::{Family, Limits, Node, Op, Registry, Run, Tolerance, Variant, resolve};
use flambeau::eval;
use flambeau::ir::{Attr, Graph, Module, Symbol, Type, TypeKind, ValueId};
use flambeau::passes::Pipeline;
use flambeau::runtime::{Program, graph_function};
use flambeau::tensor::{DType, Scalar, Tensor};
use flambeau::toolkit::Toolkit;
use flambeau::tools::case;
use flambeau::value::Value;
use num_complex::Complex64;
use std::sync::LazyLock;
use std::time::Duration;

/// Elements up to which values are compared; of larger tensors, which are expanded small ones, only how they lie.
const COMPARED: usize = 1 << 16;

static DEFAULT: LazyLock<Pipeline> =
    LazyLock::new(|| Toolkit::default().parse_pipeline("default").expect("a named pipeline"));

/// What was compared.
#[derive(Default)]
pub struct Tally {
    /// Calls of which a graph was made.
    pub compared: u64,
    /// Of these, those that gave an answer.
    pub answered: u64,
    /// Calls of groups that ran as kernels.
    pub fused: u64,
}

/// What a call gives.
enum Outcome {
    /// Results and then the arguments as the call left them.
    Answer(Vec<Value>),
    /// What is raised.
    Raises(String),
    /// The call came to a limit, which engines reach at different places.
    Limit,
}

/// What may differ.
#[derive(Clone, Copy)]
struct Bound {
    /// Numbers, within the tolerances of recorded cases; else they are the same bits, any NaN for any other.
    numbers: bool,
    /// Strides of dimensions of size 1. A write that `remove-mutation` made functional gives what the functional op gives:
    /// the same order of elements, but a stride that no element shows is chosen anew, as PyTorch's own pass has it.
    unseen_strides: bool,
}

const EXACT: Bound = Bound { numbers: false, unseen_strides: false };

/// Calls an op in all engines; says where they disagree.
pub fn compare(op: &Op, seed: u64, limits: &Limits, tally: &mut Tally) -> Result<(), String> {
    let Some(call) = Call::new(op, seed) else { return Ok(()) };
    let reference = call.reference(limits);
    let results = match &reference {
        Outcome::Answer(values) => Some(&values[..call.results(values)]),
        _ => None,
    };
    let Some(graph) = call.graph(results, false) else { return Ok(()) };
    let plain = program(graph.clone());
    let alone = call.run(&plain, limits);
    // What has no value of the type that a schema asks for does not come to the op.
    if matches!(&alone, Outcome::Raises(text) if text.contains("f() Expected a value")) {
        return Ok(());
    }
    tally.compared += 1;
    tally.answered += u64::from(matches!(reference, Outcome::Answer(_)));
    agree("a graph without passes", &reference, &alone, EXACT, &graph)?;
    let passed = with_passes(&plain, seed)?;
    let (found, bound) = (call.run(&passed, limits), call.bound(&passed));
    agree("the default pipeline", &reference, &found, bound, &graph)?;
    if matches!(reference, Outcome::Answer(_)) && call.fuses() {
        call.compare_kernels(limits, tally, results)?;
    }
    Ok(())
}

fn program(graph: Graph) -> Program {
    let mut module = Module::default();
    let function = graph_function("f", graph);
    module.functions.insert(function.name, function);
    Program::with(module, None, Registry::builtin())
}

/// Under the default pipeline; most with plans, as programs run.
fn with_passes(plain: &Program, seed: u64) -> Result<Program, String> {
    let change = |module: &mut Module, registry: &Registry| DEFAULT.run(module, registry).map(|_| ());
    let passed = plain.transformed(change).map_err(|e| format!("the default pipeline fails: {e}"))?;
    Ok(if seed.is_multiple_of(4) { passed } else { passed.planned() })
}

/// A call whose arguments can be made again and again.
struct Call<'a> {
    op: &'a Op,
    seed: u64,
    /// Types of the arguments, without variables.
    types: Vec<Type>,
}

impl<'a> Call<'a> {
    fn new(op: &'a Op, seed: u64) -> Option<Call<'a>> {
        // Of an object it is the address, which differs from call to call.
        if op.full_name() == "aten::hash.generic" {
            return None;
        }
        let schema = op.schema().ok()?;
        let random = Random::bound(seed);
        let types = schema.arguments.iter().map(|argument| random.plain(&argument.ty)).collect();
        Some(Call { op, seed, types })
    }

    fn arguments(&self) -> Vec<Value> {
        let mut values = super::arguments(self.op, &mut Random::bound(self.seed));
        if self.seed % 8 == 1 {
            // One tensor twice.
            let mut tensors = values.iter_mut().filter(|v| matches!(v, Value::Tensor(_)));
            if let (Some(first), Some(second)) = (tensors.next(), tensors.next()) {
                *second = first.clone();
            }
        }
        values
    }

    fn results(&self, values: &[Value]) -> usize {
        values.len() - self.types.len()
    }

    fn reference(&self, limits: &Limits) -> Outcome {
        let run = fresh(limits);
        let _installed = run.install();
        flambeau::runtime::prepare(&run, &Registry::builtin());
        let values = self.arguments();
        let result = panics::catch("the op", || eval::call(self.op, &values, Node::default(), &run));
        outcome(result.and_then(|r| r).map(|results| results.into_iter().collect()), values)
    }

    fn run(&self, program: &Program, limits: &Limits) -> Outcome {
        let run = fresh(limits);
        let mut values = self.arguments();
        let given = values.iter().enumerate().filter(|(n, v)| !self.is_constant(*n, v));
        let given: Vec<Value> = given.map(|(_, v)| v.clone()).collect();
        let result = panics::catch("the program", || program.run("f", given, &run)).and_then(|r| r);
        let count = program.function("f").map_or(0, |f| f.graph.outputs().len());
        let result = result.map(|value| {
            let mut outputs = match (&value, count) {
                (_, 0) => Vec::new(),
                (Value::Tuple(parts), n) if n > 1 => parts.items().to_vec(),
                _ => vec![value],
            };
            // Calls from outside copy containers; those that the op saw are outputs, too.
            let seen: Vec<usize> = (0..values.len()).filter(|n| self.is_copied(*n, &values[*n])).collect();
            let copies = outputs.split_off(outputs.len().saturating_sub(seen.len()));
            seen.into_iter().zip(copies).for_each(|(n, copy)| values[n] = copy);
            outputs
        });
        outcome(result, values)
    }

    /// Whether an argument is a container that a call from outside copies.
    fn is_copied(&self, n: usize, value: &Value) -> bool {
        matches!(value, Value::List(_) | Value::Dict(_)) && !self.is_constant(n, value)
    }

    /// Numbers, texts and sizes are constants of half of the graphs, so that passes know them.
    fn is_constant(&self, n: usize, value: &Value) -> bool {
        let sizes = matches!(value, Value::List(list) if matches!(list.element_type().kind(), TypeKind::Int | TypeKind::SymInt));
        let mutable = matches!(value, Value::Tensor(_) | Value::List(_) | Value::Dict(_));
        let chosen = (self.seed >> 8).is_multiple_of(2);
        value.is_none()
            || (chosen && !mutable && constant::attr(value).is_some())
            // The first argument may be a list that is written.
            || (chosen && sizes && n > 0)
    }

    /// A graph of the call; with a second op behind it, so that both become a kernel, if it is for kernels. None where graph
    /// text, which has no names of overloads, means another overload by these types.
    fn graph(&self, results: Option<&[Value]>, kernel: bool) -> Option<Graph> {
        let schema = self.op.schema().ok()?;
        let mut graph = Graph::new();
        let root = graph.root();
        let mut operands = Vec::new();
        let mut copied = Vec::new();
        for (n, value) in self.arguments().iter().enumerate() {
            let ty = input_type(&self.types[n], value);
            operands.push(if self.is_constant(n, value) {
                emit_constant(&mut graph, constant::attr(value)?, value.ty())
            } else {
                graph.add_input(ty)
            });
            copied.extend(operands.last().copied().filter(|_| self.is_copied(n, value)));
        }
        if kernel && self.op.variant() != Variant::Plain {
            // What is written lies row by row: passes may make another op of the write, whose strides are its own.
            let dense = emit_constant(&mut graph, Attr::Int(0), Type::int());
            let first = if self.op.variant() == Variant::InPlace { 0 } else { operands.len() - 1 };
            let copy =
                graph.emit(root, Symbol::new("aten::clone"), &[operands[first], dense], &[Type::tensor()]);
            operands[first] = graph.result(copy, 0)?;
        }
        let random = Random::bound(self.seed);
        let ty = |n: usize, ty: &Type| match results.and_then(|r| r.get(n)) {
            Some(value) if ty.has_free_vars() || matches!(ty.kind(), TypeKind::Any) => value.ty(),
            _ => random.plain(ty),
        };
        let types: Vec<Type> = schema.returns.iter().enumerate().map(|(n, r)| ty(n, &r.ty)).collect();
        let node = graph.emit(root, self.op.name(), &operands, &types);
        let mut outputs: Vec<ValueId> = graph.results(node).to_vec();
        if kernel {
            let one = emit_constant(&mut graph, Attr::Int(1), Type::int());
            let sum = [*outputs.first()?, *outputs.first()?, one];
            let sum = graph.emit(root, Symbol::new("aten::add"), &sum, &[Type::tensor()]);
            outputs.push(graph.result(sum, 0)?);
        }
        outputs.extend(copied);
        outputs.into_iter().for_each(|value| graph.add_output(value));
        resolve(&Registry::builtin(), &graph, node).ok().filter(|found| found.same(self.op)).map(|_| graph)
    }

    /// Whether the op can stand in a kernel.
    fn fuses(&self) -> bool {
        let one = self.op.schema().is_ok_and(|s| s.returns.len() == 1 && s.returns[0].ty.is_tensor());
        one && self.op.def().family != Family::View
            && (self.op.def().scalar.is_some() || self.op.def().rows.is_some())
    }

    fn compare_kernels(
        &self,
        limits: &Limits,
        tally: &mut Tally,
        results: Option<&[Value]>,
    ) -> Result<(), String> {
        let Some(graph) = self.graph(results, true) else { return Ok(()) };
        let plain = program(graph.clone());
        let expected = self.run(&plain, limits);
        let passed = with_passes(&plain, self.seed)?;
        let found = self.run(&passed, limits);
        let report = passed.fusion_report();
        tally.fused += report.fused_calls;
        agree("a compiled kernel", &expected, &found, self.bound(&passed), &graph)?;
        if report.fused_calls > 0 {
            let interp = backends::by_name("interp").map_err(|e| e.to_string())?;
            let slow = passed.on(interp);
            let found = self.run(&slow, limits);
            agree("an interpreted kernel", &expected, &found, self.bound(&slow), &graph)?;
        }
        Ok(())
    }

    /// Kernels have functions of their own; what runs op by op is the same.
    fn bound(&self, program: &Program) -> Bound {
        let fused = program.fusion_report().fused_calls > 0;
        Bound {
            numbers: fused && self.op.def().tolerance != Tolerance::Exact,
            unseen_strides: self.op.name().base().ends_with('_'),
        }
    }
}

fn fresh(limits: &Limits) -> Run {
    let run = Run::with_limits(Box::new(std::io::sink()), *limits);
    run.seed(0);
    run
}

/// The type of a graph's input: that of the schema, but what a program knows of a value that may be several things.
fn input_type(ty: &Type, value: &Value) -> Type {
    match ty.kind() {
        TypeKind::Optional(_) | TypeKind::Number | TypeKind::Any | TypeKind::Union(_) => value.ty(),
        TypeKind::SymInt | TypeKind::ScalarType | TypeKind::Layout | TypeKind::MemoryFormat => Type::int(),
        TypeKind::SymFloat => Type::float(),
        TypeKind::SymBool => Type::bool(),
        TypeKind::List(inner) => Type::list(match inner.kind() {
            TypeKind::SymInt => Type::int(),
            _ => inner.clone(),
        }),
        _ => ty.clone(),
    }
}

fn emit_constant(graph: &mut Graph, value: Attr, ty: Type) -> ValueId {
    let root = graph.root();
    let op = graph.emit(root, Symbol::new("prim::Constant"), &[], &[ty]);
    if !matches!(value, Attr::None) {
        graph.set_attr(op, "value", value);
    }
    graph.result(op, 0).expect("one result")
}

fn outcome(result: Result<Vec<Value>, Diagnostic>, arguments: Vec<Value>) -> Outcome {
    match result {
        Ok(results) => Outcome::Answer(results.into_iter().chain(arguments).collect()),
        Err(error) if error.kind() == ErrorKind::Limit => Outcome::Limit,
        Err(error) => Outcome::Raises(format!(
            "{}: {}",
            error.report().class.as_deref().unwrap_or("error"),
            error.message()
        )),
    }
}

fn agree(
    engine: &str,
    expected: &Outcome,
    found: &Outcome,
    bound: Bound,
    graph: &Graph,
) -> Result<(), String> {
    let difference = match (expected, found) {
        (Outcome::Limit, _) | (_, Outcome::Limit) => None,
        (Outcome::Raises(a), Outcome::Raises(b)) if a == b => None,
        (Outcome::Answer(a), Outcome::Answer(b)) if a.len() == b.len() => {
            let mut each = a.iter().zip(b).enumerate();
            let differing = each.find_map(|(n, (a, b))| Some(format!("value {n}: {}", differ(a, b, bound)?)));
            let (one, other) = (sharing(a), sharing(b));
            differing.or_else(|| (one != other).then(|| format!("shares {other:?}, not {one:?}")))
        }
        _ => Some(format!("gives {}, not {}", shown(found), shown(expected))),
    };
    difference.map_or(Ok(()), |text| Err(format!("{engine}: {text}\n{graph}")))
}

fn shown(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Answer(values) => {
            format!("({})", values.iter().map(super::show).collect::<Vec<_>>().join(", "))
        }
        Outcome::Raises(text) => text.clone(),
        Outcome::Limit => "a limit".into(),
    }
}

/// Which values are one object or look at one memory.
fn sharing(values: &[Value]) -> Vec<(usize, usize)> {
    let same = |a: &Value, b: &Value| match (a, b) {
        (Value::Tensor(a), Value::Tensor(b)) => a.storage().same(&b.storage()),
        (Value::List(a), Value::List(b)) => a.same(b),
        (Value::Dict(a), Value::Dict(b)) => a.same(b),
        _ => false,
    };
    let pairs = |n: usize| (0..n).filter(move |m| same(&values[n], &values[*m])).map(move |m| (m, n));
    (0..values.len()).flat_map(pairs).collect()
}

/// How a value differs from the expected one.
fn differ(expected: &Value, found: &Value, bound: Bound) -> Option<String> {
    let items = |a: &[Value], b: &[Value]| {
        if a.len() != b.len() {
            return Some(format!("{} elements, not {}", b.len(), a.len()));
        }
        a.iter().zip(b).find_map(|(a, b)| differ(a, b, bound))
    };
    let texts = || {
        let (a, b) = (expected.to_text(), found.to_text());
        (a != b).then(|| format!("{b}, not {a}"))
    };
    let number =
        |a: Complex64, b: Complex64| (!close(a, b, DType::F64, bound)).then(|| format!("{b:?}, not {a:?}"));
    match (expected, found) {
        (Value::Tensor(a), Value::Tensor(b)) => tensors(a, b, bound),
        (Value::Float(a), Value::Float(b)) => number(Complex64::new(*a, 0.0), Complex64::new(*b, 0.0)),
        (Value::Complex(a), Value::Complex(b)) => number(*a, *b),
        (Value::List(a), Value::List(b)) => items(&a.to_vec(), &b.to_vec()),
        (Value::Tuple(a), Value::Tuple(b)) => items(a.items(), b.items()),
        (Value::Dict(a), Value::Dict(b)) => {
            let flat = |d: &flambeau::value::Dict| -> Vec<Value> {
                d.entries().iter().flat_map(|(k, v)| [k.to_value(), v.clone()]).collect()
            };
            items(&flat(a), &flat(b))
        }
        (Value::Object(a), Value::Object(b)) if a.class() == b.class() => None,
        _ if expected.kind_name() != found.kind_name() => {
            Some(format!("{}, not {}", found.kind_name(), expected.kind_name()))
        }
        _ => texts(),
    }
}

fn tensors(expected: &Tensor, found: &Tensor, bound: Bound) -> Option<String> {
    // Of bytes that are viewed as a quantized dtype nothing says which numbers they stand for.
    let stands = |t: &Tensor| t.quantizer().is_some();
    if expected.is_plain() != found.is_plain() || stands(expected) != stands(found) {
        return Some("a tensor of another kind".into());
    }
    if stands(expected) {
        return tensors(&expected.integers(), &found.integers(), bound);
    }
    if !expected.is_plain() {
        return tensors(&expected.padded(), &found.padded(), bound);
    }
    let looks = |t: &Tensor| {
        let (sizes, mut strides) = (t.sizes(), t.strides());
        if bound.unseen_strides {
            strides
                .iter_mut()
                .zip(&sizes)
                .filter(|(_, size)| **size == 1)
                .for_each(|(stride, _)| *stride = 1);
        }
        let (dtype, sizes, strides) = (t.dtype(), sizes.as_slice(), strides.as_slice());
        format!("{dtype:?} {sizes:?} strides {strides:?} grad {}", t.requires_grad())
    };
    let (a, b) = (looks(expected), looks(found));
    if a != b {
        return Some(format!("{b}, not {a}"));
    }
    if expected.numel() > COMPARED || expected.is_quantized() {
        return None;
    }
    let (a, b) = match (expected.to_scalars(), found.to_scalars()) {
        (Ok(a), Ok(b)) => (a, b),
        (a, b) => return (a.is_ok() != b.is_ok()).then(|| "elements that cannot be read".to_string()),
    };
    let dtype = expected.dtype();
    let pairs = a.iter().zip(&b).enumerate();
    let mut wrong = pairs.filter(|(_, (a, b))| match (a, b) {
        (Scalar::Int(_) | Scalar::Bool(_), _) => a != b,
        _ => !close(a.to_complex(), b.to_complex(), dtype, bound),
    });
    wrong.next().map(|(n, (a, b))| format!("{dtype:?} element {n} is {b:?}, not {a:?}"))
}

fn close(expected: Complex64, found: Complex64, dtype: DType, bound: Bound) -> bool {
    let same = |a: f64, b: f64| (a.is_nan() && b.is_nan()) || a.to_bits() == b.to_bits();
    if same(expected.re, found.re) && same(expected.im, found.im) {
        return true;
    }
    let (relative, absolute) = case::tolerance(dtype);
    bound.numbers && (expected == found || (expected - found).norm() <= absolute + relative * expected.norm())
}

/// Limits of a call.
pub fn limits(bytes: u64) -> Limits {
    Limits { bytes: Some(bytes), time: Some(Duration::from_secs(3)), ..Limits::default() }
}
