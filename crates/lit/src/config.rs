//! How tests are found and run, and the tools that run in this process. It knows nothing of tests.

use flambeau_filecheck as filecheck;
use flambeau_files as files;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

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

/// Extracts the knobs of a command from its arguments; empty if it has none.
pub type Knobs = Arc<dyn Fn(&[String]) -> Vec<String> + Send + Sync>;

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
    /// Where `%t` and `%T` lie. [`crate::main`] removes it at the end; who calls [`crate::run_file`] holds a [`flambeau_files::Temporary`].
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
