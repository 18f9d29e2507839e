//! A factor and a term for each channel: where channels have planes of their own, and where they lie innermost. Knows slices, no
//! tensor.

use super::pool::each_plane;
use crate::kernels::compute::Real;
use crate::kernels::wide_loops;

/// Elements of a stretch of rows.
const STRETCH: usize = 1 << 12;

/// `x * scale + shift`, rounded once, of planes of `plane` elements whose channels take turns.
pub fn scale_planes<R: Real>(x: &[R], plane: usize, scale: &[R], shift: &[R], out: &mut [R]) {
    each_plane(out, plane, 1, |at, out| {
        // Without channels there is no element to write.
        let Some(channel) = at.checked_rem(scale.len()) else { return };
        let (scale, shift) = (scale[channel], shift[channel]);
        wide_loops(
            #[inline(always)]
            || out.iter_mut().zip(&x[at * plane..]).for_each(|(y, x)| *y = x.mul_add(scale, shift)),
        );
    });
}

/// The same of rows of one element a channel.
pub fn scale_rows<R: Real>(x: &[R], scale: &[R], shift: &[R], out: &mut [R]) {
    let channels = scale.len().max(1);
    let stretch = channels * (STRETCH / channels).max(1);
    each_plane(out, stretch, 1, |at, out| {
        let x = &x[at * stretch..];
        wide_loops(
            #[inline(always)]
            || {
                for (y, x) in out.chunks_exact_mut(channels).zip(x.chunks_exact(channels)) {
                    let pairs = x.iter().zip(scale.iter().zip(shift));
                    y.iter_mut().zip(pairs).for_each(|(y, (x, (w, b)))| *y = x.mul_add(*w, *b));
                }
            },
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planes_and_rows_have_the_same_numbers() {
        let (images, channels, plane) = (3, 37, 130);
        let x: Vec<f32> = (0..images * channels * plane).map(|n| (n % 101) as f32 - 50.0).collect();
        let scale: Vec<f32> = (0..channels).map(|c| 0.3 * c as f32 - 2.0).collect();
        let shift: Vec<f32> = (0..channels).map(|c| 1.0 / (c + 1) as f32).collect();
        let mut planes = vec![0.0; x.len()];
        scale_planes(&x, plane, &scale, &shift, &mut planes);
        let innermost = |from: &[f32]| -> Vec<f32> {
            let at = |n: usize, p: usize, c: usize| from[(n * channels + c) * plane + p];
            let places = (0..images).flat_map(|n| (0..plane).map(move |p| (n, p)));
            places.flat_map(|(n, p)| (0..channels).map(move |c| at(n, p, c))).collect()
        };
        let mut rows = vec![0.0; x.len()];
        scale_rows(&innermost(&x), &scale, &shift, &mut rows);
        assert_eq!(rows, innermost(&planes));
        scale_rows::<f32>(&[], &[], &[], &mut []);
        scale_planes::<f32>(&[], 1, &[], &[], &mut []);
    }
}
