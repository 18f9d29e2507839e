//! What a program is called with: the options `--input` and `--args`, and what is taken where neither is given. Every command
//! that calls a program takes its arguments from here. Must not know what is done with them.

mod files;
mod make;
mod recorded;
mod specs;

use super::io::Io;
use super::load::Loaded;
use crate::diag::{Diagnostic, ErrorKind, Result, nearest};
use crate::dialects::loops::{Elem, is_kernel};
use crate::dialects::prim::constant;
use crate::dialects::shapes::of_tensor;
use crate::ir::{Argument, Function, Module, Symbol, Type, TypeKind, ValueId};
use crate::runtime::Program;
use crate::value::Value;
use clap::Args;
use make::Maker;
use specs::Spec;
use std::path::{Path, PathBuf};

/// The options of a command that say what a program is called with.
#[derive(Args, Clone, Debug, Default)]
pub struct InputOptions {
    /// An input, by name or in order; repeat it for several: 'x=float32[1,3,224,224]' (random numbers), 'ids=int64[2,16]{0..30000}',
    /// 'n=5', 'mask=@mask.npy', or JSON. Without any, the sizes that a trace or the graph's types record
    #[arg(long, value_name = "[NAME=]VALUE", allow_negative_numbers = true)]
    pub input: Vec<String>,
    /// Files of arguments, in order: .json (a list of values), .npy, .npz or .safetensors
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub args: Vec<PathBuf>,
}

/// Arguments for one function of a program.
pub struct Inputs {
    parameters: Vec<Argument>,
    slots: Vec<Option<Slot>>,
    /// What follows the named arguments, for functions that take any number.
    rest: Vec<Value>,
    made_up: bool,
}

/// What fills an argument.
enum Slot {
    Spec(Spec),
    Given(Value),
}

impl InputOptions {
    /// Whether the user said anything of inputs.
    pub fn any(&self) -> bool {
        !self.input.is_empty() || !self.args.is_empty()
    }

    /// The inputs for a function of a loaded program. Without options, recorded sizes are used. Fails for options
    /// that are invalid, for names that no argument has, and where nothing is known of an input.
    pub fn resolve(&self, loaded: &Loaded, entry: &str, io: &Io<'_>) -> Result<Inputs> {
        let mut parameters = loaded.program.parameters(entry)?;
        for parameter in &mut parameters {
            // A kernel's buffers and numbers are given as tensors and numbers.
            parameter.ty = Elem::caller_type(&parameter.ty).unwrap_or_else(|| parameter.ty.clone());
        }
        let slots = parameters.iter().map(|_| None).collect();
        let mut inputs = Inputs { parameters, slots, rest: Vec::new(), made_up: false };
        for file in &self.args {
            for value in read_arguments(&io.path(file))? {
                inputs.in_order(Slot::Given(value))?;
            }
        }
        for text in &self.input {
            for (name, spec) in specs::parse(text)? {
                match (name, spec) {
                    (Some(name), spec) => inputs.by_name(&name, Slot::Spec(spec), entry)?,
                    (None, Spec::File(file)) => inputs.file(&io.path(Path::new(&file)))?,
                    (None, spec) => inputs.in_order(Slot::Spec(spec))?,
                }
            }
        }
        // Files in order are all there is; what a program lacks then, it says itself.
        if self.input.is_empty() && !self.args.is_empty() {
            return Ok(inputs);
        }
        inputs.take_recorded(loaded, entry)?;
        Ok(inputs)
    }
}

impl Inputs {
    fn in_order(&mut self, slot: Slot) -> Result<()> {
        if let Some(free) = self.slots.iter_mut().find(|slot| slot.is_none()) {
            *free = Some(slot);
            return Ok(());
        }
        match slot {
            Slot::Given(value) => {
                // Too many arguments are the program's own error.
                self.rest.push(value);
                Ok(())
            }
            Slot::Spec(spec) => Err(Diagnostic::new(
                ErrorKind::Usage,
                format!(
                    "--input {spec}: the function takes {} arguments, and all are given",
                    self.slots.len()
                ),
            )),
        }
    }

    fn by_name(&mut self, name: &str, slot: Slot, entry: &str) -> Result<()> {
        let Some(at) = self.parameters.iter().position(|argument| argument.name == name) else {
            let names: Vec<&str> = self.parameters.iter().map(|a| a.name.as_str()).collect();
            let error = Diagnostic::usage(format!("{entry} has no argument '{name}'"));
            return Err(match nearest(name, names.iter().copied()) {
                Some(near) => error.hint(format!("did you mean '{near}'?")),
                None => error.hint(format!("it takes {}", names.join(", "))),
            });
        };
        if self.slots[at].is_some() {
            return Err(Diagnostic::usage(format!("argument '{name}' is given twice")));
        }
        self.slots[at] = Some(slot);
        Ok(())
    }

    /// Values of a file: by their names where all of them are arguments, else in order.
    fn file(&mut self, file: &Path) -> Result<()> {
        let directory = Path::new("");
        let values = Maker { directory, state: 0 }.read(file)?;
        let known = |name: &str| self.parameters.iter().any(|argument| argument.name == name);
        let by_name = values.iter().all(|(name, _)| name.as_deref().is_some_and(known));
        for (name, value) in values {
            match name.filter(|_| by_name) {
                Some(name) => self.by_name(&name, Slot::Given(value), "the function")?,
                None => self.in_order(Slot::Given(value))?,
            }
        }
        Ok(())
    }

    /// Fills what is missing with what was recorded when the model was traced, or what the types say.
    fn take_recorded(&mut self, loaded: &Loaded, entry: &str) -> Result<()> {
        let lacks = |slots: &[Option<Slot>], n: usize, argument: &Argument| {
            slots.get(n).is_some_and(Option::is_none) && argument.default.is_none()
        };
        let missing: Vec<usize> = self
            .parameters
            .iter()
            .enumerate()
            .filter(|(n, argument)| lacks(&self.slots, *n, argument))
            .map(|(n, _)| n)
            .collect();
        if missing.is_empty() {
            return Ok(());
        }
        let traced = loaded.traced.as_ref().and_then(|pickle| recorded::traced(pickle, entry));
        let traced = traced.filter(|specs| specs.len() == self.parameters.len()).unwrap_or_default();
        let typed = recorded::typed(&loaded.program, entry);
        for n in missing {
            let known = traced.get(n).cloned().or_else(|| typed.get(n).cloned().flatten());
            match known {
                Some(spec) => {
                    self.slots[n] = Some(Slot::Spec(spec));
                    self.made_up = true;
                }
                None => return Err(self.unknown(n, entry)),
            }
        }
        Ok(())
    }

    /// The error for an argument of which nothing is known.
    fn unknown(&self, n: usize, entry: &str) -> Diagnostic {
        let argument = &self.parameters[n];
        let example = match argument.ty.kind() {
            TypeKind::Tensor(_) => "float32[1,3,224,224]",
            TypeKind::List(element) if element.as_tensor().is_some() => "'[float32[3,224,224]]'",
            TypeKind::List(_) => "'[1, 2]'",
            TypeKind::Int | TypeKind::Number => "5",
            TypeKind::Float => "0.5",
            TypeKind::Bool => "true",
            TypeKind::Str => "'\"text\"'",
            _ => "@file.json",
        };
        let list = |a: &Argument| format!("{} {}", a.ty.annotation(), a.name);
        let all: Vec<String> = self.parameters.iter().map(list).collect();
        Diagnostic::input(format!("nothing is known of the input '{}': give it with --input", argument.name))
            .note(format!("the function is {entry}({})", all.join(", ")))
            .hint(format!("for example --input {}={example}", argument.name))
    }

    /// Defaulted inputs as text, for a note to the user.
    pub fn note(&self) -> Option<String> {
        let described: Vec<String> = self.described();
        self.made_up.then(|| {
            format!("note: inputs of the recorded sizes, with random numbers: {}\n", described.join(" "))
        })
    }

    /// The inputs that options describe, each with its name: `x=float32[1,3]`.
    pub fn described(&self) -> Vec<String> {
        let word = |(slot, argument): (&Option<Slot>, &Argument)| match slot {
            Some(Slot::Spec(spec)) => Some(format!("{}={spec}", argument.name)),
            _ => None,
        };
        self.slots.iter().zip(&self.parameters).filter_map(word).collect()
    }

    /// The same with the first size of each tensor of random numbers replaced. Fails where there is none.
    pub fn with_batch(&self, batch: i64) -> Result<Inputs> {
        let mut found = false;
        let mut slots = Vec::new();
        for slot in &self.slots {
            slots.push(match slot {
                Some(Slot::Spec(Spec::Random { dtype, sizes, range })) if !sizes.is_empty() => {
                    found = true;
                    let sizes = std::iter::once(batch).chain(sizes.iter().skip(1).copied()).collect();
                    Some(Slot::Spec(Spec::Random { dtype: *dtype, sizes, range: *range }))
                }
                Some(Slot::Spec(spec)) => Some(Slot::Spec(spec.clone())),
                Some(Slot::Given(value)) => Some(Slot::Given(value.clone())),
                None => None,
            });
        }
        if !found {
            let error = Diagnostic::usage("--batch finds no input that is given by its sizes");
            return Err(error.hint("give one with --input x=float32[1,3,224,224]"));
        }
        let Inputs { parameters, rest, made_up, .. } = self;
        Ok(Inputs { parameters: parameters.clone(), slots, rest: rest.clone(), made_up: *made_up })
    }

    /// The values, random numbers drawn from the seed: the same on every machine, whichever order the options had.
    pub fn values(&self, seed: u64, directory: &Path) -> Result<Vec<Value>> {
        let last = self.slots.iter().rposition(Option::is_some).map_or(0, |n| n + 1);
        let mut values = Vec::new();
        for (n, (slot, argument)) in self.slots.iter().zip(&self.parameters).enumerate().take(last) {
            let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add((n as u64) << 32);
            values.push(match (slot, &argument.default) {
                (Some(Slot::Given(value)), _) => value.clone(),
                (Some(Slot::Spec(spec)), _) => Maker { directory, state }.make(spec, Some(&argument.ty))?,
                (None, Some(default)) => {
                    constant::value(&[(Symbol::new("value"), default.clone())], Some(&argument.ty))?
                }
                (None, None) => return Err(self.unknown(n, "forward")),
            });
        }
        values.extend(self.rest.iter().cloned());
        Ok(values)
    }
}

/// The named function, or the only one of a file with a single function where none is named. Kernels beside it do not count.
pub fn entry<'a>(wanted: &'a str, program: &'a Program) -> &'a str {
    let functions = &program.module().functions;
    let is_called = |f: &&Function| functions.len() == 1 || !is_kernel(&f.graph);
    let mut called = functions.values().filter(is_called);
    match (called.next(), called.next()) {
        (Some(only), None) if wanted == "forward" && program.instance().is_none() => only.name.as_str(),
        _ => wanted,
    }
}

/// Writes dtypes, sizes and strides of arguments into the types of a function's inputs, as a trace has them.
pub fn annotate(module: &mut Module, function: &str, arguments: &[Value]) {
    let name = Symbol::new(function);
    let Some(function) = module.functions.get_mut(&name) else { return };
    let graph = &mut function.graph;
    // A method's first input is the object.
    let is_object = |v: &ValueId| matches!(graph.ty(*v).kind(), TypeKind::Class(_));
    let skipped = usize::from(graph.inputs().first().is_some_and(is_object));
    let inputs: Vec<ValueId> = graph.inputs().iter().skip(skipped).copied().collect();
    for (input, argument) in inputs.into_iter().zip(arguments) {
        let Value::Tensor(tensor) = argument else { continue };
        if graph.ty(input).is_tensor() {
            graph.set_type(input, Type::new(TypeKind::Tensor(of_tensor(tensor))));
        }
    }
}

/// Values from a file, in order.
pub fn read_arguments(file: &Path) -> Result<Vec<Value>> {
    let values = Maker { directory: Path::new(""), state: 0 }.read(file)?;
    Ok(values.into_iter().map(|(_, value)| value).collect())
}

/// The tensors of a file by name.
pub fn read_named(file: &Path) -> Result<Vec<(String, Value)>> {
    let values = Maker { directory: Path::new(""), state: 0 }.read(file)?;
    Ok(values.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
}

/// The values of a file in order, with their names where it has names.
pub fn read_all(file: &Path) -> Result<Vec<(Option<String>, Value)>> {
    Maker { directory: Path::new(""), state: 0 }.read(file)
}

/// A name with options: `adamw(lr=1e-3, betas=(0.9, 0.99))`. `flag` is the option that errors name.
pub fn named_options(flag: &str, text: &str) -> Result<(String, Vec<(String, Value)>)> {
    let usage = |what: &str| Diagnostic::usage(format!("{flag} '{text}': {what}"));
    let Some((name, rest)) = text.split_once('(') else { return Ok((text.trim().to_string(), Vec::new())) };
    let inner = rest.trim_end().strip_suffix(')').ok_or_else(|| usage("options end with ')'"))?;
    let specs = if inner.trim().is_empty() { Vec::new() } else { specs::parse_for(flag, inner)? };
    let mut options = Vec::new();
    for (name, spec) in specs {
        let name = name.ok_or_else(|| usage("options have names: lr=0.1"))?;
        options.push((name, Maker { directory: Path::new(""), state: 0 }.make(&spec, None)?));
    }
    Ok((name.trim().to_string(), options))
}
