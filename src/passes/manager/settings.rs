//! How a pipeline is run: what is checked and logged, how much passes may change, where to stop. Runs nothing.

use crate::diag::log::LogSpec;
use crate::diag::{Diagnostic, Result};
use crate::dialects::Strictness;
use crate::ir::Symbol;
use crate::passes::Extras;
use indexmap::IndexMap;
use parking_lot::Mutex;
use std::sync::Arc;

/// How a pipeline is run.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Threads for the functions of a module; 0 means one for each core.
    pub threads: usize,
    /// What is logged.
    pub log: LogSpec,
    /// How many changes passes may make.
    pub limits: Limits,
    /// Checks the module after each pass, and how strictly.
    pub verify: Option<Strictness>,
    /// Where to stop before the end.
    pub stop: Option<StopAt>,
    /// Remember the last counted change of each pass.
    pub record_steps: bool,
    /// What passes may ask for by type.
    pub extras: Extras,
    /// The functions that will be called. Passes leave functions alone that a call of these does not come to; none means that
    /// all functions may be called. Limits of changes count over all functions.
    pub roots: Vec<Symbol>,
}

/// A point in the run of a pipeline: everything before pass number `index`, and a number of steps of that pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StopAt {
    /// How many passes run in full, repetitions counted.
    pub index: usize,
    /// How many changes the next pass may make. 0 leaves it out.
    pub steps: u64,
}

/// How many changes passes may make, by name of the pass; over all functions together. Copies share what is left, so that a program's
/// passes and those that make its plans later count as one; passes that run at the same time may each make what was left before.
#[derive(Clone, Debug, Default)]
pub struct Limits {
    left: Arc<Mutex<IndexMap<String, u64>>>,
}

impl Limits {
    /// Reads `simplify=17:dce=3`; an empty text limits nothing.
    pub fn parse(text: &str) -> Result<Limits> {
        let mut limits = IndexMap::new();
        for part in text.split([':', ',']).map(str::trim).filter(|part| !part.is_empty()) {
            let limit =
                part.split_once('=').and_then(|(name, n)| Some((name.trim(), n.trim().parse().ok()?)));
            let Some((name, n)) = limit else {
                let error = Diagnostic::usage(format!("'{part}' is not a limit of a pass"));
                return Err(error.hint("write a pass and a number as in 'simplify=17'"));
            };
            limits.insert(name.replace('_', "-"), n);
        }
        Ok(Limits { left: Arc::new(Mutex::new(limits)) })
    }

    /// The names of limited passes.
    pub fn names(&self) -> Vec<String> {
        self.left.lock().keys().cloned().collect()
    }

    /// How many changes a pass may still make; None where it is not limited.
    pub(super) fn left(&self, pass: &str) -> Option<u64> {
        self.left.lock().get(pass).copied()
    }

    /// Counts changes that a pass made.
    pub(super) fn spend(&self, pass: &str, steps: u64) {
        if let Some(left) = self.left.lock().get_mut(pass) {
            *left = left.saturating_sub(steps);
        }
    }
}
