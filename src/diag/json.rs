//! Diagnostics for programs: one JSON object a line.

use super::{Diagnostic, Severity, Span};
use serde_json::{Value, json};

/// Renders a diagnostic as one line of JSON. Lines count from 1, columns (in bytes) from 1, ends are exclusive.
pub fn render(diagnostic: &Diagnostic) -> String {
    let mut line = value(diagnostic).to_string();
    line.push('\n');
    line
}

/// The same as a value.
pub fn value(diagnostic: &Diagnostic) -> Value {
    let report = diagnostic.report();
    let labels: Vec<Value> =
        report.labels.iter().map(|l| json!({"text": l.text, "place": place(&l.span)})).collect();
    let frames: Vec<Value> = report
        .frames
        .iter()
        .map(|f| json!({"function": f.function, "place": f.span.as_ref().map(place)}))
        .collect();
    json!({
        "severity": match report.severity { Severity::Error => "error", Severity::Warning => "warning" },
        "kind": format!("{:?}", report.kind).to_lowercase(),
        "message": report.message,
        "class": report.class,
        "place": report.span.as_ref().map(place),
        "labels": labels,
        "notes": report.notes,
        "hints": report.hints,
        "frames": frames,
    })
}

fn place(span: &Span) -> Value {
    let (line, column) = span.line_column();
    let (end_line, end_column) = span.source().line_column(span.end());
    json!({
        "file": span.source().name(), "line": line, "column": column + 1,
        "end_line": end_line, "end_column": end_column + 1,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn all_parts_are_there() {
        let source = Source::new("m.py", "def f(x):\n    return y\n");
        let error =
            Diagnostic::compile("undefined value y").at(&Span::new(&source, 21, 22)).hint("declare y");
        let json: Value = serde_json::from_str(&render(&error)).expect("JSON");
        assert_eq!(json["place"]["line"], 2);
        assert_eq!(json["place"]["column"], 12);
        assert_eq!(json["hints"][0], "declare y");
        assert_eq!(json["kind"], "compile");
    }
}
