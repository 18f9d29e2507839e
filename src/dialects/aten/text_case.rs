//! Methods of text that change or test letters, and that fill. Only ASCII letters count, as in PyTorch's C locale.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, host, one};
use crate::resources::budget;
use crate::value::Value;
use crate::value::bytes::{bytes, joined};

/// No filled text is longer.
const MAX_BYTES: usize = 1 << 30;

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::upper(str self) -> str", |a| one(Value::str(a.str(0)?.to_ascii_uppercase()))),
    host("aten::lower(str self) -> str", |a| one(Value::str(a.str(0)?.to_ascii_lowercase()))),
    host("aten::swapcase(str self) -> str", swap_case).doc("capitals as small letters and the reverse"),
    host("aten::capitalize(str self) -> str", capitalize).doc("a capital first, then small letters"),
    host("aten::title(str self) -> str", title).doc("a capital at the start of each word"),
    host("aten::isdigit(str self) -> bool", |a| every(a, |b| b.is_ascii_digit())),
    host("aten::isdecimal(str self) -> bool", |a| every(a, |b| b.is_ascii_digit())),
    host("aten::isnumeric(str self) -> bool", |a| every(a, |b| b.is_ascii_digit())),
    host("aten::isalnum(str self) -> bool", |a| every(a, |b| b.is_ascii_alphanumeric())),
    host("aten::isalpha(str self) -> bool", |a| every(a, |b| b.is_ascii_alphabetic())),
    host("aten::isspace(str self) -> bool", |a| every(a, |b| matches!(b, b' ' | 9..=13))),
    host("aten::isprintable(str self) -> bool", |a| one(a.str(0)?.bytes().all(|b| matches!(b, b' '..=b'~'))))
        .doc("whether no byte is a control character or beyond ASCII"),
    host("aten::islower(str self) -> bool", |a| {
        cased(a, |b| b.is_ascii_uppercase(), |b| b.is_ascii_lowercase())
    })
    .doc("whether there are small letters and no capitals"),
    host("aten::isupper(str self) -> bool", |a| {
        cased(a, |b| b.is_ascii_lowercase(), |b| b.is_ascii_uppercase())
    })
    .doc("whether there are capitals and no small letters"),
    host("aten::istitle(str self) -> bool", is_title).doc("whether capitals occur only at starts of words"),
    host("aten::isidentifier(str self) -> bool", is_identifier)
        .doc("whether Python 2 would take it as a name, underscores aside"),
    host("aten::center(str self, int width, str fillchar=\" \") -> str", center),
    host("aten::ljust(str self, int width, str fillchar=\" \") -> str", |a| {
        let fill = filler(a)?;
        filled(a, 0, missing(a)?, fill)
    }),
    host("aten::rjust(str self, int width, str fillchar=\" \") -> str", |a| {
        let fill = filler(a)?;
        filled(a, missing(a)?, 0, fill)
    }),
    host("aten::zfill(str self, int width) -> str", |a| filled(a, missing(a)?, 0, "0"))
        .doc("zeros before the text, a sign included"),
    host("aten::expandtabs(str self, int tabsize=8) -> str", expand_tabs)
        .doc("blanks for tabs, columns counted from the start of the text"),
];

fn every(args: &Args<'_>, test: fn(u8) -> bool) -> Result<Outputs> {
    let text = args.str(0)?;
    one(!text.is_empty() && text.bytes().all(test))
}

fn cased(args: &Args<'_>, bad: fn(u8) -> bool, good: fn(u8) -> bool) -> Result<Outputs> {
    let text = args.str(0)?;
    one(text.bytes().any(good) && !text.bytes().any(bad))
}

fn swap_case(args: &Args<'_>) -> Result<Outputs> {
    let swap = |c: char| if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
    one(Value::str(args.str(0)?.chars().map(swap).collect::<String>()))
}

fn capitalize(args: &Args<'_>) -> Result<Outputs> {
    let mut out = args.str(0)?.to_ascii_lowercase();
    if let Some(first) = out.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    one(Value::str(out))
}

fn title(args: &Args<'_>) -> Result<Outputs> {
    let mut in_word = false;
    let change = |c: char| {
        let out = if in_word { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
        in_word = c.is_ascii_alphabetic();
        out
    };
    one(Value::str(args.str(0)?.chars().map(change).collect::<String>()))
}

fn is_title(args: &Args<'_>) -> Result<Outputs> {
    let (mut in_word, mut found) = (false, false);
    for b in args.str(0)?.bytes() {
        if (in_word && b.is_ascii_uppercase()) || (!in_word && b.is_ascii_lowercase()) {
            return one(false);
        }
        in_word = b.is_ascii_alphabetic();
        found |= in_word;
    }
    one(found)
}

fn is_identifier(args: &Args<'_>) -> Result<Outputs> {
    let text = args.str(0)?;
    let starts = text.bytes().next().is_some_and(|b| b.is_ascii_alphabetic());
    one(starts && text.bytes().all(|b| b.is_ascii_alphanumeric()))
}

fn filler<'a>(args: &Args<'a>) -> Result<&'a str> {
    let fill = args.str(2)?;
    if bytes(fill).len() != 1 {
        return Err(Diagnostic::runtime("TypeError: The fill character must be exactly one character long"));
    }
    Ok(fill)
}

/// How many bytes a text lacks to a width.
fn missing(args: &Args<'_>) -> Result<usize> {
    let (text, width) = (args.str(0)?, args.int(1)?);
    let width = usize::try_from(width).unwrap_or(0);
    if width > MAX_BYTES {
        return Err(Diagnostic::runtime(format!("a text of {width} bytes is too long")));
    }
    budget::expect_room(width)?;
    Ok(width.saturating_sub(bytes(text).len()))
}

fn filled(args: &Args<'_>, left: usize, right: usize, fill: &str) -> Result<Outputs> {
    let text = args.str(0)?;
    let mut out = String::with_capacity(left + text.len() + right);
    (0..left).for_each(|_| out.push_str(fill));
    out.push_str(text);
    (0..right).for_each(|_| out.push_str(fill));
    one(Value::str(joined(out)))
}

/// Where blanks cannot be shared evenly, an odd width has one more on the left, an even one on the right.
fn center(args: &Args<'_>) -> Result<Outputs> {
    let (fill, lack) = (filler(args)?, missing(args)?);
    let left = lack / 2 + (lack & (args.int(1)? & 1) as usize);
    filled(args, left, lack - left, fill)
}

fn expand_tabs(args: &Args<'_>) -> Result<Outputs> {
    let (text, size) = (args.str(0)?, args.int(1)?);
    let size = usize::try_from(size).unwrap_or(0);
    let tabs = text.bytes().filter(|b| *b == b'\t').count();
    if tabs.saturating_mul(size) > MAX_BYTES {
        return Err(Diagnostic::runtime(format!("a text with {tabs} tabs of {size} blanks is too long")));
    }
    let mut out = Vec::with_capacity(text.len());
    for byte in bytes(text).iter() {
        if *byte != b'\t' {
            out.push(*byte);
        } else if size > 0 {
            out.resize(out.len() + size - out.len() % size, b' ');
        }
    }
    one(super::text::value(&out))
}
