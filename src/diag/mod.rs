//! Sources, spans and diagnostics: the one error type of the project.
//!
//! Everything that can fail returns [`Result`]. A [`Diagnostic`] says what went wrong, where, and
//! what to do about it; it is rendered for people ([`render::human`]), in PyTorch's own form
//! ([`torch::render`]) or as JSON by the tools. This layer knows nothing of tensors, IR or TorchScript.

pub mod files;
pub mod json;
pub mod log;
pub mod panics;
pub mod render;
mod source;
pub mod torch;

pub use source::{Source, Span};

use std::fmt;

/// What kind of failure a diagnostic reports; tools choose exit status and wording by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// Text that does not follow its grammar.
    Syntax,
    /// A program that is well formed but ill typed, or names something that does not exist.
    Compile,
    /// A named feature or operator that Flambeau does not have.
    Unsupported,
    /// A program raised while running; the diagnostic's `class` is the Python exception class.
    Raised,
    /// A file that is missing, damaged, hostile or no model.
    Input,
    /// A law of the IR that does not hold.
    Verify,
    /// A device that is not there, or that failed.
    Device,
    /// A limit of a run (memory, time, steps) that was reached, or its cancellation.
    Limit,
    /// Invalid command line options.
    Usage,
    /// A bug in Flambeau itself.
    Internal,
    /// A panic that was caught; the message has its text, the first note its place.
    Panic,
}

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The work could not be done.
    Error,
    /// The work was done, but look here.
    Warning,
}

/// A second place that a diagnostic points to, with its own short text.
#[derive(Clone, Debug)]
pub struct Label {
    /// The place.
    pub span: Span,
    /// What is there.
    pub text: String,
}

/// One step of a call chain: "compiled since it was called from", or a frame of a traceback.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The function that contains the place.
    pub function: String,
    /// The place of the call.
    pub span: Option<Span>,
}

/// The parts of a [`Diagnostic`].
#[derive(Clone, Debug)]
pub struct Report {
    /// What kind of failure.
    pub kind: ErrorKind,
    /// How bad.
    pub severity: Severity,
    /// One sentence without a final dot; for `Raised` the exception's message.
    pub message: String,
    /// Python exception class, with its module where known (`builtins.ValueError`).
    pub class: Option<String>,
    /// The place that the message is about.
    pub span: Option<Span>,
    /// Other places that matter.
    pub labels: Vec<Label>,
    /// Facts that help to understand.
    pub notes: Vec<String>,
    /// What to do about it.
    pub hints: Vec<String>,
    /// The call chain, innermost first.
    pub frames: Vec<Frame>,
    /// Of a run that reached a limit: the limit's name, as hosts call it (`memory`, `steps`), or `cancel`.
    pub limit: Option<&'static str>,
}

/// A failure with its place, reason and hint. Boxed, so that `Result` stays small.
#[derive(Clone, Debug)]
pub struct Diagnostic(Box<Report>);

/// The result type of everything that can fail.
pub type Result<T, E = Diagnostic> = std::result::Result<T, E>;

impl Diagnostic {
    /// An error of a kind, with a message.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Diagnostic(Box::new(Report {
            kind,
            severity: Severity::Error,
            message: message.into(),
            class: None,
            span: None,
            labels: Vec::new(),
            notes: Vec::new(),
            hints: Vec::new(),
            frames: Vec::new(),
            limit: None,
        }))
    }

    /// Text that breaks its grammar.
    pub fn syntax(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Syntax, message)
    }

    /// A program that does not compile.
    pub fn compile(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Compile, message)
    }

    /// Something that Flambeau does not have; the message names it.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Unsupported, message)
    }

    /// A command or an option that is used wrongly.
    pub fn usage(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Usage, message)
    }

    /// A file that cannot be taken.
    pub fn input(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Input, message)
    }

    /// A broken law of the IR.
    pub fn verify(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Verify, message)
    }

    /// A device (a GPU) that is not there, or that failed at its work.
    pub fn device(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Device, message)
    }

    /// A bug in Flambeau.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
            .hint("this is a bug in Flambeau; please report it with the input that caused it")
    }

    /// An exception of the running program, by its Python class (`RuntimeError`, `builtins.ValueError`).
    pub fn raised(class: impl Into<String>, message: impl Into<String>) -> Self {
        let mut d = Self::new(ErrorKind::Raised, message);
        d.0.class = Some(class.into());
        d
    }

    /// A `RuntimeError` of the running program, which is what operators raise on bad arguments.
    pub fn runtime(message: impl Into<String>) -> Self {
        Self::raised("RuntimeError", message)
    }

    /// Sets the place, unless one is set already (the innermost knows best).
    pub fn at(mut self, span: &Span) -> Self {
        if self.0.span.is_none() {
            self.0.span = Some(span.clone());
        }
        self
    }

    /// Sets the place where one is known.
    pub fn at_opt(self, span: Option<&Span>) -> Self {
        match span {
            Some(span) => self.at(span),
            None => self,
        }
    }

    /// Adds a second place.
    pub fn label(mut self, span: &Span, text: impl Into<String>) -> Self {
        self.0.labels.push(Label { span: span.clone(), text: text.into() });
        self
    }

    /// Adds a fact.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.0.notes.push(text.into());
        self
    }

    /// Adds advice.
    pub fn hint(mut self, text: impl Into<String>) -> Self {
        self.0.hints.push(text.into());
        self
    }

    /// Adds the next outer step of the call chain.
    pub fn frame(mut self, function: impl Into<String>, span: Option<Span>) -> Self {
        self.0.frames.push(Frame { function: function.into(), span });
        self
    }

    /// Names the limit that was reached.
    pub fn limit(mut self, name: &'static str) -> Self {
        self.0.limit = Some(name);
        self
    }

    /// Turns the error into a warning.
    pub fn warning(mut self) -> Self {
        self.0.severity = Severity::Warning;
        self
    }

    /// All parts.
    pub fn report(&self) -> &Report {
        &self.0
    }

    /// All parts, to change.
    pub fn report_mut(&mut self) -> &mut Report {
        &mut self.0
    }

    /// What kind of failure.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The message alone.
    pub fn message(&self) -> &str {
        &self.0.message
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(class) = &self.0.class {
            write!(f, "{class}: ")?;
        }
        write!(f, "{}", self.0.message)?;
        if let Some(span) = &self.0.span {
            let (line, column) = span.line_column();
            write!(f, " ({}:{}:{})", span.source().name(), line, column + 1)?;
        }
        for hint in &self.0.hints {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostic {}

/// The name nearest to `word` among `names` by edit distance, if it is near enough to suggest.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let limit = (word.chars().count() / 3).max(1);
    names
        .into_iter()
        .map(|name| (edit_distance(word, name), name))
        .filter(|(distance, _)| *distance <= limit)
        .min()
        .map(|(_, name)| name)
}

/// Edit distance in characters: each insertion, deletion, substitution, and exchange of two neighbours counts one.
pub fn edit_distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut next = vec![i + 1];
        for j in 0..b.len() {
            let substitute = row[j] + usize::from(a[i] != b[j]);
            let mut least = substitute.min(row[j + 1] + 1).min(next[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                least = least.min(before[j - 1] + 1);
            }
            next.push(least);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest_name_is_suggested_only_when_near() {
        assert_eq!(nearest("sigmoyd", ["sigmoid", "tanh"]), Some("sigmoid"));
        assert_eq!(nearest("loda", ["load", "log"]), Some("load"));
        assert_eq!(nearest("quux", ["sigmoid", "tanh"]), None);
    }

    #[test]
    fn edit_distance_counts_each_change() {
        assert_eq!(edit_distance("kitten", "sitting"), 3);
        assert_eq!(edit_distance("", "abc"), 3);
    }
}
