//! The reference interpreter has nothing in common with what it judges: it sees dtypes, values and memory, no kernel and no loop
//! of the engine.

use super::sources::{product_code, rust_files};
use super::verdict;
use libtest_mimic::Failed;
use std::fs;

/// Crates that it may build on. Kernels, rows and the evaluator are in others.
const CRATES: &[&str] = &["flambeau-base", "half", "num-complex"];

/// What it may name of the first.
const NAMES: &[&str] = &["tensor::DType", "tensor::Scalar", "tensor::Tensor", "value", "ir::Type"];

/// Work of tensors and of what stands beside them: views, conversions, copies and promotion are what it judges.
const WORK: &[&str] = &[
    ".to_scalars(",
    ".to_vec::<",
    ".to_vec_as",
    ".to_dtype(",
    ".copy(",
    ".copy_from(",
    ".contiguous(",
    ".reshaped(",
    ".broadcast_to(",
    ".look(|",
    ".item(",
    ".elements",
    ".fill(",
    ".take_positions(",
    "promote_types",
    "result_type",
    "broadcast_sizes",
    "broadcast_all",
    "view::",
];

pub(super) fn the_reference_uses_no_kernels() -> Result<(), Failed> {
    let manifest: toml::Table = fs::read_to_string("crates/reference/Cargo.toml")?.parse()?;
    let asked = manifest.get("dependencies").and_then(|t| t.as_table()).into_iter().flat_map(|t| t.keys());
    let mut wrong: Vec<String> = asked
        .filter(|name| !CRATES.contains(&name.as_str()))
        .map(|name| format!("it builds on {name}"))
        .collect();
    let files = rust_files("crates/reference/src");
    for (path, text) in &files {
        for (number, line) in product_code(path, text) {
            let place = format!("{path}:{number}");
            wrong.extend(
                named(line).into_iter().filter(|name| !is_known(name)).map(|name| format!("{place}: {name}")),
            );
            let work = WORK.iter().filter(|work| line.contains(**work));
            wrong.extend(work.map(|work| format!("{place}: {work}")));
        }
    }
    if files.len() < 5 {
        wrong.push("its sources are not where they were".to_string());
    }
    wrong.extend(production()?);
    verdict("what the reference interpreter must not use", wrong)
}

/// No crate but for tests builds on it.
fn production() -> Result<Vec<String>, Failed> {
    let manifests =
        ["Cargo.toml", "crates/base/Cargo.toml", "crates/ops/Cargo.toml", "crates/reader/Cargo.toml"];
    let mut wrong = Vec::new();
    for path in manifests.into_iter().chain(["crates/transforms/Cargo.toml"]) {
        let tables: toml::Table = fs::read_to_string(path)?.parse()?;
        let asked = tables.get("dependencies").and_then(|t| t.get("flambeau-reference"));
        if asked.is_some() {
            wrong.push(format!("{path} builds on it"));
        }
    }
    Ok(wrong)
}

/// What a line names of the engine, as `tensor::DType`.
fn named(line: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (at, word) in line.match_indices("flambeau_base::") {
        let rest = &line[at + word.len()..];
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | ':'))).unwrap_or(rest.len());
        let (path, rest) = rest.split_at(end);
        match (path.strip_suffix("::"), rest.strip_prefix('{').and_then(|rest| rest.split('}').next())) {
            (Some(module), Some(items)) => {
                let all = items.split(',').filter_map(|item| item.split_whitespace().next());
                found.extend(all.map(|item| format!("{module}::{item}")));
            }
            _ => found.push(path.to_string()),
        }
    }
    found
}

fn is_known(name: &str) -> bool {
    NAMES
        .iter()
        .any(|known| name == *known || name.strip_prefix(*known).is_some_and(|rest| rest.starts_with("::")))
}
