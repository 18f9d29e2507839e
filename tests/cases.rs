//! Recorded answers of real PyTorch that lie in the repository, replayed from every form they carry. On the way every
//! op's writes and aliases are compared with the marks of its schema.

use flambeau::tools::cli;
use libtest_mimic::{Failed, Trial};
use std::fs;

/// One trial a case file below tests/golden.
pub fn trials() -> Vec<Trial> {
    let Ok(entries) = fs::read_dir("tests/golden") else { return Vec::new() };
    let mut files: Vec<String> = entries
        .flatten()
        .map(|e| e.path().to_string_lossy().replace('\\', "/"))
        .filter(|path| path.ends_with(".jsonl"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|file| {
            let name =
                format!("cases::{}", file.trim_start_matches("tests/golden/").trim_end_matches(".jsonl"));
            Trial::test(name, move || check(&file))
        })
        .collect()
}

fn check(file: &str) -> Result<(), Failed> {
    match cli::main(["flambeau".into(), "check".into(), "--audit".into(), file.into()]) {
        0 => Ok(()),
        status => Err(format!("flambeau check {file} ended with status {status}").into()),
    }
}
