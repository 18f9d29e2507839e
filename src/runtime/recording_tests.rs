//! Calls that record gradients by plan: they give what the tape gives op by op, whichever gradients are asked for, and follow
//! parameters that change.

use crate::backends::cache::{DiskCache, Kind, LIMIT, entry};
use crate::diag::Source;
use crate::dialects::{Gradients, Registry, Run};
use crate::frontend::script::compile_source;
use crate::runtime::{Program, ScriptComposites};
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::Value;
use flambeau_files::Temporary;
use std::sync::Arc;

const TWO: &str = "def f(x: Tensor, w: Tensor, b: Tensor):
    h = torch.zeros(3, 4)
    for i in range(x.size(0)):
        h = torch.tanh(x[i].mm(w) + h + b)
    return h, (h * h).sum()
";

const RAISES: &str = "def f(x: Tensor, w: Tensor, b: Tensor):
    h = torch.tanh(x[0].mm(w) + b)
    if bool(h.sum() > 100.0):
        raise ValueError('large')
    if bool(x.sum() > 0.0):
        h = h * 2
        if bool(x.sum() > 1e6):
            raise ValueError('very large')
    for i in range(int(x.numel()) - 28):
        h = h * b
        assert bool(h.sum() < 90.0)
    return h, (h * h).sum()
";

const VIEWS: &str = "def f(x: Tensor, w: Tensor, b: Tensor):
    h = torch.tanh(x[0].mm(w) + b)
    rows = h.view(-1, 2)
    return rows * rows, h, h.t()[1], w.view(2, 2, 2)[0], rows, x.select(0, 1)
";

const DRAWN: &str = "def f(x: Tensor, w: Tensor, b: Tensor):
    h = torch.dropout(torch.tanh(x[0].mm(w) + b), 0.4, True)
    noise = torch.empty([3, 1]).bernoulli_(0.7)
    noise.div_(0.7)
    h = torch.feature_dropout(h * torch.rand_like(h) + b, 0.3, True) * noise
    return h * h, (h * torch.randn([4])).sum()
";

pub(super) fn program(source: &str, plans: bool) -> Program {
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("test.py", source)).expect("compiles");
    let program = Program::new(module);
    if plans { program.planned() } else { program }
}

pub(super) fn run(program: &Program) -> Run {
    let run = Run::silent();
    run.offer_composites(|| ScriptComposites::of(program.registry()));
    run
}

pub(super) fn floats(sizes: &[i64], step: f64) -> Tensor {
    let count: i64 = sizes.iter().product();
    let values: Vec<f64> = (0..count).map(|n| ((n * 7 % 11) as f64 - 5.0) * step).collect();
    Tensor::from_vec(&values, sizes).expect("small")
}

fn leaf(sizes: &[i64], step: f64) -> Tensor {
    let tensor = floats(sizes, step).to_dtype(DType::F32).expect("floats");
    tensor.set_requires_grad(true).expect("floats");
    tensor
}

/// What is asked of the tape: the gradients of sums of outputs; `create` records how they are computed.
pub(super) fn wanted(outputs: Vec<Tensor>, inputs: &[Tensor], create: bool) -> Gradients {
    let ones = |t: &Tensor| Tensor::full(t.dtype(), &t.sizes(), Scalar::Float(1.0)).expect("small");
    let cotangents = outputs.iter().map(|t| Some(ones(t))).collect();
    let inputs = Some(inputs.to_vec());
    Gradients { outputs, cotangents, inputs, keep: create, create, allow_unused: true }
}

/// Gradients of some outputs of `f` by its second and third argument; of their sum with themselves where `twice`.
fn gradients(program: &Program, outputs: &[usize], twice: bool) -> Vec<Vec<f32>> {
    let run = run(program);
    run.seed(7);
    let x = floats(&[5, 3, 2], 0.1).to_dtype(DType::F32).expect("floats");
    let (w, b) = (leaf(&[2, 4], 0.2), leaf(&[4], 0.3));
    let arguments = [&x, &w, &b].map(|t| Value::Tensor(t.clone())).to_vec();
    let results = program.run("f", arguments, &run).expect("runs");
    let Value::Tuple(results) = &results else { panic!("no tuple") };
    let tape = crate::autodiff::Tape::of(program.registry());
    let outputs: Vec<Tensor> =
        outputs.iter().map(|n| results.items()[*n].to_tensor().expect("a tensor").clone()).collect();
    let inputs = [w.clone(), b.clone()];
    let mut found = tape.gradients(&wanted(outputs, &inputs, twice), &run).expect("gradients");
    if twice {
        let outputs: Vec<Tensor> = found.into_iter().flatten().collect();
        found = tape.gradients(&wanted(outputs, &inputs, false), &run).expect("second gradients");
    }
    found.into_iter().map(|g| g.expect("a gradient").to_vec::<f32>().expect("float32")).collect()
}

#[test]
fn gradients_of_a_whole_call_are_those_of_the_tape() {
    is_as_by_the_tape(TWO);
}

#[test]
fn views_are_recorded_by_themselves() {
    let (by_plan, by_tape) = (program(VIEWS, true), program(VIEWS, false));
    let all = [&[0][..], &[1], &[2], &[4], &[0, 1, 2, 3, 4], &[2, 4]];
    for outputs in all {
        let (plan, tape) = (gradients(&by_plan, outputs, false), gradients(&by_tape, outputs, false));
        for (plan, tape) in plan.iter().flatten().zip(tape.iter().flatten()) {
            assert!((plan - tape).abs() <= 1e-5 * tape.abs().max(1.0), "{plan} {tape} of {outputs:?}");
        }
    }
    let report = by_plan.plan_report();
    assert_eq!((report.recording, report.unplanned_calls()), (1, 0), "{:?}", report.unplanned);
    // A write to one result shows in the others, and in what was given.
    let with = |program: &Program| {
        let w = leaf(&[2, 4], 0.2);
        let x = floats(&[5, 3, 2], 0.1).to_dtype(DType::F32).expect("floats");
        let run = run(program);
        let given = [&x, &w, &leaf(&[4], 0.3)].map(|t| Value::Tensor(t.clone())).to_vec();
        let results = program.run("f", given, &run).expect("runs");
        let Value::Tuple(results) = &results else { panic!("no tuple") };
        let tensor = |n: usize| results.items()[n].to_tensor().expect("a tensor").clone();
        for n in [4, 5] {
            let zeros = Tensor::zeros(DType::F32, &tensor(n).sizes()).expect("small");
            tensor(n).copy_from(&zeros).expect("fits");
        }
        [tensor(1), tensor(2), x].map(|t| t.to_vec::<f32>().expect("float32"))
    };
    assert_eq!(with(&by_plan), with(&by_tape));
}

#[test]
fn branches_that_raise_have_no_part_in_gradients() {
    is_as_by_the_tape(RAISES);
    let program = program(RAISES, true);
    let run = run(&program);
    let large = Tensor::full(DType::F32, &[5, 3, 2], Scalar::Float(1e6)).expect("small");
    let arguments = vec![large.into(), leaf(&[2, 4], 0.2).into(), leaf(&[4], 0.3).into()];
    let error = program.run("f", arguments, &run).expect_err("it is too large");
    assert!(error.message().contains("very large"), "{error}");
    assert_eq!(program.plan_report().unplanned_calls(), 0);
}

fn is_as_by_the_tape(source: &str) {
    let (by_plan, by_tape) = (program(source, true), program(source, false));
    for (outputs, twice) in [(&[0, 1][..], false), (&[1], false), (&[0], false), (&[0, 1], true)] {
        let (plan, tape) = (gradients(&by_plan, outputs, twice), gradients(&by_tape, outputs, twice));
        for (plan, tape) in plan.iter().flatten().zip(tape.iter().flatten()) {
            assert!(
                (plan - tape).abs() <= 1e-5 * tape.abs().max(1.0),
                "{plan} {tape} of {outputs:?}, {twice}"
            );
        }
    }
    let report = by_plan.plan_report();
    assert_eq!((report.built, report.recording, report.hits, report.unplanned_calls()), (1, 1, 3, 0));
    assert!(report.kept_bytes > 0);
}

/// Plans on disk: the second program runs the graphs that the first one made, and gives the same bits. What is damaged is made anew
/// or raises.
#[test]
fn graphs_on_disk_record_as_those_that_were_made() {
    for source in [TWO, RAISES, VIEWS, DRAWN] {
        let folder = Temporary::new("recorded").expect("a folder");
        let cache = Arc::new(DiskCache::new(Kind::Plans, folder.path().join("plans"), LIMIT));
        let [first, second] = [(); 2].map(|()| program(source, true).keeping_plans_in(Arc::clone(&cache)));
        let plain = program(source, true);
        for (outputs, twice) in [(&[0, 1][..], false), (&[1], false), (&[0, 1], true)] {
            let expected = gradients(&plain, outputs, twice);
            for program in [&first, &second] {
                assert_eq!(gradients(program, outputs, twice), expected, "{outputs:?}, {twice}: {source}");
            }
        }
        let reports = [&first, &second].map(Program::plan_report);
        let built = reports.each_ref().map(|report| (report.built, report.recording, report.from_disk));
        assert_eq!(built, [(1, 1, 0), (1, 1, 1)], "{reports:?}");
        assert_eq!(reports[0].kept_bytes, reports[1].kept_bytes);
        assert_eq!(
            first.plan_graphs().first().map(|g| g.1.to_string()),
            second.plan_graphs().first().map(|g| g.1.to_string())
        );
        spoil(&cache, source);
    }
}

/// Changes bytes of the only plan in a cache, with a checksum that fits, and calls.
fn spoil(cache: &Arc<DiskCache>, source: &str) {
    let file =
        std::fs::read_dir(cache.folder()).expect("a folder").next().expect("a plan").expect("an entry");
    let whole = std::fs::read(file.path()).expect("readable");
    let content = whole.len() - 32;
    for at in (0..content).step_by(content / 50) {
        let mut bytes = whole[..content].to_vec();
        bytes[at] = bytes[at].wrapping_add(1);
        std::fs::write(file.path(), entry::sealed(bytes)).expect("writable");
        let program = program(source, true).keeping_plans_in(Arc::clone(cache));
        let run = run(&program);
        let x = floats(&[5, 3, 2], 0.1).to_dtype(DType::F32).expect("floats");
        let given = vec![x.into(), leaf(&[2, 4], 0.2).into(), leaf(&[4], 0.3).into()];
        let Ok(Value::Tuple(results)) = program.run("f", given, &run) else { continue };
        let outputs = results.items().iter().filter_map(|value| value.to_tensor().ok().cloned()).collect();
        let _ = crate::autodiff::Tape::of(program.registry()).gradients(&wanted(outputs, &[], false), &run);
    }
}

/// Recomputation of the forward reads the numbers that it drew.
#[test]
fn random_numbers_are_drawn_once_a_call() {
    let (by_plan, by_tape) = (program(DRAWN, true), program(DRAWN, false));
    for (outputs, twice) in [(&[0, 1][..], false), (&[1], false), (&[0], false), (&[0, 1], true)] {
        let (plan, tape) = (gradients(&by_plan, outputs, twice), gradients(&by_tape, outputs, twice));
        for (plan, tape) in plan.iter().flatten().zip(tape.iter().flatten()) {
            let close = (plan - tape).abs() <= 1e-5 * tape.abs().max(1.0);
            assert!(close, "{plan} {tape} of {outputs:?}, {twice}");
        }
    }
    let report = by_plan.plan_report();
    assert_eq!(
        (report.built, report.recording, report.unplanned_calls()),
        (1, 1, 0),
        "{:?}",
        report.unplanned
    );
}

#[test]
fn results_that_are_written_to_are_found_out() {
    let source = "def f(x: Tensor):\n    y = torch.softmax(x, 0)\n    return y\n\ndef g(y: Tensor):\n    return y.mul_(2.0)\n";
    let program = program(source, true);
    let run = run(&program);
    let x = leaf(&[3], 0.5);
    let y = program.run("f", vec![Value::Tensor(x.clone())], &run).expect("runs");
    let z = program.run("g", vec![y], &run).expect("runs").to_tensor().expect("a tensor").clone();
    let ones = Tensor::full(DType::F32, &[3], Scalar::Float(1.0)).expect("small");
    let wanted = Gradients { outputs: vec![z], cotangents: vec![Some(ones)], ..Gradients::default() };
    let error = crate::autodiff::Tape::of(program.registry()).gradients(&wanted, &run).err();
    let message = error.map(|e| e.message().to_string()).unwrap_or_default();
    assert!(message.contains("modified by an inplace operation"), "{message}");
    assert_eq!(program.plan_report().recording, 1);
}

#[test]
fn what_the_tape_must_see_has_a_reason() {
    let reason = |source: &str| {
        let program = program(source, true);
        let x = Value::Tensor(leaf(&[3], 0.5));
        program.run("f", vec![x], &run(&program)).expect("runs");
        program.plan_report().unplanned.keys().next().cloned().unwrap_or_default()
    };
    let given = "def f(x):\n    y = x * 2\n    if bool(y.sum() > 100.0):\n        y = x\n    return y\n";
    assert!(reason(given).contains("a view of it"));
    assert!(reason("def f(x):\n    return x.view(3, 1)\n").contains("returns no tensor"));
    assert!(
        reason("def f(x):\n    return torch.bernoulli(torch.sigmoid(x)) * x\n").contains("depend on data")
    );
    assert!(
        reason("def f(x):\n    y = x * 2\n    return y if y.requires_grad else y + 1\n").contains("tape")
    );
}
