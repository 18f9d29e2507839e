//! Pooling, rows, attention and what stands between layers, against their definitions, for all instructions of the machine.

use super::attention::*;
use super::channels::*;
use super::epilogue::*;
use super::matrix::PackedMatrix;
use super::pool::*;
use super::rows::*;
use super::shape::Images;
use super::tests::{ACTIVATIONS, Random, activated};
use super::vector::{Isa, with};

fn near(got: &[f32], wanted: &[f64], what: &str) {
    assert_eq!(got.len(), wanted.len(), "{what}");
    for (at, (got, wanted)) in got.iter().zip(wanted).enumerate() {
        let error = (f64::from(*got) - wanted).abs();
        let both = got.is_nan() && wanted.is_nan();
        assert!(both || error <= 2e-6 + 2e-6 * wanted.abs(), "{what}: {got} for {wanted} at {at}");
    }
}

#[test]
fn activations_are_within_their_tolerance_and_keep_nan() {
    let mut x: Vec<f32> = (-4000..4000).map(|n| n as f32 / 100.0).collect();
    x.extend([0.0, -0.0, 1e-30, -1e-30, 100.0, -100.0, 1e10, -1e10]);
    for activation in ACTIVATIONS {
        let epilogue = Epilogue { activation, ..Epilogue::default() };
        for isa in Isa::supported() {
            let mut out = vec![0.0; x.len()];
            apply_with(isa, (&x, 1), (x.len(), 1), &epilogue, &mut out, 1).expect("it fits");
            let wanted: Vec<f64> = x.iter().map(|x| activated(activation, f64::from(*x))).collect();
            near(&out, &wanted, &format!("{activation:?} {isa:?}"));
            let mut out = [0.0; 3];
            let specials = [f32::NAN, -0.0, f32::INFINITY];
            apply_with(isa, (&specials, 1), (3, 1), &epilogue, &mut out, 1).expect("it fits");
            assert!(out[0].is_nan(), "{activation:?} {isa:?}");
            let odd = !matches!(activation, Activation::HardSigmoid | Activation::Sigmoid);
            assert!(
                !odd || (out[1] == 0.0 && out[1].is_sign_negative()),
                "{activation:?} {isa:?}: {}",
                out[1]
            );
            let bounded = matches!(
                activation,
                Activation::HardSigmoid | Activation::Sigmoid | Activation::Tanh | Activation::Clamp(..)
            );
            assert!(out[2] == f32::INFINITY || bounded, "{activation:?} {isa:?}: {}", out[2]);
        }
    }
}

#[test]
fn matrices_multiply_in_both_orders() {
    let mut random = Random(4);
    let (rows, inputs, outputs) = (5, 70, 45);
    let (x, w) = (random.floats(rows * inputs), random.floats(inputs * outputs));
    let mut turned = vec![0.0; w.len()];
    transpose(&w, 1, outputs, inputs, &mut turned).expect("it fits");
    let wanted: Vec<f64> = (0..rows * outputs)
        .map(|at| {
            (0..inputs)
                .map(|k| f64::from(x[at / outputs * inputs + k]) * f64::from(w[at % outputs * inputs + k]))
                .sum()
        })
        .collect();
    let plain = PackedMatrix::new(outputs, inputs, &w).expect("it fits");
    let columns = PackedMatrix::from_columns(inputs, outputs, &turned).expect("it fits");
    assert_eq!((columns.inputs(), columns.outputs()), (inputs, outputs));
    for matrix in [plain, columns] {
        let mut out = vec![0.0; rows * outputs];
        matrix.run((&x, rows, inputs), &Epilogue::default(), &mut out, outputs).expect("it fits");
        near(&out, &wanted, "product");
        // No rows give no results.
        matrix.run((&[], 0, inputs), &Epilogue::default(), &mut [], outputs).expect("there is nothing to do");
    }
    assert!(PackedMatrix::new(outputs, inputs, &w[1..]).is_err());
}

/// A pooling by its definition: PyTorch's loops.
fn pooled(p: &Pooling, x: &Images<'_>, channels: usize) -> Vec<f64> {
    let r = p.result(x.sizes).expect("large enough");
    let at = |b: usize, h: usize, w: usize, c: usize| {
        f64::from(x.values[((b * x.sizes[0] + h) * x.sizes[1] + w) * x.pitch + c])
    };
    let mut out = Vec::new();
    for n in 0..x.batch * r[0] * r[1] * channels {
        let (c, pixel) = (n % channels, n / channels);
        let (b, place) = (pixel / r[1] / r[0], [pixel / r[1] % r[0], pixel % r[1]]);
        let (mut values, mut counted) = (Vec::new(), 1);
        match *p {
            Pooling::Adaptive(_) => {
                let range =
                    |i: usize| place[i] * x.sizes[i] / r[i]..((place[i] + 1) * x.sizes[i]).div_ceil(r[i]);
                range(0).for_each(|h| range(1).for_each(|w| values.push(at(b, h, w, c))));
                counted = values.len();
            }
            Pooling::Windows { kernel, stride, padding, dilation, .. } => {
                for i in 0..2 {
                    let start = place[i] * stride[i];
                    counted *= (start + kernel[i]).min(x.sizes[i] + 2 * padding[i]) - start;
                }
                for k in 0..kernel[0] * kernel[1] {
                    let h = (place[0] * stride[0] + k / kernel[1] * dilation[0]).wrapping_sub(padding[0]);
                    let w = (place[1] * stride[1] + k % kernel[1] * dilation[1]).wrapping_sub(padding[1]);
                    if h < x.sizes[0] && w < x.sizes[1] {
                        values.push(at(b, h, w, c));
                    }
                }
            }
        }
        let sum: f64 = values.iter().sum();
        out.push(match *p {
            Pooling::Windows { kind: PoolKind::Max, .. } => values
                .iter()
                .fold(f64::NEG_INFINITY, |a, b| if a.is_nan() || b.is_nan() { f64::NAN } else { a.max(*b) }),
            Pooling::Windows { kind: PoolKind::Average { divisor: Some(d), .. }, .. } => sum / d as f64,
            Pooling::Windows { kind: PoolKind::Average { padding: false, .. }, .. } => {
                sum / values.len() as f64
            }
            _ => sum / counted as f64,
        });
    }
    out
}

#[test]
fn poolings_of_random_shapes_are_right() {
    let mut random = Random(5);
    for round in 0..if cfg!(debug_assertions) { 40 } else { 400 } {
        let average = |padding, divisor| PoolKind::Average { padding, divisor };
        let kinds = [PoolKind::Max, average(true, None), average(false, None), average(true, Some(5))];
        let kind = kinds[random.below(4)];
        let kernel = [random.from(1, 4), random.from(1, 4)];
        let windows = Pooling::Windows {
            kind,
            kernel,
            stride: [random.from(1, 3), random.from(1, 3)],
            padding: kernel.map(|k| random.below(k / 2 + 1)),
            dilation: if kind == PoolKind::Max { [random.from(1, 2), 1] } else { [1; 2] },
            ceil: random.below(2) == 0,
        };
        let p =
            if round % 4 == 0 { Pooling::Adaptive([random.from(1, 9), random.from(1, 9)]) } else { windows };
        let (channels, sizes) = (random.from(1, 40), [random.from(8, 12), random.from(8, 12)]);
        let pitch = channels + random.below(4);
        let mut values = random.floats(2 * sizes[0] * sizes[1] * pitch);
        values[7] = if kind == PoolKind::Max && round % 3 == 0 { f32::NAN } else { 0.5 };
        let images = Images { values: &values, batch: 2, sizes, pitch };
        let wanted = pooled(&p, &images, channels);
        for isa in Isa::supported() {
            let mut out = vec![0.0; wanted.len()];
            p.run_with(isa, images, channels, &mut out, channels).expect("it fits");
            for (got, wanted) in out.iter().zip(&wanted) {
                let same = (got.is_nan() && wanted.is_nan()) || (f64::from(*got) - wanted).abs() < 1e-5;
                assert!(same, "{got} for {wanted}: {p:?} {isa:?} {sizes:?}");
            }
        }
    }
}

#[test]
fn rows_are_normalized() {
    let mut random = Random(6);
    for width in [1, 5, 16, 63, 64, 100, 768] {
        let (x, weight, bias) = (random.floats(3 * width), random.floats(width), random.floats(width));
        let (mut normed, mut softened) = (Vec::new(), Vec::new());
        for row in x.chunks(width) {
            let row: Vec<f64> = row.iter().map(|x| f64::from(*x)).collect();
            let mean = row.iter().sum::<f64>() / width as f64;
            let variance = row.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
            let total: f64 = row.iter().map(|x| x.exp()).sum();
            for (i, x) in row.iter().enumerate() {
                let y = (x - mean) / (variance + 1e-5).sqrt();
                normed.push(y * f64::from(weight[i]) + f64::from(bias[i]));
                softened.push(x.exp() / total);
            }
        }
        for isa in Isa::supported() {
            let mut out = vec![0.0; x.len()];
            layer_norm_with(isa, &x, width, (Some(&weight), Some(&bias)), 1e-5, &mut out).expect("it fits");
            near(&out, &normed, "layer norm");
            let mut out = x.clone();
            softmax_with(isa, &mut out, width).expect("it fits");
            near(&out, &softened, "softmax");
        }
    }
    assert!(layer_norm(&[0.0; 5], 3, None, None, 1e-5, &mut [0.0; 5]).is_err());
    assert!(softmax(&mut [0.0; 5], 3).is_err());
}

#[test]
fn masked_rows_become_zeros_unless_they_hold_nan() {
    const NONE: f32 = f32::NEG_INFINITY;
    for width in [1, 5, 16, 49, 64, 65, 200] {
        for isa in Isa::supported() {
            for (masks, nan_at) in [(true, None), (false, None), (true, Some(0)), (true, Some(width - 1))] {
                let mut rows = vec![NONE; 2 * width];
                if let Some(at) = nan_at {
                    rows[at] = f32::NAN;
                }
                // The second row has one element that is not masked.
                rows[width + width / 2] = 3.0;
                with(
                    isa,
                    Softmax {
                        rows: &mut rows,
                        pitch: width,
                        width,
                        scale: 1.0,
                        biases: &[],
                        masks,
                        denormals: true,
                    },
                );
                let (first, second) = rows.split_at(width);
                match (masks, nan_at) {
                    (true, None) => assert!(first.iter().all(|x| *x == 0.0), "{isa:?} {width}: {first:?}"),
                    _ => assert!(first.iter().all(|x| x.is_nan()), "{isa:?} {width}: {first:?}"),
                }
                assert!(
                    second.iter().enumerate().all(|(n, x)| *x == f32::from(u8::from(n == width / 2))),
                    "{second:?}"
                );
            }
        }
    }
}

#[test]
fn attention_is_right_where_tensors_are_strided() {
    let mut random = Random(7);
    for round in 0..if cfg!(debug_assertions) { 4 } else { 40 } {
        let s = AttentionShape {
            batch: random.from(1, 2),
            heads: random.from(1, 3),
            queries: random.from(1, 70),
            keys: random.from(1, 150),
            width: random.from(1, 40),
            values: random.from(1, 40),
            apart: round % 4 > 1,
        };
        // As a layer makes them: rows of all heads.
        let strides = |rows: usize, width: usize| [rows * s.heads * width, width, s.heads * width];
        let q = random.floats(s.batch * s.heads * s.queries * s.width);
        let k = random.floats(s.batch * s.heads * s.keys * s.width);
        let v = random.floats(s.batch * s.heads * s.keys * s.values);
        let mut b = random.floats(s.heads * s.queries * s.keys);
        // A row without any key.
        b[..s.keys].fill(f32::NEG_INFINITY);
        // Keys that windows of images mask.
        b[s.keys..].iter_mut().step_by(3).for_each(|bias| *bias -= 100.0);
        let query = Heads { values: &q, strides: strides(s.queries, s.width) };
        let key = Heads { values: &k, strides: strides(s.keys, s.width) };
        let value = Heads { values: &v, strides: strides(s.keys, s.values) };
        let bias = Heads { values: &b, strides: [0, s.queries * s.keys, s.keys] };
        let biases = [bias, bias];
        let biases = &biases[..round % 3];
        let masks = round % 2 == 0;
        let scores = Scores { scale: 0.3, biases, masks };
        let at = |h: &Heads<'_>, b: usize, n: usize, r: usize, i: usize| {
            f64::from(h.values[b * h.strides[0] + n * h.strides[1] + r * h.strides[2] + i])
        };
        let mut wanted = Vec::new();
        for n in 0..s.batch * s.queries * s.heads {
            let (head, row, batch) = match s.apart {
                true => (n / s.queries % s.heads, n % s.queries, n / s.queries / s.heads),
                false => (n % s.heads, n / s.heads % s.queries, n / s.heads / s.queries),
            };
            let score = |j: usize| {
                let dot: f64 =
                    (0..s.width).map(|i| at(&query, batch, head, row, i) * at(&key, batch, head, j, i)).sum();
                (dot * 0.3 + biases.iter().map(|b| at(b, batch, head, row, j)).sum::<f64>()).exp()
            };
            let scores: Vec<f64> = (0..s.keys).map(score).collect();
            let total: f64 = scores.iter().sum();
            let total = if total == 0.0 && masks { 1.0 } else { total };
            let of = |i: usize| {
                (0..s.keys).map(|j| scores[j] / total * at(&value, batch, head, j, i)).sum::<f64>()
            };
            wanted.extend((0..s.values).map(of));
        }
        for isa in Isa::supported() {
            let mut out = vec![7.0; wanted.len()];
            attention_with(isa, s, [query, key, value], scores, &mut out).expect("it fits");
            near(&out, &wanted, &format!("attention {s:?} {isa:?}"));
        }
    }
}

#[test]
fn attention_counts_what_is_hardly_likely_as_nothing() {
    // In registers, and row by row.
    for keys in [20, 100] {
        let s = AttentionShape { batch: 1, heads: 1, queries: 2, keys, width: 1, values: 1, apart: true };
        let zeros = vec![0.0; keys];
        let (mut values, mut bias) = (zeros.clone(), vec![0.0; 2 * keys]);
        // e^-90 is a denormal, e^-86 is none.
        (values[3], bias[3], bias[keys + 3]) = (1e38, -90.0, -86.0);
        let heads = |values| Heads { values, strides: [0, 0, 1] };
        let biases = [Heads { values: &bias, strides: [0, 0, keys] }];
        let scores = Scores { scale: 1.0, biases: &biases, masks: false };
        for isa in Isa::supported() {
            let mut out = [7.0; 2];
            attention_with(isa, s, [heads(&zeros), heads(&zeros), heads(&values)], scores, &mut out)
                .expect("it fits");
            let wanted = 1e38 * (-86f64).exp() / (keys as f64 - 1.0);
            let error = (f64::from(out[1]) - wanted).abs();
            assert!(out[0] == 0.0 && error < 1e-5 * wanted, "{out:?} with {keys} keys and {isa:?}");
        }
    }
}

#[test]
fn attention_keeps_means_of_large_numbers_and_order_of_huge_scores() {
    let s = AttentionShape { batch: 1, heads: 1, queries: 3, keys: 100, width: 1, values: 2, apart: true };
    let rows = |values: &'static [f32], width: usize| Heads { values, strides: [0, 0, width] };
    // Sums of a hundred such values are infinite, their mean is not; of the other column each is NaN or infinite.
    static LARGE: [f32; 200] = {
        let mut values = [3e38; 200];
        values[1] = f32::INFINITY;
        values
    };
    // Products that are finite, and infinite once they are scaled; the last row is as PyTorch has it.
    static QUERIES: [f32; 3] = [0.0, 1.0, 3e38];
    static KEYS: [f32; 100] = [1.0; 100];
    let operands = [rows(&QUERIES, 1), rows(&KEYS, 1), rows(&LARGE, 2)];
    for isa in Isa::supported() {
        let mut out = [7.0; 6];
        let scores = Scores { scale: 2.0, biases: &[], masks: false };
        attention_with(isa, s, operands, scores, &mut out).expect("it fits");
        assert!((out[0] / 3e38 - 1.0).abs() < 1e-5 && (out[2] / 3e38 - 1.0).abs() < 1e-5, "{out:?} {isa:?}");
        assert!(out[1] == f32::INFINITY && out[3] == f32::INFINITY, "{out:?} {isa:?}");
        assert!(out[4].is_nan() && out[5].is_nan(), "{out:?} {isa:?}");
    }
}

#[test]
fn gates_and_layouts_are_right() {
    let mut random = Random(8);
    let (x, gates) = (random.floats(2 * 35 * 20), random.floats(40));
    for isa in Isa::supported() {
        let mut out = x.clone();
        gate_with(isa, &mut out, 2, 20, &gates).expect("it fits");
        assert!(out.iter().enumerate().all(|(n, y)| *y == x[n] * gates[n / 700 * 20 + n % 20]));
    }
    let mut turned = vec![0.0; x.len()];
    transpose(&x, 2, 35, 20, &mut turned).expect("it fits");
    let at = |b: usize, r: usize, c: usize| x[(b * 35 + r) * 20 + c];
    assert!(turned.iter().enumerate().all(|(n, y)| *y == at(n / 700, n % 35, n / 35 % 20)));
    assert!(gate(&mut [0.0; 7], 2, 2, &[0.0; 4]).is_err() && transpose(&x, 2, 35, 21, &mut turned).is_err());
}

/// Rows whose squares overflow, as PyTorch's `layer_norm` normalizes them: in what order numbers are added shows.
#[test]
fn huge_rows_are_normalized_as_pytorch_does() {
    let alternating =
        |x: f32, n: usize| (0..n).map(|i| if i % 2 == 0 { x } else { -x }).collect::<Vec<f32>>();
    let after = |rest: &[f32]| [&[1., 2., 3., 4., 5., 6., 7., 8.], rest].concat();
    let nan = [
        vec![1e20; 4],
        vec![1.85e19; 8],
        vec![1e20; 8],
        alternating(1e20, 8),
        alternating(3e38, 8),
        vec![f32::INFINITY; 3],
    ];
    let zero = [
        alternating(1e20, 2),
        alternating(1e20, 6),
        vec![3e19, 1.0, 2.0],
        vec![1e20; 9],
        after(&[1e20]),
        after(&[1e20, -1e20]),
        vec![1e19; 40],
        alternating(1e19, 80),
        vec![1.8e19; 8],
        alternating(1e19, 8),
        alternating(1.5e19, 2),
    ];
    for isa in Isa::supported() {
        for row in &nan {
            let mut out = vec![0.0; row.len()];
            layer_norm_with(isa, row, row.len(), (None, None), 1e-5, &mut out).expect("it fits");
            assert!(out.iter().all(|y| y.is_nan()), "{isa:?}: {row:?} gives {out:?}");
        }
        for row in &zero {
            let mut out = vec![1.0; row.len()];
            layer_norm_with(isa, row, row.len(), (None, None), 1e-5, &mut out).expect("it fits");
            assert!(out.iter().all(|y| *y == 0.0), "{isa:?}: {row:?} gives {out:?}");
        }
    }
}
