//! State dictionaries of optimizers in the form of `torch.optim`: what is kept by the parameter's number, and the groups with
//! their options. PyTorch loads what is made here, and what it makes is loaded here.

use super::kept::{Memory, State};
use super::kinds::{LBFGS, number};
use super::{Group, IGNORED, Optimizer};
use crate::diag::{Diagnostic, Result};
use crate::ir::Type;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{Dict, List, Value};

/// An empty dictionary of Python.
fn python_dict() -> Dict {
    Dict::new(Type::any(), Type::any())
}

fn wrong(what: &str) -> Diagnostic {
    Diagnostic::input(format!("the optimizer's state has {what}"))
}

impl Optimizer {
    /// What is kept, as `optimizer.state_dict()` has it. Tensors are shared with the optimizer.
    pub fn state_dict(&self) -> Result<Value> {
        let (states, groups) = (python_dict(), List::new(Type::any(), Vec::new()));
        let mut count = 0;
        for group in &self.groups {
            let numbers: Vec<i64> = (count..).take(group.parameters.len()).collect();
            count += group.parameters.len() as i64;
            for (n, parameter) in numbers.iter().zip(&group.parameters) {
                if let Some(state) = self.states.get(&parameter.id()) {
                    states.insert(&Value::Int(*n), Value::Dict(self.written(state)?))?;
                }
            }
            groups.items_mut().push(Value::Dict(self.written_group(group, numbers)?));
        }
        if self.kind.name == LBFGS && self.lbfgs.evaluations > 0 {
            states.insert(&Value::Int(0), Value::Dict(self.lbfgs.written()?))?;
        }
        let all = python_dict();
        all.insert(&Value::str("state"), Value::Dict(states))?;
        all.insert(&Value::str("param_groups"), Value::List(groups))?;
        Ok(Value::Dict(all))
    }

    fn written(&self, state: &State) -> Result<Dict> {
        let out = python_dict();
        if self.kind.counts {
            let steps = Tensor::from_scalar(Scalar::Float(state.steps as f64), DType::F32)?;
            out.insert(&Value::str("step"), Value::Tensor(steps))?;
        }
        for (name, value) in state.tensors.entries().iter() {
            out.insert(&name.to_value(), value.clone())?;
        }
        Ok(out)
    }

    fn written_group(&self, group: &Group, numbers: Vec<i64>) -> Result<Dict> {
        let out = python_dict();
        for (name, value) in IGNORED.iter().filter(|_| self.kind.counts || self.kind.name == "sgd") {
            out.insert(&Value::str(*name), value.clone())?;
        }
        for (name, value) in &group.options {
            let value = match value {
                Value::Str(text) if text.is_empty() => Value::None,
                Value::Int(-1) if *name == "max_eval" => Value::Int(group.number("max_iter") as i64 * 5 / 4),
                // What stands for the smallest number of the parameter's dtype.
                Value::Tuple(parts) if self.kind.name == "adafactor" => {
                    let part = |x: &Value| if number(x) == Some(-1.0) { Value::None } else { x.clone() };
                    Value::tuple(parts.items().iter().map(part).collect())
                }
                other => other.clone(),
            };
            out.insert(&Value::str(*name), value)?;
        }
        if group.initial != group.rate() {
            out.insert(&Value::str("initial_lr"), Value::Float(group.initial))?;
        }
        let numbers = numbers.into_iter().map(Value::Int).collect();
        out.insert(&Value::str("params"), Value::list(Type::any(), numbers))?;
        Ok(out)
    }

    /// Takes over a state dictionary: options of the groups and what is kept of their parameters. Fails where groups or sizes do
    /// not fit; then nothing has changed.
    pub fn load_state_dict(&mut self, value: &Value) -> Result<()> {
        let groups = entry(value, "param_groups")?.to_list()?.to_vec();
        if groups.len() != self.groups.len() {
            return Err(wrong(&format!("{} parameter groups, not {}", groups.len(), self.groups.len())));
        }
        let states = entry(value, "state")?;
        let states = states.to_dict()?;
        let mut read = Vec::new();
        let mut memory = None;
        let mut options = Vec::new();
        for (saved, group) in groups.iter().zip(&self.groups) {
            let numbers = entry(saved, "params")?.to_list()?.to_vec();
            if numbers.len() != group.parameters.len() {
                let (has, wants) = (numbers.len(), group.parameters.len());
                return Err(wrong(&format!("a group of {has} parameters, not {wants}")));
            }
            for (name, preset) in self.kind.options {
                if let Ok(value) = entry(saved, name) {
                    options.push((*name, preset.value(name, Some(&value))?));
                }
            }
            for (n, parameter) in numbers.iter().zip(&group.parameters) {
                let Some(state) = states.get(n)? else { continue };
                match self.kind.name == LBFGS {
                    true => memory = Some(Memory::read(&state)?),
                    false => read.push((parameter.id(), read_state(&state, parameter)?)),
                }
            }
        }
        let mut options = options.into_iter();
        for (saved, group) in groups.iter().zip(&mut self.groups) {
            let count = self.kind.options.iter().filter(|(name, _)| entry(saved, name).is_ok()).count();
            options.by_ref().take(count).for_each(|(name, value)| group.set(name, value));
            let initial = entry(saved, "initial_lr").ok().and_then(|x| number(&x));
            group.initial = initial.unwrap_or(group.rate());
        }
        self.states = read.into_iter().collect();
        if let Some(memory) = memory {
            self.lbfgs = memory;
        }
        Ok(())
    }
}

fn entry(value: &Value, name: &str) -> Result<Value> {
    value.to_dict()?.get(&Value::str(name))?.ok_or_else(|| wrong(&format!("no '{name}'")))
}

/// What is kept of one parameter: tensors in its dtype, but for counts and rates, which have no sizes.
fn read_state(value: &Value, parameter: &Tensor) -> Result<State> {
    let mut state = State::default();
    for (name, value) in value.to_dict()?.entries().iter() {
        match (name.to_value(), value) {
            (Value::Str(name), value) if &*name == "step" => {
                let steps = number(value).filter(|n| *n >= 0.0 && *n < 9e15);
                state.steps = steps.ok_or_else(|| wrong("a step that is not a count"))? as i64;
            }
            (name @ Value::Str(_), Value::Tensor(t)) => {
                let fits = t.sizes() == parameter.sizes() || t.numel() == 1 || t.rank() == parameter.rank();
                if !fits {
                    let (has, wants) = (t.sizes(), parameter.sizes());
                    let (has, wants) = (has.as_slice(), wants.as_slice());
                    return Err(wrong(&format!(
                        "{} of sizes {has:?} for a parameter of {wants:?}",
                        name.to_text()
                    )));
                }
                // PyTorch converts what it loads for parameters of floats.
                let own = if parameter.dtype().is_floating() { parameter.dtype() } else { t.dtype() };
                state.tensors.insert(&name, Value::Tensor(t.detach().copy()?.to_dtype(own)?))?;
            }
            // A buffer that was never filled.
            (Value::Str(_), Value::None) => {}
            (name, _) => return Err(wrong(&format!("'{}', which is not a tensor", name.to_text()))),
        }
    }
    Ok(state)
}

impl Memory {
    fn written(&self) -> Result<Dict> {
        let out = python_dict();
        let list = |list: &Option<List>| {
            Value::list(Type::any(), list.as_ref().map(List::to_vec).unwrap_or_default())
        };
        let tensor = |t: &Option<Tensor>| t.clone().map_or(Value::None, Value::Tensor);
        let entries = [
            ("func_evals", Value::Int(self.evaluations)),
            ("n_iter", Value::Int(self.iterations)),
            ("d", tensor(&self.direction)),
            ("t", Value::Float(self.length)),
            ("old_dirs", list(&self.pairs)),
            ("old_stps", list(&self.steps)),
            ("ro", list(&self.inverse)),
            ("H_diag", self.scale.clone().map_or(Value::Int(1), Value::Tensor)),
            ("prev_flat_grad", tensor(&self.gradient)),
            ("prev_loss", Value::Float(self.loss)),
        ];
        for (name, value) in entries {
            out.insert(&Value::str(name), value)?;
        }
        Ok(out)
    }

    fn read(value: &Value) -> Result<Memory> {
        let count = |name: &str| entry(value, name).ok().and_then(|x| number(&x)).unwrap_or(0.0);
        let tensor = |name: &str| match entry(value, name) {
            Ok(Value::Tensor(t)) => t.copy().map(Some),
            _ => Ok(None),
        };
        let list = |name: &str| -> Result<Option<List>> {
            let Ok(Value::List(list)) = entry(value, name) else { return Ok(None) };
            let copy = |value: &Value| Ok(Value::Tensor(value.to_tensor()?.copy()?));
            let items = list.to_vec().iter().map(copy).collect::<Result<Vec<Value>>>()?;
            Ok(Some(List::new(Type::tensor(), items)))
        };
        Ok(Memory {
            evaluations: count("func_evals") as i64,
            iterations: count("n_iter") as i64,
            direction: tensor("d")?,
            length: count("t"),
            pairs: list("old_dirs")?,
            steps: list("old_stps")?,
            inverse: list("ro")?,
            scale: tensor("H_diag")?,
            gradient: tensor("prev_flat_grad")?,
            loss: count("prev_loss"),
        })
    }
}
