//! Integer kernels against PyTorch's recorded answers, and every set of instructions against plain sums.

use super::job::{Isa, Out};
use super::qconv::{Geometry, PackedConv};
use super::qgemm::{PackedWeights, Quantization, linear, linear_dynamic};
use super::quantization::Affine;
use super::quantize::{
    Channels, Quantized, as_float16, choose_qparams, dequantize, dequantize_channels, extremes, quantize,
    quantize_channels,
};
use super::stage::{Engine, Plan, Stage};
use crate::kernels::lines::Lines;
use base64::Engine as _;
use serde_json::Value;

fn cases(kind: &str) -> Vec<Value> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden/kernels/int8.jsonl");
    let text = std::fs::read_to_string(path).expect("recorded");
    let all = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let cases: Vec<Value> = all.filter(|case| case["kind"] == kind).collect();
    assert!(!cases.is_empty(), "no cases of {kind}");
    cases
}

fn data<T: bytemuck::Pod>(value: &Value) -> Vec<T> {
    let bytes = base64::prelude::BASE64_STANDARD.decode(value.as_str().expect("text")).expect("base64");
    bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

fn numbers<T>(value: &Value, read: impl Fn(&Value) -> T) -> Vec<T> {
    value.as_array().expect("a list").iter().map(read).collect()
}

fn floats(value: &Value) -> Vec<f64> {
    numbers(value, |x| x.as_f64().expect("a number"))
}

fn ints(value: &Value) -> Vec<i64> {
    numbers(value, |x| x.as_i64().expect("an integer"))
}

fn space(value: &Value) -> [usize; 3] {
    ints(value).iter().map(|x| *x as usize).collect::<Vec<_>>().try_into().expect("three")
}

fn affine(scale: &Value, zero_point: &Value) -> Affine {
    Affine {
        scale: scale.as_f64().expect("a number"),
        zero_point: zero_point.as_i64().expect("an integer") as i32,
    }
}

fn size(value: &Value) -> usize {
    value.as_u64().expect("a size") as usize
}

fn quantization(case: &Value) -> Quantization {
    let (scales, zeros) = (floats(&case["scales"]), ints(&case["zero_points"]));
    let zeros: Vec<i32> = zeros.iter().map(|z| *z as i32).collect();
    if case["per_channel"] == true {
        return Quantization::per_channel(&scales, &zeros).expect("as many");
    }
    Quantization::per_tensor(Affine { scale: scales[0], zero_point: zeros[0] })
}

#[test]
fn linear_layers_are_pytorchs_to_the_bit() {
    for case in cases("linear") {
        let (rows, depth, outputs) = (size(&case["rows"]), size(&case["depth"]), size(&case["outputs"]));
        let weights =
            PackedWeights::new(&data(&case["weights"]), outputs, depth, quantization(&case)).expect("fits");
        let bias: Option<Vec<f32>> = (!case["bias"].is_null()).then(|| data(&case["bias"]));
        let (input, output) =
            (affine(&case["input"][0], &case["input"][1]), affine(&case["output"][0], &case["output"][1]));
        let relu = case["relu"] == true;
        let mut out = vec![0u8; rows * outputs];
        let x: Vec<u8> = data(&case["x"]);
        linear(&x, rows, input, &weights, bias.as_deref(), output, relu, &mut out).expect("fits");
        assert_eq!(out, data::<u8>(&case["y"]));
        let mut real = vec![0f32; rows * outputs];
        let (x, reduce) = (data::<f32>(&case["floats"]), case["reduce_range"] == true);
        linear_dynamic(&x, rows, &weights, bias.as_deref(), relu, reduce, &mut real).expect("fits");
        let bits = |v: &[f32]| v.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&real), bits(&data::<f32>(&case["dynamic"])));
    }
}

#[test]
fn convolutions_are_pytorchs_to_the_bit_with_all_instructions() {
    for case in cases("conv") {
        let geometry = Geometry {
            channels: size(&case["channels"]),
            outputs: size(&case["outputs"]),
            groups: size(&case["groups"]),
            kernel: space(&case["kernel"]),
            stride: space(&case["stride"]),
            padding: space(&case["padding"]),
            dilation: space(&case["dilation"]),
        };
        let conv = PackedConv::new(&data(&case["weights"]), geometry, quantization(&case)).expect("fits");
        let (input, output) =
            (affine(&case["input"][0], &case["input"][1]), affine(&case["output"][0], &case["output"][1]));
        let (x, bias, y) = (data::<u8>(&case["x"]), data::<f32>(&case["bias"]), data::<u8>(&case["y"]));
        for isa in Isa::supported() {
            let mut out = vec![0u8; y.len()];
            let image = (2, space(&case["sizes"]));
            let relu = case["relu"] == true;
            conv.run_with(isa, &x, image, input, Some(&bias), output, relu, &mut out).expect("fits");
            assert_eq!(out, y, "{isa:?} {geometry:?}");
        }
    }
}

fn quantizes<Q: Quantized + bytemuck::Pod + PartialEq + std::fmt::Debug>(case: &Value) {
    let (x, y, back) = (data::<f32>(&case["x"]), data::<Q>(&case["y"]), data::<f32>(&case["back"]));
    let (mut q, mut real) = (vec![Q::of(1); x.len()], vec![0f32; x.len()]);
    if case["kind"] == "quantize" {
        let to = affine(&case["scale"], &case["zero_point"]);
        quantize(&x, to, &mut q);
        dequantize(&y, to, &mut real);
    } else {
        let (scales, zeros) = (floats(&case["scales"]), ints(&case["zero_points"]));
        let channels = Channels { scales: &scales, zero_points: &zeros, inner: size(&case["inner"]) };
        quantize_channels(&x, channels, &mut q);
        dequantize_channels(&y, channels, &mut real);
    }
    assert_eq!(q, y, "{} {} {}", case["kind"], case["dtype"], case["scale"]);
    assert_eq!(real, back);
}

#[test]
fn rounding_is_pytorchs_at_the_edges_too() {
    for case in cases("quantize").iter().chain(&cases("channels")) {
        match case["dtype"].as_str() {
            Some("u8") => quantizes::<u8>(case),
            Some("i8") => quantizes::<i8>(case),
            _ => quantizes::<i32>(case),
        }
    }
}

#[test]
fn scales_are_chosen_as_pytorch_chooses_them() {
    for case in cases("qparams") {
        let ends = [&case["low"], &case["high"]].map(|x| x.as_f64().expect("a number") as f32);
        assert_eq!(extremes(&ends), (ends[0], ends[1]));
        let reduce = case["reduce_range"] == true;
        let chosen = choose_qparams(ends[0], ends[1], (0, 255), false, reduce).expect("ordered");
        assert_eq!(chosen, affine(&case["scale"], &case["zero_point"]), "{ends:?}");
    }
    assert!(choose_qparams(f32::NAN, 1.0, (0, 255), false, false).is_err());
    assert!(choose_qparams(2.0, 1.0, (0, 255), false, false).is_err());
    assert!(choose_qparams(0.0, 1.0, (3, 3), false, false).is_err());
}

/// Extreme values in no order that helps.
fn noise(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|i| if i % 5 == 0 { 255 } else { ((i + seed) * 7919 % 256) as u8 }).collect()
}

#[test]
fn all_instructions_give_exact_sums_of_all_shapes() {
    for (rows, depth, outputs) in
        [(1, 1, 1), (5, 3, 17), (13, 64, 100), (27, 130, 70), (25, 9, 33), (2, 600, 16)]
    {
        let weights: Vec<i8> = noise(outputs * depth, 3).iter().map(|x| *x as i8).collect();
        let zeros: Vec<i32> = (0..outputs as i32).map(|i| i % 3 - 1).collect();
        let scales = vec![1.0; outputs];
        let quantization = Quantization::per_channel(&scales, &zeros).expect("as many");
        let packed = PackedWeights::new(&weights, outputs, depth, quantization).expect("fits");
        let stride = packed.padded_depth();
        let mut x = noise(rows * stride, 1);
        x.chunks_exact_mut(stride).for_each(|row| row[depth..].fill(0));
        let input = Affine { scale: 1.0, zero_point: 7 };
        for isa in Isa::supported() {
            let stage = Stage::float(packed.plan(input, None, false).expect("fits")).expect("room");
            let mut out = vec![0f32; rows * outputs];
            let whole = (0, outputs);
            let rows_of_x = (&x[..], Lines::one(rows, stride), packed.offsets());
            packed.multiply(isa, rows_of_x, whole, &stage, Out::Floats(&mut out), whole).expect("fits");
            for (i, y) in out.iter().enumerate() {
                let (row, column) = (i / outputs, i % outputs);
                let term = |k: usize| {
                    (i32::from(x[row * stride + k]) - 7)
                        * (i32::from(weights[column * depth + k]) - zeros[column])
                };
                assert_eq!(*y, (0..depth).map(term).sum::<i32>() as f32, "{isa:?} {row} {column}");
            }
        }
    }
}

#[test]
fn sizes_that_do_not_fit_are_errors() {
    let one = Quantization::per_tensor(Affine { scale: 1.0, zero_point: 0 });
    assert!(PackedWeights::new(&[1, 2, 3], 2, 2, one.clone()).is_err());
    assert!(PackedWeights::new(&[], usize::MAX, 0, one.clone()).is_err());
    assert!(Quantization::per_channel(&[1.0], &[]).is_err());
    let weights = PackedWeights::new(&[1, 2, 3, 4], 2, 2, one.clone()).expect("fits");
    let plain = Affine { scale: 1.0, zero_point: 0 };
    let mut out = [0u8; 2];
    assert!(linear(&[1, 2, 3], 1, plain, &weights, None, plain, false, &mut out).is_err());
    assert!(linear(&[1, 2], 1, plain, &weights, Some(&[1.0]), plain, false, &mut out).is_err());
    assert!(linear(&[], 0, plain, &weights, None, plain, false, &mut []).is_ok());
    let geometry = Geometry {
        channels: 4,
        outputs: 4,
        groups: 4,
        kernel: [1, 3, 3],
        stride: [1; 3],
        padding: [0; 3],
        dilation: [1, usize::MAX, 1],
    };
    let conv = PackedConv::new(&[1; 36], geometry, one.clone()).expect("fits");
    assert!(conv.run(&[0; 36], (1, [1, 3, 3]), plain, None, plain, false, &mut [0; 4]).is_err());
    assert!(PackedConv::new(&[1; 36], Geometry { groups: 3, ..geometry }, one.clone()).is_err());
    assert!(PackedConv::new(&[1; 36], Geometry { stride: [0; 3], ..geometry }, one.clone()).is_err());
    assert_eq!(Engine::of_convolution(101, &one), Engine::Fbgemm);
    assert_eq!(Engine::of_convolution(100, &one), Engine::OneDnn);
}

#[test]
fn weights_beyond_float16_saturate() {
    assert_eq!(as_float16(1e6), 65504.0);
    assert_eq!(as_float16(-65519.9), -65504.0);
    assert_eq!(as_float16(2049.0), 2048.0);
    assert!(as_float16(f32::NAN).is_nan());
}

/// Groups of few channels are multiplied together; each must come out as if it stood alone.
#[test]
fn groups_are_independent_of_each_other() {
    for (groups, width, each) in [(8, 4, 4), (6, 3, 5), (4, 8, 8), (5, 2, 4), (3, 4, 1), (2, 16, 16)] {
        let (channels, outputs, sizes) = (groups * width, groups * each, [1, 5, 6]);
        let kernel = [1, 3, 3];
        let geometry = |channels, outputs, groups| Geometry {
            channels,
            outputs,
            groups,
            kernel,
            stride: [1, 1, 2],
            padding: [0, 1, 1],
            dilation: [1; 3],
        };
        let weights: Vec<i8> = noise(outputs * width * 9, 5).iter().map(|x| *x as i8).collect();
        let x = noise(30 * channels, 2);
        let scales = |n: usize| Quantization::per_channel(&vec![0.01; n], &vec![0; n]).expect("as many");
        let (from, to) = (Affine { scale: 0.01, zero_point: 9 }, Affine { scale: 0.4, zero_point: 100 });
        let whole =
            PackedConv::new(&weights, geometry(channels, outputs, groups), scales(outputs)).expect("fits");
        let places = 5 * 3;
        for isa in Isa::supported() {
            let mut all = vec![0u8; places * outputs];
            whole.run_with(isa, &x, (1, sizes), from, None, to, false, &mut all).expect("fits");
            for group in 0..groups {
                let part = &weights[group * each * width * 9..][..each * width * 9];
                let conv = PackedConv::new(part, geometry(width, each, 1), scales(each)).expect("fits");
                let x: Vec<u8> =
                    x.chunks_exact(channels).flat_map(|p| p[group * width..][..width].to_vec()).collect();
                let mut alone = vec![0u8; places * each];
                conv.run_with(isa, &x, (1, sizes), from, None, to, false, &mut alone).expect("fits");
                for (all, alone) in all.chunks_exact(outputs).zip(alone.chunks_exact(each)) {
                    assert_eq!(&all[group * each..][..each], alone, "{isa:?} group {group} of {groups}");
                }
            }
        }
    }
}

/// A convolution by its definition: places that lie outside are the zero point, one result after the other.
fn by_definition(
    weights: &[i8],
    (g, quantization): (Geometry, &Quantization),
    x: &[u8],
    (batch, sizes): (usize, [usize; 3]),
    (input, output): (Affine, Affine),
    bias: &[f32],
    relu: bool,
) -> Vec<u8> {
    let (r, taps) = (g.result(sizes).expect("large enough"), g.kernel.iter().product::<usize>());
    let (width, each) = (g.channels / g.groups, g.outputs / g.groups);
    let mut out = Vec::new();
    for at in 0..batch * r[0] * r[1] * r[2] {
        let (w, h, rest) = (at % r[2], at / r[2] % r[1], at / r[2] / r[1]);
        let place = [rest % r[0], h, w];
        for n in 0..g.outputs {
            let (mut sum, mut inputs, mut total) = (0i32, 0i32, 0i32);
            for tap in 0..taps {
                let k = [tap / g.kernel[2] / g.kernel[1], tap / g.kernel[2] % g.kernel[1], tap % g.kernel[2]];
                let mut from = Some(rest / r[0]);
                for i in 0..3 {
                    let at = (place[i] * g.stride[i] + k[i] * g.dilation[i]).checked_sub(g.padding[i]);
                    from = from.zip(at.filter(|at| *at < sizes[i])).map(|(from, at)| from * sizes[i] + at);
                }
                for c in 0..width {
                    let channel = n / each * width + c;
                    let x = from.map_or(input.zero_point, |from| i32::from(x[from * g.channels + channel]));
                    let weight = i32::from(weights[(n * width + c) * taps + tap]);
                    (sum, inputs, total) = (sum + x * weight, inputs + x, total + weight);
                }
            }
            let one = quantization.part(n, 1);
            let plan = Plan {
                input,
                weights: &one,
                sums: &[total],
                depth: taps * width,
                bias: Some(&bias[n..n + 1]),
                order: |at| at,
                columns: 1,
                relu,
            };
            let engine = Engine::of_convolution(g.groups, quantization);
            let stage = Stage::rounding(plan, output, engine).expect("room");
            let mut byte = [0u8];
            stage.round(&[sum], 0, inputs, &mut byte);
            out.push(byte[0]);
        }
    }
    out
}

/// Every way to compute a convolution (where inputs lie, gathered, line by line) with all instructions is its definition.
#[test]
fn convolutions_are_their_definition() {
    let mut seed = 12345usize;
    let mut pick = |from: usize, to: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        from + (seed >> 33) % (to - from + 1)
    };
    for round in 0..200 {
        let depthwise = round % 3 == 0;
        let groups = if depthwise { [3, 16, 24, 33, 70][pick(0, 4)] } else { [1, 1, 1, 2, 4][pick(0, 4)] };
        let (width, each) = if depthwise { (1, 1) } else { (pick(1, 9), pick(1, 40)) };
        let deep = usize::from(pick(0, 4) == 0);
        let kernel = [1 + deep, pick(1, 5), pick(1, 4)];
        let g = Geometry {
            channels: groups * width,
            outputs: groups * each,
            groups,
            kernel,
            stride: [1 + deep, pick(1, 2), pick(1, 3)],
            padding: [deep, pick(0, 2), pick(0, 3)],
            dilation: [1, pick(1, 2), pick(1, 2)],
        };
        let (batch, sizes) = (pick(1, 2), [2 * deep + 1, pick(1, 9), pick(1, 40)]);
        let Some(result) = g.result(sizes) else { continue };
        let taps: usize = kernel.iter().product();
        let weights: Vec<i8> = noise(g.outputs * width * taps, round).iter().map(|x| *x as i8).collect();
        let zeros: Vec<i32> =
            (0..g.outputs).map(|i| if round % 4 == 1 { i as i32 % 3 - 1 } else { 0 }).collect();
        let scales: Vec<f64> = (0..g.outputs).map(|i| 0.01 + 0.001 * i as f64).collect();
        let quantization = Quantization::per_channel(&scales, &zeros).expect("as many");
        let x = noise(batch * sizes.iter().product::<usize>() * g.channels, round + 1);
        let bias: Vec<f32> = (0..g.outputs).map(|i| i as f32 - 3.0).collect();
        // Small scales of results make numbers that no 32-bit integer holds.
        let scale = [0.5, 4.0, 1e-12][pick(0, 2)];
        let (input, output) =
            (Affine { scale: 0.02, zero_point: 64 }, Affine { scale, zero_point: pick(0, 255) as i32 });
        let relu = pick(0, 1) == 1;
        let expected =
            by_definition(&weights, (g, &quantization), &x, (batch, sizes), (input, output), &bias, relu);
        let conv = PackedConv::new(&weights, g, quantization).expect("fits");
        assert_eq!(expected.len(), batch * result.iter().product::<usize>() * g.outputs);
        for isa in Isa::supported() {
            let mut out = vec![0u8; expected.len()];
            conv.run_with(isa, &x, (batch, sizes), input, Some(&bias), output, relu, &mut out).expect("fits");
            assert_eq!(out, expected, "{isa:?} {g:?} {sizes:?} {output:?} relu {relu}");
        }
    }
}
