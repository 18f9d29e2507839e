//! The smallest input that shows the fault, and how a candidate takes its place. It knows nothing of how candidates are made.

use crate::diag::{Diagnostic, Result};
use crate::dialects::Strictness;
use crate::ir::{Graph, Module, NoLaws, PrintOptions, verify_module};
use crate::passes::Pipeline;
use crate::tools::io::Io;
use crate::tools::opt::reproducer;
use crate::tools::oracle::{Fault, Oracle};
use crate::tools::progress::Progress;
use std::path::Path;

/// The smallest input so far.
pub(super) struct Best<'a, 'io> {
    pub(super) oracle: &'a Oracle,
    pub(super) module: Module,
    pub(super) pipeline: Pipeline,
    pub(super) tests: usize,
    pub(super) max_tests: usize,
    pub(super) output: &'a Path,
    pub(super) what: &'a str,
    /// Names and texts of dialect files.
    pub(super) dialects: Vec<(String, String)>,
    pub(super) quiet: bool,
    pub(super) said: usize,
    pub(super) progress: Progress,
    pub(super) io: &'a mut Io<'io>,
}

impl Best<'_, '_> {
    /// Whether no more tests may be made.
    pub(super) fn is_over(&self) -> bool {
        self.tests >= self.max_tests
    }

    /// Whether calls keep their arguments, so that inputs may not change.
    pub(super) fn has_arguments(&self) -> bool {
        matches!(self.oracle.fault, Fault::Answer { .. })
    }

    /// Takes a candidate if it still shows the fault.
    pub(super) fn offer(&mut self, module: Module, pipeline: Pipeline) -> Result<bool> {
        if self.is_over() || !verify_module(&module, &NoLaws, &|_| None).is_empty() {
            return Ok(false);
        }
        self.tests += 1;
        self.progress.step();
        if !self.oracle.is_bad(&module, &pipeline, None)? {
            return Ok(false);
        }
        (self.module, self.pipeline) = (module, pipeline);
        self.keep()?;
        Ok(true)
    }

    pub(super) fn offer_module(&mut self, module: Module) -> Result<bool> {
        let pipeline = self.pipeline.clone();
        self.offer(module, pipeline)
    }

    /// The best so far as a reproducer.
    pub(super) fn text(&self) -> String {
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = self.module.write_text(&mut text, &PrintOptions::default());
        reproducer::write(&reproducer::Case {
            text: String::from_utf8_lossy(&text).into_owned(),
            pipeline: self.pipeline.to_text(),
            error: self.what.to_string(),
            carries: self.oracle.strictness == Strictness::Carry,
            strict: self.oracle.strictness == Strictness::Ops,
            dialects: self.dialects.clone(),
            ..reproducer::Case::default()
        })
    }

    /// Writes the best so far, whole or not at all, so that stopping loses nothing; reports progress.
    pub(super) fn keep(&mut self) -> Result<()> {
        if self.output != Path::new("-") {
            let path = self.io.path(self.output);
            let mut beside = path.clone().into_os_string();
            beside.push(".new");
            let failed = |e: std::io::Error| Diagnostic::input(format!("{}: {e}", self.output.display()));
            std::fs::write(&beside, self.text()).map_err(failed)?;
            std::fs::rename(&beside, &path).map_err(failed)?;
        }
        let ops = count_ops(&self.module);
        if !self.quiet && ops * 10 <= self.said.saturating_mul(9) {
            self.said = ops;
            let passes = self.pipeline.names().len();
            let said = format!("reduce: {ops} ops, {passes} passes after {} tests\n", self.tests);
            self.progress.hidden(|| self.io.message(&said));
        }
        Ok(())
    }
}

pub(super) fn count_ops(module: &Module) -> usize {
    module.functions.values().map(|f| ops_within(&f.graph)).sum()
}

/// The ops of a graph and of the graphs inside of its ops.
fn ops_within(graph: &Graph) -> usize {
    let ops = graph.all_ops();
    let attrs = ops.iter().flat_map(|op| graph.attrs(*op));
    // Graph text nests graphs only as deep as its parser does.
    let inner = attrs.filter_map(|(_, attr)| attr.as_graph()).map(|inner| ops_within(inner));
    ops.len() + inner.sum::<usize>()
}
