//! `flambeau translate`: a module or its fusion groups in another form.

use super::inputs::{self, InputOptions};
use super::io::Io;
use super::numerics::Numerics;
use super::threads::ThreadOptions;
use super::{opt, prepare, view};
use crate::autodiff::{self, Wanted};
use crate::backends;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Registry, Run, fusion, loops};
use crate::frontend::python_print;
use crate::ir::{Graph, Module, PrintOptions, Type, TypeKind};
use crate::lowering::Target;
use crate::lowering::record::is_lowered;
use crate::passes::manager::Settings;
use crate::runtime::{Program, typed};
use crate::tensor::{DType, Tensor};
use crate::tools::limits::LimitOptions;
use crate::value::Value;
use clap::{Args, ValueEnum};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Options of `flambeau translate`.
#[derive(Args, Debug)]
pub struct Options {
    /// Graph text, TorchScript source or a .pt archive; `-` is standard input
    #[arg(default_value = "-")]
    file: PathBuf,
    /// The form to print
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// Passes to run first [default: none for ir, mlir, dot, svg, html and json; the default pipeline for the others]
    #[arg(long, value_name = "PIPELINE")]
    passes: Option<String>,
    #[command(flatten)]
    numerics: Numerics,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    inputs: InputOptions,
    /// The function or method that inputs are for: kernels are specialized for them, and pictures show their sizes. Kernels without
    /// inputs are specialized for float32 of the sizes in their types
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    /// Show the times of ops as heat in html and json: a trace that `bench MODEL --profile=FILE` wrote. The passes are those of
    /// the trace, unless others are named
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    threads: ThreadOptions,
    /// GPU architecture for ptx
    #[arg(long, value_name = "SM", default_value = "sm_90")]
    arch: String,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// What to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Form {
    /// The module as graph text
    Ir,
    /// The module in MLIR's generic form, for mlir-opt and xdsl-opt with --allow-unregistered-dialect
    Mlir,
    /// The loops of each fusion group and kernel
    Loops,
    /// The graph that computes the gradients of each fusion group's inputs; without groups, those of the function's inputs
    Backward,
    /// LLVM IR of each fusion group and kernel
    Llvm,
    /// Assembly of this computer of each fusion group and kernel
    Asm,
    /// PTX of each fusion group and kernel
    Ptx,
    /// A picture for Graphviz
    Dot,
    /// A picture for documents: boxes for ops, lines with the types of values
    Svg,
    /// A page for the browser, in one file: search, blocks that open and close, details of each op
    Html,
    /// The module as data for other programs
    Json,
    /// TorchScript source
    Python,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    let toolkit = io.toolkit_with(&options.dialect)?;
    let registry = toolkit.registry();
    options.threads.set();
    let loaded = opt::read_loaded(&options.file, registry, io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = match options.inputs.any() {
        true => Some(options.inputs.resolve(&loaded, &entry, io)?.values(0, io.directory)?),
        false => None,
    };
    let plain = matches!(
        options.to,
        Form::Ir | Form::Mlir | Form::Dot | Form::Svg | Form::Html | Form::Json | Form::Python
    );
    let times = match &options.profile {
        Some(file) => Some(view::Times::parse(&io.read_text(file)?)?),
        None => None,
    };
    let usual = || match &times {
        Some(times) => times.passes.clone(),
        None if plain => String::new(),
        None => "default".into(),
    };
    let pipeline = options.passes.clone().unwrap_or_else(usual);
    let pipeline = options.numerics.checked_pipeline(&pipeline, io)?;
    let log = prepare::log_spec(None, toolkit.passes())?;
    let settings = Settings { log, ..Settings::default() };
    let name = options.file.display().to_string();
    let mut program = loaded.program;
    if let Some(arguments) = &given
        && options.to == Form::Ir
    {
        // Passes find out more where they know what comes in.
        let name = program.function(&entry).map_or(entry.clone(), |function| function.name.to_string());
        program = program.transformed(|module, _| {
            inputs::annotate(module, &name, arguments);
            Ok(())
        })?;
    }
    let program = prepare::transformed(&program, &pipeline, settings, &name, io.err)?;
    let module = program.module().clone();
    match options.to {
        Form::Ir => {
            module.check_text()?;
            opt::print_module(&module, false, io);
        }
        Form::Mlir => module.write_mlir(io.out, &PrintOptions::default())?,
        Form::Dot => io.print(&super::dot::module(&module)),
        Form::Svg => io.print(&view::svg(&view::model(&module, registry))),
        Form::Json | Form::Html => {
            let sizes = match &given {
                Some(arguments) => {
                    let run = options.limits.silent();
                    run.set_grad_enabled(false);
                    run.seed(0);
                    Some(view::Sizes::of_run(&program, &entry, arguments, &run)?)
                }
                None => None,
            };
            let looks =
                view::Looks { entry: program.function(&entry), sizes: sizes.as_ref(), times: times.as_ref() };
            let model = view::model_with(&module, registry, looks)?;
            let title = options.file.file_name().map_or("graph".into(), |name| name.to_string_lossy());
            io.print(&if options.to == Form::Json { view::json(&model) } else { view::html(&model, &title) });
        }
        Form::Python => io.print(&python(registry, &module)?),
        Form::Backward => {
            let mut groups = match &given {
                None => assumed(&module),
                Some(arguments) => met(&program, &entry, arguments)?,
            };
            if groups.is_empty() {
                groups.extend(whole(&program, &entry, given.as_deref()));
            }
            for (graph, inputs) in &groups {
                io.print(&backward_text(registry, graph, inputs)?);
            }
        }
        Form::Loops | Form::Llvm | Form::Asm | Form::Ptx => {
            let groups = match &given {
                None => assumed(&module),
                Some(arguments) => met(&program, &entry, arguments)?,
            };
            let kernels = written(&module);
            if groups.is_empty() && kernels.is_empty() {
                io.message("note: the module has no fusion group and no kernel\n");
            }
            for (name, graph) in kernels {
                io.print(&loops_text(options, graph, &name)?);
            }
            for (n, (graph, inputs)) in groups.iter().enumerate() {
                let text = kernel_text(options, registry, graph, inputs, n).map_err(|error| match given {
                    None => error.hint(
                        "the sizes of the inputs are not known here: give them with --input x=float32[1,3]",
                    ),
                    Some(_) => error,
                })?;
                io.print(&text);
            }
        }
    }
    Ok(true)
}

/// The module as TorchScript source. Several files stand one after the other, each under its name.
fn python(registry: &Registry, module: &Module) -> Result<String> {
    let roots = python_print::roots(module);
    let printed = python_print::print(registry, module, &roots, &[], Vec::new(), &|_| None)?;
    let mut out = String::new();
    for (package, text) in &printed.files {
        if printed.files.len() > 1 || !package.is_empty() {
            out.push_str(&format!("# code/{}.py\n", package.replace('.', "/")));
        }
        out.push_str(text.as_str());
    }
    Ok(out)
}

/// Functions of a module that are kernels already, with names that assemblers take. LLVM's passes drop a function
/// without a name, as nothing can call it.
fn written(module: &Module) -> Vec<(String, &Graph)> {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let kernels = module.functions.iter().filter(|(_, function)| loops::is_kernel(&function.graph));
    let named =
        |name: &str| if name.is_empty() { "kernel".to_owned() } else { name.chars().map(plain).collect() };
    kernels.map(|(name, function)| (named(name.as_str()), &function.graph)).collect()
}

/// A fusion group with inputs to specialize it for.
type Group = (Arc<Graph>, Vec<Value>);

/// Groups with inputs made up from their types: float32 and small sizes where a type is unknown.
fn assumed(module: &Module) -> Vec<Group> {
    let mut groups = Vec::new();
    for function in module.functions.values() {
        for op in function.graph.all_ops() {
            // What was lowered stands in the module as functions.
            if is_lowered(&function.graph, op) {
                continue;
            }
            if let Some(body) = fusion::subgraph(&function.graph, op) {
                let inputs = body.inputs().iter().map(|v| sample(body.ty(*v))).collect();
                groups.push((Arc::clone(body), inputs));
            }
        }
    }
    groups
}

fn sample(ty: &Type) -> Value {
    match ty.kind() {
        TypeKind::Int | TypeKind::Number => Value::Int(2),
        TypeKind::Float => Value::Float(0.5),
        TypeKind::Bool => Value::Bool(true),
        TypeKind::Tensor(t) => {
            let known =
                t.sizes.as_ref().and_then(|s| s.iter().map(|d| d.known()).collect::<Option<Vec<i64>>>());
            let sizes = known.unwrap_or_else(|| vec![8, 64]);
            Tensor::zeros(t.dtype.unwrap_or(DType::F32), &sizes).map_or(Value::None, Value::Tensor)
        }
        _ => Value::None,
    }
}

/// Groups with the inputs that they get when the program runs on the given arguments.
fn met(program: &Program, entry: &str, arguments: &[Value]) -> Result<Vec<Group>> {
    let run = Run::silent();
    let seen: Arc<Mutex<Vec<Group>>> = Arc::default();
    let sink = Arc::clone(&seen);
    run.observe_groups(Arc::new(move |graph, inputs| {
        if let Ok(mut seen) = sink.lock()
            && !seen.iter().any(|(g, _)| Arc::ptr_eq(g, graph))
        {
            seen.push((Arc::clone(graph), inputs.to_vec()));
        }
    }));
    program.run(entry, arguments.to_vec(), &run)?;
    let groups = seen.lock().map(|seen| seen.clone()).unwrap_or_default();
    Ok(groups)
}

/// A function as one group, with what it is called with.
fn whole(program: &Program, entry: &str, given: Option<&[Value]>) -> Option<Group> {
    let graph = Arc::new(program.function(entry)?.graph.clone());
    let inputs = match given {
        Some(arguments) => arguments.to_vec(),
        None => graph.inputs().iter().map(|v| sample(graph.ty(*v))).collect(),
    };
    Some((graph, inputs))
}

/// The backward of a graph by all its floating point inputs, every output having a gradient, as graph text.
fn backward_text(registry: &Arc<Registry>, graph: &Graph, inputs: &[Value]) -> Result<String> {
    let typed = typed(graph, inputs);
    let follows =
        |v: &Value| matches!(v, Value::Tensor(t) if t.dtype().is_floating() || t.dtype().is_complex());
    let by: Vec<bool> = inputs.iter().map(follows).collect();
    let of = vec![true; typed.outputs().len()];
    let backward = autodiff::backward(&typed, Wanted { inputs: &by, outputs: &of }, registry)?;
    Ok(backward.graph.to_text(&PrintOptions::bare()))
}

fn kernel_text(
    options: &Options,
    registry: &Registry,
    graph: &Arc<Graph>,
    inputs: &[Value],
    n: usize,
) -> Result<String> {
    let target = if options.to == Form::Ptx { Target::Gpu } else { Target::Cpu };
    let interp = Arc::new(backends::interp::Interp);
    let group = backends::FusedGroup::new(Arc::clone(graph), interp, Arc::default());
    let mut out = String::new();
    for (part, loops_graph) in group.loops_for(inputs, registry, target)?.iter().enumerate() {
        out.push_str(&loops_text(options, loops_graph, &format!("group_{n}_part_{part}"))?);
    }
    Ok(out)
}

/// A kernel in the form that is asked for.
fn loops_text(options: &Options, graph: &Graph, name: &str) -> Result<String> {
    match options.to {
        Form::Loops => Ok(graph.to_text(&PrintOptions::bare())),
        _ => machine_text(options, &loops::decode(graph)?, name),
    }
}

#[cfg(feature = "llvm")]
fn machine_text(options: &Options, kernel: &loops::Kernel, name: &str) -> Result<String> {
    match options.to {
        Form::Llvm => backends::llvm::llvm_ir(kernel, name),
        Form::Asm => backends::llvm::assembly(kernel, name),
        Form::Ptx => backends::llvm::ptx(kernel, name, &options.arch),
        _ => Err(Diagnostic::usage("this form has no machine text")),
    }
}

#[cfg(not(feature = "llvm"))]
fn machine_text(_: &Options, _: &loops::Kernel, _: &str) -> Result<String> {
    let error = Diagnostic::unsupported("this build has no LLVM: it was built without the feature `llvm`");
    Err(error.hint("build with `cargo build --release`, which has it"))
}
