//! Calls that record gradients by plans that leave sizes open: gradients are those of the tape for every size, and no size after
//! the third makes a plan.

use super::recording_tests::{floats, program, run, wanted};
use crate::tensor::{DType, Tensor};
use crate::value::Value;

/// Sizes in turn; the third makes the plan for all that follow.
const LENGTHS: [i64; 7] = [3, 4, 5, 7, 6, 11, 20];

/// A step whose first argument has a size that differs, and the sizes of the parameters.
struct Case {
    source: &'static str,
    input: fn(i64) -> Vec<i64>,
    parameters: &'static [&'static [i64]],
}

fn leaf(sizes: &[i64], step: f64) -> Tensor {
    let tensor = floats(sizes, step).to_dtype(DType::F32).expect("floats");
    tensor.set_requires_grad(true).expect("floats");
    tensor
}

/// Compares a planned program with the tape, op by op.
fn check(case: &Case) {
    let [by_plan, by_tape] = [true, false].map(|plans| program(case.source, plans));
    for length in LENGTHS {
        let gradients = [&by_plan, &by_tape].map(|program| {
            let run = run(program);
            let mut inputs = vec![leaf(&(case.input)(length), 0.1)];
            inputs.extend(case.parameters.iter().map(|sizes| leaf(sizes, 0.07)));
            let arguments = inputs.iter().cloned().map(Value::Tensor).collect();
            let result = program.run("f", arguments, &run).expect("runs");
            let output = result.to_tensor().expect("a tensor").clone();
            let tape = crate::autodiff::Tape::of(program.registry());
            let found =
                tape.gradients(&wanted(vec![output.clone()], &inputs, false), &run).expect("gradients");
            let found = found.into_iter().map(|g| g.expect("a gradient"));
            std::iter::once(output).chain(found).collect::<Vec<Tensor>>()
        });
        let [plan, tape] = &gradients;
        for (n, (plan, tape)) in plan.iter().zip(tape).enumerate() {
            assert_eq!(plan.sizes(), tape.sizes(), "{n} of length {length}: {}", case.source);
            let numbers = |t: &Tensor| t.to_vec::<f32>().expect("float32");
            for (plan, tape) in numbers(plan).into_iter().zip(numbers(tape)) {
                let near = (plan - tape).abs() <= 2e-5 * tape.abs().max(1.0);
                assert!(near, "{plan} {tape}: {n} of length {length}: {}", case.source);
            }
        }
    }
    let report = by_plan.plan_report();
    let counts = (report.built, report.open, report.recording, report.unplanned_calls());
    assert_eq!(counts, (3, 1, 3, 0), "{report:?} {}", case.source);
}

#[test]
fn linear_layers_over_many_rows() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor, b: Tensor):
    h = torch.relu(torch.nn.functional.linear(x, w, b))
    return (h * h).mean() + torch.nn.functional.linear(torch.tanh(h), w.t()).sum()
",
        input: |n| vec![n, 4],
        parameters: &[&[6, 4], &[6]],
    });
}

#[test]
fn attention_over_many_steps() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor, g: Tensor, b: Tensor):
    x = torch.layer_norm(x, [8], g, b)
    q = torch.nn.functional.linear(x, w)
    q = q.view(x.size(0), x.size(1), 2, 4).transpose(1, 2)
    p = torch.softmax(torch.matmul(q, q.transpose(2, 3)) / 2.0, -1)
    y = torch.matmul(p, q).transpose(1, 2).reshape(x.size(0), x.size(1), 8)
    return (torch.nn.functional.gelu(y + x) * y).sum()
",
        input: |n| vec![2, n, 8],
        parameters: &[&[8, 8], &[8], &[8]],
    });
}

#[test]
fn images_of_all_widths() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor, b: Tensor):
    y = torch.relu(torch.conv2d(x, w, b, [1, 1], [1, 1]))
    return torch.adaptive_avg_pool2d(y, [1, 1]).flatten(1).sum()
",
        input: |n| vec![1, 2, 6, n],
        parameters: &[&[3, 2, 3, 3], &[3]],
    });
}

#[test]
fn sums_and_broadcasts_of_open_sizes() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor):
    y = x * w + x.sum(0, keepdim=True)
    z = y - y.mean(1, keepdim=True)
    return (z.std(0) + torch.logsumexp(y, 0)).sum() + torch.cat([x, y], 0).exp().mean()
",
        input: |n| vec![n, 5],
        parameters: &[&[5]],
    });
}

#[test]
fn a_loop_over_the_open_size() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor, u: Tensor):
    h = torch.zeros(2, 4)
    for n in range(x.size(0)):
        h = torch.tanh(x[n].mm(w) + h.mm(u))
    return (h * h).sum()
",
        input: |n| vec![n, 2, 3],
        parameters: &[&[3, 4], &[4, 4]],
    });
}

#[test]
fn draws_of_open_sizes() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor):
    h = torch.dropout(torch.nn.functional.linear(x, w), 0.5, True)
    noise = torch.rand([h.size(0), 3]) + torch.randn_like(h)
    return (h * h).sum() + (noise * h).mean()
",
        input: |n| vec![n, 5],
        parameters: &[&[3, 5]],
    });
}

#[test]
fn draws_of_sizes_that_ops_make() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor, b: Tensor):
    y = torch.relu(torch.conv2d(x, w, b, [2, 2], [1, 1]))
    y = torch.dropout(torch.cat([y, y], 3), 0.3, True)
    return torch.feature_dropout(y, 0.5, True).exp().sum()
",
        input: |n| vec![1, 2, 6, n],
        parameters: &[&[3, 2, 3, 3], &[3]],
    });
}

#[test]
fn attention_with_dropout() {
    check(&Case {
        source: "def f(x: Tensor, w: Tensor):
    q = torch.nn.functional.linear(x, w)
    q = q.view(x.size(0), x.size(1), 2, 4).transpose(1, 2)
    y = torch.scaled_dot_product_attention(q, q, q, None, 0.25)
    return (y * y).sum()
",
        input: |n| vec![2, n, 8],
        parameters: &[&[8, 8]],
    });
}
