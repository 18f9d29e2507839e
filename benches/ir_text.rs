//! IR text: parse, verify and print straight-line integer code of growing size, beside `mlir-opt` 22 where it is
//! installed (Debian: mlir-22-tools). The peer gets a text of as many ops, on one core, process start left out.

use criterion::{BenchmarkId, Criterion, Throughput};
use flambeau::diag::Source;
use flambeau::dialects::Registry;
use flambeau::ir::{NoLaws, ParseOptions, PrintOptions, parse_module, verify_module};
use std::fmt::Write;
use std::process::Command;
use std::time::{Duration, Instant};

const KINDS: [&str; 3] = ["add", "mul", "sub"];

/// `ops` integer ops in a row, each of the two values before it.
fn graph_text(ops: usize) -> String {
    let mut text = String::from("graph(%0 : int,\n      %1 : int):\n");
    for i in 2..ops + 2 {
        let _ = writeln!(text, "  %{i} : int = aten::{}(%{}, %{})", KINDS[i % 3], i - 1, i - 2);
    }
    let _ = writeln!(text, "  return (%{})", ops + 1);
    text
}

fn mlir_text(ops: usize) -> String {
    let mut text = String::from("func.func @f(%v0: i64, %v1: i64) -> i64 {\n");
    for i in 2..ops + 2 {
        let _ = writeln!(text, "  %v{i} = arith.{}i %v{}, %v{} : i64", KINDS[i % 3], i - 1, i - 2);
    }
    let _ = writeln!(text, "  return %v{} : i64\n}}", ops + 1);
    text
}

/// What `flambeau opt` does without passes; the text goes nowhere.
fn parse_verify_print(source: &std::sync::Arc<Source>) {
    let parsed = parse_module(source, &ParseOptions::default()).expect("the text is well formed");
    assert!(verify_module(&parsed.module, &NoLaws, &|_| None).is_empty());
    parsed
        .module
        .write_text(&mut std::io::sink(), &PrintOptions::default())
        .expect("a sink takes everything");
}

/// Least of a few runs.
fn least(runs: usize, mut run: impl FnMut() -> Option<Duration>) -> Option<Duration> {
    (0..runs).filter_map(|_| run()).min()
}

/// Seconds that `mlir-opt` takes for a file, or None where it is not installed.
fn mlir_opt(text: &str) -> Option<Duration> {
    let file = std::env::temp_dir().join(format!("flambeau-bench-{}.mlir", std::process::id()));
    std::fs::write(&file, text).ok()?;
    let time = ["mlir-opt-22", "mlir-opt"].into_iter().find_map(|program| {
        least(3, || {
            let start = Instant::now();
            let done = Command::new(program)
                .arg(&file)
                .args(["-o", "/dev/null", "--mlir-disable-threading"])
                .status();
            done.is_ok_and(|s| s.success()).then(|| start.elapsed())
        })
    });
    let _ = std::fs::remove_file(&file);
    time
}

/// How much longer it takes with CSE and DCE, and what an op costs from a thousand to ten million.
fn growth() {
    let registry = Registry::builtin();
    let pipeline = flambeau::passes::parse("cse,dce").expect("both are built in");
    let mut first = None;
    for ops in [1_000usize, 10_000, 100_000, 1_000_000, 10_000_000] {
        let source = Source::new("bench.ir", graph_text(ops));
        let runs = (1_000_000 / ops).clamp(1, 20);
        let own = least(runs, || {
            let start = Instant::now();
            parse_verify_print(&source);
            Some(start.elapsed())
        });
        let with_passes = least(runs, || {
            let start = Instant::now();
            let mut module =
                parse_module(&source, &ParseOptions::default()).expect("the text is well formed").module;
            assert!(verify_module(&module, &NoLaws, &|_| None).is_empty());
            pipeline.run(&mut module, &registry).expect("they do not fail");
            module
                .write_text(&mut std::io::sink(), &PrintOptions::default())
                .expect("a sink takes everything");
            Some(start.elapsed())
        });
        let (Some(own), Some(with_passes)) = (own, with_passes) else { continue };
        let each = own.as_secs_f64() * 1e9 / ops as f64;
        let base = *first.get_or_insert(each);
        println!(
            "{ops} ops: {each:.0} ns an op, {:.2} times that at 1000; cse and dce add {:.0} %",
            each / base,
            100.0 * (with_passes.as_secs_f64() / own.as_secs_f64() - 1.0)
        );
    }
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("parse_verify_print");
    group.sample_size(10);
    for ops in [1_000, 100_000, 1_000_000] {
        let source = Source::new("bench.ir", graph_text(ops));
        group.throughput(Throughput::Elements(ops as u64));
        group.bench_with_input(BenchmarkId::from_parameter(ops), &source, |b, source| {
            b.iter(|| parse_verify_print(source));
        });
    }
    group.finish();
    criterion.final_summary();
    growth();
    let start = mlir_opt("func.func @f() { return }\n");
    for ops in [100_000, 1_000_000] {
        let source = Source::new("bench.ir", graph_text(ops));
        let own = least(3, || {
            let start = Instant::now();
            parse_verify_print(&source);
            Some(start.elapsed())
        });
        match (own, mlir_opt(&mlir_text(ops)), start) {
            (Some(own), Some(peer), Some(start)) => {
                let peer = peer.saturating_sub(start);
                let rate = |time: Duration| ops as f64 / time.as_secs_f64().max(1e-9) / 1e6;
                println!(
                    "{ops} ops: {:.2} million ops/s, mlir-opt {:.2} million ops/s, ratio {:.1}",
                    rate(own),
                    rate(peer),
                    peer.as_secs_f64() / own.as_secs_f64().max(1e-9)
                );
            }
            _ => println!("{ops} ops: mlir-opt is not installed, no ratio (Debian: mlir-22-tools)"),
        }
    }
}
