//! User-supplied files are read by `crates/files`, which looks at what they are first: a FIFO or a device would hold a
//! command for ever.

use super::{sources::rust_files, verdict};
use libtest_mimic::Failed;

/// What opens a file without a look at it.
const RAW: &[&str] = &["fs::read(", "fs::read_to_string(", "File::open(", "OpenOptions::new()"];

/// Code that reads or writes files that are not user-supplied, and why.
const ALLOWED: &[(&str, &str)] = &[
    ("crates/files/src/", "the crate that looks first"),
    ("crates/lit/src/process.rs", "the system's list of processes"),
    ("crates/lit/src/exec.rs", "outputs of a test's shell, as the shell opens them"),
    ("src/tools/watch.rs", "the system's word on this process"),
    ("src/tools/bench/measure.rs", "the system's word on this process"),
];

pub(super) fn named_files_are_looked_at_first() -> Result<(), Failed> {
    let mut findings = Vec::new();
    let folders = ["src", "crates", "python/src", "capi/src"];
    let mut unused: Vec<&str> = ALLOWED.iter().map(|(path, _)| *path).collect();
    for (path, text) in folders.into_iter().flat_map(rust_files) {
        if is_test(&path) {
            continue;
        }
        // Unit tests stand at the end of their module.
        let code = text.split("#[cfg(test)]\nmod ").next().unwrap_or("");
        for (number, line) in code.lines().enumerate() {
            if !RAW.iter().any(|raw| line.split("//").next().unwrap_or("").contains(raw)) {
                continue;
            }
            match ALLOWED.iter().find(|(allowed, _)| path.starts_with(allowed)) {
                Some((allowed, _)) => unused.retain(|path| path != allowed),
                None => findings.push(format!("{path}:{}: use crate::diag::files", number + 1)),
            }
        }
    }
    findings.extend(unused.into_iter().map(|path| format!("{path} is allowed what it does not do")));
    verdict("files that are opened without a look at them", findings)
}

/// Whether a file holds tests alone.
fn is_test(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    path.contains("/tests/")
        || name == "tests.rs"
        || name.ends_with("_tests.rs")
        || name == "conformance.rs"
        || name == "grammar_check.rs"
}
