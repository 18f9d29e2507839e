//! Prints the module around passes: before, after, after a change, after a failure, whole or as a difference.

use super::{At, Observer, Report};
use crate::diag::Diagnostic;
use crate::ir::{Module, PrintOptions, Symbol};
use similar::TextDiff;
use std::io::Write;

/// When to print.
#[derive(Clone, Debug, Default)]
pub struct PrintIr {
    /// Before these passes; `*` means all.
    pub before: Vec<String>,
    /// After these passes; `*` means all.
    pub after: Vec<String>,
    /// After passes that changed something. The text decides, not what the pass says.
    pub after_change: bool,
    /// After a pass that failed.
    pub after_failure: bool,
    /// After changes, what changed instead of the whole.
    pub diff: bool,
    /// Leave out source locations.
    pub bare: bool,
    /// The text before the pass that runs.
    pub last: String,
}

impl PrintIr {
    /// Whether there is nothing to print.
    pub fn is_idle(&self) -> bool {
        self.before.is_empty()
            && self.after.is_empty()
            && !self.after_change
            && !self.after_failure
            && !self.diff
    }

    /// Names of passes that are asked for, for checks of spelling.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.before.iter().chain(&self.after).map(String::as_str).filter(|name| *name != "*")
    }

    fn text(&self, module: &Module) -> String {
        let options = if self.bare { PrintOptions::bare() } else { PrintOptions::default() };
        let mut text = Vec::new();
        // Writing to memory does not fail.
        let _ = module.write_text(&mut text, &options);
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn wants(names: &[String], pass: &str) -> bool {
    names.iter().any(|name| name == "*" || name.replace('_', "-") == pass)
}

fn print(out: &mut dyn Write, title: &str, text: &str) {
    // A closed pipe is not a failure of the work.
    let _ = write!(out, "# ----- {title} -----\n{text}");
}

impl Observer for PrintIr {
    fn before(&mut self, at: &At<'_>, module: &Module, out: &mut dyn Write) {
        if wants(&self.before, at.pass.name) {
            let text = self.text(module);
            print(out, &format!("IR before {}", at.pass.name), &text);
        }
        if self.diff || self.after_change {
            self.last = self.text(module);
        }
    }

    fn after(&mut self, at: &At<'_>, module: &Module, report: &Report, out: &mut dyn Write) {
        let name = at.pass.name;
        let changed = if self.diff || self.after_change {
            let text = self.text(module);
            let changed = text != self.last;
            if changed && self.diff {
                print(out, &format!("IR changes by {name}"), &difference(&self.last, &text));
            } else if changed {
                print(out, &format!("IR after {name}{}", functions(&report.functions)), &text);
            }
            changed && !self.diff
        } else {
            false
        };
        if wants(&self.after, name) && !changed {
            let text = self.text(module);
            print(out, &format!("IR after {name}"), &text);
        }
    }

    fn failed(&mut self, at: &At<'_>, module: &Module, _: &[Diagnostic], out: &mut dyn Write) {
        if self.after_failure {
            let text = self.text(module);
            print(out, &format!("IR after failed pass {}", at.pass.name), &text);
        }
    }
}

fn functions(names: &[Symbol]) -> String {
    let named: Vec<&str> = names.iter().map(|n| n.as_str()).filter(|n| !n.is_empty()).collect();
    if named.is_empty() { String::new() } else { format!(" (changed: {})", named.join(", ")) }
}

/// What changed from one text to the other, three lines around each change.
pub fn difference(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(3).to_string()
}
