//! Layers against their definition, for random sizes and all instructions of the machine.

use super::conv::*;
use super::epilogue::*;
use super::prologue::Prologue;
use super::shape::{ConvShape, Images, Layout};
use super::vector::Isa;
use super::weights::Source;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A small generator of numbers, the same on every run.
pub(super) struct Random(pub u64);

impl Random {
    pub fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % n.max(1) as u64) as usize
    }
    pub fn from(&mut self, low: usize, high: usize) -> usize {
        low + self.below(high - low + 1)
    }
    pub fn floats(&mut self, n: usize) -> Vec<f32> {
        (0..n).map(|_| self.below(2001) as f32 / 1000.0 - 1.0).collect()
    }
}

/// What an epilogue makes of a sum, in double precision.
fn finished(e: &Epilogue<'_>, sum: f64, channel: usize, pixel: usize) -> f64 {
    let mut x = sum;
    x += e.bias.map_or(0.0, |b| f64::from(b[channel]));
    if let Some((scale, shift)) = e.norm {
        x = x * f64::from(scale[channel]) + f64::from(shift[channel]);
    }
    let residual = e.residual.map(|r| (r.after, f64::from(r.values[pixel * r.pitch + channel])));
    if let Some((false, r)) = residual {
        x += r;
    }
    x = activated(e.activation, x);
    x + residual.filter(|r| r.0).map_or(0.0, |r| r.1)
}

pub(super) fn activated(activation: Activation, x: f64) -> f64 {
    match activation {
        Activation::None => x,
        Activation::Relu => x.max(0.0),
        Activation::Clamp(low, high) => x.clamp(f64::from(low), f64::from(high)),
        Activation::Silu => x / (1.0 + (-x).exp()),
        Activation::HardSwish => x * (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Activation::HardSigmoid => (x + 3.0).clamp(0.0, 6.0) / 6.0,
        Activation::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        Activation::Gelu => 0.5 * x * (1.0 + libm::erf(x / std::f64::consts::SQRT_2)),
        Activation::GeluTanh => {
            0.5 * x * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044_715 * x.powi(3))).tanh())
        }
        Activation::Tanh => x.tanh(),
        Activation::LeakyRelu(slope) => {
            if x > 0.0 {
                x
            } else {
                x * f64::from(slope)
            }
        }
    }
}

pub(super) const ACTIVATIONS: [Activation; 11] = [
    Activation::None,
    Activation::Relu,
    Activation::Clamp(-0.5, 0.75),
    Activation::Silu,
    Activation::HardSwish,
    Activation::HardSigmoid,
    Activation::Sigmoid,
    Activation::Gelu,
    Activation::GeluTanh,
    Activation::Tanh,
    Activation::LeakyRelu(0.1),
];

/// A convolution by its definition: results with channels innermost and the sum of each one's sizes.
fn by_definition(s: &ConvShape, x: &Images<'_>, layout: Layout, weights: &[f32]) -> Vec<(f64, f64)> {
    let r = s.result(x.sizes).expect("the image is large enough");
    let (width, outputs) = (s.in_channels / s.groups, s.out_channels / s.groups);
    let mut out = Vec::new();
    for at in 0..x.batch * r[0] * r[1] * s.out_channels {
        let (pixel, o) = (at / s.out_channels, at % s.out_channels);
        let (image, h, w) = (pixel / r[1] / r[0], pixel / r[1] % r[0], pixel % r[1]);
        let (mut sum, mut size) = (0.0, 0.0);
        for k in 0..width * s.kernel[0] * s.kernel[1] {
            let (c, kh, kw) = (k / s.kernel[1] / s.kernel[0], k / s.kernel[1] % s.kernel[0], k % s.kernel[1]);
            let y = (h * s.stride[0] + kh * s.dilation[0]).wrapping_sub(s.padding[0][0]);
            let z = (w * s.stride[1] + kw * s.dilation[1]).wrapping_sub(s.padding[1][0]);
            if y >= x.sizes[0] || z >= x.sizes[1] {
                continue;
            }
            let channel = o / outputs * width + c;
            let place = match layout {
                Layout::ChannelsLast => ((image * x.sizes[0] + y) * x.sizes[1] + z) * x.pitch + channel,
                Layout::ChannelsFirst => {
                    ((image * s.in_channels + channel) * x.sizes[0] + y) * x.sizes[1] + z
                }
            };
            let term =
                f64::from(x.values[place]) * f64::from(weights[o * width * s.kernel[0] * s.kernel[1] + k]);
            sum += term;
            size += term.abs();
        }
        out.push((sum, size));
    }
    out
}

/// Images to which a prologue was applied, in double precision.
fn prepared(p: &Prologue<'_>, x: &Images<'_>, channels: usize) -> Vec<f32> {
    let plane = x.sizes[0] * x.sizes[1] * x.pitch;
    let one = |(at, value): (usize, &f32)| {
        let (image, channel) = (at / plane, at % x.pitch);
        if channel >= channels {
            return *value;
        }
        let (scale, shift) = p.norm.map_or((1.0, 0.0), |(scale, shift)| (scale[channel], shift[channel]));
        let y = activated(p.activation, f64::from(*value) * f64::from(scale) + f64::from(shift));
        (y * f64::from(p.gate.map_or(1.0, |gate| gate[image * channels + channel]))) as f32
    };
    x.values.iter().enumerate().map(one).collect()
}

/// Runs a convolution with a random prologue and epilogue on all instructions and compares.
fn check(random: &mut Random, s: ConvShape, layout: Layout, batch: usize, sizes: [usize; 2]) {
    let r = s.result(sizes).expect("the image is large enough");
    let pixels = batch * r[0] * r[1];
    let wide = layout == Layout::ChannelsLast && random.below(2) == 0;
    let x_pitch = s.in_channels + if wide { random.from(1, 5) } else { 0 };
    let pitch = s.out_channels + random.below(2) * random.from(1, 20);
    let values = random.floats(batch * sizes[0] * sizes[1] * x_pitch);
    let weights = random.floats(s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1]);
    let images = Images { values: &values, batch, sizes, pitch: x_pitch };
    let (bias, scale, shift) =
        (random.floats(s.out_channels), random.floats(s.out_channels), random.floats(s.out_channels));
    let residual = random.floats(pixels * pitch);
    let epilogue = Epilogue {
        bias: Some(&*bias).filter(|_| random.below(2) == 0),
        norm: Some((&*scale, &*shift)).filter(|_| random.below(2) == 0),
        residual: Some(Residual { values: &residual, pitch, after: random.below(2) == 0 })
            .filter(|_| random.below(2) == 0),
        activation: ACTIVATIONS[random.below(ACTIVATIONS.len())],
    };
    let conv = PackedConv::new(s, &weights, layout).expect("it fits");
    let (factor, term) = (random.floats(s.in_channels), random.floats(s.in_channels));
    let gate = random.floats(batch * s.in_channels);
    let prologue = Prologue {
        norm: Some((&*factor, &*term)).filter(|_| random.below(2) == 0),
        activation: ACTIVATIONS[random.below(ACTIVATIONS.len())],
        gate: Some(&*gate).filter(|_| random.below(2) == 0),
    };
    let prologue = Some(prologue).filter(|_| layout == Layout::ChannelsLast && random.below(2) == 0);
    let before = prologue.map(|p| prepared(&p, &images, s.in_channels));
    let given = before.as_deref().map_or(images, |values| Images { values, ..images });
    let wanted = by_definition(&s, &given, layout, &weights);
    for isa in Isa::supported() {
        let mut out = vec![7.0f32; pixels * pitch];
        conv.run_with(isa, prologue.as_ref(), images, &epilogue, &mut out, pitch).expect("it fits");
        for (at, y) in out.iter().enumerate() {
            let (pixel, channel) = (at / pitch, at % pitch);
            if channel >= s.out_channels {
                assert_eq!(*y, 7.0, "{isa:?} wrote between pixels: {s:?}");
                continue;
            }
            let (sum, size) = wanted[pixel * s.out_channels + channel];
            let wanted = finished(&epilogue, sum, channel, pixel);
            let allowed = 1e-6 * (size + 2.0);
            assert!(
                (f64::from(*y) - wanted).abs() <= allowed,
                "{isa:?}: {y} for {wanted} at {pixel}, {channel} of {s:?} {layout:?} {sizes:?} {:?}",
                epilogue.activation
            );
        }
    }
}

#[test]
fn convolutions_of_random_shapes_are_right() {
    let mut random = Random(1);
    let count = if cfg!(debug_assertions) { 60 } else { 2000 };
    for _ in 0..count {
        let groups = if random.below(3) == 0 { random.from(2, 4) } else { 1 };
        let pick = |random: &mut Random, most: usize| [random.from(1, most), random.from(1, most)];
        let shape = ConvShape {
            in_channels: groups * random.from(1, 20),
            out_channels: groups * random.from(1, 40),
            kernel: pick(&mut random, 4),
            stride: pick(&mut random, 2),
            padding: [[random.below(3), random.below(3)], [random.below(3), random.below(3)]],
            dilation: pick(&mut random, 2),
            groups,
        };
        let sizes = [random.from(7, 12), random.from(7, 34)];
        let layout = if random.below(4) == 0 { Layout::ChannelsFirst } else { Layout::ChannelsLast };
        let batch = random.from(1, 2);
        check(&mut random, shape, layout, batch, sizes);
    }
}

fn shape(channels: [usize; 2], kernel: usize, stride: usize, padding: usize, groups: usize) -> ConvShape {
    ConvShape {
        in_channels: channels[0],
        out_channels: channels[1],
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [[padding; 2]; 2],
        dilation: [1; 2],
        groups,
    }
}

#[test]
fn convolutions_with_algorithms_of_their_own_are_right() {
    let mut random = Random(2);
    let count = if cfg!(debug_assertions) { 1 } else { 20 };
    for _ in 0..count {
        // Transformed tiles, of odd and even sizes; with channels that fill no vector.
        let channels = [random.from(16, 70), random.from(16, 100)];
        let sizes = [random.from(4, 15), random.from(4, 20)];
        let padding = random.below(3);
        if sizes.iter().all(|size| size + 2 * padding >= 3) {
            check(&mut random, shape(channels, 3, 1, padding, 1), Layout::ChannelsLast, 2, sizes);
        }
        // Depthwise windows: those with loops of their own, in lines that are short, shorter than a tile among them, and long;
        // the last channels fill half a vector, less, or more.
        for (channels, width) in [(24, 7), (random.from(17, 23), 9), (random.from(2, 70), random.from(8, 40))]
        {
            for (kernel, stride) in [(3, 1), (3, 2), (5, 1), (5, 2), (7, 1), (2, 1)] {
                let shape = shape([channels; 2], kernel, stride, random.below(kernel), channels);
                let sizes = [random.from(7, 9), width];
                check(&mut random, shape, Layout::ChannelsLast, 1, sizes);
            }
        }
        // Matrices whose rows meet in the same lines of a cache, and sums in more parts than one.
        check(&mut random, shape([1536, 130], 1, 1, 0, 1), Layout::ChannelsLast, 1, [3, 7]);
        check(&mut random, shape([130, 40], 3, 2, 1, 1), Layout::ChannelsLast, 1, [9, 31]);
        // Images that leave the cache, whose lines are copied block by block.
        let side = random.from(30, 40);
        check(&mut random, shape([64, 32], 3, 2, 1, 4), Layout::ChannelsLast, 1, [side, 41]);
        check(&mut random, shape([66, 12], 3, 1, 1, 2), Layout::ChannelsLast, 2, [33, side]);
        // First layers: patches, and windows with padding.
        check(&mut random, shape([3, 40], 4, 4, 0, 1), Layout::ChannelsFirst, 2, [16, 60]);
        check(&mut random, shape([3, 64], 7, 2, 3, 1), Layout::ChannelsFirst, 1, [15, 33]);
    }
}

/// Inputs that sums of transformed ones would overflow with are summed up plainly.
#[test]
fn huge_inputs_give_what_plain_sums_give() {
    // The middle of one channel's window counts half.
    let weights: Vec<f32> = (0..16 * 16 * 9).map(|at| if at % (16 * 9) == 4 { 0.5 } else { 0.0 }).collect();
    let conv = PackedConv::new(shape([16, 16], 3, 1, 1, 1), &weights, Layout::ChannelsLast).expect("it fits");
    let values: Vec<f32> = (0..2 * 7 * 7 * 16).map(|at| if at % 3 == 0 { -3e38 } else { 3e38 }).collect();
    let images = Images { values: &values, batch: 2, sizes: [7, 7], pitch: 16 };
    for isa in Isa::supported() {
        let mut out = vec![0.0f32; values.len()];
        conv.run_with(isa, None, images, &Epilogue::default(), &mut out, 16).expect("it fits");
        for (at, y) in out.iter().enumerate() {
            assert_eq!(*y, values[at / 16 * 16] * 0.5, "{isa:?}, {at}");
        }
    }
}

/// Weights that are packed on demand, and in fewer forms, give the same bits.
#[test]
fn weights_are_packed_when_a_call_needs_them() {
    let mut random = Random(9);
    let shapes = [
        (shape([32, 40], 3, 1, 1, 1), 1),
        (shape([24, 48], 3, 2, 1, 2), 1),
        (shape([17, 33], 1, 1, 0, 1), 1),
        (shape([32, 32], 3, 1, 1, 32), 1),
        // Plain sums of inputs with which transformed ones would overflow.
        (shape([16, 16], 3, 1, 1, 1), 2),
    ];
    for (s, asked) in shapes {
        let weights = random.floats(s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1]);
        let mut values = random.floats(9 * 9 * s.in_channels);
        if asked == 2 {
            values[40 * s.in_channels] = 3e38;
        }
        let images = Images { values: &values, batch: 1, sizes: [9, 9], pitch: s.in_channels };
        let eager = PackedConv::new(s, &weights, Layout::ChannelsLast).expect("it fits");
        let (count, times) = (weights.len(), Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&times);
        let source: Source = Arc::new(move |pack| {
            counted.fetch_add(1, Ordering::Relaxed);
            pack(&weights)
        });
        let lazy = PackedConv::of(s, count, Arc::clone(&source), Layout::ChannelsLast).expect("it fits");
        assert_eq!(times.load(Ordering::Relaxed), 0, "nothing is packed yet: {s:?}");
        let [height, width] = s.result([9, 9]).expect("large enough");
        let answers = [&eager, &lazy, &lazy].map(|conv| {
            let mut out = vec![0.0f32; height * width * s.out_channels];
            conv.run(images, &Epilogue::default(), &mut out, s.out_channels).expect("it fits");
            out.iter().map(|y| y.to_bits()).collect::<Vec<u32>>()
        });
        assert!(answers[0] == answers[1] && answers[0] == answers[2], "{s:?}");
        assert_eq!(times.load(Ordering::Relaxed), asked, "{s:?}");
        assert!(
            PackedConv::of(s, count + 1, source, Layout::ChannelsLast).is_err(),
            "another number of weights"
        );
    }
    let s = shape([16, 16], 3, 1, 1, 1);
    let short: Source = Arc::new(|pack| pack(&[0.0; 3]));
    let conv = PackedConv::of(s, 16 * 16 * 9, short, Layout::ChannelsLast).expect("it is not asked yet");
    let images = Images { values: &[0.0; 64 * 16], batch: 1, sizes: [8, 8], pitch: 16 };
    assert!(conv.run(images, &Epilogue::default(), &mut [0.0; 64 * 16], 16).is_err(), "too few weights");
}

#[test]
fn infinite_inputs_reach_only_the_windows_that_have_them() {
    let s = shape([16, 16], 3, 1, 1, 1);
    let mut values = vec![1.0f32; 64 * 16];
    values[(3 * 8 + 3) * 16] = f32::INFINITY;
    let conv = PackedConv::new(s, &vec![1.0; 16 * 16 * 9], Layout::ChannelsLast).expect("it fits");
    let images = Images { values: &values, batch: 1, sizes: [8, 8], pitch: 16 };
    let mut out = vec![0.0f32; 64 * 16];
    conv.run(images, &Epilogue::default(), &mut out, 16).expect("it fits");
    for (pixel, y) in out.chunks(16).enumerate() {
        let near = (2..5).contains(&(pixel / 8)) && (2..5).contains(&(pixel % 8));
        assert_eq!(y[0] == f32::INFINITY, near, "{pixel}: {}", y[0]);
        assert!(near || y[0].is_finite());
    }
}

#[test]
fn results_are_the_same_for_any_number_of_threads() {
    let mut random = Random(3);
    let before = crate::resources::pool::threads();
    for s in [
        shape([64, 96], 3, 1, 1, 1),
        shape([64, 32], 3, 1, 1, 1),
        shape([40, 300], 3, 2, 1, 1),
        shape([300, 200], 1, 1, 0, 1),
        shape([32, 32], 5, 1, 2, 32),
    ] {
        // One image of two has an input that is not finite.
        let mut values = random.floats(2 * 14 * 14 * s.in_channels);
        values[(14 * 14 + 40) * s.in_channels] = f32::INFINITY;
        let weights = random.floats(s.out_channels * s.in_channels / s.groups * s.kernel[0] * s.kernel[1]);
        let conv = PackedConv::new(s, &weights, Layout::ChannelsLast).expect("it fits");
        let images = Images { values: &values, batch: 2, sizes: [14, 14], pitch: s.in_channels };
        let r = s.result([14, 14]).expect("large enough");
        let answers: Vec<Vec<f32>> = [1, 2, 3, 7]
            .iter()
            .map(|threads| {
                crate::resources::pool::set_threads(*threads);
                let mut out = vec![0.0; 2 * r[0] * r[1] * s.out_channels];
                conv.run(images, &Epilogue::default(), &mut out, s.out_channels).expect("it fits");
                out
            })
            .collect();
        let bits = |answer: &[f32]| answer.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        assert!(answers.iter().all(|answer| bits(answer) == bits(&answers[0])), "{s:?}");
    }
    crate::resources::pool::set_threads(before);
}

#[test]
fn what_does_not_fit_is_an_error() {
    let s = shape([4, 4], 3, 1, 0, 1);
    assert!(PackedConv::new(s, &[0.0; 9], Layout::ChannelsLast).is_err(), "too few weights");
    assert!(PackedConv::new(ConvShape { groups: 3, ..s }, &[0.0; 144], Layout::ChannelsLast).is_err());
    assert!(PackedConv::new(ConvShape { stride: [0, 1], ..s }, &[0.0; 144], Layout::ChannelsLast).is_err());
    assert!(PackedConv::new(ConvShape { kernel: [usize::MAX, 3], ..s }, &[], Layout::ChannelsLast).is_err());
    let conv = PackedConv::new(s, &[0.0; 144], Layout::ChannelsLast).expect("it fits");
    let image = |values, sizes, pitch| Images { values, batch: 1, sizes, pitch };
    let run = |images: Images<'_>, epilogue: &Epilogue<'_>, len: usize, pitch: usize| {
        conv.run(images, epilogue, &mut vec![0.0; len], pitch).is_err()
    };
    let (x, none) = ([0.0; 100], Epilogue::default());
    assert!(!run(image(&x, [5, 5], 4), &none, 36, 4));
    assert!(run(image(&x, [2, 5], 4), &none, 36, 4), "smaller than the window");
    assert!(run(image(&x, [6, 5], 4), &none, 48, 4), "too few values");
    assert!(run(image(&x, [5, 5], 3), &none, 36, 4), "pixels overlap");
    assert!(run(image(&x, [5, 5], 4), &none, 35, 4), "too few results");
    assert!(run(image(&x, [usize::MAX, 5], 4), &none, 36, 4));
    assert!(run(image(&x, [5, 5], 4), &Epilogue { bias: Some(&[0.0; 3]), ..none }, 36, 4));
    let residual = Some(Residual { values: &x[..35], pitch: 4, after: false });
    assert!(run(image(&x, [5, 5], 4), &Epilogue { residual, ..none }, 36, 4));
    let before = |conv: &PackedConv, prologue: Prologue<'_>| {
        conv.run_after(Some(&prologue), image(&x, [5, 5], 4), &none, &mut [0.0; 36], 4).is_err()
    };
    let gate = |gate| Prologue { gate: Some(gate), ..Prologue::default() };
    assert!(!before(&conv, gate(&[1.0; 4])));
    assert!(before(&conv, gate(&[1.0; 8])), "factors of two images");
    let norm: Option<(&[f32], &[f32])> = Some((&[1.0; 4], &[1.0; 3]));
    assert!(before(&conv, Prologue { norm, ..Prologue::default() }));
    let planes = PackedConv::new(s, &[0.0; 144], Layout::ChannelsFirst).expect("it fits");
    assert!(before(&planes, gate(&[1.0; 4])), "images of planes");
}

/// Long sums are added up in parts: one chain of float32 is off by 2e-6 of the results' root mean square here. Each kind of
/// tile adds the same parts: rows of a product equal the rows multiplied alone.
#[test]
fn long_sums_round_little() {
    let (rows, depth, columns) = (12, 12_001, 40);
    let mut random = Random(41);
    let (weights, x) = (random.floats(depth * columns), random.floats(rows * depth));
    let layer = shape([depth, columns], 1, 1, 0, 1);
    let conv = PackedConv::new(layer, &weights, Layout::ChannelsLast).expect("the weights fit");
    let product = |isa: Isa, values: &[f32], rows: usize| {
        let images = Images { values, batch: 1, sizes: [1, rows], pitch: depth };
        let mut out = vec![0.0; rows * columns];
        conv.run_with(isa, None, images, &Epilogue::default(), &mut out, columns).expect("it fits");
        out
    };
    for isa in Isa::supported() {
        let out = product(isa, &x, rows);
        let (mut off, mut size) = (0.0, 0.0);
        for (at, got) in out.iter().enumerate() {
            let (row, column) = (&x[at / columns * depth..], &weights[at % columns * depth..]);
            let terms = row.iter().zip(column).take(depth).map(|(x, w)| f64::from(*x) * f64::from(*w));
            let want: f64 = terms.sum();
            off += (f64::from(*got) - want).powi(2);
            size += want * want;
        }
        let off = (off / size).sqrt();
        assert!(off < 6e-7, "{isa:?}: {off:.2e} of the root mean square");
        let alone: Vec<f32> = x.chunks(depth).flat_map(|row| product(isa, row, 1)).collect();
        assert_eq!(out, alone, "{isa:?}: rows multiplied alone");
    }
}
