//! Values of the ops of a graph beside recorded ones: which op differs first. Ops whose results are not tensors are left out, and
//! so are those that one side alone has: PyTorch simplifies the functions that it inlines, and drops checks such as
//! `dim(x) != 4` from them. Must not know how the folder was recorded.

use super::super::case::{self, Case};
use super::super::observe::{Event, Watch};
use super::super::{inputs, prepare};
use super::rows::{Row, Scale, tensors};
use crate::diag::{Diagnostic, Result, files};
use crate::dialects::{GraphId, Run};
use crate::ir::{Graph, OpId};
use crate::passes::manager::Settings;
use crate::runtime::Program;
use crate::toolkit::Toolkit;
use crate::value::Value;
use hashbrown::HashMap;
use parking_lot::Mutex;
use serde_json::Value as Json;
use similar::{Algorithm, DiffOp, capture_diff_slices};
use std::path::Path;
use std::sync::Arc;

/// What a folder records of the ops of its model's graph, inlined, in their order.
const OPS_FILE: &str = "ops.json";
const VALUES_FILE: &str = "ops.safetensors";

/// Whether a folder records the values of ops.
pub fn has_ops(folder: &Path) -> bool {
    folder.join(OPS_FILE).is_file()
}

/// An op that was recorded: its kind, and where its tensors stand in the file of values.
struct Recorded {
    kind: String,
    results: Vec<Option<String>>,
    scope: String,
}

/// What a comparison of ops found.
pub struct Found {
    /// How many ops were compared.
    pub compared: usize,
    /// How many ops with tensors this graph and the recorded one have without a counterpart in the other.
    pub alone: (usize, usize),
    /// The first whose value differs.
    pub first: Option<FirstOp>,
}

/// An op whose value differs.
pub struct FirstOp {
    /// Its place among the ops that were recorded, from 0.
    pub place: usize,
    /// `aten::relu`
    pub kind: String,
    /// The module that it belongs to, where the graph says so.
    pub scope: String,
    /// Its results.
    pub rows: Vec<Row>,
}

/// Runs the inlined graph of a folder's model op by op, without other passes, and compares each op's tensors with those that
/// were recorded. Fails where most ops have no counterpart: the folder was recorded from another model.
pub fn ops(folder: &Path, case: &Case, program: &Program, toolkit: &Toolkit, run: &Run) -> Result<Found> {
    let recorded = read_ops(folder)?;
    let values: HashMap<String, Value> = inputs::read_named(&folder.join(VALUES_FILE))?.into_iter().collect();
    // As PyTorch prepares the functions that it inlines.
    let pipeline = toolkit.parse_pipeline("inline,constant-propagation-immutable-types")?;
    let program = program.transformed(|module, _| {
        prepare::run_passes(
            module,
            toolkit.registry(),
            &pipeline,
            Settings::default(),
            &case.name,
            &mut std::io::sink(),
        )
    })?;
    let function = program
        .function(&case.entry)
        .ok_or_else(|| Diagnostic::input(format!("the model has no '{}'", case.entry)))?;
    let graph = &function.graph;
    let pairs = Pairs::of(graph, &recorded)?;
    let seen = run_watched(&program, case, graph, run)?;
    let mut found = Found { compared: 0, alone: pairs.alone, first: None };
    for (op, place) in pairs.both {
        let wanted = &recorded[place];
        let results = seen.get(&(op.index() as u32)).map_or(&[][..], Vec::as_slice);
        let rows: Vec<Row> = (wanted.results.iter().zip(results).enumerate())
            .filter_map(|(at, (key, actual))| match (values.get(key.as_ref()?)?, actual) {
                (Value::Tensor(expected), Value::Tensor(actual)) => {
                    Some(tensors(&format!("{place}.{at}"), expected, actual, case.tolerance, Scale::Largest))
                }
                _ => None,
            })
            .collect();
        found.compared += usize::from(!rows.is_empty());
        if rows.iter().any(|row| !row.holds()) {
            let (kind, scope) = (wanted.kind.clone(), wanted.scope.clone());
            found.first = Some(FirstOp { place, kind, scope, rows });
            break;
        }
    }
    Ok(found)
}

/// Which op of a graph is which of the recorded ones.
struct Pairs {
    /// Ops with their places among the recorded ones, in order.
    both: Vec<(OpId, usize)>,
    /// Ops of the graph, and recorded ones, that have no counterpart.
    alone: (usize, usize),
}

impl Pairs {
    /// The longest common sequence of kinds among ops that give tensors.
    fn of(graph: &Graph, recorded: &[Recorded]) -> Result<Pairs> {
        // Constants and attributes are what the graph is given, and recorders leave them out.
        let gives_tensor = |op: &OpId| {
            !matches!(graph.kind(*op).as_str(), "prim::Constant" | "prim::GetAttr")
                && graph.results(*op).iter().any(|value| graph.ty(*value).is_tensor())
        };
        let here: Vec<OpId> = graph.block_ops(graph.root()).filter(gives_tensor).collect();
        let there: Vec<usize> =
            (0..recorded.len()).filter(|n| recorded[*n].results.iter().any(Option::is_some)).collect();
        let kinds: Vec<&str> = here.iter().map(|op| graph.kind(*op).as_str()).collect();
        let wanted: Vec<&str> = there.iter().map(|n| recorded[*n].kind.as_str()).collect();
        let mut both = Vec::new();
        for run in capture_diff_slices(Algorithm::Myers, &kinds, &wanted) {
            if let DiffOp::Equal { old_index, new_index, len } = run {
                both.extend((0..len).map(|n| (here[old_index + n], there[new_index + n])));
            }
        }
        if both.len() * 2 < here.len().max(there.len()) {
            let message = format!(
                "the graph has {} ops that give tensors, {} were recorded, and {} of them are the same",
                here.len(),
                there.len(),
                both.len()
            );
            return Err(Diagnostic::input(message).hint("record the folder anew from this model"));
        }
        let alone = (here.len() - both.len(), there.len() - both.len());
        Ok(Pairs { both, alone })
    }
}

/// What each op of the graph gave when it first ran, copied, since later ops may write to it.
fn run_watched(program: &Program, case: &Case, graph: &Graph, run: &Run) -> Result<HashMap<u32, Vec<Value>>> {
    let seen: Arc<Mutex<HashMap<u32, Vec<Value>>>> = Arc::default();
    let (sink, own) = (Arc::clone(&seen), GraphId::of(graph));
    let watch = Watch::new(move |at, event| {
        if let Event::Ran { op, results, .. } = event
            && at.graph == Some(own)
            && at.path.is_empty()
        {
            let copy = |value: &Value| match value {
                Value::Tensor(tensor) => tensor.copy().map_or(Value::None, Value::Tensor),
                other => other.clone(),
            };
            sink.lock().entry(op).or_insert_with(|| results.iter().map(copy).collect());
        }
    });
    run.watch(Some(watch));
    let arguments = case.args.iter().map(case::decode).collect::<Result<Vec<Value>>>()?;
    let result = program.run(&case.entry, arguments, run);
    run.watch(None);
    result?;
    let seen = std::mem::take(&mut *seen.lock());
    Ok(seen)
}

fn read_ops(folder: &Path) -> Result<Vec<Recorded>> {
    let file = folder.join(OPS_FILE);
    let named = |e: String| Diagnostic::input(format!("{}: {e}", file.display()));
    let text = files::read_text(&file).map_err(|e| named(e.to_string()))?;
    let json: Json = serde_json::from_str(&text).map_err(|e| named(e.to_string()))?;
    let items = json.as_array().ok_or_else(|| named("it holds no list of ops".to_string()))?;
    let op = |item: &Json| {
        let text = |key: &str| item.get(key).and_then(Json::as_str).map(str::to_string);
        let results = item.get("results").and_then(Json::as_array)?;
        Some(Recorded {
            kind: text("kind")?,
            scope: text("scope").unwrap_or_default(),
            results: results.iter().map(|key| key.as_str().map(str::to_string)).collect(),
        })
    };
    items
        .iter()
        .map(|item| op(item).ok_or_else(|| named("an op lacks its kind or results".to_string())))
        .collect()
}
