//! What a pattern is parsed to, and why it cannot be. It knows nothing of how patterns are written.

use super::sets::ByteSet;

/// Why a pattern is not a regular expression; the text is what POSIX `regerror` says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegexError(pub &'static str);

/// A place condition; it consumes nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// `^`: at the start of the text or after a line feed.
    LineStart,
    /// `$`: at the end of the text or before a line feed.
    LineEnd,
    /// `[[:<:]]`: before the first letter of a word.
    WordStart,
    /// `[[:>:]]`: after the last letter of a word.
    WordEnd,
}

/// One step of a pattern.
#[derive(Clone, Debug)]
pub enum Piece {
    /// One byte of a set.
    Set(Box<ByteSet>),
    /// This byte.
    Byte(u8),
    /// A place condition.
    At(Place),
    /// Start of the group with this number.
    Open(usize),
    /// End of the group with this number.
    Close(usize),
    /// One of several sequences, the first that fits.
    Either(Vec<Vec<Piece>>),
    /// The sequence or nothing.
    Maybe(Vec<Piece>),
    /// The sequence once or more.
    Many(Vec<Piece>),
    /// The text that a group took, with a copy of the group's own pattern.
    Again(usize, Vec<Piece>),
}

/// A parsed pattern.
#[derive(Debug)]
pub struct Syntax {
    /// The pieces in order.
    pub pieces: Vec<Piece>,
    /// Number of groups.
    pub groups: usize,
    /// Whether a back reference occurs.
    pub backrefs: bool,
}
