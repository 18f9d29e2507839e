//! Fusion over random graphs whose ops have up to three operands: the graph stays valid, whatever groups are joined, and
//! gives what it gave; and refusals that the recorded cases do not expect.

use flambeau::dialects::{Laws, Registry, Run, Strictness};
use flambeau::ir::verify_graph;
use flambeau::tensor::{DType, Tensor};
use flambeau::toolkit::Toolkit;
use flambeau::tools::case::Case;
use flambeau::tools::{case, check};
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

/// Random graphs.
const GRAPHS: u64 = 600;
/// Number of each that are run, too.
const RUN_EVERY: u64 = 6;

/// Reasons to run op by op that recorded cases may have, by a part of them, and why each is right.
const EXPECTED: &[(&str, &str)] = &[
    ("the call raises: ", "the program raises; a test below asks that it does"),
    ("an input requires grad", "small work that autograd follows is recorded op by op"),
    ("fused kernels do not compute with dtype", "complex numbers, and dtypes that only some ops take"),
    ("fused kernels do not compute with complex numbers", "complex numbers stay out of fusion"),
    ("fused kernels take no inputs of type", "a value of type Any or Optional may be None or text"),
    ("a fused chunk of size", "parts that are not equal are views of different sizes"),
    ("it needs all dimensions, of whole inputs", "extremes of some dimensions, or of views"),
    ("a fused reduction", "rows that do not lie along the last dimensions, or are empty"),
    ("powers of integers in compiled kernels", "integer powers raise on negative exponents"),
    ("cannot be fused: it raises", "a number that does not fit; asked below that the program raises"),
    ("something writes to what its backward would read", "the tape looks at versions, op by op"),
    ("cannot be fused: it may raise", "a division of integers raises for some elements, a kernel cannot"),
];

/// The trials.
pub fn trials() -> Vec<Trial> {
    vec![
        Trial::test("fusion::random_graphs_stay_valid", random_graphs),
        Trial::test("fusion::refusals_are_expected", refusals),
        Trial::test("fusion::gradients_are_followed", gradients),
    ]
}

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
}

/// A graph over square matrices: elementwise work of one to three operands, with ops between that cannot be fused.
fn graph(seed: u64) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9).wrapping_add(17));
    let mut body = String::new();
    let mut all: Vec<String> = vec!["x".into(), "y".into()];
    let mut truths: Vec<String> = Vec::new();
    let count = 4 + random.below(12);
    for n in 0..count {
        let mut one = || all[all.len() - 1 - random.below(all.len().min(4))].clone();
        let (a, b, c) = (one(), one(), one());
        if random.below(4) == 0 {
            let _ = writeln!(body, "  %m{n} : Tensor = aten::gt(%{a}, %{b})");
            truths.push(format!("m{n}"));
            continue;
        }
        let truth = truths.get(random.below(truths.len())).cloned();
        let right = match (random.below(11), truth) {
            (0..=2, Some(m)) => format!("aten::where(%{m}, %{a}, %{b})"),
            (0..=2, None) => format!("aten::relu(%{a})"),
            (3, _) => format!("aten::addcmul(%{a}, %{b}, %{c}, %half)"),
            (4, _) => format!("aten::lerp(%{a}, %{b}, %half)"),
            (5, _) => format!("aten::matmul(%{a}, %{b})"),
            (6, _) => format!("aten::cumsum(%{a}, %zero, %none)"),
            (7, _) => format!("aten::softmax(%{a}, %last, %none)"),
            (8, _) => format!("aten::clamp(%{a}, %half, %none)"),
            (9, _) => format!("aten::mul(%{a}, %{b})"),
            _ => format!("aten::tanh(%{a})"),
        };
        let _ = writeln!(body, "  %v{n} : Tensor = {right}");
        all.push(format!("v{n}"));
    }
    let used: Vec<String> = all.iter().rev().take(3).map(|name| format!("%{name}")).collect();
    format!(
        "graph(%x : Tensor, %y : Tensor):\n  %none : NoneType = prim::Constant()\n  %half : float = \
         prim::Constant[value=0.5]()\n  %zero : int = prim::Constant[value=0]()\n  %last : int = \
         prim::Constant[value=-1]()\n{body}  return ({})\n",
        used.join(", ")
    )
}

fn random_graphs() -> Result<(), Failed> {
    let registry = Registry::builtin();
    let passes = Toolkit::default().parse_pipeline("fuse").map_err(|e| e.to_string())?;
    let (mut fused, mut runs, mut answers) = (0, 0, 0);
    for seed in 0..GRAPHS {
        let text = graph(seed);
        let plain = Toolkit::default().load_graph("graph", &text, "f").map_err(|e| format!("{e}\n{text}"))?;
        let mut changed = false;
        let better = plain.transformed(|module, registry| {
            changed = passes.run(module, registry)?;
            Ok(())
        });
        let better = better.map_err(|e| format!("seed {seed}: {e}\n{text}"))?;
        fused += u64::from(changed);
        let function = better.function("f").ok_or("no function")?;
        let found = verify_graph(&function.graph, &Laws::new(&registry, Strictness::Ops), None);
        if let Some(first) = found.first() {
            return Err(format!("seed {seed}: {first}\n{text}becomes\n{}", function.graph).into());
        }
        if seed.is_multiple_of(RUN_EVERY) {
            let of = &OPERANDS[runs % OPERANDS.len()];
            runs += 1;
            let (want, got) = match (answer(&plain, of), answer(&better, of)) {
                (Ok(want), Ok(got)) => (want, got),
                // What does not fit each other raises either way.
                (Err(_), Err(_)) => continue,
                (want, got) => {
                    return Err(format!("seed {seed}, {of:?}: {want:?} and {got:?}\n{text}").into());
                }
            };
            answers += 1;
            case::compare(&case::encode(&want).map_err(|e| e.to_string())?, &got, Default::default())
                .map_err(|e| format!("seed {seed}, {of:?}: {e}\n{text}"))?;
            let report = better.fusion_report();
            if of.0 == DType::F32 && changed && report.fused_calls == 0 {
                return Err(format!("seed {seed}: nothing ran fused: {report:?}\n{text}").into());
            }
        }
    }
    if fused * 2 < GRAPHS {
        return Err(format!("only {fused} of {GRAPHS} graphs were fused").into());
    }
    if answers * 2 < runs {
        return Err(format!("only {answers} of {runs} runs gave an answer").into());
    }
    Ok(())
}

/// Dtypes and sizes of the two operands that are tried one by one.
const OPERANDS: &[(DType, DType, &[i64], &[i64])] = &[
    (DType::F32, DType::F32, &[4, 4], &[4, 4]),
    (DType::F64, DType::F64, &[4, 4], &[4, 4]),
    (DType::F32, DType::F32, &[4, 4], &[1, 4]),
    (DType::F16, DType::F16, &[4, 4], &[4, 4]),
    (DType::F32, DType::F64, &[17, 17], &[17, 17]),
    (DType::BF16, DType::BF16, &[5, 5], &[5, 5]),
    (DType::F32, DType::F32, &[2, 3, 3], &[3, 3]),
    (DType::I64, DType::F32, &[4, 4], &[4, 4]),
    (DType::F32, DType::F32, &[1, 1], &[1, 1]),
    (DType::F32, DType::F32, &[0, 4], &[4, 4]),
    (DType::F16, DType::F32, &[4, 4], &[]),
    (DType::I64, DType::I32, &[3, 3], &[3, 3]),
    (DType::U8, DType::F32, &[3, 3], &[3, 1]),
    (DType::F32, DType::Bool, &[4, 4], &[4, 4]),
];

/// The answer for operands of such dtypes and sizes; some of their numbers are NaN, infinite or -0.
fn answer(
    program: &flambeau::runtime::Program,
    (x, y, x_sizes, y_sizes): &(DType, DType, &[i64], &[i64]),
) -> Result<Value, String> {
    let run = Run::silent();
    run.set_grad_enabled(false);
    let tensor = |dtype: DType, sizes: &[i64], step: i64| {
        let number = |n: i64| match n % 29 {
            19 if dtype.is_floating() => f64::NAN,
            23 if dtype.is_floating() => f64::INFINITY,
            27 => -0.0,
            _ => (n * step % 16) as f64 / 8.0 - if dtype == DType::U8 { 0.0 } else { 1.0 },
        };
        let numbers: Vec<f64> = (0..sizes.iter().product()).map(number).collect();
        let tensor = Tensor::from_vec(&numbers, sizes).and_then(|t| t.to_dtype(dtype));
        tensor.map(Value::Tensor).map_err(|e| e.to_string())
    };
    program.run("f", vec![tensor(*x, x_sizes, 7)?, tensor(*y, y_sizes, 5)?], &run).map_err(|e| e.to_string())
}

/// All recorded cases with passes: what runs op by op does so for a reason that is listed, and most calls run fused.
fn refusals() -> Result<(), Failed> {
    let configuration =
        check::Configuration::with_passes(&Toolkit::default(), "default").map_err(|e| e.to_string())?;
    let (mut fused, mut unexpected) = (0, BTreeMap::new());
    let mut files: Vec<_> = std::fs::read_dir("tests/golden")?.flatten().map(|e| e.path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "jsonl") && !path.ends_with("passes.jsonl"));
    files.sort();
    for file in &files {
        let cases = Case::read_all(Path::new(file)).map_err(|e| e.to_string())?;
        // Samples of operators are many, and alike.
        let step = if file.ends_with("ops.jsonl") { 5 } else { 1 };
        for case in cases.into_iter().step_by(step) {
            for outcome in check::check_case_with(&case, None, &configuration) {
                fused += outcome.fusion.fused_calls;
                for reason in outcome.fusion.op_by_op.keys() {
                    let listed = EXPECTED.iter().any(|(part, _)| reason.contains(part));
                    let is_said =
                        reason.starts_with("the call raises: ") || reason.contains("fused: it raises");
                    let raises = !is_said || outcome.raises.is_some();
                    if !listed || !raises {
                        unexpected.entry(reason.clone()).or_insert_with(|| case.name.clone());
                    }
                }
            }
        }
    }
    if !unexpected.is_empty() {
        let list: Vec<String> = unexpected.iter().map(|(why, case)| format!("{case}: {why}")).collect();
        return Err(format!("groups run op by op:\n  {}", list.join("\n  ")).into());
    }
    if fused < 100 {
        return Err(format!("only {fused} calls ran fused").into());
    }
    Ok(())
}

/// What requires grad runs op by op and is followed, under the default pipeline as without passes; under no_grad it is not.
fn gradients() -> Result<(), Failed> {
    let text = "\
def f(a):
    y = (a * 2).tanh() * 3 + 1
    z = (a.detach() * 2).tanh() + 1
    w = (a > 0).to(torch.int32) * 2 + 1
    return y, [y.requires_grad, z.requires_grad, w.requires_grad, y.is_leaf, z.is_leaf]
";
    for (pipeline, grad) in [("", true), ("default", true), ("", false), ("default", false)] {
        let passes = Toolkit::default().parse_pipeline(pipeline).map_err(|e| e.to_string())?;
        let program = Toolkit::default()
            .load_source("<string>", text)
            .and_then(|p| p.transformed(|module, registry| passes.run(module, registry).map(|_| ())))
            .map_err(|e| e.to_string())?;
        let run = Run::silent();
        run.set_grad_enabled(grad);
        let a = Tensor::from_vec(&[0.5f32, -1.0], &[2]).map_err(|e| e.to_string())?;
        a.set_requires_grad(true).map_err(|e| e.to_string())?;
        let value = program.run("f", vec![a.into()], &run).map_err(|e| e.to_string())?;
        let Value::Tuple(parts) = value else { return Err("no tuple".into()) };
        let y = parts.items()[0].to_tensor().map_err(|e| e.to_string())?.clone();
        let seen = parts.items()[1].to_text();
        let want =
            if grad { "[True, False, False, False, True]" } else { "[False, False, False, True, True]" };
        if seen != want || y.requires_grad() != grad {
            return Err(format!("passes '{pipeline}', grad mode {grad}: {seen}, not {want}").into());
        }
        let report = program.fusion_report();
        let by_grad = report.op_by_op.get("an input requires grad, and all are small").copied().unwrap_or(0);
        if pipeline == "default" && (by_grad > 0) != grad {
            return Err(format!("grad mode {grad}: {report:?}").into());
        }
    }
    Ok(())
}
