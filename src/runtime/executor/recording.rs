//! Plans of calls that record gradients. The function's graph, with the parameters that require grad as further inputs, is
//! split into a forward and a backward; both are fused and compiled, and the tape has one operation for the whole call.
//!
//! Buffers that the call writes to, as batch norm does its running statistics, are inputs too: the forward reads them as they
//! were when it began, gives what they become, and that is copied to them when it has ended.
//!
//! Random numbers are drawn before the forward begins and are operands too ([`super::draws`]).
//!
//! Where that cannot be, the call runs without a plan, with the reason: control flow that depends on data, other writes, random
//! numbers that do, results that are views of what was given. It knows no op by name.

use super::super::code::{self, Code};
use super::super::derivatives::{Derivatives, detached};
use super::super::interpreter::execute;
use super::super::program::Inner;
use super::build::{Plan, Subject, compile_groups, optimized};
use super::making::{Making, Step};
use super::origins;
use super::parts::{Parts, requires_grad};
use super::replay::Replay;
use super::results::Results;
use super::{draws, spec};
use crate::analysis::{AliasDb, facts};
use crate::autodiff;
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Autograd, Family, Outputs, Region, Registry, Run};
use crate::ir::{Attr, Graph, Module, OpId, Type, TypeKind, ValueDef, ValueId};
use crate::passes::{self, Context, Pipeline};
use crate::tensor::Tensor;
use crate::value::Value;
use hashbrown::HashSet;
use std::sync::{Arc, LazyLock};

static FREEZE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record-freeze"));
static PREPARE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record"));
static FINISH: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("record-finish"));
static ERASE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("erase-shape-information"));

/// Elements of a buffer up to which it is copied at each call.
const MOST_COPIED: usize = 1 << 16;

/// How calls of a plan are recorded.
pub struct Recording {
    /// What errors call it: the op that makes the first output.
    name: String,
    /// The function before it was split, op by op.
    code: Arc<Code>,
    _graph: Arc<Graph>,
    /// From operands, what is kept and gradients of outputs that follow, to gradients of operands that want one.
    backward: Arc<Code>,
    pub(super) backward_graph: Arc<Graph>,
    /// What of the arguments are operands.
    parts: Parts,
    /// Parameters that are operands after the arguments, and other tensors whose memory was lent.
    parameters: Vec<Tensor>,
    /// Buffers that the call writes to, whose elements are operands after the parameters.
    buffers: Vec<Tensor>,
    /// What draws the random numbers of a call: operands after the buffers.
    draws: Option<Arc<Code>>,
    pub(super) draws_graph: Option<Arc<Graph>>,
    /// Of what the forward gives after its outputs, which buffer it is to be copied to.
    written: Vec<usize>,
    /// Operands that want a gradient.
    wanted: Vec<bool>,
    reads: Vec<bool>,
    follows: Vec<bool>,
    /// Of tensors that the forward gives, those of which a bool says whether they require grad.
    open: Vec<usize>,
    keeps: bool,
    /// How results are made of what the forward gives: first tensors, then other values, then what buffers become, then the bools,
    /// then what is kept.
    results: Results,
    is_tuple: bool,
    /// Bytes that a call keeps for its backward besides operands.
    pub(super) kept_bytes: u64,
    /// Backward graphs where some outputs have no gradient.
    others: Arc<Derivatives>,
}

/// The plan of a call that is recorded, or why there is none; None where nothing requires grad.
pub(super) fn attempt(subject: &Subject<'_>) -> Result<Option<Result<Plan, String>>> {
    let (mut graph, mut guards, mut making) =
        optimized(subject, (FREEZE.as_ref().map_err(Clone::clone)?, false), None)?;
    if !guards.any_requires_grad() && !subject.arguments.iter().any(requires_grad) {
        return Ok(None);
    }
    let (parts, operands) = Parts::take_apart(&mut graph, subject.context.registry, subject.arguments);
    if operands.iter().any(|value| !matches!(value, Value::Tensor(_)) && requires_grad(value)) {
        return Ok(Some(Err("tensors in a list that is kept or written to require grad".to_string())));
    }
    let is_empty = |value: &Value| matches!(value, Value::Tensor(t) if t.numel() == 0 && t.requires_grad());
    if operands.iter().any(is_empty) {
        return Ok(Some(Err("a tensor without elements requires grad".to_string())));
    }
    forget_requires_grad(&mut graph);
    let Some(written) = written(&graph, subject.context.registry) else {
        let reason = "a call that records gradients writes to what a branch, a loop or a container gives";
        return Ok(Some(Err(reason.to_string())));
    };
    let is_written = |tensor: &Tensor| written.iter().any(|other| other.same(tensor));
    let is_read = |tensor: &Tensor| tensor.requires_grad() || passes::is_lent(tensor) && !is_written(tensor);
    let parameters = lift(&mut graph, is_read);
    let buffers = lift(&mut graph, is_written);
    guards.let_change(&parameters);
    guards.let_change(&buffers);
    if let Some(reason) = refused_buffers(&graph, &buffers, &parameters) {
        return Ok(Some(Err(reason.to_string())));
    }
    match Recording::new(subject, graph, (parts, &operands), (parameters, buffers), &mut making) {
        Ok((recording, forward)) => {
            let context = subject.context_behind(&guards);
            let code = Arc::new(Code::compile(context, &forward, subject.function.name.as_str())?);
            // Whether there will be a backward is not known yet.
            compile_groups(&forward, &code, subject.context.registry);
            let recording = Some(Arc::new(recording));
            Ok(Some(Ok(Plan {
                updates: None,
                graph: forward,
                code,
                guards,
                making: Arc::new(making),
                recording,
                replay: Replay::default(),
            })))
        }
        Err(error) if error.kind() == ErrorKind::Limit => Err(error),
        Err(error) => Ok(Some(Err(error.message().to_string()))),
    }
}

/// Types that say nothing of gradients: none are recorded while the graphs run.
fn forget_requires_grad(graph: &mut Graph) {
    for value in graph.inputs().to_vec() {
        let ty = detached(graph.ty(value).clone());
        graph.set_type(value, ty);
    }
}

/// The constants that ops write to, also through views; None where it is unknown what is written.
fn written(graph: &Graph, registry: &Registry) -> Option<Vec<Tensor>> {
    let mut found = Vec::new();
    let mut aliases = None;
    for op in graph.all_ops() {
        let facts = facts(registry, graph, op);
        let Some(schema) =
            facts.op.as_ref().filter(|_| facts.writes).and_then(|row| row.marked_schema().ok())
        else {
            continue;
        };
        for (argument, operand) in schema.arguments.iter().zip(graph.operands(op)) {
            let is_written = argument.alias.as_ref().is_some_and(|marks| marks.is_write);
            if !is_written || !graph.ty(*operand).is_tensor() {
                continue;
            }
            match origin(graph, registry, *operand) {
                Origin::Constant(op) => found.extend(tensor_of(graph, op).cloned()),
                Origin::Other => {}
                Origin::Unknown => {
                    let db = aliases.get_or_insert_with(|| AliasDb::new(registry, None, graph));
                    let mut constants =
                        graph.all_ops().into_iter().filter(|op| tensor_of(graph, *op).is_some());
                    if constants.any(|op| db.may_contain_alias(graph.results(op)[0], *operand)) {
                        return None;
                    }
                }
            }
        }
    }
    Some(found)
}

/// Where memory that is written comes from.
enum Origin {
    Constant(OpId),
    /// An argument, or what an op makes.
    Other,
    /// A branch, a loop or a container.
    Unknown,
}

fn origin(graph: &Graph, registry: &Registry, mut value: ValueId) -> Origin {
    loop {
        let Some(op) = graph.def_op(value) else {
            return if graph.inputs().contains(&value) { Origin::Other } else { Origin::Unknown };
        };
        if tensor_of(graph, op).is_some() {
            return Origin::Constant(op);
        }
        let facts = facts(registry, graph, op);
        let Some(row) = facts.op.as_ref().filter(|_| graph.nested_blocks(op).is_empty()) else {
            return Origin::Unknown;
        };
        let family = row.def().family;
        if matches!(family, Family::Container | Family::Control | Family::Host) {
            return Origin::Unknown;
        }
        let shows = row.marked_schema().is_ok_and(|schema| schema.returns.iter().any(|r| r.alias.is_some()));
        match graph.operand(op, 0).filter(|_| shows || family == Family::View) {
            Some(operand) => value = operand,
            None => return Origin::Other,
        }
    }
}

/// Why buffers cannot be operands, if so.
fn refused_buffers(graph: &Graph, buffers: &[Tensor], parameters: &[Tensor]) -> Option<&'static str> {
    if buffers.iter().any(|buffer| buffer.numel() > MOST_COPIED) {
        return Some("a call that records gradients writes to a large buffer");
    }
    let constants = graph.all_ops().into_iter().filter_map(|op| tensor_of(graph, op));
    for (n, buffer) in buffers.iter().enumerate() {
        let storage = buffer.storage();
        let mut others = parameters.iter().chain(&buffers[..n]).chain(constants.clone());
        if others.any(|other| other.storage().overlaps(&storage)) {
            return Some("a call that records gradients writes to memory that several tensors share");
        }
    }
    None
}

/// The tensor that an op is the constant of.
fn tensor_of(graph: &Graph, op: OpId) -> Option<&Tensor> {
    match graph.attr(op, "value") {
        Some(Attr::Tensor(tensor)) if graph.kind(op) == "prim::Constant" => Some(tensor),
        _ => None,
    }
}

/// Takes the copies to inputs at the end of a graph away: which inputs; what they become the graph gives after its outputs from
/// now on. A copy of what another one writes stays.
fn take_copies(graph: &mut Graph) -> Vec<usize> {
    let ops: Vec<OpId> = graph.block_ops(graph.root()).collect();
    let mut copies = Vec::new();
    for op in ops.into_iter().rev().filter(|op| graph.kind(*op) != "prim::Constant") {
        let input = graph.operand(op, 0).and_then(|to| graph.inputs().iter().position(|input| *input == to));
        let is_unused = graph.results(op).iter().all(|result| !graph.has_uses(*result));
        let (Some(input), Some(from), true) = (input, passes::copied_back(graph, op), is_unused) else {
            break;
        };
        copies.push((input, from, op));
    }
    copies.reverse();
    let inputs = graph.inputs().to_vec();
    copies.retain(|(_, from, _)| !inputs.contains(from));
    let results: Vec<ValueId> = graph.outputs().iter().copied().chain(copies.iter().map(|c| c.1)).collect();
    let root = graph.root();
    graph.set_block_results(root, &results);
    copies.iter().for_each(|(_, _, op)| graph.erase(*op));
    copies.into_iter().map(|(input, ..)| input).collect()
}

/// Makes inputs of constant tensors that are wanted; gives these.
fn lift(graph: &mut Graph, is_wanted: impl Fn(&Tensor) -> bool) -> Vec<Tensor> {
    let mut lifted: Vec<(Tensor, ValueId)> = Vec::new();
    for op in graph.all_ops() {
        let Some(tensor) = tensor_of(graph, op).filter(|tensor| is_wanted(tensor)).cloned() else { continue };
        let known = lifted.iter().find(|(other, _)| other.same(&tensor)).map(|(_, input)| *input);
        let input = known.unwrap_or_else(|| {
            let declared = crate::ir::Type::tensor();
            let ty = detached(spec::refined(&declared, &Value::Tensor(tensor.clone())));
            let input = graph.add_input(ty);
            lifted.push((tensor.clone(), input));
            input
        });
        graph.replace_op(op, &[input]);
    }
    lifted.into_iter().map(|(tensor, _)| tensor).collect()
}

impl Recording {
    /// Of a graph with its parameters and buffers as inputs; also gives the forward graph.
    fn new(
        subject: &Subject<'_>,
        mut graph: Graph,
        (parts, operands): (Parts, &[Value]),
        (parameters, buffers): (Vec<Tensor>, Vec<Tensor>),
        making: &mut Making,
    ) -> Result<(Recording, Arc<Graph>)> {
        let registry = subject.context.registry;
        let shared = Arc::new(registry.clone());
        let module = Module::default();
        let extras = subject.extras();
        let context = Context::new(registry, &module).with_extras(&extras);
        // Of guards, those of the forward are made to miss.
        let plain = code::Context { forced: None, ..subject.context };
        let is_tuple = spread_tuple(&mut graph);
        let step = Step::begin("record", &[&graph]);
        PREPARE.as_ref().map_err(Clone::clone)?.run_graph(&mut graph, &context)?;
        let results = Results::take_apart(&mut graph, plain)?;
        step.end(&[&graph], making);
        check_outputs(&graph, &results, &context)?;
        let step = Step::begin("record-draws", &[&graph]);
        let first = graph.inputs().len() - buffers.len();
        let draws = draws::take(&mut graph, (&shared, &extras), &context)?.map(Arc::new);
        let drawn = graph.inputs().len() - first - buffers.len();
        if let Some(draws) = &draws {
            step.end(&[draws, &graph], making);
        }
        let written = take_copies(&mut graph).into_iter().map(|input| {
            let refused = || Diagnostic::unsupported("a call that records gradients writes to an argument");
            input.checked_sub(first).filter(|n| *n < buffers.len()).ok_or_else(refused)
        });
        let written: Vec<usize> = written.collect::<Result<_>>()?;
        let becomes = graph.outputs()[graph.outputs().len() - written.len()..].to_vec();
        for (buffer, value) in written.iter().zip(becomes) {
            check_history(&graph, &context, graph.inputs()[first + buffer], value)?;
        }
        let given = operands.iter().map(|v| matches!(v, Value::Tensor(t) if t.requires_grad()));
        let others = parameters.iter().chain(&buffers).map(Tensor::requires_grad);
        let wanted: Vec<bool> = given.chain(others).chain(std::iter::repeat_n(false, drawn)).collect();
        let step = Step::begin("differentiate", &[&graph]);
        let split = autodiff::split(&graph, &wanted, subject.max_kept, (&shared, &extras))?;
        step.end(&[&split.forward, &split.backward], making);
        let outputs = results.tensors + results.others;
        if split.follows[outputs..].contains(&true) {
            return Err(Diagnostic::unsupported("a call that records gradients makes a buffer require grad"));
        }
        // Only the tensors: a call that is repeated for other gradients writes nothing.
        let (root, own) = (graph.root(), graph.outputs()[..results.tensors].to_vec());
        graph.set_block_results(root, &own);
        let (mut forward, mut backward) = (split.forward, split.backward);
        let finish = FINISH.as_ref().map_err(Clone::clone)?;
        let step = Step::begin("record-finish", &[&forward, &backward]);
        finish.run_graph(&mut forward, &context)?;
        finish.run_graph(&mut backward, &context)?;
        step.end(&[&forward, &backward], making);
        let drawn = &graph.inputs()[graph.inputs().len() - drawn..];
        let read = drawn.iter().zip(&split.reads[split.reads.len() - drawn.len()..]);
        let drawn_bytes: u64 =
            read.filter(|(_, reads)| **reads).map(|(v, _)| autodiff::bytes_of(graph.ty(*v))).sum();
        let (graph, backward) = (Arc::new(graph), Arc::new(backward));
        let others = match subject.open {
            // Those are made for the sizes of a call.
            Some(_) => {
                let mut plain = Graph::clone(&graph);
                ERASE.as_ref().map_err(Clone::clone)?.run_graph(&mut plain, &context)?;
                Arc::new(plain)
            }
            None => Arc::clone(&graph),
        };
        let first = graph.outputs().first().and_then(|output| graph.def_op(*output));
        let name = first.map_or_else(String::new, |op| graph.kind(op).as_str().to_string());
        let compiled = |graph: &Arc<Graph>| Code::compile(plain, graph, "draws").map(Arc::new);
        let recording = Recording {
            name,
            draws: draws.as_ref().map(compiled).transpose()?,
            draws_graph: draws,
            code: Arc::new(Code::compile(plain, &graph, subject.function.name.as_str())?),
            backward: Arc::new(Code::compile(plain, &backward, "backward")?),
            backward_graph: backward,
            parts,
            parameters,
            buffers,
            written,
            wanted,
            reads: split.reads.into_iter().chain(std::iter::repeat_n(true, split.kept)).collect(),
            follows: split.follows[..results.tensors].to_vec(),
            open: split.open,
            results,
            keeps: split.keeps,
            is_tuple,
            kept_bytes: split.kept_bytes + drawn_bytes,
            others: Arc::new(Derivatives::new(others, false)),
            _graph: graph,
        };
        Ok((recording, Arc::new(forward)))
    }

    /// Whether a call of these arguments writes to none of them: buffers are read and written apart from each other. A
    /// dictionary is not looked into, and keeps such a call from its plan.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        self.buffers.is_empty() || arguments.iter().all(|value| self.is_apart(value))
    }

    fn is_apart(&self, value: &Value) -> bool {
        match value {
            Value::Tensor(tensor) => {
                let storage = tensor.storage();
                self.buffers.iter().all(|buffer| !buffer.storage().overlaps(&storage))
            }
            Value::Tuple(tuple) => tuple.items().iter().all(|item| self.is_apart(item)),
            Value::List(list) => {
                !AliasDb::is_mutable_type(list.element_type())
                    || list.items().iter().all(|i| self.is_apart(i))
            }
            Value::Dict(_) => false,
            _ => true,
        }
    }

    /// Runs a call and records it as one operation.
    pub(in crate::runtime) fn call(
        self: &Arc<Recording>,
        program: &Arc<Inner>,
        code: Arc<Code>,
        arguments: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        let mut operands = self.parts.operands(arguments);
        let Some(autograd) = run.autograd() else {
            return Err(Diagnostic::internal("something requires grad and nothing records operations"));
        };
        operands.extend(self.parameters.iter().cloned().map(Value::Tensor));
        for buffer in &self.buffers {
            // The backward may read them as they were.
            operands.push(Value::Tensor(buffer.copy()?));
        }
        let former = run.set_grad_enabled(false);
        let results = self.forward(program, code, &mut operands, run);
        run.set_grad_enabled(former);
        self.record(&*autograd, program, operands, results?, run)
    }

    /// Draws what the call draws, and runs its forward.
    fn forward(
        &self,
        program: &Arc<Inner>,
        code: Arc<Code>,
        operands: &mut Vec<Value>,
        run: &Run,
    ) -> Result<Vec<Value>> {
        if let (Some(draws), Some(graph)) = (&self.draws, &self.draws_graph) {
            let given = if graph.inputs().is_empty() { Vec::new() } else { operands.clone() };
            operands.extend(execute(program, run, Arc::clone(draws), given)?);
        }
        Ok(execute(program, run, code, operands.clone())?.into_iter().collect())
    }

    fn record(
        self: &Arc<Recording>,
        autograd: &dyn Autograd,
        program: &Arc<Inner>,
        operands: Vec<Value>,
        mut results: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        let count = operands.len();
        let mut values = operands;
        let (tensors, others) = (self.results.tensors, self.results.others);
        let mut behind = results.drain((tensors + others).min(results.len())..);
        for (buffer, becomes) in self.written.iter().zip(&mut behind) {
            self.buffers[*buffer].copy_from(becomes.to_tensor()?)?;
        }
        let mut follows = self.follows.clone();
        for (open, flag) in self.open.iter().zip(&mut behind) {
            follows[*open] = flag.to_bool()?;
        }
        for kept in behind {
            values.push(match kept {
                // Without its history, which would keep what keeps it.
                Value::Tensor(tensor) => Value::Tensor(tensor.detach()),
                other => other,
            });
        }
        let mut outputs = Vec::new();
        for result in results.iter().take(tensors) {
            outputs.push(result.to_tensor()?.clone());
        }
        let region =
            CallRegion { this: Arc::clone(self), program: Arc::clone(program), operands: count, follows };
        autograd.region(Arc::new(region), &values, &outputs, run)?;
        // Views among them are recorded by themselves.
        let mut results = self.results.make(program, results, &values[..count], run)?;
        Ok(match self.is_tuple {
            true => Value::tuple(results),
            false => results.pop().unwrap_or_default(),
        })
    }
}

/// Makes the parts of a tuple that is the only output the outputs; says whether there was one.
fn spread_tuple(graph: &mut Graph) -> bool {
    let [only] = *graph.outputs() else { return false };
    let is_plain = matches!(graph.ty(only).kind(), TypeKind::Tuple(_, None));
    let Some(op) = graph.def_op(only).filter(|_| is_plain) else { return false };
    if graph.kind(op) != "prim::TupleConstruct" {
        return false;
    }
    let (root, parts) = (graph.root(), graph.operands(op).to_vec());
    graph.set_block_results(root, &parts);
    true
}

/// Fails where outputs are not tensors of their own: later changes to them would be lost; or hold unknown tensors.
fn check_outputs(graph: &Graph, results: &Results, context: &Context<'_>) -> Result<()> {
    let refused = |why: &str| Err(Diagnostic::unsupported(why));
    let (outputs, others) = graph.outputs().split_at(results.tensors);
    if outputs.is_empty() {
        return refused("a call that records gradients returns no tensor");
    }
    if let Some(other) = others.iter().find(|other| !is_plain(graph.ty(**other))) {
        return refused(&format!(
            "a call that records gradients returns a value of type {}",
            graph.ty(*other)
        ));
    }
    let mut seen = HashSet::new();
    for output in outputs {
        let Some(origins) = origins::origins(graph, context.registry, *output) else {
            return refused(
                "a call that records gradients returns a value not known to be a tensor of its own",
            );
        };
        let is_given =
            |origin: &ValueId| graph.def_op(*origin).is_none_or(|op| graph.kind(op) == "prim::Constant");
        if origins.iter().any(is_given) {
            return refused("a call that records gradients gives what it was given, or a view of it");
        }
        if origins.iter().any(|origin| seen.contains(origin)) {
            return refused("a call that records gradients gives two views of one tensor");
        }
        seen.extend(origins);
    }
    Ok(())
}

/// Whether values of a type hold no tensors and cannot be written.
fn is_plain(ty: &Type) -> bool {
    match ty.kind() {
        TypeKind::Int
        | TypeKind::Float
        | TypeKind::Bool
        | TypeKind::Str
        | TypeKind::Complex
        | TypeKind::None => true,
        TypeKind::Optional(inner) => is_plain(inner),
        _ => false,
    }
}

/// Fails where an op that gradients may follow reads a buffer before it is written to for the last time: the tape knows whether
/// its derivative reads that, which is an error. The ops that write read it too, of course.
fn check_history(graph: &Graph, context: &Context<'_>, buffer: ValueId, becomes: ValueId) -> Result<()> {
    let (mut writers, mut versions) = (Vec::new(), Vec::new());
    let mut at = becomes;
    while at != buffer {
        let former = former(graph, context, at);
        let (Some(op), Some(former)) = (graph.def_op(at), former) else {
            return Err(Diagnostic::unsupported(
                "a call that records gradients puts something else in a buffer's place",
            ));
        };
        writers.push(op);
        versions.push(former);
        at = former;
    }
    let inputs = graph.inputs().iter().copied().filter(|input| *input != buffer);
    let mut followed: HashSet<ValueId> = inputs.collect();
    for op in graph.block_ops(graph.root()).filter(|op| !writers.contains(op)) {
        let operands = graph.operands(op);
        if operands.iter().any(|operand| followed.contains(operand)) {
            followed.extend(graph.results(op));
            if operands.iter().any(|operand| versions.contains(operand)) {
                return Err(Diagnostic::unsupported(
                    "a call that records gradients writes to a buffer that its backward may read",
                ));
            }
        }
    }
    Ok(())
}

/// What a value was before the op that gives it in its place: the first operand, or the argument `a` of a result `a_out`.
fn former(graph: &Graph, context: &Context<'_>, value: ValueId) -> Option<ValueId> {
    let ValueDef::Result(op, n) = graph.def(value) else { return None };
    let facts = facts(context.registry, graph, op);
    let schema = facts.op.as_ref()?.schema().ok()?;
    match schema.returns.get(n)?.name.as_str().strip_suffix("_out") {
        Some(argument) => graph.operand(op, schema.argument_index(argument)?),
        None => graph.operand(op, 0),
    }
}

/// One recorded call.
struct CallRegion {
    this: Arc<Recording>,
    program: Arc<Inner>,
    /// How many of its values are operands; what was kept follows.
    operands: usize,
    /// Which tensors of its results require grad.
    follows: Vec<bool>,
}

impl Region for CallRegion {
    fn name(&self) -> &str {
        &self.this.name
    }

    fn reads(&self) -> &[bool] {
        &self.this.reads
    }

    fn follows(&self) -> &[bool] {
        &self.follows
    }

    fn keeps(&self) -> bool {
        self.this.keeps
    }

    fn replay(&self, mut values: Vec<Value>, run: &Run) -> Result<Outputs> {
        values.truncate(self.operands);
        Ok(execute(&self.program, run, Arc::clone(&self.this.code), values)?.into_iter().collect())
    }

    fn backward(
        &self,
        values: &[Value],
        gradients: &[Option<Tensor>],
        wanted: &[bool],
        run: &Run,
    ) -> Result<Vec<Option<Tensor>>> {
        let this = &self.this;
        let own = wanted.get(..self.operands).unwrap_or(wanted);
        let all =
            self.this.follows.iter().zip(gradients).all(|(follows, gradient)| *follows == gradient.is_some());
        if !all {
            let operands = values.get(..self.operands).unwrap_or(values);
            return this.others.gradients(&self.program, operands, gradients, own, run);
        }
        let mut arguments = values.to_vec();
        arguments.extend(gradients.iter().flatten().cloned().map(Value::Tensor));
        let found = execute(&self.program, run, Arc::clone(&this.backward), arguments)?;
        let mut found = found.into_iter();
        let mut out = Vec::with_capacity(values.len());
        for (given, wanted) in this.wanted.iter().zip(own) {
            let gradient = if *given { found.next() } else { None };
            out.push(match gradient.filter(|_| *wanted) {
                None | Some(Value::None) => None,
                Some(value) => Some(value.to_tensor()?.clone()),
            });
        }
        Ok(out)
    }
}
