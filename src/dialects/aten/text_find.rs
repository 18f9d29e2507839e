//! Methods of text that search, cut and replace. Places count bytes.

use super::list::MAX_ITEMS;
use super::text::{given, value};
use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, container, host, one};
use crate::ir::Type;
use crate::resources::budget;
use crate::value::Value;

/// No replaced text is longer.
const MAX_BYTES: usize = 1 << 30;

/// Bytes at which `splitlines` cuts: ASCII's breaks, and those of U+0085, U+2028 and U+2029 in UTF-8.
const BREAKS: &[u8] = b"\n\r\x0b\x0c\x1c\x1d\x1e\xc2\x85\xe2\x80\xa8\xa9";

/// The rows.
pub static OPS: &[OpDef] = &[
    host("aten::find(str self, str substr, int start=0, int end=-1) -> int", |a| one(find(a, false)?)),
    host("aten::rfind(str self, str substr, int start=0, int end=-1) -> int", |a| one(find(a, true)?)),
    host("aten::index.str(str self, str substr, int start=0, int end=-1) -> int", |a| index(a, false)),
    host("aten::rindex(str self, str substr, int start=0, int end=-1) -> int", |a| index(a, true)),
    host("aten::count(str self, str substr, int start=0, int end=-1) -> int", count),
    host("aten::startswith(str self, str substr, int start=0, int end=-1) -> bool", |a| {
        one(part(a)?.starts_with(&given(a, 1)?))
    }),
    host("aten::endswith(str self, str substr, int start=0, int end=-1) -> bool", |a| {
        one(part(a)?.ends_with(&given(a, 1)?))
    }),
    host("aten::replace(str self, str old, str new, int max=-1) -> str", replace),
    container("aten::split.str(str self, str? separator=None, int max=-1) -> str[]", split),
    container("aten::rsplit(str self, str separator=\" \", int max=-1) -> str[]", rsplit),
    container("aten::splitlines(str self, bool keepends=False) -> str[]", split_lines),
    host("aten::partition(str self, str separator) -> (str, str, str)", |a| partition(a, false)),
    host("aten::rpartition(str self, str separator) -> (str, str, str)", |a| partition(a, true)),
    host("aten::strip(str self, str chars=\" \\n\\t\\f\\v\") -> str", |a| strip(a, true, true)),
    host("aten::lstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str", |a| strip(a, true, false)),
    host("aten::rstrip(str self, str chars=\" \\n\\t\\f\\v\") -> str", |a| strip(a, false, true)),
];

/// The bounds among the arguments; negative ones count from the end, where -1 is after the last byte.
fn bounds(args: &Args<'_>, len: usize) -> Result<(i64, i64)> {
    let (start, end, len) = (args.int(2)?, args.int(3)?, len as i64);
    let start = if start < 0 { start.saturating_add(len).max(0) } else { start };
    let end = if end < 0 { end.saturating_add(len + 1).max(0) } else { end };
    Ok((start, end))
}

/// Bytes from `start`, at most `count`; raises what C++ raises for a start past the end.
fn cut(bytes: &[u8], start: i64, count: u64) -> Result<&[u8]> {
    let tail = usize::try_from(start).ok().and_then(|start| bytes.get(start..));
    let tail = tail.ok_or_else(|| {
        Diagnostic::runtime(format!(
            "basic_string::substr: __pos (which is {start}) > this->size() (which is {})",
            bytes.len()
        ))
    })?;
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(tail.len());
    Ok(tail.get(..count).unwrap_or(tail))
}

/// What `startswith` reads. An end before the start means no end at all.
fn part(args: &Args<'_>) -> Result<Vec<u8>> {
    let bytes = given(args, 0)?;
    let (start, end) = bounds(args, bytes.len())?;
    Ok(cut(&bytes, start, end.wrapping_sub(start) as u64)?.to_vec())
}

/// Where `wanted` stands first in `bytes`, from a place on.
fn search(bytes: &[u8], wanted: &[u8], from: usize) -> Option<usize> {
    let tail = bytes.get(from..)?;
    if wanted.is_empty() {
        return Some(from);
    }
    tail.windows(wanted.len()).position(|w| w == wanted).map(|at| at + from)
}

fn search_last(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    if wanted.is_empty() {
        return Some(bytes.len());
    }
    bytes.windows(wanted.len()).rposition(|w| w == wanted)
}

/// The place of a part, or -1. An empty part is found even past the end.
fn find(args: &Args<'_>, last: bool) -> Result<i64> {
    let (bytes, wanted) = (given(args, 0)?, given(args, 1)?);
    let (start, end) = bounds(args, bytes.len())?;
    let part = if end > start { cut(&bytes, start, (end - start) as u64)? } else { &[] };
    let found = if last { search_last(part, &wanted) } else { search(part, &wanted, 0) };
    Ok(found.map_or(-1, |at| start.saturating_add(at as i64)))
}

fn index(args: &Args<'_>, last: bool) -> Result<Outputs> {
    match find(args, last)? {
        -1 => Err(Diagnostic::runtime("ValueError: substring not found")),
        at => one(at),
    }
}

/// How often a part begins before the end; parts do not overlap. (PyTorch does not return where the part is empty.)
fn count(args: &Args<'_>) -> Result<Outputs> {
    let (bytes, wanted) = (given(args, 0)?, given(args, 1)?);
    let (start, end) = bounds(args, bytes.len())?;
    let (Ok(mut at), Ok(end)) = (usize::try_from(start), usize::try_from(end)) else { return one(0) };
    let mut n = 0;
    if wanted.is_empty() {
        let end = end.min(bytes.len());
        return one(if at > end { 0 } else { (end - at + 1) as i64 });
    }
    while let Some(found) = search(&bytes, &wanted, at) {
        if found >= end {
            break;
        }
        n += 1;
        at = found + wanted.len();
    }
    one(n)
}

/// Replaces the first `max` parts; all where `max` is negative. An empty part is replaced `max` times at the start,
/// or, as in Python, between all characters (PyTorch does not return there).
fn replace(args: &Args<'_>) -> Result<Outputs> {
    let (source, old, new, max) = (given(args, 0)?, given(args, 1)?, given(args, 2)?, args.int(3)?);
    let limit = usize::try_from(max).unwrap_or(usize::MAX);
    let between = old.is_empty() && max < 0;
    let parts = match (old.is_empty(), between) {
        (true, true) => source.len() + 1,
        (true, false) => limit,
        _ => places(&source, &old).take(limit).count(),
    };
    if parts.saturating_mul(new.len()).saturating_add(source.len()) > MAX_BYTES {
        return Err(Diagnostic::runtime(format!("a text with {parts} replaced parts is too long")));
    }
    budget::expect_room(parts.saturating_mul(new.len()).saturating_add(source.len()))?;
    if between {
        // Characters are what they are in Python here.
        return one(Value::str(args.str(0)?.replace("", args.str(2)?)));
    }
    let mut out = Vec::with_capacity(source.len());
    if old.is_empty() {
        (0..parts).for_each(|_| out.extend_from_slice(&new));
        out.extend_from_slice(&source);
        return one(value(&out));
    }
    let mut from = 0;
    for at in places(&source, &old).take(limit) {
        out.extend_from_slice(&source[from..at]);
        out.extend_from_slice(&new);
        from = at + old.len();
    }
    out.extend_from_slice(&source[from..]);
    one(value(&out))
}

/// Where parts stand, none within another. The wanted part is not empty.
fn places<'a>(source: &'a [u8], wanted: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let mut from = 0;
    std::iter::from_fn(move || {
        let at = search(source, wanted, from)?;
        from = at + wanted.len();
        Some(at)
    })
}

fn strings<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Outputs> {
    one(Value::list(Type::str(), parts.into_iter().map(value).collect()))
}

/// With no separator: the words, however many.
fn split(args: &Args<'_>) -> Result<Outputs> {
    let source = given(args, 0)?;
    if args.opt_str(1)?.is_none() {
        let words = source.split(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b'\x0b' | b'\x0c'));
        return strings(words.filter(|word| !word.is_empty()));
    }
    let separator = given(args, 1)?;
    if separator.is_empty() {
        return Err(empty_separator());
    }
    let (mut parts, mut from) = (Vec::new(), 0);
    for at in places(&source, &separator).take(cuts(args.int(2)?)) {
        parts.push(&source[from..at]);
        from = at + separator.len();
    }
    parts.push(&source[from..]);
    strings(parts)
}

fn rsplit(args: &Args<'_>) -> Result<Outputs> {
    let (source, separator) = (given(args, 0)?, given(args, 1)?);
    if separator.is_empty() {
        // PyTorch finds the empty separator at the end as often as it may; without a limit it never ends.
        let cuts = usize::try_from(args.int(2)?).ok().filter(|cuts| *cuts <= MAX_ITEMS);
        let cuts = cuts.ok_or_else(empty_separator)?;
        return strings(std::iter::once(&*source).chain(std::iter::repeat_n(&b""[..], cuts)));
    }
    let (mut parts, mut rest) = (Vec::new(), &*source);
    let limit = cuts(args.int(2)?);
    while parts.len() < limit
        && let Some(at) = search_last(rest, &separator)
    {
        parts.push(&rest[at + separator.len()..]);
        rest = &rest[..at];
    }
    parts.push(rest);
    parts.reverse();
    strings(parts)
}

fn empty_separator() -> Diagnostic {
    Diagnostic::runtime("ValueError: empty separator")
}

/// How many cuts there may be; any number where the limit is negative.
fn cuts(max: i64) -> usize {
    usize::try_from(max).unwrap_or(usize::MAX)
}

/// Cuts at each single break, so that `\r\n` makes an empty line; kept breaks are elements of their own.
fn split_lines(args: &Args<'_>) -> Result<Outputs> {
    let (bytes, keep) = (given(args, 0)?, args.bool(1)?);
    let (mut out, mut line) = (Vec::new(), Vec::new());
    for byte in bytes.iter() {
        if BREAKS.contains(byte) {
            out.push(value(&std::mem::take(&mut line)));
            if keep {
                out.push(value(&[*byte]));
            }
        } else {
            line.push(*byte);
        }
    }
    if !line.is_empty() {
        out.push(value(&line));
    }
    one(Value::list(Type::str(), out))
}

fn partition(args: &Args<'_>, last: bool) -> Result<Outputs> {
    let (source, separator) = (given(args, 0)?, given(args, 1)?);
    let found = if last { search_last(&source, &separator) } else { search(&source, &separator, 0) };
    let parts: [&[u8]; 3] = match found {
        Some(at) => [&source[..at], &separator, &source[at + separator.len()..]],
        None if last => [b"", b"", &source],
        None => [&source, b"", b""],
    };
    Ok(parts.into_iter().map(value).collect())
}

fn strip(args: &Args<'_>, left: bool, right: bool) -> Result<Outputs> {
    let (source, chars) = (given(args, 0)?, given(args, 1)?);
    let mut bytes = &*source;
    while let (true, Some((first, rest))) = (left, bytes.split_first()) {
        if !chars.contains(first) {
            break;
        }
        bytes = rest;
    }
    while let (true, Some((last, rest))) = (right, bytes.split_last()) {
        if !chars.contains(last) {
            break;
        }
        bytes = rest;
    }
    one(value(bytes))
}
