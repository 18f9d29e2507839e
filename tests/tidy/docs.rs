//! Generated documents are what the program would generate now. `BLESS=1` writes them.

use super::{generated, language_page};
use flambeau::dialects::Registry;
use libtest_mimic::Failed;
use std::fs;

pub(super) fn docs_are_fresh() -> Result<(), Failed> {
    let cases = fs::read_to_string("tests/golden/ops.jsonl").unwrap_or_default();
    fresh("docs/ops.md", &generated::ops(&Registry::builtin(), &cases))?;
    fresh("docs/language.md", &language_page::language(&recorded()?)?)?;
    fresh("docs/math.md", &generated::math())?;
    fresh("docs/rules.md", &generated::rules()?)?;
    fresh("docs/passes.md", &generated::passes())
}

/// Each row of the page of rules says what the rule file says: it is read as the rule that it is about.
pub(super) fn rows_of_rules_are_rules() -> Result<(), Failed> {
    let page = fs::read_to_string("docs/rules.md")?;
    let mut rows = page.lines().filter(|line| line.starts_with("| ") && line.ends_with("` |"));
    let facts = flambeau::rewrite::facts::rules(&Registry::builtin())?;
    for wanted in flambeau::rewrite::builtin_rules()?.into_iter().chain(facts.iter().map(|fact| &fact.rule)) {
        let row = rows.next().ok_or("the page has fewer rows than there are rules")?;
        let row = row.replace("\\|", "\u{1}");
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let [_, name, contract, .., sides, _] = cells.as_slice() else {
            return Err(format!("not a row of a rule: {row}").into());
        };
        let text = format!("rule {name} {contract} {}", sides.trim_matches('`').replace('\u{1}', "|"));
        let read = flambeau::rewrite::parse(&flambeau::diag::Source::new("docs/rules.md", text.as_str()))?;
        let [rule] = read.as_slice() else { return Err(format!("not one rule: {text}").into()) };
        let same = |a: &flambeau::rewrite::syntax::RuleTerm, b: &flambeau::rewrite::syntax::RuleTerm| {
            flambeau::rewrite::on_one_line(a.span.text()) == flambeau::rewrite::on_one_line(b.span.text())
        };
        let conditions = |rule: &flambeau::rewrite::syntax::Rule| {
            rule.conditions.iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        let is_it = rule.name == wanted.name
            && rule.contract == wanted.contract
            && rule.arrow == wanted.arrow
            && same(&rule.left, &wanted.left)
            && same(&rule.right, &wanted.right)
            && conditions(rule) == conditions(wanted);
        if !is_it {
            return Err(format!("this row is not rule {} of the rule files: {text}", wanted.name).into());
        }
    }
    match rows.next() {
        Some(row) => Err(format!("a row of no rule: {row}").into()),
        None => Ok(()),
    }
}

/// The names of the recorded programs.
fn recorded() -> Result<Vec<String>, Failed> {
    let mut names = Vec::new();
    for file in ["tests/golden/programs.jsonl", "tests/golden/modules.jsonl"] {
        for line in fs::read_to_string(file)?.lines() {
            let case: serde_json::Value = serde_json::from_str(line)?;
            names.extend(case["name"].as_str().map(str::to_string));
        }
    }
    Ok(names)
}

pub(super) fn fresh(path: &str, wanted: &str) -> Result<(), Failed> {
    if std::env::var("BLESS").is_ok_and(|v| v == "1") {
        fs::write(path, wanted)?;
    }
    if fs::read_to_string(path).unwrap_or_default() != wanted {
        return Err(format!("{path} is stale; run: make bless").into());
    }
    Ok(())
}
