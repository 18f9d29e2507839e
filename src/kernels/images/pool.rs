//! Pooling over plain slices: the largest or the mean of windows, in up to three spatial dimensions. One plane is one
//! channel of one image. Fewer dimensions are sizes of 1.

use crate::kernels::compute::{Number, Real};
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
    /// Padding in front; as much follows.
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

/// Runs `work` on each plane of two results of the same sizes, on several threads where there is much of it.
pub fn each_pair_of_planes<T: Send, U: Send>(
    (a, b): (&mut [T], &mut [U]),
    plane: usize,
    cost: usize,
    work: impl Fn(usize, &mut [T], &mut [U]) + Sync + Send,
) {
    let plane = plane.max(1);
    // Enough planes at a time that there are few pieces.
    let share = (PARALLEL_WORK / plane.saturating_mul(cost).max(1)).max(1);
    let piece = |at: usize, a: &mut [T], b: &mut [U]| {
        let planes = a.chunks_mut(plane).zip(b.chunks_mut(plane));
        planes.enumerate().for_each(|(n, (a, b))| work(at * share + n, a, b));
    };
    if a.len().saturating_mul(cost) > PARALLEL_WORK {
        let size = share.saturating_mul(plane);
        let pieces: Vec<_> = a.chunks_mut(size).zip(b.chunks_mut(size)).enumerate().collect();
        pool::each(pieces, |(at, (a, b))| piece(at, a, b));
    } else {
        let whole = a.chunks_mut(plane).zip(b.chunks_mut(plane));
        whole.enumerate().for_each(|(n, (a, b))| work(n, a, b));
    }
}

/// The largest element of every window and its place in the input plane; NaN is larger than all.
#[inline(always)]
pub fn max_with_places<T: Number + PartialOrd>(
    plane: &[T],
    axes: &[Axis; 3],
    lowest: T,
    values: &mut [T],
    places: &mut [i64],
) {
    if halves(axes) {
        return halved(plane, axes, lowest, values, places);
    }
    walk(plane, axes, &mut LargestAndPlaces { lowest, values, places });
}

/// Whether windows are two by two, side by side and inside the plane.
fn halves(axes: &[Axis; 3]) -> bool {
    let two = |axis: &Axis| {
        (axis.kernel, axis.stride, axis.padding, axis.dilation) == (2, 2, 0, 1)
            && axis.output.checked_mul(2).is_some_and(|reach| reach <= axis.input)
    };
    let one = |axis: &Axis| (axis.input, axis.output, axis.kernel, axis.padding) == (1, 1, 1, 0);
    one(&axes[0]) && two(&axes[1]) && two(&axes[2])
}

/// The most common windows without steps between: of each pair of lines, the pairs of elements. Pairs of a line come first, as
/// many lines at a time as fit, so that vectors are full where lines are short; a later element wins as it does one by one.
#[inline(always)]
fn halved<T: Number + PartialOrd>(
    plane: &[T],
    axes: &[Axis; 3],
    lowest: T,
    values: &mut [T],
    places: &mut [i64],
) {
    const PAIRS: usize = 512;
    let (width, count) = (axes[2].input, axes[2].output.max(1));
    let (mut largest, mut second) = ([lowest; PAIRS], [false; PAIRS]);
    // Pairs of the two lines of a window, for as many windows as have room, or a part of a long line's.
    let part = count.min(PAIRS / 2);
    let lines = if width == 2 * count { (PAIRS / width).max(1) } else { 1 };
    for top in (0..values.len() / count).step_by(lines) {
        let lines = lines.min(values.len() / count - top);
        for left in (0..count).step_by(part) {
            let part = part.min(count - left);
            let start = 2 * top * width + 2 * left;
            let mut pairs = |start: usize, length: usize, at: usize| {
                let source = plane[start..start + 2 * length].chunks_exact(2);
                let out = largest[at..at + length].iter_mut().zip(&mut second[at..at + length]);
                for ((value, second), pair) in out.zip(source) {
                    *second = replaces(pair[1], pair[0]);
                    *value = if *second { pair[1] } else { pair[0] };
                }
            };
            if width == 2 * part {
                pairs(start, 2 * lines * part, 0);
            } else {
                pairs(start, part, 0);
                pairs(start + width, part, part);
            }
            for line in 0..lines {
                let (upper, lower) =
                    (2 * line * part..(2 * line + 1) * part, (2 * line + 1) * part..(2 * line + 2) * part);
                let start = (top + line) * count + left;
                let first = (2 * ((top + line) * width + left)) as i64;
                let out = values[start..start + part].iter_mut().zip(&mut places[start..start + part]);
                let above = largest[upper.clone()].iter().zip(&second[upper]);
                let below = largest[lower.clone()].iter().zip(&second[lower]);
                for (x, ((value, place), (above, below))) in out.zip(above.zip(below)).enumerate() {
                    // Values are chosen, not places in memory: so it is done in vectors.
                    let wins = replaces(*below.0, *above.0);
                    *value = if wins { *below.0 } else { *above.0 };
                    let (column, line) = if wins { (*below.1, width as i64) } else { (*above.1, 0) };
                    *place = first + 2 * x as i64 + i64::from(column) + line;
                }
            }
        }
    }
}

/// The largest element of every window.
#[inline(always)]
pub fn max<T: Number + PartialOrd>(plane: &[T], axes: &[Axis; 3], lowest: T, out: &mut [T]) {
    walk(plane, axes, &mut Largest { lowest, values: out });
}

/// The state of windows as their elements are visited.
trait Windows<T> {
    /// A window has no elements yet; `place` is that of its first one.
    fn begin(&mut self, window: usize, place: usize);
    /// One element of each of the windows from `first` to `end`: `source[0]`, which lies at `place`, and each `stride`-th after it.
    fn take(&mut self, first: usize, end: usize, source: &[T], stride: usize, place: usize);
}

struct Largest<'a, T> {
    lowest: T,
    values: &'a mut [T],
}

impl<T: Number + PartialOrd> Windows<T> for Largest<'_, T> {
    #[inline(always)]
    fn begin(&mut self, window: usize, _: usize) {
        self.values[window] = self.lowest;
    }

    #[inline(always)]
    fn take(&mut self, first: usize, end: usize, source: &[T], stride: usize, _: usize) {
        let take = |best: &mut T, value: T| *best = if replaces(value, *best) { value } else { *best };
        let values = self.values[first..end].iter_mut();
        match stride {
            1 => values.zip(source).for_each(|(best, value)| take(best, *value)),
            _ => values.zip(source.iter().step_by(stride)).for_each(|(best, value)| take(best, *value)),
        }
    }
}

struct LargestAndPlaces<'a, T> {
    lowest: T,
    values: &'a mut [T],
    places: &'a mut [i64],
}

impl<T: Number + PartialOrd> Windows<T> for LargestAndPlaces<'_, T> {
    // Where a window has nothing but the lowest number, its first element is the place.
    #[inline(always)]
    fn begin(&mut self, window: usize, place: usize) {
        (self.values[window], self.places[window]) = (self.lowest, place as i64);
    }

    #[inline(always)]
    fn take(&mut self, first: usize, end: usize, source: &[T], stride: usize, place: usize) {
        let take = |best: &mut T, at: &mut i64, value: T, place: usize| {
            let better = replaces(value, *best);
            *best = if better { value } else { *best };
            *at = if better { place as i64 } else { *at };
        };
        let out = self.values[first..end].iter_mut().zip(&mut self.places[first..end]);
        match stride {
            1 => {
                let values = source.iter().enumerate();
                out.zip(values).for_each(|((best, at), (n, v))| take(best, at, *v, place + n));
            }
            _ => {
                let values = source.iter().step_by(stride).enumerate();
                out.zip(values).for_each(|((best, at), (n, v))| take(best, at, *v, place + n * stride));
            }
        }
    }
}

/// Whether a value takes the place of the largest so far. A NaN does, as it differs from itself, and stays, as nothing is
/// above it.
#[allow(clippy::eq_op, reason = "the test for NaN that is a vector comparison, without a branch")]
#[inline(always)]
fn replaces<T: Number + PartialOrd>(value: T, best: T) -> bool {
    value > best || value != value
}

/// Goes over the windows line by line, and over their elements in order.
#[inline(always)]
fn walk<T: Copy>(plane: &[T], axes: &[Axis; 3], out: &mut impl Windows<T>) {
    let [a, b, c] = axes;
    for line in 0..a.output * b.output {
        let (dz, dy) = (a.window(line / b.output), b.window(line % b.output));
        let head = (dz.0 * b.input + dy.0) * c.input;
        let base = line * c.output;
        (0..c.output).for_each(|x| out.begin(base + x, head + c.window(x).0));
        // Steps of windows that lie in the padding for all of them are left out: there may be 2^62.
        let reach = c.padding.saturating_sub(c.output.saturating_sub(1).saturating_mul(c.stride));
        let steps = reach.div_ceil(c.dilation)..c.kernel.min((c.input + c.padding).div_ceil(c.dilation));
        for z in (dz.0..dz.1).step_by(a.dilation) {
            for y in (dy.0..dy.1).step_by(b.dilation) {
                let start = (z * b.input + y) * c.input;
                let source = &plane[start..][..c.input];
                for k in steps.clone() {
                    let shift = k * c.dilation;
                    let low = c.padding.saturating_sub(shift).div_ceil(c.stride).min(c.output);
                    let high =
                        (c.input + c.padding).saturating_sub(shift).div_ceil(c.stride).clamp(low, c.output);
                    if low == high {
                        continue;
                    }
                    let first = low * c.stride + shift - c.padding;
                    out.take(base + low, base + high, &source[first..], c.stride, start + first);
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

/// The largest elements, channel by channel, of the box from line `dy.0` to `dy.1` and column `dx.0` to `dx.1` of an image with lines of
/// `width` pixels, whose channels lie innermost; and their places among the pixels. NaN is larger than all.
#[inline(always)]
pub fn largest_of_pixels<R: Real>(
    image: &[R],
    width: usize,
    [dy, dx]: [(usize, usize); 2],
    values: &mut [R],
    places: &mut [i64],
) {
    const SOME: usize = 32;
    let channels = values.len();
    let parts = values.chunks_mut(SOME).zip(places.chunks_mut(SOME)).enumerate();
    for (part, (values, places)) in parts {
        let (mut best, mut at) = ([-R::INFINITY; SOME], [(dy.0 * width + dx.0) as i64; SOME]);
        for y in dy.0..dy.1 {
            for place in y * width + dx.0..y * width + dx.1 {
                let pixel = &image[place * channels + part * SOME..][..values.len()];
                for ((best, at), x) in best.iter_mut().zip(&mut at).zip(pixel) {
                    let better = replaces(*x, *best);
                    *best = if better { *x } else { *best };
                    *at = if better { place as i64 } else { *at };
                }
            }
        }
        values.copy_from_slice(&best[..values.len()]);
        places.copy_from_slice(&at[..places.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pixels_and_planes_have_the_same_largest_elements() {
        let (channels, height, width) = (37, 6, 5);
        let value = |n: usize| match n % 29 {
            0 => f32::NAN,
            1 => f32::NEG_INFINITY,
            other => ((other * 7919) % 11) as f32,
        };
        let pixels: Vec<f32> = (0..channels * height * width).map(value).collect();
        for part in [[(0, 6), (0, 5)], [(1, 3), (2, 4)], [(5, 6), (4, 5)]] {
            let (mut values, mut places) = (vec![0f32; channels], vec![0i64; channels]);
            largest_of_pixels(&pixels, width, part, &mut values, &mut places);
            for channel in 0..channels {
                let plane: Vec<f32> = pixels.iter().skip(channel).step_by(channels).copied().collect();
                let (value, place) = largest(&plane, &[1, height, width], [(0, 1), part[0], part[1]]);
                assert_eq!((values[channel].to_bits(), places[channel]), (value.to_bits(), place));
            }
        }
    }

    #[test]
    fn pairs_of_lines_give_what_windows_give_element_by_element() {
        for (height, width) in [(2, 2), (4, 7), (28, 28), (5, 30), (6, 512), (4, 513), (2, 1400), (62, 34)] {
            let axis = |input: usize| Axis {
                input,
                output: input / 2,
                kernel: 2,
                stride: 2,
                padding: 0,
                dilation: 1,
            };
            let axes = [
                Axis { input: 1, output: 1, kernel: 1, stride: 1, padding: 0, dilation: 1 },
                axis(height),
                axis(width),
            ];
            // Equal elements, infinities and NaN are among them.
            let plane: Vec<f32> = (0..height * width)
                .map(|n| match (n * 7919) % 23 {
                    0 => f32::NAN,
                    1..=4 => f32::NEG_INFINITY,
                    other => (other % 5) as f32,
                })
                .collect();
            let count = (height / 2) * (width / 2);
            let (mut values, mut places) = (vec![0f32; count], vec![0i64; count]);
            let (mut others, mut other_places) = (vec![0f32; count], vec![0i64; count]);
            halved(&plane, &axes, f32::NEG_INFINITY, &mut values, &mut places);
            let mut windows = LargestAndPlaces {
                lowest: f32::NEG_INFINITY,
                values: &mut others,
                places: &mut other_places,
            };
            walk(&plane, &axes, &mut windows);
            let bits = |values: &[f32]| values.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
            assert_eq!(places, other_places, "{height} {width}");
            assert_eq!(bits(&values), bits(&others), "{height} {width}");
        }
    }
}
