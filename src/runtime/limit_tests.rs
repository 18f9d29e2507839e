//! Limits, threads and run state: programs that are stopped, that share a program, that race.

use super::Program;
use crate::diag::{Diagnostic, ErrorKind, Result, Source};
use crate::dialects::{Limits, Registry, Run};
use crate::frontend::script::compile_source;
use crate::value::Value;
use std::time::{Duration, Instant};

fn program(text: &str) -> Program {
    let module = compile_source(&Registry::builtin(), &Source::new("t.py", text)).expect("compiles");
    Program::new(module)
}

fn under(limits: Limits, text: &str) -> Result<Value> {
    program(text).run("f", vec![], &Run::with_limits(Box::new(std::io::sink()), limits))
}

/// The error of a program that reaches a limit; it names the limit and a line of the program.
fn refused(limits: Limits, text: &str, limit: &str, lines: &[usize]) {
    let error = under(limits, text).expect_err("a limit is reached");
    assert!(error.message().contains(limit), "{error}");
    let place = error.report().span.as_ref().map(|span| span.line_column().0);
    assert!(place.is_some_and(|line| lines.contains(&line)), "{error}");
}

/// Each early return nests what follows it one block deeper; run, all of them are jumps.
#[test]
fn blocks_nest_as_deep_as_early_returns() {
    let arms: String = (0..600).map(|n| format!("    if k == {n}:\n        return {n} * 3\n")).collect();
    let program = program(&format!("def f(k: int) -> int:\n{arms}    return -1\n"));
    for (k, answer) in [(0, 0), (599, 1797), (600, -1)] {
        let run = Run::with_limits(Box::new(std::io::sink()), Limits::default());
        let got = program.run("f", vec![Value::Int(k)], &run).and_then(|value| value.to_int());
        assert_eq!(got.expect("answers"), answer);
    }
}

#[test]
fn limits_are_named_with_the_line() {
    let none = Limits::default();
    let endless = "def f() -> int:\n    n = 0\n    while True:\n        n += 1\n    return n\n";
    refused(Limits { steps: Some(100_000), ..none }, endless, "limit of 100000 steps", &[2, 3, 4]);
    refused(
        Limits { time: Some(Duration::from_millis(50)), ..none },
        endless,
        "time limit of 0.05 s",
        &[2, 3, 4],
    );
    let grows =
        "def f() -> int:\n    l: List[int] = []\n    while True:\n        l.append(1)\n    return len(l)\n";
    refused(Limits { bytes: Some(1 << 20), ..none }, grows, "memory limit of 1.0 MiB", &[4]);
    let doubles = "def f() -> int:\n    s = 'a'\n    while True:\n        s = s + s\n    return len(s)\n";
    refused(Limits { bytes: Some(1 << 20), ..none }, doubles, "memory limit of 1.0 MiB", &[4]);
    let tensors = "def f() -> int:\n    l: List[Tensor] = []\n    while True:\n        l.append(torch.zeros([1000]))\n    return 1\n";
    refused(Limits { bytes: Some(1 << 20), ..none }, tensors, "memory limit of 1.0 MiB", &[4]);
    let prints = "def f() -> int:\n    while True:\n        print('hello')\n    return 1\n";
    refused(Limits { output: Some(100), ..none }, prints, "limit of 100 bytes", &[3]);
    let forks = "def g(n: int) -> int:\n    while True:\n        n += 1\n    return n\n\ndef f() -> int:\n    while True:\n        torch.jit.fork(g, 1)\n    return 1\n";
    let limits = Limits { forks: 10, time: Some(Duration::from_secs(20)), ..none };
    let error = under(Limits { steps: Some(10_000_000), ..limits }, forks).expect_err("too many forks");
    assert_eq!(error.kind(), ErrorKind::Limit, "{error}");
}

#[test]
fn below_its_limits_a_program_answers_as_without() {
    let text = "def f() -> int:\n    l: List[Tensor] = []\n    s = 0\n    for i in range(50):\n        x = torch.ones([1000])\n        s += int(x.sum())\n    return s\n";
    let bytes = Some(64 << 10);
    let limits =
        Limits { bytes, steps: Some(10_000), time: Some(Duration::from_secs(600)), ..Limits::default() };
    let answer = under(limits, text).expect("freed tensors are credited");
    assert_eq!(answer.to_text(), "50000");
}

#[test]
fn a_run_is_cancelled_from_another_thread() {
    let run = Run::silent();
    let handle = run.cancel_handle();
    let start = Instant::now();
    let canceller = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(30));
        handle.cancel();
    });
    let endless = program("def f() -> int:\n    n = 0\n    while True:\n        n += 1\n    return n\n");
    let error = endless.run("f", vec![], &run).expect_err("cancelled");
    assert!(error.message().contains("cancelled") && start.elapsed() < Duration::from_secs(20), "{error}");
    canceller.join().expect("ends");
}

#[test]
fn a_task_that_waits_for_itself_is_an_error() {
    let text = "def g(l: List[Future[int]]) -> int:\n    n = 0\n    while len(l) == 0:\n        n += 1\n    return torch.jit.wait(l[0]) + n\n\ndef f() -> int:\n    l: List[Future[int]] = []\n    a = torch.jit.fork(g, l)\n    l.append(a)\n    return torch.jit.wait(a)\n";
    // The number of iterations is part of the answer: a loop that nothing depends on is removed, and the list is read too soon.
    // A hang is an error; a loaded machine is not.
    let limits = Limits { time: Some(Duration::from_secs(600)), ..Limits::default() };
    let error = under(limits, text).expect_err("a circle");
    assert!(error.message().contains("a task waits for itself"), "{error}");
}

/// Forks that leave `no_grad` at different times leave each other's grad mode alone.
#[test]
fn grad_mode_belongs_to_a_task() {
    let text = "def work(n: int) -> int:\n    s = 0\n    for i in range(n):\n        with torch.no_grad():\n            s += i\n    return s\n\ndef f() -> bool:\n    a = torch.jit.fork(work, 300)\n    b = torch.jit.fork(work, 300)\n    c = work(300)\n    torch.jit.wait(a)\n    torch.jit.wait(b)\n    return torch.is_grad_enabled()\n";
    for _ in 0..5 {
        assert_eq!(under(Limits::default(), text).expect("runs").to_text(), "True");
    }
}

const DISJOINT: &str = "def part(x: Tensor, n: int) -> int:
    for i in range(n):
        x.add_(1.0)
    return n

def f(n: int) -> Tensor:
    x = torch.zeros([8, 9000])
    fs: List[Future[int]] = []
    for k in range(7):
        fs.append(torch.jit.fork(part, x[k], n))
    part(x[7], n)
    for q in fs:
        torch.jit.wait(q)
    return x.sum()
";

const CROSSED: &str = "def part(x: Tensor, y: Tensor, n: int) -> int:
    for i in range(n):
        x.add_(y)
        y.copy_(x)
    return n

def f(n: int) -> Tensor:
    x = torch.zeros([70000])
    y = torch.zeros([70000])
    a = torch.jit.fork(part, x, y, n)
    b = torch.jit.fork(part, y, x, n)
    torch.jit.wait(a)
    torch.jit.wait(b)
    return x.sum()
";

/// Forks that write parts of one tensor, and forks that read and write two in both orders; the answers are those of one
/// thread. A time limit makes a hang an error.
#[test]
fn forks_that_share_storage_end() {
    let limits = Limits { time: Some(Duration::from_secs(120)), ..Limits::default() };
    let call = |text: &str, n: i64| {
        let run = Run::with_limits(Box::new(std::io::sink()), limits);
        program(text).run("f", vec![Value::Int(n)], &run).expect("ends")
    };
    for _ in 0..3 {
        let sum = call(DISJOINT, 10).to_tensor().expect("a tensor").item().expect("one");
        assert_eq!(sum.to_f64(), 720_000.0);
        call(CROSSED, 10);
    }
}

/// Sixty-four threads, a run each, ten thousand calls each of one program that reads a tensor all share.
#[test]
fn many_threads_share_a_program() {
    const THREADS: i64 = 64;
    const CALLS: i64 = 10_000;
    let text = "def f(x: Tensor, n: int) -> int:\n    with torch.no_grad():\n        n = n * 2\n    if n % 100 == 0:\n        n += int(x.sum())\n    return n + 1\n";
    let shared = program(text);
    let x = crate::tensor::Tensor::from_vec(&[1f32, 2.0, 3.0], &[3]).expect("valid");
    let wrong = crate::resources::pool::jobs(THREADS as usize, 1 << 20, THREADS as usize, |thread| {
        let run = Run::silent();
        let call = |n: i64| -> Result<bool, Diagnostic> {
            let answer = shared.run("f", vec![x.clone().into(), Value::Int(n)], &run)?.to_int()?;
            let expected = n * 2 + if n * 2 % 100 == 0 { 6 } else { 0 } + 1;
            Ok(answer == expected && run.grad_enabled())
        };
        let first = thread as i64;
        (first..first + CALLS).filter(|n| !call(*n).unwrap_or(false)).count()
    });
    assert_eq!(wrong.iter().sum::<usize>(), 0, "{wrong:?}");
}

/// Expressions over an expanded tensor `x` of 2^18 elements, `m` of 512 by 512 and `b` of 1 by 64 by 2^12: they take little
/// memory and their results little more, but what kernels work in is as large as they seem.
const WORKS_IN_MUCH: &[&str] = &[
    "torch._unique2(x)[0]",
    "x.median()",
    "x.kthvalue(3)[0]",
    "x.mode()[0]",
    "x.topk(2)[0]",
    "x.quantile(0.5)",
    "x.nanmedian()",
    "torch.histc(x)",
    "torch.bincount(x.long())",
    "torch.unique_consecutive(x)",
    "torch.multinomial(x + 1.0, 2)",
    "torch.isin(torch.zeros([2]), x)",
    "torch.searchsorted(x, torch.zeros([2]))",
    "torch.bucketize(torch.zeros([2]), x)",
    "torch.nn.functional.embedding_bag(x.long(), torch.zeros([4, 2]), torch.zeros([1], dtype=torch.long))",
    "torch.nn.functional.nll_loss(m, x[:512].long())",
    "torch.cosine_similarity(m, m)",
    "torch.logcumsumexp(x, 0)[:1]",
    "torch.cumsum(x, 0)[:1]",
    "torch.cummax(x, 0)[0][:1]",
    "x.sort()[1][:1]",
    "x.double().softmax(0)[:1]",
    "torch.fft.rfft(x)[:1]",
    "torch.linalg.matrix_exp(m)[:1]",
    "torch.linalg.det(m + torch.eye(512))",
    "torch.linalg.svdvals(m[:128])",
    "torch.pdist(m)[:1]",
    "torch.cdist(m, m[:2])[:1]",
    "torch.conv1d(b, torch.zeros([1, 64, 63]))",
    "torch.masked_select(x, x > 1.0)",
    "torch.nonzero(x)",
    "torch.index_select(x, 0, torch.zeros([1], dtype=torch.long))",
    "torch.renorm(m, 2.0, 0, 1.0)[:1]",
    "torch.combinations(x[:512])[:1]",
    "torch.tril_indices(512, 512)[:1]",
    "torch.batch_norm(b, None, None, None, None, True, 0.1, 1e-5, False)[:1]",
    "torch.quantize_per_tensor(x, 0.1, 0, torch.quint8).dequantize()[:1]",
];

#[test]
fn what_kernels_work_in_counts() {
    let run = |body: &str, bytes: u64| {
        let text = format!(
            "def f() -> Tensor:\n    x = torch.zeros([1]).expand([262144])\n    m = torch.zeros([1]).expand([512, 512])\n    b = torch.zeros([1]).expand([1, 64, 4096])\n    return {body}\n"
        );
        let run =
            Run::with_limits(Box::new(std::io::sink()), Limits { bytes: Some(bytes), ..Limits::default() });
        let result = program(&text).run("f", vec![], &run).map(drop);
        (result, run.live_bytes())
    };
    let mut wrong = Vec::new();
    for body in WORKS_IN_MUCH {
        // Ops that are compiled when they are first reached leave their names behind.
        let (_, _) = run(body, 1 << 30);
        let (result, left) = run(body, 1 << 17);
        match result {
            Err(error) if error.message().contains("memory limit of 128.0 KiB") && left == 0 => {}
            Err(error) => wrong.push(format!("{body}: {left} bytes are left behind: {}", error.message())),
            Ok(()) => wrong.push(format!("{body}: took no memory")),
        }
        let (result, left) = run(body, 1 << 30);
        if result.is_err() || left != 0 {
            wrong.push(format!("{body}: {left} bytes are left, {result:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Bodies that would take minutes in one kernel.
const TAKES_LONG: &[&str] = &[
    "torch.linalg.qr(m)[1]",
    "torch.linalg.svd(m)[1]",
    "torch.linalg.eigh(m)[0]",
    "torch.linalg.eigvals(m)",
    "torch.linalg.inv(m)",
    "torch.linalg.cholesky(m)",
    "torch.linalg.ldl_factor(m)[0]",
    "torch.linalg.solve_triangular(m, m, upper=True)",
    "torch.ormqr(m, m[0], m)",
    "torch.matmul(m.long(), m.long())",
    "torch.matmul(z, z)",
];

#[test]
fn long_kernels_end_at_the_time_limit() {
    let mut wrong = Vec::new();
    for body in TAKES_LONG {
        let text = format!(
            "def f() -> Tensor:\n    m = torch.ones([1]).expand([2048, 2048]) + 4096.0 * torch.eye(2048)\n    z = torch.zeros([1], dtype=torch.cdouble).expand([4096, 4096])\n    return {body}\n"
        );
        let start = Instant::now();
        let limits = Limits { time: Some(Duration::from_millis(500)), ..Limits::default() };
        match under(limits, &text) {
            Err(error) if error.message().contains("time limit of 0.5 s") => {}
            other => wrong.push(format!("{body}: {:?}", other.map(drop))),
        }
        let took = start.elapsed();
        if took > Duration::from_secs(15) {
            wrong.push(format!("{body}: ended after {took:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
