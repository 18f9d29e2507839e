//! A fusion group that runs: plans calls, keeps the kernels built for it, launches them.

use super::{Arg, Backend, Executable, Launch, Memory};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, loops};
use crate::ir::Graph;
use crate::lowering::{self, GroupProgram, InputSig, Key, Part, Plan, Target};
use crate::tensor::{DType, Layout, Scalar, Storage, Tensor};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;

/// Specializations of one group that are kept; the oldest goes first.
const MAX_SPECIALIZATIONS: usize = 64;
/// Elements from which a kernel for a single op pays for being compiled.
const ALONE_FROM: usize = 1 << 15;

/// A fusion group with the kernels built for it so far. May be run from several threads.
pub struct FusedGroup {
    graph: Arc<Graph>,
    backend: Arc<dyn Backend>,
    /// Whether the group is one op.
    alone: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By dtypes and ranks of the inputs; those that are refused too.
    programs: Vec<(Vec<InputSig>, Result<Arc<ProgramRunner>>)>,
}

/// A group for inputs of fixed dtypes, with the kernels built for it so far.
pub struct ProgramRunner {
    group: GroupProgram,
    kernels: Mutex<HashMap<Key, Arc<dyn Executable>>>,
    /// The plan of the last call, with the layouts that it was made for.
    last: Mutex<Option<Arc<Planned>>>,
}

struct Planned {
    layouts: Vec<Option<Layout>>,
    plan: Plan,
    kernels: Vec<Arc<dyn Executable>>,
    integers: Vec<SmallVec<[i64; 12]>>,
    /// Bytes that each input's storage must have.
    needed: Vec<usize>,
}

impl FusedGroup {
    /// A group to be run by a backend. Nothing is compiled yet.
    pub fn new(graph: Arc<Graph>, backend: Arc<dyn Backend>) -> FusedGroup {
        let work = graph.block_ops(graph.root()).filter(|op| graph.kind(*op) != "prim::Constant").count();
        FusedGroup { graph, backend, alone: work == 1, state: Mutex::default() }
    }

    /// Whether a kernel is faster for such inputs than the op itself: a single op needs a compiler and elements enough.
    pub fn pays(&self, inputs: &[Value]) -> bool {
        let large = |v: &Value| matches!(v, Value::Tensor(t) if t.numel() >= ALONE_FROM);
        !self.alone || (self.backend.compiles() && inputs.iter().any(large))
    }

    /// Runs the group on its inputs, compiling what is not compiled yet for their dtypes and contiguity.
    /// `Unsupported` means that the group cannot be fused for such inputs, any other error that the call is
    /// wrong (sizes that do not broadcast): in both cases nothing has been computed, and running the
    /// subgraph op by op gives the answer or PyTorch's error.
    pub fn run(&self, inputs: &[Value], registry: &Registry) -> Result<SmallVec<[Tensor; 2]>> {
        let mut sigs: SmallVec<[InputSig; 8]> = SmallVec::new();
        for input in inputs {
            sigs.push(signature(input)?);
        }
        let specialized = self.specialized(&sigs, registry)?;
        specialized.run(inputs, &*self.backend)
    }

    /// The loop IR of the group for inputs like these, one graph a kernel.
    pub fn loops(&self, inputs: &[Value], registry: &Registry) -> Result<Vec<Graph>> {
        self.loops_for(inputs, registry, self.backend.target())
    }

    /// The loop IR of the group for another kind of machine.
    pub fn loops_for(&self, inputs: &[Value], registry: &Registry, target: Target) -> Result<Vec<Graph>> {
        let sigs = inputs.iter().map(signature).collect::<Result<Vec<InputSig>>>()?;
        let group = GroupProgram::new(&self.graph, &sigs, registry)?;
        let plan = Plan::new(&group, &layouts(inputs))?;
        plan.parts.iter().map(|part| lowering::lower(&part.nest(&group), target)).collect()
    }

    fn specialized(&self, sigs: &[InputSig], registry: &Registry) -> Result<Arc<ProgramRunner>> {
        let mut state = self.state.lock();
        if let Some((_, found)) = state.programs.iter().find(|(known, _)| known == sigs) {
            return found.clone();
        }
        let group = GroupProgram::new(&self.graph, sigs, registry);
        let specialized = group.map(|group| Arc::new(ProgramRunner::new(group)));
        if state.programs.len() >= MAX_SPECIALIZATIONS {
            drop(state.programs.remove(0));
        }
        state.programs.push((sigs.to_vec(), specialized.clone()));
        specialized
    }
}

impl ProgramRunner {
    /// A runner without kernels.
    pub fn new(group: GroupProgram) -> ProgramRunner {
        ProgramRunner { group, kernels: Mutex::default(), last: Mutex::default() }
    }

    /// Runs the group on inputs whose dtypes are those that it was read for.
    pub fn run(&self, inputs: &[Value], backend: &dyn Backend) -> Result<SmallVec<[Tensor; 2]>> {
        let planned = self.plan(inputs, backend)?;
        let outputs = allocate(&planned.plan)?;
        for (n, part) in planned.plan.parts.iter().enumerate() {
            launch(&self.group, part, &planned.integers[n], &*planned.kernels[n], inputs, &outputs)?;
        }
        Ok(outputs)
    }

    /// The plan for inputs, with a kernel for each of its parts.
    fn plan(&self, inputs: &[Value], backend: &dyn Backend) -> Result<Arc<Planned>> {
        let layouts = layouts(inputs);
        let last = self.last.lock().clone();
        let planned = match last {
            Some(planned) if planned.layouts == layouts => planned,
            _ => {
                let planned = Arc::new(self.make_plan(layouts, backend)?);
                *self.last.lock() = Some(Arc::clone(&planned));
                planned
            }
        };
        for (input, needed) in inputs.iter().zip(&planned.needed) {
            if let Value::Tensor(t) = input
                && t.storage().nbytes() < *needed
            {
                return Err(Diagnostic::internal("a tensor that reaches outside of its storage"));
            }
        }
        Ok(planned)
    }

    fn make_plan(&self, layouts: Vec<Option<Layout>>, backend: &dyn Backend) -> Result<Planned> {
        let plan = Plan::new(&self.group, &layouts)?;
        let mut kernels = Vec::new();
        for part in &plan.parts {
            let key = part.key();
            let known = self.kernels.lock().get(&key).cloned();
            kernels.push(match known {
                Some(kernel) => kernel,
                None => {
                    let graph = lowering::lower(&part.nest(&self.group), backend.target())?;
                    let kernel = backend.compile(&loops::decode(&graph)?)?;
                    self.kernels.lock().insert(key, Arc::clone(&kernel));
                    kernel
                }
            });
        }
        let integers = plan.parts.iter().map(|part| part.integers(backend.target())).collect();
        let mut needed = vec![0; layouts.len()];
        for load in &self.group.loads {
            if let Some(layout) = &layouts[load.input] {
                needed[load.input] = reach(layout).saturating_mul(load.dtype.size());
            }
        }
        Ok(Planned { layouts, plan, kernels, integers, needed })
    }
}

/// One more than the largest index that a layout reaches, in elements.
fn reach(layout: &Layout) -> usize {
    if layout.numel() == 0 {
        return 0;
    }
    let steps =
        layout.sizes.iter().zip(&layout.strides).map(|(size, stride)| (size - 1).saturating_mul(*stride));
    let last = steps.filter(|s| *s > 0).fold(layout.offset as i64, i64::saturating_add);
    usize::try_from(last).unwrap_or(usize::MAX).saturating_add(1)
}

fn signature(input: &Value) -> Result<InputSig> {
    match input {
        Value::Tensor(t) if t.device().is_cpu() => Ok(InputSig::Tensor(t.dtype(), t.rank() > 0)),
        Value::Tensor(t) => Err(Diagnostic::unsupported(format!("fused kernels on device {}", t.device()))),
        Value::Int(_) => Ok(InputSig::Int),
        Value::Float(_) => Ok(InputSig::Float),
        Value::Bool(_) => Ok(InputSig::Bool),
        other => Err(Diagnostic::unsupported(format!(
            "fused kernels take no inputs of type {}",
            other.kind_name()
        ))),
    }
}

fn layouts(inputs: &[Value]) -> Vec<Option<Layout>> {
    let layout = |v: &Value| match v {
        Value::Tensor(t) => Some(t.layout()),
        _ => None,
    };
    inputs.iter().map(layout).collect()
}

fn allocate(plan: &Plan) -> Result<SmallVec<[Tensor; 2]>> {
    let one = |(dtype, layout): &(DType, Layout)| {
        // Kernels write every element.
        let storage = Storage::for_writing(layout.numel().saturating_mul(dtype.size()))?;
        Tensor::from_storage(storage, *dtype, layout.clone())
    };
    plan.outputs.iter().map(one).collect()
}

/// Opens the memory of one part and runs its kernel.
fn launch(
    group: &GroupProgram,
    part: &Part,
    integers: &[i64],
    kernel: &dyn Executable,
    inputs: &[Value],
    outputs: &[Tensor],
) -> Result<()> {
    let read: Vec<Storage> = part
        .loads
        .iter()
        .map(|a| inputs[a.tensor].to_tensor().map(Tensor::storage))
        .collect::<Result<_>>()?;
    let mut written: SmallVec<[usize; 2]> = part.stores.iter().map(|a| a.tensor).collect();
    written.sort_unstable();
    written.dedup();
    let stores: SmallVec<[Storage; 2]> = written.iter().map(|o| outputs[*o].storage()).collect();
    let read_guards = read.iter().map(Storage::read).collect::<Result<Vec<_>>>()?;
    let mut write_guards = stores.iter().map(Storage::write).collect::<Result<SmallVec<[_; 2]>>>()?;
    let mut memory: Vec<Memory<'_>> = write_guards.iter_mut().map(|g| Memory::Write(&mut *g)).collect();
    memory.extend(read_guards.iter().map(|g| Memory::Read(g)));
    let mut args: Vec<Arg> = Vec::with_capacity(part.stores.len() + part.loads.len() + integers.len());
    for access in &part.stores {
        let slot = written.iter().position(|o| *o == access.tensor).unwrap_or(0);
        args.push(Arg::Buffer(slot, access.offset));
    }
    args.extend(part.loads.iter().enumerate().map(|(n, a)| Arg::Buffer(written.len() + n, a.offset)));
    args.extend(integers.iter().map(|i| Arg::Int(*i)));
    for (input, dtype) in &group.scalars {
        let number = inputs[*input].to_scalar()?;
        args.push(match (dtype, number) {
            (DType::F64, n) => Arg::Float(n.to_f64()),
            (DType::Bool, n) => Arg::Bool(n.to_bool()),
            (_, Scalar::Int(n)) => Arg::Int(n),
            (_, n) => Arg::Int(n.to_i64()),
        });
    }
    let extent = integers.first().copied().unwrap_or(1).max(1) as usize;
    kernel.run(&mut Launch { memory, args, grain: part.numel() / extent })
}
