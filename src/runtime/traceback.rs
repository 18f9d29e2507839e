//! Errors of running programs in PyTorch's form: the chain of calls, outermost first, each with its source.

use crate::diag::{Diagnostic, ErrorKind, Span, torch};

/// What Python's caller would see: the exception's class and its whole message.
pub fn python(error: &Diagnostic) -> (String, String) {
    let report = error.report();
    let class = report.class.as_deref().unwrap_or("RuntimeError");
    if let (ErrorKind::Limit, Some(span)) = (report.kind, &report.span) {
        let (line, column) = span.line_column();
        let place = format!("{}:{line}:{}", span.source().name(), column + 1);
        return (class.to_string(), format!("{} ({place})", report.message));
    }
    if report.kind != ErrorKind::Raised || report.frames.is_empty() {
        return (class.to_string(), report.message.clone());
    }
    let outer = match class {
        _ if class.contains('.') => RAISED,
        "NotImplementedError" => class,
        _ => "RuntimeError",
    };
    (outer.to_string(), render(error))
}

/// The whole message of an error that an operation of a program raised.
pub fn render(error: &Diagnostic) -> String {
    let report = error.report();
    let originals: Vec<(&str, &Span)> =
        report.labels.iter().filter_map(|l| Some((l.text.strip_prefix(ORIGINAL)?, &l.span))).collect();
    let kind = if originals.is_empty() { "" } else { ", serialized code" };
    let mut out = format!(
        "The following operation failed in the TorchScript interpreter.\n\
         Traceback of TorchScript{kind} (most recent call last):\n",
    );
    let spans = report.frames.iter().enumerate();
    let spans: Vec<(&str, Option<&Span>)> = spans
        .map(|(n, f)| (f.function.as_str(), if n == 0 { report.span.as_ref() } else { f.span.as_ref() }))
        .collect();
    for (function, span) in spans.into_iter().rev() {
        if let Some(span) = span {
            out.push_str(&place(function, span));
        }
    }
    if !originals.is_empty() {
        out.push_str("\nTraceback of TorchScript, original code (most recent call last):\n");
        for (function, span) in originals.into_iter().rev() {
            out.push_str(&place(function, span));
        }
    }
    // Only classes that a program itself raised are shown; all that operators raise counts as one.
    let class = report.class.as_deref().filter(|c| c.contains('.') && *c != RAISED).unwrap_or("RuntimeError");
    out.push_str(&format!("{class}: {}\n", report.message));
    out
}

/// How the label of a place of the original code begins; the function's name follows.
pub(super) const ORIGINAL: &str = "original code of ";

/// Class of what `assert` raises: Python sees `torch.jit.Error`, the message says `RuntimeError`.
pub const RAISED: &str = "torch.jit.Error";

/// One frame, with its source where the text is at hand.
fn place(function: &str, span: &Span) -> String {
    if span.source().text().is_empty() && span.source().name().is_empty() {
        // Known to come from nowhere.
        return String::new();
    }
    if span.source().text().is_empty() {
        let (line, _) = span.line_column();
        return format!("  File \"{}\", line {line}, in {function}\n", span.source().name());
    }
    let text = torch::highlight(span);
    if span.end() - span.start() == span.source().text().len() {
        // What a tracer noted is Python's own stack, as it stands.
        return text;
    }
    match text.split_once('\n') {
        Some((head, rest)) => format!("{head}, in {function}\n{rest}"),
        None => text,
    }
}

/// An error of a task as its waiter sees it: the whole message becomes the message of a plain `RuntimeError`.
/// Failures that no program can raise stay what they are.
pub(super) fn flatten(error: Diagnostic) -> Diagnostic {
    if error.kind() != ErrorKind::Raised {
        return error;
    }
    Diagnostic::runtime(render(&error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn frames_stand_outermost_first() {
        let source = Source::new("<string>", "def g(x):\n    return x[3]\ndef f(x):\n    return g(x)\n");
        let error = Diagnostic::runtime("list index out of range")
            .at(&Span::new(&source, 21, 25))
            .frame("g", None)
            .frame("f", Some(Span::new(&source, 47, 48)));
        let text = render(&error);
        let f = text.find("line 4, in f").expect("the outer frame");
        let g = text.find("line 2, in g").expect("the inner frame");
        assert!(f < g, "{text}");
        assert!(text.ends_with("RuntimeError: list index out of range\n"), "{text}");
    }

    #[test]
    fn a_raise_statement_is_a_jit_error() {
        let error = Diagnostic::raised("builtins.ValueError", "no").frame("f", None);
        let (class, message) = python(&error);
        assert_eq!(class, "torch.jit.Error");
        assert!(message.ends_with("builtins.ValueError: no\n"));
    }
}
