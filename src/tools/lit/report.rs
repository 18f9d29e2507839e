//! What a run of tests tells: results, totals in lit's wording, and an XML file for other programs.

use super::discover::Test;
use super::{Outcome, Status};
use std::fmt::Write;
use std::time::Duration;

/// Of which tests something is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Level {
    /// Of none.
    Off,
    /// Of those that fail.
    Failed,
    /// Of all.
    All,
}

/// How much is told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Detail {
    /// Names and results.
    pub(super) results: Level,
    /// Commands and what they wrote; never of more tests than results.
    pub(super) output: Level,
    /// Only what fails is counted at the end, and no time is told.
    pub(super) terse: bool,
}

impl Level {
    fn holds(self, failed: bool) -> bool {
        self == Level::All || (self == Level::Failed && failed)
    }
}

/// The line, or lines, for one test.
pub(super) fn result(
    suite: &str,
    test: &Test,
    outcome: &Outcome,
    position: (usize, usize),
    detail: Detail,
) -> String {
    let failed = outcome.status.is_failure();
    if !detail.results.holds(failed) {
        return String::new();
    }
    let (index, total) = position;
    let full = format!("{suite} :: {}", test.name);
    let mut text = format!("{}: {full} ({index} of {total})\n", outcome.status.code());
    if detail.output.holds(failed) {
        if failed {
            let stars = "*".repeat(20);
            text.push_str(&format!("{stars} TEST '{full}' FAILED {stars}\n"));
        }
        text.push_str(&outcome.output);
        if !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&format!("{}\n", "*".repeat(20)));
    }
    text
}

/// The lists and totals at the end.
pub(super) fn summary(
    suite: &str,
    tests: &[Test],
    outcomes: &[Outcome],
    show: &[Status],
    elapsed: Duration,
    detail: Detail,
) -> String {
    let mut text = String::new();
    let of = |status: Status| {
        tests.iter().zip(outcomes).filter(move |(_, o)| o.status == status).map(|(test, _)| test)
    };
    for status in Status::ALL {
        let listed: Vec<&Test> = of(status).collect();
        if listed.is_empty() || !(status.is_failure() || show.contains(&status)) {
            continue;
        }
        text.push_str(&format!("{}\n{} Tests ({}):\n", "*".repeat(20), status.label(), listed.len()));
        for test in listed {
            text.push_str(&format!("  {suite} :: {}\n", test.name));
        }
        text.push('\n');
    }
    if !detail.terse {
        text.push_str(&format!("\nTesting Time: {:.2}s\n", elapsed.as_secs_f64()));
    }
    text.push_str(&format!("\nTotal Discovered Tests: {}\n", tests.len()));
    let counts = Status::ALL.map(|status| (status, of(status).count()));
    let shown = |status: &Status| !detail.terse || status.is_failure();
    let counts: Vec<_> = counts.into_iter().filter(|(status, count)| *count > 0 && shown(status)).collect();
    let label_width = counts.iter().map(|(status, _)| status.label().len()).max().unwrap_or(0);
    let count_width = counts.iter().map(|(_, count)| count.to_string().len()).max().unwrap_or(0);
    for (status, count) in counts {
        let part = count as f64 / tests.len().max(1) as f64 * 100.0;
        text.push_str(&format!("  {:<label_width$}: {count:>count_width$} ({part:.2}%)\n", status.label()));
    }
    text
}

/// The results as data: lit's own form of `--output`.
pub(super) fn json(suite: &str, tests: &[Test], outcomes: &[Outcome], elapsed: Duration) -> String {
    let list: Vec<serde_json::Value> = tests
        .iter()
        .zip(outcomes)
        .map(|(test, outcome)| {
            serde_json::json!({
                "name": format!("{suite} :: {}", test.name),
                "code": outcome.status.code(),
                "output": outcome.output,
                "elapsed": outcome.elapsed.as_secs_f64(),
            })
        })
        .collect();
    let all =
        serde_json::json!({ "__version__": [22, 0, 0], "elapsed": elapsed.as_secs_f64(), "tests": list });
    format!("{all:#}\n")
}

/// How long the slowest tests took.
pub(super) fn times(suite: &str, tests: &[Test], outcomes: &[Outcome]) -> String {
    let mut all: Vec<(Duration, &str)> =
        tests.iter().zip(outcomes).map(|(test, outcome)| (outcome.elapsed, test.name.as_str())).collect();
    all.sort_by_key(|(elapsed, name)| (std::cmp::Reverse(*elapsed), *name));
    let mut text = format!("\nSlowest Tests:\n{}\n", "-".repeat(74));
    for (elapsed, name) in all.iter().take(20) {
        text.push_str(&format!("{:.2}s: {suite} :: {name}\n", elapsed.as_secs_f64()));
    }
    text
}

/// When each test ran, as a trace for `chrome://tracing` and Perfetto. `ends` are the times at which they ended.
pub(super) fn trace(suite: &str, tests: &[Test], outcomes: &[Outcome], ends: &[Duration]) -> String {
    let mut rows: Vec<Duration> = Vec::new();
    let mut order: Vec<(Duration, usize)> = (0..tests.len())
        .filter_map(|n| Some((ends.get(n)?.saturating_sub(outcomes.get(n)?.elapsed), n)))
        .collect();
    order.sort();
    let mut events = Vec::new();
    for (start, n) in order {
        let (Some(test), Some(outcome)) = (tests.get(n), outcomes.get(n)) else { continue };
        // The first row that is free.
        let row = rows.iter().position(|busy| *busy <= start).unwrap_or(rows.len());
        if row == rows.len() {
            rows.push(Duration::ZERO);
        }
        rows[row] = start + outcome.elapsed;
        events.push(serde_json::json!({
            "name": format!("{suite} :: {}", test.name), "cat": outcome.status.code(), "ph": "X", "pid": 1,
            "tid": row, "ts": start.as_secs_f64() * 1e6, "dur": outcome.elapsed.as_secs_f64() * 1e6,
        }));
    }
    format!("{}\n", serde_json::json!({ "traceEvents": events, "displayTimeUnit": "ms" }))
}

/// The results in the form that continuous integration reads.
pub(super) fn xml(suite: &str, tests: &[Test], outcomes: &[Outcome], elapsed: Duration) -> String {
    let count = |wanted: fn(Status) -> bool| outcomes.iter().filter(|o| wanted(o.status)).count();
    let sum: f64 = outcomes.iter().map(|outcome| outcome.elapsed.as_secs_f64()).sum();
    let suite = escaped(suite);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites time=\"{:.2}\">\n\
         <testsuite name=\"{suite}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{sum:.2}\">\n",
        elapsed.as_secs_f64(),
        tests.len(),
        count(Status::is_failure),
        count(|status| status == Status::Unsupported),
    );
    for (test, outcome) in tests.iter().zip(outcomes) {
        let (folder, name) = test.name.rsplit_once('/').unwrap_or(("", &test.name));
        let class = if folder.is_empty() { suite.clone() } else { escaped(&folder.replace('/', ".")) };
        let time = outcome.elapsed.as_secs_f64();
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "<testcase classname=\"{suite}.{class}\" name=\"{}\" time=\"{time:.2}\"",
            escaped(name)
        );
        if outcome.status.is_failure() {
            // The mark that ends character data must not occur in it.
            let output = printable(&outcome.output).replace("]]>", "]]]]><![CDATA[>");
            let _ = write!(text, ">\n  <failure><![CDATA[{output}]]></failure>\n</testcase>\n");
        } else if outcome.status == Status::Unsupported {
            let _ = write!(text, ">\n  <skipped message=\"{}\"/>\n</testcase>\n", escaped(&outcome.output));
        } else {
            text.push_str("/>\n");
        }
    }
    text.push_str("</testsuite>\n</testsuites>\n");
    text
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
