//! Integer kernels: linear layers and convolutions of bytes, beside torch.jit where a Python with torch is named.
//!
//! Both are timed by turns in the same run, on as many threads; the least of all calls counts.
//!
//!     TORCH_PYTHON=venv/bin/python cargo bench --bench int8            on one thread
//!     TORCH_PYTHON=venv/bin/python cargo bench --bench int8 -- 2       on two

use flambeau::kernels::Affine;
use flambeau::kernels::int8::qconv::{Geometry, PackedConv};
use flambeau::kernels::int8::qgemm::{PackedWeights, Quantization, linear, linear_dynamic};
use flambeau::resources::pool;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

/// What is measured, in the numbers of the layer.
#[derive(Clone, Copy)]
enum Case {
    /// Rows, features in, features out.
    Linear(usize, usize, usize),
    /// The same from float32 to float32.
    Dynamic(usize, usize, usize),
    /// Channels in, channels out, height and width, window, stride, groups.
    Conv(usize, usize, usize, usize, usize, usize),
}

const CASES: &[(&str, Case)] = &[
    ("linear 1x512x512", Case::Linear(1, 512, 512)),
    ("linear 64x1024x1024", Case::Linear(64, 1024, 1024)),
    ("linear 128x768x3072", Case::Linear(128, 768, 3072)),
    ("dynamic 1x512x512", Case::Dynamic(1, 512, 512)),
    ("dynamic 64x1024x1024", Case::Dynamic(64, 1024, 1024)),
    ("dynamic 128x768x3072", Case::Dynamic(128, 768, 3072)),
    ("resnet18 conv1 7x7/2 3-64", Case::Conv(3, 64, 224, 7, 2, 1)),
    ("resnet18 layer1 3x3 64-64", Case::Conv(64, 64, 56, 3, 1, 1)),
    ("resnet18 layer2 3x3/2 64-128", Case::Conv(64, 128, 56, 3, 2, 1)),
    ("resnet18 layer2 1x1/2 64-128", Case::Conv(64, 128, 56, 1, 2, 1)),
    ("resnet18 layer2 3x3 128-128", Case::Conv(128, 128, 28, 3, 1, 1)),
    ("resnet18 layer3 3x3 256-256", Case::Conv(256, 256, 14, 3, 1, 1)),
    ("resnet18 layer4 3x3 512-512", Case::Conv(512, 512, 7, 3, 1, 1)),
    ("mobilenet_v2 3x3/2 3-32", Case::Conv(3, 32, 224, 3, 2, 1)),
    ("mobilenet_v2 depthwise 32", Case::Conv(32, 32, 112, 3, 1, 32)),
    ("mobilenet_v2 1x1 32-16", Case::Conv(32, 16, 112, 1, 1, 1)),
    ("mobilenet_v2 1x1 16-96", Case::Conv(16, 96, 112, 1, 1, 1)),
    ("mobilenet_v2 depthwise/2 96", Case::Conv(96, 96, 112, 3, 2, 96)),
    ("mobilenet_v2 1x1 24-144", Case::Conv(24, 144, 56, 1, 1, 1)),
    ("mobilenet_v2 depthwise 144", Case::Conv(144, 144, 56, 3, 1, 144)),
    ("mobilenet_v2 1x1 144-24", Case::Conv(144, 24, 56, 1, 1, 1)),
    ("mobilenet_v2 depthwise 384", Case::Conv(384, 384, 14, 3, 1, 384)),
    ("mobilenet_v2 1x1 384-64", Case::Conv(384, 64, 14, 1, 1, 1)),
    ("mobilenet_v2 depthwise 960", Case::Conv(960, 960, 7, 3, 1, 960)),
    ("mobilenet_v2 1x1 160-960", Case::Conv(160, 960, 7, 1, 1, 1)),
    ("mobilenet_v2 1x1 320-1280", Case::Conv(320, 1280, 7, 1, 1, 1)),
    ("resnext 3x3 32 groups 128-128", Case::Conv(128, 128, 56, 3, 1, 32)),
];

fn signed(count: usize) -> Vec<i8> {
    (0..count).map(|i| ((i * 7919 + i / 13) % 128) as i8 - 64).collect()
}

fn bytes(count: usize) -> Vec<u8> {
    (0..count).map(|i| ((i * 104_729 + i / 7) % 128) as u8).collect()
}

fn quantization(outputs: usize) -> Quantization {
    Quantization::per_channel(&vec![0.01; outputs], &vec![0; outputs]).expect("as many of each")
}

const INPUT: Affine = Affine { scale: 0.02, zero_point: 64 };
const OUTPUT: Affine = Affine { scale: 0.5, zero_point: 64 };

impl Case {
    /// A call of the kernel, result included.
    fn call(self) -> Box<dyn FnMut() + Send> {
        let bias = |n: usize| (0..n).map(|i| (i % 17) as f32 / 8.0 - 1.0).collect::<Vec<f32>>();
        match self {
            Case::Linear(m, k, n) => {
                let weights = PackedWeights::new(&signed(n * k), n, k, quantization(n)).expect("fits");
                let (x, bias) = (bytes(m * k), bias(n));
                Box::new(move || {
                    let mut out = vec![0u8; m * n];
                    linear(&x, m, INPUT, &weights, Some(&bias), OUTPUT, false, &mut out).expect("fits");
                    std::hint::black_box(out);
                })
            }
            Case::Dynamic(m, k, n) => {
                let weights = PackedWeights::new(&signed(n * k), n, k, quantization(n)).expect("fits");
                let (x, bias) = (bytes(m * k).iter().map(|x| f32::from(*x)).collect::<Vec<_>>(), bias(n));
                Box::new(move || {
                    let mut out = vec![0f32; m * n];
                    linear_dynamic(&x, m, &weights, Some(&bias), false, false, &mut out).expect("fits");
                    std::hint::black_box(out);
                })
            }
            Case::Conv(c, n, side, k, stride, groups) => {
                let geometry = Geometry {
                    channels: c,
                    outputs: n,
                    groups,
                    kernel: [1, k, k],
                    stride: [1, stride, stride],
                    padding: [0, k / 2, k / 2],
                    dilation: [1; 3],
                };
                let weights = signed(n * c / groups * k * k);
                let weights = PackedConv::new(&weights, geometry, quantization(n)).expect("fits");
                let (x, bias, sizes) = (bytes(c * side * side), bias(n), [1, side, side]);
                let count = geometry.result(sizes).expect("large enough").iter().product::<usize>() * n;
                Box::new(move || {
                    let mut out = vec![0u8; count];
                    weights.run(&x, (1, sizes), INPUT, Some(&bias), OUTPUT, false, &mut out).expect("fits");
                    std::hint::black_box(out);
                })
            }
        }
    }

    fn line(self, threads: usize) -> String {
        match self {
            Case::Linear(m, k, n) => format!("{threads} linear {m} {k} {n}"),
            Case::Dynamic(m, k, n) => format!("{threads} dynamic {m} {k} {n}"),
            Case::Conv(c, n, side, k, stride, groups) => {
                format!("{threads} conv {c} {n} {side} {k} {stride} {groups}")
            }
        }
    }
}

/// The least time of a call in a tenth of a second.
fn least(call: &mut (dyn FnMut() + Send)) -> Duration {
    let (mut least, mut spent, mut calls) = (Duration::MAX, Duration::ZERO, 0);
    while calls < 10 || (spent < Duration::from_millis(100) && calls < 20_000) {
        let start = Instant::now();
        call();
        let took = start.elapsed();
        (least, spent, calls) = (least.min(took), spent + took, calls + 1);
    }
    least
}

/// The Python process beside us.
struct Peer {
    child: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start() -> Option<Peer> {
        let python = std::env::var_os("TORCH_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/int8.py");
        let mut child =
            Command::new(python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().ok()?;
        let (ask, answers) = (child.stdin.take()?, BufReader::new(child.stdout.take()?));
        Some(Peer { child, ask, answers })
    }

    fn time(&mut self, line: &str) -> Option<Duration> {
        writeln!(self.ask, "{line}").ok()?;
        let mut answer = String::new();
        self.answers.read_line(&mut answer).ok()?;
        answer.trim().parse().ok().map(Duration::from_nanos)
    }
}

fn main() {
    let threads = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1);
    pool::set_threads(threads);
    let mut peer = Peer::start();
    if peer.is_none() {
        println!("TORCH_PYTHON names no Python: without torch.jit beside");
    }
    println!("{:32} {:>12} {:>12} {:>7}", "layer", "flambeau", "torch.jit", "ratio");
    for (name, case) in CASES {
        let mut call = case.call();
        let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
        for _ in 0..3 {
            ours = ours.min(least(&mut *call));
            if let Some(time) = peer.as_mut().and_then(|p| p.time(&case.line(threads))) {
                theirs = theirs.min(time);
            }
        }
        let micros = |t: Duration| format!("{:.1} us", t.as_secs_f64() * 1e6);
        if theirs == Duration::MAX {
            println!("{name:32} {:>12}", micros(ours));
        } else {
            let ratio = ours.as_secs_f64() / theirs.as_secs_f64();
            println!("{name:32} {:>12} {:>12} {ratio:7.2}", micros(ours), micros(theirs));
        }
    }
    if let Some(mut peer) = peer {
        drop(peer.ask);
        let _ = peer.child.wait();
    }
}
