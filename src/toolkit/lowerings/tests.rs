//! The built-in lowerings against the kernels of their rows: on arguments that are drawn, right and wrong ones, arranged for CPUs and
//! for GPUs, on each engine that is here. What a lowering stores has the op's dtype, sizes, strides and elements; where the op is
//! an error the kernel is one.

use super::{lowered_module, silent};
use crate::backends::{Backend, by_name};
use crate::dialects::shapes::of_tensor;
use crate::dialects::{Op, Registry};
use crate::eval;
use crate::ir::{Dim, TensorType};
use crate::lowering::Target;
use crate::rewrite::check::{Numbers, Random};
use crate::runtime::Program;
use crate::tensor::{DType, Tensor, view};
use crate::value::Value;
use std::sync::Arc;

/// Calls that are drawn of each op.
const DRAWN: usize = 60;

#[derive(Clone, Copy, PartialEq)]
enum Bits {
    /// The same bits.
    Same,
    /// Equal where sums are exact, else up to rounding.
    Rounded,
}

fn engines() -> Vec<Arc<dyn Backend>> {
    let interp = by_name("interp").expect("is built in");
    std::iter::once(interp).chain(by_name("llvm").ok()).collect()
}

/// Draws calls and compares them; at least half of those that the op accepts must be lowered.
fn compare(op: [&str; 2], lowering: &str, bits: Bits, draw: impl Fn(&mut Random) -> Vec<Value>) {
    let registry = Registry::builtin();
    let row = registry.find(op[0], op[1]).expect("a row").clone();
    let mut random = Random::new(7);
    let (mut accepted, mut compared) = (0, 0);
    for n in 0..DRAWN {
        let values = draw(&mut random);
        let expected = eval::call(&row, &values, Default::default(), &silent(&registry));
        accepted += usize::from(expected.is_ok());
        let machine = if n % 4 == 3 { Target::Gpu } else { Target::Cpu };
        let known = if n % 3 == 2 { unknown_sizes } else { of_tensor };
        let module = lowered_module(&registry, &row, lowering, &values, known, machine).expect("no error");
        let Ok(module) = module else { continue };
        compared += usize::from(expected.is_ok());
        for engine in engines() {
            let name = engine.name();
            let program = Program::with(module.clone(), None, Arc::clone(&registry)).on(engine);
            let tensors = values.iter().filter(|v| matches!(v, Value::Tensor(_))).cloned().collect();
            let found = program.run("f", tensors, &silent(&registry));
            match (&expected, &found) {
                (Ok(expected), Ok(found)) => same(&row, &values, &expected[0], found, bits, name),
                (Err(_), Err(_)) => {}
                _ => panic!("{} on {name}: {values:?}\n{expected:?}\n{found:?}", row.full_name()),
            }
        }
    }
    assert!(accepted > DRAWN / 3 && 2 * compared >= accepted, "{}: {accepted}, {compared}", row.full_name());
}

fn unknown_sizes(tensor: &Tensor) -> TensorType {
    let sizes = Some(vec![Dim::Unknown; tensor.rank()].into());
    TensorType { sizes, strides: None, ..of_tensor(tensor) }
}

fn same(row: &Op, values: &[Value], expected: &Value, found: &Value, bits: Bits, engine: &str) {
    let (Value::Tensor(a), Value::Tensor(b)) = (expected, found) else { panic!("{found:?} is not a tensor") };
    let context = format!("{} on {engine}: {values:?}\n{a:?}\n{b:?}", row.full_name());
    assert_eq!((a.dtype(), a.sizes()), (b.dtype(), b.sizes()), "{context}");
    let strides =
        |t: &Tensor| t.sizes().into_iter().zip(t.strides()).filter(|(size, _)| *size > 1).collect::<Vec<_>>();
    assert!(a.numel() == 0 || strides(a) == strides(b), "strides: {context}");
    let (a, b) = (a.to_scalars().expect("elements"), b.to_scalars().expect("elements"));
    for (a, b) in a.iter().zip(&b) {
        let (a, b) = (a.to_f64(), b.to_f64());
        let close = (a - b).abs() <= 1e-4 * (1.0 + a.abs().max(b.abs()));
        let equal = match bits {
            Bits::Same => a.to_bits() == b.to_bits(),
            Bits::Rounded => {
                a == b
                    || (a.is_nan() && b.is_nan())
                    || (a.fract() != 0.0 && close)
                    || (b.fract() != 0.0 && close)
            }
        };
        assert!(equal, "{a} and {b}: {context}");
    }
}

fn size(random: &mut Random) -> i64 {
    if random.percent(8) { 0 } else { random.range(1, 5) }
}

/// Small whole numbers, whose sums are exact, or others.
fn tensor(random: &mut Random, dtype: DType, sizes: &[i64]) -> Tensor {
    if dtype.is_floating() && random.percent(40) {
        return random.tensor(dtype, sizes, Numbers::Moderate).expect("fits");
    }
    let count = sizes.iter().product::<i64>();
    let whole: Vec<i64> = (0..count).map(|_| random.range(-3, 4)).collect();
    Tensor::from_vec(&whole, sizes).and_then(|t| t.to_dtype(dtype)).expect("fits")
}

fn float(random: &mut Random) -> DType {
    *random.pick(&[DType::F32, DType::F64])
}

fn number(random: &mut Random) -> DType {
    *random.pick(&[
        DType::F32,
        DType::F64,
        DType::F16,
        DType::BF16,
        DType::I64,
        DType::I32,
        DType::U8,
        DType::Bool,
    ])
}

/// Places from 0 to a size, few of them outside.
fn places(random: &mut Random, sizes: &[i64], bound: i64) -> Tensor {
    let wild = random.percent(12);
    let count = sizes.iter().product::<i64>();
    let place = |random: &mut Random| match random.percent(20) && wild {
        true => *random.pick(&[-1, bound, bound + 3]),
        false => random.range(0, (bound - 1).max(0)),
    };
    let all: Vec<i64> = (0..count).map(|_| place(random)).collect();
    let dtype = *random.pick(&[DType::I64, DType::I32]);
    Tensor::from_vec(&all, sizes).and_then(|t| t.to_dtype(dtype)).expect("fits")
}

fn sizes(random: &mut Random, rank: usize) -> Vec<i64> {
    (0..rank).map(|_| size(random)).collect()
}

/// Mostly a size, at times another.
fn about(random: &mut Random, size: i64) -> i64 {
    if random.percent(6) { size + 1 } else { size }
}

fn values<const N: usize>(tensors: [Tensor; N]) -> Vec<Value> {
    tensors.map(Value::Tensor).to_vec()
}

#[test]
fn products_agree_with_their_kernels() {
    let matrices = |random: &mut Random, first: &[i64], second: &[i64]| {
        let (dtype, [m, n, k]) = (float(random), [0; 3].map(|_| size(random)));
        let rows = about(random, k);
        let (a, b) = ([first, &[m, k]].concat(), [second, &[rows, n]].concat());
        values([tensor(random, dtype, &a), tensor(random, dtype, &b)])
    };
    compare(["aten::mm", ""], "mm-by-nest", Bits::Rounded, |r| matrices(r, &[], &[]));
    compare(["aten::bmm", ""], "bmm-by-nest", Bits::Rounded, |r| {
        let batches = size(r);
        let others = about(r, batches);
        matrices(r, &[batches], &[others])
    });
    compare(["aten::matmul", ""], "matmul-by-nest", Bits::Rounded, |r| {
        let (p, q) = (size(r), size(r));
        let shapes: [[&[i64]; 2]; 7] =
            [[&[], &[]], [&[p], &[]], [&[p, q], &[]], [&[p], &[p]], [&[1], &[p]], [&[p], &[1]], [&[], &[p]]];
        let [first, second] = *r.pick(&shapes);
        matrices(r, first, second)
    });
}

#[test]
fn layers_and_sums_of_products_agree_with_their_kernels() {
    compare(["aten::linear", ""], "linear-by-nest", Bits::Rounded, |r| {
        let (dtype, n, k) = (float(r), size(r), size(r));
        let leading = r.below(3);
        let mut input = sizes(r, leading);
        input.push(k);
        let columns = about(r, k);
        let mut all = values([tensor(r, dtype, &input), tensor(r, dtype, &[n, columns])]);
        all.push(if r.percent(50) { Value::None } else { Value::Tensor(tensor(r, dtype, &[n])) });
        all
    });
    compare(["aten::addmm", ""], "addmm-by-nest", Bits::Rounded, |r| {
        let (dtype, [m, n, k]) = (float(r), [0; 3].map(|_| size(r)));
        let own = match r.below(6) {
            0 => vec![],
            1 => vec![1],
            2 => vec![n],
            3 => vec![m, 1],
            4 => vec![1, n],
            _ => vec![m, n],
        };
        let mut all = values([tensor(r, dtype, &own), tensor(r, dtype, &[m, k]), tensor(r, dtype, &[k, n])]);
        for _ in 0..2 {
            all.push(r.pick(&[Value::Int(1), Value::Int(0), Value::Int(2), Value::Float(0.5)]).clone());
        }
        all
    });
}

/// Input, weight, bias, stride, padding, dilation, and groups.
fn convolution(random: &mut Random, dims: usize) -> Vec<Value> {
    let dtype = float(random);
    let (groups, per_group, more) = (random.range(1, 2), random.range(1, 3), random.range(1, 2));
    let channels = about(random, groups * per_group);
    let outputs = about(random, groups * more);
    let mut input = vec![size(random), channels];
    let mut weight = vec![outputs, per_group];
    for _ in 0..dims {
        input.push(if random.percent(4) { 0 } else { random.range(2, 7) });
        weight.push(random.range(1, 3));
    }
    let mut image = tensor(random, dtype, &input);
    if dims == 2 && random.percent(25) {
        let [n, c, h, w] = input[..] else { panic!("an image") };
        let last = tensor(random, dtype, &[n, h, w, c]);
        image = last.look(|l| view::permute(l, &[0, 3, 1, 2])).expect("four dimensions");
    }
    let bias = random.percent(50).then(|| about(random, outputs));
    let ints = |random: &mut Random, low: i64, high: i64| {
        let count = if random.percent(30) { 1 } else { dims };
        Value::ints((0..count).map(|_| random.range(low, high)).collect::<Vec<_>>())
    };
    vec![
        Value::Tensor(image),
        Value::Tensor(tensor(random, dtype, &weight)),
        bias.map_or(Value::None, |n| Value::Tensor(tensor(random, dtype, &[n]))),
        ints(random, 1, 3),
        ints(random, 0, 2),
        ints(random, 1, 2),
        Value::Int(groups),
    ]
}

#[test]
fn convolutions_agree_with_their_kernels() {
    for dims in 1..=3 {
        let (op, lowering) = (format!("aten::conv{dims}d"), format!("conv{dims}d-by-nest"));
        compare([&op, ""], &lowering, Bits::Rounded, |r| convolution(r, dims));
    }
    compare(["aten::conv2d", "padding"], "conv2d-by-nest", Bits::Rounded, |r| {
        let mut all = convolution(r, 2);
        all[4] = Value::str(*r.pick(&["same", "valid"]));
        if r.percent(80) {
            all[3] = Value::ints([1]);
        }
        all
    });
    compare(["aten::convolution", ""], "convolution-by-nest", Bits::Rounded, |r| {
        let dims = 1 + r.below(3);
        let mut all = convolution(r, dims);
        let groups = all.pop();
        all.extend([Value::Bool(false), Value::ints(vec![0; dims])]);
        all.extend(groups);
        all
    });
}

/// A tensor, a dimension, and an index of its rank, no larger but along the dimension.
fn indexed(random: &mut Random) -> (Vec<Value>, Vec<i64>, DType) {
    let (dtype, rank) = (number(random), random.below(4));
    let own = sizes(random, rank);
    let dim = random.below(rank.max(1));
    let mut shape: Vec<i64> = own.iter().map(|n| random.range((*n - 1).max(0), *n)).collect();
    if let Some(along) = shape.get_mut(dim) {
        *along = size(random);
    }
    if random.percent(5)
        && let Some(first) = shape.first_mut()
    {
        *first += 2;
    }
    let bound = own.get(dim).copied().unwrap_or(1);
    let signed = if random.percent(30) { dim as i64 - rank.max(1) as i64 } else { dim as i64 };
    let index = places(random, &shape, bound);
    let all = vec![Value::Tensor(tensor(random, dtype, &own)), Value::Int(signed), Value::Tensor(index)];
    (all, shape, dtype)
}

#[test]
fn what_is_gathered_is_what_the_kernels_gather() {
    compare(["aten::gather", ""], "gather-by-load", Bits::Same, |r| {
        let (mut all, ..) = indexed(r);
        all.push(Value::Bool(false));
        all
    });
    compare(["aten::index_select", ""], "index-select-by-load", Bits::Same, |r| {
        let rank = 1 + r.below(3);
        let (dtype, own, dim) = (number(r), sizes(r, rank), r.below(rank));
        let count = if r.percent(15) { vec![] } else { vec![size(r)] };
        let index = places(r, &count, own[dim]);
        vec![Value::Tensor(tensor(r, dtype, &own)), Value::Int(dim as i64), Value::Tensor(index)]
    });
    compare(["aten::embedding", ""], "embedding-by-load", Bits::Same, |r| {
        let (dtype, rows, width, rank) = (number(r), size(r), size(r), r.below(3));
        let shape = sizes(r, rank);
        let all = values([tensor(r, dtype, &[rows, width]), places(r, &shape, rows)]);
        [all, vec![Value::Int(-1), Value::Bool(false), Value::Bool(false)]].concat()
    });
}

#[test]
fn what_is_scattered_is_what_the_kernels_scatter() {
    let scattered = |r: &mut Random| {
        let (mut all, shape, dtype) = indexed(r);
        let source: Vec<i64> = shape.iter().map(|n| n + i64::from(r.percent(20))).collect();
        all.push(Value::Tensor(tensor(r, dtype, &source)));
        all
    };
    compare(["aten::scatter_add", ""], "scatter-add-by-accumulate", Bits::Same, scattered);
    compare(["aten::scatter_reduce", "two"], "scatter-sum-by-accumulate", Bits::Same, |r| {
        [scattered(r), vec![Value::str("sum"), Value::Bool(r.percent(50))]].concat()
    });
    compare(["aten::index_add", ""], "index-add-by-accumulate", Bits::Same, |r| {
        let rank = 1 + r.below(3);
        let (dtype, own, dim) = (number(r), sizes(r, rank), r.below(rank));
        let mut shape = own.clone();
        shape[dim] = size(r);
        let count = about(r, shape[dim]);
        let index = places(r, &[count], own[dim]);
        let (tensor, source) = (tensor(r, dtype, &own), tensor(r, dtype, &shape));
        vec![
            Value::Tensor(tensor),
            Value::Int(dim as i64),
            Value::Tensor(index),
            Value::Tensor(source),
            Value::Int(1),
        ]
    });
    compare(["aten::bincount", ""], "bincount-by-accumulate", Bits::Same, |r| {
        let n = [size(r)];
        vec![Value::Tensor(places(r, &n, 6)), Value::None, Value::Int(r.range(0, 9))]
    });
}

#[test]
fn signs_are_bits() {
    let any =
        |r: &mut Random, dtype: DType, sizes: &[i64]| r.tensor(dtype, sizes, Numbers::Any).expect("fits");
    let dtypes = [DType::F32, DType::F64, DType::F16, DType::BF16];
    compare(["aten::signbit", ""], "signbit-by-bitcast", Bits::Same, |r| {
        let (dtype, rank) = (*r.pick(&dtypes), r.below(3));
        let shape = sizes(r, rank);
        values([any(r, dtype, &shape)])
    });
    compare(["aten::copysign", "Tensor"], "copysign-by-bitcast", Bits::Same, |r| {
        let (dtype, rank) = (*r.pick(&dtypes), r.below(3));
        let shape = sizes(r, rank);
        values([any(r, dtype, &shape), any(r, dtype, &shape)])
    });
}
