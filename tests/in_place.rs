//! Every op that writes its first argument, under the default pipeline and without passes: the same answer, written to the same
//! tensor, or the same error. The written tensor is made in the graph, so that passes may remove the write.

use flambeau::dialects::{Op, Registry, Run};
use flambeau::ir::{Argument, TypeKind};
use flambeau::runtime::Program;
use flambeau::toolkit::Toolkit;
use flambeau::tools::case;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

/// Values of numbers and dtypes of tensors that are tried in turn.
const TRIES: usize = 4;

/// The one trial.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("in_place::every_op_is_the_same_with_passes", every_op)]
}

fn every_op() -> Result<(), Failed> {
    let registry = Registry::builtin();
    let (mut wrong, mut answers, mut ops) = (Vec::new(), 0, 0);
    for op in registry.iter().filter(writes_first) {
        ops += 1;
        let mut answered = false;
        for n in 0..TRIES {
            let Some(text) = program(op, n) else { break };
            let (plain, passed) = (outcome(&text, ""), outcome(&text, "default"));
            answered |= plain.is_ok();
            if plain != passed {
                wrong.push(format!("{}:\n{text}gives {passed:?}\nnot {plain:?}", op.schema_text()));
                break;
            }
        }
        answers += usize::from(answered);
    }
    if !wrong.is_empty() {
        return Err(format!("{} of {ops} ops differ:\n{}", wrong.len(), wrong.join("\n")).into());
    }
    // Most must give an answer with the arguments that are made up here; the others raise the same error.
    if answers * 2 < ops {
        return Err(format!("only {answers} of {ops} ops gave an answer").into());
    }
    Ok(())
}

fn writes_first(op: &&Op) -> bool {
    let Ok(schema) = op.schema() else { return false };
    let first = schema.arguments.first();
    let written = first.and_then(|a| a.alias.as_ref()).is_some_and(|a| a.is_write);
    written && op.is_built() && first.is_some_and(|a| a.ty.is_tensor())
}

/// A graph that makes a tensor, has the op write it and gives both. None where a value for an argument is not known.
fn program(op: &Op, n: usize) -> Option<String> {
    let schema = op.schema().ok()?;
    let mut constants = String::from("  %none : NoneType = prim::Constant()\n");
    let mut operands = vec!["%a".to_string()];
    for (at, argument) in schema.arguments.iter().enumerate().skip(1) {
        let Some((ty, value)) = value(argument, n) else {
            operands.push(if argument.ty.is_tensor() { "%y".into() } else { "%none".into() });
            if !argument.ty.is_tensor() && !matches!(argument.ty.kind(), TypeKind::Optional(_)) {
                return None;
            }
            continue;
        };
        let _ = writeln!(constants, "  %c{at} : {ty} = prim::Constant[value={value}]()");
        operands.push(format!("%c{at}"));
    }
    let results: Vec<String> =
        schema.returns.iter().enumerate().map(|(n, r)| format!("%r{n} : {}", r.ty)).collect();
    if schema.returns.iter().any(|r| !r.ty.is_tensor()) || schema.is_varret {
        return None;
    }
    let given: String = (0..results.len()).map(|n| format!(", %r{n}")).collect();
    let equals = if results.is_empty() { " = ".to_string() } else { format!("{} = ", results.join(", ")) };
    Some(format!(
        "graph(%x : Tensor, %y : Tensor):\n{constants}  %a : Tensor = aten::clone(%x, %none)\n  {equals}{}({})\n  return \
         (%a{given})\n",
        op.name(),
        operands.join(", ")
    ))
}

/// Type and text of a constant for an argument; None for tensors and for what is left out.
fn value(argument: &Argument, n: usize) -> Option<(&'static str, &'static str)> {
    Some(match argument.ty.kind() {
        // Dimensions that the tensors have: where an op raises, the contract of rules lets a rule leave it out.
        TypeKind::Int if argument.name.as_str() == "dim1" => ("int", ["1", "0", "0", "1"][n]),
        TypeKind::Int if argument.name.as_str().starts_with("dim") => ("int", ["0", "1", "0", "1"][n]),
        TypeKind::Int => ("int", ["0", "1", "2", "1"][n]),
        TypeKind::Float => ("float", ["0.5", "1.", "0.25", "2."][n]),
        TypeKind::Bool => ("bool", ["0", "0", "1", "1"][n]),
        TypeKind::Number if n.is_multiple_of(2) => ("int", ["2", "1", "3", "0"][n]),
        TypeKind::Number => ("float", ["0.5", "0.5", "0.5", "1.5"][n]),
        TypeKind::Str => ("str", ["\"sum\"", "\"trunc\"", "\"floor\"", "\"none\""][n]),
        TypeKind::List(inner) if matches!(inner.kind(), TypeKind::Int) => {
            ("int[]", ["[2, 3]", "[3, 2]", "[6]", "[4, 3]"][n])
        }
        _ => return None,
    })
}

/// What the program gives, as text, or what it raises.
fn outcome(text: &str, pipeline: &str) -> Result<String, String> {
    let run = Run::silent();
    run.seed(0);
    run.set_grad_enabled(false);
    let named = |error: flambeau::diag::Diagnostic| {
        format!("{} {}", error.report().class.as_deref().unwrap_or(""), error.message())
    };
    let program: Program = Toolkit::default().load_graph("graph", text, "f").map_err(named)?;
    let passes = Toolkit::default().parse_pipeline(pipeline).map_err(named)?;
    let program =
        program.transformed(|module, registry| passes.run(module, registry).map(|_| ())).map_err(named)?;
    let x =
        flambeau::tensor::Tensor::from_vec(&[0.5f32, -1.5, 2.0, 0.25, 1.0, -0.75], &[2, 3]).map_err(named)?;
    let y =
        flambeau::tensor::Tensor::from_vec(&[0.75f32, 0.5, 0.25, 1.5, 2.0, 0.5], &[2, 3]).map_err(named)?;
    let value = program.run("f", vec![x.into(), y.into()], &run).map_err(named)?;
    let shared = shares(&value);
    Ok(format!("{:?} {shared}", case::encode(&value).map_err(|e| e.message().to_string())))
}

/// Which tensors of the answer are one.
fn shares(value: &Value) -> String {
    let Value::Tuple(items) = value else { return String::new() };
    let tensors: Vec<_> = items.items().iter().filter_map(|v| v.to_tensor().ok().cloned()).collect();
    let same = |a: usize, b: usize| tensors[a].storage().same(&tensors[b].storage());
    (1..tensors.len()).map(|n| if same(0, n) { '=' } else { '.' }).collect()
}
