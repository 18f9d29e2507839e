//! What a run of tests reports: results, totals in lit's wording, and an XML file for other programs.

use super::discover::Test;
use super::outcome::{Outcome, Status};
use std::collections::BTreeMap;
use std::time::Duration;

/// Which tests are reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Of none.
    Off,
    /// Of those that fail.
    Failed,
    /// Of those that fail, at first or at all.
    Flaky,
    /// Of all.
    All,
}

/// How much is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// Names and results.
    pub(super) results: Level,
    /// Commands and what they wrote; never of more tests than results.
    pub(super) output: Level,
    /// Only what fails is counted at the end, and no time is reported.
    pub(super) terse: bool,
}

impl Level {
    fn holds(self, outcome: &Outcome) -> bool {
        match self {
            Level::All => true,
            Level::Off => false,
            Level::Failed => outcome.status.is_failure(),
            Level::Flaky => outcome.status.is_failure() || outcome.attempts > 1,
        }
    }
}

/// The line, or lines, for one test.
pub(super) fn result(test: &Test, outcome: &Outcome, position: (usize, usize), detail: Detail) -> String {
    if !detail.results.holds(outcome) {
        return String::new();
    }
    let (index, total) = position;
    let full = test.full();
    let attempts = match outcome.attempts {
        0 | 1 => String::new(),
        attempts => format!(", {attempts} of {} attempts", outcome.most_attempts),
    };
    let mut text = format!("{}: {full} ({index} of {total}{attempts})\n", outcome.status.code());
    if detail.output.holds(outcome) {
        let stars = "*".repeat(20);
        if outcome.status.is_failure() {
            text.push_str(&format!("{stars} TEST '{full}' FAILED {stars}\n"));
        }
        text.push_str(&outcome.output);
        text.push_str(&format!("\n{stars}\n"));
    }
    text
}

/// The lists and totals at the end, in order of name. `relative` names files from the folder we are in.
pub(super) fn summary(
    tests: &[(&Test, &Outcome)],
    show: &[Status],
    elapsed: Duration,
    terse: bool,
    relative: bool,
) -> String {
    let mut text = String::new();
    let of = |status: Status| tests.iter().filter(move |(_, o)| o.status == status).map(|(test, _)| test);
    for status in Status::ALL {
        let mut names: Vec<String> =
            of(status).map(|test| if relative { beside(test) } else { test.full() }).collect();
        if names.is_empty() || !(status.is_failure() || show.contains(&status)) {
            continue;
        }
        names.sort();
        text.push_str(&format!("{}\n{} Tests ({}):\n", "*".repeat(20), status.label(), names.len()));
        names.iter().for_each(|name| text.push_str(&format!("  {name}\n")));
        text.push('\n');
    }
    if !terse {
        text.push_str(&format!("\nTesting Time: {:.2}s\n", elapsed.as_secs_f64()));
    }
    text.push_str(&format!("\nTotal Discovered Tests: {}\n", tests.len()));
    let counts = Status::ALL.map(|status| (status, of(status).count()));
    let shown = |status: &Status| !terse || status.is_failure();
    let counts: Vec<_> = counts.into_iter().filter(|(status, count)| *count > 0 && shown(status)).collect();
    let label_width = counts.iter().map(|(status, _)| status.label().len()).max().unwrap_or(0);
    let count_width = counts.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    for (status, count) in counts {
        let part = count as f64 / tests.len().max(1) as f64 * 100.0;
        text.push_str(&format!("  {:<label_width$}: {count:>count_width$} ({part:.2}%)\n", status.label()));
    }
    text
}

/// The file of a test, from the folder we are in.
fn beside(test: &Test) -> String {
    let whole = std::path::absolute(&test.path).unwrap_or_else(|_| test.path.clone());
    let here = std::env::current_dir().unwrap_or_default();
    let common = whole.components().zip(here.components()).take_while(|(a, b)| a == b).count();
    let up = here.components().skip(common).map(|_| std::path::Component::ParentDir);
    up.chain(whole.components().skip(common)).collect::<std::path::PathBuf>().display().to_string()
}

/// The results as data: lit's own form of `--output`.
pub(super) fn json(tests: &[(&Test, &Outcome)], elapsed: Duration) -> String {
    let list: Vec<serde_json::Value> = tests
        .iter()
        .map(|(test, outcome)| {
            serde_json::json!({
                "name": test.full(),
                "code": outcome.status.code(),
                "output": outcome.output,
                "elapsed": outcome.elapsed.as_secs_f64(),
            })
        })
        .collect();
    let all =
        serde_json::json!({ "__version__": [23, 1, 5], "elapsed": elapsed.as_secs_f64(), "tests": list });
    format!("{all:#}\n")
}

/// How long the slowest tests took, and how the times of all are spread.
pub(super) fn times(tests: &[(&Test, &Outcome)], most: usize) -> String {
    let timed = tests.iter().filter(|(_, outcome)| !outcome.elapsed.is_zero());
    let mut all: Vec<(f64, String)> =
        timed.map(|(test, outcome)| (outcome.elapsed.as_secs_f64(), test.full())).collect();
    all.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    let Some((longest, _)) = all.first().cloned() else { return String::new() };
    let rule = "-".repeat(74);
    let shown = most.min(all.len());
    let mut text = format!("Slowest Tests ({shown} of {}):\n{rule}\n", all.len());
    for (elapsed, name) in all.iter().take(shown) {
        text.push_str(&format!("{elapsed:.2}s: {name}\n"));
    }
    text.push_str(&format!("\nTest Times ({}):\n{rule}\n", all.len()));
    let (step, bars) = bars(longest);
    let mut rows = vec![0usize; bars];
    for (elapsed, _) in &all {
        let row = (bars as f64 * elapsed / longest) as usize;
        if let Some(count) = rows.get_mut(row.min(bars.saturating_sub(1))) {
            *count += 1;
        }
    }
    let places = (3 - longest.log10().ceil() as i32).max(0) as usize;
    let digits =
        (longest.log10().ceil() as i32 + if places > 0 { places as i32 + 1 } else { 0 }).max(0) as usize;
    let width = (all.len() as f64).log10().ceil() as usize;
    text.push_str(&format!(
        "[{:^range$}] :: [{:^40}] :: [{:^count$}]\n{rule}\n",
        "Range",
        "Percentage",
        "Count",
        range = (digits + 1) * 2 + 3,
        count = width * 2 + 1
    ));
    for (row, count) in rows.iter().enumerate().rev() {
        let filled = (40.0 * *count as f64 / all.len() as f64) as usize;
        text.push_str(&format!(
            "[{:digits$.places$}s,{:digits$.places$}s) :: [{}{}] :: [{count:width$}/{:width$}]\n",
            row as f64 * step,
            (row + 1) as f64 * step,
            "*".repeat(filled),
            " ".repeat(40 - filled),
            all.len()
        ));
    }
    text.push_str(&format!("{rule}\n"));
    text
}

/// A round height for bars, so that there are more than ten, and their number.
fn bars(longest: f64) -> (f64, usize) {
    let mut power = longest.log10().ceil() as i32;
    for step in [5.0, 2.0, 2.5, 1.0].into_iter().cycle().take(400) {
        let height = step * 10f64.powi(power);
        let count = (longest / height).ceil();
        if count > 10.0 {
            return (height, count as usize);
        }
        if step == 1.0 {
            power -= 1;
        }
    }
    (longest, 1)
}

/// When each test ran, as a trace for `chrome://tracing` and Perfetto. `ends` are the times at which they ended.
pub(super) fn trace(tests: &[(&Test, &Outcome)], ends: &[Duration]) -> String {
    let mut rows: Vec<Duration> = Vec::new();
    let mut order: Vec<(Duration, usize)> = (0..tests.len())
        .filter_map(|n| Some((ends.get(n)?.saturating_sub(tests.get(n)?.1.elapsed), n)))
        .collect();
    order.sort();
    let mut events = Vec::new();
    for (start, n) in order {
        let Some((test, outcome)) = tests.get(n) else { continue };
        // The first row that is free.
        let row = rows.iter().position(|busy| *busy <= start).unwrap_or(rows.len());
        if row == rows.len() {
            rows.push(Duration::ZERO);
        }
        rows[row] = start + outcome.elapsed;
        events.push(serde_json::json!({
            "name": test.full(), "cat": outcome.status.code(), "ph": "X", "pid": 1,
            "tid": row, "ts": start.as_secs_f64() * 1e6, "dur": outcome.elapsed.as_secs_f64() * 1e6,
        }));
    }
    format!("{}\n", serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" }))
}

/// The results in the form that continuous integration reads, suite by suite.
pub(super) fn xml(tests: &[(&Test, &Outcome)], elapsed: Duration) -> String {
    let mut suites: BTreeMap<&str, Vec<&(&Test, &Outcome)>> = BTreeMap::new();
    for one in tests {
        suites.entry(&one.0.config.name).or_default().push(one);
    }
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites time=\"{:.2}\">\n",
        elapsed.as_secs_f64()
    );
    for (name, tests) in suites {
        suite(&name.replace('.', "-"), &tests, &mut text);
    }
    text.push_str("</testsuites>\n");
    text
}

fn suite(name: &str, tests: &[&(&Test, &Outcome)], text: &mut String) {
    let skipped = |status| matches!(status, Status::Excluded | Status::Skipped | Status::Unsupported);
    let count =
        |wanted: &dyn Fn(Status) -> bool| tests.iter().filter(|(_, outcome)| wanted(outcome.status)).count();
    let sum: f64 = tests.iter().map(|(_, outcome)| outcome.elapsed.as_secs_f64()).sum();
    let suite = escaped(name);
    text.push_str(&format!(
        "<testsuite name=\"{suite}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{sum:.2}\">\n",
        tests.len(),
        count(&Status::is_failure),
        count(&skipped),
    ));
    for (test, outcome) in tests {
        let (folder, name) = test.name.rsplit_once('/').unwrap_or(("", &test.name));
        let class = if folder.is_empty() { suite.clone() } else { escaped(&folder.replace('.', "_")) };
        let time = outcome.elapsed.as_secs_f64();
        text.push_str(&format!(
            "<testcase classname=\"{suite}.{class}\" name=\"{}\" time=\"{time:.2}\"",
            escaped(name)
        ));
        if outcome.status.is_failure() {
            // The mark that ends character data must not occur in it.
            let output = printable(&outcome.output).replace("]]>", "]]]]><![CDATA[>");
            text.push_str(&format!(">\n  <failure><![CDATA[{output}]]></failure>\n</testcase>\n"));
        } else if skipped(outcome.status) {
            let reason = match outcome.status {
                Status::Excluded => "Test not selected (--filter, --max-tests)".to_string(),
                Status::Skipped => "User interrupt".to_string(),
                _ => {
                    let missing =
                        outcome.output.strip_prefix("Test requires the following unavailable features: ");
                    missing.map_or("Unsupported configuration".into(), |missing| {
                        format!("Missing required feature(s): {missing}")
                    })
                }
            };
            text.push_str(&format!(">\n  <skipped message=\"{}\"/>\n</testcase>\n", escaped(&reason)));
        } else {
            text.push_str("/>\n");
        }
    }
    text.push_str("</testsuite>\n");
}

/// Without the characters that XML cannot hold.
fn printable(text: &str) -> String {
    let good = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t' | '\r');
    text.chars().filter(good).collect()
}

fn escaped(text: &str) -> String {
    let text = printable(text);
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
