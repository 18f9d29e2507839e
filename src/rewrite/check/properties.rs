//! What holds for all programs, tried on random small ones: extraction is no worse than the input and as good as a
//! search over all forms, both drivers keep what a program computes, budgets hold, and every run gives the same.

use crate::analysis::AliasDb;
use crate::diag::Source;
use crate::dialects::{Registry, Run};
use crate::eval;
use crate::ir::{Attr, Graph, NoLaws, OpId, PrintOptions, Symbol, Type, ValueId, parse_graph, verify_graph};
use crate::rewrite::cost::CostModel;
use crate::rewrite::egraph::enter::load;
use crate::rewrite::egraph::enter::op_of;
use crate::rewrite::egraph::language::{Head, Node};
use crate::rewrite::egraph::saturate::Saturation;
use crate::rewrite::load::syntax::Contract;
use crate::rewrite::{Budget, CompiledRule, Questions, Settings, builtin, simplify, simplify_greedily};
use crate::rewrite::{compile, parse};
use crate::value::Value;
use egg::Id;
use hashbrown::HashMap;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// A graph of sums and products over two inputs, of which nothing is without use and nothing is written twice.
fn random_graph(seed: u64, ops: usize) -> Graph {
    let mut random = Random(seed);
    let mut graph = Graph::new();
    let int = [Type::int()];
    let mut values: Vec<ValueId> = (0..2).map(|_| graph.add_input(Type::int())).collect();
    let root = graph.root();
    for x in [0, 1, 3] {
        let op = graph.emit(root, Symbol::new("prim::Constant"), &[], &int);
        graph.set_attr(op, "value", Attr::Int(x));
        values.extend(graph.result(op, 0));
    }
    let mut known: Vec<(&str, Vec<ValueId>)> = Vec::new();
    for _ in 0..ops {
        let kind = ["aten::add", "aten::sub", "aten::mul", "aten::neg"][random.below(4)];
        let mut operands = vec![values[random.below(values.len())], values[random.below(values.len())]];
        if kind == "aten::neg" {
            operands.truncate(1);
        }
        if known.contains(&(kind, operands.clone())) {
            continue;
        }
        known.push((kind, operands.clone()));
        let op = graph.emit(root, Symbol::new(kind), &operands, &int);
        values.extend(graph.result(op, 0));
    }
    for value in values {
        let made = graph.def_op(value).is_some_and(|op| graph.kind(op) != "prim::Constant");
        if made && !graph.has_uses(value) {
            graph.add_output(value);
        }
    }
    graph
}

fn rules_of(text: &str) -> Vec<CompiledRule> {
    let registry = Registry::builtin();
    let rules = parse(&Source::new("t.rules", text)).expect("rules");
    rules.iter().flat_map(|rule| compile(&registry, rule).expect("compiles")).collect()
}

fn built_in() -> Vec<CompiledRule> {
    builtin(&Registry::builtin()).expect("the built-in rules are valid").to_vec()
}

/// What a graph of ints computes.
fn run(graph: &Graph, inputs: &[i64]) -> Vec<i64> {
    let registry = Registry::builtin();
    let run = Run::silent();
    let mut values: HashMap<ValueId, Value> = HashMap::new();
    values.extend(graph.inputs().iter().zip(inputs).map(|(v, x)| (*v, Value::Int(*x))));
    for op in graph.all_ops() {
        let operands: Vec<Value> = graph.operands(op).iter().map(|v| values[v].clone()).collect();
        let row = crate::dialects::resolve(&registry, graph, op).expect("a known op");
        let types: Vec<Type> = graph.results(op).iter().map(|v| graph.ty(*v).clone()).collect();
        let node = crate::dialects::Node { attrs: graph.attrs(op), result_types: &types };
        let outputs = eval::call(&row, &operands, node, &run).expect("runs");
        values.extend(graph.results(op).into_iter().zip(outputs));
    }
    graph.outputs().iter().map(|v| values[v].to_int().expect("an int")).collect()
}

fn cost(graph: &Graph) -> u64 {
    let costs = |op: &OpId| graph.kind(*op) != "prim::Constant" && graph.terminated_block(*op).is_none();
    graph.all_ops().iter().filter(|op| costs(op)).count() as u64
}

/// The least cost of all ways to choose one node for each class that is needed, without cycles.
struct Exact<'a> {
    run: &'a Saturation<'a>,
    best: u64,
    steps: usize,
}

impl Exact<'_> {
    fn search(&mut self, todo: &mut Vec<Id>, chosen: &mut HashMap<Id, Node>, cost: u64) {
        self.steps += 1;
        if cost >= self.best || self.steps > 2_000_000 {
            return;
        }
        let egraph = &self.run.loaded.egraph;
        let Some(id) = todo.pop().map(|id| egraph.find(id)) else {
            if is_acyclic(self.run, chosen) {
                self.best = cost;
            }
            return;
        };
        if chosen.contains_key(&id) {
            self.search(todo, chosen, cost);
        } else {
            let mut nodes = egraph[id].nodes.clone();
            // What is free is never worse.
            if let Some(free) = nodes.iter().position(|n| op_of(&self.run.loaded, n).is_none()) {
                nodes = vec![nodes[free].clone()];
            }
            for node in nodes {
                let own = u64::from(matches!(self.run.loaded.head(&node), Head::Op(_)));
                let before = todo.len();
                todo.extend(node.children.iter().copied());
                chosen.insert(id, node);
                self.search(&mut todo.clone(), chosen, cost + own);
                chosen.remove(&id);
                todo.truncate(before);
            }
        }
        todo.push(id);
    }
}

fn is_acyclic(run: &Saturation<'_>, chosen: &HashMap<Id, Node>) -> bool {
    fn visit(
        run: &Saturation<'_>,
        chosen: &HashMap<Id, Node>,
        id: Id,
        state: &mut HashMap<Id, bool>,
    ) -> bool {
        let id = run.loaded.egraph.find(id);
        match state.get(&id) {
            Some(done) => return *done,
            None => state.insert(id, false),
        };
        let fine =
            chosen.get(&id).is_none_or(|node| node.children.iter().all(|c| visit(run, chosen, *c, state)));
        state.insert(id, fine);
        fine
    }
    let mut state = HashMap::new();
    chosen.keys().all(|id| visit(run, chosen, *id, &mut state))
}

/// The least cost that the rules allow; None where the search is too long.
fn least(graph: &Graph, rules: &[CompiledRule], budget: Budget, start: u64) -> Option<u64> {
    let registry = Registry::builtin();
    let aliases = AliasDb::new(&registry, None, graph);
    let mut run = Saturation::new(load(graph, &registry, &aliases), rules, budget);
    run.saturate(graph);
    let mut todo: Vec<Id> = graph.outputs().iter().map(|v| run.loaded.class_of[v]).collect();
    let mut exact = Exact { run: &run, best: start + 1, steps: 0 };
    exact.search(&mut todo, &mut HashMap::new(), 0);
    (exact.steps <= 2_000_000).then_some(exact.best)
}

#[test]
fn extraction_is_as_good_as_a_search_over_all_forms() {
    let rules = built_in();
    let registry = Registry::builtin();
    let (mut tried, mut worse) = (0, Vec::new());
    for seed in 0..300 {
        let graph = random_graph(seed, 3 + seed as usize % 6);
        let before = cost(&graph);
        let mut out = graph.clone();
        let settings = Settings::default();
        let report = simplify(&mut out, &registry, None, &rules, &settings).expect("simplifies");
        assert!(verify_graph(&out, &NoLaws, None).is_empty(), "{}", out.to_text(&PrintOptions::bare()));
        let after = cost(&out);
        assert!(after <= before, "seed {seed}: {before} became {after}");
        // Where no rule fired nothing is counted.
        assert!(report.fired.is_empty() || report.cost == (before, after), "seed {seed}: {:?}", report.cost);
        if let Some(least) = least(&graph, &rules, settings.budget, before) {
            tried += 1;
            if after != least {
                worse.push((seed, before, after, least));
            }
        }
    }
    assert!(tried > 200, "{tried}");
    assert!(worse.is_empty(), "{} of {tried}: {worse:?}", worse.len());
}

#[test]
fn both_drivers_keep_what_a_program_computes() {
    let rules = built_in();
    let registry = Registry::builtin();
    for seed in 0..200 {
        let graph = random_graph(seed, 20);
        let inputs = [seed as i64 * 7 - 300, i64::MAX - seed as i64];
        let wanted = run(&graph, &inputs);
        let settings = Settings::default();
        let mut saturated = graph.clone();
        simplify(&mut saturated, &registry, None, &rules, &settings).expect("simplifies");
        assert_eq!(run(&saturated, &inputs), wanted, "seed {seed}");
        let mut greedy = graph.clone();
        let report =
            simplify_greedily(&mut greedy, &registry, None, &rules, &settings, &Questions::default())
                .expect("simplifies");
        assert!(verify_graph(&greedy, &NoLaws, None).is_empty(), "{}", greedy.to_text(&PrintOptions::bare()));
        assert_eq!(run(&greedy, &inputs), wanted, "seed {seed}");
        assert!(report.cost.1 <= report.cost.0, "seed {seed}");
    }
}

#[test]
fn every_run_gives_the_same() {
    let rules = built_in();
    let registry = Registry::builtin();
    for seed in 0..20 {
        let texts: Vec<String> = (0..3)
            .map(|_| {
                let mut graph = random_graph(seed, 30);
                simplify(&mut graph, &registry, None, &rules, &Settings::default()).expect("simplifies");
                graph.to_text(&PrintOptions::bare())
            })
            .collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "seed {seed}");
    }
}

#[test]
fn budgets_hold_within_a_tenth() {
    let rules = rules_of(
        "rule swap exact aten::add(?a: int, ?b: int) => aten::add(?b, ?a)\n\
         rule turn exact aten::add(aten::add(?a: int, ?b: int), ?c: int) => aten::add(?a, aten::add(?b, ?c))",
    );
    let registry = Registry::builtin();
    let mut text = "graph(%x : int,\n      %y : int):\n  %0 : int = aten::add(%x, %y)\n".to_string();
    for n in 1..40 {
        text += &format!("  %{n} : int = aten::add(%{}, %{})\n", n - 1, if n % 2 == 0 { "x" } else { "y" });
    }
    text += "  return (%39)\n";
    for nodes in [100, 500, 3000] {
        let budget = Budget { nodes, ..Budget::default() };
        let mut graph: Graph = parse_graph(&text).expect("a graph");
        let settings = Settings { budget, ..Settings::default() };
        let report = simplify(&mut graph, &registry, None, &rules, &settings).expect("simplifies");
        let grown = report.nodes.1 - report.nodes.0;
        assert!(grown * 10 <= nodes * 11, "{nodes}: {:?}", report.nodes);
        assert_eq!(report.stopped_by, Some("nodes"), "{nodes}");
        assert!(report.cost.1 <= report.cost.0);
    }
    let rounds = Budget { rounds: 2, ..Budget::default() };
    let mut graph: Graph = parse_graph(&text).expect("a graph");
    let settings = Settings { budget: rounds, ..Settings::default() };
    let report = simplify(&mut graph, &registry, None, &rules, &settings).expect("simplifies");
    assert_eq!(report.rounds, 2);
}

/// The op that computes what a graph returns.
fn last(text: &str, rules: &[CompiledRule], cost: CostModel) -> String {
    let registry = Registry::builtin();
    let mut graph: Graph = parse_graph(text).expect("a graph");
    let settings = Settings { cost, contract: Contract::FastMath, ..Settings::default() };
    simplify(&mut graph, &registry, None, rules, &settings).expect("simplifies");
    let op = graph.def_op(graph.outputs()[0]).expect("an op");
    graph.kind(op).to_string()
}

#[test]
fn cost_models_choose_between_forms() {
    // Ops that are as many cost as much; the bytes of an expanded tensor are more than those of the small one.
    let rules = rules_of(
        "rule out exact aten::expand(aten::neg(?x: Tensor), ?s: int[]) => aten::neg(aten::expand(?x, ?s))",
    );
    let small = "Float(1, strides=[1], requires_grad=0, device=cpu)";
    let large = "Float(1000, strides=[0], requires_grad=0, device=cpu)";
    let text = format!(
        "graph(%x : {small}):\n  %n : int = prim::Constant[value=1000]()\n  %no : bool = prim::Constant[value=0]()\n  %s : int[] = prim::ListConstruct(%n)\n  %a : {small} = aten::neg(%x)\n  %b : {large} = aten::expand(%a, %s, %no)\n  return (%b)\n"
    );
    assert_eq!(last(&text, &rules, CostModel::Bytes), "aten::expand");
    assert_eq!(last(&text, &rules, CostModel::Time), "aten::expand");
    // One op instead of two is less by count, and more by time where it multiplies large matrices.
    let rules = rules_of(
        "rule mix fast-math aten::add(aten::neg(?x: Tensor), ?y: Tensor) => aten::addmm(?y, ?x, ?x) if rank(?x) == 2",
    );
    let square = "Float(200, 200, strides=[200, 1], requires_grad=0, device=cpu)";
    let text = format!(
        "graph(%x : {square},\n      %y : {square}):\n  %1 : int = prim::Constant[value=1]()\n  %a : {square} = aten::neg(%x)\n  %b : {square} = aten::add(%a, %y, %1)\n  return (%b)\n"
    );
    assert_eq!(last(&text, &rules, CostModel::Ops), "aten::addmm");
    assert_eq!(last(&text, &rules, CostModel::Bytes), "aten::addmm");
    assert_eq!(last(&text, &rules, CostModel::Time), "aten::add");
}
