//! lit: runs test files by the `RUN:` lines in them.
//!
//! LLVM's keywords and substitutions. The tools of a [`Config`] run in this process, `FileCheck` and a handful of
//! shell builtins too; other commands are programs. [`main`] is the command, [`run_file`] one test. Must not know
//! what the tools do.

#![forbid(unsafe_code)]

mod builtin;
mod changed;
mod cli;
mod difference;
mod discover;
mod exec;
mod feature;
mod inside;
pub mod lint;
mod local;
mod mutate;
mod process;
mod python;
mod python_value;
mod record;
mod report;
mod script;
mod substitute;
mod syntax;
mod reporter;
mod update;
mod variables;
mod args;
mod workers;

/// The programs of the README, which are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

#[cfg(test)]
mod tests;

pub use cli::main;
pub use mutate::Knobs;
pub use process::end_programs;
pub use record::records_folder;
pub use variables::with_variables;

use exec::{Broken, Environment, Shell};
use flambeau_filecheck as filecheck;
use flambeau_files as files;
use script::{LineKind, Script};
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use substitute::Substitutions;
use syntax::Pipeline;

/// Most bytes of a test file.
const MAX_TEST: u64 = 256 << 20;

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
    /// Only tests run that need one of these features; none: all do.
    pub limit_to_features: Vec<String>,
    /// More substitutions: whole key, as `%name` or `%{name}`, and value.
    pub substitutions: Vec<(String, String)>,
    /// Tools by name.
    pub tools: BTreeMap<String, Tool>,
    /// The environment of tools and programs.
    pub environment: BTreeMap<String, String>,
    /// Where `%t` and `%T` lie. [`main`] removes it at the end; who calls [`run_file`] holds a [`flambeau_files::Temporary`].
    pub temp: PathBuf,
    /// What the command line says with `-D NAME=VALUE`, for configurations that ask.
    pub params: BTreeMap<String, String>,
    /// Command lines that run before those of every test.
    pub preamble: Vec<String>,
    /// How often substitutions are gone through again while that changes something; none goes through them once.
    pub rounds: Option<usize>,
    /// Most letters of one output that are shown of a command.
    pub output_limit: Option<usize>,
    /// Commands are lines of the system's shell instead of our own.
    pub external: bool,
    /// Tests are only those that are named.
    pub standalone: bool,
    /// The folder that the names of tests start from, where a configuration says so.
    pub root: Option<PathBuf>,
    /// Where it is kept how the tests of a folder ended; none keeps nothing.
    pub records: Option<PathBuf>,
    /// The first part of the names of configuration files in Python.
    pub prefix: String,
    /// Time that one test may take.
    pub time_limit: Option<Duration>,
    /// How often a failing test is run again, where it does not say so itself.
    pub retries: usize,
    /// Tests that run in no way: a local configuration says that the folder is not for this place.
    pub unsupported: bool,
    /// Take every test that could run for passed, without running it.
    pub no_execute: bool,
    /// Rewrite the checks of tests that fail.
    pub update: bool,
    /// Of the new checks keep only those of lines that tools do not write if these knobs make them leave out their work.
    pub only_changed: Option<Knobs>,
    /// Draw a progress bar; for terminals.
    pub progress: bool,
    /// How `--mutate` and `--update-changed` make tools leave out work, if the command line does not say.
    pub knobs: Option<Knobs>,
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
            limit_to_features: Vec::new(),
            substitutions: Vec::new(),
            tools: [("FileCheck".to_string(), check)].into(),
            environment: inherited(),
            temp: files::unused_name("lit"),
            params: BTreeMap::new(),
            preamble: Vec::new(),
            rounds: None,
            output_limit: None,
            external: false,
            standalone: false,
            root: None,
            records: None,
            prefix: "lit".into(),
            time_limit: None,
            retries: 0,
            unsupported: false,
            no_execute: false,
            update: false,
            only_changed: None,
            progress: false,
            knobs: None,
        }
    }
}

/// The part of our environment that programs need to start.
fn inherited() -> BTreeMap<String, String> {
    let names = "PATH HOME TMPDIR TMP TEMP LD_LIBRARY_PATH LIBRARY_PATH LD_PRELOAD SYSTEMROOT TERM CLANG LLDB \
                 LLVM_SYMBOLIZER_PATH LLVM_PROFILE_FILE ASAN_SYMBOLIZER_PATH MSAN_SYMBOLIZER_PATH TSAN_SYMBOLIZER_PATH \
                 UBSAN_SYMBOLIZER_PATH ASAN_OPTIONS LSAN_OPTIONS HWASAN_OPTIONS MSAN_OPTIONS TSAN_OPTIONS UBSAN_OPTIONS";
    let known = |name: &str| Some((name.to_string(), std::env::var(name).ok()?));
    let mut environment: BTreeMap<String, String> = names.split(' ').filter_map(known).collect();
    environment.insert("LANG".into(), "C".into());
    environment.insert("LLVM_DISABLE_CRASH_REPORT".into(), "1".into());
    environment
}

/// How a test ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Status {
    /// Not chosen.
    Excluded,
    /// Chosen and not begun: there was no time, or too much failed before.
    Skipped,
    /// Not run: it asks for what is not there.
    Unsupported,
    /// As wanted.
    Pass,
    /// As wanted, though not at once.
    FlakyPass,
    /// It failed, and says it would.
    ExpectedFail,
    /// It is not a good test.
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
    pub const ALL: [Status; 10] = [
        Status::Excluded,
        Status::Skipped,
        Status::Unsupported,
        Status::Pass,
        Status::FlakyPass,
        Status::ExpectedFail,
        Status::Unresolved,
        Status::TimedOut,
        Status::Fail,
        Status::UnexpectedPass,
    ];

    /// The label in front of a test's name.
    pub fn code(self) -> &'static str {
        match self {
            Status::Excluded => "EXCLUDED",
            Status::Skipped => "SKIPPED",
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

    /// The label in a summary.
    pub fn label(self) -> &'static str {
        match self {
            Status::Excluded => "Excluded",
            Status::Skipped => "Skipped",
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
        matches!(self, Status::Unresolved | Status::TimedOut | Status::Fail | Status::UnexpectedPass)
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
    /// How often it ran.
    pub attempts: usize,
    /// How often it might run.
    pub most_attempts: usize,
}

impl Outcome {
    /// One that needed no run.
    fn of(status: Status, output: impl Into<String>) -> Outcome {
        Outcome { status, output: output.into(), elapsed: Duration::ZERO, attempts: 1, most_attempts: 1 }
    }
}

/// Runs one test file.
pub fn run_file(path: &Path, config: &Config) -> Outcome {
    let start = Instant::now();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let mut outcome = run_here(&path, config);
    outcome.elapsed = start.elapsed();
    outcome
}

fn run_here(path: &Path, config: &Config) -> Outcome {
    if config.unsupported {
        return Outcome::of(Status::Unsupported, "Test is unsupported");
    }
    let text = match files::read(path, MAX_TEST) {
        Ok(text) => String::from_utf8_lossy(&text).into_owned(),
        Err(error) => return Outcome::of(Status::Unresolved, format!("{}: {error}", path.display())),
    };
    let parsed = if config.preamble.is_empty() { script::parse(&text) } else { script::parse_any(&text) };
    let script = match parsed {
        Ok(script) => script,
        Err(error) => return Outcome::of(Status::Unresolved, error),
    };
    let broken = |error: String| {
        Outcome::of(
            Status::Unresolved,
            format!("Exception during script execution:\nValueError: {error}\n\n"),
        )
    };
    match closed(&script, config) {
        Err(error) => return broken(error),
        Ok(Some(reason)) => return Outcome::of(Status::Unsupported, reason),
        Ok(None) => {}
    }
    let mut outcome = match run_script(path, &script, config) {
        Ok(outcome) => outcome,
        Err(error) => return broken(error),
    };
    if outcome.status == Status::Fail && config.update && !fails(&script, config).unwrap_or(false) {
        outcome = match rewritten(path, text, &script, config, outcome) {
            Ok(outcome) => outcome,
            Err(error) => return broken(error),
        };
    }
    match fails(&script, config) {
        Err(error) => return Outcome::of(Status::Unresolved, error),
        Ok(true) if outcome.status == Status::Fail => outcome.status = Status::ExpectedFail,
        Ok(true) if outcome.status == Status::Pass => outcome.status = Status::UnexpectedPass,
        Ok(_) => {}
    }
    outcome
}

/// Rewrites the checks of a test that failed and runs it again. New checks may move the lines that a tool names in its output; the
/// second rewrite does not change their number.
fn rewritten(
    path: &Path,
    text: String,
    script: &Script,
    config: &Config,
    mut outcome: Outcome,
) -> Result<Outcome, String> {
    const MOST: usize = 2;
    let mut text = text;
    for _ in 0..MOST {
        match update::update(path, &text, script, config) {
            Ok(true) => {}
            Ok(false) => {
                outcome.output.push_str("# no checks to rewrite\n");
                break;
            }
            Err(error) => {
                outcome.output.push_str(&format!("# the checks could not be rewritten: {error}\n"));
                break;
            }
        }
        let note = format!("{}# the checks were rewritten; run again:\n", outcome.output);
        let again = run_script(path, script, config)?;
        outcome = Outcome { output: note + &again.output, ..again };
        let Ok(new) = files::read(path, MAX_TEST) else { break };
        text = String::from_utf8_lossy(&new).into_owned();
        if outcome.status != Status::Fail {
            break;
        }
    }
    Ok(outcome)
}

/// Whether a file has a `RUN:` line.
fn has_run_lines(path: &Path) -> bool {
    let text = files::read(path, MAX_TEST).unwrap_or_default();
    let script = script::parse_any(&String::from_utf8_lossy(&text)).unwrap_or_default();
    script.lines.iter().any(|line| line.kind == LineKind::Run)
}

/// The names of features in `REQUIRES:`, `UNSUPPORTED:` and `XFAIL:` lines of a file.
fn used_features(path: &Path) -> BTreeSet<String> {
    let text = files::read(path, MAX_TEST)
        .map(|text| String::from_utf8_lossy(&text).into_owned())
        .unwrap_or_default();
    let script = script::parse_any(&text).unwrap_or_default();
    let items = script.requires.iter().chain(&script.unsupported).chain(&script.xfail);
    items.flat_map(|text| feature::names(text)).collect()
}

/// Whether a test says that it fails here.
fn says_it_fails(test: &discover::Test) -> bool {
    let text = files::read(&test.path, MAX_TEST).unwrap_or_default();
    let script = script::parse(&String::from_utf8_lossy(&text)).unwrap_or_default();
    fails(&script, &test.config).unwrap_or(false)
}

/// Whether a test expects to fail.
fn fails(script: &Script, config: &Config) -> Result<bool, String> {
    for item in &script.xfail {
        let message = |error| format!("Error in XFAIL list:\n{error}");
        if item == "*" || feature::holds(item, &config.features).map_err(message)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Why a test file does not run with a configuration, if it does not.
pub fn skip_reason(path: &Path, config: &Config) -> Option<String> {
    let text = files::read(path, MAX_TEST).ok()?;
    let script = script::parse(&String::from_utf8_lossy(&text)).ok()?;
    closed(&script, config).ok()?
}

/// Why a test does not run here, if it does not.
fn closed(script: &Script, config: &Config) -> Result<Option<String>, String> {
    let chosen = |list: &[String], keyword: &str, wanted: bool| {
        let mut found = Vec::new();
        for item in list {
            let message = |error| format!("Error in {keyword} list:\n{error}");
            if feature::holds(item, &config.features).map_err(message)? == wanted {
                found.push(item.clone());
            }
        }
        Ok::<_, String>(found.join(", "))
    };
    let missing = chosen(&script.requires, "REQUIRES", false)?;
    if !missing.is_empty() {
        return Ok(Some(format!("Test requires the following unavailable features: {missing}")));
    }
    let present = chosen(&script.unsupported, "UNSUPPORTED", true)?;
    if !present.is_empty() {
        return Ok(Some(format!("Test does not support the following features and/or targets: {present}")));
    }
    let limits = &config.limit_to_features;
    let left: BTreeSet<String> = config.features.iter().filter(|f| !limits.contains(f)).cloned().collect();
    let is_needed = |item: &String| feature::holds(item, &left).map(|holds| !holds);
    if limits.is_empty() || script.requires.iter().map(is_needed).any(|needed| needed == Ok(true)) {
        return Ok(None);
    }
    let limits = limits.join(", ");
    Ok(Some(format!("Test does not require any of the features specified in limit_to_features: {limits}")))
}

/// What the system says of errors that tests expect, by the names that LLVM's tests know them by.
const ERRORS: [(&str, &str); 4] = [
    ("EACCES", "Permission denied"),
    ("EINVAL", "Invalid argument"),
    ("EISDIR", "Is a directory"),
    ("ENOENT", "No such file or directory"),
];

/// The substitutions that every test has. What a folder says comes first.
fn substitutions(path: &Path, config: &Config) -> Substitutions {
    let show = |path: &Path| path.display().to_string();
    let file_name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new("/"));
    let temp = temp_folder(path, config);
    let base = temp.join(format!("{file_name}.tmp"));
    let mut all = Substitutions::with_rounds(config.rounds);
    for (key, value) in &config.substitutions {
        all.add(key, value);
    }
    // LLVM's own name for this, so that tests of FileCheck itself run unchanged.
    all.add("%ProtectFileCheckOutput", "env -u FILECHECK_OPTS");
    all.add("%{python}", "python3");
    all.add("%python", "python3");
    all.add("%{reveal-ansi-escapes}", "reveal-ansi-escapes");
    for (name, message) in ERRORS {
        all.add(format!("%errc_{name}"), format!("'{message}'"));
    }
    all.add("%{pathsep}", if cfg!(windows) { ";" } else { ":" });
    all.add("%basename_t", &file_name);
    all.add("%{s:basename}", &file_name);
    all.add("%{s:stem}", file_name.rsplit_once('.').map_or(file_name.as_str(), |(stem, _)| stem));
    all.add("%{t:stem}", &file_name);
    for name in ["%{fs-src-root}", "%{fs-tmp-root}", "%{fs-sep}"] {
        all.add(name, "/");
    }
    all.add("%/et", show(&base));
    for (letter, path) in [("s", path), ("S", folder), ("p", folder), ("t", &base), ("T", &temp)] {
        let text = show(path);
        // Of a file that is not there yet the folder is.
        let real = path.canonicalize().or_else(|_| {
            let folder = path.parent().unwrap_or(path).canonicalize()?;
            Ok::<_, std::io::Error>(folder.join(path.file_name().unwrap_or_default()))
        });
        let real = show(&real.unwrap_or_else(|_| path.to_path_buf()));
        all.add(format!("%{letter}"), &text);
        all.add(format!("%/{letter}"), &text);
        all.add(format!("%{{{letter}:real}}"), &real);
        all.add(format!("%{{/{letter}:real}}"), &real);
        // For `s@from@to@` of sed.
        all.add(format!("%{{/{letter}:regex_replacement}}"), text.replace('@', "\\@").replace('&', "\\&"));
        all.add(format!("%:{letter}"), text.trim_start_matches('/'));
    }
    all
}

/// Where the temporary files of a test lie. Two tests of one name in two folders must not share files.
fn temp_folder(path: &Path, config: &Config) -> PathBuf {
    let folder = path.parent().unwrap_or(Path::new("/"));
    config.temp.join(folder.strip_prefix("/").unwrap_or(folder))
}

/// A command line that is ready to run.
struct Line {
    /// What it is, for people.
    label: String,
    text: String,
    pipelines: Vec<Pipeline>,
}

/// Runs the lines of a test, again if it fails and may be run again. The error is what makes it no test.
fn run_script(path: &Path, script: &Script, config: &Config) -> Result<Outcome, String> {
    let mut all = substitutions(path, config);
    let mut lines = Vec::new();
    for text in &config.preamble {
        lines.push(("preamble command line".to_string(), all.expand(text, &config.features)?));
    }
    for line in &script.lines {
        match line.kind {
            LineKind::Run => {
                let label = format!("{} at line {}", line.kind.keyword(), line.line);
                lines.push((label, all.expand(&line.text, &config.features)?));
            }
            _ => all.define(line)?,
        }
    }
    let mut ready = Vec::new();
    for (label, text) in lines {
        let parsed = match text.is_empty() || config.external {
            true => Ok(Vec::new()),
            false => syntax::parse(&text),
        };
        match parsed {
            Ok(pipelines) => ready.push(Line { label, text, pipelines }),
            Err(_) => {
                let log = format!("shell parser error on {label}: {text}").replace('\n', "\n# ");
                return Ok(Outcome::of(Status::Unresolved, output("1", None, &format!("# {log}\n"))));
            }
        }
    }
    if config.no_execute {
        return Ok(Outcome::of(Status::Pass, ""));
    }
    let most = script.retries.unwrap_or(config.retries) + 1;
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (mut status, output) = run_once(path, &ready, config)?;
        if status == Status::Fail && attempts < most {
            continue;
        }
        if status == Status::Pass && attempts > 1 {
            status = Status::FlakyPass;
        }
        return Ok(Outcome { attempts, most_attempts: most, ..Outcome::of(status, output) });
    }
}

/// Runs all lines once.
fn run_once(path: &Path, lines: &[Line], config: &Config) -> Result<(Status, String), String> {
    let temp = temp_folder(path, config);
    std::fs::create_dir_all(&temp).map_err(|error| format!("{}: {error}", temp.display()))?;
    let mut shell = shell(path, config);
    if config.external {
        let lines: Vec<(&str, &str)> =
            lines.iter().map(|line| (line.label.as_str(), line.text.as_str())).collect();
        let (status, code) = match shell.external(&lines) {
            Ok(0) => (Status::Pass, 0),
            Ok(code) => (Status::Fail, code),
            Err(Broken::TimedOut) => (Status::TimedOut, exec::KILLED),
            Err(Broken::Bad(error) | Broken::Refused(error)) => return Err(error),
        };
        return Ok((status, shell.output(status, code)));
    }
    for line in lines {
        shell.log.push_str(&match line.text.is_empty() {
            true => format!("# {} has no command after substitutions\n", line.label),
            false => format!("# {}\n{}\n", line.label, line.text),
        });
        let (status, code) = match shell.run(&line.pipelines) {
            Ok(0) => continue,
            Ok(code) => (Status::Fail, code),
            Err(Broken::Refused(_)) => (Status::Fail, exec::NOT_FOUND),
            Err(Broken::TimedOut) => (Status::TimedOut, exec::KILLED),
            Err(Broken::Bad(error)) => return Err(error),
        };
        return Ok((status, shell.output(status, code)));
    }
    Ok((Status::Pass, shell.output(Status::Pass, 0)))
}

/// A shell for a test, in the folder of the test.
fn shell<'c>(path: &Path, config: &'c Config) -> Shell<'c> {
    let mut variables = config.environment.clone();
    let temp = temp_folder(path, config);
    for name in ["TMPDIR", "TMP", "TEMP", "TEMPDIR"] {
        variables.insert(name.into(), temp.display().to_string());
    }
    let below = config.root.as_ref().and_then(|root| path.strip_prefix(root).ok());
    let name = below.or(path.file_name().map(Path::new)).unwrap_or(path).display().to_string();
    variables.insert("LIT_CURRENT_TESTCASE".into(), format!("{} :: {name}", config.name));
    let directory = path.parent().map(Path::to_path_buf).unwrap_or_default();
    Shell {
        config,
        environment: Environment { directory, variables, ..Environment::default() },
        left: Vec::new(),
        deadline: config.time_limit.map(|limit| Instant::now() + limit),
        log: String::new(),
        errors: String::new(),
    }
}

impl Shell<'_> {
    /// How a test that ended so is reported.
    fn output(&self, status: Status, code: i32) -> String {
        let limit = self.config.time_limit.filter(|_| status == Status::TimedOut);
        let mut text = output(&code.to_string(), limit, &self.log);
        if !self.errors.is_empty() {
            text.push_str(&format!("Command Output (stderr):\n--\n{}\n--\n", self.errors));
        }
        text
    }
}

/// The frame around what commands did.
fn output(code: &str, limit: Option<Duration>, log: &str) -> String {
    let limit = limit.map(|limit| format!("Timeout: Reached timeout of {} seconds\n", limit.as_secs_f64()));
    let log =
        if log.is_empty() { String::new() } else { format!("Command Output (stdout):\n--\n{log}\n--\n") };
    format!("Exit Code: {code}\n{}\n{log}", limit.unwrap_or_default())
}
