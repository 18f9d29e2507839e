//! Runs a pipeline over a module: pass after pass, the functions of a module side by side, the verifier after each
//! pass. What comes out does not depend on the number of threads.

use super::graphs::{self, Scope};
use super::{At, Nest, Observer, Pipeline, Report, Settings, Step};
use crate::analysis::AnalysisCache;
use crate::diag::{Diagnostic, Result, panics};
use crate::dialects::{Laws, Registry};
use crate::ir::{Module, Symbol, verify_module};
use crate::passes::pass::{ModuleRun, Pass, Run};
use crate::passes::{Context, Options};
use hashbrown::HashMap;
use std::io::Write;
use std::time::Instant;

impl Pipeline {
    /// Runs the passes over a module, nothing verified or printed.
    pub fn run(&self, module: &mut Module, registry: &Registry) -> Result<bool> {
        self.run_with(module, registry, Settings::default())
    }

    /// The same under settings; what passes would log or print is dropped.
    pub fn run_with(&self, module: &mut Module, registry: &Registry, settings: Settings) -> Result<bool> {
        let mut sink = std::io::sink();
        Runner::new(registry, settings, &mut sink).run(self, module)
    }
}

/// Runs pipelines and remembers between them which analyses hold.
pub struct Runner<'a> {
    registry: &'a Registry,
    settings: Settings,
    out: &'a mut dyn Write,
    observers: Vec<&'a mut dyn Observer>,
    analyses: HashMap<Symbol, AnalysisCache>,
    executed: usize,
    last: Report,
    violations: Vec<Diagnostic>,
}

impl<'a> Runner<'a> {
    /// A runner; logs and what observers print go to `out`.
    pub fn new(registry: &'a Registry, settings: Settings, out: &'a mut dyn Write) -> Runner<'a> {
        Runner {
            registry,
            settings,
            out,
            observers: Vec::new(),
            analyses: HashMap::new(),
            executed: 0,
            last: Report::default(),
            violations: Vec::new(),
        }
    }

    /// Adds an observer.
    pub fn observe(&mut self, observer: &'a mut dyn Observer) {
        self.observers.push(observer);
    }

    /// How many passes ran, repetitions counted.
    pub fn executed(&self) -> usize {
        self.executed
    }

    /// What the pass that ran last came to, whether it failed or not.
    pub fn last_report(&self) -> &Report {
        &self.last
    }

    /// What the verifier found after the pass that failed.
    pub fn violations(&self) -> &[Diagnostic] {
        &self.violations
    }

    /// Runs a pipeline; says whether a pass changed something. The error names the pass.
    pub fn run(&mut self, pipeline: &Pipeline, module: &mut Module) -> Result<bool> {
        self.steps(&pipeline.steps, &Scope::default(), module)
    }

    fn steps(&mut self, steps: &[Step], scope: &Scope, module: &mut Module) -> Result<bool> {
        let mut changed = false;
        for step in steps {
            // A command's time and memory hold for its passes too.
            crate::resources::budget::check()?;
            if self.is_over() {
                break;
            }
            changed |= match step {
                Step::Pass(pass, options) => self.pass(pass, options, scope, module)?,
                Step::Nest(nest, steps) => self.nest(nest, steps, scope, module)?,
            };
        }
        Ok(changed)
    }

    fn nest(&mut self, nest: &Nest, steps: &[Step], scope: &Scope, module: &mut Module) -> Result<bool> {
        let text = nest.to_text();
        self.observers.iter_mut().for_each(|o| o.enter(&text));
        let result = match nest {
            Nest::Repeat(max) => self.repeat(*max, steps, scope, module),
            Nest::Function(name) => {
                let scope = Scope { function: Some(name.clone()), ..scope.clone() };
                self.steps(steps, &scope, module)
            }
            Nest::Subgraphs => self.steps(steps, &Scope { subgraphs: true, ..scope.clone() }, module),
        };
        self.observers.iter_mut().for_each(|o| o.leave());
        result
    }

    fn repeat(&mut self, max: usize, steps: &[Step], scope: &Scope, module: &mut Module) -> Result<bool> {
        let mut changed = false;
        for _ in 0..max {
            if !self.steps(steps, scope, module)? {
                break;
            }
            changed = true;
        }
        Ok(changed)
    }

    /// Whether the stopping point is later.
    fn is_over(&self) -> bool {
        self.settings
            .stop
            .is_some_and(|stop| self.executed > stop.index || self.executed == stop.index && stop.steps == 0)
    }

    /// How many changes the next pass may make.
    fn fuel(&self, pass: &Pass) -> Option<u64> {
        let limit = self.settings.limits.left(pass.name);
        let stop = self.settings.stop.filter(|stop| stop.index == self.executed).map(|stop| stop.steps);
        match (limit, stop) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }

    fn pass(&mut self, pass: &Pass, options: &Options, scope: &Scope, module: &mut Module) -> Result<bool> {
        let at = At { pass, options, index: self.executed };
        for observer in &mut self.observers {
            observer.before(&at, module, self.out);
        }
        let fuel = self.fuel(pass);
        let start = Instant::now();
        let (mut report, result) = match pass.run {
            run @ (Run::Graph(_) | Run::Rules(_) | Run::Directed(_)) => {
                let job = graphs::Job {
                    registry: self.registry,
                    settings: &self.settings,
                    pass,
                    run,
                    options,
                    scope,
                    fuel,
                    of_module: Default::default(),
                };
                let outcome = graphs::run(&job, module, &mut self.analyses);
                self.print(&outcome.log);
                (outcome.report, outcome.result)
            }
            Run::Module(run) => self.module_pass(pass, run, options, fuel, module),
        };
        report.time = start.elapsed();
        self.executed += 1;
        if fuel.is_some() {
            self.settings.limits.spend(pass.name, report.steps);
        }
        let start = Instant::now();
        let result = result.and_then(|changed| if changed { self.verify(pass, module) } else { Ok(()) });
        report.verify_time = start.elapsed();
        let at = At { pass, options, index: at.index };
        if let Err(error) = &result {
            let errors: Vec<Diagnostic> =
                std::iter::once(error.clone()).chain(self.violations.iter().cloned()).collect();
            for observer in &mut self.observers {
                observer.failed(&at, module, &errors, self.out);
            }
        } else {
            for observer in &mut self.observers {
                observer.after(&at, module, &report, self.out);
            }
        }
        self.last = report;
        result.map(|()| self.last.changed)
    }

    fn module_pass(
        &mut self,
        pass: &Pass,
        run: ModuleRun,
        options: &Options,
        fuel: Option<u64>,
        module: &mut Module,
    ) -> (Report, Result<bool>) {
        let mut report = Report::default();
        if fuel == Some(0) {
            return (report, Ok(false));
        }
        let context = Context::for_module(self.registry)
            .for_pass(pass.name, options, &self.settings.log, (fuel, self.settings.record_steps))
            .with_extras(&self.settings.extras);
        let result = panics::catch(&format!("pass '{}'", pass.name), || run(module, &context));
        let result = result.and_then(|r| r);
        let parts = context.into_parts();
        self.print(&parts.log);
        self.analyses.clear();
        report.changed = matches!(result, Ok(true));
        report.unasked = report.changed && parts.steps == 0;
        report.steps = parts.steps + u64::from(report.unasked);
        report.statistics = parts.statistics;
        report.last_step = parts.last_step;
        (report, result)
    }

    fn verify(&mut self, pass: &Pass, module: &Module) -> Result<()> {
        let Some(strictness) = self.settings.verify else { return Ok(()) };
        let laws = Laws::new(self.registry, strictness);
        self.violations = verify_module(module, &laws, &|_| None);
        if self.violations.is_empty() {
            return Ok(());
        }
        let message = format!("the module is not valid after pass '{}'", pass.name);
        Err(self.violations.iter().take(3).fold(Diagnostic::verify(message), |e, v| e.note(v.message())))
    }

    fn print(&mut self, text: &str) {
        // A closed pipe is not a failure of the work.
        let _ = self.out.write_all(text.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::Analysis;
    use crate::diag::log::LogSpec;
    use crate::ir::{Function, Graph, Schema, parse_graph};
    use crate::passes::PassSet;
    use crate::passes::manager::StopAt;
    use std::any::TypeId;
    use std::sync::atomic::{AtomicUsize, Ordering};

    static COMPUTED: AtomicUsize = AtomicUsize::new(0);

    /// How many ops there are.
    struct Ops(usize);

    impl Analysis for Ops {
        const NAME: &'static str = "ops";

        fn compute(graph: &Graph, _: &Registry, _: &Module) -> Ops {
            COMPUTED.fetch_add(1, Ordering::Relaxed);
            Ops(graph.op_count())
        }
    }

    fn ask(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
        assert_eq!(context.analysis::<Ops>(graph).0, graph.op_count());
        Ok(false)
    }

    fn rename(graph: &mut Graph, _: &Context<'_>) -> Result<bool> {
        for op in graph.all_ops() {
            graph.set_kind(op, Symbol::new("aten::tanh"));
        }
        Ok(true)
    }

    fn module(functions: usize) -> Module {
        let mut module = Module::default();
        for n in 0..functions {
            let name = Symbol::new(&format!("f{n}"));
            let text = "graph(%x : Tensor):\n  %1 : Tensor = aten::relu(%x)\n  %2 : Tensor = aten::neg(%x)\n  return (%x)\n";
            let graph = parse_graph(text).expect("it is well formed");
            let schema = Schema::new(name, Vec::new(), Vec::new());
            module.functions.insert(name, Function { name, schema, graph, span: None });
        }
        module
    }

    fn set() -> PassSet {
        let mut set = PassSet::builtin();
        set.add(Pass::graph("ask", "", ask));
        set.add(Pass::graph("rename", "", rename));
        set.add(Pass::graph("rename-kindly", "", rename).preserves(const { &[TypeId::of::<Ops>()] }));
        set
    }

    #[test]
    fn analyses_are_computed_once_until_a_pass_changes_something() {
        let registry = Registry::builtin();
        for (passes, wanted) in
            [("ask,ask", 1), ("ask,rename,ask", 2), ("ask,rename-kindly,ask", 1), ("ask,dce,ask", 2)]
        {
            COMPUTED.store(0, Ordering::Relaxed);
            let pipeline = Pipeline::parse(passes, &set()).expect("it is well formed");
            pipeline.run(&mut module(1), &registry).expect("nothing fails");
            assert_eq!(COMPUTED.load(Ordering::Relaxed), wanted, "{passes}");
        }
    }

    #[test]
    fn functions_side_by_side_give_what_one_thread_gives() {
        let registry = Registry::builtin();
        let pipeline = Pipeline::parse("rename,dce", &set()).expect("it is well formed");
        let run = |threads: usize| {
            let mut out = Vec::new();
            let settings = Settings {
                threads,
                log: LogSpec::parse("*").expect("it is well formed"),
                ..Settings::default()
            };
            let mut module = module(40);
            Runner::new(&registry, settings, &mut out).run(&pipeline, &mut module).expect("nothing fails");
            (module.to_string(), String::from_utf8(out).expect("text"))
        };
        let one = run(1);
        assert_eq!(one.1.lines().count(), 80);
        assert!(run(2) == one && run(7) == one && run(0) == one);
    }

    #[test]
    fn a_stop_runs_part_of_the_pipeline() {
        let registry = Registry::builtin();
        let pipeline = Pipeline::parse("rename,dce", &set()).expect("it is well formed");
        let ops = |index, steps| {
            let mut module = module(1);
            let mut sink = std::io::sink();
            let settings = Settings { stop: Some(StopAt { index, steps }), ..Settings::default() };
            Runner::new(&registry, settings, &mut sink).run(&pipeline, &mut module).expect("nothing fails");
            (module.to_string().contains("relu"), module.functions[0].graph.op_count())
        };
        assert_eq!(ops(0, 0), (true, 2));
        assert_eq!(ops(1, 0), (false, 2));
        assert_eq!(ops(1, 1), (false, 1));
        assert_eq!(ops(2, 0), (false, 0));
    }
}
