//! Random calls of every overload with extreme arguments: none may crash, panic, end in an internal error or run long, and
//! all engines must give the same (`engines.rs`).
//!
//! Calls run in a process of their own, whose memory is limited where the system can, one process for each part of the
//! overloads. A call is found again by its number. By hand, many more:
//!
//!     FLAMBEAU_FUZZ_CALLS=200 FLAMBEAU_FUZZ_SEED=7 cargo test --test root op_fuzz
//!     FLAMBEAU_FUZZ_COMPARED=1 ...      compares the engines by every call, not by some
//!     FLAMBEAU_FUZZ_OP=aten::topk ...   only overloads whose schema begins so

mod engines;
mod values;

use engines::Tally;
use flambeau::diag::{ErrorKind, panics};
use flambeau::dialects::{Family, Node, Op, Registry, Run};
use flambeau::eval;
use flambeau::ir::Attr;
use flambeau::resources::Budget;
use flambeau::runtime::ScriptComposites;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use values::Random;

/// Names the part of the overloads that a process calls.
const CHILD: &str = "FLAMBEAU_FUZZ_PART";
/// Processes.
const PARTS: usize = 4;
/// One of this many calls is made by every engine; by hand, `FLAMBEAU_FUZZ_COMPARED=1` compares all.
const COMPARED: u64 = 8;
/// Bytes that tensors of a call may take.
const BYTES: u64 = 256 << 20;
/// Kilobytes of addresses of a process.
const ADDRESSES: u64 = 4_000_000;
/// How long a call may take.
const LONG: Duration = Duration::from_secs(5);
/// After which a process ends that is still at the same call, on every engine: nothing in it looks at a limit.
const ENDLESS: Duration = Duration::from_secs(180);

pub fn trials() -> Vec<Trial> {
    (0..PARTS).map(|part| Trial::test(format!("op_fuzz::part_{part}"), move || parent(part))).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

fn parent(part: usize) -> Result<(), Failed> {
    let script = format!("ulimit -c 0; ulimit -v {ADDRESSES} 2>/dev/null; exec \"$0\"");
    let mut child = std::process::Command::new("sh");
    child.arg("-c").arg(script).arg(std::env::current_exe()?).env(CHILD, part.to_string());
    // Each thread takes addresses for its stack and heap.
    let output = child.env("RAYON_NUM_THREADS", "2").output()?;
    let output_text = String::from_utf8_lossy(&output.stdout);
    let faults: Vec<&str> = output_text.lines().filter(|line| line.starts_with("fault: ")).collect();
    if !output.status.success() {
        let last =
            output_text.lines().rfind(|line| line.starts_with("call: ")).unwrap_or("before the first call");
        let err = String::from_utf8_lossy(&output.stderr);
        return Err(format!("the process ended with {} in {last}\n{err}", output.status).into());
    }
    let Some(done) = output_text.lines().find_map(|line| line.strip_prefix("done: ")) else {
        return Err("the process did not come to its end".into());
    };
    if !faults.is_empty() {
        return Err(faults.join("\n").into());
    }
    // A choice of ops may have none that is compared.
    let some = ["FLAMBEAU_FUZZ_OP", "FLAMBEAU_FUZZ_FROM", "FLAMBEAU_FUZZ_CALLS"];
    let chosen = some.iter().any(|name| std::env::var_os(name).is_some());
    if chosen { Ok(()) } else { enough(done) }
}

/// Whether enough was compared, gave answers and ran in kernels: of calls with extreme arguments most raise, but a harness that
/// is broken compares nothing.
fn enough(done: &str) -> Result<(), Failed> {
    let counts: Vec<u64> = done.split(' ').filter_map(|word| word.parse().ok()).collect();
    let &[made, compared, answered, fused] = counts.as_slice() else {
        return Err(format!("not a count: {done}").into());
    };
    let kernels = !cfg!(feature = "llvm") || fused >= 2;
    if compared * COMPARED * 2 < made || answered * 5 < compared || !kernels {
        return Err(format!("too little was compared: {done}").into());
    }
    Ok(())
}

/// In the process that calls: calls, and says what went wrong.
pub fn as_child() -> Option<i32> {
    let part: usize = std::env::var(CHILD).ok()?.parse().ok()?;
    let (calls, seed) = (number("FLAMBEAU_FUZZ_CALLS", 3), number("FLAMBEAU_FUZZ_SEED", 1));
    let every = number("FLAMBEAU_FUZZ_COMPARED", COMPARED).max(1);
    let skip = number("FLAMBEAU_FUZZ_FROM", 0);
    let wanted = std::env::var("FLAMBEAU_FUZZ_OP").unwrap_or_default();
    let registry = Registry::builtin();
    let mut out = std::io::stdout().lock();
    let mut made = 0u64;
    let (mut tally, limits) = (Tally::default(), engines::limits(BYTES));
    let calls_begun = watched();
    // Panics are faults that are reported once, not printed as they happen.
    std::panic::set_hook(Box::new(|_| {}));
    for (n, op) in registry.iter().enumerate() {
        if n % PARTS != part || !op.schema_text().starts_with(&wanted) || !is_called(op) {
            continue;
        }
        for call in 0..calls {
            let id = n as u64 * 1_000_000 + call;
            if id < skip {
                continue;
            }
            let _ = writeln!(out, "call: {id} {}", op.schema_text());
            let _ = out.flush();
            calls_begun.fetch_add(1, Ordering::Relaxed);
            let own = seed ^ id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            if let Some(fault) = one(op, own) {
                let _ = writeln!(out, "fault: {id} {}: {fault}", op.schema_text());
            }
            if !(own >> 20).is_multiple_of(every) {
                made += 1;
                continue;
            }
            if let Err(fault) = engines::compare(op, own, &limits, &mut tally) {
                let fault = fault.replace('\n', "\nfault:    ");
                let _ = writeln!(out, "fault: {id} {}: {fault}", op.schema_text());
            }
            made += 1;
        }
    }
    let _ = writeln!(
        out,
        "done: {made} compared {} answered {} fused {}",
        tally.compared, tally.answered, tally.fused
    );
    Some(0)
}

/// A count of calls; while it does not grow for long, the process ends, and its parent names the call.
fn watched() -> Arc<AtomicU64> {
    let count = Arc::new(AtomicU64::new(0));
    let seen = count.clone();
    std::thread::spawn(move || {
        let mut last = 0;
        loop {
            std::thread::sleep(ENDLESS);
            let now = seen.load(Ordering::Relaxed);
            if now == last {
                eprintln!("one call took longer than {} s", ENDLESS.as_secs());
                std::process::exit(3);
            }
            last = now;
        }
    });
    count
}

/// Ops that a call alone means something for: not control flow, and none that reads or ends the world.
fn is_called(op: &Op) -> bool {
    let outside =
        ["aten::save", "aten::manual_seed", "prim::", "fusion::", "loop::", "aten::wait", "aten::breakpoint"];
    op.is_built()
        && !matches!(op.def().family, Family::Control)
        && !outside.iter().any(|name| op.schema_text().starts_with(name))
}

fn one(op: &Op, seed: u64) -> Option<String> {
    let values = arguments(op, &mut Random::new(seed));
    let budget = Arc::new(Budget::new(engines::limits(BYTES)));
    let _installed = budget.install();
    let run = Run::silent().with_composites(ScriptComposites::of(&Registry::builtin()));
    let start = Instant::now();
    let answer = panics::catch("the op", || eval::call(op, &values, Node::default(), &run));
    let took = start.elapsed();
    let shown = || {
        let texts: Vec<String> = values.iter().map(show).collect();
        texts.join(", ")
    };
    match answer.and_then(|result| result) {
        Err(error) if matches!(error.kind(), ErrorKind::Internal | ErrorKind::Panic) => {
            let notes = error.report().notes.join("; ");
            Some(format!("({}) {:?}: {} {notes}", shown(), error.kind(), error.message()))
        }
        _ if took > LONG => Some(format!("({}) took {:.1} s", shown(), took.as_secs_f64())),
        _ => None,
    }
}

/// Arguments for an op, some of them the defaults.
fn arguments(op: &Op, random: &mut Random) -> Vec<Value> {
    let Ok(schema) = op.schema() else { return Vec::new() };
    let arguments = schema.arguments.iter();
    let values = arguments.map(|argument| match &argument.default {
        Some(default) if random.below(2) == 0 => simple(default).unwrap_or(Value::None),
        _ => random.value(&argument.ty, 0),
    });
    values.collect()
}

/// A default as a value.
fn simple(attr: &Attr) -> Option<Value> {
    Some(match attr {
        Attr::Int(x) => Value::Int(*x),
        Attr::Float(x) => Value::Float(*x),
        Attr::Bool(x) => Value::Bool(*x),
        Attr::Str(x) => Value::str(x.to_string()),
        Attr::Ints(x) => Value::ints(x.iter().copied()),
        _ => return None,
    })
}

fn show(value: &Value) -> String {
    match value {
        Value::Tensor(t) => format!("{t:?} strides {:?}", t.strides().as_slice()),
        Value::List(list) => {
            let items: Vec<String> = list.items().iter().take(6).map(show).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.to_text(),
    }
}
