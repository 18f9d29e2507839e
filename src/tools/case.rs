//! Conformance cases and the encoding of values in them: an object with one key says the kind. Floats survive
//! exactly; tensors are little-endian bytes in base64.

use crate::diag::{Diagnostic, Result, files};
use crate::ir::Type;
use crate::resources::{budget, memory};
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{Dict, Value, bytes};
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use num_complex::Complex64;
use serde_json::{Value as Json, json};
use std::path::Path;
use std::sync::Arc;

/// Values nested deeper than this are refused.
const MAX_DEPTH: usize = 200;

/// Maximum number of elements that `randn` makes.
const MAX_RANDN: i64 = 1 << 30;

/// A recorded case: a program in one or more forms, arguments and the answer.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// Name, unique in its file.
    pub name: String,
    /// Function or method to call.
    pub entry: String,
    /// Python source.
    pub source: Option<String>,
    /// `source` where `source` is TorchScript text; `script` or `trace` where it is Python.
    pub how: Option<String>,
    /// A saved archive.
    pub archive: Option<Vec<u8>>,
    /// PyTorch's graph text.
    pub graph: Option<String>,
    /// Arguments, encoded.
    pub args: Vec<Json>,
    /// Arguments after the call, where it changed them.
    pub args_after: Option<Vec<Json>>,
    /// The answer.
    pub returns: Option<Json>,
    /// Or what it raises.
    pub raises: Option<Raises>,
    /// Relative and absolute tolerance, where the default is too tight.
    pub tolerance: Option<f64>,
    /// What it prints.
    pub stdout: Option<String>,
    /// Whether it asks for gradients or a training run (`backward`, `train`), for which parameters require gradients.
    pub differentiates: bool,
    /// Gradients that are asked for.
    pub backward: Option<Backward>,
    /// A training run that is asked for: `optimizer`, `options`, `batches`, `steps`, `losses`, `parameters_after`.
    pub train: Option<Json>,
    /// The module's buffers after the call, by name.
    pub buffers_after: Option<Vec<(String, Json)>>,
}

/// Gradients that a case asks for.
#[derive(Clone, Debug, Default)]
pub struct Backward {
    /// By what: `args[0]`, or the name of a parameter.
    pub wrt: Vec<String>,
    /// Gradients of the differentiable tensors of the answer.
    pub cotangents: Vec<Json>,
    /// The gradients.
    pub grads: Vec<Json>,
    /// Cotangents of the gradients, and the gradients of their weighted sum.
    pub second: Option<(Vec<Json>, Vec<Json>)>,
}

impl Backward {
    fn from_json(json: &Json) -> Result<Backward> {
        let list = |json: &Json, key: &str| {
            let list = json.get(key).and_then(Json::as_array).cloned();
            list.ok_or_else(|| bad(&format!("'backward' needs '{key}'")))
        };
        let words = |item: Json| item.as_str().map(str::to_string).ok_or_else(|| bad("'wrt' holds text"));
        let second = match json.get("second") {
            Some(second) => Some((list(second, "cotangents")?, list(second, "grads")?)),
            None => None,
        };
        Ok(Backward {
            wrt: list(json, "wrt")?.into_iter().map(words).collect::<Result<_>>()?,
            cotangents: list(json, "cotangents")?,
            grads: list(json, "grads")?,
            second,
        })
    }
}

/// A recorded exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raises {
    /// `compile` or `run`.
    pub when: String,
    /// Class, with its module where it is not built in.
    pub class: String,
    /// The whole message.
    pub message: String,
}

impl Case {
    /// A case from its JSON object.
    pub fn from_json(json: &Json) -> Result<Case> {
        let text = |key: &str| json.get(key).and_then(Json::as_str).map(str::to_string);
        let list = |key: &str| json.get(key).and_then(Json::as_array).cloned();
        let archive = match text("pt") {
            Some(encoded) => Some(BASE64.decode(encoded).map_err(|e| bad(&format!("field 'pt': {e}")))?),
            None => None,
        };
        Ok(Case {
            name: text("name").ok_or_else(|| bad("a case needs a name"))?,
            entry: text("entry").unwrap_or_else(|| "forward".to_string()),
            source: text("source"),
            how: text("how"),
            archive,
            graph: text("graph"),
            args: list("args").unwrap_or_default(),
            args_after: list("args_after"),
            returns: json.get("returns").cloned(),
            raises: json.get("raises").map(Raises::from_json).transpose()?,
            tolerance: json.get("tol").and_then(Json::as_f64),
            stdout: text("stdout"),
            differentiates: json.get("backward").is_some() || json.get("train").is_some(),
            backward: json.get("backward").map(Backward::from_json).transpose()?,
            train: json.get("train").cloned(),
            buffers_after: json
                .get("buffers_after")
                .and_then(Json::as_object)
                .map(|all| all.iter().map(|(name, value)| (name.clone(), value.clone())).collect()),
        })
    }

    /// All cases of a JSONL file, or the one case of a folder that holds `case.json`.
    pub fn read_all(path: &Path) -> Result<Vec<Case>> {
        if path.is_dir() {
            return Ok(vec![Self::from_folder(path)?]);
        }
        let named = |e: String| Diagnostic::input(format!("{}: {e}", path.display()));
        let text = files::read_text(path).map_err(|e| named(e.to_string()))?;
        let mut cases = Vec::new();
        for (n, line) in text.lines().enumerate().filter(|(_, l)| !l.trim().is_empty()) {
            let json: Json = serde_json::from_str(line).map_err(|e| named(format!("line {}: {e}", n + 1)))?;
            let case =
                Case::from_json(&json).map_err(|d| named(format!("line {}: {}", n + 1, d.message())))?;
            cases.push(case);
        }
        if cases.is_empty() {
            return Err(named("no cases in it".to_string()));
        }
        Ok(cases)
    }

    /// `case.json`, beside it `model.pt`, `graph.txt`, `source.py` as far as they exist.
    fn from_folder(folder: &Path) -> Result<Case> {
        let named = |file: &Path, e: String| Diagnostic::input(format!("{}: {e}", file.display()));
        let file = folder.join("case.json");
        let text = files::read_text(&file).map_err(|e| named(&file, e.to_string()))?;
        let mut json: Json = serde_json::from_str(&text).map_err(|e| named(&file, e.to_string()))?;
        if let (Some(object), Some(name)) = (json.as_object_mut(), folder.file_name()) {
            object.entry("name").or_insert_with(|| json!(name.to_string_lossy()));
        }
        let mut case = Case::from_json(&json).map_err(|d| named(&file, d.message().to_string()))?;
        let model = folder.join("model.pt");
        if model.exists() {
            case.archive = Some(
                files::read(&model, crate::frontend::archive::Limits::default().file_bytes)
                    .map_err(|e| named(&model, e.to_string()))?,
            );
        }
        for (name, field) in [("graph.txt", &mut case.graph), ("source.py", &mut case.source)] {
            let file = folder.join(name);
            if file.exists() {
                *field = Some(files::read_text(&file).map_err(|e| named(&file, e.to_string()))?);
            }
        }
        Ok(case)
    }
}

impl Raises {
    fn from_json(json: &Json) -> Result<Raises> {
        let text = |key: &str| {
            let text = json.get(key).and_then(Json::as_str).map(str::to_string);
            text.ok_or_else(|| bad(&format!("'raises' needs '{key}'")))
        };
        Ok(Raises { when: text("when")?, class: text("class")?, message: text("message")? })
    }

    /// As cases record it.
    pub fn to_json(&self) -> Json {
        json!({"when": self.when, "class": self.class, "message": self.message})
    }
}

fn bad(what: &str) -> Diagnostic {
    Diagnostic::input(format!("not a case: {what}"))
}

/// The value that an encoded one means. Lists and dictionaries do not know their element types yet: the schema of
/// the function that takes them decides.
pub fn decode(json: &Json) -> Result<Value> {
    decode_at(json, 0)
}

fn decode_at(json: &Json, depth: usize) -> Result<Value> {
    let (kind, data) = match json.as_object().filter(|o| o.len() == 1).and_then(|o| o.iter().next()) {
        Some((kind, data)) if depth <= MAX_DEPTH => (kind.as_str(), data),
        _ => return Err(bad(&format!("not a value: {}", cut(json)))),
    };
    let wrong = || bad(&format!("not a value of kind '{kind}': {}", cut(data)));
    let items = || -> Result<Vec<Value>> {
        data.as_array().ok_or_else(wrong)?.iter().map(|v| decode_at(v, depth + 1)).collect()
    };
    Ok(match kind {
        "none" => Value::None,
        "int" => Value::Int(data.as_i64().ok_or_else(wrong)?),
        "float" => Value::Float(decode_float(data).ok_or_else(wrong)?),
        "bool" => Value::Bool(data.as_bool().ok_or_else(wrong)?),
        "str" => Value::str(bytes::text(data.as_str().ok_or_else(wrong)?.as_bytes())),
        "complex" => match data.as_array().map(Vec::as_slice) {
            Some([re, im]) => Value::Complex(Complex64::new(
                decode_float(re).ok_or_else(wrong)?,
                decode_float(im).ok_or_else(wrong)?,
            )),
            _ => return Err(wrong()),
        },
        "list" => Value::list(Type::any(), items()?),
        "tuple" => Value::tuple(items()?),
        "dict" => {
            let dict = Dict::new(Type::any(), Type::any());
            for entry in data.as_array().ok_or_else(wrong)? {
                match entry.as_array().map(Vec::as_slice) {
                    Some([key, value]) => {
                        dict.insert(&decode_at(key, depth + 1)?, decode_at(value, depth + 1)?)?;
                    }
                    _ => return Err(wrong()),
                }
            }
            Value::Dict(dict)
        }
        "device" => {
            let device = data.as_str().ok_or_else(wrong)?.parse().map_err(|e: String| bad(&e))?;
            Value::Device(Arc::new(device))
        }
        "dtype" => Value::Int(dtype(data).ok_or_else(wrong)?.code()),
        "tensor" => Value::Tensor(decode_tensor(data)?),
        "randn" => Value::Tensor(randn(data)?),
        other => return Err(Diagnostic::unsupported(format!("values of kind '{other}' in cases"))),
    })
}

fn cut(json: &Json) -> String {
    let text = json.to_string();
    if text.chars().count() > 80 { text.chars().take(80).collect::<String>() + "…" } else { text }
}

fn decode_float(json: &Json) -> Option<f64> {
    match json.as_str() {
        Some("nan") => Some(f64::NAN),
        Some("inf") => Some(f64::INFINITY),
        Some("-inf") => Some(f64::NEG_INFINITY),
        Some(_) => None,
        None => json.as_f64(),
    }
}

fn dtype(json: &Json) -> Option<DType> {
    let name = json.as_str()?;
    DType::from_name(name.strip_prefix("torch.").unwrap_or(name))
}

fn dtype_and_sizes(data: &Json) -> Result<(DType, Vec<i64>)> {
    let dtype = data.get("dtype").and_then(dtype).ok_or_else(|| bad("a tensor needs a dtype"))?;
    let sizes = data.get("shape").and_then(Json::as_array).ok_or_else(|| bad("a tensor needs a shape"))?;
    let sizes: Option<Vec<i64>> = sizes.iter().map(Json::as_i64).collect();
    Ok((dtype, sizes.ok_or_else(|| bad("a shape is a list of ints"))?))
}

fn decode_tensor(data: &Json) -> Result<Tensor> {
    let (dtype, sizes) = dtype_and_sizes(data)?;
    let encoded = data.get("data").and_then(Json::as_str).ok_or_else(|| bad("a tensor needs data"))?;
    let bytes = BASE64.decode(encoded).map_err(|e| bad(&format!("a tensor's data: {e}")))?;
    Tensor::from_bytes(dtype, &sizes, &bytes)
}

/// Numbers of the standard normal distribution from a seed, the same on every machine.
fn randn(data: &Json) -> Result<Tensor> {
    let (dtype, sizes) = dtype_and_sizes(data)?;
    let count = sizes.iter().try_fold(1i64, |n, size| n.checked_mul((*size).max(0)));
    let count = count.filter(|n| *n <= MAX_RANDN).ok_or_else(|| bad("a random tensor that large"))?;
    let mut state = data.get("seed").and_then(Json::as_u64).unwrap_or(0);
    let mut numbers: Vec<f64> = memory::vec_reserved(count as usize + 1)?;
    while numbers.len() < count as usize {
        if numbers.len() & 0xffff == 0 {
            budget::check()?;
        }
        // Two uniform numbers make two normal ones (Box and Muller).
        let radius = (-2.0 * (1.0 - uniform(&mut state)).ln()).sqrt();
        let angle = std::f64::consts::TAU * uniform(&mut state);
        numbers.push(radius * angle.cos());
        numbers.push(radius * angle.sin());
    }
    numbers.truncate(count as usize);
    Tensor::from_vec(&numbers, &sizes)?.to_dtype(dtype)
}

/// The next number in 0..1 of the generator splitmix64.
pub(super) fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// A value as cases encode it.
pub fn encode(value: &Value) -> Result<Json> {
    encode_at(value, 0)
}

fn encode_at(value: &Value, depth: usize) -> Result<Json> {
    if depth > MAX_DEPTH {
        return Err(Diagnostic::unsupported(format!("values nested more than {MAX_DEPTH} deep in cases")));
    }
    let all = |items: &[Value]| items.iter().map(|v| encode_at(v, depth + 1)).collect::<Result<Vec<Json>>>();
    Ok(match value {
        Value::None | Value::Uninitialized => json!({"none": null}),
        Value::Int(x) => json!({"int": x}),
        Value::Float(x) => json!({"float": encode_float(*x)}),
        Value::Bool(x) => json!({"bool": x}),
        Value::Str(x) => {
            let raw = bytes::bytes(x);
            match bytes::decode_error(&raw) {
                Some(message) => return Err(Diagnostic::raised("UnicodeDecodeError", message)),
                None => json!({"str": String::from_utf8_lossy(&raw)}),
            }
        }
        Value::Complex(z) => json!({"complex": [encode_float(z.re), encode_float(z.im)]}),
        Value::List(list) => json!({"list": all(&list.to_vec())?}),
        Value::Tuple(tuple) => json!({"tuple": all(tuple.items())?}),
        Value::Dict(dict) => {
            let entries: Vec<(Value, Value)> =
                dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
            let entry =
                |(k, v): &(Value, Value)| Ok(json!([encode_at(k, depth + 1)?, encode_at(v, depth + 1)?]));
            json!({"dict": entries.iter().map(entry).collect::<Result<Vec<Json>>>()?})
        }
        Value::Device(device) => json!({"device": device.to_string()}),
        Value::Tensor(tensor) => json!({"tensor": {
            "dtype": tensor.dtype().name(),
            "shape": tensor.sizes().as_slice(),
            "data": BASE64.encode(tensor.to_bytes()?),
        }}),
        Value::Enum(member) => json!({"enum": [member.class.as_str(), member.name.as_str()]}),
        Value::Object(object) => json!({"object": object.class().as_str()}),
        Value::Function(name) => json!({"function": name.as_str()}),
        Value::Generator(_) => json!({"generator": "cpu"}),
        Value::Future(future) => encode_at(&future.wait()?, depth + 1)?,
    })
}

fn encode_float(x: f64) -> Json {
    if x.is_nan() {
        json!("nan")
    } else if x.is_infinite() {
        json!(if x > 0.0 { "inf" } else { "-inf" })
    } else {
        json!(x)
    }
}

/// How far two numbers of a dtype may differ: relative, absolute.
pub fn tolerance(dtype: DType) -> (f64, f64) {
    match dtype {
        DType::F16 => (1e-3, 1e-3),
        DType::BF16 => (1.6e-2, 1e-5),
        DType::F32 | DType::C64 => (1.3e-6, 1e-5),
        DType::F64 | DType::C128 => (1e-7, 1e-7),
        _ => (0.0, 0.0),
    }
}

/// Compares an answer with the recorded one; says where they differ. Structure, ints, text and bools must be
/// equal; floats within the tolerance of their dtype or the case's own.
pub fn compare(expected: &Json, actual: &Value, own: Option<f64>) -> std::result::Result<(), String> {
    compare_at(expected, actual, own, "", 0)
}

fn compare_at(
    expected: &Json,
    actual: &Value,
    own: Option<f64>,
    path: &str,
    depth: usize,
) -> std::result::Result<(), String> {
    let place = if path.is_empty() { String::new() } else { format!("at {path}: ") };
    let differs = |found: String| Err(format!("{place}expected {}, got {found}", cut(expected)));
    let (kind, data) = match expected.as_object().and_then(|o| o.iter().next()) {
        Some((kind, data)) if depth <= MAX_DEPTH => (kind.as_str(), data),
        _ => return Err(format!("{place}the recorded answer is not a value")),
    };
    let items = data.as_array().map(Vec::as_slice).unwrap_or(&[]);
    let found = || shown(actual);
    let each = |values: &[Value]| {
        if values.len() != items.len() {
            return Err(format!("{place}expected {} elements, got {}", items.len(), values.len()));
        }
        for (n, (item, value)) in items.iter().zip(values).enumerate() {
            compare_at(item, value, own, &format!("{path}[{n}]"), depth + 1)?;
        }
        Ok(())
    };
    match (kind, actual) {
        ("none", Value::None) => Ok(()),
        ("int", Value::Int(x)) if data.as_i64() == Some(*x) => Ok(()),
        ("bool", Value::Bool(x)) if data.as_bool() == Some(*x) => Ok(()),
        ("str", Value::Str(x)) if data.as_str().is_some_and(|text| text.as_bytes() == &*bytes::bytes(x)) => {
            Ok(())
        }
        ("device", Value::Device(x)) if data.as_str() == Some(&x.to_string()) => Ok(()),
        ("dtype", Value::Int(x)) if dtype(data).map(DType::code) == Some(*x) => Ok(()),
        ("float", Value::Float(x)) => match decode_float(data) {
            Some(e) if close(Complex64::new(e, 0.0), Complex64::new(*x, 0.0), DType::F64, own) => Ok(()),
            _ => differs(found()),
        },
        ("complex", Value::Complex(x)) => match decode_at(expected, 0) {
            Ok(Value::Complex(e)) if close(e, *x, DType::C128, own) => Ok(()),
            _ => differs(found()),
        },
        ("list", Value::List(list)) => each(&list.to_vec()),
        ("tuple", Value::Tuple(tuple)) => each(tuple.items()),
        ("dict", Value::Dict(dict)) => {
            let entries: Vec<(Value, Value)> =
                dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
            if entries.len() != items.len() {
                return Err(format!("{place}expected {} entries, got {}", items.len(), entries.len()));
            }
            for (n, (item, (key, value))) in items.iter().zip(&entries).enumerate() {
                let Some([k, v]) = item.as_array().map(Vec::as_slice) else { return differs(found()) };
                compare_at(k, key, own, &format!("{path}.key[{n}]"), depth + 1)?;
                compare_at(v, value, own, &format!("{path}.value[{n}]"), depth + 1)?;
            }
            Ok(())
        }
        ("tensor", Value::Tensor(tensor)) => {
            compare_tensors(data, tensor, own).map_err(|e| format!("{place}{e}"))
        }
        ("enum" | "object" | "function", _) if encode(actual).ok().as_ref() == Some(expected) => Ok(()),
        _ => differs(found()),
    }
}

fn shown(value: &Value) -> String {
    encode(value).map_or_else(|d| d.message().to_string(), |json| cut(&json))
}

fn close(expected: Complex64, actual: Complex64, dtype: DType, own: Option<f64>) -> bool {
    let (relative, absolute) = own.map_or_else(|| tolerance(dtype), |t| (t, t));
    let part = |e: f64, a: f64| (e.is_nan() && a.is_nan()) || e == a;
    if part(expected.re, actual.re) && part(expected.im, actual.im) {
        return true;
    }
    // No number is near an infinity: the bound would be infinite too.
    if !expected.re.is_finite() || !expected.im.is_finite() {
        let near =
            |e: f64, a: f64| part(e, a) || (e.is_finite() && (e - a).abs() <= absolute + relative * e.abs());
        return near(expected.re, actual.re) && near(expected.im, actual.im);
    }
    (expected - actual).norm() <= absolute + relative * expected.norm()
}

fn compare_tensors(data: &Json, actual: &Tensor, own: Option<f64>) -> std::result::Result<(), String> {
    let expected = decode_tensor(data).map_err(|d| d.message().to_string())?;
    let dtype = expected.dtype();
    if dtype != actual.dtype() || expected.sizes() != actual.sizes() {
        return Err(format!(
            "expected {} {:?}, got {} {:?}",
            dtype.name(),
            expected.sizes().as_slice(),
            actual.dtype().name(),
            actual.sizes().as_slice()
        ));
    }
    let (expected, actual) = match (expected.to_scalars(), actual.to_scalars()) {
        (Ok(e), Ok(a)) => (e, a),
        (Err(d), _) | (_, Err(d)) => return Err(d.message().to_string()),
    };
    let inexact = dtype.is_floating() || dtype.is_float8() || dtype.is_complex();
    let mut wrong = 0;
    let mut first = None;
    for (n, (e, a)) in expected.iter().zip(&actual).enumerate() {
        let equal = if inexact { close(e.to_complex(), a.to_complex(), dtype, own) } else { e == a };
        if !equal {
            wrong += 1;
            first.get_or_insert((n, *e, *a));
        }
    }
    match first {
        None => Ok(()),
        Some((n, e, a)) => Err(format!(
            "{wrong} of {} elements differ, the first at {n}: expected {}, got {}",
            expected.len(),
            scalar_text(e),
            scalar_text(a)
        )),
    }
}

fn scalar_text(x: Scalar) -> String {
    match x {
        Scalar::Int(x) => x.to_string(),
        Scalar::Float(x) => x.to_string(),
        Scalar::Complex(x) => x.to_string(),
        Scalar::Bool(x) => x.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_survive_the_encoding() {
        let cases = [
            json!({"int": -3}),
            json!({"float": 0.1}),
            json!({"float": "nan"}),
            json!({"float": "-inf"}),
            json!({"complex": [1.5, -0.5]}),
            json!({"list": [{"int": 1}, {"str": "a"}, {"none": null}]}),
            json!({"dict": [[{"str": "b"}, {"int": 1}], [{"str": "a"}, {"bool": true}]]}),
            json!({"tuple": [{"device": "cpu"}]}),
            json!({"tensor": {"dtype": "int64", "shape": [2], "data": "AQAAAAAAAAACAAAAAAAAAA=="}}),
        ];
        for case in cases {
            let value = decode(&case).expect("a value");
            assert_eq!(encode(&value).expect("encodes"), case);
            assert_eq!(compare(&case, &value, None), Ok(()));
        }
    }

    #[test]
    fn no_number_is_near_an_infinity() {
        let near = |a: (f64, f64), b: (f64, f64)| {
            close(Complex64::new(a.0, a.1), Complex64::new(b.0, b.1), DType::C128, None)
        };
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        assert!(near((inf, 0.0), (inf, 0.0)) && near((inf, nan), (inf, nan)) && near((nan, 0.0), (nan, 0.0)));
        assert!(near((inf, 1.0), (inf, 1.0 + 1e-9)) && near((1.0, 0.0), (1.0 + 1e-9, 0.0)));
        assert!(
            !near((inf, 0.0), (2.0, 0.0)) && !near((inf, 0.0), (-inf, 0.0)) && !near((2.0, 0.0), (inf, 0.0))
        );
        assert!(
            !near((inf, 1.0), (inf, 2.0)) && !near((nan, 0.0), (inf, 0.0)) && !near((inf, 0.0), (inf, inf))
        );
    }

    #[test]
    fn differences_are_found() {
        let pair = |a: Json, b: Json| compare(&a, &decode(&b).expect("a value"), None).is_ok();
        assert!(pair(json!({"float": 1.0}), json!({"float": 1.000_000_01})));
        assert!(!pair(json!({"float": 1.0}), json!({"float": 1.000_001})));
        assert!(!pair(json!({"int": 1}), json!({"float": 1.0})));
        assert!(!pair(json!({"int": 1}), json!({"bool": true})));
        assert!(!pair(json!({"tuple": [{"int": 1}]}), json!({"list": [{"int": 1}]})));
        assert!(pair(json!({"float": 0.0}), json!({"float": -0.0})));
    }

    #[test]
    fn random_tensors_are_reproducible_and_normal() {
        let json = json!({"randn": {"dtype": "float64", "shape": [10000], "seed": 7}});
        let Ok(Value::Tensor(t)) = decode(&json) else { panic!("no tensor") };
        let numbers = t.to_vec::<f64>().expect("float64");
        let mean = numbers.iter().sum::<f64>() / 1e4;
        let variance = numbers.iter().map(|x| x * x).sum::<f64>() / 1e4;
        assert!(mean.abs() < 0.05 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
        assert_eq!(
            compare(&encode(&Value::Tensor(t)).expect("encodes"), &decode(&json).expect("again"), None),
            Ok(())
        );
    }
}
