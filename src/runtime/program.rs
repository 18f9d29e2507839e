//! A program: a module made runnable, with the plans of its calls where it is to have them.

use super::arguments::{self, Given};
use super::before_run;
use super::checks::GuardState;
use super::code::{self, Code};
use super::composites::ScriptComposites;
use super::executor::{Call, Executor, Making, Plan, PlanReport};
use super::inner::Inner;
use super::inner::{Origins, Setting};
use super::interpreter::execute;
use super::kept::{self, Origin};
use crate::autodiff::Tape;
use crate::backends::cache::DiskCache;
use crate::backends::{Backend, FusionReport};
use crate::diag::log::LogSpec;
use crate::diag::{Diagnostic, Result, Span, nearest};
use crate::dialects::{Contract, GraphId, Methods, Registry, Run};
use crate::ir::{Argument, Function, Graph, Module, Schema, Symbol};
use crate::passes::Pipeline;
use crate::passes::manager::{Limits, Settings};
use crate::tensor::Moment;
use crate::value::{Object, Value};
use hashbrown::HashMap;
use std::sync::Arc;

/// A module that can run, with the instance whose methods are its entries, if it has one. Clones share code.
#[derive(Clone)]
pub struct Program {
    inner: Arc<Inner>,
    /// Makes plans of calls from outside, where the program is to have them.
    executor: Option<Arc<Executor>>,
}

impl Program {
    /// A program of free functions and classes, with the built-in ops.
    #[cfg(test)]
    pub(crate) fn new(module: Module) -> Program {
        Self::with(module, None, Registry::builtin())
    }

    /// A program whose entries are the methods of `instance` (a loaded model), over ops of the caller's choice.
    pub fn with(module: Module, instance: Option<Object>, registry: Arc<Registry>) -> Program {
        Program::made(Arc::new(module), instance, registry, Setting::default())
    }

    /// A program of a setting, with what makes plans where it says so.
    fn made(
        module: Arc<Module>,
        instance: Option<Object>,
        registry: Arc<Registry>,
        mut setting: Setting,
    ) -> Program {
        let (plans, max_kept, static_plans) = (setting.plans, setting.max_kept, setting.static_plans);
        let disk = setting.disk.take();
        let inner = Inner::new(module, instance, registry, setting);
        let executor = plans.map(|kinds| {
            let executor = Executor::new(inner.forced.clone(), inner.device.is_some(), kinds, inner.contract);
            let executor = executor.keeping_at_most(max_kept).with_static_plans(static_plans);
            Arc::new(executor.with_disk(disk))
        });
        Program { inner, executor }
    }

    /// Says where the code comes from, so that errors can show it. Only the first call counts.
    pub fn set_origins(&self, origins: Origins) {
        let _ = self.inner.origins.set(origins);
    }

    /// The same program with its module changed, by passes for instance; they see it as it is prepared to run, with the casts
    /// of autocasting as ops.
    pub fn transformed(&self, change: impl FnOnce(&mut Module, &Registry) -> Result<()>) -> Result<Program> {
        let mut module = Module::clone(&self.inner.module);
        if !self.inner.is_prepared {
            before_run::prepare_module(&mut module, &self.inner.registry)?;
        }
        change(&mut module, &self.inner.registry)?;
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
        let origin = self.inner.origin.as_ref();
        let Some(place) = origin.and_then(|origin| origin.passed(pipeline, settings)) else {
            return self.transformed(change);
        };
        let setting = || Setting { is_prepared: true, origin: None, ..self.setting() };
        if let Some(module) = kept::read(&place, &self.inner.module) {
            return Ok(self.with_module(Arc::new(module), setting()));
        }
        let since = Moment::now();
        let program = self.transformed(change)?;
        let kept = kept::write(&place, (&self.inner.module, &program.inner.module), settings, since);
        Ok(kept.map_or(program, |module| self.with_module(Arc::new(module), setting())))
    }

    /// The same program, of which it is known what it was compiled from.
    pub(crate) fn with_origin(&self, origin: Origin) -> Program {
        let origin = Some(Arc::new(origin));
        self.with_module(Arc::clone(&self.inner.module), Setting { origin, ..self.setting() })
    }

    /// The same program with its fusion groups run by `backend`; ops outside of groups run on the CPU.
    pub fn on(&self, backend: Arc<dyn Backend>) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { backend: Some(backend), ..self.setting() })
    }

    /// The same program with a plan for each kind of arguments that a function is called with from outside: attributes that are
    /// never written become constants, sizes are known, and all that follows from both. Answers stay the same; what cannot
    /// be planned runs as it would without, and is counted.
    pub fn planned(&self) -> Program {
        let mut module = Arc::clone(&self.inner.module);
        // A module that cannot be prepared has no plans: its functions say why when they run.
        let is_prepared = self.inner.is_prepared
            || before_run::prepare_module(Arc::make_mut(&mut module), &self.inner.registry).is_ok();
        let plans = is_prepared.then_some(self.executor.as_deref().map_or(0, Executor::kinds));
        self.with_module(module, Setting { plans, is_prepared, ..self.setting() })
    }

    /// The same program, whose plans promise this about numbers; [`Contract::Exact`] where nothing is said. Under
    /// [`Contract::FastMath`] batch norm is folded into weights.
    pub fn under(&self, contract: Contract) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { contract, ..self.setting() })
    }

    /// As [`Program::planned`], with plans kept for at least `kinds` kinds of arguments of a function, whatever runs say.
    pub(crate) fn planned_for(&self, kinds: usize) -> Program {
        let planned = self.planned();
        let plans = planned.executor.as_ref().map(|_| kinds);
        planned.with_module(Arc::clone(&planned.inner.module), Setting { plans, ..planned.setting() })
    }

    /// The same program with its own answer to [`Run::set_static_plans`]: how many kinds of arguments that differ in sizes alone have plans
    /// of their own before one leaves sizes open; 0 for none, so that the first plan does.
    pub fn with_static_plans(&self, plans: usize) -> Program {
        let static_plans = Some(plans);
        self.with_module(Arc::clone(&self.inner.module), Setting { static_plans, ..self.setting() })
    }

    /// Waits until no plan of it is being made by another thread.
    pub fn finish_plans(&self) {
        if let Some(executor) = &self.executor {
            executor.finish();
        }
    }

    /// Whether it makes plans.
    pub fn has_plans(&self) -> bool {
        self.executor.is_some()
    }

    /// What became of the calls of a program with plans so far. Programs made of this one count for themselves.
    pub fn plan_report(&self) -> PlanReport {
        let forced_misses = self.inner.forced.as_ref().map_or(0, |forced| forced.misses());
        let report = self.executor.as_deref().map(Executor::report).unwrap_or_default();
        PlanReport { forced_misses, ..report }
    }

    /// The same program with a guard that misses whenever it is asked, although it holds: answers are the same, and slower. Guards
    /// of each plan are numbered from 0, those inside its graph after its own; those of functions that run without plans from
    /// 0 too. [`Program::guards`] lists them, [`PlanReport::forced_misses`] counts.
    pub fn failing_guard(&self, number: usize) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { fails: Some(number), ..self.setting() })
    }

    /// The same program, whose plans keep a limited number of bytes for the backward of a call, as far as types determine it and
    /// arguments can give the rest again: what would be more is computed again in the backward, products too, the cheapest first. Gradients
    /// stay the same. [`PlanReport::kept_bytes`] says what is kept.
    pub fn keeping_at_most(&self, bytes: u64) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { max_kept: Some(bytes), ..self.setting() })
    }

    /// The same program, whose calls fail where work is not in a fusion group or a layer, naming each such op and why. Programs with plans
    /// do the same for what stands within `torch.jit.strict_fusion`.
    pub fn strictly_fused(&self) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { strict_fusion: true, ..self.setting() })
    }

    /// What plans that are kept, and functions that ran without one, ask before they go on, and how often it held: in order of
    /// functions, plans before code without one, by number.
    pub fn guards(&self) -> Vec<GuardState> {
        let shown = |span: &Span| self.shown_line(span);
        let mut out = self.executor.as_ref().map(|executor| executor.guards(&shown)).unwrap_or_default();
        for (function, code) in self.inner.codes.read().iter() {
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
        (self.executor.as_deref(), self.inner.codes.read().clone())
    }

    /// A place with its line: `f.py:3: return x + 1`, of the original code where the code was generated. Empty where nothing is known.
    fn shown_line(&self, span: &Span) -> String {
        let original = self.inner.origins.get().and_then(|origins| origins(span));
        code::shown_line(original.as_ref().unwrap_or(span))
    }

    /// The graphs of the plans that were made and are kept, each with the function that it is a plan of.
    pub fn plan_graphs(&self) -> Vec<(Symbol, Arc<Graph>)> {
        self.executor.as_deref().map(Executor::graphs).unwrap_or_default()
    }

    /// How the plans that are kept were made, by the identity of their graphs.
    pub fn plan_makings(&self) -> HashMap<GraphId, Arc<Making>> {
        self.executor.as_deref().map(Executor::makings).unwrap_or_default()
    }

    /// The same program with a log of what becomes of its fusion groups, under the topic `fusion`: each kernel that is
    /// compiled or refused, and at level `debug` each call; and of the passes that make plans, under their names.
    pub fn logging(&self, spec: &LogSpec) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { log: spec.clone(), ..self.setting() })
    }

    /// The same program with a limit of the changes that the passes may make that make its plans. They share it with all that
    /// have a copy: a tool gives it to the passes over the program too.
    pub fn limiting(&self, limits: &Limits) -> Program {
        self.with_module(Arc::clone(&self.inner.module), Setting { limits: limits.clone(), ..self.setting() })
    }

    /// The same program with a cache of plans on disk of its own ([`crate::backends::cache::Kind::Plans`]), in place of that of the
    /// process.
    pub fn keeping_plans_in(&self, cache: Arc<DiskCache>) -> Program {
        let setting = Setting { disk: Some(cache), ..self.setting() };
        self.with_module(Arc::clone(&self.inner.module), setting)
    }

    /// What became of the fusion groups of all runs so far. Programs made of this one count for themselves.
    pub fn fusion_report(&self) -> FusionReport {
        self.inner.fusion.report()
    }

    /// Takes what was logged since the last time; see [`Program::logging`].
    pub fn take_log(&self) -> String {
        self.inner.fusion.take_log()
    }

    fn setting(&self) -> Setting {
        let (inner, executor) = (&self.inner, self.executor.as_deref());
        Setting {
            backend: inner.backend.clone(),
            origins: Arc::clone(&inner.origins),
            log: inner.fusion.log_spec().clone(),
            plans: executor.map(Executor::kinds),
            contract: inner.contract,
            is_prepared: inner.is_prepared,
            differentiates_from: Some(inner.differentiates_from),
            fails: inner.forced.as_ref().map(|forced| forced.number()),
            strict_fusion: inner.strict_fusion,
            max_kept: executor.and_then(Executor::max_kept),
            static_plans: executor.and_then(Executor::static_plans),
            disk: executor.and_then(Executor::own_disk),
            limits: inner.limits.clone(),
            origin: inner.origin.clone(),
        }
    }

    /// The same program with compiled backwards for fusion groups whose largest input has at least `elements` elements; smaller
    /// ones are recorded op by op.
    pub fn differentiating_from(&self, elements: usize) -> Program {
        let setting = Setting { differentiates_from: Some(elements), ..self.setting() };
        self.with_module(Arc::clone(&self.inner.module), setting)
    }

    fn with_module(&self, module: Arc<Module>, setting: Setting) -> Program {
        let registry = Arc::clone(&self.inner.registry);
        Program::made(module, self.inner.instance.clone(), registry, setting)
    }

    /// What it runs.
    pub fn module(&self) -> &Module {
        &self.inner.module
    }

    /// The ops that it knows.
    pub fn registry(&self) -> &Arc<Registry> {
        &self.inner.registry
    }

    /// The instance whose methods are entries.
    pub fn instance(&self) -> Option<&Object> {
        self.inner.instance.as_ref()
    }

    /// A function, or a method of the instance, by its name or qualified name. A function that was saved alone
    /// goes by any name: its archive does not keep the one it had.
    pub fn function(&self, name: &str) -> Option<&Function> {
        let module = &self.inner.module;
        let class = self.inner.instance.as_ref().map(Object::class);
        let method = |name: &str| class.and_then(|class| module.method(class, name));
        let found =
            method(name).or_else(|| module.function(name)).or_else(|| self.inner.by_last_component(name));
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
        self.inner.instance.as_ref().is_some_and(|i| i.class().as_str().ends_with(".PlaceholderModule"))
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
        Ok(self.executor.as_ref().and_then(|executor| executor.graph_of(function.name, &bound)))
    }

    /// The graph of the plan that a function, or a method of a class, used last; that of the function itself where none of its plans
    /// is kept.
    pub fn last_graph(&self, class: Option<Symbol>, name: &str) -> Option<Graph> {
        let function = match class {
            Some(class) => self.inner.module.method(class, name)?,
            None => self.function(name)?,
        };
        let planned = self.executor.as_ref().and_then(|executor| executor.last_graph(function.name));
        Some(planned.map_or_else(|| function.graph.clone(), |graph| (*graph).clone()))
    }

    fn bound_method(&self, object: &Object, method: &str, given: Given) -> Result<(&Function, Vec<Value>)> {
        let class = object.class();
        let no_method = || Diagnostic::input(format!("class {class} has no method '{method}'"));
        let function = self.inner.module.method(class, method).ok_or_else(no_method)?;
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
                let bound = arguments::bind(&schema, None, given, &self.inner.module, &self.inner.constants)?;
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
        let Some(class) = self.inner.module.class(object.class()).filter(|class| class.has_hooks()) else {
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
        arguments::bind(&function.schema, receiver, given, &self.inner.module, &self.inner.constants)
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
        prepare(run, &self.inner.registry);
        let former = run.set_methods(Some(Arc::clone(&self.inner) as Arc<dyn Methods>));
        let result = self.call_planned(function, receiver, bound, run);
        let finished = run.finish_tasks();
        run.set_methods(former);
        result.and_then(|value| finished.map(|()| value))
    }

    /// Runs a function by its plan, where there is one.
    fn call_planned(
        &self,
        function: &Function,
        instance: Option<&Object>,
        arguments: Vec<Value>,
        run: &Run,
    ) -> Result<Value> {
        let Some(executor) = &self.executor else {
            return self.inner.call_function(function.name, arguments, run);
        };
        let context = self.inner.code_context();
        let (program, module) = (&self.inner, &*self.inner.module);
        let call = Call { program, module, function, instance, arguments: &arguments, context };
        let plan = {
            let _budget = run.install();
            executor.plan(&call, run)?
        };
        match plan {
            Some(plan) => match &plan.recording {
                Some(recording) => recording.call(&self.inner, Arc::clone(&plan.code), arguments, run),
                None => self.execute_plan(&plan, arguments, run),
            },
            None => self.inner.call_function(function.name, arguments, run),
        }
    }

    /// Runs a plan: as recorded work of the device where it has some, unless there is an observer.
    fn execute_plan(&self, plan: &Plan, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        if let Some(backend) = self.inner.backend.as_ref().filter(|_| self.inner.device.is_some())
            && run.watcher().is_none()
        {
            let _budget = run.install();
            let given = (arguments.as_slice(), &*self.inner.registry);
            let mut execute = |arguments| self.inner.execute(Arc::clone(&plan.code), arguments, run);
            if let Some(answer) =
                plan.replay.call((&plan.graph, &plan.code), &**backend, given, &mut execute)?
            {
                self.inner.fusion.replayed();
                return Ok(answer);
            }
            if let Some(reason) = plan.replay.refusal() {
                self.inner.fusion.not_recorded(reason);
            }
        }
        self.inner.execute(Arc::clone(&plan.code), arguments, run)
    }

    /// Runs the last function of the module by a plan for its arguments, where the program makes plans; nothing is checked or
    /// converted.
    pub(crate) fn run_last_planned(&self, arguments: Vec<Value>, run: &Run) -> Result<Value> {
        match self.inner.module.functions.last() {
            Some((_, function)) => self.call_planned(function, None, arguments, run),
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
        prepare(run, &self.inner.registry);
        let arguments = with_receiver(&Value::Object(object.clone()), &arguments);
        let result = self.inner.call_method(object.class(), Symbol::new(method), arguments, run);
        let finished = run.finish_tasks();
        result.and_then(|value| finished.map(|()| value))
    }

    /// The instance, if the function is one of its methods.
    fn receiver_of(&self, function: &Function) -> Option<Object> {
        let object = self.inner.instance.as_ref()?;
        let class = self.inner.module.class(object.class())?;
        class.methods.values().any(|m| *m == function.name).then(|| object.clone())
    }

    fn no_function(&self, name: &str) -> Diagnostic {
        let module = &self.inner.module;
        let methods = self.inner.instance.as_ref().and_then(|i| module.class(i.class()));
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
    let code = Code::compile(program.inner.code_context(), graph, "graph")?;
    prepare(run, registry);
    let result = execute(&program.inner, run, Arc::new(code), arguments);
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
