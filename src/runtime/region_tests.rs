//! Gradients of branches and loops by plan: those of the tape, and None where the tape has none.

use super::recording_tests::{floats, program, run, wanted};
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::Value;

/// Programs of `x` (3, 4), `w` (4, 4) and `b` (4), of which the last two want gradients, and of a number.
const PROGRAMS: &[(&str, &str)] = &[
    (
        "while",
        "    h = x * b
    n = 0
    while bool(h.abs().sum() < 20.0) and n < k + 3:
        h = torch.tanh(h.mm(w)) + h * 1.5 + b
        n += 1
    return h.sum() + n
",
    ),
    (
        "break and continue",
        "    h = x + b
    for i in range(9):
        if i == k:
            break
        if i % 3 == 1:
            continue
        h = torch.sin(h).mm(w) * (i + 1)
    return h.sum()
",
    ),
    (
        "one way",
        "    if k > 2:
        y = x.mm(w)
    else:
        y = x + b
    return (y * y).sum()
",
    ),
    (
        "decided by data",
        "    h = x + b
    if bool((h.mm(w)).sum() > 0):
        y = h.exp()
    elif k == 1:
        y = h.mm(w).tanh()
    else:
        y = h * w.sum()
    return y.sum()
",
    ),
    (
        "no way uses it",
        "    y = x * b
    if k > 1000:
        y = y.mm(w.t().tanh())
    return y.sum()
",
    ),
    (
        "loops in loops",
        "    h = x * b
    total = h.sum() * 0
    for i in range(k):
        g = h * b
        j = 0
        while j < i and bool(g.abs().max() < 50.0):
            g = g.mm(w) + h
            j += 1
        h = torch.tanh(g) + h
        total = total + g.sum() * (j + 1)
    return total
",
    ),
    (
        "early returns",
        "    h = x * b
    for i in range(6):
        if i == k:
            return (h * i).sum()
        h = h + torch.sigmoid(h.mm(w))
        if bool(h.abs().max() > 4.0):
            return h.mean()
    return h.sum()
",
    ),
    (
        "carried and not used",
        "    y = x
    z = x * b
    for i in range(k):
        h = y.mm(w)
        z = h * b + i
    return z.sum()
",
    ),
    (
        "maybe no iterations",
        "    h = x * b
    wt = w.t().exp()
    for i in range(k - 2):
        h = torch.tanh(h.mm(wt))
    return h.sum() + b.sum()
",
    ),
    (
        "state of other types",
        "    h = x * b
    s = 0.5
    up = True
    for i in range(k):
        if up:
            h = h * (w.sum() * s) + b
        else:
            h = h.sin() - b * s
        s = s * 1.5
        up = not up
    return h.sum()
",
    ),
    (
        "sometimes",
        "    h = x - b
    for i in range(k):
        if bool(h.sum() > 0):
            h = h.mm(w) - 1.0
        else:
            h = h + b.abs() * 2
    return (h * h).sum()
",
    ),
    (
        "other sizes",
        "    h = x[0] * b
    y = x.sum(0) + b
    for i in range(k):
        y = (y * b[0]).unsqueeze(0).expand(2, -1).reshape(-1) + w.mv(h).sum()
        h = torch.tanh(y[:4] + b)
    return y.sum() + h.sum()
",
    ),
    (
        "what is swapped",
        "    a = x + b
    c = x * b
    for i in range(k):
        a, c = c, a.mm(w)
    return a.sum() * 2 + (c * c).sum()
",
    ),
    (
        "only swapped",
        "    a = x * b
    c = (x + b).mm(w)
    for i in range(k):
        a, c = c, a
    return a.sum() * 3 + (c * c).sum()
",
    ),
    (
        "conditions as values",
        "    h = x * b
    done = False
    n = 0
    while not done:
        h = h.mm(w) * 0.5 + b
        n += 1
        done = bool(h.abs().sum() > 30.0) or n > k
    return h.mean() * n
",
    ),
];

/// Gradients by `w` and `b`, of gradients where `twice`.
fn gradients(program: &Program, k: i64, twice: bool) -> Vec<Option<Vec<f64>>> {
    let run = run(program);
    let leaf = |sizes: &[i64], step: f64| {
        let tensor = floats(sizes, step);
        tensor.set_requires_grad(true).expect("floats");
        tensor
    };
    let x = floats(&[3, 4], 0.1);
    let (w, b) = (leaf(&[4, 4], 0.15), leaf(&[4], 0.3));
    let mut arguments = [&x, &w, &b].map(|t| Value::Tensor(t.clone())).to_vec();
    arguments.push(Value::Int(k));
    let result = program.run("f", arguments, &run).expect("runs").to_tensor().expect("a tensor").clone();
    let tape = crate::autodiff::Tape::of(program.registry());
    let inputs = [w, b];
    let mut found = tape.gradients(&wanted(vec![result], &inputs, twice), &run).expect("gradients");
    if twice {
        let outputs: Vec<Tensor> = found.iter().flatten().filter(|t| t.requires_grad()).cloned().collect();
        if !outputs.is_empty() {
            found = tape.gradients(&wanted(outputs, &inputs, false), &run).expect("second gradients");
        }
    }
    found.into_iter().map(|g| g.map(|g| g.to_vec::<f64>().expect("float64"))).collect()
}

#[test]
fn branches_and_loops_have_the_gradients_of_the_tape() {
    have_the_gradients_of_the_tape(PROGRAMS);
}

/// Of programs as [`PROGRAMS`] has them, whose gradients, first and second, are to be those of the tape, and computed by plans.
pub(super) fn have_the_gradients_of_the_tape(programs: &[(&str, &str)]) {
    for (name, body) in programs {
        let text = format!("def f(x: Tensor, w: Tensor, b: Tensor, k: int):\n{body}");
        let (by_plan, by_tape) = (program(&text, true), program(&text, false));
        for k in [0, 1, 3, 4, 7, 3] {
            for twice in [false, true] {
                let (plan, tape) = (gradients(&by_plan, k, twice), gradients(&by_tape, k, twice));
                assert_eq!(plan.len(), tape.len());
                for (n, (plan, tape)) in plan.iter().zip(&tape).enumerate() {
                    assert_eq!(
                        plan.is_some(),
                        tape.is_some(),
                        "{name}, k = {k}, gradient {n}, twice: {twice}"
                    );
                    for (plan, tape) in plan.iter().flatten().zip(tape.iter().flatten()) {
                        let close = (plan - tape).abs() <= 1e-9 * tape.abs().max(1.0);
                        assert!(close, "{name}, k = {k}: {plan} {tape} of gradient {n}, twice: {twice}");
                    }
                }
            }
        }
        let report = by_plan.plan_report();
        assert_eq!(report.unplanned_calls(), 0, "{name}: {:?}", report.unplanned);
        assert!(report.recording > 0, "{name}");
    }
}

/// Bits of gradients, and bytes kept for them, with a limit of these.
fn kept_within(limit: Option<u64>) -> (Vec<Option<Vec<f64>>>, u64) {
    let text = "def f(x: Tensor, w: Tensor, b: Tensor, k: int):
    h = torch.softmax(torch.tanh(x.mm(w)).mm(w.t()), 1) * b
    for i in range(k):
        h = torch.tanh(h.mm(w)) + torch.layer_norm(h, [4])
    return (h.mm(w).exp() * h).sum()
";
    let program = program(text, true);
    let program = limit.map_or(program.clone(), |limit| program.keeping_at_most(limit));
    let found = gradients(&program, 60, false);
    assert_eq!(program.plan_report().recording, 1, "{:?}", program.plan_report().unplanned);
    (found, program.plan_report().kept_bytes)
}

#[test]
fn what_is_not_kept_is_computed_again_to_the_same_bits() {
    let (gradients, all) = kept_within(None);
    for limit in [all / 2, all / 8, 100, 0] {
        let (again, kept) = kept_within(Some(limit));
        assert_eq!(again, gradients, "with {limit} bytes");
        assert!(kept <= limit, "{kept} bytes are kept where {limit} may be");
    }
    assert!(all > 1000, "{all}");
}
