//! Recorded answers of real PyTorch that lie in the repository, replayed from every form they carry. On the way every
//! op's writes and aliases are compared with the marks of its schema.

use flambeau::toolkit::Toolkit;
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
        .flat_map(|file| {
            let name = file.trim_start_matches("tests/golden/").trim_end_matches(".jsonl").to_string();
            // The same answers with all passes on, the program verified after each.
            let optimized = file.clone();
            [
                Trial::test(format!("cases::{name}"), move || check(&file, &["--aliases", "--audit"])),
                Trial::test(format!("cases::{name}::default"), move || {
                    check(&optimized, &["--passes", "default", "--verify-each"])
                }),
            ]
        })
        .collect()
}

fn check(file: &str, options: &[&str]) -> Result<(), Failed> {
    let words = ["flambeau", "check", file].into_iter().chain(options.iter().copied());
    match cli::main(words.map(Into::into), &Toolkit::default()) {
        0 => Ok(()),
        status => Err(format!("flambeau check {file} {options:?} ended with status {status}").into()),
    }
}
