//! Groups that combine along rows: every engine against plain sums in double precision.

use super::groups::run;
use super::*;
use crate::backends::FusedGroup;
use crate::dialects::Registry;
use crate::ir::{Graph, parse_graph};

const HEAD: &str = "
  %last : int[] = prim::Constant[value=[-1]]()
  %dim : int = prim::Constant[value=-1]()
  %keep : bool = prim::Constant[value=1]()
  %drop : bool = prim::Constant[value=0]()
  %none : NoneType = prim::Constant()
  %one : int = prim::Constant[value=1]()
  %eps : float = prim::Constant[value=1e-05]()
";

fn graph_of(inputs: &str, body: &str) -> Graph {
    parse_graph(&format!("graph({inputs}):{HEAD}{body}")).expect("parses")
}

const NORM: &str = "
  %m : Tensor = aten::mean(%x, %last, %keep, %none)
  %d : Tensor = aten::sub(%x, %m, %one)
  %q : Tensor = aten::mul(%d, %d)
  %v : Tensor = aten::mean(%q, %last, %keep, %none)
  %e : Tensor = aten::add(%v, %eps, %one)
  %r : Tensor = aten::rsqrt(%e)
  %n : Tensor = aten::mul(%d, %r)
  %s : Tensor = aten::mul(%n, %w)
  %y : Tensor = aten::add(%s, %b, %one)
  return (%y)
";

/// Finite numbers, none of them large.
fn calm(sizes: &[i64], seed: u32) -> Tensor {
    let all = floats(sizes.iter().product::<i64>() as usize, seed);
    let tame: Vec<f32> = all.into_iter().map(|x| if x.abs() < 30.0 { x } else { 0.25 }).collect();
    Tensor::from_vec(&tame, sizes).expect("fits")
}

fn wide(t: &Tensor) -> Vec<f64> {
    t.to_vec_as::<f64>().expect("converts")
}

fn near(name: &str, got: &[f64], want: &[f64], bound: f64) {
    assert_eq!(got.len(), want.len(), "{name}");
    for (n, (g, w)) in got.iter().zip(want).enumerate() {
        let close = (g.is_nan() && w.is_nan()) || g == w || (g - w).abs() <= bound * w.abs().max(1.0);
        assert!(close, "{name}: element {n} is {g:e}, should be {w:e}");
    }
}

#[test]
fn a_layer_norm_of_separate_ops_is_one_kernel() {
    for (rows, length) in [(1, 1), (3, 7), (2, 31), (5, 32), (4, 33), (3, 64), (2, 197), (300, 130)] {
        let (x, w, b) = (calm(&[rows, length], 1), calm(&[length], 2), calm(&[length], 3));
        let inputs = [&x, &w, &b].map(|t| Value::Tensor(t.clone()));
        let group = graph_of("%x : Tensor, %w : Tensor, %b : Tensor", NORM);
        let interp =
            FusedGroup::new(Arc::new(group.clone()), by_name("interp").expect("there"), Arc::default());
        assert_eq!(interp.loops(&inputs, &Registry::builtin()).expect("lowers").len(), 1);
        let (x, w, b) = (wide(&x), wide(&w), wide(&b));
        let mut want = Vec::new();
        for row in x.chunks(length as usize) {
            let count = row.len() as f64;
            let mean = row.iter().sum::<f64>() / count;
            let var = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
            let scale = 1.0 / (var + 1e-5).sqrt();
            want.extend(row.iter().zip(w.iter().zip(&b)).map(|(x, (w, b))| (x - mean) * scale * w + b));
        }
        for answer in run(group, &inputs) {
            near(&format!("{rows}x{length}"), &answer[0].2, &want, 2e-4);
        }
    }
}

#[test]
fn softmax_of_scaled_and_masked_rows() {
    let body = "
  %z : Tensor = aten::add(%x, %mask, %one)
  %p : Tensor = aten::softmax(%z, %dim, %none)
  %l : Tensor = aten::log_softmax(%z, %dim, %none)
  return (%p, %l)
";
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    for length in [1i64, 5, 32, 40, 100] {
        let x = calm(&[6, length], 4);
        let mut mask = vec![0f32; 6 * length as usize];
        mask[0] = -inf;
        mask[length as usize..2 * length as usize].fill(-inf);
        mask[3 * length as usize] = nan;
        mask[4 * length as usize] = inf;
        let mask = Tensor::from_vec(&mask, &[6, length]).expect("fits");
        let z: Vec<f64> = wide(&x).iter().zip(wide(&mask)).map(|(x, m)| x + m).collect();
        let (mut soft, mut log) = (Vec::new(), Vec::new());
        for row in z.chunks(length as usize) {
            let most = row
                .iter()
                .fold(-f64::INFINITY, |m, x| if x.is_nan() || m.is_nan() { f64::NAN } else { m.max(*x) });
            let total: f64 = row.iter().map(|x| (x - most).exp()).sum();
            soft.extend(row.iter().map(|x| (x - most).exp() / total));
            log.extend(row.iter().map(|x| (x - most) - total.ln()));
        }
        let group = graph_of("%x : Tensor, %mask : Tensor", body);
        for answer in run(group, &[Value::Tensor(x), Value::Tensor(mask)]) {
            near(&format!("softmax {length}"), &answer[0].2, &soft, 1e-5);
            near(&format!("log softmax {length}"), &answer[1].2, &log, 1e-5);
        }
    }
}

#[test]
fn numbers_of_rows_are_stored_once_a_row() {
    let body = "
  %y : Tensor = aten::mul(%x, %x)
  %sum : Tensor = aten::sum(%y, %last, %drop, %none)
  %most : Tensor = aten::amax(%x, %last, %keep)
  %least : Tensor = aten::amin(%x, %last, %drop)
  %var : Tensor = aten::var(%x, %last, %keep, %drop)
  return (%y, %sum, %most, %least, %var)
";
    let x = tensor(&[4, 3, 75], 9);
    let group = graph_of("%x : Tensor", body);
    let rows: Vec<Vec<f64>> = wide(&x).chunks(75).map(<[f64]>::to_vec).collect();
    let fold = |row: &Vec<f64>, pick: fn(f64, f64) -> f64| {
        row.iter()
            .copied()
            .reduce(|m, x| if m.is_nan() || x.is_nan() { f64::NAN } else { pick(m, x) })
            .expect("some")
    };
    let want: [Vec<f64>; 2] =
        [rows.iter().map(|r| fold(r, f64::max)).collect(), rows.iter().map(|r| fold(r, f64::min)).collect()];
    for answer in run(group, &[Value::Tensor(x)]) {
        let sizes: Vec<&[i64]> = answer.iter().map(|(sizes, ..)| sizes.as_slice()).collect();
        assert_eq!(sizes, [&[4i64, 3, 75][..], &[4, 3], &[4, 3, 1], &[4, 3], &[4, 3]]);
        near("amax", &answer[2].2, &want[0], 0.0);
        near("amin", &answer[3].2, &want[1], 0.0);
    }
}

#[test]
fn integers_sum_to_int64_and_have_no_mean() {
    let x = Tensor::from_vec(&(0..90).map(|i| i * 7 - 100).collect::<Vec<i32>>(), &[2, 45]).expect("fits");
    let body = "
  %y : Tensor = aten::add(%x, %one, %one)
  %sum : Tensor = aten::sum(%y, %last, %drop, %none)
  %most : Tensor = aten::amax(%y, %last, %drop)
  return (%sum, %most)
";
    let rows: Vec<i64> = (0..90).map(|i| i * 7 - 99).collect();
    let sums: Vec<f64> = rows.chunks(45).map(|r| r.iter().sum::<i64>() as f64).collect();
    for answer in run(graph_of("%x : Tensor", body), &[Value::Tensor(x.clone())]) {
        assert_eq!((answer[0].1, &answer[0].2), (I64, &sums));
        assert_eq!((answer[1].1, answer[1].2.as_slice()), (I32, &[209.0, 524.0][..]));
    }
    let error = refusal(NORM, "%x : Tensor, %w : Tensor, %b : Tensor", &[x.clone(), x.clone(), x]);
    assert!(error.contains("aten::mean"), "{error}");
}

/// Why a group does not run as one.
fn refusal(body: &str, inputs: &str, tensors: &[Tensor]) -> String {
    let group =
        FusedGroup::new(Arc::new(graph_of(inputs, body)), by_name("interp").expect("there"), Arc::default());
    let values: Vec<Value> = tensors.iter().cloned().map(Value::Tensor).collect();
    let error = group.run(&values, &Registry::builtin()).expect_err("refused");
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    error.message().to_string()
}

#[test]
fn what_lies_in_no_rows_is_refused_by_name() {
    let sum = "
  %y : Tensor = aten::mul(%x, %x)
  %m : Tensor = aten::sum(%y, %last, %keep, %none)
  %z : Tensor = aten::div(%y, %m)
  return (%z)
";
    let turned =
        calm(&[6, 5], 1).with_layout(Layout::strided(&[5, 6], &[1, 5], 0).expect("valid")).expect("inside");
    let error = refusal(sum, "%x : Tensor", &[turned]);
    assert!(error.contains("are not in row-major order"), "{error}");
    let error = refusal(sum, "%x : Tensor", &[calm(&[3, 0], 1)]);
    assert!(error.contains("of no elements"), "{error}");
    let first = sum.replace("%last", "%one");
    let error = refusal(&first, "%x : Tensor", &[calm(&[3, 4, 2], 1)]);
    assert!(error.contains("dim"), "{error}");
    let wider = sum.replace("aten::div(%y, %m)", "aten::div(%w, %m)");
    let error = refusal(&wider, "%x : Tensor, %w : Tensor", &[calm(&[3, 4], 1), calm(&[3, 6], 2)]);
    assert!(error.contains("other sizes"), "{error}");
    let mixed = sum.replace("%keep", "%drop");
    let error = refusal(&mixed, "%x : Tensor", &[calm(&[4, 4], 1)]);
    assert!(error.contains("dimensions of a reduction are missing"), "{error}");
}
