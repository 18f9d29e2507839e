//! Commands and libraries work with the toolkit they are given: nothing but the toolkit names a table of what is built in.

use super::sources::{product_code, rust_files};
use super::verdict;
use libtest_mimic::Failed;

/// What gives a table of all that is built in.
const GLOBALS: &[&str] = &[
    "Registry::builtin(",
    "Registry::with_builtins(",
    "PassSet::builtin(",
    "passes::TABLE",
    "passes::NAMED",
    "backends::by_name(",
    "builtin_rules(",
    "rewrite::BUILTIN",
    "shelf::entries(",
    "shelf::rules(",
    "Toolkit::default(",
    "Toolkit::new(",
];

/// Who may, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("src/main.rs", "the program with what is built in"),
    ("src/toolkit/mod.rs", "makes the built-in toolkit"),
    ("src/toolkit/model.rs", "the front door, for those who bring no toolkit"),
    ("src/dialects/built_in.rs", "defines the built-in table of ops"),
    ("src/passes/mod.rs", "reads the pipeline of plans, which is of built-in passes"),
    ("src/rewrite/load/shelf.rs", "defines the built-in rules"),
    ("src/rewrite/load/groups.rs", "joins them with those of a table of ops"),
    ("src/rewrite/load/kept.rs", "resolves both, once a table"),
    ("src/rewrite/load/reachable.rs", "chooses from them those that a graph can need"),
    ("src/runtime/composites.rs", "keeps compiled meanings of the built-in ops for all programs over them"),
];

pub(super) fn only_the_toolkit_names_what_is_built_in() -> Result<(), Failed> {
    let mut findings = Vec::new();
    let mut met = Vec::new();
    for (path, text) in rust_files("src") {
        for (number, line) in product_code(&path, &text) {
            let Some(global) = GLOBALS.iter().find(|global| line.contains(**global)) else { continue };
            match ALLOWED.iter().find(|(file, _)| *file == path) {
                Some((file, _)) => met.push(*file),
                None => findings.push(format!("{path}:{number}: {global}")),
            }
        }
    }
    let idle = ALLOWED.iter().filter(|(file, _)| !met.contains(file));
    findings.extend(idle.map(|(file, _)| format!("{file} is allowed to and does not")));
    verdict("reaches past the toolkit", findings)
}
