//! `flambeau bench rewrite`: saturation against the greedy driver over the same rules, and both against
//! `mlir-opt --canonicalize`, on the same generated graphs of integer arithmetic.

use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::Registry;
use crate::ir::{Attr, Graph, Symbol, Type, ValueId};
use crate::rewrite::{self, Budget, CompiledRule, Report, Settings};
use crate::tools::io::Io;
use crate::tools::numerics::Numerics;
use clap::Args;
use serde_json::{Value as Json, json};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Options of `flambeau bench rewrite`.
#[derive(Args, Debug)]
pub struct Options {
    /// Ops of the graphs
    #[arg(long, value_name = "N,N", value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000])]
    sizes: Vec<usize>,
    /// What the graphs are drawn by
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Rules in addition to the built-in ones, for both drivers
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Only the rules of the file
    #[arg(long, requires = "rules")]
    only: bool,
    #[command(flatten)]
    numerics: Numerics,
    /// Rounds over all rules
    #[arg(long, value_name = "N", default_value_t = Budget::default().rounds)]
    rounds: usize,
    /// Nodes that rules may add, or as many as the graph has
    #[arg(long, value_name = "N", default_value_t = Budget::default().nodes)]
    nodes: usize,
    /// Print one JSON object a line
    #[arg(long)]
    json: bool,
}

/// Growth worse than this power of the size is named.
const LINEAR: f64 = 1.3;
/// Rules that are tried in pairs when an e-graph blows up.
const SUSPECTS: usize = 6;
/// Ops of the graph on which pairs are tried.
const TRIAL: usize = 300;

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let registry = io.toolkit.registry();
    let mut rules = if options.only { Vec::new() } else { rewrite::builtin(registry)?.to_vec() };
    if let Some(file) = &options.rules {
        let text = io.read_text(file)?;
        for rule in rewrite::parse(&Source::new(file.display().to_string(), text))? {
            rules.extend(rewrite::compile(registry, &rule)?);
        }
    }
    let mlir = mlir_opt();
    let budget = Budget { nodes: options.nodes, rounds: options.rounds, ..Budget::default() };
    let contract = options.numerics.contract().unwrap_or_default();
    rules.retain(|rule| rule.applies_under(contract));
    let settings = Settings { budget, contract, ..Settings::default() };
    let bench = Bench { registry, rules: &rules, settings, mlir: mlir.as_deref() };
    if !options.json {
        io.print(&bench.head());
    }
    let mut lines: Vec<Line> = Vec::new();
    for size in &options.sizes {
        let line = bench.measure(&Program::draw((*size).max(1), options.seed))?;
        io.print(&if options.json { format!("{}\n", line.to_json()) } else { line.to_text() });
        lines.push(line);
    }
    let found = bench.findings(&lines, options.seed)?;
    for text in &found {
        io.print(&if options.json { format!("{}\n", json!({"finding": text})) } else { format!("{text}\n") });
    }
    Ok(true)
}

struct Bench<'a> {
    registry: &'a Registry,
    rules: &'a [CompiledRule],
    settings: Settings,
    mlir: Option<&'a Path>,
}

/// One size.
struct Line {
    ops: usize,
    cost: u64,
    saturation: (u64, Duration),
    nodes: (usize, usize),
    rounds: usize,
    stopped_by: Option<&'static str>,
    grew: Vec<(String, usize)>,
    greedy: (u64, Duration),
    mlir: Option<(u64, Duration)>,
}

impl Bench<'_> {
    fn head(&self) -> String {
        let mut text = format!("{} rules; cost is the number of non-constant ops\n", self.rules.len());
        match self.mlir {
            Some(path) => {
                let _ = writeln!(
                    text,
                    "mlir: {} --canonicalize, without the time that it takes to read and write the graph",
                    path.display()
                );
            }
            None => text += "mlir: left out, as there is no mlir-opt\n",
        }
        let _ = writeln!(
            text,
            "{:>7} {:>7} | {:>9} {:>10} {:>8} {:>15} {:>6} | {:>7} {:>10} {:>8} | {:>7} {:>10}",
            "ops",
            "cost",
            "saturated",
            "ms",
            "us/op",
            "nodes",
            "rounds",
            "greedy",
            "ms",
            "us/op",
            "mlir",
            "ms"
        );
        text
    }

    fn measure(&self, program: &Program) -> Result<Line> {
        let cost = count(&program.graph()?);
        let (saturation, report) = self.saturate(program, self.rules)?;
        let mut graph = program.graph()?;
        let start = Instant::now();
        let none = rewrite::Questions::default();
        rewrite::simplify_greedily(&mut graph, self.registry, None, self.rules, &self.settings, &none)?;
        let greedy = (count(&graph), start.elapsed());
        let mut grew: Vec<(String, usize)> =
            report.grew.iter().map(|(name, n)| (name.to_string(), *n)).collect();
        grew.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        Ok(Line {
            ops: program.steps.len(),
            cost,
            saturation,
            nodes: report.nodes,
            rounds: report.rounds,
            stopped_by: report.stopped_by,
            grew,
            greedy,
            mlir: self.mlir.map(|path| canonicalize(path, program)).transpose()?,
        })
    }

    fn saturate(&self, program: &Program, rules: &[CompiledRule]) -> Result<((u64, Duration), Report)> {
        let mut graph = program.graph()?;
        let start = Instant::now();
        let report = rewrite::simplify(&mut graph, self.registry, None, rules, &self.settings)?;
        Ok(((count(&graph), start.elapsed()), report))
    }

    /// What grows worse than the graphs, and the rules that are to blame.
    fn findings(&self, lines: &[Line], seed: u64) -> Result<Vec<String>> {
        let mut found = Vec::new();
        for pair in lines.windows(2) {
            let (a, b) = (&pair[0], &pair[1]);
            let size = (b.ops as f64 / a.ops as f64).ln();
            let ms = |d: Duration| d.as_secs_f64().max(1e-3);
            let measures = [
                ("time of saturation", ms(a.saturation.1), ms(b.saturation.1)),
                ("nodes of saturation", a.nodes.1 as f64, b.nodes.1 as f64),
                ("time of the greedy driver", ms(a.greedy.1), ms(b.greedy.1)),
            ];
            for (what, before, after) in measures {
                let power = (after / before).ln() / size;
                if size > 0.0 && power > LINEAR {
                    found.push(format!(
                        "growth: {what} grows by the power {power:.2} of the size from {} to {} ops",
                        a.ops, b.ops
                    ));
                }
            }
        }
        if let Some(line) = lines.iter().find(|line| line.stopped_by == Some("nodes")) {
            found.push(format!("blow-up: the budget of nodes is spent at {} ops", line.ops));
            found.extend(self.blame(line, seed)?);
        }
        if found.is_empty() {
            found.push("growth: linear or nearly so; no rules blow up".to_string());
        }
        Ok(found)
    }

    /// The pair of rules that alone makes the e-graph grow most.
    fn blame(&self, line: &Line, seed: u64) -> Result<Option<String>> {
        let program = Program::draw(TRIAL, seed);
        let suspects: Vec<&str> = line.grew.iter().take(SUSPECTS).map(|(name, _)| name.as_str()).collect();
        let mut worst: Option<(usize, String)> = None;
        for (n, a) in suspects.iter().enumerate() {
            for b in &suspects[n..] {
                let own = |rule: &&CompiledRule| *rule.name == **a || *rule.name == **b;
                let rules: Vec<CompiledRule> = self.rules.iter().filter(own).cloned().collect();
                let (_, report) = self.saturate(&program, &rules)?;
                let grown = report.nodes.1.saturating_sub(report.nodes.0);
                let names = if a == b { (*a).to_string() } else { format!("{a} and {b}") };
                if worst.as_ref().is_none_or(|(most, _)| grown > *most) {
                    worst = Some((grown, format!("{names} alone add {grown} nodes to {}", report.nodes.0)));
                }
            }
        }
        Ok(worst.map(|(_, text)| format!("blow-up: {text}")))
    }
}

impl Line {
    fn to_text(&self) -> String {
        let ms = |d: Duration| d.as_secs_f64() * 1e3;
        let each = |d: Duration| d.as_secs_f64() * 1e6 / self.ops as f64;
        let nodes = format!("{}->{}", self.nodes.0, self.nodes.1);
        let (mlir_cost, mlir_ms) = match self.mlir {
            Some((cost, time)) => (cost.to_string(), format!("{:.1}", ms(time))),
            None => ("-".to_string(), "-".to_string()),
        };
        format!(
            "{:>7} {:>7} | {:>9} {:>10.1} {:>8.2} {:>15} {:>6} | {:>7} {:>10.1} {:>8.2} | {:>7} {:>10}\n",
            self.ops,
            self.cost,
            self.saturation.0,
            ms(self.saturation.1),
            each(self.saturation.1),
            nodes,
            self.rounds,
            self.greedy.0,
            ms(self.greedy.1),
            each(self.greedy.1),
            mlir_cost,
            mlir_ms
        )
    }

    fn to_json(&self) -> Json {
        let us = |d: Duration| d.as_secs_f64() * 1e6;
        json!({
            "ops": self.ops, "cost": self.cost,
            "saturation": {"cost": self.saturation.0, "us": us(self.saturation.1), "nodes": [self.nodes.0, self.nodes.1],
                           "rounds": self.rounds, "stopped_by": self.stopped_by},
            "greedy": {"cost": self.greedy.0, "us": us(self.greedy.1)},
            "mlir": self.mlir.map(|(cost, time)| json!({"cost": cost, "us": us(time)})),
        })
    }
}

/// Ops that are not constants.
fn count(graph: &Graph) -> u64 {
    graph.all_ops().into_iter().filter(|op| graph.kind(*op) != "prim::Constant").count() as u64
}

// --- programs ---

/// What a step computes; numbers are inputs and earlier steps.
#[derive(Clone, Copy, Debug)]
enum Step {
    Constant(i64),
    Binary(&'static str, usize, usize),
}

/// Integer arithmetic, as graph text and as MLIR.
struct Program {
    inputs: usize,
    steps: Vec<Step>,
}

/// Operands come from this many values before, mostly.
const WINDOW: usize = 24;

impl Program {
    /// A program of a number of steps, all of which are used.
    fn draw(size: usize, seed: u64) -> Program {
        let mut drawn = Program { inputs: 4, steps: Vec::new() };
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(size as u64));
        let mut unused: Vec<usize> = (0..drawn.inputs).collect();
        while drawn.steps.len() < size {
            let constant = random.below(6) == 0;
            let step = if constant {
                Step::Constant([0, 1, 2, -1, 3, 7, 10][random.below(7)])
            } else {
                drawn.binary(&mut random, &mut unused)
            };
            drawn.steps.push(step);
            unused.push(drawn.inputs + drawn.steps.len() - 1);
        }
        // What is left over is added up.
        while unused.len() > 1 {
            let (a, b) = (unused.remove(0), unused.remove(0));
            drawn.steps.push(Step::Binary("add", a, b));
            unused.push(drawn.inputs + drawn.steps.len() - 1);
        }
        drawn
    }

    fn binary(&self, random: &mut Random, unused: &mut Vec<usize>) -> Step {
        let last = self.inputs + self.steps.len();
        let mut pick = |random: &mut Random| {
            if unused.len() > 3 && random.below(3) > 0 {
                let at = random.below(unused.len());
                return unused.swap_remove(at);
            }
            last - 1 - random.below(WINDOW.min(last))
        };
        let a = pick(random);
        // Some terms that laws are about: x - x, (x + y) - y, what was computed before.
        let b = match (random.below(8), self.steps.get(a.wrapping_sub(self.inputs))) {
            (0, _) => a,
            (1 | 2, Some(Step::Binary(_, _, y))) => *y,
            _ => pick(random),
        };
        unused.retain(|v| *v != b);
        Step::Binary(["add", "sub", "mul", "add", "sub"][random.below(5)], a, b)
    }

    fn graph(&self) -> Result<Graph> {
        let mut graph = Graph::new();
        let int = Type::int();
        let mut values: Vec<ValueId> = (0..self.inputs).map(|_| graph.add_input(int.clone())).collect();
        let root = graph.root();
        for step in &self.steps {
            let op = match step {
                Step::Constant(x) => {
                    let op = graph.emit(root, Symbol::new("prim::Constant"), &[], std::slice::from_ref(&int));
                    graph.set_attr(op, "value", Attr::Int(*x));
                    op
                }
                Step::Binary(name, a, b) => {
                    let kind = Symbol::new(&format!("aten::{name}"));
                    graph.emit(root, kind, &[values[*a], values[*b]], std::slice::from_ref(&int))
                }
            };
            let result = graph.result(op, 0);
            values.push(result.ok_or_else(|| Diagnostic::internal("an op without result"))?);
        }
        let last = values[values.len() - 1];
        graph.add_output(last);
        Ok(graph)
    }

    fn mlir(&self) -> String {
        let mut text = String::from("func.func @f(%v0: i64, %v1: i64, %v2: i64, %v3: i64) -> i64 {\n");
        for (n, step) in self.steps.iter().enumerate() {
            let n = n + self.inputs;
            let _ = match step {
                Step::Constant(x) => writeln!(text, "  %v{n} = arith.constant {x} : i64"),
                Step::Binary(name, a, b) => writeln!(text, "  %v{n} = arith.{name}i %v{a}, %v{b} : i64"),
            };
        }
        let _ = write!(text, "  return %v{} : i64\n}}\n", self.inputs + self.steps.len() - 1);
        text
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

// --- mlir-opt ---

/// `mlir-opt` of the search path, or where a package of LLVM 22 puts it.
fn mlir_opt() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).flat_map(|f| [f.join("mlir-opt"), f.join("mlir-opt-22")]);
    folders.chain([PathBuf::from("/usr/lib/llvm-22/bin/mlir-opt")]).find(|file| file.is_file())
}

/// Cost after canonicalization, and its time without that of reading and writing.
fn canonicalize(mlir_opt: &Path, program: &Program) -> Result<(u64, Duration)> {
    let text = program.mlir();
    let (_, plain) = run_mlir(mlir_opt, &[], &text)?;
    let (out, whole) = run_mlir(mlir_opt, &["--canonicalize"], &text)?;
    let ops = out.lines().filter(|l| l.contains("= arith.") && !l.contains("arith.constant")).count();
    Ok((ops as u64, whole.saturating_sub(plain)))
}

fn run_mlir(mlir_opt: &Path, words: &[&str], text: &str) -> Result<(String, Duration)> {
    let failed = |e: std::io::Error| Diagnostic::input(format!("{}: {e}", mlir_opt.display()));
    let start = Instant::now();
    let mut child = Command::new(mlir_opt)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map_err(failed)?;
    let stdin = child.stdin.take();
    let text = text.to_string();
    let writer = std::thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(text.as_bytes())));
    let out = child.wait_with_output().map_err(failed)?;
    // A tool that stops reading says why on its own.
    let _ = writer.join();
    if !out.status.success() {
        return Err(Diagnostic::input(format!("{} failed", mlir_opt.display())));
    }
    Ok((String::from_utf8_lossy(&out.stdout).into_owned(), start.elapsed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_the_same_every_time_and_every_step_is_used() {
        let (a, b) = (Program::draw(200, 3), Program::draw(200, 3));
        assert_eq!(a.mlir(), b.mlir());
        let graph = a.graph().expect("a graph");
        assert!(graph.all_ops().iter().all(|op| graph.results(*op).iter().all(|v| graph.has_uses(*v))));
    }

    #[test]
    fn rules_that_blow_up_are_named() {
        let registry = Registry::builtin();
        let text = "rule swap exact aten::add(?a: int, ?b: int) => aten::add(?b, ?a)\n\
                    rule turn exact aten::add(aten::add(?a: int, ?b: int), ?c: int) => aten::add(?a, aten::add(?b, ?c))\n\
                    rule none exact aten::sub(?a: int, 0) => ?a";
        let mut rules = Vec::new();
        for rule in rewrite::parse(&Source::new("t.rules", text)).expect("rules") {
            rules.extend(rewrite::compile(&registry, &rule).expect("compiles"));
        }
        let settings =
            Settings { budget: Budget { nodes: 2_000, ..Budget::default() }, ..Settings::default() };
        let bench = Bench { registry: &registry, rules: &rules, settings, mlir: None };
        let line = bench.measure(&Program::draw(TRIAL, 1)).expect("runs");
        let found = bench.findings(&[line], 1).expect("runs");
        let named = |f: &String| f.contains("swap") && f.contains("turn") && !f.contains("none");
        assert!(found.iter().any(named), "{found:?}");
    }
}
