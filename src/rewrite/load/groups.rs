//! Rule groups that were added to a table of ops, beside the built-in files. They are kept with the table, so that every
//! pass and command that has the table has them; this module does not know who adds them.

use super::compile::compile;
use super::parse::parse;
use super::rule::CompiledRule;
use super::shelf::builtin_rules;
use super::wanted::Wanted;
use super::{facts, syntax};
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use std::sync::Arc;

/// The groups of a table, in the order in which they were added.
#[derive(Clone, Default)]
pub struct RuleGroups(Vec<Arc<RuleGroup>>);

/// A group: its name and its rules as written.
struct RuleGroup {
    name: String,
    rules: Vec<syntax::Rule>,
}

impl RuleGroups {
    /// A copy of a table with one more group; rules of `text` that stand in no `group NAME { ... }` of their own belong to
    /// `name`. Fails for a text that is malformed, for a rule about ops that the table does not have, and for a name that is
    /// taken. Whether the rules hold is another question: `rules check` asks it.
    pub fn added(registry: &Registry, name: &str, text: &str) -> Result<Registry> {
        let mut groups = registry.part::<RuleGroups>().cloned().unwrap_or_default();
        if groups.0.iter().any(|group| group.name == name) {
            return Err(Diagnostic::input(format!("rule group '{name}' is registered already")));
        }
        let mut rules = parse(&Source::new(format!("{name}.rules"), text))?;
        for rule in &mut rules {
            compile(registry, rule)?;
            rule.group.get_or_insert_with(|| name.to_string());
            let known = |other: &syntax::Rule| other.name == rule.name;
            if groups.0.iter().flat_map(|group| &group.rules).any(known) {
                let message = format!("rule {} is in another group too", rule.name);
                return Err(Diagnostic::input(message).at(&rule.span));
            }
        }
        groups.0.push(Arc::new(RuleGroup { name: name.to_string(), rules }));
        let mut registry = registry.clone();
        registry.set_part(groups);
        Ok(registry)
    }
}

/// All rules of a table as written: the built-in ones, those of the groups that were added, and those that follow
/// from facts of its rows.
pub fn written(registry: &Registry) -> Result<Vec<syntax::Rule>> {
    let added = registry.part::<RuleGroups>().map_or(&[][..], |groups| &groups.0);
    let mut all: Vec<syntax::Rule> = builtin_rules()?.into_iter().cloned().collect();
    all.extend(added.iter().flat_map(|group| &group.rules).cloned());
    all.extend(facts::rules(registry)?.iter().map(|fact| fact.rule.clone()));
    Ok(all)
}

/// The rules that were added to a table, as written.
pub(super) fn added_rules(registry: &Registry) -> impl Iterator<Item = &syntax::Rule> {
    registry.part::<RuleGroups>().into_iter().flat_map(|groups| &groups.0).flat_map(|group| &group.rules)
}

/// The wanted ones of the rules that were added to a table, resolved against its ops.
pub(super) fn compiled(registry: &Registry, wanted: Wanted<'_>) -> Result<Vec<CompiledRule>> {
    let mut rules = Vec::new();
    for rule in added_rules(registry).filter(|rule| wanted.has(rule.group.as_deref(), rule.directed)) {
        rules.extend(compile(registry, rule)?);
    }
    Ok(rules)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Graph, PrintOptions, parse_graph};
    use crate::rewrite::{Settings, builtin, group, simplify};

    const RULES: &str = "rule sub-twice exact aten::sub(?x: int, aten::mul(?x, 2)) => aten::neg(?x)\n";

    #[test]
    fn an_added_group_is_part_of_the_table() {
        let registry = RuleGroups::added(&Registry::builtin(), "mine", RULES).expect("is well formed");
        let text = "graph(%x : int):\n  %0 : int = prim::Constant[value=2]()\n  %a : int = aten::mul(%x, %0)\n  %b : int = aten::sub(%x, %a)\n  return (%b)\n";
        for rules in [builtin(&registry), group(&registry, "mine")] {
            let mut graph: Graph = parse_graph(text).expect("a graph");
            let rules = rules.expect("compile");
            simplify(&mut graph, &registry, None, &rules, &Settings::default()).expect("simplifies");
            assert!(graph.to_text(&PrintOptions::bare()).contains("aten::neg(%x)"));
        }
        assert_eq!(group(&registry, "mine").expect("is there").len(), 1);
        assert!(group(&Registry::builtin(), "mine").is_err());
    }

    #[test]
    fn what_is_wrong_with_a_group_is_said_when_it_is_added() {
        let added = |text: &str| RuleGroups::added(&Registry::builtin(), "mine", text);
        let error = |text: &str| added(text).err().map(|e| e.to_string()).unwrap_or_default();
        assert!(error("rule r exact mine::twice(?x) => ?x\n").contains("mine::twice"));
        assert!(error("rule r exactly aten::neg(?x) => ?x\n").contains("mine.rules:1"));
        let twice = added(RULES).and_then(|with| RuleGroups::added(&with, "mine", RULES));
        assert!(twice.err().is_some_and(|e| e.message().contains("already")));
        let again = added(RULES).and_then(|with| RuleGroups::added(&with, "other", RULES));
        assert!(again.err().is_some_and(|e| e.message().contains("another group")));
    }
}
