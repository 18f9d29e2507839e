//! float32 convolutions of whole models, with bias and ReLU, beside OpenVINO (oneDNN) where a Python with openvino is named:
//! its kernels alone are timed, without what a call of it costs.
//!
//!     PEER_PYTHON=venv/bin/python cargo bench --bench conv            on one thread
//!     PEER_PYTHON=venv/bin/python cargo bench --bench conv -- 2       on two

use flambeau::kernels::float::{Activation, ConvShape, Epilogue, Images, Layout, PackedConv};
use flambeau::resources::pool;
use std::process::Command;
use std::time::{Duration, Instant};

/// Name; channels in and out, height and width, window, stride, padding, groups.
const LAYERS: &[(&str, [usize; 7])] = &[
    ("resnet18 conv1 7x7/2", [3, 64, 224, 7, 2, 3, 1]),
    ("resnet18 layer1 3x3", [64, 64, 56, 3, 1, 1, 1]),
    ("resnet18 layer2 3x3/2", [64, 128, 56, 3, 2, 1, 1]),
    ("resnet18 layer2 3x3", [128, 128, 28, 3, 1, 1, 1]),
    ("resnet18 layer3 3x3", [256, 256, 14, 3, 1, 1, 1]),
    ("resnet18 layer4 3x3", [512, 512, 7, 3, 1, 1, 1]),
    ("mobilenet_v2 1x1 16-96", [16, 96, 112, 1, 1, 0, 1]),
    ("mobilenet_v2 1x1 384-64", [384, 64, 14, 1, 1, 0, 1]),
    ("mobilenet_v2 depthwise 144", [144, 144, 56, 3, 1, 1, 144]),
    ("mobilenet_v2 depthwise/2 96", [96, 96, 112, 3, 2, 1, 96]),
    ("mobilenet_v2 depthwise 960", [960, 960, 7, 3, 1, 1, 960]),
    ("efficientnet_b0 depthwise 5x5", [240, 240, 28, 5, 1, 2, 240]),
    ("densenet121 3x3 128-32", [128, 32, 56, 3, 1, 1, 1]),
    ("densenet121 1x1 1024-128", [1024, 128, 14, 1, 1, 0, 1]),
    ("convnext_tiny depthwise 7x7", [96, 96, 56, 7, 1, 3, 96]),
    ("vit_b_16 patches 16x16", [3, 768, 224, 16, 16, 0, 1]),
    ("vit_b_16 linear 768-3072", [768, 3072, 14, 1, 1, 0, 1]),
];

/// The least time of a call in a fifth of a second.
fn least(mut call: impl FnMut()) -> Duration {
    let (mut least, mut spent) = (Duration::MAX, Duration::ZERO);
    while spent < Duration::from_millis(200) {
        let start = Instant::now();
        call();
        let took = start.elapsed();
        (least, spent) = (least.min(took), spent + took);
    }
    least
}

/// Our time of a layer, and how many operations it is.
fn ours([c, n, side, kernel, stride, padding, groups]: [usize; 7]) -> (Duration, f64) {
    let shape = ConvShape {
        in_channels: c,
        out_channels: n,
        kernel: [kernel; 2],
        stride: [stride; 2],
        padding: [[padding; 2]; 2],
        dilation: [1; 2],
        groups,
    };
    let floats =
        |count: usize| (0..count).map(|i| (i * 7919 % 129) as f32 / 64.0 - 1.0).collect::<Vec<f32>>();
    let terms = c / groups * kernel * kernel;
    let (x, weights, bias) = (floats(c * side * side), floats(n * terms), floats(n));
    let layout = if c == 3 { Layout::ChannelsFirst } else { Layout::ChannelsLast };
    let conv = PackedConv::new(shape, &weights, layout).expect("the layer is well formed");
    let result = shape.result([side; 2]).expect("the image is large enough");
    let mut out = vec![0.0; result[0] * result[1] * n];
    let epilogue = Epilogue { bias: Some(&bias), activation: Activation::Relu, ..Epilogue::default() };
    let images = Images { values: &x, batch: 1, sizes: [side; 2], pitch: c };
    let time = least(|| conv.run(images, &epilogue, &mut out, n).expect("the sizes fit"));
    (time, 2.0 * (out.len() * terms) as f64)
}

/// OpenVINO's time of a layer. None where there is no such Python.
fn theirs(threads: usize, layer: [usize; 7]) -> Option<Duration> {
    let python = std::env::var_os("PEER_PYTHON")?;
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/conv.py");
    let numbers = std::iter::once(threads).chain(layer).map(|n| n.to_string());
    let output = Command::new(python).arg(script).args(numbers).output().ok()?;
    let micros: f64 = String::from_utf8(output.stdout).ok()?.trim().parse().ok()?;
    Some(Duration::from_secs_f64(micros / 1e6))
}

fn main() {
    let threads = std::env::args().skip(1).find_map(|a| a.parse().ok()).unwrap_or(1);
    pool::set_threads(threads);
    println!("{:32} {:>12} {:>9} {:>12} {:>6}", "layer", "flambeau", "GFLOP/s", "openvino", "ratio");
    for (name, layer) in LAYERS {
        let (time, work) = ours(*layer);
        let seconds = time.as_secs_f64();
        let mut line = format!("{name:32} {:>9.1} us {:>9.1}", seconds * 1e6, work / seconds / 1e9);
        match theirs(threads, *layer) {
            Some(peer) => {
                let ratio = seconds / peer.as_secs_f64();
                line += &format!(" {:>9.1} us {ratio:>6.2}", peer.as_secs_f64() * 1e6);
            }
            None => line += " (PEER_PYTHON names no Python with openvino)",
        }
        println!("{line}");
    }
}
