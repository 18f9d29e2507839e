//! Logging of passes and analyses by name, with PyTorch's three levels: `dump` shows whole graphs, `update` each
//! change, `debug` what the inside of a pass thinks.
//!
//! A specification is text, as in PyTorch's `PYTORCH_JIT_LOG_LEVEL`: `dce:>alias` logs dumps and updates of `dce` and
//! everything of `alias`. Names may carry a file's suffix (`dce.rs`), `_` and `-` are the same, and `*` means all. A
//! [`Log`] is a value that is handed on, not a global; what it collects comes out in the order of the work, whatever
//! the number of threads.

use super::Diagnostic;
use parking_lot::Mutex;
use std::fmt::Write;

/// Verbosity levels, ascending.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Whole graphs.
    Dump,
    /// Each change of a graph.
    Update,
    /// The inside of a pass or analysis.
    Debug,
}

impl Level {
    fn word(self) -> &'static str {
        match self {
            Level::Dump => "DUMP",
            Level::Update => "UPDATE",
            Level::Debug => "DEBUG",
        }
    }
}

/// Which topics are logged how far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSpec {
    topics: Vec<(String, Level)>,
}

impl LogSpec {
    /// Reads `dce:>alias`; an empty text logs nothing.
    pub fn parse(text: &str) -> Result<LogSpec, Diagnostic> {
        let mut topics = Vec::new();
        for part in text.split(':').map(str::trim).filter(|part| !part.is_empty()) {
            let name = part.trim_start_matches('>');
            let level = if name.len() < part.len() { Level::Debug } else { Level::Update };
            let name = canonical(name);
            if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || "-*".contains(c)) {
                let error = Diagnostic::usage(format!("unknown log topic '{part}'"));
                return Err(error.hint("topics are names of passes and analyses, as in 'dce:>alias'"));
            }
            topics.push((name, level));
        }
        Ok(LogSpec { topics })
    }

    /// How far a topic is logged; None where it is not.
    pub fn level(&self, topic: &str) -> Option<Level> {
        let topic = canonical(topic);
        self.topics.iter().filter(|(name, _)| *name == topic || name == "*").map(|(_, level)| *level).max()
    }

    /// Whether nothing at all is logged.
    pub fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    /// The names, for checks of spelling.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.topics.iter().map(|(name, _)| name.as_str())
    }
}

/// `Dead_Code.rs` → `dead-code`.
fn canonical(name: &str) -> String {
    let name = name.trim_end_matches(".rs").trim_end_matches(".cpp");
    name.replace('_', "-").to_ascii_lowercase()
}

/// Collects the messages of one piece of work.
#[derive(Debug, Default)]
pub struct Log {
    spec: LogSpec,
    text: Mutex<String>,
}

impl Log {
    /// A log of what a specification asks for.
    pub fn new(spec: &LogSpec) -> Log {
        Log { spec: spec.clone(), text: Mutex::default() }
    }

    /// What is asked for.
    pub fn spec(&self) -> &LogSpec {
        &self.spec
    }

    /// Whether a message of this topic and level would be kept.
    pub fn is_on(&self, topic: &str, level: Level) -> bool {
        !self.spec.is_empty() && self.spec.level(topic).is_some_and(|l| l >= level)
    }

    /// Keeps a message; it is made only if it is asked for. Every line gets level and topic in front.
    pub fn message(&self, topic: &str, level: Level, text: impl FnOnce() -> String) {
        if !self.is_on(topic, level) {
            return;
        }
        let message = text();
        let mut out = self.text.lock();
        for line in message.lines() {
            let _ = writeln!(out, "[{} {}] {line}", level.word(), canonical(topic));
        }
    }

    /// Keeps what other logs took for the same specification.
    pub fn append(&self, taken: &str) {
        self.text.lock().push_str(taken);
    }

    /// Takes what was collected.
    pub fn take(&self) -> String {
        std::mem::take(&mut self.text.lock())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn topics_have_levels() {
        let spec = LogSpec::parse("dce.rs:>alias_analysis:>>>cse").expect("well formed");
        assert_eq!(spec.level("dce"), Some(Level::Update));
        assert_eq!(spec.level("alias-analysis"), Some(Level::Debug));
        assert_eq!(spec.level("cse"), Some(Level::Debug));
        assert_eq!(spec.level("inline"), None);
        assert!(LogSpec::parse("a b").is_err());
    }

    #[test]
    fn only_what_is_asked_for_is_made() {
        let log = Log::new(&LogSpec::parse("dce").expect("well formed"));
        log.message("dce", Level::Update, || "gone\nfor good".to_string());
        log.message("dce", Level::Debug, || unreachable!("not asked for"));
        assert_eq!(log.take(), "[UPDATE dce] gone\n[UPDATE dce] for good\n");
        assert_eq!(log.take(), "");
    }
}
