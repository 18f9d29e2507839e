//! Convolutions of one to three spatial dimensions over plain slices: windows as columns and a matrix product,
//! a direct walk where every channel stands alone, and the transposed form. Fewer dimensions are sizes of 1.

use super::depthwise::Grid;
use super::geometry::Geometry;
use crate::diag::Result;
use crate::kernels::matrix::gemm::{Gemm, Matrix, Onto, matmul};
use crate::kernels::wide_loops;
use crate::resources::memory;
use crate::resources::pool;

/// Elements of a block of columns: what fits into a second-level cache.
pub(super) const BLOCK: usize = 1 << 18;

/// The convolution. Writes all of `out`.
pub fn forward<T: Gemm>(x: &[T], w: &[T], bias: Option<&[T]>, g: &Geometry, out: &mut [T]) -> Result<()> {
    let pixels = g.pixels_out();
    if pixels == 0 || g.batch == 0 {
        return Ok(());
    }
    if g.channels_in == g.groups && g.groups > 1 {
        let image = g.pixels_in();
        let per_group = g.channels_out / g.groups;
        let grid = Grid::new(g);
        return each(out, pixels, g.area() * pixels, |at, plane| {
            let (n, channel) = (at / g.channels_out, at % g.channels_out);
            let source = (n * g.channels_in + channel / per_group) * image;
            let (image, kernel) = (&x[source..source + image], &w[channel * g.area()..][..g.area()]);
            let bias = bias.map_or(T::default(), |b| b[channel]);
            match &grid {
                Some(grid) if !kernel.is_empty() => grid.run(image, kernel, bias, g, plane),
                _ => {
                    plane.fill(bias);
                    depthwise(image, kernel, g, plane);
                }
            }
            Ok(())
        });
    }
    fill_bias(bias, pixels, out);
    let (channels, outputs) = (g.channels_in / g.groups, g.channels_out / g.groups);
    let rows = channels * g.area();
    let image = channels * g.pixels_in();
    let onto = if bias.is_some() { Onto::Existing } else { Onto::Nothing };
    each(out, outputs * pixels, outputs * rows * pixels, |at, out| {
        let weights = Matrix::dense(&w[(at % g.groups) * outputs * rows..], outputs, rows);
        let image = &x[at * image..(at + 1) * image];
        if g.is_pointwise() {
            return matmul(weights, Matrix::dense(image, rows, pixels), out, pixels, onto);
        }
        let block = (BLOCK / rows.max(1)).max(64).min(pixels);
        let mut columns = memory::filled(rows.saturating_mul(block), T::default())?;
        let mut from = 0;
        while from < pixels {
            let to = (from + block).min(pixels);
            let columns = &mut columns[..rows * (to - from)];
            wide_loops(
                #[inline(always)]
                || gather(image, g, from, to, columns),
            );
            matmul(weights, Matrix::dense(columns, rows, to - from), &mut out[from..], pixels, onto)?;
            from = to;
        }
        Ok(())
    })
}

fn fill_bias<T: Gemm>(bias: Option<&[T]>, pixels: usize, out: &mut [T]) {
    if let Some(bias) = bias {
        for (plane, value) in out.chunks_mut(pixels).zip(bias.iter().cycle()) {
            plane.fill(*value);
        }
    }
}

/// Runs work on equal parts of the output, on several threads where there is much of it.
fn each<T: Gemm>(
    out: &mut [T],
    part: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) -> Result<()> + Sync,
) -> Result<()> {
    let parts = out.len() / part.max(1);
    if parts > 1 && cost.saturating_mul(parts) > 1 << 20 {
        pool::try_chunks(out, part, work)
    } else {
        out.chunks_mut(part.max(1)).enumerate().try_for_each(|(at, out)| work(at, out))
    }
}

/// The windows of output pixels `from..to` as columns: one row for each element of the window.
#[inline(always)]
pub(super) fn gather<T: Gemm>(image: &[T], g: &Geometry, from: usize, to: usize, columns: &mut [T]) {
    let pixels = g.pixels_in();
    let count = to - from;
    let [kd, kh, kw] = g.kernel;
    let width = g.output[2];
    let shifts = g.shifts();
    for (row, column) in columns.chunks_mut(count).enumerate() {
        let (c, k) = (row / (kd * kh * kw), row % (kd * kh * kw));
        let (z, y, x) = (k / (kh * kw), k / kw % kh, k % kw);
        let plane = &image[c * pixels..(c + 1) * pixels];
        if shifts {
            shifted(plane, g, [y, x], from, column);
            continue;
        }
        let (low, high) = g.inside(x);
        let mut at = from;
        while at < to {
            let (line, start) = (at / width, at % width);
            let stop = width.min(start + (to - at));
            let target = &mut column[at - from..at - from + stop - start];
            at += stop - start;
            let source = g.source(0, line / g.output[1], z).zip(g.source(1, line % g.output[1], y));
            let Some((sz, sy)) = source else {
                target.fill(T::default());
                continue;
            };
            let line = &plane[(sz * g.input[1] + sy) * g.input[2]..][..g.input[2]];
            let (low, high) = (low.clamp(start, stop), high.clamp(start, stop));
            target[..low - start].fill(T::default());
            target[high - start..].fill(T::default());
            if low == high {
                continue;
            }
            let target = &mut target[low - start..high - start];
            let first = low * g.stride[2] + x * g.dilation[2] - g.before[2];
            if g.stride[2] == 1 {
                target.copy_from_slice(&line[first..first + target.len()]);
            } else {
                for (t, s) in target.iter_mut().zip(line[first..].iter().step_by(g.stride[2])) {
                    *t = *s;
                }
            }
        }
    }
}

/// The pixels from `from` on of an image that is moved by the place `[y, x]` in its windows, zeros where nothing comes from.
#[inline(always)]
fn shifted<T: Gemm>(plane: &[T], g: &Geometry, place: [usize; 2], from: usize, column: &mut [T]) {
    let (first, range) = g.moved(place, from..from + column.len());
    let (start, end) = (range.start - from, range.end - from);
    column[..start].fill(T::default());
    column[end..].fill(T::default());
    column[start..end].copy_from_slice(&plane[first..first + end - start]);
    g.outside(place[1], from, &mut column[start..end], range.start - from);
}

/// One channel with its own kernel, line by line: for windows of any number of dimensions.
fn depthwise<T: Gemm>(image: &[T], kernel: &[T], g: &Geometry, plane: &mut [T]) {
    wide_loops(
        #[inline(always)]
        || {
            let [_, kh, kw] = g.kernel;
            for (line, out) in plane.chunks_mut(g.output[2]).enumerate() {
                for (k, weight) in kernel.iter().enumerate() {
                    let (z, y, x) = (k / (kh * kw), k / kw % kh, k % kw);
                    let source = g.source(0, line / g.output[1], z).zip(g.source(1, line % g.output[1], y));
                    let Some((sz, sy)) = source else { continue };
                    let (low, high) = g.inside(x);
                    if low == high {
                        continue;
                    }
                    let line = &image[(sz * g.input[1] + sy) * g.input[2]..][..g.input[2]];
                    let out = &mut out[low..high];
                    let first = low * g.stride[2] + x * g.dilation[2] - g.before[2];
                    if g.stride[2] == 1 {
                        for (t, s) in out.iter_mut().zip(&line[first..]) {
                            *t = t.plus(weight.times(*s));
                        }
                    } else {
                        for (t, s) in out.iter_mut().zip(line[first..].iter().step_by(g.stride[2])) {
                            *t = t.plus(weight.times(*s));
                        }
                    }
                }
            }
        },
    );
}

/// The transposed convolution: every input pixel adds a window to the output. Here the geometry is that of the
/// convolution it transposes: `output` are the sizes of `x`, `input` those of `out`, and `channels_out` belong to `x`.
/// `out` holds zeros. With `round` windows and sums are rounded as they come, and the bias is added last.
pub fn transposed<T: Gemm>(
    x: &[T],
    w: &[T],
    bias: Option<&[T]>,
    g: &Geometry,
    round: Option<&(dyn Fn(T) -> T + Sync)>,
    out: &mut [T],
) -> Result<()> {
    let (pixels, image) = (g.pixels_out(), g.pixels_in());
    if image == 0 || g.batch == 0 {
        return Ok(());
    }
    fill_bias(bias.filter(|_| round.is_none()), image, out);
    let (sources, targets) = (g.channels_out / g.groups, g.channels_in / g.groups);
    let area = g.area();
    each(out, targets * image, sources * targets * area * pixels, |at, out| {
        let x = Matrix::dense(&x[at * sources * pixels..], sources, pixels);
        let weights = &w[(at % g.groups) * sources * targets * area..];
        let block = (4 * BLOCK / (area * pixels).max(1)).clamp(1, targets.max(1));
        let mut columns = memory::filled(block.saturating_mul(area).saturating_mul(pixels), T::default())?;
        let mut from = 0;
        while from < targets {
            let count = block.min(targets - from);
            let rows = count * area;
            let part = Matrix {
                data: weights.get(from * area..).unwrap_or(&[]),
                rows: sources,
                cols: rows,
                row_stride: targets * area,
                col_stride: 1,
            };
            let columns = &mut columns[..rows * pixels];
            matmul(part.t(), x, columns, pixels, Onto::Nothing)?;
            let planes = &mut out[from * image..(from + count) * image];
            match round {
                Some(round) => {
                    columns.iter_mut().for_each(|x| *x = round(*x));
                    scatter(columns, g, planes, |sum, x| round(sum.plus(x)));
                }
                None => wide_loops(
                    #[inline(always)]
                    || scatter(columns, g, planes, |sum, x| sum.plus(x)),
                ),
            }
            from += count;
        }
        Ok(())
    })?;
    if let (Some(_), Some(bias)) = (round, bias) {
        for (plane, value) in out.chunks_mut(image).zip(bias.iter().cycle()) {
            plane.iter_mut().for_each(|y| *y = y.plus(*value));
        }
    }
    Ok(())
}

/// Adds columns (one row for each element of the window) where the windows lie; what lies outside of images is cleared.
#[inline(always)]
fn scatter<T: Gemm>(columns: &mut [T], g: &Geometry, planes: &mut [T], add: impl Fn(T, T) -> T) {
    let (pixels, image) = (g.pixels_out(), g.pixels_in());
    if pixels == 0 {
        return;
    }
    let [kd, kh, kw] = g.kernel;
    let width = g.output[2];
    let shifts = g.shifts();
    for (row, column) in columns.chunks_mut(pixels).enumerate() {
        let (c, k) = (row / (kd * kh * kw), row % (kd * kh * kw));
        let (z, y, x) = (k / (kh * kw), k / kw % kh, k % kw);
        let plane = &mut planes[c * image..(c + 1) * image];
        if shifts {
            let (first, range) = g.moved([y, x], 0..pixels);
            g.outside(x, 0, &mut column[range.clone()], range.start);
            let values = &column[range];
            plane[first..first + values.len()].iter_mut().zip(values).for_each(|(t, v)| *t = add(*t, *v));
            continue;
        }
        let (low, high) = g.inside(x);
        if low == high {
            continue;
        }
        let first = low * g.stride[2] + x * g.dilation[2] - g.before[2];
        for (line, values) in column.chunks(width).enumerate() {
            let target = g.source(0, line / g.output[1], z).zip(g.source(1, line % g.output[1], y));
            let Some((tz, ty)) = target else { continue };
            let target = &mut plane[(tz * g.input[1] + ty) * g.input[2]..][..g.input[2]];
            let places = target[first..].iter_mut().step_by(g.stride[2]);
            for (t, v) in places.zip(&values[low..high]) {
                *t = add(*t, *v);
            }
        }
    }
}
