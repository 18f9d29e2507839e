//! Buffers, places in them, and messages that show a place.
//!
//! Must not know what the messages are about.

/// A stretch of a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Span {
    /// Which buffer.
    pub buffer: usize,
    /// First byte.
    pub start: usize,
    /// Byte after the last.
    pub end: usize,
}

impl Span {
    /// The empty stretch at the start of this one.
    pub fn head(self) -> Span {
        Span { end: self.start, ..self }
    }

    /// The empty stretch at the end of this one.
    pub fn tail(self) -> Span {
        Span { start: self.end, ..self }
    }

    /// A part, in bytes from the start of this one.
    pub fn part(self, from: usize, to: usize) -> Span {
        Span { buffer: self.buffer, start: self.start + from, end: self.start + to }
    }

    /// Number of bytes.
    pub fn len(self) -> usize {
        self.end - self.start
    }
}

/// A message about a place that is printed later.
#[derive(Clone, Debug)]
pub struct Complaint {
    /// The place.
    pub span: Span,
    /// The words.
    pub message: String,
}

impl Complaint {
    /// A message about a place.
    pub fn new(span: Span, message: impl Into<String>) -> Self {
        Complaint { span, message: message.into() }
    }
}

struct Buffer {
    name: String,
    text: Vec<u8>,
    /// Offsets after each line feed.
    lines: Vec<usize>,
}

/// All buffers of one run.
#[derive(Default)]
pub struct Sources(Vec<Buffer>);

impl Sources {
    /// Adds a buffer and gives its whole stretch.
    pub fn add(&mut self, name: impl Into<String>, text: Vec<u8>) -> Span {
        let lines = (1..).zip(&text).filter(|(_, byte)| **byte == b'\n').map(|(next, _)| next).collect();
        let span = Span { buffer: self.0.len(), start: 0, end: text.len() };
        self.0.push(Buffer { name: name.into(), text, lines });
        span
    }

    /// The bytes of a stretch.
    pub fn text(&self, span: Span) -> &[u8] {
        self.0.get(span.buffer).and_then(|buffer| buffer.text.get(span.start..span.end)).unwrap_or_default()
    }

    /// Line and column of the start of a stretch, both from 1. A column counts from the last line feed or
    /// carriage return, a line from line feeds alone.
    pub fn line_column(&self, span: Span) -> (usize, usize) {
        let Some(buffer) = self.0.get(span.buffer) else { return (1, 1) };
        let line = buffer.lines.partition_point(|next| *next <= span.start);
        let from = line.checked_sub(1).and_then(|index| buffer.lines.get(index)).copied().unwrap_or(0);
        let before = buffer.text.get(from..span.start).unwrap_or_default();
        let from = before.iter().rposition(|byte| *byte == b'\r').map_or(from, |index| from + index + 1);
        (line + 1, span.start - from + 1)
    }

    /// The line around the start of a stretch, without its end mark.
    fn line(&self, span: Span) -> Span {
        let ends = |byte: &u8| matches!(byte, b'\n' | b'\r');
        let text = self.0.get(span.buffer).map_or(&[][..], |buffer| &buffer.text);
        let before = text.get(..span.start).unwrap_or_default();
        let start = before.iter().rposition(ends).map_or(0, |index| index + 1);
        let after = text.get(span.start..).unwrap_or_default();
        let end = after.iter().position(ends).map_or(text.len(), |index| span.start + index);
        Span { buffer: span.buffer, start, end }
    }

    fn name(&self, span: Span) -> &str {
        self.0.get(span.buffer).map_or("", |buffer| &buffer.name)
    }
}

/// The weight of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// It failed.
    Error,
    /// It went well, and the user wants to know.
    Remark,
    /// More about the message before.
    Note,
}

/// Terminal colours, by their ANSI number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Color {
    /// Prints grey when bold.
    Black = 0,
    /// Failures.
    Red = 1,
    /// Successes.
    Green = 2,
    /// Remarks.
    Blue = 4,
    /// Guesses.
    Magenta = 5,
    /// What is left over.
    Cyan = 6,
}

/// Collects what goes to the error stream.
pub struct Console {
    /// What was written.
    pub out: Vec<u8>,
    /// Whether to write colours.
    pub color: bool,
}

impl Console {
    /// Writes text.
    pub fn text(&mut self, text: impl AsRef<[u8]>) {
        self.out.extend_from_slice(text.as_ref());
    }

    /// Switches to a bold colour, as foreground or as background.
    pub fn paint(&mut self, color: Color, background: bool) {
        if self.color {
            let base = if background { 40 } else { 30 };
            self.text(format!("\x1b[0;1;{}m", base + color as u8));
        }
    }

    /// Switches to bold in the terminal's own colour.
    pub fn bold(&mut self) {
        if self.color {
            self.text("\x1b[1m");
        }
    }

    /// Switches back.
    pub fn reset(&mut self) {
        if self.color {
            self.text("\x1b[0m");
        }
    }

    /// An error at a place.
    pub fn complain(&mut self, sources: &Sources, complaint: &Complaint) {
        self.message(sources, Level::Error, complaint.span.head(), &complaint.message);
    }

    /// A message with the line of its place, a caret below, and the stretch underlined.
    pub fn message(&mut self, sources: &Sources, level: Level, span: Span, message: &str) {
        let (line, column) = sources.line_column(span);
        self.bold();
        self.text(format!("{}:{line}:{column}: ", sources.name(span)));
        self.reset();
        let (color, word) = match level {
            Level::Error => (Color::Red, "error: "),
            Level::Remark => (Color::Blue, "remark: "),
            Level::Note => (Color::Black, "note: "),
        };
        self.paint(color, false);
        self.text(word);
        self.reset();
        self.bold();
        self.text(message);
        self.text("\n");
        self.reset();

        let around = sources.line(span);
        let text = sources.text(around);
        self.text(expand_tabs(text, text));
        self.text("\n");
        // Columns of text beyond ASCII are not known, so the position of the caret is unknown.
        if !text.is_ascii() {
            return;
        }
        let caret = (span.start - around.start).min(text.len());
        let end = span.end.min(around.end) - around.start;
        let mut marks = vec![b' '; caret];
        marks.push(b'^');
        marks.resize(end.max(caret + 1), b'~');
        self.paint(Color::Green, false);
        self.text(expand_tabs(&marks, text));
        self.text("\n");
        self.reset();
    }
}

/// Widens each mark that stands below a tab of `line` to the next multiple of eight; a tab itself is blank.
fn expand_tabs(marks: &[u8], line: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(marks.len());
    for (index, mark) in marks.iter().enumerate() {
        let byte = if *mark == b'\t' { b' ' } else { *mark };
        out.push(byte);
        if line.get(index) == Some(&b'\t') {
            while out.len() % 8 != 0 {
                out.push(byte);
            }
        }
    }
    out
}
