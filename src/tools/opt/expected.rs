//! `--verify-diagnostics` and `--split-input-file`: tests of diagnostics, written as comments beside what causes them.
//!
//! ```text
//! // expected-error {{text}}          on this line; @+2 two lines below, @-1 above, @above, @below, @unknown without a place
//! # expected-warning-re@+1 {{a {{[0-9]+}} b}}      expressions between inner braces
//! # expected-note 2 {{text}}         that number of times
//! ```
//!
//! Every error and warning must be expected, and everything expected must come. Notes and hints may be expected.

use crate::diag::{Diagnostic, Severity, Source, Span};
use regex::Regex;
use std::sync::Arc;

/// The parts of a text between lines `// -----` or `# -----`, with the line numbers of the whole.
pub(super) fn split(name: &str, text: &str) -> Vec<Arc<Source>> {
    let mut parts = Vec::new();
    let (mut part, mut first) = (String::new(), 1);
    for (n, line) in text.split_inclusive('\n').enumerate() {
        let mark = line.trim_end();
        if mark == "// -----" || mark == "# -----" {
            parts.push(Source::starting_at(name, std::mem::take(&mut part), first));
            first = n + 2;
        } else {
            part.push_str(line);
        }
    }
    parts.push(Source::starting_at(name, part, first));
    parts.retain(|p| p.text().lines().any(|l| !is_comment(l)));
    parts
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    line.is_empty() || line.starts_with('#') || line.starts_with("//")
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Error,
    Warning,
    Note,
}

impl Kind {
    fn word(self) -> &'static str {
        match self {
            Kind::Error => "error",
            Kind::Warning => "warning",
            Kind::Note => "note",
        }
    }
}

/// What a comment expects.
struct Expected {
    kind: Kind,
    /// None: no place at all.
    line: Option<usize>,
    pattern: Regex,
    text: String,
    count: usize,
    span: Span,
}

/// A diagnostic, or a note of one, with its line.
struct Met<'a> {
    kind: Kind,
    line: Option<usize>,
    text: &'a str,
    whole: &'a Diagnostic,
    taken: bool,
}

/// What is wrong: unexpected diagnostics, and expected ones that did not occur.
pub(super) fn compare(source: &Arc<Source>, diagnostics: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut wrong = Vec::new();
    let expected = match read(source) {
        Ok(expected) => expected,
        Err(error) => return vec![error],
    };
    let mut met: Vec<Met<'_>> = diagnostics.iter().flat_map(|d| parts(source, d)).collect();
    for wanted in &expected {
        for _ in 0..wanted.count {
            let found = met.iter_mut().find(|m| {
                !m.taken && m.kind == wanted.kind && m.line == wanted.line && wanted.pattern.is_match(m.text)
            });
            match found {
                Some(found) => found.taken = true,
                None => {
                    let message =
                        format!("the expected {} \"{}\" was not produced", wanted.kind.word(), wanted.text);
                    wrong.push(Diagnostic::verify(message).at(&wanted.span));
                }
            }
        }
    }
    for m in met.iter().filter(|m| !m.taken && m.kind != Kind::Note) {
        let error = m.whole.clone();
        wrong.push(error.note(format!("unexpected {}", m.kind.word())));
    }
    wrong
}

fn parts<'a>(source: &Arc<Source>, diagnostic: &'a Diagnostic) -> Vec<Met<'a>> {
    let report = diagnostic.report();
    let line_of = |span: &Span| (span.source().name() == source.name()).then(|| span.line_column().0);
    let line = report.span.as_ref().and_then(line_of);
    let kind = match report.severity {
        Severity::Error => Kind::Error,
        Severity::Warning => Kind::Warning,
    };
    let one = |kind, line, text| Met { kind, line, text, whole: diagnostic, taken: false };
    let mut all = vec![one(kind, line, report.message.as_str())];
    all.extend(report.notes.iter().chain(&report.hints).map(|n| one(Kind::Note, line, n.as_str())));
    all.extend(report.labels.iter().map(|l| one(Kind::Note, line_of(&l.span), l.text.as_str())));
    all
}

/// All expectations of a text.
fn read(source: &Arc<Source>) -> Result<Vec<Expected>, Diagnostic> {
    let text = source.text();
    let mut all = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("expected-").map(|i| i + from) {
        from = at + "expected-".len();
        if let Some((expected, end)) = one(source, at)? {
            all.push(expected);
            from = end;
        }
    }
    Ok(all)
}

/// The expectation at `at`, and where it ends; None for text that only looks like one.
fn one(source: &Arc<Source>, at: usize) -> Result<Option<(Expected, usize)>, Diagnostic> {
    let text = source.text();
    let mut rest = &text[at + "expected-".len()..];
    let kinds = [Kind::Error, Kind::Warning, Kind::Note];
    let Some(kind) = kinds.into_iter().find(|k| rest.starts_with(k.word())) else { return Ok(None) };
    rest = &rest[kind.word().len()..];
    let is_regex = rest.starts_with("-re");
    rest = rest.strip_prefix("-re").unwrap_or(rest);
    let own_line = source.line_column(at).0;
    let mut line = Some(own_line);
    let fault = |message: String| {
        let end = at + text[at..].find('\n').unwrap_or(text.len() - at);
        Diagnostic::syntax(message).at(&Span::new(source, at, end))
    };
    if let Some(designator) = rest.strip_prefix('@') {
        let end = designator.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(designator.len());
        let word = &designator[..end];
        line = match word {
            "unknown" => None,
            "above" => code_line(source, own_line, false),
            "below" => code_line(source, own_line, true),
            _ => {
                let offset: i64 = word
                    .parse()
                    .map_err(|_| fault(format!("'@{word}' is not a line: write @+1, @-1, @above, @below")))?;
                let base = if word.starts_with(['+', '-']) { own_line as i64 } else { 0 };
                Some(usize::try_from(base + offset).unwrap_or(0))
            }
        };
        rest = &designator[end..];
    }
    rest = rest.trim_start_matches([' ', '\t']);
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let count = rest[..digits].parse().unwrap_or(1).min(1000);
    rest = rest[digits..].trim_start_matches([' ', '\t']);
    let Some(body) = rest.strip_prefix("{{") else { return Ok(None) };
    let Some(length) = body_length(body) else {
        return Err(fault("this expectation has no closing `}}`".to_string()));
    };
    let wanted = &body[..length];
    let pattern = pattern(wanted, is_regex).map_err(|e| fault(format!("not an expression: {e}")))?;
    let end = text.len() - body.len() + length + 2;
    let span = Span::new(source, at, end);
    Ok(Some((Expected { kind, line, pattern, text: wanted.to_string(), count, span }, end)))
}

/// The next line before or after a line that is not a comment.
fn code_line(source: &Source, line: usize, below: bool) -> Option<usize> {
    let lines: Vec<&str> = source.text().lines().collect();
    let own = line - source.first_line();
    let found = if below {
        (own + 1..lines.len()).find(|n| !is_comment(lines[*n]))
    } else {
        (0..own).rev().find(|n| !is_comment(lines[*n]))
    };
    found.map(|n| n + source.first_line())
}

/// Bytes up to the closing braces; inner pairs of braces are stepped over.
fn body_length(body: &str) -> Option<usize> {
    let mut depth = 0;
    let mut at = 0;
    while at < body.len() {
        let rest = &body[at..];
        if rest.starts_with('\n') {
            return None;
        } else if rest.starts_with("{{") {
            depth += 1;
            at += 2;
        } else if rest.starts_with("}}") {
            if depth == 0 {
                return Some(at);
            }
            depth -= 1;
            at += 2;
        } else {
            at += rest.chars().next().map_or(1, char::len_utf8);
        }
    }
    None
}

fn pattern(text: &str, is_regex: bool) -> Result<Regex, regex::Error> {
    if !is_regex {
        return Regex::new(&regex::escape(text));
    }
    let mut expression = String::new();
    let mut rest = text;
    while let Some((literal, tail)) = rest.split_once("{{") {
        let (inner, after) = tail.split_once("}}").unwrap_or((tail, ""));
        expression.push_str(&regex::escape(literal));
        expression.push_str(&format!("(?:{inner})"));
        rest = after;
    }
    expression.push_str(&regex::escape(rest));
    Regex::new(&expression)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, at: &[(usize, &str)]) -> Vec<String> {
        let source = Source::new("t", text);
        let diagnostics: Vec<Diagnostic> = at
            .iter()
            .map(|(line, message)| {
                let start = source.line_start(*line);
                Diagnostic::verify(*message).at(&Span::new(&source, start, start + 1)).hint("a hint")
            })
            .collect();
        compare(&source, &diagnostics).iter().map(|d| d.message().to_string()).collect()
    }

    #[test]
    fn lines_are_counted_from_the_comment() {
        let none: [String; 0] = [];
        assert_eq!(check("x // expected-error {{bad}}\n", &[(1, "a bad thing")]), none);
        assert_eq!(check("# expected-error@+2 {{bad}}\n\nx\n", &[(3, "bad")]), none);
        assert_eq!(check("x\n# note\n# expected-error@above {{bad}}\n", &[(1, "bad")]), none);
        assert_eq!(check("# expected-error@below {{bad}}\n# c\nx\n", &[(3, "bad")]), none);
        assert_eq!(check("x\n# expected-error-re@-1 {{b{{[a-z]}}d .}}\n", &[(1, "bad .")]), none);
        assert_eq!(
            check("x # expected-error 2 {{bad}} expected-note {{hint}}\n", &[(1, "bad"), (1, "bad")]),
            none
        );
    }

    #[test]
    fn what_does_not_fit_is_reported() {
        assert_eq!(check("x\n", &[(1, "bad")]), ["bad"]);
        assert_eq!(
            check("x # expected-error {{bad}}\n", &[]),
            ["the expected error \"bad\" was not produced"]
        );
        assert_eq!(check("x # expected-warning {{bad}}\n", &[(1, "bad")]).len(), 2);
        assert_eq!(check("x # expected-error@q {{bad}}\n", &[]).len(), 1);
        assert_eq!(check("x # expected-error {{bad\n", &[]), ["this expectation has no closing `}}`"]);
    }

    #[test]
    fn parts_keep_their_lines() {
        let parts = split("t", "a\n// -----\nb\n# -----\n\n# only a comment\n");
        assert_eq!(parts.len(), 2);
        assert_eq!((parts[1].first_line(), parts[1].text()), (3, "b\n"));
    }
}
