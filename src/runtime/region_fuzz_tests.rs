//! Random differentiable programs of branches, loops, lists, dictionaries and writes: gradients by plan are those of the tape, and
//! both are what differences say.
//!
//! By hand, many more:
//!
//!     FLAMBEAU_FUZZ_PROGRAMS=10000 FLAMBEAU_FUZZ_SEED=7 cargo test --lib random_programs_of_regions -- --nocapture

use super::recording_tests::{floats, program, run, wanted};
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::Value;

/// Programs, where the environment does not say.
const PROGRAMS: u64 = 25;
/// Numbers that programs are called with.
const NUMBERS: [i64; 3] = [0, 2, 5];

struct Random(u64);

impl Random {
    fn below(&mut self, count: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((x ^ (x >> 31)) % count as u64) as usize
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

/// Writes a program over `a`, `b` and `c` (3, 4), a list, a dictionary and counters.
struct Writer {
    random: Random,
    text: String,
    /// Statements that may still come.
    left: usize,
    /// Counters of the loops around, and whether a loop is one that ends by its number of iterations.
    counters: Vec<String>,
    names: usize,
}

impl Writer {
    fn program(seed: u64) -> String {
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let left = 4 + random.below(12);
        let mut writer = Writer { random, text: String::new(), left, counters: vec!["k".into()], names: 0 };
        while writer.left > 0 {
            writer.statement(1);
        }
        let end = writer.random.pick(&[
            "(a * b).sum() + c.sum()",
            "torch.stack(outs).sin().sum() + (a + c).sum()",
            "torch.cat(outs).sum() * 0.5 + d['p'].sum() + (b * c).mean()",
            "outs[0].sum() + outs[-1].mean() + d['q'].sum() + a.sum()",
        ]);
        format!(
            "def f(x: Tensor, w: Tensor, v: Tensor, k: int):\n    a = x * v\n    b = torch.tanh(x.mm(w))\n    c = x + v\n    \
             outs = [a, c]\n    d = {{'p': b, 'q': a}}\n{}    return {end}\n",
            writer.text
        )
    }

    fn line(&mut self, depth: usize, line: &str) {
        self.text.push_str(&"    ".repeat(depth));
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn tensor(&mut self) -> &'static str {
        self.random.pick(&["a", "b", "c"])
    }

    fn counter(&mut self) -> String {
        let n = self.random.below(self.counters.len());
        self.counters[n].clone()
    }

    /// A tensor of (3, 4).
    fn value(&mut self) -> String {
        let (x, y, n) = (self.tensor(), self.tensor(), self.counter());
        match self.random.below(13) {
            0 => format!("torch.tanh({x}.mm(w))"),
            1 => format!("{x} * {y}.sigmoid()"),
            2 => format!("{x} - {y} * 0.5"),
            3 => format!("torch.sin({x}) + v"),
            4 => format!("torch.tanh({x}.mm(w.t()) + {y})"),
            5 => format!("outs[{n} % len(outs)] * 0.7"),
            6 => "outs[-1].cos()".to_string(),
            7 => "d['p'].tanh() + d['q'] * 0.3".to_string(),
            8 => format!("torch.softmax({x}, 1) * {y}"),
            9 => format!("({x} * {x}).mean(0) + {y}"),
            10 => format!("torch.stack(outs).mean(0) + {x}"),
            11 => format!("{x}.t().mm({y}).tanh().mm(w)[:3] * 0.5"),
            _ => format!("torch.cat([{x}[1:], {y}[:1]]).sigmoid()"),
        }
    }

    fn condition(&mut self) -> String {
        let (x, n) = (self.tensor(), self.counter());
        match self.random.below(5) {
            0 => format!("{n} % 2 == 0"),
            1 => format!("k > {}", 1 + self.random.below(4)),
            2 => format!("bool({x}.sum() > 0.3)"),
            3 => "len(outs) > 3".to_string(),
            _ => format!("{n} > 1"),
        }
    }

    fn block(&mut self, depth: usize) {
        let count = 1 + self.random.below(3);
        for _ in 0..count {
            self.statement(depth);
        }
    }

    fn statement(&mut self, depth: usize) {
        self.left = self.left.saturating_sub(1);
        let is_deep = depth > 4 || self.left == 0;
        match self.random.below(if is_deep { 9 } else { 14 }) {
            0 | 1 => {
                let (x, value) = (self.tensor(), self.value());
                self.line(depth, &format!("{x} = {value}"));
            }
            2 => self.list(depth),
            3 => {
                let (key, value) = (self.random.pick(&["p", "q"]), self.value());
                self.line(depth, &format!("d['{key}'] = {value}"));
            }
            4 | 5 => self.write(depth),
            6 => {
                let (x, y, value) = (self.tensor(), self.tensor(), self.value());
                self.line(depth, &format!("{x}, {y} = {y}, {value}"));
            }
            // Differences say nothing of what is detached: few programs have that.
            7 => {
                let (x, is_rare) = (self.tensor(), self.random.below(4) == 0);
                let other = if is_rare { format!("{x}.detach()") } else { format!("{x} * 0.9") };
                self.line(depth, &format!("{x} = {other} if k == 2 else {x}"));
            }
            8 => self.list(depth),
            9 | 10 => self.branch(depth),
            _ => self.counted_loop(depth),
        }
    }

    fn list(&mut self, depth: usize) {
        let (x, value, n) = (self.tensor(), self.value(), self.counter());
        let line = match self.random.below(9) {
            0 | 1 => format!("outs.append({value})"),
            7 => format!("{x} = outs.pop({n} % len(outs)) if len(outs) > 2 else {x} * 1.5"),
            8 => "outs.reverse()".to_string(),
            2 => format!("outs += [{value}, {x}]"),
            3 => format!("outs.insert({}, {value})", self.random.below(3)),
            4 => format!("outs[{n} % len(outs)] = {value}"),
            5 => format!("outs = outs[1:] + [{value}]"),
            _ => format!("outs = outs[:3] + [{x}]"),
        };
        self.line(depth, &line);
    }

    fn write(&mut self, depth: usize) {
        let (x, y, n) = (self.tensor(), self.tensor(), self.counter());
        // What is written without may be in a list, or be another variable, too.
        if self.random.below(4) > 0 {
            self.line(depth, &format!("{x} = {x}.clone()"));
        }
        let line = match self.random.below(9) {
            0 => format!("{x}[{n} % 3] = {y}[({n} + 1) % 3] * 0.5"),
            1 => format!("{x}[:, 1:3] += v[:2]"),
            2 => format!("{x}.mul_({y}.sigmoid())"),
            3 => format!("{x}.t()[{n} % 4].copy_(w[0, :3])"),
            4 => format!("{x}[0, {n} % 4] = 0.25"),
            5 => format!("{x}.view(2, 6)[1].fill_(0.1)"),
            6 => format!("{x}.masked_fill_({y} > 0.4, 0.2)"),
            7 => format!("{x}[1:].add_(v[:2].sum(), alpha=0.3)"),
            _ => format!("{x}.diagonal().sub_(v[:3])"),
        };
        self.line(depth, &line);
    }

    fn branch(&mut self, depth: usize) {
        let condition = self.condition();
        self.line(depth, &format!("if {condition}:"));
        self.block(depth + 1);
        if self.random.below(2) == 0 {
            self.line(depth, "else:");
            self.block(depth + 1);
        }
    }

    fn counted_loop(&mut self, depth: usize) {
        self.names += 1;
        let name = format!("i{}", self.names);
        let is_for = self.random.below(2) == 0;
        let bound = self.random.pick(&["k", "3", "k - 1", "min(k, 2)", "2"]);
        if is_for {
            self.line(depth, &format!("for {name} in range({bound}):"));
        } else {
            let x = self.tensor();
            let also = self.random.pick(&["", " and len(outs) < 9"]);
            let also = if self.random.below(3) == 0 {
                format!(" and bool({x}.abs().sum() < 30.0)")
            } else {
                also.into()
            };
            self.line(depth, &format!("{name} = 0"));
            self.line(depth, &format!("while {name} < {bound}{also}:"));
        }
        self.counters.push(name.clone());
        if !is_for {
            self.line(depth + 1, &format!("{name} += 1"));
        }
        self.block(depth + 1);
        if self.random.below(4) == 0 {
            let condition = self.condition();
            self.line(depth + 1, &format!("if {condition}:"));
            let leave = self.random.pick(&["break", "continue"]);
            self.line(depth + 2, leave);
            self.block(depth + 1);
        }
        self.counters.pop();
        // A counter that a loop may not set is not a variable after it.
        if is_for {
            self.line(depth, &format!("{name} = 0"));
        }
    }
}

/// The inputs `x`, `w` and `v`, moved along a direction.
fn inputs(step: f64) -> Vec<Tensor> {
    let moved = |sizes: &[i64], scale: f64, by: f64| {
        let values = floats(sizes, scale).to_vec::<f64>().expect("float64");
        let direction = direction(values.len(), by);
        let moved: Vec<f64> = values.iter().zip(direction).map(|(x, d)| x + 0.013 + step * d).collect();
        Tensor::from_vec(&moved, sizes).expect("small")
    };
    vec![moved(&[3, 4], 0.1, 0.7), moved(&[4, 4], 0.12, 1.3), moved(&[4], 0.2, 2.1)]
}

fn direction(len: usize, by: f64) -> Vec<f64> {
    (0..len).map(|n| (n as f64 * by + by).sin()).collect()
}

enum Outcome {
    /// The result, and the gradients by all inputs.
    Found(f64, Vec<Option<Vec<f64>>>),
    /// It raised, or its backward did.
    Raised(String),
}

fn call(program: &Program, k: i64, step: f64, records: bool) -> Outcome {
    let run = run(program);
    run.set_grad_enabled(records);
    let inputs = inputs(step);
    if records {
        inputs.iter().for_each(|input| input.set_requires_grad(true).expect("floats"));
    }
    let mut arguments: Vec<Value> = inputs.iter().map(|t| Value::Tensor(t.clone())).collect();
    arguments.push(Value::Int(k));
    let result = match program.run("f", arguments, &run) {
        Ok(result) => result.to_tensor().expect("a tensor").clone(),
        Err(error) => return Outcome::Raised(error.message().to_string()),
    };
    let value = result.detach().to_vec::<f64>().expect("float64")[0];
    if !result.requires_grad() {
        return Outcome::Found(value, vec![None; inputs.len()]);
    }
    let tape = crate::autodiff::Tape::of(program.registry());
    match tape.gradients(&wanted(vec![result], &inputs, false), &run) {
        Ok(found) => Outcome::Found(
            value,
            found.into_iter().map(|g| g.map(|g| g.to_vec::<f64>().expect("float64"))).collect(),
        ),
        Err(error) => Outcome::Raised(error.message().to_string()),
    }
}

/// The derivative along the direction by differences; None where these do not settle: a corner, or a step.
fn difference(program: &Program, k: i64) -> Option<f64> {
    let mut found: Vec<f64> = Vec::new();
    for step in [1e-5, 1e-6] {
        let at = |step: f64| match call(program, k, step, false) {
            Outcome::Found(value, _) => Some(value),
            Outcome::Raised(_) => None,
        };
        found.push((at(step)? - at(-step)?) / (2.0 * step));
    }
    ((found[0] - found[1]).abs() < 1e-4 * found[0].abs().max(1.0)).then_some(found[0])
}

#[derive(Default, Debug)]
struct Tally {
    compared: usize,
    raised: usize,
    differences: usize,
    corners: usize,
    unplanned: usize,
    calls: usize,
    /// Why calls had no plan.
    reasons: std::collections::BTreeMap<String, u64>,
}

/// What differs of a program, if anything does.
fn compare(text: &str, tally: &mut Tally) -> Option<String> {
    let (by_plan, by_tape) = (program(text, true), program(text, false));
    for k in NUMBERS {
        tally.calls += 1;
        let (plan, tape) = (call(&by_plan, k, 0.0, true), call(&by_tape, k, 0.0, true));
        let (value, gradients) = match (plan, tape) {
            // A plan knows no versions: it gives gradients where the tape says that something was written to meanwhile.
            (_, Outcome::Raised(why)) if why.contains("modified by an inplace operation") => {
                tally.raised += 1;
                continue;
            }
            (Outcome::Raised(plan), Outcome::Raised(tape)) => {
                if plan != tape {
                    return Some(format!("k = {k}: the plan raises {plan}, the tape {tape}"));
                }
                tally.raised += 1;
                continue;
            }
            (Outcome::Found(value, plan), Outcome::Found(other, tape)) => {
                if (value - other).abs() > 1e-9 * other.abs().max(1.0) {
                    return Some(format!("k = {k}: {value} by plan, {other} by tape"));
                }
                for (n, (plan, tape)) in plan.iter().zip(&tape).enumerate() {
                    if plan.is_some() != tape.is_some() {
                        let (plan, tape) = (plan.is_some(), tape.is_some());
                        return Some(format!(
                            "k = {k}, input {n}: a gradient by plan {plan}, by tape {tape}"
                        ));
                    }
                    let pairs = plan.iter().flatten().zip(tape.iter().flatten());
                    for (a, b) in pairs {
                        if (a - b).abs() > 1e-9 * b.abs().max(1.0) {
                            return Some(format!("k = {k}, input {n}: {a} by plan, {b} by tape"));
                        }
                    }
                }
                tally.compared += 1;
                (value, tape)
            }
            (Outcome::Raised(why), Outcome::Found(..)) => {
                return Some(format!("k = {k}: the plan raises {why}"));
            }
            (Outcome::Found(..), Outcome::Raised(why)) => {
                return Some(format!("k = {k}: the tape raises {why}"));
            }
        };
        // What is detached is constant to the gradient and not to differences.
        if !value.is_finite() || value.abs() > 1e6 || text.contains("detach") {
            continue;
        }
        let Some(expected) = difference(&by_tape, k) else {
            tally.corners += 1;
            continue;
        };
        let mut along = 0.0;
        for (gradient, by) in gradients.iter().zip([0.7, 1.3, 2.1]) {
            let gradient = gradient.as_deref().unwrap_or_default();
            along += gradient.iter().zip(direction(gradient.len(), by)).map(|(g, d)| g * d).sum::<f64>();
        }
        if (along - expected).abs() > 1e-4 * expected.abs().max(1.0) {
            return Some(format!("k = {k}: {along} by the tape, {expected} by differences"));
        }
        tally.differences += 1;
    }
    let report = by_plan.plan_report();
    tally.unplanned += report.unplanned_calls() as usize;
    for (reason, count) in report.unplanned {
        *tally.reasons.entry(reason).or_default() += count;
    }
    None
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[test]
fn random_programs_of_regions_have_the_gradients_of_the_tape_and_of_differences() {
    let (count, seed) = (number("FLAMBEAU_FUZZ_PROGRAMS", PROGRAMS), number("FLAMBEAU_FUZZ_SEED", 1));
    let mut tally = Tally::default();
    let mut faults = Vec::new();
    for n in 0..count {
        let text = Writer::program(seed.wrapping_mul(1_000_003).wrapping_add(n));
        if let Some(fault) = compare(&text, &mut tally) {
            faults.push(format!("program {n}: {fault}\n{text}"));
        }
    }
    println!("{tally:#?}");
    let shown = faults[..faults.len().min(3)].join("\n");
    assert!(faults.is_empty(), "{} of {count} programs differ:\n{shown}", faults.len());
    // A generator that makes nothing of use would find nothing either.
    assert!(tally.compared * 2 > tally.calls && tally.differences * 5 > tally.calls, "{tally:?}");
    assert!(tally.unplanned * 2 < tally.calls, "{tally:?}");
}
