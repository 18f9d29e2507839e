//! Plans that other threads make.

use super::pending::IN_BACKGROUND;
use crate::dialects::{Registry, Run};
use crate::frontend::script::compile_source;
use crate::runtime::Program;
use crate::tensor::Tensor;
use crate::value::Value;

fn program(text: &str) -> Program {
    let registry = Registry::builtin();
    let source = crate::diag::Source::new("test.py", text);
    Program::new(compile_source(&registry, &source).expect("compiles")).planned()
}

fn ones(sizes: &[i64]) -> Tensor {
    let count = sizes.iter().product::<i64>() as usize;
    Tensor::from_vec(&vec![1.0f32; count], sizes).expect("fits")
}

fn floats(value: &Value) -> Vec<f32> {
    value.to_tensor().expect("a tensor").to_vec::<f32>().expect("floats")
}

fn silent() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run.set_plans_in_background(true);
    run
}

const F: &str = "def f(x: Tensor) -> Tensor:\n    return torch.relu(x * 2 + 1)\n";

#[test]
fn calls_run_without_the_plan_until_it_is_there() {
    let program = program(F);
    let (run, x) = (silent(), ones(&[4]));
    let first = program.run("f", vec![x.clone().into()], &run).expect("runs");
    program.finish_plans();
    let second = program.run("f", vec![x.into()], &run).expect("runs");
    assert_eq!((floats(&first), floats(&second)), (vec![3.0; 4], vec![3.0; 4]));
    let report = program.plan_report();
    assert_eq!((report.built, report.hits), (1, 1), "{report:?}");
    assert_eq!(report.unplanned.get(IN_BACKGROUND), Some(&1), "{report:?}");
}

#[test]
fn the_third_size_leaves_it_open_in_the_background() {
    let program = program(F);
    let run = silent();
    for n in [3, 4, 5, 6, 7] {
        let y = program.run("f", vec![ones(&[n]).into()], &run).expect("runs");
        assert_eq!(floats(&y), vec![3.0; n as usize]);
        program.finish_plans();
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.open, report.hits), (3, 1, 2), "{report:?}");
}

/// The call that begins the making changes its list and its tensor meanwhile.
#[test]
fn what_the_call_does_to_its_arguments_is_not_the_makers() {
    let text = "def f(xs: List[Tensor], x: Tensor) -> Tensor:
    y = xs[0] * 2 + x
    xs.append(x)
    x.unsqueeze_(0)
    return y
";
    let program = program(text);
    let run = silent();
    for _ in 0..3 {
        let list = Value::list(crate::ir::Type::tensor(), vec![ones(&[4]).into()]);
        let y = program.run("f", vec![list, ones(&[4]).into()], &run).expect("runs");
        assert_eq!(floats(&y), vec![3.0; 4]);
        program.finish_plans();
    }
    let report = program.plan_report();
    assert_eq!(report.hits + report.unplanned_calls(), 3, "{report:?}");
}

#[test]
fn a_plan_that_cannot_be_made_is_a_reason() {
    let program = program("def f(x: Tensor) -> Tensor:\n    x.resize_([2])\n    return x\n");
    let run = silent();
    for _ in 0..2 {
        program.run("f", vec![ones(&[2]).into()], &run).expect("runs");
        program.finish_plans();
    }
    let unplanned = program.plan_report().unplanned;
    assert!(unplanned.keys().any(|reason| reason.contains("resize_")), "{unplanned:?}");
}

#[test]
fn calls_that_record_gradients_have_plans_too() {
    let program = program(F);
    let run = silent();
    run.set_grad_enabled(true);
    for _ in 0..2 {
        let x = ones(&[4]);
        x.set_requires_grad(true).expect("floats");
        let y = program.run("f", vec![x.into()], &run).expect("runs");
        assert!(y.to_tensor().expect("a tensor").requires_grad());
        program.finish_plans();
    }
    let report = program.plan_report();
    assert_eq!((report.recording, report.hits), (1, 1), "{report:?}");
}

#[test]
fn many_threads_make_each_plan_once() {
    let program = program(F);
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                for n in [2, 3, 2, 3] {
                    let y = program.run("f", vec![ones(&[n]).into()], &silent()).expect("runs");
                    assert_eq!(floats(&y), vec![3.0; n as usize]);
                }
            });
        }
    });
    program.finish_plans();
    assert_eq!(program.plan_report().built, 2);
}
