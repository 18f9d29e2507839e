//! One suite for all engines: each case runs on the reference interpreter and on every compiled backend
//! that is built in, and the answers must agree.

use super::{Backend, Executable, ProgramRunner, by_name, ptx};
use crate::diag::{Diagnostic, ErrorKind, Result};
use crate::dialects::Order;
use crate::dialects::loops::Kernel;
use crate::dialects::scalar::{Program, Sv};
use crate::lowering::{Form, GroupProgram, Leaf, Leaves, Load, Piece, Slot, Target};
use crate::tensor::{DType, Layout, Tensor};
use crate::value::Value;
use smallvec::SmallVec;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A group of one program over tensor inputs; every output depends on all of them.
pub(super) fn group(dtypes: &[DType], body: impl Fn(&mut Program, &[Sv]) -> Vec<Sv>) -> GroupProgram {
    let mut program = Program::new();
    let params: Vec<Sv> = dtypes.iter().map(|d| program.param(*d)).collect();
    let values = body(&mut program, &params);
    let leaves: Leaves = (0..dtypes.len()).map(Leaf::Load).collect();
    let loads = dtypes
        .iter()
        .enumerate()
        .map(|(input, d)| Load { input, chunk: None, dtype: *d, domain: Default::default() })
        .collect();
    let piece = |(output, v): (usize, &Sv)| Piece {
        output,
        value: *v,
        leaves: leaves.clone(),
        form: dtypes.len(),
        reduced: false,
        sums: None,
    };
    let pieces = values.iter().enumerate().map(piece);
    let slots = values.iter().enumerate().map(|(n, v)| Slot {
        dtype: program.dtype(*v),
        pieces: SmallVec::from_slice(&[n]),
        concat: None,
    });
    let (pieces, outputs) = (pieces.collect(), slots.collect());
    let mut forms: Vec<Form> = leaves.iter().map(|leaf| Form::Leaf(*leaf)).collect();
    forms.push(Form::Elementwise((0..dtypes.len()).collect(), false, Order::Operands));
    let (scalars, reductions, writes) = (Vec::new(), Vec::new(), Vec::new());
    GroupProgram { program, loads, scalars, reductions, pieces, forms, outputs, writes }
}

fn engines() -> Vec<Arc<dyn Backend>> {
    let mut engines = vec![by_name("interp").expect("always there")];
    if cfg!(feature = "llvm") {
        engines.push(by_name("llvm").expect("starts"));
        engines.push(Arc::new(Ptx));
    }
    // Where the build has CUDA, the device decides; a missing one is reported and skipped.
    if cfg!(feature = "cuda") {
        match by_name("cuda") {
            Ok(cuda) => engines.push(cuda),
            Err(error) => eprintln!("skipped: engine cuda: {error}"),
        }
    }
    engines
}

/// Makes the PTX of every kernel and has it assembled where there is an assembler; runs the same loops, which
/// are arranged for a GPU, on the interpreter.
struct Ptx;

impl Backend for Ptx {
    fn name(&self) -> &'static str {
        "ptx"
    }

    fn target(&self) -> Target {
        Target::Gpu
    }

    fn compile(&self, kernel: &Kernel) -> Result<Arc<dyn Executable>> {
        let text = ptx::for_kernel(kernel, "sm_90")?;
        assert!(text.contains(&format!(".entry {}", ptx::ENTRY)), "{text}");
        match assembler() {
            Some(ptxas) => assemble(ptxas, &text),
            None => eprintln!("skipped: ptxas is not installed (set FLAMBEAU_PTXAS)"),
        }
        by_name("interp")?.compile(kernel)
    }
}

/// `ptxas`: named by the environment, or on the path.
fn assembler() -> Option<&'static PathBuf> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let find = || {
        let named = std::env::var_os("FLAMBEAU_PTXAS").filter(|path| !path.is_empty()).map(PathBuf::from);
        let on_path = || {
            let path = std::env::var_os("PATH")?;
            std::env::split_paths(&path).map(|p| p.join("ptxas")).find(|p| p.is_file())
        };
        named.or_else(on_path)
    };
    FOUND.get_or_init(find).as_ref()
}

fn assemble(ptxas: &PathBuf, text: &str) {
    static COUNT: AtomicUsize = AtomicUsize::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    let file = std::env::temp_dir().join(format!("flambeau-{}-{n}.ptx", std::process::id()));
    std::fs::write(&file, text).expect("writes");
    let out = Command::new(ptxas).args(["-arch=sm_90", "-o", "/dev/null"]).arg(&file).output().expect("runs");
    let _ = std::fs::remove_file(&file);
    assert!(out.status.success(), "ptxas: {}\n{text}", String::from_utf8_lossy(&out.stderr));
}

/// Whether an engine refuses a kernel by name, as a GPU does for functions that only the C library has.
fn refuses(error: &Diagnostic, engine: &str) -> bool {
    matches!(engine, "ptx" | "cuda") && error.kind() == ErrorKind::Unsupported
}

/// A deterministic mix of magnitudes and signs with special values sprinkled in.
fn floats(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed.wrapping_mul(2_654_435_761).wrapping_add(12345);
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        f64::from(state >> 8) / f64::from(1 << 24)
    };
    let special = [0.0, -0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY, 1e-40, -1e-40, 1e30, -1e30];
    (0..n)
        .map(|i| match i % 37 {
            5 => special[i / 37 % special.len()],
            _ => ((next() - 0.5) * 10f64.powf(next() * 3.0 - 1.0)) as f32,
        })
        .collect()
}

fn tensor(sizes: &[i64], seed: u32) -> Tensor {
    let n = sizes.iter().product::<i64>() as usize;
    Tensor::from_vec(&floats(n, seed), sizes).expect("fits")
}

fn close(a: f64, b: f64, ulps: f64) -> bool {
    let scale = a.abs().max(b.abs()).max(f64::from(f32::MIN_POSITIVE));
    (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= ulps * scale * f64::from(f32::EPSILON)
}

/// Runs a group on all engines and compares with the first, the interpreter.
fn agree(name: &str, group: &GroupProgram, inputs: &[Tensor], ulps: f64) {
    let values: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
    let mut reference: Option<Vec<(Tensor, Vec<f64>)>> = None;
    for engine in engines() {
        let runner = ProgramRunner::new(group.clone());
        let outputs = match runner.run(&values, &*engine) {
            Ok(outputs) => outputs,
            Err(error) if refuses(&error, engine.name()) => continue,
            Err(error) => panic!("{name} on {}: {error}", engine.name()),
        };
        let got: Vec<(Tensor, Vec<f64>)> =
            outputs.into_iter().map(|t| (t.clone(), t.to_vec_as::<f64>().expect("converts"))).collect();
        let Some(want) = &reference else {
            reference = Some(got);
            continue;
        };
        for ((wt, w), (gt, g)) in want.iter().zip(&got) {
            assert_eq!(wt.layout(), gt.layout(), "{name}: layout");
            for (i, (a, b)) in w.iter().zip(g).enumerate() {
                assert!(
                    close(*a, *b, ulps),
                    "{name} on {}: element {i} is {b:e}, should be {a:e}",
                    engine.name()
                );
            }
        }
    }
}

use DType::{Bool, F32, F64, I32, I64};

#[test]
fn flat_kernels_of_all_lengths() {
    let g = group(&[F32, F32, F32], |p, x| {
        let ab = p.mul(x[0], x[1]);
        let sum = p.add(ab, x[2]);
        let t = p.tanh(sum);
        vec![p.mul(t, x[1])]
    });
    for n in [0, 1, 2, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 1000] {
        agree(&format!("flat {n}"), &g, &[tensor(&[n], 1), tensor(&[n], 2), tensor(&[n], 3)], 2.0);
    }
}

#[test]
fn layouts_and_broadcasting() {
    let g = group(&[F32, F32], |p, x| {
        let d = p.sub(x[0], x[1]);
        vec![d, p.mul(d, d)]
    });
    let a = tensor(&[6, 5, 7], 4);
    let turned = |t: &Tensor, sizes: &[i64], strides: &[i64], offset: usize| {
        t.with_layout(Layout::strided(sizes, strides, offset).expect("valid")).expect("inside")
    };
    agree("bias", &g, &[a.clone(), tensor(&[7], 5)], 0.0);
    agree("column", &g, &[a.clone(), tensor(&[5, 1], 6)], 0.0);
    agree("rank 0", &g, &[a.clone(), tensor(&[], 7)], 0.0);
    agree("outer", &g, &[tensor(&[40, 1], 8), tensor(&[70], 9)], 0.0);
    agree("transposed", &g, &[turned(&a, &[7, 6, 5], &[1, 35, 7], 0), tensor(&[7, 6, 5], 10)], 0.0);
    agree(
        "both transposed",
        &g,
        &[turned(&a, &[7, 6, 5], &[1, 35, 7], 0), turned(&a, &[7, 6, 5], &[1, 35, 7], 0)],
        0.0,
    );
    agree("every second", &g, &[turned(&a, &[6, 5, 3], &[35, 7, 2], 1), tensor(&[6, 5, 3], 11)], 0.0);
    agree("flat with steps", &g, &[turned(&a, &[100], &[2], 3), tensor(&[100], 12)], 0.0);
    agree("empty", &g, &[tensor(&[0, 3], 13), tensor(&[3], 14)], 0.0);
    agree("expanded", &g, &[turned(&a, &[9, 30], &[0, 1], 2), turned(&a, &[9, 30], &[0, 0], 5)], 0.0);
}

#[test]
fn integers_and_bools() {
    let ints: Vec<i64> = (-60..60).map(|i| i * 7_919_131_313).chain([i64::MIN, i64::MAX, 0, -1, 1]).collect();
    let divisors: Vec<i64> = (0..ints.len() as i64).map(|i| i % 7 - 3).collect();
    let n = ints.len() as i64;
    let (a, b) =
        (Tensor::from_vec(&ints, &[n]).expect("fits"), Tensor::from_vec(&divisors, &[n]).expect("fits"));
    let g = group(&[I64, I64], |p, x| {
        let (d, r) = (p.div(x[0], x[1]), p.rem(x[0], x[1]));
        let (s, t) = (p.shl(x[0], x[1]), p.shr(x[0], x[1]));
        let c = p.lt(x[0], x[1]);
        let m = p.select(c, d, r);
        let f = p.convert(x[0], F32);
        let narrow = p.convert(x[0], I32);
        let (lo, hi) = (p.min(x[0], x[1]), p.max(x[0], x[1]));
        let truth = p.convert(x[1], Bool);
        let both = p.and(c, truth);
        let neither = p.not(both);
        let abs = p.abs(x[0]);
        vec![d, r, s, t, c, m, f, narrow, lo, hi, truth, neither, abs]
    });
    agree("int64", &g, &[a.clone(), b.clone()], 0.0);
    let g = group(&[I32, Bool], |p, x| {
        let y = p.convert(x[1], I32);
        let z = p.add(x[0], y);
        let w = p.mul(z, x[0]);
        vec![w, p.convert(w, F64), p.xor(x[1], x[1])]
    });
    let (a, b) = (a.to_dtype(I32).expect("converts"), b.to_dtype(Bool).expect("converts"));
    agree("int32 and bool", &g, &[a, b], 0.0);
}

#[test]
fn float_conversions_and_extremes() {
    let g = group(&[F32, F32], |p, x| {
        let i = p.convert(x[0], I64);
        let d = p.convert(x[0], F64);
        let dd = p.exp(d);
        let t = p.convert(x[0], Bool);
        vec![i, p.convert(x[0], I32), dd, t, p.min(x[0], x[1]), p.max(x[0], x[1]), p.copysign(x[0], x[1])]
    });
    agree("conversions", &g, &[tensor(&[500], 20), tensor(&[500], 21)], 2.0);
}

#[test]
fn every_unary_function() {
    use crate::dialects::scalar::Unary::*;
    let all = [
        Neg, Abs, Exp, Exp2, Expm1, Log, Log2, Log10, Log1p, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh,
        Tanh, Asinh, Acosh, Atanh, Sqrt, Rsqrt, Erf, Erfc, Lgamma, Floor, Ceil, Round, Trunc,
    ];
    for op in all {
        let single = group(&[F32], |p, x| vec![p.unary(op, x[0])]);
        agree(&format!("{op:?} of f32"), &single, &[tensor(&[3000], 30)], 4.0);
        let double = group(&[F64], |p, x| vec![p.unary(op, x[0])]);
        let input = tensor(&[300], 31).to_dtype(F64).expect("converts");
        agree(&format!("{op:?} of f64"), &double, &[input], 1e-6);
    }
}

/// Numbers where functions of two have special answers, each with each, and others.
fn pairs() -> [Tensor; 2] {
    let special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        0.1,
        5.0,
        -5.0,
        3e7,
        f32::MIN_POSITIVE,
        f32::from_bits(1),
        -f32::from_bits(1),
        f32::MAX,
        f32::MIN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
    ];
    let (mut first, mut second) = (floats(2000, 50), floats(2000, 51));
    for x in special {
        for y in special {
            first.push(x);
            second.push(y);
        }
    }
    [first, second].map(|numbers| Tensor::from_vec(&numbers, &[numbers.len() as i64]).expect("fits"))
}

#[test]
fn every_function_of_two_floats() {
    use crate::dialects::scalar::Binary::*;
    for (op, ulps) in [(Rem, 0.0), (NextAfter, 0.0), (Hypot, 1.0), (Atan2, 2.0), (Pow, 4.0), (CopySign, 0.0)]
    {
        // The sign of a zero is an answer too; that of NaN is none.
        let function = |p: &mut Program, x: &[Sv]| {
            let y = p.binary(op, x[0], x[1]);
            let (one, zero) = (p.constant_like(y, 1.0), p.constant_like(y, 0.0));
            let (is_number, sign) = (p.eq(y, y), p.copysign(one, y));
            vec![y, p.select(is_number, sign, zero)]
        };
        agree(&format!("{op:?} of f32"), &group(&[F32, F32], function), &pairs(), ulps);
        let wide = pairs().map(|t| t.to_dtype(F64).expect("converts"));
        agree(&format!("{op:?} of f64"), &group(&[F64, F64], function), &wide, ulps);
    }
}

#[test]
fn large_work_is_shared_among_threads() {
    let g = group(&[F32, F32], |p, x| vec![p.add(x[0], x[1])]);
    agree("large", &g, &[tensor(&[300, 1001], 40), tensor(&[300, 1001], 41)], 0.0);
    agree("large rows", &g, &[tensor(&[300, 1001], 42), tensor(&[1001], 43)], 0.0);
}

mod functions;
mod nests;
mod rows;
mod scalars;

mod groups {
    //! Groups as graphs, read through op rows.

    use super::*;
    use crate::backends::FusedGroup;
    use crate::dialects::Registry;
    use crate::ir::{Attr, Graph, Symbol, Type, ValueId};

    fn op(g: &mut Graph, kind: &str, operands: &[ValueId]) -> ValueId {
        let root = g.root();
        let op = g.emit(root, Symbol::new(kind), operands, &[Type::tensor()]);
        g.result(op, 0).expect("one result")
    }

    fn constant(g: &mut Graph, value: Attr, ty: Type) -> ValueId {
        let root = g.root();
        let op = g.emit(root, Symbol::new("prim::Constant"), &[], &[ty]);
        g.set_attr(op, "value", value);
        g.result(op, 0).expect("one result")
    }

    /// The pointwise part of an LSTM cell: four parts of one input, two outputs.
    fn lstm() -> Graph {
        let mut g = Graph::new();
        let gates = g.add_input(Type::tensor());
        let cx = g.add_input(Type::tensor());
        let root = g.root();
        let four = vec![Type::tensor(); 4];
        let chunk = g.emit(root, Symbol::new("prim::ConstantChunk"), &[gates], &four);
        g.set_attr(chunk, "chunks", Attr::Int(4));
        g.set_attr(chunk, "dim", Attr::Int(1));
        let parts = g.results(chunk);
        let (i, f) = (op(&mut g, "aten::sigmoid", &[parts[0]]), op(&mut g, "aten::sigmoid", &[parts[1]]));
        let (c, o) = (op(&mut g, "aten::tanh", &[parts[2]]), op(&mut g, "aten::sigmoid", &[parts[3]]));
        let one = constant(&mut g, Attr::Int(1), Type::int());
        let (fc, ic) = (op(&mut g, "aten::mul", &[f, cx]), op(&mut g, "aten::mul", &[i, c]));
        let cy = op(&mut g, "aten::add", &[fc, ic, one]);
        let t = op(&mut g, "aten::tanh", &[cy]);
        let hy = op(&mut g, "aten::mul", &[o, t]);
        g.add_output(hy);
        g.add_output(cy);
        g
    }

    pub(super) fn run(graph: Graph, inputs: &[Value]) -> Vec<Vec<(Vec<i64>, DType, Vec<f64>)>> {
        let graph = Arc::new(graph);
        let registry = Registry::builtin();
        engines()
            .into_iter()
            .map(|engine| {
                let name = engine.name();
                let group = FusedGroup::new(Arc::clone(&graph), engine, Arc::default());
                let outputs = group.run(inputs, &registry).unwrap_or_else(|d| panic!("{name}: {d}"));
                // A second call finds its plan and its kernels.
                let again = group.run(inputs, &registry).expect("runs again");
                let read =
                    |t: &Tensor| (t.sizes().to_vec(), t.dtype(), t.to_vec_as::<f64>().expect("converts"));
                let (first, second): (Vec<_>, Vec<_>) =
                    (outputs.iter().map(read).collect(), again.iter().map(read).collect());
                assert_eq!(format!("{first:?}"), format!("{second:?}"));
                first
            })
            .collect()
    }

    #[test]
    fn lstm_cell_runs_as_one_kernel() {
        let (gates, cx) = (tensor(&[3, 40], 50), tensor(&[3, 10], 51));
        let clean = |t: &Tensor| {
            let finite: Vec<f32> = t
                .to_vec::<f32>()
                .expect("f32")
                .iter()
                .map(|x| if x.abs() < 100.0 { *x } else { 0.5 })
                .collect();
            Tensor::from_vec(&finite, &t.sizes()).expect("fits")
        };
        let (gates, cx) = (clean(&gates), clean(&cx));
        let inputs = [Value::Tensor(gates.clone()), Value::Tensor(cx.clone())];
        let group = FusedGroup::new(Arc::new(lstm()), by_name("interp").expect("there"), Arc::default());
        assert_eq!(group.loops(&inputs, &Registry::builtin()).expect("lowers").len(), 1);
        let (g, c) = (gates.to_vec_as::<f64>().expect("f64"), cx.to_vec_as::<f64>().expect("f64"));
        let s = |x: f64| 1.0 / (1.0 + (-x).exp());
        for answer in run(lstm(), &inputs) {
            let ((sizes, dtype, hy), (_, _, cy)) = (&answer[0], &answer[1]);
            assert_eq!((sizes.as_slice(), *dtype), (&[3i64, 10][..], F32));
            for row in 0..3 {
                for k in 0..10 {
                    let at = |part: usize| g[row * 40 + part * 10 + k];
                    let n = row * 10 + k;
                    let want = s(at(1)) * c[n] + s(at(0)) * at(2).tanh();
                    assert!((cy[n] - want).abs() <= 1e-5 * want.abs().max(1.0), "{} {want}", cy[n]);
                    let want = s(at(3)) * want.tanh();
                    assert!((hy[n] - want).abs() <= 1e-5, "{} {want}", hy[n]);
                }
            }
        }
    }

    #[test]
    fn outputs_are_joined_and_sizes_may_differ() {
        let mut g = Graph::new();
        let (a, b, n) =
            (g.add_input(Type::tensor()), g.add_input(Type::tensor()), g.add_input(Type::float()));
        let twice = op(&mut g, "aten::mul", &[a, n]);
        let one = constant(&mut g, Attr::Int(1), Type::int());
        let sum = op(&mut g, "aten::add", &[twice, b, one]);
        let joined = op(&mut g, "prim::FusedConcat", &[twice, sum, b]);
        if let Some(cat) = g.def_op(joined) {
            g.set_attr(cat, "dim", Attr::Int(-1));
        }
        g.add_output(joined);
        let less = op(&mut g, "aten::lt", &[b, n]);
        g.add_output(less);
        let t = |v: &[f32], s: &[i64]| Value::Tensor(Tensor::from_vec(v, s).expect("fits"));
        let inputs =
            [t(&[1.0, 2.0], &[2, 1]), t(&[10.0, 1.0, 30.0, 40.0, 1.5, 60.0], &[2, 3]), Value::Float(2.0)];
        for answer in run(g.clone(), &inputs) {
            assert_eq!(answer[0].0, [2, 7]);
            let want = [2.0, 12.0, 3.0, 32.0, 10.0, 1.0, 30.0, 4.0, 44.0, 5.5, 64.0, 40.0, 1.5, 60.0];
            assert_eq!(answer[0].2, want);
            assert_eq!((answer[1].1, answer[1].2.as_slice()), (Bool, &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0][..]));
        }
    }

    #[test]
    fn what_cannot_be_fused_is_named() {
        let mut g = Graph::new();
        let a = g.add_input(Type::tensor());
        let r = op(&mut g, "aten::relu_of_nothing", &[a]);
        g.add_output(r);
        let group = FusedGroup::new(Arc::new(g), by_name("interp").expect("there"), Arc::default());
        let error = group.run(&[Value::Tensor(tensor(&[2], 1))], &Registry::builtin()).expect_err("refused");
        assert!(error.message().contains("aten::relu_of_nothing"), "{error}");
        assert_eq!(error.kind(), crate::diag::ErrorKind::Unsupported);
    }
}
