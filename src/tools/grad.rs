//! `flambeau grad`: gradients of a model's answer; `grad check` compiles the derivatives of all operators.

use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::load_shown;
use super::outputs;
use super::prepare::GradientOptions;
use super::table::Table;
use super::threads::ThreadOptions;
use crate::autodiff::Cells;
use crate::diag::{Diagnostic, Result, Source};
use crate::dialects::{Gradients, Registry, Run};
use crate::frontend::script::compile_source;
use crate::ir::Type;
use crate::runtime::Program;
use crate::tensor::{Scalar, Tensor};
use crate::tools::limits::LimitOptions;
use crate::training::{Named, matches, parameters};
use crate::value::{Dict, Value};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::sync::Arc;

/// Options of `flambeau grad`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Options {
    #[command(subcommand)]
    action: Option<Action>,
    /// A .pt archive, TorchScript source or graph text
    #[arg(required = true, value_name = "FILE")]
    file: Option<PathBuf>,
    /// The function or method to differentiate
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    #[command(flatten)]
    inputs: InputOptions,
    /// By what: names of arguments and parameters, or patterns of names: 'x,conv1.*' [default: all that are floating point]
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Write the gradients by name: .npz, .npy, .safetensors or .json
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Put modules into training mode
    #[arg(long)]
    train: bool,
    /// Seed of the random generator and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    first: GradientOptions,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// Compile all derivatives and name those that do not compile; compare the gradients of recorded cases with differences
    Check {
        /// Case files with gradients (one JSON object a line) and case folders
        files: Vec<PathBuf>,
        /// Load a dialect definition file, or a file of derivatives (.grad)
        #[arg(long, value_name = "FILE")]
        dialect: Vec<PathBuf>,
    },
}

/// Runs the command; gives whether everything compiles.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    if let Some(Action::Check { files, dialect }) = &options.action {
        let toolkit = io.toolkit_with(dialect)?;
        let registry = toolkit.registry();
        let compiles = check(registry, io)?;
        return Ok((files.is_empty() || super::grad_check::run(files, registry, io)?) && compiles);
    }
    if let Some(output) = &options.output {
        outputs::check_name(output)?;
    }
    options.threads.set();
    let (stdout, printed) = io.program_output();
    let run = Run::new(stdout);
    run.seed(options.seed);
    let toolkit = io.toolkit_with(&options.first.dialect)?;
    let registry = toolkit.registry();
    let file = options.file.as_ref().ok_or_else(|| Diagnostic::usage("grad takes a file"))?;
    let mut loaded = load_shown(&io.path(file), &run, registry, io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = options.inputs.resolve(&loaded, &entry, io)?;
    io.message(&given.note().unwrap_or_default());
    loaded.program = options.first.transformed(&loaded.program, file, io)?;
    let program = loaded.program;
    let arguments = given.values(options.seed, io.directory)?;
    let wanted = wanted(&program, &entry, &options.wrt, &arguments)?;
    if options.train {
        crate::training::Modes::set(&program, true);
    }
    let answer = program.run(&entry, arguments, &run)?;
    let gradients = gradients(&answer, &wanted, &run, |note| io.message(note))?;
    io.print_kept(&printed);
    show(options, &wanted, &gradients, io)?;
    Ok(true)
}

/// What is differentiated by: arguments and parameters of which a pattern holds, all without patterns. They require gradients from
/// here on, and nothing else does. Fails where a pattern names none, or tensors that have no gradients.
pub(super) fn wanted(
    program: &Program,
    entry: &str,
    patterns: &[String],
    arguments: &[Value],
) -> Result<Vec<Named>> {
    let names = program.parameters(entry)?;
    let mut all: Vec<Named> = Vec::new();
    for (argument, value) in names.iter().zip(arguments) {
        if let Value::Tensor(tensor) = value {
            all.push((argument.name.to_string(), tensor.clone()));
        }
    }
    all.extend(parameters(program));
    let real = |t: &Tensor| t.dtype().is_floating() || t.dtype().is_complex();
    let mut out: Vec<Named> = Vec::new();
    for pattern in patterns {
        let found: Vec<&Named> = all.iter().filter(|(name, _)| matches(pattern, name)).collect();
        if found.is_empty() {
            let error =
                Diagnostic::usage(format!("--wrt {pattern}: no argument or parameter has such a name"));
            let names: Vec<&str> = all.iter().take(8).map(|(name, _)| name.as_str()).collect();
            return Err(error.hint(format!("there are {}", names.join(", "))));
        }
        if let Some((name, _)) = found.iter().find(|(name, t)| !real(t) && name == pattern) {
            return Err(Diagnostic::usage(format!(
                "--wrt {name}: only floating point and complex tensors have gradients"
            )));
        }
        for named in found.into_iter().filter(|(_, t)| real(t)) {
            if !out.iter().any(|(_, known)| known.same(&named.1)) {
                out.push(named.clone());
            }
        }
    }
    if patterns.is_empty() {
        out = all.iter().filter(|(_, t)| real(t)).cloned().collect();
    }
    for (_, tensor) in &all {
        if real(tensor) {
            tensor.set_requires_grad(false)?;
        }
    }
    out.iter().try_for_each(|(_, tensor)| tensor.set_requires_grad(true))?;
    Ok(out)
}

/// The gradients of the sum of all elements of all tensors of the answer.
/// `note` is reported where there are several elements.
pub(super) fn gradients(
    answer: &Value,
    wanted: &[Named],
    run: &Run,
    note: impl FnOnce(&str),
) -> Result<Vec<Option<Tensor>>> {
    let mut outputs = Vec::new();
    super::gradients::differentiable(answer, &mut outputs);
    if outputs.is_empty() {
        return Err(Diagnostic::input("the answer does not depend on what it is to be differentiated by")
            .hint("--wrt names arguments and parameters; integers and comparisons have no gradients"));
    }
    if outputs.len() > 1 || outputs.iter().any(|t| t.numel() != 1) {
        note("note: the answer is more than one number: these are the gradients of the sum of all of them\n");
    }
    let ones = |t: &Tensor| Tensor::full(t.dtype(), &t.sizes(), Scalar::Int(1)).map(Some);
    let cotangents = outputs.iter().map(ones).collect::<Result<Vec<_>>>()?;
    let inputs = Some(wanted.iter().map(|(_, tensor)| tensor.clone()).collect());
    let autograd = run.autograd().ok_or_else(|| Diagnostic::internal("a run without a tape"))?;
    let asked = Gradients { outputs, cotangents, inputs, allow_unused: true, ..Gradients::default() };
    autograd.gradients(&asked, run)
}

/// A table, and the numbers where they are few; or a file.
fn show(options: &Options, wanted: &[Named], gradients: &[Option<Tensor>], io: &mut Io<'_>) -> Result<()> {
    const FEW: usize = 16;
    if let Some(output) = &options.output {
        let all = Dict::new(Type::str(), Type::tensor());
        for ((name, _), gradient) in wanted.iter().zip(gradients) {
            if let Some(gradient) = gradient {
                all.insert(&Value::str(name.as_str()), Value::Tensor(gradient.detach()))?;
            }
        }
        let written = outputs::write(&io.path(output), &Value::Dict(all))?;
        io.message(&format!("{}: {written}\n", output.display()));
        return Ok(());
    }
    let mut table = Table::new(["name", "gradient", ">length", ">largest"]);
    let mut small = String::new();
    for ((name, tensor), gradient) in wanted.iter().zip(gradients) {
        let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
        let about = format!("{}[{}]", tensor.dtype().name(), sizes.join(","));
        let Some(gradient) = gradient else {
            table.row([name.clone(), about, "none".to_string(), String::new()]);
            continue;
        };
        let elements: Vec<f64> = gradient.to_scalars()?.iter().map(|x| x.to_complex().norm()).collect();
        let length = elements.iter().map(|x| x * x).sum::<f64>().sqrt();
        let largest = elements.iter().copied().fold(0.0, |a: f64, b| if b.is_nan() { b } else { a.max(b) });
        table.row([name.clone(), about, format!("{length:.6e}"), format!("{largest:.6e}")]);
        if gradient.numel() <= FEW {
            let text = crate::value::python_text::python_text(&Value::Tensor(gradient.detach()), false)?;
            small += &format!("{name} = {text}\n");
        }
    }
    io.print(&format!("{table}{small}"));
    Ok(())
}

/// Compiles all derivatives.
fn check(registry: &Arc<Registry>, io: &mut Io<'_>) -> Result<bool> {
    let (mut ops, mut functions, mut refused) = (0, 0, 0);
    for (op, texts) in Cells::of(registry).texts() {
        ops += 1;
        let texts = match texts {
            Ok(texts) => texts,
            Err(error) => {
                refused += 1;
                io.print(&format!("REFUSED {}: {}\n", op.full_name(), error.message()));
                continue;
            }
        };
        for text in texts {
            functions += 1;
            if let Err(error) = compile_source(registry, &Source::new("derivative", text.as_str())) {
                refused += 1;
                let line = error.report().span.as_ref().map_or(0, |span| span.line_column().0);
                let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default().trim();
                io.print(&format!("REFUSED {}: {}: `{line}`\n", op.full_name(), error.message()));
            }
        }
    }
    io.print(&format!("{ops} operators, {functions} functions, {refused} refused\n"));
    Ok(refused == 0)
}
