//! Times fused kernels alone, and with the allocation of their results.
//!
//! `taskset -c 0 cargo run --release --example kernel_speed`; beside it PyTorch's and JAX's figures for the same
//! work on the same machine.

use flambeau::backends::{Arg, Backend, Buffer, Launch, Memory, ProgramRunner, by_name};
use flambeau::dialects::loops;
use flambeau::dialects::scalar::{Program, Sv};
use flambeau::lowering::{Form, GroupProgram, Leaf, Load, Piece, Plan, Slot, lower};
use flambeau::tensor::{DType, Tensor};
use flambeau::value::Value;
use smallvec::SmallVec;
use std::time::Instant;

fn group(inputs: usize, body: impl Fn(&mut Program, &[Sv]) -> Sv) -> GroupProgram {
    let mut program = Program::new();
    let params: Vec<Sv> = (0..inputs).map(|_| program.param(DType::F32)).collect();
    let value = body(&mut program, &params);
    let loads = (0..inputs)
        .map(|input| Load { input, chunk: None, dtype: DType::F32, domain: Default::default() })
        .collect();
    let leaves = (0..inputs).map(Leaf::Load).collect();
    let mut forms: Vec<Form> = (0..inputs).map(|input| Form::Leaf(Leaf::Load(input))).collect();
    forms.push(Form::Elementwise((0..inputs).collect(), false, flambeau::dialects::Order::Operands));
    let piece = Piece { output: 0, value, leaves, form: inputs, reduced: false, sums: None };
    let slot = Slot { dtype: DType::F32, pieces: SmallVec::from_slice(&[0]), concat: None };
    let (pieces, outputs) = (vec![piece], vec![slot]);
    let (scalars, reductions, writes) = (Vec::new(), Vec::new(), Vec::new());
    GroupProgram { program, loads, scalars, reductions, pieces, forms, outputs, writes }
}

fn sigmoid(p: &mut Program, x: Sv) -> Sv {
    let n = p.neg(x);
    let e = p.exp(n);
    let one = p.constant_like(e, 1.0);
    let s = p.add(one, e);
    p.div(one, s)
}

fn best(mut run: impl FnMut(), seconds: f64) -> f64 {
    let (start, mut best) = (Instant::now(), f64::INFINITY);
    while start.elapsed().as_secs_f64() < seconds {
        let t = Instant::now();
        run();
        best = best.min(t.elapsed().as_secs_f64());
    }
    best
}

fn measure(name: &str, group: &GroupProgram, n: usize, backend: &dyn Backend) {
    let random = |seed: u32| -> Vec<f32> {
        let mut s = seed;
        let mut next = || {
            s = s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (s >> 8) as f32 / (1 << 24) as f32
        };
        (0..n).map(|_| (next() + next() + next() + next() - 2.0) * 1.7).collect()
    };
    let tensors: Vec<Tensor> = (0..group.loads.len())
        .map(|i| Tensor::from_vec(&random(i as u32 + 1), &[n as i64]).expect("fits"))
        .collect();
    let layouts: Vec<_> = tensors.iter().map(|t| Some(t.layout())).collect();
    let plan = Plan::new(group, &layouts).expect("plans");
    let graph = lower(&plan.parts[0].nest(group), backend.target()).expect("lowers");
    let kernel = loops::decode(&graph).expect("decodes");
    let start = Instant::now();
    let exe = backend.compile(&kernel).expect("compiles");
    let build = start.elapsed().as_secs_f64();
    let out = Tensor::zeros(DType::F32, &[n as i64]).expect("fits");
    let kernel_time = best(
        || {
            let storages: Vec<_> = tensors.iter().map(Tensor::storage).collect();
            let reads: Vec<_> = storages.iter().map(|s| s.read().expect("host")).collect();
            let storage = out.storage();
            let mut write = storage.write().expect("host");
            let mut memory = vec![Memory::Write(&mut write)];
            memory.extend(reads.iter().map(|r| Memory::Read(r)));
            let mut args: Vec<Arg> = (0..memory.len()).map(|i| Arg::Buffer(Buffer::whole(i, n))).collect();
            args.push(Arg::Int(n as i64));
            // SAFETY: a flat kernel of one dimension touches as many elements as its extent says, each once.
            #[allow(unsafe_code, reason = "runs one kernel without a group")]
            unsafe {
                exe.run(&mut Launch { memory, args: args.into(), grain: 1 }).expect("runs");
            }
        },
        1.0,
    );
    let runner = ProgramRunner::new(group.clone());
    let values: Vec<Value> = tensors.iter().cloned().map(Value::Tensor).collect();
    let whole = best(|| drop(runner.run(&values, backend).expect("runs")), 1.0);
    println!(
        "{name:<14} build {:7.2} ms   kernel {:10.2} us ({:.3} ns/element)   with allocation {:10.2} us",
        build * 1e3,
        kernel_time * 1e6,
        kernel_time * 1e9 / n as f64,
        whole * 1e6
    );
}

fn main() {
    let backend = by_name("llvm").expect("this example needs the feature llvm");
    let pointwise = group(3, |p, x| {
        let ab = p.mul(x[0], x[1]);
        let s = p.add(ab, x[2]);
        let t = p.tanh(s);
        let g = sigmoid(p, x[0]);
        let m = p.mul(t, g);
        p.add(m, x[1])
    });
    let seed = group(2, |p, x| {
        let c = p.add(x[0], x[1]);
        let d = p.mul(c, c);
        let dc = p.mul(d, c);
        let e = p.tanh(dc);
        let ee = p.add(e, e);
        p.add(d, ee)
    });
    let copy = group(1, |p, x| p.add(x[0], x[0]));
    let exp = group(1, |p, x| p.exp(x[0]));
    let tanh = group(1, |p, x| p.tanh(x[0]));
    let log = group(1, |p, x| p.log(x[0]));
    let erf = group(1, |p, x| p.erf(x[0]));
    let sig = group(1, |p, x| sigmoid(p, x[0]));
    measure("warm-up", &copy, 4096, &*backend);
    measure("pointwise_16M", &pointwise, 1 << 24, &*backend);
    measure("pointwise_4K", &pointwise, 4096, &*backend);
    measure("seed_f_1M", &seed, 1 << 20, &*backend);
    measure("add_16M", &copy, 1 << 24, &*backend);
    for (name, g) in
        [("exp_4K", exp), ("tanh_4K", tanh), ("log_4K", log), ("erf_4K", erf), ("sigmoid_4K", sig)]
    {
        measure(name, &g, 4096, &*backend);
    }
}
