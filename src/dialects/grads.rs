//! Derivatives as text files: `aten::mm` at the begin of a line, its cell indented below. A file holds the cells of a
//! family of ops; functions that several cells call stand in it as `def`. Cells that a row carries itself
//! ([`super::OpDef::grad`]) have the same form. `items aten::add.t` begins one of an op on lists of tensors.

use crate::diag::{Diagnostic, Result, Source, Span};
use indexmap::IndexMap;
use std::sync::Arc;

/// Cells by the op's full name, and the functions that they call.
#[derive(Clone, Debug, Default)]
pub struct Grads {
    /// `aten::max.dim` → its cell.
    cells: IndexMap<String, Arc<str>>,
    /// The same of ops on lists: how gradients of a list's elements go, for what differentiates graphs.
    items: IndexMap<String, Arc<str>>,
    /// Functions by name.
    helpers: IndexMap<String, Arc<str>>,
}

impl Grads {
    /// Adds those of a file; a cell that is there already is replaced. Fails where a line belongs to no cell.
    pub fn add(&mut self, source: &Arc<Source>) -> Result<()> {
        let mut names: Vec<String> = Vec::new();
        let mut of_items = false;
        let mut helper: Option<String> = None;
        let mut body = String::new();
        let mut at = 0;
        for line in source.text().split_inclusive('\n') {
            let start = at;
            at += line.len();
            let text = line.trim_end();
            let begins = !text.is_empty() && !text.starts_with([' ', '#']);
            if begins {
                self.finish((&mut names, of_items), &mut helper, &mut body);
                if let Some(rest) = text.strip_prefix("def ") {
                    helper = Some(rest.split('(').next().unwrap_or_default().trim().to_string());
                    body.push_str(line);
                } else if text.contains("::") {
                    let list = text.strip_prefix("items ");
                    of_items = list.is_some();
                    names = list
                        .unwrap_or(text)
                        .split([' ', ','])
                        .filter(|n| !n.is_empty())
                        .map(str::to_string)
                        .collect();
                } else {
                    let span = Span::new(source, start, start + text.len());
                    let error = Diagnostic::syntax("expected the name of an op or a `def`").at(&span);
                    return Err(
                        error.hint("a cell is indented below its op: `aten::neg`, then `    self: -grad`")
                    );
                }
            } else if helper.is_some() {
                body.push_str(line);
            } else if !text.trim_start().starts_with('#') {
                body.push_str(text.strip_prefix("    ").unwrap_or(text));
                body.push('\n');
            }
        }
        self.finish((&mut names, of_items), &mut helper, &mut body);
        Ok(())
    }

    fn finish(
        &mut self,
        (names, of_items): (&mut Vec<String>, bool),
        helper: &mut Option<String>,
        body: &mut String,
    ) {
        let text: Arc<str> = std::mem::take(body).trim_end().into();
        let cells = if of_items { &mut self.items } else { &mut self.cells };
        for name in names.drain(..) {
            cells.insert(name, Arc::clone(&text));
        }
        if let Some(name) = helper.take() {
            self.helpers.insert(name, text);
        }
    }

    /// The cell of an op by its full name.
    pub fn cell(&self, name: &str) -> Option<&Arc<str>> {
        self.cells.get(name)
    }

    /// How gradients of a list's elements go through an op, by its full name.
    pub fn items(&self, name: &str) -> Option<&Arc<str>> {
        self.items.get(name)
    }

    /// The ops that say so.
    pub fn items_names(&self) -> impl Iterator<Item = &str> {
        self.items.keys().map(String::as_str)
    }

    /// All cells with the names of their ops.
    pub fn cells(&self) -> impl Iterator<Item = (&str, &str)> {
        self.cells.iter().map(|(name, text)| (name.as_str(), &**text))
    }

    /// The text with the functions before it that it calls, and those that they call.
    pub fn with_helpers(&self, text: &str) -> String {
        let mut wanted: Vec<bool> = self.helpers.keys().map(|_| false).collect();
        let mut work: Vec<&str> = vec![text];
        while let Some(text) = work.pop() {
            for word in words(text) {
                if let Some((at, _, helper)) = self.helpers.get_full(word)
                    && let Some(wanted) = wanted.get_mut(at)
                    && !std::mem::replace(wanted, true)
                {
                    work.push(helper);
                }
            }
        }
        let mut out = String::new();
        for (helper, _) in self.helpers.values().zip(wanted).filter(|(_, wanted)| *wanted) {
            out.push_str(helper);
            out.push_str("\n\n");
        }
        out + text
    }
}

/// The identifiers of a text that do not follow a point.
pub fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let begin = rest.find(is_word)?;
            let after_point = rest[..begin].ends_with('.');
            let tail = &rest[begin..];
            let end = tail.find(|c: char| !is_word(c)).unwrap_or(tail.len());
            let word = &tail[..end];
            rest = &tail[end..];
            if !after_point && !word.starts_with(|c: char| c.is_ascii_digit()) {
                return Some(word);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_and_helpers_are_distinguished() {
        let mut grads = Grads::default();
        let text = "# words\naten::a aten::b\n    self: twice(grad)\n\ndef twice(x):\n    return x * 2\n";
        grads.add(&Source::new("t.grad", text)).expect("reads");
        assert_eq!(grads.cell("aten::b").map(|t| &**t), Some("self: twice(grad)"));
        assert!(grads.with_helpers("twice(x)").starts_with("def twice"));
        assert!(grads.add(&Source::new("t.grad", "what\n")).is_err());
    }
}
