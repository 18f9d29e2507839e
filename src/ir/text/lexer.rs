//! Reading text byte by byte: the cursor that every textual form of the IR shares (types, schemas, graphs,
//! modules). It works on the text itself, without a token list, and allocates only for what it returns.
//! It knows no grammar.

use crate::diag::{Diagnostic, ErrorKind, Source, Span};
use std::borrow::Cow;
use std::sync::Arc;

/// How deep brackets and blocks may nest before the text is refused.
pub(in crate::ir) const MAX_DEPTH: u32 = 200;

/// Longest text in bytes: places in it, and handles of what it holds, are 32-bit numbers.
pub const MAX_TEXT: usize = u32::MAX as usize;

/// What to say of a text that is too long.
pub fn too_large(bytes: u64) -> String {
    format!("the text has {bytes} bytes, more than the {MAX_TEXT} that can be read")
}

/// What went wrong and where, before it is known which source the text belongs to.
#[derive(Debug)]
pub(in crate::ir) struct TextError(Box<ErrorParts>);

#[derive(Debug)]
struct ErrorParts {
    start: usize,
    end: usize,
    message: String,
    hints: Vec<String>,
    secondary: bool,
    kind: ErrorKind,
}

/// The result of reading a piece of text.
pub(in crate::ir) type Parsed<T> = Result<T, TextError>;

impl TextError {
    /// An error about the bytes `start..end`.
    pub(in crate::ir) fn new(start: usize, end: usize, message: impl Into<String>) -> TextError {
        TextError(Box::new(ErrorParts {
            start,
            end,
            message: message.into(),
            hints: Vec::new(),
            secondary: false,
            kind: ErrorKind::Syntax,
        }))
    }

    /// An error about text that follows the grammar but means nothing: a name that does not exist, a number that
    /// does not fit.
    pub(in crate::ir) fn meaning(start: usize, end: usize, message: impl Into<String>) -> TextError {
        let mut error = TextError::new(start, end, message);
        error.0.kind = ErrorKind::Compile;
        error
    }

    /// Adds advice.
    pub(in crate::ir) fn hint(mut self, text: impl Into<String>) -> TextError {
        self.0.hints.push(text.into());
        self
    }

    /// Marks an error that only follows from another one.
    pub(super) fn secondary(mut self) -> TextError {
        self.0.secondary = true;
        self
    }

    /// Whether it only follows from another one.
    pub(super) fn is_secondary(&self) -> bool {
        self.0.secondary
    }

    /// Where it starts.
    pub(in crate::ir) fn start(&self) -> usize {
        self.0.start
    }

    /// The error as a diagnostic about a source whose text was read.
    pub(in crate::ir) fn into_diagnostic(self, source: &Arc<Source>) -> Diagnostic {
        let parts = self.0;
        let mut d = Diagnostic::new(parts.kind, parts.message).at(&Span::new(source, parts.start, parts.end));
        for hint in parts.hints {
            d = d.hint(hint);
        }
        d
    }

    /// The error as a diagnostic about a text that has no file.
    pub(in crate::ir) fn about(self, name: &str, text: &str) -> Diagnostic {
        self.into_diagnostic(&Source::new(name, text))
    }
}

/// A place in a text.
#[derive(Clone)]
pub(in crate::ir) struct Cursor<'a> {
    text: &'a str,
    bytes: &'a [u8],
    pos: usize,
    depth: u32,
    /// Where the lines end that [`Cursor::lines_of_graph`] has counted.
    counted: usize,
}

/// Whether a byte may start a name.
pub(super) fn is_name_start(b: u8) -> bool {
    b.is_ascii_alphabetic() || b == b'_'
}

/// Whether a byte may continue a name.
pub(super) fn is_name_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b == b'_'
}

/// A number as text writes it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::ir) enum Number {
    Int(i64),
    Float(f64),
    /// The imaginary part alone: `2j`.
    Imaginary(f64),
}

impl<'a> Cursor<'a> {
    /// The start of a text.
    pub(in crate::ir) fn new(text: &'a str) -> Cursor<'a> {
        Cursor { text, bytes: text.as_bytes(), pos: 0, depth: 0, counted: 0 }
    }

    /// Lines up to the next one that begins with `return`: about as many as the graph has ops that begins here. No line is counted
    /// twice, so that room for all graphs together is that of the text, and counting takes linear time.
    pub(super) fn lines_of_graph(&mut self) -> usize {
        if self.pos < self.counted {
            return 0;
        }
        let rest = self.rest().as_bytes();
        let end = memchr::memmem::find(rest, b"\n  return (");
        self.counted = end.map_or(self.bytes.len(), |end| self.pos + end);
        memchr::memchr_iter(b'\n', &rest[..end.unwrap_or(0)]).count()
    }

    /// Byte offset.
    #[inline]
    pub(in crate::ir) fn pos(&self) -> usize {
        self.pos
    }

    /// Goes back (or on) to a byte offset that this cursor gave before.
    pub(in crate::ir) fn set_pos(&mut self, pos: usize) {
        self.pos = pos.min(self.bytes.len());
    }

    /// The text between two offsets; empty if they split a character.
    pub(in crate::ir) fn slice(&self, start: usize, end: usize) -> &'a str {
        self.text.get(start..end).unwrap_or("")
    }

    /// What is left of the text.
    pub(in crate::ir) fn rest(&self) -> &'a str {
        self.text.get(self.pos..).unwrap_or("")
    }

    /// Whether the text is used up.
    pub(in crate::ir) fn at_end(&self) -> bool {
        self.pos >= self.bytes.len()
    }

    /// The next byte, 0 at the end.
    #[inline]
    pub(in crate::ir) fn peek(&self) -> u8 {
        self.bytes.get(self.pos).copied().unwrap_or(0)
    }

    /// The byte `n` places on, 0 past the end.
    #[inline]
    pub(in crate::ir) fn peek_at(&self, n: usize) -> u8 {
        self.bytes.get(self.pos + n).copied().unwrap_or(0)
    }

    /// Steps over `n` bytes.
    #[inline]
    pub(in crate::ir) fn advance(&mut self, n: usize) {
        self.pos = (self.pos + n).min(self.bytes.len());
    }

    /// Steps over spaces and tabs.
    #[inline]
    pub(super) fn skip_blanks(&mut self) {
        while matches!(self.peek(), b' ' | b'\t' | b'\r') {
            self.pos += 1;
        }
    }

    /// Steps over spaces and line ends.
    #[inline]
    pub(in crate::ir) fn skip_space(&mut self) {
        while matches!(self.peek(), b' ' | b'\n' | b'\t' | b'\r') {
            self.pos += 1;
        }
    }

    /// Steps over the rest of the line, its end left.
    pub(in crate::ir) fn skip_line(&mut self) {
        let rest = &self.bytes[self.pos..];
        self.pos += rest.iter().position(|b| *b == b'\n').unwrap_or(rest.len());
    }

    /// Steps over a byte if it comes next.
    #[inline]
    pub(in crate::ir) fn eat(&mut self, b: u8) -> bool {
        let found = self.peek() == b && self.pos < self.bytes.len();
        self.pos += usize::from(found);
        found
    }

    /// Steps over a text if it comes next.
    #[inline]
    pub(in crate::ir) fn eat_str(&mut self, text: &str) -> bool {
        let found = self.looking_at(text);
        if found {
            self.pos += text.len();
        }
        found
    }

    /// Whether a text comes next.
    #[inline]
    pub(in crate::ir) fn looking_at(&self, text: &str) -> bool {
        self.bytes[self.pos..].starts_with(text.as_bytes())
    }

    /// Steps over space, then over a byte that must come.
    #[inline]
    pub(in crate::ir) fn expect(&mut self, b: u8) -> Parsed<()> {
        self.skip_space();
        if self.eat(b) { Ok(()) } else { Err(self.expected(&format!("`{}`", b as char))) }
    }

    /// An error about what stands here.
    pub(in crate::ir) fn expected(&self, what: &str) -> TextError {
        let found = self.found();
        TextError::new(self.pos, self.pos + found.len().max(1), {
            let shown = match found {
                "" => "the end of the text".to_string(),
                "\n" => "the end of the line".to_string(),
                found => format!("`{found}`"),
            };
            format!("expected {what}, found {shown}")
        })
    }

    /// The word or character that stands here, for messages.
    fn found(&self) -> &'a str {
        let rest = self.rest();
        let word = rest.bytes().take_while(|b| is_name_byte(*b)).count();
        if word > 0 {
            return rest.get(..word.min(40)).unwrap_or("");
        }
        rest.char_indices().nth(1).map_or(rest, |(end, _)| &rest[..end])
    }

    /// Enters a bracket or block; refuses text that nests too deep.
    pub(in crate::ir) fn enter(&mut self) -> Parsed<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TextError::meaning(
                self.pos,
                self.pos + 1,
                format!("the text nests deeper than {MAX_DEPTH} levels"),
            ));
        }
        Ok(())
    }

    /// Leaves what [`Cursor::enter`] entered.
    pub(in crate::ir) fn leave(&mut self) {
        self.depth = self.depth.saturating_sub(1);
    }

    /// A name (`[A-Za-z_][A-Za-z0-9_]*`), empty if none comes next.
    #[inline]
    pub(in crate::ir) fn name(&mut self) -> &'a str {
        let start = self.pos;
        if is_name_start(self.peek()) {
            self.pos += 1;
            while is_name_byte(self.peek()) {
                self.pos += 1;
            }
        }
        self.slice(start, self.pos)
    }

    /// A name with dots (`__torch__.a.B`), empty if none comes next. Parts after a dot may be numbers or
    /// names in angle brackets (`__torch__.f.<lambda>`).
    pub(super) fn dotted_name(&mut self) -> &'a str {
        let start = self.pos;
        if self.name().is_empty() {
            return "";
        }
        loop {
            match (self.peek(), self.peek_at(1)) {
                (b'.', b) if is_name_byte(b) => self.pos += 2,
                (b'.', b'<') if self.angle_part() => {}
                (b, _) if is_name_byte(b) => self.pos += 1,
                _ => return self.slice(start, self.pos),
            }
        }
    }

    /// Steps over `.<name>` inside a qualified name.
    fn angle_part(&mut self) -> bool {
        let len = self.bytes[self.pos + 2..].iter().take_while(|b| is_name_byte(**b)).count();
        let found = len > 0 && self.peek_at(2 + len) == b'>';
        if found {
            self.pos += 3 + len;
        }
        found
    }

    /// Digits, empty if none come next.
    pub(in crate::ir) fn digits(&mut self) -> &'a str {
        let start = self.pos;
        while self.peek().is_ascii_digit() {
            self.pos += 1;
        }
        self.slice(start, self.pos)
    }

    /// A decimal integer with an optional minus sign.
    pub(in crate::ir) fn integer(&mut self) -> Parsed<i64> {
        let start = self.pos;
        self.eat(b'-');
        if self.digits().is_empty() {
            self.pos = start;
            return Err(self.expected("an integer"));
        }
        let text = self.slice(start, self.pos);
        text.parse()
            .map_err(|_| TextError::meaning(start, self.pos, format!("`{text}` does not fit into 64 bits")))
    }

    /// A number: `3`, `-1.5e-7`, `2.j`, `inf`, `-nan`. None if no number comes next.
    pub(in crate::ir) fn number(&mut self) -> Parsed<Option<Number>> {
        let start = self.pos;
        let negative = self.eat(b'-');
        if !negative {
            self.eat(b'+');
        }
        for (word, value) in [("inf", f64::INFINITY), ("nan", f64::NAN)] {
            if self.looking_at(word) && !matches!(self.peek_at(3), b'_' | b'.' | b'a'..=b'i' | b'k'..=b'z') {
                self.pos += word.len();
                let value = if negative { -value } else { value };
                let number = if self.eat(b'j') { Number::Imaginary(value) } else { Number::Float(value) };
                return Ok(Some(number));
            }
        }
        let whole = self.digits().len();
        let mut is_float = false;
        let mut fraction = 0;
        if self.peek() == b'.' && (whole > 0 || self.peek_at(1).is_ascii_digit()) {
            self.pos += 1;
            is_float = true;
            fraction = self.digits().len();
        }
        if whole + fraction == 0 {
            self.pos = start;
            return Ok(None);
        }
        is_float |= self.exponent();
        let text = self.slice(start, self.pos);
        let bad = |end| TextError::meaning(start, end, format!("`{text}` does not fit a number"));
        if self.eat(b'j') {
            return text.parse().map(|x| Some(Number::Imaginary(x))).map_err(|_| bad(self.pos));
        }
        if is_float {
            text.parse().map(|x| Some(Number::Float(x))).map_err(|_| bad(self.pos))
        } else {
            text.parse().map(|x| Some(Number::Int(x))).map_err(|_| bad(self.pos))
        }
    }

    fn exponent(&mut self) -> bool {
        let sign = usize::from(matches!(self.peek_at(1), b'+' | b'-'));
        let found = matches!(self.peek(), b'e' | b'E') && self.peek_at(1 + sign).is_ascii_digit();
        if found {
            self.pos += 1 + sign;
            self.digits();
        }
        found
    }

    /// A quoted string with its escapes resolved. None if its bytes are not UTF-8; the cursor then stands
    /// after it all the same.
    pub(in crate::ir) fn string(&mut self) -> Parsed<Option<Cow<'a, str>>> {
        let start = self.pos;
        let quote = self.peek();
        if quote != b'"' && quote != b'\'' {
            return Err(self.expected("a string"));
        }
        self.pos += 1;
        let body = self.pos;
        let mut owned: Option<Vec<u8>> = None;
        loop {
            let b = self.peek();
            if self.at_end() || b == b'\n' {
                return Err(TextError::new(start, self.pos, "the string has no end")
                    .hint(format!("close it with {} on the same line", quote as char)));
            }
            if b == quote {
                break;
            }
            if b == b'\\' {
                let bytes = owned.get_or_insert_with(|| self.bytes[body..self.pos].to_vec());
                let (byte, len) = escape(&self.bytes[self.pos..]);
                bytes.extend(byte);
                self.pos += len;
                continue;
            }
            if let Some(bytes) = &mut owned {
                bytes.push(b);
            }
            self.pos += 1;
        }
        let end = self.pos;
        self.pos += 1;
        Ok(match owned {
            None => Some(Cow::Borrowed(self.slice(body, end))),
            Some(bytes) => String::from_utf8(bytes).ok().map(Cow::Owned),
        })
    }
}

/// The byte from 128 on that an escape of PyTorch's printer stands for: it takes such a byte for a negative number and
/// writes its three octal digits as characters at and below `0`, so that `é` becomes `\0)+\/.)`.
fn printed_high_byte(bytes: &[u8]) -> Option<u8> {
    let digit = |at: usize, least: u8| match bytes.get(at).copied() {
        Some(b) if (least..=b'0').contains(&b) => Some(i32::from(b'0' - b)),
        _ => None,
    };
    let value = digit(1, b'.')? * 64 + digit(2, b')')? * 8 + digit(3, b')')?;
    (1..=128).contains(&value).then(|| (256 - value) as u8)
}

/// The byte that an escape sequence stands for (none for an escaped line end) and the length of the sequence.
fn escape(bytes: &[u8]) -> (Option<u8>, usize) {
    let hex = |b: u8| (b as char).to_digit(16).map(|d| d as u8);
    match bytes.get(1).copied().unwrap_or(b'\\') {
        b'n' => (Some(b'\n'), 2),
        b't' => (Some(b'\t'), 2),
        b'r' => (Some(b'\r'), 2),
        b'a' => (Some(7), 2),
        b'b' => (Some(8), 2),
        b'f' => (Some(12), 2),
        b'v' => (Some(11), 2),
        b'\n' => (None, 2),
        b')'..=b'/' | b'0' if printed_high_byte(bytes).is_some() => (printed_high_byte(bytes), 4),
        b'0'..=b'7' => {
            let digits = bytes[1..].iter().take(3).take_while(|b| (b'0'..=b'7').contains(b));
            let (value, len) = digits.fold((0u32, 0), |(v, n), b| (v * 8 + u32::from(b - b'0'), n + 1));
            (Some(value as u8), 1 + len)
        }
        b'x' => match (bytes.get(2).copied().and_then(hex), bytes.get(3).copied().and_then(hex)) {
            (Some(high), Some(low)) => (Some(high * 16 + low), 4),
            _ => (Some(b'\\'), 1),
        },
        other @ (b'\\' | b'"' | b'\'') => (Some(other), 2),
        _ => (Some(b'\\'), 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_counted_twice() {
        let graph = "graph(%x : int):\n  %y : int = aten::neg(%x)\n  return (%y)\n";
        let text = format!("{graph}{graph}");
        let mut cursor = Cursor::new(&text);
        assert_eq!((cursor.lines_of_graph(), cursor.lines_of_graph()), (1, 0));
        cursor.set_pos(graph.len());
        assert_eq!(cursor.lines_of_graph(), 1);
        // Other indents are not looked for again and again.
        let mut cursor = Cursor::new("graph(%x : int):\nreturn (%x)\n");
        assert_eq!(cursor.lines_of_graph(), 0);
        cursor.set_pos(10);
        assert_eq!((cursor.lines_of_graph(), cursor.counted), (0, cursor.bytes.len()));
    }

    #[test]
    fn numbers_of_every_form() {
        let read = |text: &str| Cursor::new(text).number().unwrap();
        assert_eq!(read("12]"), Some(Number::Int(12)));
        assert_eq!(read("-1.5e-7"), Some(Number::Float(-1.5e-7)));
        assert_eq!(read("2."), Some(Number::Float(2.0)));
        assert_eq!(read("2.j"), Some(Number::Imaginary(2.0)));
        assert_eq!(read("-inf"), Some(Number::Float(f64::NEG_INFINITY)));
        assert_eq!(read("int"), None);
        assert_eq!(read("-"), None);
        assert!(Cursor::new("99999999999999999999").number().is_err());
    }

    #[test]
    fn strings_with_escapes() {
        let read = |text: &str| Cursor::new(text).string().unwrap().map(Cow::into_owned);
        assert_eq!(read(r#""a\n\"b\"""#).as_deref(), Some("a\n\"b\""));
        assert_eq!(read(r#""\303\251""#).as_deref(), Some("é"));
        assert_eq!(read(r#""\377""#), None);
        assert_eq!(read(r#""\0)+\/.)a\0000""#).as_deref(), Some("éa\u{0}0"));
        assert!(Cursor::new("\"abc").string().is_err());
    }

    #[test]
    fn errors_say_what_was_expected_and_found() {
        let mut cursor = Cursor::new("  foo");
        let error = cursor.expect(b'(').unwrap_err().about("t", "  foo");
        assert_eq!(error.message(), "expected `(`, found `foo`");
        assert_eq!(error.report().span.as_ref().map(|s| s.text()), Some("foo"));
    }
}
