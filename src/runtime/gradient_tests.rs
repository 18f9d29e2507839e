//! What a backward leaves in `grad`: gradients are kept without a copy, and never share memory with anything else.

use crate::diag::Source;
use crate::dialects::{Gradients, Registry, Run};
use crate::frontend::script::compile_source;
use crate::runtime::{Program, ScriptComposites};
use crate::tensor::Tensor;
use crate::value::Value;

fn leaf(sizes: &[i64]) -> Tensor {
    let count: i64 = sizes.iter().product();
    let values: Vec<f32> = (0..count).map(|n| n as f32 * 0.25 - 1.0).collect();
    let tensor = Tensor::from_vec(&values, sizes).expect("small");
    tensor.set_requires_grad(true).expect("floats");
    tensor
}

/// Runs `f` of a source and goes backward from its result, as often as is said.
fn backward(source: &str, inputs: &[&Tensor], times: usize) {
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("test", source)).expect("compiles");
    let program = Program::with(module, None, registry);
    let run = Run::silent();
    run.offer_composites(|| ScriptComposites::of(program.registry()));
    let values = inputs.iter().map(|t| Value::Tensor((*t).clone())).collect();
    let loss = program.run("f", values, &run).expect("runs").to_tensor().expect("a tensor").clone();
    let tape = crate::autodiff::Tape::of(program.registry());
    for _ in 0..times {
        let wanted = Gradients { outputs: vec![loss.clone()], keep: true, ..Gradients::default() };
        tape.gradients(&wanted, &run).expect("gradients");
    }
}

fn gradient(tensor: &Tensor) -> Vec<f32> {
    tensor.grad().expect("a gradient").to_vec::<f32>().expect("float32")
}

#[test]
fn leaves_with_one_gradient_do_not_share_it() {
    let (a, b) = (leaf(&[3]), leaf(&[3]));
    backward("def f(a, b):\n    return ((a + b) * (a + b)).sum()\n", &[&a, &b], 1);
    let (left, right) = (a.grad().expect("a gradient"), b.grad().expect("a gradient"));
    assert!(!left.storage().same(&right.storage()));
    left.fill(crate::tensor::Scalar::Int(9)).expect("writes");
    assert_eq!(gradient(&b), [-4.0, -3.0, -2.0]);
}

#[test]
fn what_the_graph_keeps_is_no_gradient() {
    let (a, b) = (leaf(&[2, 2]), leaf(&[2, 2]));
    // The gradient of each operand is the other operand's memory, were it not copied.
    backward("def f(a, b):\n    return (a * b).sum()\n", &[&a, &b], 1);
    a.grad().expect("a gradient").fill(crate::tensor::Scalar::Int(9)).expect("writes");
    assert_eq!(b.to_vec::<f32>().expect("float32"), [-1.0, -0.75, -0.5, -0.25]);
    // Twice through a graph that is kept adds, and what was added to is a tensor of its own.
    let (c, d) = (leaf(&[2, 2]), leaf(&[2, 2]));
    backward("def f(c, d):\n    return (c * d).sum() + (c * 2.0).sum() + c.sum()\n", &[&c, &d], 2);
    assert_eq!(gradient(&c), [4.0, 4.5, 5.0, 5.5]);
    assert_eq!(gradient(&d), [-2.0, -1.5, -1.0, -0.5]);
}

#[test]
fn the_gradient_of_a_transposed_weight_lies_in_rows() {
    let (x, w, bias) = (leaf(&[4, 3]), leaf(&[2, 3]), leaf(&[2]));
    let source = "def f(x, w, b):\n    return (torch.linear(x, w, b) * 2.0).sum()\n";
    backward(source, &[&x, &w, &bias], 1);
    let found = w.grad().expect("a gradient");
    assert_eq!(found.strides().as_slice(), [3, 1]);
    // Twice the sums of x's columns, in both rows.
    assert_eq!(gradient(&w), [1.0, 3.0, 5.0, 1.0, 3.0, 5.0]);
    assert_eq!(gradient(&bias), [8.0, 8.0]);
    // A weight that is not transposed.
    let (y, v) = (leaf(&[4, 3]), leaf(&[3, 2]));
    backward("def f(y, v):\n    return torch.mm(y, v).sum()\n", &[&y, &v], 1);
    assert_eq!(gradient(&v), [0.5, 0.5, 1.5, 1.5, 2.5, 2.5]);
}
