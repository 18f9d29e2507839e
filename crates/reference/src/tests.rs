//! Answers of PyTorch, recorded by hand for small arguments: the oracle is not its own judge.

use super::{Outside, call};
use flambeau_base::tensor::{DType, Layout, Scalar, Tensor};
use flambeau_base::value::Value;

fn ints(items: &[i64], sizes: &[i64]) -> Value {
    Value::Tensor(Tensor::from_vec(items, sizes).expect("valid"))
}

fn floats(items: &[f32], sizes: &[i64]) -> Value {
    Value::Tensor(Tensor::from_vec(items, sizes).expect("valid"))
}

/// The only result as dtype, sizes and numbers.
fn one(name: &str, overload: &str, arguments: &[Value]) -> (DType, Vec<i64>, Vec<f64>) {
    let found = call(name, overload, arguments).expect("is defined");
    shown(&found[0])
}

fn shown(value: &Value) -> (DType, Vec<i64>, Vec<f64>) {
    let Value::Tensor(t) = value else { panic!("{value:?} is not a tensor") };
    let items = t.to_scalars().expect("readable");
    (t.dtype(), t.sizes().to_vec(), items.iter().map(|x| Scalar::to_f64(*x)).collect())
}

#[test]
fn numbers_are_promoted_and_rounded() {
    let half = floats(&[0.5], &[]);
    let sum = one("aten::add", "Tensor", &[ints(&[1, 2], &[2]), half, Value::Int(1)]);
    assert_eq!(sum, (DType::F32, vec![2], vec![1.5, 2.5]));
    let wrapped = one(
        "aten::to",
        "dtype",
        &[ints(&[300], &[1]), Value::Int(0), false.into(), false.into(), Value::None],
    );
    assert_eq!(wrapped, (DType::U8, vec![1], vec![44.0]));
    let rounded = one("aten::round", "", &[floats(&[0.5, 1.5, -0.5], &[3])]);
    assert_eq!(rounded.2, [0.0, 2.0, -0.0]);
    let rest = one("aten::remainder", "Scalar", &[ints(&[1, -7], &[2]), Value::Int(3)]);
    assert_eq!(rest.2, [1.0, 2.0]);
}

#[test]
fn rows_are_reduced() {
    let x = floats(&[1.0, -2.0, 3.0, 0.5, f32::NAN, -1.0], &[2, 3]);
    let found = call("aten::max", "dim", &[x, Value::Int(1), Value::Bool(false)]).expect("is defined");
    let (_, _, values) = shown(&found[0]);
    assert!(values[0] == 3.0 && values[1].is_nan());
    assert_eq!(shown(&found[1]), (DType::I64, vec![2], vec![2.0, 1.0]));
    let sum = one("aten::sum", "", &[ints(&[1, 2, 3, 4], &[2, 2]), Value::None]);
    assert_eq!(sum, (DType::I64, vec![], vec![10.0]));
    let mean = call("aten::mean", "", &[ints(&[1], &[1]), Value::None]);
    assert!(matches!(mean, Err(Outside::Refused(_))), "{mean:?}");
}

#[test]
fn elements_are_taken_from_other_places() {
    let x = Tensor::from_vec(&[1i64, 2, 3, 4], &[4]).expect("valid");
    // Seen transposed.
    let turned =
        Value::Tensor(x.with_layout(Layout::strided(&[2, 2], &[1, 2], 0).expect("valid")).expect("fits"));
    assert_eq!(one("aten::t", "", &[turned]).2, [1.0, 2.0, 3.0, 4.0]);
    let x = || ints(&[1, 2, 3, 4], &[2, 2]);
    assert_eq!(one("aten::roll", "", &[x(), Value::ints([1]), Value::ints([1])]).2, [2.0, 1.0, 4.0, 3.0]);
    let padded = [x(), Value::ints([1, 0, -1, 1]), Value::str("constant"), Value::Float(9.0)];
    assert_eq!(one("aten::pad", "", &padded), (DType::I64, vec![2, 3], vec![9.0, 3.0, 4.0, 9.0, 9.0, 9.0]));
    let part = [ints(&[5, 6, 7], &[3]), Value::Int(0), Value::Int(0), Value::Int(9), Value::Int(2)];
    assert_eq!(one("aten::slice", "Tensor", &part).2, [5.0, 7.0]);
    let parts = Value::list(
        flambeau_base::ir::Type::tensor(),
        vec![ints(&[1], &[1]), floats(&[], &[0]), floats(&[2.5], &[1])],
    );
    assert_eq!(one("aten::cat", "", &[parts, Value::Int(0)]), (DType::F32, vec![2], vec![1.0, 2.5]));
}

#[test]
fn products_are_summed() {
    let (c, a, b) =
        (floats(&[1.0, 2.0], &[2]), floats(&[1.0, 2.0], &[1, 2]), floats(&[3.0, 4.0, 5.0, 6.0], &[2, 2]));
    let sum = one("aten::addmm", "", &[c, a, b, Value::Int(2), Value::Int(1)]);
    assert_eq!(sum, (DType::F32, vec![1, 2], vec![15.0, 20.0]));
    let image = floats(&[0.0, 1.0, 2.0, 3.0, 4.0], &[1, 5]);
    let window = [Value::ints([2]), Value::ints([1]), Value::ints([1]), Value::Int(1)];
    let arguments = [&[image, floats(&[1.0, -1.0], &[1, 1, 2]), Value::None], &window[..]].concat();
    assert_eq!(one("aten::conv1d", "", &arguments), (DType::F32, vec![1, 3], vec![0.0, -1.0, -1.0]));
}

#[test]
fn what_is_not_defined_has_no_answer() {
    assert_eq!(call("aten::svd", "", &[floats(&[1.0], &[1, 1])]).err(), Some(Outside::Unknown));
    let large = [floats(&[1e30], &[1]), Value::Int(3), false.into(), false.into(), Value::None];
    assert!(matches!(call("aten::to", "dtype", &large), Err(Outside::Open(_))));
    let apart = [ints(&[1, 2], &[2]), ints(&[1, 2, 3], &[3]), Value::Int(1)];
    assert!(matches!(call("aten::add", "Tensor", &apart), Err(Outside::Refused(_))));
}
