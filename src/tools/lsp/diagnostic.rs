//! Diagnostics in the protocol's form. It knows nothing of where they come from.

use super::document::Document;
use crate::diag::{Diagnostic, Severity, Span};
use lsp_types as lsp;

/// A diagnostic in the protocol's form. One without a place in this file stands at its start.
pub(super) fn translated(document: &Document, error: &Diagnostic) -> lsp::Diagnostic {
    let report = error.report();
    let here = |span: &&Span| span.source().text() == document.text();
    let range = |span: &Span| {
        let mut end = span.end();
        if end == span.start() {
            let rest = document.text().get(end..).unwrap_or_default();
            end +=
                rest.find(|c: char| !c.is_alphanumeric() && !"_:.%".contains(c)).unwrap_or(rest.len()).max(1);
        }
        document.range(span.start(), end.min(document.text().len()))
    };
    // A part of this file that was read by itself, as the meaning of an op, knows its line.
    let part = || {
        let span = report.span.as_ref().filter(|span| span.source().first_line() > 1)?;
        let (line, _) = span.line_column();
        let start = document.source.line_start(line);
        let text = document.text().get(start..)?.lines().next().unwrap_or_default();
        Some(document.range(start + text.len() - text.trim_start().len(), start + text.len()))
    };
    let mut message = report.message.clone();
    for note in &report.notes {
        message.push_str(&format!("\nnote: {note}"));
    }
    for hint in &report.hints {
        message.push_str(&format!("\nhint: {hint}"));
    }
    let related = report.labels.iter().filter(|label| here(&&label.span));
    let related: Vec<_> = related
        .map(|label| lsp::DiagnosticRelatedInformation {
            location: lsp::Location { uri: document.uri.clone(), range: range(&label.span) },
            message: label.text.clone(),
        })
        .collect();
    lsp::Diagnostic {
        range: report.span.as_ref().filter(here).map(range).or_else(part).unwrap_or_default(),
        severity: Some(match report.severity {
            Severity::Error => lsp::DiagnosticSeverity::ERROR,
            Severity::Warning => lsp::DiagnosticSeverity::WARNING,
        }),
        code: Some(lsp::NumberOrString::String(format!("{:?}", report.kind).to_ascii_lowercase())),
        source: Some("flambeau".into()),
        message,
        related_information: Some(related).filter(|list| !list.is_empty()),
        ..lsp::Diagnostic::default()
    }
}
