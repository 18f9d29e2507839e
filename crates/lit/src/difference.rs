//! `diff`: which lines of two files differ, found and shown as Python's `difflib` does it.
//!
//! The longest run of equal lines is taken first, then the longest on both sides of it.

use std::collections::BTreeMap;
use std::ops::Range;

/// From this many lines on, lines that occur often start no run.
const MANY: usize = 200;
/// Most pairs of equal lines that are examined; beyond it files count as wholly different.
const MAX_PAIRS: usize = 50_000_000;

/// What happens to a part of both files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tag {
    Equal,
    Replace,
    Delete,
    Insert,
}

type Part = (Tag, Range<usize>, Range<usize>);

/// The difference with `context` equal lines around each change, as `diff -u` shows it; empty if there is none. Lines
/// keep their ends; `old` and `new` name the files.
pub(super) fn unified(names: [&str; 2], old: &[Vec<u8>], new: &[Vec<u8>], context: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for group in groups(old, new, context) {
        if out.is_empty() {
            out.extend(format!("--- {}\n+++ {}\n", names[0], names[1]).bytes());
        }
        let (from, to) = spans(&group);
        out.extend(format!("@@ -{} +{} @@\n", unified_range(&from), unified_range(&to)).bytes());
        for (tag, from, to) in &group {
            let mark = if *tag == Tag::Equal { b' ' } else { b'-' };
            put(&mut out, old, from, &[mark]);
            if *tag != Tag::Equal {
                put(&mut out, new, to, b"+");
            }
        }
    }
    out
}

/// The same as `diff -c` shows it.
pub(super) fn with_context(names: [&str; 2], old: &[Vec<u8>], new: &[Vec<u8>], context: usize) -> Vec<u8> {
    let mut out = Vec::new();
    for group in groups(old, new, context) {
        if out.is_empty() {
            out.extend(format!("*** {}\n--- {}\n", names[0], names[1]).bytes());
        }
        let (from, to) = spans(&group);
        out.extend(format!("***************\n*** {} ****\n", context_range(&from)).bytes());
        if group.iter().any(|(tag, ..)| matches!(tag, Tag::Replace | Tag::Delete)) {
            for (tag, from, _) in group.iter().filter(|(tag, ..)| *tag != Tag::Insert) {
                put(&mut out, old, from, mark(*tag));
            }
        }
        out.extend(format!("--- {} ----\n", context_range(&to)).bytes());
        if group.iter().any(|(tag, ..)| matches!(tag, Tag::Replace | Tag::Insert)) {
            for (tag, _, to) in group.iter().filter(|(tag, ..)| *tag != Tag::Delete) {
                put(&mut out, new, to, mark(*tag));
            }
        }
    }
    out
}

fn mark(tag: Tag) -> &'static [u8] {
    match tag {
        Tag::Equal => b"  ",
        Tag::Replace => b"! ",
        Tag::Delete => b"- ",
        Tag::Insert => b"+ ",
    }
}

fn put(out: &mut Vec<u8>, lines: &[Vec<u8>], range: &Range<usize>, mark: &[u8]) {
    for line in lines.get(range.clone()).unwrap_or_default() {
        out.extend_from_slice(mark);
        out.extend_from_slice(line);
    }
}

/// The lines that a group covers in both files.
fn spans(group: &[Part]) -> (Range<usize>, Range<usize>) {
    let first = group.first().map_or((0, 0), |(_, from, to)| (from.start, to.start));
    let last = group.last().map_or((0, 0), |(_, from, to)| (from.end, to.end));
    (first.0..last.0, first.1..last.1)
}

fn unified_range(range: &Range<usize>) -> String {
    match range.len() {
        1 => (range.start + 1).to_string(),
        0 => format!("{},0", range.start),
        length => format!("{},{length}", range.start + 1),
    }
}

fn context_range(range: &Range<usize>) -> String {
    let start = if range.is_empty() { range.start } else { range.start + 1 };
    match range.len() {
        0 | 1 => start.to_string(),
        length => format!("{start},{}", start + length - 1),
    }
}

/// Changes that lie near to each other, with the equal lines around them.
fn groups(old: &[Vec<u8>], new: &[Vec<u8>], context: usize) -> Vec<Vec<Part>> {
    let mut parts = parts(old, new);
    if parts.iter().all(|(tag, ..)| *tag == Tag::Equal) {
        return Vec::new();
    }
    if let Some((Tag::Equal, from, to)) = parts.first_mut() {
        from.start = from.start.max(from.end.saturating_sub(context));
        to.start = to.start.max(to.end.saturating_sub(context));
    }
    if let Some((Tag::Equal, from, to)) = parts.last_mut() {
        from.end = from.end.min(from.start.saturating_add(context));
        to.end = to.end.min(to.start.saturating_add(context));
    }
    let mut groups = Vec::new();
    let mut group: Vec<Part> = Vec::new();
    for (tag, mut from, mut to) in parts {
        if tag == Tag::Equal && from.len() > context.saturating_mul(2) {
            let (from_end, to_end) = (from.start + context, to.start + context);
            group.push((tag, from.start..from_end.min(from.end), to.start..to_end.min(to.end)));
            groups.push(std::mem::take(&mut group));
            from.start = from.start.max(from.end.saturating_sub(context));
            to.start = to.start.max(to.end.saturating_sub(context));
        }
        group.push((tag, from, to));
    }
    if !matches!(group.as_slice(), [] | [(Tag::Equal, ..)]) {
        groups.push(group);
    }
    groups
}

/// What happens to each part of the first file, in order.
fn parts(old: &[Vec<u8>], new: &[Vec<u8>]) -> Vec<Part> {
    let mut runs = Matcher::new(old, new).runs();
    runs.push((old.len(), new.len(), 0));
    let (mut i, mut j) = (0, 0);
    let mut out: Vec<Part> = Vec::new();
    for (from, to, length) in runs {
        let tag = match (i < from, j < to) {
            (true, true) => Some(Tag::Replace),
            (true, false) => Some(Tag::Delete),
            (false, true) => Some(Tag::Insert),
            (false, false) => None,
        };
        out.extend(tag.map(|tag| (tag, i..from, j..to)));
        (i, j) = (from + length, to + length);
        if length > 0 {
            match out.last_mut() {
                Some((Tag::Equal, before, beside)) => (before.end, beside.end) = (i, j),
                _ => out.push((Tag::Equal, from..i, to..j)),
            }
        }
    }
    out
}

struct Matcher<'l> {
    old: &'l [Vec<u8>],
    new: &'l [Vec<u8>],
    /// Where each line of the second file stands, if it may start a run.
    places: BTreeMap<&'l [u8], Vec<usize>>,
    work: usize,
}

impl<'l> Matcher<'l> {
    fn new(old: &'l [Vec<u8>], new: &'l [Vec<u8>]) -> Self {
        let mut places: BTreeMap<&[u8], Vec<usize>> = BTreeMap::new();
        for (number, line) in new.iter().enumerate() {
            places.entry(line).or_default().push(number);
        }
        if new.len() >= MANY {
            let most = new.len() / 100 + 1;
            places.retain(|_, places| places.len() <= most);
        }
        Matcher { old, new, places, work: 0 }
    }

    /// All runs of equal lines, in order: starts and length.
    fn runs(&mut self) -> Vec<(usize, usize, usize)> {
        let mut runs = Vec::new();
        let mut left = vec![(0..self.old.len(), 0..self.new.len())];
        while let Some((from, to)) = left.pop() {
            let (i, j, length) = self.longest(&from, &to);
            if length == 0 {
                continue;
            }
            runs.push((i, j, length));
            if from.start < i && to.start < j {
                left.push((from.start..i, to.start..j));
            }
            if i + length < from.end && j + length < to.end {
                left.push((i + length..from.end, j + length..to.end));
            }
        }
        runs.sort_unstable();
        runs
    }

    /// The longest run within two parts, the first of several.
    fn longest(&mut self, from: &Range<usize>, to: &Range<usize>) -> (usize, usize, usize) {
        let (mut i, mut j, mut length) = (from.start, to.start, 0);
        let mut ends: BTreeMap<usize, usize> = BTreeMap::new();
        for (number, line) in self.old.iter().enumerate().take(from.end).skip(from.start) {
            let mut next = BTreeMap::new();
            let places = self.places.get(line.as_slice()).map_or(&[][..], Vec::as_slice);
            for place in places.iter().copied().filter(|place| to.contains(place)) {
                self.work += 1;
                if self.work > MAX_PAIRS {
                    return (i, j, 0);
                }
                let run = place.checked_sub(1).and_then(|before| ends.get(&before)).copied().unwrap_or(0) + 1;
                next.insert(place, run);
                if run > length {
                    (i, j, length) = (number + 1 - run, place + 1 - run, run);
                }
            }
            ends = next;
        }
        // Lines that start no run may still lengthen one.
        while i > from.start && j > to.start && self.old.get(i - 1) == self.new.get(j - 1) {
            (i, j, length) = (i - 1, j - 1, length + 1);
        }
        while i + length < from.end
            && j + length < to.end
            && self.old.get(i + length) == self.new.get(j + length)
        {
            length += 1;
        }
        (i, j, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Vec<u8>> {
        text.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn both_forms_are_pythons() {
        let (old, new) = (lines("a\nb\nc\nd\ne\nf\ng\nh\n"), lines("a\nb\nX\nd\ne\nf\ng\nh\ni\n"));
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(
            text(unified(["o", "n"], &old, &new, 1)),
            "--- o\n+++ n\n@@ -2,3 +2,3 @@\n b\n-c\n+X\n d\n@@ -8 +8,2 @@\n h\n+i\n"
        );
        assert_eq!(
            text(with_context(["o", "n"], &old, &new, 1)),
            "*** o\n--- n\n***************\n*** 2,4 ****\n  b\n! c\n  d\n--- 2,4 ----\n  b\n! X\n  d\n\
             ***************\n*** 8 ****\n--- 8,9 ----\n  h\n+ i\n"
        );
        assert!(unified(["o", "n"], &old, &old, 3).is_empty());
        assert_eq!(text(unified(["o", "n"], &[], &lines("x\n"), 3)), "--- o\n+++ n\n@@ -0,0 +1 @@\n+x\n");
    }
}
