//! Counts what passes did: `--pass-statistics`.

use super::{At, Observer, Report};
use crate::ir::Module;
use indexmap::IndexMap;
use std::fmt::Write as _;
use std::io::Write;

/// Sums over all runs of each pass, in the order of first runs.
#[derive(Debug, Default)]
pub struct Statistics {
    passes: IndexMap<&'static str, Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    runs: u64,
    changed: u64,
    steps: u64,
    ops: i64,
    named: IndexMap<&'static str, u64>,
    before: usize,
}

fn ops(module: &Module) -> usize {
    module.functions.values().map(|f| f.graph.op_count()).sum()
}

impl Statistics {
    /// The table.
    pub fn to_text(&self) -> String {
        let mut out = String::from("pass statistics:\n");
        for (name, counts) in &self.passes {
            let _ = writeln!(out, "  {name}");
            let ops = format!("{:+}", counts.ops);
            let fixed = [("runs", counts.runs), ("runs that changed something", counts.changed)];
            for (what, n) in fixed.into_iter().chain((counts.steps > 0).then_some(("steps", counts.steps))) {
                let _ = writeln!(out, "    {n:>8} {what}");
            }
            let _ = writeln!(out, "    {ops:>8} ops");
            for (what, n) in &counts.named {
                let _ = writeln!(out, "    {n:>8} {what}");
            }
        }
        out
    }
}

impl Observer for Statistics {
    fn before(&mut self, at: &At<'_>, module: &Module, _: &mut dyn Write) {
        self.passes.entry(at.pass.name).or_default().before = ops(module);
    }

    fn after(&mut self, at: &At<'_>, module: &Module, report: &Report, _: &mut dyn Write) {
        let counts = self.passes.entry(at.pass.name).or_default();
        counts.runs += 1;
        counts.changed += u64::from(report.changed);
        counts.steps += report.steps;
        counts.ops += ops(module) as i64 - counts.before as i64;
        for (what, n) in &report.statistics {
            *counts.named.entry(what).or_default() += n;
        }
    }
}
