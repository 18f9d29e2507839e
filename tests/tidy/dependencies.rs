//! What the crates that Flambeau builds on must be: from the registry, under licences that `deny.toml` allows, in one
//! version unless `deny.toml` says why not, and used. It is what `cargo deny` checks, for machines that lack it.

use super::sources::rust_files;
use super::verdict;
use libtest_mimic::Failed;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

/// Crates that are built for Linux, as cargo knows them.
fn packages() -> Result<Vec<Json>, Failed> {
    let words = ["metadata", "--format-version=1", "--locked", "--offline", "--all-features"];
    let platform = ["--filter-platform", "x86_64-unknown-linux-gnu"];
    let output = Command::new(env!("CARGO")).args(words).args(platform).output()?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned().into());
    }
    let all: Json = serde_json::from_slice(&output.stdout)?;
    // The list has crates of other platforms too; what is built stands in the graph.
    let built: Vec<&Json> =
        all["resolve"]["nodes"].as_array().into_iter().flatten().map(|n| &n["id"]).collect();
    let packages = all["packages"].as_array().into_iter().flatten();
    Ok(packages.filter(|package| built.contains(&&package["id"])).cloned().collect())
}

fn settings() -> Result<toml::Table, Failed> {
    Ok(fs::read_to_string("deny.toml")?.parse()?)
}

fn texts<'t>(table: &'t toml::Table, path: [&str; 2], key: Option<&str>) -> Vec<&'t str> {
    let list = table.get(path[0]).and_then(|t| t.get(path[1])).and_then(|list| list.as_array());
    let text = |item: &'t toml::Value| match key {
        Some(key) => item.get(key)?.as_str(),
        None => item.as_str(),
    };
    list.into_iter().flatten().filter_map(text).collect()
}

pub(super) fn crates_come_from_the_registry_under_known_licences() -> Result<(), Failed> {
    let settings = settings()?;
    let allowed = texts(&settings, ["licenses", "allow"], None);
    let mut wrong = Vec::new();
    for package in packages()? {
        let name = package["name"].as_str().unwrap_or_default().to_string();
        let source = package["source"].as_str();
        if source.is_some_and(|s| !s.starts_with("registry+https://github.com/rust-lang/crates.io-index")) {
            wrong.push(format!("{name} comes from {}", source.unwrap_or_default()));
        }
        let license = package["license"].as_str().unwrap_or_default().replace('/', " OR ");
        if !may_use(&license, &allowed) {
            wrong.push(format!("{name} has the licence '{license}', which deny.toml does not allow"));
        }
    }
    verdict("crates that may not be used", wrong)
}

/// Whether an SPDX expression can be met with allowed licences. `AND` binds closer than `OR`.
fn may_use(expression: &str, allowed: &[&str]) -> bool {
    let expression = expression.trim();
    for (word, all) in [(" OR ", false), (" AND ", true)] {
        let parts = split_outside_of_brackets(expression, word);
        if parts.len() > 1 {
            let mut each = parts.iter().map(|part| may_use(part, allowed));
            return if all { each.all(|ok| ok) } else { each.any(|ok| ok) };
        }
    }
    match expression.strip_prefix('(').and_then(|rest| rest.strip_suffix(')')) {
        Some(inside) => may_use(inside, allowed),
        None => allowed.contains(&expression),
    }
}

fn split_outside_of_brackets<'t>(text: &'t str, word: &str) -> Vec<&'t str> {
    let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
    for (at, letter) in text.char_indices() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth == 0 && at >= start && text[at..].starts_with(word) => {
                parts.push(&text[start..at]);
                start = at + word.len();
            }
            _ => {}
        }
    }
    parts.push(&text[start..]);
    parts
}

pub(super) fn crates_are_built_in_one_version() -> Result<(), Failed> {
    let settings = settings()?;
    let skipped = texts(&settings, ["bans", "skip"], Some("crate"));
    let mut versions: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for package in packages()? {
        let text = |key: &str| package[key].as_str().unwrap_or_default().to_string();
        versions.entry(text("name")).or_default().push(text("version"));
    }
    let is_skipped = |name: &str, version: &str| {
        skipped.iter().any(|skip| {
            let (known, number) = skip.split_once('@').unwrap_or((skip, ""));
            known == name && (version == number || version.starts_with(&format!("{number}.")))
        })
    };
    let mut wrong = Vec::new();
    for (name, versions) in &versions {
        let left: Vec<&String> = versions.iter().filter(|version| !is_skipped(name, version)).collect();
        if left.len() > 1 {
            wrong.push(format!("{name}: {left:?}"));
        }
    }
    let is_needless = |skip: &&&str| {
        let (name, number) = skip.split_once('@').unwrap_or((skip, ""));
        let all = versions.get(name).map(Vec::as_slice).unwrap_or_default();
        all.len() < 2 || !all.iter().any(|version| version.starts_with(number))
    };
    wrong.extend(skipped.iter().filter(is_needless).map(|skip| format!("deny.toml skips {skip} in vain")));
    verdict("crates in several versions", wrong)
}

/// A dependency that no source names costs build time and trust for nothing.
pub(super) fn dependencies_are_used() -> Result<(), Failed> {
    let top = folders_of("src/lib.rs")?;
    let product: Vec<&str> = top.iter().map(String::as_str).chain(["src/lib.rs", "src/main.rs"]).collect();
    let all = [product.as_slice(), &["tests", "benches", "examples"]].concat();
    let mut unused = unused_dependencies("Cargo.toml", &product, &all)?;
    for layers in ["base", "ops", "reader", "transforms"] {
        let root = format!("src/{layers}.rs");
        let folders = folders_of(&root)?;
        let folders: Vec<&str> = folders.iter().map(String::as_str).chain([root.as_str()]).collect();
        unused.extend(unused_dependencies(&format!("crates/{layers}/Cargo.toml"), &folders, &folders)?);
    }
    unused.extend(unasked()?);
    let members = [
        "crates/files",
        "crates/filecheck",
        "crates/lit",
        "crates/reference",
        "python",
        "capi",
        "examples/my-opt",
    ];
    for folder in members {
        let (product, tests) = (format!("{folder}/src"), format!("{folder}/tests"));
        let manifest = format!("{folder}/Cargo.toml");
        unused.extend(unused_dependencies(&manifest, &[&product], &[&product, &tests])?);
    }
    unused.extend(unused_dependencies("fuzz/Cargo.toml", &["fuzz"], &["fuzz"])?);
    verdict("dependencies that nothing uses", unused)
}

/// The folders of a crate's modules.
fn folders_of(root: &str) -> Result<Vec<String>, Failed> {
    let text = fs::read_to_string(root)?;
    let modules = text.lines().filter_map(|line| line.strip_prefix("pub mod ")?.strip_suffix(';'));
    Ok(modules.map(|module| format!("src/{module}")).collect())
}

/// What the workspace offers its crates and none asks for.
fn unasked() -> Result<Vec<String>, Failed> {
    let mut asked = Vec::new();
    for manifest in MANIFESTS {
        let tables: toml::Table = fs::read_to_string(manifest)?.parse()?;
        for table in ["dependencies", "dev-dependencies"] {
            let all = tables.get(table).and_then(|t| t.as_table()).into_iter().flatten();
            let shared = all.filter(|(_, wanted)| wanted.get("workspace").is_some());
            asked.extend(shared.map(|(name, _)| name.clone()));
        }
    }
    let tables: toml::Table = fs::read_to_string("Cargo.toml")?.parse()?;
    let offered = tables.get("workspace").and_then(|w| w.get("dependencies")).and_then(|t| t.as_table());
    let names = offered.into_iter().flat_map(|t| t.keys());
    Ok(names.filter(|name| !asked.contains(name)).map(|name| format!("{name} of the workspace")).collect())
}

/// The manifests of the workspace, and of what stands beside it.
const MANIFESTS: &[&str] = &[
    "Cargo.toml",
    "crates/base/Cargo.toml",
    "crates/filecheck/Cargo.toml",
    "crates/files/Cargo.toml",
    "crates/lit/Cargo.toml",
    "crates/ops/Cargo.toml",
    "crates/reader/Cargo.toml",
    "crates/reference/Cargo.toml",
    "crates/transforms/Cargo.toml",
    "python/Cargo.toml",
    "capi/Cargo.toml",
    "examples/my-opt/Cargo.toml",
    "fuzz/Cargo.toml",
];

/// What `deny.toml` bans is not built, and no manifest takes any version there is.
pub(super) fn banned_crates_are_not_built() -> Result<(), Failed> {
    let settings = settings()?;
    let banned = texts(&settings, ["bans", "deny"], Some("name"));
    let mut wrong: Vec<String> = packages()?
        .iter()
        .filter_map(|package| package["name"].as_str())
        .filter(|name| banned.contains(name))
        .map(|name| format!("{name} is banned"))
        .collect();
    if banned.is_empty() || texts(&settings, ["bans", "skip"], Some("crate")).is_empty() {
        wrong.push("deny.toml bans nothing, or is read wrongly".to_string());
    }
    for manifest in MANIFESTS {
        let tables: toml::Table = fs::read_to_string(manifest)?.parse()?;
        let shared = tables.get("workspace").cloned().unwrap_or_else(|| toml::Table::new().into());
        for table in ["dependencies", "dev-dependencies", "build-dependencies"] {
            let own = tables.get(table).and_then(|t| t.as_table()).into_iter().flatten();
            let asked = own.chain(shared.get(table).and_then(|t| t.as_table()).into_iter().flatten());
            let wild = asked.filter(|(_, wanted)| is_wildcard(wanted));
            wrong
                .extend(wild.map(|(name, _)| format!("{name} in [{table}] of {manifest} is of any version")));
        }
    }
    verdict("crates that deny.toml bans", wrong)
}

/// Whether a dependency takes any version; one of this workspace is what stands at its path, and the workspace says of others.
fn is_wildcard(wanted: &toml::Value) -> bool {
    let version = wanted.as_str().or_else(|| wanted.get("version").and_then(toml::Value::as_str));
    match version {
        Some(version) => version.contains('*'),
        None => wanted.get("path").is_none() && wanted.get("workspace").is_none(),
    }
}

/// Every manifest of the workspace is among those that are looked at.
pub(super) fn all_manifests_are_looked_at() -> Result<(), Failed> {
    let tables: toml::Table = fs::read_to_string("Cargo.toml")?.parse()?;
    let members = texts(&tables, ["workspace", "members"], None);
    let known = |member: &&str| MANIFESTS.contains(&format!("{member}/Cargo.toml").as_str());
    let unknown = members.into_iter().filter(|member| !known(member)).map(str::to_string);
    verdict("members of the workspace that no rule looks at", unknown.collect())
}

/// What a manifest asks for that neither the product's files and folders nor, for tests, all of them name.
fn unused_dependencies(manifest: &str, product: &[&str], all: &[&str]) -> Result<Vec<String>, Failed> {
    let tables: toml::Table = fs::read_to_string(manifest)?.parse()?;
    let files = |place: &str| match fs::read_to_string(place) {
        Ok(text) => vec![(place.to_string(), text)],
        Err(_) => rust_files(place),
    };
    let sources = |places: &[&str]| places.iter().flat_map(|place| files(place)).collect::<Vec<_>>();
    let (product, all) = (sources(product), sources(all));
    let mut unused = Vec::new();
    for (table, sources) in [("dependencies", &product), ("dev-dependencies", &all)] {
        let names = tables.get(table).and_then(|t| t.as_table()).into_iter().flat_map(|t| t.keys());
        for name in names {
            let word = name.replace('-', "_");
            let is_used = |text: &str| {
                let path = [format!("{word}::"), format!("use {word}"), format!("derive({word}")];
                path.iter().any(|path| text.contains(path.as_str()))
            };
            if !sources.iter().any(|(_, text)| is_used(text)) {
                unused.push(format!("{name} in [{table}] of {manifest}"));
            }
        }
    }
    Ok(unused)
}
