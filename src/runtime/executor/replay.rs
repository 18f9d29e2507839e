//! Calls of a plan as recorded work of a device. A plan on a device asks it for the same work at each call: the sizes are known,
//! and what depends on data reads it on the device. So its work is recorded once and runs again as a whole, which costs the
//! host one launch. What a plan does on the host would not be done again; plans of which that is not known to be nothing are
//! not recorded.

use crate::analysis::facts;
use crate::backends::{Backend, Recorded};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Effects, Registry, fusion};
use crate::ir::Graph;
use crate::runtime::code::Code;
use crate::tensor::{DType, DeviceBuffer, Layout, Storage, Tensor, impatiently};
use crate::value::Value;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// Calls that run step by step before the one that is recorded: they compile kernels and bring constants to the device.
const EARLY: usize = 2;

/// What became of recording a plan.
#[derive(Default)]
pub(in crate::runtime) struct Replay {
    calls: AtomicUsize,
    state: OnceLock<Result<Work, String>>,
}

/// Recorded work with what it takes and gives.
struct Work {
    recorded: Arc<dyn Recorded>,
    inputs: Vec<Placement>,
    outputs: Vec<Placement>,
    /// Whether the answer is a tuple of the outputs.
    is_tuple: bool,
}

/// How a tensor placement in its storage.
#[derive(PartialEq)]
struct Placement {
    dtype: DType,
    layout: Layout,
    nbytes: usize,
}

impl Placement {
    fn of(tensor: &Tensor) -> Placement {
        tensor.with_meta(|m| Placement {
            dtype: m.dtype,
            layout: m.layout.clone(),
            nbytes: m.storage.nbytes(),
        })
    }
}

impl Replay {
    /// The answer of a call by recorded work. None: the call runs step by step, as the first ones do. `execute` runs the plan
    /// on other arguments.
    pub(in crate::runtime) fn call(
        &self,
        plan: (&Graph, &Code),
        backend: &dyn Backend,
        (arguments, registry): (&[Value], &Registry),
        execute: &mut dyn FnMut(Vec<Value>) -> Result<Value>,
    ) -> Result<Option<Value>> {
        let early = self.calls.load(Ordering::Relaxed) < EARLY;
        if early && self.calls.fetch_add(1, Ordering::Relaxed) < EARLY {
            return Ok(None);
        }
        let work = match self.state.get() {
            Some(work) => work,
            None => {
                let made = record(plan, backend, (arguments, registry), execute)?;
                self.state.get_or_init(|| made)
            }
        };
        match work {
            Ok(work) => work.run(backend, arguments),
            Err(_) => Ok(None),
        }
    }

    /// Why the plan is not recorded; None where it is, or was not called often enough.
    pub(in crate::runtime) fn refusal(&self) -> Option<&str> {
        self.state.get()?.as_ref().err().map(String::as_str)
    }
}

impl Work {
    fn run(&self, backend: &dyn Backend, arguments: &[Value]) -> Result<Option<Value>> {
        let Some(memory) = backend.memory() else { return Ok(None) };
        let given: Vec<&Tensor> = tensors(arguments);
        let same = given.len() == self.inputs.len()
            && given.iter().zip(&self.inputs).all(|(tensor, placement)| Placement::of(tensor) == *placement);
        if !same {
            return Ok(None);
        }
        let there = given.iter().map(|tensor| tensor.storage().resident(&*memory));
        let buffers = self.recorded.replay(&there.collect::<Result<Vec<_>>>()?)?;
        let tensor = |(buffer, placement): (Arc<dyn DeviceBuffer>, &Placement)| {
            let tensor =
                Tensor::from_storage(Storage::away(buffer)?, placement.dtype, placement.layout.clone())?;
            Ok(Value::Tensor(tensor))
        };
        let mut outputs =
            buffers.into_iter().zip(&self.outputs).map(tensor).collect::<Result<Vec<Value>>>()?;
        match (self.is_tuple, outputs.len()) {
            (true, _) => Ok(Some(Value::tuple(outputs))),
            (false, 1) => Ok(outputs.pop()),
            (false, _) => Err(Diagnostic::internal("recorded work gives another number of results")),
        }
    }
}

fn tensors(values: &[Value]) -> Vec<&Tensor> {
    values
        .iter()
        .filter_map(|value| if let Value::Tensor(tensor) = value { Some(tensor) } else { None })
        .collect()
}

/// Records the work of a call; the inner error says why it is not.
fn record(
    plan: (&Graph, &Code),
    backend: &dyn Backend,
    (arguments, registry): (&[Value], &Registry),
    execute: &mut dyn FnMut(Vec<Value>) -> Result<Value>,
) -> Result<Result<Work, String>> {
    if let Some(reason) = refuses(plan, arguments, registry) {
        return Ok(Err(reason));
    }
    let inputs: Vec<Placement> = tensors(arguments).into_iter().map(Placement::of).collect();
    let mut outputs = None;
    let sizes: Vec<usize> = inputs.iter().map(|placement| placement.nbytes).collect();
    let recorded = backend.record(&sizes, &mut |buffers| {
        let mut buffers = buffers.iter().zip(&inputs);
        let stand_in = |value: &Value| match (value, buffers.next()) {
            (Value::Tensor(_), Some((buffer, placement))) => {
                let storage = Storage::away(Arc::clone(buffer))?;
                Ok(Tensor::from_storage(storage, placement.dtype, placement.layout.clone())?.into())
            }
            (other, _) => Ok(other.clone()),
        };
        // The receiver stands in front, and is not a tensor.
        let (receiver, rest) = arguments.split_at(arguments.len() - inputs.len());
        let own = rest.iter().map(stand_in).collect::<Result<Vec<Value>>>()?;
        let all = receiver.iter().cloned().chain(own).collect();
        let answer = impatiently(|| execute(all))?;
        let (is_tuple, tensors) = parts(answer)?;
        let memory = backend.memory().ok_or_else(|| Diagnostic::internal("a device without memory"))?;
        let written = tensors.iter().map(|tensor| tensor.storage().resident(&*memory));
        let written = written.collect::<Result<Vec<_>>>()?;
        outputs = Some((is_tuple, tensors.iter().map(Placement::of).collect::<Vec<Placement>>()));
        Ok(written)
    })?;
    Ok(match (recorded, outputs) {
        (Ok(recorded), Some((is_tuple, outputs))) => Ok(Work { recorded, inputs, outputs, is_tuple }),
        (Err(reason), _) => Err(reason),
        (Ok(_), None) => Err("it gave nothing".to_string()),
    })
}

/// The tensors of an answer, each with memory of its own.
fn parts(answer: Value) -> Result<(bool, Vec<Tensor>)> {
    let unsupported = || Diagnostic::unsupported("it gives something else than new tensors");
    let (is_tuple, items) = match answer {
        Value::Tensor(tensor) => (false, vec![tensor]),
        Value::Tuple(tuple) => {
            let items = tuple.items().iter().map(|item| match item {
                Value::Tensor(tensor) => Ok(tensor.clone()),
                _ => Err(unsupported()),
            });
            (true, items.collect::<Result<Vec<Tensor>>>()?)
        }
        _ => return Err(unsupported()),
    };
    let shared = |n: usize| items[..n].iter().any(|other| other.storage().same(&items[n].storage()));
    let plain = items.iter().all(Tensor::is_plain);
    if !plain || (0..items.len()).any(shared) {
        return Err(unsupported());
    }
    Ok((is_tuple, items))
}

/// Why the work of a plan cannot be recorded, as far as it is known beforehand.
fn refuses((graph, code): (&Graph, &Code), arguments: &[Value], registry: &Registry) -> Option<String> {
    let receivers = usize::from(matches!(arguments.first(), Some(Value::Object(_))));
    if !arguments[receivers..].iter().all(|value| matches!(value, Value::Tensor(t) if t.is_plain())) {
        return Some("it takes something else than tensors".to_string());
    }
    if !code.guards.is_empty() {
        return Some("it asks for types while it runs".to_string());
    }
    does_more(graph, registry)
}

/// The first op of a graph that does, or may do, something besides computing its results from its operands.
fn does_more(graph: &Graph, registry: &Registry) -> Option<String> {
    graph.all_ops().into_iter().find_map(|op| {
        let kind = graph.kind(op);
        if kind == "prim::Constant" || fusion::is_group(kind) {
            return None;
        }
        let facts = facts(registry, graph, op);
        let calm = (Effects::MAY_RAISE).union(Effects::IDENTITY).contains(facts.effects);
        let plain = facts.op.is_some() && graph.nested_blocks(op).is_empty() && calm && !facts.writes;
        (!plain).then(|| format!("{kind} may do more than compute"))
    })
}
