//! What became of the fusion groups of a program: how many ran, how many kernels were compiled, which were refused and
//! why, how many calls ran op by op instead. A fallback gives the right answer slowly, so that nothing but these numbers
//! reports it. Knows no group and no backend.

use crate::diag::log::{Level, Log, LogSpec};
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};

/// The topic under which fusion logs what happens at run time.
pub(super) const TOPIC: &str = "fusion";
/// Reasons that are counted apart; messages may contain sizes.
const MAX_REASONS: usize = 64;
/// What further reasons are counted under.
const OTHER: &str = "other reasons";

/// How often something happened, by its reason; a bounded number of reasons is distinguished.
#[derive(Default)]
pub struct Reasons(Mutex<BTreeMap<String, u64>>);

impl Reasons {
    /// Counts once.
    pub fn count(&self, reason: &str) {
        let mut reasons = self.0.lock();
        let known = reasons.len() < MAX_REASONS || reasons.contains_key(reason);
        let reason = if known { reason } else { OTHER };
        match reasons.get_mut(reason) {
            Some(count) => *count += 1,
            None => drop(reasons.insert(reason.to_string(), 1)),
        }
    }

    /// The counts so far.
    pub fn all(&self) -> BTreeMap<String, u64> {
        self.0.lock().clone()
    }
}

/// Counts while a program runs; shared by all threads of it.
#[derive(Default)]
pub struct FusionCounters {
    groups: AtomicU64,
    kernels: AtomicU64,
    cached: AtomicU64,
    refused: AtomicU64,
    of_module: AtomicU64,
    again: AtomicU64,
    fused: AtomicU64,
    small: AtomicU64,
    reasons: Reasons,
    loops: LoopCounters,
    device: DeviceCounters,
    log: Log,
}

/// What became of ops outside of groups in a program whose tensors are on a device.
#[derive(Default)]
struct DeviceCounters {
    replayed: AtomicU64,
    not_recorded: Reasons,
    by_library: AtomicU64,
    left: Reasons,
    on_host: Reasons,
}

/// The counts of ops outside of groups at one moment, in a program whose tensors are on a device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceReport {
    /// Calls that ran as recorded work of the device.
    pub replayed: u64,
    /// Calls that ran step by step as their plan cannot be recorded, by reason.
    pub not_recorded: BTreeMap<String, u64>,
    /// Calls of ops by libraries of the device.
    pub by_library: u64,
    /// Calls that a library left to the row of the op, on the host, by op and reason.
    pub left: BTreeMap<String, u64>,
    /// Calls of ops on the host that had to bring tensors home first, by op.
    pub on_host: BTreeMap<String, u64>,
}

/// What became of loops over numbers that have kernels.
#[derive(Default)]
struct LoopCounters {
    compiled: AtomicU64,
    done: AtomicU64,
    left: Reasons,
    refused: Reasons,
}

/// The counts of loops over numbers at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoopReport {
    /// Loops that were compiled.
    pub compiled: u64,
    /// Times that a compiled loop did the iterations that were left of a loop.
    pub done: u64,
    /// Times that it could not, and the interpreter did them, by reason.
    pub left: BTreeMap<String, u64>,
    /// Loops that a backend refused, by reason.
    pub refused: BTreeMap<String, u64>,
}

/// The counts at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FusionReport {
    /// Fusion groups that were called at least once.
    pub groups: u64,
    /// Kernels that were compiled for them.
    pub kernels: u64,
    /// Kernels for them that came from the cache on disk.
    pub cached: u64,
    /// Kernels that were refused: a group for certain dtypes, or one of its kernels for certain layouts.
    pub refused: u64,
    /// Kernels that stand in the module and were made ready for a call.
    pub of_module: u64,
    /// Times that a group was lowered again, as its kernels in the module are for other inputs.
    pub again: u64,
    /// Calls of groups that ran fused.
    pub fused_calls: u64,
    /// Calls of groups of a single op, with too few elements for a kernel to pay; the op ran by itself.
    pub small_calls: u64,
    /// Calls that ran op by op for another reason, by reason.
    pub op_by_op: BTreeMap<String, u64>,
    /// Loops over numbers.
    pub loops: LoopReport,
    /// Ops outside of groups, where tensors are on a device.
    pub device: DeviceReport,
}

/// Adds counts by reason to others.
pub(crate) fn add_reasons(to: &mut BTreeMap<String, u64>, other: &BTreeMap<String, u64>) {
    for (reason, count) in other {
        *to.entry(reason.clone()).or_default() += count;
    }
}

impl FusionReport {
    /// Adds the counts of another program.
    pub fn add(&mut self, other: &FusionReport) {
        let FusionReport {
            groups, kernels, cached, refused, of_module, again, fused_calls, small_calls, ..
        } = other;
        self.groups += groups;
        self.kernels += kernels;
        self.cached += cached;
        self.refused += refused;
        self.of_module += of_module;
        self.again += again;
        self.fused_calls += fused_calls;
        self.small_calls += small_calls;
        add_reasons(&mut self.op_by_op, &other.op_by_op);
        let (loops, device) = (&other.loops, &other.device);
        self.loops.compiled += loops.compiled;
        self.loops.done += loops.done;
        add_reasons(&mut self.loops.left, &loops.left);
        add_reasons(&mut self.loops.refused, &loops.refused);
        self.device.replayed += device.replayed;
        self.device.by_library += device.by_library;
        add_reasons(&mut self.device.not_recorded, &device.not_recorded);
        add_reasons(&mut self.device.left, &device.left);
        add_reasons(&mut self.device.on_host, &device.on_host);
    }
}

impl FusionCounters {
    /// Counters that log what `spec` asks for.
    pub fn logging(spec: &LogSpec) -> FusionCounters {
        FusionCounters { log: Log::new(spec), ..FusionCounters::default() }
    }

    /// What is logged.
    pub fn log_spec(&self) -> &LogSpec {
        self.log.spec()
    }

    /// What happened so far.
    pub fn report(&self) -> FusionReport {
        let read = |n: &AtomicU64| n.load(Ordering::Relaxed);
        FusionReport {
            groups: read(&self.groups),
            kernels: read(&self.kernels),
            cached: read(&self.cached),
            refused: read(&self.refused),
            of_module: read(&self.of_module),
            again: read(&self.again),
            fused_calls: read(&self.fused),
            small_calls: read(&self.small),
            op_by_op: self.reasons.all(),
            loops: LoopReport {
                compiled: read(&self.loops.compiled),
                done: read(&self.loops.done),
                left: self.loops.left.all(),
                refused: self.loops.refused.all(),
            },
            device: DeviceReport {
                replayed: read(&self.device.replayed),
                not_recorded: self.device.not_recorded.all(),
                by_library: read(&self.device.by_library),
                left: self.device.left.all(),
                on_host: self.device.on_host.all(),
            },
        }
    }

    /// Keeps what passes logged that made plans.
    pub fn keep_log(&self, taken: &str) {
        self.log.append(taken);
    }

    /// Takes what was logged so far.
    pub fn take_log(&self) -> String {
        self.log.take()
    }

    /// A group is called for the first time.
    pub(super) fn group(&self) {
        self.groups.fetch_add(1, Ordering::Relaxed);
    }

    /// A kernel of a group was compiled, or came from the cache on disk.
    pub(super) fn compiled(&self, group: &str, cached: bool, what: impl FnOnce() -> String) {
        let (counter, verb) = if cached { (&self.cached, "loaded") } else { (&self.kernels, "compiled") };
        counter.fetch_add(1, Ordering::Relaxed);
        self.log.message(TOPIC, Level::Update, || format!("{verb} a kernel of {group} for {}", what()));
    }

    /// A group, or one of its kernels, cannot be compiled; the refusal is kept.
    pub(super) fn refused(&self, group: &str, reason: &str, what: impl FnOnce() -> String) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.log.message(TOPIC, Level::Update, || format!("refused {group} for {}: {reason}", what()));
    }

    /// Number of kernels of the module that run for a group; None where they are for other inputs.
    pub(super) fn of_module(&self, group: &str, kernels: Option<usize>) {
        match kernels {
            Some(n) => {
                self.of_module.fetch_add(n as u64, Ordering::Relaxed);
                self.log.message(TOPIC, Level::Update, || format!("{group} runs kernels of the module"));
            }
            None => {
                self.again.fetch_add(1, Ordering::Relaxed);
                let text = || format!("{group} is lowered again: the module's kernels are for other inputs");
                self.log.message(TOPIC, Level::Update, text);
            }
        }
    }

    /// A call ran fused.
    pub(super) fn fused(&self, group: &str) {
        self.fused.fetch_add(1, Ordering::Relaxed);
        self.log.message(TOPIC, Level::Debug, || format!("{group} ran fused"));
    }

    /// A call was too small for a kernel to pay.
    pub(super) fn small(&self, group: &str) {
        self.small.fetch_add(1, Ordering::Relaxed);
        self.log.message(TOPIC, Level::Debug, || format!("{group} has too few elements for a kernel"));
    }

    /// A loop over numbers was compiled, or refused with a reason.
    pub(super) fn loop_compiled(&self, name: &str, refused: Option<&str>) {
        match refused {
            None => drop(self.loops.compiled.fetch_add(1, Ordering::Relaxed)),
            Some(reason) => self.loops.refused.count(reason),
        }
        let text =
            || refused.map_or_else(|| format!("compiled {name}"), |why| format!("refused {name}: {why}"));
        self.log.message(TOPIC, Level::Update, text);
    }

    /// A compiled loop did what was left of a loop, or left it to the interpreter for a reason.
    pub(super) fn loop_ran(&self, name: &str, left: Option<&str>) {
        match left {
            None => drop(self.loops.done.fetch_add(1, Ordering::Relaxed)),
            Some(reason) => self.loops.left.count(reason),
        }
        let text = || {
            left.map_or_else(|| format!("{name} ran compiled"), |why| format!("{name} is interpreted: {why}"))
        };
        self.log.message(TOPIC, Level::Debug, text);
    }

    /// A call ran as recorded work of the device.
    pub fn replayed(&self) {
        self.device.replayed.fetch_add(1, Ordering::Relaxed);
    }

    /// A call ran step by step, as its plan cannot be recorded.
    pub fn not_recorded(&self, reason: &str) {
        self.device.not_recorded.count(reason);
        self.log.message(TOPIC, Level::Debug, || format!("a plan is not recorded: {reason}"));
    }

    /// A library of the device computed an op.
    pub fn by_library(&self) {
        self.device.by_library.fetch_add(1, Ordering::Relaxed);
    }

    /// A library left an op to its row.
    pub fn refused_by_library(&self, op: &str, reason: &str) {
        self.device.left.count(&format!("{op}: {reason}"));
        self.log.message(TOPIC, Level::Debug, || format!("{op} runs on the host: {reason}"));
    }

    /// An op of the host had to bring tensors home.
    pub fn on_host(&self, op: &str) {
        self.device.on_host.count(op);
        self.log.message(TOPIC, Level::Debug, || format!("{op} brought tensors back from the device"));
    }

    /// A call runs op by op.
    pub(super) fn op_by_op(&self, group: &str, reason: &str) {
        self.reasons.count(reason);
        self.log.message(TOPIC, Level::Debug, || format!("{group} runs op by op: {reason}"));
    }
}

impl FusionReport {
    /// Calls that ran op by op though a kernel would have paid.
    pub fn op_by_op_calls(&self) -> u64 {
        self.op_by_op.values().sum()
    }

    /// Lines for people; empty where no group was called and no loop was compiled.
    pub fn to_text(&self) -> String {
        let mut out = self.groups_text();
        out.push_str(&self.loops.to_text());
        out.push_str(&self.device.to_text());
        out
    }

    fn groups_text(&self) -> String {
        if self.groups == 0 {
            return String::new();
        }
        let mut out = format!(
            "fusion: {}, {} compiled, {} refused; {} fused, {} op by op, {} too small for a kernel\n",
            count(self.groups, "group"),
            count(self.kernels, "kernel"),
            self.refused,
            count(self.fused_calls, "call"),
            self.op_by_op_calls(),
            self.small_calls
        );
        if self.cached > 0 {
            let _ = writeln!(out, "  {} from the cache", count(self.cached, "kernel"));
        }
        if self.of_module > 0 {
            let _ = writeln!(out, "  {} of the module", count(self.of_module, "kernel"));
        }
        if self.again > 0 {
            let times = count(self.again, "time");
            let _ = writeln!(out, "  lowered again {times}: the module's kernels are for other inputs");
        }
        for (reason, calls) in &self.op_by_op {
            let _ = writeln!(out, "  {} op by op: {reason}", count(*calls, "call"));
        }
        out
    }
}

impl DeviceReport {
    fn to_text(&self) -> String {
        if *self == DeviceReport::default() {
            return String::new();
        }
        let on_host = self.on_host.values().sum();
        let mut out = format!(
            "device: {} by libraries, {} on the host brought tensors back; {} ran as recorded work\n",
            count(self.by_library, "call"),
            count(on_host, "call"),
            count(self.replayed, "call")
        );
        for (reason, calls) in &self.not_recorded {
            let _ = writeln!(out, "  {} not recorded: {reason}", count(*calls, "call"));
        }
        for (op, calls) in &self.on_host {
            let _ = writeln!(out, "  {} brought tensors back: {op}", count(*calls, "call"));
        }
        for (reason, calls) in &self.left {
            let _ = writeln!(out, "  {} left to the host: {reason}", count(*calls, "call"));
        }
        out
    }
}

impl LoopReport {
    fn to_text(&self) -> String {
        if *self == LoopReport::default() {
            return String::new();
        }
        let mut out = format!(
            "loops: {} compiled; {} compiled\n",
            count(self.compiled, "loop"),
            count(self.done, "run")
        );
        for (reason, runs) in &self.left {
            let _ = writeln!(out, "  {} interpreted: {reason}", count(*runs, "run"));
        }
        for (reason, loops) in &self.refused {
            let _ = writeln!(out, "  {} refused: {reason}", count(*loops, "loop"));
        }
        out
    }
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_counted_and_bounded() {
        let counters = FusionCounters::default();
        for n in 0..200 {
            counters.op_by_op("a group", &format!("reason {}", n % 100));
        }
        let report = counters.report();
        assert_eq!(report.op_by_op.len(), MAX_REASONS + 1);
        assert_eq!((report.op_by_op_calls(), report.op_by_op["reason 3"]), (200, 2));
        assert_eq!(report.to_text(), "", "no group was called");
    }

    #[test]
    fn the_log_says_what_was_refused() {
        let counters = FusionCounters::logging(&LogSpec::parse("fusion").expect("well formed"));
        counters.group();
        counters.refused("tanh+mul", "no such dtype", || "Half[2d]".to_string());
        counters.op_by_op("tanh+mul", "no such dtype");
        assert_eq!(counters.take_log(), "[UPDATE fusion] refused tanh+mul for Half[2d]: no such dtype\n");
        let text = counters.report().to_text();
        assert!(
            text.starts_with("fusion: 1 group, 0 kernels compiled, 1 refused; 0 calls fused, 1 op by op"),
            "{text}"
        );
        assert!(text.ends_with("  1 call op by op: no such dtype\n"), "{text}");
    }
}
