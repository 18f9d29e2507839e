//! Schedules of a kernel that is written by hand: whatever passes make of its loops, every engine computes the same bits.

use crate::backends::{Arg, Backend, Buffer, Launch, Memory, by_name};
use crate::dialects::{Registry, loops};
use crate::ir::{Module, parse_graph};
use crate::passes::{self, Context};
use std::sync::Arc;

const PRODUCT: &str = include_str!("../../../benches/loops/matmul.ir");

const SCHEDULES: [&str; 11] = [
    "",
    "loop-hoist,cse",
    "loop-vectorize{loop=j},loop-unroll{loop=i,factor=4,jam},loop-hoist,cse,dce",
    "loop-unroll{loop=l,factor=3},loop-parallelize{loop=i}",
    "loop-tile{loop=l,size=5},loop-unroll{loop=i,factor=2,jam},cse",
    "loop-tile{loop=j,size=16},loop-vectorize{loop=j},loop-parallelize",
    "loop-unroll{factor=2},loop-unroll{factor=2},loop-tile{size=2},cse,dce",
    "loop-interchange{loop=i}",
    "loop-interchange{loop=i},loop-tile{loop=j,size=4},loop-hoist,cse,loop-canonicalize",
    "loop-tile{size=3},loop-unroll{factor=2},loop-canonicalize,loop-fuse,cse,dce,loop-canonicalize",
    "loop-check-bounds,loop-canonicalize,cse,dce",
];

/// A product of `[m, k]` and `[k, n]` under a schedule.
fn product(schedule: &str, backend: &dyn Backend, [m, n, k]: [usize; 3]) -> Vec<f32> {
    let text = PRODUCT.lines().filter(|line| !line.starts_with("//")).collect::<Vec<_>>().join("\n");
    let mut graph = parse_graph(&text).expect("parses");
    let (registry, module) = (Registry::builtin(), Module::default());
    if !schedule.is_empty() {
        let pipeline = passes::parse(schedule).expect(schedule);
        pipeline.run_graph(&mut graph, &Context::new(&registry, &module)).expect(schedule);
    }
    let kernel = loops::decode(&graph).expect(schedule);
    let executable = backend.compile(&kernel).expect(schedule);
    let number = |n: usize| ((n * 7919) % 1000) as f32 / 500.0 - 1.0;
    let (a, b): (Vec<f32>, Vec<f32>) = ((0..m * k).map(number).collect(), (0..k * n).map(number).collect());
    let mut out = vec![f32::NAN; m * n];
    let mut args = vec![
        Arg::Buffer(Buffer::whole(0, m * n)),
        Arg::Buffer(Buffer::whole(1, m * k)),
        Arg::Buffer(Buffer::whole(2, k * n)),
        Arg::Int(m as i64),
        Arg::Int(n as i64),
        Arg::Int(k as i64),
    ];
    // What checks ask for.
    if schedule.contains("check-bounds") {
        args.extend([m * n, m * k, k * n].map(|length| Arg::Int(length as i64)));
    }
    let memory = vec![
        Memory::Write(bytemuck::cast_slice_mut(&mut out)),
        Memory::Read(bytemuck::cast_slice(&a)),
        Memory::Read(bytemuck::cast_slice(&b)),
    ];
    // SAFETY: the kernel reads and writes elements of the matrices, whose sizes it is given, and stores each once.
    #[allow(unsafe_code, reason = "runs one kernel without a group")]
    unsafe { executable.run(&mut Launch { memory, args: args.into(), grain: 1 }) }.expect("runs");
    out
}

#[test]
fn schedules_keep_the_bits_of_a_product() {
    let mut engines: Vec<Arc<dyn Backend>> = vec![by_name("interp").expect("is built in")];
    engines.extend(by_name("llvm").ok());
    // Sizes that no factor divides, that are smaller than it, and that leave nothing to do.
    for sizes in [[5, 37, 7], [8, 64, 9], [1, 1, 1], [3, 40, 0], [0, 5, 4], [4, 0, 3]] {
        let truth = product("", &*engines[0], sizes);
        assert_eq!(truth.len(), sizes[0] * sizes[1]);
        for schedule in SCHEDULES {
            for engine in &engines {
                let got = product(schedule, &**engine, sizes);
                let same = got.iter().map(|x| x.to_bits()).eq(truth.iter().map(|x| x.to_bits()));
                assert!(same, "{} with {schedule} on {sizes:?}", engine.name());
            }
        }
    }
}
