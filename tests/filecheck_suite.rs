//! Every file below tests/filecheck is a test: its RUN lines are run by our own lit with our own FileCheck.

use flambeau::toolkit::Toolkit;
use flambeau::tools::io::Io;
use flambeau::tools::{cli, lit};
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One trial a file, two about their checks: that they are some, and that together they see each change of each
/// pass; and one about the passes: that they keep answers.
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
        Trial::test("filecheck::passes_keep_answers", passes_keep_answers),
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

/// No line looks like a check without being one.
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

/// Passes that change answers on purpose, and why.
const CHANGES_ANSWERS: &[(&str, &str)] = &[
    ("insert-guards", "a guard without a way out raises for other types; insert-bailouts gives it one"),
    ("specialize-autogradzero", "types say what is undefined, and drawn values are not"),
    ("fold-grad-mode", "the option says what the mode is, and values are drawn with gradients recorded"),
    ("dce-allow-deleting-nodes-with-side-effects", "as its name says, writes to arguments are erased too"),
    (
        "remove-expands",
        "as in PyTorch, whose compiler put the expand there for an op that broadcasts by itself",
    ),
];

/// Each pass gives the same answers as before it, on values drawn for the inputs of its own tests.
fn passes_keep_answers() -> Result<(), Failed> {
    let toolkit = Toolkit::default();
    let (mut faults, mut called, mut liars) = (String::new(), 0, BTreeSet::new());
    for path in files(Path::new("tests/filecheck/passes")) {
        let folder =
            path.parent().and_then(Path::file_name).unwrap_or_default().to_string_lossy().replace('_', "-");
        let is_graph = path.extension().is_some_and(|end| end == "ir");
        if !is_graph || toolkit.parse_pipeline(&folder).is_err() {
            continue;
        }
        let words =
            ["flambeau", "opt", "--passes", &folder, "--validate-each=4", "--no-output", "--no-reproducer"];
        let words = words.map(OsString::from).into_iter().chain([path.clone().into_os_string()]);
        let (mut out, mut err) = (Vec::new(), Vec::new());
        cli::main_in(words, &mut Io::new(&toolkit, Path::new(""), &mut std::io::empty(), &mut out, &mut err));
        let err = String::from_utf8_lossy(&err);
        called += usize::from(err.contains("note: 1 of 1"));
        if err.contains("changes what") {
            match CHANGES_ANSWERS.iter().find(|(name, _)| *name == folder) {
                Some((name, _)) => drop(liars.insert(*name)),
                None => faults.push_str(&format!("{}: {err}\n", path.display())),
            }
        }
    }
    for (name, _) in CHANGES_ANSWERS.iter().filter(|(name, _)| !liars.contains(name)) {
        faults.push_str(&format!("{name} keeps its answers\n"));
    }
    if called < LEAST_CALLED {
        faults.push_str(&format!("only {called} tests were called\n"));
    }
    if faults.is_empty() { Ok(()) } else { Err(faults.into()) }
}

/// So many tests of passes have functions whose arguments can be drawn.
const LEAST_CALLED: usize = 60;

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
