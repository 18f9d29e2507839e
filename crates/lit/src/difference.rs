//! `diff`: which lines of two files differ, shown in the forms of `diff -u` and `diff -c`.

use similar::{Algorithm, DiffOp, DiffTag, capture_diff_slices, group_diff_ops};
use std::ops::Range;

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
        for op in &group {
            let is_equal = op.tag() == DiffTag::Equal;
            put(&mut out, old, op.old_range(), if is_equal { b" " } else { b"-" });
            if !is_equal {
                put(&mut out, new, op.new_range(), b"+");
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
        let changes = |other: DiffTag| {
            group.iter().any(|op| !matches!(op.tag(), tag if tag == DiffTag::Equal || tag == other))
        };
        out.extend(format!("***************\n*** {} ****\n", context_range(&from)).bytes());
        if changes(DiffTag::Insert) {
            group.iter().for_each(|op| put(&mut out, old, op.old_range(), mark(op.tag())));
        }
        out.extend(format!("--- {} ----\n", context_range(&to)).bytes());
        if changes(DiffTag::Delete) {
            group.iter().for_each(|op| put(&mut out, new, op.new_range(), mark(op.tag())));
        }
    }
    out
}

fn mark(tag: DiffTag) -> &'static [u8] {
    match tag {
        DiffTag::Equal => b"  ",
        DiffTag::Replace => b"! ",
        DiffTag::Delete => b"- ",
        DiffTag::Insert => b"+ ",
    }
}

fn put(out: &mut Vec<u8>, lines: &[Vec<u8>], range: Range<usize>, mark: &[u8]) {
    for line in lines.get(range).unwrap_or_default() {
        out.extend_from_slice(mark);
        out.extend_from_slice(line);
    }
}

/// The lines that a group covers in both files.
fn spans(group: &[DiffOp]) -> (Range<usize>, Range<usize>) {
    let whole = |range: fn(&DiffOp) -> Range<usize>| {
        group.first().map_or(0, |op| range(op).start)..group.last().map_or(0, |op| range(op).end)
    };
    (whole(DiffOp::old_range), whole(DiffOp::new_range))
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
fn groups(old: &[Vec<u8>], new: &[Vec<u8>], context: usize) -> Vec<Vec<DiffOp>> {
    if old == new {
        return Vec::new();
    }
    // More lines than any file has; twice this number does not overflow.
    let context = context.min(usize::MAX / 4);
    group_diff_ops(capture_diff_slices(Algorithm::Myers, old, new), context)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<Vec<u8>> {
        text.split_inclusive('\n').map(|line| line.as_bytes().to_vec()).collect()
    }

    #[test]
    fn both_forms_are_those_of_diff() {
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
        assert_eq!(
            text(unified(["o", "n"], &old, &new, 0)),
            "--- o\n+++ n\n@@ -3 +3 @@\n-c\n+X\n@@ -8,0 +9 @@\n+i\n"
        );
        assert_eq!(text(unified(["o", "n"], &[], &lines("x\n"), 3)), "--- o\n+++ n\n@@ -0,0 +1 @@\n+x\n");
    }

    #[test]
    fn long_files_are_compared_quickly() {
        let file = |start: usize| {
            (start..start + 60_000).map(|n| format!("{}\n", n * 7919 % 50_021).into_bytes()).collect()
        };
        let (old, new): (Vec<Vec<u8>>, Vec<Vec<u8>>) = (file(0), file(30_000));
        let start = std::time::Instant::now();
        assert!(!unified(["o", "n"], &old, &new, usize::MAX).is_empty());
        assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    }
}
