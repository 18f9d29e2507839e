//! Compiled backwards beside the tape: random programs, first and second order.

use crate::diag::Source;
use crate::dialects::{Autograd, Gradients, Registry, Run};
use crate::frontend::script::compile_source;
use crate::passes;
use crate::runtime::{Program, ScriptComposites};
use crate::tensor::Tensor;
use crate::value::Value;
use std::sync::Arc;

/// Random programs that are compared.
const PROGRAMS: u64 = 40;

/// Numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

/// A function of three tensors of different sizes: elementwise work, sums and means of rows, numbers.
fn random_source(random: &mut Random) -> String {
    let mut lines = vec!["def f(x: Tensor, y: Tensor, z: Tensor):".to_string()];
    let mut names: Vec<String> = ["x", "y", "z"].map(str::to_string).to_vec();
    for n in 0..3 + random.below(7) {
        let mut pick = || names[random.below(names.len())].clone();
        let (a, b, c) = (pick(), pick(), pick());
        let text = match random.below(19) {
            0 => format!("{a} + {b}"),
            1 => format!("{a} - 0.5 * {b}"),
            2 => format!("{a} * {b}"),
            3 => format!("{a} / ({b} * {b} + 1.0)"),
            4 => format!("torch.tanh({a})"),
            5 => format!("torch.sigmoid({a} - {b})"),
            6 => format!("torch.exp(-{a} * {a})"),
            7 => format!("torch.relu({a}) + {b}"),
            8 => format!("torch.where({a} > {b}, {a}, {c} * 2)"),
            9 => format!("{a} - {a}.mean(-1, keepdim=True)"),
            10 => format!("{a} * {b}.sum(-1, keepdim=True)"),
            11 => format!("torch.softmax({a} + {b}, -1)"),
            12 => format!("torch.rsqrt({a} * {a} + 0.3)"),
            13 => format!("torch.clamp({a}, -0.4, 0.7) * {b}"),
            14 => format!("{a}.pow(2) + {a}.abs()"),
            15 => format!("torch.maximum({a}, {b})"),
            16 => format!("torch.gelu({a})"),
            17 => format!("torch.nn.functional.silu({a}) * {b}"),
            _ => format!("torch.addcmul({a}, {b}, {c}, value=0.3)"),
        };
        lines.push(format!("    v{n} = {text}"));
        names.push(format!("v{n}"));
    }
    let last = names.last().cloned().unwrap_or_default();
    lines.push(format!("    return ({last} * {last} + x).sum(), {last}"));
    lines.join("\n") + "\n"
}

fn random_tensor(random: &mut Random, sizes: &[i64]) -> Tensor {
    let count: i64 = sizes.iter().product();
    let values: Vec<f64> = (0..count).map(|_| random.below(3001) as f64 / 1000.0 - 1.5).collect();
    let tensor = Tensor::from_vec(&values, sizes).expect("small");
    tensor.set_requires_grad(true).expect("floats");
    tensor
}

/// The gradients of the first result, and of the sum of their squares.
fn gradients(program: &Program, inputs: &[Tensor]) -> [Vec<Option<Tensor>>; 2] {
    let run = Run::silent();
    let values = inputs.iter().cloned().map(Value::Tensor).collect();
    let answer = program.run("f", values, &run).expect("runs");
    let Value::Tuple(parts) = answer else { panic!("two results") };
    let tape = crate::autodiff::Tape::of(program.registry());
    run.offer_composites(|| ScriptComposites::of(program.registry()));
    let by = |output: Tensor, create: bool, tape: &Arc<dyn Autograd>| {
        let wanted = Gradients {
            outputs: vec![output],
            inputs: Some(inputs.to_vec()),
            keep: true,
            create,
            allow_unused: true,
            ..Gradients::default()
        };
        tape.gradients(&wanted, &run).expect("has gradients")
    };
    let output = parts.items()[0].to_tensor().expect("a tensor").clone();
    let first = by(output.clone(), false, &tape);
    let again = by(output, true, &tape);
    let squares = "def squares(a: Tensor, s: Tensor):\n    return s + (a * a).sum()\n";
    let mut sum = Value::Tensor(Tensor::from_vec(&[0.0f64], &[]).expect("small"));
    for gradient in again.iter().flatten() {
        sum = run.function("squares", squares, vec![Value::Tensor(gradient.clone()), sum]).expect("runs");
    }
    let sum = sum.to_tensor().expect("a tensor").clone();
    let second = if sum.requires_grad() { by(sum, false, &tape) } else { Vec::new() };
    [first, second]
}

fn close(a: &Option<Tensor>, b: &Option<Tensor>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            let (x, y) = (a.to_vec::<f64>().expect("floats"), b.to_vec::<f64>().expect("floats"));
            let same = |(x, y): (&f64, &f64)| {
                (x - y).abs() <= 1e-9 * (1.0 + x.abs().max(y.abs())) || x.is_nan() && y.is_nan()
            };
            a.sizes() == b.sizes() && x.len() == y.len() && x.iter().zip(&y).all(same)
        }
        _ => false,
    }
}

#[test]
fn the_transform_gives_what_the_tape_gives() {
    let registry = Registry::builtin();
    let pipeline = passes::parse("default").expect("is there");
    let mut compiled = 0;
    for seed in 0..PROGRAMS {
        let mut random = Random(seed + 1);
        let source = random_source(&mut random);
        let module = compile_source(&registry, &Source::new("f.py", source.as_str())).expect(&source);
        let plain = Program::new(module);
        let fused =
            plain.transformed(|m, r| pipeline.run(m, r).map(|_| ())).expect("fuses").differentiating_from(0);
        let sizes: [&[i64]; 3] = [&[3, 5], [&[5][..], &[3, 1], &[1, 5]][seed as usize % 3], &[3, 5]];
        let inputs: Vec<Tensor> = sizes.iter().map(|sizes| random_tensor(&mut random, sizes)).collect();
        let (expected, got) = (gradients(&plain, &inputs), gradients(&fused, &inputs));
        for (order, (expected, got)) in expected.iter().zip(&got).enumerate() {
            assert_eq!(expected.len(), got.len(), "order {}: {source}", order + 1);
            for (n, (a, b)) in expected.iter().zip(got).enumerate() {
                assert!(close(a, b), "order {}, input {n}: {a:?} and {b:?}\n{source}", order + 1);
            }
        }
        let report = fused.fusion_report();
        compiled += report.fused_calls;
        let reasons: Vec<&String> = report.op_by_op.keys().filter(|why| why.contains("backward")).collect();
        assert!(reasons.is_empty(), "{reasons:?}\n{source}");
    }
    assert!(compiled > PROGRAMS, "{compiled} calls ran fused");
}

/// A group whose operands are of no use to its backward may run backward twice, as op by op.
#[test]
fn what_keeps_nothing_is_not_freed() {
    let registry = Registry::builtin();
    let source =
        "def f(x: Tensor, y: Tensor, z: Tensor):\n    v = x * 2.0 + y - 1.0\n    return v.sum(), v\n";
    let pipeline = passes::parse("default").expect("is there");
    let module = compile_source(&registry, &Source::new("f.py", source)).expect("compiles");
    let plain = Program::new(module);
    let fused =
        plain.transformed(|m, r| pipeline.run(m, r).map(|_| ())).expect("fuses").differentiating_from(0);
    let mut random = Random(1);
    let inputs: Vec<Tensor> = (0..3).map(|_| random_tensor(&mut random, &[2, 2])).collect();
    let run = Run::silent();
    let values = inputs.iter().cloned().map(Value::Tensor).collect();
    let answer = fused.run("f", values, &run).expect("runs");
    let Value::Tuple(parts) = answer else { panic!("two results") };
    let tape = crate::autodiff::Tape::of(fused.registry());
    for _ in 0..2 {
        let outputs = vec![parts.items()[0].to_tensor().expect("a tensor").clone()];
        let wanted = Gradients { outputs, inputs: Some(vec![inputs[0].clone()]), ..Gradients::default() };
        let found = tape.gradients(&wanted, &run).expect("nothing was freed");
        assert_eq!(found[0].as_ref().map(|g| g.to_vec::<f64>().expect("floats")), Some(vec![2.0; 4]));
    }
    assert_eq!(fused.fusion_report().op_by_op_calls(), 0);
}
