//! `flambeau explain`: what becomes of a call: the plan that was made for its arguments, op by op with time and bytes, and
//! where strides had to be restored, its guards, what it has folded, the borders of its groups, where types are lost, its memory; or why there is no plan.

mod borders;
mod folded;
mod guards;
mod memory;
mod untyped;

use super::check::{fusion_json, plans_json};
use super::grad;
use super::inputs::{self, InputOptions};
use super::io::Io;
use super::load::load_shown;
use super::making;
use super::numerics::Numerics;
use super::observe::{Event, Watch, kernel_name};
use super::prepare::{self, ChangeOptions, DeviceOptions, GuardOptions, KeptOptions, StrategyOptions};
use super::table::{Table, bytes, time};
use super::threads::ThreadOptions;
use super::trace::bytes_of;
use crate::diag::Result;
use crate::dialects::fusion::{self, layer};
use crate::dialects::{GraphId, Run};
use crate::ir::{Graph, Module, OpId, Symbol};
use crate::passes::manager::Settings;
use crate::passes::{Context, why_outside};
use crate::runtime::Program;
use clap::Args;
use folded::Folded;
pub use guards::to_json as guard_json;
use hashbrown::{HashMap, HashSet};
use memory::{Memory, Trace};
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Calls before those that are examined.
const WARMUP: usize = 3;
/// Calls that are examined; times are means of them.
const CALLS: u32 = 5;

/// Options of `flambeau explain`.
#[derive(Args, Debug)]
pub struct Options {
    /// A .pt archive, TorchScript source or graph text
    file: PathBuf,
    /// The function or method to call
    #[arg(long, value_name = "NAME", default_value = "forward")]
    entry: String,
    #[command(flatten)]
    inputs: InputOptions,
    /// Call it with other inputs too, before the calls that are examined: words as for --input, once for each call. Guards that miss
    /// then show what they expected and what they found
    #[arg(long, value_name = "WORDS")]
    again: Vec<String>,
    /// Call it with other inputs first, as for --again: a plan that leaves sizes open is made after plans for some
    #[arg(long, value_name = "WORDS")]
    before: Vec<String>,
    /// Calls with their backward, of gradients by what bears these names: 'x,conv1.*'
    #[arg(long, value_name = "NAME,...", value_delimiter = ',')]
    wrt: Vec<String>,
    /// Load a dialect definition file
    #[arg(long, value_name = "FILE")]
    dialect: Vec<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    guards: GuardOptions,
    #[command(flatten)]
    strategy: StrategyOptions,
    #[command(flatten)]
    kept: KeptOptions,
    #[command(flatten)]
    numerics: Numerics,
    #[command(flatten)]
    threads: ThreadOptions,
    /// Seed of the random generator, and of the numbers of --input
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Log passes, including those that make plans, and under `fusion` the decisions about fusion groups:
    /// 'simplify:>assign-layouts' [default: FLAMBEAU_LOG]
    #[arg(long, value_name = "SPEC")]
    log: Option<String>,
    #[command(flatten)]
    changes: ChangeOptions,
    /// Print the graph of the plan too
    #[arg(long)]
    graph: bool,
    /// Print one JSON object; times are in microseconds
    #[arg(long)]
    json: bool,
}

/// What an op did in the calls that were examined.
#[derive(Clone, Copy, Default)]
struct Cost {
    time: Duration,
    /// Of the tensors that it gave in one call.
    bytes: u64,
}

/// What was seen in the calls that were examined.
#[derive(Default)]
struct Seen {
    /// By graph and op.
    costs: HashMap<(GraphId, u32), Cost>,
    /// Graphs that ran.
    graphs: HashSet<GraphId>,
    /// The last call of each.
    traces: HashMap<GraphId, Trace>,
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
    let parse = |text: &String, io: &mut Io<'_>| {
        let words = InputOptions { input: vec![text.clone()], args: Vec::new() };
        words.resolve(&loaded, &entry, io)
    };
    let before = options.before.iter().map(|text| parse(text, io)).collect::<Result<Vec<_>>>()?;
    let others = options.again.iter().map(|text| parse(text, io)).collect::<Result<Vec<_>>>()?;
    let name = options.file.display().to_string();
    let log = prepare::log_spec(options.log.as_deref(), toolkit.passes())?;
    let limits = options.changes.limits(toolkit.passes())?;
    let settings =
        Settings { log: log.clone(), limits: limits.clone(), ..prepare::called(&loaded.program, &entry) };
    let program = prepare::transformed(&loaded.program, &pipeline, settings, &name, io.err)?;
    let program = prepare::placed(program, options.device.open(io)?.as_ref());
    let program = options.guards.apply(options.strategy.planned(program));
    let program = options.kept.apply(program).logging(&log).limiting(&limits);
    let call = |given: &inputs::Inputs, run: &Run, io: &Io<'_>| {
        let arguments = given.values(options.seed, io.directory)?;
        if options.wrt.is_empty() {
            return program.run(&entry, arguments, run).map(drop);
        }
        let wanted = grad::wanted(&program, &entry, &options.wrt, &arguments)?;
        let answer = program.run(&entry, arguments, run)?;
        grad::gradients(&answer, &wanted, run, |_| ()).map(drop)
    };
    before.iter().try_for_each(|other| call(other, &run, io))?;
    if !others.is_empty() {
        call(&given, &run, io)?;
    }
    others.iter().try_for_each(|other| call(other, &run, io))?;
    let seen = look(&run, || call(&given, &run, io));
    io.message(&program.take_log());
    let seen = seen?;
    let seen = seen.lock();
    match options.json {
        true => io.print(&format!("{}\n", json(&program, &seen))),
        false => io.print(&report(&program, &seen, options.graph)),
    }
    options.guards.check(&program)
}

/// What becomes of a call: some calls warm up, and the plans, ops and kernels of the next are examined. `call` runs the program in `run`.
/// Fails where a call does.
pub fn of_calls(
    program: &Program,
    run: &Run,
    with_graph: bool,
    call: impl FnMut() -> Result<()>,
) -> Result<String> {
    let seen = look(run, call)?;
    let seen = seen.lock();
    Ok(report(program, &seen, with_graph))
}

/// What is seen in some calls, after others that warm up.
fn look(run: &Run, mut call: impl FnMut() -> Result<()>) -> Result<Arc<Mutex<Seen>>> {
    for _ in 0..WARMUP {
        call()?;
    }
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let sink = Arc::clone(&seen);
    run.watch(Some(Watch::of_plans(move |at, event| take_in(&mut sink.lock(), at.graph, &event))));
    let watched = (0..CALLS).try_for_each(|_| call());
    run.watch(None);
    watched.map(|()| seen)
}

fn take_in(seen: &mut Seen, graph: Option<GraphId>, event: &Event<'_>) {
    let Some(graph) = graph else { return };
    seen.graphs.insert(graph);
    let (op, results, begin) = match event {
        Event::Enters { arguments } => {
            seen.traces.insert(graph, Trace::of(arguments));
            return;
        }
        Event::Ran { op, results, begin } => (op, results, begin),
        Event::Leaves => return,
    };
    if let Some(trace) = seen.traces.get_mut(&graph) {
        trace.ran(*op, results);
    }
    let cost = seen.costs.entry((graph, *op)).or_default();
    cost.time += begin.elapsed();
    cost.bytes = bytes_of(results);
}

/// Plans for other arguments than those of the calls are left out.
fn report(program: &Program, seen: &Seen, with_graph: bool) -> String {
    let mut out = program.plan_report().to_text();
    let (makings, guards) = (program.plan_makings(), program.guards());
    for (function, graph) in program.plan_graphs() {
        let id = GraphId::of(&graph);
        if !seen.graphs.contains(&id) {
            continue;
        }
        out.push_str(&of_plan(function, &graph, seen));
        out.push_str(&memory_of(&graph, seen).to_text(&graph));
        out.push_str(&Folded::of(&graph, makings.get(&id).map(|made| &**made)).to_text());
        out.push_str(&borders::to_text(&borders::of(&graph, program.registry())));
        out.push_str(&untyped::to_text(&untyped::of(&graph, program.registry())));
        out.push_str(&guards::to_text("guards", guards.iter().filter(|guard| guard.plan == Some(id))));
        if let Some(made) = makings.get(&id) {
            out.push_str(&making::text(made));
        }
        if with_graph {
            out.push_str(&format!("\n{graph}"));
        }
    }
    let unplanned = guards.iter().filter(|guard| guard.plan.is_none());
    out.push_str(&guards::to_text("guards of functions that run without plans", unplanned));
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
        if layer::is_restore(graph.kind(op).as_str()) {
            borders.extend(border(graph, op));
        }
    }
    out.push_str(&table.to_string());
    let sum = format!("all ops give {} in {}\n", bytes(total.bytes), time(total.time.as_secs_f64()));
    out.push_str(&sum);
    borders.iter().for_each(|border| out.push_str(border));
    out
}

fn memory_of(graph: &Graph, seen: &Seen) -> Memory {
    let trace = seen.traces.get(&GraphId::of(graph));
    trace.map(|trace| Memory::of(graph, trace)).unwrap_or_default()
}

/// All of it for programs.
fn json(program: &Program, seen: &Seen) -> Json {
    let guards = program.guards();
    let makings = program.plan_makings();
    let plans =
        program.plan_graphs().into_iter().filter(|(_, graph)| seen.graphs.contains(&GraphId::of(graph)));
    let plan = |(function, graph): (Symbol, Arc<Graph>)| {
        let id = GraphId::of(&graph);
        let input = |value: &crate::ir::ValueId| json!({"name": graph.display_name(*value), "type": graph.ty(*value).to_string()});
        let made = makings.get(&id).map(|made| &**made);
        json!({
            "function": function.as_str(),
            "inputs": graph.inputs().iter().map(input).collect::<Vec<Json>>(),
            "ops": ops_json(&graph, program, seen),
            "guards": guards.iter().filter(|guard| guard.plan == Some(id)).map(guards::to_json).collect::<Vec<Json>>(),
            "borders": borders::to_json(&borders::of(&graph, program.registry())),
            "untyped": untyped::to_json(&untyped::of(&graph, program.registry())),
            "folded": Folded::of(&graph, made).to_json(),
            "memory": memory_of(&graph, seen).to_json(),
        })
    };
    json!({
        "plans": plans.map(plan).collect::<Vec<Json>>(),
        "calls": plans_json(&program.plan_report()),
        "guards_without_plans":
            guards.iter().filter(|guard| guard.plan.is_none()).map(guards::to_json).collect::<Vec<Json>>(),
        "fusion": fusion_json(&program.fusion_report()),
        "making": making::json(program),
    })
}

/// The ops of a plan that ran, each with the reason why it is in no group.
fn ops_json(graph: &Graph, program: &Program, seen: &Seen) -> Vec<Json> {
    let (id, module) = (GraphId::of(graph), Module::default());
    let context = Context::new(program.registry(), &module);
    let op = |op: OpId| {
        let cost = seen.costs.get(&(id, op.index() as u32))?;
        let kernel = fusion::subgraph(graph, op).map(|body| kernel_name(body));
        Some(json!({"op": graph.kind(op).as_str(), "kernel": kernel, "result": result(graph, op),
            "bytes": cost.bytes, "us": (cost.time / CALLS).as_secs_f64() * 1e6,
            "outside": why_outside(graph, &context, op)}))
    };
    graph.all_ops().into_iter().filter_map(op).collect()
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
