//! Text: parts, joins, formatting. Places count bytes, as in PyTorch, and a part may end within a character. Methods that
//! change or test letters are in `text_case`, searching in `text_find`.

use super::list::{place, slice_places};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, container, host, one};
use crate::ir::Type;
use crate::ir::text::number::write_general;
use crate::resources::{budget, memory};
use crate::value::Value;
use crate::value::bytes::{bytes, joined, text};
use std::borrow::Cow;
use std::fmt::Write;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::len.str(str s) -> int", |a| one(bytes(a.str(0)?).len() as i64)).doc("the number of bytes"),
    host("aten::add.str(str a, str b) -> str", add).doc("one text after the other"),
    host("aten::__getitem__.str(str s, int index) -> str", get_item).doc("one character"),
    host("prim::StringIndex(str string, int index) -> str", get_item).doc("one character"),
    host("aten::slice.str(str string, int? start=None, int? end=None, int step=1) -> str", slice)
        .doc("every step-th character of a range"),
    container("aten::list(str t) -> str[]", list).doc("the characters"),
    host("aten::str(t elem) -> str", str).doc("the value as print shows it"),
    host("aten::format(str self, ...) -> str", format).doc("`{}` replaced by the values in order"),
    host("aten::percentFormat(str self, ...) -> str", percent_format)
        .doc("`%s`, `%d`, `%f`, `%e`, `%c` replaced"),
    host("aten::join(str self, str[] values) -> str", join).doc("texts with a separator between them"),
];

/// The bytes of an argument.
pub(super) fn given<'a>(args: &Args<'a>, n: usize) -> Result<Cow<'a, [u8]>> {
    args.str(n).map(|text| bytes(text))
}

/// Bytes as a value.
pub(super) fn value(bytes: &[u8]) -> Value {
    Value::str(text(bytes))
}

fn add(args: &Args<'_>) -> Result<Outputs> {
    let (a, b) = (args.str(0)?, args.str(1)?);
    let mut out = memory::text_reserved(a.len() + b.len())?;
    out.push_str(a);
    out.push_str(b);
    one(Value::str(joined(out)))
}

fn get_item(args: &Args<'_>) -> Result<Outputs> {
    let (bytes, index) = (given(args, 0)?, args.int(1)?);
    match place(index, bytes.len()).and_then(|at| bytes.get(at)) {
        Some(byte) => one(value(&[*byte])),
        None => {
            let size = bytes.len() as i64;
            let at = if index < 0 { index.wrapping_add(size) } else { index } as u64;
            Err(Diagnostic::runtime(format!(
                "basic_string::at: __n (which is {at}) >= this->size() (which is {size})"
            )))
        }
    }
}

fn slice(args: &Args<'_>) -> Result<Outputs> {
    let bytes = given(args, 0)?;
    let places = slice_places(bytes.len(), args.opt_int(1)?, args.opt_int(2)?, args.int(3)?)?;
    one(value(&places.filter_map(|at| bytes.get(at).copied()).collect::<Vec<u8>>()))
}

fn list(args: &Args<'_>) -> Result<Outputs> {
    one(Value::list(Type::str(), given(args, 0)?.iter().map(|b| value(&[*b])).collect()))
}

fn join(args: &Args<'_>) -> Result<Outputs> {
    let separator = args.str(0)?;
    let list = args.list(1)?;
    let items = list.items();
    let mut bytes = separator.len().saturating_mul(items.len().saturating_sub(1));
    for item in items.iter() {
        bytes = bytes.saturating_add(item.to_str()?.len());
    }
    let mut out = memory::text_reserved(bytes)?;
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n > 0 { separator } else { "" });
        out.push_str(item.to_str()?);
    }
    one(Value::str(joined(out)))
}

fn str(args: &Args<'_>) -> Result<Outputs> {
    let mut out = String::new();
    args.value(0)?.write_text(&mut out)?;
    one(Value::str(joined(out)))
}

fn format(args: &Args<'_>) -> Result<Outputs> {
    let pattern = args.str(0)?;
    let mut values = args.values.iter().skip(1);
    let mut parts = pattern.split("{}");
    let mut out = parts.next().unwrap_or("").to_string();
    for part in parts {
        budget::expect_room(out.len())?;
        match values.next() {
            Some(value) => value.write_text(&mut out)?,
            None => {
                return Err(Diagnostic::runtime(format!("Too few arguments for format string: {pattern}")));
            }
        }
        out.push_str(part);
    }
    one(Value::str(joined(out)))
}

/// C's formatting in the subset that PyTorch has. Numbers go through float32 and int32 there, and so here.
fn percent_format(args: &Args<'_>) -> Result<Outputs> {
    let pattern = args.str(0)?;
    let values = match args.values {
        [_, Value::Tuple(tuple)] => tuple.items(),
        [_, rest @ ..] => rest,
        [] => &[],
    };
    let mut values = values.iter();
    let mut out = String::new();
    let mut parts = pattern.chars();
    while let Some(c) = parts.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let Some(key) = parts.next() else {
            return Err(Diagnostic::runtime("Incomplete format specifier"));
        };
        if key == '%' {
            out.push('%');
            continue;
        }
        let Some(value) = values.next() else {
            return Err(Diagnostic::runtime("Too few arguments for format string"));
        };
        write_key(&mut out, key, value)?;
    }
    if values.next().is_some() {
        return Err(Diagnostic::runtime("Too many arguments for format string"));
    }
    one(Value::str(joined(out)))
}

fn write_key(out: &mut String, key: char, value: &Value) -> Result<()> {
    match key {
        'd' | 'i' => match value {
            Value::Int(x) => {
                let _ = write!(out, "{x}");
            }
            _ => {
                let x = number(key, value)?.trunc();
                let whole =
                    if (-2_147_483_648.0..2_147_483_648.0).contains(&x) { x as i32 } else { i32::MIN };
                let _ = write!(out, "{whole}");
            }
        },
        'e' | 'E' => {
            let text = scientific(f64::from(number(key, value)? as f32));
            out.push_str(&if key == 'E' { text.to_uppercase() } else { text });
        }
        'f' | 'F' => {
            let x = f64::from(number(key, value)? as f32);
            if x.is_finite() {
                let _ = write!(out, "{x:.6}");
            } else {
                write_general(out, x, 6);
            }
        }
        'c' => match value {
            Value::Int(x) => out.push_str(&text(&[*x as u8])),
            Value::Str(text) if bytes(text).len() == 1 => out.push_str(text),
            other => {
                return Err(Diagnostic::runtime(format!(
                    "%{key} requires an int or char for formatting, but got {}",
                    tag(other)
                )));
            }
        },
        's' => value.write_text(out)?,
        _ => {
            return Err(Diagnostic::runtime(format!(
                "The specifier %{key} is not supported in TorchScript format strings"
            )));
        }
    }
    Ok(())
}

fn number(key: char, value: &Value) -> Result<f64> {
    match value {
        Value::Int(_) | Value::Float(_) => value.to_float(),
        Value::Bool(x) => Ok(f64::from(u8::from(*x))),
        other => Err(Diagnostic::runtime(format!(
            "%{key} requires a number for formatting, but got {}",
            tag(other)
        ))),
    }
}

/// C's `%e`.
fn scientific(x: f64) -> String {
    if !x.is_finite() {
        let mut text = String::new();
        write_general(&mut text, x, 6);
        return text;
    }
    let plain = format!("{x:.6e}");
    let (digits, exponent) = plain.split_once('e').unwrap_or((&plain, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.abs())
}

/// What PyTorch calls the kind of a value.
fn tag(value: &Value) -> &'static str {
    match value {
        Value::Float(_) => "Double",
        Value::Int(_) => "Int",
        Value::Bool(_) => "Bool",
        Value::Complex(_) => "ComplexDouble",
        Value::Str(_) => "String",
        Value::Dict(_) => "GenericDict",
        Value::List(list) => match list.element_type().kind() {
            crate::ir::TypeKind::Int => "IntList",
            crate::ir::TypeKind::Float => "DoubleList",
            crate::ir::TypeKind::Bool => "BoolList",
            crate::ir::TypeKind::Complex => "ComplexDoubleList",
            crate::ir::TypeKind::Tensor(_) => "TensorList",
            _ => "GenericList",
        },
        other => other.kind_name(),
    }
}
