//! What every source file looks like.

use super::verdict;
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// No file may be longer.
const MAX_LINES: usize = 800;

pub(super) fn modules_open_with_a_header() -> Result<(), Failed> {
    let missing = all_files();
    let missing = missing.filter(|(_, text)| !text.starts_with("//!")).map(|(path, _)| path);
    verdict("files that do not open with `//!`", missing.collect())
}

pub(super) fn files_are_short() -> Result<(), Failed> {
    let long = all_files().filter_map(|(path, text)| {
        let lines = text.lines().count();
        (lines > MAX_LINES).then(|| format!("{path}: {lines} lines"))
    });
    verdict("files above 800 lines", long.collect())
}

/// Product and tests, the crates of the workspace with them.
fn all_files() -> impl Iterator<Item = (String, String)> {
    ["src", "crates", "tests"].into_iter().flat_map(rust_files)
}

pub(super) fn architecture_names_existing_paths() -> Result<(), Failed> {
    let text = fs::read_to_string("ARCHITECTURE.md")?;
    let named = text.split('`').skip(1).step_by(2);
    let paths = named.filter(|t| {
        t.starts_with("src/") || t.starts_with("crates/") || t.starts_with("tests/") || t.starts_with("docs/")
    });
    let missing = paths.filter(|path| !Path::new(path).exists()).map(str::to_string);
    verdict("paths in ARCHITECTURE.md that do not exist", missing.collect())
}

/// A row names its op; any other place that names it in Rust would have to be changed with it. Every schema of a row is seen,
/// however its call is broken into lines: each row of the table must be among what was read.
pub(super) fn an_op_stands_in_one_file() -> Result<(), Failed> {
    // Up to the arrow, where quotes of defaults are escaped; a macro adds the end that several rows have in common.
    let whole = regex::Regex::new(r#"(?s)"(\w+::\w+(?:\.\w+)?)\((?:[^"\\]|\\.)*->"#)?;
    let begun = regex::Regex::new(r#"\w!\(\s*"(\w+::\w+(?:\.\w+)?)[("]"#)?;
    // Marks that a schema leaves out repeat its text.
    let repeats = regex::Regex::new(r#"\.hidden_\w+\(\s*(?:"\w+",\s*)?$"#)?;
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in rust_files("src/dialects") {
        let product: Vec<&str> = product_code(&path, &text).into_iter().map(|(_, line)| line).collect();
        let product = product.join("\n");
        let found = whole.captures_iter(&product).chain(begun.captures_iter(&product));
        // By place: both may find one row.
        let names: BTreeMap<usize, &str> =
            found.filter_map(|found| found.get(1)).map(|name| (name.start(), name.as_str())).collect();
        // Without the quote before the name.
        let is_row = |start: usize| !repeats.is_match(&product[..start - 1]);
        for (_, name) in names.into_iter().filter(|(start, _)| is_row(*start)) {
            rows.entry(name.to_string()).or_default().push(path.clone());
        }
    }
    let registry = flambeau::dialects::Registry::builtin();
    let names = registry.iter().map(|op| op.def().schema.split('(').next().unwrap_or_default());
    // The scalar primitives are a list of their own, from which the ops of loops are made.
    let unseen: std::collections::BTreeSet<String> = names
        .filter(|name| !name.starts_with("loop::") && !rows.contains_key(*name))
        .map(str::to_string)
        .collect();
    verdict("rows that are not seen in the source", unseen.into_iter().collect())?;
    let twice = rows.into_iter().filter(|(_, paths)| paths.len() > 1);
    verdict("ops with more than one row", twice.map(|(name, paths)| format!("{name}: {paths:?}")).collect())
}

/// The lines of a file that are part of the product, with their numbers: no comments, no tests.
pub(super) fn product_code<'a>(path: &str, text: &'a str) -> Vec<(usize, &'a str)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let tests = path.contains("/tests/") || name == "tests.rs" || name.ends_with("_tests.rs");
    if tests || name == "properties.rs" || name == "grammar_check.rs" {
        return Vec::new();
    }
    let mut product = Vec::new();
    let mut lines = text.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        if line.trim_start() == "#[cfg(test)]" {
            let indent = &line[..line.len() - line.trim_start().len()];
            match lines.next() {
                // Tests stand at the end of a file.
                Some((_, "mod tests {")) => break,
                // Another item of tests ends where a line closes it.
                Some((_, item)) if !item.ends_with(';') => {
                    let end = format!("{indent}}}");
                    while lines.next().is_some_and(|(_, line)| line != end) {}
                }
                _ => {}
            }
        } else if !line.trim_start().starts_with("//") {
            product.push((n + 1, line));
        }
    }
    product
}

/// All Rust files below a folder, by path, in order.
pub(super) fn rust_files(root: &str) -> Vec<(String, String)> {
    let mut out = Vec::new();
    let mut folders = vec![root.to_string()];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for entry in entries.flatten() {
            let path = entry.path().to_string_lossy().replace('\\', "/");
            if entry.path().is_dir() {
                folders.push(path);
            } else if path.ends_with(".rs")
                && let Ok(text) = fs::read_to_string(&path)
            {
                out.push((path, text));
            }
        }
    }
    out.sort();
    out
}
