//! What a run shows of a graph: dtypes and sizes of values from a watched call, times of ops from a trace that `bench
//! --profile` wrote. Both are kept by place, so that a picture of the same graph finds them.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Run;
use crate::runtime::Program;
use crate::tools::observe::{Event, Watch};
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use serde_json::Value as Json;
use std::sync::Arc;

/// Ops that led to a graph from the function that was called, as [`crate::tools::observe::At::path`] has them.
pub(super) type Path = Vec<u32>;

/// Dtypes and sizes that values had when the program ran.
#[derive(Debug, Default)]
pub struct Sizes {
    /// What a graph was given, by the ops that led to it.
    pub(super) inputs: HashMap<Path, Vec<Option<Seen>>>,
    /// What an op gave.
    pub(super) results: HashMap<(Path, u32), Vec<Option<Seen>>>,
}

/// A value as it was.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    /// `float32[1,3]`
    pub(super) text: String,
    /// Bytes of its elements.
    pub(super) bytes: u64,
}

fn seen(value: &Value) -> Option<Seen> {
    let Value::Tensor(tensor) = value else { return None };
    let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
    let bytes = (tensor.numel() as u64).saturating_mul(tensor.dtype().size() as u64);
    Some(Seen { text: format!("{}[{}]", tensor.dtype().name(), sizes.join(",")), bytes })
}

impl Sizes {
    /// Calls a function and observes it. Of an op that runs several times the first values count.
    pub fn of_run(program: &Program, entry: &str, arguments: &[Value], run: &Run) -> Result<Sizes> {
        let sizes: Arc<Mutex<Sizes>> = Arc::default();
        let sink = Arc::clone(&sizes);
        run.watch(Some(Watch::new(move |at, event| match event {
            Event::Enters { arguments } => {
                let given = || arguments.iter().map(seen).collect();
                sink.lock().inputs.entry(at.path.to_vec()).or_insert_with(given);
            }
            Event::Ran { op, results, .. } => {
                let found: Vec<Option<Seen>> = results.iter().map(seen).collect();
                if found.iter().any(Option::is_some) {
                    sink.lock().results.entry((at.path.to_vec(), op)).or_insert(found);
                }
            }
            Event::Leaves => {}
        })));
        let result = program.run(entry, arguments.to_vec(), run);
        run.watch(None);
        result?;
        let sizes = std::mem::take(&mut *sizes.lock());
        Ok(sizes)
    }
}

/// Times of ops from a trace.
#[derive(Debug, Default)]
pub struct Times {
    /// The passes that the traced program had.
    pub passes: String,
    /// Kind and microseconds of an op, by function and index.
    pub(super) ops: HashMap<(String, u32), (String, f64)>,
}

impl Times {
    /// Reads a trace of `bench --profile`.
    pub fn parse(text: &str) -> Result<Times> {
        let wrong = |what: &str| {
            Diagnostic::input(format!("not a profile: {what}"))
                .hint("`flambeau bench MODEL --profile=FILE` writes one")
        };
        let json: Json = serde_json::from_str(text).map_err(|e| wrong(&e.to_string()))?;
        let events = json["traceEvents"].as_array().ok_or_else(|| wrong("it has no events"))?;
        let passes = json["otherData"]["passes"].as_str().ok_or_else(|| wrong("it names no passes"))?;
        let mut times = Times { passes: passes.to_string(), ops: HashMap::new() };
        for event in events {
            let args = &event["args"];
            let (Some(function), Some(op), Some(kind)) =
                (args["function"].as_str(), args["op"].as_u64(), args["kind"].as_str())
            else {
                continue;
            };
            let key = (function.to_string(), u32::try_from(op).unwrap_or(u32::MAX));
            let sum = times.ops.entry(key).or_insert_with(|| (kind.to_string(), 0.0));
            sum.1 += event["dur"].as_f64().unwrap_or(0.0);
        }
        Ok(times)
    }
}
