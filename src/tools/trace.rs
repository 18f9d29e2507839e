//! A call as a trace of the form that chrome://tracing and Perfetto read: functions, plans and ops, each with its time, ops with kernel,
//! result and bytes.

use super::observe::{Event, kernel_name};
use crate::dialects::{GraphId, fusion};
use crate::ir::{Attr, Graph};
use crate::runtime::Program;
use crate::value::Value;
use hashbrown::HashMap;
use serde_json::json;
use std::time::{Duration, Instant};

/// Steps that a trace shows.
const MAX_EVENTS: usize = 200_000;

/// What a step was.
#[derive(Clone, Debug)]
pub struct Place {
    /// The function, with the ops whose bodies lead to the graph: `forward/12`.
    function: String,
    /// Whether the graph is that of a plan.
    planned: bool,
    /// The op.
    pub kind: String,
    /// What a fused group computes: `mul+add+relu`.
    pub kernel: Option<String>,
    /// Name and type of the first result.
    result: Option<String>,
    scope: Option<String>,
}

/// A step of the call that the trace shows.
struct Shown {
    op: Option<(GraphId, u32)>,
    begin: Duration,
    time: Duration,
    /// Of the tensors that it gave.
    bytes: u64,
}

/// What happens in calls, as a watcher reports it.
#[derive(Default)]
pub struct Record {
    begin: Option<Instant>,
    /// Times in all calls, by op.
    totals: HashMap<(GraphId, u32), (usize, Duration)>,
    /// Functions that run, and when they began.
    open: Vec<(Option<GraphId>, Duration)>,
    /// The last call.
    shown: Vec<Shown>,
    /// Steps of it that are too many to be shown.
    left_out: usize,
    functions: Vec<(GraphId, Duration, Duration)>,
}

impl Record {
    /// Another call begins.
    pub fn start(&mut self) {
        self.begin = Some(Instant::now());
        self.open.clear();
        self.shown.clear();
        self.left_out = 0;
        self.functions.clear();
    }

    /// Times in all calls, by op: how often it ran, and how long.
    pub fn totals(&self) -> &HashMap<(GraphId, u32), (usize, Duration)> {
        &self.totals
    }

    /// An event of a call.
    pub fn take_in(&mut self, graph: Option<GraphId>, event: Event<'_>) {
        let Some(start) = self.begin else { return };
        match event {
            Event::Enters { .. } => self.open.push((graph, start.elapsed())),
            Event::Leaves => {
                if let Some((Some(graph), begin)) = self.open.pop() {
                    self.functions.push((graph, begin, start.elapsed().saturating_sub(begin)));
                }
            }
            Event::Ran { op, begin, results } => {
                let time = begin.elapsed();
                let key = graph.map(|graph| (graph, op));
                if let Some(key) = key {
                    let (count, total) = self.totals.entry(key).or_default();
                    *count += 1;
                    *total += time;
                }
                if self.shown.len() < MAX_EVENTS {
                    let (begin, bytes) = (begin.saturating_duration_since(start), bytes_of(results));
                    self.shown.push(Shown { op: key, begin, time, bytes });
                } else {
                    self.left_out += 1;
                }
            }
        }
    }
}

/// Bytes of the tensors among some values.
pub fn bytes_of(values: &[Value]) -> u64 {
    let bytes = |value: &Value| match value {
        Value::Tensor(t) => (t.numel() as u64).saturating_mul(t.dtype().size() as u64),
        _ => 0,
    };
    values.iter().map(bytes).fold(0, u64::saturating_add)
}

/// What ops and graphs of a program are called.
#[derive(Default)]
pub struct Names {
    places: HashMap<(GraphId, u32), Place>,
    graphs: HashMap<GraphId, String>,
}

impl Names {
    /// Of the functions of a program and of the plans that it has now.
    pub fn of(program: &Program) -> Names {
        let mut names = Names::default();
        for function in program.module().functions.values() {
            names.graph(&function.graph, function.name.as_str(), false);
        }
        for (function, graph) in program.plan_graphs() {
            names.graph(&graph, &format!("the plan of {function}"), true);
        }
        names
    }

    /// What an op is.
    pub fn place(&self, op: &(GraphId, u32)) -> Option<&Place> {
        self.places.get(op)
    }

    fn graph(&mut self, graph: &Graph, name: &str, planned: bool) {
        // Graphs nest in each other as deep as ops hold them.
        let mut work: Vec<(&Graph, String)> = vec![(graph, name.to_string())];
        while let Some((graph, name)) = work.pop() {
            let id = GraphId::of(graph);
            for op in graph.all_ops() {
                let kernel = fusion::subgraph(graph, op).map(|body| kernel_name(body));
                let result = graph.result(op, 0);
                let place = Place {
                    function: name.clone(),
                    planned,
                    kind: graph.kind(op).as_str().to_string(),
                    kernel,
                    result: result
                        .map(|value| format!("%{} : {}", graph.display_name(value), graph.ty(value))),
                    scope: graph.location(op).and_then(|l| l.scope).map(|scope| scope.as_str().to_string()),
                };
                self.places.insert((id, op.index() as u32), place);
                let inner = graph.attrs(op).iter().filter_map(|(_, attr)| Attr::as_graph(attr));
                work.extend(inner.map(|inner| (&**inner, format!("{name}/{}", op.index()))));
            }
            self.graphs.insert(id, name);
        }
    }
}

/// The last call that was recorded, of a model after passes.
pub fn chrome(record: &Record, names: &Names, (model, passes): (&str, &str)) -> String {
    let us = |time: Duration| time.as_secs_f64() * 1e6;
    let mut events = Vec::new();
    for (graph, begin, time) in &record.functions {
        let Some(name) = names.graphs.get(graph) else { continue };
        events.push(json!({"name": name, "cat": "function", "ph": "X", "ts": us(*begin), "dur": us(*time),
            "pid": 1, "tid": 1}));
    }
    for shown in &record.shown {
        let Some((key, place)) = shown.op.and_then(|key| Some((key, names.places.get(&key)?))) else {
            continue;
        };
        let name = place.kernel.as_ref().unwrap_or(&place.kind);
        let mut args = json!({"function": place.function, "op": key.1, "kind": place.kind,
            "planned": place.planned, "bytes": shown.bytes});
        let texts = [("kernel", &place.kernel), ("result", &place.result), ("scope", &place.scope)];
        for (about, text) in texts {
            if let Some(text) = text {
                args[about] = json!(text);
            }
        }
        events
            .push(json!({"name": name, "cat": "op", "ph": "X", "ts": us(shown.begin), "dur": us(shown.time),
            "pid": 1, "tid": 1, "args": args}));
    }
    let about = json!({"model": model, "passes": passes, "left_out": record.left_out});
    format!("{}\n", json!({"traceEvents": events, "displayTimeUnit": "ms", "otherData": about}))
}
