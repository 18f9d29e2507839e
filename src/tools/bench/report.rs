//! What was measured, as a table for people, as JSON for programs, as a chart.

use super::measure::{Times, spread};
use super::profile::Profile;
use crate::tools::table::{Table, bytes, time};
use crate::tools::view::escaped;
use serde_json::{Value as Json, json};
use std::fmt::Write;
use std::time::Duration;

/// One program in one setting.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) threads: usize,
    pub(super) batch: Option<i64>,
    pub(super) inputs: Vec<String>,
    pub(super) load: Duration,
    pub(super) first: Duration,
    pub(super) times: Times,
    pub(super) peak: Option<u64>,
    pub(super) plans: Json,
    /// How they were made.
    pub(super) making: Json,
    pub(super) fusion: Json,
    pub(super) profile: Option<Profile>,
    pub(super) trace: Option<Profile>,
}

impl Line {
    /// Times are in microseconds.
    pub(super) fn to_json(&self) -> Json {
        let us = |seconds: f64| seconds * 1e6;
        let times = &self.times;
        let mut line = json!({
            "name": self.name,
            "threads": self.threads,
            "build_us": us(self.load.as_secs_f64()),
            "first_us": us(self.first.as_secs_f64()),
            "min_us": us(times.min()),
            "median_us": us(times.quantile(0.5)),
            "p90_us": us(times.quantile(0.9)),
            "p99_us": us(times.quantile(0.99)),
            "max_us": us(times.quantile(1.0)),
            "calls": times.calls(),
            "calls_per_second": times.rate(),
            "plans": self.plans,
            "making": self.making,
            "fusion": self.fusion,
        });
        if let Some(batch) = self.batch {
            line["batch"] = json!(batch);
        }
        if !self.inputs.is_empty() {
            line["inputs"] = json!(self.inputs);
        }
        if let Some(peak) = self.peak {
            line["peak_bytes"] = json!(peak);
        }
        if let Some((other, ratios)) = times.baseline.as_deref() {
            let (ratio, low, high) = spread(ratios);
            line["baseline"] = json!({"median_us": us(other.quantile(0.5)), "min_us": us(other.min()),
                "ratio": ratio, "ratio_p10": low, "ratio_p90": high});
        }
        if let Some(profile) = &self.profile {
            line["profile"] = profile.to_json();
        }
        line
    }

    /// The name with what is special to the setting.
    fn shown(&self) -> String {
        let batch = self.batch.map(|batch| format!(" batch {batch}")).unwrap_or_default();
        format!("{}{batch}", self.name)
    }
}

/// The table for people.
pub(super) fn table(lines: &[Line]) -> String {
    let compared = lines.iter().any(|line| line.times.baseline.is_some());
    let mut columns = vec!["model", ">threads", ">load", ">first call", ">min", ">median", ">p90", ">p99"];
    columns.extend([">calls/s", ">peak memory"]);
    if compared {
        columns.extend([">baseline", ">faster by"]);
    }
    let mut table = Table::new(columns);
    for line in lines {
        let times = &line.times;
        let mut cells = vec![line.shown(), line.threads.to_string()];
        cells.extend([line.load.as_secs_f64(), line.first.as_secs_f64(), times.min()].map(time));
        cells.extend([0.5, 0.9, 0.99].map(|share| time(times.quantile(share))));
        cells.push(format!("{:.1}", times.rate()));
        cells.push(line.peak.map_or("-".to_string(), bytes));
        if let Some((other, ratios)) = times.baseline.as_deref() {
            let (ratio, low, high) = spread(ratios);
            cells.push(time(other.quantile(0.5)));
            cells.push(format!("{ratio:.2}x ({low:.2} to {high:.2})"));
        }
        table.row(cells);
    }
    table.to_string()
}

const WIDTH: f64 = 900.0;
const NAMES: f64 = 260.0;
const ROW: f64 = 30.0;

/// A chart: a bar to the median, a line from the minimum to the 99th percentile.
pub(super) fn svg(lines: &[Line]) -> String {
    let most = lines.iter().map(|line| line.times.quantile(0.99)).fold(1e-9, f64::max);
    let x = |seconds: f64| NAMES + (WIDTH - NAMES - 130.0) * seconds / most;
    let height = 50.0 + ROW * lines.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" viewBox=\"0 0 {WIDTH} {height}\">\n\
         <style>text{{font:13px system-ui,sans-serif;fill:#1c2128}}.soft{{fill:#57606a}}.bar{{fill:#0969da}}\
         .span{{stroke:#1c2128;stroke-width:1.5}}@media (prefers-color-scheme:dark){{svg{{background:#0d1117}}\
         text{{fill:#e6edf3}}.soft{{fill:#9198a1}}.bar{{fill:#4493f8}}.span{{stroke:#e6edf3}}}}</style>\n\
         <text class=\"soft\" x=\"10\" y=\"22\">time of a call: bar median, line minimum to 99th percentile</text>\n"
    );
    for (n, line) in lines.iter().enumerate() {
        let (y, times) = (36.0 + ROW * n as f64, &line.times);
        let (median, low, high) = (times.quantile(0.5), times.min(), times.quantile(0.99));
        let plural = if line.threads == 1 { "thread" } else { "threads" };
        let name = escaped(&format!("{}, {} {plural}", line.shown(), line.threads));
        let _ = writeln!(
            out,
            "<text x=\"10\" y=\"{:.1}\">{name}</text><rect class=\"bar\" x=\"{NAMES}\" y=\"{y:.1}\" width=\"{:.1}\" \
             height=\"18\" rx=\"2\"/><line class=\"span\" x1=\"{:.1}\" x2=\"{:.1}\" y1=\"{:.1}\" y2=\"{:.1}\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\">{}</text>",
            y + 14.0,
            x(median) - NAMES,
            x(low),
            x(high),
            y + 9.0,
            y + 9.0,
            x(high) + 8.0,
            y + 14.0,
            time(median)
        );
    }
    out + "</svg>\n"
}
