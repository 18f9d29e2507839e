//! Calls that record gradients by plan give what they would give without: tuples, lists and dictionaries with other values in them,
//! arguments that are given on, and tensors that require grad where some way is taken.

use super::recording_tests::{floats, program, run, wanted};
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::Value;

/// Programs of `x` (3, 4) and of `w` (4, 4) and `b` (4), which want gradients, and of a number.
const PROGRAMS: &[(&str, &str)] = &[
    ("a tensor and numbers", "    y = x.mm(w)\n    return y.sum(), k + 1, 'text', k > 2, None\n"),
    (
        "a dictionary",
        "    y = x.mm(w)\n    z = {'loss': (y * b).sum(), 'mean': y.mean()}\n    return z, [y * 2, y.exp()]\n",
    ),
    ("tuples in tuples", "    y = x * b\n    return (y, (y.mm(w), k)), [(y.sum(), 'a'), (b * 2, 'b')]\n"),
    ("what was given", "    y = x.mm(w)\n    return x, w, y, (y, b)\n"),
    ("the same twice", "    y = x.mm(w)\n    return [y, y], {'a': y}\n"),
    (
        "losses of those that are there",
        "    loss = torch.zeros([], dtype=torch.float64)
    count = 0
    for i in range(k):
        if i % 2 == 1:
            loss = loss + (x[i % 3] * b).sum() * w[0, 0]
            count += 1
    return loss, count
",
    ),
    (
        "outputs and states",
        "    h, c = x * 1, x * b
    outs: List[Tensor] = []
    for i in range(k):
        c = c * torch.sigmoid(h.mm(w)) + x
        h = torch.tanh(c)
        outs.append(h)
    outs.append(c)
    return torch.stack(outs), (h, c)
",
    ),
    (
        "a tuple of an iteration",
        "    t = (x.mm(w), x * b)
    for i in range(k):
        return t[0] + t[1], t[1] * 2
    return t[0] * 3, t[1].sin()
",
    ),
    (
        "without gradients",
        "    with torch.no_grad():
        s = x.mm(w).softmax(1)
        n = s.size(0)
    y = x.mm(w) * s
    for i in range(k):
        with torch.no_grad():
            t = (y * b).mean()
        y = y * t + n
    return y, s, n
",
    ),
    (
        "some way",
        "    y = x * 2
    if k > 2:
        y = y.mm(w)
    z = x + 1
    for i in range(k - 3):
        y, z = z, y
    return y, z.tanh(), y + z
",
    ),
    (
        "turned off",
        "    y = x.mm(w)
    if k == 3:
        y = y.detach()
    z = torch.zeros_like(y)
    n = 0
    while n < k - 2:
        z = z + y * n
        n += 1
    return [z, y * 3], n
",
    ),
];

/// What is seen of a result: elements, and whether tensors require grad; and its tensors that do.
fn seen(value: &Value, text: &mut String, tensors: &mut Vec<Tensor>) {
    match value {
        Value::Tensor(tensor) => {
            let elements = tensor.to_dtype(crate::tensor::DType::F64).expect("a number").to_vec::<f64>();
            let rounded: Vec<String> = elements.expect("float64").iter().map(|x| format!("{x:.9}")).collect();
            text.push_str(&format!("{:?} {:?} {rounded:?}\n", tensor.sizes(), tensor.requires_grad()));
            if tensor.requires_grad() {
                tensors.push(tensor.clone());
            }
        }
        Value::Tuple(tuple) => {
            text.push_str("tuple\n");
            tuple.items().iter().for_each(|item| seen(item, text, tensors));
        }
        Value::List(list) => {
            text.push_str("list\n");
            list.items().iter().for_each(|item| seen(item, text, tensors));
        }
        Value::Dict(dict) => {
            text.push_str("dict\n");
            for (key, item) in dict.entries().iter() {
                seen(&key.to_value(), text, tensors);
                seen(item, text, tensors);
            }
        }
        other => text.push_str(&format!("{other:?}\n")),
    }
}

/// What is seen of the results of a call, and their gradients by `w` and `b`.
fn call(program: &Program, k: i64) -> (String, Vec<Option<Vec<f64>>>) {
    let run = run(program);
    let leaf = |sizes: &[i64], step: f64| {
        let tensor = floats(sizes, step);
        tensor.set_requires_grad(true).expect("floats");
        tensor
    };
    let (w, b) = (leaf(&[4, 4], 0.15), leaf(&[4], 0.3));
    let arguments = vec![
        Value::Tensor(floats(&[3, 4], 0.1)),
        Value::Tensor(w.clone()),
        Value::Tensor(b.clone()),
        Value::Int(k),
    ];
    let result = program.run("f", arguments, &run).expect("runs");
    let (mut text, mut tensors) = (String::new(), Vec::new());
    seen(&result, &mut text, &mut tensors);
    let tape = crate::autodiff::Tape::of(program.registry());
    let mut found = Vec::new();
    // Each alone, and all together: backwards of some results are other ones.
    let alone = tensors.iter().map(|t| vec![t.clone()]).chain([tensors.clone()]);
    for outputs in alone.filter(|outputs| !outputs.is_empty()) {
        let mut request = wanted(outputs, &[w.clone(), b.clone()], false);
        request.keep = true;
        let gradients = tape.gradients(&request, &run).expect("gradients");
        found.extend(gradients.into_iter().map(|g| g.map(|g| g.to_vec::<f64>().expect("float64"))));
    }
    (text, found)
}

#[test]
fn results_are_those_of_the_tape() {
    for (name, body) in PROGRAMS {
        let text = format!("def f(x: Tensor, w: Tensor, b: Tensor, k: int):\n{body}");
        let (by_plan, by_tape) = (program(&text, true), program(&text, false));
        for k in [0, 1, 3, 4, 5, 3] {
            let ((plan, gradients), (tape, expected)) = (call(&by_plan, k), call(&by_tape, k));
            assert_eq!(plan, tape, "{name}, k = {k}");
            assert_eq!(gradients.len(), expected.len(), "{name}, k = {k}");
            for (n, (found, expected)) in gradients.iter().zip(&expected).enumerate() {
                assert_eq!(found.is_some(), expected.is_some(), "{name}, k = {k}, gradient {n}");
                for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
                    let close = (found - expected).abs() <= 1e-9 * expected.abs().max(1.0);
                    assert!(close, "{name}, k = {k}: {found} {expected} of gradient {n}");
                }
            }
        }
        let report = by_plan.plan_report();
        assert_eq!(report.unplanned_calls(), 0, "{name}: {:?}", report.unplanned);
        assert!(report.recording > 0, "{name}");
    }
}
