//! The directives of a check file: where a prefix stands, and what kind of check follows.

use super::Options;
use super::slice::Slice;

/// The kinds of check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `CHECK:` and `CHECK-COUNT-n:`
    Plain,
    /// `CHECK-NEXT:`
    Next,
    /// `CHECK-SAME:`
    Same,
    /// `CHECK-NOT:`
    Not,
    /// `CHECK-DAG:`
    Dag,
    /// `CHECK-LABEL:`
    Label,
    /// `CHECK-EMPTY:`
    Empty,
    /// The end of the input, after trailing `CHECK-NOT` and `CHECK-DAG`.
    EndOfInput,
}

impl Kind {
    /// The suffix that names it, with the dash.
    pub fn suffix(self) -> &'static str {
        match self {
            Kind::Plain | Kind::EndOfInput => "",
            Kind::Next => "-NEXT",
            Kind::Same => "-SAME",
            Kind::Not => "-NOT",
            Kind::Dag => "-DAG",
            Kind::Label => "-LABEL",
            Kind::Empty => "-EMPTY",
        }
    }
}

/// What follows a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// A check: kind, how often, and whether its text is literal.
    Check {
        /// The kind.
        kind: Kind,
        /// `None` unless it is `-COUNT-n`.
        count: Option<usize>,
        /// `{LITERAL}`
        literal: bool,
    },
    /// A comment, to be left alone.
    Comment,
    /// `CHECK_NEXT:` for `CHECK-NEXT:`
    Misspelled,
    /// `-NOT` joined with another suffix.
    BadNot,
    /// `-COUNT-` without a good number.
    BadCount,
}

/// A directive, as far as its colon.
#[derive(Clone, Copy, Debug)]
pub struct Directive<'s> {
    /// The prefix, in place.
    pub prefix: Slice<'s>,
    /// What follows the prefix.
    pub suffix: Suffix,
    /// What follows the colon, to the end of the file.
    pub rest: Slice<'s>,
    /// The line it stands on, from 1.
    pub line: usize,
}

/// Finds directives from the front of a check file.
pub struct Scanner<'s, 'o> {
    text: Slice<'s>,
    line: usize,
    options: &'o Options,
}

impl<'s, 'o> Scanner<'s, 'o> {
    /// Starts at the front of `text`.
    pub fn new(text: Slice<'s>, options: &'o Options) -> Self {
        Scanner { text, line: 1, options }
    }

    /// What has not been read.
    pub fn rest(&self) -> Slice<'s> {
        self.text
    }

    /// Goes on from here, which is on the same line.
    pub fn resume(&mut self, text: Slice<'s>) {
        self.text = text;
    }

    /// The next directive.
    pub fn next_directive(&mut self) -> Option<Directive<'s>> {
        loop {
            let (at, length) = self.first_prefix()?;
            let skipped = self.text.take(at);
            self.line += skipped.bytes().iter().filter(|byte| **byte == b'\n').count();
            self.text = self.text.skip(at);
            let prefix = self.text.take(length);
            if !skipped.bytes().last().is_some_and(|byte| is_word(*byte))
                && let Some((suffix, mut rest)) = self.suffix(prefix)
            {
                // A file that ends with the colon has the suffix itself as the text to look for.
                if rest.is_empty() {
                    rest = self.text.skip(length);
                }
                return Some(Directive { prefix, suffix, rest, line: self.line });
            }
            let word = self.text.skip(length).bytes().iter().take_while(|byte| is_word(**byte)).count();
            self.text = self.text.skip(length + word);
        }
    }

    /// Offset and length of the prefix that stands first; of several at one place the longest.
    fn first_prefix(&self) -> Option<(usize, usize)> {
        let options = self.options;
        let bytes = self.text.bytes();
        let prefixes = || options.check_prefixes().chain(options.comment_prefixes());
        let mut first = [false; 256];
        prefixes().filter_map(|p| p.bytes().next()).for_each(|byte| first[usize::from(byte)] = true);
        let mut at = 0;
        loop {
            at += bytes.get(at..)?.iter().position(|byte| first[usize::from(*byte)])?;
            let here = bytes.get(at..)?;
            let fits = prefixes().filter(|prefix| here.starts_with(prefix.as_bytes()));
            if let Some(length) = fits.map(str::len).max() {
                return Some((at, length));
            }
            at += 1;
        }
    }

    /// What follows a prefix that stands at the front, and the text after it.
    fn suffix(&self, prefix: Slice<'s>) -> Option<(Suffix, Slice<'s>)> {
        let mut rest = self.text.skip(prefix.len());
        if rest.is_empty() {
            return None;
        }
        let name = prefix.bytes();
        if self.options.comment_prefixes().any(|comment| comment.as_bytes() == name) {
            return rest.eat(":").then_some((Suffix::Comment, rest));
        }
        let check = |kind| Suffix::Check { kind, count: None, literal: false };
        if rest.starts_with(":") || rest.starts_with("{") {
            return modifiers(check(Kind::Plain), rest);
        }
        let misspelled = match rest.pop() {
            Some(b'-') => false,
            Some(b'_') => true,
            _ => return None,
        };
        let (suffix, rest) = dashed(rest, check)?;
        Some((if misspelled { Suffix::Misspelled } else { suffix }, rest))
    }
}

/// What follows the dash.
fn dashed<'s>(mut rest: Slice<'s>, check: impl Fn(Kind) -> Suffix) -> Option<(Suffix, Slice<'s>)> {
    if rest.eat("COUNT-") {
        let sign = usize::from(rest.starts_with("-"));
        let digits = rest.skip(sign).bytes().iter().take_while(|byte| byte.is_ascii_digit()).count();
        let Ok(count) = rest.take(sign + digits).text().parse::<i64>() else {
            return Some((Suffix::BadCount, rest));
        };
        rest = rest.skip(sign + digits);
        let count = i32::try_from(count).ok().and_then(|count| usize::try_from(count).ok());
        if count.is_none_or(|count| count == 0) || !(rest.starts_with(":") || rest.starts_with("{")) {
            return Some((Suffix::BadCount, rest));
        }
        return modifiers(Suffix::Check { kind: Kind::Plain, count, literal: false }, rest);
    }
    for other in ["DAG", "NEXT", "SAME", "EMPTY"] {
        if rest.starts_with(&format!("{other}-NOT:")) || rest.starts_with(&format!("NOT-{other}:")) {
            return Some((Suffix::BadNot, rest));
        }
    }
    let kinds = [Kind::Next, Kind::Same, Kind::Not, Kind::Dag, Kind::Label, Kind::Empty];
    let kind = kinds.into_iter().find(|kind| rest.eat(kind.suffix().trim_start_matches('-')))?;
    modifiers(check(kind), rest)
}

/// `{LITERAL}` and the colon.
fn modifiers(mut suffix: Suffix, mut rest: Slice<'_>) -> Option<(Suffix, Slice<'_>)> {
    if rest.eat(":") {
        return Some((suffix, rest));
    }
    if !rest.eat("{") {
        return None;
    }
    loop {
        rest = trim(rest);
        if !rest.eat("LITERAL") {
            return None;
        }
        if let Suffix::Check { literal, .. } = &mut suffix {
            *literal = true;
        }
        rest = trim(rest);
        if !rest.eat(",") {
            break;
        }
    }
    rest.eat("}:").then_some((suffix, rest))
}

fn trim(text: Slice<'_>) -> Slice<'_> {
    text.skip(text.bytes().iter().take_while(|byte| matches!(byte, 9..=13 | b' ')).count())
}

/// Whether a byte can stand in a prefix.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_')
}
