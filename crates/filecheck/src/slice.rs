//! A piece of a buffer that a parser reads from the front.
//!
//! Knows its place in the buffer, so that every complaint can point at what it means.

use super::source::{Sources, Span};

/// Bytes with their place.
#[derive(Clone, Copy, Debug)]
pub struct Slice<'s> {
    bytes: &'s [u8],
    buffer: usize,
    start: usize,
}

impl<'s> Slice<'s> {
    /// The bytes of a stretch.
    pub fn new(sources: &'s Sources, span: Span) -> Self {
        Slice { bytes: sources.text(span), buffer: span.buffer, start: span.start }
    }

    /// The bytes.
    pub fn bytes(&self) -> &'s [u8] {
        self.bytes
    }

    /// The place.
    pub fn span(&self) -> Span {
        Span { buffer: self.buffer, start: self.start, end: self.start + self.bytes.len() }
    }

    /// The bytes as text, for messages.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(self.bytes).into_owned()
    }

    /// Number of bytes.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The first byte.
    pub fn first(&self) -> Option<u8> {
        self.bytes.first().copied()
    }

    /// The first `count` bytes, or all.
    pub fn take(&self, count: usize) -> Slice<'s> {
        Slice { bytes: self.bytes.get(..count).unwrap_or(self.bytes), ..*self }
    }

    /// What follows the first `count` bytes.
    pub fn skip(&self, count: usize) -> Slice<'s> {
        let count = count.min(self.bytes.len());
        Slice { bytes: self.bytes.get(count..).unwrap_or_default(), start: self.start + count, ..*self }
    }

    /// Takes the first byte off.
    pub fn pop(&mut self) -> Option<u8> {
        let byte = self.first()?;
        *self = self.skip(1);
        Some(byte)
    }

    /// Takes a word off the front, if it stands there.
    pub fn eat(&mut self, word: &str) -> bool {
        let found = self.starts_with(word);
        if found {
            *self = self.skip(word.len());
        }
        found
    }

    /// Whether it starts with a word.
    pub fn starts_with(&self, word: &str) -> bool {
        self.bytes.starts_with(word.as_bytes())
    }

    /// Where a byte first occurs.
    pub fn find(&self, byte: u8) -> Option<usize> {
        self.bytes.iter().position(|b| *b == byte)
    }

    /// Where a word first occurs at or after `from`.
    pub fn find_word(&self, word: &str, from: usize) -> Option<usize> {
        let rest = self.bytes.get(from..)?;
        rest.windows(word.len()).position(|window| window == word.as_bytes()).map(|index| from + index)
    }

    /// Without blanks and tabs in front.
    pub fn trim_start(&self) -> Slice<'s> {
        self.skip(self.bytes.iter().take_while(|b| matches!(b, b' ' | b'\t')).count())
    }

    /// Without blanks and tabs at the end.
    pub fn trim_end(&self) -> Slice<'s> {
        let blanks = self.bytes.iter().rev().take_while(|b| matches!(b, b' ' | b'\t')).count();
        self.take(self.bytes.len() - blanks)
    }
}
