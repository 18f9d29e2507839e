//! Checkpoints: everything that the next step depends on, in a file of `torch.save`. PyTorch goes on from one with
//! `load_state_dict` of model and optimizer and `torch.set_rng_state`, and one that PyTorch wrote goes on here.

use super::batches::Batches;
use super::parameters::{buffers, parameters};
use super::trainer::Trainer;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
pub use crate::frontend::archive::{load_values, save_values};
use crate::ir::Type;
use crate::tensor::{DType, Tensor};
use crate::value::{Dict, Value};

fn wrong(what: &str) -> Diagnostic {
    Diagnostic::input(format!("the checkpoint {what}"))
}

impl Trainer {
    /// The state after the last step: `model`, `optimizer`, `rng`, `step`, `losses`, and what belongs to schedule and data.
    /// Tensors are shared with the program.
    pub fn checkpoint(&self, batches: &Batches, losses: &[f64], run: &Run) -> Result<Value> {
        let dict = || Dict::new(Type::any(), Type::any());
        let model = dict();
        for (name, tensor) in parameters(self.program()).into_iter().chain(buffers(self.program())) {
            model.insert(&Value::str(name), Value::Tensor(tensor.detach()))?;
        }
        let rng = run.with_generator(|generator| Ok(generator.state()))?;
        let rng = Tensor::from_bytes(DType::U8, &[rng.len() as i64], &rng)?;
        let out = dict();
        let mut entries = vec![
            ("model", Value::Dict(model)),
            ("optimizer", self.optimizer.state_dict()?),
            ("rng", Value::Tensor(rng)),
            ("step", Value::Int(self.steps as i64)),
            ("losses", Value::Tensor(Tensor::from_vec(losses, &[losses.len() as i64])?)),
            ("epoch", batches.state()?),
        ];
        if let Some(schedule) = &self.schedule {
            let state = dict();
            state.insert(&Value::str("last_epoch"), Value::Int(schedule.count()))?;
            entries.push(("scheduler", Value::Dict(state)));
        }
        for (name, value) in entries {
            out.insert(&Value::str(name), value)?;
        }
        Ok(Value::Dict(out))
    }

    /// Goes on from a checkpoint; gives the losses so far. Fails where names, sizes or groups do not fit; entries besides `model`
    /// and `optimizer` may be missing.
    pub fn resume(&mut self, checkpoint: &Value, batches: &mut Batches, run: &Run) -> Result<Vec<f64>> {
        let dict = checkpoint.to_dict().map_err(|_| wrong("is not a dictionary"))?;
        let entry = |name: &str| dict.get(&Value::str(name));
        let needed = |name: &str| entry(name)?.ok_or_else(|| wrong(&format!("has no '{name}'")));
        self.prepare()?;
        self.load_model(&needed("model")?)?;
        self.optimizer.load_state_dict(&needed("optimizer")?)?;
        if let Some(rng) = entry("rng")? {
            run.set_generator_state(&rng.to_tensor()?.to_bytes()?)?;
        }
        if let Some(step) = entry("step")? {
            self.steps = u64::try_from(step.to_int()?).map_err(|_| wrong("has a negative step"))?;
        }
        if let Some(epoch) = entry("epoch")? {
            batches.resume(&epoch)?;
        }
        if let (Some(schedule), Some(state)) = (&mut self.schedule, entry("scheduler")?)
            && let Some(count) = state.to_dict()?.get(&Value::str("last_epoch"))?
        {
            schedule.resume(count.to_int()?);
        }
        match entry("losses")? {
            Some(losses) => losses.to_tensor()?.to_vec_as::<f64>(),
            None => Ok(Vec::new()),
        }
    }

    /// Writes the tensors of a state dictionary into parameters and buffers. All must be there and fit; else nothing changes.
    fn load_model(&self, state: &Value) -> Result<()> {
        let state = state.to_dict()?;
        let all = parameters(self.program()).into_iter().chain(buffers(self.program()));
        let mut pairs = Vec::new();
        for (name, tensor) in all {
            let value = state.get(&Value::str(name.as_str()))?;
            let value = value.ok_or_else(|| wrong(&format!("has no tensor '{name}'")))?;
            let value = value.to_tensor()?.clone();
            if value.sizes() != tensor.sizes() || value.dtype() != tensor.dtype() {
                let (has, wants) = (value.sizes(), tensor.sizes());
                let (has, wants) = (has.as_slice(), wants.as_slice());
                return Err(wrong(&format!("has '{name}' in sizes {has:?}, and the model in {wants:?}")));
            }
            pairs.push((tensor, value));
        }
        pairs.iter().try_for_each(|(tensor, value)| tensor.detach().copy_from(value))
    }
}
