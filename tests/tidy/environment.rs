//! Every environment variable that the source reads stands in docs/environment.md, and every one there is read.

use super::sources::rust_files;
use super::verdict;
use libtest_mimic::Failed;
use std::collections::BTreeSet;
use std::fs;

pub(super) fn variables_are_documented() -> Result<(), Failed> {
    let text = fs::read_to_string("docs/environment.md")?;
    let rows = text.lines().filter(|line| line.starts_with("| `"));
    let documented: BTreeSet<String> = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|names| names.split('`').skip(1).step_by(2))
        .map(str::to_string)
        .collect();
    let mut read = BTreeSet::new();
    for folder in ["src", "crates", "tests", "benches", "examples"] {
        for (path, text) in rust_files(folder) {
            // This file's own examples of what is looked for.
            if !path.ends_with("tidy/environment.rs") {
                read.extend(variables(&text));
            }
        }
    }
    let unknown = read.difference(&documented).map(|name| format!("{name} is read but not documented"));
    let stale = documented.difference(&read).map(|name| format!("{name} is documented but not read"));
    verdict("environment variables", unknown.chain(stale).collect())
}

/// Names of variables in Rust code: text in capitals that is given to the environment on the same line or the one before, and
/// all text that begins as the project's and lit's own do.
fn variables(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut before = "";
    for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
        let asks = |line: &str| line.contains("env::var") || line.contains("variable(");
        for word in line.split('"').skip(1).step_by(2).filter(|word| is_name(word)) {
            let own = word.starts_with("FLAMBEAU_") || word.starts_with("LIT_");
            if own || (asks(line) || asks(before)) && !word.starts_with("CARGO_") {
                found.push(word.to_string());
            }
        }
        before = line;
    }
    found
}

fn is_name(word: &str) -> bool {
    word.len() > 2 && word.chars().all(|c| c.is_ascii_uppercase() || c == '_' || c.is_ascii_digit())
}
