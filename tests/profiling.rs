//! What TorchScript's profiling executor does, as passes: types that calls leave in profiles, and answers of checks, beside
//! PyTorch's own; and recorded programs with guards, which must give the same whether guards hold or miss.

use flambeau::dialects::{Registry, Run};
use flambeau::passes::bailout_rest;
use flambeau::runtime::Program;
use flambeau::tensor::{DType, Scalar, Tensor, view};
use flambeau::toolkit::Toolkit;
use flambeau::tools::case::{self, Case};
use flambeau::tools::check_passes::normal_form;
use flambeau::tools::io::Io;
use flambeau::tools::{cli, profile};
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use std::fs;
use std::path::Path;

/// Every this many recorded programs, one is run with guards.
const EVERY: usize = 3;
/// So many guards of a program are forced to miss, one after the other.
const MISSES: usize = 6;

/// The trials.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("profiling::types_are_those_of_pytorch", types),
        Trial::test("profiling::checks_answer_as_in_pytorch", checks),
        Trial::test("profiling::guards_change_no_answer", guards),
        Trial::test("profiling::rests_take_what_bailouts_give", rests),
    ]
}

fn lines(file: &str) -> Result<Vec<Json>, Failed> {
    let text = fs::read_to_string(file).map_err(|e| format!("{file}: {e}"))?;
    text.lines()
        .map(|line| serde_json::from_str(line).map_err(|e| Failed::from(format!("{file}: {e}"))))
        .collect()
}

fn text<'a>(json: &'a Json, key: &str) -> Result<&'a str, Failed> {
    json[key].as_str().ok_or_else(|| format!("a line without '{key}'").into())
}

/// What a command prints. Fails where it does.
fn command(words: &[&str]) -> Result<String, Failed> {
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let toolkit = Toolkit::default();
    let words = ["flambeau"].iter().chain(words).map(|word| (*word).into());
    let mut stdin = std::io::empty();
    let status = cli::main_in(words, &mut Io::new(&toolkit, Path::new(""), &mut stdin, &mut out, &mut err));
    match status {
        0 => Ok(String::from_utf8_lossy(&out).into_owned()),
        status => Err(format!("status {status}: {}", String::from_utf8_lossy(&err)).into()),
    }
}

fn types() -> Result<(), Failed> {
    let folder = crate::scratch::folder("profiling");
    let mut wrong = Vec::new();
    for case in lines("tests/golden/profiles/calls.jsonl")? {
        let file = folder.join(format!("{}.ir", text(&case, "name")?));
        fs::write(&file, text(&case, "graph")?).map_err(|e| e.to_string())?;
        let calls: Vec<&str> =
            case["calls"].as_array().into_iter().flatten().filter_map(Json::as_str).collect();
        let Some((first, others)) = calls.split_first() else { return Err("a case without calls".into()) };
        let file = file.to_string_lossy().into_owned();
        let mut words = vec!["profile", file.as_str(), "--passes", "profile", "--input", first];
        others.iter().for_each(|call| words.extend(["--again", *call]));
        let (found, wanted) = (normal_form(&command(&words)?), normal_form(text(&case, "profiled")?));
        if found != wanted {
            wrong.push(format!("{}:\n{found}not\n{wanted}", text(&case, "name")?));
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// A tensor of the recorder, by its name there.
fn tensor(name: &str) -> Result<Tensor, Failed> {
    let ones = |dtype: DType, sizes: &[i64]| {
        Tensor::full(dtype, sizes, Scalar::Int(1)).map_err(|e| Failed::from(e.to_string()))
    };
    match name {
        "float32[2,3]" => ones(DType::F32, &[2, 3]),
        "float32[5,3]" => ones(DType::F32, &[5, 3]),
        "float32[3]" => ones(DType::F32, &[3]),
        "float64[2,3]" => ones(DType::F64, &[2, 3]),
        "bool[2,3]" => ones(DType::Bool, &[2, 3]),
        "turned" => {
            let tensor = ones(DType::F32, &[3, 2])?;
            let turned = view::transpose(&tensor.layout(), 0, 1).map_err(|e| e.to_string())?;
            tensor.with_layout(turned).map_err(|e| e.to_string().into())
        }
        "requires_grad" => {
            let tensor = ones(DType::F32, &[2, 3])?;
            tensor.set_requires_grad(true).map_err(|e| e.to_string())?;
            Ok(tensor)
        }
        other => Err(format!("no tensor is called {other}").into()),
    }
}

fn checks() -> Result<(), Failed> {
    let registry = Registry::builtin();
    let mut wrong = Vec::new();
    for case in lines("tests/golden/profiles/checks.jsonl")? {
        let graph = flambeau::ir::parse_graph(text(&case, "graph")?).map_err(|e| format!("{e:?}"))?;
        for (name, answer) in case["answers"].as_object().into_iter().flatten() {
            let run = Run::silent();
            run.set_grad_enabled(!name.ends_with(" no_grad"));
            let value = Value::Tensor(tensor(name.trim_end_matches(" no_grad"))?);
            let results = flambeau::runtime::run_graph(&registry, &graph, vec![value], &run)
                .map_err(|e| e.to_string())?;
            let found =
                results.first().and_then(|tuple| tuple.to_tuple().ok()?.items().get(1)?.to_bool().ok());
            if found != answer.as_bool() {
                wrong.push(format!(
                    "{} of {} for {name} gives {found:?}",
                    text(&case, "op")?,
                    text(&case, "type")?
                ));
            }
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(wrong.join("\n").into()) }
}

/// The answer of a call, or its error.
fn outcome(program: &Program, case: &Case) -> Result<String, String> {
    let arguments = case.args.iter().map(case::decode).collect::<flambeau::diag::Result<Vec<Value>>>();
    let run = Run::silent();
    run.set_grad_enabled(false);
    let answer = program.run(&case.entry, arguments.map_err(|e| e.to_string())?, &run);
    answer.map(|value| value.to_text()).map_err(|e| e.message().to_string())
}

fn passed(program: &Program, passes: &str) -> Result<Program, Failed> {
    let pipeline = Toolkit::default().parse_pipeline(passes).map_err(|e| e.to_string())?;
    program
        .transformed(|module, registry| pipeline.run(module, registry).map(|_| ()))
        .map_err(|e| e.to_string().into())
}

/// The program with the types that a call leaves written into its entry.
fn profiled(program: &Program, case: &Case) -> Result<Program, Failed> {
    let arguments = case.args.iter().map(case::decode).collect::<flambeau::diag::Result<Vec<Value>>>();
    let run = Run::silent();
    run.set_grad_enabled(false);
    let seen = profile::profiles(program, &case.entry, vec![arguments.map_err(|e| e.to_string())?], &run);
    let seen = seen.map_err(|e| e.to_string())?;
    program
        .transformed(|module, _| {
            let name = program.function(&case.entry).map(|function| function.name);
            for (symbol, function) in &mut module.functions {
                if let Some(original) =
                    program.module().functions.get(symbol).filter(|_| Some(*symbol) == name)
                {
                    seen.write(&mut function.graph, &original.graph);
                }
            }
            Ok(())
        })
        .map_err(|e| e.to_string().into())
}

fn guards() -> Result<(), Failed> {
    let toolkit = Toolkit::default();
    let cases = Case::read_all(Path::new("tests/golden/programs.jsonl")).map_err(|e| e.to_string())?;
    let (mut wrong, mut guarded, mut missed) = (Vec::new(), 0, 0);
    for case in cases.iter().step_by(EVERY) {
        if case.source.is_none()
            || case.differentiates
            || case.how.as_deref().is_some_and(|how| how != "source")
        {
            continue;
        }
        let source = case.source.clone().unwrap_or_default();
        let Ok(plain) = toolkit.load_source("<string>", &source) else { continue };
        let expected = outcome(&plain, case);
        // What draws numbers, or prints addresses, differs from call to call.
        if expected.is_err() || outcome(&plain, case) != expected {
            continue;
        }
        let seen = profiled(&passed(&plain, "inline,profile")?, case)?;
        let text = "insert-guards,eliminate-redundant-guards,insert-bailouts";
        let with_guards = passed(&seen, text)?;
        let count = bailouts(&with_guards, case);
        guarded += usize::from(count > 0);
        let mut compare = |program: &Program, what: &str| {
            let found = outcome(program, case);
            if found != expected {
                wrong.push(format!("{} {what}: {found:?}\nnot {expected:?}", case.name));
            }
        };
        compare(&with_guards, "with guards");
        for n in (0..count).step_by((count / MISSES).max(1)) {
            let pipeline = text.replace("insert-bailouts", &format!("insert-bailouts{{fail={n}}}"));
            compare(&passed(&seen, &pipeline)?, &format!("whose guard {n} misses"));
            missed += 1;
        }
    }
    if !wrong.is_empty() {
        return Err(wrong.join("\n").into());
    }
    if guarded < 20 || missed < 60 {
        return Err(format!("only {guarded} programs have guards, {missed} of which missed").into());
    }
    Ok(())
}

/// How many ways out the entry of a program has.
fn bailouts(program: &Program, case: &Case) -> usize {
    let graph = program.function(&case.entry).map(|function| &function.graph);
    graph.map_or(0, |graph| {
        graph.all_ops().into_iter().filter(|op| graph.kind(*op) == "prim::BailOut").count()
    })
}

/// A template that lacks the place, or that takes less than is used, is refused and not run.
fn rests() -> Result<(), Failed> {
    let template = "graph(%x : Tensor, %y : Tensor):\n  %g : Float(2) = prim::BailOut[index=0](%x)\n  %z : Tensor = aten::mul(%g, %y)\n  return (%z)\n";
    let graph = flambeau::ir::parse_graph(template).map_err(|e| format!("{e:?}"))?;
    match bailout_rest(&graph, 0).map(drop) {
        Err(error) if error.message().contains("does not take %y") => {}
        other => return Err(format!("a value that is not taken: {other:?}").into()),
    }
    match bailout_rest(&graph, 1).map(drop) {
        Err(error) if error.message().contains("no bailout 1") => Ok(()),
        other => Err(format!("a place that is not there: {other:?}").into()),
    }
}
