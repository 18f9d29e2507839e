//! Gradients and training runs of recorded cases: computes what a case asks for and compares it.

use super::case::{Case, compare, decode, encode, tolerance};
use crate::autodiff::Optimizer;
use crate::backends::FusionReport;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Gradients, Run};
use crate::ir::Symbol;
use crate::runtime::{PlanReport, Program};
use crate::tensor::{DType, Tensor};
use crate::training::{Loss, Trainer};
use crate::value::Value;
use serde_json::{Value as Json, json};

/// What a case's program gave besides its answer.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// The gradients.
    pub(super) grads: Option<Vec<Option<Tensor>>>,
    /// Those of their weighted sum.
    pub(super) second: Option<Vec<Option<Tensor>>>,
    losses: Option<Vec<f64>>,
    /// What became of groups and plans in training.
    pub(super) reports: Option<(FusionReport, PlanReport)>,
    parameters: Vec<(String, Tensor)>,
    buffers: Vec<(String, Tensor)>,
}

/// Makes what a case differentiates by require gradients, and gives it.
pub fn prepare(case: &Case, program: &Program, args: &[Value]) -> Result<Vec<Tensor>> {
    let Some(backward) = &case.backward else { return Ok(Vec::new()) };
    backward
        .wrt
        .iter()
        .map(|name| {
            let tensor = find(name, program, args)?;
            tensor.set_requires_grad(true)?;
            Ok(tensor)
        })
        .collect()
}

/// `args[0]`, `args[1][2]`, `args[0]['key']`, or the name of a parameter.
fn find(name: &str, program: &Program, args: &[Value]) -> Result<Tensor> {
    let missing = || Diagnostic::input(format!("there is no tensor '{name}' to differentiate by"));
    let found = match name.strip_prefix("args") {
        Some(path) if path.starts_with('[') => {
            let mut steps = path.split('[').skip(1).map(|step| step.trim_end_matches(']'));
            let first = steps.next().and_then(|n| n.parse::<usize>().ok()).ok_or_else(missing)?;
            let mut value = args.get(first).cloned().ok_or_else(missing)?;
            for step in steps {
                value = part(&value, step).ok_or_else(missing)?;
            }
            value
        }
        _ => {
            let mut value = program.instance().cloned().map(Value::Object).ok_or_else(missing)?;
            for step in name.split('.') {
                value = match &value {
                    Value::Object(object) => object.get(Symbol::new(step)).ok_or_else(missing)?,
                    other => part(other, step).ok_or_else(missing)?,
                };
            }
            value
        }
    };
    match found {
        Value::Tensor(t) => Ok(t),
        _ => Err(missing()),
    }
}

fn part(value: &Value, step: &str) -> Option<Value> {
    match value {
        Value::List(list) => list.items().get(step.parse::<usize>().ok()?).cloned(),
        Value::Tuple(tuple) => tuple.items().get(step.parse::<usize>().ok()?).cloned(),
        Value::Dict(dict) => {
            let key = step.trim_matches(['\'', '"']);
            dict.get(&Value::str(key.to_string())).ok().flatten()
        }
        _ => None,
    }
}

/// The tensors of an answer that require gradients, in order.
pub(super) fn differentiable(value: &Value, out: &mut Vec<Tensor>) {
    match value {
        Value::Tensor(t) if t.requires_grad() => out.push(t.clone()),
        Value::List(list) => list.to_vec().iter().for_each(|item| differentiable(item, out)),
        Value::Tuple(tuple) => tuple.items().iter().for_each(|item| differentiable(item, out)),
        Value::Dict(dict) => dict.entries().iter().for_each(|(_, item)| differentiable(item, out)),
        _ => {}
    }
}

fn tensors(items: &[Json]) -> Result<Vec<Option<Tensor>>> {
    items
        .iter()
        .map(|item| match decode(item)? {
            Value::Tensor(t) => Ok(Some(t)),
            _ => Ok(None),
        })
        .collect()
}

/// Computes the gradients that a case asks for.
pub fn backward(
    case: &Case,
    program: &Program,
    answer: &Value,
    wrt: &[Tensor],
    run: &Run,
) -> Result<Learned> {
    let mut learned = Learned { buffers: buffers(case, program), ..Learned::default() };
    let Some(backward) = &case.backward else { return Ok(learned) };
    let Some(autograd) = run.autograd() else { return Ok(learned) };
    let mut outputs = Vec::new();
    differentiable(answer, &mut outputs);
    let cotangents = tensors(&backward.cotangents)?;
    if cotangents.len() != outputs.len() {
        return Err(Diagnostic::runtime(format!(
            "{} tensors of the answer require gradients, not {}",
            outputs.len(),
            cotangents.len()
        )));
    }
    let second = backward.second.is_some();
    let gradients = |outputs: Vec<Tensor>, cotangents, again| {
        let inputs = Some(wrt.to_vec());
        let wanted =
            Gradients { outputs, cotangents, inputs, keep: again, create: again, allow_unused: true };
        autograd.gradients(&wanted, run)
    };
    let grads =
        if outputs.is_empty() { vec![None; wrt.len()] } else { gradients(outputs, cotangents, second)? };
    learned.grads = Some(grads.clone());
    if let Some((cotangents, _)) = &backward.second {
        let weights = tensors(cotangents)?;
        let pairs = grads.iter().flatten().cloned().zip(pick(&grads, weights));
        let pairs: Vec<(Tensor, Option<Tensor>)> =
            pairs.filter(|(g, weight)| g.requires_grad() && weight.is_some()).collect();
        let (outputs, cotangents): (Vec<Tensor>, Vec<Option<Tensor>>) = pairs.into_iter().unzip();
        learned.second = Some(if outputs.is_empty() {
            vec![None; wrt.len()]
        } else {
            gradients(outputs, cotangents, false)?
        });
    }
    Ok(learned)
}

/// The weights of those gradients that there are.
fn pick(grads: &[Option<Tensor>], weights: Vec<Option<Tensor>>) -> Vec<Option<Tensor>> {
    grads.iter().zip(weights).filter(|(g, _)| g.is_some()).map(|(_, weight)| weight).collect()
}

fn buffers(case: &Case, program: &Program) -> Vec<(String, Tensor)> {
    let names = case.buffers_after.iter().flatten().map(|(name, _)| name);
    named(names, program)
}

fn named<'a>(names: impl Iterator<Item = &'a String>, program: &Program) -> Vec<(String, Tensor)> {
    names.filter_map(|name| Some((name.clone(), find(name, program, &[]).ok()?))).collect()
}

/// A training run that a case asks for: the trainer with the arguments of each batch.
pub fn trainer(case: &Case, program: &Program) -> Result<(Trainer, Vec<Vec<Value>>)> {
    let bad = |what: &str| Diagnostic::input(format!("'train' needs {what}"));
    let train = case.train.as_ref().ok_or_else(|| bad("to be there"))?;
    let field = |name: &str| train.get(name).ok_or_else(|| bad(&format!("'{name}'")));
    let options = field("options")?.as_object().ok_or_else(|| bad("options by name"))?;
    let options: Vec<(String, Value)> = options.iter().map(|(name, v)| (name.clone(), option(v))).collect();
    let name = field("optimizer")?.as_str().ok_or_else(|| bad("the optimizer's name"))?;
    let batches = field("batches")?.as_array().filter(|b| !b.is_empty()).ok_or_else(|| bad("batches"))?;
    let batch = |batch: &Json| {
        let values = batch.as_array().ok_or_else(|| bad("batches of arguments"))?;
        values.iter().map(decode).collect::<Result<Vec<Value>>>()
    };
    let batches = batches.iter().map(batch).collect::<Result<Vec<_>>>()?;
    let optimizer = Optimizer::new(name, &options)?;
    Ok((Trainer::new(program.clone(), &case.entry, Loss::answer(), optimizer)?, batches))
}

/// Runs the training that a case asks for: `steps` times the loss of a batch, its gradients, and the optimizer.
pub fn train(case: &Case, program: &Program, run: &Run) -> Result<Learned> {
    let (mut trainer, batches) = trainer(case, program)?;
    let train = case.train.clone().unwrap_or_default();
    let steps = train.get("steps").and_then(Json::as_u64);
    let steps = steps.ok_or_else(|| Diagnostic::input("'train' needs a number of 'steps'"))?;
    let mut losses = Vec::new();
    for (_, batch) in (0..steps).zip(batches.iter().cycle()) {
        losses.push(trainer.step(batch, &[], run)?.loss);
    }
    let names = |key: &str| -> Vec<String> {
        train.get(key).and_then(Json::as_object).map_or(Vec::new(), |all| all.keys().cloned().collect())
    };
    Ok(Learned {
        losses: Some(losses),
        reports: Some(trainer.reports()),
        parameters: named(names("parameters_after").iter(), program),
        buffers: named(names("buffers_after").iter(), program),
        ..Learned::default()
    })
}

/// An option of an optimizer.
fn option(json: &Json) -> Value {
    match json {
        Json::Bool(x) => Value::Bool(*x),
        Json::Number(x) if x.is_i64() => Value::Int(x.as_i64().unwrap_or(0)),
        Json::Number(x) => Value::Float(x.as_f64().unwrap_or(0.0)),
        Json::Array(items) => Value::tuple(items.iter().map(option).collect()),
        Json::String(x) => Value::str(x.clone()),
        _ => Value::None,
    }
}

impl Learned {
    /// Compares with what is recorded.
    pub fn compare(&self, case: &Case) -> std::result::Result<(), String> {
        if let (Some(backward), Some(grads)) = (&case.backward, &self.grads) {
            compare_all("gradient", &backward.wrt, &backward.grads, grads, case.tolerance, 1.0)?;
            if let (Some((_, expected)), Some(second)) = (&backward.second, &self.second) {
                compare_all("second gradient", &backward.wrt, expected, second, case.tolerance, 10.0)?;
            }
        }
        if let (Some(train), Some(losses)) = (&case.train, &self.losses) {
            self.compare_training(train, losses, case.tolerance)?;
        }
        for (name, expected) in case.buffers_after.iter().flatten() {
            let found = self.buffers.iter().find(|(other, _)| other == name);
            let Some((_, tensor)) = found else { return Err(format!("there is no buffer '{name}'")) };
            compare(expected, &Value::Tensor(tensor.clone()), case.tolerance)
                .map_err(|e| format!("buffer {name} after the call: {e}"))?;
        }
        Ok(())
    }

    fn compare_training(
        &self,
        train: &Json,
        losses: &[f64],
        own: Option<f64>,
    ) -> std::result::Result<(), String> {
        let expected = train.get("losses").and_then(Json::as_array);
        for (step, (expected, loss)) in expected.into_iter().flatten().zip(losses).enumerate() {
            let expected = expected.as_f64().unwrap_or(f64::NAN);
            let tolerance = own.unwrap_or(1e-5);
            if (expected - loss).abs() > tolerance + tolerance * expected.abs()
                && !(expected.is_nan() && loss.is_nan())
            {
                return Err(format!("loss of step {}: expected {expected}, got {loss}", step + 1));
            }
        }
        for (key, found) in [("parameters_after", &self.parameters), ("buffers_after", &self.buffers)] {
            for (name, expected) in train.get(key).and_then(Json::as_object).into_iter().flatten() {
                let found = found.iter().find(|(other, _)| other == name);
                let Some((_, tensor)) = found else { return Err(format!("there is no '{name}'")) };
                compare(expected, &Value::Tensor(tensor.clone()), own)
                    .map_err(|e| format!("{name} after training: {e}"))?;
            }
        }
        Ok(())
    }

    /// Adds it to the JSON line of a report.
    pub fn write(&self, line: &mut Json) {
        let list = |all: &[Option<Tensor>]| {
            let one = |t: &Option<Tensor>| {
                let value = t.clone().map_or(Value::None, |t| Value::Tensor(t.detach()));
                encode(&value).unwrap_or_default()
            };
            Json::Array(all.iter().map(one).collect())
        };
        let by_name = |all: &[(String, Tensor)]| {
            let one = |(name, t): &(String, Tensor)| {
                (name.clone(), encode(&Value::Tensor(t.detach())).unwrap_or_default())
            };
            Json::Object(all.iter().map(one).collect())
        };
        if let Some(grads) = &self.grads {
            line["grads"] = list(grads);
        }
        if let Some(second) = &self.second {
            line["grads_second"] = list(second);
        }
        if let Some(losses) = &self.losses {
            line["losses"] = json!(losses);
            line["parameters_after"] = by_name(&self.parameters);
        }
        if !self.buffers.is_empty() || self.losses.is_some() {
            line["buffers_after"] = by_name(&self.buffers);
        }
    }
}

fn compare_all(
    what: &str,
    names: &[String],
    expected: &[Json],
    found: &[Option<Tensor>],
    own: Option<f64>,
    factor: f64,
) -> std::result::Result<(), String> {
    for ((name, expected), found) in names.iter().zip(expected).zip(found) {
        let value = found.clone().map_or(Value::None, Value::Tensor);
        let dtype = found.as_ref().map_or(DType::F64, Tensor::dtype);
        let own = match own {
            Some(own) => Some(own * factor),
            None if factor == 1.0 => None,
            None => Some(tolerance(dtype).0.max(tolerance(dtype).1) * factor),
        };
        compare(expected, &value, own).map_err(|e| format!("{what} by {name}: {e}"))?;
    }
    Ok(())
}

/// The source of a case as TorchScript text. It was compiled from Python, which begins with imports of what TorchScript knows
/// by itself and may write the body of a block after its colon.
pub fn from_python(source: &str) -> String {
    let mut out = String::new();
    let mut functional = false;
    for line in source.lines() {
        let imports = ["import torch", "from torch import", "from typing import", "import math"];
        functional |= line == "import torch.nn.functional as F";
        match block_on_a_line(line) {
            _ if imports.iter().any(|import| line.starts_with(import)) => {}
            Some((head, body)) => {
                let indent = line.len() - line.trim_start().len();
                out.push_str(&format!("{head}\n{}{body}", " ".repeat(indent + 4)));
            }
            None => out.push_str(line),
        }
        out.push('\n');
    }
    if functional { named_whole(&out) } else { out }
}

/// `for x in y: f(x)` → its head with the colon, and its body.
fn block_on_a_line(line: &str) -> Option<(&str, &str)> {
    let word = line.trim_start().split(|c: char| !c.is_alphanumeric()).next().unwrap_or("");
    if !matches!(word, "if" | "elif" | "else" | "for" | "while" | "with") {
        return None;
    }
    let (mut depth, mut quote) = (0i32, None);
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (Some(q), _) if q == c => quote = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => quote = Some(c),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')' | ']' | '}') => depth -= 1,
            (None, ':') if depth == 0 => {
                let (head, body) = line.split_at(at + 1);
                let body = body.trim();
                return (!body.is_empty() && !body.starts_with('#')).then_some((head, body));
            }
            _ => {}
        }
    }
    None
}

/// `F.relu` → `torch.nn.functional.relu`
fn named_whole(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("F.") {
        let alone = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '.');
        out.push_str(&rest[..at]);
        out.push_str(if alone { "torch.nn.functional." } else { "F." });
        rest = &rest[at + 2..];
    }
    out + rest
}
