//! Values as `print` and `str` show them: text without quotes, floats with 17 digits and a trailing dot where
//! they are whole, tensors as C++ prints them.
//!
//! Containers may hold the same parts many times, so that text can be far longer than a value is large: it is bounded by
//! [`MAX_TEXT`].

use super::Value;
use super::tensor_text::write_tensor;
use crate::diag::{Diagnostic, Result};
use crate::ir::text::number::write_general;
use num_complex::Complex64;
use std::fmt::Write;

/// Text of containers that are nested deeper is refused: a list may hold itself.
const MAX_DEPTH: usize = 50_000;
/// Number of levels that take one piece of stack.
const LEVELS: usize = 64;

/// A value's text is no longer than this many bytes.
pub const MAX_TEXT: usize = 1 << 26;

/// Room for the text that errors and people see of values.
const SHOWN: usize = 1 << 16;

/// Why a text ends early.
enum Stop {
    /// It does not fit into its room.
    TooLong,
    /// Containers are nested deeper than [`MAX_DEPTH`].
    TooDeep,
}

type Written = std::result::Result<(), Stop>;

impl Value {
    /// The value as TorchScript's `str` gives it, for people: cut where it is very long.
    pub fn to_text(&self) -> String {
        let mut out = Text { out: String::new(), room: SHOWN };
        if out.value(self, 0).is_err() {
            // What people see of a value without end need not be longer than this.
            out.out.truncate(out.out.floor_char_boundary(SHOWN));
            out.out.push_str("...");
        }
        out.out
    }

    /// Appends the value as TorchScript's `str` gives it. Fails where `out` would be longer than [`MAX_TEXT`], and for
    /// containers that are nested too deeply.
    pub fn write_text(&self, out: &mut String) -> Result<()> {
        let mut text = Text { out: std::mem::take(out), room: MAX_TEXT };
        let written = text.value(self, 0);
        *out = text.out;
        written.map_err(|stop| match stop {
            Stop::TooLong => Diagnostic::runtime(format!(
                "the text of a value takes more than {MAX_TEXT} bytes"
            ))
            .hint("a container that holds the same parts many times is written out in full; print its parts"),
            Stop::TooDeep => Diagnostic::runtime(format!(
                "a value is nested more than {MAX_DEPTH} deep, too deep for its text"
            ))
            .hint("a list that holds itself has no text"),
        })
    }
}

/// Text with a limit.
struct Text {
    out: String,
    room: usize,
}

impl Text {
    fn value(&mut self, value: &Value, depth: usize) -> Written {
        if depth > MAX_DEPTH {
            return Err(Stop::TooDeep);
        }
        if depth % LEVELS == LEVELS - 1 {
            return stacker::maybe_grow(128 << 10, 1 << 20, || self.shallow(value, depth));
        }
        self.shallow(value, depth)
    }

    fn shallow(&mut self, value: &Value, depth: usize) -> Written {
        let out = &mut self.out;
        match value {
            Value::None => out.push_str("None"),
            Value::Uninitialized => out.push_str("Uninitialized"),
            Value::Tensor(t) => {
                // Each number takes a digit and a separator.
                if t.numel() > self.room.saturating_sub(out.len()) / 2 {
                    return Err(Stop::TooLong);
                }
                write_tensor(out, t);
            }
            Value::Int(x) => {
                let _ = write!(out, "{x}");
            }
            Value::Float(x) => write_float(out, *x),
            Value::Complex(z) => write_complex(out, *z),
            Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
            Value::Str(text) if text.len() > self.room.saturating_sub(out.len()) => {
                return Err(Stop::TooLong);
            }
            Value::Str(text) => out.push_str(text),
            Value::List(list) => self.items("[", &list.to_vec(), "]", depth)?,
            Value::Tuple(tuple) => {
                let close = if tuple.items().len() == 1 { ",)" } else { ")" };
                self.items("(", tuple.items(), close, depth)?;
            }
            Value::Dict(dict) => {
                out.push('{');
                let entries: Vec<_> = dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
                for (n, (key, item)) in entries.iter().enumerate() {
                    self.out.push_str(if n > 0 { ", " } else { "" });
                    self.value(key, depth + 1)?;
                    self.out.push_str(": ");
                    self.value(item, depth + 1)?;
                }
                self.out.push('}');
            }
            Value::Object(object) => {
                let _ = write!(out, "<{} object at {:#x}>", object.class(), object.id());
            }
            Value::Enum(member) => {
                let class = member.class.as_str();
                let class = class.rsplit('.').next().unwrap_or(class);
                let _ = write!(out, "Enum<{class}.{}>", member.name);
            }
            Value::Device(device) => {
                let _ = write!(out, "{device}");
            }
            Value::Generator(_) => out.push_str("Generator"),
            Value::Future(_) => out.push_str("Future"),
            Value::Function(name) => out.push_str(name.as_str()),
        }
        if self.out.len() > self.room { Err(Stop::TooLong) } else { Ok(()) }
    }

    fn items(&mut self, open: &str, items: &[Value], close: &str, depth: usize) -> Written {
        self.out.push_str(open);
        for (n, item) in items.iter().enumerate() {
            self.out.push_str(if n > 0 { ", " } else { "" });
            self.value(item, depth + 1)?;
        }
        self.out.push_str(close);
        Ok(())
    }
}

/// A float: whole numbers below 2^63 as digits and a dot, others with up to 17 significant digits.
pub fn write_float(out: &mut String, x: f64) {
    if x.is_nan() {
        out.push_str(if x.is_sign_negative() { "-nan" } else { "nan" });
    } else if x.is_infinite() {
        out.push_str(if x > 0.0 { "inf" } else { "-inf" });
    } else if x == x.trunc() && x.abs() < 9_223_372_036_854_775_808.0 && (x == 0.0 || x.is_normal()) {
        let _ = write!(out, "{}.", x as i64);
    } else {
        write_general(out, x, 17);
    }
}

/// A complex number: `1.+2.j`.
fn write_complex(out: &mut String, z: Complex64) {
    write_float(out, z.re);
    out.push(if z.im >= 0.0 { '+' } else { '-' });
    write_float(out, z.im.abs());
    out.push('j');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Tensor;

    #[test]
    fn text_of_values_that_share_parts_is_bounded() {
        for wrap in [
            |x: Value| Value::tuple(vec![x.clone(), x]),
            |x: Value| Value::list(crate::ir::Type::any(), vec![x.clone(), x]),
        ] {
            let value = (0..60).fold(Value::Int(1), |x, _| wrap(x));
            assert!(value.to_text().len() < SHOWN + 200 && value.to_text().ends_with("..."));
            let mut text = Text { out: String::new(), room: 10_000 };
            assert!(text.value(&value, 0).is_err() && text.out.len() < 10_200);
        }
        let many = Tensor::zeros(crate::tensor::DType::F32, &[1]).and_then(|t| t.broadcast_to(&[1 << 40]));
        let error =
            Value::Tensor(many.expect("a view")).write_text(&mut String::new()).expect_err("2^40 numbers");
        assert_eq!(error.message(), format!("the text of a value takes more than {MAX_TEXT} bytes"));
        // Lists of many numbers are no such values.
        let mut whole = String::new();
        Value::ints(0..20_000).write_text(&mut whole).expect("short");
        assert_eq!(whole.len(), 20_000 * 2 + 88_890);
    }

    #[test]
    fn nested_values_are_written_out_to_any_depth_that_ends() {
        let nested = |depth: usize| {
            (0..depth).fold(Value::Int(7), |x, _| Value::list(crate::ir::Type::any(), vec![x]))
        };
        let mut out = String::new();
        nested(20_000).write_text(&mut out).expect("deep, and it ends");
        assert_eq!(out, format!("{}7{}", "[".repeat(20_000), "]".repeat(20_000)));
        let error = nested(60_000).write_text(&mut String::new()).expect_err("too deep");
        assert!(error.message().contains("nested more than 50000 deep"), "{error}");
        assert!(nested(60_000).to_text().ends_with("[..."));
    }

    #[test]
    fn values_print_as_in_pytorch() {
        let cases = [
            (Value::Float(0.1), "0.10000000000000001"),
            (Value::Float(-0.0), "0."),
            (Value::Float(1e10), "10000000000."),
            (Value::Float(1e-5), "1.0000000000000001e-05"),
            (Value::Float(1e300), "1.0000000000000001e+300"),
            (Value::Float(5e-324), "4.9406564584124654e-324"),
            (Value::Float(1234.5678), "1234.5678"),
            (Value::Complex(Complex64::new(0.0, -1.5)), "0.-1.5j"),
            (Value::tuple(vec![Value::Int(1)]), "(1,)"),
            (Value::list(crate::ir::Type::str(), vec![Value::str("a")]), "[a]"),
            (
                Value::Tensor(Tensor::from_vec(&[1i64, 200], &[2]).expect("valid")),
                "   1\n 200\n[ CPULongType{2} ]",
            ),
            (
                Value::Tensor(Tensor::from_vec(&[1e-5f32, 1000.0], &[2]).expect("valid")),
                " 1.0000e-05\n 1.0000e+03\n[ CPUFloatType{2} ]",
            ),
            (
                Value::Tensor(Tensor::from_vec(&[1.5f32; 4], &[2, 2]).expect("valid")),
                " 1.5000  1.5000\n 1.5000  1.5000\n[ CPUFloatType{2,2} ]",
            ),
            (Value::Tensor(Tensor::from_vec(&[3i64], &[]).expect("valid")), "3\n[ CPULongType{} ]"),
            (
                Value::Tensor(Tensor::from_vec(&[0f32; 4], &[2, 1, 2]).expect("valid")),
                "(1,.,.) = \n 0  0\n\n(2,.,.) = \n 0  0\n[ CPUFloatType{2,1,2} ]",
            ),
        ];
        for (value, expected) in cases {
            assert_eq!(value.to_text(), expected);
            let mut whole = String::new();
            value.write_text(&mut whole).expect("short");
            assert_eq!(whole, expected);
        }
    }
}
