//! Every op that writes its first argument, under the default pipeline and without passes: the same answer, written to the same
//! tensor, or the same error. The written tensor is made in the graph, so that passes may remove the write. Arguments are made up
//! by the names and types of schemas, so that nearly every op gives an answer; the others are listed.

use flambeau::diag::Diagnostic;
use flambeau::dialects::{Op, Registry, Run};
use flambeau::ir::{Argument, Type, TypeKind};
use flambeau::runtime::Program;
use flambeau::tensor::{DType, Tensor};
use flambeau::toolkit::Toolkit;
use flambeau::tools::case;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::fmt::Write;

/// Dtypes of the written tensor that are tried one by one, each with other numbers.
const TRIES: [DType; 6] = [DType::F32, DType::I64, DType::F32, DType::Bool, DType::F64, DType::I32];

/// Ops that give no answer for any arguments of this test, and why.
const UNANSWERED: &[(&str, &str)] = &[
    ("aten::retain_grad", "takes tensors that require grad, which the writes of this test do not follow"),
    (
        "mkldnn::_convolution_pointwise_.binary",
        "takes images, windows and names; `tests/programs/mkldnn.py` calls it",
    ),
];

/// The one trial.
pub fn trials() -> Vec<Trial> {
    vec![Trial::test("in_place::every_op_is_the_same_with_passes", every_op)]
}

fn every_op() -> Result<(), Failed> {
    let registry = Registry::builtin();
    let (mut wrong, mut unanswered, mut ops) = (Vec::new(), Vec::new(), 0);
    for op in registry.iter().filter(writes_first) {
        ops += 1;
        let (mut answered, mut reasons) = (false, Vec::new());
        for n in 0..TRIES.len() {
            let Some(call) = Call::new(op, n) else { break };
            let text = call.text();
            let (plain, passed) = (call.outcome(&text, ""), call.outcome(&text, "default"));
            if plain != passed {
                wrong.push(format!("{}:\n{text}gives {passed:?}\nnot {plain:?}", op.schema_text()));
                break;
            }
            answered |= plain.is_ok();
            reasons.extend(plain.err());
        }
        if !answered {
            unanswered.push((op.full_name(), reasons));
        }
    }
    if !wrong.is_empty() {
        return Err(format!("{} of {ops} ops differ:\n{}", wrong.len(), wrong.join("\n")).into());
    }
    let names: Vec<&str> = unanswered.iter().map(|(name, _)| *name).collect();
    if let Some((gone, _)) = UNANSWERED.iter().find(|(name, _)| !names.contains(name)) {
        return Err(format!("{gone} gives an answer now").into());
    }
    unanswered.retain(|(name, _)| !UNANSWERED.iter().any(|(known, _)| known == name));
    let listed: Vec<String> = unanswered.iter().map(|(name, why)| format!("{name}: {why:?}")).collect();
    if !listed.is_empty() || ops < 200 {
        return Err(format!("{} of {ops} ops gave no answer:\n{}", listed.len(), listed.join("\n")).into());
    }
    Ok(())
}

fn writes_first(op: &&Op) -> bool {
    let Ok(schema) = op.schema() else { return false };
    let first = schema.arguments.first();
    let written = first.and_then(|a| a.alias.as_ref()).is_some_and(|a| a.is_write);
    written && op.is_built() && first.is_some_and(|a| a.ty.is_tensor())
}

/// An op with arguments for it.
struct Call<'a> {
    op: &'a Op,
    /// Constants, and the names of operands after the first.
    constants: String,
    operands: Vec<String>,
    /// Inputs of the graph, the first of which is written.
    inputs: Vec<Tensor>,
}

impl<'a> Call<'a> {
    /// None where a value for an argument is not known.
    fn new(op: &'a Op, n: usize) -> Option<Call<'a>> {
        let schema = op.schema().ok()?;
        let (base, dtype) = (op.name().base(), TRIES[n]);
        let first = tensor(base, "self", dtype, n);
        let mut call = Call { op, constants: String::new(), operands: Vec::new(), inputs: vec![first] };
        for (at, argument) in schema.arguments.iter().enumerate().skip(1) {
            let operand = call.operand(argument, base, at, n)?;
            call.operands.push(operand);
        }
        let tensors = schema.returns.iter().all(|r| r.ty.is_tensor()) && !schema.is_varret;
        tensors.then_some(call)
    }

    fn operand(&mut self, argument: &Argument, base: &str, at: usize, n: usize) -> Option<String> {
        let (name, dtype) = (argument.name.as_str(), TRIES[n]);
        let ty = match argument.ty.kind() {
            // Both are left out in every second try; bounds of `clamp_` must not be.
            TypeKind::Optional(inner) if n % 2 == 1 || ["min", "max"].contains(&name) => inner,
            TypeKind::Optional(_) => return Some("%none".into()),
            _ => &argument.ty,
        };
        if ty.is_tensor() {
            self.inputs.push(tensor(base, name, dtype, n));
            return Some(format!("%x{}", self.inputs.len() - 1));
        }
        if let TypeKind::List(inner) = ty.kind()
            && inner.without_none().is_tensor()
        {
            self.inputs.push(tensor(base, name, dtype, n));
            let part = self.inputs.len() - 1;
            let _ = writeln!(self.constants, "  %c{at} : {ty} = prim::ListConstruct(%x{part})");
            return Some(format!("%c{at}"));
        }
        let Some((ty, value)) = value(ty, name, base, n) else {
            return matches!(argument.ty.kind(), TypeKind::Optional(_)).then(|| "%none".to_string());
        };
        let _ = writeln!(self.constants, "  %c{at} : {ty} = prim::Constant[value={value}]()");
        Some(format!("%c{at}"))
    }

    /// A graph that makes a tensor, has the op write it and gives both.
    fn text(&self) -> String {
        let returns = self.op.schema().map(|s| s.returns.len()).unwrap_or(0);
        let results: Vec<String> = (0..returns).map(|n| format!("%r{n} : Tensor")).collect();
        let given: String = (0..returns).map(|n| format!(", %r{n}")).collect();
        let inputs: Vec<String> = (0..self.inputs.len()).map(|n| format!("%x{n} : Tensor")).collect();
        let operands: String = self.operands.iter().map(|name| format!(", {name}")).collect();
        format!(
            "graph({}):\n  %none : NoneType = prim::Constant()\n{}  %a : Tensor = aten::clone(%x0, %none)\n  {} = \
             {}(%a{operands})\n  return (%a{given})\n",
            inputs.join(", "),
            self.constants,
            results.join(", "),
            self.op.name()
        )
    }

    /// What the program gives, as text, or what it raises.
    fn outcome(&self, text: &str, pipeline: &str) -> Result<String, String> {
        let run = Run::silent();
        run.seed(0);
        run.set_grad_enabled(false);
        let named = |error: Diagnostic| {
            format!("{} {}", error.report().class.as_deref().unwrap_or(""), error.message())
        };
        let program: Program = Toolkit::default().load_graph("graph", text, "f").map_err(named)?;
        let passes = Toolkit::default().parse_pipeline(pipeline).map_err(named)?;
        let program = program
            .transformed(|module, registry| passes.run(module, registry).map(|_| ()))
            .map_err(named)?;
        // Each run has memory of its own: `set_` and its kind let results look at an argument's.
        let inputs = self.inputs.iter().map(|t| t.copy().map(Value::Tensor));
        let inputs = inputs.collect::<flambeau::diag::Result<Vec<_>>>().map_err(named)?;
        let value = program.run("f", inputs, &run).map_err(named)?;
        let shared = shares(&value);
        Ok(format!("{:?} {shared}", case::encode(&value).map_err(|e| e.message().to_string())))
    }
}

/// Sizes and numbers of a tensor for an argument: indices where the name says so, factors that fit each other for products,
/// and else what has the sizes of the tensor that is written.
fn tensor(base: &str, name: &str, dtype: DType, n: usize) -> Tensor {
    const WHOLE: &[i64] = &[2, 3];
    let (sizes, dtype): (&[i64], DType) = match (base, name) {
        (b, "index") if b.starts_with("scatter") => (WHOLE, DType::I64),
        (_, "index" | "indices") => (&[2], DType::I64),
        (_, "mask") => (WHOLE, DType::Bool),
        ("put_", "source") => (&[2], dtype),
        ("fill_" | "index_fill_" | "masked_fill_", "value") => (&[], dtype),
        ("addmv_", "self") => (&[2], dtype),
        ("baddbmm_", "self") => (&[4, 2, 3], dtype),
        ("dropout_" | "feature_dropout_" | "feature_alpha_dropout_", "self") => (&[4, 2, 3], dtype),
        (_, "mat1") => (&[2, 2], dtype),
        (_, "mat2" | "mat") => (WHOLE, dtype),
        (_, "vec" | "vec2") => (&[3], dtype),
        (_, "vec1") => (&[2], dtype),
        (_, "batch1") => (&[4, 2, 2], dtype),
        (_, "batch2") => (&[4, 2, 3], dtype),
        (_, "p") => (WHOLE, DType::F64),
        _ => (WHOLE, dtype),
    };
    let count: i64 = sizes.iter().product();
    let written = [0.5, -1.5, 2.0, 0.25, 1.0, -0.75];
    let other = [0.75, 0.5, 0.25, 1.5, 2.0, 0.5];
    let number = |at: usize| match (name, dtype) {
        ("index" | "indices", _) => [1.0, 0.0][at % 2],
        ("mask", _) => (at % 3) as f64,
        ("p", _) => [0.5, 0.0, 1.0][at % 3],
        // What is positive, as logarithms and gammas ask; and small numbers to shift and divide by.
        (_, DType::F64) => other[at % 6] + 2.0,
        ("self", DType::I64 | DType::I32) => [3.0, -4.0, 7.0, 0.0, 12.0, 6.0][at % 6],
        (_, DType::I64 | DType::I32) => [1.0, 2.0, 3.0, 1.0, 4.0, 2.0][(at + n) % 6],
        ("self", _) => written[at % 6],
        _ => other[at % 6],
    };
    let numbers: Vec<f64> = (0..count as usize).map(number).collect();
    Tensor::from_vec(&numbers, sizes).and_then(|t| t.to_dtype(dtype)).expect("a small tensor")
}

/// Type and text of a constant for an argument.
fn value(ty: &Type, name: &str, base: &str, n: usize) -> Option<(&'static str, &'static str)> {
    let of = |words: &[&'static str]| words[n % words.len()];
    Some(match (ty.kind(), name) {
        // Dimensions that the tensors have: where an op raises, the contract of rules lets a rule leave it out.
        (TypeKind::Int, "dim1" | "axis1") => ("int", of(&["1", "0", "0", "1"])),
        (TypeKind::Int, "dim") if base.starts_with("index_") => ("int", "0"),
        (TypeKind::Int, _) if name.starts_with("dim") => ("int", of(&["0", "1", "0", "1"])),
        (TypeKind::Int, "p") => ("int", of(&["1", "2", "3"])),
        (TypeKind::Int, "to") => ("int", of(&["5", "9", "2"])),
        (TypeKind::Int, "from") => ("int", of(&["0", "1", "-3"])),
        (TypeKind::Int | TypeKind::SymInt, "storage_offset") => ("int", of(&["0", "1"])),
        (TypeKind::ScalarType, _) => ("int", of(&["6", "7", "6", "11"])),
        (TypeKind::MemoryFormat, _) => ("int", "0"),
        (TypeKind::Int | TypeKind::SymInt, _) => ("int", of(&["0", "1", "2", "1"])),
        (TypeKind::Float, "to") => ("float", of(&["1.", "3.", "2."])),
        (TypeKind::Float, "p") if base == "geometric_" => ("float", of(&["0.5", "0.25"])),
        (TypeKind::Float, _) => ("float", of(&["0.5", "1.", "0.25", "2.", "0.5"])),
        (TypeKind::Bool, _) => ("bool", of(&["0", "0", "1", "1"])),
        (TypeKind::Number, _) if TRIES[n].is_floating() && n % 4 == 2 => ("float", "0.5"),
        (TypeKind::Number, _) => ("int", of(&["2", "1", "3", "1"])),
        (TypeKind::Str, "reduce") if base == "scatter_" => ("str", of(&["\"add\"", "\"multiply\""])),
        (TypeKind::Str, "reduce") => {
            ("str", of(&["\"prod\"", "\"mean\"", "\"amax\"", "\"amin\"", "\"sum\""]))
        }
        (TypeKind::Str, "approximate") => ("str", of(&["\"none\"", "\"tanh\"", "\"tanh\""])),
        (TypeKind::Str, _) => ("str", of(&["\"trunc\"", "\"floor\""])),
        (TypeKind::List(inner), _) if matches!(inner.kind(), TypeKind::Int | TypeKind::SymInt) => {
            let sizes = ["[2, 3]", "[3, 2]", "[6]", "[4, 3]"];
            let strides = ["[3, 1]", "[1, 3]", "[1]", "[0, 1]"];
            match name {
                "stride" => ("int[]", of(&strides)),
                "dim" | "dims" => ("int[]", of(&["[0]", "[0, 1]"])),
                _ => ("int[]", of(&sizes)),
            }
        }
        _ => return None,
    })
}

/// Which tensors of the answer are one.
fn shares(value: &Value) -> String {
    let Value::Tuple(items) = value else { return String::new() };
    let tensors: Vec<_> = items.items().iter().filter_map(|v| v.to_tensor().ok().cloned()).collect();
    let same = |a: usize, b: usize| tensors[a].storage().same(&tensors[b].storage());
    (1..tensors.len()).map(|n| if same(0, n) { '=' } else { '.' }).collect()
}
