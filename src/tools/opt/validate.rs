//! `opt --validate-each`: calls each function that a pass changed before and after the pass, with values drawn for the types of
//! its parameters, and reports another answer with the smallest arguments that show it. Knows no pass.
//!
//! A draw that the function refuses before the pass says nothing: a pass may remove an unused op that raises.
//! What the function writes to its arguments counts as its answer.

use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::loops::{Elem, is_kernel};
use crate::dialects::{Registry, Run};
use crate::ir::{Dim, Function, Graph, Module, Stride, Symbol, TensorType, Type, TypeKind};
use crate::passes::manager::{At, Observer, Report};
use crate::rewrite::check::{Copies, Numbers, Random, candidates};
use crate::runtime::Program;
use crate::tensor::pointwise::is_dense;
use crate::tensor::{DType, Device, Layout, Tensor};
use crate::tools::oracle::{differ, runnable};
use crate::value::{Dict, Value};
use hashbrown::HashMap;
use indexmap::IndexMap;
use std::io::Write;
use std::sync::Arc;

/// Draws for one that is not refused, at most.
const PATIENCE: usize = 12;
/// Calls that making arguments smaller may take.
const SHRINKING: usize = 400;
/// Steps that a call may take, and bytes that it may hold: a pass is checked on small values.
const STEPS: u64 = 1_000_000;
const BYTES: u64 = 1 << 28;

/// Elements of a buffer that a kernel takes.
const BUFFER: i64 = 128;

/// Arguments of a call, by the names of parameters.
type Arguments = Vec<(Arc<str>, Value)>;

/// Observes, calls, and keeps what it found.
pub(super) struct Validator {
    registry: Arc<Registry>,
    draws: usize,
    before: Module,
    faults: Vec<Diagnostic>,
    /// Changed functions that were called, and all that were changed.
    called: usize,
    changed: usize,
    /// Why others were not called, with how many of them.
    skipped: IndexMap<String, usize>,
}

impl Validator {
    /// Observes passes over `module`, with a number of draws per function.
    pub(super) fn new(registry: &Arc<Registry>, draws: usize, module: Module) -> Validator {
        let (faults, skipped) = (Vec::new(), IndexMap::new());
        Validator {
            registry: Arc::clone(registry),
            draws,
            before: module,
            faults,
            called: 0,
            changed: 0,
            skipped,
        }
    }

    /// How much was checked, and why not all of it.
    pub(super) fn note(&self) -> String {
        let mut text = format!(
            "note: {} of {} changed functions were called before and after\n",
            self.called, self.changed
        );
        for (reason, count) in &self.skipped {
            text.push_str(&format!("note: {count} not called: {reason}\n"));
        }
        text
    }

    /// Passes that change an answer.
    pub(super) fn into_faults(self) -> Vec<Diagnostic> {
        self.faults
    }

    /// Compares one function that a pass changed.
    fn compare(&mut self, at: &At<'_>, name: Symbol, after: &Module) {
        self.changed += 1;
        match self.function(at, name, after) {
            Ok(None) => self.called += 1,
            Ok(Some(fault)) => {
                self.called += 1;
                self.faults.push(fault);
            }
            Err(reason) => *self.skipped.entry(reason).or_default() += 1,
        }
    }

    /// The fault that was found; the error is why nothing can be said.
    fn function(
        &self,
        at: &At<'_>,
        name: Symbol,
        after: &Module,
    ) -> std::result::Result<Option<Diagnostic>, String> {
        let pass = format!("{}{}", at.pass.name, at.options.to_text());
        let (Some(old), Some(new)) = (self.before.functions.get(&name), after.functions.get(&name)) else {
            return Err(format!("`{pass}` made or removed the function"));
        };
        if old.graph.inputs().len() != new.graph.inputs().len() {
            return Err(format!("`{pass}` changed how many values the function takes"));
        }
        let sides = [self.side(&self.before, name), self.side(after, name)];
        let mut refusal = None;
        let mut decided = 0;
        for draw in 0..self.draws * PATIENCE {
            if decided == self.draws {
                break;
            }
            let mut random = Random::new(0x5eed + draw as u64);
            let arguments = draw_all(old, &mut random)?;
            match sides[0].call(&arguments) {
                Err(error) => refusal = Some(error),
                Ok(answer) => {
                    decided += 1;
                    let other = sides[1].call(&arguments);
                    if differ(&Ok(answer), &other) {
                        return Ok(Some(report(&pass, name, old, &sides, arguments)));
                    }
                }
            }
        }
        match (decided, refusal) {
            (0, Some(error)) => Err(format!("it refused every draw: {}", error.message())),
            (0, None) => Err("nothing was drawn".to_string()),
            _ => Ok(None),
        }
    }

    fn side(&self, module: &Module, name: Symbol) -> Side {
        // A graph alone has no name, and gets one where it is run.
        let is_kernel = module.functions.get(&name).is_some_and(|function| is_kernel(&function.graph));
        let name = if name == "" { "graph" } else { name.as_str() }.to_string();
        Side { program: Program::with(runnable(module), None, Arc::clone(&self.registry)), name, is_kernel }
    }
}

impl Observer for Validator {
    fn after(&mut self, at: &At<'_>, module: &Module, report: &Report, _: &mut dyn Write) {
        if !report.changed {
            return;
        }
        // A pass over the module does not say which functions it changed.
        let names: Vec<Symbol> = match report.functions.is_empty() {
            true => module.functions.keys().copied().collect(),
            false => report.functions.clone(),
        };
        let text = |module: &Module, name: &Symbol| module.functions.get(name).map(|f| f.graph.to_string());
        for name in names {
            if text(&self.before, &name) != text(module, &name) {
                self.compare(at, name, module);
            }
        }
        self.before = module.clone();
    }
}

/// A program before or after a pass.
struct Side {
    program: Program,
    name: String,
    /// A kernel answers with what it may write to, which its arguments show as well.
    is_kernel: bool,
}

impl Side {
    /// The answer, and what the arguments are afterwards. Each call works on copies.
    fn call(&self, arguments: &Arguments) -> Result<Value> {
        let mut own = Copies::default();
        let copies: Vec<Value> = arguments.iter().map(|(_, value)| own.copy(value)).collect::<Result<_>>()?;
        let limits =
            crate::resources::Limits { steps: Some(STEPS), bytes: Some(BYTES), ..Default::default() };
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        run.seed(0);
        // Both sides as they are: a plan would be one more transformation.
        run.set_plan_limit(0);
        let _bounded = run.install();
        let call = || self.program.run(&self.name, copies.clone(), &run);
        let answer = crate::diag::panics::catch("the program", call).and_then(|result| result)?;
        let answer = if self.is_kernel { Value::None } else { waited(answer, 0)? };
        Ok(Value::tuple(vec![answer, Value::tuple(copies)]))
    }
}

/// An answer with what its futures come to: whether work is done at once or later is not the answer.
fn waited(value: Value, depth: usize) -> Result<Value> {
    const DEEPEST: usize = 64;
    Ok(match &value {
        _ if depth > DEEPEST => value,
        Value::Future(future) => waited(future.wait()?, depth + 1)?,
        Value::Tuple(tuple) => {
            let items = tuple.items().iter().map(|item| waited(item.clone(), depth + 1));
            Value::tuple(items.collect::<Result<Vec<_>>>()?)
        }
        Value::List(list) if matches!(list.element_type().kind(), TypeKind::Future(_)) => {
            let items = list.to_vec().into_iter().map(|item| waited(item, depth + 1));
            Value::tuple(items.collect::<Result<Vec<_>>>()?)
        }
        _ => value,
    })
}

/// The error that says what a pass changed, with arguments made as small as they get.
fn report(pass: &str, name: Symbol, function: &Function, sides: &[Side; 2], found: Arguments) -> Diagnostic {
    let shows = |arguments: &Arguments| {
        let before = sides[0].call(arguments).ok()?;
        let after = sides[1].call(arguments);
        let before = Ok(before);
        differ(&before, &after).then_some((before, after))
    };
    let best = shrink(function, found, &|arguments| shows(arguments).is_some());
    let shown = if name == "" { "the graph".to_string() } else { format!("`{name}`") };
    let mut error = Diagnostic::new(ErrorKind::Verify, format!("`{pass}` changes what {shown} answers"));
    for (name, value) in &best {
        error = error.note(format!("with {name} = {}", text(value)));
    }
    if let Some((before, after)) = shows(&best) {
        let answer = |side: Result<Value>| match side {
            Ok(value) => text(&value),
            Err(error) => format!("an error: {}", error.message()),
        };
        error =
            error.note(format!("before it: {}", answer(before))).note(format!("after it: {}", answer(after)));
        error = error.note("answers are followed by what the arguments are after the call");
    }
    error.hint(format!("`--bisect=answer` with these values finds the first step of `{pass}` that does"))
}

fn text(value: &Value) -> String {
    let text = value.to_text();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Smaller arguments that still show the fault.
fn shrink(function: &Function, found: Arguments, shows: &dyn Fn(&Arguments) -> bool) -> Arguments {
    let types: Vec<&Type> = function.graph.inputs().iter().map(|input| function.graph.ty(*input)).collect();
    let fits = |arguments: &Arguments| arguments.iter().zip(&types).all(|((_, value), ty)| fits(value, ty));
    let mut best = found;
    let mut calls = 0;
    'again: loop {
        for candidate in candidates(&best) {
            let candidate: Arguments = candidate.into_iter().collect();
            if !fits(&candidate) {
                continue;
            }
            calls += 1;
            if calls > SHRINKING {
                return best;
            }
            if shows(&candidate) {
                best = candidate;
                continue 'again;
            }
        }
        return best;
    }
}

/// Whether a value is of a type, as far as tensors go.
fn fits(value: &Value, ty: &Type) -> bool {
    let (Value::Tensor(tensor), Some(wanted)) = (value, ty.as_tensor()) else { return true };
    let sizes = tensor.sizes();
    let dim = |(known, size): (&Dim, &i64)| known.known().is_none_or(|known| known == *size);
    wanted.dtype.is_none_or(|dtype| dtype == tensor.dtype())
        && wanted
            .sizes
            .as_deref()
            .is_none_or(|known| known.len() == sizes.len() && known.iter().zip(sizes.iter()).all(dim))
}

/// Values for all parameters; the error is why none can be made.
fn draw_all(function: &Function, random: &mut Random) -> std::result::Result<Arguments, String> {
    let graph: &Graph = &function.graph;
    let mut maker = Maker::new(random);
    let mut all = Vec::new();
    for input in graph.inputs() {
        let name = graph.display_name(*input);
        all.push((Arc::from(name.as_str()), maker.value(graph.ty(*input), 0)?));
    }
    Ok(all)
}

/// A tensor with the elements of another one, in these strides if they leave no gaps.
fn lying(drawn: &Tensor, strides: &[i64]) -> Result<Tensor> {
    let layout = Layout::strided(&drawn.sizes(), strides, 0)?;
    if !is_dense(&layout) {
        return Ok(drawn.clone());
    }
    let place = Tensor::zeros(drawn.dtype(), &[drawn.numel() as i64])?.with_layout(layout)?;
    place.copy_from(drawn)?;
    Ok(place)
}

/// Draws values that suit each other: tensors of which nothing is known have one shape and dtype for the most part.
struct Maker<'r> {
    random: &'r mut Random,
    numbers: Numbers,
    shape: Vec<i64>,
    dtype: DType,
    symbols: HashMap<Dim, i64>,
}

impl<'r> Maker<'r> {
    fn new(random: &'r mut Random) -> Maker<'r> {
        let rank = random.below(4);
        // Square shapes suit products of matrices.
        let size = random.range(1, 4);
        let square = random.percent(50);
        let shape = (0..rank).map(|_| if square { size } else { random.range(1, 4) }).collect();
        let dtype = *random.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::I64, DType::Bool]);
        let numbers = if random.percent(50) { Numbers::Any } else { Numbers::Moderate };
        Maker { random, numbers, shape, dtype, symbols: HashMap::new() }
    }

    fn value(&mut self, ty: &Type, depth: usize) -> std::result::Result<Value, String> {
        const DEEPEST: usize = 8;
        let unknown = || Err(format!("no values are drawn for the type {ty}"));
        if depth > DEEPEST {
            return unknown();
        }
        // Parameters of kernels: buffers that hold what small indices reach, and small numbers.
        if let Some(elem) = Elem::of_buffer_type(ty) {
            let drawn =
                self.random.tensor(elem.dtype(), &[BUFFER], self.numbers).and_then(|tensor| tensor.copy());
            return drawn.map(Value::Tensor).map_err(|error| error.message().to_string());
        }
        if let Some(elem) = Elem::of_scalar_type(ty) {
            return Ok(match elem.dtype() {
                DType::Bool => Value::Bool(self.random.percent(50)),
                dtype if dtype.is_floating() => Value::Float(self.random.float(self.numbers)),
                _ => Value::Int(self.random.range(0, 5)),
            });
        }
        Ok(match ty.kind() {
            TypeKind::Tensor(tensor) => self.tensor(tensor)?,
            TypeKind::Int => Value::Int(self.random.int(Numbers::Moderate)),
            TypeKind::Float => Value::Float(self.random.float(self.numbers)),
            TypeKind::Complex => Value::Complex(self.random.complex(self.numbers)),
            TypeKind::Number if self.random.percent(50) => Value::Int(self.random.int(Numbers::Moderate)),
            TypeKind::Number => Value::Float(self.random.float(self.numbers)),
            TypeKind::Bool => Value::Bool(self.random.percent(50)),
            TypeKind::Str => Value::str(*self.random.pick(&["", "a", "sum", "mean"])),
            TypeKind::None => Value::None,
            TypeKind::Device => Value::Device(Device::CPU.into()),
            TypeKind::Optional(_) if self.random.percent(30) => Value::None,
            TypeKind::Optional(inner) => self.value(inner, depth + 1)?,
            TypeKind::List(element) => {
                let count = self.random.below(4);
                let items = (0..count)
                    .map(|_| self.value(element, depth + 1))
                    .collect::<std::result::Result<_, _>>()?;
                Value::list(element.clone(), items)
            }
            TypeKind::Tuple(elements, None) => Value::tuple(
                elements
                    .iter()
                    .map(|e| self.value(e, depth + 1))
                    .collect::<std::result::Result<Vec<_>, _>>()?,
            ),
            TypeKind::Dict(key, value) => {
                let dict = Dict::new(key.clone(), value.clone());
                for _ in 0..self.random.below(3) {
                    let (key, value) = (self.value(key, depth + 1)?, self.value(value, depth + 1)?);
                    dict.insert(&key, value).map_err(|error| error.message().to_string())?;
                }
                Value::Dict(dict)
            }
            _ => return unknown(),
        })
    }

    fn tensor(&mut self, ty: &TensorType) -> std::result::Result<Value, String> {
        if ty.device.as_ref().is_some_and(|device| *device != Device::CPU) {
            return Err("a parameter is on another device".to_string());
        }
        let sizes: Vec<i64> = match &ty.sizes {
            None => self.shape.clone(),
            Some(sizes) => sizes.iter().map(|size| self.size(*size)).collect(),
        };
        let dtype = ty.dtype.unwrap_or(self.dtype);
        let drawn = self.random.tensor(dtype, &sizes, self.numbers);
        let drawn = drawn.and_then(|drawn| match self.strides(ty) {
            Some(strides) => lying(&drawn, &strides),
            None => Ok(drawn),
        });
        let drawn = drawn.map_err(|error| error.message().to_string())?;
        if ty.requires_grad == Some(true) && (dtype.is_floating() || dtype.is_complex()) {
            drawn.set_requires_grad(true).map_err(|error| error.message().to_string())?;
        }
        Ok(Value::Tensor(drawn))
    }

    /// The strides that a type says, where it says all.
    fn strides(&self, ty: &TensorType) -> Option<Vec<i64>> {
        let size = |n: &u32| self.symbols.get(&Dim::Open(*n)).copied();
        let stride = |stride: &Stride| match stride {
            Stride::Known(n) => Some(*n),
            Stride::Open(factor, open) => open.iter().try_fold(*factor, |all, n| all.checked_mul(size(n)?)),
            _ => None,
        };
        ty.strides.as_deref()?.iter().map(stride).collect()
    }

    fn size(&mut self, size: Dim) -> i64 {
        match size {
            Dim::Known(n) => n,
            Dim::Unknown => self.random.range(1, 4),
            Dim::Symbol(_) | Dim::Open(_) => {
                let drawn = self.random.range(if matches!(size, Dim::Open(_)) { 2 } else { 1 }, 4);
                *self.symbols.entry(size).or_insert(drawn)
            }
        }
    }
}
