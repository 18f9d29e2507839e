//! Every file below tests/filecheck is a test: its RUN lines are run by our own lit with our own FileCheck.

use flambeau::tools::{cli, lit};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One trial a file.
pub fn trials() -> Vec<Trial> {
    let mut config = cli::lit_config("filecheck", crate::test_passes::toolkit());
    config.environment.insert("BLESS".into(), std::env::var("BLESS").unwrap_or_default());
    config.update = std::env::var("BLESS").is_ok_and(|v| v == "1");
    config.temp = crate::scratch::folder("filecheck");
    let config = Arc::new(config);
    files(Path::new("tests/filecheck"))
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix("tests").unwrap_or(&path).display().to_string();
            let config = Arc::clone(&config);
            Trial::test(name, move || run(&path, &config))
        })
        .collect()
}

fn run(path: &Path, config: &lit::Config) -> Result<(), Failed> {
    let outcome = lit::run_file(path, config);
    if outcome.status.is_failure() {
        return Err(outcome.output.into());
    }
    Ok(())
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut work = vec![folder.to_path_buf()];
    while let Some(folder) = work.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.flatten().map(|e| e.path()) {
            let is_test =
                path.extension().is_some_and(|e| e == "ir" || e == "py" || e == "test" || e == "rules");
            if path.is_dir() && !path.ends_with("Inputs") {
                work.push(path);
            } else if is_test {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}
