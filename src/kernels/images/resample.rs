//! Sums that make up an image at another size, in the order and with the rounding of PyTorch's kernels. Knows slices and
//! weights, no tensor and no schema.

use super::linear::Between;
use super::pool::each_plane;
use crate::kernels::compute::{Real, rounding};
use crate::kernels::wide_loops;
use crate::tensor::DType;

/// How an element between others is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The element whose stretch begins there.
    Nearest,
    /// The element whose middle is nearest.
    NearestExact,
    /// A line between neighbours.
    Linear,
    /// A cubic through four.
    Cubic,
    /// With antialiasing.
    SmoothLinear,
    /// With antialiasing.
    SmoothCubic,
    /// With antialiasing: a sine over six elements.
    SmoothLanczos,
}

impl Mode {
    /// Whether the filter is stretched against aliasing.
    pub fn is_smooth(self) -> bool {
        matches!(self, Mode::SmoothLinear | Mode::SmoothCubic | Mode::SmoothLanczos)
    }

    /// Whether one element is taken as it is.
    pub fn is_nearest(self) -> bool {
        matches!(self, Mode::Nearest | Mode::NearestExact)
    }
}

/// The elements that one result element is made of: the first, and a weight for each (clamped ones repeat).
pub struct Taps<R> {
    places: Vec<usize>,
    weights: Vec<R>,
}

impl<R: Real> Taps<R> {
    /// As two places: those of a line, or one of which all is taken.
    pub fn between(&self) -> Option<Between<R>> {
        match (&self.places[..], &self.weights[..]) {
            (&[first, second], &[w0, w1]) => Some(Between { places: [first, second], weights: [w0, w1] }),
            (&[place], _) => Some(Between { places: [place; 2], weights: [R::ONE, R::ZERO] }),
            _ => None,
        }
    }

    /// Most of PyTorch's kernels keep the weights in the dtype of the image; of two the first is what the second leaves.
    pub fn keep_as(&mut self, dtype: DType) {
        let round = rounding(dtype);
        self.weights.iter_mut().for_each(|weight| *weight = R::of(round(weight.wide())));
        if let [first, second] = &mut self.weights[..] {
            *first = R::of(round(1.0 - second.wide()));
        }
    }
}

/// Applies taps to one dimension: (outer, from, inner) becomes (outer, taps, inner). Each product but one is rounded
/// together with its sum: that one is the first where sums grow `in_turn`, else the second.
pub fn along<R: Real>(
    source: &[R],
    from: usize,
    inner: usize,
    taps: &[Taps<R>],
    in_turn: bool,
    out: &mut [R],
) {
    each_plane(out, taps.len() * inner, taps.first().map_or(1, |t| t.places.len()), |at, out| {
        let plane = &source[at * from * inner..(at + 1) * from * inner];
        wide_loops(
            #[inline(always)]
            || {
                if inner == 1 {
                    out.iter_mut()
                        .zip(taps)
                        .for_each(|(y, taps)| *y = taps.sum(in_turn, |place| plane[place]));
                    return;
                }
                for (line, taps) in out.chunks_mut(inner).zip(taps) {
                    taps.sum_lines(in_turn, |place| &plane[place * inner..(place + 1) * inner], line);
                }
            },
        );
    });
}

impl<R: Real> Taps<R> {
    /// One sum over elements.
    #[inline(always)]
    fn sum(&self, in_turn: bool, element: impl Fn(usize) -> R) -> R {
        match (&self.places[..], &self.weights[..]) {
            ([], _) | (_, []) => R::ZERO,
            ([first, second, places @ ..], [w0, w1, weights @ ..]) if !in_turn => {
                let start = element(*first).fused(*w0, element(*second) * *w1);
                places.iter().zip(weights).fold(start, |sum, (place, w)| element(*place).fused(*w, sum))
            }
            ([first, places @ ..], [w0, weights @ ..]) => {
                let start = element(*first) * *w0;
                places.iter().zip(weights).fold(start, |sum, (place, w)| element(*place).fused(*w, sum))
            }
        }
    }

    /// The same for each element of lines.
    #[inline(always)]
    fn sum_lines<'a>(&self, in_turn: bool, line: impl Fn(usize) -> &'a [R], out: &mut [R]) {
        let begun = match (&self.places[..], &self.weights[..]) {
            ([], _) | (_, []) => {
                out.fill(R::ZERO);
                return;
            }
            ([first, second, ..], [w0, w1, ..]) if !in_turn => {
                let pairs = line(*first).iter().zip(line(*second));
                out.iter_mut().zip(pairs).for_each(|(y, (a, b))| *y = a.fused(*w0, *b * *w1));
                2
            }
            ([first, ..], [w0, ..]) => {
                out.iter_mut().zip(line(*first)).for_each(|(y, x)| *y = *x * *w0);
                1
            }
        };
        for (place, w) in self.places.iter().zip(&self.weights).skip(begun) {
            out.iter_mut().zip(line(*place)).for_each(|(y, x)| *y = x.fused(*w, *y));
        }
    }
}

/// Sums all corners of a volume around each place at once, two to a dimension, weighted by the products of their weights
/// (`images` has those of planes). `taps` are those of three dimensions; volumes of which `backwards` is true (PyTorch sums them in vectors) begin with the
/// last corner.
pub fn corners<R: Real>(
    source: &[R],
    spatial: &[i64],
    taps: &[Vec<Taps<R>>],
    backwards: impl Fn(usize) -> bool + Sync + Send,
    out: &mut [R],
) {
    let ([slabs, rows, columns], &[_, height, width]) = (taps, spatial) else { return };
    let (height, width) = (height as usize, width as usize);
    let from: usize = spatial.iter().map(|size| *size as usize).product();
    each_plane(out, slabs.len() * rows.len() * columns.len(), 4, |at, out| {
        let (plane, backwards) = (&source[at * from..(at + 1) * from], backwards(at));
        wide_loops(
            #[inline(always)]
            || {
                for (n, line) in out.chunks_mut(columns.len()).enumerate() {
                    let row = &rows[n % rows.len()];
                    // Starts of the lines around the place, with what each counts.
                    let mut lines = [(0, R::ZERO); 4];
                    let slab = &slabs[n / rows.len()];
                    for (j, line) in lines.iter_mut().enumerate() {
                        let start = (slab.places[j / 2] * height + row.places[j % 2]) * width;
                        *line = (start, slab.weights[j / 2] * row.weights[j % 2]);
                    }
                    for (y, column) in line.iter_mut().zip(columns) {
                        *y = corner_sum(plane, &lines, column, backwards);
                    }
                }
            },
        );
    });
}

#[inline(always)]
fn corner_sum<R: Real>(plane: &[R], lines: &[(usize, R); 4], column: &Taps<R>, backwards: bool) -> R {
    let corner = |n: usize| {
        let (start, weight) = lines[n / 2];
        (plane[start + column.places[n % 2]], weight * column.weights[n % 2])
    };
    let count = 2 * lines.len();
    let order = |n: usize| if backwards { count - 1 - n } else { n };
    let [(x0, w0), (x1, w1)] = [corner(order(0)), corner(order(1))];
    (2..count).fold(x0.fused(w0, x1 * w1), |sum, n| {
        let (x, w) = corner(order(n));
        x.fused(w, sum)
    })
}

/// Input steps for one output step.
pub fn step<R: Real>(from: usize, to: usize, scale: Option<f64>, align: bool) -> R {
    match scale {
        _ if align && to > 1 => R::of((from - 1) as f64) / R::of((to - 1) as f64),
        _ if align => R::ZERO,
        Some(scale) if scale > 0.0 => R::of(1.0 / scale),
        _ => R::of(from as f64) / R::of(to as f64),
    }
}

/// The taps of every output element along a dimension; where `fused`, places are rounded once.
pub fn axis<R: Real>(
    mode: Mode,
    from: usize,
    to: usize,
    scale: Option<f64>,
    align: bool,
    fused: bool,
) -> Vec<Taps<R>> {
    let step: R = step(from, to, scale, align);
    let half = R::of(0.5);
    let source = |position: R| match align {
        true => step * position,
        false if fused => step.mul_add(position + half, -half),
        false => step * (position + half) - half,
    };
    let index = |x: R| x.wide().max(0.0) as usize;
    (0..to)
        .map(|at| {
            let position = R::of(at as f64);
            match mode {
                Mode::Nearest | Mode::NearestExact => {
                    let shift = if mode == Mode::Nearest { R::ZERO } else { half };
                    let place = index(((position + shift) * step).floor()).min(from - 1);
                    Taps { places: vec![place], weights: vec![R::ONE] }
                }
                Mode::Linear => {
                    let x = source(position).greater(R::ZERO);
                    let first = index(x.floor()).min(from - 1);
                    let second = first + usize::from(first < from - 1);
                    let rest = (x - R::of(first as f64)).greater(R::ZERO);
                    let rest = if rest > R::ONE { R::ONE } else { rest };
                    Taps { places: vec![first, second], weights: vec![R::ONE - rest, rest] }
                }
                Mode::Cubic => {
                    let x = source(position);
                    let floor = (x.floor().wide() as i64).min(from as i64 - 1);
                    let rest = (x - R::of(floor as f64)).greater(R::ZERO);
                    let rest = if rest > R::ONE { R::ONE } else { rest };
                    let weights = cubic(rest, R::of(-0.75)).to_vec();
                    let places = (-1..3).map(|k| (floor + k).clamp(0, from as i64 - 1) as usize).collect();
                    Taps { places, weights }
                }
                Mode::SmoothLinear | Mode::SmoothCubic | Mode::SmoothLanczos => smooth(mode, from, at, step),
            }
        })
        .collect()
}

/// The weights of the four elements around a place between the second and the third, rounded where PyTorch rounds.
fn cubic<R: Real>(t: R, a: R) -> [R; 4] {
    let near = |x: R| ((a + R::of(2.0)) * x - (a + R::of(3.0))) * x * x + R::ONE;
    let bend = |x: R| a.mul_add(x, R::of(-5.0) * a);
    let far = |x: R| bend(x).mul_add(x, R::of(8.0) * a) * x - R::of(4.0) * a;
    let u = R::ONE - t;
    [far(t + R::ONE), near(t), near(u), far(u + R::ONE)]
}

/// All elements under the filter stretched to the step, by their share.
fn smooth<R: Real>(mode: Mode, from: usize, at: usize, step: R) -> Taps<R> {
    let reach = match mode {
        Mode::SmoothLinear => 1.0,
        Mode::SmoothLanczos => 3.0,
        _ => 2.0,
    };
    // Sums with halves are computed as float64, what is kept is rounded to the dtype of computation.
    let kept = |x: f64| R::of(x);
    let step = step.wide();
    let stretched = step >= 1.0;
    let support = kept(if stretched { reach * step } else { reach });
    let shrink = kept(if stretched { 1.0 / step } else { 1.0 });
    let center = kept(step * (at as f64 + 0.5));
    let low = (((center - support).wide() + 0.5) as i64).max(0);
    let high = (((center + support).wide() + 0.5) as i64).min(from as i64).max(low);
    let [one, two] = [R::ONE, R::of(2.0)];
    let filter = |x: R| {
        let (x, a) = (x.abs(), R::of(-0.5));
        match mode {
            Mode::SmoothLinear if x < one => one - x,
            Mode::SmoothLinear => R::ZERO,
            Mode::SmoothLanczos => kept(super::lanczos(x.wide())),
            _ if x < one => ((a + two).mul_add(x, -(a + R::of(3.0))) * x).mul_add(x, one),
            _ if x < two => {
                let bend = a.mul_add(x, R::of(-5.0) * a);
                bend.mul_add(x, R::of(8.0) * a).mul_add(x, R::of(-4.0) * a)
            }
            _ => R::ZERO,
        }
    };
    let weight = |j: i64| filter(kept(((R::of(j as f64) - center).wide() + 0.5) * shrink.wide()));
    let weights: Vec<R> = (low..high).map(weight).collect();
    let total = weights.iter().fold(R::ZERO, |total, w| total + *w);
    Taps {
        places: (low..high).map(|j| j as usize).collect(),
        weights: weights.iter().map(|w| if total == R::ZERO { *w } else { *w / total }).collect(),
    }
}
