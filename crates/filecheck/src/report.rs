//! Reports what was found and what not: messages at once, and annotations for the dump of the input.

use super::Options;
use super::directive::Kind;
use super::pattern::{Miss, Pattern};
use super::search;
use super::source::{Complaint, Console, Level, Sources, Span};
use super::variables::Variables;

/// What a match result means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// A match that was wanted.
    Good,
    /// A match of a `NOT`.
    Excluded,
    /// A match on the wrong line.
    WrongLine,
    /// A match of a `DAG` that overlaps another.
    Discarded,
    /// No match of a `NOT`.
    Absent,
    /// No match, though one was wanted.
    Missing,
    /// A pattern that could not be completed.
    Invalid,
    /// A place that looks like what was wanted.
    Guess,
}

/// One match result.
#[derive(Clone, Debug)]
pub struct Annotation {
    /// The kind of check.
    pub kind: Kind,
    /// Whether the check counts its matches.
    pub counted: bool,
    /// Where the check stands.
    pub check: Span,
    /// What the result means.
    pub meaning: Meaning,
    /// Which part of the input it is about.
    pub input: Span,
    /// What else there is to say.
    pub note: String,
}

/// What was looked for.
#[derive(Clone, Copy, Debug)]
pub struct Outcome<'a> {
    /// Whether a match is wanted.
    pub expected: bool,
    /// The prefix of the check.
    pub prefix: &'a str,
    /// Where the check stands.
    pub place: Span,
    /// The number of the match, from 1.
    pub count: usize,
}

/// The reporter of one run.
pub struct Report<'a> {
    /// Where places lead to.
    pub sources: &'a Sources,
    /// The options of the run.
    pub options: &'a Options,
    /// Where messages go.
    pub console: &'a mut Console,
    /// The annotations, if the input may be dumped; successes then go here alone.
    pub annotations: Option<Vec<Annotation>>,
}

impl Report<'_> {
    /// Writes a message.
    pub fn message(&mut self, level: Level, place: Span, message: &str) {
        self.console.message(self.sources, level, place, message);
    }

    fn annotate(&mut self, pattern: &Pattern, check: Span, meaning: Meaning, input: Span, note: String) {
        if let Some(annotations) = &mut self.annotations {
            let counted = pattern.count > 1;
            annotations.push(Annotation { kind: pattern.kind, counted, check, meaning, input, note });
        }
    }

    /// A match at `place`; true if it is wanted.
    pub fn found(
        &mut self,
        pattern: &Pattern,
        outcome: Outcome<'_>,
        place: Span,
        variables: &Variables,
    ) -> bool {
        let good = outcome.expected;
        let options = self.options;
        if good && (!options.verbose() || (!options.very_verbose() && pattern.kind == Kind::EndOfInput)) {
            return true;
        }
        let meaning = if good { Meaning::Good } else { Meaning::Excluded };
        self.annotate(pattern, outcome.place, meaning, place, String::new());
        let values = pattern.values(variables);
        let captures = pattern.captures(variables);
        for value in &values {
            self.annotate(pattern, pattern.place, meaning, place.head(), value.clone());
        }
        for (name, span) in &captures {
            self.annotate(pattern, pattern.place, meaning, *span, format!("captured var \"{name}\""));
        }
        if good && self.annotations.is_some() {
            return true;
        }
        let (level, word) = if good { (Level::Remark, "expected") } else { (Level::Error, "excluded") };
        let message = self.summary(pattern, outcome, word, "found");
        self.message(level, outcome.place.head(), &message);
        self.message(Level::Note, place, "found here");
        for value in &values {
            self.message(Level::Note, place.head(), value);
        }
        for (name, span) in &captures {
            self.message(Level::Note, *span, &format!("captured var \"{name}\""));
        }
        good
    }

    /// No match in `searched`; true if none is wanted.
    pub fn missed(
        &mut self,
        pattern: &Pattern,
        outcome: Outcome<'_>,
        searched: Span,
        miss: &Miss,
        variables: &Variables,
    ) -> bool {
        let invalid: &[Complaint] = match miss {
            Miss::NotFound => &[],
            Miss::Invalid(complaints) => complaints,
        };
        for complaint in invalid {
            self.console.complain(self.sources, complaint);
        }
        let good = !outcome.expected && invalid.is_empty();
        if good && !self.options.very_verbose() {
            return true;
        }
        let meaning = match (invalid.is_empty(), outcome.expected) {
            (false, _) => Meaning::Invalid,
            (true, true) => Meaning::Missing,
            (true, false) => Meaning::Absent,
        };
        self.annotate(pattern, outcome.place, meaning, searched, String::new());
        for complaint in invalid {
            self.annotate(pattern, outcome.place, meaning, searched.head(), complaint.message.clone());
        }
        let values = pattern.values(variables);
        for value in &values {
            self.annotate(pattern, pattern.place, meaning, searched.head(), value.clone());
        }
        if good && self.annotations.is_some() {
            return true;
        }
        if invalid.is_empty() {
            let (level, word) =
                if outcome.expected { (Level::Error, "expected") } else { (Level::Remark, "excluded") };
            let message = self.summary(pattern, outcome, word, "not found");
            self.message(level, outcome.place.head(), &message);
            self.message(Level::Note, searched.head(), "scanning from here");
        }
        for value in &values {
            self.message(Level::Note, searched.head(), value);
        }
        if outcome.expected {
            self.guess(pattern, searched);
        }
        good
    }

    fn summary(&self, pattern: &Pattern, outcome: Outcome<'_>, expected: &str, found: &str) -> String {
        let name = pattern.description(outcome.prefix);
        let mut message = format!("{name}: {expected} string {found} in input");
        if pattern.count > 1 {
            message.push_str(&format!(" ({} out of {})", outcome.count, pattern.count));
        }
        message
    }

    /// A match on a line where the check must not match.
    pub fn wrong_line(&mut self, pattern: &Pattern, check: Span, place: Span) {
        if self.options.verbose() {
            self.remark_last(Meaning::WrongLine);
        } else {
            self.annotate(pattern, check, Meaning::WrongLine, place, String::new());
        }
    }

    /// The match just reported overlaps an earlier one of its group, which took `old`.
    pub fn discarded(&mut self, old: Span) {
        if self.annotations.is_some() {
            self.remark_last(Meaning::Discarded);
        } else {
            self.message(Level::Note, old, "match discarded, overlaps earlier DAG match here");
        }
    }

    /// Gives the last annotations of one check another meaning.
    fn remark_last(&mut self, meaning: Meaning) {
        let Some(annotations) = &mut self.annotations else { return };
        let Some(check) = annotations.last().map(|last| last.check.start) else { return };
        for annotation in annotations.iter_mut().rev().take_while(|a| a.check.start == check) {
            annotation.meaning = meaning;
        }
    }

    /// Points at the place in the next few thousand bytes that looks most like the pattern.
    fn guess(&mut self, pattern: &Pattern, searched: Span) {
        const REACH: usize = 4096;
        const MOST_WORK: usize = 4096 * 2048;
        let text = self.sources.text(searched);
        let example = pattern.example();
        let reach = text.len().min(REACH);
        if reach.saturating_mul(example.len()) > MOST_WORK {
            return;
        }
        let mut row = Vec::new();
        let mut lines = 0u32;
        let mut best: Option<(f64, usize)> = None;
        for (at, byte) in text.iter().take(reach).enumerate() {
            lines += u32::from(*byte == b'\n');
            if matches!(byte, b' ' | b'\t') {
                continue;
            }
            let rest = text.get(at..).unwrap_or_default();
            let window = rest.get(..example.len()).unwrap_or(rest);
            let line = window.split(|byte| *byte == b'\n').next().unwrap_or_default();
            let distance = search::distance(line, example, &mut row);
            let quality = distance as f64 + f64::from(lines) / 100.0;
            if best.is_none_or(|(known, _)| quality < known) {
                best = Some((quality, at));
            }
        }
        if let Some((quality, at)) = best
            && at != 0
            && quality < 50.0
        {
            let place = searched.part(at, at);
            self.annotate(pattern, pattern.place, Meaning::Guess, place, String::new());
            self.message(Level::Note, place, "possible intended match here");
        }
    }
}
