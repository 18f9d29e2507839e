//! How calls of a plan are recorded: its forward runs, and the tape has one operation for the call, whose backward is a graph. It does
//! not know how the graphs came about.

use super::super::parts::Parts;
use super::super::results::Results;
use super::super::subject::Subject;
use super::graphs::{Graphs, Known};
use crate::analysis::AliasDb;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Autograd, Outputs, Region, Run};
use crate::ir::{Graph, Module};
use crate::passes::{self, Context, Pipeline};
use crate::runtime::code::{self, Code, Derivatives};
use crate::runtime::inner::Inner;
use crate::runtime::interpreter::execute;
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::{Arc, LazyLock};

static ERASE: LazyLock<Result<Pipeline>> = LazyLock::new(|| passes::parse("erase-shape-information"));

/// How calls of a plan are recorded.
pub(in crate::runtime) struct Recording {
    /// What errors call it: the op that makes the first output.
    name: String,
    /// The function before it was split, op by op.
    code: Arc<Code>,
    _graph: Arc<Graph>,
    /// From operands, what is kept and gradients of outputs that follow, to gradients of operands that want one.
    backward: Arc<Code>,
    pub(in super::super) backward_graph: Arc<Graph>,
    /// What of the arguments are operands.
    parts: Parts,
    /// Parameters that are operands after the arguments, and other tensors whose memory was lent.
    parameters: Vec<Tensor>,
    /// Buffers that the call writes to, whose elements are operands after the parameters.
    buffers: Vec<Tensor>,
    /// What draws the random numbers of a call: operands after the buffers.
    draws: Option<Arc<Code>>,
    pub(in super::super) draws_graph: Option<Arc<Graph>>,
    /// Operands that want a gradient.
    wanted: Vec<bool>,
    /// What else is known of a call's values.
    known: Known,
    /// How results are made of what the forward gives: first tensors, then other values, then what buffers become, then the bools,
    /// then what is kept.
    results: Results,
    /// Backward graphs where some outputs have no gradient.
    others: Arc<Derivatives>,
}

/// What a call reads.
pub(super) struct Given {
    /// What of the arguments are operands.
    pub(super) parts: Parts,
    /// Operands after these.
    pub(super) parameters: Vec<Tensor>,
    /// Operands after the parameters: the call may write to them.
    pub(super) buffers: Vec<Tensor>,
    /// Operands that want a gradient.
    pub(super) wanted: Vec<bool>,
}

impl Recording {
    /// Makes code of the graphs; also gives the forward graph.
    pub(super) fn new(
        subject: &Subject<'_>,
        graphs: Graphs,
        given: Given,
    ) -> Result<(Recording, Arc<Graph>)> {
        let Graphs { own, forward, backward, results, draws, known } = graphs;
        let Given { parts, parameters, buffers, mut wanted } = given;
        wanted.extend(std::iter::repeat_n(false, known.drawn));
        // Of guards, those of the forward are made to miss.
        let plain = code::Context { forced: None, ..subject.context };
        let (own, backward, draws) = (Arc::new(own), Arc::new(backward), draws.map(Arc::new));
        let others = match subject.open {
            // Those are made for the sizes of a call.
            Some(_) => {
                let module = Module::default();
                let mut sizeless = Graph::clone(&own);
                let context = Context::new(subject.context.registry, &module);
                ERASE.as_ref().map_err(Clone::clone)?.run_graph(&mut sizeless, &context)?;
                Arc::new(sizeless)
            }
            None => Arc::clone(&own),
        };
        let first = own.outputs().first().and_then(|output| own.def_op(*output));
        let name = first.map_or_else(String::new, |op| own.kind(op).as_str().to_string());
        let compiled = |graph: &Arc<Graph>| Code::compile(plain, graph, "draws").map(Arc::new);
        let recording = Recording {
            name,
            draws: draws.as_ref().map(compiled).transpose()?,
            draws_graph: draws,
            code: Arc::new(Code::compile(plain, &own, subject.function.name.as_str())?),
            backward: Arc::new(Code::compile(plain, &backward, "backward")?),
            backward_graph: backward,
            parts,
            parameters,
            buffers,
            wanted,
            results: Results::new(results, plain)?,
            known,
            others: Arc::new(Derivatives::new(others, false)),
            _graph: own,
        };
        Ok((recording, Arc::new(forward)))
    }

    /// Bytes that a call keeps for its backward besides operands.
    pub(in super::super) fn kept_bytes(&self) -> u64 {
        self.known.kept_bytes
    }

    /// Whether a call of these arguments writes to none of them: buffers are read and written apart from each other. A
    /// dictionary is not looked into, and keeps such a call from its plan.
    pub(in super::super) fn takes(&self, arguments: &[Value]) -> bool {
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
        let (tensors, others) = (self.known.parts.tensors, self.known.parts.others);
        let mut behind = results.drain((tensors + others).min(results.len())..);
        for (buffer, becomes) in self.known.written.iter().zip(&mut behind) {
            self.buffers[*buffer].copy_from(becomes.to_tensor()?)?;
        }
        let mut follows = self.known.follows.clone();
        for (open, flag) in self.known.open.iter().zip(&mut behind) {
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
        results.extend(self.known.parts.given.iter().filter_map(|n| values[..count].get(*n).cloned()));
        let mut results = self.results.make(program, results, run)?;
        Ok(match self.known.is_tuple {
            true => Value::tuple(results),
            false => results.pop().unwrap_or_default(),
        })
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
        &self.this.known.reads
    }

    fn follows(&self) -> &[bool] {
        &self.follows
    }

    fn keeps(&self) -> bool {
        self.this.known.keeps
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
        let all = self
            .this
            .known
            .follows
            .iter()
            .zip(gradients)
            .all(|(follows, gradient)| *follows == gradient.is_some());
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
