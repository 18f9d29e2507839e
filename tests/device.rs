//! Programs on a device with memory of its own, `apart`, which stands in for a GPU: answers, layouts and what crosses the border.

use flambeau::backends::{Apart, Backend, FusionReport};
use flambeau::dialects::Run;
use flambeau::runtime::Program;
use flambeau::tensor::{DType, Tensor};
use flambeau::toolkit::Toolkit;
use flambeau::value::Value;
use libtest_mimic::{Failed, Trial};
use std::sync::Arc;

pub fn trials() -> Vec<Trial> {
    let cases = CASES.iter().map(|case| Trial::test(format!("device::{}", case.name), || run_case(case)));
    cases
        .chain([
            Trial::test("device::tensors_stay_there", tensors_stay_there),
            Trial::test("device::each_way_home_is_counted", each_way_home_is_counted),
            Trial::test("device::writes_of_the_host_are_seen", writes_of_the_host_are_seen),
            Trial::test("device::calls_are_recorded_and_run_again", calls_are_recorded),
            Trial::test("device::what_does_more_is_not_recorded", what_does_more),
            Trial::test("device::threads_share_recorded_work", threads_share_recorded_work),
            Trial::test("device::gradients_are_those_of_the_host", gradients_are_those_of_the_host),
        ])
        .collect()
}

/// A function of tensors with such sizes, and the number of its ops that go to a library of the device.
struct Case {
    name: &'static str,
    body: &'static str,
    sizes: &'static [&'static [i64]],
    by_library: u64,
}

const fn case(
    name: &'static str,
    body: &'static str,
    sizes: &'static [&'static [i64]],
    by_library: u64,
) -> Case {
    Case { name, body, sizes, by_library }
}

/// Operands are negated first, so that they are on the device.
const CASES: &[Case] = &[
    case("mm", "torch.mm(a, b)", &[&[3, 4], &[4, 5]], 1),
    case("mm_of_transposed", "torch.mm(a.t(), b.t())", &[&[4, 3], &[5, 4]], 1),
    case("mm_of_strided", "torch.mm(a[:, ::2], b)", &[&[3, 8], &[4, 5]], 1),
    case("mm_of_one_row", "torch.mm(a, b)", &[&[1, 4], &[4, 1]], 1),
    case("bmm", "torch.bmm(a, b)", &[&[6, 3, 4], &[6, 4, 5]], 1),
    case(
        "bmm_of_permuted",
        "torch.bmm(a.permute(1, 0, 2), b.permute(1, 2, 0))",
        &[&[3, 6, 4], &[5, 6, 4]],
        1,
    ),
    case("matmul_of_a_batch_and_a_matrix", "torch.matmul(a, b)", &[&[2, 3, 4], &[4, 5]], 1),
    case("matmul_broadcast", "torch.matmul(a, b)", &[&[2, 1, 3, 4], &[5, 4, 2]], 1),
    case(
        "matmul_of_heads",
        "torch.matmul(a.transpose(1, 2), b.permute(0, 2, 3, 1))",
        &[&[2, 5, 3, 4], &[2, 6, 3, 4]],
        1,
    ),
    case("linear", "torch.nn.functional.linear(a, b, c)", &[&[2, 3, 4], &[5, 4], &[5]], 1),
    case(
        "linear_of_permuted",
        "torch.nn.functional.linear(a.permute(0, 2, 1), b)",
        &[&[2, 4, 3], &[5, 4]],
        1,
    ),
    case("addmm_of_a_row", "torch.addmm(c, a, b)", &[&[3, 4], &[4, 5], &[5]], 1),
    case("addmm_of_a_matrix", "torch.addmm(c, a, b)", &[&[3, 4], &[4, 5], &[3, 5]], 0),
    case("conv1d", "torch.conv1d(a, b, c, [2], [1], [2])", &[&[2, 4, 9], &[6, 4, 3], &[6]], 1),
    case("conv2d", "torch.conv2d(a, b, c, [2, 1], [1, 2])", &[&[2, 4, 7, 6], &[6, 4, 3, 2], &[6]], 1),
    case(
        "conv2d_of_groups",
        "torch.conv2d(a, b, None, [1, 1], [1, 1], [1, 1], 2)",
        &[&[2, 4, 5, 5], &[6, 2, 3, 3]],
        1,
    ),
    case("conv2d_same", "torch.conv2d(a, b, None, [1, 1], 'same')", &[&[1, 2, 5, 5], &[3, 2, 3, 3]], 1),
    case(
        "conv2d_same_of_two_widths",
        "torch.conv2d(a, b, None, [1, 1], 'same')",
        &[&[1, 2, 5, 5], &[3, 2, 2, 2]],
        0,
    ),
    case(
        "conv2d_channels_last",
        "torch.conv2d(a.permute(0, 3, 1, 2), b)",
        &[&[2, 5, 6, 4], &[3, 4, 3, 3]],
        1,
    ),
    case("conv2d_without_samples", "torch.conv2d(a, b)", &[&[4, 5, 6], &[3, 4, 3, 3]], 0),
    case(
        "conv3d",
        "torch.conv3d(a, b, None, [1, 2, 1], [0, 1, 1])",
        &[&[1, 2, 4, 5, 4], &[3, 2, 2, 3, 3]],
        1,
    ),
    case("conv_transpose2d", "torch.conv_transpose2d(a, b)", &[&[1, 4, 3, 3], &[4, 2, 2, 2]], 0),
    case("max_pool2d", "torch.max_pool2d(a, [3, 2], [2, 2], [1, 1])", &[&[2, 3, 7, 6]], 1),
    case(
        "max_pool2d_with_ceil",
        "torch.max_pool2d(a, [3, 2], [2, 2], [1, 1], [1, 1], True)",
        &[&[2, 3, 7, 6]],
        0,
    ),
    case("max_pool2d_channels_last", "torch.max_pool2d(a.permute(0, 3, 1, 2), [2, 2])", &[&[2, 6, 4, 3]], 1),
    case("avg_pool2d", "torch.avg_pool2d(a, [3, 3], [2, 2], [1, 1])", &[&[2, 3, 7, 6]], 1),
    case(
        "avg_pool2d_of_the_inside",
        "torch.avg_pool2d(a, [3, 3], [2, 2], [1, 1], False, False)",
        &[&[2, 3, 7, 6]],
        1,
    ),
    case("adaptive_avg_pool2d", "torch.adaptive_avg_pool2d(a, [2, 1])", &[&[2, 3, 4, 5]], 1),
    case("adaptive_avg_pool2d_of_uneven", "torch.adaptive_avg_pool2d(a, [3, 3])", &[&[2, 3, 4, 5]], 0),
    case(
        "attention",
        "torch.scaled_dot_product_attention(a, b, c)",
        &[&[2, 3, 4, 8], &[2, 3, 6, 8], &[2, 3, 6, 8]],
        1,
    ),
    case(
        "attention_of_heads",
        "torch.scaled_dot_product_attention(a.transpose(1, 2), b.transpose(1, 2), c.transpose(1, 2))",
        &[&[2, 4, 3, 8], &[2, 6, 3, 8], &[2, 6, 3, 8]],
        1,
    ),
    case(
        "attention_with_a_mask",
        "torch.scaled_dot_product_attention(a, b, b, c)",
        &[&[2, 3, 4, 8], &[2, 3, 6, 8], &[4, 6]],
        0,
    ),
    case("contiguous", "a.permute(2, 0, 1).contiguous()", &[&[2, 3, 4]], 1),
    case("contiguous_integers", "(a * 50).to(torch.int64).permute(2, 0, 1).contiguous()", &[&[2, 3, 4]], 2),
    case("contiguous_bools", "(a > 0).t().contiguous()", &[&[3, 4]], 1),
    case("contiguous_doubles", "a.to(torch.float64).t().contiguous()", &[&[3, 4]], 2),
    case("contiguous_of_expanded", "a.unsqueeze(1).expand([3, 2, 4]).contiguous()", &[&[3, 4]], 1),
    case("contiguous_of_strided", "a[:, ::2, 1:].contiguous()", &[&[2, 5, 4]], 1),
    case("cat", "torch.cat([a, torch.mm(a, b), a], -1)", &[&[3, 4], &[4, 4]], 2),
    case(
        "cat_of_permuted",
        "torch.cat([a.permute(0, 2, 1), torch.bmm(b, b).permute(0, 2, 1)], 1)",
        &[&[2, 3, 3], &[2, 3, 3]],
        2,
    ),
    case(
        "cat_of_integers",
        "torch.cat([(a * 50).to(torch.int32).t(), (b * 50).to(torch.int32).t()], 0)",
        &[&[3, 4], &[3, 2]],
        3,
    ),
    case("cat_of_dtypes", "torch.cat([(a * 50).to(torch.int32), torch.mm(b, b)], 0)", &[&[3, 4], &[4, 4]], 2),
    case("cat_of_nothing", "torch.cat([torch.mm(a, b), torch.mm(c, b)], 0)", &[&[3, 4], &[4, 4], &[0, 4]], 1),
    case("to_of_permuted", "a.t().to(torch.float16)", &[&[3, 4]], 1),
    case("to_bool", "torch.relu(a).to(torch.bool)", &[&[3, 4]], 1),
    case("to_bytes", "torch.abs(a * 50).to(torch.uint8)", &[&[3, 4]], 0),
    case("to_the_same", "a.to(torch.float32)", &[&[3, 4]], 0),
    case("to_complex", "a.to(torch.complex64).real", &[&[3, 4]], 0),
    case("reshape_that_copies", "a.transpose(0, 1).reshape([6, 4])", &[&[2, 3, 4]], 1),
    case("reshape_that_views", "a.reshape([6, -1])", &[&[2, 3, 4]], 0),
    case("flatten", "a.transpose(0, 1).flatten(0, 1)", &[&[2, 3, 4]], 1),
    case("roll", "torch.roll(a, [1, -2], [0, 2])", &[&[2, 3, 5]], 1),
    case("roll_of_one_dimension_twice", "torch.roll(a, [1, 2], [2, 2])", &[&[2, 3, 5]], 0),
    case("pad_by_nothing", "torch.pad(a, [0, 0], 'constant', None)", &[&[2, 3]], 0),
    case("pad", "torch.nn.functional.pad(a, [1, 2])", &[&[2, 3]], 0),
    case(
        "batch_norm",
        "torch.batch_norm(a, b, b, b, b * b, False, 0.1, 1e-5, False)",
        &[&[2, 3, 4, 5], &[3]],
        0,
    ),
    case("layer_norm_of_permuted", "torch.layer_norm(a.permute(0, 2, 1), [3], b, b)", &[&[2, 3, 4], &[3]], 1),
    case("softmax", "torch.softmax(a, -1)", &[&[4, 7]], 0),
    case("empty", "torch.mm(a, b)", &[&[3, 0], &[0, 5]], 0),
];

fn run_case(case: &Case) -> Result<(), Failed> {
    let names = ["a", "b", "c"];
    let parameters: Vec<String> = names[..case.sizes.len()].iter().map(|n| format!("{n}: Tensor")).collect();
    let negated: Vec<String> =
        names[..case.sizes.len()].iter().map(|n| format!("    {n} = -{n}\n")).collect();
    let source = format!("def f({}):\n{}    return {}\n", parameters.join(", "), negated.concat(), case.body);
    let arguments: Vec<Value> = case
        .sizes
        .iter()
        .enumerate()
        .map(|(n, sizes)| numbers(sizes, n).map(Value::from))
        .collect::<Result<_, _>>()?;
    let (expected, _, _) = call(&source, None, &arguments)?;
    let apart = Arc::new(Apart::default());
    let (answer, report, _) = call(&source, Some(&apart), &arguments)?;
    assert_eq!(answer.sizes(), expected.sizes());
    assert_eq!(answer.strides(), expected.strides(), "the layout is that of the row");
    let (own, theirs) = (answer.to_vec_as::<f64>()?, expected.to_vec_as::<f64>()?);
    for (a, b) in own.iter().zip(&theirs) {
        assert!((a - b).abs() <= 1e-5 + 1e-5 * b.abs(), "{a} instead of {b}");
    }
    assert_eq!(report.device.by_library, case.by_library, "{}", report.to_text());
    Ok(())
}

/// Numbers between -1 and 1 that differ, the same ones for each test.
fn numbers(sizes: &[i64], n: usize) -> Result<Tensor, Failed> {
    let count = sizes.iter().product::<i64>();
    let number = |i: i64| (((i + 1) * (7919 + n as i64 * 104_729)) % 1009) as f32 / 504.5 - 1.0;
    let all: Vec<f32> = (0..count).map(number).collect();
    Ok(Tensor::from_vec(&all, sizes)?)
}

/// The answer of `f` with plans, on a device or the host, what became of ops, and the device's copies across the border.
type Called = (Tensor, FusionReport, [u64; 2]);

fn call(source: &str, device: Option<&Arc<Apart>>, arguments: &[Value]) -> Result<Called, Failed> {
    call_with(source, device, arguments, false)
}

fn call_with(
    source: &str,
    device: Option<&Arc<Apart>>,
    arguments: &[Value],
    grad: bool,
) -> Result<Called, Failed> {
    let toolkit = Toolkit::default();
    let program = toolkit.load_source("test.py", source)?;
    let pipeline = toolkit.parse_pipeline("default")?;
    let program = program.transformed(|module, registry| pipeline.run(module, registry).map(drop))?.planned();
    let program = match device {
        Some(apart) => program.on(Arc::clone(apart) as Arc<dyn Backend>),
        None => program,
    };
    let run = Run::silent();
    run.set_grad_enabled(grad);
    let answer = program.run("f", arguments.to_vec(), &run)?;
    let copies = device.map_or([0, 0], |apart| apart.copies());
    let Value::Tensor(tensor) = answer else { return Err("f gives a tensor".into()) };
    Ok((tensor, program.fusion_report(), copies))
}

/// From the first op to the last nothing comes home, and what was copied is not copied again.
fn tensors_stay_there() -> Result<(), Failed> {
    let source = "def f(x: Tensor, w: Tensor):\n    y = torch.relu(torch.mm(x, w) * 2)\n    y = torch.mm(y, w).tanh() + 1\n    \
                  return torch.mm(y, w).sigmoid()\n";
    let arguments: Vec<Value> = vec![numbers(&[4, 4], 0)?.into(), numbers(&[4, 4], 1)?.into()];
    let apart = Arc::new(Apart::default());
    let (answer, report, copies) = call(source, Some(&apart), &arguments)?;
    assert_eq!(copies, [2, 0], "two operands went there, and nothing came back");
    assert_eq!((report.device.by_library, report.fused_calls), (3, 3), "{}", report.to_text());
    assert!(report.device.on_host.is_empty() && report.device.left.is_empty());
    assert!(answer.storage().is_away());
    answer.to_vec_as::<f64>()?;
    assert_eq!(apart.copies(), [2, 1]);
    call(source, Some(&apart), &arguments)?;
    assert_eq!(apart.copies(), [2, 1], "the operands are there already");
    Ok(())
}

fn each_way_home_is_counted() -> Result<(), Failed> {
    let source = "def f(x: Tensor):\n    y, _ = torch.sort(x * 2)\n    return y + 1\n";
    let apart = Arc::new(Apart::default());
    let (_, report, copies) = call(source, Some(&apart), &[numbers(&[4, 4], 0)?.into()])?;
    assert_eq!(report.device.on_host.get("aten::sort"), Some(&1), "{}", report.to_text());
    assert_eq!(copies, [2, 1]);
    let text = report.to_text();
    assert!(text.contains("1 call brought tensors back: aten::sort"), "{text}");
    Ok(())
}

fn writes_of_the_host_are_seen() -> Result<(), Failed> {
    let source = "def f(x: Tensor):\n    y = x * 2\n    z = y.sort()[0]\n    z.masked_fill_(z > 0, 5.)\n    return z + y\n";
    let x: Vec<Value> = vec![numbers(&[3, 4], 0)?.into()];
    let (expected, _, _) = call(source, None, &x)?;
    let apart = Arc::new(Apart::default());
    let (answer, _, _) = call(source, Some(&apart), &x)?;
    assert_eq!(answer.to_vec_as::<f64>()?, expected.to_vec_as::<f64>()?);
    // Written by the caller between two calls.
    let Value::Tensor(tensor) = &x[0] else { return Err("a tensor".into()) };
    tensor.storage().write()?.fill(0);
    let (answer, _, _) = call(source, Some(&apart), &x)?;
    assert_eq!(answer.to_vec_as::<f64>()?, vec![0.0; 12]);
    assert_eq!(answer.dtype(), DType::F32);
    Ok(())
}

/// What is recorded for gradients runs by the rows.
fn gradients_are_those_of_the_host() -> Result<(), Failed> {
    let source = "def f(x: Tensor, w: Tensor):\n    v = w.detach().requires_grad_(True)\n    y = torch.mm(x * 2, v).tanh()\n    \
                  (y * y).sum().backward()\n    g = v.grad\n    assert g is not None\n    return g\n";
    let arguments: Vec<Value> = vec![numbers(&[3, 4], 0)?.into(), numbers(&[4, 2], 1)?.into()];
    let (expected, _, _) = call_with(source, None, &arguments, true)?;
    let (answer, _, _) = call_with(source, Some(&Arc::new(Apart::default())), &arguments, true)?;
    for (a, b) in answer.to_vec_as::<f64>()?.iter().zip(expected.to_vec_as::<f64>()?) {
        assert!((a - b).abs() < 1e-5, "{a} instead of {b}");
    }
    Ok(())
}

/// A program on a device, ready to be called several times.
fn placed(source: &str) -> Result<(Program, Arc<Apart>), Failed> {
    let toolkit = Toolkit::default();
    let program = toolkit.load_source("test.py", source)?;
    let pipeline = toolkit.parse_pipeline("default")?;
    let program = program.transformed(|module, registry| pipeline.run(module, registry).map(drop))?.planned();
    let apart = Arc::new(Apart::default());
    Ok((program.on(Arc::clone(&apart) as Arc<dyn Backend>), apart))
}

fn without_gradients() -> Run {
    let run = Run::silent();
    run.set_grad_enabled(false);
    run
}

/// Results of calls are tensors of their own, inputs are read anew, and another kind of input has its own work.
fn calls_are_recorded() -> Result<(), Failed> {
    let source =
        "def f(x: Tensor, w: Tensor):\n    y = torch.mm(x, w).relu() + 1\n    return y.t(), torch.mm(y, w)\n";
    let (program, apart) = placed(source)?;
    let w = numbers(&[4, 4], 1)?;
    let mut kept = Vec::new();
    for n in 0..6 {
        let x = numbers(&[if n == 4 { 2 } else { 3 }, 4], n)?;
        let arguments: Vec<Value> = vec![x.clone().into(), w.clone().into()];
        let answer = program.run("f", arguments, &without_gradients())?;
        let Value::Tuple(answer) = answer else { return Err("a tuple".into()) };
        let [Value::Tensor(first), Value::Tensor(second)] = answer.items() else {
            return Err("two tensors".into());
        };
        assert_eq!(first.strides().as_slice(), [1, 4], "the layout is that of the view");
        kept.push((x, first.clone(), second.clone()));
    }
    let report = program.fusion_report().device;
    assert_eq!((report.replayed, report.not_recorded.len()), (3, 0));
    assert_eq!(apart.copies()[1], 0, "no call brought anything home");
    for (x, first, second) in kept {
        let (own, weights) = (x.to_vec_as::<f64>()?, w.to_vec_as::<f64>()?);
        let rows = own.len() / 4;
        let product = |a: &[f64]| -> Vec<f64> {
            (0..rows * 4).map(|i| (0..4).map(|k| a[i / 4 * 4 + k] * weights[k * 4 + i % 4]).sum()).collect()
        };
        let y: Vec<f64> = product(&own).iter().map(|x| x.max(0.0) + 1.0).collect();
        let transposed: Vec<f64> = (0..4 * rows).map(|i| y[i % rows * 4 + i / rows]).collect();
        for (found, wanted) in [(first, transposed), (second, product(&y))] {
            for (a, b) in found.to_vec_as::<f64>()?.iter().zip(&wanted) {
                assert!((a - b).abs() < 1e-4, "{a} instead of {b}");
            }
        }
    }
    Ok(())
}

fn what_does_more() -> Result<(), Failed> {
    for (source, why) in [
        (
            "def f(x: Tensor, n: int):\n    return torch.mm(x, x) * n\n",
            "it takes something else than tensors",
        ),
        (
            "def f(x: Tensor):\n    print(x.size(0))\n    return torch.mm(x, x)\n",
            "prim::Print may do more than compute",
        ),
        ("def f(x: Tensor):\n    return torch.mm(x, x) + torch.rand_like(x)\n", "may do more than compute"),
        (
            "def f(x: Tensor):\n    y = torch.mm(x, x)\n    return y.sort()[0] + y\n",
            "copy between host and device",
        ),
        (
            "def f(x: Tensor):\n    y = torch.mm(x, x)\n    return y, y.t()\n",
            "something else than new tensors",
        ),
        ("def f(x: Tensor):\n    return x.t()\n", "it gives what was there before"),
        (
            "def f(x: Tensor):\n    y = torch.mm(x, x)\n    if bool(y.sum() > 0):\n        y = -y\n    return y\n",
            "",
        ),
    ] {
        let (program, _) = placed(source)?;
        let takes_number = source.contains("n: int");
        let mut answers = Vec::new();
        for _ in 0..5 {
            let mut arguments: Vec<Value> = vec![numbers(&[3, 3], 0)?.into()];
            arguments.extend(takes_number.then_some(Value::Int(2)));
            let run = without_gradients();
            run.seed(0);
            answers.push(program.run("f", arguments, &run)?.to_text());
        }
        assert!(answers.iter().all(|answer| *answer == answers[0]), "{source}");
        let report = program.fusion_report().device;
        assert_eq!(report.replayed, 0, "{source}");
        let found = report.not_recorded.keys().any(|reason| reason.contains(why));
        assert!(found, "{source}: {:?}", report.not_recorded);
    }
    Ok(())
}

fn threads_share_recorded_work() -> Result<(), Failed> {
    let (program, _) =
        placed("def f(x: Tensor, w: Tensor):\n    return torch.mm(torch.mm(x, w).tanh(), w)\n")?;
    let w = numbers(&[8, 8], 1)?;
    let answers = |program: &Program| -> Result<Vec<Vec<f64>>, Failed> {
        (0..16)
            .map(|n| {
                let arguments: Vec<Value> = vec![numbers(&[8, 8], n)?.into(), w.clone().into()];
                let Value::Tensor(answer) = program.run("f", arguments, &without_gradients())? else {
                    return Err("a tensor".into());
                };
                Ok(answer.to_vec_as::<f64>()?)
            })
            .collect()
    };
    let expected = answers(&program)?;
    let found = std::thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| answers(&program).map_err(|e| format!("{e:?}")))).collect();
        threads.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
    });
    for thread in found {
        assert_eq!(thread.map_err(|_| "a thread panicked")??, expected);
    }
    assert!(program.fusion_report().device.replayed > 100);
    Ok(())
}
