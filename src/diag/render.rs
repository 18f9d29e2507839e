//! Diagnostics for people: the message, the marked source lines, notes and hints.

use super::{Diagnostic, Severity, Span};
use annotate_snippets::{AnnotationKind, Level, Renderer, Snippet};

/// How diagnostics are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// For people: marked source lines, notes, hints.
    #[default]
    Text,
    /// In PyTorch's format.
    Torch,
    /// One JSON object a line.
    Json,
}

/// Renders a diagnostic in a form; ends with a newline.
pub fn in_form(diagnostic: &Diagnostic, form: Form) -> String {
    match form {
        Form::Text => human(diagnostic),
        Form::Torch => format!("{}\n", super::torch::render(diagnostic).trim_end()),
        Form::Json => super::json::render(diagnostic),
    }
}

/// Renders a diagnostic as several lines of text, without colour, ending in a newline.
pub fn human(diagnostic: &Diagnostic) -> String {
    render(diagnostic, &Renderer::plain())
}

/// Renders a diagnostic with terminal colours.
pub fn coloured(diagnostic: &Diagnostic) -> String {
    render(diagnostic, &Renderer::styled())
}

fn render(diagnostic: &Diagnostic, renderer: &Renderer) -> String {
    let report = diagnostic.report();
    let title = match &report.class {
        Some(class) => format!("{class}: {}", report.message.trim()),
        None => report.message.trim().to_string(),
    };
    let level = match report.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group =
        level.primary_title(title.as_str()).elements(Vec::<annotate_snippets::Message<'_>>::new());
    if let Some(span) = &report.span {
        group = group.element(snippet(span, AnnotationKind::Primary, ""));
    }
    // A place without a file and a text shows nothing.
    let shows = |span: &Span| !span.source().text().is_empty() || !span.source().name().is_empty();
    for label in report.labels.iter().filter(|label| shows(&label.span)) {
        group = group.element(snippet(&label.span, AnnotationKind::Context, &label.text));
    }
    for frame in &report.frames {
        group = group.element(Level::NOTE.message(format!("called from '{}'", frame.function)));
        if let Some(span) = &frame.span {
            group = group.element(snippet(span, AnnotationKind::Context, ""));
        }
    }
    for note in &report.notes {
        group = group.element(Level::NOTE.message(note.as_str()));
    }
    for hint in &report.hints {
        group = group.element(Level::HELP.message(hint.as_str()));
    }
    format!("{}\n", renderer.render(&[group]))
}

fn snippet<'a>(
    span: &'a Span,
    kind: AnnotationKind,
    label: &'a str,
) -> Snippet<'a, annotate_snippets::Annotation<'a>> {
    let source = span.source();
    let annotation = kind.span(span.start()..span.end());
    let annotation = if label.is_empty() { annotation } else { annotation.label(label) };
    Snippet::source(source.text()).path(source.name()).line_start(source.first_line()).annotation(annotation)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Source;

    #[test]
    fn shows_message_place_and_hint() {
        let source = Source::new("m.py", "def f(x):\n    return x + y\n");
        let text = human(
            &Diagnostic::compile("undefined value y").at(&Span::new(&source, 25, 26)).hint("declare y"),
        );
        assert!(text.contains("error: undefined value y"), "{text}");
        assert!(text.contains("m.py:2:16"), "{text}");
        assert!(text.contains("help: declare y"), "{text}");
    }
}
