//! Images looked up at given places, and grids of such places.

use crate::diag::{Diagnostic, Result};
use crate::dialects::shapes::layers;
use crate::dialects::{Args, OpDef, Outputs, one, opaque};
use crate::kernels::compute::{Dense, Number, Real, build, build_whole, rounding};
use crate::kernels::images::pool::each_plane;
use crate::kernels::wide_loops;
use crate::resources::{Scratch, memory};
use crate::tensor::{DType, Tensor, view};

/// The rows.
pub static OPS: &[OpDef] = &[
    opaque(
        "aten::grid_sampler(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        |a| grid_sample(a, None),
    ).infer(layers::samples),
    opaque(
        "aten::grid_sampler_2d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        |a| grid_sample(a, Some(2)),
    ).infer(layers::samples)
    .out_exact("out"),
    opaque(
        "aten::grid_sampler_3d(Tensor input, Tensor grid, int interpolation_mode, int padding_mode, bool align_corners) -> Tensor",
        |a| grid_sample(a, Some(3)),
    ).infer(layers::samples)
    .out("out"),
    opaque("aten::affine_grid_generator(Tensor theta, SymInt[] size, bool align_corners) -> Tensor", affine_grid).infer(layers::affine_grid).out("out"),
];

fn fail<T>(text: impl Into<String>) -> Result<T> {
    Err(Diagnostic::runtime(text))
}

/// What lies outside of the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// Where the places of a grid lie in an image. `round` is applied after every step: images of 16 bits are looked up in
/// their own precision, as in PyTorch.
#[derive(Clone, Copy)]
struct Rule<F> {
    outside: Outside,
    align: bool,
    dims: usize,
    round: F,
}

impl<F> Rule<F> {
    /// From -1..1 to places of elements. PyTorch's kernels of two and of three dimensions order the steps differently.
    fn place<R: Real>(&self, x: R, size: usize) -> R
    where
        F: Fn(R) -> R,
    {
        let (q, n, two) = (&self.round, R::of(size as f64), R::of(2.0));
        match (self.dims, self.align) {
            (2, true) => q(q(x + R::ONE) * q(q(n - R::ONE) / two)),
            (2, false) => q(q(q(x + R::ONE) * q(n / two)) - R::of(0.5)),
            (_, true) => q(q(q(x + R::ONE) / two) * q(n - R::ONE)),
            (_, false) => q(q(q(q(x + R::ONE) * n) - R::ONE) / two),
        }
    }

    /// A place brought into the image, where the rule says so.
    fn bring<R: Real>(&self, x: R, size: usize) -> R
    where
        F: Fn(R) -> R,
    {
        let last = R::of(size as f64 - 1.0);
        // NaN comes to lie at the first element of images, at the last of volumes.
        let clip = |x: R| match self.dims {
            2 if x > R::ZERO => {
                if x < last {
                    x
                } else {
                    last
                }
            }
            2 => R::ZERO,
            _ if x < R::ZERO => R::ZERO,
            _ => {
                if x < last {
                    x
                } else {
                    last
                }
            }
        };
        match self.outside {
            Outside::Zeros => x,
            Outside::Border => clip(x),
            Outside::Reflection => clip(self.reflect(x, size)),
        }
    }

    fn reflect<R: Real>(&self, x: R, size: usize) -> R
    where
        F: Fn(R) -> R,
    {
        let (low, high) =
            if self.align { (0.0, 2.0 * (size as f64 - 1.0)) } else { (-1.0, 2.0 * size as f64 - 1.0) };
        if low == high {
            return R::ZERO;
        }
        let q = &self.round;
        let (least, span) = (R::of(low / 2.0), R::of((high - low) / 2.0));
        let x = q(x - least).abs();
        let flips = q(x / span).floor();
        let extra = q(x - q(flips * span));
        if flips.wide() % 2.0 == 0.0 { q(extra + least) } else { q(q(span - extra) + least) }
    }
}

/// An image of one channel with zeros around it.
struct Image<'a, R> {
    pixels: &'a [R],
    sizes: [usize; 3],
}

impl<R: Real> Image<'_, R> {
    fn at(&self, places: [f64; 3]) -> R {
        let mut index = 0;
        for (place, size) in places.iter().zip(self.sizes) {
            if !(0.0..size as f64).contains(place) {
                return R::ZERO;
            }
            index = index * size + *place as usize;
        }
        self.pixels[index]
    }
}

/// The neighbours of a place in a volume, as numbers of pixels ([`NONE`] in place of those that are not there), and what each counts.
fn eight<R: Real>(sizes: [usize; 3], places: [R; 3], q: impl Fn(R) -> R) -> impl Iterator<Item = (usize, R)> {
    let floors = places.map(|p| p.floor());
    (0..8).map(move |corner| {
        let (mut weight, mut index) = (R::ONE, Some(0));
        // The width comes first in PyTorch's products.
        for d in (0..3).rev() {
            let upper = corner >> (2 - d) & 1 == 1;
            let rest = q(places[d] - floors[d]);
            weight = q(weight * if upper { rest } else { q(R::ONE - rest) });
        }
        for d in 0..3 {
            let at = floors[d].wide() + f64::from(u8::from(corner >> (2 - d) & 1 == 1));
            let inside = (0.0..sizes[d] as f64).contains(&at);
            index = index.filter(|_| inside).map(|index| index * sizes[d] + at as usize);
        }
        (index.unwrap_or(NONE), weight)
    })
}

/// The same in an image: those of the upper line, then those of the lower one.
fn four<R: Real>([_, height, width]: [usize; 3], [_, y, x]: [R; 3], q: impl Fn(R) -> R) -> [(usize, R); 4] {
    let (low_y, low_x) = (y.floor(), x.floor());
    let (down, right) = (q(y - low_y), q(x - low_x));
    let (up, left) = (q(R::ONE - down), q(R::ONE - right));
    let (low_y, low_x) = (low_y.wide(), low_x.wide());
    let index = |y: f64, x: f64| {
        let inside = y >= 0.0 && y < height as f64 && x >= 0.0 && x < width as f64;
        if inside { y as usize * width + x as usize } else { NONE }
    };
    [
        (index(low_y, low_x), q(left * up)),
        (index(low_y, low_x + 1.0), q(right * up)),
        (index(low_y + 1.0, low_x), q(left * down)),
        (index(low_y + 1.0, low_x + 1.0), q(right * down)),
    ]
}

/// The number of no pixel.
const NONE: usize = usize::MAX;

fn check(input: &Tensor, grid: &Tensor, dims: Option<usize>) -> Result<usize> {
    let (x, g) = (input.sizes(), grid.sizes());
    let fail = |text: String| fail(format!("grid_sampler(): {text}"));
    let dims = dims.unwrap_or_else(|| x.len().saturating_sub(2));
    if x.first() != g.first() {
        return fail(format!(
            "expected grid and input to have same batch size, but got input with sizes {:?} and grid with sizes {:?}",
            x.as_slice(),
            g.as_slice()
        ));
    }
    if g.last() != Some(&(x.len() as i64 - 2)) {
        return fail(format!(
            "expected grid to have size {} in last dimension, but got grid with sizes {:?}",
            x.len() as i64 - 2,
            g.as_slice()
        ));
    }
    if let Some(d) = (2..x.len()).find(|d| x[*d] <= 0) {
        return fail(format!(
            "expected input to have non-empty spatial dimensions, but input has sizes {:?} with dimension {d} being empty",
            x.as_slice()
        ));
    }
    if !(dims == 2 || dims == 3) || x.len() != dims + 2 || g.len() != dims + 2 {
        return fail(format!(
            "expected 4D or 5D input and grid with same number of dimensions, but got input with sizes {:?} and grid with sizes \
             {:?}",
            x.as_slice(),
            g.as_slice()
        ));
    }
    if input.dtype() != grid.dtype() {
        return Err(Diagnostic::runtime(format!(
            "expected scalar type {} but found {}",
            input.dtype().type_name(),
            grid.dtype().type_name()
        )));
    }
    Ok(dims)
}

fn grid_sample(a: &Args<'_>, dims: Option<usize>) -> Result<Outputs> {
    let (input, grid, mode) = (a.tensor(0)?, a.tensor(1)?, a.int(2)?);
    let dims = check(input, grid, dims)?;
    let outside = match a.int(3)? {
        0 => Outside::Zeros,
        1 => Outside::Border,
        2 => Outside::Reflection,
        other => return Err(Diagnostic::unsupported(format!("grid_sampler with padding mode {other}"))),
    };
    if !(0..=2).contains(&mode) || (mode == 2 && dims == 3) {
        return Err(Diagnostic::unsupported(format!(
            "grid_sampler of {dims} dimensions with interpolation mode {mode}"
        )));
    }
    let align = a.bool(4)?;
    match input.dtype() {
        DType::F16 | DType::BF16 => {
            let round = rounding(input.dtype());
            let rule = Rule { outside, align, dims, round: move |x: f32| round(f64::from(x)) as f32 };
            one(sampled::<f32, _>(input, grid, mode, &rule)?)
        }
        dtype => {
            let name = if dims == 2 { "grid_sampler_2d_cpu" } else { "grid_sampler3d_cpu" };
            crate::dispatch_real!(dtype, name, R => {
                one(sampled::<R, _>(input, grid, mode, &Rule { outside, align, dims, round: |x: R| x })?)
            })
        }
    }
}

fn sampled<R: Real, F: Fn(R) -> R + Sync>(
    input: &Tensor,
    grid: &Tensor,
    mode: i64,
    rule: &Rule<F>,
) -> Result<Tensor> {
    let dims = rule.dims;
    let layout = input.layout();
    if (mode, dims) == (0, 2) && !layout.is_contiguous() && layout.suggests_channels_last() {
        return sampled_pixels(input, grid, rule);
    }
    let (x, g) = (input.sizes(), grid.sizes());
    let channels = x[1] as usize;
    let mut sizes = vec![x[0], x[1]];
    sizes.extend(&g[1..=dims]);
    let image: [usize; 3] = std::array::from_fn(|d| if d + dims < 3 { 1 } else { x[d + dims - 1] as usize });
    let count: usize = g[1..=dims].iter().product::<i64>() as usize;
    let (pixels, places) = (Dense::<R>::new(input)?, Dense::<R>::new(grid)?);
    let (pixels, places) = (pixels.open()?, places.open()?);
    let area = image.iter().product::<usize>();
    // The grid holds width first.
    let place = |batch: usize, n: usize| {
        let given = &places[(batch * count + n) * dims..][..dims];
        let mut at = [R::ZERO; 3];
        for (d, g) in given.iter().enumerate() {
            at[2 - d] = rule.place(*g, image[2 - d]);
        }
        at
    };
    build::<R>(&sizes, input.dtype(), |out| {
        for (batch, out) in out.chunks_mut((channels * count).max(1)).enumerate() {
            let plane = |at: usize| &pixels[(batch * channels + at) * area..][..area];
            if mode != 0 {
                each_plane(out, count, 16, |at, out| {
                    let plane = Image { pixels: plane(at), sizes: image };
                    out.iter_mut()
                        .enumerate()
                        .for_each(|(n, y)| *y = look_up(&plane, place(batch, n), mode, rule));
                });
                continue;
            }
            // What lies around a place is the same in all channels.
            let around = around(count, |n| place(batch, n), image, rule)?;
            each_plane(out, count, 8, |at, out| {
                let plane = plane(at);
                for (y, around) in out.iter_mut().zip(around.chunks_exact(1 << dims)) {
                    *y = weighed(plane, image[2], around, rule);
                }
            });
        }
        Ok(())
    })
}

/// The sum of what lies around a place in a plane with lines of `width`.
#[inline(always)]
fn weighed<R: Real, F: Fn(R) -> R>(plane: &[R], width: usize, around: &[(usize, R)], rule: &Rule<F>) -> R {
    let add = |sum: R, x: R, weight: R| (rule.round)(sum + (rule.round)(x * weight));
    // Most places of images lie between four pixels.
    if let [(first, a), (_, b), (_, c), (last, d)] = around
        && *last < plane.len()
        && last.checked_sub(*first) == Some(width + 1)
        && let Some([x, y]) = plane.get(*first..).and_then(|pixels| pixels.first_chunk())
        && let Some([z, w]) = plane.get(first + width..).and_then(|pixels| pixels.first_chunk())
    {
        return add(add(add(add(R::ZERO, *x, *a), *y, *b), *z, *c), *w, *d);
    }
    around.iter().fold(R::ZERO, |sum, (index, weight)| match plane.get(*index) {
        Some(x) => add(sum, *x, *weight),
        None => sum,
    })
}

/// As [`sampled`] of images whose channels lie innermost, by the pixels around each place.
fn sampled_pixels<R: Real, F: Fn(R) -> R + Sync>(
    input: &Tensor,
    grid: &Tensor,
    rule: &Rule<F>,
) -> Result<Tensor> {
    let (x, g) = (input.sizes(), grid.sizes());
    let channels = x[1] as usize;
    let image = [1, x[2] as usize, x[3] as usize];
    let (area, count) = (image[1] * image[2], (g[1] * g[2]) as usize);
    let pixels = Dense::<R>::new(&input.look(|l| view::movedim(l, &[1], &[3]))?)?;
    let places = Dense::<R>::new(grid)?;
    let (pixels, places) = (pixels.open()?, places.open()?);
    // The grid holds width first.
    let place =
        |n: usize| [R::ZERO, rule.place(places[2 * n + 1], image[1]), rule.place(places[2 * n], image[2])];
    let around = around(x[0] as usize * count, place, image, rule)?;
    let result = build_whole::<R>(&[x[0], g[1], g[2], x[1]], input.dtype(), |out| {
        each_plane(out, channels, 8, |at, out| {
            let pixels = &pixels[at / count * area * channels..][..area * channels];
            wide_loops(
                #[inline(always)]
                || {
                    out.fill(R::ZERO);
                    for (index, weight) in &around[4 * at..4 * at + 4] {
                        if *index != NONE {
                            let pixel = &pixels[index * channels..][..channels];
                            for (y, x) in out.iter_mut().zip(pixel) {
                                *y = (rule.round)(*y + (rule.round)(*x * *weight));
                            }
                        }
                    }
                },
            );
        });
        Ok(())
    })?;
    // PyTorch's result is row-major, however the images lie.
    result.look(|l| view::movedim(l, &[3], &[1]))?.contiguous()
}

/// The neighbours of `count` places, and what each counts.
fn around<R: Real, F: Fn(R) -> R>(
    count: usize,
    place: impl Fn(usize) -> [R; 3],
    image: [usize; 3],
    rule: &Rule<F>,
) -> Result<Scratch<(usize, R)>> {
    memory::built(count.saturating_mul(1 << rule.dims), |out| {
        for n in 0..count {
            let at = brought(place(n), image, rule);
            if rule.dims == 2 {
                // A place that is not a number has invalid weights.
                let all = if lost(&at) { [(0, R::of(f64::NAN)); 4] } else { four(image, at, &rule.round) };
                out.extend(all);
            } else {
                out.extend(eight(image, at, &rule.round));
            }
        }
    })
}

/// A place brought into the image.
fn brought<R: Real, F: Fn(R) -> R>(mut at: [R; 3], sizes: [usize; 3], rule: &Rule<F>) -> [R; 3] {
    for (place, size) in at.iter_mut().zip(&sizes).skip(3 - rule.dims) {
        *place = rule.bring(*place, *size);
    }
    at
}

/// The nearest pixel, or a cubic through sixteen of them.
fn look_up<R: Real, F: Fn(R) -> R>(plane: &Image<'_, R>, at: [R; 3], mode: i64, rule: &Rule<F>) -> R {
    let q = &rule.round;
    let bring = |at: [R; 3]| brought(at, plane.sizes, rule);
    match mode {
        1 => plane.at(bring(at).map(|p| p.wide().round_ties_even())),
        _ if lost(&at) => R::of(f64::NAN),
        _ => {
            let floors = [at[1].floor(), at[2].floor()];
            let (wy, wx) = (cubic_stepped(q(at[1] - floors[0]), q), cubic_stepped(q(at[2] - floors[1]), q));
            let mut sum = R::ZERO;
            for (i, wy) in wy.iter().enumerate() {
                let mut line = R::ZERO;
                for (j, wx) in wx.iter().enumerate() {
                    let y = q(floors[0] + R::of(i as f64 - 1.0));
                    let x = q(floors[1] + R::of(j as f64 - 1.0));
                    let place = bring([R::ZERO, y, x]);
                    line = q(line + q(plane.at(place.map(|p| p.wide().trunc())) * *wx));
                }
                sum = q(sum + q(line * *wy));
            }
            sum
        }
    }
}

/// Whether a place in an image is not finite.
fn lost<R: Real>(at: &[R; 3]) -> bool {
    at[1..].iter().any(|x| !x.wide().is_finite())
}

/// The weights of a cubic through four neighbours, rounded step by step.
fn cubic_stepped<R: Real>(t: R, q: impl Fn(R) -> R) -> [R; 4] {
    let [a, one] = [R::of(-0.75), R::ONE];
    let far = |x: R| {
        let inner = q(q(a * x) - q(R::of(5.0) * a));
        let inner = q(q(inner * x) + q(R::of(8.0) * a));
        q(q(inner * x) - q(R::of(4.0) * a))
    };
    let near = |x: R| {
        let inner = q(q(q(a + R::of(2.0)) * x) - q(a + R::of(3.0)));
        q(q(q(inner * x) * x) + one)
    };
    [far(q(t + one)), near(t), near(q(one - t)), far(q(R::of(2.0) - t))]
}

/// The places that an affine map gives to the pixels of an image of `size`.
fn affine_grid(a: &Args<'_>) -> Result<Outputs> {
    let (theta, size, align) = (a.tensor(0)?, a.ints(1)?, a.bool(2)?);
    let dims = size.len().wrapping_sub(2);
    if dims != 2 && dims != 3 {
        return fail("AffineGridGenerator needs 4d (spatial) or 5d (volumetric) inputs.");
    }
    if size.iter().any(|s| *s <= 0) {
        return fail(format!("Expected non-zero, positive output size. Got {size:?}"));
    }
    if theta.sizes().as_slice() != [size[0], dims as i64, dims as i64 + 1] {
        return fail(format!(
            "Expected a batch of affine matrices of shape [{}, {dims}, {}] for size {size:?}. Got {:?}.",
            size[0],
            dims + 1,
            theta.sizes().as_slice()
        ));
    }
    let mut sizes = vec![size[0]];
    sizes.extend(&size[2..]);
    sizes.push(dims as i64);
    crate::dispatch_real!(theta.dtype(), "affine_grid", R => {
        let m = theta.elements_as::<R>()?;
        let coordinate = |at: usize, n: usize| {
            let x = if n <= 1 { 0.0 } else { 2.0 * at as f64 / (n as f64 - 1.0) - 1.0 };
            R::of(if align { x } else { x * (n as f64 - 1.0) / n as f64 })
        };
        one(build::<R>(&sizes, theta.dtype(), |out| {
            let count: usize = size[2..].iter().product::<i64>() as usize;
            for (place, y) in out.chunks_mut(dims).enumerate() {
                let (batch, mut rest) = (place / count, place % count);
                let mut from = vec![R::ONE; dims + 1];
                for d in 0..dims {
                    let n = size[size.len() - 1 - d] as usize;
                    from[d] = coordinate(rest % n, n);
                    rest /= n;
                }
                for (row, y) in y.iter_mut().enumerate() {
                    let m = &m[(batch * dims + row) * (dims + 1)..][..dims + 1];
                    *y = m.iter().zip(&from).map(|(m, x)| *m * *x).sum();
                }
            }
            Ok(())
        })?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reflection_folds_places() {
        let round = |x: f64| x;
        let aligned = Rule { outside: Outside::Reflection, align: true, dims: 2, round };
        let halves = Rule { outside: Outside::Reflection, align: false, dims: 2, round };
        let cases: &[(f64, f64, f64)] =
            &[(-1.0, 1.0, 0.0), (3.0, 1.0, 2.0), (4.5, 0.5, 0.5), (2.25, 1.75, 2.0)];
        for (x, with, without) in cases {
            assert_eq!(aligned.bring(*x, 3), *with, "{x}");
            assert_eq!(halves.bring(*x, 3), *without, "{x}");
        }
    }
}
