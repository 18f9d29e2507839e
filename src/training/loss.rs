//! Losses: functions of TorchScript text, built in (`losses.py`) or the user's own.

use crate::diag::{Diagnostic, Result, Source, nearest};
use crate::dialects::prim::constant;
use crate::dialects::{Registry, Run};
use crate::frontend::script::compile_source;
use crate::ir::{Argument, Symbol};
use crate::runtime::Program;
use crate::value::Value;
use std::sync::Arc;

/// The built-in ones.
const LOSSES: &str = include_str!("losses.py");
/// Functions of the text that are not losses.
const HELPERS: &[&str] = &["_reduced", "clip_norm", "clip_value"];

/// How an answer becomes a number.
pub struct Loss(Form);

enum Form {
    /// The program's answer is the loss.
    Answer,
    /// A function of the answer and the targets.
    Function { program: Program, name: String, options: Vec<(String, Value)> },
}

/// The functions of the built-in text as a program.
pub(super) fn library(registry: &Arc<Registry>) -> Result<Program> {
    compiled(registry, "losses.py", LOSSES)
}

fn compiled(registry: &Arc<Registry>, name: &str, text: &str) -> Result<Program> {
    let module = compile_source(registry, &Source::new(name, text))?;
    Ok(Program::with(module, None, Arc::clone(registry)))
}

impl Loss {
    /// The program's own answer is the loss: one number.
    pub fn answer() -> Loss {
        Loss(Form::Answer)
    }

    /// A built-in loss with options by name. Fails for names and options that there are not.
    pub fn named(registry: &Arc<Registry>, name: &str, options: Vec<(String, Value)>) -> Result<Loss> {
        let names = Loss::names(registry)?;
        if !names.iter().any(|known| known == name) {
            let error = Diagnostic::unsupported(format!("loss '{name}'"));
            return Err(match nearest(name, names.iter().map(String::as_str)) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => error.hint(format!("there are {}; or give a file with a function", names.join(", "))),
            });
        }
        Loss::function(library(registry)?, name, options)
    }

    /// The names of the built-in losses.
    pub fn names(registry: &Arc<Registry>) -> Result<Vec<String>> {
        let program = library(registry)?;
        let all = program.module().functions.keys().map(|name| name.to_string());
        Ok(all.filter(|name| !HELPERS.contains(&name.as_str())).collect())
    }

    /// A function of TorchScript source: the named one, else the last. It takes the answer (or the parts of an answer that is a
    /// tuple) and the targets, and gives a tensor of one element.
    pub fn source(
        registry: &Arc<Registry>,
        (file, text): (&str, &str),
        name: Option<&str>,
        options: Vec<(String, Value)>,
    ) -> Result<Loss> {
        let program = compiled(registry, file, text)?;
        let last = program.module().functions.keys().last().map(|name| name.to_string());
        let name = name.map(str::to_string).or(last);
        let name = name.ok_or_else(|| Diagnostic::input(format!("{file} has no function")))?;
        Loss::function(program, &name, options)
    }

    fn function(program: Program, name: &str, options: Vec<(String, Value)>) -> Result<Loss> {
        let parameters = program.parameters(name)?;
        for (option, _) in &options {
            if !parameters.iter().any(|p| p.name.as_str() == option && p.default.is_some()) {
                let known: Vec<&str> =
                    parameters.iter().filter(|p| p.default.is_some()).map(|p| p.name.as_str()).collect();
                let error = Diagnostic::unsupported(format!("option '{option}' of the loss {name}"));
                return Err(error.hint(match known.is_empty() {
                    true => "it has none".to_string(),
                    false => format!("it takes {}", known.join(", ")),
                }));
            }
        }
        Ok(Loss(Form::Function { program, name: name.to_string(), options }))
    }

    /// Whether the loss is computed from targets besides the answer.
    pub fn takes_targets(&self) -> bool {
        !matches!(self.0, Form::Answer)
    }

    /// The loss of an answer. Fails where answer and targets do not fit the function, and where no number comes out.
    pub fn of(&self, answer: Value, targets: &[Value], run: &Run) -> Result<crate::tensor::Tensor> {
        let value = match &self.0 {
            Form::Answer => answer,
            Form::Function { program, name, options } => {
                let parameters = program.parameters(name)?;
                let wanted = parameters.iter().filter(|p| p.default.is_none()).count();
                let mut values = match &answer {
                    Value::Tuple(parts) if wanted == parts.items().len() + targets.len() => {
                        parts.items().to_vec()
                    }
                    _ => vec![answer.clone()],
                };
                values.extend(targets.iter().cloned());
                if values.len() != wanted {
                    return Err(Diagnostic::input(format!(
                        "the loss {name} takes {wanted} values, and there are {}: the answer ({}) and {} targets",
                        values.len(),
                        answer.kind_name(),
                        targets.len()
                    ))
                    .hint("an answer of several parts needs a loss of one's own: --loss file.py"));
                }
                for parameter in parameters.iter().skip(wanted) {
                    values.push(option(parameter, options)?);
                }
                program.run(name, values, run)?
            }
        };
        match value {
            Value::Tensor(loss) if loss.numel() == 1 => Ok(loss),
            Value::Tensor(loss) => Err(Diagnostic::input(format!(
                "the loss has the sizes {:?}, and must be one number",
                loss.sizes().as_slice()
            ))),
            other => Err(Diagnostic::input(format!("the loss is a {}, not a tensor", other.kind_name()))
                .hint("--loss says how the answer becomes a number")),
        }
    }
}

fn option(parameter: &Argument, options: &[(String, Value)]) -> Result<Value> {
    if let Some((_, value)) = options.iter().find(|(name, _)| parameter.name.as_str() == name) {
        return Ok(value.clone());
    }
    let default = parameter.default.clone();
    let default = default.ok_or_else(|| Diagnostic::internal("an option without a default"))?;
    constant::value(&[(Symbol::new("value"), default)], Some(&parameter.ty))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn losses_have_names_options_and_refusals() {
        let registry = Registry::builtin();
        let names = Loss::names(&registry).expect("compiles");
        assert!(names.contains(&"cross_entropy".to_string()) && !names.contains(&"clip_norm".to_string()));
        let run = Run::silent();
        let tensor = |x: &[f32]| Value::Tensor(Tensor::from_vec(x, &[x.len() as i64]).expect("fits"));
        let of = |loss: Loss| {
            let value = loss.of(tensor(&[1.0, 3.0]), &[tensor(&[0.0, 0.0])], &run)?;
            value.item().map(|x| x.to_f64())
        };
        assert_eq!(of(Loss::named(&registry, "mse", Vec::new()).expect("known")).expect("a number"), 5.0);
        let sum = vec![("reduction".to_string(), Value::str("sum"))];
        assert_eq!(of(Loss::named(&registry, "mse", sum).expect("known")).expect("a number"), 10.0);
        assert!(Loss::named(&registry, "msee", Vec::new()).is_err());
        assert!(Loss::named(&registry, "mse", vec![("beta".into(), Value::Float(1.0))]).is_err());
        let none = vec![("reduction".to_string(), Value::str("none"))];
        assert!(of(Loss::named(&registry, "mse", none).expect("known")).is_err());
        let own = "def f(o: Tensor, t: Tensor):\n    return (o - t).abs().sum()\n";
        assert_eq!(
            of(Loss::source(&registry, ("own.py", own), None, Vec::new()).expect("compiles")).expect("one"),
            4.0
        );
    }
}
