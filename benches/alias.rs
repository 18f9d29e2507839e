//! The alias analysis: what it costs to build for graphs of a thousand to a hundred thousand ops with views, writes,
//! lists, branches and loops, and what one question costs then. Both should grow with the graph no faster than the graph
//! itself; a question should cost the same in all. The least of several runs counts.
//!
//!     cargo bench --bench alias

use flambeau::analysis::{AliasDb, Side};
use flambeau::dialects::Registry;
use flambeau::ir::{Graph, OpId, ValueId, parse_graph};
use std::fmt::Write;
use std::hint::black_box;
use std::time::{Duration, Instant};

const SIZES: [usize; 5] = [1_000, 3_000, 10_000, 30_000, 100_000];
const QUERIES: usize = 100_000;
const RUNS: usize = 3;

/// A small generator of numbers, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// A graph of about `ops` ops: a long function, whose values are mostly used near to where they were made.
fn graph_text(ops: usize) -> String {
    let mut text = String::from(
        "graph(%x : Tensor, %y : Tensor, %p : bool):
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=1]()
",
    );
    let mut random = Random(1);
    let mut tensors = vec!["x".to_string(), "y".to_string()];
    let mut lists: Vec<String> = Vec::new();
    for n in 0..ops {
        let reach = tensors.len().min(if random.below(10) == 0 { tensors.len() } else { 30 });
        let a = tensors[tensors.len() - 1 - random.below(reach)].clone();
        let b = tensors[tensors.len() - 1 - random.below(reach)].clone();
        let (name, mut is_list) = (format!("v{n}"), false);
        let _ = match random.below(16) {
            0..=5 => writeln!(text, "  %{name} : Tensor = aten::add(%{a}, %{b}, %one)"),
            6..=8 => writeln!(text, "  %{name} : Tensor = aten::t(%{a})"),
            9 => writeln!(text, "  %{name} : Tensor = aten::relu_(%{a})"),
            10 => {
                is_list = true;
                writeln!(text, "  %{name} : Tensor[] = prim::ListConstruct(%{a}, %{b})")
            }
            11 if !lists.is_empty() => {
                let list = &lists[random.below(lists.len())];
                writeln!(text, "  %{name} : Tensor = aten::__getitem__(%{list}, %zero)")
            }
            12 if !lists.is_empty() => {
                let list = lists[random.below(lists.len())].clone();
                is_list = true;
                writeln!(text, "  %{name} : Tensor[] = aten::append(%{list}, %{a})")
            }
            13 => writeln!(
                text,
                "  %{name} : Tensor = prim::If(%p)\n    block0():\n      -> (%{a})\n    block1():\n      -> (%{b})"
            ),
            14 => writeln!(
                text,
                "  %{name} : Tensor = prim::Loop(%one, %true, %{a})\n    block0(%i{n} : int, %c{n} : Tensor):\n      -> (%true, %c{n})"
            ),
            _ => writeln!(text, "  %{name} : Tensor = aten::neg(%{a})"),
        };
        if is_list { lists.push(name) } else { tensors.push(name) }
    }
    let _ = writeln!(text, "  return (%{})", tensors[tensors.len() - 1]);
    text
}

/// The least time of several runs.
fn least(mut work: impl FnMut()) -> Duration {
    let time = |work: &mut dyn FnMut()| {
        let started = Instant::now();
        work();
        started.elapsed()
    };
    (0..RUNS).map(|_| time(&mut work)).min().unwrap_or_default()
}

fn each(total: Duration, count: usize) -> f64 {
    total.as_secs_f64() * 1e9 / count as f64
}

/// One question of each kind, about values and ops drawn at random, in nanoseconds each.
fn questions(db: &AliasDb, graph: &Graph, registry: &Registry) -> [f64; 6] {
    let ops: Vec<OpId> = graph.block_ops(graph.root()).collect();
    let values: Vec<ValueId> = ops.iter().flat_map(|op| graph.results(*op)).collect();
    let mut random = Random(2);
    let pairs: Vec<(ValueId, ValueId, OpId)> = (0..QUERIES)
        .map(|_| {
            let mut pick = || values[random.below(values.len())];
            (pick(), pick(), ops[random.below(ops.len())])
        })
        .collect();
    let ask = |question: &dyn Fn(ValueId, ValueId, OpId) -> bool| {
        let all = || {
            for (a, b, op) in &pairs {
                black_box(question(*a, *b, *op));
            }
        };
        each(least(all), QUERIES)
    };
    let next = |op: OpId| graph.next(op).unwrap_or(op);
    [
        ask(&|a, b, _| db.may_alias(a, b)),
        ask(&|a, b, _| db.may_contain_alias(a, b)),
        ask(&|a, _, _| db.has_writers(a)),
        ask(&|a, _, op| db.writes_to(op, a)),
        ask(&|_, _, op| db.can_move(graph, registry, op, Side::After, next(op))),
        each(least(|| drop(black_box(db.memory_order(graph, &ops)))), ops.len()),
    ]
}

fn main() {
    let registry = Registry::builtin();
    println!("nanoseconds, the least of {RUNS} runs, {QUERIES} questions each");
    println!(
        "{:>8} {:>9} {:>9} {:>13} {:>11} {:>9} {:>9} {:>9}",
        "ops", "build/op", "may_alias", "contain_alias", "has_writers", "writes_to", "can_move", "order/op"
    );
    for size in SIZES {
        let graph = parse_graph(&graph_text(size)).expect("the text is well formed");
        let build = least(|| drop(black_box(AliasDb::new(&registry, None, &graph))));
        let db = AliasDb::new(&registry, None, &graph);
        let [alias, contain, written, writes, moves, order] = questions(&db, &graph, &registry);
        println!(
            "{size:>8} {:>9.0} {alias:>9.1} {contain:>13.1} {written:>11.1} {writes:>9.1} {moves:>9.0} {order:>9.0}",
            each(build, size)
        );
    }
}
