//! The built-in rule files, cut into rules without being parsed: which ops a rule names can be seen in its text, so that a
//! process parses the few rules that can match in its graphs. The files are data of the program and begin each rule,
//! each group and each end of one on a line of its own; a test holds what is cut here against the parsed files.

use super::parse::parse_one;
use super::syntax::{Arrow, Rule};
use super::wanted::Wanted;
use crate::diag::{Result, Source};
use crate::ir::Symbol;
use std::ops::Range;
use std::sync::{Arc, LazyLock, OnceLock};

/// The built-in rule files, by theme.
pub const BUILTIN: &[(&str, &str)] = &[
    ("peephole.rules", include_str!("../rules/peephole.rules")),
    ("numbers.rules", include_str!("../rules/numbers.rules")),
    ("arith.rules", include_str!("../rules/arith.rules")),
    ("functions.rules", include_str!("../rules/functions.rules")),
    ("compare.rules", include_str!("../rules/compare.rules")),
    ("views.rules", include_str!("../rules/views.rules")),
    ("joins.rules", include_str!("../rules/joins.rules")),
    ("contraction.rules", include_str!("../rules/contraction.rules")),
    ("folding.rules", include_str!("../rules/folding.rules")),
    ("convert.rules", include_str!("../rules/convert.rules")),
    ("reductions.rules", include_str!("../rules/reductions.rules")),
    ("passes.rules", include_str!("../rules/passes.rules")),
];

static SHELF: LazyLock<Vec<Entry>> = LazyLock::new(|| {
    let mut entries = Vec::new();
    for (name, text) in BUILTIN {
        cut(&Source::new(format!("src/rewrite/rules/{name}"), *text), &mut entries);
    }
    entries
});

/// A rule as it stands in its file.
pub(in crate::rewrite) struct Entry {
    source: Arc<Source>,
    range: Range<usize>,
    /// Its group, and whether a pass of that name replaces by it.
    group: Option<(String, bool)>,
    /// The ops of each side from which it is read.
    pub(in crate::rewrite) wanted: Vec<Vec<Symbol>>,
    /// All its ops.
    pub(in crate::rewrite) named: Vec<Symbol>,
    rule: OnceLock<Result<Rule>>,
}

/// The built-in rules, file by file.
pub(in crate::rewrite) fn entries() -> &'static [Entry] {
    &SHELF
}

/// The built-in rules as written.
pub fn builtin_rules() -> Result<Vec<&'static Rule>> {
    entries().iter().map(Entry::rule).collect()
}

/// Those of them that are wanted, parsed.
pub(super) fn rules(wanted: Wanted<'_>) -> impl Iterator<Item = Result<&'static Rule>> {
    entries().iter().filter(move |entry| entry.is(wanted)).map(Entry::rule)
}

impl Entry {
    /// The rule, parsed when it is first asked for.
    pub(in crate::rewrite) fn rule(&self) -> Result<&Rule> {
        let rule = self.rule.get_or_init(|| parse_one(&self.source, self.range.clone(), self.group.clone()));
        rule.as_ref().map_err(Clone::clone)
    }

    pub(super) fn is(&self, wanted: Wanted<'_>) -> bool {
        let directed = self.group.as_ref().is_some_and(|(_, directed)| *directed);
        wanted.has(self.group.as_ref().map(|(name, _)| name.as_str()), directed)
    }

    fn new(source: &Arc<Source>, range: Range<usize>, group: Option<(String, bool)>) -> Entry {
        let (wanted, named) = ops(source.text().get(range.clone()).unwrap_or_default());
        Entry { source: Arc::clone(source), range, group, wanted, named, rule: OnceLock::new() }
    }
}

/// Cuts a file where lines begin with `rule`, `group` or `}`.
fn cut(source: &Arc<Source>, entries: &mut Vec<Entry>) {
    let (mut group, mut start) = (None, None);
    let mut at = 0;
    for line in source.text().split_inclusive('\n') {
        let mut words = line.split_whitespace();
        let first = words.next().unwrap_or_default();
        if matches!(first, "rule" | "group" | "}")
            && let Some(start) = start.take()
        {
            entries.push(Entry::new(source, start..at, group.clone()));
        }
        match first {
            "rule" => start = Some(at),
            "group" => {
                group = words.next().map(|name| (name.to_string(), words.next() == Some("directed")));
            }
            "}" => group = None,
            _ => {}
        }
        at += line.len();
    }
    if let Some(start) = start {
        entries.push(Entry::new(source, start..at, group));
    }
}

/// The ops of each side from which a rule is read, and all its ops, in the order of its text. Names in conditions are not ops.
fn ops(text: &str) -> (Vec<Vec<Symbol>>, Vec<Symbol>) {
    let (mut left, mut right) = (Vec::new(), Vec::new());
    let mut arrow = None;
    let code = text.lines().filter(|line| !line.trim_start().starts_with('#'));
    for word in code.flat_map(str::split_ascii_whitespace) {
        match arrow {
            None => arrow = Arrow::ALL.into_iter().find(|arrow| arrow.text() == word),
            Some(_) if word == "if" => break,
            Some(_) => {}
        }
        let side = if arrow.is_none() { &mut left } else { &mut right };
        let names = word.split(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | ':')));
        let names = names.map(|name| name.trim_matches(':')).filter(|name| name.contains("::"));
        side.extend(names.map(Symbol::new));
    }
    let named = left.iter().chain(&right).copied().collect();
    let mut wanted = vec![left];
    if arrow == Some(Arrow::BothWays) {
        wanted.push(right);
    }
    (wanted, named)
}

#[cfg(test)]
mod tests {
    use super::super::parse::parse;
    use super::super::reachable;
    use super::*;

    fn sorted(names: &[Symbol]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(Symbol::to_string).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// What a rule says of itself, and where its parts stand.
    fn shape(rule: &Rule) -> (String, [(usize, usize, &str); 3], usize) {
        let head = format!(
            "{} {:?} {} {:?} {:?} {}",
            rule.name, rule.group, rule.directed, rule.arrow, rule.contract, rule.doc
        );
        let spans = [&rule.span, &rule.left.span, &rule.right.span];
        (head, spans.map(|span| (span.start(), span.end(), span.text())), rule.conditions.len())
    }

    #[test]
    fn the_files_are_cut_as_they_are_parsed() {
        let mut entries = entries().iter();
        for (name, text) in BUILTIN {
            let rules =
                parse(&Source::new(format!("src/rewrite/rules/{name}"), *text)).expect("is well formed");
            for rule in &rules {
                let entry = entries.next().expect("as many");
                let own = entry.rule().expect("is well formed");
                assert_eq!(shape(own), shape(rule));
                let sides = |sides: &[Vec<Symbol>]| sides.iter().map(|side| sorted(side)).collect::<Vec<_>>();
                assert_eq!(sides(&entry.wanted), sides(&reachable::wanted(rule)), "{}", rule.name);
                assert_eq!(sorted(&entry.named), sorted(&reachable::named(rule)), "{}", rule.name);
                assert!(entry.is(Wanted::Laws) == Wanted::Laws.has(rule.group.as_deref(), rule.directed));
            }
        }
        assert!(entries.next().is_none());
    }
}
