//! Indentation of graph text, as the printer sets it. Words are never touched, nor comments, so that `RUN` and
//! `CHECK` lines survive.

use super::document::{Document, Kind};
use super::index::Line;
use lsp_types as lsp;

/// Blocks deeper than this are left unchanged: indentation grows with the depth, and so the text with its square.
const MOST_DEPTH: usize = 100;

/// The edits that set the indentation; none for other kinds of files, nor for blocks nested very deeply.
pub(super) fn edits(document: &Document) -> Option<Vec<lsp::TextEdit>> {
    if document.kind != Kind::Graph {
        return None;
    }
    if document.index.lines.iter().any(|(_, _, depth)| *depth > MOST_DEPTH) {
        return None;
    }
    let mut edits = Vec::new();
    for (start, wanted) in indentations(document) {
        let text = document.text();
        let line_start = text.get(..start).and_then(|t| t.rfind('\n')).map_or(0, |at| at + 1);
        let blank = text.get(line_start..start).unwrap_or_default();
        // Two ops on one line are left alone.
        if blank.trim().is_empty() && blank != wanted {
            edits.push(lsp::TextEdit { range: document.range(line_start, start), new_text: wanted });
        }
    }
    edits.extend(trailing_blanks(document));
    edits.sort_by_key(|e| (e.range.start.line, e.range.start.character));
    Some(edits)
}

/// Start of each line and what should stand before it.
fn indentations(document: &Document) -> Vec<(usize, String)> {
    let text = document.text();
    let mut all = Vec::new();
    let lines = &document.index.lines;
    for (n, (start, kind, depth)) in lines.iter().enumerate() {
        let spaces = match kind {
            Line::Graph => 0,
            Line::Op => 2 + 4 * depth,
            Line::Block => 4 + 4 * depth,
            Line::End => 2 + 4 * depth,
            Line::Return => 2,
            Line::Other => continue,
        };
        all.push((*start, " ".repeat(spaces)));
        let end = lines.get(n + 1).map_or(text.len(), |(next, ..)| *next);
        let within = text.get(*start..end).unwrap_or_default();
        // Further inputs of a graph stand below the first.
        let continued = if *kind == Line::Graph { within.find('(').map(|at| at + 1) } else { None };
        let mut offset = *start;
        for line in within.split_inclusive('\n') {
            let word = line.trim_start();
            let at = offset + (line.len() - word.len());
            offset += line.len();
            let is_comment = word.starts_with('#') || word.starts_with("//");
            if at == *start || word.is_empty() {
                continue;
            }
            if let Some(width) = continued.filter(|_| word.starts_with('%')) {
                all.push((at, " ".repeat(width)));
            } else if is_comment && line.len() != word.len() && *kind != Line::Return {
                // A comment belongs to the line after it.
                let next = lines.get(n + 1).map_or(spaces, |(_, kind, depth)| match kind {
                    Line::Op | Line::End => 2 + 4 * depth,
                    Line::Block => 4 + 4 * depth,
                    Line::Return => 2,
                    Line::Graph | Line::Other => 0,
                });
                all.push((at, " ".repeat(next)));
            }
        }
    }
    all
}

fn trailing_blanks(document: &Document) -> Vec<lsp::TextEdit> {
    let mut edits = Vec::new();
    let mut offset = 0;
    for line in document.text().split_inclusive('\n') {
        let body = line.trim_end_matches(['\n', '\r']);
        let kept = body.trim_end_matches([' ', '\t']);
        if kept.len() < body.len() && !kept.is_empty() {
            let range = document.range(offset + kept.len(), offset + body.len());
            edits.push(lsp::TextEdit { range, new_text: String::new() });
        }
        offset += line.len();
    }
    edits
}
