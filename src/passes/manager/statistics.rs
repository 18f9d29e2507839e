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
            let mut rows = vec![("runs", counts.runs.to_string()), ("changed", counts.changed.to_string())];
            rows.extend((counts.steps > 0).then(|| ("steps", counts.steps.to_string())));
            rows.push(("op count", format!("{:+}", counts.ops)));
            rows.extend(counts.named.iter().map(|(what, n)| (*what, n.to_string())));
            for (what, n) in rows {
                let _ = writeln!(out, "    {what:<28} {n:>8}");
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
