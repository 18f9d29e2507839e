//! Real numbers to integers and back, as PyTorch rounds them: for a whole tensor or for each channel. Slices only.

use super::quantization::Affine;
use crate::diag::{Diagnostic, Result};

/// Integers that quantized tensors are made of.
pub trait Quantized: Copy + Send + Sync + 'static {
    /// The smallest.
    const LOW: i32;
    /// The largest.
    const HIGH: i32;
    /// What NaN becomes where one scale stands for all.
    const NAN: i32;
    /// The low bits of an integer.
    fn of(bits: i32) -> Self;
    /// Its value.
    fn wide(self) -> i32;
}

macro_rules! quantized {
    ($($T:ty, $nan:expr);*) => {
        $(impl Quantized for $T {
            const LOW: i32 = <$T>::MIN as i32;
            const HIGH: i32 = <$T>::MAX as i32;
            const NAN: i32 = $nan;
            #[inline(always)]
            fn of(bits: i32) -> Self {
                bits as $T
            }
            #[inline(always)]
            fn wide(self) -> i32 {
                i32::from(self)
            }
        })*
    };
}

quantized!(u8, 255; i8, 127; i32, i32::MIN);

/// Adding it to a float of up to 22 bits rounds that to an integer, half to even, which then stands in the low bits.
const MAGIC: f32 = 12_582_912.0;
/// Zero points within it leave bounds that `MAGIC` rounds exactly.
const NEAR: i32 = 1 << 20;

/// One element: `clamp(round(x * inverse) + zero_point)`, computed in float32.
#[inline(always)]
fn element<Q: Quantized>(x: f32, inverse: f32, zero_point: i32, nan: i32) -> Q {
    let moved = (x * inverse).round_ties_even() + zero_point as f32;
    if moved.is_nan() {
        return Q::of(nan);
    }
    // 2^31 and above saturate, as the cast does.
    Q::of((moved as i32).clamp(Q::LOW, Q::HIGH))
}

/// Quantizes with one scale. Zero points should lie within the range of `Q`.
pub fn quantize<Q: Quantized>(x: &[f32], to: Affine, out: &mut [Q]) {
    let inverse = 1.0 / to.scale as f32;
    let near = (-NEAR..NEAR).contains(&to.zero_point) && Q::HIGH < NEAR;
    if !near {
        out.iter_mut().zip(x).for_each(|(q, x)| *q = element(*x, inverse, to.zero_point, Q::NAN));
        return;
    }
    let low = Q::LOW.wrapping_sub(to.zero_point) as f32;
    let high = Q::HIGH.wrapping_sub(to.zero_point) as f32;
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (q, x) in out.iter_mut().zip(x) {
                let scaled = *x * inverse;
                // NaN becomes the largest.
                let bounded = if scaled < high { scaled } else { high };
                let bounded = if bounded > low { bounded } else { low };
                *q = Q::of(((bounded + MAGIC).to_bits() as i32).wrapping_add(to.zero_point));
            }
        },
    );
}

/// Scales and zero points of the channels along one dimension of a dense tensor.
#[derive(Clone, Copy)]
pub struct Channels<'a> {
    /// One a channel.
    pub scales: &'a [f64],
    /// One a channel.
    pub zero_points: &'a [i64],
    /// Elements of one step along the channels' dimension.
    pub inner: usize,
}

impl Channels<'_> {
    /// The channel of runs of `inner` elements, one run after the other.
    fn runs(&self) -> impl Iterator<Item = (f64, i64)> {
        self.scales.iter().copied().zip(self.zero_points.iter().copied()).cycle()
    }
}

/// Quantizes with a scale for each channel: as [`quantize`], but NaN becomes what a cast of the smallest 32-bit integer is.
pub fn quantize_channels<Q: Quantized>(x: &[f32], channels: Channels<'_>, out: &mut [Q]) {
    let inner = channels.inner.max(1);
    for ((q, x), (scale, zero)) in out.chunks_mut(inner).zip(x.chunks(inner)).zip(channels.runs()) {
        let inverse = 1.0 / scale as f32;
        q.iter_mut().zip(x).for_each(|(q, x)| *q = element(*x, inverse, zero as i32, i32::MIN));
    }
}

/// Real numbers of integers with one scale: `(q - zero_point) * scale` in float32.
pub fn dequantize<Q: Quantized>(q: &[Q], from: Affine, out: &mut [f32]) {
    let scale = from.scale as f32;
    pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            for (x, q) in out.iter_mut().zip(q) {
                *x = q.wide().wrapping_sub(from.zero_point) as f32 * scale;
            }
        },
    );
}

/// Real numbers of integers with a scale for each channel: the difference in float32, its product with the scale in float64.
pub fn dequantize_channels<Q: Quantized>(q: &[Q], channels: Channels<'_>, out: &mut [f32]) {
    let inner = channels.inner.max(1);
    for ((x, q), (scale, zero)) in out.chunks_mut(inner).zip(q.chunks(inner)).zip(channels.runs()) {
        let zero = zero as f32;
        x.iter_mut().zip(q).for_each(|(x, q)| *x = (f64::from(q.wide() as f32 - zero) * scale) as f32);
    }
}

/// The smallest and the largest number; 0 and 0 of none. NaN is passed over.
pub fn extremes(x: &[f32]) -> (f32, f32) {
    const LANES: usize = 64;
    if x.is_empty() {
        return (0.0, 0.0);
    }
    let (low, high) = pulp::Arch::new().dispatch(
        #[inline(always)]
        || {
            let (mut low, mut high) = ([f32::INFINITY; LANES], [f32::NEG_INFINITY; LANES]);
            let chunks = x.chunks_exact(LANES);
            let rest = chunks.remainder();
            for chunk in chunks.chain(std::iter::once(rest)) {
                for ((low, high), x) in low.iter_mut().zip(&mut high).zip(chunk) {
                    *low = if *x < *low { *x } else { *low };
                    *high = if *x > *high { *x } else { *high };
                }
            }
            (low, high)
        },
    );
    (low.into_iter().fold(f32::INFINITY, f32::min), high.into_iter().fold(f32::NEG_INFINITY, f32::max))
}

/// Scales below it are raised to it: they would be denormal in float16.
const SMALL_SCALE: f32 = 6.1e-5;

/// Scale and zero point with which `low..=high` fills the integers `range`, widened so that 0 is among the numbers.
/// `symmetric`: where numbers of both signs are given, the zero point is the middle. `reduce_range`: half the integers.
/// Fails if `low` is above `high` or one is NaN, or if the range is empty.
pub fn choose_qparams(
    low: f32,
    high: f32,
    range: (i32, i32),
    symmetric: bool,
    reduce_range: bool,
) -> Result<Affine> {
    if !(low <= high) {
        return Err(Diagnostic::runtime(
            "In ChooseQuantizationParams, min should be less than or equal to max",
        ));
    }
    let (qmin, qmax) = if reduce_range { (range.0 / 2, range.1 / 2) } else { range };
    if qmin >= qmax {
        return Err(Diagnostic::runtime("In ChooseQuantizationParams, qmin should be less than qmax"));
    }
    let steps = f64::from(qmax) - f64::from(qmin);
    let (mut low, mut high) = (low, high);
    if low < 0.0 && high > 0.0 && symmetric {
        let half = ((i64::from(qmax) - i64::from(qmin)) / 2) as f32;
        let (least, most) = (-(half + 1.0), half);
        let scale = f64::from((low / least).abs().max((high / most).abs()));
        (low, high) = ((scale * f64::from(least)) as f32, (scale * f64::from(most)) as f32);
    }
    (low, high) = (low.min(0.0), high.max(0.0));
    let mut scale = (f64::from(high) - f64::from(low)) / steps;
    if scale as f32 == 0.0 || (1.0 / scale as f32).is_infinite() {
        scale = 0.1;
    }
    if scale < f64::from(SMALL_SCALE) {
        let raised = SMALL_SCALE / scale as f32;
        scale = f64::from(SMALL_SCALE);
        (low, high) = match (low == 0.0, high == 0.0) {
            (true, _) => (low, SMALL_SCALE * steps as f32),
            (_, true) => (-SMALL_SCALE * steps as f32, high),
            _ => (low * raised, high * raised),
        };
    }
    let both = symmetric && low < 0.0 && high > 0.0;
    let zero_point =
        if both { (f64::from(qmin) + f64::from(qmax)) / 2.0 } else { zero(low, high, (qmin, qmax), scale) };
    // Bounds first: what lies outside need not be a number of 32 bits.
    let zero_point = zero_point.clamp(f64::from(qmin), f64::from(qmax)).round_ties_even() as i32;
    Ok(Affine { scale, zero_point })
}

/// The zero point, from the end of the range where the error of computing it is smaller.
fn zero(low: f32, high: f32, (qmin, qmax): (i32, i32), scale: f64) -> f64 {
    let (from_low, from_high) = (f64::from(low) / scale, f64::from(high) / scale);
    let errors = (f64::from(qmin).abs() - from_low.abs(), f64::from(qmax).abs() - from_high.abs());
    if errors.0 < errors.1 { f64::from(qmin) - from_low } else { f64::from(qmax) - from_high }
}

/// A weight as float16 stores it: rounded half to even, and numbers beyond its range become the largest of their sign.
pub fn as_float16(x: f32) -> f32 {
    let largest = half::f16::MAX.to_f32();
    half::f16::from_f32(x.clamp(-largest, largest)).to_f32()
}
