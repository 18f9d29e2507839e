//! Diagnostics in PyTorch's own form: three lines of context, the line, `~~~~ <--- HERE` under it.

use super::{Diagnostic, Span};
use std::fmt::Write;

/// Lines of context before and after.
const CONTEXT: usize = 3;

/// Renders a compile error as PyTorch's compiler does: message, place, and the chain of callers.
pub fn render(diagnostic: &Diagnostic) -> String {
    let report = diagnostic.report();
    let mut out = String::new();
    let _ = write!(out, "\n{}:\n", report.message);
    if let Some(span) = &report.span {
        out.push_str(&highlight(span));
    }
    for label in &report.labels {
        let _ = writeln!(out, "{}:", label.text);
        out.push_str(&highlight(&label.span));
    }
    let mut callee = None::<&str>;
    for frame in &report.frames {
        if let Some(callee) = callee {
            let _ =
                writeln!(out, "'{callee}' is being compiled since it was called from '{}'", frame.function);
            if let Some(span) = &frame.span {
                out.push_str(&highlight(span));
            }
        }
        callee = Some(&frame.function);
    }
    out
}

/// The marked place with its context, beginning with `  File "name", line N`.
pub fn highlight(span: &Span) -> String {
    let source = span.source();
    let text = source.text();
    let (first, _) = span.line_column();
    let (last, _) = source.line_column(span.end());
    let mut out = format!("  File \"{}\", line {}\n", source.name(), first);
    let before = first.saturating_sub(CONTEXT).max(source.first_line());
    out.push_str(&text[source.line_start(before)..source.line_start(first)]);
    for line in first..=last {
        mark_line(&mut out, span, line, line == last);
    }
    let after = &text[source.line_start(last + 1)..source.line_start(last + 1 + CONTEXT)];
    out.push_str(after);
    if !after.is_empty() && !after.ends_with('\n') {
        out.push('\n');
    }
    out
}

/// Writes one source line and the tildes under the part of it that the span covers.
fn mark_line(out: &mut String, span: &Span, line: usize, is_last: bool) {
    let source = span.source();
    let start = source.line_start(line);
    let text = source.text()[start..source.line_start(line + 1)].trim_end_matches('\n');
    let _ = writeln!(out, "{text}");
    let from = span.start().max(start) - start;
    let indent = text.len() - text.trim_start_matches(' ').len();
    let from = if span.start() > start { from } else { indent };
    let to = (span.end().max(start) - start).min(text.len()).max(from);
    let blanks = text.get(..from).map_or(from, |t| t.chars().count());
    let marks = text.get(from..to).map_or(to - from, |t| t.chars().count());
    let here = if is_last { " <--- HERE" } else { "" };
    let _ = writeln!(out, "{}{}{here}", " ".repeat(blanks), "~".repeat(marks));
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
}
