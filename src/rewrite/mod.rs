//! Rewriting: rules as text, saturated in an e-graph.
//!
//! A rule file is parsed ([`parse`]) and its terms are resolved against the op rows ([`compile`]). [`simplify`]
//! puts each stretch of pure ops of a block into an e-graph, applies the rules until nothing is new or a
//! counted budget is spent, and takes the cheapest form out again. An op that no rule changed keeps its place,
//! name and location. This layer decides values by rules and identity by effects; it does not know how
//! graphs are run.

pub mod check;
mod cost;
mod direct;
mod egraph;
mod explain;
mod extract;
mod load;
mod report;
mod simplify;

pub use check::lint::lint;
pub use cost::CostModel;
pub use direct::directed::{Replaced, replace};
pub use direct::greedy::simplify_greedily;
pub use explain::Explanations;
pub use load::compile::compile;
pub use load::groups::{RuleGroups, written};
pub use load::kept::{builtin, group, peephole};
pub use load::parse::{on_one_line, parse};
pub use load::reachable::builtin_for;
pub use load::rule::{CompiledRule, OpNode, Term};
pub use load::shelf::{BUILTIN, builtin_rules};
pub use load::{condition, facts, syntax};
pub use report::{Budget, Link, Questions, Replacement, Report, Settings, WhyNot};
pub use simplify::{simplify, simplify_explained};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;
    use crate::ir::{Graph, PrintOptions, parse_graph};
    use std::sync::Arc;

    fn simplified(text: &str) -> String {
        let registry = Registry::builtin();
        let rules = builtin(&registry).expect("the built-in rules are valid");
        let mut graph: Graph = parse_graph(text).expect("a graph");
        simplify(&mut graph, &registry, None, &rules, &Settings::default()).expect("simplifies");
        graph.to_text(&PrintOptions::bare())
    }

    /// Each op inside of another is read for each overload of that: without care in 10^30 steps here.
    #[test]
    fn a_deep_left_side_is_read_in_few_steps() {
        let left = (1..30).fold("?x0: int".to_string(), |term, n| format!("aten::add({term}, ?x{n})"));
        let text = format!("rule deep exact {left} => ?x0\n");
        let rules = parse(&crate::diag::Source::new("deep.rules", text)).expect("it is well formed");
        let compiled = compile(&Registry::builtin(), &rules[0]).expect("overloads fit");
        assert!(!compiled.is_empty() && compiled.len() <= 64, "{}", compiled.len());
    }

    #[test]
    fn numbers_fold_and_the_rest_stays() {
        let text = "graph(%x : int,\n      %y : int):\n  %0 : int = prim::Constant[value=0]()\n  %a : int = aten::add(%x, %0)\n  %b : int = aten::mul(%a, %y)\n  return (%b)\n";
        let out = simplified(text);
        assert!(out.contains("aten::mul(%x, %y)"), "{out}");
    }

    #[test]
    fn the_built_in_rules_compile_and_are_many() {
        let registry = Registry::builtin();
        let rules = builtin_rules().expect("the files are valid");
        assert!(rules.len() >= 250, "{}", rules.len());
        for rule in rules {
            assert!(compile(&registry, rule).is_ok(), "{}", rule.name);
        }
    }

    #[test]
    fn a_table_of_few_ops_has_the_rules_that_can_match_there() {
        let mut few = Registry::default();
        few.register("aten::neg.int(int a) -> int", |args| crate::dialects::one(-args.int(0)?))
            .expect("is new");
        let rules = builtin(&few).expect("compile");
        assert!(
            rules.iter().any(|rule| &*rule.name == "int-fold-neg") && rules.len() < 10,
            "{}",
            rules.len()
        );
    }

    #[test]
    fn a_table_that_changes_forgets_its_rules() {
        let mut registry = Registry::with_builtins();
        let before = builtin(&registry).expect("compile");
        assert!(Arc::ptr_eq(&before, &builtin(&registry.clone()).expect("compile")));
        registry
            .register("mine::id(int x) -> int", |args| crate::dialects::one(args.int(0)?))
            .expect("is new");
        assert!(!Arc::ptr_eq(&before, &builtin(&registry).expect("compile")));
    }

    #[test]
    fn what_is_written_keeps_its_place() {
        let t = "Float(3, strides=[1], requires_grad=0, device=cpu)";
        let text = format!(
            "graph(%x : {t}):\n  %1 : int = prim::Constant[value=1]()\n  %a : {t} = aten::neg(%x)\n  %b : {t} = aten::neg(%a)\n  %c : {t} = aten::add_(%x, %1, %1)\n  return (%b)\n"
        );
        assert_eq!(simplified(&text), text);
    }

    #[test]
    fn handles_that_are_given_out_again_are_not_taken_for_what_they_were() {
        let text = "graph(%n : int):\n  %1 : int = prim::Constant[value=1]()\n  %7 : int = prim::Constant[value=7]()\n  %2 : int = prim::Constant[value=2]()\n  %xs : int[] = prim::ListConstruct(%n, %n, %7)\n  %a : int = aten::len(%xs)\n  %ys : int[] = prim::ListConstruct(%n, %2)\n  %b : int = aten::__getitem__(%ys, %1)\n  %r : (int, int, int) = prim::TupleConstruct(%a, %b, %7)\n  return (%r)\n";
        let out = simplified(text);
        assert!(out.contains("%2, %7)"), "{out}");
    }

    #[test]
    fn a_graph_that_no_rule_touches_prints_unchanged() {
        let text = "graph(%x : int,\n      %y : int):\n  %a : int = aten::sub(%x, %y)\n  %b : int = aten::mul(%a, %y)\n  return (%b)\n";
        assert_eq!(simplified(text), text);
    }

    #[test]
    fn an_output_never_becomes_an_alias_of_an_input() {
        let text = "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n  %a : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg(%x)\n  %b : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg(%a)\n  return (%b)\n";
        assert_eq!(simplified(text), text);
    }

    #[test]
    fn inside_of_fresh_work_double_negation_goes() {
        let text = "graph(%x : Float(3, strides=[1], requires_grad=0, device=cpu)):\n  %a : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg(%x)\n  %b : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::neg(%a)\n  %c : Float(3, strides=[1], requires_grad=0, device=cpu) = aten::tanh(%b)\n  return (%c)\n";
        assert!(simplified(text).contains("aten::tanh(%x)"), "{}", simplified(text));
    }
}
