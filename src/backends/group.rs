//! A fusion group that runs: plans calls, keeps the kernels built for it, launches them.
//!
//! A call takes one [`Snapshot`] of each input and plans, checks and launches from that alone: another thread may give the
//! tensor other memory or other sizes meanwhile.

use super::lowered::{self, Ready};
use super::{Arg, Backend, Buffer, Executable, FusionCounters, Launch, Memory};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Registry, loops};
use crate::ir::Graph;
use crate::lowering::{self, Access, GroupProgram, InputSig, Key, Lowered, Part, Plan, Target};
use crate::tensor::{DType, Layout, Scalar, Snapshot, Storage, Tensor};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use smallvec::SmallVec;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Specializations of one group that are kept; the oldest goes first.
const MAX_SPECIALIZATIONS: usize = 64;
/// Elements from which a kernel for a single op pays for being compiled.
const ALONE_FROM: usize = 1 << 15;
/// Ops of a group that its name lists.
const NAMED_OPS: usize = 6;

/// A fusion group with the kernels built for it so far. May be run from several threads.
pub struct FusedGroup {
    graph: Arc<Graph>,
    backend: Arc<dyn Backend>,
    counters: Arc<FusionCounters>,
    /// Its kernels in the module.
    lowered: Option<Lowered>,
    /// For messages: its first ops.
    name: String,
    /// Whether the group is one op.
    alone: bool,
    called: AtomicBool,
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
    /// Kernels that the backend refused are kept as refusals.
    kernels: Mutex<HashMap<Key, Result<Arc<dyn Executable>>>>,
    /// The plan of the last call, with the layouts that it was made for.
    last: Mutex<Option<Arc<Planned>>>,
}

struct Planned {
    layouts: Vec<Option<Layout>>,
    plan: Plan,
    kernels: Vec<Ready>,
    integers: Vec<SmallVec<[i64; 12]>>,
}

/// A call that can run fused: everything is compiled, nothing has been computed.
pub struct Prepared<'a> {
    runner: Arc<ProgramRunner>,
    planned: Arc<Planned>,
    inputs: Inputs,
    group: &'a FusedGroup,
}

/// Who compiles for whom.
struct Site<'a> {
    backend: &'a dyn Backend,
    counters: &'a FusionCounters,
    lowered: Option<&'a Lowered>,
    name: &'a str,
}

impl FusedGroup {
    /// A group to be run by a backend. Nothing is compiled yet. What happens is counted in `counters`.
    pub fn new(graph: Arc<Graph>, backend: Arc<dyn Backend>, counters: Arc<FusionCounters>) -> FusedGroup {
        let kinds: Vec<&str> = graph
            .block_ops(graph.root())
            .map(|op| graph.kind(op))
            .filter(|kind| *kind != "prim::Constant")
            .map(|kind| kind.base())
            .collect();
        let shown = kinds.iter().take(NAMED_OPS).copied().collect::<Vec<_>>().join("+");
        let more = if kinds.len() > NAMED_OPS { "+..." } else { "" };
        let name = format!("{shown}{more}");
        FusedGroup {
            alone: kinds.len() == 1,
            graph,
            backend,
            counters,
            lowered: None,
            name,
            called: AtomicBool::new(false),
            state: Mutex::default(),
        }
    }

    /// The same group with its kernels in the module: they run for calls that they were made for.
    pub fn lowered(self, lowered: Option<Lowered>) -> FusedGroup {
        FusedGroup { lowered, ..self }
    }

    /// Counts a call, and says whether a kernel is faster for such inputs than the op itself: a single op needs a
    /// compiler and elements enough.
    pub fn pays(&self, inputs: &[Value]) -> bool {
        if !self.called.swap(true, Ordering::Relaxed) {
            self.counters.group();
        }
        let large = |v: &Value| matches!(v, Value::Tensor(t) if t.numel() >= ALONE_FROM);
        let pays =
            !self.alone || self.lowered.is_some() || (self.backend.compiles() && inputs.iter().any(large));
        if !pays {
            self.counters.small(&self.name);
        }
        pays
    }

    /// Counts a call that is run op by op.
    pub fn runs_op_by_op(&self, reason: &str) {
        self.counters.op_by_op(&self.name, reason);
    }

    /// Plans a call and compiles what is not compiled yet for the inputs' dtypes and contiguity. Nothing is computed.
    /// `Unsupported` means that the group cannot be fused for such inputs, `Raised` that the call is wrong (sizes that do
    /// not broadcast): in both cases running the subgraph op by op gives the answer, or PyTorch's error. Any other
    /// error is a failure of the backend, which must not be hidden.
    pub fn prepare(&self, inputs: &[Value], registry: &Registry) -> Result<Prepared<'_>> {
        let inputs = Inputs::of(inputs)?;
        let lowered = self.lowered.as_ref();
        let site = Site { backend: &*self.backend, counters: &self.counters, lowered, name: &self.name };
        let runner = self.specialized(inputs.signature()?, registry)?;
        let planned = runner.plan(&inputs, &site)?;
        Ok(Prepared { runner, planned, inputs, group: self })
    }

    /// Plans and runs a call; see [`FusedGroup::prepare`] for the errors.
    pub fn run(&self, inputs: &[Value], registry: &Registry) -> Result<SmallVec<[Tensor; 2]>> {
        self.prepare(inputs, registry)?.run()
    }

    /// The loop IR of the group for inputs like these, one graph a kernel.
    pub fn loops(&self, inputs: &[Value], registry: &Registry) -> Result<Vec<Graph>> {
        self.loops_for(inputs, registry, self.backend.target())
    }

    /// The loop IR of the group for another kind of machine.
    pub fn loops_for(&self, inputs: &[Value], registry: &Registry, target: Target) -> Result<Vec<Graph>> {
        let inputs = Inputs::of(inputs)?;
        lowering::kernels(&self.graph, &inputs.signature()?, &inputs.layouts(), registry, target)
    }

    fn specialized(&self, sigs: Vec<InputSig>, registry: &Registry) -> Result<Arc<ProgramRunner>> {
        let mut state = self.state.lock();
        if let Some((_, found)) = state.programs.iter().find(|(known, _)| *known == sigs) {
            return found.clone();
        }
        let group = GroupProgram::new(&self.graph, &sigs, registry);
        let specialized = group.map(|group| Arc::new(ProgramRunner::new(group)));
        if let Err(error) = &specialized {
            self.counters.refused(&self.name, error.message(), || format!("{sigs:?}"));
        }
        if state.programs.len() >= MAX_SPECIALIZATIONS {
            drop(state.programs.remove(0));
        }
        state.programs.push((sigs, specialized.clone()));
        specialized
    }
}

impl Prepared<'_> {
    /// Computes. Every error is an error of the run.
    pub fn run(&self) -> Result<SmallVec<[Tensor; 2]>> {
        let outputs = self.runner.launch(&self.planned, &self.inputs)?;
        self.group.counters.fused(&self.group.name);
        Ok(outputs)
    }
}

impl ProgramRunner {
    /// A runner without kernels.
    pub fn new(group: GroupProgram) -> ProgramRunner {
        ProgramRunner { group, kernels: Mutex::default(), last: Mutex::default() }
    }

    /// Runs the group on inputs whose dtypes are those that it was read for.
    pub fn run(&self, inputs: &[Value], backend: &dyn Backend) -> Result<SmallVec<[Tensor; 2]>> {
        let inputs = Inputs::of(inputs)?;
        let site = Site { backend, counters: &FusionCounters::default(), lowered: None, name: "" };
        let planned = self.plan(&inputs, &site)?;
        self.launch(&planned, &inputs)
    }

    /// The plan for inputs, with a kernel for each of its parts.
    fn plan(&self, inputs: &Inputs, site: &Site<'_>) -> Result<Arc<Planned>> {
        let last = self.last.lock().clone();
        if let Some(planned) = last.filter(|planned| inputs.have_layouts(&planned.layouts)) {
            return Ok(planned);
        }
        let planned = Arc::new(self.make_plan(inputs, site)?);
        *self.last.lock() = Some(Arc::clone(&planned));
        Ok(planned)
    }

    fn make_plan(&self, inputs: &Inputs, site: &Site<'_>) -> Result<Planned> {
        let layouts = inputs.layouts();
        let plan = Plan::new(&self.group, &layouts)?;
        let signature = inputs.signature()?;
        let lowered = site.lowered.filter(|lowered| lowered.fits(&signature, &plan.parts));
        if site.lowered.is_some() {
            site.counters.of_module(site.name, lowered.map(|lowered| lowered.kernels.len()));
        }
        let target = lowered.map_or(site.backend.target(), |lowered| lowered.target);
        let integers: Vec<_> = plan.parts.iter().map(|part| part.integers(target)).collect();
        let mut kernels = Vec::new();
        for (n, part) in plan.parts.iter().enumerate() {
            kernels.push(match lowered {
                Some(lowered) => {
                    let buffers = buffers(part)?;
                    lowered::ready(lowered, (&self.group, part, n), (&buffers, &integers[n]), site.backend)?
                }
                None => Ready { kernel: self.kernel(part, site)?, lengths: Vec::new() },
            });
        }
        Ok(Planned { layouts, plan, kernels, integers })
    }

    /// The kernel for a part, compiled when first needed. What the backend refuses is kept too, and not tried again.
    fn kernel(&self, part: &Part, site: &Site<'_>) -> Result<Arc<dyn Executable>> {
        let key = part.key();
        if let Some(known) = self.kernels.lock().get(&key).cloned() {
            return known;
        }
        let compiled = lowering::lower(&part.nest(&self.group), site.backend.target())
            .and_then(|graph| loops::decode(&graph))
            .and_then(|kernel| site.backend.compile(&kernel));
        match &compiled {
            Ok(_) => site.counters.compiled(site.name, || format!("{:?}", key.pattern)),
            Err(error) if error.kind() == ErrorKind::Unsupported => {
                site.counters.refused(site.name, error.message(), || format!("{:?}", key.pattern));
            }
            // A failure is no property of the kernel: the next call tries again.
            Err(_) => return compiled,
        }
        self.kernels.lock().insert(key, compiled.clone());
        compiled
    }

    fn launch(&self, planned: &Planned, inputs: &Inputs) -> Result<SmallVec<[Tensor; 2]>> {
        let outputs = allocate(&planned.plan)?;
        for (n, part) in planned.plan.parts.iter().enumerate() {
            launch(&self.group, (part, &planned.integers[n]), &planned.kernels[n], inputs, &outputs)?;
        }
        Ok(outputs)
    }
}

/// The inputs of a call, each as it was at one moment.
struct Inputs(SmallVec<[Input; 8]>);

enum Input {
    Tensor(Snapshot),
    Number(Scalar),
}

impl Inputs {
    /// Fails with `Unsupported` for what a kernel cannot take.
    fn of(values: &[Value]) -> Result<Inputs> {
        let input = |value: &Value| {
            Ok(match value {
                Value::Tensor(t) if t.lengths().is_none() => Input::Tensor(t.snapshot()),
                Value::Tensor(_) => {
                    return Err(Diagnostic::unsupported("fused kernels take no nested tensors"));
                }
                Value::Int(x) => Input::Number(Scalar::Int(*x)),
                Value::Float(x) => Input::Number(Scalar::Float(*x)),
                Value::Bool(x) => Input::Number(Scalar::Bool(*x)),
                other => {
                    return Err(Diagnostic::unsupported(format!(
                        "fused kernels take no inputs of type {}",
                        other.kind_name()
                    )));
                }
            })
        };
        values.iter().map(input).collect::<Result<_>>().map(Inputs)
    }

    fn signature(&self) -> Result<Vec<InputSig>> {
        let one = |input: &Input| match input {
            Input::Tensor(t) if t.storage.device().is_cpu() => {
                Ok(InputSig::Tensor(t.dtype, t.layout.rank() > 0))
            }
            Input::Tensor(t) => {
                Err(Diagnostic::unsupported(format!("fused kernels on device {}", t.storage.device())))
            }
            Input::Number(Scalar::Int(_)) => Ok(InputSig::Int),
            Input::Number(Scalar::Bool(_)) => Ok(InputSig::Bool),
            Input::Number(_) => Ok(InputSig::Float),
        };
        self.0.iter().map(one).collect()
    }

    fn layouts(&self) -> Vec<Option<Layout>> {
        self.0.iter().map(|input| input.layout().cloned()).collect()
    }

    fn have_layouts(&self, layouts: &[Option<Layout>]) -> bool {
        self.0.len() == layouts.len() && self.0.iter().zip(layouts).all(|(i, l)| i.layout() == l.as_ref())
    }

    fn tensor(&self, n: usize) -> Result<&Snapshot> {
        match self.0.get(n) {
            Some(Input::Tensor(snapshot)) => Ok(snapshot),
            _ => Err(Diagnostic::internal("a number where a kernel reads a tensor")),
        }
    }

    fn number(&self, n: usize) -> Result<Scalar> {
        match self.0.get(n) {
            Some(Input::Number(number)) => Ok(*number),
            _ => Err(Diagnostic::internal("a tensor where a kernel takes a number")),
        }
    }
}

impl Input {
    fn layout(&self) -> Option<&Layout> {
        match self {
            Input::Tensor(snapshot) => Some(&snapshot.layout),
            Input::Number(_) => None,
        }
    }
}

/// An access of a part as a buffer: where it begins, and the lowest and the highest element that it touches. Which memory it
/// lies in is said at the launch.
fn buffer(access: &Access, sizes: &[i64]) -> Result<Buffer> {
    let (mut low, mut high) = (access.offset as i128, access.offset as i128);
    for (size, stride) in sizes.iter().zip(&access.strides) {
        let reach = i128::from((size - 1).max(0)) * i128::from(*stride);
        if reach < 0 { low += reach } else { high += reach }
    }
    let end = if sizes.contains(&0) { low } else { high + 1 };
    match (usize::try_from(low), usize::try_from(end)) {
        (Ok(low), Ok(end)) => Ok(Buffer { memory: 0, first: access.offset, low, end }),
        _ => Err(Diagnostic::internal("a tensor that reaches outside of its storage")),
    }
}

/// The buffers of a part, as its kernel takes them.
fn buffers(part: &Part) -> Result<SmallVec<[Buffer; 8]>> {
    part.stores.iter().chain(&part.loads).map(|access| buffer(access, &part.sizes)).collect()
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
    (part, integers): (&Part, &[i64]),
    ready: &Ready,
    inputs: &Inputs,
    outputs: &[Tensor],
) -> Result<()> {
    let mut written: SmallVec<[usize; 2]> = part.stores.iter().map(|a| a.tensor).collect();
    written.sort_unstable();
    written.dedup();
    let stores: SmallVec<[Storage; 2]> = written.iter().map(|o| outputs[*o].storage()).collect();
    let read = |access: &Access| inputs.tensor(access.tensor)?.storage.read();
    let read_guards = part.loads.iter().map(read).collect::<Result<Vec<_>>>()?;
    let mut write_guards = stores.iter().map(Storage::write).collect::<Result<SmallVec<[_; 2]>>>()?;
    let mut memory: Vec<Memory<'_>> = write_guards.iter_mut().map(|g| Memory::Write(&mut *g)).collect();
    memory.extend(read_guards.iter().map(|g| Memory::Read(g)));
    let mut args: Vec<Arg> = Vec::with_capacity(part.stores.len() + part.loads.len() + integers.len());
    let slots = part.stores.iter().map(|a| written.iter().position(|o| *o == a.tensor).unwrap_or(0));
    let slots = slots.chain(written.len()..written.len() + part.loads.len());
    args.extend(buffers(part)?.into_iter().zip(slots).map(|(b, memory)| Arg::Buffer(Buffer { memory, ..b })));
    args.extend(integers.iter().map(|i| Arg::Int(*i)));
    for (input, dtype) in &group.scalars {
        args.push(match (dtype, inputs.number(*input)?) {
            (DType::F64, n) => Arg::Float(n.to_f64()),
            (DType::Bool, n) => Arg::Bool(n.to_bool()),
            (_, Scalar::Int(n)) => Arg::Int(n),
            (_, n) => Arg::Int(n.to_i64()),
        });
    }
    args.extend(lowered::arguments(&ready.lengths));
    let extent = integers.first().copied().unwrap_or(1).max(1) as usize;
    let mut launch = Launch { memory, args, grain: part.numel() / extent };
    // SAFETY: kernel and arguments come from one part, whose kernel walks `sizes` by the strides of each access and
    // nothing else, which is what the spans say (one that a module has was checked against them, or checks itself); stores of one part go to different elements of tensors that were made
    // for this call, so that no load reads them.
    #[allow(unsafe_code, reason = "the one place where groups run machine code")]
    unsafe {
        ready.kernel.run(&mut launch)
    }
}
