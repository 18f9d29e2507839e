//! The command `lit`: its words, the threads, the progress bar.

use super::discover::{Test, discover};
use super::report::{self, Detail, Level};
use super::teller::Teller;
use super::{Config, Knobs, Outcome, Status, lint, mutate, record, run_file, workers};
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
there; lit.local.cfg and its like are read as far as they are plain assignments. Exit status: 0 all well, 1 a test failed, 2 no tests or invalid options.

What is shown:
  -v, --verbose                the output of tests that fail
  -a, --show-all               the output of all tests
  -q, --quiet                  failures only, and no more than their number at the end
  -s, --succinct               failures only, with a progress bar
  --print-result-after LEVEL   results of which tests: off, failed,
                               failed-or-flaky, all
  --test-output LEVEL          commands and their outputs of which tests: off, failed, all
  --diagnostic-level LEVEL     diagnostic level of lit itself: error, warning, note
  --terse-summary, --no-terse-summary
  --progress-bar, --no-progress-bar
  --show-pass, --show-flakypass, --show-unsupported, --show-xfail, --show-xpass
                               list such tests at the end
  -r, --relative-paths         name files in the lists at the end, from the current folder
  --time-tests[=N]             list the slowest tests, and how times are spread
  --time-trace-output FILE     write when each test ran to FILE, for chrome://tracing
  -o FILE, --output FILE       write the results to FILE as JSON
  --xunit-xml-output FILE      write the results to FILE as JUnit's XML
  --report-failures-only       leave all but failures out of these files

How tests run:
  -j N, --threads N, --workers N
                               tests that run side by side
  --timeout SECONDS            per-test timeout
  --max-retries-per-test N     run a failing test again, where it does not say ALLOW_RETRIES: itself
  --max-failures N             stop after N failures
  --max-time SECONDS           start no test after so many seconds
  --keep                       keep the temporary files of tests, and say where they are
  --no-execute                 take every test that could run for passed, without running it
  --update, --update-tests     rewrite the checks of tests that fail, and write those of tests that have none
  --update-changed[=TOOL:OPTION]
                               the same, with checks of those lines only that the tools do not write where they leave out
                               their work ({} in OPTION is 0)
  --path FOLDER                look for programs there first
  --config-prefix NAME         read NAME.cfg for lit.cfg
  --skip-test-time-recording   remember nothing of this run
  -D FEATURE                   add a feature that tests may require
  -D NAME=VALUE, --param NAME=VALUE
                               give %{NAME} a value, and add the feature NAME=VALUE
  --ignore-fail                give exit status 0 though tests fail
  --allow-empty-runs           allow empty runs

Which tests run:
  --filter REGEX               those whose name fits, in either case
  --filter-out REGEX           all but those whose name fits
  --filter-failed              those that failed when they ran last
  --order ORDER                lexical: by name, as without it; smart: what failed first, then the slow ones; random
  -i, --incremental            the same as --order smart
  --shuffle                    the same as --order random
  --seed N                     the random order with this number
  --max-tests N                the first N
  --num-shards M --run-shard N every Mth, from the Nth on
  --xfail LIST                 names, parted by ';', of tests that fail as things are
  --xfail-not LIST             names of tests that do not, whatever they say
  --unsupported LIST           names of tests that do not run here
  --exclude-xfail              leave out tests that say that they fail
  --suffix .EXT                also files with this end are tests
  --show-tests                 list the tests and run none
  --show-suites                list the suite with its features, and run none
  --show-used-features         list the features that tests ask for, and run none

What is done instead of running them:
  --lint                       find lines that look like checks and are none: misspelt directives, missing colons, prefixes that
                               no RUN line reads, variables that are never used
  --mutate[=TOOL:OPTION]       let each tool leave out work ({} in OPTION is 0, 1, 2, ...) and name the lines whose checks hold
                               all the same; a line 'ALLOW_UNSEEN: OPTION why' of a test allows one

The words of LIT_OPTS come before those of the command line; LIT_FILTER, LIT_FILTER_OUT, LIT_NUM_SHARDS and
LIT_RUN_SHARD hold defaults. Not supported, and refused by name: valgrind (--vg), coverage of single tests, ResultDB.
";

pub(super) struct Words {
    paths: Vec<PathBuf>,
    pub(super) detail: Detail,
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
    /// Lines that look like checks and are none.
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
/// words that make no sense or paths without tests.
pub fn main(args: &[OsString], mut config: Config, out: &mut (dyn Write + Send), err: &mut dyn Write) -> i32 {
    match start(args, &mut config, out, err) {
        Ok(status) => status,
        Err(message) => {
            // Where the error stream is gone there is nobody to tell.
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
    let mut words = parse(&args, config)?;
    let told = |error: std::io::Error| error.to_string();
    if words.help {
        out.write_all(HELP.as_bytes()).map_err(told)?;
        return Ok(0);
    }
    if words.version {
        writeln!(out, "lit {} of Flambeau", env!("CARGO_PKG_VERSION")).map_err(told)?;
        return Ok(0);
    }
    let mut tests: Vec<Test> = Vec::new();
    let shared = Arc::new(config.clone());
    let mut notes = Vec::new();
    words.paths = listed_in(&words.paths)?;
    for path in &words.paths {
        tests.extend(discover(path, &shared, &mut notes)?);
    }
    let mut tell = |text: String| {
        // Where the error stream is gone there is nobody to tell.
        let _ = writeln!(err, "{text}");
    };
    for note in notes.iter().filter(|_| words.notes) {
        tell(format!("note: {note}"));
    }
    if tests.is_empty() && !words.allow_empty {
        return Err("did not discover any tests for provided path(s)".into());
    }
    for test in tests.iter_mut().filter(|test| named(&words.unsupported, test)) {
        let config = Arc::clone(&test.config);
        test.config = Arc::new(Config { unsupported: true, ..Config::clone(&config) });
    }
    tests.sort_by_cached_key(Test::full);
    if let Some(listing) = words.list {
        out.write_all(listed(listing, &tests).as_bytes()).map_err(told)?;
        return Ok(0);
    }
    let known = remembered(&words, config);
    arrange(&mut tests, &words, &known, out).map_err(told)?;
    let fits = |regex: &Option<Regex>, test: &Test| regex.as_ref().map(|regex| regex.is_match(&test.full()));
    let chosen = |test: &Test| {
        fits(&words.filter, test) != Some(false)
            && fits(&words.filter_out, test) != Some(true)
            && (!words.filter_failed || known.get(&test.full()).is_some_and(|last| last.failed))
    };
    let (mut tests, mut others): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(chosen);
    if tests.is_empty() && !others.is_empty() {
        let problem = format!("filter did not match any tests (of {} discovered).  ", others.len());
        if !words.allow_empty {
            return Err(format!("{problem}Use '--allow-empty-runs' to suppress this error."));
        }
        tell(format!("error: {problem}Suppressing error because '--allow-empty-runs' was specified."));
        return Ok(0);
    }
    if words.shards > 0 {
        let all = tests.len();
        let numbers: Vec<usize> = (words.shard..=all).step_by(words.shards).collect();
        let mut number = 0;
        let mine = |_: &Test| {
            number += 1;
            numbers.contains(&number)
        };
        let (left, right): (Vec<Test>, Vec<Test>) = tests.into_iter().partition(mine);
        tests = left;
        others.extend(right);
        if words.notes {
            let mut first: Vec<String> = numbers.iter().take(3).map(ToString::to_string).collect();
            first.extend((numbers.len() > 3).then(|| "...".to_string()));
            tell(format!(
                "note: Selecting shard {}/{} = size {}/{all} = tests #({}*k)+{} = [{}]",
                words.shard,
                words.shards,
                tests.len(),
                words.shards,
                words.shard,
                first.join(", ")
            ));
        }
        if tests.is_empty() {
            tell(
                "warning: shard does not contain any tests.  Consider decreasing the number of shards."
                    .into(),
            );
            return Ok(0);
        }
    }
    if words.max_tests > 0 && tests.len() > words.max_tests {
        others.extend(tests.split_off(words.max_tests));
    }
    let is_well = match &words.examine {
        None => return run(&tests, &others, &words, config, (out, err)).map_err(told),
        Some(Examine::Lint) => lint::run(&tests, out).map_err(told)?,
        Some(Examine::Mutate(knobs)) => {
            mutate::run(&tests, words.threads, knobs, config, out).map_err(told)?
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
fn remembered(words: &Words, config: &Config) -> BTreeMap<String, record::Last> {
    let Some(folder) = &config.records else { return BTreeMap::new() };
    words.paths.iter().flat_map(|path| record::read(folder, path)).collect()
}

/// Brings tests into the order in which they run and are told.
fn arrange(
    tests: &mut [Test],
    words: &Words,
    known: &BTreeMap<String, record::Last>,
    out: &mut (dyn Write + Send),
) -> std::io::Result<()> {
    match words.order {
        Order::Lexical => {}
        Order::Smart => tests.sort_by(|a, b| {
            let last = |test: &Test| known.get(&test.full()).copied().unwrap_or_default();
            let (a, b) = (last(a), last(b));
            b.failed.cmp(&a.failed).then(b.seconds.total_cmp(&a.seconds))
        }),
        Order::Random => {
            let now = || std::time::UNIX_EPOCH.elapsed().map_or(0, |time| u64::from(time.subsec_nanos()));
            let seed = words.seed.unwrap_or_else(now);
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
            used.extend(super::used_features(&test.path));
        }
        text = format!("{}\n", used.into_iter().collect::<Vec<_>>().join(" "));
    }
    text
}

/// Runs one test as its folder and the command line want it.
fn run_one(test: &Test, words: &Words) -> Outcome {
    if words.exclude_xfail && super::says_it_fails(test) && !named(&words.xfail_not, test) {
        return Outcome::of(Status::Excluded, "excluding XFAIL tests");
    }
    let mut outcome = run_file(&test.path, &test.config);
    let named = |list: &[String]| named(list, test);
    outcome.status = match outcome.status {
        Status::Fail if named(&words.xfail) && !named(&words.xfail_not) => Status::ExpectedFail,
        Status::Pass if named(&words.xfail) && !named(&words.xfail_not) => Status::UnexpectedPass,
        Status::ExpectedFail if named(&words.xfail_not) => Status::Fail,
        Status::UnexpectedPass if named(&words.xfail_not) => Status::Pass,
        status => status,
    };
    outcome
}

/// Runs all tests and tells how they end, in their order. `others` are those that were not chosen.
fn run(
    tests: &[Test],
    others: &[Test],
    words: &Words,
    config: &Config,
    (out, err): (&mut (dyn Write + Send), &mut dyn Write),
) -> std::io::Result<i32> {
    let start = Instant::now();
    // Gone at the end, whatever the end is.
    files::create_private(&config.temp)?;
    let temp = (!words.keep).then(|| files::Temporary::of(config.temp.clone()));
    let threads = words.threads.clamp(1, tests.len().max(1));
    if words.detail.results != Level::Off {
        let all = match others.len() {
            0 => String::new(),
            count => format!(" of {}", tests.len() + count),
        };
        writeln!(out, "-- Testing: {}{all} tests, {threads} workers --", tests.len())?;
    }
    let teller = Mutex::new(Teller {
        config,
        words,
        tests,
        outcomes: vec![None; tests.len()],
        ends: vec![Duration::ZERO; tests.len()],
        told: 0,
        failures: 0,
        out,
        result: Ok(()),
    });
    let late = || words.max_time.is_some_and(|most| start.elapsed() >= most);
    let enough = |failures| words.max_failures > 0 && failures >= words.max_failures;
    // They are taken one by one, so that tests start in their order and a limit on failures is kept.
    workers::each(threads, tests.len(), |index| {
        let stop = late() || enough(teller.lock().unwrap_or_else(PoisonError::into_inner).failures);
        if let (false, Some(test)) = (stop, tests.get(index)) {
            let outcome = run_one(test, words);
            let end = start.elapsed();
            teller.lock().unwrap_or_else(PoisonError::into_inner).take(index, outcome, end);
        }
    });
    let mut teller = teller.into_inner().unwrap_or_else(PoisonError::into_inner);
    teller.finish()?;
    let elapsed = start.elapsed();
    if teller.outcomes.iter().any(Option::is_none) {
        let why = if enough(teller.failures) { "maximum number of test failures" } else { "timeout" };
        writeln!(err, "warning: reached {why}, skipping remaining tests")?;
    }
    let (skipped, excluded) = (Outcome::of(Status::Skipped, ""), Outcome::of(Status::Excluded, ""));
    let ran: Vec<(&Test, &Outcome)> = tests
        .iter()
        .zip(&teller.outcomes)
        .filter_map(|(test, outcome)| Some((test, outcome.as_ref()?)))
        .collect();
    let all: Vec<(&Test, &Outcome)> = tests
        .iter()
        .zip(&teller.outcomes)
        .map(|(test, outcome)| (test, outcome.as_ref().unwrap_or(&skipped)))
        .chain(others.iter().map(|test| (test, &excluded)))
        .collect();
    if let Some(most) = words.times {
        teller.out.write_all(report::times(&ran, most).as_bytes())?;
    }
    let text = report::summary(&all, &words.show, elapsed, words.detail.terse, words.relative);
    teller.out.write_all(text.as_bytes())?;
    let reported = |(_, outcome): &&(&Test, &Outcome)| !words.failures_only || outcome.status.is_failure();
    let told: Vec<(&Test, &Outcome)> = all.iter().filter(reported).copied().collect();
    if let Some(path) = &words.xml {
        std::fs::write(path, report::xml(&told, elapsed))?;
    }
    if let Some(path) = &words.trace {
        let ended = teller.outcomes.iter().zip(&teller.ends).filter(|(outcome, _)| outcome.is_some());
        let ends: Vec<Duration> = ended.map(|(_, end)| *end).collect();
        std::fs::write(path, report::trace(&ran, &ends))?;
    }
    if let Some(folder) = config.records.as_ref().filter(|_| !config.no_execute) {
        remember(folder, words, &ran);
    }
    if let Some(path) = &words.json {
        std::fs::write(path, report::json(&told, elapsed))?;
    }
    drop(temp);
    if words.keep {
        writeln!(teller.out, "Temporary files are in {}", config.temp.display())?;
    }
    let failed = ran.iter().any(|(_, outcome)| outcome.status.is_failure());
    if failed && words.ignore_fail {
        writeln!(err, "\nExiting with status 0 instead of 1 because '--ignore-fail' was specified.")?;
    }
    Ok(i32::from(failed && !words.ignore_fail))
}

/// Writes down how tests ended, each with the path that it was found by.
fn remember(folder: &Path, words: &Words, tests: &[(&Test, &Outcome)]) {
    for path in &words.paths {
        let below = tests.iter().filter(|(test, _)| test.path.starts_with(path)).copied();
        record::write(folder, path, &below.collect::<Vec<_>>());
    }
}

fn parse(args: &[String], config: &mut Config) -> Result<Words, String> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut words = Words {
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
    while let Some(word) = rest.next() {
        let (name, own) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_string())),
            _ => (word.as_str(), None),
        };
        let mut value = || {
            let value = own.clone().or_else(|| rest.next().cloned());
            value.ok_or_else(|| format!("argument {name}: expected one argument"))
        };
        match name {
            "--" => words.paths.extend(rest.by_ref().map(PathBuf::from)),
            "-h" | "--help" => words.help = true,
            "-v" | "--verbose" | "-vv" | "--echo-all-commands" => words.output(Level::Failed),
            "-a" | "--show-all" => words.output(Level::All),
            "--test-output" => words.output(level(name, &value()?)?),
            "--print-result-after" => words.results(level(name, &value()?)?),
            "-q" | "--quiet" => {
                words.detail = Detail { results: Level::Failed, output: Level::Off, terse: true };
                words.notes = false;
            }
            "--terse-summary" => words.detail.terse = true,
            "--no-terse-summary" => words.detail.terse = false,
            "--diagnostic-level" => words.notes = diagnostics(name, &value()?)?,
            "--order" => words.order = order(name, &value()?)?,
            "--shuffle" => words.order = Order::Random,
            "-i" | "--incremental" => words.order = Order::Smart,
            "--seed" => words.seed = Some(seed(name, &value()?)?),
            "--filter-failed" => words.filter_failed = true,
            "--exclude-xfail" => words.exclude_xfail = true,
            "--max-time" => {
                let given = value()?;
                let none = || format!("argument {name}: requires positive integer, but found '{given}'");
                words.max_time = Some(seconds(name, &given)?.ok_or_else(none)?);
            }
            "--time-trace-output" => words.trace = Some(value()?.into()),
            "--skip-test-time-recording" => config.records = None,
            "--config-prefix" => config.prefix = value()?,
            "--keep" => words.keep = true,
            "--lint" => words.examine = Some(Examine::Lint),
            "--mutate" | "--update-changed" => {
                let given = own.as_deref().map(|text| mutate::knobs(name, text)).transpose()?;
                let knobs = given.or_else(|| config.knobs.clone());
                let knobs = knobs.ok_or_else(|| {
                    format!("{name} wants TOOL:OPTION, as {name}=opt:-opt-bisect-limit={{}}")
                })?;
                match name {
                    "--mutate" => words.examine = Some(Examine::Mutate(knobs)),
                    _ => (config.update, config.only_changed) = (true, Some(knobs)),
                }
            }
            // There is nothing more to tell, and no tests are GoogleTest's.
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
                words.results(Level::Failed);
                config.progress = true;
            }
            "--progress-bar" => config.progress = true,
            "--no-progress-bar" => config.progress = false,
            "-j" | "--threads" | "--workers" => words.threads = number(name, &value()?)?,
            "--timeout" => config.time_limit = seconds(name, &value()?)?,
            "--filter" => words.filter = Some(expression(name, &value()?)?),
            "--filter-out" => words.filter_out = Some(expression(name, &value()?)?),
            "--max-failures" => words.max_failures = number(name, &value()?)?,
            "-D" | "--param" => define(config, value()?),
            "-o" | "--output" => words.json = Some(value()?.into()),
            "--report-failures-only" => words.failures_only = true,
            "--time-tests" if own.as_deref() == Some("all") => words.times = Some(usize::MAX),
            "--time-tests" => words.times = Some(own.as_deref().map_or(Ok(20), |own| number(name, own))?),
            "--no-execute" => config.no_execute = true,
            "--max-retries-per-test" => config.retries = number(name, &value()?)?,
            "--max-tests" => words.max_tests = number(name, &value()?)?,
            "--num-shards" => words.shards = number(name, &value()?)?,
            "--run-shard" => words.shard = number(name, &value()?)?,
            "--xfail" => words.xfail.extend(names(&value()?)),
            "--xfail-not" => words.xfail_not.extend(names(&value()?)),
            "--path" => {
                let known = config.environment.get("PATH").cloned().unwrap_or_default();
                config.environment.insert("PATH".into(), format!("{}:{known}", value()?));
            }
            "-r" | "--relative-paths" => words.relative = true,
            "--unsupported" => words.unsupported.extend(names(&value()?)),
            "--show-excluded" => words.show.push(Status::Excluded),
            "--show-skipped" => words.show.push(Status::Skipped),
            "--show-flakypass" => words.show.push(Status::FlakyPass),
            "--show-xpass" => words.show.push(Status::UnexpectedPass),
            "--show-suites" => words.list.get_or_insert_default().suites = true,
            "--show-used-features" => words.list.get_or_insert_default().features = true,
            "--version" => words.version = true,
            "--update" | "--update-tests" => config.update = true,
            "--xunit-xml-output" => words.xml = Some(value()?.into()),
            "--show-pass" => words.show.push(Status::Pass),
            "--show-unsupported" => words.show.push(Status::Unsupported),
            "--show-xfail" => words.show.push(Status::ExpectedFail),
            "--show-tests" => words.list.get_or_insert_default().tests = true,
            "--allow-empty-runs" => words.allow_empty = true,
            "--ignore-fail" => words.ignore_fail = true,
            "--suffix" => config.suffixes.push(value()?),
            _ if name.starts_with("-D") && word.len() > 2 => {
                define(config, word.get(2..).unwrap_or_default().to_string());
            }
            _ if name.starts_with("-j") && name.len() > 2 => {
                words.threads = number("-j", name.get(2..).unwrap_or_default())?;
            }
            _ if name.starts_with('-') && name.len() > 1 => {
                return Err(format!("unrecognized arguments: {word}"));
            }
            _ => words.paths.push(word.into()),
        }
    }
    if words.paths.is_empty() && !words.help && !words.version {
        return Err("the following arguments are required: TEST_PATH".into());
    }
    match (words.shards, words.shard) {
        (0, 0) => {}
        (0, _) | (_, 0) => return Err("--num-shards and --run-shard must be used together".into()),
        (shards, shard) if shard > shards => {
            return Err("--run-shard must be between 1 and --num-shards (inclusive)".into());
        }
        _ => {}
    }
    Ok(words)
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

impl Words {
    /// The later of two words that contradict each other wins.
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
    let found = known.iter().find(|(word, _)| *word == value);
    found.map(|(_, meaning)| *meaning).ok_or_else(|| {
        let words: Vec<String> = known.iter().map(|(word, _)| format!("'{word}'")).collect();
        format!("argument {name}: invalid choice: '{value}' (choose from {})", words.join(", "))
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

/// `NAME=VALUE` is a substitution and a feature, another word a feature.
fn define(config: &mut Config, word: String) {
    if let Some((name, value)) = word.split_once('=') {
        let key = format!("%{{{name}}}");
        config.substitutions.retain(|(known, _)| *known != key);
        config.substitutions.push((key, value.to_string()));
        config.params.insert(name.into(), value.into());
        if name == "output_limit" {
            config.output_limit = value.parse().ok();
        }
    } else {
        config.params.insert(word.clone(), String::new());
    }
    config.features.insert(word);
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
