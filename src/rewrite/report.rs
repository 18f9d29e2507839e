//! What is asked of a simplification and what it says: measure, limits, questions; what it replaced and why not.

use super::cost::CostModel;
use super::load::syntax::Contract;
use crate::ir::{Graph, OpId};
use indexmap::IndexMap;
use std::sync::Arc;

/// Counted limits: never time, so that the same input gives the same output.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// Nodes that rules may add to the e-graph; at least as many as the graph has itself.
    pub nodes: usize,
    /// Rounds over all rules.
    pub rounds: usize,
    /// Matches of one rule in one round; at least as many as the graph has ops.
    pub matches: usize,
}

impl Default for Budget {
    fn default() -> Budget {
        Budget { nodes: 20_000, rounds: 20, matches: 5_000 }
    }
}

/// How to simplify.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settings {
    /// How far.
    pub budget: Budget,
    /// By what measure.
    pub cost: CostModel,
    /// The contract in force: rules that promise less are left out.
    pub contract: Contract,
    /// How many ops may be replaced, if that is limited; the first ones are.
    pub replacements: Option<usize>,
    /// Each op is replaced for itself, as PyTorch's peephole pass does: ops that became equal stay apart, of equal values
    /// the nearest takes its place, an object that took another's place is not revisited, and no search reads
    /// the whole function.
    pub one_by_one: bool,
}

/// Requested information about a simplification.
#[derive(Clone, Debug, Default)]
pub struct Questions {
    /// Give the chain of rules of each replaced op.
    pub explain: bool,
    /// Say where and why this rule was not taken.
    pub why_not: Option<Arc<str>>,
}

impl Questions {
    /// Whether anything is asked.
    pub fn any(&self) -> bool {
        self.explain || self.why_not.is_some()
    }
}

/// One rule of a chain.
#[derive(Clone, Debug)]
pub struct Link {
    /// Its name.
    pub rule: Arc<str>,
    /// Where the rule stands: `file:line`.
    pub place: String,
    /// The term that it matched.
    pub before: String,
    /// What it made of it.
    pub after: String,
    /// Cost of both.
    pub cost: (u64, u64),
}

/// What became of a rule at a place.
#[derive(Clone, Debug)]
pub struct WhyNot {
    /// The value that it matched, as it prints; none where nothing matched.
    pub value: Option<String>,
    /// Where that stands in the program text.
    pub location: Option<String>,
    /// The matched term, or the nearest partial match.
    pub matched: String,
    /// Whether it was taken, and if not, why.
    pub reason: String,
    /// It was taken here.
    pub taken: bool,
}

/// What happened.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// How often each rule made two things equal that were not, in the order of first firing.
    pub fired: IndexMap<Arc<str>, usize>,
    /// Ops that were replaced.
    pub replaced: usize,
    /// Nodes that each rule added, in the order of first firing.
    pub grew: IndexMap<Arc<str>, usize>,
    /// Nodes of the e-graph before the first round and after the last.
    pub nodes: (usize, usize),
    /// Rounds that were run.
    pub rounds: usize,
    /// The limit that stopped it, if one did.
    pub stopped_by: Option<&'static str>,
    /// What each op that was replaced became, in program order.
    pub steps: Vec<Replacement>,
    /// Cost before and after, under the model in use.
    pub cost: (u64, u64),
    /// Outcome of the rule in question.
    pub why_not: Vec<WhyNot>,
}

/// What an op became.
#[derive(Clone, Debug)]
pub struct Replacement {
    /// The value's name, as it prints.
    pub name: String,
    /// Where it stands in the program text.
    pub location: Option<String>,
    /// Before and after, as text.
    pub before: String,
    /// After, as text.
    pub after: String,
    /// Names of the rules that led there, in order.
    pub rules: Vec<Arc<str>>,
    /// Cost of what went and of what came.
    pub cost: (u64, u64),
    /// The firings that led there, in order; only where explanations are asked for.
    pub chain: Vec<Link>,
}

/// Where an op stands in the program text.
pub(super) fn place(graph: &Graph, op: OpId) -> Option<String> {
    let (file, line, column) = graph.location(op)?.file_line_column()?;
    Some(format!("{file}:{line}:{column}"))
}
