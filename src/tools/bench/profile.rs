//! Where the time of a call goes: by kind of op, by kernel, and as a trace for Perfetto.

use super::Options;
use super::subject::Ready;
use crate::diag::Result;
use crate::dialects::{GraphId, Run, fusion};
use crate::ir::{Attr, Graph};
use crate::tools::observe::{At, Event, Watch, kernel_name};
use crate::tools::table::{Table, time};
use hashbrown::HashMap;
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that are examined, at most.
const CALLS: usize = 50;
/// Steps that a trace shows.
const MAX_EVENTS: usize = 200_000;
/// Rows of a table.
const ROWS: usize = 20;

/// What a step was.
#[derive(Clone, Debug)]
struct Place {
    /// The function, with the ops whose bodies lead to the graph: `forward/12`.
    function: String,
    kind: String,
    /// What a fused group computes: `mul+add+relu`.
    kernel: Option<String>,
    scope: Option<String>,
}

/// A step of the call that the trace shows.
struct Shown {
    op: Option<(GraphId, u32)>,
    begin: Duration,
    time: Duration,
}

#[derive(Default)]
struct Record {
    begin: Option<Instant>,
    /// Times in all calls, by op.
    totals: HashMap<(GraphId, u32), (usize, Duration)>,
    /// Functions that run, and when they began.
    open: Vec<(Option<GraphId>, Duration)>,
    /// The last call.
    shown: Vec<Shown>,
    functions: Vec<(GraphId, Duration, Duration)>,
}

/// What was seen.
pub(super) struct Profile {
    model: String,
    passes: String,
    calls: usize,
    call: Duration,
    places: HashMap<(GraphId, u32), Place>,
    names: HashMap<GraphId, String>,
    record: Record,
}

/// Calls the program before a watcher's eyes.
pub(super) fn take(options: &Options, ready: &Ready, run: &Run) -> Result<Profile> {
    let record: Arc<Mutex<Record>> = Arc::default();
    let sink = Arc::clone(&record);
    let see = move |at: &At<'_>, event: Event<'_>| sink.lock().take_in(at.graph, event);
    // A trace names ops of the program's functions, which `translate` shows with their times.
    let is_trace = options.profile.as_ref().is_some_and(Option::is_some);
    run.watch(Some(if is_trace { Watch::new(see) } else { Watch::of_plans(see) }));
    let end = Instant::now() + Duration::from_secs_f64(options.seconds.clamp(0.0, 3600.0));
    let (mut calls, mut total, mut result) = (0, Duration::ZERO, Ok(()));
    while calls < CALLS && (calls == 0 || Instant::now() < end) && result.is_ok() {
        record.lock().start();
        match ready.call(run) {
            Ok(time) => total += time,
            Err(error) => result = Err(error),
        }
        calls += 1;
    }
    run.watch(None);
    result?;
    let mut map = Map::default();
    for function in ready.program.module().functions.values() {
        map.graph(&function.graph, function.name.as_str());
    }
    for (function, graph) in ready.program.plan_graphs() {
        map.graph(&graph, &format!("the plan of {function}"));
    }
    let record = std::mem::take(&mut *record.lock());
    Ok(Profile {
        model: options.files.first().map(|file| file.display().to_string()).unwrap_or_default(),
        passes: ready.passes.clone(),
        calls,
        call: total / calls.max(1) as u32,
        places: map.places,
        names: map.names,
        record,
    })
}

impl Record {
    /// Another call begins.
    fn start(&mut self) {
        self.begin = Some(Instant::now());
        self.open.clear();
        self.shown.clear();
        self.functions.clear();
    }

    fn take_in(&mut self, graph: Option<GraphId>, event: Event<'_>) {
        let Some(start) = self.begin else { return };
        match event {
            Event::Enters { .. } => self.open.push((graph, start.elapsed())),
            Event::Leaves => {
                if let Some((Some(graph), begin)) = self.open.pop() {
                    self.functions.push((graph, begin, start.elapsed().saturating_sub(begin)));
                }
            }
            Event::Ran { op, begin, .. } => {
                let time = begin.elapsed();
                let key = graph.map(|graph| (graph, op));
                if let Some(key) = key {
                    let (count, total) = self.totals.entry(key).or_default();
                    *count += 1;
                    *total += time;
                }
                if self.shown.len() < MAX_EVENTS {
                    self.shown.push(Shown { op: key, begin: begin.saturating_duration_since(start), time });
                }
            }
        }
    }
}

/// What ops and graphs are called.
#[derive(Default)]
struct Map {
    places: HashMap<(GraphId, u32), Place>,
    names: HashMap<GraphId, String>,
}

impl Map {
    fn graph(&mut self, graph: &Graph, name: &str) {
        // Graphs nest in each other as deep as ops hold them.
        let mut work: Vec<(&Graph, String)> = vec![(graph, name.to_string())];
        while let Some((graph, name)) = work.pop() {
            let id = GraphId::of(graph);
            for op in graph.all_ops() {
                let kernel = fusion::subgraph(graph, op).map(|body| kernel_name(body));
                let place = Place {
                    function: name.clone(),
                    kind: graph.kind(op).as_str().to_string(),
                    kernel,
                    scope: graph.location(op).and_then(|l| l.scope).map(|scope| scope.as_str().to_string()),
                };
                self.places.insert((id, op.index() as u32), place);
                let inner = graph.attrs(op).iter().filter_map(|(_, attr)| Attr::as_graph(attr));
                work.extend(inner.map(|inner| (&**inner, format!("{name}/{}", op.index()))));
            }
            self.names.insert(id, name);
        }
    }
}

impl Profile {
    /// Sums by some name of the op, the longest first.
    fn sums(&self, name: impl Fn(&Place) -> Option<String>) -> Vec<(String, usize, Duration)> {
        let mut sums: IndexMap<String, (usize, Duration)> = IndexMap::new();
        for (key, (count, time)) in &self.record.totals {
            if let Some(name) = self.places.get(key).and_then(&name) {
                let sum = sums.entry(name).or_default();
                sum.0 += count;
                sum.1 += *time;
            }
        }
        let mut sums: Vec<(String, usize, Duration)> =
            sums.into_iter().map(|(n, (c, t))| (n, c, t)).collect();
        sums.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        sums
    }

    fn by_op(&self) -> Vec<(String, usize, Duration)> {
        self.sums(|place| Some(place.kind.clone()))
    }

    fn by_kernel(&self) -> Vec<(String, usize, Duration)> {
        self.sums(|place| place.kernel.clone())
    }

    /// Two tables for people.
    pub(super) fn tables(&self) -> String {
        let whole: f64 = self.by_op().iter().map(|(.., time)| time.as_secs_f64()).sum();
        let calls = self.calls as f64;
        let table = |title: &str, sums: &[(String, usize, Duration)]| {
            let mut table = Table::new([title, ">runs a call", ">time a call", ">share"]);
            for (name, count, total) in sums.iter().take(ROWS) {
                let seconds = total.as_secs_f64();
                table.row([
                    name.clone(),
                    format!("{:.0}", *count as f64 / calls),
                    time(seconds / calls),
                    format!("{:.1} %", 100.0 * seconds / whole.max(1e-12)),
                ]);
            }
            if let Some(rest) = sums.len().checked_sub(ROWS + 1) {
                table.row([format!("and {} more", rest + 1)]);
            }
            table.to_string()
        };
        let (ops, kernels) = (self.by_op(), self.by_kernel());
        let mut out = format!(
            "{}: {} calls of {} each under observation\n\n{}",
            self.model,
            self.calls,
            time(self.call.as_secs_f64()),
            table("op", &ops)
        );
        if !kernels.is_empty() {
            out += &format!("\n{}", table("kernel", &kernels));
        }
        out
    }

    /// The sums, times in microseconds a call.
    pub(super) fn to_json(&self) -> Json {
        let calls = self.calls.max(1) as f64;
        let rows = |sums: Vec<(String, usize, Duration)>| -> Vec<Json> {
            let row = |(name, count, time): &(String, usize, Duration)| json!({"name": name, "runs": *count as f64 / calls, "us": time.as_secs_f64() * 1e6 / calls});
            sums.iter().map(row).collect()
        };
        json!({"calls": self.calls, "call_us": self.call.as_secs_f64() * 1e6, "ops": rows(self.by_op()),
            "kernels": rows(self.by_kernel())})
    }

    /// The last call as a trace of the form that chrome://tracing and Perfetto read.
    pub(super) fn trace(&self) -> String {
        let us = |time: Duration| time.as_secs_f64() * 1e6;
        let mut events = Vec::new();
        for (graph, begin, time) in &self.record.functions {
            let Some(name) = self.names.get(graph) else { continue };
            events
                .push(json!({"name": name, "cat": "function", "ph": "X", "ts": us(*begin), "dur": us(*time),
                "pid": 1, "tid": 1}));
        }
        for shown in &self.record.shown {
            let Some((key, place)) = shown.op.and_then(|key| Some((key, self.places.get(&key)?))) else {
                continue;
            };
            let name = place.kernel.as_ref().unwrap_or(&place.kind);
            let mut args = json!({"function": place.function, "op": key.1, "kind": place.kind});
            if let Some(scope) = &place.scope {
                args["scope"] = json!(scope);
            }
            events.push(
                json!({"name": name, "cat": "op", "ph": "X", "ts": us(shown.begin), "dur": us(shown.time),
                "pid": 1, "tid": 1, "args": args}),
            );
        }
        let about = json!({"model": self.model, "passes": self.passes});
        format!("{}\n", json!({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}))
    }
}
