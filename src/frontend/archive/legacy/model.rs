//! What `model.json` says: a message of protocol buffers in the form of JSON. Names of fields are `camelCase` or
//! `snake_case`, numbers of 64 bits are texts. It knows no other entry of the archive.

use crate::diag::{Diagnostic, Result};
use serde_json::Value as Json;

/// The modules and tensors of a model.
#[derive(Debug)]
pub(super) struct ModelDef {
    /// Version of the message.
    pub(super) version: i64,
    /// The module that was saved.
    pub(super) root: ModuleDef,
    /// What parameters and constants are taken from, by number.
    pub(super) tensors: Vec<TensorDef>,
}

/// A module; each has code of its own.
#[derive(Debug)]
pub(super) struct ModuleDef {
    pub(super) name: String,
    pub(super) submodules: Vec<ModuleDef>,
    pub(super) parameters: Vec<ParameterDef>,
    pub(super) attributes: Vec<AttributeDef>,
    /// Entry of the methods' code.
    pub(super) code: Option<String>,
    /// Number, among the attributes, of what `__setstate__` is to be called with.
    pub(super) state: Option<usize>,
}

/// A parameter or buffer.
#[derive(Debug)]
pub(super) struct ParameterDef {
    pub(super) name: String,
    pub(super) tensor: usize,
    pub(super) is_buffer: bool,
}

/// An attribute that is not a tensor of its own.
#[derive(Debug)]
pub(super) struct AttributeDef {
    pub(super) name: String,
    /// Its type as annotations say it.
    pub(super) ty: String,
    /// Number in `attributes.pkl`; None where `__setstate__` sets it.
    pub(super) value: Option<usize>,
}

/// A view of an entry.
#[derive(Debug)]
pub(super) struct TensorDef {
    pub(super) dims: Vec<i64>,
    pub(super) strides: Vec<i64>,
    pub(super) offset: i64,
    pub(super) requires_grad: bool,
    /// Element type as torch names it.
    pub(super) dtype: &'static str,
    /// Name of the entry.
    pub(super) key: String,
    pub(super) device: String,
    /// Scale and zero point of a quantized tensor.
    pub(super) scale: Option<(f64, i64)>,
}

/// Reads the message.
pub(super) fn parse(bytes: &[u8]) -> Result<ModelDef> {
    let json: Json = serde_json::from_slice(bytes)
        .map_err(|error| Diagnostic::input(format!("model.json is not valid JSON: {error}")))?;
    let root = field(&json, "mainModule", "main_module")
        .ok_or_else(|| Diagnostic::input("model.json has no main module"))?;
    Ok(ModelDef {
        version: int(field(&json, "protoVersion", "proto_version"))?.unwrap_or(1),
        root: module(root)?,
        tensors: items(field(&json, "tensors", "tensors")).map(tensor).collect::<Result<_>>()?,
    })
}

fn field<'a>(json: &'a Json, camel: &str, snake: &str) -> Option<&'a Json> {
    json.get(camel).or_else(|| json.get(snake))
}

fn items(json: Option<&Json>) -> impl Iterator<Item = &Json> {
    json.and_then(Json::as_array).into_iter().flatten()
}

/// A number of 64 bits, which may be a text; None where the field is left out.
fn int(json: Option<&Json>) -> Result<Option<i64>> {
    let number = match json {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::String(text)) => text.parse().ok(),
        Some(other) => other.as_i64(),
    };
    number.map(Some).ok_or_else(|| Diagnostic::input("model.json has no number where one is required"))
}

fn index(json: Option<&Json>) -> Result<Option<usize>> {
    Ok(int(json)?.and_then(|n| usize::try_from(n).ok()))
}

fn text(json: Option<&Json>) -> String {
    json.and_then(Json::as_str).unwrap_or_default().to_string()
}

fn flag(json: Option<&Json>) -> bool {
    json.and_then(Json::as_bool).unwrap_or(false)
}

/// The entry that a record names.
fn entry(record: Option<&Json>) -> Option<String> {
    Some(record?.get("key")?.as_str()?.to_string())
}

/// The parser of JSON bounds how deep modules are nested.
fn module(json: &Json) -> Result<ModuleDef> {
    Ok(ModuleDef {
        name: text(json.get("name")),
        submodules: items(json.get("submodules")).map(module).collect::<Result<_>>()?,
        parameters: items(json.get("parameters")).map(parameter).collect::<Result<_>>()?,
        attributes: items(json.get("attributes")).map(attribute).collect::<Result<_>>()?,
        code: entry(field(json, "torchscriptArena", "torchscript_arena")),
        state: index(field(json, "getStateAttributeId", "get_state_attribute_id"))?,
    })
}

fn parameter(json: &Json) -> Result<ParameterDef> {
    Ok(ParameterDef {
        name: text(json.get("name")),
        tensor: index(field(json, "tensorId", "tensor_id"))?.unwrap_or(0),
        is_buffer: flag(field(json, "isBuffer", "is_buffer")),
    })
}

fn attribute(json: &Json) -> Result<AttributeDef> {
    let (name, ty) = (text(json.get("name")), text(json.get("type")));
    Ok(AttributeDef { name, ty, value: index(json.get("id"))? })
}

fn tensor(json: &Json) -> Result<TensorDef> {
    let numbers = |key: &str| -> Result<Vec<i64>> {
        items(json.get(key)).map(|n| Ok(int(Some(n))?.unwrap_or(0))).collect()
    };
    let key = entry(json.get("data"))
        .ok_or_else(|| Diagnostic::input("a tensor of model.json does not say where its elements are"))?;
    let is_quantized = flag(field(json, "isQuantized", "is_quantized"));
    let scale = is_quantized.then(|| -> Result<(f64, i64)> {
        let scale = json.get("scale").and_then(Json::as_f64).unwrap_or(1.0);
        Ok((scale, int(field(json, "zeroPoint", "zero_point"))?.unwrap_or(0)))
    });
    Ok(TensorDef {
        dims: numbers("dims")?,
        strides: numbers("strides")?,
        offset: int(json.get("offset"))?.unwrap_or(0),
        requires_grad: flag(field(json, "requiresGrad", "requires_grad")),
        dtype: dtype(field(json, "dataType", "data_type"), is_quantized)?,
        key,
        device: json.get("device").and_then(Json::as_str).unwrap_or("cpu").to_string(),
        scale: scale.transpose()?,
    })
}

/// Element types: their name in the message, their number, the name of torch, and that of the quantized type.
const DTYPES: [(&str, i64, &str, &str); 11] = [
    ("FLOAT", 1, "float32", ""),
    ("INT32", 2, "int32", "qint32"),
    ("BYTE", 3, "uint8", "quint8"),
    ("BOOL", 5, "bool", ""),
    ("UINT8", 6, "uint8", "quint8"),
    ("INT8", 7, "int8", "qint8"),
    ("INT16", 9, "int16", ""),
    ("INT64", 10, "int64", ""),
    ("FLOAT16", 12, "float16", ""),
    ("DOUBLE", 13, "float64", ""),
    ("UNDEFINED", 0, "", ""),
];

fn dtype(json: Option<&Json>, is_quantized: bool) -> Result<&'static str> {
    let row = DTYPES.iter().find(|(name, number, ..)| {
        json.is_some_and(|json| json.as_str() == Some(name) || json.as_i64() == Some(*number))
    });
    let name = row.map_or("", |(_, _, plain, quantized)| if is_quantized { quantized } else { plain });
    match name {
        "" => {
            let stated = json.map_or("none".to_string(), Json::to_string);
            Err(Diagnostic::unsupported(format!("a tensor of model.json has the element type {stated}")))
        }
        name => Ok(name),
    }
}
