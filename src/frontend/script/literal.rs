//! What literal numbers and strings mean: the values that PyTorch gives them, in its C++ reading
//! (`010` is 8, `08` is 0, `0xdeadBEEF` is a float because it has an `e`).

use super::ast::Number;
use super::token::quote_count;
use crate::diag::{Diagnostic, Result, Span};

/// The value of a number's text, without sign.
pub(super) fn number(text: &str) -> Number {
    if let Some(text) = text.strip_suffix('j') {
        return Number::Imaginary(float(text));
    }
    if text.contains(['.', 'e', 'E']) {
        return Number::Float(float(text));
    }
    match magnitude(text).map(i64::try_from) {
        Some(Ok(value)) => Number::Int(value),
        _ => Number::OutOfRange,
    }
}

/// The negation of a number with the text that it was read from.
pub(super) fn negate(number: Number, text: &str) -> Number {
    match number {
        Number::Int(value) => value.checked_neg().map_or(Number::OutOfRange, Number::Int),
        Number::Float(value) => Number::Float(-value),
        Number::Imaginary(value) => Number::Imaginary(-value),
        Number::OutOfRange if magnitude(text) == Some(1 << 63) => Number::Int(i64::MIN),
        Number::OutOfRange => Number::OutOfRange,
    }
}

/// An integer as C's `strtoll` with base 0 reads it, up to the first byte that is not a digit of the base.
fn magnitude(text: &str) -> Option<u64> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x' | b'X', ..] => (text.get(2..)?, 16),
        [b'0', ..] => (text, 8),
        _ => (text, 10),
    };
    digits
        .chars()
        .map_while(|c| c.to_digit(radix))
        .try_fold(0u64, |value, digit| value.checked_mul(u64::from(radix))?.checked_add(u64::from(digit)))
}

/// A double as C's `strtod` reads it; the scanner has taken only what `strtod` takes.
fn float(text: &str) -> f64 {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) => hexadecimal_float(digits),
        None => text.parse().unwrap_or(0.0),
    }
}

/// `1.8p3` and the like. Digits past 60 bits count only for rounding.
fn hexadecimal_float(text: &str) -> f64 {
    let (mantissa, exponent) = text.split_once(['p', 'P']).unwrap_or((text, "0"));
    let mut exponent = exponent
        .parse::<i32>()
        .unwrap_or_else(|_| if exponent.starts_with('-') { -LARGE_EXPONENT } else { LARGE_EXPONENT });
    let mut value: u64 = 0;
    let mut in_fraction = false;
    for c in mantissa.chars() {
        let Some(digit) = c.to_digit(16) else {
            in_fraction = true;
            continue;
        };
        let shift = if value >> 60 == 0 {
            value = value << 4 | u64::from(digit);
            if in_fraction { -4 } else { 0 }
        } else {
            value |= u64::from(digit != 0);
            if in_fraction { 0 } else { 4 }
        };
        exponent = exponent.saturating_add(shift);
    }
    libm::scalbn(value as f64, exponent.clamp(-LARGE_EXPONENT, LARGE_EXPONENT))
}

/// Beyond what any double needs.
const LARGE_EXPONENT: i32 = 100_000;

/// Appends the bytes of one quoted string to `out`. Fails on escapes that PyTorch refuses.
pub(super) fn unquote(text: &str, span: &Span, out: &mut Vec<u8>) -> Result<()> {
    let quotes = quote_count(text.as_bytes());
    let mut rest = text.get(quotes..text.len().saturating_sub(quotes)).unwrap_or("").as_bytes();
    while let Some(position) = rest.iter().position(|b| *b == b'\\') {
        let (plain, escape) = rest.split_at(position);
        out.extend_from_slice(plain);
        let (byte, length) = unescape(escape).map_err(|m| Diagnostic::compile(m).at(span))?;
        out.push(byte);
        rest = escape.get(length..).unwrap_or(&[]);
    }
    out.extend_from_slice(rest);
    Ok(())
}

/// The byte that an escape stands for and the escape's length, or PyTorch's complaint.
fn unescape(escape: &[u8]) -> Result<(u8, usize), &'static str> {
    let byte = match escape.get(1) {
        Some(c @ (b'\\' | b'\'' | b'"' | b'\n')) => *c,
        Some(b'a') => 0x07,
        Some(b'b') => 0x08,
        Some(b'f') => 0x0c,
        Some(b'n') => b'\n',
        Some(b't') => b'\t',
        Some(b'v') => 0x0b,
        Some(b'h' | b'x') => return Err("unsupported hex specifier"),
        Some(b'u' | b'U') => return Err("unsupported unicode specifier"),
        _ => return octal(escape).map(|byte| (byte, 4)).ok_or(" ill formed octal specifier"),
    };
    Ok((byte, 2))
}

/// Three octal digits after a backslash, at most `\377`.
fn octal(escape: &[u8]) -> Option<u8> {
    let digits = escape.get(1..4)?;
    let digit = |b: &u8| char::from(*b).to_digit(8);
    let value = digits.iter().try_fold(0, |value, b| Some(value * 8 + digit(b)?))?;
    u8::try_from(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn numbers_as_pytorch_reads_them() {
        for (text, value) in [
            ("010", Number::Int(8)),
            ("08", Number::Int(0)),
            ("0", Number::Int(0)),
            ("0xFF", Number::Int(255)),
            ("0x1p3", Number::Int(1)),
            ("0xdeadBEEF", Number::Float(3735928559.0)),
            ("0x1.8p3", Number::Float(12.0)),
            ("0x.8", Number::Float(0.5)),
            ("0x1e", Number::Float(30.0)),
            (".5e-2", Number::Float(0.005)),
            ("1e999", Number::Float(f64::INFINITY)),
            ("2.5j", Number::Imaginary(2.5)),
            ("0x10j", Number::Imaginary(16.0)),
            ("9223372036854775807", Number::Int(i64::MAX)),
            ("9223372036854775808", Number::OutOfRange),
            ("99999999999999999999999", Number::OutOfRange),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        let long = format!("0x1.{}p-99999999999", "0".repeat(100_000));
        assert_eq!(number(&long), Number::Float(0.0));
    }

    #[test]
    fn the_smallest_integer_can_be_written() {
        let text = "9223372036854775808";
        assert_eq!(negate(number(text), text), Number::Int(i64::MIN));
        assert_eq!(negate(Number::Int(i64::MIN), text), Number::OutOfRange);
        assert_eq!(negate(number("9223372036854775809"), "9223372036854775809"), Number::OutOfRange);
    }

    #[test]
    fn escapes_as_pytorch_reads_them() {
        let span = Span::new(&Source::new("s", ""), 0, 0);
        let read = |text: &str| {
            let mut bytes = Vec::new();
            unquote(text, &span, &mut bytes).map(|()| bytes).map_err(|e| e.message().to_string())
        };
        assert_eq!(read(r#""\a\b\f\n\t\v\'\"\\""#), Ok(b"\x07\x08\x0c\n\t\x0b'\"\\".to_vec()));
        assert_eq!(read("'a\\\nb'"), Ok(b"a\nb".to_vec()));
        assert_eq!(read(r"'\1011\303\251'"), Ok("A1é".as_bytes().to_vec()));
        assert_eq!(read("'''it's'''"), Ok(b"it's".to_vec()));
        assert_eq!(read(r"'\x41'"), Err("unsupported hex specifier".into()));
        assert_eq!(read(r"'\u1234'"), Err("unsupported unicode specifier".into()));
        for text in [r"'\r'", r"'\0'", r"'\400'", r"'\08'", r"'\q'", r"'\é'"] {
            assert_eq!(read(text), Err(" ill formed octal specifier".into()), "{text}");
        }
    }
}
