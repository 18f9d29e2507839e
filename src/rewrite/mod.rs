//! Rewriting: rules as text, saturated in an e-graph.
//!
//! A rule file is parsed ([`parse`]) and its terms are resolved against the op rows ([`compile`]). [`simplify`]
//! puts each stretch of pure ops of a block into an e-graph, applies the rules until nothing is new or a
//! counted budget is spent, and takes the cheapest form out again. An op that no rule changed keeps its place,
//! name and location. This layer decides values by rules and identity by effects; it does not know how
//! graphs are run.

mod agenda;
pub mod check;
mod compile;
pub mod condition;
pub mod cost;
mod exact;
mod explain;
mod directed;
mod extract;
pub mod facts;
mod reachable;
mod forms;
mod graph_match;
mod greedy;
mod greedy_trace;
mod groups;
mod identity;
mod language;
mod lint;
mod load;
mod matching;
mod named;
mod op_variables;
mod parse;
mod proof;
#[cfg(test)]
mod properties;
#[cfg(test)]
mod language_tests;
mod saturate;
mod shelf;
pub mod syntax;
mod trace;
mod why_not;

pub use compile::{CompiledRule, OpNode, Term, compile};
pub use cost::CostModel;
pub use directed::{Replaced, replace};
pub use explain::{Explanations, Link, Questions, WhyNot};
pub use extract::Replacement;
pub use greedy::simplify_greedily;
pub use groups::{RuleGroups, group, written};
pub use lint::lint;
pub use parse::{on_one_line, parse};
pub use reachable::builtin_for;
pub use saturate::{Budget, Report, Settings, simplify, simplify_explained};

use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::Attr;
use std::sync::Arc;

/// The built-in rule files, by theme.
pub const BUILTIN: &[(&str, &str)] = &[
    ("peephole.rules", include_str!("rules/peephole.rules")),
    ("numbers.rules", include_str!("rules/numbers.rules")),
    ("arith.rules", include_str!("rules/arith.rules")),
    ("functions.rules", include_str!("rules/functions.rules")),
    ("compare.rules", include_str!("rules/compare.rules")),
    ("views.rules", include_str!("rules/views.rules")),
    ("joins.rules", include_str!("rules/joins.rules")),
    ("contraction.rules", include_str!("rules/contraction.rules")),
    ("folding.rules", include_str!("rules/folding.rules")),
    ("convert.rules", include_str!("rules/convert.rules")),
    ("reductions.rules", include_str!("rules/reductions.rules")),
    ("passes.rules", include_str!("rules/passes.rules")),
];

/// PyTorch's peephole optimizations.
const PEEPHOLE: &str = "torchscript-peephole";
/// Those of them that trust what is not known.
const TRUSTING: &str = "torchscript-peephole-trusting";

/// The built-in rules as written.
pub fn builtin_rules() -> Result<Vec<&'static syntax::Rule>> {
    shelf::entries().iter().map(shelf::Entry::rule).collect()
}

/// Rules of a table.
#[derive(Clone, Copy)]
enum Wanted<'a> {
    /// Those that hold for every program.
    Laws,
    /// Those of some groups.
    Groups(&'a [&'a str]),
}

impl Wanted<'_> {
    /// Whether a rule of a group is one, by which a pass replaces (`directed`) or not.
    fn has(self, group: Option<&str>, directed: bool) -> bool {
        match self {
            Wanted::Laws => !directed && group != Some(TRUSTING),
            Wanted::Groups(groups) => group.is_some_and(|group| groups.contains(&group)),
        }
    }

    fn has_facts(self) -> bool {
        match self {
            Wanted::Laws => true,
            Wanted::Groups(groups) => groups.contains(&facts::GROUP),
        }
    }
}

/// Rules of a table, resolved against its ops. Built-in rules about overloads that the table does not have can match nothing
/// and are left out.
fn compiled(registry: &Registry, wanted: Wanted<'_>) -> Result<Vec<CompiledRule>> {
    let mut rules = groups::compiled(registry, wanted)?;
    if wanted.has_facts() {
        rules.extend(facts::compiled(registry)?);
    }
    for rule in shelf::rules(wanted) {
        // They all are over the built-in ops, which a test makes sure of.
        rules.extend(compile(registry, rule?).unwrap_or_default());
    }
    Ok(rules)
}

/// Rules over the ops of one table, as [`Registry::derived`] keeps them.
type Kept = Result<Arc<[CompiledRule]>>;
struct Builtin(Kept);
struct Peephole(Kept);

/// The rules of a table that hold for every program, of all contracts: the groups that were added to it, then the built-in
/// ones. They are resolved once a table.
pub fn builtin(registry: &Registry) -> Result<Arc<[CompiledRule]>> {
    let kept = registry.derived(|registry| Builtin(compiled(registry, Wanted::Laws).map(Arc::from)));
    kept.0.clone()
}

/// The rules of PyTorch's peephole pass, with those that trust what is not known.
pub fn peephole(registry: &Registry) -> Result<Arc<[CompiledRule]>> {
    let groups = Wanted::Groups(&[PEEPHOLE, TRUSTING]);
    let kept = registry.derived(|registry| Peephole(compiled(registry, groups).map(Arc::from)));
    kept.0.clone()
}

/// An attribute as text.
fn attr_text(attr: &Attr) -> String {
    match attr {
        Attr::Int(x) => x.to_string(),
        Attr::Bool(x) => x.to_string(),
        Attr::Float(x) => format!("{x:?}"),
        Attr::Str(x) => format!("{x:?}"),
        Attr::Tensor(t) => format!("<{} {:?}>", t.dtype().name(), t.sizes()),
        other => format!("{other:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Graph, PrintOptions, parse_graph};

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
