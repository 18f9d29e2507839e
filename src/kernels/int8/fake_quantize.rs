//! Numbers rounded to those that a quantized tensor could hold, as training for quantization simulates it. One element at a
//! time; it knows no tensors.

/// The integers from `low` to `high` that numbers are rounded to.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Distance of neighbouring numbers.
    pub scale: f32,
    /// The smallest integer.
    pub low: i64,
    /// The largest.
    pub high: i64,
}

impl Window {
    fn holds(&self, q: f64) -> bool {
        self.low as f64 <= q && q <= self.high as f64
    }

    /// With one zero point for all: the number and whether its integer was within bounds. NaN becomes the smallest.
    /// `wide`: the input is float64, in which it is then divided.
    #[inline]
    pub fn whole(&self, x: f64, zero_point: i64, wide: bool) -> (f32, bool) {
        let inverse = 1.0 / self.scale;
        let scaled = if wide { x * f64::from(inverse) } else { f64::from(x as f32 * inverse) };
        let q = scaled.round_ties_even() + zero_point as f64;
        let q = if wide { q } else { f64::from(q as f32) };
        // `max` takes the number where one is NaN.
        let bounded = (q as f32).max(self.low as f32).min(self.high as f32);
        ((bounded - zero_point as f32) * self.scale, self.holds(q))
    }

    /// Of a channel, as above; an integer that 64 bits do not hold becomes the smallest, however large it is.
    #[inline]
    pub fn channel(&self, x: f64, zero_point: ZeroPoint, wide: bool) -> (f64, bool) {
        let inverse = 1.0 / self.scale;
        let scaled = |add: f32| {
            if wide { x * f64::from(inverse) + f64::from(add) } else { f64::from(x as f32 * inverse + add) }
        };
        let (q, zero) = match zero_point {
            ZeroPoint::Int(zero) => (scaled(0.0).round_ties_even() + zero as f64, zero as f64),
            ZeroPoint::Float(zero) => (scaled(zero).round_ties_even(), f64::from(zero)),
        };
        const BOUND: f64 = 9_223_372_036_854_775_808.0;
        let q = if (-BOUND..BOUND).contains(&q) { q } else { -BOUND };
        let bounded = q.max(self.low as f64).min(self.high as f64);
        ((bounded - zero) * f64::from(self.scale), self.holds(q))
    }

    /// Derivatives of a number's rounding by the number, the scale and the zero point, where all three are learned.
    #[inline]
    pub fn slopes(&self, x: f32, zero_point: i64) -> [f32; 3] {
        let inverse = 1.0 / self.scale;
        let zero = zero_point as f32;
        let q = (x * inverse + zero).round_ties_even();
        let (low, high) = (self.low as f32, self.high as f32);
        let inside = if low <= q && q <= high { 1.0 } else { 0.0 };
        let q = q.max(low).min(high);
        if q == low || q == high {
            return [inside, q - zero, -self.scale];
        }
        [inside, ((q - zero) * self.scale - x) * inverse, 0.0]
    }
}

/// The number that stands for 0 in a channel.
#[derive(Clone, Copy, Debug)]
pub enum ZeroPoint {
    /// An integer: added after rounding.
    Int(i64),
    /// A float: added before rounding.
    Float(f32),
}

/// The squared root of the squared errors of `x` in integers of `bits` bits that span `low..=low + range`, with the scale
/// rounded to float16, as rows of embeddings store it.
fn loss(x: &[f32], low: f32, high: f32, bits: u32) -> f32 {
    let half = |x: f32| half::f16::from_f32(x).to_f32();
    let low = half(low);
    let range = high - low;
    let most = ((1u32 << bits) - 1) as f32;
    let scale = if range == 0.0 { 1.0 } else { half(range / most) };
    let inverse = if scale == 0.0 { 1.0 } else { 1.0 / scale };
    let error = |x: &f32| {
        let q = ((x - low) * inverse).round_ties_even().min(most).max(0.0);
        let error = x - (q * scale + low);
        error * error
    };
    x.iter().map(error).fold(0.0f32, |sum, e| sum + e).sqrt()
}

/// The smallest and largest number to quantize to `bits` bits (1 to 16) so that errors are small: ends are moved inwards step
/// by step, of which `bins` make the whole range, until only `1 - ratio` of it is left.
pub fn best_range(x: &[f32], bins: i64, ratio: f32, bits: u32) -> (f32, f32) {
    let (low, high) = super::quantize::extremes(x);
    let (mut best, mut answer) = (loss(x, low, high, bits), (low, high));
    let step = (high - low) / bins as f32;
    let least = (bins as f32 * (1.0 - ratio)) * step;
    let (mut low, mut high, mut now) = (low, high, best);
    // Steps that are lost in rounding would never end the search.
    for _ in 0..bins.max(0) {
        if !(low + least < high) {
            break;
        }
        let (left, right) = (loss(x, low + step, high, bits), loss(x, low, high - step, bits));
        if now < left && now < right && now < best {
            (best, answer) = (now, (low, high));
        }
        if left < right {
            (low, now) = (low + step, left);
        } else {
            (high, now) = (high - step, right);
        }
    }
    answer
}
