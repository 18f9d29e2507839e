//! The variables of a run, and the ways a number is written.
//!
//! String variables hold text, numeric ones a number and the form that it was first matched in.

use super::number::Number;
use super::source::Span;
use std::collections::{BTreeMap, BTreeSet};

/// How digits are read and written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Radix {
    /// `%u`
    Unsigned,
    /// `%d`
    Signed,
    /// `%x`
    LowerHex,
    /// `%X`
    UpperHex,
}

/// A radix with `%#.N`: least number of digits, and `0x` in front of hexadecimal ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// The radix.
    pub radix: Radix,
    /// Least number of digits; 0 means any.
    pub precision: usize,
    /// Whether `0x` stands in front.
    pub prefixed: bool,
}

impl Format {
    /// Plain `%u`.
    pub const UNSIGNED: Format = Format { radix: Radix::Unsigned, precision: 0, prefixed: false };

    /// The conversion as a user writes it.
    pub fn name(&self) -> &'static str {
        match self.radix {
            Radix::Unsigned => "%u",
            Radix::Signed => "%d",
            Radix::LowerHex => "%x",
            Radix::UpperHex => "%X",
        }
    }

    /// The expression that any number in this form matches.
    pub fn wildcard(&self) -> String {
        let (sign, first, digit) = match self.radix {
            Radix::Unsigned => ("", "[1-9]", "[0-9]"),
            Radix::Signed => ("-?", "[1-9]", "[0-9]"),
            Radix::LowerHex => ("", "[1-9a-f]", "[0-9a-f]"),
            Radix::UpperHex => ("", "[1-9A-F]", "[0-9A-F]"),
        };
        let prefix = if self.prefixed { "0x" } else { "" };
        match self.precision {
            0 => format!("{prefix}{sign}{digit}+"),
            count => format!("{prefix}{sign}({first}{digit}*)?{digit}{{{count}}}"),
        }
    }

    /// A number in this form; `None` for a negative one in a form without sign.
    pub fn write(&self, value: &Number) -> Option<String> {
        if value.is_negative() && self.radix != Radix::Signed {
            return None;
        }
        let digits = match self.radix {
            Radix::Unsigned | Radix::Signed => value.digits(10),
            Radix::LowerHex => value.digits(16),
            Radix::UpperHex => value.digits(16).to_ascii_uppercase(),
        };
        let sign = if value.is_negative() { "-" } else { "" };
        let prefix = if self.prefixed { "0x" } else { "" };
        // Not a width of a format, which has 16 bits.
        let zeros = self.precision.min(MAX_PRECISION).saturating_sub(digits.len());
        let mut text = format!("{sign}{prefix}");
        text.extend(std::iter::repeat_n('0', zeros));
        Some(text + &digits)
    }

    /// The number that matched text stands for; `None` if it is overlong.
    pub fn read(&self, text: &[u8]) -> Option<Number> {
        let (negative, text) = match text.strip_prefix(b"-") {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let text = if self.prefixed { text.strip_prefix(b"0x").unwrap_or(text) } else { text };
        let radix = if matches!(self.radix, Radix::Unsigned | Radix::Signed) { 10 } else { 16 };
        let value = Number::from_digits(text, radix)?;
        Some(if negative { value.negated() } else { value })
    }
}

/// More leading zeros than this are not written.
const MAX_PRECISION: usize = 1 << 20;

/// A numeric variable.
#[derive(Clone, Debug)]
pub struct Numeric {
    /// The form it was defined in.
    pub format: Format,
    /// The line of the directive that defines it; none for a definition on the command line.
    pub line: Option<usize>,
    /// Its value now, and the input text it was taken from.
    pub value: Option<(Number, Option<Span>)>,
}

/// All variables.
#[derive(Debug, Default)]
pub struct Variables {
    /// String variables with their values now, and the input text each was taken from.
    pub strings: BTreeMap<String, (Vec<u8>, Option<Span>)>,
    /// Names of string variables that were defined at any time.
    pub string_names: BTreeSet<String>,
    /// Numeric variables; a use holds an index.
    pub numerics: Vec<Numeric>,
    /// Names of numeric variables that may be used.
    pub numeric_names: BTreeMap<String, usize>,
    /// The variable `@LINE`, once it exists.
    pub line: Option<usize>,
}

impl Variables {
    /// Adds a numeric variable without a name.
    pub fn add_numeric(&mut self, format: Format, line: Option<usize>) -> usize {
        self.numerics.push(Numeric { format, line, value: None });
        self.numerics.len() - 1
    }

    /// Sets a numeric variable.
    pub fn set_numeric(&mut self, index: usize, value: Option<(Number, Option<Span>)>) {
        if let Some(numeric) = self.numerics.get_mut(index) {
            numeric.value = value;
        }
    }

    /// Forgets all variables whose name does not start with `$`.
    pub fn forget_locals(&mut self) {
        self.strings.retain(|name, _| name.starts_with('$'));
        for (name, index) in &self.numeric_names {
            if !name.starts_with('$')
                && let Some(numeric) = self.numerics.get_mut(*index)
            {
                numeric.value = None;
            }
        }
    }
}
