//! Rewriting: rules as text, saturated in an e-graph.
//!
//! A rule file is parsed ([`parse`]) and its terms are resolved against the op rows ([`compile`]). [`simplify`]
//! puts each stretch of pure ops of a block into an e-graph, applies the rules until nothing is new or a
//! counted budget is spent, and takes the cheapest form out again. An op that no rule changed keeps its place,
//! name and location. This layer decides values by rules and identity by effects; it does not know how
//! graphs are run.

pub mod check;
mod compile;
pub mod condition;
pub mod cost;
mod extract;
mod language;
mod load;
mod matching;
mod parse;
mod saturate;
pub mod syntax;

pub use compile::{CompiledRule, OpNode, Term, compile};
pub use cost::CostModel;
pub use extract::Replacement;
pub use parse::parse;
pub use saturate::{Budget, Report, Settings, simplify};

use crate::diag::{Result, Source};
use crate::dialects::Registry;
use crate::ir::Attr;

/// The built-in rule files, by theme.
pub const BUILTIN: &[(&str, &str)] = &[
    ("peephole.rules", include_str!("rules/peephole.rules")),
    ("numbers.rules", include_str!("rules/numbers.rules")),
    ("arith.rules", include_str!("rules/arith.rules")),
    ("views.rules", include_str!("rules/views.rules")),
];

/// The built-in rules, resolved against a table of ops. A rule over an op that the table lacks is left out.
pub fn builtin(registry: &Registry) -> Result<Vec<CompiledRule>> {
    let mut rules = Vec::new();
    for (name, text) in BUILTIN {
        for rule in parse(&Source::new(format!("src/rewrite/rules/{name}"), *text))? {
            rules.extend(compile(registry, &rule)?);
        }
    }
    Ok(rules)
}

/// The built-in rules of a group.
pub fn group(registry: &Registry, name: &str) -> Result<Vec<CompiledRule>> {
    let mut rules = builtin(registry)?;
    rules.retain(|rule| rule.group.as_deref() == Some(name));
    Ok(rules)
}

/// An attribute as text.
fn attr_text(attr: &Attr) -> String {
    match attr {
        Attr::Int(x) => x.to_string(),
        Attr::Float(x) => format!("{x:?}"),
        Attr::Str(x) => format!("{x:?}"),
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

    #[test]
    fn numbers_fold_and_the_rest_stays() {
        let text = "graph(%x : int,\n      %y : int):\n  %0 : int = prim::Constant[value=0]()\n  %a : int = aten::add(%x, %0)\n  %b : int = aten::mul(%a, %y)\n  return (%b)\n";
        let out = simplified(text);
        assert!(out.contains("aten::mul(%x, %y)"), "{out}");
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
