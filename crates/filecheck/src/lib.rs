//! FileCheck: does a text contain what a check file says, in that order?
//!
//! LLVM's language, options, exit status and messages, as of LLVM 22, on our own code. [`main`] is the
//! command, [`check`] the same in one process. Must not know IR or TorchScript.
//!
//! The way of a run: `cli` parses the options, `directive` finds prefixes, `pattern` and `numeric` read what stands
//! after them, `checkfile` makes the list of checks, `check` runs it, `report` prints messages, `dump` draws the input.

#![forbid(unsafe_code)]

mod check;
mod checkfile;
mod cli;
mod directive;
mod dump;
mod help;
mod number;
mod numeric;
mod pattern;
mod regex;
mod report;
mod run;
mod search;
mod slice;
mod source;
mod variables;

/// The programs of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

pub use cli::{main, main_in};
pub use run::{Problem, check, problems};

/// When the annotated input is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpInput {
    /// Explain the dump and do nothing else.
    Help,
    /// In any case.
    Always,
    /// When a check failed.
    Fail,
    /// Not at all.
    Never,
}

/// Which input lines the dump is about; others are shown as context only.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DumpFilter {
    /// All.
    All,
    /// Those that an annotation covers.
    AnnotationFull,
    /// Those on which an annotation starts.
    Annotation,
    /// Those on which an annotation of an error starts.
    Error,
}

/// The options of a run, named as on the command line.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// `--check-prefix`; empty means `CHECK`.
    pub check_prefixes: Vec<String>,
    /// `--comment-prefixes`; empty means `COM` and `RUN`.
    pub comment_prefixes: Vec<String>,
    /// `--implicit-check-not`
    pub implicit_check_not: Vec<String>,
    /// `--filter-label`: only sections whose label has one of these words.
    pub filter_label: Vec<String>,
    /// `-D`, each `NAME=text` or `#NAME=expression`.
    pub defines: Vec<String>,
    /// `--strict-whitespace`
    pub strict_whitespace: bool,
    /// `--match-full-lines`
    pub match_full_lines: bool,
    /// `--ignore-case`
    pub ignore_case: bool,
    /// `--enable-var-scope`
    pub enable_var_scope: bool,
    /// `--allow-empty`
    pub allow_empty: bool,
    /// `--allow-unused-prefixes`
    pub allow_unused_prefixes: bool,
    /// `--allow-deprecated-dag-overlap`
    pub allow_deprecated_dag_overlap: bool,
    /// How often `-v` was meant: 0, 1, or 2 for `-vv`.
    pub verbosity: u8,
    /// `--color`
    pub color: bool,
    /// `--dump-input`; the first in order of the type's values counts.
    pub dump_input: Vec<DumpInput>,
    /// `--dump-input-filter`; the first in order of the type's values counts.
    pub dump_input_filter: Vec<DumpFilter>,
    /// `--dump-input-context`; the largest counts.
    pub dump_input_context: Vec<usize>,
}

impl Options {
    fn check_prefixes(&self) -> impl Iterator<Item = &str> {
        let default = self.check_prefixes.is_empty().then_some("CHECK");
        default.into_iter().chain(self.check_prefixes.iter().map(String::as_str))
    }

    fn comment_prefixes(&self) -> impl Iterator<Item = &str> {
        let defaults = if self.comment_prefixes.is_empty() { &["COM", "RUN"][..] } else { &[] };
        defaults.iter().copied().chain(self.comment_prefixes.iter().map(String::as_str))
    }

    fn verbose(&self) -> bool {
        self.verbosity > 0
    }

    fn very_verbose(&self) -> bool {
        self.verbosity > 1
    }

    fn dump_input(&self) -> DumpInput {
        self.dump_input.iter().copied().min().unwrap_or(DumpInput::Fail)
    }

    fn dump_filter(&self) -> DumpFilter {
        let default =
            if self.dump_input() == DumpInput::Always { DumpFilter::All } else { DumpFilter::Error };
        self.dump_input_filter.iter().copied().min().unwrap_or(default)
    }

    fn dump_context(&self) -> usize {
        self.dump_input_context.iter().copied().max().unwrap_or(5)
    }
}
