//! How far an answer is from another one: for each output the largest absolute and relative difference, its place, and the
//! tolerance; and the first op of a graph whose value differs. Must not know where the answers come from.

use super::case::{self, Case};
use super::observe::{Event, Watch};
use super::table::Table;
use crate::diag::{Diagnostic, Result, files};
use crate::dialects::{GraphId, Registry, Run};
use crate::ir::{Graph, OpId};
use crate::passes;
use crate::passes::manager::Settings;
use crate::runtime::Program;
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use num_complex::Complex64;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;

/// Values nested deeper than this are not compared.
const MAX_DEPTH: usize = 100;

/// One output beside the one that is expected.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its place in the answer: `0.boxes`.
    pub name: String,
    /// Dtype and sizes, or the kind of value.
    pub what: String,
    /// Largest absolute difference.
    pub absolute: f64,
    /// Largest difference relative to the expected number.
    pub relative: f64,
    /// Where the largest absolute difference is, and the two numbers there.
    pub place: Option<(Vec<usize>, String, String)>,
    /// Relative and absolute tolerance.
    pub tolerance: (f64, f64),
    /// Elements beyond the tolerance.
    pub beyond: usize,
    /// Why the two cannot be compared.
    pub differs: Option<String>,
}

impl Row {
    fn new(name: &str, what: String) -> Row {
        Row {
            name: name.to_string(),
            what,
            absolute: 0.0,
            relative: 0.0,
            place: None,
            tolerance: (0.0, 0.0),
            beyond: 0,
            differs: None,
        }
    }

    /// Whether the output is within its tolerance.
    pub fn holds(&self) -> bool {
        self.differs.is_none() && self.beyond == 0
    }

    /// As other programs read it.
    pub fn to_json(&self) -> Json {
        let place = self
            .place
            .as_ref()
            .map(|(index, expected, actual)| json!({"index": index, "expected": expected, "actual": actual}));
        json!({"output": self.name, "what": self.what, "absolute": finite(self.absolute),
            "relative": finite(self.relative), "place": place, "relative_tolerance": self.tolerance.0,
            "absolute_tolerance": self.tolerance.1, "beyond": self.beyond, "differs": self.differs,
            "holds": self.holds()})
    }
}

/// JSON has no infinity.
fn finite(x: f64) -> Json {
    if x.is_finite() { json!(x) } else { json!(x.to_string()) }
}

/// Compares two answers output by output. `own` is a tolerance in place of the usual ones.
pub fn rows(expected: &Value, actual: &Value, own: Option<f64>) -> Vec<Row> {
    let mut out = Vec::new();
    walk(expected, actual, own, "", 0, &mut out);
    out
}

fn walk(expected: &Value, actual: &Value, own: Option<f64>, path: &str, depth: usize, out: &mut Vec<Row>) {
    let name = if path.is_empty() { "output" } else { path };
    let join = |key: &str| if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
    if depth > MAX_DEPTH {
        return;
    }
    let mut each = |expected: &[Value], actual: &[Value], key: &dyn Fn(usize) -> String| {
        if expected.len() != actual.len() {
            let mut row = Row::new(name, format!("{} items", expected.len()));
            row.differs = Some(format!("{} items", actual.len()));
            out.push(row);
            return;
        }
        for (n, (e, a)) in expected.iter().zip(actual).enumerate() {
            walk(e, a, own, &join(&key(n)), depth + 1, out);
        }
    };
    match (expected, actual) {
        (Value::Tensor(e), Value::Tensor(a)) => out.push(tensors(name, e, a, own)),
        (Value::Tuple(e), Value::Tuple(a)) => each(e.items(), a.items(), &|n| {
            let names = a.names().and_then(|names| names.fields.get(n));
            names.map_or(n.to_string(), |field| field.as_str().to_string())
        }),
        (Value::List(e), Value::List(a)) => each(&e.to_vec(), &a.to_vec(), &|n| n.to_string()),
        (Value::Dict(e), Value::Dict(a)) => {
            let pairs = |d: &crate::value::Dict| -> (Vec<String>, Vec<Value>) {
                d.entries().iter().map(|(k, v)| (k.to_value().to_text(), v.clone())).unzip()
            };
            let ((keys, e), (others, a)) = (pairs(e), pairs(a));
            if keys != others {
                let mut row = Row::new(name, format!("keys {}", keys.join(", ")));
                row.differs = Some(format!("keys {}", others.join(", ")));
                out.push(row);
            } else {
                each(&e, &a, &|n| keys.get(n).cloned().unwrap_or_default());
            }
        }
        (Value::Float(e), Value::Float(a)) => {
            let mut row = Row::new(name, "float".to_string());
            numbers(
                &mut row,
                &[Complex64::new(*e, 0.0)],
                &[Complex64::new(*a, 0.0)],
                &[],
                tolerance(DType::F64, own),
            );
            out.push(row);
        }
        (Value::Future(e), _) => match e.wait() {
            Ok(e) => walk(&e, actual, own, path, depth + 1, out),
            Err(error) => {
                out.push(Row { differs: Some(error.to_string()), ..Row::new(name, "future".into()) })
            }
        },
        _ => {
            let encoded = case::encode(expected).map_err(|e| e.to_string());
            let verdict = encoded.and_then(|json| case::compare(&json, actual, own));
            let mut row = Row::new(name, expected.kind_name().to_string());
            row.differs = verdict.err();
            out.push(row);
        }
    }
}

fn tolerance(dtype: DType, own: Option<f64>) -> (f64, f64) {
    own.map_or_else(|| case::tolerance(dtype), |t| (t, t))
}

fn about(tensor: &Tensor) -> String {
    let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
    format!("{}[{}]", tensor.dtype().name(), sizes.join(","))
}

fn tensors(name: &str, expected: &Tensor, actual: &Tensor, own: Option<f64>) -> Row {
    let mut row = Row::new(name, about(expected));
    if expected.dtype() != actual.dtype() || expected.sizes() != actual.sizes() {
        row.differs = Some(about(actual));
        return row;
    }
    let read = |t: &Tensor| t.to_scalars().map(|all| all.iter().map(|x| x.to_complex()).collect::<Vec<_>>());
    match (read(expected), read(actual)) {
        (Ok(e), Ok(a)) => {
            let sizes: Vec<usize> = expected.sizes().iter().map(|n| *n as usize).collect();
            numbers(&mut row, &e, &a, &sizes, tolerance(expected.dtype(), own));
        }
        (Err(error), _) | (_, Err(error)) => row.differs = Some(error.message().to_string()),
    }
    row
}

/// Compares numbers one by one. Two NaNs are equal, and so are equal infinities.
fn numbers(
    row: &mut Row,
    expected: &[Complex64],
    actual: &[Complex64],
    sizes: &[usize],
    tolerance: (f64, f64),
) {
    row.tolerance = tolerance;
    let mut worst = None;
    let same = |e: f64, a: f64| e == a || (e.is_nan() && a.is_nan());
    for (n, (e, a)) in expected.iter().zip(actual).enumerate() {
        if same(e.re, a.re) && same(e.im, a.im) {
            continue;
        }
        let difference = (e - a).norm();
        let difference = if difference.is_nan() { f64::INFINITY } else { difference };
        let relative = if e.norm() == 0.0 { f64::INFINITY } else { difference / e.norm() };
        row.relative = row.relative.max(if relative.is_nan() { f64::INFINITY } else { relative });
        if !(difference <= tolerance.1 + tolerance.0 * e.norm()) {
            row.beyond += 1;
        }
        if difference > row.absolute || worst.is_none() {
            row.absolute = row.absolute.max(difference);
            worst = Some(n);
        }
    }
    let Some(n) = worst else { return };
    let mut index = Vec::new();
    let mut rest = n;
    for size in sizes.iter().rev() {
        index.push(rest % size.max(&1));
        rest /= size.max(&1);
    }
    index.reverse();
    let text = |x: Complex64| if x.im == 0.0 { format!("{}", x.re as f32) } else { format!("{x}") };
    row.place = Some((index, text(expected[n]), text(actual[n])));
}

/// The rows as a table for people.
pub fn table(rows: &[Row]) -> String {
    let mut table =
        Table::new(["output", "", ">largest difference", ">relative", "at", ">tolerance", "verdict"]);
    for row in rows {
        let number = |x: f64| if x == 0.0 { "0".to_string() } else { format!("{x:.2e}") };
        let place = row.place.as_ref().map(|(index, expected, actual)| {
            let index: Vec<String> = index.iter().map(usize::to_string).collect();
            format!("[{}]: {expected} / {actual}", index.join(", "))
        });
        let verdict = match (&row.differs, row.beyond) {
            (Some(why), _) => format!("DIFFERS: {why}"),
            (None, 0) => "ok".to_string(),
            (None, n) => format!("{n} ELEMENTS BEYOND"),
        };
        let (relative, absolute) = row.tolerance;
        let allowed = match (relative, absolute) {
            (0.0, 0.0) => "equal".to_string(),
            _ => format!("{absolute:.1e} + {relative:.1e}*|x|"),
        };
        table.row([
            row.name.clone(),
            row.what.clone(),
            number(row.absolute),
            number(row.relative),
            place.unwrap_or_default(),
            allowed,
            verdict,
        ]);
    }
    table.to_string()
}

// --- values of ops ---

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
    /// The first whose value differs.
    pub first: Option<FirstOp>,
}

/// An op whose value differs.
pub struct FirstOp {
    /// Its place among the ops that were recorded.
    pub place: usize,
    /// `aten::relu`
    pub kind: String,
    /// The module that it belongs to, where the graph says so.
    pub scope: String,
    /// Its results.
    pub rows: Vec<Row>,
}

/// Runs the inlined graph of a folder's model op by op, without other passes, and compares each op's tensors with those that
/// were recorded. Fails where the graphs are not the same.
pub fn ops(
    folder: &Path,
    case: &Case,
    program: &Program,
    registry: &Arc<Registry>,
    run: &Run,
) -> Result<Found> {
    let recorded = read_ops(folder)?;
    let values = super::inputs::read_named(&folder.join(VALUES_FILE))?;
    let pipeline = passes::parse("inline")?;
    let program = program.transformed(|module, _| {
        super::prepare::run_passes(
            module,
            registry,
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
    let order: Vec<OpId> = compared_ops(graph);
    for (n, (op, wanted)) in order.iter().zip(&recorded).enumerate() {
        if graph.kind(*op).as_str() != wanted.kind {
            let message =
                format!("op {n} of the graph is {}, and {} was recorded", graph.kind(*op), wanted.kind);
            return Err(Diagnostic::input(message).hint("record the folder anew from this model"));
        }
    }
    if order.len() != recorded.len() {
        let message = format!("the graph has {} ops, and {} were recorded", order.len(), recorded.len());
        return Err(Diagnostic::input(message).hint("record the folder anew from this model"));
    }
    let seen = run_watched(&program, case, graph, run)?;
    let mut compared = 0;
    for (n, (op, wanted)) in order.iter().zip(&recorded).enumerate() {
        let mut rows = Vec::new();
        for (at, key) in wanted.results.iter().enumerate() {
            let expected = key.as_ref().and_then(|key| values.iter().find(|(name, _)| name == key));
            let actual =
                seen.iter().find(|(index, ..)| *index == op.index() as u32).and_then(|(_, r)| r.get(at));
            if let (Some((_, Value::Tensor(expected))), Some(Value::Tensor(actual))) = (expected, actual) {
                rows.push(tensors(&format!("{n}.{at}"), expected, actual, case.tolerance));
            }
        }
        compared += usize::from(!rows.is_empty());
        if rows.iter().any(|row| !row.holds()) {
            let (kind, scope) = (wanted.kind.clone(), wanted.scope.clone());
            return Ok(Found { compared, first: Some(FirstOp { place: n, kind, scope, rows }) });
        }
    }
    Ok(Found { compared, first: None })
}

/// The ops of a graph's outermost block that compute, in order: constants and reads of attributes are left out, as recorders
/// leave them out.
fn compared_ops(graph: &Graph) -> Vec<OpId> {
    let computes = |op: &OpId| !matches!(graph.kind(*op).as_str(), "prim::Constant" | "prim::GetAttr");
    graph.block_ops(graph.root()).filter(computes).collect()
}

/// What each op of the graph gave when it first ran, copied, since later ops may write to it.
fn run_watched(program: &Program, case: &Case, graph: &Graph, run: &Run) -> Result<Vec<(u32, Vec<Value>)>> {
    let seen: Arc<Mutex<Vec<(u32, Vec<Value>)>>> = Arc::default();
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
            sink.lock().push((op, results.iter().map(copy).collect()));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_difference_has_its_place() {
        let tensor = |x: &[f32]| Value::Tensor(Tensor::from_vec(x, &[2, 2]).expect("fits"));
        let rows = rows(&tensor(&[1.0, 2.0, 3.0, f32::NAN]), &tensor(&[1.0, 2.0, 3.5, f32::NAN]), None);
        assert_eq!((rows.len(), rows[0].absolute, rows[0].beyond), (1, 0.5, 1));
        assert_eq!(rows[0].place.as_ref().map(|p| p.0.clone()), Some(vec![1, 0]));
        assert!(!rows[0].holds());
        let pair = |x: Value| Value::tuple(vec![Value::Int(1), x]);
        assert!(super::rows(&pair(Value::Float(1.0)), &pair(Value::Float(1.0)), None).iter().all(Row::holds));
        assert!(!super::rows(&pair(Value::Int(1)), &pair(Value::Int(2)), None)[1].holds());
    }
}
