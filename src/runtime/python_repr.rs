//! Values as Python's `repr` shows them, for messages about arguments.

use crate::tensor::{Scalar, Tensor};
use crate::value::Value;
use crate::value::python_text::{number_text, write_str};
use std::fmt::Write;

/// Text longer than this is cut.
const MAX_CHARS: usize = 1_000;

/// The Python class of a value, with its module where it is not built in.
pub(super) fn class_name(value: &Value) -> String {
    match value {
        Value::None | Value::Uninitialized => "NoneType",
        Value::Tensor(_) => "torch.Tensor",
        Value::Int(_) => "int",
        Value::Float(_) => "float",
        Value::Complex(_) => "complex",
        Value::Bool(_) => "bool",
        Value::Str(_) => "str",
        Value::List(_) => "list",
        Value::Dict(_) => "dict",
        Value::Tuple(_) => "tuple",
        Value::Device(_) => "torch.device",
        Value::Generator(_) => "torch._C.Generator",
        Value::Future(_) => "torch.jit.Future",
        Value::Function(_) => "torch.jit.ScriptFunction",
        Value::Object(object) => return object.class().as_str().to_string(),
        Value::Enum(member) => return member.class.as_str().to_string(),
    }
    .to_string()
}

/// A value in Python's notation.
pub(super) fn repr(value: &Value) -> String {
    let mut out = String::new();
    write_value(&mut out, value, 0);
    if out.chars().count() > MAX_CHARS {
        out = out.chars().take(MAX_CHARS).collect::<String>() + "...";
    }
    out
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    if depth > 20 || out.len() > 4 * MAX_CHARS {
        out.push_str("...");
        return;
    }
    match value {
        Value::None | Value::Uninitialized => out.push_str("None"),
        Value::Tensor(t) => write_tensor(out, t),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Int(_) | Value::Float(_) | Value::Complex(_) => match value.to_scalar() {
            Ok(number) => out.push_str(&number_text(number)),
            Err(_) => out.push('?'),
        },
        Value::Str(text) => write_str(out, text),
        Value::List(list) => write_items(out, '[', &list.to_vec(), "]", depth),
        Value::Tuple(tuple) => {
            let close = if tuple.items().len() == 1 { ",)" } else { ")" };
            write_items(out, '(', tuple.items(), close, depth);
        }
        Value::Dict(dict) => {
            out.push('{');
            for (n, (key, item)) in dict.entries().iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_value(out, &key.to_value(), depth + 1);
                out.push_str(": ");
                write_value(out, item, depth + 1);
            }
            out.push('}');
        }
        Value::Device(device) => {
            let _ = write!(out, "device(type='{}'", device.kind_name());
            if let Some(index) = device.index() {
                let _ = write!(out, ", index={index}");
            }
            out.push(')');
        }
        other => {
            let _ = write!(out, "<{} object>", class_name(other));
        }
    }
}

fn write_items(out: &mut String, open: char, items: &[Value], close: &str, depth: usize) {
    out.push(open);
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n > 0 { ", " } else { "" });
        write_value(out, item, depth + 1);
    }
    out.push_str(close);
}

/// Small tensors with their elements; large ones by shape.
fn write_tensor(out: &mut String, tensor: &Tensor) {
    let sizes = tensor.sizes();
    let elements = if tensor.numel() <= 64 { tensor.to_scalars().ok() } else { None };
    match elements {
        Some(elements) => {
            out.push_str("tensor(");
            write_nested(out, &sizes, &elements);
            out.push(')');
        }
        None => {
            let _ = write!(out, "tensor(<{} of sizes {:?}>)", tensor.dtype().name(), sizes.as_slice());
        }
    }
}

fn write_nested(out: &mut String, sizes: &[i64], elements: &[Scalar]) {
    let Some((first, rest)) = sizes.split_first() else {
        if let Some(x) = elements.first() {
            let text = number_text(*x);
            out.push_str(match x {
                Scalar::Float(_) => text.strip_suffix('0').filter(|t| t.ends_with('.')).unwrap_or(&text),
                _ => &text,
            });
        }
        return;
    };
    let step = elements.len() / (*first).max(1) as usize;
    out.push('[');
    for n in 0..*first as usize {
        out.push_str(if n > 0 { ", " } else { "" });
        write_nested(out, rest, elements.get(n * step..(n + 1) * step).unwrap_or(&[]));
    }
    out.push(']');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_read_as_in_python() {
        let cases = [
            (Value::Float(2.0), "2.0"),
            (Value::Float(1e20), "1e+20"),
            (Value::Float(1e-5), "1e-05"),
            (Value::str("it's"), "\"it's\""),
            (Value::tuple(vec![Value::Int(1)]), "(1,)"),
            (Value::ints([1, 2]), "[1, 2]"),
            (Value::Tensor(Tensor::from_vec(&[3i64, 4], &[2]).expect("valid")), "tensor([3, 4])"),
            (Value::Tensor(Tensor::from_vec(&[0f32], &[1]).expect("valid")), "tensor([0.])"),
        ];
        for (value, expected) in cases {
            assert_eq!(repr(&value), expected);
        }
    }
}
