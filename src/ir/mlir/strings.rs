//! Quoted strings in MLIR's form.

use crate::ir::text::lexer::{Cursor, Parsed, TextError};
use std::fmt::Write as _;

/// Appends a quoted string with MLIR's escapes: bytes that are not plain characters are two hexadecimal digits.
pub(super) fn write_string(out: &mut String, text: &str) {
    out.push('"');
    for b in text.bytes() {
        match b {
            b'\\' => out.push_str("\\\\"),
            b' '..=b'~' if b != b'"' => out.push(char::from(b)),
            b => {
                let _ = write!(out, "\\{b:02X}");
            }
        }
    }
    out.push('"');
}

/// Reads a quoted string with MLIR's escapes.
pub(super) fn read_string(cursor: &mut Cursor<'_>) -> Parsed<String> {
    let start = cursor.pos();
    if !cursor.eat(b'"') {
        return Err(cursor.expected("a string"));
    }
    let hex = |b: u8| char::from(b).to_digit(16).map(|digit| digit as u8);
    let mut bytes = Vec::new();
    loop {
        let b = cursor.peek();
        if cursor.at_end() || b == b'\n' {
            return Err(TextError::new(start, cursor.pos(), "the string has no end"));
        }
        cursor.advance(1);
        match b {
            b'"' => break,
            b'\\' => {
                let (one, two) = (cursor.peek(), cursor.peek_at(1));
                let (byte, len) = match (one, hex(one), hex(two)) {
                    (b'n', ..) => (b'\n', 1),
                    (b't', ..) => (b'\t', 1),
                    (b'\\' | b'"', ..) => (one, 1),
                    (_, Some(high), Some(low)) => (high * 16 + low, 2),
                    _ => {
                        let at = cursor.pos();
                        return Err(TextError::new(at - 1, at + 1, "MLIR has no such escape")
                            .hint("write \\\\, \\\", \\n, \\t, or two hexadecimal digits"));
                    }
                };
                bytes.push(byte);
                cursor.advance(len);
            }
            b => bytes.push(b),
        }
    }
    String::from_utf8(bytes).map_err(|_| TextError::meaning(start, cursor.pos(), "the string is not UTF-8"))
}
