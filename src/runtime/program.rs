//! A program: a module made runnable. Code is compiled when a function is first called and kept.

use super::arguments::{self, Given};
use super::checks::{Forced, ForcedFrom, GuardState};
use super::code::{self, Code};
use super::composites::ScriptComposites;
use super::constants::Constants;
use super::executor::{Call, Executor, Making, Plan, PlanReport};
use super::kept::{self, Origin};
use super::{before_run, interpreter};
use crate::autodiff::Tape;
use crate::backends::cache::DiskCache;
use crate::backends::{Backend, FusionCounters, FusionReport};
use crate::diag::log::LogSpec;
use crate::diag::{Diagnostic, Result, Span, nearest};
use crate::dialects::{Contract, GraphId, Methods, Registry, Run, is_custom_class, unknown_class};
use crate::ir::{Argument, Function, Graph, Module, Schema, Symbol, Type};
use crate::passes::manager::{Limits, Settings};
use crate::passes::{Pipeline, check_strict_fusion, refused_call};
use crate::tensor::{DeviceMemory, Moment};
use crate::value::{Object, Value};
use hashbrown::HashMap;
use parking_lot::RwLock;
use std::sync::{Arc, OnceLock, Weak};

/// A module that can run, with the instance whose methods are its entries, if it has one. Clones share code.
#[derive(Clone)]
pub struct Program(Arc<Inner>);

pub(super) struct Inner {
    pub(super) module: Arc<Module>,
    pub(super) registry: Arc<Registry>,
    instance: Option<Object>,
    codes: RwLock<HashMap<Symbol, Arc<Code>>>,
    pub(super) constants: Constants,
    /// What runs fusion groups; without one, the CPU does.
    backend: Option<Arc<dyn Backend>>,
    /// Where that keeps its tensors, if not on the host.
    pub(super) device: Option<Arc<dyn DeviceMemory>>,
    /// What became of them.
    pub(super) fusion: Arc<FusionCounters>,
    /// Makes plans of calls from outside, where the program is to have them.
    executor: Option<Executor>,
    /// Whether the module is prepared already.
    contract: Contract,
    is_prepared: bool,
    /// Elements of an input from which groups get a compiled backward.
    pub(super) differentiates_from: usize,
    /// Whether all work is to be in fusion groups.
    strict_fusion: bool,
    /// How many changes the passes that make plans may make.
    limits: Limits,
    /// The guard that is to miss.
    forced: Option<Arc<Forced>>,
    /// Original places of the code, where it was generated.
    pub(super) origins: Arc<OnceLock<Origins>>,
    /// What the module was compiled from, where what passes make of it may be kept on disk.
    origin: Option<Arc<Origin>>,
    weak: Weak<Inner>,
}

/// Elements of the largest input from which a group's backward is worth being compiled.
const DIFFERENTIATES_FROM: usize = 1 << 10;

/// What a program is made with besides module, instance and ops.
#[derive(Default)]
struct Setting {
    backend: Option<Arc<dyn Backend>>,
    origins: Arc<OnceLock<Origins>>,
    log: LogSpec,
    /// For how many kinds of arguments a function keeps plans, at least; None where there are no plans.
    plans: Option<usize>,
    /// What plans promise about numbers.
    contract: Contract,
    is_prepared: bool,
    differentiates_from: Option<usize>,
    fails: Option<usize>,
    strict_fusion: bool,
    /// Bytes that a call may keep for its backward.
    max_kept: Option<u64>,
    /// Plans for kinds of arguments that differ in sizes alone, where runs do not say it.
    static_plans: Option<usize>,
    /// Where plans are kept on disk, in place of the cache of the process.
    disk: Option<Arc<DiskCache>>,
    limits: Limits,
    origin: Option<Arc<Origin>>,
}

/// Finds the original place of a place in generated code.
pub type Origins = Box<dyn Fn(&Span) -> Option<Span> + Send + Sync>;

impl Program {
    /// A program of free functions and classes, with the built-in ops.
    #[cfg(test)]
    pub(crate) fn new(module: Module) -> Program {
        Self::with(module, None, Registry::builtin())
    }

    /// A program whose entries are the methods of `instance` (a loaded model), over ops of the caller's choice.
    pub fn with(module: Module, instance: Option<Object>, registry: Arc<Registry>) -> Program {
        Program(Inner::new(Arc::new(module), instance, registry, Setting::default()))
    }

    /// Says where the code comes from, so that errors can show it. Only the first call counts.
    pub fn set_origins(&self, origins: Origins) {
        let _ = self.0.origins.set(origins);
    }

    /// The same program with its module changed, by passes for instance; they see it as it is prepared to run, with the casts
    /// of autocasting as ops.
    pub fn transformed(&self, change: impl FnOnce(&mut Module, &Registry) -> Result<()>) -> Result<Program> {
        let mut module = Module::clone(&self.0.module);
        if !self.0.is_prepared {
            before_run::prepare_module(&mut module, &self.0.registry)?;
        }
        change(&mut module, &self.0.registry)?;
        let setting = Setting { is_prepared: true, origin: None, ..self.setting() };
        Ok(self.with_module(Arc::new(module), setting))
    }

    /// The same program after a pipeline, which `change` runs with these settings: what that made of the module before is
    /// taken from disk, where it is kept.
    pub fn passed(
        &self,
        (pipeline, settings): (&Pipeline, &Settings),
        change: impl FnOnce(&mut Module, &Registry) -> Result<()>,
    ) -> Result<Program> {
        let origin = self.0.origin.as_ref();
        let Some(place) = origin.and_then(|origin| origin.passed(pipeline, settings)) else {
            return self.transformed(change);
        };
        let setting = || Setting { is_prepared: true, origin: None, ..self.setting() };
        if let Some(module) = kept::read(&place, &self.0.module) {
            return Ok(self.with_module(Arc::new(module), setting()));
        }
        let since = Moment::now();
        let program = self.transformed(change)?;
        let kept = kept::write(&place, (&self.0.module, &program.0.module), settings, since);
        Ok(kept.map_or(program, |module| self.with_module(Arc::new(module), setting())))
    }

    /// The same program, of which it is known what it was compiled from.
    pub(crate) fn with_origin(&self, origin: Origin) -> Program {
        let origin = Some(Arc::new(origin));
        self.with_module(Arc::clone(&self.0.module), Setting { origin, ..self.setting() })
    }

    /// The same program with its fusion groups run by `backend`; ops outside of groups run on the CPU.
    pub fn on(&self, backend: Arc<dyn Backend>) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { backend: Some(backend), ..self.setting() })
    }

    /// The same program with a plan for each kind of arguments that a function is called with from outside: attributes that are
    /// never written become constants, sizes are known, and all that follows from both. Answers stay the same; what cannot
    /// be planned runs as it would without, and is counted.
    pub fn planned(&self) -> Program {
        let mut module = Arc::clone(&self.0.module);
        // A module that cannot be prepared has no plans: its functions say why when they run.
        let is_prepared = self.0.is_prepared
            || before_run::prepare_module(Arc::make_mut(&mut module), &self.0.registry).is_ok();
        let plans = is_prepared.then_some(self.0.executor.as_ref().map_or(0, Executor::kinds));
        self.with_module(module, Setting { plans, is_prepared, ..self.setting() })
    }

    /// The same program, whose plans promise this about numbers; [`Contract::Exact`] where nothing is said. Under
    /// [`Contract::FastMath`] batch norm is folded into weights.
    pub fn under(&self, contract: Contract) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { contract, ..self.setting() })
    }

    /// As [`Program::planned`], with plans kept for at least `kinds` kinds of arguments of a function, whatever runs say.
    pub(crate) fn planned_for(&self, kinds: usize) -> Program {
        let planned = self.planned();
        let plans = planned.0.executor.as_ref().map(|_| kinds);
        planned.with_module(Arc::clone(&planned.0.module), Setting { plans, ..planned.setting() })
    }

    /// The same program with its own answer to [`Run::set_static_plans`]: how many kinds of arguments that differ in sizes alone have plans
    /// of their own before one leaves sizes open; 0 for none, so that the first plan does.
    pub fn with_static_plans(&self, plans: usize) -> Program {
        let static_plans = Some(plans);
        self.with_module(Arc::clone(&self.0.module), Setting { static_plans, ..self.setting() })
    }

    /// Waits until no plan of it is being made by another thread.
    pub fn finish_plans(&self) {
        if let Some(executor) = &self.0.executor {
            executor.finish();
        }
    }

    /// Whether it makes plans.
    pub fn has_plans(&self) -> bool {
        self.0.executor.is_some()
    }

    /// What became of the calls of a program with plans so far. Programs made of this one count for themselves.
    pub fn plan_report(&self) -> PlanReport {
        let forced_misses = self.0.forced.as_ref().map_or(0, |forced| forced.misses());
        let report = self.0.executor.as_ref().map(Executor::report).unwrap_or_default();
        PlanReport { forced_misses, ..report }
    }

    /// The same program with a guard that misses whenever it is asked, although it holds: answers are the same, and slower. Guards
    /// of each plan are numbered from 0, those inside its graph after its own; those of functions that run without plans from
    /// 0 too. [`Program::guards`] lists them, [`PlanReport::forced_misses`] counts.
    pub fn failing_guard(&self, number: usize) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { fails: Some(number), ..self.setting() })
    }

    /// The same program, whose plans keep a limited number of bytes for the backward of a call, as far as types determine it and
    /// arguments can give the rest again: what would be more is computed again in the backward, products too, the cheapest first. Gradients
    /// stay the same. [`PlanReport::kept_bytes`] says what is kept.
    pub fn keeping_at_most(&self, bytes: u64) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { max_kept: Some(bytes), ..self.setting() })
    }

    /// The same program, whose calls fail where work is not in a fusion group or a layer, naming each such op and why. Programs with plans
    /// do the same for what stands within `torch.jit.strict_fusion`.
    pub fn strictly_fused(&self) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { strict_fusion: true, ..self.setting() })
    }

    /// What plans that are kept, and functions that ran without one, ask before they go on, and how often it held: in order of
    /// functions, plans before code without one, by number.
    pub fn guards(&self) -> Vec<GuardState> {
        let shown = |span: &Span| self.shown_line(span);
        let mut out = self.0.executor.as_ref().map(|executor| executor.guards(&shown)).unwrap_or_default();
        for (function, code) in self.0.codes.read().iter() {
            let guards = code.guards.iter().enumerate();
            out.extend(guards.map(|(number, check)| {
                check.asked().state((*function, None), number, check.is_forced(), &shown)
            }));
        }
        out.sort_by_key(|guard| (guard.function.as_str(), guard.plan.is_none()));
        out
    }

    /// What makes plans, and the code of functions that were called without one.
    pub(super) fn executor_and_codes(&self) -> (Option<&Executor>, HashMap<Symbol, Arc<Code>>) {
        (self.0.executor.as_ref(), self.0.codes.read().clone())
    }

    /// A place with its line: `f.py:3: return x + 1`, of the original code where the code was generated. Empty where nothing is known.
    fn shown_line(&self, span: &Span) -> String {
        let original = self.0.origins.get().and_then(|origins| origins(span));
        super::code::shown_line(original.as_ref().unwrap_or(span))
    }

    /// The graphs of the plans that were made and are kept, each with the function that it is a plan of.
    pub fn plan_graphs(&self) -> Vec<(Symbol, Arc<Graph>)> {
        self.0.executor.as_ref().map(Executor::graphs).unwrap_or_default()
    }

    /// How the plans that are kept were made, by the identity of their graphs.
    pub fn plan_makings(&self) -> HashMap<GraphId, Arc<Making>> {
        self.0.executor.as_ref().map(Executor::makings).unwrap_or_default()
    }

    /// The same program with a log of what becomes of its fusion groups, under the topic `fusion`: each kernel that is
    /// compiled or refused, and at level `debug` each call; and of the passes that make plans, under their names.
    pub fn logging(&self, spec: &LogSpec) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { log: spec.clone(), ..self.setting() })
    }

    /// The same program with a limit of the changes that the passes may make that make its plans. They share it with all that
    /// have a copy: a tool gives it to the passes over the program too.
    pub fn limiting(&self, limits: &Limits) -> Program {
        self.with_module(Arc::clone(&self.0.module), Setting { limits: limits.clone(), ..self.setting() })
    }

    /// The same program with a cache of plans on disk of its own ([`crate::backends::cache::Kind::Plans`]), in place of that of the
    /// process.
    pub fn keeping_plans_in(&self, cache: Arc<DiskCache>) -> Program {
        let setting = Setting { disk: Some(cache), ..self.setting() };
        self.with_module(Arc::clone(&self.0.module), setting)
    }

    /// What became of the fusion groups of all runs so far. Programs made of this one count for themselves.
    pub fn fusion_report(&self) -> FusionReport {
        self.0.fusion.report()
    }

    /// Takes what was logged since the last time; see [`Program::logging`].
    pub fn take_log(&self) -> String {
        self.0.fusion.take_log()
    }

    fn setting(&self) -> Setting {
        let inner = &self.0;
        Setting {
            backend: inner.backend.clone(),
            origins: Arc::clone(&inner.origins),
            log: inner.fusion.log_spec().clone(),
            plans: inner.executor.as_ref().map(Executor::kinds),
            contract: inner.contract,
            is_prepared: inner.is_prepared,
            differentiates_from: Some(inner.differentiates_from),
            fails: inner.forced.as_ref().map(|forced| forced.number()),
            strict_fusion: inner.strict_fusion,
            max_kept: inner.executor.as_ref().and_then(Executor::max_kept),
            static_plans: inner.executor.as_ref().and_then(Executor::static_plans),
            disk: inner.executor.as_ref().and_then(Executor::own_disk),
            limits: inner.limits.clone(),
            origin: inner.origin.clone(),
        }
    }

    /// The same program with compiled backwards for fusion groups whose largest input has at least `elements` elements; smaller
    /// ones are recorded op by op.
    pub fn differentiating_from(&self, elements: usize) -> Program {
        let setting = Setting { differentiates_from: Some(elements), ..self.setting() };
        self.with_module(Arc::clone(&self.0.module), setting)
    }

    fn with_module(&self, module: Arc<Module>, setting: Setting) -> Program {
        let registry = Arc::clone(&self.0.registry);
        Program(Inner::new(module, self.0.instance.clone(), registry, setting))
    }

    /// What it runs.
    pub fn module(&self) -> &Module {
        &self.0.module
    }

    /// The ops that it knows.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.0.registry
    }

    /// The instance whose methods are entries.
    pub fn instance(&self) -> Option<&Object> {
        self.0.instance.as_ref()
    }

    /// A function, or a method of the instance, by its name or qualified name. A function that was saved alone
    /// goes by any name: its archive does not keep the one it had.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let module = &self.0.module;
        let class = self.0.instance.as_ref().map(Object::class);
        let method = |name: &str| class.and_then(|class| module.method(class, name));
        let found = method(name).or_else(|| module.function(name)).or_else(|| self.0.by_last_component(name));
        found.or_else(|| if self.is_saved_function() { method("forward") } else { None })
    }

    /// The arguments that callers give to a function or method: those of its schema without the receiver. Fails where there is
    /// no such function.
    pub fn parameters(&self, name: &str) -> Result<Vec<Argument>> {
        let function = self.function(name).ok_or_else(|| self.no_function(name))?;
        let skipped = usize::from(self.receiver_of(function).is_some());
        Ok(function.schema.arguments.iter().skip(skipped).cloned().collect())
    }

    /// Whether the instance only stands for a function that was saved alone.
    fn is_saved_function(&self) -> bool {
        self.0.instance.as_ref().is_some_and(|i| i.class().as_str().ends_with(".PlaceholderModule"))
    }

    /// Runs a function, or a method of the instance. Arguments are those of a caller outside: checked against
    /// the schema, converted (int to float, lists by element type), defaults filled in; containers are copied,
    /// tensors and objects shared. Hooks of the instance's
    /// class do not run: this is `model.forward(x)` and not `model(x)`. The error of a program that raises has the chain of calls.
    pub fn run(&self, name: &str, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        self.run_named(name, arguments, Vec::new(), run)
    }

    /// The same with arguments by name besides.
    pub fn run_named(
        &self,
        name: &str,
        arguments: Vec<Value>,
        named: Vec<(String, Value)>,
        run: &Run,
    ) -> Result<Value> {
        let (function, receiver, bound) = self.bound_named(name, Given { positional: arguments, named })?;
        self.run_bound(function, receiver.as_ref(), bound, run)
    }

    /// The graph that runs for such arguments: that of the plan for their kind, of a function or of a method of an object. Of plans
    /// with and without gradients, the one that was called last. None where calls of that kind have no plan, or none yet.
    pub fn graph_for(
        &self,
        object: Option<&Object>,
        name: &str,
        arguments: Vec<Value>,
        named: Vec<(String, Value)>,
    ) -> Result<Option<Arc<Graph>>> {
        let given = Given { positional: arguments, named };
        let (function, bound) = match object {
            Some(object) => self.bound_method(object, name, given)?,
            None => self.bound_named(name, given).map(|(function, _, bound)| (function, bound))?,
        };
        Ok(self.0.executor.as_ref().and_then(|executor| executor.graph_of(function.name, &bound)))
    }

    /// The graph of the plan that a function, or a method of a class, used last; that of the function itself where none of its plans
    /// is kept.
    pub fn last_graph(&self, class: Option<Symbol>, name: &str) -> Option<Graph> {
        let function = match class {
            Some(class) => self.0.module.method(class, name)?,
            None => self.function(name)?,
        };
        let planned = self.0.executor.as_ref().and_then(|executor| executor.last_graph(function.name));
        Some(planned.map_or_else(|| function.graph.clone(), |graph| (*graph).clone()))
    }

    fn bound_method(&self, object: &Object, method: &str, given: Given) -> Result<(&Function, Vec<Value>)> {
        let class = object.class();
        let no_method = || Diagnostic::input(format!("class {class} has no method '{method}'"));
        let function = self.0.module.method(class, method).ok_or_else(no_method)?;
        Ok((function, self.bound(function, Some(object), given)?))
    }

    /// A function by its name, its receiver, and arguments as it takes them.
    fn bound_named(&self, name: &str, given: Given) -> Result<(&Function, Option<Object>, Vec<Value>)> {
        let function = self.function(name).ok_or_else(|| self.no_function(name))?;
        let receiver = self.receiver_of(function);
        let bound = match &receiver {
            // Asked for by the name that it had, a saved function complains as a function, not as a method.
            Some(object) if self.is_saved_function() && name != "forward" => {
                let mut schema = function.schema.clone();
                schema.name = Symbol::new(name);
                if !schema.arguments.is_empty() {
                    schema.arguments.remove(0);
                }
                let bound = arguments::bind(&schema, None, given, &self.0.module, &self.0.constants)?;
                with_receiver(&Value::Object(object.clone()), &bound)
            }
            _ => self.bound(function, receiver.as_ref(), given)?,
        };
        Ok((function, receiver, bound))
    }

    /// Runs a method of any object of the program as a caller outside: arguments are checked and converted.
    pub fn run_on(
        &self,
        object: &Object,
        method: &str,
        arguments: Vec<Value>,
        named: Vec<(String, Value)>,
        run: &Run,
    ) -> Result<Value> {
        let (function, bound) = self.bound_method(object, method, Given { positional: arguments, named })?;
        self.run_bound(function, Some(object), bound, run)
    }

    /// Calls a module as Python's `model(x)` does: what its class has of hooks runs before and after `forward`, those before it on
    /// the tuple of the arguments without names, those after it on that and the result. A hook that gives None changes nothing.
    pub fn call_module(
        &self,
        object: &Object,
        mut arguments: Vec<Value>,
        named: Vec<(String, Value)>,
        run: &Run,
    ) -> Result<Value> {
        let Some(class) = self.0.module.class(object.class()).filter(|class| class.has_hooks()) else {
            return self.run_on(object, "forward", arguments, named, run);
        };
        for hook in &class.forward_pre_hooks {
            let given = vec![Value::tuple(arguments.clone())];
            match self.run_on(object, hook.as_str(), given, Vec::new(), run)? {
                Value::None => {}
                Value::Tuple(all) => arguments = all.items().to_vec(),
                only => arguments = vec![only],
            }
        }
        let mut result = self.run_on(object, "forward", arguments.clone(), named, run)?;
        for hook in &class.forward_hooks {
            let given = vec![Value::tuple(arguments.clone()), result.clone()];
            match self.run_on(object, hook.as_str(), given, Vec::new(), run)? {
                Value::None => {}
                other => result = other,
            }
        }
        Ok(result)
    }

    fn bound(&self, function: &Function, receiver: Option<&Object>, given: Given) -> Result<Vec<Value>> {
        arguments::bind(&function.schema, receiver, given, &self.0.module, &self.0.constants)
    }

    fn run_bound(
        &self,
        function: &Function,
        receiver: Option<&Object>,
        bound: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        if self.has_plans() {
            arguments::have_their_types(function, &bound)?;
        }
        prepare(run, &self.0.registry);
        let former = run.set_methods(Some(Arc::clone(&self.0) as Arc<dyn Methods>));
        let result = self.0.call_planned(function, receiver, bound, run);
        let finished = run.finish_tasks();
        run.set_methods(former);
        result.and_then(|value| finished.map(|()| value))
    }

    /// Runs the last function of the module; nothing is checked or converted.
    pub(super) fn run_last(&self, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        match self.0.module.functions.last() {
            Some((name, _)) => self.0.call_function(*name, arguments, run),
            None => Err(Diagnostic::internal("a module without functions")),
        }
    }

    /// The same by a plan for its arguments, where the program makes plans.
    pub(crate) fn run_last_planned(&self, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        match self.0.module.functions.last() {
            Some((_, function)) => self.0.call_planned(function, None, arguments, run),
            None => Err(Diagnostic::internal("a module without functions")),
        }
    }

    /// Calls a method of an object of the program; nothing is checked or converted.
    pub fn call_method(
        &self,
        object: &Object,
        method: &str,
        arguments: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        prepare(run, &self.0.registry);
        let arguments = with_receiver(&Value::Object(object.clone()), &arguments);
        let result = self.0.call_method(object.class(), Symbol::new(method), arguments, run);
        let finished = run.finish_tasks();
        result.and_then(|value| finished.map(|()| value))
    }

    /// The instance, if the function is one of its methods.
    fn receiver_of(&self, function: &Function) -> Option<Object> {
        let object = self.0.instance.as_ref()?;
        let class = self.0.module.class(object.class())?;
        class.methods.values().any(|m| *m == function.name).then(|| object.clone())
    }

    fn no_function(&self, name: &str) -> Diagnostic {
        let module = &self.0.module;
        let methods = self.0.instance.as_ref().and_then(|i| module.class(i.class()));
        let names: Vec<&str> = match methods {
            Some(class) => class.methods.keys().map(|n| n.as_str()).collect(),
            None => module.functions.keys().map(|n| n.as_str()).collect(),
        };
        let error = Diagnostic::input(format!("there is no function '{name}'"));
        match nearest(name, names.iter().copied()) {
            Some(near) => error.hint(format!("did you mean '{near}'?")),
            None if names.is_empty() => error,
            None => error.hint(format!("there is {}", names.join(", "))),
        }
    }
}

fn with_receiver(this: &Value, rest: &[Value]) -> Vec<Value> {
    std::iter::once(this).chain(rest).cloned().collect()
}

/// Lets a run compute composites and record gradients over a table of ops, unless it does already. Programs do this for
/// the run that they are called in; who calls programs over several tables in one run does it first, for the largest.
pub fn prepare(run: &Run, registry: &Arc<Registry>) {
    run.offer_composites(|| ScriptComposites::of(registry));
    run.offer_autograd(|| Tape::of(registry));
}

/// Runs a graph that stands alone over a table of ops: nothing is checked or converted, one value a graph input.
pub fn run_graph(
    registry: &Arc<Registry>,
    graph: &Graph,
    arguments: Vec<Value>,
    run: &Run,
) -> Result<Vec<Value>> {
    let program = Program::with(Module::default(), None, Arc::clone(registry));
    let code = Code::compile(program.0.code_context(), graph, "graph")?;
    prepare(run, registry);
    let result = interpreter::execute(&program.0, run, Arc::new(code), arguments);
    let finished = run.finish_tasks();
    result.and_then(|values| finished.map(|()| values))
}

/// A module whose only function is a graph, under a name, its schema taken from the graph's types.
pub fn graph_function(name: &str, graph: Graph) -> Function {
    let argument = |n: usize, value: crate::ir::ValueId| {
        let shown = graph.display_name(value);
        let plain = shown.split('.').next().unwrap_or("");
        let argument = if plain.is_empty() || plain.starts_with(|c: char| c.is_ascii_digit()) {
            format!("argument_{n}")
        } else {
            plain.to_string()
        };
        Argument::new(argument.as_str(), graph.ty(value).clone())
    };
    let arguments = graph.inputs().iter().enumerate().map(|(n, v)| argument(n, *v)).collect();
    let returns = graph.outputs().iter().map(|v| Argument::new("", graph.ty(*v).clone())).collect();
    let name = Symbol::new(name);
    Function { name, schema: Schema::new(name, arguments, returns), graph, span: None }
}

impl Inner {
    fn new(
        module: Arc<Module>,
        instance: Option<Object>,
        registry: Arc<Registry>,
        setting: Setting,
    ) -> Arc<Inner> {
        let forced = setting.fails.map(Forced::new);
        let device = setting.backend.as_ref().and_then(|backend| backend.memory());
        Arc::new_cyclic(|weak| Inner {
            module,
            registry,
            instance,
            codes: RwLock::default(),
            constants: Constants::default(),
            backend: setting.backend,
            executor: setting.plans.map(|kinds| {
                Executor::new(forced.clone(), device.is_some(), kinds, setting.contract)
                    .keeping_at_most(setting.max_kept)
                    .with_static_plans(setting.static_plans)
                    .with_disk(setting.disk)
            }),
            device,
            fusion: Arc::new(FusionCounters::logging(&setting.log)),
            strict_fusion: setting.strict_fusion,
            limits: setting.limits,
            origin: setting.origin,
            forced,
            contract: setting.contract,
            is_prepared: setting.is_prepared,
            differentiates_from: setting.differentiates_from.unwrap_or(DIFFERENTIATES_FROM),
            origins: setting.origins,
            weak: weak.clone(),
        })
    }

    pub(super) fn code_context(&self) -> code::Context<'_> {
        code::Context {
            registry: &self.registry,
            module: &self.module,
            constants: &self.constants,
            backend: self.backend.as_ref(),
            fusion: &self.fusion,
            packs: None,
            strict_fusion: self.strict(),
            limits: &self.limits,
            forced: self.forced.as_ref().map(|forced| ForcedFrom { forced, first: 0 }),
        }
    }

    /// Whether graphs are asked for work that is not fused, and then whether all of their work counts.
    fn strict(&self) -> Option<bool> {
        if self.strict_fusion { Some(true) } else { self.executor.as_ref().map(|_| false) }
    }

    /// The code of a function by qualified name (graph text knows only the last component).
    pub(super) fn function_code(&self, name: Symbol) -> Result<Arc<Code>> {
        if let Some(code) = self.codes.read().get(&name) {
            return Ok(Arc::clone(code));
        }
        let function = self
            .module
            .functions
            .get(&name)
            .or_else(|| self.by_last_component(name.as_str()))
            .ok_or_else(|| Diagnostic::input(format!("function '{name}' is called but not defined")))?;
        let prepared = match self.is_prepared {
            true => None,
            false => before_run::prepared(&self.module, function, &self.registry)?,
        };
        let graph = prepared.as_ref().unwrap_or(&function.graph);
        // PyTorch finds this before anything runs, so that there is no place to show.
        if let Some(reason) = refused_call(graph) {
            return Err(Diagnostic::raised("RuntimeError", reason));
        }
        if let Some(all) = self.strict() {
            check_strict_fusion(graph, &self.registry, all)?;
        }
        let code = Arc::new(Code::compile(self.code_context(), graph, function.name.as_str())?);
        self.codes.write().insert(name, Arc::clone(&code));
        Ok(code)
    }

    /// The code of a method of a class.
    pub(super) fn method_code(&self, class: Symbol, method: Symbol) -> Result<Arc<Code>> {
        let known = self.module.class(class).ok_or_else(|| {
            Diagnostic::input(format!("method '{method}' of class {class} is called, which is not defined"))
        })?;
        let name = known.methods.get(&method).or_else(|| known.static_methods.get(&method));
        match name {
            Some(name) => self.function_code(*name),
            None if is_custom_class(class.as_str()) => Err(unknown_class(class.as_str())),
            None => Err(Diagnostic::input(format!("class {class} has no method '{method}'"))),
        }
    }

    fn by_last_component(&self, name: &str) -> Option<&Function> {
        let mut named =
            self.module.functions.values().filter(|f| f.name.as_str().rsplit('.').next() == Some(name));
        let first = named.next();
        if named.next().is_some() { None } else { first }
    }

    /// Runs a function by its plan, where there is one.
    fn call_planned(
        &self,
        function: &Function,
        instance: Option<&Object>,
        arguments: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        let Some(executor) = &self.executor else { return self.call_function(function.name, arguments, run) };
        let context = self.code_context();
        let (program, module) = (self, &*self.module);
        let call = Call { program, module, function, instance, arguments: &arguments, context };
        let plan = {
            let _budget = run.install();
            executor.plan(&call, run)?
        };
        match plan {
            Some(plan) => match &plan.recording {
                Some(recording) => recording.call(&self.this()?, Arc::clone(&plan.code), arguments, run),
                None => self.execute_plan(&plan, arguments, run),
            },
            None => self.call_function(function.name, arguments, run),
        }
    }

    /// Runs a function on arguments that fit it.
    fn call_function(&self, name: Symbol, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        let code = self.function_code(name)?;
        self.execute(code, arguments, run)
    }

    /// What makes plans.
    pub(super) fn executor(&self) -> Option<&Executor> {
        self.executor.as_ref()
    }

    pub(super) fn this(&self) -> Result<Arc<Inner>> {
        self.weak.upgrade().ok_or_else(|| Diagnostic::internal("the program is gone"))
    }

    /// Runs a plan: as recorded work of the device where it has some, unless there is an observer.
    fn execute_plan(&self, plan: &Plan, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        if let Some(backend) = self.backend.as_ref().filter(|_| self.device.is_some())
            && run.watcher().is_none()
        {
            let _budget = run.install();
            let given = (arguments.as_slice(), &*self.registry);
            let mut execute = |arguments| self.execute(Arc::clone(&plan.code), arguments, run);
            if let Some(answer) = plan.replay.call(plan, &**backend, given, &mut execute)? {
                self.fusion.replayed();
                return Ok(answer);
            }
            if let Some(reason) = plan.replay.refusal() {
                self.fusion.not_recorded(reason);
            }
        }
        self.execute(Arc::clone(&plan.code), arguments, run)
    }

    fn execute(&self, code: Arc<Code>, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        let results = interpreter::execute(&self.this()?, run, code, arguments)?;
        Ok(match <[Value; 1]>::try_from(results) {
            Ok([only]) => only,
            Err(results) if results.is_empty() => Value::None,
            Err(results) => Value::tuple(results),
        })
    }

    fn call_method(&self, class: Symbol, method: Symbol, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        let name = self.module.class(class).and_then(|c| c.methods.get(&method).copied());
        self.call_function(name.unwrap_or(method), arguments, run)
    }
}

impl Methods for Inner {
    fn call(&self, object: &Object, name: &str, arguments: &[Value], run: &Run) -> Result<Value> {
        let mut all = vec![Value::Object(object.clone())];
        all.extend_from_slice(arguments);
        self.call_method(object.class(), Symbol::new(name), all, run)
    }

    fn has_order(&self, object: &Object) -> bool {
        let class = object.class();
        let name = self.module.class(class).and_then(|c| c.methods.get(&Symbol::new("__lt__")).copied());
        let Some(function) = name.and_then(|name| self.module.functions.get(&name)) else { return false };
        let takes_two = match function.schema.arguments.as_slice() {
            [_, other] => other.ty == Type::class(class),
            _ => false,
        };
        takes_two && matches!(function.schema.returns.as_slice(), [only] if only.ty == Type::bool())
    }
}
