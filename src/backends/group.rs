//! A fusion group that runs: plans calls, keeps the kernels built for it, launches them.
//!
//! A call reads each input once and plans, checks and launches from that alone: another thread may give the tensor other
//! memory or other sizes meanwhile.

use super::inputs::{Given, Inputs, Signature, Takes};
use super::launch::{PartLaunch, allocate, buffers};
use super::lowered::{self, Ready};
use super::{Backend, Executable, FusionCounters};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Registry, fusion, loops};
use crate::ir::{Graph, Symbol};
use crate::lowering::{self, GroupProgram, Key, Lowered, Part, Plan, Target};
use crate::tensor::{DeviceMemory, Layout, Storage, Tensor};
use crate::value::Value;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
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
    /// Whether it writes to tensors that it is given.
    writes: bool,
    called: AtomicBool,
    state: Mutex<State>,
    /// What the last call ran: the next is mostly like it.
    last: Mutex<Option<Arc<Planned>>>,
}

#[derive(Default)]
struct State {
    /// By dtypes and ranks of the inputs; those that are refused too.
    programs: Vec<(Signature, Result<Arc<ProgramRunner>>)>,
}

/// A group for inputs of fixed dtypes, with the kernels built for it so far.
pub struct ProgramRunner {
    group: GroupProgram,
    /// Kernels that the backend refused are kept as refusals.
    kernels: Mutex<HashMap<Key, Result<Arc<dyn Executable>>>>,
    /// The plan of the last call, with the layouts that it was made for.
    last: Mutex<Option<Arc<Planned>>>,
}

/// How calls with inputs of fixed dtypes and layouts run.
struct Planned {
    takes: Takes,
    plan: Plan,
    launches: Vec<PartLaunch>,
    /// Inputs that are written to.
    writes: SmallVec<[usize; 2]>,
    /// Where its tensors are, if not on the host.
    device: Option<Arc<dyn DeviceMemory>>,
}

/// A call that can run fused: everything is compiled, nothing has been computed.
pub struct Prepared<'a> {
    planned: Arc<Planned>,
    given: Given,
    group: &'a FusedGroup,
}

/// Who compiles for whom.
struct Site<'a> {
    backend: &'a dyn Backend,
    counters: &'a FusionCounters,
    lowered: Option<&'a Lowered>,
    name: &'a str,
}

impl Site<'_> {
    /// Counts a kernel that was made ready or refused.
    fn count(&self, key: &Key, compiled: &Result<Arc<dyn Executable>>) {
        let what = || format!("{:?}", key.pattern);
        match compiled {
            Ok(made) => self.counters.compiled(self.name, made.is_cached(), what),
            Err(error) => self.counters.refused(self.name, error.message(), what),
        }
    }
}

impl FusedGroup {
    /// A group to be run by a backend. Nothing is compiled yet. What happens is counted in `counters`.
    pub fn new(graph: Arc<Graph>, backend: Arc<dyn Backend>, counters: Arc<FusionCounters>) -> FusedGroup {
        let copy = Symbol::new(fusion::COPY).base();
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
            writes: kinds.contains(&copy),
            graph,
            backend,
            counters,
            lowered: None,
            name,
            called: AtomicBool::new(false),
            state: Mutex::default(),
            last: Mutex::default(),
        }
    }

    /// The same group with its kernels in the module: they run for calls that they were made for.
    pub fn lowered(self, lowered: Option<Lowered>) -> FusedGroup {
        FusedGroup { lowered, ..self }
    }

    /// Whether it writes to tensors that it is given.
    pub fn writes(&self) -> bool {
        self.writes
    }

    /// Counts a call, and says whether a kernel is faster for such inputs than the op itself: a single op needs a
    /// compiler and elements enough.
    pub fn pays(&self, inputs: &[Value]) -> bool {
        if !self.called.swap(true, Ordering::Relaxed) {
            self.counters.group();
        }
        let large = |v: &Value| matches!(v, Value::Tensor(t) if t.numel() >= ALONE_FROM);
        let on_device = self.backend.memory().is_some();
        let pays = !self.alone
            || self.lowered.is_some()
            || on_device
            || (self.backend.compiles() && inputs.iter().any(large));
        if !pays {
            self.counters.small(&self.name);
        }
        pays
    }

    /// Whether a kernel that is compiled before the first call will be used by such calls.
    pub(super) fn is_worth_compiling(&self, layouts: &[Option<Layout>]) -> bool {
        let large = |layout: &Option<Layout>| layout.as_ref().is_some_and(|l| l.numel() >= ALONE_FROM);
        let pays = !self.alone || layouts.iter().any(large);
        pays && self.lowered.is_none() && self.backend.compiles() && self.backend.target() == Target::Cpu
    }

    /// What its kernels run on.
    pub(super) fn backend(&self) -> &Arc<dyn Backend> {
        &self.backend
    }

    /// Keeps a kernel that was compiled, or a refusal, and counts it, unless there is one.
    pub(super) fn keep(&self, runner: &ProgramRunner, key: Key, compiled: Result<Arc<dyn Executable>>) {
        let mut kernels = runner.kernels.lock();
        if let Entry::Vacant(place) = kernels.entry(key) {
            self.site().count(place.key(), &compiled);
            place.insert(compiled);
        }
    }

    fn site(&self) -> Site<'_> {
        let lowered = self.lowered.as_ref();
        Site { backend: &*self.backend, counters: &self.counters, lowered, name: &self.name }
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
        let last = self.last.lock().clone();
        if let Some(planned) = last
            && let Some(given) = planned.takes.given(inputs)
        {
            planned.may_write(&given)?;
            return Ok(Prepared { planned, given, group: self });
        }
        let inputs = Inputs::of(inputs)?;
        let runner = self.specialized(inputs.signature(), registry)?;
        let planned = runner.plan(&inputs, &self.site())?;
        *self.last.lock() = Some(Arc::clone(&planned));
        let given = inputs.given();
        planned.may_write(&given)?;
        Ok(Prepared { planned, given, group: self })
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
        lowering::kernels(&self.graph, &inputs.signature(), &inputs.layouts(), registry, target)
    }

    pub(super) fn specialized(&self, sigs: Signature, registry: &Registry) -> Result<Arc<ProgramRunner>> {
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
        let outputs = self.planned.run(&self.given)?;
        self.group.counters.fused(&self.group.name);
        Ok(outputs)
    }
}

impl ProgramRunner {
    /// A runner without kernels.
    pub fn new(group: GroupProgram) -> ProgramRunner {
        ProgramRunner { group, kernels: Mutex::default(), last: Mutex::default() }
    }

    /// The group for its dtypes.
    pub(super) fn program(&self) -> &GroupProgram {
        &self.group
    }

    /// Whether it has a kernel, or knows that it is refused.
    pub(super) fn has(&self, key: &Key) -> bool {
        self.kernels.lock().contains_key(key)
    }

    /// Runs the group on inputs whose dtypes are those that it was read for.
    pub fn run(&self, inputs: &[Value], backend: &dyn Backend) -> Result<SmallVec<[Tensor; 2]>> {
        let inputs = Inputs::of(inputs)?;
        let site = Site { backend, counters: &FusionCounters::default(), lowered: None, name: "" };
        let planned = self.plan(&inputs, &site)?;
        let given = inputs.given();
        planned.may_write(&given)?;
        planned.run(&given)
    }

    /// The plan for inputs, with a kernel for each of its parts.
    fn plan(&self, inputs: &Inputs, site: &Site<'_>) -> Result<Arc<Planned>> {
        let last = self.last.lock().clone();
        if let Some(planned) = last.filter(|planned| inputs.have_layouts(&planned.takes)) {
            return Ok(planned);
        }
        let planned = Arc::new(self.make_plan(inputs, site)?);
        *self.last.lock() = Some(Arc::clone(&planned));
        Ok(planned)
    }

    fn make_plan(&self, inputs: &Inputs, site: &Site<'_>) -> Result<Planned> {
        let takes = inputs.takes();
        let plan = Plan::new(&self.group, takes.layouts())?;
        let lowered = site.lowered.filter(|lowered| lowered.fits(takes.signature(), &plan.parts));
        if site.lowered.is_some() {
            site.counters.of_module(site.name, lowered.map(|lowered| lowered.kernels.len()));
        }
        let target = lowered.map_or(site.backend.target(), |lowered| lowered.target);
        let mut launches = Vec::with_capacity(plan.parts.len());
        for (n, part) in plan.parts.iter().enumerate() {
            let integers = part.integers(target);
            let ready = match lowered {
                Some(lowered) => {
                    let buffers = buffers(part)?;
                    lowered::ready(lowered, (&self.group, part, n), (&buffers, &integers), site.backend)?
                }
                None => Ready { kernel: self.kernel(part, site)?, lengths: Vec::new() },
            };
            launches.push(PartLaunch::new(&self.group, part, &integers, ready)?);
        }
        let writes = self.group.writes.iter().map(|(input, _)| *input).collect();
        Ok(Planned { takes, plan, launches, writes, device: site.backend.memory() })
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
        // A failure is not a property of the kernel: the next call tries again.
        if compiled.as_ref().is_err_and(|error| error.kind() != ErrorKind::Unsupported) {
            return compiled;
        }
        site.count(&key, &compiled);
        self.kernels.lock().insert(key, compiled.clone());
        compiled
    }
}

impl Planned {
    /// That what is written to may be, by a kernel that reads the other inputs meanwhile.
    fn may_write(&self, given: &Given) -> Result<()> {
        if self.writes.is_empty() {
            return Ok(());
        }
        if self.device.is_some() {
            return Err(Diagnostic::unsupported("groups on a device write to no tensor that they are given"));
        }
        match self.writes.iter().all(|input| given.is_apart(*input)) {
            true => Ok(()),
            false => {
                Err(Diagnostic::unsupported("what the group writes to shares its memory, or is not ours"))
            }
        }
    }

    fn run(&self, given: &Given) -> Result<SmallVec<[Tensor; 2]>> {
        let device = self.device.as_deref();
        let outputs = allocate(&self.plan, device)?;
        let mut stores: SmallVec<[Storage; 2]> = outputs.iter().map(Tensor::storage).collect();
        for input in &self.writes {
            stores.push(given.memory(*input)?.clone());
        }
        self.launches.iter().try_for_each(|launch| launch.run(given, &stores, device))?;
        Ok(outputs)
    }
}
