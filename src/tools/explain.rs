//! `flambeau explain`: what becomes of a call: the plan that was made for its arguments, op by op with time and bytes, and
//! where strides had to be restored; or why there is no plan.

use super::grad;
use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::load_shown;
use super::making;
use super::numerics::Numerics;
use super::observe::{Event, Watch, kernel_name};
use super::prepare::{self, PlanOptions};
use super::table::{Table, bytes, time};
use super::threads::ThreadOptions;
use crate::diag::Result;
use crate::dialects::fusion::{self, layer};
use crate::dialects::{GraphId, Run};
use crate::ir::{Graph, OpId, Symbol};
use crate::passes::manager::Settings;
use crate::runtime::Program;
use crate::value::Value;
use clap::Args;
use hashbrown::{HashMap, HashSet};
use parking_lot::Mutex;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Calls before those that are looked at.
const WARMUP: usize = 3;
/// Calls that are looked at; times are means of them.
const CALLS: u32 = 5;

/// Words of `flambeau explain`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    #[command(flatten)]
    inputs: InputOptions,
    /// Calls with their backward, of gradients by what bears these names: 'x,conv1.*'
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    numerics: Numerics,
    #[command(flatten)]
    threads: ThreadOptions,
    /// Seed of the random generator, and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Print the graph of the plan too
    #[arg(long)]
    graph: bool,
}

/// What an op did in the calls that were looked at.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    /// Of the tensors that it gave in one call.
    bytes: u64,
}

/// What was seen in the calls that were looked at.
#[derive(Default)]
struct Seen {
    /// By graph and op.
    costs: HashMap<(GraphId, u32), Cost>,
    /// Graphs that ran.
    graphs: HashSet<GraphId>,
}

/// Runs the command.
pub fn run(options: &Options, io: &mut Io<'_>) -> Result<()> {
    options.threads.set();
    let run = Run::silent();
    run.set_grad_enabled(!options.wrt.is_empty());
    run.seed(options.seed);
    let pipeline = options.numerics.checked_pipeline(prepare::DEFAULT, io)?;
    let toolkit = io.toolkit_with(&options.dialect)?;
    let registry = toolkit.registry();
    let loaded = load_shown(&io.path(&options.file), &run, registry, io)?;
    let entry = inputs::entry(&options.entry, &loaded.program).to_string();
    let given = options.inputs.resolve(&loaded, &entry, io)?;
    io.message(&given.note().unwrap_or_default());
    let name = options.file.display().to_string();
    let program = prepare::transformed(&loaded.program, &pipeline, Settings::default(), &name, io.err)?;
    let program = PlanOptions::default().apply(program, prepare::DEFAULT);
    let call = |run: &Run, io: &Io<'_>| {
        let arguments = given.values(options.seed, io.directory)?;
        if options.wrt.is_empty() {
            return program.run(&entry, arguments, run).map(drop);
        }
        let wanted = grad::wanted(&program, &entry, &options.wrt, &arguments)?;
        let answer = program.run(&entry, arguments, run)?;
        grad::gradients(&answer, &wanted, run, |_| ()).map(drop)
    };
    io.print(&of_calls(&program, &run, options.graph, || call(&run, io))?);
    Ok(())
}

/// What becomes of a call: some calls warm up, and the plans, ops and kernels of the next are looked at. `call` runs the program in `run`.
/// Fails where a call does.
pub fn of_calls(
    program: &Program,
    run: &Run,
    with_graph: bool,
    mut call: impl FnMut() -> Result<()>,
) -> Result<String> {
    for _ in 0..WARMUP {
        call()?;
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let sink = Arc::clone(&seen);
    run.watch(Some(Watch::of_plans(move |at, event| take_in(&mut sink.lock(), at.graph, &event))));
    let watched = (0..CALLS).try_for_each(|_| call());
    run.watch(None);
    watched?;
    let seen = seen.lock();
    Ok(report(program, &seen, with_graph))
}

fn take_in(seen: &mut Seen, graph: Option<GraphId>, event: &Event<'_>) {
    let Some(graph) = graph else { return };
    seen.graphs.insert(graph);
    let Event::Ran { op, results, begin } = event else { return };
    let cost = seen.costs.entry((graph, *op)).or_default();
    cost.time += begin.elapsed();
    cost.bytes = results.iter().map(tensor_bytes).sum();
}

fn tensor_bytes(value: &Value) -> u64 {
    match value {
        Value::Tensor(t) => (t.numel() as u64).saturating_mul(t.dtype().size() as u64),
        _ => 0,
    }
}

/// Plans for other arguments than those of the calls are left out.
fn report(program: &Program, seen: &Seen, with_graph: bool) -> String {
    let mut out = program.plan_report().to_text();
    let makings = program.plan_makings();
    for (function, graph) in program.plan_graphs() {
        let id = GraphId::of(&graph);
        if !seen.graphs.contains(&id) {
            continue;
        }
        out.push_str(&of_plan(function, &graph, seen));
        if let Some(made) = makings.get(&id) {
            out.push_str(&making::text(made));
        }
        if with_graph {
            out.push_str(&format!("\n{graph}"));
        }
    }
    out.push_str(&program.fusion_report().to_text());
    out
}

/// The ops of a plan that ran, and where strides are restored.
fn of_plan(function: Symbol, graph: &Graph, seen: &Seen) -> String {
    let mut out = format!("\nthe plan of {function} for\n");
    for input in graph.inputs() {
        out.push_str(&format!("  %{} : {}\n", graph.display_name(*input), graph.ty(*input)));
    }
    let id = GraphId::of(graph);
    let mut table = Table::new(["op", "kernel", "result", ">bytes", ">time"]);
    let (mut total, mut borders) = (Cost::default(), Vec::new());
    for op in graph.all_ops() {
        let Some(cost) = seen.costs.get(&(id, op.index() as u32)) else { continue };
        let mean = cost.time / CALLS;
        total = Cost { time: total.time + mean, bytes: total.bytes + cost.bytes };
        let kernel = fusion::subgraph(graph, op).map(|body| kernel_name(body)).unwrap_or_default();
        let cells = [graph.kind(op).as_str().to_string(), kernel, result(graph, op)];
        table.row(cells.into_iter().chain([bytes(cost.bytes), time(mean.as_secs_f64())]));
        if graph.kind(op) == layer::RESTORE {
            borders.extend(border(graph, op));
        }
    }
    out.push_str(&table.to_string());
    let sum = format!("all ops give {} in {}\n", bytes(total.bytes), time(total.time.as_secs_f64()));
    out.push_str(&sum);
    borders.iter().for_each(|border| out.push_str(border));
    out
}

/// Name and sizes of the first result.
fn result(graph: &Graph, op: OpId) -> String {
    let Some(value) = graph.result(op, 0) else { return String::new() };
    format!("%{} : {}", graph.display_name(value), graph.ty(value))
}

/// Who sees the strides that an op restores.
fn border(graph: &Graph, op: OpId) -> Option<String> {
    let (value, restored) = (graph.operand(op, 0)?, graph.result(op, 0)?);
    let user = graph.uses(restored).next().map(|used| match graph.terminated_block(used.op) {
        Some(_) => "the caller".to_string(),
        None => graph.kind(used.op).as_str().to_string(),
    })?;
    Some(format!("  the strides of %{} are restored for {user}\n", graph.display_name(value)))
}
