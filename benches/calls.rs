//! What a call costs besides its work: the key of its arguments, for each tensor; an interpreted op; a call that a plan serves.
//! The work is next to nothing: a question for the rank of a tensor, an answer that the plan has as a constant.
//!
//!     cargo bench --bench calls
//!
//! Run it on a quiet machine, on one core (`taskset -c 0`). Besides Criterion's intervals it prints what each thing costs for itself, beside
//! what is asked of it.

use criterion::{Criterion, Throughput};
use flambeau::diag::Source;
use flambeau::dialects::{Registry, Run};
use flambeau::frontend::script::compile_source;
use flambeau::runtime::{ArgumentSpec, Program};
use flambeau::tensor::{DType, Tensor};
use flambeau::value::Value;
use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

/// Tensors of a call whose key is made.
const TENSORS: [usize; 3] = [1, 8, 32];
/// Lines of a program, and the ops of each.
const LINES: usize = 1000;
const OPS_A_LINE: usize = 2;
/// Runs of a measurement, of which the least counts.
const RUNS: usize = 30;

fn tensor() -> Value {
    Value::Tensor(Tensor::zeros(DType::F32, &[2, 3, 4, 5]).expect("a small tensor"))
}

fn quiet() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run
}

/// A function `f(x)` of a text.
fn program(text: &str) -> Program {
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("f.py", text)).expect("the text is a program");
    Program::with(module, None, registry)
}

/// Questions for the rank, each an op that the interpreter calls by its row, and sums of what they give, which it knows itself; and a
/// program with a single line. Each line is used, or the compiler would leave it out.
fn questions() -> (Program, Program) {
    let of = |lines: usize| {
        let mut text = String::from("def f(x):\n    n = 0\n");
        (0..lines).for_each(|_| text.push_str("    n = n + x.dim()\n"));
        let _ = writeln!(text, "    return n");
        program(&text)
    };
    (of(LINES), of(1))
}

/// The least time of a call in nanoseconds, of `RUNS` times `count` calls.
fn least(count: usize, mut call: impl FnMut()) -> f64 {
    let one = |call: &mut dyn FnMut()| {
        let start = Instant::now();
        (0..count).for_each(|_| call());
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..RUNS).map(|_| one(&mut call)).fold(f64::INFINITY, f64::min)
}

fn calls(criterion: &mut Criterion) {
    let run = quiet();
    let mut group = criterion.benchmark_group("key of the arguments");
    for count in TENSORS {
        let arguments: Vec<Value> = (0..count).map(|_| tensor()).collect();
        group.throughput(Throughput::Elements(count as u64));
        let name = format!("{count} tensors");
        group.bench_function(name, |b| b.iter(|| ArgumentSpec::of(black_box(&arguments), &run)));
    }
    group.finish();
    let (many, _) = questions();
    let sum = many.run("f", vec![tensor()], &run).and_then(|n| n.to_int()).expect("it runs");
    assert_eq!(sum, 4 * LINES as i64, "every line runs");
    let mut group = criterion.benchmark_group("interpreted ops");
    group.throughput(Throughput::Elements((LINES * OPS_A_LINE) as u64));
    group.bench_function("ranks and sums", |b| b.iter(|| many.run("f", vec![tensor()], &run)));
    group.finish();
    let planned = program("def f(x):\n    return x.dim() + 1\n").planned();
    let x = tensor();
    let call = || planned.run("f", vec![x.clone()], &run);
    criterion.bench_function("call of a plan", |b| b.iter(call));
    let plans = planned.plan_report();
    assert_eq!((plans.built, plans.unplanned_calls()), (1, 0), "one plan serves all calls");
}

/// A line for each thing that something is asked of.
fn report() {
    let run = quiet();
    let print = |what: &str, ns: f64, most: f64| println!("{what:<48}{ns:>8.1} ns, asked: below {most} ns");
    let arguments: Vec<Value> = (0..32).map(|_| tensor()).collect();
    let key = least(10_000, || drop(black_box(ArgumentSpec::of(black_box(&arguments), &run)))) / 32.0;
    print("key of the arguments, for each of 32 tensors", key, 30.0);
    let (x, (many, one)) = (tensor(), questions());
    let time =
        |program: &Program, count| least(count, || drop(black_box(program.run("f", vec![x.clone()], &run))));
    let ops = (time(&many, 20) - time(&one, 1000)) / ((LINES - 1) * OPS_A_LINE) as f64;
    print("an interpreted op", ops, 60.0);
    let planned = program("def f(x):\n    return x.dim() + 1\n").planned();
    print("a call of a plan", time(&planned, 1000), 1000.0);
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    calls(&mut criterion);
    criterion.final_summary();
    // Tests of benchmarks run each once.
    if std::env::args().any(|arg| arg == "--bench") {
        report();
    }
}
