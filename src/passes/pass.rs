//! What a pass is: a name, a sentence, options, and a plain function. One row of `passes::TABLE` each.

use super::options::{OptionValue, PassOption};
use super::{Context, Directed, rule_group};
use crate::diag::Result;
use crate::ir::{Graph, Module};
use std::any::TypeId;

/// A pass over one graph. It says whether it changed anything.
pub type GraphRun = fn(&mut Graph, &Context<'_>) -> Result<bool>;
/// A pass over a whole module. It says whether it changed anything.
pub type ModuleRun = fn(&mut Module, &Context<'_>) -> Result<bool>;

/// What a pass does.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// Function by function, several at a time.
    Graph(GraphRun),
    /// The module at once.
    Module(ModuleRun),
    /// As `Graph`: applies the rewrite rules of a group, to be found when it runs.
    Rules(&'static str),
    /// As `Graph`: replaces whatever the rules of a directed group match.
    Directed(Directed),
}

impl Run {
    /// Whether it takes a module at once.
    pub fn is_of_module(self) -> bool {
        matches!(self, Run::Module(_))
    }

    /// Runs it over one graph. A pass over modules has nothing to do there.
    pub(super) fn on_graph(self, graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
        match self {
            Run::Graph(run) => run(graph, context),
            Run::Rules(group) => rule_group::run(graph, context, group),
            Run::Directed(directed) => directed.run(graph, context),
            Run::Module(_) => Ok(false),
        }
    }
}

/// A pass and its line in `--help-passes`.
#[derive(Clone, Copy, Debug)]
pub struct Pass {
    /// `dce`; `_` and `-` are the same in names.
    pub name: &'static str,
    /// One sentence.
    pub summary: &'static str,
    /// What `name{...}` may say.
    pub options: &'static [PassOption],
    /// What it does.
    pub run: Run,
    /// Looks at the graphs of other functions through [`Context::module`]. It sees them as they were before the pass.
    pub reads_functions: bool,
    /// Analyses that stay true although the pass changed the graph.
    pub preserves: &'static [TypeId],
}

impl Pass {
    /// A pass over single graphs.
    pub const fn graph(name: &'static str, summary: &'static str, run: GraphRun) -> Pass {
        Pass::new(name, summary, Run::Graph(run))
    }

    /// A pass over whole modules. Its context's module is empty: what it may read is what it may change.
    pub const fn module(name: &'static str, summary: &'static str, run: ModuleRun) -> Pass {
        Pass::new(name, summary, Run::Module(run))
    }

    /// A pass that applies the rules of a group, built in or added to the toolkit, saturated in an e-graph: from it is taken what
    /// costs least under the pass's option `cost`.
    pub const fn rules(name: &'static str, summary: &'static str, group: &'static str) -> Pass {
        Pass::new(name, summary, Run::Rules(group)).options(rule_group::OPTIONS)
    }

    /// A pass that takes the rules of a group `NAME directed { ... }`, in their order, at each op once: whatever matches is
    /// replaced, whatever that costs.
    pub const fn directed(name: &'static str, summary: &'static str, directed: Directed) -> Pass {
        Pass::new(name, summary, Run::Directed(directed))
    }

    const fn new(name: &'static str, summary: &'static str, run: Run) -> Pass {
        Pass { name, summary, options: &[], run, reads_functions: false, preserves: &[] }
    }

    /// Declares options.
    pub const fn options(mut self, options: &'static [PassOption]) -> Pass {
        self.options = options;
        self
    }

    /// The value of an option where nothing is said. None where the pass has no such option.
    pub(super) fn default_of(&self, option: &str) -> Option<OptionValue> {
        self.options.iter().find(|known| known.name == option).map(PassOption::default)
    }

    /// See [`Pass::reads_functions`].
    pub const fn reads_functions(mut self) -> Pass {
        self.reads_functions = true;
        self
    }

    /// See [`Pass::preserves`].
    pub const fn preserves(mut self, analyses: &'static [TypeId]) -> Pass {
        self.preserves = analyses;
        self
    }
}
