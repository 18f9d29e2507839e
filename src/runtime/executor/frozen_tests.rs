//! What plans take for constants: attributes that only training changes, lists of numbers, arguments that are None, the
//! grad mode; and memory that was lent to others meanwhile.

use crate::diag::Source;
use crate::dialects::{Registry, Run};
use crate::frontend::script::compile_source;
use crate::ir::{Symbol, Type};
use crate::runtime::Program;
use crate::runtime::hook_tests::program_of;
use crate::tensor::{DType, Scalar, Tensor};
use crate::value::{Object, Value};

fn full(sizes: &[i64], value: f64) -> Value {
    Tensor::full(DType::F32, sizes, Scalar::Float(value)).expect("small").into()
}

fn no_grad() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run
}

/// A module of one method with these attributes.
fn module(header: &str, forward: &str, attributes: &[(&str, Value)]) -> (Program, Object) {
    let module = program_of("__torch__.M", header, &[forward]).expect("compiles");
    let instance = Object::new(Symbol::new("__torch__.M"));
    for (name, value) in attributes {
        instance.set(Symbol::new(name), value.clone());
    }
    (Program::with(module, Some(instance.clone()), Registry::builtin()).planned(), instance)
}

fn call(program: &Program, arguments: Vec<Value>, run: &Run) -> String {
    program.run("forward", arguments, run).expect("runs").to_text()
}

/// The graph of the only plan.
fn graph(program: &Program) -> String {
    let graphs = program.plan_graphs();
    graphs.first().expect("a plan").1.to_string()
}

const NORM: &str = "  training : bool\n  w : Tensor\n  mean : Tensor\n  var : Tensor\n  steps : Tensor\n";
const NORM_FORWARD: &str = "def forward(self, x: Tensor) -> Tensor:\n    y = torch.conv2d(x, self.w)\n    if self.training:\n        n = self.steps.add_(1)\n    return torch.batch_norm(y, None, None, self.mean, self.var, self.training, 0.1, 0.001, False)\n";

fn norm(training: bool) -> (Program, Object) {
    let steps = Tensor::zeros(DType::I64, &[]).expect("small");
    let attributes = [
        ("training", Value::Bool(training)),
        ("w", full(&[2, 3, 3, 3], 0.1)),
        ("mean", full(&[2], 0.5)),
        ("var", full(&[2], 2.0)),
        ("steps", steps.into()),
    ];
    module(NORM, NORM_FORWARD, &attributes)
}

#[test]
fn weights_are_frozen_where_only_training_writes() {
    let ((program, _), run) = (norm(false), no_grad());
    let answer = call(&program, vec![full(&[1, 3, 5, 5], 1.0)], &run);
    let text = graph(&program);
    assert!(text.contains("fusion::conv2d") && !text.contains("prim::GetAttr"), "{text}");
    assert!(program.plan_report().packed > 0);
    // Op by op it is the same.
    let plain = no_grad();
    plain.set_plan_limit(0);
    assert_eq!(call(&program, vec![full(&[1, 3, 5, 5], 1.0)], &plain), answer);
}

#[test]
fn lent_memory_outdates_the_plan_that_relies_on_it() {
    let ((program, instance), run) = (norm(false), no_grad());
    let x = || vec![full(&[1, 3, 5, 5], 1.0)];
    let answer = call(&program, x(), &run);
    let weight = instance.get(Symbol::new("w")).expect("is set");
    let weight = weight.to_tensor().expect("a tensor").clone();
    drop(weight.storage().pin().expect("host memory"));
    assert_eq!(call(&program, x(), &run), answer);
    let report = program.plan_report();
    assert_eq!((report.built, report.outdated), (2, 1));
    // While it is lent it is not frozen, and read at each call.
    let _pin = weight.storage().pin().expect("host memory");
    assert_eq!(call(&program, x(), &run), answer);
    weight.copy_from(full(&[2, 3, 3, 3], 0.2).to_tensor().expect("a tensor")).expect("fits");
    assert_ne!(call(&program, x(), &run), answer);
    assert_eq!(program.plan_report().outdated, 2);
}

#[test]
fn lists_of_numbers_are_frozen_and_guarded() {
    let forward = "def forward(self, x: Tensor) -> Tensor:\n    return x.permute(self.dims).contiguous()\n";
    let dims = |dims: &[i64]| Value::list(Type::int(), dims.iter().map(|d| Value::Int(*d)).collect());
    let (program, instance) = module("  dims : List[int]\n", forward, &[("dims", dims(&[1, 0]))]);
    let x = || vec![full(&[2, 3], 1.0)];
    let run = no_grad();
    let before = call(&program, x(), &run);
    let text = graph(&program);
    assert!(!text.contains("prim::GetAttr"), "{text}");
    let list = instance.get(Symbol::new("dims")).expect("is set");
    let Value::List(list) = &list else { panic!("a list") };
    list.items_mut().reverse();
    assert_ne!(call(&program, x(), &run), before);
    assert_eq!(program.plan_report().outdated, 1);
}

#[test]
fn an_argument_that_is_none_decides_branches() {
    let source = "def f(x: Tensor, m: Optional[Tensor]) -> Tensor:\n    if m is not None:\n        x = x + m\n    return x.exp()\n";
    let module = compile_source(&Registry::builtin(), &Source::new("t.py", source)).expect("compiles");
    let program = Program::new(module).planned();
    let run = no_grad();
    let answer = |m: Value| program.run("f", vec![full(&[2], 0.0), m], &run).expect("runs").to_text();
    assert!(answer(Value::None).contains(" 1\n 1"));
    let text = graph(&program);
    assert!(!text.contains("prim::If"), "{text}");
    assert!(answer(full(&[2], 1.0)).contains("2.7183"));
    assert!(answer(Value::None).contains(" 1\n 1"));
    assert_eq!((program.plan_report().built, program.plan_report().hits), (2, 1));
}

#[test]
fn a_block_without_gradients_is_planned() {
    let source = "def f(x: Tensor) -> Tensor:\n    with torch.no_grad():\n        y = x * 2\n        if torch.is_grad_enabled():\n            y = y + 1\n    return y + x\n";
    let module = compile_source(&Registry::builtin(), &Source::new("t.py", source)).expect("compiles");
    let program = Program::new(module).planned();
    let run = no_grad();
    let answer = program.run("f", vec![full(&[2], 1.0)], &run).expect("runs").to_text();
    assert!(answer.contains(" 3\n 3"), "{answer}");
    let report = program.plan_report();
    assert_eq!((report.built, report.unplanned_calls()), (1, 0));
    let text = graph(&program);
    assert!(!text.contains("grad_enabled") && !text.contains("prim::If"), "{text}");
}
