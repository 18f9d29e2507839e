//! Optimizers: functions of TorchScript text (`rules.py`) that change one parameter by its gradient. Names, options and what is
//! kept of each parameter are those of `torch.optim`, so that `state_dict` goes from here to PyTorch and back. Knows no op.

mod kept;
mod kinds;
mod lbfgs;
mod rules;
mod state;
mod steps;

use crate::diag::{Diagnostic, Result, nearest};
use crate::dialects::Run;
use crate::tensor::Tensor;
use crate::value::Value;
use hashbrown::HashMap;
use kept::{Memory, State};
use kinds::{KINDS, Kind, LBFGS};
use rules::{flat, text_of};
use steps::Steps;

/// Options that say how PyTorch computes and not what, with the values that a state dictionary has.
const IGNORED: &[(&str, Value)] = &[
    ("foreach", Value::None),
    ("fused", Value::None),
    ("capturable", Value::Bool(false)),
    ("differentiable", Value::Bool(false)),
];

/// Computes the loss anew and the gradients of all parameters.
pub type Closure<'a> = &'a mut dyn FnMut() -> Result<f64>;

/// Runs the last function of a text on values that fit its parameters, where the text stays the same from step to step.
pub type RunText<'a> = &'a mut dyn FnMut(&str, Vec<Value>) -> Result<()>;

/// An optimizer with its parameters and what it keeps of each.
pub struct Optimizer {
    kind: &'static Kind,
    text: String,
    defaults: Vec<(String, Value)>,
    groups: Vec<Group>,
    states: HashMap<usize, State>,
    lbfgs: Memory,
}

/// Parameters with the same options.
pub struct Group {
    parameters: Vec<Tensor>,
    /// All options in the order of the table.
    options: Vec<(&'static str, Value)>,
    /// The learning rate before a schedule changed it.
    initial: f64,
}

impl Optimizer {
    /// The names that there are.
    pub fn names() -> impl Iterator<Item = &'static str> {
        KINDS.iter().map(|kind| kind.name)
    }

    /// An optimizer by name without parameters, with options that differ from their defaults. Fails on unknown names and options.
    pub fn new(name: &str, given: &[(String, Value)]) -> Result<Optimizer> {
        let lower = name.to_lowercase();
        if lower == "sparseadam" {
            let error = Diagnostic::unsupported("optimizer 'SparseAdam': gradients are dense here");
            return Err(error.hint("adam takes dense gradients"));
        }
        let kind = KINDS.iter().find(|kind| kind.name == lower).ok_or_else(|| {
            let error = Diagnostic::unsupported(format!("optimizer '{name}'"));
            match nearest(&lower, Optimizer::names()) {
                Some(near) => error.hint(format!("did you mean {near}?")),
                None => {
                    error.hint(format!("there are {}", Optimizer::names().collect::<Vec<_>>().join(", ")))
                }
            }
        })?;
        let optimizer = Optimizer {
            kind,
            text: text_of(kind.function),
            defaults: given.to_vec(),
            groups: Vec::new(),
            states: HashMap::new(),
            lbfgs: Memory::default(),
        };
        // Slips show before there are parameters.
        optimizer.options(&[])?;
        Ok(optimizer)
    }

    /// What it is called.
    pub fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Adds parameters, with options that differ from the optimizer's. Fails on unknown options, on parameters that a group has
    /// already, and where the optimizer takes one group alone.
    pub fn add_group(&mut self, parameters: Vec<Tensor>, given: &[(String, Value)]) -> Result<()> {
        let options = self.options(given)?;
        let known = |p: &Tensor| self.groups.iter().flat_map(|g| &g.parameters).any(|other| other.same(p));
        if parameters.iter().any(known) {
            return Err(Diagnostic::input("some parameters appear in more than one parameter group"));
        }
        if self.kind.name == LBFGS && !self.groups.is_empty() {
            return Err(Diagnostic::unsupported("parameter groups of the optimizer lbfgs"));
        }
        let mut group = Group { parameters, options, initial: 0.0 };
        group.initial = group.rate();
        self.groups.push(group);
        Ok(())
    }

    fn options(&self, given: &[(String, Value)]) -> Result<Vec<(&'static str, Value)>> {
        let all = || self.defaults.iter().chain(given);
        let is_known = |name: &str| {
            let ignored = IGNORED.iter().any(|(known, _)| *known == name);
            ignored || self.kind.options.iter().any(|(known, _)| *known == name)
        };
        if let Some((unknown, _)) = all().find(|(name, _)| !is_known(name)) {
            let error =
                Diagnostic::unsupported(format!("option '{unknown}' of the optimizer {}", self.kind.name));
            let names: Vec<&str> = self.kind.options.iter().map(|(name, _)| *name).collect();
            return Err(error.hint(format!("it takes {}", names.join(", "))));
        }
        let value = |(name, preset): &(&'static str, kinds::Preset)| {
            let given = all().rfind(|(n, _)| n == name).map(|(_, value)| value);
            Ok((*name, preset.value(name, given)?))
        };
        self.kind.options.iter().map(value).collect()
    }

    /// The groups, in the order in which they were added.
    pub fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// Sets the learning rate of a group.
    pub fn set_rate(&mut self, group: usize, rate: f64) {
        if let Some(group) = self.groups.get_mut(group) {
            group.set("lr", Value::Float(rate));
        }
    }

    /// All parameters.
    pub fn parameters(&self) -> impl Iterator<Item = &Tensor> {
        self.groups.iter().flat_map(|group| &group.parameters)
    }

    /// Whether a step must compute the loss by itself; then [`Optimizer::step`] is given a closure.
    pub fn needs_closure(&self) -> bool {
        self.kind.name == LBFGS
    }

    /// Changes parameters by their gradients; those without one stay. Nothing is recorded. The closure is called by optimizers
    /// that ask for it, with gradients recorded; others find the gradients in the parameters. Where all that is kept of a
    /// parameter is there already, `compiled` changes it, if there is that.
    pub fn step(&mut self, run: &Run, closure: Closure<'_>, compiled: Option<RunText<'_>>) -> Result<()> {
        let former = run.set_grad_enabled(false);
        let done = match self.needs_closure() {
            true => self.lbfgs_step(run, closure),
            false => self.update_all(run, compiled),
        };
        run.set_grad_enabled(former);
        done
    }

    fn update_all(&mut self, run: &Run, mut compiled: Option<RunText<'_>>) -> Result<()> {
        let what = format!("the optimizer {}", self.kind.name);
        for group in &self.groups {
            let options: Vec<Value> = group.options.iter().flat_map(|(_, value)| flat(value)).collect();
            let mut steps = Steps::new(&self.text, self.kind.function, &group.options);
            for parameter in &group.parameters {
                let Some(gradient) = parameter.grad() else { continue };
                let state = self.states.entry(parameter.id()).or_default();
                state.steps += 1;
                if let Some(compiled) = &mut compiled
                    && state.complete
                {
                    let (text, values) = steps.of(parameter, gradient.detach(), state, group.rate());
                    compiled(text, values)?;
                    continue;
                }
                let mut values = vec![
                    Value::Tensor(parameter.clone()),
                    Value::Tensor(gradient.detach()),
                    Value::Dict(state.tensors.clone()),
                    Value::Int(state.steps),
                ];
                values.extend(options.iter().cloned());
                let kept = state.tensors.entries().len();
                run.function(&what, &self.text, values)?;
                state.complete = state.tensors.entries().len() == kept;
            }
        }
        Ok(())
    }
}

impl Group {
    /// Its parameters.
    pub fn parameters(&self) -> &[Tensor] {
        &self.parameters
    }

    /// Its learning rate.
    pub fn rate(&self) -> f64 {
        self.number("lr")
    }

    /// The learning rate that it began with.
    pub fn initial_rate(&self) -> f64 {
        self.initial
    }

    fn get(&self, name: &str) -> Value {
        let found = self.options.iter().find(|(known, _)| *known == name);
        found.map(|(_, value)| value.clone()).unwrap_or_default()
    }

    fn number(&self, name: &str) -> f64 {
        kinds::number(&self.get(name)).unwrap_or(0.0)
    }

    fn set(&mut self, name: &str, value: Value) {
        if let Some(slot) = self.options.iter_mut().find(|(known, _)| *known == name) {
            slot.1 = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_in_names_and_options_are_named() {
        let error = |name: &str, option: &str| {
            Optimizer::new(name, &[(option.into(), Value::Float(1.0))]).err().map(|e| e.message().to_string())
        };
        assert!(error("adamx", "lr").is_some_and(|m| m.contains("adamx")));
        assert!(error("adam", "momentum").is_some_and(|m| m.contains("momentum")));
        assert!(error("SparseAdam", "lr").is_some_and(|m| m.contains("dense")));
        assert_eq!(error("Adam", "lr"), None);
    }
}
