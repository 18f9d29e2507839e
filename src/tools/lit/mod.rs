//! lit: runs test files by the `RUN:` lines in them.
//!
//! LLVM's keywords and substitutions. The tools of a [`Config`] run in this process, `FileCheck` and a handful of
//! shell builtins too; other commands are programs. [`main`] is the command, [`run_file`] one test. Must not know
//! what the tools do.

mod builtin;
mod cli;
mod discover;
mod exec;
mod feature;
mod local;
mod python;
mod record;
mod report;
mod script;
mod substitute;
mod syntax;
mod update;

#[cfg(test)]
mod tests;

pub use cli::main;
pub use record::records_folder;

use super::filecheck;
use exec::{Broken, Shell};
use script::{LineKind, RunLine, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use substitute::Substitutions;

/// What a tool is started with.
pub struct Call<'a> {
    /// Name and arguments.
    pub args: &'a [OsString],
    /// The directory that relative paths start from; not that of the process.
    pub directory: &'a Path,
    /// The environment; not that of the process.
    pub environment: &'a BTreeMap<String, String>,
    /// The standard input.
    pub stdin: &'a mut dyn Read,
    /// The standard output.
    pub out: &'a mut dyn Write,
    /// The error stream.
    pub err: &'a mut dyn Write,
}

/// A tool that runs in this process and gives its exit status.
pub type Tool = Arc<dyn Fn(Call<'_>) -> i32 + Send + Sync>;

/// Makes a tool of a function that asks for no directory and no environment.
pub fn tool(
    run: impl Fn(&[OsString], &mut dyn Read, &mut dyn Write, &mut dyn Write) -> i32 + Send + Sync + 'static,
) -> Tool {
    Arc::new(move |call: Call<'_>| run(call.args, call.stdin, call.out, call.err))
}

/// How tests are found and run.
#[derive(Clone)]
pub struct Config {
    /// The name of the suite, for reports.
    pub name: String,
    /// The ends of file names that are tests, as `.ir`.
    pub suffixes: Vec<String>,
    /// The ends of file names that are tests where the file has a `RUN:` line.
    pub maybe: Vec<String>,
    /// Names of files and folders that hold no tests.
    pub excludes: Vec<String>,
    /// What `REQUIRES:` and its like may ask for.
    pub features: BTreeSet<String>,
    /// More substitutions: whole key, as `%name` or `%{name}`, and value.
    pub substitutions: Vec<(String, String)>,
    /// Tools by name.
    pub tools: BTreeMap<String, Tool>,
    /// The environment of tools and programs.
    pub environment: BTreeMap<String, String>,
    /// Where `%t` and `%T` lie. [`main`] removes it at the end; who calls [`run_file`] holds a [`TempFolder`].
    pub temp: PathBuf,
    /// Where it is kept how the tests of a folder ended; none keeps nothing.
    pub records: Option<PathBuf>,
    /// The first word of the names of configuration files in Python.
    pub prefix: String,
    /// Time that one test may take.
    pub time_limit: Option<Duration>,
    /// How often a failing test is run again, where it does not say so itself.
    pub retries: usize,
    /// Tests that run in no way: a local configuration says that the folder is not for this place.
    pub unsupported: bool,
    /// Rewrite the checks of tests that fail.
    pub update: bool,
    /// Draw a progress bar; for terminals.
    pub progress: bool,
}

impl Default for Config {
    fn default() -> Self {
        let check: Tool = Arc::new(|call: Call<'_>| {
            let options = call.environment.get("FILECHECK_OPTS").map(String::as_str);
            filecheck::main_in(call.directory, call.args, options, call.stdin, call.out, call.err)
        });
        Config {
            name: "tests".into(),
            suffixes: Vec::new(),
            maybe: Vec::new(),
            excludes: vec!["Output".into(), "Inputs".into()],
            features: BTreeSet::new(),
            substitutions: Vec::new(),
            tools: [("FileCheck".to_string(), check)].into(),
            environment: inherited(),
            temp: std::env::temp_dir().join(format!("flambeau-lit-{}", std::process::id())),
            records: None,
            prefix: "lit".into(),
            time_limit: None,
            retries: 0,
            unsupported: false,
            update: false,
            progress: false,
        }
    }
}

/// A folder that goes when this does, with everything in it.
#[derive(Debug)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// Takes care of a folder, which need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> TempFolder {
        TempFolder(path.into())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for TempFolder {
    fn drop(&mut self) {
        // It may never have been made.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The part of our environment that programs need to start.
fn inherited() -> BTreeMap<String, String> {
    let names = ["PATH", "HOME", "TMPDIR", "TMP", "TEMP", "LD_LIBRARY_PATH", "SYSTEMROOT"];
    let known = |name: &&str| Some((name.to_string(), std::env::var(name).ok()?));
    let mut environment: BTreeMap<String, String> = names.iter().filter_map(known).collect();
    environment.insert("LANG".into(), "C".into());
    environment
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not run: it asks for what is not there.
    Unsupported,
    /// As wanted.
    Pass,
    /// As wanted, though not at once.
    FlakyPass,
    /// It failed, and says it would.
    ExpectedFail,
    /// It is no good test.
    Unresolved,
    /// It took too long.
    TimedOut,
    /// It failed.
    Fail,
    /// It says it would fail, and did not.
    UnexpectedPass,
}

impl Status {
    /// All, in the order of reports.
    pub const ALL: [Status; 8] = [
        Status::Unsupported,
        Status::Pass,
        Status::FlakyPass,
        Status::ExpectedFail,
        Status::Unresolved,
        Status::TimedOut,
        Status::Fail,
        Status::UnexpectedPass,
    ];

    /// The word in front of a test's name.
    pub fn code(self) -> &'static str {
        match self {
            Status::Unsupported => "UNSUPPORTED",
            Status::Pass => "PASS",
            Status::FlakyPass => "FLAKYPASS",
            Status::ExpectedFail => "XFAIL",
            Status::Unresolved => "UNRESOLVED",
            Status::TimedOut => "TIMEOUT",
            Status::Fail => "FAIL",
            Status::UnexpectedPass => "XPASS",
        }
    }

    /// The word in a summary.
    pub fn label(self) -> &'static str {
        match self {
            Status::Unsupported => "Unsupported",
            Status::Pass => "Passed",
            Status::FlakyPass => "Passed With Retry",
            Status::ExpectedFail => "Expectedly Failed",
            Status::Unresolved => "Unresolved",
            Status::TimedOut => "Timed Out",
            Status::Fail => "Failed",
            Status::UnexpectedPass => "Unexpectedly Passed",
        }
    }

    /// Whether it makes the whole run fail.
    pub fn is_failure(self) -> bool {
        !matches!(self, Status::Unsupported | Status::Pass | Status::FlakyPass | Status::ExpectedFail)
    }
}

/// How a test ended, and what it wrote.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// How it ended.
    pub status: Status,
    /// The commands and what they wrote, or why it was not run.
    pub output: String,
    /// The time it took.
    pub elapsed: Duration,
}

/// Runs one test file.
pub fn run_file(path: &Path, config: &Config) -> Outcome {
    let start = Instant::now();
    let finish = |status, output| Outcome { status, output, elapsed: start.elapsed() };
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    if config.unsupported {
        return finish(Status::Unsupported, "Test is unsupported in this folder".into());
    }
    let text = match std::fs::read(&path) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => return finish(Status::Unresolved, format!("{}: {error}", path.display())),
    };
    let script = match script::parse(&text) {
        Ok(script) => script,
        Err(error) => return finish(Status::Unresolved, error),
    };
    match gate(&script, config) {
        Err(error) => finish(Status::Unresolved, error),
        Ok(Gate::Closed(reason)) => finish(Status::Unsupported, reason),
        Ok(Gate::Open { fails }) => {
            if !script.lines.iter().any(|line| line.kind == LineKind::Run) {
                return finish(Status::Unresolved, "Test has no 'RUN:' line".into());
            }
            let (mut status, mut output) = run_script(&path, &script, config);
            let mut left = if fails { 0 } else { script.retries.unwrap_or(config.retries) };
            while status == Status::Fail && left > 0 {
                left -= 1;
                let before = output;
                (status, output) = run_script(&path, &script, config);
                output = format!("{before}# run again:\n{output}");
                if status == Status::Pass {
                    status = Status::FlakyPass;
                }
            }
            if status == Status::Fail && config.update && !fails {
                match update::update(&path, &text, &script, config) {
                    Ok(true) => {
                        let note = output;
                        (status, output) = run_script(&path, &script, config);
                        output = format!("{note}# the checks were rewritten; run again:\n{output}");
                    }
                    Ok(false) => output.push_str("# no checks to rewrite\n"),
                    Err(error) => output.push_str(&format!("# the checks could not be rewritten: {error}\n")),
                }
            }
            let status = match (status, fails) {
                (Status::Fail | Status::TimedOut, true) => Status::ExpectedFail,
                (Status::Pass, true) => Status::UnexpectedPass,
                (status, _) => status,
            };
            finish(status, output)
        }
    }
}

/// Whether a file has a `RUN:` line.
fn has_run_lines(path: &Path) -> bool {
    let text = std::fs::read(path).unwrap_or_default();
    let script = script::parse(&String::from_utf8_lossy(&text)).unwrap_or_default();
    script.lines.iter().any(|line| line.kind == LineKind::Run)
}

/// The names of features in `REQUIRES:`, `UNSUPPORTED:` and `XFAIL:` lines of a file.
fn used_features(path: &Path) -> BTreeSet<String> {
    let text =
        std::fs::read(path).map(|text| String::from_utf8_lossy(&text).into_owned()).unwrap_or_default();
    let script = script::parse(&text).unwrap_or_default();
    let items = script.requires.iter().chain(&script.unsupported).chain(&script.xfail);
    items.flat_map(|(_, text)| feature::names(text)).collect()
}

/// Whether a test says that it fails here.
fn says_it_fails(test: &discover::Test) -> bool {
    let text = std::fs::read(&test.path).unwrap_or_default();
    let script = script::parse(&String::from_utf8_lossy(&text)).unwrap_or_default();
    matches!(gate(&script, &test.config), Ok(Gate::Open { fails: true }))
}

/// Whether a test runs here.
enum Gate {
    /// It does not, for this reason.
    Closed(String),
    /// It does; `fails` says what it expects of itself.
    Open { fails: bool },
}

fn gate(script: &Script, config: &Config) -> Result<Gate, String> {
    let holds = |keyword: &str, (line, text): &(usize, String)| {
        feature::holds(text, &config.features)
            .map_err(|error| format!("{error}\nin {keyword} directive on test line {line}"))
    };
    let mut missing = Vec::new();
    for item in &script.requires {
        if !holds("REQUIRES:", item)? {
            missing.push(item.1.as_str());
        }
    }
    let mut present = Vec::new();
    for item in &script.unsupported {
        if holds("UNSUPPORTED:", item)? {
            present.push(item.1.as_str());
        }
    }
    let mut fails = false;
    for item in &script.xfail {
        fails |= item.1 == "*" || holds("XFAIL:", item)?;
    }
    if !missing.is_empty() {
        let list = missing.join(", ");
        return Ok(Gate::Closed(format!("Test requires the following unavailable features: {list}")));
    }
    if !present.is_empty() {
        let list = present.join(", ");
        return Ok(Gate::Closed(format!(
            "Test does not support the following features and/or targets: {list}"
        )));
    }
    Ok(Gate::Open { fails })
}

/// What the system says of errors that tests expect, by the names that LLVM's tests know them by.
const ERRORS: [(&str, &str); 4] = [
    ("EACCES", "Permission denied"),
    ("EINVAL", "Invalid argument"),
    ("EISDIR", "Is a directory"),
    ("ENOENT", "No such file or directory"),
];

/// The substitutions that every test has.
fn substitutions(path: &Path, config: &Config) -> Substitutions {
    let show = |path: &Path| path.display().to_string();
    let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("/"));
    // Two tests of one name in two folders must not share files.
    let temp = config.temp.join(folder.strip_prefix("/").unwrap_or(folder));
    let base = temp.join(format!("{file_name}.tmp"));
    let mut all = Substitutions::default();
    // LLVM's own name for this, so that tests of FileCheck itself run unchanged.
    all.set("%ProtectFileCheckOutput", "env -u FILECHECK_OPTS");
    all.set("%python", "python3");
    all.set("%{reveal-ansi-escapes}", "reveal-ansi-escapes");
    for (name, words) in ERRORS {
        all.set(format!("%errc_{name}"), format!("'{words}'"));
    }
    for (key, value) in &config.substitutions {
        all.set(key, value);
    }
    for slash in ["%", "%/"] {
        all.set(format!("{slash}s"), show(path));
        all.set(format!("{slash}S"), show(folder));
        all.set(format!("{slash}p"), show(folder));
        all.set(format!("{slash}t"), show(&base));
        all.set(format!("{slash}T"), show(&temp));
    }
    for (letter, path) in [("s", path), ("S", folder), ("p", folder), ("t", &base), ("T", &temp)] {
        let text = show(path);
        // Of a file that is not there yet the folder is.
        let real = path.canonicalize().or_else(|_| {
            let folder = path.parent().unwrap_or(path).canonicalize()?;
            Ok::<_, std::io::Error>(folder.join(path.file_name().unwrap_or_default()))
        });
        let real = show(&real.unwrap_or_else(|_| path.to_path_buf()));
        all.set(format!("%{{{letter}:real}}"), &real);
        all.set(format!("%{{/{letter}:real}}"), &real);
        // For `s@from@to@` of sed.
        all.set(format!("%{{/{letter}:regex_replacement}}"), text.replace('@', "\\@").replace('&', "\\&"));
        all.set(format!("%:{letter}"), text.trim_start_matches('/'));
    }
    all.set("%/et", show(&base));
    all.set("%basename_t", &file_name);
    all.set("%{s:basename}", &file_name);
    all.set("%{t:stem}", &file_name);
    for name in ["%{fs-src-root}", "%{fs-tmp-root}", "%{fs-sep}"] {
        all.set(name, "/");
    }
    all.set("%{pathsep}", if cfg!(windows) { ";" } else { ":" });
    all
}

fn run_script(path: &Path, script: &Script, config: &Config) -> (Status, String) {
    let mut all = substitutions(path, config);
    let Some(temp) = all.values.get("%T").map(PathBuf::from) else {
        return (Status::Unresolved, "no folder for temporary files".into());
    };
    if let Err(error) = std::fs::create_dir_all(&temp) {
        return (Status::Unresolved, format!("{}: {error}", temp.display()));
    }
    let mut shell = Shell {
        config,
        directory: path.parent().map(Path::to_path_buf).unwrap_or_default(),
        left: Vec::new(),
        environment: with_temp(config, &temp),
        deadline: config.time_limit.map(|limit| Instant::now() + limit),
        log: String::new(),
    };
    let mut status = Status::Pass;
    for line in &script.lines {
        match run_line(line, &mut all, &mut shell, config) {
            Ok(0) => {}
            Ok(code) => {
                shell.log.insert_str(0, &format!("Exit Code: {code}\n\nCommand Output (stdout):\n--\n"));
                status = Status::Fail;
            }
            Err(Broken::TimedOut) => {
                let limit = config.time_limit.unwrap_or_default();
                shell
                    .log
                    .push_str(&format!("# error: reached the time limit of {} s\n", limit.as_secs_f64()));
                status = Status::TimedOut;
            }
            Err(Broken::Bad(error)) => {
                shell.log.push_str(&format!("# error on line {}: {error}\n", line.line));
                status = Status::Unresolved;
            }
        }
        if status != Status::Pass {
            break;
        }
    }
    (status, shell.log)
}

/// The environment, with a folder for temporary files that goes with the test's own.
fn with_temp(config: &Config, temp: &Path) -> BTreeMap<String, String> {
    let mut environment = config.environment.clone();
    for name in ["TMPDIR", "TMP", "TEMP"] {
        environment.insert(name.into(), temp.display().to_string());
    }
    environment
}

/// Runs a line or takes its definition; gives the exit status.
fn run_line(
    line: &RunLine,
    all: &mut Substitutions,
    shell: &mut Shell<'_>,
    config: &Config,
) -> Result<i32, Broken> {
    if line.kind != LineKind::Run {
        all.define(&line.text, line.kind == LineKind::Redefine).map_err(Broken::Bad)?;
        return Ok(0);
    }
    let text = all.expand(&line.text, &config.features).map_err(Broken::Bad)?;
    shell.log.push_str(&format!("# RUN: at line {}\n{text}\n", line.line));
    let pipelines = syntax::parse(&text).map_err(Broken::Bad)?;
    shell.run(&pipelines)
}
