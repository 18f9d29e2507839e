//! Values as `print` and `str` show them: text without quotes, floats with 17 digits and a trailing dot where
//! they are whole, tensors as C++ prints them.

use super::Value;
use super::tensor_text::write_tensor;
use crate::ir::number_text::write_general;
use num_complex::Complex64;
use std::fmt::Write;

/// Containers nested deeper than this are cut.
const MAX_DEPTH: usize = 100;

impl Value {
    /// The value as TorchScript's `str` gives it.
    pub fn to_text(&self) -> String {
        let mut out = String::new();
        self.write_text(&mut out);
        out
    }

    /// Appends what [`Value::to_text`] gives.
    pub fn write_text(&self, out: &mut String) {
        write_value(out, self, 0);
    }
}

fn write_value(out: &mut String, value: &Value, depth: usize) {
    if depth > MAX_DEPTH {
        out.push_str("...");
        return;
    }
    match value {
        Value::None => out.push_str("None"),
        Value::Uninitialized => out.push_str("Uninitialized"),
        Value::Tensor(t) => write_tensor(out, t),
        Value::Int(x) => {
            let _ = write!(out, "{x}");
        }
        Value::Float(x) => write_float(out, *x),
        Value::Complex(z) => write_complex(out, *z),
        Value::Bool(b) => out.push_str(if *b { "True" } else { "False" }),
        Value::Str(text) => out.push_str(text),
        Value::List(list) => write_items(out, "[", &list.to_vec(), "]", depth),
        Value::Tuple(tuple) => {
            let close = if tuple.items().len() == 1 { ",)" } else { ")" };
            write_items(out, "(", tuple.items(), close, depth);
        }
        Value::Dict(dict) => {
            out.push('{');
            let entries: Vec<_> = dict.entries().iter().map(|(k, v)| (k.to_value(), v.clone())).collect();
            for (n, (key, item)) in entries.iter().enumerate() {
                out.push_str(if n > 0 { ", " } else { "" });
                write_value(out, key, depth + 1);
                out.push_str(": ");
                write_value(out, item, depth + 1);
            }
            out.push('}');
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
        Value::Future(_) => out.push_str("Future"),
        Value::Function(name) => out.push_str(name.as_str()),
    }
}

fn write_items(out: &mut String, open: &str, items: &[Value], close: &str, depth: usize) {
    out.push_str(open);
    for (n, item) in items.iter().enumerate() {
        out.push_str(if n > 0 { ", " } else { "" });
        write_value(out, item, depth + 1);
    }
    out.push_str(close);
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
        }
    }
}
