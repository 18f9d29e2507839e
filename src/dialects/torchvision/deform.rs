//! Deformable convolution: every element of a window is read at a place of its own.

use crate::diag::{Diagnostic, Result};
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Real, build, compute_dtype};
use crate::kernels::images::bilinear::Plane;
use crate::kernels::matrix::gemm::{Matrix, Onto, matmul};
use crate::resources::memory;
use crate::tensor::Tensor;

/// The rows.
pub static OPS: &[OpDef] = &[opaque(
    "torchvision::deform_conv2d(Tensor input, Tensor weight, Tensor offset, Tensor mask, Tensor bias, SymInt stride_h, SymInt stride_w, SymInt pad_h, SymInt pad_w, SymInt dilation_h, SymInt dilation_w, SymInt groups, SymInt offset_groups, bool use_mask) -> Tensor",
    deform_conv2d,
)];

/// The numbers of a call; pairs are (height, width).
struct Geometry {
    batch: usize,
    channels: usize,
    input: [usize; 2],
    outputs: usize,
    output: [usize; 2],
    kernel: [usize; 2],
    stride: [usize; 2],
    pad: [usize; 2],
    dilation: [usize; 2],
    groups: usize,
    offset_groups: usize,
}

impl Geometry {
    fn pixels(&self) -> usize {
        self.output[0] * self.output[1]
    }

    fn area(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }
}

fn deform_conv2d(a: &Args<'_>) -> Result<Outputs> {
    let (input, weight, offset, mask, bias) =
        (a.tensor(0)?, a.tensor(1)?, a.tensor(2)?, a.tensor(3)?, a.tensor(4)?);
    let g = geometry(a, input, weight, offset)?;
    let with_mask = a.bool(13)?;
    let expected = |channels: usize| [g.batch, channels, g.output[0], g.output[1]].map(|n| n as i64);
    for (tensor, what, parts) in [(offset, "offset", 2), (mask, "mask", 1)] {
        if what == "mask" && !with_mask {
            continue;
        }
        if tensor.sizes().as_slice() != expected(parts * g.offset_groups * g.area()) {
            return Err(Diagnostic::runtime(format!(
                "deform_conv2d: {what} of sizes {:?} does not fit, expected {:?}",
                tensor.sizes().as_slice(),
                expected(parts * g.offset_groups * g.area())
            )));
        }
    }
    if bias.sizes().as_slice() != [g.outputs as i64] {
        return Err(Diagnostic::runtime(format!(
            "deform_conv2d: bias of sizes {:?} for {} channels",
            bias.sizes().as_slice(),
            g.outputs
        )));
    }
    let dtype = input.dtype();
    let sizes = expected(g.outputs);
    crate::dispatch_real!(compute_dtype(dtype), "deformable_im2col", R => {
        let tensors = [input, weight, offset, mask, bias].map(Dense::<R>::new);
        let [x, w, offset, mask, bias] = tensors;
        let (x, w, offset, mask, bias) = (x?, w?, offset?, mask?, bias?);
        let (x, w, offset, mask, bias) = (x.open()?, w.open()?, offset.open()?, mask.open()?, bias.open()?);
        let mask = if with_mask { Some(&mask[..]) } else { None };
        one(build::<R>(&sizes, dtype, |out| convolve(&x, &w, &offset, mask, &bias, &g, out))?)
    })
}

fn geometry(a: &Args<'_>, input: &Tensor, weight: &Tensor, offset: &Tensor) -> Result<Geometry> {
    let fail = |text: String| Err(Diagnostic::runtime(format!("deform_conv2d: {text}")));
    let (x, w) = (input.sizes(), weight.sizes());
    if x.len() != 4 || w.len() != 4 || offset.rank() != 4 {
        return fail("input, weight and offset must have 4 dimensions".into());
    }
    let mut numbers = [0i64; 8];
    for (at, number) in numbers.iter_mut().enumerate() {
        *number = a.int(5 + at)?;
    }
    let [sh, sw, ph, pw, dh, dw, groups, offset_groups] = numbers;
    if sh <= 0 || sw <= 0 || dh <= 0 || dw <= 0 || groups <= 0 || offset_groups <= 0 || ph < 0 || pw < 0 {
        return fail("stride, dilation and groups must be positive, padding not negative".into());
    }
    if w[1].saturating_mul(groups) != x[1] || w[0] % groups != 0 || x[1] % offset_groups != 0 {
        return fail(format!(
            "weight of sizes {:?} does not fit {} channels in {groups} groups",
            w.as_slice(),
            x[1]
        ));
    }
    let output = |d: usize, stride: i64, pad: i64, dilation: i64| {
        let reach = dilation.saturating_mul(w[d] - 1).saturating_add(1);
        (x[d].saturating_add(pad.saturating_mul(2)).saturating_sub(reach))
            .div_euclid(stride)
            .saturating_add(1)
    };
    let (oh, ow) = (output(2, sh, ph, dh), output(3, sw, pw, dw));
    if oh <= 0 || ow <= 0 {
        return fail(format!("Calculated output size too small - out_h: {oh} out_w: {ow}"));
    }
    let pair = |y: i64, x: i64| [y as usize, x as usize];
    Ok(Geometry {
        batch: x[0] as usize,
        channels: x[1] as usize,
        input: pair(x[2], x[3]),
        outputs: w[0] as usize,
        output: pair(oh, ow),
        kernel: pair(w[2], w[3]),
        stride: pair(sh, sw),
        pad: pair(ph, pw),
        dilation: pair(dh, dw),
        groups: groups as usize,
        offset_groups: offset_groups as usize,
    })
}

/// Windows as columns, then a product with the weights, group by group.
fn convolve<R: Real>(
    x: &[R],
    w: &[R],
    offset: &[R],
    mask: Option<&[R]>,
    bias: &[R],
    g: &Geometry,
    out: &mut [R],
) -> Result<()> {
    let (pixels, area) = (g.pixels(), g.area());
    let image = g.channels * g.input[0] * g.input[1];
    let (channels, outputs) = (g.channels / g.groups, g.outputs / g.groups);
    let rows = channels * area;
    // Columns of one group of channels at a time, so that memory stays bounded by the largest.
    let mut columns = memory::filled(rows.saturating_mul(pixels), R::ZERO)?;
    for n in 0..g.batch {
        let moves = &offset[n * 2 * g.offset_groups * area * pixels..];
        let weights = mask.map(|m| &m[n * g.offset_groups * area * pixels..]);
        for group in 0..g.groups {
            for c in 0..channels {
                let channel = group * channels + c;
                let plane = &x[n * image + channel * g.input[0] * g.input[1]..];
                let plane =
                    Plane { data: &plane[..g.input[0] * g.input[1]], height: g.input[0], width: g.input[1] };
                let part = channel / (g.channels / g.offset_groups);
                let columns = &mut columns[c * area * pixels..(c + 1) * area * pixels];
                gather(
                    plane,
                    &moves[part * 2 * area * pixels..],
                    weights.map(|m| &m[part * area * pixels..]),
                    g,
                    columns,
                );
            }
            let kernel = Matrix::dense(&w[group * outputs * rows..], outputs, rows);
            let first = (n * g.outputs + group * outputs) * pixels;
            let out = &mut out[first..first + outputs * pixels];
            for (o, plane) in out.chunks_mut(pixels).enumerate() {
                plane.fill(bias[group * outputs + o]);
            }
            matmul(kernel, Matrix::dense(&columns, rows, pixels), out, pixels, Onto::Existing)?;
        }
    }
    Ok(())
}

/// The windows of one channel as columns, one row for each element of the window.
fn gather<R: Real>(plane: Plane<'_, R>, moves: &[R], mask: Option<&[R]>, g: &Geometry, columns: &mut [R]) {
    let pixels = g.pixels();
    for (k, row) in columns.chunks_mut(pixels).enumerate() {
        let (ky, kx) = (k / g.kernel[1], k % g.kernel[1]);
        for (at, value) in row.iter_mut().enumerate() {
            let (oy, ox) = (at / g.output[1], at % g.output[1]);
            let start = |d: usize, out: usize, k: usize| {
                R::of((out * g.stride[d] + k * g.dilation[d]) as f64 - g.pad[d] as f64)
            };
            let y = start(0, oy, ky) + moves[2 * k * pixels + at];
            let x = start(1, ox, kx) + moves[(2 * k + 1) * pixels + at];
            let weight = mask.map_or(R::ONE, |m| m[k * pixels + at]);
            *value = weight * plane.amid_zeros(y, x);
        }
    }
}
