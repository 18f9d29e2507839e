//! The state of a program's executor as JSON: for each function its plans with kind of arguments, graph, code and guards, and what runs
//! without a plan.

use super::explain::guard_json;
use crate::ir::{Graph, Symbol};
use crate::runtime::{DebugState, FunctionState, PlanState, Program};
use serde_json::{Value as Json, json};
use std::sync::Arc;

/// What the executor of a program holds now.
pub fn of(program: &Program) -> Json {
    let DebugState { has_plans, functions, unplanned } = program.debug_state();
    json!({
        "has_plans": has_plans,
        "functions": functions.iter().map(function).collect::<Vec<Json>>(),
        "unplanned_calls": unplanned,
    })
}

/// The same of one function; None where it was not called.
pub fn of_function(program: &Program, name: Symbol) -> Option<Json> {
    let DebugState { functions, unplanned, .. } = program.debug_state();
    let mut found = function(functions.iter().find(|state| state.name == name)?);
    found["unplanned_calls"] = json!(unplanned);
    Some(found)
}

fn function(state: &FunctionState) -> Json {
    let own = state.guards.iter().filter(|guard| guard.plan.is_none());
    json!({
        "name": state.name.as_str(),
        "graph": state.graph,
        "plans": state.plans.iter().map(|one| plan(state, one)).collect::<Vec<Json>>(),
        "fallback": state.fallback.as_ref().map(|code| json!({
            "code": code, "guards": own.map(guard_json).collect::<Vec<Json>>(),
        })),
        "lost_plans": state.lost,
    })
}

fn plan(function: &FunctionState, plan: &PlanState) -> Json {
    let text = |graph: &Option<Arc<Graph>>| graph.as_ref().map(|graph| graph.to_string());
    json!({
        "arguments": plan.arguments,
        "graph": text(&plan.graph),
        "code": plan.code,
        "draws": text(&plan.draws),
        "backward": text(&plan.backward),
        "calls": plan.calls,
        "refused": plan.refused,
        "guards": function.guards_of(plan).map(guard_json).collect::<Vec<Json>>(),
    })
}
