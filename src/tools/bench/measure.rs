//! Calls with a stopwatch: how many, and what is made of their times.

use super::options::Options;
use super::subject::Ready;
use crate::diag::Result;
use crate::dialects::Run;
use std::time::{Duration, Instant};

/// Calls that are timed at least, and at most.
const CALLS: std::ops::RangeInclusive<usize> = 5..=20_000;

/// The times of calls, sorted.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    sorted: Vec<Duration>,
    /// Beside a baseline: the times of the other program, and how many times as long it took, pair by pair, sorted.
    pub(super) baseline: Option<Box<(Times, Vec<f64>)>>,
}

impl Times {
    fn of(mut times: Vec<Duration>) -> Times {
        times.sort_unstable();
        Times { sorted: times, baseline: None }
    }

    /// How many calls were timed.
    pub(super) fn calls(&self) -> usize {
        self.sorted.len()
    }

    /// The time that a share of the calls did not exceed, in seconds.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        quantile(&self.sorted, share).map_or(0.0, |time| time.as_secs_f64())
    }

    /// The shortest.
    pub(super) fn min(&self) -> f64 {
        self.sorted.first().map_or(0.0, Duration::as_secs_f64)
    }

    /// Calls in a second, one after the other.
    pub(super) fn rate(&self) -> f64 {
        let total: f64 = self.sorted.iter().map(Duration::as_secs_f64).sum();
        if total > 0.0 { self.sorted.len() as f64 / total } else { 0.0 }
    }
}

/// The middle one for 0.5 is that of the upper half, the last one for 1.
fn quantile<T: Copy>(sorted: &[T], share: f64) -> Option<T> {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied()
}

/// The ratio's middle, and where 10 % and 90 % of the pairs lie.
pub(super) fn spread(ratios: &[f64]) -> (f64, f64, f64) {
    let at = |share| quantile(ratios, share).unwrap_or(0.0);
    (at(0.5), at(0.1), at(0.9))
}

/// Whether more calls are wanted.
fn goes_on(calls: usize, end: Instant) -> bool {
    (Instant::now() < end || calls < *CALLS.start()) && calls < *CALLS.end()
}

fn end(options: &Options) -> Instant {
    Instant::now() + Duration::from_secs_f64(options.seconds.clamp(0.0, 3600.0))
}

/// Times a program once it is warm.
pub(super) fn times(options: &Options, ready: &Ready, run: &Run) -> Result<Times> {
    for _ in 0..options.warmup {
        ready.call(run)?;
    }
    let (mut times, end) = (Vec::new(), end(options));
    while goes_on(times.len(), end) {
        times.push(ready.call(run)?);
    }
    Ok(Times::of(times))
}

/// Times two programs alternately, so that both see the same machine load.
pub(super) fn in_turn(options: &Options, ready: &Ready, other: &Ready, run: &Run) -> Result<Times> {
    for _ in 0..options.warmup {
        ready.call(run)?;
        other.call(run)?;
    }
    let (mut times, mut others, mut ratios, end) = (Vec::new(), Vec::new(), Vec::new(), end(options));
    while goes_on(times.len(), end) {
        // Who goes first alternates: the second finds the caches that the first leaves.
        let (time, base) = if times.len() % 2 == 0 {
            let time = ready.call(run)?;
            (time, other.call(run)?)
        } else {
            let base = other.call(run)?;
            (ready.call(run)?, base)
        };
        ratios.push(base.as_secs_f64() / time.as_secs_f64().max(1e-9));
        times.push(time);
        others.push(base);
    }
    ratios.sort_by(f64::total_cmp);
    Ok(Times { baseline: Some(Box::new((Times::of(others), ratios))), ..Times::of(times) })
}

/// The most memory that the process holds from some moment on, where the system reports it.
pub(super) struct Peak;

impl Peak {
    /// Begins anew.
    pub(super) fn begin() -> Peak {
        // Where it cannot be begun anew, the peak is that of the whole process.
        let _ = std::fs::write("/proc/self/clear_refs", "5");
        Peak
    }

    /// Bytes at the most.
    pub(super) fn end(&self) -> Option<u64> {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_summed_up() {
        let times = Times::of((1..=100).rev().map(Duration::from_millis).collect());
        assert_eq!((times.calls(), times.min()), (100, 0.001));
        assert_eq!((times.quantile(0.5), times.quantile(0.99), times.quantile(1.0)), (0.051, 0.1, 0.1));
        assert!((times.rate() - 1.0 / 0.0505).abs() < 1e-6);
        assert_eq!(spread(&[1.0, 2.0, 3.0]), (2.0, 1.0, 3.0));
        assert_eq!(Times::of(Vec::new()).quantile(0.5), 0.0);
    }
}
