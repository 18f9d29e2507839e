//! Where the time of a call goes: by kind of op, by kernel, and as a trace.

use super::options::Options;
use super::subject::Ready;
use crate::diag::Result;
use crate::dialects::Run;
use crate::tools::observe::{At, Event, Watch};
use crate::tools::table::{Table, time};
use crate::tools::trace::{self, Names, Place, Record};
use indexmap::IndexMap;
use parking_lot::Mutex;
use serde_json::{Value as Json, json};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Calls that are examined, at most.
const CALLS: usize = 50;
/// Rows of a table.
const ROWS: usize = 20;

/// What was seen.
pub(super) struct Profile {
    model: String,
    passes: String,
    calls: usize,
    call: Duration,
    names: Names,
    record: Record,
}

/// Calls the program before a watcher's eyes: its plans, or the program's own functions op by op.
pub(super) fn take(options: &Options, ready: &Ready, run: &Run, plans: bool) -> Result<Profile> {
    let record: Arc<Mutex<Record>> = Arc::default();
    let sink = Arc::clone(&record);
    let see = move |at: &At<'_>, event: Event<'_>| sink.lock().take_in(at.graph, event);
    run.watch(Some(if plans { Watch::of_plans(see) } else { Watch::new(see) }));
    let end = Instant::now() + Duration::from_secs_f64(options.seconds.clamp(0.0, 3600.0));
    let (mut calls, mut total, mut result) = (0, Duration::ZERO, Ok(()));
    while calls < CALLS && (calls == 0 || Instant::now() < end) && result.is_ok() {
        record.lock().start();
        match ready.call(run) {
            Ok(time) => total += time,
            Err(error) => result = Err(error),
        }
        calls += 1;
    }
    run.watch(None);
    result?;
    let record = std::mem::take(&mut *record.lock());
    Ok(Profile {
        model: options.files.first().map(|file| file.display().to_string()).unwrap_or_default(),
        passes: ready.passes.clone(),
        calls,
        call: total / calls.max(1) as u32,
        names: Names::of(&ready.program),
        record,
    })
}

impl Profile {
    /// Sums by some name of the op, the longest first.
    fn sums(&self, name: impl Fn(&Place) -> Option<String>) -> Vec<(String, usize, Duration)> {
        let mut sums: IndexMap<String, (usize, Duration)> = IndexMap::new();
        for (key, (count, time)) in self.record.totals() {
            if let Some(name) = self.names.place(key).and_then(&name) {
                let sum = sums.entry(name).or_default();
                sum.0 += count;
                sum.1 += *time;
            }
        }
        let mut sums: Vec<(String, usize, Duration)> =
            sums.into_iter().map(|(n, (c, t))| (n, c, t)).collect();
        sums.sort_by(|a, b| b.2.cmp(&a.2).then_with(|| a.0.cmp(&b.0)));
        sums
    }

    fn by_op(&self) -> Vec<(String, usize, Duration)> {
        self.sums(|place| Some(place.kind.clone()))
    }

    fn by_kernel(&self) -> Vec<(String, usize, Duration)> {
        self.sums(|place| place.kernel.clone())
    }

    /// Two tables for people.
    pub(super) fn tables(&self) -> String {
        let whole: f64 = self.by_op().iter().map(|(.., time)| time.as_secs_f64()).sum();
        let calls = self.calls as f64;
        let table = |title: &str, sums: &[(String, usize, Duration)]| {
            let mut table = Table::new([title, ">runs a call", ">time a call", ">share"]);
            for (name, count, total) in sums.iter().take(ROWS) {
                let seconds = total.as_secs_f64();
                table.row([
                    name.clone(),
                    format!("{:.0}", *count as f64 / calls),
                    time(seconds / calls),
                    format!("{:.1} %", 100.0 * seconds / whole.max(1e-12)),
                ]);
            }
            if let Some(rest) = sums.len().checked_sub(ROWS + 1) {
                table.row([format!("and {} more", rest + 1)]);
            }
            table.to_string()
        };
        let (ops, kernels) = (self.by_op(), self.by_kernel());
        let mut out = format!(
            "{}: {} calls of {} each under observation\n\n{}",
            self.model,
            self.calls,
            time(self.call.as_secs_f64()),
            table("op", &ops)
        );
        if !kernels.is_empty() {
            out += &format!("\n{}", table("kernel", &kernels));
        }
        out
    }

    /// The sums, times in microseconds a call.
    pub(super) fn to_json(&self) -> Json {
        let calls = self.calls.max(1) as f64;
        let rows = |sums: Vec<(String, usize, Duration)>| -> Vec<Json> {
            let row = |(name, count, time): &(String, usize, Duration)| json!({"name": name, "runs": *count as f64 / calls, "us": time.as_secs_f64() * 1e6 / calls});
            sums.iter().map(row).collect()
        };
        json!({"calls": self.calls, "call_us": self.call.as_secs_f64() * 1e6, "ops": rows(self.by_op()),
            "kernels": rows(self.by_kernel())})
    }

    /// The last call as a trace of the form that chrome://tracing and Perfetto read.
    pub(super) fn trace(&self) -> String {
        trace::chrome(&self.record, &self.names, (&self.model, &self.passes))
    }
}
