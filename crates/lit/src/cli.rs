//! The command `lit`: its options, the threads, the progress bar.

use super::conditions::{says_it_fails, used_features};
use super::config::{Config, Knobs};
use super::discover::{Test, discover};
use super::outcome::{Outcome, Status};
use super::report::{self, Detail, Level};
use super::reporter::Reporter;
use super::run::run_file;
use super::{lint, mutate, record, workers};
use flambeau_files as files;
use regex::Regex;
use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

const HELP: &str = "\
USAGE: lit [options] TEST_PATH...    (@FILE: paths that a file lists)

Runs the tests in files and folders by the RUN: lines in them. A file lit.toml in a folder says what is special
there; lit.local.cfg and its like are read as far as they are plain assignments. Exit status: 0 all tests passed, 1 a test failed, 2 no tests or invalid options.

What is shown:
  -v, --verbose                the output of tests that fail
  -a, --show-all               the output of all tests
  -q, --quiet                  failures only, with their number at the end
  -s, --succinct               failures only, with a progress bar
  --print-result-after LEVEL   which results to print: off, failed,
                               failed-or-flaky, all
  --test-output LEVEL          which tests' commands and outputs to print: off, failed, all
  --diagnostic-level LEVEL     diagnostic level of lit itself: error, warning, note
  --terse-summary, --no-terse-summary
  --progress-bar, --no-progress-bar
  --show-pass, --show-flakypass, --show-unsupported, --show-xfail, --show-xpass
                               list such tests at the end
  -r, --relative-paths         name files in the lists at the end, from the current folder
  --time-tests[=N]             list the slowest tests and the distribution of times
  --time-trace-output FILE     write when each test ran to FILE, for chrome://tracing
  -o FILE, --output FILE       write the results to FILE as JSON
  --xunit-xml-output FILE      write the results to FILE as JUnit's XML
  --report-failures-only       write only failures to these files

How tests run:
  -j N, --threads N, --workers N
                               number of tests to run in parallel
  --timeout SECONDS            per-test timeout
  --max-retries-per-test N     rerun a failing test up to N times, unless it has its own ALLOW_RETRIES:
  --max-failures N             stop after N failures
  --max-time SECONDS           start no test after SECONDS
  --keep                       keep the temporary files of tests, and print where they are
  --no-execute                 report every test that could run as passed, without running it
  --update, --update-tests     rewrite the checks of tests that fail, and write those of tests without checks
  --update-changed[=TOOL:OPTION]
                               the same, but only with checks of lines that the tools do not write if their work is left
                               out ({} in OPTION is replaced by 0)
  --path FOLDER                search for programs in FOLDER first
  --config-prefix NAME         read NAME.cfg instead of lit.cfg
  --skip-test-time-recording   do not record times and failures of this run
  -D FEATURE                   add a feature that tests may require
  -D NAME=VALUE, --param NAME=VALUE
                               define %{NAME}, and add the feature NAME=VALUE
  --ignore-fail                exit with status 0 even if tests fail
  --allow-empty-runs           allow empty runs

Which tests run:
  --filter REGEX               tests whose name matches, case-insensitively
  --filter-out REGEX           all but those whose name matches
  --filter-failed              tests that failed in the last run
  --order ORDER                lexical: by name (the default); smart: failed tests first, then slow ones; random
  -i, --incremental            the same as --order smart
  --shuffle                    the same as --order random
  --seed N                     the random order with this number
  --max-tests N                the first N
  --num-shards M --run-shard N every Mth, from the Nth on
  --xfail LIST                 names, separated by ';', of tests that are expected to fail
  --xfail-not LIST             names of tests that are not, whatever their XFAIL says
  --unsupported LIST           names of tests that do not run here
  --exclude-xfail              leave out tests that are expected to fail
  --suffix .EXT                also treat files with this suffix as tests
  --show-tests                 list the tests and run none
  --show-suites                list the suite with its features, and run none
  --show-used-features         list the features that tests require, and run none

What is done instead of running them:
  --lint                       find lines that look like checks but are not: misspelt directives, missing colons, prefixes that
                               no RUN line reads, variables that are never used
  --mutate[=TOOL:OPTION]       let each tool skip work ({} in OPTION is 0, 1, 2, ...) and name the lines whose checks still hold
                               nevertheless; a line 'ALLOW_UNSEEN: OPTION why' of a test allows one

The options of LIT_OPTS come before those of the command line; LIT_FILTER, LIT_FILTER_OUT, LIT_NUM_SHARDS and
LIT_RUN_SHARD hold defaults. Not supported, and refused by name: valgrind (--vg), coverage of single tests, ResultDB.
";

struct Options {
    paths: Vec<PathBuf>,
    detail: Detail,
    threads: usize,
    filter: Option<Regex>,
    filter_out: Option<Regex>,
    max_failures: usize,
    xml: Option<PathBuf>,
    json: Option<PathBuf>,
    failures_only: bool,
    times: Option<usize>,
    max_tests: usize,
    shards: usize,
    shard: usize,
    xfail: Vec<String>,
    xfail_not: Vec<String>,
    unsupported: Vec<String>,
    relative: bool,
    show: Vec<Status>,
    list: Option<Listing>,
    order: Order,
    seed: Option<u64>,
    filter_failed: bool,
    exclude_xfail: bool,
    max_time: Option<Duration>,
    trace: Option<PathBuf>,
    keep: bool,
    notes: bool,
    allow_empty: bool,
    ignore_fail: bool,
    examine: Option<Examine>,
    help: bool,
    version: bool,
}

/// What is done with tests instead of running them.
enum Examine {
    /// Lines that look like checks but are not.
    Lint,
    /// What no check sees when tools leave out work.
    Mutate(Knobs),
}

/// In which order tests run.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Order {
    Lexical,
    Smart,
    Random,
}

/// What is listed instead of running tests.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
struct Listing {
    tests: bool,
    suites: bool,
    features: bool,
}

/// The command. `args[0]` is the name it was called by. Gives 0 if all tests end well, 1 if one does not, 2 for
/// invalid options or paths without tests.
pub fn main(args: &[OsString], mut config: Config, out: &mut (dyn Write + Send), err: &mut dyn Write) -> i32 {
    match start(args, &mut config, out, err) {
        Ok(status) => status,
        Err(message) => {
            // A closed error stream leaves no way to report this.
            let _ = writeln!(err, "error: {message}");
            2
        }
    }
}

fn start(
    args: &[OsString],
    config: &mut Config,
    out: &mut (dyn Write + Send),
    err: &mut dyn Write,
) -> Result<i32, String> {
    let args: Vec<String> = args.iter().skip(1).map(|arg| arg.to_string_lossy().into_owned()).collect();
    let mut options = parse(&args, config)?;
    let message = |error: std::io::Error| error.to_string();
    if options.help {
        out.write_all(HELP.as_bytes()).map_err(message)?;
        return Ok(0);
    }
    if options.version {
        writeln!(out, "lit {} of Flambeau", env!("CARGO_PKG_VERSION")).map_err(message)?;
        return Ok(0);
    }
    let mut tests: Vec<Test> = Vec::new();
    let shared = Arc::new(config.clone());
    let mut notes = Vec::new();
    options.paths = listed_in(&options.paths)?;
    for path in &options.paths {
        tests.extend(discover(path, &shared, &mut notes)?);
    }
    let mut report = |text: String| {
        // A closed error stream leaves no way to report this.
        let _ = writeln!(err, "{text}");
    };
    for note in notes.iter().filter(|_| options.notes) {
        report(format!("note: {note}"));
    }
    if tests.is_empty() && !options.allow_empty {
        return Err("did not discover any tests for provided path(s)".into());
    }
    for test in tests.iter_mut().filter(|test| named(&options.unsupported, test)) {
        let config = Arc::clone(&test.config);
        test.config = Arc::new(Config { unsupported: true, ..Config::clone(&config) });
    }
    tests.sort_by_cached_key(Test::full);
    if let Some(listing) = options.list {
        out.write_all(listed(listing, &tests).as_bytes()).map_err(message)?;
        return Ok(0);
    }
    let known = remembered(&options, config);
    arrange(&mut tests, &options, &known, out).map_err(message)?;
    let fits = |regex: &Option<Regex>, test: &Test| regex.as_ref().map(|regex| regex.is_match(&test.full()));
    let chosen = |test: &Test| {
        fits(&options.filter, test) != Some(false)
            && fits(&options.filter_out, test) != Some(true)
            && (!options.filter_failed || known.get(&test.full()).is_some_and(|last| last.failed))
    };
    let (mut tests, mut others): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(chosen);
    if tests.is_empty() && !others.is_empty() {
        let problem = format!("filter did not match any tests (of {} discovered).  ", others.len());
        if !options.allow_empty {
            return Err(format!("{problem}Use '--allow-empty-runs' to suppress this error."));
        }
        report(format!("error: {problem}Suppressing error because '--allow-empty-runs' was specified."));
        return Ok(0);
    }
    if options.shards > 0 {
        let all = tests.len();
        let numbers: Vec<usize> = (options.shard..=all).step_by(options.shards).collect();
        let mut number = 0;
        let mine = |_: &Test| {
            number += 1;
            numbers.contains(&number)
        };
        let (left, right): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(mine);
        tests = left;
        others.extend(right);
        if options.notes {
            let mut first: Vec<String> = numbers.iter().take(3).map(ToString::to_string).collect();
            first.extend((numbers.len() > 3).then(|| "...".to_string()));
            report(format!(
                "note: Selecting shard {}/{} = size {}/{all} = tests #({}*k)+{} = [{}]",
                options.shard,
                options.shards,
                tests.len(),
                options.shards,
                options.shard,
                first.join(", ")
            ));
        }
        if tests.is_empty() {
            report(
                "warning: shard does not contain any tests.  Consider decreasing the number of shards."
                    .into(),
            );
            return Ok(0);
        }
    }
    if options.max_tests > 0 && tests.len() > options.max_tests {
        others.extend(tests.split_off(options.max_tests));
    }
    let is_well = match &options.examine {
        None => return run(&tests, &others, &options, config, (out, err)).map_err(message),
        Some(Examine::Lint) => lint::run(&tests, out).map_err(message)?,
        Some(Examine::Mutate(knobs)) => {
            mutate::run(&tests, options.threads, knobs, config, out).map_err(message)?
        }
    };
    Ok(i32::from(!is_well))
}

/// The paths, those that a file lists line by line in the place of `@FILE`.
fn listed_in(paths: &[PathBuf]) -> Result<Vec<PathBuf>, String> {
    let mut out = Vec::new();
    for path in paths {
        let Some(list) = path.to_str().and_then(|path| path.strip_prefix('@')) else {
            out.push(path.clone());
            continue;
        };
        let text = files::read_text(Path::new(list)).map_err(|error| format!("{list}: {error}"))?;
        out.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(PathBuf::from));
    }
    Ok(out)
}

/// What is known from runs before.
fn remembered(options: &Options, config: &Config) -> BTreeMap<String, record::Last> {
    let Some(folder) = &config.records else { return BTreeMap::new() };
    options.paths.iter().flat_map(|path| record::read(folder, path)).collect()
}

/// Brings tests into the order in which they run and are reported.
fn arrange(
    tests: &mut [Test],
    options: &Options,
    known: &BTreeMap<String, record::Last>,
    out: &mut (dyn Write + Send),
) -> std::io::Result<()> {
    match options.order {
        Order::Lexical => {}
        Order::Smart => tests.sort_by(|a, b| {
            let last = |test: &Test| known.get(&test.full()).copied().unwrap_or_default();
            let (a, b) = (last(a), last(b));
            b.failed.cmp(&a.failed).then(b.seconds.total_cmp(&a.seconds))
        }),
        Order::Random => {
            let now = || std::time::UNIX_EPOCH.elapsed().map_or(0, |time| u64::from(time.subsec_nanos()));
            let seed = options.seed.unwrap_or_else(now);
            writeln!(out, "-- Order: random, --seed {seed} --")?;
            // Fisher and Yates, numbers by splitmix64.
            let mut state = seed;
            for n in (1..tests.len()).rev() {
                state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                tests.swap(n, ((mixed ^ (mixed >> 31)) % (n as u64 + 1)) as usize);
            }
        }
    }
    Ok(())
}

/// Whether a list of the command line names a test.
fn named(list: &[String], test: &Test) -> bool {
    let full = test.full();
    list.iter().any(|name| *name == test.name || *name == full)
}

/// The text of a listing.
fn listed(listing: Listing, tests: &[Test]) -> String {
    let mut text = String::new();
    if listing.suites {
        text.push_str("-- Test Suites --\n");
        let mut suites: Vec<(&Config, usize)> = Vec::new();
        for test in tests {
            match suites
                .iter_mut()
                .find(|(config, _)| (&config.name, &config.root) == (&test.config.name, &test.config.root))
            {
                Some((_, count)) => *count += 1,
                None => suites.push((&*test.config, 1)),
            }
        }
        for (config, count) in suites {
            let features: Vec<&str> = config.features.iter().map(String::as_str).collect();
            text.push_str(&format!("  {} - {count} tests\n", config.name));
            if let Some(root) = &config.root {
                let root = root.display();
                text.push_str(&format!("    Source Root: {root}\n    Exec Root  : {root}\n"));
            }
            text.push_str(&format!("    Available Features: {}\n", features.join(" ")));
            let mut pairs: Vec<String> =
                config.substitutions.iter().map(|(key, value)| format!("{key} => {value}")).collect();
            pairs.sort();
            let blanks = format!("\n{}", " ".repeat(29));
            text.push_str(&format!("    Available Substitutions: {}\n", pairs.join(&blanks)));
        }
    }
    if listing.tests {
        text.push_str("-- Available Tests --\n");
        tests.iter().for_each(|test| text.push_str(&format!("  {}\n", test.full())));
    }
    if listing.features && text.is_empty() {
        let mut used = BTreeSet::new();
        for test in tests {
            used.extend(used_features(&test.path));
        }
        text = format!("{}\n", used.into_iter().collect::<Vec<_>>().join(" "));
    }
    text
}

/// Runs one test as its folder and the command line want it.
fn run_one(test: &Test, options: &Options) -> Outcome {
    if options.exclude_xfail && says_it_fails(&test.path, &test.config) && !named(&options.xfail_not, test) {
        return Outcome::of(Status::Excluded, "excluding XFAIL tests");
    }
    let mut outcome = run_file(&test.path, &test.config);
    let named = |list: &[String]| named(list, test);
    outcome.status = match outcome.status {
        Status::Fail if named(&options.xfail) && !named(&options.xfail_not) => Status::ExpectedFail,
        Status::Pass if named(&options.xfail) && !named(&options.xfail_not) => Status::UnexpectedPass,
        Status::ExpectedFail if named(&options.xfail_not) => Status::Fail,
        Status::UnexpectedPass if named(&options.xfail_not) => Status::Pass,
        status => status,
    };
    outcome
}

/// Runs all tests and reports how they end, in their order. `others` are those that were not chosen.
fn run(
    tests: &[Test],
    others: &[Test],
    options: &Options,
    config: &Config,
    (out, err): (&mut (dyn Write + Send), &mut dyn Write),
) -> std::io::Result<i32> {
    let start = Instant::now();
    // Gone at the end, whatever the end is.
    files::create_private(&config.temp)?;
    let temp = (!options.keep).then(|| files::Temporary::of(config.temp.clone()));
    let threads = options.threads.clamp(1, tests.len().max(1));
    if options.detail.results != Level::Off {
        let all = match others.len() {
            0 => String::new(),
            count => format!(" of {}", tests.len() + count),
        };
        writeln!(out, "-- Testing: {}{all} tests, {threads} workers --", tests.len())?;
    }
    let reporter = Mutex::new(Reporter {
        config,
        detail: options.detail,
        tests,
        outcomes: vec![None; tests.len()],
        ends: vec![Duration::ZERO; tests.len()],
        reported: 0,
        failures: 0,
        out,
        result: Ok(()),
    });
    let late = || options.max_time.is_some_and(|most| start.elapsed() >= most);
    let enough = |failures| options.max_failures > 0 && failures >= options.max_failures;
    // They are taken one by one, so that tests start in their order and a limit on failures is kept.
    workers::each(threads, tests.len(), |index| {
        let stop = late() || enough(reporter.lock().unwrap_or_else(PoisonError::into_inner).failures);
        if let (false, Some(test)) = (stop, tests.get(index)) {
            let outcome = run_one(test, options);
            let end = start.elapsed();
            reporter.lock().unwrap_or_else(PoisonError::into_inner).take(index, outcome, end);
        }
    });
    let mut reporter = reporter.into_inner().unwrap_or_else(PoisonError::into_inner);
    reporter.finish()?;
    let elapsed = start.elapsed();
    if reporter.outcomes.iter().any(Option::is_none) {
        let why = if enough(reporter.failures) { "maximum number of test failures" } else { "timeout" };
        writeln!(err, "warning: reached {why}, skipping remaining tests")?;
    }
    let (skipped, excluded) = (Outcome::of(Status::Skipped, ""), Outcome::of(Status::Excluded, ""));
    let ran: Vec<(&Test, &Outcome)> = tests
        .iter()
        .zip(&reporter.outcomes)
        .filter_map(|(test, outcome)| Some((test, outcome.as_ref()?)))
        .collect();
    let all: Vec<(&Test, &Outcome)> = tests
        .iter()
        .zip(&reporter.outcomes)
        .map(|(test, outcome)| (test, outcome.as_ref().unwrap_or(&skipped)))
        .chain(others.iter().map(|test| (test, &excluded)))
        .collect();
    if let Some(most) = options.times {
        reporter.out.write_all(report::times(&ran, most).as_bytes())?;
    }
    let text = report::summary(&all, &options.show, elapsed, options.detail.terse, options.relative);
    reporter.out.write_all(text.as_bytes())?;
    let reported = |(_, outcome): &&(&Test, &Outcome)| !options.failures_only || outcome.status.is_failure();
    let listed: Vec<(&Test, &Outcome)> = all.iter().filter(reported).copied().collect();
    if let Some(path) = &options.xml {
        std::fs::write(path, report::xml(&listed, elapsed))?;
    }
    if let Some(path) = &options.trace {
        let ended = reporter.outcomes.iter().zip(&reporter.ends).filter(|(outcome, _)| outcome.is_some());
        let ends: Vec<Duration> = ended.map(|(_, end)| *end).collect();
        std::fs::write(path, report::trace(&ran, &ends))?;
    }
    if let Some(folder) = config.records.as_ref().filter(|_| !config.no_execute) {
        remember(folder, options, &ran);
    }
    if let Some(path) = &options.json {
        std::fs::write(path, report::json(&listed, elapsed))?;
    }
    drop(temp);
    if options.keep {
        writeln!(reporter.out, "Temporary files are in {}", config.temp.display())?;
    }
    let failed = ran.iter().any(|(_, outcome)| outcome.status.is_failure());
    if failed && options.ignore_fail {
        writeln!(err, "\nExiting with status 0 instead of 1 because '--ignore-fail' was specified.")?;
    }
    Ok(i32::from(failed && !options.ignore_fail))
}

/// Writes down how tests ended, each with the path that it was found by.
fn remember(folder: &Path, options: &Options, tests: &[(&Test, &Outcome)]) {
    for path in &options.paths {
        let below = tests.iter().filter(|(test, _)| test.path.starts_with(path)).copied();
        record::write(folder, path, &below.collect::<Vec<_>>());
    }
}

fn parse(args: &[String], config: &mut Config) -> Result<Options, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut options = Options {
        paths: Vec::new(),
        detail: Detail { results: Level::All, output: Level::Off, terse: false },
        threads,
        filter: None,
        filter_out: None,
        max_failures: 0,
        xml: None,
        json: None,
        failures_only: false,
        times: None,
        max_tests: 0,
        shards: 0,
        shard: 0,
        xfail: Vec::new(),
        xfail_not: Vec::new(),
        unsupported: Vec::new(),
        relative: false,
        show: Vec::new(),
        list: None,
        order: Order::Lexical,
        seed: None,
        filter_failed: false,
        exclude_xfail: false,
        max_time: None,
        trace: None,
        keep: false,
        notes: true,
        allow_empty: false,
        ignore_fail: false,
        examine: None,
        help: false,
        version: false,
    };
    let args = apart(args);
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        let (name, own) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_string())),
            _ => (arg.as_str(), None),
        };
        let mut value = || {
            let value = own.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("argument {name}: expected one argument"))
        };
        match name {
            "--" => options.paths.extend(rest.by_ref().map(PathBuf::from)),
            "-h" | "--help" => options.help = true,
            "-v" | "--verbose" | "-vv" | "--echo-all-commands" => options.output(Level::Failed),
            "-a" | "--show-all" => options.output(Level::All),
            "--test-output" => options.output(level(name, &value()?)?),
            "--print-result-after" => options.results(level(name, &value()?)?),
            "-q" | "--quiet" => {
                options.detail = Detail { results: Level::Failed, output: Level::Off, terse: true };
                options.notes = false;
            }
            "--terse-summary" => options.detail.terse = true,
            "--no-terse-summary" => options.detail.terse = false,
            "--diagnostic-level" => options.notes = diagnostics(name, &value()?)?,
            "--order" => options.order = order(name, &value()?)?,
            "--shuffle" => options.order = Order::Random,
            "-i" | "--incremental" => options.order = Order::Smart,
            "--seed" => options.seed = Some(seed(name, &value()?)?),
            "--filter-failed" => options.filter_failed = true,
            "--exclude-xfail" => options.exclude_xfail = true,
            "--max-time" => {
                let given = value()?;
                let none = || format!("argument {name}: requires positive integer, but found '{given}'");
                options.max_time = Some(seconds(name, &given)?.ok_or_else(none)?);
            }
            "--time-trace-output" => options.trace = Some(value()?.into()),
            "--skip-test-time-recording" => config.records = None,
            "--config-prefix" => config.prefix = value()?,
            "--keep" => options.keep = true,
            "--lint" => options.examine = Some(Examine::Lint),
            "--mutate" | "--update-changed" => {
                let given = own.as_deref().map(|text| mutate::knobs(name, text)).transpose()?;
                let knobs = given.or_else(|| config.knobs.clone());
                let knobs = knobs.ok_or_else(|| {
                    format!("{name} wants TOOL:OPTION, as {name}=opt:-opt-bisect-limit={{}}")
                })?;
                match name {
                    "--mutate" => options.examine = Some(Examine::Mutate(knobs)),
                    _ => (config.update, config.only_changed) = (true, Some(knobs)),
                }
            }
            // There is nothing more to report, and no tests are GoogleTest's.
            "--debug" | "--show-fixed" => {}
            "--min-output-interval" => drop(seconds(name, &value()?)?),
            "--gtest-sharding" | "--no-gtest-sharding" => {}
            "--unsupported-not"
            | "--vg"
            | "--vg-leak"
            | "--vg-arg"
            | "--per-test-coverage"
            | "--resultdb-output" => {
                return Err(format!("argument {name}: unsupported"));
            }
            "-s" | "--succinct" => {
                options.results(Level::Failed);
                config.progress = true;
            }
            "--progress-bar" => config.progress = true,
            "--no-progress-bar" => config.progress = false,
            "-j" | "--threads" | "--workers" => options.threads = number(name, &value()?)?,
            "--timeout" => config.time_limit = seconds(name, &value()?)?,
            "--filter" => options.filter = Some(expression(name, &value()?)?),
            "--filter-out" => options.filter_out = Some(expression(name, &value()?)?),
            "--max-failures" => options.max_failures = number(name, &value()?)?,
            "-D" | "--param" => define(config, value()?),
            "-o" | "--output" => options.json = Some(value()?.into()),
            "--report-failures-only" => options.failures_only = true,
            "--time-tests" if own.as_deref() == Some("all") => options.times = Some(usize::MAX),
            "--time-tests" => options.times = Some(own.as_deref().map_or(Ok(20), |own| number(name, own))?),
            "--no-execute" => config.no_execute = true,
            "--max-retries-per-test" => config.retries = number(name, &value()?)?,
            "--max-tests" => options.max_tests = number(name, &value()?)?,
            "--num-shards" => options.shards = number(name, &value()?)?,
            "--run-shard" => options.shard = number(name, &value()?)?,
            "--xfail" => options.xfail.extend(names(&value()?)),
            "--xfail-not" => options.xfail_not.extend(names(&value()?)),
            "--path" => {
                let known = config.environment.get("PATH").cloned().unwrap_or_default();
                config.environment.insert("PATH".into(), format!("{}:{known}", value()?));
            }
            "-r" | "--relative-paths" => options.relative = true,
            "--unsupported" => options.unsupported.extend(names(&value()?)),
            "--show-excluded" => options.show.push(Status::Excluded),
            "--show-skipped" => options.show.push(Status::Skipped),
            "--show-flakypass" => options.show.push(Status::FlakyPass),
            "--show-xpass" => options.show.push(Status::UnexpectedPass),
            "--show-suites" => options.list.get_or_insert_default().suites = true,
            "--show-used-features" => options.list.get_or_insert_default().features = true,
            "--version" => options.version = true,
            "--update" | "--update-tests" => config.update = true,
            "--xunit-xml-output" => options.xml = Some(value()?.into()),
            "--show-pass" => options.show.push(Status::Pass),
            "--show-unsupported" => options.show.push(Status::Unsupported),
            "--show-xfail" => options.show.push(Status::ExpectedFail),
            "--show-tests" => options.list.get_or_insert_default().tests = true,
            "--allow-empty-runs" => options.allow_empty = true,
            "--ignore-fail" => options.ignore_fail = true,
            "--suffix" => config.suffixes.push(value()?),
            _ if name.starts_with("-D") && arg.len() > 2 => {
                define(config, arg.get(2..).unwrap_or_default().to_string());
            }
            _ if name.starts_with("-j") && name.len() > 2 => {
                options.threads = number("-j", name.get(2..).unwrap_or_default())?;
            }
            _ if name.starts_with('-') && name.len() > 1 => {
                return Err(format!("unrecognized arguments: {arg}"));
            }
            _ => options.paths.push(arg.into()),
        }
    }
    if options.paths.is_empty() && !options.help && !options.version {
        return Err("the following arguments are required: TEST_PATH".into());
    }
    match (options.shards, options.shard) {
        (0, 0) => {}
        (0, _) | (_, 0) => return Err("--num-shards and --run-shard must be used together".into()),
        (shards, shard) if shard > shards => {
            return Err("--run-shard must be between 1 and --num-shards (inclusive)".into());
        }
        _ => {}
    }
    Ok(options)
}

/// Splits letters that share a dash, as `-va`, from each other.
fn apart(args: &[String]) -> Vec<String> {
    let mut out = Vec::new();
    for arg in args {
        match arg.strip_prefix('-') {
            Some(letters) if letters.len() > 1 && letters.chars().all(|letter| "vaqsri".contains(letter)) => {
                out.extend(letters.chars().map(|letter| format!("-{letter}")));
            }
            _ => out.push(arg.clone()),
        }
    }
    out
}

impl Options {
    /// The later of two contradictory options wins.
    fn output(&mut self, level: Level) {
        self.detail.output = level;
        self.detail.results = self.detail.results.max(level);
    }

    fn results(&mut self, level: Level) {
        self.detail.results = level;
        self.detail.output = self.detail.output.min(level);
    }
}

fn choice<T: Copy>(name: &str, value: &str, known: &[(&str, T)]) -> Result<T, String> {
    let found = known.iter().find(|(arg, _)| *arg == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let choices: Vec<String> = known.iter().map(|(choice, _)| format!("'{choice}'")).collect();
        format!("argument {name}: invalid choice: '{value}' (choose from {})", choices.join(", "))
    })
}

fn level(name: &str, value: &str) -> Result<Level, String> {
    choice(
        name,
        value,
        &[
            ("off", Level::Off),
            ("failed", Level::Failed),
            ("failed-or-flaky", Level::Flaky),
            ("all", Level::All),
        ],
    )
}

fn diagnostics(name: &str, value: &str) -> Result<bool, String> {
    choice(name, value, &[("error", false), ("warning", false), ("note", true)])
}

fn order(name: &str, value: &str) -> Result<Order, String> {
    choice(name, value, &[("lexical", Order::Lexical), ("random", Order::Random), ("smart", Order::Smart)])
}

fn seed(name: &str, value: &str) -> Result<u64, String> {
    value.parse().map_err(|_| format!("argument {name}: requires an integer, but found '{value}'"))
}

/// `NAME=VALUE` is a substitution and a feature, other text a feature.
fn define(config: &mut Config, arg: String) {
    if let Some((name, value)) = arg.split_once('=') {
        let key = format!("%{{{name}}}");
        config.substitutions.retain(|(known, _)| *known != key);
        config.substitutions.push((key, value.to_string()));
        config.params.insert(name.into(), value.into());
        if name == "output_limit" {
            config.output_limit = value.parse().ok();
        }
    } else {
        config.params.insert(arg.clone(), String::new());
    }
    config.features.insert(arg);
}

fn names(list: &str) -> Vec<String> {
    list.split(';').filter(|name| !name.is_empty()).map(String::from).collect()
}

fn number(name: &str, value: &str) -> Result<usize, String> {
    let number = value.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| format!("argument {name}: requires positive integer, but found '{value}'"))
}

fn seconds(name: &str, value: &str) -> Result<Option<Duration>, String> {
    let bad = || format!("argument {name}: requires non-negative number of seconds, but found '{value}'");
    let seconds: f64 = value.parse().map_err(|_| bad())?;
    let limit = Duration::try_from_secs_f64(seconds).map_err(|_| bad())?;
    Ok(Some(limit).filter(|limit| !limit.is_zero()))
}

fn expression(name: &str, value: &str) -> Result<Regex, String> {
    regex::RegexBuilder::new(value)
        .case_insensitive(true)
        .build()
        .map_err(|_| format!("argument {name}: invalid regular expression: '{value}'"))
}
