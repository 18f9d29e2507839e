//! Weights apart from a program: parameters and buffers by PyTorch's names, in files of tensors, out of a program and into it.

use super::inputs;
use super::io::Io;
use super::outputs;
use crate::diag::{Diagnostic, Result};
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::training::state;
use crate::value::Value;
use clap::Args;
use hashbrown::HashMap;
use std::path::{Path, PathBuf};

/// Names that an error lists.
const SHOWN: usize = 5;

/// The option that takes weights from elsewhere.
#[derive(Args, Clone, Debug, Default)]
pub struct WeightOptions {
    /// Take parameters and buffers from a file (.safetensors, .npz) whose names are those of PyTorch's state_dict()
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
}

impl WeightOptions {
    /// Gives a program the weights that were asked for.
    pub fn apply(&self, program: &Program, io: &Io<'_>) -> Result<()> {
        match &self.weights {
            Some(file) => load(program, &io.path(file)),
            None => Ok(()),
        }
    }
}

/// Whether a file is one of tensors rather than a program.
pub fn is_weights(path: &Path) -> bool {
    path.extension().is_some_and(|end| end == "safetensors" || end == "npz")
}

/// Writes parameters and buffers to a `.safetensors` or `.npz` file; returns a description of what was written.
pub fn save(program: &Program, path: &Path) -> Result<String> {
    let tensors = state(program)?;
    if tensors.is_empty() {
        return Err(Diagnostic::input("the program has no parameters or buffers"));
    }
    outputs::write_tensors(path, &tensors)
}

/// Copies the tensors of a file into the parameters and buffers of its names, converted to their dtypes as `load_state_dict`
/// does. Fails, and changes nothing, where a name is missing or unknown or sizes differ.
pub fn load(program: &Program, path: &Path) -> Result<()> {
    let shown = |e: Diagnostic| Diagnostic::input(format!("{}: {}", path.display(), e.message()));
    let mut given: HashMap<String, Tensor> = HashMap::new();
    for (name, value) in inputs::read_named(path)? {
        match value {
            Value::Tensor(tensor) => drop(given.insert(name, tensor)),
            other => return Err(shown(Diagnostic::input(format!("'{name}' is a {}", other.kind_name())))),
        }
    }
    let (mut pairs, mut missing, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    let mut used = 0;
    for (name, tensor) in state(program)? {
        match given.get(&name) {
            None => missing.push(name),
            Some(source) if source.sizes() != tensor.sizes() => {
                let (file, own) = (source.sizes(), tensor.sizes());
                wrong.push(format!(
                    "{name} is {:?} there and {:?} in the program",
                    file.as_slice(),
                    own.as_slice()
                ));
            }
            Some(source) => pairs.push((tensor, source.clone())),
        }
        used += 1;
    }
    used -= missing.len();
    let mut unknown: Vec<&String> = Vec::new();
    if used < given.len() {
        let own: hashbrown::HashSet<String> = state(program)?.into_iter().map(|(name, _)| name).collect();
        unknown = given.keys().filter(|name| !own.contains(*name)).collect();
        unknown.sort();
    }
    let mut faults = Vec::new();
    if !missing.is_empty() {
        faults.push(format!("missing {}", listed(missing.iter())));
    }
    if !unknown.is_empty() {
        faults.push(format!("the program has no {}", listed(unknown.into_iter())));
    }
    faults.extend(wrong.into_iter().take(SHOWN));
    if !faults.is_empty() {
        return Err(shown(Diagnostic::input(faults.join("; ")))
            .hint("names are those of PyTorch's state_dict(); `flambeau inspect` lists them"));
    }
    pairs.iter().try_for_each(|(tensor, source)| tensor.copy_from(source)).map_err(shown)
}

fn listed<'a>(names: impl ExactSizeIterator<Item = &'a String>) -> String {
    let count = names.len();
    let first: Vec<&str> = names.take(SHOWN).map(String::as_str).collect();
    let more = if count > SHOWN { format!(" and {} more", count - SHOWN) } else { String::new() };
    format!("{}{more}", first.join(", "))
}
