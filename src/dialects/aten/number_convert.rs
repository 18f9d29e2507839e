//! Conversions between numbers, text and tensors of one element; helpers of `range`; dtype arithmetic.

use super::number::Num;
use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::{Known, Operands, Results, trial};
use crate::dialects::{Args, Fact, OpDef, Outputs, host, one};
use crate::tensor::{DType, Operand, Scalar, Tensor, promote_types, result_type};
use crate::value::Value;
use num_complex::Complex64;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::Int.Tensor(Tensor a) -> int", |a| one(tensor_int(a.tensor(0)?)?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::Int.bool(bool a) -> int", |a| one(a.int(0)?)),
    host("aten::Int.float(float a) -> int", |a| one(Scalar::Float(a.float(0)?).to_i64())),
    host("aten::Int.Scalar(Scalar a) -> int", |a| one(checked_c_int(a.scalar(0)?)?)),
    host("aten::Int.str(str a) -> int", int_of_text),
    host("aten::Float.Tensor(Tensor a) -> float", |a| one(tensor_float(a.tensor(0)?)?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::Float.Scalar(Scalar a) -> float", |a| one(a.scalar(0)?.to_f64())),
    host("aten::Float.int(int a) -> float", |a| one(a.float(0)?)),
    host("aten::Float.bool(bool a) -> float", |a| one(if a.bool(0)? { 1.0 } else { 0.0 })),
    host("aten::Float.str(str a) -> float", float_of_text),
    host("aten::Bool.Tensor(Tensor a) -> bool", |a| one(truth(a.tensor(0)?)?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::Bool.int(int a) -> bool", |a| one(a.int(0)? != 0)),
    host("aten::Bool.float(float a) -> bool", |a| one(a.float(0)? != 0.0)),
    host("aten::Complex.Scalar(Scalar a) -> complex", |a| one(Value::Complex(a.scalar(0)?.to_complex()))),
    host("aten::Complex.Tensor_Tensor(Tensor a, Tensor b) -> complex", complex),
    host("aten::Complex.int_bool(int x, bool y) -> complex", complex),
    host("aten::Complex.bool_int(bool x, int y) -> complex", complex),
    host("aten::Complex.float_bool(float x, bool y) -> complex", complex),
    host("aten::Complex.bool_float(bool x, float y) -> complex", complex),
    host("aten::Complex.float_int(float x, int y) -> complex", complex),
    host("aten::Complex.int_float(int x, float y) -> complex", complex),
    host("aten::Complex.int_int(int x, int y) -> complex", complex),
    host("aten::Complex.bool_bool(bool x, bool y) -> complex", complex),
    host("aten::Complex.float_float(float x, float y) -> complex", complex),
    host("aten::Complex.Tensor_float(Tensor x, float y) -> complex", complex),
    host("aten::Complex.float_Tensor(float x, Tensor y) -> complex", complex),
    host("aten::Complex.Tensor_int(Tensor x, int y) -> complex", complex),
    host("aten::Complex.int_Tensor(int x, Tensor y) -> complex", complex),
    host("aten::Complex.Tensor_bool(Tensor x, bool y) -> complex", complex),
    host("aten::Complex.bool_Tensor(bool x, Tensor y) -> complex", complex),
    host("aten::ScalarImplicit(Tensor a) -> Scalar", |a| one(implicit(a)?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::FloatImplicit(Tensor a) -> float", |a| one(checked_float(implicit(a)?)?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::IntImplicit(Tensor a) -> int", int_implicit).quantized(crate::dialects::Quantized::Reals),
    host("aten::ComplexImplicit(Tensor a) -> complex", |a| one(Value::Complex(implicit(a)?.to_complex()))),
    host("aten::item(Tensor self) -> Scalar", |a| one(a.tensor(0)?.item()?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::_local_scalar_dense(Tensor self) -> Scalar", |a| one(a.tensor(0)?.item()?))
        .quantized(crate::dialects::Quantized::Reals),
    host("aten::is_nonzero(Tensor self) -> bool", |a| one(truth(a.tensor(0)?)?)),
    host("aten::__not__(bool self) -> bool", |a| one(!a.bool(0)?)).facts(&[Fact::Involution]),
    host("aten::chr(int i) -> str", chr),
    host("aten::ord(str string) -> int", ord),
    host("aten::hex(int i) -> str", |a| one(signed_text(a.int(0)?, |x| format!("0x{x:x}")))),
    host("aten::oct(int i) -> str", |a| one(signed_text(a.int(0)?, |x| format!("0o{x:o}")))),
    host("aten::bin(int i) -> str", |a| one(signed_text(a.int(0)?, |x| format!("0b{x:b}")))),
    host("aten::__range_length(int lo, int hi, int step) -> int", range_length),
    host("aten::__derive_index(int index, int start, int step) -> int", |a| {
        one(a.int(1)?.wrapping_add(a.int(0)?.wrapping_mul(a.int(2)?)))
    }),
    host("aten::promote_types(ScalarType type1, ScalarType type2) -> ScalarType", |a| {
        one(promote_types(a.dtype(0)?, a.dtype(1)?).code())
    }),
    host("aten::can_cast(ScalarType from_, ScalarType to) -> bool", |a| {
        one(can_cast(a.dtype(0)?, a.dtype(1)?))
    }),
    host("aten::result_type.Tensor(Tensor tensor, Tensor other) -> ScalarType", common_dtype)
        .infer(dtype_of_both),
    host("aten::result_type.Scalar(Tensor tensor, Scalar other) -> ScalarType", common_dtype)
        .infer(dtype_of_both),
    host("aten::result_type.Scalar_Tensor(Scalar scalar, Tensor tensor) -> ScalarType", common_dtype)
        .infer(dtype_of_both),
    host("aten::result_type.Scalar_Scalar(Scalar scalar1, Scalar scalar2) -> ScalarType", common_dtype)
        .infer(dtype_of_both),
];

/// The dtype that operands of known dtypes have in common, but for tensors of rank 0: those that numbers became promote otherwise,
/// and types do not say which they are.
fn dtype_of_both(operands: &Operands<'_>) -> Results {
    let has_rank = |known: &Known| match known {
        Known::Tensor(t) => t.sizes.as_deref().is_some_and(|sizes| !sizes.is_empty()),
        _ => true,
    };
    if operands.values.iter().all(has_rank) { trial::look(operands) } else { None }
}

fn overflow(name: &str) -> Diagnostic {
    Diagnostic::runtime(format!("value cannot be converted to type {name} without overflow"))
}

/// An int, where the number fits one.
fn checked_int(x: Scalar, name: &str) -> Result<i64> {
    let real = match x {
        Scalar::Int(x) => return Ok(x),
        Scalar::Bool(x) => return Ok(i64::from(x)),
        Scalar::Complex(z) if z.im != 0.0 => return Err(overflow(name)),
        x => x.to_f64(),
    };
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&real) {
        Ok(real as i64)
    } else {
        Err(overflow(name))
    }
}

/// An int; floats must fit 32 bits.
fn checked_c_int(x: Scalar) -> Result<i64> {
    let value = checked_int(x, "int")?;
    let exact = matches!(x, Scalar::Int(_) | Scalar::Bool(_));
    let fits = (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&x.to_f64());
    if exact || fits { Ok(value) } else { Err(overflow("int")) }
}

fn checked_float(x: Scalar) -> Result<f64> {
    match x {
        Scalar::Complex(z) if z.im != 0.0 => Err(overflow("double")),
        x => Ok(x.to_f64()),
    }
}

fn tensor_int(tensor: &Tensor) -> Result<i64> {
    checked_int(tensor.item()?, "int64_t")
}

fn tensor_float(tensor: &Tensor) -> Result<f64> {
    checked_float(tensor.item()?)
}

pub(super) fn truth(tensor: &Tensor) -> Result<bool> {
    match tensor.numel() {
        0 => Err(Diagnostic::runtime("Boolean value of Tensor with no values is ambiguous")),
        1 => Ok(tensor.item()?.to_bool()),
        _ => Err(Diagnostic::runtime("Boolean value of Tensor with more than one value is ambiguous")),
    }
}

/// A tensor that a program passes where a number is wanted.
fn implicit(args: &Args<'_>) -> Result<Scalar> {
    let tensor = args.tensor(0)?;
    if tensor.requires_grad() {
        return Err(Diagnostic::runtime("Cannot input a tensor that requires grad as a scalar argument"));
    }
    if tensor.rank() != 0 {
        return Err(Diagnostic::runtime(
            "Cannot input a tensor of dimension other than 0 as a scalar argument",
        ));
    }
    tensor.item()
}

fn int_implicit(args: &Args<'_>) -> Result<Outputs> {
    let value = implicit(args)?;
    let dtype = args.tensor(0)?.dtype();
    if !dtype.is_integral() {
        return Err(Diagnostic::runtime(format!(
            "Cannot input a tensor of type {} as an integral argument",
            dtype.type_name()
        )));
    }
    one(value.to_i64())
}

fn complex(args: &Args<'_>) -> Result<Outputs> {
    let part = |n| match args.value(n)? {
        Value::Tensor(t) => tensor_float(t),
        // Ints lose their high bits on the way.
        _ => Ok(match Num::of(args, n)? {
            Num::Int(x) => f64::from(x as i32),
            other => other.to_f64(),
        }),
    };
    one(Value::Complex(Complex64::new(part(0)?, part(1)?)))
}

/// Leading space and a sign are allowed, as C's parser allows them; nothing may follow.
fn int_of_text(args: &Args<'_>) -> Result<Outputs> {
    let text = args.str(0)?;
    let body = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let digits_at = usize::from(body.starts_with(['+', '-']));
    let digits = body[digits_at..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(Diagnostic::runtime("stoll"));
    }
    let end = digits_at + digits;
    let value: i64 = body[..end].parse().map_err(|_| Diagnostic::runtime("stoll"))?;
    if end != body.len() {
        return Err(Diagnostic::runtime(format!("invalid literal for int() with base 10: '{text}'")));
    }
    one(value)
}

fn float_of_text(args: &Args<'_>) -> Result<Outputs> {
    let text = args.str(0)?;
    let body = text.trim_start_matches([' ', '\t', '\n', '\r', '\x0b', '\x0c']);
    let (value, used) = leading_float(body).ok_or_else(|| Diagnostic::runtime("stod"))?;
    if used != body.len() {
        return Err(Diagnostic::runtime(format!("could not convert string to float: '{text}'")));
    }
    one(value)
}

/// `1.8p3` after `0x`: a number in base 16 with a power of two, and its length.
fn leading_hex_float(text: &str) -> Option<(f64, usize)> {
    let run = |from: usize| text.bytes().skip(from).take_while(u8::is_ascii_hexdigit).count();
    let whole = run(0);
    let fraction = if text.as_bytes().get(whole) == Some(&b'.') { run(whole + 1) } else { 0 };
    if whole + fraction == 0 {
        return None;
    }
    let mut end = if text.as_bytes().get(whole) == Some(&b'.') { whole + 1 + fraction } else { whole };
    let digit = |x: f64, c: char| x * 16.0 + f64::from(c.to_digit(16).unwrap_or(0));
    let mantissa = text[..end].chars().filter(|c| *c != '.').fold(0.0, digit);
    let mut power = -4 * fraction as i32;
    if let Some(exponent) = text[end..].strip_prefix('p') {
        let sign = usize::from(exponent.starts_with(['+', '-']));
        let digits = exponent.bytes().skip(sign).take_while(u8::is_ascii_digit).count();
        if digits > 0 {
            power = power.saturating_add(exponent[..sign + digits].parse().unwrap_or(i32::MAX));
            end += 1 + sign + digits;
        }
    }
    Some((mantissa * f64::from(power).exp2(), end))
}

/// The longest prefix that C's parser reads as a number, and its length.
fn leading_float(text: &str) -> Option<(f64, usize)> {
    let sign = usize::from(text.starts_with(['+', '-']));
    let lower = text[sign..].to_ascii_lowercase();
    let signed = |x: f64| if text.starts_with('-') { -x } else { x };
    for (word, value) in [("infinity", f64::INFINITY), ("inf", f64::INFINITY), ("nan", f64::NAN)] {
        if let Some(rest) = lower.strip_prefix(word) {
            let note = if word == "nan" { note(rest) } else { 0 };
            return Some((signed(value), sign + word.len() + note));
        }
    }
    if let Some((value, used)) = lower.strip_prefix("0x").and_then(leading_hex_float) {
        return Some((signed(value), sign + 2 + used));
    }
    let bytes = lower.as_bytes();
    let run =
        |from: usize| bytes.get(from..).map_or(0, |b| b.iter().take_while(|c| c.is_ascii_digit()).count());
    let whole = run(0);
    let mut end = whole;
    let mut digits = whole;
    if bytes.get(end) == Some(&b'.') {
        digits += run(end + 1);
        end += 1 + run(end + 1);
    }
    if digits == 0 {
        return None;
    }
    if bytes.get(end) == Some(&b'e') {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        let exponent = run(end + 1 + sign);
        if exponent > 0 {
            end += 1 + sign + exponent;
        }
    }
    let value: f64 = lower[..end].parse().ok()?;
    // C calls numbers out of range that round to infinity, or to none with all bits.
    let mantissa = lower[..end].split('e').next().unwrap_or_default();
    let is_zero = !mantissa.contains(|c| matches!(c, '1'..='9'));
    if value.is_infinite() || value.abs() < f64::MIN_POSITIVE && !is_zero {
        return None;
    }
    Some((signed(value), sign + end))
}

/// The length of what may follow `nan`: letters, digits and underscores in parentheses.
fn note(text: &str) -> usize {
    let Some(inner) = text.strip_prefix('(') else { return 0 };
    let name = inner.bytes().take_while(|c| c.is_ascii_alphanumeric() || *c == b'_').count();
    if inner.as_bytes().get(name) == Some(&b')') { name + 2 } else { 0 }
}

/// Text of the one byte that is left of a code point; from 128 on such a byte is not text.
fn chr(args: &Args<'_>) -> Result<Outputs> {
    let code = args.int(0)?;
    if !(0..0x11_0000).contains(&code) {
        return Err(Diagnostic::runtime(format!("chr() arg not in range(0x110000), found {code}")));
    }
    // Only the low byte is kept.
    one(super::text::value(&[code as u8]))
}

fn ord(args: &Args<'_>) -> Result<Outputs> {
    match &*super::text::given(args, 0)? {
        [byte] => one(i64::from(*byte)),
        bytes => {
            Err(Diagnostic::runtime(format!("String for ord() must be 1 character, found {}", bytes.len())))
        }
    }
}

/// Text of the magnitude after the sign.
fn signed_text(x: i64, magnitude: impl Fn(u64) -> String) -> Value {
    let sign = if x < 0 { "-" } else { "" };
    Value::str(format!("{sign}{}", magnitude(x.unsigned_abs())))
}

fn range_length(args: &Args<'_>) -> Result<Outputs> {
    let (low, high, step) = (args.int(0)? as i128, args.int(1)? as i128, args.int(2)? as i128);
    let length = match step {
        0 => return Err(Diagnostic::runtime("range() arg 3 must not be zero")),
        step if step > 0 && low < high => 1 + (high - 1 - low) / step,
        step if step < 0 && low > high => 1 + (low - 1 - high) / -step,
        _ => 0,
    };
    one(length as i64)
}

/// Whether a dtype may be stored as another without loss of kind.
fn can_cast(from: DType, to: DType) -> bool {
    !(from.is_complex() && !to.is_complex()
        || from.is_floating() && (to.is_integral() || to == DType::Bool)
        || from != DType::Bool && to == DType::Bool)
}

fn common_dtype(args: &Args<'_>) -> Result<Outputs> {
    let operand = |n| match args.value(n)? {
        Value::Tensor(t) => Ok(Operand::Tensor(t.clone())),
        _ => args.scalar(n).map(Operand::Number),
    };
    let dtype = result_type(&[operand(0)?, operand(1)?])
        .ok_or_else(|| Diagnostic::internal("a result type of two operands"))?;
    one(dtype.code())
}
