//! IR text: `flambeau opt` (parse, verify, print) on straight-line integer code, beside `mlir-opt` 22 where it is
//! installed (Debian: mlir-22-tools).
//!
//! Both programs read a file with as many integer ops, verify it, and write the result to a file, on one thread, by
//! turns; the least of several runs counts. Times are of the processor, not of the clock, so that other work on the
//! machine shows little. What a program takes for a file of one op is its start: ratios are given with it and without.
//!
//!     cargo bench --bench ir_text             everything, ten million ops included (about 3 GB of memory)
//!     cargo bench --bench ir_text -- beside   only the comparison

use criterion::{BenchmarkId, Criterion, Throughput};
use flambeau::diag::Source;
use flambeau::dialects::{Laws, Registry, Strictness};
use flambeau::ir::{Module, ParseOptions, PrintOptions, parse_module, verify_module};
use flambeau::passes::Pipeline;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const KINDS: [&str; 3] = ["add", "mul", "sub"];
const PEERS: [&str; 3] = ["mlir-opt-22", "/usr/lib/llvm-22/bin/mlir-opt", "mlir-opt"];

/// `ops` integer ops in a row, each of the two values before it.
fn graph_text(ops: usize) -> String {
    let mut text = String::from("graph(%0 : int,\n      %1 : int):\n");
    for i in 2..ops + 2 {
        let _ = writeln!(text, "  %{i} : int = aten::{}(%{}, %{})", KINDS[i % 3], i - 1, i - 2);
    }
    let _ = writeln!(text, "  return (%{})", ops + 1);
    text
}

/// The same in MLIR's `arith` dialect.
fn mlir_text(ops: usize) -> String {
    let mut text = String::from("func.func @f(%v0: i64, %v1: i64) -> i64 {\n");
    for i in 2..ops + 2 {
        let _ = writeln!(text, "  %v{i} = arith.{}i %v{}, %v{} : i64", KINDS[i % 3], i - 1, i - 2);
    }
    let _ = writeln!(text, "  return %v{} : i64\n}}", ops + 1);
    text
}

// --- in this process ---

/// What `flambeau opt` does; the text goes nowhere.
fn parse_verify_print(source: &Arc<Source>, registry: &Registry, passes: Option<&Pipeline>) {
    let mut module: Module =
        parse_module(source, &ParseOptions::default()).expect("the text is well formed").module;
    let laws = Laws::new(registry, Strictness::default());
    assert!(verify_module(&module, &laws, &|_| None).is_empty());
    if let Some(passes) = passes {
        passes.run(&mut module, registry).expect("they do not fail");
    }
    module.write_text(&mut std::io::sink(), &PrintOptions::default()).expect("a sink takes everything");
}

/// Processor time of this thread so far.
fn thread_time() -> Duration {
    // The count is brought up to date when the thread gives way.
    std::thread::yield_now();
    schedstat("/proc/thread-self/schedstat").unwrap_or_default()
}

fn schedstat(path: &str) -> Option<Duration> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(Duration::from_nanos(text.split_whitespace().next()?.parse().ok()?))
}

/// What an op costs from a thousand to ten million, and how much longer it takes with CSE and DCE.
fn growth() {
    let registry = Registry::builtin();
    let passes = flambeau::toolkit::Toolkit::default().parse_pipeline("cse,dce").expect("both are built in");
    println!("\nin this process:");
    let mut costs: Vec<f64> = Vec::new();
    for ops in [1_000usize, 10_000, 100_000, 1_000_000, 10_000_000] {
        let source = Source::new("bench.ir", graph_text(ops));
        let least = |passes: Option<&Pipeline>| {
            let times = (0..(5_000_000 / ops).clamp(2, 100)).map(|_| {
                let start = thread_time();
                parse_verify_print(&source, &registry, passes);
                (thread_time() - start).as_secs_f64()
            });
            times.fold(f64::INFINITY, f64::min)
        };
        let (own, with_passes) = (least(None), least(Some(&passes)));
        costs.push(own * 1e9 / ops as f64);
        println!(
            "{ops:>9} ops: {:4.0} ns an op; cse and dce add {:.0} %",
            own * 1e9 / ops as f64,
            100.0 * (with_passes / own - 1.0)
        );
    }
    let (low, high) = costs.iter().fold((f64::INFINITY, 0.0f64), |(l, h), c| (l.min(*c), h.max(*c)));
    println!("the dearest is {:.2} times the cheapest (wanted: at most 1.5)", high / low);
}

// --- beside mlir-opt ---

/// What a run of a program took.
#[derive(Clone, Copy)]
struct Cost {
    /// Processor time in seconds.
    seconds: f64,
    /// Largest resident memory in MB.
    memory: f64,
}

impl Cost {
    fn least(self, other: Cost) -> Cost {
        Cost { seconds: self.seconds.min(other.seconds), memory: self.memory.min(other.memory) }
    }
}

/// Runs a program to its end and watches it. None where it cannot be started, fails or cannot be watched.
fn watch(program: &Path, words: &[&str]) -> Option<Cost> {
    let mut child = Command::new(program).args(words).stdout(Stdio::null()).spawn().ok()?;
    let folder = format!("/proc/{}", child.id());
    let mut memory = 0.0f64;
    // The memory is gone when the process ends; its time stays until somebody waits for it.
    let ended = loop {
        let Ok(stat) = std::fs::read_to_string(format!("{folder}/stat")) else { break false };
        if stat.rsplit(')').next()?.trim_start().starts_with('Z') {
            break true;
        }
        let status = std::fs::read_to_string(format!("{folder}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let peak = peak.and_then(|text| text.split_whitespace().next()?.parse::<f64>().ok());
        memory = memory.max(peak.unwrap_or(0.0) / 1024.0);
        std::thread::sleep(Duration::from_micros(500));
    };
    let time = schedstat(&format!("{folder}/schedstat"));
    let status = child.wait().ok()?;
    (ended && status.success()).then_some(Cost { seconds: time?.as_secs_f64(), memory })
}

/// A file for as long as it is needed.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str, text: &str) -> Scratch {
        let path = std::env::temp_dir().join(format!("flambeau-bench-{}-{name}", std::process::id()));
        std::fs::write(&path, text).expect("the folder for temporary files can be written");
        Scratch(path)
    }

    fn path(&self) -> &str {
        self.0.to_str().expect("it has a plain name")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Costs of `flambeau opt`, of that with CSE and DCE, and of `mlir-opt`, for so many ops.
fn side_by_side(peer: Option<&Path>, ops: usize, runs: usize) -> Option<(Cost, Cost, Option<Cost>)> {
    let own = Path::new(env!("CARGO_BIN_EXE_flambeau"));
    let (ours, theirs) = (Scratch::new("in.ir", &graph_text(ops)), Scratch::new("in.mlir", &mlir_text(ops)));
    let out = Scratch::new("out", "");
    let plain = ["opt", ours.path(), "-o", out.path()];
    let passes = ["opt", ours.path(), "-o", out.path(), "--passes", "cse,dce"];
    let mlir = [theirs.path(), "-o", out.path(), "--mlir-disable-threading"];
    let (mut a, mut b, mut c): (Option<Cost>, Option<Cost>, Option<Cost>) = (None, None, None);
    for _ in 0..runs {
        let least = |old: Option<Cost>, new: Cost| Some(old.map_or(new, |old| old.least(new)));
        a = least(a, watch(own, &plain)?);
        b = least(b, watch(own, &passes)?);
        if let Some(cost) = peer.and_then(|program| watch(program, &mlir)) {
            c = least(c, cost);
        }
    }
    Some((a?, b?, c))
}

/// Compares the commands.
fn beside() {
    let peer = PEERS.into_iter().map(Path::new).find(|p| watch(p, &["--version"]).is_some());
    println!("\nthe commands, processor time and peak memory:");
    let Some((start, _, peer_start)) = side_by_side(peer, 1, 5) else {
        return println!("processes cannot be watched here (no /proc)");
    };
    for (ops, runs) in [(100_000, 7), (1_000_000, 3)] {
        let Some((own, passes, theirs)) = side_by_side(peer, ops, runs) else { continue };
        let rate = |cost: Cost, start: Cost| ops as f64 / (cost.seconds - start.seconds).max(1e-9) / 1e6;
        println!(
            "{ops:>9} ops: flambeau opt {:.3} s, {:.2} million ops/s, {:.0} MB; cse and dce add {:.0} %",
            own.seconds,
            rate(own, start),
            own.memory,
            100.0 * (passes.seconds / own.seconds - 1.0)
        );
        let (Some(theirs), Some(peer_start)) = (theirs, peer_start) else {
            println!("               mlir-opt is not installed, no ratio (Debian: mlir-22-tools)");
            continue;
        };
        println!(
            "               mlir-opt     {:.3} s, {:.2} million ops/s, {:.0} MB",
            theirs.seconds,
            rate(theirs, peer_start),
            theirs.memory
        );
        println!(
            "               ratio of ops per second {:.1}, with process start {:.1} (wanted: at least 3)",
            rate(own, start) / rate(theirs, peer_start),
            theirs.seconds / own.seconds
        );
        println!(
            "               memory {:.0} %, with process start ({:.0} and {:.0} MB) {:.0} % (wanted: at most 40)",
            100.0 * (own.memory - start.memory) / (theirs.memory - peer_start.memory),
            start.memory,
            peer_start.memory,
            100.0 * own.memory / theirs.memory
        );
    }
}

fn main() {
    if std::env::args().any(|word| word == "beside") {
        return beside();
    }
    let registry = Registry::builtin();
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("parse_verify_print");
    group.sample_size(10);
    for ops in [1_000, 100_000, 1_000_000] {
        let source = Source::new("bench.ir", graph_text(ops));
        group.throughput(Throughput::Elements(ops as u64));
        group.bench_with_input(BenchmarkId::from_parameter(ops), &source, |b, source| {
            b.iter(|| parse_verify_print(source, &registry, None));
        });
    }
    group.finish();
    criterion.final_summary();
    growth();
    beside();
}
