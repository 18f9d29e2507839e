//! Tokens of TorchScript text: what one token is, where it ends and what PyTorch calls it. Knows
//! nothing of lines, indentation or grammar.
//!
//! The scanner takes the longest match, and a word counts as a keyword only as a whole. `is not` and
//! `not in` are one token each, with exactly one blank inside.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A name.
    Ident,
    /// A literal number: decimal, hexadecimal, with fraction or exponent, with `j`.
    Number,
    /// One quoted string, quotes included.
    Str,
    /// The end of a logical line.
    Newline,
    /// A deeper level of indentation begins; also ends its line.
    Indent,
    /// A level of indentation ends.
    Dedent,
    /// The end of the text.
    Eof,
    /// The text cannot be read on from here; the layout holds the reason.
    Bad,
    /// A keyword or a sign, by the text that stands for it in marked text.
    Fixed(&'static str),
}

/// What stands in marked text for the kinds that have no fixed text, as the grammar reads it.
pub(super) mod mark {
    /// End of a logical line.
    pub(in super::super) const NEWLINE: &str = "↵";
    /// Begin of a deeper block.
    pub(in super::super) const INDENT: &str = "→";
    /// End of a block.
    pub(in super::super) const DEDENT: &str = "←";
    /// A number.
    pub(in super::super) const NUMBER: &str = "0";
    /// A string.
    pub(in super::super) const STR: &str = "\"";
    /// A name.
    pub(in super::super) const IDENT: &str = "$";
    /// Nothing in the grammar matches it.
    pub(in super::super) const BAD: &str = "`";
}

const KEYWORDS: [&str; 30] = [
    "def", "if", "else", "elif", "while", "for", "return", "is", "True", "False", "None", "and", "or", "not",
    "global", "in", "raise", "assert", "break", "continue", "del", "pass", "class", "import", "with", "as",
    "Ellipsis", "NoneType", "is_not", "not_in",
];

/// Signs, longest first, so that the first that fits is the longest.
const SIGNS: [&str; 46] = [
    "<=>", "<<=", ">>=", "**=", "...", "!=", "==", "<=", ">=", "//", "<<", ">>", "+=", "-=", "*=", "/=",
    "%=", "&=", "^=", "|=", "**", "->", "+", "-", "*", "/", "@", "(", ")", "[", "]", ":", ",", "=", "{", "}",
    ">", "<", ".", "?", "!", "&", "^", "|", "%", "~",
];

impl Kind {
    /// PyTorch's name of the kind, as its error messages show it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Ident => "ident",
            Kind::Number => "number",
            Kind::Str => "string_literal",
            Kind::Newline => "newline",
            Kind::Indent => "indent",
            Kind::Dedent => "dedent",
            Kind::Eof => "eof",
            Kind::Bad => "a valid token",
            Kind::Fixed("is_not") => "is not",
            Kind::Fixed("not_in") => "not in",
            Kind::Fixed("#type:") => "type comment",
            Kind::Fixed("<=>") => "equivalent",
            Kind::Fixed("!=") => "ne",
            Kind::Fixed("==") => "eq",
            Kind::Fixed("<=") => "le",
            Kind::Fixed(">=") => "ge",
            Kind::Fixed("//") => "floordiv",
            Kind::Fixed("**") => "pow operator",
            Kind::Fixed("->") => "arrow",
            Kind::Fixed("...") => "dots",
            Kind::Fixed(text) => text,
        }
    }
}

/// The token that begins at `at`, which must be neither blank nor a line break, and where it ends.
/// None where no token begins there.
pub(super) fn scan(text: &[u8], at: usize) -> Option<(Kind, usize)> {
    let rest = text.get(at..)?;
    let first = *rest.first()?;
    if let Some(length) = number_length(rest) {
        return Some((Kind::Number, at + length));
    }
    if first == b'"' || first == b'\'' {
        return string_length(rest).map(|length| (Kind::Str, at + length));
    }
    if is_type_comment(rest) {
        return Some((Kind::Fixed("#type:"), at + "# type:".len()));
    }
    if first.is_ascii_alphabetic() || first == b'_' {
        let (kind, length) = word(rest);
        return Some((kind, at + length));
    }
    let mut signs = SIGNS.iter().filter(|sign| sign.as_bytes().first() == Some(&first));
    let sign = signs.find(|sign| rest.starts_with(sign.as_bytes()))?;
    Some((Kind::Fixed(sign), at + sign.len()))
}

/// Whether `rest` begins with a comment that states types.
pub(super) fn is_type_comment(rest: &[u8]) -> bool {
    rest.starts_with(b"# type:")
}

fn is_word_byte(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_'
}

/// A name or keyword and its length in bytes.
fn word(rest: &[u8]) -> (Kind, usize) {
    let length = rest.iter().take_while(|b| is_word_byte(b)).count();
    let (word, tail) = rest.split_at(length);
    for (first, second, joined) in [("is", " not", "is_not"), ("not", " in", "not_in")] {
        let ends = !tail.get(second.len()).is_some_and(is_word_byte);
        if word == first.as_bytes() && tail.starts_with(second.as_bytes()) && ends {
            return (Kind::Fixed(joined), length + second.len());
        }
    }
    let keyword = KEYWORDS.iter().find(|k| k.as_bytes() == word && !k.contains('_'));
    (keyword.map_or(Kind::Ident, |k| Kind::Fixed(k)), length)
}

/// Length of the number that `rest` begins with: what C's `strtod` would take, and a `j` after it.
fn number_length(rest: &[u8]) -> Option<usize> {
    let length = hexadecimal_length(rest).or_else(|| decimal_length(rest))?;
    Some(length + usize::from(rest.get(length) == Some(&b'j')))
}

fn decimal_length(rest: &[u8]) -> Option<usize> {
    let (digits, mantissa) = mantissa_length(rest, u8::is_ascii_digit);
    (digits > 0).then(|| mantissa + exponent_length(rest.get(mantissa..).unwrap_or(&[]), b'e'))
}

fn hexadecimal_length(rest: &[u8]) -> Option<usize> {
    let body = rest.strip_prefix(b"0x").or_else(|| rest.strip_prefix(b"0X"))?;
    let (digits, mantissa) = mantissa_length(body, u8::is_ascii_hexdigit);
    (digits > 0).then(|| 2 + mantissa + exponent_length(body.get(mantissa..).unwrap_or(&[]), b'p'))
}

/// Digits with at most one point among them: how many digits, how many bytes.
fn mantissa_length(rest: &[u8], is_digit: fn(&u8) -> bool) -> (usize, usize) {
    let whole = rest.iter().take_while(|b| is_digit(b)).count();
    if rest.get(whole) != Some(&b'.') {
        return (whole, whole);
    }
    let fraction = rest.iter().skip(whole + 1).take_while(|b| is_digit(b)).count();
    (whole + fraction, whole + 1 + fraction)
}

/// Bytes of an exponent (`e+10`); 0 where there is none or it has no digits.
fn exponent_length(rest: &[u8], letter: u8) -> usize {
    if rest.first().is_none_or(|b| b.to_ascii_lowercase() != letter) {
        return 0;
    }
    let sign = usize::from(matches!(rest.get(1), Some(b'+' | b'-')));
    let digits = rest.iter().skip(1 + sign).take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 { 0 } else { 1 + sign + digits }
}

/// Length of the quoted string that `rest` begins with; None where it does not end.
fn string_length(rest: &[u8]) -> Option<usize> {
    let quote = *rest.first()?;
    let quotes = quote_count(rest);
    let mut at = quotes;
    while at < rest.len() {
        let here = rest.get(at..)?;
        if here.iter().take(quotes).filter(|b| **b == quote).count() == quotes {
            return Some(at + quotes);
        }
        match here.first() {
            Some(b'\n') if quotes == 1 => return None,
            Some(b'\\') => at += 2,
            _ => at += 1,
        }
    }
    None
}

/// How many quotes open the string that `text` begins with: 1 or 3.
pub(super) fn quote_count(text: &[u8]) -> usize {
    match text {
        [a, b, c, ..] if a == b && b == c => 3,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Option<(&'static str, &str)> {
        scan(text.as_bytes(), 0).map(|(kind, end)| (kind.name(), &text[..end]))
    }

    #[test]
    fn takes_the_longest_token() {
        for (text, name, token) in [
            ("<<=1", "<<=", "<<="),
            ("...", "dots", "..."),
            ("..", ".", "."),
            ("iffy", "ident", "iffy"),
            ("if(", "if", "if"),
            ("is not x", "is not", "is not"),
            ("is nothing", "is", "is"),
            ("is  not", "is", "is"),
            ("not int(x)", "not", "not"),
            ("not in x", "not in", "not in"),
            ("# type: int", "type comment", "# type:"),
            ("is_not", "ident", "is_not"),
        ] {
            assert_eq!(scanned(text), Some((name, token)), "{text}");
        }
    }

    #[test]
    fn numbers_are_what_strtod_takes() {
        for (text, token) in [
            ("1.e5x", "1.e5"),
            (".5", ".5"),
            ("1e", "1"),
            ("1e+", "1"),
            ("0x", "0"),
            ("0x1p3", "0x1p3"),
            ("0x.8", "0x.8"),
            ("1_000", "1"),
            ("0b1", "0"),
            ("2jj", "2j"),
            ("1..x", "1."),
        ] {
            assert_eq!(scanned(text), Some(("number", token)), "{text}");
        }
    }

    #[test]
    fn strings_must_end() {
        for (text, token) in [("'a\\'b' c", "'a\\'b'"), ("'''a\n'b'''", "'''a\n'b'''"), ("''x", "''")] {
            assert_eq!(scanned(text), Some(("string_literal", token)), "{text}");
        }
        for text in ["'abc\n'", "'''abc'", "\"", "'a\\", "$", ";", "é", "#", "\\"] {
            assert_eq!(scanned(text), None, "{text}");
        }
    }
}
