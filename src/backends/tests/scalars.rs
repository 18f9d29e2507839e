//! Ops on numbers in kernels give, on every engine, the bits that their rows give; where a row raises, the kernel leaves the
//! work to the interpreter.

use crate::backends::{FusionCounters, RemainingLoop, ScalarKernel, by_name};
use crate::dialects::{Node, Op, Registry, Run};
use crate::eval;
use crate::ir::{Graph, OpId, TypeKind, parse_graph};
use crate::lowering::scalars;
use crate::value::Value;
use std::sync::Arc;

/// A program that runs an op once, as a loop of one iteration.
fn program(row: &Op) -> Option<(Graph, OpId)> {
    let schema = row.schema().ok()?;
    let name = |kind: &TypeKind| match kind {
        TypeKind::Int => Some("int"),
        TypeKind::Float => Some("float"),
        TypeKind::Bool => Some("bool"),
        _ => None,
    };
    let types: Vec<&str> = schema.arguments.iter().map(|a| name(a.ty.kind())).collect::<Option<_>>()?;
    let [result] = &schema.returns[..] else { return None };
    let result = name(result.ty.kind())?;
    let inputs: Vec<String> = types.iter().enumerate().map(|(n, ty)| format!("%x{n} : {ty}, ")).collect();
    let operands: Vec<String> = (0..types.len()).map(|n| format!("%x{n}")).collect();
    let text = format!(
        "graph({}%old : {result}):
  %n : int = prim::Constant[value=1]()
  %yes : bool = prim::Constant[value=1]()
  %out : {result} = prim::Loop(%n, %yes, %old)
    block0(%i : int, %carried : {result}):
      %new : {result} = {}({})
      -> (%yes, %new)
  return (%out)
",
        inputs.concat(),
        row.name(),
        operands.join(", ")
    );
    let graph = parse_graph(&text).ok()?;
    let op = graph.all_ops().into_iter().find(|op| graph.kind(*op) == "prim::Loop")?;
    Some((graph, op))
}

fn numbers(kind: &TypeKind) -> Vec<Value> {
    let far = 1i64 << 62;
    match kind {
        TypeKind::Int => [0, 1, -1, 2, -2, 3, 7, -7, 63, 64, 65, 1000, far, -far, i64::MAX, i64::MIN]
            .map(Value::Int)
            .into(),
        TypeKind::Float => {
            let floats = [0.0, -0.0, 1.0, -1.0, 0.5, 2.5, -3.75, 1e-310, 1e18, 1e19, -1e300];
            let ends = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN];
            floats.into_iter().chain(ends).map(Value::Float).collect()
        }
        _ => vec![Value::Bool(false), Value::Bool(true)],
    }
}

fn bits(value: &Value) -> String {
    match value {
        Value::Float(x) if x.is_nan() => "nan".into(),
        Value::Float(x) => format!("{:x}", x.to_bits()),
        other => format!("{other:?}"),
    }
}

/// All choices of one value of each list.
fn choices(lists: &[Vec<Value>]) -> Vec<Vec<Value>> {
    lists.iter().fold(vec![vec![]], |all, list| {
        all.iter()
            .flat_map(|head| list.iter().map(|v| [&head[..], std::slice::from_ref(v)].concat()))
            .collect()
    })
}

#[test]
fn kernels_agree_with_rows() {
    let registry = Registry::builtin();
    let engines: Vec<_> = ["interp", "llvm"].iter().filter_map(|name| by_name(name).ok()).collect();
    let (mut lowered_rows, mut done, mut left) = (0, 0u64, 0u64);
    for row in registry.iter() {
        let Some((graph, op)) = program(row) else { continue };
        let Ok(lowered) = scalars::lower(&registry, &graph, op) else { continue };
        lowered_rows += 1;
        let arguments = &row.schema().expect("valid").arguments;
        let lists: Vec<Vec<Value>> = arguments.iter().map(|a| numbers(a.ty.kind())).collect();
        let kernels: Vec<ScalarKernel> = engines
            .iter()
            .map(|engine| {
                let counters = Arc::new(FusionCounters::default());
                ScalarKernel::new("k".into(), lowered.clone(), Some(Arc::clone(engine)), counters)
            })
            .collect();
        let old = numbers(row.schema().expect("valid").returns[0].ty.kind())[0].clone();
        for given in choices(&lists) {
            let node = Node { attrs: &[], result_types: &[] };
            let expected = eval::call(row, &given, node, &Run::silent());
            let position = |v| graph.inputs().iter().position(|input| input == v).expect("an input");
            let outer: Vec<Value> = lowered.outer.iter().map(|(v, _)| given[position(v)].clone()).collect();
            let rest = RemainingLoop {
                trips: 1,
                trip: 0,
                goes_on: true,
                carried: std::slice::from_ref(&old),
                outer: &outer,
                lists: &[],
            };
            for (kernel, engine) in kernels.iter().zip(&engines) {
                let what = format!("{} of {given:?} on {}", row.schema_text(), engine.name());
                match (kernel.run(&rest).unwrap_or_else(|e| panic!("{what}: {e}")), &expected) {
                    (Some(values), Ok(expected)) => {
                        assert_eq!(bits(&values[0]), bits(&expected[0]), "{what}");
                        done += 1;
                    }
                    (Some(values), Err(error)) => {
                        panic!("{what} gives {values:?}, and the row raises {error}")
                    }
                    (None, Ok(_)) => left += 1,
                    (None, Err(_)) => {}
                }
            }
        }
    }
    assert!(lowered_rows >= 90, "{lowered_rows} rows have kernels");
    assert!(left * 10 < done, "{left} calls that do not raise were left to the interpreter, {done} were not");
}
