//! Each pass has tests of its own: a folder of its name below tests/filecheck with three files or more that run it, for
//! what it does, what it refuses, and what it does with other passes, aliases or writes. All folders there are of passes.

use super::verdict;
use flambeau::toolkit::Toolkit;
use libtest_mimic::Failed;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files that a pass has at least.
const FILES: usize = 3;

pub(super) fn each_pass_has_tests_of_its_own() -> Result<(), Failed> {
    let toolkit = Toolkit::default();
    let mut folders: BTreeMap<String, Vec<PathBuf>> = BTreeMap::new();
    let mut work = vec![PathBuf::from("tests/filecheck")];
    while let Some(folder) = work.pop() {
        for path in std::fs::read_dir(&folder)?.flatten().map(|entry| entry.path()) {
            if path.is_dir() {
                work.push(path);
            } else {
                folders.entry(name(&folder)).or_default().push(path);
            }
        }
    }
    let mut findings = Vec::new();
    for pass in toolkit.passes().passes() {
        let folder = pass.name.replace('-', "_");
        let files = folders.get(&folder).map(Vec::as_slice).unwrap_or_default();
        let count = files.iter().filter(|file| runs(file, pass.name)).count();
        if count < FILES {
            findings.push(format!("{}: {count} of {FILES} files in a folder {folder}", pass.name));
        }
    }
    let is_pass = |folder: &str| toolkit.passes().names().any(|pass| pass.replace('-', "_") == folder);
    let strays = std::fs::read_dir("tests/filecheck/passes")?.flatten().map(|entry| name(&entry.path()));
    findings.extend(strays.filter(|folder| !is_pass(folder)).map(|folder| format!("{folder}: no pass")));
    verdict("passes with fewer tests than they need, and folders of no pass", findings)
}

fn name(folder: &Path) -> String {
    folder.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// Whether a `RUN:` line names the pass, alone or in a pipeline.
fn runs(file: &Path, pass: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let text = std::fs::read_to_string(file).unwrap_or_default();
    text.lines().filter_map(|line| line.split_once("RUN:")).any(|(_, command)| {
        command.match_indices(pass).any(|(at, _)| {
            !command[..at].ends_with(is_part) && !command[at + pass.len()..].starts_with(is_part)
        })
    })
}
