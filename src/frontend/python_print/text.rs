//! Text in the making that remembers where each part of it comes from.

use crate::diag::Span;

/// A piece of Python with the places in the original source that its parts come from.
#[derive(Clone, Debug, Default)]
pub struct Text {
    text: String,
    /// From this byte on, up to the next tag, the text comes from this place.
    tags: Vec<(usize, Option<Span>)>,
}

impl Text {
    /// A piece that comes from one place.
    pub(super) fn from(text: impl Into<String>, place: Option<&Span>) -> Text {
        let mut out = Text::default();
        out.push(&text.into(), place);
        out
    }

    /// Appends text that comes from a place; without one it comes from where the text before it does.
    pub(super) fn push(&mut self, text: &str, place: Option<&Span>) {
        if let Some(place) = place {
            self.tag(self.text.len(), Some(place));
        }
        self.text.push_str(text);
    }

    /// Appends a piece with its places.
    pub(super) fn push_text(&mut self, other: &Text) {
        let offset = self.text.len();
        for (start, place) in &other.tags {
            self.tag(offset + start, place.as_ref());
        }
        self.text.push_str(&other.text);
    }

    /// What follows comes from nowhere known until a place is given.
    pub(super) fn forget_place(&mut self) {
        self.tag(self.text.len(), None);
    }

    fn tag(&mut self, at: usize, place: Option<&Span>) {
        while self.tags.last().is_some_and(|(start, _)| *start >= at) {
            self.tags.pop();
        }
        if self.tags.last().is_none_or(|(_, last)| last.as_ref() != place) {
            self.tags.push((at, place.cloned()));
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The places: from which byte on, and the place in the original source where it is known.
    pub fn tags(&self) -> &[(usize, Option<Span>)] {
        &self.tags
    }

    pub(super) fn len(&self) -> usize {
        self.text.len()
    }
}
