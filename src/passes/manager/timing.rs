//! Where the time goes: `--timing` as a tree, or as a trace for `chrome://tracing` and Perfetto.

use super::{At, Observer, Report};
use crate::ir::Module;
use serde_json::json;
use std::fmt::Write as _;
use std::io::Write;
use std::time::{Duration, Instant};

/// A clock with a tree of named stretches.
#[derive(Debug)]
pub struct Timing {
    start: Instant,
    stretches: Vec<Stretch>,
    open: Vec<usize>,
}

#[derive(Debug)]
struct Stretch {
    name: String,
    depth: usize,
    from: Duration,
    time: Duration,
    /// On which row of the trace it is drawn.
    thread: usize,
}

impl Default for Timing {
    fn default() -> Self {
        Timing { start: Instant::now(), stretches: Vec::new(), open: Vec::new() }
    }
}

impl Timing {
    /// Begins a stretch inside of the innermost that is open.
    pub fn begin(&mut self, name: impl Into<String>) {
        let (from, depth) = (self.start.elapsed(), self.open.len());
        self.open.push(self.stretches.len());
        self.stretches.push(Stretch { name: name.into(), depth, from, time: Duration::ZERO, thread: 0 });
    }

    /// Ends the innermost stretch.
    pub fn end(&mut self) {
        if let Some(stretch) = self.open.pop().and_then(|at| self.stretches.get_mut(at)) {
            stretch.time = self.start.elapsed().saturating_sub(stretch.from);
        }
    }

    fn add(&mut self, name: impl Into<String>, from: Duration, time: Duration, depth: usize, thread: usize) {
        self.stretches.push(Stretch { name: name.into(), depth, from, time, thread });
    }

    /// The tree: seconds, share of the whole, name. Repetitions of a name below one parent are summed up.
    pub fn to_tree(&self) -> String {
        let total = self.start.elapsed();
        let mut out = format!("time: {:.4} s\n  {:>9}  {:>6}\n", total.as_secs_f64(), "seconds", "share");
        for line in self.summed() {
            let seconds = line.time.as_secs_f64();
            let share = 100.0 * seconds / total.as_secs_f64().max(1e-12);
            let times = if line.count > 1 { format!(" ({} times)", line.count) } else { String::new() };
            let _ = writeln!(
                out,
                "  {seconds:>9.4}  {share:>5.1}%  {}{}{times}",
                "  ".repeat(line.depth),
                line.name
            );
        }
        out
    }

    fn summed(&self) -> Vec<Line> {
        let mut lines: Vec<Line> = Vec::new();
        // The line of each open depth.
        let mut path: Vec<usize> = Vec::new();
        for stretch in &self.stretches {
            path.truncate(stretch.depth);
            let parent = path.last().copied();
            let met = lines.iter().position(|l| l.parent == parent && l.name == stretch.name);
            let at = met.unwrap_or_else(|| {
                // After the last line below the same parent.
                let line = Line {
                    name: stretch.name.clone(),
                    depth: stretch.depth,
                    parent,
                    time: Duration::ZERO,
                    count: 0,
                };
                lines.push(line);
                lines.len() - 1
            });
            lines[at].time += stretch.time;
            lines[at].count += 1;
            path.push(at);
        }
        in_order(lines)
    }

    /// The trace as JSON; times are in microseconds.
    pub fn to_chrome(&self) -> String {
        let event = |s: &Stretch| {
            json!({
                "name": s.name, "ph": "X", "pid": 1, "tid": s.thread,
                "ts": s.from.as_secs_f64() * 1e6, "dur": s.time.as_secs_f64() * 1e6,
            })
        };
        let events: Vec<_> = self.stretches.iter().map(event).collect();
        json!({ "traceEvents": events, "displayTimeUnit": "ms" }).to_string()
    }
}

struct Line {
    name: String,
    depth: usize,
    parent: Option<usize>,
    time: Duration,
    count: usize,
}

/// Each line before those below it, in the order in which they were first met.
fn in_order(lines: Vec<Line>) -> Vec<Line> {
    let mut order = Vec::with_capacity(lines.len());
    let mut work: Vec<usize> = (0..lines.len()).rev().filter(|i| lines[*i].parent.is_none()).collect();
    while let Some(at) = work.pop() {
        order.push(at);
        work.extend((0..lines.len()).rev().filter(|i| lines[*i].parent == Some(at)));
    }
    let mut lines: Vec<Option<Line>> = lines.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| lines[at].take()).collect()
}

impl Observer for Timing {
    fn before(&mut self, at: &At<'_>, _: &Module, _: &mut dyn Write) {
        self.begin(at.pass.name);
    }

    fn after(&mut self, _: &At<'_>, _: &Module, report: &Report, _: &mut dyn Write) {
        let from = self.open.last().and_then(|at| self.stretches.get(*at)).map_or(Duration::ZERO, |s| s.from);
        self.end();
        let depth = self.open.len() + 1;
        if report.function_times.len() > 1 {
            for (n, (name, time)) in report.function_times.iter().enumerate() {
                self.add(name.as_str(), from, *time, depth, n + 1);
            }
        }
        if !report.verify_time.is_zero() {
            let end = self.start.elapsed();
            self.add("(verify)", end.saturating_sub(report.verify_time), report.verify_time, depth - 1, 0);
        }
    }

    fn failed(&mut self, _: &At<'_>, _: &Module, _: &[crate::diag::Diagnostic], _: &mut dyn Write) {
        self.end();
    }

    fn enter(&mut self, nest: &str) {
        self.begin(nest);
    }

    fn leave(&mut self) {
        self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repetitions_are_summed_below_their_parent() {
        let mut timing = Timing::default();
        timing.begin("passes");
        for _ in 0..2 {
            timing.begin("dce");
            timing.end();
        }
        timing.end();
        timing.begin("print");
        timing.end();
        let tree = timing.to_tree();
        let names: Vec<&str> = tree.lines().skip(2).map(|l| l[21..].trim_end()).collect();
        assert_eq!(names, ["passes", "  dce (2 times)", "print"], "{tree}");
        let trace: serde_json::Value = serde_json::from_str(&timing.to_chrome()).expect("JSON");
        assert_eq!(trace["traceEvents"].as_array().map(Vec::len), Some(4));
    }
}
