//! Diagnostics in PyTorch's own form: message, marked source lines with their context, chain of callers.
//!
//! Every text here is byte for byte what PyTorch writes, quirks included, because users compare logs
//! and the conformance data compares messages. Columns and lengths are bytes, as they are there.

use super::{Diagnostic, ErrorKind, Span};
use std::fmt::Write;

/// Line ends that the context may reach past on either side of the marked lines, their own included.
const CONTEXT: usize = 3;

/// Renders a compile error as PyTorch's compiler does: message, place, and the chain of callers.
///
/// A [`ErrorKind::Syntax`] diagnostic stands for a token that the parser did not expect, which
/// PyTorch reports without the leading line break that every other error has. A diagnostic
/// without a place is its message alone.
pub fn render(diagnostic: &Diagnostic) -> String {
    let report = diagnostic.report();
    let Some(span) = &report.span else {
        return report.message.clone();
    };
    let lead = if report.kind == ErrorKind::Syntax { "" } else { "\n" };
    let mut out = format!("{lead}{}:\n{}", report.message, highlight(span));
    for label in &report.labels {
        let _ = writeln!(out, "{}:", label.text);
        out.push_str(&highlight(&label.span));
    }
    for pair in report.frames.windows(2) {
        let [callee, caller] = pair else { continue };
        let _ = writeln!(
            out,
            "'{}' is being compiled since it was called from '{}'",
            callee.function, caller.function
        );
        if let Some(span) = &caller.span {
            out.push_str(&highlight(span));
        }
    }
    out
}

/// The marked place with its context, beginning with `  File "name", line N`.
///
/// A range that is as long as its whole text is shown as that text, without name, marks or final
/// line break.
pub fn highlight(span: &Span) -> String {
    let source = span.source();
    let text = source.text();
    if span.end() - span.start() == text.len() {
        return text.to_string();
    }
    let mut out = format!("  File \"{}\", line {}\n", source.name(), span.line_column().0);
    out.push_str(slice(text, context_start(text, span.start()), span.start()));
    let after = marked_lines(&mut out, text, span.start(), span.end());
    let tail = slice(text, after, context_end(text, span.end()));
    out.push_str(tail);
    if !tail.is_empty() && !tail.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Where the context before `offset` begins: two lines above its own, since the break before the own
/// line counts.
fn context_start(text: &str, offset: usize) -> usize {
    let bytes = text.as_bytes();
    let mut at = line_start(bytes, offset);
    let mut breaks = 0;
    while at > 0 {
        if bytes.get(at - 1) == Some(&b'\n') {
            breaks += 1;
        }
        if breaks == CONTEXT {
            break;
        }
        at -= 1;
    }
    at
}

/// Where the context after `offset` ends: the position of the last line break shown, or the text's end.
fn context_end(text: &str, offset: usize) -> usize {
    let line_breaks = text.as_bytes().iter().enumerate().skip(offset).filter(|(_, b)| **b == b'\n');
    line_breaks.map(|(i, _)| i).nth(CONTEXT - 1).unwrap_or(text.len())
}

/// Writes the lines that `start..end` touches, each from where the range enters it, with tildes
/// below; returns the offset after the last of them.
fn marked_lines(out: &mut String, text: &str, start: usize, end: usize) -> usize {
    let bytes = text.as_bytes();
    let mut from = start;
    while from < end {
        let line_end = bytes.iter().skip(from).position(|b| *b == b'\n').map_or(text.len(), |n| from + n);
        out.push_str(slice(text, from, line_end));
        out.push('\n');
        let column_zero = line_start(bytes, from);
        let marked_end = line_end.min(end);
        let blank =
            (column_zero..marked_end).take_while(|i| *i < start || bytes.get(*i) == Some(&b' ')).count();
        let marks = marked_end.saturating_sub(column_zero + blank);
        if marks > 0 {
            let here = if has_more(bytes, line_end + 1, end) { "" } else { " <--- HERE" };
            let _ = writeln!(out, "{}{}{here}", " ".repeat(blank), "~".repeat(marks));
        }
        from = line_end + 1;
    }
    from
}

/// Whether PyTorch takes `from..=end` to hold more to mark; it looks one byte too far, and takes the
/// end of the text for a byte that is not blank.
fn has_more(bytes: &[u8], from: usize, end: usize) -> bool {
    (from..=end).any(|i| !matches!(bytes.get(i), Some(b'\n' | b' ')))
}

fn line_start(bytes: &[u8], offset: usize) -> usize {
    bytes.iter().take(offset).rposition(|b| *b == b'\n').map_or(0, |i| i + 1)
}

fn slice(text: &str, start: usize, end: usize) -> &str {
    text.get(start..end).unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;
    #[test]
    fn marks_one_line_like_pytorch() {
        let source = Source::new("<string>", "def f(x):\n    return x + offset\n");
        let d = Diagnostic::compile("undefined value offset").at(&Span::new(&source, 25, 31));
        assert_eq!(
            render(&d),
            "\nundefined value offset:\n  File \"<string>\", line 2\ndef f(x):\n    return x + offset\n               ~~~~~~ <--- HERE\n"
        );
    }

    /// Each pair as PyTorch 2.15 prints it (`SourceRange.highlight`).
    #[test]
    fn highlights_byte_for_byte() {
        let text = "ab c\n  de f\n\n    gh\n ij\nk  ";
        let cases = [
            (0, 5, "  File \"n.py\", line 1\nab c\n~~~~ <--- HERE\n  de f\n\n    gh\n"),
            (2, 12, "  File \"n.py\", line 1\nab c\n   ~\n  de f\n  ~~~~ <--- HERE\n\n    gh\n ij\n"),
            (5, 5, "  File \"n.py\", line 2\nab c\n  de f\n\n    gh\n"),
            (13, 17, "  File \"n.py\", line 4\n  de f\n\n    gh\n ij\nk  \n"),
            (27, 27, "  File \"n.py\", line 6\n    gh\n ij\nk  "),
            (10, 20, "  File \"n.py\", line 2\nab c\n  de f\n     ~\n\n    gh\n    ~~ <--- HERE\n ij\nk  \n"),
            (0, 27, text),
        ];
        let source = Source::new("n.py", text);
        for (start, end, expected) in cases {
            assert_eq!(highlight(&Span::new(&source, start, end)), expected, "{start}..{end}");
        }
        let source = Source::new("n.py", "ab\nk\nzz\n");
        assert_eq!(highlight(&Span::new(&source, 3, 8)), "  File \"n.py\", line 2\nab\nk\n~\nzz\n~~\n");
        let source = Source::new("n.py", "é = b\n");
        assert_eq!(highlight(&Span::new(&source, 3, 4)), "  File \"n.py\", line 1\né = b\n   ~ <--- HERE\n");
    }

    #[test]
    fn names_the_chain_of_callers() {
        let source = Source::new("<string>", "def g(x):\n  return y\ndef f(x):\n  return g(x)\n");
        let call = Span::new(&source, 40, 43);
        let error = Diagnostic::compile("undefined value y").at(&Span::new(&source, 19, 20));
        let text = render(&error.frame("g", None).frame("f", Some(call)));
        let tail = "'g' is being compiled since it was called from 'f'\n  File \"<string>\", line 4\n  return y\ndef f(x):\n  return g(x)\n         ~~~ <--- HERE\n";
        assert!(text.ends_with(tail), "{text}");
    }
}
