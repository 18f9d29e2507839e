//! What became of calls of a program that makes plans: how many plans were built, how many calls found one, and which
//! calls ran without one and why. Nothing else shows that a call ran slowly though it could have been planned.

use crate::backends::{Reasons, add_reasons};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts while a program runs; shared by all threads of it.
#[derive(Default)]
pub(super) struct PlanCounters {
    built: AtomicU64,
    nanoseconds: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    outdated: AtomicU64,
    evicted: AtomicU64,
    recording: AtomicU64,
    open: AtomicU64,
    kept_bytes: AtomicU64,
    from_disk: AtomicU64,
    unkept: Reasons,
    unplanned: Reasons,
}

/// The counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PlanReport {
    /// Plans that were built.
    pub built: u64,
    /// How long building took, all together.
    pub build_time: Duration,
    /// Calls that found their plan.
    pub hits: u64,
    /// Calls of a kind that had none yet.
    pub misses: u64,
    /// Plans that were given up, as an attribute that they had frozen was changed.
    pub outdated: u64,
    /// Plans that were given up for newer ones.
    pub evicted: u64,
    /// Plans whose calls record gradients as one operation.
    pub recording: u64,
    /// Bytes that one call of each of these keeps for its backward, besides arguments and parameters.
    pub kept_bytes: u64,
    /// Plans that leave sizes open, and take calls with others.
    pub open: u64,
    /// Plans whose graph was on disk.
    pub from_disk: u64,
    /// Plans that are not put on disk though there is a cache, by reason.
    pub unkept: BTreeMap<String, u64>,
    /// Layers and other constants that were prepared for plans.
    pub packed: u64,
    /// Those that a plan took over from another one.
    pub shared_packs: u64,
    /// Misses of the guard that is made to miss; see [`crate::runtime::Program::failing_guard`].
    pub forced_misses: u64,
    /// Calls that ran without a plan, by reason.
    pub unplanned: BTreeMap<String, u64>,
}

impl PlanReport {
    /// Adds the counts of another program.
    pub fn add(&mut self, other: &PlanReport) {
        self.built += other.built;
        self.build_time += other.build_time;
        self.hits += other.hits;
        self.misses += other.misses;
        self.outdated += other.outdated;
        self.evicted += other.evicted;
        self.recording += other.recording;
        self.open += other.open;
        self.from_disk += other.from_disk;
        add_reasons(&mut self.unkept, &other.unkept);
        self.kept_bytes += other.kept_bytes;
        self.packed += other.packed;
        self.shared_packs += other.shared_packs;
        self.forced_misses += other.forced_misses;
        add_reasons(&mut self.unplanned, &other.unplanned);
    }
}

impl PlanCounters {
    pub(super) fn report(&self) -> PlanReport {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        PlanReport {
            built: read(&self.built),
            build_time: Duration::from_nanos(read(&self.nanoseconds)),
            hits: read(&self.hits),
            misses: read(&self.misses),
            outdated: read(&self.outdated),
            evicted: read(&self.evicted),
            recording: read(&self.recording),
            open: read(&self.open),
            kept_bytes: read(&self.kept_bytes),
            from_disk: read(&self.from_disk),
            unkept: self.unkept.all(),
            packed: 0,
            shared_packs: 0,
            forced_misses: 0,
            unplanned: self.unplanned.all(),
        }
    }

    pub(super) fn built(&self, time: Duration) {
        self.built.fetch_add(1, Ordering::Relaxed);
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
    }

    pub(super) fn hit(&self) {
        self.hits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn miss(&self) {
        self.misses.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn outdated(&self) {
        self.outdated.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn evicted(&self) {
        self.evicted.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a plan whose graph was on disk.
    pub(super) fn from_disk(&self) {
        self.from_disk.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a plan that is not put on disk.
    pub(super) fn unkept(&self, reason: &str) {
        self.unkept.count(reason);
    }

    /// Counts a plan that leaves sizes open.
    pub(super) fn open(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a plan whose calls record gradients, with the bytes that they save.
    pub(super) fn recording(&self, kept: u64) {
        self.recording.fetch_add(1, Ordering::Relaxed);
        self.kept_bytes.fetch_add(kept, Ordering::Relaxed);
    }

    pub(super) fn unplanned(&self, reason: &str) {
        self.unplanned.count(reason);
    }
}

impl PlanReport {
    /// Calls that ran without a plan.
    pub fn unplanned_calls(&self) -> u64 {
        self.unplanned.values().sum()
    }

    /// Lines for people; empty where no call was examined.
    pub fn to_text(&self) -> String {
        let unplanned = self.unplanned_calls();
        let mut out = String::new();
        if self.forced_misses > 0 {
            let times =
                if self.forced_misses == 1 { "once".into() } else { format!("{} times", self.forced_misses) };
            let _ = writeln!(out, "guards: one was made to miss {times}");
        }
        if self.hits + self.misses + unplanned == 0 {
            return out;
        }
        let _ = writeln!(
            out,
            "plans: {} built in {:.1} ms, {} outdated, {} evicted; {} hit, {} missed, {unplanned} without a plan",
            self.built,
            self.build_time.as_secs_f64() * 1e3,
            self.outdated,
            self.evicted,
            calls(self.hits),
            self.misses,
        );
        if self.from_disk > 0 {
            let _ = writeln!(out, "  {} of these from the cache", self.from_disk);
        }
        for (reason, n) in &self.unkept {
            let _ = writeln!(out, "  {n} of these not put into the cache: {reason}");
        }
        if self.open > 0 {
            let _ = writeln!(out, "  {} of these leave sizes open", self.open);
        }
        if self.recording > 0 {
            let kept = self.kept_bytes as f64 / 1e6;
            let _ =
                writeln!(out, "  {} of these record gradients and keep {kept:.3} MB a call", self.recording);
        }
        for (reason, n) in &self.unplanned {
            let _ = writeln!(out, "  {} without a plan: {reason}", calls(*n));
        }
        out
    }
}

fn calls(n: u64) -> String {
    format!("{n} call{}", if n == 1 { "" } else { "s" })
}
