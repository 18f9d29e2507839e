//! Images at another size, two places of a line and a column to a result element or one: of planes, and of pixels whose channels
//! lie innermost. The sums are those of `resample`, in its order and with its rounding; elements of a line are gathered once for
//! all results between the same two lines. Knows slices, no tensor.

use super::pool::each_plane;
use crate::kernels::compute::Real;
use crate::kernels::wide_loops;

/// Columns that are gathered at once.
const BLOCK: usize = 64;

/// Where along a dimension a result element lies: between two places, with what each counts.
#[derive(Clone, Copy)]
pub struct Between<R> {
    /// The two places; the same twice where only one counts.
    pub places: [usize; 2],
    /// What each counts.
    pub weights: [R; 2],
}

/// Results between lines and columns.
pub struct Grid<'a, R> {
    /// Along the lines of the image, from top to bottom.
    pub rows: &'a [Between<R>],
    /// Along its columns.
    pub columns: &'a [Between<R>],
    /// Lines and columns of the source.
    pub from: (usize, usize),
}

/// One sum of four corners, weighted by the products of their weights: `x` of the upper line, then of the lower one.
#[inline(always)]
fn sum<R: Real>(x: [R; 4], rows: [R; 2], columns: [R; 2], backwards: bool) -> R {
    let w = [rows[0] * columns[0], rows[0] * columns[1], rows[1] * columns[0], rows[1] * columns[1]];
    if backwards {
        x[0].fused(w[0], x[1].fused(w[1], x[3].fused(w[3], x[2] * w[2])))
    } else {
        x[3].fused(w[3], x[2].fused(w[2], x[0].fused(w[0], x[1] * w[1])))
    }
}

/// A line of the source at the places left and right of a block of results.
struct Line<R> {
    place: usize,
    sides: [[R; BLOCK]; 2],
}

impl<R: Real> Line<R> {
    #[inline(always)]
    fn at(&mut self, plane: &[R], width: usize, place: usize, columns: &[Between<R>]) {
        if self.place == place {
            return;
        }
        self.place = place;
        let line = &plane[place * width..(place + 1) * width];
        let [left, right] = &mut self.sides;
        for ((left, right), column) in left.iter_mut().zip(right).zip(columns) {
            (*left, *right) = (line[column.places[0]], line[column.places[1]]);
        }
    }
}

/// Planes, one after the other; those of which `backwards` is true begin each sum with the last corner.
pub fn linear_planes<R: Real>(
    source: &[R],
    grid: &Grid<'_, R>,
    backwards: impl Fn(usize) -> bool + Sync + Send,
    out: &mut [R],
) {
    let (size, width) = (grid.from.0 * grid.from.1, grid.columns.len());
    each_plane(out, grid.rows.len() * width, 4, |at, out| {
        let (plane, backwards) = (&source[at * size..(at + 1) * size], backwards(at));
        wide_loops(
            #[inline(always)]
            || {
                for (n, columns) in grid.columns.chunks(BLOCK).enumerate() {
                    let mut counts = [[R::ZERO; BLOCK]; 2];
                    for (m, column) in columns.iter().enumerate() {
                        (counts[0][m], counts[1][m]) = (column.weights[0], column.weights[1]);
                    }
                    // Neighbouring lines have different places here.
                    let mut even = Line { place: usize::MAX, sides: [[R::ZERO; BLOCK]; 2] };
                    let mut odd = Line { place: usize::MAX, sides: [[R::ZERO; BLOCK]; 2] };
                    for (line, row) in out.chunks_exact_mut(width).zip(grid.rows) {
                        for place in row.places {
                            let cached = if place % 2 == 0 { &mut even } else { &mut odd };
                            cached.at(plane, grid.from.1, place, columns);
                        }
                        let [upper, lower] = row.places.map(
                            #[inline(always)]
                            |place| if place % 2 == 0 { &even.sides } else { &odd.sides },
                        );
                        let line = &mut line[n * BLOCK..][..columns.len()];
                        for (m, y) in line.iter_mut().enumerate() {
                            let x = [upper[0][m], upper[1][m], lower[0][m], lower[1][m]];
                            *y = sum(x, row.weights, [counts[0][m], counts[1][m]], backwards);
                        }
                    }
                }
            },
        );
    });
}

/// Pixels of `channels` elements; of the first `backwards` channels each sum begins with the last corner.
pub fn linear_pixels<R: Real>(
    source: &[R],
    grid: &Grid<'_, R>,
    channels: usize,
    backwards: usize,
    out: &mut [R],
) {
    let (height, width) = grid.from;
    each_plane(out, grid.columns.len() * channels, 4, |at, out| {
        let (image, row) = (at / grid.rows.len(), grid.rows[at % grid.rows.len()]);
        let lines = row
            .places
            .map(|place| &source[(image * height + place) * width * channels..][..width * channels]);
        wide_loops(
            #[inline(always)]
            || {
                for (y, column) in out.chunks_exact_mut(channels).zip(grid.columns) {
                    let [a, b] = column.places.map(|place| place * channels);
                    let [upper, lower] = lines;
                    let corners =
                        [&upper[a..], &upper[b..], &lower[a..], &lower[b..]].map(|pixel| &pixel[..channels]);
                    let (first, rest) = y.split_at_mut(backwards);
                    pixel(first, corners.map(|x| &x[..backwards]), row.weights, column.weights, true);
                    pixel(rest, corners.map(|x| &x[backwards..]), row.weights, column.weights, false);
                }
            },
        );
    });
}

#[inline(always)]
fn pixel<R: Real>(y: &mut [R], corners: [&[R]; 4], rows: [R; 2], columns: [R; 2], backwards: bool) {
    let [a, b, c, d] = corners;
    for ((y, (a, b)), (c, d)) in y.iter_mut().zip(a.iter().zip(b)).zip(c.iter().zip(d)) {
        *y = sum([*a, *b, *c, *d], rows, columns, backwards);
    }
}

/// Each result element is that of its first places: pixels of `channels` elements, one for planes.
pub fn nearest<R: Real>(source: &[R], grid: &Grid<'_, R>, channels: usize, out: &mut [R]) {
    let (height, width) = grid.from;
    let (line, size) = (grid.columns.len() * channels, grid.columns.len() * channels * grid.rows.len());
    each_plane(out, size, 1, |at, out| {
        let plane = &source[at * height * width * channels..][..height * width * channels];
        for (n, row) in grid.rows.iter().enumerate() {
            let (before, rest) = out.split_at_mut(n * line);
            let y = &mut rest[..line];
            if n > 0 && grid.rows[n - 1].places[0] == row.places[0] {
                y.copy_from_slice(&before[(n - 1) * line..]);
                continue;
            }
            let x = &plane[row.places[0] * width * channels..][..width * channels];
            if channels == 1 {
                y.iter_mut().zip(grid.columns).for_each(|(y, column)| *y = x[column.places[0]]);
                continue;
            }
            for (y, column) in y.chunks_exact_mut(channels).zip(grid.columns) {
                y.copy_from_slice(&x[column.places[0] * channels..][..channels]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(from: usize, to: usize) -> Vec<Between<f32>> {
        let place = |n: usize| n as f32 * (from - 1) as f32 / (to - 1).max(1) as f32;
        let between = |n: usize| {
            let (first, rest) = (place(n) as usize, place(n).fract());
            Between { places: [first, (first + 1).min(from - 1)], weights: [1.0 - rest, rest] }
        };
        (0..to).map(between).collect()
    }

    #[test]
    fn planes_pixels_and_single_places_agree() {
        let (images, channels, height, width) = (2, 21, 5, 7);
        let (rows, columns) = (axis(height, 13), axis(width, 150));
        let grid = Grid { rows: &rows, columns: &columns, from: (height, width) };
        let x: Vec<f32> =
            (0..images * channels * height * width).map(|n| ((n * 37) % 101) as f32 / 7.0).collect();
        let innermost = |x: &[f32], size: usize| -> Vec<f32> {
            let at = |n: usize, p: usize, c: usize| x[(n * channels + c) * size + p];
            let places = (0..images).flat_map(|n| (0..size).map(move |p| (n, p)));
            places.flat_map(|(n, p)| (0..channels).map(move |c| at(n, p, c))).collect()
        };
        let size = rows.len() * columns.len();
        let mut planes = vec![0.0; images * channels * size];
        linear_planes(&x, &grid, |plane| plane % channels < 16, &mut planes);
        for (at, y) in planes.iter().enumerate().step_by(11) {
            let (plane, row, column) =
                (at / size, &rows[at % size / columns.len()], &columns[at % columns.len()]);
            let corner = |n: usize| x[(plane * height + row.places[n / 2]) * width + column.places[n % 2]];
            let exact: f32 = (0..4).map(|n| corner(n) * row.weights[n / 2] * column.weights[n % 2]).sum();
            assert!((y - exact).abs() < 1e-5, "{at}: {y} {exact}");
        }
        let pixels = innermost(&x, height * width);
        let mut found = vec![0.0; planes.len()];
        linear_pixels(&pixels, &grid, channels, 16, &mut found);
        assert_eq!(found, innermost(&planes, size));
        let (mut planes, mut found) = (vec![0.0; planes.len()], vec![0.0; planes.len()]);
        nearest(&x, &grid, 1, &mut planes);
        nearest(&pixels, &grid, channels, &mut found);
        assert_eq!(found, innermost(&planes, size));
        let at = (3 * rows.len() + 7) * columns.len() + 20;
        assert_eq!(planes[at], x[(3 * height + rows[7].places[0]) * width + columns[20].places[0]]);
    }
}
