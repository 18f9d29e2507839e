//! Layers against their definition, for random sizes and all instructions of the machine.

use super::conv::*;
use super::epilogue::*;
use super::vector::Isa;

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

/// Runs a convolution with a random epilogue on all instructions and compares.
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
    let wanted = by_definition(&s, &images, layout, &weights);
    for isa in Isa::supported() {
        let mut out = vec![7.0f32; pixels * pitch];
        conv.run_with(isa, images, &epilogue, &mut out, pitch).expect("it fits");
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
                "{isa:?}: {y} for {wanted} at {pixel}, {channel} of {s:?} {layout:?} {sizes:?} {epilogue:?}"
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
