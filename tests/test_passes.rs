//! Passes that exist in tests only: broken on purpose, so that what finds, reports and shrinks faults has some.

use flambeau::diag::Result;
use flambeau::ir::{Attr, Graph, Symbol};
use flambeau::passes::{Context, Pass, PassOption};
use flambeau::toolkit::Toolkit;

/// The built-in toolkit with the broken passes.
pub fn toolkit() -> Toolkit {
    let toolkit = PASSES.iter().fold(Toolkit::default(), |toolkit, pass| toolkit.pass(*pass));
    toolkit.pipeline("test-cleanup", "repeat{max=3}(cse,dce)").rules("test-group", RULES)
}

const RULES: &str = "rule sub-twice exact aten::sub(?x: int, aten::mul(?x, 2)) => aten::neg(?x)\n";

const PASSES: &[Pass] = &[
    Pass::rules("test-rules", "Applies the rules of a group", "test-group"),
    Pass::rules("test-no-rules", "Applies the rules of a group that is not there", "no-such-group"),
    Pass::graph("test-panic", "Panics at the first op of a kind", panics).options(&[PassOption::text(
        "at",
        "aten::tanh",
        "the kind",
    )]),
    Pass::graph("test-invalid", "Moves the user of a kind of op before its maker", invalid),
    Pass::graph("test-wrong", "Makes a difference of the second sum", wrong),
    Pass::graph("test-options", "Prints its options into the log", options).options(&[
        PassOption::int("nodes", 10, 1, "a number"),
        PassOption::bool("loud", false, "a switch"),
        PassOption::choice("mode", &["fast", "good"], "a word"),
        PassOption::text("name", "", "a text"),
    ]),
    Pass::graph("test-count", "Counts ops", count),
];

fn panics(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let kind = context.text("at")?;
    for op in graph.all_ops() {
        assert!(graph.kind(op) != kind, "met {kind}");
    }
    Ok(false)
}

fn invalid(graph: &mut Graph, _: &Context<'_>) -> Result<bool> {
    for op in graph.all_ops() {
        if graph.kind(op) != "aten::tanh" {
            continue;
        }
        let user = graph.result(op, 0).and_then(|v| graph.uses(v).next()).map(|u| u.op);
        if let Some(user) = user.filter(|u| graph.parent(*u) == graph.parent(op)) {
            graph.move_before(user, op);
            return Ok(true);
        }
    }
    Ok(false)
}

/// The second sum is wrong, so that a limit on steps can distinguish it from the first.
fn wrong(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let mut seen = 0;
    for op in graph.all_ops() {
        if graph.kind(op) != "aten::add" || !context.step(|| format!("looks at {}", graph.op_line(op))) {
            continue;
        }
        seen += 1;
        if seen == 2 {
            graph.set_kind(op, Symbol::new("aten::sub"));
        } else {
            graph.set_attr(op, "seen", Attr::Int(1));
            graph.remove_attr(op, "seen");
        }
    }
    Ok(seen > 0)
}

fn options(_: &mut Graph, context: &Context<'_>) -> Result<bool> {
    let (nodes, loud) = (context.int("nodes")?, context.flag("loud")?);
    let (mode, name) = (context.text("mode")?.to_string(), context.text("name")?.to_string());
    context.update(|| format!("nodes={nodes} loud={loud} mode={mode} name={name}"));
    context.debug(|| "thinks".to_string());
    Ok(false)
}

fn count(graph: &mut Graph, context: &Context<'_>) -> Result<bool> {
    context.count("ops met", graph.op_count() as u64);
    context.dump("counted", graph);
    Ok(false)
}
