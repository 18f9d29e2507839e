//! Explanations: which rules led from an op to what stands in its place, and why a rule was not taken, as text for
//! people and as JSON, one object a line.

pub(super) mod proof;
pub(super) mod why_not;

use super::report::{Link, Questions, Replacement, Report, WhyNot};
use serde_json::{Value, json};
use std::sync::{Mutex, PoisonError};

/// Where a tool gathers the explanations of all its passes.
#[derive(Debug, Default)]
pub struct Explanations {
    /// What is asked.
    pub questions: Questions,
    /// Of each simplification: the pass, the function, what happened.
    gathered: Mutex<Vec<(String, String, Report)>>,
}

impl Explanations {
    /// Nothing is gathered yet.
    pub fn new(questions: Questions) -> Explanations {
        Explanations { questions, gathered: Mutex::default() }
    }

    /// Adds a simplification.
    pub fn add(&self, pass: &str, function: &str, report: Report) {
        let mut gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.push((pass.to_string(), function.to_string(), report));
    }

    /// Pass, function and report of each simplification from the `from`-th on.
    pub fn gathered(&self, from: usize) -> Vec<(String, String, Report)> {
        let gathered = self.gathered.lock().unwrap_or_else(PoisonError::into_inner);
        gathered.get(from..).unwrap_or_default().to_vec()
    }

    /// All of them as text.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for (pass, function, report) in self.gathered.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let head = if function.is_empty() { pass.clone() } else { format!("{pass} of {function}") };
            if self.questions.explain {
                let (before, after) = report.cost;
                text += &format!("# {head}: {} replaced, cost {before} -> {after}\n", report.replaced);
                report.steps.iter().for_each(|step| text += &step_text(step));
                if let Some(limit) = report.stopped_by {
                    text += &format!("the budget of {limit} is spent\n");
                }
            }
            if let Some(rule) = &self.questions.why_not {
                text += &format!("# {head}: why not {rule}\n");
                report.why_not.iter().for_each(|why| text += &why_text(why));
            }
        }
        text
    }

    /// All of them as JSON, one object a line.
    pub fn to_json(&self) -> String {
        let mut lines = String::new();
        for (pass, function, report) in self.gathered.lock().unwrap_or_else(PoisonError::into_inner).iter() {
            let steps = report.steps.iter().filter(|_| self.questions.explain).map(step_json);
            let whys = report.why_not.iter().map(|why| why_json(self.questions.why_not.as_deref(), why));
            for mut line in steps.chain(whys) {
                line["pass"] = json!(pass);
                line["function"] = json!(function);
                lines += &format!("{line}\n");
            }
        }
        lines
    }
}

fn at(location: Option<&String>) -> String {
    location.map_or_else(String::new, |l| format!(" at {l}"))
}

fn step_text(step: &Replacement) -> String {
    let (before, after) = step.cost;
    let place = at(step.location.as_ref());
    let mut text =
        format!("%{}{place}: {} -> {}, cost {before} -> {after}\n", step.name, step.before, step.after);
    for link in &step.chain {
        let (before, after) = link.cost;
        text += &format!(
            "  {} ({}): {} -> {}, cost {before} -> {after}\n",
            link.rule, link.place, link.before, link.after
        );
    }
    text
}

fn why_text(why: &WhyNot) -> String {
    match &why.value {
        Some(value) => format!("%{value}{}: {}: {}\n", at(why.location.as_ref()), why.matched, why.reason),
        None if why.matched.is_empty() => format!("{}\n", why.reason),
        None => format!("{}: {}\n", why.matched, why.reason),
    }
}

fn step_json(step: &Replacement) -> Value {
    let link = |link: &Link| {
        json!({"rule": &*link.rule, "place": link.place, "before": link.before, "after": link.after,
               "cost": [link.cost.0, link.cost.1]})
    };
    json!({"kind": "replaced", "value": step.name, "location": step.location, "before": step.before,
           "after": step.after, "cost": [step.cost.0, step.cost.1],
           "chain": step.chain.iter().map(link).collect::<Vec<_>>()})
}

fn why_json(rule: Option<&str>, why: &WhyNot) -> Value {
    json!({"kind": "why-not", "rule": rule, "value": why.value, "location": why.location,
           "matched": why.matched, "reason": why.reason, "taken": why.taken})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialects::Registry;
    use crate::ir::{Graph, PrintOptions, parse_graph};
    use crate::rewrite::{CompiledRule, Settings, builtin, simplify, simplify_explained, simplify_greedily};

    const FLOAT: &str = "Float(3, strides=[1], requires_grad=0, device=cpu)";

    fn explained(graph: &mut Graph, rules: &[CompiledRule], why_not: Option<&str>) -> Report {
        let questions = Questions { explain: true, why_not: why_not.map(Into::into) };
        let registry = Registry::builtin();
        simplify_explained(graph, &registry, None, rules, &Settings::default(), &questions)
            .expect("simplifies")
    }

    /// The graph that all rules give, and the one that each named rule alone gives, in the order of the chains.
    fn replayed(text: &str) -> (String, String, usize) {
        let registry = Registry::builtin();
        let rules = builtin(&registry).expect("the built-in rules are valid");
        let mut all: Graph = parse_graph(text).expect("a graph");
        let report = explained(&mut all, &rules, None);
        let mut alone: Graph = parse_graph(text).expect("a graph");
        let links: Vec<&Link> = report.steps.iter().flat_map(|step| &step.chain).collect();
        for link in &links {
            let one: Vec<CompiledRule> =
                rules.iter().filter(|rule| rule.name == link.rule).cloned().collect();
            simplify(&mut alone, &registry, None, &one, &Settings::default()).expect("simplifies");
        }
        assert!(report.steps.iter().all(|step| !step.chain.is_empty()), "{:?}", report.steps);
        (all.to_text(&PrintOptions::bare()), alone.to_text(&PrintOptions::bare()), links.len())
    }

    #[test]
    fn each_rule_of_the_chains_alone_gives_the_same_graph() {
        let numbers = "graph(%x : int,\n      %y : int):\n  %0 : int = prim::Constant[value=0]()\n  %1 : int = prim::Constant[value=1]()\n  %a : int = aten::mul(%x, %1)\n  %b : int = aten::add(%a, %0)\n  %c : int = aten::sub(%b, %y)\n  %d : int = aten::add(%c, %y)\n  %n : int = aten::sub(%0, %d)\n  %e : int = aten::mul(%n, %y)\n  return (%e)\n";
        let tensors = format!(
            "graph(%x : {FLOAT}):\n  %a : {FLOAT} = aten::neg(%x)\n  %b : {FLOAT} = aten::neg(%a)\n  %c : {FLOAT} = aten::abs(%b)\n  %d : {FLOAT} = aten::neg(%c)\n  %e : {FLOAT} = aten::abs(%d)\n  return (%e)\n"
        );
        for (text, least) in [(numbers, 4), (tensors.as_str(), 2)] {
            let (all, alone, links) = replayed(text);
            assert_eq!(all, alone);
            assert!(all != text && links >= least, "{links} {all}");
        }
    }

    #[test]
    fn each_rule_that_the_greedy_driver_took_alone_gives_the_same_graph() {
        let registry = Registry::builtin();
        let rules = builtin(&registry).expect("the built-in rules are valid");
        let text = format!(
            "graph(%x : {FLOAT},\n      %n : int):\n  %0 : int = prim::Constant[value=0]()\n  %1 : int = prim::Constant[value=1]()\n  %a : {FLOAT} = aten::neg(%x)\n  %b : {FLOAT} = aten::neg(%a)\n  %c : {FLOAT} = aten::abs(%b)\n  %d : {FLOAT} = aten::neg(%c)\n  %e : {FLOAT} = aten::abs(%d)\n  %m : int = aten::mul(%n, %1)\n  %k : int = aten::add(%m, %0)\n  %r : ({FLOAT}, int) = prim::TupleConstruct(%e, %k)\n  return (%r)\n"
        );
        let asked = Questions { explain: true, why_not: None };
        let none = Questions::default();
        let greedily =
            |graph: &mut Graph, rules: &[CompiledRule], settings: &Settings, questions: &Questions| {
                simplify_greedily(graph, &registry, None, rules, settings, questions).expect("simplifies")
            };
        let mut all: Graph = parse_graph(&text).expect("a graph");
        let report = greedily(&mut all, &rules, &Settings::default(), &asked);
        assert!(report.steps.len() >= 4 && report.steps.len() == report.replaced, "{:?}", report.steps);
        assert!(report.steps.iter().all(|step| step.chain.len() == 1));
        let mut alone: Graph = parse_graph(&text).expect("a graph");
        let once = Settings { replacements: Some(1), ..Settings::default() };
        for step in &report.steps {
            let one: Vec<CompiledRule> =
                rules.iter().filter(|rule| rule.name == step.rules[0]).cloned().collect();
            let done = greedily(&mut alone, &one, &once, &asked);
            assert_eq!(done.steps[0].chain[0].before, step.chain[0].before);
        }
        let text_of = |graph: &Graph| graph.to_text(&PrintOptions::bare());
        assert_eq!(text_of(&all), text_of(&alone));
        // Without questions nothing changes.
        let mut plain: Graph = parse_graph(&text).expect("a graph");
        greedily(&mut plain, &rules, &Settings::default(), &none);
        assert_eq!(text_of(&all), text_of(&plain));
    }

    #[test]
    fn questions_change_no_answer() {
        let text = format!(
            "graph(%x : {FLOAT},\n      %n : int):\n  %a : {FLOAT} = aten::neg(%x)\n  %b : {FLOAT} = aten::neg(%a)\n  %c : {FLOAT} = aten::tanh(%b)\n  %1 : int = prim::Constant[value=1]()\n  %m : int = aten::mul(%n, %1)\n  %r : ({FLOAT}, int) = prim::TupleConstruct(%c, %m)\n  return (%r)\n"
        );
        let registry = Registry::builtin();
        let rules = builtin(&registry).expect("the built-in rules are valid");
        let mut plain: Graph = parse_graph(&text).expect("a graph");
        simplify(&mut plain, &registry, None, &rules, &Settings::default()).expect("simplifies");
        let mut asked: Graph = parse_graph(&text).expect("a graph");
        let report = explained(&mut asked, &rules, Some("involution/aten.neg"));
        assert_eq!(plain.to_text(&PrintOptions::bare()), asked.to_text(&PrintOptions::bare()));
        assert_eq!(report.steps.len(), 2);
    }

    #[test]
    fn a_rule_that_does_not_exist_is_named_so() {
        let mut graph: Graph = parse_graph("graph(%x : int):\n  return (%x)\n").expect("a graph");
        let report = explained(&mut graph, &[], Some("no-such-rule"));
        assert_eq!(report.why_not[0].reason, "the pass has no rule of this name");
    }
}
