//! A matrix product written by hand as loops, scheduled by named passes and compiled, beside the `gemm` crate: 512 by 512 by
//! 512 of float32 on one core.
//!
//!     cargo bench --bench loops                                   the schedule below
//!     cargo bench --bench loops -- 'loop-vectorize{loop=j}'       another

use flambeau::backends::{Arg, Buffer, Launch, Memory, by_name};
use flambeau::dialects::{Registry, loops};
use flambeau::ir::parse_graph;
use flambeau::passes::{Context, PassSet, Pipeline};
use std::time::{Duration, Instant};

const SIZE: usize = 512;
/// Columns in vector registers, eight rows at once, so that what is loaded of a column serves all of them.
const SCHEDULE: &str =
    "loop-hoist,loop-vectorize{loop=j},loop-unroll{loop=i,factor=8,jam},loop-hoist,cse,dce";

/// The least time of a call in two seconds.
fn least(mut call: impl FnMut()) -> Duration {
    let (mut least, start) = (Duration::MAX, Instant::now());
    while start.elapsed() < Duration::from_secs(2) {
        let start = Instant::now();
        call();
        least = least.min(start.elapsed());
    }
    least
}

fn bytes(numbers: &[f32]) -> &[u8] {
    bytemuck::cast_slice(numbers)
}

fn main() {
    let asked = std::env::args().skip(1).find(|word| word != "--bench");
    let schedule = asked.unwrap_or_else(|| SCHEDULE.into());
    let number = |n: usize| ((n * 7919) % 1000) as f32 / 1000.0 - 0.5;
    let a: Vec<f32> = (0..SIZE * SIZE).map(number).collect();
    let b: Vec<f32> = (0..SIZE * SIZE).map(|n| number(n + 13)).collect();
    let (mut ours, mut theirs) = (vec![0f32; SIZE * SIZE], vec![0f32; SIZE * SIZE]);

    let registry = Registry::builtin();
    let mut graph = parse_graph(include_str!("loops/matmul.ir")).expect("graph text");
    let module = flambeau::ir::Module::default();
    let context = Context::new(&registry, &module);
    let pipeline = Pipeline::parse(&schedule, &PassSet::builtin()).expect("a schedule");
    pipeline.run_graph(&mut graph, &context).expect("passes");
    let kernel = loops::decode(&graph).expect("a kernel");
    let executable = by_name("llvm").and_then(|backend| backend.compile(&kernel)).expect("machine code");
    let size = Arg::Int(SIZE as i64);
    let whole = |memory| Arg::Buffer(Buffer::whole(memory, SIZE * SIZE));
    let args = [whole(0), whole(1), whole(2), size, size, size];
    let run = || {
        let memory = vec![
            Memory::Write(bytemuck::cast_slice_mut(&mut ours)),
            Memory::Read(bytes(&a)),
            Memory::Read(bytes(&b)),
        ];
        let mut launch = Launch { memory, args: (&args).into(), grain: 1 };
        // SAFETY: the kernel touches SIZE * SIZE elements of each buffer and stores each once.
        #[allow(unsafe_code, reason = "runs one kernel")]
        unsafe { executable.run(&mut launch) }.expect("runs");
    };
    let loops_time = least(run);
    let peer_time = least(|| {
        let step = SIZE as isize;
        let (out, a, b) = (theirs.as_mut_ptr(), a.as_ptr(), b.as_ptr());
        let one = gemm::Parallelism::None;
        // SAFETY: row-major matrices of SIZE by SIZE.
        #[allow(unsafe_code, reason = "a foreign kernel")]
        unsafe {
            gemm::gemm(
                SIZE, SIZE, SIZE, out, 1, step, false, a, 1, step, b, 1, step, 0.0f32, 1.0f32, false, false,
                false, one,
            );
        }
    });
    let farthest = ours.iter().zip(&theirs).map(|(x, y)| (x - y).abs()).fold(0f32, f32::max);
    assert!(farthest < 1e-3, "the products differ by {farthest}");
    let rate = |time: Duration| 2.0 * (SIZE as f64).powi(3) / time.as_secs_f64() / 1e9;
    println!("{schedule}");
    println!("loops {:>8.3} ms  {:>6.1} GFLOP/s", loops_time.as_secs_f64() * 1e3, rate(loops_time));
    println!("gemm  {:>8.3} ms  {:>6.1} GFLOP/s", peer_time.as_secs_f64() * 1e3, rate(peer_time));
    println!("{:.0} % of gemm", 100.0 * peer_time.as_secs_f64() / loops_time.as_secs_f64());
}
