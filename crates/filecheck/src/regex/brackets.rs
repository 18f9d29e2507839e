//! Bracket expressions: the names of sets of bytes in a pattern. It knows nothing of the rest of a pattern.

use super::pieces::{Piece, Place, RegexError};
use super::sets::ByteSet;

const BAD_COLLATE: RegexError = RegexError("invalid collating element");
const BAD_CLASS: RegexError = RegexError("invalid character class");
const BAD_RANGE: RegexError = RegexError("invalid character range");
const BAD_BRACKET: RegexError = RegexError("brackets ([ ]) not balanced");

/// POSIX names of the portable character set that are not the character itself.
const NAMES: &[(&str, u8)] = &[
    ("NUL", 0),
    ("SOH", 1),
    ("STX", 2),
    ("ETX", 3),
    ("EOT", 4),
    ("ENQ", 5),
    ("ACK", 6),
    ("BEL", 7),
    ("alert", 7),
    ("BS", 8),
    ("backspace", 8),
    ("HT", 9),
    ("tab", 9),
    ("LF", 10),
    ("newline", 10),
    ("VT", 11),
    ("vertical-tab", 11),
    ("FF", 12),
    ("form-feed", 12),
    ("CR", 13),
    ("carriage-return", 13),
    ("SO", 14),
    ("SI", 15),
    ("DLE", 16),
    ("DC1", 17),
    ("DC2", 18),
    ("DC3", 19),
    ("DC4", 20),
    ("NAK", 21),
    ("SYN", 22),
    ("ETB", 23),
    ("CAN", 24),
    ("EM", 25),
    ("SUB", 26),
    ("ESC", 27),
    ("IS4", 28),
    ("FS", 28),
    ("IS3", 29),
    ("GS", 29),
    ("IS2", 30),
    ("RS", 30),
    ("IS1", 31),
    ("US", 31),
    ("space", b' '),
    ("exclamation-mark", b'!'),
    ("quotation-mark", b'"'),
    ("number-sign", b'#'),
    ("dollar-sign", b'$'),
    ("percent-sign", b'%'),
    ("ampersand", b'&'),
    ("apostrophe", b'\''),
    ("left-parenthesis", b'('),
    ("right-parenthesis", b')'),
    ("asterisk", b'*'),
    ("plus-sign", b'+'),
    ("comma", b','),
    ("hyphen", b'-'),
    ("hyphen-minus", b'-'),
    ("period", b'.'),
    ("full-stop", b'.'),
    ("slash", b'/'),
    ("solidus", b'/'),
    ("zero", b'0'),
    ("one", b'1'),
    ("two", b'2'),
    ("three", b'3'),
    ("four", b'4'),
    ("five", b'5'),
    ("six", b'6'),
    ("seven", b'7'),
    ("eight", b'8'),
    ("nine", b'9'),
    ("colon", b':'),
    ("semicolon", b';'),
    ("less-than-sign", b'<'),
    ("equals-sign", b'='),
    ("greater-than-sign", b'>'),
    ("question-mark", b'?'),
    ("commercial-at", b'@'),
    ("left-square-bracket", b'['),
    ("backslash", b'\\'),
    ("reverse-solidus", b'\\'),
    ("right-square-bracket", b']'),
    ("circumflex", b'^'),
    ("circumflex-accent", b'^'),
    ("underscore", b'_'),
    ("low-line", b'_'),
    ("grave-accent", b'`'),
    ("left-brace", b'{'),
    ("left-curly-bracket", b'{'),
    ("vertical-line", b'|'),
    ("right-brace", b'}'),
    ("right-curly-bracket", b'}'),
    ("tilde", b'~'),
    ("DEL", 127),
];

/// Reads a bracket expression whose `[` is behind us; gives the piece and the bytes used.
pub(super) fn bracket(text: &[u8], ignore_case: bool, newline: bool) -> Result<(Piece, usize), RegexError> {
    for (mark, place) in [(&b"[:<:]]"[..], Place::WordStart), (b"[:>:]]", Place::WordEnd)] {
        if text.starts_with(mark) {
            return Ok((Piece::At(place), mark.len()));
        }
    }
    let mut reader = Reader { text, at: 0, set: ByteSet::default() };
    let inverted = reader.eat(b"^");
    if reader.eat(b"]") {
        reader.set.insert(b']');
    } else if reader.eat(b"-") {
        reader.set.insert(b'-');
    }
    while reader.peek().is_some_and(|b| b != b']') && !reader.sees(b"-]") {
        reader.term()?;
    }
    if reader.eat(b"-") {
        reader.set.insert(b'-');
    }
    if !reader.eat(b"]") {
        return Err(BAD_BRACKET);
    }
    let mut set = reader.set;
    if ignore_case {
        for byte in b'a'..=b'z' {
            let upper = byte.to_ascii_uppercase();
            if set.contains(byte) || set.contains(upper) {
                set.insert(byte);
                set.insert(upper);
            }
        }
    }
    if inverted {
        set.invert();
        if newline {
            set.remove(b'\n');
        }
    }
    Ok((Piece::Set(Box::new(set)), reader.at))
}

struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    set: ByteSet,
}

impl Reader<'_> {
    fn rest(&self) -> &[u8] {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn sees(&self, word: &[u8]) -> bool {
        self.rest().starts_with(word)
    }

    fn eat(&mut self, word: &[u8]) -> bool {
        let found = self.sees(word);
        if found {
            self.at += word.len();
        }
        found
    }

    /// One character, range, class or equivalence class.
    fn term(&mut self) -> Result<(), RegexError> {
        if self.peek() == Some(b'-') {
            return Err(BAD_RANGE);
        }
        if self.eat(b"[:") {
            return self.class();
        }
        if self.eat(b"[=") {
            let byte = self.collating(b'=')?;
            self.set.insert(byte);
            return Ok(());
        }
        let first = self.symbol()?;
        let mut last = first;
        if self.peek() == Some(b'-') && self.text.get(self.at + 1).is_some_and(|b| *b != b']') {
            self.at += 1;
            last = if self.eat(b"-") { b'-' } else { self.symbol()? };
        }
        // Bytes compare as signed characters, so that é stands before a.
        let (first, last) = (first.cast_signed(), last.cast_signed());
        if first > last {
            return Err(BAD_RANGE);
        }
        (first..=last).for_each(|byte| self.set.insert(byte.cast_unsigned()));
        Ok(())
    }

    fn class(&mut self) -> Result<(), RegexError> {
        match self.peek() {
            None => return Err(BAD_BRACKET),
            Some(b'-' | b']') => return Err(BAD_CLASS),
            _ => {}
        }
        let length = self.rest().iter().take_while(|b| b.is_ascii_alphabetic()).count();
        let name = self.rest().get(..length).unwrap_or_default();
        let member: fn(&u8) -> bool = match name {
            b"alnum" => u8::is_ascii_alphanumeric,
            b"alpha" => u8::is_ascii_alphabetic,
            b"blank" => |b| matches!(b, b' ' | b'\t'),
            b"cntrl" => |b| matches!(b, 1..=31 | 127),
            b"digit" => u8::is_ascii_digit,
            b"graph" => u8::is_ascii_graphic,
            b"lower" => u8::is_ascii_lowercase,
            b"print" => |b| matches!(b, b' '..=b'~'),
            b"punct" => u8::is_ascii_punctuation,
            b"space" => |b| matches!(b, 9..=13 | b' '),
            b"upper" => u8::is_ascii_uppercase,
            b"xdigit" => u8::is_ascii_hexdigit,
            _ => return Err(BAD_CLASS),
        };
        (0..=255u8).filter(member).for_each(|b| self.set.insert(b));
        self.at += length;
        if self.at >= self.text.len() {
            return Err(BAD_BRACKET);
        }
        if self.eat(b":]") { Ok(()) } else { Err(BAD_CLASS) }
    }

    fn symbol(&mut self) -> Result<u8, RegexError> {
        if self.eat(b"[.") {
            return self.collating(b'.');
        }
        let byte = self.peek().ok_or(BAD_BRACKET)?;
        self.at += 1;
        Ok(byte)
    }

    /// A collating element up to its closing `.]` or `=]`.
    fn collating(&mut self, mark: u8) -> Result<u8, RegexError> {
        if self.at >= self.text.len() {
            return Err(BAD_BRACKET);
        }
        let close = [mark, b']'];
        let Some(length) = self.rest().windows(2).position(|pair| pair == close) else {
            return Err(BAD_BRACKET);
        };
        let name = self.rest().get(..length).unwrap_or_default();
        let byte = match (name, NAMES.iter().find(|(known, _)| known.as_bytes() == name)) {
            (_, Some((_, byte))) => *byte,
            ([byte], None) => *byte,
            _ => return Err(BAD_COLLATE),
        };
        self.at += length + 2;
        Ok(byte)
    }
}
