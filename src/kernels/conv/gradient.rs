//! The derivative of a convolution by its weights: windows as columns, times the gradient of the result, summed over images.

use super::dense::{BLOCK, gather};
use super::geometry::Geometry;
use crate::diag::Result;
use crate::kernels::matrix::gemm::{Gemm, Matrix, Onto, matmul};
use crate::kernels::wide_loops;
use crate::resources::{memory, pool};

/// Elements of a window's rows that a part of a weight gradient takes: parts are what threads share, and as few sums are open.
const PART_ROWS: usize = 288;

/// The derivative of a convolution by its weights, `out[o, w] = sum over images and pixels of dy[o, pixel] * window[w, pixel]`,
/// for the gradient `dy` of its result. `g` is the convolution's geometry. Writes all of `out`. Sums run in the order of images
/// and pixels on any number of threads.
pub fn weight_gradient<T: Gemm>(x: &[T], dy: &[T], g: &Geometry, out: &mut [T]) -> Result<()> {
    let (pixels, image, area) = (g.pixels_out(), g.pixels_in(), g.area());
    let (channels, outputs) = (g.channels_in / g.groups, g.channels_out / g.groups);
    let rows = channels * area;
    if rows == 0 || outputs == 0 {
        return Ok(());
    }
    let part = (PART_ROWS / area.max(1)).clamp(1, channels);
    let parts = channels.div_ceil(part);
    // Turned: one row for each element of the window, so that a part is a piece of memory.
    let mut turned = memory::filled(g.groups * rows * outputs, T::default())?;
    let pieces: Vec<(usize, &mut [T])> = turned
        .chunks_mut(rows * outputs)
        .flat_map(|group| group.chunks_mut(part * area * outputs))
        .enumerate()
        .collect();
    pool::try_each(pieces, |(at, sums)| {
        let (group, first) = (at / parts, at % parts * part);
        let rows = sums.len() / outputs;
        let block = (BLOCK / rows.max(1)).max(64).min(pixels.max(1));
        let pointwise = g.is_pointwise();
        let mut columns =
            memory::filled(if pointwise { 0 } else { rows.saturating_mul(block) }, T::default())?;
        for n in 0..g.batch {
            let source = &x[((n * g.groups + group) * channels + first) * image..][..rows / area * image];
            let grads = &dy[(n * g.groups + group) * outputs * pixels..][..outputs * pixels];
            if pointwise {
                let grads = Matrix::dense(grads, outputs, pixels);
                matmul(Matrix::dense(source, rows, pixels), grads.t(), sums, outputs, Onto::Existing)?;
                continue;
            }
            for from in (0..pixels).step_by(block) {
                let count = block.min(pixels - from);
                let columns = &mut columns[..rows * count];
                wide_loops(
                    #[inline(always)]
                    || gather(source, g, from, from + count, columns),
                );
                let grads = Matrix {
                    data: &grads[from..],
                    rows: outputs,
                    cols: count,
                    row_stride: pixels,
                    col_stride: 1,
                };
                matmul(Matrix::dense(columns, rows, count), grads.t(), sums, outputs, Onto::Existing)?;
            }
        }
        Ok(())
    })?;
    for (turned, out) in turned.chunks(rows * outputs).zip(out.chunks_mut(rows * outputs)) {
        for (o, line) in out.chunks_mut(rows).enumerate() {
            line.iter_mut().zip(turned[o..].iter().step_by(outputs)).for_each(|(to, from)| *to = *from);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::dense::{forward, transposed};
    use super::*;

    struct Random(u64);

    impl Random {
        fn below(&mut self, n: usize) -> usize {
            self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (self.0 >> 33) as usize % n
        }
    }

    /// Each product by itself, in double precision.
    fn plain(x: &[f32], dy: &[f32], g: &Geometry) -> Vec<f64> {
        let (channels, outputs, area) = (g.channels_in / g.groups, g.channels_out / g.groups, g.area());
        let mut out = vec![0.0; g.channels_out * channels * area];
        let at =
            |n: usize, sizes: [usize; 3]| [n / (sizes[1] * sizes[2]), n / sizes[2] % sizes[1], n % sizes[2]];
        for n in 0..g.batch {
            for o in 0..g.channels_out {
                for c in 0..channels {
                    for k in 0..area {
                        for p in 0..g.pixels_out() {
                            let (k3, p3) = (at(k, g.kernel), at(p, g.output));
                            let place = |d: usize| {
                                let at = p3[d] * g.stride[d] + k3[d] * g.dilation[d];
                                at.checked_sub(g.before[d]).filter(|at| *at < g.input[d])
                            };
                            let (Some(z), Some(y), Some(w)) = (place(0), place(1), place(2)) else {
                                continue;
                            };
                            let channel = o / outputs * channels + c;
                            let pixel = (z * g.input[1] + y) * g.input[2] + w;
                            let a = x[(n * g.channels_in + channel) * g.pixels_in() + pixel];
                            let b = dy[(n * g.channels_out + o) * g.pixels_out() + p];
                            out[(o * channels + c) * area + k] += f64::from(a) * f64::from(b);
                        }
                    }
                }
            }
        }
        out
    }

    #[test]
    fn sums_are_those_of_each_product() {
        let mut random = Random(7);
        for _ in 0..60 {
            let groups = 1 + random.below(3);
            let mut g = Geometry {
                batch: random.below(4),
                groups,
                channels_in: groups * (1 + random.below(5)),
                channels_out: groups * (1 + random.below(4)),
                input: [0; 3],
                output: [1 + random.below(3), 1 + random.below(6), 1 + random.below(20)],
                kernel: [1 + random.below(2), 1 + random.below(3), 1 + random.below(3)],
                stride: [0; 3].map(|_: usize| 1 + random.below(2)),
                dilation: [0; 3].map(|_: usize| 1 + random.below(2)),
                before: [0; 3].map(|_: usize| random.below(2)),
            };
            for d in 0..3 {
                let reach = (g.output[d] - 1) * g.stride[d] + (g.kernel[d] - 1) * g.dilation[d] + 1;
                g.input[d] = reach.saturating_sub(2 * g.before[d]).max(1);
            }
            compare(&g, &mut random);
        }
    }

    #[test]
    fn windows_that_are_moved_images_see_what_others_see() {
        let mut random = Random(11);
        for _ in 0..60 {
            let kernel = [1, 1 + 2 * random.below(3), 1 + 2 * random.below(3)];
            let dilation = [1, 1 + random.below(3), 1 + random.below(3)];
            let output = [1, 1 + random.below(9), 1 + random.below(9)];
            let g = Geometry {
                batch: 1 + random.below(2),
                groups: 1,
                channels_in: 1 + random.below(3),
                channels_out: 1 + random.below(3),
                input: output,
                output,
                kernel,
                stride: [1; 3],
                dilation,
                before: [0, kernel[1] / 2 * dilation[1], kernel[2] / 2 * dilation[2]],
            };
            compare(&g, &mut random);
        }
    }

    /// Compares the gradient by weights and, as its transposes, the convolution and the gradient by images.
    fn compare(g: &Geometry, random: &mut Random) {
        let mut floats =
            |n: usize| -> Vec<f32> { (0..n).map(|_| random.below(200) as f32 / 64.0 - 1.5).collect() };
        let x = floats(g.batch * g.channels_in * g.pixels_in());
        let dy = floats(g.batch * g.channels_out * g.pixels_out());
        let want = plain(&x, &dy, g);
        let mut out = vec![9.0_f32; want.len()];
        weight_gradient(&x, &dy, g, &mut out).expect("sizes fit");
        for (have, want) in out.iter().zip(&want) {
            assert!((f64::from(*have) - want).abs() <= 1e-4 * want.abs().max(1.0), "{have} {want} {g:?}");
        }
        let w = floats(want.len());
        let sum: f64 = want.iter().zip(&w).map(|(a, b)| a * f64::from(*b)).sum();
        let near = |a: &[f32], b: &[f32]| {
            let found: f64 = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum();
            assert!((found - sum).abs() <= 1e-3 * sum.abs().max(1.0), "{found} {sum} {g:?}");
        };
        let mut y = vec![9.0_f32; dy.len()];
        forward(&x, &w, None, g, &mut y).expect("sizes fit");
        near(&y, &dy);
        let mut dx = vec![0.0_f32; x.len()];
        transposed(&dy, &w, None, g, None, &mut dx).expect("sizes fit");
        near(&dx, &x);
    }
}
