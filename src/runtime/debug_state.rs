//! What a program's executor holds: of each function the kinds of arguments that it has plans for, with graph, code and guards, and what
//! runs where there is no plan. For people and tools; `get_debug_state()` of PyTorch's functions gives the same.

use super::checks::GuardState;
use super::executor::PlanState;
use super::program::Program;
use crate::dialects::GraphId;
use crate::ir::Symbol;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The state of a program's executor at one moment.
#[derive(Clone, Debug)]
pub struct DebugState {
    /// Whether calls make plans at all.
    pub has_plans: bool,
    /// Functions that were called, in order of names.
    pub functions: Vec<FunctionState>,
    /// Calls that ran without a plan, by reason, of all functions together.
    pub unplanned: BTreeMap<String, u64>,
}

/// One function of it.
#[derive(Clone, Debug)]
pub struct FunctionState {
    /// Its qualified name.
    pub name: Symbol,
    /// Its graph before plans, as the passes left it.
    pub graph: String,
    /// Its plans, one for each kind of arguments.
    pub plans: Vec<PlanState>,
    /// Guards of its plans, and of its code without a plan.
    pub guards: Vec<GuardState>,
    /// The code of calls without a plan; None where there was no such call.
    pub fallback: Option<String>,
    /// Plans that were given up.
    pub lost: u64,
}

impl FunctionState {
    /// The guards of one of its plans.
    pub fn guards_of(&self, plan: &PlanState) -> impl Iterator<Item = &GuardState> {
        let id = plan.graph.as_deref().map(GraphId::of);
        self.guards.iter().filter(move |guard| id.is_some() && guard.plan == id)
    }
}

impl Program {
    /// What the executor holds now.
    pub fn debug_state(&self) -> DebugState {
        let (executor, codes) = self.executor_and_codes();
        let mut plans = executor.map(|executor| executor.plan_states()).unwrap_or_default();
        let mut names: Vec<Symbol> = plans.keys().chain(codes.keys()).copied().collect();
        names.sort_by_key(|name| name.as_str());
        names.dedup();
        let guards = self.guards();
        let functions = names.into_iter().map(|name| {
            let (plans, lost) = plans.remove(&name).unwrap_or_default();
            FunctionState {
                name,
                graph: self.function(name.as_str()).map(|f| f.graph.to_string()).unwrap_or_default(),
                plans,
                guards: guards.iter().filter(|guard| guard.function == name).cloned().collect(),
                fallback: codes.get(&name).map(|code| Arc::clone(code).listing()),
                lost,
            }
        });
        DebugState {
            has_plans: self.has_plans(),
            functions: functions.collect(),
            unplanned: self.plan_report().unplanned,
        }
    }
}
