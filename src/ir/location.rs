//! Where an op comes from: a place in a source, the scope it was traced in, and the calls it was inlined through.

use super::Symbol;
use crate::diag::Span;

/// A location of a graph; the default means "unknown".
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LocationId(pub(super) u32);

impl LocationId {
    /// Not known.
    pub const UNKNOWN: LocationId = LocationId(u32::MAX);

    /// Whether nothing is known.
    pub fn is_unknown(self) -> bool {
        self == Self::UNKNOWN
    }
}

/// What is known of an op's origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Location {
    /// The place as text shows it.
    pub place: Place,
    /// The module scope of a traced op (`__module.linear`).
    pub scope: Option<Symbol>,
    /// The function the place lies in and the location of the call that was inlined, innermost first.
    pub inlined_from: Option<(Symbol, LocationId)>,
}

/// A place in a source.
#[derive(Clone, Debug, PartialEq)]
pub enum Place {
    /// No place, only a scope or call.
    Unknown,
    /// A range of a source at hand.
    Span(Span),
    /// File, line (from 1) and column (from 0) read from text.
    File {
        /// The file's name.
        file: Symbol,
        /// Line, from 1.
        line: u32,
        /// Column, from 0.
        column: u32,
    },
}

impl From<Span> for Location {
    fn from(span: Span) -> Location {
        Location { place: Place::Span(span), scope: None, inlined_from: None }
    }
}

impl Location {
    /// A place read from text.
    pub fn file(file: Symbol, line: u32, column: u32) -> Location {
        Location { place: Place::File { file, line, column }, scope: None, inlined_from: None }
    }

    /// The range of a source at hand.
    pub fn span(&self) -> Option<&Span> {
        match &self.place {
            Place::Span(span) => Some(span),
            _ => None,
        }
    }

    /// File, line and column, however they are known.
    pub fn file_line_column(&self) -> Option<(String, usize, usize)> {
        match &self.place {
            Place::Unknown => None,
            Place::Span(span) => {
                let (line, column) = span.line_column();
                Some((span.source().name().to_string(), line, column))
            }
            Place::File { file, line, column } => {
                Some((file.as_str().to_string(), *line as usize, *column as usize))
            }
        }
    }
}
