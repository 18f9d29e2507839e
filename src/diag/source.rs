//! A source text and the places in it. Cheap to clone; offsets are bytes and always clamped to
//! character boundaries, so that no rendering can split a character.

use std::sync::{Arc, OnceLock};

/// A text with the name it is shown under.
#[derive(Debug)]
pub struct Source {
    name: String,
    text: String,
    /// Line number of the first line, 1 for a whole file.
    first_line: usize,
    /// Byte offset at which each line starts; computed lazily.
    line_starts: OnceLock<Vec<u32>>,
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        (&self.name, self.first_line, &self.text) == (&other.name, other.first_line, &other.text)
    }
}

impl Eq for Source {}

impl Source {
    /// A whole file or string; its first line is line 1.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Arc<Source> {
        Self::starting_at(name, text, 1)
    }

    /// A part of a larger file whose first line has the given number.
    pub fn starting_at(name: impl Into<String>, text: impl Into<String>, first_line: usize) -> Arc<Source> {
        let (name, text) = (name.into(), text.into());
        Arc::new(Source { name, text, first_line, line_starts: OnceLock::new() })
    }

    fn line_starts(&self) -> &[u32] {
        self.line_starts.get_or_init(|| {
            let bytes = self.text.bytes().enumerate();
            let newlines = bytes.filter(|(_, b)| *b == b'\n').map(|(i, _)| i as u32 + 1);
            std::iter::once(0).chain(newlines).collect()
        })
    }

    /// The name it is shown under (`<string>`, a path, `code/__torch__/m.py`).
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Number of the first line.
    pub fn first_line(&self) -> usize {
        self.first_line
    }

    /// Line number (counted from `first_line`) and column (bytes from 0) of an offset.
    pub fn line_column(&self, offset: usize) -> (usize, usize) {
        let starts = self.line_starts();
        let line = starts.partition_point(|s| (*s as usize) <= offset).saturating_sub(1);
        (line + self.first_line, offset.saturating_sub(starts[line] as usize))
    }

    /// Byte offset of the start of a line by its number; the end of the text past the last line.
    pub fn line_start(&self, line: usize) -> usize {
        let index = line.saturating_sub(self.first_line);
        self.line_starts().get(index).map_or(self.text.len(), |s| *s as usize)
    }

    /// The nearest character boundary at or before an offset.
    pub fn clamp(&self, offset: usize) -> usize {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        offset
    }
}

/// A range of bytes in a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Span {
    source: Arc<Source>,
    start: u32,
    end: u32,
}

impl Span {
    /// The bytes `start..end` of a source, clamped to it.
    pub fn new(source: &Arc<Source>, start: usize, end: usize) -> Span {
        let start = source.clamp(start);
        let end = source.clamp(end).max(start);
        Span { source: Arc::clone(source), start: start as u32, end: end as u32 }
    }

    /// The source.
    pub fn source(&self) -> &Arc<Source> {
        &self.source
    }

    /// Offset of the first byte.
    pub fn start(&self) -> usize {
        self.start as usize
    }

    /// Offset after the last byte.
    pub fn end(&self) -> usize {
        self.end as usize
    }

    /// The text of the range.
    pub fn text(&self) -> &str {
        &self.source.text()[self.start()..self.end()]
    }

    /// Line number and column (bytes from 0) of the start.
    pub fn line_column(&self) -> (usize, usize) {
        self.source.line_column(self.start())
    }

    /// The smallest range that covers both, which must lie in the same source.
    pub fn to(&self, other: &Span) -> Span {
        let end = if Arc::ptr_eq(&self.source, &other.source) { other.end.max(self.end) } else { self.end };
        Span { source: Arc::clone(&self.source), start: self.start, end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_columns() {
        let s = Source::new("a.py", "ab\ncd\n");
        assert_eq!(s.line_column(0), (1, 0));
        assert_eq!(s.line_column(4), (2, 1));
        assert_eq!(s.line_start(2), 3);
    }

    #[test]
    fn spans_never_split_a_character() {
        let s = Source::new("a.py", "é");
        assert_eq!(Span::new(&s, 1, 9).text(), "é");
    }
}
