//! Generated documents are what the program would generate now. `BLESS=1` writes them.

use flambeau::dialects::Registry;
use flambeau::tools::docs;
use libtest_mimic::Failed;
use std::fs;

pub(super) fn docs_are_fresh() -> Result<(), Failed> {
    let cases = fs::read_to_string("tests/golden/ops.jsonl").unwrap_or_default();
    fresh("docs/ops.md", &docs::ops(&Registry::builtin(), &cases))?;
    fresh("docs/language.md", &flambeau::tools::language::language(&recorded()?)?)?;
    fresh("docs/math.md", &docs::math())?;
    fresh("docs/rules.md", &docs::rules()?)?;
    fresh("docs/passes.md", &docs::passes())
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

fn fresh(path: &str, wanted: &str) -> Result<(), Failed> {
    if std::env::var("BLESS").is_ok_and(|v| v == "1") {
        fs::write(path, wanted)?;
    }
    if fs::read_to_string(path).unwrap_or_default() != wanted {
        return Err(format!("{path} is stale; run: make bless").into());
    }
    Ok(())
}
