//! Every construct of the rule language in use, and what is said when it is misused: the place and the reason.

use super::compile::compile;
use super::parse::parse;
use crate::diag::{Source, render};
use crate::dialects::Registry;
use crate::ir::{Graph, PrintOptions, parse_graph};
use crate::rewrite::{Settings, simplify};

const F: &str = "Float(2, 3, strides=[3, 1], requires_grad=0, device=cpu)";

/// A graph after the rules of a text.
fn after(rules: &str, graph: &str) -> String {
    let registry = Registry::builtin();
    let rules = parse(&Source::new("t.rules", rules)).expect("rules");
    let rules: Vec<_> = rules.iter().flat_map(|rule| compile(&registry, rule).expect("compiles")).collect();
    let mut graph: Graph = parse_graph(&graph.replace('F', F)).expect("a graph");
    simplify(&mut graph, &registry, None, &rules, &Settings::default()).expect("simplifies");
    graph.to_text(&PrintOptions::bare())
}

/// What is wrong with a rule, as people read it.
fn wrong(rules: &str) -> String {
    let registry = Registry::builtin();
    let error = match parse(&Source::new("t.rules", rules)) {
        Ok(rules) => {
            rules.iter().find_map(|rule| compile(&registry, rule).err()).expect("something is wrong")
        }
        Err(error) => error,
    };
    render::human(&error)
}

#[test]
fn variables_have_types() {
    let rule = "rule a exact aten::mul(?x: int, 1) => ?x";
    let graph = |ty: &str| {
        format!(
            "graph(%x : {ty}):\n  %1 : int = prim::Constant[value=1]()\n  %a : {ty} = aten::mul(%x, %1)\n  return (%a)\n"
        )
    };
    assert!(after(rule, &graph("int")).contains("return (%x)"));
    assert!(after(rule, &graph("float")).contains("aten::mul"));
    let text = wrong("rule a exact aten::neg(?x: Tensr) => ?x");
    assert!(text.contains("unknown type 'Tensr'") && text.contains("t.rules:1:"), "{text}");
}

#[test]
fn constants_and_attributes_are_computed() {
    let rule = "rule a exact aten::mul(aten::mul(?x: int, ?a: int), ?b: int) => aten::mul(?x, (?a * ?b - 1 + 1)) if is_const(?a) and is_const(?b)";
    let graph = "graph(%x : int):\n  %2 : int = prim::Constant[value=2]()\n  %3 : int = prim::Constant[value=3]()\n  %a : int = aten::mul(%x, %2)\n  %b : int = aten::mul(%a, %3)\n  return (%b)\n";
    assert!(after(rule, graph).contains("prim::Constant[value=6]"), "{}", after(rule, graph));
    let text = wrong("rule a exact aten::mul(?x: int, 1) => (fourth(?x))");
    assert!(text.contains("unknown function `fourth` with 1 argument"), "{text}");
    let attribute = "rule a exact prim::Constant[value=3]() => prim::Constant[value=4]()";
    assert!(parse(&Source::new("t.rules", attribute)).is_ok());
}

#[test]
fn operands_may_be_any_number() {
    let rule = "rule a exact aten::cat([?a..., ?m@aten::cat([?b...], ?d: int), ?c...], ?d) => aten::cat([?a..., ?b..., ?c...], ?d) if one_use(?m)";
    let graph = "graph(%x : F, %y : F, %z : F):\n  %0 : int = prim::Constant[value=0]()\n  %l : Tensor[] = prim::ListConstruct(%x, %y)\n  %a : Tensor = aten::cat(%l, %0)\n  %m : Tensor[] = prim::ListConstruct(%z, %a)\n  %b : Tensor = aten::cat(%m, %0)\n  return (%b)\n";
    assert!(after(rule, graph).contains("prim::ListConstruct(%z, %x, %y)"), "{}", after(rule, graph));
    let text = wrong("rule a exact aten::cat([?a..., ?b], 0) => aten::cat([?c...], 0)");
    assert!(text.contains("?c does not occur on the left side"), "{text}");
}

#[test]
fn one_of_several_results_is_meant() {
    let rule = "rule a exact aten::max(?x: Tensor, ?d: int, ?k: bool).0 => aten::relu(?x)";
    let graph = "graph(%x : F):\n  %0 : int = prim::Constant[value=0]()\n  %no : bool = prim::Constant[value=0]()\n  %a : Tensor, %i : Tensor = aten::max(%x, %0, %no)\n  return (%a)\n";
    let text = after(rule, graph);
    assert!(text.contains("aten::relu") && !text.contains("aten::max("), "{text}");
    let text = wrong("rule a exact aten::max(?x: Tensor, ?d: int, ?k: bool).7 => ?x");
    assert!(text.contains("no overloads fit both sides"), "{text}");
}

#[test]
fn blocks_are_matched_by_their_results() {
    let rule = "rule a exact prim::If(?c: bool) { ?x: int } { ?x } => ?x";
    let graph = "graph(%c : bool, %x : int):\n  %a : int = prim::If(%c)\n    block0():\n      -> (%x)\n    block1():\n      -> (%x)\n  return (%a)\n";
    assert!(after(rule, graph).contains("return (%x)"), "{}", after(rule, graph));
    let text = wrong("rule a exact prim::If(?c: bool) { ?x: int  => ?x");
    assert!(text.contains("not a rule") && text.contains('^'), "{text}");
}

#[test]
fn matched_terms_have_names() {
    let rule = "rule a exact aten::neg(?m@aten::neg(?x: Tensor)) => ?x if one_use(?m)";
    let once = "graph(%x : F):\n  %a : F = aten::neg(%x)\n  %b : F = aten::neg(%a)\n  %c : F = aten::tanh(%b)\n  return (%c)\n";
    assert!(after(rule, once).contains("aten::tanh(%x)"));
    let twice = once.replace("return (%c)", "%d : F = aten::mul(%a, %c)\n  return (%d)");
    assert!(after(rule, &twice).contains("aten::tanh(%b)"));
    let text = wrong("rule a exact aten::neg(?m@aten::neg(?x: Tensor)) => ?x if one_use(?n)");
    assert!(text.contains("?n does not occur on the left side") && text.contains("did you mean"), "{text}");
}

#[test]
fn conditions_are_registered() {
    let rule = "rule a exact aten::neg(aten::neg(?x: Tensor)) => ?x if not (rank(?x) > 2 or is_integral(?x)) and dtype(?x) in {float32}";
    let graph = "graph(%x : F):\n  %a : F = aten::neg(%x)\n  %b : F = aten::neg(%a)\n  %c : F = aten::tanh(%b)\n  return (%c)\n";
    assert!(after(rule, graph).contains("aten::tanh(%x)"));
    let long = graph.replace('F', "Long(2, 3, strides=[3, 1], requires_grad=0, device=cpu)");
    assert!(after(rule, &long).contains("aten::tanh(%b)"));
    let text = wrong("rule a exact aten::neg(?x: Tensor) => ?x if is_flaot(?x)");
    assert!(
        text.contains("unknown condition `is_flaot` with 1 argument")
            && text.contains("did you mean is_float?"),
        "{text}"
    );
}

#[test]
fn rules_hold_both_ways() {
    let rule = "rule a exact aten::sub(?x: int, ?y: int) <=> aten::add(?x, aten::neg(?y))";
    let graph = "graph(%x : int, %y : int):\n  %a : int = aten::neg(%y)\n  %b : int = aten::add(%x, %a)\n  return (%b)\n";
    assert!(after(rule, graph).contains("aten::sub(%x, %y)"), "{}", after(rule, graph));
    let text = wrong("rule a exact aten::mul(?x: int, 0) <=> 0");
    assert!(text.contains("?x does not occur on the right side of a rule that holds both ways"), "{text}");
}

#[test]
fn groups_and_laws_belong_to_rules() {
    let text = "# the law\ngroup g {\n# x is x\nrule a exact aten::neg(aten::neg(?x: int)) => ?x\n}\nrule b exact aten::abs(?x: Tensor) => ?x\n";
    let rules = parse(&Source::new("t.rules", text)).expect("rules");
    assert_eq!(rules[0].group.as_deref(), Some("g"));
    assert_eq!((rules[0].doc.as_str(), rules[1].group.as_deref()), ("x is x", None));
    let text = wrong("group g {\nrule a exact aten::neg(?x: int) => ?x\n");
    assert!(text.contains("not a rule"), "{text}");
    let text = wrong("rule a exact aten::neg(?x: int) => ?x\nrule a exact aten::neg(?x: int) => ?x");
    assert!(text.contains("two rules are called a") && text.contains("the first is here"), "{text}");
}

#[test]
fn ops_and_contracts_that_do_not_exist_are_named() {
    let text = wrong("rule a exact aten::ngg(?x: Tensor) => ?x");
    assert!(text.contains("aten::ngg") && text.contains('^'), "{text}");
    let text = wrong("rule a nearly aten::neg(?x: Tensor) => ?x");
    assert!(text.contains("contract"), "{text}");
    let text = wrong("rule a exact aten::add.Nothing(?x: Tensor, ?x) => ?x");
    assert!(text.contains("has no overload Nothing"), "{text}");
}
