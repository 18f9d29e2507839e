//! Algebraic simplification: all built-in rules, saturated in an e-graph. See `src/rewrite`.

use super::{Context, FiredRules, PassOption};
use crate::diag::{Result, Source};
use crate::dialects::Registry;
use crate::ir::Graph;
use crate::rewrite::syntax::Contract;
use crate::rewrite::{self, Budget, CompiledRule, CostModel, Explanations, Report, Settings};

/// Callers that name a file of rules have checked it.
pub(super) const OPTIONS: &[PassOption] = &[
    PassOption::text("rules", "", "a rule file used besides the built-in rules"),
    PassOption::choice(
        "contract",
        Contract::NAMES,
        "soundness contract of rules; --fast-math and --nan-relaxed set the default",
    ),
    PassOption::choice(
        "driver",
        &["saturation", "greedy"],
        "equality saturation in an e-graph, or greedy rewriting",
    ),
    PassOption::choice("cost", &["ops", "bytes", "time"], "cost model to minimize"),
    PassOption::int("nodes", 20_000, 1, "limit of added e-nodes, if larger than the size of the graph"),
    PassOption::int("rounds", 20, 1, "limit of iterations over all rules"),
    PassOption::int(
        "matches",
        5_000,
        1,
        "limit of matches of a rule in an iteration, if larger than the number of ops",
    ),
];

pub(super) fn run(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    // Questions about rules are about all of them; rules of a file may make any op.
    let all_of_them =
        context.extra::<Explanations>().is_some() || !context.text("rules").unwrap_or("").is_empty();
    let builtin = match all_of_them {
        true => rewrite::builtin(context.registry)?,
        false => rewrite::builtin_for(context.registry, graph)?,
    };
    // A caller that is not a pipeline gives no options.
    let file = context.text("rules").unwrap_or("");
    let own = if file.is_empty() { Vec::new() } else { read(file, context.registry)? };
    let all: Vec<CompiledRule>;
    let rules = if own.is_empty() {
        &*builtin
    } else {
        all = own.into_iter().chain(builtin.iter().cloned()).collect();
        &all
    };
    let contract = contract(context).unwrap_or_default();
    Ok(apply(graph, context, rules, &Manner { one_by_one: false, contract })?.replaced > 0)
}

/// The contract in force; a caller that is not a pipeline says nothing of it.
pub(super) fn contract(context: &Context<'_>) -> Option<Contract> {
    context.text("contract").ok().and_then(Contract::named)
}

/// What a pass decides about the way in which its rules are applied.
pub(super) struct Manner {
    /// See [`Settings::one_by_one`].
    pub(super) one_by_one: bool,
    /// See [`Settings::contract`].
    pub(super) contract: Contract,
}

/// What the options say; a caller that is not a pipeline gives none.
fn settings(context: &Context<'_>, manner: &Manner) -> Settings {
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
        contract: manner.contract,
        one_by_one: manner.one_by_one,
    }
}

/// Applies rules, and gives explanations to those who want them.
pub(super) fn apply(
    graph: &mut Graph,
    context: &Context<'_>,
    rules: &[CompiledRule],
    manner: &Manner,
) -> Result<Report> {
    let wanted = context.extra::<Explanations>();
    let questions = wanted.map(|w| w.questions.clone()).unwrap_or_default();
    let (registry, module) = (context.registry, Some(context.module));
    let settings = settings(context, manner);
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
    if let Some(fired) = context.extra::<FiredRules>() {
        fired.add(&report.fired);
    }
    if let Some(wanted) = wanted {
        let function = context.function.map(|name| name.to_string()).unwrap_or_default();
        wanted.add(context.name, &function, report.clone());
    }
    Ok(report)
}

fn read(file: &str, registry: &Registry) -> Result<Vec<CompiledRule>> {
    let text = crate::diag::files::text(file.as_ref())?;
    let mut rules = Vec::new();
    for rule in rewrite::parse(&Source::new(file, text))? {
        rules.extend(rewrite::compile(registry, &rule)?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{PrintOptions, parse_graph};

    #[test]
    fn rules_apply_on_every_table_that_has_their_ops() {
        let text = "graph(%x : int,\n      %y : int):\n  %0 : int = prim::Constant[value=0]()\n  %a : int = aten::add(%x, %0)\n  %b : int = aten::mul(%a, %y)\n  return (%b)\n";
        let mut own = Registry::with_builtins();
        own.register("mine::twice(int x) -> int", |args| crate::dialects::one(2 * args.int(0)?))
            .expect("is new");
        let copy = own.clone();
        for registry in [own, copy] {
            for pass in ["simplify", "simplify{driver=greedy}", "peephole"] {
                let mut graph: Graph = parse_graph(text).expect("a graph");
                let module = crate::ir::Module::default();
                let context = Context::new(&registry, &module);
                let pipeline = crate::passes::parse(pass).expect("a pass");
                assert!(pipeline.run_graph(&mut graph, &context).expect("runs"), "{pass}");
                assert!(
                    graph.to_text(&PrintOptions::bare()).contains("aten::mul(%x, %y)"),
                    "{pass}: {graph}"
                );
            }
        }
    }
}
