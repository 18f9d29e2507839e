//! Groups of channels, where channels lie innermost: their moments, and each channel's factor and term. Knows slices, no tensor.

use super::pool::each_plane;
use crate::diag::Result;
use crate::kernels::compute::Real;
use crate::kernels::wide_loops;
use crate::resources::{Scratch, memory, pool};

/// Elements of a stretch of pixels, whose sums one thread makes.
const STRETCH: usize = 1 << 14;

/// Mean and variance of each group of `per_group` channels of an image. Sums are taken of differences from one of the group's
/// elements, so that equal elements have no variance and large means cost no digits.
pub fn moments<R: Real>(image: &[R], channels: usize, per_group: usize) -> Result<Scratch<(f64, f64)>> {
    let pivots: Vec<f64> = (0..channels).map(|c| image[c / per_group * per_group].wide()).collect();
    let stretch = channels * (STRETCH / channels).max(1);
    let mut sums = memory::filled(image.len().div_ceil(stretch) * channels * 2, 0f64)?;
    pool::try_chunks(&mut sums, 2 * channels, |at, sums| {
        let pixels = &image[at * stretch..image.len().min((at + 1) * stretch)];
        let (sums, squares) = sums.split_at_mut(channels);
        wide_loops(
            #[inline(always)]
            || add_pixels(pixels, &pivots, sums, squares),
        );
        Ok(())
    })?;
    let count = (image.len() / channels * per_group) as f64;
    let group = |first: usize| {
        let (mut sum, mut square) = (0.0, 0.0);
        for part in sums.chunks_exact(2 * channels) {
            sum += part[first..first + per_group].iter().sum::<f64>();
            square += part[channels + first..channels + first + per_group].iter().sum::<f64>();
        }
        let apart = sum / count;
        (pivots[first] + apart, (square / count - apart * apart).max(0.0))
    };
    // `max` would hide what is not a number.
    let checked = |first: usize| match group(first) {
        (mean, _) if !mean.is_finite() => (mean, f64::NAN),
        moments => moments,
    };
    memory::collected((0..channels).step_by(per_group).map(checked))
}

/// Adds differences from the pivots, and their squares, by channel: four pixels each time that sums are read and written.
#[inline(always)]
fn add_pixels<R: Real>(pixels: &[R], pivots: &[f64], sums: &mut [f64], squares: &mut [f64]) {
    let channels = pivots.len();
    let (sums, squares) = (&mut sums[..channels], &mut squares[..channels]);
    let mut some = pixels.chunks_exact(4 * channels);
    for some in &mut some {
        let (a, rest) = some.split_at(channels);
        let (b, rest) = rest.split_at(channels);
        let (c, d) = rest.split_at(channels);
        for at in 0..channels {
            let (a, b) = (a[at].wide() - pivots[at], b[at].wide() - pivots[at]);
            let (c, d) = (c[at].wide() - pivots[at], d[at].wide() - pivots[at]);
            sums[at] += (a + b) + (c + d);
            squares[at] += (a * a + b * b) + (c * c + d * d);
        }
    }
    for pixel in some.remainder().chunks_exact(channels) {
        for (at, x) in pixel.iter().enumerate() {
            let x = x.wide() - pivots[at];
            sums[at] += x;
            squares[at] += x * x;
        }
    }
}

/// `x * scale + shift`, rounded twice, of pixels of one element a channel.
pub fn scale_pixels<R: Real>(x: &[R], scale: &[R], shift: &[R], out: &mut [R]) {
    let channels = scale.len().max(1);
    let stretch = channels * (STRETCH / channels).max(1);
    each_plane(out, stretch, 1, |at, out| {
        let x = &x[at * stretch..][..out.len()];
        wide_loops(
            #[inline(always)]
            || {
                for (y, x) in out.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
                    let pairs = x.iter().zip(scale.iter().zip(shift));
                    y.iter_mut().zip(pairs).for_each(|(y, (x, (w, b)))| *y = *x * *w + *b);
                }
            },
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_the_definition() {
        for (pixels, channels, per_group) in [(1, 4, 2), (7, 6, 3), (900, 40, 40), (333, 96, 8)] {
            let x: Vec<f32> = (0..pixels * channels).map(|n| (n * 37 % 101) as f32 * 0.25 + 1000.0).collect();
            let found = moments(&x, channels, per_group).expect("small");
            assert_eq!(found.len(), channels / per_group);
            for (g, (mean, var)) in found.iter().enumerate() {
                let of = |x: &f32| f64::from(*x);
                let first = g * per_group;
                let group: Vec<f64> =
                    x.chunks(channels).flat_map(|p| p[first..first + per_group].iter().map(of)).collect();
                let wanted = group.iter().sum::<f64>() / group.len() as f64;
                let squares: f64 = group.iter().map(|x| (x - wanted).powi(2)).sum();
                assert!((mean - wanted).abs() < 1e-9 && (var - squares / group.len() as f64).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn equal_elements_have_no_variance_and_what_is_not_finite_has_none_to_give() {
        let equal = moments(&[0.1f32; 60], 6, 3).expect("small");
        assert!(equal.iter().all(|(mean, var)| *mean == f64::from(0.1f32) && *var == 0.0));
        let mut x = [1.0f32; 60];
        x[31] = f32::INFINITY;
        let found = moments(&x, 6, 3).expect("small");
        assert!(found[0].1.is_nan() && found[1].1 == 0.0);
    }
}
