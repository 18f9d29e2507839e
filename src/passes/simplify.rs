//! Algebraic simplification: all built-in rules, saturated in an e-graph. See `src/rewrite`.

use super::{Context, PassOption};
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use crate::ir::Graph;
use crate::rewrite::{self, Budget, CompiledRule, CostModel, Explanations, Report, Settings};
use std::sync::LazyLock;

/// The built-in rules over the built-in ops. They are data of the program, so that a test finds any fault in them.
static RULES: LazyLock<Result<Vec<CompiledRule>>> = LazyLock::new(|| rewrite::builtin(&Registry::builtin()));

/// Whoever names a file of rules has checked it.
pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::text("rules", "", "a file of rules besides the built-in ones"),
    PassOption::choice("driver", &["saturation", "greedy"], "an e-graph, or the first rule that fits"),
    PassOption::choice("cost", &["ops", "bytes", "time"], "what is to become less"),
    PassOption::int("nodes", 20_000, 1, "nodes that rules may add, or as many as the graph has"),
    PassOption::int("rounds", 20, 1, "rounds over all rules"),
    PassOption::int("matches", 5_000, 1, "matches of a rule in a round, or as many as the graph has ops"),
];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let builtin = RULES.as_ref().map_err(Clone::clone)?;
    // A caller that is no pipeline gives no options.
    let file = context.text("rules").unwrap_or("");
    let own = if file.is_empty() { Vec::new() } else { read(file, context.registry)? };
    let all: Vec<CompiledRule>;
    let rules = if own.is_empty() {
        builtin
    } else {
        all = own.into_iter().chain(builtin.iter().cloned()).collect();
        &all
    };
    Ok(apply(graph, context, rules, false)?.replaced > 0)
}

/// What the options say; a caller that is no pipeline gives none.
fn settings(context: &Context<'_>, one_by_one: bool) -> Settings {
    let limit = |name: &str, default: usize| context.option_count(name).unwrap_or(default);
    let default = Budget::default();
    Settings {
        budget: Budget {
            nodes: limit("nodes", default.nodes),
            rounds: limit("rounds", default.rounds),
            matches: limit("matches", default.matches),
        },
        cost: context.text("cost").ok().and_then(CostModel::named).unwrap_or_default(),
        replacements: context.steps_left().map(|left| usize::try_from(left).unwrap_or(usize::MAX)),
        one_by_one,
    }
}

/// Applies rules, and tells whoever wants explanations. `one_by_one`: see [`Settings::one_by_one`].
pub(super) fn apply(
    graph: &mut Graph,
    context: &Context<'_>,
    rules: &[CompiledRule],
    one_by_one: bool,
) -> Result<Report> {
    let wanted = context.extra::<Explanations>();
    let questions = wanted.map(|w| w.questions.clone()).unwrap_or_default();
    let (registry, module) = (context.registry, Some(context.module));
    let settings = settings(context, one_by_one);
    let report: Report = match context.text("driver") {
        Ok("greedy") => rewrite::simplify_greedily(graph, registry, module, rules, &settings, &questions)?,
        _ => rewrite::simplify_explained(graph, registry, module, rules, &settings, &questions)?,
    };
    let replaced = report.replaced;
    for step in &report.steps {
        context.step(|| format!("{} is {}", step.before.trim_end(), step.after.trim_end()));
    }
    // The greedy driver writes down what it did only for those who ask.
    (report.steps.len()..replaced).for_each(|_| {
        context.step(|| "replaces an op".to_string());
    });
    context.count("ops replaced", replaced as u64);
    if let Some(wanted) = wanted {
        let function = context.function.map(|name| name.to_string()).unwrap_or_default();
        wanted.add(context.name, &function, report.clone());
    }
    Ok(report)
}

fn read(file: &str, registry: &Registry) -> Result<Vec<CompiledRule>> {
    let text = std::fs::read_to_string(file).map_err(|e| Diagnostic::input(format!("{file}: {e}")))?;
    let mut rules = Vec::new();
    for rule in rewrite::parse(&Source::new(file, text))? {
        rules.extend(rewrite::compile(registry, &rule)?);
    }
    Ok(rules)
}
