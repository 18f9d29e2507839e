//! Calls that record gradients by plan take tuples and lists of tensors that require grad: gradients are those of the tape, by each
//! tensor within, from call to call.

use super::recording_tests::{floats, program, run, wanted};
use crate::ir::Type;
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::{Dict, List, Value};

/// Programs of `x` (3, 4) and of another argument.
const PROGRAMS: &[(&str, &str, &str, Shape)] = &[
    (
        "a state",
        "Tuple[Tensor, Tensor]",
        "    h, c = s\n    c = c * torch.sigmoid(h) + x\n    return (h.tanh() * c).sum()\n",
        Shape::Tuple,
    ),
    (
        "a state that is there or not",
        "Optional[Tuple[Tensor, Tensor]]",
        "    if s is None:\n        return x.sum()\n    h, c = s\n    return (h.sin() * c * x).sum()\n",
        Shape::Tuple,
    ),
    (
        "a tuple that is given on",
        "Tuple[Tensor, Tensor]",
        "    y = (s[0] * s[1]).exp().sum()\n    for i in range(2):\n        y = y + (s[i % 1] * x).sum()\n    return y\n",
        Shape::Tuple,
    ),
    (
        "a list",
        "List[Tensor]",
        "    y = x\n    for h in s:\n        y = torch.tanh(y * h)\n    return y.sum() + torch.stack(s).sum()\n",
        Shape::List,
    ),
    (
        "items of a list",
        "List[Tensor]",
        "    a = s[0]\n    b = s[-1]\n    return (a.sin() * b * x).sum() * len(s)\n",
        Shape::List,
    ),
    (
        "tuples in a tuple",
        "Tuple[Tuple[Tensor, int], Tensor]",
        "    (h, n), c = s\n    return (h.pow(n) * c).sum() + x.sum()\n",
        Shape::Nested,
    ),
];

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Tuple,
    List,
    Nested,
}

fn argument(shape: Shape, leaves: &[Tensor]) -> Value {
    let items: Vec<Value> = leaves.iter().map(|t| Value::Tensor(t.clone())).collect();
    match shape {
        Shape::Tuple => Value::tuple(items),
        Shape::List => Value::List(List::new(Type::tensor(), items)),
        Shape::Nested => {
            Value::tuple(vec![Value::tuple(vec![items[0].clone(), Value::Int(3)]), items[1].clone()])
        }
    }
}

/// The result of a call, and its gradients by what the second argument holds.
fn call(program: &Program, shape: Shape, count: usize) -> (f64, Vec<Option<Vec<f64>>>) {
    let run = run(program);
    let leaves: Vec<Tensor> = (0..count).map(|n| floats(&[3, 4], 0.1 * (n + 1) as f64)).collect();
    leaves.iter().for_each(|leaf| leaf.set_requires_grad(true).expect("floats"));
    let arguments = vec![Value::Tensor(floats(&[3, 4], 0.15)), argument(shape, &leaves)];
    let result = program.run("f", arguments, &run).expect("runs").to_tensor().expect("a tensor").clone();
    let value = result.detach().to_vec::<f64>().expect("float64")[0];
    let tape = crate::autodiff::Tape::of(program.registry());
    let found = tape.gradients(&wanted(vec![result], &leaves, false), &run).expect("gradients");
    (value, found.into_iter().map(|g| g.map(|g| g.to_vec::<f64>().expect("float64"))).collect())
}

#[test]
fn gradients_by_what_arguments_hold_are_those_of_the_tape() {
    for (name, ty, body, shape) in PROGRAMS {
        let text = format!("def f(x: Tensor, s: {ty}):\n{body}");
        let (by_plan, by_tape) = (program(&text, true), program(&text, false));
        let counts: &[usize] = if *shape == Shape::List { &[2, 3, 2] } else { &[2, 2, 2] };
        for count in counts {
            let (plan, tape) = (call(&by_plan, *shape, *count), call(&by_tape, *shape, *count));
            assert!((plan.0 - tape.0).abs() <= 1e-9 * tape.0.abs().max(1.0), "{name}");
            assert!(tape.1[0].is_some(), "{name}");
            for (found, expected) in plan.1.iter().zip(&tape.1) {
                assert_eq!(found.is_some(), expected.is_some(), "{name}");
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    assert!(
                        (found - expected).abs() <= 1e-9 * expected.abs().max(1.0),
                        "{name}: {found} {expected}"
                    );
                }
            }
        }
        let report = by_plan.plan_report();
        assert_eq!(report.unplanned_calls(), 0, "{name}: {:?}", report.unplanned);
        let built = if *shape == Shape::List { 2 } else { 1 };
        assert_eq!((report.recording, report.hits), (built, 3 - built), "{name}");
    }
}

/// States go from call to call with their history.
#[test]
fn gradients_go_through_the_states_of_several_calls() {
    let text = "def f(x: Tensor, s: Tuple[Tensor, Tensor]):\n    h, c = s\n    c = c * torch.sigmoid(h + x) + x\n    h = torch.tanh(c)\n    return h, c\n";
    let (by_plan, by_tape) = (program(text, true), program(text, false));
    let gradients = |program: &Program| {
        let run = run(program);
        let first = floats(&[3, 4], 0.2);
        first.set_requires_grad(true).expect("floats");
        let mut state = Value::tuple(vec![Value::Tensor(first.clone()), Value::Tensor(floats(&[3, 4], 0.1))]);
        for n in 0..4 {
            let x = Value::Tensor(floats(&[3, 4], 0.05 * f64::from(n)));
            state = program.run("f", vec![x, state], &run).expect("runs");
        }
        let Value::Tuple(state) = state else { panic!("no tuple") };
        let tape = crate::autodiff::Tape::of(program.registry());
        let outputs = state.items().iter().map(|item| item.to_tensor().expect("a tensor").clone()).collect();
        let found = tape.gradients(&wanted(outputs, &[first], false), &run).expect("gradients");
        found.into_iter().flatten().next().expect("a gradient").to_vec::<f64>().expect("float64")
    };
    for (found, expected) in gradients(&by_plan).iter().zip(gradients(&by_tape)) {
        assert!((found - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{found} {expected}");
    }
    assert_eq!(by_plan.plan_report().unplanned_calls(), 0, "{:?}", by_plan.plan_report().unplanned);
}

/// Of a list that the call writes to it is said that it has no plan.
#[test]
fn lists_that_are_written_have_a_reason() {
    let text = "def f(x: Tensor, s: List[Tensor]):\n    s.append(x)\n    return torch.stack(s).sin().sum()\n";
    let program = program(text, true);
    let run = run(&program);
    let leaf = floats(&[3, 4], 0.2);
    leaf.set_requires_grad(true).expect("floats");
    let list = List::new(Type::tensor(), vec![Value::Tensor(leaf)]);
    program.run("f", vec![Value::Tensor(floats(&[3, 4], 0.1)), Value::List(list)], &run).expect("runs");
    let reasons: Vec<String> = program.plan_report().unplanned.into_keys().collect();
    assert_eq!(reasons, ["tensors in a list that is kept or written to require grad"]);
}

/// Dictionaries stay whole: their calls are recorded op by op.
#[test]
fn dictionaries_of_tensors_that_require_grad_have_the_gradients_of_the_tape() {
    let text = "def f(x: Tensor, s: Dict[str, Tensor]):\n    return (s['a'].sin() * x + s['b']).sum()\n";
    let found: Vec<Vec<Option<Vec<f64>>>> = [true, false]
        .map(|plans| {
            let program = program(text, plans);
            let run = run(&program);
            let leaves = [floats(&[3, 4], 0.1), floats(&[3, 4], 0.2)];
            leaves.iter().for_each(|leaf| leaf.set_requires_grad(true).expect("floats"));
            let dict = Dict::new(Type::str(), Type::tensor());
            for (key, leaf) in ["a", "b"].iter().zip(&leaves) {
                dict.insert(&Value::str(*key), Value::Tensor(leaf.clone())).expect("a key");
            }
            let arguments = vec![Value::Tensor(floats(&[3, 4], 0.15)), Value::Dict(dict)];
            let result =
                program.run("f", arguments, &run).expect("runs").to_tensor().expect("a tensor").clone();
            let tape = crate::autodiff::Tape::of(program.registry());
            let found = tape.gradients(&wanted(vec![result], &leaves, false), &run).expect("gradients");
            found.into_iter().map(|g| g.map(|g| g.to_vec::<f64>().expect("float64"))).collect()
        })
        .to_vec();
    assert!(found[1].iter().all(Option::is_some));
    assert_eq!(found[0], found[1]);
}
