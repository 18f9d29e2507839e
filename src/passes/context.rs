//! What a pass may know and say besides the graph it changes: ops, the rest of the program, its options, cached
//! analyses; its log, its statistics, and the limit on its steps.

use super::options::Options;
use crate::analysis::{Analysis, AnalysisCache};
use crate::diag::Result;
use crate::diag::log::{Level, Log, LogSpec};
use crate::dialects::{Composites, Registry};
use crate::ir::{Graph, Module, Symbol};
use indexmap::IndexMap;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

static NOTHING: LazyLock<Module> = LazyLock::new(Module::default);

/// What a pass may read besides the graph it changes, and where its messages go.
pub struct Context<'a> {
    /// The ops.
    pub registry: &'a Registry,
    /// The rest of the program: classes and, for passes that declare `reads_functions`, the graphs of the functions
    /// that the graph calls, as they were before the pass. Empty for passes over modules.
    pub module: &'a Module,
    /// Values of the pass's options.
    pub options: Options,
    /// The pass's name, the topic of its log.
    pub name: &'static str,
    /// The function that the graph belongs to; none for passes over modules.
    pub function: Option<Symbol>,
    analyses: AnalysisCache,
    /// What was found of the module for all its functions.
    of_module: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
    /// What contexts of one run of a pass have in common.
    shared: Rc<Shared>,
    extras: Extras,
}

/// What a pass says, and how much it may still do.
#[derive(Default)]
struct Shared {
    log: Log,
    statistics: RefCell<IndexMap<&'static str, u64>>,
    /// Steps that are still allowed.
    fuel: Cell<Option<u64>>,
    steps: Cell<u64>,
    last_step: RefCell<Option<String>>,
    records_steps: bool,
}

/// Values that a tool hands to its passes, one of each type: rules of a user, a place for explanations.
#[derive(Clone, Default)]
pub struct Extras {
    values: Vec<Extra>,
}

/// A value, and whether it was asked for; copies share the answer.
type Extra = (Arc<dyn Any + Send + Sync>, Arc<AtomicBool>);

impl Extras {
    /// Adds a value, or replaces the one of its type.
    pub fn set<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.values.retain(|(v, _)| !v.is::<T>());
        self.values.push((value, Arc::default()));
    }

    /// The value of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        let (value, asked) = self.values.iter().find(|(v, _)| v.is::<T>())?;
        asked.store(true, Ordering::Relaxed);
        value.downcast_ref::<T>()
    }

    /// Whether the value of a type was asked for.
    pub fn was_asked_for<T: Any + Send + Sync>(&self) -> bool {
        self.values.iter().any(|(v, asked)| v.is::<T>() && asked.load(Ordering::Relaxed))
    }
}

/// What runs ops that are defined as text, for passes that compute now what can be computed now; without it such ops stay.
pub struct Meanings(pub Arc<dyn Composites>);

impl std::fmt::Debug for Extras {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} values", self.values.len())
    }
}

impl<'a> Context<'a> {
    /// A context that logs nothing, limits nothing and has no options.
    pub fn new(registry: &'a Registry, module: &'a Module) -> Context<'a> {
        Context {
            registry,
            module,
            options: Options::default(),
            name: "",
            function: None,
            analyses: AnalysisCache::default(),
            of_module: Arc::default(),
            shared: Rc::default(),
            extras: Extras::default(),
        }
    }

    /// A context for the same run of the same pass over a graph of another module: one log, one limit on steps.
    pub fn beside<'b>(&self, module: &'b Module) -> Context<'b>
    where
        'a: 'b,
    {
        Context {
            registry: self.registry,
            module,
            options: self.options.clone(),
            name: self.name,
            function: self.function,
            analyses: AnalysisCache::default(),
            of_module: Arc::default(),
            shared: Rc::clone(&self.shared),
            extras: self.extras.clone(),
        }
    }

    /// A context for a pass over a whole module.
    pub fn for_module(registry: &'a Registry) -> Context<'a> {
        Context::new(registry, &NOTHING)
    }

    /// For a run of a pass: with at most `fuel` steps; with `record`, the last one is remembered.
    pub(super) fn for_pass(
        mut self,
        name: &'static str,
        options: &Options,
        spec: &LogSpec,
        (fuel, record): (Option<u64>, bool),
    ) -> Context<'a> {
        self.name = name;
        self.options = options.clone();
        self.shared = Rc::new(Shared {
            log: Log::new(spec),
            fuel: Cell::new(fuel),
            records_steps: record,
            ..Shared::default()
        });
        self
    }

    /// With the analyses that are known of the graph.
    pub(super) fn with_analyses(mut self, analyses: AnalysisCache) -> Context<'a> {
        self.analyses = analyses;
        self
    }

    /// With what other contexts for functions of the same module find out of it.
    pub(super) fn with_module_facts(
        mut self,
        facts: &Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
    ) -> Context<'a> {
        self.of_module = Arc::clone(facts);
        self
    }

    pub(super) fn in_function(mut self, function: Symbol) -> Context<'a> {
        self.function = Some(function);
        self
    }

    /// What a tool hands to passes.
    pub(super) fn extras(&self) -> &Extras {
        &self.extras
    }

    /// The same with what a tool hands to passes.
    pub fn with_extras(mut self, extras: &Extras) -> Context<'a> {
        self.extras = extras.clone();
        self
    }

    /// What the tool handed to its passes, by type.
    pub fn extra<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.extras.get()
    }

    // --- options ---

    /// A number among the pass's options.
    pub fn int(&self, name: &str) -> Result<i64> {
        self.options.int(name)
    }

    /// A count among the pass's options.
    pub fn option_count(&self, name: &str) -> Result<usize> {
        self.options.count(name)
    }

    /// A switch among the pass's options.
    pub fn flag(&self, name: &str) -> Result<bool> {
        self.options.bool(name)
    }

    /// A text among the pass's options.
    pub fn text(&self, name: &str) -> Result<&str> {
        self.options.text(name)
    }

    // --- analyses ---

    /// An analysis of the graph, computed once. After changing the graph call [`Context::changed`] before asking again.
    pub fn analysis<A: Analysis>(&self, graph: &Graph) -> Arc<A> {
        self.analyses.get(graph, self.registry, self.module)
    }

    /// What a pass finds of the whole module before it changes a function: computed once for all functions, of the module
    /// as it was before the pass. A pass has one such fact.
    pub fn once<T: Any + Send + Sync>(&self, compute: impl FnOnce(&Module) -> T) -> Arc<T> {
        let mut compute = Some(compute);
        let known = self.of_module.get_or_init(|| match compute.take() {
            Some(compute) => Arc::new(compute(self.module)),
            None => Arc::new(()),
        });
        match (Arc::clone(known).downcast::<T>(), compute) {
            (Ok(fact), _) => fact,
            (Err(_), Some(compute)) => Arc::new(compute(self.module)),
            (Err(_), None) => unreachable!("the fact was computed as a T just now"),
        }
    }

    /// Forgets all analyses, as the graph has changed.
    pub fn changed(&self) {
        self.analyses.clear();
    }

    // --- steps, log, statistics ---

    /// Asks whether one more change may be made, and logs it (`update`). This is the door through which limits and
    /// bisection stop a pass half way: every pass asks before each change, and leaves the graph as it is from the
    /// first `false` on. A run that changes a graph without asking counts as one step.
    pub fn step(&self, what: impl FnOnce() -> String) -> bool {
        let shared = &*self.shared;
        match shared.fuel.get() {
            Some(0) => return false,
            Some(left) => shared.fuel.set(Some(left - 1)),
            None => {}
        }
        shared.steps.set(shared.steps.get() + 1);
        if shared.records_steps || shared.log.is_on(self.name, Level::Update) {
            let text = what();
            shared.log.message(self.name, Level::Update, || text.clone());
            if shared.records_steps {
                *shared.last_step.borrow_mut() = Some(text);
            }
        }
        true
    }

    /// Whether [`Context::step`] would say no. For passes that must try a change to know whether it can be made: they
    /// look here before trying.
    pub fn is_spent(&self) -> bool {
        self.shared.fuel.get() == Some(0)
    }

    /// How many more changes may be made, if that is limited. For passes that make all of them at once.
    pub fn steps_left(&self) -> Option<u64> {
        self.shared.fuel.get()
    }

    /// How many changes were made so far.
    pub fn steps(&self) -> u64 {
        self.shared.steps.get()
    }

    /// Logs a change.
    pub fn update(&self, text: impl FnOnce() -> String) {
        self.shared.log.message(self.name, Level::Update, text);
    }

    /// Logs what the inside of the pass thinks.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        self.shared.log.message(self.name, Level::Debug, text);
    }

    /// Logs a whole graph.
    pub fn dump(&self, title: &str, graph: &Graph) {
        self.shared.log.message(self.name, Level::Dump, || format!("{title}\n{graph}"));
    }

    /// Adds to a count that `--pass-statistics` shows (`ops erased`).
    pub fn count(&self, what: &'static str, n: u64) {
        *self.shared.statistics.borrow_mut().entry(what).or_default() += n;
    }

    pub(super) fn into_parts(self) -> Parts {
        Parts {
            log: self.shared.log.take(),
            statistics: self.shared.statistics.take(),
            steps: self.shared.steps.get(),
            last_step: self.shared.last_step.take(),
            analyses: self.analyses,
        }
    }
}

/// What is left of a context when its pass is done.
pub(super) struct Parts {
    pub(super) log: String,
    pub(super) statistics: IndexMap<&'static str, u64>,
    pub(super) steps: u64,
    pub(super) last_step: Option<String>,
    pub(super) analyses: AnalysisCache,
}
