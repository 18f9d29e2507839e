//! Values of an image between its pixels, by bilinear interpolation.

use crate::kernels::compute::Real;

/// A plane of an image.
#[derive(Clone, Copy)]
pub struct Plane<'a, R> {
    /// Its elements, line after line.
    pub data: &'a [R],
    /// Its lines.
    pub height: usize,
    /// Elements of a line.
    pub width: usize,
}

impl<R: Real> Plane<'_, R> {
    fn at(&self, y: usize, x: usize) -> R {
        self.data[y * self.width + x]
    }

    /// The value at a point; points a pixel or more outside count as 0, those nearer as the nearest border. How regions
    /// are sampled.
    pub fn within(&self, y: R, x: R) -> R {
        let (height, width) = (R::of(self.height as f64), R::of(self.width as f64));
        let below = R::of(-1.0);
        if y < below || y > height || x < below || x > width || self.data.is_empty() {
            return R::ZERO;
        }
        // Not a number, which compares as nothing, samples nothing either.
        if y.is_nan() || x.is_nan() {
            return y + x;
        }
        let (y0, y1, dy) = neighbours(y, self.height);
        let (x0, x1, dx) = neighbours(x, self.width);
        let (hy, hx) = (R::ONE - dy, R::ONE - dx);
        hy * hx * self.at(y0, x0)
            + hy * dx * self.at(y0, x1)
            + dy * hx * self.at(y1, x0)
            + dy * dx * self.at(y1, x1)
    }

    /// The value at a point of an image that is 0 outside of its pixels. How deformable convolutions sample.
    pub fn amid_zeros(&self, y: R, x: R) -> R {
        let (height, width) = (R::of(self.height as f64), R::of(self.width as f64));
        let below = R::of(-1.0);
        if !(y > below && y < height && x > below && x < width) {
            return R::ZERO;
        }
        let (fy, fx) = (y.floor(), x.floor());
        let (dy, dx) = (y - fy, x - fx);
        let (y0, x0) = (fy.wide() as i64, fx.wide() as i64);
        let pixel = |y: i64, x: i64| {
            let inside = (0..self.height as i64).contains(&y) && (0..self.width as i64).contains(&x);
            if inside { self.at(y as usize, x as usize) } else { R::ZERO }
        };
        let (hy, hx) = (R::ONE - dy, R::ONE - dx);
        hy * hx * pixel(y0, x0)
            + hy * dx * pixel(y0, x0 + 1)
            + dy * hx * pixel(y0 + 1, x0)
            + dy * dx * pixel(y0 + 1, x0 + 1)
    }
}

/// The pixels on both sides of a coordinate, and how far it lies from the first.
fn neighbours<R: Real>(at: R, size: usize) -> (usize, usize, R) {
    let at = if at < R::ZERO { R::ZERO } else { at };
    let low = at.wide() as usize;
    if low + 1 >= size { (size - 1, size - 1, R::ZERO) } else { (low, low + 1, at - R::of(low as f64)) }
}
