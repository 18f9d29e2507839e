//! Files of arguments: `.json`, `.npy`, `.npz`, `.safetensors`. Each value comes with its name where the file has names.

use crate::diag::{Diagnostic, ErrorKind, Result, files};
use crate::tensor::{DType, Tensor};
use crate::tools::case::decode;
use crate::tools::numpy;
use crate::value::Value;
use std::path::Path;

/// Most bytes of a file of arguments.
const ARGUMENT_BYTES: u64 = 64 << 30;

/// A value with its name in the file, if it has one.
pub(super) type Named = (Option<String>, Value);

/// What a value in JSON is that no case file could hold.
pub(super) type Plain<'a> = &'a mut dyn FnMut(&serde_json::Value) -> Result<Value>;

/// The values of a file in order; safetensors files in order of names. JSON holds encoded values as case files do, or plain
/// ones; a list holds one value an item.
pub(super) fn read(file: &Path, plain: Plain<'_>) -> Result<Vec<Named>> {
    let named = |e: String| Diagnostic::input(format!("{}: {e}", file.display()));
    let bytes = files::read(file, ARGUMENT_BYTES).map_err(|e| named(e.to_string()))?;
    let shown = |error: Diagnostic| {
        let hints = error.report().hints.clone();
        let error = Diagnostic::new(error.kind(), format!("{}: {}", file.display(), error.message()));
        hints.into_iter().fold(error, Diagnostic::hint)
    };
    match file.extension().and_then(|e| e.to_str()) {
        Some("json") => {
            let json: serde_json::Value = serde_json::from_slice(&bytes).map_err(|e| named(e.to_string()))?;
            json_values(&json, plain).map_err(shown)
        }
        Some("npy") => Ok(vec![(None, numpy::read_npy(&bytes).map_err(shown)?.into())]),
        Some("npz") => {
            let tensors = numpy::read_npz(&bytes).map_err(shown)?;
            Ok(tensors.into_iter().map(|(name, tensor)| (Some(name), tensor.into())).collect())
        }
        Some("safetensors") => safetensors(&bytes).map_err(shown),
        _ => Err(named("arguments are .json, .npy, .npz or .safetensors files".to_string())),
    }
}

fn json_values(json: &serde_json::Value, plain: Plain<'_>) -> Result<Vec<Named>> {
    // An object whose one key is a kind of value is one that a case file could hold; other objects name their values.
    if let serde_json::Value::Object(pairs) = json
        && let Err(error) = decode(json)
        && (pairs.len() != 1 || error.kind() == ErrorKind::Unsupported)
    {
        let pair = |(name, value): (&String, &serde_json::Value)| {
            Ok((Some(name.clone()), json_value(value, plain)?))
        };
        return pairs.iter().map(pair).collect();
    }
    let items = json.as_array().cloned().unwrap_or_else(|| vec![json.clone()]);
    items.iter().map(|item| Ok((None, json_value(item, plain)?))).collect()
}

/// An encoded value, or else a plain one. A mistake in an encoded one is reported as such.
fn json_value(json: &serde_json::Value, plain: Plain<'_>) -> Result<Value> {
    match decode(json) {
        Ok(value) => Ok(value),
        Err(error) if json.is_object() => Err(error),
        Err(_) => plain(json),
    }
}

/// The tensors of a file in order of their names.
fn safetensors(bytes: &[u8]) -> Result<Vec<Named>> {
    let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| Diagnostic::input(e.to_string()))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let tensor = |(name, view): (String, safetensors::tensor::TensorView<'_>)| {
        use safetensors::Dtype as D;
        let dtype = match view.dtype() {
            D::BOOL => DType::Bool,
            D::U8 => DType::U8,
            D::I8 => DType::I8,
            D::I16 => DType::I16,
            D::I32 => DType::I32,
            D::I64 => DType::I64,
            D::F16 => DType::F16,
            D::BF16 => DType::BF16,
            D::F32 => DType::F32,
            D::F64 => DType::F64,
            other => return Err(Diagnostic::unsupported(format!("tensor '{name}' of dtype {other:?}"))),
        };
        let sizes: Vec<i64> = view.shape().iter().map(|n| *n as i64).collect();
        Ok((Some(name), Value::Tensor(Tensor::from_bytes(dtype, &sizes, view.data())?)))
    };
    tensors.into_iter().map(tensor).collect()
}
