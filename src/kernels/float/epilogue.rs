//! What happens to the sums of a layer before they are stored, in this order: the layer's own bias, an inference batch norm,
//! a residual added before the activation, the activation, a residual added after it. Knows channels, no layers.

use super::math;
use super::vector::{Lanes, Work};
use crate::diag::{Diagnostic, Result};

/// A function of each result, PyTorch's in value, NaN and signs of zero.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// x
    #[default]
    None,
    /// max(x, 0); NaN stays.
    Relu,
    /// x between two bounds (relu6: 0 and 6); NaN stays.
    Clamp(f32, f32),
    /// x / (1 + e^-x)
    Silu,
    /// x * clamp(x + 3, 0, 6) / 6
    HardSwish,
    /// clamp(x + 3, 0, 6) / 6
    HardSigmoid,
    /// 1 / (1 + e^-x)
    Sigmoid,
    /// x * (1 + erf(x / √2)) / 2
    Gelu,
    /// The same by PyTorch's approximation with tanh.
    GeluTanh,
    /// tanh(x)
    Tanh,
    /// x where x > 0, else x times the slope.
    LeakyRelu(f32),
}

/// A tensor of the result's sizes that is added to it.
#[derive(Clone, Copy, Debug)]
pub struct Residual<'a> {
    /// Its values, channels innermost.
    pub values: &'a [f32],
    /// Floats from one pixel (or row) to the next; as many as there are channels where it is dense.
    pub pitch: usize,
    /// Whether it is added after the activation, else before it.
    pub after: bool,
}

/// All that is applied to a layer's sums. The default applies nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Epilogue<'a> {
    /// Added to each channel.
    pub bias: Option<&'a [f32]>,
    /// Each channel's factor and what is added then: PyTorch's inference batch norm is `alpha = weight / sqrt(var + eps)`
    /// and `beta = bias - mean * alpha`; a layer scale is its numbers and zeros.
    pub norm: Option<(&'a [f32], &'a [f32])>,
    /// Added to the result.
    pub residual: Option<Residual<'a>>,
    /// Applied to the result.
    pub activation: Activation,
}

impl Epilogue<'_> {
    /// Fails unless all parts have `channels` channels and `pixels` pixels.
    pub(super) fn check(&self, channels: usize, pixels: usize) -> Result<()> {
        let fits = |numbers: &[f32]| numbers.len() == channels;
        if !self.bias.is_none_or(fits) || !self.norm.is_none_or(|(scale, shift)| fits(scale) && fits(shift)) {
            return Err(Diagnostic::runtime(format!(
                "a layer of {channels} channels needs as many values of bias, scale and shift"
            )));
        }
        match self.residual {
            Some(r) if !spans(r.values.len(), pixels, r.pitch, channels) => {
                Err(Diagnostic::runtime(format!(
                    "a residual of {} values in rows of {} does not fit {pixels} pixels of {channels} channels",
                    r.values.len(),
                    r.pitch
                )))
            }
            _ => Ok(()),
        }
    }

    /// Whether it leaves the sums as they are.
    pub(super) fn is_empty(&self) -> bool {
        self.bias.is_none()
            && self.norm.is_none()
            && self.residual.is_none()
            && self.activation == Activation::None
    }
}

/// Whether `len` values hold `pixels` pixels of `channels` channels that lie `pitch` values apart.
pub(super) fn spans(len: usize, pixels: usize, pitch: usize, channels: usize) -> bool {
    let Some(before) = pixels.checked_sub(1) else { return true };
    let end = before.checked_mul(pitch).and_then(|n| n.checked_add(channels));
    pitch >= channels && end.is_some_and(|end| end <= len)
}

impl Activation {
    /// Bounds that do all there is to do. None: another function.
    pub(super) fn bounds(self) -> Option<(f32, f32)> {
        match self {
            Activation::None => Some((f32::NEG_INFINITY, f32::INFINITY)),
            Activation::Relu => Some((0.0, f32::INFINITY)),
            Activation::Clamp(low, high) => Some((low, high)),
            _ => None,
        }
    }

    /// Sixteen results.
    #[inline(always)]
    pub(super) fn apply<L: Lanes>(self, l: L, x: L::V) -> L::V {
        let (zero, one, half) = (l.splat(0.0), l.splat(1.0), l.splat(0.5));
        let six = |x| l.at_most(l.splat(6.0), l.at_least(zero, l.add(x, l.splat(3.0))));
        match self {
            Activation::None => x,
            Activation::Relu => l.at_least(zero, x),
            Activation::Clamp(low, high) => l.at_most(l.splat(high), l.at_least(l.splat(low), x)),
            Activation::Silu => l.div(x, l.add(one, math::exp(l, l.sub(l.splat(-0.0), x)))),
            Activation::HardSwish => l.div(l.mul(x, six(x)), l.splat(6.0)),
            Activation::HardSigmoid => l.div(six(x), l.splat(6.0)),
            Activation::Sigmoid => math::sigmoid(l, x),
            Activation::Gelu => {
                let erf = math::erf(l, l.mul(x, l.splat(std::f32::consts::FRAC_1_SQRT_2)));
                l.mul(l.mul(x, half), l.add(one, erf))
            }
            Activation::GeluTanh => {
                let cube = l.mul(l.mul(x, x), x);
                let inner = l.fma(l.splat(0.044_715), cube, x);
                let inner = l.mul(l.splat(0.797_884_56), inner);
                l.mul(l.mul(half, x), l.add(one, math::tanh(l, inner)))
            }
            Activation::Tanh => math::tanh(l, x),
            Activation::LeakyRelu(slope) => l.where_less(zero, x, x, l.mul(x, l.splat(slope))),
        }
    }
}

/// A vector of channels of an epilogue. Parts that are missing are numbers that change nothing: -0 as a term.
#[derive(Clone, Copy)]
pub(super) struct Column<V> {
    bias: V,
    scale: V,
    shift: V,
    /// Bounds that do what the activation does, unless it is another function.
    low: V,
    high: V,
    curved: bool,
    first: usize,
    count: usize,
}

impl<V: Copy> Column<V> {
    /// `count` channels from `first` on, which the epilogue must have.
    #[inline(always)]
    pub(super) fn of<L: Lanes<V = V>>(
        l: L,
        epilogue: &Epilogue<'_>,
        first: usize,
        count: usize,
    ) -> Column<V> {
        let (mut bias, mut scale, mut shift) = (l.splat(-0.0), l.splat(1.0), l.splat(-0.0));
        if let Some(given) = epilogue.bias {
            bias = l.load_some(&given[first..first + count], 0.0);
        }
        if let Some((by, then)) = epilogue.norm {
            scale = l.load_some(&by[first..first + count], 0.0);
            shift = l.load_some(&then[first..first + count], 0.0);
        }
        let bounds = epilogue.activation.bounds();
        let (low, high) = bounds.unwrap_or((f32::NEG_INFINITY, f32::INFINITY));
        let (low, high, curved) = (l.splat(low), l.splat(high), bounds.is_none());
        Column { bias, scale, shift, low, high, curved, first, count }
    }

    /// What the epilogue makes of a pixel's sums.
    #[inline(always)]
    pub(super) fn finish<L: Lanes<V = V>>(&self, l: L, epilogue: &Epilogue<'_>, sums: V, pixel: usize) -> V {
        let x = self.moved(l, sums);
        if self.is_simple(epilogue) { self.bounded(l, x) } else { self.rest(l, epilogue, x, pixel) }
    }

    /// Whether `simple` does all there is to do.
    #[inline(always)]
    pub(super) fn is_simple(&self, epilogue: &Epilogue<'_>) -> bool {
        epilogue.residual.is_none() && !self.curved
    }

    /// What an epilogue without residual makes of sums, whose activation is bounds.
    #[inline(always)]
    pub(super) fn simple<L: Lanes<V = V>>(&self, l: L, sums: V) -> V {
        self.bounded(l, self.moved(l, sums))
    }

    #[inline(always)]
    fn moved<L: Lanes<V = V>>(&self, l: L, sums: V) -> V {
        l.fma(l.add(sums, self.bias), self.scale, self.shift)
    }

    #[inline(always)]
    fn bounded<L: Lanes<V = V>>(&self, l: L, x: V) -> V {
        l.at_most(self.high, l.at_least(self.low, x))
    }

    #[inline(always)]
    fn rest<L: Lanes<V = V>>(&self, l: L, epilogue: &Epilogue<'_>, mut x: V, pixel: usize) -> V {
        let Some(r) = epilogue.residual else { return epilogue.activation.apply(l, x) };
        let other = l.load_some(&r.values[pixel * r.pitch + self.first..][..self.count], 0.0);
        if !r.after {
            x = l.add(x, other);
        }
        x = epilogue.activation.apply(l, x);
        if r.after { l.add(x, other) } else { x }
    }
}

/// Applies an activation to rows of stored sums, and what is added after it.
pub(super) struct Finish<'a, 'r> {
    pub activation: Activation,
    /// The row, and what is added to it.
    pub row: &'a mut [f32],
    pub residual: Option<&'r [f32]>,
}

impl Work for Finish<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<L: Lanes>(self, l: L) {
        let mut at = 0;
        for part in self.row.chunks_mut(super::vector::LANES) {
            let mut v = self.activation.apply(l, l.load_some(part, 0.0));
            if let Some(residual) = self.residual {
                v = l.add(v, l.load_some(&residual[at..at + part.len()], 0.0));
            }
            at += part.len();
            l.store_some(part, v);
        }
    }
}
