//! Answers in files: `run --output`. Parts of an answer are named by their place in it: `0`, `1.boxes`.

use super::{case, numpy};
use crate::diag::{Diagnostic, Result};
use crate::frontend::archive::Writer;
use crate::tensor::{DType, Tensor};
use crate::value::Value;
use std::borrow::Cow;
use std::path::Path;

/// Values nested deeper than this are refused.
const MAX_DEPTH: usize = 100;
/// The name of an answer that is one tensor, in files whose entries have names.
const ALONE: &str = "output";

/// A form of file.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Npy,
    Npz,
    Safetensors,
    Json,
}

fn form(path: &Path) -> Result<Form> {
    Ok(match path.extension().and_then(|e| e.to_str()) {
        Some("npy") => Form::Npy,
        Some("npz") => Form::Npz,
        Some("safetensors") => Form::Safetensors,
        Some("json") => Form::Json,
        _ => {
            let message =
                format!("{}: answers are written to .npz, .npy, .safetensors or .json", path.display());
            return Err(Diagnostic::usage(message));
        }
    })
}

/// Fails for names of files that no answer is written to; to be asked before the work is done.
pub fn check_name(path: &Path) -> Result<()> {
    form(path).map(|_| ())
}

/// Writes an answer; returns a description of what was written.
pub fn write(path: &Path, value: &Value) -> Result<String> {
    let form = form(path)?;
    let (bytes, written) = match form {
        Form::Json => {
            let text = format!("[{}]\n", case::encode(value)?);
            (text.into_bytes(), "the answer as `--args` takes it".to_string())
        }
        Form::Npy => match value {
            Value::Tensor(tensor) => (numpy::write_npy(tensor)?, about(tensor)),
            other => {
                let error = Diagnostic::input(format!(
                    "the answer is a {}, and .npy holds one tensor",
                    other.kind_name()
                ));
                return Err(error.hint("write it to .npz, .safetensors or .json"));
            }
        },
        Form::Npz | Form::Safetensors => {
            let tensors = named_tensors(value)?;
            let lines: Vec<String> = tensors.iter().map(|(name, t)| format!("{name} {}", about(t))).collect();
            (file_of(form, &tensors)?, lines.join(", "))
        }
    };
    write_file(path, &bytes)?;
    Ok(written)
}

/// Writes tensors by name to a `.npz` or `.safetensors` file; returns a description of what was written.
pub fn write_tensors(path: &Path, tensors: &[(String, Tensor)]) -> Result<String> {
    let form = form(path)?;
    if form != Form::Npz && form != Form::Safetensors {
        let message = format!("{}: weights are written to .safetensors or .npz", path.display());
        return Err(Diagnostic::usage(message));
    }
    write_file(path, &file_of(form, tensors)?)?;
    let numbers: i64 = tensors.iter().map(|(_, t)| t.numel() as i64).sum();
    Ok(format!("{} tensors of {numbers} numbers", tensors.len()))
}

/// Replaces a file only when it is written whole.
pub(super) fn write_file(path: &Path, bytes: &[u8]) -> Result<()> {
    let failed = |e: std::io::Error| Diagnostic::input(format!("{}: {e}", path.display()));
    let mut part = path.as_os_str().to_os_string();
    part.push(".part");
    std::fs::write(&part, bytes).and_then(|()| std::fs::rename(&part, path)).map_err(failed)
}

fn file_of(form: Form, tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    if form == Form::Npz { npz(tensors) } else { safetensors(tensors) }
}

fn about(tensor: &Tensor) -> String {
    let sizes: Vec<String> = tensor.sizes().iter().map(i64::to_string).collect();
    format!("{}[{}]", tensor.dtype().name(), sizes.join(","))
}

/// All tensors and numbers of a value with the names of their places. Fails for what is not a number.
pub fn named_tensors(value: &Value) -> Result<Vec<(String, Tensor)>> {
    let mut out = Vec::new();
    let mut work = vec![(String::new(), value.clone(), 0)];
    while let Some((path, value, depth)) = work.pop() {
        if depth > MAX_DEPTH {
            return Err(Diagnostic::unsupported(format!(
                "answers nested more than {MAX_DEPTH} deep in files"
            )));
        }
        let name = || if path.is_empty() { ALONE.to_string() } else { path.clone() };
        let mut parts: Vec<(String, Value, usize)> = Vec::new();
        let mut part = |key: &str, value: Value| {
            let path = if path.is_empty() { key.to_string() } else { format!("{path}.{key}") };
            parts.push((path, value, depth + 1));
        };
        match &value {
            Value::Tensor(tensor) => out.push((name(), tensor.clone())),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Complex(_) => {
                let scalar = value.to_scalar()?;
                let dtype = match &value {
                    Value::Float(_) => DType::F64,
                    Value::Complex(_) => DType::C128,
                    _ => scalar.dtype(),
                };
                out.push((name(), Tensor::from_scalar(scalar, dtype)?));
            }
            Value::Tuple(tuple) => {
                for (n, item) in tuple.items().iter().enumerate() {
                    let field = tuple.names().and_then(|names| names.fields.get(n));
                    part(&field.map_or(n.to_string(), |f| f.as_str().to_string()), item.clone());
                }
            }
            Value::List(list) => {
                list.to_vec().into_iter().enumerate().for_each(|(n, item)| part(&n.to_string(), item));
            }
            Value::Dict(dict) => {
                dict.entries().iter().for_each(|(key, item)| part(&key.to_value().to_text(), item.clone()));
            }
            Value::None => {}
            Value::Future(future) => parts.push((path.clone(), future.wait()?, depth + 1)),
            other => {
                let message = format!(
                    "'{}' of the answer is a {}, which this form cannot hold",
                    name(),
                    other.kind_name()
                );
                return Err(Diagnostic::input(message).hint("write the answer to .json"));
            }
        }
        work.extend(parts.into_iter().rev());
    }
    Ok(out)
}

fn npz(tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    let mut writer = Writer::without_root(Vec::new());
    for (name, tensor) in tensors {
        let bytes = numpy::write_npy(tensor)?;
        writer.add(&format!("{name}.npy"), &bytes)?;
    }
    writer.finish()
}

/// A tensor as the crate that writes the files sees it.
struct View {
    dtype: safetensors::Dtype,
    sizes: Vec<usize>,
    bytes: Vec<u8>,
}

impl safetensors::View for View {
    fn dtype(&self) -> safetensors::Dtype {
        self.dtype
    }

    fn shape(&self) -> &[usize] {
        &self.sizes
    }

    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Borrowed(&self.bytes)
    }

    fn data_len(&self) -> usize {
        self.bytes.len()
    }
}

fn safetensors(tensors: &[(String, Tensor)]) -> Result<Vec<u8>> {
    use safetensors::Dtype as D;
    let mut views = Vec::new();
    for (name, tensor) in tensors {
        let dtype = match tensor.dtype() {
            DType::Bool => D::BOOL,
            DType::U8 => D::U8,
            DType::I8 => D::I8,
            DType::I16 => D::I16,
            DType::I32 => D::I32,
            DType::I64 => D::I64,
            DType::F16 => D::F16,
            DType::BF16 => D::BF16,
            DType::F32 => D::F32,
            DType::F64 => D::F64,
            other => {
                return Err(Diagnostic::unsupported(format!(
                    "tensor '{name}' of dtype {} in safetensors files",
                    other.name()
                ))
                .hint("write the answer to .npz or .json"));
            }
        };
        let sizes = tensor.sizes().iter().map(|n| *n as usize).collect();
        views.push((name.as_str(), View { dtype, sizes, bytes: tensor.to_bytes()? }));
    }
    safetensors::serialize(views, None).map_err(|e| Diagnostic::input(e.to_string()))
}
