//! The executor: for each function of a program and each kind of arguments (an [`ArgumentSpec`]) one plan, built before
//! the first op of the first such call runs, once however many threads ask for it.
//!
//! A call looks its spec up, checks that what the plan froze is still the same, and runs the plan's code. A call that has
//! no plan runs as it would without an executor, and is counted with the reason. It knows passes and code, no op by name.

mod background;
#[cfg(test)]
mod background_tests;
mod build;
mod counters;
mod draws;
#[cfg(test)]
mod frozen_tests;
mod guard;
mod guarded;
mod kept;
#[cfg(test)]
mod kept_tests;
mod making;
mod open;
#[cfg(test)]
mod open_tests;
mod optimize;
mod origins;
mod parts;
mod pending;
mod plan;
mod recording;
mod replay;
mod results;
mod state;
mod subject;
#[cfg(test)]
mod tests;
mod updates;

pub use counters::PlanReport;
pub use making::{Making, Stage};
pub use plan::Plan;
pub use state::PlanState;

use super::checks::{Asked, Forced};
use super::code;
use super::inner::Inner;
use super::packed::Packed;
use super::spec::{self, ArgumentSpec, Kind, Words};
use crate::backends::cache::{self, DiskCache};
use crate::diag::{Result, Span};
use crate::dialects::{Contract, GraphId, Run};
use crate::ir::{Function, Graph, Module, Symbol, Type};
use crate::passes::{self, Pipeline};
use crate::value::{Object, Value};
use counters::PlanCounters;
use hashbrown::HashMap;
use open::{OpenSpec, Shape};
use parking_lot::{Mutex, RwLock};
use pending::{IN_BACKGROUND, Pending};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Instant;
use subject::Subject;

/// Plans of a function that may be given up before a kind of arguments must come back to get one: building one a call would
/// cost more than plans save.
const MAX_LOST: u64 = 64;
/// Calls of one kind before it gets a plan, once that number was given up.
const CALLS_BEFORE_PLAN: u64 = 16;
/// Kinds of arguments that are counted meanwhile.
const MAX_WAITING: usize = 16;

/// Why calls before the one that makes a plan run without.
const EARLY: &str = "fewer calls came than are to be profiled";

/// Kinds of arguments without a plan that are remembered for reports.
const MAX_KINDS: usize = 64;

/// The name of the plan's pipeline among the named ones.
pub const PIPELINE: &str = "plan";
/// The same for tensors on a device: layers and their layouts are its libraries' own.
const DEVICE_PIPELINE: &str = "device-plan";
/// The plan's pipeline where numbers need only be near: batch norm is folded into weights.
const FAST_PIPELINE: &str = "fast-plan";

/// The plans of a program.
pub(super) struct Executor {
    pipeline: Result<Pipeline>,
    /// That of calls that write to their arguments; none on a device.
    updates: Option<Result<Pipeline>>,
    functions: RwLock<HashMap<Symbol, Arc<Plans>>>,
    counters: PlanCounters,
    packed: Packed,
    /// The guard that is to miss.
    forced: Option<Arc<Forced>>,
    /// For how many kinds of arguments a function keeps plans, whatever runs say.
    kinds: usize,
    /// Bytes that a call may keep for its backward.
    max_kept: Option<u64>,
    /// Whether plans may leave sizes open.
    opens: bool,
    /// Plans for kinds of arguments that differ in sizes alone, where runs do not say it.
    static_plans: Option<usize>,
    /// Plans that other threads make.
    pending: Arc<Pending>,
    /// Where plans are kept on disk, in place of the cache of the process.
    disk: Option<Arc<DiskCache>>,
}

/// The plans of a function.
#[derive(Default)]
struct Plans {
    slots: RwLock<Vec<Arc<Slot>>>,
    /// Counts calls; slots remember when they were last used.
    clock: AtomicU64,
    /// Plans that were evicted or outdated.
    lost: AtomicU64,
    /// Kinds of arguments that are to come back before they get a plan, and the calls of each so far.
    waiting: Mutex<Vec<(ArgumentSpec, u64)>>,
    /// Kinds of arguments, sizes apart, that have no plan for open sizes.
    closed: Mutex<VecDeque<Words>>,
    /// The kinds of arguments that had no plan when they came, for people, by the hashes of their specs; the newest last.
    kinds: Mutex<VecDeque<(u64, Kind)>>,
}

/// What a plan is made for.
#[derive(Clone)]
enum Spec {
    /// Calls of one kind, and its sizes apart, where these may be left open.
    Exact(Arc<Exact>),
    /// Calls that differ in sizes.
    Open(Arc<OpenSpec>),
}

/// What came of looking for a plan for open sizes.
enum Opened {
    /// It is not there yet, and why.
    NotYet(&'static str),
    /// Its place, and whether it was there before.
    Slot(Arc<Slot>, bool),
    /// There is none for such a call.
    Nothing,
}

/// The kind of calls that a plan is made for.
struct Exact {
    spec: ArgumentSpec,
    shape: Option<Shape>,
}

/// The place of one plan.
struct Slot {
    spec: Spec,
    /// The spec for people.
    kind: Kind,
    /// Where the function was defined.
    source: Option<Span>,
    used: AtomicU64,
    building: Mutex<()>,
    /// Whether another thread than those of calls makes the plan.
    is_left: AtomicBool,
    plan: OnceLock<Result<Arc<Plan>, String>>,
    /// Calls that came before the plan was to be made.
    early: AtomicUsize,
    /// Calls of another kind that examined it, and the hash of the last one's spec.
    passed_by: AtomicU64,
    other: AtomicU64,
    /// The guards of the plans that stood here before.
    before: Vec<Asked>,
}

/// A call as the executor sees it.
pub(super) struct Call<'a> {
    pub(super) program: &'a Arc<Inner>,
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    /// The receiver, where the function is a method.
    pub(super) instance: Option<&'a Object>,
    /// As the function takes them, the receiver first.
    pub(super) arguments: &'a [Value],
    pub(super) context: code::Context<'a>,
}

impl Executor {
    /// An executor without plans yet, with the guard that is to miss; whether tensors are on a device with libraries of its own;
    /// for how many kinds of arguments plans are kept, where runs ask for fewer; and what plans promise about numbers.
    pub(super) fn new(
        forced: Option<Arc<Forced>>,
        on_device: bool,
        kinds: usize,
        contract: Contract,
    ) -> Executor {
        let parse = |text| {
            let mut pipeline = passes::parse(text)?;
            pipeline.set_default("contract", contract.name());
            Ok(pipeline)
        };
        let pipeline = parse(match contract {
            _ if on_device => DEVICE_PIPELINE,
            Contract::FastMath => FAST_PIPELINE,
            _ => PIPELINE,
        });
        let updates = (!on_device).then(|| parse(updates::PIPELINE));
        Executor {
            pipeline,
            updates,
            functions: RwLock::default(),
            counters: PlanCounters::default(),
            packed: Packed::default(),
            forced,
            kinds,
            max_kept: None,
            opens: !on_device,
            static_plans: None,
            pending: Arc::default(),
            disk: None,
        }
    }

    /// The executor with a limit of the bytes that a call keeps for its backward.
    pub(super) fn keeping_at_most(self, max_kept: Option<u64>) -> Executor {
        Executor { max_kept, ..self }
    }

    /// The executor with its own number of plans for kinds of arguments that differ in sizes alone, whatever runs say.
    pub(super) fn with_static_plans(self, static_plans: Option<usize>) -> Executor {
        Executor { static_plans, ..self }
    }

    /// The executor with a cache of plans on disk of its own.
    pub(super) fn with_disk(self, disk: Option<Arc<DiskCache>>) -> Executor {
        Executor { disk, ..self }
    }

    /// That cache.
    pub(super) fn own_disk(&self) -> Option<Arc<DiskCache>> {
        self.disk.clone()
    }

    /// That number.
    pub(super) fn static_plans(&self) -> Option<usize> {
        self.static_plans
    }

    /// That limit.
    pub(super) fn max_kept(&self) -> Option<u64> {
        self.max_kept
    }

    /// For how many kinds of arguments a function keeps plans, whatever runs say.
    pub(super) fn kinds(&self) -> usize {
        self.kinds
    }

    /// What became of calls so far.
    pub(super) fn report(&self) -> PlanReport {
        let (packed, shared_packs) = self.packed.counts();
        PlanReport { packed, shared_packs, ..self.counters.report() }
    }

    /// The plan that a call runs, built where there is none yet. None where the call runs without one, which is counted.
    /// Fails only where the run must end.
    pub(super) fn plan(self: &Arc<Executor>, call: &Call<'_>, run: &Run) -> Result<Option<Arc<Plan>>> {
        if let Some(reason) = refusal(call, run) {
            self.counters.unplanned(reason);
            return Ok(None);
        }
        let plans = self.plans(call.function.name);
        let spec = ArgumentSpec::of(call.arguments, run);
        let known = plans.find(&spec);
        let own = self.static_plans.unwrap_or_else(|| run.static_plans());
        let may_open = known.is_none() && self.opens && own != usize::MAX;
        let shape = may_open.then(|| Shape::of(call.arguments, run)).flatten();
        // The first call that finds a plan has not made it.
        let (found, is_made) = match (known, &shape) {
            (Some(slot), _) => {
                let is_made = slot.plan.get().is_some();
                (Some(slot), is_made)
            }
            (None, Some(shape)) => match self.opened(&plans, shape, own, call, run)? {
                Opened::NotYet(reason) => {
                    self.counters.unplanned(reason);
                    return Ok(None);
                }
                Opened::Slot(slot, is_made) => (Some(slot), is_made),
                Opened::Nothing => (None, false),
            },
            (None, None) => (None, false),
        };
        let Some(slot) = found.or_else(|| {
            let new = (plans.note(&spec, call, run), call.function.span.clone());
            plans.add((spec, shape), new, run.plan_limit().max(self.kinds), &self.counters)
        }) else {
            self.counters.unplanned("arguments or attributes differ from call to call");
            return Ok(None);
        };
        if let Some(reason) = self.not_yet(&slot, call, run) {
            self.counters.unplanned(reason);
            return Ok(None);
        }
        let found = self.ready(&slot, call, run)?;
        if is_made && found.is_ok() {
            self.counters.hit();
        }
        if matches!(found, Ok(plan) if !plan.takes(call.arguments)) {
            self.counters.unplanned("an argument shares memory with a tensor that the call writes to");
            return Ok(None);
        }
        let outdated = matches!(found, Ok(plan) if !plan.guards.hold(self.forced.as_ref()));
        if !outdated {
            return Ok(self.settled(found));
        }
        self.counters.outdated();
        match plans.replace(&slot) {
            Some(slot) if self.is_left_to_others(&slot, call, run) => {
                self.counters.unplanned(IN_BACKGROUND);
                Ok(None)
            }
            Some(slot) => Ok(self.settled(self.ready(&slot, call, run)?)),
            None => {
                self.counters.unplanned("arguments or attributes differ from call to call");
                Ok(None)
            }
        }
    }

    /// Why a call runs without the plan of its slot, which is not made yet, and not by this call.
    fn not_yet(self: &Arc<Executor>, slot: &Arc<Slot>, call: &Call<'_>, run: &Run) -> Option<&'static str> {
        if slot.is_early(run) {
            return Some(EARLY);
        }
        self.is_left_to_others(slot, call, run).then_some(IN_BACKGROUND)
    }

    /// The plan for open sizes that a call may run, made where it is due.
    fn opened(
        self: &Arc<Executor>,
        plans: &Plans,
        shape: &Shape,
        own: usize,
        call: &Call<'_>,
        run: &Run,
    ) -> Result<Opened> {
        let kind = |open: &OpenSpec| self.kind_of(open, call, run);
        let open = plans.find_open(shape).or_else(|| plans.open(shape, own, &kind, call, &self.counters));
        let Some(slot) = open else { return Ok(Opened::Nothing) };
        if let Some(reason) = self.not_yet(&slot, call, run) {
            return Ok(Opened::NotYet(reason));
        }
        let is_made = slot.plan.get().is_some();
        if self.ready(&slot, call, run)?.is_err() {
            // Each kind has a plan of its own then, or the reason why not.
            plans.close(shape, &slot);
            return Ok(Opened::Nothing);
        }
        // What follows from sizes was found while the plan was made.
        let takes = slot.spec.takes(shape);
        Ok(if takes { Opened::Slot(slot, is_made) } else { Opened::Nothing })
    }

    /// A kind of open sizes, for people.
    fn kind_of(&self, open: &OpenSpec, call: &Call<'_>, run: &Run) -> Kind {
        let arguments = &call.function.schema.arguments;
        let declared: Vec<Type> = arguments.iter().map(|argument| argument.ty.clone()).collect();
        let names = arguments.iter().map(|argument| argument.name.as_str());
        Kind::of(names, open.types(&declared, call.arguments), run)
    }

    fn settled(&self, found: &Result<Arc<Plan>, String>) -> Option<Arc<Plan>> {
        match found {
            Ok(plan) => Some(Arc::clone(plan)),
            Err(reason) => {
                self.counters.unplanned(reason);
                None
            }
        }
    }

    /// The graphs of the plans that are kept, with the function of each, in order of names; of plans that record gradients the
    /// draws and the backward too.
    pub(super) fn graphs(&self) -> Vec<(Symbol, Arc<Graph>)> {
        let mut out: Vec<(Symbol, Arc<Graph>)> = Vec::new();
        for (function, plans) in self.functions.read().iter() {
            let slots = plans.slots.read();
            for plan in slots.iter().filter_map(|slot| slot.plan.get()?.as_ref().ok()) {
                out.push((*function, Arc::clone(&plan.graph)));
                if let Some(recording) = &plan.recording {
                    let parts = [
                        ("draws", recording.draws_graph.as_ref()),
                        ("backward", Some(&recording.backward_graph)),
                    ];
                    for (part, graph) in parts.into_iter().filter_map(|(part, graph)| Some((part, graph?))) {
                        out.push((Symbol::new(&format!("{function} {part}")), Arc::clone(graph)));
                    }
                }
            }
        }
        out.sort_by_key(|(function, _)| function.as_str());
        out
    }

    /// The graph that a call ran by its plan, if one was made for its kind of arguments and is kept: with or without gradients,
    /// whichever was used last.
    pub(super) fn graph_of(&self, function: Symbol, arguments: &[Value]) -> Option<Arc<Graph>> {
        let plans = self.functions.read().get(&function).map(Arc::clone)?;
        let spec = ArgumentSpec::of(arguments, &Run::silent());
        let slots = plans.slots.read();
        let shapes: Vec<Shape> = [true, false]
            .into_iter()
            .filter_map(|grad| {
                let run = Run::silent();
                run.set_grad_enabled(grad);
                Shape::of(arguments, &run)
            })
            .collect();
        let alike = slots.iter().filter(|slot| match &slot.spec {
            Spec::Exact(own) => own.spec.is_for_arguments_of(&spec),
            Spec::Open(_) => shapes.iter().any(|shape| slot.spec.takes(shape)),
        });
        // Calls of a kind that has a plan of its own run that.
        let is_exact = |slot: &Slot| matches!(slot.spec, Spec::Exact(..));
        let slot = alike.max_by_key(|slot| (is_exact(slot), slot.used.load(Ordering::Relaxed)))?;
        Some(Arc::clone(&slot.plan.get()?.as_ref().ok()?.graph))
    }

    /// The graph that the last planned call of a function ran, if its plan is kept.
    pub(super) fn last_graph(&self, function: Symbol) -> Option<Arc<Graph>> {
        let plans = self.functions.read().get(&function).map(Arc::clone)?;
        let slots = plans.slots.read();
        let made = slots.iter().filter(|slot| matches!(slot.plan.get(), Some(Ok(_))));
        let slot = made.max_by_key(|slot| slot.used.load(Ordering::Relaxed))?;
        Some(Arc::clone(&slot.plan.get()?.as_ref().ok()?.graph))
    }

    /// How the plans that are kept were made, by their graphs.
    pub(super) fn makings(&self) -> HashMap<GraphId, Arc<Making>> {
        let mut out = HashMap::new();
        for plans in self.functions.read().values() {
            let slots = plans.slots.read();
            let made = slots.iter().filter_map(|slot| slot.plan.get()?.as_ref().ok());
            out.extend(made.map(|plan| (GraphId::of(&plan.graph), Arc::clone(&plan.making))));
        }
        out
    }

    fn plans(&self, function: Symbol) -> Arc<Plans> {
        if let Some(plans) = self.functions.read().get(&function) {
            return Arc::clone(plans);
        }
        Arc::clone(self.functions.write().entry(function).or_default())
    }

    /// What a slot holds; it is built by the first who asks, and the others wait.
    fn ready<'s>(&self, slot: &'s Slot, call: &Call<'_>, run: &Run) -> Result<&'s Result<Arc<Plan>, String>> {
        if let Some(found) = slot.plan.get() {
            return Ok(found);
        }
        let _building = slot.building.lock();
        if let Some(found) = slot.plan.get() {
            // Another call made it meanwhile.
            if found.is_ok() {
                self.counters.hit();
            }
            return Ok(found);
        }
        self.counters.miss();
        let begin = Instant::now();
        let Call { module, function, instance, arguments, context, .. } = *call;
        let packed = &self.packed;
        let max_kept = self.max_kept;
        let open = if let Spec::Open(open) = &slot.spec { Some(&**open) } else { None };
        let (counters, disk) =
            (&self.counters, self.own_disk().or_else(|| cache::installed(cache::Kind::Plans)));
        let subject = Subject {
            module,
            function,
            instance,
            arguments,
            context,
            packed,
            max_kept,
            open,
            counters,
            disk,
        };
        let updates = self.updates.as_ref().filter(|_| open.is_none() && updates::may_update(&subject));
        let pipeline = updates.unwrap_or(&self.pipeline).as_ref().map_err(Clone::clone)?;
        let built = build::build(&subject, (pipeline, updates.is_some()), run)?;
        if let Ok(plan) = &built {
            self.counters.built(begin.elapsed());
            if open.is_some() {
                self.counters.open();
            }
            if let Some(recording) = &plan.recording {
                self.counters.recording(recording.kept_bytes());
            }
        }
        Ok(slot.plan.get_or_init(|| built.map(Arc::new)))
    }
}

/// Why a call runs without a plan whatever it calls.
fn refusal(call: &Call<'_>, run: &Run) -> Option<&'static str> {
    if run.watcher().is_some_and(|watcher| !watcher.knows_plans()) {
        return Some("a tool watches every op");
    }
    if run.audits() {
        return Some("every op is audited");
    }
    if run.plan_limit() == 0 {
        return Some("no plans are to be kept");
    }
    let holds_tensors = |value: &Value| matches!(value, Value::Tensor(_) | Value::Tuple(_) | Value::List(_));
    if !call.arguments.iter().any(holds_tensors) {
        return Some("no argument is a tensor");
    }
    None
}

impl Plans {
    fn find(&self, spec: &ArgumentSpec) -> Option<Arc<Slot>> {
        let now = self.clock.fetch_add(1, Ordering::Relaxed);
        let slots = self.slots.read();
        let slot = slots.iter().find(|slot| {
            let Spec::Exact(own) = &slot.spec else { return false };
            let is_it = own.spec == *spec;
            if !is_it {
                slot.passed_by.fetch_add(1, Ordering::Relaxed);
                slot.other.store(spec.hash(), Ordering::Relaxed);
            }
            is_it
        })?;
        slot.used.store(now, Ordering::Relaxed);
        Some(Arc::clone(slot))
    }

    /// The place of a plan for open sizes that takes a call.
    fn find_open(&self, shape: &Shape) -> Option<Arc<Slot>> {
        let slots = self.slots.read();
        let slot = slots.iter().find(|slot| slot.spec.takes(shape))?;
        slot.used.store(self.clock.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(slot))
    }

    /// A place for a plan for open sizes, where as many of a kind as may have them have plans of their own; or instead
    /// of one that has fewer open sizes.
    fn open(
        &self,
        shape: &Shape,
        own: usize,
        kind: &dyn Fn(&OpenSpec) -> Kind,
        call: &Call<'_>,
        counters: &PlanCounters,
    ) -> Option<Arc<Slot>> {
        if self.closed.lock().contains(shape.words()) {
            return None;
        }
        let mut slots = self.slots.write();
        let like = |slot: &&Arc<Slot>| matches!(&slot.spec, Spec::Open(open) if open.is_like(shape));
        let known = slots.iter().find(like).cloned();
        let spec = match known.as_deref().map(|slot| &slot.spec) {
            // Another thread may have made the place meanwhile.
            Some(Spec::Open(open)) if open.takes(shape) => return known,
            Some(Spec::Open(open)) if open.is_too_narrow(shape) => None,
            Some(Spec::Open(open)) => open.and(shape),
            _ => {
                let shape_of = |slot: &Arc<Slot>| match &slot.spec {
                    Spec::Exact(own) => own.shape.clone().filter(|other| other.is_like(shape)),
                    Spec::Open(_) => None,
                };
                let others: Vec<Shape> = slots.iter().filter_map(shape_of).collect();
                // Another thread may have made its own place meanwhile.
                if others.iter().any(|other| other.has_sizes_of(shape)) {
                    return None;
                }
                (others.len() >= own).then(|| OpenSpec::of(others.iter().chain([shape])))?
            }
        }?;
        if !spec.takes(shape) {
            return None;
        }
        let kind = kind(&spec);
        let former = known.as_deref();
        let own = (Spec::Open(Arc::new(spec)), kind, call.function.span.clone());
        let slot = Slot::new(own, self.clock.load(Ordering::Relaxed), former);
        match slots.iter().position(|slot| former.is_some_and(|former| std::ptr::eq(former, &**slot))) {
            Some(at) => {
                slots[at] = Arc::clone(&slot);
                counters.evicted();
            }
            None => slots.push(Arc::clone(&slot)),
        }
        Some(slot)
    }

    /// Remembers that no plan for open sizes can be made of a kind, for which a place was made.
    fn close(&self, shape: &Shape, slot: &Arc<Slot>) {
        let mut closed = self.closed.lock();
        if closed.len() >= MAX_KINDS {
            closed.pop_front();
        }
        closed.push_back(shape.words().clone());
        self.slots.write().retain(|other| !Arc::ptr_eq(other, slot));
    }

    /// A place for a spec, or the one that another thread has made meanwhile. None where too many plans were lost and the
    /// spec has not come back often enough.
    /// The plan that was not used for longest goes where there are `limit` already.
    fn add(
        &self,
        (spec, shape): (ArgumentSpec, Option<Shape>),
        (kind, source): (Kind, Option<Span>),
        limit: usize,
        counters: &PlanCounters,
    ) -> Option<Arc<Slot>> {
        let mut slots = self.slots.write();
        if let Some(slot) = slots.iter().find(|slot| slot.is_for(&spec)) {
            return Some(Arc::clone(slot));
        }
        if self.lost.load(Ordering::Relaxed) >= MAX_LOST && !self.is_due(&spec) {
            return None;
        }
        while slots.len() >= limit.max(1) {
            self.lost.fetch_add(1, Ordering::Relaxed);
            let oldest = slots.iter().enumerate().min_by_key(|(_, slot)| slot.used.load(Ordering::Relaxed));
            if let Some((at, _)) = oldest {
                slots.swap_remove(at);
                counters.evicted();
            }
        }
        let slot = Slot::new(
            (Spec::Exact(Arc::new(Exact { spec, shape })), kind, source),
            self.clock.load(Ordering::Relaxed),
            None,
        );
        slots.push(Arc::clone(&slot));
        Some(slot)
    }

    /// Remembers a kind of arguments that has no plan, for reports, and gives it.
    fn note(&self, spec: &ArgumentSpec, call: &Call<'_>, run: &Run) -> Kind {
        let mut kinds = self.kinds.lock();
        if let Some((_, kind)) = kinds.iter().find(|(hash, _)| *hash == spec.hash()) {
            return kind.clone();
        }
        let names = call.function.schema.arguments.iter().map(|argument| argument.name.as_str());
        let types = call.arguments.iter().map(|value| spec::refined(&value.ty(), value));
        let kind = Kind::of(names, types, run);
        if kinds.len() >= MAX_KINDS {
            kinds.pop_front();
        }
        kinds.push_back((spec.hash(), kind.clone()));
        kind
    }

    /// The kind of arguments whose spec has a hash, if it is remembered.
    fn kind(&self, hash: u64) -> Option<Kind> {
        self.kinds.lock().iter().find(|(known, _)| *known == hash).map(|(_, kind)| kind.clone())
    }

    /// Whether calls of a kind have come often enough for a plan although many were lost. The kind that came least often is
    /// forgotten where too many are counted.
    fn is_due(&self, spec: &ArgumentSpec) -> bool {
        let mut waiting = self.waiting.lock();
        let at = waiting.iter().position(|(known, _)| known == spec).unwrap_or_else(|| {
            if waiting.len() >= MAX_WAITING
                && let Some(rarest) = (0..waiting.len()).min_by_key(|n| waiting[*n].1)
            {
                waiting.remove(rarest);
            }
            waiting.push((spec.clone(), 0));
            waiting.len() - 1
        });
        waiting[at].1 += 1;
        let due = waiting[at].1 >= CALLS_BEFORE_PLAN;
        if due {
            waiting.remove(at);
        }
        due
    }

    /// A new place instead of one whose plan does not hold any more. None where too many plans were lost.
    fn replace(&self, outdated: &Arc<Slot>) -> Option<Arc<Slot>> {
        let mut slots = self.slots.write();
        let at = slots.iter().position(|slot| slot.spec.is(&outdated.spec))?;
        if !Arc::ptr_eq(&slots[at], outdated) {
            return Some(Arc::clone(&slots[at]));
        }
        if self.lost.fetch_add(1, Ordering::Relaxed) >= MAX_LOST {
            slots.swap_remove(at);
            return None;
        }
        let now = self.clock.load(Ordering::Relaxed);
        let own = (outdated.spec.clone(), outdated.kind.clone(), outdated.source.clone());
        slots[at] = Slot::new(own, now, Some(outdated));
        Some(Arc::clone(&slots[at]))
    }
}

impl Spec {
    /// Whether it is for calls that differ in sizes, and for one of this shape.
    fn takes(&self, shape: &Shape) -> bool {
        matches!(self, Spec::Open(open) if open.takes(shape))
    }

    fn is(&self, other: &Spec) -> bool {
        match (self, other) {
            (Spec::Exact(own), Spec::Exact(other)) => own.spec == other.spec,
            (Spec::Open(own), Spec::Open(other)) => own == other,
            _ => false,
        }
    }
}

impl Slot {
    /// Whether it is for calls of this kind alone.
    fn is_for(&self, spec: &ArgumentSpec) -> bool {
        matches!(&self.spec, Spec::Exact(own) if own.spec == *spec)
    }

    /// Whether a call comes before the one that makes the plan.
    fn is_early(&self, run: &Run) -> bool {
        let wanted = run.profiled_runs().saturating_sub(1);
        wanted > 0
            && self.plan.get().is_none()
            && self.early.load(Ordering::Relaxed) < wanted
            && self.early.fetch_add(1, Ordering::Relaxed) < wanted
    }

    /// A place without a plan yet; `former` is the one that it stands in the place of.
    fn new((spec, kind, source): (Spec, Kind, Option<Span>), now: u64, former: Option<&Slot>) -> Arc<Slot> {
        let taken = |count: fn(&Slot) -> &AtomicU64| {
            AtomicU64::new(former.map_or(0, |former| count(former).load(Ordering::Relaxed)))
        };
        Arc::new(Slot {
            spec,
            kind,
            source,
            used: AtomicU64::new(now),
            building: Mutex::default(),
            is_left: AtomicBool::new(false),
            plan: OnceLock::new(),
            // Its kind of arguments is known where there was a plan.
            early: AtomicUsize::new(former.map_or(0, |former| former.early.load(Ordering::Relaxed))),
            passed_by: taken(|slot| &slot.passed_by),
            other: taken(|slot| &slot.other),
            before: former.map(Slot::guards_so_far).unwrap_or_default(),
        })
    }
}
