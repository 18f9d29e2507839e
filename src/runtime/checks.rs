//! Guards: what plans and code ask before they go on, how often each held and missed, and the one that a tool makes miss although it
//! holds. It knows no plan and no op by name.

use crate::diag::Span;
use crate::dialects::GraphId;
use crate::dialects::prim::profiling;
use crate::ir::Symbol;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// The guard that misses although it holds. Guards of a plan are numbered from 0, those inside its graph after its own; those of a
/// function that runs without a plan from 0 too.
#[derive(Debug)]
pub(super) struct Forced {
    number: usize,
    misses: AtomicU64,
}

impl Forced {
    /// Makes the guard of this number miss.
    pub(super) fn new(number: usize) -> Arc<Forced> {
        Arc::new(Forced { number, misses: AtomicU64::new(0) })
    }

    /// Which guard it is.
    pub(super) fn number(&self) -> usize {
        self.number
    }

    /// How often that guard was made to miss.
    pub(super) fn misses(&self) -> u64 {
        self.misses.load(Ordering::Relaxed)
    }

    /// Counts a miss of it.
    pub(super) fn missed(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }
}

/// The guard that is to miss, as code sees it whose first guard has the number `first`.
#[derive(Clone, Copy)]
pub(super) struct ForcedFrom<'a> {
    pub(super) forced: &'a Arc<Forced>,
    pub(super) first: usize,
}

impl<'a> ForcedFrom<'a> {
    /// The same for code whose guards begin `further` after these.
    pub(super) fn behind(self, further: usize) -> ForcedFrom<'a> {
        ForcedFrom { first: self.first + further, ..self }
    }

    /// Whether the code's n-th guard is the one.
    pub(super) fn guard(self, n: usize) -> Option<Arc<Forced>> {
        (self.first + n == self.forced.number).then(|| Arc::clone(self.forced))
    }
}

/// What a guard asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardKind {
    /// Whether arguments are of the kind that the plan was made for.
    Arguments,
    /// Whether a tensor that was frozen lies where it lay and was not written to.
    Tensor,
    /// Whether attributes that were frozen have the same values.
    Attributes,
    /// Whether tensors have the types of a `prim::TypeCheck`.
    Types,
    /// Whether tensors require grad as a `prim::RequiresGradCheck` says.
    RequiresGrad,
    /// Whether a tensor has the type that a `prim::BailOut` leans on.
    BailOut,
}

impl GuardKind {
    /// What an op asks, if it gives what it is given and an answer.
    pub(super) fn asked_by(op: Symbol) -> Option<GuardKind> {
        match op.as_str() {
            profiling::TYPE_CHECK => Some(GuardKind::Types),
            profiling::REQUIRES_GRAD_CHECK => Some(GuardKind::RequiresGrad),
            _ => None,
        }
    }

    /// As reports show it.
    pub fn name(self) -> &'static str {
        match self {
            GuardKind::Arguments => "arguments",
            GuardKind::Tensor => "tensor",
            GuardKind::Attributes => "attributes",
            GuardKind::Types => "types",
            GuardKind::RequiresGrad => "requires_grad",
            GuardKind::BailOut => "bailout",
        }
    }
}

/// A guard at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuardState {
    /// The function whose plan or code it belongs to.
    pub function: Symbol,
    /// The plan's graph; None of a function that runs without a plan.
    pub plan: Option<GraphId>,
    /// Its number there.
    pub number: usize,
    /// What it asks.
    pub kind: GuardKind,
    /// Of what, for people.
    pub of: String,
    /// What it expects.
    pub expects: String,
    /// The line of source that it stems from, where known: `f.py:3: return self.weight * x`.
    pub source: Option<String>,
    /// How often it held.
    pub held: u64,
    /// How often it failed: of arguments, calls of another kind.
    pub missed: u64,
    /// What it found when it missed by itself: of plans the last time, of guards inside of code the first time.
    pub miss: Option<Miss>,
    /// Whether it is made to miss.
    pub forced: bool,
}

/// What a guard found that missed: of several things those that differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Miss {
    /// What it expected.
    pub expected: String,
    /// What there was.
    pub seen: String,
}

impl Miss {
    /// Of what differs, each as expected and as seen; None where nothing does.
    pub(super) fn of(differences: impl IntoIterator<Item = (String, String)>) -> Option<Miss> {
        let (expected, seen): (Vec<String>, Vec<String>) = differences.into_iter().unzip();
        (!seen.is_empty()).then(|| Miss { expected: expected.join(", "), seen: seen.join(", ") })
    }
}

/// What a guard asks, and how often it held and missed so far.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) kind: GuardKind,
    pub(super) of: String,
    pub(super) expects: String,
    pub(super) source: Option<Span>,
    pub(super) held: u64,
    pub(super) missed: u64,
    pub(super) miss: Option<Miss>,
}

impl Asked {
    /// As reports have it: of a function or its plan, with its number there. `shown` gives the text of a place.
    pub(super) fn state(
        self,
        (function, plan): (Symbol, Option<GraphId>),
        number: usize,
        forced: bool,
        shown: &dyn Fn(&Span) -> String,
    ) -> GuardState {
        let Asked { kind, of, expects, source, held, missed, miss } = self;
        let source = source.as_ref().map(shown).filter(|text| !text.is_empty());
        GuardState { function, plan, number, kind, of, expects, source, held, missed, miss, forced }
    }
}

/// A guard of code.
pub(super) struct Check {
    kind: GuardKind,
    of: String,
    expects: String,
    source: Option<Span>,
    held: AtomicU64,
    missed: AtomicU64,
    /// What it was given when it first missed by itself.
    seen: OnceLock<String>,
    /// Whether it is never asked: it misses.
    fails: bool,
    forced: Option<Arc<Forced>>,
}

impl Check {
    /// One that was not checked yet; `fails` makes it always fail.
    pub(super) fn new(
        kind: GuardKind,
        (of, expects): (String, String),
        source: Option<Span>,
        fails: bool,
        forced: Option<Arc<Forced>>,
    ) -> Arc<Check> {
        let (held, missed, seen) = (AtomicU64::new(0), AtomicU64::new(0), OnceLock::new());
        Arc::new(Check { kind, of, expects, source, held, missed, seen, fails, forced })
    }

    /// What the code does: goes on as if the guard held or missed, which is counted. `seen` says what it was given.
    pub(super) fn answer(&self, holds: impl FnOnce() -> bool, seen: impl FnOnce() -> String) -> bool {
        if let Some(forced) = &self.forced {
            forced.missed();
        }
        let asked = !self.fails && self.forced.is_none();
        let answer = asked && holds();
        if asked && !answer {
            // The first alone: in a loop each would cost more than the guard.
            self.seen.get_or_init(seen);
        }
        let counter = if answer { &self.held } else { &self.missed };
        counter.fetch_add(1, Ordering::Relaxed);
        answer
    }

    /// What it asks, and how often it held and missed.
    pub(super) fn asked(&self) -> Asked {
        let miss = self.seen.get().map(|seen| Miss { expected: self.expects.clone(), seen: seen.clone() });
        Asked {
            kind: self.kind,
            of: self.of.clone(),
            expects: self.expects.clone(),
            source: self.source.clone(),
            held: self.held.load(Ordering::Relaxed),
            missed: self.missed.load(Ordering::Relaxed),
            miss,
        }
    }

    /// Whether it is made to miss.
    pub(super) fn is_forced(&self) -> bool {
        self.fails || self.forced.is_some()
    }
}
