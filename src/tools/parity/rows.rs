//! Two answers side by side: for each output how far one is from the other, and the tolerance. Must not know where the
//! answers come from.

use crate::tensor::{DType, Tensor};
use crate::tools::case;
use crate::tools::table::Table;
use crate::value::Value;
use num_complex::Complex64;
use serde_json::{Value as Json, json};

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
        (Value::Tensor(e), Value::Tensor(a)) => out.push(tensors(name, e, a, own, Scale::One)),
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

/// What the absolute tolerance of a tensor is measured by.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Scale {
    /// Numbers about 1, as answers have them.
    One,
    /// The largest finite number of the tensor, where it is above 1. Inside of a model a small number is often the difference of
    /// large ones and carries their rounding, which says nothing of the op.
    Largest,
}

pub(super) fn tensors(name: &str, expected: &Tensor, actual: &Tensor, own: Option<f64>, scale: Scale) -> Row {
    let mut row = Row::new(name, about(expected));
    if expected.dtype() != actual.dtype() || expected.sizes() != actual.sizes() {
        row.differs = Some(about(actual));
        return row;
    }
    let read = |t: &Tensor| t.to_scalars().map(|all| all.iter().map(|x| x.to_complex()).collect::<Vec<_>>());
    match (read(expected), read(actual)) {
        (Ok(e), Ok(a)) => {
            let sizes: Vec<usize> = expected.sizes().iter().map(|n| *n as usize).collect();
            let (relative, absolute) = tolerance(expected.dtype(), own);
            let largest = || e.iter().map(|x| x.norm()).filter(|x| x.is_finite()).fold(1.0, f64::max);
            let unit = if scale == Scale::Largest { largest() } else { 1.0 };
            numbers(&mut row, &e, &a, &sizes, (relative, absolute * unit));
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
        // No number is near an infinity.
        if difference.is_infinite() || !(difference <= tolerance.1 + tolerance.0 * e.norm()) {
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
