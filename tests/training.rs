//! Training beside PyTorch: recorded runs with each optimizer and schedule, checkpoints in both directions.
//! `tests/golden/training/record.py` recorded them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use flambeau::diag::Result;
use flambeau::dialects::Run;
use flambeau::tensor::Tensor;
use flambeau::tools::cli;
use flambeau::tools::io::Io;
use libtest_mimic::{Failed, Trial};
use serde_json::Value as Json;
use std::path::{Path, PathBuf};

/// How far numbers may be from PyTorch's after six steps.
const SLACK: f64 = 2e-6;
/// The same for L-BFGS, which divides differences of gradients by each other four times a step.
const SEARCHED: f64 = 1e-4;

pub fn trials() -> Vec<Trial> {
    let mut trials: Vec<Trial> = runs()
        .into_iter()
        .enumerate()
        .map(|(n, run)| {
            let what = ["optimizer", "schedule"].map(|key| run[key].as_str().unwrap_or_default().to_string());
            Trial::test(format!("training::{n}::{}", what.join(" ").trim()), move || beside(&run, n))
        })
        .collect();
    trials.push(Trial::test("training::from_pytorch", from_pytorch));
    trials.push(Trial::test("training::resumed", resumed));
    trials.push(Trial::test("training::buffers", buffers));
    trials.push(Trial::test("training::draws", draws));
    trials
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/training")
}

fn json(name: &str) -> Json {
    let text = std::fs::read_to_string(folder().join(name)).unwrap_or_default();
    serde_json::from_str(&text).unwrap_or_default()
}

fn runs() -> Vec<Json> {
    json("runs.json").as_array().cloned().unwrap_or_default()
}

/// Runs the command with the model and the data, and gives the lines that it prints.
fn train(words: &[&str]) -> std::result::Result<Vec<Json>, Failed> {
    train_model("model.pt", words)
}

fn train_model(model: &str, words: &[&str]) -> std::result::Result<Vec<Json>, Failed> {
    let (model, data) = (folder().join(model), folder().join("data.npz"));
    let mut all: Vec<std::ffi::OsString> = vec!["flambeau".into(), "train".into(), model.into()];
    all.extend(["--data".into(), data.into()]);
    let fixed = ["--loss", "cross_entropy", "--batch", "8", "--every", "1", "--json"];
    all.extend(fixed.iter().chain(words).map(std::ffi::OsString::from));
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let (toolkit, mut stdin) = (flambeau::toolkit::Toolkit::default(), std::io::empty());
    let status = cli::main_in(all, &mut Io::new(&toolkit, Path::new(""), &mut stdin, &mut out, &mut err));
    if status != 0 {
        return Err(format!("status {status}: {}", String::from_utf8_lossy(&err)).into());
    }
    let lines = String::from_utf8_lossy(&out);
    Ok(lines.lines().map(|line| serde_json::from_str(line).unwrap_or_default()).collect())
}

fn scratch(name: &str) -> PathBuf {
    crate::scratch::folder("training").join(name)
}

fn losses(lines: &[Json]) -> Vec<f64> {
    lines.iter().filter_map(|line| line["loss"].as_f64()).collect()
}

fn close(what: &str, expected: &[f64], found: &[f64], slack: f64) -> std::result::Result<(), Failed> {
    let same = |(e, f): (&f64, &f64)| (e - f).abs() <= slack * e.abs().max(1.0);
    if expected.len() != found.len() || !expected.iter().zip(found).all(same) {
        return Err(format!("{what}: PyTorch {expected:?}, here {found:?}").into());
    }
    Ok(())
}

/// The tensors of a saved model beside those that PyTorch had.
fn tensors(file: &Path, after: &Json, slack: f64) -> std::result::Result<(), Failed> {
    let load = || -> Result<Vec<(String, Tensor)>> {
        let program = flambeau::toolkit::Toolkit::default().load_file(file, &Run::silent())?;
        let mut all = flambeau::training::parameters(&program);
        all.extend(flambeau::training::buffers(&program));
        Ok(all)
    };
    let all = load().map_err(|e| e.to_string())?;
    let after = after.as_object().ok_or("no tensors were recorded")?;
    for (name, bits) in after {
        let (_, tensor) = all.iter().find(|(n, _)| n == name).ok_or_else(|| format!("there is no {name}"))?;
        let bytes = BASE64.decode(bits.as_str().unwrap_or_default()).map_err(|e| e.to_string())?;
        let float = |word: &[u8]| f32::from_le_bytes(word.try_into().unwrap_or_default());
        let expected: Vec<f64> = bytes.chunks_exact(4).map(|word| f64::from(float(word))).collect();
        let found = tensor.to_vec_as::<f64>().map_err(|e| e.to_string())?;
        close(name, &expected, &found, slack)?;
    }
    Ok(())
}

/// A whole run: losses, learning rates, and what it leaves.
fn beside(run: &Json, n: usize) -> std::result::Result<(), Failed> {
    let out = scratch(&format!("{n}.pt"));
    let (out_word, optimizer) = (out.display().to_string(), run["optimizer"].as_str().unwrap_or_default());
    let mut words = vec!["--steps", "6", "--out", &out_word, "--optimizer", optimizer];
    if let Some(schedule) = run["schedule"].as_str() {
        words.extend(["--schedule", schedule]);
    }
    let clip = run["clip"].to_string();
    if !run["clip"].is_null() {
        words.extend(["--clip-norm", &clip]);
    }
    if run["shuffle"] == Json::Bool(true) {
        words.push("--shuffle");
    }
    let lines = train(&words)?;
    let numbers = |key: &str| -> Vec<f64> {
        run[key].as_array().into_iter().flatten().filter_map(Json::as_f64).collect()
    };
    let slack = if optimizer.starts_with("lbfgs") { SEARCHED } else { SLACK };
    close("losses", &numbers("losses"), &losses(&lines), slack)?;
    let rates: Vec<f64> = lines.iter().filter_map(|line| line["rate"].as_f64()).collect();
    if rates != numbers("rates") {
        return Err(format!("rates: PyTorch {:?}, here {rates:?}", numbers("rates")).into());
    }
    tensors(&out, &run["after"], slack)
}

/// Goes on from a checkpoint of PyTorch, with groups and dropout.
fn from_pytorch() -> std::result::Result<(), Failed> {
    let (out, half) = (scratch("half.pt"), folder().join("half.ck"));
    let (out_word, half) = (out.display().to_string(), half.display().to_string());
    let groups = ["--optimizer", "adamw(lr=0.01)", "--group", "body.*(lr=0.02)"];
    let words = [&groups[..], &["--steps", "6", "--resume", &half, "--out", &out_word]].concat();
    let recorded = json("half.json");
    let expected: Vec<f64> =
        recorded["losses"].as_array().into_iter().flatten().filter_map(Json::as_f64).collect();
    close("losses", expected.get(3..).unwrap_or_default(), &losses(&train(&words)?), SLACK)?;
    tensors(&out, &recorded["after"], SLACK)
}

/// A run that is interrupted gives the bytes of one that is not.
fn resumed() -> std::result::Result<(), Failed> {
    let at = |name: &str| scratch(name).display().to_string();
    let (whole, parts, middle) = (at("whole.pt"), at("parts.pt"), at("middle.ck"));
    let common =
        ["--optimizer", "nadam(lr=0.01)", "--shuffle", "--schedule", "cosine(T_max=9)", "--seed", "5"];
    let run = |more: &[&str]| train(&[&common[..], more].concat());
    let first = losses(&run(&["--steps", "7", "--out", &whole])?);
    let mut second = losses(&run(&["--steps", "4", "--checkpoint", &middle])?);
    second.extend(losses(&run(&["--steps", "7", "--resume", &middle, "--out", &parts])?));
    if first != second {
        return Err(format!("whole {first:?}, in parts {second:?}").into());
    }
    let read = |file: &str| std::fs::read(file).map_err(|e| e.to_string());
    if read(&whole)? != read(&parts)? { Err("the saved models differ".into()) } else { Ok(()) }
}

/// A model that writes to its buffers in several ways.
fn buffers() -> std::result::Result<(), Failed> {
    by_one_plan("buffers")
}

/// A model that draws random numbers in several ways.
fn draws() -> std::result::Result<(), Failed> {
    by_one_plan("draws")
}

/// A model is trained by one plan as PyTorch trains it: losses, and what it leaves; op by op too.
fn by_one_plan(name: &str) -> std::result::Result<(), Failed> {
    let recorded = json(&format!("{name}.json"));
    let model = format!("{name}.pt");
    let expected: Vec<f64> =
        recorded["losses"].as_array().into_iter().flatten().filter_map(Json::as_f64).collect();
    for more in [&[][..], &["--no-plans"]] {
        let out = scratch(&model).display().to_string();
        let words = ["--optimizer", "sgd(lr=0.1, momentum=0.9)", "--steps", "3", "--out", &out];
        close("losses", &expected, &losses(&train_model(&model, &[&words, more].concat())?), SLACK)?;
        tensors(&scratch(&model), &recorded["after"], SLACK)?;
    }
    let toolkit = flambeau::toolkit::Toolkit::default();
    let call = || -> Result<flambeau::runtime::Program> {
        let run = Run::silent();
        run.set_grad_enabled(true);
        let program = toolkit.load_file(&folder().join(&model), &run)?;
        let inline = toolkit.parse_pipeline("inline")?;
        let program =
            program.transformed(|module, registry| inline.run(module, registry).map(|_| ()))?.planned();
        program.run("forward", vec![Tensor::zeros(flambeau::tensor::DType::F32, &[4, 5])?.into()], &run)?;
        Ok(program)
    };
    let program = call().map_err(|e| e.to_string())?;
    let report = program.plan_report();
    match (report.recording, report.unplanned.is_empty()) {
        (1, true) => Ok(()),
        other => Err(format!("no plan was recorded: {other:?} {:?}", report.unplanned).into()),
    }
}
