//! `flambeau demo`: one model with its recorded answer, on one screen: what was loaded, the graph before and
//! after, the fusion groups, the answer beside PyTorch's, the time of a call.

use super::case::{self, Case};
use super::io::Io;
use super::numerics::Numerics;
use super::prepare;
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Run, fusion};
use crate::ir::{Graph, PrintOptions};
use crate::passes::manager::Settings;
use crate::runtime::Program;
use crate::tools::limits::LimitOptions;
use crate::tools::threads::ThreadOptions;
use crate::value::Value;
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Options of `flambeau demo`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive; next to it, FILE.json has arguments and PyTorch's answer
    file: PathBuf,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    numerics: Numerics,
    #[command(flatten)]
    threads: ThreadOptions,
    #[command(flatten)]
    pub(in crate::tools) limits: LimitOptions,
}

/// Lines of a graph that are shown.
const LINES: usize = 24;

/// Runs the command. True if the answer is PyTorch's.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<bool> {
    options.threads.set();
    let run = Run::default();
    run.set_grad_enabled(false);
    let path = io.path(&options.file);
    let start = Instant::now();
    let toolkit = io.toolkit_with(&options.dialect)?;
    let plain = toolkit.load_file(&path, &run)?;
    let loaded = start.elapsed();
    let recorded = recorded(&path)?;
    let (pipeline, name) =
        (options.numerics.pipeline("default", &toolkit)?, options.file.display().to_string());
    let program = prepare::transformed(&plain, &pipeline, Settings::default(), &name, io.err)?;
    let (Some(before), Some(after)) = (plain.function("forward"), program.function("forward")) else {
        return Err(Diagnostic::input(format!("{} has no method forward", options.file.display())));
    };
    let module = plain.module();
    heading(io, "loaded");
    io.print(&format!(
        "{}: {} classes, {} functions, {} ops, in {:.1} ms\n",
        options.file.display(),
        module.classes.len(),
        module.functions.len(),
        module.functions.values().map(|f| f.graph.op_count()).sum::<usize>(),
        loaded.as_secs_f64() * 1e3
    ));
    heading(io, "graph as saved");
    io.print(&shortened(&before.graph));
    heading(io, "graph as run");
    io.print(&shortened(&after.graph));
    show_groups(io, &after.graph);
    heading(io, "answer");
    let arguments = recorded.args.iter().map(case::decode).collect::<Result<Vec<Value>>>()?;
    let answer = program.run("forward", arguments.clone(), &run)?;
    let expected = recorded.returns.clone().unwrap_or_default();
    let verdict = case::compare(&expected, &answer, recorded.tolerance);
    let difference = largest_difference(&case::decode(&expected)?, &answer)?;
    io.print(&format!("flambeau  {}\nPyTorch   {}\n", brief(&answer)?, brief(&case::decode(&expected)?)?));
    io.print(&format!(
        "largest difference {difference:.2e}: {}\n",
        match &verdict {
            Ok(()) => "equal within tolerance".to_string(),
            Err(reason) => format!("NOT EQUAL: {reason}"),
        }
    ));
    heading(io, "time");
    io.print(&format!(
        "{:.1} us a call (minimum of 1,000)\n",
        fastest(&program, &arguments, &run)?.as_secs_f64() * 1e6
    ));
    Ok(verdict.is_ok())
}

/// Arguments and answer that lie beside the archive.
fn recorded(path: &Path) -> Result<Case> {
    let beside = path.with_extension("json");
    Case::read_all(&beside)?
        .into_iter()
        .next()
        .ok_or_else(|| Diagnostic::input(format!("{} holds no case", beside.display())))
}

fn heading(io: &mut Io<'_>, title: &str) {
    io.print(&format!("\n== {title} {}\n", "=".repeat(72usize.saturating_sub(title.len()))));
}

fn shortened(graph: &Graph) -> String {
    let text = graph.to_text(&PrintOptions::bare());
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() <= LINES {
        return text;
    }
    format!("{}\n  ... {} lines more\n", lines[..LINES].join("\n"), lines.len() - LINES)
}

fn show_groups(io: &mut Io<'_>, graph: &Graph) {
    heading(io, "fusion groups");
    let mut count = 0;
    for op in graph.all_ops() {
        if let Some(body) = fusion::subgraph(graph, op) {
            let kinds: Vec<&str> = body
                .block_ops(body.root())
                .map(|op| body.kind(op).base())
                .filter(|kind| *kind != "Constant")
                .collect();
            io.print(&format!("{count}: {} ops in one kernel: {}\n", kinds.len(), kinds.join(" ")));
            count += 1;
        }
    }
    if count == 0 {
        io.print("none\n");
    }
}

/// The tensors of a value, in order.
fn tensors(value: &Value) -> Vec<crate::tensor::Tensor> {
    match value {
        Value::Tensor(t) => vec![t.clone()],
        Value::Tuple(items) => items.items().iter().flat_map(tensors).collect(),
        Value::List(items) => items.items().iter().flat_map(tensors).collect(),
        _ => Vec::new(),
    }
}

fn largest_difference(expected: &Value, actual: &Value) -> Result<f64> {
    let mut largest = 0.0f64;
    for (a, b) in tensors(expected).iter().zip(&tensors(actual)) {
        let (a, b) = (a.to_vec_as::<f64>()?, b.to_vec_as::<f64>()?);
        largest = a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(largest, f64::max);
    }
    Ok(largest)
}

/// The first elements of the first tensor.
fn brief(value: &Value) -> Result<String> {
    let Some(first) = tensors(value).into_iter().next() else { return Ok(format!("{value:?}")) };
    let elements = first.to_vec_as::<f64>()?;
    let shown: Vec<String> = elements.iter().take(6).map(|x| format!("{x:9.6}")).collect();
    Ok(format!("{:?} [{} ...]", first.sizes().as_slice(), shown.join(" ")))
}

fn fastest(program: &Program, arguments: &[Value], run: &Run) -> Result<Duration> {
    let mut best = Duration::MAX;
    for _ in 0..1000 {
        let start = Instant::now();
        program.run("forward", arguments.to_vec(), run)?;
        best = best.min(start.elapsed());
    }
    Ok(best)
}
