//! Folders of a layer use each other one way, as layers do: which room is below which can be read off the tree.

use super::sources::{product_code, rust_files};
use super::verdict;
use libtest_mimic::Failed;
use std::collections::{BTreeMap, BTreeSet};

/// Of each folder those that its files name, by `crate::layer::folder` or by what the layer shows of one.
type Uses = BTreeMap<String, BTreeSet<String>>;

pub(super) fn folders_use_each_other_one_way() -> Result<(), Failed> {
    let files = rust_files("src");
    let folders: BTreeSet<String> = files.iter().filter_map(|(path, _)| folder_of(path)).collect();
    let shown = shown(&files, &folders);
    let mut uses = Uses::new();
    for (path, text) in &files {
        let Some(own) = folder_of(path) else { continue };
        let layer = own.split('/').next().unwrap_or_default().to_string();
        let code: Vec<&str> = product_code(path, text).into_iter().map(|(_, line)| line).collect();
        for named in paths(&code.join("\n"), &prefixes(path, &layer)) {
            let folder = format!("{layer}/{named}");
            let other = if folders.contains(&folder) { Some(&folder) } else { shown.get(&folder) };
            uses.entry(own.clone()).or_default().extend(other.filter(|other| **other != own).cloned());
        }
    }
    let mut findings = Vec::new();
    for own in &folders {
        for next in uses.get(own).into_iter().flatten() {
            if let Some(way) = way(&uses, next, own) {
                findings.push(format!("{own} -> {}", way.join(" -> ")));
            }
        }
    }
    verdict("folders that use each other", findings)
}

/// `ir/text` for `src/ir/text/lexer.rs`; a file that stands in its layer belongs to no folder.
fn folder_of(path: &str) -> Option<String> {
    let mut parts = path.strip_prefix("src/")?.split('/');
    let (layer, folder) = (parts.next()?, parts.next()?);
    parts.next().map(|_| format!("{layer}/{folder}"))
}

/// What layers show of their folders by `pub use`: the folder, by `layer/Name`.
fn shown(files: &[(String, String)], folders: &BTreeSet<String>) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    for (path, text) in files {
        let Some(layer) = path.strip_prefix("src/").and_then(|path| path.strip_suffix("/mod.rs")) else {
            continue;
        };
        for used in text.split("\npub use ").skip(1) {
            let used = used.split(';').next().unwrap_or_default();
            let folder = format!("{layer}/{}", used.split("::").next().unwrap_or_default());
            if folders.contains(&folder) {
                let names = used.rsplit("::").next().unwrap_or_default();
                let names = names.split(|c: char| !is_word(c)).filter(|name| !name.is_empty());
                all.extend(names.map(|name| (format!("{layer}/{name}"), folder.clone())));
            }
        }
    }
    all
}

/// How a file names its layer.
fn prefixes(path: &str, layer: &str) -> Vec<String> {
    let depth = path.split('/').count() - usize::from(path.ends_with("/mod.rs"));
    // `src/layer/folder/file.rs` is two levels below its layer, the folder itself one.
    vec![format!("crate::{layer}::"), "super::".repeat(depth - 2)]
}

/// The names that stand after one of the prefixes, in braces too.
fn paths<'a>(code: &'a str, prefixes: &[String]) -> Vec<&'a str> {
    let mut all = Vec::new();
    for prefix in prefixes {
        for (at, _) in code.match_indices(prefix) {
            if code[..at].ends_with("super::") {
                continue;
            }
            let rest = &code[at + prefix.len()..];
            match rest.strip_prefix('{') {
                None => all.extend(rest.split(|c: char| !is_word(c)).next()),
                Some(inside) => {
                    let inside = inside.split(['}', ';']).next().unwrap_or_default();
                    all.extend(
                        inside.split(',').filter_map(|one| one.trim().split(|c: char| !is_word(c)).next()),
                    );
                }
            }
        }
    }
    all
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The shortest way from one folder to another.
fn way(uses: &Uses, from: &str, to: &str) -> Option<Vec<String>> {
    let mut ways = vec![vec![from.to_string()]];
    let mut seen = BTreeSet::from([from.to_string()]);
    let mut at = 0;
    while let Some(way) = ways.get(at).cloned() {
        let last = way.last()?;
        if last == to {
            return Some(way);
        }
        for next in uses.get(last).into_iter().flatten() {
            if seen.insert(next.clone()) {
                ways.push(way.iter().cloned().chain([next.clone()]).collect());
            }
        }
        at += 1;
    }
    None
}
