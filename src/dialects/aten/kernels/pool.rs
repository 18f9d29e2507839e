//! Pooling over plain slices: the largest or the mean of windows, in up to three spatial dimensions. One plane is one
//! channel of one image. Fewer dimensions are sizes of 1.

use super::compute::{Number, Real};
use crate::resources::pool;

/// Where windows lie along one dimension.
#[derive(Clone, Copy, Debug)]
pub struct Axis {
    /// Size of the input.
    pub input: usize,
    /// Number of windows.
    pub output: usize,
    /// Elements of a window.
    pub kernel: usize,
    /// Steps between windows.
    pub stride: usize,
    /// Padding in front; as much stands behind.
    pub padding: usize,
    /// Steps within a window.
    pub dilation: usize,
}

impl Axis {
    /// A dimension that is not there.
    pub const NONE: Axis = Axis { input: 1, output: 1, kernel: 1, stride: 1, padding: 0, dilation: 1 };

    /// The first element of a window inside the input, and the end of its reach.
    fn window(&self, at: usize) -> (usize, usize) {
        let start = at * self.stride;
        let end = (start + (self.kernel - 1) * self.dilation + 1).saturating_sub(self.padding);
        // The first step of the window that is not in the padding.
        let skipped = if start >= self.padding { 0 } else { (self.padding - start).div_ceil(self.dilation) };
        (start + skipped * self.dilation - self.padding, end.min(self.input))
    }
}

/// Work below this many visited elements stays on one thread.
const PARALLEL_WORK: usize = 1 << 17;

/// Runs `work` on each plane of `out`, on several threads where there is much of it.
pub fn each_plane<T: Send>(
    out: &mut [T],
    plane: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T]) + Sync + Send,
) {
    let plane = plane.max(1);
    if out.len().saturating_mul(cost) > PARALLEL_WORK {
        pool::chunks(out, plane, work);
    } else {
        out.chunks_mut(plane).enumerate().for_each(|(at, out)| work(at, out));
    }
}

/// The largest element of every window with its place in the input plane; NaN is larger than all.
pub fn max_with_places<T: Number + PartialOrd>(
    plane: &[T],
    axes: &[Axis; 3],
    lowest: T,
    out: &mut [(T, i64)],
) {
    // Where a window has nothing but the lowest number, its first element is the place.
    let begin = |place: usize| (lowest, place as i64);
    let take = |best: &mut (T, i64), value: T, place: usize| {
        *best = if replaces(value, best.0) { (value, place as i64) } else { *best };
    };
    walk(plane, axes, out, begin, take);
}

/// The largest element of every window.
#[inline(always)]
pub fn max<T: Number + PartialOrd>(plane: &[T], axes: &[Axis; 3], lowest: T, out: &mut [T]) {
    let take = |best: &mut T, value: T, _: usize| {
        *best = if replaces(value, *best) { value } else { *best };
    };
    walk(plane, axes, out, |_| lowest, take);
}

/// Whether a value takes the place of the largest so far. A NaN does, as it differs from itself, and stays, as nothing is
/// above it.
#[allow(clippy::eq_op, reason = "the test for NaN that is a vector comparison, without a branch")]
#[inline(always)]
fn replaces<T: Number + PartialOrd>(value: T, best: T) -> bool {
    value > best || value != value
}

/// Goes over the windows line by line, and over their elements in order. `begin` makes what a window begins with of the place of
/// its first element; `take` adds an element with its place.
#[inline(always)]
fn walk<T: Copy, O>(
    plane: &[T],
    axes: &[Axis; 3],
    out: &mut [O],
    begin: impl Fn(usize) -> O,
    take: impl Fn(&mut O, T, usize),
) {
    let [a, b, c] = axes;
    for (line, out) in out.chunks_mut(c.output).enumerate() {
        let (dz, dy) = (a.window(line / b.output), b.window(line % b.output));
        let head = (dz.0 * b.input + dy.0) * c.input;
        out.iter_mut().enumerate().for_each(|(x, out)| *out = begin(head + c.window(x).0));
        // Steps of windows that lie in the padding for all of them are left out: there may be 2^62.
        let reach = c.padding.saturating_sub(out.len().saturating_sub(1).saturating_mul(c.stride));
        let steps = reach.div_ceil(c.dilation)..c.kernel.min((c.input + c.padding).div_ceil(c.dilation));
        for z in (dz.0..dz.1).step_by(a.dilation) {
            for y in (dy.0..dy.1).step_by(b.dilation) {
                let start = (z * b.input + y) * c.input;
                let source = &plane[start..][..c.input];
                for k in steps.clone() {
                    let shift = k * c.dilation;
                    let low = c.padding.saturating_sub(shift).div_ceil(c.stride).min(out.len());
                    let high =
                        (c.input + c.padding).saturating_sub(shift).div_ceil(c.stride).clamp(low, out.len());
                    if low == high {
                        continue;
                    }
                    let first = low * c.stride + shift - c.padding;
                    let out = out[low..high].iter_mut();
                    if c.stride == 1 {
                        let values = source[first..].iter().enumerate();
                        out.zip(values).for_each(|(o, (n, v))| take(o, *v, start + first + n));
                    } else {
                        let values = source[first..].iter().step_by(c.stride).enumerate();
                        out.zip(values).for_each(|(o, (n, v))| take(o, *v, start + first + n * c.stride));
                    }
                }
            }
        }
    }
}

/// What a mean divides by.
#[derive(Clone, Copy, Debug)]
pub enum Divisor {
    /// The window with the padding that it covers.
    Padded,
    /// The elements inside the input.
    Inside,
    /// This number.
    Fixed(i64),
}

/// Start, end and padded length of a mean's window.
fn mean_window(axis: &Axis, at: usize) -> (usize, usize, usize) {
    let start = at * axis.stride;
    let end = (start + axis.kernel).min(axis.input + 2 * axis.padding);
    let inside = (start.saturating_sub(axis.padding), end.saturating_sub(axis.padding).min(axis.input));
    (inside.0, inside.1.max(inside.0), end.saturating_sub(start))
}

/// Sum of every window with its divisor; `finish(sum, divisor)` makes the result's element.
pub fn mean<T: Number>(
    plane: &[T],
    axes: &[Axis; 3],
    divisor: Divisor,
    finish: impl Fn(T, i64) -> T,
    out: &mut [T],
) {
    let mut at = 0;
    for z in 0..axes[0].output {
        let (z0, z1, zn) = mean_window(&axes[0], z);
        for y in 0..axes[1].output {
            let (y0, y1, yn) = mean_window(&axes[1], y);
            for x in 0..axes[2].output {
                let (x0, x1, xn) = mean_window(&axes[2], x);
                let mut sum = T::default();
                for z in z0..z1 {
                    for y in y0..y1 {
                        let line = (z * axes[1].input + y) * axes[2].input;
                        sum = plane[line + x0..line + x1].iter().fold(sum, |s, v| s.plus(*v));
                    }
                }
                let inside = (z1 - z0) * (y1 - y0) * (x1 - x0);
                let count = match divisor {
                    Divisor::Padded => (zn * yn * xn) as i64,
                    Divisor::Inside => inside as i64,
                    Divisor::Fixed(n) => n,
                };
                out[at] = if inside == 0 { T::default() } else { finish(sum, count) };
                at += 1;
            }
        }
    }
}

/// The part of an input of `input` elements that belongs to output `at` of `output`.
pub fn share(at: usize, input: usize, output: usize) -> (usize, usize) {
    (at * input / output, ((at + 1) * input).div_ceil(output))
}

/// The parts of an input plane for each output, in order: `visit(output, start and end along each dimension)`.
pub fn shares(input: &[usize; 3], output: &[usize; 3], mut visit: impl FnMut(usize, [(usize, usize); 3])) {
    let mut at = 0;
    for z in 0..output[0] {
        for y in 0..output[1] {
            for x in 0..output[2] {
                visit(
                    at,
                    [
                        share(z, input[0], output[0]),
                        share(y, input[1], output[1]),
                        share(x, input[2], output[2]),
                    ],
                );
                at += 1;
            }
        }
    }
}

/// The mean of each part of a volume of 16 bits, rounded after each step as PyTorch's kernel of three dimensions does.
pub fn adaptive_mean_stepped<R: Real>(
    plane: &[R],
    input: &[usize; 3],
    output: &[usize; 3],
    round: fn(f64) -> f64,
    out: &mut [R],
) {
    shares(input, output, |at, [dz, dy, dx]| {
        let mut sum = 0.0;
        for z in dz.0..dz.1 {
            for y in dy.0..dy.1 {
                let line = (z * input[1] + y) * input[2];
                sum = plane[line + dx.0..line + dx.1].iter().fold(sum, |sum, x| round(sum + x.wide()));
            }
        }
        let mean = [dz, dy, dx].iter().fold(sum, |sum, d| round(sum / (d.1 - d.0) as f64));
        out[at] = R::of(mean);
    });
}

/// The mean of each part.
pub fn adaptive_mean<R: Real>(plane: &[R], input: &[usize; 3], output: &[usize; 3], out: &mut [R]) {
    shares(input, output, |at, [dz, dy, dx]| {
        let mut sum = R::ZERO;
        for z in dz.0..dz.1 {
            for y in dy.0..dy.1 {
                let line = (z * input[1] + y) * input[2];
                sum += plane[line + dx.0..line + dx.1].iter().copied().sum();
            }
        }
        let count = (dz.1 - dz.0) * (dy.1 - dy.0) * (dx.1 - dx.0);
        out[at] = sum / R::of(count as f64);
    });
}

/// The largest element of the box `[start, end)` with its place; NaN is larger than all.
pub fn largest<R: Real>(plane: &[R], input: &[usize; 3], [dz, dy, dx]: [(usize, usize); 3]) -> (R, i64) {
    let mut best = (-R::INFINITY, ((dz.0 * input[1] + dy.0) * input[2] + dx.0) as i64);
    for z in dz.0..dz.1 {
        for y in dy.0..dy.1 {
            for x in dx.0..dx.1 {
                let place = (z * input[1] + y) * input[2] + x;
                if plane[place] > best.0 || plane[place].is_nan() {
                    best = (plane[place], place as i64);
                }
            }
        }
    }
    best
}
