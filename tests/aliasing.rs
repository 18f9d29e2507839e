//! The alias analysis against the interpreter: random programs run, and whatever they really share or write must be
//! possible by the analysis. And passes against the interpreter: with pipelines on, random programs give the same
//! answers, share the same memory and write the same to their arguments.

use flambeau::analysis::AliasDb;
use flambeau::dialects::{Registry, Run};
use flambeau::ir::{Graph, Module, ValueId, parse_graph};
use flambeau::passes::Context;
use flambeau::runtime::run_graph;
use flambeau::tensor::Tensor;
use flambeau::toolkit::Toolkit;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Random programs that run.
const PROGRAMS: u64 = 600;
/// Steps of a program.
const STEPS: usize = 14;

/// The one trial.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("aliasing::random_programs", random_programs),
        Trial::test("aliasing::pipelines_keep_identity", pipelines_keep_identity),
    ]
}

/// Pipelines and single passes under which no difference may be observable.
const PIPELINES: &[&str] =
    &["default", "optimize", "simplify", "remove-mutation", "loop-unrolling,cse,dce-graph"];

fn pipelines_keep_identity() -> Result<(), Failed> {
    let (mut ran, mut checked) = (0, 0);
    for seed in 0..PROGRAMS {
        // Other programs than those above, as the same seeds would show the same.
        let program = Program::random(seed + 1_000_000);
        let text = program.text_with(&program.some_outputs());
        let before = program.observe(&text, None)?;
        ran += u64::from(before.is_some());
        for pipeline in PIPELINES {
            let after =
                program.observe(&text, Some(pipeline)).map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
            if let (Some(before), Some(after)) = (&before, &after) {
                before.same_as(after).map_err(|e| format!("seed {seed}, {pipeline}: {e}\n{text}"))?;
                checked += 1;
            } else if before.is_some() {
                return Err(format!("seed {seed}: raises with {pipeline}\n{text}").into());
            }
        }
    }
    let wanted = ran * PIPELINES.len() as u64;
    if ran * 2 < PROGRAMS || checked != wanted {
        return Err(format!("only {ran} of {PROGRAMS} programs ran").into());
    }
    Ok(())
}

/// What a caller can observe of a run.
struct Observed {
    /// For each object, arguments first, the first object that is the same memory.
    identity: Vec<usize>,
    /// What each tensor holds.
    contents: Vec<Vec<f32>>,
}

impl Observed {
    fn of(values: &[Value]) -> Observed {
        let mut objects = Vec::new();
        for value in values {
            objects.push(value.clone());
            if let Value::List(list) = value {
                objects.extend(list.items().iter().cloned());
            }
        }
        let ids: Vec<usize> = objects.iter().map(identity).collect();
        Observed {
            identity: ids.iter().map(|id| ids.iter().position(|other| other == id).unwrap_or(0)).collect(),
            contents: objects.iter().map(numbers).collect(),
        }
    }

    fn same_as(&self, other: &Observed) -> Result<(), String> {
        if self.identity != other.identity {
            return Err(format!("shares {:?} without and {:?} with passes", self.identity, other.identity));
        }
        // The order of a sum may change, so that the last bits may.
        let near = |a: &f32, b: &f32| {
            a == b || (a.is_nan() && b.is_nan()) || (a - b).abs() <= 1e-5 * a.abs().max(1.0)
        };
        let same =
            |(a, b): (&Vec<f32>, &Vec<f32>)| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| near(a, b));
        match self.contents.iter().zip(&other.contents).position(|pair| !same(pair)) {
            Some(n) => Err(format!(
                "object {n}: {:?} without and {:?} with passes",
                self.contents[n], other.contents[n]
            )),
            None => Ok(()),
        }
    }
}

fn random_programs() -> Result<(), Failed> {
    let mut ran = 0;
    for seed in 0..PROGRAMS {
        let program = Program::random(seed);
        ran += u64::from(program.check().map_err(|e| format!("seed {seed}: {e}\n{}", program.text()))?);
    }
    // Programs may raise (an index out of range); most must not, or nothing is tested.
    if ran * 2 < PROGRAMS { Err(format!("only {ran} of {PROGRAMS} programs ran").into()) } else { Ok(()) }
}

/// A small generator of numbers, the same on every run.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }

    fn pick<'a>(&mut self, from: &'a [String]) -> &'a str {
        &from[self.below(from.len())]
    }
}

/// A program over square tensors and lists of them.
struct Program {
    random: Random,
    body: String,
    tensors: Vec<String>,
    lists: Vec<String>,
    /// Each tensor with the copy that was made of it when it was.
    copies: Vec<(String, String)>,
    next: usize,
    same_argument: bool,
}

impl Program {
    fn random(seed: u64) -> Program {
        let mut program = Program {
            random: Random(seed.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15)),
            body: String::new(),
            tensors: vec!["x".into(), "y".into()],
            lists: vec!["l".into()],
            copies: Vec::new(),
            next: 0,
            same_argument: seed.is_multiple_of(3),
        };
        for _ in 0..STEPS {
            program.step("  ");
        }
        program
    }

    fn name(&mut self) -> String {
        self.next += 1;
        format!("v{}", self.next)
    }

    fn tensor(&mut self, indent: &str, text: &str) {
        let (name, copy) = (self.name(), self.name());
        let _ = writeln!(self.body, "{indent}%{name} : Tensor = {text}");
        if indent.len() == 2 {
            let _ = writeln!(self.body, "{indent}%{copy} : Tensor = aten::clone(%{name}, %none)");
            self.copies.push((name.clone(), copy));
        }
        self.tensors.push(name);
    }

    fn list(&mut self, indent: &str, text: &str) {
        let name = self.name();
        let _ = writeln!(self.body, "{indent}%{name} : Tensor[] = {text}");
        self.lists.push(name);
    }

    fn step(&mut self, indent: &str) {
        let (a, b) =
            (self.random.pick(&self.tensors).to_string(), self.random.pick(&self.tensors).to_string());
        let (l, m) = (self.random.pick(&self.lists).to_string(), self.random.pick(&self.lists).to_string());
        let choices = if indent.len() > 2 { 14 } else { 18 };
        match self.random.below(choices) {
            0 => self.tensor(indent, &format!("aten::neg(%{a})")),
            1 => self.tensor(indent, &format!("aten::add(%{a}, %{b}, %one)")),
            2 => self.tensor(indent, &format!("aten::t(%{a})")),
            3 => self.tensor(indent, &format!("aten::contiguous(%{a}, %zero)")),
            4 => self.tensor(indent, &format!("aten::add_(%{a}, %{b}, %one)")),
            5 => self.tensor(indent, &format!("aten::sub_(%{a}, %{a}, %half)")),
            6 => self.list(indent, &format!("prim::ListConstruct(%{a}, %{b})")),
            7 => self.tensor(indent, &format!("aten::__getitem__(%{l}, %zero)")),
            8 => self.list(indent, &format!("aten::append(%{l}, %{a})")),
            9 => self.list(indent, &format!("aten::add(%{l}, %{m})")),
            10 => self.tensor(indent, &format!("aten::detach(%{a})")),
            11 => self.list(indent, &format!("aten::_set_item(%{l}, %zero, %{a})")),
            12 => self.joined(indent, &a, &b),
            13 => self.default(indent, &a, &b),
            14 => self.branch(&a, &b),
            15 => self.counted_loop(&a),
            16 => self.tensor(indent, &format!("prim::unchecked_cast(%{a})")),
            _ => self.parts(&a),
        }
    }

    /// A list that is only looked at.
    fn joined(&mut self, indent: &str, a: &str, b: &str) {
        let list = self.name();
        let _ = writeln!(self.body, "{indent}%{list} : Tensor[] = prim::ListConstruct(%{a}, %{b})");
        let (joined, count) = (self.name(), "two");
        let _ = writeln!(self.body, "{indent}%{joined} : Tensor = aten::cat(%{list}, %zero)");
        self.tensor(indent, &format!("aten::narrow(%{joined}, %zero, %zero, %{count})"));
    }

    /// A dictionary that has the key, or has not.
    fn default(&mut self, indent: &str, a: &str, b: &str) {
        let (dict, key) = (self.name(), if self.random.below(2) == 0 { "k" } else { "j" });
        let _ = writeln!(self.body, "{indent}%{dict} : Dict(str, Tensor) = prim::DictConstruct(%k, %{a})");
        self.tensor(indent, &format!("aten::get(%{dict}, %{key}, %{b})"));
    }

    fn branch(&mut self, a: &str, b: &str) {
        let (tensors, lists) = (self.tensors.clone(), self.lists.clone());
        let name = self.name();
        let _ = writeln!(self.body, "  %{name} : Tensor = prim::If(%p)");
        for (block, result) in [("block0", a), ("block1", b)] {
            let _ = writeln!(self.body, "    {block}():");
            (self.tensors, self.lists) = (tensors.clone(), lists.clone());
            self.step("      ");
            let inner = if self.random.below(2) == 0 {
                self.tensors[self.tensors.len() - 1].clone()
            } else {
                result.into()
            };
            let _ = writeln!(self.body, "      -> (%{inner})");
        }
        (self.tensors, self.lists) = (tensors, lists);
        self.tensors.push(name);
    }

    fn counted_loop(&mut self, a: &str) {
        let (tensors, lists) = (self.tensors.clone(), self.lists.clone());
        let (name, carried, counter) = (self.name(), self.name(), self.name());
        let _ = writeln!(self.body, "  %{name} : Tensor = prim::Loop(%two, %true, %{a})");
        let _ = writeln!(self.body, "    block0(%{counter} : int, %{carried} : Tensor):");
        self.tensors.push(carried);
        self.step("      ");
        self.step("      ");
        let end = self.tensors[self.tensors.len() - 1].clone();
        let _ = writeln!(self.body, "      -> (%true, %{end})");
        (self.tensors, self.lists) = (tensors, lists);
        self.tensors.push(name);
    }

    /// Parts of a tensor are views, out of a list that an op gives.
    fn parts(&mut self, a: &str) {
        let (list, first, second) = (self.name(), self.name(), self.name());
        let _ = writeln!(self.body, "  %{list} : Tensor[] = aten::chunk(%{a}, %two, %zero)");
        let _ = writeln!(self.body, "  %{first} : Tensor, %{second} : Tensor = prim::ListUnpack(%{list})");
        self.lists.push(list);
        // Square again, so that every other op takes it.
        self.tensor("  ", &format!("aten::expand(%{first}, %square, %false)"));
    }

    fn outputs(&self) -> Vec<String> {
        let copies = self.copies.iter().map(|(_, copy)| copy);
        self.tensors.iter().chain(&self.lists).chain(copies).cloned().collect()
    }

    /// A few outputs only, so that passes may change what is not observed.
    fn some_outputs(&self) -> Vec<String> {
        let tensors = self.tensors.iter().rev().step_by(3).take(4);
        tensors.chain(self.lists.last()).cloned().collect()
    }

    fn text(&self) -> String {
        self.text_with(&self.outputs())
    }

    fn text_with(&self, outputs: &[String]) -> String {
        let outputs: Vec<String> = outputs.iter().map(|name| format!("%{name}")).collect();
        format!(
            "graph(%x : Tensor, %y : Tensor, %l : Tensor[], %p : bool):
  %none : NoneType = prim::Constant()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %half : float = prim::Constant[value=0.5]()
  %true : bool = prim::Constant[value=1]()
  %false : bool = prim::Constant[value=0]()
  %k : str = prim::Constant[value=\"k\"]()
  %j : str = prim::Constant[value=\"j\"]()
  %square : int[] = prim::Constant[value=[2, 2]]()
{}  return ({})\n",
            self.body,
            outputs.join(", ")
        )
    }

    fn arguments(&self) -> Result<Vec<Value>, String> {
        let tensor = |from: f32| {
            Tensor::from_vec(&[from, from + 1.0, from + 2.0, from + 3.0], &[2, 2]).map_err(|e| e.to_string())
        };
        let x = tensor(1.0)?;
        let y = if self.same_argument { x.clone() } else { tensor(5.0)? };
        let list = Value::tensors([if self.same_argument { y.clone() } else { tensor(9.0)? }]);
        Ok(vec![Value::Tensor(x), Value::Tensor(y), list, Value::Bool(self.same_argument)])
    }

    /// Runs the program, with a pipeline on if one is given; None if it raises.
    fn observe(&self, text: &str, pipeline: Option<&str>) -> Result<Option<Observed>, String> {
        let mut graph = parse_graph(text).map_err(|e| e.to_string())?;
        if let Some(pipeline) = pipeline {
            let (registry, module) = (Registry::builtin(), Module::default());
            let passes = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
            passes.run_graph(&mut graph, &Context::new(&registry, &module)).map_err(|e| e.to_string())?;
        }
        let arguments = self.arguments()?;
        let results = run_graph(&Registry::builtin(), &graph, arguments.clone(), &Run::silent());
        let all = |results: Vec<Value>| arguments.into_iter().take(3).chain(results).collect::<Vec<_>>();
        Ok(results.ok().map(|results| Observed::of(&all(results.into_iter().collect()))))
    }

    /// Whether the program ran; an error if the analysis denies what happened.
    fn check(&self) -> Result<bool, String> {
        let graph = parse_graph(&self.text()).map_err(|e| e.to_string())?;
        let db = AliasDb::new(&Registry::builtin(), None, &graph);
        let Ok(results) = run_graph(&Registry::builtin(), &graph, self.arguments()?, &Run::silent()) else {
            return Ok(false);
        };
        let known: Vec<(String, ValueId, &Value)> = self
            .outputs()
            .into_iter()
            .zip(graph.outputs().iter().copied())
            .zip(&results)
            .map(|((name, id), value)| (name, id, value))
            .collect();
        sharing(&known, &db)?;
        self.writes(&known, &db, &graph)?;
        Ok(true)
    }

    /// A tensor that is no longer what it was when it was made has been written.
    fn writes(&self, known: &[(String, ValueId, &Value)], db: &AliasDb, _: &Graph) -> Result<(), String> {
        let find = |name: &str| known.iter().find(|(n, ..)| n == name);
        for (name, copy) in &self.copies {
            let (Some((_, id, value)), Some((_, _, before))) = (find(name), find(copy)) else { continue };
            if elements(value) != elements(before) && !db.has_writers(*id) {
                return Err(format!("%{name} was written, which the analysis denies"));
            }
        }
        Ok(())
    }
}

fn sharing(known: &[(String, ValueId, &Value)], db: &AliasDb) -> Result<(), String> {
    for (n, (name, id, value)) in known.iter().enumerate() {
        for (other, other_id, other_value) in &known[..n] {
            if identity(value) == identity(other_value) && !db.may_alias(*id, *other_id) {
                return Err(format!("%{name} and %{other} are one object, which the analysis denies"));
            }
            let common = !reached(value).is_disjoint(&reached(other_value));
            if common && !db.may_contain_alias(*id, *other_id) {
                return Err(format!("%{name} and %{other} share memory, which the analysis denies"));
            }
        }
    }
    Ok(())
}

fn identity(value: &Value) -> usize {
    match value {
        Value::Tensor(t) => t.storage().id(),
        Value::List(l) => l.id(),
        _ => 0,
    }
}

fn reached(value: &Value) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([identity(value)]);
    if let Value::List(list) = value {
        found.extend(list.items().iter().map(identity));
    }
    found
}

fn elements(value: &Value) -> Vec<u32> {
    numbers(value).iter().map(|x| x.to_bits()).collect()
}

fn numbers(value: &Value) -> Vec<f32> {
    match value {
        Value::Tensor(t) => t.to_vec::<f32>().unwrap_or_default(),
        _ => Vec::new(),
    }
}
