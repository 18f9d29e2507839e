//! Plans that leave sizes open: when they are made, which calls they take, and that their answers are those of other plans.

use crate::diag::Source;
use crate::dialects::{Registry, Run};
use crate::frontend::script::compile_source;
use crate::runtime::Program;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::Value;

fn planned(source: &str) -> Program {
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("test.py", source)).expect("compiles");
    Program::new(module).planned()
}

fn tensor(sizes: &[i64]) -> Tensor {
    Tensor::full(DType::F32, sizes, Scalar::Float(1.0)).expect("small")
}

fn full(sizes: &[i64]) -> Value {
    tensor(sizes).into()
}

fn call(program: &Program, arguments: Vec<Value>) -> String {
    let run = Run::silent();
    run.set_grad_enabled(false);
    program.run("f", arguments, &run).expect("runs").to_text()
}

/// The graph of the plan that a call ran.
fn graph(program: &Program, arguments: &[Value]) -> String {
    let graph =
        program.graph_for(None, "f", arguments.to_vec(), Vec::new()).expect("there is f").expect("a plan");
    graph.to_text(&crate::ir::PrintOptions::bare())
}

const SUM: &str = "def f(x: Tensor) -> Tensor:\n    return (x * 2).sum(1) + x.size(1)\n";

#[test]
fn the_third_kind_that_differs_in_sizes_alone_opens_them_for_all_that_follow() {
    let (program, plain) = (planned(SUM), planned(SUM).with_static_plans(usize::MAX));
    for length in [3, 4, 5, 6, 200, 7, 3, 2] {
        assert_eq!(call(&program, vec![full(&[2, length])]), call(&plain, vec![full(&[2, length])]));
    }
    let report = program.plan_report();
    // Of 200 elements are more than the first plan left room for.
    assert_eq!((report.built, report.open, report.evicted, report.unplanned_calls()), (4, 2, 1, 0));
    let text = graph(&program, &[full(&[2, 77])]);
    assert!(text.contains("%x : Float(2, s0, strides=[s0, 1]"), "{text}");
    assert!(graph(&program, &[full(&[2, 3])]).contains("%x : Float(2, 3, strides=[3, 1]"));
    assert_eq!(plain.plan_report().built, 7);
}

#[test]
fn sizes_of_one_and_none_have_plans_of_their_own() {
    let program = planned(SUM);
    for length in [3, 4, 5, 1, 0, 9] {
        call(&program, vec![full(&[2, length])]);
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.open), (5, 1));
    assert!(graph(&program, &[full(&[2, 1])]).contains("%x : Float(2, 1, strides=[1, 1]"));
}

#[test]
fn sizes_that_were_equal_each_time_stay_so_and_others_that_differ_later_are_opened_too() {
    let program = planned("def f(x: Tensor, y: Tensor) -> Tensor:\n    return x.sum() + y.sum()\n");
    let sums = |a: i64, b: i64| call(&program, vec![full(&[a, 2]), full(&[b, 2])]);
    for length in [3, 4, 5, 6] {
        assert!(sums(length, length).starts_with(&format!("{}\n", 4 * length)));
    }
    let text = graph(&program, &[full(&[8, 2]), full(&[8, 2])]);
    assert!(text.contains("%x : Float(s0, 2,") && text.contains("%y : Float(s0, 2,"), "{text}");
    assert_eq!(program.plan_report().built, 3);
    assert!(sums(5, 6).starts_with("22\n"));
    let text = graph(&program, &[full(&[8, 2]), full(&[9, 2])]);
    assert!(text.contains("%x : Float(s0, 2,") && text.contains("%y : Float(s1, 2,"), "{text}");
    let report = program.plan_report();
    assert_eq!((report.built, report.open, report.evicted), (4, 2, 1));
    assert!(sums(7, 7).starts_with("28\n"));
    assert_eq!(program.plan_report().built, 4);
}

#[test]
fn other_dtypes_ranks_and_layouts_are_other_kinds() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x + 1\n");
    for length in [3, 4, 5] {
        call(&program, vec![full(&[2, length])]);
    }
    let turned = |length: i64| {
        Value::Tensor(
            tensor(&[length, 2]).look(|layout| crate::tensor::view::transpose(layout, 0, 1)).expect("a view"),
        )
    };
    call(&program, vec![turned(6)]);
    call(&program, vec![full(&[2, 6, 2])]);
    let report = program.plan_report();
    assert_eq!((report.built, report.open), (5, 1));
    // One that lies otherwise is never opened.
    for length in 7..12 {
        call(&program, vec![turned(length)]);
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.open), (10, 1));
}

#[test]
fn a_size_that_decides_which_way_is_taken_decides_it_in_each_call() {
    let source = "def f(x: Tensor) -> Tensor:\n    if x.size(0) == 77 or x.size(0) > 90:\n        return x * 2\n    return x[:64] + 1\n";
    let (program, plain) =
        (planned(source).with_static_plans(0), planned(source).with_static_plans(usize::MAX));
    for length in [3, 77, 64, 65, 91, 90, 2, 1] {
        assert_eq!(call(&program, vec![full(&[length])]), call(&plain, vec![full(&[length])]), "{length}");
    }
    assert!(program.plan_report().open >= 1);
}

#[test]
fn calls_that_record_gradients_leave_sizes_open_too() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return (x * x).sum()\n");
    for length in 3..9 {
        let leaf = tensor(&[length]);
        leaf.set_requires_grad(true).expect("a float");
        program.run("f", vec![leaf.into()], &Run::silent()).expect("runs");
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.open, report.recording, report.unplanned_calls()), (3, 1, 3, 0));
}

#[test]
fn many_threads_make_one_plan_for_open_sizes() {
    let program = planned(SUM);
    for length in [3, 4] {
        call(&program, vec![full(&[2, length])]);
    }
    std::thread::scope(|scope| {
        for n in 0..8 {
            let program = &program;
            scope.spawn(move || call(program, vec![full(&[2, 5 + n])]));
        }
    });
    let report = program.plan_report();
    assert_eq!((report.open, report.unplanned_calls()), (1, 0));
}

#[test]
fn a_debug_state_shows_open_sizes() {
    let program = planned(SUM);
    for length in [3, 4, 5] {
        call(&program, vec![full(&[2, length])]);
    }
    let plans = &program.debug_state().functions[0].plans;
    let kinds: Vec<&str> = plans.iter().map(|plan| plan.arguments[0].as_str()).collect();
    assert!(kinds[2].starts_with("x : Float(2, s0, strides=[s0, 1]"), "{kinds:?}");
}
