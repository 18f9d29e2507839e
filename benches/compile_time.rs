//! How the time to compile grows with the program: each workload at a size and at twice that size. A ratio near 2 is linear,
//! 4 quadratic. First a table at full size, the least of two runs; then the same workloads, smaller, under criterion.
//!
//!     cargo bench --bench compile_time                 the table, then criterion
//!     cargo bench --bench compile_time -- table        the table alone
//!     cargo bench --bench compile_time -- table rules  the rows whose name contains `rules`

use criterion::{BenchmarkId, Criterion};
use flambeau::tools::{cli, io::Io};
use std::ffi::OsString;
use std::fmt::Write;
use std::path::Path;
use std::time::{Duration, Instant};

/// A program or a file that grows with a number, and the command that reads it.
struct Workload {
    name: &'static str,
    /// The size of the table's first column; criterion takes a twentieth.
    size: usize,
    /// Words of the command; `FILE` stands for the text.
    words: &'static str,
    text: fn(usize) -> String,
}

const WORKLOADS: &[Workload] = &[
    Workload { name: "ops_parse_print", size: 200_000, words: "opt FILE --passes dce", text: chain },
    Workload { name: "ops_default", size: 100_000, words: "opt FILE --passes default", text: chain },
    Workload { name: "ops_simplify", size: 40_000, words: "opt FILE --passes simplify", text: foldable },
    Workload { name: "ops_source", size: 50_000, words: "opt FILE --passes dce", text: source },
    Workload { name: "calls_inline", size: 2_500, words: "opt FILE --passes inline", text: calls },
    Workload { name: "calls_run", size: 2_500, words: "run FILE --entry f", text: calls },
    Workload {
        name: "group_llvm",
        size: 3_000,
        words: "translate FILE --to llvm --passes default",
        text: chain_sized,
    },
    Workload { name: "alias_appends", size: 5_000, words: "opt FILE --passes default", text: appends },
    Workload { name: "alias_views", size: 5_000, words: "opt FILE --passes default", text: views },
    Workload { name: "early_returns", size: 1_000, words: "opt FILE --passes default", text: returns },
    Workload { name: "list_appends", size: 20_000, words: "run FILE --entry f", text: grown_list },
    Workload { name: "rules_check", size: 10_000, words: "rules check FILE --samples 1", text: rules },
];

fn lines(n: usize, line: impl Fn(usize, &mut String)) -> String {
    (0..n).fold(String::new(), |mut out, i| {
        line(i, &mut out);
        out.push('\n');
        out
    })
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Text takes all that is written to it.
    let _ = out.write_fmt(text);
}

/// A chain of ops.
fn chain(n: usize) -> String {
    let ops = lines(n, |i, out| put(out, format_args!("  %{} : Tensor = aten::relu(%{i})", i + 1)));
    format!("graph(%0 : Tensor):\n{ops}  return (%{n})\n")
}

/// The same with sizes, so that it is one fused group.
fn chain_sized(n: usize) -> String {
    const TYPE: &str = "Float(64, strides=[1], requires_grad=0, device=cpu)";
    let ops = lines(n, |i, out| put(out, format_args!("  %{} : {TYPE} = aten::tanh(%{i})", i + 1)));
    format!("graph(%0 : {TYPE}):\n{ops}  return (%{n})\n")
}

/// Arithmetic of which rules take half away.
fn foldable(n: usize) -> String {
    let ops = lines(n / 2, |i, out| {
        put(
            out,
            format_args!(
                "  %a{i} : int = aten::add(%b{i}, %zero)\n  %b{} : int = aten::mul(%a{i}, %k)",
                i + 1
            ),
        );
    });
    format!(
        "graph(%b0 : int, %k : int):\n  %zero : int = prim::Constant[value=0]()\n{ops}  return (%b{})\n",
        n / 2
    )
}

/// A function of many statements.
fn source(n: usize) -> String {
    let body = lines(n, |_, out| out.push_str("    x = x + 1"));
    format!("def f(x: int = 1) -> int:\n{body}    return x\n")
}

/// Functions each of which calls the one before it.
fn calls(n: usize) -> String {
    let functions = lines(n, |i, out| {
        put(out, format_args!("def g{}(x: int) -> int:\n    return g{i}(x) + 1", i + 1));
    });
    format!(
        "def g0(x: int) -> int:\n    return x\n{functions}def f(x: int = 1) -> int:\n    return g{n}(x)\n"
    )
}

/// A function that returns early, again and again: what follows each return is nested in a block.
fn returns(n: usize) -> String {
    let arms = lines(n, |i, out| put(out, format_args!("    if k == {i}:\n        return x + {i}")));
    format!("def f(x: Tensor, k: int):\n{arms}    return x\n")
}

/// Tensors that one list holds.
fn appends(n: usize) -> String {
    let ops = lines(n, |i, out| {
        put(
            out,
            format_args!("  %v{i} : Tensor = aten::relu(%x)\n  %a{i} : Tensor[] = aten::append(%l, %v{i})"),
        );
    });
    format!("graph(%x : Tensor):\n  %l : Tensor[] = prim::ListConstruct(%x)\n{ops}  return (%l)\n")
}

/// A list of tensors that a loop fills.
fn grown_list(n: usize) -> String {
    format!(
        "def f() -> int:\n    l = [torch.zeros([1])]\n    for i in range({n}):\n        l.append(torch.ones([1]))\n    return len(l)\n"
    )
}

/// Views of one tensor that are written to.
fn views(n: usize) -> String {
    let ops = lines(n, |i, out| {
        put(
            out,
            format_args!(
                "  %v{i} : Tensor = aten::select(%x, %k, %k)\n  %w{i} : Tensor = aten::relu_(%v{i})"
            ),
        );
    });
    format!("graph(%x : Tensor, %k : int):\n{ops}  return (%x)\n")
}

/// Rules, each with a number of its own.
fn rules(n: usize) -> String {
    lines(n, |i, out| {
        put(
            out,
            format_args!(
                "rule r{i} exact aten::eq(aten::add(?x: int, {i}), ?x) => false if ?x < 0 and ?x > 0 or is_const(?x)"
            ),
        );
    })
}

impl Workload {
    /// Writes the files of a size; gives the words.
    fn prepare(&self, folder: &Path, n: usize) -> Vec<OsString> {
        let end = match self.words.split(' ').next() {
            Some("rules") => "rules",
            _ if (self.text)(1).starts_with("graph") => "ir",
            _ => "py",
        };
        let file = folder.join(format!("{}-{n}.{end}", self.name));
        std::fs::write(&file, (self.text)(n)).expect("the folder can be written");
        let word = |word: &str| if word == "FILE" { file.clone().into() } else { OsString::from(word) };
        std::iter::once("flambeau".into()).chain(self.words.split(' ').map(word)).collect()
    }
}

/// Runs a command and throws away what it says; its status may be 1 where rules are refused.
fn run(words: &[OsString]) -> Duration {
    let start = Instant::now();
    let (mut stdin, mut out, mut err) = (std::io::empty(), std::io::sink(), std::io::sink());
    let toolkit = flambeau::toolkit::Toolkit::default();
    let mut io = Io::new(&toolkit, Path::new(""), &mut stdin, &mut out, &mut err);
    let status = cli::main_in(words.iter().cloned(), &mut io);
    assert!(status < 2, "{words:?} is not a command");
    start.elapsed()
}

fn table(folder: &Path, filter: &str) {
    println!("{:<18} {:>9} {:>10} {:>9} {:>10} {:>6}", "workload", "size", "ms", "size", "ms", "ratio");
    for workload in WORKLOADS.iter().filter(|workload| workload.name.contains(filter)) {
        let time = |n: usize| {
            let words = workload.prepare(folder, n);
            run(&words).min(run(&words)).as_secs_f64() * 1e3
        };
        let (size, double) = (workload.size, workload.size * 2);
        let (once, twice) = (time(size), time(double));
        println!(
            "{:<18} {size:>9} {once:>10.0} {double:>9} {twice:>10.0} {:>6.2}",
            workload.name,
            twice / once
        );
    }
}

fn main() {
    let folder = std::env::temp_dir().join(format!("flambeau-compile-time-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder for texts");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    let only_table = words.first().is_some_and(|word| word == "table");
    table(&folder, words.get(1).filter(|_| only_table).map_or("", String::as_str));
    if !only_table {
        let mut criterion = Criterion::default().configure_from_args();
        for workload in WORKLOADS {
            let mut group = criterion.benchmark_group(workload.name);
            group.sample_size(10);
            for n in [workload.size / 20, workload.size / 10] {
                let words = workload.prepare(&folder, n);
                group.bench_function(BenchmarkId::from_parameter(n), |bencher| bencher.iter(|| run(&words)));
            }
            group.finish();
        }
        criterion.final_summary();
    }
    let _ = std::fs::remove_dir_all(&folder);
}
