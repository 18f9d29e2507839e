//! Attributes, strings and dictionaries in MLIR's form.

use super::super::attr::pack;
use super::super::{Attr, Graph, Type};
use super::strings::{read_string, write_string};
use super::types;
use crate::ir::text::attr::{Detail, read_attr, write_value};
use crate::ir::text::lexer::{Cursor, Parsed, TextError};
use std::fmt::Write as _;
use std::sync::Arc;

/// Appends a name of an attribute, quoted where it is not a bare name.
pub(super) fn write_key(out: &mut String, name: &str) {
    let is_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '$' | '.');
    // `unit` and the like would be read as values of their own nowhere in a key, so that all bare names are fine.
    if is_start && name.chars().all(is_bare) { out.push_str(name) } else { write_string(out, name) }
}

/// Appends an attribute. `expected` is the type of the constant, where the attribute is one.
pub(super) fn write_attribute(out: &mut String, attr: &Attr, expected: Option<&Type>) {
    match attr {
        Attr::Int(x) => {
            let _ = write!(out, "{x} : i64");
        }
        Attr::Float(x) => {
            write_float(out, *x);
            out.push_str(" : f64");
        }
        Attr::Bool(x) => out.push_str(if *x { "true" } else { "false" }),
        Attr::Str(text) => write_string(out, text),
        Attr::Type(ty) => types::write_type(out, ty),
        Attr::Ints(all) => write_array(out, "i64", all, |out, x| {
            let _ = write!(out, "{x}");
        }),
        Attr::Floats(all) => write_array(out, "f64", all, |out, x| write_float(out, *x)),
        Attr::Strs(all) => {
            out.push('[');
            for (n, text) in all.iter().enumerate() {
                out.push_str(if n == 0 { "" } else { ", " });
                write_string(out, text);
            }
            out.push(']');
        }
        Attr::Raw(text) => {
            out.push_str("#torch.raw<");
            write_string(out, text);
            out.push('>');
        }
        _ => {
            let mut text = String::new();
            write_value(&mut text, attr, expected, Detail::Exact);
            out.push_str("#torch.attr<");
            write_string(out, &text);
            out.push('>');
        }
    }
}

/// `array<i64: 1, 2>`
fn write_array<T>(out: &mut String, element: &str, all: &[T], write: impl Fn(&mut String, &T)) {
    let _ = write!(out, "array<{element}");
    for (n, one) in all.iter().enumerate() {
        out.push_str(if n == 0 { ": " } else { ", " });
        write(out, one);
    }
    out.push('>');
}

/// A number whose text gives the same bits: decimal with a point, or the bits themselves where it is not a finite number.
fn write_float(out: &mut String, x: f64) {
    if !x.is_finite() {
        let _ = write!(out, "0x{:016X}", x.to_bits());
        return;
    }
    let text = format!("{x:e}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => {
            let _ = write!(out, "{digits}.0e{exponent}");
        }
        _ => out.push_str(&text),
    }
}

/// An attribute as it was read; what it means may depend on the op's result type.
pub(super) enum Read<'a> {
    /// One that says itself what it is.
    Known(Attr),
    /// The text of `#torch.attr<"...">`.
    Exact(String),
    /// One of another dialect or a form that nothing here makes.
    Foreign(&'a str),
}

impl Read<'_> {
    /// The attribute of an op whose constant has the type `expected`.
    pub(super) fn attr(&self, expected: Option<&Type>) -> Option<Attr> {
        match self {
            Read::Known(attr) => Some(attr.clone()),
            Read::Exact(text) => {
                // What stands in the brackets of an op ends with one of them.
                let ended = format!("{text}]");
                let mut cursor = Cursor::new(&ended);
                let attr = read_attr(&mut cursor, expected).ok()?;
                cursor.skip_space();
                (cursor.pos() + 1 == ended.len()).then_some(attr)
            }
            Read::Foreign(text) => Some(Attr::Raw((*text).into())),
        }
    }
}

/// Names and values of a dictionary.
pub(super) type Dictionary<'a> = Vec<(String, Read<'a>)>;

/// Reads `{a = 1 : i64, "b" = true, c}`.
pub(super) fn read_dictionary<'a>(cursor: &mut Cursor<'a>) -> Parsed<Dictionary<'a>> {
    cursor.expect(b'{')?;
    let mut all = Vec::new();
    loop {
        skip(cursor);
        if cursor.eat(b'}') {
            return Ok(all);
        }
        let name = match cursor.peek() {
            b'"' => read_string(cursor)?,
            _ => bare_name(cursor).to_string(),
        };
        if name.is_empty() {
            return Err(cursor.expected("the name of an attribute or `}`"));
        }
        skip(cursor);
        let value = match cursor.eat(b'=') {
            true => {
                skip(cursor);
                read_attribute(cursor)?
            }
            // A unit attribute says that something is so.
            false => Read::Known(Attr::Bool(true)),
        };
        all.push((name, value));
        skip(cursor);
        if !cursor.eat(b',') && cursor.peek() != b'}' {
            return Err(cursor.expected("`,` or `}`"));
        }
    }
}

fn bare_name<'a>(cursor: &mut Cursor<'a>) -> &'a str {
    let start = cursor.pos();
    while cursor.peek().is_ascii_alphanumeric() || matches!(cursor.peek(), b'_' | b'$' | b'.') {
        cursor.advance(1);
    }
    cursor.slice(start, cursor.pos())
}

/// Steps over blanks and comments.
pub(super) fn skip(cursor: &mut Cursor<'_>) {
    loop {
        cursor.skip_space();
        if !cursor.looking_at("//") {
            return;
        }
        cursor.skip_line();
    }
}

fn read_attribute<'a>(cursor: &mut Cursor<'a>) -> Parsed<Read<'a>> {
    let start = cursor.pos();
    if cursor.eat_str("#torch.attr<") {
        let text = read_string(cursor)?;
        cursor.expect(b'>')?;
        return Ok(Read::Exact(text));
    }
    if cursor.eat_str("#torch.raw<") {
        let text = read_string(cursor)?;
        cursor.expect(b'>')?;
        return Ok(Read::Known(Attr::Raw(text.into())));
    }
    if let Some(attr) = known(cursor)? {
        skip(cursor);
        if matches!(cursor.peek(), b',' | b'}' | b']') {
            return Ok(Read::Known(attr));
        }
    }
    cursor.set_pos(start);
    foreign(cursor).map(Read::Foreign)
}

/// An attribute of a kind that has a form here; none where another one stands here.
fn known(cursor: &mut Cursor<'_>) -> Parsed<Option<Attr>> {
    let is_type = |cursor: &Cursor<'_>| {
        let words = ["!torch.type<", "tensor<", "i64", "f64", "i1", "index", "none"];
        words.iter().any(|word| cursor.looking_at(word))
    };
    Ok(Some(match cursor.peek() {
        b'"' => Attr::Str(read_string(cursor)?.into()),
        b'[' => return read_list(cursor),
        b'-' | b'0'..=b'9' => return Ok(number(cursor)),
        _ if cursor.eat_str("true") => Attr::Bool(true),
        _ if cursor.eat_str("false") => Attr::Bool(false),
        _ if cursor.eat_str("array<i64") => Attr::Ints(numbers(cursor, Attr::as_int)?.into()),
        _ if cursor.eat_str("array<f64") => Attr::Floats(numbers(cursor, float)?.into()),
        _ if is_type(cursor) => Attr::Type(types::read_type(cursor)?),
        _ => return Ok(None),
    }))
}

fn float(attr: &Attr) -> Option<f64> {
    match attr {
        Attr::Float(x) => Some(*x),
        Attr::Int(bits) => Some(f64::from_bits(*bits as u64)),
        _ => None,
    }
}

/// What follows `array<i64` or `array<f64`.
fn numbers<T>(cursor: &mut Cursor<'_>, take: impl Fn(&Attr) -> Option<T>) -> Parsed<Vec<T>> {
    let mut all = Vec::new();
    if cursor.eat(b'>') {
        return Ok(all);
    }
    cursor.expect(b':')?;
    loop {
        skip(cursor);
        let start = cursor.pos();
        let one = bare_number(cursor).as_ref().and_then(&take);
        all.push(one.ok_or_else(|| {
            TextError::new(start, start + 1, "a number of the array's type is expected here")
        })?);
        skip(cursor);
        if cursor.eat(b'>') {
            return Ok(all);
        }
        cursor.expect(b',')?;
    }
}

/// `1`, `-1.5e-3`, or `0x7FF0000000000000`, which is an integer until its type is known.
fn bare_number(cursor: &mut Cursor<'_>) -> Option<Attr> {
    let start = cursor.pos();
    cursor.eat(b'-');
    if cursor.eat_str("0x") {
        let digits = types::word(cursor);
        return u64::from_str_radix(digits, 16).ok().map(|bits| Attr::Int(bits as i64));
    }
    cursor.digits();
    let mut is_float = false;
    if cursor.eat(b'.') {
        is_float = true;
        cursor.digits();
    }
    if matches!(cursor.peek(), b'e' | b'E') {
        is_float = true;
        cursor.advance(1);
        if matches!(cursor.peek(), b'-' | b'+') {
            cursor.advance(1);
        }
        cursor.digits();
    }
    let text = cursor.slice(start, cursor.pos());
    if is_float { text.parse().ok().map(Attr::Float) } else { text.parse().ok().map(Attr::Int) }
}

/// A number with its type; none where it has a type that no attribute here has.
fn number(cursor: &mut Cursor<'_>) -> Option<Attr> {
    let number = bare_number(cursor)?;
    skip(cursor);
    if !cursor.eat(b':') {
        return Some(number);
    }
    skip(cursor);
    match (types::word(cursor), number) {
        ("f64", number) => float(&number).map(Attr::Float),
        ("i64" | "i32" | "i16" | "i8" | "index", Attr::Int(x)) => Some(Attr::Int(x)),
        _ => None,
    }
}

/// `["a", "b"]`
fn read_list(cursor: &mut Cursor<'_>) -> Parsed<Option<Attr>> {
    cursor.enter()?;
    cursor.expect(b'[')?;
    let mut all = Vec::new();
    loop {
        skip(cursor);
        if cursor.eat(b']') {
            cursor.leave();
            return Ok(Some(if all.is_empty() { Attr::Strs(Arc::from([])) } else { pack(all) }));
        }
        let Some(one) = known(cursor)? else {
            cursor.leave();
            return Ok(None);
        };
        all.push(one);
        skip(cursor);
        if !cursor.eat(b',') && cursor.peek() != b']' {
            cursor.leave();
            return Ok(None);
        }
    }
}

/// The text of an attribute up to the `,` or `}` after it, brackets and strings inside it whole.
fn foreign<'a>(cursor: &mut Cursor<'a>) -> Parsed<&'a str> {
    let start = cursor.pos();
    let mut depth = 0usize;
    loop {
        match cursor.peek() {
            _ if cursor.at_end() => return Err(cursor.expected("the end of the attribute")),
            b'"' => {
                read_string(cursor)?;
                continue;
            }
            b'{' | b'[' | b'(' | b'<' => depth += 1,
            // The arrow of a map or function type is not a bracket.
            b'-' if cursor.peek_at(1) == b'>' => cursor.advance(1),
            b'}' | b',' if depth == 0 => return Ok(cursor.slice(start, cursor.pos()).trim_end()),
            b'}' | b']' | b')' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
        cursor.advance(1);
    }
}

/// The type that the attribute `name` of an op is read and written with.
pub(super) fn expected<'g>(
    graph: &'g Graph,
    results: &[super::super::ValueId],
    name: &str,
) -> Option<&'g Type> {
    match results {
        [only] if name == "value" => Some(graph.ty(*only)),
        _ => None,
    }
}
