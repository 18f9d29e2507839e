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

/// Numbers at which rules that are not exact show.
const EXTREMES: &[f64] =
    &[f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, 0.0, 5e-324, -1e-310, 1.7e308, -1.7e308, 1.0, -2.5];

/// A function of two tensors of extremes: arithmetic with numbers that do nothing to most of them, and what distinguishes the
/// rest.
fn extreme_source(random: &mut Random) -> String {
    let mut lines = vec!["def f(x: Tensor, y: Tensor):".to_string()];
    let mut names: Vec<String> = ["x", "y"].map(str::to_string).to_vec();
    for n in 0..2 + random.below(5) {
        let mut pick = || names[random.below(names.len())].clone();
        let (a, b) = (pick(), pick());
        let text = match random.below(14) {
            0 => format!("{a} + 0"),
            1 => format!("{a} - 0"),
            2 => format!("{a} + 0.0"),
            3 => format!("0 + {a}"),
            4 => format!("{a} * 1"),
            5 => format!("{a} / 1"),
            6 => format!("1 / {a}"),
            7 => format!("({a} + {b}) - {b}"),
            8 => format!("{a} * {b}"),
            9 => format!("-(-{a})"),
            10 => format!("({a} * 2.0) * 3.0"),
            11 => format!("torch.relu({a})"),
            12 => format!("{a}.t().t() + {b}"),
            _ => format!("torch.where({a} > {b}, {a}, {b})"),
        };
        lines.push(format!("    v{n} = {text}"));
        names.push(format!("v{n}"));
    }
    let last = names.last().cloned().unwrap_or_default();
    lines.push(format!(
        "    return ({last} * 1).sum(), torch.atan2({last} + 0, {last} * 0 - 1), 1 / ({last} + 0), {last}"
    ));
    lines.join("\n") + "\n"
}

/// Plans of calls that record gradients apply exact rules alone: at extremes they give what the tape gives without plans.
#[test]
fn recorded_plans_are_exact() {
    let registry = Registry::builtin();
    let (mut built, mut hits) = (0, 0);
    for seed in 0..PROGRAMS {
        let mut random = Random(seed + 100);
        let source = extreme_source(&mut random);
        let module = compile_source(&registry, &Source::new("f.py", source.as_str())).expect(&source);
        let plain = Program::new(module);
        let planned = plain.planned();
        let inputs: Vec<Tensor> = (0..2)
            .map(|_| {
                let values: Vec<f64> = (0..12).map(|_| EXTREMES[random.below(EXTREMES.len())]).collect();
                let tensor = Tensor::from_vec(&values, &[3, 4]).expect("small");
                tensor.set_requires_grad(true).expect("floats");
                tensor
            })
            .collect();
        let answers = |program: &Program| {
            let values = inputs.iter().cloned().map(Value::Tensor).collect();
            let answer = program.run("f", values, &Run::silent()).expect("runs");
            let Value::Tuple(parts) = answer else { panic!("four results") };
            let floats = |v: &Value| v.to_tensor().and_then(Tensor::to_vec::<f64>).expect("floats");
            parts.items().iter().skip(1).map(floats).collect::<Vec<Vec<f64>>>()
        };
        let (expected, got) = (answers(&plain), answers(&planned));
        for (n, (a, b)) in expected.iter().flatten().zip(got.iter().flatten()).enumerate() {
            let same = a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan();
            assert!(same, "element {n}: {a:?} without plans and {b:?} with\n{source}of {inputs:?}");
        }
        let (expected, got) = (gradients(&plain, &inputs), gradients(&planned, &inputs));
        for (a, b) in expected[0].iter().zip(&got[0]) {
            let floats = |t: &Option<Tensor>| {
                t.as_ref().map(|t| t.to_vec::<f64>().expect("floats")).unwrap_or_default()
            };
            let (a, b) = (floats(a), floats(b));
            let same = |(a, b): (&f64, &f64)| a == b || a.is_nan() && b.is_nan();
            assert!(
                a.len() == b.len() && a.iter().zip(&b).all(same),
                "{a:?} without plans and {b:?} with\n{source}"
            );
        }
        built += planned.plan_report().built;
        hits += planned.plan_report().hits;
    }
    assert!(built >= PROGRAMS && hits > 0, "{built} plans were built, {hits} calls ran them");
}

/// Every pipeline that runs without being named says what rules must promise.
#[test]
fn named_pipelines_are_exact() {
    for (name, _) in passes::NAMED {
        let pipeline = passes::parse(name).expect("is there");
        for (pass, options) in pipeline.passes() {
            let Ok(contract) = options.text("contract") else { continue };
            assert_eq!(contract, "exact", "{} in the pipeline {name}", pass.name);
        }
    }
}
