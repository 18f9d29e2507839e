//! Plans of programs: when they are built, when they hold, and that answers do not depend on them.

use super::{CALLS_BEFORE_PLAN, MAX_LOST};
use crate::backends::by_name;
use crate::diag::Source;
use crate::dialects::{Registry, Run};
use crate::frontend::archive::{Archive, load};
use crate::frontend::script::compile_source;
use crate::ir::Symbol;
use crate::runtime::Program;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{Object, Value};
use std::sync::Arc;

fn planned(source: &str) -> Program {
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("test.py", source)).expect("compiles");
    Program::new(module).planned()
}

fn full(sizes: &[i64], value: f64) -> Value {
    Tensor::full(DType::F32, sizes, Scalar::Float(value)).expect("small").into()
}

/// A loaded LSTM cell with plans, without gradients.
fn cell() -> Program {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/lstm_cell.pt");
    let bytes = std::fs::read(file).expect("is there");
    let registry = Registry::builtin();
    let model = load(&registry, Archive::from_bytes(bytes).expect("an archive")).expect("loads");
    let Value::Object(instance) = &model.root else { panic!("no object") };
    let program = Program::with(model.module, Some(instance.clone()), registry);
    let inlined = program
        .transformed(|module, registry| crate::passes::parse("default")?.run(module, registry).map(|_| ()));
    inlined.expect("passes run").planned()
}

fn no_grad() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run
}

fn call(program: &Program, entry: &str, arguments: Vec<Value>, run: &Run) -> String {
    program.run(entry, arguments, run).expect("runs").to_text()
}

#[test]
fn two_alternating_kinds_of_arguments_build_two_plans() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x * x.size(0)\n");
    let run = Run::silent();
    for _ in 0..3 {
        assert!(call(&program, "f", vec![full(&[2], 1.0)], &run).contains(" 2\n 2"));
        assert!(call(&program, "f", vec![full(&[3], 1.0)], &run).contains(" 3\n 3"));
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.misses, report.hits, report.unplanned_calls()), (2, 2, 4, 0));
}

#[test]
fn many_threads_build_one_plan() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return (x + 1).relu() * x\n");
    let answer = |_: usize| call(&program, "f", vec![full(&[4, 4], 2.0)], &Run::silent());
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..16).map(|n| scope.spawn(move || answer(n))).collect();
        let answers: Vec<String> = threads.into_iter().map(|t| t.join().expect("no panic")).collect();
        assert!(answers.iter().all(|answer| *answer == answers[0]));
    });
    assert_eq!(program.plan_report().built, 1);
}

#[test]
fn plans_are_bounded_and_giving_them_up_is_too() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x + x\n");
    let run = Run::silent();
    run.set_static_plans(usize::MAX);
    let kept = run.plan_limit();
    let calls = kept + MAX_LOST as usize + 5;
    for n in 0..calls {
        call(&program, "f", vec![full(&[n as i64], 1.0)], &run);
    }
    let report = program.plan_report();
    assert_eq!((report.evicted, report.built), (MAX_LOST, kept as u64 + MAX_LOST));
    assert_eq!(report.unplanned["arguments or attributes differ from call to call"], 5);
    // A kind that comes back has a plan after a while, whatever came between.
    for n in 0..3 * CALLS_BEFORE_PLAN {
        call(&program, "f", vec![full(&[3, 3], 1.0)], &run);
        call(&program, "f", vec![full(&[1000 + n as i64], 1.0)], &run);
    }
    let report = program.plan_report();
    assert_eq!((report.evicted, report.built), (MAX_LOST + 1, kept as u64 + MAX_LOST + 1));
    assert_eq!(report.hits, 2 * CALLS_BEFORE_PLAN);
}

#[test]
fn a_run_says_how_many_plans_are_kept() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x + x\n");
    let run = Run::silent();
    run.set_static_plans(usize::MAX);
    for (limit, evicted) in [(2, 1), (1, 3)] {
        run.set_plan_limit(limit);
        for n in 1..4 {
            call(&program, "f", vec![full(&[n], 1.0)], &run);
        }
        assert!(program.plan_report().evicted >= evicted);
        assert_eq!(program.plan_graphs().len(), limit);
    }
    run.set_plan_limit(0);
    call(&program, "f", vec![full(&[9], 1.0)], &run);
    assert_eq!(program.plan_report().unplanned["no plans are to be kept"], 1);
}

#[test]
fn what_cannot_be_planned_says_why() {
    let source = "def f(x: Tensor, n: int) -> Tensor:\n    x.unsqueeze_(0)\n    return x\n\
                  def g(n: int) -> int:\n    return n + 1\n";
    let (program, run) = (planned(source), Run::silent());
    call(&program, "f", vec![full(&[2], 1.0), Value::Int(1)], &run);
    call(&program, "g", vec![Value::Int(1)], &run);
    let leaf = full(&[2], 1.0);
    leaf.to_tensor().and_then(|t| t.set_requires_grad(true)).expect("a float");
    assert!(program.run("f", vec![leaf, Value::Int(1)], &run).is_err(), "a leaf is changed in place");
    let reasons: Vec<String> = program.plan_report().unplanned.into_keys().collect();
    let expected = ["aten::unsqueeze_ may give a tensor other sizes in place", "no argument is a tensor"];
    assert_eq!(reasons, expected);
}

#[test]
fn a_parameter_that_changes_between_calls_is_seen() {
    let (program, run) = (cell(), no_grad());
    let parameters = program.parameters("forward").expect("is there").len();
    let arguments: Vec<Value> = recorded(parameters);
    let plain = |program: &Program| {
        let module = program.module().clone();
        let plain = Program::with(module, program.instance().cloned(), Registry::builtin());
        call(&plain, "forward", arguments.clone(), &run)
    };
    let before = call(&program, "forward", arguments.clone(), &run);
    assert_eq!(before, plain(&program));
    let weight = parameter(program.instance().expect("a model"));
    weight.1.copy_from(&Tensor::zeros(weight.1.dtype(), &weight.1.sizes()).expect("small")).expect("fits");
    let zeroed = call(&program, "forward", arguments.clone(), &run);
    assert!(zeroed != before && zeroed == plain(&program));
    let other = Tensor::full(weight.1.dtype(), &weight.1.sizes(), Scalar::Float(0.5)).expect("small");
    program.instance().expect("a model").set(weight.0, Value::Tensor(other));
    let replaced = call(&program, "forward", arguments.clone(), &run);
    assert!(replaced != zeroed && replaced == plain(&program));
    let report = program.plan_report();
    assert_eq!((report.built, report.outdated, report.unplanned_calls()), (3, 2, 0));
}

#[test]
fn parameters_that_require_grad_may_change_and_their_plan_stays() {
    let (program, run) = (cell(), Run::silent());
    run.offer_composites(|| crate::runtime::ScriptComposites::of(program.registry()));
    let parameters = program.parameters("forward").expect("is there").len();
    let arguments: Vec<Value> = recorded(parameters);
    let (name, weight) = parameter(program.instance().expect("a model"));
    let all = |on: bool| {
        let fields = program.instance().expect("a model").fields();
        for tensor in fields.iter().filter_map(|(_, value)| value.to_tensor().ok()) {
            tensor.set_requires_grad(on).expect("floats");
        }
    };
    all(true);
    let sums = |program: &Program| {
        let results = program.run("forward", arguments.clone(), &run).expect("runs");
        let Value::Tuple(results) = results else { panic!("two results") };
        let follow = results.items().iter().all(|r| r.to_tensor().is_ok_and(Tensor::requires_grad));
        (follow, Value::Tuple(results).to_text())
    };
    let first = sums(&program);
    assert!(first.0);
    assert_eq!(sums(&program), first);
    weight.copy_from(&Tensor::zeros(weight.dtype(), &weight.sizes()).expect("small")).expect("fits");
    let zeroed = sums(&program);
    assert!(zeroed.0 && zeroed != first);
    let report = program.plan_report();
    assert_eq!((report.built, report.recording, report.outdated), (1, 1, 0));
    all(false);
    assert!(!sums(&program).0);
    let other = Tensor::full(weight.dtype(), &weight.sizes(), Scalar::Float(0.5)).expect("small");
    program.instance().expect("a model").set(name, Value::Tensor(other));
    assert!(sums(&program).1 != zeroed.1);
    let report = program.plan_report();
    assert_eq!((report.built, report.recording, report.outdated), (3, 1, 2));
}

/// A linear map with ReLU after it, and the object that has its weights.
fn layer() -> (Program, Object) {
    let forward =
        "def forward(self, x: Tensor) -> Tensor:\n    return torch.linear(x, self.w, self.b).relu()\n";
    let header = "  w : Tensor\n  b : Tensor\n";
    let module = crate::runtime::hook_tests::program_of("__torch__.M", header, &[forward]).expect("compiles");
    let registry = Registry::builtin();
    let instance = Object::new(Symbol::new("__torch__.M"));
    instance.set(Symbol::new("w"), full(&[4, 3], 0.5));
    instance.set(Symbol::new("b"), full(&[4], 1.0));
    (Program::with(module, Some(instance.clone()), registry).planned(), instance)
}

#[test]
fn a_written_buffer_among_the_arguments_keeps_a_call_from_its_plan() {
    let forward = "def forward(self, x: Tensor, others: List[Tensor]) -> Tensor:\n    n = self.n.add_(1.0)\n    return x * self.n + others[0]\n";
    let module = crate::runtime::hook_tests::program_of("__torch__.M", "  n : Tensor\n", &[forward])
        .expect("compiles");
    let instance = Object::new(Symbol::new("__torch__.M"));
    let buffer = full(&[2], 1.0);
    instance.set(Symbol::new("n"), buffer.clone());
    let program = Program::with(module, Some(instance), Registry::builtin()).planned();
    let (run, x) = (Run::silent(), full(&[2], 1.0));
    run.offer_composites(|| crate::runtime::ScriptComposites::of(program.registry()));
    x.to_tensor().and_then(|x| x.set_requires_grad(true)).expect("floats");
    let forward = |other: &Value| {
        let others = Value::list(crate::ir::Type::tensor(), vec![other.clone()]);
        call(&program, "forward", vec![x.clone(), others], &run)
    };
    assert!(forward(&full(&[2], 10.0)).contains(" 12\n"));
    // The buffer is 3 when it is added to three times x.
    assert!(forward(&buffer).contains(" 6\n"));
    assert!(forward(&full(&[2], 10.0)).contains(" 14\n"));
    let report = program.plan_report();
    assert_eq!((report.recording, report.hits), (1, 2));
    assert_eq!(report.unplanned["an argument shares memory with a tensor that the call writes to"], 1);
}

#[test]
fn plans_for_other_sizes_share_what_was_packed() {
    let ((program, instance), run) = (layer(), no_grad());
    for rows in [2, 5, 2, 7] {
        assert!(call(&program, "forward", vec![full(&[rows, 3], 1.0)], &run).contains("2.5000"));
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.packed, report.shared_packs), (3, 1, 2));
    // A weight that is written to is packed anew, once for all plans that calls need.
    let weight = instance.get(Symbol::new("w")).expect("is set");
    weight.to_tensor().and_then(|w| w.copy_from(full(&[4, 3], 1.0).to_tensor()?)).expect("fits");
    for rows in [2, 5] {
        assert!(call(&program, "forward", vec![full(&[rows, 3], 1.0)], &run).contains(" 4\n"));
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.outdated, report.packed, report.shared_packs), (5, 2, 2, 3));
}

#[test]
fn a_guard_that_is_made_to_miss_changes_no_answer() {
    let ((program, _), run) = (layer(), no_grad());
    let answer = call(&program, "forward", vec![full(&[2, 3], 1.0)], &run);
    assert_eq!((program.guards().len(), program.plan_report().forced_misses), (4, 0));
    for number in 0..4 {
        let program = program.failing_guard(number);
        let calls = MAX_LOST + 3;
        for _ in 0..calls {
            assert_eq!(call(&program, "forward", vec![full(&[2, 3], 1.0)], &run), answer, "guard {number}");
        }
        let report = program.plan_report();
        // Each miss costs a plan; after too many misses, calls run without.
        let missed = MAX_LOST + 1;
        assert_eq!((report.forced_misses, report.outdated), (missed, missed), "guard {number}");
        assert_eq!(report.unplanned["arguments or attributes differ from call to call"], 3);
    }
    let program = program.failing_guard(4);
    assert_eq!(call(&program, "forward", vec![full(&[2, 3], 1.0)], &run), answer);
    assert_eq!(program.plan_report().forced_misses, 0, "there are four");
}

#[test]
fn guards_count_calls_of_their_plan_and_of_others() {
    let ((program, instance), run) = (layer(), no_grad());
    for rows in [2, 5, 2, 5] {
        call(&program, "forward", vec![full(&[rows, 3], 1.0)], &run);
    }
    assert_eq!((program.plan_report().built, program.plan_report().hits), (2, 2));
    let weight = instance.get(Symbol::new("w")).expect("is set");
    weight.to_tensor().and_then(|w| w.copy_from(full(&[4, 3], 1.0).to_tensor()?)).expect("fits");
    call(&program, "forward", vec![full(&[2, 3], 1.0)], &run);
    let counts: Vec<_> =
        program.guards().iter().map(|guard| (guard.number, guard.held, guard.missed)).collect();
    let first = [(0, 3, 2), (1, 2, 1), (2, 2, 0), (3, 2, 0)];
    // Plans are asked in the order in which they were made: the second only for calls that the first does not match.
    let second = [(0, 2, 0), (1, 2, 0), (2, 2, 0), (3, 2, 0)];
    assert_eq!(counts[..4], first);
    assert_eq!(counts[4..], second);
}

#[test]
fn what_no_plan_has_any_more_is_packed_again() {
    let ((program, _), run) = (layer(), no_grad());
    run.set_plan_limit(1);
    for rows in [2, 3, 2] {
        call(&program, "forward", vec![full(&[rows, 3], 1.0)], &run);
    }
    let report = program.plan_report();
    assert_eq!((report.built, report.packed, report.shared_packs), (3, 3, 0));
}

#[test]
fn the_graph_of_arguments_is_that_of_their_plan() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x.relu() * 2\n");
    let run = Run::silent();
    let shown = |n: i64| {
        let found = program.graph_for(None, "f", vec![full(&[n], 1.0)], Vec::new()).expect("binds");
        found.map(|graph| graph.to_string())
    };
    assert!(shown(2).is_none());
    for n in [2, 3, 2] {
        call(&program, "f", vec![full(&[n], 1.0)], &run);
    }
    assert!(shown(2).is_some_and(|text| text.contains("Float(2, ")));
    assert!(shown(3).is_some_and(|text| text.contains("Float(3, ")));
    assert!(shown(4).is_none() && program.graph_for(None, "g", Vec::new(), Vec::new()).is_err());
}

#[test]
fn calls_after_the_first_compile_nothing() {
    let backend = by_name(if cfg!(feature = "llvm") { "llvm" } else { "interp" }).expect("is there");
    let source = "def f(x: Tensor, y: Tensor) -> Tensor:\n    return (x * y + 1).tanh() * y\n";
    let registry = Registry::builtin();
    let module = compile_source(&registry, &Source::new("test.py", source)).expect("compiles");
    let program = Program::new(module).on(Arc::clone(&backend)).planned();
    // The second is so large that its results bypass the caches, which is code of its own.
    for (plans, sizes) in [(1, [64, 64]), (2, [1 << 13, 1 << 10])] {
        let arguments = vec![full(&sizes, 0.5), full(&sizes, 2.0)];
        let once = || program.run("f", arguments.clone(), &no_grad()).map(drop).expect("runs");
        let counts = || {
            let fusion = program.fusion_report();
            (program.plan_report().built, fusion.kernels, fusion.op_by_op_calls(), backend.compilations())
        };
        once();
        let first = counts();
        assert_eq!((first.0, first.2), (plans, 0));
        (2..=20).for_each(|_| once());
        assert_eq!(counts(), first);
    }
    let expected = if cfg!(feature = "llvm") { 2 } else { 0 };
    assert!(backend.compilations() >= expected, "{}", backend.compilations());
}

#[test]
fn a_plan_says_how_it_was_made() {
    let program = planned("def f(x: Tensor) -> Tensor:\n    return x[0:4].contiguous() + x.size(0)\n");
    call(&program, "f", vec![full(&[4], 1.0)], &no_grad());
    let makings = program.plan_makings();
    let making = makings.values().next().expect("one plan");
    assert!(making.stages.iter().any(|stage| stage.pass == "fold-sizes" && stage.changes > 0));
    assert!(making.rules.iter().any(|(rule, times)| &**rule == "slice-same" && *times == 1));
    assert!(making.after().0 < making.before.0 && making.after().1 == 16);
}

/// The largest tensor among the attributes of a model.
fn parameter(instance: &Object) -> (Symbol, Tensor) {
    let fields = instance.fields().into_iter();
    let tensors = fields.filter_map(|(name, value)| Some((name, value.to_tensor().ok()?.clone())));
    tensors.max_by_key(|(_, tensor)| tensor.numel()).expect("it has some")
}

/// Arguments of the LSTM cell.
fn recorded(count: usize) -> Vec<Value> {
    let text = include_str!("../../../examples/lstm_cell.json");
    let case: serde_json::Value = serde_json::from_str(text).expect("it is JSON");
    let shape = |n: usize| {
        let tensor = case["args"][n].as_object().expect("a value").values().next().expect("one");
        serde_json::from_value::<Vec<i64>>(tensor["shape"].clone()).expect("sizes")
    };
    (0..count).map(|n| full(&shape(n), 0.25)).collect()
}
