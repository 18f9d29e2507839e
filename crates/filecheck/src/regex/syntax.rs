//! The parser of extended regular expressions: bytes to a sequence of pieces.
//!
//! The grammar is POSIX ERE with one extension, back references `\1` to `\9`. A pattern is a flat
//! sequence: the inside of a plain group stands beside its two marks, because captures are decided piece
//! by piece from the left. Must not know FileCheck.

use super::brackets;
use super::pieces::{Piece, Place, RegexError, Syntax};
use super::sets::ByteSet;

/// Most pieces that one pattern may expand to; `x{255}` thrice nested would have sixteen million.
const MAX_PIECES: usize = 100_000;
/// Deepest nesting of groups.
const MAX_DEPTH: usize = 200;
/// Largest count in `x{m,n}`.
const MAX_REPEAT: usize = 255;

const BAD_ESCAPE: RegexError = RegexError("trailing backslash (\\)");
const BAD_BACKREF: RegexError = RegexError("invalid backreference number");
const BAD_PAREN: RegexError = RegexError("parentheses not balanced");
const BAD_BRACE: RegexError = RegexError("braces not balanced");
const BAD_COUNT: RegexError = RegexError("invalid repetition count(s)");
const TOO_BIG: RegexError = RegexError("out of memory");
const BAD_REPEAT: RegexError = RegexError("repetition-operator operand invalid");
const EMPTY: RegexError = RegexError("empty (sub)expression");

/// Parses `pattern`; letters stand for both cases where `ignore_case`, and with `newline` neither `.` nor an
/// inverted bracket takes a line feed.
pub fn parse(pattern: &[u8], ignore_case: bool, newline: bool) -> Result<Syntax, RegexError> {
    let mut parser = Parser {
        text: pattern,
        at: 0,
        ignore_case,
        newline,
        groups: 0,
        closed: Default::default(),
        backrefs: false,
        depth: 0,
        size: 0,
    };
    let pieces = parser.alternatives(false)?;
    if parser.at < pattern.len() {
        return Err(BAD_PAREN);
    }
    Ok(Syntax { pieces, groups: parser.groups, backrefs: parser.backrefs })
}

struct Parser<'a> {
    text: &'a [u8],
    at: usize,
    ignore_case: bool,
    newline: bool,
    groups: usize,
    /// The insides of the first nine groups once they are closed.
    closed: [Option<Vec<Piece>>; 10],
    backrefs: bool,
    depth: usize,
    size: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn peek_second(&self) -> Option<u8> {
        self.text.get(self.at + 1).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Branches between `|`; `inside` a group a `)` ends them.
    fn alternatives(&mut self, inside: bool) -> Result<Vec<Piece>, RegexError> {
        let mut branches = Vec::new();
        loop {
            let mut branch = Vec::new();
            while let Some(byte) = self.peek() {
                if byte == b'|' || (inside && byte == b')') {
                    break;
                }
                branch.extend(self.repeated()?);
            }
            // Also what is repeated no times is empty.
            if branch.is_empty() {
                return Err(EMPTY);
            }
            branches.push(branch);
            if !self.eat(b'|') {
                break;
            }
        }
        match branches.len() {
            1 => Ok(branches.pop().unwrap_or_default()),
            _ => Ok(vec![Piece::Either(branches)]),
        }
    }

    /// An atom and the repetition after it.
    fn repeated(&mut self) -> Result<Vec<Piece>, RegexError> {
        let after_caret = self.peek() == Some(b'^');
        let atom = self.atom()?;
        if !self.at_repetition() {
            return Ok(atom);
        }
        let operator = self.peek().unwrap_or_default();
        self.at += 1;
        if after_caret {
            return Err(BAD_REPEAT);
        }
        let pieces = match operator {
            b'*' => vec![Piece::Maybe(vec![Piece::Many(atom)])],
            b'+' => vec![Piece::Many(atom)],
            b'?' => vec![Piece::Either(vec![atom, Vec::new()])],
            _ => self.counted(atom)?,
        };
        if self.at_repetition() { Err(BAD_REPEAT) } else { Ok(pieces) }
    }

    fn at_repetition(&self) -> bool {
        match self.peek() {
            Some(b'*' | b'+' | b'?') => true,
            Some(b'{') => self.peek_second().is_some_and(|b| b.is_ascii_digit()),
            _ => false,
        }
    }

    /// `m}`, `m,}` or `m,n}` after the opening brace.
    fn counted(&mut self, atom: Vec<Piece>) -> Result<Vec<Piece>, RegexError> {
        let least = self.count()?;
        let most = if !self.eat(b',') {
            Some(least)
        } else if self.peek().is_some_and(|b| b.is_ascii_digit()) {
            let most = self.count()?;
            if least > most {
                return Err(BAD_COUNT);
            }
            Some(most)
        } else {
            None
        };
        if !self.eat(b'}') {
            let closes = self.text.get(self.at..).is_some_and(|rest| rest.contains(&b'}'));
            return Err(if closes { BAD_COUNT } else { BAD_BRACE });
        }
        let copies = most.unwrap_or(least).max(1);
        self.grow(weight(&atom).saturating_mul(copies))?;
        Ok(repeat(&atom, least, most))
    }

    fn count(&mut self) -> Result<usize, RegexError> {
        let mut count = 0;
        let start = self.at;
        while let Some(byte @ b'0'..=b'9') = self.peek()
            && count <= MAX_REPEAT
        {
            count = count * 10 + usize::from(byte - b'0');
            self.at += 1;
        }
        if self.at == start || count > MAX_REPEAT { Err(BAD_COUNT) } else { Ok(count) }
    }

    fn grow(&mut self, pieces: usize) -> Result<(), RegexError> {
        self.size = self.size.saturating_add(pieces);
        if self.size > MAX_PIECES { Err(TOO_BIG) } else { Ok(()) }
    }

    fn atom(&mut self) -> Result<Vec<Piece>, RegexError> {
        self.grow(1)?;
        let byte = self.peek().unwrap_or_default();
        self.at += 1;
        Ok(vec![match byte {
            b'(' => return self.group(),
            b')' => return Err(BAD_PAREN),
            b'^' => Piece::At(Place::LineStart),
            b'$' => Piece::At(Place::LineEnd),
            b'|' => return Err(EMPTY),
            b'*' | b'+' | b'?' => return Err(BAD_REPEAT),
            b'.' => {
                let mut set = ByteSet::all();
                if self.newline {
                    set.remove(b'\n');
                }
                Piece::Set(Box::new(set))
            }
            b'[' => {
                let (piece, used) = brackets::bracket(
                    self.text.get(self.at..).unwrap_or_default(),
                    self.ignore_case,
                    self.newline,
                )?;
                self.at += used;
                piece
            }
            b'\\' => {
                let Some(escaped) = self.peek() else { return Err(BAD_ESCAPE) };
                self.at += 1;
                match escaped {
                    b'1'..=b'9' => self.backref(usize::from(escaped - b'0'))?,
                    _ => self.ordinary(escaped),
                }
            }
            b'{' if self.peek().is_some_and(|b| b.is_ascii_digit()) => return Err(BAD_REPEAT),
            _ => self.ordinary(byte),
        }])
    }

    fn ordinary(&self, byte: u8) -> Piece {
        if self.ignore_case && byte.is_ascii_alphabetic() {
            let mut set = ByteSet::default();
            set.insert(byte.to_ascii_lowercase());
            set.insert(byte.to_ascii_uppercase());
            return Piece::Set(Box::new(set));
        }
        Piece::Byte(byte)
    }

    fn group(&mut self) -> Result<Vec<Piece>, RegexError> {
        if self.at >= self.text.len() {
            return Err(BAD_PAREN);
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(TOO_BIG);
        }
        self.groups += 1;
        let number = self.groups;
        let inner = if self.peek() == Some(b')') { Vec::new() } else { self.alternatives(true)? };
        if !self.eat(b')') {
            return Err(BAD_PAREN);
        }
        self.depth -= 1;
        let mut pieces = vec![Piece::Open(number)];
        pieces.extend(inner.iter().cloned());
        pieces.push(Piece::Close(number));
        if let Some(slot) = self.closed.get_mut(number) {
            *slot = Some(inner);
        }
        Ok(pieces)
    }

    fn backref(&mut self, number: usize) -> Result<Piece, RegexError> {
        let Some(Some(inner)) = self.closed.get(number) else { return Err(BAD_BACKREF) };
        let inner = inner.clone();
        self.grow(weight(&inner))?;
        self.backrefs = true;
        Ok(Piece::Again(number, inner))
    }
}

/// Number of pieces, nested ones included. Depth is bounded by the parser.
fn weight(pieces: &[Piece]) -> usize {
    pieces
        .iter()
        .map(|piece| match piece {
            Piece::Either(branches) => 1 + branches.iter().map(|b| weight(b)).sum::<usize>(),
            Piece::Maybe(inner) | Piece::Many(inner) | Piece::Again(_, inner) => 1 + weight(inner),
            _ => 1,
        })
        .sum::<usize>()
        .max(1)
}

/// `atom{least,most}` written out; a missing `most` has no upper end.
fn repeat(atom: &[Piece], least: usize, most: Option<usize>) -> Vec<Piece> {
    let mut pieces = Vec::new();
    match (least, most) {
        (0, Some(0)) => {}
        (0, most) => pieces.push(Piece::Either(vec![repeat(atom, 1, most), Vec::new()])),
        (least, Some(most)) => {
            for _ in 1..least {
                pieces.extend(atom.iter().cloned());
            }
            for _ in least..most {
                pieces.push(Piece::Either(vec![atom.to_vec(), Vec::new()]));
            }
            pieces.extend(atom.iter().cloned());
        }
        (least, None) => {
            for _ in 1..least {
                pieces.extend(atom.iter().cloned());
            }
            pieces.push(Piece::Many(atom.to_vec()));
        }
    }
    pieces
}
