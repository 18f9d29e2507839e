//! The rules that can match in a graph: those whose left sides are made of ops that the graph has or that such rules make. A
//! rule is resolved when a graph first needs it, so that a small graph does not pay for all of them, nor for all ops that an
//! op variable may stand for. What matches is the same as with all rules, in the same order.

use super::compile::{compile, one_op};
use super::kept::Kept;
use super::op_variables::schematic;
use super::rule::CompiledRule;
use super::syntax::{Arrow, Rule, RuleTerm, TermKind};
use super::wanted::Wanted;
use super::{facts, groups, shelf};
use crate::diag::Result;
use crate::dialects::Registry;
use crate::ir::{Graph, Symbol};
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::sync::Arc;

/// Sets of ops whose rules are kept; a program with more kinds of graphs starts again.
const MAX_SETS: usize = 64;

/// The rules of [`crate::rewrite::builtin`] that can match in a graph, in their order.
pub fn builtin_for(registry: &Registry, graph: &Graph) -> Result<Arc<[CompiledRule]>> {
    let mut names: HashSet<Symbol> = graph.all_ops().into_iter().map(|op| graph.kind(op)).collect();
    // Constant lists are lists that rules see into.
    names.insert(Symbol::new("prim::ListConstruct"));
    let table = registry.derived(Table::of);
    table.rules_for(registry, names)
}

/// The rules of a table of ops, as [`Registry::derived`] keeps them.
struct Table {
    rules: Vec<Candidate>,
    known: Mutex<HashMap<Vec<Symbol>, Kept>>,
}

/// A rule that is resolved when it is needed.
struct Candidate {
    rule: Text,
    /// The ops of each side from which it is read.
    wanted: Vec<Vec<Symbol>>,
    /// All its ops.
    named: Vec<Symbol>,
    /// Its readings: of a rule with an op variable those for each op, else all under no op.
    readings: Mutex<HashMap<Option<usize>, Arc<[CompiledRule]>>>,
}

/// Where a rule is written.
enum Text {
    /// In a group that was added: it must resolve, and comes before the facts of rows.
    Added(Box<Rule>),
    /// In a built-in file, parsed when it is needed.
    Shelf(&'static shelf::Entry),
}

impl Table {
    fn of(registry: &Registry) -> Table {
        let added = groups::added_rules(registry)
            .filter(|rule| Wanted::Laws.has(rule.group.as_deref(), rule.directed))
            .map(|rule| Candidate::new(wanted(rule), named(rule), Text::Added(Box::new(rule.clone()))));
        let built_in = shelf::entries()
            .iter()
            .filter(|entry| entry.is(Wanted::Laws))
            .map(|entry| Candidate::new(entry.wanted.clone(), entry.named.clone(), Text::Shelf(entry)));
        Table { rules: added.chain(built_in).collect(), known: Mutex::default() }
    }

    fn rules_for(&self, registry: &Registry, names: HashSet<Symbol>) -> Kept {
        let mut key: Vec<Symbol> = names.iter().copied().collect();
        key.sort_unstable_by(|a, b| a.as_str().cmp(b.as_str()));
        if let Some(known) = self.known.lock().get(&key) {
            return known.clone();
        }
        let rules = self.resolve(registry, names);
        let mut known = self.known.lock();
        if known.len() >= MAX_SETS {
            known.clear();
        }
        known.insert(key, rules.clone());
        rules
    }

    fn resolve(&self, registry: &Registry, mut names: HashSet<Symbol>) -> Kept {
        let rules = &self.rules;
        let mut live = vec![false; rules.len()];
        loop {
            let before = names.len();
            for (candidate, live) in rules.iter().zip(&mut live).filter(|(_, live)| !**live) {
                if candidate.wanted.iter().any(|side| side.iter().all(|name| names.contains(name))) {
                    *live = true;
                    names.extend(&candidate.named);
                }
            }
            // What facts of ops that are met make of them.
            let rows = names.iter().flat_map(|name| registry.overloads(*name));
            let made: Vec<Symbol> =
                rows.flat_map(|op| facts::named(op, &|name| names.contains(&name))).collect();
            names.extend(made.into_iter().filter(|name| !registry.overloads(*name).is_empty()));
            if names.len() == before {
                break;
            }
        }
        // In the order of the table.
        let ops: Vec<_> = registry.iter().filter(|op| names.contains(&op.name())).collect();
        let mut found: Vec<CompiledRule> = Vec::new();
        let alive = || rules.iter().zip(&live).filter(|(_, live)| **live).map(|(candidate, _)| candidate);
        for candidate in alive().filter(|candidate| candidate.is_added()) {
            found.extend_from_slice(&candidate.whole(registry)?);
        }
        for op in &ops {
            for fact in facts::of_op(registry, op, &|name| names.contains(&name))? {
                found.extend(facts::readings(registry, &fact)?);
            }
        }
        for candidate in alive().filter(|candidate| !candidate.is_added()) {
            match schematic(candidate.rule()?)? {
                None => found.extend(candidate.whole(registry).iter().flat_map(|all| all.iter()).cloned()),
                Some(schematic) => {
                    for op in &ops {
                        let Some(rule) = schematic.of(op)? else { continue };
                        let mut readings = candidate.readings.lock();
                        let one = readings.entry(Some(op.id()));
                        found.extend_from_slice(one.or_insert_with(|| one_op(registry, &rule, op).into()));
                    }
                }
            }
        }
        Ok(found.into())
    }
}

impl Candidate {
    fn new(wanted: Vec<Vec<Symbol>>, named: Vec<Symbol>, rule: Text) -> Candidate {
        Candidate { rule, wanted, named, readings: Mutex::default() }
    }

    fn is_added(&self) -> bool {
        matches!(self.rule, Text::Added(_))
    }

    fn rule(&self) -> Result<&Rule> {
        match &self.rule {
            Text::Added(rule) => Ok(rule),
            Text::Shelf(entry) => entry.rule(),
        }
    }

    /// All readings.
    fn whole(&self, registry: &Registry) -> Kept {
        if let Some(known) = self.readings.lock().get(&None) {
            return Ok(Arc::clone(known));
        }
        let all: Arc<[CompiledRule]> = compile(registry, self.rule()?)?.into();
        self.readings.lock().insert(None, Arc::clone(&all));
        Ok(all)
    }
}

/// The ops of each side from which a rule is read.
pub(in crate::rewrite) fn wanted(rule: &Rule) -> Vec<Vec<Symbol>> {
    let mut wanted = vec![ops_of(&rule.left)];
    if rule.arrow == Arrow::BothWays {
        wanted.push(ops_of(&rule.right));
    }
    wanted
}

/// The ops of both sides.
pub(in crate::rewrite) fn named(rule: &Rule) -> Vec<Symbol> {
    ops_of(&rule.left).into_iter().chain(ops_of(&rule.right)).collect()
}

/// The ops that a term names; what an op variable denotes is not among them.
fn ops_of(term: &RuleTerm) -> Vec<Symbol> {
    let mut found = Vec::new();
    term.walk(&mut |term| match &term.kind {
        TermKind::Op(op) if !op.kind.starts_with('?') => found.push(Symbol::new(&op.kind)),
        _ => {}
    });
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse_graph;
    use crate::rewrite::builtin;

    /// Of all rules those that name no op but the graph's and what they make, in their order.
    #[test]
    fn what_can_match_is_there_in_order() {
        let registry = Registry::builtin();
        let text = "graph(%x : Tensor):\n  %a : Tensor = aten::neg(%x)\n  %b : Tensor = aten::t(%a)\n  %c : Tensor = aten::sin(%b)\n  return (%c)\n";
        let graph = parse_graph(text).expect("a graph");
        let few = builtin_for(&registry, &graph).expect("resolve");
        let all = builtin(&registry).expect("resolve");
        let label = |rule: &CompiledRule| format!("{} {:?} {:?}", rule.name, rule.left, rule.right);
        let all: Vec<String> = all.iter().map(label).collect();
        let mut places = few.iter().map(|rule| all.iter().position(|other| *other == label(rule)));
        let mut last = None;
        assert!(places.all(|place| {
            let follows = place.is_some() && place > last;
            last = place;
            follows
        }));
        let has = |name: &str| few.iter().any(|rule| &*rule.name == name);
        assert!(has("involution/aten.neg") && has("odd/aten.sin") && has("map-t") && has("t-t"));
        assert!(!has("cat-one") && few.len() < 200, "{}", few.len());
        assert!(Arc::ptr_eq(&few, &builtin_for(&registry, &graph).expect("resolve")));
    }
}
