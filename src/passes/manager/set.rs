//! Which passes and named pipelines there are.

use crate::passes::OptionKind;
use crate::passes::pass::Pass;
use std::fmt::Write;

/// Passes and named pipelines, in order of registration. A value, not a global: embedders of Flambeau add their own.
#[derive(Clone, Debug, Default)]
pub struct PassSet {
    passes: Vec<Pass>,
    named: Vec<(String, String)>,
}

impl PassSet {
    /// These passes and named pipelines.
    pub(in crate::passes) fn of(passes: Vec<Pass>, named: Vec<(String, String)>) -> PassSet {
        PassSet { passes, named }
    }

    /// Adds a pass; one of the same name is replaced.
    pub fn add(&mut self, pass: Pass) {
        self.passes.retain(|p| p.name != pass.name);
        self.passes.push(pass);
    }

    /// Adds a named pipeline; one of the same name is replaced.
    pub fn add_pipeline(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let name = name.into();
        self.named.retain(|(n, _)| *n != name);
        self.named.push((name, text.into()));
    }

    /// A pass by name.
    pub fn pass(&self, name: &str) -> Option<&Pass> {
        self.passes.iter().find(|p| p.name == name)
    }

    /// The text of a named pipeline.
    pub fn named(&self, name: &str) -> Option<&str> {
        self.named.iter().find(|(n, _)| n == name).map(|(_, text)| text.as_str())
    }

    /// All passes.
    pub fn passes(&self) -> &[Pass] {
        &self.passes
    }

    /// All names that a pipeline may use.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        let passes = self.passes.iter().map(|p| p.name);
        passes.chain(self.named.iter().map(|(n, _)| n.as_str()))
    }

    /// The page that lists passes, their options, nests and named pipelines.
    pub fn help(&self) -> String {
        let mut out = String::from("passes:\n");
        for pass in &self.passes {
            let scope = if pass.run.is_of_module() { " (whole module)" } else { "" };
            let _ = writeln!(out, "  {:<20} {}{scope}", pass.name, pass.summary);
            for option in pass.options {
                let (takes, default) = match option.kind {
                    OptionKind::Int(default, _) => ("N".to_string(), default.to_string()),
                    OptionKind::Bool(default) => ("BOOL".to_string(), default.to_string()),
                    OptionKind::Text(default) => ("TEXT".to_string(), format!("\"{default}\"")),
                    OptionKind::Choice(words) => (words.join("|"), words.first().unwrap_or(&"").to_string()),
                };
                let name = format!("{}={takes}", option.name);
                let _ = writeln!(out, "      {name:<16} {} [default: {default}]", option.summary);
            }
        }
        out.push_str("nests:\n");
        for (nest, summary) in [
            ("repeat{max=N}(...)", "Runs the passes again until nothing changes, at most N times"),
            ("function{name=GLOB}(...)", "Runs the passes over the functions of that name only"),
            ("subgraphs(...)", "Runs the passes over the graphs inside of ops, such as fusion groups"),
        ] {
            let _ = writeln!(out, "  {nest:<25} {summary}");
        }
        out.push_str("named pipelines:\n");
        for (name, expansion) in &self.named {
            let _ = writeln!(out, "  {name:<20} {expansion}");
        }
        out
    }
}
