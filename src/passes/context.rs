//! What a pass may know and say besides the graph it changes: ops, the rest of the program, its options, cached
//! analyses; its log, its statistics, and the limit on its steps.

use super::pass::Options;
use crate::analysis::{Analysis, AnalysisCache};
use crate::diag::Result;
use crate::diag::log::{Level, Log, LogSpec};
use crate::dialects::Registry;
use crate::ir::{Graph, Module, Symbol};
use indexmap::IndexMap;
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::sync::{Arc, LazyLock};

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
    /// What the log keeps.
    pub log: Log,
    analyses: AnalysisCache,
    statistics: RefCell<IndexMap<&'static str, u64>>,
    /// Steps that are still allowed.
    fuel: Cell<Option<u64>>,
    steps: Cell<u64>,
    last_step: RefCell<Option<String>>,
    records_steps: bool,
    extras: Extras,
}

/// Values that a tool hands to its passes, one of each type: rules of a user, a place for explanations.
#[derive(Clone, Default)]
pub struct Extras {
    values: Vec<Arc<dyn Any + Send + Sync>>,
}

impl Extras {
    /// Adds a value, or replaces the one of its type.
    pub fn set<T: Any + Send + Sync>(&mut self, value: Arc<T>) {
        self.values.retain(|v| !v.is::<T>());
        self.values.push(value);
    }

    /// The value of a type.
    pub fn get<T: Any + Send + Sync>(&self) -> Option<&T> {
        self.values.iter().find_map(|v| v.downcast_ref::<T>())
    }
}

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
            log: Log::default(),
            analyses: AnalysisCache::default(),
            statistics: RefCell::default(),
            fuel: Cell::new(None),
            steps: Cell::new(0),
            last_step: RefCell::default(),
            records_steps: false,
            extras: Extras::default(),
        }
    }

    /// A context for a pass over a whole module.
    pub fn for_module(registry: &'a Registry) -> Context<'a> {
        Context::new(registry, &NOTHING)
    }

    pub(super) fn for_pass(mut self, name: &'static str, options: &Options, spec: &LogSpec) -> Context<'a> {
        self.name = name;
        self.options = options.clone();
        self.log = Log::new(spec);
        self
    }

    /// With the analyses that are known of the graph.
    pub(super) fn with_analyses(mut self, analyses: AnalysisCache) -> Context<'a> {
        self.analyses = analyses;
        self
    }

    /// With at most so many steps; with `record`, the last step is remembered.
    pub(super) fn with_fuel(mut self, fuel: Option<u64>, record: bool) -> Context<'a> {
        self.fuel = Cell::new(fuel);
        self.records_steps = record;
        self
    }

    pub(super) fn in_function(mut self, function: Symbol) -> Context<'a> {
        self.function = Some(function);
        self
    }

    pub(super) fn with_extras(mut self, extras: &Extras) -> Context<'a> {
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

    /// Forgets all analyses, as the graph has changed.
    pub fn changed(&self) {
        self.analyses.clear();
    }

    // --- steps, log, statistics ---

    /// Asks whether one more change may be made, and logs it (`update`). A pass that declares `counts_steps` asks
    /// before each change and leaves the graph as it is after a `false`.
    pub fn step(&self, what: impl FnOnce() -> String) -> bool {
        match self.fuel.get() {
            Some(0) => return false,
            Some(left) => self.fuel.set(Some(left - 1)),
            None => {}
        }
        self.steps.set(self.steps.get() + 1);
        if self.records_steps || self.log.is_on(self.name, Level::Update) {
            let text = what();
            self.log.message(self.name, Level::Update, || text.clone());
            if self.records_steps {
                *self.last_step.borrow_mut() = Some(text);
            }
        }
        true
    }

    /// Logs a change.
    pub fn update(&self, text: impl FnOnce() -> String) {
        self.log.message(self.name, Level::Update, text);
    }

    /// Logs what the inside of the pass thinks.
    pub fn debug(&self, text: impl FnOnce() -> String) {
        self.log.message(self.name, Level::Debug, text);
    }

    /// Logs a whole graph.
    pub fn dump(&self, title: &str, graph: &Graph) {
        self.log.message(self.name, Level::Dump, || format!("{title}\n{graph}"));
    }

    /// Adds to a count that `--pass-statistics` shows (`ops erased`).
    pub fn count(&self, what: &'static str, n: u64) {
        *self.statistics.borrow_mut().entry(what).or_default() += n;
    }

    pub(super) fn into_parts(self) -> Parts {
        Parts {
            log: self.log.take(),
            statistics: self.statistics.into_inner(),
            steps: self.steps.get(),
            last_step: self.last_step.into_inner(),
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
