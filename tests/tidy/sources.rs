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

/// A row names its op; any other place that names it in Rust would have to be changed with it.
pub(super) fn an_aten_op_stands_in_one_file() -> Result<(), Failed> {
    let mut rows: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (path, text) in rust_files("src/dialects") {
        // The registry's own tests name ops as examples.
        if path.ends_with("/registry.rs") {
            continue;
        }
        // Marks that a schema leaves out repeat its text.
        let is_row = |line: &&str| {
            line.contains("(\"aten::") && line.contains(" -> ") && !line.trim_start().starts_with(".hidden_")
        };
        for line in text.lines().filter(is_row) {
            let Some(start) = line.find("\"aten::") else { continue };
            let schema = &line[start + 1..];
            let name = schema.split('(').next().unwrap_or(schema).to_string();
            rows.entry(name).or_default().push(path.clone());
        }
    }
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
