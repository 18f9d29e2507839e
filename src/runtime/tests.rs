//! Ops that a caller registers at run time, used from source, from graph text and beside passes.

use super::Program;
use crate::diag::{Diagnostic, Source};
use crate::dialects::{Effects, Registry, Run, one};
use crate::frontend::script::compile_source;
use crate::ir::Module;
use crate::value::Value;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

fn registry() -> (Arc<Registry>, Arc<AtomicI64>) {
    let mut registry = Registry::with_builtins();
    registry
        .register("mine::scaled(int x, int by=3) -> int", |args| one(args.int(0)? * args.int(1)?))
        .unwrap();
    registry
        .register("mine::scaled.text(str x, int by=3) -> str", |args| {
            let times = usize::try_from(args.int(1)?).unwrap_or(0);
            one(Value::str(args.value(0)?.to_str()?.repeat(times)))
        })
        .unwrap();
    registry
        .register("mine::fails(int x) -> int", |args| {
            Err(Diagnostic::raised("ValueError", format!("{} is not good", args.int(0)?)))
        })
        .unwrap();
    let count = Arc::new(AtomicI64::new(0));
    let counter = Arc::clone(&count);
    registry
        .register_with("mine::count(int x) -> int", Effects::WRITES_WORLD, move |args| {
            counter.fetch_add(args.int(0)?, Ordering::Relaxed);
            one(0i64)
        })
        .unwrap();
    (Arc::new(registry), count)
}

fn run(text: &str, registry: &Arc<Registry>, arguments: Vec<Value>) -> crate::diag::Result<Value> {
    let module = compile_source(registry, &Source::new("<string>", text))?;
    Program::with(module, None, Arc::clone(registry)).run("f", arguments, &Run::default())
}

#[test]
fn source_calls_ops_of_the_caller() {
    let (registry, _) = registry();
    let text = "def f(x: int):\n    return torch.ops.mine.scaled(x), torch.ops.mine.scaled(x, by=5), torch.ops.mine.scaled('ab')\n";
    let answer = run(text, &registry, vec![Value::Int(2)]).unwrap();
    let items = answer.to_tuple().unwrap().items();
    assert!(matches!(items, [Value::Int(6), Value::Int(10), Value::Str(text)] if &**text == "ababab"));
}

#[test]
fn graphs_call_ops_of_the_caller() {
    let (registry, _) = registry();
    let text = "graph(%x : int):\n  %k : int = prim::Constant[value=4]()\n  %y : int = mine::scaled(%x, %k)\n  return (%y)\n";
    let graph = crate::ir::parse_graph(text).unwrap();
    let mut module = Module::default();
    let function = super::graph_function("f", graph);
    module.functions.insert(function.name, function);
    let program = Program::with(module, None, registry);
    let answer = program.run("f", vec![Value::Int(5)], &Run::default()).unwrap();
    assert!(matches!(answer, Value::Int(20)));
}

#[test]
fn errors_of_such_ops_have_a_traceback() {
    let (registry, _) = registry();
    let error = run("def f(x: int):\n    return torch.ops.mine.fails(x)\n", &registry, vec![Value::Int(2)])
        .unwrap_err();
    assert!(error.message().contains("2 is not good"), "{}", error.message());
    let wrong =
        run("def f(x: int):\n    return torch.ops.mine.scaled([x])\n", &registry, vec![]).unwrap_err();
    let shown = crate::diag::torch::render(&wrong);
    assert!(shown.contains("mine::scaled.text(str x, int by=3) -> str"), "{shown}");
}

#[test]
fn effects_keep_a_call_whose_result_is_not_used() {
    let (registry, count) = registry();
    let text = "def f(x: int):\n    torch.ops.mine.count(x)\n    torch.ops.mine.scaled(x)\n    return x\n";
    let mut module = compile_source(&registry, &Source::new("<string>", text)).unwrap();
    crate::passes::parse("dce").unwrap().run(&mut module, &registry).unwrap();
    for function in module.functions.values() {
        let shown = function.graph.to_string();
        assert!(shown.contains("mine::count") && !shown.contains("mine::scaled"), "{shown}");
    }
    Program::with(module, None, registry).run("f", vec![Value::Int(7)], &Run::default()).unwrap();
    assert_eq!(count.load(Ordering::Relaxed), 7);
}

#[test]
fn a_name_is_registered_once_and_a_schema_must_parse() {
    let mut registry = Registry::with_builtins();
    registry.register("mine::f(int x) -> int", |args| one(args.int(0)?)).unwrap();
    assert!(registry.register("mine::f(str x) -> str", |_| one(0i64)).is_err());
    assert!(registry.register("aten::relu(Tensor self) -> Tensor", |_| one(0i64)).is_err());
    assert!(registry.register("mine::g(int x -> int", |_| one(0i64)).is_err());
}
