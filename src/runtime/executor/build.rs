//! Builds a plan: the function's graph with the types of the arguments, run through the plan's pipeline, made code.
//! What a plan cannot be made for is said by a reason.

use super::counters::PlanCounters;
use super::guard::Guards;
use super::kept;
use super::making::{self, Maker, Making};
use super::open::OpenSpec;
use super::recording::{self, Recording};
use super::replay::Replay;
use super::spec;
use super::updates::Updates;
use crate::analysis::facts;
use crate::backends::cache::DiskCache;
use crate::backends::{Foreseen, compile_ahead};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::{Composites, Effects, Fact, Registry, Run, Strictness, Variant, fusion};
use crate::ir::{Attr, Function, Graph, Module, OpId, Symbol, Type, ValueId};
use crate::lowering;
use crate::passes::manager::{Runner, Settings};
use crate::passes::{
    self, Context, Extras, FiredRules, FrozenAttributes, Meanings, Pipeline, check_strict_fusion,
};
use crate::runtime::code::{self, Action, Code};
use crate::runtime::kept::Place;
use crate::runtime::packed::Packed;
use crate::tensor::{Moment, Tensor};
use crate::value::{Object, Value};
use hashbrown::HashMap;
use std::sync::{Arc, LazyLock};

/// What calls with equal specs run.
pub struct Plan {
    /// The graph, after the pipeline.
    pub(in crate::runtime) graph: Arc<Graph>,
    pub(in crate::runtime) code: Arc<Code>,
    pub(super) guards: Guards,
    /// How it came about.
    pub(in crate::runtime) making: Arc<Making>,
    /// How its calls are recorded, where something requires grad.
    pub(in crate::runtime) recording: Option<Arc<Recording>>,
    /// Its calls as recorded work of a device.
    pub(in crate::runtime) replay: Replay,
    /// Which arguments it writes to.
    pub(super) updates: Option<Updates>,
}

impl Plan {
    /// Whether what a call with these arguments writes to is apart from what it reads.
    pub(super) fn takes(&self, arguments: &[Value]) -> bool {
        self.recording.as_ref().is_none_or(|recording| recording.takes(arguments))
            && self.updates.as_ref().is_none_or(|updates| updates.takes(arguments))
    }
}

/// What a plan is built of.
pub(super) struct Subject<'a> {
    pub(super) module: &'a Module,
    pub(super) function: &'a Function,
    /// The receiver, where the function is a method.
    pub(super) instance: Option<&'a Object>,
    pub(super) arguments: &'a [Value],
    pub(super) context: code::Context<'a>,
    /// What other plans have packed.
    pub(super) packed: &'a Packed,
    /// Bytes that a call may keep for its backward.
    pub(super) max_kept: Option<u64>,
    /// Which sizes are open, where some are.
    pub(super) open: Option<&'a OpenSpec>,
    pub(super) counters: &'a PlanCounters,
    /// Where plans are kept on disk.
    pub(super) disk: Option<Arc<DiskCache>>,
}

impl<'a> Subject<'a> {
    /// What passes are to know: the open sizes.
    pub(super) fn extras(&self) -> Extras {
        let mut extras = Extras::default();
        if let Some(open) = self.open {
            extras.set(Arc::clone(&open.sizes));
        }
        extras
    }

    /// What the plan's code is made for, whose guards are numbered after those of the plan.
    pub(super) fn context_behind(&self, guards: &Guards) -> code::Context<'a> {
        let forced = self.context.forced.map(|forced| forced.behind(guards.len()));
        code::Context { packs: Some(self.packed), forced, ..self.context }
    }
}

/// Builds the plan of a call by a pipeline, which may leave writes to arguments for the end of the call. The inner error is the reason why there can be none; the outer one ends the run.
pub(super) fn build(
    subject: &Subject<'_>,
    pipeline: (&Pipeline, bool),
    run: &Run,
) -> Result<Result<Plan, String>> {
    match attempt(subject, pipeline, run) {
        Ok(plan) => {
            if let (Ok(plan), Some(all)) = (&plan, subject.context.strict_fusion) {
                check_strict_fusion(&plan.graph, subject.context.registry, all)?;
            }
            Ok(plan)
        }
        Err(error) if error.kind() == ErrorKind::Limit => Err(error),
        Err(error) => Ok(Err(format!("planning failed: {}", error.message()))),
    }
}

fn attempt(
    subject: &Subject<'_>,
    (pipeline, updates): (&Pipeline, bool),
    run: &Run,
) -> Result<Result<Plan, String>> {
    let registry = subject.context.registry;
    let mut folded = None;
    let graph = &subject.function.graph;
    if asks_for_grad_mode(graph) || refusal(registry, graph).is_some() {
        let function = folded.insert(without_dead_branches(subject, run.grad_enabled())?);
        if let Some(reason) = refusal(registry, &function.graph) {
            return Ok(Err(reason));
        }
    }
    let disk = subject.disk.clone();
    let subject = &Subject { function: folded.as_ref().unwrap_or(subject.function), disk, ..*subject };
    if run.grad_enabled()
        && let Some(recorded) = recording::attempt(subject)?
    {
        if subject.disk.is_some() && recorded.is_ok() {
            subject.counters.unkept("its calls record gradients");
        }
        return Ok(recorded);
    }
    let (graph, guards, making) = optimized(subject, (pipeline, true), run.known_composites())?;
    if making.kept > 0 {
        subject.counters.from_disk();
    }
    let graph = Arc::new(graph);
    let context = subject.context_behind(&guards);
    let code = Arc::new(Code::compile(context, &graph, subject.function.name.as_str())?);
    compile_groups(&graph, &code, registry);
    let updates = updates.then(|| Updates::of(&graph, constants(&graph)));
    let (making, replay) = (Arc::new(making), Replay::default());
    Ok(Ok(Plan { graph, code, guards, making, recording: None, replay, updates }))
}

/// Whether a graph asks whether gradients are recorded, or enters a block that may say so.
fn asks_for_grad_mode(graph: &Graph) -> bool {
    let asks = ["aten::is_grad_enabled", "prim::Enter"];
    graph.all_ops().into_iter().any(|op| asks.contains(&graph.kind(op).as_str()))
}

/// The function without branches that constants turn off (of an `inplace` that is False, mostly), without stretches that record no
/// gradients where they are recorded, and without questions for that where the answer is the same all through.
fn without_dead_branches(subject: &Subject<'_>, records: bool) -> Result<Function> {
    static PLAIN: LazyLock<Result<Pipeline>> = LazyLock::new(|| {
        passes::parse(
            "lower-grad-mode,constant-propagation-immutable-types,fold-grad-mode,constant-propagation-immutable-types",
        )
    });
    static RECORDED: LazyLock<Result<Pipeline>> = LazyLock::new(|| {
        passes::parse(
            "lower-grad-mode,constant-propagation-immutable-types,detach-no-grad,fold-grad-mode{recording},constant-propagation-immutable-types",
        )
    });
    let mut function = subject.function.clone();
    let context = Context::new(subject.context.registry, subject.module);
    let pipeline = if records { &RECORDED } else { &PLAIN };
    pipeline.as_ref().map_err(Clone::clone)?.run_graph(&mut function.graph, &context)?;
    Ok(function)
}

/// Compiles the kernels of the groups that every call runs and whose inputs have known types, all at once.
pub(super) fn compile_groups(graph: &Graph, code: &Code, registry: &Registry) {
    let ops: HashMap<u32, OpId> = graph.block_ops(graph.root()).map(|op| (op.index() as u32, op)).collect();
    let foreseen = code.steps.iter().filter(|step| !step.nested).filter_map(|step| {
        let Action::Fused { group, .. } = &step.action else { return None };
        let operands = graph.operands(*ops.get(&step.op)?).iter();
        let known = operands.map(|operand| lowering::pass::known(graph.ty(*operand)));
        let (inputs, layouts) = known.collect::<Option<Vec<_>>>()?.into_iter().unzip();
        Some(Foreseen { group: Arc::clone(group), inputs, layouts })
    });
    compile_ahead(&foreseen.collect::<Vec<_>>(), registry);
}

/// The function's graph after a pipeline, guards of what that took for granted, and what passes did; what they made is kept on disk
/// where that is asked for.
pub(super) fn optimized(
    subject: &Subject<'_>,
    (pipeline, keeps): (&Pipeline, bool),
    composites: Option<Arc<dyn Composites>>,
) -> Result<(Graph, Guards, Making)> {
    let frozen = Arc::new(FrozenAttributes::default());
    let mut extras = subject.extras();
    extras.set(Arc::clone(&frozen));
    let fired = Arc::new(FiredRules::default());
    extras.set(Arc::clone(&fired));
    if let Some(instance) = subject.instance {
        extras.set(Arc::new(instance.clone()));
    }
    if let Some(composites) = composites {
        extras.set(Arc::new(Meanings(composites)));
    }
    let verify = cfg!(debug_assertions).then_some(Strictness::Carry);
    let counters = subject.context.fusion;
    let (log, limits) = (counters.log_spec().clone(), subject.context.limits.clone());
    let settings = Settings { threads: 1, verify, extras, log, limits, ..Settings::default() };
    let mut module = typed(subject);
    let before = making::size(&module);
    let (mut maker, mut log) = (Maker::default(), Vec::new());
    let mut runner = Runner::new(subject.context.registry, settings, &mut log);
    runner.observe(&mut maker);
    let done = run_or_read(subject, (pipeline, keeps), &mut module, &mut runner);
    counters.keep_log(&String::from_utf8_lossy(&log));
    let found = done?;
    let guards = Guards::of(frozen.take(), constants(&subject.function.graph));
    let Some((_, function)) = module.functions.pop() else {
        return Err(Diagnostic::internal("the pipeline of plans removed the function"));
    };
    let mut making = maker.done(before, &fired);
    match found {
        Found::Read(kept) => making.and(kept),
        Found::Made(Some((place, before, since))) => {
            let stages = making.stages.get(before..).unwrap_or_default();
            if let Err(why) = kept::write((&place, subject), &function.graph, (stages, &making.rules), since)
            {
                subject.counters.unkept(why);
            }
        }
        Found::Made(None) => {}
    }
    Ok((function.graph, guards, making))
}

/// Where the end of a pipeline came from.
enum Found {
    /// From disk, with what passes did.
    Read(Making),
    /// Passes ran, after this number of others, since this moment; what they made is to be put there.
    Made(Option<(Place, usize, Moment)>),
}

/// Runs a pipeline; where a cache has what its end makes of the function, that is read instead, if it is asked for.
fn run_or_read(
    subject: &Subject<'_>,
    (pipeline, keeps): (&Pipeline, bool),
    module: &mut Module,
    runner: &mut Runner<'_>,
) -> Result<Found> {
    let Some((first, rest)) = kept::split(pipeline).filter(|_| keeps && subject.disk.is_some()) else {
        runner.run(pipeline, module)?;
        return Ok(Found::Made(None));
    };
    runner.run(&first, module)?;
    let name = subject.function.name;
    let place = module.functions.get(&name).and_then(|function| kept::place(subject, &rest, &function.graph));
    let place = place.and_then(|found| found.map_err(|why| subject.counters.unkept(why)).ok());
    if let Some((graph, kept)) = place.as_ref().and_then(|place| kept::read(place, subject))
        && let Some(function) = module.functions.get_mut(&name)
    {
        function.graph = graph;
        return Ok(Found::Read(kept));
    }
    let (before, since) = (runner.executed(), Moment::now());
    runner.run(&rest, module)?;
    Ok(Found::Made(place.map(|place| (place, before, since))))
}

/// The function alone in its module, its parameters typed by the arguments.
fn typed(subject: &Subject<'_>) -> Module {
    let mut function = subject.function.clone();
    let inputs = function.graph.inputs().to_vec();
    let declared: Vec<Type> = inputs.iter().map(|input| function.graph.ty(*input).clone()).collect();
    let types = match subject.open {
        Some(open) => open.types(&declared, subject.arguments),
        None => declared.iter().zip(subject.arguments).map(|(ty, value)| spec::refined(ty, value)).collect(),
    };
    for ((input, value), ty) in inputs.into_iter().zip(subject.arguments).zip(types) {
        function.graph.set_type(input, ty);
        if value.is_none() {
            none_for(&mut function.graph, input);
        }
    }
    let Module { classes, interfaces, enums, named_tuples, .. } = subject.module;
    let functions = [(function.name, function)].into_iter().collect();
    Module {
        functions,
        classes: classes.clone(),
        interfaces: interfaces.clone(),
        enums: enums.clone(),
        named_tuples: named_tuples.clone(),
    }
}

/// Lets a constant stand for an argument that is None in all calls of the plan.
fn none_for(graph: &mut Graph, input: ValueId) {
    if !graph.has_uses(input) {
        return;
    }
    let root = graph.root();
    let first = graph.first_op(root).unwrap_or_else(|| graph.terminator(root));
    let none = graph.create(Symbol::new("prim::Constant"), &[], &[graph.ty(input).clone()]);
    graph.insert_before(none, first);
    let none = graph.results(none)[0];
    graph.replace_all_uses(input, none);
}

/// The tensors that a graph has as constants: other functions may have them as well, and write to them.
fn constants(graph: &Graph) -> Vec<Tensor> {
    let ops = graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::Constant");
    ops.filter_map(|op| match graph.attr(op, "value")? {
        Attr::Tensor(tensor) => Some(tensor.clone()),
        _ => None,
    })
    .collect()
}

/// Why no plan can be made of a graph.
fn refusal(registry: &Registry, graph: &Graph) -> Option<String> {
    graph.all_ops().into_iter().find_map(|op| refuses(registry, graph, op))
}

fn refuses(registry: &Registry, graph: &Graph, op: OpId) -> Option<String> {
    let kind = graph.kind(op);
    if graph.attr(op, "Subgraph").is_some() && !fusion::is_group(kind) {
        return Some(format!("{kind} runs other code"));
    }
    if !graph.nested_blocks(op).is_empty() || fusion::is_group(kind) {
        return None;
    }
    let facts = facts(registry, graph, op);
    let Some(row) = &facts.op else { return Some(format!("{kind} is not known")) };
    let has = |fact: Fact| row.def().facts.contains(&fact);
    if facts.effects.contains(Effects::ALL) {
        return Some(format!("{kind} may do anything"));
    }
    if has(Fact::Autograd) {
        return Some(format!("{kind} speaks with autograd"));
    }
    if facts.writes && (has(Fact::Reshapes) || row.variant() == Variant::Out) {
        return Some(format!("{kind} may give a tensor other sizes in place"));
    }
    None
}
