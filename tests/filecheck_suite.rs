//! Every file below tests/filecheck is a test: its RUN lines are run by our own lit with our own FileCheck.

use flambeau::tools::{cli, lit};
use libtest_mimic::{Failed, Trial};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One trial a file, and two about their checks: that they are some, and that together they see each change of each pass.
pub fn trials() -> Vec<Trial> {
    let mut config = cli::lit_config("filecheck", crate::test_passes::toolkit());
    config.environment.insert("BLESS".into(), std::env::var("BLESS").unwrap_or_default());
    config.update = std::env::var("BLESS").is_ok_and(|v| v == "1");
    config.temp = crate::scratch::folder("filecheck");
    let config = Arc::new(config);
    let whole = Arc::clone(&config);
    let checks = [
        Trial::test("filecheck::checks_are_checks", checks_are_checks),
        Trial::test("filecheck::checks_see_each_change", move || checks_see_each_change(&whole)),
    ];
    files(Path::new("tests/filecheck"))
        .into_iter()
        .map(|path| {
            let name = path.strip_prefix("tests").unwrap_or(&path).display().to_string();
            let config = Arc::clone(&config);
            match lit::skip_reason(&path, &config) {
                Some(reason) => Trial::test(format!("{name} ({reason})"), || Ok(())).with_ignored_flag(true),
                None => Trial::test(name, move || run(&path, &config)),
            }
        })
        .chain(checks)
        .collect()
}

/// No line looks like a check and is none.
fn checks_are_checks() -> Result<(), Failed> {
    let mut findings = String::new();
    for path in
        ["tests/filecheck", "examples/my-opt/tests/suite"].into_iter().flat_map(|f| files(Path::new(f)))
    {
        for finding in lit::lint::lint(&fs::read_to_string(&path)?) {
            findings.push_str(&format!("{}:{}: {}\n", path.display(), finding.line, finding.message));
        }
    }
    if findings.is_empty() { Ok(()) } else { Err(findings.into()) }
}

/// Where a pass makes fewer changes, some check fails, or the test says why not.
fn checks_see_each_change(config: &lit::Config) -> Result<(), Failed> {
    let words = ["lit", "tests/filecheck", "--mutate", "-j", "2"].map(Into::into);
    let mut config = config.clone();
    config.update = false;
    config.temp = crate::scratch::folder("mutants").join("lit");
    let (mut out, mut err) = (Vec::new(), Vec::new());
    match lit::main(&words, config, &mut out, &mut err) {
        0 => Ok(()),
        _ => Err(format!("{}{}", String::from_utf8_lossy(&out), String::from_utf8_lossy(&err)).into()),
    }
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
