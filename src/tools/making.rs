//! How plans were made, for people and for programs: what passes did, which rules fired.

use super::table::{Table, bytes, time};
use crate::dialects::GraphId;
use crate::runtime::{Making, Program};
use serde_json::{Value as Json, json};

/// The passes that changed something, and the rules.
pub(super) fn text(making: &Making) -> String {
    let mut table = Table::new(["pass", ">changes", ">ops", ">bytes", ">time"]);
    for stage in making.stages.iter().filter(|stage| stage.changes > 0) {
        table.row([
            stage.pass.to_string(),
            stage.changes.to_string(),
            stage.ops.to_string(),
            bytes(stage.bytes),
            time(stage.time.as_secs_f64()),
        ]);
    }
    let mut out = format!(
        "made by {} passes in {}, of {} ops {}\n{table}",
        making.stages.len(),
        time(making.time().as_secs_f64()),
        making.before.0,
        making.after().0,
    );
    if let Some(rules) = making.rules_text() {
        out.push_str(&format!("rules that fired: {rules}\n"));
    }
    out
}

/// How each plan of a program that is kept was made, times in microseconds.
pub(super) fn json(program: &Program) -> Json {
    let makings = program.plan_makings();
    let plans = program.plan_graphs().into_iter();
    let known = plans.filter_map(|(name, graph)| Some((name, makings.get(&GraphId::of(&graph))?)));
    known.map(|(name, making)| of_plan(name.as_str(), making)).collect()
}

fn of_plan(name: &str, making: &Making) -> Json {
    let stage = |stage: &crate::runtime::Stage| {
        json!({"pass": stage.pass, "changes": stage.changes, "ops": stage.ops, "bytes": stage.bytes,
            "us": stage.time.as_secs_f64() * 1e6})
    };
    let rules = making.rules.iter().map(|(rule, times)| (rule.to_string(), json!(times)));
    json!({
        "function": name,
        "us": making.time().as_secs_f64() * 1e6,
        "ops_before": making.before.0,
        "ops_after": making.after().0,
        "bytes_after": making.after().1,
        "passes": making.stages.iter().map(stage).collect::<Vec<Json>>(),
        "rules": rules.collect::<serde_json::Map<String, Json>>(),
    })
}
