//! The annotated dump of the input.

use super::directive::Kind;
use super::report::{Annotation, Meaning};
use super::source::{Color, Console, Sources, Span};
use super::{DumpFilter, Options};
use std::collections::BTreeMap;

/// How an annotation is drawn.
#[derive(Clone)]
struct Mark {
    lead: char,
    color: Color,
    note: String,
    /// Whether a filter for errors keeps it.
    error: bool,
}

/// What is drawn below one line.
struct Row {
    /// Order of the results.
    order: usize,
    label: String,
    /// Whether the result starts on this line.
    first: bool,
    line: usize,
    /// Columns from 1, the second one excluded.
    columns: (usize, usize),
    mark: Mark,
    good: bool,
}

/// Writes the dump. `check_file` and `implicit` give the place of a pattern.
pub fn dump(
    sources: &Sources,
    annotations: &[Annotation],
    input: Span,
    check_file: Span,
    implicit: &[Span],
    options: &Options,
    console: &mut Console,
) {
    let mut rows = rows(sources, annotations, check_file, implicit);
    let label_width = rows.iter().map(|row| row.label.len()).max().unwrap_or(0);
    rows.sort_by_key(|row| (row.line, row.order));
    let text = sources.text(input);
    let lines: Vec<&[u8]> = text.split_inclusive(|byte| *byte == b'\n').collect();
    let digits = lines.len().checked_ilog10().map_or(1, |log| log as usize + 1);
    let width = label_width.max(digits) + 3;
    console.text("Input was:\n<<<<<<\n");
    console.bold();
    console.reset();
    Drawing { options, lines, rows, width, highlight: options.verbose() && console.color }.draw(console);
    console.text(">>>>>>\n");
}

struct Drawing<'a> {
    options: &'a Options,
    lines: Vec<&'a [u8]>,
    rows: Vec<Row>,
    width: usize,
    highlight: bool,
}

impl Drawing<'_> {
    fn draw(&self, console: &mut Console) {
        let context = self.options.dump_context();
        let last = self.lines.len().max(self.rows.last().map_or(0, |row| row.line));
        let mut elided = Console { out: Vec::new(), color: console.color };
        let mut kept_before: Option<usize> = None;
        // First row at or after the line; first line at or after it that the filter keeps.
        let mut row = 0;
        let mut kept_next = 0;
        for line in 1..=last {
            if kept_next < line {
                kept_next = self.next_kept(line, row);
            }
            if kept_next == line {
                kept_before = Some(line);
            }
            let far_behind = kept_before.is_none_or(|kept| kept.saturating_add(context) < line);
            let far_ahead = kept_next == usize::MAX || line.saturating_add(context) < kept_next;
            let count = self.rows.iter().skip(row).take_while(|r| r.line == line).count();
            let rows = self.rows.get(row..row + count).unwrap_or_default();
            row += count;
            if far_behind && far_ahead {
                self.draw_line(&mut elided, line, rows);
            } else {
                self.flush_elided(console, &mut elided);
                self.draw_line(console, line, rows);
            }
        }
        self.flush_elided(console, &mut elided);
    }

    /// The first line from `line` on that the filter keeps; `row` is the first row that may count.
    fn next_kept(&self, line: usize, row: usize) -> usize {
        let filter = self.options.dump_filter();
        if filter == DumpFilter::All {
            return line;
        }
        let rows = self.rows.iter().skip(row).filter(|row| row.line >= line);
        rows.filter(|row| match filter {
            DumpFilter::All | DumpFilter::AnnotationFull => true,
            DumpFilter::Annotation => row.first,
            DumpFilter::Error => row.first && row.mark.error,
        })
        .map(|row| row.line)
        .next()
        .unwrap_or(usize::MAX)
    }

    /// Writes left out lines, or dots if there are more lines than dots.
    fn flush_elided(&self, console: &mut Console, elided: &mut Console) {
        const DOTS: usize = 3;
        let text = std::mem::take(&mut elided.out);
        if text.iter().filter(|byte| **byte == b'\n').count() <= DOTS {
            console.text(text);
            return;
        }
        for _ in 0..DOTS {
            console.paint(Color::Black, false);
            console.text(format!("{:>width$}", ".", width = self.width));
            console.reset();
            console.text("\n");
        }
    }

    fn draw_line(&self, console: &mut Console, line: usize, rows: &[Row]) {
        let text = self.lines.get(line - 1).copied().unwrap_or_default();
        console.paint(Color::Black, false);
        console.text(format!("{line:>width$}: ", width = self.width));
        console.reset();
        console.bold();
        if self.highlight {
            console.paint(Color::Cyan, true);
        }
        let mut matched = false;
        for (column, byte) in (1..).zip(text) {
            let inside = self.highlight
                && rows.iter().any(|row| row.good && (row.columns.0..row.columns.1).contains(&column));
            if inside && !matched {
                console.reset();
            } else if matched && !inside {
                console.paint(Color::Cyan, true);
            }
            matched = inside;
            console.text([if *byte == b'\n' { b' ' } else { *byte }]);
        }
        console.reset();
        console.text("\n");
        for row in rows {
            self.draw_row(console, row, text.len());
        }
    }

    fn draw_row(&self, console: &mut Console, row: &Row, line_width: usize) {
        let (start, end) = row.columns;
        console.paint(row.mark.color, false);
        let mut out = format!("{:<width$}  ", row.label, width = self.width);
        // A width of `format!` ends at 65,535; columns of a long line do not.
        out.extend(std::iter::repeat_n(' ', start - 1));
        out.push(row.mark.lead);
        let mut column = start + 1;
        while column < end && column <= line_width {
            out.push('~');
            column += 1;
        }
        if !row.mark.note.is_empty() {
            out.extend(std::iter::repeat_n(' ', (line_width + 1).saturating_sub(column)));
            out.push(' ');
            out.push_str(&row.mark.note);
        }
        out.push('\n');
        console.text(out);
        console.reset();
    }
}

/// One row for each line that an annotation covers.
fn rows(sources: &Sources, annotations: &[Annotation], check_file: Span, implicit: &[Span]) -> Vec<Row> {
    let key = |span: Span| (span.buffer, span.start);
    let mut totals: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for annotation in annotations {
        *totals.entry(key(annotation.check)).or_default() += 1;
    }
    let mut seen: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    let mut rows = Vec::new();
    for (order, annotation) in annotations.iter().enumerate() {
        let mut label = format!("{}:", abbreviation(annotation));
        if annotation.check.buffer == check_file.buffer {
            label.push_str(&sources.line_column(annotation.check).0.to_string());
        } else {
            let index = implicit.iter().position(|span| span.buffer == annotation.check.buffer);
            label.push_str(&format!("imp{}", index.unwrap_or(0) + 1));
        }
        if totals.get(&key(annotation.check)).is_some_and(|total| *total > 1) {
            let number = seen.entry(key(annotation.check)).or_default();
            label.push_str(&format!("'{number}"));
            *number += 1;
        }
        add_rows(sources, annotation, order, label, &mut rows);
    }
    rows
}

fn add_rows(sources: &Sources, annotation: &Annotation, order: usize, label: String, rows: &mut Vec<Row>) {
    let (start_line, start_column) = sources.line_column(annotation.input);
    let (end_line, end_column) = sources.line_column(annotation.input.tail());
    let mut mark = mark(annotation.meaning);
    if !annotation.note.is_empty() {
        mark.note.clone_from(&annotation.note);
        if annotation.input.len() == 0 {
            mark.lead = ' ';
        }
    }
    let good = annotation.meaning == Meaning::Good;
    for line in start_line..=end_line {
        let first = line == start_line;
        if !first && line == end_line && end_column == 1 {
            break;
        }
        let start = if first { start_column } else { 1 };
        let end = match (line == end_line, first) {
            (false, _) => usize::MAX,
            (true, true) => end_column.max(start_column + 1),
            (true, false) => end_column,
        };
        let mut mark = mark.clone();
        if !first {
            mark.lead = '~';
            mark.note.clear();
        }
        rows.push(Row { order, label: label.clone(), first, line, columns: (start, end), mark, good });
    }
}

fn abbreviation(annotation: &Annotation) -> &'static str {
    match annotation.kind {
        Kind::Plain if annotation.counted => "count",
        Kind::Plain => "check",
        Kind::Next => "next",
        Kind::Same => "same",
        Kind::Not => "not",
        Kind::Dag => "dag",
        Kind::Label => "label",
        Kind::Empty => "empty",
        Kind::EndOfInput => "eof",
    }
}

fn mark(meaning: Meaning) -> Mark {
    let (lead, color, note, error) = match meaning {
        Meaning::Good => ('^', Color::Green, "", false),
        Meaning::Excluded => ('!', Color::Red, "error: no match expected", true),
        Meaning::WrongLine => ('!', Color::Red, "error: match on wrong line", true),
        Meaning::Discarded => ('!', Color::Cyan, "discard: overlaps earlier match", false),
        Meaning::Absent => ('X', Color::Green, "", false),
        Meaning::Missing => ('X', Color::Red, "error: no match found", true),
        Meaning::Invalid => ('X', Color::Red, "error: match failed for invalid pattern", true),
        Meaning::Guess => ('?', Color::Magenta, "possible intended match", true),
    };
    Mark { lead, color, note: note.into(), error }
}
