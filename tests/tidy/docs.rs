//! Generated documents are what the program would generate now. `BLESS=1` writes them.

use flambeau::dialects::Registry;
use flambeau::tools::docs;
use libtest_mimic::Failed;
use std::fs;

pub(super) fn docs_are_fresh() -> Result<(), Failed> {
    let cases = fs::read_to_string("tests/golden/ops.jsonl").unwrap_or_default();
    fresh("docs/ops.md", &docs::ops(&Registry::builtin(), &cases))?;
    fresh("docs/math.md", &docs::math())?;
    fresh("docs/passes.md", &docs::passes())
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
