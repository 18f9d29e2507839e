//! Random programs of numbers, lists and control flow: compiled loops give what the interpreter gives, raises and limits
//! included.

use flambeau::backends;
use flambeau::diag::Source;
use flambeau::dialects::{Limits, Registry, Run};
use flambeau::frontend::script::compile_source;
use flambeau::passes::Pipeline;
use flambeau::runtime::Program;
use flambeau::toolkit::Toolkit;
use flambeau::value::{List, Value};
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

/// Random programs.
const PROGRAMS: u64 = 60;

/// The trials.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("scalars::random_programs_agree", random_programs),
        Trial::test("scalars::limits_end_compiled_loops", limits),
        Trial::test("scalars::hot_loops_are_compiled", hot),
    ]
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }

    fn of<'a>(&mut self, words: &[&'a str]) -> &'a str {
        words[self.below(words.len())]
    }
}

/// An expression of ints; loops that are open give it their indices.
fn int(r: &mut Random, indices: &[String], depth: usize) -> String {
    if depth == 0 || r.below(3) == 0 {
        let known = ["a", "b", "n", "len(xs)", "1", "2", "-3", "7"];
        return match r.below(3) {
            0 if !indices.is_empty() => indices[r.below(indices.len())].clone(),
            1 => place(r, indices, "xs", 0),
            _ => r.of(&known).to_string(),
        };
    }
    let (x, y) = (int(r, indices, depth - 1), int(r, indices, depth - 1));
    match r.below(8) {
        0 => format!("min({x}, {y})"),
        1 => format!("int({})", float(r, indices, depth - 1)),
        2 => format!("({x} // {})", divisor(r, y)),
        3 => format!("({x} % {})", divisor(r, y)),
        _ => format!("({x} {} {y})", r.of(&["+", "-", "*", "&", "|", "^"])),
    }
}

/// An element of a list; now and then one that is not there.
fn place(r: &mut Random, indices: &[String], list: &str, depth: usize) -> String {
    let index = int(r, indices, depth);
    if r.below(12) == 0 { format!("{list}[{index}]") } else { format!("{list}[abs({index}) % len({list})]") }
}

/// A number to divide by; now and then one that is 0.
fn divisor(r: &mut Random, number: String) -> String {
    if r.below(12) == 0 { number } else { r.of(&["3", "-5", "(abs(b) + 1)"]).to_string() }
}

fn float(r: &mut Random, indices: &[String], depth: usize) -> String {
    if depth == 0 || r.below(3) == 0 {
        return match r.below(3) {
            0 => format!("float({})", int(r, indices, 0)),
            1 => place(r, indices, "ys", 0),
            _ => r.of(&["f", "g", "0.5", "1e3", "-2.25"]).to_string(),
        };
    }
    let (x, y) = (float(r, indices, depth - 1), float(r, indices, depth - 1));
    match r.below(7) {
        0 => format!("math.sqrt(abs({x}))"),
        1 => format!("max({x}, {y})"),
        2 => format!("math.sin({x})"),
        3 => format!("({x} / ({y} + 3.0))"),
        _ => format!("({x} {} {y})", r.of(&["+", "-", "*"])),
    }
}

fn truth(r: &mut Random, indices: &[String]) -> String {
    let how = r.of(&["<", "<=", ">", ">=", "==", "!="]);
    match r.below(4) {
        0 => format!("{} {how} {}", float(r, indices, 1), float(r, indices, 1)),
        1 => format!("{} {how} {} and not p", int(r, indices, 1), int(r, indices, 1)),
        2 => format!("p or {} {how} {}", int(r, indices, 1), int(r, indices, 1)),
        _ => format!("{} {how} {}", int(r, indices, 1), int(r, indices, 1)),
    }
}

fn statements(r: &mut Random, out: &mut String, indices: &mut Vec<String>, depth: usize) {
    let pad = "    ".repeat(indices.len() + depth + 1);
    for _ in 0..1 + r.below(4) {
        let _ = match r.below(14) {
            0 | 1 => writeln!(out, "{pad}a = {}", int(r, indices, 2)),
            2 => writeln!(out, "{pad}b = {} % 1000", int(r, indices, 2)),
            3 => writeln!(out, "{pad}f = {}", float(r, indices, 2)),
            4 => writeln!(out, "{pad}g = {}", float(r, indices, 2)),
            5 => writeln!(out, "{pad}p = {}", truth(r, indices)),
            6 => writeln!(out, "{pad}{} = {}", place(r, indices, "xs", 1), int(r, indices, 1)),
            7 => writeln!(out, "{pad}{} = {}", place(r, indices, "ys", 0), float(r, indices, 1)),
            8 => writeln!(out, "{pad}if len(xs) < 200:\n{pad}    xs.append({})", int(r, indices, 1)),
            9 if !indices.is_empty() => {
                writeln!(out, "{pad}if {}:\n{pad}    {}", truth(r, indices), r.of(&["break", "continue"]))
            }
            10 if r.below(4) == 0 => writeln!(
                out,
                "{pad}if {}:\n{pad}    raise ValueError(\"at {{}}\".format(a))",
                truth(r, indices)
            ),
            11 if depth < 2 => {
                let _ = writeln!(out, "{pad}if {}:", truth(r, indices));
                statements(r, out, indices, depth + 1);
                Ok(())
            }
            _ if indices.len() + depth < 3 => {
                let index = format!("i{}", indices.len());
                let _ = writeln!(
                    out,
                    "{pad}for {index} in range({}):",
                    r.of(&["n", "5", "2, n", "n, 0, -2", "len(xs)"])
                );
                indices.push(index);
                statements(r, out, indices, depth);
                indices.pop();
                Ok(())
            }
            _ => writeln!(out, "{pad}a = a + 1"),
        };
    }
}

fn source(seed: u64) -> String {
    let mut r = Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(5));
    let mut out =
        "def f(n: int, a: int, f: float, p: bool, xs: List[int], ys: List[float]):\n    b = 3\n    g = 1.5\n"
            .to_string();
    let _ = writeln!(out, "    for k in range({}):", r.of(&["n", "6", "n - 2"]));
    statements(&mut r, &mut out, &mut vec!["k".to_string()], 0);
    out.push_str("    return a, b, f, g, p, xs, ys\n");
    out
}

/// What a run gives, or raises and where; then the lists that it was given.
fn outcome(program: &Program, n: i64) -> String {
    let ints = List::new(flambeau::ir::Type::int(), [3, 1, 4, 1, 5, 9].map(Value::Int).into());
    let floats = List::new(flambeau::ir::Type::float(), [0.5, -1.25, 3.0].map(Value::Float).into());
    let lists = [Value::List(ints), Value::List(floats)];
    let arguments = [Value::Int(n), Value::Int(2), Value::Float(0.75), Value::Bool(false)];
    let arguments: Vec<Value> = arguments.into_iter().chain(lists.iter().cloned()).collect();
    let limits = Limits { steps: Some(3_000_000), ..Limits::default() };
    let run = Run::with_limits(Box::new(std::io::sink()), limits);
    let result = match program.run("f", arguments, &run) {
        Ok(value) => value.to_text(),
        Err(error) if error.message().contains("steps") => return "limit".into(),
        Err(error) => {
            format!("{} at {:?}", error.message(), error.report().span.as_ref().map(|s| s.line_column()))
        }
    };
    format!("{result} {} {}", lists[0].to_text(), lists[1].to_text())
}

fn random_programs() -> Result<(), Failed> {
    let toolkit = Toolkit::default();
    let (mut compared, mut done) = (0, 0);
    for seed in 0..PROGRAMS {
        let text = source(seed);
        let module = compile_source(&Registry::builtin(), &Source::new("t.py", text.as_str()))
            .map_err(|error| format!("{error}\n{text}"))?;
        let interp = backends::by_name("interp").map_err(|e| e.to_string())?;
        let plain = Program::with(module, None, Registry::builtin()).on(interp);
        let lowered = plain.transformed(|module, registry| toolkit_pass(&toolkit, module, registry))?;
        let engines = [Some(lowered.clone()), backends::by_name("llvm").ok().map(|llvm| lowered.on(llvm))];
        for n in [0, 1, 9] {
            let expected = outcome(&plain, n);
            for engine in engines.iter().flatten() {
                let given = outcome(engine, n);
                if given != expected {
                    return Err(format!("seed {seed}, n = {n}:\n{expected}\n{given}\n{text}").into());
                }
                compared += 1;
            }
        }
        done += engines.iter().flatten().map(|p| p.fusion_report().loops.done).sum::<u64>();
    }
    // Most programs raise early or go beyond a list; enough of them run to their end in a kernel.
    if done * 8 < compared {
        return Err(format!("{done} of {compared} runs were compiled").into());
    }
    Ok(())
}

fn toolkit_pass(
    toolkit: &Toolkit,
    module: &mut flambeau::ir::Module,
    registry: &Registry,
) -> flambeau::diag::Result<()> {
    let pipeline = Pipeline::parse("inline,lower-scalars", toolkit.passes())?;
    pipeline.run(module, registry).map(|_| ())
}

fn planned(text: &str) -> Result<Program, Failed> {
    let module =
        compile_source(&Registry::builtin(), &Source::new("t.py", text)).map_err(|e| e.to_string())?;
    Ok(Program::with(module, None, Registry::builtin()))
}

/// Loops that do not end are ended by every limit, compiled or not, with the limit's name.
fn limits() -> Result<(), Failed> {
    let program = planned(
        "def f(n: int) -> int:\n    k = 0\n    while k >= 0:\n        k = (k + n) % 1000003\n    return k\n",
    )?;
    let seconds = std::time::Duration::from_millis(300);
    let cases = [
        (Limits { time: Some(seconds), ..Limits::default() }, "time limit of 0.3 s"),
        (Limits { steps: Some(50_000_000), ..Limits::default() }, "limit of 50000000 steps"),
    ];
    for (limits, name) in cases {
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        let error = program.run("f", vec![Value::Int(7)], &run).err().ok_or("it does not end")?;
        let line = error.report().span.as_ref().map(|span| span.line_column().0);
        if !error.message().contains(name) || !matches!(line, Some(2..=4)) {
            return Err(format!("{error} at {line:?}").into());
        }
    }
    match program.fusion_report().loops.compiled {
        1 => Ok(()),
        n if cfg!(feature = "llvm") => Err(format!("{n} loops were compiled").into()),
        _ => Ok(()),
    }
}

/// A loop that works long is compiled while it runs; one that does not is not.
fn hot() -> Result<(), Failed> {
    let text =
        "def f(n: int) -> int:\n    s = 0\n    for i in range(n):\n        s = s + i * i % 7\n    return s\n";
    let program = planned(text)?;
    let run = |n: i64| program.run("f", vec![Value::Int(n)], &Run::silent()).map_err(|e| e.to_string());
    let expected = |n: i64| (0..n).map(|i| i * i % 7).sum::<i64>().to_string();
    for (n, compiled) in [(100, 0), (1_000_000, 1), (1000, 1)] {
        let answer = run(n)?.to_text();
        let report = program.fusion_report().loops;
        let wanted = if cfg!(feature = "llvm") { compiled } else { 0 };
        if answer != expected(n) || report.compiled != wanted || !report.left.is_empty() {
            return Err(format!("{n}: {answer}, {report:?}").into());
        }
    }
    Ok(())
}
